/* A command for tools/map: sleep for the given number of milliseconds. If the command runs in the slot whose
 * number is in the variable SLOW_SLOT, it sleeps twice as long. A slot runs one command at a time.
 *
 * usage: map_nap MS */
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv) {
    /* number of this command's slot; kilter map, GNU parallel and (with an option) xargs set this variable */
    const char *slot = getenv("PARALLEL_JOBSLOT");
    const char *slow = getenv("SLOW_SLOT");
    double ms = argc > 1 ? strtod(argv[1], NULL) : 0;
    if (slot && slow && strcmp(slot, slow) == 0)
        ms *= 2;
    const struct timespec nap = {(time_t)(ms / 1000), (long)(1e6 * ms) % 1000000000L};
    return nanosleep(&nap, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
