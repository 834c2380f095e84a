/* Test the keeper under a fake clock: tables of events and expected actions, and properties that always hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "keeper/keeper_test_helper.h"

static void fine(const world *w) {
    if (!w->over || w->end.result != KL_KEEPER_DONE)
        fail_msg("the run is not done: %s, %s", kl_keeper_state_name(w->keeper.state), w->end.text);
    assert_true(w->program.done >= w->sweeps);
}

/* Return whether exactly the hosts with these one-letter names have ranks. "ab" stands for hosts a and b. */
static bool is_on(const world *w, const char *names) {
    for (size_t i = 0; i < w->hosts; i++)
        if ((w->program.ranks[i] > 0) != (strchr(names, w->host[i].name[0]) != NULL))
            return false;
    return true;
}

/* --- runs without failures --- */

static void a_healthy_run_is_started_once(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    assert_true(world_until(&w, world_is_running, 10));
    assert_true(is_on(&w, "ab"));
    world_until(&w, NULL, 1000);
    fine(&w);
    assert_int_equal(w.starts, 1);
    assert_int_equal(w.moves + w.restarts + w.kills + w.asks, 0);
    assert_string_equal(w.end.text, "done after 1 attempt");
    kl_keeper_free(&w.keeper);
}

static void a_program_that_reports_nothing_is_only_started_and_ended(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    w.mute = true;
    world_until(&w, NULL, 1000);
    fine(&w);
    assert_int_equal(w.starts, 1);
    assert_int_equal(w.kills, 0);
    kl_keeper_free(&w.keeper);
}

/* --- failures --- */

static void a_failure_restarts_there_then_elsewhere_then_never(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    w.save_every_s = 0;
    w.dies_at = 20;
    w.deaths = UINT32_MAX;
    const char *const places[] = {"ab", "ab", "cd"};
    for (uint32_t i = 0; i < 3; i++) {
        while (w.starts <= i && !w.over)
            world_pass(&w, 0.1);
        assert_true(is_on(&w, places[i]));
    }
    world_until(&w, NULL, 1000);
    assert_true(w.over);
    assert_int_equal(w.end.result, KL_KEEPER_GAVE_UP);
    assert_int_equal(w.starts, 3);
    assert_int_equal(w.gave_up, 1);
    assert_int_equal(w.end.code, 137);
    assert_non_null(strstr(w.end.text, "3 attempts in a row saved nothing"));
    kl_keeper_free(&w.keeper);
}

static void failures_with_progress_are_restarted_as_often_as_they_come(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    assert_true(world_until(&w, world_is_running, 10));
    for (w.dies_at = 20; w.dies_at < 200 && !w.over; w.dies_at += 15) {
        w.deaths = 1;
        uint32_t starts = w.starts;
        while (!w.over && w.starts == starts)
            world_pass(&w, 0.1);
    }
    world_until(&w, NULL, 1000);
    fine(&w);
    assert_int_equal(w.starts, 13);
    kl_keeper_free(&w.keeper);
}

static void a_program_that_does_not_exist_is_not_tried_again(void **state) {
    (void)state;
    const kl_keeper_end ends[] = {
        {1, KL_KEEPER_EXITED, 127}, {1, KL_KEEPER_EXITED, 126}, {1, KL_KEEPER_MISSING, 0}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        world w;
        world_init(&w, NULL);
        while (w.starts == 0)
            world_pass(&w, 0.1);
        world_tell(&w, &(kl_keeper_event){.kind = KL_KEEPER_ENDED, .end = ends[i]});
        assert_true(w.over);
        assert_int_equal(w.end.result, KL_KEEPER_GAVE_UP);
        kl_keeper_free(&w.keeper);
    }
}

static bool is_restarted(const world *w) {
    return w->starts == 2 && w->program.reports;
}

static void a_lost_host_is_left_out_and_fewer_ranks_go_on(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    w.hosts = 2;
    assert_true(world_until(&w, world_has_saved, 100));
    w.host[1].pace = 0;
    assert_true(world_until(&w, is_restarted, 100));
    assert_true(is_on(&w, "a"));
    assert_int_equal(w.program.ranks[0], 2);
    assert_true(w.program.done >= 1);
    w.host[1].pace = 1; /* host b works again, so the run must use it again */
    world_until(&w, NULL, 1000);
    fine(&w);
    assert_int_equal(w.starts, 3);
    assert_int_equal(w.moves, 1);
    kl_keeper_free(&w.keeper);
}

static bool is_waiting(const world *w) {
    return w->keeper.state == KL_KEEPER_WAITING;
}

static void without_hosts_the_keeper_waits_and_then_gives_up(void **state) {
    (void)state;
    world w;
    world_init(&w, &(kl_keeper_options){
                       .ranks = 4, .least = 3, .tries = 3, .hang_s = 10, .wait_s = 60, .look_s = 5});
    w.hosts = 2;
    w.host[0].pace = 0;
    assert_true(world_until(&w, is_waiting, 10));
    assert_non_null(strstr(w.last_text, "2 ranks fit on the hosts, and 3 are needed"));
    w.host[0].pace = 1;
    assert_true(world_until(&w, world_has_saved, 100));
    w.host[0].pace = 0;
    double before_s = w.now_s;
    world_until(&w, NULL, 1000);
    assert_true(w.over && w.end.result == KL_KEEPER_GAVE_UP);
    assert_true(w.now_s - before_s >= 60 && w.now_s - before_s < 80);
    kl_keeper_free(&w.keeper);
}

/* --- hangs --- */

static void a_hang_is_ended_at_its_limit(void **state) {
    (void)state;
    const struct {
        double rows, least_s,
            most_s; /* a sweep takes rows/4 seconds, because the four ranks do one row per second each */
    } rows[] = {{1, 10, 11}, {4, 10, 11}, {8, 20, 21}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w;
        world_init(&w, NULL);
        w.rows = rows[i].rows;
        w.save_every_s = 10;
        assert_true(world_until(&w, world_has_saved, 100));
        w.program.hangs = true;
        double before_s = w.now_s;
        while (w.kills == 0 && w.now_s < before_s + 100)
            world_pass(&w, 0.1);
        assert_true(w.now_s - before_s >= rows[i].least_s && w.now_s - before_s <= rows[i].most_s);
        world_until(&w, NULL, 10000);
        fine(&w);
        assert_int_equal(w.starts, 2);
        kl_keeper_free(&w.keeper);
    }
}

static void a_keeper_that_was_stopped_itself_sees_no_hang(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    assert_true(world_until(&w, world_has_saved, 100));
    for (int i = 0; i < 5; i++) {
        w.now_s += 3600;
        world_tell(&w, &(kl_keeper_event){.kind = KL_KEEPER_TIME});
    }
    assert_int_equal(w.kills, 0);
    world_until(&w, NULL, 1000);
    fine(&w);
    kl_keeper_free(&w.keeper);
}

/* --- moves for speed --- */

static bool has_moved(const world *w) {
    return w->moves > 0;
}

static void a_slow_host_is_left_when_that_pays(void **state) {
    (void)state;
    const struct {
        double pace, sweeps;
        bool moves;
    } rows[] = {
        {0.1, 2000, true},
        {0.5, 2000, true},
        {0.95, 2000, false}, /* a sweep is hardly slower, so a move does not pay */
        {0.1, 14, false},    /* the run is nearly done, so a move does not pay */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w;
        world_init(&w, NULL);
        w.sweeps = rows[i].sweeps;
        assert_true(world_until(&w, world_has_saved, 100));
        w.host[1].pace = rows[i].pace;
        assert_int_equal(world_until(&w, has_moved, 60) && has_moved(&w), rows[i].moves);
        world_until(&w, NULL, 10000);
        fine(&w);
        assert_int_equal(w.starts, rows[i].moves ? 2 : 1);
        if (rows[i].moves) {
            assert_true(w.last_move.decision.gain_s > w.last_move.decision.cost_s);
            assert_true(w.came_s > 0 && w.spent_s > 0 && w.spent_s < 5);
        }
        kl_keeper_free(&w.keeper);
    }
}

/* Order hosts by `share`, greatest first. */
static void by_share(void *self, const kl_keeper_host *hosts, size_t count, uint32_t *order) {
    (void)self;
    for (size_t i = 0; i < count; i++) {
        size_t place = 0;
        for (size_t j = 0; j < count; j++)
            place += hosts[j].share > hosts[i].share || (j < i && hosts[j].share >= hosts[i].share);
        order[place] = (uint32_t)i;
    }
}

/* Hosts in use are not measured. A function that orders hosts must get the rates of their ranks instead. */
static void an_order_knows_what_ranks_get_on_hosts_in_use(void **state) {
    (void)state;
    world w;
    world_init(
        &w,
        &(kl_keeper_options){
            .ranks = 4, .least = 1, .tries = 3, .hang_s = 10, .wait_s = 60, .look_s = 5, .order = by_share});
    w.sweeps = 2000;
    assert_true(world_until(&w, world_has_saved, 100));
    assert_true(is_on(&w, "ab"));
    w.host[0].pace = 0.2;
    assert_true(world_until(&w, has_moved, 60));
    assert_true(world_until(&w, is_restarted, 60));
    assert_true(is_on(&w, "bc"));
    world_until(&w, NULL, 10000);
    fine(&w);
    kl_keeper_free(&w.keeper);
}

static void a_host_that_only_looks_fit_is_left_for_good(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    w.sweeps = 2000;
    assert_true(world_until(&w, world_has_saved, 100));
    w.host[1].pace = 0.1;
    w.host[1].looks = 1;
    assert_true(world_until(&w, has_moved, 60));
    world_until(&w, NULL, 10000);
    fine(&w);
    assert_int_equal(w.starts, 2);
    kl_keeper_free(&w.keeper);
}

static const char *const names[WORLD_HOSTS] = {"a", "b", "c", "d", "e", "f", "g", "h"};

/* All hosts have the same quota. Rates of ranks and times of sweeps differ by chance, so at times the present
 * hosts seem slow. Moves cost time and gain nothing, so there may be few of them in 20 minutes. */
static void differences_by_chance_move_hardly_anything(void **state) {
    (void)state;
    static const struct {
        double rates, sweeps, look_s;
        uint32_t hosts, most_moves;
    } rows[] = {{0.1, 0.1, 5, 4, 0},  {0.2, 0.2, 5, 4, 1},  {0.3, 0.3, 5, 4, 3}, {0.4, 0.4, 5, 4, 12},
                {0.2, 0, 5, 4, 1},    {0.4, 0, 5, 4, 10},   {0, 0.2, 5, 4, 1},   {0, 0.4, 5, 4, 2},
                {0.2, 0.2, 60, 4, 1}, {0.3, 0.3, 60, 4, 3}, {0.3, 0, 60, 8, 1}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        world w;
        world_init(&w, &(kl_keeper_options){.ranks = rows[k].hosts,
                                            .least = 1,
                                            .tries = 3,
                                            .hang_s = 10,
                                            .wait_s = 60,
                                            .look_s = rows[k].look_s});
        w.sweeps = 2000;
        w.rates_shake = rows[k].rates;
        w.sweeps_shake = rows[k].sweeps;
        w.hosts = rows[k].hosts;
        for (size_t i = 0; i < w.hosts; i++)
            w.host[i] = (world_host){.name = names[i], .slots = 2, .pace = 0.4};
        world_until(&w, NULL, 10000);
        fine(&w);
        if (w.moves > rows[k].most_moves)
            fail_msg("differences of %g and %g, %u hosts: %u moves: %s", rows[k].rates, rows[k].sweeps,
                     rows[k].hosts, w.moves, w.last_move.text);
        kl_keeper_free(&w.keeper);
    }
}

/* After some time, all hosts in use become slow, and the run must leave them in time. */
static void slow_hosts_are_left_although_sweeps_differ_by_chance(void **state) {
    (void)state;
    static const struct {
        double shakes, pace, within_s;
    } rows[] = {{0, 0.85, 10}, {0, 0.5, 6}, {0.1, 0.75, 20}, {0.2, 0.8, 40}, {0.2, 0.5, 15}, {0.3, 0.5, 20}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        world w;
        world_init(&w, NULL);
        w.sweeps = 2000;
        w.rates_shake = w.sweeps_shake = rows[k].shakes;
        world_until(&w, has_moved, 100);
        assert_int_equal(w.moves, 0);
        for (size_t i = 0; i < w.hosts; i++)
            w.host[i].pace = w.program.ranks[i] > 0 ? rows[k].pace : 1;
        if (!world_until(&w, has_moved, rows[k].within_s))
            fail_msg("differences of %g: hosts of speed %g are not left within %g s", rows[k].shakes,
                     rows[k].pace, rows[k].within_s);
        assert_true(world_until(&w, world_is_running, 10));
        assert_true(world_speed(&w) > 3.5);
        kl_keeper_free(&w.keeper);
    }
}

/* All hosts in use become slower little by little, so the keeper must not take the slow speed for the usual
 * one. */
static void hosts_that_slow_down_little_by_little_are_left(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    w.sweeps = 10000;
    world_until(&w, NULL, 60);
    for (double begun_s = w.now_s; w.moves == 0 && w.now_s < begun_s + 600;) {
        for (size_t i = 0; i < w.hosts; i++)
            w.host[i].pace = w.program.ranks[i] > 0 ? 1 - 0.5 * (w.now_s - begun_s) / 600 : 1;
        world_pass(&w, 0.1);
    }
    assert_int_equal(w.moves, 1);
    kl_keeper_free(&w.keeper);
}

/* Two hosts become idle, so the run moves there. When the first two hosts are idle again, all hosts are
 * equal, and the run stays. */
static void hosts_that_became_idle_are_not_left_again(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    w.sweeps = 4000;
    w.looks_at_others = true;
    w.host[2].pace = w.host[3].pace = 0.5;
    world_until(&w, NULL, 60);
    assert_int_equal(w.moves, 0);
    w.host[0].pace = w.host[1].pace = 0.5;
    w.host[2].pace = w.host[3].pace = 1;
    assert_true(world_until(&w, has_moved, 60));
    world_until(&w, NULL, 60);
    w.host[0].pace = w.host[1].pace = 1;
    world_until(&w, NULL, 300);
    assert_int_equal(w.moves, 1);
    kl_keeper_free(&w.keeper);
}

/* Ranks wait for a long time, and no better hosts are known. This says nothing for a later move. */
static void waiting_is_no_evidence_for_a_later_move(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    w.sweeps = 10000;
    w.host[2].pace = w.host[3].pace = 0.5;
    world_until(&w, NULL, 30);
    w.waits = 1.5;
    world_until(&w, NULL, 600);
    assert_int_equal(w.moves, 0);
    assert_true(w.keeper.evidence.sum == 0 && w.keeper.evidence.pays_s == 0);
    kl_keeper_free(&w.keeper);
}

static void a_fixed_run_does_not_move_for_speed(void **state) {
    (void)state;
    world w;
    world_init(
        &w, &(kl_keeper_options){
                .ranks = 4, .least = 1, .tries = 3, .hang_s = 10, .wait_s = 60, .look_s = 5, .fixed = true});
    assert_true(world_until(&w, world_has_saved, 100));
    w.host[1].pace = 0.1;
    world_until(&w, NULL, 10000);
    fine(&w);
    assert_int_equal(w.starts, 1);
    kl_keeper_free(&w.keeper);
}

static void promises_that_are_not_kept_raise_the_doubt(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    w.sweeps = 100000;
    double doubt = 1;
    for (uint32_t move = 1; move <= 4; move++) {
        /* each host is fast when it is measured, but becomes slow as soon as the run is on it */
        double until_s = w.now_s + 300;
        while (w.moves < move && w.now_s < until_s) {
            for (size_t i = 0; i < w.hosts; i++)
                w.host[i].pace = w.program.ranks[i] > 0 && w.program.reports &&
                                         w.program.done > w.program.saved + 8 + 200 * (w.moves == 0)
                                     ? 0.3
                                     : 1;
            world_pass(&w, 0.1);
        }
        assert_true(w.keeper.costs.doubt >= doubt);
        doubt = w.keeper.costs.doubt;
    }
    kl_keeper_free(&w.keeper);
}

/* --- requests --- */

static void wish(world *w, kl_keeper_event_kind kind, const char *names, bool refused, const char *says) {
    world_tell(w, &(kl_keeper_event){.kind = kind, .names = names});
    if (w->keeper.refused != refused || !strstr(w->keeper.answer, says))
        fail_msg("the answer is: %s", w->keeper.answer);
}

static void requests_are_answered_and_carried_out(void **state) {
    (void)state;
    const struct {
        kl_keeper_event_kind kind;
        const char *names, *says, *then;
        bool refused;
    } rows[] = {
        {KL_KEEPER_MOVE, "c,d", "the run moves to c,d", "cd", false},
        {KL_KEEPER_MOVE, "c", "the run moves to c", "c", false},
        {KL_KEEPER_MOVE, NULL, "the fittest hosts", "ab", false},
        {KL_KEEPER_MOVE, "x", "'x' is not a host of this run", "ab", true},
        {KL_KEEPER_DRAIN, "b", "the run leaves b as soon as its state is saved", "ac", false},
        {KL_KEEPER_DRAIN, "d", "d gets no ranks", "ab", false},
        {KL_KEEPER_DRAIN, "a,b,c,d", "fewer than 1 ranks would fit", "ab", true},
        {KL_KEEPER_DRAIN, "x", "'x' is not a host", "ab", true},
        {KL_KEEPER_DRAIN, "", "no host is named", "ab", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w;
        world_init(&w, NULL);
        w.sweeps = 400;
        assert_true(world_until(&w, world_has_saved, 100));
        wish(&w, rows[i].kind, rows[i].names, rows[i].refused, rows[i].says);
        for (int t = 0; t < 20; t++)
            world_pass(&w, 0.1);
        if (!is_on(&w, rows[i].then))
            fail_msg("row %zu: %s", i, w.last_text);
        world_until(&w, NULL, 10000);
        fine(&w);
        kl_keeper_free(&w.keeper);
    }
}

static void a_drained_host_gets_no_ranks_again(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    w.hosts = 3;
    assert_true(world_until(&w, world_has_saved, 100));
    wish(&w, KL_KEEPER_DRAIN, "b", false, "leaves b");
    assert_true(world_until(&w, is_restarted, 100));
    w.host[2].pace = 0; /* host c dies, so the attempt fails */
    while (w.starts < 3)
        world_pass(&w, 0.1);
    assert_true(is_on(&w, "a"));
    world_until(&w, NULL, 10000);
    fine(&w);
    kl_keeper_free(&w.keeper);
}

static void a_host_that_its_owner_takes_away_is_left(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    assert_true(world_until(&w, world_has_saved, 100));
    w.host[0].leaving = true;
    assert_true(world_until(&w, is_restarted, 100));
    assert_true(is_on(&w, "bc"));
    world_until(&w, NULL, 10000);
    fine(&w);
    kl_keeper_free(&w.keeper);
}

static void a_stop_saves_and_a_second_one_kills(void **state) {
    (void)state;
    for (int hangs = 0; hangs < 2; hangs++) {
        world w;
        world_init(&w, NULL);
        assert_true(world_until(&w, world_has_saved, 100));
        w.program.hangs = hangs;
        wish(&w, KL_KEEPER_STOP, NULL, false, "stops");
        world_pass(&w, 0.1);
        assert_int_equal(w.over, !hangs);
        if (hangs) {
            wish(&w, KL_KEEPER_STOP, NULL, false, "stops");
            world_until(&w, NULL, 2);
        }
        assert_true(w.over && w.end.result == KL_KEEPER_STOPPED);
        assert_int_equal(w.kills, hangs);
        assert_int_equal(w.starts, 1);
        kl_keeper_free(&w.keeper);
    }
}

static void a_program_that_cannot_save_goes_on(void **state) {
    (void)state;
    world w;
    world_init(&w, NULL);
    assert_true(world_until(&w, world_has_saved, 100));
    w.refuses = true;
    wish(&w, KL_KEEPER_MOVE, "c,d", false, "the run moves");
    for (int i = 0; i < 5; i++)
        world_pass(&w, 0.1);
    assert_int_equal(w.asks, 1);
    assert_int_equal(w.keeper.state, KL_KEEPER_RUNNING);
    assert_non_null(strstr(w.last_text, "could not save, and continues: the disk is full"));
    world_until(&w, NULL, 1000);
    fine(&w);
    assert_int_equal(w.starts, 1);
    kl_keeper_free(&w.keeper);
}

/* --- time limits --- */

static void before_a_time_limit_the_run_is_saved(void **state) {
    (void)state;
    for (int queued = 0; queued < 2; queued++) {
        world w;
        world_init(&w, &(kl_keeper_options){.ranks = 4,
                                            .least = 1,
                                            .tries = 3,
                                            .hang_s = 10,
                                            .wait_s = 60,
                                            .look_s = 1e9,
                                            .queued = queued});
        assert_true(world_until(&w, queued ? NULL : world_has_saved, 5) || queued);
        for (size_t i = 0; queued && i < 2; i++)
            w.program.ranks[i] = 2; /* imitate the queue, which chooses the hosts */
        w.keeper.limit_s = 0;
        world_tell(&w, &(kl_keeper_event){.kind = KL_KEEPER_LIMIT, .limit_s = w.now_s + 20});
        double limit_s = w.now_s + 20;
        while (w.asks == 0 && w.now_s < limit_s)
            world_pass(&w, 0.1);
        assert_true(w.now_s < limit_s - 3 && w.now_s > limit_s - 12);
        for (int i = 0; i < 5; i++)
            world_pass(&w, 0.1);
        assert_int_equal(w.over, !queued);
        assert_int_equal(w.starts, queued ? 2 : 1);
        kl_keeper_free(&w.keeper);
    }
}

/* --- a keeper that dies --- */

static void same_mean(const kl_keeper_mean *restored, const kl_keeper_mean *stored) {
    assert_true(stored->value > 0 && stored->counted_s > 0);
    assert_true(fabs(restored->value / stored->value - 1) < 1e-6);
    assert_true(fabs(restored->counted_s / stored->counted_s - 1) < 1e-6);
    assert_true(fabs(restored->change.usual / stored->change.usual - 1) < 1e-6);
}

static void a_later_keeper_goes_on_from_the_stored_state(void **state) {
    (void)state;
    for (int alive = 0; alive < 2; alive++) {
        world w;
        world_init(&w, NULL);
        assert_true(world_until(&w, world_has_saved, 100));
        wish(&w, KL_KEEPER_DRAIN, "d", false, "gets no ranks");
        w.keeper.costs.row_s.change.usual = 0.11;
        w.keeper.costs.sweep_rows.change.usual = 0.12;
        w.keeper.evidence.change.usual = 0.13;
        w.keeper.evidence.stay.usual = 0.14;
        kl_buffer text = {0};
        kl_keeper_store(&w.keeper, &text);
        kl_keeper_options options = w.keeper.options;
        kl_keeper_costs costs = w.keeper.costs;
        uint64_t attempt = w.keeper.tally.attempt;
        kl_keeper_free(&w.keeper);
        kl_keeper_init(&w.keeper, &options);
        assert_int_equal(
            kl_keeper_restore(&w.keeper, (const char *)text.data, text.size, alive, w.now_s, NULL),
            KILTER_OK);
        kl_buffer_free(&text);
        assert_true(w.keeper.tally.attempt == attempt);
        same_mean(&w.keeper.costs.row_s, &costs.row_s);
        same_mean(&w.keeper.costs.sweep_rows, &costs.sweep_rows);
        assert_true(w.keeper.hosts[0].qos > 0);
        assert_true(fabs(w.keeper.evidence.change.usual / 0.13 - 1) < 1e-6);
        assert_true(fabs(w.keeper.evidence.stay.usual / 0.14 - 1) < 1e-6);
        if (!alive)
            world_end(&w, KL_KEEPER_LOST, 0);
        world_until(&w, NULL, 1000);
        fine(&w);
        assert_int_equal(w.starts, alive ? 1 : 2);
        assert_true(w.program.ranks[3] == 0);
        kl_keeper_free(&w.keeper);
    }
}

/* A keeper goes on from the text of an earlier version, which must stay readable. Numbers that make no sense
 * count as not known. */
static void a_stored_text_is_read(void **state) {
    (void)state;
    static const char TEXT[] = "state running\ncause start\nattempt 3\nsaved 40\nstop_s 0.5\nlaunch_s 1.5\n"
                               "row_s 0.001\nrow_counted_s 20\nrow_change 0.05\nsweep_rows 1000\n"
                               "sweep_counted_s 21\nsweep_change 0.31\nmove_change 1e99\nstay_change nan\n"
                               "doubt 2.5\nlater_word 7\nhost a\nhost_ranks 2\n";
    kl_keeper k;
    kl_keeper_init(&k, &(kl_keeper_options){.ranks = 2, .least = 1, .tries = 3});
    assert_int_equal(kl_keeper_restore(&k, TEXT, sizeof TEXT - 1, true, 100, NULL), KILTER_OK);
    assert_true(k.tally.attempt == 3 && k.tally.saved == 40);
    assert_true(k.costs.stop_s == 0.5 && k.costs.launch_s == 1.5 && k.costs.doubt == 2.5);
    assert_true(k.costs.row_s.value == 0.001 && k.costs.row_s.counted_s == 20);
    assert_true(k.costs.sweep_rows.value == 1000 && k.costs.sweep_rows.counted_s == 21);
    assert_true(k.costs.row_s.change.usual == 0.05 && k.costs.sweep_rows.change.usual == 0);
    assert_true(k.evidence.change.usual == 0 && k.evidence.stay.usual == 0);
    assert_true(k.hosts[0].ranks == 2);
    kl_keeper_free(&k);
}

/* --- properties --- */

static uint64_t draw(uint64_t *seed, uint64_t below) {
    *seed = kl_mix64(*seed);
    return *seed % below;
}

/* Change at random the state of a host, the behaviour of the program, or the clock, or make a random request.
 */
static void disturb(world *w, uint64_t *seed) {
    static const double PACES[] = {0, 0.1, 0.5, 0.9, 1, 1};
    static const char *const NAMES[] = {"a", "b", "c", "d", "a,b", ""};
    world_host *h = &w->host[draw(seed, w->hosts)];
    switch (draw(seed, 9)) {
    case 0:
    case 1:
    case 2:
        h->pace = PACES[draw(seed, 6)];
        break;
    case 3:
        w->program.hangs = w->program.runs;
        break;
    case 4:
        if (w->program.runs)
            world_end(w, (kl_keeper_how)draw(seed, 4), 1 + (uint32_t)draw(seed, 100));
        break;
    case 5:
        world_tell(w, &(kl_keeper_event){.kind = KL_KEEPER_MOVE, .names = NAMES[draw(seed, 6)]});
        break;
    case 6:
        if (draw(seed, 4) == 0)
            world_tell(w, &(kl_keeper_event){.kind = KL_KEEPER_DRAIN, .names = NAMES[draw(seed, 6)]});
        break;
    case 7:
        h->leaving = draw(seed, 2);
        break;
    default:
        w->now_s += (double)draw(seed, 100);
        break;
    }
}

static void check_start(const world *w, uint32_t starts, bool ran) {
    if (w->starts == starts)
        return;
    assert_false(ran); /* two attempts never run at the same time */
    uint32_t ranks = 0;
    for (uint64_t i = 0; i < w->keeper.count; i++) {
        const kl_keeper_host *h = &w->keeper.hosts[i];
        ranks += h->ranks;
        assert_true(h->ranks <= h->slots);
        assert_true(h->ranks == 0 || (!h->drained && !h->leaving && h->qos > 0));
    }
    assert_true(ranks >= w->keeper.options.least && ranks <= w->keeper.options.ranks);
}

static void check_move(const world *w, uint32_t moves) {
    const kl_decision *d = &w->last_move.decision;
    if (w->moves == moves ||
        (w->keeper.cause != KL_KEEPER_FOR_SPEED && w->keeper.cause != KL_KEEPER_FOR_SCALE))
        return;
    assert_true(d->cost_s > 0 && d->gain_s > d->cost_s);
}

static void in_every_world_the_keeper_ends(void **state) {
    (void)state;
    for (uint64_t run = 0; run < 1500; run++) {
        uint64_t seed = kl_mix64(run + 1);
        world w;
        world_init(&w, NULL);
        w.keeper.options.least = 1 + (uint32_t)draw(&seed, 4);
        w.sweeps = 50 + (double)draw(&seed, 1000);
        w.save_every_s = draw(&seed, 4) == 0 ? 0 : 1 + (double)draw(&seed, 20);
        w.mute = draw(&seed, 10) == 0;
        w.dies_at = draw(&seed, 3) == 0 ? 10 + (double)draw(&seed, 100) : 0;
        w.deaths = draw(&seed, 2) ? UINT32_MAX : (uint32_t)draw(&seed, 5);
        uint32_t idle_most = 0;
        for (int step = 0; step < 60000 && !w.over; step++) {
            uint32_t starts = w.starts, moves = w.moves;
            bool ran = w.program.runs;
            if (step < 3000 && draw(&seed, 50) == 0) {
                disturb(&w, &seed);
                ran = ran && w.starts == starts;
            }
            if (step == 3000)
                for (size_t i = 0; i < w.hosts; i++)
                    w.host[i] = (world_host){.name = w.host[i].name, .slots = 2, .pace = 1};
            starts = w.starts;
            moves = w.moves;
            ran = w.program.runs;
            world_pass(&w, 0.1);
            check_start(&w, starts, ran && w.program.attempt == starts);
            check_move(&w, moves);
            idle_most = w.keeper.tally.idle > idle_most ? w.keeper.tally.idle : idle_most;
        }
        if (!w.over && w.mute && w.program.hangs) {
            /* The program reports nothing and hangs, which the keeper cannot see. So a person ends the run.
             */
            world_tell(&w, &(kl_keeper_event){.kind = KL_KEEPER_STOP});
            world_until(&w, NULL, 60);
        }
        if (!w.over)
            fail_msg("run %llu does not end: %s after %u starts", kl_ull(run),
                     kl_keeper_state_name(w.keeper.state), w.starts);
        assert_true(idle_most <= w.keeper.options.tries);
        kl_keeper_free(&w.keeper);
    }
}

/* A program that always dies before it saves must be started only a limited number of times, even if the
 * speeds of hosts change. */
static void without_progress_nothing_is_restarted_for_ever(void **state) {
    (void)state;
    for (uint64_t run = 0; run < 500; run++) {
        uint64_t seed = kl_mix64(run + 77);
        world w;
        world_init(&w, NULL);
        w.save_every_s = draw(&seed, 2) ? 0 : 50;
        w.dies_at = 5 + (double)draw(&seed, 20);
        w.deaths = UINT32_MAX;
        w.fail_code = draw(&seed, 2);
        for (int step = 0; step < 20000 && !w.over; step++) {
            if (draw(&seed, 20) == 0)
                w.host[draw(&seed, w.hosts)].pace = 0.2 + 0.1 * (double)draw(&seed, 9);
            world_pass(&w, 0.1);
        }
        assert_true(w.over && w.end.result == KL_KEEPER_GAVE_UP);
        /* A planned move may save new sweeps. After such a move, the count of attempts without progress
         * begins again at 0. */
        uint32_t series = w.save_every_s > 0 ? w.moves + 1 : 1;
        assert_true(w.starts <= series * (w.keeper.options.tries + 1));
        assert_true(w.save_every_s > 0 || w.starts <= w.keeper.options.tries);
        kl_keeper_free(&w.keeper);
    }
}

/* --- a queue --- */

static void queue_tell(kl_keeper *k, kl_keeper_event event, double now_s, uint32_t *starts, uint32_t *kills) {
    kl_keeper_action a;
    kl_keeper_step(k, &event, now_s);
    while (kl_keeper_take(k, &a)) {
        *starts += a.act == KL_KEEPER_START;
        *kills += a.act == KL_KEEPER_KILL;
    }
}

static kl_keeper queue_begin(uint32_t *starts, uint32_t *kills) {
    kl_keeper k;
    const kl_keeper_options options = {
        .ranks = 2, .least = 1, .tries = 3, .hang_s = 10, .wait_s = 60, .look_s = 5, .queued = true};
    kl_keeper_init(&k, &options);
    *starts = *kills = 0;
    queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_TIME}, 1, starts, kills);
    queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_HOSTS}, 1, starts, kills);
    assert_int_equal(*starts, 1);
    return k;
}

static void refuse(kl_keeper *k, double now_s, uint32_t *starts, uint32_t *kills) {
    const kl_keeper_end end = {.attempt = k->tally.attempt, .how = KL_KEEPER_REFUSED};
    queue_tell(k, (kl_keeper_event){.kind = KL_KEEPER_ENDED, .end = end}, now_s, starts, kills);
}

static void the_first_job_that_is_refused_ends_the_run(void **state) {
    (void)state;
    uint32_t starts, kills;
    kl_keeper k = queue_begin(&starts, &kills);
    refuse(&k, 2, &starts, &kills);
    assert_int_equal(k.result, KL_KEEPER_GAVE_UP);
    kl_keeper_free(&k);
}

static void a_later_job_that_is_refused_is_tried_again_for_a_time(void **state) {
    (void)state;
    uint32_t starts, kills;
    kl_keeper k = queue_begin(&starts, &kills);
    const kl_keeper_end end = {.attempt = 1, .how = KL_KEEPER_SIGNALLED, .code = 9};
    queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_ENDED, .end = end}, 2, &starts, &kills);
    for (double now_s = 3; k.state != KL_KEEPER_IS_OVER && now_s < 200; now_s += 1) {
        queue_tell(&k, (kl_keeper_event){.kind = k.looks ? KL_KEEPER_HOSTS : KL_KEEPER_TIME}, now_s, &starts,
                   &kills);
        if (k.state == KL_KEEPER_STARTING)
            refuse(&k, now_s, &starts, &kills);
    }
    assert_int_equal(k.result, KL_KEEPER_GAVE_UP);
    assert_int_equal(k.tally.idle, 1); /* refused jobs do not count as attempts without progress */
    assert_in_range(k.now_s, 60, 90);
    assert_in_range(starts, 4, 7);
    kl_keeper_free(&k);
}

static void a_suspended_job_does_not_hang(void **state) {
    (void)state;
    uint32_t starts, kills;
    kl_keeper k = queue_begin(&starts, &kills);
    const char *hosts[] = {"a", "b"};
    const kl_keeper_report report = {.attempt = 1, .ranks = 2, .hosts = hosts, .sweeps = 5, .longest_s = 0.1};
    queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_QUEUE, .pending = false}, 2, &starts, &kills);
    queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_REPORT, .report = &report}, 3, &starts, &kills);
    queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_QUEUE, .pending = true}, 4, &starts, &kills);
    for (double now_s = 5; now_s < 100; now_s += 0.5)
        queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_TIME}, now_s, &starts, &kills);
    assert_int_equal(kills, 0);
    queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_QUEUE, .pending = false}, 100, &starts, &kills);
    for (double now_s = 100; now_s < 120; now_s += 0.5)
        queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_TIME}, now_s, &starts, &kills);
    assert_true(kills > 0);
    kl_keeper_free(&k);
}

static void killing_is_repeated_while_processes_remain(void **state) {
    (void)state;
    uint32_t starts, kills;
    kl_keeper k = queue_begin(&starts, &kills);
    queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_STOP}, 2, &starts, &kills);
    for (double now_s = 2; now_s < 23; now_s += 0.5)
        queue_tell(&k, (kl_keeper_event){.kind = KL_KEEPER_TIME}, now_s, &starts, &kills);
    assert_in_range(kills, 4, 5);
    assert_int_equal(k.state, KL_KEEPER_KILLING);
    kl_keeper_free(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_run_is_started_once),
        cmocka_unit_test(a_program_that_reports_nothing_is_only_started_and_ended),
        cmocka_unit_test(a_failure_restarts_there_then_elsewhere_then_never),
        cmocka_unit_test(failures_with_progress_are_restarted_as_often_as_they_come),
        cmocka_unit_test(a_program_that_does_not_exist_is_not_tried_again),
        cmocka_unit_test(a_lost_host_is_left_out_and_fewer_ranks_go_on),
        cmocka_unit_test(without_hosts_the_keeper_waits_and_then_gives_up),
        cmocka_unit_test(a_hang_is_ended_at_its_limit),
        cmocka_unit_test(a_keeper_that_was_stopped_itself_sees_no_hang),
        cmocka_unit_test(a_slow_host_is_left_when_that_pays),
        cmocka_unit_test(an_order_knows_what_ranks_get_on_hosts_in_use),
        cmocka_unit_test(a_host_that_only_looks_fit_is_left_for_good),
        cmocka_unit_test(differences_by_chance_move_hardly_anything),
        cmocka_unit_test(slow_hosts_are_left_although_sweeps_differ_by_chance),
        cmocka_unit_test(hosts_that_slow_down_little_by_little_are_left),
        cmocka_unit_test(hosts_that_became_idle_are_not_left_again),
        cmocka_unit_test(waiting_is_no_evidence_for_a_later_move),
        cmocka_unit_test(a_fixed_run_does_not_move_for_speed),
        cmocka_unit_test(promises_that_are_not_kept_raise_the_doubt),
        cmocka_unit_test(requests_are_answered_and_carried_out),
        cmocka_unit_test(a_drained_host_gets_no_ranks_again),
        cmocka_unit_test(a_host_that_its_owner_takes_away_is_left),
        cmocka_unit_test(a_stop_saves_and_a_second_one_kills),
        cmocka_unit_test(a_program_that_cannot_save_goes_on),
        cmocka_unit_test(before_a_time_limit_the_run_is_saved),
        cmocka_unit_test(a_later_keeper_goes_on_from_the_stored_state),
        cmocka_unit_test(a_stored_text_is_read),
        cmocka_unit_test(the_first_job_that_is_refused_ends_the_run),
        cmocka_unit_test(a_later_job_that_is_refused_is_tried_again_for_a_time),
        cmocka_unit_test(a_suspended_job_does_not_hang),
        cmocka_unit_test(killing_is_repeated_while_processes_remain),
        cmocka_unit_test(in_every_world_the_keeper_ends),
        cmocka_unit_test(without_progress_nothing_is_restarted_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
