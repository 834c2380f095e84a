#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank/rank.h"

size_t kl_rounds_report_bytes(const kl_loop_rounds *r) {
    if (r->sized)
        return sizeof(kl_rank_report);
    return r->whole ? offsetof(kl_rank_report, row_bytes) : offsetof(kl_rank_report, segments_s);
}

/* --- opening --- */

void kl_rounds_free(kl_loop_rounds *r) {
    free(r->heard);
    free(r->all);
    kl_steer_free(r->steer);
}

/* Return whether the ranks report their rates to each other. There are no reports if there is only one rank,
 * or if a test forces moves. There are also none if nothing is decided from the rates and options.watched is
 * false. */
bool kl_rounds_wanted(const kl_rank *k) {
    bool chooses = !k->options.fixed || k->options.watched || (k->kind->prepare && k->options.block == 0);
    return k->layout.ranks > 1 && !k->rounds.forced && chooses;
}

bool kl_rounds_reserve(kl_loop_rounds *r, uint32_t ranks) {
    r->all = calloc(ranks, sizeof *r->all);
    r->heard = calloc(ranks, sizeof *r->heard);
    return r->all && r->heard;
}

/* Seconds that writing a byte of a row to new memory takes. Measured messages do not show this time, because
 * they use the same memory repeatedly. */
static const double NEW_BYTE_S = 2e-9;

/* Least seconds that a round of reports costs if ranks share cores. There, a rank that checks for reports may
 * give its core away, and get it back only after time slices of other processes. The measurement before the
 * first sweep does not show this. */
static const double CROWDED_REPORT_S = 5e-3;
/* Ranks that share cores wait for reports only some passes later, and at most CROWDED_LAG_S seconds later.
 * One of them may be some time slices ahead of another one. If a rank between these two waits for the report
 * of the later one, the earlier one must wait, too. */
static const double CROWDED_LAG_S = 0.1;
/* If ranks share cores, reports between decisions may take this part of the time, not counting the time
 * slices that reports may cost. */
static const double CROWDED_REPORT_PART = 0.02;

static kl_steer *new_steer(const kl_rank *k, double quantum_s) {
    const kl_loop_rounds *r = &k->rounds;
    double bytes = (double)kl_layout_row_bytes(&k->layout), byte_s = fmax(r->link.per_unit_s, NEW_BYTE_S);
    return kl_steer_new(&(kl_steer_options){
        .iterations = k->layout.iterations,
        .ranks = k->layout.ranks,
        .scattered = k->kind->anywhere,
        .buffers = k->kind->buffers && !k->options.fixed,
        .least = 1,
        .reach = k->layout.halo,
        .deepest = k->exchange.deepest,
        .interact_s = r->interact_s,
        .quantum_s = quantum_s,
        .crowded = r->crowded,
        .move = {r->interact_s + r->link.fixed_s, byte_s * bytes},
        .byte_s = byte_s,
    });
}

bool kl_rounds_open(kl_rank *k, const kl_messages *messages) {
    kl_loop_rounds *r = &k->rounds;
    memset(r->heard, 0, k->layout.ranks * sizeof *r->heard); /* clear `heard`, because measuring messages has
                                                                written into it */
    r->crowded = messages->crowded;
    r->report_s = messages->interact_s;
    r->interact_s = fmax(messages->interact_s, r->crowded ? CROWDED_REPORT_S : 0);
    r->link = messages->link;
    r->period_s = kl_period_of(r->interact_s, 0, messages->quantum_s).target_s;
    if (k->kind->prepare)
        k->kind->prepare(k);
    r->steer = new_steer(k, messages->quantum_s);
    k->meter.on = r->steer != NULL;
    return r->steer != NULL;
}

/* --- reports --- */

/* List the rows that are on this rank both before and after the exchange that may be under way. */
static bool list_present(kl_rank *k) {
    kl_ranges *present = &k->content.present;
    present->count = 0;
    return kl_ranges_add(present, kl_common(kl_layout_own(&k->layout), kl_layout_next(&k->layout)));
}

static kl_act hook(kl_rank *k, bool at_end) {
    kl_loop_rounds *r = &k->rounds;
    if (r->steer && r->reported)
        return kl_look(k, &r->set);
    if (!r->steer || r->passed != r->at || (!at_end && k->kind->pass_done(k) < 0.5))
        return KL_GO_ON;
    if (kl_meter_wants_quantum(&k->meter, k->now_s))
        return kl_ask(k, (kl_action){.act = KL_QUANTUM, .again = true});
    if (kl_content_unweighed(&k->content))
        return kl_content_weigh(k, list_present(k));
    if (k->action.untimed)
        return kl_ask(k, (kl_action){.act = KL_CLOCK, .again = true});
    r->mine = kl_meter_report(&k->meter, kl_layout_next(&k->layout), k->kind->sweep_done(k), k->now_s);
    kl_content_tell(&k->content, &k->layout, &r->mine);
    r->reported = true;
    return kl_ask(k, (kl_action){.act = KL_SHARE,
                                 .set = &r->set,
                                 .mine = &r->mine,
                                 .all = r->heard,
                                 .bytes = kl_rounds_report_bytes(r)});
}

kl_act kl_rounds_hook(kl_rank *k) {
    return hook(k, false);
}

kl_act kl_rounds_hook_at_end(kl_rank *k) {
    return hook(k, true);
}

/* --- answers --- */

/* For tests: choose random bounds. Sometimes a rank has no rows or all rows, or a bound does not move. A
 * deep loop gets a random depth, but not before each sweep, so that some halos serve several sweeps. */
static void force(kl_rank *k) {
    const uint64_t *bounds = k->layout.bounds;
    uint64_t *target = k->layout.target, ranks = k->layout.ranks;
    uint64_t seed = kl_mix64(k->rounds.seed + k->rounds.passed), n = k->layout.iterations, rest = n;
    if (k->exchange.deepest > 1 && seed % 4 > 0)
        return;
    kl_exchange_deepen(&k->exchange, 1 + (seed >> 8) % k->exchange.deepest);
    for (uint32_t r = 0; r + 1 < ranks; r++) {
        seed = kl_mix64(seed);
        uint64_t share = seed % 8 == 0   ? 0
                         : seed % 8 == 1 ? bounds[r + 1] - bounds[r]
                                         : (seed >> 8) % (2 * n / ranks + 2);
        share = share < rest ? share : rest;
        target[r + 1] = target[r] + share;
        rest -= share;
    }
    kl_exchange_aim(&k->exchange, target);
}

kl_act kl_rounds_refused(kl_rank *k, const char *reason) {
    kl_loop_rounds *r = &k->rounds;
    r->refused++;
    snprintf(r->decision, sizeof r->decision, "%s", reason);
    return kl_ask(k, (kl_action){.act = KL_REFUSED, .text = reason});
}

static void follow(kl_rank *k, const kl_steer_plan *plan) {
    kl_loop_rounds *r = &k->rounds;
    r->forecast_s = k->options.fixed ? plan->body_now_s : plan->body_then_s;
    if (k->options.fixed)
        return;
    kl_exchange_deepen(&k->exchange, plan->depth);
    if (!plan->move)
        return;
    kl_steer_commit(r->steer);
    kl_exchange_aim(&k->exchange, kl_steer_shares(r->steer));
    kl_meter_begin_anew(&k->meter);
}

/* Return the number of passes for which the ranks go on working before they wait for each other's reports.
 * After ranks − 1 passes all reports have come if ranks exchange halos in each pass. Wait at
 * most for half as many passes as there were so far, because the next passes may take longer. */
static uint64_t lag_passes(const kl_loop_rounds *r, uint32_t ranks, double pass_s,
                           const kl_steer_plan *plan) {
    double lag_s = plan ? plan->lag_s : 0;
    if (pass_s <= 0)
        return 0;
    double most = fmin(ranks - 1, floor(0.5 * (double)r->passed));
    double crowded = r->crowded ? fmin(most, floor(CROWDED_LAG_S / pass_s)) : 0;
    return (uint64_t)fmax(ceil(lag_s / pass_s), crowded);
}

/* Limits for the number of passes between two reports of ranks that share cores. The limit is AFTER_MOVE if
 * rows move now, ON_FREE_CORES if all rows are on free cores and other cores are loaded, and otherwise
 * ANYWHERE. */
enum { AFTER_MOVE = 16, ANYWHERE = 128, ON_FREE_CORES = 1024 };

uint64_t kl_rounds_limit(const kl_layout *layout, const kl_rank_report *heard, bool moves) {
    bool loaded = false, exposed = false;
    uint32_t busy = 0; /* number of ranks with rows */
    for (uint32_t i = 0; i < layout->ranks; i++) {
        bool works = !kl_is_empty(kl_range_of(layout->target, i));
        loaded |= kl_meter_is_loaded(heard[i].share);
        exposed |= works && kl_meter_is_slow(heard[i].share);
        busy += works;
    }
    return busy <= 1 ? UINT64_MAX : moves ? AFTER_MOVE : loaded && !exposed ? ON_FREE_CORES : ANYWHERE;
}

/* Return the greatest number of passes until the next report. Passes may become far longer where ranks share
 * cores: if another process begins to use a core, a pass may take a time slice. So the report comes soon
 * there, unless reports would cost too much. */
static uint64_t most_passes(const kl_rank *k, double pass_s) {
    const kl_loop_rounds *r = &k->rounds;
    uint64_t most = kl_report_hooks(r->interact_s, pass_s);
    if (!r->crowded || k->options.fixed)
        return most;
    uint64_t limit = kl_rounds_limit(&k->layout, r->heard, k->exchange.moves);
    uint64_t cheap = kl_period_hooks(r->report_s / CROWDED_REPORT_PART, pass_s);
    cheap = k->exchange.moves ? 1 : cheap < ON_FREE_CORES ? cheap : ON_FREE_CORES;
    limit = limit > cheap ? limit : cheap;
    return most < limit ? most : limit;
}

/* Choose the pass of the next report. The report comes left_s seconds from now, or sooner if reports cost
 * little. Skip at most half as many passes as there were so far, because the next passes may take longer than
 * expected. */
static void set_next(kl_rank *k, double left_s, const kl_steer_plan *plan) {
    kl_loop_rounds *r = &k->rounds;
    uint32_t ranks = k->layout.ranks;
    const kl_rank_report *first = &r->heard[kl_steer_clock(ranks, r->heard)];
    double passed_s = first->elapsed_s - r->heard_s;
    r->sweep_s = first->executions > 0 && passed_s > 0 ? passed_s / first->executions : 0;
    double pass_s = r->sweep_s / (double)r->passes;
    uint64_t hooks = kl_period_hooks(left_s, pass_s), known = 1 + r->passed / 2;
    uint64_t most = most_passes(k, pass_s), lag = lag_passes(r, ranks, pass_s, plan);
    r->heard_s = first->elapsed_s;
    hooks = hooks < known ? hooks : known;
    r->adds_up = most < hooks;
    r->at = r->passed - 1 + (hooks < most ? hooks : most);
    if (plan && plan->move) /* wait longer after a move, because measurements begin anew */
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

static void add_report(kl_rank_report *sum, const kl_rank_report *last) {
    kl_rank_report before = *sum;
    *sum = *last;
    sum->executions += before.executions;
    sum->busy_s += before.busy_s;
    sum->iterations += before.iterations;
    sum->moving_s += before.moving_s;
    sum->moved += before.moved;
    sum->moved_bytes += before.moved_bytes;
    if (last->row_bytes == 0)
        sum->row_bytes = before.row_bytes;
    if (last->boundary_s == 0)
        sum->boundary_s = before.boundary_s;
}

void kl_rounds_spread(void *all, size_t bytes, size_t apart, uint32_t ranks) {
    for (size_t r = ranks; r-- > 0;)
        memmove((char *)all + r * apart, (char *)all + r * bytes, bytes);
}

void kl_rounds_add(kl_loop_rounds *r, const kl_rank_report *first, size_t apart, uint32_t ranks) {
    if (r->decided)
        memset(r->all, 0, ranks * sizeof *r->all);
    r->decided = false;
    for (uint32_t i = 0; i < ranks; i++)
        add_report(&r->all[i], (const kl_rank_report *)(const void *)((const char *)first + i * apart));
}

bool kl_rounds_decide(kl_rank *k) {
    kl_loop_rounds *r = &k->rounds;
    if (k->kind->learn)
        k->kind->learn(k);
    r->asked_s = r->all[kl_steer_clock(k->layout.ranks, r->all)].elapsed_s;
    if (kl_steer_round(r->steer, r->all, &r->plan) != KILTER_OK)
        return false;
    r->period_s = r->plan.period.target_s;
    k->meter.all.rounds++;
    return true;
}

void kl_rounds_note(kl_loop_rounds *r) {
    int at = snprintf(r->decision, sizeof r->decision, "%s", r->plan.judgement.reason);
    if (r->refused > 0)
        snprintf(r->decision + at, sizeof r->decision - (size_t)at,
                 "; %llu earlier move%s refused, because a rank had no memory for its rows",
                 (unsigned long long)r->refused, r->refused == 1 ? "" : "s");
    r->decided = true;
}

static kl_act decide(kl_rank *k) {
    kl_loop_rounds *r = &k->rounds;
    if (!kl_rounds_decide(k))
        return kl_ask(k, (kl_action){.act = KL_FAIL, .text = "balancing"});
    follow(k, &r->plan);
    set_next(k, r->period_s, &r->plan); /* after follow(), because it depends on where rows will be */
    kl_rounds_note(r);
    return kl_ask(k, (kl_action){.act = KL_RECORD});
}

static kl_act act_on_reports(kl_rank *k) {
    kl_loop_rounds *r = &k->rounds;
    kl_act action = KL_GO_ON;
    /* A rank whose iterations differ in cost says so in its report. From the next round on, all ranks then
     * report the times of segments (parts of their rows). */
    kl_rounds_spread(r->heard, kl_rounds_report_bytes(r), sizeof *r->heard, k->layout.ranks);
    for (uint32_t i = 0; i < k->layout.ranks && !r->whole; i++)
        memset(r->heard[i].segments_s, 0, sizeof r->heard[i].segments_s);
    for (uint32_t i = 0; i < k->layout.ranks && !r->sized; i++)
        r->heard[i].row_bytes = r->heard[i].moved_bytes = 0;
    for (uint32_t i = 0; i < k->layout.ranks; i++)
        r->whole |= r->heard[i].segments > 0;
    k->meter.uneven |= r->whole;
    kl_rounds_add(r, r->heard, sizeof *r->heard, k->layout.ranks);
    double now_s = r->heard[kl_steer_clock(k->layout.ranks, r->heard)].elapsed_s;
    double left_s = r->period_s - (now_s - r->asked_s);
    if (!r->adds_up || left_s <= 0)
        action = decide(k);
    else
        set_next(k, left_s, NULL);
    /* Let the rank wait for the reports of all ranks just before an exchange, because there the ranks wait
     * for each other in any case. */
    uint64_t next = r->passed + (k->exchange.moves || k->exchange.deepened ? 0 : k->exchange.ahead);
    if (r->due < next)
        r->due = next;
    else
        r->due += (k->exchange.depth - (r->due - next) % k->exchange.depth) % k->exchange.depth;
    return action;
}

kl_act kl_rounds_answer(kl_rank *k) {
    kl_loop_rounds *r = &k->rounds;
    if (r->forced && r->passed > 0 && !k->options.leader)
        force(k);
    if (!r->reported || r->passed < r->due)
        return KL_GO_ON;
    if (!r->awaited) {
        r->awaited = true;
        r->awaited_s = k->now_s;
        return kl_ask(k, (kl_action){.act = KL_AWAIT, .set = &r->set, .again = true});
    }
    r->awaited = false;
    k->meter.all.waited_s += k->now_s - r->awaited_s;
    return act_on_reports(k);
}
