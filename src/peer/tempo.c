/* Measure how many tasks per second a peer does. */
#include <math.h>

#include "peer/peer_private.h"

/* number of tasks over which the pace is averaged */
static const double MEMORY_TASKS = 64;
/* The rate of the last few tasks is used instead of the averaged rate if the two differ much. The rates
 * differ much if the rate of the last few tasks is below SLOWER times, or above FASTER times, the averaged
 * rate. */
static const double SLOWER = 0.5, FASTER = 2.5;
/* The rate of the last few tasks is also used if these took longer than expected by more than this number of
 * standard deviations. Times are assumed to be exponentially distributed. */
static const double CHANCE = 3;

void kl_tempo_add(kl_tempo *t, double task_s, double least_s) {
    t->open.tasks++;
    t->open.seconds += task_s;
    if (t->open.seconds < least_s)
        return;
    double unit_s = kl_pace_unit_s(&t->pace), mean_s = t->open.seconds / t->open.tasks;
    kl_pace_add(&t->pace, t->open.seconds, t->open.tasks,
                MEMORY_TASKS * t->open.tasks * fmax(unit_s > 0 ? unit_s : mean_s, 1e-9));
    t->last[t->count++ % KL_TEMPO_LAST] = t->open;
    t->open = (kl_timed){0};
}

double kl_tempo_rate(const kl_tempo *t, double hand_s) {
    if (t->count == 0 && t->open.tasks > 0)
        return t->open.tasks / (t->open.seconds + hand_s);
    if (t->count == 0)
        return hand_s > 0 ? 1 / hand_s : 0;
    uint64_t last = t->count < KL_TEMPO_LAST ? t->count : KL_TEMPO_LAST;
    double rate = 1 / kl_pace_unit_s(&t->pace), last_s = hand_s, tasks = 0;
    for (uint64_t i = 0; i < last; i++) {
        last_s += t->last[i].seconds;
        tasks += t->last[i].tasks;
    }
    double lately = (tasks + 0.5) / last_s;
    bool other = last >= KL_TEMPO_LAST / 2 && (lately < SLOWER * rate || lately > FASTER * rate);
    bool late = last_s * rate > tasks + CHANCE * sqrt(tasks + 1) + 2;
    return other || late ? lately : rate;
}
