/* Deliver results to the user's array and callback, in the order of arrival or of task indices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

void kl_delivery_append(kl_delivery_list *list, kl_delivery_list *taken) {
    if (!taken->first)
        return;
    if (list->first)
        *list->end = taken->first;
    else
        list->first = taken->first;
    list->end = taken->end;
    *taken = (kl_delivery_list){0};
}

void kl_delivery_free(kl_delivery *delivery) {
    kl_message_release(&delivery->message);
    free(delivery);
}

static const char SPOILT[] = "the task's worker changed the message with the result after sending it";

struct kl_deliverer {
    kilter_run run;
    kl_reducer reducer;
    /* index of the task whose result is delivered next, if results are delivered in order of index */
    uint64_t next;
    /* heap of results that must wait until results of earlier tasks are delivered; the result with the
     * smallest `lo` comes first */
    kl_delivery **heap;
    size_t heap_count;
    uint64_t heap_room;
    kl_buffer scratch;
    bool out_of_memory;
    uint64_t given, failed;
    char first_error[256];
    KL_ROOMY(kilter_outcome) outcome;  /* the outcome that the user's callback receives */
    char why[KILTER_ERROR_TEXT_BYTES]; /* text of the outcome's error, if the task failed */
};

kilter_status kl_deliverer_new(const kilter_run *run, kl_reducer reducer, kl_deliverer **deliverer,
                               kilter_error *error) {
    kl_deliverer *d = calloc(1, sizeof *d);
    if (!d)
        return kl_fail(error, KILTER_ERR_MEMORY, "preparing a run: memory ran out");
    d->run = *run;
    d->reducer = reducer;
    /* in a run that combines its results, the callback gets only failed tasks, in any order */
    if (run->reduce)
        d->run.order = KILTER_BY_ARRIVAL;
    *deliverer = d;
    return KILTER_OK;
}

void kl_deliverer_free(kl_deliverer *d) {
    if (!d)
        return;
    for (size_t i = 0; i < d->heap_count; i++)
        kl_delivery_free(d->heap[i]);
    free(d->heap);
    kl_buffer_free(&d->scratch);
    free(d);
}

uint64_t kl_deliverer_given(const kl_deliverer *d) {
    return d->given;
}

uint64_t kl_deliverer_failed(const kl_deliverer *d, char *first, size_t size) {
    snprintf(first, size, "%s", d->first_error);
    return d->failed;
}

/* Return why the task failed. failed: true if the worker reported the failure, and `bytes` is its text;
 * false if the result has a wrong size. */
static const char *explain(kl_deliverer *d, uint64_t index, bool failed, kilter_bytes bytes) {
    char *why = d->why;
    size_t room = sizeof d->why;
    if (failed)
        snprintf(why, room, "%.*s", (int)(bytes.size < room ? bytes.size : room - 1),
                 bytes.size > 0 ? (const char *)bytes.data : "");
    else
        snprintf(why, room, "the task's result has %zu bytes, but results of this run have %zu", bytes.size,
                 d->run.result_bytes);
    if (d->failed++ == 0)
        snprintf(d->first_error, sizeof d->first_error, "task %llu: %.200s", (unsigned long long)index, why);
    return why;
}

/* Combine a result with the combination of all earlier results, which is in the program's memory. */
static void combine(kl_deliverer *d, kilter_bytes bytes) {
    const void *aligned = kl_aligned(&d->scratch, bytes.data, bytes.size);
    if (aligned)
        d->reducer.combine(d->run.results, aligned, bytes.size, d->reducer.user);
    d->out_of_memory |= !aligned;
}

static void give(kl_deliverer *d, uint32_t worker, uint64_t index, bool failed, kilter_bytes bytes) {
    kilter_outcome *outcome = &d->outcome.it;
    *outcome = (kilter_outcome){.index = index, .worker = worker, .result = bytes};
    /* a result that comes from a worker or a record may have a wrong size */
    if (failed || (d->run.results && bytes.size != d->run.result_bytes)) {
        outcome->status = KILTER_ERR_TASK;
        outcome->result = (kilter_bytes){0};
        outcome->error = explain(d, index, failed, bytes);
    } else if (d->run.reduce) {
        combine(d, bytes);
        return;
    } else if (bytes.size > 0) {
        if (d->run.results)
            memcpy((uint8_t *)d->run.results + index * bytes.size, bytes.data, bytes.size);
        if (d->run.done)
            outcome->result.data = kl_aligned(&d->scratch, bytes.data, bytes.size);
        d->out_of_memory |= !outcome->result.data;
    }
    if (d->run.done && !d->out_of_memory)
        d->run.done(outcome, d->run.user);
}

static void give_all(kl_deliverer *d, kl_delivery *delivery) {
    kl_wire_sum sum;
    if (delivery->is_sum) {
        if (kl_wire_read_sum(delivery->results, delivery->size, &sum))
            combine(d, sum.value);
        d->given += delivery->count;
        kl_delivery_free(delivery);
        return;
    }
    kl_reader reader = kl_reader_of(delivery->results, delivery->size);
    for (uint64_t i = 0; i < delivery->count; i++) {
        bool failed;
        kilter_bytes bytes;
        /* a wrong result here means that the worker has changed the message since it was checked */
        if (!kl_wire_next_result(&reader, &failed, &bytes)) {
            failed = true;
            bytes = (kilter_bytes){SPOILT, strlen(SPOILT)};
        }
        give(d, delivery->worker, delivery->lo + i, failed, bytes);
    }
    d->next += delivery->count;
    d->given += delivery->count;
    kl_delivery_free(delivery);
}

static kilter_status push(kl_deliverer *d, kl_delivery *delivery, kilter_error *error) {
    kl_delivery **heap = kl_array_grow(d->heap, &d->heap_room, d->heap_count + 1, sizeof *heap);
    if (!heap)
        return kl_fail(error, KILTER_ERR_MEMORY, "keeping results in order: memory ran out");
    d->heap = heap;
    size_t i = d->heap_count++;
    for (size_t parent; i > 0 && d->heap[parent = (i - 1) / 2]->lo > delivery->lo; i = parent)
        d->heap[i] = d->heap[parent];
    d->heap[i] = delivery;
    return KILTER_OK;
}

static kl_delivery *pop(kl_deliverer *d) {
    kl_delivery *smallest = d->heap[0], *last = d->heap[--d->heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < d->heap_count; i = child) {
        if (child + 1 < d->heap_count && d->heap[child + 1]->lo < d->heap[child]->lo)
            child++;
        if (d->heap[child]->lo >= last->lo)
            break;
        d->heap[i] = d->heap[child];
    }
    d->heap[i] = last;
    return smallest;
}

static kilter_status take(kl_deliverer *d, kl_delivery *delivery, kilter_error *error) {
    if (d->run.order == KILTER_BY_ARRIVAL || delivery->lo == d->next) {
        give_all(d, delivery);
    } else {
        kilter_status status = push(d, delivery, error);
        if (status != KILTER_OK) {
            kl_delivery_free(delivery);
            return status;
        }
    }
    while (d->heap_count > 0 && d->heap[0]->lo == d->next)
        give_all(d, pop(d));
    return d->out_of_memory ? kl_fail(error, KILTER_ERR_MEMORY, "delivering results: memory ran out")
                            : KILTER_OK;
}

kilter_status kl_deliver(kl_deliverer *d, kl_delivery_list list, kilter_error *error) {
    kilter_status status = KILTER_OK;
    while (list.first) {
        kl_delivery *delivery = list.first;
        list.first = delivery->next;
        if (status == KILTER_OK)
            status = take(d, delivery, error);
        else
            kl_delivery_free(delivery);
    }
    return status;
}
