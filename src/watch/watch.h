/* Public header of the folder watch: find where the ranks of an MPI program wait, from the calls that each
 * rank has recorded. A library in front of MPI (watch/watch_mpi.c) writes a file for each rank while the
 * program runs. This folder reads the files, finds the iteration, and computes what even shares of the work
 * would save. Time outside of MPI is called useful, as in POP (Performance Optimisation and Productivity). */
#ifndef KL_WATCH_H
#define KL_WATCH_H

#include "base/base.h"
#include "kilter/run.h"

/* --- the file of a rank, mapped into memory, so that it is complete however the rank ends; times are ticks
 * of the rank's own clock --- */

#define KL_WATCH_MAGIC "KltrWat"
enum {
    KL_WATCH_VERSION = 1,
    KL_WATCH_SITES = 512, /* greatest number of sites, which are places in the program that call MPI; the last
                             one stands for all further places */
    KL_WATCH_EVENTS = 65536, /* number of calls that are kept: the most recent ones; must be a power of two */
    KL_WATCH_SLICES = 512,   /* number of parts of equal length into which the run is cut */
    KL_WATCH_CALL_BYTES = 24,
    KL_WATCH_PLACE_BYTES = 40,
    KL_WATCH_HOST_BYTES = 64,
    KL_WATCH_LOOKED_AT = 64, /* greatest number of ranks whose single calls are examined */
};

/* A call of MPI, or several calls in a row from the same place that start or test messages. */
typedef struct kl_watch_event {
    float useful, mpi; /* useful: ticks of computing before the call; mpi: ticks in the call */
    uint16_t site, unused;
} kl_watch_event;

typedef struct kl_watch_site {
    uint64_t address, events, mpi;
    uint64_t after;                   /* ticks of computing that followed the last call from this site */
    char call[KL_WATCH_CALL_BYTES];   /* name of the MPI function */
    char place[KL_WATCH_PLACE_BYTES]; /* place in the program from which it is called, such as
                                         "program+0x12af" */
} kl_watch_site;

typedef enum kl_watch_end {
    KL_WATCH_RUNNING, /* the process was killed, or ended without a call of MPI_Finalize */
    KL_WATCH_FINALIZED,
    KL_WATCH_ABORTED, /* the process called MPI_Abort */
} kl_watch_end;

/* The values of two clocks at the same moment. */
typedef struct kl_watch_moment {
    uint64_t ticks, ns;
} kl_watch_moment;

typedef struct kl_watch_file {
    char magic[8];
    uint32_t version, bytes; /* bytes: size of this struct in bytes */
    int32_t rank, ranks, pid, spawned;
    uint32_t end;     /* a kl_watch_end */
    uint32_t threads; /* 1: other threads of the program may call MPI */
    char host[KL_WATCH_HOST_BYTES];
    uint64_t began_unix_ns;
    kl_watch_moment began, last;
    uint64_t useful, mpi, calls;      /* ticks and number of calls of the thread that called MPI_Init */
    uint64_t other_calls;             /* number of MPI calls by other threads */
    uint64_t any_source;              /* number of receives from MPI_ANY_SOURCE */
    uint64_t sampled, sampled_cpu_ns; /* sampled: useful ticks in which CPU time was measured; sampled_cpu_ns:
                                         CPU time that was used in them */
    uint64_t events;                  /* number of events so far; the ring buffer has the last ones */
    uint64_t slice_ticks,
        slices; /* slice_ticks: length of a slice; slices: number of slices that have begun */
    uint32_t sites, unused;
    uint64_t slice[KL_WATCH_SLICES]; /* useful ticks in each slice */
    kl_watch_site site[KL_WATCH_SITES];
    kl_watch_event ring[KL_WATCH_EVENTS];
} kl_watch_file;

/* --- a rank, as it was read from its file; times are in seconds --- */

typedef struct kl_watch_call { /* an event of the ring buffer */
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
    double began_unix_s,
        elapsed_s; /* elapsed_s: seconds from MPI_Init to MPI_Finalize, or to the last call */
    double useful_s, mpi_s;
    double core_share; /* part of its core that the rank gets while it computes; it is CPU time divided by
                          elapsed time, where CPU time was measured; NAN: not known */
    uint64_t calls, other_calls, any_source;
    kl_watch_place *places;
    size_t place_count;
    kl_watch_call
        *call; /* the last calls, in order; may be left out for ranks beyond the first KL_WATCH_LOOKED_AT */
    size_t call_count;
    double slice_s;
    double *slice; /* seconds of computing in each slice */
    size_t slice_count;
} kl_watch_rank;

/* Read the file of a rank. name: name of the file for messages. KILTER_ERR_INPUT: the file is not that of a
 * rank, or is damaged; the error names it. KILTER_ERR_MEMORY */
kilter_status kl_watch_read(kilter_bytes file, const char *name, kl_watch_rank *rank, kilter_error *error);
void kl_watch_rank_free(kl_watch_rank *rank);

/* --- the iteration of a rank: the sequence of calls that repeats --- */

typedef struct kl_watch_period {
    size_t calls;        /* number of MPI calls in an iteration; 0: no iteration was found */
    double alike;        /* part of the calls that come from the same site as the call one iteration before */
    uint16_t anchor;     /* the site with whose call an iteration begins */
    size_t each;         /* an iteration begins at every `each`-th call from the anchor */
    uint64_t iterations; /* number of iterations in the whole run */
    double iteration_s;  /* mean seconds of an iteration */
} kl_watch_period;

kl_watch_period kl_watch_period_of(const kl_watch_rank *rank);
/* Return the useful seconds of each iteration in the ring; the caller frees the array. NULL: memory ran out,
 * or there are fewer than two iterations. */
double *kl_watch_iterations(const kl_watch_rank *rank, const kl_watch_period *period, size_t *count);

/* --- the judgement of all ranks --- */

/* The useful seconds of each rank in each part of the run. A part is an iteration or a slice of time. */
typedef struct kl_watch_table {
    size_t ranks, parts;
    double *useful_s; /* [parts][ranks] */
} kl_watch_table;

static inline double *kl_watch_part(const kl_watch_table *t, size_t part) {
    return t->useful_s + part * t->ranks;
}
/* Make a table whose parts are slices of time of at least `least_s`. If the run was too short, it has no
 * parts. false: memory ran out. */
bool kl_watch_table_slices(const kl_watch_rank *ranks, size_t count, double least_s, kl_watch_table *t);
void kl_watch_table_free(kl_watch_table *t);

typedef enum kl_watch_way { KL_WATCH_NOTHING, KL_WATCH_LOOP, KL_WATCH_FARM } kl_watch_way;
const char *kl_watch_way_name(kl_watch_way way);

/* A forecast of the elapsed time: least_s for the most favourable case of the model, most_s for the least
 * favourable case. */
typedef struct kl_watch_range {
    double least_s, most_s;
} kl_watch_range;

typedef struct kl_watch_found {
    uint32_t ranks;
    double elapsed_s;                             /* elapsed seconds of the rank that took longest */
    double load_balance, communication, parallel; /* efficiencies as POP defines them */
    uint64_t iterations,
        iteration_calls; /* number of iterations, and of calls in an iteration; 0: no iteration was found */
    double iteration_s;  /* mean seconds of an iteration; NAN: no iteration was found */
    double alike;        /* part of the calls that repeat, as in kl_watch_period */
    double lost_constant, lost_slow,
        lost_fast; /* parts of the elapsed time that were lost; docs/reference/watch.md defines them */
    kl_watch_range even, follow; /* elapsed time if the work were shared evenly: even: with the same shares in
                                    the whole run; follow: with shares that follow changes of the imbalance */
    uint32_t slowest;            /* index of the rank with most useful time */
    uint32_t shared_ranks;       /* number of ranks that did not get their cores alone */
    kl_watch_way way;
    char reason[400];
} kl_watch_found;

/* Judge a run. The ranks must be sorted, and no rank may occur twice. A failure gives KILTER_ERR_MEMORY. */
kilter_status kl_watch_judge(const kl_watch_rank *ranks, size_t count, kl_watch_found *found,
                             kilter_error *error);
/* A rank counts as having its core alone if its core_share is at least this. */
extern const double kl_watch_whole_core;

#endif
