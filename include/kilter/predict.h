/**
 * @file
 * Forecasts for fork-join programs. In each iteration, such a program computes alone, then forks tasks and
 * waits for all of them. After two or more runs on any workers, kilter_farm_program() returns the
 * measurements that a forecast needs.
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

/** Description of a program, the input of a forecast. Times are in seconds, at least 0. */
typedef struct kilter_program {
    uint64_t tasks;       /**< number of tasks in a run; all have the same work */
    double iterations;    /**< number n of iterations. Each iteration makes one run, and the program makes one
                             more run at the start */
    double work_s;        /**< sum of the times of all tasks of a run on a worker of speed 1 */
    double master_s;      /**< time that the program computes alone in an iteration, without master_task_s */
    double master_task_s; /**< time that the program computes alone for each task, in addition to master_s */
    double round_trip_s;  /**< time of a small message to a worker and of the worker's answer */
    double update_s;      /**< time that the master needs for the results of one worker */
    double task_message_s; /**< time that a task's input and result take on the network */
} kilter_program;

/** A forecast. Times are in seconds. */
typedef struct kilter_prediction {
    double total_s;    /**< n·master_s + (n + 1)·(workers_s + messages_s) */
    double master_s;   /**< time that the program computes alone in one iteration (t_M in
                          docs/explanation/fork-join.md) */
    double workers_s;  /**< time until the last worker has computed its share of one run (max t_W) */
    double messages_s; /**< time of one run for the round trip and for receiving results */
    double bound_s; /**< lower bound of total_s: the time if work were divisible at will and messages took no
                       time */
    uint32_t workers; /**< number of workers that get a share; the other workers are too slow to help */
} kilter_prediction;

/** Do the same as kilter_predict(), for structs with these sizes in bytes. `speeds` holds one double for each
 * worker. */
KILTER_API kilter_status kilter_predict_sized(const kilter_program *program, size_t program_bytes,
                                              kilter_bytes speeds, kilter_prediction *prediction,
                                              size_t prediction_bytes, kilter_error *error);

/**
 * Predict the time of a program on workers of the given speeds. The forecast gives each task to the worker
 * that would finish the task first, as the policy "ect" does.   Local, pure.
 *
 * The model comes from Buaklee, Tracy, Vernon, Wright 2002, and is extended by the cost of messages.
 * docs/explanation/fork-join.md describes it.
 *
 * @param speeds      speeds[0 … workers−1], above 0; work_s is for a worker of speed 1
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
