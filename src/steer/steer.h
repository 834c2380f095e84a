/* The interface of room steer, which decides where the iterations of a loop lie and when some move. The
 * room is pure code. A farm deals each task once (room decide). The iterations of a loop stay where they are,
 * with their rows, until moving them pays. Every rank decides for itself from the same reports, so the same
 * numbers must give the same bits. Therefore this room only uses + − × ÷ and sqrt, which IEEE 754 rounds
 * alike everywhere, and adds in a fixed order. docs/explanation/loops.md has formulas and constants. */
#ifndef KL_STEER_H
#define KL_STEER_H

#include "decide/decide.h"

/* --- shares --- */

/* Divide n iterations among the ranks in proportion to their rates, by largest remainders; the lower rank
 * wins ties. Each rank gets at least min(least, n/ranks) iterations, even at rate 0, because a rank without
 * iterations would never be measured again. The sum of the shares is n. O(P log P). @return KILTER_OK;
 * KILTER_ERR_RANGE: a rate is negative or not finite, or all rates are 0; KILTER_ERR_MEMORY */
kilter_status kl_shares(uint64_t n, uint32_t ranks, const double *rates, uint64_t least, uint64_t *shares);
void kl_equal_shares(uint64_t n, uint32_t ranks, uint64_t *shares); /* n/ranks, the first n%ranks one more */
/* Fill bounds[ranks + 1]: rank r has the iterations [bounds[r], bounds[r + 1]). */
void kl_bounds_of_shares(uint32_t ranks, const uint64_t *shares, uint64_t *bounds);

/* Costs of the iterations relative to their mean. They are constant within each of `bins` equal parts of
 * 0 … n−1. A rank measures only its own range, and at its own speed, so that seconds = cost/speed. Its report
 * shows how costs differ within the range. Costs in different ranges are first compared by the costs on both
 * sides of a bound, and later by ranks that have worked on both sides. */
typedef struct kl_costs {
    uint64_t n;
    uint32_t bins;
    double *cost; /* cost[bins], above 0, mean 1; NULL: all costs are 1 */
} kl_costs;

enum { KL_SEGMENTS = 16 }; /* number of equal parts into which a rank divides its range for a report */

/* Make all costs 1. The caller frees them with kl_costs_free(). Error: KILTER_ERR_MEMORY. */
kilter_status kl_costs_init(kl_costs *costs, uint64_t n, uint32_t bins);
void kl_costs_free(kl_costs *costs);
/* Return the cost of the iterations in `range`, or their number if all costs are 1. */
double kl_costs_work(const kl_costs *costs, kl_span range);
/* Return which of the KL_SEGMENTS equal parts of `range` contains iteration i. */
static inline uint32_t kl_segment_of(kl_span range, uint64_t i) {
    uint32_t segment = (uint32_t)((double)(i - range.lo) * KL_SEGMENTS / (double)(range.hi - range.lo));
    return segment < KL_SEGMENTS ? segment : KL_SEGMENTS - 1; /* rounded up above 2^53 iterations */
}
/* Scale the ranges against each other before any cost is learnt, assuming that costs are equal on both sides
 * of a bound. Then a difference in times is a difference in the ranks' speeds. bounds[ranks + 1];
 * segments_s[ranks] as in kl_costs_learn(). */
void kl_costs_join(kl_costs *costs, uint32_t ranks, const uint64_t *bounds,
                   const double (*segments_s)[KL_SEGMENTS]);
/* Learn the costs within `range` from the seconds per iteration that its rank measured in its KL_SEGMENTS
 * equal parts. Values that are 0 or not finite are ignored. The cost of the whole range stays. `trust`, 0 …
 * 1, is the weight of the new values. */
void kl_costs_learn(kl_costs *costs, kl_span range, const double *segments_s, double trust);
/* Compute bounds that give each rank work in proportion to its speed (cost per second), and at least
 * min(least, n/ranks) iterations. If all iterations cost the same, these are the bounds of kl_shares().
 * O(bins + P log P). Errors: those of kl_shares(). */
kilter_status kl_bounds(const kl_costs *costs, uint32_t ranks, const double *speeds, uint64_t least,
                        uint64_t *bounds);

/* --- moves from old shares to new ones --- */

typedef struct kl_transfer {
    uint32_t from, to;
    uint64_t count;
} kl_transfer;

/* Find transfers of the least total volume from any rank to any other rank. Both `from` and `to` rise along
 * the list, which has at most ranks − 1 transfers. The sums of `before` and `after` must be equal. @return
 * the number of transfers */
size_t kl_transfers(uint32_t ranks, const uint64_t *before, const uint64_t *after, kl_transfer *transfers);

/* Compute the bounds after the next stage on the way from `before` to `after`. In a stage, rows move only to
 * the next rank below or above. Bounds move as far as this allows, so the number of stages is the number of
 * ranks that a row must pass, at most ranks − 1. No rank ever has more rows than at the end, or than the
 * largest rank had at first. All arrays are [ranks + 1], as in kl_bounds_of_shares(). */
void kl_bounds_stage(uint32_t ranks, const uint64_t *before, const uint64_t *after, uint64_t *stage);
/* Return the most iterations that one rank sends and receives, to its neighbours (flow) or to any rank
 * (transfers). Different ranks move rows at the same time. */
uint64_t kl_flow_busiest(uint32_t ranks, const uint64_t *before, const uint64_t *after);
uint64_t kl_transfers_busiest(uint32_t ranks, const uint64_t *before, const uint64_t *after);

/* --- the filter of rates --- */

/* A filtered rate: r' = (1 − h)·r + h·r'_old. The first change in a new direction is ignored (h = 1). If the
 * change persists, h is:
 *     decrease   0.25 at the second change, then 0                  (all ranks wait for a slow one)
 *     increase   0.50 at the second change, 0.25 at the third, then 0  (only the faster rank waits)
 * A change means |r − r'_old| above 5 % of r'_old; smaller differences are averaged with h = 0.75. Zeroed: no
 * rate is measured yet, and the first rate is not filtered. A rate that was not measured (0, negative, not
 * finite) changes nothing. */
typedef struct kl_trend {
    double rate;  /* the filtered rate r' */
    int8_t way;   /* direction of the last changes: −1 down, +1 up, 0 none */
    uint8_t seen; /* number of consecutive changes in this direction */
} kl_trend;

double kl_trend_next(kl_trend *trend, double rate); /* return the new r' */
bool kl_trend_moves(const kl_trend *trend);         /* does r' not fully follow a change yet? */

/* --- the time between decisions --- */

typedef enum kl_bound_of_period {
    KL_PERIOD_INTERACT,
    KL_PERIOD_MOVEMENT,
    KL_PERIOD_QUANTUM
} kl_bound_of_period;

typedef struct kl_period {
    double interact_s; /* seconds of one interaction; interactions may take 5 % of the time */
    double movement_s; /* mean seconds of the last movements; the next decision waits until one has ended */
    double quantum_s;  /* seconds of the scheduler's quantum; a rate is averaged over ten quanta */
    double target_s;   /* seconds until the next decision: the largest of the three bounds */
    kl_bound_of_period bound;
} kl_period;

kl_period kl_period_of(double interact_s, double movement_s, double quantum_s);
/* Return the number of passes, at least 1, until the next interaction, which is due in left_s seconds. A pass
 * takes pass_s seconds; 0: not known, and the result is 1. */
uint64_t kl_period_hooks(double left_s, double pass_s);
/* Return the number of passes from one report to the next, so that reports take less than 1 % of the time. If
 * passes become longer, the next report measures this. */
uint64_t kl_report_hooks(double interact_s, double pass_s);

/* --- grain --- */

/* A loop whose work passes through P ranks as a pipeline. */
typedef struct kl_pipeline {
    uint32_t ranks;
    uint64_t elements; /* elements in the pipelined direction [m], at least 1 */
    double seq_s;      /* seconds of the whole loop on one rank, at the slowest rank's speed [t_seq] */
    double fixed_s;    /* seconds that the boundary of a block costs a rank, without its elements [t_fixed] */
    double incr_s;     /* additional seconds for each element in the boundary [t_incr] */
} kl_pipeline;

/* Return (M + P − 1)·t_seq/(P·M) + (M + P − 2)·(t_fixed + t_incr·m/M), for any number of blocks M ≥ 1. */
double kl_pipeline_elapsed_s(const kl_pipeline *p, double blocks);
double kl_pipeline_efficiency(const kl_pipeline *p, double blocks); /* t_seq/(P·elapsed) */
/* Return the number of blocks with the least elapsed time: M* = sqrt((t_seq·(1 − 1/P) + t_incr·m·(P −
 * 2))/t_fixed), limited to 1 … m. */
double kl_pipeline_best_blocks(const kl_pipeline *p);
/* Return the number of elements b in a block, 1 … m, for which ⌈m/b⌉ blocks take the least time: the better
 * of the two whole numbers next to m/M*. */
uint64_t kl_pipeline_block(const kl_pipeline *p);

/* The blocks of one sweep. At first, blocks of 1, 2, 4, … elements (`sizes` different sizes) are tried in
 * turn, KL_TRIES times, to measure the body in each size. All other blocks have `block` elements. */
enum { KL_TRIES = 3, KL_SIZES = 16 };
typedef struct kl_blocks {
    uint64_t elements, block;
    uint32_t sizes; /* number of sizes that are tried; 0: none */
} kl_blocks;

/* Return the number of sizes to try: blocks have up to `most` elements, and the tries use at most half of the
 * elements. */
uint32_t kl_blocks_sizes(uint64_t elements, uint64_t most);
uint64_t kl_blocks_tried(const kl_blocks *blocks); /* return the number of blocks that are tried at first */
uint64_t kl_blocks_count(const kl_blocks *blocks); /* return the number of all blocks */
kl_span kl_blocks_at(const kl_blocks *blocks, uint64_t index);
/* Find the try that contains an element: whole blocks of 2^*size elements. Return false if no try contains
 * it. */
bool kl_blocks_try(const kl_blocks *blocks, uint64_t element, uint32_t *size, kl_span *try);

/* A pipeline whose body's speed depends on the block. Rows of small blocks stay in the cache and overlap in
 * the processor, but each row starts anew. */
typedef struct kl_grain {
    kl_pipeline pipeline; /* seq_s is not used */
    uint32_t sizes;
    double element_s[KL_SIZES]; /* [k]: seconds of one element of the slowest rank's rows, in blocks of 2^k */
} kl_grain;

double kl_grain_elapsed_s(const kl_grain *grain, uint64_t block);
/* Return the block with the least time: one of the sizes, or kl_pipeline_block() at the speed of a size. */
uint64_t kl_grain_block(const kl_grain *grain);
/* Take over a new measurement: the slowest rank's body takes sweep_s seconds for a sweep in blocks of `block`
 * elements. The ratios to the other sizes stay. */
void kl_grain_refresh(kl_grain *grain, uint64_t block, double sweep_s);

/* Return the number of iterations to do before the next look for work or messages: as many as fit into a
 * period, from 1 to `mine`. Fewer iterations would cost time, and more would delay the interaction. */
uint64_t kl_doall_grain(uint64_t mine, double iteration_s, double period_s);

/* --- whether --- */

/* The forecast of a movement. Times of a sweep are forecasts at the present speeds. */
typedef struct kl_prospect {
    double now_s, then_s; /* seconds of a sweep with the present shares, and with the proposed ones */
    double lasted_s;      /* seconds since the speeds last changed */
    double lasts_s;       /* mean seconds that such speeds lasted before; 0: they never ended */
    double lost_s;        /* seconds that the proposed shares would have saved since the last movement */
    double move_s;        /* seconds that the move itself takes */
    double back_s; /* seconds that the move will cost at the next change of speeds; 0: none is expected */
} kl_prospect;

typedef enum kl_verdict {
    KL_STAY_BALANCED,  /* no better shares are known */
    KL_STAY_WAITING,   /* better shares are known, but do not pay yet, or the speeds will soon change */
    KL_STAY_RESTING,   /* no shares are considered until the rest of balancing ends */
    KL_MOVE_FORESIGHT, /* the move pays before the next change is due */
    KL_MOVE_HINDSIGHT, /* staying has already lost as much as the move costs */
} kl_verdict;

typedef struct kl_judgement {
    kl_verdict verdict;
    double gain_s, cost_s; /* forecast seconds saved until the next change; seconds spent on moving */
    char reason[KL_REASON_BYTES];
} kl_judgement;

/* Decide whether to move. Move when staying has cost as much as moving costs. This rule (ski rental) costs at
 * most twice the best decision in hindsight, however long the speeds stay. Move sooner if such speeds lasted
 * long enough before that the saving exceeds the cost. Speeds that have lasted longer than usual are expected
 * to last for as long again as the time beyond the usual. */
void kl_whether(const kl_prospect *prospect, kl_judgement *judgement);

/* --- the outcome of moves --- */

/* Gains and costs of all moves. Zeroed: no row was moved yet. All times are of the same clock. */
typedef struct kl_account {
    uint64_t moves;
    double forecast_s, came_s, cost_s; /* seconds of all moves: forecast gain, actual gain, and cost */
    double balance_s;     /* recent gain minus cost, in seconds; at most KL_ACCOUNT_MEMORY movements */
    bool paid;            /* the balance has reached half of its upper limit since the last rest */
    double rests_until_s; /* end of the rest; 0: balancing does not rest */
    double rest_s;        /* seconds of the last rest; 0: there was none */
    uint32_t rests;
} kl_account;

enum { KL_ACCOUNT_MOVES = 2, KL_ACCOUNT_MEMORY = 32, KL_REST_MOVES = 10, KL_REST_DOUBLINGS = 6 };

void kl_account_move(kl_account *account, double forecast_s);
typedef struct kl_account_step { /* seconds since the last step; below 0: seconds lost */
    double came_s;               /* seconds saved against a run with equal shares from its beginning */
    double lately_s;             /* seconds saved, against the shares when the balance last reached a limit */
    double cost_s;               /* seconds spent on moving */
} kl_account_step;

/* Add a step to the account. `unit_s` > 0 is the expected seconds of one movement. Balancing rests when
 * recent moves have cost more than they gained, by the time of KL_ACCOUNT_MOVES movements. The first rest
 * lasts as long as KL_REST_MOVES movements. Each further rest is twice as long as the rest before, or half as
 * long if balancing paid in between; the longest rest is 2^KL_REST_DOUBLINGS times the first. Losses during a
 * rest do not count. @return true: a rest begins, and `reason` says why */
bool kl_account_settle(kl_account *account, double now_s, const kl_account_step *step, double unit_s,
                       char reason[KL_REASON_BYTES]);
/* Begin a rest for another reason than losses. */
void kl_account_rest(kl_account *account, double now_s, double unit_s);
void kl_account_wake(kl_account *account);
/* Return whether balancing rests. `lost_s` is the seconds that staying has cost during the rest. The rest
 * ends early when these seconds reach a third of its length. */
bool kl_account_rests(const kl_account *account, double now_s, double lost_s);

/* --- loss under a load that comes and goes --- */

/* One of `ranks` equal ranks has `speed` (0 … 1) for on_s seconds, then full speed for off_s seconds, in
 * turns. In each phase the loop has the old shares until the balancer reacts, then no work while rows move,
 * then balanced shares. */
typedef struct kl_swing {
    uint32_t ranks;
    double speed, on_s, off_s;
    double react_on_s, react_off_s, move_s;
} kl_swing;

double kl_swing_efficiency(const kl_swing *s); /* return work done over possible work, 0 … 1 */
double kl_swing_unmoved(const kl_swing *s);    /* the same ratio with equal shares all the time */

/* --- the decisions of one loop --- */

/* The decisions of one loop. The same calls with the same arguments make the same decisions on every rank. */
typedef struct kl_steer kl_steer;

typedef struct kl_steer_options {
    uint64_t iterations;
    uint32_t ranks;
    bool scattered; /* rows move between any two ranks; otherwise each rank has one range, in order */
    bool buffers;   /* a pipeline: a rank may be a sweep ahead of the next one */
    uint64_t least; /* iterations that every rank keeps if n ≥ ranks·least: 1, or the number of ghost rows */
    double interact_s;       /* seconds of an interaction, measured at the start; the same on all ranks */
    double quantum_s;        /* seconds of the scheduler's quantum, until a report gives one */
    uint64_t reach, deepest; /* rows that the body reads on either side; most sweeps whose ghost rows are
                                exchanged at once, 0 means 1 */
    kl_linear move;          /* seconds by the number of iterations moved, until a movement is measured */
    double byte_s;           /* seconds of moving a byte, for rows whose sizes reports tell */
} kl_steer_options;

/* The report of a rank in a round. It covers the time since the rank's last report. */
typedef struct kl_rank_report {
    double
        elapsed_s; /* seconds since the loop was opened; decisions use the value of kl_steer_clock()'s rank */
    double executions; /* sweeps that ended, plus the part of the present sweep that is done */
    double
        busy_s; /* seconds in the loop's body, including time in which others had the core, without waits */
    uint64_t iterations; /* iterations done in busy_s seconds; 0: this rank measured nothing this time */
    uint64_t lo, hi;     /* the range of the rank while it did these iterations; scattered: 0, 0 */
    double moving_s;     /* seconds spent on moving rows, without the part that overlapped with work */
    uint64_t moved;      /* iterations sent and received */
    double quantum_s;    /* seconds of the scheduler's quantum on the rank's host; 0: not measured yet */
    double share;        /* part of its core that the rank can get, 0 … 1; 0: not known, and 1 is assumed */
    double boundary_s;   /* seconds that the boundary of a block costs in a pipeline; 0: not known */
    uint64_t segments;   /* 1: costs of iterations differ; 0: they are equal, or were not measured */
    double
        segments_s[KL_SEGMENTS]; /* seconds per iteration along lo … hi; 0: not known; sent if segments > 0 */
    /* Only for rows whose size changes, otherwise 0 and not sent: mean bytes of the rank's rows, and the
     * bytes of the `moved` iterations. */
    double row_bytes, moved_bytes;
} kl_rank_report; /* ranks send the struct without conversion: a multiple of 8 bytes without padding */

/* The answer to a round. Its arrays belong to the steer and stay valid until the next round, also after a
 * commit. */
typedef struct kl_steer_plan {
    bool move;
    const uint64_t *before, *after; /* ranged: bounds[ranks + 1]; scattered: shares[ranks] */
    const kl_transfer *transfers;   /* scattered */
    size_t transfer_count;
    uint64_t moved;                 /* iterations that change their rank (ranged: the sum over all bounds) */
    kl_judgement judgement;         /* the decision and its reason, for the record */
    double now_s, then_s;           /* seconds of a sweep now and after the move, measured or forecast */
    double body_now_s, body_then_s; /* forecast seconds of the slowest rank's body in these sweeps */
    kl_period period;               /* time until the next round */
    uint64_t depth; /* number of sweeps whose ghost rows are exchanged at once from now on, at least 1 */
    double lag_s;   /* buffers: no rank waits for the next answer before this many seconds; 0: at once */
    bool settled;   /* the last movement was judged; the next member has its forecast, gain and cost */
    double settled_forecast_s, settled_came_s, settled_cost_s;
} kl_steer_plan;

kl_steer *kl_steer_new(const kl_steer_options *options); /* begins with equal shares; NULL: memory ran out */
void kl_steer_free(kl_steer *steer);
/* Set the part of a sweep that a pipeline loses when it drains before a move and fills again. With its
 * present blocks this is (P − 1)·b/m, the same on all ranks. The part is 0 until this is called. */
void kl_steer_refill(kl_steer *steer, double part);
/* Return the rank whose report gives the time and the sweeps: the first rank with iterations. A rank without
 * iterations is ahead of the others, so its sweeps do not count. */
uint32_t kl_steer_clock(uint32_t ranks, const kl_rank_report *reports);
/* Make a plan from the reports of all ranks, in the order of ranks. O(P log P). Error: KILTER_ERR_MEMORY. */
kilter_status kl_steer_round(kl_steer *steer, const kl_rank_report *reports, kl_steer_plan *plan);
/* Adapt the plan of a round to the present sweep of a scattered loop, of which todo[ranks] iterations are
 * left. Shares are for whole sweeps, and a rank without iterations left is not measured. A plan that delays
 * this sweep by more than the plan gains is dropped. Without a plan to move, transfers may let all ranks end
 * this sweep at the same time. They must save more than moving costs, more than a period and more than noise.
 * @return true: the plan has such transfers. The caller reports them by kl_steer_place(), and does not commit
 * them. */
bool kl_steer_left(kl_steer *steer, const uint64_t *todo, kl_steer_plan *plan);
/* Note that the plan's move will be carried out: from now on iterations lie as in the plan's `after`. If this
 * is not called, the move was refused, and nothing changes. */
void kl_steer_commit(kl_steer *steer);
/* Note that a committed move was not carried out, because a rank had no memory. Iterations lie as before, and
 * no move is proposed until the wanted shares differ from the refused ones by a tenth. */
void kl_steer_refuse(kl_steer *steer);
/* Set where iterations lie after a part of a refused move was carried out. */
void kl_steer_place(kl_steer *steer, const uint64_t *iterations);
const uint64_t *kl_steer_shares(const kl_steer *steer); /* present shares; ranged: bounds */
const kl_account *kl_steer_account(const kl_steer *steer);
/* Return the seconds that the last movement has gained and cost so far. false: every movement was judged. */
bool kl_steer_open_move(const kl_steer *steer, double *came_s, double *cost_s);
/* Return the estimated number of iterations of mean cost that the rank does in a second; 0: not known yet. */
double kl_steer_rate(const kl_steer *steer, uint32_t rank);

#endif
