/* An MPI program without Kilter. tools/watch measures the program alone and under kilter watch.
 *   watch call NAME                  print the nanoseconds of one call, the least of several series.
 *   watch stencil STEPS [PASSES]     print the time of a stencil in seconds, and its passes in each step of
 *                                    1 ms */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 20000, SERIES = 30, HALO = 1000 };
static const double STEP_S = 1e-3;

static int rank, ranks;

static void barrier(void) {
    MPI_Barrier(MPI_COMM_SELF);
}

static void probe(void) {
    int there;
    MPI_Iprobe(0, 7, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
}

static void messages(void) { /* this function makes three MPI calls */
    MPI_Request request;
    int out = 1, in;
    MPI_Isend(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Recv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void allreduce(void) {
    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}

static const struct {
    const char *name;
    void (*make)(void);
    int calls;
} KINDS[] = {
    {"MPI_Iprobe", probe, 1},
    {"MPI_Barrier", barrier, 1},
    {"MPI_Allreduce", allreduce, 1},
    {"MPI_Isend, MPI_Recv, MPI_Wait", messages, 3},
};

static double call_ns(void (*make)(void), int calls) {
    double least_s = 1e9;
    for (int series = 0; series < SERIES; series++) {
        double begun_s = MPI_Wtime();
        for (int i = 0; i < CALLS; i++)
            make();
        double took_s = MPI_Wtime() - begun_s;
        least_s = took_s < least_s ? took_s : least_s;
    }
    return 1e9 * least_s / CALLS / calls;
}

/* Do the work of a step. The number of passes is fixed, so the work does not depend on the measured time. */
static double work(double *row, long passes) {
    double sum = 0;
    for (long p = 0; p < passes; p++)
        for (int i = 1; i + 1 < HALO; i++)
            sum += row[i] = 0.5 * row[i] + 0.25 * (row[i - 1] + row[i + 1]);
    return sum;
}

static long passes_of_step(double *row) {
    double least_s = 1e9;
    for (int i = 0; i < 50; i++) {
        double begun_s = MPI_Wtime();
        work(row, 100);
        double took_s = MPI_Wtime() - begun_s;
        least_s = took_s < least_s ? took_s : least_s;
    }
    long passes = (long)(100 * STEP_S / least_s) + 1;
    MPI_Bcast(&passes, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return passes;
}

/* Measure the time of a stencil. given: number of passes in a step; 0: find the number of passes that takes 1
 * ms, and print it. */
static void stencil(long steps, long given) {
    static double row[HALO], halo[2][HALO];
    MPI_Status statuses[4];
    MPI_Request requests[4];
    int before = rank > 0 ? rank - 1 : MPI_PROC_NULL, after = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    long passes = given > 0 ? given : passes_of_step(row);
    double sum = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun_s = MPI_Wtime();
    for (long s = 0; s < steps; s++) {
        MPI_Irecv(halo[0], HALO, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(halo[1], HALO, MPI_DOUBLE, after, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(row, HALO, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(row, HALO, MPI_DOUBLE, after, 0, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, statuses);
        sum += work(row, passes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.6f %ld%s\n", MPI_Wtime() - begun_s, passes, sum == 1 ? " " : "");
}

int main(int argc, char **argv) {
    int found = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 2 && strcmp(argv[1], "stencil") == 0) {
        stencil(atol(argv[2]), argc > 3 ? atol(argv[3]) : 0);
        found = 1;
    }
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (argc > 2 && strcmp(argv[1], "call") == 0 && strcmp(argv[2], KINDS[i].name) == 0) {
            printf("%.2f\n", call_ns(KINDS[i].make, KINDS[i].calls));
            found = 1;
        }
    if (!found)
        fprintf(stderr, "usage: watch call NAME | stencil STEPS [PASSES]\n");
    MPI_Finalize();
    return !found;
}
