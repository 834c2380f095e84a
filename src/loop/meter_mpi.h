/* Measurements of this rank's work, since its last report and in all. Private to room loop. */
#ifndef KL_METER_MPI_H
#define KL_METER_MPI_H

#include "loop/group_mpi.h"
#include "steer/steer.h"

typedef struct kl_since { /* the last report */
    double sweeps, busy_s, moving_s;
    double rows;            /* in parts, where blocks are done */
    double foreign;         /* of them, rows of neighbours */
    double cpu_s, cpu_rows; /* CPU time of those rows whose time was told, on a shared core */
    uint64_t moved;
    double segment_s[KL_SEGMENTS], segment_rows[KL_SEGMENTS];
    double boundary_s, boundaries; /* of blocks: from one body to the next, without waiting */
} kl_since;

typedef struct kl_meter {
    kl_group *group;
    bool on; /* something is decided by what is measured */
    kl_since since;
    kilter_loop_summary all;     /* since the loop was opened; `executions` is the number of the sweep */
    double given_s, given_cpu_s; /* when the body was given work, and its CPU time then */
    bool tells_cpu;              /* given_cpu_s is set */
    bool by_pieces;              /* a sweep is given in pieces, whose times are told apart */
    bool uneven;                 /* these differ, here or on another rank */
    double iteration_s;          /* the last rows, each */
    double quantum_s;            /* of this rank's scheduler; 0: not measured yet */
} kl_meter;

static inline uint64_t kl_meter_sweep(const kl_meter *m) { /* the one under way, or the next one */
    return m->all.executions;
}
/* The body gets work now. */
void kl_meter_give(kl_meter *meter, double now_s);
/* Count `rows`, of which some may not be in `own`: done since. */
void kl_meter_rows(kl_meter *meter, kl_span own, kl_span rows, double now_s);
/* Count `rows`, which may be a fraction, done in busy_s. */
void kl_meter_count(kl_meter *meter, double rows, double busy_s);
/* Count time spent on moving rows. */
void kl_meter_moving(kl_meter *meter, double spent_s);
/* Measure the scheduler's quantum, once the loop has lasted so long that this costs it next to nothing. */
void kl_meter_quantum(kl_meter *meter);
/* Report what was measured with the rows `own`, and begin anew. part: of the sweep that is done. */
kl_rank_report kl_meter_report(kl_meter *meter, kl_span own, double part);

#endif
