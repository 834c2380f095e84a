/* Rounds of reports, and the decisions made from them. Private to room rank; the door includes it.
 *
 * In a pass that all ranks know each posts a report when half of its rows are done, and goes on. Each works
 * out the answer for itself from the reports of all; it holds from a later pass on. */
#ifndef KL_ROUNDS_H
#define KL_ROUNDS_H

#include "rank/action.h"
#include "steer/steer.h"

typedef struct kl_loop_rounds {
    kl_steer *steer; /* NULL: there is nothing to decide */
    uint64_t passed; /* passes so far: parts of a sweep between which rows may move; of most loops it all */
    uint64_t passes; /* of a sweep */
    uint64_t at;     /* the pass in which the next report is made */
    uint64_t due;    /* the pass before which its answer is waited for */
    bool reported;   /* and the answer is not looked at yet */
    bool whole;      /* reports travel with segments: the last ones said that some iterations differ */
    bool adds_up;    /* the next report comes before it is time to decide, as far as is known */
    kl_set set;      /* the reports on their way */
    bool awaited;    /* the answer, since awaited_s */
    double awaited_s;
    kl_rank_report mine, *heard, *all; /* all: since the last decision */
    bool decided;                      /* from all of them: they are to be forgotten */
    kl_steer_plan plan;                /* the last one */
    double heard_s, asked_s;           /* by kl_steer_clock() at the last report, and at the last decision */
    kl_linear link;                    /* a message between neighbours, by bytes */
    double interact_s, period_s;
    double sweep_s;    /* the last ones, mean, by kl_steer_clock(); 0: not known */
    double forecast_s; /* of the body in a sweep; 0: nothing new is known */
    bool forced;       /* rows move at every opportunity, to places out of `seed`, for tests */
    uint64_t seed;
    uint64_t refused; /* moves, as a rank had no memory */
    char decision[2 * KL_REASON_BYTES];
} kl_loop_rounds;

/* Costs of messages, measured before the first sweep. */
typedef struct kl_messages {
    double interact_s; /* one round of reports */
    kl_linear link;
    double quantum_s; /* as long as no report tells of one */
} kl_messages;

void kl_rounds_free(kl_loop_rounds *rounds);
bool kl_rounds_wanted(const kl_rank *rank);                     /* Something is to be decided. */
bool kl_rounds_reserve(kl_loop_rounds *rounds, uint32_t ranks); /* false: no memory */
/* Before the first sweep. false: no memory */
bool kl_rounds_open(kl_rank *rank, const kl_messages *messages);
size_t kl_rounds_report_bytes(const kl_loop_rounds *rounds); /* of a report that travels */
/* A sweep begins that has `passes` passes: what is set for later ones takes as long. */
void kl_rounds_repass(kl_loop_rounds *rounds, uint64_t passes);
/* Before a pass: take the answer to the last report, if it is due. */
kl_act kl_rounds_answer(kl_rank *rank);
/* In a pass, and at its end: report if it is time to. */
kl_act kl_rounds_hook(kl_rank *rank);
kl_act kl_rounds_hook_at_end(kl_rank *rank);

/* Scattered loops make rounds of their own, and share what follows. */
/* Put reports of `bytes` that lie side by side `apart` from each other; what is between is not set. */
void kl_rounds_spread(void *all, size_t bytes, size_t apart, uint32_t ranks);
/* Add the reports of all, `apart` bytes from each other, to those since the last decision. */
void kl_rounds_add(kl_loop_rounds *rounds, const kl_rank_report *first, size_t apart, uint32_t ranks);
/* Let the steer decide from rounds->all: rounds->plan. false: no memory */
bool kl_rounds_decide(kl_rank *rank);
void kl_rounds_note(kl_loop_rounds *rounds); /* The plan is in force. */
/* A rank had no memory for rows that were to move. */
kl_act kl_rounds_refused(kl_rank *rank, const char *reason);

#endif
