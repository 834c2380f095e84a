/* Test maps: a row must be on the same rank as the row of the leading loop that it follows. A rank must get
 * the halo rows that it reads, also from the other end of a periodic array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rank/rank.h"

enum { RANKS = 5, LEAD = 24, HALO = 3 };

/* Call `check` for many maps, and for leading loops with 24 rows on 5 ranks. Some ranks may have no rows. */
static void for_each_map(void (*check)(const kl_map *map, const kl_layout *lead)) {
    for (uint64_t seed = 0; seed < 20; seed++)
        for (uint64_t stride = 1; stride <= 5; stride++)
            for (uint64_t offset = 0; offset <= 6; offset++) {
                kl_map map = {(LEAD - 1 - offset) / stride + 1 - seed % 2, stride, offset};
                kl_layout lead;
                uint64_t random = seed;
                assert_true(kl_layout_init(&lead, LEAD, 1, RANKS));
                for (uint32_t r = 1; r < RANKS && seed > 0; r++) {
                    random = kl_mix64(random);
                    lead.bounds[r] = lead.target[r] =
                        lead.bounds[r - 1] + random % (LEAD - lead.bounds[r - 1] + 1);
                }
                check(&map, &lead);
                kl_layout_free(&lead);
            }
}

/* Each row must be on the rank of the leading loop's row that it follows, and the ranges of the ranks must
 * be adjacent. */
static void check_places(const kl_map *map, const kl_layout *lead) {
    kl_layout follower;
    assert_true(kl_layout_init(&follower, map->rows, lead->rank, RANKS));
    kl_layout_follow(&follower, lead, map);
    assert_int_equal(follower.bounds[0], 0);
    assert_int_equal(follower.bounds[RANKS], map->rows);
    for (uint32_t r = 0; r < RANKS; r++) {
        kl_span places = kl_range_of(lead->bounds, r), own = kl_range_of(follower.bounds, r);
        for (uint64_t row = own.lo; row < own.hi; row++) {
            uint64_t place = map->stride * row + map->offset;
            assert_true(place >= places.lo && place < places.hi);
        }
        kl_span again = kl_map_span(map, places);
        assert_true(again.lo == own.lo && again.hi == own.hi);
    }
    assert_false(kl_layout_refresh(&follower));
    kl_layout_free(&follower);
}

static void rows_lie_where_their_places_are(void **state) {
    (void)state;
    for_each_map(check_places);
}

/* Return whether one of the pieces brings a row to the address of row `at`. */
static bool brings(const kl_piece *pieces, size_t count, int64_t at, int64_t n) {
    int found = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t row = pieces[i].rows.lo; row < pieces[i].rows.hi; row++)
            if ((int64_t)row + pieces[i].shift == at) {
                assert_int_equal((at + n) % n, row);
                found++;
            }
    assert_true(found <= 1);
    return found == 1;
}

/* A rank must get the rows of an array that are near its own rows of the leading loop. Each row of the array
 * follows a row of the leading loop. It is near if the followed row is at most halo × stride rows away from
 * the rank's own rows. */
static void check_pieces(const kl_map *map, const kl_layout *lead) {
    int64_t n = (int64_t)map->rows, stride = (int64_t)map->stride;
    for (uint32_t r = 0; r < RANKS; r++)
        for (int periodic = 0; periodic < 2; periodic++)
            for (uint64_t halo = 0; halo <= HALO && halo <= map->rows; halo++) {
                kl_array a = {.bytes = 8, .halo = halo, .room = halo, .map = *map, .periodic = periodic};
                kl_span places = kl_range_of(lead->bounds, r);
                kl_piece pieces[KL_PIECES];
                if (kl_is_empty(places))
                    continue;
                size_t count = kl_array_pieces(&a, kl_array_own(&a, places), halo, halo, pieces);
                kl_span room = kl_array_with_room(&a, places);
                int64_t edge = (int64_t)kl_array_edge(&a), reach = (int64_t)halo * stride;
                for (int64_t row = periodic ? -(int64_t)halo : 0; row < n + (periodic ? (int64_t)halo : 0);
                     row++) {
                    int64_t place = stride * row + (int64_t)map->offset;
                    if (place >= (int64_t)places.lo - reach && place < (int64_t)places.hi + reach)
                        assert_true(brings(pieces, count, row, n));
                    if (brings(pieces, count, row, n))
                        assert_true(row + edge >= (int64_t)room.lo && row + edge < (int64_t)room.hi);
                }
            }
}

static void a_rank_gets_all_rows_that_its_rows_reach(void **state) {
    (void)state;
    for_each_map(check_pieces);
}

static void bounds_of_a_follower_change_with_the_leader(void **state) {
    const kl_map map = {LEAD / 2, 2, 1};
    kl_layout lead, follower;
    (void)state;
    assert_true(kl_layout_init(&lead, LEAD, 0, RANKS) && kl_layout_init(&follower, map.rows, 0, RANKS));
    kl_layout_follow(&follower, &lead, &map);
    lead.target[1] = lead.target[2] = 11;
    kl_layout_settle(&lead, 1);
    assert_true(kl_layout_refresh(&follower));
    assert_int_equal(follower.bounds[1], 5);
    assert_int_equal(follower.target[2], 5);
    kl_layout_free(&lead);
    kl_layout_free(&follower);
}

static void shares_are_unequal_if_one_is_clearly_larger(void **state) {
    static const struct {
        uint64_t rows[3];
        bool unequal;
    } cases[] = {
        {{100, 100, 100}, false}, {{110, 95, 95}, false}, {{111, 95, 94}, true}, {{94, 95, 111}, true},
        {{300, 0, 0}, true},      {{2, 1, 1}, false},     {{2, 2, 0}, false},    {{3, 1, 0}, true},
        {{1, 0, 0}, false},       {{1, 1, 0}, false},     {{2, 0, 0}, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t *rows = cases[i].rows;
        kl_layout layout;
        assert_true(kl_layout_init(&layout, rows[0] + rows[1] + rows[2], 0, 3));
        for (uint32_t r = 0; r < 3; r++)
            layout.target[r + 1] = layout.target[r] + rows[r];
        assert_int_equal(kl_layout_is_unequal(&layout), cases[i].unequal);
        kl_layout_free(&layout);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_lie_where_their_places_are),
        cmocka_unit_test(a_rank_gets_all_rows_that_its_rows_reach),
        cmocka_unit_test(bounds_of_a_follower_change_with_the_leader),
        cmocka_unit_test(shares_are_unequal_if_one_is_clearly_larger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
