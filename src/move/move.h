/* Door of room move: a plan becomes messages; what that cost comes back as a receipt, which is the next
 * measurement. */
#ifndef KL_MOVE_H
#define KL_MOVE_H

#include "move/wire.h"
#include "transport/transport.h"

/* What moving a chunk cost. */
typedef struct kl_receipt {
    uint64_t bytes;
} kl_receipt;

/* Send the tasks of `head` to `peer` with their weights (scale·weights[lo …] of the run, or NULL) and inputs
 * (likewise). `scratch` is the caller's, reused from call to call. KILTER_ERR_PEER when the peer is gone;
 * KILTER_ERR_MEMORY. */
kilter_status kl_move_chunk(kl_transport *transport, kl_peer peer, const kl_chunk_head *head,
                            const double *weights, double scale, const kilter_bytes *inputs,
                            kl_buffer *scratch, kl_receipt *receipt, kilter_error *error);

#endif
