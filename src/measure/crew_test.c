/* Compare the results of a crew with those of a loop over all workers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/crew_test_helper.h"

enum { MOST = 300 };

typedef struct farm {
    uint64_t seed, draws;
    uint32_t workers;
    double now_s;
    kl_worker_view views[MOST];
    double ranked[MOST]; /* speed of each worker in the last run in which it took part; 0: not known */
    kl_crew *crew;
} farm;

static uint64_t draw(farm *f, uint64_t below) {
    return kl_mix64(f->seed * 0x10001 + f->draws++) % below;
}

static double draw_01(farm *f) {
    return (double)(draw(f, 1u << 30) + 1) * 0x1p-30;
}

static bool near(double a, double b) {
    return a == b || fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* --- random changes of workers --- */

static void report(farm *f, kl_worker_view *v) {
    double units = v->queued_units * (draw(f, 2) ? 1 : 0.5), seconds = units * draw_01(f) * 0.1;
    kl_pace_add(&v->pace, seconds, units, 0.2);
    kl_wap_add(&v->wap, seconds, units);
    kl_stat_add(&v->unit_s, seconds / units, f->now_s);
    v->queued_units = units == v->queued_units ? 0 : v->queued_units - units;
    v->queued_at_s = f->now_s;
    v->busy_s += seconds;
    v->units += units;
}

static void happen(farm *f) {
    uint32_t i = (uint32_t)draw(f, f->workers);
    kl_worker_view *v = &f->views[i];
    uint64_t what = draw(f, 16);
    if (what == 0) {
        v->present = !v->present;
        v->resting = !v->present && draw(f, 2);
    } else if (what < 9 && v->present) {
        v->queued_at_s = v->queued_units > 0 ? v->queued_at_s : f->now_s;
        v->queued_units += (double)(1 + draw(f, 20)) * (draw(f, 8) ? 1 : 100);
        v->chunks++;
    } else if (v->present && v->queued_units > 0) {
        report(f, v);
    }
    if (v->units > 0 && v->busy_s > 0)
        f->ranked[i] = v->units / v->busy_s;
    else if (f->ranked[i] == 0 && kl_pace_unit_s(&v->pace) > 0)
        f->ranked[i] = 1 / kl_pace_unit_s(&v->pace);
    if (!v->present && !v->resting)
        f->ranked[i] = 0;
    kl_crew_update(f->crew, f->views, i);
    if (draw(f, 4) == 0) {
        f->now_s += draw_01(f) * (draw(f, 10) ? 0.01 : 2);
        kl_crew_advance(f->crew, f->now_s);
    }
}

static void begin_run(farm *f) {
    for (uint32_t i = 0; i < f->workers; i++) {
        kl_worker_view *v = &f->views[i];
        v->prior_rate = draw(f, 3) ? draw_01(f) : 0;
        v->wap = (kl_wap){0};
        v->chunks = 0;
        v->busy_s = v->units = v->queued_units = 0;
    }
    f->now_s = draw(f, 2) ? 0 : f->now_s;
    kl_crew_look_again(f->crew, f->views, f->now_s);
}

/* --- the same results by loops over all workers --- */

static void totals_are_right(const farm *f) {
    kl_crew_sums want = {0};
    for (uint32_t i = 0; i < f->workers; i++) {
        const kl_worker_view *v = &f->views[i];
        if (!v->present)
            continue;
        want.present++;
        want.known += kl_worker_rate(v) > 0;
        want.unserved += v->chunks == 0;
        want.rates += kl_worker_rate(v);
        want.spread += v->pace.spread;
        want.seconds += v->pace.seconds;
        want.queued_units += v->queued_units;
        want.with_prior += v->prior_rate > 0;
        want.priors += v->prior_rate;
        want.with_wap += v->wap.chunks > 0;
        want.waps += v->wap.chunks > 0 ? 1 / kl_wap_unit_s(&v->wap) : 0;
        if (v->unit_s.count < 2)
            continue;
        want.steady++;
        want.variance_rates += pow(kl_stat_sd(&v->unit_s), 2) / v->unit_s.mean;
        want.unit_rates += 1 / v->unit_s.mean;
    }
    const kl_crew_sums *got = kl_crew_total(f->crew);
    assert_int_equal(got->present, want.present);
    assert_int_equal(got->known, want.known);
    assert_int_equal(got->unserved, want.unserved);
    assert_int_equal(got->with_prior, want.with_prior);
    assert_int_equal(got->with_wap, want.with_wap);
    assert_int_equal(got->steady, want.steady);
    assert_true(near(got->rates, want.rates) && near(got->spread, want.spread));
    assert_true(near(got->seconds, want.seconds) && near(got->queued_units, want.queued_units));
    assert_true(near(got->priors, want.priors) && near(got->waps, want.waps));
    assert_true(near(got->variance_rates, want.variance_rates) && near(got->unit_rates, want.unit_rates));
    assert_true(near(kl_crew_mean_rate(f->crew), want.known ? want.rates / want.known : 0));
}

static bool overdue(const farm *f, const kl_worker_view *v, kl_lane lane) {
    return v->queued_units > 0 && lane.free_s == f->now_s - v->queued_at_s;
}

static void questions_are_answered(farm *f, double within_s, uint32_t without) {
    double mean = kl_crew_mean_rate(f->crew), late = 0, rate = 0, owed = 0, longest_s = 0, first_s = INFINITY;
    double task = 1 + (double)draw(f, 5);
    uint32_t workers = 0;
    if (mean == 0)
        return;
    for (uint32_t i = 0; i < f->workers; i++) {
        const kl_worker_view *v = &f->views[i];
        if (!v->present)
            continue;
        kl_lane lane = kl_worker_lane(v, mean, f->now_s);
        longest_s = fmax(longest_s, lane.free_s);
        if (i == without)
            continue;
        first_s = fmin(first_s, lane.free_s + task / lane.rate);
        if (!(lane.free_s < within_s))
            continue;
        workers++;
        owed += lane.rate * lane.free_s;
        rate += lane.rate;
        late += overdue(f, v, lane) ? lane.rate : 0;
    }
    kl_crew_part part = kl_crew_free_within(f->crew, within_s, without);
    assert_int_equal(part.workers, workers);
    /* The result is a difference of two sums of size rate·now_s, so the tolerance grows with that size. */
    assert_true(near(part.owed, owed) || fabs(part.owed - owed) <= 1e-12 * rate * f->now_s);
    assert_true(part.rate <= rate * (1 + 1e-9) && part.rate >= (rate - 0.009 * late) * (1 - 1e-9));
    assert_true(fabs(kl_crew_longest_s(f->crew) - longest_s) <= 1e-9 * fmax(longest_s, 1e-3 * f->now_s));
    uint32_t whose;
    double got_s = kl_crew_first_end_s(f->crew, task, without, &whose);
    assert_true(got_s == first_s || fabs(got_s - first_s) <= 1e-9 * fmax(first_s, 1e-3 * f->now_s));
    if (isinf(first_s)) {
        assert_int_equal(whose, UINT32_MAX);
        return;
    }
    kl_lane lane = kl_worker_lane(&f->views[whose], mean, f->now_s);
    assert_true(whose != without && f->views[whose].present);
    assert_true(fabs(lane.free_s + task / lane.rate - got_s) <= 1e-9 * fmax(got_s, 1e-3 * f->now_s));
}

static double free_s_of(const farm *f, uint32_t worker) {
    return kl_worker_lane(&f->views[worker], kl_crew_mean_rate(f->crew), f->now_s).free_s;
}

/* Return true for about two thirds of the workers, chosen at random. */
static bool counts(const void *self, uint32_t worker) {
    return kl_mix64(worker + *(const uint64_t *)self) % 3 > 0;
}

static void the_latest_are_found(farm *f, double beyond_s, uint32_t most) {
    uint32_t late[KL_CREW_LATEST], above = 0;
    const uint64_t seed = draw(f, 1000);
    const kl_crew_choice some = {&seed, counts};
    if (kl_crew_mean_rate(f->crew) == 0)
        return;
    uint32_t count = kl_crew_latest(f->crew, beyond_s, &some, late, most);
    double off_s = 1e-12 * f->now_s, least_s = beyond_s;
    assert_true(count <= most);
    for (uint32_t i = 0; i < count; i++) {
        least_s = free_s_of(f, late[i]);
        assert_true(f->views[late[i]].present && counts(&seed, late[i]) && least_s > beyond_s - off_s);
        assert_true(i == 0 || least_s <= free_s_of(f, late[i - 1]) + off_s);
    }
    for (uint32_t i = 0; i < f->workers; i++)
        above += f->views[i].present && counts(&seed, i) && free_s_of(f, i) > least_s + off_s;
    assert_true(above <= count); /* all workers that become free later than those found were found, too */
    if (count < most) /* fewer workers were found than wanted, so the crew must have found every worker that
                         becomes free late enough */
        for (uint32_t i = 0; i < f->workers; i++) {
            bool listed = false;
            for (uint32_t k = 0; k < count; k++)
                listed |= late[k] == i;
            assert_true(listed || !f->views[i].present || !counts(&seed, i) ||
                        free_s_of(f, i) <= beyond_s + off_s);
        }
}

static int faster_first(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static void ranks_are_right(const farm *f) {
    double speeds[MOST], sum = 0, speed;
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->workers; i++)
        if (f->ranked[i] > 0)
            speeds[count++] = f->ranked[i];
    qsort(speeds, count, sizeof *speeds, faster_first);
    assert_int_equal(kl_crew_ranked(f->crew), count);
    bool seen[MOST] = {false};
    for (uint32_t n = 1; n <= count; n++) {
        uint32_t worker = kl_crew_nth_fastest(f->crew, n, &speed);
        sum += speeds[n - 1];
        assert_true(worker < f->workers && !seen[worker] && f->ranked[worker] == speed);
        assert_true(near(speed, speeds[n - 1]) && near(kl_crew_fastest_speed(f->crew, n), sum));
        seen[worker] = true;
    }
    assert_true(near(kl_crew_fastest_speed(f->crew, UINT32_MAX), sum));
}

static void the_fastest_idle_one_is_found(farm *f, uint32_t without) {
    double mean = kl_crew_mean_rate(f->crew), best = 0;
    uint32_t whose;
    for (uint32_t i = 0; i < f->workers; i++) {
        const kl_worker_view *v = &f->views[i];
        if (v->present && !(v->queued_units > 0) && i != without)
            best = fmax(best, kl_worker_lane(v, mean, f->now_s).rate);
    }
    if (!(mean > 0))
        return;
    assert_true(near(kl_crew_fastest_idle(f->crew, without, &whose), best));
    if (best > 0)
        assert_true(whose != without && f->views[whose].present && !(f->views[whose].queued_units > 0) &&
                    near(kl_worker_lane(&f->views[whose], mean, f->now_s).rate, best));
    else
        assert_int_equal(whose, UINT32_MAX);
}

static void everything_is_right(farm *f) {
    totals_are_right(f);
    ranks_are_right(f);
    for (int k = 0; k < 4; k++) {
        double within_s = k == 0 ? INFINITY : draw_01(f) * (draw(f, 2) ? 10 : 0.2);
        uint32_t without = draw(f, 2) ? UINT32_MAX : (uint32_t)draw(f, f->workers);
        questions_are_answered(f, within_s, without);
        the_fastest_idle_one_is_found(f, without);
        the_latest_are_found(f, within_s, 1 + (uint32_t)draw(f, KL_CREW_LATEST));
    }
}

static void sums_and_orders_are_those_of_all_workers(void **state) {
    (void)state;
    static farm f;
    for (uint64_t seed = 0; seed < 150; seed++) {
        memset(&f, 0, sizeof f);
        f.seed = seed;
        f.workers = 1 + (uint32_t)(kl_mix64(seed) % (seed < 100 ? 20 : MOST));
        f.crew = kl_crew_new();
        assert_non_null(f.crew);
        uint32_t there = f.workers;
        for (f.workers = 1; f.workers < there;
             f.workers++) /* workers join one by one, so memory is reserved in small steps */
            assert_int_equal(kl_crew_reserve(f.crew, f.workers), KILTER_OK);
        assert_int_equal(kl_crew_reserve(f.crew, there), KILTER_OK);
        for (uint32_t i = 0; i < there; i++) {
            f.views[i].present = draw(&f, 5) > 0;
            kl_crew_update(f.crew, f.views, i);
        }
        everything_is_right(&f);
        for (int k = 0; k < 400; k++) {
            happen(&f);
            if (draw(&f, 8) == 0)
                everything_is_right(&f);
            if (draw(&f, 150) == 0)
                begin_run(&f);
        }
        kl_crew_free(f.crew);
    }
}

/* Two crews with the same workers must give the same answers, even if the workers of one crew have changed
 * many times before. */
static void the_way_there_does_not_matter(void **state) {
    (void)state;
    static farm f;
    for (uint64_t seed = 0; seed < 50; seed++) {
        memset(&f, 0, sizeof f);
        f.seed = seed;
        f.workers = 40;
        f.crew = kl_crew_new();
        assert_int_equal(kl_crew_reserve(f.crew, f.workers), KILTER_OK);
        for (uint32_t i = 0; i < f.workers; i++)
            f.views[i].present = true;
        kl_crew_look_again(f.crew, f.views, 0);
        for (int k = 0; k < 500; k++)
            happen(&f);
        kl_snapshot s = {.workers = f.views, .slots = f.workers, .now_s = f.now_s};
        kl_crew *anew = crew_of(&s);
        for (double within_s = 1e-3; within_s < 1e3; within_s *= 1.7) {
            kl_crew_part a = kl_crew_free_within(f.crew, within_s, 3);
            kl_crew_part b = kl_crew_free_within(anew, within_s, 3);
            assert_true(a.workers == b.workers && a.rate == b.rate && a.owed == b.owed);
        }
        assert_true(kl_crew_total(f.crew)->rates == kl_crew_total(anew)->rates);
        kl_crew_free(anew);
        kl_crew_free(f.crew);
    }
}

/* If a worker is silent for too long, its rate must fall. A queue of 10 units at 10 units a second should end
 * after 1 s. From then on the rate is the queue divided by the silence. */
static void silence_slows_a_worker_down(void **state) {
    (void)state;
    kl_worker_view views[2] = {{.present = true, .queued_units = 10}, {.present = true}};
    kl_snapshot s = {.workers = views, .slots = 2};
    for (int i = 0; i < 2; i++)
        kl_pace_add(&views[i].pace, 1, 10, 1);
    kl_crew *crew = crew_of(&s);
    for (double now_s = 0; now_s < 20; now_s += 0.25) {
        kl_crew_advance(crew, now_s);
        kl_crew_part both = kl_crew_free_within(crew, INFINITY, UINT32_MAX);
        double rate = now_s > 1 ? 10 / now_s : 10, free_s = now_s > 1 ? now_s : 1 - now_s;
        assert_true(near(both.rate, 10 + rate) && near(both.owed, rate * free_s));
        assert_true(near(kl_crew_longest_s(crew), free_s));
        assert_int_equal(kl_crew_free_within(crew, free_s / 2, UINT32_MAX).workers, free_s > 0 ? 1 : 0);
    }
    views[0].queued_units = 0; /* the silent worker has now reported its work */
    kl_crew_update(crew, views, 0);
    assert_true(near(kl_crew_free_within(crew, INFINITY, UINT32_MAX).rate, 20));
    kl_crew_free(crew);
}

static void nobody_is_no_trouble(void **state) {
    (void)state;
    kl_crew *crew = kl_crew_new();
    kl_crew_advance(crew, 1);
    assert_int_equal(kl_crew_total(crew)->present, 0);
    assert_true(kl_crew_mean_rate(crew) == 0 && kl_crew_ranked(crew) == 0);
    assert_true(kl_crew_fastest_speed(crew, 10) == 0);
    assert_true(kl_crew_free_within(crew, INFINITY, UINT32_MAX).workers == 0);
    assert_true(kl_crew_longest_s(crew) == 0 && isinf(kl_crew_first_end_s(crew, 1, 0, NULL)));
    assert_int_equal(kl_crew_reserve(crew, UINT32_MAX), KILTER_ERR_MEMORY);
    kl_crew_free(crew);
    kl_crew_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_orders_are_those_of_all_workers),
        cmocka_unit_test(the_way_there_does_not_matter),
        cmocka_unit_test(silence_slows_a_worker_down),
        cmocka_unit_test(nobody_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
