/* shared: sweep over a grid with halos, in plain MPI or with Kilter, for measurements on shared machines.
 *
 *   shared --rows N --columns M --work E --seconds S [--plain [--first F] | --fixed | --deep]
 *
 * Each sweep updates every second row from the rows above and below; the next sweep updates the other rows.
 * An update of a row computes E elements: it passes over the row's M columns until E elements are computed.
 * Neighbours exchange whole rows of M doubles. The program runs for S seconds and prints the time of a sweep.
 * Without --plain, Kilter balances the loop. With --fixed, no rows move. With --deep, Kilter may exchange the
 * halos of several sweeps at once. With --first, rank 0 has the fraction F of the rows, and the other ranks
 * have equal parts of the other rows. */
#include <kilter/loop.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct grid {
    size_t rows, columns, work;
    double seconds, first; /* first: fraction of the rows that rank 0 has; 0: equal shares */
    bool plain, fixed, deep;
    int rank, ranks;
} grid;

/* Update row i of the grid, if row i belongs to this sweep. */
static void relax(const grid *g, long sweep, size_t i, double *row) {
    const double *up = row - g->columns, *down = row + g->columns;
    if (i == 0 || i + 1 >= g->rows || (i + (size_t)sweep) % 2 > 0)
        return;
    for (size_t done = 0; done < g->work;) {
        size_t left = g->work - done, some = left < g->columns ? left : g->columns;
        for (size_t j = 0; j < some; j++)
            row[j] = 0.25 * (up[j] + down[j]) + 0.5 * row[j];
        done += some;
    }
}

static void start_row(const grid *g, size_t i, double *row) {
    for (size_t j = 0; j < g->columns; j++)
        row[j] = (double)((i * 31 + j * 17) % 101) / 101;
}

/* Return whether the time of the run is over. Rank 0 decides. Ranks ask rank 0 so seldom that asking costs no
 * measurable time. */
static bool over(const grid *g, double begun_s, double *asked_s, long sweep, long *next) {
    if (sweep < *next)
        return false;
    double now_s = MPI_Wtime(), each_s = sweep > 0 ? (now_s - begun_s) / (double)sweep : 0;
    double plan[2] = {now_s - begun_s >= g->seconds,
                      each_s > 0 ? (double)sweep + fmax(1, fmin(0.1 * g->seconds, 0.25) / each_s) : 2.0};
    MPI_Bcast(plan, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    *asked_s = MPI_Wtime();
    *next = (long)plan[1];
    return plan[0] > 0;
}

static void *need(void *memory) {
    if (!memory) {
        fprintf(stderr, "shared: memory ran out\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static size_t first_row(const grid *g, int rank) {
    double each = (double)g->rows / g->ranks, first = g->first > 0 ? g->first * (double)g->rows : each;
    double rest = g->ranks > 1 ? ((double)g->rows - first) / (g->ranks - 1) : 0;
    return rank == 0 ? 0 : rank == g->ranks ? g->rows : (size_t)(first + (rank - 1) * rest);
}

static long sweep_plain(const grid *g, double *elapsed_s) {
    size_t m = g->columns, lo = first_row(g, g->rank), own = first_row(g, g->rank + 1) - lo;
    double *u = need(calloc((own + 2) * m, sizeof *u));
    int before = own > 0 && lo > 0 ? g->rank - 1 : MPI_PROC_NULL,
        after = own > 0 && lo + own < g->rows ? g->rank + 1 : MPI_PROC_NULL;
    for (size_t i = 0; i < own; i++)
        start_row(g, lo + i, u + (i + 1) * m);
    long sweep = 0, next = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime(), asked_s;
    for (; !over(g, begun_s, &asked_s, sweep, &next); sweep++) {
        MPI_Request requests[4];
        MPI_Status statuses[4]; /* gcc would warn about MPICH's MPI_STATUSES_IGNORE */
        MPI_Irecv(u, (int)m, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(u + (own + 1) * m, (int)m, MPI_DOUBLE, after, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(u + m, (int)m, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(u + own * m, (int)m, MPI_DOUBLE, after, 0, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, statuses);
        for (size_t i = 1; i <= own; i++)
            relax(g, sweep, lo + i - 1, u + i * m);
    }
    *elapsed_s = asked_s - begun_s;
    free(u);
    return sweep;
}

static void must(kilter_status status, const kilter_error *error) {
    if (status == KILTER_OK)
        return;
    fprintf(stderr, "shared: %s\n", error->text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static long sweep_with_kilter(const grid *g, double *elapsed_s, char *said, size_t size) {
    kilter_loop_options options = {
        .iterations = g->rows, .deep = g->deep, .fixed = g->fixed, .name = "shared"};
    kilter_loop_summary summary;
    kilter_error error;
    kilter_loop *loop;
    kilter_range r;
    double *u;
    size_t m = g->columns;
    must(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, &error), &error);
    must(kilter_loop_array(loop, m * sizeof *u, 1, (void **)&u, &error), &error);
    for (size_t nth = 0; kilter_loop_mine(loop, nth, &r); nth++)
        for (size_t i = r.lo; i < r.hi; i++)
            start_row(g, i, u + i * m);
    long sweep = 0, next = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime(), asked_s;
    for (; !over(g, begun_s, &asked_s, sweep, &next); sweep++) {
        must(kilter_loop_begin(loop, &error), &error);
        while (kilter_loop_next(loop, &r))
            for (size_t i = r.lo; i < r.hi; i++)
                relax(g, sweep, i, u + i * m);
        must(kilter_loop_end(loop, &error), &error);
    }
    *elapsed_s = asked_s - begun_s;
    kilter_loop_summary_get(loop, &summary);
    snprintf(said, size, "%llu moves; %s", (unsigned long long)summary.moves, summary.decision);
    must(kilter_loop_close(loop, &error), &error);
    return sweep;
}

/* Return whether halos can be exchanged between neighbours: each rank has rows, or rank 0 has all rows. */
static bool all_have_rows(const grid *g) {
    bool all = true;
    for (int r = 0; r < g->ranks; r++)
        all &= first_row(g, r + 1) > first_row(g, r);
    return all || g->first == 1;
}

_Noreturn static void usage(void) {
    fprintf(
        stderr,
        "usage: shared --rows N --columns M --work E --seconds S [--plain [--first F] | --fixed | --deep]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static double number(const char *word, bool whole) {
    char *end = NULL;
    double value = strtod(word, &end);
    if (end == word || *end || !(value >= 0 && value < 1e15) || (whole && value != floor(value)))
        usage();
    return value;
}

static grid read_grid(int argc, char **argv) {
    grid g = {.rows = 256, .columns = 128, .work = 128, .seconds = 1};
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--plain") == 0)
            g.plain = true;
        else if (strcmp(argv[i], "--fixed") == 0)
            g.fixed = true;
        else if (strcmp(argv[i], "--deep") == 0)
            g.deep = true;
        else if (more && strcmp(argv[i], "--rows") == 0)
            g.rows = (size_t)number(argv[++i], true);
        else if (more && strcmp(argv[i], "--columns") == 0)
            g.columns = (size_t)number(argv[++i], true);
        else if (more && strcmp(argv[i], "--work") == 0)
            g.work = (size_t)number(argv[++i], true);
        else if (more && strcmp(argv[i], "--first") == 0)
            g.first = number(argv[++i], false);
        else if (more && strcmp(argv[i], "--seconds") == 0)
            g.seconds = number(argv[++i], false);
        else
            usage();
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g.ranks);
    if (g.rows < (size_t)g.ranks || g.columns == 0 || g.work == 0 || g.seconds < 0.01)
        usage();
    if (g.plain + g.fixed + g.deep > 1 || (g.first > 0 && !g.plain) || !all_have_rows(&g))
        usage();
    return g;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    grid g = read_grid(argc, argv);
    char said[400] = "";
    double elapsed_s = 0;
    long sweeps =
        g.plain ? sweep_plain(&g, &elapsed_s) : sweep_with_kilter(&g, &elapsed_s, said, sizeof said);
    if (g.rank == 0)
        printf("{\"sweeps\":%ld,\"elapsed_s\":%.9g,\"sweep_s\":%.9g,\"decision\":\"%s\"}\n", sweeps,
               elapsed_s, elapsed_s / (double)sweeps, said);
    MPI_Finalize();
    return 0;
}
