/* Door of room cluster: descriptions of hosts, links and tasks, as people write them → numbers; platforms for
 * SimGrid. The language is described in docs/reference/simulation.md. */
#ifndef KL_CLUSTER_H
#define KL_CLUSTER_H

#include <stdio.h>

#include "platform/platform.h"

enum { KL_CLUSTER_MOST_WORKERS = 10000000 };

/* Read a platform SPEC, such as "16x1.0,16x0.25@osc(60s,30s);link=50us,125MB/s". KILTER_ERR_INPUT names the
 * column where it cannot be read on; KILTER_ERR_RANGE the number that cannot be; KILTER_ERR_MEMORY. */
kilter_status kl_cluster_parse(const char *spec, kl_cluster *cluster, kilter_error *error);
void kl_cluster_free(kl_cluster *cluster); /* leaves it zeroed */

enum { KL_CLUSTER_HOST_BYTES = 16 };
/* Hosts of the platform below: "n0", "n1", … of the workers, and "master" of a master on a host of its own.
 * The master shares n0 otherwise. */
void kl_cluster_worker_host(uint32_t worker, char name[KL_CLUSTER_HOST_BYTES]);
void kl_cluster_master_host(const kl_cluster *cluster, char name[KL_CLUSTER_HOST_BYTES]);
/* The same cluster as a platform of SimGrid (XML, version 4.1; speed 1 is 1 Gflop/s). KILTER_ERR_SYSTEM. */
kilter_status kl_cluster_write_simgrid(const kl_cluster *cluster, FILE *out, kilter_error *error);

/* The host of each rank of a farm on it, one a line: the master's, then the workers'. KILTER_ERR_SYSTEM. */
kilter_status kl_cluster_write_hosts(const kl_cluster *cluster, FILE *out, kilter_error *error);

typedef enum kl_law {
    KL_LAW_CONST,
    KL_LAW_UNIFORM,
    KL_LAW_NORMAL,
    KL_LAW_EXP,
    KL_LAW_LOGNORMAL,
    KL_LAW_RECORDED,
} kl_law;

typedef struct kl_task_span { /* tasks before `hi`, from where the span before ends */
    uint64_t hi;
    double task_s;
} kl_task_span;

/* The tasks of a run: how many, and what each takes at speed 1. */
typedef struct kl_tasks {
    uint64_t count;
    kl_law law;
    double mean_s, cv;   /* cv: σ/μ */
    uint64_t seed;       /* the caller's to set */
    kl_task_span *spans; /* KL_LAW_RECORDED: the recorded chunks, in order */
    size_t span_count;
} kl_tasks;

/* Read a task SPEC, such as "8000@lognormal(1ms,1.0)", or "file=run.kilter": those of the last iteration in a
 * run record, the same in every run. Errors as above; KILTER_ERR_INPUT for a record that cannot be used. */
kilter_status kl_tasks_parse(const char *spec, kl_tasks *tasks, kilter_error *error);
void kl_tasks_free(kl_tasks *tasks); /* leaves it zeroed */
/* Seconds at speed 1 of task `index` of run `run`: a pure function of seed, run and index, so it does not
 * matter who asks when. */
double kl_task_s(const kl_tasks *tasks, uint64_t run, uint64_t index);

#endif
