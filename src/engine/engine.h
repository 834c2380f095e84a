/* Public header of the folder engine: the state machines of a farm's master and of its workers. They use
 * no threads, processes or command lines. The folder farm drives them on real machines, the folder sim in
 * virtual time. */
#ifndef KL_ENGINE_H
#define KL_ENGINE_H

#include "balance/balance.h"
#include "control/control.h"
#include "kilter/farm.h"
#include "peer/peer.h"

/* How to combine two results into one, in runs that reduce. */
typedef struct kl_reducer {
    kilter_combine_fn combine; /* NULL: results cannot be combined */
    void *user;
} kl_reducer;

/* --- worker --- */

/* A worker sends its results when the oldest has waited for KL_FLUSH_S seconds, or when they have
 * KL_FLUSH_BYTES bytes. */
static const double KL_FLUSH_S = 0.1;
static const size_t KL_FLUSH_BYTES = (size_t)1 << 19;
/* seconds between two heartbeats of a worker in a long task */
static const double KL_HEARTBEAT_S = 0.25;

typedef struct kl_worker kl_worker;

/* Functions for the signals of peers: small files in a folder that all workers of a run share. All get the
 * `driver` of kl_worker_new(). */
typedef struct kl_signal_folder {
    /* Check that this process can use the folder. KILTER_ERR_SYSTEM: it cannot. */
    kilter_status (*check)(void *driver, const char *folder, kilter_error *error);
    /* Write a file, as a whole or not at all. false: it cannot be written. */
    bool (*put)(void *driver, const char *folder, const char *name, kilter_bytes text);
    /* Take a file whose name begins with `prefix`, so that no other process gets it. `claim` is a name for
     * the process that takes it. Return the number of bytes of its text, and remove the file. false: there
     * is no such file, or it cannot be taken. */
    bool (*take)(void *driver, const char *folder, const char *prefix, const char *claim,
                 char text[KL_SIGNAL_BYTES], size_t *size);
    void (*drop)(void *driver, const char *folder, const char *name); /* remove the file if it exists */
} kl_signal_folder;

/* Functions and limits of a worker. Several workers may share the options, which must outlive them. */
typedef struct kl_worker_options {
    kilter_work_fn work;
    kilter_start_fn start;
    kilter_shared_fn shared;
    kilter_stop_fn stop;
    void *user;
    kilter_combine_fn combine;     /* NULL: results cannot be combined */
    void *state;                   /* the state that the other functions get if there is no start function */
    const char *program, *binding; /* names that the master writes to the record; not NULL */
    const char *program_version; /* version of the program; the master refuses a version that differs from its
                                    own; NULL: "" */
    kl_clock clock;
    double burst_s;    /* seconds of work between two checks for messages; 0: check after each task */
    double patience_s; /* seconds to wait for a master; < 0: for ever */

    /* Fill in the worker's host and process for the master's record. NULL: both are unknown. All functions
     * from here on get the `driver` of kl_worker_new(). */
    void (*introduce)(void *driver, kl_hello *hello);
    /* Return the CPU time of the worker's process or thread. NULL: the worker does not report CPU time. */
    double (*cpu_s)(void *driver);
    /* Get two times of the worker's thread in seconds: how long it ran, and how long it was ready while
     * other threads had its core. Return false if they are unknown. Required if there is a cpu_s function. */
    bool (*core)(void *driver, double *run_s, double *delay_s);
    /* Return the memory of the worker's process [bytes]. NULL: memory is not limited. */
    uint64_t (*memory)(void *driver);
    /* End the process, and do not return. The attending thread calls this during a task if the master
     * dismisses the worker or has been gone for some time. If `anew`, a new worker replaces this one. If
     * `abandon` is NULL, the worker finishes its task first. */
    void (*abandon)(void *driver, const kilter_error *why, bool anew);
    const kl_signal_folder *signals; /* NULL: the worker cannot take part in runs with signals */
} kl_worker_options;

/* Functions for a second thread that handles messages while a task runs, which is called attending. */
typedef struct kl_attendance {
    /* Called before the work function (begins = true) and after it. The second thread may attend between
     * the two calls. */
    void (*works)(void *self, bool begins);
    double (*busy_s)(void *self); /* Return the working thread's CPU time. Both threads call this function. */
    void *self;
} kl_attendance;

/* Make a worker. The caller keeps the transport and closes it. */
kilter_status kl_worker_new(const kl_worker_options *options, void *driver, kl_transport *transport,
                            kl_worker **worker, kilter_error *error);
void kl_worker_free(kl_worker *worker); /* free the worker, and call its stop function */
/* Receive messages and do some work. Without work, wait up to timeout_s for a message; < 0: for ever.
 * KILTER_ENDED: the master has closed the farm, or the worker has left. KILTER_ERR_PEER: the master is gone,
 * or sent the worker away. KILTER_ERR_TASK: the start or shared function failed, or the wrong shared data
 * arrived. KILTER_ERR_MEMORY: memory ran out; the master knows. */
kilter_status kl_worker_turn(kl_worker *worker, double timeout_s, kilter_error *error);
bool kl_worker_has_work(const kl_worker *worker);
/* Return the time at which the next turn is due if no event comes before; HUGE_VAL: no turn is due. */
double kl_worker_due_s(const kl_worker *worker);

/* The next functions are the steps of a turn, for a driver that decides how long tasks take. */
/* Receive messages between two tasks. Then send results, or leave, if it is time to. */
kilter_status kl_worker_between(kl_worker *worker, kilter_error *error);
/* Take the first item of the queue: shared data, or a task. A task that is taken becomes the task at hand.
 * Request more tasks if it is time to. */
kilter_status kl_worker_begin_next(kl_worker *worker, kilter_error *error);
/* Return the task at hand; NULL: there is none. */
const kilter_task *kl_worker_at_hand(const kl_worker *worker);
/* Call the work function for the task at hand and return its result. */
int kl_worker_call(kl_worker *worker);
/* End the task at hand now. code: the return value of the work function. */
kilter_status kl_worker_end_task(kl_worker *worker, int code, kilter_error *error);

/* Ask the worker to leave: it returns the tasks that it has not begun, finishes its present task and leaves.
 * `why` must stay valid. Any thread may call this. */
void kl_worker_leave(kl_worker *worker, const char *why);

/* After KILTER_ERR_PEER: return whether the connection to the master has ended. If so, the worker may wait
 * for another master. */
bool kl_worker_is_orphan(const kl_worker *worker);
/* Return why a new worker is to replace this one, or NULL. */
const char *kl_worker_renewal(const kl_worker *worker);
/* Start again with the master at the other end of `transport`. Forget tasks and shared data of the last
 * master, but keep the state that the start function made. No thread attends until kl_worker_let_attend(). */
void kl_worker_adopt(kl_worker *worker, kl_transport *transport);

/* Let another thread attend; zeroed: no thread attends. */
void kl_worker_let_attend(kl_worker *worker, const kl_attendance *attendance);
/* During a long task: receive and answer messages, send results that are ready, request tasks, send
 * heartbeats. The first call in a task only notes that the task runs. Errors are returned by the next
 * turn. */
void kl_worker_attend(kl_worker *worker);
/* Return the time at which ready results should be sent although a task runs. HUGE_VAL: no results are ready,
 * or no task runs. */
double kl_worker_results_due_s(const kl_worker *worker);
/* Fill in the heartbeat's task, and the share of the core that tasks usually get at this worker. */
void kl_worker_name_task(const kl_worker *worker, kl_heartbeat *heartbeat);

/* --- master --- */

/* Results of tasks [lo, lo + count) that are on their way to the user. They are checked, and
 * kl_wire_next_result() reads them. Small results are copied behind the struct, so that waiting results
 * need little more memory than their own size. */
typedef struct kl_delivery {
    struct kl_delivery *next;
    uint64_t lo, count;
    const uint8_t *results;
    size_t size; /* bytes of results */
    uint32_t worker;
    /* true: `results` is a sum of the results of `count` tasks, in the form of kl_wire_put_sum(); `lo` is the
     * first of these tasks */
    bool is_sum;
    kl_message message; /* the message that `results` points into; zeroed: the results were copied */
    uint8_t copy[];
} kl_delivery;

typedef struct kl_delivery_list {
    kl_delivery *first, **end; /* zeroed: empty */
} kl_delivery_list;

void kl_delivery_append(kl_delivery_list *list, kl_delivery_list *taken); /* leaves `taken` empty */
void kl_delivery_free(kl_delivery *delivery);

typedef struct kl_master kl_master;

/* least limit in seconds: twice KL_HEARTBEAT_S, because the master learns a task's time from heartbeats */
static const double KL_TIMEOUT_LEAST_S = 0.5;

/* Limits of a task and of a worker; 0: none. */
typedef struct kl_limits {
    double task_s; /* seconds that a task may take */
    /* the limit on a task's time, as a multiple of the usual time for the task's weight */
    double task_times;
    uint32_t retries;      /* how many times a failed task is tried again */
    uint64_t worker_tasks; /* number of tasks after which a worker is replaced */
    /* bytes of memory that a worker's process may take in addition to those it had when it joined */
    uint64_t worker_memory;
} kl_limits;

typedef struct kl_master_options {
    const kl_policy *policy;
    kl_clock clock;
    const char *program; /* name of the program; workers of another program are sent away */
    /* version of the program; workers of another version are sent away; NULL: "" */
    const char *program_version;
    char host[128]; /* the master's host, as in kl_hello.host; "": unknown */
    /* a task fails after this many of its workers were lost; 0: 5, the default */
    uint32_t attempts;
    bool may_join;  /* true: workers may join later, so a farm without workers waits for them */
    bool chooses;   /* true: the farm chooses the number of active workers between runs */
    uint32_t seats; /* number of active workers in the first run; 0: all that are present */
    bool release;   /* true: workers that are not needed leave the farm */
    bool once;      /* true: no task gets a speculative copy */
    /* seconds after which a member that has sent no greeting is sent away; 0: it may take any time */
    double greeting_s;
    /* Warn the user with a sentence, whose parts are `text` and `more`. NULL: no warnings. */
    void (*warn)(void *self, const char *text, const char *more);
    /* Tell the driver that the worker in process `pid` is lost. missed: the worker was ready to work and
     * was not leaving. The function may write how the process ended ("was killed by …"). NULL: how it
     * ended is unknown. */
    void (*lost)(void *self, uint64_t pid, bool missed, char *how, size_t size);
    /* Replace the worker in process `pid`. at_once: kill it now; otherwise it ends by itself. NULL:
     * workers are replaced without the master's help. */
    void (*renew)(void *self, uint64_t pid, bool at_once);
    /* Get the CPU time that the farm and the program's callbacks have used in the master's process. Return
     * false if it is unknown. NULL: it is always unknown. */
    bool (*used)(void *self, double *farm_s, double *callbacks_s);
    /* Get the last heartbeat of the worker at `peer`, and the time at which it came. Return false if there is
     * none. NULL: workers send heartbeats as messages. */
    bool (*heartbeat)(void *self, kl_peer peer, kl_heartbeat *heartbeat, double *at_s);
    uint32_t cores; /* number of cores that the master and its local workers may use; 0: unknown */
    void *self;
    kl_limits limits;
    kl_reducer reducer;
    kl_organise organise;
    const kl_help *help; /* policy of peers; NULL: the default one */
    /* folder through which late peers call for help, if the policy has a board; it must outlive the
     * master; NULL: they send messages */
    const char *signals;
} kl_master_options;

kilter_status kl_master_new(const kl_master_options *options, kl_transport *transport, kl_master **master,
                            kilter_error *error);
void kl_master_free(kl_master *master);
void kl_master_record(
    kl_master *master,
    kl_trace *trace); /* write to the record from now on, beginning with rows for the present workers */

/* Wait up to timeout_s (< 0: for ever) for an event, handle it and deal work. After an error the farm cannot
 * go on. */
kilter_status kl_master_turn(kl_master *master, double timeout_s, kilter_error *error);

/* End the current run early, with KILTER_ERR_CANCELLED. Return KILTER_OK if there is no run. */
kilter_status kl_master_cancel(kl_master *master, kilter_error *error);
/* Return the time of the next turn if no event comes before; HUGE_VAL: none is needed. */
double kl_master_due_s(const kl_master *master);

/* Return the number of workers that are working or resting. */
uint32_t kl_master_ready(const kl_master *master);
/* Return the number of workers so far that could not work, or left without being asked. */
uint32_t kl_master_refused(const kl_master *master);
/* Return whether the worker in process `pid` is ready. */
bool kl_master_knows(const kl_master *master, uint64_t pid);
bool kl_master_sees(const kl_master *master,
                    uint64_t pid); /* Return whether the worker in process `pid` has sent its greeting. */
/* Set the number of workers that are being started. A farm that has lost all other workers waits for them. */
void kl_master_expect(kl_master *master, uint32_t coming);
/* Return the number of tasks finished in all runs. */
uint64_t kl_master_finished(const kl_master *master);
/* Return a sentence about the worker that was lost last, or "". */
const char *kl_master_last_loss(const kl_master *master);

/* Set for how many seconds the program has computed since the last run [l_m]. Call this before
 * kl_master_begin(). */
void kl_master_spent(kl_master *master, double seconds);
/* Set the tasks of the next run that are done already, so that they are not dealt. Call this before
 * kl_master_begin(). */
void kl_master_done_before(kl_master *master, kl_spans done);
/* Set the number of results that were taken from the master but are not stored on the disk yet. The
 * master's state and progress do not count them. too_many: deal nothing until the next call. */
void kl_master_unsafe(kl_master *master, uint64_t results, bool too_many);
/* Return why peers cannot do the run; NULL: they can. */
const char *kl_master_never_peers(const kl_master *master, const kilter_run *run);
/* Note that peers have organised a run of this farm, and how long it took. */
void kl_master_note_peers(kl_master *master, uint64_t tasks, double elapsed_s);
/* Choose who organises the run, from the runs so far. count: number of peers; 0: the master. */
kl_decision kl_master_way(const kl_master *master, const kilter_run *run, kl_organise wanted);
kilter_status kl_master_begin(kl_master *master, const kilter_run *run, kilter_error *error);
/* Add `count` tasks to a run with run->grows; those in `done` are done already. After kl_master_grown() no
 * more tasks come, and the run ends when all are done. Both functions do nothing after a run has ended
 * early. */
kilter_status kl_master_grow(kl_master *master, uint64_t count, const kilter_bytes *inputs,
                             const double *weights, kl_spans done, kilter_error *error);
void kl_master_grown(kl_master *master);
bool kl_master_running(const kl_master *master);
/* Take over the results that arrived since the last call. */
kl_delivery_list kl_master_take(kl_master *master);
/* Get the last run's summary. Its `decision` belongs to the master and is valid until the next run. */
void kl_master_summary(const kl_master *master, kilter_farm_summary *summary);
/* Get the measurements from which the next run's number of tasks is chosen. Call this between two runs.
 * The program has computed for spent_s seconds since the last run. The caller frees look->lanes.
 * KILTER_ERR_MEMORY. */
kilter_status kl_master_grain(kl_master *master, double spent_s, double work, kl_grain_look *look);
/* Store the plan that the program was given for the next run. Call this before kl_master_begin(). */
void kl_master_note_grain(kl_master *master, const kl_grain_plan *plan);
/* The program's expectation of its coming runs, for the record. */
typedef struct kl_expectation {
    uint64_t runs; /* 0: nothing */
    double end_s;  /* time at which the last of these runs should end, by the master's clock */
    char reason[KL_REASON_BYTES];
} kl_expectation;
/* Store this expectation, before the first of these runs. */
void kl_master_note_expectation(kl_master *master, const kl_expectation *expectation);
/* The latest task: the longest-running among those that take far longer than usual for their weight. */
typedef struct kl_late {
    uint64_t task;
    uint32_t worker;
    /* seconds that the task has run, and usual seconds for its weight; elapsed_s = 0: no task is late */
    double elapsed_s, usual_s;
} kl_late;
kl_late kl_master_late(const kl_master *master);
/* Facts about a run that only the program knows. All zero: none. */
typedef struct kl_telling {
    const char *things; /* name of a task in the progress line; NULL: "task" */
    uint64_t failed;    /* number of tasks whose results report a failure */
    uint64_t to_come;   /* number of tasks that the program will add */
    uint64_t chain;     /* as in kl_left_ask */
} kl_telling;

/* The progress of a run. */
typedef struct kl_progress {
    const char *things;
    uint64_t tasks, done, failed;
    uint32_t workers;
    double elapsed_s;
    bool known; /* true: the time left is known; with 90 % probability it lies within its interval */
    kl_left left;
    kl_late late;
} kl_progress;

void kl_master_progress(kl_master *master, const kl_telling *more, kl_progress *progress);
/* Print "42 % · 420 of 1000 tasks · 3 failed · 2 workers · 9.1 s · 12 to 14 s left (90 %)". columns: width
 * of the terminal, on which a bar comes first; 0: the output is no terminal. */
void kl_progress_print(const kl_progress *progress, int columns, char *text, size_t size);
void kl_master_advise(
    kl_master *master); /* write to the record those measurements of the last run that help a later farm */
void kl_master_end(kl_master *master); /* tell every worker that the farm is closed */

/* --- tuning from outside --- */

enum { KL_TUNE_POLICY = 1, KL_TUNE_FACTOR = 2, KL_TUNE_WORKERS = 4 };

/* Tuning points to be set. */
typedef struct kl_tuning {
    unsigned set; /* KL_TUNE_* bits of the points to set; the other points keep their values */
    const kl_policy *policy;
    double factor;    /* partition factor in (0, 1]; 0: the policy chooses it */
    uint32_t workers; /* number of active workers in a run, at most the number present; 0: the farm chooses */
} kl_tuning;

/* Set tuning points. The factor takes effect with the next batch, the others with the next run. Each is then
 * recorded as a decision. KILTER_ERR_RANGE: the factor is outside [0, 1], and nothing is set. */
kilter_status kl_master_tune(kl_master *master, const kl_tuning *tuning, kilter_error *error);

typedef enum kl_worker_doing {
    KL_WORKER_STARTING,
    KL_WORKER_BUSY,    /* the worker has tasks */
    KL_WORKER_IDLE,    /* the worker waits for tasks */
    KL_WORKER_RESTING, /* the worker is not active */
    KL_WORKER_LEAVING, /* the worker finishes its task and leaves */
} kl_worker_doing;

typedef struct kl_worker_state {
    uint32_t worker;
    kl_worker_doing doing;
    double rate_units_per_s; /* units of work per second; 0: not known */
    double busy_s;           /* seconds that the worker spent on tasks of this run, or of the last run */
    uint64_t chunks, queued_tasks;
} kl_worker_state;

enum { KL_STATE_WORKERS = 64 };

typedef struct kl_host_state {
    char name[KL_CONTROL_HOST_BYTES];
    bool drained;
    uint32_t workers, idle, working, lost; /* as in kl_control_host */
} kl_host_state;

/* figures that a tool needs which adds workers */
typedef struct kl_growing_state {
    double left_s, task_s; /* seconds until the run is done, and mean seconds of its tasks; 0: not known */
    kl_left left;          /* the time left with its interval; high_s 0: not known */
    uint32_t hosts;        /* number of entries in `host`: hosts that have workers, or that have lost some */
    kl_host_state host[KL_CONTROL_HOSTS_MOST];
} kl_growing_state;

/* The farm's measure points, performance functions and tuning points, as plain data. */
typedef struct kl_farm_state {
    double at_s; /* seconds since the farm was opened */
    bool running;
    uint64_t run, tasks, done; /* number of the current run, its tasks and its done tasks; or of the last run
                                  if none is in progress */
    double elapsed_s;          /* seconds since this run began; if it has ended, its length */

    kl_linear message;     /* m_o [s] and λ [s/byte] now */
    double answer_s;       /* the master's seconds to answer a request for work */
    kl_iteration last;     /* the last run that ended, without speeds; workers = 0: no run has ended */
    double time_s, index;  /* T_t and P_i of the model for the last run's number of workers */
    double efficiency;     /* E of the model for the last run's number of workers */
    double quality_bound;  /* value of `last.quality` above which a run is not balanced */
    uint32_t capability;   /* greatest number of workers that the master can feed; UINT32_MAX: no limit */
    uint32_t best_workers; /* number of workers with the smallest P_i; 0: unknown */
    double best_time_s, best_index;

    const kl_policy *policy;
    double factor;             /* partition factor; 0: the policy has none */
    uint32_t present, resting; /* workers */
    /* number of workers that are leaving; `ready` and `active` do not include them */
    uint32_t leaving;
    /* number of active workers that the user has set; 0: the farm chooses, or all are active */
    uint32_t workers;
    bool chooses;                   /* true: the farm chooses the number of active workers */
    kl_tuning pending;              /* settings that take effect when the next run begins */
    char decision[KL_REASON_BYTES]; /* the last decision on workers, policy or factor; "": there was none */
    kl_late late;

    uint32_t listed; /* number of entries in `worker`: the first KL_STATE_WORKERS workers that are present */
    kl_worker_state worker[KL_STATE_WORKERS];
    kl_growing_state growing;
} kl_farm_state;

/* Get the farm's state. The cost grows with the number of workers, and includes one evaluation of the
 * model. */
void kl_master_state(kl_master *master, kl_farm_state *state);
/* Record a decision that somebody else has made about the farm. */
void kl_master_note(kl_master *master, const kl_decision *decision);

/* Send workers home: each finishes its task, returns its other tasks and leaves. KILTER_ERR_RANGE: a named
 * worker does not exist, or no worker would stay and --all was not given. Then no worker leaves. */
kilter_status kl_master_drain(kl_master *master, const kl_control_drain *drain,
                              char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);

/* Convert the state to the values that `kilter tune` shows. `program` and `transport` stay empty. */
void kl_tuning_show(const kl_farm_state *state, kl_control_state *shown);
/* Convert the setting to tuning points for a farm in this state, and say in `answer` when they take effect.
 * KILTER_ERR_USAGE, _RANGE: the setting is not possible; nothing is written. */
kilter_status kl_tuning_check(const kl_control_setting *setting, const kl_farm_state *state,
                              kl_tuning *tuning, char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
/* Add the points that are set in `from` to `into`, and overwrite those that are set there. */
void kl_tuning_merge(kl_tuning *into, const kl_tuning *from);

/* --- results to the user --- */

/* Passes results to the user's callback, in the order that the run asks for. */
typedef struct kl_deliverer kl_deliverer;

/* Make a deliverer. reducer: combines results in runs that reduce, into run->results. */
kilter_status kl_deliverer_new(const kilter_run *run, kl_reducer reducer, kl_deliverer **deliverer,
                               kilter_error *error);
void kl_deliverer_free(kl_deliverer *deliverer);
/* Deliver the results in the list, and take over the list. KILTER_ERR_MEMORY. */
kilter_status kl_deliver(kl_deliverer *deliverer, kl_delivery_list list, kilter_error *error);
/* Return the number of results delivered so far. */
uint64_t kl_deliverer_given(const kl_deliverer *deliverer);
/* Return the number of failed tasks. `first` gets the error of the task that failed first. */
uint64_t kl_deliverer_failed(const kl_deliverer *deliverer, char *first, size_t size);

/* Write a sentence on how the run was dealt and how well it was balanced. */
void kl_summary_sentence(const kl_balance *balance, const char *policy, const kilter_farm_summary *summary,
                         const kl_interval *equal, char *text, size_t size);

#endif
