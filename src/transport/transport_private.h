/* What the implementations of room transport share. No other room includes it. */
#ifndef KL_TRANSPORT_PRIVATE_H
#define KL_TRANSPORT_PRIVATE_H

#include "sys/sys.h"
#include "transport/transport.h"

/* Events that wait for poll(), in order. Zeroed is empty. */
typedef struct kl_event_queue {
    kl_event *ring;
    size_t capacity, first, count;
} kl_event_queue;

bool kl_event_queue_push(kl_event_queue *queue, const kl_event *event); /* false: memory ran out */
bool kl_event_queue_pop(kl_event_queue *queue, kl_event *event);
void kl_event_queue_forget(kl_event_queue *queue, kl_peer peer); /* takes out everything of `peer` */
void kl_event_queue_free(kl_event_queue *queue);                 /* leaves it zeroed */

/* When a wait that starts now has to end: HUGE_VAL for a negative timeout. */
double kl_deadline_s(double timeout_s);

#endif
