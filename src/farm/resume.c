/* Results that are kept when the master dies. Results of earlier masters come from the record. New results
 * count only after they are stored in the record. */
#include <stdlib.h>
#include <string.h>

#include "farm/farm_private.h"
#include "move/wire.h"

/* Greatest number of bytes of results that may wait for the disk. While more bytes wait, the master
 * deals no chunk. */
static const size_t UNSTORED_BYTES_MOST = (size_t)64 << 20;

/* --- new results that are being written to the disk --- */

/* Return how many bytes a waiting result adds to the sum that UNSTORED_BYTES_MOST limits. The result's row in
 * the record has fewer bytes. */
static size_t bytes_of(const kl_delivery *delivery) {
    return 2 * sizeof *delivery + delivery->size;
}

/* End the run if the master has finished its part and all results have been stored. Call this with
 * the lock held. */
static void note_end(kilter_farm *f) {
    f->run.ended |= f->run.over && !f->storing.list.first;
}

/* End the run because results cannot be stored. The caller may free the inputs after the run, so the master
 * must deal no more tasks. If there is a service thread, only the service thread sets run.ended, after the
 * master has stopped dealing. */
static void stop_storing(kilter_farm *f, const kilter_error *failure) {
    f->run.failure = *failure;
    f->run.broken = true;
    f->run.ended |= !f->service.threaded;
}

/* Give the first `count` waiting results, which are stored now, to the caller's thread. */
static void on_stored(void *farm, uint64_t count, const kilter_error *failure) {
    kilter_farm *f = farm;
    pthread_mutex_lock(&f->lock);
    for (uint64_t i = 0; i < count; i++) {
        kl_delivery *first = f->storing.list.first;
        f->storing.list.first = first->next;
        f->storing.bytes -= bytes_of(first);
        f->storing.tasks -= first->count;
        first->next = NULL;
        kl_delivery_list stored = {.first = first, .end = &first->next};
        /* if the farm is broken, the run is over, and these results must not reach a later run */
        if (f->run.broken)
            kl_delivery_free(first);
        else
            kl_delivery_append(&f->run.results, &stored);
    }
    if (failure)
        stop_storing(f, failure);
    else
        note_end(f);
    bool look = failure || (f->storing.held && f->storing.bytes <= UNSTORED_BYTES_MOST);
    /* read `closing` with the lock held, because a farm that is being closed may no longer have a transport
     */
    if (look && !f->service.closing)
        kl_transport_wake(f->transport);
    pthread_cond_signal(&f->news);
    pthread_mutex_unlock(&f->lock);
}

static kilter_status check_size(const kl_delivery *delivery, kilter_error *error) {
    if (delivery->size <= KL_TRACE_RESULT_MOST_BYTES)
        return KILTER_OK;
    return kl_fail(error, KILTER_ERR_RANGE,
                   "storing the result of task %llu: with --resume a result has at most %d bytes",
                   (unsigned long long)delivery->lo, KL_TRACE_RESULT_MOST_BYTES);
}

static kilter_status store(kilter_farm *f, kl_delivery_list *list, kilter_error *error) {
    kilter_error problem;
    kilter_status status = KILTER_OK;
    while (list->first) {
        kl_delivery *delivery = list->first;
        list->first = delivery->next;
        delivery->next = NULL;
        if (status == KILTER_OK)
            status = check_size(delivery, &problem);
        if (status != KILTER_OK || f->run.broken) {
            kl_delivery_free(delivery);
            continue;
        }
        f->storing.bytes += bytes_of(delivery);
        f->storing.tasks += delivery->count;
        kl_delivery_append(&f->storing.list, &(kl_delivery_list){.first = delivery, .end = &delivery->next});
        kl_trace_result(f->record.trace,
                        &(kl_trace_result_row){.call = f->storing.calls - 1,
                                               .lo = delivery->lo,
                                               .count = delivery->count,
                                               .worker = delivery->worker,
                                               .results = {delivery->results, delivery->size}});
    }
    if (status == KILTER_OK)
        return KILTER_OK;
    stop_storing(f, &problem);
    return kl_fail(error, status, "%s", problem.text);
}

kilter_status kl_farm_take_results(kilter_farm *f, kl_delivery_list *list, kilter_error *error) {
    if (f->settings.resume && f->record.trace)
        return store(f, list, error);
    kl_delivery_append(&f->run.results, list);
    return KILTER_OK;
}

bool kl_storing_holds(kl_storing *s) {
    s->held = s->bytes > UNSTORED_BYTES_MOST;
    return s->held;
}

void kl_farm_note_over(kilter_farm *f) {
    f->run.over = true;
    note_end(f);
    if (f->storing.list.first)
        kl_trace_hurry(f->record.trace);
}

/* --- opening the record --- */

kilter_status kl_farm_open_stored(kilter_farm *f, const kl_trace_run_row *row, kl_trace **trace,
                                  kilter_error *error) {
    kilter_error problem;
    kilter_status status = kl_trace_resume(f->settings.resume, row, on_stored, f, trace, &problem);
    return status == KILTER_OK ? KILTER_OK : kl_fail(error, status, "--resume: %s", problem.text);
}

/* --- results of earlier masters --- */

static uint64_t hash_inputs(const kilter_bytes *inputs, uint64_t tasks) {
    uint64_t hash = 0;
    for (uint64_t i = 0; inputs && i < tasks; i++)
        hash = kl_hash(inputs[i].data, inputs[i].size, hash + 1);
    return hash;
}

static uint64_t hash_weights(const double *weights, uint64_t tasks) {
    return weights ? kl_hash(weights, (size_t)tasks * sizeof *weights, 0) : 0;
}

static kilter_status differs(const kl_known *known, kilter_error *error) {
    return kl_fail(
        error, KILTER_ERR_USAGE,
        "--resume: run %llu grows differently from the stored run, after %llu tasks; additions must depend "
        "only on earlier results and their order; correct the program, or name another file",
        (unsigned long long)known->call, (unsigned long long)known->tasks);
}

static bool is_taken(const kl_known *known, uint64_t task) {
    return known->taken[task / 8] >> task % 8 & 1;
}

/* Deliver the results in a row of the record. Do nothing if there is no deliverer, or no task in the row. */
static kilter_status deliver(kl_deliverer *deliverer, const kl_trace_result_row *piece, bool is_sum,
                             kilter_error *error) {
    if (!deliverer || piece->count == 0)
        return KILTER_OK;
    size_t size = piece->results.size;
    kl_delivery *delivery = malloc(sizeof *delivery + size);
    if (!delivery)
        return kl_fail(error, KILTER_ERR_MEMORY, "delivering stored results: memory ran out");
    *delivery = (kl_delivery){.lo = piece->lo,
                              .count = piece->count,
                              .size = size,
                              .worker = piece->worker,
                              .is_sum = is_sum,
                              .results = delivery->copy};
    memcpy(delivery->copy, piece->results.data, size);
    return kl_deliver(deliverer, (kl_delivery_list){.first = delivery, .end = &delivery->next}, error);
}

/* Deliver a sum of results from the record. None of the sum's tasks can have been counted before, because
 * masters store each task once. */
static kilter_status take_sum(kl_known *known, const kl_trace_result_row *row, const kl_wire_sum *sum,
                              kl_deliverer *deliverer, kilter_error *error) {
    uint64_t count = 0;
    bool fits = known->reduces;
    for (uint32_t i = 0; i < sum->spans && fits; i++) {
        kl_span span = kl_wire_sum_span(sum, i);
        fits = span.hi <= known->tasks;
        for (uint64_t task = span.lo; task < span.hi && fits; task++, count++) {
            fits = !is_taken(known, task);
            known->taken[task / 8] |= (uint8_t)(1u << task % 8);
        }
    }
    if (fits && count == row->count)
        return deliver(deliverer, row, true, error);
    if (!known->reduces)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--resume: run %llu combined its results in an earlier start, but not in this one; "
                       "start the program in the same way, or name another file",
                       (unsigned long long)known->call);
    return kl_fail(error, KILTER_ERR_RECORD,
                   "reading stored results: the tasks of a sum from task %llu on are malformed",
                   (unsigned long long)row->lo);
}

/* Deliver the results of a row that were not taken yet, in blocks of consecutive tasks. Leave out failed
 * tasks, because they are done again. Without a deliverer, only mark the results as taken. */
static kilter_status take_row(kl_known *known, const kl_trace_result_row *row, kl_deliverer *deliverer,
                              kilter_error *error) {
    kl_reader reader = kl_reader_of(row->results.data, row->results.size);
    kl_trace_result_row piece = {.lo = row->lo, .worker = row->worker};
    kilter_status status = KILTER_OK;
    kl_wire_sum sum;
    if (kl_wire_read_sum(row->results.data, row->results.size, &sum))
        return take_sum(known, row, &sum, deliverer, error);
    if (deliverer && row->lo + row->count > known->tasks)
        return differs(known, error);
    size_t from = 0;
    for (uint64_t task = row->lo; task < row->lo + row->count && status == KILTER_OK; task++) {
        bool failed;
        kilter_bytes bytes;
        size_t at = reader.at;
        if (!kl_wire_next_result(&reader, &failed, &bytes))
            return kl_fail(error, KILTER_ERR_RECORD,
                           "reading stored results: the results of task %llu are malformed",
                           (unsigned long long)task);
        if (!failed && !is_taken(known, task)) {
            known->taken[task / 8] |= (uint8_t)(1u << task % 8);
            piece.count++;
            continue;
        }
        piece.results = (kilter_bytes){reader.data + from, at - from};
        status = deliver(deliverer, &piece, false, error);
        piece = (kl_trace_result_row){.lo = task + 1, .worker = row->worker};
        from = reader.at;
    }
    piece.results = (kilter_bytes){reader.data + from, reader.at - from};
    return status == KILTER_OK ? deliver(deliverer, &piece, false, error) : status;
}

static kilter_status take_all(kl_known *known, kl_deliverer *deliverer, kilter_error *error) {
    kl_trace_result_row row;
    for (bool got;;) {
        kilter_status status = kl_stored_next(known->rows, &row, &got, error);
        if (status == KILTER_OK && got)
            status = take_row(known, &row, deliverer, error);
        if (status != KILTER_OK || !got)
            return status;
    }
}

static kilter_status add_span(kl_known *known, uint64_t lo, uint64_t hi, kilter_error *error) {
    kl_span *spans = kl_array_grow(known->spans, &known->room, known->count + 1, sizeof *spans);
    if (!spans)
        return kl_fail(error, KILTER_ERR_MEMORY, "looking for stored results: memory ran out");
    known->spans = spans;
    known->spans[known->count++] = (kl_span){lo, hi};
    return KILTER_OK;
}

static kilter_status add_spans(kl_known *known, kl_span tasks, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (uint64_t task = tasks.lo, lo = tasks.lo; task <= tasks.hi && status == KILTER_OK; task++)
        if (task == tasks.hi || !is_taken(known, task)) {
            if (task > lo)
                status = add_span(known, lo, task, error);
            lo = task + 1;
        }
    return status;
}

/* Read and check all stored results before the first one is delivered, so that no result of a damaged
 * record is used. */
static kilter_status find(kl_known *known, const char *path, const kl_trace_call *call, kilter_error *error) {
    kilter_status status = kl_stored_open(path, call, &known->rows, error);
    if (status == KILTER_OK)
        status = kl_stored_additions(known->rows, &known->additions, &known->addition_count, error);
    if (status != KILTER_OK)
        return status;
    uint64_t tasks = call->tasks;
    for (size_t i = 0; i < known->addition_count; i++)
        tasks += known->additions[i].tasks;
    size_t bytes = (size_t)(tasks / 8 + 1);
    known->taken = calloc(1, bytes);
    if (!known->taken)
        return kl_fail(error, KILTER_ERR_MEMORY, "looking for stored results: memory ran out");
    status = take_all(known, NULL, error);
    if (status == KILTER_OK)
        status = add_spans(known, (kl_span){0, call->tasks}, error);
    known->first = known->count;
    if (status == KILTER_OK)
        status = add_spans(known, (kl_span){call->tasks, tasks}, error);
    memset(known->taken, 0, bytes);
    return status;
}

kilter_status kl_farm_note_addition(kilter_farm *f, const kl_addition *added, kilter_error *error) {
    kl_known *known = f->run.known;
    if (!f->settings.resume)
        return KILTER_OK;
    const kl_trace_addition now = {.call = known->call,
                                   .lo = known->tasks,
                                   .tasks = added->count,
                                   .inputs = hash_inputs(added->inputs, added->count),
                                   .weights = hash_weights(added->weights, added->count)};
    if (known->repeated == known->addition_count) {
        kl_trace_call_grows(f->record.trace, &now);
        return KILTER_OK;
    }
    const kl_trace_addition *then = &known->additions[known->repeated++];
    bool same = then->lo == now.lo && then->tasks == now.tasks && then->inputs == now.inputs &&
                then->weights == now.weights;
    return same ? KILTER_OK : differs(known, error);
}

kilter_status kl_farm_look_up(kilter_farm *f, const kilter_run *run, kl_known *known, kilter_error *error) {
    if (!f->settings.resume)
        return KILTER_OK;
    if (run->shared.data)
        f->storing.shared_hash = kl_hash(run->shared.data, run->shared.size, 0);
    const kl_trace_call call = {.call = f->storing.calls++,
                                .tasks = run->tasks,
                                .inputs = hash_inputs(run->inputs, run->tasks),
                                .weights = hash_weights(run->weights, run->tasks),
                                .shared = f->storing.shared_hash,
                                .in_order = run->grows || run->reduce,
                                .anyway = f->settings.options.resume_anyway};
    known->reduces = run->reduce;
    known->call = call.call;
    kilter_status status = KILTER_OK;
    if (call.call < kl_trace_calls(f->record.trace))
        status = find(known, f->settings.resume, &call, error);
    if (status == KILTER_OK)
        kl_trace_call_begins(f->record.trace, &call);
    return status;
}

bool kl_known_all(const kl_known *known, uint64_t tasks) {
    return known->first == 1 && known->spans[0].lo == 0 && known->spans[0].hi == tasks;
}

kilter_status kl_known_deliver(kl_known *known, kl_deliverer *deliverer, kilter_error *error) {
    kilter_status status = known->rows ? take_all(known, deliverer, error) : KILTER_OK;
    kl_stored_free(known->rows);
    known->rows = NULL;
    return status;
}

void kl_known_free(kl_known *known) {
    kl_stored_free(known->rows);
    free(known->spans);
    free(known->taken);
    free(known->additions);
    *known = (kl_known){0};
}
