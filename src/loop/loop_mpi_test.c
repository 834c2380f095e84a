/* Loops on the ranks of MPI_COMM_WORLD against the sequential program, bit by bit. Started by mpirun.
 *
 *   loop_mpi_test moves      rows move at every opportunity, to places out of seeds
 *                 rounds     ranks of different speeds; rows move as they are told by measurement
 *                 use        wrong use, and what differs between ranks
 *                 memory     a rank has no memory for the rows it should have
 *                 death N    rank N is killed; the others say "rank N is dead"
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop/loop.h"
#include "sys/sys.h"
#include "transport/launch_mpi.h"

static int rank, ranks;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "rank %d of %d: %s:%d: %s\n", rank, ranks, __FILE__, __LINE__, #condition);      \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                    \
        }                                                                                                    \
    } while (0)

#define CHECK_OK(call)                                                                                       \
    do {                                                                                                     \
        kilter_error check_error = {KILTER_OK, ""}, *error = &check_error;                                   \
        if ((call) != KILTER_OK) {                                                                           \
            fprintf(stderr, "rank %d of %d: %s:%d: %s\n", rank, ranks, __FILE__, __LINE__, error->text);     \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                    \
        }                                                                                                    \
    } while (0)

static double value_at(uint64_t i, uint64_t j) {
    return (double)(kl_mix64(i * 1000003 + j) >> 11) * 0x1p-53;
}

/* --- iterations that do not depend on each other --- */

typedef struct shape {
    uint64_t n, width, ghost; /* width: doubles in a row */
} shape;

/* Row i from the rows around it: not what is far from it, and in an order that rounding shows. */
static void stencil(const shape *s, const double *from, double *to, uint64_t i) {
    for (uint64_t j = 0; j < s->width; j++) {
        double sum = 0;
        for (uint64_t k = i > s->ghost ? i - s->ghost : 0; k <= i + s->ghost && k < s->n; k++)
            sum = 0.3 * sum + from[k * s->width + j];
        to[i * s->width + j] = sum - 0.5 * from[i * s->width + (j + 1) % s->width];
    }
}

enum { EXECUTIONS = 6 };

static double *sequential(const shape *s, int executions) {
    double *u = calloc(2 * s->n * s->width, sizeof *u), *v = u + s->n * s->width;
    CHECK(u);
    for (uint64_t i = 0; i < s->n * s->width; i++)
        u[i] = value_at(i / s->width, i % s->width);
    for (int e = 0; e < executions; e++) {
        for (uint64_t i = 0; i < s->n; i++)
            stencil(s, u, v, i);
        memcpy(u, v, s->n * s->width * sizeof *u);
    }
    return u;
}

typedef struct arrays {
    double *u[2], *done; /* done: how often each iteration was */
} arrays;

static void attach(kilter_loop *loop, const shape *s, arrays *a) {
    CHECK_OK(kilter_loop_array(loop, s->width * sizeof(double), s->ghost, (void **)&a->u[0], error));
    CHECK_OK(kilter_loop_array(loop, sizeof(double), 0, (void **)&a->done, error));
    CHECK_OK(kilter_loop_array(loop, s->width * sizeof(double), s->ghost, (void **)&a->u[1], error));
    kilter_range own;
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        for (uint64_t i = own.lo; i < own.hi; i++)
            for (uint64_t j = 0; j < s->width; j++)
                a->u[0][i * s->width + j] = value_at(i, j);
}

static void execute(kilter_loop *loop, const shape *s, const arrays *a, int e,
                    void (*load)(uint64_t, double)) {
    CHECK_OK(kilter_loop_begin(loop, error));
    for (kilter_range r; kilter_loop_next(loop, &r);)
        for (uint64_t i = r.lo; i < r.hi; i++) {
            stencil(s, a->u[e % 2], a->u[1 - e % 2], i);
            a->done[i]++;
            if (load)
                load(i, 1);
        }
    CHECK_OK(kilter_loop_end(loop, error));
}

/* Own ranges of all ranks are all iterations, once. */
static void check_mine(kilter_loop *loop, uint64_t n) {
    uint64_t mine = 0, all;
    kilter_range own;
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++) {
        CHECK(own.lo < own.hi && own.hi <= n);
        mine += own.hi - own.lo;
    }
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == n);
}

static void check_result(kilter_loop *loop, const shape *s, const arrays *a, int executions) {
    double sum, *expected = sequential(s, executions), *whole = calloc(s->n * s->width, sizeof *whole);
    int root = (int)(s->n % (uint64_t)ranks);
    check_mine(loop, s->n);
    CHECK_OK(kilter_loop_gather(loop, a->u[executions % 2], root, whole, error));
    if (rank == root)
        CHECK(memcmp(whole, expected, s->n * s->width * sizeof *whole) == 0);
    CHECK_OK(kilter_loop_sum(loop, a->done, &sum, error));
    CHECK(sum == (double)s->n * executions);
    CHECK_OK(kilter_loop_gather(loop, a->done, 0, whole, error));
    for (uint64_t i = 0; rank == 0 && i < s->n; i++)
        CHECK(whole[i] == executions);
    free(expected);
    free(whole);
}

static void run_forced(const shape *s, bool scattered, uint64_t seed) {
    kilter_loop *loop;
    arrays a;
    CHECK_OK(kilter_loop_open(
        MPI_COMM_WORLD, &(kilter_loop_options){.iterations = s->n, .scattered = scattered}, &loop, error));
    attach(loop, s, &a);
    kl_loop_force(loop, seed);
    for (int e = 0; e < EXECUTIONS; e++)
        execute(loop, s, &a, e, NULL);
    kilter_loop_summary summary;
    kilter_loop_summary_get(loop, &summary);
    CHECK(ranks == 1 || s->n < 8 || summary.moved > 0);
    check_result(loop, s, &a, EXECUTIONS);
    CHECK_OK(kilter_loop_close(loop, error));
}

/* --- a pipeline --- */

/* Over-relaxation in place: below is this execution's, above the last one's. */
static void relax(double *u, uint64_t n, uint64_t width, uint64_t i, uint64_t j) {
    if (i > 0 && i + 1 < n)
        u[i * width + j] =
            0.3 * u[i * width + j] + 0.7 * (u[(i - 1) * width + j] * 0.4 + u[(i + 1) * width + j] * 0.6);
}

static void run_pipeline(const shape *s, uint64_t block, uint64_t seed, bool forced, int executions,
                         void (*load)(uint64_t, double)) {
    kilter_loop *loop;
    double *u, *expected = calloc(s->n * s->width, sizeof *expected),
               *whole = malloc(s->n * s->width * sizeof *whole);
    CHECK_OK(
        kilter_loop_open(MPI_COMM_WORLD,
                         &(kilter_loop_options){
                             .iterations = s->n, .kind = KILTER_DOACROSS, .inner = s->width, .block = block},
                         &loop, error));
    CHECK_OK(kilter_loop_array(loop, s->width * sizeof *u, 1, (void **)&u, error));
    if (forced)
        kl_loop_force(loop, seed);
    kilter_range own, rows, inner;
    if (kilter_loop_mine(loop, 0, &own))
        for (uint64_t i = own.lo; i < own.hi; i++)
            for (uint64_t j = 0; j < s->width; j++)
                u[i * s->width + j] = value_at(i, j);
    for (int e = 0; e < executions; e++) {
        CHECK_OK(kilter_loop_begin(loop, error));
        while (kilter_loop_next_block(loop, &rows, &inner))
            for (uint64_t i = rows.lo; i < rows.hi; i++) {
                for (uint64_t j = inner.lo; j < inner.hi; j++)
                    relax(u, s->n, s->width, i, j);
                if (load)
                    load(i, (double)(inner.hi - inner.lo) / (double)s->width);
            }
        CHECK_OK(kilter_loop_end(loop, error));
    }
    for (uint64_t i = 0; i < s->n * s->width; i++)
        expected[i] = value_at(i / s->width, i % s->width);
    for (int e = 0; e < executions; e++)
        for (uint64_t i = 0; i < s->n; i++)
            for (uint64_t j = 0; j < s->width; j++)
                relax(expected, s->n, s->width, i, j);
    CHECK_OK(kilter_loop_gather(loop, u, 0, whole, error));
    CHECK(rank != 0 || memcmp(whole, expected, s->n * s->width * sizeof *whole) == 0);
    kilter_loop_summary summary;
    kilter_loop_summary_get(loop, &summary);
    CHECK(!forced || ranks == 1 || s->n < 8 || summary.moved > 0);
    if (!forced && rank == 0)
        printf("pipeline: %llu rounds, %llu moves, block %llu: %s\n", (unsigned long long)summary.rounds,
               (unsigned long long)summary.moves, (unsigned long long)summary.block, summary.decision);
    CHECK_OK(kilter_loop_close(loop, error));
    free(expected);
    free(whole);
}

static void test_moves(void) {
    static const uint64_t sizes[] = {1, 2, 3, 10, 61, 300}, widths[] = {1, 7, 100, 700};
    uint64_t seed = 1;
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (uint64_t ghost = 0; ghost <= 3; ghost++, seed++) {
                shape s = {sizes[n], widths[w], ghost};
                run_forced(&s, ghost == 0 && seed % 2, seed);
                if (ghost == 1)
                    for (uint64_t block = 0; block <= s.width; block = 4 * block + 1)
                        run_pipeline(&s, block, seed, true, EXECUTIONS, NULL);
            }
}

/* --- told by measurement --- */

/* What part of row i takes. */
static void be_slow(uint64_t i, double part) {
    (void)i;
    kl_spend_s(part * (rank == 0 ? 60e-6 : 20e-6));
}

static void be_uneven(uint64_t i, double part) {
    kl_spend_s(part * (i < 100 ? 60e-6 : 10e-6));
}

static void run_measured(const shape *s, bool scattered, int executions, void (*load)(uint64_t, double)) {
    kilter_loop *loop;
    kilter_loop_summary summary;
    arrays a;
    CHECK_OK(kilter_loop_open(
        MPI_COMM_WORLD, &(kilter_loop_options){.iterations = s->n, .scattered = scattered}, &loop, error));
    attach(loop, s, &a);
    for (int e = 0; e < executions; e++)
        execute(loop, s, &a, e, load);
    kilter_loop_summary_get(loop, &summary);
    CHECK(summary.executions == (uint64_t)executions);
    CHECK(ranks == 1 || scattered || summary.rounds > 0); /* those of one begin when a period has passed */
    kilter_range own = {0, 0};
    kilter_loop_mine(loop, 0, &own);
    if (rank == 0)
        printf(
            "measured: %llu rounds, %llu moves, rank 0 has %llu of %llu, elapsed %.3f s, moving %.4f s: %s\n",
            (unsigned long long)summary.rounds, (unsigned long long)summary.moves,
            (unsigned long long)(own.hi - own.lo), (unsigned long long)s->n, summary.elapsed_s,
            summary.moving_s, summary.decision);
    check_result(loop, s, &a, executions);
    CHECK_OK(kilter_loop_close(loop, error));
}

static void test_rounds(void) {
    run_measured(&(shape){400, 50, 1}, false, 150, be_slow);
    run_measured(&(shape){400, 50, 0}, true, 100, be_slow);
    run_measured(&(shape){3000, 50, 0}, true, 3, be_slow);
    run_measured(&(shape){400, 50, 2}, false, 100, be_uneven);
    run_pipeline(&(shape){200, 400, 1}, 0, 0, false, 60, be_slow);
}

/* --- wrong use --- */

static void expect(kilter_status got, kilter_status expected, const kilter_error *error, const char *word) {
    if (got != expected || error->status != expected || !strstr(error->text, word)) {
        fprintf(stderr, "rank %d: expected %d with '%s', got %d: %s\n", rank, expected, word, got,
                error->text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void expect_refusal(kilter_loop_options options, const char *word) {
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    expect(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), KILTER_ERR_RANGE, &error, word);
}

static void test_use(void) {
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    void *base;
    double sum;
    expect_refusal((kilter_loop_options){.iterations = 0}, "iterations");
    expect_refusal((kilter_loop_options){.iterations = 1, .kind = KILTER_DOACROSS}, "inner");
    expect_refusal((kilter_loop_options){.iterations = 1, .inner = 3}, "inner");
    expect_refusal((kilter_loop_options){.iterations = 1, .kind = KILTER_DOACROSS, .inner = 2, .block = 3},
                   "block");
    expect_refusal(
        (kilter_loop_options){.iterations = 1, .kind = KILTER_DOACROSS, .inner = 2, .scattered = true},
        "scattered");
    if (ranks > 1) {
        expect_refusal((kilter_loop_options){.iterations = 10 + (rank == 1)}, "'iterations' differs");
        expect_refusal((kilter_loop_options){.iterations = 10, .fixed = rank == ranks - 1},
                       "'fixed' differs");
    }
    kilter_loop_options options = {.iterations = 10, .name = "mine"};
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, error));
    expect(kilter_loop_array(loop, 0, 0, &base, &error), KILTER_ERR_RANGE, &error, "1 byte");
    expect(kilter_loop_array(loop, (size_t)1 << 50, 0, &base, &error), KILTER_ERR_RANGE, &error, "2^47");
    if (ranks > 1)
        expect(kilter_loop_array(loop, 8 + 8 * (rank == 1), 0, &base, &error), KILTER_ERR_RANGE, &error,
               "'bytes' differs");
    CHECK_OK(kilter_loop_array(loop, 16, 0, &base, error));
    CHECK_OK(kilter_loop_begin(loop, error));
    for (kilter_range r; kilter_loop_next(loop, &r);)
        ;
    CHECK_OK(kilter_loop_end(loop, error));
    expect(kilter_loop_array(loop, 8, 0, &base, &error), KILTER_ERR_USAGE, &error, "has begun");
    MPI_Barrier(MPI_COMM_WORLD);
    expect(kilter_loop_sum(loop, base, &sum, &error), KILTER_ERR_USAGE, &error, "16 bytes, not 8");
    MPI_Barrier(MPI_COMM_WORLD); /* one that fails alone ends it for others */
    kilter_loop_close(loop, NULL);

    static const char *const words[] = {"kilter_loop_begin() first", "is under way", "are left",
                                        "kilter_loop_next_block()", "not the base"};
    for (int wrong = 0; wrong < 5; wrong++) {
        kilter_range r;
        options.kind = wrong == 3 ? KILTER_DOACROSS : KILTER_DOALL;
        options.inner = wrong == 3;
        options.iterations = 10 * (uint64_t)ranks;
        CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, error));
        if (wrong != 0 && wrong != 4)
            CHECK_OK(kilter_loop_begin(loop, error));
        MPI_Barrier(MPI_COMM_WORLD);
        if (wrong == 0)
            CHECK(!kilter_loop_next(loop, &r));
        kilter_status status = KILTER_OK;
        if (wrong == 1)
            status = kilter_loop_begin(loop, &error);
        if (wrong == 3)
            CHECK(!kilter_loop_next(loop, &r));
        if (wrong == 4)
            status = kilter_loop_sum(loop, &sum, &sum, &error);
        if (wrong == 0 || wrong == 2 || wrong == 3)
            status = kilter_loop_end(loop, &error);
        expect(status, KILTER_ERR_USAGE, &error, words[wrong]);
        CHECK(strstr(error.text, "'mine'"));
        MPI_Barrier(MPI_COMM_WORLD);
        kilter_loop_close(loop, NULL);
    }
}

/* --- memory and death --- */

/* What the process has now, and a little for MPI: not two rows more. */
static struct rlimit little_more(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) == 1);
    fclose(file);
    return (struct rlimit){pages * (unsigned long)sysconf(_SC_PAGESIZE) + (800 << 10), RLIM_INFINITY};
}

static void be_short_of_memory(bool scattered) {
    shape s = {64, 1 << 16, !scattered}; /* rows of 512 KiB */
    kilter_loop *loop;
    kilter_loop_summary summary;
    arrays a;
    CHECK_OK(kilter_loop_open(
        MPI_COMM_WORLD, &(kilter_loop_options){.iterations = s.n, .scattered = scattered}, &loop, error));
    attach(loop, &s, &a);
    kl_loop_force(loop, 5);
    execute(loop, &s, &a, 0, NULL);
    struct rlimit limit;
    if (rank == 1) {
        limit = little_more();
        setrlimit(RLIMIT_DATA, &limit);
    }
    int executions = 1;
    do { /* what is asked of rank 1 depends on how often there was time to ask */
        execute(loop, &s, &a, executions++, NULL);
        kilter_loop_summary_get(loop, &summary);
    } while (executions < 4 || (executions < 200 && !strstr(summary.decision, "no memory")));
    if (rank == 1)
        setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    CHECK(strstr(summary.decision, "no memory"));
    check_result(loop, &s, &a, executions);
    CHECK_OK(kilter_loop_close(loop, error));
}

static void test_memory(void) {
    be_short_of_memory(false);
    be_short_of_memory(true);
}

static void test_death(int who) {
    shape s = {100, 50, 1};
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    arrays a;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = s.n}, &loop, error));
    attach(loop, &s, &a);
    kilter_status status = KILTER_OK;
    for (int e = 0; status == KILTER_OK; e++) {
        if (rank == who && e == 20)
            raise(SIGKILL);
        status = kilter_loop_begin(loop, &error);
        for (kilter_range r; kilter_loop_next(loop, &r);)
            kl_spend_s(1e-4);
        if (status == KILTER_OK)
            status = kilter_loop_end(loop, &error);
    }
    kilter_loop_close(loop, NULL);
    printf("rank %d says: %s\n", rank, error.text);
    fflush(stdout);
    _exit(status == KILTER_ERR_PEER ? 0 : 1);
}

int main(int count, char **arguments) {
    bool started; /* as the farm starts it: with MPICH, so that ranks outlive others */
    int provided;
    kl_mpi_vigil *vigil;
    CHECK_OK(kl_mpi_start(&count, &arguments, &started, &provided, &vigil, error));
    kl_mpi_started(vigil);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "moves") == 0)
        test_moves();
    else if (strcmp(what, "rounds") == 0)
        test_rounds();
    else if (strcmp(what, "use") == 0)
        test_use();
    else if (strcmp(what, "memory") == 0)
        test_memory();
    else if (strcmp(what, "death") == 0 && count > 2)
        test_death(atoi(arguments[2]));
    else
        CHECK(!"loop_mpi_test moves, rounds, use, memory or death RANK");
    MPI_Finalize();
}
