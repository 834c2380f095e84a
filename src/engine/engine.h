/* Door of room engine: the two state machines of a farm, master and worker. They know nothing of threads,
 * processes or command lines. Room farm drives them on real machines, room sim in virtual time. */
#ifndef KL_ENGINE_H
#define KL_ENGINE_H

#include "balance/balance.h"
#include "control/control.h"
#include "kilter/farm.h"

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
    void *state;                   /* passed to the other functions if there is no start function */
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
    /* Get how long the worker's thread ran, and how long it was ready while others had its core. false:
     * unknown. Required with cpu_s. */
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
void kl_worker_free(kl_worker *worker); /* calls the stop function */
/* Receive messages and do some work; without work wait up to timeout_s (< 0: for ever) for a message.
 * KILTER_ENDED: the master has closed the farm, or the worker has left. KILTER_ERR_PEER: the master is gone,
 * or sent the worker away. KILTER_ERR_TASK: the start or shared function failed, or the wrong shared data
 * arrived. KILTER_ERR_MEMORY: memory ran out; the master knows. */
kilter_status kl_worker_turn(kl_worker *worker, double timeout_s, kilter_error *error);
bool kl_worker_has_work(const kl_worker *worker);

/* The steps of a turn, for a driver that decides how long tasks take. */
/* Between two tasks: receive messages, then send results or leave if it is time. */
kilter_status kl_worker_between(kl_worker *worker, kilter_error *error);
/* Take the first item of the queue: shared data, or a task, which is then at hand. Request more tasks if it
 * is time. */
kilter_status kl_worker_begin_next(kl_worker *worker, kilter_error *error);
/* Return the task at hand, or NULL. */
const kilter_task *kl_worker_at_hand(const kl_worker *worker);
/* Call the work function for the task at hand and return its result. */
int kl_worker_call(kl_worker *worker);
/* End the task at hand now; code: what the work function returned. */
kilter_status kl_worker_end_task(kl_worker *worker, int code, kilter_error *error);

/* Ask the worker to leave: it returns the tasks that it has not begun, finishes its task and goes. `why` must
 * stay valid. Any thread may call this. */
void kl_worker_leave(kl_worker *worker, const char *why);

/* After KILTER_ERR_PEER: is the master gone? Then the worker may wait for another master. */
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
/* Return when the ready results should be sent although a task runs. HUGE_VAL: there are none, or no task
 * runs. */
double kl_worker_results_due_s(const kl_worker *worker);
/* Fill in the heartbeat's task and the share of its core that tasks usually get. */
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
    double task_s;          /* seconds a task may take */
    double task_times;      /* the same limit, as a multiple of the usual time for the task's weight */
    uint32_t retries;       /* how often a failed task is tried again */
    uint64_t worker_tasks;  /* tasks after which a worker is replaced */
    uint64_t worker_memory; /* bytes a worker's process may take in addition to those it had when it joined */
} kl_limits;

typedef struct kl_master_options {
    const kl_policy *policy;
    kl_clock clock;
    const char *program;         /* workers of another program are sent away */
    const char *program_version; /* workers of another version are sent away; NULL: "" */
    char host[128];              /* the master's host, as in kl_hello.host; "": unknown */
    uint32_t attempts;           /* a task fails after this many of its workers were lost; > 0 */
    bool may_join;               /* workers may join later: a farm without workers waits for them */
    bool chooses;                /* the farm chooses the number of active workers between runs */
    uint32_t seats;              /* active workers in the first run; 0: all that are present */
    bool release;                /* workers that are not needed leave the farm */
    double greeting_s;           /* seconds after which a member without greeting is sent away; 0: never */
    /* Warn the user with one sentence, in two parts. NULL: no warnings. */
    void (*warn)(void *self, const char *text, const char *more);
    /* The worker in process `pid` is lost. missed: it was ready and not about to leave. May fill in how it
     * ended ("was killed by …"). NULL: unknown. */
    void (*lost)(void *self, uint64_t pid, bool missed, char *how, size_t size);
    /* Replace the worker in process `pid`, which ends now (at_once) or later. NULL: workers are replaced
     * without the master's help. */
    void (*renew)(void *self, uint64_t pid, bool at_once);
    /* Get the CPU time that the farm and the program's callbacks have used in the master's process. false:
     * unknown. NULL: always unknown. */
    bool (*used)(void *self, double *farm_s, double *callbacks_s);
    /* Get the last heartbeat of the worker at `peer` and its time of arrival. false: there is none. NULL:
     * heartbeats are messages. */
    bool (*heartbeat)(void *self, kl_peer peer, kl_heartbeat *heartbeat, double *at_s);
    uint32_t cores; /* cores that the master and its local workers may use; 0: unknown */
    void *self;
    kl_limits limits;
} kl_master_options;

kilter_status kl_master_new(const kl_master_options *options, kl_transport *transport, kl_master **master,
                            kilter_error *error);
void kl_master_free(kl_master *master);
void kl_master_record(kl_master *master,
                      kl_trace *trace); /* start recording; write the rows of the present workers */

/* Wait up to timeout_s (< 0: for ever) for an event, handle it and deal work. Errors are fatal. */
kilter_status kl_master_turn(kl_master *master, double timeout_s, kilter_error *error);

/* End the current run early: KILTER_ERR_CANCELLED. KILTER_OK: there is no run. */
kilter_status kl_master_cancel(kl_master *master, kilter_error *error);
double kl_master_due_s(
    const kl_master *master); /* time of the next turn that is due without an event; HUGE_VAL: none */

uint32_t kl_master_ready(const kl_master *master);   /* workers that are working or resting */
uint32_t kl_master_refused(const kl_master *master); /* workers that could not work, or left unasked */
bool kl_master_knows(const kl_master *master, uint64_t pid); /* is the worker of this process ready? */
bool kl_master_sees(const kl_master *master,
                    uint64_t pid); /* has the worker of this process sent its greeting? */
/* Set the number of workers being started: a farm that has lost all others waits for them. */
void kl_master_expect(kl_master *master, uint32_t coming);
uint64_t kl_master_finished(const kl_master *master);     /* tasks finished in all runs */
const char *kl_master_last_loss(const kl_master *master); /* the last loss of a worker in words, or "" */

/* Set how long the program has computed since the last run [l_m], before kl_master_begin(). */
void kl_master_spent(kl_master *master, double seconds);
/* Set the tasks of the next run that are done already and not dealt. Call this before kl_master_begin(). */
void kl_master_done_before(kl_master *master, kl_spans done);
/* Set how many results were taken from the master but are not safe yet: kl_master_state() and
 * kl_master_progress() leave them out. too_many: deal nothing meanwhile. */
void kl_master_unsafe(kl_master *master, uint64_t results, bool too_many);
kilter_status kl_master_begin(kl_master *master, const kilter_run *run, kilter_error *error);
/* For a run with run->grows: kl_master_grow() adds tasks, of which `done` are done already; after
 * kl_master_grown() no more tasks come, and the run ends when all are done. Both do nothing after a run has
 * ended early. */
kilter_status kl_master_grow(kl_master *master, uint64_t count, const kilter_bytes *inputs,
                             const double *weights, kl_spans done, kilter_error *error);
void kl_master_grown(kl_master *master);
bool kl_master_running(const kl_master *master);
kl_delivery_list kl_master_take(kl_master *master); /* results that arrived since the last call */
/* Get the last run's summary. `decision` belongs to the master and lasts until the next run. */
void kl_master_summary(const kl_master *master, kilter_farm_summary *summary);
/* Between two runs: get the grounds for choosing the next run's number of tasks. spent_s: the program's own
 * time since the last run. The caller frees look->lanes. KILTER_ERR_MEMORY. */
kilter_status kl_master_grain(kl_master *master, double spent_s, double work, kl_grain_look *look);
/* Note the plan that the program was given. Call this before kl_master_begin(). */
void kl_master_note_grain(kl_master *master, const kl_grain_plan *plan);
/* The program's expectation of the coming runs, for the record. */
typedef struct kl_expectation {
    uint64_t runs; /* 0: nothing */
    double end_s;  /* expected end of the last of these runs, by the master's clock */
    char reason[KL_REASON_BYTES];
} kl_expectation;
/* Call this before the first of these runs. */
void kl_master_note_expectation(kl_master *master, const kl_expectation *expectation);
/* The longest-running of the tasks that take far longer than earlier tasks of their weight. */
typedef struct kl_late {
    uint64_t task;
    uint32_t worker;
    double elapsed_s, usual_s; /* elapsed_s 0: there is no such task */
} kl_late;
kl_late kl_master_late(const kl_master *master);
/* Print the run's progress: "42 % · 420/1,000 tasks · 2 workers · 12 to 14 s left". */
void kl_master_progress(kl_master *master, char *text, size_t size);
void kl_master_advise(kl_master *master); /* record what the last run teaches for another farm */
void kl_master_end(kl_master *master);    /* tell every worker that the farm is closed */

/* --- tuning from outside --- */

enum { KL_TUNE_POLICY = 1, KL_TUNE_FACTOR = 2, KL_TUNE_WORKERS = 4 };

/* Tuning points to be set. */
typedef struct kl_tuning {
    unsigned set; /* KL_TUNE_* bits of the points to set; the others stay as they are */
    const kl_policy *policy;
    double factor;    /* partition factor in (0, 1]; 0: the policy's own */
    uint32_t workers; /* active workers in a run, at most those present; 0: the farm chooses */
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
    kl_iteration last;     /* the last run that ended, without speeds; workers = 0: none has */
    double time_s, index;  /* model: T_t and P_i with the last run's workers */
    double efficiency;     /* model: E with the same workers */
    double quality_bound;  /* a run with a higher `last.quality` is not balanced */
    uint32_t capability;   /* most workers the master can feed; UINT32_MAX: no limit */
    uint32_t best_workers; /* number of workers with the smallest P_i; 0: unknown */
    double best_time_s, best_index;

    const kl_policy *policy;
    double factor;                  /* 0: the policy has none */
    uint32_t present, resting;      /* workers */
    uint32_t leaving;               /* workers that are leaving; not counted in the two above */
    uint32_t workers;               /* active workers, set by hand; 0: the farm chooses, or all are active */
    bool chooses;                   /* the farm chooses the number of active workers */
    kl_tuning pending;              /* takes effect when the next run begins */
    char decision[KL_REASON_BYTES]; /* the last decision on workers, policy or factor; "" */
    kl_late late;

    uint32_t listed; /* entries in `worker`: the first KL_STATE_WORKERS that are present */
    kl_worker_state worker[KL_STATE_WORKERS];
} kl_farm_state;

/* Get the farm's state. Cost: O(KL_STATE_WORKERS), and the model's functions for one number of workers. */
void kl_master_state(const kl_master *master, kl_farm_state *state);

/* Send workers home: each finishes its task, returns its other tasks and leaves. KILTER_ERR_RANGE, and nobody
 * leaves: a named worker does not exist, or no worker would stay and --all was not given. */
kilter_status kl_master_drain(kl_master *master, const kl_control_drain *drain,
                              char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);

/* Convert the state to what `kilter tune` shows; program and transport stay empty. */
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

kilter_status kl_deliverer_new(const kilter_run *run, kl_deliverer **deliverer, kilter_error *error);
void kl_deliverer_free(kl_deliverer *deliverer);
/* Deliver the list's results and take over the list. KILTER_ERR_MEMORY. */
kilter_status kl_deliver(kl_deliverer *deliverer, kl_delivery_list list, kilter_error *error);
uint64_t kl_deliverer_given(const kl_deliverer *deliverer); /* results delivered so far */
uint64_t
kl_deliverer_failed(const kl_deliverer *deliverer, char *first,
                    size_t size); /* Return the number of failed tasks; `first` gets the first one's error. */

/* Write one sentence on what was decided and gained. */
void kl_summary_sentence(const kl_balance *balance, const char *policy, const kilter_farm_summary *summary,
                         const kl_interval *equal, char *text, size_t size);

#endif
