/* Private to the folder loop: the struct of a loop, which consists of parts. The table of parts is in
 * loop/loop.h. */
#ifndef KL_LOOP_MPI_H
#define KL_LOOP_MPI_H

#include "loop/detector_mpi.h"
#include "loop/memory.h"
#include "loop/posts.h"
#include "loop/saver_mpi.h"
#include "loop/steps_mpi.h"

typedef enum kl_phase { KL_BETWEEN, KL_WITHIN, KL_BROKEN } kl_phase;

typedef struct kl_record_word { /* A message of rank 0 to all ranks about the run record. */
    kilter_error error;
    uint64_t made; /* 1: there is a record; 0: there is none */
} kl_record_word;

/* The data that aligned loops share: ranks, calls, and the memory of all arrays. Only one of these loops can
 * be in a sweep, and a failure ends all of them. A loop without followers has a kl_bundle of its own. */
typedef struct kl_bundle {
    kilter_loop *leader;
    /* opened: number of followers opened so far; followers: number of followers that are still open */
    uint64_t opened, followers;
    kl_phase phase;
    kilter_loop *sweeps; /* the loop whose sweep is under way; only valid in phase KL_WITHIN */
    /* true: one of the aligned loops has begun a sweep, so arrays can no longer be attached */
    bool begun;
    /* true: the program has called kilter_loop_resumed(), so nothing can be declared any more */
    bool resumed;
    kilter_error failure;
    bool closing;
    bool calls_program; /* true: a function of the program is running, which must not call the loops */
    int key;            /* key of the MPI attribute with which MPI_Finalize() finds the leading loop */

    kl_group group;
    kl_detector detector;
    kl_steps steps;
    kl_memory memory;
} kl_bundle;

struct kilter_loop {
    kilter_loop_options options;
    kl_bundle *bundle;   /* the data shared with aligned loops; the leading loop frees them */
    char *name;          /* name of the loop, for error messages */
    uint64_t number;     /* number of this follower; 0: this is the leading loop */
    double began_s;      /* time at which the present or last sweep began */
    uint64_t began_pass; /* number of passes done before the present or last sweep */
    kilter_loop *_Atomic next_guarded;

    kl_rank rank;
    kilter_loop_content content; /* the functions for row content; valid if rank.content.on is true */
    kl_posts posts;
    kl_requests delivery; /* requests of the messages that kilter_loop_deliver() exchanges */
    bool rests;           /* true: the rank sleeps until an awaited message wakes it */

    struct kl_loop_record *record; /* the run record; NULL: there is none, or this is not rank 0 */
    kl_record_word record_word;

    kl_kept kept;
    kl_saver *saver; /* state of the checkpoints; NULL: the loop has no checkpoints */
    /* progress of the loop, which this rank writes for `kilter run --keep` (the keeper); NULL: there is no
     * keeper, or this is not rank 0 */
    struct kl_loop_progress *progress;
    void *opening; /* message about checkpoints; used only while the loop is opened */
};

static inline double kl_loop_now_s(const kilter_loop *l) {
    return kl_group_now_s(&l->bundle->group);
}
/* Return whether a sweep of this loop is under way. */
static inline bool kl_loop_sweeps(const kilter_loop *l) {
    return l->bundle->phase == KL_WITHIN && l->bundle->sweeps == l;
}
static inline bool kl_loop_leads(const kilter_loop *l) {
    return l->bundle->leader == l;
}

/* Check a collective call of the loop against the calls of the other ranks. */
static inline void kl_loop_step(kilter_loop *l, kl_call call) {
    kl_step(&l->bundle->steps, call, kl_meter_sweep(&l->rank.meter), (size_t)l->number, 0);
}

/* --- outcome_mpi.c: summary and failure of the loop --- */
/* End the loop on this rank because of l->bundle->failure, and tell the other ranks. */
void kl_loop_break(kilter_loop *l);
/* End the loop because of l->bundle->failure, on which all ranks have agreed. The other ranks are not told:
 * a message could reach them before they know of the agreement. */
void kl_loop_end_together(kilter_loop *l);
kilter_status kl_loop_failed(kilter_loop *l, kilter_status status, kilter_error *error);
/* Check that the program may call the loop now. If not, end the loop. */
kilter_status kl_loop_enter(kilter_loop *l, const char *call, kilter_error *error);
/* Set l->bundle->failure to KILTER_ERR_USAGE. what: what is wrong with the call. */
kilter_status kl_loop_misused(kilter_loop *l, const char *call, const char *what);

/* --- content_mpi.c: row content, which is data of changing size --- */
/* Pack the rows of the parcels that this rank sends. Return false if a row cannot be packed, or memory ran
 * out. */
bool kl_loop_pack(kilter_loop *l, kl_parcel *parcels, size_t count);
/* Get memory for the parcels that this rank receives. Return false if memory ran out. */
bool kl_loop_make_parcels(kl_parcel *parcels, size_t count);
kilter_status kl_loop_unpack(kilter_loop *l, kl_parcel *parcels, size_t count, kilter_error *error);
uint64_t kl_loop_weigh(kilter_loop *l, const kl_ranges *rows);

/* --- drive_mpi.c: carrying out the rank's actions --- */
/* Carry out the rank's actions for a call of the program, until an action ends the call. *now_s: the present
 * time, which this function updates. */
kilter_status kl_loop_drive(kilter_loop *l, kl_loop_call call, double *now_s, kilter_error *error);
/* Return the MPI requests of a set of messages. Return NULL if memory ran out. */
kl_requests *kl_loop_requests(kl_set *set);
void kl_loop_forget(kl_set *set); /* free the requests of the set */

/* --- messages_mpi.c: measuring the cost of messages, and beginning rounds of balancing. Collective. --- */
kilter_status kl_loop_open_rounds(kilter_loop *l, kilter_error *error);

/* --- record_mpi.c: the run record. Without a record, these functions do nothing. Only rank 0 calls the
 * functions that are not collective. --- */
kilter_status kl_loop_record_open(kilter_loop *l, kilter_error *error); /* all ranks call this */
void kl_loop_record_array(kilter_loop *l, size_t bytes, uint64_t halo);
/* Record the last round of balancing. The plan that was made in this round is already in force. */
void kl_loop_record_round(const kilter_loop *l);
void kl_loop_record_refused(const kilter_loop *l, const char *reason);
void kl_loop_record_decision(const kilter_loop *l, double at_s, const kl_decision *decision);
/* All ranks call this before the record ends. */
kilter_status kl_loop_record_ranks(kilter_loop *l, kilter_error *error);
/* End the record. failure: the reason why the loop ended; NULL: the loop was closed. KILTER_ERR_RECORD: the
 * record lacks some of its rows. */
kilter_status kl_loop_record_end(kilter_loop *l, const kilter_loop_summary *summary,
                                 const kilter_error *failure, kilter_error *error);

/* --- progress_mpi.c: the progress of a program that `kilter run --keep` (the keeper) watches. Without a
 * keeper, these functions do nothing. Only rank 0 calls the functions that are not collective. --- */
kilter_status kl_loop_progress_open(kilter_loop *l, kilter_error *error); /* all ranks call this */
void kl_loop_progress_free(kilter_loop *l);
void kl_loop_progress_begin(kilter_loop *l); /* tell the keeper that a sweep begins */
void kl_loop_progress_news(kilter_loop *l);  /* tell the keeper that a checkpoint was completed or failed */
/* Return the keeper's request. The next checkpoint answers this request. */
kl_keep_what kl_loop_progress_asked(kilter_loop *l, double now_s);
void kl_loop_progress_end(kilter_loop *l); /* tell the keeper that the loop was closed */

/* --- saver_mpi.c: checkpoints. Without checkpoints, these functions do nothing. --- */
/* Open the checkpoints if rank 0's options ask for them. Collective. *refused is true if rank 0 refuses the
 * options, or if a rank lacks memory or cannot write to the folder. All ranks then fail in the same way, and
 * the caller frees the loop. */
kilter_status kl_loop_saver_open(kilter_loop *l, bool *refused, kilter_error *error);
void kl_loop_saver_free(kilter_loop *l);
/* Save the rows before a sweep if the ranks have agreed to save. Collective. KILTER_ERR_STOPPED: the run
 * stops. */
kilter_status kl_loop_save_if_due(kilter_loop *l, kilter_error *error);
kilter_status kl_loop_saver_look(kilter_loop *l, kilter_error *error); /* check whether the checkpoint that is
                                                                          being written is complete */
kilter_status kl_loop_saver_close(kilter_loop *l, kilter_error *error); /* all ranks call this */

/* --- facts_mpi.c: what a checkpoint of this program holds --- */
kl_ckpt_facts kl_loop_facts(const kilter_loop *l);
bool kl_loop_plan(const kilter_loop *l, const kl_ckpt_facts *facts, uint64_t content_bytes,
                  kl_ckpt_plan *plan); /* Return false if memory ran out. */

/* resume_mpi.c */
/* Prepare the checkpoints of a program that did not call kilter_loop_resumed(). If checkpoints exist
 * already, refuse, because the program's files would mix with those of another run. Collective, before the
 * first sweep. */
kilter_status kl_loop_settle(kilter_loop *l, kilter_error *error);

/* --- guard_mpi.c: in checking mode, reports of accesses to rows that are on other ranks --- */
void kl_guard(kilter_loop *l);
void kl_unguard(kilter_loop *l); /* no effect if the loop is not guarded */

/* --- follow_mpi.c: loops whose rows follow the rows of another loop. Collective. --- */
kilter_status kl_loop_follow(const kilter_loop_options *options, kilter_loop **loop, kilter_error *error);
/* Free a follower. Its arrays stay until the leading loop is closed. */
kilter_status kl_loop_unfollow(kilter_loop *l, kilter_error *error);

/* --- handle_mpi.c: the handle of a loop, and its options --- */
kilter_status kl_loop_agree_on_options(kilter_loop *l, kilter_error *error); /* all ranks call this */
/* Return why the options cannot be used. Return NULL if they can be used. */
const char *kl_loop_wrong_option(const kilter_loop_options *options);
/* Make a handle for a loop on the ranks of bundle->group. Return NULL if memory ran out. */
kilter_loop *kl_loop_new_handle(const kilter_loop_options *options, kl_bundle *bundle);
void kl_loop_free_handle(kilter_loop *l);           /* frees all but l->bundle */
kl_bundle *kl_loop_new_bundle(int rank, int ranks); /* Return NULL if memory ran out. */
/* call this after the bundle's leading loop was closed */
void kl_loop_free_bundle(kl_bundle *bundle);

/* --- collect_mpi.c: checking a call that collects rows between two sweeps. The call is wrong if `array` or
 * `other` is NULL. --- */
kilter_status kl_loop_check_collect(kilter_loop *l, const char *call, const kl_array *array,
                                    const void *other);

/* --- attach_mpi.c: arrays of a loop and of the loops aligned with it --- */
/* Return the attached array with this base. Return NULL if there is none. */
const kl_array *kl_loop_array_at(const kilter_loop *l, const void *base);
/* Return the index (0, 1, …) of an attached array in the loop's list. */
size_t kl_loop_index_of(const kilter_loop *l, const kl_array *array);
/* Set *range to range number `nth` of this rank's rows of the array. Return false if there are fewer
 * ranges. */
bool kl_loop_array_own(const kilter_loop *l, const kl_array *array, size_t nth, kl_span *range);

/* --- open_mpi.c, content_mpi.c, outcome_mpi.c: functions that carry out public calls; sized_mpi.c calls them
 * --- */

kilter_status kl_loop_open(MPI_Comm comm, const kilter_loop_options *options, kilter_loop **loop,
                           kilter_error *error);
kilter_status kl_loop_declare(kilter_loop *loop, const kilter_loop_content *content, kilter_error *error);
void kl_loop_summary_get(const kilter_loop *loop, kilter_loop_summary *summary);

#endif
