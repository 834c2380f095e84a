/* Functions that the implementations of transports share. No other folder includes this header. */
#ifndef KL_TRANSPORT_PRIVATE_H
#define KL_TRANSPORT_PRIVATE_H

#include "sys/sys.h"
#include "transport/transport.h"

/* Events that poll() has not returned yet, in order. All zero: empty. */
typedef struct kl_event_queue {
    kl_event *ring;
    size_t capacity, first, count;
} kl_event_queue;

/* Append the event. false: memory ran out, and the event's message is released. */
bool kl_event_queue_push(kl_event_queue *queue, const kl_event *event);
bool kl_event_queue_pop(kl_event_queue *queue, kl_event *event);
void kl_event_queue_forget(kl_event_queue *queue, kl_peer peer); /* Remove all events of `peer`. */
void kl_event_queue_free(kl_event_queue *queue);                 /* Free and zero the queue. */

/* Fill `error` with the reason why `size` bytes cannot be sent to `peer`. `why` is KILTER_ERR_PEER or
 * KILTER_ERR_MEMORY. */
kilter_status kl_cannot_send(kilter_status why, kl_peer peer, size_t size, kilter_error *error);

/* Return the time at which a wait that starts now must end. For a negative timeout, return HUGE_VAL. */
double kl_deadline_s(double timeout_s);

#endif
