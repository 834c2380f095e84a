/* Declarations that the files of the master share. No other file includes it. */
#ifndef KL_MASTER_PRIVATE_H
#define KL_MASTER_PRIVATE_H

#include "engine/engine.h"
#include "engine/harvest.h"
#include "probe/probe.h"

typedef enum stage {
    GREETING, /* the member has joined, but has not sent its greeting */
    STARTING, /* the worker's start function runs */
    PROBING,  /* the costs of messages to the worker are measured */
    WORKING,  /* the worker is dealt tasks */
    LEAVING,  /* the worker was told to finish its task and leave */
    GONE,
} stage;

typedef struct kl_reachable { /* how other workers reach a worker */
    char *address; /* the worker's address for other workers; "": they cannot reach it; NULL: not known yet */
    char *why_not; /* if `address` is "": why other workers cannot reach this worker, in its own words;
                      otherwise NULL */
    bool asked;    /* true: the worker was asked for its address */
} kl_reachable;

typedef struct kl_peer_part { /* a worker's part in a run by peers */
    uint32_t number;          /* the worker's number among the peers of this run; 0: it is no peer */
    bool had;                 /* true: the worker is a peer of this run, or was one */
} kl_peer_part;

typedef struct member {
    kl_peer peer;
    stage stage;
    uint32_t worker; /* the worker's place in the balance */
    uint32_t number; /* the worker's number; no other worker ever gets it */
    /* true: the worker has a place in the balance, which it keeps from stage STARTING until it is
     * forgotten */
    bool has_place;
    bool attends; /* true: the worker answers messages and sends heartbeats during a task */
    bool hungry, held, resting;
    /* true: each unfinished task of this worker is also at another worker; false: unknown */
    bool nothing_alone;
    /* names in the worker's greeting, in one block of memory; NULL: it has sent no greeting */
    char *host, *binding;
    uint64_t pid;          /* number of the worker's process */
    uint64_t shared;       /* generation of the shared data that the worker was sent; 0: none */
    const char *sent_home; /* if LEAVING: why */
    double joined_s;       /* time at which the member joined */
    double asked_s;        /* time at which the worker requested tasks */
    double heard_s;        /* time of the worker's last message */
    /* CPU time and delay of the worker's process, from its last report; cpu_s = 0: it has not reported */
    double cpu_s, delay_s;
    double run_cpu_s,
        run_delay_s; /* the parts of this CPU time and of this delay that belong to the current run */
    /* the worker's last heartbeat, and the time at which it came; 0: none has come */
    kl_heartbeat heartbeat;
    double heartbeat_s;
    kl_probe probe;
    kl_chunk *chunks; /* the worker's chunks, oldest first */
    uint32_t chunk_count;
    uint64_t chunk_room;
    kl_reachable reach;
    kl_peer_part part;
} member;

/* Tasks [lo, hi) that two workers have. They are the end of the first chunk, and all of the second chunk,
 * which is the copy. A copy may be copied again. */
typedef struct kl_twin {
    uint64_t lo, hi, chunk[2];
    uint32_t worker[2]; /* the workers with these chunks */
    uint32_t copies;    /* number of copies of these tasks so far, including this copy */
    uint64_t next[2];   /* next pair of chunks in the list of each of the two chunks */
} kl_twin;

typedef struct kl_twins { /* Pairs of chunks with the same tasks, called twins; twins.c. All zero: there are
                             none. */
    kl_twin *list;
    uint64_t count, room;
    uint64_t *buckets, bucket_count; /* hash table of the lists; bucket_count is a power of 2 */
    /* true: in this run a second worker was given some tasks, so they may be executed more than once */
    bool any;
} kl_twins;

/* A suspect: a task that failed, or whose worker (`last`) was lost. Suspects are dealt one at a time, when
 * no other task is left. */
typedef struct kl_suspect {
    kl_span span;
    uint32_t last; /* number of the worker that had the task last */
} kl_suspect;

/* A request to a worker to return tasks of a chunk. */
typedef struct kl_asked {
    uint32_t worker;
    uint64_t chunk;
} kl_asked;

/* A host where workers were lost or sent home. */
typedef struct kl_trouble {
    char name[KL_CONTROL_HOST_BYTES];
    uint32_t lost;
    bool drained;
} kl_trouble;

/* The members of the farm, and their number in each stage; registry.c */
typedef struct kl_registry {
    member *list; /* in order of `peer` */
    size_t count;
    uint64_t room;
    kl_peer *peers; /* the peer of the worker at each place of the balance */
    uint32_t peer_count;
    uint32_t greeting, probing, ready, leaving; /* `ready` includes resting workers */
    uint32_t resting;
    uint32_t gone;        /* number of members in the list that have left and are not removed yet */
    uint32_t refused;     /* number of workers so far that could not work, or that left without being asked */
    uint32_t coming;      /* number of workers that are being started */
    double silent_s;      /* time at which the next member in stage GREETING is sent away */
    char last_loss[256];  /* a sentence about the worker that was lost last */
    kl_trouble *troubles; /* hosts.c */
    uint64_t trouble_count, trouble_room;
} kl_registry;

typedef struct kl_shared_data { /* deal.c */
    kl_buffer message;          /* the SHARED message of the present generation */
    uint64_t generation;
    uint64_t bytes; /* bytes of the shared data */
    size_t sent;    /* bytes of shared data that each worker gets in the run */
} kl_shared_data;

/* The current run, or the last run if none is in progress; runs.c */
typedef struct kl_run_state {
    uint64_t number; /* number of the current run, or of the next one; the first is 0 */
    bool running;
    bool open;  /* true: tasks may still be added */
    bool grown; /* true: tasks were added */
    bool holds; /* true: too many results are not on the disk yet, so no tasks are dealt */
    kl_limits limits;
    double began_s, ended_s;
    uint64_t done, failed;
    uint64_t unsafe;   /* number of results in `done` that are not on the disk yet, and may be lost */
    uint64_t finished; /* number of tasks finished in all runs */
    uint64_t failures_recorded;
    kl_spans done_before; /* tasks of the next run that are done already */
    kilter_farm_summary summary;
    char decision[512]; /* text of the summary's decision */
} kl_run_state;

typedef struct kl_suspects { /* undone.c */
    kl_suspect *list;
    uint64_t count, room;
    uint64_t tasks;
} kl_suspects;

typedef struct kl_feeding { /* feed.c */
    bool all;               /* true: deal to all, because every worker that waits may get tasks now */
    /* time of the next check of workers that are late, or that the policy made wait; 0: there are none */
    double look_again_s;
    double empty_s; /* time at which the bag became empty; 0: it is not empty */
} kl_feeding;

typedef struct kl_recalls { /* rescue.c */
    kl_asked *list;         /* recalls; some may be answered already */
    uint64_t count, room;
} kl_recalls;

typedef struct kl_run_use { /* use.c */
    kl_use last;            /* CPU time and other use of the last run */
    uint64_t messages;      /* number of messages received in this run */
    bool known; /* true: the CPU times at the beginning of the run are known; the next fields hold them */
    double farm_then_s, callbacks_then_s;
} kl_run_use;

/* The number of active workers. team.c chooses it between runs, glance.c within a run. */
typedef struct kl_staff {
    kl_tuning pending; /* tuning points for the next run */
    uint32_t seats;    /* wanted number of active workers; 0: all */
    bool by_hand;      /* true: the user has set `seats` */
    bool chooses;      /* true: the farm chooses `seats` itself */
    kl_team team;
    kl_glance glance;    /* state of the checks within this run */
    double glance_due_s; /* time of the next check; HUGE_VAL: there is none */
} kl_staff;

/* How the number of tasks of coming runs is chosen; planning.c */
typedef struct kl_planning {
    /* the program's own time as a function of the last run's number of tasks [t_M(T)] */
    kl_line alone;
    double master_s;    /* seconds that the program has computed since the last run [l_m] */
    double lost_s;      /* seconds of a run that the fork-join model does not explain */
    uint64_t lost_runs; /* number of the run after which lost_s was learned */
    /* the plan that the program was given for the next run; decision.count = 0: none was given */
    kl_grain_plan grain;
    kl_expectation expected; /* what the program expects of its coming runs; runs = 0: nothing */
} kl_planning;

typedef struct kl_run_peer { /* a peer of the run; the index in the list is its number */
    kl_peer peer;
    uint32_t place, worker; /* place in the balance, and number of the worker */
    bool gone;              /* true: the peer is dead, or was taken out of the run */
    bool reported;          /* true: the peer counts as dead because another peer reported so */
} kl_run_peer;

/* A run that the workers organise among themselves; run_peers.c. The master is peer 0, the root of the
 * tree. */
typedef struct kl_run_peers {
    bool on;       /* true: workers organise this run */
    kl_node *root; /* NULL: the run has not begun, because addresses are missing */
    kl_run_peer *list;
    uint32_t count, first; /* number of peers so far, and at the beginning */
    uint64_t room;
    kl_reaper reaper;
    kl_node_actions actions;
    double wake_s;
    /* messages of the root to itself, each preceded by its length, and memory for one message */
    kl_buffer self, message;
    uint32_t deaths, seen_deaths;
    bool malformed;       /* true: the last message that the root heard was malformed */
    bool warned;          /* true: the user was warned that a worker takes no part in this run */
    uint64_t twice;       /* number of results that were dropped because their task had a result already */
    kilter_error failure; /* why the run cannot go on; KILTER_OK: it can */
} kl_run_peers;

/* How it is chosen whether the master or peers organise a run; organise.c */
typedef struct kl_organising {
    size_t sum_bytes; /* bytes of the sum of this run's results; 0: the run does not reduce */
    bool peers;       /* true: peers organise this run */
    /* measurements of the last run that the master organised; tasks = 0: there was none */
    kl_iteration by_master;
    uint64_t master_runs; /* number of runs that the master organised */
    /* means of kl_organise_mean() over runs: seconds of a run per task. 0: there was none */
    double by_master_task_s, by_peers_task_s;
    double lost_s; /* seconds that runs with a master have lost since the last run that peers organised */
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
    kl_farm_state state; /* values that change only between runs; state.c */
};

/* The functions of the files follow. A file uses only functions of the files above it. */

/* --- registry.c --- */

void kl_member_free(member *one); /* free the member's contents, but not the struct */
/* Return the member with this peer; NULL: there is none. */
member *kl_master_find(kl_master *master, kl_peer peer);
member *kl_master_member(const kl_master *master,
                         uint32_t worker); /* Return the member at this place; NULL: it is gone. */
/* Add a member. This may remove members from the list that have left. */
kilter_status kl_master_add(kl_master *master, kl_peer peer, kilter_error *error);
/* Store which peer the worker at this place is. */
kilter_status kl_master_note_peer(kl_master *master, uint32_t worker, kl_peer peer, kilter_error *error);

/* --- rows.c: rows of the record --- */

void kl_master_record_worker(kl_master *master, const member *one);
/* Record a measurement. worker: number of the worker; −1: the whole farm. */
void kl_master_record_measurement(kl_master *master, int64_t worker, const char *kind, double value);
void kl_master_record_mean(kl_master *master, int64_t worker, const char *kind, double mean, double sd,
                           uint64_t count);
void kl_master_record_message_cost(kl_master *master, int64_t worker);
/* Record a decision, and free `grounds`, the data on which it is based; NULL: they are unknown. */
void kl_master_record_decision(kl_master *master, double now_s, const kl_decision *decision,
                               kl_buffer *grounds);

/* --- use.c: CPU time and other costs of a run --- */

void kl_master_use_begins(kl_master *master);
void kl_master_use_told(const kl_master *master, member *one, const kl_results_head *head);
/* Return the use of the current run so far; all zero: unknown. */
kl_use kl_master_use_so_far(const kl_master *master);
void kl_master_record_use(kl_master *master);

/* --- twins.c: tasks that several workers have --- */

/* Recall those of the tasks [from, chunk->hi) that the member has not begun. */
kilter_status kl_master_recall(kl_master *master, member *one, kl_chunk *chunk, uint64_t from,
                               kilter_error *error);
bool kl_twins_has_copy(const kl_twins *twins, uint64_t chunk); /* Return whether the chunk is a copy. */
/* Prepare a copy of `tasks` for the worker at place `to`. They must be the last tasks of `chunk` that no
 * second worker has. kl_twins_add() later sets the number of the copy. */
kl_twin kl_twins_pair(const kl_twins *twins, const kl_chunk *chunk, kl_span tasks, uint32_t to);
kilter_status kl_twins_add(kl_twins *twins, kl_twin *twin, uint64_t copy, kilter_error *error);
/* Return where the chunk's tasks end that may be copied, counted from chunk->at. Such tasks have no later
 * copy, and another copy is allowed. */
uint64_t kl_twins_alone_until(const kl_twins *twins, const kl_chunk *chunk);
/* Return the first part of `span` that is also at another worker, by a twin of this chunk; empty: there is
 * none. */
kl_span kl_twins_first_shared(const kl_twins *twins, uint64_t chunk, kl_span span);
void kl_twins_clear(kl_twins *twins);
void kl_twins_free(kl_twins *twins);
/* Recall `tasks` of this chunk, which are done, from the other workers that have them. */
kilter_status kl_master_settle_twins(kl_master *master, uint64_t chunk, kl_span tasks, kilter_error *error);
/* Take `span` out of the chunk, because its worker will not do these tasks. Copies at other workers stay.
 * *at_other: another worker has some of these tasks and may do them. */
kilter_status kl_master_part_twins(kl_master *master, uint64_t chunk, kl_span span, bool *at_other,
                                   kilter_error *error);

/* --- undone.c: chunks end, and tasks that were not done are dealt again --- */

void kl_master_end_chunk(kl_master *master, member *one, size_t i, bool lost);
void kl_master_record_failure(kl_master *master, const member *one, kl_trace_failure_row row);
/* Queue the results of `tasks` for the user. message: the message that holds only these results; it is
 * taken over if it is large. NULL: copy the results. */
kilter_status kl_master_deliver(kl_master *master, const member *one, kl_span tasks, kilter_bytes results,
                                kl_message *message, kilter_error *error);
void kl_master_count_done(kl_master *master, kl_span tasks, uint64_t failures);
/* Deal again the tasks [from, hi) of the member's i-th chunk, which the member will not do. Leave out
 * tasks that other workers also have. The first *blamed tasks become suspects. */
kilter_status kl_master_give_up(kl_master *master, member *one, size_t i, uint64_t from, uint64_t *blamed,
                                kilter_error *error);
kilter_status kl_master_take_all_back(kl_master *master, member *one, bool is_lost, kilter_error *error);
/* End all chunks when the run ends. Their results no longer count. */
void kl_master_end_chunks(kl_master *master);
/* Return whether the worker has a suspect task. Such a worker gets no other task, so that the cause is
 * known if the worker is lost. */
bool kl_master_has_suspect(const kl_master *master, const member *one);
/* Make these tasks suspects. `last` is the worker that had them. */
kilter_status kl_master_suspect(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* Deal again the tasks that only `last` had. If that worker was lost, a task that it had begun becomes a
 * suspect, or fails. */
kilter_status kl_master_deal_again(kl_master *master, const member *last, kl_span span, kilter_error *error);
/* Take a suspect for this worker. Avoid a task that this worker had before, unless no other worker can
 * take the task. */
bool kl_master_take_suspect(kl_master *master, const member *to, uint64_t *task);
/* Note that the member's task at hand has failed. Without retries left, the task fails for good. */
kilter_status kl_master_fail_attempt(kl_master *master, const member *one, const kl_chunk *chunk,
                                     uint64_t task, const char *why, kilter_error *error);

/* --- deal.c: the next chunk of a worker --- */

kilter_status kl_master_set_shared(kl_master *master, kilter_bytes shared, kilter_error *error);
/* Send the shared data if the worker does not have them. */
kilter_status kl_master_send_shared(kl_master *master, member *one, kilter_error *error);
/* Let the simulated time of the master's answer pass. With a real clock, do nothing. */
void kl_master_declare_answer(const kl_master *master);
/* Deal a chunk to a worker that has requested one. If there is nothing for the worker now, it stays
 * hungry. */
kilter_status kl_master_deal(kl_master *master, member *one, kilter_error *error);
/* Deal tasks that are not in the bag to `to`. If this worker has left, do not deal them, and set *chunk to
 * an empty one (lo = hi). */
kilter_status kl_master_deal_span(kl_master *master, member *to, kl_span span, double finish_s,
                                  kl_chunk *chunk, kilter_error *error);

/* --- rescue.c: the end of a run --- */

/* Recall tasks from late workers or copy them, when no task is left to deal. */
kilter_status kl_master_rescue(kl_master *master, kilter_error *error);

/* Deal a copy of `tasks` to `to`. They must be the last tasks of `chunk` that no second worker has. */
kilter_status kl_master_copy(kl_master *master, const kl_chunk *chunk, kl_span tasks, member *to,
                             double finish_s, kilter_error *error);

/* --- feed.c: which workers are dealt work now --- */

/* asking: the member that has just requested tasks; NULL: none has */
kilter_status kl_master_feed(kl_master *master, member *asking, kilter_error *error);

/* --- seats.c: which workers are active --- */

/* Make the staff.seats fastest workers active, and let the others rest. */
kilter_status kl_master_seat(kl_master *master, kilter_error *error);
/* Let the worker rest, because it has just joined and enough workers are active. */
void kl_master_rest(kl_master *master, member *one);
/* Wake resting workers instead of active workers that are lost or leave. */
kilter_status kl_master_wake_for_lost(kl_master *master, kilter_error *error);

/* --- drain.c: which workers are sent home --- */

void kl_master_send_home(kl_master *master, member *one, const char *why);
/* Mark the worker as leaving, for the reason `why`. */
void kl_master_note_leaving(kl_master *master, member *one, const char *why);

/* --- run_peers.c: a run that the workers organise among themselves --- */

/* Begin the run, or ask the workers for their addresses and begin when all are known. */
kilter_status kl_run_peers_begin(kl_master *master, kilter_error *error);
/* Handle that the worker is ready, or has told its address. */
kilter_status kl_run_peers_ready(kl_master *master, member *one, kilter_error *error);
/* Handle that the worker has gone, and tell the others. */
kilter_status kl_run_peers_lose(kl_master *master, member *one, bool is_lost, kilter_error *error);
/* Pass this peer's message to the root; peers.malformed says whether it was malformed. Then call the next
 * function, which does what is due. */
kilter_status kl_run_peers_hear(kl_master *master, member *one, kilter_bytes note, kilter_error *error);
kilter_status kl_run_peers_look(kl_master *master, kilter_error *error);
/* Return the time at which the root must act; HUGE_VAL: it need not act. */
double kl_run_peers_due_s(const kl_master *master);
/* Handle that the run has ended. early: not all tasks were done. */
void kl_run_peers_end(kl_master *master, bool early);
void kl_run_peers_free(kl_run_peers *peers);

/* --- members.c: workers come and go --- */

/* Send away members whose greeting is overdue. */
kilter_status kl_master_expel_silent(kl_master *master, kilter_error *error);
/* Deal again the unfinished tasks of a member that is gone. If it is_lost, it did not leave by itself, so
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

/* Check the limits after a heartbeat. If the task at hand exceeds one, the task fails and the worker is
 * ended. */
kilter_status kl_master_check_hand(kl_master *master, member *one, kilter_error *error);
kilter_status kl_master_on_renewal(kl_master *master, member *one, const kl_message *message,
                                   kilter_error *error);

/* --- planning.c: the number of tasks --- */

/* Record the plan that was given for the run that has begun. */
void kl_master_record_grain(kl_master *master);
void kl_master_record_expectation(kl_master *master);

/* --- team.c: the number of workers --- */

/* Before a run begins, apply the settings that wait, or choose the number of workers. */
kilter_status kl_master_between_runs(kl_master *master, kilter_error *error);
/* Record a decision on the number of workers, which is in state.decision. grounds: as in
 * kl_master_record_decision(). */
void kl_master_record_look(kl_master *master, uint32_t workers, kl_buffer *grounds);
/* Return the measurements of the last run that ended, as input of the model. */
kl_iteration kl_master_iteration(kl_master *master);
/* Return the measurements of the current run so far, as input of the model. */
kl_iteration kl_master_iteration_so_far(kl_master *master);

/* --- organise.c: who organises a run --- */

/* Before a run begins, decide who organises it, and record the decision. Return whether the workers
 * organise it. */
bool kl_master_organise(kl_master *master, const kilter_run *run);
void kl_master_note_organised(kl_master *master); /* store the measurements of the run that has ended */

/* --- glance.c: the number of workers within a run --- */

void kl_master_glance_begins(kl_master *master);
/* Choose the number of workers if a check is due: let workers rest, or wake them. */
kilter_status kl_master_glance(kl_master *master, kilter_error *error);

/* --- hosts.c: hosts of workers --- */

void kl_master_note_lost_on(kl_master *master, const member *one); /* count a lost worker */
void kl_master_note_drained(kl_master *master, const char *host);
void kl_master_list_hosts(const kl_master *master, kl_growing_state *state);

/* --- state.c --- */

void kl_master_note_iteration(kl_master *master); /* store the figures of the run that has ended */

/* --- runs.c --- */

void kl_master_end_if_done(kl_master *master);
/* Return whether the run cannot go on, because no worker is left and none will join. */
bool kl_master_is_abandoned(const kl_master *master);
kilter_status
kl_master_check_workers(kl_master *master,
                        kilter_error *error); /* End the run if no worker is left and none will join. */

#endif
