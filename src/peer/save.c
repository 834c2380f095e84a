/* Send copies of this peer's results to its parent. If the peer dies, only its results since the last copy
 * are lost. */
#include <stdlib.h>

#include "peer/peer_private.h"

/* Pause between two copies, as a part of the time of the whole run. */
static const double SAVE_PART = 0.1;

void kl_save_send(kl_node *n) {
    kl_round *r = &n->round;
    if (n->root || !(r->end_s > 0) || n->now_s < n->saves.due_s || n->work.done.tasks.count == 0)
        return;
    kl_haul done = {0};
    kl_haul_join(n, &done, &n->work.done);
    kl_haul_join(n, &done, &r->told);
    kl_ranges_tidy(&done.tasks);
    kl_note note = {.kind = KL_NOTE_SAVE,
                    .round = r->sent_round,
                    .spans = done.tasks,
                    .value = kl_haul_value(&done),
                    .held = n->work.sent.tasks,
                    .held_value = kl_haul_value(&n->work.sent)};
    kl_post(n, r->above, &note, 0);
    kl_haul_free(&done);
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
    kl_haul_clear(&save->done);
    kl_haul_clear(&save->sent);
    kl_haul_add(n, &save->done, &note->spans, note->value);
    kl_haul_add(n, &save->sent, &note->held, note->held_value);
}

static void drop(kl_saves *s, kl_save *save) {
    kl_haul_free(&save->done);
    kl_haul_free(&save->sent);
    *save = s->at[--s->count];
}

void kl_save_inherit(kl_node *n, uint32_t peer, uint32_t committed) {
    kl_save *save = save_of(&n->saves, peer);
    if (!save)
        return;
    /* a peer that lost the connection to its parent has sent copies to two peers; one of them is the heir */
    bool inherits = kl_tree_heir(&n->tree, peer) == n->of.number;
    if (inherits && save->round >= committed)
        kl_haul_join(n, &n->work.done, &save->done);
    if (inherits && save->round > committed)
        kl_haul_join(n, &n->work.done, &save->sent);
    drop(&n->saves, save);
}

void kl_saves_free(kl_saves *s) {
    while (s->count > 0)
        drop(s, &s->at[0]);
    free(s->at);
}
