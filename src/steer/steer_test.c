/* Simulate the balancing of a loop whose ranks have loads that come and go, on a simulated clock. The
 * library makes all decisions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "steer/parts.h"

enum { MOST = 16 };

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

/* --- a simulated loop on a simulated cluster --- */

typedef struct load {
    /* A load: from begins_s on, it is on for on_s seconds, off for off_s seconds, and so on. off_s = 0:
     * it is always on; on_s = 0: there is no load */
    double begins_s, on_s, off_s;
} load;

typedef struct world {
    kl_steer_options options;
    double iteration_s;  /* seconds of an iteration on a rank without load */
    load loads[MOST];    /* loads[r]: load of rank r; while the load is on, the rank gets half of the time */
    double speeds[MOST]; /* speeds[r]: speed of rank r; 0: speed 1 */
    double noise;        /* relative error of a rank's time for a sweep */
    /* seconds that no rank reports; barrier_s: in each sweep; apart_s: in addition, in each sweep with
     * unequal shares */
    double barrier_s, apart_s;
    double slope;  /* cost of the last iteration minus the cost of the first iteration */
    double refill; /* part of a sweep that a pipeline loses with each move */
    double runs_s;
    bool balanced;
    uint32_t refuses; /* number of moves at the beginning that are refused */
    double row_s;     /* seconds that moving a row takes; 0: as given in options.move */
    bool late;        /* true: moves are reported one round later than they take place */
} world;

typedef struct outcome {
    double executions, elapsed_s, efficiency;
    uint64_t moves, rows, settled;
    uint32_t refused;
    double moving_s, settled_came_s, settled_forecast_s;
    kl_rank_report late; /* report of the first rank about the last move, which is sent one round late */
    kl_account account;
    uint64_t place[MOST + 1];
} outcome;

static double speed_at(const world *w, uint32_t r, double at_s) {
    const load *l = &w->loads[r];
    double own = w->speeds[r] > 0 ? w->speeds[r] : 1;
    if (l->on_s <= 0 || at_s < l->begins_s)
        return own;
    double since = fmod(at_s - l->begins_s, l->on_s + l->off_s);
    return l->off_s <= 0 || since < l->on_s ? own / 2 : own;
}

/* Return the seconds until the load of rank r changes. */
static double until_change_s(const world *w, uint32_t r, double at_s) {
    const load *l = &w->loads[r];
    if (l->on_s <= 0 || (l->off_s <= 0 && at_s >= l->begins_s))
        return INFINITY;
    if (at_s < l->begins_s)
        return l->begins_s - at_s;
    double since = fmod(at_s - l->begins_s, l->on_s + l->off_s);
    return (since < l->on_s ? l->on_s : l->on_s + l->off_s) - since;
}

static double takes_s(const world *w, uint32_t r, double at_s, double work_s) {
    double began_s = at_s;
    while (work_s > 0) {
        double speed = speed_at(w, r, at_s), change_s = fmax(until_change_s(w, r, at_s), 1e-9);
        if (work_s <= change_s * speed)
            return at_s + work_s / speed - began_s;
        work_s -= change_s * speed;
        at_s += change_s;
    }
    return 0;
}

/* Return the seconds that iterations lo … hi−1 take on a rank without load. */
static double work_s(const world *w, double lo, double hi) {
    double n = (double)w->options.iterations;
    return w->iteration_s * (hi - lo) * (1 + w->slope * (lo + hi) / 2 / n);
}

static kl_span range_of(const world *w, const uint64_t *place, uint32_t r) {
    return w->options.scattered ? (kl_span){0, place[r]} : (kl_span){place[r], place[r + 1]};
}

static void fill_segments(const world *w, kl_rank_report *report, double seconds_per_work) {
    double length = (double)(report->hi - report->lo) / KL_SEGMENTS;
    for (int i = 0; i < KL_SEGMENTS && w->slope > 0; i++) {
        double lo = (double)report->lo + i * length;
        report->segments_s[i] = work_s(w, lo, lo + length) / length * seconds_per_work;
        report->segments = KL_SEGMENTS;
    }
}

/* Do one sweep on all ranks, add it to the ranks' reports, and return its seconds. */
static double execute(const world *w, const uint64_t *place, double now_s, uint64_t seed,
                      kl_rank_report *reports) {
    double longest_s = 0;
    for (uint32_t r = 0; r < w->options.ranks; r++) {
        kl_span range = range_of(w, place, r);
        double work = work_s(w, (double)range.lo, (double)range.hi);
        double noisy = work * (1 + w->noise * (2 * random_01(seed * MOST + r) - 1));
        double busy_s = takes_s(w, r, now_s, noisy);
        reports[r].busy_s += busy_s;
        reports[r].iterations += range.hi - range.lo;
        reports[r].executions++;
        reports[r].lo = range.lo;
        reports[r].hi = range.hi;
        if (range.hi > range.lo)
            fill_segments(w, &reports[r], busy_s / work);
        longest_s = fmax(longest_s, busy_s);
    }
    bool equal = true;
    for (uint32_t r = 0; r < w->options.ranks; r++) {
        kl_span range = range_of(w, place, r);
        equal &= range.hi - range.lo == w->options.iterations / w->options.ranks;
    }
    return longest_s + w->barrier_s + (equal ? 0 : w->apart_s);
}

/* Move rows while all ranks wait; return the seconds of the move. */
static double carry_out(const world *w, const kl_steer_plan *plan, kl_rank_report *reports, outcome *o) {
    uint32_t ranks = w->options.ranks;
    uint64_t rows = w->options.scattered ? kl_transfers_busiest(ranks, plan->before, plan->after)
                                         : kl_flow_busiest(ranks, plan->before, plan->after);
    double row_s = w->row_s > 0 ? w->row_s : w->options.move.per_unit_s;
    double took_s = w->options.move.fixed_s + row_s * (double)rows;
    kl_rank_report *tells = w->late ? &o->late : &reports[0];
    tells->moving_s = took_s;
    tells->moved = rows;
    o->moves++;
    o->rows += plan->moved;
    took_s += w->refill * plan->now_s; /* the pipeline empties and fills again, which no rank measures */
    o->moving_s += took_s;
    return took_s;
}

static void check_transfers(const world *w, const kl_steer_plan *plan) {
    uint64_t shares[MOST], moved = 0;
    memcpy(shares, plan->before, sizeof *shares * w->options.ranks);
    for (size_t i = 0; i < plan->transfer_count; i++) {
        const kl_transfer *t = &plan->transfers[i];
        assert_true(shares[t->from] >= t->count);
        shares[t->from] -= t->count;
        shares[t->to] += t->count;
        moved += t->count;
    }
    assert_memory_equal(shares, plan->after, sizeof *shares * w->options.ranks);
    assert_true(moved == plan->moved);
}

static void check_plan(const world *w, const kl_steer_plan *plan) {
    uint32_t ranks = w->options.ranks;
    uint64_t sum = 0;
    for (uint32_t r = 0; r < ranks; r++)
        sum += w->options.scattered ? plan->after[r] : plan->after[r + 1] - plan->after[r];
    assert_true(sum == w->options.iterations);
    if (w->options.scattered)
        check_transfers(w, plan);
    assert_true(plan->judgement.reason[0] != '\0');
    assert_int_equal(plan->move, plan->judgement.verdict >= KL_MOVE_FORESIGHT && plan->moved > 0);
    assert_true(plan->period.target_s > 0);
}

/* Return the efficiency as Siegell and Steenkiste define it: the work done, divided by the work that the
 * ranks could have done. */
static double efficiency_of(const world *w, const outcome *o) {
    double given_s = 0, step_s = 0.01;
    for (double at = 0; at < o->elapsed_s; at += step_s)
        for (uint32_t r = 0; r < w->options.ranks; r++)
            given_s += step_s * speed_at(w, r, at);
    return o->executions * work_s(w, 0, (double)w->options.iterations) / given_s;
}

/* Check that a second steer makes the same plan from the same reports. This is necessary because every rank
 * decides for itself. */
static void check_twin(const world *w, kl_steer *twin, const kl_rank_report *reports,
                       const kl_steer_plan *plan) {
    kl_steer_plan other;
    assert_int_equal(kl_steer_round(twin, reports, &other), KILTER_OK);
    assert_int_equal(other.move, plan->move);
    assert_memory_equal(other.after, plan->after, sizeof *plan->after * w->options.ranks);
    assert_string_equal(other.judgement.reason, plan->judgement.reason);
    assert_true(other.period.target_s == plan->period.target_s);
}

static void follow_plan(const world *w, kl_steer *steer, const kl_steer_plan *plan, double *now_s,
                        kl_rank_report *reports, outcome *o) {
    size_t bytes = sizeof *plan->after * w->options.ranks;
    kl_steer_commit(steer);
    assert_memory_equal(kl_steer_shares(steer), plan->after, bytes);
    if (o->refused < w->refuses) {
        o->refused++;
        kl_steer_refuse(steer);
        assert_memory_equal(kl_steer_shares(steer), plan->before, bytes);
    } else {
        *now_s += carry_out(w, plan, reports, o);
    }
}

static void one_round(const world *w, kl_steer *steer, kl_steer *twin, double *now_s, double *next_s,
                      kl_rank_report *reports, outcome *o) {
    kl_steer_plan plan;
    for (uint32_t r = 0; r < w->options.ranks; r++)
        reports[r].elapsed_s = *now_s;
    assert_int_equal(kl_steer_round(steer, reports, &plan), KILTER_OK);
    check_plan(w, &plan);
    check_twin(w, twin, reports, &plan);
    if (getenv("KL_SAY"))
        printf("%8.2f %s %s\n", *now_s, plan.move ? "MOVE" : "    ", plan.judgement.reason);
    o->settled += plan.settled;
    o->settled_came_s += plan.settled_came_s;
    o->settled_forecast_s += plan.settled_forecast_s;
    memset(reports, 0, MOST * sizeof *reports);
    reports[0].moving_s = o->late.moving_s;
    reports[0].moved = o->late.moved;
    o->late = (kl_rank_report){0};
    if (plan.move) {
        follow_plan(w, steer, &plan, now_s, reports, o);
        kl_steer_commit(twin);
        if (o->refused > 0 && o->moves == 0)
            kl_steer_refuse(twin);
    }
    *next_s = *now_s + plan.period.target_s;
}

static outcome play(const world *w) {
    outcome o = {0};
    kl_rank_report reports[MOST] = {0};
    kl_steer *steer = kl_steer_new(&w->options), *twin = kl_steer_new(&w->options);
    assert_true(steer && twin);
    kl_steer_refill(steer, w->refill);
    kl_steer_refill(twin, w->refill);
    double now_s = 0, next_s = 0;
    while (now_s < w->runs_s) {
        now_s += execute(w, kl_steer_shares(steer), now_s, (uint64_t)o.executions, reports);
        o.executions++;
        if (w->balanced && now_s >= next_s)
            one_round(w, steer, twin, &now_s, &next_s, reports, &o);
    }
    o.elapsed_s = now_s;
    o.efficiency = efficiency_of(w, &o);
    o.account = *kl_steer_account(steer);
    memcpy(o.place, kl_steer_shares(steer), sizeof *o.place * (w->options.ranks + 1));
    kl_steer_free(steer);
    kl_steer_free(twin);
    return o;
}

static outcome play_plain(world w) {
    w.balanced = false;
    return play(&w);
}

static void tell(const char *what, const outcome *o, const outcome *plain) {
    printf("%-34s efficiency %.3f (without %.3f), %4.0f sweeps (%4.0f), %3u moves, %5.1f s moving, %u "
           "rests\n",
           what, o->efficiency, plain->efficiency, o->executions * plain->elapsed_s / o->elapsed_s,
           plain->executions, (unsigned)o->moves, o->moving_s, (unsigned)o->account.rests);
}

/* Return a loop like SOR on 1000² points with 4 ranks: rows have 8 kB, and a time slice has 100 ms. */
static world sor_1000(void) {
    return (world){.options = {.iterations = 1000,
                               .ranks = 4,
                               .least = 1,
                               .interact_s = 0.005,
                               .quantum_s = 0.1,
                               .move = {0.005, 0.8e-3}},
                   .iteration_s = 2e-3,
                   .barrier_s = 1e-3,
                   .noise = 0.01,
                   .runs_s = 600,
                   .balanced = true};
}

/* Return a loop like SOR on 2000² points, whose rows are expensive to move. */
static world sor_2000(void) {
    world w = sor_1000();
    w.options.iterations = 2000;
    w.options.move = (kl_linear){0.01, 16e-3};
    w.iteration_s = 4e-3;
    return w;
}

static void a_dedicated_cluster_is_left_alone(void **state) {
    (void)state;
    world w = sor_1000();
    outcome o = play(&w), plain = play_plain(w);
    tell("dedicated", &o, &plain);
    assert_true(o.executions >= 0.99 * plain.executions);
}

static void noise_alone_moves_little_and_costs_less(void **state) {
    (void)state;
    static const double noises[] = {0.02, 0.05, 0.1};
    for (uint32_t ranks = 4; ranks <= MOST; ranks *= 2)
        for (int i = 0; i < 3; i++) {
            world w = sor_1000();
            w.noise = noises[i];
            w.options.ranks = ranks;
            outcome o = play(&w), plain = play_plain(w);
            tell("noise", &o, &plain);
            assert_true(o.executions / o.elapsed_s >= 0.99 * plain.executions / plain.elapsed_s);
        }
}

static void a_constant_load_costs_nothing_after_the_first_moves(void **state) {
    (void)state;
    for (int dear = 0; dear < 2; dear++) {
        world w = dear ? sor_2000() : sor_1000();
        double dedicated = play(&w).efficiency;
        w.loads[1] = (load){.begins_s = 20, .on_s = 1};
        outcome o = play(&w), plain = play_plain(w);
        tell(dear ? "constant, dear" : "constant", &o, &plain);
        assert_true(o.efficiency >= 0.95 * dedicated);
    }
}

static void a_slow_swing_is_followed_as_the_model_says(void **state) {
    (void)state;
    world w = sor_1000();
    w.loads[0] = (load){.begins_s = 30, .on_s = 30, .off_s = 30};
    outcome o = play(&w), plain = play_plain(w);
    tell("60 s/30 s", &o, &plain);
    assert_true(o.efficiency >= 0.9 && o.settled >= 5 && o.settled_came_s > o.moving_s);
    kl_swing model = {
        .ranks = 4, .speed = 0.5, .on_s = 30, .off_s = 30, .react_on_s = 3.5, .react_off_s = 4.5};
    model.move_s = o.moving_s / o.moves;
    printf("   efficiency by the model: %.3f, and %.3f without moves\n", kl_swing_efficiency(&model),
           kl_swing_unmoved(&model));
    assert_true(fabs(kl_swing_efficiency(&model) - o.efficiency) < 0.03);
    assert_true(fabs(kl_swing_unmoved(&model) - plain.efficiency) < 0.03);
}

static void no_swing_is_slower_than_without(void **state) {
    (void)state;
    static const double halves_s[] = {1, 2, 5, 10, 20, 30}, rows_s[] = {1e-4, 1e-3, 4e-3, 16e-3, 64e-3};
    printf("   sweeps with balancing over sweeps without; rows: half a cycle of the load [s], columns: "
           "moving a row [s]:        ");
    for (size_t k = 0; k < sizeof rows_s / sizeof *rows_s; k++)
        printf(" %6g", rows_s[k]);
    for (size_t i = 0; i < sizeof halves_s / sizeof *halves_s; i++) {
        printf("\n   %3g ", halves_s[i]);
        for (size_t k = 0; k < sizeof rows_s / sizeof *rows_s; k++) {
            world w = sor_2000();
            w.options.move.per_unit_s = rows_s[k];
            w.loads[0] = (load){.begins_s = 5, .on_s = halves_s[i], .off_s = halves_s[i]};
            outcome o = play(&w), plain = play_plain(w);
            double ratio = o.executions / o.elapsed_s / (plain.executions / plain.elapsed_s);
            printf(" %6.3f", ratio);
            assert_true(ratio >= 0.995);
        }
    }
    printf("\n");
    world w = sor_2000();
    w.loads[0] = (load){.begins_s = 5, .on_s = 10, .off_s = 10};
    outcome o = play(&w), plain = play_plain(w);
    tell("20 s/10 s, dear", &o, &plain);
    assert_true(o.executions / o.elapsed_s >= plain.executions / plain.elapsed_s);
}

/* Sweeps take 0.1 s. Under a load, moving the necessary rows takes up to an eighth of the load's duration.
 * Ranks learn the time of a move one round after the move. A run as long as one cycle of the load may lose
 * only what the rule allows, two times the time of the moves. */
static void short_loads_beside_rows_that_move_slowly_cost_little(void **state) {
    (void)state;
    static const struct {
        double row_s, begins_s, on_s, off_s, runs_s, least;
    } cases[] = {
        {3e-3, -0.5, 2, 2, 4, 0.8},   {3e-3, -0.5, 2, 2, 40, 0.97}, {3e-3, 0.5, 2, 2, 4, 0.9},
        {1e-3, -0.5, 2, 2, 4, 0.94},  {1e-3, -0.5, 2, 2, 40, 1.02}, {1e-5, -0.5, 2, 2, 4, 1.01},
        {1e-5, -0.5, 2, 2, 40, 1.07}, {3e-3, 1, 1, 0, 10, 1.3},     {3e-3, 1, 1, 0, 60, 1.44},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w = sor_1000();
        w.options = (kl_steer_options){.iterations = 512,
                                       .ranks = 2,
                                       .least = 1,
                                       .interact_s = 1e-4,
                                       .quantum_s = 4e-3,
                                       .move = {1e-4, 2e-3}};
        w.iteration_s = 0.1 / 256;
        w.noise = 0.03;
        w.row_s = cases[i].row_s;
        w.late = true;
        w.runs_s = cases[i].runs_s;
        w.loads[1] = (load){cases[i].begins_s, cases[i].on_s, cases[i].off_s};
        outcome o = play(&w), plain = play_plain(w);
        double ratio = o.executions / o.elapsed_s / (plain.executions / plain.elapsed_s);
        printf("   a row moves in %g s; load on for %g s, off for %g s; run of %g s: %.3f times the sweeps "
               "without balancing; %u moves, %.2f s moving\n",
               cases[i].row_s, cases[i].on_s, cases[i].off_s, cases[i].runs_s, ratio, (unsigned)o.moves,
               o.moving_s);
        assert_true(ratio >= cases[i].least);
    }
}

/* Return the report of rank r, which has the rows from at[r] to at[r + 1]. Rank 1 has half the speed. */
static kl_rank_report report_at(const uint64_t *at, int r, double now_s) {
    uint64_t rows = at[r + 1] - at[r];
    return (kl_rank_report){.elapsed_s = now_s,
                            .executions = 1,
                            .iterations = rows,
                            .busy_s = (double)rows * (r ? 1e-2 : 5e-3),
                            .lo = at[r],
                            .hi = at[r + 1]};
}

/* Two ranks have 100 rows each, and the second one has half the speed, so 33 or 34 rows move at once. A
 * sweep in which nothing else happens takes 1 s. The move costs move_s. The ranks report told_s for it, in
 * round number `round` after the move. Check that the next forecast shows the cost of a row that follows. */
static void the_cost_of_a_row_is_learned_from_time_that_sweeps_took(void **state) {
    (void)state;
    static const struct {
        double move_s, told_s[2]; /* told_s[r]: seconds that rank r reports for the move */
        int round;
        double row_s; /* expected */
    } cases[] = {
        {0.33, {0.33, 0.33}, 1, 0.01}, /* the move is reported in the round in which it is made */
        {0.33, {0.33, 0.1}, 2, 0.01},  /* one rank reports the move a round later */
        {0.33, {0.8, 0.33}, 2, 0.01},  /* one rank's report includes waiting for the other rank */
        {0.66, {0.33, 0.33}, 1, 0.01}, /* sweeps took longer for another reason as well */
        /* while a rank moved rows, the other one computed, so sweeps took no longer */
        {0, {0.2, 0.2}, 1, 0},
        {3.3, {3.3, 3.3}, 2, 0.1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_steer *steer = kl_steer_new(&(kl_steer_options){.iterations = 200,
                                                           .ranks = 2,
                                                           .least = 1,
                                                           .interact_s = 1e-4,
                                                           .quantum_s = 1e-3,
                                                           .move = {0, 1e-3}});
        kl_steer_plan plan = {.move = false};
        double now_s = 0;
        int since = -1;
        for (int round = 0; round < 12; round++) {
            const uint64_t *at = kl_steer_shares(steer);
            kl_rank_report reports[2];
            double sweep_s = fmax((double)at[1] * 5e-3, (double)(200 - at[1]) * 1e-2);
            now_s += sweep_s + (since == 0 ? cases[i].move_s : 0);
            since += since >= 0;
            for (int r = 0; r < 2; r++) {
                reports[r] = report_at(at, r, now_s);
                reports[r].moving_s = since == cases[i].round ? cases[i].told_s[r] : 0;
                reports[r].moved = since == cases[i].round ? 33 : 0;
            }
            assert_int_equal(kl_steer_round(steer, reports, &plan), KILTER_OK);
            if (plan.move && since < 0) {
                kl_steer_commit(steer);
                since = 0;
            }
        }
        assert_true(since > 3 &&
                    fabs(steer->outlook.per_move_s - cases[i].row_s) < 0.1 * cases[i].row_s + 1e-4);
        kl_steer_free(steer);
    }
}

/* Check that the account's gain minus its cost is about the time that balancing saved. This time is the
 * difference between runs without and with balancing. */
static void the_account_tells_what_balancing_gained(void **state) {
    (void)state;
    static const load loads[] = {{.begins_s = 50, .on_s = 1},
                                 {.begins_s = 5, .on_s = 30, .off_s = 30},
                                 {.begins_s = 11, .on_s = 10, .off_s = 10},
                                 {.begins_s = 3, .on_s = 6, .off_s = 6},
                                 {.begins_s = 2, .on_s = 12, .off_s = 24}};
    for (size_t i = 0; i < 2 * sizeof loads / sizeof *loads; i++) {
        world w = sor_2000();
        w.iteration_s = 1e-3;
        w.options.ranks = i % 2 ? 2 : 4;
        w.refill = 0.3 * (double)(i % 3);
        w.loads[0] = loads[i / 2];
        outcome o = play(&w), plain = play_plain(w);
        double gained_s = o.executions * plain.elapsed_s / plain.executions - o.elapsed_s;
        double told_s = o.account.came_s - o.account.cost_s;
        printf("   load %g s on, %g s off, %u ranks: gained %.1f s, the account says %.1f s; %u moves\n",
               loads[i / 2].on_s, loads[i / 2].off_s, w.options.ranks, gained_s, told_s, (unsigned)o.moves);
        assert_true(fabs(told_s - gained_s) < 0.02 * w.runs_s + 0.1 * fabs(gained_s));
        assert_true(fabs(o.account.cost_s - o.moving_s) < 0.1 * o.moving_s + 0.01);
    }
}

/* A pipeline of two ranks. The first rank is fast in the first half of each cycle, and slow in the second
 * half. If no rank may run ahead of the other (no lag), the slower rank limits both in each round. With lag,
 * a round lasts a whole cycle, so only the mean speeds count. */
typedef struct swing {
    /* half_s: seconds of half a cycle; ends_s: seconds after which the first rank stays slow */
    double half_s, ends_s;
    bool buffers;
} swing;

static double free_s(const swing *w, double from_s, double to_s) {
    double step_s = 0.01, sum_s = 0;
    for (double at = from_s; at < to_s; at += step_s)
        sum_s += step_s * (at < w->ends_s && fmod(at, 2 * w->half_s) < w->half_s ? 1 : 0.5);
    return sum_s;
}

/* Simulate a round, which takes 1 s plus the lag. A sweep takes about 20 s. */
static void swing_round(const swing *w, kl_steer *steer, double *now_s, double *lag_s, kl_steer_plan *plan) {
    const uint64_t *bounds = kl_steer_shares(steer);
    double n = 2000, took_s = 1 + *lag_s, each_s = 0.02,
           did_s[] = {free_s(w, *now_s, *now_s + took_s), took_s}, most = 1e9;
    kl_rank_report reports[2];
    for (int r = 0; r < 2; r++)
        most = fmin(most, did_s[r] / each_s / (double)(bounds[r + 1] - bounds[r]));
    *now_s += took_s;
    for (int r = 0; r < 2; r++) {
        double rows = most * (double)(bounds[r + 1] - bounds[r]);
        reports[r] = (kl_rank_report){.elapsed_s = *now_s,
                                      .executions = most,
                                      .iterations = (uint64_t)(n * rows),
                                      .busy_s = n * rows * each_s * took_s / did_s[r],
                                      .lo = bounds[r],
                                      .hi = bounds[r + 1]};
    }
    assert_int_equal(kl_steer_round(steer, reports, plan), KILTER_OK);
    *lag_s = plan->lag_s;
    if (plan->move)
        kl_steer_commit(steer);
}

static void a_swing_that_is_too_fast_is_averaged_over_where_ranks_may_be_ahead(void **state) {
    (void)state;
    static const struct {
        swing swing;
        bool averaged;
    } cases[] = {{{6, 400, true}, true},
                 {{4, 400, true}, true},
                 /* without options.buffers, each sweep waits for the slowest rank, so the mean does not
                  * help */
                 {{6, 400, false}, false},
                 {{60, 400, true}, false}, /* the speeds change so slowly that shares can follow them */
                 {{1000, 400, true}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const swing *w = &cases[i].swing;
        kl_steer *steer = kl_steer_new(&(kl_steer_options){.iterations = 2000,
                                                           .ranks = 2,
                                                           .least = 1,
                                                           .buffers = w->buffers,
                                                           .interact_s = 1e-3,
                                                           .quantum_s = 0.1,
                                                           .move = {1e-3, 1e-3}});
        double now_s = 0, lag_s = 0, lagged_s = 0;
        kl_steer_plan plan;
        while (now_s < w->ends_s) {
            lagged_s += lag_s;
            swing_round(w, steer, &now_s, &lag_s, &plan);
            assert_true(lag_s == 0 || fabs(lag_s - 2 * w->half_s) <= 4);
        }
        double share = (double)kl_steer_shares(steer)[1] / 2000;
        printf("   half a cycle of the load takes %g s: %.0f %% of the time with shares for the mean, the "
               "first rank has %.3f of the rows\n",
               w->half_s, 100 * lagged_s / w->ends_s, share);
        assert_int_equal(lagged_s > 0, cases[i].averaged);
        assert_true(!cases[i].averaged || (lagged_s > 0.6 * w->ends_s && fabs(share - 3.0 / 7) < 0.02));
        while (now_s < 600)
            swing_round(w, steer, &now_s, &lag_s, &plan);
        assert_true(lag_s == 0 && fabs((double)kl_steer_shares(steer)[1] / 2000 - 1.0 / 3) < 0.01);
        kl_steer_free(steer);
    }
}

static void a_load_after_a_long_calm_is_noticed_as_soon_as_one_at_once(void **state) {
    (void)state;
    world w = sor_1000();
    w.runs_s = 2000;
    w.noise = 0;
    w.loads[1] = (load){.begins_s = 1900, .on_s = 1};
    outcome o = play(&w), plain = play_plain(w);
    tell("a load of 100 s after 1900 s without load", &o, &plain);
    assert_true(o.executions - plain.executions > 0.8 * 100 * (1 / 0.571 - 1 / 1.0));
}

static void imbalance_below_any_threshold_does_not_stay(void **state) {
    (void)state;
    world w = sor_1000();
    w.noise = 0.002;
    w.speeds[2] = 0.97;
    outcome o = play(&w), plain = play_plain(w);
    tell("one rank slower by 3 %", &o, &plain);
    assert_true(o.moves >= 1 && o.efficiency > plain.efficiency + 0.01);
}

/* Unequal shares cost time that only shows in the time of sweeps, not in reports. Check that the loop finds
 * this out and keeps equal shares. */
static void what_forecasts_do_not_see_is_measured(void **state) {
    (void)state;
    world w = sor_1000();
    w.noise = 0.002;
    w.speeds[2] = 0.9;
    w.apart_s = 0.3 * w.iteration_s * (double)w.options.iterations / w.options.ranks;
    outcome o = play(&w), plain = play_plain(w);
    tell("unequal shares cost more than reported", &o, &plain);
    assert_true(o.moves >= 2 && o.efficiency > 0.97 * plain.efficiency);
}

/* --- sweeps that are shorter than the scheduler's time slices --- */

/* Two ranks, of which the second gets half of its core. With deep halos a sweep takes deep_s seconds, with
 * equal shares equal_s, otherwise apart_s. */
typedef struct short_world {
    double equal_s, apart_s, deep_s;
    uint32_t refuses; /* number of moves at the beginning that are refused */
    bool alone;       /* true: no other process uses the cores */
} short_world;

static void short_round(const short_world *w, kl_steer *steer, double *now_s, kl_steer_plan *plan) {
    static const double row_s = 2e-6, round_s = 0.04;
    const uint64_t *at = kl_steer_shares(steer);
    bool equal = at[1] == 500;
    double takes_s = plan->depth > 1 ? w->deep_s : equal ? w->equal_s : w->apart_s;
    kl_rank_report reports[2];
    *now_s += round_s;
    for (uint32_t r = 0; r < 2; r++) {
        double rows = (double)(at[r + 1] - at[r]), executions = round_s / takes_s;
        reports[r] = (kl_rank_report){.elapsed_s = *now_s,
                                      .executions = executions,
                                      .busy_s = executions * rows * row_s * (w->alone ? 1 : r + 1),
                                      .iterations = (uint64_t)(executions * rows),
                                      .lo = at[r],
                                      .hi = at[r + 1],
                                      .quantum_s = 4e-3,
                                      .share = w->alone ? 1 : 1.0 / (r + 1)};
    }
    assert_int_equal(kl_steer_round(steer, reports, plan), KILTER_OK);
    assert_true(plan->depth >= 1 && plan->depth <= 32);
}

/* Check the shares and the halos in each round after the first 40 rounds. apart: the shares must be unequal
 * (false: equal); deep: one exchange must serve several sweeps (false: one sweep). */
static void check_short(const short_world *w, bool apart, bool deep) {
    kl_steer_options options = {
        .iterations = 1000, .ranks = 2, .least = 1, .quantum_s = 4e-3, .reach = 1, .deepest = 32};
    kl_steer *steer = kl_steer_new(&options);
    kl_steer_plan plan = {.depth = 1};
    double now_s = 0;
    uint32_t refused = 0;
    for (int round = 0; round < 150; round++) {
        short_round(w, steer, &now_s, &plan);
        if (getenv("KL_SAY"))
            printf("%8.2f %llu %s\n", now_s, (unsigned long long)plan.depth, plan.judgement.reason);
        if (plan.move) {
            kl_steer_commit(steer);
            if (refused++ < w->refuses)
                kl_steer_refuse(steer);
        }
        if (round > 40) {
            assert_int_equal(kl_steer_shares(steer)[1] != 500, apart);
            assert_int_equal(plan.depth > 1, deep);
        }
    }
    kl_steer_free(steer);
}

static void the_best_for_short_executions_is_in_force(void **state) {
    (void)state;
    check_short(&(short_world){2e-3, 1.9e-3, 1.4e-3, 0, false}, true, true);
    check_short(&(short_world){2e-3, 1.4e-3, 1.9e-3, 0, false}, true, false);
    check_short(&(short_world){2e-3, 2.5e-3, 2.2e-3, 0, false}, false, false);
    /* 1.36 ms: nearly the least time that the speeds allow */
    check_short(&(short_world){2e-3, 1.36e-3, 1.4e-3, 0, false}, true, false);
    check_short(&(short_world){2e-3, 1.7e-3, 1.34e-3, 0, false}, true, true);
    /* all rows on the first rank are refused, but shares in proportion are not */
    check_short(&(short_world){2.4e-3, 1.9e-3, 2.05e-3, 1, false}, true, false);
    /* if both are refused, shares stay equal; deep halos need no move */
    check_short(&(short_world){2.4e-3, 1.9e-3, 2.05e-3, 2, false}, false, true);
    check_short(&(short_world){2.4e-3, 1.9e-3, 2.05e-3, 1000, false}, false, true);
    check_short(&(short_world){2e-3, 2.5e-3, 2.2e-3, 1000, false}, false, false); /* every move is refused */
}

/* Another process takes half of the second rank's core for on_s of each cycle_s seconds. Trials pay only if
 * this load stays for long. */
static void no_shares_are_tried_for_loads_that_come_for_moments(void **state) {
    (void)state;
    static const struct {
        double on_s, cycle_s;
        bool tried;
    } cases[] = {{0.08, 0.2, false}, {0.2, 0.6, false}, {0.8, 2, true}, {10, 10, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_steer_options options = {.iterations = 1000, .ranks = 2, .least = 1, .quantum_s = 4e-3};
        kl_steer *steer = kl_steer_new(&options);
        kl_steer_plan plan = {.depth = 1};
        double now_s = 0;
        bool tried = false;
        for (int round = 0; round < 200; round++) {
            bool on = fmod(now_s, cases[i].cycle_s) < cases[i].on_s;
            double takes_s = on ? 2e-3 : 1e-3;
            short_round(&(short_world){takes_s, 1.5 * takes_s, takes_s, 0, !on}, steer, &now_s, &plan);
            tried |= plan.move;
            if (plan.move)
                kl_steer_commit(steer);
        }
        assert_int_equal(tried, cases[i].tried);
        kl_steer_free(steer);
    }
}

/* Ranks that get parts of their cores. One rank would compute all iterations of a sweep in body_s seconds. */
typedef struct cores_world {
    uint32_t ranks;
    double body_s, now_s;
    double share[MOST];
    double slow; /* seconds of a row on the second rank, divided by those on the first rank */
    kl_steer *steer;
    kl_steer_plan plan;
} cores_world;

static cores_world cores_world_of(uint32_t ranks, double body_s) {
    kl_steer_options options = {.iterations = 1000, .ranks = ranks, .least = 1, .quantum_s = 4e-3};
    return (cores_world){.ranks = ranks,
                         .body_s = body_s,
                         .share = {1, 0.5},
                         .slow = 1,
                         .steer = kl_steer_new(&options),
                         .plan = {.depth = 1}};
}

/* Report a round of 0.04 s, in which a sweep takes takes_s seconds, and commit to the move that is proposed.
 * Return whether one is proposed. */
static bool cores_round(cores_world *w, double takes_s) {
    const uint64_t *at = kl_steer_shares(w->steer);
    double executions = 0.04 / takes_s;
    kl_rank_report reports[MOST];
    w->now_s += 0.04;
    for (uint32_t r = 0; r < w->ranks; r++) {
        double rows = (double)(at[r + 1] - at[r]);
        reports[r] = (kl_rank_report){.elapsed_s = w->now_s,
                                      .executions = executions,
                                      .busy_s = executions * w->body_s * rows / 1000 * (r == 1 ? w->slow : 1),
                                      .iterations = (uint64_t)(executions * rows),
                                      .lo = at[r],
                                      .hi = at[r + 1],
                                      .quantum_s = 4e-3,
                                      .share = w->share[r]};
    }
    assert_int_equal(kl_steer_round(w->steer, reports, &w->plan), KILTER_OK);
    if (w->plan.move)
        kl_steer_commit(w->steer);
    return w->plan.move;
}

/* Return the number of iterations of a rank. */
static uint64_t rows_of(const cores_world *w, uint32_t rank) {
    const uint64_t *at = kl_steer_shares(w->steer);
    return at[rank + 1] - at[rank];
}

/* The second rank has half of its core and should have no rows. For some rounds another process takes a part
 * of the first rank's core, too. Check that the rows stay on the first rank: with any such part, and also if
 * this happens while choices are tried. */
static void all_rows_stay_while_a_free_core_is_disturbed(void **state) {
    (void)state;
    static const double parts[] = {0.9, 0.84, 0.75, 0.6, 0.5, 0.4};
    for (size_t i = 0; i < 2 * sizeof parts / sizeof *parts; i++) {
        cores_world w = cores_world_of(2, 1e-4);
        int first = i % 2 ? 60 : 10;
        for (int round = 1; round < 150; round++) {
            w.share[0] = round > first && round % 10 < 5 ? parts[i / 2] : 1;
            cores_round(&w, rows_of(&w, 0) == 1000 ? 4e-4 : 2e-3);
            assert_true(round < 60 || rows_of(&w, 0) == 1000);
        }
        kl_steer_free(w.steer);
    }
}

/* The forecast for all rows on the first rank is longer than the time of equal shares, because it was
 * measured while halos were exchanged. Check that this choice is tried nevertheless, and kept. */
static void all_rows_on_the_free_core_are_tried_although_the_forecast_is_longer(void **state) {
    (void)state;
    cores_world w = cores_world_of(2, 2.2e-3);
    for (int round = 1; round < 60; round++)
        cores_round(&w, rows_of(&w, 0) == 1000 ? 1.5e-3 : 2e-3);
    assert_int_equal(rows_of(&w, 0), 1000);
    kl_steer_free(w.steer);
}

/* The second rank has no core of its own, and equal shares are best. Later its rows take three times as long.
 * Check that rows then move, although the conditions for trials still hold. */
static void rows_move_where_ranks_share_cores_and_no_trial_helped(void **state) {
    (void)state;
    cores_world w = cores_world_of(2, 2e-3);
    kl_steer_free(w.steer);
    w.steer = kl_steer_new(
        &(kl_steer_options){.iterations = 1000, .ranks = 2, .least = 1, .quantum_s = 4e-3, .crowded = true});
    for (int round = 1; round < 200; round++) {
        double first = (double)rows_of(&w, 0), second = (double)rows_of(&w, 1);
        w.slow = round > 80 ? 3 : 1;
        cores_round(&w, round > 80 ? 2e-6 * fmax(first, 3 * second) : rows_of(&w, 0) == 500 ? 1e-3 : 2e-3);
        assert_true(round < 50 || round > 80 || rows_of(&w, 0) == 500);
    }
    assert_true(rows_of(&w, 0) > 700);
    kl_steer_free(w.steer);
}

/* Return whether the plan has another reason than in the last round, which begins with the text. */
static bool begins_to_say(const cores_world *w, const char *text, const char *last) {
    return strncmp(w->plan.judgement.reason, text, strlen(text)) == 0 &&
           strncmp(last, text, strlen(text)) != 0;
}

/* Ranks share cores, and the load of a core changes again and again. Trials cost nothing, or more time than
 * they may take. Check that each change ends the pause after trials. Under an unknown load, shares are tried.
 * Under a known load, the best choice is used at once. Shares are tried again soon after the last change. */
static void a_load_that_changes_ends_the_pause_after_trials(void **state) {
    static const struct {
        double body_s;
        int series, known; /* number of times while the load changes: trials end; the load is known */
    } rows[] = {{2e-3, 2, 4}, {1e-3, 1, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cores_world w = cores_world_of(2, rows[i].body_s);
        int series = 0, known = 0;
        bool tried = false;
        kl_steer_free(w.steer);
        w.steer = kl_steer_new(&(kl_steer_options){
            .iterations = 1000, .ranks = 2, .least = 1, .quantum_s = 4e-3, .crowded = true});
        while (w.now_s < 30) {
            char last[KL_REASON_BYTES];
            memcpy(last, w.plan.judgement.reason, sizeof last);
            w.share[1] = w.now_s < 9 && fmod(w.now_s, 3) < 1.5 ? 0.75 : 0.5;
            cores_round(&w, rows_of(&w, 0) == 500 ? 1e-3 : 2e-3);
            series += w.now_s < 9 && begins_to_say(&w, "chosen for", last);
            known += w.now_s < 9 && begins_to_say(&w, "best under this load before", last);
            tried |= w.now_s > 10 && strstr(w.plan.judgement.reason, "trying") != NULL;
        }
        assert_true(series >= rows[i].series && known >= rows[i].known);
        assert_true(tried);
        kl_steer_free(w.steer);
    }
}

/* Ranks share cores, and moving all rows to one rank takes long. With all rows on rank 0, a sweep takes 0.5
 * ms by forecast, and 1 ms in truth. In the first case, the forecast is a quarter of the time with equal
 * shares. These shares must be tried when the moves are a small part of the time. In the other cases, the
 * forecast is a tenth of that time. They must be tried when a move takes less than all the time so far, even
 * after other trials. */
static void shares_are_tried_late_if_moves_take_long(void **state) {
    static const struct {
        double equal_s, move_row_s, least_s, most_s; /* least_s, most_s: when the trial begins */
    } rows[] = {{2e-3, 1e-3, 15, 60}, {5e-3, 1e-3, 0.1, 3}, {5e-3, 8e-3, 4, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cores_world w = cores_world_of(2, 5e-4);
        double tried_s = 0;
        kl_steer_free(w.steer);
        w.steer = kl_steer_new(&(kl_steer_options){.iterations = 1000,
                                                   .ranks = 2,
                                                   .least = 1,
                                                   .quantum_s = 4e-3,
                                                   .crowded = true,
                                                   .move = {1e-3, rows[i].move_row_s}});
        while (w.now_s < 60) {
            cores_round(&w, rows_of(&w, 0) == 1000 ? 1e-3 : rows[i].equal_s);
            if (tried_s == 0 && strstr(w.plan.judgement.reason, "trying nothing"))
                tried_s = w.now_s;
        }
        if (tried_s < rows[i].least_s || tried_s > rows[i].most_s)
            fail_msg("row %d: %g s", (int)i, tried_s);
        kl_steer_free(w.steer);
    }
}

/* Ranks share cores, and two loads alternate. Equal shares are best under one of them, and all rows on the
 * first rank under the other. Each load lasts until the time in the table. Check that the shares that were
 * best under a load are used at once when it comes again. If trials under this load were long ago, shares are
 * tried again. Until a new load counts, the former best shares take up to ten times as long. */
static void a_load_that_comes_again_needs_no_trials(void **state) {
    static const struct {
        double until_s;
        bool second, tries; /* tries: shares are tried in the first 5 s */
        uint64_t rows;      /* rows of the first rank after that */
    } loads[] = {{30, false, true, 500},  {45, true, true, 1000},  {47, false, false, 500},
                 {49, true, false, 1000}, {51, false, false, 500}, {105, true, false, 1000},
                 {107, false, true, 500}};
    static const double sweep_s[2][2] = {{1e-3, 1e-2},
                                         {1.3e-3, 1e-3}}; /* [load][all rows on the first rank] */
    (void)state;
    cores_world w = cores_world_of(2, 1e-4);
    kl_steer_free(w.steer);
    w.steer = kl_steer_new(
        &(kl_steer_options){.iterations = 1000, .ranks = 2, .least = 1, .quantum_s = 4e-3, .crowded = true});
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        bool tried = false;
        double begins_s = w.now_s;
        w.share[1] = loads[i].second ? 0.25 : 0.5;
        while (w.now_s < loads[i].until_s) {
            cores_round(&w, sweep_s[loads[i].second][rows_of(&w, 0) == 1000]);
            tried |= w.now_s < begins_s + 5 && strstr(w.plan.judgement.reason, "trying") != NULL;
        }
        assert_int_equal(tried, loads[i].tries);
        assert_int_equal(rows_of(&w, 0), loads[i].rows);
    }
    kl_steer_free(w.steer);
}

/* Check that equal shares, which were measured until the load counted, are not tried in the first series. */
static void equal_shares_need_no_trial_after_a_wait(void **state) {
    (void)state;
    cores_world w = cores_world_of(2, 1e-4);
    bool tried = false;
    for (int round = 1; round < 60; round++) {
        cores_round(&w, rows_of(&w, 0) == 1000 ? 4e-4 : 2e-3);
        assert_null(strstr(w.plan.judgement.reason, "trying equal shares"));
        tried |= strstr(w.plan.judgement.reason, "trying nothing") != NULL;
    }
    assert_true(tried);
    assert_non_null(strstr(w.plan.judgement.reason, "equal 2 ms"));
    kl_steer_free(w.steer);
}

/* Four ranks have 1, 0.55, 0.55 and 0.1 of their cores, and reports vary. Check that rows stay in place while
 * a choice is kept, although two ranks are near the limit between free and shared cores. */
static void rows_stay_if_cores_near_the_limit_vary(void **state) {
    (void)state;
    static const double cores[] = {1, 0.55, 0.55, 0.1};
    cores_world w = cores_world_of(4, 1e-4);
    uint32_t moves = 0;
    for (uint64_t round = 1; round < 190; round++) {
        for (uint32_t r = 0; r < 4; r++)
            w.share[r] = cores[r] + (r > 0 ? 0.1 * (random_01(round * 4 + r) - 0.5) : 0);
        moves += cores_round(&w, rows_of(&w, 3) == 0 ? 4e-4 : 2e-3) && round > 60;
    }
    assert_int_equal(moves, 0);
    assert_int_equal(rows_of(&w, 3), 0);
    kl_steer_free(w.steer);
}

/* Under the first load, which takes half of rank 1's core, the move to other shares is refused. A second load
 * takes half of a core as well: that of rank 1, or that of rank 0. Check that the rank under the second load
 * then gets no rows, which is best. */
static void a_refusal_under_one_load_is_forgotten_under_another(void **state) {
    (void)state;
    for (uint32_t other = 0; other < 2; other++) {
        cores_world w = cores_world_of(2, 1e-4);
        uint32_t refused = 0;
        for (int round = 1; round < 600; round++) {
            bool late = round > 100;
            w.share[0] = late && other ? 0.5 : 1;
            w.share[1] = (late && other) || (round > 60 && !late) ? 1 : 0.5;
            if (cores_round(&w, late && rows_of(&w, !other) == 0 ? 4e-4 : 2e-3) && !late) {
                kl_steer_refuse(w.steer);
                refused++;
            }
        }
        assert_in_range(refused, 1, 2);
        assert_int_equal(rows_of(&w, !other), 0);
        kl_steer_free(w.steer);
    }
}

/* Ranks share cores. All rows on the first rank are best under two loads. Under the second one, every move to
 * unequal shares is refused. Check that the rows move when the first load comes again. */
static void a_refusal_does_not_bar_shares_that_were_best_before(void **state) {
    (void)state;
    cores_world w = cores_world_of(2, 1e-4);
    uint32_t refused = 0;
    bool best = false;
    kl_steer_free(w.steer);
    w.steer = kl_steer_new(
        &(kl_steer_options){.iterations = 1000, .ranks = 2, .least = 1, .quantum_s = 4e-3, .crowded = true});
    while (w.now_s < 32) {
        bool second = w.now_s > 20 && w.now_s < 30;
        w.share[1] = second ? 0.25 : 0.5;
        bool moves = cores_round(&w, rows_of(&w, 0) == 1000 ? 1e-3 : 2e-3);
        if (moves && second && rows_of(&w, 0) != 500) {
            kl_steer_refuse(w.steer);
            refused++;
        }
        best |= w.now_s < 20 && rows_of(&w, 0) == 1000;
    }
    assert_true(best && refused > 0);
    assert_int_equal(rows_of(&w, 0), 1000);
    kl_steer_free(w.steer);
}

/* Moves are refused at random, and cores and sweeps change at random. Check that each series of trials
 * ends. */
static void trials_end_whatever_is_refused(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        cores_world w = cores_world_of(2 + (uint32_t)(seed % 3), 1e-4);
        int trying = 0;
        kl_steer_free(w.steer);
        w.steer = kl_steer_new(&(kl_steer_options){.iterations = 1000,
                                                   .ranks = w.ranks,
                                                   .least = 1,
                                                   .quantum_s = 4e-3,
                                                   .crowded = seed % 2 == 1,
                                                   .move = {0, seed % 4 == 3 ? 1e-2 * random_01(seed) : 0}});
        for (uint64_t round = 1; round < 600; round++) {
            uint64_t at = seed * 1000 + round;
            if (round % 150 == 0)
                for (uint32_t r = 0; r < w.ranks; r++)
                    w.share[r] = kl_mix64(at + r) % 2 ? 1 : 0.5;
            double takes_s = 1e-3 * (1 + random_01(rows_of(&w, 0) + seed));
            if (cores_round(&w, takes_s) && kl_mix64(at) % 2)
                kl_steer_refuse(w.steer);
            trying = strncmp(w.plan.judgement.reason, "trying", 6) ? 0 : trying + 1;
            assert_true(trying < 60);
        }
        kl_steer_free(w.steer);
    }
}

/* The kept choice becomes slow, and the move to a better choice is refused. Check that the slow choice is
 * still kept, and that all rows stay where they are. */
static void a_refused_switch_leaves_the_choice_that_was_kept(void **state) {
    (void)state;
    cores_world w = cores_world_of(2, 1e-4);
    uint32_t refused = 0;
    for (int round = 1; round < 150; round++) {
        uint64_t first = rows_of(&w, 0);
        double takes_s = first == 1000 ? (round > 60 ? 1.3e-3 : 4e-4) : first == 500 ? 1.5e-3 : 5e-4;
        if (cores_round(&w, takes_s) && round > 60) {
            kl_steer_refuse(w.steer);
            refused++;
        }
        assert_true(round < 60 || rows_of(&w, 0) == 1000);
    }
    assert_non_null(strstr(w.plan.judgement.reason, ": nothing on shared cores"));
    assert_in_range(refused, 1, 4);
    kl_steer_free(w.steer);
}

static void uneven_costs_and_unequal_ranks_end_in_balance(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        world w = sor_1000();
        w.slope = i % 2 ? 4 : 0;
        w.speeds[1] = 0.6;
        w.options.scattered = i == 2;
        if (i >= 2)
            w.loads[3] = (load){.begins_s = 50, .on_s = 1};
        outcome o = play(&w), plain = play_plain(w);
        tell(i % 2 ? "costs that differ between iterations, and unequal ranks" : "unequal ranks", &o, &plain);
        assert_true(o.efficiency > 0.95);
    }
}

static void fewer_iterations_than_ranks_are_no_trouble(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 8; n++) {
        world w = sor_1000();
        w.options.ranks = 8;
        w.options.iterations = n;
        w.options.scattered = n % 2;
        w.iteration_s = 0.3;
        w.loads[0] = (load){.begins_s = 20, .on_s = 1};
        outcome o = play(&w), plain = play_plain(w);
        assert_true(o.executions >= 0.999 * plain.executions * o.elapsed_s / plain.elapsed_s);
        /* rank 0, which becomes slow, must get no work */
        assert_true(o.executions > 1.7 * plain.executions);
    }
}

static void what_is_refused_is_not_asked_for_over_and_over(void **state) {
    (void)state;
    world w = sor_1000();
    w.loads[1] = (load){.begins_s = 20, .on_s = 1};
    w.refuses = UINT32_MAX;
    outcome o = play(&w), plain = play_plain(w);
    assert_true(o.moves == 0 && o.refused >= 1 && o.refused <= 5);
    assert_true(o.account.moves == 0 && fabs(o.executions - plain.executions) <= 2);
}

/* Return a random loop, in which each rank has a load that stays, a load that comes and goes, or no load. */
static world random_world(uint64_t seed) {
    uint32_t ranks = 1 + kl_mix64(seed) % MOST;
    world w = {.noise = 0.1 * random_01(seed + 5) * random_01(seed + 6),
               .barrier_s = 1e-3 * random_01(seed + 7),
               .runs_s = 300,
               .balanced = true};
    w.options = (kl_steer_options){.iterations = ranks + kl_mix64(seed + 1) % 5000,
                                   .ranks = ranks,
                                   .least = 1,
                                   .scattered = kl_mix64(seed + 2) % 2,
                                   .interact_s = 1e-3,
                                   .quantum_s = 0.1 * random_01(seed + 3)};
    double all_s = exp(9 * random_01(seed + 4) - 5); /* seconds that moving all rows one time takes */
    w.options.move = (kl_linear){1e-3, all_s / (double)w.options.iterations};
    w.iteration_s = exp(5 * random_01(seed + 8) - 4) * ranks / (double)w.options.iterations;
    for (uint32_t r = 0; r < ranks; r++) {
        uint64_t kind = kl_mix64(seed * 97 + r) % 5, at = seed * 91 + 3 * r;
        w.speeds[r] = seed % 3 ? 0 : 0.5 + random_01(seed * 89 + r);
        if (kind == 0)
            w.loads[r] = (load){.begins_s = 100 * random_01(at), .on_s = 1};
        if (kind == 1)
            w.loads[r] = (load){.begins_s = 50 * random_01(at),
                                .on_s = 0.5 + 30 * random_01(at + 1),
                                .off_s = 0.5 + 30 * random_01(at + 2)};
    }
    return w;
}

/* Compare random loops with and without balancing. Rows may be expensive to move, and many loads may come
 * and go. Then up to a tenth of the time may be lost before balancing rests (pauses). */
static void random_clusters_are_not_slower_than_without(void **state) {
    (void)state;
    double worst = 1, sum = 0;
    enum { WORLDS = 200 };
    for (uint64_t seed = 0; seed < WORLDS; seed++) {
        world w = random_world(seed * 1000);
        outcome o = play(&w), plain = play_plain(w);
        double ratio = o.executions / o.elapsed_s / (plain.executions / plain.elapsed_s);
        double all_s = w.options.move.per_unit_s * (double)w.options.iterations;
        if (ratio < 0.98)
            printf("   %.3f times the sweeps without balancing: %u ranks, %u moves, %.1f s moving, moving "
                   "all rows %.1f s, noise %.3f, sweep %.2g s\n",
                   ratio, (unsigned)w.options.ranks, (unsigned)o.moves, o.moving_s, all_s, w.noise,
                   plain.elapsed_s / plain.executions);
        assert_true(ratio >= 0.9);
        if (all_s <= 0.01 * w.runs_s)
            worst = fmin(worst, ratio);
        sum += ratio;
    }
    printf("sweeps with balancing over sweeps without, in %d random loops: worst %.3f, mean %.3f\n", WORLDS,
           worst, sum / WORLDS);
    assert_true(worst >= 0.97);
    assert_true(sum / WORLDS > 1.2);
}

static void the_longest_quantum_reported_sets_the_period(void **state) {
    (void)state;
    kl_steer *steer = kl_steer_new(
        &(kl_steer_options){.iterations = 10, .ranks = 2, .interact_s = 1e-5, .quantum_s = 0.01});
    kl_rank_report reports[2] = {{.busy_s = 1, .iterations = 5, .hi = 5},
                                 {.busy_s = 1, .iterations = 5, .lo = 5, .hi = 10}};
    kl_steer_plan plan;
    static const double quanta_s[][3] = {{0, 0, 0.01}, {0, 0.05, 0.05}, {0.002, 0.004, 0.004}, {0, 0, 0.004}};
    for (size_t i = 0; i < sizeof quanta_s / sizeof *quanta_s; i++) {
        for (int r = 0; r < 2; r++)
            reports[r].quantum_s = quanta_s[i][r];
        assert_int_equal(kl_steer_round(steer, reports, &plan), KILTER_OK);
        assert_true(plan.period.bound == KL_PERIOD_QUANTUM && plan.period.quantum_s == quanta_s[i][2]);
    }
    kl_steer_free(steer);
}

/* The first of two ranks is half as fast as the second, so the shares are 30 and 60 iterations. An iteration
 * takes 1 s on the second rank. */
static void what_is_left_of_an_execution_ends_at_once(void **state) {
    (void)state;
    static const struct {
        uint64_t todo[2];
        uint32_t from;
        uint64_t count; /* expected number of iterations that move; 0: none */
    } cases[] = {
        {{0, 0}, 0, 0},   /* no iteration is left in the sweep */
        {{10, 20}, 0, 0}, /* balanced */
        {{0, 2}, 0, 0},   /* a move would save less than a period */
        {{0, 30}, 1, 10}, /* rank 0 has nothing to do, so it gets a third of the iterations of rank 1 */
        {{30, 0}, 0, 20}, {{20, 10}, 0, 10},
    };
    kl_steer *steer = kl_steer_new(&(kl_steer_options){.iterations = 90,
                                                       .ranks = 2,
                                                       .scattered = true,
                                                       .least = 1,
                                                       .interact_s = 1e-3,
                                                       .quantum_s = 0.1,
                                                       .move = {1e-3, 1e-3}});
    kl_steer_plan plan;
    for (int round = 1; round <= 8; round++) {
        kl_rank_report reports[2] = {{.elapsed_s = round, .busy_s = 10, .iterations = 5},
                                     {.elapsed_s = round, .busy_s = 10, .iterations = 10}};
        reports[0].executions = reports[1].executions = 0.01;
        assert_int_equal(kl_steer_round(steer, reports, &plan), KILTER_OK);
        if (plan.move)
            kl_steer_commit(steer);
    }
    assert_true(kl_steer_shares(steer)[0] == 30 && !plan.move);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_steer_plan left = plan;
        assert_int_equal(kl_steer_left(steer, cases[i].todo, &left), cases[i].count > 0);
        assert_int_equal(left.move, cases[i].count > 0);
        if (cases[i].count == 0)
            continue;
        assert_true(left.transfer_count == 1 && left.transfers[0].from == cases[i].from);
        assert_true(left.transfers[0].count == cases[i].count && left.moved == cases[i].count);
    }
    kl_steer_free(steer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dedicated_cluster_is_left_alone),
        cmocka_unit_test(noise_alone_moves_little_and_costs_less),
        cmocka_unit_test(a_constant_load_costs_nothing_after_the_first_moves),
        cmocka_unit_test(a_slow_swing_is_followed_as_the_model_says),
        cmocka_unit_test(no_swing_is_slower_than_without),
        cmocka_unit_test(short_loads_beside_rows_that_move_slowly_cost_little),
        cmocka_unit_test(the_cost_of_a_row_is_learned_from_time_that_sweeps_took),
        cmocka_unit_test(the_account_tells_what_balancing_gained),
        cmocka_unit_test(a_swing_that_is_too_fast_is_averaged_over_where_ranks_may_be_ahead),
        cmocka_unit_test(a_load_after_a_long_calm_is_noticed_as_soon_as_one_at_once),
        cmocka_unit_test(imbalance_below_any_threshold_does_not_stay),
        cmocka_unit_test(the_best_for_short_executions_is_in_force),
        cmocka_unit_test(no_shares_are_tried_for_loads_that_come_for_moments),
        cmocka_unit_test(what_forecasts_do_not_see_is_measured),
        cmocka_unit_test(all_rows_stay_while_a_free_core_is_disturbed),
        cmocka_unit_test(all_rows_on_the_free_core_are_tried_although_the_forecast_is_longer),
        cmocka_unit_test(rows_move_where_ranks_share_cores_and_no_trial_helped),
        cmocka_unit_test(a_load_that_changes_ends_the_pause_after_trials),
        cmocka_unit_test(shares_are_tried_late_if_moves_take_long),
        cmocka_unit_test(a_load_that_comes_again_needs_no_trials),
        cmocka_unit_test(equal_shares_need_no_trial_after_a_wait),
        cmocka_unit_test(rows_stay_if_cores_near_the_limit_vary),
        cmocka_unit_test(a_refusal_under_one_load_is_forgotten_under_another),
        cmocka_unit_test(a_refusal_does_not_bar_shares_that_were_best_before),
        cmocka_unit_test(trials_end_whatever_is_refused),
        cmocka_unit_test(a_refused_switch_leaves_the_choice_that_was_kept),
        cmocka_unit_test(uneven_costs_and_unequal_ranks_end_in_balance),
        cmocka_unit_test(fewer_iterations_than_ranks_are_no_trouble),
        cmocka_unit_test(what_is_refused_is_not_asked_for_over_and_over),
        cmocka_unit_test(random_clusters_are_not_slower_than_without),
        cmocka_unit_test(the_longest_quantum_reported_sets_the_period),
        cmocka_unit_test(what_is_left_of_an_execution_ends_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
