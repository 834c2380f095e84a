/* The CPU time that a run costs. It has three parts: the farm, the program's callbacks, and the workers on
 * the master's host. */
#include <math.h>
#include <string.h>

#include "engine/master_private.h"

static bool look(const kl_master *m, double *farm_s, double *callbacks_s) {
    return m->options.used && m->options.used(m->options.self, farm_s, callbacks_s);
}

void kl_master_use_begins(kl_master *m) {
    m->use.messages = 0;
    m->use.known = look(m, &m->use.farm_then_s, &m->use.callbacks_then_s);
    for (size_t i = 0; i < m->members.count; i++) {
        member *one = &m->members.list[i];
        one->run_cpu_s = one->run_delay_s = 0;
        if (m->peers.on) /* peers do not report during a run, so their next reports include the last run */
            one->cpu_s = one->delay_s = 0;
    }
}

/* Return by how much a total has grown. Return 0 if the total is smaller than before, because the worker has
 * started again. */
static double gained(double now_s, double before_s) {
    return fmax(0, now_s - before_s);
}

void kl_master_use_told(const kl_master *m, member *one, const kl_results_head *head) {
    /* the worker reports totals, so add the growth since its last report */
    if (m->run.running && one->cpu_s > 0) {
        one->run_cpu_s += gained(head->cpu_s, one->cpu_s);
        one->run_delay_s += gained(head->delay_s, one->delay_s);
    }
    one->cpu_s = head->cpu_s;
    one->delay_s = head->delay_s;
}

static void add_workers(const kl_master *m, kl_use *use) {
    for (size_t i = 0; i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        const kl_worker_view *v = one->has_place ? &m->balance.views[one->worker] : NULL;
        use->delay_s += one->run_delay_s;
        if (!v || strcmp(one->host, m->options.host) != 0 || !(one->run_cpu_s > 0))
            continue;
        use->local_s += one->run_cpu_s;
        use->local_tasks += (double)v->run_unit_s.count;
    }
}

kl_use kl_master_use_so_far(const kl_master *m) {
    const kl_snapshot *s = &m->balance.snapshot;
    double farm_s, callbacks_s, tasks = (double)(m->run.done - m->run.summary.stored);
    if (!m->use.known || !look(m, &farm_s, &callbacks_s))
        return (kl_use){0};
    kl_use use = {.farm_s = farm_s - m->use.farm_then_s,
                  .callbacks_s = callbacks_s - m->use.callbacks_then_s,
                  .tasks = tasks,
                  .messages = (double)(m->use.messages + m->balance.chunks),
                  .bytes = tasks * (s->task_bytes + s->result_bytes),
                  .cores = m->options.cores};
    add_workers(m, &use);
    return use;
}

void kl_master_record_use(kl_master *m) {
    const kl_use *u = &m->use.last;
    /* in a run of peers the costs are unknown, because peers do not report their CPU time */
    if (!(u->farm_s > 0) || m->peers.on)
        return;
    kl_master_record_measurement(m, -1, "farm_cpu_s", u->farm_s);
    kl_master_record_measurement(m, -1, "callbacks_cpu_s", u->callbacks_s);
    kl_master_record_measurement(m, -1, "local_cpu_s", u->local_s);
    kl_master_record_measurement(m, -1, "local_tasks", u->local_tasks);
    kl_master_record_measurement(m, -1, "delay_s", u->delay_s);
    kl_master_record_measurement(m, -1, "messages", u->messages);
    kl_master_record_measurement(m, -1, "cores", u->cores);
    for (size_t i = 0; i < m->members.count; i++)
        if (m->members.list[i].run_cpu_s > 0)
            kl_master_record_measurement(m, m->members.list[i].number, "cpu_s", m->members.list[i].run_cpu_s);
}
