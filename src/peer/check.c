/* Check a message between peers against what its receiver knows. A message that its sender cannot have sent
 * is malformed. */
#include "peer/peer_private.h"

static bool is_value(const kl_node *n, kilter_bytes value) {
    const kl_combine *how = &n->of.combine;
    return value.size == 0 || !how->check || how->check(how->self, value.data, value.size);
}

/* Return whether this peer may receive the message. The root accepts calls and plans only from itself. A root
 * that rests accepts no tasks. */
static bool is_for_root(const kl_node *n, uint32_t from, const kl_note *note) {
    if (!n->root || from == n->of.number)
        return true;
    bool makes_round = note->kind == KL_NOTE_CALL || note->kind == KL_NOTE_PLAN;
    bool gives = note->kind == KL_NOTE_GIFT || note->kind == KL_NOTE_COPY;
    return !makes_round && !(gives && n->of.root_rests);
}

/* Return whether all peers that are named in a report exist and may get tasks. */
static bool are_standings(const kl_node *n, uint32_t peers, const kl_standings *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i].peer >= peers || (list->at[i].peer == 0 && n->of.root_rests))
            return false;
    return true;
}

static bool are_gone(uint32_t peers, const kl_numbers *gone) {
    for (size_t i = 0; i < gone->count; i++)
        if (gone->at[i] >= peers)
            return false;
    return true;
}

bool kl_note_is_sound(const kl_node *n, uint32_t from, const kl_note *note) {
    uint32_t peers = note->peers > n->tree.peers ? note->peers : n->tree.peers;
    return from < n->most && note->peers <= n->most && is_for_root(n, from, note) &&
           are_standings(n, peers, &note->standings) && are_gone(peers, &note->gone) &&
           is_value(n, note->value) && is_value(n, note->held_value);
}
