/* Write a record with fixed numbers, for tests. usage: report_test_record KIND FILE */
#include <math.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/trace.h"

static const double ENDED_S = 42.5; /* seconds after which the small records end */

static void push_begin(kl_trace *t, uint64_t run, double began_s, uint64_t chunks, uint64_t stored) {
    kl_trace_iteration(
        t, &(kl_trace_iteration_row){run, 10 * chunks, 10.0 * (double)chunks, "auto", 4096, began_s, stored});
}

/* Add `chunks` chunks of 10 tasks each to the record. Two workers do the chunks in turn; the second worker is
 * half as fast as the first. */
static void push_work(kl_trace *t, uint64_t run, double began_s, uint64_t chunks) {
    kl_trace_decision(
        t, &(kl_trace_moment){.now_s = began_s, .run = run, .chunk = UINT64_MAX},
        &(kl_decision){KL_DECIDES_WORKERS, KL_SUBJECT_ALL, 2, began_s + 2, -1.75, 0,
                       "stays at 2 workers: 1 would have index 3.1 instead of 4.3, seen in 1 of 3 "
                       "iterations"});
    double free_s[2] = {began_s, began_s};
    for (uint64_t i = 0; i < chunks; i++) {
        uint32_t worker = free_s[0] <= free_s[1] ? 0 : 1;
        double busy_s = worker == 0 ? 0.25 : 0.5, from_s = free_s[worker];
        free_s[worker] = from_s + busy_s + 0.0078125;
        kl_trace_decision(
            t, &(kl_trace_moment){.now_s = from_s, .run = run, .chunk = i},
            &(kl_decision){KL_DECIDES_DEAL, worker, 10, from_s + busy_s, 0.125, 0, "10 of the rest"});
        kl_trace_chunk(t, &(kl_trace_chunk_row){run, i, 10 * i, 10 * i + 10, worker, 10, from_s, from_s,
                                                free_s[worker], busy_s, 80, 160, i == 3 ? 2 : 0, false});
    }
    for (uint32_t worker = 0; worker < 2; worker++)
        kl_trace_measurement(t,
                             &(kl_trace_measurement_row){began_s + 0.5, worker, "unit_s",
                                                         worker ? 0.05 : 0.025, worker ? 0.01 : 0.005, 40});
}

static void push_iteration(kl_trace *t, uint64_t run, double began_s, uint64_t chunks, uint64_t stored) {
    push_begin(t, run, began_s, chunks, stored);
    push_work(t, run, began_s, chunks);
}

static void push_end(kl_trace *t, uint64_t run, double ended_s) {
    kl_trace_iteration_ended(t,
                             &(kl_trace_iteration_end){
                                 run, 2, 12, 2, ended_s, 2.0, 3.0,
                                 "auto dealt chunks of 10 tasks, because one worker is at half the speed of "
                                 "the other and what is in hand at the end then costs least: it gained 0.9 s "
                                 "against an equal split",
                                 "done"});
}

static void push_workers(kl_trace *t) {
    kl_trace_worker(t, &(kl_trace_worker_row){0, "ada", "core 0", 101, 0.01});
    kl_trace_worker(t, &(kl_trace_worker_row){1, "ada", "core 1", 102, 0.02});
    kl_trace_worker(t, &(kl_trace_worker_row){2, "a-host-with-a-name-longer-than-a-table-is-wide.example.org",
                                              "cores 0-63", 7, 0.03});
}

/* Record failed tasks. Task 40 has only one failure: it was lost with the worker that died, but did not cause
 * the worker's death. */
static void push_failures(kl_trace *t) {
    static const char lost[] = "worker 1 (process 102 on ada) was killed by signal 9 (Killed)";
    kl_trace_failure(t, &(kl_trace_failure_row){1, 31, 1, 1, 0.5, .lost = true, .code = UINT64_MAX,
                                                .signal = 9, .text = lost});
    kl_trace_failure(t, &(kl_trace_failure_row){1, 40, 1, 1, 0.5, .lost = true, .code = UINT64_MAX,
                                                .signal = 9, .text = lost});
    kl_trace_failure(t, &(kl_trace_failure_row){1, 31, 2, 0, 0.75, .final = true, .code = UINT64_MAX,
                                                .signal = UINT64_MAX, .text = "no luck"});
}

static void push_messages(kl_trace *t) {
    kl_trace_measurement(t, &(kl_trace_measurement_row){0.1, -1, "message_fixed_s", 2.9e-5, 0, 20});
    kl_trace_measurement(t, &(kl_trace_measurement_row){0.1, -1, "message_per_byte_s", 8e-10, 0, 20});
    kl_trace_measurement(t, &(kl_trace_measurement_row){0.1, -1, "round_trip_s", 3.8e-5, 1e-6, 20});
    kl_trace_measurement(t, &(kl_trace_measurement_row){0.1, -1, "answer_s", 3e-6, 0, 20});
}

static void push_finished(kl_trace *t, uint64_t iterations) {
    push_workers(t);
    push_messages(t);
    if (iterations <= 3)
        push_failures(t);
    for (uint64_t run = 0; run < iterations; run++) {
        double began_s = 1 + 10 * (double)run;
        push_iteration(t, run, began_s, 12, 0);
        push_end(t, run, began_s + 2.125);
    }
    kl_trace_worker_left(t, 2, 1.5, "its host was shut down\033[31m");
}

/* Record a cancelled run: the first 90 of its 120 tasks were done. */
static void push_cancelled(kl_trace *t, uint64_t run) {
    double began_s = 1 + 10 * (double)run;
    push_begin(t, run, began_s, 12, 0);
    push_work(t, run, began_s, 9);
    kl_trace_iteration_ended(
        t, &(kl_trace_iteration_end){run, 2, 9, 2, began_s + 3, 1.5, 3.0, "stopped", "cancelled"});
}

/* Wait until all rows are in the file, then end like a killed program. The record has no end. */
static void die_when_written(const char *file, const char *table, long long rows) {
    sqlite3 *db = NULL;
    sqlite3_stmt *count = NULL;
    char sql[64];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
    if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, sql, -1, &count, NULL) != SQLITE_OK)
        exit(EXIT_FAILURE);
    while (sqlite3_step(count) == SQLITE_ROW && sqlite3_column_int64(count, 0) < rows) {
        sqlite3_reset(count);
        sched_yield();
    }
    _exit(EXIT_SUCCESS);
}

static void ignore_stored(void *context, uint64_t results, const kilter_error *failure) {
    (void)context, (void)results, (void)failure;
}

static void fail_by(const kilter_error *error) {
    fprintf(stderr, "%s\n", error->text);
    exit(EXIT_FAILURE);
}

/* Write the record of two masters, one after the other. The first ends run 0, but not run 1. The second
 * does the last 40 tasks of run 1. */
static void write_resumed(const char *file, kl_trace_run_row *run) {
    kilter_error error;
    kl_trace *t;
    for (int second = 0; second < 2; second++) {
        run->began_unix_s += second * 60;
        if (kl_trace_resume(file, run, ignore_stored, NULL, &t, &error) != KILTER_OK)
            fail_by(&error);
        push_workers(t);
        if (second)
            kl_trace_iteration(t, &(kl_trace_iteration_row){0, 0, 0, "auto", 4096, 0.5, 120});
        if (second)
            kl_trace_iteration_ended(t, &(kl_trace_iteration_end){.ended_s = 0.5, .status = "done"});
        push_iteration(t, second, 1, second ? 4 : 12, second ? 80 : 0);
        push_end(t, second, 3.125);
        if (!second)
            push_iteration(t, 1, 4, 8, 0);
        if (kl_trace_close(t, 5.5, &error) != KILTER_OK)
            fail_by(&error);
    }
}

/* --- a run of many chunks --- */

enum { LARGE_CHUNKS = 50000 };

static double random_part(uint64_t *seed) { /* in [0, 1) */
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

typedef struct large {
    double free_s[1000]; /* time at which each worker has done its chunks */
    uint32_t workers;
    uint64_t seed, lo; /* lo: number of the first task that has not been dealt */
} large;

static uint32_t first_free(const large *l) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < l->workers; i++)
        first = l->free_s[i] < l->free_s[first] ? i : first;
    return first;
}

static void push_large_chunk(kl_trace *t, uint64_t i, large *l) {
    uint32_t worker = first_free(l);
    uint64_t tasks = 1 + (uint64_t)(3 * random_part(&l->seed));
    double speed = worker % 4 == 3 ? 0.4 : 1,
           from_s = l->free_s[worker] + 2e-5 + 4e-5 * random_part(&l->seed);
    double busy_s = (double)tasks * (5e-4 + 2e-3 * random_part(&l->seed)) / speed;
    double gaps_s = 1e-5 * (double)tasks * random_part(&l->seed);
    kl_decision deal = {KL_DECIDES_DEAL, worker, tasks, from_s + busy_s * 1.1, 0, 0, "a part of the rest"};
    kl_trace_decision(t, &(kl_trace_moment){.now_s = from_s, .chunk = i}, &deal);
    l->free_s[worker] = from_s + busy_s + gaps_s;
    kl_trace_chunk(t, &(kl_trace_chunk_row){0, i, l->lo, l->lo + tasks, worker, (double)tasks, from_s, from_s,
                                            l->free_s[worker], busy_s, 80, 160, 0, i % 20011 == 20010});
    l->lo += tasks;
}

/* Record a run of 50,000 chunks of one to three tasks. Every fourth worker is slower. Return the time of
 * the run's end. */
static double push_large(kl_trace *t, uint32_t workers) {
    double last_s = 0, tasks = 2.0 * LARGE_CHUNKS;
    large l = {.workers = workers < 1000 ? workers : 1000, .seed = 7};
    for (uint32_t i = 0; i < l.workers; i++) {
        kl_trace_worker(t, &(kl_trace_worker_row){i, i % 2 ? "ada" : "bob", "", 101 + i, 0.01});
        l.free_s[i] = 0.1;
    }
    kl_trace_iteration(t, &(kl_trace_iteration_row){0, (uint64_t)tasks, tasks, "auto", 0, 0.1, 0});
    for (uint64_t i = 0; i < LARGE_CHUNKS; i++)
        push_large_chunk(t, i, &l);
    for (uint32_t i = 0; i < l.workers; i++)
        last_s = fmax(last_s, l.free_s[i]);
    kl_trace_iteration_ended(t, &(kl_trace_iteration_end){0, 0, LARGE_CHUNKS, l.workers, last_s,
                                                          0.97 * (last_s - 0.1), 1.8 * last_s,
                                                          "auto dealt small chunks", "done"});
    return last_s;
}

/* --- a loop --- */

static void push_share(kl_trace *t, uint64_t round, uint32_t rank, uint64_t lo, uint64_t count, double rate) {
    kl_trace_share(
        t, &(kl_trace_share_row){round, rank, lo, count, 2 * count, 2 * (double)count / rate, 0, rate});
}

static void push_round(kl_trace *t, uint64_t round, double at_s, uint64_t below) {
    kl_trace_round(t, &(kl_trace_round_row){round, 2 * round, at_s, 0.5, 0.75, 0.5, 0});
    push_share(t, round, 0, 0, below, 40);
    push_share(t, round, 1, below, 60 - below, 120);
}

static void push_decision(kl_trace *t, uint64_t round, double at_s, kl_decision decision) {
    decision.subject = KL_SUBJECT_ALL;
    kl_trace_decision(t, &(kl_trace_moment){.now_s = at_s, .chunk = UINT64_MAX, .round = round}, &decision);
}

static void push_move(kl_trace *t, uint64_t round, double at_s, uint64_t count, const char *reason) {
    kl_decision d = {.kind = KL_DECIDES_MOVE, .count = count, .gain_s = 0.25, .cost_s = 0.0625};
    snprintf(d.reason, sizeof d.reason, "%s", reason);
    push_decision(t, round, at_s, d);
}

/* Record a loop on two ranks, the first three times as slow as the second. The loop has a move that saves
 * time, and a move that is refused. */
static void push_loop(kl_trace *t) {
    kl_trace_loop(t, &(kl_trace_loop_row){"redblack", "doall", 60, 0, 2, false});
    kl_trace_array(t, &(kl_trace_array_row){0, 480, 1});
    kl_trace_array(t, &(kl_trace_array_row){1, 8, 0});
    kl_trace_worker(t, &(kl_trace_worker_row){0, "ada", "", 101, 0});
    kl_trace_worker(t, &(kl_trace_worker_row){1, "bob", "", 7, 0});
    push_round(t, 1, 1, 30);
    push_decision(t, 1, 1, (kl_decision){.kind = KL_DECIDES_STAY, .reason = "balanced as far as is known"});
    push_move(t, 2, 2, 15, "a sweep takes 500 ms instead of 750 ms");
    push_round(t, 2, 2, 30);
    kl_trace_settled(t, &(kl_trace_outcome){2, 4, 1.5, 0.03125});
    push_move(t, 4, 4, 5, "a sweep takes 400 ms instead of 500 ms");
    push_round(t, 4, 4, 15);
    push_decision(t, 4, 4.25,
                  (kl_decision){.kind = KL_DECIDES_REFUSED, .reason = "nothing moves: a rank has no memory"});
    kl_trace_refused(t, 4);
}

static void push_save(kl_trace *t, double at_s, uint64_t bytes, const char *reason) {
    kl_decision d = {.kind = KL_DECIDES_SAVE, .count = bytes, .cost_s = bytes > 0 ? 0.125 : 0};
    snprintf(d.reason, sizeof d.reason, "%s", reason);
    push_decision(t, 4, at_s, d);
}

static void push_loop_end(kl_trace *t, const char *status) {
    push_save(t, 4.5, 32768, "on request; whole after 250 ms");
    push_save(t, 5, 0, "the checkpoint could not be written: no space left");
    push_save(t, 5.5, 32768, "whole after 250 ms; the next one follows after 131 s");
    push_decision(t, 6, 6, (kl_decision){.kind = KL_DECIDES_REST, .reason = "balancing rests for 10 s"});
    push_decision(
        t, 7, 7,
        (kl_decision){.kind = KL_DECIDES_WAIT, .gain_s = 0.125, .reason = "it rests for another 9 s"});
    push_round(t, 7, 7, 15);
    kl_trace_rank(t, &(kl_trace_rank_row){0, 15, 8, 0.5, 0.03125});
    kl_trace_rank(t, &(kl_trace_rank_row){1, 45, 8, 1.5, 0.015625});
    kl_trace_loop_ended(t, &(kl_trace_loop_end){8.5, 8, 16, 7, 1, 15, 0, 0.25, 1.75, 0.0625,
                                                "it rests for another 9 s", status});
}

static int usage(void) {
    fputs("usage: report_test_record finished|many|killed|cancelled|later|empty|resumed|loop|ended_loop|"
          "killed_loop|large4|large64|large1000 "
          "FILE [PROGRAM [FOLDER]]\n",
          stderr);
    return 2;
}

/* Write the rows of a loop that ended, that lost a rank, or that was killed. */
static void push_loop_kind(kl_trace *t, const char *kind, const char *file) {
    push_loop(t);
    if (strcmp(kind, "killed_loop") == 0)
        die_when_written(file, "decision WHERE refused = 1", 1); /* this row was added last */
    bool dead = strcmp(kind, "ended_loop") == 0;
    if (dead)
        kl_trace_worker_left(t, 1, 8.5, "is dead");
    push_loop_end(t, dead ? "running loop 'redblack': rank 1 is dead" : "done");
}

/* Write the rows of a farm's record. Return when it ended, or 0 if the kind is unknown. */
static double push_farm_kind(kl_trace *t, const char *kind, const char *file) {
    if (strncmp(kind, "large", 5) == 0 && atoi(kind + 5) > 0)
        return push_large(t, (uint32_t)atoi(kind + 5));
    if (strcmp(kind, "finished") == 0) {
        push_finished(t, 3);
    } else if (strcmp(kind, "cancelled") == 0) {
        push_workers(t);
        push_cancelled(t, 0);
    } else if (strcmp(kind, "later") == 0) {
        push_finished(t, 1);
        push_cancelled(t, 1);
    } else if (strcmp(kind, "many") == 0) {
        push_finished(t, 20);
    } else if (strcmp(kind, "killed") == 0) {
        push_workers(t);
        push_iteration(t, 0, 1, 12, 0);
        die_when_written(file, "measurement", 2); /* these rows were added last, so all rows are written */
    } else if (strcmp(kind, "empty") != 0) {
        return 0;
    }
    return ENDED_S;
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 5)
        return usage();
    const char *kind = argv[1], *file = argv[2];
    bool loop = strstr(kind, "loop") != NULL;
    kilter_error error;
    kl_trace *t;
    kl_trace_run_row run = {.program = argc > 3 ? argv[3] : "squares",
                            .folder = argc > 4 ? argv[4] : NULL,
                            .version = "0.1.0",
                            .transport = loop ? "mpi" : "zmq",
                            .policy = "auto",
                            .host = "ada",
                            .began_unix_s = 1.7e9,
                            .pid = 100,
                            .loop = loop};
    if (strcmp(kind, "resumed") == 0) {
        write_resumed(file, &run);
        return 0;
    }
    if (kl_trace_open(file, &run, &t, &error) != KILTER_OK)
        fail_by(&error);
    if (loop)
        push_loop_kind(t, kind, file);
    double ended_s = loop ? ENDED_S : push_farm_kind(t, kind, file);
    if (ended_s == 0)
        return usage();
    if (kl_trace_close(t, ended_s, &error) != KILTER_OK)
        fail_by(&error);
    return 0;
}
