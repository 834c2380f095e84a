/* Compare loops on the ranks of MPI_COMM_WORLD with the sequential program, bit by bit. Start this test with
 * mpirun.
 *
 *   loop_mpi_test moves      rows move at every opportunity, to random places
 *                 few        rows move in this way, in loops of few iterations and arrays of several types
 *                 rounds     ranks have different speeds, and rows move by measurements
 *                 use        calls are wrong, or have different arguments on the ranks
 *                 memory     a rank has no memory for the rows that it should get
 *                 death N    rank N is killed; the others say "rank N is dead"
 */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop/loop_suite.h"

static double value_at(uint64_t i, uint64_t j) {
    return (double)(kl_mix64(i * 1000003 + j) >> 11) * 0x1p-53;
}

/* --- loops of independent iterations --- */

typedef struct shape {
    uint64_t n, width, ghost; /* width: number of doubles in a row */
} shape;

/* Compute row i from the rows around it. Because sums are rounded, the result shows the order of
 * additions. */
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
    double *u[2], *done; /* done[i]: number of times that iteration i was done */
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

/* Check that the ranges of own iterations, on all ranks together, contain each iteration once. */
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

static void run_forced(const shape *s, bool scattered, bool deep, uint64_t seed) {
    kilter_loop *loop;
    arrays a;
    int executions = deep ? 4 * EXECUTIONS : EXECUTIONS;
    kilter_loop_options options = {.iterations = s->n, .scattered = scattered, .deep = deep};
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, error));
    attach(loop, s, &a);
    force_moves(loop, seed);
    kilter_loop_summary summary;
    uint64_t deepest = 1;
    for (int e = 0; e < executions; e++) {
        execute(loop, s, &a, e, NULL);
        kilter_loop_summary_get(loop, &summary);
        deepest = summary.depth > deepest ? summary.depth : deepest;
    }
    CHECK(ranks == 1 || s->n < 8 || summary.moved > 0);
    CHECK((deepest > 1) == deep);
    check_result(loop, s, &a, executions);
    CHECK_OK(kilter_loop_close(loop, error));
}

/* --- a pipeline --- */

/* Relax element j of row i in place. Row i − 1 already has the values of this sweep. Row i + 1 still has the
 * values of the previous sweep. */
static void relax(double *u, uint64_t n, uint64_t width, uint64_t i, uint64_t j) {
    if (i == 0 || i + 1 == n)
        return;
    const double *below = u + (i - 1) * width, *above = u + (i + 1) * width;
    double corners = below[j > 0 ? j - 1 : j] - above[j + 1 < width ? j + 1 : j];
    u[i * width + j] = 0.3 * u[i * width + j] + 0.7 * (below[j] * 0.4 + above[j] * 0.6) + 0.1 * corners;
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
        force_moves(loop, seed);
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
                run_forced(&s, ghost == 0 && seed % 2, false, seed);
                if (ghost > 0)
                    run_forced(&s, false, true, seed);
                if (ghost == 1)
                    for (uint64_t block = 0; block <= s.width; block = 4 * block + 1)
                        run_pipeline(&s, block, seed, true, EXECUTIONS, NULL);
            }
}

/* --- loops with few iterations, and with rows that are not a multiple of a page --- */

enum { ODD = 5 /* bytes of a row */ };

typedef struct mixed {
    float *f[2];
    uint8_t *odd;
    uint32_t *wide; /* each row has 12 bytes more than two pages */
} mixed;

enum { WIDE = 2 * 4096 / 4 + 3 };

static void step_mixed(const mixed *m, uint64_t n, uint64_t ghost, uint64_t i, int e) {
    float sum = 0;
    for (uint64_t k = i > ghost ? i - ghost : 0; k <= i + ghost && k < n; k++)
        sum = 0.3f * sum + m->f[e % 2][k];
    m->f[1 - e % 2][i] = sum;
    for (int k = 0; k < ODD; k++)
        m->odd[i * ODD + k] = (uint8_t)(5 * m->odd[i * ODD + k] + i + k + e);
    for (int k = 0; k < WIDE; k += 500)
        m->wide[i * WIDE + k] = 3 * m->wide[i * WIDE + k] + (uint32_t)(i + e);
}

static void begin_mixed(const mixed *m, uint64_t i) {
    m->f[0][i] = (float)value_at(i, 0);
    m->odd[i * ODD] = (uint8_t)i;
    m->wide[i * WIDE] = (uint32_t)i;
}

static void run_few(uint64_t n, uint64_t ghost, bool scattered, uint64_t seed) {
    kilter_loop *loop;
    mixed m, all = {{calloc(n, sizeof(float)), calloc(n, sizeof(float))},
                    calloc(n, ODD),
                    calloc(n * WIDE, sizeof(uint32_t))};
    void *whole = malloc(n * WIDE * sizeof(uint32_t));
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = n, .scattered = scattered},
                              &loop, error));
    CHECK_OK(kilter_loop_array(loop, sizeof(float), ghost, (void **)&m.f[0], error));
    CHECK_OK(kilter_loop_array(loop, ODD, ghost, (void **)&m.odd, error));
    CHECK_OK(kilter_loop_array(loop, WIDE * sizeof(uint32_t), 0, (void **)&m.wide, error));
    CHECK_OK(kilter_loop_array(loop, sizeof(float), ghost, (void **)&m.f[1], error));
    force_moves(loop, seed);
    kilter_range own;
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        for (uint64_t i = own.lo; i < own.hi; i++)
            begin_mixed(&m, i);
    for (uint64_t i = 0; i < n; i++)
        begin_mixed(&all, i);
    for (int e = 0; e < EXECUTIONS; e++) {
        CHECK_OK(kilter_loop_begin(loop, error));
        while (kilter_loop_next(loop, &own))
            for (uint64_t i = own.lo; i < own.hi; i++)
                step_mixed(&m, n, ghost, i, e);
        CHECK_OK(kilter_loop_end(loop, error));
        for (uint64_t i = 0; i < n; i++)
            step_mixed(&all, n, ghost, i, e);
    }
    check_mine(loop, n);
    const struct {
        const void *rows, *expected;
        size_t bytes;
    } compared[] = {{m.f[EXECUTIONS % 2], all.f[EXECUTIONS % 2], sizeof(float)},
                    {m.odd, all.odd, ODD},
                    {m.wide, all.wide, WIDE * sizeof(uint32_t)}};
    for (int a = 0; a < 3; a++) {
        CHECK_OK(kilter_loop_gather(loop, compared[a].rows, 0, whole, error));
        CHECK(rank != 0 || memcmp(whole, compared[a].expected, n * compared[a].bytes) == 0);
    }
    CHECK_OK(kilter_loop_close(loop, error));
    free(whole);
    free(all.f[0]);
    free(all.f[1]);
    free(all.odd);
    free(all.wide);
}

/* Run loops that have one to three iterations for each rank. */
static void test_few(void) {
    uint64_t seed = 1000;
    for (uint64_t n = 1; n <= 3 * (uint64_t)ranks; n++)
        for (uint64_t ghost = 0; ghost <= 3; ghost++, seed++) {
            run_few(n, ghost, false, seed);
            if (ghost == 0)
                run_few(n, 0, true, seed);
            if (ghost == 1)
                run_pipeline(&(shape){n, 20, 1}, seed % 8, seed, true, EXECUTIONS, NULL);
        }
}

/* --- moves decided by measurements --- */

/* Use the CPU time that `part` of a row takes on this rank. Rank 0 is slower than the others. */
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
    CHECK(ranks == 1 || scattered ||
          summary.rounds > 0); /* scattered loops may end before their first round */
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

static void be_late(uint64_t i, double part) {
    (void)i;
    kl_spend_s(part * (rank == 0 ? 10e-3 : 0.1e-3));
}

/* Run a short sweep before long sweeps. The time of the short sweep does not show how long the next sweeps
 * take. */
static void run_after_short_one(bool scattered) {
    enum { LONG = 5 };
    shape s = {200, 10, 0};
    kilter_loop *loop;
    kilter_loop_summary summary;
    arrays a;
    CHECK_OK(kilter_loop_open(
        MPI_COMM_WORLD, &(kilter_loop_options){.iterations = s.n, .scattered = scattered}, &loop, error));
    attach(loop, &s, &a);
    execute(loop, &s, &a, 0, NULL);
    for (int e = 1; e <= LONG; e++)
        execute(loop, &s, &a, e, be_late);
    kilter_loop_summary_get(loop, &summary);
    CHECK(ranks == 1 || summary.rounds > 1);
    check_result(loop, &s, &a, 1 + LONG);
    CHECK_OK(kilter_loop_close(loop, error));
}

static void test_rounds(void) {
    run_measured(&(shape){400, 50, 1}, false, 150, be_slow);
    run_measured(&(shape){400, 50, 0}, true, 100, be_slow);
    run_measured(&(shape){3000, 50, 0}, true, 3, be_slow);
    run_measured(&(shape){400, 50, 2}, false, 100, be_uneven);
    run_pipeline(&(shape){200, 400, 1}, 0, 0, false, 60, be_slow);
    run_after_short_one(false);
    run_after_short_one(true);
}

/* --- calls that must be refused --- */

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

typedef enum wrong_use {
    NEXT_WITHOUT_BEGIN,
    BEGIN_TWICE,
    END_TOO_SOON,
    NEXT_OF_PIPELINE,
    NEXT_BLOCK_OF_DOALL,
    NEXT_INTO_NULL,
    NEXT_BLOCK_INTO_NULL,
    END_WITHOUT_BEGIN,
    ARRAY_WITHIN,
    MINE_WITHIN,
    SUM_WITHIN,
    SUM_OF_OTHERS,
    SUM_INTO_NULL,
    GATHER_WITHIN,
    GATHER_OF_OTHERS,
    GATHER_TO_NOBODY,
    GATHER_INTO_NULL,
    CLOSE_WITHIN,
    WRONG_USES,
} wrong_use;

static const struct {
    bool pipeline, within;
    const char *word;
} uses[WRONG_USES] = {
    [NEXT_WITHOUT_BEGIN] = {false, false, "kilter_loop_begin() first"},
    [BEGIN_TWICE] = {false, true, "a sweep is under way"},
    [END_TOO_SOON] = {false, true, "are left"},
    [NEXT_OF_PIPELINE] = {true, true, "kilter_loop_next_block()"},
    [NEXT_BLOCK_OF_DOALL] = {false, true, "call kilter_loop_next()"},
    [NEXT_INTO_NULL] = {false, true, "is NULL"},
    [NEXT_BLOCK_INTO_NULL] = {true, true, "is NULL"},
    [END_WITHOUT_BEGIN] = {false, false, "kilter_loop_begin() first"},
    [ARRAY_WITHIN] = {false, true, "has begun"},
    [MINE_WITHIN] = {false, true, "kilter_loop_mine()"},
    [SUM_WITHIN] = {false, true, "a sweep is under way"},
    [SUM_OF_OTHERS] = {false, false, "not the base of an attached array"},
    [SUM_INTO_NULL] = {false, false, "is NULL"},
    [GATHER_WITHIN] = {false, true, "a sweep is under way"},
    [GATHER_OF_OTHERS] = {false, false, "not the base of an attached array"},
    [GATHER_TO_NOBODY] = {false, false, "there is no rank"},
    [GATHER_INTO_NULL] = {false, false, "is NULL"},
    [CLOSE_WITHIN] = {false, true, "closing loop 'mine': a sweep is under way"},
};

static kilter_status call_wrongly(kilter_loop *loop, wrong_use use, void *base, kilter_error *error) {
    kilter_range r, inner;
    double sum = 0;
    switch (use) {
    case BEGIN_TWICE:
        return kilter_loop_begin(loop, error);
    case ARRAY_WITHIN:
        return kilter_loop_array(loop, 8, 0, &base, error);
    case SUM_WITHIN:
        return kilter_loop_sum(loop, base, &sum, error);
    case SUM_OF_OTHERS:
        return kilter_loop_sum(loop, &sum, &sum, error);
    case SUM_INTO_NULL:
        return kilter_loop_sum(loop, base, NULL, error);
    case GATHER_WITHIN:
        return kilter_loop_gather(loop, base, 0, &sum, error);
    case GATHER_OF_OTHERS:
        return kilter_loop_gather(loop, &sum, 0, &sum, error);
    case GATHER_TO_NOBODY:
        return kilter_loop_gather(loop, base, ranks, &sum, error);
    case GATHER_INTO_NULL:
        return kilter_loop_gather(loop, base, rank, NULL, error);
    case CLOSE_WITHIN:
        return kilter_loop_close(loop, error);
    case NEXT_WITHOUT_BEGIN:
    case NEXT_OF_PIPELINE:
        CHECK(!kilter_loop_next(loop, &r));
        break;
    case NEXT_BLOCK_OF_DOALL:
        CHECK(!kilter_loop_next_block(loop, &r, &inner));
        break;
    case NEXT_INTO_NULL:
        CHECK(!kilter_loop_next(loop, NULL));
        break;
    case NEXT_BLOCK_INTO_NULL:
        CHECK(!kilter_loop_next_block(loop, &r, NULL));
        break;
    case MINE_WITHIN:
        CHECK(!kilter_loop_mine(loop, 0, &r));
        break;
    default:
        break;
    }
    return kilter_loop_end(loop, error);
}

/* First let all ranks make the wrong call. Then let only the last rank make it: the other ranks must be
 * told. */
static void use_wrongly(wrong_use use) {
    for (int alone = 0; alone < 1 + (ranks > 1 && use != ARRAY_WITHIN); alone++) {
        kilter_loop *loop;
        kilter_error error = {KILTER_OK, ""};
        double *base, sum;
        bool does = !alone || rank == ranks - 1;
        CHECK_OK(kilter_loop_open(
            MPI_COMM_WORLD,
            &(kilter_loop_options){.iterations = 10 * (uint64_t)ranks,
                                   .name = "mine",
                                   .kind = uses[use].pipeline ? KILTER_DOACROSS : KILTER_DOALL,
                                   .inner = uses[use].pipeline},
            &loop, error));
        CHECK_OK(kilter_loop_array(loop, sizeof *base, 1, (void **)&base, error));
        if (uses[use].within)
            CHECK_OK(kilter_loop_begin(loop, error));
        MPI_Barrier(MPI_COMM_WORLD);
        kilter_status status;
        if (does) {
            status = call_wrongly(loop, use, base, &error);
        } else {
            kilter_range r, inner;
            if (uses[use].within && uses[use].pipeline)
                while (kilter_loop_next_block(loop, &r, &inner))
                    ;
            else if (uses[use].within)
                while (kilter_loop_next(loop, &r))
                    ;
            status = uses[use].within ? kilter_loop_end(loop, &error) : KILTER_OK;
            if (status == KILTER_OK)
                status = kilter_loop_sum(loop, base, &sum, &error);
        }
        expect(status, does ? KILTER_ERR_USAGE : KILTER_ERR_PEER, &error, uses[use].word);
        CHECK(strstr(error.text, "'mine'"));
        MPI_Barrier(MPI_COMM_WORLD);
        if (use != CLOSE_WITHIN || !does)
            CHECK(kilter_loop_close(loop, NULL) == status); /* closing the loop returns the same failure
                                                               again */
    }
}

/* Open a loop with more iterations than rows can exist. */
static void use_huge(void) {
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    void *base;
    kilter_range own;
    uint64_t n = UINT64_MAX / 4;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = n}, &loop, error));
    expect(kilter_loop_array(loop, 1, 0, &base, &error), KILTER_ERR_RANGE, &error, "2^47");
    for (int e = 0; e < 3; e++) {
        CHECK(kilter_loop_mine(loop, 0, &own) && own.hi - own.lo >= n / (uint64_t)ranks && own.hi <= n);
        CHECK_OK(kilter_loop_begin(loop, error));
        for (kilter_range r; kilter_loop_next(loop, &r);)
            CHECK(r.lo < r.hi);
        CHECK_OK(kilter_loop_end(loop, error));
    }
    CHECK_OK(kilter_loop_close(loop, error));
}

/* Attach an array with more ghost rows than the loop has rows. Check that all rows can be read. */
static void use_wide(void) {
    kilter_loop *loop;
    double *rows;
    uint64_t n = 10 * (uint64_t)ranks;
    kilter_range own;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = n}, &loop, error));
    CHECK_OK(kilter_loop_array(loop, sizeof *rows, UINT64_C(1) << 63, (void **)&rows, error));
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        for (uint64_t i = own.lo; i < own.hi; i++)
            rows[i] = (double)i;
    force_moves(loop, 9);
    for (int e = 0; e < EXECUTIONS; e++) {
        CHECK_OK(kilter_loop_begin(loop, error));
        for (kilter_range r; kilter_loop_next(loop, &r);)
            for (uint64_t i = 0; i < n; i++)
                CHECK(rows[i] == (double)i);
        CHECK_OK(kilter_loop_end(loop, error));
    }
    CHECK_OK(kilter_loop_close(loop, error));
}

static void refuse_options(void) {
    expect_refusal((kilter_loop_options){.iterations = 0}, "iterations");
    expect_refusal((kilter_loop_options){.iterations = 1, .kind = KILTER_DOACROSS}, "inner");
    expect_refusal((kilter_loop_options){.iterations = 1, .inner = 3}, "inner");
    expect_refusal((kilter_loop_options){.iterations = 1, .kind = KILTER_DOACROSS, .inner = 2, .block = 3},
                   "block");
    expect_refusal(
        (kilter_loop_options){.iterations = 1, .kind = KILTER_DOACROSS, .inner = 2, .scattered = true},
        "scattered");
    expect_refusal((kilter_loop_options){.iterations = UINT64_MAX}, "2^62");
    expect_refusal((kilter_loop_options){.iterations = 1, .kind = KILTER_DOACROSS, .inner = UINT64_MAX},
                   "2^62");
    expect_refusal((kilter_loop_options){.iterations = 10, .kind = (kilter_loop_kind)7},
                   "kind must be KILTER_DOALL or KILTER_DOACROSS");
}

static void refuse_options_that_differ(void) {
    expect_refusal((kilter_loop_options){.iterations = 10 + (rank == 1)}, "'iterations' differs");
    expect_refusal((kilter_loop_options){.iterations = 10, .fixed = rank == ranks - 1}, "'fixed' differs");
    expect_refusal((kilter_loop_options){.iterations = 10, .scattered = rank == 0}, "'scattered' differs");
    expect_refusal((kilter_loop_options){.iterations = 10,
                                         .kind = rank == 0 ? KILTER_DOALL : KILTER_DOACROSS,
                                         .inner = 4},
                   "'kind' differs");
    expect_refusal(
        (kilter_loop_options){.iterations = 10, .kind = KILTER_DOACROSS, .inner = 4 + (uint64_t)(rank == 1)},
        "'inner' differs");
    expect_refusal(
        (kilter_loop_options){
            .iterations = 10, .kind = KILTER_DOACROSS, .inner = 4, .block = 1 + (uint64_t)(rank == 1)},
        "'block' differs");
}

static void refuse_to_open(void) {
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    const kilter_loop_options options = {.iterations = 1};
    bool last = rank == ranks - 1;
    if (last)
        setenv("KILTER_MPI_START_S", "soon", 1);
    expect(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), KILTER_ERR_USAGE, &error,
           last ? "KILTER_MPI_START_S: 'soon' is not" : "KILTER_MPI_START_S of a rank");
    unsetenv("KILTER_MPI_START_S");
    expect(kilter_loop_open(MPI_COMM_WORLD, last ? NULL : &options, &loop, &error), KILTER_ERR_USAGE, &error,
           "NULL as options");
    expect(kilter_loop_open(MPI_COMM_NULL, &options, &loop, &error), KILTER_ERR_USAGE, &error,
           "a communicator that contains this rank");
}

static void refuse_arrays(kilter_loop *loop) {
    kilter_error error = {KILTER_OK, ""};
    void *base;
    expect(kilter_loop_array(loop, 0, 0, &base, &error), KILTER_ERR_RANGE, &error, "1 byte");
    expect(kilter_loop_array(loop, (size_t)1 << 50, 0, &base, &error), KILTER_ERR_RANGE, &error, "2^47");
    expect(kilter_loop_array(loop, 8, 0, NULL, &error), KILTER_ERR_RANGE, &error, "is NULL");
    if (ranks == 1)
        return;
    expect(kilter_loop_array(loop, 8 + 8 * (rank == 1), 0, &base, &error), KILTER_ERR_RANGE, &error,
           "array 0 to loop 'mine': 'bytes' differs");
    expect(kilter_loop_array(loop, 8, rank == 1, &base, &error), KILTER_ERR_RANGE, &error, "'ghost' differs");
    expect(kilter_loop_array(loop, 8, 0, rank == 1 ? NULL : &base, &error), KILTER_ERR_RANGE, &error,
           "'base (NULL)' differs");
}

static void refuse_calls(void) {
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    void *base;
    double sum = 0;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = 10, .name = "mine"}, &loop,
                              error));
    refuse_arrays(loop);
    CHECK_OK(kilter_loop_array(loop, 16, 0, &base, error));
    CHECK_OK(kilter_loop_begin(loop, error));
    for (kilter_range r; kilter_loop_next(loop, &r);)
        ;
    CHECK_OK(kilter_loop_end(loop, error));
    expect(kilter_loop_array(loop, 8, 0, &base, &error), KILTER_ERR_USAGE, &error, "has begun");
    MPI_Barrier(MPI_COMM_WORLD);
    expect(kilter_loop_sum(loop, base, &sum, &error), KILTER_ERR_USAGE, &error, "16 bytes, not 8");
    /* all ranks must have begun, because a rank that fails alone ends the loop on all ranks */
    MPI_Barrier(MPI_COMM_WORLD);
    kilter_loop_close(loop, NULL);
}

static void test_use(void) {
    refuse_options();
    if (ranks > 1)
        refuse_options_that_differ();
    refuse_to_open();
    refuse_calls();
    for (int wrong = 0; wrong < WRONG_USES; wrong++)
        use_wrongly((wrong_use)wrong);
    use_huge();
    use_wide();
}

/* --- a rank without memory, and the death of a rank --- */

static uint64_t rows_of_rank_1(kilter_loop *loop) {
    uint64_t sum = 0;
    kilter_range own;
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        sum += own.hi - own.lo;
    MPI_Bcast(&sum, 1, MPI_UINT64_T, 1, MPI_COMM_WORLD);
    return sum;
}

static void be_short_of_memory(bool scattered) {
    shape s = {64, 1 << 16, !scattered}; /* a row has 512 KiB */
    kilter_loop *loop;
    kilter_loop_summary summary;
    arrays a;
    CHECK_OK(kilter_loop_open(
        MPI_COMM_WORLD, &(kilter_loop_options){.iterations = s.n, .scattered = scattered}, &loop, error));
    attach(loop, &s, &a);
    force_moves(loop, 5);
    int executions = 0;
    do { /* move rows until rank 1 has few: otherwise it would have memory for more rows already */
        execute(loop, &s, &a, executions++, NULL);
    } while (rows_of_rank_1(loop) > s.n / 2);
    struct rlimit limit;
    if (rank == 1) {
        limit = little_more();
        setrlimit(RLIMIT_DATA, &limit);
    }
    int first = executions;
    do { /* wait until a plan gives rank 1 more rows; this depends on the number of rounds so far */
        execute(loop, &s, &a, executions++, NULL);
        kilter_loop_summary_get(loop, &summary);
    } while (executions < first + 3 || (executions < 200 && !strstr(summary.decision, "no memory")));
    if (rank == 1)
        setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    CHECK(strstr(summary.decision, "no memory"));
    check_result(loop, &s, &a, executions);
    CHECK_OK(kilter_loop_close(loop, error));
}

static void be_short_in_pipeline(void) {
    shape s = {64, 1 << 16, 1};
    kilter_loop *loop;
    kilter_loop_summary summary;
    double *u, *whole = malloc(s.n * s.width * sizeof *whole);
    kilter_range own, rows, inner;
    CHECK_OK(
        kilter_loop_open(MPI_COMM_WORLD,
                         &(kilter_loop_options){
                             .iterations = s.n, .kind = KILTER_DOACROSS, .inner = s.width, .block = 1 << 14},
                         &loop, error));
    CHECK_OK(kilter_loop_array(loop, s.width * sizeof *u, 1, (void **)&u, error));
    force_moves(loop, 5);
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        for (uint64_t i = own.lo; i < own.hi; i++)
            for (uint64_t j = 0; j < s.width; j++)
                u[i * s.width + j] = value_at(i, j);
    int executions = 8;
    for (int e = 0; e < executions; e++) {
        struct rlimit limit;
        if (rank == 1 && e > 0) {
            limit = little_more();
            setrlimit(RLIMIT_DATA, &limit);
        }
        CHECK_OK(kilter_loop_begin(loop, error));
        while (kilter_loop_next_block(loop, &rows, &inner))
            for (uint64_t i = rows.lo; i < rows.hi; i++)
                for (uint64_t j = inner.lo; j < inner.hi; j++)
                    relax(u, s.n, s.width, i, j);
        CHECK_OK(kilter_loop_end(loop, error));
    }
    if (rank == 1)
        setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    kilter_loop_summary_get(loop, &summary);
    CHECK(strstr(summary.decision, "no memory"));
    CHECK_OK(kilter_loop_gather(loop, u, 0, whole, error));
    if (rank == 0) {
        double *expected = malloc(s.n * s.width * sizeof *expected);
        for (uint64_t i = 0; i < s.n * s.width; i++)
            expected[i] = value_at(i / s.width, i % s.width);
        for (int e = 0; e < executions; e++)
            for (uint64_t i = 0; i < s.n; i++)
                for (uint64_t j = 0; j < s.width; j++)
                    relax(expected, s.n, s.width, i, j);
        CHECK(memcmp(whole, expected, s.n * s.width * sizeof *whole) == 0);
        free(expected);
    }
    CHECK_OK(kilter_loop_close(loop, error));
    free(whole);
}

/* Run a loop in which one rank has no memory for deep halos. Check that no rank uses deep halos then. */
static void be_short_of_room(void) {
    shape s = {64, 1 << 14, 1}; /* a row has 128 KiB, so 31 rows have about 4 MiB */
    kilter_loop *loop;
    kilter_loop_summary summary;
    arrays a;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = s.n, .deep = true}, &loop,
                              error));
    attach(loop, &s, &a);
    force_moves(loop, 5);
    struct rlimit limit = little_more();
    if (rank == 1)
        setrlimit(RLIMIT_DATA, &limit);
    execute(loop, &s, &a, 0, NULL);
    if (rank == 1)
        setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    for (int e = 1; e < 4 * EXECUTIONS; e++) {
        execute(loop, &s, &a, e, NULL);
        kilter_loop_summary_get(loop, &summary);
        CHECK(summary.depth == 1);
    }
    CHECK(summary.moves > 0);
    check_result(loop, &s, &a, 4 * EXECUTIONS);
    CHECK_OK(kilter_loop_close(loop, error));
}

static void test_memory(void) {
    be_short_of_room();
    be_short_in_pipeline();
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
    suite_begin();
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "moves") == 0)
        test_moves();
    else if (strcmp(what, "few") == 0)
        test_few();
    else if (strcmp(what, "rounds") == 0)
        test_rounds();
    else if (strcmp(what, "use") == 0)
        test_use();
    else if (strcmp(what, "memory") == 0)
        test_memory();
    else if (strcmp(what, "death") == 0 && count > 2)
        test_death(atoi(arguments[2]));
    else
        CHECK(!"the arguments must be moves, few, rounds, use, memory, or death RANK");
    MPI_Finalize();
}
