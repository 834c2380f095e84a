/* Within the first run of a farm: do fewer workers pay? Nothing is known of it before, and there may be no
 * second run. The cores that workers share are enough to see that more of them bring nothing. */
#include <stdio.h>

#include "farm/master_private.h"

/* Looks are taken when so many tasks are done as each worker has on average, and then after twice as many. */
static const uint64_t TASKS_EACH = 8;
static const double LATEST = 0.5; /* of the tasks: later it pays no more */
static const uint32_t AGREE = 2;  /* looks */
static const double WORSE = 1.05; /* n·T² of a task against before */

void kl_master_glance_begins(kl_master *m) {
    bool looks = m->runs == 0 && m->chooses && !m->open && m->seats == 0 && m->options.used;
    uint64_t first = TASKS_EACH * (m->ready + 1);
    m->glance = (kl_glance){
        .at_done = looks ? m->done + first : UINT64_MAX, .then_s = m->began_s, .then_done = m->done};
}

static void record(kl_master *m, uint32_t workers) {
    kl_trace_decision(m->trace, &(kl_trace_decision_row){.run = m->runs,
                                                         .chunk = UINT64_MAX,
                                                         .at_s = kl_now_s(&m->options.clock) - m->opened_s,
                                                         .worker = -1,
                                                         .kind = "workers",
                                                         .count = workers,
                                                         .reason = m->state.decision});
}

static kilter_status seat(kl_master *m, uint32_t workers, kilter_error *error) {
    m->seats = workers;
    record(m, workers);
    return kl_master_seat(m, error);
}

/* n·T², of a task, since the last look. */
static double cost_since(const kl_master *m, const kl_glance *g, uint32_t workers) {
    double task_s = (kl_now_s(&m->options.clock) - g->then_s) / (double)(m->done - g->then_done);
    return workers * task_s * task_s;
}

/* On trial since the last look. */
static kilter_status judge(kl_master *m, kilter_error *error) {
    kl_glance *g = &m->glance;
    bool worse = cost_since(m, g, m->seats) > WORSE * g->cost;
    g->at_done = UINT64_MAX;
    if (!worse)
        return KILTER_OK;
    snprintf(m->state.decision, sizeof m->state.decision,
             "back to %u workers in this run: with %u it went slower than that saves", g->from, m->seats);
    uint32_t from = g->from;
    kilter_status status = seat(m, from, error);
    m->seats = 0;
    return status;
}

static kilter_status look(kl_master *m, kilter_error *error) {
    kl_glance *g = &m->glance;
    char reason[KL_REASON_BYTES];
    uint32_t workers = m->ready - m->resting, best;
    kl_iteration it = kl_master_iteration_so_far(m);
    if (!kl_load_known(&it.load) || (best = kl_team_expect(&it, reason)) == 0)
        return KILTER_OK;
    g->best = best > g->best ? best : g->best;
    g->agree = best < workers ? g->agree + 1 : 0;
    snprintf(m->state.decision, sizeof m->state.decision, "%s", reason);
    if (g->agree < AGREE) {
        record(m, workers);
        return KILTER_OK;
    }
    g->from = workers;
    g->cost = cost_since(m, g, workers);
    return seat(m, g->best, error);
}

kilter_status kl_master_glance(kl_master *m, kilter_error *error) {
    kl_glance *g = &m->glance;
    if (m->done < g->at_done || !m->running)
        return KILTER_OK;
    if ((double)m->done > LATEST * (double)m->summary.tasks || m->by_hand) {
        g->at_done = UINT64_MAX;
        return KILTER_OK;
    }
    g->at_done = 2 * m->done;
    kilter_status status = g->from > 0 ? judge(m, error) : look(m, error);
    g->then_s = kl_now_s(&m->options.clock);
    g->then_done = m->done;
    return status;
}
