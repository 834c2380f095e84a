/* Private to the folder rank: measurements of this rank's work, since its last report and since the start.
 * rank.h includes this header. */
#ifndef KL_METER_H
#define KL_METER_H

#include "measure/measure.h"
#include "steer/steer.h"

typedef struct kl_since { /* measurements since the last report */
    double sweeps, busy_s, moving_s;
    double rows;    /* number of rows done; in a pipeline this may include fractions of rows */
    double foreign; /* number of done rows that belong to neighbours */
    /* cpu_s: CPU seconds of rows on a shared core; cpu_rows: number of rows for which CPU seconds were
     * measured */
    double cpu_s, cpu_rows;
    uint64_t moved;
    double moved_bytes;
    double sampled_s; /* seconds in the body in which the CPU time was measured */
    double segment_s[KL_SEGMENTS], segment_rows[KL_SEGMENTS];
    /* seconds between the end of a block's body and the beginning of the next one, without waiting */
    double boundary_s;
    double boundaries; /* number of blocks that boundary_s adds up */
} kl_since;

typedef struct kl_totals { /* measurements since the loop was opened */
    /* number of sweeps that have ended; this is also the number of the current sweep */
    uint64_t sweeps;
    uint64_t rounds, moves, moved;
    double elapsed_s, waited_s, moving_s;
} kl_totals;

typedef struct kl_following { /* Work of the followers: loops whose rows lie on the same ranks as this loop's
                                 rows. */
    double busy_s, cpu_s;     /* seconds in the followers since the last sweep of this loop began */
    /* seconds that the followers took for each of this loop's rows, between its last two sweeps */
    double row_busy_s, row_cpu_s;
} kl_following;

typedef struct kl_meter {
    struct kl_meter *leader; /* meter of the loop that this loop follows; NULL: this loop follows none */
    kl_following following;
    const kl_core_share *core; /* this rank's share of its core; the driver owns it */
    const kl_pin *pin;   /* whether the rank is pinned to its core; the driver owns it; NULL: it never is */
    bool shares_cores;   /* true: more ranks use this rank's cores than there are such cores */
    bool seldom;         /* true: CPU time is measured in few sweeps, because some ranks share cores */
    uint32_t cores_left; /* number of this rank's cores that ranks with lower numbers leave, one core each */
    bool waits_first; /* true: all ranks are on this host, and some share cores, so a waiting rank leaves its
                         core to the others */
    bool simulated;   /* true: there is no scheduler to measure, as in a simulation */
    double opened_s;
    bool on; /* true: measurements are made, because decisions need them */
    kl_since since;
    kl_totals all;
    double given_s; /* time at which the body got its rows */
    /* true: the driver stores the rank's CPU time in given_cpu_s when the body begins its work, and in cpu_s
     * when the body ends its work */
    bool tells_cpu;
    double given_cpu_s, cpu_s;
    bool samples;     /* true: CPU time is measured in the current sweep */
    int sampled;      /* number of sweeps in which CPU time was measured since sampled_s */
    double sampled_s; /* time at which such sweeps last began */
    double row_cpu_s; /* CPU seconds per row, as last measured on a shared core; 0: not measured yet */
    /* true: the rows of a sweep are given to the body in pieces, which are timed separately */
    bool by_pieces;
    bool uneven; /* true: rows take unequal times, on this rank or on another one */
    /* sweep_s: seconds that the body took for the last rows in the current sweep, about 1 ms at most;
     * sweep_rows: number of these rows */
    double sweep_s, sweep_rows;
    /* mean seconds per row, sweep_s / sweep_rows. It is a mean because a single row may take less time than
     * reading the clock. At the beginning of a sweep, it is still the value of the last sweep. */
    double iteration_s;
    double quantum_s; /* seconds of the quantum (time slice) of this rank's scheduler; 0: not measured yet */
} kl_meter;

/* Return the number of the current or next sweep. */
static inline uint64_t kl_meter_sweep(const kl_meter *m) {
    return m->all.sweeps;
}
/* Begin a sweep of `rows` own rows at now_s. If a row of this loop moves, the rows of other loops that follow
 * it move, too. So the cost of a row includes the work on them since the last sweep. */
void kl_meter_begin_sweep(kl_meter *meter, uint64_t rows, double now_s);
/* Store that the body is given rows at now_s. */
void kl_meter_give(kl_meter *meter, double now_s);
/* Count `rows` as done since kl_meter_give(). Rows outside `own` belong to neighbours. */
void kl_meter_rows(kl_meter *meter, kl_span own, kl_span rows, double now_s);
/* Count `rows` rows (perhaps a fraction) as done in busy_s seconds. */
void kl_meter_count(kl_meter *meter, double rows, double busy_s);
/* Count a sweep that took took_s seconds. */
void kl_meter_end_sweep(kl_meter *meter, double took_s);
/* Count took_s seconds for a delivery of messages. The rank waited for waited_s of these seconds. */
void kl_meter_delivery(kl_meter *meter, double took_s, double waited_s);
/* Count spent_s seconds as time spent on moving rows. */
void kl_meter_moving(kl_meter *meter, double spent_s);
/* Return whether to measure the length of the scheduler's time slice (quantum) now. It is measured late in a
 * run, because the measurement would take a large part of a short run. */
bool kl_meter_wants_quantum(kl_meter *meter, double now_s);
/* Store the measured length of the scheduler's time slice (quantum); 0: it could not be measured. */
void kl_meter_quantum_is(kl_meter *meter, double quantum_s);
/* Return whether a rank that reports this share (0: not known) counts as slow, because of other processes or
 * ranks on its core. */
bool kl_meter_is_slow(double share);
/* Return whether a rank reports this share because other processes use its core. Other ranks of the loop do
 * not count as other processes. */
bool kl_meter_is_loaded(double share);
/* Return a report on the rows `own`, and begin the measurements for the next report. part: the part of the
 * current sweep that is done, 0 … 1. */
kl_rank_report kl_meter_report(kl_meter *meter, kl_span own, double part, double now_s);
/* Forget the measurements that were made before this rank's rows changed. */
void kl_meter_begin_anew(kl_meter *meter);

#endif
