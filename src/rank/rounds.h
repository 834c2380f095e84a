/* Private to the folder rank: rounds of reports, and the decisions made from these reports. rank.h
 * includes this header. All ranks agree on a pass. In this pass each rank posts a report when half of its
 * rows are done, and then continues. From all reports, each rank computes the same answer, which takes
 * effect before a later pass. */
#ifndef KL_ROUNDS_H
#define KL_ROUNDS_H

#include "rank/action.h"
#include "steer/steer.h"

typedef struct kl_loop_rounds {
    kl_steer *steer; /* the state of decisions about moves; NULL: there is nothing to decide */
    /* number of passes so far. A pass is a sweep or a part of one; rows may move between two passes. */
    uint64_t passed;
    uint64_t passes; /* number of passes in a sweep */
    uint64_t at;     /* number of the pass in which the next report is made */
    uint64_t due;    /* number of the pass before which the rank waits for the answer to this report */
    bool reported;   /* true: a report was made, and its answer was not read yet */
    bool sized;      /* true: reports include the bytes of rows, because rows have content */
    bool whole; /* true: reports include segments, because iterations differed in cost in the last reports */
    bool adds_up; /* true: the next report probably comes before a decision is due */
    kl_set set;   /* messages of the reports */
    bool awaited; /* true: the rank has been waiting for the answer since awaited_s */
    double awaited_s;
    kl_rank_report mine, *heard,
        *all;     /* heard: the reports of this round; all: sums of the reports since the last decision */
    bool decided; /* true: a decision was made from `all`, whose sums must be cleared */
    kl_steer_plan plan;      /* the last plan */
    double heard_s, asked_s; /* times of the last report and of the last decision, by kl_steer_clock() */
    kl_linear link;          /* cost of a message between neighbours, by bytes */
    double interact_s, period_s;
    double sweep_s;    /* mean seconds of the last sweeps, by kl_steer_clock(); 0: not known */
    double forecast_s; /* forecast seconds of the body in a sweep; 0: no new forecast */
    bool forced;       /* for tests: true: rows move at every opportunity, to places chosen by `seed` */
    uint64_t seed;
    uint64_t refused; /* number of moves refused because a rank had no memory */
    char decision[2 * KL_REASON_BYTES];
} kl_loop_rounds;

/* Costs of messages, measured before the first sweep. */
typedef struct kl_messages {
    double interact_s; /* seconds of one round of reports */
    kl_linear link;
    double quantum_s; /* seconds of the scheduler's quantum, used until a report has a measured value */
} kl_messages;

void kl_rounds_free(kl_loop_rounds *rounds);
/* Return whether there is anything to decide. */
bool kl_rounds_wanted(const kl_rank *rank);
bool kl_rounds_reserve(kl_loop_rounds *rounds, uint32_t ranks); /* false: memory ran out */
/* Prepare rounds before the first sweep. false: memory ran out */
bool kl_rounds_open(kl_rank *rank, const kl_messages *messages);
size_t kl_rounds_report_bytes(const kl_loop_rounds *rounds); /* bytes of a report in a message */
/* Begin a sweep with `passes` passes. Convert delays that are counted in passes, so that their duration
 * stays the same. */
void kl_rounds_repass(kl_loop_rounds *rounds, uint64_t passes);
/* Read the answer to the last report before a pass, if it is time to. */
kl_act kl_rounds_answer(kl_rank *rank);
/* Make a report within a pass, or at its end, if a report is due. */
kl_act kl_rounds_hook(kl_rank *rank);
kl_act kl_rounds_hook_at_end(kl_rank *rank);

/* Functions that scattered loops use, too. These have their own rounds. */
/* Move adjacent reports of `bytes` bytes apart, so that they begin at intervals of `apart` bytes. */
void kl_rounds_spread(void *all, size_t bytes, size_t apart, uint32_t ranks);
/* Add the reports of all ranks, which begin at intervals of `apart` bytes, to rounds->all. */
void kl_rounds_add(kl_loop_rounds *rounds, const kl_rank_report *first, size_t apart, uint32_t ranks);
/* Let the steer make rounds->plan from rounds->all. false: memory ran out. */
bool kl_rounds_decide(kl_rank *rank);
void kl_rounds_note(kl_loop_rounds *rounds); /* Store that the ranks follow the plan from now on. */
/* Count a move that was refused because a rank had no memory. */
kl_act kl_rounds_refused(kl_rank *rank, const char *reason);

#endif
