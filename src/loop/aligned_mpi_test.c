/* Compare aligned loops on the ranks of MPI_COMM_WORLD with the sequential program, bit by bit. Start this
 * test with mpirun.
 *
 *   aligned_mpi_test moves     rows move at every opportunity, to random places
 *                    rounds    a rank is slow in the body of a follower, and rows move by measurements
 *                    collect   rows are reduced, gathered and scattered
 *                    use       calls are wrong
 *                    memory    a rank has no memory for the rows of a follower's array
 *                    death N   rank N is killed in a sweep of a follower; the others say "rank N is dead"
 */
#include <signal.h>

#include "loop/fold.h"
#include "loop/loop_suite.h"

enum { STEPS = 6 };

static double value_at(uint64_t i, uint64_t j) {
    return (double)(kl_mix64(i * 1000003 + j) >> 11) * 0x1p-53;
}

static kilter_loop *open_loop(kilter_loop_options options) {
    kilter_loop *loop;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, error));
    return loop;
}

static double *attach(kilter_loop *loop, uint64_t width, uint64_t ghost) {
    void *base;
    CHECK_OK(kilter_loop_array(loop, width * sizeof(double), ghost, &base, error));
    return base;
}

static void share(kilter_loop *loop, const double *base) {
    CHECK_OK(kilter_loop_share(loop, base, 1, error));
}

static void close_loop(kilter_loop *loop) {
    CHECK_OK(kilter_loop_close(loop, error));
}

static void check_rows(kilter_loop *loop, const double *base, const double *expected, uint64_t n,
                       uint64_t width) {
    int root = (int)(n % (uint64_t)ranks);
    double *whole = calloc(n * width, sizeof *whole);
    CHECK_OK(kilter_loop_gather(loop, base, root, whole, error));
    CHECK(rank != root || memcmp(whole, expected, n * width * sizeof *whole) == 0);
    free(whole);
}

/* --- four aligned loops on the same rows: a stencil, two pipelines (forwards and backwards), and an update
 * --- */

typedef struct grid {
    uint64_t n, width;
    double *u, *v;
} grid;

static double at(const grid *g, const double *a, uint64_t i, int64_t rows, uint64_t j) {
    int64_t row = (int64_t)i + rows;
    return row < 0 || row >= (int64_t)g->n || j >= g->width ? 0.25 : a[(uint64_t)row * g->width + j];
}

static void stencil(const grid *g, uint64_t i) {
    for (uint64_t j = 0; j < g->width; j++)
        g->v[i * g->width + j] = 0.3 * at(g, g->u, i, -2, j) - 0.2 * at(g, g->u, i, -1, j) +
                                 0.5 * at(g, g->u, i, 0, j) + 0.1 * at(g, g->u, i, 1, j) -
                                 0.4 * at(g, g->u, i, 2, j);
}

/* Relax element j of row i. way: 1 if rows and elements are visited in rising order, −1 if in falling order.
 * Array u has not changed since the stencil. */
static void relax(const grid *g, uint64_t i, uint64_t j, int way) {
    uint64_t before = j - (uint64_t)way,
             after = j + (uint64_t)way; /* this index may wrap around below 0, which at() accepts */
    double done = 0.4 * at(g, g->v, i, -way, j) + 0.1 * at(g, g->v, i, -way, before),
           old = 0.3 * at(g, g->v, i, way, j) - 0.2 * at(g, g->v, i, way, after),
           beside = at(g, g->u, i, way, j) * at(g, g->u, i, -way, j);
    g->v[i * g->width + j] =
        0.5 * g->v[i * g->width + j] + done + old + 0.1 * beside + 0.1 * at(g, g->v, i, 0, before);
}

static void update(const grid *g, uint64_t i) {
    for (uint64_t j = 0; j < g->width; j++)
        g->u[i * g->width + j] += 0.5 * g->v[i * g->width + j];
}

static void start(const grid *g, uint64_t lo, uint64_t hi) {
    for (uint64_t i = lo; i < hi; i++)
        for (uint64_t j = 0; j < g->width; j++)
            g->u[i * g->width + j] = value_at(i, j);
}

static grid sequential(uint64_t n, uint64_t width, int steps) {
    grid g = {n, width, calloc(n * width, sizeof(double)), calloc(n * width, sizeof(double))};
    CHECK(g.u && g.v);
    start(&g, 0, n);
    for (int step = 0; step < steps; step++) {
        for (uint64_t i = 0; i < n; i++)
            stencil(&g, i);
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t j = 0; j < width; j++)
                relax(&g, i, j, 1);
        for (uint64_t i = n; i-- > 0;)
            for (uint64_t j = width; j-- > 0;)
                relax(&g, i, j, -1);
        for (uint64_t i = 0; i < n; i++)
            update(&g, i);
    }
    return g;
}

typedef struct solver {
    kilter_loop *stencil, *forward, *backward, *update;
    grid g;
} solver;

static solver open_solver(uint64_t n, uint64_t width, uint64_t block) {
    solver s = {.stencil = open_loop((kilter_loop_options){.iterations = n, .name = "stencil"})};
    kilter_loop_options pipeline = {
        .iterations = n, .follows = s.stencil, .kind = KILTER_DOACROSS, .inner = width, .block = block};
    s.forward = open_loop(pipeline);
    pipeline.backward = true;
    s.backward = open_loop(pipeline);
    s.update = open_loop((kilter_loop_options){.iterations = n, .follows = s.stencil});
    s.g = (grid){n, width, attach(s.stencil, width, 2), attach(s.forward, width, 1)};
    share(s.backward, s.g.v);
    kilter_range own;
    if (kilter_loop_mine(s.update, 0, &own))
        start(&s.g, own.lo, own.hi);
    return s;
}

static void close_solver(const solver *s) {
    close_loop(s->update);
    close_loop(s->backward);
    close_loop(s->forward);
    close_loop(s->stencil);
}

static void sweep(kilter_loop *loop, const grid *g, void (*body)(const grid *, uint64_t)) {
    CHECK_OK(kilter_loop_begin(loop, error));
    for (kilter_range r; kilter_loop_next(loop, &r);)
        for (uint64_t i = r.lo; i < r.hi; i++)
            body(g, i);
    CHECK_OK(kilter_loop_end(loop, error));
}

static void run_forward(const solver *s, double row_s) {
    kilter_range rows, inner;
    CHECK_OK(kilter_loop_begin(s->forward, error));
    while (kilter_loop_next_block(s->forward, &rows, &inner))
        for (uint64_t i = rows.lo; i < rows.hi; i++) {
            for (uint64_t j = inner.lo; j < inner.hi; j++)
                relax(&s->g, i, j, 1);
            kl_spend_s(row_s * (double)(inner.hi - inner.lo) / (double)s->g.width);
        }
    CHECK_OK(kilter_loop_end(s->forward, error));
}

static void run_backward(const solver *s) {
    kilter_range rows, inner;
    CHECK_OK(kilter_loop_begin(s->backward, error));
    while (kilter_loop_next_block(s->backward, &rows, &inner))
        for (uint64_t i = rows.hi; i-- > rows.lo;)
            for (uint64_t j = inner.hi; j-- > inner.lo;)
                relax(&s->g, i, j, -1);
    CHECK_OK(kilter_loop_end(s->backward, error));
}

static void check_solver(const solver *s, int steps) {
    grid expected = sequential(s->g.n, s->g.width, steps);
    kilter_range lead = {0, 0}, own = {0, 0};
    CHECK(kilter_loop_mine(s->stencil, 0, &lead) == kilter_loop_mine(s->backward, 0, &own));
    CHECK(lead.lo == own.lo && lead.hi == own.hi);
    CHECK(kilter_loop_owner(s->update, 0) == kilter_loop_owner(s->stencil, 0));
    check_rows(s->backward, s->g.u, expected.u, s->g.n, s->g.width);
    check_rows(s->stencil, s->g.v, expected.v, s->g.n, s->g.width);
    free(expected.u);
    free(expected.v);
}

static void run_solver(uint64_t n, uint64_t width, uint64_t block, uint64_t seed) {
    kilter_loop_summary summary;
    solver s = open_solver(n, width, block);
    force_moves(s.stencil, seed);
    if (block == 0) { /* block = 0: test random blocks and random numbers of passes */
        force_moves(s.forward, seed);
        force_moves(s.backward, seed + 1);
    }
    for (int step = 0; step < STEPS; step++) {
        sweep(s.stencil, &s.g, stencil);
        run_forward(&s, 0);
        run_backward(&s);
        sweep(s.update, &s.g, update);
    }
    kilter_loop_summary_get(s.stencil, &summary);
    CHECK(ranks == 1 || n < 8 || summary.moved > 0);
    kilter_loop_summary_get(s.backward, &summary);
    CHECK(summary.moves == 0 && summary.executions == STEPS);
    check_solver(&s, STEPS);
    close_solver(&s);
}

/* --- a multigrid of three grids, each with half the rows of the next finer grid --- */

typedef struct level {
    uint64_t n, stride;
    /* r has ghost rows in the loop that restricts; u has ghost rows in the loops that prolong and relax */
    double *u, *r;
    kilter_loop *relax, *restricts, *prolongs;
} level;

enum { LEVELS = 3 };

typedef struct grids {
    level at[LEVELS]; /* at[0] is the finest grid */
    uint64_t width;
    bool periodic, whole; /* whole = true: this rank has all rows of the grids, so there are no ghost rows */
} grids;

/* Return the row with this index. An index beyond the ends wraps around in a periodic grid. Return NULL if
 * there is no such row. */
static const double *row(const grids *g, const level *l, const double *a, int64_t index) {
    int64_t n = (int64_t)l->n;
    if (!g->periodic && (index < 0 || index >= n))
        return NULL;
    if (g->whole)
        index = (index + n) % n;
    return a + index * (int64_t)g->width;
}

static double value(const double *a, uint64_t j) {
    return a ? a[j] : 0.125;
}

/* Set r = f(u) in row i of grid k. */
static void relax_row(const grids *g, int k, uint64_t i) {
    const level *l = &g->at[k];
    const double *below = row(g, l, l->u, (int64_t)i - 1), *here = row(g, l, l->u, (int64_t)i),
                 *above = row(g, l, l->u, (int64_t)i + 1);
    for (uint64_t j = 0; j < g->width; j++)
        l->r[i * g->width + j] = 0.3 * value(below, j) - 0.5 * here[j] + 0.4 * value(above, j);
}

/* Set u = f(r of the next finer grid) in row i. */
static void restrict_row(const grids *g, int k, uint64_t i) {
    const level *l = &g->at[k], *fine = l - 1;
    const double *a = row(g, fine, fine->r, 2 * (int64_t)i), *b = row(g, fine, fine->r, 2 * (int64_t)i + 1),
                 *c = row(g, fine, fine->r, 2 * (int64_t)i + 2);
    for (uint64_t j = 0; j < g->width; j++)
        l->u[i * g->width + j] = 0.2 * value(a, j) + 0.5 * value(b, j) + 0.3 * value(c, j);
}

/* Add f(u of the next coarser grid) to u in row i. */
static void prolong_row(const grids *g, int k, uint64_t i) {
    const level *l = &g->at[k], *coarse = l + 1;
    int64_t c = (int64_t)(i / 2);
    const double *a = row(g, coarse, coarse->u, i % 2 ? c : c - 1), *b = row(g, coarse, coarse->u, c);
    for (uint64_t j = 0; j < g->width; j++)
        l->u[i * g->width + j] += 0.4 * value(a, j) + 0.5 * value(b, j);
}

static void sweep_grid(kilter_loop *loop, const grids *g, int k, void (*body)(const grids *, int, uint64_t)) {
    CHECK_OK(kilter_loop_begin(loop, error));
    for (kilter_range r; kilter_loop_next(loop, &r);)
        for (uint64_t i = r.lo; i < r.hi; i++)
            body(g, k, i);
    CHECK_OK(kilter_loop_end(loop, error));
}

static void do_all(const grids *g, int k, void (*body)(const grids *, int, uint64_t)) {
    for (uint64_t i = 0; i < g->at[k].n; i++)
        body(g, k, i);
}

static void do_steps(const grids *g, int steps) {
    for (int step = 0; step < steps; step++) {
        for (int k = 0; k < LEVELS; k++) {
            if (k > 0)
                do_all(g, k, restrict_row);
            do_all(g, k, relax_row);
        }
        for (int k = LEVELS - 2; k >= 0; k--)
            do_all(g, k, prolong_row);
    }
}

static void sweep_steps(const grids *g, int steps) {
    for (int step = 0; step < steps; step++) {
        for (int k = 0; k < LEVELS; k++) {
            if (k > 0)
                sweep_grid(g->at[k].restricts, g, k, restrict_row);
            sweep_grid(g->at[k].relax, g, k, relax_row);
        }
        for (int k = LEVELS - 2; k >= 0; k--)
            sweep_grid(g->at[k].prolongs, g, k, prolong_row);
    }
}

static kilter_loop *follow(const grids *g, const level *l) {
    return open_loop((kilter_loop_options){.iterations = l->n,
                                           .follows = g->at[0].relax,
                                           .stride = l->stride,
                                           .offset = l->stride - 1,
                                           .periodic = g->periodic});
}

static void open_level(grids *g, int k) {
    level *l = &g->at[k];
    l->relax =
        k == 0 ? open_loop((kilter_loop_options){.iterations = l->n, .periodic = g->periodic}) : follow(g, l);
    l->u = attach(l->relax, g->width, 1);
    l->r = attach(l->relax, g->width, 0);
    if (k > 0) {
        l->restricts = follow(g, l);
        share(l->restricts, l[-1].r);
        l[-1].prolongs = follow(g, l - 1);
        share(l[-1].prolongs, l->u);
    }
}

static void start_grids(const grids *g, uint64_t lo, uint64_t hi) {
    for (uint64_t i = lo; i < hi; i++)
        for (uint64_t j = 0; j < g->width; j++)
            g->at[0].u[i * g->width + j] = value_at(i, j);
}

static grids grids_of(uint64_t n, uint64_t width, bool periodic, bool whole) {
    grids g = {.width = width, .periodic = periodic, .whole = whole};
    for (int k = 0; k < LEVELS; k++) {
        g.at[k].n = n >> k;
        g.at[k].stride = UINT64_C(1) << k;
        if (whole) {
            g.at[k].u = calloc(g.at[k].n * width, sizeof(double));
            g.at[k].r = calloc(g.at[k].n * width, sizeof(double));
            CHECK(g.at[k].u && g.at[k].r);
        } else {
            open_level(&g, k);
        }
    }
    return g;
}

static void close_grids(const grids *g) {
    for (int k = LEVELS - 1; k >= 0; k--) {
        if (k > 0) {
            close_loop(g->at[k].restricts);
            close_loop(g->at[k - 1].prolongs);
        }
        close_loop(k > 0 ? g->at[k].relax : NULL);
    }
    close_loop(g->at[0].relax);
}

static void run_grids(uint64_t n, uint64_t width, bool periodic, uint64_t seed) {
    grids all = grids_of(n, width, periodic, true), g = grids_of(n, width, periodic, false);
    kilter_range own;
    force_moves(g.at[0].relax, seed);
    if (kilter_loop_mine(g.at[0].relax, 0, &own))
        start_grids(&g, own.lo, own.hi);
    start_grids(&all, 0, n);
    do_steps(&all, STEPS);
    sweep_steps(&g, STEPS);
    for (int k = 0; k < LEVELS; k++) {
        check_rows(g.at[k].relax, g.at[k].u, all.at[k].u, all.at[k].n, width);
        check_rows(g.at[0].relax, g.at[k].r, all.at[k].r, all.at[k].n, width);
        free(all.at[k].u);
        free(all.at[k].r);
    }
    close_grids(&g);
}

static void test_moves(void) {
    static const uint64_t sizes[] = {1, 2, 3, 10, 61}, widths[] = {1, 7, 100};
    uint64_t seed = 1;
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (uint64_t block = 0; block <= widths[w]; block = 4 * block + 1, seed++)
                run_solver(sizes[n], widths[w], block, seed);
    for (uint64_t n = 4; n <= 64; n *= 2)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++, seed++) {
            run_grids(n, 10 * widths[w], true, seed);
            run_grids(n, 10 * widths[w], false, seed);
        }
}

/* --- moves that are decided from measured times --- */

/* Rank 0 is slow in one of the aligned loops. Check that rows of all these loops leave rank 0. */
static void test_rounds(void) {
    enum { ROWS = 120, MOST_STEPS = 2000 };
    kilter_loop_summary summary;
    solver s = open_solver(ROWS, 64, 0);
    uint64_t last = ROWS / (uint64_t)ranks - 1; /* the last row of rank 0 at the beginning */
    int steps = 0;
    for (; steps < MOST_STEPS && kilter_loop_owner(s.stencil, last) == 0; steps++) {
        sweep(s.stencil, &s.g, stencil);
        run_forward(&s, rank == 0 ? 60e-6 : 10e-6);
        run_backward(&s);
        sweep(s.update, &s.g, update);
    }
    kilter_loop_summary_get(s.stencil, &summary);
    if (rank == 0)
        printf("%d steps, %llu rounds: %s\n", steps, kl_ull(summary.rounds), summary.decision);
    CHECK(kilter_loop_owner(s.forward, last) > 0);
    check_solver(&s, steps);
    close_solver(&s);
}

/* --- reducing, gathering and scattering arrays --- */

static void mix(void *left, const void *right, uint64_t bytes, void *user) {
    double *l = left;
    const double *r = right;
    (void)user;
    for (uint64_t i = 0; i < bytes / sizeof *l; i++)
        l[i] = 0.7 * l[i] - 0.6 * r[(i + 1) % (bytes / sizeof *r)] +
               0.1; /* rounding makes the result depend on the order */
}

static void check_reductions(kilter_loop *loop, const double *base, const double *whole, uint64_t n,
                             uint64_t width) {
    static const kilter_loop_combine functions[] = {mix, kilter_loop_least, kilter_loop_most};
    double *result = calloc(width, sizeof *result);
    for (int i = 0; i < 3; i++) {
        kl_fold fold = {.bytes = width * sizeof *result, .combine = functions[i]};
        for (uint64_t k = 0; k < n; k++)
            CHECK(kl_fold_add(&fold, (kl_segment){k, 0}, whole + k * width));
        CHECK_OK(kilter_loop_reduce(loop, base, functions[i], NULL, result, error));
        CHECK(memcmp(result, kl_fold_value(&fold), width * sizeof *result) == 0);
        kl_fold_free(&fold);
    }
    free(result);
}

static void run_collect(uint64_t n, uint64_t width, bool scattered, uint64_t seed) {
    kilter_loop *loop = open_loop((kilter_loop_options){.iterations = n, .scattered = scattered});
    double *base = attach(loop, width, 0), *whole = calloc(n * width, sizeof *whole);
    force_moves(loop, seed);
    for (int step = 0; step < STEPS; step++) {
        int root = (int)((n + (uint64_t)step) % (uint64_t)ranks);
        CHECK_OK(kilter_loop_begin(loop, error));
        for (kilter_range r; kilter_loop_next(loop, &r);)
            ;
        CHECK_OK(kilter_loop_end(loop, error));
        for (uint64_t i = 0; i < n * width; i++)
            whole[i] = value_at(i, seed + (uint64_t)step);
        CHECK_OK(kilter_loop_scatter(loop, base, root, rank == root ? whole : NULL, error));
        check_rows(loop, base, whole, n, width);
        check_reductions(loop, base, whole, n, width);
    }
    free(whole);
    close_loop(loop);
}

/* Use an array of a coarse loop (the follower) through the follower, and also through the leader. */
static void collect_from_follower(uint64_t n, uint64_t seed) {
    enum { WIDTH = 3 };
    kilter_loop *leader = open_loop((kilter_loop_options){.iterations = n, .periodic = true});
    kilter_loop *coarse = open_loop(
        (kilter_loop_options){.iterations = (n + 2) / 3, .follows = leader, .stride = 3, .periodic = true});
    uint64_t rows = (n + 2) / 3;
    double *base = attach(coarse, WIDTH, 1), *whole = calloc(rows * WIDTH, sizeof *whole);
    for (uint64_t i = 0; i < rows * WIDTH; i++)
        whole[i] = value_at(i, seed);
    force_moves(leader, seed);
    for (int step = 0; step < STEPS; step++) {
        CHECK_OK(kilter_loop_begin(leader, error));
        for (kilter_range r; kilter_loop_next(leader, &r);)
            ;
        CHECK_OK(kilter_loop_end(leader, error));
        CHECK_OK(kilter_loop_scatter(step % 2 ? leader : coarse, base, step % ranks, whole, error));
        check_rows(step % 2 ? coarse : leader, base, whole, rows, WIDTH);
        check_reductions(coarse, base, whole, rows, WIDTH);
    }
    free(whole);
    close_loop(coarse);
    close_loop(leader);
}

static void test_collect(void) {
    static const uint64_t sizes[] = {1, 2, 5, 64, 301};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        run_collect(sizes[n], 1 + n, false, n);
        run_collect(sizes[n], 600, true, n);
        collect_from_follower(sizes[n], n);
    }
}

/* --- calls that must be refused --- */

static void refuse(kilter_loop_options options, const char *word) {
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    CHECK(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error) == KILTER_ERR_RANGE);
    CHECK(strstr(error.text, word));
}

static void refuse_share(kilter_loop *loop, const double *base, uint64_t ghost, const char *word) {
    kilter_error error = {KILTER_OK, ""};
    CHECK(kilter_loop_share(loop, base, ghost, &error) == KILTER_ERR_RANGE);
    CHECK(strstr(error.text, word));
}

static void refuse_options(kilter_loop *leader, kilter_loop *follower) {
    const kilter_loop_options o = {.iterations = 10, .follows = leader};
    kilter_loop_options wrong = o;
    wrong.follows = follower;
    refuse(wrong, "the loop to follow follows another loop");
    wrong = o;
    wrong.iterations = 11;
    refuse(wrong, "the last row needs row stride * (iterations - 1) + offset of the loop to follow");
    wrong = o;
    wrong.offset = 1;
    refuse(wrong, "the last row needs row stride * (iterations - 1) + offset of the loop to follow");
    wrong = o;
    wrong.stride = 2;
    refuse(wrong, "the last row needs row stride * (iterations - 1) + offset of the loop to follow");
    wrong = o;
    wrong.fixed = true;
    refuse(wrong, "deep or fixed");
    wrong = o;
    wrong.iterations = rank == ranks - 1 ? 9 : 10;
    if (ranks > 1)
        refuse(wrong, "'iterations' differs");
    refuse((kilter_loop_options){.iterations = 10, .stride = 2}, "need follows");
    refuse((kilter_loop_options){.iterations = 10, .backward = true}, "backward");
    refuse((kilter_loop_options){.iterations = 10, .deep = true, .ordered = true}, "ordered");
    refuse((kilter_loop_options){.iterations = 10, .scattered = true, .ordered = true}, "ordered");
    refuse((kilter_loop_options){.iterations = 10, .scattered = true, .periodic = true}, "periodic");
    refuse((kilter_loop_options){.iterations = 10, .deep = true, .periodic = true}, "periodic");
}

/* Make wrong call number `how`, which ends both loops. Each later call must return the same error. */
static void end_by(int how) {
    kilter_loop *leader = open_loop((kilter_loop_options){.iterations = 10, .name = "first"});
    kilter_loop *follower =
        open_loop((kilter_loop_options){.iterations = 10, .follows = leader, .name = "second"});
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = KILTER_OK;
    kilter_range r;
    MPI_Barrier(MPI_COMM_WORLD);
    if (how == 0) {
        status = kilter_loop_close(leader, &error);
    } else {
        CHECK_OK(kilter_loop_begin(leader, error));
        /* all ranks must have begun the sweep, because a rank that fails alone ends the loops on all
         * ranks */
        MPI_Barrier(MPI_COMM_WORLD);
        if (how == 1)
            status = kilter_loop_begin(follower, &error);
        if (how == 2)
            CHECK(!kilter_loop_next(follower, &r));
        if (how == 3)
            CHECK(!kilter_loop_mine(follower, 0, &r));
        if (how >= 2)
            status = kilter_loop_end(how % 2 ? leader : follower, &error);
    }
    CHECK(status == KILTER_ERR_USAGE &&
          strstr(error.text, how == 0 ? "loops that follow it are open; close them" : "sweep"));
    CHECK(kilter_loop_end(leader, &error) == KILTER_ERR_USAGE);
    CHECK(kilter_loop_close(follower, &error) == KILTER_ERR_USAGE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (how > 0)
        CHECK(kilter_loop_close(leader, &error) == KILTER_ERR_USAGE);
}

static void test_use(void) {
    kilter_loop *leader = open_loop((kilter_loop_options){.iterations = 10});
    kilter_loop *follower = open_loop((kilter_loop_options){.iterations = 5, .follows = leader, .stride = 2});
    kilter_loop *pipeline = open_loop(
        (kilter_loop_options){.iterations = 10, .follows = leader, .kind = KILTER_DOACROSS, .inner = 16});
    kilter_error error = {KILTER_OK, ""};
    refuse_options(leader, follower);
    double *a = attach(leader, 4, 0), *b = attach(follower, 4, 1), *c = attach(leader, 3, 0), elsewhere;
    refuse_share(leader, &elsewhere, 1, "the argument is not the base of an array of this loop");
    refuse_share(leader, a, 0, "at least 1");
    refuse_share(follower, b, 1, "already");
    refuse_share(pipeline, b, 1, "the array's loop must have the same rows");
    refuse_share(pipeline, c, 1, "inner must divide the bytes of a row");
    refuse_share(pipeline, a, 2, "a loop of kind KILTER_DOACROSS can share an array only with ghost 1");
    if (ranks > 1)
        refuse_share(leader, a, rank == 0 ? 1 : 2, "'ghost' differs");
    share(leader, a);
    share(pipeline, a);
    CHECK_OK(kilter_loop_begin(follower, error));
    for (kilter_range r; kilter_loop_next(follower, &r);)
        ;
    CHECK_OK(kilter_loop_end(follower, error));
    CHECK(kilter_loop_share(leader, b, 1, &error) == KILTER_ERR_USAGE);
    void *base;
    CHECK(kilter_loop_array(leader, 8, 0, &base, &error) == KILTER_ERR_USAGE);
    CHECK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = 1, .follows = leader},
                           &(kilter_loop *){NULL}, &error) == KILTER_ERR_USAGE);
    close_loop(follower);
    close_loop(pipeline);
    close_loop(leader);
    for (int how = 0; how < 4; how++)
        end_by(how);
}

/* --- a follower whose array is too large for one rank --- */

static void test_memory(void) {
    enum { ROWS = 64, WIDE = (512 << 10) / 8 };
    kilter_loop *leader = open_loop((kilter_loop_options){.iterations = 2 * ROWS});
    kilter_loop *coarse =
        open_loop((kilter_loop_options){.iterations = ROWS, .follows = leader, .stride = 2});
    double *a = attach(leader, 1, 0), *b = attach(coarse, WIDE, 0);
    kilter_range own;
    kilter_loop_summary summary;
    int steps = 0;
    if (kilter_loop_mine(coarse, 0, &own))
        for (uint64_t i = own.lo; i < own.hi; i++)
            b[i * WIDE] = value_at(i, 1);
    if (kilter_loop_mine(leader, 0, &own))
        for (uint64_t i = own.lo; i < own.hi; i++)
            a[i] = value_at(i, 2);
    force_moves(leader, 3);
    do {
        struct rlimit limit = little_more();
        if (rank == 1 && steps > 0)
            setrlimit(RLIMIT_DATA, &limit);
        CHECK_OK(kilter_loop_begin(leader, error));
        for (kilter_range r; kilter_loop_next(leader, &r);)
            ;
        CHECK_OK(kilter_loop_end(leader, error));
        kilter_loop_summary_get(leader, &summary);
    } while (++steps < 200 && !strstr(summary.decision, "no memory"));
    if (rank == 1)
        setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    CHECK(strstr(summary.decision, "no memory"));
    for (int k = 0; k < 2; k++)
        for (size_t nth = 0; kilter_loop_mine(k ? coarse : leader, nth, &own); nth++)
            for (uint64_t i = own.lo; i < own.hi; i++)
                CHECK(k ? b[i * WIDE] == value_at(i, 1) : a[i] == value_at(i, 2));
    close_loop(coarse);
    close_loop(leader);
}

static void test_death(int dies) {
    solver s = open_solver(40, 8, 0);
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = KILTER_OK;
    for (int step = 0; status == KILTER_OK; step++) {
        status = kilter_loop_begin(s.forward, &error);
        for (kilter_range rows, inner; kilter_loop_next_block(s.forward, &rows, &inner);)
            if (rank == dies && step == 3)
                raise(SIGKILL);
        if (status == KILTER_OK)
            status = kilter_loop_end(s.forward, &error);
    }
    bool told = status == KILTER_ERR_PEER && kilter_loop_begin(s.stencil, NULL) == KILTER_ERR_PEER;
    kilter_loop_close(s.forward, NULL);
    kilter_loop_close(s.stencil, NULL);
    printf("rank %d says: %s\n", rank, error.text);
    fflush(stdout);
    _exit(told ? 0 : 1);
}

int main(int argc, char **argv) {
    suite_begin();
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "moves") == 0)
        test_moves();
    else if (strcmp(what, "rounds") == 0)
        test_rounds();
    else if (strcmp(what, "collect") == 0)
        test_collect();
    else if (strcmp(what, "use") == 0)
        test_use();
    else if (strcmp(what, "memory") == 0)
        test_memory();
    else if (strcmp(what, "death") == 0 && argc > 2)
        test_death(atoi(argv[2]));
    else
        CHECK(!"a known test");
    MPI_Finalize();
    return 0;
}
