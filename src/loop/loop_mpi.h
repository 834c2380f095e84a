/* Inside a loop. Private to room loop.
 *
 * Rows of `bounds` are where they lie now; `target` is where they shall lie in the execution that begins. One
 * exchange brings each rank what it lacks of its target rows and their ghosts, from whoever had it: when
 * nothing moves these are just the ghosts. A pipeline's rows move in stages, each an exchange with a target
 * of its own. */
#ifndef KL_LOOP_MPI_H
#define KL_LOOP_MPI_H

#include "loop/loop.h"
#include "loop/rows.h"
#include "loop/sum.h"
#include "steer/steer.h"
#include "sys/sys.h"
#include "transport/lifeline_mpi.h"
#include "transport/wait_mpi.h"

enum {
    KL_TAG_ROWS = 1,
    KL_TAG_BLOCK,
    KL_TAG_GATHER,
    KL_TAG_PROBE,
    KL_TAG_LIST,
    KL_TAG_ANSWER,
    KL_TAG_REDUCE
};
enum { KL_TAG_STEPS = 1 }; /* on another communicator */

/* --- requests that are waited for together --- */

typedef struct kl_batch { /* zeroed: none */
    MPI_Request *requests;
    int *done;
    MPI_Status *statuses;
    size_t receives, count, capacity; /* receives come first */
    size_t open;                      /* not complete */
    bool collective;                  /* one request, of all ranks */
} kl_batch;

/* Of any size, in pieces as MPI counts in int. */
kilter_status kl_batch_receive(kilter_loop *l, kl_batch *batch, void *to, size_t bytes, int from, int tag,
                               kilter_error *error);
kilter_status kl_batch_send(kilter_loop *l, kl_batch *batch, const void *data, size_t bytes, int to, int tag,
                            kilter_error *error);
kilter_status kl_batch_send_on(MPI_Comm comm, kl_batch *batch, const void *data, size_t bytes, int to,
                               int tag, kilter_error *error);
/* A collective operation: code is what MPI said when it was begun. */
kilter_status kl_batch_join(kl_batch *batch, int code, MPI_Request request, kilter_error *error);
kilter_status kl_batch_look(kilter_loop *l, kl_batch *batch, kilter_error *error);
/* Until all are complete, or somebody is dead, or l->until_s. */
kilter_status kl_batch_await(kilter_loop *l, kl_batch *batch, kilter_error *error);
void kl_batch_free(kl_batch *batch);

/* The loop has failed, as l->failure says, here; the others hear of it. */
void kl_loop_break(kilter_loop *l);
kilter_status kl_loop_failed(kilter_loop *l, kilter_status status, kilter_error *error);
/* Between two looks at what may have come. rings: its senders wake this rank. */
void kl_loop_rest(kilter_loop *l, bool rings);
kilter_status kl_mpi_failed(int code, const char *doing, kilter_error *error);
/* Begins to bring the first `bytes` of everybody's report to all, side by side. When they are there, each
 * gets its place, `apart` from the next; what is between is not set. */
kilter_status kl_reports_share(kilter_loop *l, kl_batch *batch, const void *mine, void *all, size_t bytes,
                               kilter_error *error);
void kl_reports_spread(const kilter_loop *l, void *all, size_t bytes, size_t apart);
/* Of all ranks, in their place: up to KL_SUM_WORDS + 2 values of 8 bytes. */
kilter_status kl_loop_reduce(kilter_loop *l, MPI_Comm comm, void *values, size_t count, MPI_Datatype type,
                             MPI_Op op, kilter_error *error);
/* The smallest of each on all ranks, in their place. */
kilter_status kl_loop_least_on(kilter_loop *l, MPI_Comm comm, uint64_t *values, size_t count,
                               kilter_error *error);
kilter_status kl_loop_least(kilter_loop *l, uint64_t *values, size_t count, kilter_error *error);
kilter_status kl_loop_most_f64(kilter_loop *l, double *values, size_t count, kilter_error *error);

/* --- the loop --- */

typedef struct kl_array {
    kl_rows rows;
    uint64_t ghost;
    uint64_t room; /* rows with memory on either side of the own ones */
} kl_array;

typedef struct kl_leg { /* of an exchange: rows of an array from or to a peer */
    int peer;
    size_t array;
    kl_span rows;
} kl_leg;

typedef struct kl_legs {
    kl_leg *legs; /* receives first */
    size_t receives, count, capacity;
} kl_legs;

typedef struct kl_spans { /* zeroed: none */
    kl_span *at;
    size_t count, capacity;
} kl_spans;

typedef enum kl_phase { KL_BETWEEN, KL_WITHIN, KL_BROKEN } kl_phase;

typedef struct kl_round {
    uint64_t at;   /* the pass in which the next report is made */
    uint64_t due;  /* the pass before which its answer is waited for */
    bool reported; /* and the answer is not looked at yet */
    bool whole;    /* reports travel with segments: the last ones said that somebody's iterations differ */
    bool adds_up;  /* the next report comes before it is time to decide, as far as is known */
    kl_rank_report mine, *heard, *all; /* all: since the last decision */
    kl_batch batch;
    double heard_s, asked_s; /* by kl_steer_clock() at the last one, and at the last decision */
} kl_round;

typedef struct kl_measured { /* since the last report */
    double executions, busy_s, moving_s;
    double rows;            /* in parts, where blocks are done */
    double foreign;         /* of them, rows of neighbours */
    double cpu_s, cpu_rows; /* CPU time of those rows whose time was told, on a shared core */
    uint64_t moved;
    double segment_s[KL_SEGMENTS], segment_rows[KL_SEGMENTS];
    double boundary_s, boundaries; /* of blocks: from one body to the next, without waiting */
} kl_measured;

typedef enum kl_call { /* collective ones */
                       KL_CALL_ARRAY = 1,
                       KL_CALL_BEGIN,
                       KL_CALL_SUM,
                       KL_CALL_GATHER,
                       KL_CALL_CLOSE,
} kl_call;

enum { KL_STEPS = 16 };

typedef struct kl_steps_word { /* from a rank that waits, to the next one */
    uint64_t number, recent[KL_STEPS];
    uint64_t last; /* from one that closes the loop: no other follows */
} kl_steps_word;

typedef struct kl_steps {
    uint64_t number;           /* collective calls so far, with the one under way */
    uint64_t recent[KL_STEPS]; /* call k at k mod KL_STEPS, as a number */
    double looked_s, waits_s;  /* looks that follow each other began */
    uint64_t told;             /* the next rank, at this number */
    bool heard_last;           /* from the rank before */
    double tell_after_s;       /* of waiting, the next rank */
    kl_steps_word word;
    kl_batch batch; /* of what is told */
} kl_steps;

typedef struct kl_last_words { /* of a rank that leaves the loop, or of the first rank about another */
    int rank;
    bool closed;                        /* as it should be */
    char text[KILTER_ERROR_TEXT_BYTES]; /* why it gives it up; "": it is dead */
} kl_last_words;

typedef struct kl_gone { /* rows that went away */
    kl_span rows;
    uint64_t execution;
    int to; /* −1: whoever has them by the bounds */
} kl_gone;

enum { KL_GONE = 64 };

typedef struct kl_record_word { /* of rank 0, to all */
    kilter_error error;
    uint64_t made; /* there is a record */
} kl_record_word;

struct kilter_loop {
    kilter_loop_options options;
    char *name;
    MPI_Comm comm, calls; /* calls: for what ranks compare of their calls */
    bool checks;          /* checking mode, on all ranks alike */
    int rank;
    uint32_t ranks;
    kl_clock clock;
    double opened_s;
    kl_phase phase;
    kilter_error failure;

    kl_mpi_wait wait;
    bool near;                  /* all ranks are on this host, and have bells */
    struct kl_watch *watch;     /* rank 0's over the lines to the others; NULL: none */
    kl_lifelines *lines;        /* the others', to rank 0; NULL: none */
    uint8_t *invitations;       /* to have one, while the loop is opened */
    double patience_s, until_s; /* until_s: others may not be silent for longer; 0: they may, as lines tell */
    bool outlives;              /* the launcher lets ranks outlive others */
    double looked_s;
    bool closing;
    int key;             /* by which MPI_Finalize() finds the loop */
    kl_last_words words; /* heard */
    kl_steps steps;
    int64_t shared[KL_SUM_WORDS + 2]; /* what a collective call of all ranks works on: MPI may write into it
                                         after it has failed, too */
    int64_t partial[2][KL_SUM_WORDS + 2]; /* and of the ranks below in a tree */
    kl_gone gone[KL_GONE];                /* the last ones; the k-th at k mod KL_GONE */
    uint64_t gone_count;
    kilter_loop *_Atomic next_guarded;

    kl_array *arrays;
    size_t array_count;
    uint64_t ghost;          /* the widest: as far as the body reaches */
    uint64_t deepest, depth; /* executions that one exchange is for, at most and now */
    uint64_t ahead;          /* executions left before the next exchange */
    bool deepened;           /* depth is another one than at the last exchange */

    uint64_t *bounds, *target; /* [ranks + 1] */
    bool moves;                /* they differ, and this is to be mended */
    uint64_t *goal;            /* where rows lie after all stages of a move; target: after the next */
    bool passing;              /* that is not the last one */
    kl_legs legs;
    bool legs_stand; /* they are those of bounds as they are */
    kl_batch exchange;
    bool exchanging, moving; /* moving: with rows, not ghosts alone */

    kl_span all;      /* rows to do in this execution, with those of neighbours */
    kl_span todo;     /* of them, to be given now */
    kl_span edges[2]; /* to do once the exchange is complete */
    uint64_t rows_done;
    kl_span given; /* and being done; empty: none */
    double given_s, given_busy_s;
    bool given_cpu; /* given_busy_s is set */

    uint64_t block; /* elements */
    uint64_t blocks_done;
    uint64_t passes; /* of a pipeline's execution: parts between which rows may move, too */
    kl_span pass;    /* the blocks of the present one */
    bool in_block;
    double body_over_s, absent_s; /* when the last body was done; waited for the next block's boundary */
    kl_grain grain;
    uint32_t sizes_tried;     /* in the first execution */
    double try_s;             /* the one under way */
    double tried_s[KL_SIZES]; /* here, an element of a row; the least */
    kl_batch coming, going;   /* boundaries of blocks */
    uint64_t blocks_asked;    /* receives posted */

    kl_steer *steer; /* NULL: nothing is measured */
    kl_round round;
    kl_measured measured;
    kl_linear link; /* a message between neighbours, by bytes */
    double interact_s, period_s, iteration_s;
    double execution_s; /* the last ones, mean, by kl_steer_clock(); 0: not known */
    double forecast_s;  /* of an execution, to choose blocks by; 0: nothing new is known */
    double quantum_s;   /* of this rank's scheduler; 0: not measured yet */
    bool by_pieces;     /* an execution is given in pieces, whose times are told apart */
    bool uneven;        /* they differ */
    bool forced;
    uint64_t seed;

    struct kl_scatter *scatter; /* NULL: each rank has one range */

    uint64_t execution; /* the one that is under way, or begins next */
    uint64_t passed;    /* passes so far; an execution is one, but for pipelines */
    double began_s;
    kilter_loop_summary summary;
    char decision[2 * KL_REASON_BYTES];
    uint64_t refused; /* moves, for want of memory */

    struct kl_loop_record *record; /* NULL: none, or it is not rank 0 that asks */
    kl_record_word record_word;
};

static inline kl_span kl_loop_own(const kilter_loop *l) {
    return (kl_span){l->bounds[l->rank], l->bounds[l->rank + 1]};
}
static inline double kl_loop_now_s(const kilter_loop *l) {
    return kl_now_s(&l->clock);
}
static inline bool kl_loop_pipelined(const kilter_loop *l) {
    return l->options.kind == KILTER_DOACROSS;
}

/* Of the execution that is under way, or begins now. */
static inline kl_blocks kl_loop_blocks(const kilter_loop *l) {
    return (kl_blocks){l->options.inner, l->block, l->execution == 0 ? l->sizes_tried : 0};
}

/* exchange_mpi.c */
/* Rows and their ghosts, as an array has them on a rank with `own`. */
kl_span kl_loop_with_ghosts(const kilter_loop *l, kl_span own, uint64_t ghost);
/* Before the first execution, of a deep loop: memory for as many ghost rows as it may want. */
kilter_status kl_exchange_open(kilter_loop *l, kilter_error *error);
/* Begins to bring what is lacking, and gives in *inner the own rows that need nothing of it. */
kilter_status kl_exchange_begin(kilter_loop *l, kl_span *inner, kilter_error *error);
kilter_status kl_exchange_look(kilter_loop *l, kilter_error *error);
/* *now_s: now; if anything was under way, then when it is done. */
kilter_status kl_exchange_finish(kilter_loop *l, double *now_s, kilter_error *error);
/* All of it, with rows changing only between neighbours at a time. */
kilter_status kl_exchange_by_stages(kilter_loop *l, kilter_error *error);
void kl_legs_free(kl_legs *legs);

/* round_mpi.c */
kilter_status kl_round_open(kilter_loop *l, kilter_error *error); /* before the first execution */
/* An execution begins that has more passes than the last one, or fewer: what is set for later ones takes as
 * long. */
void kl_round_repass(kilter_loop *l, uint64_t passes_before);
/* Before a pass: has the answer to the last report, and l->target by it. */
kilter_status kl_round_answer(kilter_loop *l, kilter_error *error);
/* In it: reports when it is time to, at the latest at its end. */
kilter_status kl_round_hook(kilter_loop *l, bool at_end, kilter_error *error);
/* Once, when all blocks that are tried are done everywhere: l->block by what they took. */
kilter_status kl_round_tried(kilter_loop *l, kilter_error *error);
/* Before an execution of a pipeline: l->block by what is known. */
kilter_status kl_round_blocks(kilter_loop *l, kilter_error *error);
kilter_status kl_round_close(kilter_loop *l, kilter_error *error);
/* What a rank reports adds up until something is decided. */
void kl_report_add(kl_rank_report *sum, const kl_rank_report *last);
void kl_loop_note(kilter_loop *l, const kl_steer_plan *plan); /* in the summary */
void kl_loop_refused(kilter_loop *l, const char *reason);     /* a move, for want of memory */
/* Once, if the loop has lasted so long that this costs it nothing to speak of. */
void kl_loop_measure_quantum(kilter_loop *l);
/* Work is given to the body now. */
void kl_measure_given(kilter_loop *l, double now_s);
void kl_measure(kilter_loop *l, kl_span rows, double now_s);                   /* were done */
void kl_measure_block(kilter_loop *l, const kl_blocks *blocks, kl_span block); /* of a pipeline, was done */
void kl_measure_boundary(kilter_loop *l); /* before the block given now */

/* scatter_mpi.c: instead of the exchanges and rounds above */
kilter_status kl_scatter_open(kilter_loop *l, kilter_error *error);
void kl_scatter_free(struct kl_scatter *scatter);
void kl_scatter_begin(kilter_loop *l);
kilter_status kl_scatter_next(kilter_loop *l, kilter_range *range, bool *got, kilter_error *error);
bool kl_scatter_is_done(const kilter_loop *l);
kilter_status kl_scatter_end(kilter_loop *l, kilter_error *error);
const kl_spans *kl_scatter_own(const kilter_loop *l); /* between two executions */
bool kl_spans_add(kl_spans *spans, kl_span span);     /* false: no memory */
uint64_t kl_spans_sum(const kl_spans *spans);
void kl_spans_free(kl_spans *spans);

/* record_mpi.c: where there is no record, these do nothing; all but the collective ones are rank 0's */
kilter_status kl_loop_record_open(kilter_loop *l, kilter_error *error); /* collective */
void kl_loop_record_array(kilter_loop *l, size_t bytes, uint64_t ghost);
/* l->summary.rounds is its number, and what follows from the plan is in force already. */
void kl_loop_record_round(const kilter_loop *l, const kl_rank_report *reports, const kl_steer_plan *plan);
void kl_loop_record_refused(const kilter_loop *l, const char *reason);
kilter_status kl_loop_record_ranks(kilter_loop *l, kilter_error *error); /* collective, at the end */
/* KILTER_ERR_RECORD: it lacks rows. failure: why the loop ended; NULL: it was closed. */
kilter_status kl_loop_record_end(kilter_loop *l, const kilter_error *failure, kilter_error *error);

/* watch_mpi.c: whoever notices a death, or fails, makes all others notice */
uint8_t *kl_watch_invitations(const kilter_loop *l); /* room for them; NULL: no memory */
/* Where all ranks of `comm` are. */
kilter_status kl_watch_open(kilter_loop *l, MPI_Comm comm, kilter_error *error); /* collective */
void kl_watch_give_up(kilter_loop *l);                                           /* as l->failure says */
void kl_watch_close(kilter_loop *l); /* nobody is dead, or waited for */
void kl_watch_ask(kilter_loop *l);   /* was a death the reason of l->failure, which MPI told? */
kilter_status kl_loop_look_for_deaths(kilter_loop *l, kilter_error *error);
/* The same by a look at the clock that was taken anyway. */
kilter_status kl_loop_look_for_deaths_at(kilter_loop *l, double now_s, kilter_error *error);

/* steps_mpi.c: are all ranks in the same collective call? */
bool kl_loop_checks(void); /* is this rank told to be in checking mode? */
/* A collective call is entered; array and root: those it is about, or 0. */
void kl_step(kilter_loop *l, kl_call call, size_t array, int root);
/* Waits for all ranks, and compares the calls that they are in. words (NULL: none): KL_SUM_WORDS that are
 * added up. KILTER_ERR_USAGE, on all ranks: they differ. */
kilter_status kl_steps_meet(kilter_loop *l, int64_t *words, kilter_error *error);
/* While a rank waits, or now and then. */
kilter_status kl_steps_look(kilter_loop *l, double now_s, kilter_error *error);
kilter_status kl_steps_close(kilter_loop *l, kilter_error *error);

/* guard_mpi.c: rows touched where they are not, named in checking mode */
void kl_guard(kilter_loop *l);
void kl_unguard(kilter_loop *l); /* of one that is not guarded: nothing */
void kl_loop_note_gone(kilter_loop *l, kl_span rows, int to);

/* collect_mpi.c */
bool kl_loop_own_at(const kilter_loop *l, size_t nth, kl_span *range); /* between two executions */

/* --- open_mpi.c, collect_mpi.c: public calls, for sized_mpi.c --- */

kilter_status kl_loop_open(MPI_Comm comm, const kilter_loop_options *options, kilter_loop **loop,
                           kilter_error *error);
void kl_loop_summary_get(const kilter_loop *loop, kilter_loop_summary *summary);

#endif
