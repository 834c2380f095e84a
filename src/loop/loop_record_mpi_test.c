/* Test the run record of loops on the ranks of MPI_COMM_WORLD. The tests read the record with the functions
 * of `kilter report`. Start this test with mpirun. */
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop/loop_suite.h"
#include "report/report.h"

/* --- a folder for run records, whose path all ranks know --- */

static char folder[200], file[240];

static void make_place(void) {
    if (rank == 0) {
        char *path;
        CHECK_OK(kl_private_dir(&path, error));
        snprintf(folder, sizeof folder, "%s", path);
        free(path);
    }
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(file, sizeof file, "%s/a.kilter", folder);
}

/* Remove the folder and the records in it. Only one rank calls this. */
static void remove_place(void) {
    static const char *const endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char name[260];
        snprintf(name, sizeof name, "%s%s", file, endings[i]);
        unlink(name);
    }
    CHECK(rmdir(folder) == 0);
}

static kl_report *read_record(void) {
    kl_report *report = NULL;
    CHECK_OK(kl_report_read(file, &report, error));
    CHECK(report->loop);
    return report;
}

/* --- loops --- */

static kilter_status execute(kilter_loop *loop, double iteration_s, kilter_error *error) {
    kilter_range rows, inner;
    kilter_loop_summary summary;
    kilter_loop_summary_get(loop, &summary);
    kilter_status status = kilter_loop_begin(loop, error);
    if (summary.block > 0)
        while (status == KILTER_OK && kilter_loop_next_block(loop, &rows, &inner))
            kl_spend_s(iteration_s * (double)((rows.hi - rows.lo) * (inner.hi - inner.lo)) / 64);
    else
        while (status == KILTER_OK && kilter_loop_next(loop, &rows))
            kl_spend_s(iteration_s * (double)(rows.hi - rows.lo));
    return status == KILTER_OK ? kilter_loop_end(loop, error) : status;
}

static kilter_loop *open_loop(kilter_loop_options options) {
    kilter_loop *loop;
    void *base;
    options.record = rank == 0 ? file : NULL; /* the options of rank 0 decide where the record is written */
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, error));
    CHECK_OK(kilter_loop_array(loop, 512, options.scattered ? 0 : 1, &base, error));
    CHECK_OK(kilter_loop_array(loop, 64 * 8, 0, &base, error));
    return loop;
}

static uint64_t own_iterations(kilter_loop *loop) {
    uint64_t sum = 0;
    kilter_range own;
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        sum += own.hi - own.lo;
    return sum;
}

static uint64_t count_of(const kl_report *report, const char *kind) {
    uint64_t count = 0;
    for (size_t i = 0; i < report->decided_count; i++)
        count += strcmp(report->decided[i].kind, kind) == 0;
    return count;
}

/* Return the first decision to move whose number is *at or higher, and set *at to the number after it. Return
 * NULL if there is none. */
static const kl_report_decided *next_move(const kl_report *report, size_t *at) {
    const kl_report_decided *move = kl_report_next_decided(report, "move", *at);
    *at = move ? (size_t)(move - report->decided) + 1 : report->decided_count;
    return move;
}

static void check_rounds(const kl_report_loop *loop, uint64_t n) {
    for (size_t i = 0; i < loop->round_count; i++) {
        uint64_t sum = 0;
        for (uint32_t r = 0; r < loop->ranks; r++)
            sum += loop->round[i].counts[r];
        CHECK(sum == n);
        CHECK(i == 0 || loop->round[i].at_s > loop->round[i - 1].at_s);
        CHECK(loop->round[i].period_s > 0);
    }
}

/* Check that each recorded move has a decision, and the round in which it was decided. If another round
 * followed, the move must also have an outcome. */
static void check_moves(const kl_report *report) {
    const kl_report_loop *loop = report->loop;
    size_t at = 0;
    CHECK(loop->move_count == count_of(report, "move"));
    for (const kl_report_decided *move; (move = next_move(report, &at));) {
        const kl_report_round *round = kl_report_round_of(loop, move->round);
        CHECK(!move->refused && move->count > 0);
        CHECK(round && round->now_s > 0 && round->then_s > 0 && move->cost_s > 0);
        if (move->round < loop->rounds)
            CHECK(move->settled_s > move->at_s && !isnan(move->came_s) && move->spent_s >= 0);
    }
}

static void check_record(const kilter_loop_summary *summary, const kilter_loop_options *o, const char *kind,
                         const uint64_t *iterations, int executions) {
    kl_report *report = read_record();
    const kl_report_loop *loop = report->loop;
    CHECK(report->run.ended && report->run.dropped_rows == 0);
    CHECK(report->worker_count == (size_t)ranks && loop->ranks == (uint32_t)ranks);
    CHECK(report->workers[0].pid == getpid());
    CHECK(strcmp(loop->name, o->name) == 0 && strcmp(loop->kind, kind) == 0);
    CHECK(loop->iterations == o->iterations && loop->arrays == 2 && loop->row_bytes == 1024);
    CHECK(loop->ended && strcmp(loop->status, "done") == 0);
    CHECK(loop->executions == (uint64_t)executions && loop->rounds == summary->rounds);
    CHECK(loop->moves == summary->moves && loop->moved == summary->moved && loop->block == summary->block);
    CHECK(loop->gained_s == summary->gained_s && loop->came_s == summary->came_s);
    CHECK(strcmp(loop->decision, summary->decision) == 0);
    for (int r = 0; r < ranks; r++) {
        CHECK(loop->rank[r].iterations == iterations[r]);
        CHECK(loop->rank[r].elapsed_s > 0 && loop->rank[r].waited_s >= 0 && loop->rank[r].moving_s >= 0);
        CHECK(summary->rounds == 0 || (loop->rank[r].done > 0 && loop->rank[r].busy_s > 0));
    }
    CHECK(loop->round_count <= loop->rounds && (loop->rounds > 0) == (loop->round_count > 0));
    check_rounds(loop, o->iterations);
    check_moves(report);
    if (o->scattered) /* the last moves may have been decided too late to be carried out */
        CHECK(loop->move_count >= loop->moves);
    else
        CHECK(loop->move_count == loop->moves);
    printf("%s: %llu rounds, %zu in the record, %llu moves\n", kind, (unsigned long long)loop->rounds,
           loop->round_count, (unsigned long long)loop->moves);
    kl_report_free(report);
}

static void record_a_loop(kilter_loop_options o, const char *kind, int most) {
    int executions = ranks > 1 ? most : 3; /* a single rank makes no rounds */
    make_place();
    kilter_loop *loop = open_loop(o);
    for (int e = 0; e < executions; e++)
        CHECK_OK(execute(loop, rank == 0 ? 240e-6 : 60e-6, error));
    kilter_loop_summary summary;
    kilter_loop_summary_get(loop, &summary);
    char decision[400];
    snprintf(decision, sizeof decision, "%s",
             summary.decision); /* copy the text, because closing the loop below frees it */
    summary.decision = decision;
    uint64_t mine = own_iterations(loop), iterations[64];
    MPI_Gather(&mine, 1, MPI_UINT64_T, iterations, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    CHECK_OK(kilter_loop_close(loop, error));
    if (rank == 0) {
        check_record(&summary, &o, kind, iterations, executions);
        remove_place();
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_rows(void) {
    record_a_loop((kilter_loop_options){.name = "one range each", .iterations = 200}, "doall", 60);
    record_a_loop((kilter_loop_options){.name = "any", .iterations = 200, .scattered = true}, "scattered",
                  60);
    record_a_loop(
        (kilter_loop_options){.name = "pipe", .iterations = 200, .kind = KILTER_DOACROSS, .inner = 64},
        "doacross", 40);
    record_a_loop((kilter_loop_options){.name = "still", .iterations = 20, .fixed = true}, "doall", 3);
}

/* --- a record that cannot be written --- */

static void expect(kilter_status got, const kilter_error *error, const char *word) {
    if (got != KILTER_ERR_RECORD || error->status != KILTER_ERR_RECORD || !strstr(error->text, word)) {
        fprintf(stderr, "rank %d: expected '%s', got %d: %s\n", rank, word, got, error->text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void expect_refusal(const char *record, const char *word) {
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    kilter_loop_options options = {.iterations = 10, .name = "mine", .record = rank == 0 ? record : NULL};
    expect(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), &error, word);
    CHECK(strstr(error.text, "'mine'"));
}

/* Remove the record's file while the loop runs. Check that the failure is reported when the record is
 * written again. */
static void break_off(void) {
    kilter_error error = {KILTER_OK, ""};
    make_place();
    kilter_loop *loop = open_loop((kilter_loop_options){.iterations = 10, .name = "mine"});
    if (rank == 0)
        CHECK(unlink(file) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int e = 0; e < 5; e++)
        CHECK_OK(execute(loop, 1e-4, error));
    kilter_status status = kilter_loop_close(loop, &error);
    CHECK(status == (rank == 0 ? KILTER_ERR_RECORD : KILTER_OK));
    CHECK(rank != 0 || strstr(error.text, "moved or removed"));
    if (rank == 0)
        remove_place();
}

static void test_refused(void) {
    make_place();
    kilter_loop *other, *loop = open_loop((kilter_loop_options){.iterations = 10});
    char nowhere[260];
    snprintf(nowhere, sizeof nowhere, "%s/nowhere/a.kilter", folder);
    expect_refusal(folder, "exists");
    expect_refusal(nowhere, nowhere);
    expect_refusal("", "empty");
    /* this loop continues: options that other loops refused do not affect it */
    CHECK_OK(execute(loop, 1e-4, error));
    setenv("KILTER_RECORD", "none", 1);
    kilter_loop_options options = {.iterations = 10, .record = file};
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &other, error));
    CHECK_OK(kilter_loop_close(other, error));
    /* the file exists, so a number must be added to the name of the new record */
    setenv("KILTER_RECORD", file, 1);
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = 10}, &other, error));
    CHECK_OK(kilter_loop_close(other, error));
    if (rank == 0) {
        char second[270];
        snprintf(second, sizeof second, "%.*s-2.kilter", (int)strlen(file) - 7, file);
        CHECK(unlink(second) == 0);
    }
    unsetenv("KILTER_RECORD");
    CHECK_OK(kilter_loop_close(loop, error));
    if (rank == 0) {
        kl_report *report = read_record();
        CHECK(report->loop->ended && report->loop->executions == 1);
        kl_report_free(report);
        remove_place();
    }
    break_off();
}

/* --- memory --- */

/* Check that rows move only to rank 1, which has memory for one more row. Only the last move may lack an
 * outcome. */
static void check_refusals(void) {
    kl_report *report = read_record();
    uint64_t refused = 0;
    size_t at = 0;
    bool known = true;
    for (const kl_report_decided *move; (move = next_move(report, &at));) {
        CHECK(known);
        known = move->refused || move->count == 1;
        refused += move->refused;
    }
    CHECK(refused > 0 && count_of(report, "refused") >= refused);
    kl_report_free(report);
    remove_place();
}

/* Run a loop in which rank 0 is slow, and rank 1 has no memory for more rows. All later rounds must report
 * that memory is missing. Scattered rows also move within sweeps, which take several rounds each. So a round
 * may still report this after rows have moved back. */
static void be_short_of_memory(bool scattered) {
    double row_s = scattered ? 1e-2 : 1e-3;
    kilter_loop *loop;
    kilter_loop_summary summary = {0};
    void *base;
    make_place();
    kilter_loop_options options = {
        .iterations = 64, .scattered = scattered, .record = rank == 0 ? file : NULL};
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, error));
    CHECK_OK(kilter_loop_array(loop, 512 << 10, !scattered, &base, error));
    CHECK_OK(execute(loop, 1e-4, error));
    struct rlimit limit = little_more();
    if (rank == 1)
        setrlimit(RLIMIT_DATA, &limit);
    for (uint64_t until = UINT64_MAX; summary.rounds < until;) {
        CHECK_OK(execute(loop, rank == 0 ? row_s : row_s / 10, error));
        kilter_loop_summary_get(loop, &summary); /* the summary is the same on all ranks */
        if (until == UINT64_MAX && strstr(summary.decision, "no memory"))
            until = summary.rounds + (scattered ? 12 : 3);
        CHECK(summary.executions < 1000);
    }
    CHECK(strstr(summary.decision, "no memory"));
    if (rank == 1)
        setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    CHECK_OK(kilter_loop_close(loop, error));
    if (rank == 0)
        check_refusals();
}

static void test_memory(void) {
    be_short_of_memory(false);
    be_short_of_memory(true);
}

/* --- death --- */

/* Wait until the record's file has a round. */
static void await_a_round(void) {
    for (bool there = false; !there;) {
        kl_report *report = NULL;
        there =
            kl_report_read(file, &report, NULL) == KILTER_OK && report->loop && report->loop->round_count > 0;
        kl_report_free(report);
    }
}

static void check_dead(int who) {
    kl_report *report = read_record();
    const kl_report_loop *loop = report->loop;
    CHECK(loop->round_count > 0 && loop->executions > 0);
    check_rounds(loop, 100);
    CHECK(loop->ended == (who != 0) && report->run.ended == (who != 0));
    if (who != 0) {
        char dead[40];
        snprintf(dead, sizeof dead, "rank %d is dead", who);
        CHECK(strstr(loop->status, dead));
        CHECK(report->workers[who].why && strstr(report->workers[who].why, "dead"));
    }
    kl_report_free(report);
    remove_place();
}

static void test_death(int who) {
    kilter_error error = {KILTER_OK, ""};
    kilter_loop_summary summary = {0};
    make_place();
    kilter_loop *loop = open_loop((kilter_loop_options){.iterations = 100});
    kilter_status status = KILTER_OK;
    for (int e = 0; status == KILTER_OK; e++) {
        if (rank == who && summary.rounds > 1) {
            await_a_round();
            raise(SIGKILL);
        }
        status = execute(loop, 1e-4, &error);
        kilter_loop_summary_get(loop, &summary);
    }
    if (rank == (who == 0 ? 1 : 0))
        check_dead(who); /* the record must be complete although the loop is not closed yet */
    printf("rank %d says: %s\n", rank, error.text);
    fflush(stdout);
    _exit(status == KILTER_ERR_PEER ? 0 : 1);
}

int main(int count, char **arguments) {
    unsetenv("KILTER_RECORD");
    suite_begin();
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "rows") == 0)
        test_rows();
    else if (strcmp(what, "refused") == 0)
        test_refused();
    else if (strcmp(what, "memory") == 0)
        test_memory();
    else if (strcmp(what, "death") == 0 && count > 2)
        test_death(atoi(arguments[2]));
    else
        CHECK(!"the arguments must be rows, refused, memory, or death RANK");
    MPI_Finalize();
}
