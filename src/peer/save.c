/* A peer's results since the last committed round die with it, unless its parent has a copy. So the peer
 * sends copies. */
#include <stdlib.h>

#include "peer/peer_private.h"

/* Time between two copies, as a part of the whole run. */
static const double SAVE_PART = 0.1;

void kl_save_send(kl_node *n) {
    kl_round *r = &n->round;
    if (n->root || !(r->end_s > 0) || n->now_s < n->saves.due_s || n->work.done.count == 0)
        return;
    kl_ranges_tidy(&n->work.done);
    kl_note note = {
        .kind = KL_NOTE_SAVE, .round = r->sent_round, .spans = n->work.done, .held = n->work.sent};
    kl_post(n, r->above, &note, 0);
    n->saves.due_s = n->now_s + SAVE_PART * (r->end_s - r->began_s);
}

static kl_save *save_of(kl_saves *s, uint32_t peer) {
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i].peer == peer)
            return &s->at[i];
    return NULL;
}

void kl_save_take(kl_node *n, uint32_t from, const kl_note *note) {
    kl_saves *s = &n->saves;
    kl_save *save = save_of(s, from);
    kl_save *more = save ? s->at : kl_array_grow(s->at, &s->room, s->count + 1, sizeof *more);
    kl_peer_check(n, more);
    if (!more)
        return;
    s->at = more;
    if (!save) {
        save = &s->at[s->count++];
        *save = (kl_save){.peer = from};
    }
    save->round = note->round;
    save->done.count = save->sent.count = 0;
    kl_peer_check(n, kl_ranges_add_all(&save->done, note->spans.at, note->spans.count) &&
                         kl_ranges_add_all(&save->sent, note->held.at, note->held.count));
}

static void drop(kl_saves *s, kl_save *save) {
    kl_ranges_free(&save->done);
    kl_ranges_free(&save->sent);
    *save = s->at[--s->count];
}

void kl_save_inherit(kl_node *n, uint32_t peer, uint32_t committed) {
    kl_save *save = save_of(&n->saves, peer);
    kl_ranges *done = &n->work.done;
    if (!save)
        return;
    if (save->round >= committed)
        kl_peer_check(n, kl_ranges_add_all(done, save->done.at, save->done.count));
    if (save->round > committed)
        kl_peer_check(n, kl_ranges_add_all(done, save->sent.at, save->sent.count));
    drop(&n->saves, save);
}

void kl_save_free(kl_saves *s) {
    while (s->count > 0)
        drop(s, &s->at[0]);
    free(s->at);
}
