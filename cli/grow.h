/* Drive a farm of kilter run --slurm or --hosts: start and end its workers, as jobs of Slurm or on hosts
 * of a list. The code in src/growth decides how many workers are needed; this code carries out the
 * decisions. */
#ifndef KL_GROW_H
#define KL_GROW_H

#include "base/base.h"
#include "growth/growth.h"
#include "run_hosts.h"
#include "sys/sys.h"
#include "transport/transport.h"

typedef struct kl_grow_options {
    const char *slurm;  /* options for sbatch; NULL: the workers are on hosts */
    const char *folder; /* folder of the jobs, which all nodes share; NULL: PROGRAM.farm */
    kl_growth_options growth;
    char *const *program; /* the program and its arguments; NULL is the last entry */
    const char *join;     /* endpoint where workers join the master */
    const char *control;  /* name of the master's control socket */
    const kl_key *key;
    /* without Slurm: */
    const char *hosts, *pick; /* hosts: file with the list of hosts; pick: name of a picker; NULL: use the
                                 fastest hosts first */
    double weight, look_s, wait_s; /* values of --weight, --look and --wait */
    uint64_t seed;
    struct {
        kl_run_how run;
        const char *ssh_given; /* the user's command instead of ssh; NULL: ssh */
    } how;
} kl_grow_options;

typedef struct kl_grow kl_grow;

/* Open the folder of the jobs, write the job scripts, and cancel jobs that an earlier command has left.
 * Errors: KILTER_ERR_USAGE, KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY */
kilter_status kl_grow_open(const kl_grow_options *options, kl_grow **grow, kilter_error *error);
/* Read the state of the farm and the queue, and start or end workers if needed. Call this several times a
 * second. Return false if the farm has no worker and will get none. */
bool kl_grow_look(kl_grow *grow);
/* Free everything. If the farm did not end well, also cancel its jobs. Otherwise the jobs end by themselves.
 * NULL does nothing. */
void kl_grow_close(kl_grow *grow, bool ended_well);

/* --- grow_slurm.c --- */

typedef struct kl_grow_slurm {
    const char *options; /* the user's options for sbatch */
    char *folder;        /* absolute */
    const char *name;    /* the name that all jobs of the farm have */
    kl_capture queue;
    bool asks;                 /* true: squeue was started and has not ended */
    uint64_t asked;            /* number of the newest job that squeue was asked about */
    double asked_s, changed_s; /* asked_s: time when squeue was last asked; changed_s: time of the last answer
                                  that differed from the previous answer */
    char *answer;              /* last answer of squeue; NULL: none yet */
} kl_grow_slurm;

kilter_status kl_grow_slurm_check(kilter_error *error); /* check that sbatch, squeue and scancel are
                                                         * installed */
kilter_status kl_grow_slurm_write(const kl_grow_slurm *slurm, const kl_grow_options *options,
                                  kilter_error *error);
/* Submit a job; `id` receives its number. KILTER_ERR_SYSTEM: Slurm refuses the job. */
kilter_status kl_grow_slurm_submit(const kl_grow_slurm *slurm, const kl_growth *growth,
                                   char id[KL_GROWTH_ID_BYTES], kilter_error *error);
void kl_grow_slurm_cancel(const char *ids, bool gently); /* ids: job numbers, separated by spaces */
/* Ask squeue about all jobs of the farm, without waiting for the answer. true: *answer is a new answer; it is
 * "" if the queue has no job of the farm. */
bool kl_grow_slurm_ask(kl_grow_slurm *slurm, const kl_growth *growth, const char **answer);
/* Return the state of a job in an answer of squeue; `nodes` receives the names of its nodes. A job that is
 * not in the answer has ended. */
kl_growth_state kl_grow_slurm_state(const char *answer, const char *id, char nodes[KL_GROWTH_NODES_BYTES]);
void kl_grow_slurm_close(kl_grow_slurm *slurm);

/* --- grow_hosts.c --- */

typedef struct kl_grow_hosts kl_grow_hosts;

/* Read the list of hosts. `options` must exist until kl_grow_hosts_close(). Errors: KILTER_ERR_INPUT,
 * KILTER_ERR_MEMORY, KILTER_ERR_SYSTEM */
kilter_status kl_grow_hosts_open(const kl_grow_options *options, kl_grow_hosts **hosts, kilter_error *error);
/* Continue to measure the hosts, and return how many fit hosts have no workers. */
uint32_t kl_grow_hosts_look(kl_grow_hosts *hosts, const kl_growth *growth);
/* Start workers on the fittest host that has no workers; `id` receives the host's name. */
kilter_status kl_grow_hosts_start(kl_grow_hosts *hosts, const kl_growth *growth, char id[KL_GROWTH_ID_BYTES],
                                  kilter_error *error);
void kl_grow_hosts_end(kl_grow_hosts *hosts, const char *id); /* let the workers of this host leave */
kl_growth_state kl_grow_hosts_state(kl_grow_hosts *hosts, const char *id);
/* Return whether to go on waiting for workers. useful: the farm has workers, or workers were started on a
 * host. */
bool kl_grow_hosts_waits(kl_grow_hosts *hosts, bool useful);
void kl_grow_hosts_close(kl_grow_hosts *hosts); /* End all workers that run on the hosts. NULL does
                                                 * nothing. */

#endif
