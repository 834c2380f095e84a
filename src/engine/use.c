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
        cpu_report *use = &m->members.list[i].use;
        *use = (cpu_report){.cpu_s = use->cpu_s, .delay_s = use->delay_s};
    }
    if (m->peers.on) /* peers did not report during the last run, so their next reports include that run */
        kl_master_use_anew(m);
}

void kl_master_use_anew(kl_master *m) {
    for (size_t i = 0; i < m->members.count; i++)
        m->members.list[i].use = (cpu_report){0};
}

static const kl_worker_view *view_of(const kl_master *m, const member *one) {
    return one->has_place ? &m->balance.views[one->worker] : NULL;
}

/* Return by how much a total has grown. Return 0 if the total is smaller than before, because the worker has
 * started again. */
static double gained(double now_s, double before_s) {
    return fmax(0, now_s - before_s);
}

void kl_master_use_told(const kl_master *m, member *one, const kl_results_head *head) {
    const kl_worker_view *v = view_of(m, one);
    cpu_report *use = &one->use;
    /* the worker reports totals, so add the growth since its last report */
    if (m->run.running && use->cpu_s > 0) {
        if (!use->grows)
            use->tasks_before = v ? (double)v->run_unit_s.count : 0;
        use->grows = true;
        use->run_cpu_s += gained(head->cpu_s, use->cpu_s);
        use->run_delay_s += gained(head->delay_s, use->delay_s);
    }
    use->cpu_s = head->cpu_s;
    use->delay_s = head->delay_s;
}

/* If the CPU time of fewer tasks than this part is known, the CPU time of all tasks counts as unknown. */
static const double LEAST_KNOWN = 0.25;

/* Seconds that were reported for `known` of `all` tasks. */
typedef struct reported {
    double s, all, known;
} reported;

static void add(reported *sum, const member *one, const kl_worker_view *v, double seconds) {
    double tasks = v && one->use.cpu_s > 0 ? (double)v->run_unit_s.count : 0;
    sum->s += seconds;
    sum->all += tasks;
    sum->known += one->use.grows ? fmax(0, tasks - one->use.tasks_before) : 0;
}

/* A worker's first report may only show where its growth begins. The tasks before it count like the others.
 */
static double seconds_of_all(const reported *sum) {
    return sum->known > 0 ? sum->s * fmax(1, sum->all / sum->known) : sum->s;
}

/* Add the CPU time of workers on the master's host, and the delays of all workers. Return false if the CPU
 * time of too few tasks is known. */
static bool add_workers(const kl_master *m, kl_use *use) {
    reported local = {0}, delays = {0};
    for (size_t i = 0; i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        const kl_worker_view *v = view_of(m, one);
        add(&delays, one, v, one->use.run_delay_s);
        if (v && strcmp(one->host, m->options.host) == 0)
            add(&local, one, v, one->use.run_cpu_s);
    }
    use->local_s = seconds_of_all(&local);
    use->local_tasks = local.all;
    use->delay_s = seconds_of_all(&delays);
    return local.known >= LEAST_KNOWN * local.all;
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
    return add_workers(m, &use) ? use : (kl_use){0};
}

void kl_master_record_use(kl_master *m) {
    const kl_use *u = &m->use.last;
    /* a run without tasks has no costs; those of a run of peers are unknown, because peers do not report
     * their CPU time */
    if (!(u->farm_s > 0) || !(u->tasks > 0) || m->peers.on)
        return;
    kl_master_record_measurement(m, -1, "farm_cpu_s", u->farm_s);
    kl_master_record_measurement(m, -1, "callbacks_cpu_s", u->callbacks_s);
    kl_master_record_measurement(m, -1, "local_cpu_s", u->local_s);
    kl_master_record_measurement(m, -1, "local_tasks", u->local_tasks);
    kl_master_record_measurement(m, -1, "delay_s", u->delay_s);
    kl_master_record_measurement(m, -1, "messages", u->messages);
    kl_master_record_measurement(m, -1, "cores", u->cores);
    for (size_t i = 0; i < m->members.count; i++) {
        const member *one = &m->members.list[i];
        if (one->use.run_cpu_s > 0)
            kl_master_record_measurement(m, one->number, "cpu_s", one->use.run_cpu_s);
    }
}
