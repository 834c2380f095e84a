/* No MPI can wait without burning a core: look, and nap between looks. */
#include "transport/wait_mpi.h"

#include <math.h>
#include <sched.h>

#include "sys/sys.h"

enum {
    SPINS = 20
}; /* looks with a bare yield in between, or with nothing by who may spin, before the first nap */

#define SHORTEST_NAP_S 20e-6 /* naps double from here … */
#define LONGEST_NAP_S  1e-3  /* … to here; and after REST_AFTER_S without traffic … */
#define LONGEST_REST_S 2e-3  /* … to here */
#define REST_AFTER_S   0.05
#define SHARED_S       100e-6 /* a yield that takes longer let somebody else have the core … */
#define SHARED_FOR_S   0.1    /* … who will want it again within this */

const bool kl_mpi_ranks_die = true;

void kl_mpi_wait_begin(kl_mpi_wait *wait) {
    *wait = (kl_mpi_wait){.ticket = MPI_REQUEST_NULL};
    kl_mpi_traffic(wait);
}

void kl_mpi_wait_end(kl_mpi_wait *wait) {
    (void)wait;
}

void kl_mpi_traffic(kl_mpi_wait *wait) {
    wait->spins = 0;
    wait->nap_s = SHORTEST_NAP_S;
    wait->traffic_s = kl_monotonic_s();
}

int kl_mpi_look(kl_mpi_wait *wait, MPI_Request *requests, int receives, int sends, bool for_ever, int *done,
                int *which, MPI_Status *statuses) {
    (void)wait, (void)for_ever;
    int code = MPI_Testsome(receives + sends, requests, done, which, statuses);
    if (*done == MPI_UNDEFINED || *done < 0)
        *done = 0;
    return code;
}

/* Who waits on a core of its own for what is microseconds late loses more by a nap than by looking again. On
 * a core that others want, too, each look uses up time that is needed when the message is there. */
static bool may_spin(const kl_mpi_wait *wait, double now_s) {
    bool shared = wait->shared_s > 0 && now_s - wait->shared_s < SHARED_FOR_S;
    return !shared && now_s - wait->traffic_s < wait->spin_s;
}

static void let_others(kl_mpi_wait *wait, double now_s) {
    sched_yield();
    double back_s = kl_monotonic_s();
    if (back_s - now_s > SHARED_S)
        wait->shared_s = back_s;
}

int kl_mpi_look_collective(kl_mpi_wait *wait, MPI_Request *request, bool for_ever, int *done) {
    (void)wait, (void)for_ever;
    return MPI_Test(request, done, MPI_STATUS_IGNORE);
}

void kl_mpi_rest(kl_mpi_wait *wait, double remaining_s) {
    double now_s = kl_monotonic_s();
    bool spins = may_spin(wait, now_s);
    if (wait->spins < SPINS || spins) {
        if (!spins || wait->spins >= SPINS)
            let_others(wait, now_s);
        wait->spins++;
        return;
    }
    double longest_s = now_s - wait->traffic_s > REST_AFTER_S ? LONGEST_REST_S : LONGEST_NAP_S;
    kl_nap_s(fmin(wait->nap_s, remaining_s));
    wait->nap_s = fmin(2 * wait->nap_s, longest_s);
}
