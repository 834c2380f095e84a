#include "transport/zmq_peers.h"

#include <stdlib.h>

static void clear_slot(kl_zmq_slot *slot, bool ended) {
    kl_buffer_free(&slot->parts);
    kl_arena_close(slot->arena, ended);
    slot->arena = NULL;
}

void kl_zmq_peers_free(kl_zmq_peers *peers) {
    for (size_t i = 0; i < peers->slot_count; i++)
        if (peers->slots[i].standing != KL_ZMQ_UNKNOWN)
            clear_slot(&peers->slots[i], false);
    free(peers->slots);
    free(peers->connections);
    free(peers->cut);
    free(peers->rivals);
    *peers = (kl_zmq_peers){0};
}

/* Return the slot of the peer `id`, or the free slot where this peer must be inserted. */
static kl_zmq_slot *slot_of(const kl_zmq_peers *peers, uint32_t id) {
    size_t mask = peers->slot_count - 1;
    size_t i = kl_mix64(id) & mask;
    while (peers->slots[i].standing != KL_ZMQ_UNKNOWN && peers->slots[i].id != id)
        i = (i + 1) & mask;
    return &peers->slots[i];
}

static bool reserve_slot(kl_zmq_peers *peers) {
    if (2 * (peers->used + 1) <= peers->slot_count)
        return true;
    kl_zmq_peers more = {.slot_count = peers->slot_count ? 2 * peers->slot_count : 16};
    more.slots = calloc(more.slot_count, sizeof *more.slots);
    if (!more.slots)
        return false;
    for (size_t i = 0; i < peers->slot_count; i++)
        if (peers->slots[i].standing != KL_ZMQ_UNKNOWN)
            *slot_of(&more, peers->slots[i].id) = peers->slots[i];
    free(peers->slots);
    peers->slots = more.slots;
    peers->slot_count = more.slot_count;
    return true;
}

/* Free a slot of the hash table. Insert the entries after it again, because a collision may have moved them
 * to a later slot. */
static void remove_slot(kl_zmq_peers *peers, kl_zmq_slot *slot) {
    size_t mask = peers->slot_count - 1;
    size_t i = (size_t)(slot - peers->slots);
    clear_slot(slot, false);
    slot->standing = KL_ZMQ_UNKNOWN;
    peers->used--;
    while (peers->slots[i = (i + 1) & mask].standing != KL_ZMQ_UNKNOWN) {
        kl_zmq_slot moved = peers->slots[i];
        peers->slots[i].standing = KL_ZMQ_UNKNOWN;
        *slot_of(peers, moved.id) = moved;
    }
}

kl_zmq_standing kl_zmq_peers_get(const kl_zmq_peers *peers, uint32_t id) {
    return peers->slot_count ? slot_of(peers, id)->standing : KL_ZMQ_UNKNOWN;
}

kl_zmq_slot *kl_zmq_peers_slot(const kl_zmq_peers *peers, uint32_t id) {
    return slot_of(peers, id);
}

static void cut(kl_zmq_peers *peers, uint32_t id) {
    uint32_t *cut = kl_array_grow(peers->cut, &peers->cut_capacity, peers->cut_count + 1, sizeof *cut);
    if (cut) {
        peers->cut = cut;
        cut[peers->cut_count++] = id;
    }
    peers->failed |= !cut;
}

static kl_zmq_connection *connection_of(const kl_zmq_peers *peers, int fd) {
    return fd >= 0 && (size_t)fd < peers->connection_count ? &peers->connections[fd] : NULL;
}

void kl_zmq_peers_add(kl_zmq_peers *peers, uint32_t id, kl_zmq_standing standing, int fd, bool reachable) {
    if (!reserve_slot(peers)) {
        peers->failed = true;
        return;
    }
    *slot_of(peers, id) = (kl_zmq_slot){.id = id, .standing = standing};
    peers->used++;
    peers->live += standing == KL_ZMQ_LIVE;
    kl_zmq_connection *c = connection_of(peers, fd);
    if (!reachable || !c || !c->open) {
        cut(peers, id);
    } else if (c->has_peer) {
        kl_zmq_rival *rivals =
            kl_array_grow(peers->rivals, &peers->rival_capacity, peers->rival_count + 1, sizeof *rivals);
        peers->failed |= !rivals;
        if (rivals) {
            peers->rivals = rivals;
            rivals[peers->rival_count++] = (kl_zmq_rival){.id = id, .fd = fd};
        }
    } else {
        c->has_peer = true;
        c->peer = id;
    }
}

void kl_zmq_peers_ignore(kl_zmq_peers *peers, uint32_t id, bool ended) {
    if (kl_zmq_peers_get(peers, id) != KL_ZMQ_LIVE)
        return;
    slot_of(peers, id)->standing = KL_ZMQ_IGNORED;
    clear_slot(slot_of(peers, id), ended);
    peers->live--;
}

void kl_zmq_peers_opened(kl_zmq_peers *peers, int fd) {
    if (fd < 0)
        return;
    if ((size_t)fd >= peers->connection_count) {
        size_t count = 2 * (size_t)fd + 16;
        kl_zmq_connection *more = realloc(peers->connections, count * sizeof *more);
        if (!more) {
            peers->failed = true;
            return;
        }
        for (size_t i = peers->connection_count; i < count; i++)
            more[i] = (kl_zmq_connection){0};
        peers->connections = more;
        peers->connection_count = count;
    }
    peers->connections[fd] = (kl_zmq_connection){.open = true};
}

void kl_zmq_peers_closed(kl_zmq_peers *peers, int fd) {
    kl_zmq_connection *c = connection_of(peers, fd);
    if (!c || !c->open)
        return;
    if (c->has_peer)
        cut(peers, c->peer);
    *c = (kl_zmq_connection){0};
    size_t kept = 0; /* cut the rivals for this connection, too, because it is closed */
    for (size_t i = 0; i < peers->rival_count; i++)
        if (peers->rivals[i].fd == fd)
            cut(peers, peers->rivals[i].id);
        else
            peers->rivals[kept++] = peers->rivals[i];
    peers->rival_count = kept;
}

void kl_zmq_peers_settle(kl_zmq_peers *peers, bool (*reachable)(void *self, uint32_t id), void *self) {
    size_t kept = 0;
    for (size_t i = 0; i < peers->rival_count; i++) {
        kl_zmq_rival rival = peers->rivals[i];
        kl_zmq_connection *c = connection_of(peers, rival.fd);
        if (!reachable(self, rival.id)) {
            cut(peers, rival.id);
        } else if (!reachable(self, c->peer)) {
            cut(peers, c->peer);
            c->peer = rival.id;
        } else {
            peers->rivals[kept++] = rival;
        }
    }
    peers->rival_count = kept;
}

bool kl_zmq_peers_forget_cut(kl_zmq_peers *peers, uint32_t *id, kl_zmq_standing *standing) {
    if (!peers->cut_count)
        return false;
    *id = peers->cut[--peers->cut_count];
    kl_zmq_slot *slot = slot_of(peers, *id);
    *standing = slot->standing;
    peers->live -= slot->standing == KL_ZMQ_LIVE;
    if (slot->standing != KL_ZMQ_UNKNOWN)
        remove_slot(peers, slot);
    return true;
}
