/* mg [CLASS]: class S, W, A or B of the benchmark MG of the NAS Parallel Benchmarks. The planes of each grid
 * are the rows of aligned loops: loops whose rows move together. The planes of the finest grid move to the
 * ranks that compute them fastest. Each plane of a coarse grid is on the rank that has the matching plane of
 * the finest grid. The coarsest grids may have fewer planes than there are ranks. With KILTER_CHECKPOINT in
 * the environment, a program that was interrupted continues from its last checkpoint. */
#include <kilter/loop.h>

#include "mg.h"

typedef struct level {
    size_t n;
    double *u, *r;
    /* loops over the planes of this level; the loop `interpolate` also reads the coarser grid, and the loop
     * `project` the finer grid */
    kilter_loop *residual, *smooth, *interpolate, *project;
} level;

typedef struct solver {
    const mg_class *is;
    level at[LEVELS];
    double *v, *squares;
    mg_extremes *extremes;
} solver;

static void *attach(kilter_loop *loop, size_t bytes, uint64_t ghost) {
    void *base;
    kilter_error error;
    must(kilter_loop_array(loop, bytes, ghost, &base, &error), &error);
    return base;
}

/* Open a loop over the planes of a level. Plane k is on the same rank as plane (k + 1) · stride − 1 of the
 * finest grid. */
static kilter_loop *follow(const solver *s, int l, const char *name, const double *reads) {
    uint64_t stride = UINT64_C(1) << (s->is->top - l);
    kilter_loop_options options = {.iterations = s->at[l].n,
                                   .follows = s->at[s->is->top].residual,
                                   .stride = stride,
                                   .offset = stride - 1,
                                   .periodic = true,
                                   .name = name};
    kilter_loop *loop;
    kilter_error error;
    must(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), &error);
    if (reads)
        must(kilter_loop_share(loop, reads, 1, &error), &error);
    return loop;
}

/* Open the loops of a level. Each loop fetches only the planes of neighbours that the body of this loop
 * reads. */
static void open_level(solver *s, int l) {
    level *at = &s->at[l];
    at->n = (size_t)1 << l;
    if (l < s->is->top)
        at->residual = follow(s, l, "residual", NULL);
    at->u = attach(at->residual, mg_plane(at->n) * sizeof(double), 1);
    at->r = attach(at->residual, mg_plane(at->n) * sizeof(double), 0);
    at->smooth = follow(s, l, "smooth", at->r);
    if (l < s->is->top) {
        at->project = follow(s, l, "project", at[1].r);
        at[1].interpolate = follow(s, l + 1, "interpolate", at->u);
    }
}

static solver open_solver(const mg_class *is, const settings *set) {
    solver s = {.is = is};
    level *finest = &s.at[is->top];
    kilter_loop_options lead = {.iterations = UINT64_C(1) << is->top,
                                .periodic = true,
                                .fixed = set->fixed,
                                .name = "residual",
                                .record = set->record,
                                .checkpoint_every = 2,
                                .sweeps = 2 * (uint64_t)is->cycles + 1};
    kilter_error error;
    must(kilter_loop_open(MPI_COMM_WORLD, &lead, &finest->residual, &error), &error);
    for (int l = is->top; l > 0; l--)
        open_level(&s, l);
    s.v = attach(finest->residual, mg_plane(finest->n) * sizeof(double), 0);
    s.squares = attach(finest->residual, sizeof(double), 0);
    s.extremes = attach(finest->residual, sizeof(mg_extremes), 0);
    return s;
}

static void close_solver(const solver *s) {
    kilter_error error;
    for (int l = 1; l <= s->is->top; l++) {
        const level *at = &s->at[l];
        kilter_loop *loops[] = {at->smooth, at->project, at->interpolate,
                                l < s->is->top ? at->residual : NULL};
        for (int i = 0; i < 4; i++)
            must(kilter_loop_close(loops[i], &error), &error);
    }
    must(kilter_loop_close(s->at[s->is->top].residual, &error), &error);
}

static void merge(void *left, const void *right, uint64_t bytes, void *user) {
    (void)bytes, (void)user;
    mg_merge(left, right);
}

/* Place the charges, which are at the points with extreme random numbers. To find these points, each rank
 * first searches its own planes. */
static void start(solver *s) {
    const level *finest = &s->at[s->is->top];
    mg_extremes all;
    kilter_range r;
    kilter_error error;
    for (size_t nth = 0; kilter_loop_mine(finest->residual, nth, &r); nth++)
        for (size_t k = r.lo; k < r.hi; k++)
            mg_find_extremes(finest->n, k, &s->extremes[k]);
    must(kilter_loop_reduce(finest->residual, s->extremes, merge, NULL, &all, &error), &error);
    for (size_t nth = 0; kilter_loop_mine(finest->residual, nth, &r); nth++)
        for (size_t k = r.lo; k < r.hi; k++)
            mg_charge(finest->n, k, &all, s->v);
}

/* --- the sweeps of a cycle --- */

typedef enum work { PROJECT, INTERPOLATE, RESIDUAL, SMOOTH } work;

static void do_plane(const solver *s, int l, work what, ptrdiff_t k) {
    const level *at = &s->at[l];
    bool top = l == s->is->top;
    if (what == PROJECT)
        mg_project(at->n, k, at[1].r, at->r);
    else if (what == INTERPOLATE)
        mg_interpolate(at->n, k, at[-1].u, at->u, !top);
    else if (what == RESIDUAL)
        mg_residual(at->n, k, top ? s->v : at->r, at->u, at->r);
    else
        mg_smooth(at->n, k, s->is->smooth, at->r, at->u, l == 1);
}

static void sweep(const solver *s, const settings *set, int l, work what) {
    const level *at = &s->at[l];
    kilter_loop *loops[] = {at->project, at->interpolate, at->residual, at->smooth}, *loop = loops[what];
    kilter_error error;
    must(kilter_loop_begin(loop, &error), &error);
    for (kilter_range r; kilter_loop_next(loop, &r);) {
        double from_s = cpu_s(set);
        for (uint64_t k = r.lo; k < r.hi; k++)
            do_plane(s, l, what, (ptrdiff_t)k);
        if (l == s->is->top && what == RESIDUAL)
            pay(set, from_s, (double)(r.hi - r.lo));
    }
    must(kilter_loop_end(loop, &error), &error);
}

/* Do the cycles from number `cycle` on; a checkpoint has the result of the earlier cycles. A cycle has two
 * sweeps of the leading loop, which computes the residual on the finest level. Checkpoints are written only
 * before the second of these sweeps, so a run begins with this sweep. */
static void run(const solver *s, const settings *set, uint64_t cycle) {
    int top = s->is->top;
    sweep(s, set, top, RESIDUAL);
    for (; cycle < (uint64_t)s->is->cycles; cycle++) {
        for (int l = top - 1; l > 0; l--)
            sweep(s, set, l, PROJECT);
        for (int l = 1; l <= top; l++) {
            if (l > 1) {
                sweep(s, set, l, INTERPOLATE);
                sweep(s, set, l, RESIDUAL);
            }
            sweep(s, set, l, SMOOTH);
        }
        sweep(s, set, top, RESIDUAL);
    }
}

/* --- checking the result --- */

static void add(void *left, const void *right, uint64_t bytes, void *user) {
    (void)bytes, (void)user;
    *(double *)left += *(const double *)right;
}

/* Add up the squares of the residual in all planes, in an order that does not depend on the ranks. */
static double add_squares(const solver *s) {
    const level *finest = &s->at[s->is->top];
    double sum;
    kilter_range r;
    kilter_error error;
    for (size_t nth = 0; kilter_loop_mine(finest->residual, nth, &r); nth++)
        for (size_t k = r.lo; k < r.hi; k++)
            s->squares[k] = mg_square(finest->n, (ptrdiff_t)k, finest->r);
    must(kilter_loop_reduce(finest->residual, s->squares, add, NULL, &sum, &error), &error);
    return sum;
}

/* Gather the result on rank 0, which prints and checks it. Return the exit code. */
static int conclude(const solver *s, const settings *set, double elapsed_s) {
    const level *finest = &s->at[s->is->top];
    size_t plane = mg_plane(finest->n) * sizeof(double);
    int rank;
    kilter_error error;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *whole = rank == 0 ? allocate(finest->n, plane) : NULL, sum = add_squares(s);
    must(kilter_loop_gather(finest->residual, finest->u, 0, whole, &error), &error);
    if (rank > 0)
        return 0;
    mg_grids alone = {.v = NULL};
    if (set->check) {
        alone = mg_start(s->is);
        mg_solve(s->is, &alone);
    }
    int code = finish(set, elapsed_s, whole, alone.u[s->is->top], finest->n * plane);
    bool verified = mg_verify(s->is, sum);
    say_summary(set, finest->residual);
    if (set->check)
        mg_free(s->is, &alone);
    free(whole);
    return verified ? code : 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const mg_class *is;
    settings set = mg_settings(argc, argv, &is);
    solver s = open_solver(is, &set);
    kilter_error error;
    uint64_t sweeps;
    must(kilter_loop_resumed(s.at[is->top].residual, &sweeps, &error), &error);
    if (sweeps == 0)
        start(&s);
    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    run(&s, &set, sweeps / 2);
    MPI_Barrier(MPI_COMM_WORLD);
    int code = conclude(&s, &set, MPI_Wtime() - begun_s);
    close_solver(&s);
    MPI_Finalize();
    return code;
}
