#include "cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

sp_span sp_cluster(uint64_t scenarios, uint64_t clusters, uint64_t at) {
    return (sp_span){at * scenarios / clusters, (at + 1) * scenarios / clusters};
}

/* Set a slope to 0 if its terms cancel each other up to rounding, because CLP's scaling would magnify the
 * remainder. */
static void drop_rounding(double *slope, const double *size, int columns) {
    /* a slope below this fraction of the sum of its terms' absolute values becomes 0 */
    static const double ROUNDING = 1e-11;
    for (int j = 0; j < columns; j++)
        if (fabs(slope[j]) <= ROUNDING * size[j])
            slope[j] = 0;
}

/* Make a feasibility cut from the infeasible scenario that was just solved. Do this only if the scenario
 * violates its rows by more than each earlier infeasible scenario of the cluster. */
static kilter_status take_miss(sp_evaluator *evaluator, uint64_t scenario, int columns, sp_cut *cut,
                               double *size, kilter_error *error) {
    sp_lp_status solved = SP_LP_STOPPED;
    double missed = 0;
    kilter_status status = sp_evaluator_miss(evaluator, &solved, &missed, error);
    if (status)
        return status;
    if (solved != SP_LP_OPTIMAL || !(missed > 0))
        return sp_evaluator_unsolved(evaluator, scenario, SP_LP_STOPPED, error);
    if (cut->feasible || missed > cut->value) {
        *cut = (sp_cut){.value = missed, .slope = cut->slope, .scenario = scenario};
        memset(cut->slope, 0, (size_t)columns * sizeof *cut->slope);
        memset(size, 0, (size_t)columns * sizeof *size);
        sp_evaluator_add_slope(evaluator, 1, cut->slope, size);
    }
    return KILTER_OK;
}

static kilter_status add_scenarios(sp_evaluator *evaluator, sp_span span, int columns, sp_cut *cut,
                                   double *size, kilter_error *error) {
    *cut = (sp_cut){.feasible = true, .slope = cut->slope};
    memset(cut->slope, 0, (size_t)columns * sizeof *cut->slope);
    uint64_t found_before = sp_evaluator_found(evaluator);
    for (uint64_t i = span.lo; i < span.hi; i++) {
        sp_lp_status solved = SP_LP_OPTIMAL;
        double value = 0;
        kilter_status status = sp_evaluator_recourse(evaluator, i, &solved, &value, error);
        if (!status && solved == SP_LP_INFEASIBLE)
            status = take_miss(evaluator, i, columns, cut, size, error);
        else if (!status && solved != SP_LP_OPTIMAL)
            status = sp_evaluator_unsolved(evaluator, i, solved, error);
        if (status)
            return status;
        if (cut->feasible) {
            double weight = sp_evaluator_weight(evaluator);
            cut->value += weight * value;
            sp_evaluator_add_slope(evaluator, weight, cut->slope, size);
        }
    }
    cut->found = sp_evaluator_found(evaluator) - found_before;
    return KILTER_OK;
}

kilter_status sp_cut_make(sp_evaluator *evaluator, sp_span span, int columns, sp_cut *cut,
                          kilter_error *error) {
    double *size = calloc((size_t)columns + 1, sizeof *size);
    if (!size)
        return sp_fail(error, KILTER_ERR_MEMORY,
                       "making a cut: memory ran out; use fewer workers on each host");
    kilter_status status = add_scenarios(evaluator, span, columns, cut, size, error);
    drop_rounding(cut->slope, size, columns);
    free(size);
    return status;
}

void sp_cut_put(sp_buffer *bytes, const sp_cut *cut, int columns) {
    sp_put_u8(bytes, cut->feasible);
    sp_put_u64(bytes, cut->scenario);
    sp_put_u64(bytes, cut->found);
    sp_put_f64(bytes, cut->value);
    for (int j = 0; j < columns; j++)
        sp_put_f64(bytes, cut->slope[j]);
}

bool sp_cut_get(const void *data, size_t size, int columns, sp_cut *cut) {
    sp_reader reader = sp_reader_of(data, size);
    uint8_t feasible = sp_get_u8(&reader);
    uint64_t scenario = sp_get_u64(&reader);
    uint64_t found = sp_get_u64(&reader);
    double value = sp_get_f64(&reader);
    bool finite = isfinite(value);
    for (int j = 0; j < columns; j++) {
        cut->slope[j] = sp_get_f64(&reader);
        finite = finite && isfinite(cut->slope[j]);
    }
    if (!sp_reader_done(&reader) || !finite || feasible > 1)
        return false;
    *cut = (sp_cut){
        .feasible = feasible, .value = value, .slope = cut->slope, .scenario = scenario, .found = found};
    return true;
}
