/* The machine on which a process runs: its clocks, its cores' time, its name. A build for the simulator uses
 * sim/machine.c instead of this file. */
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "sys/sys.h"

static double read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double kl_monotonic_s(void) {
    return read_clock(CLOCK_MONOTONIC);
}

static double monotonic_s(void *self) {
    (void)self;
    return kl_monotonic_s();
}

static double thread_cpu_s(void *self) {
    (void)self;
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

kl_clock kl_clock_system(void) {
    return (kl_clock){.now_s = monotonic_s, .busy_s = thread_cpu_s};
}

double kl_process_cpu_s(void) {
    struct rusage children = {0};
    getrusage(RUSAGE_CHILDREN, &children);
    return read_clock(CLOCK_PROCESS_CPUTIME_ID) +
           (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
           1e-6 * (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec);
}

double kl_unix_time_s(void) {
    return read_clock(CLOCK_REALTIME);
}

void kl_nap_s(double seconds) {
    struct timespec t = kl_timespec(seconds);
    nanosleep(&t, NULL);
}

void kl_spend_s(double seconds) {
    double end_s = thread_cpu_s(NULL) + seconds;
    while (thread_cpu_s(NULL) < end_s)
        ;
}

void kl_host_name(char name[KL_HOST_BYTES]) {
    if (gethostname(name, KL_HOST_BYTES) != 0)
        snprintf(name, KL_HOST_BYTES, "unknown");
    name[KL_HOST_BYTES - 1] = '\0';
}
