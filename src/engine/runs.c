/* A run of the master: how it begins, grows and ends, and its summary. */
#include <math.h>

#include "engine/master_private.h"

/* Return whether the speeds of all workers are known. Each worker must have done at least FEW tasks, because
 * a single task shows little. */
static bool speeds_are_known(const kl_snapshot *s) {
    static const uint64_t FEW = 4;
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->workers[i].units > 0 && s->workers[i].run_unit_s.count < FEW)
            return false;
    return true;
}

/* Return a forecast of the time that the run would have taken with an equal split. There is no forecast if a
 * worker's speed is unknown, or if some tasks were not done. */
static kl_interval equal_split(kl_master *m) {
    kl_iteration it = kl_master_iteration(m);
    double time_s = m->run.done == m->run.summary.tasks && speeds_are_known(&m->balance.snapshot)
                        ? kl_model_equal_split_s(&m->balance.snapshot)
                        : 0;
    if (time_s > 0)
        time_s = fmax(time_s, kl_model_shared_s(&it.load, it.workers));
    kl_limit limit = kl_model_limit(&it.load, it.workers);
    m->run.summary.equal_split_s = time_s;
    return kl_model_interval(time_s, &(kl_doubt){.known = it.workers}, it.workers, &limit);
}

static void sum_up(kl_master *m) {
    kl_snapshot *s = &m->balance.snapshot;
    kilter_farm_summary *sum = &m->run.summary;
    sum->failed = m->run.failed;
    sum->chunks = m->balance.chunks;
    sum->elapsed_s = m->run.ended_s - m->run.began_s;
    for (uint32_t i = 0; i < s->slots; i++)
        sum->workers += s->workers[i].units > 0;
    sum->resting = m->members.resting;
    sum->bound_s = kl_model_bound_s(s);
    sum->efficiency = sum->elapsed_s > 0 ? sum->bound_s / sum->elapsed_s : 0;
    kl_interval equal = equal_split(m);
    kl_summary_sentence(&m->balance, kl_policy_name(kl_dealer_policy(m->balance.dealer)), sum, &equal,
                        m->run.decision, sizeof m->run.decision);
    sum->decision = m->run.decision;
}

/* Record the work of each peer as one chunk. The number of tasks in it is right, but it is not known which
 * tasks the peer did. */
static void record_peers(kl_master *m) {
    const kl_snapshot *s = &m->balance.snapshot;
    uint64_t lo = 0, rows = 0;
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *v = &s->workers[i];
        if (v->run_unit_s.count == 0)
            continue;
        kl_trace_chunk(m->trace, &(kl_trace_chunk_row){.run = m->run.number,
                                                       .chunk = rows++,
                                                       .lo = lo,
                                                       .hi = lo + v->run_unit_s.count,
                                                       .worker = v->number,
                                                       .units = v->units,
                                                       .dealt_s = m->run.began_s - m->opened_s,
                                                       .began_s = m->run.began_s - m->opened_s,
                                                       .ended_s = m->run.ended_s - m->opened_s,
                                                       .busy_s = v->busy_s});
        lo += v->run_unit_s.count;
    }
}

static void record_run_measurements(kl_master *m) {
    const kl_snapshot *s = &m->balance.snapshot;
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *v = &s->workers[i];
        if (v->units > 0)
            kl_master_record_mean(m, v->number, "rate_units_per_s", kl_worker_rate(v), 0,
                                  v->run_unit_s.count);
        if (v->run_unit_s.count > 0)
            kl_master_record_mean(m, v->number, "unit_s", v->run_unit_s.mean, kl_stat_sd(&v->run_unit_s),
                                  v->run_unit_s.count);
    }
    const kl_stat *unit_s = &m->balance.run_unit_s;
    kl_master_record_mean(m, -1, "unit_s", unit_s->mean, kl_stat_sd(unit_s), unit_s->count);
    const kl_traffic *t = &m->balance.traffic;
    kl_stat answer_s = kl_traffic_answer(t);
    kl_master_record_mean(m, -1, "answer_s", answer_s.mean, kl_stat_sd(&answer_s), answer_s.count);
    if (kl_traffic_wakes(t)) {
        kl_master_record_mean(m, -1, "answer_woken_s", t->woken.mean, kl_stat_sd(&t->woken), t->woken.count);
        kl_master_record_mean(m, -1, "answer_awake_s", t->awake.mean, kl_stat_sd(&t->awake), t->awake.count);
    }
    kl_master_record_message_cost(m, -1);
    kl_master_record_measurement(m, -1, "master_s", m->planning.master_s);
    kl_master_record_use(m);
    kl_master_record_mean(m, -1, "round_trip_s", s->round_trip_s, 0, m->balance.traffic.round_trip.count);
}

/* Write the run's row in the record, with the numbers of tasks and of units of work that the run has now. */
static void record_iteration(kl_master *m) {
    kl_trace_iteration(
        m->trace, &(kl_trace_iteration_row){.run = m->run.number,
                                            .tasks = m->run.summary.tasks - m->run.summary.stored,
                                            .units = m->balance.bag.units,
                                            .policy = kl_policy_name(kl_dealer_policy(m->balance.dealer)),
                                            .shared_bytes = m->shared.bytes,
                                            .began_s = m->run.began_s - m->opened_s,
                                            .stored = m->run.summary.stored});
}

static void end_run(kl_master *m, const char *status) {
    m->run.running = m->run.open = false;
    kl_run_peers_end(m, m->run.done < m->run.summary.tasks);
    if (m->run.grown)
        record_iteration(m);
    kl_master_end_chunks(m);
    m->run.ended_s = kl_now_s(&m->options.clock);
    if (m->peers.on)
        record_peers(m);
    m->run.number++;
    m->use.last = kl_master_use_so_far(m);
    sum_up(m);
    kl_master_note_iteration(m);
    kl_master_note_organised(m);
    record_run_measurements(m);
    kl_trace_iteration_ended(m->trace,
                             &(kl_trace_iteration_end){.run = m->run.number - 1,
                                                       .failed = m->run.failed,
                                                       .chunks = m->run.summary.chunks,
                                                       .workers = m->run.summary.workers,
                                                       .ended_s = m->run.ended_s - m->opened_s,
                                                       .bound_s = m->run.summary.bound_s,
                                                       .equal_split_s = m->run.summary.equal_split_s,
                                                       .decision = m->run.decision,
                                                       .status = status});
}

void kl_master_end_if_done(kl_master *m) {
    bool fails = m->peers.on && m->peers.failure.status != KILTER_OK;
    if (m->run.running && !m->run.open && !fails && m->run.done == m->run.summary.tasks)
        end_run(m, "done");
}

void kl_master_done_before(kl_master *m, kl_spans done) {
    m->run.done_before = done;
}

void kl_master_unsafe(kl_master *m, uint64_t results, bool too_many) {
    m->run.unsafe = results;
    m->feeding.all |= m->run.holds && !too_many;
    m->run.holds = too_many;
}

/* Return the limits that the run sets. Where the run sets none, the farm's limits count. */
static kl_limits limits_of(const kl_master *m, const kilter_run *run) {
    kl_limits limits = m->options.limits;
    if (run->task_timeout_s > 0)
        limits.task_s = run->task_timeout_s;
    if (run->retries > 0)
        limits.retries = run->retries;
    return limits;
}

kilter_status kl_master_begin(kl_master *m, const kilter_run *run, kilter_error *error) {
    m->run.open = run->grows;
    kilter_status status = kl_master_between_runs(m, error);
    if (status == KILTER_OK)
        status = kl_master_set_shared(m, run->shared, error);
    if (status == KILTER_OK)
        status = kl_balance_begin(&m->balance, m->run.number, run, m->run.done_before, error);
    m->run.done_before = (kl_spans){0};
    if (status != KILTER_OK)
        return status;
    uint64_t left = m->balance.bag.left;
    m->run.began_s = m->run.ended_s = kl_now_s(&m->options.clock);
    m->run.done = run->tasks - left;
    m->run.failed = m->run.failures_recorded = 0;
    m->run.limits = limits_of(m, run);
    m->feeding.look_again_s = m->feeding.empty_s = 0;
    m->asked.count = 0;
    m->feeding.all = true;
    m->run.summary = (kilter_farm_summary){.tasks = run->tasks, .stored = m->run.done};
    m->run.running = true;
    m->run.grown = false;
    kl_master_use_begins(m);
    m->peers.on = false;
    bool peers = kl_master_organise(m, run);
    kl_master_glance_begins(m);
    if (peers)
        m->staff.glance_due_s = HUGE_VAL;
    for (size_t i = 0; i < m->members.count; i++)
        m->members.list[i].held = false;
    record_iteration(m);
    kl_master_record_grain(m);
    kl_master_record_expectation(m);
    kl_master_end_if_done(m);
    return m->run.running && peers ? kl_run_peers_begin(m, error) : KILTER_OK;
}

kilter_status kl_master_grow(kl_master *m, uint64_t count, const kilter_bytes *inputs, const double *weights,
                             kl_spans done, kilter_error *error) {
    if (!m->run.running)
        return KILTER_OK;
    uint64_t left = m->balance.bag.left;
    kilter_status status = kl_balance_grow(&m->balance, count, inputs, weights, done, error);
    if (status != KILTER_OK)
        return status;
    uint64_t stored = count - (m->balance.bag.left - left);
    m->run.done += stored;
    m->run.summary.tasks += count;
    m->run.summary.stored += stored;
    m->run.grown = m->feeding.all = true;
    return KILTER_OK;
}

void kl_master_grown(kl_master *m) {
    m->run.open = false;
    kl_master_end_if_done(m);
}

kilter_status kl_master_cancel(kl_master *m, kilter_error *error) {
    if (!m->run.running)
        return KILTER_OK;
    end_run(m, "cancelled");
    return kl_fail(error, KILTER_ERR_CANCELLED, "cancelled with %llu of %llu tasks done",
                   (unsigned long long)m->run.done, (unsigned long long)m->run.summary.tasks);
}

/* Return whether the run cannot continue, because no worker is left and none will join. */
bool kl_master_is_abandoned(const kl_master *m) {
    /* if all present tasks are done, the run can continue, because more tasks may be added */
    bool done = m->run.done == m->run.summary.tasks;
    if (!m->run.running || done || m->members.ready > 0 || m->members.coming > 0 || m->options.may_join)
        return false;
    for (size_t i = 0; i < m->members.count; i++)
        if (m->members.list[i].stage != GONE)
            return false;
    return true;
}

kilter_status kl_master_check_workers(kl_master *m, kilter_error *error) {
    const kilter_error *failure = &m->peers.failure;
    if (m->run.running && m->peers.on && failure->status != KILTER_OK) {
        end_run(m, "failed");
        return kl_fail(error, failure->status, "%s", failure->text);
    }
    if (!kl_master_is_abandoned(m))
        return KILTER_OK;
    end_run(m, "no worker left");
    return kl_fail(error, KILTER_ERR_NO_WORKER,
                   "no worker is left, but %llu of %llu tasks are not done; the last loss: %s",
                   (unsigned long long)(m->run.summary.tasks - m->run.done),
                   (unsigned long long)m->run.summary.tasks, m->members.last_loss);
}

void kl_master_summary(const kl_master *m, kilter_farm_summary *summary) {
    *summary = m->run.summary;
}
