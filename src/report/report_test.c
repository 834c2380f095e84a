#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/report.h"
#include "report/text.h"
#include "trace/record_test_helper.h"
#include "trace/trace.h"

/* ---- making records ---- */

static kl_trace *open_trace_of(const char *file, const char *program, bool loop) {
    kl_trace *t = NULL;
    kilter_error error;
    kl_trace_run_row run = {.program = program,
                            .version = "0.1.0",
                            .transport = "zmq",
                            .policy = "auto",
                            .host = "ada",
                            .began_unix_s = 1.7e9,
                            .pid = 4242,
                            .control = "/run/kilter-1/control",
                            .loop = loop};
    if (kl_trace_open(file, &run, &t, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return t;
}

static kl_trace *open_trace(const char *file, const char *program) {
    return open_trace_of(file, program, false);
}

static void close_trace(kl_trace *t, double ended_s) {
    kilter_error error;
    if (kl_trace_close(t, ended_s, &error) != KILTER_OK)
        fail_msg("%s", error.text);
}

static void push_chunk(kl_trace *t, uint64_t run, uint64_t i, uint32_t worker, double units, double busy_s,
                       double ended_s) {
    kl_trace_chunk(t, &(kl_trace_chunk_row){.run = run,
                                            .chunk = i,
                                            .lo = 10 * i,
                                            .hi = 10 * i + 10,
                                            .worker = worker,
                                            .units = units,
                                            .dealt_s = ended_s - busy_s,
                                            .began_s = ended_s - busy_s,
                                            .ended_s = ended_s,
                                            .busy_s = busy_s});
}

static void push_deal(kl_trace *t, uint64_t chunk, const char *reason, double forecast_s) {
    kl_decision d = {
        .kind = KL_DECIDES_DEAL, .subject = (int64_t)chunk, .count = 10, .forecast_s = forecast_s};
    snprintf(d.reason, sizeof d.reason, "%s", reason);
    kl_trace_decision(t, &(kl_trace_moment){.now_s = 1, .chunk = chunk}, &d);
}

/* Record 40 tasks on two workers. Worker 1 runs at half speed. A third worker gets no task, and a fourth one
 * joins too late. One chunk is lost. */
static void push_example(kl_trace *t) {
    kl_trace_worker(t, &(kl_trace_worker_row){0, "ada", "core 0", 1, 0.5});
    kl_trace_worker(t, &(kl_trace_worker_row){1, "bob", "core 1", 2, 0.5});
    kl_trace_worker(t, &(kl_trace_worker_row){2, "idle", "", 3, 0.5});
    kl_trace_worker(t, &(kl_trace_worker_row){3, "late", "", 3, 99});
    kl_trace_iteration(t, &(kl_trace_iteration_row){0, 40, 40, "gss", 7, 1, 0});
    push_chunk(t, 0, 0, 0, 10, 1, 2);
    push_chunk(t, 0, 1, 1, 10, 4, 5);
    push_chunk(t, 0, 2, 0, 10, 3, 5);
    push_chunk(t, 0, 3, 0, 10, 2, 5);
    kl_trace_chunk(t,
                   &(kl_trace_chunk_row){.run = 0, .chunk = 4, .lo = 1, .hi = 1, .worker = 1, .lost = true});
    push_deal(t, 0, "first", 1.5);
    push_deal(t, 1, "last", 5.5);
    kl_trace_decision(t, &(kl_trace_moment){.now_s = 1, .chunk = UINT64_MAX},
                      &(kl_decision){KL_DECIDES_WITHHOLD, 2, 0, 0, 0, 0, "nothing left"});
    kl_trace_decision(t, &(kl_trace_moment){.chunk = UINT64_MAX},
                      &(kl_decision){KL_DECIDES_WORKERS, KL_SUBJECT_ALL, 2, 9.5, -1, 0, "two"});
    kl_trace_decision(t, &(kl_trace_moment){.chunk = UINT64_MAX},
                      &(kl_decision){KL_DECIDES_WORKERS, KL_SUBJECT_ALL, 3, 0, 0, 0, "three"});
    kl_trace_measurement(t, &(kl_trace_measurement_row){1, -1, "round_trip_s", 1, 0, 1});
    kl_trace_measurement(t, &(kl_trace_measurement_row){2, -1, "round_trip_s", 2, 0.5, 9});
    kl_trace_measurement(t, &(kl_trace_measurement_row){2, 1, "unit_s", 0.4, 0.125, 10});
}

static void push_example_end(kl_trace *t) {
    kl_trace_worker_left(t, 2, 4, "bored");
    kl_trace_iteration_ended(t, &(kl_trace_iteration_end){0, 3, 4, 2, 6, 4, 8, "dealt it", "done"});
}

static kl_report *read_report(const char *file) {
    kl_report *report = NULL;
    kilter_error error;
    if (kl_report_read(file, &report, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return report;
}

static void assert_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* ---- the values of the report ---- */

static void check_example_shares(const kl_report_iteration *it) {
    assert_int_equal(it->share_count, 3);
    const kl_report_share *s = it->shares;
    assert_int_equal(s[0].tasks, 30);
    assert_int_equal(s[0].chunks, 3);
    assert_near(s[0].busy_s, 6);
    assert_near(s[0].task_share, 0.75);
    assert_near(s[0].speed_relative, 1);
    assert_near(s[0].unit_s, 0.2);
    assert_near(s[0].task_s, 0.2);
    /* three chunks of 10 units took 0.1, 0.3 and 0.2 s per unit; the variance is (10·0.01 + 10·0.01 + 0)/2 */
    assert_near(s[0].unit_sd, sqrt(0.1));
    assert_int_equal(s[1].tasks, 10);
    assert_int_equal(s[1].lost_chunks, 1);
    assert_near(s[1].speed_relative, 0.5);
    assert_near(s[1].unit_sd, 0.125); /* standard deviation of the times of single tasks */
    assert_int_equal(s[2].worker, 2); /* worker 2 was present and did no task */
    assert_int_equal(s[2].tasks, 0);
    assert_near(s[2].busy_share, 0);
    assert_true(isnan(s[2].unit_s) && isnan(s[2].speed_relative));
}

/* A mean is over the measurements of the whole farm in a range of runs. */
static void means_of_runs(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file, "prog");
    for (uint64_t run = 0; run < 3; run++) {
        double began_s = 10 * (double)run;
        kl_trace_iteration(t, &(kl_trace_iteration_row){run, 40, 40, "gss", 0, began_s, 0});
        kl_trace_measurement(t, &(kl_trace_measurement_row){began_s + 5, -1, "farm_cpu_s", began_s, 0, 1});
        kl_trace_measurement(t, &(kl_trace_measurement_row){began_s + 5, -1, "messages", 7, 0, 1});
        kl_trace_measurement(t, &(kl_trace_measurement_row){began_s + 5, -1, "messages", -7, 0, 1});
        kl_trace_measurement(t, &(kl_trace_measurement_row){began_s + 5, 1, "farm_cpu_s", 99, 0, 1});
    }
    close_trace(t, 30);
    static const struct {
        uint64_t runs[2];
        double farm_cpu_s;
    } rows[] = {{{0, 2}, 10}, {{1, 2}, 15}, {{2, 2}, 20}, {{0, 1}, 5}, {{1, 1}, 10}};
    kl_report_mean means[] = {{"messages", 0}, {"farm_cpu_s", 0}, {"unheard_of", 0}};
    kilter_error error;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(kl_report_means(file, rows[i].runs, means, 3, &error), KILTER_OK);
        assert_near(means[0].value, 7);
        assert_near(means[1].value, rows[i].farm_cpu_s);
        assert_true(isnan(means[2].value));
    }
    const uint64_t none[2] = {3, 3};
    assert_int_equal(kl_report_means(file, none, means, 3, &error), KILTER_OK);
    assert_true(isnan(means[0].value));
    assert_int_equal(kl_report_means("/nowhere/a.kilter", none, means, 3, &error), KILTER_ERR_INPUT);
}

static void a_finished_run(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file, "prog");
    push_example(t);
    push_example_end(t);
    close_trace(t, 7);
    kl_report *r = read_report(file);
    assert_string_equal(r->path, file);
    assert_string_equal(r->run.program, "prog");
    assert_string_equal(r->run.host, "ada");
    assert_true(r->run.ended);
    assert_near(r->run.ended_s, 7);
    assert_int_equal(r->worker_count, 4);
    assert_string_equal(r->workers[2].why, "bored");
    assert_null(r->workers[1].why);
    assert_true(isnan(r->workers[1].left_s));

    assert_int_equal(r->iteration_count, 1);
    const kl_report_iteration *it = r->iterations;
    assert_true(it->ended);
    assert_near(it->elapsed_s, 5);
    assert_near(it->efficiency, 0.8);
    assert_near(it->equal_split_efficiency, 0.5);
    assert_int_equal(it->tasks_done, 40);
    assert_int_equal(it->failed, 3);
    assert_near(it->shares[0].busy_share, 6.0 / 5);
    check_example_shares(it);

    assert_int_equal(r->decision_count, 3);
    assert_string_equal(r->decisions[0].kind, "deal");
    assert_string_equal(r->decisions[0].last_reason, "last");
    assert_int_equal(r->decisions[0].tasks, 20);
    assert_int_equal(r->decisions[0].forecasts, 2);
    /* one chunk ended 0.5 s later than forecast, another 0.5 s earlier */
    assert_near(r->decisions[0].late_s, 0);
    assert_near(r->decisions[0].missed_s, 0.5);
    assert_int_equal(r->decisions[1].forecasts, 0);
    assert_string_equal(r->decisions[2].last_reason,
                        "three"); /* this decision is about a whole run, and the run has ended */
    assert_int_equal(r->decisions[2].tasks, 0);
    assert_int_equal(r->decisions[2].forecasts, 1);
    assert_near(r->decisions[2].late_s, -3.5);
    assert_int_equal(r->measurement_count, 2);
    assert_near(r->measurements[0].value, 2);
    assert_int_equal(r->measurements[0].worker, -1);
    assert_int_equal(r->measurements[1].worker, 1);
    kl_report_free(r);
}

/* Wait until the file has the row that push_example() adds last. */
static void wait_for_example(const char *file) {
    sqlite3 *db;
    sqlite3_stmt *count;
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 20000);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM measurement", -1, &count, NULL), SQLITE_OK);
    for (;;) {
        assert_int_equal(sqlite3_step(count), SQLITE_ROW);
        if (sqlite3_column_int64(count, 0) >= 3)
            break;
        sqlite3_reset(count);
        sched_yield();
    }
    sqlite3_finalize(count);
    sqlite3_close(db);
}

static void check_unfinished(const char *file) {
    kl_report *r = read_report(file);
    assert_false(r->run.ended);
    assert_int_equal(r->iteration_count, 1);
    const kl_report_iteration *it = r->iterations;
    assert_false(it->ended);
    assert_near(it->elapsed_s, 4); /* the time until the last chunk ended */
    assert_int_equal(it->chunks, 4);
    assert_int_equal(it->workers, 2);
    assert_true(isnan(it->efficiency) && isnan(it->bound_s));
    assert_null(it->decision);
    check_example_shares(it);
    kl_report_free(r);
}

static void a_run_that_goes_on(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file, "prog");
    push_example(t);
    wait_for_example(file);
    check_unfinished(file);
    push_example_end(t);
    close_trace(t, 7);
    kl_report *r = read_report(file);
    assert_true(r->iterations[0].ended);
    kl_report_free(r);
}

static void a_run_that_was_killed(void **state) {
    const char *file = ((place *)*state)->file;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        kl_trace *t = open_trace(file, "prog");
        push_example(t);
        if (write(ends[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    wait_for_example(file);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    check_unfinished(file);
}

/* ---- files that are not records ---- */

static void refuses(const char *file, const char *words) {
    kl_report *report = (kl_report *)file;
    kilter_error error = {0};
    assert_int_equal(kl_report_read(file, &report, &error), KILTER_ERR_INPUT);
    assert_ptr_equal(report, file); /* after a failure, `report` is unchanged */
    if (!strstr(error.text, words) || !strstr(error.text, file))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.text, words, file);
}

static void write_file(const char *file, const void *data, size_t size) {
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static char *read_file(const char *file, size_t *size) {
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    struct stat info;
    assert_int_equal(fstat(fileno(f), &info), 0);
    char *data = malloc((size_t)info.st_size + 1);
    assert_non_null(data);
    *size = fread(data, 1, (size_t)info.st_size, f);
    assert_int_equal(*size, info.st_size);
    fclose(f);
    return data;
}

static void change(const char *file, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

static void files_of_other_kinds(void **state) {
    place *p = *state;
    refuses(p->file, "No such file");
    refuses(p->folder, "not a file");
    write_file(p->file, "", 0);
    refuses(p->file, "empty");
    static const char words[] = "dear diary, today I was not a record, nor will I be one tomorrow";
    write_file(p->file, words, sizeof words - 1);
    refuses(p->file, "not a run record");
    unlink(p->file);
    change(p->file, "CREATE TABLE run(program)");
    refuses(p->file, "not a run record");
}

static void a_newer_format(void **state) {
    const char *file = ((place *)*state)->file;
    close_trace(open_trace(file, "prog"), 1);
    change(file, "PRAGMA user_version = 3");
    refuses(file, "format 3");
    change(file, "PRAGMA user_version = 0");
    refuses(file, "not a run record");
}

static void expect_control(const char *file, const char *expected) {
    kl_report *report;
    for (int run_only = 0; run_only < 2; run_only++) {
        assert_int_equal((run_only ? kl_report_read_run : kl_report_read)(file, &report, NULL), KILTER_OK);
        assert_string_equal(report->run.program, "prog");
        assert_string_equal(report->run.control, expected);
        kl_report_free(report);
    }
}

/* Records of earlier versions lack the column with the name of the socket. They must be readable. In a record
 * from elsewhere, the column may hold anything. */
static void the_control_socket(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file, "prog");
    expect_control(file,
                   "/run/kilter-1/control"); /* the record has the name of the socket from the beginning */
    close_trace(t, 1);
    expect_control(file, "/run/kilter-1/control");
    change(file, "UPDATE run SET control = NULL");
    expect_control(file, "");
    change(file, "ALTER TABLE run DROP COLUMN control");
    expect_control(file, "");
}

static void records_that_lack_something(void **state) {
    const char *file = ((place *)*state)->file;
    close_trace(open_trace(file, "prog"), 1);
    change(file, "DELETE FROM run");
    refuses(file, "no run in it");
    change(file, "DROP TABLE chunk");
    refuses(file, "chunk");
    change(file, "CREATE VIEW chunk AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                 "SELECT i AS run, i AS worker, i AS lo, i AS hi, 0 AS lost, 0 AS failed, 1 AS units, "
                 "1 AS busy_s, 1 AS ended_s FROM n"); /* a query of this view would never end */
    refuses(file, "damaged");
}

static void print_both(const kl_report *r) {
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    kl_report_print_text(r, nowhere);
    kl_report_print_json(r, nowhere);
    fclose(nowhere);
}

/* A record must be readable even if its writer was killed after it had created the tables and before it wrote
 * a row. */
static void a_loop_that_has_only_begun(void **state) {
    const char *file = ((place *)*state)->file;
    kilter_error error = {0};
    close_trace(open_trace_of(file, "prog", true), 1);
    kl_report *r = read_report(file);
    assert_non_null(r->loop);
    assert_false(r->loop->ended);
    print_both(r);
    kl_report_free(r);
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    assert_int_equal(kl_gantt_write(file, -1, nowhere, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, "no round"));
    fclose(nowhere);
}

static char *example_bytes(const char *file, size_t *size) {
    kl_trace *t = open_trace(file, "prog");
    push_example(t);
    for (uint64_t i = 5; i < 400; i++)
        push_chunk(t, i / 100, i, (uint32_t)(i % 3), 10, 1, 2);
    push_example_end(t);
    close_trace(t, 7);
    return read_file(file, size);
}

static void cut_anywhere_it_is_refused(void **state) {
    const char *file = ((place *)*state)->file;
    size_t size;
    char *bytes = example_bytes(file, &size);
    for (size_t cut = 1; cut < size; cut += 97) {
        write_file(file, bytes, cut);
        refuses(file, "record");
    }
    for (size_t cut = 4096; cut < size; cut += 4096) { /* files that are cut between two pages */
        write_file(file, bytes, cut);
        refuses(file, "damaged or cut");
    }
    free(bytes);
}

static void draw_nowhere(const char *file) {
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    kl_gantt_write(file, -1, nowhere, NULL);
    fclose(nowhere);
}

/* Change bytes of a record at random. Reading it must either fail, or give something that can be printed
 * without a memory fault. */
static void flip_bytes(const char *file, const char *bytes, size_t size, uint64_t times) {
    int refused = 0;
    for (uint64_t i = 0; i < times; i++) {
        char *broken = malloc(size);
        assert_non_null(broken);
        memcpy(broken, bytes, size);
        for (uint64_t k = 0; k < 1 + i % 4; k++) {
            uint64_t random = kl_mix64(4 * i + k);
            /* half of the records are changed in their first pages, which describe the tables */
            broken[(random >> 8) % (i % 2 ? size : 4096)] ^= (char)(1 + random % 255);
        }
        write_file(file, broken, size);
        free(broken);
        kl_report *r = NULL;
        kilter_error error = {0};
        if (kl_report_read(file, &r, &error) == KILTER_OK) {
            print_both(r);
            if (r->loop)
                draw_nowhere(file);
            kl_report_free(r);
        } else {
            refused++;
            assert_int_equal(error.status, KILTER_ERR_INPUT);
            assert_non_null(strstr(error.text, file));
        }
    }
    assert_true((uint64_t)refused > times / 15);
}

static void flipped_bytes_do_no_harm(void **state) {
    const char *file = ((place *)*state)->file;
    size_t size;
    char *bytes = example_bytes(file, &size);
    flip_bytes(file, bytes, size, 1500);
    free(bytes);
}

/* A record that was copied to a read-only medium, without its log, must be readable. */
static void a_lone_file_on_a_read_only_medium(void **state) {
    place *p = *state;
    close_trace(open_trace(p->file, "prog"), 1);
    change(p->file, "PRAGMA journal_mode = WAL");
    assert_int_equal(chmod(p->file, 0444), 0);
    assert_int_equal(chmod(p->folder, 0555), 0);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        kl_report *r = NULL;
        _exit(kl_report_read(p->file, &r, NULL) == KILTER_OK && r->run.ended ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(p->folder, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- printing ---- */

static char *printed(const kl_report *r, void (*print)(const kl_report *, FILE *)) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    print(r, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* Change a record so that it has format 1. */
static void age(const char *file) {
    change(file,
           "CREATE TABLE move(round INTEGER PRIMARY KEY, iterations INTEGER NOT NULL, at_s REAL, "
           "now_s REAL, then_s REAL, gain_s REAL, cost_s REAL, settled_s REAL, came_s REAL, spent_s REAL, "
           "refused INTEGER NOT NULL DEFAULT 0);"
           "INSERT INTO move(round, iterations, gain_s, cost_s, settled_s, came_s, spent_s, refused) "
           "SELECT round, count, gain_s, cost_s, settled_s, came_s, spent_s, refused FROM decision "
           "WHERE kind = 'move';"
           "ALTER TABLE decision RENAME COLUMN subject TO worker;"
           "ALTER TABLE decision DROP COLUMN cost_s; ALTER TABLE decision DROP COLUMN settled_s;"
           "ALTER TABLE decision DROP COLUMN came_s; ALTER TABLE decision DROP COLUMN spent_s;"
           "ALTER TABLE decision DROP COLUMN refused; PRAGMA user_version = 1");
}

static void expect_the_same_when_aged(const char *file) {
    kl_report *now = read_report(file);
    char *is = printed(now, kl_report_print_json), *text = printed(now, kl_report_print_text);
    age(file);
    kl_report *then = read_report(file);
    char *was = printed(then, kl_report_print_json), *was_text = printed(then, kl_report_print_text);
    assert_string_equal(was, is);
    assert_string_equal(was_text, text);
    free(is);
    free(text);
    free(was);
    free(was_text);
    kl_report_free(now);
    kl_report_free(then);
}

static void check_width(const char *text) {
    for (const char *line = text; *line;) {
        size_t bytes = strcspn(line, "\n");
        char copy[1024];
        assert_true(bytes < sizeof copy);
        memcpy(copy, line, bytes);
        copy[bytes] = '\0';
        if (kl_utf8_columns(copy) > 110)
            fail_msg("%zu columns: %s", kl_utf8_columns(copy), copy);
        if (bytes > 0 && copy[bytes - 1] == ' ')
            fail_msg("the line ends with a space: %s", copy);
        for (const char *c = copy; *c; c++)
            assert_true((unsigned char)*c >= 0x20);
        line += bytes + (line[bytes] == '\n');
    }
}

static void check_json(const char *text) {
    sqlite3 *db;
    sqlite3_stmt *valid;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT json_valid(?1)", -1, &valid, NULL), SQLITE_OK);
    sqlite3_bind_text(valid, 1, text, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(valid), SQLITE_ROW);
    if (!sqlite3_column_int(valid, 0))
        fail_msg("not JSON: %s", text);
    sqlite3_finalize(valid);
    sqlite3_close(db);
    for (const char *s = text; *s; s += kl_utf8_bytes(s))
        assert_true(kl_utf8_bytes(s) > 0);
}

/* Return one of several texts that a hostile or careless user might give. */
static const char *nasty(uint64_t i) {
    static const char *const words[] = {
        "",
        "\"quoted\\\"",
        "tab\tnewline\nescape\033[2J",
        "\xff\xc0\xaf\xed\xa0\x80 cut \xe2\x82",
        "öäü µ €",
        "a-very-long-name-that-goes-on-and-on-and-on-and-on-and-on-without-any-place-to-break-it-at-all-"
        "until-it-is-wider-than-a-report",
        "many words one after the other, as in a sentence that explains at length why something was done so "
        "and "
        "not otherwise, although it could have been, had somebody asked for it in time; nobody did",
    };
    return words[i % (sizeof words / sizeof *words)];
}

static void push_nasty(kl_trace *t, uint64_t seed) {
    uint32_t workers = 1 + (uint32_t)(kl_mix64(seed) % 30);
    for (uint32_t w = 0; w < workers; w++) {
        kl_trace_worker(t, &(kl_trace_worker_row){w, nasty(seed + w), nasty(seed / 3 + w), -1, 0});
        if (w % 3 == 2)
            kl_trace_worker_left(t, w, 1e9, nasty(seed + w + w));
    }
    for (uint64_t run = 0; run < seed % 17; run++) {
        double scale = pow(10, (double)(kl_mix64(seed + run) % 24) - 12);
        kl_trace_iteration(t, &(kl_trace_iteration_row){run, 1u << 30, scale, nasty(run), 1, (double)run, 0});
        for (uint64_t i = 0; i < seed % 50; i++)
            push_chunk(t, run, i, (uint32_t)(kl_mix64(i ^ seed) % workers), scale, scale * (double)(i + 1),
                       (double)run + scale);
        kl_decision d = {.count = 1, .forecast_s = scale};
        snprintf(d.reason, sizeof d.reason, "%s", nasty(run));
        kl_trace_decision(t, &(kl_trace_moment){.run = run}, &d);
        if (run % 2)
            kl_trace_iteration_ended(t, &(kl_trace_iteration_end){run, 1, 5, workers, (double)run + scale,
                                                                  scale / 2, scale * 2, nasty(seed * run),
                                                                  nasty(seed + run)});
    }
    kl_trace_measurement(t, &(kl_trace_measurement_row){0, -1, "message_fixed_s", (double)NAN, 0, 1});
    kl_trace_measurement(t, &(kl_trace_measurement_row){0, -1, "answer_s", (double)INFINITY, 0, 1});
}

/* Give some decisions a kind that Kilter does not know, as a record from elsewhere may have. */
static void name_kinds(const char *file, const char *kind) {
    sqlite3 *db;
    sqlite3_stmt *update;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "UPDATE decision SET kind = ?1 WHERE id % 4 = 0", -1, &update, NULL),
        SQLITE_OK);
    sqlite3_bind_text(update, 1, kind, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(update), SQLITE_DONE);
    sqlite3_finalize(update);
    sqlite3_close(db);
}

static void push_nasty_loop(kl_trace *t, uint64_t seed) {
    uint32_t ranks = 1 + (uint32_t)(kl_mix64(seed) % 90);
    uint64_t n = 1 + kl_mix64(seed + 1) % (1u << 30);
    kl_trace_loop(t, &(kl_trace_loop_row){nasty(seed), nasty(seed + 1), n, 1u << 30, ranks, seed % 2});
    for (uint32_t r = 0; r < ranks; r++)
        kl_trace_worker(t, &(kl_trace_worker_row){r, nasty(seed + r), "", -1, 0});
    for (uint64_t round = 1; round < 2 + seed % 40; round++) {
        double scale = pow(10, (double)(kl_mix64(seed + round) % 16) - 12);
        kl_trace_round(t,
                       &(kl_trace_round_row){round, round, (double)round, scale, scale, scale / 2, 1u << 30});
        for (uint32_t r = 0; r < ranks + 1; r++) /* use one rank more than the loop has */
            kl_trace_share(t, &(kl_trace_share_row){round, r, UINT64_MAX, n, n, scale, scale, 1 / scale});
        kl_decision d = {KL_DECIDES_MOVE, KL_SUBJECT_ALL, n, 0, scale, scale, ""};
        const kl_trace_moment when = {.now_s = (double)round, .chunk = UINT64_MAX, .round = round};
        kl_trace_decision(t, &when, &d);
        if (round % 3)
            kl_trace_settled(t, &(kl_trace_outcome){round, (double)round, -scale, scale});
        else
            kl_trace_refused(t, round);
        d.kind = round % 2 ? KL_DECIDES_WAIT : KL_DECIDES_STAY;
        d.cost_s = 0;
        snprintf(d.reason, sizeof d.reason, "%s", nasty(round));
        kl_trace_decision(t, &when, &d);
    }
    if (seed % 3)
        kl_trace_loop_ended(t, &(kl_trace_loop_end){1e6, 1e6, n, n, n, n, seed % 2, 1e6, -1e6, (double)NAN,
                                                    nasty(seed + 2), nasty(seed + 3)});
}

static char *nasty_loop(const char *file, uint64_t seed, size_t *size) {
    kl_trace *t = open_trace_of(file, nasty(seed), true);
    push_nasty_loop(t, seed);
    close_trace(t, 1e7);
    name_kinds(file, nasty(seed + 5));
    return read_file(file, size);
}

static void any_loop_prints_and_is_drawn_within_bounds(void **state) {
    const char *file = ((place *)*state)->file;
    for (uint64_t seed = 0; seed < 35; seed++) {
        size_t size;
        free(nasty_loop(file, seed, &size));
        kl_report *r = read_report(file);
        char *text = printed(r, kl_report_print_text), *json = printed(r, kl_report_print_json);
        check_width(text);
        check_json(json);
        free(text);
        free(json);
        kl_report_free(r);
        FILE *nowhere = fopen("/dev/null", "w");
        assert_non_null(nowhere);
        kilter_error error;
        if (kl_gantt_write(file, -1, nowhere, &error) != KILTER_OK)
            fail_msg("%s", error.text);
        fclose(nowhere);
        unlink(file);
    }
}

static void flipped_bytes_of_a_loop_do_no_harm(void **state) {
    const char *file = ((place *)*state)->file;
    size_t size;
    char *bytes = nasty_loop(file, 5, &size);
    flip_bytes(file, bytes, size, 300);
    free(bytes);
}

static void check_sums(const kl_report *r) {
    for (size_t i = 0; i < r->iteration_count; i++) {
        const kl_report_iteration *it = &r->iterations[i];
        double shares = 0, fastest = 0;
        uint64_t tasks = 0;
        for (size_t k = 0; k < it->share_count; k++) {
            assert_true(k == 0 || it->shares[k].worker > it->shares[k - 1].worker);
            tasks += it->shares[k].tasks;
            shares += it->tasks_done ? it->shares[k].task_share : 0;
            fastest = fmax(fastest, isnan(it->shares[k].speed_relative) ? 0 : it->shares[k].speed_relative);
        }
        assert_int_equal(tasks, it->tasks_done);
        if (it->tasks_done > 0) {
            assert_near(shares, 1);
            assert_near(fastest, 1);
        }
    }
}

static void records_of_format_1_tell_the_same(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file, "prog");
    push_example(t);
    push_example_end(t);
    close_trace(t, 10);
    expect_the_same_when_aged(file);
    /* records of the first versions have neither the table `move` nor the column `round` */
    change(file, "DROP TABLE move; ALTER TABLE decision DROP COLUMN round");
    kl_report_free(read_report(file));
    unlink(file);
    for (uint64_t seed = 1; seed < 35; seed += 11) {
        size_t size;
        free(nasty_loop(file, seed, &size));
        expect_the_same_when_aged(file);
        unlink(file);
    }
}

static void any_record_prints_within_bounds(void **state) {
    const char *file = ((place *)*state)->file;
    for (uint64_t seed = 0; seed < 35; seed++) {
        kl_trace *t = open_trace(file, nasty(seed));
        push_nasty(t, seed);
        close_trace(t, 1e7);
        name_kinds(file, nasty(seed));
        kl_report *r = read_report(file);
        check_sums(r);
        char *text = printed(r, kl_report_print_text), *json = printed(r, kl_report_print_json);
        check_width(text);
        check_json(json);
        free(text);
        free(json);
        kl_report_free(r);
        unlink(file);
    }
}

static void printable(const char *from, size_t columns, const char *expected) {
    char to[256];
    kl_printable(to, sizeof to, from, columns);
    assert_string_equal(to, expected);
}

static void text_is_made_printable(void **state) {
    (void)state;
    printable("abc", 3, "abc");
    printable("abcd", 3, "ab…");
    printable("äöü", 3, "äöü");
    printable("äöüß", 3, "äö…");
    printable("", 3, "");
    printable("abc", 0, "");
    printable("a\nb\xff\x7f\xc2\x85", 9, "a?b???");
    /* a surrogate, a character above U+10FFFF, and an overlong form */
    printable("\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80", 20, "?????????");
    char small[8];
    kl_printable(small, sizeof small, "0123456789", 10);
    assert_true(strlen(small) < sizeof small);
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(a_run_that_was_killed), /* this test must run first, because it forks */
        IN_A_PLACE(a_lone_file_on_a_read_only_medium),
        IN_A_PLACE(means_of_runs),
        IN_A_PLACE(a_finished_run),
        IN_A_PLACE(a_run_that_goes_on),
        IN_A_PLACE(files_of_other_kinds),
        IN_A_PLACE(a_newer_format),
        IN_A_PLACE(the_control_socket),
        IN_A_PLACE(records_that_lack_something),
        IN_A_PLACE(cut_anywhere_it_is_refused),
        IN_A_PLACE(flipped_bytes_do_no_harm),
        IN_A_PLACE(flipped_bytes_of_a_loop_do_no_harm),
        IN_A_PLACE(a_loop_that_has_only_begun),
        IN_A_PLACE(any_loop_prints_and_is_drawn_within_bounds),
        IN_A_PLACE(records_of_format_1_tell_the_same),
        IN_A_PLACE(any_record_prints_within_bounds),
        cmocka_unit_test(text_is_made_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
