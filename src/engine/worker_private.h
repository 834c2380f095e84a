/* The parts of the worker, each with the file that owns it. A file may use the parts declared before its
 * own part. Only the files worker*.c include this header. */
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
    /* true: the message holds shared data, and the fields below are unused; false: it is a chunk */
    bool is_shared;
    bool is_peers; /* true: the item is a single task that the worker does as a peer */
    kl_chunk_head head;
    kl_reader weights, inputs;
    uint64_t at; /* index in the chunk of the first task that is not done */
} queued;

typedef struct queue {
    queued *first, **end;
    uint64_t tasks; /* number of queued tasks that are not done */
    /* true: the queue was empty after the last task, so the time of the next task begins with the task
     * itself */
    bool rested;
} queue;

void kl_queue_open(queue *q);
/* Append the message to the queue, which takes it over. */
void kl_queue_put(queue *q, queued *item, kl_message *message);
void kl_queue_remove(queue *q, queued **place);
void kl_queue_clear(queue *q);
/* Return the link in the queue to the chunk with this number; the link is NULL if there is none. */
queued **kl_queue_find(queue *q, uint64_t chunk);

/* --- worker_core.c: the worker's CPU time, and the time in which other threads had its core --- */

typedef struct core_use {
    const kl_worker_options *options;
    void *driver;
    double cpu_s, due_s; /* CPU time at the last look, and the time of the next look */
    /* seconds of delay: the worker was ready, in tasks or while sending, but other threads had its core */
    double delay_s;
    struct {                             /* values since the last reading */
        double core_run_s, core_delay_s; /* CPU time and delay of this thread at the last look */
        double busy_s;                   /* seconds in tasks */
        double waits_delay_s;            /* seconds of delay at the ends of watched waits */
        uint32_t waits;                  /* number of waits that were not watched */
    } since;
    double wait_delay_s; /* mean seconds of delay at the end of recent watched waits */
    uint32_t watched;    /* number of watched waits, up to the number that the mean covers */
    double watch_due_s;  /* time from which on the next wait is watched */
    double before_s;     /* seconds of delay of this thread when the watched wait began */
    bool watches;        /* true: the current wait is watched */
} core_use;

/* Return a new core_use; NULL: memory ran out. */
core_use *kl_core_use_new(const kl_worker_options *options, void *driver);
void kl_core_use_clear(core_use *u); /* start again for another master */
void kl_core_use_look(core_use *u, double now_s);
void kl_core_use_begin_wait(core_use *u, double now_s);
void kl_core_use_end_wait(core_use *u, double began_s);

/* --- worker_leave.c: whether the worker must leave, and why --- */

enum { WHY_BYTES = 128 };

typedef struct leaving {
    _Atomic(const char *) why; /* why the worker leaves, as text; NULL: it stays */
    char *renewal;             /* why a new worker must replace this one, as text; NULL: none must */
    bool dismissed;            /* true: the master wants no more results, not even that of the task at hand */
    kilter_status failed;      /* status of an error that occurred during a task, and is returned after it */
    char *failure;             /* text of the error; NULL: memory ran out */
    double failed_s;
} leaving;

static inline bool kl_is_leaving(const leaving *l) {
    return atomic_load(&l->why) != NULL;
}
bool kl_is_renewal(const leaving *l); /* return whether a new worker is to replace this one */
/* Let the worker leave for this reason, and a new worker replace it. */
void kl_renew(leaving *l, const char *format, ...) KILTER_PRINTF(2, 3);
void kl_fail_in_task(leaving *l, const kilter_error *why, double now_s);
/* Return the error that came during a task; KILTER_OK: there was none. */
kilter_status kl_task_failure(const leaving *l, kilter_error *error);
/* Prepare for another master: keep whether and why the worker leaves, but forget the last master's orders
 * and errors. */
void kl_leaving_adopt(leaving *l);
void kl_leaving_free(leaving *l);

/* --- worker_results.c: sending results, and requesting chunks --- */

typedef struct outbox {
    kl_buffer out; /* results that are ready to be sent */
    uint32_t segments;
    size_t segment_at;
    kl_segment segment;    /* the segment that is being filled; count = 0: there is none */
    double first_result_s; /* time at which the first result in `out` was ready */
    double last_end_s;
} outbox;

typedef struct asking {
    bool asked; /* true: a chunk was requested and has not arrived yet */
    bool idle;  /* true: the worker has no task and waits for messages */
    double asked_at_s;
    uint64_t run; /* number of the run when the chunk was requested */
    /* bytes of the request; 0: its round trip cannot be measured */
    double bytes;
    /* seconds and bytes of the measured round trip, which the next results report; 0: none */
    double round_trip_s, round_trip_bytes;
    double answer_s; /* longest of the recent times from a request to its chunk [s] */
} asking;

/* Send the message and free it. If the master is gone, this is no error, because the transport reports it
 * after the master's last message. */
kilter_status kl_worker_post(kl_worker *w, kl_buffer *message, kilter_error *error);
kilter_status kl_worker_send_text(kl_worker *w, kl_message_type type, const char *text, kilter_error *error);
/* Tell the master why this worker cannot work, and fail with the same reason. The master continues without
 * the worker. */
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
/* Send the results that are ready. more: request the next chunk in the same message. */
kilter_status kl_worker_flush(kl_worker *w, bool more, kilter_error *error);
/* Handle that a chunk has arrived in a message of this number of bytes. */
void kl_asking_answered(asking *a, const kl_chunk_head *head, size_t bytes, double now_s);

/* --- worker_tasks.c: the task at hand, and the shared data --- */

struct kilter_result {
    kl_buffer *buffer;
    size_t at; /* offset of the task's result in the buffer */
    bool failed;
};

typedef struct hand {
    bool at_work; /* true: the next task of the queue's first item is at hand */
    /* true: the result's buffer becomes the message; false: the result is appended to `out` */
    bool alone;
    double began_s;               /* time at which the task at hand began */
    KL_ROOMY(kilter_task) handed; /* the task as the work function gets it */
    double weight;
    kilter_result result;
    kl_buffer making; /* the result that is being written; no other thread uses it */
    kl_buffer input;  /* copy of an input that was not aligned */
    uint64_t done;    /* number of tasks done so far */
    double task_s;    /* mean seconds of recent tasks; 0: unknown */
} hand;

typedef struct shared_data {
    kilter_bytes bytes; /* the present shared data */
    uint64_t hash;
    kl_message message; /* the message that holds the data; all zero: the data were copied to `moved` */
    kl_buffer moved;    /* copy of data that were not aligned */
} shared_data;

/* The share of the worker's core that tasks get. */
typedef struct task_share {
    double tasks_s, busy_s; /* seconds in tasks since the last measurement, and CPU time at that moment */
    double usual;
} task_share;

/* Return whether it is time to request more tasks, because little work is left. */
bool kl_worker_runs_low(const kl_worker *w);
/* Do queued tasks until it is time to check for messages: begin a task, call its function, end it. */
kilter_status kl_worker_work(kl_worker *w, kilter_error *error);
void kl_shared_data_free(shared_data *shared);

/* --- worker_recall.c: returning tasks --- */

kilter_status kl_worker_on_recall(kl_worker *w, const kl_part *part, kilter_error *error);
kilter_status kl_worker_give_all_back(kl_worker *w, kilter_error *error);

/* --- worker_made.c: the result of the task at hand --- */

void kl_fail_result(kilter_result *result, const char *text);
/* Replace the result by a failure if it is wrong or missing. code: the return value of the work function. */
void kl_check_result(hand *h, int code, size_t wanted);
/* Add a task's time, and measure the share of the core when enough time has passed. */
void kl_account_share(task_share *share, const kl_attendance *attendance, double seconds);

/* --- worker_mates.c: messages to other peers --- */

typedef struct mate { /* another peer of this run */
    bool asked;       /* true: the master was asked for its address */
    bool gone;
    uint32_t worker;   /* number of the worker; UINT32_MAX: not known */
    kl_peer peer;      /* the connection; KL_NO_PEER: there is none yet, so messages wait */
    kl_buffer waiting; /* messages that wait, each preceded by its length */
} mate;

typedef struct mates {
    mate *list; /* the index is the peer's number in the run */
    uint64_t count, room;
    kl_peer *known; /* connections to workers, which outlast a run; the index is the worker's number */
    uint64_t known_count;
} mates;

/* Send the bytes to peer `number` of the run, now or when its address is known. */
kilter_status kl_mates_send(kl_worker *w, uint32_t number, const kl_buffer *bytes, kilter_error *error);
/* Store that a message of the run's peer head->from has arrived on the connection `peer`. */
kilter_status kl_mates_heard(kl_worker *w, const kl_note_head *head, kl_peer peer, kilter_error *error);
/* Handle the master's answer: connect to the worker, and send the messages that wait. *gone: the worker is
 * gone. */
kilter_status kl_mates_found(kl_worker *w, const kl_where *where, bool *gone, kilter_error *error);
/* Handle that a connection has ended or, in the second function, that a worker is gone. Return its number
 * in the run; UINT32_MAX: it has none. */
uint32_t kl_mates_lose(mates *m, kl_peer peer);
uint32_t kl_mates_lose_worker(kl_worker *w, uint64_t worker);
void kl_mates_clear(mates *m); /* forget the run's peers, but not the connections */
void kl_mates_free(mates *m);

/* --- worker_signals.c: calls for help and offers of help, in a shared folder --- */

typedef struct signalling {
    bool on;     /* true: the present run has a folder for signals */
    bool calls;  /* true: this peer is late */
    bool called; /* true: its call is, or was, in the folder */
    bool seeks;  /* true: this peer waits for a call that it can answer */
    kl_signal call;
    double due_s; /* time of the next check of the folder */
} signalling;

/* Begin to use the run's folder, if it has one. KILTER_ERR_TASK: this worker cannot use it, and the master
 * was told. */
kilter_status kl_signals_begin(kl_worker *w, kilter_error *error);
void kl_signals_end(kl_worker *w); /* Withdraw the call, and stop using the folder. */
double kl_signals_due_s(const kl_worker *w);
/* Carry out KL_NODE_CALLS, KL_NODE_SEEKS or KL_NODE_OFFERS. false: the offer cannot be written. */
bool kl_signals_act(kl_worker *w, const kl_node_action *action);
/* Begin a check of the folder, which is due: write this peer's call or withdraw it. */
void kl_signals_look(kl_worker *w);
/* Take the next signal for this peer, after kl_signals_look(). false: there is none. */
bool kl_signals_next(kl_worker *w, kl_node_event *event);

/* --- worker_peers.c: the worker as a peer --- */

typedef struct early { /* a message of a run that has not begun at this worker */
    struct early *next;
    kl_peer peer;
    size_t size;
    uint8_t data[];
} early;

typedef struct block { /* inputs of consecutive tasks */
    kl_message message;
    kl_wanted tasks; /* lo = hi: none */
    uint64_t next;   /* the task whose input `reader` reads next */
    kl_reader first, reader;
} block;

struct peering {
    kl_node *node; /* NULL: the worker is not a peer now */
    kl_peers_head run;
    uint64_t next_run; /* number of the first run that has not ended: it is in progress, or may still begin */
    kl_reaper reaper;
    kl_node_actions actions;
    double wake_s;
    mates mates;
    early *early;
    size_t early_bytes;             /* bytes of messages in `early` */
    kl_buffer self, value, message; /* messages of this peer to itself, each preceded by its length */
    uint64_t task;                  /* the task that begins when its input has arrived; UINT64_MAX: none */
    block block;
    signalling signals;
};

/* Handle a message that concerns peers. If the message is taken over, it is set to zero. */
kilter_status kl_peering_message(kl_worker *w, kl_peer from, kl_message *m, kilter_error *error);
/* Handle that a connection to another worker has ended. */
kilter_status kl_peering_left(kl_worker *w, kl_peer peer, kilter_error *error);
kilter_status kl_peering_look(kl_worker *w, kilter_error *error); /* Do what is due by now. */
double
kl_peering_due_s(const kl_worker *w); /* Return the time at which something is due; HUGE_VAL: nothing is. */
/* End the first item of the queue, a task of a peer. */
kilter_status kl_peering_end_task(kl_worker *w, int code, kilter_error *error);
void kl_peering_stop(kl_worker *w, uint64_t before); /* forget all runs with numbers below `before` */
void kl_peering_free(peering *p);

/* --- worker.c: messages, turns, life --- */

/* Receive and handle messages. If there is no work, wait up to timeout_s for the first message. */
kilter_status kl_worker_take_in(kl_worker *w, double timeout_s, kilter_error *error);

/* --- worker_attend.c: a second thread handles messages during a long task --- */

typedef struct attended {
    uint64_t task; /* value of `hand.done` when the task at hand was first seen */
    bool seen;
    bool over;              /* true: the process exceeded its memory limit, and the master was told */
    double since_s, busy_s; /* time at which the task was first seen, and the CPU time used by then */
    double heartbeat_due_s;
} attended;

struct kl_worker {
    const kl_worker_options *options;
    void *driver; /* the pointer that the functions in `options` get */
    /* functions for a second thread that attends; works = NULL: no thread attends */
    kl_attendance attendance;
    kl_transport *transport;
    kl_peer master;
    /* the data that the start function gets, followed by zeros; NULL: there is no start function */
    kilter_worker *self;
    void *state;
    uint32_t index;
    bool started, ready; /* true: the start function was called; true: this master has welcomed the worker */
    bool orphan;         /* true: the master is gone */
    double waiting_since_s;
    uint64_t memory_before; /* bytes of memory of the worker's process when it was welcomed */
    kl_welcome limits;      /* limits in the master's welcome */
    queue queue;
    leaving leaving;
    outbox outbox;
    asking asking;
    hand hand;
    task_share share;
    attended attended;
    core_use *core;      /* CPU time and delay; NULL: they are not reported */
    shared_data *shared; /* NULL: none were received */
    peering *peers;      /* NULL: the worker was never a peer */
};

#endif
