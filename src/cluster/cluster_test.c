/* Test the meaning of descriptions of hosts and tasks, error messages with their columns, and the platform
 * written for SimGrid. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/cluster.h"
#include "sys/sys.h"
#include "trace/trace.h"

static kl_cluster read_cluster(const char *spec) {
    kl_cluster c;
    kilter_error error = {.text = ""};
    if (kl_cluster_parse(spec, &c, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return c;
}

static void a_spec_says_hosts_and_links(void **state) {
    (void)state;
    kl_cluster c = read_cluster("16x1.0,16x0.25@osc(60s,30s);link=20us,1GB/s;master=0.1@drop(2min,0.5)");
    assert_int_equal(c.workers, 32);
    assert_int_equal(c.group_count, 2);
    assert_int_equal(c.groups[0].count, 16);
    assert_true(c.groups[0].host.speed == 1 && c.groups[0].host.profile.count == 0);
    assert_true(c.groups[1].host.speed == 0.25 && c.groups[1].host.profile.period_s == 60);
    assert_true(kl_host_speed(&c.groups[1].host, 29) == 0.25);
    assert_true(kl_host_speed(&c.groups[1].host, 31) == 0.125);
    assert_true(kl_host_speed(&c.groups[1].host, 61) == 0.25);
    assert_true(fabs(c.latency_s - 20e-6) < 1e-18 && c.bytes_per_s == 1e9);
    assert_true(c.master_apart && c.master.speed == 0.1);
    assert_true(kl_host_speed(&c.master, 121) == 0.05);
    kl_cluster_free(&c);
    assert_null(c.groups);
}

static void profiles_change_speeds(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        double at_s, speed;
    } rows[] = {
        {"1x1@drop(0.2s,0.1)", 0.1, 1},
        {"1x1@drop(200ms,0.1)", 0.2, 0.1},
        {"1x2@freeze(5s,20s)", 4, 2},
        {"1x2@freeze(5s,20s)", 10, 2e-9},
        {"1x2@freeze(5s,20s)", 20, 2},
        {"1x1@osc(10s,4s,0.3)", 5, 1},
        {"1x1@osc(10s,4s,0.3)", 17, 0.3},
        {"1x1@osc(10s,10s)", 3, 0.5},
        {"1x2@share(0.5,3ms)", 0.0029, 2},
        {"1x2@share(0.5,3ms)", 0.0031, 2e-9},
        {"1x2@share(0.5,3ms)", 0.0061, 2},
        {"1x1@share(0.25,3ms)", 0.0029, 1},
        {"1x1@share(0.25,3ms)", 0.0119, 1e-9},
        {"1x1@share(0.25,3ms)", 0.0121, 1},
        {"1x1@share(0.75,3ms)", 0.0089, 1},
        {"1x1@share(0.75,3ms)", 0.0091, 1e-9},
        {"1x1@steps(0s:0.5,3s:1,4s:0.1)", 1, 0.5},
        {"1x1@steps(0s:0.5,3s:1,4s:0.1)", 400, 0.1},
        {"1x1@steps(1s:0.5,3s:0.2,every 5s)", 5.5, 1},
        {"1x1@steps(1s:0.5,3s:0.2,every 5s)", 8.5, 0.2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_cluster c = read_cluster(rows[i].spec);
        double speed = kl_host_speed(&c.groups[0].host, rows[i].at_s);
        if (fabs(speed - rows[i].speed) > 1e-15)
            fail_msg("%s at %g s: %g, not %g", rows[i].spec, rows[i].at_s, speed, rows[i].speed);
        kl_cluster_free(&c);
    }
}

/* Invalid descriptions of platforms, each with the column and the text of its error. */
static void what_cannot_be_a_platform_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *spec, *words;
    } rows[] = {
        {"", "column 1: the number of hosts must be a whole number"},
        {"x1", "column 1: the number"},
        {"0x1", "column 1: the number of hosts must be from 1 to 10000000"},
        {"10000001x1", "column 1: the number of hosts must be from 1"},
        {"99999999999999999999999x1", "column 1: the number of hosts"},
        {"9000000x1,9000000x1", "column 11: more than 10000000 hosts"},
        {"16", "column 3: 'x' must follow the number of hosts"},
        {"16x", "column 4: a speed must be a number"},
        {"16x-1", "column 4: a speed must be a number"},
        {"16xnan", "column 4: a speed"},
        {"16xinf", "column 4: a speed"},
        {"16x0", "column 4: a speed must be from 1e-09"},
        {"16x1e300", "column 4: a speed must be from"},
        {"16x1e999", "column 4: a speed must be from"},
        {"16x1,", "column 6: the number of hosts"},
        {"16x1 ", "column 5: not understood"},
        {"16x1.0y", "column 7: not understood"},
        {"4x1@", "column 5: '@' must be followed"},
        {"4x1@wave(3s)", "column 5: '@' must be followed"},
        {"4x1@share(1,3ms)", "column 11: the part must be above 0 and below 1"},
        {"4x1@share(1e-320,3ms)", "column 11: with this part and this slice, a period would be longer than"},
        {"4x1@share(0.5)", "column 14: ',' must follow the part"},
        {"4x1@share(0.5,0s)", "column 15: the slice must be from"},
        {"4x1@osc(60,30s)", "column 11: the period needs a unit"},
        {"4x1@osc(60s)", "column 12: ',' must follow the period"},
        {"4x1@osc(60s,61s)", "column 13: the busy time is longer"},
        {"4x1@osc(60s,30s", "column 16: ')' must follow"},
        {"4x1@osc(0s,0s)", "column 9: the period must be from"},
        {"4x1@osc(60s,30s,0)", "column 17: a factor of the speed must be from"},
        {"4x1@drop(1s)", "column 12: ',' must follow"},
        {"4x1@freeze(2s,2s)", "column 15: a freeze must end after"},
        {"4x1@die(2s,1s)", "column 12: the second time must not be before the first one"},
        {"4x1@join(1)", "column 11: the time it joins needs a unit"},
        {"4x1;cluster=2", "column 14: ',' must follow the number of hosts in a cluster"},
        {"4x1@steps()", "column 11: the time of a step must be a number"},
        {"4x1@steps(1s:1,1s:2)", "column 16: the times of steps must rise"},
        {"4x1@steps(1s:1,every 1s)", "column 22: the period must be longer"},
        {"4x1@steps(1s:1,2s:1,3s:1,4s:1,5s:1,6s:1,7s:1,8s:1,9s:1,10s:1,11s:1,12s:1,13s:1,14s:1,15s:1,16s:1,"
         "17s:1)",
         "column 98: at most 16 steps"},
        {"4x1;", "column 5: ';' must be followed"},
        {"4x1;link=5", "column 11: the latency needs a unit"},
        {"4x1;link=5us,3", "column 15: the bandwidth needs a unit"},
        {"4x1;link=5us;link=6us", "link= is given twice"},
        {"4x1;master=1;link=5us;master=1", "master= is given twice"},
        {"4x1;link=5us,0B/s", "column 14: the bandwidth must be from 1 B/s"},
        {"4x1;master=", "column 12: a speed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_cluster c;
        kilter_error error = {.text = ""};
        kilter_status status = kl_cluster_parse(rows[i].spec, &c, &error);
        if (status != KILTER_ERR_INPUT && status != KILTER_ERR_RANGE)
            fail_msg("'%s' was taken", rows[i].spec);
        if (!strstr(error.text, rows[i].words))
            fail_msg("'%s': '%s' lacks '%s'", rows[i].spec, error.text, rows[i].words);
    }
}

static char *written(const kl_cluster *c) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(kl_cluster_write_simgrid(c, out, NULL), KILTER_OK);
    fclose(out);
    return text;
}

static size_t times(const char *text, const char *word) {
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

static void simgrid_gets_every_host_link_and_profile(void **state) {
    (void)state;
    kl_cluster c = read_cluster("2x1,3x0.25@osc(60s,30s);link=20us,1GB/s;master=0.5@freeze(1s,2s)");
    char *text = written(&c);
    assert_int_equal(times(text, "<host "), 6);
    assert_int_equal(times(text, "<link "), 6);
    assert_int_equal(times(text, "<host_link "), 6);
    assert_int_equal(times(text, "<trace "), 4);
    assert_int_equal(times(text, "<trace_connect "), 4);
    assert_non_null(strstr(text, "<host id=\"n4\" speed=\"250000000f\"/>"));
    assert_non_null(strstr(text, "<host id=\"master\" speed=\"500000000f\"/>"));
    assert_non_null(strstr(text, "bandwidth=\"1000000000Bps\""));
    assert_non_null(strstr(text, "periodicity=\"60\">\n0 1\n30 0.5\n"));
    free(text);
    kl_cluster_free(&c);
    c = read_cluster("2x1;link=20us,1GB/s,half");
    assert_true(c.half_duplex);
    text = written(&c);
    assert_int_equal(times(text, "sharing_policy=\"SHARED\""), 2);
    assert_non_null(strstr(text, "<host_link id=\"n1\" up=\"l_n1\" down=\"l_n1\"/>"));
    free(text);
    kl_cluster_free(&c);
    FILE *full = fopen("/dev/full", "w");
    kilter_error error;
    c = read_cluster("2000x1");
    assert_int_equal(kl_cluster_write_simgrid(&c, full, &error), KILTER_ERR_SYSTEM);
    fclose(full);
    kl_cluster_free(&c);
}

static kl_tasks read_tasks(const char *spec) {
    kl_tasks t;
    kilter_error error = {.text = ""};
    if (kl_tasks_parse(spec, &t, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return t;
}

static void laws_have_their_mean_and_deviation(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        double mean_s, cv, least_s;
    } rows[] = {
        {"100000@const(5ms)", 5e-3, 0, 5e-3},
        {"100000@uniform(1ms,0.5)", 1e-3, 0.5, 0},
        {"100000@normal(2s,0.2)", 2, 0.2, 0},
        {"100000@exp(1us)", 1e-6, 1, 0},
        {"100000@lognormal(1ms,1)", 1e-3, 1, 0},
        {"100000@lognormal(1ms,0.3)", 1e-3, 0.3, 0},
        {"100000@lognormal(1ms,0)", 1e-3, 0, 1e-3},
        {"100000@const(0s)", 0, 0, 0},
        /* times below 0 are set to 0, which changes the mean and the coefficient of variation (cv) */
        {"100000@normal(1ms,0.8)", 1.04e-3, 0.71, 0},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        kl_tasks t = read_tasks(rows[r].spec);
        assert_int_equal(t.count, 100000);
        t.seed = 7;
        double sum = 0, squares = 0, least_s = INFINITY;
        for (uint64_t i = 0; i < t.count; i++) {
            double s = kl_task_s(&t, r, i);
            sum += s;
            squares += s * s;
            least_s = fmin(least_s, s);
        }
        double n = (double)t.count, mean_s = sum / n;
        double cv = mean_s > 0 ? sqrt(fmax(0, squares / n - mean_s * mean_s)) / mean_s : 0;
        if (fabs(mean_s - rows[r].mean_s) > 0.02 * rows[r].mean_s || fabs(cv - rows[r].cv) > 0.04 ||
            least_s < rows[r].least_s * (1 - 1e-12))
            fail_msg("%s: mean %g s, cv %g, least %g s", rows[r].spec, mean_s, cv, least_s);
        kl_tasks_free(&t);
    }
}

static void a_task_takes_what_seed_run_and_index_say(void **state) {
    (void)state;
    kl_tasks a = read_tasks("1000@exp(1s)"), b = a;
    b.seed = 1;
    uint64_t same = 0;
    for (uint64_t i = 0; i < a.count; i++) {
        assert_true(kl_task_s(&a, 3, i) == kl_task_s(&a, 3, i));
        same += kl_task_s(&a, 3, i) == kl_task_s(&a, 4, i);
        same += kl_task_s(&a, 3, i) == kl_task_s(&b, 3, i);
        same += kl_task_s(&a, 3, i) == kl_task_s(&a, 3, i + 1);
    }
    assert_int_equal(same, 0);
}

static void what_cannot_be_tasks_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *spec, *words;
    } rows[] = {
        {"", "column 1: the number of tasks must be a whole number"},
        {"0@const(1s)", "column 1: the number of tasks must be from 1"},
        {"10000000001@const(1s)", "column 1: the number of tasks must be from 1"},
        {"5", "column 2: '@' must follow"},
        {"5@", "column 3: const(MEAN)"},
        {"5@weird(1s)", "column 3: const(MEAN)"},
        {"5@const(1)", "column 10: the mean needs a unit"},
        {"5@const(-1s)", "column 9: the mean must be a number"},
        {"5@const(1s,2)", "column 11: ')' must follow"},
        {"5@const(1e10s)", "column 9: the mean must be from 0 s"},
        {"5@normal(1s)", "column 12: ',' must follow the mean"},
        {"5@normal(1s,1.5)", "column 13: the deviation over the mean must be from 0 to 1"},
        {"5@uniform(1s,0.6)", "column 14: the deviation over the mean must be from 0 to 0.577"},
        {"5@lognormal(1s,-1)", "column 16: the deviation over the mean must be a number"},
        {"5@exp(1s)x", "column 10: not understood"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_tasks t;
        kilter_error error = {.text = ""};
        kilter_status status = kl_tasks_parse(rows[i].spec, &t, &error);
        if (status != KILTER_ERR_INPUT && status != KILTER_ERR_RANGE)
            fail_msg("'%s' was taken", rows[i].spec);
        if (!strstr(error.text, rows[i].words))
            fail_msg("'%s': '%s' lacks '%s'", rows[i].spec, error.text, rows[i].words);
    }
}

static void push_chunk(kl_trace *t, uint64_t id, uint64_t lo, uint64_t hi, uint32_t worker, double busy_s,
                       bool lost) {
    kl_trace_chunk(t, &(kl_trace_chunk_row){.chunk = id,
                                            .lo = lo,
                                            .hi = hi,
                                            .worker = worker,
                                            .units = (double)(hi - lo),
                                            .busy_s = busy_s,
                                            .lost = lost});
}

/* Worker 1 has half the speed of worker 0, so the mean speed is 3/4 of worker 0's. */
static void a_record_says_how_long_its_tasks_took(void **state) {
    (void)state;
    char *folder, path[200], spec[220];
    assert_int_equal(kl_private_dir(&folder, NULL), KILTER_OK);
    snprintf(path, sizeof path, "%s/a.kilter", folder);
    snprintf(spec, sizeof spec, "file=%s", path);
    kl_trace *t;
    kl_trace_run_row row = {
        .program = "p", .version = "1", .transport = "zmq", .policy = "gss", .host = "h", .control = ""};
    assert_int_equal(kl_trace_open(path, &row, &t, NULL), KILTER_OK);
    kl_trace_iteration(t, &(kl_trace_iteration_row){.tasks = 60, .units = 60, .policy = "gss"});
    push_chunk(t, 0, 0, 20, 0, 2, false); /* each of these tasks took 0.1 s */
    /* each of these tasks took 0.2 s; another worker executed the other tasks */
    push_chunk(t, 2, 40, 50, 1, 2, true);
    push_chunk(t, 1, 20, 40, 1, 4, false); /* each of these tasks took 0.2 s */
    push_chunk(t, 3, 50, 60, 0, 1, false);
    kl_trace_iteration_ended(t, &(kl_trace_iteration_end){.ended_s = 9, .decision = "", .status = "done"});
    assert_int_equal(kl_trace_close(t, 9, NULL), KILTER_OK);
    kl_tasks tasks = read_tasks(spec);
    assert_int_equal(tasks.count, 60);
    double each_s = 0.1 / 0.75;
    for (uint64_t i = 0; i < 60; i++)
        assert_true(fabs(kl_task_s(&tasks, i % 3, i) - each_s) < 1e-12);
    assert_true(fabs(tasks.mean_s - each_s) < 1e-12);
    kl_tasks_free(&tasks);
    unlink(path);
    kilter_error error;
    assert_int_equal(kl_tasks_parse(spec, &tasks, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, path));
    rmdir(folder);
    free(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_says_hosts_and_links),
        cmocka_unit_test(profiles_change_speeds),
        cmocka_unit_test(what_cannot_be_a_platform_is_refused),
        cmocka_unit_test(simgrid_gets_every_host_link_and_profile),
        cmocka_unit_test(laws_have_their_mean_and_deviation),
        cmocka_unit_test(a_task_takes_what_seed_run_and_index_say),
        cmocka_unit_test(what_cannot_be_tasks_is_refused),
        cmocka_unit_test(a_record_says_how_long_its_tasks_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
