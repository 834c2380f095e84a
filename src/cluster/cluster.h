/* Public header of the folder cluster: read descriptions of hosts, links and tasks, and write platforms
 * for SimGrid. docs/reference/simulation.md describes the language. */
#ifndef KL_CLUSTER_H
#define KL_CLUSTER_H

#include <stdio.h>

#include "platform/platform.h"

enum { KL_CLUSTER_MOST_WORKERS = 10000000 };

/* Read a platform SPEC, such as "16x1.0,16x0.25@osc(60s,30s);link=50us,125MB/s". Errors: KILTER_ERR_INPUT
 * names the column where the SPEC is not understood; KILTER_ERR_RANGE names a number out of range;
 * KILTER_ERR_MEMORY: memory ran out. */
kilter_status kl_cluster_parse(const char *spec, kl_cluster *cluster, kilter_error *error);
void kl_cluster_free(
    kl_cluster *cluster); /* free the memory of the platform and set all its members to zero */

enum { KL_CLUSTER_HOST_BYTES = 16 };
/* Store the name that a host has in the SimGrid platform. Workers are on "n0", "n1", …. A master with its own
 * host is on "master"; any other master is on "n0". */
void kl_cluster_worker_host(uint32_t worker, char name[KL_CLUSTER_HOST_BYTES]);
void kl_cluster_master_host(const kl_cluster *cluster, char name[KL_CLUSTER_HOST_BYTES]);
/* Write the platform for SimGrid (XML, version 4.1; speed 1 is 1 Gflop/s). Error: KILTER_ERR_SYSTEM */
kilter_status kl_cluster_write_simgrid(const kl_cluster *cluster, FILE *out, kilter_error *error);

/* Write the name of the host for each rank of a farm on the platform, one name per line. The master's host
 * comes first. Error: KILTER_ERR_SYSTEM */
kilter_status kl_cluster_write_hosts(const kl_cluster *cluster, FILE *out, kilter_error *error);

typedef enum kl_law {
    KL_LAW_CONST,
    KL_LAW_UNIFORM,
    KL_LAW_NORMAL,
    KL_LAW_EXP,
    KL_LAW_LOGNORMAL,
    KL_LAW_RECORDED,
} kl_law;

/* the tasks of a recorded chunk: from the end of the previous span to `hi` − 1 */
typedef struct kl_task_span {
    uint64_t hi;
    double task_s;
} kl_task_span;

/* The tasks of a run: their number and the time of each one at speed 1. */
typedef struct kl_tasks {
    uint64_t count;
    kl_law law;
    double mean_s, cv;   /* cv: σ/μ */
    uint64_t seed;       /* seed of the random times; the caller sets it */
    kl_task_span *spans; /* [span_count] for KL_LAW_RECORDED: the recorded chunks, in order of their tasks */
    size_t span_count;
} kl_tasks;

/* Read a task SPEC, such as "8000@lognormal(1ms,1.0)". With "file=run.kilter", every run has the tasks of
 * the record's last run. Errors are those of kl_cluster_parse(), and KILTER_ERR_INPUT for a record that
 * cannot be used. */
kilter_status kl_tasks_parse(const char *spec, kl_tasks *tasks, kilter_error *error);
void kl_tasks_free(kl_tasks *tasks); /* free the memory of the tasks and set all its members to zero */
/* Return the seconds that task `index` of run `run` takes at speed 1. The result depends only on seed, run
 * and index, not on earlier calls. */
double kl_task_s(const kl_tasks *tasks, uint64_t run, uint64_t index);

#endif
