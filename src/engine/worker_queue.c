/* The worker's queue: chunks and shared data in order of arrival. */
#include <stdlib.h>

#include "engine/worker_private.h"

void kl_queue_open(queue *q) {
    *q = (queue){.end = &q->first};
}

void kl_queue_put(queue *q, queued *item, kl_message *message) {
    item->message = *message;
    *message = (kl_message){0};
    q->rested = q->rested || !q->first;
    *q->end = item;
    q->end = &item->next;
}

void kl_queue_remove(queue *q, queued **place) {
    queued *gone = *place;
    *place = gone->next;
    if (!*place)
        q->end = place;
    kl_message_release(&gone->message);
    free(gone);
}

void kl_queue_clear(queue *q) {
    while (q->first)
        kl_queue_remove(q, &q->first);
    kl_queue_open(q);
}

queued **kl_queue_find(queue *q, uint64_t chunk) {
    queued **place = &q->first;
    while (*place && ((*place)->is_shared || (*place)->head.chunk != chunk))
        place = &(*place)->next;
    return place;
}
