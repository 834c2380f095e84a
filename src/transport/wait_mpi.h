/* Looks at MPI requests, and waits while none of them is complete. A simulated build has sim/wait_mpi.c
 * instead of wait_mpi.c: there a look takes no time, so looks must not be repeated, and blocking uses no
 * core. */
#ifndef KL_WAIT_MPI_H
#define KL_WAIT_MPI_H

#include <mpi.h>
#include <stdbool.h>

#include "measure/measure.h"
#include "sys/sys.h"

/* Return whether ranks may die; in a simulation they may not. If they may, deaths must be noticed, and no
 * receive may be posted for any sender: if it matched a dying sender, it would hang for ever. Otherwise one
 * receive for any sender replaces many, each of which costs time with every message. */
extern const bool kl_mpi_ranks_die;

/* For ranks that are more than cores: do other processes use the cores, too? */
typedef struct kl_mpi_crowd {
    bool alone; /* true: no other process uses the cores, so a waiting rank may yield to other ranks */
    /* time of the last look, and at that time: CPU time used by ranks, and idle time */
    double looked_s, used_s, idle_s;
} kl_mpi_crowd;

typedef struct kl_mpi_wait {
    double traffic_s; /* time at which a message last came or went */
    double rested_s;  /* time at which the last rest began */
    double spin_s;    /* seconds of spinning before the first nap, on an unshared core; 0: a few looks */
    double usual_s;   /* mean seconds of the last short waits */
    double waited_s;  /* total seconds waited */
    double counted_s; /* time up to which waited_s counts */
    unsigned looks;   /* number of looks since traffic_s */
    unsigned lying;   /* number of looks since the rank was marked asleep; 0: the rank is not marked */
    kl_bells *bells;  /* bells of the ranks on this host; NULL: none */
    kl_core_meter meter;
    kl_core_share core;
    pid_t thread;    /* the thread that `meter` and `core` measure */
    bool measured;   /* true: the system reports these times */
    bool crowded;    /* true: there are more ranks than cores, or another rank shares this rank's core */
    bool mpi_yields; /* true: MPI yields by itself when it finds no message */
    kl_mpi_crowd crowd;
    MPI_Request ticket; /* this field and the next are for simulated builds only */
    struct kl_arrival *arrival;
} kl_mpi_wait;

void kl_mpi_wait_begin(kl_mpi_wait *wait);
void kl_mpi_wait_end(kl_mpi_wait *wait); /* Free the wait's parts, and the bells. */
void kl_mpi_traffic(kl_mpi_wait *wait);  /* Note that a message came or went, or that a wait begins. */
void kl_mpi_waited(kl_mpi_wait *wait);   /* Count the wait since kl_mpi_traffic() or the last call. */
/* Measure the rank's share of its core, at most every 0.01 s. Call this during long computations, too. */
void kl_mpi_look_at_core(kl_mpi_wait *wait, double now_s);

/* Requests to look at, and the answer of MPI_Testsome. */
typedef struct kl_mpi_sight {
    MPI_Request *requests; /* [receives + sends], and room for one request of kl_mpi_look() */
    int receives, sends;   /* numbers of requests: the receives come first, then the sends */
    int done;              /* complete requests, replaced by MPI_REQUEST_NULL */
    int *which;            /* [done] indices of the complete requests */
    MPI_Status *statuses;  /* [done] */
} kl_mpi_sight;

/* Find some of the complete requests and return MPI's code. for_ever: the caller waits for nothing else. */
int kl_mpi_look(kl_mpi_wait *wait, kl_mpi_sight *sight, bool for_ever);
/* Find out whether a collective operation's request is complete, in the same way: SMPI does not accept it
 * among other requests. */
int kl_mpi_look_collective(kl_mpi_wait *wait, MPI_Request *request, bool for_ever, int *done);
/* Rest before the next look, for at most remaining_s; HUGE_VAL: that look is for ever. rings: all senders of
 * awaited messages wake this rank. */
void kl_mpi_rest(kl_mpi_wait *wait, bool rings, double remaining_s);

#endif
