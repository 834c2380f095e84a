/* Private to the folder farm: declarations that its files share. */
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

typedef struct local_worker { /* a worker process that this process started */
    pid_t pid;
    bool ended;
    double started_s;
    double kill_at_s; /* time at which to kill the process if it still lives; 0: never */
    bool lost;      /* true: the master was told that the process has ended, and counts the worker as lost */
    bool renewed;   /* true: the master or the worker wants the process to end, so its end is no failure */
    bool replacing; /* true: the process was started to replace a lost worker, and is not connected yet */
    char how[80];   /* how the process ended */
} local_worker;

typedef struct outside_request { /* A request for the state; it exists while a caller waits for the answer. */
    const kl_control_drain *drain; /* workers to drain; NULL: none */
    const kl_decision *note;       /* a decision to record; NULL: none */
    char *answer;
    kilter_status status;
    kilter_error *error;
} outside_request;

/* A request for the number of tasks; it exists while a caller waits for the answer. */
typedef struct grain_request {
    double spent_s, work;
    kl_grain_look *look;
    kilter_status status;
} grain_request;

typedef struct kl_known { /* the tasks of a run whose results earlier masters have stored */
    uint64_t tasks;       /* number of tasks of the run so far */
    uint64_t call;        /* number of the run, with --resume */
    bool reduces;         /* true: the run combines its results */
    kl_stored *rows;
    kl_span *spans; /* spans of tasks with stored results */
    /* count: number of spans; first: number of those spans that are within the tasks with which the run
     * begins */
    size_t count, first;
    uint64_t room;
    uint8_t *taken;                  /* a bit for each task whose result was taken */
    kl_trace_addition *additions;    /* additions of tasks that an earlier master recorded */
    size_t addition_count, repeated; /* number of these additions; how many of them this run has repeated */
} kl_known;

typedef struct kl_addition { /* Tasks that are added to the current run, with all data that they need. */
    struct kl_addition *next;
    uint64_t count;
    const kilter_bytes *inputs; /* NULL: the tasks have no inputs */
    const double *weights;      /* NULL: each task has the mean weight */
} kl_addition;

typedef struct kl_additions {
    kl_addition *first, **end; /* A list of additions. All zero: empty. */
} kl_additions;

/* Workers that the master started; local.c */
typedef struct kl_locals {
    kl_socket_dir dir;
    char *socket;              /* path of the socket in `dir`; NULL: none */
    kl_supervisor *supervisor; /* the supervisor of local worker processes; NULL: there are none */
    local_worker *list;        /* one entry for each of the farm's workers */
    uint32_t cores_each;       /* number of cores for a local worker; 0: workers are not bound */
    uint32_t deaths;           /* number of deaths of local workers since a task was last finished */
    uint64_t finished_at_death;
    kl_inproc *hub;
    thread_worker *threads;
} kl_locals;

/* The user of the farm, and the threads that work for it; use.c */
typedef struct kl_usage {
    bool in_use;             /* true: kilter_farm_run() has been called and has not returned */
    clockid_t cpu;           /* CPU clock of the thread that called kilter_farm_run() */
    clockid_t helper_cpu[8]; /* CPU clocks of the farm's threads; only the service thread uses them */
    uint32_t helpers;
} kl_usage;

/* The farm as `kilter tune` and `kilter drain` see it; outside.c */
typedef struct kl_outside {
    kl_control *control;      /* NULL: none */
    kl_tuning tuning;         /* settings from other processes that the master has not taken over yet */
    bool look_wanted;         /* true: another process has asked for the state */
    outside_request *request; /* the request that the master has not handled yet */
    uint64_t shows;           /* number of times that `state` was renewed */
    kl_farm_state state;
    pthread_cond_t shown;
} kl_outside;

/* The caller's requests about coming runs; grain.c */
typedef struct kl_plans {
    grain_request *asked; /* the caller's request that has no answer yet */
    kl_grain_plan grain;  /* the answer, for the next run; tasks = 0: there was no request */
    kl_expectation
        expected; /* the program's forecast for the next runs, until it is recorded; runs = 0: none */
} kl_plans;

/* interrupt.c */
typedef struct kl_stop {
    bool on;                       /* true: a run is in progress and can be cancelled */
    bool cancelled;                /* true: the run must be cancelled */
    bool interrupted;              /* true: a signal has cancelled this run, and cancels each later one */
    struct kl_interrupt *listener; /* the thread that receives signals; NULL: signals do not cancel runs */
} kl_stop;

typedef struct kl_recording { /* recording.c */
    bool decided;
    bool told; /* true: the master writes to the trace */
    kl_trace *trace;
} kl_recording;

/* The storing of results; resume.c */
typedef struct kl_storing {
    kl_delivery_list list;
    size_t bytes;
    uint64_t tasks;
    bool held;            /* true: no chunk is dealt, because too many results wait to be stored */
    uint64_t calls;       /* number of calls of kilter_farm_run() so far, with --resume */
    uint64_t shared_hash; /* hash of the present shared data */
} kl_storing;

/* Tasks added to the current run; grow.c */
typedef struct kl_growth {
    bool grows;          /* true: the run may grow; only the caller's thread uses this */
    bool grown;          /* true: no more tasks will be added */
    kl_additions to_add; /* additions that the master does not have yet */
    kl_addition *added;  /* additions that the master has, in no fixed order */
    /* error of a run whose additions differ from those of the stored run; only the caller's thread uses
     * this */
    kilter_error wrong;
} kl_growth;

typedef struct kl_service { /* service.c */
    bool threaded;
    bool closing;
    pthread_t thread;
} kl_service;

typedef struct kl_screen { /* progress.c */
    pthread_mutex_t lock;  /* lock for all fields below */
    kl_telling telling;
    double began_s, next_s; /* time when the run began, and time of the next line */
    bool terminal, drawn;   /* drawn: the line is on the terminal */
} kl_screen;

/* Data of a run that the caller's thread and the service thread exchange; farm.c */
typedef struct kl_asked_run {
    const kilter_run *request;
    double spent_s;           /* seconds that the caller spent between two runs before this request */
    double ended_s;           /* busy seconds of the caller's thread when it noticed a run's end */
    bool gathered;            /* true: the workers for which the first run waits are connected */
    bool over;                /* true: the master has all results, or will get no more */
    bool ended;               /* true: the caller's thread can take the last results, too */
    kl_known *known;          /* results of the requested run that an earlier master stored */
    kl_delivery_list results; /* results that the caller has not taken yet */
    kilter_error failure;     /* the error of the run; if `broken`, the error of the farm */
    bool broken;
    kilter_farm_summary summary;
    char decision[512]; /* figures for the summary */
} kl_asked_run;

struct kilter_farm {
    kl_settings settings;
    kl_clock clock;
    double opened_s, opened_unix_s;
    uint32_t workers; /* number of workers that are being started or waited for */
    uint32_t seats;   /* number of active workers in the first run; 0: all */
    kl_transport *transport;
    char *signals; /* folder for the signals of peers; NULL: none */
    kl_master *master;
    kl_locals local;
    pthread_mutex_t lock; /* lock for data in the parts below that several threads use */
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

/* A file uses only functions of the files listed above it here. */

/* --- use.c: use of the farm, and its CPU time --- */

/* Measure the CPU time of the farm's threads and of callbacks. A function of kl_master_options. */
bool kl_farm_used(void *farm, double *farm_s, double *callbacks_s);
/* Mark the farm as used by the caller's thread, until kl_farm_end_use(). KILTER_ERR_USAGE: the farm is in
 * use already, because a callback made this call. */
kilter_status kl_farm_begin_use(kilter_farm *farm, const char *what, kilter_error *error);
void kl_farm_end_use(kilter_farm *farm);

/* --- keys.c: settings of zmq sockets --- */

/* Fill in *options for a socket at `endpoint`. For a tcp endpoint also fill in *key, to which *options
 * then points. */
kilter_status kl_farm_zmq_options(const kl_settings *settings, const char *endpoint, bool is_master,
                                  kl_key *key, kl_zmq_options *options, kilter_error *error);

/* --- attendant.c: answers messages while the worker does a task --- */

typedef struct kl_attendant kl_attendant;

/* Start the attending thread, from the thread that serves the master. Until it is stopped, only that
 * thread may use the worker. hears_sigterm: SIGTERM makes the worker leave. */
kilter_status kl_attendant_start(kl_worker *worker, bool hears_sigterm, kl_attendant **attendant,
                                 kilter_error *error);
void kl_attendant_stop(kl_attendant *attendant); /* Stop the attending thread. NULL: do nothing. */

/* --- serve.c: being a worker --- */

/* Serve the master at the other end of `transport` until one of them ends. */
kilter_status kl_serve(const kl_settings *settings, kl_transport *transport, kilter_error *error);
/* Serve the master at `endpoint`. If the connection is lost, serve the master that replaces it. */
kilter_status kl_farm_join(const kl_settings *settings, const char *endpoint, const char *binding,
                           kilter_error *error);

/* --- local.c: workers that the master starts itself --- */

enum {
    KL_OTHER_FILES = 32
}; /* greatest number of files that a master opens, apart from workers' connections */

kilter_status kl_farm_start_processes(kilter_farm *farm, kilter_error *error);
kilter_status kl_farm_start_threads(kilter_farm *farm, kilter_error *error);
/* Handle events until each worker started here is ready or has failed. */
kilter_status kl_farm_wait_for_workers(kilter_farm *farm, kilter_error *error);
/* Write to `how` how the lost local worker ended, if its process has ended. A function of
 * kl_master_options. */
void kl_farm_local_lost(void *farm, uint64_t pid, bool missed, char *how, size_t size);
/* Replace a local worker that the master ends or that ends itself. A function of kl_master_options. */
void kl_farm_renew_local(void *farm, uint64_t pid, bool at_once);
/* Replace lost local workers. Return the seconds until the next call is due; HUGE_VAL: no call is needed. */
double kl_farm_tend_local(kilter_farm *farm);
/* When the farm is closed, wait a limited time for the workers started here, and free their data. */
void kl_farm_finish_local(kilter_farm *farm);

/* --- outside.c: what `kilter tune` and `kilter drain` ask of the farm --- */

void kl_farm_open_control(kilter_farm *farm);
void kl_farm_close_control(kilter_farm *farm);
void kl_farm_take_request(kilter_farm *farm); /* Carry out a request. Call this with the lock held. */
void kl_farm_show_state(
    kilter_farm *farm,
    bool run_ended); /* Pass the state to the callers that wait for it. Call this with the lock held. */

/* --- grain.c: the number of tasks --- */

/* Answer the request for a number of tasks. Call this with the lock held. */
void kl_farm_answer_grain(kilter_farm *farm);

/* --- interrupt.c: kilter_farm_cancel(), Ctrl-C and SIGTERM end a run early --- */

void kl_farm_set_on(kilter_farm *farm, bool on); /* Allow runs to be cancelled from now on, or forbid it. */
/* Let signals cancel runs. If there is no memory or no thread for this, signals keep their usual effect. */
void kl_farm_open_interrupt(kilter_farm *farm);
void kl_farm_close_interrupt(kilter_farm *farm);
/* Write the end of the message about a cancelled run: how to keep its results, or how to continue; "":
 * nothing to add. */
void kl_farm_say_interrupt(kilter_farm *farm, char *text, size_t size);

/* --- resume.c: results that survive the master --- */

/* Open the record of --resume. KILTER_ERR_RECORD. */
kilter_status kl_farm_open_stored(kilter_farm *farm, const kl_trace_run_row *row, kl_trace **trace,
                                  kilter_error *error);
/* Look up the stored results of the run that begins; without --resume there are none. KILTER_ERR_USAGE: they
 * belong to another run. Also KILTER_ERR_RECORD, KILTER_ERR_MEMORY. */
kilter_status kl_farm_look_up(kilter_farm *farm, const kilter_run *run, kl_known *known, kilter_error *error);
/* Return whether the results of all tasks that the run begins with are stored. */
bool kl_known_all(const kl_known *known, uint64_t tasks);
kilter_status kl_known_deliver(kl_known *known, kl_deliverer *deliverer, kilter_error *error);
void kl_known_free(kl_known *known);
/* Take over the master's results; some wait until they are stored. Call this with the lock held. */
kilter_status kl_farm_take_results(kilter_farm *farm, kl_delivery_list *list, kilter_error *error);
void kl_farm_note_over(
    kilter_farm *farm); /* Handle that the master's part of a run is over. Call this with the lock held. */
/* Return whether dealing must stop because too many results wait to be stored. Call this with the lock held.
 */
bool kl_storing_holds(kl_storing *storing);

/* Handle that tasks are added to the run, from task known->tasks on. KILTER_ERR_USAGE: an earlier master
 * added other tasks. */
kilter_status kl_farm_note_addition(kilter_farm *farm, const kl_addition *addition, kilter_error *error);

/* --- recording.c: the farm's run record --- */

kilter_status kl_farm_check_record(const char *path, kilter_error *error);
kilter_status kl_farm_check_resume(const char *path, kilter_error *error);
/* Start the record at the first run, so that a farm without a run leaves no file. A failure counts only if
 * the program asked for the record. */
kilter_status kl_farm_start_record(kilter_farm *farm, kilter_error *error);

/* --- grow.c: tasks that are added to a run --- */

/* Check whether the run will grow further, now that the caller's thread has taken results. */
void kl_farm_note_growth(kilter_farm *farm, bool all_taken);
/* Return the additions that the master does not have yet. *last: there will be no more. Call this with the
 * lock held, after the run has begun. */
kl_additions kl_farm_take_additions(kilter_farm *farm, bool *last);
/* Give the additions to the master. */
kilter_status kl_farm_grow(kilter_farm *farm, kl_additions *additions, bool last, kilter_error *error);
void kl_farm_free_additions(kilter_farm *farm); /* Free the additions of a run that is over. */

/* --- progress.c: the progress line --- */

void kl_farm_begin_progress(kilter_farm *farm); /* A run begins. */
/* Return the seconds until the next line; −1: there is none. */
double kl_farm_progress_due_s(kilter_farm *farm);
/* Show the line if it is due; running = false: remove it. */
void kl_farm_show_progress(kilter_farm *farm, bool running);

/* --- service.c: the master's events --- */

/* Start the service thread, if the transport allows one. */
kilter_status kl_farm_start_service(kilter_farm *farm, kilter_error *error);
void kl_farm_end_service(kilter_farm *farm);
/* Handle one event, and the requests of other threads. run_is_on: wake up also to print the progress line. */
void kl_farm_turn(kilter_farm *farm, bool run_is_on);

/* --- public functions for sized.c, with the structs of this version --- */

kilter_status kl_farm_open(const kilter_farm_options *options, int *argc, char **argv, kilter_farm **farm,
                           kilter_error *error);
kilter_status kl_farm_run(kilter_farm *farm, const kilter_run *run, kilter_error *error);
void kl_farm_summary_get(const kilter_farm *farm, kilter_farm_summary *summary);
kilter_status kl_farm_grain(kilter_farm *farm, const kilter_grain_options *options, kilter_grain *grain,
                            kilter_error *error);
kilter_status kl_farm_program(kilter_farm *farm, kilter_program *program, kilter_error *error);
kilter_status kl_farm_expect(kilter_farm *farm, const kilter_expectation *expectation, kilter_error *error);

#endif
