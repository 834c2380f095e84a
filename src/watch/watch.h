/* Public header of the folder watch: find where the ranks of an MPI program wait, from the calls that each
 * rank recorded. A library in front of MPI writes a file for each rank while the program runs
 * (watch/watch_mpi.c). This folder reads the files, finds the iteration, and computes what even shares
 * would gain. Time outside MPI is called useful, as POP (Performance Optimisation and Productivity) does. */
#ifndef KL_WATCH_H
#define KL_WATCH_H

#include "base/base.h"
#include "kilter/run.h"

/* --- the file of a rank. It is a memory-mapped file, so it is complete however the rank ends. All times are
 * ticks of the rank's own clock --- */

#define KL_WATCH_MAGIC "KltrWat"
enum {
    KL_WATCH_VERSION = 1,
    KL_WATCH_SITES =
        512, /* number of places in the program that call MPI; the last one stands for all further ones */
    KL_WATCH_EVENTS = 65536, /* number of calls that are stored, the last ones; a power of two */
    KL_WATCH_SLICES = 512,   /* number of parts of the run, of equal length */
    KL_WATCH_CALL_BYTES = 24,
    KL_WATCH_PLACE_BYTES = 40,
    KL_WATCH_HOST_BYTES = 64,
    KL_WATCH_LOOKED_AT = 64, /* single calls are examined for this many ranks */
};

/* One call, or several calls in a row from the same place that start or test messages. */
typedef struct kl_watch_event {
    float useful, mpi; /* ticks of computing before the call; ticks in the call */
    uint16_t site, unused;
} kl_watch_event;

typedef struct kl_watch_site {
    uint64_t address, events, mpi;
    uint64_t after;                   /* useful ticks that last followed a call of this site */
    char call[KL_WATCH_CALL_BYTES];   /* name of the MPI function */
    char place[KL_WATCH_PLACE_BYTES]; /* where the program calls it: "program+0x12af" */
} kl_watch_site;

typedef enum kl_watch_end {
    KL_WATCH_RUNNING, /* the process was killed, or ended without MPI_Finalize */
    KL_WATCH_FINALIZED,
    KL_WATCH_ABORTED, /* the process called MPI_Abort */
} kl_watch_end;

/* The times of two clocks at the same moment. */
typedef struct kl_watch_moment {
    uint64_t ticks, ns;
} kl_watch_moment;

typedef struct kl_watch_file {
    char magic[8];
    uint32_t version, bytes; /* bytes: size of this struct */
    int32_t rank, ranks, pid, spawned;
    uint32_t end;     /* a kl_watch_end */
    uint32_t threads; /* 1: other threads may call MPI */
    char host[KL_WATCH_HOST_BYTES];
    uint64_t began_unix_ns;
    kl_watch_moment began, last;
    uint64_t useful, mpi, calls;      /* ticks and calls of the thread that called MPI_Init */
    uint64_t other_calls;             /* number of calls of other threads */
    uint64_t any_source;              /* receives from MPI_ANY_SOURCE */
    uint64_t sampled, sampled_cpu_ns; /* useful ticks in which CPU time was measured; CPU time used in them */
    uint64_t events;                  /* number of events; the ring buffer holds the last ones */
    uint64_t slice_ticks, slices;     /* length of a slice; number of slices that have begun */
    uint32_t sites, unused;
    uint64_t slice[KL_WATCH_SLICES]; /* useful ticks in each slice */
    kl_watch_site site[KL_WATCH_SITES];
    kl_watch_event ring[KL_WATCH_EVENTS];
} kl_watch_file;

/* --- a rank, as read from its file. All times are seconds --- */

typedef struct kl_watch_call { /* an event in the ring buffer */
    uint16_t site;
    double useful_s, mpi_s;
} kl_watch_call;

typedef struct kl_watch_place {
    char call[KL_WATCH_CALL_BYTES], place[KL_WATCH_PLACE_BYTES];
    uint64_t events;
    double mpi_s;
} kl_watch_place;

typedef struct kl_watch_rank {
    char host[KL_WATCH_HOST_BYTES];
    uint32_t rank, ranks;
    int64_t pid;
    bool spawned, threads;
    kl_watch_end end;
    double began_unix_s, elapsed_s; /* elapsed_s: from MPI_Init to MPI_Finalize, or to the last call */
    double useful_s, mpi_s;
    double core_share; /* CPU time over elapsed time while computing, where it was measured; NAN: not known */
    uint64_t calls, other_calls, any_source;
    kl_watch_place *places;
    size_t place_count;
    kl_watch_call
        *call; /* the last calls, in the order of time; may be left out after KL_WATCH_LOOKED_AT ranks */
    size_t call_count;
    double slice_s;
    double *slice; /* useful seconds in each slice */
    size_t slice_count;
} kl_watch_rank;

/* Read a file. name: for messages. KILTER_ERR_INPUT naming the file: it is not a rank's file, or damaged;
 * KILTER_ERR_MEMORY. */
kilter_status kl_watch_read(kilter_bytes file, const char *name, kl_watch_rank *rank, kilter_error *error);
void kl_watch_rank_free(kl_watch_rank *rank);

/* --- the iteration of a rank --- */

typedef struct kl_watch_period {
    size_t calls;        /* number of calls of one iteration; 0: no iteration was found */
    double alike;        /* part of the calls that are equal to the call one iteration before */
    uint16_t anchor;     /* site whose call begins an iteration */
    size_t each;         /* an iteration begins at every `each`-th call of the anchor */
    uint64_t iterations; /* iterations of the whole run */
    double iteration_s;  /* mean time of an iteration */
} kl_watch_period;

kl_watch_period kl_watch_period_of(const kl_watch_rank *rank);
/* Get the useful seconds of each iteration in the ring, malloc'd. NULL: no memory, or fewer than two. */
double *kl_watch_iterations(const kl_watch_rank *rank, const kl_watch_period *period, size_t *count);

/* --- all ranks --- */

/* Useful seconds of each rank in each part of the run. */
typedef struct kl_watch_table {
    size_t ranks, parts;
    double *useful_s; /* [parts][ranks] */
} kl_watch_table;

static inline double *kl_watch_part(const kl_watch_table *t, size_t part) {
    return t->useful_s + part * t->ranks;
}
/* Make a table of slices of time of at least `least_s`; parts is 0 if the run was too short. false: no
 * memory. */
bool kl_watch_table_slices(const kl_watch_rank *ranks, size_t count, double least_s, kl_watch_table *t);
void kl_watch_table_free(kl_watch_table *t);

typedef enum kl_watch_way { KL_WATCH_NOTHING, KL_WATCH_LOOP, KL_WATCH_FARM } kl_watch_way;
const char *kl_watch_way_name(kl_watch_way way);

/* A forecast of the elapsed time, from the model's most favourable to its least favourable case. */
typedef struct kl_watch_range {
    double least_s, most_s;
} kl_watch_range;

typedef struct kl_watch_found {
    uint32_t ranks;
    double elapsed_s;                             /* for the rank that took longest */
    double load_balance, communication, parallel; /* POP's efficiencies */
    uint64_t iterations, iteration_calls;         /* 0: no iteration was found */
    double iteration_s;                           /* NAN: no iteration was found */
    double alike;                                 /* see kl_watch_period */
    double lost_constant, lost_slow, lost_fast;   /* parts of the elapsed time; see docs/reference/watch.md */
    kl_watch_range even,
        follow;       /* elapsed time with even shares that stay, and with shares that follow the changes */
    uint32_t slowest; /* rank with most useful time */
    uint32_t shared_ranks; /* number of ranks that did not get their whole core */
    kl_watch_way way;
    char reason[400];
} kl_watch_found;

/* Judge a run. The ranks are sorted by rank, and each number occurs once. KILTER_ERR_MEMORY. */
kilter_status kl_watch_judge(const kl_watch_rank *ranks, size_t count, kl_watch_found *found,
                             kilter_error *error);
/* A rank got its whole core if its share is not below this. */
extern const double kl_watch_whole_core;

#endif
