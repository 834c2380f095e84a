/* The parts of the worker, each with the file that contains its functions. A file may use the parts that are
 * declared above its own part. Only the files worker*.c include this header. */
#ifndef KL_WORKER_PRIVATE_H
#define KL_WORKER_PRIVATE_H

#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/harvest.h"
#include "peer/peer.h"

typedef struct peering peering; /* worker_peers.c */

/* --- worker_queue.c: chunks and shared data in order of arrival --- */

typedef struct queued {
    struct queued *next;
    kl_message message;
    /* true: the message holds shared data, and the fields after this one are unused; false: the message is
     * a chunk */
    bool is_shared;
    bool is_peers; /* true: the item is a single task that the worker does as a peer of other workers */
    kl_chunk_head head;
    kl_reader weights, inputs;
    uint64_t at; /* index in the chunk of the first task that is not done yet */
} queued;

typedef struct queue {
    queued *first, **end;
    uint64_t tasks; /* number of tasks in the queue that are not done */
    /* true: the queue was empty for some time after the last task. Then the time of the next task is measured
     * from its own beginning, and not from the end of the last task. */
    bool rested;
} queue;

void kl_queue_open(queue *q);
/* Append the message to the queue, which from then on owns the message. */
void kl_queue_put(queue *q, queued *item, kl_message *message);
void kl_queue_remove(queue *q, queued **place);
void kl_queue_clear(queue *q);
/* Find the chunk with this number. Return the address of the pointer to it, so that it can be removed from
 * the queue. If there is no such chunk, this pointer is NULL. */
queued **kl_queue_find(queue *q, uint64_t chunk);

/* --- worker_core.c: the worker's CPU time, and the time in which other threads had its core --- */

typedef struct core_use {
    const kl_worker_options *options;
    void *driver;
    double cpu_s, due_s; /* cpu_s: CPU time at the last reading; due_s: time of the next reading */
    /* delay: seconds for which other threads had the worker's core although the worker was ready, in tasks or
     * while sending */
    double delay_s;
    struct {                             /* values since the CPU time was last read */
        double core_run_s, core_delay_s; /* CPU time and delay of this thread at the last reading */
        double busy_s;                   /* seconds that the worker spent in tasks */
        /* total delay in seconds at the ends of watched waits. A wait for messages is watched if the delay at
         * its end is measured. */
        double waits_delay_s;
        uint32_t waits; /* number of waits that were not watched */
    } since;
    /* mean delay in seconds at the end of a watched wait, over the last watched waits */
    double wait_delay_s;
    /* number of watched waits so far; it grows only up to the number of waits that wait_delay_s averages */
    uint32_t watched;
    /* the first wait that begins after this time is watched */
    double watch_due_s;
    /* total delay in seconds of this thread when the present wait began, if this wait is watched */
    double before_s;
    bool watches; /* true: the present wait is watched */
} core_use;

/* Make the data that measure a worker's CPU time. NULL: memory ran out. */
core_use *kl_core_use_new(const kl_worker_options *options, void *driver);
void kl_core_use_clear(core_use *u); /* begin again, for another master */
void kl_core_use_look(core_use *u, double now_s);
void kl_core_use_begin_wait(core_use *u, double now_s);
void kl_core_use_end_wait(core_use *u, double began_s);

/* --- worker_leave.c: whether the worker must leave, and why --- */

enum { WHY_BYTES = 128 };

typedef struct leaving {
    _Atomic(const char *) why; /* text that says why the worker leaves; NULL: it stays */
    char *renewal;             /* text that says why a new worker must replace this one; NULL: none must */
    /* true: the master wants no more results, not even the result of the task that the worker does now */
    bool dismissed;
    /* status of an error that occurred during a task; it is returned after the task */
    kilter_status failed;
    char *failure; /* text of the error that occurred during a task; NULL: memory ran out */
    double failed_s;
} leaving;

static inline bool kl_is_leaving(const leaving *l) {
    return atomic_load(&l->why) != NULL;
}
bool kl_is_renewal(const leaving *l); /* return whether a new worker must replace this one */
/* Let the worker leave for the given reason, and let a new worker replace it. */
void kl_renew(leaving *l, const char *format, ...) KILTER_PRINTF(2, 3);
void kl_fail_in_task(leaving *l, const kilter_error *why, double now_s);
/* Return the error that occurred during a task; KILTER_OK: there was none. */
kilter_status kl_task_failure(const leaving *l, kilter_error *error);
/* Prepare for another master: forget the orders and errors of the last master. If the worker is leaving, it
 * still leaves for the same reason. */
void kl_leaving_adopt(leaving *l);
void kl_leaving_free(leaving *l);

/* --- worker_results.c: sending results, and requesting chunks --- */

typedef struct outbox {
    kl_buffer out; /* results that are ready to be sent */
    uint32_t segments;
    size_t segment_at;
    kl_segment segment;    /* the segment to which results are added now; count = 0: there is none */
    double first_result_s; /* time at which the first result in `out` was ready */
    double last_end_s;
} outbox;

typedef struct asking {
    bool asked; /* true: a chunk was requested and has not arrived yet */
    bool idle;  /* true: the worker has no task and waits for messages */
    double asked_at_s;
    uint64_t run; /* number of the run in which the chunk was requested */
    /* bytes of the message with the request; 0: its round trip cannot be measured */
    double bytes;
    /* seconds and bytes of the last measured round trip; the next message with results reports them to the
     * master, and then they become 0 */
    double round_trip_s, round_trip_bytes;
    double answer_s; /* greatest recent time in seconds from a request until its chunk arrived */
} asking;

/* Send the message and free it. It is no error if the master is gone, because the transport reports this
 * after the master's last message. */
kilter_status kl_worker_post(kl_worker *w, kl_buffer *message, kilter_error *error);
kilter_status kl_worker_send_text(kl_worker *w, kl_message_type type, const char *text, kilter_error *error);
/* Tell the master why this worker cannot work, and fail with the same reason. The master continues without
 * this worker. */
kilter_status kl_worker_refuse(kl_worker *w, kilter_error *error, const char *format, ...)
    KILTER_PRINTF(3, 4);
static inline bool kl_has_results(const outbox *o) {
    return o->segments > 0 || o->segment.count > 0;
}
static inline bool kl_flush_is_due(const outbox *o) {
    return o->out.size >= KL_FLUSH_BYTES || o->last_end_s - o->first_result_s >= KL_FLUSH_S;
}
void kl_begin_segment(outbox *o, kl_buffer *out, const queued *chunk, double now_s);
void kl_end_segment(outbox *o);
/* Send the results that are ready. more: true to request the next chunk in the same message. */
kilter_status kl_worker_flush(kl_worker *w, bool more, kilter_error *error);
/* Note that a chunk has arrived, in a message of this number of bytes. */
void kl_asking_answered(asking *a, const kl_chunk_head *head, size_t bytes, double now_s);

/* --- worker_tasks.c: the task at hand, and the shared data --- */

struct kilter_result {
    kl_buffer *buffer;
    size_t at; /* offset of the task's result in `buffer` */
    bool failed;
};

typedef struct hand {
    /* true: the worker is doing a task, which is called the task at hand. It is the next task of the queue's
     * first item. */
    bool at_work;
    /* true: the result is sent in a message of its own, without a copy; false: it is appended to
     * outbox.out */
    bool alone;
    double began_s;               /* time at which the task at hand began */
    KL_ROOMY(kilter_task) handed; /* the task in the form that the work function gets */
    double weight;
    kilter_result result;
    kl_buffer making; /* result that the work function is writing; no other thread uses it */
    kl_buffer input;  /* copy of the task's input, if the input was not aligned */
    uint64_t done;    /* number of tasks done so far */
    double task_s;    /* mean seconds per task, over the last tasks; 0: unknown */
} hand;

typedef struct shared_data {
    kilter_bytes bytes; /* the shared data that the worker has now */
    uint64_t hash;
    kl_message message; /* message that holds the shared data; all zero: the data were copied to `moved` */
    kl_buffer moved;    /* copy of the shared data, if they were not aligned */
} shared_data;

/* The part of the core's time that tasks at this worker get. */
typedef struct task_share {
    /* tasks_s: seconds in tasks since the last measurement; busy_s: CPU time at the last measurement */
    double tasks_s, busy_s;
    double usual;
} task_share;

/* Return whether the worker should request more tasks now, because little work is left. */
bool kl_worker_runs_low(const kl_worker *w);
/* Do tasks of the queue until it is time to check for messages. For each task: begin it, call its function,
 * end it. */
kilter_status kl_worker_work(kl_worker *w, kilter_error *error);
void kl_shared_data_free(shared_data *shared);

/* --- worker_recall.c: returning tasks to the master --- */

kilter_status kl_worker_on_recall(kl_worker *w, const kl_part *part, kilter_error *error);
kilter_status kl_worker_give_all_back(kl_worker *w, kilter_error *error);

/* --- worker_made.c: the result of the task that the worker does --- */

void kl_fail_result(kilter_result *result, const char *text);
/* If the task's result is wrong or missing, replace it by a failure. code: the value that the work function
 * returned. */
void kl_check_result(hand *h, int code, size_t wanted);
/* Add the time of a task. If enough time has passed, measure which part of the core's time tasks get. */
void kl_account_share(task_share *share, const kl_attendance *attendance, double seconds);

/* --- worker_mates.c: messages of a peer to other peers --- */

typedef struct mate { /* another peer of this run */
    bool asked;       /* true: the master was asked for the address of this peer */
    bool gone;
    uint32_t worker;   /* number of the peer's worker; UINT32_MAX: not known */
    kl_peer peer;      /* the connection to the peer; KL_NO_PEER: there is none yet, so messages wait */
    kl_buffer waiting; /* messages that wait for the peer's address, each preceded by its length */
} mate;

typedef struct mates {
    mate *list; /* the other peers of this run; the index is a peer's number in the run */
    uint64_t count, room;
    kl_peer *known; /* connections to workers, which stay open after a run; the index is a worker's number */
    uint64_t known_count;
} mates;

/* Send the bytes to the run's peer `number`, now or as soon as its address is known. */
kilter_status kl_mates_send(kl_worker *w, uint32_t number, const kl_buffer *bytes, kilter_error *error);
/* Note that a message of the run's peer head->from has arrived on the connection `peer`. */
kilter_status kl_mates_heard(kl_worker *w, const kl_note_head *head, kl_peer peer, kilter_error *error);
/* Handle the master's answer with an address: connect to the worker, and send the messages that wait. *gone:
 * true if the worker is gone. */
kilter_status kl_mates_found(kl_worker *w, const kl_where *where, bool *gone, kilter_error *error);
/* Handle the end of a connection to a worker. Return the worker's number in the run;
 * UINT32_MAX: the worker has no part in the run. */
uint32_t kl_mates_lose(mates *m, kl_peer peer);
/* Handle the loss of a worker. Return the worker's number in the run; UINT32_MAX: the worker has no part
 * in the run. */
uint32_t kl_mates_lose_worker(kl_worker *w, uint64_t worker);
void kl_mates_clear(mates *m); /* forget the peers of the run, but keep the connections */
void kl_mates_free(mates *m);

/* --- worker_signals.c: calls for help and offers of help, in a shared folder --- */

typedef struct signalling {
    bool on;     /* true: this run has a folder for signals, and the worker uses it */
    bool calls;  /* true: this peer is late, so it calls for help */
    bool called; /* true: this peer's call for help is in the folder, or was taken from it */
    bool seeks;  /* true: this peer is idle and waits for a call for help that it can answer */
    kl_signal call;
    double due_s; /* time of the next check of the folder */
} signalling;

/* Begin to use the run's folder for signals, if it has one. KILTER_ERR_TASK: this worker cannot use the
 * folder, and the master was told. */
kilter_status kl_signals_begin(kl_worker *w, kilter_error *error);
void kl_signals_end(kl_worker *w); /* Remove this peer's call for help, and stop using the folder. */
double kl_signals_due_s(const kl_worker *w);
/* Carry out an action KL_NODE_CALLS, KL_NODE_SEEKS or KL_NODE_OFFERS. false: an offer of help cannot be
 * written to the folder. */
bool kl_signals_act(kl_worker *w, const kl_node_action *action);
/* Begin a check of the folder, if it is time for one: write this peer's call for help, or remove it. */
void kl_signals_look(kl_worker *w);
/* Take the next signal for this peer, which is a file, out of the folder. Call this after kl_signals_look().
 * false: there is no signal. */
bool kl_signals_next(kl_worker *w, kl_node_event *event);

/* --- worker_peers.c: the worker as a peer of other workers --- */

typedef struct early { /* A message that came for a run which has not begun at this worker. */
    struct early *next;
    kl_peer peer;
    size_t size;
    uint8_t data[];
} early;

typedef struct block { /* The inputs of consecutive tasks, in one message. */
    kl_message message;
    kl_wanted tasks; /* the tasks whose inputs the message has; lo = hi: there are none */
    uint64_t next;   /* task whose input `reader` reads next */
    kl_reader first, reader;
} block;

struct peering {
    kl_node *node; /* this worker's part in the run as a peer; NULL: the worker is not a peer now */
    kl_peers_head run;
    /* number of the first run that has not ended: this run is in progress, or may still begin */
    uint64_t next_run;
    kl_reaper reaper;
    kl_node_actions actions;
    double wake_s;
    mates mates;
    early *early;
    size_t early_bytes; /* bytes of all messages in the list `early` */
    /* self: messages of this peer to itself, each preceded by its length */
    kl_buffer self, value, message;
    uint64_t task; /* task that begins when its input has arrived; UINT64_MAX: there is none */
    block block;
    signalling signals;
};

/* Handle a message that concerns peers. If the function keeps the message, it sets *m to zero. */
kilter_status kl_peering_message(kl_worker *w, kl_peer from, kl_message *m, kilter_error *error);
/* Handle that a connection to another worker has ended. */
kilter_status kl_peering_left(kl_worker *w, kl_peer peer, kilter_error *error);
/* Do everything that a peer must do by now. */
kilter_status kl_peering_look(kl_worker *w, kilter_error *error);
/* Return the time at which the peer must act next; HUGE_VAL: it need not act. */
double kl_peering_due_s(const kl_worker *w);
/* End the task that is the first item of the queue. The worker did it as a peer. */
kilter_status kl_peering_end_task(kl_worker *w, int code, kilter_error *error);
void kl_peering_stop(kl_worker *w, uint64_t before); /* forget all runs whose number is below `before` */
void kl_peering_free(peering *p);

/* --- worker.c: making and freeing a worker, its messages and its turns --- */

/* Receive and handle messages. If there is no work, wait up to timeout_s for the first message. */
kilter_status kl_worker_take_in(kl_worker *w, double timeout_s, kilter_error *error);

/* --- worker_attend.c: a second thread handles messages during a long task --- */

typedef struct attended {
    uint64_t task; /* number of tasks done (`hand.done`) when this thread first saw the present task */
    bool seen;
    bool over; /* true: the process exceeded its memory limit, and the master was told */
    /* since_s: time at which this thread first saw the task; busy_s: CPU time used by then */
    double since_s, busy_s;
    double heartbeat_due_s;
} attended;

struct kl_worker {
    const kl_worker_options *options;
    void *driver; /* pointer that the functions in `options` get as their first argument */
    /* functions for a second thread that handles messages during tasks; works = NULL: there is no such
     * thread */
    kl_attendance attendance;
    kl_transport *transport;
    kl_peer master;
    /* data that the start function gets, with zeros behind them; NULL: there is no start function */
    kilter_worker *self;
    void *state;
    uint32_t index;
    /* started: true if the start function was called; ready: true if the present master has welcomed the
     * worker */
    bool started, ready;
    bool orphan; /* true: the worker has lost its master */
    double waiting_since_s;
    uint64_t memory_before; /* bytes of memory that the worker's process used when it was welcomed */
    kl_welcome limits;      /* limits that the master has set in its message WELCOME */
    queue queue;
    leaving leaving;
    outbox outbox;
    asking asking;
    hand hand;
    task_share share;
    attended attended;
    core_use *core;      /* CPU time and delay of the worker; NULL: the worker does not report them */
    shared_data *shared; /* shared data that the worker has; NULL: it has received none */
    peering *peers;      /* the worker's data as a peer; NULL: it was never a peer */
};

#endif
