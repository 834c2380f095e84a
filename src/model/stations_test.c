/* Test the model of shared resources. A station is compared with a simulation of its events. Results for
 * farms and the interval of a forecast are checked. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"

static double random_01(uint64_t i) {
    return ((double)(kl_mix64(i) >> 11) + 0.5) * 0x1p-53;
}

static double exponential(uint64_t *seed, double mean) {
    return -mean * log(random_01(++*seed));
}

/* Simulate a station where tasks arrive and are served after exponentially distributed times. Return the
 * tasks per second. */
static double played_rate(const kl_station *s, double away_s, uint32_t workers, uint64_t seed) {
    enum { EVENTS = 400000 };
    double now_s = 0, there = 0, served = 0;
    for (int i = 0; i < EVENTS; i++) {
        double comes = (workers - there) / away_s, goes = fmin(there, s->servers) / s->task_s;
        now_s += exponential(&seed, 1 / (comes + goes));
        bool left = random_01(++seed) * (comes + goes) < goes;
        there += left ? -1 : 1;
        served += left;
    }
    return served / now_s;
}

static void a_station_serves_what_it_serves_when_played_out(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        kl_station s = {0.1 + random_01(7 * seed), 1 + (double)(kl_mix64(seed) % 4)};
        double away_s = 10 * random_01(11 * seed) * s.task_s;
        uint32_t workers = 1 + (uint32_t)(kl_mix64(3 * seed) % 30);
        double played = played_rate(&s, away_s, workers, seed << 32),
               told = kl_station_rate(&s, away_s, workers);
        assert_true(fabs(told / played - 1) < 0.02);
    }
}

/* The rate of a station must not exceed the rate at which workers use the station if they never wait. It must
 * not exceed the rate of the station's servers. More workers must never lower the rate. */
static void a_station_keeps_its_bounds(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        kl_station s = {pow(10, -6 * random_01(5 * seed)), 1 + (double)(kl_mix64(seed) % 64)};
        double away_s = s.task_s * pow(10, 8 * random_01(13 * seed) - 3), before = 0;
        for (uint32_t n = 1; n < 2000; n += 1 + n / 4) {
            double rate = kl_station_rate(&s, away_s, n);
            assert_true(rate <= n / (away_s + s.task_s) * (1 + 1e-9) &&
                        rate <= s.servers / s.task_s * (1 + 1e-9));
            assert_true(rate >= before * (1 - 1e-9));
            before = rate;
        }
    }
}

static void a_million_workers_are_no_trouble(void **state) {
    (void)state;
    kl_station s = {1e-6, 4};
    assert_true(fabs(kl_station_rate(&s, 1, 1000000) / (1e6 / (1 + 1e-6)) - 1) < 1e-6);
    assert_true(fabs(kl_station_rate(&s, 1, 100000000) / 4e6 - 1) < 1e-6);
    assert_true(fabs(kl_station_rate(&s, 0, 1000000) / 4e6 - 1) < 1e-12);
    assert_true(kl_station_rate(&(kl_station){0, 1}, 2, 10) == 5);
    /* above 100,000 workers, tasks count as a steady stream; the rate must change little at this limit */
    for (double away_s = 0.5e-4; away_s < 1; away_s *= 3) {
        double below = kl_station_rate(&s, away_s, 100000), above = kl_station_rate(&s, away_s, 100001);
        assert_true(fabs(above / below - 1) < 5e-3);
    }
}

/* Return a load of 1,000 tasks of 1 ms on two cores, with 10 ms of CPU time for messages. */
static kl_load computing(void) {
    return (kl_load){
        .use =
            {.farm_s = 0.01, .local_s = 1.0, .local_tasks = 1000, .tasks = 1000, .messages = 100, .cores = 2},
        .task_s = 1e-3,
        .beyond = 1,
        .workers = 2,
        .chunks = 60};
}

/* On some machines, switches between many processes are dear. The interval of a forecast for tasks that sleep
 * allows for this. Its upper end rises for more workers, and its lower end falls for fewer. */
static void an_interval_allows_for_dear_switches(void **state) {
    (void)state;
    kl_load load = computing();
    assert_true(kl_model_limit(&load, 32).dearest == 1); /* these tasks only compute */
    load.use.local_s = 0.1;
    double before = 0;
    for (uint32_t n = 2; n <= 32; n *= 2) {
        kl_limit limit = kl_model_limit(&load, n), plain = limit;
        plain.dearest = 1;
        kl_interval i = kl_model_interval(1, &(kl_doubt){.known = 2}, n, &limit);
        kl_interval narrow = kl_model_interval(1, &(kl_doubt){.known = 2}, n, &plain);
        assert_true(n == 2 ? limit.dearest == 1 : limit.dearest > before);
        assert_true(i.low_s == narrow.low_s && i.high_s >= fmax(narrow.high_s, limit.dearest));
        before = limit.dearest;
    }
    assert_true(before > 2 &&
                before <=
                    4); /* the cores are the limit, and a task needs at most √16 times as much CPU time */
    load.workers = 32;
    kl_limit fewer = kl_model_limit(&load, 8), plain = fewer;
    plain.dearest = 1;
    kl_interval i = kl_model_interval(1, &(kl_doubt){.known = 32}, 8, &fewer);
    kl_interval narrow = kl_model_interval(1, &(kl_doubt){.known = 32}, 8, &plain);
    assert_true(fewer.dearest < 1 && i.low_s < narrow.low_s && i.high_s == narrow.high_s);
}

static void more_workers_than_cores_compute_no_faster(void **state) {
    (void)state;
    kl_load load = computing();
    assert_true(fabs(kl_model_limit(&load, 1).times - 1.01) < 0.01);
    for (uint32_t n = 2; n <= 32; n *= 2) {
        kl_limit limit = kl_model_limit(&load, n);
        assert_int_equal(limit.what, KL_SHARED_CORES);
        /* CPU time grows with more than three workers per core */
        double dearer = pow(fmax(1, n / 6.0), 0.05);
        assert_true(limit.times >= n / 2.0 * dearer && limit.times < n / 2.0 * dearer * 1.1);
        assert_true(limit.used > 0.99);
    }
    load.use.local_s = 0.01; /* these tasks sleep most of the time */
    assert_true(kl_model_limit(&load, 8).times < 1.05);
    assert_true(kl_model_limit(&load, 256).times > 1.5);
}

/* Return a load of 1,000 tasks in as many chunks. The workers only compute, for a tenth of a millisecond
 * each, so the time of a task is proportional to its CPU time. */
static kl_load moving(double bytes, double to_workers) {
    kl_load load = computing();
    load.chunks = load.use.tasks;
    load.use.local_s = 0.1;
    load.task_s = load.use.local_s / load.use.tasks;
    load.use.bytes = bytes;
    load.to_workers = to_workers;
    return load;
}

/* CPU time must grow if the chunks of many workers leave the caches. It must not grow if the bytes of the
 * measured run were outside the caches already, or cost as much as there. With fewer workers it must fall,
 * but stay positive. */
static void bytes_outside_the_caches_cost_cpu_time(void **state) {
    (void)state;
    static const struct {
        double bytes, to_workers, local_s;
        uint32_t measured, workers;
        double growth; /* CPU time of a task, without the growth by switches of threads */
    } rows[] = {
        {0, 0, 0.1, 2, 64, 1},
        {1e9, 0, 0.1, 2, 64, 2.364}, /* 0.01 ms of the master and 0.25 ms instead of 0.1 ms */
        {1e9, 0, 0.02, 2, 16, (0.01 + 0.145) / 0.03}, /* half of the bytes are outside: 0.125 ms more */
        {1e9, 0, 0.3, 2, 64, 1},                      /* 0.3 ms for 1 MB is more than the bytes can cost */
        {1e9, 0, 0.1, 256, 1024, 1.066},              /* nearly all bytes were outside the caches already */
        {1e7, 0, 0.1, 2, 64, 1},                      /* these chunks stay in the caches */
        {1e9, 1, 0.02, 2, 16,
         (0.01 + 0.02 + 0.05) / 0.03},     /* half of the bytes: 0.025 ms more for each side */
        {1e9, 0.5, 0.01, 256, 64, 0.8125}, /* the thread of the master is the limit */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_load load = moving(rows[i].bytes, rows[i].to_workers);
        load.use.local_s = rows[i].local_s;
        load.task_s = load.use.local_s / load.use.tasks;
        load.workers = rows[i].measured;
        double now = kl_model_limit(&load, rows[i].workers).times / rows[i].workers;
        double growth = now / kl_model_limit(&load, load.workers).times * load.workers;
        double switches = pow(fmax(6, rows[i].workers) / fmax(6, load.workers), 0.05);
        if (fabs(growth / switches / rows[i].growth - 1) > 0.03)
            fail_msg("row %d: %g", (int)i, growth / switches);
    }
}

/* With 16 workers, half of the encrypted bytes are outside the caches, in either direction. They cost each
 * side 0.5 ms for a task. If the measured run had 16 workers, two workers save this time. */
static void encrypted_bytes_outside_the_caches_cost_both_sides(void **state) {
    (void)state;
    for (int to_workers = 0; to_workers <= 1; to_workers++) {
        kl_load load = moving(1e9, to_workers);
        load.copy_s = 1e-9;
        load.workers = 2;
        double two = kl_model_limit(&load, 2).times / 2, many = kl_model_limit(&load, 16).times / 16;
        double switches = pow(16 / 6.0, 0.05);
        assert_true(fabs(many / two / switches / ((0.51 + 0.6) / 0.11) - 1) < 0.03);
        load.use.farm_s = load.use.local_s = 1; /* 1 ms for each side */
        load.workers = 16;
        double saved = kl_model_limit(&load, 2).times;
        load.copy_s = 0;
        assert_true(saved < 0.6 * kl_model_limit(&load, 2).times);
    }
}

/* Only workers on the master's host use its cores and caches. Here an eighth of the tasks is done there. */
static void workers_elsewhere_use_no_caches(void **state) {
    (void)state;
    kl_load many = moving(1e9, 0);
    many.use.local_tasks = many.use.tasks / 8;
    many.use.local_s = many.task_s * many.use.local_tasks;
    kl_load none = many;
    none.use.bytes = 0;
    assert_true(kl_model_limit(&many, 16).what == KL_SHARED_CORES);
    assert_true(kl_model_limit(&many, 16).times == kl_model_limit(&none, 16).times);
    assert_true(kl_model_limit(&many, 128).times > 1.5 * kl_model_limit(&none, 128).times);
}

/* Return the load of 64 workers. Each task sleeps, and costs its worker and one thread of the master 0.1 ms
 * of CPU time. */
static kl_load sleeping(void) {
    kl_load load = computing();
    load.use.farm_s = load.use.local_s = 0.1;
    load.chunks = load.use.tasks;
    load.workers = 64;
    load.answer_s = load.use.farm_s / load.chunks;
    return load;
}

/* Workers that sleep stay on their cores, so they and the master's busiest thread slow each other down.
 * Workers that compute are spread over all cores. */
static void a_busy_master_slows_the_workers_of_its_core(void **state) {
    (void)state;
    const kl_load sleeps = sleeping();
    kl_limit limit = kl_model_limit(&sleeps, 64);
    assert_int_equal(limit.what, KL_SHARED_CORE);
    /* for each task, the master's core does half of all work (0.1 of 0.2 ms), and a quarter of the thread's
     * 0.1 ms */
    assert_true(limit.times > 0.95 * 64 * 0.125 && limit.times < 1.05 * 64 * 0.125 && limit.used > 0.99);
    kl_load two = sleeps, even = sleeps, apart = sleeps;
    two.answer_s /= 2; /* two threads of the master can use two cores */
    assert_true(fabs(kl_model_limit(&two, 64).times / limit.times - 0.9) < 0.01);
    even.even = true;
    assert_int_equal(kl_model_limit(&even, 64).what, KL_SHARED_CORES);
    assert_true(fabs(kl_model_limit(&even, 64).times / limit.times - 0.8) < 0.01);
    apart.apart = true;
    assert_int_equal(kl_model_limit(&apart, 64).what, KL_SHARED_MESSAGES);
    assert_true(kl_model_limit(&sleeps, 2).what != KL_SHARED_CORE);
    /* the more the workers compute, the more evenly the cores must be used */
    double before = INFINITY;
    for (double computes = 0.5; computes <= 1; computes += 0.01) {
        kl_load load = sleeps;
        load.use.local_s = computes;
        double beyond = kl_model_limit(&load, 64).times / 64 / ((computes + 0.1) / 2);
        assert_true(beyond <= before * 1.001 && (computes == 0.5 || beyond > 0.98 * before));
        before = beyond;
    }
    assert_true(before < 1.01);
}

/* If a run took less time than the master's core alone would need, the cores were used evenly. */
static void a_quick_run_shows_that_cores_are_used_evenly(void **state) {
    (void)state;
    kl_load quick = sleeping(), slow = sleeping(); /* the master's core needs 0.125 s */
    kl_load_fit(&quick, 1e-3, 0.1);
    kl_load_fit(&slow, 1e-3, 0.13);
    assert_true(quick.even && !slow.even);
}

static void what_is_needed_most_limits(void **state) {
    (void)state;
    kl_load load = computing();
    load.use.local_s = 0.01;
    load.use.callbacks_s = 0.5;
    assert_int_equal(kl_model_limit(&load, 8).what, KL_SHARED_CALLBACKS);
    load = computing();
    load.use.local_tasks = load.use.local_s = 0; /* the workers are on other hosts */
    load.use.bytes = 1e9;
    load.per_byte_s = 1e-9;
    assert_int_equal(kl_model_limit(&load, 8).what, KL_SHARED_LINK);
    load.answer_s = 0.1;
    load.use.farm_s = 7;
    assert_int_equal(kl_model_limit(&load, 8).what, KL_SHARED_MESSAGES);
    for (int what = KL_SHARED_NOTHING; what <= KL_SHARED_LINKS; what++)
        assert_true(kl_shared_name(what)[0] == 't');
}

static void more_than_a_link_carries_went_over_several(void **state) {
    (void)state;
    kl_load one = computing();
    one.use.local_tasks = one.use.local_s = 0;
    one.use.bytes = 1e8; /* each task of 1 ms needs a link for 0.8 ms */
    one.per_byte_s = 8e-9;
    kl_load several = one;
    kl_load_fit(&one, 1e-3, 0.85);
    kl_load_fit(&several, 1e-3, 0.5);
    assert_true(!one.own_links && several.own_links);
    assert_int_equal(kl_model_limit(&one, 8).what, KL_SHARED_LINK);
    assert_true(kl_model_limit(&one, 8).times > 4);
    assert_true(kl_model_limit(&several, 8).times < 1.1);
    several.per_byte_s *= 2; /* with this slower rate, each worker waits for its own link */
    assert_int_equal(kl_model_limit(&several, 8).what, KL_SHARED_LINKS);
    assert_true(fabs(kl_model_limit(&several, 8).times / kl_model_limit(&several, 16).times - 1) < 1e-9);
}

/* If the rate of the link was measured too low, the time of the run must give the right rate. */
static void a_busy_link_is_as_quick_as_the_run_shows(void **state) {
    (void)state;
    for (double too_slow = 1; too_slow < 3; too_slow += 0.25) {
        kl_load load = computing();
        load.workers = 16;
        load.use.local_tasks = load.use.local_s = 0;
        load.use.bytes = 1e8; /* all bytes need 0.8 s on a link of 8 ns per byte */
        load.per_byte_s = too_slow * 8e-9;
        kl_load_fit(&load, 1e-3, 0.81);
        assert_false(load.own_links);
        assert_true(load.per_byte_s < 8.2e-9 && load.per_byte_s > 7.9e-9);
        double doubled = kl_model_limit(&load, 32).times / kl_model_limit(&load, 16).times;
        /* for twice the number of workers, a full link loses 6 % of its rate */
        assert_true(fabs(doubled - 2 * pow(2, 0.09)) < 0.05);
    }
}

/* A worker must wait for the core to which it belongs, even if another core is idle. A worker that wakes also
 * finds cold caches. */
static void workers_that_sleep_wait_for_a_core(void **state) {
    (void)state;
    kl_load load = computing();
    load.use.local_s = 0.1; /* each task computes for a tenth of its time, and sleeps otherwise */
    load.workers = 16;      /* the measured run had enough workers to keep the cores awake */
    assert_true(kl_model_limit(&load, 2).times < 1.001);
    double shared = 16 / (kl_station_rate(&(kl_station){0.055e-3, 1}, 0.945e-3, 8) * 1e-3 * 2);
    assert_true(kl_model_limit(&load, 16).times > shared);
    kl_load sleeps = load, computes = load;
    sleeps.use.local_s = 0.499;
    /* workers that compute for more than half of the time do not count as waking */
    computes.use.local_s = 0.501;
    assert_true(kl_model_limit(&computes, 32).times < kl_model_limit(&sleeps, 32).times);
    /* odd numbers of workers give the two cores queues of different length */
    for (uint32_t n = 2; n < 64; n++)
        assert_true(kl_model_limit(&load, n + 1).times >= kl_model_limit(&load, n).times);
}

/* Workers that sleep in their tasks must wake cores that no other worker keeps awake. This costs CPU time. A
 * measured run with few workers includes this cost; a measured run with many workers hardly includes it. */
static void few_workers_wake_idle_cores(void **state) {
    (void)state;
    static const struct {
        double local_s;          /* CPU seconds of 1000 tasks of 1 ms */
        double woken_s, awake_s; /* measured CPU seconds of the master for an answer; 0: not measured */
        double bytes;            /* bytes of the 1000 tasks */
        /* numbers of workers in the measured run and in the forecast, on 2 cores */
        uint32_t measured, workers;
        double saved_s; /* CPU seconds per task that the forecast saves */
    } rows[] = {
        /* the same number of workers as in the measured run saves nothing */
        {0.016, 0, 0, 0, 2, 2, 0},
        /* without waking, a task needs 7 µs; twice the number of workers saves three quarters of the rest */
        {0.016, 0, 0, 0, 2, 4, 6.75e-6},
        {0.016, 0, 0, 0, 2, 32, 9e-6 * (1 - 1.0 / 256)},
        /* the measured run contains little of the cost of waking */
        {0.016, 0, 0, 0, 8, 16, 9e-6 * (1.0 / 16 - 1.0 / 64)},
        /* waking costs at most 25 µs or, if measured, at most what it costs the master */
        {0.060, 0, 0, 0, 2, 4, 18.75e-6},
        {0.060, 100e-6, 60e-6, 0, 2, 4, 30e-6},
        {0.060, 14e-6, 10e-6, 0, 2, 4, 3e-6},
        {0.060, 20e-6, 30e-6, 0, 2, 4, 0},
        /* CPU time below 7 µs contains no cost of waking */
        {0.004, 0, 0, 0, 2, 4, 0},
        /* each byte may cost 0.25 ns, awake or not */
        {0.016, 0, 0, 2e7, 2, 4, 3e-6},
        {0.016, 0, 0, 4e7, 2, 4, 0},
        /* workers that compute most of the time hardly ever wake */
        {0.6, 0, 0, 0, 2, 4, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_load load = computing();
        load.use.local_s = rows[i].local_s;
        load.workers = rows[i].measured;
        load.woken_s = rows[i].woken_s;
        load.awake_s = rows[i].awake_s;
        load.use.bytes = rows[i].bytes;
        double saved_s = kl_model_roused_s(&load, rows[i].workers);
        if (fabs(saved_s - rows[i].saved_s) > 1e-12)
            fail_msg("row %d: %g s", (int)i, saved_s);
    }
}

/* With more workers than cores, the master finds its cores awake, so all its messages cost less. Tasks that
 * compute keep the cores awake anyway. */
static void messages_cost_less_on_cores_that_are_awake(void **state) {
    (void)state;
    kl_load sleeps = computing(), plain;
    sleeps.apart = true; /* the master has cores that no worker uses */
    sleeps.use.local_s = 0.1;
    sleeps.use.farm_s = 0.2;
    sleeps.chunks = 1000; /* each chunk has one task, for any number of workers */
    sleeps.answer_s = 0;
    sleeps.woken_s = 30e-6;
    sleeps.awake_s = 10e-6;
    plain = sleeps;
    plain.awake_s = plain.woken_s;
    assert_true(kl_model_limit(&plain, 256).what == KL_SHARED_MESSAGES);
    double part = kl_model_limit(&sleeps, 256).times / kl_model_limit(&plain, 256).times;
    /* in the measured run, the master was idle for 0.6 of the time, and then had to be woken */
    assert_true(fabs(part - 10 / (10 + 0.6 * 20)) < 0.01);
    sleeps.use.local_s = plain.use.local_s = 1; /* now the tasks compute */
    assert_true(kl_model_limit(&sleeps, 256).times == kl_model_limit(&plain, 256).times);
    /* a master that was busy in the measured run had no time to sleep */
    sleeps.use.local_s = plain.use.local_s = 0.1;
    sleeps.use.farm_s = plain.use.farm_s = 0.5;
    assert_true(kl_model_limit(&sleeps, 256).times == kl_model_limit(&plain, 256).times);
}

/* A wait that the model does not explain is equally long for any number of workers. So it matters little if a
 * resource is busy all the time. */
static void unexplained_waits_are_equal_for_any_number_of_workers(void **state) {
    (void)state;
    kl_load waits = computing(), plain;
    waits.use.local_s = 0.1;
    waits.workers = 2;
    plain = waits;
    kl_load_fit(&plain, 1e-3, 0.5); /* two workers need 1 ms for each task */
    kl_load_fit(&waits, 1e-3, 0.5);
    waits.use.delay_s = 0.2;
    kl_load_fit(&waits, 1.25e-3, 0.625); /* now they need 1.25 ms, of which 0.2 ms are a delay */
    assert_true(waits.wait_s > 0.1e-3 && waits.wait_s < 0.3e-3 && fabs(waits.beyond - 1) < 1e-3);
    double few = kl_model_limit(&waits, 2).times * waits.task_s / (kl_model_limit(&plain, 2).times * 1e-3);
    double many =
        kl_model_limit(&waits, 256).times * waits.task_s / (kl_model_limit(&plain, 256).times * 1e-3);
    assert_true(few > 1.2 && many < 1.02);
}

/* If the cores limit the measured run, a small error of the computed time must not become a long wait. */
static void a_small_error_of_a_busy_station_is_a_short_wait(void **state) {
    (void)state;
    for (double error = 0.02; error < 0.3; error *= 1.5) {
        kl_load load = computing(); /* 8 workers need about 4 ms for each task */
        load.workers = 8;
        double task_s = 4.04e-3 * (1 + error);
        load.use.delay_s = 1000 * (task_s - 1e-3);
        kl_load_fit(&load, task_s, 4.04 / 8 * (1 + error));
        assert_true(fabs(kl_model_limit(&load, 8).times - 4.04 * (1 + error)) < 0.01);
        assert_true(load.wait_s <= 0.05 * error * 1e-3);
        assert_true(kl_model_limit(&load, 2).times < 1.1 * (1 + error));
    }
}

static void bytes_measured_as_cheap_leave_the_cost_to_messages(void **state) {
    (void)state;
    kl_load load = computing();
    load.use.local_s = 0.05;
    load.use.bytes = 1e8;
    load.use.farm_s = 0.02;
    kl_load cheap = load;
    cheap.copy_s = 1e-11;
    cheap.near_s = 1e-4;
    assert_true(kl_model_limit(&cheap, 32).times > 1.05 * kl_model_limit(&load, 32).times);
    cheap.near_s = 1e-6; /* now an empty message is cheap, too */
    assert_true(kl_model_limit(&cheap, 32).times < 1.05 * kl_model_limit(&load, 32).times);
    /* at these costs of a byte, the bytes would take more CPU time than was used, so the model must ignore
     * how much more */
    load.copy_s = 1e-9;
    cheap.copy_s = 1e-6;
    assert_true(kl_model_limit(&cheap, 32).times == kl_model_limit(&load, 32).times);
}

/* If inputs are large, the master's time for a chunk must depend on its bytes, so smaller chunks must cost
 * less. */
static void answers_are_shorter_where_chunks_are_smaller(void **state) {
    (void)state;
    kl_load load = computing();
    load.answer_s = 1e-3;
    load.to_workers = 1;
    assert_true(fabs(kl_model_answer_s(&load, 2) / 1e-3 - 1) < 1e-12);
    /* without bytes, the time must not depend on the size of chunks */
    assert_true(fabs(kl_model_answer_s(&load, 32) / 1e-3 - 1) < 1e-12);
    load.use.bytes = 1e9;
    double four = kl_model_answer_s(&load, 4), many = kl_model_answer_s(&load, 32);
    assert_true(many < four && four < 1e-3);
    /* now only results are large, but the master's answer to a worker does not contain them */
    load.to_workers = 0;
    assert_true(fabs(kl_model_answer_s(&load, 32) / 1e-3 - 1) < 1e-12);
}

static void chunks_are_never_more_than_tasks(void **state) {
    (void)state;
    const double tasks = 4000;
    for (double chunks = 10; chunks < tasks; chunks *= 20) {
        kl_load l = {.workers = 2, .chunks = chunks, .use = {.tasks = tasks}};
        for (uint32_t n = 1; n <= 64; n *= 2)
            assert_true(kl_model_chunks(&l, n) <= tasks);
        assert_true(kl_model_chunks(&l, 1) < chunks);
    }
    kl_load halves = {.workers = 2, .chunks = 40, .task_s = 1e-3, .use = {.tasks = tasks}};
    /* twice the number of workers must get more chunks, but less than twice as many */
    for (uint32_t n = 2; n <= 64; n *= 2)
        assert_true(kl_model_chunks(&halves, 2 * n) > kl_model_chunks(&halves, n) &&
                    kl_model_chunks(&halves, 2 * n) < 2 * kl_model_chunks(&halves, n));
    kl_load dear = halves;
    dear.answer_s = 1e-3; /* this master is too slow to deal single tasks to many workers */
    assert_true(kl_model_chunks(&dear, 32) < kl_model_chunks(&halves, 32));
    /* larger chunks do not save the time to encrypt large inputs */
    dear.copy_s = 1e-9;
    assert_true(kl_model_chunks(&dear, 32) < kl_model_chunks(&halves, 32));
    dear.to_workers = 1;
    dear.use.bytes = 1e9;
    assert_true(kl_model_chunks(&dear, 32) > 0.9 * kl_model_chunks(&halves, 32));
    kl_load each = {.workers = 2, .chunks = tasks, .use = {.tasks = tasks}};
    assert_true(kl_model_chunks(&each, 1) == tasks);
    assert_true(kl_model_chunks(&each, 64) == tasks);
}

static void what_is_shared_takes_as_long_as_its_busiest_part(void **state) {
    (void)state;
    kl_load load = computing();
    /* the cores need longest: two cores share 1.01 s of CPU time */
    assert_true(fabs(kl_model_shared_s(&load, load.chunks) - 1.01 / 2) < 1e-9);
    load.use.callbacks_s = 3;
    assert_true(fabs(kl_model_shared_s(&load, load.chunks) - 3) < 1e-9); /* all callbacks run on one thread */
    load.use.callbacks_s = 0;
    assert_true(kl_model_shared_s(&load, 10 * load.chunks) > kl_model_shared_s(&load, load.chunks));
    assert_true(kl_model_shared_s(&(kl_load){0}, 60) == 0);
}

static void nothing_known_limits_nothing(void **state) {
    (void)state;
    kl_limit limit = kl_model_limit(&(kl_load){0}, 1000);
    assert_true(limit.what == KL_SHARED_NOTHING && limit.times == 1 && limit.used == 0);
}

static void cores_of_its_own_and_small_messages_take_load_away(void **state) {
    (void)state;
    kl_load load = computing(), apart = load;
    load.use.farm_s = apart.use.farm_s = 0.4;
    load.use.bytes = apart.use.bytes = 1e9;
    apart.apart = true;
    assert_true(kl_model_limit(&apart, 8).times < kl_model_limit(&load, 8).times);
    kl_load small = kl_load_with_bytes(&load, 0.1);
    assert_true(kl_model_limit(&small, 8).times < kl_model_limit(&load, 8).times);
    assert_true(small.use.farm_s >= 0 && small.use.local_s >= 0);
    kl_load same = kl_load_with_bytes(&load, 1);
    assert_true(kl_model_limit(&same, 8).times == kl_model_limit(&load, 8).times);
}

/* Tasks must not be faster than alone. This could happen with few workers if sharing slowed the measured run
 * down less than the model says. */
static void no_task_is_quicker_than_alone(void **state) {
    (void)state;
    kl_load load = computing();
    load.workers = 32;
    load.use.local_s = 0.2;
    kl_load_fit(&load, 1e-3, 0.05);
    assert_true(load.beyond < 1);
    for (uint32_t n = 1; n <= 64; n++)
        assert_true(kl_model_limit(&load, n).times >= 1);
}

static void time_kept_from_a_core_is_no_work(void **state) {
    (void)state;
    kl_load load = computing();
    load.use.delay_s = 3; /* others had the cores for 3 s of the 4 s of all tasks */
    assert_true(fabs(kl_load_fit(&load, 4e-3, 2) - 0.25) < 1e-12);
    assert_true(fabs(load.task_s - 1e-3) < 1e-12);
    /* this delay is longer than the run, because the two times may come from different clocks */
    load.use.delay_s = 1e9;
    assert_true(kl_load_fit(&load, 1e-3, 0.5) > 0 && load.task_s > 0);
    assert_true(kl_load_fit(&(kl_load){0}, 4e-3, 1) == 1);
}

/* The forecast for the number of workers of the measured run must be the measured time. This must also hold
 * for tasks with several threads, and for runs without a measured delay. */
static void what_was_measured_is_forecast(void **state) {
    (void)state;
    for (uint32_t workers = 1; workers <= 16; workers++)
        for (int threads = 1; threads <= 4; threads += 3) {
            kl_load load = computing();
            load.workers = workers;
            load.use.local_s *= threads;
            double alone = kl_load_fit(&load, 7e-3, 7.0 / workers);
            assert_true(fabs(kl_model_limit(&load, workers).times * alone - 1) < 1e-9);
        }
    kl_load waits = computing(); /* a run whose workers wait between tasks */
    waits.workers = 16;
    kl_load_fit(&waits, 1e-3, 0.55);
    assert_true(waits.beyond == 1 && kl_model_limit(&waits, 16).times > 7);
    kl_load threads = computing(); /* 8 workers on 2 cores, without a measured delay */
    threads.workers = 8;
    kl_load_fit(&threads, 4e-3, 0.5);
    assert_true(kl_model_limit(&threads, 16).times > 1.5);
}

static void an_interval_is_wider_the_further_it_reaches(void **state) {
    (void)state;
    kl_limit none = {.times = 1, .known = true},
             shared = {.what = KL_SHARED_CORES, .times = 4, .known = true};
    kl_limit unknown = {.times = 1};
    double before = 0;
    for (uint32_t n = 2; n <= 64; n *= 2) {
        kl_interval i = kl_model_interval(1, &(kl_doubt){.runs = 0.02, .known = 2}, n, &none);
        kl_interval wide = kl_model_interval(1, &(kl_doubt){.runs = 0.02, .known = 2}, n, &shared);
        assert_true(i.low_s < 1 && i.high_s > 1 && i.high_s - i.low_s > before);
        assert_true(wide.low_s < i.low_s && wide.high_s > i.high_s);
        kl_interval guess = kl_model_interval(1, &(kl_doubt){.runs = 0.02, .known = 2}, n, &unknown);
        assert_true(n == 2 || guess.high_s - guess.low_s > 2 * (i.high_s - i.low_s));
        before = i.high_s - i.low_s;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_station_serves_what_it_serves_when_played_out),
        cmocka_unit_test(a_station_keeps_its_bounds),
        cmocka_unit_test(a_million_workers_are_no_trouble),
        cmocka_unit_test(more_workers_than_cores_compute_no_faster),
        cmocka_unit_test(an_interval_allows_for_dear_switches),
        cmocka_unit_test(bytes_outside_the_caches_cost_cpu_time),
        cmocka_unit_test(encrypted_bytes_outside_the_caches_cost_both_sides),
        cmocka_unit_test(workers_elsewhere_use_no_caches),
        cmocka_unit_test(a_busy_master_slows_the_workers_of_its_core),
        cmocka_unit_test(a_quick_run_shows_that_cores_are_used_evenly),
        cmocka_unit_test(what_is_needed_most_limits),
        cmocka_unit_test(more_than_a_link_carries_went_over_several),
        cmocka_unit_test(a_busy_link_is_as_quick_as_the_run_shows),
        cmocka_unit_test(workers_that_sleep_wait_for_a_core),
        cmocka_unit_test(few_workers_wake_idle_cores),
        cmocka_unit_test(messages_cost_less_on_cores_that_are_awake),
        cmocka_unit_test(unexplained_waits_are_equal_for_any_number_of_workers),
        cmocka_unit_test(a_small_error_of_a_busy_station_is_a_short_wait),
        cmocka_unit_test(bytes_measured_as_cheap_leave_the_cost_to_messages),
        cmocka_unit_test(answers_are_shorter_where_chunks_are_smaller),
        cmocka_unit_test(chunks_are_never_more_than_tasks),
        cmocka_unit_test(what_is_shared_takes_as_long_as_its_busiest_part),
        cmocka_unit_test(nothing_known_limits_nothing),
        cmocka_unit_test(cores_of_its_own_and_small_messages_take_load_away),
        cmocka_unit_test(no_task_is_quicker_than_alone),
        cmocka_unit_test(time_kept_from_a_core_is_no_work),
        cmocka_unit_test(what_was_measured_is_forecast),
        cmocka_unit_test(an_interval_is_wider_the_further_it_reaches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
