/* Judge whether a rank should be pinned to its core. */
#include "measure/measure.h"

/* A rank is pinned if other processes use more than BEGIN cores beyond the spare ones. It is unpinned if they
 * use less than KEEP. The measured number may be wrong by about 0.1. */
static const double BEGIN = 0.25, KEEP = 0.1;
/* A pin is of no use if rows stay equal for USELESS_ROUNDS rounds and USELESS_S seconds. After that, the rank
 * is not pinned for a time that doubles each time, from USELESS_PAUSE_S to LONGEST_PAUSE_S. */
enum { USELESS_ROUNDS = 10 };
static const double USELESS_S = 1, USELESS_PAUSE_S = 5, LONGEST_PAUSE_S = 80;
/* A pin does harm if more than IDLE cores are idle for IDLE_S seconds, because the rank could use one of
 * them. After that, the rank is not pinned for IDLE_PAUSE_S. */
static const double IDLE = 0.8, IDLE_S = 3, IDLE_PAUSE_S = 5;

bool kl_pin_wanted(kl_pin *p, const kl_pin_sample *s) {
    bool needed = s->spare >= 0 && s->others > s->spare + (p->pinned ? KEEP : BEGIN);
    if (!s->known)
        return p->pinned;
    if (!p->pinned)
        *p = (kl_pin){.useful_s = s->now_s, .full_s = s->now_s, .pause_s = p->pause_s, .again_s = p->again_s};
    if (s->idle < IDLE)
        p->full_s = s->now_s;
    if (s->now_s - p->full_s > IDLE_S)
        p->again_s = s->now_s + IDLE_PAUSE_S;
    return (p->pinned || s->shared) && needed && !s->threads && s->now_s >= p->again_s;
}

static void pause_useless(kl_pin *p, double now_s) {
    double longer_s = p->pause_s > 0 ? 2 * p->pause_s : USELESS_PAUSE_S;
    p->pause_s = longer_s < LONGEST_PAUSE_S ? longer_s : LONGEST_PAUSE_S;
    p->again_s = now_s + p->pause_s;
}

void kl_pin_round(kl_pin *p, bool useful, double now_s) {
    if (!p->pinned || now_s < p->again_s)
        return;
    p->rounds = useful ? 0 : p->rounds + 1;
    p->useful_s = useful ? now_s : p->useful_s;
    if (useful)
        p->pause_s = 0;
    else if (p->rounds >= USELESS_ROUNDS && now_s - p->useful_s >= USELESS_S)
        pause_useless(p, now_s);
}
