/* Private to the folder steer: the parts of a steer. Only a part's own files change it, and only the last
 * four files change kl_steer. A file may use the parts listed before its own.
 *
 * - Outlook (kl_outlook; outlook.c, bulk.c, learn.c): where iterations lie and how fast ranks are. It
 *   computes the time of a sweep with other shares, and of moving there. The file learn.c updates it from
 *   reports.
 * - Prospects (prospect.c, no state): what other shares would have saved so far, and what they will save.
 * - Mean (kl_mean; mean.c): shares for the mean of speeds that change in cycles.
 * - Outcome (kl_outcome; outcome.c): gain and cost of moves, and when balancing rests.
 * - Choice (kl_steer; choose.c): the decision between candidate shares.
 * - Short sweeps (kl_short; short.c): shares that are tried if sweeps are shorter than the scheduler's
 *   slices.
 * - Trial (kl_trial; trial.c): equal shares that are tried now and then.
 * - Interface (kl_steer; steer.c): one round after another. */
#ifndef KL_STEER_PARTS_H
#define KL_STEER_PARTS_H

#include "steer/loads.h"
#include "steer/proof.h"
#include "steer/slices.h"

enum {
    /* shares for the present speeds, for each state, and for the mean of states; equal shares */
    KL_CANDIDATES = KL_STATES + 3,
    KL_FIRST_ROUNDS = 3, /* the rounds before this one are disturbed by cold caches and new pages */
};

/* A distribution of iterations: ranks + 1 numbers, which are bounds, or shares if the loop is scattered. */
typedef uint64_t kl_place;

static inline double kl_larger(double a, double b) {
    return a > b ? a : b;
}
static inline double kl_smaller(double a, double b) {
    return a < b ? a : b;
}

/* The cost of moves. There are two measurements of it: a rank's own time for a move, which includes
 * waiting for a late rank; and the time by which sweeps exceed computing, which has other causes, too.
 * Therefore the smaller of the two counts, in the sum over the rounds in which the last move is seen. */
typedef struct kl_moving {
    uint32_t rounds; /* number of rounds since the last move was decided */
    bool told;       /* true: ranks have reported moved rows */
    double rows; /* number of rows that the busiest rank moved, in rows of mean size, as far as they show the
                    cost of a row */
    double *reported_s;       /* reported_s[ranks]: seconds that each rank reports for the move */
    double excess_s;          /* seconds in these rounds that no rank needed for computing */
    double spent_s;           /* seconds that the move has cost so far */
    double past_rows, past_s; /* rows and seconds of earlier moves, with less weight on older ones */
    double past_movement_s;   /* mean seconds of these moves; 0: there were none */
} kl_moving;

typedef struct kl_outlook {
    kl_steer_options options;
    double now_s, step_s; /* step_s: seconds since the last round */
    double round_s;       /* seconds from this round to the next */
    double sweeps;        /* number of sweeps in the last step */
    double as_before;     /* number of these sweeps that were done before the last move */
    bool moved;           /* rows moved since the last round */
    double refill;        /* part of a sweep that a pipeline needs to empty and fill again */
    double per_move_s;    /* seconds of moving, per row of mean size that the busiest rank moves */
    double movement_s;    /* mean seconds of the last moves */
    double mean_bytes;    /* mean bytes of a row if rows change their size; 0: all rows have one size */
    kl_moving moving;
    double *weight; /* weight[ranks]: mean bytes of a rank's rows, relative to mean_bytes */
    kl_costs costs; /* costs of a ranged loop; empty until they are measured */
    kl_loads loads;
    kl_place *here, *previous, *equal, *spare;
    double *scratch; /* scratch[ranks]: for intermediate results */
} kl_outlook;

void kl_put(const kl_outlook *o, kl_place *to, const kl_place *from);
/* Return the largest quotient of work and speed of any rank. If speeds are in work per second, it is the
 * time of a sweep. */
double kl_time_with(const kl_outlook *o, const kl_place *at, const double *speed);
kilter_status kl_best_for(const kl_outlook *o, const double *speed, kl_place *at);
double kl_sweep_s(const kl_outlook *o, const kl_place *at); /* seconds at the estimated speeds */
double kl_move_s(const kl_outlook *o, const kl_place *after);
/* Return the number of iterations that the busiest rank sends and receives. If rows change their size,
 * return it in rows of mean size. before, after: bounds, or shares if the loop is scattered. */
double kl_busiest(const kl_outlook *o, const kl_place *before, const kl_place *after);
/* Return the number of iterations that change their rank (ranged: the sum over all bounds). */
uint64_t kl_volume(const kl_outlook *o, const kl_place *after);
/* Return the seconds that the last step's sweeps should take by the speeds measured in it. */
double kl_computed_s(const kl_outlook *o);
/* Return the part of the elapsed time that depends on the shares. The rest is messages and other costs. */
double kl_share_of_time(const kl_outlook *o);

/* learn.c: update the outlook from the reports of a round */
void kl_learn_step(kl_outlook *o, const kl_rank_report *reports);
void kl_moving_init(kl_outlook *o);
void kl_moving_begin(kl_outlook *o); /* Store that a move was decided. */
/* Return whether the last move may still be under way, so that its cost is not known. */
bool kl_moving_open(const kl_outlook *o);
/* Learn the cost of moves, after the speeds. Return the seconds that the last step spent on moves. */
double kl_learn_movements(kl_outlook *o, const kl_rank_report *reports);
void kl_learn_bytes(kl_outlook *o, const kl_rank_report *reports);
void kl_learn_quantum(kl_outlook *o, const kl_rank_report *reports);
kilter_status kl_learn_costs(kl_outlook *o, const kl_rank_report *reports);
bool kl_learn_speeds(kl_outlook *o, const kl_rank_report *reports); /* Return false if no speed is known. */
kilter_status kl_forget_loads(kl_outlook *o);

/* prospect.c */
/* Return the seconds that the shares `after` would have saved, counted from the best moment since the last
 * move. If `cycles` is true, speeds come and go, so only whole cycles of states count. A cycle may begin
 * in any state. */
double kl_lost_s(const kl_outlook *o, const kl_place *after, bool cycles);
/* Find candidate shares. The first candidate is the best one for the present speeds. */
kilter_status kl_find_candidates(const kl_outlook *o, kl_place *const *candidates, uint32_t *count);
/* Return the state that is expected next: the one before the present state, because there are seldom more
 * than two. NULL: no other state is known. */
const kl_state *kl_next_state(const kl_loads *l);
/* Return whether the present state is expected to end: it has ended before, or several other states have.
 * While the state changes, return whether any other state has ended before. */
bool kl_comes_and_goes(const kl_loads *l);
kl_prospect kl_prospect_of(const kl_outlook *o, const kl_place *after, bool cycles);
/* Return the forecast of moving to `best`, the best shares for the present speeds. It includes the state that
 * is expected next. */
kl_prospect kl_foresee(const kl_outlook *o, const kl_place *best, bool cycles);

typedef struct kl_mean {
    double lag_s; /* seconds over which speeds are averaged; 0: shares follow the speeds */
    double cycle_s;
    bool forgets; /* true: forget the known states after this round */
    kl_place *halves[2];
} kl_mean;

/* Return whether speeds alternate between two states, and shares for their mean are better than staying
 * and than following the speeds. These shares are stored in the spare place. */
bool kl_mean_pays(kl_mean *m, const kl_outlook *o, kl_prospect *p);
/* Return whether shares for the mean no longer fit, because the mean over a cycle has changed, or measured
 * speeds differ much from it. */
bool kl_mean_fails(const kl_mean *m, const kl_outlook *o);

typedef struct kl_outcome {
    kl_account account;
    kl_place *anchor;     /* shares at the time when the account's balance last reached a limit */
    double anchor_came_s; /* seconds saved since then, compared with the anchor's shares */
    double equal_came_s;  /* seconds saved since then, compared with equal shares */
    double least_came_s;  /* the smaller of anchor_came_s and equal_came_s */
    bool retreats;        /* true: shares become equal for the pause in balancing (rest) that begins */
    double lately_s,
        lately_equal; /* recent seconds, and the sweeps that equal shares would have done in them */
    double unit_s;    /* expected seconds of a move, set in each round */
    /* cost of moves that the account has not counted yet; the part of it that the next step counts */
    double unpaid_s, due_s;
    bool open; /* true: the last move is not judged yet */
    double open_forecast_s, open_came_s, open_cost_s;
} kl_outcome;

void kl_outcome_anchor(kl_outcome *c, const kl_outlook *o);
/* Add the gain and cost of the last step, in which moving took spent_s seconds. If `lags`, shares are for
 * the mean of changing loads. @return true: balancing rests from now on, and `reason` says why */
bool kl_outcome_settle(kl_outcome *c, const kl_outlook *o, bool lags, double spent_s, char *reason);

typedef struct kl_short {
    kl_slices slices;
    double shared_s; /* seconds for which the conditions for choosing by trials have held without a break */
    double seen_s;   /* last time at which these conditions held; 0: never */
    double *core, *core_then; /* each rank's share of its core, now and when the trials began */
    uint64_t depth;           /* number of sweeps in one exchange for KL_CHOICE_DEEP */
    bool unplaced;            /* true: a choice was refused, so the shares are those of another choice */
} kl_short;

typedef struct kl_trial {
    kl_proof proof;
    kl_place *kept; /* the shares before equal shares were tried */
} kl_trial;

struct kl_steer {
    kl_outlook outlook;
    kl_mean mean;
    kl_outcome outcome;
    kl_short trying;
    kl_trial trial;
    kl_place *candidates[KL_CANDIDATES];
    kl_place *proposed; /* proposed shares: a candidate or one of the places above; NULL: none */
    double gain_s;      /* seconds that the proposal should gain */
    kl_place *barred;   /* proposed shares that were refused */
    bool is_barred;
    kl_place *left; /* left[rank]: number of iterations left in a sweep */
    kl_transfer *transfers;
    kl_place *places; /* memory of all places; next: memory of all numbers for each rank */
    double *numbers;
};

/* choose.c */
void kl_steer_stay(kl_steer *s, kl_verdict verdict, kl_steer_plan *plan);
bool kl_steer_barred(const kl_steer *s); /* Return whether the proposal is close to refused shares. */
/* Decide between candidate shares. rest_begins: why balancing pauses (rests) from now on; NULL: it does
 * not. */
void kl_choose(kl_steer *s, uint32_t count, const char *rest_begins, kl_steer_plan *plan);
/* short.c */
void kl_short_learn(kl_short *t, uint32_t ranks, const kl_rank_report *reports);
/* Decide by trying shares, if sweeps are so short that speeds do not show the effect of shares. *tries: such
 * a decision was made. */
kilter_status kl_short_decide(kl_steer *s, double spent_s, kl_steer_plan *plan, bool *tries);
/* trial.c */
/* Begin a trial of equal shares if one is due and no rows move. */
void kl_trial_begin(kl_steer *s, kl_steer_plan *plan);
/* Return whether a trial, or the rest after it, is under way. Then nothing else is decided. */
bool kl_trial_keeps(kl_steer *s, kl_steer_plan *plan);

#endif
