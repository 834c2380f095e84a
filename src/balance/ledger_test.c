#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "balance/balance.h"

enum { MOST = 500 };

static kl_span any_span(uint64_t *seed, uint64_t tasks) {
    uint64_t lo = kl_mix64((*seed)++) % tasks, left = tasks - lo;
    /* two in three spans may have any length; the others have at most 3 tasks */
    uint64_t most = kl_mix64((*seed)++) % 3 ? left : left < 3 ? left : 3;
    return (kl_span){lo, lo + 1 + kl_mix64((*seed)++) % most};
}

/* Mark spans as done in any order. For any span, the ledger and a plain list must give the same answers. */
static void spans_alike_are_as_long_as_can_be(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 300; round++) {
        uint64_t seed = round * 100000, tasks = 1 + kl_mix64(round) % MOST, count = 0;
        bool done[MOST] = {false};
        kl_ledger ledger = {0};
        assert_int_equal(kl_ledger_begin(&ledger, tasks), KILTER_OK);
        for (int step = 0; step < 20; step++) {
            kl_span mark = any_span(&seed, tasks), look = any_span(&seed, tasks);
            bool is_done;
            mark = kl_ledger_alike(&ledger, mark, &is_done);
            if (!is_done) {
                kl_ledger_do(&ledger, mark);
                memset(done + mark.lo, true, mark.hi - mark.lo);
                count += mark.hi - mark.lo;
            }
            kl_span alike = kl_ledger_alike(&ledger, look, &is_done);
            uint64_t end = look.lo;
            while (end < look.hi && done[end] == done[look.lo])
                end++;
            assert_true(alike.lo == look.lo && alike.hi == end && is_done == done[look.lo]);
            assert_int_equal(ledger.done_count, count);
        }
        for (uint64_t i = 0; i < tasks; i++)
            assert_int_equal(kl_ledger_is_done(&ledger, i), done[i]);
        kl_ledger_free(&ledger);
    }
}

static void counts_are_those_of_each_task(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 300; round++) {
        uint64_t seed = round * 100000, tasks = 1 + kl_mix64(round) % MOST;
        uint32_t times[MOST] = {0};
        kl_tally tally = {0};
        for (int step = 0; step < 60; step++) {
            kl_span span = any_span(&seed, tasks);
            assert_int_equal(kl_tally_add(&tally, span), KILTER_OK);
            for (uint64_t i = span.lo; i < span.hi; i++)
                times[i]++;
            for (uint64_t i = 0; i < tasks; i++)
                assert_int_equal(kl_tally_of(&tally, i), times[i]);
            for (kl_span rest = {0, tasks}; rest.lo < rest.hi;) {
                uint32_t alike_times;
                kl_span alike = kl_tally_alike(&tally, rest, &alike_times);
                assert_true(alike.lo == rest.lo && alike.hi > alike.lo && alike.hi <= tasks);
                for (uint64_t i = alike.lo; i < alike.hi; i++)
                    assert_int_equal(times[i], alike_times);
                rest.lo = alike.hi;
            }
        }
        kl_ledger ledger = {.losses = tally};
        kl_ledger_free(&ledger);
    }
}

static void a_ledger_grows_and_forgets_nothing(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 200; round++) {
        uint64_t tasks = kl_mix64(round) % 70;
        kl_ledger ledger = {0};
        assert_int_equal(kl_ledger_begin(&ledger, tasks), KILTER_OK);
        for (uint64_t step = 0; step < 20; step++) {
            uint64_t more = 1 + kl_mix64(round * 100 + step) % 150;
            assert_int_equal(kl_ledger_grow(&ledger, more), KILTER_OK);
            for (uint64_t i = tasks; i < tasks + more; i++)
                assert_false(kl_ledger_is_done(&ledger, i));
            for (uint64_t i = tasks; i < tasks + more; i++)
                if (kl_mix64(i) % 3)
                    kl_ledger_do(&ledger, (kl_span){i, i + 1});
            tasks += more;
            for (uint64_t i = tasks - more; i < tasks; i++)
                assert_int_equal(kl_ledger_is_done(&ledger, i), kl_mix64(i) % 3 != 0);
        }
        kl_ledger_free(&ledger);
    }
}

static void a_new_run_knows_nothing_of_the_last(void **state) {
    (void)state;
    kl_ledger ledger = {0};
    assert_int_equal(kl_ledger_begin(&ledger, 100), KILTER_OK);
    kl_ledger_do(&ledger, (kl_span){0, 100});
    assert_int_equal(kl_tally_add(&ledger.losses, (kl_span){3, 5}), KILTER_OK);
    assert_int_equal(kl_ledger_begin(&ledger, 64), KILTER_OK);
    bool done;
    kl_span alike = kl_ledger_alike(&ledger, (kl_span){0, 64}, &done);
    assert_true(!done && alike.hi == 64 && ledger.done_count == 0);
    assert_int_equal(kl_tally_of(&ledger.losses, 3), 0);
    kl_ledger_free(&ledger);
}

static void a_run_of_no_tasks_is_a_run(void **state) {
    (void)state;
    kl_ledger ledger = {0};
    assert_int_equal(kl_ledger_begin(&ledger, 0), KILTER_OK);
    kl_ledger_free(&ledger);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_alike_are_as_long_as_can_be),
        cmocka_unit_test(counts_are_those_of_each_task),
        cmocka_unit_test(a_ledger_grows_and_forgets_nothing),
        cmocka_unit_test(a_new_run_knows_nothing_of_the_last),
        cmocka_unit_test(a_run_of_no_tasks_is_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
