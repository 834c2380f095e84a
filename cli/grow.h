/* kilter run --slurm and --hosts: the driver of a farm's growth by jobs of Slurm, or by hosts of a list. It
 * carries out the decisions of src/growth.
 *
 *   grow.c         what the farm and the queue show → the machine → what to do
 *   grow_slurm.c   Slurm's commands, and the scripts of a job
 *   grow_hosts.c   the fitness of hosts; a host with workers is a job */
#ifndef KL_GROW_H
#define KL_GROW_H

#include "base/base.h"
#include "growth/growth.h"
#include "run_hosts.h"
#include "sys/sys.h"
#include "transport/transport.h"

typedef struct kl_grow_options {
    const char *slurm;  /* options options for sbatch; NULL: workers are on hosts */
    const char *folder; /* a folder that all nodes share; NULL: PROGRAM.farm */
    kl_growth_options growth;
    char *const *program; /* the program and its arguments; NULL is the last entry */
    const char *join;     /* endpoint of the master */
    const char *control;  /* name of its control socket */
    const kl_key *key;
    /* without Slurm: */
    const char *hosts,
        *pick; /* hosts: file with the list; pick: name of a picker, NULL: the fastest hosts first */
    double weight, look_s, wait_s;
    uint64_t seed;
    struct {
        kl_run_how run;
        const char *ssh_given; /* NULL: the usual ssh */
    } how;
} kl_grow_options;

typedef struct kl_grow kl_grow;

/* Open the folder, write the scripts, and cancel jobs that an earlier command has left. KILTER_ERR_USAGE,
 * KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY */
kilter_status kl_grow_open(const kl_grow_options *options, kl_grow **grow, kilter_error *error);
/* Look at the farm and the queue, and do what is due. Call this several times a second. Return false if the
 * farm has no worker and will get none. */
bool kl_grow_look(kl_grow *grow);
/* Let the jobs of a farm that ended well end by themselves, and cancel the others. NULL does nothing. */
void kl_grow_close(kl_grow *grow, bool ended_well);

/* --- grow_slurm.c --- */

typedef struct kl_grow_slurm {
    const char *options; /* options for sbatch */
    char *folder;        /* absolute */
    const char *name;    /* name of the farm's jobs */
    kl_capture queue;
    bool asks;                 /* squeue was started and has not ended */
    uint64_t asked;            /* the question covers jobs up to this number */
    double asked_s, changed_s; /* times of the last question and of the last new answer */
    char *answer;              /* the last answer; NULL: none */
} kl_grow_slurm;

kilter_status kl_grow_slurm_check(kilter_error *error); /* check that Slurm's commands are installed */
kilter_status kl_grow_slurm_write(const kl_grow_slurm *slurm, const kl_grow_options *options,
                                  kilter_error *error);
/* Submit a job. KILTER_ERR_SYSTEM: the queue refuses it. */
kilter_status kl_grow_slurm_submit(const kl_grow_slurm *slurm, const kl_growth *growth,
                                   char id[KL_GROWTH_ID_BYTES], kilter_error *error);
void kl_grow_slurm_cancel(const char *ids, bool gently); /* ids: separated by blanks */
/* Ask the queue for all jobs, without waiting. true: *answer is a new answer, "" if the queue has none of
 * these jobs. */
bool kl_grow_slurm_ask(kl_grow_slurm *slurm, const kl_growth *growth, const char **answer);
/* Read the state of a job from an answer; `nodes` receives the names of its nodes. A job that is missing in
 * the answer has ended. */
kl_growth_state kl_grow_slurm_state(const char *answer, const char *id, char nodes[KL_GROWTH_NODES_BYTES]);
void kl_grow_slurm_close(kl_grow_slurm *slurm);

/* --- grow_hosts.c --- */

typedef struct kl_grow_hosts kl_grow_hosts;

/* Read the list of hosts. `options` must exist until
 * kl_grow_hosts_close(). KILTER_ERR_INPUT, KILTER_ERR_MEMORY, KILTER_ERR_SYSTEM */
kilter_status kl_grow_hosts_open(const kl_grow_options *options, kl_grow_hosts **hosts, kilter_error *error);
/* Continue measuring the hosts, and return the number of fit hosts without workers. */
uint32_t kl_grow_hosts_look(kl_grow_hosts *hosts, const kl_growth *growth);
/* Start workers on the fittest host that has none; `id` receives its name. */
kilter_status kl_grow_hosts_start(kl_grow_hosts *hosts, const kl_growth *growth, char id[KL_GROWTH_ID_BYTES],
                                  kilter_error *error);
void kl_grow_hosts_end(kl_grow_hosts *hosts, const char *id); /* let the host's workers leave */
kl_growth_state kl_grow_hosts_state(kl_grow_hosts *hosts, const char *id);
/* Return whether the farm should go on waiting. useful: the farm has workers, or a host is fit */
bool kl_grow_hosts_waits(kl_grow_hosts *hosts, bool useful);
void kl_grow_hosts_close(kl_grow_hosts *hosts); /* end all workers; NULL does nothing */

#endif
