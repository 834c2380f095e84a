/**
 * @file
 * How long a fork-join program takes: one that works alone, forks tasks, waits for all of them and begins
 * again. A short benchmark of it, two runs or more on any workers, tells what is asked for here
 * (kilter_farm_program()).
 */
#ifndef KILTER_PREDICT_H
#define KILTER_PREDICT_H

#include <stddef.h>
#include <stdint.h>

#include "kilter/run.h"
#include "kilter/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A program as the model sees it. Times in seconds, none below 0. */
typedef struct kilter_program {
    uint64_t tasks;        /**< of a run, all alike */
    double iterations;     /**< n: a run each, and one more for the starting point */
    double work_s;         /**< of all tasks of a run, on one worker of speed 1 */
    double master_s;       /**< the program alone, in an iteration: what does not depend on the tasks, */
    double master_task_s;  /**< and for each task */
    double round_trip_s;   /**< of a message */
    double update_s;       /**< of the master, for what one worker sends back */
    double task_message_s; /**< of a task's bytes on the wire, there and back */
} kilter_program;

/** What is to be expected. Times in seconds. */
typedef struct kilter_prediction {
    double total_s;    /**< n·t_M + (n + 1)·(workers_s + messages_s) */
    double master_s;   /**< t_M: the program alone, in one iteration */
    double workers_s;  /**< max t_W: until the last worker has computed its share of one run */
    double messages_s; /**< round trip, and results taken in, of one run */
    double bound_s;    /**< all of it, were the work divisible and messages free: least of any distribution */
    uint32_t workers;  /**< that get a share; the others are too slow to help */
} kilter_prediction;

/** kilter_predict() for a program and a prediction of these lengths, in bytes. speeds: one double a worker.
 */
KILTER_API kilter_status kilter_predict_sized(const kilter_program *program, size_t program_bytes,
                                              kilter_bytes speeds, kilter_prediction *prediction,
                                              size_t prediction_bytes, kilter_error *error);

/**
 * Predict a program on workers of these speeds, whole tasks dealt by earliest completion, as policy "ect"
 * does.   Local, pure.
 *
 * The model is that of Buaklee, Tracy, Vernon, Wright 2002, with messages added;
 * docs/explanation/fork-join.md.
 *
 * @param speeds      speeds[0 … workers−1], above 0; 1 is the worker that work_s is for
 * @param prediction  [out] written only on KILTER_OK
 * @return KILTER_OK; KILTER_ERR_RANGE for no task, no worker, or a number that cannot be; KILTER_ERR_MEMORY
 */
static inline kilter_status kilter_predict(const kilter_program *program, const double *speeds,
                                           uint32_t workers, kilter_prediction *prediction,
                                           kilter_error *error) {
    kilter_bytes all = {speeds, workers * sizeof(double)};
    return kilter_predict_sized(program, sizeof(kilter_program), all, prediction, sizeof(kilter_prediction),
                                error);
}

#ifdef __cplusplus
}
#endif
#endif
