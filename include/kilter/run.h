/**
 * @file
 * A run: a bag of tasks to be done, and their results.
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

/** Bytes somebody else owns. data may be NULL when size is 0. */
typedef struct kilter_bytes {
    const void *data; /**< the first byte */
    size_t size;      /**< bytes */
} kilter_bytes;

/** One finished task, as the master's callback sees it. What it points to is aligned for any type and valid
 * during the callback. */
typedef struct kilter_outcome {
    uint64_t index;       /**< of the task, 0 … tasks−1 of the run */
    kilter_status status; /**< KILTER_OK or KILTER_ERR_TASK */
    kilter_bytes result;  /**< empty when the task failed */
    const char *error;    /**< why it failed; NULL when it did not */
    uint32_t worker;      /**< who did it, or was lost with it last; of a stored result: by the record */
} kilter_outcome;

/** Take one result. Called in the thread that called kilter_farm_run(), once for every task of the run. When
 * a run ends early (KILTER_ERR_NO_WORKER), once for each result that came; by index only for those before the
 * first that did not. */
typedef void (*kilter_done_fn)(const kilter_outcome *outcome, void *user);

/** In which order the results of a run are given to the program. */
typedef enum kilter_order {
    KILTER_BY_ARRIVAL = 0, /**< as soon as a result is here */
    KILTER_BY_INDEX = 1,   /**< 0, 1, 2, …: a result waits for those before it */
} kilter_order;

/** One run over a bag of tasks. An input or the shared data holds at most 1 GiB less 1 MiB. The caller keeps
 * the arrays until kilter_farm_run() returns. */
typedef struct kilter_run {
    uint64_t tasks;             /**< may be 0 */
    const kilter_bytes *inputs; /**< inputs[0 … tasks−1]; NULL: tasks have no input of their own */
    /** weights[0 … tasks−1], expected work of each task in any unit, from 1e-50 to 1e50; NULL: all alike */
    const double *weights;
    kilter_bytes shared; /**< sent once to each worker; data NULL: what the last run gave stays in force */
    kilter_order order;  /**< in which `done` gets results */
    kilter_done_fn done; /**< NULL: results are dropped */
    void *user;          /**< handed to done */
    /** all tasks together, in a unit that stays the same from run to run, from 1e-50 to 1e50: what is known
     * of the workers' speeds holds on when the same work is cut into another number of tasks. 0: a task is as
     * much as one of the run before */
    double work;
    /** `done` may add tasks by kilter_farm_add(): the run ends when it has taken all results and added
     * nothing to them. `work` is then of the tasks the run begins with */
    bool grows;
    /** runs of one series have the same tasks, index by index, with other inputs: where workers keep
     * something of a task that makes it cheaper the next time. As far as shares allow, a task goes to the
     * worker that did it in the series' last run. 0, or another series than the last run's: nothing is known
     * of the tasks; nor is it of those that a growing run adds */
    uint64_t series;
    /** a task that takes longer has failed, as by kilter_farm_options.task_timeout; in seconds, from 0.5; 0:
     * what that says */
    double task_timeout_s;
    /** so often a task that has failed is tried again; 0: kilter_farm_options.retries */
    uint32_t retries;
    /** results[0 … tasks·result_bytes−1], the caller's, with room for tasks that are added, too: that of task
     * i is copied to results + i·result_bytes, before `done` is called for it. A task whose result has
     * another size has failed; the place of one that failed is left as it is. NULL: results go to `done`
     * only, and may have any size */
    void *results;
    size_t result_bytes; /**< of each result, from 1; 0 when results is NULL */
} kilter_run;

#ifdef __cplusplus
}
#endif
#endif
