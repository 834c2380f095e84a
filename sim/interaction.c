/* interaction BYTES MORE: measure the time of the messages with which the ranks of a loop decide their
 * shares, in four ways. Rank 0 prints one line. A rank's report has BYTES bytes, or MORE bytes if iterations
 * differ in cost. The number of hosts must be a power of two. smpirun starts this program. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sys/sys.h"

typedef struct team {
    int rank, ranks, bytes;
    uint8_t *mine, *all;
} team;

typedef void way(const team *t);

/* --- four ways to decide the shares --- */

enum { ORDER_BYTES = 32 }; /* bytes that tell a rank its new bounds and the rows to exchange */

static void central(const team *t) {
    MPI_Gather(t->mine, t->bytes, MPI_BYTE, t->all, t->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Scatter(t->all, ORDER_BYTES, MPI_BYTE, t->mine, ORDER_BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void replicated(const team *t) {
    MPI_Allgather(t->mine, t->bytes, MPI_BYTE, t->all, t->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* Compute sums over all ranks and over the lower ranks, and a maximum. If shares are in proportion to speeds,
 * a rank needs no other data from the other ranks. */
static void by_tree(const team *t) {
    struct {
        double sum, most;
    } own = {1, t->rank}, theirs;
    double below = 0;
    for (int far = 1; far < t->ranks; far *= 2) {
        int peer = t->rank ^ far;
        MPI_Sendrecv(&own, sizeof own, MPI_BYTE, peer, 0, &theirs, sizeof theirs, MPI_BYTE, peer, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        below += peer < t->rank ? theirs.sum : 0;
        own.sum += theirs.sum;
        own.most = fmax(own.most, theirs.most);
    }
    if (below != t->rank || own.sum != t->ranks || own.most != t->ranks - 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void with_neighbours(const team *t) {
    int below = t->rank > 0 ? t->rank - 1 : MPI_PROC_NULL,
        above = t->rank + 1 < t->ranks ? t->rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(t->mine, t->bytes, MPI_BYTE, above, 0, t->all, t->bytes, MPI_BYTE, below, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(t->mine, t->bytes, MPI_BYTE, below, 0, t->all, t->bytes, MPI_BYTE, above, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* --- measuring --- */

static double most_of(double value) {
    double most;
    MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

/* Let all ranks begin together, and measure the time until the last rank has ended. */
static double time_of(way *go, const team *t) {
    double begins_s = most_of(kl_monotonic_s()) + 1;
    kl_nap_s(begins_s - kl_monotonic_s());
    go(t);
    return most_of(kl_monotonic_s()) - begins_s;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    team t = {.bytes = argc == 3 ? atoi(argv[1]) : 0};
    int more = argc == 3 ? atoi(argv[2]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
    if (t.bytes < ORDER_BYTES || more < t.bytes || (t.ranks & (t.ranks - 1))) {
        fprintf(stderr, "usage: interaction BYTES MORE (numbers from %d), on 2, 4, 8, … ranks\n",
                ORDER_BYTES);
        MPI_Abort(MPI_COMM_WORLD, 2);
        exit(2);
    }
    t.mine = calloc(1, (size_t)more);
    t.all = calloc((size_t)t.ranks, (size_t)more);
    if (!t.mine || !t.all) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    double central_s = time_of(central, &t), replicated_s = time_of(replicated, &t),
           tree_s = time_of(by_tree, &t), neighbours_s = time_of(with_neighbours, &t);
    t.bytes = more;
    double replicated_more_s = time_of(replicated, &t);
    if (t.rank == 0)
        printf("{\"ranks\":%d,\"central_s\":%.9g,\"replicated_s\":%.9g,\"replicated_more_s\":%.9g,"
               "\"tree_s\":%.9g,\"neighbours_s\":%.9g}\n",
               t.ranks, central_s, replicated_s, replicated_more_s, tree_s, neighbours_s);
    free(t.mine);
    free(t.all);
    MPI_Finalize();
    return 0;
}
