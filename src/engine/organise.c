/* Decide by the measurements of earlier runs whether the master or the workers organise a run. */
#include <math.h>
#include <stdio.h>

#include "engine/master_private.h"

/* In one message, a peer sends its own results and those of the peers below it in the tree. These are the
 * results of at most PEERS_IN_REPORT peers. A message has at most 1 GiB. PEER_BYTES is a quarter of this
 * limit, because one message may be four times as large as the mean message. */
static const double PEERS_IN_REPORT = 1 + KL_PEERS_BELOW, PEER_BYTES = 256.0 * (1 << 20);

/* Assume that each worker does an equal part of the run. Return whether the results of PEERS_IN_REPORT parts
 * are too large for one message. result_bytes = 0: the size of a result is not known. */
static bool are_large(const kilter_run *run, uint32_t workers, double result_bytes) {
    double bytes = result_bytes * (double)run->tasks * fmin(1, PEERS_IN_REPORT / fmax(1, workers));
    return !run->reduce && bytes > PEER_BYTES;
}

static const char LARGE[] = "results are large, and peers would send too many in one message";

const char *kl_master_never_peers(const kl_master *m, const kilter_run *run, uint32_t workers) {
    const kl_limits *l = &m->options.limits;
    if (run->grows)
        return "a run that grows needs a master";
    if (run->series != 0)
        return "a series needs a master, which knows which worker did a task before";
    if (run->task_timeout_s > 0 || l->task_s > 0 || l->task_times > 0)
        return "a task's time limit needs a master";
    if (run->retries > 0 || l->retries > 0)
        return "retrying failed tasks needs a master";
    if (are_large(run, workers, (double)run->result_bytes))
        return LARGE;
    if (l->worker_tasks > 0 || l->worker_memory > 0)
        return "a worker's limits need a master";
    return NULL;
}

/* Return the bytes of a result of the run. If the program does not fix this size, return the mean size in
 * `last`, the last run that the master organised. Return 0 if there was none. */
static double result_bytes_of(const kilter_run *run, const kl_iteration *last) {
    if (run->result_bytes > 0)
        return (double)run->result_bytes;
    double all = (1 - last->model.to_workers) * last->model.bytes;
    return last->tasks > 0 ? all / (double)last->tasks : 0;
}

kl_decision kl_master_way(const kl_master *m, const kilter_run *run, kl_organise wanted) {
    const kl_organising *o = &m->organising;
    uint32_t workers = kl_master_active(m);
    const char *never = kl_master_never_peers(m, run, workers);
    if (!never && run->weights)
        never = "tasks have weights, by which a master deals";
    double result_bytes = result_bytes_of(run, &o->by_master);
    if (!never && are_large(run, workers, result_bytes))
        never = LARGE;
    bool measured = o->by_master.tasks > 0;
    double tasks = (double)run->tasks;
    kl_organise_look look = {.wanted = wanted,
                             .never = never,
                             .workers = workers,
                             .tasks = run->tasks,
                             .result_bytes = run->reduce ? 0 : result_bytes * tasks,
                             .last = measured ? &o->by_master : NULL,
                             .master_runs = o->master_runs,
                             .task_s = measured ? m->balance.snapshot.unit_s.mean : 0,
                             .by_master_s = o->with_master.task_s * tasks,
                             .by_peers_s = o->with_peers.count == workers ? o->with_peers.task_s * tasks : 0,
                             .tried = o->with_peers.task_s > 0,
                             .on_trial = m->staff.chooses && m->staff.team.tried_from > 0,
                             .best_index = m->staff.chooses ? o->best_index * tasks * tasks : 0,
                             .lost_s = o->lost_s};
    return kl_organise_choose(&look);
}

bool kl_master_organise(kl_master *m, const kilter_run *run) {
    kl_organising *o = &m->organising;
    kl_organise wanted = m->options.organise;
    kl_decision d = kl_master_way(m, run, wanted);
    double now_s = kl_now_s(&m->options.clock);
    o->sum_bytes = run->reduce ? run->result_bytes : 0;
    o->peers = wanted == KL_ORGANISE_PEERS || d.count > 0;
    d.forecast_s = d.forecast_s > 0 ? now_s + d.forecast_s : 0;
    bool says = wanted == KL_ORGANISE_PEERS || (wanted == KL_ORGANISE_AUTO && o->by_master.tasks > 0);
    if (says && run->tasks > 0)
        kl_master_record_decision(m, now_s, &d, NULL);
    return o->peers;
}

/* a function that returns the new mean of `runs` earlier runs, whose mean is `before`, and the latest run */
typedef double mean_of(uint64_t runs, double before, double latest);

/* Add the latest run to the mean of its way. */
static void add_run(const kl_master *m, kl_way_runs *way, mean_of *mean, double task_s) {
    uint32_t count = kl_master_active(m);
    if (way->count != count)
        way->runs = 0;
    way->count = count;
    way->task_s = mean(way->runs++, way->task_s, task_s);
}

void kl_master_note_peers(kl_master *m, uint64_t tasks, double elapsed_s) {
    kl_organising *o = &m->organising;
    add_run(m, &o->with_peers, kl_organise_mean, elapsed_s / (double)tasks);
    o->lost_s = 0;
}

/* Add the last run, which the master organised, to the mean. */
static void note_master(kl_master *m) {
    kl_organising *o = &m->organising;
    o->by_master = kl_master_iteration(m);
    o->by_master.speeds = (kl_speeds){0};
    add_run(m, &o->with_master, kl_organise_mean_of_master,
            o->by_master.elapsed_s / (double)o->by_master.tasks);
    if (o->master_runs++ >= KL_COLD_RUNS)
        o->lost_s += kl_organise_lost_s(&o->by_master);
}

void kl_master_note_organised(kl_master *m) {
    kl_organising *o = &m->organising;
    bool whole = m->run.done == m->run.summary.tasks && m->run.summary.stored == 0 && !m->run.grown;
    if (!whole || m->run.summary.tasks == 0)
        return;
    if (o->peers) { /* a run of peers counts even if the master dealt its last tasks */
        kl_master_note_peers(m, m->run.summary.tasks, m->run.summary.elapsed_s);
    } else {
        note_master(m);
    }
}
