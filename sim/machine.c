/* The simulated machine on which a rank runs. This file replaces src/sys/machine.c. Simulated time passes
 * only in kl_spend_s(), kl_nap_s() and messages. */
#include <mpi.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sys/sys.h"

/* Operations per second of a host with speed="1Gf", which has speed 1 in Kilter. */
static const double FLOPS_PER_S = 1e9;
/* Seconds that a real master needs for a message; see docs/reference/simulation.md. */
static const double ANSWER_S = 10e-6;

double kl_monotonic_s(void) {
    return simgrid_get_clock();
}

static double simulated_s(void *self) {
    (void)self;
    return kl_monotonic_s();
}

static double seconds_in(const char *variable, double otherwise) {
    const char *text = getenv(variable);
    char *end = NULL;
    double value = text ? strtod(text, &end) : otherwise;
    if (text && (end == text || *end || !(value >= 0 && value < 1e6))) {
        fprintf(stderr, "%s: '%s' is not a number of seconds from 0\n", variable, text);
        _exit(2); /* _exit() ends all ranks, because they are all in this process */
    }
    return value;
}

static void spend(void *self, double seconds) {
    (void)self;
    kl_spend_s(seconds);
}

kl_clock kl_clock_system(void) {
    return (kl_clock){.now_s = simulated_s,
                      .spend = spend,
                      .simulated = true,
                      .answer_s = seconds_in("KILTER_ANSWER_S", ANSWER_S)};
}

double kl_unix_time_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void kl_nap_s(double seconds) {
    sg_actor_sleep_for(seconds);
}

void kl_spend_s(double seconds) {
    if (seconds > 0)
        smpi_execute_flops_benched(seconds * FLOPS_PER_S);
}

void kl_host_name(char name[KL_HOST_BYTES]) {
    snprintf(name, KL_HOST_BYTES, "%s", sg_host_self_get_name());
}

double kl_quantum_s(void) {
    return seconds_in("KILTER_QUANTUM_S", 0); /* 0: SimGrid shares hosts continuously, without quanta */
}
