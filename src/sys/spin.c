/* Measure what part of the cores a new program would get. A thread on each core computes for a moment, and
 * reads how long it ran. Other methods were tried, but none of them always told idle, limited and loaded
 * hosts apart. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "sys/groups.h"
#include "sys/sys.h"

enum { THREADS_MOST = 1024, STEPS = 2000 };

typedef struct spinner {
    double seconds;       /* seconds for which the thread computes */
    double ran_s, wall_s; /* seconds for which the thread ran, and seconds that passed meanwhile */
    double steps;
    /* result of the computation, which is stored so that the compiler does not leave the computation out */
    volatile double value;
} spinner;

static void compute(spinner *s) {
    double x = s->value;
    for (int i = 0; i < STEPS; i++)
        x = x * 0.999999 + 1e-6;
    s->value = x;
    s->steps += STEPS;
}

static void *spin(void *arg) {
    spinner *s = arg;
    clockid_t cpu = kl_thread_cpu();
    double begun_s = kl_monotonic_s(), ran_s = kl_cpu_s(cpu);
    do {
        compute(s);
        s->wall_s = kl_monotonic_s() - begun_s;
    } while (s->wall_s < s->seconds);
    s->ran_s = kl_cpu_s(cpu) - ran_s;
    return NULL;
}

/* all: ticks of all cores; stolen: ticks in which the virtual machine's host used the cores for other virtual
 * machines. */
typedef struct ticks {
    double all, stolen;
} ticks;

static ticks read_ticks(void) {
    char text[KL_TEXT_BYTES];
    double of[8] = {0};
    ticks t = {0, 0};
    kl_read_below("", "/proc", "stat", text);
    if (sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &of[0], &of[1], &of[2], &of[3], &of[4], &of[5],
               &of[6], &of[7]) != 8)
        return t;
    for (int i = 0; i < 8; i++)
        t.all += of[i];
    t.stolen = of[7];
    return t;
}

/* Return the part of the ticks since `before` that was not stolen. The CPU clock of a thread also counts
 * stolen time, so the caller multiplies its result by this part. */
static double not_stolen(ticks before) {
    ticks now = read_ticks();
    double all = now.all - before.all, stolen = now.stolen - before.stolen;
    return all > 0 && stolen > 0 && stolen < all ? 1 - stolen / all : 1;
}

/* Start threads that compute, and wait for all of them; the calling thread is one of them. Return the number
 * of threads that ran. */
static uint32_t spin_all(spinner *s, uint32_t threads) {
    pthread_t *thread = calloc(threads, sizeof *thread);
    uint32_t started = 0;
    while (thread && started + 1 < threads && kl_thread_start(&thread[started], spin, &s[started]) == 0)
        started++;
    spin(&s[started]);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    return started + 1;
}

double kl_spin(uint32_t threads, double seconds, double *steps_per_s) {
    threads = threads < 1 ? 1 : threads < THREADS_MOST ? threads : THREADS_MOST;
    spinner *s = calloc(threads, sizeof *s);
    double ran_s = 0, wall_s = 0, steps = 0;
    ticks before = read_ticks();
    for (uint32_t i = 0; s && i < threads; i++)
        s[i].seconds = seconds;
    uint32_t count = s ? spin_all(s, threads) : 0;
    for (uint32_t i = 0; i < count; i++) {
        ran_s += s[i].ran_s;
        wall_s += s[i].wall_s;
        steps += s[i].steps;
    }
    free(s);
    *steps_per_s = ran_s > 0 ? steps / ran_s : NAN;
    return wall_s > 0 ? fmin(1, ran_s / wall_s) * not_stolen(before) : NAN;
}
