/* A command for tools/map: sleep for the given number of milliseconds. In the slot whose number the variable
 * SLOW_SLOT gives, sleep twice as long. usage: map_nap MS */
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv) {
    const char *slot = getenv("PARALLEL_JOBSLOT"); /* the slot's number, which kilter map, GNU parallel,
                                                    * and with an option xargs set */
    const char *slow = getenv("SLOW_SLOT");
    double ms = argc > 1 ? strtod(argv[1], NULL) : 0;
    if (slot && slow && strcmp(slot, slow) == 0)
        ms *= 2;
    const struct timespec nap = {(time_t)(ms / 1000), (long)(1e6 * ms) % 1000000000L};
    return nanosleep(&nap, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
