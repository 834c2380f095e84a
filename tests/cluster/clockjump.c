/* With this library in LD_PRELOAD, the time of day jumps back and forth by an hour, ten times a second. */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int ask(clockid_t clock, struct timespec *t) {
    return (int)syscall(SYS_clock_gettime, clock, t);
}

static long jump_s(void) {
    struct timespec t = {0};
    ask(CLOCK_MONOTONIC, &t);
    return t.tv_nsec / 100000000 % 2 ? 3600 : -3600;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    int failed = ask(clock, t);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec += jump_s();
    return failed;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return failed;
}

time_t time(time_t *t) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}
