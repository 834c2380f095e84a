/* Private to room loop: a loop, made of its parts. The table of parts is in loop/loop.h. */
#ifndef KL_LOOP_MPI_H
#define KL_LOOP_MPI_H

#include "loop/detector_mpi.h"
#include "loop/memory.h"
#include "loop/posts.h"
#include "loop/steps_mpi.h"

typedef enum kl_phase { KL_BETWEEN, KL_WITHIN, KL_BROKEN } kl_phase;

typedef struct kl_record_word { /* message from rank 0 to all ranks */
    kilter_error error;
    uint64_t made; /* 1: there is a record */
} kl_record_word;

struct kilter_loop {
    kilter_loop_options options;
    kl_phase phase;
    kilter_error failure;
    bool closing;
    bool calls_program;  /* a function of the program runs, which must not call the loop */
    int key;             /* MPI attribute key: lets MPI_Finalize() find the loop */
    double began_s;      /* time at which the sweep began */
    uint64_t began_pass; /* number of passes before the sweep */
    kilter_loop *_Atomic next_guarded;

    kl_group group;
    kl_detector detector;
    kl_steps steps;
    kl_rank rank;
    kl_memory memory;
    kilter_loop_content content; /* valid if rank.content.on */
    kl_posts posts;
    kl_requests delivery; /* messages of kilter_loop_deliver() */
    bool rests;           /* the rank rests until the awaited message wakes it */

    struct kl_loop_record *record; /* NULL: there is no record, or this is not rank 0 */
    kl_record_word record_word;
};

static inline double kl_loop_now_s(const kilter_loop *l) {
    return kl_group_now_s(&l->group);
}

/* outcome_mpi.c: summary and failure of the loop */
/* End the loop on this rank with l->failure, and tell the other ranks. */
void kl_loop_break(kilter_loop *l);
kilter_status kl_loop_failed(kilter_loop *l, kilter_status status, kilter_error *error);
/* Check that the loop takes calls; otherwise end it. */
kilter_status kl_loop_enter(kilter_loop *l, const char *call, kilter_error *error);
/* Set l->failure to KILTER_ERR_USAGE: `what` says what is wrong with the call. */
kilter_status kl_loop_misused(kilter_loop *l, const char *call, const char *what);

/* content_mpi.c: content of rows, whose size changes */
/* Pack the rows of the parcels that this rank sends. false: a row cannot be packed, or memory ran out */
bool kl_loop_pack(kilter_loop *l, kl_parcel *parcels, size_t count);
/* Get memory for the parcels that come. false: memory ran out */
bool kl_loop_make_parcels(kl_parcel *parcels, size_t count);
kilter_status kl_loop_unpack(kilter_loop *l, kl_parcel *parcels, size_t count, kilter_error *error);
uint64_t kl_loop_weigh(kilter_loop *l, const kl_ranges *rows);

/* drive_mpi.c: carries out the rank's actions */
/* Carry out a call of the program up to the action that ends the call. *now_s: the time, which is updated. */
kilter_status kl_loop_drive(kilter_loop *l, kl_loop_call call, double *now_s, kilter_error *error);
/* Return the requests of a set of messages. NULL: memory ran out */
kl_requests *kl_loop_requests(kl_set *set);
void kl_loop_forget(kl_set *set); /* free the requests of the set */

/* messages_mpi.c: measures messages, and opens rounds. Collective */
kilter_status kl_loop_open_rounds(kilter_loop *l, kilter_error *error);

/* record_mpi.c: without a record, these functions do nothing. Only rank 0 calls those that are not
 * collective. */
kilter_status kl_loop_record_open(kilter_loop *l, kilter_error *error); /* collective */
void kl_loop_record_array(kilter_loop *l, size_t bytes, uint64_t halo);
/* Record the last round of l->rank, whose plan is in force already. */
void kl_loop_record_round(const kilter_loop *l);
void kl_loop_record_refused(const kilter_loop *l, const char *reason);
kilter_status kl_loop_record_ranks(kilter_loop *l, kilter_error *error); /* collective, at the end */
/* End the record. failure: the reason why the loop ended; NULL: it was closed. KILTER_ERR_RECORD: rows are
 * missing. */
kilter_status kl_loop_record_end(kilter_loop *l, const kilter_loop_summary *summary,
                                 const kilter_error *failure, kilter_error *error);

/* guard_mpi.c: in checking mode, reports accesses to rows that are on other ranks */
void kl_guard(kilter_loop *l);
void kl_unguard(kilter_loop *l); /* does nothing if the loop is not guarded */

/* --- open_mpi.c, content_mpi.c, outcome_mpi.c: public calls, for sized_mpi.c --- */

kilter_status kl_loop_open(MPI_Comm comm, const kilter_loop_options *options, kilter_loop **loop,
                           kilter_error *error);
kilter_status kl_loop_declare(kilter_loop *loop, const kilter_loop_content *content, kilter_error *error);
void kl_loop_summary_get(const kilter_loop *loop, kilter_loop_summary *summary);

#endif
