/* Results on their way to the user's callback, in order of arrival or of index. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "farm/farm.h"

/* A segment that waits for those before it; its delivery lives until its last segment is given out. */
typedef struct waiting {
    uint64_t lo;
    uint64_t count;
    size_t at; /* where its results begin in the message */
    kl_delivery *delivery;
} waiting;

struct kl_deliverer {
    kilter_run run;
    uint64_t next; /* BY_INDEX: the task whose result is due */
    waiting *heap; /* smallest lo first */
    size_t heap_count, heap_capacity;
    kl_buffer scratch;
    bool out_of_memory;
    uint64_t failed;
    char first_error[256];
};

kilter_status kl_deliverer_new(const kilter_run *run, kl_deliverer **deliverer, kilter_error *error) {
    kl_deliverer *d = calloc(1, sizeof *d);
    if (!d)
        return kl_fail(error, KILTER_ERR_MEMORY, "preparing a run: memory ran out");
    d->run = *run;
    *deliverer = d;
    return KILTER_OK;
}

/* One segment of the delivery is done with. */
static void let_go(kl_delivery *delivery) {
    if (--delivery->segments == 0)
        kl_delivery_free(delivery);
}

void kl_deliverer_free(kl_deliverer *d) {
    if (!d)
        return;
    for (size_t i = 0; i < d->heap_count; i++)
        let_go(d->heap[i].delivery);
    free(d->heap);
    kl_buffer_free(&d->scratch);
    free(d);
}

uint64_t kl_deliverer_failed(const kl_deliverer *d, char *first, size_t size) {
    snprintf(first, size, "%s", d->first_error);
    return d->failed;
}

static void note_failure(kl_deliverer *d, uint64_t index, const char *why) {
    if (d->failed++ == 0)
        snprintf(d->first_error, sizeof d->first_error, "task %llu: %.200s", (unsigned long long)index, why);
}

static void give(kl_deliverer *d, uint32_t worker, uint64_t index, bool failed, kilter_bytes bytes) {
    char why[KILTER_ERROR_TEXT_BYTES];
    kilter_outcome outcome = {.index = index, .worker = worker, .result = bytes};
    if (failed) {
        snprintf(why, sizeof why, "%.*s", (int)(bytes.size < sizeof why ? bytes.size : sizeof why - 1),
                 (const char *)bytes.data);
        note_failure(d, index, why);
        outcome.status = KILTER_ERR_TASK;
        outcome.result = (kilter_bytes){0};
        outcome.error = why;
    } else if (bytes.size > 0) {
        outcome.result.data = kl_aligned(&d->scratch, bytes.data, bytes.size);
        d->out_of_memory |= !outcome.result.data;
    }
    if (d->run.done && !d->out_of_memory)
        d->run.done(&outcome, d->run.user);
}

static void give_segment(kl_deliverer *d, const waiting *segment) {
    const kl_message *message = &segment->delivery->message;
    kl_reader reader = kl_reader_of(message->data, message->size);
    reader.at = segment->at;
    for (uint64_t i = 0; i < segment->count; i++) {
        bool failed;
        kilter_bytes bytes;
        kl_wire_next_result(&reader, &failed, &bytes);
        give(d, segment->delivery->worker, segment->lo + i, failed, bytes);
    }
    d->next += segment->count;
    let_go(segment->delivery);
}

static kilter_status push(kl_deliverer *d, waiting segment, kilter_error *error) {
    if (d->heap_count == d->heap_capacity) {
        size_t capacity = d->heap_capacity ? 2 * d->heap_capacity : 64;
        waiting *heap = realloc(d->heap, capacity * sizeof *heap);
        if (!heap)
            return kl_fail(error, KILTER_ERR_MEMORY, "keeping results in order: memory ran out");
        d->heap = heap;
        d->heap_capacity = capacity;
    }
    size_t i = d->heap_count++;
    for (size_t parent; i > 0 && d->heap[parent = (i - 1) / 2].lo > segment.lo; i = parent)
        d->heap[i] = d->heap[parent];
    d->heap[i] = segment;
    return KILTER_OK;
}

static waiting pop(kl_deliverer *d) {
    waiting smallest = d->heap[0], last = d->heap[--d->heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < d->heap_count; i = child) {
        if (child + 1 < d->heap_count && d->heap[child + 1].lo < d->heap[child].lo)
            child++;
        if (d->heap[child].lo >= last.lo)
            break;
        d->heap[i] = d->heap[child];
    }
    d->heap[i] = last;
    return smallest;
}

static kilter_status take_segment(kl_deliverer *d, const waiting *segment, kilter_error *error) {
    if (d->run.order == KILTER_BY_ARRIVAL) {
        give_segment(d, segment);
        return KILTER_OK;
    }
    kilter_status status = push(d, *segment, error);
    while (status == KILTER_OK && d->heap_count > 0 && d->heap[0].lo == d->next) {
        waiting due = pop(d);
        give_segment(d, &due);
    }
    if (status != KILTER_OK)
        let_go(segment->delivery);
    return status;
}

static kilter_status take_delivery(kl_deliverer *d, kl_delivery *delivery, kilter_error *error) {
    uint32_t segments = delivery->segments; /* the last one's let_go() frees the delivery */
    kl_reader reader = kl_wire_read_results(delivery->message.data, delivery->message.size);
    kilter_status status = KILTER_OK;
    for (uint32_t i = 0; i < segments; i++) {
        kl_segment s;
        bool failed;
        kilter_bytes bytes;
        kl_wire_next_segment(&reader, &s);
        waiting segment = {.lo = s.lo, .count = s.count, .at = reader.at, .delivery = delivery};
        for (uint64_t k = 0; k < s.count && i + 1 < segments; k++)
            kl_wire_next_result(&reader, &failed, &bytes);
        if (status == KILTER_OK)
            status = take_segment(d, &segment, error);
        else
            let_go(delivery);
    }
    return status;
}

kilter_status kl_deliver(kl_deliverer *d, kl_delivery_list list, kilter_error *error) {
    kilter_status status = KILTER_OK;
    while (list.first) {
        kl_delivery *delivery = list.first;
        list.first = delivery->next;
        if (status == KILTER_OK)
            status = take_delivery(d, delivery, error);
        else
            kl_delivery_free(delivery);
        if (status == KILTER_OK && d->out_of_memory)
            status = kl_fail(error, KILTER_ERR_MEMORY, "delivering results: memory ran out");
    }
    return status;
}
