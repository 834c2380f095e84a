/* Test pickers: a table of choices, properties for all candidates, and the forecast against all sets of
 * hosts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cases_test_helper.h"
#include "fitness/fitness.h"

enum { MOST = 9 };

static kl_pick picked_by(const char *name, const kl_pick_ask *ask) {
    kl_pick pick;
    const kl_picker *picker = kl_picker_find(name);
    assert_non_null(picker);
    assert_int_equal(kl_pick_hosts(picker, ask, &pick, NULL), KILTER_OK);
    return pick;
}

static void write_pick(const kl_pick *pick, char text[64]) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < pick->count && used < 60; i++)
        used += (size_t)snprintf(text + used, 64 - used, "%u", pick->at[i]);
}

static void pickers_choose_as_described(void **state) {
    (void)state;
    static const struct {
        const char *picker;
        double
            qos[MOST]; /* fitness of each candidate; −x: the candidate has fitness x and should be avoided */
        uint32_t count, wanted, start;
        double threshold;
        const char *picked; /* expected numbers of the chosen candidates */
        uint32_t next;
        const char *why;
    } rows[] = {
        {"best", {0.2, 0.9, 0.5, 0.9}, 4, 2, 0, 0, "13", 0, ""},
        {"best", {0.2, 0.9, 0.5, 0.9}, 4, 3, 0, 0, "132", 0, ""},
        {"best", {0.5, 0.5, 0.5}, 3, 2, 0, 0, "01", 0, ""}, /* candidates of equal fitness keep the order of
                                                               the list */
        {"best", {0.2, 0, 0.5}, 3, 3, 0, 0, "20", 0, ""},   /* three hosts are wanted, but only two may be
                                                               chosen */
        {"best", {0, 0}, 2, 1, 0, 0, "", 0, ""},
        {"best", {0.2, 0.4, 0}, 3, 0, 0, 0, "10", 0, ""}, /* 0 wanted hosts means all hosts */
        {"best", {-0.9, 0.4, 0.1}, 3, 2, 0, 0, "12", 0, ""},
        {"best", {-0.9, 0.4, 0.1}, 3, 3, 0, 0, "120", 0, ""},
        {"best", {-0.9, 0.4, 0.1}, 3, 0, 0, 0, "12", 0, ""},
        {"best", {-0.9, 0}, 2, 0, 0, 0, "0", 0, ""},
        {"round-robin", {0.8, 0.9, 0.6, 0.7, 1}, 5, 2, 0, 0, "01", 2, ""},
        {"round-robin", {0.8, 0.9, 0.6, 0.7, 1}, 5, 2, 2, 0, "34", 0, ""},
        {"round-robin", {0.8, 0.9, 0.6, 0.7, 1}, 5, 3, 4, 0, "401", 2, ""},
        {"round-robin", {0.8, 0.9, 0.6, 0.7, 1}, 5, 2, 0, 0.85, "14", 0, ""},
        {"round-robin", {0.8, 0.3, 0.6, 0.1}, 4, 2, 0, 0, "02", 3, "lowered from 0.7 to 0.6, because only 1"},
        {"round-robin", {0.3, 0.3, 0.3, 0.1}, 4, 2, 2, 0, "20", 1, "lowered from 0.7 to 0.3, because only 0"},
        {"random", {0.8, 0.3, 0.6, 0.1}, 4, 4, 0, 0, NULL, 0, "lowered from 0.5 to 0.1, because only 2 of 4"},
        {"random", {0.8, 0.3, 0.6, -0.9}, 4, 2, 0, 0, NULL, 0, ""},
        {"best-few", {0.8, 0.3, 0.6, -0.9}, 4, 3, 0, 0, NULL, 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_candidate candidates[MOST];
        char text[64];
        for (uint32_t c = 0; c < rows[i].count; c++)
            candidates[c] = (kl_candidate){.qos = fabs(rows[i].qos[c]), .last = rows[i].qos[c] < 0};
        kl_pick_ask ask = {.candidates = candidates,
                           .count = rows[i].count,
                           .wanted = rows[i].wanted,
                           .start = rows[i].start,
                           .threshold = rows[i].threshold};
        kl_pick pick = picked_by(rows[i].picker, &ask);
        write_pick(&pick, text);
        if (rows[i].picked && strcmp(text, rows[i].picked) != 0)
            fail_msg("row %zu: '%s', not '%s'", i, text, rows[i].picked);
        if (rows[i].picked && *rows[i].picked)
            assert_int_equal(pick.next, rows[i].next);
        if (!strstr(pick.why, rows[i].why) || (!*rows[i].why && *pick.why))
            fail_msg("row %zu: '%s', not '%s'", i, pick.why, rows[i].why);
        kl_pick_free(&pick);
    }
}

/* --- properties for all candidates --- */

static double part(uint64_t *draw) {
    return (double)(kl_mix64((*draw)++) >> 11) * 0x1p-53;
}

static kl_candidate any_candidate(uint64_t *draw) {
    uint64_t kind = kl_mix64((*draw)++);
    return (kl_candidate){.qos = kind % 5 == 0   ? 0
                                 : kind % 3 == 0 ? 0.5
                                                 : part(draw),
                          .speed = kind % 4 == 0 ? 1 : 0.1 + part(draw),
                          .message_s = kind % 7 == 0 ? 1 : part(draw),
                          .current = kind % 11 < 3,
                          .last = kind % 13 == 0};
}

static kl_pick_ask any_ask(uint64_t *draw, kl_candidate *candidates, uint32_t most) {
    uint32_t count = (uint32_t)(kl_mix64((*draw)++) % (most + 1));
    for (uint32_t i = 0; i < count; i++)
        candidates[i] = any_candidate(draw);
    return (kl_pick_ask){.candidates = candidates,
                         .count = count,
                         .wanted = (uint32_t)(kl_mix64((*draw)++) % (most + 2)),
                         .seed = kl_mix64((*draw)++),
                         .start = (uint32_t)(kl_mix64((*draw)++) % (most + 1)),
                         .work = 10 * part(draw),
                         .sweeps = kl_mix64((*draw)++) % 2 ? 0 : 3 * part(draw),
                         .move_s = kl_mix64((*draw)++) % 2 ? 0 : 5 * part(draw),
                         .equal = kl_mix64((*draw)++) % 2};
}

static uint32_t count_usable(const kl_pick_ask *ask, bool last) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < ask->count; i++)
        count += ask->candidates[i].qos > 0 && (last || !ask->candidates[i].last);
    return count;
}

static void assert_distinct_and_usable(const kl_pick_ask *ask, const kl_pick *pick) {
    bool seen[32] = {false};
    for (uint32_t i = 0; i < pick->count; i++) {
        assert_true(pick->at[i] < ask->count && !seen[pick->at[i]]);
        assert_true(ask->candidates[pick->at[i]].qos > 0);
        seen[pick->at[i]] = true;
    }
}

/* Check that a host that should be avoided is chosen only if it is needed. Current hosts are an exception:
 * they may stay in use. */
static void assert_avoided(const kl_pick_ask *ask, const kl_pick *pick) {
    uint32_t wished = count_usable(ask, false);
    if (wished == 0 || wished < ask->wanted || (pick->stay_s >= 0 && pick->stay_s == pick->end_s))
        return;
    for (uint32_t i = 0; i < pick->count; i++)
        assert_false(ask->candidates[pick->at[i]].last);
}

static void each_picker_gives_the_wanted_number_of_usable_hosts(void **state) {
    (void)state;
    uint64_t draw = 5, cases = kl_test_cases(500, 5000);
    for (uint64_t c = 0; c < cases; c++) {
        kl_candidate candidates[20];
        kl_pick_ask ask = any_ask(&draw, candidates, 20);
        uint32_t usable = count_usable(&ask, true);
        for (size_t p = 0; p < kl_picker_count(); p++) {
            kl_pick pick = picked_by(kl_picker_at(p)->name, &ask),
                    again = picked_by(kl_picker_at(p)->name, &ask);
            if (ask.wanted > 0)
                assert_int_equal(pick.count, ask.wanted < usable ? ask.wanted : usable);
            else
                assert_true(pick.count > 0 || usable == 0);
            assert_distinct_and_usable(&ask, &pick);
            assert_avoided(&ask, &pick);
            assert_int_equal(again.count, pick.count); /* an equal seed must give equal hosts */
            assert_memory_equal(again.at, pick.at, pick.count * sizeof *pick.at);
            kl_pick_free(&pick);
            kl_pick_free(&again);
        }
    }
}

static void the_best_are_no_less_fit_than_the_others(void **state) {
    (void)state;
    uint64_t draw = 9;
    for (int c = 0; c < 500; c++) {
        kl_candidate candidates[20];
        kl_pick_ask ask = any_ask(&draw, candidates, 20);
        kl_pick pick = picked_by("best", &ask);
        bool in[20] = {false};
        for (uint32_t i = 0; i < pick.count; i++)
            in[pick.at[i]] = true;
        for (uint32_t i = 0; i < pick.count; i++)
            for (uint32_t o = 0; o < ask.count; o++)
                if (!in[o] && candidates[o].last == candidates[pick.at[i]].last)
                    assert_true(candidates[o].qos <= candidates[pick.at[i]].qos);
        kl_pick_free(&pick);
    }
}

static void turns_of_round_robin_use_all_hosts_alike(void **state) {
    (void)state;
    kl_candidate candidates[7];
    uint32_t used[7] = {0}, start = 0;
    for (int i = 0; i < 7; i++)
        candidates[i] = (kl_candidate){.qos = 0.7 + 0.04 * i};
    for (int turn = 0; turn < 70; turn++) {
        kl_pick pick =
            picked_by("round-robin", &(kl_pick_ask){candidates, .count = 7, .wanted = 3, .start = start});
        for (uint32_t i = 0; i < pick.count; i++)
            used[pick.at[i]]++;
        start = pick.next;
        kl_pick_free(&pick);
    }
    for (int i = 0; i < 7; i++)
        assert_int_equal(used[i], 30);
}

/* Draw many times. The hosts from which the picker draws must be drawn about equally often, and no other host
 * may be drawn. */
static void random_pickers_draw_evenly(void **state) {
    (void)state;
    static const struct {
        const char *picker;
        uint32_t pool;
    } rows[] = {{"random", 6}, {"best-few", 4}};
    kl_candidate candidates[9];
    for (int i = 0; i < 9;
         i++) /* `random` draws from the six hosts above its threshold, `best-few` from the best four */
        candidates[i] = (kl_candidate){.qos = 0.95 - 0.08 * i};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        uint32_t drawn[9] = {0};
        enum { DRAWS = 3000 };
        for (uint64_t seed = 0; seed < DRAWS; seed++) {
            kl_pick pick =
                picked_by(rows[r].picker, &(kl_pick_ask){candidates, .count = 9, .wanted = 2, .seed = seed});
            for (uint32_t i = 0; i < pick.count; i++)
                drawn[pick.at[i]]++;
            kl_pick_free(&pick);
        }
        for (uint32_t i = 0; i < 9; i++) {
            double expected = i < rows[r].pool ? 2.0 * DRAWS / rows[r].pool : 0;
            assert_true(fabs(drawn[i] - expected) <= 0.15 * expected);
        }
    }
}

/* --- the picker `forecast` --- */

static double end_of(const kl_pick_ask *ask, uint32_t set, bool stays) {
    double sum = 0, least = INFINITY, message_s = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < ask->count; i++)
        if (set >> i & 1) {
            const kl_candidate *c = &ask->candidates[i];
            sum += c->speed;
            least = fmin(least, c->speed);
            message_s = fmax(message_s, c->message_s);
            count++;
        }
    return ask->work / (ask->equal ? count * least : sum) + (count > 1 ? ask->sweeps * message_s : 0) +
           (stays ? 0 : ask->move_s);
}

/* Return whether a set of hosts may be chosen. It must have the wanted number of usable hosts. It may have
 * hosts that should be avoided only if they are needed to reach this number. */
static bool allowed(const kl_pick_ask *ask, uint32_t set, uint32_t current) {
    uint32_t usable = count_usable(ask, true), wished = count_usable(ask, false), count = 0, avoided = 0,
             wanted = ask->wanted < usable ? ask->wanted : usable;
    for (uint32_t i = 0; i < ask->count; i++)
        if (set >> i & 1) {
            count++;
            avoided += ask->candidates[i].last;
            if (!(ask->candidates[i].qos > 0))
                return false;
        }
    if (set == current)
        return ask->wanted == 0 || count == wanted;
    uint32_t needed = wished == 0 ? count : wished < wanted ? wanted - wished : 0;
    return count > 0 && (ask->wanted == 0 || count == wanted) && avoided == needed;
}

static void the_forecast_finds_the_least_end_of_all_sets(void **state) {
    (void)state;
    uint64_t draw = 77, cases = kl_test_cases(300, 3000);
    for (uint64_t c = 0; c < cases; c++) {
        kl_candidate candidates[MOST];
        kl_pick_ask ask = any_ask(&draw, candidates, MOST);
        uint32_t current = 0, best = 0;
        double least = INFINITY;
        for (uint32_t i = 0; i < ask.count; i++)
            current |= (uint32_t)candidates[i].current << i;
        for (uint32_t set = 1; set < 1U << ask.count; set++)
            if (allowed(&ask, set, current) && end_of(&ask, set, set == current) < least) {
                least = end_of(&ask, set, set == current);
                best = set;
            }
        kl_pick pick = picked_by("forecast", &ask);
        if (best == 0)
            assert_int_equal(pick.count, 0);
        else if (fabs(pick.end_s - least) > 1e-9 * least)
            fail_msg("case %d: the end is %.12g, not %.12g", (int)c, pick.end_s, least);
        kl_pick_free(&pick);
    }
}

static void a_run_stays_unless_a_move_pays(void **state) {
    (void)state;
    static const struct {
        double work, move_s;
        bool stays;
    } rows[] = {{100, 0, false}, {100, 49, false}, {100, 50, true},
                {100, 51, true}, {0, 1, true},     {10, 6, true}};
    const kl_candidate candidates[] = {{1, 1, 0, true, false}, {1, 2, 0, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_pick pick = picked_by("forecast", &(kl_pick_ask){candidates, .count = 2, .wanted = 1,
                                                            .work = rows[i].work, .move_s = rows[i].move_s});
        assert_int_equal(pick.count, 1);
        assert_int_equal(pick.at[0], !rows[i].stays);
        assert_true(strstr(pick.why, "current"));
        kl_pick_free(&pick);
    }
}

/* If nothing else is known about the run, the weight decides how much slow links count. */
static void the_weight_stands_for_a_forecast(void **state) {
    (void)state;
    static const struct {
        double weight, net;
        uint32_t wanted;
        const char *picked;
    } rows[] = {
        {1, 0.01, 2, "01"},   /* with weight 1, links do not count */
        {0.5, 0.01, 2, "02"}, /* host 1 is fast, but its link is slow */
        {0.5, 0.9, 2, "01"},  {1, 0.01, 0, "012"},
        {0.7, 0.01, 0, "02"}, {0.5, 0.01, 0, "0"}, /* a single host needs no links */
        {0.5, 0, 0, "0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const kl_fit fits[] = {{.qos = 1, .speed = 4, .net = 1},
                               {.qos = 0.5, .speed = 3, .net = rows[i].net},
                               {.qos = 0.4, .speed = 2, .net = 1},
                               {.qos = 0, .speed = 0, .net = 0}};
        kl_candidate candidates[4];
        kl_pick_ask ask = {.wanted = rows[i].wanted};
        char text[64];
        kl_pick_by_weight(fits, 4, rows[i].weight, candidates, &ask);
        kl_pick pick = picked_by("forecast", &ask);
        write_pick(&pick, text);
        if (strcmp(text, rows[i].picked) != 0)
            fail_msg("row %zu: '%s', not '%s'", i, text, rows[i].picked);
        kl_pick_free(&pick);
    }
}

/* All hosts are used, so the picker only orders them. The hosts that reach its threshold must come first. */
static void an_order_begins_with_the_hosts_that_suffice(void **state) {
    (void)state;
    static const struct {
        const char *picker;
        double qos[4];
        uint32_t ranks, start;
        const char *order;
    } rows[] = {
        {"best", {0.2, 0.9, 0.5, 1}, 2, 0, "3120"},    {"best", {0.2, 0.9, 0.5, 1}, 8, 0, "3120"},
        {"best", {1, 1, 1, 1}, 9, 0, "0123"},          {"round-robin", {1, 1, 1, 1}, 4, 2, "2301"},
        {"round-robin", {0.1, 1, 1, 1}, 4, 3, "3120"}, {"round-robin", {0.5, 0.1, 1, 0}, 4, 0, "0213"},
        {"random", {0.4, 1, 0.3, 0}, 2, 0, "1023"},
    };
    static const uint32_t SLOTS[] = {2, 2, 2, 2};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_candidate candidates[4];
        uint32_t order[4];
        char text[8] = "";
        for (int h = 0; h < 4; h++)
            candidates[h] = (kl_candidate){.qos = rows[i].qos[h]};
        const kl_pick_ask ask = {.candidates = candidates, .count = 4, .seed = i, .start = rows[i].start};
        kl_pick_order(kl_picker_find(rows[i].picker), &ask, SLOTS, rows[i].ranks, order);
        for (int h = 0; h < 4; h++)
            text[h] = (char)('0' + order[h]);
        if (strcmp(text, rows[i].order) != 0)
            fail_msg("row %zu: '%s', not '%s'", i, text, rows[i].order);
    }
}

static void pickers_have_names(void **state) {
    (void)state;
    assert_string_equal(kl_picker_at(0)->name, "forecast");
    assert_null(kl_picker_at(kl_picker_count()));
    assert_null(kl_picker_find("other"));
    for (size_t i = 0; i < kl_picker_count(); i++)
        assert_ptr_equal(kl_picker_find(kl_picker_at(i)->name), kl_picker_at(i));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pickers_choose_as_described),
        cmocka_unit_test(each_picker_gives_the_wanted_number_of_usable_hosts),
        cmocka_unit_test(the_best_are_no_less_fit_than_the_others),
        cmocka_unit_test(turns_of_round_robin_use_all_hosts_alike),
        cmocka_unit_test(random_pickers_draw_evenly),
        cmocka_unit_test(the_forecast_finds_the_least_end_of_all_sets),
        cmocka_unit_test(a_run_stays_unless_a_move_pays),
        cmocka_unit_test(the_weight_stands_for_a_forecast),
        cmocka_unit_test(an_order_begins_with_the_hosts_that_suffice),
        cmocka_unit_test(pickers_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
