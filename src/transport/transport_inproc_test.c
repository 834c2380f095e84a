#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/transport.h"
#include "transport/transport_suite.h"

/* --- threads --- */

static void run_case(const suite_case *its_case, unsigned count, bool master_last) {
    kl_inproc *hub;
    kl_transport *master, *workers[SUITE_PEERS_MAX];
    CHECK_OK(kl_inproc_new(NULL, &hub, error));
    if (!master_last)
        CHECK_OK(kl_inproc_listen(hub, &master, error));
    for (unsigned i = 0; i < count; i++)
        CHECK_OK(kl_inproc_join(hub, NULL, &workers[i], error));
    if (master_last)
        CHECK_OK(kl_inproc_listen(hub, &master, error));
    suite_run_threads(its_case, master, workers, count);
    kl_inproc_free(hub);
}

static void threads_keep_every_promise(void **state) {
    (void)state;
    for (unsigned c = 0; c < SUITE_CASES; c++)
        for (unsigned count = 0; count <= 3; count++)
            run_case(&suite_cases[c], count, count % 2);
}

static void many_threads_keep_them_too(void **state) {
    (void)state;
    for (unsigned c = 1; c < SUITE_CASES; c++)
        run_case(&suite_cases[c], 24, true);
}

static void a_message_outlives_its_endpoint(void **state) {
    (void)state;
    kl_inproc *hub;
    kl_transport *master, *worker;
    CHECK_OK(kl_inproc_new(NULL, &hub, error));
    CHECK_OK(kl_inproc_listen(hub, &master, error));
    CHECK_OK(kl_inproc_join(hub, NULL, &worker, error));
    suite_expect(master, KL_EVENT_JOINED, 2);
    suite_expect(worker, KL_EVENT_JOINED, 1);
    suite_send(worker, 1, 9, 5000);
    kl_event event = suite_next(master);
    kl_transport_close(worker);
    kl_transport_close(master);
    kl_inproc_free(hub);
    suite_check_message(&event.message, 9, 5000);
    kl_message_release(&event.message);
    kl_message_release(&event.message);
}

static void a_hub_has_one_master(void **state) {
    (void)state;
    kl_inproc *hub;
    kl_transport *master, *second = NULL;
    CHECK_OK(kl_inproc_new(NULL, &hub, error));
    CHECK_OK(kl_inproc_listen(hub, &master, error));
    kilter_error error;
    assert_int_equal(kl_inproc_listen(hub, &second, &error), KILTER_ERR_USAGE);
    assert_null(second);
    kl_transport_close(master);
    assert_int_equal(kl_inproc_listen(hub, &second, &error), KILTER_ERR_USAGE);
    kl_transport_close(NULL);
    kl_inproc_free(hub);
    kl_inproc_free(NULL);
}

static void who_joins_after_the_master_has_closed_waits(void **state) {
    (void)state;
    kl_inproc *hub;
    kl_transport *master, *worker;
    CHECK_OK(kl_inproc_new(NULL, &hub, error));
    CHECK_OK(kl_inproc_listen(hub, &master, error));
    kl_transport_close(master);
    CHECK_OK(kl_inproc_join(hub, NULL, &worker, error));
    suite_expect_silence(worker);
    suite_expect_gone(worker, 1);
    kl_transport_close(worker);
    kl_inproc_free(hub);
}

/* --- steps --- */

enum { ENDPOINTS = 8 };

typedef struct world {
    double now_s[ENDPOINTS + 1];
    kl_inproc_stepped timing;
    kl_inproc *hub;
    kl_transport *at[ENDPOINTS + 1]; /* the endpoints, indexed by their number; [0] is unused */
} world;

static double clock_of(void *clock, kl_peer endpoint) {
    return ((world *)clock)->now_s[endpoint];
}

static void make_world(world *w, unsigned workers, double latency_s, double per_byte_s) {
    *w = (world){0};
    w->timing =
        (kl_inproc_stepped){.latency_s = latency_s, .per_byte_s = per_byte_s, .now_s = clock_of, .clock = w};
    CHECK_OK(kl_inproc_new(&w->timing, &w->hub, error));
    CHECK_OK(kl_inproc_listen(w->hub, &w->at[1], error));
    for (unsigned i = 0; i < workers; i++) {
        kl_peer number = 0;
        CHECK_OK(kl_inproc_join(w->hub, &number, &w->at[2 + i], error));
        assert_int_equal(number, 2 + i);
    }
}

static void free_world(world *w) {
    for (unsigned i = 1; i <= ENDPOINTS; i++)
        kl_transport_close(w->at[i]);
    kl_inproc_free(w->hub);
}

static void set_all_clocks(world *w, double now_s) {
    for (unsigned i = 1; i <= ENDPOINTS; i++)
        w->now_s[i] = now_s;
}

/* Let the master and the workers get JOINED, with all clocks at `now_s`. */
static void let_them_meet(world *w, unsigned workers, double now_s) {
    set_all_clocks(w, now_s);
    for (unsigned i = 0; i < workers; i++) {
        suite_expect(w->at[1], KL_EVENT_JOINED, 2 + i);
        suite_expect(w->at[2 + i], KL_EVENT_JOINED, 1);
    }
}

static kl_event_kind kind_at(world *w, kl_peer endpoint) {
    kl_event event;
    /* poll with the timeout −1 (for ever), although a stepped hub never waits */
    CHECK_OK(kl_poll(w->at[endpoint], -1, &event, error));
    kl_message_release(&event.message);
    return event.kind;
}

static void a_step_sees_a_message_when_it_is_due(void **state) {
    (void)state;
    world w;
    make_world(&w, 1, 0.5, 0.25);
    let_them_meet(&w, 1, 10);
    assert_true(kl_inproc_next_s(w.hub, 1) == HUGE_VAL);
    suite_send(w.at[2], 1, 1, 6); /* this message is due at the time 10 + 0.5 + 6·0.25 */
    assert_true(kl_inproc_next_s(w.hub, 1) == 12);
    w.now_s[1] = 11.999;
    assert_int_equal(kind_at(&w, 1), KL_EVENT_NONE);
    w.now_s[1] = 12;
    suite_expect_message(w.at[1], 2, 1, 6);
    assert_int_equal(kind_at(&w, 1), KL_EVENT_NONE);
    assert_true(kl_inproc_next_s(w.hub, 1) == HUGE_VAL);
    assert_true(kl_inproc_next_s(w.hub, 99) == HUGE_VAL);
    free_world(&w);
}

static void order_between_two_is_kept_though_a_short_one_is_faster(void **state) {
    (void)state;
    world w;
    make_world(&w, 2, 1, 1);
    let_them_meet(&w, 2, 10);
    suite_send(w.at[2], 1, 1, 20); /* this message is due at time 31 */
    /* alone, this message would be due at time 11, but it must not overtake the message before it */
    suite_send(w.at[2], 1, 2, 0);
    suite_send(w.at[3], 1, 3,
               5); /* this message is due at time 16; it may overtake messages of another peer */
    assert_true(kl_inproc_next_s(w.hub, 1) == 16);
    w.now_s[1] = 30;
    suite_expect_message(w.at[1], 3, 3, 5);
    assert_int_equal(kind_at(&w, 1), KL_EVENT_NONE);
    w.now_s[1] = 31;
    suite_expect_message(w.at[1], 2, 1, 20);
    suite_expect_message(w.at[1], 2, 2, 0);
    free_world(&w);
}

static void ties_come_in_the_order_of_sending(void **state) {
    (void)state;
    world w;
    make_world(&w, 5, 1, 0);
    let_them_meet(&w, 5, 10);
    const kl_peer order[] = {4, 2, 6, 3, 5, 2, 4};
    for (int i = 0; i < 7; i++)
        suite_send(w.at[order[i]], 1, i, 3);
    w.now_s[1] = 11;
    for (int i = 0; i < 7; i++)
        suite_expect_message(w.at[1], order[i], i, 3);
    free_world(&w);
}

/* Send and receive messages in a random order, and return a hash of the events. Each event must come at its
 * time, and the messages of a worker must come in order. */
static uint64_t play(uint64_t seed) {
    world w;
    make_world(&w, 4, 0.01, 1e-4);
    let_them_meet(&w, 4, 1);
    uint64_t digest = seed;
    unsigned sent[ENDPOINTS + 1] = {0}, received[ENDPOINTS + 1] = {0};
    for (uint64_t step = 0; step < 2000; step++) {
        uint64_t draw = kl_mix64(seed * 100000 + step);
        kl_peer worker = 2 + draw % 4;
        w.now_s[worker] += 1e-3 * (double)(draw >> 8 & 15);
        suite_send(w.at[worker], 1, sent[worker], draw >> 16 & 255);
        sent[worker]++;
        w.now_s[1] += 1e-3 * (double)(draw >> 32 & 3);
        double due_s = kl_inproc_next_s(w.hub, 1);
        kl_event event;
        CHECK_OK(kl_poll(w.at[1], 0, &event, error));
        assert_int_equal(event.kind == KL_EVENT_MESSAGE, due_s <= w.now_s[1]);
        if (event.kind == KL_EVENT_MESSAGE) {
            suite_check_message(&event.message, received[event.peer]++, event.message.size);
            digest = kl_mix64(digest ^ event.peer << 32 ^ event.message.size);
            kl_message_release(&event.message);
        }
    }
    free_world(&w);
    return digest;
}

static void steps_repeat(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        assert_true(play(seed) == play(seed));
    assert_true(play(1) != play(2));
}

static void joining_and_leaving_take_time_as_well(void **state) {
    (void)state;
    world w;
    make_world(&w, 1, 2, 0.5);
    assert_int_equal(kind_at(&w, 1), KL_EVENT_NONE);
    let_them_meet(&w, 1, 2);
    suite_send(w.at[2], 1, 1, 10); /* this message is due at time 9 */
    /* alone, LEFT would be due at time 4, but it must come after the message */
    kl_transport_close(w.at[2]);
    w.at[2] = NULL;
    w.now_s[1] = 8;
    assert_int_equal(kind_at(&w, 1), KL_EVENT_NONE);
    /* the master does not see yet that the worker has closed, so this message is accepted and then lost */
    suite_send(w.at[1], 2, 1, 1);
    w.now_s[1] = 9;
    suite_expect_message(w.at[1], 2, 1, 10);
    suite_expect(w.at[1], KL_EVENT_LEFT, 2);
    suite_expect_gone(w.at[1], 2);
    assert_int_equal(kind_at(&w, 1), KL_EVENT_NONE);
    free_world(&w);
}

static void a_step_drops(void **state) {
    (void)state;
    world w;
    make_world(&w, 2, 1, 0);
    let_them_meet(&w, 2, 1);
    suite_send(w.at[2], 1, 1, 4);
    suite_send(w.at[3], 1, 2, 4);
    suite_send(w.at[1], 2, 3, 4);
    kl_drop(w.at[1], 2);
    suite_expect_gone(w.at[1], 2);
    set_all_clocks(&w, 5);
    suite_expect_message(w.at[1], 3, 2, 4);
    assert_int_equal(kind_at(&w, 1), KL_EVENT_NONE);
    suite_expect_message(w.at[2], 1, 3, 4);
    suite_expect(w.at[2], KL_EVENT_LEFT, 1);
    suite_expect_gone(w.at[2], 1);
    assert_int_equal(kind_at(&w, 2), KL_EVENT_NONE);
    free_world(&w);
}

static void a_step_is_woken_once(void **state) {
    (void)state;
    world w;
    make_world(&w, 1, 0, 0);
    kl_transport_wake(w.at[1]);
    assert_int_equal(kind_at(&w, 1), KL_EVENT_NONE);
    assert_int_equal(kind_at(&w, 1), KL_EVENT_JOINED);
    free_world(&w);
}

static void all_sizes_go_through_steps(void **state) {
    (void)state;
    world w;
    make_world(&w, 1, 0, 0);
    let_them_meet(&w, 1, 0);
    for (unsigned i = 0; i < SUITE_SIZES; i++)
        suite_send(w.at[1], 2, i, suite_sizes[i]);
    for (unsigned i = 0; i < SUITE_SIZES; i++)
        suite_expect_message(w.at[2], 1, i, suite_sizes[i]);
    free_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_keep_every_promise),
        cmocka_unit_test(many_threads_keep_them_too),
        cmocka_unit_test(a_message_outlives_its_endpoint),
        cmocka_unit_test(a_hub_has_one_master),
        cmocka_unit_test(who_joins_after_the_master_has_closed_waits),
        cmocka_unit_test(a_step_sees_a_message_when_it_is_due),
        cmocka_unit_test(order_between_two_is_kept_though_a_short_one_is_faster),
        cmocka_unit_test(ties_come_in_the_order_of_sending),
        cmocka_unit_test(steps_repeat),
        cmocka_unit_test(joining_and_leaving_take_time_as_well),
        cmocka_unit_test(a_step_drops),
        cmocka_unit_test(a_step_is_woken_once),
        cmocka_unit_test(all_sizes_go_through_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
