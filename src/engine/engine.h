/* Public header of the folder engine: the state machines of a farm's master and of its workers. They use
 * no threads, processes or command lines. The folder farm drives them on real machines, the folder sim in
 * virtual time. */
#ifndef KL_ENGINE_H
#define KL_ENGINE_H

#include "balance/balance.h"
#include "control/control.h"
#include "kilter/farm.h"
#include "peer/peer.h"

/* The program's function that combines two results into one, for runs that combine their results (reduce). */
typedef struct kl_reducer {
    kilter_combine_fn combine; /* function that combines two results; NULL: results cannot be combined */
    void *user;
} kl_reducer;

/* --- worker --- */

/* A worker sends its results when the oldest result has waited for KL_FLUSH_S seconds, or when all results
 * together have KL_FLUSH_BYTES bytes. */
static const double KL_FLUSH_S = 0.1;
static const size_t KL_FLUSH_BYTES = (size_t)1 << 19;
/* seconds between two heartbeats that a worker sends during a long task */
static const double KL_HEARTBEAT_S = 0.25;

typedef struct kl_worker kl_worker;

/* A late peer calls for help by a signal. A signal is a small file in a folder that all workers of a run
 * share. These functions handle such files. Each function gets the `driver` that was given to
 * kl_worker_new(). */
typedef struct kl_signal_folder {
    /* Check that this process can use the folder. KILTER_ERR_SYSTEM: it cannot. */
    kilter_status (*check)(void *driver, const char *folder, kilter_error *error);
    /* Write a file, as a whole or not at all. false: it cannot be written. */
    bool (*put)(void *driver, const char *folder, const char *name, kilter_bytes text);
    /* Take one file whose name begins with `prefix` out of the folder. No other process can get the same
     * file. `claim` is a text that only the calling process uses. Store the file's text in `text`, and its
     * number of bytes in *size. false: there is no such file, or it cannot be taken. */
    bool (*take)(void *driver, const char *folder, const char *prefix, const char *claim,
                 char text[KL_SIGNAL_BYTES], size_t *size);
    void (*drop)(void *driver, const char *folder,
                 const char *name); /* remove the file `name` if it exists */
} kl_signal_folder;

/* Functions and limits of a worker. Several workers may share one struct, which must exist longer than all of
 * them. */
typedef struct kl_worker_options {
    kilter_work_fn work;
    kilter_start_fn start;
    kilter_shared_fn shared;
    kilter_stop_fn stop;
    void *user;
    kilter_combine_fn combine; /* NULL: results cannot be combined */
    void *state;               /* the state that the work function gets if there is no start function */
    /* program: name of the program; binding: text that names the worker's cores. The master writes both to
     * the record. Neither may be NULL. */
    const char *program, *binding;
    /* version of the program; NULL means "". The master refuses a worker whose version differs from
     * its own. */
    const char *program_version;
    kl_clock clock;
    /* seconds of work after which the worker checks for messages; 0: it checks after each task */
    double burst_s;
    double patience_s; /* seconds that the worker waits for a master; below 0: for ever */

    /* Fill in the worker's host and process number for the master's record. NULL: both are unknown. This
     * function and the functions after it get the `driver` that was given to kl_worker_new(). */
    void (*introduce)(void *driver, kl_hello *hello);
    /* Return the CPU time of the worker's process or thread in seconds. NULL: the worker does not report its
     * CPU time. */
    double (*cpu_s)(void *driver);
    /* Get two times of the worker's thread. *run_s: seconds for which the thread ran. *delay_s: seconds for
     * which the thread was ready while other threads had its core. Return false if these times are unknown.
     * Required if cpu_s is set. */
    bool (*core)(void *driver, double *run_s, double *delay_s);
    /* Return the bytes of memory that the worker's process uses. NULL: the worker's memory is not limited. */
    uint64_t (*memory)(void *driver);
    /* End the process; this function does not return. The thread that handles messages during a task calls it
     * if the master dismisses the worker, or has been gone for some time. The parameter anew is true if a new
     * worker replaces this one. NULL: the worker finishes its task before it ends. */
    void (*abandon)(void *driver, const kilter_error *why, bool anew);
    /* folder for signals of peers; NULL: the worker cannot take part in runs with such signals */
    const kl_signal_folder *signals;
} kl_worker_options;

/* A second thread may handle messages while a task runs; this is called attending. These are the functions
 * for it. */
typedef struct kl_attendance {
    /* The worker calls this function before the work function (begins = true) and after it (begins = false).
     * Between the two calls, the second thread may handle messages. */
    void (*works)(void *self, bool begins);
    /* Return the CPU time of the thread that does the task. Both threads call this function. */
    double (*busy_s)(void *self);
    void *self;
} kl_attendance;

/* Make a worker that uses `transport`. The caller must close the transport after the worker is freed. */
kilter_status kl_worker_new(const kl_worker_options *options, void *driver, kl_transport *transport,
                            kl_worker **worker, kilter_error *error);
void kl_worker_free(kl_worker *worker); /* free the worker, and call its stop function */
/* Receive messages and do some work. Without work, wait up to timeout_s for a message; below 0: for ever.
 * KILTER_ENDED: the master has closed the farm, or the worker has left. KILTER_ERR_PEER: the master is gone,
 * or sent the worker away. KILTER_ERR_TASK: the start or shared function failed, or the wrong shared data
 * arrived. KILTER_ERR_MEMORY: memory ran out; the master was told. */
kilter_status kl_worker_turn(kl_worker *worker, double timeout_s, kilter_error *error);
bool kl_worker_has_work(const kl_worker *worker);
/* Return the time at which the worker must have its next turn if no event comes before. HUGE_VAL: no turn is
 * needed. */
double kl_worker_due_s(const kl_worker *worker);

/* The functions that follow are the steps of a worker's turn. A driver that decides how long tasks take
 * calls them. */
/* Receive messages between two tasks. Then send results or leave the farm, if it is time for that. */
kilter_status kl_worker_between(kl_worker *worker, kilter_error *error);
/* Take the first item of the queue, which is shared data or a task. A task that is taken becomes the task at
 * hand, which the worker does now. Request more tasks if it is time for that. */
kilter_status kl_worker_begin_next(kl_worker *worker, kilter_error *error);
/* Return the task at hand, which the worker does now; NULL: there is none. */
const kilter_task *kl_worker_at_hand(const kl_worker *worker);
/* Call the work function for the task at hand, and return the function's result. */
int kl_worker_call(kl_worker *worker);
/* End the task at hand. code: the value that the work function returned. */
kilter_status kl_worker_end_task(kl_worker *worker, int code, kilter_error *error);

/* Let the worker leave the farm: it returns the tasks that it has not begun, finishes its present task and
 * leaves. The text `why` must stay valid. Any thread may call this. */
void kl_worker_leave(kl_worker *worker, const char *why);

/* After KILTER_ERR_PEER: return whether the connection to the master has ended. If so, the worker may wait
 * for another master. */
bool kl_worker_is_orphan(const kl_worker *worker);
/* Return why a new worker must replace this one. NULL: no new worker must. */
const char *kl_worker_renewal(const kl_worker *worker);
/* Let the worker serve a new master, at the other end of `transport`. The worker forgets the tasks and shared
 * data of the last master, but keeps the state that the start function made. Afterwards, no second thread
 * attends until kl_worker_let_attend() is called. */
void kl_worker_adopt(kl_worker *worker, kl_transport *transport);

/* Let a second thread handle messages during tasks (attend). If all members of `attendance` are zero, no
 * second thread attends. */
void kl_worker_let_attend(kl_worker *worker, const kl_attendance *attendance);
/* Handle messages during a long task: receive and answer messages, send results that are ready, request
 * tasks, send heartbeats. The first call in a task only notes that the task runs. If an error occurs here,
 * the worker's next turn returns it. */
void kl_worker_attend(kl_worker *worker);
/* Return the time at which ready results should be sent although a task runs. HUGE_VAL: no results are
 * ready, or no task runs. */
double kl_worker_results_due_s(const kl_worker *worker);
/* Fill in two fields of the heartbeat. One is the task that the worker does now. The other is the part of its
 * core's time that tasks at this worker usually get. */
void kl_worker_name_task(const kl_worker *worker, kl_heartbeat *heartbeat);

/* --- master --- */

/* Results of tasks [lo, lo + count) that wait to be delivered to the user. The results were checked;
 * kl_wire_next_result() reads them. Small results are copied to the member `copy`, so that their message need
 * not be kept. */
typedef struct kl_delivery {
    struct kl_delivery *next;
    uint64_t lo, count;
    const uint8_t *results;
    size_t size; /* bytes of all results together */
    uint32_t worker;
    /* true: the results of `count` tasks were combined into one. Then `results` is this combination, as
     * kl_wire_put_sum() writes it, and `lo` is the first of these tasks. */
    bool is_sum;
    kl_message message; /* the message that contains the bytes of `results`; zeros: the results were copied */
    uint8_t copy[];
} kl_delivery;

typedef struct kl_delivery_list {
    kl_delivery *first, **end; /* all zero: the list is empty */
} kl_delivery_list;

/* Move all deliveries of `taken` to the end of `list`. */
void kl_delivery_append(kl_delivery_list *list, kl_delivery_list *taken);
void kl_delivery_free(kl_delivery *delivery);

typedef struct kl_master kl_master;

/* smallest time limit of a task in seconds. It is twice KL_HEARTBEAT_S, because the master learns a task's
 * time from heartbeats. */
static const double KL_TIMEOUT_LEAST_S = 0.5;

/* Limits of a task and of a worker. In each member, 0 means that there is no limit. */
typedef struct kl_limits {
    double task_s; /* seconds that a task may take */
    /* time limit of a task, as a multiple of the time that tasks of the same weight usually take */
    double task_times;
    uint32_t retries;      /* how many times a failed task is tried again */
    uint64_t worker_tasks; /* number of tasks after which a worker is replaced */
    /* bytes of memory by which a worker's process may grow after it has joined */
    uint64_t worker_memory;
} kl_limits;

typedef struct kl_master_options {
    const kl_policy *policy;
    kl_clock clock;
    const char *program; /* name of the program; the master refuses workers of a program with another name */
    /* version of the program; NULL means "". The master refuses workers of another version. */
    const char *program_version;
    char host[128]; /* name of the master's host, in the form of kl_hello.host; "": unknown */
    /* a task fails after this many of its workers were lost; 0: after 5, the default */
    uint32_t attempts;
    bool may_join;  /* true: workers may join later, so a farm without workers waits until some join */
    bool chooses;   /* true: the farm chooses the number of active workers between runs */
    uint32_t seats; /* number of active workers in the first run; 0: all connected workers */
    bool release;   /* true: workers that are not needed are released from the farm */
    bool once;      /* true: tasks get no speculative copies */
    /* seconds after which a new member that has not sent its greeting is disconnected; 0: no limit */
    double greeting_s;
    /* Print a warning for the user. The warning is one sentence, which is `text` followed by `more`. NULL:
     * there are no warnings. */
    void (*warn)(void *self, const char *text, const char *more);
    /* Report that the worker in process `pid` is lost. missed: true if the worker was ready to work and was
     * not leaving. The function may write to `how` why the process ended ("was killed by …"). NULL: the
     * master never knows why a process ended. */
    void (*lost)(void *self, uint64_t pid, bool missed, char *how, size_t size);
    /* Replace the worker in process `pid`. at_once: true if the worker must be killed now; otherwise it ends
     * by itself. NULL: workers are replaced without the master's help. */
    void (*renew)(void *self, uint64_t pid, bool at_once);
    /* Get the CPU time that the farm and the program's callbacks have used in the master's process. Return
     * false if the time is unknown. NULL: it is always unknown. */
    bool (*used)(void *self, double *farm_s, double *callbacks_s);
    /* Get the last heartbeat of the worker at `peer`, and the time at which it came. Return false if none
     * has come. NULL: workers send heartbeats as messages. */
    bool (*heartbeat)(void *self, kl_peer peer, kl_heartbeat *heartbeat, double *at_s);
    uint32_t cores; /* number of cores that the master and its local workers may use; 0: unknown */
    void *self;
    kl_limits limits;
    kl_reducer reducer;
    kl_organise organise;
    const kl_help *help; /* policy of runs that peers organise; NULL: the default policy */
    /* folder in which late peers call for help, if the policy has a list of late peers; NULL: peers send
     * messages instead. The text must exist longer than the master. */
    const char *signals;
} kl_master_options;

kilter_status kl_master_new(const kl_master_options *options, kl_transport *transport, kl_master **master,
                            kilter_error *error);
void kl_master_free(kl_master *master);
/* Write to the record `trace` from now on. First write a row for each connected worker. */
void kl_master_record(kl_master *master, kl_trace *trace);

/* Wait up to timeout_s for an event (below 0: for ever), handle the event, and deal tasks. After an error,
 * the farm cannot continue. */
kilter_status kl_master_turn(kl_master *master, double timeout_s, kilter_error *error);

/* End the current run early, with the status KILTER_ERR_CANCELLED. If there is no run, return KILTER_OK. */
kilter_status kl_master_cancel(kl_master *master, kilter_error *error);
/* Return the time at which the master must have its next turn if no event comes before. HUGE_VAL: no turn is
 * needed. */
double kl_master_due_s(const kl_master *master);

/* Return the number of workers that are ready for tasks, including resting ones. */
uint32_t kl_master_ready(const kl_master *master);
/* Return the number of active workers: those that are ready for tasks and do not rest. */
uint32_t kl_master_active(const kl_master *master);
/* Return how many workers so far could not work, or left without being asked to. */
uint32_t kl_master_refused(const kl_master *master);
/* Return whether the worker in process `pid` is ready for tasks. */
bool kl_master_knows(const kl_master *master, uint64_t pid);
/* Return whether the worker in process `pid` has sent its greeting. */
bool kl_master_sees(const kl_master *master, uint64_t pid);
/* Set the number of workers that are being started. A farm that has lost all its workers waits for these new
 * ones. */
void kl_master_expect(kl_master *master, uint32_t coming);
/* Return the number of tasks finished in all runs. */
uint64_t kl_master_finished(const kl_master *master);
/* Return a sentence about the worker that was lost last; "": no worker was lost. */
const char *kl_master_last_loss(const kl_master *master);

/* Tell the master for how many seconds the program has computed since the last run. The model calls this time
 * l_m. Call this before kl_master_begin(). */
void kl_master_spent(kl_master *master, double seconds);
/* Set the tasks of the next run that are already done, so that the master does not deal them. Call this
 * before kl_master_begin(). */
void kl_master_done_before(kl_master *master, kl_spans done);
/* Set the number of results that were taken from the master but are not stored on disk yet. The master's
 * state and progress leave these results out. too_many: true if the master must deal no tasks until the next
 * call. */
void kl_master_unsafe(kl_master *master, uint64_t results, bool too_many);
/* Return the reason why `workers` workers cannot organise the run as peers. NULL: they can. This reads
 * nothing that changes, so any thread may call it. */
const char *kl_master_never_peers(const kl_master *master, const kilter_run *run, uint32_t workers);
/* Store that peers have organised a run of this farm, and how long the run took. */
void kl_master_note_peers(kl_master *master, uint64_t tasks, double elapsed_s);
/* Choose whether the master or the workers organise the run, by the measured times of earlier runs. The
 * decision's `count` is the number of peers; 0: the master organises the run. */
kl_decision kl_master_way(const kl_master *master, const kilter_run *run, kl_organise wanted);
kilter_status kl_master_begin(kl_master *master, const kilter_run *run, kilter_error *error);
/* Add `count` tasks to a run with run->grows; the tasks in `done` are already done. Call kl_master_grown()
 * when no more tasks will be added. The run then ends when all its tasks are done. If the run has ended
 * early, both functions do nothing. */
kilter_status kl_master_grow(kl_master *master, uint64_t count, const kilter_bytes *inputs,
                             const double *weights, kl_spans done, kilter_error *error);
void kl_master_grown(kl_master *master);
bool kl_master_running(const kl_master *master);
/* Take over the results that arrived since the last call. */
kl_delivery_list kl_master_take(kl_master *master);
/* Get the summary of the last run. The text `decision` in it belongs to the master, and is valid until the
 * next run. */
void kl_master_summary(const kl_master *master, kilter_farm_summary *summary);
/* Get the measurements from which the next run's number of tasks is chosen. Call this between two runs.
 * spent_s: seconds that the program has computed since the last run; work: units of work of the next run, 0:
 * as in the last run. The caller frees look->lanes. KILTER_ERR_USAGE: tasks were added during the last run.
 * KILTER_ERR_MEMORY: memory ran out. */
kilter_status kl_master_grain(kl_master *master, double spent_s, double work, kl_grain_look *look);
/* Store the farm's answer to a program that asked how many tasks its next run should have. Call this before
 * kl_master_begin(). */
void kl_master_note_grain(kl_master *master, const kl_grain_plan *plan);
/* The program's own forecast of its coming runs. It is written to the record. */
typedef struct kl_expectation {
    uint64_t runs; /* number of coming runs; 0: there is no forecast */
    double end_s;  /* time at which the last of these runs should end, on the master's clock */
    char reason[KL_REASON_BYTES];
} kl_expectation;
/* Store the program's forecast of its coming runs. Call this before the first of these runs. */
void kl_master_note_expectation(kl_master *master, const kl_expectation *expectation);
/* A task is late if it takes far longer than tasks of its weight usually take. This struct describes the late
 * task that has run longest. */
typedef struct kl_late {
    uint64_t task;
    uint32_t worker;
    /* elapsed_s: seconds for which the task has run, 0 if no task is late; usual_s: seconds that tasks of its
     * weight usually take */
    double elapsed_s, usual_s;
} kl_late;
kl_late kl_master_late(const kl_master *master);
/* Facts about a run that only the program knows, for the progress line. All zero: none are known. */
typedef struct kl_telling {
    const char *things; /* word for one task in the progress line; NULL: "task" */
    uint64_t failed;    /* number of tasks that are done but whose results report a failure */
    uint64_t to_come;   /* number of tasks that the program will add */
    /* number of tasks in the longest chain in which each task waits for the task before it */
    uint64_t chain;
} kl_telling;

/* The progress of a run, as the progress line shows it. */
typedef struct kl_progress {
    const char *things;
    uint64_t tasks, done, failed;
    uint32_t workers;
    double elapsed_s;
    /* true: `left` is known; the time left lies within this interval with a probability of 90 % */
    bool known;
    kl_left left;
    kl_late late;
} kl_progress;

void kl_master_progress(kl_master *master, const kl_telling *more, kl_progress *progress);
/* Write the progress line to `text`. An example is "42 % · 420 of 1000 tasks · 3 failed · 2 workers · 9.1 s ·
 * 12 to 14 s left (90 %)". columns: width of the terminal; 0: the output is not a terminal. On a terminal,
 * the line begins with a progress bar. */
void kl_progress_print(const kl_progress *progress, int columns, char *text, size_t size);
/* Write to the record how many workers a later farm of the same program should use. */
void kl_master_advise(kl_master *master);
/* tell every worker that the farm is closed; call this before freeing the master */
void kl_master_end(kl_master *master);

/* --- tuning points that a user sets while the farm runs --- */

enum { KL_TUNE_POLICY = 1, KL_TUNE_FACTOR = 2, KL_TUNE_WORKERS = 4 };

/* New values for tuning points. */
typedef struct kl_tuning {
    unsigned set; /* KL_TUNE_* bits of the points that get a new value; the other points keep their values */
    const kl_policy *policy;
    double factor; /* partition factor in (0, 1]; 0: the policy chooses the factor */
    /* number of active workers in a run; if fewer workers are connected, all of them are active; 0: the farm
     * chooses */
    uint32_t workers;
} kl_tuning;

/* Set the policy, the partition factor or the number of workers of a farm. The factor takes effect with the
 * next batch. The policy and the number of workers take effect with the next run. Each change is recorded as
 * a decision. KILTER_ERR_RANGE: the factor is outside [0, 1], and nothing is set. */
kilter_status kl_master_tune(kl_master *master, const kl_tuning *tuning, kilter_error *error);

typedef enum kl_worker_doing {
    KL_WORKER_STARTING,
    KL_WORKER_BUSY,    /* the worker has tasks in its queue */
    KL_WORKER_IDLE,    /* the worker has no tasks and waits for some */
    KL_WORKER_RESTING, /* the worker is connected but not active, so it gets no tasks */
    KL_WORKER_LEAVING, /* the worker finishes its task and then leaves */
} kl_worker_doing;

typedef struct kl_worker_state {
    uint32_t worker;
    kl_worker_doing doing;
    double rate_units_per_s; /* units of work that the worker does per second; 0: not known */
    /* seconds that the worker spent on tasks of the current run; if no run is in progress, on tasks of the
     * last run */
    double busy_s;
    uint64_t chunks, queued_tasks;
} kl_worker_state;

enum { KL_STATE_WORKERS = 64 };

typedef struct kl_host_state {
    char name[KL_CONTROL_HOST_BYTES];
    bool drained;
    uint32_t workers, idle, working, lost; /* numbers of workers on this host, as in kl_control_host */
} kl_host_state;

/* facts about the farm, for a tool that adds workers to the farm */
typedef struct kl_growing_state {
    /* left_s: seconds until the run is done; task_s: mean seconds of its tasks; 0: not known */
    double left_s, task_s;
    kl_left left; /* the time left with its interval; high_s = 0: not known */
    /* number of entries in `host`, one for each host that has workers or has lost some */
    uint32_t hosts;
    kl_host_state host[KL_CONTROL_HOSTS_MOST];
} kl_growing_state;

/* The state of a farm as plain data: its measurements, the results of the model, and its tuning points. */
typedef struct kl_farm_state {
    double at_s; /* seconds since the farm was opened */
    bool running;
    /* about the current run, or about the last run if none is in progress. run: its number; tasks: number of
     * its tasks; done: number of its tasks that are done */
    uint64_t run, tasks, done;
    /* seconds since the current run began; if no run is in progress, the length of the last run */
    double elapsed_s;

    kl_linear message; /* present cost of a message: m_o seconds, and λ seconds more for each of its bytes */
    double answer_s;   /* seconds that the master needs to answer a request for work */
    /* measurements of the last run that ended, without the workers' speeds; workers = 0: no run has ended */
    kl_iteration last;
    /* the model's forecast for the last run's number of workers. time_s: time of the run T_t; index:
     * performance index P_i */
    double time_s, index;
    double efficiency;     /* the model's efficiency E for the last run's number of workers */
    double quality_bound;  /* a run whose `quality` is above this bound counts as not balanced */
    uint32_t capability;   /* greatest number of workers that the master can feed; UINT32_MAX: no limit */
    uint32_t best_workers; /* number of workers with the smallest performance index P_i; 0: unknown */
    double best_time_s, best_index;

    const kl_policy *policy;
    double factor;             /* partition factor of the policy; 0: the policy has none */
    uint32_t present, resting; /* numbers of connected workers: those that are active, and those that rest */
    /* number of workers that are leaving; `present` does not include them */
    uint32_t leaving;
    /* number of active workers that the user has set; 0: the user has set none */
    uint32_t workers;
    bool chooses;      /* true: the farm chooses the number of active workers */
    kl_tuning pending; /* settings that take effect when the next run begins */
    /* text of the last decision on workers, policy or factor; "": there was none */
    char decision[KL_REASON_BYTES];
    kl_late late;

    /* number of entries in `worker`, which lists the first KL_STATE_WORKERS connected workers */
    uint32_t listed;
    kl_worker_state worker[KL_STATE_WORKERS];
    kl_growing_state growing;
} kl_farm_state;

/* Get the farm's state. The time that this takes grows with the number of workers, and includes one
 * evaluation of the model. */
void kl_master_state(kl_master *master, kl_farm_state *state);
/* Record a decision about the farm that was made outside the farm. */
void kl_master_note(kl_master *master, const kl_decision *decision);

/* Release workers: each finishes its task, returns its other tasks and leaves. KILTER_ERR_RANGE: a named
 * worker does not exist, or no worker would stay and --all was not given. In both cases, no worker leaves. */
kilter_status kl_master_drain(kl_master *master, const kl_control_drain *drain,
                              char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);

/* Convert the farm's state to the values that `kilter tune` shows. The members `program` and `transport`
 * stay empty. */
void kl_tuning_show(const kl_farm_state *state, kl_control_state *shown);
/* Convert the setting to new tuning points for a farm in this state, and write into `answer` when they take
 * effect. KILTER_ERR_USAGE, KILTER_ERR_RANGE: the setting is not possible, and nothing is written. */
kilter_status kl_tuning_check(const kl_control_setting *setting, const kl_farm_state *state,
                              kl_tuning *tuning, char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
/* Copy to `into` the tuning points that are set in `from`, even if they are already set in `into`. */
void kl_tuning_merge(kl_tuning *into, const kl_tuning *from);

/* --- delivering results to the user --- */

/* Passes results to the user's callback, in the order that the run asks for. */
typedef struct kl_deliverer kl_deliverer;

/* Make a deliverer. reducer: the function that combines results. In a run that combines its results,
 * run->results gets the combination. */
kilter_status kl_deliverer_new(const kilter_run *run, kl_reducer reducer, kl_deliverer **deliverer,
                               kilter_error *error);
void kl_deliverer_free(kl_deliverer *deliverer);
/* Deliver the results in the list, and take over the list's memory. Error: KILTER_ERR_MEMORY */
kilter_status kl_deliver(kl_deliverer *deliverer, kl_delivery_list list, kilter_error *error);
/* Return the number of results delivered so far. */
uint64_t kl_deliverer_given(const kl_deliverer *deliverer);
/* Return the number of failed tasks. `first` gets the error of the task that failed first. */
uint64_t kl_deliverer_failed(const kl_deliverer *deliverer, char *first, size_t size);

/* Write a sentence that says how the run's tasks were dealt and how well the run was balanced. */
void kl_summary_sentence(const kl_balance *balance, const char *policy, const kilter_farm_summary *summary,
                         const kl_interval *equal, char *text, size_t size);

#endif
