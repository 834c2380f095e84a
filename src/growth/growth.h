/* Public header of the folder growth: decide when a farm gets another job with workers from a queue, and when
 * a job is given back. The code is pure: the caller passes in the state of the farm and of the queue, and
 * carries out the returned actions. */
#ifndef KL_GROWTH_H
#define KL_GROWTH_H

#include "decide/decide.h"

enum {
    KL_GROWTH_ID_BYTES = 128,
    KL_GROWTH_NAME_BYTES = 128,
    KL_GROWTH_NODES_BYTES =
        2048, /* size of the list of a job's nodes; nodes that do not fit into it are not watched */
    KL_GROWTH_ACTIONS = 64,
    KL_GROWTH_JOBS_MOST = 1000,
};

typedef struct kl_growth_options {
    uint32_t jobs;   /* greatest number of jobs at the same time */
    uint32_t tries;  /* no more jobs are submitted after this many failures in a row */
    double margin_s; /* seconds before a job's time limit at which its workers leave; 0: computed from
                        measured times */
    bool hosts; /* true: no queue is used; each job is a host that is free at once, and the job's id is the
                   host's name */
} kl_growth_options;

/* --- the state that the driver passes in --- */

typedef struct kl_growth_host { /* a host with workers of the farm; the numbers have the same meaning as in
                                   kl_control_host */
    const char *name;
    bool drained;
    uint32_t workers, idle, working, lost;
} kl_growth_host;

typedef struct kl_growth_farm {
    bool known;     /* false: the farm has not begun its first run, and may be waiting for workers */
    bool running;   /* true: a run is in progress */
    uint64_t left;  /* number of tasks of the run that are not done yet */
    double left_s;  /* seconds that the present workers need for the tasks that are left; 0: not known */
    double again_s; /* seconds of the last run if another run is expected, because the program has made
                       several runs; otherwise 0 */
    double
        task_s; /* seconds of a typical task, or of the longest running task if that is more; 0: not known */
    uint32_t free; /* if options.hosts is true: number of hosts that are free to get workers */
    uint32_t workers,
        resting; /* workers: number of present workers; resting: number of these that the farm does not use */
    const kl_growth_host *hosts;
    size_t count;
} kl_growth_farm;

typedef enum kl_growth_stage {
    KL_GROWTH_WAITING, /* the job waits in the queue for its nodes */
    KL_GROWTH_RUNNING,
    KL_GROWTH_LEAVING, /* the job was cancelled or released */
    KL_GROWTH_OVER,
} kl_growth_stage;

typedef struct kl_growth_state { /* the state of a job; id: the job's number in the queue */
    const char *id;
    kl_growth_stage stage; /* WAITING, RUNNING or OVER */
    double limit_s;        /* for a running job: seconds until its time limit; 0: it has none */
    const char *nodes;     /* names of the job's nodes, separated by commas; NULL or "": not known, or none */
    const char *unfit;     /* for a running job: why its workers should leave; NULL: they should stay */
} kl_growth_state;

/* --- the actions that the driver carries out --- */

typedef enum kl_growth_act {
    KL_GROWTH_SUBMIT,  /* submit a job, then report this by kl_growth_submitted() or kl_growth_refused() */
    KL_GROWTH_CANCEL,  /* cancel job `id` */
    KL_GROWTH_RELEASE, /* tell the workers of job `id` to finish their task and leave */
    KL_GROWTH_DECIDED, /* print `decision`, and write it to the record */
} kl_growth_act;

typedef struct kl_growth_action {
    kl_growth_act act;
    char id[KL_GROWTH_ID_BYTES];
    kl_decision decision;
} kl_growth_action;

/* --- the state of the growth --- */

typedef struct kl_growth_job {
    char id[KL_GROWTH_ID_BYTES];
    kl_growth_stage stage;
    uint64_t number; /* number of the job, counted from 1 */
    double submitted_s, began_s;
    double limit_s; /* time at which the queue ends the job; 0: the job has no time limit */
    double idle_s;  /* time since which all workers of the job have been idle; 0: some are working */
    bool joined,
        worked;  /* joined: some of the job's workers have joined the farm; worked: some have got tasks */
    bool failed; /* true: this job is counted in kl_growth.failures */
    uint32_t workers;
    char nodes[KL_GROWTH_NODES_BYTES];
    char unfit[KL_GROWTH_NAME_BYTES]; /* why the job's workers should leave; "": they should stay */
} kl_growth_job;

typedef struct kl_growth_node {
    char name[KL_GROWTH_NAME_BYTES];
    uint32_t failures; /* number of failures of this node in a row */
    bool excluded;
    uint64_t seen, judged; /* seen: number of the last job that brought workers from this node; judged: number
                              of the last job that failed on it */
} kl_growth_node;

typedef struct kl_growth { /* All zero except `options`: there is no job. */
    kl_growth_options options;
    kl_growth_job *jobs;
    uint64_t job_count, job_room;
    kl_growth_node *nodes;
    uint64_t node_count, node_room;
    uint64_t submitted;           /* number of jobs submitted so far */
    uint32_t failures;            /* number of jobs in a row that did no task, or that the queue refused */
    double pause_s, not_before_s; /* pause_s: seconds of the pause after failures; not_before_s: time before
                                     which no job is submitted */
    double wait_s, start_s; /* wait_s: measured seconds that a job waits in the queue; start_s: seconds from
                               its start to its first worker; 0: not known */
    double job_workers;     /* mean number of workers that a job brings; 0: not known */
    double job_s;           /* time limit of a job in seconds; 0: none is known */
    double task_s;          /* longest usual time of a task in seconds so far */
    bool gave_up;
    kl_growth_action actions[KL_GROWTH_ACTIONS];
    uint32_t first_action, action_count;
} kl_growth;

void kl_growth_free(kl_growth *growth);
/* Update the growth from the states of the farm and of its jobs, and decide. A job that is not in `states`
 * has not changed. now_s never decreases. */
void kl_growth_look(kl_growth *growth, const kl_growth_farm *farm, const kl_growth_state *states,
                    size_t count, double now_s);
/* Report that the job of the last KL_GROWTH_SUBMIT was submitted. false: memory ran out. */
bool kl_growth_submitted(kl_growth *growth, const char *id, double now_s);
/* Report that the queue refused the job of the last KL_GROWTH_SUBMIT. */
void kl_growth_refused(kl_growth *growth, const char *why, double now_s);
bool kl_growth_take(kl_growth *growth,
                    kl_growth_action *action); /* Take the next action. false: there is none. */
/* Return whether the farm has no workers and will get none, so that it would wait for them for ever. */
bool kl_growth_is_lost(const kl_growth *growth, const kl_growth_farm *farm);
uint64_t kl_growth_jobs(const kl_growth *growth); /* Return the number of jobs that wait or run. */

#endif
