#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "trace/record_test_helper.h"
#include "trace/trace.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
static const uint64_t many = 100000;
#else
static const uint64_t many = 1000000;
#endif

static const kl_trace_run_row a_run = {.program = "prog'); DROP TABLE run; --",
                                       .version = "1.2.3",
                                       .transport = "zmq",
                                       .policy = "auto",
                                       .host = "ada",
                                       .began_unix_s = 1.7e9,
                                       .pid = 4242,
                                       .control = "/run/kilter-1/control",
                                       .folder = "/home/ada's work"};

static sqlite3 *open_file(const char *file, int flags) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(file, &db, flags, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 20000);
    return db;
}

/* Read the first row of a query's answer as one text. Columns are separated by '|', and NULL is written as
 * "NULL". */
static void ask(sqlite3 *db, const char *sql, char *answer, size_t size) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    size_t at = 0;
    answer[0] = '\0';
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        const char *text = (const char *)sqlite3_column_text(statement, i);
        at += (size_t)snprintf(answer + at, size - at, "%s%s", i ? "|" : "", text ? text : "NULL");
        assert_true(at < size);
    }
    sqlite3_finalize(statement);
}

static void expect(sqlite3 *db, const char *sql, const char *expected) {
    char answer[1024];
    ask(db, sql, answer, sizeof answer);
    assert_string_equal(answer, expected);
}

static long long number(sqlite3 *db, const char *sql) {
    char answer[64];
    ask(db, sql, answer, sizeof answer);
    return atoll(answer);
}

static void expect_file(const char *file, const char *sql, const char *expected) {
    sqlite3 *db = open_file(file, SQLITE_OPEN_READONLY);
    expect(db, sql, expected);
    sqlite3_close(db);
}

static void wait_until(sqlite3 *db, const char *count_sql, long long at_least) {
    while (number(db, count_sql) < at_least)
        sched_yield();
}

static bool exists(const char *file, const char *ending) {
    char name[240];
    snprintf(name, sizeof name, "%s%s", file, ending);
    return access(name, F_OK) == 0;
}

static kl_trace *open_trace(const char *file) {
    kl_trace *trace = NULL;
    kilter_error error;
    if (kl_trace_open(file, &a_run, &trace, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return trace;
}

static void close_well(kl_trace *trace, double ended_s) {
    kilter_error error = {0};
    if (kl_trace_close(trace, ended_s, &error) != KILTER_OK)
        fail_msg("%s", error.text);
}

static kl_trace_chunk_row chunk_of(uint64_t i) {
    return (kl_trace_chunk_row){.run = i / 1000,
                                .chunk = i,
                                .lo = 10 * i,
                                .hi = 10 * i + 10,
                                .worker = (uint32_t)(i % 7),
                                .units = 10,
                                .dealt_s = 0.001 * (double)i,
                                .began_s = 0.001 * (double)i + 0.1,
                                .ended_s = 0.001 * (double)i + 0.2,
                                .busy_s = 0.09,
                                .bytes_out = 80,
                                .bytes_in = 160};
}

static void push_chunks(kl_trace *trace, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) {
        kl_trace_chunk_row row = chunk_of(i);
        kl_trace_chunk(trace, &row);
    }
}

/* ---- rows must be in the file as they were given ---- */

static void push_one_of_each(kl_trace *t) {
    kl_trace_worker(t, &(kl_trace_worker_row){0, "ada", "core 1", 77, 0.5});
    kl_trace_worker(t, &(kl_trace_worker_row){1, "bob's", "", 78, 0.75});
    kl_trace_iteration(t, &(kl_trace_iteration_row){2, 100, 150.5, "gss", 4096, 1.25, 0});
    kl_trace_chunk(
        t, &(kl_trace_chunk_row){2, 9, 10, 30, 1, 25.5, 1.5, 1.625, 1.75, 0.0625, 1000, 2000, 3, false});
    kl_trace_chunk(t, &(kl_trace_chunk_row){2, 10, 30, 40, 1, 1.5, 2, 0, 0, 0, 8, 0, 0, true});
    kl_trace_measurement(t, &(kl_trace_measurement_row){2.5, 1, "unit_s", 0.125, 0.25, 20});
    kl_trace_measurement(t, &(kl_trace_measurement_row){2.75, -1, "round_trip_s", 0.5, 0, 3});
    kl_trace_decision(t, &(kl_trace_moment){4.5, 3, 2, 9, 0, {"seen", 4}},
                      &(kl_decision){KL_DECIDES_DEAL, 1, 20, 4.875, 0.25, 0, "it's \"fast\""});
    kl_trace_decision(t, &(kl_trace_moment){.now_s = 1, .run = 2, .chunk = UINT64_MAX},
                      &(kl_decision){.kind = KL_DECIDES_POLICY, .subject = KL_SUBJECT_ALL});
    kl_trace_worker_left(t, 1, 3.5, "lost; -- connection");
    kl_trace_iteration_ended(t,
                             &(kl_trace_iteration_end){2, 3, 2, 2, 3.25, 1.5, 2.5, "dealt \xc2\xb5", "done"});
}

static void every_kind_of_row_comes_back(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file);
    assert_string_equal(kl_trace_path(t), file);
    push_one_of_each(t);
    close_well(t, 4.5);

    assert_false(exists(file, "-wal"));
    assert_false(exists(file, "-shm"));
    struct stat info;
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READONLY);
    expect(db, "PRAGMA integrity_check", "ok");
    expect(db, "PRAGMA user_version", "2");
    expect(db, "PRAGMA journal_mode", "delete");
    expect(db, "SELECT group_concat(name) FROM host", "ada,bob's");
    expect(db, "SELECT r.*, h.name FROM run r JOIN host h USING (host)",
           "prog'); DROP TABLE run; "
           "--|1.2.3|zmq|auto|1|1700000000.0|4242|/run/kilter-1/control|/home/ada's work|0|4.5|ada");
    expect(db, "SELECT * FROM worker WHERE worker = 0", "0|1|core 1|77|0.5|NULL|NULL");
    expect(db, "SELECT * FROM worker WHERE worker = 1", "1|2||78|0.75|3.5|lost; -- connection");
    expect(db, "SELECT * FROM iteration",
           "2|100|150.5|gss|4096|1.25|0|3|2|2|3.25|1.5|2.5|dealt \xc2\xb5|done");
    expect(db, "SELECT * FROM chunk WHERE NOT lost",
           "1|2|9|10|30|1|25.5|1.5|1.625|1.75|0.0625|1000|2000|3|0");
    expect(db, "SELECT * FROM chunk WHERE lost", "2|2|10|30|40|1|1.5|2.0|NULL|NULL|0.0|8|0|0|1");
    expect(db, "SELECT * FROM measurement WHERE id = 1", "1|2.5|1|unit_s|0.125|0.25|20");
    expect(db, "SELECT * FROM measurement WHERE id = 2", "2|2.75|NULL|round_trip_s|0.5|0.0|3");
    expect(db, "SELECT * FROM decision WHERE id = 1",
           "1|1.5|2|NULL|9|deal|1|20|1.875|0.25|0.0|it's \"fast\"|0|seen|NULL|NULL|NULL");
    expect(db, "SELECT * FROM decision WHERE id = 2",
           "2|1.0|2|NULL|NULL|policy|NULL|0|NULL|0.0|0.0||0|NULL|NULL|NULL|NULL");
    sqlite3_close(db);
}

static void push_loop(kl_trace *t) {
    kl_trace_loop(t, &(kl_trace_loop_row){"sor", "doacross", 1000, 64, 4, false});
    kl_trace_array(t, &(kl_trace_array_row){0, 512, 1});
    kl_trace_round(t, &(kl_trace_round_row){3, 12, 1.5, 0.25, 0.5, 0, 16});
    kl_trace_share(t, &(kl_trace_share_row){3, 1, 250, 260, 520, 0.75, 0.125, 640});
    kl_trace_share(t, &(kl_trace_share_row){3, 2, UINT64_MAX, 240, 0, 0, 0, 0});
    kl_decision d = {KL_DECIDES_MOVE, KL_SUBJECT_ALL, 40, 0, 2, 0.0625, "it's slow"};
    kl_trace_decision(t, &(kl_trace_moment){.now_s = 1.5, .chunk = UINT64_MAX, .round = 3}, &d);
    d.count = 41;
    kl_trace_decision(t, &(kl_trace_moment){.now_s = 2.5, .chunk = UINT64_MAX, .round = 5}, &d);
    kl_trace_came(t, &(kl_trace_outcome){3, 3, 2, 2});
    kl_trace_settled(t, &(kl_trace_outcome){3, 4, 1, 1});
    kl_trace_settled(t,
                     &(kl_trace_outcome){3, 4.5, -0.25,
                                         0.03125}); /* if a round has several outcomes, the last one counts */
    d = (kl_decision){.kind = KL_DECIDES_REFUSED, .subject = KL_SUBJECT_ALL};
    kl_trace_decision(t, &(kl_trace_moment){.now_s = 2.5, .chunk = UINT64_MAX, .round = 5}, &d);
    kl_trace_decision(t, &(kl_trace_moment){.now_s = 2.5, .chunk = UINT64_MAX}, &d);
    kl_trace_refused(t, 5);
    kl_trace_rank(t, &(kl_trace_rank_row){1, 260, 5, 1.25, 0.125});
    kl_trace_loop_ended(
        t, &(kl_trace_loop_end){5.5, 5, 40, 9, 1, 40, 16, 2, -0.25, 0.03125, "balanced", "done"});
}

static void a_loop_comes_back(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace_run_row run = a_run;
    kl_trace *t = NULL;
    run.loop = true;
    assert_int_equal(kl_trace_open(file, &run, &t, NULL), KILTER_OK);
    push_loop(t);
    close_well(t, 6);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READONLY);
    expect(db, "SELECT * FROM loop",
           "0|sor|doacross|1000|64|4|0|5.5|5.0|40|9|1|40|16|2.0|-0.25|0.03125|balanced|done");
    expect(db, "SELECT * FROM array", "0|512|1");
    expect(db, "SELECT * FROM round", "3|12|1.5|0.25|0.5|NULL|16");
    expect(db, "SELECT * FROM share WHERE rank = 1", "1|3|1|250|260|520|0.75|0.125|640.0");
    expect(db, "SELECT * FROM share WHERE rank = 2", "2|3|2|NULL|240|0|0.0|0.0|NULL");
    expect(db, "SELECT * FROM decision WHERE id = 1",
           "1|1.5|0|3|NULL|move|NULL|40|NULL|2.0|0.0625|it's slow|0|NULL|4.5|-0.25|0.03125");
    expect(db, "SELECT * FROM decision WHERE id = 2",
           "2|2.5|0|5|NULL|move|NULL|41|NULL|2.0|0.0625|it's slow|1|NULL|NULL|NULL|NULL");
    expect(db, "SELECT kind, round, refused FROM decision WHERE id = 3", "refused|5|0");
    expect(db, "SELECT round FROM decision WHERE id = 4", "NULL");
    expect(db, "SELECT * FROM rank", "1|260|5.0|1.25|0.125");
    sqlite3_close(db);
}

static void odd_values_do_not_end_the_recording(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file);
    char *text = malloc(1000001);
    assert_non_null(text);
    memset(text, 'x', 1000000);
    text[1000000] = '\0';
    kl_trace_worker_left(t, 99, 1, NULL); /* a worker leaves that has never joined */
    kl_trace_worker(t, &(kl_trace_worker_row){.worker = 3});
    kl_trace_worker(t, &(kl_trace_worker_row){.worker = 3, .host = "again"});
    kl_trace_decision(t, &(kl_trace_moment){.run = UINT64_MAX}, &(kl_decision){.gain_s = (double)NAN});
    kl_trace_failure(t, &(kl_trace_failure_row){.run = UINT64_MAX, .text = text});
    kl_trace_measurement(
        t, &(kl_trace_measurement_row){.kind = "\xff\xfe", .value = (double)NAN, .sd = (double)-INFINITY});
    kl_trace_chunk(t, &(kl_trace_chunk_row){.hi = UINT64_MAX});
    kl_trace_chunk(t, &(kl_trace_chunk_row){.hi = UINT64_MAX});
    close_well(t, 1);
    free(text);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READONLY);
    expect(db, "SELECT count(*), name FROM worker JOIN host USING (host)", "1|again");
    expect(db, "SELECT run, gain_s FROM decision", "9223372036854775807|NULL");
    expect(db, "SELECT run, length(text) BETWEEN 32000 AND 33000 FROM failure", "9223372036854775807|1");
    expect(db, "SELECT value, sd FROM measurement", "NULL|-Inf");
    expect(db, "SELECT count(*) FROM chunk", "2");
    sqlite3_close(db);
}

static void a_null_trace_takes_everything(void **state) {
    (void)state;
    push_one_of_each(NULL);
    assert_null(kl_trace_path(NULL));
    kilter_error error = {.status = KILTER_OK};
    assert_int_equal(kl_trace_close(NULL, 1, &error), KILTER_OK);
    assert_int_equal(kl_trace_close(NULL, 1, NULL), KILTER_OK);
    assert_int_equal(error.status, KILTER_OK);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void a_million_chunks(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file);
    double began = now_s();
    push_chunks(t, 0, many);
    double pushed = now_s();
    close_well(t, 1);
    print_message("%.0f ns a row to push, %.0f ns a row until written\n",
                  1e9 * (pushed - began) / (double)many, 1e9 * (now_s() - began) / (double)many);
    char expected[128];
    snprintf(expected, sizeof expected, "%llu|%llu|%llu", (unsigned long long)many, (unsigned long long)many,
             (unsigned long long)many * (many - 1) / 2);
    expect_file(file, "SELECT count(*), count(DISTINCT chunk), sum(lo / 10) FROM chunk WHERE chunk = lo / 10",
                expected);
}

typedef struct half {
    kl_trace *trace;
    uint64_t from, to;
} half;

static void *push_half(void *argument) {
    half *h = argument;
    push_chunks(h->trace, h->from, h->to);
    return NULL;
}

static void two_threads_push_and_readers_read(void **state) {
    const char *file = ((place *)*state)->file;
    enum { EACH = 20000, BOTH = 40000 };
    kl_trace *t = open_trace(file);
    half halves[2] = {{t, 0, EACH}, {t, EACH, BOTH}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, push_half, &halves[i]), 0);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READONLY);
    long long seen = 0;
    while (seen < BOTH) { /* a reader sees rows before the trace is closed, and no row disappears */
        long long rows = number(db, "SELECT count(*) FROM chunk");
        assert_true(rows >= seen);
        seen = rows;
        sched_yield();
    }
    expect(db, "SELECT ended_s FROM run", "NULL");
    sqlite3_close(db);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    close_well(t, 9);
    expect_file(file, "SELECT count(DISTINCT chunk), sum(chunk) FROM chunk", "40000|799980000");
    expect_file(file, "SELECT ended_s FROM run", "9.0");
}

static void a_reader_that_stays_loses_nothing(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file);
    push_chunks(t, 0, 10);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READONLY);
    wait_until(db, "SELECT count(*) FROM chunk", 10);
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM chunk", NULL, NULL, NULL), SQLITE_OK);
    push_chunks(t, 10, 20);
    close_well(t, 2);
    expect(db, "SELECT count(*) FROM chunk",
           "10"); /* inside its transaction, the reader still sees the old rows */
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    expect(db, "SELECT count(*) FROM chunk", "20");
    expect(db, "SELECT ended_s FROM run", "2.0");
    sqlite3_close(db);
    expect_file(file, "SELECT count(*) FROM chunk", "20");
}

/* ---- opening ---- */

static void refuses(const char *file, const char *words) {
    kl_trace *trace = (kl_trace *)&a_run;
    kilter_error error = {0};
    assert_int_equal(kl_trace_open(file, &a_run, &trace, &error), KILTER_ERR_RECORD);
    assert_ptr_equal(trace, &a_run); /* after a failure, the pointer is unchanged */
    assert_int_equal(error.status, KILTER_ERR_RECORD);
    assert_non_null(strstr(error.text, file));
    assert_non_null(strstr(error.text, words));
}

/* Make a record whose run ends at `ended_s`. Return the record's name. */
static char *written_name(const char *file, double ended_s) {
    kl_trace *t = open_trace(file);
    char *name = strdup(kl_trace_path(t));
    close_well(t, ended_s);
    return name;
}

static void what_exists_is_not_touched(void **state) {
    place *p = *state;
    FILE *f = fopen(p->file, "w");
    fputs("precious", f);
    fclose(f);
    char *second = written_name(p->file, 1);
    assert_int_equal(unlink(second), 0);
    free(second);
    char text[16] = {0};
    f = fopen(p->file, "r");
    assert_int_equal(fread(text, 1, sizeof text, f), 8);
    fclose(f);
    assert_string_equal(text, "precious");

    refuses(p->folder, "exists");
    refuses("/dev/null", "exists");
}

static void a_name_that_exists_is_numbered(void **state) {
    place *p = *state;
    kl_trace *first = open_trace(p->file); /* the first record is open during the whole test */
    static const struct {
        const char *asked, *wanted;
    } rows[] = {{"a.kilter", "a-2.kilter"},
                {"a.kilter", "a-3.kilter"},
                {"b", "b"},
                {"b", "b-2"},
                {".b", ".b"},
                {".b", ".b-2"},
                {"c.d/e", ""},
                {"a-2.kilter", "a-2-2.kilter"}};
    char path[300];
    snprintf(path, sizeof path, "%s/c.d", p->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char wanted[300];
        snprintf(path, sizeof path, "%s/%s", p->folder, rows[i].asked);
        snprintf(wanted, sizeof wanted, "%s/%s", p->folder, *rows[i].wanted ? rows[i].wanted : rows[i].asked);
        char *name = written_name(path, (double)i + 2);
        assert_string_equal(name, wanted);
        free(name);
    }
    close_well(first, 1);
    expect_file(p->file, "SELECT ended_s FROM run", "1.0");
    snprintf(path, sizeof path, "%s/a-3.kilter", p->folder);
    expect_file(path, "SELECT ended_s FROM run", "3.0");
    static const char *const made[] = {"a-2.kilter", "a-3.kilter", "a-2-2.kilter", "b",
                                       "b-2",        ".b",         ".b-2",         "c.d/e"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", p->folder, made[i]);
        assert_int_equal(unlink(path), 0);
    }
    snprintf(path, sizeof path, "%s/c.d", p->folder);
    assert_int_equal(rmdir(path), 0);
}

static void a_record_is_locked_while_it_is_written(void **state) {
    place *p = *state;
    kl_trace *t = open_trace(p->file);
    pid_t child = fork(); /* the test needs another process, because closing the file in this one would drop
                             SQLite's locks */
    if (child == 0) {
        int file = open(p->file, O_RDWR | O_CLOEXEC);
        _exit(file >= 0 && kl_record_is_locked(file) && !kl_record_lock(file) && errno == EAGAIN ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close_well(t, 1);
    int file = open(p->file, O_RDWR | O_CLOEXEC);
    assert_false(kl_record_is_locked(file));
    assert_true(kl_record_lock(file));
    close(file);
}

static int open_at_once(const char *file, int go) {
    kl_trace *t = NULL;
    kilter_error error = {0};
    char byte;
    if (read(go, &byte, 1) < 0) /* read() returns when the parent has closed its end of the pipe */
        return 3;
    if (kl_trace_open(file, &a_run, &t, &error) != KILTER_OK)
        return 2;
    return kl_trace_close(t, 1, &error) == KILTER_OK ? 0 : 4;
}

static void masters_that_begin_at_once_get_a_file_each(void **state) {
    const char *file = ((place *)*state)->file;
    enum { MASTERS = 3 };
    for (int round = 0; round < 20; round++) {
        int go[2];
        if (round % 2) /* an empty file reserves the name */
            fclose(fopen(file, "w"));
        pid_t children[MASTERS];
        assert_int_equal(pipe(go), 0);
        for (int i = 0; i < MASTERS; i++)
            if ((children[i] = fork()) == 0) {
                close(go[1]);
                _exit(open_at_once(file, go[0]));
            }
        close(go[0]);
        close(go[1]);
        for (int i = 0; i < MASTERS; i++) {
            int status;
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_int_equal(status, 0);
        }
        for (int i = 1; i <= MASTERS; i++) {
            char *name = i == 1 ? strdup(file) : kl_text("%.*s-%d.kilter", (int)strlen(file) - 7, file, i);
            expect_file(name, "SELECT count(*) FROM run WHERE ended_s = 1", "1");
            unlink(name);
            free(name);
        }
    }
}

static void an_empty_file_is_taken(void **state) {
    const char *file = ((place *)*state)->file;
    fclose(fopen(file, "w"));
    close_well(open_trace(file), 1);
    expect_file(file, "SELECT count(*) FROM run", "1");
}

static void no_folder_no_record(void **state) {
    (void)state;
    refuses("/nowhere/at/all.kilter", "No such file");
}

static void no_name_is_special(void **state) {
    place *p = *state;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(p->folder), 0);
    static const char *const names[] = {":memory:", "file:a?mode=memory"};
    for (int i = 0; i < 2; i++) {
        close_well(open_trace(names[i]), 1);
        struct stat info;
        assert_int_equal(stat(names[i], &info), 0);
        assert_true(info.st_size > 0);
        unlink(names[i]);
    }
    assert_int_equal(chdir(before), 0);
}

/* ---- failures ---- */

static void fails_at_close(kl_trace *t, const char *words) {
    kilter_error error = {0};
    assert_int_equal(kl_trace_close(t, 3, &error), KILTER_ERR_RECORD);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" lacks \"%s\"", error.text, words);
    assert_non_null(strstr(error.text, "results are complete"));
}

/* Record on a full disk, which is imitated by a limit on the size of files. The writer must block the signal
 * SIGXFSZ, or it would kill the test. */
static int run_on_a_full_disk(const char *file) {
    kl_trace *t = NULL;
    kilter_error error = {0};
    if (kl_trace_open(file, &a_run, &t, &error) != KILTER_OK)
        return 1;
    struct rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    push_chunks(t, 0, 50000);
    if (kl_trace_close(t, 1, &error) != KILTER_ERR_RECORD)
        return 2;
    if (!strstr(error.text, file) || !strstr(error.text, "rows are missing"))
        return 3;
    return 0;
}

static void a_full_disk_stops_the_recording_only(void **state) {
    const char *file = ((place *)*state)->file;
    pid_t child = fork();
    if (child == 0)
        _exit(run_on_a_full_disk(file));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READONLY);
    expect(db, "PRAGMA integrity_check", "ok");
    long long rows = number(db, "SELECT count(*) FROM chunk");
    assert_true(rows > 0 && rows < 50000);
    sqlite3_close(db);
}

static bool is_idle_for_a_while(void) {
    struct timespec before, after;
    const struct timespec pause = {.tv_nsec = 50000000};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    return (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec) < 5e-3;
}

static int rest_on_a_full_disk(const char *file) {
    kl_trace *t = NULL;
    if (kl_trace_open(file, &a_run, &t, NULL) != KILTER_OK)
        return 1;
    struct rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    push_chunks(t, 0, 50000);
    bool idle = false;
    for (int look = 0; look < 200 && !idle; look++)
        idle = is_idle_for_a_while();
    kl_trace_close(t, 1, NULL);
    return idle ? 0 : 2;
}

static void a_recording_that_was_stopped_takes_no_core(void **state) {
    pid_t child = fork();
    if (child == 0)
        _exit(rest_on_a_full_disk(((place *)*state)->file));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void hear_nothing(void *context, uint64_t results, const kilter_error *failure) {
    (void)context, (void)results, (void)failure;
}

/* It must be possible to open a record again while a forked child has it open, because a child inherits open
 * files. */
static void a_closed_record_is_free_whoever_was_forked_meanwhile(void **state) {
    const char *file = ((place *)*state)->file;
    int ends[2];
    kl_trace *t;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(kl_trace_resume(file, &a_run, hear_nothing, NULL, &t, NULL), KILTER_OK);
    pid_t child = fork();
    if (child == 0) {
        char unused;
        close(ends[1]);
        _exit(read(ends[0], &unused, 1) != 0);
    }
    assert_int_equal(kl_trace_close(t, 1, NULL), KILTER_OK);
    assert_int_equal(kl_trace_resume(file, &a_run, hear_nothing, NULL, &t, NULL), KILTER_OK);
    assert_int_equal(kl_trace_close(t, 1, NULL), KILTER_OK);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_file_size_limit_at_opening_is_an_error(void **state) {
    const char *file = ((place *)*state)->file;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {4096, 4096};
        setrlimit(RLIMIT_FSIZE, &limit);
        kl_trace *t = NULL;
        _exit(kl_trace_open(file, &a_run, &t, NULL) == KILTER_ERR_RECORD ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_false(exists(file, "")); /* no part of a file must be left */
}

static void a_removed_file_is_reported(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file);
    assert_int_equal(unlink(file), 0);
    push_chunks(t, 0, 10);
    fails_at_close(t, "moved or removed");
    assert_false(exists(file, ""));
}

static void a_new_file_of_the_name_is_left_alone(void **state) {
    place *p = *state;
    char moved[240];
    snprintf(moved, sizeof moved, "%s.moved", p->file);
    kl_trace *t = open_trace(p->file);
    assert_int_equal(rename(p->file, moved), 0);
    fclose(fopen(p->file, "w"));
    push_chunks(t, 0, 10);
    fails_at_close(t, "moved or removed");
    struct stat info;
    assert_int_equal(stat(p->file, &info), 0);
    assert_int_equal(info.st_size, 0);
}

/* While another process keeps a transaction open, many rows are recorded. Rows above the limit must be
 * dropped. */
static void what_waits_in_memory_is_bounded(void **state) {
    const char *file = ((place *)*state)->file;
    enum { TEXT = 16 * 1024, ROWS = 10000 }; /* 160 MB */
    kl_trace *t = open_trace(file);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READWRITE);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    static char text[TEXT + 1];
    memset(text, 'y', TEXT);
    for (uint64_t i = 0; i < ROWS; i++)
        kl_trace_measurement(t, &(kl_trace_measurement_row){.kind = text, .count = i});
    /* this row must be kept, because it is of one of the rare kinds */
    kl_trace_worker(t, &(kl_trace_worker_row){.worker = 5, .host = "late"});
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    fails_at_close(t, "the disk was too slow");

    db = open_file(file, SQLITE_OPEN_READONLY);
    long long kept = number(db, "SELECT count(*) FROM measurement");
    long long bytes = kept * TEXT;
    assert_true(bytes > 100000000 && bytes < 140000000);
    assert_int_equal(number(db, "SELECT dropped_rows FROM run"), ROWS - kept);
    /* the first rows must be in the record, without a gap */
    expect(db, "SELECT max(count) - count(*) FROM measurement", "-1");
    expect(db, "SELECT count(*) FROM worker", "1");
    sqlite3_close(db);
}

typedef struct heard {
    atomic_uint results;
    atomic_bool failed;
} heard;

static void hear_of_results(void *context, uint64_t results, const kilter_error *failure) {
    heard *h = context;
    h->failed |= failure != NULL;
    h->results += (unsigned)results;
}

/* When the queue is full, a result that is added must still be stored. */
static void results_wait_behind_whatever_else_does(void **state) {
    const char *file = ((place *)*state)->file;
    enum { TEXT = 16 * 1024, ROWS = 10000, FEW = 4000 };
    static const uint8_t result[] = {1, 0, 0, 0, 'r'};
    heard h = {0};
    kl_trace *t;
    assert_int_equal(kl_trace_resume(file, &a_run, hear_of_results, &h, &t, NULL), KILTER_OK);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READWRITE);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    static char text[TEXT + 1];
    memset(text, 'y', TEXT);
    for (uint64_t i = 0; i < ROWS; i++)
        kl_trace_measurement(t, &(kl_trace_measurement_row){.kind = text, .count = i});
    for (uint32_t i = 0; i < FEW; i++)
        kl_trace_worker(t, &(kl_trace_worker_row){.worker = i, .host = i < FEW / 2 ? text : ""});
    kl_trace_result(t, &(kl_trace_result_row){.count = 1, .results = {result, sizeof result}});
    kl_trace_hurry(t);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    while (h.results == 0 && !h.failed)
        sched_yield();
    assert_false(h.failed);
    assert_int_equal(h.results, 1);
    fails_at_close(
        t, "the disk was too slow"); /* closing the trace reports that rows of other kinds are missing */
}

static void a_simulated_run_waits_for_the_disk(void **state) {
    const char *file = ((place *)*state)->file;
    enum { TEXT = 16 * 1024, ROWS = 16000 }; /* 260 MB of rows, which is more than the limit */
    kl_trace_run_row run = a_run;
    run.simulated = true;
    kl_trace *t;
    assert_int_equal(kl_trace_open(file, &run, &t, NULL), KILTER_OK);
    static char text[TEXT + 1];
    memset(text, 'z', TEXT);
    for (uint64_t i = 0; i < ROWS; i++)
        kl_trace_measurement(t, &(kl_trace_measurement_row){.kind = text, .count = i});
    close_well(t, 1);
    expect_file(file, "SELECT count(*), count(DISTINCT count) FROM measurement", "16000|16000");
}

static void a_short_lock_is_waited_for(void **state) {
    const char *file = ((place *)*state)->file;
    kl_trace *t = open_trace(file);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READWRITE);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE; CREATE TABLE note(text); COMMIT; BEGIN EXCLUSIVE",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    /* these rows are enough to wake the writer, which then finds that the file is locked */
    push_chunks(t, 0, 10000);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    close_well(t, 1);
    expect_file(file, "SELECT count(*) FROM chunk", "10000");
}

static void killed_writers_leave_what_was_committed(void **state) {
    const char *file = ((place *)*state)->file;
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) {
        kl_trace *t = NULL;
        if (kl_trace_open(file, &a_run, &t, NULL) != KILTER_OK)
            _exit(1);
        if (write(pipe_ends[1], "x", 1) != 1)
            _exit(1);
        sqlite3 *written = open_file(file, SQLITE_OPEN_READONLY);
        for (uint64_t i = 0;;
             i++) { /* the test must not run far ahead of the writer, or the writer might not get the lock */
            push_chunks(t, i * 1000, i * 1000 + 1000);
            if (i > 5)
                wait_until(written, "SELECT count(*) FROM chunk", (long long)(i - 5) * 1000);
        }
    }
    char byte;
    assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    sqlite3 *db = open_file(file, SQLITE_OPEN_READONLY);
    wait_until(db, "SELECT count(*) FROM chunk", 5000);
    long long seen = number(db, "SELECT count(*) FROM chunk");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    sqlite3_close(db);

    db = open_file(file, SQLITE_OPEN_READONLY);
    assert_true(number(db, "SELECT count(*) FROM chunk") >= seen);
    expect(db, "SELECT max(chunk) + 1 = count(*) FROM chunk",
           "1"); /* the record must have whole batches, in the order of writing */
    expect(db, "SELECT ended_s FROM run", "NULL");
    sqlite3_close(db);
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        /* this test must run before there are threads, because it forks */
        IN_A_PLACE(a_full_disk_stops_the_recording_only),
        IN_A_PLACE(a_recording_that_was_stopped_takes_no_core),
        IN_A_PLACE(a_file_size_limit_at_opening_is_an_error),
        IN_A_PLACE(killed_writers_leave_what_was_committed),
        IN_A_PLACE(a_closed_record_is_free_whoever_was_forked_meanwhile),
        IN_A_PLACE(every_kind_of_row_comes_back),
        IN_A_PLACE(a_loop_comes_back),
        IN_A_PLACE(odd_values_do_not_end_the_recording),
        cmocka_unit_test(a_null_trace_takes_everything),
        IN_A_PLACE(a_million_chunks),
        IN_A_PLACE(two_threads_push_and_readers_read),
        IN_A_PLACE(a_reader_that_stays_loses_nothing),
        IN_A_PLACE(what_exists_is_not_touched),
        IN_A_PLACE(a_name_that_exists_is_numbered),
        IN_A_PLACE(a_record_is_locked_while_it_is_written),
        IN_A_PLACE(masters_that_begin_at_once_get_a_file_each),
        IN_A_PLACE(an_empty_file_is_taken),
        cmocka_unit_test(no_folder_no_record),
        IN_A_PLACE(no_name_is_special),
        IN_A_PLACE(a_removed_file_is_reported),
        IN_A_PLACE(a_new_file_of_the_name_is_left_alone),
        IN_A_PLACE(what_waits_in_memory_is_bounded),
        IN_A_PLACE(results_wait_behind_whatever_else_does),
        IN_A_PLACE(a_simulated_run_waits_for_the_disk),
        IN_A_PLACE(a_short_lock_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
