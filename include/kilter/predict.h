/**
 * @file
 * Forecasts for fork-join programs. Such a program works alone, forks tasks, waits for all of them, and
 * begins again. kilter_farm_program() measures what a forecast needs, in two or more runs on any workers.
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

/** A program, described for the model. Times are in seconds, at least 0. */
typedef struct kilter_program {
    uint64_t tasks;    /**< number of tasks in a run; all have the same work */
    double iterations; /**< number n of iterations. Each iteration does one run, and the start needs one run
                          more */
    double work_s;     /**< time of all tasks of a run on one worker of speed 1 */
    double master_s;   /**< time that the program computes alone in an iteration, without master_task_s */
    double master_task_s;  /**< time that the program computes alone for each task, in addition to master_s */
    double round_trip_s;   /**< time of a message to a worker and its answer */
    double update_s;       /**< time that the master needs for the results of one worker */
    double task_message_s; /**< time that a task's input and result take on the network */
} kilter_program;

/** A forecast. Times are in seconds. */
typedef struct kilter_prediction {
    double total_s;    /**< n·t_M + (n + 1)·(workers_s + messages_s) */
    double master_s;   /**< t_M: time that the program computes alone in one iteration */
    double workers_s;  /**< max t_W: time until the last worker has computed its share of one run */
    double messages_s; /**< time of one run for the round trip and for receiving results */
    double bound_s;    /**< total time if work were divisible and messages took no time; no distribution is
                          faster */
    uint32_t workers;  /**< number of workers that get a share; the other workers are too slow to help */
} kilter_prediction;

/** Do the same as kilter_predict(), for structs with these sizes in bytes. `speeds` holds one double for each
 * worker. */
KILTER_API kilter_status kilter_predict_sized(const kilter_program *program, size_t program_bytes,
                                              kilter_bytes speeds, kilter_prediction *prediction,
                                              size_t prediction_bytes, kilter_error *error);

/**
 * Predict the time of a program on workers of these speeds. As in the policy "ect", each task goes to the
 * worker that would finish it first.   Local, pure.
 *
 * The model is that of Buaklee, Tracy, Vernon, Wright 2002, with messages added;
 * docs/explanation/fork-join.md.
 *
 * @param speeds      speeds[0 … workers−1], above 0; speed 1 is the speed of the worker in work_s
 * @param prediction  [out] written only on KILTER_OK
 * @return KILTER_OK; KILTER_ERR_RANGE: no task, no worker, or an impossible number; KILTER_ERR_MEMORY
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
