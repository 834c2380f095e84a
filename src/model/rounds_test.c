#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "model/model.h"

enum { WORKERS_MAX = 200, PARTS_MAX = 512 };

static bool near(double a, double b, double relative) {
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b));
}

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

/* ---- a simulation of work dealt in rounds, one chunk at a time ---- */

typedef struct played {
    const kl_farm_model *m;
    const kl_rounds *rounds;
    uint32_t workers;
    double speeds[WORKERS_MAX], speed;
    double asks_s[WORKERS_MAX], free_s[WORKERS_MAX];
    double master_s, end_s;
    uint64_t seed;
} played;

/* Draw the seconds of a chunk with `part` of the work. They are nearly normally distributed, as the sum of
 * the times of many tasks is. */
static double chunk_s(played *p, double part, uint32_t worker) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += random_01(p->seed++);
    double mean_s = p->m->work_s * part, sd_s = p->rounds->task_sd_s * sqrt(p->rounds->tasks * part);
    return fmax(mean_s + sd_s * (sum - 6), 0.1 * mean_s) / p->speeds[worker];
}

static uint32_t first_to_ask(const played *p) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < p->workers; i++)
        first = p->asks_s[i] < p->asks_s[first] ? i : first;
    return first;
}

/* Send `part` of the work to a worker, and set the time at which it asks for its next part. */
static void deal(played *p, uint32_t worker, double part) {
    double start_s = p->m->message.fixed_s, byte_s = p->m->message.per_unit_s, bytes = p->m->bytes * part;
    double wire_s = byte_s * p->m->to_workers * bytes;
    double from_s = fmax(p->master_s, p->asks_s[worker]);
    p->master_s = from_s + (p->m->synchronous ? start_s + wire_s : fmax(start_s, wire_s));
    double begins_s = fmax(from_s + start_s + wire_s, p->free_s[worker]);
    p->free_s[worker] = begins_s + chunk_s(p, part, worker);
    p->asks_s[worker] = fmax(begins_s, p->free_s[worker] - 2 * (start_s + wire_s)) + start_s;
    p->end_s = fmax(p->end_s, p->free_s[worker] + start_s + byte_s * (1 - p->m->to_workers) * bytes);
}

static double play_s(const kl_farm_model *m, uint32_t workers, double slow, const kl_rounds *rounds,
                     uint64_t seed) {
    played p = {.m = m, .rounds = rounds, .workers = workers, .seed = seed << 32};
    for (uint32_t i = 0; i < workers; i++)
        p.speed += p.speeds[i] = i % 2 ? slow : 1;
    for (size_t round = 0; round < rounds->count; round++)
        for (double left = rounds->part[round]; left > 1e-9 * rounds->part[round];) {
            uint32_t worker = first_to_ask(&p);
            double part = fmin(left, rounds->part[round] * p.speeds[worker] / p.speed);
            deal(&p, worker, part);
            left -= part;
        }
    return p.end_s + m->master_s;
}

/* ---- properties ---- */

static const uint32_t NUMBERS[] = {1, 2, 8, 25, 50, 200};
enum { NUMBER_COUNT = sizeof NUMBERS / sizeof *NUMBERS };

static kl_farm_model model_of(uint32_t workers, uint32_t messages) {
    static const struct {
        kl_linear message;
        double task_bytes;
    } costs[] = {{{50e-6, 8e-9}, 2000}, {{5e-6, 8e-9}, 20}, {{50e-6, 8e-9}, 13000}};
    return (kl_farm_model){.message = costs[messages].message,
                           .work_s = 0.2 * workers,
                           .bytes = costs[messages].task_bytes * 200 * workers,
                           .to_workers = 0.5};
}

static void one_round_of_equal_tasks_is_the_paper_s(void **state) {
    (void)state;
    const double whole[] = {1};
    kl_rounds rounds = {.part = whole, .count = 1, .tasks = 1000};
    for (uint32_t i = 0; i < NUMBER_COUNT; i++)
        for (uint32_t k = 0; k < 6; k++) {
            kl_farm_model m = model_of(NUMBERS[i], k / 2);
            m.synchronous = k % 2;
            m.master_s = 0.01;
            double speed = 0.7 * NUMBERS[i];
            assert_true(near(kl_model_rounds_time_s(&m, NUMBERS[i], speed, &rounds),
                             kl_model_time_with_s(&m, NUMBERS[i], speed), 1e-12));
        }
}

/* If workers and tasks are equal, workers stay in step, and the model must agree with the simulation. */
static void rounds_in_step_are_exact(void **state) {
    (void)state;
    double part[10];
    for (uint32_t i = 0; i < NUMBER_COUNT; i++)
        for (size_t count = 1; count <= 10; count++) {
            for (size_t k = 0; k < count; k++)
                part[k] = 1.0 / (double)count;
            kl_rounds rounds = {.part = part, .count = count, .tasks = 1e6};
            kl_farm_model m = model_of(NUMBERS[i], 1);
            if ((NUMBERS[i] - 1) * m.message.fixed_s < m.work_s / NUMBERS[i] / (double)count)
                assert_true(near(kl_model_rounds_time_s(&m, NUMBERS[i], NUMBERS[i], &rounds),
                                 play_s(&m, NUMBERS[i], 1, &rounds, 0), 1e-9));
        }
}

typedef struct errors {
    double sum, largest;
    uint32_t count;
} errors;

static void compare(const kl_farm_model *m, uint32_t workers, double slow, const kl_rounds *rounds,
                    errors *e) {
    enum { TIMES = 10 };
    double mean_s = 0, speed = 0;
    for (uint64_t i = 0; i < TIMES; i++)
        mean_s += play_s(m, workers, slow, rounds, i + 1) / TIMES;
    for (uint32_t i = 0; i < workers; i++)
        speed += i % 2 ? slow : 1;
    double error = fabs(kl_model_rounds_time_s(m, workers, speed, rounds) / mean_s - 1);
    e->sum += error;
    e->largest = fmax(e->largest, error);
    e->count++;
}

/* Compare the model with the simulation for the rounds of the policy DAF, and for 6, 11 and 16 equal rounds.
 */
static void compare_dealings(uint32_t workers, uint32_t messages, double cv, errors *e) {
    double part[PARTS_MAX];
    kl_farm_model m = model_of(workers, messages);
    kl_rounds rounds = {.part = part, .tasks = 200.0 * workers, .task_sd_s = cv * 1e-3};
    rounds.count = kl_model_daf_parts(&m, rounds.tasks, rounds.task_sd_s / 1e-3, workers, part, PARTS_MAX);
    for (size_t equal = 6; equal <= 21; equal += 5) {
        rounds.uneven = false;
        compare(&m, workers, 1, &rounds, e);
        rounds.uneven = true;
        compare(&m, workers, 0.25, &rounds, e);
        rounds.count = equal;
        for (size_t k = 0; k < equal; k++)
            part[k] = 1.0 / (double)equal;
    }
}

/* Check the errors of the model that docs/explanation/model.md states, for 200 tasks of 1 ms per worker. */
static void error_against_chunk_by_chunk(void **state) {
    (void)state;
    static const double cv[] = {0, 0.1, 0.3, 0.8};
    errors e = {0};
    for (uint32_t i = 0; i < NUMBER_COUNT; i++)
        for (uint32_t c = 0; c < 4; c++)
            for (uint32_t messages = 0; messages < 3; messages++)
                compare_dealings(NUMBERS[i], messages, cv[c], &e);
    print_message("%u cases: mean error of the model %.2f %%, largest %.1f %%\n", e.count,
                  100 * e.sum / e.count, 100 * e.largest);
    assert_true(e.sum / e.count < 0.02);
    assert_true(e.largest < 0.09);
}

static void daf_deals_everything(void **state) {
    (void)state;
    double part[PARTS_MAX];
    for (uint64_t seed = 0; seed < 2000; seed++) {
        kl_farm_model m = model_of(1 + (uint32_t)(kl_mix64(seed) % 300), (uint32_t)(seed % 3));
        uint32_t n = 1 + (uint32_t)(kl_mix64(seed + 1) % 300);
        double tasks = 1 + 1e5 * random_01(seed), sum = 0;
        size_t most = 1 + seed % PARTS_MAX;
        size_t count = kl_model_daf_parts(&m, tasks, 2e-3 * random_01(seed + 2) / 1e-3, n, part, most);
        assert_in_range(count, 1, most);
        for (size_t i = 0; i < count; i++) {
            assert_true(part[i] > 0);
            assert_true(count == 1 || i + 1 == most || part[i] * tasks >= n * (1 - 1e-9));
            sum += part[i];
        }
        assert_true(near(sum, 1, 1e-9));
    }
    kl_farm_model m = model_of(8, 1);
    /* by DAF's equation (1), the first round has all tasks, because equal tasks have σ = 0 */
    assert_int_equal(kl_model_daf_parts(&m, 1600, 0, 8, part, PARTS_MAX), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_round_of_equal_tasks_is_the_paper_s),
        cmocka_unit_test(rounds_in_step_are_exact),
        cmocka_unit_test(error_against_chunk_by_chunk),
        cmocka_unit_test(daf_deals_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
