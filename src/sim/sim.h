/* Public header of the folder sim: farms and peers in virtual time. Master, workers and peers are the same
 * code that runs on real machines. This folder gives them a clock, messages that take time, and hosts to
 * compute on. */
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
    const kl_cluster *cluster; /* the caller must keep it longer than the simulation */
    const kl_policy *policy;
    void (*name_host)(uint32_t worker,
                      char name[KL_SIM_HOST_BYTES]); /* name of a host in the record; NULL: "" */
    double factor;   /* partition factor of the policy, if it has one; 0: the policy's default */
    double answer_s; /* additional seconds at speed 1 that the master needs for each byte of a chunk */
    double byte_s;   /* seconds at speed 1 that the master needs for each byte of a chunk, in addition */
    /* seconds before tasks or results leave their sender [m_o]; meanwhile a worker can compute */
    double startup_s;
    bool renews; /* true: the hosts' speed profiles start again with each run */
} kl_sim_farm;

typedef struct kl_sim_run {
    uint64_t tasks;
    /* Return the seconds of task `index` at speed 1, in run `run` = 0, 1, …; NULL: every task takes
     * even_s. */
    double (*task_s)(void *self, uint64_t run, uint64_t index);
    void *self;
    double even_s;
    size_t task_bytes, result_bytes; /* each */
} kl_sim_run;

typedef struct kl_sim_outcome {
    double began_s,
        elapsed_s; /* began_s: seconds since the first run began, when the hosts' speed profiles begin, too */
    double work_s; /* sum over all tasks, at speed 1 */
    uint64_t results, executed; /* results: one for each task; executed: number of executions by workers */
    uint64_t chunks, messages;  /* numbers of this run */
    double master_busy_s;
    uint32_t workers; /* workers that did at least one task */
} kl_sim_outcome;

/* Make the farm and connect all workers. KILTER_ERR_MEMORY. */
kilter_status kl_sim_new(const kl_sim_farm *farm, kl_sim **sim, kilter_error *error);
void kl_sim_free(kl_sim *sim); /* NULL does nothing */
/* Simulate the next run. A message or a task costs O(log workers). KILTER_ERR_MEMORY; KILTER_ERR_RANGE:
 * the run cannot end, because no event is left; or the farm's error. */
kilter_status kl_sim_run_next(kl_sim *sim, const kl_sim_run *run, kl_sim_outcome *outcome,
                              kilter_error *error);
/* Choose who would organise another run like `run`, as `--organise auto` does. count: number of peers; 0:
 * the master. */
kl_decision kl_sim_way(const kl_sim *sim, const kl_sim_run *run);
/* Store the result of a run that peers have organised, for the next choice. */
void kl_sim_note_peers(kl_sim *sim, uint64_t tasks, double elapsed_s);
/* Write the farm's rows into this trace from now on. */
void kl_sim_record(kl_sim *sim, kl_trace *trace);
/* Get the progress of the present run. task_s() of the run may call this. */
void kl_sim_progress(const kl_sim *sim, kl_progress *progress);
double kl_sim_now_s(const kl_sim *sim); /* seconds since the farm was opened, as in the record */

/* Peers without a master, one on each host of a platform; peers.c. */
typedef struct kl_sim_peers {
    const kl_cluster *cluster;
    const kl_help *help;
    /* seconds at speed 1 that a message costs its sender, and also its receiver */
    double message_s;
    bool attends; /* true: peers have a thread for messages; false: they handle messages between two tasks */
    uint64_t seed;
    /* Return how many seconds the peer's own clock counts in one second. A peer with a slow clock reports too
     * high a speed. Powers of two avoid rounding. NULL: all clocks are right
     */
    double (*clock)(void *self, uint32_t peer);
    void *self;
} kl_sim_peers;

typedef struct kl_sim_peers_outcome {
    double elapsed_s; /* seconds until the root knows that every task is counted */
    double work_s, bound_s;
    uint64_t results, executed; /* number of tasks counted; number of tasks that peers did */
    uint64_t twice;             /* number of tasks that were counted more than once; above 0 is an error */
    bool exact;                 /* true: the root got the right sum of all results */
    /* messages sent by all peers together; messages sent by the peer that sent most */
    uint64_t messages, most_messages;
    /* number of tasks given to other peers; number of tasks lost with a peer and given to another one */
    uint64_t moved, adopted;
    uint32_t peers, rounds, deaths;
} kl_sim_peers_outcome;

/* Run the tasks one time, all equally shared at the start. run->result_bytes is not used, because results
 * are combined on their way. KILTER_ERR_PEER: peer 0 died; the message says how many tasks were counted.
 * KILTER_ERR_MEMORY. KILTER_ERR_RANGE: the run cannot end, because no event is left. */
kilter_status kl_sim_peers_run(const kl_sim_peers *peers, const kl_sim_run *run,
                               kl_sim_peers_outcome *outcome, kilter_error *error);

#endif
