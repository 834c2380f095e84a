/* Messages from a peer to other peers. The peer gets the addresses of other peers from the master. Its
 * messages then go to these peers directly. */
#include <stdlib.h>
#include <string.h>

#include "engine/worker_private.h"

static kilter_status no_memory(kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "sending messages to other workers: memory ran out");
}

static mate *mate_at(mates *m, uint32_t number) {
    if (number >= KL_PEERS_MOST)
        return NULL;
    if (number >= m->count) {
        mate *list = kl_array_grow(m->list, &m->room, (uint64_t)number + 1, sizeof *list);
        if (!list)
            return NULL;
        m->list = list;
        for (; m->count <= number; m->count++)
            list[m->count] = (mate){.worker = UINT32_MAX};
    }
    return &m->list[number];
}

/* Store the connection to a worker for later runs. false: memory ran out. */
static bool know(mates *m, uint32_t worker, kl_peer peer) {
    if (worker >= KL_PEERS_MOST)
        return false;
    if (worker >= m->known_count) {
        uint64_t count = 2 * (uint64_t)worker + 16;
        kl_peer *known = realloc(m->known, count * sizeof *known);
        if (!known)
            return false;
        memset(known + m->known_count, 0, (count - m->known_count) * sizeof *known);
        m->known = known;
        m->known_count = count;
    }
    if (m->known[worker] == KL_NO_PEER)
        m->known[worker] = peer;
    return true;
}

/* Send a message. It is no error if the worker is gone, because an event will report that. */
static kilter_status send(kl_worker *w, kl_peer peer, const void *data, size_t size, kilter_error *error) {
    kilter_status status = w->transport->ops->send(w->transport, peer, data, size, error);
    return status == KILTER_ERR_PEER ? KILTER_OK : status;
}

static kilter_status send_waiting(kl_worker *w, mate *one, kilter_error *error) {
    kl_reader r = kl_reader_of(one->waiting.data, one->waiting.size);
    kilter_status status = KILTER_OK;
    while (status == KILTER_OK && r.at < r.size) {
        size_t size;
        const uint8_t *bytes = kl_get_span(&r, &size);
        status = send(w, one->peer, bytes, size, error);
    }
    kl_buffer_free(&one->waiting);
    return status;
}

static kilter_status ask_where(kl_worker *w, uint32_t number, kilter_error *error) {
    kl_buffer out = {0};
    kl_wire_put_where(&out, KL_WHERE, &(kl_where){.run = w->peers->run.run, .number = number});
    return kl_worker_post(w, &out, error);
}

kilter_status kl_mates_send(kl_worker *w, uint32_t number, const kl_buffer *bytes, kilter_error *error) {
    mate *one = mate_at(&w->peers->mates, number);
    if (!one)
        return no_memory(error);
    if (one->gone)
        return KILTER_OK;
    if (one->peer != KL_NO_PEER)
        return send(w, one->peer, bytes->data, bytes->size, error);
    kl_put_span(&one->waiting, bytes->data, bytes->size);
    if (one->waiting.failed)
        return no_memory(error);
    bool asks = !one->asked;
    one->asked = true;
    return asks ? ask_where(w, number, error) : KILTER_OK;
}

kilter_status kl_mates_heard(kl_worker *w, const kl_note_head *head, kl_peer peer, kilter_error *error) {
    mates *m = &w->peers->mates;
    mate *one = mate_at(m, head->from);
    if (!one || !know(m, head->worker, peer))
        return no_memory(error);
    one->worker = head->worker;
    if (one->gone || one->peer != KL_NO_PEER)
        return KILTER_OK;
    one->peer = m->known[head->worker];
    return send_waiting(w, one, error);
}

kilter_status kl_mates_found(kl_worker *w, const kl_where *where, bool *gone, kilter_error *error) {
    mates *m = &w->peers->mates;
    mate *one = mate_at(m, where->number);
    kilter_status status = KILTER_OK;
    if (!one || !know(m, where->worker, KL_NO_PEER))
        return no_memory(error);
    one->worker = where->worker;
    *gone = !*where->address && !one->gone;
    one->gone |= *gone;
    if (one->gone || one->peer != KL_NO_PEER)
        return KILTER_OK;
    one->peer = m->known[where->worker];
    if (one->peer == KL_NO_PEER) {
        status = kl_reach(w->transport, where->address, &one->peer, error);
        m->known[where->worker] = status == KILTER_OK ? one->peer : KL_NO_PEER;
    }
    return status == KILTER_OK ? send_waiting(w, one, error) : status;
}

uint32_t kl_mates_lose(mates *m, kl_peer peer) {
    for (uint64_t i = 0; i < m->known_count; i++)
        if (m->known[i] == peer)
            m->known[i] = KL_NO_PEER;
    for (uint32_t i = 0; i < m->count; i++)
        if (m->list[i].peer == peer && !m->list[i].gone) {
            m->list[i].gone = true;
            return i;
        }
    return UINT32_MAX;
}

uint32_t kl_mates_lose_worker(kl_worker *w, uint64_t worker) {
    mates *m = &w->peers->mates;
    kl_peer peer = worker < m->known_count ? m->known[worker] : KL_NO_PEER;
    if (peer != KL_NO_PEER) {
        kl_drop(w->transport, peer);
        m->known[worker] = KL_NO_PEER;
    }
    for (uint32_t i = 0; i < m->count; i++)
        if (m->list[i].worker == worker && !m->list[i].gone) {
            m->list[i].gone = true;
            return i;
        }
    return UINT32_MAX;
}

void kl_mates_clear(mates *m) {
    for (uint64_t i = 0; i < m->count; i++)
        kl_buffer_free(&m->list[i].waiting);
    m->count = 0;
}

void kl_mates_free(mates *m) {
    kl_mates_clear(m);
    free(m->list);
    free(m->known);
    *m = (mates){0};
}
