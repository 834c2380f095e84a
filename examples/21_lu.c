/* lu [CLASS]: the benchmark LU of the NAS Parallel Benchmarks, class S, W, A or B. The planes of its grid are
 * the rows of four aligned loops. Planes move to the ranks that compute them fastest. In a step each loop
 * makes one sweep: a pipeline forwards, a pipeline backwards, the update, and the residual. The residual's
 * loop decides when planes move. With KILTER_CHECKPOINT in the environment, a program that was interrupted
 * continues from its last checkpoint. */
#include <kilter/loop.h>

#include "lu.h"

typedef struct solver {
    kilter_loop *residual, *forward, *backward, *update;
    double *u, *v, *forcing, *sums; /* v: the residual, later the change of the solution; sums: rows of 10
                                     * values */
    lu_scratch scratch;
} solver;

static kilter_loop *open_loop(kilter_loop_options options) {
    kilter_loop *loop;
    kilter_error error;
    must(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), &error);
    return loop;
}

static double *attach(kilter_loop *loop, size_t values, uint64_t ghost) {
    void *base;
    kilter_error error;
    must(kilter_loop_array(loop, values * sizeof(double), ghost, &base, &error), &error);
    return base;
}

/* The residual of a plane needs two planes on either side. The two pipelines pass v, the changes of the
 * solution, from rank to rank. They also read neighbours' planes of the solution u. The copies from the
 * residual's sweep are still valid, because u has not changed since. */
static solver open_solver(const lu *s, const settings *set) {
    kilter_loop_options lead = {.iterations = s->n,
                                .fixed = set->fixed,
                                .name = "residual",
                                .record = set->record,
                                .sweeps = (uint64_t)s->is->steps + 1};
    solver p = {.residual = open_loop(lead), .scratch = lu_scratch_of(s)};
    kilter_loop_options pipeline = {.iterations = s->n,
                                    .follows = p.residual,
                                    .kind = KILTER_DOACROSS,
                                    .inner = s->n,
                                    .block = (uint64_t)set->block,
                                    .name = "forward"};
    kilter_error error;
    p.forward = open_loop(pipeline);
    pipeline.backward = true;
    pipeline.name = "backward";
    p.backward = open_loop(pipeline);
    p.update = open_loop((kilter_loop_options){.iterations = s->n, .follows = p.residual, .name = "update"});
    p.u = attach(p.residual, s->plane, 2);
    p.forcing = attach(p.residual, s->plane, 0);
    p.sums = attach(p.residual, 2 * VALUES, 0);
    p.v = attach(p.forward, s->plane, 1);
    must(kilter_loop_share(p.backward, p.v, 1, &error), &error);
    return p;
}

static void close_solver(solver *p) {
    kilter_loop *loops[] = {p->update, p->backward, p->forward, p->residual};
    kilter_error error;
    for (int i = 0; i < 4; i++)
        must(kilter_loop_close(loops[i], &error), &error);
    lu_scratch_free(&p->scratch);
}

static void start(const lu *s, solver *p) {
    kilter_range r;
    for (size_t nth = 0; kilter_loop_mine(p->residual, nth, &r); nth++) {
        for (size_t k = r.lo; k < r.hi; k++)
            lu_start(s, k, p->u);
        lu_force(s, r.lo, r.hi, &p->scratch, p->forcing);
    }
}

/* --- the sweeps of a step --- */

static void sweep_residual(const lu *s, const settings *set, solver *p) {
    kilter_error error;
    must(kilter_loop_begin(p->residual, &error), &error);
    for (kilter_range r; kilter_loop_next(p->residual, &r);) {
        double from_s = cpu_s(set);
        lu_residual(s, r.lo, r.hi, p->u, p->forcing, &p->scratch, p->v);
        pay(set, from_s, (double)(r.hi - r.lo));
    }
    must(kilter_loop_end(p->residual, &error), &error);
}

static void sweep_forward(const lu *s, solver *p) {
    kilter_error error;
    must(kilter_loop_begin(p->forward, &error), &error);
    for (kilter_range r, lines; kilter_loop_next_block(p->forward, &r, &lines);)
        for (size_t k = r.lo; k < r.hi; k++)
            for (size_t j = lines.lo; j < lines.hi; j++)
                if (k > 0 && k + 1 < s->n && j > 0 && j + 1 < s->n)
                    lu_forward(s, k, j, p->u, p->v);
    must(kilter_loop_end(p->forward, &error), &error);
}

static void sweep_backward(const lu *s, solver *p) {
    kilter_error error;
    must(kilter_loop_begin(p->backward, &error), &error);
    for (kilter_range r, lines; kilter_loop_next_block(p->backward, &r, &lines);)
        for (size_t k = r.hi; k-- > r.lo;)
            for (size_t j = lines.hi; j-- > lines.lo;)
                if (k > 0 && k + 1 < s->n && j > 0 && j + 1 < s->n)
                    lu_backward(s, k, j, p->u, p->v);
    must(kilter_loop_end(p->backward, &error), &error);
}

static void sweep_update(const lu *s, solver *p) {
    kilter_error error;
    must(kilter_loop_begin(p->update, &error), &error);
    for (kilter_range r; kilter_loop_next(p->update, &r);)
        for (size_t k = r.lo; k < r.hi; k++)
            lu_update(s, k, p->v, p->u);
    must(kilter_loop_end(p->update, &error), &error);
}

/* Do the steps from number `step` on; a checkpoint has the result of the earlier steps. Checkpoints are
 * written before the residual is computed, so a run begins with the residual. */
static void run(const lu *s, const settings *set, solver *p, uint64_t step) {
    sweep_residual(s, set, p);
    for (; step < (uint64_t)s->is->steps; step++) {
        sweep_forward(s, p);
        sweep_backward(s, p);
        sweep_update(s, p);
        sweep_residual(s, set, p);
    }
}

/* --- checking the result --- */

static void add(void *left, const void *right, uint64_t bytes, void *user) {
    double *sum = left;
    const double *other = right;
    (void)user;
    for (size_t m = 0; m < bytes / sizeof *sum; m++)
        sum[m] += other[m];
}

/* Add up the squares of the residual in all planes, in an order that does not depend on the ranks. */
static void add_squares(const lu *s, solver *p, double sums[2 * VALUES]) {
    kilter_range r;
    kilter_error error;
    for (size_t nth = 0; kilter_loop_mine(p->residual, nth, &r); nth++)
        for (size_t k = r.lo; k < r.hi; k++)
            lu_squares(s, k, p->u, p->v, p->sums + k * 2 * VALUES);
    must(kilter_loop_reduce(p->residual, p->sums, add, NULL, sums, &error), &error);
}

/* Gather the result on rank 0, which prints and checks it. Return the exit code. */
static int conclude(const lu *s, const settings *set, solver *p, double elapsed_s) {
    double sums[2 * VALUES];
    int rank;
    kilter_error error;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *whole = rank == 0 ? allocate(s->n, s->plane * sizeof *whole) : NULL;
    add_squares(s, p, sums);
    must(kilter_loop_gather(p->residual, p->u, 0, whole, &error), &error);
    if (rank > 0)
        return 0;
    lu_grids alone = set->check ? lu_sequential(s) : (lu_grids){.u = NULL};
    int code = finish(set, elapsed_s, whole, alone.u, s->n * s->plane * sizeof *whole);
    bool verified = lu_verify(s, sums, whole);
    say_summary(set, p->residual);
    lu_free(&alone);
    free(whole);
    return verified ? code : 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const lu_class *is;
    settings set = lu_settings(argc, argv, &is);
    lu s = lu_of(is);
    solver p = open_solver(&s, &set);
    kilter_error error;
    uint64_t step;
    must(kilter_loop_resumed(p.residual, &step, &error), &error);
    if (step == 0)
        start(&s, &p);
    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    run(&s, &set, &p, step);
    MPI_Barrier(MPI_COMM_WORLD);
    int code = conclude(&s, &set, &p, MPI_Wtime() - begun_s);
    close_solver(&p);
    MPI_Finalize();
    return code;
}
