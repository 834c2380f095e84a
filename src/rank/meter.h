/* Private to the folder rank: measurements of this rank's work, since its last report and since the start.
 * rank.h includes this header. */
#ifndef KL_METER_H
#define KL_METER_H

#include "measure/measure.h"
#include "steer/steer.h"

typedef struct kl_since { /* measurements since the last report */
    double sweeps, busy_s, moving_s;
    double rows;            /* number of rows done; in a pipeline, with parts of rows */
    double foreign;         /* number of these rows that belong to neighbours */
    double cpu_s, cpu_rows; /* CPU seconds on a shared core; number of rows for which they were measured */
    uint64_t moved;
    double moved_bytes;
    double segment_s[KL_SEGMENTS], segment_rows[KL_SEGMENTS];
    double boundary_s; /* seconds between the bodies of two consecutive blocks, without waiting */
    double boundaries; /* number of these pairs of blocks */
} kl_since;

typedef struct kl_totals { /* measurements since the loop was opened */
    uint64_t sweeps;       /* number of sweeps that have ended, which is the number of the current sweep */
    uint64_t rounds, moves, moved;
    double elapsed_s, waited_s, moving_s;
} kl_totals;

typedef struct kl_following {     /* work of the loops that follow this loop */
    double busy_s, cpu_s;         /* seconds since the last sweep of this loop began */
    double row_busy_s, row_cpu_s; /* seconds for each of this loop's rows, between its last two sweeps */
} kl_following;

typedef struct kl_meter {
    struct kl_meter *leader; /* the meter of the loop that is followed; NULL: none */
    kl_following following;
    const kl_core_share *core; /* this rank's share of its core; the driver owns it */
    bool crowded;              /* true: other ranks share the core, or all cores */
    bool waits_first; /* true: all ranks are on this host and share its cores, so a waiting rank leaves its
                         core to the others */
    bool simulated;   /* true: there is no scheduler to measure, as in a simulation */
    double opened_s;
    bool on; /* true: measurements are needed for decisions */
    kl_since since;
    kl_totals all;
    double given_s; /* time at which the body got its work */
    bool tells_cpu; /* the driver sets the next two: CPU seconds when the body begins and when it ends its
                       work */
    double given_cpu_s, cpu_s;
    bool by_pieces;             /* true: a sweep is given in pieces, which are timed separately */
    bool uneven;                /* true: pieces take unequal times, here or on another rank */
    double sweep_s, sweep_rows; /* the most recent seconds in the body in the current sweep, about 1 ms, and
                                   rows done in them */
    double iteration_s; /* mean seconds per row in this time; if there was none, at the end of the last sweep.
                           A piece may be a single row, which may take less time than reading the clock. */
    double quantum_s; /* seconds of the quantum (time slice) of this rank's scheduler; 0: not measured yet */
} kl_meter;

static inline uint64_t kl_meter_sweep(const kl_meter *m) { /* number of the current or next sweep */
    return m->all.sweeps;
}
/* Begin a sweep. If this loop's rows move, the work of its followers moves with them. So a row counts with
 * its own time and its time in followers since the last sweep. Argument: this rank's rows in that time. */
void kl_meter_begin_sweep(kl_meter *meter, uint64_t rows);
/* Store that the body is given rows at now_s. */
void kl_meter_give(kl_meter *meter, double now_s);
/* Count `rows` as done since kl_meter_give(). Some of them may be outside `own`. */
void kl_meter_rows(kl_meter *meter, kl_span own, kl_span rows, double now_s);
/* Count `rows` rows, perhaps a fraction, as done in busy_s seconds. */
void kl_meter_count(kl_meter *meter, double rows, double busy_s);
/* Count a sweep that took took_s seconds. */
void kl_meter_end_sweep(kl_meter *meter, double took_s);
/* Count took_s seconds as spent on a delivery of messages; in waited_s of them the rank waited. */
void kl_meter_delivery(kl_meter *meter, double took_s, double waited_s);
/* Count spent_s seconds as spent on moving rows. */
void kl_meter_moving(kl_meter *meter, double spent_s);
/* Return whether to measure the scheduler's quantum (time slice) now. After this long a run, measuring
 * costs almost nothing. */
bool kl_meter_wants_quantum(kl_meter *meter, double now_s);
/* Store the measured quantum; 0: it could not be measured. */
void kl_meter_quantum_is(kl_meter *meter, double quantum_s);
/* Return a report on the rows `own`, and start the next report. part: the part of the sweep that is done. */
kl_rank_report kl_meter_report(kl_meter *meter, kl_span own, double part, double now_s);
/* Forget the measurements made with the old range of rows. */
void kl_meter_begin_anew(kl_meter *meter);

#endif
