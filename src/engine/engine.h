/* Door of room engine: the two state machines of a farm, master and worker. They know nothing of threads,
 * processes or command lines. Room farm drives them on real machines, room sim in virtual time. */
#ifndef KL_ENGINE_H
#define KL_ENGINE_H

#include "balance/balance.h"
#include "control/control.h"
#include "kilter/farm.h"
#include "peer/peer.h"

/* How two results become one, in runs that reduce. */
typedef struct kl_reducer {
    kilter_combine_fn combine; /* NULL: results cannot be combined */
    void *user;
} kl_reducer;

/* --- worker --- */

/* A worker sends its results when the oldest has waited this long, or when they have this size. */
static const double KL_FLUSH_S = 0.1;
static const size_t KL_FLUSH_BYTES = (size_t)1 << 19;
/* seconds between two heartbeats of a worker in a long task */
static const double KL_HEARTBEAT_S = 0.25;

typedef struct kl_worker kl_worker;

/* Functions and limits of a worker. Several workers may share the options, which must outlive them. */
typedef struct kl_worker_options {
    kilter_work_fn work;
    kilter_start_fn start;
    kilter_shared_fn shared;
    kilter_stop_fn stop;
    void *user;
    kilter_combine_fn combine;     /* NULL: results cannot be combined */
    void *state;                   /* the state that the other functions get if there is no start function */
    const char *program, *binding; /* for the master's record; not NULL */
    const char *program_version;   /* must be the same as the master's; NULL: "" */
    kl_clock clock;
    double burst_s;    /* seconds of work between two looks for messages; 0: look after each task */
    double patience_s; /* seconds to wait for a master; < 0: for ever */

    /* The driver's functions get the `driver` that kl_worker_new() got. */
    /* Fill in the worker's host and process, for the master's record. NULL: both are unknown. */
    void (*introduce)(void *driver, kl_hello *hello);
    /* Return the CPU time of the worker's process or thread. NULL: the worker does not report CPU time. */
    double (*cpu_s)(void *driver);
    /* Get how long the worker's thread ran, and how long it was ready while other threads had its core.
     * Return false if this is unknown. Required if there is a cpu_s function. */
    bool (*core)(void *driver, double *run_s, double *delay_s);
    /* Return the memory of the worker's process [bytes]. NULL: memory is not limited. */
    uint64_t (*memory)(void *driver);
    /* End the process; do not return. The attending thread calls this during a task if the master dismisses
     * the worker or has been gone for some time. `anew`: a new worker is to replace this one. NULL: the
     * worker finishes its task first. */
    void (*abandon)(void *driver, const kilter_error *why, bool anew);
} kl_worker_options;

/* Functions for a second thread that attends while a task runs. */
typedef struct kl_attendance {
    void (*works)(void *self, bool begins); /* called before (true) and after (false) the work function: the
                                               second thread may attend between them */
    double (*busy_s)(void *self);           /* return the working thread's CPU time; both threads call it */
    void *self;
} kl_attendance;

/* The caller keeps the transport and closes it. */
kilter_status kl_worker_new(const kl_worker_options *options, void *driver, kl_transport *transport,
                            kl_worker **worker, kilter_error *error);
void kl_worker_free(kl_worker *worker); /* Free the worker. Calls the stop function. */
/* Receive messages and do some work; without work wait up to timeout_s (< 0: for ever) for a message.
 * KILTER_ENDED: the master has closed the farm, or the worker has left. KILTER_ERR_PEER: the master is gone,
 * or sent the worker away. KILTER_ERR_TASK: the start or shared function failed, or the wrong shared data
 * arrived. KILTER_ERR_MEMORY: memory ran out; the master knows. */
kilter_status kl_worker_turn(kl_worker *worker, double timeout_s, kilter_error *error);
bool kl_worker_has_work(const kl_worker *worker);
/* Return the time at which a turn is due even if no event comes; HUGE_VAL: there is no such time. */
double kl_worker_due_s(const kl_worker *worker);

/* The steps of a turn, for a driver that decides how long tasks take. */
/* Receive messages between two tasks, then send results or leave if it is time. */
kilter_status kl_worker_between(kl_worker *worker, kilter_error *error);
/* Take the first item of the queue: shared data, or a task. A task is then at hand. Request more tasks if it
 * is time. */
kilter_status kl_worker_begin_next(kl_worker *worker, kilter_error *error);
/* Return the task at hand, or NULL. */
const kilter_task *kl_worker_at_hand(const kl_worker *worker);
/* Call the work function for the task at hand and return its result. */
int kl_worker_call(kl_worker *worker);
/* End the task at hand now; code: the return value of the work function. */
kilter_status kl_worker_end_task(kl_worker *worker, int code, kilter_error *error);

/* Ask the worker to leave: it returns the tasks that it has not begun, finishes its task and goes. `why` must
 * stay valid. Any thread may call this. */
void kl_worker_leave(kl_worker *worker, const char *why);

/* After KILTER_ERR_PEER: return whether the master is gone. If it is, the worker may wait for another master.
 */
bool kl_worker_is_orphan(const kl_worker *worker);
/* Return why a new worker is to replace this one, or NULL. */
const char *kl_worker_renewal(const kl_worker *worker);
/* Begin anew with the master at the other end of `transport`. Tasks and shared data of the last master are
 * forgotten, the state of the start function stays. No thread attends. */
void kl_worker_adopt(kl_worker *worker, kl_transport *transport);

void kl_worker_let_attend(kl_worker *worker, const kl_attendance *attendance); /* zeroed: no thread attends */
/* During a long task: receive and answer messages, send results that are ready, request tasks, send
 * heartbeats. The first call in a task only notes that it runs. The next turn returns errors. */
void kl_worker_attend(kl_worker *worker);
/* Return the time at which ready results should be sent although a task runs. HUGE_VAL: no results are ready,
 * or no task runs. */
double kl_worker_results_due_s(const kl_worker *worker);
/* Fill in the heartbeat's task, and the share of the worker's core that tasks usually get. */
void kl_worker_name_task(const kl_worker *worker, kl_heartbeat *heartbeat);

/* --- master --- */

/* Checked results of tasks [lo, lo + count) on their way to the user, as kl_wire_next_result() reads them.
 * Small results are copied behind the struct, so that a backlog needs little more memory than the results. */
typedef struct kl_delivery {
    struct kl_delivery *next;
    uint64_t lo, count;
    const uint8_t *results;
    size_t size; /* bytes of results */
    uint32_t worker;
    bool is_sum;        /* `results` is one value: good results of `count` tasks, combined; lo is not used */
    kl_message message; /* the message that `results` points into; zero if the results were copied */
    uint8_t copy[];
} kl_delivery;

typedef struct kl_delivery_list {
    kl_delivery *first, **end; /* zeroed: empty */
} kl_delivery_list;

void kl_delivery_append(kl_delivery_list *list, kl_delivery_list *taken); /* leaves `taken` empty */
void kl_delivery_free(kl_delivery *delivery);

typedef struct kl_master kl_master;

static const double KL_TIMEOUT_LEAST_S = 0.5; /* heartbeats come every KL_HEARTBEAT_S */

/* Limits of a task and of a worker; 0: none. */
typedef struct kl_limits {
    double task_s; /* seconds a task may take */
    /* the limit on a task's time, as a multiple of the usual time for the task's weight */
    double task_times;
    uint32_t retries;      /* number of times that a failed task is tried again */
    uint64_t worker_tasks; /* number of tasks after which a worker is replaced */
    /* bytes that a worker's process may take in addition to the bytes it had when it joined */
    uint64_t worker_memory;
} kl_limits;

typedef struct kl_master_options {
    const kl_policy *policy;
    kl_clock clock;
    const char *program;         /* workers of another program are sent away */
    const char *program_version; /* workers of another version are sent away; NULL: "" */
    char host[128];              /* the master's host, as in kl_hello.host; "": unknown */
    uint32_t attempts;           /* number of lost workers after which a task fails; > 0 */
    bool may_join;               /* true: workers may join later, so a farm without workers waits for them */
    bool chooses;                /* true: the farm chooses the number of active workers between runs */
    uint32_t seats;              /* number of active workers in the first run; 0: all that are present */
    bool release;                /* true: workers that are not needed leave the farm */
    /* seconds after which a member that has sent no greeting is sent away; 0: never */
    double greeting_s;
    /* Warn the user with one sentence, in two parts. NULL: no warnings. */
    void (*warn)(void *self, const char *text, const char *more);
    /* Tell the driver that the worker in process `pid` is lost. missed: the worker was ready and not about to
     * leave. The function may fill in how the worker ended ("was killed by …"). NULL: how it ended is
     * unknown. */
    void (*lost)(void *self, uint64_t pid, bool missed, char *how, size_t size);
    /* Replace the worker in process `pid`, which ends now (at_once) or later. NULL: workers are replaced
     * without the master's help. */
    void (*renew)(void *self, uint64_t pid, bool at_once);
    /* Get the CPU time that the farm and the program's callbacks have used in the master's process. Return
     * false if it is unknown. NULL: it is always unknown. */
    bool (*used)(void *self, double *farm_s, double *callbacks_s);
    /* Get the last heartbeat of the worker at `peer` and the heartbeat's time of arrival. Return false if
     * there is none. NULL: heartbeats are messages. */
    bool (*heartbeat)(void *self, kl_peer peer, kl_heartbeat *heartbeat, double *at_s);
    uint32_t cores; /* number of cores that the master and its local workers may use; 0: unknown */
    void *self;
    kl_limits limits;
    kl_reducer reducer;
    kl_organise organise;
    const kl_help *help; /* policy of peers; NULL: the default one */
} kl_master_options;

kilter_status kl_master_new(const kl_master_options *options, kl_transport *transport, kl_master **master,
                            kilter_error *error);
void kl_master_free(kl_master *master);
void kl_master_record(kl_master *master,
                      kl_trace *trace); /* start recording; write the rows of the present workers */

/* Wait up to timeout_s (< 0: for ever) for an event, handle it and deal work. Errors are fatal. */
kilter_status kl_master_turn(kl_master *master, double timeout_s, kilter_error *error);

/* End the current run early, with KILTER_ERR_CANCELLED. Return KILTER_OK if there is no run. */
kilter_status kl_master_cancel(kl_master *master, kilter_error *error);
/* Return the time at which a turn is due even if no event comes; HUGE_VAL: there is no such time. */
double kl_master_due_s(const kl_master *master);

/* Return the number of workers that are working or resting. */
uint32_t kl_master_ready(const kl_master *master);
/* Return the number of workers that could not work, or left without being asked. */
uint32_t kl_master_refused(const kl_master *master);
/* Return whether the worker of this process is ready. */
bool kl_master_knows(const kl_master *master, uint64_t pid);
bool kl_master_sees(const kl_master *master,
                    uint64_t pid); /* Return whether the worker of this process has sent its greeting. */
/* Set the number of workers that are being started. A farm that has lost all other workers waits for them. */
void kl_master_expect(kl_master *master, uint32_t coming);
/* Return the number of tasks finished in all runs. */
uint64_t kl_master_finished(const kl_master *master);
/* Return a sentence on the last loss of a worker, or "". */
const char *kl_master_last_loss(const kl_master *master);

/* Set how long the program has computed since the last run [l_m], before kl_master_begin(). */
void kl_master_spent(kl_master *master, double seconds);
/* Set the tasks of the next run that are done already and not dealt. Call this before kl_master_begin(). */
void kl_master_done_before(kl_master *master, kl_spans done);
/* Set the number of results that were taken from the master but are not safe yet: kl_master_state() and
 * kl_master_progress() do not count them. too_many: deal nothing until the next call. */
void kl_master_unsafe(kl_master *master, uint64_t results, bool too_many);
/* Return why peers cannot do the run; NULL: they can. */
const char *kl_master_never_peers(const kl_master *master, const kilter_run *run);
kilter_status kl_master_begin(kl_master *master, const kilter_run *run, kilter_error *error);
/* For a run with run->grows: kl_master_grow() adds tasks, `done` of which are done already. After
 * kl_master_grown() no more tasks come, and the run ends when all are done. Both functions do nothing after a
 * run has ended early. */
kilter_status kl_master_grow(kl_master *master, uint64_t count, const kilter_bytes *inputs,
                             const double *weights, kl_spans done, kilter_error *error);
void kl_master_grown(kl_master *master);
bool kl_master_running(const kl_master *master);
/* Return the number of results that arrived since the last call. */
kl_delivery_list kl_master_take(kl_master *master);
/* Get the last run's summary. `decision` belongs to the master and lasts until the next run. */
void kl_master_summary(const kl_master *master, kilter_farm_summary *summary);
/* Get, between two runs, the measurements from which the next run's number of tasks is chosen. spent_s: the
 * program's own time since the last run. The caller frees look->lanes. KILTER_ERR_MEMORY. */
kilter_status kl_master_grain(kl_master *master, double spent_s, double work, kl_grain_look *look);
/* Note the plan that the program was given. Call this before kl_master_begin(). */
void kl_master_note_grain(kl_master *master, const kl_grain_plan *plan);
/* The program's expectation of the coming runs, for the record. */
typedef struct kl_expectation {
    uint64_t runs; /* 0: nothing */
    double end_s;  /* time at which the last of these runs should end, by the master's clock */
    char reason[KL_REASON_BYTES];
} kl_expectation;
/* Call this before the first of these runs. */
void kl_master_note_expectation(kl_master *master, const kl_expectation *expectation);
/* Of the tasks that take far longer than earlier tasks of their weight, the one that has run longest. */
typedef struct kl_late {
    uint64_t task;
    uint32_t worker;
    /* seconds of the task so far, and usual seconds of its weight; elapsed_s 0: there is no such task */
    double elapsed_s, usual_s;
} kl_late;
kl_late kl_master_late(const kl_master *master);
/* Print the run's progress: "42 % · 420/1,000 tasks · 2 workers · 12 to 14 s left". */
void kl_master_progress(kl_master *master, char *text, size_t size);
void kl_master_advise(kl_master *master); /* Record measurements of the last run that help another farm. */
void kl_master_end(kl_master *master);    /* tell every worker that the farm is closed */

/* --- tuning from outside --- */

enum { KL_TUNE_POLICY = 1, KL_TUNE_FACTOR = 2, KL_TUNE_WORKERS = 4 };

/* Tuning points to be set. */
typedef struct kl_tuning {
    unsigned set; /* bits KL_TUNE_* of the points to set; the other points stay as they are */
    const kl_policy *policy;
    double factor;    /* partition factor in (0, 1]; 0: the policy's own */
    uint32_t workers; /* number of active workers in a run, at most the number present; 0: the farm chooses */
} kl_tuning;

/* Set tuning points. The factor takes effect with the next batch, the policy and the number of workers with
 * the next run; each is then recorded as a decision. KILTER_ERR_RANGE: the factor is outside [0, 1], and
 * nothing is set. */
kilter_status kl_master_tune(kl_master *master, const kl_tuning *tuning, kilter_error *error);

typedef enum kl_worker_doing {
    KL_WORKER_STARTING,
    KL_WORKER_BUSY,    /* the worker has tasks */
    KL_WORKER_IDLE,    /* the worker waits for tasks */
    KL_WORKER_RESTING, /* the worker is not active */
    KL_WORKER_LEAVING, /* the worker finishes its task and goes */
} kl_worker_doing;

typedef struct kl_worker_state {
    uint32_t worker;
    kl_worker_doing doing;
    double rate_units_per_s; /* 0: not known */
    double busy_s;           /* seconds in tasks of this run, or of the last one */
    uint64_t chunks, queued_tasks;
} kl_worker_state;

enum { KL_STATE_WORKERS = 64 };

/* Measure points, performance functions and tuning points, as plain data. */
typedef struct kl_farm_state {
    double at_s; /* seconds since the farm was opened */
    bool running;
    uint64_t run, tasks, done; /* number, tasks and done tasks of the current run, or of the last one */
    double elapsed_s;          /* seconds since that run began, or its length */

    kl_linear message;     /* m_o [s] and λ [s/byte] now */
    double answer_s;       /* the master's time to answer one request for work */
    kl_iteration last;     /* the last run that ended, without speeds; workers = 0: no run has ended */
    double time_s, index;  /* T_t and P_i of the model, with the number of workers of the last run */
    double efficiency;     /* E of the model, with that number of workers */
    double quality_bound;  /* value of `last.quality` above which a run is not balanced */
    uint32_t capability;   /* greatest number of workers that the master can feed; UINT32_MAX: no limit */
    uint32_t best_workers; /* number of workers with the smallest P_i; 0: unknown */
    double best_time_s, best_index;

    const kl_policy *policy;
    double factor;             /* 0: the policy has none */
    uint32_t present, resting; /* workers */
    /* number of workers that are leaving; the two numbers above do not include them */
    uint32_t leaving;
    /* number of active workers that was set by hand; 0: the farm chooses, or all are active */
    uint32_t workers;
    bool chooses;                   /* true: the farm chooses the number of active workers */
    kl_tuning pending;              /* takes effect when the next run begins */
    char decision[KL_REASON_BYTES]; /* the last decision on workers, policy or factor; "": there was none */
    kl_late late;

    uint32_t listed; /* number of entries in `worker`: the first KL_STATE_WORKERS workers that are present */
    kl_worker_state worker[KL_STATE_WORKERS];
} kl_farm_state;

/* Get the farm's state. Cost: O(KL_STATE_WORKERS), and the model's functions for one number of workers. */
void kl_master_state(const kl_master *master, kl_farm_state *state);

/* Send workers home: each finishes its task, returns its other tasks and leaves. KILTER_ERR_RANGE, and nobody
 * leaves: a named worker does not exist, or no worker would stay and --all was not given. */
kilter_status kl_master_drain(kl_master *master, const kl_control_drain *drain,
                              char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);

/* Convert the state to the values that `kilter tune` shows; program and transport stay empty. */
void kl_tuning_show(const kl_farm_state *state, kl_control_state *shown);
/* Convert the setting to tuning points for a farm in this state, and say in `answer` when they take effect.
 * KILTER_ERR_USAGE, _RANGE: the setting is not possible; nothing is written. */
kilter_status kl_tuning_check(const kl_control_setting *setting, const kl_farm_state *state,
                              kl_tuning *tuning, char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
/* Add the points set in `from` to `into`; the later values count. */
void kl_tuning_merge(kl_tuning *into, const kl_tuning *from);

/* --- delivery of results to the user --- */

/* Gives results to the user's callback, in the order that the run asks for. */
typedef struct kl_deliverer kl_deliverer;

/* reducer: combines the results of a run that reduces; they are added to run->results. */
kilter_status kl_deliverer_new(const kilter_run *run, kl_reducer reducer, kl_deliverer **deliverer,
                               kilter_error *error);
void kl_deliverer_free(kl_deliverer *deliverer);
/* Deliver the list's results and take over the list. KILTER_ERR_MEMORY. */
kilter_status kl_deliver(kl_deliverer *deliverer, kl_delivery_list list, kilter_error *error);
/* Return the number of results delivered so far. */
uint64_t kl_deliverer_given(const kl_deliverer *deliverer);
/* Return the number of failed tasks; `first` gets the error of the first of them. */
uint64_t kl_deliverer_failed(const kl_deliverer *deliverer, char *first, size_t size);

/* Write one sentence on how the run was dealt and how well it was balanced. */
void kl_summary_sentence(const kl_balance *balance, const char *policy, const kilter_farm_summary *summary,
                         const kl_interval *equal, char *text, size_t size);

#endif
