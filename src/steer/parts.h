/* The parts of a steer. Within room steer. Each part is changed by its own files only; kl_steer by the last
 * four. Files may use those above them.
 *
 * - kl_outlook (outlook.c, learn.c): where iterations lie and how fast ranks are. It computes the time of a
 *   sweep with other shares, and of moving there. learn.c updates it from reports.
 * - prospect.c has no state: what other shares would have saved, and what will probably come.
 * - kl_mean (mean.c): shares for the mean of speeds that swing.
 * - kl_outcome (outcome.c): what moves gained and cost, and when balancing rests.
 * - kl_steer (choose.c): the decision between prospects.
 * - kl_short (short.c): sweeps shorter than the scheduler's slices, for which shares are tried.
 * - kl_trial (trial.c): equal shares, tried now and then.
 * - kl_steer (steer.c): the door; one round after the other. */
#ifndef KL_STEER_PARTS_H
#define KL_STEER_PARTS_H

#include "steer/loads.h"
#include "steer/proof.h"
#include "steer/slices.h"

enum {
    KL_CANDIDATES = KL_STATES + 3, /* shares for the present, each state, the mean of states; equal shares */
    KL_FIRST_ROUNDS = 3,           /* earlier rounds measure cold caches and new pages */
};

/* Where iterations lie: bounds, or shares if scattered; ranks + 1 numbers. */
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
    double as_before;     /* part of these sweeps before the last movement */
    bool moved;           /* rows moved since the last round */
    double refill;        /* part of a sweep that a pipeline takes to drain and fill again */
    double per_move_s;    /* seconds of moving one iteration of the busiest rank */
    double movement_s;    /* mean seconds of the last movements */
    kl_costs costs;       /* ranged loops; empty until costs are measured */
    kl_loads loads;
    kl_place *here, *previous, *equal, *spare;
    double *scratch; /* [ranks] */
} kl_outlook;

void kl_put(const kl_outlook *o, kl_place *to, const kl_place *from);
/* Return the time of the rank that ends last: its work over its speed. */
double kl_time_with(const kl_outlook *o, const kl_place *at, const double *speed);
kilter_status kl_best_for(const kl_outlook *o, const double *speed, kl_place *at);
double kl_sweep_s(const kl_outlook *o, const kl_place *at); /* at the estimated speeds */
double kl_move_s(const kl_outlook *o, const kl_place *after);
/* Return the iterations that change their rank (ranged: the sum over all bounds). */
uint64_t kl_volume(const kl_outlook *o, const kl_place *after);
/* Return the time that the last step's sweeps need at the speeds measured in this step. */
double kl_computed_s(const kl_outlook *o);
/* Return the part of the elapsed time that depends on the shares; the rest is messages and other costs. */
double kl_share_of_time(const kl_outlook *o);

/* learn.c: from the reports of a round */
void kl_learn_step(kl_outlook *o, const kl_rank_report *reports);
double kl_learn_movements(kl_outlook *o,
                          const kl_rank_report *reports); /* return the seconds spent on movements */
void kl_learn_quantum(kl_outlook *o, const kl_rank_report *reports);
kilter_status kl_learn_costs(kl_outlook *o, const kl_rank_report *reports);
bool kl_learn_speeds(kl_outlook *o, const kl_rank_report *reports); /* false: no speed is known */
kilter_status kl_forget_loads(kl_outlook *o);

/* prospect.c */
/* Return the seconds that would have been saved if rows had moved at the best moment since the last movement.
 * `cycles`: speeds come and go, so only whole cycles of states count. A cycle may begin in any state. */
double kl_lost_s(const kl_outlook *o, const kl_place *after, bool cycles);
/* Find candidates. The first one is the best for the present speeds. */
kilter_status kl_find_candidates(const kl_outlook *o, kl_place *const *candidates, uint32_t *count);
/* Return the expected next state: the one before the present state, because there are seldom more than two.
 * NULL: none. */
const kl_state *kl_next_state(const kl_loads *l);
/* Did such speeds, or those that they change to, end by themselves before? */
bool kl_comes_and_goes(const kl_loads *l);
kl_prospect kl_prospect_of(const kl_outlook *o, const kl_place *after, bool cycles);
/* The same, including the state after the present one. `best`: best shares for the present speeds. */
kl_prospect kl_foresee(const kl_outlook *o, const kl_place *best, bool cycles);

typedef struct kl_mean {
    double lag_s; /* seconds over which loads are averaged; 0: shares follow the loads */
    double cycle_s;
    bool forgets; /* after this round, measured loads are forgotten */
    kl_place *halves[2];
} kl_mean;

/* Do speeds swing between two states, and are shares for their mean better than staying and than following?
 * These shares are stored in the spare place. */
bool kl_mean_pays(kl_mean *m, const kl_outlook *o, kl_prospect *p);
/* Has the mean over a cycle changed, or do measurements differ much from what the shares were made for? */
bool kl_mean_fails(const kl_mean *m, const kl_outlook *o);

typedef struct kl_outcome {
    kl_account account;
    kl_place *anchor;              /* where iterations lay when the balance last reached a limit */
    double anchor_came_s;          /* seconds saved since then, against the anchor */
    double equal_came_s;           /* seconds saved since then, against equal shares */
    double least_came_s;           /* the smaller of both */
    bool retreats;                 /* go back to equal shares for a rest */
    double lately_s, lately_equal; /* recent time, and sweeps that equal shares would have done in it */
    double unit_s;                 /* expected seconds of a movement; set in each round */
    double unpaid_s, due_s;        /* cost of movements that are not judged yet; cost due now */
    bool open;                     /* a movement is not judged yet */
    double open_forecast_s, open_came_s, open_cost_s;
} kl_outcome;

void kl_outcome_anchor(kl_outcome *c, const kl_outlook *o);
/* Add the gain of the last step, of which spent_s were spent on moving. lags: shares are for averaged loads.
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
    double gain_s;      /* forecast gain of the proposal */
    kl_place *barred;   /* a proposal that was refused */
    bool is_barred;
    kl_place *left; /* iterations left in a sweep */
    kl_transfer *transfers;
    kl_place *places; /* memory of all places and of numbers for each rank */
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
void kl_trial_begin(kl_steer *s, kl_steer_plan *plan); /* if a trial is due and nothing else moves */
/* Is a trial or the rest after it under way? Then nothing else is decided. */
bool kl_trial_keeps(kl_steer *s, kl_steer_plan *plan);

#endif
