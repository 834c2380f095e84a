/* The tasks of a peer: those that it owns, the one that runs, and those that it has done. */
#include <math.h>
#include <string.h>

#include "peer/peer_private.h"

bool kl_work_add(kl_work *w, kl_span span) {
    bool ok = kl_ranges_add(&w->own, span);
    w->left += ok ? span.hi - span.lo : 0;
    return ok;
}

uint64_t kl_work_next(kl_work *w) {
    kl_span *first = &w->own.at[0];
    uint64_t task = first->lo++;
    w->left--;
    if (first->lo == first->hi)
        memmove(first, first + 1, --w->own.count * sizeof *first);
    return task;
}

bool kl_work_cut(kl_work *w, uint64_t count, kl_ranges *out) {
    bool ok = true;
    while (count > 0 && w->own.count > 0 && ok) {
        kl_span *last = &w->own.at[w->own.count - 1];
        uint64_t part = last->hi - last->lo < count ? last->hi - last->lo : count;
        ok = kl_ranges_add(out, (kl_span){last->hi - part, last->hi});
        last->hi -= part;
        w->left -= part;
        count -= part;
        if (last->lo == last->hi)
            w->own.count--;
    }
    return ok;
}

bool kl_work_owns_hand(const kl_work *w) {
    return w->hand.on && w->hand.owner == KL_NOBODY && !w->hand.settled;
}

double kl_work_rate(const kl_work *w, double now_s) {
    return kl_tempo_rate(&w->tempo, w->hand.on ? fmax(now_s - w->hand.began_s, 0) : 0);
}

double kl_work_left(const kl_work *w) {
    return (double)w->left + (kl_work_owns_hand(w) ? 1 : 0);
}
