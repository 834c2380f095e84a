/* Predict a program whose master repeatedly works alone, starts a run of tasks and waits for its end. */
#include <math.h>
#include <stdlib.h>

#include "predict.h"

static double value(const kl_basis *b, int input) {
    double known = b->in[input].value;
    return isfinite(known) ? known : 0;
}

static kilter_program program_of(const kl_basis *b, double iterations) {
    double tasks = value(b, KL_IN_TASKS);
    return (kilter_program){.tasks = (uint64_t)tasks,
                            .iterations = iterations,
                            .work_s = value(b, KL_IN_WORK_S),
                            .master_s = value(b, KL_IN_MASTER_S),
                            .round_trip_s = 2 * value(b, KL_IN_STARTUP_S),
                            .update_s = value(b, KL_IN_ANSWER_S),
                            .task_message_s = value(b, KL_IN_PER_BYTE_S) * value(b, KL_IN_BYTES) / tasks};
}

static kilter_status on_workers(const kilter_program *program, const double *sums, uint32_t count,
                                kilter_prediction *prediction, kilter_error *error) {
    double *speeds = calloc(count, sizeof *speeds);
    if (!speeds)
        return kl_fail(error, KILTER_ERR_MEMORY, "predicting for %u workers: memory ran out",
                       (unsigned)count);
    for (uint32_t i = 0; i < count; i++)
        speeds[i] = sums ? sums[i] - (i > 0 ? sums[i - 1] : 0) : 1;
    kilter_status status = kilter_predict(program, speeds, count, prediction, error);
    free(speeds);
    return status;
}

kilter_status kl_predict_program(const kl_basis *b, double iterations, kl_program_prediction *p,
                                 kilter_error *error) {
    if (!(value(b, KL_IN_TASKS) >= 1))
        return kl_fail(error, KILTER_ERR_INPUT,
                       "predicting %g runs: the number of tasks of each run is not known; give --tasks",
                       iterations);
    kilter_program program = program_of(b, iterations);
    const double *sums = b->speeds ? b->speeds : b->own;
    uint32_t count = b->speeds ? b->speed_count : b->own ? b->own_count : p->workers;
    *p = (kl_program_prediction){.iterations = iterations, .workers = count};
    kilter_status status = on_workers(&program, sums, count, &p->all, error);
    if (status != KILTER_OK || b->measured_count < 2 || !b->own)
        return status;
    for (size_t i = 0; i < b->measured_count; i++)
        p->measured_s += b->measured[i].time_s;
    program.iterations = (double)(p->measured_runs = b->measured_count) - 1;
    return on_workers(&program, b->own, b->own_count, &p->recorded, error);
}
