#include "move/move.h"

/* Return an upper limit for the bytes of the message that holds this chunk. */
static size_t chunk_bytes(const kl_chunk_head *head, const kilter_bytes *inputs) {
    size_t bytes = sizeof *head + (size_t)head->count * (sizeof(double) + sizeof(uint32_t));
    for (uint64_t i = 0; i < head->count; i++)
        bytes += inputs[head->lo + i].size;
    return bytes;
}

kilter_status kl_move_chunk(kl_transport *transport, kl_peer peer, const kl_chunk_head *head,
                            const kl_payload *payload, uint64_t *bytes, kilter_error *error) {
    const double *weights = payload->weights;
    const kilter_bytes *inputs = payload->inputs;
    kl_buffer lent = {0}, *out = payload->scratch;
    kl_chunk_head sent = *head;
    sent.weighted = weights != NULL;
    sent.inputs = inputs != NULL;
    if (inputs)
        kl_lend(transport, peer, chunk_bytes(&sent, inputs), &lent);
    if (lent.borrowed)
        out = &lent;
    kl_buffer_clear(out);
    kl_wire_put_chunk(out, &sent);
    for (uint64_t i = 0; weights && i < head->count; i++)
        kl_put_f64(out, payload->scale * weights[head->lo + i]);
    for (uint64_t i = 0; inputs && i < head->count; i++)
        kl_put_span(out, inputs[head->lo + i].data, inputs[head->lo + i].size);
    kilter_status status = kl_send(transport, peer, out, error);
    if (status == KILTER_OK)
        *bytes = out->size;
    kl_buffer_free(&lent);
    return status;
}
