/* Counter-based sampling: scenario i depends only on the seed and i, so any worker can draw it at any
 * time. */
#ifndef SP_SAMPLE_H
#define SP_SAMPLE_H

#include "smps.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Draw outcome[k] for each variable k, an index into problem->outcome:
 *   u = (mix(mix(mix(seed) + scenario) + k) >> 11) · 2⁻⁵³,  the first outcome with u < below
 * where mix is splitmix64's step and finaliser (sp_mix64). */
void sp_sample(const sp_problem *problem, uint64_t seed, uint64_t scenario, size_t *outcome);

/* The method by which a sample is drawn, and the number of its scenarios. */
typedef struct sp_sampling {
    enum sp_draw {
        SP_INDEPENDENT, /* draw each scenario independently, as sp_sample() does */
        /* Latin hypercube: divide each variable's probability into `scenarios` equal parts, and draw once in
         * each part. For variable k, scenario i takes u = (p(i) + the u of sp_sample()) / scenarios. The
         * permutation p depends on the seed and k */
        SP_LATIN,
        SP_ALL, /* take each scenario of the whole distribution exactly once; the seed has no effect */
    } draw;
    uint64_t seed, scenarios;
} sp_sampling;

/* Draw outcome[k] for each variable k. `scenario` is the number of the scenario, 0 … scenarios−1. */
void sp_scenario(const sp_problem *problem, const sp_sampling *sampling, uint64_t scenario, size_t *outcome);

/* Return the scenario's weight in the expected cost; all weights add up to 1. */
double sp_scenario_weight(const sp_problem *problem, const sp_sampling *sampling, const size_t *outcome);

/* Compute value[t] of each random number t from the variables' outcome[]. */
void sp_target_values(const sp_problem *problem, const size_t *outcome, double *value);

/* Compute mean[t], the expectation of each random number t over the whole distribution. */
void sp_target_means(const sp_problem *problem, double *mean);

/* Return the probability with which the sampler draws the outcome number `at` of `variable`. */
double sp_outcome_probability(const sp_problem *problem, const sp_variable *variable, size_t at);

/* Return the number of scenarios of the whole distribution. The result is a double, because the number easily
 * exceeds 2^64. */
double sp_scenario_count(const sp_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
