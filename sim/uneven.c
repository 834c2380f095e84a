/* uneven KIND [ITERATIONS EXECUTIONS COST] [--fixed]: run a loop whose iteration i takes 2(i + ½)/n × COST
 * seconds on a simulated host of speed 1; KIND is doall, scattered or pipeline. Rank 0 prints a line: the
 * time, how many rows moved, and each rank's work at the end divided by the mean. */
#include <kilter/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/sys.h"

enum { WIDTH = 64 /* number of doubles in a row */ };

typedef struct program {
    kilter_loop_options options;
    int executions;
    double cost_s;
    double (*u)[WIDTH];
} program;

static void must(kilter_status status, const kilter_error *error) {
    if (status != KILTER_OK) {
        fprintf(stderr, "%s\n", error->text);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
}

static double cost_of(const program *p, uint64_t lo, uint64_t hi) {
    double n = (double)p->options.iterations;
    return p->cost_s * ((double)hi * (double)hi - (double)lo * (double)lo) / n;
}

/* Compute the columns `from` to `to` − 1 of the rows in `rows`. This takes as much simulated time as the rows
 * cost. */
static void work(program *p, kilter_range rows, uint64_t from, uint64_t to) {
    for (uint64_t i = rows.lo; i < rows.hi; i++)
        for (uint64_t j = from; j < to; j++)
            p->u[i][j] += (double)(i + j);
    kl_spend_s(cost_of(p, rows.lo, rows.hi) * (double)(to - from) / WIDTH);
}

static void execute(program *p, kilter_loop *loop) {
    kilter_error error;
    kilter_range rows, inner;
    must(kilter_loop_begin(loop, &error), &error);
    if (p->options.kind == KILTER_DOACROSS)
        while (kilter_loop_next_block(loop, &rows, &inner))
            work(p, rows, inner.lo, inner.hi);
    else
        while (kilter_loop_next(loop, &rows))
            work(p, rows, 0, WIDTH);
    must(kilter_loop_end(loop, &error), &error);
}

static bool is_right(const program *p, double (*whole)[WIDTH]) {
    for (uint64_t i = 0; i < p->options.iterations; i++)
        for (uint64_t j = 0; j < WIDTH; j++)
            if (whole[i][j] != (double)p->executions * (double)(i + j))
                return false;
    return true;
}

static void tell(const program *p, kilter_loop *loop, double elapsed_s) {
    int rank, ranks;
    kilter_error error;
    kilter_loop_summary s;
    kilter_range own;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double work_s = 0, *of = malloc((size_t)ranks * sizeof *of),
           (*whole)[WIDTH] = rank == 0 ? malloc(p->options.iterations * sizeof *whole) : NULL;
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &own); nth++)
        work_s += cost_of(p, own.lo, own.hi);
    MPI_Gather(&work_s, 1, MPI_DOUBLE, of, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    must(kilter_loop_gather(loop, p->u, 0, whole, &error), &error);
    kilter_loop_summary_get(loop, &s);
    if (rank == 0) {
        double all_s = cost_of(p, 0, p->options.iterations);
        printf("{\"ranks\":%d,\"right\":%s,\"work_s\":%.9g,\"elapsed_s\":%.9g,\"rounds\":%llu,\"moves\":%llu,"
               "\"moved\":%llu,\"decision\":\"%s\",\"work\":[",
               ranks, is_right(p, whole) ? "true" : "false", all_s * p->executions, elapsed_s,
               (unsigned long long)s.rounds, (unsigned long long)s.moves, (unsigned long long)s.moved,
               s.decision);
        for (int r = 0; r < ranks; r++)
            printf("%s%.4f", r ? "," : "", of[r] * ranks / all_s);
        printf("]}\n");
    }
    free(of);
    free(whole);
}

static bool read_words(int argc, char **argv, program *p) {
    static const char *const kinds[] = {"doall", "scattered", "pipeline"};
    bool fixed = argc > 2 && strcmp(argv[argc - 1], "--fixed") == 0;
    int words = argc - fixed, kind = 0;
    while (kind < 3 && (argc < 2 || strcmp(argv[1], kinds[kind]) != 0))
        kind++;
    if (kind == 3 || (words != 2 && words != 5))
        return false;
    *p = (program){.options = {.iterations = 1000, .fixed = fixed, .scattered = kind == 1},
                   .executions = 100,
                   .cost_s = 0.01};
    if (kind == 2) {
        p->options.kind = KILTER_DOACROSS;
        p->options.inner = WIDTH;
    }
    if (words == 5) {
        p->options.iterations = strtoull(argv[2], NULL, 10);
        p->executions = atoi(argv[3]);
        p->cost_s = atof(argv[4]);
    }
    return p->options.iterations > 0 && p->executions > 0 && p->cost_s > 0;
}

int main(int argc, char **argv) {
    program p;
    kilter_loop *loop;
    kilter_error error;
    MPI_Init(&argc, &argv);
    if (!read_words(argc, argv, &p)) {
        fprintf(stderr, "usage: uneven doall|scattered|pipeline [ITERATIONS EXECUTIONS COST] [--fixed]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        exit(2);
    }
    must(kilter_loop_open(MPI_COMM_WORLD, &p.options, &loop, &error), &error);
    must(kilter_loop_array(loop, sizeof *p.u, !p.options.scattered, (void **)&p.u, &error), &error);
    MPI_Barrier(MPI_COMM_WORLD);
    double began_s = kl_monotonic_s();
    for (int e = 0; e < p.executions; e++)
        execute(&p, loop);
    MPI_Barrier(MPI_COMM_WORLD);
    tell(&p, loop, kl_monotonic_s() - began_s);
    must(kilter_loop_close(loop, &error), &error);
    MPI_Finalize();
    return 0;
}
