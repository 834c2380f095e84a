/* Rounds of reports, and the decisions made from them. Private to room loop.
 *
 * In a pass that all ranks know each posts a report when half of its rows are done, and goes on. Each works
 * out the answer for itself from the reports of all; it holds from a later pass on. */
#ifndef KL_ROUNDS_MPI_H
#define KL_ROUNDS_MPI_H

#include "loop/group_mpi.h"
#include "steer/steer.h"

typedef struct kl_loop_rounds {
    kl_steer *steer; /* NULL: there is nothing to decide */
    uint64_t
        passed; /* passes so far: parts of a sweep between which rows may move; of most loops all of it */
    uint64_t passes; /* of a sweep */
    uint64_t at;     /* the pass in which the next report is made */
    uint64_t due;    /* the pass before which its answer is waited for */
    bool reported;   /* and the answer is not looked at yet */
    bool whole;      /* reports travel with segments: the last ones said that some iterations differ */
    bool adds_up;    /* the next report comes before it is time to decide, as far as is known */
    kl_rank_report mine, *heard, *all; /* all: since the last decision */
    kl_requests requests;
    double heard_s, asked_s; /* by kl_steer_clock() at the last report, and at the last decision */
    kl_linear link;          /* a message between neighbours, by bytes */
    double interact_s, period_s;
    double sweep_s;    /* the last ones, mean, by kl_steer_clock(); 0: not known */
    double forecast_s; /* of the body in a sweep; 0: nothing new is known */
    bool forced;       /* rows move at every opportunity, to places out of `seed`, for tests */
    uint64_t seed;
    uint64_t refused; /* moves, as a rank had no memory */
    char decision[2 * KL_REASON_BYTES];
} kl_loop_rounds;

void kl_rounds_free(kl_loop_rounds *rounds);
/* Before the first sweep: measure messages, and see what is to be decided.   Collective. */
kilter_status kl_rounds_open(kilter_loop *l, kilter_error *error);
/* A sweep begins that has so many passes: what is set for later ones takes as long. */
void kl_rounds_repass(kl_loop_rounds *rounds, uint64_t passes);
/* Before a pass: take the answer to the last report, if it is due. */
kilter_status kl_rounds_answer(kilter_loop *l, kilter_error *error);
/* In a pass: report when it is time to, at the latest at its end. */
kilter_status kl_rounds_hook(kilter_loop *l, bool at_end, kilter_error *error);
kilter_status kl_rounds_close(kilter_loop *l, kilter_error *error);

/* Scattered loops make rounds of their own, and share what follows. */
/* Let the steer decide from rounds->all. */
kilter_status kl_rounds_decide(kilter_loop *l, kl_steer_plan *plan, kilter_error *error);
/* The plan is in force: note and record it, and begin to add up reports anew. */
void kl_rounds_note(kilter_loop *l, const kl_steer_plan *plan);
/* Add a report to those since the last decision. */
void kl_report_add(kl_rank_report *sum, const kl_rank_report *last);
/* A rank had no memory for rows that were to move. */
void kl_rounds_refused(kilter_loop *l, const char *reason);

#endif
