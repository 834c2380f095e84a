#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/measure.h"

enum { STEP_MS = 12 };

/* A thread on a core that may be shared, with the counters that the system would show. It gets at most `part`
 * of the core. It wants the core all the time while it spins, and for the part `wanted` while it sleeps. */
typedef struct thread {
    kl_core_share core;
    kl_core_sample now;
    double part, wanted;
} thread;

static void live(thread *t, int ms) {
    for (int at = 0; at < ms; at += STEP_MS) {
        double step_s = STEP_MS * 1e-3, ready = 1;
        if (t->core.sleeps)
            /* a thread that wants more than its share waits for the core while others use it */
            ready = fmin(1, t->part < 1 ? t->wanted / t->part : t->wanted);
        double run_s = fmin(t->core.sleeps ? t->wanted : 1, t->part) * step_s;
        t->now.run_s += run_s;
        t->now.delay_s += fmax(0, ready * step_s - run_s) * (t->part < 1);
        t->now.slices += t->part < 1 ? run_s / 4e-3 : 0;
        t->now.waited_s += fmax(0, 1 - t->wanted) * step_s;
        t->now.idle_s += t->part < 1 ? 0 : (t->core.sleeps ? 1 - t->wanted : 0) * step_s;
        t->now.now_s += step_s;
        assert_true(kl_core_share_due(&t->core, t->now.now_s));
        kl_core_sample s = t->now;
        if (!kl_core_share_wants_idle(&t->core, s.now_s))
            s.idle_s = -1;
        kl_core_share_add(&t->core, &s);
    }
}

static thread begin(double part, double wanted) {
    thread t = {.now = {.now_s = 100, .run_s = 7, .delay_s = 3, .slices = 9}, .part = part, .wanted = wanted};
    kl_core_share_add(&t.core, &t.now);
    return t;
}

static void a_core_of_ones_own_is_known(void **state) {
    (void)state;
    thread t = begin(1, 0.3);
    live(&t, 10000);
    assert_int_equal(t.core.mode, KL_CORE_OWN);
    assert_false(t.core.sleeps);
    assert_true(t.core.share == 1);
}

/* Another thread takes some milliseconds of the core each second, within one window or in two. The core must
 * never count as shared. */
static void a_core_that_is_disturbed_for_moments_stays_ones_own(void **state) {
    (void)state;
    thread t = begin(1, 0.3);
    for (int step = 0; step < 2000; step++) {
        bool one = step % 170 == 0, two = step % 170 == 85 || step % 170 == 86;
        t.part = one ? 0.4 : two ? 0.7 : 1;
        live(&t, STEP_MS);
        assert_int_not_equal(t.core.mode, KL_CORE_SHARED);
        assert_true(t.core.share == 1);
    }
}

/* After 0.1 s the estimated share and the estimated time slice must be right. This must hold for every
 * share. */
static void the_share_is_what_a_thread_gets_that_wants_all(void **state) {
    (void)state;
    static const double parts[] = {0.9, 0.75, 0.5, 1.0 / 3, 0.1};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (double wanted = 0.05; wanted < 1; wanted += 0.1) {
            thread t = begin(parts[i], wanted);
            live(&t, 100);
            assert_int_equal(t.core.mode, KL_CORE_SHARED);
            assert_true(fabs(t.core.share - parts[i]) < 0.02);
            assert_true(fabs(t.core.quantum_s - fmax(1e-3, 4e-3 * fmin(1, 1 / parts[i] - 1))) < 1e-4);
        }
}

/* A thread that needs less than its share must sleep. A thread that needs all of its share must soon stop
 * sleeping. */
static void who_has_slack_sleeps(void **state) {
    (void)state;
    thread t = begin(0.5, 0.2);
    live(&t, 300);
    assert_true(t.core.sleeps);
    live(&t, 20000);
    assert_true(t.core.sleeps);
    assert_true(fabs(t.core.share - 0.5) <
                0.02); /* the share is still known, although the thread uses only 0.2 of the core */

    t = begin(0.5, 1);
    live(&t, 20000);
    assert_false(t.core.sleeps);

    int slept = 0, steps = 0; /* the thread waits for messages at times, but wants 0.7 of the core, which is
                                 more than its share of 0.5 */
    for (t = begin(0.5, 0.7); steps < 2000; steps++) {
        live(&t, STEP_MS);
        slept += t.core.sleeps;
    }
    assert_true(slept > 0 && slept < steps / 4);
}

/* A thread that stops sleeping, because it has no slack, must not sleep again for some time. If it has almost
 * no work then, it must sleep before that time is over. */
static void a_thread_without_work_sleeps_soon(void **state) {
    (void)state;
    thread t = begin(0.5, 1);
    t.wanted = 0.7;
    live(&t, 5000);
    while (t.core.sleeps || t.core.spins_until_s < t.now.now_s + 1)
        live(&t, STEP_MS);
    t.wanted = 0.02;
    live(&t, 2 * STEP_MS);
    assert_true(t.core.spins_until_s > t.now.now_s);
    assert_true(t.core.sleeps);
}

static void a_core_left_by_others_is_ones_own_again(void **state) {
    (void)state;
    thread t = begin(0.5, 0.3);
    for (int turn = 0; turn < 5; turn++) {
        t.part = 0.5;
        live(&t, 2000);
        assert_int_equal(t.core.mode, KL_CORE_SHARED);
        t.part = 1;
        live(&t, 500);
        assert_int_equal(t.core.mode, KL_CORE_OWN);
        assert_true(t.core.share == 1);
        live(&t, 1500);
    }
}

/* If a shared core is idle now and then, the share must be measured again less and less often. */
static void a_core_that_is_idle_now_and_then_is_watched_ever_less(void **state) {
    (void)state;
    thread t = begin(0.5, 0.3);
    int watched = 0, steps = 3000;
    for (int i = 0; i < steps; i++) {
        t.now.idle_s += 0.3 * STEP_MS * 1e-3;
        live(&t, STEP_MS);
        watched += t.core.mode == KL_CORE_WATCHED;
    }
    assert_true(watched < steps / 20);
}

/* If the system counts no idle time, the share must be measured again after a fixed time. */
static void a_core_of_which_nothing_is_told_is_watched_again(void **state) {
    (void)state;
    thread t = begin(0.5, 0.3);
    t.now.idle_unknown = true;
    live(&t, 2000);
    assert_int_equal(t.core.mode, KL_CORE_SHARED);
    t.part = 1;
    live(&t, 10000);
    assert_int_equal(t.core.mode, KL_CORE_OWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_of_ones_own_is_known),
        cmocka_unit_test(a_core_that_is_disturbed_for_moments_stays_ones_own),
        cmocka_unit_test(the_share_is_what_a_thread_gets_that_wants_all),
        cmocka_unit_test(who_has_slack_sleeps),
        cmocka_unit_test(a_thread_without_work_sleeps_soon),
        cmocka_unit_test(a_core_left_by_others_is_ones_own_again),
        cmocka_unit_test(a_core_of_which_nothing_is_told_is_watched_again),
        cmocka_unit_test(a_core_that_is_idle_now_and_then_is_watched_ever_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
