/* Handle messages of workers that organise a run as peers, or are about to begin such a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

/* Greatest number of bytes of inputs in one message, unless a single input has more. */
enum { INPUTS_BYTES = 16 << 20 };

static kilter_status on_address(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    kl_reader r = kl_reader_of(message->data, message->size);
    char text[KL_ADDRESS_BYTES];
    bool opens;
    kl_get_u8(&r);
    kl_read_flag(&r, &opens, sizeof opens);
    size_t size = r.size - r.at;
    if (r.bad || !one->reach.asked || one->reach.address || (opens && size >= sizeof text))
        return kl_master_expel(m, one, "sent a malformed address", error);
    kl_copy_label(text, sizeof text, kl_get_bytes(&r, size), size);
    one->reach.address = strdup(opens ? text : "");
    one->reach.why_not = opens ? NULL : strdup(text);
    return one->reach.address
               ? kl_run_peers_ready(m, one, error)
               : kl_fail(error, KILTER_ERR_MEMORY, "taking in a worker's address: memory ran out");
}

static kilter_status on_note(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    kl_note_head head;
    kilter_bytes note;
    if (!kl_wire_get_note(message->data, message->size, &head, &note))
        return kl_master_expel(m, one, "sent a malformed message", error);
    bool current =
        m->peers.root && head.run == m->run.number && head.from == one->part.number && head.from > 0;
    kilter_status status = current ? kl_run_peers_hear(m, one, note, error) : KILTER_OK;
    return status == KILTER_OK && current && m->peers.malformed
               ? kl_master_expel(m, one, "sent a malformed message", error)
               : status;
}

static kilter_status post(kl_master *m, member *one, kl_buffer *out, kilter_error *error) {
    kilter_status status = kl_send(m->transport, one->peer, out, error);
    kl_buffer_free(out);
    return status == KILTER_ERR_PEER ? KILTER_OK : status;
}

static kilter_status on_where(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    kl_where where;
    if (!kl_wire_get_where(message->data, message->size, &where))
        return kl_master_expel(m, one, "sent a malformed message", error);
    if (where.run != m->run.number || where.number == 0 || where.number >= m->peers.count)
        return KILTER_OK;
    const kl_run_peer *peer = &m->peers.list[where.number];
    const member *who = peer->gone ? NULL : kl_master_find(m, peer->peer);
    where.worker = peer->worker;
    snprintf(where.address, sizeof where.address, "%s", who && who->reach.address ? who->reach.address : "");
    kl_buffer out = {0};
    kl_wire_put_where(&out, KL_PEER, &where);
    return post(m, one, &out, error);
}

/* Return the index after the last wanted task whose input fits into the same message. */
static uint64_t fit(const kilter_bytes *inputs, const kl_wanted *wanted) {
    uint64_t bytes = 0, hi = wanted->lo;
    do {
        bytes += inputs[hi++].size;
    } while (hi < wanted->hi && bytes + inputs[hi].size <= INPUTS_BYTES);
    return hi;
}

static kilter_status on_want(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    kl_wanted wanted;
    const kilter_bytes *inputs = m->balance.data.inputs;
    if (!kl_wire_get_wanted(message->data, message->size, &wanted))
        return kl_master_expel(m, one, "sent a malformed message", error);
    if (wanted.run != m->run.number || !m->run.running || !inputs)
        return KILTER_OK;
    if (wanted.hi > m->run.summary.tasks)
        return kl_master_expel(m, one, "asked for inputs of tasks that do not exist", error);
    kl_buffer out = {0};
    wanted.hi = fit(inputs, &wanted);
    kl_wire_put_wanted(&out, KL_INPUTS, &wanted);
    for (uint64_t i = wanted.lo; i < wanted.hi; i++)
        kl_put_span(&out, inputs[i].data, inputs[i].size);
    return post(m, one, &out, error);
}

kilter_status kl_master_on_peer_message(kl_master *m, member *one, const kl_message *message,
                                        kilter_error *error) {
    if (!one->reach.asked)
        return kl_master_expel(m, one, "sent a message of a peer, but is no peer", error);
    switch (kl_wire_type(message->data, message->size)) {
    case KL_ADDRESS:
        return on_address(m, one, message, error);
    case KL_NOTE:
        return on_note(m, one, message, error);
    case KL_WHERE:
        return on_where(m, one, message, error);
    default:
        return on_want(m, one, message, error);
    }
}
