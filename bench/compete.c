/* compete CORE: keep the CORE-th core this process may use busy, until it or the process that started it
 * ends. The numbering is that of local workers. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "sys/sys.h"

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--cores") == 0) {
        printf("%u\n", kl_core_count());
        return 0;
    }
    char *end = NULL, binding[KL_BINDING_BYTES];
    unsigned long core = argc == 2 ? strtoul(argv[1], &end, 10) : 0;
    if (argc != 2 || *argv[1] == '\0' || *end) {
        fprintf(stderr, "usage: compete CORE (a number from 0), compete --cores\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    kl_bind_core((uint32_t)core, binding);
    printf("%s\n", binding);
    fflush(stdout);
    for (volatile unsigned long i = 0;; i++)
        ;
}
