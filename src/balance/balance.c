/* The control loop of a farm: it measures, models, decides, and moves. */
#include "balance/balance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Greatest number of bytes of inputs and weights in one message, approximately. A larger plan is sent as
 * several chunks. Larger messages would wait at the worker and fill its caches. They would also need memory
 * that was not used before, and new pages of memory cost ten times as much as a copy. */
static const size_t CHUNK_BYTES = (size_t)4 << 20;

kilter_status kl_balance_init(kl_balance *b, const kl_policy *policy, kl_clock clock, kl_transport *transport,
                              kilter_error *error) {
    *b = (kl_balance){.clock = clock, .transport = transport};
    b->dealer = kl_dealer_new(policy, NULL);
    b->snapshot.crew = b->crew = kl_crew_new();
    if (!b->dealer || !b->crew) {
        kl_balance_free(b);
        return kl_fail(error, KILTER_ERR_MEMORY, "preparing policy %s: memory ran out",
                       kl_policy_name(policy));
    }
    kl_dealer_write(b->dealer, NULL); /* there is no record that needs the gains of decisions */
    return KILTER_OK;
}

void kl_balance_free(kl_balance *b) {
    kl_dealer_free(b->dealer);
    kl_grounds_free(b->rows.grounds);
    kl_crew_free(b->crew);
    kl_bag_free(&b->bag);
    kl_ledger_free(&b->ledger);
    kl_buffer_free(&b->buffer);
    free(b->data.own_inputs);
    free(b->data.own_weights);
    free(b->views);
    free(b->places.gone);
    *b = (kl_balance){0};
}

void kl_balance_record(kl_balance *b, kl_trace *trace, double opened_s) {
    kl_grounds_free(b->rows.grounds);
    b->rows = (kl_rows){trace, opened_s, trace ? kl_grounds_new() : NULL};
    kl_dealer_write(b->dealer, b->rows.grounds);
}

kilter_status kl_balance_set_policy(kl_balance *b, const kl_policy *policy, double factor,
                                    kilter_error *error) {
    kl_dealer *dealer = kl_dealer_new(policy, &(kl_policy_settings){.factor = factor});
    if (!dealer)
        return kl_fail(error, KILTER_ERR_MEMORY, "changing to policy %s: memory ran out",
                       kl_policy_name(policy));
    kl_dealer_free(b->dealer);
    b->dealer = dealer;
    kl_dealer_write(dealer, b->rows.grounds);
    return KILTER_OK;
}

/* Store the work of a task in this run. If a task of the last run had another amount of work, convert the
 * workers' times and rates to this run. */
static void take_task_work(kl_balance *b, const kilter_run *run) {
    double task_work = run->tasks > 0 && run->work > 0 ? run->work / (double)run->tasks : b->task_work;
    double factor = b->task_work > 0 && task_work > 0 ? task_work / b->task_work : 1;
    b->task_work = task_work;
    if (factor == 1)
        return;
    for (uint32_t i = 0; i < b->snapshot.slots; i++)
        kl_view_rescale(&b->views[i], factor);
    kl_stat_rescale(&b->snapshot.unit_s, factor);
    b->mean_rate /= factor;
}

/* Write a decision to the record, with the worker's number instead of its place in the array of views. */
static void record(const kl_balance *b, uint64_t chunk, const kl_decision *decision) {
    if (!b->rows.trace)
        return;
    kl_decision d = *decision;
    if (d.subject >= 0)
        d.subject = b->views[d.subject].number;
    kl_trace_decision(b->rows.trace,
                      &(kl_trace_moment){.now_s = b->snapshot.now_s,
                                         .opened_s = b->rows.opened_s,
                                         .run = b->snapshot.run,
                                         .chunk = chunk,
                                         .grounds = kl_grounds_take(b->rows.grounds)},
                      &d);
}

/* Write to the record how many tasks the policy assigned to workers before they asked, and which workers got
 * none. If tasks will be added to the run, leave out the forecast of the run's end. */
static void record_assignment(kl_balance *b, bool grows) {
    kl_assignment a;
    if (!b->rows.trace || !kl_dealer_assignment(b->dealer, &a))
        return;
    a.decision.forecast_s = grows ? 0 : b->snapshot.now_s + a.end_s;
    record(b, UINT64_MAX, &a.decision);
    for (uint32_t i = 0; i < b->snapshot.slots && a.idle > 0; i++)
        if (b->views[i].present) {
            kl_decision d = {.kind = KL_DECIDES_WITHHOLD, .subject = i};
            if (kl_dealer_leaves_out(b->dealer, &b->snapshot, i, d.reason))
                record(b, UINT64_MAX, &d);
        }
}

/* least and greatest work of a run that a program may state, in the unit of weights */
static const double LEAST_WORK = 1e-50, MOST_WORK = 1e50;

kilter_status kl_balance_begin(kl_balance *b, uint64_t number, const kilter_run *run, kl_spans done,
                               kilter_error *error) {
    if (run->work != 0 && !(run->work >= LEAST_WORK && run->work <= MOST_WORK))
        return kl_fail(
            error, KILTER_ERR_RANGE,
            "beginning a run of %llu tasks: its work of %g cannot be used; give a number from %g to %g, or 0",
            (unsigned long long)run->tasks, run->work, LEAST_WORK, MOST_WORK);
    kilter_status status = kl_bag_fill(&b->bag, run->tasks, run->weights, done, error);
    if (status != KILTER_OK)
        return status;
    if (kl_bag_sort(&b->bag, run->series, &b->snapshot) != KILTER_OK ||
        kl_ledger_begin(&b->ledger, run->tasks) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "beginning a run of %llu tasks: memory ran out",
                       (unsigned long long)run->tasks);
    for (size_t i = 0; i < done.count; i++)
        kl_ledger_do(&b->ledger, done.spans[i]);
    kl_snapshot *s = &b->snapshot;
    s->run = number;
    s->began_s = s->now_s = kl_now_s(&b->clock);
    s->tasks = s->left = b->bag.left;
    s->units = s->left_units = b->bag.units;
    b->data.inputs = run->inputs;
    b->data.weights = run->weights;
    b->result_bytes = run->results ? run->result_bytes : 0;
    b->chunks = b->largest = 0;
    b->smallest = UINT64_MAX;
    b->run_unit_s = (kl_stat){0};
    b->observed.count = 0;
    take_task_work(b, run);
    b->snapshot.task_bytes = b->snapshot.result_bytes = 0;
    kl_msgcost_next_window(&b->traffic.message);
    kl_traffic_next_window(&b->traffic);
    kl_views_begin(b->views, s->slots);
    kl_crew_look_again(b->crew, b->views, s->now_s);
    if (kl_dealer_begin(b->dealer, s) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "beginning a run of %llu tasks: memory ran out",
                       (unsigned long long)run->tasks);
    record_assignment(b, run->grows);
    return KILTER_OK;
}

static const kl_snapshot *look(kl_balance *b) {
    kl_snapshot *s = &b->snapshot;
    s->now_s = kl_now_s(&b->clock);
    s->left = b->bag.left;
    s->left_units = b->bag.left_units;
    s->answer_s = b->traffic.answer.mean;
    kl_crew_advance(b->crew, s->now_s);
    return s;
}

kilter_status kl_balance_grow(kl_balance *b, uint64_t count, const kilter_bytes *inputs,
                              const double *weights, kl_spans done, kilter_error *error) {
    kl_snapshot *s = &b->snapshot;
    kl_span added = {b->bag.tasks, b->bag.tasks + count};
    uint64_t left = b->bag.left;
    if (!kl_run_data_add(&b->data, &b->bag, count, inputs, weights) ||
        kl_ledger_grow(&b->ledger, count) != KILTER_OK ||
        kl_bag_grow(&b->bag, count, weights, done) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "adding %llu tasks to a run: memory ran out",
                       (unsigned long long)count);
    for (size_t i = 0; i < done.count; i++) {
        kl_span part = done.spans[i];
        part.lo = part.lo > added.lo ? part.lo : added.lo;
        part.hi = part.hi < added.hi ? part.hi : added.hi;
        if (part.lo < part.hi)
            kl_ledger_do(&b->ledger, part);
    }
    s->tasks += b->bag.left - left;
    s->units = b->bag.units;
    if (kl_dealer_grown(b->dealer, look(b), count) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "adding %llu tasks to a run: memory ran out",
                       (unsigned long long)count);
    return KILTER_OK;
}

/* Shorten the span to the tasks that fit into one message, but to at least one task. */
static kl_span fit_message(const kl_balance *b, kl_span span) {
    size_t each = (b->data.weights ? sizeof(double) : 0) + (b->data.inputs ? sizeof(uint32_t) : 0), bytes = 0;
    for (uint64_t i = span.lo; each > 0 && i < span.hi; i++) {
        bytes += each + (b->data.inputs ? b->data.inputs[i].size : 0);
        if (bytes > CHUNK_BYTES && i > span.lo)
            span.hi = i; /* a smaller span.hi ends the loop */
    }
    return span;
}

static kilter_status send_span(kl_balance *b, const kl_request *request, kl_span span, double finish_s,
                               kl_chunk *chunk, kilter_error *error) {
    *chunk = (kl_chunk){.id = b->next_chunk,
                        .lo = span.lo,
                        .hi = span.hi,
                        .at = span.lo,
                        .worker = request->worker,
                        .units = kl_bag_units(&b->bag, span),
                        .finish_s = finish_s};
    double now_s = kl_now_s(&b->clock);
    kl_chunk_head head = {.run = b->snapshot.run,
                          .chunk = chunk->id,
                          .lo = span.lo,
                          .count = span.hi - span.lo,
                          .shared = b->shared_hash,
                          .result_bytes = b->result_bytes,
                          .lead_s = kl_lead_s(&b->snapshot),
                          .held_s = fmax(0, now_s - request->asked_s),
                          .quiet = kl_traffic_is_quiet(&b->traffic, now_s)};
    kl_payload payload = {b->data.inputs, b->data.weights, b->bag.scale, &b->buffer};
    kilter_status status =
        kl_move_chunk(b->transport, request->peer, &head, &payload, &chunk->bytes_out, error);
    if (status != KILTER_OK)
        return status;
    kl_traffic_sent(&b->traffic, chunk->bytes_out, now_s);
    chunk->dealt_s = kl_now_s(&b->clock);
    return KILTER_OK;
}

static kilter_status move(kl_balance *b, const kl_request *request, kl_plan *plan, kl_chunk *chunk,
                          kilter_error *error) {
    kl_decision *d = &plan->decision;
    kl_offer offer = kl_bag_offer(&b->bag, b->dealer, &b->snapshot, (uint32_t)d->subject, d->count);
    kl_span span = fit_message(b, offer.span);
    d->count = span.hi - span.lo;
    plan->cut_short = offer.cut_short || span.hi < offer.span.hi;
    offer.span = span;
    kl_bag_take(&b->bag, &offer);
    kilter_status status = send_span(b, request, span, d->forecast_s, chunk, error);
    if (status != KILTER_OK && kl_bag_return(&b->bag, span) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "getting tasks back from a lost worker: memory ran out");
    return status;
}

static void note_dealt(kl_balance *b, const kl_chunk *chunk) {
    uint64_t count = chunk->hi - chunk->lo;
    kl_view_dealt(&b->views[chunk->worker], count, chunk->units, chunk->dealt_s);
    kl_balance_view_changed(b, chunk->worker);
    b->next_chunk++;
    b->chunks++;
    b->smallest = count < b->smallest ? count : b->smallest;
    b->largest = count > b->largest ? count : b->largest;
    kl_snapshot *s = &b->snapshot;
    double tasks = (double)count, weight = tasks / ((double)(s->tasks - b->bag.left) + tasks);
    s->task_bytes += weight * ((double)chunk->bytes_out / tasks - s->task_bytes);
}

void kl_balance_rescue(kl_balance *b, const kl_board *board, kl_rescue *rescue) {
    kl_grounds_rescue(b->rows.grounds, look(b), board, rescue);
    if (rescue->decision.kind != KL_DECIDES_NOTHING)
        record(b, UINT64_MAX, &rescue->decision);
}

kilter_status kl_balance_deal(kl_balance *b, const kl_request *request, kl_chunk *chunk, bool *dealt,
                              kilter_error *error) {
    *dealt = false;
    if (b->bag.left == 0)
        return KILTER_OK;
    if (!request->again) {
        kl_view_asked(&b->views[request->worker], kl_now_s(&b->clock));
        kl_balance_view_changed(b, request->worker);
    }
    const kl_snapshot *snapshot = look(b); /* step 1, measure: get the present state */
    kl_plan plan;
    /* steps 2 and 3, model and decide: choose how many tasks to deal */
    kl_dealer_plan(b->dealer, snapshot, request->worker, &plan);
    if (plan.decision.count == 0) {
        if (!request->again) {
            kl_grounds_answers(b->rows.grounds, snapshot, &plan);
            record(b, UINT64_MAX, &plan.decision);
        }
        return KILTER_OK;
    }
    /* step 4, move: send the tasks; the cost of sending them is measured with the next chunk */
    kilter_status status = move(b, request, &plan, chunk, error);
    if (status != KILTER_OK)
        return status;
    if (kl_dealer_commit(b->dealer, snapshot, &plan) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "dealing chunk %llu: memory ran out",
                       (unsigned long long)chunk->id);
    kl_grounds_answers(b->rows.grounds, snapshot, &plan);
    note_dealt(b, chunk);
    record(b, chunk->id, &plan.decision);
    *dealt = true;
    return KILTER_OK;
}

void kl_balance_report(kl_balance *b, kl_chunk *chunk, const kl_segment *segment, double offset_s,
                       uint64_t bytes, uint64_t failed) {
    kl_span tasks = {segment->lo, segment->lo + segment->count};
    kl_worker_view *view = &b->views[chunk->worker];
    /* Convert the segment's times to the master's clock. offset_s is not exact, because it includes the
     * time of one message. So put the beginning of the chunk at least busy_s before its end. */
    double began_s = chunk->began_s == 0 ? segment->began_s + offset_s : chunk->began_s;
    chunk->ended_s = segment->ended_s + offset_s;
    chunk->busy_s += segment->busy_s;
    chunk->began_s = fmax(chunk->dealt_s, fmin(began_s, chunk->ended_s - chunk->busy_s));
    kl_homes_note(&b->bag.homes, tasks, chunk->worker);
    chunk->at += segment->count;
    chunk->bytes_in += bytes;
    chunk->failed += failed;

    kl_stat unit_s = segment->unit_s;
    unit_s.last_s = chunk->ended_s;
    kl_stat_merge(&b->run_unit_s, &unit_s);
    kl_stat_merge(&b->snapshot.unit_s, &unit_s);
    kl_view_reported(view, &unit_s, segment->busy_s, kl_bag_units(&b->bag, tasks), b->snapshot.unit_s.mean,
                     kl_now_s(&b->clock));
    kl_sizes_add(&b->snapshot.sizes, &unit_s, kl_worker_rate(view));
    kl_observed_add(&b->observed, view, chunk->worker, &unit_s);
    kl_balance_view_changed(b, chunk->worker);
    double weight = (double)segment->count / (double)b->run_unit_s.count;
    b->snapshot.result_bytes += weight * ((double)bytes / (double)segment->count - b->snapshot.result_bytes);
}

void kl_balance_peer_report(kl_balance *b, uint32_t worker, const kl_stat *task_s, double bytes) {
    kl_worker_view *view = &b->views[worker];
    double tasks = (double)task_s->count, units = tasks * b->bag.units / fmax(1, (double)b->bag.tasks);
    kl_stat unit_s = *task_s;
    unit_s.last_s = kl_now_s(&b->clock);
    kl_stat_merge(&b->run_unit_s, &unit_s);
    kl_stat_merge(&b->snapshot.unit_s, &unit_s);
    view->queued_tasks +=
        task_s->count; /* add these tasks and units, because kl_view_reported() will subtract them */
    view->queued_units += units;
    kl_view_reported(view, &unit_s, task_s->mean * tasks, units, b->snapshot.unit_s.mean, unit_s.last_s);
    kl_sizes_add(&b->snapshot.sizes, &unit_s, kl_worker_rate(view));
    kl_observed_add(&b->observed, view, worker, &unit_s);
    kl_balance_view_changed(b, worker);
    double weight = tasks / (double)b->run_unit_s.count;
    b->snapshot.result_bytes += weight * (bytes / tasks - b->snapshot.result_bytes);
}

kilter_status kl_balance_take_over(kl_balance *b, kl_spans done, kilter_error *error) {
    kl_snapshot *s = &b->snapshot;
    kilter_status status = kl_bag_fill(&b->bag, b->ledger.tasks, b->data.weights, done, error);
    for (size_t i = 0; i < done.count && status == KILTER_OK; i++)
        for (kl_span rest = done.spans[i]; rest.lo < rest.hi;) {
            bool is_done;
            kl_span alike = kl_ledger_alike(&b->ledger, rest, &is_done);
            if (!is_done)
                kl_ledger_do(&b->ledger, alike);
            rest.lo = alike.hi;
        }
    if (status != KILTER_OK)
        return status;
    s->tasks = s->left = b->bag.left;
    s->units = s->left_units = b->bag.units;
    s->now_s = kl_now_s(&b->clock);
    return kl_dealer_begin(b->dealer, s) == KILTER_OK
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_MEMORY, "dealing the rest of a run: memory ran out");
}

static void unqueue(kl_balance *b, uint32_t worker, uint64_t tasks, double units) {
    kl_view_returned(&b->views[worker], tasks, units);
    kl_balance_view_changed(b, worker);
}

void kl_balance_cut(kl_balance *b, kl_chunk *chunk, uint64_t from) {
    kl_span rest = {from, chunk->hi};
    if (!chunk->stale) {
        unqueue(b, chunk->worker, rest.hi - rest.lo, kl_bag_units(&b->bag, rest));
        chunk->units = kl_bag_units(&b->bag, (kl_span){chunk->lo, from});
    }
    chunk->hi = from;
}

void kl_balance_abandon(kl_balance *b, kl_chunk *chunk) {
    uint64_t hi = chunk->hi, next = chunk->at + 1 < hi ? chunk->at + 1 : hi;
    kl_balance_cut(b, chunk, next);
    chunk->units = kl_bag_units(&b->bag, (kl_span){chunk->lo, chunk->at});
    /* write the chunk's row without its remaining tasks, which other workers did */
    kl_balance_end_chunk(b, chunk, false);
    chunk->units = kl_bag_units(&b->bag, (kl_span){chunk->at, next});
    kl_view_abandoned(&b->views[chunk->worker], chunk->units, b->snapshot.unit_s.mean, kl_now_s(&b->clock));
    chunk->hi = hi;
    chunk->stale = true;
}

void kl_balance_forget(kl_balance *b, const kl_chunk *chunk) {
    unqueue(b, chunk->worker, chunk->units > 0, chunk->units);
}

kilter_status kl_balance_deal_span(kl_balance *b, const kl_request *request, kl_span span, double finish_s,
                                   kl_chunk *chunk, kilter_error *error) {
    kl_view_asked(&b->views[request->worker], kl_now_s(&b->clock));
    look(b);
    kilter_status status = send_span(b, request, span, finish_s, chunk, error);
    if (status == KILTER_OK)
        note_dealt(b, chunk);
    return status;
}

void kl_balance_end_chunk(kl_balance *b, const kl_chunk *chunk, bool lost) {
    kl_worker_view *view = &b->views[chunk->worker];
    if (!lost) {
        kl_wap_add(&view->wap, chunk->busy_s, chunk->units);
        kl_balance_view_changed(b, chunk->worker);
    }
    kl_trace_chunk(b->rows.trace, &(kl_trace_chunk_row){
                                      .run = b->snapshot.run,
                                      .chunk = chunk->id,
                                      .lo = chunk->lo,
                                      /* leave out tasks that other chunks have done, because they are in the
                                       * rows of those chunks */
                                      .hi = chunk->lo + chunk->counted,
                                      .worker = view->number,
                                      .units = chunk->units,
                                      .dealt_s = chunk->dealt_s - b->rows.opened_s,
                                      .began_s = chunk->began_s > 0 ? chunk->began_s - b->rows.opened_s : 0,
                                      .ended_s = chunk->ended_s > 0 ? chunk->ended_s - b->rows.opened_s : 0,
                                      .busy_s = chunk->busy_s,
                                      .bytes_out = chunk->bytes_out,
                                      .bytes_in = chunk->bytes_in,
                                      .failed = chunk->failed,
                                      .lost = lost,
                                  });
}

kl_forecast kl_balance_forecast(kl_balance *b) {
    return kl_model_forecast(look(b), UINT32_MAX);
}
