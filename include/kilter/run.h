/**
 * @file
 * A run of a farm: a set of independent tasks, and their results.
 */
#ifndef KILTER_RUN_H
#define KILTER_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kilter/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A block of bytes. The comment on each use says whether the caller or Kilter owns the block. `data` may be
 * NULL if `size` is 0. */
typedef struct kilter_bytes {
    const void *data; /**< address of the first byte */
    size_t size;      /**< bytes */
} kilter_bytes;

/** One finished task, which the master's callback gets. Its data is aligned for any type and valid during the
 * callback. */
typedef struct kilter_outcome {
    uint64_t index;       /**< index of the task, 0 … tasks−1 of the run */
    kilter_status status; /**< KILTER_OK or KILTER_ERR_TASK */
    kilter_bytes result;  /**< result of the task; empty if the task failed */
    const char *error;    /**< reason why the task failed; NULL if the task succeeded */
    uint32_t worker;      /**< number of the worker that did the task; if the task failed because workers were
                             lost: number of the last of these workers */
} kilter_outcome;

/** Take one result. Kilter calls this function once for every task of the run, in the thread that called
 * kilter_farm_run(). If a run ends early (KILTER_ERR_NO_WORKER), Kilter calls the function for each result
 * that has arrived. With KILTER_BY_INDEX, it then gets only the results before the first missing result. */
typedef void (*kilter_done_fn)(const kilter_outcome *outcome, void *user);

/** The order in which the program gets the results of a run. */
typedef enum kilter_order {
    KILTER_BY_ARRIVAL = 0, /**< the program gets each result as soon as it arrives */
    KILTER_BY_INDEX = 1, /**< in the order of the tasks' indices: a result waits until all results with lower
                            indices were taken */
} kilter_order;

/** One run: a set of tasks for the workers. An input, or the shared data, has at most 1 GiB less 1 MiB. The
 * caller keeps the arrays until kilter_farm_run() returns. */
typedef struct kilter_run {
    uint64_t tasks;             /**< number of tasks; may be 0 */
    const kilter_bytes *inputs; /**< inputs[0 … tasks−1]; NULL: tasks have no inputs */
    /** weights[0 … tasks−1]: expected work of each task in any unit, from 1e-50 to 1e50; NULL: all tasks have
     * the same work
     */
    const double *weights;
    kilter_bytes shared; /**< data that is sent once to each worker; if `data` in it is NULL, workers keep the
                            shared data of the last run */
    kilter_order order;  /**< in which order `done` gets the results */
    kilter_done_fn done; /**< function that takes each result; NULL: results are dropped */
    void *user;          /**< pointer that is passed to `done` */
    /** work of all tasks together, from 1e-50 to 1e50, in the same unit in all runs. With this number,
     * measured speeds stay valid if a program divides the same work into another number of tasks; 0: each
     * task has as much work as a task of the previous run */
    double work;
    /** true: `done` may add tasks with kilter_farm_add(). The run ends when `done` has taken all results
     * without adding tasks. In a run that grows, `work` counts only the tasks that the run has at the
     * beginning */
    bool grows;
    /** number of the series to which this run belongs. In all runs of a series, the task with a given index
     * is the same, but its input may change. A task goes, if possible, to the worker that did it in the last
     * run of the series. This saves time if workers keep data that makes a task cheaper the next time. Kilter
     * does not remember workers of added tasks in a growing run. 0, or another number than in the last run:
     * tasks go to any worker */
    uint64_t series;
    /** time limit of a task in seconds, at least 0.5, as in kilter_farm_options.task_timeout; 0: use the
     * limit of kilter_farm_options
     */
    double task_timeout_s;
    /** number of times that a failed task is tried again; 0: use the number in kilter_farm_options.retries */
    uint32_t retries;
    /** the caller's memory for results: result_bytes bytes for each task, also for added tasks; with
     * `reduce`, result_bytes bytes in all. Kilter copies the result of task i to results + i·result_bytes
     * before it calls `done` for this task. A task whose result has another size has failed. For failed tasks
     * nothing is copied. NULL: results go to `done` only, and may have any size */
    void *results;
    size_t result_bytes; /**< size of each result in bytes, at least 1; 0 if `results` is NULL */
    /** true: kilter_farm_options.combine combines all results with the value in `results`. Before the run,
     * the caller stores the first value in `results`, for example 0 for a sum. `done` is called for failed
     * tasks only. Every good result counts once, in no fixed order. Not with `resume` */
    bool reduce;
} kilter_run;

#ifdef __cplusplus
}
#endif
#endif
