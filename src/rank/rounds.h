/* Private to the folder rank: rounds of reports, and the decisions made from these reports. rank.h includes
 * this header. All ranks choose the same pass for each round. In this pass, each rank posts a report when
 * half of its rows are done, and continues. From all reports, each rank computes the same decision, which
 * takes effect before a later pass. */
#ifndef KL_ROUNDS_H
#define KL_ROUNDS_H

#include "rank/action.h"
#include "steer/steer.h"

typedef struct kl_loop_rounds {
    kl_steer *steer; /* the state of decisions about moves; NULL: this loop decides nothing */
    /* number of passes so far. A pass is a whole sweep or a part of a sweep. Rows may move between two
     * passes. */
    uint64_t passed;
    uint64_t passes; /* present number of passes in a sweep */
    uint64_t at;     /* number of the pass in which the next report is made */
    uint64_t due;    /* number of the pass before which the rank waits for the reports of all ranks */
    bool reported;   /* true: this rank has reported, and has not read the reports of all ranks yet */
    bool sized;      /* true: reports include the bytes of rows, because rows have content */
    /* true: reports include times of segments (parts of a rank's rows), because iterations differed in
     * cost in the last reports */
    bool whole;
    bool adds_up; /* true: the next report probably comes before a decision is due; then reports are only
                     added up */
    kl_set set;   /* the messages that bring the reports */
    bool awaited; /* true: since awaited_s, the rank has been waiting for the reports */
    double awaited_s;
    /* mine: report of this rank; heard: reports of all ranks in this round; all: for each rank, the sum of
     * its reports since the last decision */
    kl_rank_report mine, *heard, *all;
    /* true: a decision was made from the sums in `all`, which must be cleared before the next report */
    bool decided;
    kl_steer_plan plan; /* the last plan that was decided */
    /* heard_s: time of the last report; asked_s: time of the last decision; both by the clock of rank
     * kl_steer_clock() */
    double heard_s, asked_s;
    kl_linear link; /* cost of a message between neighbours: fixed seconds, and seconds per byte */
    /* report_s: seconds of one round of reports, as measured; interact_s: the same, but at least as long as a
     * round can take if ranks share cores; period_s: seconds between two decisions */
    double report_s, interact_s, period_s;
    bool crowded;      /* true: some ranks share their cores with other ranks */
    double sweep_s;    /* mean seconds of the last sweeps, on the rank kl_steer_clock(); 0: not known */
    double forecast_s; /* forecast of the seconds in the body for a sweep; 0: there is no new forecast */
    bool forced;       /* true, in tests only: rows move at every opportunity, to places chosen by `seed` */
    uint64_t seed;
    uint64_t refused; /* number of moves that were refused because a rank had no memory */
    char decision[2 * KL_REASON_BYTES];
} kl_loop_rounds;

/* Costs of messages between ranks, measured before the first sweep. */
typedef struct kl_messages {
    double interact_s; /* seconds of one round of reports */
    kl_linear link;
    /* seconds of the scheduler's time slice (quantum), used until a report has a measured value */
    double quantum_s;
    bool crowded; /* true: some ranks share their cores with other ranks */
} kl_messages;

void kl_rounds_free(kl_loop_rounds *rounds);
/* Return whether this loop decides anything from the ranks' reports. */
bool kl_rounds_wanted(const kl_rank *rank);
bool kl_rounds_reserve(kl_loop_rounds *rounds, uint32_t ranks); /* Return false if memory ran out. */
/* Prepare the rounds of reports before the first sweep. Return false if memory ran out. */
bool kl_rounds_open(kl_rank *rank, const kl_messages *messages);
/* Return the size of a report in a message, in bytes. */
size_t kl_rounds_report_bytes(const kl_loop_rounds *rounds);
/* Return the greatest number of passes between two reports if ranks share cores with each other. heard: the
 * last reports; moves: rows move now, so nothing is known about the next passes. If only one rank has rows
 * after the move, there is no limit, because this rank waits for no halos. */
uint64_t kl_rounds_limit(const kl_layout *layout, const kl_rank_report *heard, bool moves);
/* Begin a sweep with `passes` passes. The times of the next report and decision are counted in passes.
 * Convert them, so that they stay the same in seconds. */
void kl_rounds_repass(kl_loop_rounds *rounds, uint64_t passes);
/* If the reports of all ranks are due before this pass, wait for them, and decide. */
kl_act kl_rounds_answer(kl_rank *rank);
/* If a report is due, make it within this pass, or at the end of the pass. */
kl_act kl_rounds_hook(kl_rank *rank);
kl_act kl_rounds_hook_at_end(kl_rank *rank);

/* Functions that scattered loops also use. Scattered loops have rounds of their own. */
/* Move reports apart in memory. Before, they lie next to each other, with `bytes` bytes each. Afterwards,
 * they begin at intervals of `apart` bytes. */
void kl_rounds_spread(void *all, size_t bytes, size_t apart, uint32_t ranks);
/* Add the reports of all ranks, which begin at intervals of `apart` bytes, to rounds->all. */
void kl_rounds_add(kl_loop_rounds *rounds, const kl_rank_report *first, size_t apart, uint32_t ranks);
/* Let the steer make rounds->plan from rounds->all. Return false if memory ran out. */
bool kl_rounds_decide(kl_rank *rank);
void kl_rounds_note(kl_loop_rounds *rounds); /* Store that the ranks follow rounds->plan from now on. */
/* Count a move that was refused. reason: why it was refused, for the record and the summary. */
kl_act kl_rounds_refused(kl_rank *rank, const char *reason);

#endif
