/**
 * @file
 * A policy of your own: a function that chooses the number of tasks in the next chunk for a worker.
 *
 * @code{.c}
     static uint64_t halves(const kilter_policy_view *view, kilter_policy_reason *reason, void *user) {
         uint64_t tasks = view->left / (2 * (uint64_t)view->workers) + 1;
         kilter_policy_say(reason, "half of %llu tasks over %u workers", …);
         return tasks;
     }
     static const kilter_policy mine = {.name = "halves", .choose = halves};
     …
     kilter_farm_options options = {.work = work, .policy = "halves",
                                    .policies = (const kilter_policy *[]){&mine, NULL}};
   @endcode
 *
 * A complete program is examples/04_policy.c.
 *
 * Work is counted in units. The work of a task is its weight; in a run without weights, each task is 1 unit.
 */
#ifndef KILTER_POLICY_H
#define KILTER_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kilter/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The measurements of one worker. */
typedef struct kilter_policy_worker {
    uint32_t number;       /**< number of the worker in the run record */
    bool present;          /**< false: the worker has left the farm, or gets no tasks in this run */
    uint64_t chunks;       /**< number of chunks dealt to the worker in this run */
    uint64_t queued_tasks; /**< number of tasks dealt to the worker and not yet reported as finished */
    double queued_units;   /**< units of work of the queued tasks */
    double rate;           /**< present speed of the worker in units of work per second; 0: not known yet */
    double
        unit_mean_s; /**< mean seconds per unit of the worker's tasks so far, in all runs; 0: not known yet */
    double unit_sd_s; /**< standard deviation of the seconds per unit, for this worker's tasks */
    double busy_s;    /**< seconds that the worker spent on tasks in this run */
    double units;     /**< units of work that the worker finished in this run */
} kilter_policy_worker;

/** The state of the run that a policy gets: read only, valid until the policy returns. */
typedef struct kilter_policy_view {
    uint64_t run;           /**< number of the run: 0 for the farm's first run, then 1, 2, … */
    uint64_t tasks;         /**< number of tasks of the run, including tasks added so far */
    uint64_t left;          /**< number of tasks not dealt yet, at least 1 */
    uint64_t chunks;        /**< number of chunks dealt so far in this run */
    double units;           /**< units of work of all tasks of the run */
    double left_units;      /**< units of work of the tasks not dealt yet */
    double elapsed_s;       /**< seconds since the run began */
    uint32_t workers;       /**< number of workers present now, at least 1 */
    uint32_t began_workers; /**< number of workers present when the run began, at least 1 */
    double rate; /**< sum of the rates of all present workers whose rates are known, in units of work per
                    second */
    double unit_mean_s;  /**< mean seconds per unit of all workers' tasks so far; 0: not known yet */
    double unit_sd_s;    /**< standard deviation of the seconds per unit, for all workers' tasks */
    double message_s;    /**< fixed cost of a message, in seconds */
    double byte_s;       /**< seconds that each byte adds to the cost of a message */
    double round_trip_s; /**< seconds for a small message to a worker and the worker's answer; 0: not known
                            yet */
    double answer_s;     /**< seconds that the master needs for one request; 0: not known yet */
    double task_bytes;   /**< mean bytes per task that the master sends to the worker */
    double result_bytes; /**< mean bytes per task that the worker sends back */
    const kilter_policy_worker *asks; /**< the worker that asks for a chunk */
    uint32_t places;                  /**< number of workers, including workers that have left; `place` in
                                         kilter_policy_worker_get() must be less */
    const void *farm;                 /**< the farm, only for kilter_policy_worker_get() */
} kilter_policy_view;

/** Do the same as kilter_policy_worker_get(), for a struct with a size of `bytes` bytes. */
KILTER_API bool kilter_policy_worker_get_sized(const kilter_policy_view *view, uint32_t place,
                                               kilter_policy_worker *worker, size_t bytes);

/**
 * Get the measurements of any worker of the farm.   Local, from a choose function only; O(1).
 *
 * @param place   0 … view->places − 1
 * @param worker  [out] written only if there is such a place
 * @return false: there is no such place
 */
static inline bool kilter_policy_worker_get(const kilter_policy_view *view, uint32_t place,
                                            kilter_policy_worker *worker) {
    return kilter_policy_worker_get_sized(view, place, worker, sizeof(kilter_policy_worker));
}

/** The reason for a decision, which the choose function stores with kilter_policy_say(). Valid until the
 * choose function returns. */
typedef struct kilter_policy_reason kilter_policy_reason;

/** Store the reason for the size of the chunk in the run record. The reason is one clause of up to 159 bytes;
 * `format` works as in printf(). If the choose function stores several reasons, the last one counts.   Local,
 * from a choose function only. */
KILTER_API void kilter_policy_say(kilter_policy_reason *reason, const char *format, ...) KILTER_PRINTF(2, 3);

/**
 * Choose the number of tasks in the next chunk for the worker that asks.
 *
 * Kilter calls this function on the master, in a thread of the farm, one call at a time for each farm. The
 * function must not call functions of the farm. The master answers no worker until the function returns. The
 * returned number should depend only on the view, because Kilter may call the function without dealing the
 * chunk. If the function returned 0, Kilter calls it again for the same worker after the next message of any
 * worker.
 *
 * - More tasks than are left: the worker gets all that are left.
 * - 0 tasks: the worker waits. If no present worker has a task, the worker gets 1 task, so that the run goes
 * on.
 *
 * The record shows both cases.
 *
 * @param user  kilter_policy.user
 * @return tasks
 */
typedef uint64_t (*kilter_choose_fn)(const kilter_policy_view *view, kilter_policy_reason *reason,
                                     void *user);

/** A policy. The size of this struct never changes; new members may replace parts of `later`. */
typedef struct kilter_policy {
    /** name for options: 1 to 31 characters of a–z, 0–9, '-' and '_'; not a name of one of Kilter's policies
     */
    const char *name;
    const char *summary;     /**< one line that describes the policy; may be NULL */
    kilter_choose_fn choose; /**< function that chooses the chunk; required */
    void *user;              /**< pointer that is passed to choose; Kilter does not use it */
    void *later[4];          /**< reserved; all NULL */
} kilter_policy;

#ifdef __cplusplus
}
#endif
#endif
