/* The event loop: every task once, its arithmetic where it can be done by hand, and what the farm's protocol
 * promises. */
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

/* Deals chunks of one size and watches. */
typedef struct dealing {
    uint64_t size, left, seed, next_lo, next_id;
    uint64_t reported, ended, deals;
    double now_s, busy_s[64], held_back;
    uint8_t *done; /* per task */
} dealing;

static kilter_status deal(void *self, uint32_t worker, bool again, double now_s, uint64_t *count) {
    dealing *d = self;
    (void)again;
    assert_true(now_s >= d->now_s);
    d->now_s = now_s;
    d->deals++;
    /* Now and then somebody is held back, but not worker 0. */
    bool refuse = d->held_back > 0 && worker > 0 && kl_mix64(d->seed + d->deals) % 100 < d->held_back * 100;
    *count = refuse ? 0 : d->size ? d->size : 1 + kl_mix64(d->seed + d->deals) % 20;
    return KILTER_OK;
}

static void dealt(void *self, const kl_play_chunk *chunk) {
    dealing *d = self;
    assert_int_equal(chunk->lo, d->next_lo);
    assert_true(chunk->count > 0 && chunk->count <= d->left);
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

static void ended(void *self, const kl_play_chunk *chunk) {
    dealing *d = self;
    d->ended++;
    assert_true(chunk->dealt_s <= chunk->began_s && chunk->began_s <= chunk->ended_s);
    for (uint64_t i = chunk->lo; d->done && i < chunk->lo + chunk->count; i++)
        assert_int_equal(d->done[i]++, 0);
}

static kl_play_dealer dealer_of(dealing *d) {
    return (kl_play_dealer){.self = d, .deal = deal, .dealt = dealt, .reported = reported, .ended = ended};
}

static double uneven(void *self, uint64_t run, uint64_t i) {
    return *(double *)self * (0.5 + (double)(kl_mix64(run * 7919 + i) % 1000) / 1000);
}

static void every_task_is_done_once(void **state) {
    (void)state;
    kl_host_group groups[] = {{1, {.speed = 0.5}},
                              {6, {.speed = 1}},
                              {1, {1, {2, {0, 0.01}, {1, 0.2}, 0.02}}},
                              {2, {4, {1, {0.05}, {1e-3}, 0}}}};
    kl_cluster c = {groups, 4, 10, .latency_s = 50e-6, .bytes_per_s = 125e6};
    for (uint64_t seed = 0; seed < 40; seed++) {
        c.master_apart = seed % 2;
        c.master.speed = 1;
        kl_play *play = kl_play_new(&c);
        assert_non_null(play);
        double mean_s = seed % 4 ? 1e-3 : 1e-6;
        for (uint64_t n = 0; n < 4; n++) {
            uint64_t tasks = n == 0 ? 0 : n == 1 ? 1 : seed * 37 + n * 300;
            dealing d = {.size = seed % 3, .left = tasks, .seed = seed, .held_back = seed % 5 * 0.2};
            d.done = calloc(tasks + 1, 1);
            kl_play_run run = {.run = n, .tasks = tasks, .answer_s = 10e-6, .look_s = 1e-6, .lead_s = 1e-3};
            run.begins_s = d.now_s = 0.013 * (double)n;
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
            assert_int_equal(d.ended, out.chunks);
            for (uint64_t i = 0; i < tasks; i++)
                assert_int_equal(d.done[i], 1);
            double bound_s = kl_cluster_bound_s(&c, run.begins_s, out.work_s);
            assert_true(out.elapsed_s >= bound_s * (1 - 1e-9));
            free(d.done);
        }
        kl_play_free(play);
    }
}

/* One worker, one chunk: out, work, back. */
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
    /* What was done before the last task went ahead. */
    back_s -= 500 * 9 * 1e-6;
    assert_true(fabs(out.elapsed_s - (there_s + work_s + back_s + master_s)) < 1e-9);
    assert_int_equal(out.chunks, 1);
    assert_int_equal(out.messages, 3); /* after 0.1 s, asking, and the last result */
    kl_play_free(play);
}

/* Four workers, one chunk each, as (7) has it: messages start one after the other at the master, the last
 * worker ends last, and its result takes a start of its own. */
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
        /* 20 ms a message and direction: out at 1 + 20 i ms; the first result is there 50 + 1 ms later. Where
         * both directions share the link it then waits for the last chunk on its way out. */
        double last_s = half ? 81e-3 + 4 * 20e-3 : 81e-3 + 51e-3 + 20e-3;
        if (fabs(out.elapsed_s - last_s) > 2e-3)
            fail_msg("%s: %.4f s, not %.4f", half ? "half" : "full", out.elapsed_s, last_s);
        kl_play_free(play);
    }
}

/* Two of four chunks of the master's work fall into a worker's task on its host: it ends so much later. */
static void a_master_on_a_workers_host_takes_its_time(void **state) {
    (void)state;
    kl_host_group groups[] = {{2, {.speed = 1}}};
    kl_cluster c = {groups, 1, 2, .latency_s = 0, .bytes_per_s = INFINITY};
    dealing d = {.size = 1, .left = 3};
    kl_play_run run = {.tasks = 3, .even_s = 1, .answer_s = 0.01};
    kl_play *play = kl_play_new(&c);
    kl_play_dealer dealer = dealer_of(&d);
    kl_play_outcome out;
    assert_int_equal(kl_play_run_out(play, &run, &dealer, &out, NULL), KILTER_OK);
    assert_true(d.busy_s[0] > 1.01 && d.busy_s[0] < 2.2);
    assert_true(fabs(d.busy_s[0] + d.busy_s[1] - 3) < 0.2);
    assert_true(fabs(d.busy_s[1] - 1) < 1e-9 || fabs(d.busy_s[1] - 2) < 1e-9);
    kl_play_free(play);
}

static double constant(void *self, uint64_t run, uint64_t i) {
    (void)run, (void)i;
    return *(double *)self;
}

/* The same tasks with a function that gives each its time, and without. */
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
    assert_non_null(strstr(error.text, "5 of them not done"));
    dealer.deal = deal_fails;
    assert_int_equal(kl_play_run_out(play, &run, &dealer, &out, &error), KILTER_ERR_MEMORY);
    dealer.deal = deal; /* and it can be used again */
    assert_int_equal(kl_play_run_out(play, &run, &dealer, &out, &error), KILTER_OK);
    kl_play_free(play);
    kl_play_free(NULL);
}

/* --- what ends late --- */

/* Takes back and copies at random, and keeps count of what became of each task. */
typedef struct rescuing {
    uint64_t seed, draws, left, next_lo, counted, recalled, workers;
    uint8_t *dealt, *copied, *done;
} rescuing;

enum { MOST_RECALLS = 2 };

static uint64_t draw(rescuing *r, uint64_t below) {
    return kl_mix64(r->seed * 0x10001 + r->draws++) % below;
}

static kilter_status deal_some(void *self, uint32_t worker, bool again, double now_s, uint64_t *count) {
    (void)worker, (void)again, (void)now_s;
    *count = 1 + draw(self, 30);
    return KILTER_OK;
}

static void note_dealt(void *self, const kl_play_chunk *chunk) {
    rescuing *r = self;
    for (uint64_t i = chunk->lo; i < chunk->lo + chunk->count; i++)
        assert_true(chunk->copy ? ++r->copied[i] == 1 : ++r->dealt[i] <= 1 + MOST_RECALLS);
    r->left -= chunk->copy ? 0 : chunk->count;
}

static void note_reported(void *self, const kl_play_segment *s, double now_s) {
    (void)self;
    assert_true(s->task_s.count > 0 && s->ended_s <= now_s);
}

static void note_ended(void *self, const kl_play_chunk *chunk) {
    rescuing *r = self;
    assert_true(chunk->counted <= chunk->done && chunk->done <= chunk->count);
    r->counted += chunk->counted;
    for (uint64_t i = chunk->lo; i < chunk->lo + chunk->done; i++)
        r->done[i]++;
}

static void note_returned(void *self, uint32_t worker, uint64_t tasks, uint64_t left) {
    rescuing *r = self;
    assert_true(worker < r->workers && left <= tasks);
    r->left += left;
    r->recalled += tasks;
}

static void rescue_at_random(void *self, const kl_play *play, double empty_s, double now_s,
                             kl_play_rescue *rescue) {
    rescuing *r = self;
    kl_held held;
    uint32_t from = (uint32_t)draw(r, r->workers), to = (uint32_t)draw(r, r->workers);
    kl_play_held(play, from, &held);
    assert_true(empty_s <= now_s && r->left == 0 && kl_play_waiting(play) > 0);
    assert_true(held.kept <= held.tasks || held.tasks == 0);
    *rescue = (kl_play_rescue){.pause_s = 1e-3, .from = from, .to = to};
    if (held.tasks > 0 && draw(r, 2)) {
        rescue->kind = KL_PLAY_RECALL;
        rescue->tasks = held.kept + draw(r, held.tasks);
    } else if (held.tasks > 0 && from != to && kl_play_waits(play, to)) {
        rescue->kind = KL_PLAY_COPY;
        rescue->tasks = 1 + draw(r, held.tasks);
    }
}

static void tasks_taken_back_and_done_twice_count_once(void **state) {
    (void)state;
    kl_host_group groups[] = {{3, {.speed = 1}},
                              {2, {1, {1, {0.02}, {1e-3}, 0}}},
                              {1, {1, {2, {0.02, 0.3}, {1e-9, 1}, 0}}},
                              {1, {.speed = 0.1}}};
    kl_cluster c = {groups, 4, 7, .master = {.speed = 1}, .latency_s = 50e-6, .bytes_per_s = 125e6};
    uint64_t recalls = 0, copies = 0, twice = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        c.master_apart = seed % 2;
        double mean_s = 1e-3;
        kl_play *play = kl_play_new(&c);
        kl_play_dealer dealer = {.deal = deal_some,
                                 .dealt = note_dealt,
                                 .reported = note_reported,
                                 .ended = note_ended,
                                 .rescue = rescue_at_random,
                                 .recalls = MOST_RECALLS,
                                 .returned = note_returned};
        double begins_s = 0;
        for (uint64_t n = 0; n < 3; n++) { /* workers may still be at tasks of the run before */
            uint64_t tasks = 20 + kl_mix64(seed * 3 + n) % 400;
            rescuing r = {.seed = seed * 3 + n, .left = tasks, .workers = c.workers};
            r.dealt = calloc(3 * tasks, 1);
            r.copied = r.dealt + tasks;
            r.done = r.copied + tasks;
            dealer.self = &r;
            kl_play_run run = {.run = n,
                               .tasks = tasks,
                               .begins_s = begins_s,
                               .answer_s = 10e-6,
                               .look_s = 1e-6,
                               .lead_s = 1e-3,
                               .even_s = mean_s,
                               .task_s = seed % 3 ? uneven : NULL,
                               .task_self = &mean_s};
            kl_play_outcome out;
            kilter_error error = {.text = ""};
            if (kl_play_run_out(play, &run, &dealer, &out, &error) != KILTER_OK)
                fail_msg("seed %d: %s", (int)seed, error.text);
            double work_s = 0;
            for (uint64_t i = 0; i < tasks; i++) {
                assert_true(r.done[i] >= 1 && r.done[i] <= 1 + r.copied[i]);
                twice += r.done[i] > 1;
                work_s += run.task_s ? uneven(&mean_s, n, i) : mean_s;
            }
            assert_int_equal(r.counted, tasks);
            assert_true(fabs(out.work_s - work_s) < 1e-9 * work_s);
            recalls += r.recalled;
            copies += out.copies;
            begins_s += out.elapsed_s;
            free(r.dealt);
        }
        kl_play_free(play);
    }
    assert_true(recalls > 1000 && copies > 1000 && twice > 100); /* else it shows nothing */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_done_once),
        cmocka_unit_test(one_chunk_takes_its_messages_and_its_work),
        cmocka_unit_test(messages_start_one_after_the_other),
        cmocka_unit_test(a_master_on_a_workers_host_takes_its_time),
        cmocka_unit_test(even_tasks_are_played_faster_not_differently),
        cmocka_unit_test(a_dealer_that_gives_nothing_ends_the_run),
        cmocka_unit_test(tasks_taken_back_and_done_twice_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
