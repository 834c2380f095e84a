/* Door of room move: turn plans into messages. */
#ifndef KL_MOVE_H
#define KL_MOVE_H

#include "move/wire.h"
#include "transport/transport.h"

/* Inputs and weights of a run's tasks, for the messages of its chunks. */
typedef struct kl_payload {
    const kilter_bytes *inputs; /* [tasks]; NULL: the tasks have no inputs */
    const double *weights;      /* likewise; multiplied by `scale` when sent */
    double scale;
    kl_buffer *scratch; /* memory reused in each call */
} kl_payload;

/* Send the tasks of `head` to `peer` with their inputs and weights. *bytes gets the message's size.
 * KILTER_ERR_PEER: the peer is gone; KILTER_ERR_MEMORY. */
kilter_status kl_move_chunk(kl_transport *transport, kl_peer peer, const kl_chunk_head *head,
                            const kl_payload *payload, uint64_t *bytes, kilter_error *error);

#endif
