/* Public header of the folder growth: decide when a farm gets another job with workers from a queue, and
 * when a job is given back. The code is pure: the caller passes in what the farm and the queue show, and
 * carries out the actions that come out. */
#ifndef KL_GROWTH_H
#define KL_GROWTH_H

#include "decide/decide.h"

enum {
    KL_GROWTH_ID_BYTES = 128,
    KL_GROWTH_NAME_BYTES = 128,
    KL_GROWTH_NODES_BYTES =
        2048, /* names of a job's nodes; nodes for which there is no room are not watched */
    KL_GROWTH_ACTIONS = 64,
    KL_GROWTH_JOBS_MOST = 1000,
};

typedef struct kl_growth_options {
    uint32_t jobs;  /* greatest number of jobs at the same time */
    uint32_t tries; /* no more jobs are submitted after this many failures in a row */
    double
        margin_s; /* seconds before a job's time limit at which its workers leave; 0: from measured times */
    bool hosts;   /* true: a job is a host that is free at once, and the job's number is its name */
} kl_growth_options;

/* --- what the driver shows --- */

typedef struct kl_growth_host { /* a host of the farm's workers; the numbers have the same meaning as in
                                   kl_control_host */
    const char *name;
    bool drained;
    uint32_t workers, idle, working, lost;
} kl_growth_host;

typedef struct kl_growth_farm {
    bool known;     /* false: the farm has not begun its first run, and may be waiting for workers */
    bool running;   /* a run is in progress */
    uint64_t left;  /* number of tasks of the run that are not done */
    double left_s;  /* seconds until the present workers have done these tasks; 0: not known */
    double again_s; /* seconds of the last run, if the program has made several runs, so that another one is
                       expected */
    double task_s;  /* seconds of a usual task, or of the longest present one; 0: not known */
    uint32_t free;  /* with options.hosts: number of hosts that could get workers */
    uint32_t workers, resting; /* number of present workers, and of those that the farm does not use */
    const kl_growth_host *hosts;
    size_t count;
} kl_growth_farm;

typedef enum kl_growth_stage {
    KL_GROWTH_WAITING, /* the job waits in the queue */
    KL_GROWTH_RUNNING,
    KL_GROWTH_LEAVING, /* the job was cancelled or released */
    KL_GROWTH_OVER,
} kl_growth_stage;

typedef struct kl_growth_state { /* number of the job in the queue */
    const char *id;
    kl_growth_stage stage; /* WAITING, RUNNING or OVER */
    double limit_s;        /* RUNNING: seconds until the job's time limit; 0: it has none */
    const char *nodes;     /* names of the job's nodes, separated by commas; NULL or "": not known, or none */
    const char *unfit;     /* RUNNING: why the job's workers should leave; NULL: they should stay */
} kl_growth_state;

/* --- what the driver carries out --- */

typedef enum kl_growth_act {
    KL_GROWTH_SUBMIT,  /* submit a job, then call kl_growth_submitted() or kl_growth_refused() */
    KL_GROWTH_CANCEL,  /* cancel job `id` */
    KL_GROWTH_RELEASE, /* tell the workers of job `id` to finish their task and leave */
    KL_GROWTH_DECIDED, /* print and record `decision` */
} kl_growth_act;

typedef struct kl_growth_action {
    kl_growth_act act;
    char id[KL_GROWTH_ID_BYTES];
    kl_decision decision;
} kl_growth_action;

/* --- the machine --- */

typedef struct kl_growth_job {
    char id[KL_GROWTH_ID_BYTES];
    kl_growth_stage stage;
    uint64_t number; /* from 1 */
    double submitted_s, began_s;
    double limit_s;      /* time of the job's time limit; 0: it has none */
    double idle_s;       /* time since which all workers of the job are idle; 0: some are working */
    bool joined, worked; /* workers of the job joined; workers of the job got tasks */
    bool failed;         /* the failure of the job was counted */
    uint32_t workers;
    char nodes[KL_GROWTH_NODES_BYTES];
    char unfit[KL_GROWTH_NAME_BYTES]; /* why the job's workers should leave; "": they should stay */
} kl_growth_job;

typedef struct kl_growth_node {
    char name[KL_GROWTH_NAME_BYTES];
    uint32_t failures; /* number of failures in a row */
    bool excluded;
    uint64_t seen, judged; /* number of the last job whose workers joined from this node, and of the last one
                              that failed here */
} kl_growth_node;

typedef struct kl_growth { /* all fields but the options are zero: there is no job */
    kl_growth_options options;
    kl_growth_job *jobs;
    uint64_t job_count, job_room;
    kl_growth_node *nodes;
    uint64_t node_count, node_room;
    uint64_t submitted;           /* number of jobs so far */
    uint32_t failures;            /* number of jobs in a row that did nothing or were refused */
    double pause_s, not_before_s; /* pause after failures; time before which no job is submitted */
    double wait_s, start_s; /* measured seconds of a job in the queue, and from its start to the first worker;
                               0: not known */
    double job_workers;     /* number of workers that a job brings; 0: not known */
    double job_s;           /* time limit of a job in seconds; 0: none is known */
    double task_s;          /* longest usual time of a task so far */
    bool gave_up;
    kl_growth_action actions[KL_GROWTH_ACTIONS];
    uint32_t first_action, action_count;
} kl_growth;

void kl_growth_free(kl_growth *growth);
/* Look at the farm and at the states of jobs. A job that is not in the list has not changed. now_s never
 * decreases. */
void kl_growth_look(kl_growth *growth, const kl_growth_farm *farm, const kl_growth_state *states,
                    size_t count, double now_s);
/* Report that the requested job was submitted. false: memory ran out. */
bool kl_growth_submitted(kl_growth *growth, const char *id, double now_s);
/* Report that the queue refused the requested job. */
void kl_growth_refused(kl_growth *growth, const char *why, double now_s);
bool kl_growth_take(kl_growth *growth,
                    kl_growth_action *action); /* Take the next action. false: there is none. */
/* Return whether the farm has no workers and will get none, so that it would wait for ever. */
bool kl_growth_is_lost(const kl_growth *growth, const kl_growth_farm *farm);
uint64_t kl_growth_jobs(const kl_growth *growth); /* Return the number of jobs that wait or run. */

#endif
