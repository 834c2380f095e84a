/* Private to room farm: what its parts share. */
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
    double kill_at_s; /* when to kill the process, which still lives; 0: do not */
    bool lost;        /* the master was told that it ended, and has lost it */
    bool renewed;     /* it ended because master or worker wished so, which is no failure */
    bool replacing;   /* started to replace a lost worker; not connected yet */
    char how[80];     /* how the process ended */
} local_worker;

typedef struct drain_request { /* exists while a caller waits for the answer */
    const kl_control_drain *drain;
    char *answer;
    kilter_status status;
    kilter_error *error;
} drain_request;

typedef struct grain_request { /* exists while a caller waits for the answer */
    double spent_s, work;
    kl_grain_look *look;
    kilter_status status;
} grain_request;

typedef struct kl_known { /* the tasks of a run whose results earlier masters have stored */
    uint64_t tasks;       /* tasks of the run so far */
    uint64_t call;        /* number of the run, with --resume */
    kl_stored *rows;
    kl_span *spans;      /* spans of tasks with stored results */
    size_t count, first; /* number of spans; first: number of those in the run's first tasks */
    uint64_t room;
    uint8_t *taken;                  /* a bit for each task whose result was taken */
    kl_trace_addition *additions;    /* additions that an earlier master recorded, */
    size_t addition_count, repeated; /* their number, and how many of them were made again */
} kl_known;

typedef struct kl_addition { /* tasks added to the current run, with all they need */
    struct kl_addition *next;
    uint64_t count;
    const kilter_bytes *inputs; /* NULL: the tasks have no inputs */
    const double *weights;      /* NULL: each task has the mean weight */
} kl_addition;

typedef struct kl_additions {
    kl_addition *first, **end; /* all zero: empty */
} kl_additions;

/* Workers that the master started; local.c */
typedef struct kl_locals {
    kl_socket_dir dir;
    char *socket;              /* path of the socket in socket_dir; NULL: none */
    kl_supervisor *supervisor; /* NULL: no local worker processes */
    local_worker *list;        /* one for each of the farm's workers */
    uint32_t cores_each;       /* cores of a local worker; 0: workers are not bound */
    uint32_t deaths;           /* deaths of local workers since a task was last finished */
    uint64_t finished_at_death;
    kl_inproc *hub;
    thread_worker *threads;
} kl_locals;

/* The user of the farm, and the threads that work for it; use.c */
typedef struct kl_usage {
    bool in_use;             /* kilter_farm_run() has been called and has not returned */
    clockid_t cpu;           /* CPU clock of the thread that called it */
    clockid_t helper_cpu[8]; /* CPU clocks of the farm's threads; only the service thread uses them */
    uint32_t helpers;
} kl_usage;

/* `kilter tune` and `kilter drain`; outside.c */
typedef struct kl_outside {
    kl_control *control;  /* NULL: none */
    kl_tuning tuning;     /* settings from outside that the master has not taken yet */
    bool look_wanted;     /* a look was asked for from outside */
    drain_request *drain; /* a drain that the master has not taken yet */
    uint64_t shows;       /* number of times that `state` was renewed */
    kl_farm_state state;
    pthread_cond_t shown;
} kl_outside;

/* The caller's requests about coming runs; grain.c */
typedef struct kl_plans {
    grain_request *asked; /* the caller's request, not answered yet */
    kl_grain_plan grain;  /* the answer, for the next run; tasks = 0: no request */
    kl_expectation
        expected; /* what the program expects of coming runs, not recorded yet; runs = 0: nothing */
} kl_plans;

/* interrupt.c */
typedef struct kl_stop {
    bool on;                       /* a run is on and can be cancelled */
    bool cancelled;                /* the run is to be cancelled */
    bool interrupted;              /* by a signal: this run and each later one is cancelled */
    struct kl_interrupt *listener; /* NULL: signals do not cancel runs */
} kl_stop;

typedef struct kl_recording { /* recording.c */
    bool decided;
    bool told; /* the master has the trace */
    kl_trace *trace;
} kl_recording;

/* Results that are being stored; resume.c */
typedef struct kl_storing {
    kl_delivery_list list;
    size_t bytes;
    uint64_t tasks;
    bool held;            /* no chunk is dealt: too many results wait to be stored */
    uint64_t calls;       /* number of calls of kilter_farm_run(), with --resume */
    uint64_t shared_hash; /* hash of the shared data in force */
} kl_storing;

/* Tasks added to the current run; grow.c */
typedef struct kl_growth {
    bool grows;          /* the run may grow; the caller's thread uses it */
    bool grown;          /* no more tasks will be added */
    kl_additions to_add; /* additions by the caller */
    kl_addition *added;  /* additions that the master has, in any order */
    kilter_error wrong;  /* why the run grows differently than before; the caller's thread uses it */
} kl_growth;

typedef struct kl_service { /* service.c */
    bool threaded;
    bool closing;
    pthread_t thread;
    double progress_at_s;
} kl_service;

/* A run as caller's thread and service hand it over; farm.c */
typedef struct kl_asked_run {
    const kilter_run *request;
    double spent_s;           /* seconds of the caller between runs, before this request */
    double ended_s;           /* busy time of the caller's thread when it noticed a run's end */
    bool gathered;            /* the workers that the first run waits for are connected */
    bool over;                /* the master has all results, or will get no more */
    bool ended;               /* and so has the caller */
    kl_known *known;          /* stored results of the requested run */
    kl_delivery_list results; /* results for the caller */
    kilter_error failure;     /* error of the run or, permanently, of the farm */
    bool broken;
    kilter_farm_summary summary;
    char decision[512]; /* for the summary */
} kl_asked_run;

struct kilter_farm {
    kl_settings settings;
    kl_clock clock;
    double opened_s, opened_unix_s;
    uint32_t workers; /* number of workers started or waited for */
    uint32_t seats;   /* workers in the first run; 0: all */
    kl_transport *transport;
    kl_master *master;
    kl_locals local;
    pthread_mutex_t lock; /* guards what threads share in the parts below */
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
};

/* A file uses only files that stand above it here. */

/* --- use.c: use of the farm, and its CPU time --- */

/* Measure the CPU time of the farm's threads and of callbacks; for kl_master_options. */
bool kl_farm_used(void *farm, double *farm_s, double *callbacks_s);
/* Begin to use the farm in the caller's thread, until kl_farm_end_use(). KILTER_ERR_USAGE: it is in use, by a
 * callback. */
kilter_status kl_farm_begin_use(kilter_farm *farm, const char *what, kilter_error *error);
void kl_farm_end_use(kilter_farm *farm);

/* --- keys.c: settings of zmq sockets --- */

/* Fill *options for a socket at `endpoint`. A tcp endpoint also fills *key, which *options then points to. */
kilter_status kl_farm_zmq_options(const kl_settings *settings, const char *endpoint, bool is_master,
                                  kl_key *key, kl_zmq_options *options, kilter_error *error);

/* --- attendant.c: answers messages while the worker does a task --- */

typedef struct kl_attendant kl_attendant;

/* Start the attendant from the thread that serves. Until it is stopped, only that thread uses the worker.
 * With hears_sigterm, SIGTERM makes the worker leave. */
kilter_status kl_attendant_start(kl_worker *worker, bool hears_sigterm, kl_attendant **attendant,
                                 kilter_error *error);
void kl_attendant_stop(kl_attendant *attendant); /* NULL does nothing */

/* --- serve.c: being a worker --- */

/* Serve the master at the other end of `transport` until one of them ends. */
kilter_status kl_serve(const kl_settings *settings, kl_transport *transport, kilter_error *error);
/* Serve the master at `endpoint`. When it is lost, serve the master that replaces it. */
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
/* A local worker was lost: write into `how` how it ended, if it has. For kl_master_options. */
void kl_farm_local_lost(void *farm, uint64_t pid, bool missed, char *how, size_t size);
/* The master ends a local worker, or the worker ends itself; replace it. For kl_master_options. */
void kl_farm_renew_local(void *farm, uint64_t pid, bool at_once);
/* Replace lost local workers. Return the most seconds that the next turn may take because of them. */
double kl_farm_tend_local(kilter_farm *farm);
/* On closing the farm, wait a bounded time for the workers started here, and free their data. */
void kl_farm_finish_local(kilter_farm *farm);

/* --- outside.c: the farm as `kilter tune` and `kilter drain` reach it --- */

void kl_farm_open_control(kilter_farm *farm);
void kl_farm_close_control(kilter_farm *farm);
void kl_farm_take_drain(kilter_farm *farm); /* Do the requested drain. Call it with the lock held. */
void kl_farm_show_state(
    kilter_farm *farm,
    bool run_ended); /* Give the state to those who wait for it. Call it with the lock held. */

/* --- grain.c: the number of tasks --- */

void kl_farm_answer_grain(kilter_farm *farm); /* Answer the request. Call it with the lock held. */

/* --- interrupt.c: what ends a run early: kilter_farm_cancel(), Ctrl-C and SIGTERM --- */

void kl_farm_set_on(kilter_farm *farm, bool on); /* From now on a run can, or cannot, be cancelled. */
void kl_farm_open_interrupt(
    kilter_farm *farm); /* Without memory or a thread for it, signals keep their effect. */
void kl_farm_close_interrupt(kilter_farm *farm);
/* Write what the message of a cancelled run says besides; "": nothing. */
void kl_farm_say_interrupt(kilter_farm *farm, char *text, size_t size);

/* --- resume.c: results that survive the master --- */

/* Open the record of --resume. KILTER_ERR_RECORD. */
kilter_status kl_farm_open_stored(kilter_farm *farm, const kl_trace_run_row *row, kl_trace **trace,
                                  kilter_error *error);
/* Look up the stored results of the run that begins; without --resume there are none. KILTER_ERR_USAGE: they
 * belong to another run; _RECORD, _MEMORY. */
kilter_status kl_farm_look_up(kilter_farm *farm, const kilter_run *run, kl_known *known, kilter_error *error);
bool kl_known_all(const kl_known *known,
                  uint64_t tasks); /* Are the results of all tasks that the run begins with stored? */
kilter_status kl_known_deliver(kl_known *known, kl_deliverer *deliverer, kilter_error *error);
void kl_known_free(kl_known *known);
/* Take over the master's results; some wait until they are stored. Call it with the lock held. */
kilter_status kl_farm_take_results(kilter_farm *farm, kl_delivery_list *list, kilter_error *error);
void kl_farm_note_over(
    kilter_farm *farm); /* The master's part of a run is over. Call it with the lock held. */
bool kl_storing_holds(kl_storing *storing); /* do too many results wait for dealing? Needs the lock */

/* Tasks are added to the run, from task known->tasks on. KILTER_ERR_USAGE: an earlier master added others. */
kilter_status kl_farm_note_addition(kilter_farm *farm, const kl_addition *addition, kilter_error *error);

/* --- recording.c: the farm's run record --- */

kilter_status kl_farm_check_record(const char *path, kilter_error *error);
kilter_status kl_farm_check_resume(const char *path, kilter_error *error);
/* Start the record at the first run, so that a farm without a run leaves no file. A failure counts only if
 * the program asked for the record. */
kilter_status kl_farm_start_record(kilter_farm *farm, kilter_error *error);

/* --- grow.c: tasks that are added to a run --- */

/* The caller's thread has taken results: note whether the run will grow further. */
void kl_farm_note_growth(kilter_farm *farm, bool all_taken);
/* Return the additions that the master does not have yet; *last: there will be no more. Call it with the lock
 * held, after the run has begun. */
kl_additions kl_farm_take_additions(kilter_farm *farm, bool *last);
/* Give the additions to the master. */
kilter_status kl_farm_grow(kilter_farm *farm, kl_additions *additions, bool last, kilter_error *error);
void kl_farm_free_additions(kilter_farm *farm); /* Free the additions of a run that is over. */

/* --- service.c: the master's events --- */

/* Start the service thread, if the transport allows one. */
kilter_status kl_farm_start_service(kilter_farm *farm, kilter_error *error);
void kl_farm_end_service(kilter_farm *farm);
/* Handle one event and the requests of other threads. run_is_on: wake up for the progress line. */
void kl_farm_turn(kilter_farm *farm, bool run_is_on);

/* --- public calls for sized.c, with the structs of this version --- */

kilter_status kl_farm_open(const kilter_farm_options *options, int *argc, char **argv, kilter_farm **farm,
                           kilter_error *error);
kilter_status kl_farm_run(kilter_farm *farm, const kilter_run *run, kilter_error *error);
void kl_farm_summary_get(const kilter_farm *farm, kilter_farm_summary *summary);
kilter_status kl_farm_grain(kilter_farm *farm, const kilter_grain_options *options, kilter_grain *grain,
                            kilter_error *error);
kilter_status kl_farm_program(kilter_farm *farm, kilter_program *program, kilter_error *error);
kilter_status kl_farm_expect(kilter_farm *farm, const kilter_expectation *expectation, kilter_error *error);

#endif
