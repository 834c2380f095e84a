/* Private to room steer: the parts of a steer. Only a part's own files change it, and only the last four
 * files change kl_steer. A file may use the parts above its own.
 *
 * - kl_outlook (outlook.c, bulk.c, learn.c): where iterations lie and how fast ranks are. It computes the
 * time of a sweep with other shares, and of moving there. learn.c updates it from reports.
 * - prospect.c has no state. It computes what other shares would have saved, and will save.
 * - kl_mean (mean.c): shares for the mean of speeds that change in cycles.
 * - kl_outcome (outcome.c): gain and cost of moves, and the time at which balancing rests.
 * - kl_steer (choose.c): the decision between prospects.
 * - kl_short (short.c): shares that are tried, for sweeps shorter than the scheduler's slices.
 * - kl_trial (trial.c): equal shares that are tried now and then.
 * - kl_steer (steer.c): the interface, which handles one round after another. */
#ifndef KL_STEER_PARTS_H
#define KL_STEER_PARTS_H

#include "steer/loads.h"
#include "steer/proof.h"
#include "steer/slices.h"

enum {
    KL_CANDIDATES =
        KL_STATES +
        3, /* shares for the present speeds, for each state, for the mean of states; equal shares */
    KL_FIRST_ROUNDS = 3, /* in rounds before this one, cold caches and new pages disturb measurements */
};

/* Where iterations lie: ranks + 1 numbers, which are bounds, or shares if the loop is scattered. */
typedef uint64_t kl_place;

static inline double kl_larger(double a, double b) {
    return a > b ? a : b;
}
static inline double kl_smaller(double a, double b) {
    return a < b ? a : b;
}

typedef struct kl_outlook {
    kl_steer_options options;
    double now_s, step_s; /* step_s: seconds since the last round */
    double round_s;       /* seconds from this round to the next */
    double sweeps;        /* sweeps in the last step */
    double as_before;     /* number of sweeps in the last step that were done before the last movement */
    bool moved;           /* rows moved since the last round */
    double refill;        /* part of a sweep that a pipeline needs to drain and fill again */
    double per_move_s;    /* seconds of moving, for each mean iteration that the busiest rank moves */
    double movement_s;    /* mean seconds of the latest movements */
    double mean_bytes;    /* mean bytes of a row, if sizes of rows change; 0: all rows have the same size */
    double *weight;       /* weight[ranks]: mean bytes of a rank's rows, relative to mean_bytes */
    kl_costs costs;       /* costs of a ranged loop; empty until they are measured */
    kl_loads loads;
    kl_place *here, *previous, *equal, *spare;
    double *scratch; /* scratch[ranks]: for intermediate results */
} kl_outlook;

void kl_put(const kl_outlook *o, kl_place *to, const kl_place *from);
/* Return the time of the rank that ends last: its work divided by its speed. */
double kl_time_with(const kl_outlook *o, const kl_place *at, const double *speed);
kilter_status kl_best_for(const kl_outlook *o, const double *speed, kl_place *at);
double kl_sweep_s(const kl_outlook *o, const kl_place *at); /* seconds at the estimated speeds */
double kl_move_s(const kl_outlook *o, const kl_place *after);
/* Return the most iterations that one rank sends and receives; if sizes of rows change, in rows of mean size.
 * before, after: bounds, or shares if the loop is scattered. */
double kl_busiest(const kl_outlook *o, const kl_place *before, const kl_place *after);
/* Return the number of iterations that change their rank (ranged: the sum over all bounds). */
uint64_t kl_volume(const kl_outlook *o, const kl_place *after);
/* Return the seconds that the last step's sweeps need at the speeds measured in this step. */
double kl_computed_s(const kl_outlook *o);
/* Return the part of the elapsed time that depends on the shares; messages and other costs are the rest. */
double kl_share_of_time(const kl_outlook *o);

/* learn.c: learn from the reports of a round */
void kl_learn_step(kl_outlook *o, const kl_rank_report *reports);
double kl_learn_movements(kl_outlook *o,
                          const kl_rank_report *reports); /* return the seconds spent on movements */
void kl_learn_bytes(kl_outlook *o, const kl_rank_report *reports);
void kl_learn_quantum(kl_outlook *o, const kl_rank_report *reports);
kilter_status kl_learn_costs(kl_outlook *o, const kl_rank_report *reports);
bool kl_learn_speeds(kl_outlook *o, const kl_rank_report *reports); /* false: no speed is known */
kilter_status kl_forget_loads(kl_outlook *o);

/* prospect.c */
/* Return the seconds that rows could have saved by moving at the best moment since the last movement.
 * If `cycles`, speeds come and go, and only whole cycles of states count. A cycle may begin in any state. */
double kl_lost_s(const kl_outlook *o, const kl_place *after, bool cycles);
/* Find candidates for shares. The first candidate is the best for the present speeds. */
kilter_status kl_find_candidates(const kl_outlook *o, kl_place *const *candidates, uint32_t *count);
/* Return the expected next state: the state before the present one, because there are seldom more than two
 * states. NULL: no other state is known. */
const kl_state *kl_next_state(const kl_loads *l);
/* Return whether the present speeds, or the speeds to which they change, have ended by themselves before. */
bool kl_comes_and_goes(const kl_loads *l);
kl_prospect kl_prospect_of(const kl_outlook *o, const kl_place *after, bool cycles);
/* Return the prospect of moving, including the state after the present one. `best`: the best shares for the
 * present speeds. */
kl_prospect kl_foresee(const kl_outlook *o, const kl_place *best, bool cycles);

typedef struct kl_mean {
    double lag_s; /* seconds over which loads are averaged; 0: shares follow the loads */
    double cycle_s;
    bool forgets; /* measured loads are forgotten after this round */
    kl_place *halves[2];
} kl_mean;

/* Return whether speeds swing between two states, and whether shares for their mean are better than staying
 * and than following. These shares are stored in the spare place. */
bool kl_mean_pays(kl_mean *m, const kl_outlook *o, kl_prospect *p);
/* Return whether the mean over a cycle has changed, or measurements differ much from the speeds for which the
 * shares were made. */
bool kl_mean_fails(const kl_mean *m, const kl_outlook *o);

typedef struct kl_outcome {
    kl_account account;
    kl_place *anchor;     /* where iterations lay when the balance last reached a limit */
    double anchor_came_s; /* seconds saved since that limit was reached, against the anchor */
    double equal_came_s;  /* seconds saved since that limit was reached, against equal shares */
    double least_came_s;  /* the smaller of anchor_came_s and equal_came_s */
    bool retreats;        /* shares become equal again for a rest */
    double lately_s,
        lately_equal;       /* recent seconds, and sweeps that equal shares would have done in this time */
    double unit_s;          /* expected seconds of a movement; set in each round */
    double unpaid_s, due_s; /* seconds of movements that are not judged yet; seconds of them due now */
    bool open;              /* the last movement is not judged yet */
    double open_forecast_s, open_came_s, open_cost_s;
} kl_outcome;

void kl_outcome_anchor(kl_outcome *c, const kl_outlook *o);
/* Add the gain of the last step, in which moving took spent_s seconds. If `lags`, shares are for averaged
 * loads.
 * @return true: balancing rests from now on, and `reason` says why */
bool kl_outcome_settle(kl_outcome *c, const kl_outlook *o, bool lags, double spent_s, char *reason);

typedef struct kl_short {
    kl_slices slices;
    double *core, *core_then; /* each rank's share of its core, now and when trying began */
    uint64_t depth;           /* sweeps in one exchange for KL_CHOICE_DEEP */
    bool unplaced;            /* a choice was refused, so iterations lie as in another choice */
} kl_short;

typedef struct kl_trial {
    kl_proof proof;
    kl_place *kept; /* where iterations lay before equal shares were tried */
} kl_trial;

struct kl_steer {
    kl_outlook outlook;
    kl_mean mean;
    kl_outcome outcome;
    kl_short trying;
    kl_trial trial;
    kl_place *candidates[KL_CANDIDATES];
    kl_place *proposed; /* a candidate or one of the places above; NULL: none */
    double gain_s;      /* forecast seconds that the proposal gains */
    kl_place *barred;   /* a proposal that was refused */
    bool is_barred;
    kl_place *left; /* number of iterations left in a sweep, by rank */
    kl_transfer *transfers;
    kl_place *places; /* memory of all places, and of all numbers for each rank */
    double *numbers;
};

/* choose.c */
void kl_steer_stay(kl_steer *s, kl_verdict verdict, kl_steer_plan *plan);
bool kl_steer_barred(const kl_steer *s); /* was the proposal refused before? */
/* Decide between candidates. rest_begins: why a rest begins; NULL: none begins. */
void kl_choose(kl_steer *s, uint32_t count, const char *rest_begins, kl_steer_plan *plan);
/* short.c */
void kl_short_learn(kl_short *t, uint32_t ranks, const kl_rank_report *reports);
/* Decide by trying shares, because speeds do not tell their effect. *tries: such a decision was made. */
kilter_status kl_short_decide(kl_steer *s, double spent_s, kl_steer_plan *plan, bool *tries);
/* trial.c */
void kl_trial_begin(kl_steer *s, kl_steer_plan *plan); /* begin a trial if one is due and nothing moves */
/* Return whether a trial, or the rest after it, is under way. Then nothing else is decided. */
bool kl_trial_keeps(kl_steer *s, kl_steer_plan *plan);

#endif
