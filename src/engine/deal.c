/* Send a worker its next chunk. If the worker does not have the shared data yet, send them before the chunk.
 */
#include "engine/master_private.h"

kilter_status kl_master_set_shared(kl_master *m, kilter_bytes shared, kilter_error *error) {
    m->shared.sent = shared.size;
    if (!shared.data)
        return KILTER_OK;
    kl_buffer_clear(&m->shared.message);
    kl_wire_put_shared(&m->shared.message, shared.data, shared.size);
    m->balance.shared_hash = kl_hash(shared.data, shared.size, 0);
    if (m->shared.message.failed)
        return kl_fail(error, KILTER_ERR_MEMORY, "keeping %zu bytes of shared data: memory ran out",
                       shared.size);
    m->shared.bytes = shared.size;
    m->shared.generation++;
    return KILTER_OK;
}

kilter_status kl_master_send_shared(kl_master *m, member *one, kilter_error *error) {
    if (one->shared == m->shared.generation)
        return KILTER_OK;
    one->shared = m->shared.generation;
    return kl_send(m->transport, one->peer, &m->shared.message, error);
}

static kilter_status add_chunk(member *one, const kl_chunk *chunk, kilter_error *error) {
    kl_chunk *chunks = kl_array_grow(one->chunks, &one->chunk_room, one->chunk_count + 1, sizeof *chunks);
    if (!chunks)
        return kl_fail(error, KILTER_ERR_MEMORY, "dealing a chunk: memory ran out");
    one->chunks = chunks;
    one->chunks[one->chunk_count++] = *chunk;
    one->nothing_alone = false;
    return KILTER_OK;
}

void kl_master_declare_answer(const kl_master *m) {
    const kl_clock *clock = &m->options.clock;
    if (clock->answer_s > 0)
        clock->spend(clock->self, clock->answer_s);
}

static kl_request request_of(const member *one) {
    return (kl_request){
        .worker = one->worker, .peer = one->peer, .asked_s = one->asked_s, .again = one->held};
}

/* A message could not be sent, because the worker has left. Return success, because the worker's last
 * messages may still come. After them, an event reports that the worker has left. */
static kilter_status wait_for_word(member *one) {
    one->hungry = one->held = false;
    return KILTER_OK;
}

/* Deal a chunk to a worker that has requested one. If there is no chunk for the worker now, it stays in the
 * list of workers that wait for tasks. */
kilter_status kl_master_deal(kl_master *m, member *one, kilter_error *error) {
    const kl_request request = request_of(one);
    kl_chunk chunk;
    bool dealt;
    kilter_status status = kl_master_send_shared(m, one, error);
    if (status == KILTER_OK)
        status = kl_balance_deal(&m->balance, &request, &chunk, &dealt, error);
    if (status == KILTER_ERR_PEER)
        return wait_for_word(one);
    if (status != KILTER_OK)
        return status;
    one->hungry = one->held = !dealt;
    return dealt ? add_chunk(one, &chunk, error) : KILTER_OK;
}

kilter_status kl_master_deal_span(kl_master *m, member *to, kl_span span, double finish_s, kl_chunk *chunk,
                                  kilter_error *error) {
    const kl_request request = request_of(to);
    kilter_status status = kl_master_send_shared(m, to, error);
    *chunk = (kl_chunk){0};
    if (status == KILTER_OK)
        status = kl_balance_deal_span(&m->balance, &request, span, finish_s, chunk, error);
    if (status == KILTER_ERR_PEER) {
        *chunk = (kl_chunk){0};
        return wait_for_word(to);
    }
    if (status != KILTER_OK)
        return status;
    to->hungry = to->held = false;
    return add_chunk(to, chunk, error);
}
