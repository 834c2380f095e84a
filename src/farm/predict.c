/* Predict the time of a fork-join program on workers whose speeds are given. */
#include <math.h>
#include <stdlib.h>

#include "decide/decide.h"
#include "kilter/predict.h"

static kilter_status check_number(const char *what, double value, kilter_error *error) {
    return value >= 0 && isfinite(value)
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_RANGE, "predicting: %s is %g; give a number not below 0", what,
                         value);
}

static kilter_status check(const kilter_program *p, const double *speeds, uint32_t workers,
                           kilter_error *error) {
    const struct {
        const char *what;
        double value;
    } numbers[] = {
        {"the number of iterations", p->iterations},
        {"the work of a run", p->work_s},
        {"the master's time", p->master_s},
        {"the master's time for a task", p->master_task_s},
        {"the round trip", p->round_trip_s},
        {"the time to take in a worker's results", p->update_s},
        {"a task's time on the link", p->task_message_s},
    };
    if (p->tasks == 0 || workers == 0)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "predicting %llu tasks on %u workers: give at least one task and one worker",
                       (unsigned long long)p->tasks, (unsigned)workers);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (check_number(numbers[i].what, numbers[i].value, error) != KILTER_OK)
            return KILTER_ERR_RANGE;
    for (uint32_t i = 0; i < workers; i++)
        if (!(speeds[i] > 0 && isfinite(speeds[i])))
            return kl_fail(error, KILTER_ERR_RANGE,
                           "predicting: worker %u has speed %g; give each worker a speed above 0",
                           (unsigned)i, speeds[i]);
    return KILTER_OK;
}

static double sum(const double *values, uint32_t count) {
    double total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += values[i];
    return total;
}

static kilter_prediction predict(const kilter_program *p, const kl_lane *lanes, uint32_t workers,
                                 const uint64_t *counts) {
    kl_forkjoin model = {.master = {.fixed_s = p->master_s, .per_unit_s = p->master_task_s},
                         .round_trip_s = p->round_trip_s,
                         .update_s = p->update_s,
                         .task_s = p->task_message_s};
    double tasks = (double)p->tasks;
    kilter_prediction found = {
        .master_s = p->master_s + tasks * p->master_task_s,
        .workers_s = kl_assignment_end_s(lanes, workers, p->work_s / tasks, counts),
    };
    for (uint32_t i = 0; i < workers; i++)
        found.workers += counts[i] > 0;
    found.messages_s = kl_model_join_s(&model, tasks, found.workers, 0);
    found.total_s = kl_model_forkjoin_total_s(p->iterations * found.master_s, p->iterations,
                                              found.workers_s + found.messages_s);
    return found;
}

static kilter_status predict_on(const kilter_program *p, const double *speeds, uint32_t workers,
                                kilter_prediction *prediction, kilter_error *error) {
    kilter_status status = check(p, speeds, workers, error);
    if (status != KILTER_OK)
        return status;
    kl_lane *lanes = calloc(workers, sizeof *lanes);
    uint64_t *counts = calloc(workers, sizeof *counts);
    for (uint32_t i = 0; lanes && i < workers; i++)
        lanes[i] = (kl_lane){speeds[i], 0};
    status = lanes && counts
                 ? kl_assign_earliest(lanes, workers, p->work_s / (double)p->tasks, p->tasks, counts)
                 : KILTER_ERR_MEMORY;
    if (status == KILTER_OK) {
        *prediction = predict(p, lanes, workers, counts);
        prediction->bound_s = kl_model_forkjoin_total_s(p->iterations * prediction->master_s, p->iterations,
                                                        p->work_s / sum(speeds, workers));
    }
    free(lanes);
    free(counts);
    return status == KILTER_OK
               ? KILTER_OK
               : kl_fail(error, status, "predicting for %u workers: memory ran out", (unsigned)workers);
}

kilter_status kilter_predict_sized(const kilter_program *program, size_t program_bytes, kilter_bytes speeds,
                                   kilter_prediction *prediction, size_t prediction_bytes,
                                   kilter_error *error) {
    kilter_program own;
    kilter_prediction found = {0};
    uint32_t workers = (uint32_t)(speeds.size / sizeof(double));
    kilter_status status = kl_struct_in(KL_STRUCT(kilter_program, own), program, program_bytes, error);
    if (status == KILTER_OK)
        status = predict_on(&own, speeds.data, workers, &found, error);
    if (status == KILTER_OK)
        kl_struct_out(prediction, prediction_bytes, KL_STRUCT(kilter_prediction, found));
    return status;
}
