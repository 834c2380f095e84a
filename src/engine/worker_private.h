/* Inside of the worker: its messages (worker.c) and its tasks (tasks.c). Nobody else includes this. */
#ifndef KL_WORKER_PRIVATE_H
#define KL_WORKER_PRIVATE_H

#include <stdatomic.h>

#include "engine/engine.h"
#include "play/play.h"

/* What has come and is done in the order of coming: a chunk, and how far it is done, or shared data. */
typedef struct queued {
    struct queued *next;
    kl_message message;
    bool is_shared; /* then the rest says nothing */
    kl_chunk_head head;
    kl_reader weights, inputs;
    uint64_t at; /* tasks of it done */
} queued;

/* Of the task at hand, as the one who attends sees it. */
typedef struct attended {
    uint64_t task; /* `tasks_done` when it was first seen */
    bool seen;
    double since_s, busy_s; /* that was then, and the CPU time used by then */
    double pulse_due_s;
    bool over; /* its process had more memory than it may, and the master was told */
} attended;

struct kilter_result {
    kl_buffer *buffer;
    size_t at; /* where the task's result begins */
    bool failed;
};

struct kl_worker {
    kl_worker_options options;
    kl_attendance attendance; /* works is NULL: nobody attends */
    kl_transport *transport;
    kl_peer master;
    kilter_worker self;
    unsigned char self_later[KL_LATER_BYTES]; /* zeros: a newer program may know more of `self` */
    void *state;
    bool started, ready; /* the start function was called; this master was told so */
    bool orphan;         /* the master is gone */
    double waiting_since_s;
    _Atomic(const char *) leave_why; /* not NULL: asked to leave */
    kl_welcome limits;               /* what it may do */
    bool dismissed;                  /* the master wants nothing more of it, its task at hand included */
    uint64_t memory_before;          /* of its process when it was welcomed */
    char renewal[128];               /* one like it is to take its place: why; "": no */

    queued *first, **end;
    uint64_t queued_tasks; /* not done */
    bool asked;            /* for a chunk that has not come yet */
    double asked_at_s;
    double sent_at_s, sent_bytes;          /* of the message that asked; bytes 0: it tells no round trip */
    bool idle;                             /* waits for messages, and does nothing else */
    double round_trip_s, round_trip_bytes; /* for the next results */
    uint64_t asked_run;                    /* the run that was on then */
    double answer_s;                       /* from asking to having the chunk, the longest lately */
    double task_s;                         /* a task's time lately; 0: not known */
    kilter_bytes shared;                   /* in force */
    kl_message shared_message;             /* where they lie; zero: moved */
    kl_buffer moved, input;                /* shared data and an input that had to be, to be aligned */
    uint64_t shared_hash;

    bool at_work;        /* the first chunk's next task is at hand */
    double task_began_s; /* that one */
    kilter_task task;
    double task_weight;
    bool alone; /* its result becomes the message; else it is put to those that are ready */
    kilter_result result;
    kl_buffer making; /* where it is put together, nobody else's to touch meanwhile */
    uint64_t tasks_done;
    attended attended;
    kilter_error failure; /* came while a task was done, to be told after it; at failed_s */
    double failed_s;
    double share_s, share_busy_s; /* since the share was looked at: time in tasks; CPU time then */
    double usual_share;

    kl_core_meter meter;     /* of a worker that tells its CPU time; else it is not open */
    double cpu_s, cpu_due_s; /* as it was looked at last, and when it is again */
    double delay_s;          /* in tasks, or sending, it was ready, and others had its core: as known then */
    struct {                 /* since then */
        double core_run_s, core_delay_s; /* of this thread, as they were then */
        double busy_s;                   /* in tasks */
        double waits_delay_s;            /* at the ends of waits that were watched */
        uint32_t waits;                  /* that were not */
    } since;
    double wait_delay_s; /* mean of the last waits that were watched; */
    uint32_t watched;    /* how many those are */
    double watch_due_s;  /* when one is watched again */

    kl_buffer out; /* results to be sent */
    uint32_t segments;
    size_t segment_at;
    kl_segment segment;    /* the one being filled; count 0: none */
    double first_result_s; /* when the first result in `out` was there */
    double last_end_s;
    bool rested; /* nothing was queued for a while since: that is no part of the next task's time */
};

/* --- tasks.c --- */

#define KL_CPU_LOOK_S                                                                                        \
    1e-3 /* so seldom CPU time is looked at, where that costs little beside what was done                    \
          */

/* How long this thread was ready, and others had its core, since it began; 0: not known. */
double kl_worker_core_delay_s(const kl_worker *worker);

/* Do what is queued until it is time to look for messages again: begin a task, call its function, end it. */
kilter_status kl_worker_work(kl_worker *w, kilter_error *error);
bool kl_worker_runs_low(const kl_worker *w); /* of chunks, with one at hand: it is time to ask */
bool kl_worker_has_results(const kl_worker *w);
/* Send what is done; with `more`, ask for the next chunk in the same message. */
kilter_status kl_worker_flush(kl_worker *w, bool more, kilter_error *error);

/* --- worker.c --- */

/* Of a master that is gone the transport tells, after its last message: that is not noticed here. */
kilter_status kl_worker_send(kl_worker *w, const kl_buffer *message, kilter_error *error);
/* Tell the master why this worker cannot work; it goes on without us. */
kilter_status kl_worker_refuse(kl_worker *w, kilter_error *error, const char *format, ...)
    KILTER_PRINTF(3, 4);
void kl_worker_drop_first(kl_worker *w); /* of what is queued */
/* It is to leave, and one like it to take its place. */
void kl_worker_renew(kl_worker *w, const char *format, ...) KILTER_PRINTF(2, 3);

#endif
