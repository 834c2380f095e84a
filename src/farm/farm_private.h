/* Private to the folder farm: declarations that the files of this folder share. */
#ifndef KL_FARM_PRIVATE_H
#define KL_FARM_PRIVATE_H

#include <pthread.h>

#include "farm/farm.h"

typedef struct thread_worker { /* a worker that is a thread of this process (inproc) */
    struct kilter_farm *farm;
    kl_transport *transport;
    pthread_t thread;
    bool started;
} thread_worker;

typedef struct local_worker { /* a worker process that the master started itself */
    pid_t pid;
    bool ended;
    double started_s;
    double kill_at_s; /* time at which to kill the process if it still lives; 0: never */
    /* true: the master has lost the worker, so the worker may be replaced when its process has ended */
    bool lost;
    /* true: the master or the worker wants the process to end, so the end of the process is no failure */
    bool renewed;
    bool replacing; /* true: the process was started to replace a lost worker, and is not connected yet */
    char how[80];   /* text that says how the worker's process ended */
} local_worker;

/* A request of another process to release workers, or to record a decision. It exists while the control
 * thread waits for the answer. */
typedef struct outside_request {
    const kl_control_drain *drain; /* the workers to release; NULL: the request is not to release workers */
    const kl_decision *note;       /* the decision to record; NULL: the request is not to record a decision */
    char *answer;
    kilter_status status;
    kilter_error *error;
} outside_request;

/* A request for the number of tasks of the next run. It exists while the caller waits for the answer. */
typedef struct grain_request {
    double spent_s, work;
    kl_grain_look *look;
    kilter_status status;
} grain_request;

/* A run of an earlier master, as the record stores it: which of its tasks have results, and which tasks were
 * added to it. */
typedef struct kl_known {
    uint64_t tasks; /* number of tasks of the run so far */
    uint64_t call;  /* number of the run among the program's runs; used with --resume */
    bool reduces;   /* true: the run combines its results */
    kl_stored *rows;
    kl_span *spans; /* spans of tasks whose results are stored */
    /* count: number of spans. first: number of spans, at the beginning of the array, that have tasks with
     * which the run began. The other spans have tasks that were added later. */
    size_t count, first;
    uint64_t room;
    uint8_t *taken;               /* one bit for each task; 1: its stored result was taken */
    kl_trace_addition *additions; /* additions of tasks to this run that an earlier master recorded */
    /* addition_count: number of recorded additions; repeated: number of these additions that the present run
     * has made again */
    size_t addition_count, repeated;
} kl_known;

/* Tasks that the program adds to the current run, with copies of all data that the tasks need. */
typedef struct kl_addition {
    struct kl_addition *next;
    uint64_t count;
    const kilter_bytes *inputs; /* NULL: the tasks have no inputs */
    const double *weights;      /* NULL: each task has the mean weight */
} kl_addition;

typedef struct kl_additions {
    kl_addition *first, **end; /* a list of additions; all zero: empty */
} kl_additions;

/* Workers that the master started; local.c */
typedef struct kl_locals {
    kl_socket_dir dir;
    /* ipc endpoint of the workers' socket in `dir`; NULL: there is no such socket */
    char *socket;
    kl_supervisor *supervisor; /* the supervisor of local worker processes; NULL: there is no supervisor */
    local_worker *list;        /* [workers] the local worker processes */
    uint32_t cores_each;       /* number of cores for a local worker; 0: workers are not bound */
    uint32_t deaths;           /* number of deaths of local workers since a task was last finished */
    uint64_t finished_at_death;
    kl_inproc *hub;
    thread_worker *threads;
} kl_locals;

/* Which thread uses the farm, and which threads work for the farm; use.c */
typedef struct kl_usage {
    bool in_use;             /* true: kilter_farm_run() has been called and has not returned */
    clockid_t cpu;           /* CPU clock of the thread that called kilter_farm_run() */
    clockid_t helper_cpu[8]; /* CPU clocks of the farm's threads; only the service thread uses this array */
    uint32_t helpers;
    uint32_t searches; /* number of times that the farm has searched for its own threads */
} kl_usage;

/* The farm as `kilter tune` and `kilter drain` see it; outside.c */
typedef struct kl_outside {
    kl_control *control; /* NULL: none */
    /* settings that other processes have sent and the master has not taken over yet */
    kl_tuning tuning;
    bool look_wanted;         /* true: another process waits for the farm's state */
    outside_request *request; /* a request that the master has not handled yet */
    uint64_t shows;           /* number of times that `state` was brought up to date */
    kl_farm_state state;
    pthread_cond_t shown;
} kl_outside;

/* The caller's requests for coming runs; grain.c */
typedef struct kl_plans {
    grain_request *asked; /* the caller's request for a number of tasks, until it is answered */
    /* the chosen number of tasks, until the next run begins; decision.count = 0: no number was requested */
    kl_grain_plan grain;
    /* the program's own forecast for the next runs, until it is recorded; runs = 0: there is none */
    kl_expectation expected;
} kl_plans;

/* interrupt.c */
typedef struct kl_stop {
    bool on;                       /* true: a run is in progress and can be cancelled */
    bool cancelled;                /* true: the present run must be cancelled */
    bool interrupted;              /* true: a signal has cancelled a run, and cancels every later run */
    struct kl_interrupt *listener; /* the thread that receives signals; NULL: signals do not cancel runs */
} kl_stop;

typedef struct kl_recording { /* recording.c */
    bool decided;
    bool told; /* true: the master has been told to write to `trace` */
    kl_trace *trace;
} kl_recording;

/* Results that are being stored on disk; resume.c */
typedef struct kl_storing {
    kl_delivery_list list;
    size_t bytes;
    uint64_t tasks;
    bool held;            /* true: the master deals no chunk, because too many results wait to be stored */
    uint64_t calls;       /* with --resume: number of calls of kilter_farm_run() so far; otherwise 0 */
    uint64_t shared_hash; /* hash of the shared data that the farm has now */
} kl_storing;

/* Tasks added to the current run; grow.c */
typedef struct kl_growth {
    bool grows;          /* true: tasks may be added to the run; only the caller's thread uses this */
    bool grown;          /* true: no more tasks will be added */
    kl_additions to_add; /* additions of tasks that the master has not taken yet */
    kl_addition *added;  /* additions of tasks that the master has taken, in no fixed order */
    /* error of an addition whose tasks differ from those that an earlier master stored for this run; only the
     * caller's thread uses this member */
    kilter_error wrong;
} kl_growth;

typedef struct kl_service { /* service.c */
    bool threaded;
    bool closing;
    pthread_t thread;
} kl_service;

typedef struct kl_screen { /* progress.c */
    pthread_mutex_t lock;  /* protects all fields after it */
    kl_telling telling;
    /* began_s: time when the run began; next_s: time when the progress line is printed next */
    double began_s, next_s;
    bool terminal, drawn; /* drawn: true while the progress line is on the terminal */
} kl_screen;

/* Data that the caller's thread and the service thread exchange about a run; farm.c */
typedef struct kl_asked_run {
    const kilter_run *request;
    double spent_s; /* seconds that the caller spent between the last run and this request */
    /* what kl_busy_s() returned when the caller's thread noticed the end of the run, in seconds */
    double ended_s;
    bool gathered;            /* true: the workers for which the first run waits are connected */
    bool over;                /* true: the master has all results, or will get no more */
    bool ended;               /* true: the run is over, and the caller's thread can take its last results */
    kl_known *known;          /* tasks of the requested run whose results an earlier master stored */
    kl_delivery_list results; /* results that the caller's thread has not taken yet */
    kilter_error failure;     /* error of the run; if `broken` is true, error of the farm */
    bool broken;
    uint32_t active; /* number of active workers after the master's last turn */
    kilter_farm_summary summary;
    char decision[512]; /* text for the summary, about the last decision */
} kl_asked_run;

struct kilter_farm {
    kl_settings settings;
    kl_clock clock;
    double opened_s, opened_unix_s;
    uint32_t workers; /* number of workers that the master starts or waits for */
    uint32_t seats;   /* number of active workers in the first run; 0: all workers */
    kl_transport *transport;
    char *signals; /* folder in which peers put files as signals; NULL: none */
    kl_master *master;
    kl_locals local;
    pthread_mutex_t lock; /* protects those members below that several threads use */
    pthread_cond_t news;
    kl_usage usage;
    kl_outside outside;
    kl_plans plans;
    kl_stop stop;
    kl_storing storing;
    kl_recording record;
    kl_growth growth;
    kl_asked_run run;
    kl_service service;
    kl_screen screen;
};

static inline kl_reducer kl_farm_reducer(const kilter_farm *farm) {
    return (kl_reducer){farm->settings.options.combine, farm->settings.options.user};
}

/* In the list of files that follows, a file uses only functions of files above it. */

/* --- use.c: which thread uses the farm, and the farm's CPU time --- */

/* Measure the CPU time of the farm's threads and of callbacks. The master calls this through
 * kl_master_options. */
bool kl_farm_used(void *farm, double *farm_s, double *callbacks_s);
/* Mark the farm as used by the caller's thread, until kl_farm_end_use(). KILTER_ERR_USAGE: the farm is in
 * use already, because a callback made this call. */
kilter_status kl_farm_begin_use(kilter_farm *farm, const char *what, kilter_error *error);
void kl_farm_end_use(kilter_farm *farm);

/* --- keys.c: settings of zmq sockets --- */

/* Fill in *options for a zmq socket at `endpoint`. For a tcp endpoint, also fill in *key, and let *options
 * point to *key. */
kilter_status kl_farm_zmq_options(const kl_settings *settings, const char *endpoint, bool is_master,
                                  kl_key *key, kl_zmq_options *options, kilter_error *error);

/* --- attendant.c: a thread that answers messages while the worker does a task --- */

typedef struct kl_attendant kl_attendant;

/* Start the attending thread. Call this in the thread that serves the master. Until the attending thread is
 * stopped, only these two threads may use the worker. hears_sigterm: true if SIGTERM makes the worker
 * leave. */
kilter_status kl_attendant_start(kl_worker *worker, bool hears_sigterm, kl_attendant **attendant,
                                 kilter_error *error);
void kl_attendant_stop(kl_attendant *attendant); /* Stop the attending thread. NULL: do nothing. */

/* --- serve.c: what a worker does --- */

/* Serve the master at the other end of `transport` until the master or this worker ends. */
kilter_status kl_serve(const kl_settings *settings, kl_transport *transport, kilter_error *error);
/* Serve the master at `endpoint`. If the connection is lost, serve the new master that replaces it. */
kilter_status kl_farm_join(const kl_settings *settings, const char *endpoint, const char *binding,
                           kilter_error *error);

/* --- local.c: workers that the master starts itself --- */

/* greatest number of files that a master opens, in addition to the connections to its workers */
enum { KL_OTHER_FILES = 32 };

kilter_status kl_farm_start_processes(kilter_farm *farm, kilter_error *error);
kilter_status kl_farm_start_threads(kilter_farm *farm, kilter_error *error);
/* Handle events until each worker that the master started is ready or has failed. */
kilter_status kl_farm_wait_for_workers(kilter_farm *farm, kilter_error *error);
/* Write to `how` how the process of a lost local worker ended, if it has ended. The master calls this
 * through kl_master_options. */
void kl_farm_local_lost(void *farm, uint64_t pid, bool missed, char *how, size_t size);
/* Replace a local worker that the master ends or that ends itself. at_once: true if its process is killed
 * now; false: its process gets time to end. The master calls this through kl_master_options. */
void kl_farm_renew_local(void *farm, uint64_t pid, bool at_once);
/* Replace local workers that were lost. Return the seconds until this function must be called again;
 * HUGE_VAL: it need not be called again. */
double kl_farm_tend_local(kilter_farm *farm);
/* At the end of the farm, wait a limited time for the workers that the master started, and free their data.
 */
void kl_farm_finish_local(kilter_farm *farm);

/* --- outside.c: requests of `kilter tune` and `kilter drain` to the farm --- */

void kl_farm_open_control(kilter_farm *farm);
void kl_farm_close_control(kilter_farm *farm);
/* Carry out a request of another process. Call this with the lock held. */
void kl_farm_take_request(kilter_farm *farm);
/* Pass the farm's state to the threads that wait for it. Call this with the lock held. */
void kl_farm_show_state(kilter_farm *farm, bool run_ended);

/* --- grain.c: the number of tasks of a run --- */

/* Answer the caller's request for a number of tasks. Call this with the lock held. */
void kl_farm_answer_grain(kilter_farm *farm);

/* --- interrupt.c: cancelling a run, by kilter_farm_cancel(), Ctrl-C or SIGTERM --- */

void kl_farm_set_on(kilter_farm *farm, bool on); /* Allow runs to be cancelled from now on, or forbid it. */
/* Let signals cancel runs. If memory runs out or no thread can be started, signals keep their usual effect.
 */
void kl_farm_open_interrupt(kilter_farm *farm);
void kl_farm_close_interrupt(kilter_farm *farm);
/* Write to `text` the end of the error message of a run that a signal cancelled: how to keep results, or how
 * to continue. If no signal cancelled a run, write "". */
void kl_farm_say_interrupt(kilter_farm *farm, char *text, size_t size);

/* --- resume.c: results that are kept when the master dies --- */

/* Open the record that --resume names. Error: KILTER_ERR_RECORD */
kilter_status kl_farm_open_stored(kilter_farm *farm, const kl_trace_run_row *row, kl_trace **trace,
                                  kilter_error *error);
/* Look up the stored results of the run that begins. Without --resume there are none. KILTER_ERR_USAGE: the
 * stored results belong to another run. KILTER_ERR_RECORD: the record cannot be used. */
kilter_status kl_farm_look_up(kilter_farm *farm, const kilter_run *run, kl_known *known, kilter_error *error);
/* Return whether results are stored for all `tasks` tasks with which the run begins. */
bool kl_known_all(const kl_known *known, uint64_t tasks);
kilter_status kl_known_deliver(kl_known *known, kl_deliverer *deliverer, kilter_error *error);
void kl_known_free(kl_known *known);
/* Take over the results that the master has received. With --resume, they wait until they are stored. Call
 * this with the lock held. */
kilter_status kl_farm_take_results(kilter_farm *farm, kl_delivery_list *list, kilter_error *error);
/* Note that the master has all results of the run, or will get no more. Call this with the lock held. */
void kl_farm_note_over(kilter_farm *farm);
/* Return whether the master must not deal chunks now, because too many results wait to be stored. Call this
 * with the lock held. */
bool kl_storing_holds(kl_storing *storing);

/* Note that tasks are added to the run, from task known->tasks on. KILTER_ERR_USAGE: an earlier master added
 * other tasks at this point. */
kilter_status kl_farm_note_addition(kilter_farm *farm, const kl_addition *addition, kilter_error *error);

/* --- recording.c: the farm's run record --- */

kilter_status kl_farm_check_record(const char *path, kilter_error *error);
kilter_status kl_farm_check_resume(const char *path, kilter_error *error);
/* Start the record at the first run, so that a farm without a run leaves no file. A failure is an error only
 * if the program asked for the record. */
kilter_status kl_farm_start_record(kilter_farm *farm, kilter_error *error);

/* --- grow.c: tasks that are added to a run --- */

/* The caller's thread has taken results. Check whether it can still add tasks to the run. */
void kl_farm_note_growth(kilter_farm *farm, bool all_taken);
/* Return the added tasks that the master has not taken yet. *last: true if no more will be added. Call this
 * with the lock held, after the run has begun. */
kl_additions kl_farm_take_additions(kilter_farm *farm, bool *last);
/* Give the added tasks to the master. */
kilter_status kl_farm_grow(kilter_farm *farm, kl_additions *additions, bool last, kilter_error *error);
void kl_farm_free_additions(kilter_farm *farm); /* Free the added tasks of a run that is over. */

/* --- progress.c: the progress line --- */

void kl_farm_begin_progress(kilter_farm *farm); /* Start the time of the progress line for a new run. */
/* Return the seconds until the progress line must be shown next; −1: it is not shown. */
double kl_farm_progress_due_s(kilter_farm *farm);
/* Show the progress line if it is time. running = false: remove it. */
void kl_farm_show_progress(kilter_farm *farm, bool running);

/* --- service.c: the thread that handles the master's events --- */

/* Start the service thread, if the transport allows one. */
kilter_status kl_farm_start_service(kilter_farm *farm, kilter_error *error);
void kl_farm_end_service(kilter_farm *farm);
/* Handle one event and the requests of other threads. run_is_on: true if the wait for the event also ends
 * when the progress line is due. */
void kl_farm_turn(kilter_farm *farm, bool run_is_on);

/* --- the public functions with the structs of this version of Kilter; sized.c calls them --- */

kilter_status kl_farm_open(const kilter_farm_options *options, int *argc, char **argv, kilter_farm **farm,
                           kilter_error *error);
kilter_status kl_farm_run(kilter_farm *farm, const kilter_run *run, kilter_error *error);
void kl_farm_summary_get(const kilter_farm *farm, kilter_farm_summary *summary);
kilter_status kl_farm_grain(kilter_farm *farm, const kilter_grain_options *options, kilter_grain *grain,
                            kilter_error *error);
kilter_status kl_farm_program(kilter_farm *farm, kilter_program *program, kilter_error *error);
kilter_status kl_farm_expect(kilter_farm *farm, const kilter_expectation *expectation, kilter_error *error);

#endif
