/* Inside of the public farm: what its parts share. Nobody else includes this. */
#ifndef KL_FARM_PRIVATE_H
#define KL_FARM_PRIVATE_H

#include <pthread.h>

#include "farm/farm.h"

typedef struct thread_worker { /* a worker that is a thread (inproc) */
    struct kilter_farm *farm;
    kl_transport *transport;
    pthread_t thread;
    bool started;
} thread_worker;

typedef struct local_worker { /* a worker that is a process started from here */
    pid_t pid;
    bool ended;
    double started_s;
    double kill_at_s; /* it lives, and is to be killed then; 0: it is not */
    bool lost;        /* the master was told, and misses it */
    bool renewed;     /* as its master or it wished, and so no sign of anything */
    bool replacing;   /* started in the place of a lost one, and not seen by the master yet */
    char how[80];     /* it ended */
} local_worker;

typedef struct drain_request { /* lives as long as somebody waits for it */
    const kl_control_drain *drain;
    char *answer;
    kilter_status status;
    kilter_error *error;
} drain_request;

typedef struct grain_request { /* lives as long as somebody waits for it */
    double spent_s, work;
    kl_grain_look *look;
    kilter_status status;
} grain_request;

typedef struct kl_known { /* a run's tasks, and what earlier masters have stored of them */
    uint64_t tasks;       /* so far */
    uint64_t call;        /* its number, with --resume */
    kl_stored *rows;
    kl_span *spans;      /* of tasks */
    size_t count, first; /* first: of them in the tasks the run begins with */
    uint64_t room;
    uint8_t *taken;                  /* a bit for each task */
    kl_trace_addition *additions;    /* that were made then, */
    size_t addition_count, repeated; /* and how many have been made again */
} kl_known;

typedef struct kl_addition { /* tasks added to the run that is on, with all they need */
    struct kl_addition *next;
    uint64_t count;
    const kilter_bytes *inputs; /* NULL: they have none */
    const double *weights;      /* NULL: each counts as the mean */
} kl_addition;

typedef struct kl_additions {
    kl_addition *first, **end; /* zeroed is empty */
} kl_additions;

/* The workers that the master started itself; local.c */
typedef struct kl_locals {
    kl_socket_dir dir;
    char *socket;              /* in it; NULL: none */
    kl_supervisor *supervisor; /* NULL: no local processes */
    local_worker *list;        /* as many as the farm has workers */
    uint32_t cores_each;       /* of a local worker; 0: they are not bound */
    uint32_t deaths;           /* of local workers, in a row, without a task finished in between */
    uint64_t finished_at_death;
    kl_inproc *hub;
    thread_worker *threads;
} kl_locals;

/* The user of the farm, and the threads that work for it; use.c */
typedef struct kl_usage {
    bool in_use;             /* a kilter_farm_run() has not returned */
    clockid_t cpu;           /* of the thread that called it */
    clockid_t helper_cpu[8]; /* of threads that work for the farm; the service thread's to use */
    uint32_t helpers;
} kl_usage;

/* `kilter tune` and `kilter drain`; outside.c */
typedef struct kl_outside {
    kl_control *control;  /* NULL: none */
    kl_tuning tuning;     /* set from outside, not taken yet */
    bool look_wanted;     /* from outside */
    drain_request *drain; /* likewise, not taken yet */
    uint64_t shows;       /* how often `state` was renewed */
    kl_farm_state state;
    pthread_cond_t shown;
} kl_outside;

/* The caller's questions and words about the coming runs; grain.c */
typedef struct kl_plans {
    grain_request *asked;    /* by the caller's thread, not answered yet */
    kl_grain_plan grain;     /* answered, for the next run; tasks = 0: nobody asked */
    kl_expectation expected; /* of the coming runs, not recorded yet; runs = 0: nothing */
} kl_plans;

/* interrupt.c */
typedef struct kl_stop {
    bool on;                       /* a run is: it can be cancelled */
    bool cancelled;                /* it is to be */
    bool interrupted;              /* by a signal: each run is, from now on */
    struct kl_interrupt *listener; /* NULL: signals are not heard */
} kl_stop;

typedef struct kl_recording { /* recording.c */
    bool decided;
    bool told; /* the master knows of the trace */
    kl_trace *trace;
} kl_recording;

/* Results on their way to the disk; resume.c */
typedef struct kl_storing {
    kl_delivery_list list;
    size_t bytes;
    uint64_t tasks;
    bool held;            /* so many that nothing is dealt */
    uint64_t calls;       /* of kilter_farm_run(), with --resume */
    uint64_t shared_hash; /* of the shared data in force */
} kl_storing;

/* Tasks that are added to the run that is on; grow.c */
typedef struct kl_growth {
    bool grows;          /* it may; the caller's */
    bool grown;          /* nothing more will be added */
    kl_additions to_add; /* by the caller */
    kl_addition *added;  /* what the master has of them, in any order */
    kilter_error wrong;  /* why the run grows other than it did before; the caller's */
} kl_growth;

typedef struct kl_service { /* service.c */
    bool threaded;
    bool closing;
    pthread_t thread;
    double progress_at_s;
} kl_service;

/* A run between the caller's thread and the service; farm.c */
typedef struct kl_asked_run {
    const kilter_run *request;
    double spent_s;           /* the caller's own time before the request */
    double ended_s;           /* its thread's busy time when it saw a run end */
    bool gathered;            /* the workers a first run waits for are there */
    bool over;                /* the master has all results, or will get no more */
    bool ended;               /* and the caller will */
    kl_known *known;          /* what is stored of the request */
    kl_delivery_list results; /* for the caller */
    kilter_error failure;     /* of the run or, for good, of the farm */
    bool broken;
    kilter_farm_summary summary;
    char decision[512]; /* the summary's */
} kl_asked_run;

struct kilter_farm {
    kl_settings settings;
    kl_clock clock;
    double opened_s, opened_unix_s;
    uint32_t workers; /* started, or waited for */
    uint32_t seats;   /* workers in the first run; 0: all */
    kl_transport *transport;
    kl_master *master;
    kl_locals local;
    pthread_mutex_t lock; /* guards what threads share of the parts below */
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

/* --- use.c: whose the farm is, and what it costs --- */

/* CPU time of the farm's own threads and of callbacks; for kl_master_options, in the service thread. */
bool kl_farm_used(void *farm, double *farm_s, double *callbacks_s);
/* The caller's thread uses the farm until kl_farm_end_use(). KILTER_ERR_USAGE: it does already, in a
 * callback. */
kilter_status kl_farm_begin_use(kilter_farm *farm, const char *what, kilter_error *error);
void kl_farm_end_use(kilter_farm *farm);

/* --- keys.c: how ends of zmq are set --- */

/* For an end at `endpoint`. *key is filled when it is tcp, and used by *options. */
kilter_status kl_farm_zmq_options(const kl_settings *settings, const char *endpoint, bool is_master,
                                  kl_key *key, kl_zmq_options *options, kilter_error *error);

/* --- attendant.c: attends while the worker does a task --- */

typedef struct kl_attendant kl_attendant;

/* Call it in the thread that serves; until it is stopped, only that thread uses the worker. With
 * hears_sigterm, SIGTERM makes the worker leave. */
kilter_status kl_attendant_start(kl_worker *worker, bool hears_sigterm, kl_attendant **attendant,
                                 kilter_error *error);
void kl_attendant_stop(kl_attendant *attendant); /* NULL does nothing */

/* --- serve.c: being a worker --- */

/* Serve the master at the other end of `transport` until one of them ends. */
kilter_status kl_serve(const kl_settings *settings, kl_transport *transport, kilter_error *error);
/* Serve the master at `endpoint`, and when it is lost the one that comes in its place. */
kilter_status kl_farm_join(const kl_settings *settings, const char *endpoint, const char *binding,
                           kilter_error *error);

/* --- local.c: workers that the master starts itself --- */

enum { KL_OTHER_FILES = 32 }; /* what a master opens, a connection for each worker aside, is less */

kilter_status kl_farm_start_processes(kilter_farm *farm, kilter_error *error);
kilter_status kl_farm_start_threads(kilter_farm *farm, kilter_error *error);
/* Turn until all workers started from here are ready, or will never be. */
kilter_status kl_farm_wait_for_workers(kilter_farm *farm, kilter_error *error);
/* The master lost a local worker: says how it ended, if it did. For kl_master_options. */
void kl_farm_local_lost(void *farm, uint64_t pid, bool missed, char *how, size_t size);
/* It ends a local worker, or one ends, and another one is to take its place. Likewise. */
void kl_farm_renew_local(void *farm, uint64_t pid, bool at_once);
/* Replace those that were lost. Gives how long the next turn may take at most, as far as this goes. */
double kl_farm_tend_local(kilter_farm *farm);
/* The farm is closed: wait for those started from here, for a bounded time, and free what is known of them.
 */
void kl_farm_finish_local(kilter_farm *farm);

/* --- outside.c: the farm as `kilter tune` and `kilter drain` reach it --- */

void kl_farm_open_control(kilter_farm *farm);
void kl_farm_close_control(kilter_farm *farm);
void kl_farm_take_drain(kilter_farm *farm);                 /* what was asked for, under the lock */
void kl_farm_show_state(kilter_farm *farm, bool run_ended); /* to whoever waits for it, under the lock */

/* --- grain.c: how many tasks --- */

void kl_farm_answer_grain(kilter_farm *farm); /* what was asked, under the lock */

/* --- interrupt.c: what ends a run early: kilter_farm_cancel(), Ctrl-C and SIGTERM --- */

void kl_farm_set_on(kilter_farm *farm, bool on); /* a run can be cancelled from now on, or not any more */
void kl_farm_open_interrupt(kilter_farm *farm);  /* where it cannot be had, signals do what they did */
void kl_farm_close_interrupt(kilter_farm *farm);
/* What is to be said beside that the run was cancelled; "": nothing. */
void kl_farm_say_interrupt(kilter_farm *farm, char *text, size_t size);

/* --- resume.c: results that survive the master --- */

/* Open the record of --resume. KILTER_ERR_RECORD. */
kilter_status kl_farm_open_stored(kilter_farm *farm, const kl_trace_run_row *row, kl_trace **trace,
                                  kilter_error *error);
/* What is stored of the run that begins; without --resume nothing. KILTER_ERR_USAGE when that was about
 * something else, _RECORD, _MEMORY. */
kilter_status kl_farm_look_up(kilter_farm *farm, const kilter_run *run, kl_known *known, kilter_error *error);
bool kl_known_all(const kl_known *known, uint64_t tasks); /* of those the run begins with */
kilter_status kl_known_deliver(kl_known *known, kl_deliverer *deliverer, kilter_error *error);
void kl_known_free(kl_known *known);
/* Results came from the master: those that are to be stored first wait until they are. Takes the list over.
 * Under the lock. */
kilter_status kl_farm_take_results(kilter_farm *farm, kl_delivery_list *list, kilter_error *error);
void kl_farm_note_over(kilter_farm *farm);  /* the master's part of a run is over; under the lock */
bool kl_storing_holds(kl_storing *storing); /* so many wait that nothing may be dealt; under the lock */

/* This is added to the run, from task known->tasks on. KILTER_ERR_USAGE when something else was then. */
kilter_status kl_farm_note_addition(kilter_farm *farm, const kl_addition *addition, kilter_error *error);

/* --- recording.c: the farm's run record --- */

kilter_status kl_farm_check_record(const char *path, kilter_error *error);
kilter_status kl_farm_check_resume(const char *path, kilter_error *error);
/* At the first run: a farm that never ran leaves no file. A record nobody asked for is no reason to fail. */
kilter_status kl_farm_start_record(kilter_farm *farm, kilter_error *error);

/* --- grow.c: tasks that are added to a run --- */

/* The caller's thread has taken results: will more come? */
void kl_farm_note_growth(kilter_farm *farm, bool all_taken);
/* What the master does not have yet, and whether that was all; under the lock, when the run has begun. */
kl_additions kl_farm_take_additions(kilter_farm *farm, bool *last);
/* Give them to the master. */
kilter_status kl_farm_grow(kilter_farm *farm, kl_additions *additions, bool last, kilter_error *error);
void kl_farm_free_additions(kilter_farm *farm); /* the run is over */

/* --- service.c: the events of a master --- */

/* Start the service thread, where the transport allows one. */
kilter_status kl_farm_start_service(kilter_farm *farm, kilter_error *error);
void kl_farm_end_service(kilter_farm *farm);
/* Take in one event and what the other threads want. run_is_on: wake up for the progress line. */
void kl_farm_turn(kilter_farm *farm, bool run_is_on);

/* --- the public calls, for sized.c: with structs as this library knows them --- */

kilter_status kl_farm_open(const kilter_farm_options *options, int *argc, char **argv, kilter_farm **farm,
                           kilter_error *error);
kilter_status kl_farm_run(kilter_farm *farm, const kilter_run *run, kilter_error *error);
void kl_farm_summary_get(const kilter_farm *farm, kilter_farm_summary *summary);
kilter_status kl_farm_grain(kilter_farm *farm, const kilter_grain_options *options, kilter_grain *grain,
                            kilter_error *error);
kilter_status kl_farm_program(kilter_farm *farm, kilter_program *program, kilter_error *error);
kilter_status kl_farm_expect(kilter_farm *farm, const kilter_expectation *expectation, kilter_error *error);

#endif
