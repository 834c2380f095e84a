#include "move/move.h"

kilter_status kl_move_chunk(kl_transport *transport, kl_peer peer, const kl_chunk_head *head,
                            const double *weights, double scale, const kilter_bytes *inputs,
                            kl_buffer *scratch, kl_receipt *receipt, kilter_error *error) {
    kl_buffer_clear(scratch);
    kl_chunk_head sent = *head;
    sent.weighted = weights != NULL;
    sent.inputs = inputs != NULL;
    kl_wire_put_chunk(scratch, &sent);
    for (uint64_t i = 0; weights && i < head->count; i++)
        kl_put_f64(scratch, scale * weights[head->lo + i]);
    for (uint64_t i = 0; inputs && i < head->count; i++)
        kl_put_span(scratch, inputs[head->lo + i].data, inputs[head->lo + i].size);
    kilter_status status = kl_send(transport, peer, scratch, error);
    if (status == KILTER_OK)
        receipt->bytes = scratch->size;
    return status;
}
