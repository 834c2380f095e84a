/* Choose the number of active workers during a farm's first run. The farm has no measurements before this
 * run, and it may have no second run. */
#include <math.h>

#include "engine/master_private.h"

/* seconds from the beginning of the run until the number of workers is first checked */
static const double FIRST_S = 0.1;

void kl_master_glance_begins(kl_master *m) {
    bool looks =
        m->run.number == 0 && m->staff.chooses && !m->run.open && m->staff.seats == 0 && m->options.used;
    m->staff.glance = (kl_glance){.began_s = m->run.began_s, .then_s = m->run.began_s};
    m->staff.glance_due_s = looks ? m->run.began_s + FIRST_S : HUGE_VAL;
}

static kilter_status take(kl_master *m, const kl_glance_plan *plan, kl_buffer *grounds, kilter_error *error) {
    snprintf(m->state.decision, sizeof m->state.decision, "%s", plan->decision.reason);
    kl_master_record_look(m, (uint32_t)plan->decision.count, grounds);
    if (!plan->changed)
        return KILTER_OK;
    m->staff.seats = (uint32_t)plan->decision.count;
    kilter_status status = kl_master_seat(m, error);
    m->staff.seats = m->staff.glance.from > 0 ? (uint32_t)plan->decision.count : 0;
    return status;
}

kilter_status kl_master_glance(kl_master *m, kilter_error *error) {
    double now_s;
    if (m->staff.glance_due_s == HUGE_VAL || !m->run.running ||
        (now_s = kl_now_s(&m->options.clock)) < m->staff.glance_due_s)
        return KILTER_OK;
    if (m->staff.pending.set & KL_TUNE_WORKERS) {
        m->staff.glance_due_s = HUGE_VAL;
        return KILTER_OK;
    }
    const kl_iteration it = kl_master_iteration_so_far(m);
    const kl_use *use = &it.load.use;
    const kl_sight sight = {.now_s = now_s,
                            .cpu_s = use->farm_s + use->callbacks_s + use->local_s,
                            .cores = use->cores,
                            .workers = kl_master_active(m),
                            .done = m->run.done - m->run.summary.stored,
                            .load = &it.load};
    kl_glance_plan plan;
    kl_buffer grounds = {0};
    m->staff.glance_due_s = kl_glance_due_s(&m->staff.glance, now_s);
    if (kl_grounds_look(&grounds, &m->staff.glance, &sight, &plan))
        return take(m, &plan, &grounds, error);
    kl_buffer_free(&grounds);
    return KILTER_OK;
}
