/* Public header of the folder move, which turns planned chunks into messages. */
#ifndef KL_MOVE_H
#define KL_MOVE_H

#include "move/wire.h"
#include "transport/transport.h"

/* Inputs and weights of a run's tasks, which are sent with its chunks. */
typedef struct kl_payload {
    const kilter_bytes *inputs; /* inputs[0 … tasks−1]; NULL: the tasks have no inputs */
    const double *weights; /* weights[0 … tasks−1], which are multiplied by `scale` when sent; NULL: the tasks
                              have no weights */
    double scale;
    kl_buffer *scratch; /* buffer for the message; its memory is used again for the next message */
} kl_payload;

/* Send the tasks of `head` to `peer` with their inputs and weights, and set *bytes to the size of the
 * message. KILTER_ERR_PEER: the peer has disconnected; KILTER_ERR_MEMORY: memory ran out. */
kilter_status kl_move_chunk(kl_transport *transport, kl_peer peer, const kl_chunk_head *head,
                            const kl_payload *payload, uint64_t *bytes, kilter_error *error);

#endif
