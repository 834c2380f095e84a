/**
 * @file
 * A policy of your own: it chooses how many tasks the next chunk has, for the worker that asks.
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
 * Work is counted in units: the sum of the weights of tasks. A task of a run without weights is 1 unit.
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

/** What is known of one worker. */
typedef struct kilter_policy_worker {
    uint32_t number;       /**< as in the run record */
    bool present;          /**< false: it has left, or rests */
    uint64_t chunks;       /**< dealt to it in this run */
    uint64_t queued_tasks; /**< dealt to it, and not reported as finished */
    double queued_units;   /**< the same in units */
    double rate;           /**< units per second now; 0: not known yet */
    double unit_mean_s;    /**< seconds per unit of its tasks so far, in all runs; 0: not known yet */
    double unit_sd_s;      /**< standard deviation of the same */
    double busy_s;         /**< seconds with tasks, in this run */
    double units;          /**< done in this run */
} kilter_policy_worker;

/** What a policy sees when it is asked: the state of the run, read only, valid until it answers. */
typedef struct kilter_policy_view {
    uint64_t run;                     /**< 0 for the farm's first run, then 1, 2, … */
    uint64_t tasks;                   /**< of the run, as far as it has grown */
    uint64_t left;                    /**< not dealt yet, at least 1 */
    uint64_t chunks;                  /**< dealt so far in this run */
    double units;                     /**< of all tasks */
    double left_units;                /**< of the tasks that are left */
    double elapsed_s;                 /**< seconds since the run began */
    uint32_t workers;                 /**< present now, at least 1 */
    uint32_t began_workers;           /**< present when the run began, at least 1 */
    double rate;                      /**< units per second of all present workers whose rate is known */
    double unit_mean_s;               /**< seconds per unit of all workers' tasks so far; 0: not known yet */
    double unit_sd_s;                 /**< standard deviation of the same */
    double message_s;                 /**< fixed cost of a message, in seconds */
    double byte_s;                    /**< further cost for each of its bytes */
    double round_trip_s;              /**< of a small message; 0: not known yet */
    double answer_s;                  /**< the master's own time for one request; 0: not known yet */
    double task_bytes;                /**< mean bytes per task, to the worker */
    double result_bytes;              /**< mean bytes per task, back */
    const kilter_policy_worker *asks; /**< the worker that asks */
    uint32_t places;                  /**< of workers, those that have left included */
    const void *farm;                 /**< for kilter_policy_worker_get() */
} kilter_policy_view;

/** kilter_policy_worker_get() for a worker that is `bytes` bytes long. */
KILTER_API bool kilter_policy_worker_get_sized(const kilter_policy_view *view, uint32_t place,
                                               kilter_policy_worker *worker, size_t bytes);

/**
 * Look at any worker of the farm.   Local, from a choose function only; O(1).
 *
 * @param place   0 … view->places − 1
 * @param worker  [out] written only when there is such a place
 * @return false: there is no such place
 */
static inline bool kilter_policy_worker_get(const kilter_policy_view *view, uint32_t place,
                                            kilter_policy_worker *worker) {
    return kilter_policy_worker_get_sized(view, place, worker, sizeof(kilter_policy_worker));
}

/** Where a policy says why. Lives as long as the choose function's call. */
typedef struct kilter_policy_reason kilter_policy_reason;

/** Say why the chunk is as large as it is, in printf's manner: one clause of up to 159 bytes, for the run
 * record. The last call counts.   Local, from a choose function only. */
KILTER_API void kilter_policy_say(kilter_policy_reason *reason, const char *format, ...) KILTER_PRINTF(2, 3);

/**
 * Choose the number of tasks in the next chunk for the worker that asks.
 *
 * It is called on the master, in a thread of the farm's, one call at a time for each farm. It must not call
 * the farm, and the master answers nobody until it returns. The answer should follow from the view alone:
 * Kilter may ask and not deal, and asks a worker that got nothing again after the next message of any worker.
 *
 * - More tasks than are left: the worker gets all that are left.
 * - 0 tasks: the worker waits. While no present worker has a task, it gets 1 all the same, as nothing would
 *   ever happen otherwise.
 *
 * The record's decision says so in both cases.
 *
 * @param user  kilter_policy.user
 * @return tasks
 */
typedef uint64_t (*kilter_choose_fn)(const kilter_policy_view *view, kilter_policy_reason *reason,
                                     void *user);

/** A policy. This struct never grows; what may be added takes the place of `later`. */
typedef struct kilter_policy {
    /** how options name it: 1 to 31 characters of a–z, 0–9, '-' and '_', and none of Kilter's own names */
    const char *name;
    const char *summary;     /**< one line about it; may be NULL */
    kilter_choose_fn choose; /**< required */
    void *user;              /**< handed to choose; not looked at */
    void *later[4];          /**< NULL */
} kilter_policy;

#ifdef __cplusplus
}
#endif
#endif
