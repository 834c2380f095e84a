/* Run the simulation of peers for `kilter simulate`. Peers balance their work without a master. */
#ifndef KL_SIMULATE_PEERS_H
#define KL_SIMULATE_PEERS_H

#include "cluster/cluster.h"

typedef struct kl_peers_question {
    const kl_cluster *cluster;
    const kl_tasks *tasks;
    const char *platform, *tasks_spec; /* the options --platform and --tasks as the user wrote them */
    /* names of policies, separated by commas, or "all"; NULL: the default policy */
    const char *policies;
    uint64_t task_bytes;
    double message_s;
    bool between; /* true: peers take in messages only between two tasks, not during a task */
    bool json;
} kl_peers_question;

/* Simulate each policy and print the results. Errors: those of kl_sim_peers_run(); KILTER_ERR_USAGE: a
 * policy does not exist. */
kilter_status kl_simulate_peers(const kl_peers_question *question, kilter_error *error);

#endif
