/* The parts of the worker, each with the file that owns it. A file may use the parts declared before its own.
 * Only worker*.c include this. */
#ifndef KL_WORKER_PRIVATE_H
#define KL_WORKER_PRIVATE_H

#include <stdatomic.h>

#include "engine/engine.h"

/* --- worker_queue.c: chunks and shared data in order of arrival --- */

typedef struct queued {
    struct queued *next;
    kl_message message;
    bool is_shared; /* the message holds shared data, and the fields below are unused; false: a chunk */
    kl_chunk_head head;
    kl_reader weights, inputs;
    uint64_t at; /* tasks of the chunk that are done */
} queued;

typedef struct queue {
    queued *first, **end;
    uint64_t tasks; /* tasks that are not done */
    bool rested;    /* the queue was empty since the last task; the next task's time leaves that out */
} queue;

void kl_queue_open(queue *q);
/* Take over the message. */
void kl_queue_put(queue *q, queued *item, kl_message *message);
void kl_queue_remove(queue *q, queued **place);
void kl_queue_clear(queue *q);
/* Return the place of the chunk with this number; the place holds NULL if there is none. */
queued **kl_queue_find(queue *q, uint64_t chunk);

/* --- worker_core.c: the worker's CPU time, and its delay while others had its core --- */

typedef struct core_use {
    const kl_worker_options *options;
    void *driver;
    double cpu_s, due_s; /* CPU time at the last look, and when the next look is due */
    double
        delay_s; /* seconds in which the worker, in tasks or sending, was ready while others had its core */
    struct {     /* since the last look */
        double core_run_s, core_delay_s; /* of this thread, at the last look */
        double busy_s;                   /* seconds in tasks */
        double waits_delay_s;            /* seconds of delay at the ends of watched waits */
        uint32_t waits;                  /* waits that were not watched */
    } since;
    double wait_delay_s; /* mean delay of the last watched waits */
    uint32_t watched;    /* number of watched waits */
    double watch_due_s;  /* when the next wait is watched */
    double before_s;     /* delay before the watched wait */
    bool watches;        /* the current wait is watched */
} core_use;

/* NULL: memory ran out. */
core_use *kl_core_use_new(const kl_worker_options *options, void *driver);
void kl_core_use_clear(core_use *u); /* start again for another master */
void kl_core_use_look(core_use *u, double now_s);
void kl_core_use_begin_wait(core_use *u, double now_s);
void kl_core_use_end_wait(core_use *u, double began_s);

/* --- worker_leave.c: whether the worker is to leave, and why --- */

enum { WHY_BYTES = 128 };

typedef struct leaving {
    _Atomic(const char *) why; /* NULL: it stays */
    char *renewal;             /* why a new worker is to replace this one; NULL: none is */
    bool dismissed;            /* the master wants no more results, not even of the task at hand */
    kilter_status failed;      /* error during a task, to be returned after it */
    char *failure;             /* in words; NULL: memory ran out */
    double failed_s;
} leaving;

static inline bool kl_is_leaving(const leaving *l) {
    return atomic_load(&l->why) != NULL;
}
bool kl_is_renewal(const leaving *l); /* is a new worker to replace this one? */
/* Let the worker leave, and a new one replace it. */
void kl_renew(leaving *l, const char *format, ...) KILTER_PRINTF(2, 3);
void kl_fail_in_task(leaving *l, const kilter_error *why, double now_s);
kilter_status kl_task_failure(const leaving *l, kilter_error *error); /* KILTER_OK: no error */
/* For another master: keep whether and why to leave, forget what the last master did. */
void kl_leaving_adopt(leaving *l);
void kl_leaving_free(leaving *l);

/* --- worker_results.c: sending results, and requesting chunks --- */

typedef struct outbox {
    kl_buffer out; /* results to be sent */
    uint32_t segments;
    size_t segment_at;
    kl_segment segment;    /* the segment being filled; count 0: none */
    double first_result_s; /* when the first result in `out` was ready */
    double last_end_s;
} outbox;

typedef struct asking {
    bool asked; /* a requested chunk has not come yet */
    bool idle;  /* the worker only waits for messages */
    double asked_at_s;
    uint64_t run;                          /* the run at that time */
    double bytes;                          /* size of the request; 0: not fit to measure a round trip */
    double round_trip_s, round_trip_bytes; /* measured round trip, to be sent with the next results */
    double answer_s;                       /* seconds from request to chunk, the longest lately */
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
    size_t at; /* where the task's result begins */
    bool failed;
};

typedef struct hand {
    bool at_work;   /* the first chunk's next task is at hand */
    bool alone;     /* the result becomes the message; false: it is appended to the ready results */
    double began_s; /* when the task at hand began */
    kilter_task task;
    double weight;
    kilter_result result;
    kl_buffer making; /* the result in the making; no other thread touches it */
    kl_buffer input;  /* copy of an input that was not aligned */
    uint64_t done;    /* tasks done so far */
    double task_s;    /* recent mean seconds of a task; 0: unknown */
} hand;

typedef struct shared_data {
    kilter_bytes bytes; /* the data in force */
    uint64_t hash;
    kl_message message; /* the message that holds them; zero: they were moved */
    kl_buffer moved;    /* copy of data that were not aligned */
} shared_data;

/* The share of its core that tasks get. */
typedef struct task_share {
    double tasks_s, busy_s; /* seconds in tasks since the last look; CPU time at that look */
    double usual;
} task_share;

/* Is so little work left, with a task at hand, that it is time to request more? */
bool kl_worker_runs_low(const kl_worker *w);
/* Do queued tasks until it is time to look for messages: begin a task, call its function, end it. */
kilter_status kl_worker_work(kl_worker *w, kilter_error *error);
void kl_shared_data_free(shared_data *shared);

/* --- worker_recall.c: returning tasks --- */

kilter_status kl_worker_on_recall(kl_worker *w, const kl_part *part, kilter_error *error);
kilter_status kl_worker_give_all_back(kl_worker *w, kilter_error *error);

/* --- worker.c: messages, turns, life --- */

/* Receive messages; wait for one up to timeout_s if there is no work. */
kilter_status kl_worker_take_in(kl_worker *w, double timeout_s, kilter_error *error);

/* --- worker_attend.c: a second thread serves messages during a long task --- */

typedef struct attended {
    uint64_t task; /* `hand.done` when the task at hand was first seen */
    bool seen;
    bool over;              /* the process exceeded its memory limit, and the master was told */
    double since_s, busy_s; /* when the task was first seen, and the CPU time used by then */
    double heartbeat_due_s;
} attended;

struct kl_worker {
    const kl_worker_options *options;
    void *driver;             /* passed to the functions in `options` */
    kl_attendance attendance; /* works NULL: no thread attends */
    kl_transport *transport;
    kl_peer master;
    kilter_worker *self; /* passed to the start function, with zeros behind it; NULL: there is none */
    void *state;
    uint32_t index;
    bool started, ready; /* the start function was called; this master knows */
    bool orphan;         /* the master is gone */
    double waiting_since_s;
    uint64_t memory_before; /* bytes of its process when it was welcomed */
    kl_welcome limits;      /* limits from the master's welcome */
    queue queue;
    leaving leaving;
    outbox outbox;
    asking asking;
    hand hand;
    task_share share;
    attended attended;
    core_use *core;      /* NULL: CPU time is not reported */
    shared_data *shared; /* NULL: none received */
};

#endif
