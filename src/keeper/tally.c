/* Count attempts without progress, so that a program is not started again for ever. */
#include "keeper/keeper_private.h"

void kl_keeper_tally_launch(kl_keeper *k) {
    k->tally.attempt++;
    k->tally.saved_then = k->tally.saved;
    k->tally.by_hand = false;
}

/* Handle the first report of an attempt. If it names a newer checkpoint than all reports before, the previous
 * attempt has saved that checkpoint. So the previous attempt has made progress. */
void kl_keeper_tally_first(kl_keeper *k) {
    if (k->watch.saved > k->tally.saved) {
        k->tally.saved = k->watch.saved;
        k->tally.idle = 0;
    }
    k->tally.saved_then = k->tally.saved;
    k->tally.refused_s = 0;
}

/* Return whether the attempt has saved new sweeps. Only saved sweeps count as progress, because all other
 * sweeps are lost when the attempt ends. */
static bool saved_something(kl_keeper *k) {
    if (k->watch.saved > k->tally.saved)
        k->tally.saved = k->watch.saved;
    return k->tally.saved > k->tally.saved_then;
}

void kl_keeper_tally_end(kl_keeper *k, bool planned) {
    bool progress = saved_something(k);
    if (progress)
        k->tally.idle = 0;
    else if (!k->tally.by_hand)
        k->tally.idle++;
    for (uint64_t i = 0; i < k->count; i++) {
        kl_keeper_host *h = &k->hosts[i];
        if (h->ranks > 0)
            h->failures = progress ? 0 : h->failures + !planned;
    }
}

bool kl_keeper_tally_is_full(const kl_keeper *k) {
    return k->tally.idle >= k->options.tries;
}
