/* Count the cores that other processes use. */
#include <math.h>

#include "measure/measure.h"

/* Other processes use the cores if they take more than OTHERS_PART of the cores' time. The times of WINDOW_S
 * seconds are compared, because the system counts idle time in ticks of 0.01 s. Until the first window ends,
 * sweeps may take twice as long. So the first window is shorter, although its result is less certain. */
static const double FIRST_WINDOW_S = 0.1, WINDOW_S = 0.3, OTHERS_PART = 0.1;
static const double UNCERTAIN = 0.1; /* possible error of the number of cores that others use */

bool kl_crowd_due(const kl_crowd *c, double now_s) {
    return now_s - c->last.now_s >= (c->judged ? WINDOW_S : FIRST_WINDOW_S);
}

/* Round up. If the result is uncertain, prefer the number above 0 that was found before. */
static uint32_t count_taken(uint32_t before, double others) {
    double least = ceil(fmax(0, others - UNCERTAIN)), most = ceil(others + UNCERTAIN);
    return (uint32_t)fmax(1, fmin(fmax(before, least), most));
}

void kl_crowd_add(kl_crowd *c, const kl_crowd_sample *s) {
    kl_crowd_sample from = c->last;
    bool judged = from.now_s > 0,
         known = judged && from.idle_s >= 0 && s->idle_s >= 0 && s->processes == from.processes;
    double passed_s = s->now_s - from.now_s, few = OTHERS_PART * s->cores,
           accounted_s = s->used_s - from.used_s + s->idle_s - from.idle_s,
           others = known ? fmax(0, s->cores - accounted_s / passed_s) : 0;
    *c = (kl_crowd){.judged = judged,
                    .known = known,
                    .threads = judged && s->threads_s - from.threads_s > OTHERS_PART * passed_s,
                    .alone = known && others < few,
                    .others = others,
                    .idle = known ? (s->idle_s - from.idle_s) / passed_s : 0,
                    .taken = others >= few ? count_taken(c->taken, others - few) : 0,
                    .last = *s};
}
