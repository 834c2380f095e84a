/* The parts of a steer. Within room steer.
 *
 *     part        owner file           what it knows
 *     kl_outlook  outlook.c, learn.c   where iterations lie, how fast ranks are; so what a sweep takes with
 * other shares, and what moving there costs. learn.c: what reports tell prospect.c  (no state)           what
 * other shares would have saved, and what is likely to come kl_mean     mean.c               speeds that
 * swing: shares for their mean kl_outcome  outcome.c            what came of moving, and when balancing rests
 *     kl_steer    choose.c             the decision between prospects
 *     kl_short    short.c              sweeps shorter than the scheduler's slices: shares are chosen by
 * trying kl_trial    trial.c              equal shares, tried now and then kl_steer    steer.c the door: one
 * round after the other
 *
 * Files may use those before them. A part changes its own fields; kl_steer's are set by the last four. */
#ifndef KL_STEER_PARTS_H
#define KL_STEER_PARTS_H

#include "steer/loads.h"
#include "steer/proof.h"
#include "steer/slices.h"

enum {
    KL_CANDIDATES = KL_STATES + 3, /* best for the present, for each state, for their mean; equal shares */
    KL_FIRST_ROUNDS = 3,           /* before that, caches and pages are what is measured */
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
    double now_s, step_s; /* step: since the last round */
    double round_s;       /* from this round to the next */
    double sweeps;        /* in the last step */
    double as_before;     /* of them, while iterations lay as before the last movement */
    bool moved;           /* since the last round */
    double refill;        /* part of a sweep that a pipeline takes to run dry and fill again */
    double per_move_s;    /* of an iteration of the busiest rank */
    double movement_s;    /* of the last movements, mean */
    kl_costs costs;       /* ranged; none until they are measured */
    kl_loads loads;
    kl_place *here, *previous, *equal, *spare;
    double *scratch; /* [ranks] */
} kl_outlook;

void kl_put(const kl_outlook *o, kl_place *to, const kl_place *from);
/* Time of the rank that ends last, in units of work over units of `speed`. */
double kl_time_with(const kl_outlook *o, const kl_place *at, const double *speed);
kilter_status kl_best_for(const kl_outlook *o, const double *speed, kl_place *at);
double kl_sweep_s(const kl_outlook *o, const kl_place *at); /* as speeds are believed to be */
double kl_move_s(const kl_outlook *o, const kl_place *after);
/* Scattered: iterations that change hands; ranged: over each bound that moves. */
uint64_t kl_volume(const kl_outlook *o, const kl_place *after);
/* What the last step's sweeps took at the speeds measured in it. */
double kl_computed_s(const kl_outlook *o);
/* Part of the elapsed time that follows from the shares: the rest is messages and other costs. */
double kl_share_of_time(const kl_outlook *o);

/* learn.c: from the reports of a round */
void kl_learn_step(kl_outlook *o, const kl_rank_report *reports);
double kl_learn_movements(kl_outlook *o, const kl_rank_report *reports); /* seconds spent on them */
void kl_learn_quantum(kl_outlook *o, const kl_rank_report *reports);
kilter_status kl_learn_costs(kl_outlook *o, const kl_rank_report *reports);
bool kl_learn_speeds(kl_outlook *o, const kl_rank_report *reports); /* false: none is known */
kilter_status kl_forget_loads(kl_outlook *o);

/* prospect.c */
/* Saved if rows had moved at the best moment since the last movement. `cycles`: speeds come and go, and what
 * counts is what a whole cycle of states has saved, wherever it is cut: two visits to one state for one to
 * another, and the other way round. */
double kl_lost_s(const kl_outlook *o, const kl_place *after, bool cycles);
/* The first candidate is the best for the present. */
kilter_status kl_find_candidates(const kl_outlook *o, kl_place *const *candidates, uint32_t *count);
/* After the present state comes the one before it, as there are seldom more than two. NULL: none */
const kl_state *kl_next_state(const kl_loads *l);
/* Speeds like these, or those they are on their way to, have been seen to end by themselves. */
bool kl_comes_and_goes(const kl_loads *l);
kl_prospect kl_prospect_of(const kl_outlook *o, const kl_place *after, bool cycles);
/* With what comes after the present speeds, whose best shares are `best`. */
kl_prospect kl_foresee(const kl_outlook *o, const kl_place *best, bool cycles);

typedef struct kl_mean {
    double lag_s; /* loads are averaged over so long; 0: they are followed */
    double cycle_s;
    bool forgets; /* what is known of loads, after this round */
    kl_place *halves[2];
} kl_mean;

/* Speeds swing between two states, and shares for their mean, put into the spare place, take less than
 * staying or following would. */
bool kl_mean_pays(kl_mean *m, const kl_outlook *o, kl_prospect *p);
/* The mean over a cycle has changed, or what was measured is far from what iterations lie for. */
bool kl_mean_fails(const kl_mean *m, const kl_outlook *o);

typedef struct kl_outcome {
    kl_account account;
    kl_place *anchor;              /* where iterations lay when the account had its last word */
    double anchor_came_s;          /* since then: saved against the anchor, */
    double equal_came_s;           /* against equal shares, */
    double least_came_s;           /* and the lesser of both */
    bool retreats;                 /* to equal shares, to rest there */
    double lately_s, lately_equal; /* time, and sweeps that equal shares would have done in it */
    double unit_s;                 /* a movement, as it is expected; set for each round */
    double unpaid_s, due_s;        /* of what movements cost: while they are not judged, and now */
    bool open;                     /* a movement is not judged yet */
    double open_forecast_s, open_came_s, open_cost_s;
} kl_outcome;

void kl_outcome_anchor(kl_outcome *c, const kl_outlook *o);
/* Count what came of the last step, of which spent_s went into moving. lags: loads are averaged over.
 * @return balancing rests from now on, as `reason` says */
bool kl_outcome_settle(kl_outcome *c, const kl_outlook *o, bool lags, double spent_s, char *reason);

typedef struct kl_short {
    kl_slices slices;
    double *core, *core_then; /* share of its core that each rank gets, and got when trying began */
    uint64_t depth;           /* of its choice KL_CHOICE_DEEP */
    bool unplaced;            /* iterations do not lie as its choice says: the one before could not be had */
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
    kl_place *proposed; /* one of them, or of the places above; NULL: none */
    double gain_s;      /* forecast of what is proposed */
    kl_place *barred;   /* could not be had */
    bool is_barred;
    kl_place *left; /* what is left of a sweep */
    kl_transfer *transfers;
    kl_place *places; /* memory of all places, and of numbers of each rank */
    double *numbers;
};

/* choose.c */
void kl_steer_stay(kl_steer *s, kl_verdict verdict, kl_steer_plan *plan);
bool kl_steer_barred(const kl_steer *s); /* what is proposed was refused before */
/* Decide between candidates. rest_begins: why; NULL: no rest begins */
void kl_choose(kl_steer *s, uint32_t count, const char *rest_begins, kl_steer_plan *plan);
/* short.c */
void kl_short_learn(kl_short *t, uint32_t ranks, const kl_rank_report *reports);
/* *tries: it is decided by trying, as speeds do not tell what shares will do. */
kilter_status kl_short_decide(kl_steer *s, double spent_s, kl_steer_plan *plan, bool *tries);
/* trial.c */
void kl_trial_begin(kl_steer *s, kl_steer_plan *plan); /* if it is time to, and nothing else moves */
/* A trial is under way, or the rest after one, and nothing else is decided. */
bool kl_trial_keeps(kl_steer *s, kl_steer_plan *plan);

#endif
