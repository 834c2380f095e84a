/* Times from the system, and the CPU time of threads. */
#include <math.h>
#include <pthread.h>
#include <time.h>

#include "sys/sys.h"

/* Limit the time to one day, so that time_t does not overflow. Callers check their condition after every
 * wait, so a wait that ends early does no harm. */
struct timespec kl_timespec(double seconds) {
    if (!(seconds > 0))
        return (struct timespec){0};
    if (seconds > 86400)
        return (struct timespec){.tv_sec = 86400};
    double whole = floor(seconds);
    return (struct timespec){.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)};
}

/* Limit only the pause to one day, not the resulting time. The time can be months, because the machine may
 * have been up for months. */
struct timespec kl_time_after(double seconds) {
    struct timespec until, pause = kl_timespec(seconds);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += pause.tv_sec;
    until.tv_nsec += pause.tv_nsec;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

clockid_t kl_thread_cpu(void) {
    clockid_t id;
    return pthread_getcpuclockid(pthread_self(), &id) == 0 ? id : CLOCK_THREAD_CPUTIME_ID;
}

double kl_cpu_s(clockid_t thread) {
    struct timespec t = {0};
    clock_gettime(thread, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
