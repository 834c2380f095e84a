/* The parts of the worker, each with the file that owns it. A file may use the parts declared before its own.
 * Only worker*.c include this. */
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
    bool is_peers; /* true: a single task, which the worker does as a peer */
    kl_chunk_head head;
    kl_reader weights, inputs;
    uint64_t at; /* number of tasks of the chunk that are done */
} queued;

typedef struct queue {
    queued *first, **end;
    uint64_t tasks; /* number of queued tasks that are not done */
    /* true: the queue was empty since the last task, so the next task's time leaves the wait out */
    bool rested;
} queue;

void kl_queue_open(queue *q);
/* Append the message to the queue, which takes it over. */
void kl_queue_put(queue *q, queued *item, kl_message *message);
void kl_queue_remove(queue *q, queued **place);
void kl_queue_clear(queue *q);
/* Return the place of the chunk with this number; the place holds NULL if there is none. */
queued **kl_queue_find(queue *q, uint64_t chunk);

/* --- worker_core.c: the worker's CPU time, and the time in which others had its core --- */

typedef struct core_use {
    const kl_worker_options *options;
    void *driver;
    double cpu_s, due_s; /* CPU time at the last look, and the time of the next look */
    /* seconds in which the worker was in tasks or sending, and ready, while other threads had its core */
    double delay_s;
    struct {                             /* values since the last look */
        double core_run_s, core_delay_s; /* CPU time of this thread at the last look */
        double busy_s;                   /* seconds in tasks */
        double waits_delay_s;            /* seconds of delay at the ends of waits that were watched */
        uint32_t waits;                  /* number of waits that were not watched */
    } since;
    double wait_delay_s; /* mean seconds of delay at the last watched waits */
    uint32_t watched;    /* number of watched waits */
    double watch_due_s;  /* time from which on a wait is watched */
    double before_s;     /* seconds of delay so far when the watched wait began */
    bool watches;        /* true: the current wait is watched */
} core_use;

/* NULL: memory ran out. */
core_use *kl_core_use_new(const kl_worker_options *options, void *driver);
void kl_core_use_clear(core_use *u); /* Start again for another master. */
void kl_core_use_look(core_use *u, double now_s);
void kl_core_use_begin_wait(core_use *u, double now_s);
void kl_core_use_end_wait(core_use *u, double began_s);

/* --- worker_leave.c: whether the worker is to leave, and why --- */

enum { WHY_BYTES = 128 };

typedef struct leaving {
    _Atomic(const char *) why; /* why the worker leaves, in words; NULL: it stays */
    char *renewal;             /* why a new worker is to replace this one, in words; NULL: none is */
    bool dismissed;            /* true: the master wants no more results, not even of the task at hand */
    kilter_status failed;      /* an error during a task, returned after the task */
    char *failure;             /* the error in words; NULL: memory ran out */
    double failed_s;
} leaving;

static inline bool kl_is_leaving(const leaving *l) {
    return atomic_load(&l->why) != NULL;
}
bool kl_is_renewal(const leaving *l); /* Return whether a new worker is to replace this one. */
/* Let the worker leave, and a new one replace it. */
void kl_renew(leaving *l, const char *format, ...) KILTER_PRINTF(2, 3);
void kl_fail_in_task(leaving *l, const kilter_error *why, double now_s);
/* Return the error that came during a task; KILTER_OK: there was none. */
kilter_status kl_task_failure(const leaving *l, kilter_error *error);
/* Prepare for another master: keep whether and why to leave, forget what the last master did. */
void kl_leaving_adopt(leaving *l);
void kl_leaving_free(leaving *l);

/* --- worker_results.c: sending results, and requesting chunks --- */

typedef struct outbox {
    kl_buffer out; /* results that are to be sent */
    uint32_t segments;
    size_t segment_at;
    kl_segment segment;    /* the segment that is being filled; count 0: there is none */
    double first_result_s; /* time at which the first result in `out` was ready */
    double last_end_s;
} outbox;

typedef struct asking {
    bool asked; /* true: a chunk was requested and has not come yet */
    bool idle;  /* true: the worker has no task, it only waits for messages */
    double asked_at_s;
    uint64_t run; /* number of the run when the chunk was requested */
    /* bytes of the request; 0: the request cannot be used to measure a round trip */
    double bytes;
    /* seconds of the measured round trip, which the next results report */
    double round_trip_s, round_trip_bytes;
    double answer_s; /* longest recent seconds from a request to its chunk */
} asking;

/* Send the message and free it. A master that is gone is no error here: the transport reports it after its
 * last message. */
kilter_status kl_worker_post(kl_worker *w, kl_buffer *message, kilter_error *error);
kilter_status kl_worker_send_text(kl_worker *w, kl_message_type type, const char *text, kilter_error *error);
/* Tell the master why this worker cannot work; the master goes on without it. */
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
/* Send the results that are ready; with `more`, request the next chunk in the same message. */
kilter_status kl_worker_flush(kl_worker *w, bool more, kilter_error *error);
/* Note that a chunk of `bytes` has come. */
void kl_asking_answered(asking *a, const kl_chunk_head *head, size_t bytes, double now_s);

/* --- worker_tasks.c: the task at hand, and the shared data --- */

struct kilter_result {
    kl_buffer *buffer;
    size_t at; /* offset of the task's result in the buffer */
    bool failed;
};

typedef struct hand {
    bool at_work;   /* true: the first chunk's next task is at hand */
    bool alone;     /* true: the result becomes the message; false: it is appended to the ready results */
    double began_s; /* time at which the task at hand began */
    KL_ROOMY(kilter_task) handed; /* the task, as the user's function gets it */
    double weight;
    kilter_result result;
    kl_buffer making; /* the result that is being made; no other thread touches it */
    kl_buffer input;  /* copy of an input that was not aligned */
    uint64_t done;    /* number of tasks done so far */
    double task_s;    /* mean seconds of recent tasks; 0: unknown */
} hand;

typedef struct shared_data {
    kilter_bytes bytes; /* the present shared data */
    uint64_t hash;
    kl_message message; /* the message that holds the data; zero: the data were moved */
    kl_buffer moved;    /* copy of data that were not aligned */
} shared_data;

/* The share of the worker's core that tasks get. */
typedef struct task_share {
    double tasks_s, busy_s; /* seconds in tasks since the last look, and CPU time at that look */
    double usual;
} task_share;

/* Return whether so little work is left, with a task at hand, that it is time to request more. */
bool kl_worker_runs_low(const kl_worker *w);
/* Do queued tasks until it is time to look for messages: begin a task, call its function, end it. */
kilter_status kl_worker_work(kl_worker *w, kilter_error *error);
void kl_shared_data_free(shared_data *shared);

/* --- worker_recall.c: returning tasks --- */

kilter_status kl_worker_on_recall(kl_worker *w, const kl_part *part, kilter_error *error);
kilter_status kl_worker_give_all_back(kl_worker *w, kilter_error *error);

/* --- worker_made.c: the result of the task at hand --- */

void kl_fail_result(kilter_result *result, const char *text);
/* Make the result a failure if it is wrong or missing; code: the return value of the work function. */
void kl_check_result(hand *h, int code, size_t wanted);
/* Account for a task's share of the core, but not for each small task. */
void kl_account_share(task_share *share, const kl_attendance *attendance, double seconds);

/* --- worker_mates.c: messages to other peers --- */

typedef struct mate { /* another peer of this run */
    bool asked;       /* the master was asked where it is */
    bool gone;
    uint32_t worker;   /* number of the worker, UINT32_MAX: not known */
    kl_peer peer;      /* KL_NO_PEER: messages wait */
    kl_buffer waiting; /* messages, each with its length before it */
} mate;

typedef struct mates {
    mate *list; /* by number in the run */
    uint64_t count, room;
    kl_peer *known; /* connections to workers, by the worker's number; they outlast a run */
    uint64_t known_count;
} mates;

/* Send the bytes to peer `number` of run `run`, now or when its address is known. */
kilter_status kl_mates_send(kl_worker *w, uint32_t number, const kl_buffer *bytes, kilter_error *error);
/* Note that a message of peer `number`, which is this worker, has come from `peer`. */
kilter_status kl_mates_heard(kl_worker *w, const kl_note_head *head, kl_peer peer, kilter_error *error);
/* The master's answer: connect to the worker, and send what waits. *gone: it is gone. */
kilter_status kl_mates_found(kl_worker *w, const kl_where *where, bool *gone, kilter_error *error);
/* The connection has ended, or the worker is gone. Return its number in the run; UINT32_MAX: it has none. */
uint32_t kl_mates_lose(mates *m, kl_peer peer);
uint32_t kl_mates_lose_worker(kl_worker *w, uint64_t worker);
void kl_mates_clear(mates *m); /* forget the run's peers, but not the connections */
void kl_mates_free(mates *m);

/* --- worker_peers.c: the worker as a peer --- */

typedef struct early { /* a message of a run that has not begun here */
    struct early *next;
    kl_peer peer;
    size_t size;
    uint8_t data[];
} early;

typedef struct block { /* inputs of consecutive tasks */
    kl_message message;
    kl_wanted tasks; /* lo = hi: none */
    uint64_t next;   /* the task whose input `reader` is at */
    kl_reader first, reader;
} block;

struct peering {
    kl_node *node; /* NULL: the worker is no peer now */
    kl_peers_head run;
    uint64_t next_run; /* number of the first run that may still begin, or is on */
    kl_reaper reaper;
    kl_node_actions actions;
    double wake_s;
    mates mates;
    early *early;
    size_t early_bytes;             /* bytes of messages in `early` */
    kl_buffer self, value, message; /* self: messages to itself, each with its length before it */
    uint64_t task;                  /* the task to begin when its input is there; UINT64_MAX: none */
    block block;
};

/* Handle a message that concerns peers; the message's owner may take it over. */
kilter_status kl_peering_message(kl_worker *w, kl_peer from, kl_message *m, kilter_error *error);
kilter_status kl_peering_left(kl_worker *w, kl_peer peer,
                              kilter_error *error);               /* a worker's connection ended */
kilter_status kl_peering_look(kl_worker *w, kilter_error *error); /* do what is due */
double kl_peering_due_s(const kl_worker *w); /* the time of the next look; HUGE_VAL: none */
/* End the first item of the queue, a task of a peer. */
kilter_status kl_peering_end_task(kl_worker *w, int code, kilter_error *error);
void kl_peering_stop(kl_worker *w, uint64_t before); /* be no peer in runs before this one */
void kl_peering_free(peering *p);

/* --- worker.c: messages, turns, life --- */

/* Receive messages; wait for one up to timeout_s if there is no work. */
kilter_status kl_worker_take_in(kl_worker *w, double timeout_s, kilter_error *error);

/* --- worker_attend.c: a second thread serves messages during a long task --- */

typedef struct attended {
    uint64_t task; /* value of `hand.done` when the task at hand was first seen */
    bool seen;
    bool over;              /* true: the process exceeded its memory limit, and the master was told */
    double since_s, busy_s; /* time at which the task was first seen, and the CPU time used by then */
    double heartbeat_due_s;
} attended;

struct kl_worker {
    const kl_worker_options *options;
    void *driver;             /* the pointer that the functions in `options` get */
    kl_attendance attendance; /* functions for a second thread; works NULL: no thread attends */
    kl_transport *transport;
    kl_peer master;
    kilter_worker *self; /* the data that the start function gets, with zeros behind; NULL: there are none */
    void *state;
    uint32_t index;
    bool started, ready; /* true: the start function was called; this master knows */
    bool orphan;         /* true: the master is gone */
    double waiting_since_s;
    uint64_t memory_before; /* bytes of the worker's process when the worker was welcomed */
    kl_welcome limits;      /* limits in the master's welcome */
    queue queue;
    leaving leaving;
    outbox outbox;
    asking asking;
    hand hand;
    task_share share;
    attended attended;
    core_use *core;      /* CPU time and delay; NULL: they are not reported */
    shared_data *shared; /* NULL: none received */
    peering *peers;      /* NULL: the worker was never a peer */
};

#endif
