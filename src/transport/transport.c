#include "transport/transport.h"

#include <math.h>
#include <stdlib.h>

#include "transport/transport_private.h"

void kl_message_release(kl_message *message) {
    if (message->release)
        message->release(message->owner);
    *message = (kl_message){0};
}

static kl_event *at(const kl_event_queue *queue, size_t i) {
    return &queue->ring[(queue->first + i) % queue->capacity];
}

static bool grow(kl_event_queue *queue) {
    size_t capacity = queue->capacity ? 2 * queue->capacity : 16;
    kl_event *ring = malloc(capacity * sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = 0; i < queue->count; i++)
        ring[i] = *at(queue, i);
    free(queue->ring);
    queue->ring = ring;
    queue->capacity = capacity;
    queue->first = 0;
    return true;
}

bool kl_event_queue_push(kl_event_queue *queue, const kl_event *event) {
    if (queue->count == queue->capacity && !grow(queue)) {
        kl_message lost = event->message;
        kl_message_release(&lost);
        return false;
    }
    *at(queue, queue->count++) = *event;
    return true;
}

bool kl_event_queue_pop(kl_event_queue *queue, kl_event *event) {
    if (!queue->count)
        return false;
    *event = *at(queue, 0);
    queue->first = (queue->first + 1) % queue->capacity;
    queue->count--;
    return true;
}

void kl_event_queue_forget(kl_event_queue *queue, kl_peer peer) {
    size_t kept = 0;
    for (size_t i = 0; i < queue->count; i++) {
        if (at(queue, i)->peer == peer)
            kl_message_release(&at(queue, i)->message);
        else
            *at(queue, kept++) = *at(queue, i);
    }
    queue->count = kept;
}

void kl_event_queue_free(kl_event_queue *queue) {
    for (size_t i = 0; i < queue->count; i++)
        kl_message_release(&at(queue, i)->message);
    free(queue->ring);
    *queue = (kl_event_queue){0};
}

kilter_status kl_cannot_send(kilter_status why, kl_peer peer, size_t size, kilter_error *error) {
    return kl_fail(error, why, "sending %zu bytes to peer %llu: %s", size, (unsigned long long)peer,
                   why == KILTER_ERR_PEER ? "the peer is gone; give its work to another peer"
                                          : "memory ran out");
}

double kl_deadline_s(double timeout_s) {
    if (timeout_s < 0)
        return HUGE_VAL;
    return timeout_s > 0 ? kl_monotonic_s() + timeout_s : 0;
}
