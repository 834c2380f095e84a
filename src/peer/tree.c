/* The tree of peers: find a peer's parent and its living children. */
#include <stdlib.h>
#include <string.h>

#include "peer/peer_private.h"

uint32_t kl_tree_above(uint32_t number) {
    return (number - 1) / KL_PEERS_BELOW;
}

bool kl_tree_under(uint32_t above, uint32_t number) {
    while (number > above)
        number = kl_tree_above(number);
    return number == above;
}

void kl_tree_know(kl_tree *t, uint32_t peers) {
    t->peers = peers > t->peers ? peers : t->peers;
}

void kl_tree_count(kl_tree *t, uint32_t peers) {
    kl_tree_know(t, peers);
    t->counted = peers;
}

bool kl_tree_is_gone(const kl_tree *t, uint32_t number) {
    return number < t->room && t->gone[number / 8] >> number % 8 & 1;
}

uint32_t kl_tree_heir(const kl_tree *t, uint32_t number) {
    bool gone = true;
    for (; number > 0 && gone; gone = kl_tree_is_gone(t, number))
        number = kl_tree_above(number);
    return number;
}

bool kl_tree_lose(kl_tree *t, uint32_t number) {
    if (number >= t->room) {
        uint32_t room = (number > t->peers ? number : t->peers) / 64 * 64 + 64;
        uint8_t *gone = realloc(t->gone, room / 8);
        if (!gone)
            return false;
        memset(gone + t->room / 8, 0, (room - t->room) / 8);
        t->gone = gone;
        t->room = room;
    }
    t->gone_count += !kl_tree_is_gone(t, number);
    t->gone[number / 8] |= (uint8_t)(1 << number % 8);
    return true;
}

/* Find the living children of this peer. A child that is gone is replaced by its own children. A peer of
 * which the root does not know is left out: it must not get tasks, because a census might not reach it. */
bool kl_tree_look(kl_tree *t) {
    bool ok = true;
    kl_numbers todo = {0};
    t->below.count = 0;
    ok = kl_numbers_add(&todo, t->number);
    for (size_t i = 0; i < todo.count && ok; i++) {
        uint64_t first = (uint64_t)todo.at[i] * KL_PEERS_BELOW + 1;
        for (uint64_t c = first; c < first + KL_PEERS_BELOW && c < t->counted && ok; c++)
            ok = kl_numbers_add(kl_tree_is_gone(t, (uint32_t)c) ? &todo : &t->below, (uint32_t)c);
    }
    free(todo.at);
    return ok;
}
