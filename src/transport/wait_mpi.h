/* Check MPI requests, and rest while none of them is complete. A simulated build has sim/wait_mpi.c
 * instead of wait_mpi.c. There a check takes no time, so a rank blocks instead of checking again. */
#ifndef KL_WAIT_MPI_H
#define KL_WAIT_MPI_H

#include <mpi.h>
#include <stdbool.h>

#include "measure/measure.h"
#include "sys/sys.h"

/* true: ranks may die; false in a simulation. If ranks may die, each receive is for one sender: a receive for
 * any sender would hang for ever after it matched a dying one. Otherwise one receive for any sender replaces
 * many, which saves time with every message. */
extern const bool kl_mpi_ranks_die;

/* Tells whether other processes use the cores when there are more ranks than cores. */
typedef struct kl_mpi_crowd {
    bool judged; /* true: `alone` was measured at least once */
    bool alone;  /* true: no other process uses the cores much, so a waiting rank may yield to other ranks */
    /* time of the last measurement; the ranks' CPU time and the cores' idle time until then */
    double looked_s, used_s, idle_s;
} kl_mpi_crowd;

typedef struct kl_mpi_wait {
    double traffic_s; /* time at which a message last came or went */
    double rested_s;  /* time at which the last rest began */
    /* seconds of spinning before the first nap, on a core of its own; 0: only a few looks */
    double spin_s;
    double usual_s;   /* mean seconds of recent waits, without long ones */
    double waited_s;  /* total seconds waited */
    double counted_s; /* time up to which waits are counted in waited_s */
    unsigned looks;   /* number of looks since traffic_s */
    unsigned lying;   /* number of looks since the rank was marked asleep; 0: it is not marked */
    kl_bells *bells;  /* bells of the ranks on this host; NULL: none */
    kl_core_meter meter;
    kl_core_share core;
    pid_t thread;    /* the thread that `meter` and `core` measure */
    bool measured;   /* true: the system reports the values for `meter` and `core` */
    bool crowded;    /* true: more ranks than cores share exactly this rank's cores */
    bool mpi_yields; /* true: MPI yields the core when it finds no message */
    kl_mpi_crowd crowd;
    MPI_Request ticket; /* this field and the next are for simulated builds only */
    struct kl_arrival *arrival;
} kl_mpi_wait;

void kl_mpi_wait_begin(kl_mpi_wait *wait);
void kl_mpi_wait_end(kl_mpi_wait *wait); /* Free the meter and the bells. */
void kl_mpi_traffic(kl_mpi_wait *wait);  /* Record that a message came or went, or that a wait begins. */
/* Add the wait since kl_mpi_traffic() or the last call to waited_s. */
void kl_mpi_waited(kl_mpi_wait *wait);
/* Measure the rank's share of its core, at most every 0.01 s. Call this during long computations, too. */
void kl_mpi_look_at_core(kl_mpi_wait *wait, double now_s);

/* The requests to look at, and what the look found. */
typedef struct kl_mpi_sight {
    MPI_Request *requests; /* [receives + sends], and room for one more, which kl_mpi_look() may use */
    int receives, sends;   /* numbers of requests: the receives come first, then the sends */
    int done;              /* number of complete requests, which become MPI_REQUEST_NULL */
    int *which;            /* [done] indices of the complete requests */
    MPI_Status *statuses;  /* [done] */
} kl_mpi_sight;

/* Find some of the complete requests and return MPI's code. for_ever: the caller waits for nothing else. */
int kl_mpi_look(kl_mpi_wait *wait, kl_mpi_sight *sight, bool for_ever);
/* Check whether a collective operation's request is complete, like kl_mpi_look(). It needs a separate
 * function, because SMPI does not accept it among other requests. */
int kl_mpi_look_collective(kl_mpi_wait *wait, MPI_Request *request, bool for_ever, int *done);
/* Rest before the next check, for at most remaining_s; HUGE_VAL: without limit. rings: all ranks that may
 * send a message ring this rank's bell. */
void kl_mpi_rest(kl_mpi_wait *wait, bool rings, double remaining_s);

#endif
