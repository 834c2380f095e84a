/* Start the simulation engine events, which simulates the farm event by event. */
#ifndef KL_SIMULATE_EVENTS_H
#define KL_SIMULATE_EVENTS_H

#include "cluster/cluster.h"
#include "sim/sim.h"

/* The simulated farm: one farm under one policy. */
typedef struct kl_events_farm {
    const kl_cluster *cluster;
    const kl_tasks *tasks;
    const kl_policy *policy;
    uint32_t iterations;
    double task_bytes, result_bytes, answer_s, byte_s, startup_s;
    const char *record; /* path of the run record to write; NULL: write none */
} kl_events_farm;

typedef struct kl_simulated {  /* results of one run */
    double elapsed_s, bound_s; /* bound_s: seconds of the run if all hosts had computed all the time */
    uint64_t chunks, messages; /* messages: number of messages in the run; 0: not known */
    uint32_t workers;          /* number of workers that did at least one task */
} kl_simulated;

/* Simulate all runs and fill results[0 … iterations − 1]. Errors: KILTER_ERR_MEMORY, KILTER_ERR_RECORD;
 * KILTER_ERR_RANGE as in kl_sim_run_next(). */
kilter_status kl_events_run(const kl_events_farm *farm, kl_simulated *results, kilter_error *error);

#endif
