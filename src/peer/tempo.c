/* The measured rate of a peer. */
#include <math.h>

#include "peer/peer_private.h"

/* number of tasks over which the pace is averaged */
static const double MEMORY_TASKS = 64;
/* The last tasks alone count if their mean differs from the pace by at least such a factor … */
static const double SLOWER = 0.5, FASTER = 2.5;
/* … or by more than this number of standard deviations of exponential times. */
static const double CHANCE = 3;

void kl_tempo_add(kl_tempo *t, double task_s) {
    double unit_s = kl_pace_unit_s(&t->pace);
    kl_pace_add(&t->pace, task_s, 1, MEMORY_TASKS * fmax(unit_s > 0 ? unit_s : task_s, 1e-9));
    t->last_s[t->count++ % KL_TEMPO_LAST] = task_s;
}

double kl_tempo_rate(const kl_tempo *t, double hand_s) {
    if (t->count == 0)
        return hand_s > 0 ? 1 / hand_s : 0;
    uint64_t last = t->count < KL_TEMPO_LAST ? t->count : KL_TEMPO_LAST;
    double rate = 1 / kl_pace_unit_s(&t->pace), last_s = hand_s;
    for (uint64_t i = 0; i < last; i++)
        last_s += t->last_s[i];
    double lately = ((double)last + 0.5) / last_s;
    bool other = last >= KL_TEMPO_LAST / 2 && (lately < SLOWER * rate || lately > FASTER * rate);
    bool late = last_s * rate > (double)last + CHANCE * sqrt((double)last + 1) + 2;
    return other || late ? lately : rate;
}
