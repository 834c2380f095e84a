/* A loop, made of its parts. Private to room loop; the table of parts is in loop/loop.h. */
#ifndef KL_LOOP_MPI_H
#define KL_LOOP_MPI_H

#include "loop/detector_mpi.h"
#include "loop/exchange_mpi.h"
#include "loop/ranges.h"
#include "loop/rounds_mpi.h"
#include "loop/steps_mpi.h"

typedef enum kl_phase { KL_BETWEEN, KL_WITHIN, KL_BROKEN } kl_phase;

/* Work for the body: rows; in a pipeline, the elements `inner` of them. */
typedef struct kl_given {
    kl_span rows, inner;
} kl_given;

/* The operations in which loops differ. Those marked NULL may be missing. */
typedef struct kl_kind {
    bool anywhere; /* a rank's rows are several ranges, in any order of ranks */
    bool buffers;  /* a rank may be ahead of those after it, by a sweep */
    kilter_status (*open)(kilter_loop *l, kilter_error *error); /* NULL */
    void (*close)(kilter_loop *l);                              /* frees its part; NULL */
    /* Messages are measured: prepare what is to be chosen. NULL */
    void (*prepare)(kilter_loop *l);
    /* A decision is about to be made from rounds.all. NULL */
    void (*learn)(kilter_loop *l);
    /* Between two sweeps: the nth range of own rows. false: there are fewer */
    bool (*own)(const kilter_loop *l, size_t nth, kl_span *range);
    kilter_status (*begin)(kilter_loop *l, kilter_error *error);
    kilter_status (*next)(kilter_loop *l, kl_given *given, bool *got, kilter_error *error);
    bool (*is_done)(const kilter_loop *l); /* nothing of the sweep is left here */
    kilter_status (*end)(kilter_loop *l, kilter_error *error);
    double (*sweep_done)(const kilter_loop *l); /* the part of the sweep that is done here, 0 … 1 */
    double (*pass_done)(const kilter_loop *l);  /* and of the pass */
} kl_kind;

extern const kl_kind kl_ranged, kl_pipelined, kl_scattered;

typedef struct kl_work { /* of a sweep, where each rank has one range */
    kl_span all;         /* rows to do, with those of neighbours */
    kl_span todo;        /* of them, to be given now */
    kl_span edges[2];    /* to do once the exchange is complete */
    kl_span given;       /* and being done; empty: none */
    uint64_t done;       /* rows */
} kl_work;

typedef struct kl_flow {  /* of a pipeline */
    uint64_t block;       /* elements */
    uint64_t done, asked; /* blocks that are done, and whose boundaries are asked for */
    kl_span pass;         /* the blocks of the present one */
    bool in_block;
    double body_over_s, absent_s; /* when the last body was done; waited for the next block's boundary */
    kl_grain grain;
    uint32_t sizes_tried;      /* in the first sweep */
    double try_s;              /* the one under way */
    double tried_s[KL_SIZES];  /* here, an element of a row; the least */
    kl_requests coming, going; /* boundaries of blocks */
} kl_flow;

typedef struct kl_record_word { /* of rank 0, to all */
    kilter_error error;
    uint64_t made; /* there is a record */
} kl_record_word;

struct kilter_loop {
    kilter_loop_options options;
    const kl_kind *kind;
    kl_phase phase;
    kilter_error failure;
    bool closing;
    int key;        /* by which MPI_Finalize() finds the loop */
    double began_s; /* the sweep */
    kilter_loop *_Atomic next_guarded;

    kl_group group;
    kl_detector detector;
    kl_steps steps;
    kl_layout layout;
    kl_meter meter;
    kl_exchange exchange;
    kl_loop_rounds rounds;
    kl_work work;
    kl_flow flow;
    struct kl_scatter *scatter; /* NULL: each rank has one range */

    struct kl_loop_record *record; /* NULL: none, or this is not rank 0 */
    kl_record_word record_word;
};

static inline double kl_loop_now_s(const kilter_loop *l) {
    return kl_group_now_s(&l->group);
}

/* outcome_mpi.c: what has come of the loop */
/* The loop has failed here, as l->failure says; the others hear of it. */
void kl_loop_break(kilter_loop *l);
kilter_status kl_loop_failed(kilter_loop *l, kilter_status status, kilter_error *error);
/* KILTER_ERR_USAGE in l->failure: `what` is wrong with a call. */
kilter_status kl_loop_misused(kilter_loop *l, const char *call, const char *what);

/* ranged_mpi.c, of which a pipeline is made, too */
bool kl_ranged_own(const kilter_loop *l, size_t nth, kl_span *range);
/* The last exchange could not move rows: the steer hears of it. */
void kl_ranged_settle(kilter_loop *l);

/* record_mpi.c: where there is no record, these do nothing; all but the collective ones are rank 0's */
kilter_status kl_loop_record_open(kilter_loop *l, kilter_error *error); /* collective */
void kl_loop_record_array(kilter_loop *l, size_t bytes, uint64_t halo);
/* l->meter.all.rounds is its number, and what follows from the plan is in force already. */
void kl_loop_record_round(const kilter_loop *l, const kl_rank_report *reports, const kl_steer_plan *plan);
void kl_loop_record_refused(const kilter_loop *l, const char *reason);
kilter_status kl_loop_record_ranks(kilter_loop *l, kilter_error *error); /* collective, at the end */
/* KILTER_ERR_RECORD: it lacks rows. failure: why the loop ended; NULL: it was closed. */
kilter_status kl_loop_record_end(kilter_loop *l, const kilter_loop_summary *summary,
                                 const kilter_error *failure, kilter_error *error);

/* guard_mpi.c: rows touched where they are not, named in checking mode */
void kl_guard(kilter_loop *l);
void kl_unguard(kilter_loop *l); /* of one that is not guarded: nothing */

/* --- open_mpi.c, collect_mpi.c: public calls, for sized_mpi.c --- */

kilter_status kl_loop_open(MPI_Comm comm, const kilter_loop_options *options, kilter_loop **loop,
                           kilter_error *error);
void kl_loop_summary_get(const kilter_loop *loop, kilter_loop_summary *summary);

#endif
