/* Door of room growth: decides when a farm gets another job with workers from a queue, and when a job is
 * given back. It is pure: what the farm and the queue show goes in, actions come out.
 *
 *   kl_growth_look(farm, jobs, now) ──▶ submit · cancel · release · a decision with its reason · give up
 *
 *   growth.c  jobs and nodes: what happened to them
 *   useful.c  whether another job is useful, and since when a job is not
 *   say.c     decisions and actions */
#ifndef KL_GROWTH_H
#define KL_GROWTH_H

#include "decide/decide.h"

enum {
    KL_GROWTH_ID_BYTES = 128,
    KL_GROWTH_NAME_BYTES = 128,
    KL_GROWTH_NODES_BYTES = 2048, /* names of a job's nodes; nodes that do not fit are not watched */
    KL_GROWTH_ACTIONS = 64,
    KL_GROWTH_JOBS_MOST = 1000,
};

typedef struct kl_growth_options {
    uint32_t jobs;  /* most jobs at a time */
    uint32_t tries; /* no more jobs are submitted after this many failures in a row */
    double
        margin_s; /* seconds before a job's time limit at which its workers leave; 0: from measured times */
    bool hosts;   /* jobs are hosts that are free at once, and their numbers are names */
} kl_growth_options;

/* --- what the driver shows --- */

typedef struct kl_growth_host { /* a host of the farm's workers; the numbers are those of kl_control_host */
    const char *name;
    bool drained;
    uint32_t workers, idle, working, lost;
} kl_growth_host;

typedef struct kl_growth_farm {
    bool known;     /* false: the farm has not begun its first run; it may wait for workers */
    bool running;   /* a run is in progress */
    uint64_t left;  /* tasks of the run that are not done */
    double left_s;  /* seconds until the present workers have done them; 0: not known */
    double again_s; /* seconds of the last run, if the program has made several; another one is expected */
    double task_s;  /* seconds of a usual task, or of the longest present one; 0: not known */
    uint32_t free;  /* with options.hosts: hosts that could get workers */
    uint32_t workers, resting; /* present workers, and those that the farm does not use */
    const kl_growth_host *hosts;
    size_t count;
} kl_growth_farm;

typedef enum kl_growth_stage {
    KL_GROWTH_WAITING, /* in the queue */
    KL_GROWTH_RUNNING,
    KL_GROWTH_LEAVING, /* cancelled or released */
    KL_GROWTH_OVER,
} kl_growth_stage;

typedef struct kl_growth_state { /* of a job in the queue */
    const char *id;
    kl_growth_stage stage; /* WAITING, RUNNING or OVER */
    double limit_s;        /* RUNNING: seconds until its time limit; 0: none */
    const char *nodes;     /* names, separated by commas; NULL or "": not known, or none */
    const char *unfit;     /* RUNNING: why its workers should leave; NULL: they should not */
} kl_growth_state;

/* --- what the driver carries out --- */

typedef enum kl_growth_act {
    KL_GROWTH_SUBMIT,  /* then call kl_growth_submitted() or kl_growth_refused() */
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
    double limit_s;      /* time of its time limit; 0: none */
    double idle_s;       /* since when all its workers are idle; 0: they are not */
    bool joined, worked; /* workers came; they got tasks */
    bool failed;         /* its failure was counted */
    uint32_t workers;
    char nodes[KL_GROWTH_NODES_BYTES];
    char unfit[KL_GROWTH_NAME_BYTES]; /* why its workers should leave; "": they should not */
} kl_growth_job;

typedef struct kl_growth_node {
    char name[KL_GROWTH_NAME_BYTES];
    uint32_t failures; /* in a row */
    bool excluded;
    uint64_t seen, judged; /* number of the last job whose workers were seen here, and that failed here */
} kl_growth_node;

typedef struct kl_growth { /* zeroed but for the options: no job */
    kl_growth_options options;
    kl_growth_job *jobs;
    uint64_t job_count, job_room;
    kl_growth_node *nodes;
    uint64_t node_count, node_room;
    uint64_t submitted;           /* number of jobs so far */
    uint32_t failures;            /* jobs in a row that did nothing, or were refused */
    double pause_s, not_before_s; /* pause after failures, and time before which no job is submitted */
    double wait_s, start_s; /* measured: in the queue, and from there to the first worker; 0: not known */
    double job_workers;     /* workers of a job; 0: not known */
    double job_s;           /* time limit of a job; 0: none is known */
    double task_s;          /* longest usual task so far */
    bool gave_up;
    kl_growth_action actions[KL_GROWTH_ACTIONS];
    uint32_t first_action, action_count;
} kl_growth;

void kl_growth_free(kl_growth *growth);
/* Look at the farm and at the states of jobs; a job that is not among them has not changed. now_s never
 * decreases. */
void kl_growth_look(kl_growth *growth, const kl_growth_farm *farm, const kl_growth_state *states,
                    size_t count, double now_s);
/* The requested job was submitted. false: memory ran out. */
bool kl_growth_submitted(kl_growth *growth, const char *id, double now_s);
/* The queue refused the requested job. */
void kl_growth_refused(kl_growth *growth, const char *why, double now_s);
bool kl_growth_take(kl_growth *growth, kl_growth_action *action); /* false: there is no action */
/* Return whether no workers are there and none will come, so that the farm would wait for ever. */
bool kl_growth_is_lost(const kl_growth *growth, const kl_growth_farm *farm);
uint64_t kl_growth_jobs(const kl_growth *growth); /* number of jobs that wait or run */

#endif
