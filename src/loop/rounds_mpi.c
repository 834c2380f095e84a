#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

enum { PROBES = 4, PROBE_BYTES = 1 << 16 };

static const double GUESSED_QUANTUM_S = 0.01;

static size_t report_bytes(const kl_loop_rounds *r) {
    return r->whole ? sizeof(kl_rank_report) : offsetof(kl_rank_report, segments_s);
}

static kilter_status share_reports(kl_loop_rounds *r, kl_group *g, kilter_error *error) {
    return kl_group_share(g, &r->requests, &r->mine, r->heard, report_bytes(r), error);
}

void kl_rounds_free(kl_loop_rounds *r) {
    kl_requests_free(&r->requests);
    free(r->heard);
    free(r->all);
    kl_steer_free(r->steer);
}

/* --- measuring messages, once --- */

static kilter_status time_reports(kl_loop_rounds *r, kl_group *g, double *best_s, kilter_error *error) {
    kilter_status status = KILTER_OK;
    *best_s = HUGE_VAL;
    for (int i = 0; i < PROBES && status == KILTER_OK; i++) {
        double began_s = kl_group_now_s(g);
        status = share_reports(r, g, error);
        if (status == KILTER_OK)
            status = kl_requests_await(g, &r->requests, error);
        *best_s = fmin(*best_s, kl_group_now_s(g) - began_s);
    }
    return status;
}

/* Each rank sends to the next one, as ranks do at the bounds of their rows. data: room for two messages. */
static kilter_status time_neighbours(kl_group *g, uint8_t *data, size_t bytes, double *best_s,
                                     kilter_error *error) {
    kl_requests requests = {0};
    kilter_status status = KILTER_OK;
    int ranks = (int)g->ranks, next = (g->rank + 1) % ranks, last = (g->rank + ranks - 1) % ranks;
    kl_mail in = {.data = data, .bytes = bytes, .peer = last, .tag = KL_TAG_PROBE},
            out = {.data = data + PROBE_BYTES, .bytes = bytes, .peer = next, .tag = KL_TAG_PROBE};
    *best_s = HUGE_VAL;
    for (int i = 0; i < PROBES && status == KILTER_OK; i++) {
        double began_s = kl_group_now_s(g);
        status = kl_receive(g, &requests, in, error);
        if (status == KILTER_OK)
            status = kl_send(g, &requests, out, error);
        if (status == KILTER_OK)
            status = kl_requests_await(g, &requests, error);
        *best_s = fmin(*best_s, kl_group_now_s(g) - began_s);
    }
    kl_requests_free(&requests);
    return status;
}

/* Measuring it costs more than a short loop could ever gain. */
static double first_quantum_s(const kl_group *g) {
    return g->clock.simulated ? kl_quantum_s() : GUESSED_QUANTUM_S;
}

static kilter_status measure_messages(kl_loop_rounds *r, kl_group *g, kilter_error *error) {
    double s[3] = {0, 0, 0};
    uint8_t *data = calloc(2, PROBE_BYTES);
    uint64_t fits = data != NULL;
    kilter_status status = kl_group_least(g, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        status = kl_fail(error, KILTER_ERR_MEMORY,
                         "measuring messages between the ranks of loop '%s': memory ran out", g->name);
    if (status == KILTER_OK)
        status = time_reports(r, g, &s[0], error);
    if (status == KILTER_OK)
        status = time_neighbours(g, data, 1, &s[1], error);
    if (status == KILTER_OK)
        status = time_neighbours(g, data, PROBE_BYTES, &s[2], error);
    if (status == KILTER_OK)
        status = kl_group_most_f64(g, s, 3, error);
    if (status != KILTER_OK)
        return status; /* MPI may still write into the data */
    free(data);
    r->interact_s = s[0];
    r->link = (kl_linear){s[1], fmax(0, s[2] - s[1]) / PROBE_BYTES};
    r->period_s = kl_period_of(s[0], 0, first_quantum_s(g)).target_s;
    return status;
}

/* --- opening --- */

/* There is one rank, or the loop is told everything. */
static bool is_settled(const kilter_loop *l) {
    bool chooses = !l->options.fixed || (l->kind->prepare && l->options.block == 0);
    return l->group.ranks == 1 || l->rounds.forced || !chooses;
}

static kl_steer *new_steer(const kilter_loop *l) {
    const kl_loop_rounds *r = &l->rounds;
    double bytes = 0;
    for (size_t a = 0; a < l->layout.array_count; a++)
        bytes += (double)l->layout.arrays[a].rows.bytes;
    return kl_steer_new(&(kl_steer_options){
        .iterations = l->options.iterations,
        .ranks = l->group.ranks,
        .scattered = l->kind->anywhere,
        .buffers = l->kind->buffers && !l->options.fixed,
        .least = 1,
        .reach = l->layout.halo,
        .deepest = l->exchange.deepest,
        .interact_s = r->interact_s,
        .quantum_s = first_quantum_s(&l->group),
        .move = {r->interact_s + r->link.fixed_s, r->link.per_unit_s * bytes},
    });
}

kilter_status kl_rounds_open(kilter_loop *l, kilter_error *error) {
    kl_loop_rounds *r = &l->rounds;
    uint32_t ranks = l->group.ranks;
    if (is_settled(l))
        return KILTER_OK;
    r->all = calloc(ranks, sizeof *r->all);
    r->heard = calloc(ranks, sizeof *r->heard);
    uint64_t fits = r->all && r->heard;
    kilter_status status = kl_group_least(&l->group, &fits, 1, error);
    if (status == KILTER_OK && fits)
        status = measure_messages(r, &l->group, error);
    if (status != KILTER_OK)
        return status;
    if (fits) /* filled while messages were timed */
        memset(r->heard, 0, ranks * sizeof *r->heard);
    if (l->kind->prepare)
        l->kind->prepare(l);
    r->steer = fits ? new_steer(l) : NULL;
    fits = l->meter.on = r->steer != NULL;
    status = kl_group_least(&l->group, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "beginning loop '%s': memory ran out", l->group.name);
    return status;
}

/* --- reports --- */

kilter_status kl_rounds_hook(kilter_loop *l, bool at_end, kilter_error *error) {
    kl_loop_rounds *r = &l->rounds;
    if (!r->steer)
        return KILTER_OK;
    if (r->reported)
        return kl_requests_look(&l->group, &r->requests, error);
    if (r->passed != r->at || (!at_end && l->kind->pass_done(l) < 0.5))
        return KILTER_OK;
    kl_meter_quantum(&l->meter);
    l->meter.uneven |= r->whole;
    r->mine = kl_meter_report(&l->meter, kl_layout_next(&l->layout), l->kind->sweep_done(l));
    r->reported = true;
    return share_reports(r, &l->group, error);
}

/* --- answers --- */

/* Choose any places at all: now and then a rank without rows, or with all of them, or a bound that stays. Of
 * a deep loop choose any depth, but not before each sweep, so that some exchanges are used to their end. */
static void force(kilter_loop *l) {
    const uint64_t *bounds = l->layout.bounds;
    uint64_t *target = l->layout.target, ranks = l->group.ranks;
    uint64_t seed = kl_mix64(l->rounds.seed + l->rounds.passed), n = l->options.iterations, rest = n;
    if (l->exchange.deepest > 1 && seed % 4 > 0)
        return;
    kl_exchange_deepen(&l->exchange, 1 + (seed >> 8) % l->exchange.deepest);
    for (uint32_t r = 0; r + 1 < ranks; r++) {
        seed = kl_mix64(seed);
        uint64_t share = seed % 8 == 0   ? 0
                         : seed % 8 == 1 ? bounds[r + 1] - bounds[r]
                                         : (seed >> 8) % (2 * n / ranks + 2);
        share = share < rest ? share : rest;
        target[r + 1] = target[r] + share;
        rest -= share;
    }
    kl_exchange_aim(&l->exchange, target);
}

void kl_rounds_refused(kilter_loop *l, const char *reason) {
    l->rounds.refused++;
    snprintf(l->rounds.decision, sizeof l->rounds.decision, "%s", reason);
    kl_loop_record_refused(l, reason);
}

static void follow(kilter_loop *l, const kl_steer_plan *plan) {
    kl_loop_rounds *r = &l->rounds;
    r->forecast_s = l->options.fixed ? plan->body_now_s : plan->body_then_s;
    if (l->options.fixed)
        return;
    kl_exchange_deepen(&l->exchange, plan->depth);
    if (!plan->move)
        return;
    kl_steer_commit(r->steer);
    kl_exchange_aim(&l->exchange, kl_steer_shares(r->steer));
    kl_since *since = &l->meter.since; /* what is measured from now on is about the new range */
    *since = (kl_since){.sweeps = since->sweeps, .moving_s = since->moving_s, .moved = since->moved};
}

/* The next report is due when left_s has passed. It comes sooner where reports cost little, and after not
 * more than half as many passes as there were, as the next ones may take longer. */
static void set_next(kl_loop_rounds *r, uint32_t ranks, double left_s, const kl_steer_plan *plan) {
    const kl_rank_report *first = &r->heard[kl_steer_clock(ranks, r->heard)];
    double passed_s = first->elapsed_s - r->heard_s;
    r->sweep_s = first->executions > 0 && passed_s > 0 ? passed_s / first->executions : 0;
    double pass_s = r->sweep_s / (double)r->passes;
    uint64_t hooks = kl_period_hooks(left_s, pass_s), known = 1 + r->passed / 2;
    uint64_t most = kl_report_hooks(r->interact_s, pass_s);
    uint64_t lag = plan && plan->lag_s > 0 && pass_s > 0 ? (uint64_t)ceil(plan->lag_s / pass_s) : 0;
    r->heard_s = first->elapsed_s;
    hooks = hooks < known ? hooks : known;
    r->adds_up = most < hooks;
    r->at = r->passed - 1 + (hooks < most ? hooks : most);
    if (plan && plan->move) /* what is measured begins anew */
        r->at += lag;
    r->due = r->at + 1 + lag;
    r->reported = false;
}

static uint64_t rescaled(const kl_loop_rounds *r, uint64_t pass, uint64_t passes) {
    if (pass <= r->passed)
        return pass;
    return r->passed + (uint64_t)ceil((double)(pass - r->passed) * (double)passes / (double)r->passes);
}

void kl_rounds_repass(kl_loop_rounds *r, uint64_t passes) {
    if (passes == r->passes)
        return;
    r->at = rescaled(r, r->at, passes);
    r->due = rescaled(r, r->due, passes);
    if (r->due <= r->at)
        r->due = r->at + 1;
    r->passes = passes;
}

void kl_report_add(kl_rank_report *sum, const kl_rank_report *last) {
    kl_rank_report before = *sum;
    *sum = *last;
    sum->executions += before.executions;
    sum->busy_s += before.busy_s;
    sum->iterations += before.iterations;
    sum->moving_s += before.moving_s;
    sum->moved += before.moved;
    if (last->boundary_s == 0)
        sum->boundary_s = before.boundary_s;
}

/* A rank that finds its iterations to differ says so at once. In the next round all ranks report what theirs
 * take. */
static void take_reports(kl_loop_rounds *r, const kl_group *g) {
    kl_group_spread(g, r->heard, report_bytes(r), sizeof *r->heard);
    for (uint32_t i = 0; i < g->ranks && !r->whole; i++)
        memset(r->heard[i].segments_s, 0, sizeof r->heard[i].segments_s);
    for (uint32_t i = 0; i < g->ranks; i++) {
        r->whole |= r->heard[i].segments > 0;
        kl_report_add(&r->all[i], &r->heard[i]);
    }
}

kilter_status kl_rounds_decide(kilter_loop *l, kl_steer_plan *plan, kilter_error *error) {
    kl_loop_rounds *r = &l->rounds;
    if (l->kind->learn)
        l->kind->learn(l);
    r->asked_s = r->all[kl_steer_clock(l->group.ranks, r->all)].elapsed_s;
    if (kl_steer_round(r->steer, r->all, plan) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "balancing loop '%s': memory ran out", l->group.name);
    r->period_s = plan->period.target_s;
    l->meter.all.rounds++;
    return KILTER_OK;
}

void kl_rounds_note(kilter_loop *l, const kl_steer_plan *plan) {
    kl_loop_rounds *r = &l->rounds;
    int at = snprintf(r->decision, sizeof r->decision, "%s", plan->judgement.reason);
    if (r->refused > 0)
        snprintf(r->decision + at, sizeof r->decision - (size_t)at,
                 "; refused before, as a rank had no memory for its rows: %llu move%s",
                 (unsigned long long)r->refused, r->refused == 1 ? "" : "s");
    kl_loop_record_round(l, r->all, plan);
    memset(r->all, 0, l->group.ranks * sizeof *r->all);
}

static kilter_status decide(kilter_loop *l, kilter_error *error) {
    kl_steer_plan plan;
    kilter_status status = kl_rounds_decide(l, &plan, error);
    if (status != KILTER_OK)
        return status;
    set_next(&l->rounds, l->group.ranks, l->rounds.period_s, &plan);
    follow(l, &plan);
    kl_rounds_note(l, &plan);
    return KILTER_OK;
}

/* The answer is waited for with the next exchange, as ranks wait for each other there anyway. */
static void put_off(kl_loop_rounds *r, const kl_exchange *x) {
    uint64_t next = r->passed + (x->moves || x->deepened ? 0 : x->ahead);
    if (r->due < next)
        r->due = next;
    else
        r->due += (x->depth - (r->due - next) % x->depth) % x->depth;
}

kilter_status kl_rounds_answer(kilter_loop *l, kilter_error *error) {
    kl_loop_rounds *r = &l->rounds;
    if (r->forced && r->passed > 0)
        force(l);
    if (!r->reported || r->passed < r->due)
        return KILTER_OK;
    double began_s = kl_loop_now_s(l);
    kilter_status status = kl_requests_await(&l->group, &r->requests, error);
    l->meter.all.waited_s += kl_loop_now_s(l) - began_s;
    if (status != KILTER_OK)
        return status;
    take_reports(r, &l->group);
    double now_s = r->heard[kl_steer_clock(l->group.ranks, r->heard)].elapsed_s;
    double left_s = r->period_s - (now_s - r->asked_s);
    if (!r->adds_up || left_s <= 0)
        status = decide(l, error);
    else
        set_next(r, l->group.ranks, left_s, NULL);
    put_off(r, &l->exchange);
    return status;
}

kilter_status kl_rounds_close(kilter_loop *l, kilter_error *error) {
    bool reported = l->rounds.reported;
    l->rounds.reported = false;
    return reported ? kl_requests_await(&l->group, &l->rounds.requests, error) : KILTER_OK;
}
