#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probe/probe.h"

static double fake_now_s(void *self) {
    return *(double *)self;
}

static void the_quickest_exchange_of_each_size_counts(void **state) {
    (void)state;
    double now_s = 5;
    kl_clock clock = {.now_s = fake_now_s, .self = &now_s};
    kl_probe probe = {0};
    double small_s = 1e-3, large_s = 2e-3; /* each exchange is quicker than the previous one, except that the
                                              first is the quickest of all */
    size_t bytes = kl_probe_begin(&probe, &clock);
    now_s += 1e-6;
    assert_true(kl_probe_answered(&probe, bytes, &clock));
    while (!kl_probe_done(&probe)) {
        bytes = kl_probe_begin(&probe, &clock);
        double *took_s = bytes == KL_PROBE_SMALL_BYTES ? &small_s : &large_s;
        now_s += *took_s;
        assert_true(kl_probe_answered(&probe, bytes, &clock));
        *took_s *= 0.5;
    }
    assert_true(probe.small_s > 1.9 * small_s && probe.small_s < 2.1 * small_s); /* the last exchange */
    assert_true(probe.large_s > 1.9 * large_s && probe.large_s < 2.1 * large_s);
}

static void an_echo_of_another_size_is_no_answer(void **state) {
    (void)state;
    double now_s = 0;
    kl_clock clock = {.now_s = fake_now_s, .self = &now_s};
    kl_probe probe = {0};
    size_t bytes = kl_probe_begin(&probe, &clock);
    assert_false(kl_probe_answered(&probe, bytes + 1, &clock));
    assert_false(kl_probe_answered(&probe, 0, &clock));
    while (!kl_probe_done(&probe))
        assert_true(kl_probe_answered(&probe, kl_probe_begin(&probe, &clock), &clock));
    assert_false(kl_probe_answered(&probe, bytes, &clock)); /* an echo without an exchange */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quickest_exchange_of_each_size_counts),
        cmocka_unit_test(an_echo_of_another_size_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
