/* Wait for requests in simulated time. This file replaces src/transport/wait_mpi.c. A rank that waits sleeps
 * until a request may be complete. */
#include "transport/wait_mpi.h"

#include <math.h>
#include <simgrid/actor.h>

#include "sim/arrival.h"
#include "sys/sys.h"

/* The simulated time is a sum of doubles, so a shorter sleep might not change it. */
static const double SHORTEST_NAP_S = 1e-9;

const bool kl_mpi_ranks_die = false;

void kl_mpi_wait_begin(kl_mpi_wait *wait) {
    *wait = (kl_mpi_wait){.ticket = MPI_REQUEST_NULL};
    kl_mpi_traffic(wait);
}

void kl_mpi_traffic(kl_mpi_wait *wait) {
    wait->traffic_s = kl_monotonic_s();
    wait->looks = 0;
}

void kl_mpi_waited(kl_mpi_wait *wait) {
    (void)wait;
}

void kl_mpi_look_at_core(kl_mpi_wait *wait, double now_s) {
    (void)wait, (void)now_s;
}

/* Make a request that is always complete: a cancelled receive. At the end of a list, this request makes
 * MPI_Waitany() return at once. MPI_Testany() would do the same, but SMPI keeps tested requests in a list for
 * ever, and searches this list for every message and piece of work. */
static int make_ticket(MPI_Request *ticket) {
    int code = MPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, ticket);
    return code == MPI_SUCCESS ? MPI_Cancel(ticket) : code;
}

void kl_mpi_wait_end(kl_mpi_wait *wait) {
    if (wait->ticket != MPI_REQUEST_NULL)
        MPI_Wait(&wait->ticket, MPI_STATUS_IGNORE);
    if (wait->arrival)
        kl_arrival_free(wait->arrival);
}

/* Yield before MPI_Waitany(). SimGrid 3.32 reads old data that the actor's previous call left on the stack,
 * and a yield leaves no such data. */
static int wait_any(int count, MPI_Request *requests, int *at, MPI_Status *status) {
    sg_actor_yield();
    return MPI_Waitany(count, requests, at, status);
}

/* Find one complete request among `count` requests, without waiting. The array needs room for one more
 * request. */
static int test_any(kl_mpi_wait *wait, int count, MPI_Request *requests, int *at, MPI_Status *status) {
    int code = wait->ticket == MPI_REQUEST_NULL ? make_ticket(&wait->ticket) : MPI_SUCCESS;
    requests[count] = wait->ticket;
    *at = MPI_UNDEFINED;
    return code == MPI_SUCCESS ? wait_any(count + 1, requests, at, status) : code;
}

/* Test the requests of sends one by one. Sends of small messages complete at once, and one MPI_Waitany() over
 * all requests would find only one of them. */
static int test_sends(kl_mpi_wait *wait, kl_mpi_sight *s) {
    int code = MPI_SUCCESS, at;
    for (int i = s->receives; i < s->receives + s->sends && code == MPI_SUCCESS; i++) {
        MPI_Request pair[2] = {s->requests[i]};
        code = test_any(wait, 1, pair, &at, &s->statuses[s->done]);
        s->requests[i] = pair[0];
        if (code == MPI_SUCCESS && at == 0)
            s->which[s->done++] = i;
    }
    return code;
}

int kl_mpi_look(kl_mpi_wait *wait, kl_mpi_sight *s, bool for_ever) {
    int count = s->receives + s->sends, at = MPI_UNDEFINED;
    s->done = 0;
    int code = test_sends(wait, s);
    if (code == MPI_SUCCESS && for_ever && s->done == 0)
        code = wait_any(count, s->requests, &at, &s->statuses[0]);
    else if (code == MPI_SUCCESS)
        code = test_any(wait, count, s->requests, &at, &s->statuses[s->done]);
    if (code == MPI_SUCCESS && at != MPI_UNDEFINED)
        s->which[s->done++] = at;
    if (code == MPI_SUCCESS && s->done == 0 && for_ever)
        sg_actor_suspend(sg_actor_self()); /* No message can arrive any more. SimGrid reports a deadlock when
                                            * all ranks are suspended. */
    return code;
}

int kl_mpi_look_collective(kl_mpi_wait *wait, MPI_Request *request, bool for_ever, int *done) {
    (void)wait;
    if (!for_ever)
        return MPI_Test(request, done, MPI_STATUS_IGNORE);
    *done = true;
    return MPI_Wait(request, MPI_STATUS_IGNORE);
}

void kl_mpi_rest(kl_mpi_wait *wait, bool rings, double remaining_s) {
    (void)rings;
    if (remaining_s == HUGE_VAL)
        return; /* the next call of kl_mpi_look() waits */
    if (wait->looks++ == 0)
        return; /* do not sleep after the first look: a look takes only one message, and no event would
                 * announce another message that has already arrived */
    if (!wait->arrival)
        wait->arrival = kl_arrival_new();
    kl_arrival_wait(wait->arrival, fmax(remaining_s, SHORTEST_NAP_S));
}
