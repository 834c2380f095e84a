/* The master: its turns and runs, and who is dealt what when. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/master_private.h"

static const double NEWLY_COME_S =
    0.1; /* at the end they are listened for so long, if others go on talking */

/* --- deliveries --- */

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

kl_delivery_list kl_master_take(kl_master *m) {
    kl_delivery_list taken = m->results;
    m->results = (kl_delivery_list){0};
    return taken;
}

/* --- life --- */

enum { ATTEMPTS = 5 }; /* by itself */

kilter_status kl_master_new(const kl_master_options *options, kl_transport *transport, kl_master **master,
                            kilter_error *error) {
    kl_master *m = calloc(1, sizeof *m);
    if (!m)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening the farm: memory ran out");
    m->options = *options;
    m->transport = transport;
    m->chooses = options->chooses;
    m->seats = options->seats;
    if (m->options.attempts == 0)
        m->options.attempts = ATTEMPTS;
    m->opened_s = kl_now_s(&options->clock);
    kilter_status status = kl_balance_init(&m->balance, options->policy, options->clock, transport, error);
    if (status != KILTER_OK) {
        free(m);
        return status;
    }
    *master = m;
    return KILTER_OK;
}

void kl_master_free(kl_master *m) {
    if (!m)
        return;
    for (size_t i = 0; i < m->member_count; i++)
        free(m->members[i].chunks);
    free(m->members);
    free(m->peers);
    free(m->asked);
    kl_twins_free(&m->twins);
    free(m->suspects);
    while (m->results.first) {
        kl_delivery *next = m->results.first->next;
        kl_delivery_free(m->results.first);
        m->results.first = next;
    }
    kl_buffer_free(&m->shared);
    kl_balance_free(&m->balance);
    free(m);
}

uint32_t kl_master_ready(const kl_master *m) {
    return m->ready;
}
uint32_t kl_master_refused(const kl_master *m) {
    return m->refused;
}
const char *kl_master_last_loss(const kl_master *m) {
    return m->last_loss;
}
bool kl_master_knows(const kl_master *m, uint64_t pid) {
    for (size_t i = 0; i < m->member_count; i++)
        if (m->members[i].stage > STARTING && m->members[i].stage < GONE && m->members[i].hello.pid == pid)
            return true;
    return false;
}
bool kl_master_sees(const kl_master *m, uint64_t pid) {
    for (size_t i = 0; i < m->member_count; i++)
        if (m->members[i].stage > GREETING && m->members[i].stage < GONE && m->members[i].hello.pid == pid)
            return true;
    return false;
}
void kl_master_expect(kl_master *m, uint32_t coming) {
    m->coming = coming;
}
uint64_t kl_master_finished(const kl_master *m) {
    return m->finished;
}
bool kl_master_running(const kl_master *m) {
    return m->running;
}

void kl_master_record_worker(kl_master *m, const member *one) {
    kl_trace_worker(m->trace, &(kl_trace_worker_row){.worker = one->number,
                                                     .host = one->hello.host,
                                                     .binding = one->hello.binding,
                                                     .pid = (int64_t)one->hello.pid,
                                                     .joined_s = one->joined_s - m->opened_s});
}

static void record_measurement(kl_master *m, int64_t worker, const char *kind, double value, double sd,
                               uint64_t count) {
    kl_trace_measurement(m->trace,
                         &(kl_trace_measurement_row){.at_s = kl_now_s(&m->options.clock) - m->opened_s,
                                                     .worker = worker,
                                                     .kind = kind,
                                                     .value = value,
                                                     .sd = sd,
                                                     .count = count});
}

void kl_master_record_measurement(kl_master *m, int64_t worker, const char *kind, double value) {
    record_measurement(m, worker, kind, value, 0, 1);
}

void kl_master_record_message_cost(kl_master *m, int64_t worker) {
    const kl_balance *b = &m->balance;
    record_measurement(m, worker, "message_fixed_s", b->message_now.fixed_s, 0, b->message.count);
    record_measurement(m, worker, "message_per_byte_s", b->message_now.per_unit_s, 0, b->message.count);
}

void kl_master_record(kl_master *m, kl_trace *trace) {
    m->trace = m->balance.trace = trace;
    m->balance.opened_s = m->opened_s;
    for (size_t i = 0; i < m->member_count; i++)
        if (m->members[i].stage > STARTING)
            kl_master_record_worker(m, &m->members[i]);
    kl_master_record_message_cost(m, -1);
}

/* --- work --- */

static kilter_status send_shared(kl_master *m, member *one, kilter_error *error) {
    if (one->shared == m->shared_generation)
        return KILTER_OK;
    one->shared = m->shared_generation;
    return kl_send(m->transport, one->peer, &m->shared, error);
}

static kilter_status add_chunk(member *one, const kl_chunk *chunk, kilter_error *error) {
    if (one->chunk_count == one->chunk_capacity) {
        size_t capacity = one->chunk_capacity ? 2 * one->chunk_capacity : 4;
        kl_chunk *chunks = realloc(one->chunks, capacity * sizeof *chunks);
        if (!chunks)
            return kl_fail(error, KILTER_ERR_MEMORY, "dealing a chunk: memory ran out");
        one->chunks = chunks;
        one->chunk_capacity = capacity;
    }
    one->chunks[one->chunk_count++] = *chunk;
    one->nothing_alone = false;
    return KILTER_OK;
}

void kl_master_declare_answer(const kl_master *m) {
    const kl_clock *clock = &m->options.clock;
    if (clock->answer_s > 0)
        clock->spend(clock->self, clock->answer_s);
}

/* It has left. What it said before, and that it left, comes with the next events. */
static kilter_status wait_for_word(member *one) {
    one->hungry = one->held = false;
    return KILTER_OK;
}

/* Deal to one worker that asks. It stays hungry when there is nothing for it now. */
static kilter_status feed(kl_master *m, member *one, kilter_error *error) {
    kl_chunk chunk;
    bool dealt;
    kilter_status status = send_shared(m, one, error);
    if (status == KILTER_OK)
        status = kl_balance_deal(&m->balance, one->worker, one->peer, one->asked_s, one->held, &chunk, &dealt,
                                 error);
    if (status == KILTER_ERR_PEER)
        return wait_for_word(one);
    if (status != KILTER_OK)
        return status;
    one->hungry = one->held = !dealt;
    return dealt ? add_chunk(one, &chunk, error) : KILTER_OK;
}

kilter_status kl_master_deal_span(kl_master *m, member *to, kl_span span, double finish_s, kl_chunk *chunk,
                                  kilter_error *error) {
    kilter_status status = send_shared(m, to, error);
    *chunk = (kl_chunk){0};
    if (status == KILTER_OK)
        status = kl_balance_deal_span(&m->balance, to->worker, to->peer, to->asked_s, span, finish_s, chunk,
                                      error);
    if (status == KILTER_ERR_PEER) {
        *chunk = (kl_chunk){0};
        return wait_for_word(to);
    }
    if (status != KILTER_OK)
        return status;
    to->hungry = to->held = false;
    return add_chunk(to, chunk, error);
}

/* Nothing else is left: tasks that may cost a worker its life, one to each that has nothing else to lose. */
static kilter_status feed_suspects(kl_master *m, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = 0; i < m->member_count && status == KILTER_OK && m->suspect_count > 0; i++) {
        member *one = &m->members[i];
        kl_chunk chunk;
        uint64_t task;
        if (!one->hungry || one->resting || one->chunk_count > 0 || !kl_master_take_suspect(m, one, &task))
            continue;
        status = kl_master_deal_span(m, one, (kl_span){task, task + 1}, 0, &chunk, error);
        if (status == KILTER_OK && chunk.lo == chunk.hi)
            status = kl_master_deal_again(m, one, (kl_span){task, task + 1}, error);
        kl_master_declare_answer(m);
    }
    return status;
}

static bool any_queued(const kl_master *m) {
    return m->done + m->suspect_tasks + m->balance.bag.left < m->summary.tasks;
}

/* Until those held back are looked at again; took_s: the last look. */
static double held_pause_s(const kl_master *m, double took_s) {
    double task_s = m->balance.snapshot.unit_s.mean;
    return fmax(fmax(KL_HELD_S, KL_HELD_TASKS * task_s), KL_HELD_LOOKS * took_s);
}

static bool can_be_fed(const kl_master *m, const member *one) {
    return one->hungry && !one->resting && !kl_master_has_suspect(m, one);
}

/* Deal to all that ask, those held back included. */
static kilter_status feed_all(kl_master *m, kilter_error *error) {
    kilter_status status = KILTER_OK;
    bool held = false;
    double began_s = kl_now_s(&m->options.clock);
    m->feed_all = false;
    for (size_t i = 0; i < m->member_count && status == KILTER_OK && m->balance.bag.left > 0; i++) {
        member *one = &m->members[i];
        if (can_be_fed(m, one)) {
            status = feed(m, one, error);
            if (!one->hungry)
                kl_master_declare_answer(m);
        }
        held |= one->held;
    }
    double now_s = kl_now_s(&m->options.clock);
    m->look_again_s = held ? now_s + held_pause_s(m, now_s - began_s) : 0;
    return status;
}

/* Nothing is left in the bag. asked: somebody asked for work just now. */
static kilter_status end_game(kl_master *m, bool asked, bool look_again, kilter_error *error) {
    kilter_status status = m->suspect_count > 0 ? feed_suspects(m, error) : KILTER_OK;
    bool first = m->empty_s == 0;
    m->feed_all = false;
    if (first)
        m->empty_s = kl_now_s(&m->options.clock);
    if (m->done == m->summary.tasks || !kl_policy_rescues(kl_dealer_policy(m->balance.dealer)))
        m->look_again_s = 0;
    else if (status == KILTER_OK && (first || asked || look_again))
        status = kl_master_rescue(m, error);
    return status;
}

/* Deal to `asking` (NULL: nobody asked just now), and once in a while to those held back. */
static kilter_status feed_from_bag(kl_master *m, member *asking, bool look_again, kilter_error *error) {
    m->empty_s = 0;
    if (m->feed_all || look_again || !any_queued(m))
        return feed_all(m, error);
    if (!asking || asking->held || !can_be_fed(m, asking))
        return KILTER_OK;
    kilter_status status = feed(m, asking, error);
    if (asking->held && m->look_again_s == 0)
        m->look_again_s = kl_now_s(&m->options.clock) + held_pause_s(m, 0);
    return status;
}

static kilter_status feed_hungry(kl_master *m, member *asking, kilter_error *error) {
    bool look_again = m->look_again_s > 0 && kl_now_s(&m->options.clock) >= m->look_again_s;
    kilter_status status = m->balance.bag.left > 0 ? feed_from_bag(m, asking, look_again, error) : KILTER_OK;
    /* at once where this emptied it: there may be no other event, if those that have the rest are stopped */
    return status == KILTER_OK && m->balance.bag.left == 0
               ? end_game(m, asking && asking->hungry && !asking->resting, look_again, error)
               : status;
}

static kilter_status on_pulse(kl_master *m, member *one, const kl_message *message, kilter_error *error) {
    kl_pulse pulse;
    if (one->stage < WORKING || !kl_wire_get_pulse(message->data, message->size, &pulse))
        return kl_master_expel(m, one, "sent a malformed message", error);
    one->pulse = pulse;
    one->pulse_s = one->heard_s;
    return kl_master_check_hand(m, one, error);
}

/* Said before it heard that it is to leave. */
static bool is_too_late(const member *one, kl_message_type type) {
    return one->stage == LEAVING && (type == KL_READY || type == KL_ECHO);
}

static kilter_status on_message(kl_master *m, member *one, kl_message *message, kilter_error *error) {
    kl_message_type type = kl_wire_type(message->data, message->size);
    if (is_too_late(one, type))
        return KILTER_OK;
    switch (type) {
    case KL_HELLO:
        return kl_master_on_hello(m, one, message, error);
    case KL_READY:
        return kl_master_on_ready(m, one, message, error);
    case KL_ECHO:
        return kl_master_on_echo(m, one, message, error);
    case KL_REFUSE:
        return kl_master_on_refuse(m, one, message, error);
    case KL_RETURN:
        return kl_master_on_return(m, one, message, error);
    case KL_LEAVE:
        return kl_master_on_leave(m, one, message, error);
    case KL_RENEW:
        return kl_master_on_renewal(m, one, message, error);
    case KL_PULSE:
        return on_pulse(m, one, message, error);
    case KL_RESULTS:
        return kl_master_on_results(m, one, message, error);
    default:
        return kl_master_expel(m, one, "sent a message this version does not know", error);
    }
}

static kilter_status on_event(kl_master *m, kl_event *event, kilter_error *error) {
    if (event->kind == KL_EVENT_NONE)
        return KILTER_OK;
    if (event->kind == KL_EVENT_JOINED)
        return kl_master_add(m, event->peer, error);
    member *one = kl_master_find(m, event->peer);
    if (event->kind == KL_EVENT_LEFT)
        return one ? kl_master_lose_connection(m, one, error) : KILTER_OK;
    if (one)
        one->heard_s = kl_now_s(&m->options.clock);
    kilter_status status = one ? on_message(m, one, &event->message, error) : KILTER_OK;
    kl_message_release(&event->message);
    return status;
}

/* --- runs --- */

static kilter_status set_shared(kl_master *m, kilter_bytes shared, kilter_error *error) {
    m->shared_sent = shared.size;
    if (!shared.data)
        return KILTER_OK;
    kl_buffer_clear(&m->shared);
    kl_wire_put_shared(&m->shared, shared.data, shared.size);
    m->balance.shared_hash = kl_hash(shared.data, shared.size, 0);
    if (m->shared.failed)
        return kl_fail(error, KILTER_ERR_MEMORY, "keeping %zu bytes of shared data: memory ran out",
                       shared.size);
    m->shared_bytes = shared.size;
    m->shared_generation++;
    return KILTER_OK;
}

/* One task says little of how fast its worker is. */
static bool speeds_are_known(const kl_snapshot *s) {
    static const uint64_t FEW = 4;
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->workers[i].units > 0 && s->workers[i].run_unit_s.count < FEW)
            return false;
    return true;
}

/* Else a forecast for all tasks would stand beside the time of some. */
static kl_interval equal_split(kl_master *m) {
    kl_iteration it = kl_master_iteration(m);
    double time_s = m->done == m->summary.tasks && speeds_are_known(&m->balance.snapshot)
                        ? kl_model_equal_split_s(&m->balance.snapshot)
                        : 0;
    if (time_s > 0)
        time_s = fmax(time_s, kl_model_shared_s(&it.load, it.workers));
    kl_limit limit = kl_model_limit(&it.load, it.workers);
    m->summary.equal_split_s = time_s;
    return kl_model_interval(time_s, &(kl_doubt){.known = it.workers}, it.workers, &limit);
}

static void sum_up(kl_master *m) {
    kl_snapshot *s = &m->balance.snapshot;
    kilter_farm_summary *sum = &m->summary;
    sum->failed = m->failed;
    sum->chunks = m->balance.chunks;
    sum->elapsed_s = m->ended_s - m->began_s;
    for (uint32_t i = 0; i < s->slots; i++)
        sum->workers += s->workers[i].units > 0;
    sum->resting = m->resting;
    sum->bound_s = kl_model_bound_s(s);
    sum->efficiency = sum->elapsed_s > 0 ? sum->bound_s / sum->elapsed_s : 0;
    kl_interval equal = equal_split(m);
    kl_summary_sentence(&m->balance, kl_policy_name(kl_dealer_policy(m->balance.dealer)), sum, &equal,
                        m->decision, sizeof m->decision);
    sum->decision = m->decision;
}

static void record_run_measurements(kl_master *m) {
    const kl_snapshot *s = &m->balance.snapshot;
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *v = &s->workers[i];
        if (v->units > 0)
            record_measurement(m, v->number, "rate_units_per_s", kl_worker_rate(v), 0, v->run_unit_s.count);
        if (v->run_unit_s.count > 0)
            record_measurement(m, v->number, "unit_s", v->run_unit_s.mean, kl_stat_sd(&v->run_unit_s),
                               v->run_unit_s.count);
    }
    const kl_stat *unit_s = &m->balance.run_unit_s;
    record_measurement(m, -1, "unit_s", unit_s->mean, kl_stat_sd(unit_s), unit_s->count);
    record_measurement(m, -1, "answer_s", m->balance.answer.mean, kl_stat_sd(&m->balance.answer),
                       m->balance.answer.count);
    kl_master_record_message_cost(m, -1);
    kl_master_record_measurement(m, -1, "master_s", m->master_s);
    kl_master_record_use(m);
    record_measurement(m, -1, "round_trip_s", s->round_trip_s, 0, m->balance.round_trip.count);
}

/* As it is now. */
static void record_iteration(kl_master *m) {
    kl_trace_iteration(
        m->trace, &(kl_trace_iteration_row){.run = m->runs,
                                            .tasks = m->summary.tasks - m->summary.stored,
                                            .units = m->balance.bag.units,
                                            .policy = kl_policy_name(kl_dealer_policy(m->balance.dealer)),
                                            .shared_bytes = m->shared_bytes,
                                            .began_s = m->began_s - m->opened_s,
                                            .stored = m->summary.stored});
}

static void end_run(kl_master *m, const char *status) {
    m->running = m->open = false;
    if (m->grown)
        record_iteration(m);
    kl_master_end_chunks(m);
    m->ended_s = kl_now_s(&m->options.clock);
    m->runs++;
    m->use = kl_master_use_so_far(m);
    sum_up(m);
    kl_master_note_iteration(m);
    record_run_measurements(m);
    kl_trace_iteration_ended(m->trace, &(kl_trace_iteration_end){.run = m->runs - 1,
                                                                 .failed = m->failed,
                                                                 .chunks = m->summary.chunks,
                                                                 .workers = m->summary.workers,
                                                                 .ended_s = m->ended_s - m->opened_s,
                                                                 .bound_s = m->summary.bound_s,
                                                                 .equal_split_s = m->summary.equal_split_s,
                                                                 .decision = m->decision,
                                                                 .status = status});
}

static void end_if_done(kl_master *m) {
    if (m->running && !m->open && m->done == m->summary.tasks)
        end_run(m, "done");
}

void kl_master_done_before(kl_master *m, kl_spans done) {
    m->done_before = done;
}

void kl_master_unsafe(kl_master *m, uint64_t results, bool too_many) {
    m->unsafe = results;
    m->feed_all |= m->holds && !too_many;
    m->holds = too_many;
}

/* The farm's, as far as the run has none of its own. */
static kl_limits limits_of(const kl_master *m, const kilter_run *run) {
    kl_limits limits = m->options.limits;
    if (run->task_timeout_s > 0)
        limits.task_s = run->task_timeout_s;
    if (run->retries > 0)
        limits.retries = run->retries;
    return limits;
}

kilter_status kl_master_begin(kl_master *m, const kilter_run *run, kilter_error *error) {
    m->open = run->grows;
    kilter_status status = kl_master_between_runs(m, error);
    if (status == KILTER_OK)
        status = set_shared(m, run->shared, error);
    if (status == KILTER_OK)
        status = kl_balance_begin(&m->balance, m->runs, run, m->done_before, error);
    m->done_before = (kl_spans){0};
    if (status != KILTER_OK)
        return status;
    uint64_t left = m->balance.bag.left;
    m->began_s = m->ended_s = kl_now_s(&m->options.clock);
    m->done = run->tasks - left;
    m->failed = m->failures_recorded = 0;
    m->limits = limits_of(m, run);
    m->look_again_s = m->empty_s = 0;
    m->asked_count = 0;
    m->feed_all = true;
    m->summary = (kilter_farm_summary){.tasks = run->tasks, .stored = m->done};
    m->running = true;
    m->grown = false;
    kl_master_use_begins(m);
    kl_master_glance_begins(m);
    for (size_t i = 0; i < m->member_count; i++)
        m->members[i].held = false;
    record_iteration(m);
    kl_master_record_grain(m);
    kl_master_record_expectation(m);
    end_if_done(m);
    return KILTER_OK;
}

kilter_status kl_master_grow(kl_master *m, uint64_t count, const kilter_bytes *inputs, const double *weights,
                             kl_spans done, kilter_error *error) {
    if (!m->running)
        return KILTER_OK;
    uint64_t left = m->balance.bag.left;
    kilter_status status = kl_balance_grow(&m->balance, count, inputs, weights, done, error);
    if (status != KILTER_OK)
        return status;
    uint64_t stored = count - (m->balance.bag.left - left);
    m->done += stored;
    m->summary.tasks += count;
    m->summary.stored += stored;
    m->grown = m->feed_all = true;
    return KILTER_OK;
}

void kl_master_grown(kl_master *m) {
    m->open = false;
    end_if_done(m);
}

kilter_status kl_master_cancel(kl_master *m, kilter_error *error) {
    if (!m->running)
        return KILTER_OK;
    end_run(m, "cancelled");
    return kl_fail(error, KILTER_ERR_CANCELLED, "cancelled with %llu of %llu tasks done",
                   (unsigned long long)m->done, (unsigned long long)m->summary.tasks);
}

/* Nobody is left, and nobody will come. */
static bool is_abandoned(const kl_master *m) {
    bool done = m->done == m->summary.tasks; /* more may come, or not */
    if (!m->running || done || m->ready > 0 || m->coming > 0 || m->options.may_join)
        return false;
    for (size_t i = 0; i < m->member_count; i++)
        if (m->members[i].stage != GONE)
            return false;
    return true;
}

static kilter_status check_workers(kl_master *m, kilter_error *error) {
    if (!is_abandoned(m))
        return KILTER_OK;
    end_run(m, "no worker left");
    return kl_fail(
        error, KILTER_ERR_NO_WORKER, "no worker is left with %llu of %llu tasks not done; the last one: %s",
        (unsigned long long)(m->summary.tasks - m->done), (unsigned long long)m->summary.tasks, m->last_loss);
}

static double work_due_s(const kl_master *m) {
    if (is_abandoned(m))
        return 0;
    if (!m->running || m->holds)
        return HUGE_VAL;
    return m->feed_all ? 0 : m->look_again_s > 0 ? m->look_again_s : HUGE_VAL;
}

/* When somebody is to be sent away who has not said who it is. */
static double silent_due_s(const kl_master *m) {
    return m->greeting > 0 && m->options.greeting_s > 0 ? m->silent_s : HUGE_VAL;
}

double kl_master_due_s(const kl_master *m) {
    return fmin(work_due_s(m), silent_due_s(m));
}

static kilter_status turn(kl_master *m, double timeout_s, kilter_error *error) {
    double until_s = fmax(0, kl_master_due_s(m) - kl_now_s(&m->options.clock));
    if (timeout_s < 0 || timeout_s > until_s)
        timeout_s = until_s < HUGE_VAL ? until_s : -1;
    kl_event event;
    double began_s = kl_busy_s(&m->options.clock);
    uint64_t chunks = m->balance.chunks;
    kilter_status status = kl_poll(m->transport, timeout_s, &event, error);
    if (!m->options.clock.busy_s)
        began_s = kl_now_s(&m->options.clock); /* it saw the waiting, too */
    m->messages += event.kind == KL_EVENT_MESSAGE;
    if (event.kind == KL_EVENT_MESSAGE)
        kl_master_declare_answer(m);
    if (status == KILTER_OK)
        status = on_event(m, &event, error);
    if (status == KILTER_OK && event.kind == KL_EVENT_NONE && kl_now_s(&m->options.clock) >= silent_due_s(m))
        status = kl_master_expel_silent(m, error);
    if (status == KILTER_OK)
        status = kl_master_glance(m, error);
    if (status == KILTER_OK && m->running && !m->holds)
        status = feed_hungry(m, event.kind == KL_EVENT_MESSAGE ? kl_master_find(m, event.peer) : NULL, error);
    if (m->running && event.kind == KL_EVENT_MESSAGE && m->balance.chunks == chunks + 1)
        kl_balance_answer_cost(&m->balance, kl_busy_s(&m->options.clock) - began_s);
    if (status == KILTER_OK)
        end_if_done(m);
    return status == KILTER_OK ? check_workers(m, error) : status;
}

/* That a message could not be sent to a worker is no failure if the worker is lost with it. */
kilter_status kl_master_turn(kl_master *m, double timeout_s, kilter_error *error) {
    kilter_error failure = {KILTER_OK, ""};
    kilter_status status = turn(m, timeout_s, &failure);
    if (status != KILTER_OK && error)
        *error = failure;
    return status;
}

void kl_master_summary(const kl_master *m, kilter_farm_summary *summary) {
    *summary = m->summary;
}

/* Those who have come and were not taken in yet are told, too: to who only sees the connection end, the
 * master died and may come back. */
static void end_the_newly_come(kl_master *m, const kl_buffer *end) {
    double until_s = kl_now_s(&m->options.clock) + NEWLY_COME_S;
    kl_event event;
    for (int silent = 0; silent < 2 && kl_now_s(&m->options.clock) < until_s;) {
        if (kl_poll(m->transport, 0, &event, NULL) != KILTER_OK)
            return;
        if (event.kind == KL_EVENT_JOINED)
            kl_send(m->transport, event.peer, end, NULL);
        silent = event.kind == KL_EVENT_NONE ? silent + 1 : 0; /* the first may be a wake */
        kl_message_release(&event.message);
    }
}

void kl_master_end(kl_master *m) {
    kl_buffer end = {0};
    kl_wire_put_bytes(&end, KL_END, NULL, 0);
    for (size_t i = 0; i < m->member_count; i++)
        if (m->members[i].stage != GONE)
            kl_send(m->transport, m->members[i].peer, &end, NULL); /* whoever is gone needs no telling */
    end_the_newly_come(m, &end);
    kl_buffer_free(&end);
}

/* --- progress --- */

static void time_text(double seconds, char *text, size_t size) {
    if (seconds > 0 && seconds < 0.0995)
        snprintf(text, size, "%.2g ms", 1e3 * seconds);
    else if (seconds < 120)
        snprintf(text, size, "%.*f s", seconds < 9.95 ? 1 : 0, seconds);
    else if (seconds < 7200)
        snprintf(text, size, "%.0f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
}

void kl_master_progress(kl_master *m, char *text, size_t size) {
    char low[32], high[32], left[80] = "time left not known yet";
    kl_forecast forecast = kl_balance_forecast(&m->balance);
    if (forecast.rate_units_per_s > 0) {
        time_text(forecast.low_s, low, sizeof low);
        time_text(forecast.high_s, high, sizeof high);
        snprintf(left, sizeof left, "%s to %s left", low, high);
    }
    uint64_t tasks = m->summary.tasks, done = m->done - m->unsafe;
    uint32_t present = m->ready - m->resting;
    kl_late late = kl_master_late(m);
    char usual[32], long_task[128] = "";
    if (late.elapsed_s > 0) {
        time_text(late.elapsed_s, low, sizeof low);
        time_text(late.usual_s, usual, sizeof usual);
        snprintf(long_task, sizeof long_task, " · task %llu at worker %u for %s, usually %s",
                 (unsigned long long)late.task, late.worker, low, usual);
    }
    snprintf(text, size, "%3.0f %% · %llu of %llu tasks · %u worker%s · %s%s",
             tasks ? 100.0 * (double)done / (double)tasks : 100, (unsigned long long)done,
             (unsigned long long)tasks, present, present == 1 ? "" : "s", left, long_task);
}
