/* Test the fitness of hosts: a table for each formula, and properties that hold for all readings. */
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

static void assert_near(double is, double wanted, const char *what, size_t row) {
    if (!(fabs(is - wanted) < 1e-12))
        fail_msg("row %zu: %s is %.15g, not %.15g", row, what, is, wanted);
}

static kl_reading idle_host(void) {
    kl_reading r = kl_reading_none();
    r.at_s = 0;
    r.cores = 4;
    r.probe = 1;
    r.steps_per_s = 1e8;
    r.memory_left = 8e9;
    r.memory_total = 16e9;
    r.swap_free = r.swap_total = 0;
    r.load = 0;
    r.waits_cpu = r.waits_memory = r.waits_io = 0;
    return r;
}

static void processors_follow_probe_quota_and_own_threads(void **state) {
    (void)state;
    static const struct {
        uint32_t cores;
        double probe, quota, load, own, measured, threads, cpu;
    } rows[] = {
        {4, 1, INFINITY, 0, 0, NAN, 0, 1},
        {4, 0.5, INFINITY, 9, 0, NAN, 0, 0.5}, /* four threads of other programs also want the four cores, so
                                                  each thread gets half of a core */
        {4, 0.5, INFINITY, 0, 0, NAN, 4, 0.5},
        {4, 0.5, INFINITY, 0, 0, NAN, 1, 4.0 / 5}, /* one own thread and four others share four cores */
        {4, 0.5, INFINITY, 0, 4, NAN, 0, 1}, /* own = 4: the four threads that halve the probe belong to this
                                                program, so no other program takes its cores */
        {4, 0.5, INFINITY, 0, 2, NAN, 0, 4.0 / 6},
        {4, 0.5, INFINITY, 0, 9, NAN, 0, 1},
        {2, 0.25, 0.5, 0, 0, NAN, 0,
         0.25}, /* the quota explains the low probe, so there are no other threads */
        {2, 0.25, 0.5, 0, 0, NAN, 1, 0.5},
        {2, 0.4, 0.5, 0, 0, NAN, 0,
         0.25}, /* the probe got more than the quota allows, which is possible for a short time */
        {2, 0.125, 0.5, 0, 0, NAN, 0,
         0.125}, /* the probe got half of the quota, so two other threads share it */
        {2, 1, 8, 0, 0, NAN, 0, 1},
        {2, 1, 2, 0, 0, NAN, 4, 0.5},
        {4, NAN, INFINITY, 4, 0, NAN, 0, 0.5}, /* the host was not probed, so its load counts */
        {4, NAN, INFINITY, 4, 4, NAN, 0, 1},
        {4, NAN, INFINITY, NAN, 0, NAN, 0, 1},
        {4, 0.1, 0.1, 9, 0, 0.75, 0,
         0.75}, /* a share that the program has measured itself is the only value that counts */
        {4, 1, INFINITY, 0, 0, 0, 0, 0},
        {4, 0, INFINITY, 0, 0, NAN, 0, 0},
        {0, 1, INFINITY, 0, 0, NAN, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_reading r = idle_host();
        r.cores = rows[i].cores;
        r.probe = rows[i].probe;
        r.quota = rows[i].quota;
        r.load = rows[i].load;
        r.own = rows[i].own;
        r.measured = rows[i].measured;
        assert_near(kl_fit_cpu(&r, rows[i].threads), rows[i].cpu, "the fitness of the cores", i);
    }
}

static void memory_swap_and_disk_are_factors(void **state) {
    (void)state;
    static const struct {
        double left, total, need, waits_memory, swap_free, swap_total, waits_io;
        double memory, swap, disk;
    } rows[] = {
        {8e9, 16e9, 0, 0, 0, 0, 0, 1, 1, 1},
        {0.8e9, 16e9, 0, 0, 0, 0, 0, 0.5, 1, 1}, /* a twentieth of the memory is left */
        {8e9, 16e9, 10e9, 0, 0, 0, 0, 0.8, 1, 1},
        {0, 16e9, 0, 0, 0, 0, 0, 0, 1, 1},
        {8e9, 16e9, 0, 0.25, 0, 0, 0, 0.75, 1, 1},
        {8e9, 16e9, 0, NAN, NAN, NAN, NAN, 1, 1, 1},
        {NAN, NAN, 0, 0, 0, 0, 0, 1, 1, 1},
        {8e9, 16e9, 0, 0, 0, 2e9, 0, 1, 0.5, 1},
        {8e9, 16e9, 0, 0, 1e9, 2e9, 0, 1, 0.75, 1},
        {8e9, 16e9, 0, 0, 0, 0, 0.5, 1, 1, 0.75},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_reading r = idle_host();
        kl_fit fit;
        r.memory_left = rows[i].left;
        r.memory_total = rows[i].total;
        r.waits_memory = rows[i].waits_memory;
        r.swap_free = rows[i].swap_free;
        r.swap_total = rows[i].swap_total;
        r.waits_io = rows[i].waits_io;
        kl_fit_ask ask = {.readings = &r, .count = 1, .weight = 1, .memory_bytes = rows[i].need};
        assert_int_equal(kl_fit_hosts(&ask, &fit, NULL), KILTER_OK);
        assert_near(fit.memory, rows[i].memory, "memory", i);
        assert_near(fit.swap, rows[i].swap, "swap", i);
        assert_near(fit.disk, rows[i].disk, "disk", i);
        assert_near(fit.host, rows[i].memory * rows[i].swap * rows[i].disk, "the host's fitness", i);
        assert_near(fit.net, 1, "the network of one host", i);
    }
}

static void weight_and_age_decide(void **state) {
    (void)state;
    static const struct {
        double at_s, now_s, stale_s, weight;
        kl_fit_state state;
        double qos;
    } rows[] = {
        {0, 100, 0, 0.7, KL_FIT_KNOWN, 0.7 * 0.5 + 0.3 * 0.25},
        {0, 100, 0, 1, KL_FIT_KNOWN, 0.5},
        {0, 100, 0, 0, KL_FIT_KNOWN, 0.25},
        {90, 100, 10, 1, KL_FIT_KNOWN, 0.5},
        {89, 100, 10, 1, KL_FIT_STALE, 0},
        {NAN, 100, 10, 1, KL_FIT_UNREACHABLE, 0},
        {NAN, 100, 0, 0, KL_FIT_UNREACHABLE, 0},
    };
    /* the links between host 0 and each other host are four times slower */
    const kl_link links[] = {{0, 1, 0, 16384}, {0, 2, 0, 16384}, {1, 2, 0, 65536}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_reading r[] = {idle_host(), idle_host(), idle_host()};
        kl_fit fits[3];
        r[0].probe = 0.5;
        r[0].at_s = rows[i].at_s;
        r[1].at_s = r[2].at_s = rows[i].now_s;
        kl_fit_ask ask = {.readings = r,
                          .count = 3,
                          .links = links,
                          .link_count = 3,
                          .now_s = rows[i].now_s,
                          .weight = rows[i].weight,
                          .stale_s = rows[i].stale_s};
        assert_int_equal(kl_fit_hosts(&ask, fits, NULL), KILTER_OK);
        assert_int_equal(fits[0].state, rows[i].state);
        assert_near(fits[0].qos, rows[i].qos, "QoS", i);
        assert_near(fits[1].qos, 1, "the QoS of host 1", i);
    }
}

static void speed_is_in_cores_of_the_fastest_host(void **state) {
    (void)state;
    kl_reading r[] = {idle_host(), idle_host(), idle_host(), idle_host()};
    const uint32_t slots[] = {0, 2, 0, 0};
    const double wanted[] = {4, 2, 1, 0}, paces[] = {1, 1, 0.25, 0};
    kl_fit fits[4];
    r[2].steps_per_s = 0.5e8; /* the host computes half as fast, and half of its time is in use */
    r[2].probe = 0.5;
    r[3].at_s = NAN;
    r[3].steps_per_s = 9e9; /* a host that never answered does not count */
    kl_fit_ask ask = {.readings = r, .slots = slots, .count = 4, .weight = 0.5};
    assert_int_equal(kl_fit_hosts(&ask, fits, NULL), KILTER_OK);
    for (size_t i = 0; i < 4; i++)
        assert_near(fits[i].speed, wanted[i], "the speed", i);
    for (size_t i = 0; i < 4; i++)
        assert_near(fits[i].pace, paces[i], "the pace", i);
}

/* --- the fitness of the network --- */

enum { HOSTS = 4 };

static void the_network_is_the_harmonic_mean_of_links(void **state) {
    (void)state;
    /* rate: bytes per second of the links 0-1, 0-2, 0-3, 1-2, 1-3, 2-3; −1: not measured; 0: no connection */
    static const struct {
        double rate[6], net[HOSTS];
    } rows[] = {
        {{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1}},
        {{5, 5, 5, 5, 5, 5}, {1, 1, 1, 1}},
        {{-1, -1, -1, -1, -1, -1}, {1, 1, 1, 1}},
        {{1, -1, -1, -1, -1, -1}, {1, 1, 1, 1}},
        /* host 3 has only slow links, but this does not lower the fitness of the others */
        {{1, 1, 0.1, 1, 0.1, 0.1}, {1, 1, 1, 0.1}},
        {{1, 1, 0, 1, 0, 0}, {1, 1, 1, 0}},
        /* one slow link harms both its hosts */
        {{1, 1, 1, 1, 1, 0.2}, {1, 1, 3 / 7.0, 3 / 7.0}},
        {{1, 1, 1, 1, 1, 0}, {1, 1, 0, 0}},
        /* no host has a connection */
        {{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0}},
        /* two groups of hosts without a connection between them */
        {{1, 0.5, 0.5, 0.5, 0.5, 1}, {0.6, 0.6, 0.6, 0.6}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_reading r[HOSTS] = {idle_host(), idle_host(), idle_host(), idle_host()};
        kl_link links[6];
        kl_fit fits[HOSTS];
        size_t count = 0, at = 0;
        for (uint32_t a = 0; a < HOSTS; a++)
            for (uint32_t b = a + 1; b < HOSTS; b++, at++)
                if (rows[i].rate[at] >= 0)
                    links[count++] = (kl_link){at % 2 ? a : b, at % 2 ? b : a, 0, rows[i].rate[at]};
        kl_fit_ask ask = {.readings = r, .count = HOSTS, .links = links, .link_count = count};
        assert_int_equal(kl_fit_hosts(&ask, fits, NULL), KILTER_OK);
        for (size_t h = 0; h < HOSTS; h++)
            assert_near(fits[h].net, rows[i].net[h], "the network", i * 10 + h);
    }
}

static void a_message_needs_half_a_trip_and_its_bytes(void **state) {
    (void)state;
    assert_near(kl_link_message_s(&(kl_link){0, 1, 2e-3, 65536e3}), 2e-3, "the message", 0);
    assert_true(isinf(kl_link_message_s(&(kl_link){0, 1, 1e-3, 0})));
}

static void links_with_hosts_that_are_gone_do_not_count(void **state) {
    (void)state;
    kl_reading r[] = {idle_host(), idle_host(), idle_host()};
    const kl_link links[] = {{0, 1, 0, 1}, {0, 2, 0, 0}, {1, 2, 0, 100}, {7, 0, 0, 0}, {0, 0, 0, 0}};
    kl_fit fits[3];
    r[2].at_s = NAN;
    kl_fit_ask ask = {.readings = r, .count = 3, .links = links, .link_count = 5};
    assert_int_equal(kl_fit_hosts(&ask, fits, NULL), KILTER_OK);
    assert_near(fits[0].net, 1, "the network", 0);
    assert_near(fits[1].net, 1, "the network", 1);
    assert_near(fits[2].qos, 0, "QoS", 2);
}

static void a_tournament_has_each_pair_once(void **state) {
    (void)state;
    for (uint32_t hosts = 0; hosts < 70; hosts++) {
        uint8_t met[70][70] = {{0}};
        uint32_t rounds = kl_link_rounds(hosts), pairs = 0;
        assert_true(rounds <= 9);
        for (uint32_t round = 0; round < rounds; round++)
            for (uint32_t i = 0; i < hosts; i++) {
                uint32_t partner = kl_link_partner(hosts, round, i);
                assert_true(partner < hosts);
                assert_int_equal(kl_link_partner(hosts, round, partner), i);
                if (partner == i)
                    continue;
                assert_int_equal(met[i][partner], 0);
                met[i][partner] = 1;
                pairs++;
            }
        if (hosts <= 10)
            assert_int_equal(pairs, hosts > 1 ? hosts * (hosts - 1) : 0);
        else /* with an odd number of hosts, one host measures nothing in each round */
            assert_int_equal(pairs, rounds * (hosts - hosts % 2));
    }
}

/* --- properties for all readings --- */

static double any(uint64_t *draw, double most) {
    uint64_t drawn = kl_mix64((*draw)++);
    double value = (double)(drawn >> 11) * 0x1p-53;
    return drawn % 7 == 0 ? NAN : drawn % 11 == 0 ? 0 : drawn % 13 == 0 ? INFINITY : value * most;
}

static kl_reading any_reading(uint64_t *draw) {
    kl_reading r = {.at_s = any(draw, 10),
                    .cores = (uint32_t)(kl_mix64((*draw)++) % 5),
                    .probe = any(draw, 1.5),
                    .steps_per_s = any(draw, 1e9),
                    .quota = any(draw, 8),
                    .memory_left = any(draw, 1e9),
                    .memory_total = any(draw, 1e9),
                    .swap_free = any(draw, 1e9),
                    .swap_total = any(draw, 1e9),
                    .load = any(draw, 20),
                    .waits_cpu = any(draw, 1),
                    .waits_memory = any(draw, 1),
                    .waits_io = any(draw, 1),
                    .own = (double)(kl_mix64((*draw)++) % 4),
                    .measured = any(draw, 1)};
    if (kl_mix64((*draw)++) % 3 > 0)
        r.measured = NAN;
    return r;
}

static bool is_share(double value) {
    return value >= 0 && value <= 1;
}

static void fitness_is_from_0_to_1_whatever_is_read(void **state) {
    (void)state;
    uint64_t draw = 1, cases = kl_test_cases(500, 5000);
    for (uint64_t c = 0; c < cases; c++) {
        kl_reading r[HOSTS];
        kl_link links[6];
        kl_fit fits[HOSTS];
        char why[KL_FIT_WHY_BYTES];
        for (size_t i = 0; i < HOSTS; i++)
            r[i] = any_reading(&draw);
        for (size_t i = 0; i < 6; i++) {
            uint64_t ends = kl_mix64(draw++);
            links[i] = (kl_link){(uint32_t)(ends % 5), (uint32_t)(ends / 5 % 5), 0, 0};
            links[i].trip_s = fmin(any(&draw, 1), 1);
            links[i].bytes_per_s = fmin(any(&draw, 1e9), 1e9);
        }
        kl_fit_ask ask = {.readings = r,
                          .count = HOSTS,
                          .links = links,
                          .link_count = 6,
                          .now_s = 10,
                          .weight = (double)(c % 5) / 4,
                          .stale_s = (double)(c % 3)};
        assert_int_equal(kl_fit_hosts(&ask, fits, NULL), KILTER_OK);
        for (size_t i = 0; i < HOSTS; i++) {
            const kl_fit *f = &fits[i];
            assert_true(is_share(f->cpu) && is_share(f->memory) && is_share(f->swap) && is_share(f->disk));
            assert_true(is_share(f->host) && is_share(f->net) && is_share(f->qos));
            assert_true(f->speed >= 0 && f->speed <= (r[i].cores ? r[i].cores : 1));
            assert_true(f->state == KL_FIT_KNOWN || f->qos == 0);
            kl_fit_why(f, &r[i], why);
            assert_true(f->state == KL_FIT_KNOWN || *why);
        }
        assert_true(is_share(kl_fit_mean(fits, HOSTS)));
    }
}

static void words_name_what_is_worst(void **state) {
    (void)state;
    static const struct {
        kl_fit fit;
        double quota;
        const char *words;
    } rows[] = {
        {{KL_FIT_KNOWN, 1, 1, 1, 1, 1, 1, 1, 4, 1}, INFINITY, ""},
        {{KL_FIT_KNOWN, 0.95, 1, 1, 1, 1, 1, 1, 4, 1}, INFINITY, ""},
        {{KL_FIT_KNOWN, 0.5, 0.6, 1, 1, 1, 1, 1, 4, 1}, INFINITY, "other programs use the cores"},
        {{KL_FIT_KNOWN, 0.25, 0.6, 1, 1, 1, 1, 1, 4, 1}, 1, "a quota of 1 of 4 cores"},
        {{KL_FIT_KNOWN, 0.7, 0.6, 1, 1, 1, 1, 1, 4, 1}, INFINITY, "little memory is left"},
        {{KL_FIT_KNOWN, 0.7, 1, 0.6, 1, 1, 1, 1, 4, 1}, INFINITY, "its swap space is in use"},
        {{KL_FIT_KNOWN, 0.7, 1, 1, 0.6, 1, 1, 1, 4, 1}, INFINITY, "processes wait for its disk"},
        {{KL_FIT_KNOWN, 1, 1, 1, 1, 1, 0.3, 1, 4, 1}, INFINITY, "slow links to other hosts"},
        {{KL_FIT_KNOWN, 1, 1, 1, 1, 1, 0, 1, 4, 1}, INFINITY, "no link to other hosts"},
        {{.state = KL_FIT_STALE}, INFINITY, "stale"},
        {{.state = KL_FIT_UNREACHABLE}, INFINITY, "unreachable"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[KL_FIT_WHY_BYTES];
        kl_reading r = idle_host();
        r.quota = rows[i].quota;
        kl_fit_why(&rows[i].fit, &r, why);
        if (!strstr(why, rows[i].words) || (!*rows[i].words && *why))
            fail_msg("row %zu: '%s', not '%s'", i, why, rows[i].words);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processors_follow_probe_quota_and_own_threads),
        cmocka_unit_test(memory_swap_and_disk_are_factors),
        cmocka_unit_test(weight_and_age_decide),
        cmocka_unit_test(speed_is_in_cores_of_the_fastest_host),
        cmocka_unit_test(the_network_is_the_harmonic_mean_of_links),
        cmocka_unit_test(a_message_needs_half_a_trip_and_its_bytes),
        cmocka_unit_test(links_with_hosts_that_are_gone_do_not_count),
        cmocka_unit_test(a_tournament_has_each_pair_once),
        cmocka_unit_test(fitness_is_from_0_to_1_whatever_is_read),
        cmocka_unit_test(words_name_what_is_worst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
