/* Declarations that the files of the master share. Only these files include it. */
#ifndef KL_MASTER_PRIVATE_H
#define KL_MASTER_PRIVATE_H

#include "engine/engine.h"
#include "engine/harvest.h"
#include "probe/probe.h"

typedef enum stage {
    GREETING, /* the member has joined and sent no greeting yet */
    STARTING, /* the worker's start function runs */
    PROBING,  /* messages to the worker are timed */
    WORKING,  /* the worker is dealt work */
    LEAVING,  /* the worker was told to finish its task and go */
    GONE,
} stage;

typedef struct kl_reachable { /* where other workers reach a worker */
    char *address;            /* "": nowhere; NULL: not known */
    char *why_not;            /* why it is "", in the worker's words; else NULL */
    bool asked;               /* the worker was asked for its address */
} kl_reachable;

typedef struct kl_peer_part { /* a worker's part in a run by peers */
    uint32_t number;          /* its number among the peers of this run; 0: it is none */
    bool had;                 /* it is a peer of this run, or was one */
} kl_peer_part;

typedef struct member {
    kl_peer peer;
    stage stage;
    uint32_t worker; /* the worker's place in the balance */
    uint32_t number; /* the worker's number, never used again */
    /* the worker's row in the balance is in use: from stage STARTING until the worker is forgotten */
    bool has_place;
    bool attends; /* true: the worker answers messages and sends heartbeats during a task */
    bool hungry, held, resting;
    /* true: other workers have all unfinished tasks of this worker, too; false: unknown */
    bool nothing_alone;
    /* names in the worker's greeting, in one block of memory; NULL: it has sent no greeting */
    char *host, *binding;
    uint64_t pid;          /* the worker's process */
    uint64_t shared;       /* generation of the shared data that the worker has; 0: none */
    const char *sent_home; /* if LEAVING: why */
    double joined_s;       /* time at which the member joined */
    double asked_s;        /* time at which the worker became hungry */
    double heard_s;        /* time of the worker's last message */
    /* totals of the worker's process, as it last reported them; cpu_s 0: it never reported */
    double cpu_s, delay_s;
    double run_cpu_s, run_delay_s; /* the same totals for this run */
    /* the worker's last heartbeat, which arrived at heartbeat_s; 0: none has arrived */
    kl_heartbeat heartbeat;
    double heartbeat_s;
    kl_probe probe;
    kl_chunk *chunks; /* the worker's chunks, oldest first */
    uint32_t chunk_count;
    uint64_t chunk_room;
    kl_reachable reach;
    kl_peer_part part;
} member;

/* Tasks [lo, hi) that two workers have: the end of the first chunk, and the second chunk, which is a copy. A
 * copy may be copied again. */
typedef struct kl_twin {
    uint64_t lo, hi, chunk[2];
    uint32_t worker[2]; /* the workers with these chunks */
    uint32_t copies;    /* number of copies of these tasks so far, this copy included */
    uint64_t next[2];   /* the next twin in each chunk's chain */
} kl_twin;

typedef struct kl_twins { /* zeroed: no twins; twins.c */
    kl_twin *list;
    uint64_t count, room;
    uint64_t *buckets, bucket_count; /* hash table of the chains; bucket_count is a power of 2 */
    /* true: a second worker got a task of this run, so the task may be carried out twice */
    bool any;
} kl_twins;

/* Tasks that are dealt one at a time when nothing else is left. Worker `last` was lost with them, or they
 * failed at that worker. */
typedef struct kl_suspect {
    kl_span span;
    uint32_t last; /* the worker's number */
} kl_suspect;

/* A request to a worker to return tasks of a chunk. */
typedef struct kl_asked {
    uint32_t worker;
    uint64_t chunk;
} kl_asked;

/* The members of the farm, and their number in each stage; registry.c */
typedef struct kl_registry {
    member *list; /* in order of `peer` */
    size_t count;
    uint64_t room;
    kl_peer *peers; /* the peer of the worker at each place */
    uint32_t peer_count;
    uint32_t greeting, probing, ready, leaving; /* `ready` includes resting workers */
    uint32_t resting;
    uint32_t gone;       /* number of members in the list that are gone */
    uint32_t refused;    /* number of workers so far that could not work, or left without being asked */
    uint32_t coming;     /* number of workers that are being started */
    double silent_s;     /* time at which the first member in stage GREETING is sent away */
    char last_loss[256]; /* the last loss of a worker, in words */
} kl_registry;

typedef struct kl_shared_data { /* deal.c */
    kl_buffer message;          /* the SHARED message of the present generation */
    uint64_t generation;
    uint64_t bytes; /* bytes of the shared data */
    size_t sent;    /* bytes of shared data that the run sent to each worker */
} kl_shared_data;

/* The current run, or the last one; runs.c */
typedef struct kl_run_state {
    uint64_t number; /* number of the current run, or of the next one; the first is 0 */
    bool running;
    bool open;  /* true: more tasks may come */
    bool grown; /* true: more tasks have come */
    bool holds; /* true: too many results are unsafe, so nothing is dealt */
    kl_limits limits;
    double began_s, ended_s;
    uint64_t done, failed;
    uint64_t unsafe;   /* number of results that are counted in `done` and may still be lost */
    uint64_t finished; /* number of tasks finished in all runs */
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
    bool all;               /* true: something has changed for all workers, so deal to all of them */
    /* time of the next look at workers that are held back or late; 0: there are none */
    double look_again_s;
    double empty_s; /* time at which the bag became empty; 0: it is not empty */
} kl_feeding;

typedef struct kl_recalls { /* rescue.c */
    kl_asked *list;         /* recalls, some of which may be answered already */
    uint64_t count, room;
} kl_recalls;

typedef struct kl_run_use { /* use.c */
    kl_use last;            /* totals of the last run */
    uint64_t messages;      /* number of messages received in this run */
    bool known;             /* true: the CPU times below are known for the run's beginning */
    double farm_then_s, callbacks_then_s;
} kl_run_use;

/* The number of active workers; team.c, within a run glance.c */
typedef struct kl_staff {
    kl_tuning pending; /* tuning points for the next run */
    uint32_t seats;    /* number of workers wanted in a run; 0: all */
    bool by_hand;      /* true: `seats` was set by hand */
    bool chooses;      /* true: the farm chooses `seats` itself */
    kl_team team;
    kl_glance glance;    /* number of looks within this run */
    double glance_due_s; /* time of the next look; HUGE_VAL: there is none */
} kl_staff;

/* The number of tasks of the coming runs; planning.c */
typedef struct kl_planning {
    kl_line alone;           /* the master's own time as a function of the last run's tasks [t_M(T)] */
    double master_s;         /* the master's own time since the last run [l_m] */
    double lost_s;           /* seconds of a run that the fork-join model does not explain */
    uint64_t lost_runs;      /* run number at which lost_s was learned */
    kl_grain_plan grain;     /* the plan given for the next run; decision.count = 0: no plan was given */
    kl_expectation expected; /* what the program expects of the coming runs; runs = 0: it expects nothing */
} kl_planning;

typedef struct kl_run_peer { /* a peer of the run; its place in the list is its number */
    kl_peer peer;
    uint32_t place, worker; /* the worker's place and number */
    bool gone;              /* it is dead, or was sent out of the run */
} kl_run_peer;

/* A run that the workers organise among themselves; run_peers.c. The master is peer 0, the root. */
typedef struct kl_run_peers {
    bool on;       /* true: this run is organised so */
    kl_node *root; /* NULL: the run waits for addresses */
    kl_run_peer *list;
    uint32_t count, first; /* first: number of peers at the beginning */
    uint64_t room;
    kl_reaper reaper;
    kl_node_actions actions;
    double wake_s;
    kl_buffer self, message; /* self: the root's messages to itself, each with its length before it */
    uint32_t deaths, seen_deaths;
    bool malformed;       /* a message that was heard was malformed */
    bool warned;          /* the user was told of a worker that has no part in this run */
    uint64_t twice;       /* number of results that came again and were dropped */
    kilter_error failure; /* why the run cannot go on; KILTER_OK: it can */
} kl_run_peers;

/* The choice of who organises a run; organise.c */
typedef struct kl_organising {
    size_t sum_bytes;       /* bytes of the sum of this run's results; 0: the run does not reduce */
    bool peers;             /* it was decided that peers organise this run */
    kl_iteration by_master; /* the last run that the master organised; tasks 0: there was none */
    double peers_task_s; /* seconds of the last run that peers organised, for each task; 0: there was none */
} kl_organising;

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
    kl_run_peers peers;
    kl_organising organising;
    kl_delivery_list results;
    kl_farm_state state; /* fields that change only between runs; state.c */
};

/* A file uses only functions of files that stand above it here. */

/* --- registry.c --- */

void kl_member_free(member *one); /* frees the member's contents, not the struct */
/* Return the member, or NULL: there is none with this number. */
member *kl_master_find(kl_master *master, kl_peer peer);
member *kl_master_member(const kl_master *master,
                         uint32_t worker); /* Return the member at this place, or NULL: it is gone. */
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
/* Record a decision and free `grounds`, the inputs of the decision; NULL: they are unknown. */
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
bool kl_twins_has_copy(const kl_twins *twins, uint64_t chunk); /* Return whether the chunk is a copy. */
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
/* Recall `tasks` of this chunk, which are done, from the workers that have copies of them. */
kilter_status kl_master_settle_twins(kl_master *master, uint64_t chunk, kl_span tasks, kilter_error *error);
/* Take `span` out of the chunk, whose worker will not do it. Copies of its tasks stay at other workers.
 * *at_other: another worker has some of these tasks and may do them. */
kilter_status kl_master_part_twins(kl_master *master, uint64_t chunk, kl_span span, bool *at_other,
                                   kilter_error *error);

/* --- undone.c: chunks end, and tasks that were not done are dealt again --- */

void kl_master_end_chunk(kl_master *master, member *one, size_t i, bool lost);
void kl_master_record_failure(kl_master *master, const member *one, kl_trace_failure_row row);
/* Queue the results of `tasks` for the user. A large message is taken over instead of copied. message NULL:
 * there is none, or it holds other results, too. */
kilter_status kl_master_deliver(kl_master *master, const member *one, kl_span tasks, kilter_bytes results,
                                kl_message *message, kilter_error *error);
void kl_master_count_done(kl_master *master, kl_span tasks, uint64_t failures);
/* Deal again tasks [from, hi) of the member's i-th chunk, which the member will not do, except those at other
 * workers. The first *blamed tasks are dealt one at a time. */
kilter_status kl_master_give_up(kl_master *master, member *one, size_t i, uint64_t from, uint64_t *blamed,
                                kilter_error *error);
kilter_status kl_master_take_all_back(kl_master *master, member *one, bool is_lost, kilter_error *error);
/* End all chunks when the run ends; their results count no more. */
void kl_master_end_chunks(kl_master *master);
/* Return whether the worker has a suspect task. Such a worker gets no other task, so that the cause of its
 * loss would be known. */
bool kl_master_has_suspect(const kl_master *master, const member *one);
/* Deal these tasks one at a time when nothing else is left; `last` is the worker that had them. */
kilter_status kl_master_suspect(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* Deal again the tasks that `last` had and no worker has now. A task that was at a lost worker is dealt
 * alone, or it fails. */
kilter_status kl_master_deal_again(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* Take a suspect task that this worker may get: not a task that the worker had before, if other workers can
 * take it. */
bool kl_master_take_suspect(kl_master *master, const member *to, uint64_t *task);
/* Try the member's task at hand, which has failed, again elsewhere if retries are left. */
kilter_status kl_master_fail_attempt(kl_master *master, const member *one, const kl_chunk *chunk,
                                     uint64_t task, const char *why, kilter_error *error);

/* --- deal.c: the next chunk of a worker --- */

kilter_status kl_master_set_shared(kl_master *master, kilter_bytes shared, kilter_error *error);
/* Send the shared data if the worker does not have them. */
kilter_status kl_master_send_shared(kl_master *master, member *one, kilter_error *error);
/* Declare the time of an answer of the master, in builds where no clock measures it. */
void kl_master_declare_answer(const kl_master *master);
/* Deal to a worker that asks. If there is nothing for the worker now, it stays hungry. */
kilter_status kl_master_deal(kl_master *master, member *one, kilter_error *error);
/* Deal tasks that are not in the bag to `to`. *chunk is empty (lo = hi) if the worker has left; then the
 * tasks are not dealt. */
kilter_status kl_master_deal_span(kl_master *master, member *to, kl_span span, double finish_s,
                                  kl_chunk *chunk, kilter_error *error);

/* --- rescue.c: the end of a run --- */

/* Recall tasks from late workers or copy them, when nothing is left to deal. */
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
/* Let the worker that has joined rest if enough workers are active. */
void kl_master_rest(kl_master *master, member *one);
/* Wake a resting worker, because an active one is lost. */
kilter_status kl_master_wake_for_lost(kl_master *master, kilter_error *error);

/* --- drain.c: which workers are sent home --- */

void kl_master_send_home(kl_master *master, member *one, const char *why);
/* Note that the worker leaves of its own accord. */
void kl_master_note_leaving(kl_master *master, member *one, const char *why);

/* --- run_peers.c: a run that the workers organise among themselves --- */

/* Begin the run as soon as all workers can be reached by others. */
kilter_status kl_run_peers_begin(kl_master *master, kilter_error *error);
/* The worker is ready, or it has told its address. */
kilter_status kl_run_peers_ready(kl_master *master, member *one, kilter_error *error);
/* The worker is gone. Tell the others. */
kilter_status kl_run_peers_lose(kl_master *master, member *one, bool is_lost, kilter_error *error);
/* Let the root hear a message of this peer (peers.malformed: the message cannot be used), or do what is due.
 */
kilter_status kl_run_peers_hear(kl_master *master, member *one, kilter_bytes note, kilter_error *error);
kilter_status kl_run_peers_look(kl_master *master, kilter_error *error);
double kl_run_peers_due_s(const kl_master *master); /* HUGE_VAL: nothing will be due */
/* The run has ended: `early`, before all tasks were done. */
void kl_run_peers_end(kl_master *master, bool early);
void kl_run_peers_free(kl_run_peers *peers);

/* --- members.c: workers come and go --- */

/* Send away members whose greeting is overdue. */
kilter_status kl_master_expel_silent(kl_master *master, kilter_error *error);
/* Deal the unfinished tasks of a member that is gone again. is_lost: it did not leave of its own accord, so
 * one of its tasks may be the cause. */
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

/* --- peer_messages.c: messages of workers that are peers --- */

kilter_status kl_master_on_peer_message(kl_master *master, member *one, const kl_message *message,
                                        kilter_error *error);

/* --- limits.c: time and memory that a task may take --- */

/* Check the limits after a heartbeat: if the task at hand exceeds one, the task fails and the worker is gone.
 */
kilter_status kl_master_check_hand(kl_master *master, member *one, kilter_error *error);
kilter_status kl_master_on_renewal(kl_master *master, member *one, const kl_message *message,
                                   kilter_error *error);

/* --- planning.c: the number of tasks --- */

/* Record the plan that was given for the run that has begun. */
void kl_master_record_grain(kl_master *master);
void kl_master_record_expectation(kl_master *master);

/* --- team.c: the number of workers --- */

/* Put into effect what was set by hand, or decide, before a run begins. */
kilter_status kl_master_between_runs(kl_master *master, kilter_error *error);
/* Record a look at the number of workers, with its outcome in state.decision. `grounds` are as in
 * kl_master_record(). */
void kl_master_record_look(kl_master *master, uint32_t workers, kl_buffer *grounds);
/* Return the last run that ended, in the model's terms. */
kl_iteration kl_master_iteration(kl_master *master);
/* Return the part of the current run that is done, in the model's terms. */
kl_iteration kl_master_iteration_so_far(kl_master *master);

/* --- organise.c: who organises a run --- */

/* Decide, before the run begins, and record it. Return whether the workers organise it among themselves. */
bool kl_master_organise(kl_master *master, const kilter_run *run);
void kl_master_note_organised(kl_master *master); /* Keep what the ended run has shown. */

/* --- glance.c: the number of workers within a run --- */

void kl_master_glance_begins(kl_master *master);
/* Decide on the number of workers if a look is due, and let workers rest or wake them. */
kilter_status kl_master_glance(kl_master *master, kilter_error *error);

/* --- state.c --- */

void kl_master_note_iteration(kl_master *master); /* Keep the figures of the run that has ended. */

/* --- runs.c --- */

void kl_master_end_if_done(kl_master *master);
/* Return whether no worker is left and none will come. */
bool kl_master_is_abandoned(const kl_master *master);
kilter_status kl_master_check_workers(kl_master *master,
                                      kilter_error *error); /* End the run if it is abandoned. */

#endif
