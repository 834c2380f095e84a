/* Door of room sim: farms in virtual time. Master and workers are those of room farm, the very code that runs
 * on real machines; this room gives them a clock, messages that take time, and hosts to compute on. It
 * decides nothing. */
#ifndef KL_SIM_H
#define KL_SIM_H

#include "engine/engine.h"
#include "platform/platform.h"

/* A farm on a described platform: a worker on each of its hosts, all there before the first run. */
typedef struct kl_sim kl_sim;

enum { KL_SIM_HOST_BYTES = 16 };

typedef struct kl_sim_farm {
    const kl_cluster *cluster; /* must outlive the simulation */
    const kl_policy *policy;
    void (*name_host)(uint32_t worker, char name[KL_SIM_HOST_BYTES]); /* for the record; NULL: "" */
    double factor;    /* partition factor of a policy that has one; 0: the policy's own */
    double answer_s;  /* of the master at speed 1, for each message it takes in and chunk it deals unasked */
    double startup_s; /* of the sender, before a message with tasks or results leaves [m_o]; a worker computes
                         meanwhile */
} kl_sim_farm;

typedef struct kl_sim_run {
    uint64_t tasks;
    /* Seconds of task `index` at speed 1, in run `run` = 0, 1, …; NULL: even_s each. */
    double (*task_s)(void *self, uint64_t run, uint64_t index);
    void *self;
    double even_s;
    size_t task_bytes, result_bytes; /* each */
} kl_sim_run;

typedef struct kl_sim_outcome {
    double began_s, elapsed_s;  /* hosts' profiles count from the beginning of the first run: began_s = 0 */
    double work_s;              /* of all tasks, at speed 1 */
    uint64_t results, executed; /* results: one for each task; executed: as often as workers did tasks */
    uint64_t chunks, messages;  /* in this run */
    double master_busy_s;
    uint32_t workers; /* that did at least one task */
} kl_sim_outcome;

/* All workers are taken in. KILTER_ERR_MEMORY. */
kilter_status kl_sim_new(const kl_sim_farm *farm, kl_sim **sim, kilter_error *error);
void kl_sim_free(kl_sim *sim); /* NULL does nothing */
/* Simulate the next run. Costs O(log workers) for a message or a task. KILTER_ERR_MEMORY; KILTER_ERR_RANGE:
 * the run cannot end, as nothing will happen any more; or what the farm failed with. */
kilter_status kl_sim_run_next(kl_sim *sim, const kl_sim_run *run, kl_sim_outcome *outcome,
                              kilter_error *error);
/* From here on the farm's rows go there, as those of any farm. */
void kl_sim_record(kl_sim *sim, kl_trace *trace);
double kl_sim_now_s(const kl_sim *sim); /* since the farm was opened, as in the record */

#endif
