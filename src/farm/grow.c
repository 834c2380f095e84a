/* Tasks that are added to a run in progress.
 *
 *   the caller's thread     callback ── kilter_farm_add() ── to_add ──▶ service thread ── added
 *
 * The run ends when the callback has received the results of all tasks and has added no more. Only the
 * caller's thread can know this. */
#include <stdlib.h>
#include <string.h>

#include "farm/farm_private.h"
#include "move/wire.h"

/* --- functions for the caller's thread --- */

static kilter_status check(const kilter_farm *f, uint64_t count, const kilter_bytes *inputs,
                           const double *weights, kilter_error *error) {
    uint64_t lo = f->run.known->tasks;
    if (count > INT64_MAX - lo)
        return kl_fail(error, KILTER_ERR_RANGE, "adding %llu tasks to a run of %llu: the sum is too large",
                       (unsigned long long)count, (unsigned long long)lo);
    for (uint64_t i = 0; inputs && i < count; i++)
        if (inputs[i].size > KL_WIRE_MOST_BYTES)
            return kl_fail(error, KILTER_ERR_RANGE,
                           "input of task %llu has %zu bytes: at most %d bytes can be sent",
                           (unsigned long long)(lo + i), inputs[i].size, KL_WIRE_MOST_BYTES);
    return weights ? kl_weights_check(weights, lo, count, error) : KILTER_OK;
}

/* Return whether input `i` is in the same memory as the input before it. If so, one copy is enough
 * for both inputs. */
static bool repeats(const kilter_bytes *inputs, uint64_t i) {
    return i > 0 && inputs[i].data == inputs[i - 1].data && inputs[i].size == inputs[i - 1].size;
}

/* Return the size in bytes of a block that holds copies of the inputs and weights; SIZE_MAX / 2: the block
 * would be too large. */
static size_t bytes_of(uint64_t count, const kilter_bytes *inputs, const double *weights) {
    size_t each = (inputs ? sizeof *inputs : 0) + (weights ? sizeof *weights : 0);
    if (count > (SIZE_MAX / 2 - sizeof(kl_addition)) / (each + 1))
        return SIZE_MAX / 2;
    size_t bytes = sizeof(kl_addition) + (size_t)count * each;
    for (uint64_t i = 0; inputs && i < count; i++)
        if (!repeats(inputs, i))
            bytes = inputs[i].size < SIZE_MAX / 2 - bytes ? bytes + inputs[i].size : SIZE_MAX / 2;
    return bytes;
}

static kl_addition *copy(uint64_t count, const kilter_bytes *inputs, const double *weights) {
    kl_addition *a = malloc(bytes_of(count, inputs, weights));
    if (!a)
        return NULL;
    *a = (kl_addition){.count = count};
    kilter_bytes *own = (kilter_bytes *)(a + 1);
    double *own_weights = (double *)(own + (inputs ? count : 0));
    char *bytes = (char *)(own_weights + (weights ? count : 0));
    if (weights)
        memcpy(own_weights, weights, (size_t)count * sizeof *weights);
    for (uint64_t i = 0; inputs && i < count; i++) {
        if (repeats(inputs, i)) {
            own[i] = own[i - 1];
            continue;
        }
        own[i] = (kilter_bytes){bytes, inputs[i].size};
        if (inputs[i].size > 0)
            memcpy(bytes, inputs[i].data, inputs[i].size);
        bytes += inputs[i].size;
    }
    a->inputs = inputs ? own : NULL;
    a->weights = weights ? own_weights : NULL;
    return a;
}

static void add(kl_additions *list, kl_addition *a) {
    *(list->first ? list->end : &list->first) = a;
    list->end = &a->next;
}

/* Give the added tasks to the service thread. Return the error that has ended the run early, if any. */
static kilter_status hand_over(kilter_farm *f, kl_addition *a, kilter_error *error) {
    pthread_mutex_lock(&f->lock);
    bool first = !f->growth.to_add.first, over = f->run.over || f->run.broken;
    kilter_error failure = f->run.failure;
    if (!over)
        add(&f->growth.to_add, a);
    pthread_mutex_unlock(&f->lock);
    /* count the added tasks even after an error: they are in the record, and the program adds them again at
     * its next start */
    f->run.known->tasks += a->count;
    if (over) {
        free(a);
        return kl_fail(error, failure.status, "adding tasks: the run has ended: %s", failure.text);
    }
    if (first)
        kl_transport_wake(f->transport);
    return KILTER_OK;
}

kilter_status kilter_farm_add(kilter_farm *f, uint64_t count, const kilter_bytes *inputs,
                              const double *weights, kilter_error *error) {
    if (!f->growth.grows)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "adding tasks: no run with `grows` is in progress; add tasks in the callback of such a run");
    if (f->growth.wrong.status != KILTER_OK)
        return kl_fail(error, f->growth.wrong.status, "%s", f->growth.wrong.text);
    if (count == 0)
        return KILTER_OK;
    kilter_status status = check(f, count, inputs, weights, error);
    if (status != KILTER_OK)
        return status;
    kl_addition *a = copy(count, inputs, weights);
    if (!a)
        return kl_fail(error, KILTER_ERR_MEMORY, "adding %llu tasks: memory ran out",
                       (unsigned long long)count);
    status = kl_farm_note_addition(f, a, &f->growth.wrong);
    if (status == KILTER_OK)
        return hand_over(f, a, error);
    free(a);
    return kl_fail(error, status, "%s", f->growth.wrong.text);
}

void kl_farm_note_growth(kilter_farm *f, bool all_taken) {
    pthread_mutex_lock(&f->lock);
    bool ends = f->growth.grows && all_taken && !f->growth.grown;
    f->growth.grown |= ends;
    pthread_mutex_unlock(&f->lock);
    if (ends)
        kl_transport_wake(f->transport);
}

static void free_all(kl_addition *first) {
    while (first) {
        kl_addition *next = first->next;
        free(first);
        first = next;
    }
}

void kl_farm_free_additions(kilter_farm *f) {
    pthread_mutex_lock(&f->lock);
    free_all(f->growth.to_add.first);
    free_all(f->growth.added);
    f->growth.to_add = (kl_additions){0};
    f->growth.added = NULL;
    pthread_mutex_unlock(&f->lock);
}

/* --- functions for the service thread --- */

kl_additions kl_farm_take_additions(kilter_farm *f, bool *last) {
    *last = f->growth.grown && !f->run.over;
    if (f->run.over) /* return nothing, because the caller may be about to free the run */
        return (kl_additions){0};
    kl_additions taken = f->growth.to_add;
    f->growth.to_add = (kl_additions){0};
    return taken;
}

kilter_status kl_farm_grow(kilter_farm *f, kl_additions *additions, bool last, kilter_error *error) {
    if (!additions->first && !last)
        return KILTER_OK;
    const kl_spans done = {f->run.known->spans, f->run.known->count};
    kilter_status status = KILTER_OK;
    for (kl_addition *a = additions->first; a && status == KILTER_OK; a = a->next)
        status = kl_master_grow(f->master, a->count, a->inputs, a->weights, done, error);
    if (status == KILTER_OK && last)
        kl_master_grown(f->master);
    pthread_mutex_lock(&f->lock);
    if (additions->first) {
        *additions->end = f->growth.added;
        f->growth.added = additions->first;
        *additions = (kl_additions){0};
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}
