/* How an endpoint of transport_mpi.c looks at its requests, and what it does while none of them is complete.
 * A simulated build has sim/wait_mpi.c in the place of wait_mpi.c: there looking takes no time, so that
 * nobody may look again and again, and blocking burns no core. */
#ifndef KL_WAIT_MPI_H
#define KL_WAIT_MPI_H

#include <mpi.h>
#include <stdbool.h>

#include "measure/measure.h"
#include "sys/sys.h"

/* In a simulation no rank does. Where ranks die, their death must be noticed, and a receive may not be posted
 * for whoever sends next: one that matched a dying sender hangs for ever. Where they do not, that is one
 * receive instead of many, each of which costs time with every message. */
extern const bool kl_mpi_ranks_die;

/* Ranks that are more than their cores, and who else uses these. */
typedef struct kl_mpi_crowd {
    bool alone;                      /* nobody does: a rank that waits may yield to the others */
    double looked_s, used_s, idle_s; /* of the last look: when; time used by ranks; time not used */
} kl_mpi_crowd;

typedef struct kl_mpi_wait {
    double traffic_s; /* when something last came or went */
    double rested_s;  /* when the last rest began */
    double spin_s;    /* before the first nap, on a core of its own; 0: a few looks */
    double usual_s;   /* of a wait, mean of the last short ones */
    double waited_s;  /* ever */
    double counted_s; /* until then */
    unsigned looks;   /* since traffic_s */
    unsigned lying;   /* looks since it was marked asleep; 0: it is not */
    kl_bells *bells;  /* of the ranks of this host; NULL: none */
    kl_core_meter meter;
    kl_core_share core;
    pid_t thread;  /* of which that is */
    bool measured; /* the system tells */
    bool crowded;  /* ranks are more than cores, or one shares this rank's */
    kl_mpi_crowd crowd;
    MPI_Request ticket; /* a simulated build's, and so is this: */
    struct kl_arrival *arrival;
} kl_mpi_wait;

void kl_mpi_wait_begin(kl_mpi_wait *wait);
void kl_mpi_wait_end(kl_mpi_wait *wait); /* frees the bells, too */
void kl_mpi_traffic(kl_mpi_wait *wait);  /* something came or went, or a wait begins */
void kl_mpi_waited(kl_mpi_wait *wait);   /* a wait is over: since kl_mpi_traffic(), or since the last one */
/* Measure what the rank gets of its core, at most every 0.01 s. Callers that compute for long call it, too.
 */
void kl_mpi_look_at_core(kl_mpi_wait *wait, double now_s);

/* Requests to look at, and the answer of MPI_Testsome. */
typedef struct kl_mpi_sight {
    MPI_Request *requests; /* [receives + sends], and room for one more of kl_mpi_look()'s own */
    int receives, sends;   /* the sends follow the receives */
    int done;              /* complete requests; their places hold MPI_REQUEST_NULL now */
    int *which;            /* [done] their places */
    MPI_Status *statuses;  /* [done] */
} kl_mpi_sight;

/* Find some of the complete requests. Return MPI's code. for_ever: the caller has nothing else to wait for.
 */
int kl_mpi_look(kl_mpi_wait *wait, kl_mpi_sight *sight, bool for_ever);
/* The same of a collective operation's request, which SMPI does not take among others. */
int kl_mpi_look_collective(kl_mpi_wait *wait, MPI_Request *request, bool for_ever, int *done);
/* Before the next look, at most so long; HUGE_VAL: that look is for ever. rings: all that is waited for comes
 * from ranks that ring. */
void kl_mpi_rest(kl_mpi_wait *wait, bool rings, double remaining_s);

#endif
