/* One loop's balancing: reports of a round in, a plan out.
 *
 * What the present speeds are worth moving for follows from how long they lasted before. Whether other shares
 * would have been better is asked of all that speeds have been since the last movement, so that under a load
 * that comes and goes too fast to follow, iterations end up where they lose least in the mean. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "steer/loads.h"
#include "steer/proof.h"
#include "steer/slices.h"

enum {
    CANDIDATES = KL_STATES + 3, /* best for the present, for each state, for their mean; equal shares */
    REACTS = 4,                 /* rounds from a change to a movement */
    RECALLS = 3,                /* of a change to a state that is known */
    CYCLE = 3,                  /* visits */
    BINS_MOST = 4096,
    FIRST_ROUNDS = 3, /* before that, caches and pages are what is measured */
};
static const double AVERAGED_PART = 0.98; /* less saved by averaging is no reason to */
static const double AHEAD_LOST = 2.0 / 3; /* 0.63 to 0.75 as simulated */
static const double AVERAGED_MOST = 1.15; /* worse shares for what was measured are none for the mean */
static const double TRUST = 0.5;          /* in new costs along the index */
static const double MOVE_H = 0.5;         /* in the old cost of movements */
static const double PACE_H = 0.97;        /* of what was, in the mean pace */
static const double CORE_CHANGED =
    0.2;                              /* a rank gets so much more or less of its core: that is another load */
static const double SAME_PART = 0.08; /* of all iterations: a choice that stands follows no smaller changes */
static const double TRY_TAKES = 3;    /* rounds, of equal shares to see what they take */
static const double WORTH_TRYING = 0.97; /* of the best so far: what takes more by the speeds is not tried */
static const double PERIOD_PART = 0.2;   /* losses below so much of a period are not told from noise */

/* Where iterations lie: bounds, or shares if scattered; ranks + 1 numbers. */
typedef uint64_t place;

struct kl_steer {
    kl_steer_options options;
    double now_s, step_s; /* step: since the last round */
    double round_s;       /* from this round to the next */
    double executions;    /* in the last step */
    double as_before;     /* of them, while iterations lay as before the last movement */
    bool moved;           /* since the last round */
    double lag_s;         /* loads are averaged over: see `averaging`; 0: they are followed */
    bool forgets;         /* what is known of loads, after this round */
    double refill;        /* part of an execution that a pipeline takes to run dry and fill again */
    kl_costs costs;       /* ranged; none until somebody measures them */
    kl_loads loads;
    double *core,
        *core_then; /* share of its core that each rank gets, and got when choices began to be tried */
    kl_slices slices;
    uint64_t depth; /* of its choice KL_CHOICE_DEEP */
    bool unplaced;  /* iterations do not lie as its choice says: the one before could not be had */
    double *scratch;
    double per_move_s; /* of an iteration of the busiest rank */
    double movement_s; /* of the last movements, mean */
    place *here, *previous, *equal;
    place *barred; /* could not be had */
    bool is_barred;
    place *candidates[CANDIDATES], *spare, *left, *halves[2];
    double cycle_s;  /* of a swing */
    place *proposed; /* one of them; NULL: none */
    kl_transfer *transfers;
    double gain_s; /* forecast of what is proposed */
    kl_account account;
    kl_proof proof;
    place *kept;   /* where iterations lay before equal shares were tried */
    place *anchor; /* where iterations lay when the account had its last word */
    double anchor_came_s, equal_came_s, least_came_s; /* since then: saved against the anchor, against equal
                                                         shares, and the lesser of both */
    bool retreats;                                    /* to equal shares, to rest there */
    double lately_s, lately_equal; /* of time, and of executions that equal shares would have done in it */
    double unpaid_s, due_s;        /* of what movements cost: while they are not judged, and now */
    bool open;                     /* a movement is not judged yet */
    double open_forecast_s, open_came_s, open_cost_s;
};

static double larger(double a, double b) {
    return a > b ? a : b;
}

static double smaller(double a, double b) {
    return a < b ? a : b;
}

static void put(const kl_steer *s, place *to, const place *from) {
    memcpy(to, from, (s->options.ranks + 1) * sizeof *to);
}

/* --- what an execution takes, and moving --- */

static double work_of(const kl_steer *s, const place *at, uint32_t r) {
    return s->options.scattered ? (double)at[r] : kl_costs_work(&s->costs, (kl_span){at[r], at[r + 1]});
}

/* Of the rank that ends last; in units of work over units of `speed`. */
static double time_with(const kl_steer *s, const place *at, const double *speed) {
    double most = 0;
    for (uint32_t r = 0; r < s->options.ranks; r++) {
        double time = work_of(s, at, r) / speed[r];
        most = time > most ? time : most;
    }
    return most;
}

static kilter_status best_for(const kl_steer *s, const double *speed, place *at) {
    const kl_steer_options *o = &s->options;
    if (!o->scattered)
        return kl_bounds(&s->costs, o->ranks, speed, o->least, at);
    at[o->ranks] = 0;
    return kl_shares(o->iterations, o->ranks, speed, o->least, at);
}

/* By what speeds are believed to be. */
static double execution_s(const kl_steer *s, const place *at) {
    return s->loads.mean_speed > 0 ? time_with(s, at, kl_loads_present(&s->loads)) / s->loads.mean_speed : 0;
}

static double move_s(const kl_steer *s, const place *after) {
    uint32_t ranks = s->options.ranks;
    uint64_t busiest = s->options.scattered ? kl_transfers_busiest(ranks, s->here, after)
                                            : kl_flow_busiest(ranks, s->here, after);
    return s->options.move.fixed_s + s->per_move_s * (double)busiest + s->refill * execution_s(s, s->here);
}

/* Scattered: iterations that change hands; ranged: over each bound that moves. */
static uint64_t volume(const kl_steer *s, const place *after) {
    uint64_t sum = 0;
    for (uint32_t r = 0; r < s->options.ranks; r++)
        sum += after[r] > s->here[r]  ? after[r] - s->here[r]
               : s->options.scattered ? 0
                                      : s->here[r] - after[r];
    return sum;
}

/* --- what reports say --- */

/* What the last step's executions took at the speeds measured in it. A movement is carried out after the
 * report that it was decided by: until then iterations lay as before. */
static double computed_s(const kl_steer *s) {
    return s->as_before * time_with(s, s->previous, s->loads.raw) +
           (s->executions - s->as_before) * time_with(s, s->here, s->loads.raw);
}

/* The one that moved longest; they move side by side. */
static double learn_movements(kl_steer *s, const kl_rank_report *reports) {
    const kl_rank_report *longest = &reports[0];
    for (uint32_t r = 1; r < s->options.ranks; r++)
        if (reports[r].moving_s > longest->moving_s ||
            (reports[r].moving_s == longest->moving_s && reports[r].moved > longest->moved))
            longest = &reports[r];
    double spent_s = longest->moving_s > 0 ? longest->moving_s : 0,
           over_s = spent_s - s->options.move.fixed_s;
    if (longest->moved > 0) {
        s->per_move_s =
            (1 - MOVE_H) * (over_s > 0 ? over_s : 0) / (double)longest->moved + MOVE_H * s->per_move_s;
    }
    if (s->moved)
        spent_s += s->refill * execution_s(s, s->here);
    if (longest->moved > 0)
        s->movement_s = s->movement_s > 0 ? (1 - MOVE_H) * spent_s + MOVE_H * s->movement_s : spent_s;
    return spent_s;
}

/* The longest that anybody has: all wait for the rank whose rate is the least certain. */
static void learn_quantum(kl_steer *s, const kl_rank_report *reports) {
    double longest_s = 0;
    for (uint32_t r = 0; r < s->options.ranks; r++)
        longest_s = reports[r].quantum_s > longest_s ? reports[r].quantum_s : longest_s;
    if (longest_s > 0)
        s->options.quantum_s = longest_s;
}

static void learn_cores(kl_steer *s, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < s->options.ranks; r++)
        s->core[r] = reports[r].share > 0 ? reports[r].share : 1;
}

static bool tells_costs(const kl_rank_report *report) {
    for (int i = 0; i < KL_SEGMENTS; i++)
        if (report->segments && report->segments_s[i] > 0)
            return true;
    return false;
}

static bool anybody_tells_costs(const kl_steer *s, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < s->options.ranks; r++)
        if (tells_costs(&reports[r]))
            return true;
    return false;
}

static kilter_status forget_loads(kl_steer *s) {
    uint64_t round = s->loads.round;
    kl_loads_free(&s->loads);
    kilter_status status = kl_loads_init(&s->loads, s->options.ranks);
    s->loads.round = round;
    s->forgets = false;
    return status;
}

/* What was learnt of speeds took a dear range for a slow rank's, and is forgotten. */
static kilter_status begin_costs(kl_steer *s, const kl_rank_report *reports) {
    const kl_steer_options *o = &s->options;
    uint64_t bins = (uint64_t)KL_SEGMENTS * o->ranks;
    double(*segments_s)[KL_SEGMENTS] = malloc(o->ranks * sizeof *segments_s);
    kilter_status status = segments_s ? KILTER_OK : KILTER_ERR_MEMORY;
    if (status == KILTER_OK)
        status = kl_costs_init(&s->costs, o->iterations, bins < BINS_MOST ? (uint32_t)bins : BINS_MOST);
    for (uint32_t r = 0; r < o->ranks && status == KILTER_OK; r++)
        memcpy(segments_s[r], reports[r].segments_s, sizeof *segments_s);
    if (status == KILTER_OK) {
        kl_costs_join(&s->costs, o->ranks, s->here, (const double(*)[KL_SEGMENTS])segments_s);
        for (uint32_t r = 0; r < o->ranks; r++)
            kl_costs_learn(&s->costs, (kl_span){reports[r].lo, reports[r].hi}, reports[r].segments_s, 1);
        status = forget_loads(s);
    }
    free(segments_s);
    return status;
}

static kilter_status learn_costs(kl_steer *s, const kl_rank_report *reports) {
    if (s->options.scattered)
        return KILTER_OK;
    if (!s->costs.cost)
        return anybody_tells_costs(s, reports) ? begin_costs(s, reports) : KILTER_OK;
    for (uint32_t r = 0; r < s->options.ranks; r++)
        if (reports[r].segments)
            kl_costs_learn(&s->costs, (kl_span){reports[r].lo, reports[r].hi}, reports[r].segments_s, TRUST);
    return KILTER_OK;
}

/* Work per second in the body; 0: not measured. */
static double rate_of(const kl_steer *s, const kl_rank_report *report) {
    if (!(report->busy_s > 0) || report->iterations == 0)
        return 0;
    kl_span range = {report->lo, report->hi};
    double each = 1;
    if (!s->options.scattered && range.lo < range.hi && range.hi <= s->options.iterations)
        each = kl_costs_work(&s->costs, range) / (double)(range.hi - range.lo);
    return (double)report->iterations * each / report->busy_s;
}

static bool learn_speeds(kl_steer *s, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < s->options.ranks; r++)
        s->scratch[r] = rate_of(s, &reports[r]);
    return kl_loads_measure(&s->loads, s->scratch);
}

/* --- what would have been better --- */

/* Part of the elapsed time that follows from the shares: the rest is messages and whatever else. */
static double share_of_time(const kl_steer *s) {
    double compute_s = computed_s(s);
    return s->executions > 0 && s->step_s > 0 && compute_s < s->step_s ? compute_s / s->step_s : 1;
}

/* Executions, in parts: done where iterations lie, and what would have been where they might. */
typedef struct tally {
    double elapsed_s, done, would;
} tally;

static tally each_second(const kl_steer *s, const place *after, const double *speed, double level) {
    return (tally){1, level / time_with(s, s->here, speed), level / time_with(s, after, speed)};
}

static void count(tally *t, const tally *each, double elapsed_s) {
    t->elapsed_s += elapsed_s;
    t->done += elapsed_s * each->done;
    t->would += elapsed_s * each->would;
}

/* Elapsed time that would have been enough for what was done: loads come and go by the clock, not by what is
 * done. */
static double saved_s(const tally *t) {
    return t->would > 0 ? t->elapsed_s * (1 - t->done / t->would) : 0;
}

/* When a state began is known to a round. */
static double part_apart(const kl_steer *s, const place *after) {
    const double *speed = kl_loads_present(&s->loads);
    double now = time_with(s, s->here, speed), then = time_with(s, after, speed);
    return then < now ? 1 - then / now : 1 - now / then;
}

/* Saved if it had been moved at the best moment since the last movement. `cycles`: speeds come and go, and
 * what counts is what a whole cycle of states has saved, wherever it is cut: two visits to one state for one
 * to another, and the other way round. */
static double lost_s(const kl_steer *s, const place *after, bool cycles) {
    const kl_loads *l = &s->loads;
    double most_s = 0, last_s = 0, doubt_s = s->round_s * part_apart(s, after);
    tally since = {0}, pending = each_second(s, after, l->speed, l->mean_speed), each[KL_STATES];
    bool known[KL_STATES] = {false};
    uint32_t visits = l->unsettled > 0, least = cycles ? CYCLE : 0;
    count(&since, &pending, l->pending_s);
    if (!cycles)
        most_s = larger(most_s, saved_s(&since));
    for (uint32_t i = l->visit_count; i-- > 0;) {
        uint32_t state = l->visits[i].state;
        double before_s = last_s;
        if (!known[state])
            each[state] = each_second(s, after, l->states[state].speed, l->states[state].level);
        known[state] = true;
        count(&since, &each[state], l->visits[i].stayed_s);
        last_s = saved_s(&since);
        if (++visits >= least)
            most_s = larger(most_s, cycles ? smaller(before_s, last_s) - doubt_s * sqrt(visits) : last_s);
    }
    return most_s * share_of_time(s);
}

static double stayed_s(const kl_loads *l, uint32_t state) {
    double sum_s = 0;
    for (uint32_t i = 0; i < l->visit_count; i++)
        sum_s += l->visits[i].state == state ? l->visits[i].stayed_s : 0;
    return sum_s;
}

/* The first is the best for the present. */
static kilter_status find_candidates(kl_steer *s, uint32_t *count) {
    const kl_loads *l = &s->loads;
    uint32_t n = 0, lived = l->unsettled > 0;
    kilter_status status = best_for(s, kl_loads_present(l), s->candidates[n++]);
    for (uint32_t r = 0; r < l->ranks; r++)
        s->scratch[r] = l->pending_s * l->mean_speed * l->speed[r];
    for (uint32_t i = 0; i < KL_STATES && status == KILTER_OK; i++) {
        double weight = stayed_s(l, i) * l->states[i].level;
        if (weight <= 0)
            continue;
        lived++;
        for (uint32_t r = 0; r < l->ranks; r++)
            s->scratch[r] += weight * l->states[i].speed[r];
        if (i != l->here || l->unsettled > 0)
            status = best_for(s, l->states[i].speed, s->candidates[n++]);
    }
    if (status == KILTER_OK && lived > 1) {
        status = best_for(s, s->scratch, s->candidates[n++]);
        put(s, s->candidates[n++], s->equal);
    }
    *count = n;
    return status;
}

/* --- what is known of the future --- */

/* What the next state, whose best shares are the spare ones, is expected to cost because iterations lie as
 * `at`: following it, or bearing it. */
static double next_state_s(const kl_steer *s, const kl_state *next, const place *at, double moving_s) {
    double part = 1 - time_with(s, s->spare, next->speed) / time_with(s, at, next->speed);
    double followed_s = moving_s + REACTS * s->round_s * part, borne_s = next->lasts_s * part;
    if (part <= 0)
        return 0;
    return next->lasts_s > 0 && borne_s < followed_s ? borne_s : followed_s;
}

/* After the present state comes the one before it: there are seldom more than two. */
static const kl_state *next_state(const kl_loads *l) {
    const kl_state *next = NULL;
    for (uint32_t i = 0; i < KL_STATES; i++)
        if (i != l->here && l->states[i].seen > 0 && (!next || l->states[i].seen > next->seen))
            next = &l->states[i];
    return next;
}

static double back_s(const kl_steer *s, const place *after, double moving_s) {
    const kl_state *next = next_state(&s->loads);
    if (!next || best_for(s, next->speed, s->spare) != KILTER_OK)
        return moving_s;
    double more_s = next_state_s(s, next, after, moving_s) - next_state_s(s, next, s->here, moving_s);
    return more_s > 0 ? more_s : 0;
}

/* Speeds like these, or those they are on their way to, have been seen to end by themselves. */
static bool comes_and_goes(const kl_loads *l) {
    if (l->unsettled == 0)
        return kl_loads_lasts_s(l) > 0;
    for (uint32_t i = 0; i < KL_STATES; i++)
        if (i != l->here && l->states[i].lasts_s > 0)
            return true;
    return false;
}

static kl_prospect prospect_of(const kl_steer *s, const place *after, bool cycles) {
    return (kl_prospect){.now_s = execution_s(s, s->here),
                         .then_s = execution_s(s, after),
                         .lasted_s = kl_loads_lasted_s(&s->loads, s->now_s) * share_of_time(s),
                         .lost_s = lost_s(s, after, cycles),
                         .move_s = move_s(s, after)};
}

/* With the best shares for the present. On the way to another state there is nothing to foresee from. */
static kl_prospect foresee(const kl_steer *s, bool cycles) {
    const kl_loads *l = &s->loads;
    kl_prospect p = prospect_of(s, s->candidates[0], cycles);
    p.lasts_s = l->unsettled > 0 ? 0 : kl_loads_lasts_s(l) * share_of_time(s);
    p.back_s = p.lasts_s > 0 ? back_s(s, s->candidates[0], p.move_s) : 0;
    return p;
}

/* --- averaging: where ranks may be ahead of each other --- */

typedef struct half { /* of a swing */
    const kl_state *state;
    double lasts_s;
    place *best;
} half;

static double rate_in(const kl_steer *s, const half *h, const place *at) {
    return h->state->level / time_with(s, at, h->state->speed);
}

/* Seconds of an execution in the mean of both halves. */
static double stay_s(const kl_steer *s, const half h[2], const place *at) {
    return (h[0].lasts_s + h[1].lasts_s) /
           (h[0].lasts_s * rate_in(s, &h[0], at) + h[1].lasts_s * rate_in(s, &h[1], at));
}

static double follow_s(const kl_steer *s, const half h[2], double moving_s) {
    double done = 0;
    for (int i = 0; i < 2; i++) {
        double late_s = smaller(RECALLS * s->round_s, h[i].lasts_s);
        done += late_s * rate_in(s, &h[i], h[1 - i].best) +
                larger(0, h[i].lasts_s - late_s - moving_s) * rate_in(s, &h[i], h[i].best);
    }
    return (h[0].lasts_s + h[1].lasts_s) / done;
}

/* With shares for the mean of speeds, where a rank that is fast now works ahead for when it is slow. It has
 * nothing ahead when an execution begins, and loses a part of what it would gather in a half. */
static double averaged_s(const kl_steer *s, const half h[2], const place *at, const double *mean) {
    double pace_s = time_with(s, at, mean), ahead_s = 0;
    for (int i = 0; i < 2; i++)
        ahead_s = larger(ahead_s, h[i].lasts_s * (1 - pace_s * rate_in(s, &h[i], at)));
    return pace_s + AHEAD_LOST * ahead_s;
}

/* Speeds swing between two states, and shares for their mean take less than staying or following would. Their
 * place is the spare one. */
static bool averaging(kl_steer *s, kl_prospect *p) {
    const kl_loads *l = &s->loads;
    const kl_state *here = &l->states[l->here], *next = next_state(l);
    if (!s->options.buffers || l->unsettled > 0 || here->ended == 0 || !next || next->ended == 0)
        return false;
    half h[2] = {{here, here->lasts_s, s->halves[0]}, {next, next->lasts_s, s->halves[1]}};
    double cycle_s = h[0].lasts_s + h[1].lasts_s;
    for (uint32_t r = 0; r < l->ranks; r++)
        s->scratch[r] =
            (h[0].lasts_s * here->level * here->speed[r] + h[1].lasts_s * next->level * next->speed[r]) /
            cycle_s;
    if (best_for(s, here->speed, h[0].best) != KILTER_OK ||
        best_for(s, next->speed, h[1].best) != KILTER_OK || best_for(s, s->scratch, s->spare) != KILTER_OK)
        return false;
    const place *places[] = {s->here, s->equal, s->spare, h[0].best, h[1].best};
    p->move_s = move_s(s, s->spare);
    p->now_s = follow_s(s, h, larger(p->move_s, s->movement_s));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        p->now_s = smaller(p->now_s, stay_s(s, h, places[i]));
    p->then_s = averaged_s(s, h, s->spare, s->scratch);
    p->lasted_s = (double)here->ended * h[0].lasts_s + (double)next->ended * h[1].lasts_s;
    p->lost_s = p->lasted_s * (1 - p->then_s / p->now_s) * share_of_time(s);
    s->cycle_s = cycle_s;
    return p->then_s < AVERAGED_PART * p->now_s;
}

/* The mean over a cycle and more has changed, or what was measured is far from what iterations lie for. */
static bool no_mean(kl_steer *s) {
    if (s->lag_s == 0 || best_for(s, s->loads.raw, s->spare) != KILTER_OK)
        return false;
    return s->loads.dwells > 0 ||
           time_with(s, s->here, s->loads.raw) > AVERAGED_MOST * time_with(s, s->spare, s->loads.raw);
}

/* --- the decision --- */

static bool is_move(const kl_judgement *j) {
    return j->verdict == KL_MOVE_FORESIGHT || j->verdict == KL_MOVE_HINDSIGHT;
}

/* What was measured last may be the first of a change: whoever moves then is late for what was, and early for
 * what comes. */
static bool belied(const kl_steer *s, const place *after) {
    return time_with(s, after, s->loads.raw) >= time_with(s, s->here, s->loads.raw);
}

/* Is it worth moving, and no mistake? */
static bool worth(const kl_steer *s, const place *after, const kl_prospect *p, kl_judgement *j) {
    double uncertain = kl_loads_uncertain(&s->loads);
    kl_whether(p, j);
    if (!is_move(j))
        return false;
    if (belied(s, after)) {
        j->verdict = KL_STAY_WAITING;
        snprintf(j->reason, sizeof j->reason,
                 "an execution could take %s instead of %s, but not at the speeds measured last",
                 kl_say_s(p->then_s).text, kl_say_s(p->now_s).text);
        return false;
    }
    if (s->loads.round >= FIRST_ROUNDS && 1 - p->then_s / p->now_s > uncertain)
        return true;
    j->verdict = KL_STAY_BALANCED;
    snprintf(j->reason, sizeof j->reason,
             "balanced as far as is known: %s in an execution of %s may be noise (%.2g %%)",
             kl_say_s(p->now_s - p->then_s).text, kl_say_s(p->now_s).text, 100 * uncertain);
    return false;
}

static void adopt(kl_steer_plan *plan, const kl_prospect *p, const kl_judgement *j) {
    plan->now_s = p->now_s;
    plan->then_s = p->then_s;
    plan->judgement = *j;
}

static void choose(kl_steer *s, uint32_t count, kl_steer_plan *plan) {
    bool cycles = comes_and_goes(&s->loads); /* what one visit has cost is no reason: see foresight */
    kl_prospect p = foresee(s, cycles);
    kl_judgement j;
    if (worth(s, s->candidates[0], &p, &j))
        s->proposed = s->candidates[0];
    adopt(plan, &p, &j);
    if (j.verdict == KL_MOVE_FORESIGHT)
        return;
    double most_s = s->proposed ? p.lost_s - p.move_s : 0;
    for (uint32_t i = 1; i < count; i++) {
        p = prospect_of(s, s->candidates[i], cycles);
        if (p.lost_s - p.move_s > most_s && worth(s, s->candidates[i], &p, &j)) {
            most_s = p.lost_s - p.move_s;
            s->proposed = s->candidates[i];
            adopt(plan, &p, &j);
        }
    }
}

/* What could not be had is not asked for again until something else is wanted. */
static bool still_barred(const kl_steer *s) {
    uint64_t tolerance = s->options.iterations / s->options.ranks / 10;
    for (uint32_t r = 0; s->is_barred && r <= s->options.ranks; r++) {
        uint64_t a = s->proposed[r], b = s->barred[r];
        if ((a > b ? a - b : b - a) > tolerance)
            return false;
    }
    return s->is_barred;
}

static void stay(kl_steer *s, kl_verdict verdict, kl_steer_plan *plan) {
    s->proposed = NULL;
    plan->judgement.verdict = verdict;
}

/* Lately it would have been better never to have moved: rest where the loop began. */
static void retreat(kl_steer *s, const char *rest_begins, kl_steer_plan *plan) {
    kl_judgement *j = &plan->judgement;
    kl_prospect p = prospect_of(s, s->equal, false);
    *j = (kl_judgement){.verdict = KL_MOVE_HINDSIGHT, .cost_s = p.move_s};
    snprintf(j->reason, sizeof j->reason, "%.120s; meanwhile equal shares", rest_begins);
    plan->now_s = p.now_s;
    plan->then_s = p.then_s;
    s->proposed = s->equal;
}

/* Reports that come once a cycle are means; what was known of states is not. */
static void average(kl_steer *s, kl_steer_plan *plan) {
    kl_prospect p = {0};
    if (no_mean(s)) {
        s->lag_s = 0;
        s->forgets = true;
    } else if (s->lag_s == 0 && averaging(s, &p) && p.lost_s >= p.move_s) {
        s->lag_s = s->cycle_s;
        s->forgets = true;
        s->proposed = volume(s, s->spare) > 0 ? s->spare : NULL;
        kl_judgement j = {.verdict = s->proposed ? KL_MOVE_HINDSIGHT : KL_STAY_BALANCED,
                          .gain_s = (1 - p.then_s / p.now_s) * p.lasted_s,
                          .cost_s = p.move_s};
        snprintf(j.reason, sizeof j.reason,
                 "speeds swing every %s: with shares for their mean, and ranks ahead of each other, an "
                 "execution takes %s "
                 "instead of %s",
                 kl_say_s(s->cycle_s).text, kl_say_s(p.then_s).text, kl_say_s(p.now_s).text);
        adopt(plan, &p, &j);
    }
}

/* --- executions shorter than slices --- */

static kilter_status place_of_choice(kl_steer *s, int choice, double execution_s, place *at) {
    const double *speed = kl_loads_present(&s->loads);
    uint32_t ranks = s->options.ranks;
    if (choice == KL_CHOICE_EQUAL) {
        put(s, at, s->equal);
        return KILTER_OK;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        double part = !kl_slices_shared(s->core[r]) ? 1
                      : choice == KL_CHOICE_OUT     ? 0
                      : choice == KL_CHOICE_LESS
                          ? kl_slices_part(execution_s, s->options.quantum_s, s->core[r])
                          : 1;
        s->scratch[r] = part * speed[r];
    }
    kilter_status status = kl_bounds(&s->costs, ranks, s->scratch, choice != KL_CHOICE_OUT, at);
    if (status == KILTER_ERR_RANGE) { /* all share their cores: nobody can be left out */
        put(s, at, s->equal);
        status = KILTER_OK;
    }
    return status;
}

static const char *const choice_names[KL_CHOICES] = {"equal shares", "shares in proportion",
                                                     "less on shared cores", "nothing on shared cores",
                                                     "halos of several executions at once"};
static const char *const short_names[KL_CHOICES] = {"equal", "in proportion", "less", "nothing", "halos"};

static void say_choice(const kl_steer *s, double execution_s, char *reason) {
    const kl_slices *c = &s->slices;
    const char *name = choice_names[c->choice], *before = "; tried: ";
    kl_time_text slice = kl_say_s(s->options.quantum_s);
    if (!c->holds) {
        snprintf(reason, KL_REASON_BYTES, "trying %s: an execution of %s is short for slices of %s", name,
                 kl_say_s(execution_s).text, slice.text);
        return;
    }
    size_t at = (size_t)snprintf(reason, KL_REASON_BYTES, "chosen for slices of %s: %s", slice.text, name);
    for (int i = 0; i < KL_CHOICES && at < KL_REASON_BYTES; i++) {
        double took_s = kl_slices_execution_s(c, i);
        if (took_s > 0)
            at += (size_t)snprintf(reason + at, KL_REASON_BYTES - at, "%s%s %s", before, short_names[i],
                                   kl_say_s(took_s).text);
        before = took_s > 0 ? ", " : before;
    }
}

static bool cores_changed(const kl_steer *s) {
    double most = 0;
    for (uint32_t r = 0; r < s->options.ranks; r++)
        most = larger(most, fabs(s->core[r] - s->core_then[r]));
    return most > CORE_CHANGED;
}

/* Does the choice, whose place is the spare one, deserve a try? The speeds tell what it takes at least. */
static bool may_be_better(const kl_steer *s) {
    const kl_slices *c = &s->slices;
    bool possible = c->choice != KL_CHOICE_DEEP || s->depth > 1;
    return possible && execution_s(s, s->spare) < WORTH_TRYING * kl_slices_best_s(c);
}

/* The choice in force, or the next one that deserves a try. Its place is the spare one. */
static kilter_status next_choice(kl_steer *s, double now_s, int before) {
    kl_slices *c = &s->slices;
    const kl_steer_options *o = &s->options;
    double rows = (double)o->iterations / o->ranks;
    kilter_status status = place_of_choice(s, c->choice, now_s, s->spare);
    while (status == KILTER_OK && c->choice != before && c->choice != KL_CHOICE_EQUAL &&
           kl_slices_execution_s(c, c->choice) == 0) {
        if (c->choice == KL_CHOICE_DEEP)
            s->depth = kl_slices_depth(kl_slices_best_s(c), o->quantum_s, rows, o->reach, o->deepest);
        if (may_be_better(s))
            break;
        kl_slices_refuse(c);
        status = place_of_choice(s, c->choice, now_s, s->spare);
    }
    return status;
}

/* Speeds do not tell what shares will do there. *tries: it is decided by trying. */
static kilter_status decide_by_trying(kl_steer *s, double spent_s, kl_steer_plan *plan, bool *tries) {
    double moving_s = smaller(spent_s, s->step_s),
           now_s = s->executions > 0 ? (s->step_s - moving_s) / s->executions : 0;
    *tries = !s->options.scattered &&
             kl_slices_apply(&s->slices, s->options.ranks, s->core, now_s, s->options.quantum_s);
    if (!*tries) {
        kl_slices_leave(&s->slices);
        return KILTER_OK;
    }
    if (s->proof.tries)
        kl_proof_end(&s->proof, s->now_s, KL_PROVED_NOTHING);
    int before = s->slices.active && !s->unplaced ? s->slices.choice : -1;
    bool changed = cores_changed(s);
    if (!s->slices.active || changed)
        memcpy(s->core_then, s->core, s->options.ranks * sizeof *s->core);
    if (!s->unplaced || !s->slices.active || changed)
        kl_slices_next(&s->slices, s->executions, s->step_s - moving_s, changed);
    s->unplaced = false;
    kilter_status status = next_choice(s, now_s, before);
    plan->depth = s->slices.choice == KL_CHOICE_DEEP ? s->depth : 1;
    double least = before == s->slices.choice ? SAME_PART * (double)s->options.iterations : 0;
    s->proposed = status == KILTER_OK && (double)volume(s, s->spare) > least ? s->spare : NULL;
    if (s->proposed && still_barred(s))
        s->proposed = NULL;
    double then_s = kl_slices_execution_s(&s->slices, s->slices.choice);
    kl_judgement *j = &plan->judgement;
    *j = (kl_judgement){.verdict = s->proposed ? KL_MOVE_HINDSIGHT : KL_STAY_BALANCED,
                        .cost_s = s->proposed ? move_s(s, s->spare) : 0};
    plan->now_s = now_s;
    plan->then_s = then_s > 0 ? then_s : now_s;
    say_choice(s, now_s, j->reason);
    plan->move = s->proposed != NULL;
    return status;
}

static void decide(kl_steer *s, uint32_t count, const char *rest_begins, kl_steer_plan *plan) {
    char *reason = plan->judgement.reason;
    choose(s, count, plan);
    if (rest_begins && s->retreats) {
        retreat(s, rest_begins, plan);
    } else if (rest_begins) {
        stay(s, KL_STAY_RESTING, plan);
        snprintf(reason, KL_REASON_BYTES, "%s", rest_begins);
    } else if (s->proposed && kl_account_rests(&s->account, s->now_s, lost_s(s, s->proposed, false))) {
        stay(s, KL_STAY_RESTING, plan);
        snprintf(reason, KL_REASON_BYTES,
                 "balancing rests for another %s, although an execution could take %s instead of %s",
                 kl_say_s(s->account.rests_until_s - s->now_s).text, kl_say_s(plan->then_s).text,
                 kl_say_s(plan->now_s).text);
    } else if (s->proposed && still_barred(s)) {
        stay(s, KL_STAY_WAITING, plan);
        snprintf(reason, KL_REASON_BYTES,
                 "such shares were refused before: a rank had no memory for its rows");
    }
    average(s, plan);
    plan->move = s->proposed != NULL;
}

/* --- by measurement --- */

/* What a try costs: executions are slower meanwhile, if that is expected, and rows move there and back. */
static double try_s(const kl_steer *s) {
    double loss = 1 - time_with(s, s->here, s->loads.raw) / time_with(s, s->equal, s->loads.raw);
    bool expected = !kl_proof_doubts(&s->proof) && loss > 0;
    return 2 * move_s(s, s->equal) + (expected ? TRY_TAKES * s->round_s * loss * share_of_time(s) : 0);
}

static void try_equal(kl_steer *s, kl_steer_plan *plan) {
    double cost_s = try_s(s);
    if (plan->move || s->options.scattered || s->lag_s > 0 || volume(s, s->equal) == 0 ||
        s->now_s < s->account.rests_until_s || !kl_proof_due(&s->proof, s->now_s, cost_s, s->round_s))
        return;
    kl_proof_begin(&s->proof);
    put(s, s->kept, s->here);
    s->proposed = s->equal;
    plan->move = true;
    plan->now_s = kl_proof_execution_s(&s->proof);
    plan->then_s = execution_s(s, s->equal);
    plan->judgement = (kl_judgement){.verdict = KL_MOVE_HINDSIGHT, .cost_s = cost_s};
    snprintf(plan->judgement.reason, KL_REASON_BYTES,
             "equal shares for some rounds, to see what they take: the present ones take %s",
             kl_say_s(plan->now_s).text);
}

static void end_try(kl_steer *s, kl_proved proved, double unit_s, kl_steer_plan *plan) {
    kl_judgement *j = &plan->judgement;
    double equal_s = kl_proof_execution_s(&s->proof), kept_s = s->proof.here_s;
    kl_proof_end(&s->proof, s->now_s, proved);
    plan->now_s = plan->then_s = equal_s;
    if (proved == KL_EQUAL_IS_BETTER) {
        stay(s, KL_STAY_RESTING, plan);
        kl_account_rest(&s->account, s->now_s, unit_s);
        snprintf(j->reason, KL_REASON_BYTES,
                 "balancing rests for %s: an execution takes %s with equal shares, and took %s with others",
                 kl_say_s(larger(s->account.rest_s, s->proof.rests_until_s - s->now_s)).text,
                 kl_say_s(equal_s).text, kl_say_s(kept_s).text);
        return;
    }
    s->proposed = s->kept;
    plan->move = true;
    plan->then_s = kept_s;
    *j = (kl_judgement){.verdict = KL_MOVE_HINDSIGHT, .cost_s = move_s(s, s->kept)};
    snprintf(j->reason, KL_REASON_BYTES, "back to the shares before: %s an execution, and %s with equal ones",
             kl_say_s(kept_s).text, kl_say_s(equal_s).text);
}

static void rest(kl_steer *s, kl_steer_plan *plan) {
    stay(s, KL_STAY_RESTING, plan);
    plan->now_s = plan->then_s = kl_proof_execution_s(&s->proof);
    snprintf(plan->judgement.reason, KL_REASON_BYTES,
             "balancing rests for another %s: when tried, equal shares were better",
             kl_say_s(s->proof.rests_until_s - s->now_s).text);
}

/* A try is under way, or the rest after one, and nothing else is decided. */
static bool keeps_equal(kl_steer *s, double unit_s, kl_steer_plan *plan) {
    if (kl_proof_rests(&s->proof, s->now_s) && volume(s, s->equal) == 0) {
        rest(s, plan);
        return true;
    }
    if (!s->proof.tries)
        return false;
    if (volume(s, s->equal) > 0) { /* the move was refused */
        kl_proof_end(&s->proof, s->now_s, KL_PROVED_NOTHING);
        return false;
    }
    kl_proved proved = kl_proof_verdict(&s->proof);
    if (proved != KL_PROVED_NOTHING) {
        end_try(s, proved, unit_s, plan);
        return true;
    }
    stay(s, KL_STAY_WAITING, plan);
    plan->now_s = plan->then_s = execution_s(s, s->here);
    snprintf(plan->judgement.reason, KL_REASON_BYTES, "equal shares, to see what they take");
    return true;
}

static void describe(kl_steer *s, kl_steer_plan *plan) {
    plan->before = s->here;
    plan->after = s->proposed ? s->proposed : s->here;
    plan->moved = volume(s, plan->after);
    plan->body_now_s = execution_s(s, plan->before);
    plan->body_then_s = execution_s(s, plan->after);
    plan->transfers = s->transfers;
    if (plan->move && s->options.scattered)
        plan->transfer_count = kl_transfers(s->options.ranks, s->here, s->proposed, s->transfers);
    s->gain_s = plan->judgement.gain_s;
}

/* --- what came of it --- */

/* Without what is not computing; where loads are averaged over, ranks do not end each execution together. */
static double took_s(const kl_steer *s, double spent_s) {
    return s->lag_s > 0 ? s->step_s : computed_s(s) + spent_s;
}

/* What equal shares would have taken for an execution lately, in the mean of what speeds were by the clock.
 */
static void follow_pace(kl_steer *s, double step_s) {
    double equal = step_s / time_with(s, s->equal, s->loads.raw);
    s->lately_s = PACE_H * s->lately_s + step_s;
    s->lately_equal = PACE_H * s->lately_equal + equal;
}

/* Saved in the last step against iterations that lay elsewhere, all the time: more was done than those would
 * have done in it, rows that moved and all, and it is worth the time it takes in the mean. Movements are
 * counted apart. */
static double came_s(const kl_steer *s, const place *other, double spent_s) {
    double would = took_s(s, spent_s) / time_with(s, other, s->loads.raw);
    return (s->executions - would) * s->lately_s / s->lately_equal + spent_s;
}

static void set_anchor(kl_steer *s) {
    put(s, s->anchor, s->here);
    s->anchor_came_s = s->equal_came_s = s->least_came_s = 0;
}

/* Saved lately: against staying where iterations lay then, and against never having moved any. */
static double lately_s(kl_steer *s, double spent_s) {
    s->anchor_came_s += came_s(s, s->anchor, spent_s);
    s->equal_came_s += came_s(s, s->equal, spent_s);
    double before_s = s->least_came_s;
    s->least_came_s = s->anchor_came_s < s->equal_came_s ? s->anchor_came_s : s->equal_came_s;
    return s->least_came_s - before_s;
}

/* A movement costs at once what comes to something later: until it is judged, no more of it is due than what
 * came so far. */
static double take_due_s(kl_steer *s, double spent_s, double came_s) {
    double due_s = s->due_s, paid_s = smaller(larger(came_s, 0), s->unpaid_s += spent_s);
    s->unpaid_s -= paid_s;
    s->due_s = 0;
    return due_s + paid_s;
}

/* Of the account: a movement, as it is expected. */
static double unit_s(const kl_steer *s, double period_s) {
    return larger(s->movement_s, PERIOD_PART * period_s);
}

static bool settle(kl_steer *s, double spent_s, double unit_s, char *reason) {
    follow_pace(s, took_s(s, spent_s));
    double gained_s = came_s(s, s->equal, spent_s);
    s->open_came_s += came_s(s, s->previous, spent_s);
    s->open_cost_s += spent_s;
    double recent_s = lately_s(s, spent_s);
    bool rests = kl_account_settle(&s->account, s->now_s, gained_s, recent_s,
                                   take_due_s(s, spent_s, recent_s), unit_s, reason);
    s->retreats = rests && volume(s, s->equal) > 0 && -s->equal_came_s > move_s(s, s->equal);
    if (rests || s->account.balance_s >= KL_ACCOUNT_MEMORY * unit_s)
        set_anchor(s);
    return rests;
}

static void judge_last(kl_steer *s, kl_steer_plan *plan) {
    if (!s->open || !(s->loads.arrived || plan->move))
        return;
    s->due_s += s->unpaid_s;
    s->unpaid_s = 0;
    plan->settled = true;
    plan->settled_forecast_s = s->open_forecast_s;
    plan->settled_came_s = s->open_came_s;
    plan->settled_cost_s = s->open_cost_s;
    s->open = false;
}

/* --- the door --- */

/* Of the last step's executions, those before a movement: what ranks measured is of the others. */
static double before_movement(const kl_steer *s, const kl_rank_report *reports) {
    double done = 0, of = 0;
    for (uint32_t r = 0; r < s->options.ranks; r++)
        if (reports[r].iterations > 0) {
            done += (double)reports[r].iterations;
            of += (double)(reports[r].hi - reports[r].lo);
        }
    double before = s->executions - (of > 0 ? done / of : 0);
    return s->moved && !s->options.scattered && before > 0 ? before : 0;
}

uint32_t kl_steer_clock(uint32_t ranks, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < ranks; r++)
        if (reports[r].hi > reports[r].lo)
            return r;
    return 0;
}

static void tick(kl_steer *s, const kl_rank_report *reports) {
    const kl_rank_report *clock = &reports[kl_steer_clock(s->options.ranks, reports)];
    s->step_s = clock->elapsed_s > s->now_s ? clock->elapsed_s - s->now_s : 0;
    s->now_s += s->step_s;
    s->executions = clock->executions > 0 ? clock->executions : 0;
    s->as_before = before_movement(s, reports);
    s->proposed = NULL;
}

kilter_status kl_steer_round(kl_steer *s, const kl_rank_report *reports, kl_steer_plan *plan) {
    char rest_begins[KL_REASON_BYTES];
    *plan = (kl_steer_plan){.judgement.verdict = KL_STAY_WAITING, .depth = 1};
    tick(s, reports);
    double spent_s = learn_movements(s, reports);
    bool rested = kl_proof_rests(&s->proof, s->now_s);
    kl_proof_round(&s->proof, s->now_s, s->executions, s->step_s - smaller(spent_s, s->step_s),
                   volume(s, s->equal) == 0);
    if (rested && !kl_proof_rests(&s->proof, s->now_s)) /* another load has come */
        kl_account_wake(&s->account);
    s->moved = false;
    learn_quantum(s, reports);
    learn_cores(s, reports);
    plan->period = kl_period_of(s->options.interact_s, s->movement_s, s->options.quantum_s);
    s->round_s = s->step_s > plan->period.target_s ? s->step_s : plan->period.target_s;
    kilter_status status = learn_costs(s, reports);
    if (status != KILTER_OK)
        return status;
    if (!learn_speeds(s, reports)) {
        snprintf(plan->judgement.reason, sizeof plan->judgement.reason, "no rank has done an iteration yet");
        describe(s, plan);
        return KILTER_OK;
    }
    bool rests = settle(s, spent_s, unit_s(s, plan->period.target_s), rest_begins);
    kl_loads_follow(&s->loads, s->now_s, s->step_s);
    uint32_t count = 0;
    status = find_candidates(s, &count);
    bool tries = false;
    if (status == KILTER_OK)
        status = decide_by_trying(s, spent_s, plan, &tries);
    if (status != KILTER_OK)
        return status;
    if (!tries && !keeps_equal(s, unit_s(s, plan->period.target_s), plan)) {
        decide(s, count, rests ? rest_begins : NULL, plan);
        try_equal(s, plan);
    }
    describe(s, plan);
    judge_last(s, plan);
    plan->lag_s = s->lag_s;
    if (s->forgets)
        return forget_loads(s);
    return KILTER_OK;
}

/* --- what is left of an execution --- */

/* Transfers take what is not done first. */
static double delay_s(kl_steer *s, const uint64_t *todo, const kl_steer_plan *plan) {
    memcpy(s->left, todo, s->options.ranks * sizeof *todo);
    for (size_t i = 0; i < plan->transfer_count; i++) {
        const kl_transfer *t = &plan->transfers[i];
        uint64_t undone = t->count < s->left[t->from] ? t->count : s->left[t->from];
        s->left[t->from] -= undone;
        s->left[t->to] += undone;
    }
    return execution_s(s, s->left) - execution_s(s, todo);
}

static void put_off(kl_steer *s, double delayed_s, kl_steer_plan *plan) {
    stay(s, KL_STAY_WAITING, plan);
    plan->move = false;
    plan->after = s->here;
    plan->moved = plan->transfer_count = 0;
    snprintf(plan->judgement.reason, sizeof plan->judgement.reason,
             "other shares would save %s, but delay what is left of this execution by %s",
             kl_say_s(plan->judgement.gain_s).text, kl_say_s(delayed_s).text);
}

/* What comes of the last movement is not told from this one's. */
static void share_left(kl_steer *s, const uint64_t *todo, const kl_prospect *p, kl_steer_plan *plan) {
    s->open = false;
    plan->move = true;
    plan->transfer_count = kl_transfers(s->options.ranks, todo, s->left, s->transfers);
    for (size_t i = 0; i < plan->transfer_count; i++)
        plan->moved += plan->transfers[i].count;
    plan->judgement =
        (kl_judgement){.verdict = KL_MOVE_FORESIGHT, .gain_s = p->now_s - p->then_s, .cost_s = p->move_s};
    snprintf(plan->judgement.reason, sizeof plan->judgement.reason,
             "what is left of this execution takes %s instead of %s: moving costs %s",
             kl_say_s(p->then_s).text, kl_say_s(p->now_s).text, kl_say_s(p->move_s).text);
}

bool kl_steer_left(kl_steer *s, const uint64_t *todo, kl_steer_plan *plan) {
    uint32_t ranks = s->options.ranks;
    uint64_t left = 0;
    for (uint32_t r = 0; r < ranks; r++)
        left += todo[r];
    if (left == 0 || s->loads.round < FIRST_ROUNDS)
        return false;
    double delayed_s = plan->move ? delay_s(s, todo, plan) : 0;
    if (delayed_s > 0 && delayed_s > plan->judgement.gain_s)
        put_off(s, delayed_s, plan);
    if (plan->move || kl_shares(left, ranks, kl_loads_present(&s->loads), 0, s->left) != KILTER_OK)
        return false;
    kl_prospect p = {.now_s = execution_s(s, todo),
                     .then_s = execution_s(s, s->left),
                     .move_s = s->options.move.fixed_s +
                               s->per_move_s * (double)kl_transfers_busiest(ranks, todo, s->left)};
    double saved_s = p.now_s - p.then_s;
    if (saved_s <= p.move_s || saved_s <= plan->period.target_s ||
        saved_s <= kl_loads_uncertain(&s->loads) * p.now_s)
        return false;
    share_left(s, todo, &p, plan);
    return true;
}

void kl_steer_commit(kl_steer *s) {
    if (!s->proposed)
        return;
    place *now = s->previous; /* the plan's `before` stays where it is */
    s->previous = s->here;
    s->here = now;
    put(s, s->here, s->proposed);
    kl_loads_moved(&s->loads);
    kl_account_move(&s->account, s->gain_s);
    if (!s->retreats)
        kl_account_wake(&s->account); /* what made it move ends the rest */
    s->open = true;
    s->open_forecast_s = s->gain_s;
    s->open_came_s = s->open_cost_s = 0;
    s->is_barred = false;
    s->proposed = NULL;
    s->moved = true;
}

void kl_steer_refuse(kl_steer *s) {
    put(s, s->barred, s->here);
    put(s, s->here, s->previous);
    s->account.moves--;
    s->account.forecast_s -= s->open_forecast_s;
    s->is_barred = true;
    s->open = s->moved = false;
    if (s->slices.active && !s->slices.holds) {
        kl_slices_refuse(&s->slices);
        s->unplaced = true;
    }
}

void kl_steer_refill(kl_steer *s, double part) {
    s->refill = part;
}

void kl_steer_place(kl_steer *s, const uint64_t *iterations) {
    memcpy(s->here, iterations,
           (s->options.scattered ? s->options.ranks : s->options.ranks + 1) * sizeof *iterations);
}

const uint64_t *kl_steer_shares(const kl_steer *s) {
    return s->here;
}

const kl_account *kl_steer_account(const kl_steer *s) {
    return &s->account;
}

bool kl_steer_open_move(const kl_steer *s, double *came_s, double *cost_s) {
    *came_s = s->open ? s->open_came_s : 0;
    *cost_s = s->open ? s->open_cost_s : 0;
    return s->open;
}

double kl_steer_rate(const kl_steer *s, uint32_t rank) {
    return s->loads.mean_speed * s->loads.speed[rank];
}

static bool allocate(kl_steer *s) {
    uint32_t ranks = s->options.ranks;
    place **places[] = {&s->here,  &s->previous, &s->equal, &s->anchor,    &s->barred,
                        &s->spare, &s->kept,     &s->left,  &s->halves[0], &s->halves[1]};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!(*places[i] = calloc(ranks + 1, sizeof **places[i])))
            return false;
    for (uint32_t i = 0; i < CANDIDATES; i++)
        if (!(s->candidates[i] = calloc(ranks + 1, sizeof *s->candidates[i])))
            return false;
    s->scratch = calloc(ranks, sizeof *s->scratch);
    s->core = calloc(ranks, sizeof *s->core);
    s->core_then = calloc(ranks, sizeof *s->core_then);
    s->transfers = calloc(ranks, sizeof *s->transfers);
    return s->scratch && s->core && s->core_then && s->transfers &&
           kl_loads_init(&s->loads, ranks) == KILTER_OK;
}

kl_steer *kl_steer_new(const kl_steer_options *options) {
    kl_steer *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->options = *options;
    s->depth = 1;
    s->costs.n = options->iterations;
    s->per_move_s = options->move.per_unit_s;
    if (!allocate(s)) {
        kl_steer_free(s);
        return NULL;
    }
    kl_equal_shares(options->iterations, options->ranks, s->previous);
    if (options->scattered)
        put(s, s->here, s->previous);
    else
        kl_bounds_of_shares(options->ranks, s->previous, s->here);
    put(s, s->previous, s->here);
    put(s, s->equal, s->here);
    set_anchor(s);
    return s;
}

void kl_steer_free(kl_steer *s) {
    if (!s)
        return;
    for (uint32_t i = 0; i < CANDIDATES; i++)
        free(s->candidates[i]);
    kl_loads_free(&s->loads);
    kl_costs_free(&s->costs);
    free(s->here);
    free(s->previous);
    free(s->equal);
    free(s->anchor);
    free(s->barred);
    free(s->spare);
    free(s->left);
    free(s->kept);
    free(s->halves[0]);
    free(s->halves[1]);
    free(s->scratch);
    free(s->core);
    free(s->core_then);
    free(s->transfers);
    free(s);
}
