/* Public header of the folder sim: simulate farms and peers in virtual time. Master, workers and peers run
 * the same code as on real machines. This folder gives them a simulated clock, messages that take time, and
 * hosts on which they compute. */
#ifndef KL_SIM_H
#define KL_SIM_H

#include "engine/engine.h"
#include "peer/peer.h"
#include "platform/platform.h"

/* A simulated farm on a described platform. There is a worker on each host, and all workers are present
 * before the first run. */
typedef struct kl_sim kl_sim;

enum { KL_SIM_HOST_BYTES = 16 };

typedef struct kl_sim_farm {
    const kl_cluster *cluster; /* the platform, which must stay valid as long as the simulation */
    const kl_policy *policy;
    void (*name_host)(uint32_t worker,
                      char name[KL_SIM_HOST_BYTES]); /* function that gives the name of a host for the record;
                                                        NULL: all names are "" */
    double factor;   /* parameter of the policy, if it has one; 0: the policy's default */
    double answer_s; /* seconds at speed 1 that the master needs for each message */
    double byte_s;   /* additional seconds at speed 1 that the master needs for each byte of a chunk */
    /* seconds that it takes to start a message [m_o in docs/explanation/model.md]; a worker can compute
     * during this time */
    double startup_s;
    bool renews; /* true: the speed profiles of the hosts begin again at each run; false: they begin once, at
                    the first run */
} kl_sim_farm;

typedef struct kl_sim_run {
    uint64_t tasks;
    /* Return the seconds of task `index` at speed 1; runs are numbered 0, 1, …. If this is NULL, every task
     * takes even_s. */
    double (*task_s)(void *self, uint64_t run, uint64_t index);
    void *self;
    double even_s;
    size_t task_bytes, result_bytes; /* bytes of each input, of each result */
} kl_sim_run;

typedef struct kl_sim_outcome {
    double began_s, elapsed_s;  /* began_s: seconds since the first run began; the speed profiles of the hosts
                                   begin then, too */
    double work_s;              /* seconds of all tasks together at speed 1 */
    uint64_t results, executed; /* results: number of results, one for each task; executed: number of times
                                   that workers executed a task, which counts repetitions */
    uint64_t chunks, messages;  /* numbers of chunks and of messages in this run */
    double master_busy_s;
    uint32_t workers; /* number of workers that did at least one task */
} kl_sim_outcome;

/* Make the farm and connect all workers. A failure gives KILTER_ERR_MEMORY. */
kilter_status kl_sim_new(const kl_sim_farm *farm, kl_sim **sim, kilter_error *error);
void kl_sim_free(kl_sim *sim); /* free a simulation; NULL: do nothing */
/* Simulate the next run. Each message and each task costs O(log workers). KILTER_ERR_RANGE: the run cannot
 * end, because no event is left; KILTER_ERR_MEMORY; or an error of the farm. */
kilter_status kl_sim_run_next(kl_sim *sim, const kl_sim_run *run, kl_sim_outcome *outcome,
                              kilter_error *error);
/* Decide whether peers should organise another run like `run`, as `--organise auto` does. The decision's
 * count is the number of peers; 0: the master should organise the run. */
kl_decision kl_sim_way(const kl_sim *sim, const kl_sim_run *run);
/* Take in the result of a run that peers have organised, for the next decision of kl_sim_way(). */
void kl_sim_note_peers(kl_sim *sim, uint64_t tasks, double elapsed_s);
/* Record the farm in this trace from now on. */
void kl_sim_record(kl_sim *sim, kl_trace *trace);
/* Get the progress of the present run. The function task_s of the run may call this. */
void kl_sim_progress(const kl_sim *sim, kl_progress *progress);
double kl_sim_now_s(const kl_sim *sim); /* return the seconds since the farm was opened, as in the record */

/* Simulated peers without a master (peers.c). There is a peer on each host of a platform. */
typedef struct kl_sim_peers {
    const kl_cluster *cluster;
    const kl_help *help;
    /* seconds at speed 1 that a message costs its sender, and that it costs its receiver */
    double message_s;
    bool attends; /* true: peers have a thread for messages; false: peers handle messages only between two
                     tasks */
    uint64_t seed;
    /* Return how many seconds pass on the clock of this peer in one second. A peer with a slow clock reports
     * too high a speed. Powers of two avoid rounding. If this is NULL, all clocks are right. */
    double (*clock)(void *self, uint32_t peer);
    void *self;
} kl_sim_peers;

typedef struct kl_sim_peers_outcome {
    double elapsed_s; /* seconds until the root knows that every task is counted */
    double work_s, bound_s;
    uint64_t results,
        executed;   /* results: number of counted tasks; executed: number of tasks that peers did */
    uint64_t twice; /* number of tasks that were counted more than once; above 0: the protocol has an error */
    bool exact;     /* true: the root has the right sum of all results */
    /* messages: number of messages of all peers; most_messages: number of messages of the peer that sent most
     */
    uint64_t messages, most_messages;
    /* moved: number of tasks given to other peers; adopted: number of tasks that were lost with a dead peer
     * and given to another one */
    uint64_t moved, adopted;
    uint32_t peers, rounds, deaths;
} kl_sim_peers_outcome;

/* Simulate one run of the tasks, which are equally shared at the start. run->result_bytes is not used,
 * because peers combine results on their way. KILTER_ERR_PEER: peer 0 died; the error says how many tasks
 * were counted. KILTER_ERR_RANGE: the run cannot end, because no event is left. KILTER_ERR_MEMORY */
kilter_status kl_sim_peers_run(const kl_sim_peers *peers, const kl_sim_run *run,
                               kl_sim_peers_outcome *outcome, kilter_error *error);

#endif
