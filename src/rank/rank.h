/* Public header of the folder rank: what one rank of a loop does, as a state machine. The machine is pure:
 * its driver tells it the time and carries out its actions.
 *
 *     the program calls          begin, next, end: kl_rank_call()
 *     the driver asks            kl_rank_act() again and again: POST, AWAIT, SHARE, … until RETURN or GIVE
 *     the driver tells           set->open, kl_exchange_room_is(), kl_meter_quantum_is()
 *
 * A call of the program is carried out as a list of stages, which are functions. Each kind of loop has such a
 * list for each call. The folder loop drives ranks by MPI; rank_test.c drives all ranks of a loop in virtual
 * time. A rank is made of parts. Each part changes only its own fields. Other parts call its functions, or
 * read its fields:
 *
 *     part            owner file    what it knows
 *     kl_action       action.h      what a rank asks of its driver
 *     kl_layout       layout.c      where rows lie now and after the next exchange; the arrays
 *     kl_meter        meter.c       what this rank measured since its last report, and since the start
 *     kl_content      content.c     the contents of rows that move
 *     kl_exchange     exchange.c    halos and rows on their way, and for how many sweeps they are enough
 *     kl_loop_rounds  rounds.c      reports, and the decisions that the folder steer makes from them
 *     kl_work         ranged.c      one range of rows for each rank: which part of a sweep is done
 *     kl_flow         pipeline.c    blocks, passes, and which block is best
 *     kl_scatter      scatter.c     rows on any rank: transfers within a sweep
 *     kl_rank         rank.c        all these parts; stages.c: the stage that a call has reached */
#ifndef KL_RANK_H
#define KL_RANK_H

#include "rank/action.h"
#include "rank/content.h"
#include "rank/exchange.h"
#include "rank/layout.h"
#include "rank/meter.h"
#include "rank/rounds.h"

/* The calls that the program makes in each sweep. */
typedef enum kl_loop_call { KL_LOOP_BEGIN, KL_LOOP_NEXT, KL_LOOP_END, KL_LOOP_CALLS } kl_loop_call;

/* The operations in which the kinds of loops differ. */
typedef struct kl_kind {
    /* true: a rank may have several ranges of rows, and the ranges need not be in the order of the ranks */
    bool anywhere;
    bool buffers; /* true: a rank may be one sweep ahead of its neighbours */
    /* stages[call]: the stages of each call; each list ends with NULL */
    const kl_stage *stages[KL_LOOP_CALLS];
    /* Prepare choices, such as the block size, from the measured costs of messages. NULL: nothing to prepare.
     */
    void (*prepare)(kl_rank *rank);
    /* Learn from the ranks' reports in rounds.all, before a decision is made from these reports. NULL:
     * nothing to learn. */
    void (*learn)(kl_rank *rank);
    bool (*is_done)(const kl_rank *rank); /* Return whether this rank has done all its work of the sweep. */
    /* Return the part of the sweep that this rank has done, 0 … 1. */
    double (*sweep_done)(const kl_rank *rank);
    /* Return the part of the pass that this rank has done, 0 … 1. */
    double (*pass_done)(const kl_rank *rank);
} kl_kind;

extern const kl_kind kl_ranged, kl_pipelined, kl_scattered;

typedef struct kl_work { /* The work of a sweep, in loops in which each rank has one range of rows. */
    kl_span all;         /* rows to do, including rows of neighbours */
    kl_span todo;        /* rows that the body can get now */
    kl_span edges[2];    /* rows that the body can get once the exchange is complete */
    kl_span given;       /* rows that the body has now; empty: no rows */
    uint64_t done;       /* number of rows done */
} kl_work;

typedef struct kl_flow { /* The work of a sweep in a pipeline. */
    uint64_t block;      /* number of elements in a block */
    /* done: number of blocks done; asked: number of blocks whose boundaries were requested */
    uint64_t done, asked;
    kl_span pass; /* blocks of the current pass */
    bool in_block;
    double body_over_s; /* time at which the body last returned its work */
    /* since_s: time at which the wait for the next boundary began; absent_s: seconds of this wait */
    double since_s, absent_s;
    kl_grain grain;
    uint32_t sizes_tried; /* number of block sizes that are tried in the first sweep */
    double try_s;         /* seconds of the try of a block size that is in progress */
    /* tried_s[k]: least seconds per element of a row that this rank took with the tried block size k */
    double tried_s[KL_SIZES];
    bool compares; /* true: the ranks are comparing the times of their tries of block sizes */
    /* coming, going: messages with the boundaries of blocks, from the previous rank and to the next rank */
    kl_set coming, going;
    kl_mail *sent, *wanted; /* sent[a], wanted[a]: messages with the boundary of one block in array a */
} kl_flow;

typedef struct kl_rank_options {
    uint64_t iterations;
    uint32_t rank, ranks;
    /* used in pipelines: inner is the number of elements in a row; block is the number of elements in a
     * block, or 0 if Kilter chooses it */
    uint64_t inner, block;
    bool backward;   /* true: rows come in falling order, and in a pipeline also the elements of a row */
    bool ordered;    /* true: each rank gets its own rows as one range, in order */
    bool fixed;      /* true: decisions of this loop move no rows */
    bool watched;    /* true: the ranks must report their rates even if nothing is decided from the rates */
    kl_rank *leader; /* the loop that this loop follows, on this rank; NULL: this loop leads */
    kl_map map; /* tells which rows of the leading loop this loop's rows follow, if there is a leading loop */
} kl_rank_options;

enum { KL_CALLS_DEEP = 5 }; /* greatest depth of nested lists of stages */

struct kl_rank {
    kl_rank_options options;
    const kl_kind *kind;
    kl_layout layout;
    kl_meter meter;
    kl_content content;
    kl_exchange exchange;
    kl_loop_rounds rounds;
    kl_work work;
    kl_flow flow;
    struct kl_scatter *scatter; /* state of a scattered loop; NULL: the loop is not scattered */
    /* the first loop in the list of loops that follow this loop; NULL: no loop follows this one */
    kl_rank *followers;
    kl_rank *next;    /* next loop that follows the same leader; NULL: this is the last one */
    double now_s;     /* the time that the driver gave last */
    bool looks_yield; /* true: when the driver checks for messages, other processes may get the core */
    kl_action action; /* the last action that was returned to the driver */
    const kl_stage *stage[KL_CALLS_DEEP]; /* stage[k]: the next stage in nested list k of stages */
    int deep;
};

/* Begin with equal shares of rows, or with the leading loop's rows. The struct must not move in memory
 * afterwards. false: memory ran out; call kl_rank_free() even then. */
bool kl_rank_init(kl_rank *rank, const kl_kind *kind, const kl_rank_options *options);
void kl_rank_free(kl_rank *rank); /* Free the rank. Followers must be freed before their leader. */
/* Make room for one more array, which kl_layout_add() then adds. Return false if memory ran out. */
bool kl_rank_grow(kl_rank *rank);
void kl_rank_call(kl_rank *rank, kl_loop_call call);
/* Return the next action. now_s: the present time, which is not before the end of the last action, unless
 * that was untimed */
const kl_action *kl_rank_act(kl_rank *rank, double now_s);
/* Call this after KL_LOOP_END has returned. If the rows of this loop have moved, the loops that follow it
 * take over the new places of the rows. */
void kl_rank_end_sweep(kl_rank *rank, double took_s);

/* Get range number `nth` of this rank's rows, from 0 on. Call this only between two sweeps. Return false if
 * there are fewer ranges. */
bool kl_rank_own(const kl_rank *rank, size_t nth, kl_span *range);

/* Private to the folder rank: functions for the stages of calls. */
static inline kl_act kl_ask(kl_rank *rank, kl_action action) {
    rank->action = action;
    return action.act;
}
/* Ask for a frequent action, after which the driver need not read the clock, or for KL_CLOCK. This sets only
 * a few fields; for KL_POST, set the messages before. To set all fields would cost a tenth of a microsecond
 * for each block of a pipeline. */
static inline kl_act kl_ask_briefly(kl_rank *rank, kl_act act, kl_set *set) {
    rank->action.again = false;
    rank->action.untimed = act != KL_CLOCK;
    rank->action.set = set;
    return rank->action.act = act;
}
static inline kl_act kl_return(kl_rank *rank) {
    rank->action.again = false;
    return rank->action.act = KL_RETURN;
}
static inline kl_act kl_give(kl_rank *rank, kl_given given) {
    rank->action.again = false;
    rank->action.given = given;
    return rank->action.act = KL_GIVE;
}
/* Check for these messages between two parts of the work, if such a check costs little. */
static inline kl_act kl_look(kl_rank *rank, kl_set *set) {
    return set->open && !rank->looks_yield ? kl_ask(rank, (kl_action){.act = KL_LOOK, .set = set}) : KL_GO_ON;
}
/* Let the rank do the stages of this list next. After them, kl_rank_do() continues with the stage after the
 * present stage, and kl_rank_do_and_repeat() does the present stage again. */
kl_act kl_rank_do(kl_rank *rank, const kl_stage *stages);
kl_act kl_rank_do_and_repeat(kl_rank *rank, const kl_stage *stages);
kl_act kl_ranged_settle(kl_rank *rank); /* If the last exchange could not move rows, tell the steer, which
                                           decides about moves. */
/* scatter.c */
bool kl_scatter_init(kl_rank *rank); /* Return false if memory ran out. */
void kl_scatter_free(struct kl_scatter *scatter);
bool kl_scatter_own(const struct kl_scatter *scatter, size_t nth, kl_span *range);

#endif
