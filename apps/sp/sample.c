#include "sample.h"

#include "base/base.h"

static size_t draw(const sp_problem *problem, const sp_variable *variable, double u) {
    size_t low = variable->first, high = variable->end - 1; /* the last lies below 1: always a hit */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u < problem->outcome[middle].below)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void sp_sample(const sp_problem *problem, uint64_t seed, uint64_t scenario, size_t *outcome) {
    uint64_t stream = kl_mix64(kl_mix64(seed) + scenario);
    for (int k = 0; k < problem->variables; k++) {
        double u = (double)(kl_mix64(stream + (uint64_t)k) >> 11) * 0x1p-53;
        outcome[k] = draw(problem, &problem->variable[k], u);
    }
}

void sp_target_values(const sp_problem *problem, const size_t *outcome, double *value) {
    for (int t = 0; t < problem->targets; t++)
        value[t] = problem->target[t].core;
    for (int k = 0; k < problem->variables; k++) {
        const sp_outcome *at = &problem->outcome[outcome[k]];
        for (size_t c = at->first; c < at->end; c++)
            value[problem->change[c].target] = problem->change[c].value;
    }
}

double sp_outcome_probability(const sp_problem *problem, const sp_variable *variable, size_t at) {
    double before = at > variable->first ? problem->outcome[at - 1].below : 0;
    return problem->outcome[at].below - before;
}

void sp_target_means(const sp_problem *problem, double *mean) {
    for (int t = 0; t < problem->targets; t++)
        mean[t] = problem->target[t].core;
    for (int k = 0; k < problem->variables; k++) {
        const sp_variable *variable = &problem->variable[k];
        for (size_t at = variable->first; at < variable->end; at++) {
            double p = sp_outcome_probability(problem, variable, at);
            for (size_t c = problem->outcome[at].first; c < problem->outcome[at].end; c++) {
                int t = problem->change[c].target;
                mean[t] += p * (problem->change[c].value - problem->target[t].core);
            }
        }
    }
}

double sp_scenario_count(const sp_problem *problem) {
    double count = 1;
    for (int k = 0; k < problem->variables; k++)
        count *= (double)(problem->variable[k].end - problem->variable[k].first);
    return count;
}
