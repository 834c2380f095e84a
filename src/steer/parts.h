/* Private to the folder steer: the parts of a steer, which is the state of one loop's decisions. Each part is
 * changed only by its own files. Only choose.c, short.c, trial.c and steer.c have the whole kl_steer as an
 * argument. A file may use the parts listed before its own.
 *
 * - Outlook (kl_outlook; outlook.c, bulk.c, learn.c): on which ranks the iterations are, and how fast the
 *   ranks are. Its functions compute the time of a sweep with other shares, and the time of the move to these
 *   shares. The file learn.c updates the outlook from reports.
 *
 * - Prospects (prospect.c, no state): what other shares would have saved so far, and what they will save.
 * - Mean (kl_mean; mean.c): shares that fit the mean speeds, if the speeds change in cycles.
 * - Outcome (kl_outcome; outcome.c): gain and cost of moves, and when balancing rests.
 * - Choice (kl_steer; choose.c): the decision between candidate shares.
 * - Cores (kl_cores; cores.c): the part of its core that each rank gets.
 * - Found (kl_found; found.c): which shares were best under the last loads.
 * - Short sweeps (kl_short; short.c): shares that are tried if sweeps are shorter than the scheduler's time
 *   slices.
 * - Trial (kl_trial; trial.c): equal shares that are tried now and then.
 * - Interface (kl_steer; steer.c): one round after another. */
#ifndef KL_STEER_PARTS_H
#define KL_STEER_PARTS_H

#include "steer/loads.h"
#include "steer/proof.h"
#include "steer/slices.h"

enum {
    /* greatest number of candidate shares: for the present speeds, for each known state of speeds, for the
     * mean of these states, and equal shares */
    KL_CANDIDATES = KL_STATES + 3,
    /* rounds with a lower number than this are disturbed by cold caches and new pages of memory */
    KL_FIRST_ROUNDS = 3,
};

/* One number of a place. A place is a distribution of iterations to ranks: an array of ranks + 1 numbers. The
 * numbers are bounds between ranks or, if the loop is scattered, the ranks' shares. */
typedef uint64_t kl_place;

static inline double kl_larger(double a, double b) {
    return a > b ? a : b;
}
static inline double kl_smaller(double a, double b) {
    return a < b ? a : b;
}

/* The cost of the last moves. It is measured in two ways, and both results may be too large. One is the
 * longest time that a rank reports for the move, which includes waiting for late ranks. The other is the time
 * of sweeps minus the time of computing, which has other causes, too. The smaller result counts. Both are
 * sums over the rounds after the move. */
typedef struct kl_moving {
    uint32_t rounds; /* number of rounds since the last move was decided */
    bool told;       /* true: ranks have reported moved rows */
    /* number of rows that the busiest rank moved; a row counts by its size relative to the mean; 0: no rank
     * has reported rows that are large enough to show the cost of a row */
    double rows;
    double *reported_s; /* reported_s[r]: seconds that rank r reports for the move */
    /* seconds of the rounds since the move, minus the seconds that the slowest rank needed for computing */
    double excess_s;
    double spent_s; /* seconds that the last move has cost so far */
    /* past_rows, past_s: rows and seconds of earlier moves; older moves have less weight */
    double past_rows, past_s;
    double past_movement_s; /* mean seconds of earlier moves; 0: there were none */
} kl_moving;

typedef struct kl_outlook {
    kl_steer_options options;
    double now_s, step_s; /* now_s: time of this round; step_s: seconds since the last round */
    double round_s;       /* seconds from this round to the next */
    double sweeps;        /* number of sweeps since the last round */
    double as_before;     /* number of the sweeps since the last round that were done before the last move */
    bool moved;           /* true: rows moved since the last round */
    double refill;        /* part of a sweep that a pipeline needs to empty and fill again */
    double per_move_s;    /* seconds of moving for each row of mean size that the busiest rank moves */
    double movement_s;    /* mean seconds of the last moves */
    /* mean bytes of a row, if the size of rows changes; 0: all rows have the same size */
    double mean_bytes;
    kl_moving moving;
    double *weight; /* weight[r]: mean bytes of the rows of rank r, relative to mean_bytes */
    kl_costs costs; /* costs of the iterations, if each rank has one range; empty until they are measured */
    kl_loads loads;
    kl_place *here, *previous, *equal, *spare;
    double *scratch; /* scratch[r]: memory for intermediate results */
} kl_outlook;

void kl_put(const kl_outlook *o, kl_place *to, const kl_place *from);
/* Return the greatest quotient of work and speed of all ranks. If speeds are given in work per second, this
 * is the time of a sweep. */
double kl_time_with(const kl_outlook *o, const kl_place *at, const double *speed);
kilter_status kl_best_for(const kl_outlook *o, const double *speed, kl_place *at);
/* Return the seconds of a sweep at the estimated speeds. */
double kl_sweep_s(const kl_outlook *o, const kl_place *at);
double kl_move_s(const kl_outlook *o, const kl_place *after);
/* Return the number of iterations that the busiest rank sends and receives. If the size of rows changes,
 * a row counts by its size relative to the mean. The arguments are bounds, or shares if the loop is
 * scattered. */
double kl_busiest(const kl_outlook *o, const kl_place *before, const kl_place *after);
/* Return the number of iterations that change their rank in a move to `after`. If each rank has one range,
 * this is the sum of the distances by which the bounds between ranges move. */
uint64_t kl_volume(const kl_outlook *o, const kl_place *after);
/* Return the seconds that the sweeps since the last round should have taken at the speeds measured in this
 * time. */
double kl_computed_s(const kl_outlook *o);
/* Return the part of the elapsed time that depends on the shares. Messages and other costs make up the
 * remaining part. */
double kl_share_of_time(const kl_outlook *o);

/* learn.c: updating the outlook from the reports of a round */
void kl_learn_step(kl_outlook *o, const kl_rank_report *reports);
void kl_moving_init(kl_outlook *o);
void kl_moving_begin(kl_outlook *o); /* Store that a move was decided. */
/* Return whether the last move may still be in progress, so that its cost is not known yet. */
bool kl_moving_open(const kl_outlook *o);
/* Learn the cost of moves; call this after learning the speeds. Return the seconds spent on moves since the
 * last round. */
double kl_learn_movements(kl_outlook *o, const kl_rank_report *reports);
void kl_learn_bytes(kl_outlook *o, const kl_rank_report *reports);
void kl_learn_quantum(kl_outlook *o, const kl_rank_report *reports);
kilter_status kl_learn_costs(kl_outlook *o, const kl_rank_report *reports);
/* Learn the ranks' speeds. Return false if no speed is known. */
bool kl_learn_speeds(kl_outlook *o, const kl_rank_report *reports);
kilter_status kl_forget_loads(kl_outlook *o);

/* prospect.c */
/* Return the seconds that the shares `after` would have saved until now. The count begins after the last
 * move, at the moment that gives the greatest result. If `cycles` is true, the same speeds come again and
 * again, so count only whole cycles of speeds. A cycle may begin in any state of speeds. */
double kl_lost_s(const kl_outlook *o, const kl_place *after, bool cycles);
/* Find candidate shares. The first candidate is the best one for the present speeds. */
kilter_status kl_find_candidates(const kl_outlook *o, kl_place *const *candidates, uint32_t *count);
/* Return the state of speeds that is expected next. This is the last state before the present one, because
 * speeds rarely have more than two states. Return NULL if no other state is known. */
const kl_state *kl_next_state(const kl_loads *l);
/* Return whether the present state of speeds is expected to end: true if this state has ended before, or if
 * states have ended several times. While speeds are changing to another state, return whether any state
 * except the old one has ended before. */
bool kl_comes_and_goes(const kl_loads *l);
kl_prospect kl_prospect_of(const kl_outlook *o, const kl_place *after, bool cycles);
/* Return the forecast for a move to `best`, the best shares for the present speeds. The forecast includes
 * the state of speeds that is expected next. */
kl_prospect kl_foresee(const kl_outlook *o, const kl_place *best, bool cycles);

typedef struct kl_mean {
    double lag_s; /* seconds over which speeds are averaged; 0: shares follow the present speeds */
    double cycle_s;
    bool forgets; /* true: the known states of speeds must be forgotten after this round */
    kl_place *halves[2];
} kl_mean;

/* Return whether speeds alternate between two states, and shares for the mean speeds are the best choice.
 * They must be better than the present shares, and better than moving rows at each change. Store the shares
 * for the mean speeds in o->spare. */
bool kl_mean_pays(kl_mean *m, const kl_outlook *o, kl_prospect *p);
/* Return whether shares for the mean speeds no longer fit: the mean over a cycle has changed, or measured
 * speeds differ much from it. */
bool kl_mean_fails(const kl_mean *m, const kl_outlook *o);

typedef struct kl_outcome {
    kl_account account;
    /* shares at the time when the account's balance last reached a limit; called the anchor */
    kl_place *anchor;
    /* seconds saved since the shares in `anchor` were set, compared with keeping these shares */
    double anchor_came_s;
    /* seconds saved since the shares in `anchor` were set, compared with equal shares */
    double equal_came_s;
    double least_came_s; /* the smaller of anchor_came_s and equal_came_s */
    /* true: balancing begins to rest (pause), and rows move to equal shares before that */
    bool retreats;
    /* lately_s: sum of the seconds of all rounds, where older rounds have less weight; lately_equal: number
     * of sweeps that would have been done in these seconds with equal shares */
    double lately_s, lately_equal;
    double unit_s; /* expected seconds of a move; set anew in each round */
    /* unpaid_s: cost of moves that the account has not counted yet; due_s: the part of this cost that counts
     * in the next round */
    double unpaid_s, due_s;
    bool open; /* true: the last move is not judged yet */
    double open_forecast_s, open_came_s, open_cost_s;
} kl_outcome;

void kl_outcome_anchor(kl_outcome *c, const kl_outlook *o);
/* Account for the time since the last round, in which moving took spent_s seconds. If `lags` is true, shares
 * are for the mean of changing speeds. @return true: balancing rests (pauses) from now on, and `reason` says
 * why */
bool kl_outcome_settle(kl_outcome *c, const kl_outlook *o, bool lags, double spent_s, char *reason);

/* The part of its core that each rank gets. */
typedef struct kl_cores {
    double *seen;      /* seen[r]: the part that rank r reported last */
    double *part;      /* part[r]: the part that decisions use */
    double *differs_s; /* differs_s[r]: seconds for which reports have differed from part[r] */
    double *then;      /* then[r]: the value of part[r] when the present load or trials last began */
} kl_cores;

/* The kind of shares (choice) that trials found best under a load. The load is known by the part of its core
 * that each rank gets. */
typedef struct kl_found {
    double *part; /* part[r] of rank r */
    double at_s;  /* time at which the trials ended; 0: no trials have ended */
    int choice;
    uint64_t depth; /* number of sweeps between two exchanges of ghost rows, with KL_CHOICE_DEEP */
} kl_found;

enum { KL_LOADS = 4 }; /* number of loads whose best choice is remembered */

typedef struct kl_short {
    kl_cores cores;
    kl_slices slices;
    double seen_s;  /* last time at which the conditions for trials held; 0: never */
    double again_s; /* if ranks share cores: no trials before this time, because equal shares were best */
    double pause_s; /* seconds without trials after the last series of trials */
    kl_found found[KL_LOADS];
    bool stored;     /* true: the present choice is in `found` already */
    kl_tried waited; /* measurements with equal shares, made while a load was too recent to count */
    bool loaded;     /* true: in the last round, there was a load that was too recent to count */
    /* time from which the moves to KL_CHOICE_OUT are cheap enough for a trial; 0: it was not left out because
     * of its moves */
    double out_s;
    /* used with KL_CHOICE_DEEP: number of sweeps for which ghost rows are exchanged at once */
    uint64_t depth;
    /* placed: the kind of shares (choice) that the rows have now; before: the kind that they had before the
     * last move. KL_CHOICES: none of the kinds */
    int placed, before;
} kl_short;

typedef struct kl_trial {
    kl_proof proof;
    kl_place *kept; /* the shares that the rows had before the trial of equal shares */
} kl_trial;

struct kl_steer {
    kl_outlook outlook;
    kl_mean mean;
    kl_outcome outcome;
    kl_short trying;
    kl_trial trial;
    kl_place *candidates[KL_CANDIDATES];
    /* proposed shares: one of the candidates, or another place (distribution) in this struct; NULL: none */
    kl_place *proposed;
    double gain_s;    /* seconds that the proposed shares should save */
    kl_place *barred; /* the shares of the last refused move, for which a rank had no memory */
    bool is_barred;
    kl_place *left; /* left[r]: number of iterations that rank r has left in the present sweep */
    kl_transfer *transfers;
    /* places: memory of all places (distributions); numbers: memory of all arrays with a number for each
     * rank */
    kl_place *places;
    double *numbers;
};

/* choose.c */
void kl_steer_stay(kl_steer *s, kl_verdict verdict, kl_steer_plan *plan);
bool kl_steer_barred(const kl_steer *s); /* Return whether the proposed shares are close to refused ones. */
/* Decide between candidate shares. `rest_begins` says why balancing rests (pauses) from now on. If it is
 * NULL, balancing does not rest. */
void kl_choose(kl_steer *s, uint32_t count, const char *rest_begins, kl_steer_plan *plan);
/* cores.c */
void kl_cores_init(kl_cores *c, uint32_t ranks);
void kl_cores_learn(kl_cores *c, uint32_t ranks, const kl_rank_report *reports, double step_s);
/* Return whether a rank gets clearly another part of its core than the part in the array. */
bool kl_cores_differ(const kl_cores *c, uint32_t ranks, const double *parts);
/* Return whether a rank gets another part of its core than when the present load or trials last began. */
bool kl_cores_changed(const kl_cores *c, uint32_t ranks);
/* Return whether no rank gets less of its core than then. */
bool kl_cores_freed(const kl_cores *c, uint32_t ranks);
/* Store the present parts, because another load or trials of shares begin. */
void kl_cores_store(kl_cores *c, uint32_t ranks);
/* Return the seconds after which a load on a core counts. */
double kl_cores_lasting_s(void);
/* found.c */
/* Store the result of trials that ended at result->at_s, under the present load. result->part is not used. */
void kl_found_store(kl_found found[KL_LOADS], const kl_cores *c, uint32_t ranks, const kl_found *result);
/* Return what trials found under the present load earlier. NULL: nothing, or it was found long ago. */
const kl_found *kl_found_before(const kl_found found[KL_LOADS], const kl_cores *c, uint32_t ranks,
                                double now_s);
/* short.c */
void kl_short_init(kl_short *t, uint32_t ranks);
/* If sweeps are so short that speeds do not show the effect of shares, decide by trying shares. *tries:
 * whether the decision was made in this way. */
kilter_status kl_short_decide(kl_steer *s, double spent_s, kl_steer_plan *plan, bool *tries);
void kl_short_moved(kl_short *t);   /* Store that the proposed move will be carried out. */
void kl_short_refused(kl_short *t); /* Store that the last move was not carried out. */
/* trial.c */
/* Begin a trial of equal shares if one is due and no rows move. */
void kl_trial_begin(kl_steer *s, kl_steer_plan *plan);
/* Return whether a trial of equal shares, or the rest (pause) after a trial, is under way. If so, nothing
 * else is decided. */
bool kl_trial_keeps(kl_steer *s, kl_steer_plan *plan);

#endif
