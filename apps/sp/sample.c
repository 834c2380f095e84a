#include "sample.h"

#include "support.h"

static size_t draw(const sp_problem *problem, const sp_variable *variable, double u) {
    size_t low = variable->first,
           high = variable->end -
                  1; /* `below` of the last outcome is 1, so the search always finds an outcome */
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
    uint64_t stream = sp_mix64(sp_mix64(seed) + scenario);
    for (int k = 0; k < problem->variables; k++) {
        double u = (double)(sp_mix64(stream + (uint64_t)k) >> 11) * 0x1p-53;
        outcome[k] = draw(problem, &problem->variable[k], u);
    }
}

/* Return the position of i in a random permutation of 0 … n−1. A Feistel network permutes the numbers below
 * the next power of 4, without a table. The network is applied again until the value is below n. */
static uint64_t permuted(uint64_t i, uint64_t n, uint64_t key) {
    int half = 1;
    while (half < 31 && (UINT64_C(1) << (2 * half)) < n)
        half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 6; round++) {
            uint64_t next = left ^ (sp_mix64(key + (round << 32) + right) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

static void draw_latin(const sp_problem *problem, const sp_sampling *sampling, uint64_t scenario,
                       size_t *outcome) {
    uint64_t seed = sp_mix64(sampling->seed), stream = sp_mix64(seed + scenario);
    for (int k = 0; k < problem->variables; k++) {
        uint64_t stratum = permuted(scenario, sampling->scenarios, sp_mix64(~seed + (uint64_t)k));
        double within = (double)(sp_mix64(stream + (uint64_t)k) >> 11) * 0x1p-53;
        outcome[k] =
            draw(problem, &problem->variable[k], ((double)stratum + within) / (double)sampling->scenarios);
    }
}

/* Set outcome[] to combination number `scenario` of the variables' outcomes. The combinations are counted so
 * that the last variable changes fastest. */
static void draw_counted(const sp_problem *problem, uint64_t scenario, size_t *outcome) {
    for (int k = problem->variables - 1; k >= 0; k--) {
        const sp_variable *variable = &problem->variable[k];
        uint64_t outcomes = variable->end - variable->first;
        outcome[k] = variable->first + scenario % outcomes;
        scenario /= outcomes;
    }
}

void sp_scenario(const sp_problem *problem, const sp_sampling *sampling, uint64_t scenario, size_t *outcome) {
    switch (sampling->draw) {
    case SP_INDEPENDENT:
        sp_sample(problem, sampling->seed, scenario, outcome);
        break;
    case SP_LATIN:
        draw_latin(problem, sampling, scenario, outcome);
        break;
    case SP_ALL:
        draw_counted(problem, scenario, outcome);
        break;
    }
}

double sp_scenario_weight(const sp_problem *problem, const sp_sampling *sampling, const size_t *outcome) {
    if (sampling->draw != SP_ALL)
        return 1 / (double)sampling->scenarios;
    double weight = 1;
    for (int k = 0; k < problem->variables; k++)
        weight *= sp_outcome_probability(problem, &problem->variable[k], outcome[k]);
    return weight;
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
