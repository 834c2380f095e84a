/* Compare room model's formulas for several rounds with runs simulated message by message. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "model/model.h"
#include "play/play.h"

enum { PARTS_MAX = 4096 };
static const double LATENCY_S = 50e-6, ANSWER_S = 5e-6, BYTES_PER_S = 125e6, TASK_S = 1e-3;
static const double TASK_BYTES = 100, RESULT_BYTES = 100;

/* Deals each worker its part of every round, in proportion to its speed. */
typedef struct rounds_dealer {
    const kl_rounds *rounds;
    const kl_cluster *cluster;
    double speed;
    uint64_t left, round_left;
    size_t round;
} rounds_dealer;

static void begin_round(rounds_dealer *d) {
    while (d->round_left == 0 && d->left > 0) {
        bool last = d->round + 1 >= d->rounds->count;
        double tasks = round(d->rounds->part[last ? d->rounds->count - 1 : d->round] * d->rounds->tasks);
        d->round_left = last || tasks > (double)d->left ? d->left : (uint64_t)tasks;
        d->round++;
    }
}

static kilter_status deal(void *self, uint32_t worker, bool again, double now_s, uint64_t *count) {
    (void)again;
    (void)now_s;
    rounds_dealer *d = self;
    if (d->round_left == 0)
        begin_round(d);
    size_t at = d->round < d->rounds->count ? d->round : d->rounds->count;
    const kl_host_group *groups = d->cluster->groups; /* two */
    double part = d->rounds->part[at - 1] * groups[worker >= groups[0].count].host.speed / d->speed;
    uint64_t tasks = (uint64_t)fmax(1, round(part * d->rounds->tasks));
    *count = tasks < d->round_left ? tasks : d->round_left;
    d->round_left -= *count;
    d->left -= *count;
    return KILTER_OK;
}

static void dealt(void *self, const kl_play_chunk *chunk) {
    (void)self;
    (void)chunk;
}

static void reported(void *self, const kl_play_segment *segment, double now_s) {
    (void)self;
    (void)segment;
    (void)now_s;
}

/* uniform, with the given σ/μ up to 1/√3 */
static double task_s(void *self, uint64_t run, uint64_t index) {
    double cv = *(double *)self, random = (double)(kl_mix64(index ^ run << 40) >> 11) * 0x1p-53;
    return TASK_S * (1 + cv * sqrt(12) * (random - 0.5));
}

static double played_s(const kl_cluster *cluster, const kl_rounds *rounds, double speed, double cv,
                       double *work_s) {
    enum { TIMES = 5 };
    double sum_s = 0;
    kilter_error error;
    kl_play *play = kl_play_new(cluster);
    assert_non_null(play);
    *work_s = 0;
    for (uint64_t run = 0; run < TIMES; run++) {
        rounds_dealer d = {
            .rounds = rounds, .cluster = cluster, .speed = speed, .left = (uint64_t)rounds->tasks};
        kl_play_run r = {.run = run,
                         .tasks = d.left,
                         .task_s = task_s,
                         .task_self = &cv,
                         .task_bytes = TASK_BYTES,
                         .result_bytes = RESULT_BYTES,
                         .answer_s = ANSWER_S,
                         .look_s = ANSWER_S,
                         .lead_s = 4 * LATENCY_S};
        kl_play_dealer dealer = {.self = &d, .deal = deal, .dealt = dealt, .reported = reported};
        kl_play_outcome outcome;
        if (kl_play_run_out(play, &r, &dealer, &outcome, &error) != KILTER_OK)
            fail_msg("%s", error.text);
        sum_s += outcome.elapsed_s / TIMES;
        *work_s += outcome.work_s / TIMES;
    }
    kl_play_free(play);
    return sum_s;
}

static double error_of(uint32_t workers, double slow, double cv, size_t equal_parts) {
    kl_host_group groups[] = {{workers - workers / 2, {.speed = 1}}, {workers / 2, {.speed = slow}}};
    kl_cluster cluster = {.groups = groups,
                          .group_count = workers > 1 ? 2 : 1,
                          .workers = workers,
                          .master_apart = true,
                          .master = {.speed = 1},
                          .latency_s = LATENCY_S / 2, /* a message passes two links */
                          .bytes_per_s = BYTES_PER_S};
    double speed = groups[0].count + slow * groups[1].count, tasks = 200.0 * workers, part[PARTS_MAX], work_s;
    kl_farm_model m = {.message = {LATENCY_S, 1 / BYTES_PER_S},
                       .work_s = tasks * TASK_S,
                       .bytes = tasks * (TASK_BYTES + RESULT_BYTES),
                       .to_workers = TASK_BYTES / (TASK_BYTES + RESULT_BYTES)};
    kl_rounds rounds = {.part = part,
                        .count = equal_parts,
                        .tasks = tasks,
                        .task_sd_s = cv * TASK_S,
                        .answer_s = ANSWER_S,
                        .uneven = slow < 1};
    for (size_t i = 0; i < equal_parts; i++)
        part[i] = 1.0 / (double)equal_parts;
    if (equal_parts == 0)
        rounds.count = kl_model_daf_parts(&m, tasks, cv, workers, part, PARTS_MAX);
    double measured_s = played_s(&cluster, &rounds, speed, cv, &work_s);
    m.work_s = work_s;
    return kl_model_rounds_time_s(&m, workers, speed, &rounds) / measured_s - 1;
}

/* What docs/explanation/model.md states. */
static void model_of_rounds_against_the_played_run(void **state) {
    (void)state;
    static const uint32_t numbers[] = {1, 2, 8, 25, 50, 200};
    static const double spreads[] = {0, 0.1, 0.5};
    static const size_t parts[] = {0, 8, 40};
    double sum = 0, largest = 0;
    uint32_t count = 0;
    for (size_t n = 0; n < 6; n++)
        for (size_t c = 0; c < 3; c++)
            for (size_t p = 0; p < 3; p++)
                for (int slow = 0; slow < 2; slow++) {
                    double error = error_of(numbers[n], slow ? 0.25 : 1, spreads[c], parts[p]);
                    sum += fabs(error);
                    largest = fmax(largest, fabs(error));
                    count++;
                }
    print_message("%u cases: mean error %.2f %%, largest %.1f %%\n", count, 100 * sum / count, 100 * largest);
    assert_true(sum / count < 0.02);
    assert_true(largest < 0.11);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_of_rounds_against_the_played_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
