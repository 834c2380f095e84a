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
    uint32_t worker; /* which place it has in the balance */
    uint32_t number; /* the worker's number, which no other worker ever gets */
    bool has_place;  /* from STARTING on, until it is forgotten */
    bool attends;    /* it answers, and sends heartbeats, while a task runs */
    bool hungry, held, resting;
    bool nothing_alone;            /* all it has is done, or is at other workers, too; false: not known */
    char *host, *binding;          /* as its greeting says, one block; NULL: it has sent none */
    uint64_t pid;                  /* of its process */
    uint64_t shared;               /* generation of the shared data it has; 0: none */
    const char *sent_home;         /* why, when LEAVING */
    double joined_s;               /* when it joined */
    double asked_s;                /* since when it is hungry */
    double heard_s;                /* when its last message came */
    double cpu_s, delay_s;         /* of its process so far, as it told last; cpu_s 0: it never did */
    double run_cpu_s, run_delay_s; /* the same, in this run */
    kl_heartbeat heartbeat;        /* its last heartbeat, which came at heartbeat_s; 0: none has */
    double heartbeat_s;
    kl_probe probe;
    kl_chunk *chunks; /* at the worker, oldest first */
    uint32_t chunk_count;
    uint64_t chunk_room;
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
    bool any; /* a task of this run was given to a second worker: it may be done again */
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

/* The members of the farm, and how many of them are at which stage; registry.c */
typedef struct kl_registry {
    member *list; /* by rising peer */
    size_t count;
    uint64_t room;
    kl_peer *peers; /* by worker */
    uint32_t peer_count;
    uint32_t greeting, probing, ready, leaving; /* ready: those resting included */
    uint32_t resting;
    uint32_t gone;       /* members that are gone, and not forgotten yet */
    uint32_t refused;    /* that could not work, or left unasked, so far */
    uint32_t coming;     /* workers being started */
    double silent_s;     /* when the first of those greeting is sent away */
    char last_loss[256]; /* in words */
} kl_registry;

typedef struct kl_shared_data { /* deal.c */
    kl_buffer message;          /* the SHARED message in force */
    uint64_t generation;
    uint64_t bytes; /* of the data in it */
    size_t sent;    /* bytes of shared data that the run sent to each worker */
} kl_shared_data;

/* The run that is on, or the last one; runs.c */
typedef struct kl_run_state {
    uint64_t number; /* of the run that is on, or of the next one; the first is 0 */
    bool running;
    bool open;  /* more tasks may come */
    bool grown; /* some have */
    bool holds; /* too many results are unsafe: nothing is dealt */
    kl_limits limits;
    double began_s, ended_s;
    uint64_t done, failed;
    uint64_t unsafe;   /* results taken, of those in `done`, that may still be lost */
    uint64_t finished; /* tasks, in all runs */
    uint64_t failures_recorded;
    kl_spans done_before; /* of the next run */
    kilter_farm_summary summary;
    char decision[512]; /* the summary's */
} kl_run_state;

typedef struct kl_suspects { /* undone.c */
    kl_suspect *list;
    uint64_t count, room;
    uint64_t tasks;
} kl_suspects;

typedef struct kl_feeding { /* feed.c */
    bool all;               /* something changed for every worker */
    double look_again_s;    /* at workers held back, or that end late; 0: at none */
    double empty_s;         /* since then nothing is left to deal; 0: something is */
} kl_feeding;

typedef struct kl_recalls { /* rescue.c */
    kl_asked *list;         /* recalls that may not be answered yet */
    uint64_t count, room;
} kl_recalls;

typedef struct kl_run_use { /* use.c */
    kl_use last;            /* of the last run */
    uint64_t messages;      /* taken in, in this run */
    bool known;             /* CPU time, when the run began: */
    double farm_then_s, callbacks_then_s;
} kl_run_use;

/* How many workers are active; team.c, within a run glance.c */
typedef struct kl_staff {
    kl_tuning pending; /* for the next run */
    uint32_t seats;    /* workers wanted in a run; 0: all */
    bool by_hand;      /* `seats` was set from outside */
    bool chooses;      /* the farm chooses `seats` itself */
    kl_team team;
    kl_glance glance;    /* of this run, */
    double glance_due_s; /* its next look; HUGE_VAL: none */
} kl_staff;

/* The number of tasks of the coming runs; planning.c */
typedef struct kl_planning {
    kl_line alone;           /* the master's own time against the tasks of the run before it [t_M(T)] */
    double master_s;         /* that time since the last run [l_m] */
    double lost_s;           /* of a run, to more than the model of fork and join knows of */
    uint64_t lost_runs;      /* runs so far when lost_s was learned */
    kl_grain_plan grain;     /* answered, for the next run; tasks = 0: nobody asked */
    kl_expectation expected; /* likewise of the coming runs; runs = 0: nothing */
} kl_planning;

struct kl_master {
    kl_master_options options;
    kl_transport *transport;
    kl_balance balance;
    kl_trace *trace;
    double opened_s;
    kl_registry members;
    kl_shared_data shared;
    kl_run_state run;
    kl_twins twins;
    kl_suspects suspects;
    kl_feeding feeding;
    kl_recalls asked;
    kl_run_use use;
    kl_staff staff;
    kl_planning planning;
    kl_delivery_list results;
    kl_farm_state state; /* what of it changes only between runs; state.c */
};

/* A part uses only parts that stand above it here. */

/* --- registry.c --- */

void kl_member_free(member *one);                                   /* what it holds, not itself */
member *kl_master_find(kl_master *master, kl_peer peer);            /* NULL: nobody */
member *kl_master_member(const kl_master *master, uint32_t worker); /* by its place; NULL: it is gone */
/* Forgets those that are gone. */
kilter_status kl_master_add(kl_master *master, kl_peer peer, kilter_error *error);
/* The worker of this place is at that peer. */
kilter_status kl_master_note_peer(kl_master *master, uint32_t worker, kl_peer peer, kilter_error *error);

/* --- rows.c: rows of the record --- */

void kl_master_record_worker(kl_master *master, const member *one);
/* worker: −1: of the farm as a whole */
void kl_master_record_measurement(kl_master *master, int64_t worker, const char *kind, double value);
void kl_master_record_mean(kl_master *master, int64_t worker, const char *kind, double mean, double sd,
                           uint64_t count);
void kl_master_record_message_cost(kl_master *master, int64_t worker);
/* grounds: what it was made from; NULL: not known. It is freed. */
void kl_master_record_decision(kl_master *master, double now_s, const kl_decision *decision,
                               kl_buffer *grounds);

/* --- use.c: what a run costs --- */

void kl_master_use_begins(kl_master *master);
void kl_master_use_told(const kl_master *master, member *one, const kl_results_head *head);
kl_use kl_master_use_so_far(const kl_master *master); /* of the run that is on; zeroed: not known */
void kl_master_record_use(kl_master *master);

/* --- twins.c: tasks that are at several workers --- */

/* Ask for [from, chunk->hi) of its chunk back, as far as it is not begun. */
kilter_status kl_master_recall(kl_master *master, member *one, kl_chunk *chunk, uint64_t from,
                               kilter_error *error);
bool kl_twins_has_copy(const kl_twins *twins, uint64_t chunk); /* the chunk is a copy */
/* Prepare to give `tasks` of `chunk` to the worker at place `to` as well. They are the last ones of the chunk
 * that are at one worker alone. kl_twins_add() names the second chunk. */
kl_twin kl_twins_pair(const kl_twins *twins, const kl_chunk *chunk, kl_span tasks, uint32_t to);
kilter_status kl_twins_add(kl_twins *twins, kl_twin *twin, uint64_t copy, kilter_error *error);
/* The tasks of the chunk from chunk->at to here may be given to another worker, too: none was after this one,
 * and they are not at the most already. */
uint64_t kl_twins_alone_until(const kl_twins *twins, const kl_chunk *chunk);
/* The first part of `span` that is at another worker, too, because of this chunk; empty: none. */
kl_span kl_twins_first_shared(const kl_twins *twins, uint64_t chunk, kl_span span);
void kl_twins_clear(kl_twins *twins);
void kl_twins_free(kl_twins *twins);
/* `tasks` of this chunk are done: who has them besides need not do them. */
kilter_status kl_master_settle_twins(kl_master *master, uint64_t chunk, kl_span tasks, kilter_error *error);
/* The chunk will not do `span` of it: what is shared stays with the others. *at_other: one of them has some
 * of it, and may do it. */
kilter_status kl_master_part_twins(kl_master *master, uint64_t chunk, kl_span span, bool *at_other,
                                   kilter_error *error);

/* --- undone.c: chunks end, and tasks that were not done are dealt again --- */

void kl_master_end_chunk(kl_master *master, member *one, size_t i, bool lost);
void kl_master_record_failure(kl_master *master, const member *one, kl_trace_failure_row row);
/* Queue the results of `tasks` for the user. Takes the message they are in over, when it is worth it; NULL:
 * there is none, or it holds more than them. */
kilter_status kl_master_deliver(kl_master *master, const member *one, kl_span tasks, kilter_bytes results,
                                kl_message *message, kilter_error *error);
void kl_master_count_done(kl_master *master, kl_span tasks, uint64_t failures);
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
/* Deal these tasks alone, when nothing else is left: `last` had them. */
kilter_status kl_master_suspect(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* Nobody has these tasks any more, after `last` had. One that was at a lost worker is dealt alone, or has
 * failed. */
kilter_status kl_master_deal_again(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* One that may be dealt to this worker: where others are that can take it, not what it had before. */
bool kl_master_take_suspect(kl_master *master, const member *to, uint64_t *task);
/* This task, at hand there, has failed. It is tried again elsewhere, if it may be. */
kilter_status kl_master_fail_attempt(kl_master *master, const member *one, const kl_chunk *chunk,
                                     uint64_t task, const char *why, kilter_error *error);

/* --- deal.c: the next chunk of a worker --- */

kilter_status kl_master_set_shared(kl_master *master, kilter_bytes shared, kilter_error *error);
/* Where no clock sees the master work, the time its work takes is declared. */
void kl_master_declare_answer(const kl_master *master);
/* Deal to one worker that asks. It stays hungry when there is nothing for it now. */
kilter_status kl_master_deal(kl_master *master, member *one, kilter_error *error);
/* Deal to `to` tasks that are not in the bag. *chunk is empty, lo = hi, if it has left: then they are dealt
 * to nobody. */
kilter_status kl_master_deal_span(kl_master *master, member *to, kl_span span, double finish_s,
                                  kl_chunk *chunk, kilter_error *error);

/* --- rescue.c: the end of a run --- */

/* Nothing is left to deal: take tasks back from workers that end late, or do them twice. */
kilter_status kl_master_rescue(kl_master *master, kilter_error *error);

/* Deal `tasks`, the end of `chunk` or of what is in it at one worker alone, to `to` as well. */
kilter_status kl_master_copy(kl_master *master, const kl_chunk *chunk, kl_span tasks, member *to,
                             double finish_s, kilter_error *error);

/* --- feed.c: who is dealt work now --- */

kilter_status kl_master_feed(kl_master *master, member *asking, kilter_error *error); /* NULL: nobody asks */

/* --- seats.c: who is active --- */

/* Rest and wake as staff.seats wants it: the fastest work. */
kilter_status kl_master_seat(kl_master *master, kilter_error *error);
void kl_master_rest(kl_master *master, member *one); /* it has come, and enough work */
/* One that worked is lost: another one, resting, takes its place. */
void kl_master_wake_for_lost(kl_master *master);

/* --- drain.c: who is sent home --- */

void kl_master_send_home(kl_master *master, member *one, const char *why);
void kl_master_note_leaving(kl_master *master, member *one, const char *why); /* it goes by itself */

/* --- members.c: workers come and go --- */

/* Send away members that joined too long ago and have sent no greeting. */
kilter_status kl_master_expel_silent(kl_master *master, kilter_error *error);
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

/* --- results.c: what comes back from workers --- */

kilter_status kl_master_on_results(kl_master *master, member *one, kl_message *message, kilter_error *error);
kilter_status kl_master_on_return(kl_master *master, member *one, const kl_message *message,
                                  kilter_error *error);

/* --- limits.c: what a task may take --- */

/* A heartbeat has come: has the task at hand taken too much? Then it has failed, and the worker is gone. */
kilter_status kl_master_check_hand(kl_master *master, member *one, kilter_error *error);
kilter_status kl_master_on_renewal(kl_master *master, member *one, const kl_message *message,
                                   kilter_error *error);

/* --- planning.c: how many tasks --- */

/* A run has begun: the record gets what was answered before it. */
void kl_master_record_grain(kl_master *master);
void kl_master_record_expectation(kl_master *master);

/* --- team.c: how many workers --- */

/* A run is about to begin: what was set or is to be decided between runs takes effect. */
kilter_status kl_master_between_runs(kl_master *master, kilter_error *error);
/* state.decision says what came of it; grounds: as above */
void kl_master_record_look(kl_master *master, uint32_t workers, kl_buffer *grounds);
kl_iteration kl_master_iteration(kl_master *master); /* of the last run that ended, in the model's terms */
kl_iteration
kl_master_iteration_so_far(kl_master *master); /* of the part that is done of the run that is on */

/* --- glance.c: the number of workers within a run --- */

void kl_master_glance_begins(kl_master *master);
/* Is it time for a look? Then it may let workers rest, or wake them. */
kilter_status kl_master_glance(kl_master *master, kilter_error *error);

/* --- state.c --- */

void kl_master_note_iteration(kl_master *master); /* a run has ended */

/* --- runs.c --- */

void kl_master_end_if_done(kl_master *master);
bool kl_master_is_abandoned(const kl_master *master); /* nobody is left, and nobody will come */
kilter_status kl_master_check_workers(kl_master *master,
                                      kilter_error *error); /* end a run that is abandoned */

#endif
