/* Door of room sim: farms and peers in virtual time. Master, workers and peers are the code that runs on real
 * machines; this room gives them a clock, messages that take time, and hosts to compute on. */
#ifndef KL_SIM_H
#define KL_SIM_H

#include "engine/engine.h"
#include "peer/peer.h"
#include "platform/platform.h"

/* A farm on a described platform, with a worker on each host; all workers are present before the first run.
 */
typedef struct kl_sim kl_sim;

enum { KL_SIM_HOST_BYTES = 16 };

typedef struct kl_sim_farm {
    const kl_cluster *cluster; /* must outlive the simulation */
    const kl_policy *policy;
    void (*name_host)(uint32_t worker,
                      char name[KL_SIM_HOST_BYTES]); /* name of a host in the record; NULL: "" */
    double factor;   /* partition factor of the policy, if it has one; 0: the policy's default */
    double answer_s; /* the master's seconds at speed 1 for a message or an unasked chunk */
    double
        startup_s; /* the sender's seconds before tasks or results leave [m_o]; workers compute meanwhile */
} kl_sim_farm;

typedef struct kl_sim_run {
    uint64_t tasks;
    /* Return the seconds of task `index` at speed 1, in run `run` = 0, 1, …; NULL: even_s each. */
    double (*task_s)(void *self, uint64_t run, uint64_t index);
    void *self;
    double even_s;
    size_t task_bytes, result_bytes; /* each */
} kl_sim_run;

typedef struct kl_sim_outcome {
    double began_s, elapsed_s;  /* hosts' profiles begin with the first run: began_s = 0 */
    double work_s;              /* sum over all tasks, at speed 1 */
    uint64_t results, executed; /* results: one for each task; executed: number of executions by workers */
    uint64_t chunks, messages;  /* numbers of this run */
    double master_busy_s;
    uint32_t workers; /* workers that did at least one task */
} kl_sim_outcome;

/* Make the farm and connect all workers. KILTER_ERR_MEMORY. */
kilter_status kl_sim_new(const kl_sim_farm *farm, kl_sim **sim, kilter_error *error);
void kl_sim_free(kl_sim *sim); /* NULL does nothing */
/* Simulate the next run. Costs O(log workers) for a message or a task. KILTER_ERR_MEMORY; KILTER_ERR_RANGE:
 * the run cannot end, because no event is left; or the farm's error. */
kilter_status kl_sim_run_next(kl_sim *sim, const kl_sim_run *run, kl_sim_outcome *outcome,
                              kilter_error *error);
/* Write the farm's rows into this trace from now on. */
void kl_sim_record(kl_sim *sim, kl_trace *trace);
double kl_sim_now_s(const kl_sim *sim); /* seconds since the farm was opened, as in the record */

/* Peers without a master, one on each host of a platform; peers.c. */
typedef struct kl_sim_peers {
    const kl_cluster *cluster;
    const kl_help *help;
    double message_s; /* seconds that a message takes from the processor of its sender, and from that of its
                         receiver */
    bool attends;     /* peers have a thread for messages; otherwise they take them in between two tasks */
    uint64_t seed;
    /* Return the seconds of the peer's own clock in a second. A peer whose clock is slow takes itself for
     * fast, and says so to others. Powers of two, so that times are not rounded. NULL: all clocks are right
     */
    double (*clock)(void *self, uint32_t peer);
    void *self;
} kl_sim_peers;

typedef struct kl_sim_peers_outcome {
    double elapsed_s; /* seconds until the root knows that every task is counted */
    double work_s, bound_s;
    uint64_t results, executed;       /* number of tasks counted; number of tasks that peers did */
    uint64_t twice;                   /* number of tasks counted again: a fault */
    bool exact;                       /* the sum of the results of all tasks came to the root */
    uint64_t messages, most_messages; /* number of messages sent by all peers; by the peer that sent most */
    uint64_t moved, adopted;          /* number of tasks that were given away; that died with their peer */
    uint32_t peers, rounds, deaths;
} kl_sim_peers_outcome;

/* Run tasks once, all equally shared at the start. run->result_bytes is not used: results are combined on
 * their way. KILTER_ERR_PEER: peer 0 died, and the message says how much was counted; KILTER_ERR_MEMORY;
 * KILTER_ERR_RANGE: nothing will happen any more. */
kilter_status kl_sim_peers_run(const kl_sim_peers *peers, const kl_sim_run *run,
                               kl_sim_peers_outcome *outcome, kilter_error *error);

#endif
