/* The event loop: every task is done once, times can be checked by hand, and the farm's protocol is kept. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "play/play.h"

/* Deals chunks of one size and checks them. */
typedef struct dealing {
    uint64_t size, left, seed, next_lo, next_id;
    uint64_t reported, deals;
    double now_s, busy_s[64], held_back;
    uint8_t *done; /* by task */
} dealing;

static kilter_status deal(void *self, uint32_t worker, bool again, double now_s, uint64_t *count) {
    dealing *d = self;
    (void)again;
    assert_true(now_s >= d->now_s);
    d->now_s = now_s;
    d->deals++;
    /* hold a worker back now and then, but not worker 0 */
    bool refuse = d->held_back > 0 && worker > 0 && kl_mix64(d->seed + d->deals) % 100 < d->held_back * 100;
    *count = refuse ? 0 : d->size ? d->size : 1 + kl_mix64(d->seed + d->deals) % 20;
    return KILTER_OK;
}

static void dealt(void *self, const kl_play_chunk *chunk) {
    dealing *d = self;
    assert_int_equal(chunk->lo, d->next_lo);
    assert_true(chunk->count > 0 && chunk->count <= d->left);
    for (uint64_t i = chunk->lo; d->done && i < chunk->lo + chunk->count; i++)
        assert_int_equal(d->done[i]++, 0);
    d->next_lo += chunk->count;
    d->left -= chunk->count;
}

static void reported(void *self, const kl_play_segment *s, double now_s) {
    dealing *d = self;
    assert_true(s->task_s.count > 0 && s->began_s <= s->ended_s && s->ended_s <= now_s);
    assert_true(s->busy_s <= s->ended_s - s->began_s + 1e-12);
    d->busy_s[s->worker % 64] += s->busy_s;
    d->reported += s->task_s.count;
}

static kl_play_dealer dealer_of(dealing *d) {
    return (kl_play_dealer){.self = d, .deal = deal, .dealt = dealt, .reported = reported};
}

static double uneven(void *self, uint64_t run, uint64_t i) {
    return *(double *)self * (0.5 + (double)(kl_mix64(run * 7919 + i) % 1000) / 1000);
}

static void every_task_is_done_once(void **state) {
    (void)state;
    kl_host_group groups[] = {{1, {.speed = 0.5}}, {6, {.speed = 1}}, {3, {.speed = 4}}};
    kl_cluster c = {groups, 3, 10, .latency_s = 50e-6, .bytes_per_s = 125e6};
    for (uint64_t seed = 0; seed < 40; seed++) {
        c.master_apart = true;
        c.master.speed = 1;
        kl_play *play = kl_play_new(&c);
        assert_non_null(play);
        double mean_s = seed % 4 ? 1e-3 : 1e-6;
        for (uint64_t n = 0; n < 4; n++) {
            uint64_t tasks = n == 0 ? 0 : n == 1 ? 1 : seed * 37 + n * 300;
            dealing d = {.size = seed % 3, .left = tasks, .seed = seed, .held_back = seed % 5 * 0.2};
            d.done = calloc(tasks + 1, 1);
            kl_play_run run = {.run = n, .tasks = tasks, .answer_s = 10e-6, .look_s = 1e-6, .lead_s = 1e-3};
            run.task_bytes = seed % 7 * 1000.0;
            run.result_bytes = seed % 6 * 30000.0;
            run.even_s = mean_s;
            run.task_s = seed % 3 ? uneven : NULL;
            run.task_self = &mean_s;
            kl_play_outcome out;
            kilter_error error = {.text = ""};
            kl_play_dealer dealer = dealer_of(&d);
            if (kl_play_run_out(play, &run, &dealer, &out, &error) != KILTER_OK)
                fail_msg("%s", error.text);
            assert_int_equal(d.reported, tasks);
            for (uint64_t i = 0; i < tasks; i++)
                assert_int_equal(d.done[i], 1);
            double bound_s = kl_cluster_bound_s(&c, 0, out.work_s);
            assert_true(out.elapsed_s >= bound_s * (1 - 1e-9));
            free(d.done);
        }
        kl_play_free(play);
    }
}

/* One worker, one chunk: send tasks, work, send results. */
static void one_chunk_takes_its_messages_and_its_work(void **state) {
    (void)state;
    kl_host_group groups[] = {{1, {.speed = 0.5}}};
    kl_cluster c = {groups, 1, 1, true, .master = {.speed = 2}, .latency_s = 1e-3, .bytes_per_s = 1e6};
    dealing d = {.size = 10, .left = 10};
    kl_play_run run = {
        .tasks = 10, .even_s = 1e-2, .task_bytes = 1000, .result_bytes = 500, .answer_s = 1e-4};
    kl_play *play = kl_play_new(&c);
    kl_play_dealer dealer = dealer_of(&d);
    kl_play_outcome out;
    assert_int_equal(kl_play_run_out(play, &run, &dealer, &out, NULL), KILTER_OK);
    double there_s = 10064 * 1e-6 + 2e-3, work_s = 0.2, back_s = 2e-3 + (64 + 500 * 10) * 1e-6,
           master_s = 5e-5;
    /* results before the last task were sent ahead */
    back_s -= 500 * 9 * 1e-6;
    assert_true(fabs(out.elapsed_s - (there_s + work_s + back_s + master_s)) < 1e-9);
    assert_int_equal(out.chunks, 1);
    assert_int_equal(out.messages, 3); /* after 0.1 s, the request, and the last result */
    kl_play_free(play);
}

/* Four workers with one chunk each, as in (7): the master starts messages one after the other, the last
 * worker ends last, and its result has a start-up time of its own. */
static void messages_start_one_after_the_other(void **state) {
    (void)state;
    kl_host_group groups[] = {{4, {.speed = 1}}};
    for (int half = 0; half <= 1; half++) {
        kl_cluster c = {groups, 1, 4, true, .master = {.speed = 1}, .bytes_per_s = 1e6, .half_duplex = half};
        dealing d = {.size = 1, .left = 4};
        kl_play_run run = {.tasks = 4,
                           .even_s = 0.05,
                           .startup_s = 1e-3,
                           .task_bytes = 20000 - 64,
                           .result_bytes = 20000 - 64};
        kl_play *play = kl_play_new(&c);
        kl_play_dealer dealer = dealer_of(&d);
        kl_play_outcome out;
        assert_int_equal(kl_play_run_out(play, &run, &dealer, &out, NULL), KILTER_OK);
        /* A message takes 20 ms in each direction: chunks leave at 1 + 20 i ms; the first result arrives 50 +
         * 1 ms later. If both directions share the link, it waits for the last chunk. */
        double last_s = half ? 81e-3 + 4 * 20e-3 : 81e-3 + 51e-3 + 20e-3;
        if (fabs(out.elapsed_s - last_s) > 2e-3)
            fail_msg("%s: %.4f s, not %.4f", half ? "half" : "full", out.elapsed_s, last_s);
        kl_play_free(play);
    }
}

static double constant(void *self, uint64_t run, uint64_t i) {
    (void)run, (void)i;
    return *(double *)self;
}

/* Give the same tasks by a function of their times, and as equal times. */
static void even_tasks_are_played_faster_not_differently(void **state) {
    (void)state;
    kl_host_group groups[] = {{3, {.speed = 1}}, {2, {.speed = 0.3}}};
    kl_cluster c = {groups, 2, 5, true, .master = {.speed = 1}, .latency_s = 50e-6, .bytes_per_s = 125e6};
    static const double sizes_s[] = {1e-5, 1e-3, 0.07, 2};
    for (int i = 0; i < 4; i++) {
        double elapsed_s[2];
        for (int k = 0; k < 2; k++) {
            double mean_s = sizes_s[i];
            dealing d = {.size = 25, .left = 1000};
            kl_play_run run = {.tasks = 1000, .even_s = mean_s, .answer_s = 1e-5, .lead_s = 1e-3};
            run.result_bytes = 100;
            run.task_s = k ? constant : NULL;
            run.task_self = &mean_s;
            kl_play *play = kl_play_new(&c);
            kl_play_dealer dealer = dealer_of(&d);
            kl_play_outcome out;
            assert_int_equal(kl_play_run_out(play, &run, &dealer, &out, NULL), KILTER_OK);
            elapsed_s[k] = out.elapsed_s;
            kl_play_free(play);
        }
        if (fabs(elapsed_s[0] / elapsed_s[1] - 1) > 0.005)
            fail_msg("tasks of %g s: %g and %g s", sizes_s[i], elapsed_s[0], elapsed_s[1]);
    }
}

static kilter_status deal_nothing(void *self, uint32_t worker, bool again, double now_s, uint64_t *count) {
    (void)self, (void)worker, (void)again, (void)now_s;
    *count = 0;
    return KILTER_OK;
}

static kilter_status deal_fails(void *self, uint32_t worker, bool again, double now_s, uint64_t *count) {
    (void)self, (void)worker, (void)again, (void)now_s, (void)count;
    return KILTER_ERR_MEMORY;
}

static void a_dealer_that_gives_nothing_ends_the_run(void **state) {
    (void)state;
    kl_host_group groups[] = {{3, {.speed = 1}}};
    kl_cluster c = {groups, 1, 3, .latency_s = 50e-6, .bytes_per_s = 125e6};
    kl_play *play = kl_play_new(&c);
    dealing d = {.left = 5};
    kl_play_dealer dealer = dealer_of(&d);
    kl_play_run run = {.tasks = 5, .even_s = 1};
    kl_play_outcome out;
    kilter_error error;
    dealer.deal = deal_nothing;
    assert_int_equal(kl_play_run_out(play, &run, &dealer, &out, &error), KILTER_ERR_RANGE);
    assert_non_null(strstr(error.text, "5 tasks not done"));
    dealer.deal = deal_fails;
    assert_int_equal(kl_play_run_out(play, &run, &dealer, &out, &error), KILTER_ERR_MEMORY);
    dealer.deal = deal; /* and the play can be used again */
    assert_int_equal(kl_play_run_out(play, &run, &dealer, &out, &error), KILTER_OK);
    kl_play_free(play);
    kl_play_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_done_once),
        cmocka_unit_test(one_chunk_takes_its_messages_and_its_work),
        cmocka_unit_test(messages_start_one_after_the_other),
        cmocka_unit_test(even_tasks_are_played_faster_not_differently),
        cmocka_unit_test(a_dealer_that_gives_nothing_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
