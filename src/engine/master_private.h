/* Declarations that the files of the master share. No other file includes it. */
#ifndef KL_MASTER_PRIVATE_H
#define KL_MASTER_PRIVATE_H

#include "engine/engine.h"
#include "engine/harvest.h"
#include "probe/probe.h"

typedef enum stage {
    GREETING, /* the worker is connected, but has not sent its greeting */
    STARTING, /* the worker's start function runs */
    PROBING,  /* the costs of messages to the worker are measured */
    WORKING,  /* the worker is dealt tasks */
    LEAVING,  /* the worker was told to finish its task and leave */
    GONE,
} stage;

typedef struct kl_reachable { /* the address at which other workers reach a worker */
    /* address of the worker for other workers; "": they cannot reach it; NULL: not known yet */
    char *address;
    /* the worker's own text that says why others cannot reach it, if `address` is ""; otherwise NULL */
    char *why_not;
    bool asked; /* true: the worker was asked for its address */
} kl_reachable;

typedef struct kl_peer_part { /* a worker's part in a run that the workers organise as peers */
    uint32_t number;          /* number of the worker among the peers of this run; 0: it is not a peer */
    bool had;                 /* true: the worker is a peer of this run, or was one earlier in this run */
} kl_peer_part;

/* The CPU time of a worker's process, and its delay. The delay is the time in which tasks of the worker were
 * ready to run but had no core. use.c owns this struct. */
typedef struct cpu_report {
    double cpu_s, delay_s;         /* last reported totals; cpu_s = 0: there are none */
    bool grows;                    /* true: a report of this run has added to run_cpu_s and run_delay_s */
    double run_cpu_s, run_delay_s; /* growth of the totals in the current run */
    double tasks_before; /* number of tasks of this run that were reported before the growth was counted */
} cpu_report;

typedef struct member {
    kl_peer peer;
    stage stage;
    /* index of the worker in the arrays of the load balance; this index is called the worker's place */
    uint32_t worker;
    uint32_t number; /* number of the worker, which no other worker ever gets */
    /* true: the worker has an index in the load balance (place), from stage STARTING until it is removed */
    bool has_place;
    bool attends; /* true: the worker answers messages and sends heartbeats even during a task */
    bool hungry, held, resting;
    /* true: other workers have copies of all unfinished tasks of this worker; false: unknown */
    bool nothing_alone;
    /* names that the worker's greeting contained, in one block of memory; NULL: there was no greeting */
    char *host, *binding;
    uint64_t pid;          /* number of the worker's process */
    uint64_t shared;       /* generation of the shared data that the worker has; 0: it has none */
    const char *sent_home; /* in stage LEAVING: the reason why the worker leaves */
    double joined_s;       /* time at which the member joined */
    double asked_s;        /* time at which the worker last requested tasks */
    double heard_s;        /* time of the worker's last message */
    cpu_report use;
    /* heartbeat: the worker's last heartbeat; heartbeat_s: time at which it came, 0: none has come */
    kl_heartbeat heartbeat;
    double heartbeat_s;
    kl_probe probe;
    kl_chunk *chunks; /* the worker's chunks, oldest first */
    uint32_t chunk_count;
    uint64_t chunk_room;
    kl_reachable reach;
    kl_peer_part part;
} member;

/* A twin is a pair of chunks at two workers. Both chunks have the tasks [lo, hi), which are the last tasks of
 * the first chunk. The second chunk is the copy. It has only these tasks, and may be copied again. */
typedef struct kl_twin {
    uint64_t lo, hi, chunk[2];
    uint32_t worker[2]; /* the workers that have these two chunks */
    uint32_t copies;    /* number of copies of these tasks so far, including this copy */
    uint64_t next[2];   /* the twins of a chunk form a list; next[i]: next twin in the list of chunk[i] */
} kl_twin;

/* All pairs of chunks with the same tasks (twins); twins.c. All zero: there are none. */
typedef struct kl_twins {
    kl_twin *list;
    uint64_t count, room;
    /* hash table that finds the first twin (pair of chunks with the same tasks) of a chunk; bucket_count is a
     * power of 2 */
    uint64_t *buckets, bucket_count;
    /* true: some tasks of this run were copied to a second worker, so they may be executed more than once */
    bool any;
} kl_twins;

/* A task that failed, or that may have killed its worker (a suspect). Suspects are dealt one at a time, when
 * no other task is left. */
typedef struct kl_suspect {
    kl_span span;
    uint32_t last; /* number of the worker that last had the task */
} kl_suspect;

/* A request by which the master asks a worker to return tasks of a chunk (recall). */
typedef struct kl_asked {
    uint32_t worker;
    uint64_t chunk;
} kl_asked;

/* A host where workers were lost or from which a user has released the workers. */
typedef struct kl_trouble {
    char name[KL_CONTROL_HOST_BYTES];
    uint32_t lost;
    bool drained;
} kl_trouble;

/* The members of the farm, and how many of them are in each stage; registry.c */
typedef struct kl_registry {
    member *list; /* members of the farm, in order of `peer` */
    size_t count;
    uint64_t room;
    kl_peer *peers; /* peers[i]: the peer of the worker whose index in the load balance (place) is i */
    uint32_t peer_count;
    /* number of members in each stage; `ready` counts working and resting workers */
    uint32_t greeting, probing, ready, leaving;
    uint32_t resting;
    uint32_t gone; /* number of members in the list that have left but are not removed yet */
    /* number of workers so far that could not work, or that left without being asked to */
    uint32_t refused;
    uint32_t coming;      /* number of workers that are being started */
    double silent_s;      /* time at which the master disconnects the next member that has sent no greeting */
    char last_loss[256];  /* sentence about the worker that was lost last */
    kl_trouble *troubles; /* hosts.c */
    uint64_t trouble_count, trouble_room;
} kl_registry;

typedef struct kl_shared_data { /* deal.c */
    kl_buffer message;          /* the message SHARED with the present shared data */
    uint64_t generation;
    uint64_t bytes; /* number of bytes of the shared data */
    /* bytes of shared data that this run sends to each worker; 0: the run brings no new shared data */
    size_t sent;
} kl_shared_data;

/* The current run, or the last run if none is in progress; runs.c */
typedef struct kl_run_state {
    uint64_t number; /* number of the current run, or of the next one; the first is 0 */
    bool running;
    bool open;  /* true: tasks may still be added */
    bool grown; /* true: tasks were added to the run after it began */
    bool holds; /* true: no tasks are dealt, because too many results are not on the disk yet */
    kl_limits limits;
    double began_s, ended_s;
    uint64_t done, failed;
    uint64_t unsafe;   /* number of results in `done` that are not on the disk yet, and may still be lost */
    uint64_t finished; /* number of tasks finished in all runs */
    uint64_t failures_recorded;
    kl_spans done_before; /* tasks of the next run that are already done */
    kilter_farm_summary summary;
    char decision[512]; /* text for the member `decision` of the summary */
} kl_run_state;

typedef struct kl_suspects { /* undone.c */
    kl_suspect *list;
    uint64_t count, room;
    uint64_t tasks;
} kl_suspects;

typedef struct kl_feeding { /* feed.c */
    bool all;               /* true: try to deal to every worker that waits for tasks */
    /* time of the next check of late workers, and of workers that the policy made wait; 0: no check is
     * planned */
    double look_again_s;
    double empty_s; /* time at which the last task was dealt; 0: there are tasks that are not dealt yet */
} kl_feeding;

typedef struct kl_recalls { /* rescue.c */
    kl_asked *list;         /* the recalls sent in this run, of which some may be answered already */
    uint64_t count, room;
} kl_recalls;

typedef struct kl_run_use { /* use.c */
    kl_use last;            /* CPU time and other costs of the last run */
    uint64_t messages;      /* number of messages received in this run */
    /* true: the CPU times at the beginning of the run are known, in farm_then_s and callbacks_then_s */
    bool known;
    double farm_then_s, callbacks_then_s;
} kl_run_use;

/* The choice of the number of active workers. The file team.c chooses between runs, and glance.c within a
 * run. */
typedef struct kl_staff {
    kl_tuning pending; /* tuning points that take effect with the next run */
    uint32_t seats;    /* wanted number of active workers; 0: all workers */
    bool by_hand;      /* true: a user has set `seats` */
    bool chooses;      /* true: the farm chooses `seats` itself */
    kl_team team;
    kl_glance glance;    /* state of the checks of the number of workers within this run */
    double glance_due_s; /* time of the next check of the number of workers; HUGE_VAL: there is none */
} kl_staff;

/* Data for choosing the number of tasks of coming runs; planning.c */
typedef struct kl_planning {
    /* seconds for which the program computes alone after a run, as a linear function of that run's number of
     * tasks [t_M(T)] */
    kl_line alone;
    double master_s; /* seconds that the program has computed since the last run [l_m] */
    double lost_s;   /* seconds of a run that the fork-join model does not explain */
    /* value of run.number when lost_s was last updated, which happens once after each run */
    uint64_t lost_runs;
    /* the number of tasks that the farm has proposed to the program for its next run; decision.count = 0: the
     * farm has proposed none */
    kl_grain_plan grain;
    kl_expectation expected; /* the program's own forecast for its coming runs; runs = 0: there is none */
} kl_planning;

typedef struct kl_run_peer { /* a peer of the run; its index in the list is its number in the run */
    kl_peer peer;
    uint32_t place, worker; /* place: index of the worker in the load balance; worker: number of the worker */
    bool gone;              /* true: the peer is dead, or was taken out of the run */
    bool reported;          /* true: the peer counts as dead because another peer reported its death */
} kl_run_peer;

/* A run that the workers organise among themselves; run_peers.c. The master is peer 0, the root of the
 * tree. */
typedef struct kl_run_peers {
    bool on; /* true: workers organise this run */
    /* the master's part in the run; NULL: the run has not begun, because addresses of workers are missing */
    kl_node *root;
    kl_run_peer *list;
    uint32_t count, first; /* count: number of peers so far; first: number of peers when the run began */
    uint64_t room;
    kl_reaper reaper;
    kl_node_actions actions;
    double wake_s;
    /* self: messages that the root sends to itself, each preceded by its length; message: memory for one
     * message */
    kl_buffer self, message;
    uint32_t deaths, seen_deaths;
    bool malformed;       /* true: the last message that the root received was malformed */
    bool warned;          /* true: the user was already warned that a worker takes no part in this run */
    uint64_t twice;       /* number of results that were dropped because their task had a result already */
    kilter_error failure; /* reason why the run cannot continue; KILTER_OK: it can continue */
} kl_run_peers;

/* Runs that the master organised, or runs that peers organised */
typedef struct kl_way_runs {
    double task_s;  /* mean of the seconds of a run divided by its number of tasks; 0: there was no run */
    uint32_t count; /* number of workers in the last of these runs */
    uint64_t runs;  /* number of runs in the mean, which begins anew when the number of workers changes */
} kl_way_runs;

/* Data for choosing whether the master or the workers organise a run; organise.c */
typedef struct kl_organising {
    size_t sum_bytes; /* bytes of the combined results of this run; 0: the run does not combine its results */
    bool peers;       /* true: the workers organise this run as peers */
    /* measurements of the last run that the master organised; tasks = 0: there was no such run */
    kl_iteration by_master;
    uint64_t master_runs; /* number of runs that the master organised, with any number of workers */
    kl_way_runs with_master, with_peers;
    /* index n·T² of runs with a master and n workers, for the best number n found so far. T is the time of a
     * run divided by its number of tasks. 0: no best number is found yet */
    double best_index;
    /* seconds that runs with a master have lost since peers last organised a run, without the first
     * KL_COLD_RUNS runs */
    double lost_s;
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
    kl_farm_state state; /* state of the farm, with values that change only between runs; state.c */
};

/* The functions of the master's files are listed here. A file uses only functions of files above it. */

/* --- registry.c: the list of the farm's members --- */

void kl_member_free(member *one); /* free the memory of the member's fields, but not the struct itself */
/* Return the member with this peer; NULL: there is none. */
member *kl_master_find(kl_master *master, kl_peer peer);
/* Return the member whose index in the load balance (place) is `worker`; NULL: the member is gone. */
member *kl_master_member(const kl_master *master, uint32_t worker);
/* Add a member. This may remove members that have left from the list. */
kilter_status kl_master_add(kl_master *master, kl_peer peer, kilter_error *error);
/* Store `peer` as the peer of the worker whose index in the load balance (place) is `worker`. */
kilter_status kl_master_note_peer(kl_master *master, uint32_t worker, kl_peer peer, kilter_error *error);

/* --- rows.c: rows of the run record --- */

void kl_master_record_worker(kl_master *master, const member *one);
/* Record a measurement. worker: number of the worker that was measured; −1: the whole farm. */
void kl_master_record_measurement(kl_master *master, int64_t worker, const char *kind, double value);
void kl_master_record_mean(kl_master *master, int64_t worker, const char *kind, double mean, double sd,
                           uint64_t count);
void kl_master_record_message_cost(kl_master *master, int64_t worker);
/* Record a decision. grounds: the data on which the decision is based, which the function frees; NULL: they
 * are unknown. */
void kl_master_record_decision(kl_master *master, double now_s, const kl_decision *decision,
                               kl_buffer *grounds);

/* --- use.c: CPU time and other costs of a run --- */

void kl_master_use_begins(kl_master *master);
/* Forget the workers' reports, because the next ones also contain tasks of peers. */
void kl_master_use_anew(kl_master *master);
void kl_master_use_told(const kl_master *master, member *one, const kl_results_head *head);
/* Return the CPU time and other costs of the current run so far; all zero: unknown. */
kl_use kl_master_use_so_far(const kl_master *master);
void kl_master_record_use(kl_master *master);

/* --- twins.c: tasks that several workers have --- */

/* Recall the tasks [from, chunk->hi) from the member. The member returns the tasks among them that it has not
 * begun. */
kilter_status kl_master_recall(kl_master *master, member *one, kl_chunk *chunk, uint64_t from,
                               kilter_error *error);
/* Return whether this chunk is a copy of tasks of another chunk. */
bool kl_twins_is_copy(const kl_twins *twins, uint64_t chunk);
/* Prepare a copy of `tasks` for the worker with the index `to` in the load balance. Some tasks of `chunk` may
 * be copied already. Among the tasks that are not copied, `tasks` must be the last ones. The function
 * kl_twins_add() later sets the number of the new chunk. */
kl_twin kl_twins_pair(const kl_twins *twins, const kl_chunk *chunk, kl_span tasks, uint32_t to);
kilter_status kl_twins_add(kl_twins *twins, kl_twin *twin, uint64_t copy, kilter_error *error);
/* The tasks of the chunk that may be copied begin at chunk->at. Return the index after the last of them. If
 * this is chunk->at, no task may be copied. A task may be copied if it was not copied from this chunk before,
 * and if the limit allows one more copy. */
uint64_t kl_twins_alone_until(const kl_twins *twins, const kl_chunk *chunk);
/* Some tasks of the chunk may be copied, so that another worker has them, too. Return the first part of
 * `span` with such tasks. Empty: there is none. */
kl_span kl_twins_first_shared(const kl_twins *twins, uint64_t chunk, kl_span span);
void kl_twins_clear(kl_twins *twins);
void kl_twins_free(kl_twins *twins);
/* Recall `tasks` of this chunk from the other workers that have them, because the tasks are done. */
kilter_status kl_master_settle_twins(kl_master *master, uint64_t chunk, kl_span tasks, kilter_error *error);
/* Take `span` out of the chunk, because its worker will not do these tasks. Copies at other workers stay.
 * *at_other: true if another worker has some of these tasks and may do them. */
kilter_status kl_master_part_twins(kl_master *master, uint64_t chunk, kl_span span, bool *at_other,
                                   kilter_error *error);

/* --- undone.c: chunks that end; tasks that were not done are dealt again --- */

void kl_master_end_chunk(kl_master *master, member *one, size_t i, bool lost);
void kl_master_record_failure(kl_master *master, const member *one, kl_trace_failure_row row);
/* Queue the results of `tasks` for the user. message: a message with only these results, which is taken over
 * if it is large; NULL: the results are copied. */
kilter_status kl_master_deliver(kl_master *master, const member *one, kl_span tasks, kilter_bytes results,
                                kl_message *message, kilter_error *error);
void kl_master_count_done(kl_master *master, kl_span tasks, uint64_t failures);
/* Deal again the tasks [from, hi) of the member's i-th chunk, because the member will not do them. Leave out
 * tasks that other workers also have. The first *blamed tasks become suspects, because one of them may have
 * killed the worker. */
kilter_status kl_master_give_up(kl_master *master, member *one, size_t i, uint64_t from, uint64_t *blamed,
                                kilter_error *error);
kilter_status kl_master_take_all_back(kl_master *master, member *one, bool is_lost, kilter_error *error);
/* End all chunks at the end of the run. Their results no longer count. */
void kl_master_end_chunks(kl_master *master);
/* Return whether the worker has a task that may have killed another worker (a suspect). A worker with a
 * suspect gets no other task. If the worker is lost, the suspect counts as the cause. */
bool kl_master_has_suspect(const kl_master *master, const member *one);
/* Mark these tasks as suspects: each may have killed the worker `last`, which had them. */
kilter_status kl_master_suspect(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* Deal again the tasks that only the worker `last` had. If that worker was lost, a task that it had begun may
 * be the cause. Mark such a task as a suspect, or let it fail. */
kilter_status kl_master_deal_again(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* Take a suspect (a task that may have killed its worker) for this worker. If possible, take one that this
 * worker has not had before. */
bool kl_master_take_suspect(kl_master *master, const member *to, uint64_t *task);
/* Record that the task which the member was doing has failed. If it may not be tried again, the task fails
 * for good. */
kilter_status kl_master_fail_attempt(kl_master *master, const member *one, const kl_chunk *chunk,
                                     uint64_t task, const char *why, kilter_error *error);

/* --- deal.c: dealing a worker its next chunk --- */

kilter_status kl_master_set_shared(kl_master *master, kilter_bytes shared, kilter_error *error);
/* Send the shared data to the worker if it does not have them yet. */
kilter_status kl_master_send_shared(kl_master *master, member *one, kilter_error *error);
/* In a simulation, let the time pass that the master needs for an answer. With a real clock, do nothing. */
void kl_master_declare_answer(const kl_master *master);
/* Deal a chunk to a worker that has requested one. If there is no chunk for the worker now, it continues to
 * wait for tasks. */
kilter_status kl_master_deal(kl_master *master, member *one, kilter_error *error);
/* Deal to the worker `to` tasks that were dealt to another worker before. If `to` has left, deal nothing,
 * and set *chunk to an empty chunk (lo = hi). */
kilter_status kl_master_deal_span(kl_master *master, member *to, kl_span span, double finish_s,
                                  kl_chunk *chunk, kilter_error *error);

/* --- rescue.c: late workers at the end of a run --- */

/* When no task is left to deal, recall tasks from late workers or copy them. */
kilter_status kl_master_rescue(kl_master *master, kilter_error *error);

/* Deal a copy of `tasks` to the worker `to`. Some tasks of `chunk` may be copied already. Among the tasks
 * that are not copied, `tasks` must be the last ones. */
kilter_status kl_master_copy(kl_master *master, const kl_chunk *chunk, kl_span tasks, member *to,
                             double finish_s, kilter_error *error);

/* --- feed.c: which workers are dealt work now --- */

/* Deal tasks to workers that wait for them. `asking` is the member that has just requested tasks; NULL: no
 * member has just done so. */
kilter_status kl_master_feed(kl_master *master, member *asking, kilter_error *error);

/* --- seats.c: which workers are active --- */

/* Make the staff.seats fastest workers active (0: all workers), and let the others rest. */
kilter_status kl_master_seat(kl_master *master, kilter_error *error);
/* Let a worker that has just joined rest, because enough workers are active. */
void kl_master_rest(kl_master *master, member *one);
/* Wake resting workers to replace active workers that are lost or leave. */
kilter_status kl_master_wake_for_lost(kl_master *master, kilter_error *error);

/* --- drain.c: releasing workers --- */

void kl_master_send_home(kl_master *master, member *one, const char *why);
/* Note that the worker is leaving, for the reason `why`. */
void kl_master_note_leaving(kl_master *master, member *one, const char *why);

/* --- run_peers.c: a run that the workers organise among themselves --- */

/* Begin the run, or ask the workers for their addresses and begin when all are known. */
kilter_status kl_run_peers_begin(kl_master *master, kilter_error *error);
/* Handle that the worker is ready, or that it has told its address. */
kilter_status kl_run_peers_ready(kl_master *master, member *one, kilter_error *error);
/* Handle that the worker has gone, and tell the other peers. */
kilter_status kl_run_peers_lose(kl_master *master, member *one, bool is_lost, kilter_error *error);
/* Pass the peer's message to the root, which is the master's part in the run. Set peers.malformed if the
 * message is malformed. After this, call kl_run_peers_look(), which does what the root must do. */
kilter_status kl_run_peers_hear(kl_master *master, member *one, kilter_bytes note, kilter_error *error);
kilter_status kl_run_peers_look(kl_master *master, kilter_error *error);
/* Return the time at which the master must act as root of the peers; HUGE_VAL: it need not act. */
double kl_run_peers_due_s(const kl_master *master);
/* Handle the end of the run. early: true if not all tasks were done. */
void kl_run_peers_end(kl_master *master, bool early);
void kl_run_peers_free(kl_run_peers *peers);

/* --- members.c: workers that join, leave or are lost --- */

/* Send away the members that have not sent their greeting in time. */
kilter_status kl_master_expel_silent(kl_master *master, kilter_error *error);
/* Deal again the unfinished tasks of a member that is gone; is_lost: true if the member did not leave by
 * itself, so one of its tasks may have killed it. */
kilter_status kl_master_lose(kl_master *master, member *one, const char *why, bool is_lost,
                             kilter_error *error);
kilter_status kl_master_lose_connection(kl_master *master, member *one, kilter_error *error);
/* Disconnect a member that violates the protocol or cannot work, and tell the member the reason. */
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

/* --- results.c: results, and tasks that workers return --- */

kilter_status kl_master_on_results(kl_master *master, member *one, kl_message *message, kilter_error *error);
kilter_status kl_master_on_return(kl_master *master, member *one, const kl_message *message,
                                  kilter_error *error);

/* --- peer_messages.c: messages of workers that are peers --- */

kilter_status kl_master_on_peer_message(kl_master *master, member *one, const kl_message *message,
                                        kilter_error *error);

/* --- limits.c: limits on the time and memory of a task --- */

/* A heartbeat of the member has come. If the task that it names exceeds a limit, let the task fail, and end
 * the worker. */
kilter_status kl_master_check_hand(kl_master *master, member *one, kilter_error *error);
kilter_status kl_master_on_renewal(kl_master *master, member *one, const kl_message *message,
                                   kilter_error *error);

/* --- planning.c: choosing the number of tasks --- */

/* Record the choice of the number of tasks for the run that has begun. */
void kl_master_record_grain(kl_master *master);
void kl_master_record_expectation(kl_master *master);

/* --- team.c: choosing the number of workers between runs --- */

/* Before a run begins, apply the settings that wait for it, or choose the number of workers. */
kilter_status kl_master_between_runs(kl_master *master, kilter_error *error);
/* Record a decision on the number of workers. The decision's text is state.decision. grounds: as in
 * kl_master_record_decision(). */
void kl_master_record_look(kl_master *master, uint32_t workers, kl_buffer *grounds);
/* Return the measurements of the last run that ended, as input of the model. */
kl_iteration kl_master_iteration(kl_master *master);
/* Return the measurements of the current run so far, as input of the model. */
kl_iteration kl_master_iteration_so_far(kl_master *master);

/* --- organise.c: choosing who organises a run --- */

/* Before a run begins, choose whether the master or the workers organise it, and record the decision. Return
 * true if the workers do. */
bool kl_master_organise(kl_master *master, const kilter_run *run);
/* store the measurements of the run that has ended, for the next choice of who organises a run */
void kl_master_note_organised(kl_master *master);

/* --- glance.c: choosing the number of workers within a run --- */

void kl_master_glance_begins(kl_master *master);
/* If it is time, choose the number of workers again: let workers rest, or wake them. */
kilter_status kl_master_glance(kl_master *master, kilter_error *error);

/* --- hosts.c: the hosts of the workers --- */

void kl_master_note_lost_on(kl_master *master, const member *one); /* count a lost worker of this host */
void kl_master_note_drained(kl_master *master, const char *host);
void kl_master_list_hosts(const kl_master *master, kl_growing_state *state);

/* --- state.c: the state of the farm for `kilter tune` --- */

void kl_master_note_iteration(kl_master *master); /* store the measurements of the run that has ended */

/* --- runs.c: how a run ends --- */

void kl_master_end_if_done(kl_master *master);
/* Return whether the run cannot continue, because no worker is left and none will join. */
bool kl_master_is_abandoned(const kl_master *master);
/* End the run if no worker is left and none will join. */
kilter_status kl_master_check_workers(kl_master *master, kilter_error *error);

#endif
