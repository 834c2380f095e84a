/* Report the deaths of peers to the root, from each peer to its parent in the tree. */
#include <math.h>
#include <stdlib.h>

#include "peer/peer_private.h"

/* Pause between two messages about deaths, as a part of the time between two reports. Deaths that a peer
 * learns of during a pause are reported in one message. */
static const double PAUSE_PART = 0.03;

void kl_loss_note(kl_node *n, uint32_t peer) {
    if (peer == n->of.number || peer >= n->tree.peers || kl_tree_is_gone(&n->tree, peer))
        return;
    kl_peer_check(n, kl_tree_lose(&n->tree, peer));
    kl_ask_lose(n, peer);
    if (n->root)
        kl_root_lose(n, peer);
    else
        kl_peer_check(n, kl_numbers_add(&n->losses.news, peer));
}

void kl_loss_hear(kl_node *n, uint32_t from, const kl_note *note) {
    (void)from;
    kl_tree_know(&n->tree, note->peers);
    for (size_t i = 0; i < note->gone.count; i++)
        kl_loss_note(n, note->gone.at[i]);
}

void kl_loss_again(kl_node *n, const kl_numbers *known) {
    kl_losses *l = &n->losses;
    if (n->tree.gone_count == known->count)
        return;
    for (uint32_t i = 0; i < n->tree.room; i++)
        if (kl_tree_is_gone(&n->tree, i) && !kl_numbers_has(known, i) && !kl_numbers_has(&l->news, i))
            kl_peer_check(n, kl_numbers_add(&l->news, i));
}

void kl_loss_tell(kl_node *n) {
    kl_losses *l = &n->losses;
    l->tell_s = l->news.count > 0 ? l->told_s + PAUSE_PART * n->round.period_s : INFINITY;
    if (n->now_s < l->tell_s)
        return;
    kl_note note = {.kind = KL_NOTE_LOSS, .peers = n->tree.peers, .gone = l->news};
    kl_post(n, n->round.above, &note, 0);
    l->news.count = 0;
    l->told_s = n->now_s;
    l->tell_s = INFINITY;
}
