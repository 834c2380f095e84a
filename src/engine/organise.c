/* Decide, by what earlier runs have shown, whether the master or the workers organise a run. */
#include <math.h>
#include <stdio.h>

#include "engine/master_private.h"

/* A round's results are in one message of at most 1 GiB. A peer hands on those of 17 peers: its own, and
 * those of the 16 below it. Results of this size leave room for a share that is four times the mean. */
static const double PEERS_IN_REPORT = 17, PEER_BYTES = 256.0 * (1 << 20);

/* Would a report with the results of equal shares be too large? result_bytes 0: not known */
static bool are_large(const kl_master *m, const kilter_run *run, double result_bytes) {
    double workers = fmax(1, m->members.ready - m->members.resting);
    double bytes = result_bytes * (double)run->tasks * fmin(1, PEERS_IN_REPORT / workers);
    return !run->reduce && bytes > PEER_BYTES;
}

static const char LARGE[] = "results are large, and peers would send too many in one message";

const char *kl_master_never_peers(const kl_master *m, const kilter_run *run) {
    const kl_limits *l = &m->options.limits;
    if (run->grows)
        return "a run that grows needs a master";
    if (run->series != 0)
        return "a series needs a master, which knows who did a task before";
    if (run->task_timeout_s > 0 || l->task_s > 0 || l->task_times > 0)
        return "a task's time limit needs a master";
    if (run->retries > 0 || l->retries > 0)
        return "a failed task is tried again by a master only";
    if (are_large(m, run, (double)run->result_bytes))
        return LARGE;
    if (l->worker_tasks > 0 || l->worker_memory > 0)
        return "a worker's limits need a master";
    return NULL;
}

bool kl_master_organise(kl_master *m, const kilter_run *run) {
    kl_organising *o = &m->organising;
    const char *never = kl_master_never_peers(m, run);
    if (!never && run->weights)
        never = "tasks have weights, by which a master deals";
    if (!never && run->result_bytes == 0 && are_large(m, run, m->balance.snapshot.result_bytes))
        never = LARGE;
    const kl_stat *task_s = &m->balance.snapshot.unit_s;
    kl_organise_look look = {.wanted = m->options.organise,
                             .never = never,
                             .workers = m->members.ready - m->members.resting,
                             .tasks = run->tasks,
                             .last = o->by_master.tasks > 0 ? &o->by_master : NULL,
                             .task_s = o->by_master.tasks > 0 ? task_s->mean : 0,
                             .peers_s = o->peers_task_s * (double)run->tasks};
    kl_decision d = kl_organise_choose(&look);
    double now_s = kl_now_s(&m->options.clock);
    o->sum_bytes = run->reduce ? run->result_bytes : 0;
    o->peers = m->options.organise == KL_ORGANISE_PEERS || d.count > 0;
    d.forecast_s = d.forecast_s > 0 ? now_s + d.forecast_s : 0;
    bool says =
        m->options.organise == KL_ORGANISE_PEERS || (m->options.organise == KL_ORGANISE_AUTO && look.last);
    if (says && run->tasks > 0)
        kl_master_record_decision(m, now_s, &d, NULL);
    return o->peers;
}

void kl_master_note_organised(kl_master *m) {
    kl_organising *o = &m->organising;
    bool whole = m->run.done == m->run.summary.tasks && m->run.summary.stored == 0 && !m->run.grown;
    if (!whole || m->run.summary.tasks == 0)
        return;
    if (o->peers) { /* also if the master dealt the rest of the run */
        o->peers_task_s = m->run.summary.elapsed_s / (double)m->run.summary.tasks;
    } else {
        o->by_master = kl_master_iteration(m);
        o->by_master.speeds = (kl_speeds){0};
    }
}
