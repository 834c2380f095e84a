/* A small MPI program for the tests of kilter watch: watch_test_program MODE [ITERATIONS]. Rank 0 computes
 * longer than the other ranks. Each mode does something that kilter watch must be able to handle. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;

/* Use this much CPU time. */
static void compute(double seconds) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    double end_s = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds;
    while ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec < end_s)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
}

static void iterate(int iterations, MPI_Comm comm) {
    double mine = rank, sum = 0;
    for (int i = 0; i < iterations; i++) {
        compute(rank == 0 ? 2e-3 : 1e-3);
        MPI_Request request;
        MPI_Isend(&mine, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, comm, &request);
        MPI_Recv(&sum, 1, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    }
}

/* Wait for a message by polling, so that the number of MPI calls differs between iterations. */
static void poll_for_it(int iterations) {
    for (int i = 0; i < iterations; i++) {
        MPI_Request request;
        int done = 0;
        compute(rank == 0 ? 2e-3 : 1e-3);
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        while (!done)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void deal(int tasks) {
    for (int i = 0, one = 1; i < tasks; i++)
        if (rank == 0)
            for (int r = 1; r < ranks; r++)
                MPI_Recv(&one, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else {
            compute(1e-3);
            MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
}

static void *other_thread(void *comm) {
    for (int i = 0; i < 10; i++)
        MPI_Barrier(*(MPI_Comm *)comm);
    return NULL;
}

static void use_threads(int iterations) {
    pthread_t thread;
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    pthread_create(&thread, NULL, other_thread, &own);
    iterate(iterations, MPI_COMM_WORLD);
    pthread_join(thread, NULL);
    MPI_Comm_free(&own);
}

static void spawn(char *self) {
    char *words[] = {(char[]){"child"}, NULL};
    MPI_Comm children;
    MPI_Comm_spawn(self, words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
}

static void be_child(void) {
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    int iterations = argc > 2 ? atoi(argv[2]) : 60, level = 0;
    if (strcmp(mode, "no-init") == 0)
        return 3;
    MPI_Init_thread(&argc, &argv, strcmp(mode, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(mode, "child") == 0)
        be_child();
    else if (strcmp(mode, "poll") == 0)
        poll_for_it(iterations);
    else if (strcmp(mode, "deal") == 0)
        deal(iterations);
    else if (strcmp(mode, "threads") == 0)
        use_threads(iterations);
    else
        iterate(iterations, MPI_COMM_WORLD);
    if (strcmp(mode, "spawn") == 0)
        spawn(argv[0]);
    if (strcmp(mode, "killed") == 0) {
        if (rank == ranks - 1)
            raise(SIGKILL);
        iterate(1000000, MPI_COMM_WORLD);
    }
    if (strcmp(mode, "abort") == 0 && rank == 0)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(mode, "no-finalize") == 0)
        _exit(0);
    MPI_Finalize();
    return strcmp(mode, "fails") == 0 ? 5 : 0;
}
