/* Measure the values from which the next run's number of tasks is chosen. Store the program's own forecast
 * for its coming runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/master_private.h"

void kl_master_spent(kl_master *m, double seconds) {
    m->planning.master_s = seconds;
    if (m->run.number > 0 && m->run.summary.tasks > 0 && !m->run.grown)
        kl_line_add(&m->planning.alone, (double)m->run.summary.tasks, seconds);
}

/* Compare the time of the last run with the model's forecast for the same number of tasks, and update lost_s
 * by the difference. Do this only once after each run. */
static void learn_lost(kl_master *m, const kl_grain_look *look) {
    kl_grain_question same = {.least = look->tasks, .most = look->tasks};
    kl_grain_plan plan;
    if (m->planning.lost_runs == m->run.number || look->tasks == 0 || m->run.done < m->run.summary.tasks ||
        look->lane_count != m->run.summary.workers || kl_grain_choose(look, &same, &plan) != KILTER_OK)
        return;
    double lost_s = fmax(0, m->run.summary.elapsed_s - plan.workers_s - plan.messages_s);
    m->planning.lost_s = m->planning.lost_s > 0 ? (m->planning.lost_s + lost_s) / 2 : lost_s;
    m->planning.lost_runs = m->run.number;
}

kilter_status kl_master_grain(kl_master *m, double spent_s, double work, kl_grain_look *look) {
    if (m->run.grown)
        return KILTER_ERR_USAGE;
    kl_lane *lanes = calloc((size_t)m->balance.snapshot.present + 1, sizeof *lanes);
    if (!lanes)
        return KILTER_ERR_MEMORY;
    kl_line alone = m->planning.alone;
    if (m->run.number > 0 && m->run.summary.tasks > 0)
        /* spent_s may still change; kl_master_spent() sets the final value */
        kl_line_add(&alone, (double)m->run.summary.tasks, spent_s);
    kl_balance_grain(&m->balance, 0, lanes, look);
    learn_lost(m, look);
    kl_balance_grain(&m->balance, work, lanes, look);
    look->lost_s = m->planning.lost_s;
    look->model.master = kl_line_fit(&alone);
    look->least_seen = (uint64_t)alone.least_x;
    look->most_seen = (uint64_t)alone.most_x;
    return KILTER_OK;
}

void kl_master_note_grain(kl_master *m, const kl_grain_plan *plan) {
    m->planning.grain = *plan;
}

void kl_master_record_grain(kl_master *m) {
    if (m->planning.grain.decision.count == 0)
        return;
    m->planning.grain.decision.forecast_s =
        m->run.open ? 0 : m->run.began_s + m->planning.grain.workers_s + m->planning.grain.messages_s;
    kl_master_record_decision(m, m->run.began_s, &m->planning.grain.decision, NULL);
    m->planning.grain.decision.count = 0;
}

void kl_master_note_expectation(kl_master *m, const kl_expectation *expectation) {
    if (expectation->runs > 0)
        m->planning.expected = *expectation;
}

void kl_master_record_expectation(kl_master *m) {
    if (m->planning.expected.runs == 0)
        return;
    kl_decision d = {.kind = KL_DECIDES_PROGRAM,
                     .subject = KL_SUBJECT_ALL,
                     .count = m->planning.expected.runs,
                     .forecast_s = m->planning.expected.end_s};
    snprintf(d.reason, sizeof d.reason, "%s", m->planning.expected.reason);
    kl_master_record_decision(m, m->run.began_s, &d, NULL);
    m->planning.expected.runs = 0;
}
