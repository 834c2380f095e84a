/* Door of room move: a plan becomes messages; what that cost is the next measurement. */
#ifndef KL_MOVE_H
#define KL_MOVE_H

#include "move/wire.h"
#include "transport/transport.h"

/* What the messages of a run's chunks are made of. */
typedef struct kl_payload {
    const kilter_bytes *inputs; /* of all tasks; NULL: they have none */
    const double *weights;      /* likewise; sent times `scale` */
    double scale;
    kl_buffer *scratch; /* reused from call to call */
} kl_payload;

/* Send the tasks of `head` to `peer` with their inputs and weights; *bytes is the message's size.
 * KILTER_ERR_PEER when the peer is gone; KILTER_ERR_MEMORY. */
kilter_status kl_move_chunk(kl_transport *transport, kl_peer peer, const kl_chunk_head *head,
                            const kl_payload *payload, uint64_t *bytes, kilter_error *error);

#endif
