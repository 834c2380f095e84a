/* compete CORE [ON OFF]: keep a core busy until this process or its parent ends. With ON and OFF: compute for
 * ON seconds, rest for OFF seconds, and so on. CORE counts the cores that this process may use, from 0;
 * worker number CORE of a local farm runs on the same core. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "sys/sys.h"

static bool read_number(const char *word, double *number) {
    char *end = NULL;
    *number = strtod(word, &end);
    return end != word && *end == '\0' && *number >= 0 && isfinite(*number);
}

static void compute_until(double end_s) {
    while (kl_monotonic_s() < end_s)
        for (volatile unsigned long i = 0; i < 1000; i++)
            ;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--cores") == 0) {
        printf("%u\n", kl_core_count());
        return 0;
    }
    char binding[KL_BINDING_BYTES];
    double core = 0, on_s = 1, off_s = 0;
    if ((argc != 2 && argc != 4) || !read_number(argv[1], &core) || core != floor(core) || core > 1e6 ||
        (argc == 4 && !(read_number(argv[2], &on_s) && on_s > 0 && read_number(argv[3], &off_s)))) {
        fprintf(stderr,
                "usage: compete CORE [ON OFF] (CORE from 0; ON and OFF in seconds), compete --cores\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    kl_bind_cores((uint32_t)core, 1, binding);
    printf("%s\n", binding);
    fflush(stdout);
    for (double begun_s = kl_monotonic_s();; begun_s += on_s + off_s) {
        compute_until(begun_s + on_s);
        double left_s = begun_s + on_s + off_s - kl_monotonic_s();
        if (left_s > 0)
            kl_nap_s(left_s);
    }
}
