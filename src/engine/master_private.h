/* Inside of the master: what its parts share. Nobody else includes this. */
#ifndef KL_MASTER_PRIVATE_H
#define KL_MASTER_PRIVATE_H

#include "engine/engine.h"
#include "probe/probe.h"

typedef enum stage {
    GREETING, /* joined, has not said who it is */
    STARTING, /* its start function runs */
    PROBING,  /* messages to it are being timed */
    WORKING,  /* it is dealt work */
    LEAVING,  /* it was told to finish its task and go */
    GONE,
} stage;

typedef struct member {
    kl_peer peer;
    stage stage;
    bool has_place;  /* in the balance: from STARTING on, until it is forgotten */
    uint32_t worker; /* which place */
    uint32_t number; /* what everybody calls it: nobody else ever will be */
    kl_hello hello;
    double joined_s;
    kl_probe probe;
    uint64_t shared;       /* generation of the shared data it has; 0: none */
    const char *sent_home; /* why, when LEAVING */
    bool hungry, held, resting;
    bool nothing_alone;    /* as it was seen: all it has is done, or at others, too; false: to be looked at */
    double asked_s;        /* since when it is hungry */
    double heard_s;        /* when anything came from it last */
    double cpu_s, delay_s; /* of its process so far, as it told last; cpu_s 0: it never did */
    double run_cpu_s, run_delay_s; /* of them, in this run */
    kl_pulse pulse;                /* the last one, which came at pulse_s; 0: none has */
    double pulse_s;
    kl_chunk *chunks; /* at the worker, oldest first */
    size_t chunk_count, chunk_capacity;
} member;

/* Tasks [lo, hi) that are at two workers: the end of the first chunk, and the second one, a copy, of which
 * there may be a copy again. */
typedef struct kl_twin {
    uint64_t lo, hi, chunk[2];
    uint32_t worker[2]; /* which have these chunks */
    uint32_t copies;    /* of the same tasks so far, this one included */
    uint64_t next[2];   /* in the chains of these chunks */
} kl_twin;

typedef struct kl_twins { /* zeroed: there are none; twins.c */
    kl_twin *list;
    uint64_t count, room;
    uint64_t *buckets, bucket_count; /* of chains; a power of 2 */
} kl_twins;

/* Tasks to be dealt when nothing else is left, each alone: `last` had them, and was lost with them, or they
 * failed there. */
typedef struct kl_suspect {
    kl_span span;
    uint32_t last; /* the worker's number */
} kl_suspect;

/* A worker was asked to give tasks of this chunk back. */
typedef struct kl_asked {
    uint32_t worker;
    uint64_t chunk;
} kl_asked;

struct kl_master {
    kl_master_options options;
    kl_transport *transport;
    kl_balance balance;
    kl_trace *trace;
    double opened_s;

    member *members; /* by rising peer id */
    size_t member_count, member_capacity;
    kl_peer *peers; /* by worker */
    uint32_t peer_count;
    uint32_t ready, resting, refused; /* ready: those resting included */
    uint32_t probing, leaving;
    uint32_t gone;     /* members that are, and not forgotten yet */
    uint32_t coming;   /* workers being started */
    uint32_t greeting; /* have joined, and not said who they are */
    double silent_s;   /* then the first of them is sent away */
    char last_loss[256];

    kl_buffer shared; /* the SHARED message in force */
    uint64_t shared_generation;
    uint64_t shared_bytes; /* of the data in it */

    kl_limits limits; /* of this run */
    bool running;
    bool open;  /* more tasks may come */
    bool grown; /* some have */
    uint64_t runs, done, failed;
    uint64_t finished;          /* tasks, in all runs */
    uint64_t failures_recorded; /* of this run */
    double began_s, ended_s;
    kl_spans done_before; /* of the next run */
    uint64_t unsafe;      /* results taken, of those in `done`, that may still be lost */
    bool holds;           /* too many: nothing is dealt */
    kl_twins twins;
    bool copied; /* a task of this run was given to a second worker: it may be done again */
    kl_suspect *suspects;
    uint64_t suspect_count, suspect_room;
    uint64_t suspect_tasks;
    bool feed_all;       /* something changed for everybody */
    double look_again_s; /* at workers held back, or that end late; 0: at none */
    double empty_s;      /* since then nothing is left to deal; 0: something is */
    kl_asked *asked;     /* recalls that may not be answered yet */
    size_t asked_count, asked_capacity;
    kl_delivery_list results;
    char decision[512];
    kilter_farm_summary summary;

    kl_use use;        /* of the last run */
    uint64_t messages; /* taken in, in this one */
    bool use_known;    /* CPU time, when it began: */
    double farm_then_s, callbacks_then_s;

    kl_tuning pending; /* for the next run */
    uint32_t seats;    /* workers wanted in a run; 0: all */
    bool by_hand;      /* `seats` was set from outside */
    bool chooses;      /* the farm chooses `seats` itself */
    kl_team team;
    kl_glance glance;        /* of this run, */
    double glance_due_s;     /* its next look; HUGE_VAL: none */
    kl_line alone;           /* that time against the tasks of the run before it [t_M(T)] */
    double lost_s;           /* of a run, to more than the model of fork and join knows of */
    uint64_t lost_runs;      /* that this was learned from, those before them included */
    kl_grain_plan grain;     /* answered, for the next run; tasks = 0: nobody asked */
    kl_expectation expected; /* likewise of the coming runs; runs = 0: nothing */
    double master_s;         /* the master's own time since the last run [l_m] */
    size_t shared_sent;      /* bytes of shared data that the run sent to each worker */
    kl_farm_state state;     /* what of it changes only between runs */
};

/* --- members.c: who is in the farm --- */

member *kl_master_find(kl_master *master, kl_peer peer);            /* NULL: nobody */
member *kl_master_member(const kl_master *master, uint32_t worker); /* by its place; NULL: it is gone */
/* Whoever is gone is forgotten. */
kilter_status kl_master_add(kl_master *master, kl_peer peer, kilter_error *error);
/* Whoever joined too long ago and has not said who it is goes. */
kilter_status kl_master_expel_silent(kl_master *master, kilter_error *error);
void kl_master_warn(const kl_master *master, const char *text, const char *more);
/* The member is gone: what it had not finished is dealt again. is_lost: it did not go by itself, so that one
 * of its tasks may be to blame. */
kilter_status kl_master_lose(kl_master *master, member *one, const char *why, bool is_lost,
                             kilter_error *error);
kilter_status kl_master_lose_connection(kl_master *master, member *one, kilter_error *error);
/* Send it away, and tell it why: it does not keep to the protocol, or cannot work. */
kilter_status kl_master_expel(kl_master *master, member *one, const char *why, kilter_error *error);
kilter_status kl_master_on_hello(kl_master *master, member *one, const kl_message *message,
                                 kilter_error *error);
kilter_status kl_master_on_ready(kl_master *master, member *one, const kl_message *message,
                                 kilter_error *error);
kilter_status kl_master_on_echo(kl_master *master, member *one, const kl_message *message,
                                kilter_error *error);
kilter_status kl_master_on_refuse(kl_master *master, member *one, const kl_message *message,
                                  kilter_error *error);
kilter_status kl_master_on_leave(kl_master *master, member *one, const kl_message *message,
                                 kilter_error *error);
void kl_master_record_worker(kl_master *master, const member *one);
void kl_master_record_message_cost(kl_master *master, int64_t worker); /* −1: of the farm */

/* --- twins.c: tasks that are at several workers --- */

/* Ask for [from, chunk->hi) of its chunk back, as far as it is not begun. */
kilter_status kl_master_recall(kl_master *master, member *one, kl_chunk *chunk, uint64_t from,
                               kilter_error *error);
bool kl_master_is_copy(const kl_master *master, const kl_chunk *chunk);
/* Deal [lo, hi), the end of `chunk` or of what is in it at one worker alone, to `to` as well. */
kilter_status kl_master_copy(kl_master *master, const kl_chunk *chunk, uint64_t lo, uint64_t hi, member *to,
                             double finish_s, kilter_error *error);
/* The tasks of the chunk from chunk->at to here may be given to another worker, too: none was after this one,
 * and they are not at the most already. */
uint64_t kl_master_alone_until(const kl_master *master, const kl_chunk *chunk);
/* The first part of `span` that is at another worker, too, because of this chunk; empty: none. */
kl_span kl_master_first_shared(const kl_master *master, uint64_t chunk, kl_span span);
void kl_twins_clear(kl_twins *twins);
void kl_twins_free(kl_twins *twins);
/* `tasks` of this chunk are done: who has them besides need not do them. */
kilter_status kl_master_settle_twins(kl_master *master, uint64_t chunk, kl_span tasks, kilter_error *error);
/* The chunk will not do `span` of it: what is shared stays with the others. *at_other: one of them has some
 * of it, and may do it. */
kilter_status kl_master_part_twins(kl_master *master, uint64_t chunk, kl_span span, bool *at_other,
                                   kilter_error *error);

/* --- results.c: what comes back from workers --- */

kilter_status kl_master_on_results(kl_master *master, member *one, kl_message *message, kilter_error *error);
kilter_status kl_master_on_return(kl_master *master, member *one, const kl_message *message,
                                  kilter_error *error);
/* The member will not do [from, hi) of its i-th chunk: what nobody else has is dealt again, the first *blamed
 * of them singly. */
kilter_status kl_master_give_up(kl_master *master, member *one, size_t i, uint64_t from, uint64_t *blamed,
                                kilter_error *error);
kilter_status kl_master_take_all_back(kl_master *master, member *one, bool is_lost, kilter_error *error);
/* The run ends: whatever is still at workers counts no more. */
void kl_master_end_chunks(kl_master *master);
/* It has a task that may cost it its life. Nothing else is dealt to it then, so that it is known which it
 * was. */
bool kl_master_has_suspect(const kl_master *master, const member *one);
/* Nobody has these tasks any more, after `last` had. One that was at a lost worker is dealt alone, or has
 * failed.
 */
kilter_status kl_master_deal_again(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* One that may be dealt to this worker: where others are that can take it, not what it had before. */
bool kl_master_take_suspect(kl_master *master, const member *to, uint64_t *task);
/* This task, at hand there, has failed. It is tried again elsewhere, if it may be. */
kilter_status kl_master_fail_attempt(kl_master *master, const member *one, const kl_chunk *chunk,
                                     uint64_t task, const char *why, kilter_error *error);

/* --- master.c: turns and runs --- */

/* Deal to `to` tasks that are not in the bag. *chunk is empty, lo = hi, if it has left: then they are dealt
 * to nobody. */
kilter_status kl_master_deal_span(kl_master *master, member *to, kl_span span, double finish_s,
                                  kl_chunk *chunk, kilter_error *error);

/* worker: −1: of the farm as a whole */
void kl_master_record_measurement(kl_master *master, int64_t worker, const char *kind, double value);
/* Where no clock sees the master work, the time its work takes is declared. */
void kl_master_declare_answer(const kl_master *master);

/* --- limits.c: what a task may take --- */

/* A pulse has come: has the task at hand taken too much? Then it has failed, and the worker is gone. */
kilter_status kl_master_check_hand(kl_master *master, member *one, kilter_error *error);
kilter_status kl_master_on_renewal(kl_master *master, member *one, const kl_message *message,
                                   kilter_error *error);

/* --- drain.c: who is sent home --- */

void kl_master_send_home(kl_master *master, member *one, const char *why);
void kl_master_note_leaving(kl_master *master, member *one, const char *why); /* it goes by itself */

/* --- use.c: what a run costs --- */

void kl_master_use_begins(kl_master *master);
void kl_master_use_told(const kl_master *master, member *one, const kl_results_head *head);
kl_use kl_master_use_so_far(const kl_master *master); /* of the run that is on; zeroed: not known */
void kl_master_record_use(kl_master *master);

/* --- glance.c: the number of workers within a run --- */

void kl_master_glance_begins(kl_master *master);
/* Is it time for a look? Then it may let workers rest, or wake them. */
kilter_status kl_master_glance(kl_master *master, kilter_error *error);

/* --- rescue.c: the end of a run --- */

/* Nothing is left to deal: take tasks back from workers that end late, or do them twice. */
kilter_status kl_master_rescue(kl_master *master, kilter_error *error);

/* --- team.c: who works --- */

/* Rest and wake as `seats` wants it: the fastest work. */
/* A run has begun: the record gets what was answered before it. */
void kl_master_record_grain(kl_master *master);
void kl_master_record_expectation(kl_master *master);
kilter_status kl_master_seat(kl_master *master, kilter_error *error);
void kl_master_rest(kl_master *master, member *one); /* it has come, and enough work */
/* One that worked is lost: another one, resting, takes its place. */
void kl_master_wake_for_lost(kl_master *master);
/* A run is about to begin: what was set or is to be decided between runs takes effect. */
kilter_status kl_master_between_runs(kl_master *master, kilter_error *error);
void kl_master_record_look(kl_master *master, uint32_t workers); /* state.decision says what came of it */
kl_iteration kl_master_iteration(kl_master *master); /* of the last run that ended, in the model's terms */
kl_iteration
kl_master_iteration_so_far(kl_master *master);    /* of the part that is done of the run that is on */
void kl_master_note_iteration(kl_master *master); /* a run has ended */

#endif
