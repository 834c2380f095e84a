/* Public header of the folder steer: decide which ranks have which iterations of a loop, and when some of
 * them move. All functions are pure. The iterations of a loop stay on their rank, with their rows, until
 * moving them pays. (A farm deals each task once; see the folder decide.) Every rank decides for itself
 * from the same reports, so all ranks must compute the same bits. Therefore this folder only uses + − × ÷
 * and sqrt, which IEEE 754 rounds alike everywhere, and adds in a fixed order. The page
 * docs/explanation/loops.md has formulas and constants. */
#ifndef KL_STEER_H
#define KL_STEER_H

#include "decide/decide.h"

/* --- shares --- */

/* Divide n iterations among the ranks in proportion to their rates, by largest remainders; the lower rank
 * wins ties. Each rank gets at least min(least, n/ranks) iterations, even at rate 0, because a rank without
 * iterations would never be measured again. The sum of the shares is n. It costs O(P log P). @return
 * KILTER_OK; KILTER_ERR_RANGE: a rate is negative or not finite, or all rates are 0; KILTER_ERR_MEMORY */
kilter_status kl_shares(uint64_t n, uint32_t ranks, const double *rates, uint64_t least, uint64_t *shares);
/* Set all shares to n/ranks, and add one to each of the first n%ranks shares. */
void kl_equal_shares(uint64_t n, uint32_t ranks, uint64_t *shares);
/* Set bounds[0 … ranks], so that rank r has the iterations [bounds[r], bounds[r + 1]). */
void kl_bounds_of_shares(uint32_t ranks, const uint64_t *shares, uint64_t *bounds);

/* Costs of the iterations relative to their mean. The cost is constant within each of `bins` equal parts of
 * 0 … n−1. A rank measures only its own range, at its own speed (seconds = cost/speed). So its report shows
 * how costs differ within the range. To compare two adjacent ranges, costs are at first assumed equal on both
 * sides of the bound between the ranges. Later, bounds move. Then a rank measures iterations on both sides of
 * an old bound, and shows the difference. */
typedef struct kl_costs {
    uint64_t n;
    uint32_t bins;
    double *cost; /* cost[0 … bins−1]: above 0, with mean 1; NULL: all costs are 1 */
} kl_costs;

enum { KL_SEGMENTS = 16 }; /* number of equal parts into which a rank divides its range for a report */

/* Make all costs 1. The caller frees them with kl_costs_free(). Error: KILTER_ERR_MEMORY. */
kilter_status kl_costs_init(kl_costs *costs, uint64_t n, uint32_t bins);
void kl_costs_free(kl_costs *costs);
/* Return the cost of the iterations in `range`, or their number if all costs are 1. */
double kl_costs_work(const kl_costs *costs, kl_span range);
/* Return in which of the KL_SEGMENTS equal parts of `range` iteration i is. */
static inline uint32_t kl_segment_of(kl_span range, uint64_t i) {
    uint32_t segment = (uint32_t)((double)(i - range.lo) * KL_SEGMENTS / (double)(range.hi - range.lo));
    return segment < KL_SEGMENTS
               ? segment
               : KL_SEGMENTS - 1; /* above 2^53 iterations, the rounded quotient may be KL_SEGMENTS */
}
/* Set the mean cost of each range before any cost is learnt. Costs are assumed equal on both sides of a
 * bound, so a difference between the times measured there shows a difference between the ranks' speeds.
 * Parameters: bounds[0 … ranks]; segments_s[r]: the times of rank r, as in kl_costs_learn(). */
void kl_costs_join(kl_costs *costs, uint32_t ranks, const uint64_t *bounds,
                   const double (*segments_s)[KL_SEGMENTS]);
/* Learn the costs within `range` from the seconds per iteration that its rank measured in its KL_SEGMENTS
 * equal parts. Values that are 0 or not finite are ignored. The total cost of the range does not change.
 * `trust` is the weight of the new values, 0 … 1. */
void kl_costs_learn(kl_costs *costs, kl_span range, const double *segments_s, double trust);
/* Compute bounds that give each rank work in proportion to its speed (cost per second), and at least
 * min(least, n/ranks) iterations. If all iterations cost the same, these are the bounds of kl_shares(). It
 * costs O(bins + P log P). Errors: those of kl_shares(). */
kilter_status kl_bounds(const kl_costs *costs, uint32_t ranks, const double *speeds, uint64_t least,
                        uint64_t *bounds);

/* --- how rows move from old shares to new ones --- */

typedef struct kl_transfer {
    uint32_t from, to;
    uint64_t count;
} kl_transfer;

/* Find transfers from any rank to any other rank that lead from `before` to `after` with the least total
 * volume. The list is sorted by `from` and by `to`, and has at most ranks − 1 transfers. The sums of
 * `before` and `after` must be equal. @return the number of transfers */
size_t kl_transfers(uint32_t ranks, const uint64_t *before, const uint64_t *after, kl_transfer *transfers);

/* Compute the bounds after the next stage on the way from `before` to `after`. In a stage, rows move only to
 * the next rank below or above. Bounds move as far as this allows. The number of stages is the greatest
 * number of ranks by which a row moves, at most ranks − 1. Between two stages, a rank may have more rows than
 * after the last stage. Even then it has no more rows than the largest rank had before the first stage. All
 * arrays have ranks + 1 numbers, as in kl_bounds_of_shares(). */
void kl_bounds_stage(uint32_t ranks, const uint64_t *before, const uint64_t *after, uint64_t *stage);
/* Return the number of iterations that the busiest rank sends and receives. kl_flow_busiest(): rows move only
 * between neighbours; kl_transfers_busiest(): rows move between any two ranks. The time of a move depends on
 * this number, because all ranks move rows at the same time. */
uint64_t kl_flow_busiest(uint32_t ranks, const uint64_t *before, const uint64_t *after);
uint64_t kl_transfers_busiest(uint32_t ranks, const uint64_t *before, const uint64_t *after);

/* --- the filter of measured rates --- */

/* A filtered rate r', computed from the measured rate r: r' = (1 − h)·r + h·r'_old. The first change in a new
 * direction is ignored (h = 1). If the change persists, h becomes smaller:
 *     decrease   0.25 at the second change, then 0                  (all ranks wait for a slow one)
 *     increase   0.50 at the second change, 0.25 at the third, then 0  (only the faster rank waits)
 * A difference |r − r'_old| above 5 % of r'_old is a change; smaller differences are averaged with h = 0.75.
 * All zero: no rate is measured yet, and the first rate is not filtered. A rate that was not measured (0,
 * negative, not finite) changes nothing. */
typedef struct kl_trend {
    double rate;  /* the filtered rate r' */
    int8_t way;   /* direction of the last change: −1 down, +1 up, 0 none */
    uint8_t seen; /* number of consecutive changes in this direction */
} kl_trend;

/* Add a measured rate r, and return the new filtered rate r'. */
double kl_trend_next(kl_trend *trend, double rate);
/* Return whether the filtered rate r' is still following a change. */
bool kl_trend_moves(const kl_trend *trend);

/* --- the time between decisions --- */

typedef enum kl_bound_of_period {
    KL_PERIOD_INTERACT,
    KL_PERIOD_MOVEMENT,
    KL_PERIOD_QUANTUM
} kl_bound_of_period;

typedef struct kl_period {
    /* seconds of one interaction (reports and decision); interactions may take 5 % of the time */
    double interact_s;
    /* mean seconds of the last moves; the time between decisions is at least this long */
    double movement_s;
    double quantum_s; /* seconds of the scheduler's time slice (quantum); a rate is averaged over ten time
                         slices */
    /* seconds until the next decision: the greatest of the three times that the values above require */
    double target_s;
    kl_bound_of_period bound;
} kl_period;

kl_period kl_period_of(double interact_s, double movement_s, double quantum_s);
/* Return the number of passes until the next interaction, at least 1. The interaction is due in left_s
 * seconds. A pass takes pass_s seconds; if this is 0 (not known), return 1. */
uint64_t kl_period_hooks(double left_s, double pass_s);
/* Return the number of passes between two reports, so that reports take less than 1 % of the time. From the
 * reports, the ranks notice when passes take longer than before. */
uint64_t kl_report_hooks(double interact_s, double pass_s);

/* --- grain --- */

/* A loop whose work passes through P ranks as in a pipeline. */
typedef struct kl_pipeline {
    uint32_t ranks;
    uint64_t elements; /* number of elements of a row, along which blocks are cut [m], at least 1 */
    /* seconds that one rank would need to compute a whole sweep [t_seq] */
    double seq_s;
    /* fixed seconds that a rank needs to pass on the boundary of a block, however many elements the boundary
     * has [t_fixed] */
    double fixed_s;
    double incr_s; /* seconds that a rank needs in addition for each element of the boundary [t_incr] */
} kl_pipeline;

/* Return the elapsed seconds of the pipeline with M blocks, (M + P − 1)·t_seq/(P·M) + (M + P − 2)·(t_fixed +
 * t_incr·m/M), for any M ≥ 1. */
double kl_pipeline_elapsed_s(const kl_pipeline *p, double blocks);
double kl_pipeline_efficiency(const kl_pipeline *p, double blocks); /* t_seq/(P·elapsed) */
/* Return M*, the number of blocks with the least elapsed time: M* = sqrt((t_seq·(1 − 1/P) + t_incr·m·(P −
 * 2))/t_fixed), limited to 1 … m. */
double kl_pipeline_best_blocks(const kl_pipeline *p);
/* Return the block size b, from 1 to m elements, with which the pipeline takes the least time. A row then has
 * ⌈m/b⌉ blocks. Four sizes are compared. Two of them are m/M*, rounded down and up. The other two divide a
 * row into M* blocks, with M* rounded down and up. */
uint64_t kl_pipeline_block(const kl_pipeline *p);

/* The blocks of one sweep. The first blocks try `sizes` block sizes (1, 2, 4, … elements) in turn, each size
 * KL_TRIES times. They show how fast the body is with each size. All other blocks have `block` elements. */
enum { KL_TRIES = 3, KL_SIZES = 16 };
typedef struct kl_blocks {
    uint64_t elements, block;
    uint32_t sizes; /* number of block sizes that are tried; 0: none */
} kl_blocks;

/* Return the number of block sizes to try: blocks may have at most `most` elements, and tries may take at
 * most half of the elements. */
uint32_t kl_blocks_sizes(uint64_t elements, uint64_t most);
/* Return the number of blocks with which sizes are tried. */
uint64_t kl_blocks_tried(const kl_blocks *blocks);
uint64_t kl_blocks_count(const kl_blocks *blocks); /* Return the number of all blocks of a sweep. */
kl_span kl_blocks_at(const kl_blocks *blocks, uint64_t index);
/* Find the try (of a block size) that contains an element. Set *try to the elements of this try. They are
 * done in blocks of 2^*size elements. Return false if the element is in no try. */
bool kl_blocks_try(const kl_blocks *blocks, uint64_t element, uint32_t *size, kl_span *try);

/* A pipeline in which the speed of the body depends on the block size. Rows of small blocks stay in the
 * cache and overlap in the processor, but beginning a row costs time. */
typedef struct kl_grain {
    kl_pipeline pipeline; /* the pipeline; its seq_s is not used, because it depends on the block size */
    uint32_t sizes;
    /* element_s[k]: seconds that the slowest rank needs for an element of its rows in blocks of 2^k
     * elements */
    double element_s[KL_SIZES];
} kl_grain;

double kl_grain_elapsed_s(const kl_grain *grain, uint64_t block);
/* Return the block size with the least time. The candidates are the tried sizes, and the sizes that
 * kl_pipeline_block() computes from the time per element measured with one of them. */
uint64_t kl_grain_block(const kl_grain *grain);
/* Scale the times of all sizes to a new measurement: the slowest rank's body takes sweep_s seconds for a
 * sweep in blocks of `block` elements. */
void kl_grain_refresh(kl_grain *grain, uint64_t block, double sweep_s);

/* Return the number of iterations, from 1 to `mine`, after which to check for work or messages: as many as
 * fit into a period. With fewer, checks would cost time; with more, reports and decisions would be late. */
uint64_t kl_doall_grain(uint64_t mine, double iteration_s, double period_s);

/* --- whether to move --- */

/* The forecast for a move. Times of a sweep are forecasts at the present speeds. */
typedef struct kl_prospect {
    /* now_s: seconds of a sweep with the present shares; then_s: seconds of a sweep with the proposed
     * shares */
    double now_s, then_s;
    double lasted_s; /* seconds since the speeds changed last */
    /* mean seconds for which the present speeds lasted when they occurred before; 0: they have never ended */
    double lasts_s;
    /* seconds that the proposed shares would have saved if the loop had had them since the last move */
    double lost_s;
    double move_s; /* seconds that the move itself takes */
    /* seconds that the next change of speeds will cost if rows move now; 0: no change is expected */
    double back_s;
} kl_prospect;

typedef enum kl_verdict {
    KL_STAY_BALANCED, /* stay: no better shares are known */
    /* stay: better shares are known, but moving does not pay yet, or the speeds will soon change */
    KL_STAY_WAITING,
    KL_STAY_RESTING,   /* stay: no shares are considered until the pause (rest) of balancing ends */
    KL_MOVE_FORESIGHT, /* move: it will pay before the next change of speeds */
    KL_MOVE_HINDSIGHT, /* move: staying has already lost as much as the move costs */
} kl_verdict;

typedef struct kl_judgement {
    kl_verdict verdict;
    /* gain_s: forecast of the seconds saved until the next change of speeds; cost_s: seconds that moving
     * costs */
    double gain_s, cost_s;
    char reason[KL_REASON_BYTES];
} kl_judgement;

/* Decide whether to move. Move when staying has cost as much as moving costs. This rule (called ski rental)
 * costs at most twice the best decision in hindsight, however long the speeds last. Move sooner if the
 * present speeds usually last so long that the saving exceeds the cost. If speeds have lasted t seconds
 * longer than usual, they are expected to last another t seconds. */
void kl_whether(const kl_prospect *prospect, kl_judgement *judgement);

/* --- the account of what moves gain and cost --- */

/* An account of what all moves gained and cost. All zero: no row was moved yet. All times are from one
 * clock. */
typedef struct kl_account {
    uint64_t moves;
    /* sums over all moves in seconds: forecast_s: forecast gain; came_s: actual gain; cost_s: cost */
    double forecast_s, came_s, cost_s;
    /* gain minus cost in seconds, at most the cost of KL_ACCOUNT_MEMORY moves; set to 0 when balancing
     * rests */
    double balance_s;
    bool paid;            /* true: since the last rest, the balance has reached half of its upper limit */
    double rests_until_s; /* time at which the rest (pause of balancing) ends; 0: balancing does not rest */
    double rest_s;        /* seconds of the last rest; 0: there was none */
    uint32_t rests;
} kl_account;

enum { KL_ACCOUNT_MOVES = 2, KL_ACCOUNT_MEMORY = 32, KL_REST_MOVES = 10, KL_REST_DOUBLINGS = 6 };

void kl_account_move(kl_account *account, double forecast_s);
/* Gains and costs of moves since the last round. A gain below 0 is a loss. */
typedef struct kl_account_step {
    /* seconds saved, compared with a run with equal shares from the beginning */
    double came_s;
    /* Two savings in seconds are counted since balance_s last reached a limit: compared with the shares at
     * that time, and compared with equal shares. The member lately_s is the growth of the smaller
     * saving since the last round. */
    double lately_s;
    double cost_s; /* seconds spent on moving */
} kl_account_step;

/* Add the time since the last round to the account. unit_s: expected seconds of a move, above 0. Balancing
 * rests (pauses) when moves have cost more than they gained, and the difference exceeds the time of
 * KL_ACCOUNT_MOVES moves. The first rest lasts as long as KL_REST_MOVES moves. Each further rest is twice as
 * long as the one before, or half as long if balancing paid in between; the longest is 2^KL_REST_DOUBLINGS
 * times the first. Losses during a rest do not count. @return true: a rest begins, and `reason` says why */
bool kl_account_settle(kl_account *account, double now_s, const kl_account_step *step, double unit_s,
                       char reason[KL_REASON_BYTES]);
/* Begin a rest of balancing for a reason other than losses. */
void kl_account_rest(kl_account *account, double now_s, double unit_s);
void kl_account_wake(kl_account *account);
/* Return whether balancing rests. lost_s: seconds that were lost during the rest because no rows moved. The
 * rest ends early when lost_s reaches a third of the length of the rest. */
bool kl_account_rests(const kl_account *account, double now_s, double lost_s);

/* --- the loss under a load that comes and goes --- */

/* A load that comes and goes. One of `ranks` equal ranks has `speed` (0 … 1) for on_s seconds, then speed 1
 * for off_s seconds, and so on. In each phase the loop first has the shares of the phase before, for
 * react_on_s or react_off_s seconds. Then rows move for move_s seconds, and no work is done. After that,
 * shares are balanced. */
typedef struct kl_swing {
    uint32_t ranks;
    double speed, on_s, off_s;
    double react_on_s, react_off_s, move_s;
} kl_swing;

double kl_swing_efficiency(const kl_swing *s); /* Return the work done divided by the possible work, 0 … 1. */
/* Return the work done divided by the possible work if shares are always equal. */
double kl_swing_unmoved(const kl_swing *s);

/* --- the decisions of one loop --- */

/* The steer: the state from which the decisions of one loop are made. The same calls with the same arguments
 * make the same decisions on every rank. */
typedef struct kl_steer kl_steer;

typedef struct kl_steer_options {
    uint64_t iterations;
    uint32_t ranks;
    /* true: rows may move between any two ranks; false: each rank has one range of rows, in the order of
     * ranks */
    bool scattered;
    /* true: the loop is a pipeline, in which a rank may be one sweep ahead of the next rank */
    bool buffers;
    /* each rank gets at least this number of iterations, but no more than iterations/ranks are guaranteed */
    uint64_t least;
    /* seconds that reports and a decision take, measured before the first sweep; the same value on all
     * ranks */
    double interact_s;
    /* seconds of the scheduler's time slice (quantum), used until a report gives a value */
    double quantum_s;
    bool crowded; /* true: some ranks share their cores with other ranks */
    /* reach: number of ghost rows that the body reads on either side; deepest: greatest number of sweeps for
     * which ghost rows may be exchanged at once, 0 means 1 */
    uint64_t reach, deepest;
    /* first guess of the seconds of a move, as a function of the number of iterations moved; used until a
     * move is measured */
    kl_linear move;
    double byte_s; /* seconds of moving a byte; used if reports give the sizes of rows */
} kl_steer_options;

/* The report of a rank in a round. Values are for the time since the rank's last report. */
typedef struct kl_rank_report {
    /* seconds since the loop was opened; decisions use the value of the rank that kl_steer_clock() returns */
    double elapsed_s;
    double executions; /* number of sweeps that ended, plus the part that is done of the present sweep */
    /* seconds in the loop's body, without waiting, but with the time in which other processes had the
     * core */
    double busy_s;
    uint64_t iterations; /* number of iterations done in busy_s seconds; 0: this rank has measured nothing */
    /* the range of rows that the rank had for these iterations; in a scattered loop: 0, 0 */
    uint64_t lo, hi;
    /* seconds spent on moving rows, without those in which the body worked at the same time */
    double moving_s;
    uint64_t moved;   /* number of iterations that the rank has sent and received */
    double quantum_s; /* seconds of the scheduler's quantum (time slice) on the rank's host; 0: not measured
                         yet */
    /* part of its core that the rank can get, from 0 to 1; 0: not known, so 1 is assumed */
    double share;
    uint64_t pinned; /* 1: the rank is pinned to its core; 0: it may use other cores */
    /* in a pipeline: seconds that passing on the boundary of a block costs; 0: not known */
    double boundary_s;
    /* above 0: costs of iterations differ, and segments_s is sent; 0: costs are equal, or were not
     * measured */
    uint64_t segments;
    /* seconds per iteration in each of KL_SEGMENTS equal parts of the range lo … hi; 0: not known */
    double segments_s[KL_SEGMENTS];
    /* row_bytes: mean bytes of the rank's rows; moved_bytes: bytes of the `moved` iterations. Both are used
     * only if the size of rows changes; otherwise they are 0, and not sent. */
    double row_bytes, moved_bytes;
} kl_rank_report; /* ranks send this struct without conversion, so it must be a multiple of 8 bytes without
                     padding */

/* The plan that follows from the reports of a round. Its arrays belong to the steer. They stay valid until
 * the next round, even if kl_steer_commit() is called. */
typedef struct kl_steer_plan {
    bool move;
    const uint64_t *before, *after; /* in a scattered loop: shares[ranks]; otherwise: bounds[ranks + 1] */
    const kl_transfer *transfers;   /* only in a scattered loop */
    size_t transfer_count;
    /* number of iterations that change their rank; if each rank has one range, the sum of the distances by
     * which the bounds between ranges move */
    uint64_t moved;
    kl_judgement judgement; /* the decision and its reason, for the record */
    /* now_s: seconds of a sweep with the present shares; then_s: seconds of a sweep after the move; both are
     * measured or forecast */
    double now_s, then_s;
    /* forecast seconds of the slowest rank in the body: in a sweep with the present shares, and after the
     * move */
    double body_now_s, body_then_s;
    kl_period period; /* the time until the next round, and what determines it */
    uint64_t depth; /* number of sweeps for which ghost rows are exchanged at once from now on; at least 1 */
    /* only with options.buffers: seconds for which ranks go on working before they wait for the next plan; 0:
     * they may wait at once */
    double lag_s;
    /* true: the last move was judged; the next three values are its forecast gain, its gain and its cost */
    bool settled;
    double settled_forecast_s, settled_came_s, settled_cost_s;
} kl_steer_plan;

/* Make a steer for a loop with equal shares. Return NULL if memory ran out. */
kl_steer *kl_steer_new(const kl_steer_options *options);
void kl_steer_free(kl_steer *steer);
/* Set the part of a sweep that a pipeline loses when rows move, because it empties before the move and fills
 * again after it. The part is (ranks − 1)·block size/elements of a row, with the present block size. The
 * caller must pass the same value on all ranks. Until this function is called, the part is 0. */
void kl_steer_refill(kl_steer *steer, double part);
/* Return the rank whose report gives the time and the number of sweeps: the first rank with iterations. A
 * rank without iterations is ahead of the others, so its sweeps do not count. */
uint32_t kl_steer_clock(uint32_t ranks, const kl_rank_report *reports);
/* Make a plan from the reports of all ranks, in the order of ranks. It costs O(P log P). Error:
 * KILTER_ERR_MEMORY. */
kilter_status kl_steer_round(kl_steer *steer, const kl_rank_report *reports, kl_steer_plan *plan);
/* Adapt the plan of a round to the present sweep of a scattered loop, in which rank r has todo[r] iterations
 * left. Drop the plan if it delays this sweep by more than it gains. If the plan does not move rows, it may
 * get transfers with which all ranks end this sweep at the same time. The time that these transfers save must
 * exceed the cost of moving, the length of a period, and the error of measurements. Return true if the plan
 * has such transfers. The caller reports them by kl_steer_place(), and does not commit the plan. */
bool kl_steer_left(kl_steer *steer, const uint64_t *todo, kl_steer_plan *plan);
/* Store that the plan's move will be carried out: from now on the present shares are the plan's `after`. If
 * this is not called, the move counts as refused, and the shares do not change. */
void kl_steer_commit(kl_steer *steer);
/* Store that a committed move was not carried out, because a rank had no memory: the shares are again those
 * before the move. The same shares are not proposed again until another move is made or trials of shares
 * begin anew. Shares count as the same if no rank's share differs by more than a tenth of the mean share. */
void kl_steer_refuse(kl_steer *steer);
/* Set the present shares after only a part of a move was carried out. */
void kl_steer_place(kl_steer *steer, const uint64_t *iterations);
/* Return the present shares; if each rank has one range, return the bounds. */
const uint64_t *kl_steer_shares(const kl_steer *steer);
const kl_account *kl_steer_account(const kl_steer *steer);
/* Get the seconds that the last move has gained and cost so far. Return false if the move was judged
 * already. */
bool kl_steer_open_move(const kl_steer *steer, double *came_s, double *cost_s);
/* Return the estimated number of iterations of mean cost that a rank does per second; 0: not known yet. */
double kl_steer_rate(const kl_steer *steer, uint32_t rank);

#endif
