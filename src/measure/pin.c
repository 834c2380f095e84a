/* Judge whether a rank should be pinned to its core. */
#include "measure/measure.h"

/* A rank is pinned if other processes use more than BEGIN cores beyond the spare ones. It is unpinned if they
 * use less than KEEP. The measured number may be wrong by about 0.1. */
static const double BEGIN = 0.25, KEEP = 0.1;
/* A pin is of no use if rows stay equal for this number of rounds and seconds. After that, the rank is not
 * pinned for a time that doubles each time. */
enum { USELESS_ROUNDS = 10 };
static const double USELESS_S = 1, FIRST_PAUSE_S = 5, LONGEST_PAUSE_S = 80;

bool kl_pin_wanted(kl_pin *p, const kl_pin_sample *s) {
    bool needed = s->spare >= 0 && s->others > s->spare + (p->pinned ? KEEP : BEGIN);
    bool wanted = (p->pinned || s->shared) && needed && !s->threads && s->now_s >= p->again_s;
    if (wanted && !p->pinned)
        *p = (kl_pin){.useful_s = s->now_s, .pause_s = p->pause_s, .again_s = p->again_s};
    return wanted;
}

void kl_pin_round(kl_pin *p, bool useful, double now_s) {
    if (!p->pinned)
        return;
    p->rounds = useful ? 0 : p->rounds + 1;
    p->useful_s = useful ? now_s : p->useful_s;
    p->pause_s = useful ? 0 : p->pause_s;
    if (p->rounds < USELESS_ROUNDS || now_s - p->useful_s < USELESS_S)
        return;
    p->pause_s = p->pause_s == 0 ? FIRST_PAUSE_S : 2 * p->pause_s;
    if (p->pause_s > LONGEST_PAUSE_S)
        p->pause_s = LONGEST_PAUSE_S;
    p->again_s = now_s + p->pause_s;
}
