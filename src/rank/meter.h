/* Measurements of this rank's work, since its last report and in all. Private to room rank; the door
 * includes it. */
#ifndef KL_METER_H
#define KL_METER_H

#include "measure/measure.h"
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

typedef struct kl_totals { /* since the loop was opened */
    uint64_t sweeps;       /* that have ended; the number of the one under way */
    uint64_t rounds, moves, moved;
    double elapsed_s, waited_s, moving_s;
} kl_totals;

typedef struct kl_meter {
    const kl_core_share *core; /* what this rank gets of its core; its driver's */
    bool crowded;              /* other ranks share the core, or all cores */
    bool simulated;            /* there is no scheduler to measure */
    double opened_s;
    bool on; /* something is decided by what is measured */
    kl_since since;
    kl_totals all;
    double given_s; /* when the body was given work */
    bool tells_cpu; /* the driver tells the CPU time used by then, and when the body is done with it: */
    double given_cpu_s, cpu_s;
    bool by_pieces;     /* a sweep is given in pieces, whose times are told apart */
    bool uneven;        /* these differ, here or on another rank */
    double iteration_s; /* the last rows, each */
    double quantum_s;   /* of this rank's scheduler; 0: not measured yet */
} kl_meter;

static inline uint64_t kl_meter_sweep(const kl_meter *m) { /* the one under way, or the next one */
    return m->all.sweeps;
}
/* The body gets work now. */
void kl_meter_give(kl_meter *meter, double now_s);
/* Count `rows`, of which some may not be in `own`: done since. */
void kl_meter_rows(kl_meter *meter, kl_span own, kl_span rows, double now_s);
/* Count `rows`, which may be a fraction, done in busy_s. */
void kl_meter_count(kl_meter *meter, double rows, double busy_s);
/* Count time spent on moving rows. */
void kl_meter_moving(kl_meter *meter, double spent_s);
/* Is the scheduler's quantum to be measured now? The loop has lasted so long that this costs it next to
 * nothing. */
bool kl_meter_wants_quantum(kl_meter *meter, double now_s);
void kl_meter_quantum_is(kl_meter *meter, double quantum_s); /* 0: it could not be measured */
/* Report what was measured with the rows `own`, and begin anew. part: of the sweep that is done. */
kl_rank_report kl_meter_report(kl_meter *meter, kl_span own, double part, double now_s);
/* A new range: forget what was measured with the old one. */
void kl_meter_begin_anew(kl_meter *meter);

#endif
