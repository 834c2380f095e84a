/* Looking at requests in simulated time, in the place of src/transport/wait_mpi.c: block where nothing else
 * is waited for, and otherwise look so often that the delay does not matter. */
#include "transport/wait_mpi.h"

#include <math.h>
#include <simgrid/actor.h>

#include "sys/sys.h"

/* A master with messages waiting would lose half of a long nap on each of them. */
static const double LOOK_S = 2e-6, LOOK_MOST_S = 20e-6, LOOK_PART = 0.125;

const bool kl_mpi_any_source = true;

void kl_mpi_traffic(kl_mpi_wait *wait) {
    wait->traffic_s = kl_monotonic_s();
}

/* Sends of small messages are complete at once, and SMPI's MPI_Testany does not see it. */
static int test_sends(MPI_Request *requests, int from, int to, int *done, int *which, MPI_Status *statuses) {
    int code = MPI_SUCCESS, complete;
    for (int i = from; i < to && code == MPI_SUCCESS; i++) {
        code = MPI_Test(&requests[i], &complete, &statuses[*done]);
        if (code == MPI_SUCCESS && complete)
            which[(*done)++] = i;
    }
    return code;
}

/* One of the receives `from` … `to` − 1, if one is complete. */
static int test_receives(MPI_Request *requests, int from, int to, int *done, int *which,
                         MPI_Status *statuses) {
    int complete = 0, at = MPI_UNDEFINED;
    int code = to > from ? MPI_Testany(to - from, requests + from, &at, &complete, statuses) : MPI_SUCCESS;
    if (complete && at != MPI_UNDEFINED)
        which[(*done)++] = from + at;
    return code;
}

/* Several receives are often complete; each of them comes to its turn. */
int kl_mpi_look(kl_mpi_wait *wait, MPI_Request *requests, int receives, int sends, bool for_ever, int *done,
                int *which, MPI_Status *statuses) {
    *done = 0;
    int code = test_sends(requests, receives, receives + sends, done, which, statuses);
    if (*done > 0)
        return code;
    if (code == MPI_SUCCESS)
        code = test_receives(requests, wait->next, receives, done, which, statuses);
    if (code == MPI_SUCCESS && *done == 0)
        code = test_receives(requests, 0, wait->next, done, which, statuses);
    if (code == MPI_SUCCESS && *done == 0 && for_ever) {
        code = MPI_Waitany(receives + sends, requests, &which[0], statuses);
        *done = which[0] != MPI_UNDEFINED;
        if (*done == 0)
            sg_actor_suspend(sg_actor_self()); /* nothing will ever come; SimGrid says so when all wait */
    }
    if (*done > 0 && which[0] < receives)
        wait->next = which[0] + 1;
    return code;
}

void kl_mpi_rest(kl_mpi_wait *wait, double remaining_s) {
    double quiet_s = kl_monotonic_s() - wait->traffic_s;
    kl_nap_s(fmin(fmin(fmax(LOOK_PART * quiet_s, LOOK_S), LOOK_MOST_S), remaining_s));
}
