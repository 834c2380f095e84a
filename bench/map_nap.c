/* A command for tools/map: sleep for a given number of milliseconds, and twice as long in the slot SLOW_SLOT.
 * usage: map_nap MS */
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv) {
    const char *slot = getenv("PARALLEL_JOBSLOT"); /* set by kilter map, GNU parallel, and xargs if asked */
    const char *slow = getenv("SLOW_SLOT");
    double ms = argc > 1 ? strtod(argv[1], NULL) : 0;
    if (slot && slow && strcmp(slot, slow) == 0)
        ms *= 2;
    const struct timespec nap = {(time_t)(ms / 1000), (long)(1e6 * ms) % 1000000000L};
    return nanosleep(&nap, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
