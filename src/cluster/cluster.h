/* Public header of the folder cluster: read descriptions of hosts, links and tasks, and write platforms
 * for SimGrid. docs/reference/simulation.md describes the language. */
#ifndef KL_CLUSTER_H
#define KL_CLUSTER_H

#include <stdio.h>

#include "platform/platform.h"

enum { KL_CLUSTER_MOST_WORKERS = 10000000 };

/* Read a platform SPEC, such as "16x1.0,16x0.25@osc(60s,30s);link=50us,125MB/s". Errors: KILTER_ERR_INPUT
 * names the column where the SPEC is not understood; KILTER_ERR_RANGE names a number out of range;
 * KILTER_ERR_MEMORY. */
kilter_status kl_cluster_parse(const char *spec, kl_cluster *cluster, kilter_error *error);
void kl_cluster_free(kl_cluster *cluster); /* free the platform and zero it */

enum { KL_CLUSTER_HOST_BYTES = 16 };
/* Store a host's name in the SimGrid platform: "n0", "n1", … for the workers, "master" for a master with
 * its own host. Otherwise the master is on n0. */
void kl_cluster_worker_host(uint32_t worker, char name[KL_CLUSTER_HOST_BYTES]);
void kl_cluster_master_host(const kl_cluster *cluster, char name[KL_CLUSTER_HOST_BYTES]);
/* Write the platform for SimGrid (XML, version 4.1; speed 1 is 1 Gflop/s). KILTER_ERR_SYSTEM. */
kilter_status kl_cluster_write_simgrid(const kl_cluster *cluster, FILE *out, kilter_error *error);

/* Write the host of each rank of a farm on the platform, one per line; the master's comes first.
 * KILTER_ERR_SYSTEM. */
kilter_status kl_cluster_write_hosts(const kl_cluster *cluster, FILE *out, kilter_error *error);

typedef enum kl_law {
    KL_LAW_CONST,
    KL_LAW_UNIFORM,
    KL_LAW_NORMAL,
    KL_LAW_EXP,
    KL_LAW_LOGNORMAL,
    KL_LAW_RECORDED,
} kl_law;

typedef struct kl_task_span { /* the span ends before task `hi` and begins where the previous span ends */
    uint64_t hi;
    double task_s;
} kl_task_span;

/* The tasks of a run: their number and the time of each one at speed 1. */
typedef struct kl_tasks {
    uint64_t count;
    kl_law law;
    double mean_s, cv;   /* cv: σ/μ */
    uint64_t seed;       /* seed of the random times; the caller sets it */
    kl_task_span *spans; /* KL_LAW_RECORDED: the recorded chunks, in order */
    size_t span_count;
} kl_tasks;

/* Read a task SPEC, such as "8000@lognormal(1ms,1.0)". "file=run.kilter" takes the tasks of the record's last
 * run, and every run then has these tasks. Errors are those of kl_cluster_parse(), and KILTER_ERR_INPUT for a
 * record that cannot be used. */
kilter_status kl_tasks_parse(const char *spec, kl_tasks *tasks, kilter_error *error);
void kl_tasks_free(kl_tasks *tasks); /* free the tasks and zero them */
/* Return the seconds of task `index` of run `run` at speed 1. It is a pure function of seed, run and index,
 * so the order of calls does not matter. */
double kl_task_s(const kl_tasks *tasks, uint64_t run, uint64_t index);

#endif
