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
    /* each exchange takes half the time of the previous exchange of its size; only the warm-up takes even
     * less time */
    double small_s = 1e-3, large_s = 2e-3;
    uint32_t messages;
    size_t bytes = kl_probe_begin(&probe, &clock, &messages);
    now_s += 1e-6;
    assert_true(kl_probe_answered(&probe, bytes, &clock));
    while (!kl_probe_done(&probe)) {
        bytes = kl_probe_begin(&probe, &clock, &messages);
        assert_int_equal(messages, 1);
        double *took_s = bytes == KL_PROBE_SMALL_BYTES ? &small_s : &large_s;
        now_s += *took_s;
        assert_true(kl_probe_answered(&probe, bytes, &clock));
        *took_s *= 0.5;
    }
    /* the last exchange counts, because it was the fastest of its size */
    assert_true(probe.small_s > 1.9 * small_s && probe.small_s < 2.1 * small_s);
    assert_true(probe.large_s > 1.9 * large_s && probe.large_s < 2.1 * large_s);
}

static void an_echo_of_another_size_is_no_answer(void **state) {
    (void)state;
    double now_s = 0;
    kl_clock clock = {.now_s = fake_now_s, .self = &now_s};
    kl_probe probe = {0};
    uint32_t messages;
    size_t bytes = kl_probe_begin(&probe, &clock, &messages);
    assert_false(kl_probe_answered(&probe, bytes + 1, &clock));
    assert_false(kl_probe_answered(&probe, 0, &clock));
    while (!kl_probe_done(&probe))
        assert_true(kl_probe_answered(&probe, kl_probe_begin(&probe, &clock, &messages), &clock));
    /* all exchanges have ended, so the probe waits for no echo */
    assert_false(kl_probe_answered(&probe, bytes, &clock));
}

/* Let two stations on a message's way take 5 ns per byte each. A single message takes 10 ns per byte, and
 * each further message of a burst takes 5 ns per byte. The first burst is disturbed and takes longer. */
static void the_quickest_stream_tells_what_a_link_carries(void **state) {
    (void)state;
    double now_s = 3;
    kl_clock clock = {.now_s = fake_now_s, .self = &now_s};
    kl_probe probe = {.bursts = true};
    uint32_t messages = 1, streams = 0;
    while (!kl_probe_done(&probe)) {
        size_t bytes = kl_probe_begin(&probe, &clock, &messages);
        streams += messages > 1;
        now_s += 2 * (1e-4 + 10e-9 * (double)bytes);
        assert_false(kl_probe_waits(&probe));
        assert_true(kl_probe_answered(&probe, bytes, &clock));
        for (uint32_t i = 1; i < messages; i++) {
            assert_true(kl_probe_waits(&probe));
            now_s += (streams == 1 ? 9e-9 : 5e-9) * KL_PROBE_LARGE_BYTES;
            assert_true(kl_probe_answered(&probe, KL_PROBE_LARGE_BYTES, &clock));
        }
    }
    assert_true(streams > 1 && !kl_probe_waits(&probe));
    assert_true(kl_probe_byte_s(&probe) > 4.9e-9 && kl_probe_byte_s(&probe) < 5.1e-9);
    assert_true(kl_probe_byte_s(&(kl_probe){.large_s = 1e-3}) == 0);
    double copy_s = kl_probe_copy_s(probe.small_s, probe.large_s);
    /* the CPU seconds are those of 20 messages in both directions */
    assert_true(copy_s > 4.9e-9 && copy_s < 5.1e-9);
}

/* Measure a slow link. One burst takes long enough, so no second burst is sent. */
static void a_slow_link_carries_one_stream(void **state) {
    (void)state;
    double now_s = 3;
    kl_clock clock = {.now_s = fake_now_s, .self = &now_s};
    kl_probe probe = {.bursts = true};
    uint32_t messages, streams = 0;
    while (!kl_probe_done(&probe)) {
        size_t bytes = kl_probe_begin(&probe, &clock, &messages);
        streams += messages > 1;
        for (uint32_t i = 0; i < messages; i++) {
            now_s += 1e-6 * (double)bytes;
            assert_true(kl_probe_answered(&probe, bytes, &clock));
        }
    }
    assert_int_equal(streams, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quickest_exchange_of_each_size_counts),
        cmocka_unit_test(an_echo_of_another_size_is_no_answer),
        cmocka_unit_test(the_quickest_stream_tells_what_a_link_carries),
        cmocka_unit_test(a_slow_link_carries_one_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
