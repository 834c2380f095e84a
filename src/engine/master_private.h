/* Declarations that the parts of the master share. Only they include this. */
#ifndef KL_MASTER_PRIVATE_H
#define KL_MASTER_PRIVATE_H

#include "engine/engine.h"
#include "probe/probe.h"

typedef enum stage {
    GREETING, /* it has joined and sent no greeting yet */
    STARTING, /* its start function runs */
    PROBING,  /* messages to it are timed */
    WORKING,  /* it is dealt work */
    LEAVING,  /* it was told to finish its task and go */
    GONE,
} stage;

typedef struct member {
    kl_peer peer;
    stage stage;
    uint32_t worker; /* its place in the balance */
    uint32_t number; /* the worker's number, never used again */
    bool has_place;  /* from STARTING on, until it is forgotten */
    bool attends;    /* it answers messages and sends heartbeats during a task */
    bool hungry, held, resting;
    bool nothing_alone;            /* other workers have all its unfinished tasks, too; false: unknown */
    char *host, *binding;          /* from its greeting, one block; NULL: it has sent none */
    uint64_t pid;                  /* its process */
    uint64_t shared;               /* generation of its shared data; 0: none */
    const char *sent_home;         /* if LEAVING: why */
    double joined_s;               /* when it joined */
    double asked_s;                /* when it became hungry */
    double heard_s;                /* when its last message came */
    double cpu_s, delay_s;         /* totals of its process, as last reported; cpu_s 0: never reported */
    double run_cpu_s, run_delay_s; /* the same for this run */
    kl_heartbeat heartbeat;        /* its last heartbeat, which arrived at heartbeat_s; 0: none has */
    double heartbeat_s;
    kl_probe probe;
    kl_chunk *chunks; /* the worker's chunks, oldest first */
    uint32_t chunk_count;
    uint64_t chunk_room;
} member;

/* Tasks [lo, hi) that two workers have: the end of the first chunk, and the second chunk, a copy. A copy may
 * be copied again. */
typedef struct kl_twin {
    uint64_t lo, hi, chunk[2];
    uint32_t worker[2]; /* the workers with these chunks */
    uint32_t copies;    /* copies of these tasks so far, this one included */
    uint64_t next[2];   /* next twin in each chunk's chain */
} kl_twin;

typedef struct kl_twins { /* zeroed: no twins; twins.c */
    kl_twin *list;
    uint64_t count, room;
    uint64_t *buckets, bucket_count; /* hash table of the chains; bucket_count is a power of 2 */
    bool any;                        /* a second worker got a task of this run: the task may run again */
} kl_twins;

/* Tasks to be dealt one at a time when nothing else is left: worker `last` was lost with them, or they failed
 * there. */
typedef struct kl_suspect {
    kl_span span;
    uint32_t last; /* the worker's number */
} kl_suspect;

/* A recall: the worker was asked to return tasks of the chunk. */
typedef struct kl_asked {
    uint32_t worker;
    uint64_t chunk;
} kl_asked;

/* The members of the farm, and their number in each stage; registry.c */
typedef struct kl_registry {
    member *list; /* in order of `peer` */
    size_t count;
    uint64_t room;
    kl_peer *peers; /* each worker's peer */
    uint32_t peer_count;
    uint32_t greeting, probing, ready, leaving; /* `ready` includes resting workers */
    uint32_t resting;
    uint32_t gone;       /* members in the list that are gone */
    uint32_t refused;    /* workers so far that could not work, or left unasked */
    uint32_t coming;     /* workers being started */
    double silent_s;     /* when the first member in stage GREETING is sent away */
    char last_loss[256]; /* in words */
} kl_registry;

typedef struct kl_shared_data { /* deal.c */
    kl_buffer message;          /* the SHARED message in force */
    uint64_t generation;
    uint64_t bytes; /* size of its data */
    size_t sent;    /* bytes of shared data that the run sent to each worker */
} kl_shared_data;

/* The current run, or the last one; runs.c */
typedef struct kl_run_state {
    uint64_t number; /* number of the current run, or of the next one; the first is 0 */
    bool running;
    bool open;  /* more tasks may come */
    bool grown; /* more tasks have come */
    bool holds; /* too many results are unsafe, so nothing is dealt */
    kl_limits limits;
    double began_s, ended_s;
    uint64_t done, failed;
    uint64_t unsafe;   /* results, counted in `done`, that may still be lost */
    uint64_t finished; /* tasks finished in all runs */
    uint64_t failures_recorded;
    kl_spans done_before; /* tasks of the next run that are done already */
    kilter_farm_summary summary;
    char decision[512]; /* for the summary */
} kl_run_state;

typedef struct kl_suspects { /* undone.c */
    kl_suspect *list;
    uint64_t count, room;
    uint64_t tasks;
} kl_suspects;

typedef struct kl_feeding { /* feed.c */
    bool all;               /* deal to all workers: something has changed for them */
    double look_again_s;    /* next look at workers that are held back or late; 0: there are none */
    double empty_s;         /* when the bag became empty; 0: it is not */
} kl_feeding;

typedef struct kl_recalls { /* rescue.c */
    kl_asked *list;         /* recalls, perhaps answered already */
    uint64_t count, room;
} kl_recalls;

typedef struct kl_run_use { /* use.c */
    kl_use last;            /* totals of the last run */
    uint64_t messages;      /* messages received in this run */
    bool known;             /* the CPU times below, at the run's beginning, are known */
    double farm_then_s, callbacks_then_s;
} kl_run_use;

/* How many workers are active; team.c, within a run glance.c */
typedef struct kl_staff {
    kl_tuning pending; /* tuning points for the next run */
    uint32_t seats;    /* workers wanted in a run; 0: all */
    bool by_hand;      /* `seats` was set by hand */
    bool chooses;      /* the farm chooses `seats` itself */
    kl_team team;
    kl_glance glance;    /* looks within this run */
    double glance_due_s; /* time of the next look; HUGE_VAL: none */
} kl_staff;

/* The number of tasks of the coming runs; planning.c */
typedef struct kl_planning {
    kl_line alone;           /* the master's own time as a function of the last run's tasks [t_M(T)] */
    double master_s;         /* the master's own time since the last run [l_m] */
    double lost_s;           /* seconds of a run that the fork-join model does not explain */
    uint64_t lost_runs;      /* run number at which lost_s was learned */
    kl_grain_plan grain;     /* the plan given for the next run; decision.count = 0: none */
    kl_expectation expected; /* what the program expects of the coming runs; runs = 0: nothing */
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
    kl_farm_state state; /* fields that change only between runs; state.c */
};

/* A part uses only parts that stand above it here. */

/* --- registry.c --- */

void kl_member_free(member *one);                        /* frees the member's contents, not the struct */
member *kl_master_find(kl_master *master, kl_peer peer); /* NULL: there is no such member */
member *kl_master_member(const kl_master *master,
                         uint32_t worker); /* the member at this place; NULL: it is gone */
/* Add a member; members that are gone may be removed. */
kilter_status kl_master_add(kl_master *master, kl_peer peer, kilter_error *error);
/* Note that the worker at this place has this peer. */
kilter_status kl_master_note_peer(kl_master *master, uint32_t worker, kl_peer peer, kilter_error *error);

/* --- rows.c: rows of the record --- */

void kl_master_record_worker(kl_master *master, const member *one);
/* worker −1: the farm as a whole */
void kl_master_record_measurement(kl_master *master, int64_t worker, const char *kind, double value);
void kl_master_record_mean(kl_master *master, int64_t worker, const char *kind, double mean, double sd,
                           uint64_t count);
void kl_master_record_message_cost(kl_master *master, int64_t worker);
/* Record a decision and free `grounds`, the data it was made from; NULL: unknown. */
void kl_master_record_decision(kl_master *master, double now_s, const kl_decision *decision,
                               kl_buffer *grounds);

/* --- use.c: what a run costs --- */

void kl_master_use_begins(kl_master *master);
void kl_master_use_told(const kl_master *master, member *one, const kl_results_head *head);
kl_use kl_master_use_so_far(const kl_master *master); /* costs of the current run; zeroed: unknown */
void kl_master_record_use(kl_master *master);

/* --- twins.c: tasks that several workers have --- */

/* Recall the tasks [from, chunk->hi) that the member has not begun. */
kilter_status kl_master_recall(kl_master *master, member *one, kl_chunk *chunk, uint64_t from,
                               kilter_error *error);
bool kl_twins_has_copy(const kl_twins *twins, uint64_t chunk); /* is the chunk a copy? */
/* Prepare a copy of `tasks` for the worker at place `to`. They are the last tasks of `chunk` that no other
 * worker has. kl_twins_add() sets the number of the copy. */
kl_twin kl_twins_pair(const kl_twins *twins, const kl_chunk *chunk, kl_span tasks, uint32_t to);
kilter_status kl_twins_add(kl_twins *twins, kl_twin *twin, uint64_t copy, kilter_error *error);
/* Return the end of the tasks from chunk->at on that may be copied. No later copy of them exists, and more
 * copies are allowed. */
uint64_t kl_twins_alone_until(const kl_twins *twins, const kl_chunk *chunk);
/* Return the first part of `span` that a twin of this chunk gives to another worker; empty: none. */
kl_span kl_twins_first_shared(const kl_twins *twins, uint64_t chunk, kl_span span);
void kl_twins_clear(kl_twins *twins);
void kl_twins_free(kl_twins *twins);
/* `tasks` of this chunk are done: recall their copies from other workers. */
kilter_status kl_master_settle_twins(kl_master *master, uint64_t chunk, kl_span tasks, kilter_error *error);
/* Take `span` out of the chunk, which will not do it; copies of its tasks stay with the other workers.
 * *at_other: another worker has some of them and may do them. */
kilter_status kl_master_part_twins(kl_master *master, uint64_t chunk, kl_span span, bool *at_other,
                                   kilter_error *error);

/* --- undone.c: chunks end, and tasks that were not done are dealt again --- */

void kl_master_end_chunk(kl_master *master, member *one, size_t i, bool lost);
void kl_master_record_failure(kl_master *master, const member *one, kl_trace_failure_row row);
/* Queue the results of `tasks` for the user. A large message is taken over instead of copied; NULL: there is
 * none, or it holds other results, too. */
kilter_status kl_master_deliver(kl_master *master, const member *one, kl_span tasks, kilter_bytes results,
                                kl_message *message, kilter_error *error);
void kl_master_count_done(kl_master *master, kl_span tasks, uint64_t failures);
/* The member will not do [from, hi) of its i-th chunk. Deal again what no other worker has, the first *blamed
 * tasks one at a time. */
kilter_status kl_master_give_up(kl_master *master, member *one, size_t i, uint64_t from, uint64_t *blamed,
                                kilter_error *error);
kilter_status kl_master_take_all_back(kl_master *master, member *one, bool is_lost, kilter_error *error);
/* The run ends: end all chunks; their results count no more. */
void kl_master_end_chunks(kl_master *master);
/* Does the worker have a suspect task? Then it gets no other task, so that the cause of its loss would be
 * known. */
bool kl_master_has_suspect(const kl_master *master, const member *one);
/* Deal these tasks, which `last` had, one at a time when nothing else is left. */
kilter_status kl_master_suspect(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* Deal again the tasks that `last` had and no worker has now. A task that was at a lost worker is dealt
 * alone, or has failed. */
kilter_status kl_master_deal_again(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* Take a suspect task that this worker may get: not a task it had before, if other workers can take that. */
bool kl_master_take_suspect(kl_master *master, const member *to, uint64_t *task);
/* The member's task at hand has failed. Try it again elsewhere if retries are left. */
kilter_status kl_master_fail_attempt(kl_master *master, const member *one, const kl_chunk *chunk,
                                     uint64_t task, const char *why, kilter_error *error);

/* --- deal.c: the next chunk of a worker --- */

kilter_status kl_master_set_shared(kl_master *master, kilter_bytes shared, kilter_error *error);
/* Declare the time that an answer of the master takes, in builds where no clock measures it. */
void kl_master_declare_answer(const kl_master *master);
/* Deal to a worker that asks. It stays hungry if there is nothing for it now. */
kilter_status kl_master_deal(kl_master *master, member *one, kilter_error *error);
/* Deal tasks that are not in the bag to `to`. *chunk is empty (lo = hi) if the worker has left; then the
 * tasks are not dealt. */
kilter_status kl_master_deal_span(kl_master *master, member *to, kl_span span, double finish_s,
                                  kl_chunk *chunk, kilter_error *error);

/* --- rescue.c: the end of a run --- */

/* Nothing is left to deal: recall tasks from late workers, or copy them. */
kilter_status kl_master_rescue(kl_master *master, kilter_error *error);

/* Deal a copy of `tasks` to `to`. They are the last tasks of `chunk` that no other worker has. */
kilter_status kl_master_copy(kl_master *master, const kl_chunk *chunk, kl_span tasks, member *to,
                             double finish_s, kilter_error *error);

/* --- feed.c: which workers are dealt work now --- */

kilter_status kl_master_feed(kl_master *master, member *asking,
                             kilter_error *error); /* asking NULL: no worker asks */

/* --- seats.c: which workers are active --- */

/* Let the staff.seats fastest workers be active; the others rest. */
kilter_status kl_master_seat(kl_master *master, kilter_error *error);
void kl_master_rest(kl_master *master, member *one); /* it has joined, and enough workers are active */
/* An active worker is lost: wake a resting one. */
void kl_master_wake_for_lost(kl_master *master);

/* --- drain.c: which workers are sent home --- */

void kl_master_send_home(kl_master *master, member *one, const char *why);
void kl_master_note_leaving(kl_master *master, member *one, const char *why); /* it leaves by itself */

/* --- members.c: workers come and go --- */

/* Send away members whose greeting is overdue. */
kilter_status kl_master_expel_silent(kl_master *master, kilter_error *error);
/* The member is gone: deal its unfinished tasks again. is_lost: it did not leave by itself, so one of its
 * tasks may be the cause. */
kilter_status kl_master_lose(kl_master *master, member *one, const char *why, bool is_lost,
                             kilter_error *error);
kilter_status kl_master_lose_connection(kl_master *master, member *one, kilter_error *error);
/* Send the member away and tell it why: it violates the protocol or cannot work. */
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

/* --- results.c: results and tasks that workers return --- */

kilter_status kl_master_on_results(kl_master *master, member *one, kl_message *message, kilter_error *error);
kilter_status kl_master_on_return(kl_master *master, member *one, const kl_message *message,
                                  kilter_error *error);

/* --- limits.c: time and memory that a task may take --- */

/* After a heartbeat: if the task at hand exceeds a limit, it fails, and the worker is gone. */
kilter_status kl_master_check_hand(kl_master *master, member *one, kilter_error *error);
kilter_status kl_master_on_renewal(kl_master *master, member *one, const kl_message *message,
                                   kilter_error *error);

/* --- planning.c: the number of tasks --- */

/* A run has begun: record the plan that was given for it. */
void kl_master_record_grain(kl_master *master);
void kl_master_record_expectation(kl_master *master);

/* --- team.c: the number of workers --- */

/* A run is about to begin: put into effect what was set by hand, or decide. */
kilter_status kl_master_between_runs(kl_master *master, kilter_error *error);
/* Record a look at the number of workers, with its outcome in state.decision. grounds: as above */
void kl_master_record_look(kl_master *master, uint32_t workers, kl_buffer *grounds);
kl_iteration kl_master_iteration(kl_master *master); /* the last run that ended, in the model's terms */
kl_iteration kl_master_iteration_so_far(kl_master *master); /* the part of the current run that is done */

/* --- glance.c: the number of workers within a run --- */

void kl_master_glance_begins(kl_master *master);
/* If a look is due: decide, and let workers rest or wake them. */
kilter_status kl_master_glance(kl_master *master, kilter_error *error);

/* --- state.c --- */

void kl_master_note_iteration(kl_master *master); /* a run has ended */

/* --- runs.c --- */

void kl_master_end_if_done(kl_master *master);
bool kl_master_is_abandoned(const kl_master *master); /* no worker is left, and none will come */
kilter_status kl_master_check_workers(kl_master *master,
                                      kilter_error *error); /* end a run that is abandoned */

#endif
