/* One loop's balancing: reports of a round in, a plan out.
 *
 * The speeds of the ranks are, most of the time, in one of a few states: nobody disturbed, somebody on rank
 * 2, …. States are known again when they come back. What a state is worth moving for follows from how long it
 * lasted before; and what shares would have been better is asked of all states since the last movement, so
 * that under a load that comes and goes too fast to follow, shares end up where they lose least in the mean.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "steer/steer.h"

enum {
    STATES = 4,
    CANDIDATES = STATES + 2, /* the best of each state, of the present, and of their mean */
    SETTLES = 4,             /* rounds until a change that goes on and on counts as a state */
    REACTS = 4,              /* rounds from a change to a movement */
    AVERAGED = 16,           /* rounds */
    DWELLS = 4,              /* times a state lasted, averaged */
    BINS_MOST = 4096,
};
static const double SAME = 1.15;  /* speeds that differ by no more are of one state */
static const double TRUST = 0.5;  /* in new costs along the index */
static const double MOVE_H = 0.5; /* in the old cost of movements */

typedef struct load_state {
    double *speed;  /* of each rank, mean 1 */
    double lasts_s; /* mean of the last times it ended; 0: it never did */
    double since_s; /* in it since the last movement */
    uint64_t ended, rounds;
    uint64_t seen; /* last, round; 0: no state */
} load_state;

struct kl_steer {
    kl_steer_options options;
    uint64_t round;
    double now_s, step_s; /* step: since the last round */
    double executions;    /* in the last step */
    kl_costs costs;       /* ranged; none until somebody measures them */
    kl_trend *trends;
    double *raw;       /* work per second, this round; what was not measured: as before */
    double *speed;     /* filtered, mean 1 */
    double mean_speed; /* work per second of a speed of 1 */
    load_state states[STATES];
    uint32_t here;      /* state */
    double begun_s;     /* this state */
    uint32_t unsettled; /* rounds that speeds have been on their way to another state */
    double departed_s, pending_s;
    bool arrived;       /* in another state, this round */
    double per_move_s;  /* of an iteration of the busiest rank */
    double movement_s;  /* of the last movements, mean */
    uint64_t *place;    /* where iterations lie: bounds or shares */
    uint64_t *anchor;   /* the account compares with these */
    uint64_t *previous; /* before the last movement */
    uint64_t *barred;   /* could not be had */
    uint64_t *candidates[CANDIDATES];
    double *scratch;
    uint64_t *proposed; /* one of the candidates; NULL: none */
    bool is_barred;
    kl_transfer *transfers;
    kl_account account;
    double gain_s; /* forecast of what is proposed */
    bool open;     /* a movement is not judged yet */
    double open_forecast_s, open_came_s, open_cost_s;
};

/* --- where iterations lie, and what an execution takes then --- */

static size_t place_bytes(const kl_steer *s) {
    return (s->options.ranks + 1) * sizeof(uint64_t);
}

static void put(const kl_steer *s, uint64_t *to, const uint64_t *from) {
    memcpy(to, from, place_bytes(s));
}

static double work_of(const kl_steer *s, const uint64_t *place, uint32_t r) {
    return s->options.scattered ? (double)place[r]
                                : kl_costs_work(&s->costs, (kl_span){place[r], place[r + 1]});
}

/* Of the rank that ends last; in units of work over units of `speed`. */
static double time_with(const kl_steer *s, const uint64_t *place, const double *speed) {
    double most = 0;
    for (uint32_t r = 0; r < s->options.ranks; r++) {
        double time = work_of(s, place, r) / speed[r];
        most = time > most ? time : most;
    }
    return most;
}

static kilter_status best_for(const kl_steer *s, const double *speed, uint64_t *place) {
    const kl_steer_options *o = &s->options;
    if (!o->scattered)
        return kl_bounds(&s->costs, o->ranks, speed, o->least, place);
    place[o->ranks] = 0;
    return kl_shares(o->iterations, o->ranks, speed, o->least, place);
}

static uint64_t busiest(const kl_steer *s, const uint64_t *after) {
    return s->options.scattered ? kl_transfers_busiest(s->options.ranks, s->place, after)
                                : kl_flow_busiest(s->options.ranks, s->place, after);
}

static double move_s(const kl_steer *s, const uint64_t *after) {
    return s->options.move.fixed_s + s->per_move_s * (double)busiest(s, after);
}

static uint64_t volume(const kl_steer *s, const uint64_t *after) {
    uint64_t sum = 0;
    for (uint32_t r = 0; r < s->options.ranks; r++)
        sum += after[r] > s->place[r] ? after[r] - s->place[r]
               : s->options.scattered ? 0
                                      : s->place[r] - after[r];
    return sum;
}

/* --- what reports say --- */

static void learn_movements(kl_steer *s, const kl_rank_report *reports, double *spent_s) {
    const kl_rank_report *longest = &reports[0];
    for (uint32_t r = 1; r < s->options.ranks; r++)
        if (reports[r].moving_s > longest->moving_s)
            longest = &reports[r];
    *spent_s = longest->moving_s > 0 ? longest->moving_s : 0;
    if (*spent_s == 0 || longest->moved == 0)
        return;
    double over_s = *spent_s - s->options.move.fixed_s,
           each_s = over_s > 0 ? over_s / (double)longest->moved : 0;
    s->per_move_s = (1 - MOVE_H) * each_s + MOVE_H * s->per_move_s;
    s->movement_s = s->movement_s > 0 ? (1 - MOVE_H) * *spent_s + MOVE_H * s->movement_s : *spent_s;
}

static kilter_status learn_costs(kl_steer *s, const kl_rank_report *reports) {
    const kl_steer_options *o = &s->options;
    for (uint32_t r = 0; r < o->ranks; r++) {
        if (o->scattered || !reports[r].segments)
            continue;
        uint64_t bins = 16 * (uint64_t)o->ranks;
        if (!s->costs.cost && kl_costs_init(&s->costs, o->iterations,
                                            bins < BINS_MOST ? (uint32_t)bins : BINS_MOST) != KILTER_OK)
            return KILTER_ERR_MEMORY;
        kl_costs_learn(&s->costs, (kl_span){reports[r].lo, reports[r].hi}, reports[r].segments_s, TRUST);
    }
    return KILTER_OK;
}

/* Work per second in the body; 0: not measured. */
static double rate_of(const kl_steer *s, const kl_rank_report *report) {
    if (!(report->busy_s > 0) || report->iterations == 0)
        return 0;
    double each = 1;
    if (!s->options.scattered && report->lo < report->hi && report->hi <= s->options.iterations)
        each =
            kl_costs_work(&s->costs, (kl_span){report->lo, report->hi}) / (double)(report->hi - report->lo);
    return (double)report->iterations * each / report->busy_s;
}

/* Ranks nothing is known of are taken for average ones. */
static bool fill(double *speeds, uint32_t ranks, double *mean) {
    double sum = 0;
    uint32_t known = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        sum += speeds[r];
        known += speeds[r] > 0;
    }
    if (known == 0)
        return false;
    *mean = sum / known;
    for (uint32_t r = 0; r < ranks; r++)
        speeds[r] = speeds[r] > 0 ? speeds[r] : *mean;
    return true;
}

static bool learn_speeds(kl_steer *s, const kl_rank_report *reports) {
    uint32_t ranks = s->options.ranks;
    double unused;
    for (uint32_t r = 0; r < ranks; r++) {
        double rate = rate_of(s, &reports[r]);
        s->raw[r] = rate > 0 ? rate : s->raw[r];
        s->speed[r] = kl_trend_next(&s->trends[r], rate);
    }
    if (!fill(s->speed, ranks, &s->mean_speed))
        return false;
    fill(s->raw, ranks, &unused);
    for (uint32_t r = 0; r < ranks; r++)
        s->speed[r] /= s->mean_speed;
    return true;
}

/* --- states --- */

static bool alike(uint32_t ranks, const double *a, const double *b) {
    for (uint32_t r = 0; r < ranks; r++)
        if (a[r] > SAME * b[r] || b[r] > SAME * a[r])
            return false;
    return true;
}

static bool moving(const kl_steer *s) {
    for (uint32_t r = 0; r < s->options.ranks; r++)
        if (kl_trend_moves(&s->trends[r]))
            return true;
    return false;
}

/* The state that speeds are in now: one seen before, or the place of the one not seen for longest. */
static uint32_t recognise(kl_steer *s) {
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < STATES; i++) {
        if (s->states[i].seen > 0 && alike(s->options.ranks, s->speed, s->states[i].speed))
            return i;
        if (s->states[i].seen < s->states[oldest].seen)
            oldest = i;
    }
    load_state *fresh = &s->states[oldest];
    *fresh = (load_state){.speed = fresh->speed};
    memcpy(fresh->speed, s->speed, s->options.ranks * sizeof *s->speed);
    return oldest;
}

static void arrive(kl_steer *s) {
    load_state *left = &s->states[s->here];
    if (left->seen > 0) {
        double times = left->ended < DWELLS - 1 ? (double)left->ended : DWELLS - 1;
        left->lasts_s = (left->lasts_s * times + (s->departed_s - s->begun_s)) / (times + 1);
        left->ended++;
    }
    s->here = recognise(s);
    s->begun_s = s->departed_s;
    s->arrived = true;
}

static void stay_in(kl_steer *s, load_state *here) {
    double weight = 1.0 / (double)(here->rounds < AVERAGED ? here->rounds + 1 : AVERAGED);
    for (uint32_t r = 0; r < s->options.ranks; r++)
        here->speed[r] += weight * (s->speed[r] - here->speed[r]);
    here->rounds++;
    here->seen = s->round;
    here->since_s += s->step_s + s->pending_s;
    s->pending_s = 0;
    s->unsettled = 0;
}

static void follow(kl_steer *s) {
    s->arrived = false;
    if (s->states[s->here].seen == 0 || !alike(s->options.ranks, s->speed, s->states[s->here].speed)) {
        if (s->unsettled++ == 0)
            s->departed_s = s->now_s - s->step_s;
        if (moving(s) && s->unsettled < SETTLES) {
            s->pending_s += s->step_s;
            return;
        }
        arrive(s);
    }
    stay_in(s, &s->states[s->here]);
}

/* As they are: the mean of the state, or what they are on the way to another. */
static const double *present(const kl_steer *s) {
    return s->unsettled > 0 ? s->speed : s->states[s->here].speed;
}

/* --- what would have been better --- */

/* Saved of each second at these speeds, if iterations lay as `after`; < 0: lost. */
static double saved_part(const kl_steer *s, const uint64_t *after, const double *speed) {
    return 1 - time_with(s, after, speed) / time_with(s, s->place, speed);
}

/* Part of the elapsed time that follows from the shares: the rest is messages and whatever else. */
static double share_of_time(const kl_steer *s) {
    double compute_s = s->executions * time_with(s, s->place, s->raw);
    return s->executions > 0 && s->step_s > 0 && compute_s < s->step_s ? compute_s / s->step_s : 1;
}

static double lost_s(const kl_steer *s, const uint64_t *after) {
    double sum = s->pending_s * saved_part(s, after, s->speed);
    for (uint32_t i = 0; i < STATES; i++)
        if (s->states[i].since_s > 0)
            sum += s->states[i].since_s * saved_part(s, after, s->states[i].speed);
    return sum * share_of_time(s);
}

static void mean_of_states(kl_steer *s) {
    for (uint32_t r = 0; r < s->options.ranks; r++) {
        s->scratch[r] = s->pending_s * s->speed[r];
        for (uint32_t i = 0; i < STATES; i++)
            if (s->states[i].since_s > 0)
                s->scratch[r] += s->states[i].since_s * s->states[i].speed[r];
    }
}

/* The first is the best for the present. */
static kilter_status find_candidates(kl_steer *s, uint32_t *count) {
    kilter_status status = best_for(s, present(s), s->candidates[0]);
    *count = 1;
    uint32_t lived = s->pending_s > 0;
    for (uint32_t i = 0; i < STATES && status == KILTER_OK; i++) {
        if (s->states[i].since_s <= 0)
            continue;
        lived++;
        if (i != s->here || s->unsettled > 0)
            status = best_for(s, s->states[i].speed, s->candidates[(*count)++]);
    }
    if (status == KILTER_OK && lived > 1) {
        mean_of_states(s);
        status = best_for(s, s->scratch, s->candidates[(*count)++]);
    }
    return status;
}

/* What the next state is expected to take because iterations lie as `place`. */
static double next_state_s(const kl_steer *s, const load_state *next, const uint64_t *place, double moving_s,
                           double period_s, uint64_t *best) {
    if (best_for(s, next->speed, best) != KILTER_OK)
        return 0;
    double part = 1 - time_with(s, best, next->speed) / time_with(s, place, next->speed);
    double followed_s = moving_s + REACTS * period_s * part, left_s = next->lasts_s * part;
    return left_s > 0 && left_s < followed_s ? left_s : part > 0 ? followed_s : 0;
}

static double back_s(kl_steer *s, const uint64_t *after, double moving_s, double period_s) {
    const load_state *next = NULL;
    for (uint32_t i = 0; i < STATES; i++)
        if (i != s->here && s->states[i].seen > 0 && (!next || s->states[i].seen > next->seen))
            next = &s->states[i];
    if (!next)
        return moving_s;
    uint64_t *best = s->candidates[CANDIDATES - 1]; /* judged before, or not there yet */
    double more_s = next_state_s(s, next, after, moving_s, period_s, best) -
                    next_state_s(s, next, s->place, moving_s, period_s, best);
    return more_s > 0 ? more_s : 0;
}

/* --- the decision --- */

static kl_prospect prospect_of(const kl_steer *s, const uint64_t *after) {
    const double *speed = present(s);
    double unit_s = 1 / s->mean_speed;
    return (kl_prospect){.now_s = time_with(s, s->place, speed) * unit_s,
                         .then_s = time_with(s, after, speed) * unit_s,
                         .lasted_s = s->now_s - (s->unsettled > 0 ? s->departed_s : s->begun_s),
                         .lost_s = lost_s(s, after),
                         .move_s = move_s(s, after)};
}

static bool is_move(const kl_judgement *j) {
    return j->verdict == KL_MOVE_FORESIGHT || j->verdict == KL_MOVE_HINDSIGHT;
}

static void take(kl_steer *s, uint64_t *after, const kl_prospect *p, const kl_judgement *j,
                 kl_steer_plan *plan) {
    plan->judgement = *j;
    plan->now_s = p->now_s;
    plan->then_s = p->then_s;
    if (is_move(j) && busiest(s, after) > 0)
        s->proposed = after;
}

static void choose(kl_steer *s, uint32_t count, double period_s, kl_steer_plan *plan) {
    uint64_t *best = s->candidates[0];
    kl_prospect p = prospect_of(s, best);
    kl_judgement j;
    double most_lost_s = p.lost_s;
    if (s->unsettled == 0) {
        p.lasts_s = s->states[s->here].lasts_s;
        p.back_s = p.lasts_s > 0 ? back_s(s, best, p.move_s, period_s) : 0;
    }
    double part = share_of_time(s);
    p.lasted_s *= part; /* only so much of the time can be saved from */
    p.lasts_s *= part;
    kl_whether(&p, &j);
    take(s, best, &p, &j, plan);
    if (j.verdict == KL_MOVE_FORESIGHT)
        return;
    for (uint32_t i = 1; i < count; i++) {
        kl_prospect other = prospect_of(s, s->candidates[i]);
        kl_whether(&other, &j);
        if (is_move(&j) && other.lost_s - other.move_s > most_lost_s - p.move_s) {
            most_lost_s = other.lost_s;
            p = other;
            take(s, s->candidates[i], &other, &j, plan);
        }
    }
}

/* What could not be had is not asked for again until something else is wanted. */
static bool still_barred(kl_steer *s) {
    uint64_t tolerance = s->options.iterations / s->options.ranks / 10;
    if (!s->is_barred)
        return false;
    for (uint32_t r = 0; r <= s->options.ranks; r++) {
        uint64_t a = s->proposed[r], b = s->barred[r];
        if ((a > b ? a - b : b - a) > tolerance)
            return false;
    }
    return true;
}

static void stay(kl_steer *s, kl_steer_plan *plan, kl_verdict verdict, const char *why) {
    s->proposed = NULL;
    plan->judgement.verdict = verdict;
    if (why)
        snprintf(plan->judgement.reason, sizeof plan->judgement.reason, "%s", why);
}

static void decide(kl_steer *s, uint32_t count, const char *rest_begins, kl_steer_plan *plan) {
    choose(s, count, plan->period.target_s, plan);
    char why[KL_REASON_BYTES];
    if (rest_begins) {
        stay(s, plan, KL_STAY_RESTING, rest_begins);
    } else if (s->proposed && kl_account_rests(&s->account, s->now_s, lost_s(s, s->proposed))) {
        snprintf(why, sizeof why,
                 "balancing rests for another %s, although an execution could take %s instead of %s",
                 kl_say_s(s->account.rests_until_s - s->now_s).text, kl_say_s(plan->then_s).text,
                 kl_say_s(plan->now_s).text);
        stay(s, plan, KL_STAY_RESTING, why);
    } else if (s->proposed && still_barred(s)) {
        stay(s, plan, KL_STAY_WAITING, "these shares were refused before: a rank has no memory for its rows");
    }
    plan->move = s->proposed != NULL;
}

static void describe(kl_steer *s, kl_steer_plan *plan) {
    plan->before = s->place;
    plan->after = s->proposed ? s->proposed : s->place;
    plan->moved = volume(s, plan->after);
    plan->transfers = s->transfers;
    if (plan->move && s->options.scattered)
        plan->transfer_count = kl_transfers(s->options.ranks, s->place, s->proposed, s->transfers);
    s->gain_s = plan->judgement.gain_s;
}

/* --- what came of it --- */

/* Elapsed time of the last step's executions if iterations lay elsewhere, less what it was. */
static double came_s(const kl_steer *s, const uint64_t *other) {
    return s->executions * (time_with(s, other, s->raw) - time_with(s, s->place, s->raw));
}

static bool settle(kl_steer *s, double spent_s, char *reason) {
    s->open_came_s += came_s(s, s->previous);
    s->open_cost_s += spent_s;
    double movement_s = s->movement_s > 0 ? s->movement_s : s->options.move.fixed_s + s->options.interact_s;
    bool rests = kl_account_settle(&s->account, s->now_s, came_s(s, s->anchor), spent_s, movement_s, reason);
    if (rests || s->account.balance_s >= 2 * movement_s)
        put(s, s->anchor, s->place);
    return rests;
}

static void judge_last(kl_steer *s, kl_steer_plan *plan) {
    if (!s->open || !(s->arrived || plan->move))
        return;
    plan->settled = true;
    plan->settled_forecast_s = s->open_forecast_s;
    plan->settled_came_s = s->open_came_s;
    plan->settled_cost_s = s->open_cost_s;
    s->open = false;
}

/* --- the door --- */

kilter_status kl_steer_round(kl_steer *s, const kl_rank_report *reports, kl_steer_plan *plan) {
    double spent_s;
    char rest_begins[KL_REASON_BYTES];
    *plan = (kl_steer_plan){0};
    s->round++;
    s->step_s = reports[0].elapsed_s > s->now_s ? reports[0].elapsed_s - s->now_s : 0;
    s->now_s += s->step_s;
    s->executions = reports[0].executions > 0 ? reports[0].executions : 0;
    s->proposed = NULL;
    learn_movements(s, reports, &spent_s);
    plan->period = kl_period_of(s->options.interact_s, s->movement_s, s->options.quantum_s);
    if (!learn_speeds(s, reports)) {
        stay(s, plan, KL_STAY_WAITING, "no rank has done an iteration yet");
        describe(s, plan);
        return KILTER_OK;
    }
    bool rests = settle(s, spent_s, rest_begins);
    follow(s);
    uint32_t count;
    kilter_status status = learn_costs(s, reports);
    if (status == KILTER_OK)
        status = find_candidates(s, &count);
    if (status != KILTER_OK)
        return status;
    decide(s, count, rests ? rest_begins : NULL, plan);
    describe(s, plan);
    judge_last(s, plan);
    return KILTER_OK;
}

void kl_steer_commit(kl_steer *s) {
    if (!s->proposed)
        return;
    if (s->account.moves == 0)
        put(s, s->anchor, s->place);
    put(s, s->previous, s->place);
    put(s, s->place, s->proposed);
    for (uint32_t i = 0; i < STATES; i++)
        s->states[i].since_s = 0;
    s->pending_s = 0;
    kl_account_move(&s->account, s->gain_s);
    s->open = true;
    s->open_forecast_s = s->gain_s;
    s->open_came_s = s->open_cost_s = 0;
    s->is_barred = false;
    s->proposed = NULL;
}

void kl_steer_refuse(kl_steer *s) {
    put(s, s->barred, s->place);
    put(s, s->place, s->previous);
    s->is_barred = true;
    s->open = false;
}

const uint64_t *kl_steer_shares(const kl_steer *s) {
    return s->place;
}

const kl_account *kl_steer_account(const kl_steer *s) {
    return &s->account;
}

static bool allocate(kl_steer *s) {
    uint32_t ranks = s->options.ranks;
    uint64_t **places[] = {&s->place, &s->anchor, &s->previous, &s->barred};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!(*places[i] = calloc(ranks + 1, sizeof **places[i])))
            return false;
    for (uint32_t i = 0; i < CANDIDATES; i++)
        if (!(s->candidates[i] = calloc(ranks + 1, sizeof *s->candidates[i])))
            return false;
    for (uint32_t i = 0; i < STATES; i++)
        if (!(s->states[i].speed = calloc(ranks, sizeof *s->states[i].speed)))
            return false;
    s->trends = calloc(ranks, sizeof *s->trends);
    s->raw = calloc(ranks, sizeof *s->raw);
    s->speed = calloc(ranks, sizeof *s->speed);
    s->scratch = calloc(ranks, sizeof *s->scratch);
    s->transfers = calloc(ranks, sizeof *s->transfers);
    return s->trends && s->raw && s->speed && s->scratch && s->transfers;
}

kl_steer *kl_steer_new(const kl_steer_options *options) {
    kl_steer *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->options = *options;
    s->costs.n = options->iterations;
    s->per_move_s = options->move.per_unit_s;
    if (!allocate(s)) {
        kl_steer_free(s);
        return NULL;
    }
    kl_equal_shares(options->iterations, options->ranks, s->anchor);
    if (options->scattered)
        put(s, s->place, s->anchor);
    else
        kl_bounds_of_shares(options->ranks, s->anchor, s->place);
    put(s, s->anchor, s->place);
    put(s, s->previous, s->place);
    return s;
}

void kl_steer_free(kl_steer *s) {
    if (!s)
        return;
    for (uint32_t i = 0; i < CANDIDATES; i++)
        free(s->candidates[i]);
    for (uint32_t i = 0; i < STATES; i++)
        free(s->states[i].speed);
    kl_costs_free(&s->costs);
    free(s->place);
    free(s->anchor);
    free(s->previous);
    free(s->barred);
    free(s->trends);
    free(s->raw);
    free(s->speed);
    free(s->scratch);
    free(s->transfers);
    free(s);
}
