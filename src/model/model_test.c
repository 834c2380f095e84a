#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "measure/crew_test_helper.h"
#include "model/model.h"

static double random_01(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

static bool near(double a, double b, double relative) {
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) + 1e-300;
}

/* Return a random number from `low` to `high` in which every order of magnitude is equally likely. Sometimes
 * it is 0. */
static double scale(uint64_t i, double low, double high) {
    return kl_mix64(i ^ 0xabcdef) % 8 == 0 ? 0 : low * pow(high / low, random_01(i));
}

static kl_farm_model random_model(uint64_t seed) {
    uint64_t at = seed * 8;
    return (kl_farm_model){
        .message = {.fixed_s = scale(at, 1e-6, 1e-1), .per_unit_s = scale(at + 1, 1e-10, 1e-5)},
        .work_s = scale(at + 2, 1e-3, 1e2),
        .bytes = scale(at + 3, 1, 1e8),
        .to_workers = kl_mix64(at + 4) % 4 == 0 ? (double)(kl_mix64(at + 4) >> 2 & 1) : random_01(at + 4),
        .master_s = scale(at + 5, 1e-5, 1),
        .synchronous = kl_mix64(at + 6) % 2,
    };
}

/* --- workers of equal speed --- */

static double time_s(const kl_farm_model *m, uint32_t n) {
    return kl_model_time_with_s(m, n, n ? n : 1);
}

static double efficiency(const kl_farm_model *m, uint32_t n) {
    return kl_model_efficiency_with(m, n, n ? n : 1);
}

static double index_of(const kl_farm_model *m, uint32_t n) {
    return kl_model_index_with(m, n, n ? n : 1);
}

static double equal_speeds(const void *self, uint32_t n) {
    (void)self;
    return n;
}

static const kl_speeds equal = {equal_speeds, NULL};

/* Return the best number of workers in 1 … most that the master can keep busy, by trying all numbers. */
static uint32_t best_by_scan(const kl_farm_model *m, uint32_t most) {
    uint32_t feeds = kl_model_capability(m), best = 1;
    for (uint32_t n = 2; n <= most && n <= feeds; n++)
        if (index_of(m, n) < index_of(m, best))
            best = n;
    return best;
}

/* The example of César et al. (2006): asynchronous messages, T_c = 1.6 s, V = 4096 bytes. */
static const kl_farm_model example = {
    .message = {.fixed_s = 1e-3, .per_unit_s = 1e-6}, .work_s = 1.6, .bytes = 4096, .to_workers = 0.5};

static void assert_printed(double value, const char *format, const char *text) {
    char buffer[64];
    snprintf(buffer, sizeof buffer, format, value);
    assert_string_equal(buffer, text);
}

static void worked_figures_of_the_paper(void **state) {
    (void)state;
    assert_printed(time_s(&example, 23) * 1e3, "%.4f", "93.7433");
    assert_printed(time_s(&example, 40) * 1e3, "%.4f", "81.1024");
    uint32_t fastest = 1;
    for (uint32_t n = 1; n <= 1000; n++)
        if (time_s(&example, n) < time_s(&example, fastest))
            fastest = n;
    assert_int_equal(fastest, 40);
    assert_int_equal(best_by_scan(&example, 1000), 23);
    assert_int_equal(kl_model_best_of(&example, equal, 1000), 23);
    double gain_20 = 1 - time_s(&example, 20) / time_s(&example, 15);
    double gain_40 = 1 - time_s(&example, 40) / time_s(&example, 30);
    assert_printed(gain_20 * 100, "%.2f", "17.68");
    assert_printed(gain_40 * 100, "%.2f", "3.99");
}

/* Return the time by expressions (3) to (6) of César et al. (2006). Each worker may have its own number of
 * bytes and its own work. The arrays are in the order of sending. */
static double general_time_s(const kl_farm_model *m, uint32_t workers, const double *bytes_to,
                             const double *bytes_from, const double *work_s) {
    double start_s = m->message.fixed_s, byte_s = m->message.per_unit_s, all = 0, largest = 0;
    for (uint32_t i = 0; i < workers; i++) {
        all += bytes_to[i];
        largest = fmax(largest, bytes_to[i]);
    }
    double send_s = start_s + byte_s * all; /* expression (5) */
    if (m->synchronous)
        send_s = workers * start_s + byte_s * all; /* expression (6) */
    else if (start_s >= byte_s * largest)
        send_s = workers * start_s + byte_s * bytes_to[workers - 1]; /* expression (4) */
    double receive_s = start_s + byte_s * bytes_from[workers - 1];
    return send_s + work_s[workers - 1] + receive_s + m->master_s; /* expression (3) */
}

/* For equal workers, expressions (3) to (6) must give the same time as (7) to (9). */
static void general_form_agrees_with_the_balanced_one(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        kl_farm_model m = random_model(seed);
        uint32_t n = 1 + (uint32_t)(kl_mix64(seed) % 50);
        double to[50], from[50], work[50];
        for (uint32_t i = 0; i < n; i++) {
            to[i] = m.bytes * m.to_workers / n;
            from[i] = m.bytes * (1 - m.to_workers) / n;
            work[i] = m.work_s / n;
        }
        /* leave out cases in which rounding would decide */
        if (!near(m.message.fixed_s, m.message.per_unit_s * to[0], 1e-9))
            assert_true(near(general_time_s(&m, n, to, from, work), time_s(&m, n), 1e-9));
    }
}

/* Compare the time until the first worker's answer comes with the time of the sends to the other n−1 workers.
 * Return the difference of the two times, divided by the longer one. It is negative if n exceeds the number
 * of workers that expressions (10) to (12) give. */
static double slack_s(const kl_farm_model *m, double n) {
    double start_s = m->message.fixed_s, to_s = m->message.per_unit_s * m->to_workers * m->bytes / n;
    double send_s = m->synchronous ? start_s + to_s : fmax(start_s, to_s);
    double answer_s = start_s + (m->work_s + (1 - m->to_workers) * m->message.per_unit_s * m->bytes) / n;
    return (answer_s - (n - 1) * send_s) / fmax(answer_s, (n - 1) * send_s);
}

static void capability_is_the_last_number_that_is_fed(void **state) {
    (void)state;
    uint32_t bounded = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        kl_farm_model m = random_model(seed);
        uint32_t most = kl_model_capability(&m);
        assert_true(most >= 1);
        if (most == UINT32_MAX)
            continue;
        bounded++;
        assert_true(most == 1 || slack_s(&m, most) >= -1e-9);
        assert_true(slack_s(&m, most + 1.0) <= 1e-9);
    }
    assert_true(bounded > 10000);
}

static void capability_agrees_with_a_scan(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        kl_farm_model m = random_model(seed);
        uint32_t n = 1;
        while (n < 2000 && slack_s(&m, n + 1) >= 0)
            n++;
        if (n < 2000 && fabs(slack_s(&m, n + 1)) > 1e-12 && (n == 1 || fabs(slack_s(&m, n)) > 1e-12))
            assert_int_equal(kl_model_capability(&m), n);
    }
}

static void free_messages_feed_everybody(void **state) {
    (void)state;
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        kl_farm_model m = {.work_s = 1, .bytes = 1e6, .to_workers = 0.5, .synchronous = synchronous};
        assert_true(kl_model_capability(&m) == UINT32_MAX);
        /* a further worker costs nothing, so all workers are used */
        assert_int_equal(kl_model_best_of(&m, equal, 77), 77);
        assert_true(near(efficiency(&m, 77), 1, 1e-12));
    }
}

enum { SPEEDS = 3000 };

/* Fill sums[] with the sums of the speeds of workers, from the fastest down. There are groups of equal
 * workers, as in clusters. */
static void random_speeds(uint64_t seed, double *sums) {
    double speed = 1, sum = 0;
    uint32_t group = 1 + (uint32_t)(kl_mix64(seed) % 200);
    for (uint32_t i = 0; i < SPEEDS; i++) {
        if (i % group == group - 1)
            speed *= random_01(seed * SPEEDS + i);
        sums[i] = sum += fmax(speed, 1e-3);
    }
}

static void equal_speeds_are_the_balanced_form(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        kl_farm_model m = random_model(seed);
        uint32_t feeds = kl_model_capability(&m), fed = kl_model_capability_of(&m, equal, 300);
        if (fabs(slack_s(&m, fed)) > 1e-12 && fabs(slack_s(&m, fed + 1)) > 1e-12)
            assert_int_equal(fed, feeds < 300 ? feeds : 300);
        uint32_t most = 1 + (uint32_t)(kl_mix64(seed + 99) % 300), best = best_by_scan(&m, most);
        uint32_t found = kl_model_best_of(&m, equal, most);
        assert_true(found >= 1 && found <= most);
        assert_true(near(index_of(&m, found), index_of(&m, best), 1e-12));
    }
}

/* If all workers are twice as fast, the time must be that of half the work. More speed must never make an
 * iteration longer. */
static void speeds_divide_the_work(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        kl_farm_model m = random_model(seed), half = m;
        half.work_s /= 2;
        uint32_t n = 1 + (uint32_t)(kl_mix64(seed) % 50);
        assert_true(near(kl_model_time_with_s(&m, n, 2.0 * n), time_s(&half, n), 1e-12));
        assert_true(near(kl_model_efficiency_with(&m, n, 2.0 * n), efficiency(&half, n), 1e-12));
        double index = kl_model_time_with_s(&m, n, 0.3 * n) / kl_model_efficiency_with(&m, n, 0.3 * n);
        if (m.work_s > 0)
            assert_true(near(kl_model_index_with(&m, n, 0.3 * n), index, 1e-12));
        assert_true(kl_model_time_with_s(&m, n, 0.3 * n) >= kl_model_time_with_s(&m, n, 0.4 * n));
    }
}

static void best_of_unequal_workers_agrees_with_a_scan(void **state) {
    (void)state;
    static double sums[SPEEDS];
    for (uint64_t seed = 0; seed < 3000; seed++) {
        kl_farm_model m = random_model(seed);
        random_speeds(seed, sums);
        uint32_t fed = kl_model_capability_of(&m, kl_speeds_listed(sums), SPEEDS), best = 1;
        for (uint32_t n = 2; n <= fed; n++)
            if (kl_model_index_with(&m, n, sums[n - 1]) < kl_model_index_with(&m, best, sums[best - 1]))
                best = n;
        uint32_t found = kl_model_best_of(&m, kl_speeds_listed(sums), SPEEDS);
        assert_true(found >= 1 && found <= fed);
        assert_true(near(kl_model_index_with(&m, found, sums[found - 1]),
                         kl_model_index_with(&m, best, sums[best - 1]), 1e-9));
    }
}

/* Slow workers must be left out if messages are expensive. Four workers have speed 1, a thousand have speed
 * 0.01. If messages cost much, the four are the best choice. If they cost little, all workers are. */
static void slow_workers_are_left_out(void **state) {
    (void)state;
    double sums[1004];
    for (uint32_t i = 0; i < 1004; i++)
        sums[i] = (i ? sums[i - 1] : 0) + (i < 4 ? 1 : 0.01);
    kl_farm_model m = {.message = {.fixed_s = 1e-3}, .work_s = 1};
    assert_int_equal(kl_model_best_of(&m, kl_speeds_listed(sums), 1004), 4);
    m.message.fixed_s = 1e-9;
    assert_int_equal(kl_model_best_of(&m, kl_speeds_listed(sums), 1004), 1004);
    for (int i = 0; i < 2; i++) { /* with such work, no number of workers has a finite index */
        m.work_s = i ? NAN : 1e200;
        uint32_t found = kl_model_best_of(&m, kl_speeds_listed(sums), 1004);
        assert_true(found >= 1 && found <= 1004);
    }
}

static void nothing_odd_comes_out(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        kl_farm_model m = random_model(seed);
        for (uint32_t n = 0; n <= 3; n++) {
            double values[] = {time_s(&m, n), efficiency(&m, n), index_of(&m, n)};
            for (size_t i = 0; i < 3; i++)
                assert_true(isfinite(values[i]) && values[i] >= 0);
            assert_true(values[1] <= 1 + 1e-12);
        }
        assert_true(isfinite(time_s(&m, UINT32_MAX)) && isfinite(index_of(&m, UINT32_MAX)));
        kl_model_best_of(&m, equal, 1000000);
    }
}

static void more_of_any_cost_takes_longer(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        kl_farm_model m = random_model(seed), more[5];
        uint32_t n = 1 + (uint32_t)(kl_mix64(seed) % 100);
        for (int i = 0; i < 5; i++)
            more[i] = m;
        more[0].message.fixed_s *= 2;
        more[1].message.per_unit_s *= 2;
        more[2].work_s *= 2;
        more[3].bytes *= 2;
        more[4].master_s *= 2;
        for (int i = 0; i < 5; i++)
            assert_true(time_s(&more[i], n) >= time_s(&m, n) * (1 - 1e-12));
        assert_true(kl_model_capability(&more[2]) >= kl_model_capability(&m));
    }
}

static void shortest_chunk_is_the_capability_turned_round(void **state) {
    (void)state;
    for (uint32_t n = 2; n < 3000; n = n * 5 / 4 + 1) {
        double send_s = 37e-6, chunk_s = kl_model_min_chunk_s(send_s, n);
        kl_farm_model m = {.message = {.fixed_s = send_s}, .work_s = n * chunk_s};
        assert_int_equal(kl_model_capability(&m), n);
        /* The link is busy all the time: expression (12) without start-up cost. The work is half a chunk more
         * than needed, so that rounding cannot decide. */
        kl_farm_model wire = {.message = {.per_unit_s = 1},
                              .bytes = send_s * n,
                              .to_workers = 1,
                              .work_s = (n + 0.5) * chunk_s,
                              .synchronous = true};
        assert_int_equal(kl_model_capability(&wire), n);
    }
    assert_true(kl_model_min_chunk_s(1, 0) == 0 && kl_model_min_chunk_s(1, 1) == 0);
}

static void quality_and_its_bound(void **state) {
    (void)state;
    assert_true(near(kl_model_quality(3.5, 4, 1), 0.125, 1e-12));
    assert_true(kl_model_quality(3, 3, 1) == 0 && kl_model_quality(3, 3, 0.9) == 0);
    assert_true(kl_model_quality(0, 0, 1) == 0 && kl_model_quality(3.5, 4, 0) == 0);
    assert_true(near(kl_model_quality_bound(1, 1, 8), 1 / 1.5, 1e-12));
    assert_true(kl_model_quality_bound(1, 0, 8) == 0 && kl_model_quality_bound(0, 1, 8) == 1);
    double before = 0;
    /* the bound must grow with the number of workers and with σ/μ, and stay below 1 */
    for (uint32_t n = 1; n < 1000; n *= 2) {
        double bound = kl_model_quality_bound(1, 0.7, n);
        assert_true(bound > before && bound < 1 && bound < kl_model_quality_bound(1, 0.8, n));
        before = bound;
    }
}

static kl_forecast forecast_of(kl_snapshot *s, uint32_t worker) {
    kl_crew *crew = crew_of(s);
    kl_forecast f = kl_model_forecast(s, worker);
    kl_crew_free(crew);
    return f;
}

/* Make a farm of n workers without queued work, from their units per second. A rate of 0 means that the
 * worker's pace is not known. */
static kl_snapshot farm_of(kl_worker_view *workers, const double *rates, uint32_t n, double left) {
    for (uint32_t i = 0; i < n; i++) {
        workers[i] = (kl_worker_view){.present = true};
        if (rates[i] > 0)
            kl_pace_add(&workers[i].pace, 1, rates[i], 1);
    }
    return (kl_snapshot){.tasks = 1000,
                         .units = 1000,
                         .left = (uint64_t)left,
                         .left_units = left,
                         .workers = workers,
                         .slots = n,
                         .present = n};
}

static void shares_go_by_speed_and_end_together(void **state) {
    (void)state;
    const double rates[] = {10, 20, 70};
    kl_worker_view workers[3];
    kl_snapshot s = farm_of(workers, rates, 3, 1000);
    for (uint32_t i = 0; i < 3; i++) {
        kl_forecast f = forecast_of(&s, i);
        assert_true(near(f.rate_units_per_s, 100, 1e-12) && near(f.left_s, 10, 1e-9));
        assert_true(near(f.share_units, rates[i] * 10, 1e-9) && near(f.unit_s, 1 / rates[i], 1e-12));
        assert_true(f.low_s <= f.left_s && f.left_s <= f.high_s);
    }
    kl_forecast totals = forecast_of(&s, UINT32_MAX);
    assert_true(totals.unit_s == 0 && totals.share_units == 0 && near(totals.left_s, 10, 1e-9));
}

static void queued_work_comes_first(void **state) {
    (void)state;
    const double rates[] = {10, 10, 10};
    kl_worker_view workers[3];
    kl_snapshot s = farm_of(workers, rates, 3, 100);
    workers[0].queued_units = 50; /* the worker had work for 5 s, and has done 1 s of it */
    s.now_s = 1;
    /* all workers end after 14/3 s, and this worker is busy for 4 s, so it gets 2/3 s of work at 10
     * units/s */
    assert_true(near(forecast_of(&s, 0).share_units, 20.0 / 3, 1e-6));
    assert_true(near(forecast_of(&s, 1).share_units, 140.0 / 3, 1e-6));
    workers[0].queued_units = 1000; /* a worker that is busy longer than all others gets no more work, and the
                                       run ends when its queue is done */
    assert_true(forecast_of(&s, 0).share_units == 0);
    assert_true(near(forecast_of(&s, 1).share_units, 50, 1e-6));
    assert_true(near(forecast_of(&s, 1).left_s, 99, 1e-9));
}

static void silence_slows_a_worker_down(void **state) {
    (void)state;
    const double rates[] = {10, 10};
    kl_worker_view workers[2];
    kl_snapshot s = farm_of(workers, rates, 2, 100);
    workers[0].queued_units = 10;
    s.now_s = 1;
    double due = forecast_of(&s, 0).unit_s;
    assert_true(near(due, 0.1, 1e-9));
    double share = forecast_of(&s, 0).share_units;
    for (s.now_s = 2; s.now_s < 20; s.now_s++) {
        kl_forecast f = forecast_of(&s, 0);
        assert_true(near(f.unit_s, s.now_s / 10, 1e-9));
        assert_true(f.share_units < share || f.share_units == 0);
        share = f.share_units;
    }
    assert_true(share == 0);
}

static void forecast_of_nothing_known_is_zero(void **state) {
    (void)state;
    const double none[] = {0, 0}, some[] = {10, 0};
    kl_worker_view workers[2];
    kl_snapshot s = farm_of(workers, none, 2, 100);
    kl_forecast f = forecast_of(&s, 0);
    assert_true(f.left_s == 0 && f.unit_s == 0 && f.high_s == 0 && f.rate_units_per_s == 0);
    assert_true(kl_model_equal_split_s(&s) == 0 && kl_model_bound_s(&s) == 0);
    /* a worker whose rate is not known is assumed to have the mean rate of the others */
    s = farm_of(workers, some, 2, 100);
    assert_true(near(forecast_of(&s, 1).share_units, 50, 1e-9));
    s.left_units = 0;
    assert_true(forecast_of(&s, 1).left_s == 0);
    assert_true(forecast_of(&s, 5).unit_s == 0);
    s = (kl_snapshot){0};
    assert_true(forecast_of(&s, 0).left_s == 0);
}

/* Tasks of random length are dealt one by one to equal workers. The interval that is forecast when half of
 * the tasks are done must contain the end in about 19 of 20 runs. */
static void interval_holds_the_end(void **state) {
    (void)state;
    enum { RUNS = 400, TASKS = 400, P = 4 };
    int held = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        kl_worker_view workers[P];
        kl_snapshot s = {.tasks = TASKS,
                         .units = TASKS,
                         .left = TASKS / 2,
                         .left_units = TASKS / 2.0,
                         .workers = workers,
                         .slots = P,
                         .present = P};
        double free_s[P] = {0}, end = 0;
        for (int w = 0; w < P; w++)
            workers[w] = (kl_worker_view){.present = true};
        for (uint64_t task = 0; task < TASKS; task++) {
            int first = 0;
            for (int w = 1; w < P; w++)
                first = free_s[w] < free_s[first] ? w : first;
            double length_s = -log(1 - random_01(run * 1000 + task));
            if (task < TASKS / 2) {
                kl_stat_add(&s.unit_s, length_s, 0);
                kl_pace_add(&workers[first].pace, length_s, 1, 1000);
                s.now_s = fmax(s.now_s, free_s[first]);
            }
            free_s[first] += length_s;
            end = fmax(end, free_s[first]);
        }
        kl_forecast f = forecast_of(&s, UINT32_MAX);
        held += end >= s.now_s + f.low_s && end <= s.now_s + f.high_s;
    }
    assert_in_range(held, RUNS * 85 / 100, RUNS);
}

static void yardsticks_of_a_run(void **state) {
    (void)state;
    kl_worker_view workers[3] = {{.present = true, .busy_s = 10, .units = 100},
                                 {.present = true, .busy_s = 10, .units = 300},
                                 {.present = false}};
    kl_snapshot s = {.units = 400, .workers = workers, .slots = 3, .present = 2};
    assert_true(near(kl_model_bound_s(&s), 10, 1e-12));
    assert_true(near(kl_model_equal_split_s(&s), 20, 1e-12));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_figures_of_the_paper),
        cmocka_unit_test(general_form_agrees_with_the_balanced_one),
        cmocka_unit_test(capability_is_the_last_number_that_is_fed),
        cmocka_unit_test(capability_agrees_with_a_scan),
        cmocka_unit_test(free_messages_feed_everybody),
        cmocka_unit_test(equal_speeds_are_the_balanced_form),
        cmocka_unit_test(speeds_divide_the_work),
        cmocka_unit_test(best_of_unequal_workers_agrees_with_a_scan),
        cmocka_unit_test(slow_workers_are_left_out),
        cmocka_unit_test(nothing_odd_comes_out),
        cmocka_unit_test(more_of_any_cost_takes_longer),
        cmocka_unit_test(shortest_chunk_is_the_capability_turned_round),
        cmocka_unit_test(quality_and_its_bound),
        cmocka_unit_test(shares_go_by_speed_and_end_together),
        cmocka_unit_test(queued_work_comes_first),
        cmocka_unit_test(silence_slows_a_worker_down),
        cmocka_unit_test(forecast_of_nothing_known_is_zero),
        cmocka_unit_test(interval_holds_the_end),
        cmocka_unit_test(yardsticks_of_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
