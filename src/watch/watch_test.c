/* Test the judgement of invented runs, whose iterations and imbalance are known. Also test damaged files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "watch/watch.h"

enum { SITES = 64, RANKS_MOST = 8 };

/* --- making runs for the tests --- */

typedef struct maker {
    kl_watch_rank rank;
    size_t room;
} maker;

static void add_call(maker *m, uint16_t site, double useful_s, double mpi_s) {
    kl_watch_rank *r = &m->rank;
    if (r->call_count == m->room) {
        m->room = m->room ? 2 * m->room : 256;
        r->call = realloc(r->call, m->room * sizeof *r->call);
        assert_non_null(r->call);
    }
    r->call[r->call_count++] = (kl_watch_call){site, useful_s, mpi_s};
    r->places[site].events++;
    r->places[site].mpi_s += mpi_s;
    r->useful_s += useful_s;
    r->mpi_s += mpi_s;
    r->elapsed_s += useful_s + mpi_s;
    r->calls++;
}

static maker maker_new(uint32_t rank, uint32_t ranks) {
    maker m = {.rank = {.rank = rank, .ranks = ranks, .core_share = 1, .end = KL_WATCH_FINALIZED}};
    m.rank.places = calloc(SITES, sizeof *m.rank.places);
    assert_non_null(m.rank.places);
    m.rank.place_count = SITES;
    return m;
}

/* Make the slices from the calls, as the library does while a program runs. */
static void add_slices(maker *m, double slice_s) {
    kl_watch_rank *r = &m->rank;
    double at = 0;
    r->slice_s = slice_s;
    r->slice_count = (size_t)(r->elapsed_s / slice_s) + 1;
    r->slice = calloc(r->slice_count + 1, sizeof *r->slice);
    assert_non_null(r->slice);
    for (size_t i = 0; i < r->call_count; i++) {
        double until = at + r->call[i].useful_s, next = until + r->call[i].mpi_s;
        while (at < until) {
            size_t slice = (size_t)(at / slice_s);
            double end = fmin(until, (double)(slice + 1) * slice_s);
            if (end <= at)
                end = until;
            r->slice[slice < r->slice_count ? slice : r->slice_count - 1] += end - at;
            at = end;
        }
        at = next;
    }
}

/* Returns the useful seconds of a rank in an iteration. */
typedef double (*load_fn)(uint32_t rank, size_t iteration);

/* A run in which the ranks wait for each other in each iteration. An iteration has `calls` calls of MPI.
 * Without the waiting, these calls take mpi_s in total. */
typedef struct shape {
    uint32_t ranks;
    size_t iterations, calls;
    double mpi_s;
    load_fn load;
} shape;

static void make_run(const shape *s, kl_watch_rank *ranks) {
    for (uint32_t r = 0; r < s->ranks; r++) {
        maker m = maker_new(r, s->ranks);
        for (size_t k = 0; k < s->iterations; k++) {
            double longest = 0, own = s->load(r, k);
            for (uint32_t other = 0; other < s->ranks; other++)
                longest = fmax(longest, s->load(other, k));
            for (size_t c = 0; c < s->calls; c++)
                add_call(&m, (uint16_t)(c + 1), c == 0 ? own : 0, c == 0 ? longest - own + s->mpi_s : 0);
        }
        add_slices(&m, 0.01);
        ranks[r] = m.rank;
    }
}

static kl_watch_found judge(const shape *s) {
    kl_watch_rank ranks[RANKS_MOST];
    kl_watch_found found;
    make_run(s, ranks);
    assert_int_equal(kl_watch_judge(ranks, s->ranks, &found, NULL), KILTER_OK);
    for (uint32_t r = 0; r < s->ranks; r++)
        kl_watch_rank_free(&ranks[r]);
    return found;
}

static void assert_near(double is, double should, double within) {
    if (!(fabs(is - should) <= within))
        fail_msg("%g is not within %g of %g", is, within, should);
}

/* --- loads --- */

static double even(uint32_t rank, size_t k) {
    (void)rank, (void)k;
    return 0.010;
}
static double first_slow(uint32_t rank, size_t k) {
    (void)k;
    return rank == 0 ? 0.020 : 0.010;
}
static double slow_in_turn(
    uint32_t rank,
    size_t k) { /* one half of the ranks is slow for 200 iterations, then the other half for the next 200 */
    return k / 200 % 2 == rank % 2 ? 0.020 : 0.010;
}
static double slow_each(uint32_t rank, size_t k) { /* in each iteration a different rank is slow */
    return k % 4 == rank ? 0.020 : 0.010;
}

static void test_judgements(void **state) {
    static const struct {
        shape shape;
        double balance, constant, slow, fast;
        kl_watch_way way;
    } CASES[] = {
        {{4, 800, 3, 0.0, even}, 1, 0, 0, 0, KL_WATCH_NOTHING},
        {{4, 800, 3, 0.0, first_slow}, 0.625, 0.375, 0, 0, KL_WATCH_LOOP},
        {{4, 800, 1, 0.005, first_slow}, 0.625, 0.3, 0, 0, KL_WATCH_LOOP},
        {{4, 800, 5, 0.0, slow_in_turn}, 1, 0, 0.25, 0, KL_WATCH_LOOP},
        {{4, 800, 3, 0.0, slow_each}, 1, 0, 0, 0.375, KL_WATCH_NOTHING},
        {{1, 800, 3, 0.001, even}, 1, 0, 0, 0, KL_WATCH_NOTHING},
        {{4, 800, 3, 0.010, even}, 1, 0, 0, 0, KL_WATCH_NOTHING},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kl_watch_found f = judge(&CASES[i].shape);
        print_message("case %zu: %s: %s\n", i, kl_watch_way_name(f.way), f.reason);
        assert_int_equal(f.iterations, CASES[i].shape.iterations);
        assert_int_equal(f.iteration_calls, CASES[i].shape.calls);
        assert_near(f.load_balance, CASES[i].balance, 0.01);
        assert_near(f.lost_constant, CASES[i].constant, 0.01);
        assert_near(f.lost_slow, CASES[i].slow, 0.03);
        assert_near(f.lost_fast, CASES[i].fast, 0.03);
        assert_int_equal(f.way, CASES[i].way);
        assert_near(f.parallel, f.load_balance * f.communication, 1e-12);
        assert_true(f.even.least_s <= f.even.most_s && f.even.most_s <= f.elapsed_s);
        assert_true(f.follow.least_s <= f.follow.most_s && f.follow.most_s <= f.elapsed_s);
    }
}

/* Rank 0 takes twice as long as the others. If rank 0 has more work, a run with even shares takes the
 * arithmetic mean of the times. If the core of rank 0 is slower, such a run takes the harmonic mean. If rank
 * 0 gets only half of its core, CPU time shows this, so the forecast is a single value. */
static void test_forecasts(void **state) {
    const shape s = {4, 800, 3, 0.0, first_slow};
    kl_watch_rank ranks[RANKS_MOST];
    kl_watch_found f;
    (void)state;
    make_run(&s, ranks);
    assert_int_equal(kl_watch_judge(ranks, 4, &f, NULL), KILTER_OK);
    assert_near(f.even.most_s, 800 * 0.0125, 0.01);
    assert_near(f.even.least_s, 800 * 4 / 350.0, 0.01);
    ranks[0].core_share = 0.5;
    assert_int_equal(kl_watch_judge(ranks, 4, &f, NULL), KILTER_OK);
    assert_near(f.even.most_s, 800 * 4 / 350.0, 0.01);
    assert_near(f.even.least_s, 800 * 4 / 350.0, 0.01);
    assert_int_equal(f.shared_ranks, 1);
    for (int r = 0; r < 4; r++)
        kl_watch_rank_free(&ranks[r]);
}

static void test_farm(void **state) {
    kl_watch_rank ranks[4];
    kl_watch_found f;
    (void)state;
    for (uint32_t r = 0; r < 4; r++) {
        maker m = maker_new(r, 4);
        for (uint16_t k = 0; k < 300; k++)
            add_call(&m, (uint16_t)(1 + k * k % 13 % 5), r == 0 ? 1e-5 : 0.01, r == 0 ? 0.01 : 1e-5);
        m.rank.any_source = r == 0 ? 150 : 0;
        add_slices(&m, 0.01);
        ranks[r] = m.rank;
    }
    assert_int_equal(kl_watch_judge(ranks, 4, &f, NULL), KILTER_OK);
    assert_int_equal(f.way, KL_WATCH_FARM);
    assert_non_null(strstr(f.reason, "rank 0"));
    for (int r = 0; r < 4; r++)
        kl_watch_rank_free(&ranks[r]);
}

/* --- finding the iteration --- */

static uint32_t draw(uint32_t *seed) {
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* Make the calls of a rank, and find its iteration. The iteration has `calls` calls from random places.
 * Before the first iteration, the rank makes other calls. Each `every`-th iteration has `extra` more calls.
 */
static kl_watch_period period_of(size_t calls, size_t iterations, size_t every, size_t extra, uint32_t seed) {
    maker m = maker_new(0, 1);
    uint16_t pattern[SITES];
    for (size_t c = 0; c < calls; c++)
        pattern[c] = (uint16_t)(c == 0 ? 1 : 2 + draw(&seed) % 40);
    for (int i = 0; i < 7; i++)
        add_call(&m, (uint16_t)(50 + draw(&seed) % 4), 0.001, 0.001);
    for (size_t k = 0; k < iterations; k++) {
        for (size_t c = 0; c < calls; c++)
            add_call(&m, pattern[c], 0.001, 0);
        for (size_t e = 0; every > 0 && k % every == every - 1 && e < extra; e++)
            add_call(&m, 60, 0, 0.0001);
    }
    kl_watch_period p = kl_watch_period_of(&m.rank);
    kl_watch_rank_free(&m.rank);
    return p;
}

static void test_periods(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++)
        for (size_t calls = 1; calls <= 40; calls += 3) {
            kl_watch_period plain = period_of(calls, 60, 0, 0, seed);
            kl_watch_period branches = period_of(calls, 200, 20, 2, seed);
            assert_int_equal(plain.calls, calls);
            assert_int_equal(plain.iterations, 60);
            assert_near(plain.iteration_s, 0.001 * (double)calls, 1e-9);
            assert_int_equal(branches.calls, calls);
            assert_int_equal(branches.iterations, 200);
        }
}

/* An iteration must be found if all calls come from one place. It has six calls, and the program computes
 * only before the first of them. */
static void test_one_place(void **state) {
    uint32_t seed = 5;
    maker m = maker_new(0, 1);
    (void)state;
    for (int i = 0; i < 600; i++)
        add_call(&m, 1, i % 6 == 0 ? 0.001 * (1 + draw(&seed) % 100 / 200.0) : 1e-6, 1e-5);
    kl_watch_period p = kl_watch_period_of(&m.rank);
    assert_int_equal(p.calls, 6);
    assert_int_equal(p.iterations, 100);
    kl_watch_rank_free(&m.rank);
}

/* An iteration must be found if the program makes three quarters of all calls while it sets up. */
static void test_phases(void **state) {
    uint32_t seed = 7;
    maker m = maker_new(0, 1);
    (void)state;
    for (int i = 0; i < 1500; i++)
        add_call(&m, (uint16_t)(20 + draw(&seed) % 20), 0.001, 0);
    for (int i = 0; i < 500; i++)
        add_call(&m, (uint16_t)(i % 5), 0.001, 0);
    kl_watch_period p = kl_watch_period_of(&m.rank);
    assert_int_equal(p.calls, 5);
    assert_int_equal(p.iterations, 100);
    kl_watch_rank_free(&m.rank);
}

/* Add an iteration of seven calls. With a branch, three of them come from another place. */
static void add_iteration(maker *m, bool branch) {
    for (uint16_t c = 1; c <= 7; c++)
        add_call(m, branch && c > 4 ? 61 : c, 0.001, 0);
}

/* The number of iterations must be right in spite of three disturbances. While the program sets up, it calls
 * MPI from a place that iterations also use. Some iterations have other calls than usual. After some
 * iterations, the program makes many further calls. */
static void test_counting(void **state) {
    maker m = maker_new(0, 1);
    (void)state;
    for (int i = 0; i < 60; i++)
        add_call(&m, i % 3 == 0 ? 1 : (uint16_t)(20 + i % 17), 0.001, 0);
    for (int k = 1; k <= 400; k++) {
        add_iteration(&m, k % 50 == 25);
        for (int i = 0; k % 40 == 0 && i < 16; i++)
            add_call(&m, (uint16_t)(40 + i), 0.001, 0);
    }
    kl_watch_period p = kl_watch_period_of(&m.rank);
    assert_int_equal(p.calls, 7);
    assert_in_range(p.iterations, 399, 401);
    assert_near(p.iteration_s, 0.007, 1e-4);
    kl_watch_rank_free(&m.rank);
}

static void test_no_period(void **state) {
    uint32_t seed = 3;
    maker m = maker_new(0, 1);
    (void)state;
    assert_int_equal(kl_watch_period_of(&m.rank).calls, 0);
    for (int i = 0; i < 1000; i++)
        add_call(&m, (uint16_t)(draw(&seed) % 20), 0.001, 0);
    assert_int_equal(kl_watch_period_of(&m.rank).calls, 0);
    kl_watch_rank_free(&m.rank);
}

/* --- files --- */

static kl_watch_file *good_file(void) {
    kl_watch_file *f = calloc(1, sizeof *f);
    assert_non_null(f);
    memcpy(f->magic, KL_WATCH_MAGIC, sizeof f->magic);
    f->version = KL_WATCH_VERSION;
    f->bytes = sizeof *f;
    f->ranks = 2;
    f->last = (kl_watch_moment){2000000, 1000000};
    f->useful = 1000000;
    f->sites = 2;
    f->events = KL_WATCH_EVENTS + 3;
    f->slices = 4;
    f->slice_ticks = 500000;
    for (size_t i = 0; i < KL_WATCH_EVENTS; i++)
        f->ring[i] = (kl_watch_event){.useful = (float)i, .mpi = 1, .site = 1};
    return f;
}

static kilter_status read_it(const kl_watch_file *f, size_t size, kl_watch_rank *rank, kilter_error *error) {
    return kl_watch_read((kilter_bytes){(const uint8_t *)f, size}, "rank-0", rank, error);
}

static void test_read(void **state) {
    kl_watch_file *f = good_file();
    kl_watch_rank rank;
    (void)state;
    assert_int_equal(read_it(f, sizeof *f, &rank, NULL), KILTER_OK);
    assert_near(rank.elapsed_s, 0.001, 1e-12);
    assert_near(rank.useful_s, 0.0005, 1e-12);
    assert_int_equal(rank.call_count, KL_WATCH_EVENTS);
    assert_near(rank.call[0].useful_s, 3 * 0.5e-9, 1e-15); /* the oldest event that the ring still has */
    assert_true(isnan(rank.core_share));
    kl_watch_rank_free(&rank);
    free(f);
}

static void test_damage(void **state) {
    static const struct {
        size_t at;
        unsigned char byte;
        const char *says;
    } CASES[] = {
        {offsetof(kl_watch_file, magic), 'x', "its first bytes are wrong"},
        {offsetof(kl_watch_file, version), 99, "another version"},
        {offsetof(kl_watch_file, rank), 2, "rank is wrong"},
        {offsetof(kl_watch_file, end), 3, "header is damaged"},
        {offsetof(kl_watch_file, slices) + 1, 9, "header is damaged"},
        {offsetof(kl_watch_file, began) + 7, 1, "runs backwards"},
        {offsetof(kl_watch_file, ring) + offsetof(kl_watch_event, site), 2, "list of calls is damaged"},
        {offsetof(kl_watch_file, ring) + 3, 0xff, "list of calls is damaged"},
    };
    kl_watch_rank rank;
    kilter_error error;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        kl_watch_file *f = good_file();
        ((unsigned char *)f)[CASES[i].at] = CASES[i].byte;
        assert_int_equal(read_it(f, sizeof *f, &rank, &error), KILTER_ERR_INPUT);
        assert_non_null(strstr(error.text, "rank-0"));
        if (!strstr(error.text, CASES[i].says))
            fail_msg("case %zu says: %s", i, error.text);
        assert_int_equal(read_it(f, sizeof *f - 1, &rank, &error), KILTER_ERR_INPUT);
        free(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judgements), cmocka_unit_test(test_forecasts), cmocka_unit_test(test_farm),
        cmocka_unit_test(test_periods),    cmocka_unit_test(test_no_period), cmocka_unit_test(test_one_place),
        cmocka_unit_test(test_counting),   cmocka_unit_test(test_phases),    cmocka_unit_test(test_read),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
