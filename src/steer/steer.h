/* Door of room steer: how the iterations of a loop lie on its ranks, when some move, and why. Pure.
 *
 * Not in room decide, whose farms deal tasks once: here iterations stay where they are, with their rows,
 * until moving them pays. Every rank decides for itself from the same reports, so that the same numbers must
 * give the same bits: only + − × ÷ and sqrt, which IEEE 754 rounds alike everywhere, and no sums in an order
 * of their own. Formulas and chosen values: docs/explanation/loops.md. */
#ifndef KL_STEER_H
#define KL_STEER_H

#include "decide/decide.h"

/* --- shares --- */

/* n iterations over the ranks in proportion to their rates: largest remainder, ties to the lower rank. Ranks
 * due fewer than min(least, n/ranks) get that, and the others share the rest: a rank without iterations would
 * never be measured again. A rate of 0 is such a rank. O(P log P); the sum is n.
 * @return KILTER_OK; KILTER_ERR_RANGE: a rate is negative or not finite, or all are 0; KILTER_ERR_MEMORY */
kilter_status kl_shares(uint64_t n, uint32_t ranks, const double *rates, uint64_t least, uint64_t *shares);
void kl_equal_shares(uint64_t n, uint32_t ranks, uint64_t *shares); /* n/ranks, the first n%ranks one more */
/* bounds[ranks + 1]: rank r has [bounds[r], bounds[r + 1]). */
void kl_bounds_of_shares(uint32_t ranks, const uint64_t *shares, uint64_t *bounds);

/* What an iteration costs along the index, relative to their mean: constant in each of `bins` equal parts of
 * 0 … n−1. A rank sees its own range only, at its own speed: seconds are cost over speed. How costs lie
 * within a range is learnt from its rank's report, how high the range lies at first from how its neighbours
 * end, then from ranks having had both sides of a bound. */
typedef struct kl_costs {
    uint64_t n;
    uint32_t bins;
    double *cost; /* [bins], > 0, mean 1; NULL: all 1 */
} kl_costs;

enum { KL_SEGMENTS = 16 }; /* equal parts of a rank's range that it reports */

/* All 1; their memory is the caller's to free with kl_costs_free(). KILTER_ERR_MEMORY */
kilter_status kl_costs_init(kl_costs *costs, uint64_t n, uint32_t bins);
void kl_costs_free(kl_costs *costs);
/* Cost of the iterations in `range`: their number while all are alike. */
double kl_costs_work(const kl_costs *costs, kl_span range);
/* Which of the KL_SEGMENTS equal parts of `range` iteration i of it is in. */
static inline uint32_t kl_segment_of(kl_span range, uint64_t i) {
    uint32_t segment = (uint32_t)((double)(i - range.lo) * KL_SEGMENTS / (double)(range.hi - range.lo));
    return segment < KL_SEGMENTS ? segment : KL_SEGMENTS - 1; /* rounded up above 2^53 iterations */
}
/* Before anything is learnt: how high the ranges lie over each other, if costs go on across bounds as they do
 * beside them. A difference there is one of the ranks' speeds. bounds[ranks + 1]; segments_s[ranks]: as
 * below. */
void kl_costs_join(kl_costs *costs, uint32_t ranks, const uint64_t *bounds,
                   const double (*segments_s)[KL_SEGMENTS]);
/* Seconds per iteration in KL_SEGMENTS equal parts of `range`, as its rank measured them; values that are 0
 * or not finite are not looked at. The cost of the range as a whole stays. `trust`: 0 … 1, of the new shape.
 */
void kl_costs_learn(kl_costs *costs, kl_span range, const double *segments_s, double trust);
/* Bounds that give each rank work in proportion to its speed (cost per second), at least min(least, n/ranks)
 * iterations. Where all iterations cost the same these are the bounds of kl_shares(). O(bins + P log P).
 * Errors: those of kl_shares(). */
kilter_status kl_bounds(const kl_costs *costs, uint32_t ranks, const double *speeds, uint64_t least,
                        uint64_t *bounds);

/* --- from old shares to new ones --- */

typedef struct kl_transfer {
    uint32_t from, to;
    uint64_t count;
} kl_transfer;

/* Any rank to any, least volume: at most ranks − 1 of them, in rising order of `from` and of `to`. The sums
 * must be equal. @return how many */
size_t kl_transfers(uint32_t ranks, const uint64_t *before, const uint64_t *after, kl_transfer *transfers);

/* Where bounds are after one more stage on their way from `before` to `after`, when in each stage rows only
 * change to the rank below or above: as far as that allows, so that there are as many stages as ranks that a
 * row has to pass, at most ranks − 1. Meanwhile no rank has more rows than it will have in the end, or than
 * some rank had at first: what passes through is the old share of another. All: [ranks + 1], as in
 * kl_bounds_of_shares(). */
void kl_bounds_stage(uint32_t ranks, const uint64_t *before, const uint64_t *after, uint64_t *stage);
/* The most iterations one rank sends and receives, over its bounds or anywhere: movements of different ranks
 * run side by side. */
uint64_t kl_flow_busiest(uint32_t ranks, const uint64_t *before, const uint64_t *after);
uint64_t kl_transfers_busiest(uint32_t ranks, const uint64_t *before, const uint64_t *after);

/* --- how rates are filtered --- */

/* r' = (1 − h)·r + h·r'_old. A first change in a new direction is ignored (h = 1). If it persists:
 *     decrease   second 0.25, then 0             (one slow rank makes all wait)
 *     increase   second 0.50, third 0.25, then 0  (a faster one costs only what it could have taken over)
 * A change is |r − r'_old| over 5 % of r'_old; below, h = 0.75 averages. Zeroed: nothing measured yet, and
 * the first rate is taken as it is. Not measured (0, negative, not finite): nothing changes. */
typedef struct kl_trend {
    double rate;  /* r' */
    int8_t way;   /* of the last changes: −1 down, +1 up, 0 none */
    uint8_t seen; /* so many in that direction */
} kl_trend;

double kl_trend_next(kl_trend *trend, double rate); /* r' */
bool kl_trend_moves(const kl_trend *trend);         /* a change is seen, and not all believed yet */

/* --- how often --- */

typedef enum kl_bound_of_period {
    KL_PERIOD_INTERACT,
    KL_PERIOD_MOVEMENT,
    KL_PERIOD_QUANTUM
} kl_bound_of_period;

typedef struct kl_period {
    double interact_s; /* of one interaction; it may take 5 % of the time */
    double movement_s; /* of a movement, mean of the last; not to be decided about twice while one lasts */
    double quantum_s;  /* of the scheduler; rates average over ten of them */
    double target_s;   /* the largest of the three bounds */
    kl_bound_of_period bound;
} kl_period;

kl_period kl_period_of(double interact_s, double movement_s, double quantum_s);
/* Passes until the next interaction, `left_s` from now, at least 1, when one pass is `pass_s` after another;
 * not known (0): 1. */
uint64_t kl_period_hooks(double left_s, double pass_s);
/* Passes from one report to the next, however many there were, so that reports take less than 1 % of the
 * time: the next passes may take longer than the last ones, and are looked at then. */
uint64_t kl_report_hooks(double interact_s, double pass_s);

/* --- grain --- */

/* A loop pipelined over P ranks, `elements` in the pipelined direction. */
typedef struct kl_pipeline {
    uint32_t ranks;
    uint64_t elements; /* [m] ≥ 1 */
    double seq_s;      /* all of it on one rank, at the slowest rank's speed [t_seq] */
    double fixed_s;    /* what a block's boundary costs a rank, however small [t_fixed] */
    double incr_s;     /* and for each element in it [t_incr] */
} kl_pipeline;

/* (M + P − 1)·t_seq/(P·M) + (M + P − 2)·(t_fixed + t_incr·m/M), for any M ≥ 1 */
double kl_pipeline_elapsed_s(const kl_pipeline *p, double blocks);
double kl_pipeline_efficiency(const kl_pipeline *p, double blocks); /* t_seq/(P·elapsed) */
/* M* = sqrt((t_seq·(1 − 1/P) + t_incr·m·(P − 2))/t_fixed), where the derivative is 0; within 1 … m. */
double kl_pipeline_best_blocks(const kl_pipeline *p);
/* Elements in a block, 1 … m, so that ⌈m/b⌉ blocks take least: the better one beside m/M*. */
uint64_t kl_pipeline_block(const kl_pipeline *p);

/* The blocks of one sweep: KL_TRIES times by turns of 1, 2, 4, … elements, in so many `sizes`, to see
 * what the body takes in them; then of `block` elements. */
enum { KL_TRIES = 3, KL_SIZES = 16 };
typedef struct kl_blocks {
    uint64_t elements, block;
    uint32_t sizes; /* 0: nothing is tried */
} kl_blocks;

/* Up to blocks of `most`, and as many as half of the elements are enough for. */
uint32_t kl_blocks_sizes(uint64_t elements, uint64_t most);
uint64_t kl_blocks_tried(const kl_blocks *blocks); /* so many come first */
uint64_t kl_blocks_count(const kl_blocks *blocks); /* of all */
kl_span kl_blocks_at(const kl_blocks *blocks, uint64_t index);
/* The try that an element is in: whole blocks of 2^*size elements. false: in none */
bool kl_blocks_try(const kl_blocks *blocks, uint64_t element, uint32_t *size, kl_span *try);

/* Of a body whose speed depends on the block: rows of small ones stay in the cache and overlap in the
 * processor, but each row starts anew. */
typedef struct kl_grain {
    kl_pipeline pipeline; /* but for seq_s, which is not looked at */
    uint32_t sizes;
    double element_s[KL_SIZES]; /* one element of each of the slowest rank's rows, in blocks of 2^k */
} kl_grain;

double kl_grain_elapsed_s(const kl_grain *grain, uint64_t block);
/* As kl_pipeline_block() at the speed of each size, or the size itself: what takes least. */
uint64_t kl_grain_block(const kl_grain *grain);
/* A sweep of the slowest rank's body takes so long now, in such blocks; others are as much faster or
 * slower as before. */
void kl_grain_refresh(kl_grain *grain, uint64_t block, double sweep_s);

/* Iterations to do before the next look for work or messages: as many as a period holds, at most `mine`, at
 * least 1. Fewer would only cost; more would delay the interaction. */
uint64_t kl_doall_grain(uint64_t mine, double iteration_s, double period_s);

/* --- whether --- */

/* A prospect: times of a sweep are forecasts at the present speeds. */
typedef struct kl_prospect {
    double now_s, then_s; /* a sweep with the present shares, and with the proposed ones */
    double lasted_s;      /* the speeds have been as they are now for so long */
    double lasts_s;       /* and were so for so long each time before, mean; 0: never seen to end */
    double lost_s; /* elapsed time that the proposed shares would have saved since the last movement, in
                      all that the speeds were since then */
    double move_s; /* of moving */
    double back_s; /* of what the next change will cost for having moved: moving back, and the loss until
                      then; 0: none expected */
} kl_prospect;

typedef enum kl_verdict {
    KL_STAY_BALANCED,  /* nothing better is known */
    KL_STAY_WAITING,   /* better, but not yet worth it; or its end is near */
    KL_STAY_RESTING,   /* balancing rests */
    KL_MOVE_FORESIGHT, /* pays before the next change is due */
    KL_MOVE_HINDSIGHT, /* would have paid already: what it costs is lost by now */
} kl_verdict;

typedef struct kl_judgement {
    kl_verdict verdict;
    double gain_s,
        cost_s; /* forecast, until the next change: elapsed time saved, and what moving takes of it */
    char reason[KL_REASON_BYTES];
} kl_judgement;

/* Move when what staying has cost reaches what moving costs (ski rental: at most twice the best in hindsight,
 * however long the speeds stay, so that no imbalance stays for ever and none is dear); and sooner, when
 * speeds like these have been seen to last, and saving until then exceeds the cost. Speeds that have lasted
 * longer than usual are expected to go on for as long as they have outlasted it. */
void kl_whether(const kl_prospect *prospect, kl_judgement *judgement);

/* --- what came of it --- */

/* Zeroed: nothing moved yet. Times are on one clock that begins anywhere. */
typedef struct kl_account {
    uint64_t moves;
    double forecast_s, came_s, cost_s; /* of all moves: gain forecast, gain that came of it, movement */
    double balance_s;     /* came − cost lately; more than KL_ACCOUNT_MEMORY movements is not remembered */
    bool paid;            /* it came to half of that since the last rest */
    double rests_until_s; /* 0: it does not rest */
    double rest_s;        /* how long the last rest was; 0: there was none */
    uint32_t rests;
} kl_account;

enum { KL_ACCOUNT_MOVES = 2, KL_ACCOUNT_MEMORY = 32, KL_REST_MOVES = 10, KL_REST_DOUBLINGS = 6 };

void kl_account_move(kl_account *account, double forecast_s);
typedef struct kl_account_step { /* since the last one; < 0: lost */
    double came_s;               /* saved against never having moved any */
    double lately_s;             /* saved against how iterations lay when the balance last reached an end */
    double cost_s;               /* of moving, due now */
} kl_account_step;

/* Settle a step. unit_s > 0: a movement, as it is expected. When the cost is more than what came of it
 * lately, by KL_ACCOUNT_MOVES movements, balancing rests: for KL_REST_MOVES movements' time, then twice as
 * long as the last time, or half if it paid in between, up to 2^KL_REST_DOUBLINGS as long as the first. What
 * happens in a rest is not counted against it.
 * @return a rest begins: `reason` says so */
bool kl_account_settle(kl_account *account, double now_s, const kl_account_step *step, double unit_s,
                       char reason[KL_REASON_BYTES]);
/* A rest for another reason than the balance. */
void kl_account_rest(kl_account *account, double now_s, double unit_s);
void kl_account_wake(kl_account *account);
/* lost_s: what staying has cost meanwhile. A rest ends before its time when that is a third of it. */
bool kl_account_rests(const kl_account *account, double now_s, double lost_s);

/* --- loss under a load that comes and goes --- */

/* One of `ranks` equal ranks has `speed` of its own (0 … 1) for on_s, then all of it for off_s, and so on. In
 * each half: old shares until the balancer has reacted, nothing while rows move, balanced shares for the
 * rest. */
typedef struct kl_swing {
    uint32_t ranks;
    double speed, on_s, off_s;
    double react_on_s, react_off_s, move_s;
} kl_swing;

double kl_swing_efficiency(const kl_swing *s); /* work done over what the ranks had to give, 0 … 1 */
double kl_swing_unmoved(const kl_swing *s);    /* the same with equal shares for good */

/* --- all of it for one loop --- */

/* The same calls with the same arguments on every rank make the same decisions on every rank. */
typedef struct kl_steer kl_steer;

typedef struct kl_steer_options {
    uint64_t iterations;
    uint32_t ranks;
    bool scattered;    /* any rank to any; else one range each, in order */
    bool buffers;      /* a pipeline: ranks may be ahead of those after them, by a sweep */
    uint64_t least;    /* iterations that every rank keeps (if n ≥ ranks·least): 1, or its ghost rows */
    double interact_s; /* measured at start; the same on all ranks */
    double quantum_s;  /* as long as no report tells of one */
    uint64_t reach, deepest; /* rows that the body reaches on either side, and sweeps whose ghost rows may
                                be brought at once; 0: 1 */
    kl_linear move;          /* seconds of moving so many iterations, before any was measured */
} kl_steer_options;

/* The report of one rank in a round, since its last one. */
typedef struct kl_rank_report {
    double elapsed_s;    /* since the loop was opened: that of kl_steer_clock()'s rank is the clock of the
                            decision */
    double executions;   /* that ended, with the part done of the present one */
    double busy_s;       /* in the loop's body, with the time that others had the core; no waiting */
    uint64_t iterations; /* done in busy_s; 0: nothing known of this rank this time */
    uint64_t lo, hi;     /* its range while they were done; scattered: 0, 0 */
    double moving_s;     /* spent on moving rows, where it did not overlap */
    uint64_t moved;      /* iterations sent and received */
    double quantum_s;    /* of the scheduler there; 0: not measured (yet) */
    double share; /* of its core that the rank gets when it wants all, 0 … 1; 0: not known, taken for 1 */
    double boundary_s;              /* what the boundary of a pipeline's block costs; 0: not known */
    uint64_t segments;              /* 0: iterations are alike, or nobody looked */
    double segments_s[KL_SEGMENTS]; /* seconds per iteration along lo … hi; 0: not known. Looked at only when
                                       `segments`, and last, as it travels only then */
} kl_rank_report; /* a multiple of 8 bytes without holes: it travels as it is between ranks of a kind */

/* The answer to a round. Arrays are the steer's, until the next round: committing leaves them as they are. */
typedef struct kl_steer_plan {
    bool move;
    const uint64_t *before, *after; /* ranged: bounds[ranks + 1]; scattered: shares[ranks] */
    const kl_transfer *transfers;   /* scattered */
    size_t transfer_count;
    uint64_t moved;                 /* iterations that change hands (ranged: over each bound) */
    kl_judgement judgement;         /* and its reason, for the record */
    double now_s, then_s;           /* a sweep as it is now, and after the move: measured, or forecasts */
    double body_now_s, body_then_s; /* the slowest rank's body in it: forecasts */
    kl_period period;               /* until the next round */
    uint64_t depth;                 /* sweeps whose ghost rows are brought at once from now on; at least 1 */
    double lag_s; /* buffers: its answer may come so late, and nobody waits for it before; 0: at once */
    bool settled; /* the last movement was judged: what was forecast, what came of it, what it cost */
    double settled_forecast_s, settled_came_s, settled_cost_s;
} kl_steer_plan;

kl_steer *kl_steer_new(const kl_steer_options *options); /* equal shares. NULL: no memory */
void kl_steer_free(kl_steer *steer);
/* A pipeline that moves rows runs dry before and fills again: what is lost by that, as a part of a sweep
 * with its present blocks, the same on all ranks: (P − 1)·b/m. Until it is told, 0. */
void kl_steer_refill(kl_steer *steer, double part);
/* The rank whose report tells time and sweeps: the first one with iterations. One without runs ahead of
 * those that have some, and its sweeps are not theirs. */
uint32_t kl_steer_clock(uint32_t ranks, const kl_rank_report *reports);
/* Reports of all ranks, in order. O(P log P). KILTER_ERR_MEMORY */
kilter_status kl_steer_round(kl_steer *steer, const kl_rank_report *reports, kl_steer_plan *plan);
/* Scattered, after a round within a sweep of which todo[ranks] are left: shares are for whole
 * sweeps, and who has nothing left to do is not measured. A plan that delays this one by more than it
 * gains moves nothing. If the plan moves nothing, and all could end at once, sooner than they will by more
 * than moving costs, than a period and than noise, its transfers make them.
 * @return true: they do; that is not committed, but told by kl_steer_place() */
bool kl_steer_left(kl_steer *steer, const uint64_t *todo, kl_steer_plan *plan);
/* The plan's move will be carried out: from now on its `after` is where iterations lie. Not called: the move
 * was refused, and everything is as if it had not been proposed. */
void kl_steer_commit(kl_steer *steer);
/* A move committed to was not carried out after all (a rank had no memory): iterations lie as before, and no
 * move is proposed until the shares wanted differ from those by a tenth. */
void kl_steer_refuse(kl_steer *steer);
/* Iterations lie like this, whatever was thought before: a part of a refused move was carried out. */
void kl_steer_place(kl_steer *steer, const uint64_t *iterations);
const uint64_t *kl_steer_shares(const kl_steer *steer); /* in force; ranged: bounds */
const kl_account *kl_steer_account(const kl_steer *steer);
/* Give what the last movement has gained and cost so far. false: none waits for judgement */
bool kl_steer_open_move(const kl_steer *steer, double *came_s, double *cost_s);
/* Iterations of mean cost that the rank is believed to do in a second; 0: nothing is known yet. */
double kl_steer_rate(const kl_steer *steer, uint32_t rank);

#endif
