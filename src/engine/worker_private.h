/* Inside of the worker: its parts, each with the file that owns it. A file may use those that stand before it
 * here; kl_worker_*() of the door are in the file of their part. Only worker*.c include this. */
#ifndef KL_WORKER_PRIVATE_H
#define KL_WORKER_PRIVATE_H

#include <stdatomic.h>

#include "engine/engine.h"
#include "play/play.h"

/* --- worker_queue.c: what has come and is not done, in the order it came --- */

typedef struct queued {
    struct queued *next;
    kl_message message;
    bool is_shared; /* the message holds shared data, and the fields below are not used; else a chunk */
    kl_chunk_head head;
    kl_reader weights, inputs;
    uint64_t at; /* tasks of the chunk that are done */
} queued;

typedef struct queue {
    queued *first, **end;
    uint64_t tasks; /* not done */
    bool rested;    /* it was empty for a while since: that time is no part of the next task's */
} queue;

void kl_queue_open(queue *q);
/* Take over the message. */
void kl_queue_put(queue *q, queued *item, kl_message *message);
void kl_queue_remove(queue *q, queued **place);
void kl_queue_clear(queue *q);
/* Where the chunk of this number is; what the place holds is NULL if it is not there. */
queued **kl_queue_find(queue *q, uint64_t chunk);

/* --- worker_core.c: CPU time that the worker tells, and its core's time that others had meanwhile --- */

typedef struct core_use {
    const kl_worker_options *options;
    void *driver;
    double cpu_s, due_s; /* CPU time at the last look, and when the next look is due */
    double delay_s;      /* the worker, in tasks or sending, was ready while others had its core */
    struct {             /* since the last look */
        double core_run_s, core_delay_s; /* of this thread, at that look */
        double busy_s;                   /* in tasks */
        double waits_delay_s;            /* at the ends of waits that were watched */
        uint32_t waits;                  /* that were not watched */
    } since;
    double wait_delay_s; /* mean of the last waits that were watched */
    uint32_t watched;    /* number of those waits */
    double watch_due_s;  /* when a wait is watched again */
    double before_s;     /* delay before the wait that is watched */
    bool watches;        /* the wait that is on is watched */
} core_use;

/* NULL: memory ran out. */
core_use *kl_core_use_new(const kl_worker_options *options, void *driver);
void kl_core_use_clear(core_use *u); /* begin anew, with another master */
void kl_core_use_look(core_use *u, double now_s);
void kl_core_use_begin_wait(core_use *u, double now_s);
void kl_core_use_end_wait(core_use *u, double began_s);

/* --- worker_leave.c: whether the worker is to go, and why --- */

enum { WHY_BYTES = 128 };

typedef struct leaving {
    _Atomic(const char *) why; /* NULL: it stays */
    char *renewal;             /* why one like it is to take its place; NULL: none is */
    bool dismissed;            /* the master wants nothing more of it, its task at hand included */
    kilter_status failed;      /* what went wrong while a task was done, to be told after it */
    char *failure;             /* in words; NULL: memory ran out */
    double failed_s;
} leaving;

static inline bool kl_is_leaving(const leaving *l) {
    return atomic_load(&l->why) != NULL;
}
bool kl_is_renewal(const leaving *l); /* another worker is to take its place */
/* It is to leave, and one like it is to take its place. */
void kl_renew(leaving *l, const char *format, ...) KILTER_PRINTF(2, 3);
void kl_fail_in_task(leaving *l, const kilter_error *why, double now_s);
kilter_status kl_task_failure(const leaving *l, kilter_error *error); /* KILTER_OK: nothing went wrong */
/* Another master comes: whether and why to leave stays; what the last one did does not. */
void kl_leaving_adopt(leaving *l);
void kl_leaving_free(leaving *l);

/* --- worker_results.c: results on their way to the master, and asking it for more --- */

typedef struct outbox {
    kl_buffer out; /* results to be sent */
    uint32_t segments;
    size_t segment_at;
    kl_segment segment;    /* the one that is being filled; count 0: none */
    double first_result_s; /* when the first result in `out` was there */
    double last_end_s;
} outbox;

typedef struct asking {
    bool asked; /* for a chunk that has not come yet */
    bool idle;  /* the worker waits for messages, and does nothing else */
    double asked_at_s;
    uint64_t run;                          /* the run that was on then */
    double bytes;                          /* of the message that asked; 0: it tells no round trip */
    double round_trip_s, round_trip_bytes; /* for the next results */
    double answer_s;                       /* from asking to having the chunk, the longest lately */
} asking;

/* Send the message and free it. The transport reports a master that is gone after its last message: not here.
 */
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
/* Send what is done; with `more`, ask for the next chunk in the same message. */
kilter_status kl_worker_flush(kl_worker *w, bool more, kilter_error *error);
/* A chunk of this many bytes has come. */
void kl_asking_answered(asking *a, const kl_chunk_head *head, size_t bytes, double now_s);

/* --- worker_tasks.c: the task at hand, and the shared data tasks see --- */

struct kilter_result {
    kl_buffer *buffer;
    size_t at; /* where the task's result begins */
    bool failed;
};

typedef struct hand {
    bool at_work;   /* the first chunk's next task is at hand */
    bool alone;     /* its result becomes the message; else it is put to those that are ready */
    double began_s; /* that task */
    kilter_task task;
    double weight;
    kilter_result result;
    kl_buffer making; /* where the result is put together; nobody else's to touch meanwhile */
    kl_buffer input;  /* an input that had to be moved, to be aligned */
    uint64_t done;    /* tasks so far */
    double task_s;    /* a task's time lately; 0: not known */
} hand;

typedef struct shared_data {
    kilter_bytes bytes; /* in force */
    uint64_t hash;
    kl_message message; /* where they lie; zero: moved */
    kl_buffer moved;    /* where they are if they had to be moved, to be aligned */
} shared_data;

/* The share of its core that tasks get. */
typedef struct task_share {
    double tasks_s, busy_s; /* since the last look: time in tasks; CPU time at that look */
    double usual;
} task_share;

/* Is so little left, with a task at hand, that it is time to ask? */
bool kl_worker_runs_low(const kl_worker *w);
/* Do what is queued until it is time to look for messages again: begin a task, call its function, end it. */
kilter_status kl_worker_work(kl_worker *w, kilter_error *error);
void kl_shared_data_free(shared_data *shared);

/* --- worker_recall.c: giving tasks back --- */

kilter_status kl_worker_on_recall(kl_worker *w, const kl_part *part, kilter_error *error);
kilter_status kl_worker_give_all_back(kl_worker *w, kilter_error *error);

/* --- worker.c: messages, turns, life --- */

/* Take in what has come; wait for it up to timeout_s when there is nothing to do. */
kilter_status kl_worker_take_in(kl_worker *w, double timeout_s, kilter_error *error);

/* --- worker_attend.c: what another thread does while a task takes long --- */

typedef struct attended {
    uint64_t task; /* `hand.done` when the task at hand was first seen */
    bool seen;
    bool over;              /* its process had more memory than it may, and the master was told */
    double since_s, busy_s; /* when it was first seen, and the CPU time used by then */
    double heartbeat_due_s;
} attended;

struct kl_worker {
    const kl_worker_options *options;
    void *driver;             /* what the functions in `options` get */
    kl_attendance attendance; /* works is NULL: nobody attends */
    kl_transport *transport;
    kl_peer master;
    kilter_worker *self; /* what the start function gets; NULL: there is none. Zeros lie behind it. */
    void *state;
    uint32_t index;
    bool started, ready; /* the start function was called; this master was told so */
    bool orphan;         /* the master is gone */
    double waiting_since_s;
    uint64_t memory_before; /* of its process when it was welcomed */
    kl_welcome limits;      /* what it may do */
    queue queue;
    leaving leaving;
    outbox outbox;
    asking asking;
    hand hand;
    task_share share;
    attended attended;
    core_use *core;      /* NULL: it does not tell its CPU time */
    shared_data *shared; /* NULL: none has come */
};

#endif
