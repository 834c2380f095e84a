/* Check MPI requests, and rest while none of them is complete. A build for the simulator uses sim/wait_mpi.c
 * instead of wait_mpi.c. In a simulation a check takes no simulated time, so a rank that only checked again
 * and again would wait for ever. Therefore a simulated rank blocks instead of checking again. */
#ifndef KL_WAIT_MPI_H
#define KL_WAIT_MPI_H

#include <mpi.h>
#include <stdbool.h>

#include "measure/measure.h"
#include "sys/sys.h"

/* true: ranks may die; false in a simulation. If ranks may die, each receive is for one sender, because a
 * receive for any sender would hang after it matched a dying sender. If ranks cannot die, one receive for any
 * sender replaces many receives, which saves time with every message. */
extern const bool kl_mpi_ranks_die;

typedef struct kl_mpi_wait {
    double traffic_s; /* time at which a message last came or went */
    double rested_s;  /* time at which the rank last began to rest */
    /* seconds for which a rank that need not spare its core spins before its first nap; 0: it makes only a
     * few checks */
    double spin_s;
    double usual_s;   /* mean seconds of recent waits; long waits do not count */
    double waited_s;  /* total seconds for which the rank has waited */
    double counted_s; /* time up to which waits are counted in waited_s */
    unsigned looks;   /* number of checks since traffic_s */
    unsigned lying;   /* number of checks since the rank was marked as asleep; 0: it is not marked */
    kl_bells *bells;  /* doorbells of the ranks on this host; NULL: there are none */
    kl_core_meter meter;
    kl_core_share core;
    pid_t thread;      /* number of the thread that `meter` and `core` measure */
    bool measured;     /* true: the system reports the values for `meter` and `core` */
    bool shares_cores; /* true: the ranks that use exactly this rank's cores outnumber these cores */
    bool mpi_yields;   /* true: MPI yields the core when it finds no message */
    kl_crowd crowd;    /* judged only if shares_cores is true, or if the rank is pinned or may have to be */
    bool may_pin; /* true: the rank may be pinned to its core while other processes use some of its cores */
    kl_pin pin;
    /* place of the first rank that needs a core of its own: 1 in a farm, because the master has place 0 */
    uint32_t first;
    MPI_Request ticket; /* `ticket` and the field after it are only used in a simulation */
    struct kl_arrival *arrival;
} kl_mpi_wait;

void kl_mpi_wait_begin(kl_mpi_wait *wait);
void kl_mpi_wait_end(kl_mpi_wait *wait); /* Free the meter and the bells. */
void kl_mpi_traffic(kl_mpi_wait *wait);  /* Record that a message came or went, or that a wait begins. */
/* Add the time since kl_mpi_traffic(), or since the last call of this function, to waited_s. */
void kl_mpi_waited(kl_mpi_wait *wait);
/* Measure the part of its core that the rank gets, at most every 0.01 s. Call this during long computations,
 * too. */
void kl_mpi_look_at_core(kl_mpi_wait *wait, double now_s);

/* The requests that a check looks at, and the results of the check. */
typedef struct kl_mpi_sight {
    /* [receives + sends] the requests, and room for one more, which kl_mpi_look() may use */
    MPI_Request *requests;
    int receives, sends;  /* numbers of requests: the receives come first, then the sends */
    int done;             /* number of requests that the check found complete; they become MPI_REQUEST_NULL */
    int *which;           /* [done] indices of the complete requests */
    MPI_Status *statuses; /* [done] */
} kl_mpi_sight;

/* Find some of the complete requests and return MPI's error code. for_ever: true if the caller waits for
 * nothing else. */
int kl_mpi_look(kl_mpi_wait *wait, kl_mpi_sight *sight, bool for_ever);
/* Check whether the request of a collective operation is complete. SMPI does not accept such a request among
 * others, so kl_mpi_look() cannot be used for it. */
int kl_mpi_look_collective(kl_mpi_wait *wait, MPI_Request *request, bool for_ever, int *done);
/* Rest before the next check, for at most remaining_s; HUGE_VAL: without limit. rings: true if every rank
 * that may send a message rings this rank's doorbell. */
void kl_mpi_rest(kl_mpi_wait *wait, bool rings, double remaining_s);

#endif
