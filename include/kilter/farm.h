/**
 * @file
 * A farm: one master deals tasks to workers, and gets each result once. Workers may have different speeds,
 * which change when other programs use their hosts.
 *
 * Master and workers run the same program. kilter_farm_open() makes a process the master or a worker. Which
 * of the two depends on how the process was started:
 *
 * @verbatim
   ./prog                                master, with local workers it starts itself, one per core
   mpirun -n 8 ./prog                    rank 0 is master, the others are workers
   ./prog --listen tcp://0.0.0.0:7777    master that waits for workers started elsewhere with
   ./prog --join tcp://host:7777         (with a copy of the master's key file: see `key`)
   @endverbatim
 *
 * A complete program is examples/01_squares.c.
 *
 * Some calls take or fill a struct that may grow in a later Kilter. The library exports them with the suffix
 * `_sized` and a parameter for the size of the program's struct. The inline functions below pass this size.
 * Programs in other languages call the functions with `_sized`.
 */
#ifndef KILTER_FARM_H
#define KILTER_FARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kilter/policy.h"
#include "kilter/predict.h"
#include "kilter/run.h"
#include "kilter/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One task, as the work function gets it. Its data is aligned for any type and valid until the work function
 * returns. */
typedef struct kilter_task {
    uint64_t index;      /**< index of the task, 0 … tasks−1 of the run */
    uint64_t run;        /**< number of the run: 0 for the farm's first kilter_farm_run(), then 1, 2, … */
    kilter_bytes input;  /**< input of this task; empty if the run has no inputs */
    kilter_bytes shared; /**< present shared data of the farm; empty if there are no shared data */
} kilter_task;

/** The result of a task, filled by the work function. Valid until the work function returns. */
typedef struct kilter_result kilter_result;

/**
 * Append `size` bytes to the task's result.   Local, from a work function only.
 *
 * The bytes are copied. The result of a task without such a call is empty.
 * @return KILTER_OK; KILTER_ERR_MEMORY; KILTER_ERR_RANGE if the result would exceed 1 GiB less 1 MiB
 */
KILTER_API kilter_status kilter_result_put(kilter_result *result, const void *data, size_t size);

/**
 * Report why the task failed. `format` works as in printf(). Bytes that were already appended to the result
 * are dropped.   Local, from a work function only.
 *
 * @return 1, so that a work function can end with `return kilter_result_fail(result, "…");`
 */
KILTER_API int kilter_result_fail(kilter_result *result, const char *format, ...) KILTER_PRINTF(2, 3);

/** Description of a worker, which its start function gets. */
typedef struct kilter_worker {
    /** number of the worker: 0, 1, 2, … in the order of joining. A worker that reconnects to its master gets
     * another number, but its start function is not called again */
    uint32_t index;
    void *user; /**< kilter_farm_options.user; a worker process has its own copy */
} kilter_worker;

/**
 * Do one task. Called on a worker, one task at a time.
 * @param state  the state that the start function stored; NULL if there is no start function
 * @return 0; any other value: the task failed. The error is sent to the master, and the other tasks continue
 */
typedef int (*kilter_work_fn)(const kilter_task *task, kilter_result *result, void *state);

/**
 * Prepare a worker. Called once on each worker, before its first task. The function may set *state, which is
 * passed to the other functions and kept from run to run.
 * @return 0; any other value: this worker cannot work. The worker prints a message and leaves the farm
 */
typedef int (*kilter_start_fn)(const kilter_worker *worker, void **state);

/** Take new shared data. Kilter calls this function before the first task that uses the data. The bytes are
 * valid until the next call of this function.
 * @return 0; any other value: this worker cannot work. The worker prints a message and leaves the farm */
typedef int (*kilter_shared_fn)(kilter_bytes shared, void *state);

/**
 * Combine two values into the block `into`. Each value is a result, or several results already combined.
 * Workers and the master combine values in any order, so the operation must be associative and commutative.
 * The blocks `into` and `value` are aligned for any type. With kilter_sum_join() (kilter/sum.h), sums of
 * doubles do not depend on the order.
 * @param bytes  kilter_run.result_bytes
 * @param user   kilter_farm_options.user
 */
typedef void (*kilter_combine_fn)(void *into, const void *value, size_t bytes, void *user);

/** Release the state of the start function. Called once, at the end, if the start function returned 0. */
typedef void (*kilter_stop_fn)(void *state);

/**
 * Options of a farm. In every field but `work`, 0, NULL or false stands for the default.
 *
 * Options on the command line and in the environment take precedence (see kilter_farm_usage()). Strings are
 * copied.
 */
typedef struct kilter_farm_options {
    kilter_work_fn work;     /**< required */
    kilter_start_fn start;   /**< prepares a worker; NULL: workers need no preparation */
    kilter_shared_fn shared; /**< takes new shared data; NULL: workers only read kilter_task.shared */
    kilter_stop_fn stop;     /**< releases the state of a worker; NULL: there is nothing to release */
    void *user;              /**< pointer that `start` gets in kilter_worker, and that `combine` gets; Kilter
                                does not use it */

    /** number of local workers; 0: one per core. With `listen`: number of workers for which the master waits;
     * 0 means 1 */
    uint32_t workers;
    /** cores that each local worker process may use. "none": all cores; "core": one core; "3": three cores;
     * "auto": the number of cores divided by the number of workers, at least one, and at least
     * OMP_NUM_THREADS cores if the program uses OpenMP; OpenMP takes as many threads as its worker has cores,
     * unless OMP_NUM_THREADS is set. With a number N and no `workers`, one worker is started for every N
     * cores. NULL: "auto" */
    const char *bind;
    /** which workers get tasks. "all": all workers; "auto": workers that do not speed up the run get no
     * tasks; the file name of a run record of the same program, "*.kilter": as "auto", but the record gives
     * the number of workers at the beginning. NULL: "auto" */
    const char *team;
    /** true: workers that do not speed up the run leave the farm; false: they stay in the farm without tasks
     */
    bool release;
    /** maximum attempts: a task has failed when this many workers were lost while they had the task; 0 means
     * 5 */
    uint32_t attempts;
    /** time limit of a task. "30": seconds, at least 0.5; "10x": ten times the time that tasks of the same
     * weight have taken on this worker so far. A task that exceeds the limit has failed. Its worker's process
     * is killed within half a second, and another process replaces it. NULL: no limit. An error with
     * transport mpi or inproc, whose workers cannot be killed separately */
    const char *task_timeout;
    /** number of times that a failed task is tried again. Kilter tries the task again when no other task is
     * left, on another worker if possible */
    uint32_t retries;
    /** memory limit of a worker's process, such as "500M" or "2G" (1M: 1,000,000 bytes). The memory that the
     * process had when it joined does not count. A task that exceeds the limit has failed, as with
     * task_timeout. A worker that uses nine tenths of the limit is replaced after its task. Memory is
     * measured every tenth of a second while a task runs. NULL: none. An error with transport mpi or
     * inproc */
    const char *worker_memory;
    /** number of tasks after which a worker's process is replaced by another one; 0: no limit. An error with
     * transport mpi or inproc */
    uint64_t worker_tasks;
    /** the program's version. The master rejects workers of another version. NULL: "" */
    const char *version;
    /** the policy that deals tasks; NULL: "auto" */
    const char *policy;
    /** the transport: "zmq", "mpi" or "inproc" (workers are threads, so work must be thread-safe). NULL:
     * Kilter chooses by how the program was started */
    const char *transport;
    /** endpoint, tcp://ADDRESS:PORT, at which this process is the master and waits for workers; NULL: local
     * workers */
    const char *listen;
    /** endpoint of the master that this process joins as a worker; NULL: this process is the master */
    const char *join;
    /** file with the keys of a farm over tcp. The keys encrypt messages and identify master and workers. The
     * file must be readable by its owner only (mode 0600). A master creates a missing file; each worker needs
     * a copy. "-", on a worker: the worker reads the keys from the standard input. NULL: farm.key in the
     * user's state folder */
    const char *key;
    /** with transport zmq: seconds of silence, 0.5 to 86400, after which a worker or the master counts as
     * lost; 0: 10 s. If the process itself ends, Kilter notices this at once. A worker is not silent while it
     * does a long task. */
    double lost_after_s;
    /** with `join`: seconds, 0.5 to 86400, to wait for a master at the beginning, and each time the master is
     * lost without closing the farm; 0: 60 s. A worker that finds a master again counts as a new worker, but
     * keeps the state of its start function. The same happens to a worker that was stopped for longer than
     * lost_after_s. */
    double wait_for_master_s;
    /** file of the run record; if it exists, a number is added to the name, as in a-2.kilter. "none": no
     * record, and kilter tune does not work. NULL: a new file in the user's state folder */
    const char *record;
    /** file of a run record that also stores results, so that they survive the master. If the file exists,
     * its results are used. NULL: results are not stored. See kilter_farm_run(). Cannot be combined with
     * `record`
     */
    const char *resume;
    /** true: use the `resume` file even if the program file or the program's own arguments have changed. A
     * run's inputs, weights and shared data may then differ as well. New tasks may be appended after its old
     * ones. false: such a change is an error. This option has no effect if `resume` is NULL. */
    bool resume_anyway;
    /** name of the program in the record and in messages, the same on master and workers; NULL: the name in
     * argv[0] */
    const char *name;
    /** print a progress line with the time left to stderr */
    bool progress;
    /** the program's own policies, which `policy` and `--policy` may name; the list ends with NULL. Kilter
     * does not copy the policies, so keep them until the farm is closed. NULL: the program has no policies.
     * See kilter/policy.h */
    const kilter_policy *const *policies;
    /** combines results in runs with `reduce`, on workers and master; NULL: no run reduces */
    kilter_combine_fn combine;
    /** who organises a run. "master": the master deals chunks to the workers; "peers": the workers give tasks
     * to each other directly, and results come through a tree; "auto": the one of these two ways that was
     * faster in earlier runs. NULL: "auto" */
    const char *organise;
    /** folder for `organise` "peers" with policy "sos" or "sos-half": late peers ask for help by writing
     * files into this folder. All hosts must have the folder under the same name. Kilter makes a subfolder,
     * and removes it when the farm is closed. NULL: late peers ask by messages */
    const char *shared_folder;
    /** true: Kilter begins no task a second time while the task's worker is present, so there are no
     * speculative copies. If a worker is lost, Kilter still begins its task again; see `attempts`. Cannot be
     * combined with `organise` "peers" */
    bool once;
} kilter_farm_options;

/** A farm. Only the farm's master process has this handle. */
typedef struct kilter_farm kilter_farm;

/** Print the options and environment variables of kilter_farm_open(), for a program's own `--help`.   Local.
 */
KILTER_API void kilter_farm_usage(FILE *out);

/** Do the same as kilter_farm_open(), for a struct of options with a size of `bytes` bytes. */
KILTER_API kilter_status kilter_farm_open_sized(const kilter_farm_options *options, size_t bytes, int *argc,
                                                char **argv, kilter_farm **farm, kilter_error *error);

/**
 * Open a farm. On the master the call returns at once; on a worker it returns when the farm is closed.
 * Under mpirun: collective over all ranks.
 *
 * Kilter removes its own options from argc and argv; the other arguments stay, in order. Local workers are
 * processes made with fork(), so open the farm before starting threads. Open the farm in a thread that lives
 * as long as the farm, because the local workers are killed when this thread ends. Workers are bound to cores
 * as `bind` says. Workers inherit open files, but not sockets marked close-on-exec.
 *
 * @param argc, argv  as main() got them; both NULL if there is no command line
 * @param farm        [out] the farm, closed with kilter_farm_close(); written only on KILTER_OK
 * @param error       [out] the error; may be NULL
 * @return KILTER_OK on the master. KILTER_ENDED on a worker when the farm was closed, and after
 * `--kilter-help`; in both cases return kilter_exit(…) from main. KILTER_ERR_USAGE for an option that cannot
 * be used; KILTER_ERR_SYSTEM; KILTER_ERR_MEMORY; KILTER_ERR_MPI; KILTER_ERR_NO_WORKER (no local worker could
 * start). On a worker also KILTER_ERR_PEER (the worker found no master within a minute, or the master has
 * another program or version). With `listen`, the call does not wait for workers; kilter_farm_run() does.
 */
static inline kilter_status kilter_farm_open(const kilter_farm_options *options, int *argc, char **argv,
                                             kilter_farm **farm, kilter_error *error) {
    return kilter_farm_open_sized(options, sizeof(kilter_farm_options), argc, argv, farm, error);
}

/** Do the same as kilter_farm_run(), for a kilter_run with a size of `bytes` bytes. */
KILTER_API kilter_status kilter_farm_run_sized(kilter_farm *farm, const kilter_run *run, size_t bytes,
                                               kilter_error *error);

/**
 * Deal the run's tasks to the workers and deliver each result once.   Local, on the master; one run at a time
 * in each farm.
 *
 * Further runs may follow. Workers keep their state, and Kilter keeps its measurements. Kilter answers
 * workers even while `done` computes, except with an MPI that has no thread support. The first run of a
 * master with `listen` waits without limit for the number of workers in its options. More workers may join
 * later.
 *
 * With `resume`, a result is delivered only after it is on the disk. A program that is started again in the
 * same way must make the same calls. Its n-th run gives `done` the results that the interrupted program
 * stored for its n-th run. Workers then do only tasks that failed or have no stored result. Stored results
 * are only valid for the same tasks, inputs, weights and shared data.
 *
 * @return
 * - KILTER_OK
 * - KILTER_ERR_TASK: some tasks failed; all other tasks were done, and their results were delivered
 * - KILTER_ERR_CANCELLED: kilter_farm_cancel(), Ctrl-C or SIGTERM ended the run
 * - KILTER_ERR_NO_WORKER: the last worker was lost; a master with `listen` waits for another worker instead
 * - KILTER_ERR_RANGE: a weight, work, input, shared data or limit is outside the range in kilter_run
 * - KILTER_ERR_USAGE: the transport cannot enforce the run's limit; the farm's previous kilter_farm_run() has
 * not returned (the call came from a callback of that run); the record cannot be created; or the results in
 * the `resume` file are of another run
 * - KILTER_ERR_RECORD, before any result: the `resume` file is damaged, belongs to another program, or
 * another master uses it. Later: results cannot be stored; after this, the farm can only be closed. Stored
 * results are kept
 * - KILTER_ERR_MEMORY, KILTER_ERR_SYSTEM
 */
static inline kilter_status kilter_farm_run(kilter_farm *farm, const kilter_run *run, kilter_error *error) {
    return kilter_farm_run_sized(farm, run, sizeof(kilter_run), error);
}

/**
 * End the present run early. `done` still gets the results that have arrived, and kilter_farm_run() returns
 * KILTER_ERR_CANCELLED. Call this from any thread or callback, but not from a signal handler and not during
 * kilter_farm_close(). The call does nothing if no run is under way. After the cancelled run, the farm can
 * begin another run. With `resume`, the same command continues from the stored results.
 *
 * Ctrl-C and SIGTERM also cancel the run, and all later runs. This does not work under mpirun, or if the
 * program handles or ignores these signals when it opens the farm. A second signal more than a second later,
 * or a signal between runs, ends the program at once. If a process has several farms, the signal goes to the
 * farm that was opened first.
 */
KILTER_API void kilter_farm_cancel(kilter_farm *farm);

/**
 * Add tasks to the present run.   Local, on the master, from the callback `done` of a run with `grows`.
 *
 * The new tasks get the next indices. The run's policy deals the new tasks after the remaining tasks, and
 * `done` gets their results as well. Inputs and weights are copied. The run ends when `done` has taken all
 * results without adding tasks.
 *
 * With `resume`, a program that is started again must add the same tasks after the same results. So new tasks
 * may only depend on earlier results, which are delivered in the same order as the first time. New tasks must
 * not depend on time, or on failed tasks, because failed tasks are done again.
 *
 * @param inputs   inputs[0 … count−1]; NULL: no inputs
 * @param weights  weights in the unit of the run's weights (in a run without weights each task has weight 1);
 * NULL: each new task gets the mean weight of the tasks at the beginning
 * @return KILTER_OK; KILTER_ERR_USAGE if no run with `grows` is under way. With `resume`, KILTER_ERR_USAGE
 * also ends the run if the program added other tasks at this point the first time; KILTER_ERR_RANGE for a
 * weight or input outside the range in kilter_run; KILTER_ERR_MEMORY; the error that has ended the run. No
 * tasks are added in these cases. Kilter needs one more bit of memory for each added task. If this memory
 * runs out later, the run ends with KILTER_ERR_MEMORY.
 */
KILTER_API kilter_status kilter_farm_add(kilter_farm *farm, uint64_t count, const kilter_bytes *inputs,
                                         const double *weights, kilter_error *error);

/** Results of the last run. Times are in seconds. */
typedef struct kilter_farm_summary {
    uint64_t tasks;   /**< number of tasks of the run */
    uint64_t stored;  /**< number of tasks with results in the `--resume` file, which were not done again */
    uint64_t failed;  /**< number of tasks that failed */
    uint32_t workers; /**< number of workers that did at least one task */
    uint32_t resting; /**< number of workers that got no tasks because they would not have sped up the run */
    uint64_t chunks;  /**< number of chunks that were dealt; each chunk is one message */
    double elapsed_s; /**< time from the call of kilter_farm_run() to the last result */
    /** lower bound of elapsed_s: the run would take this time if every worker that did a task had computed
     * without pause at its measured speed */
    double bound_s;
    double efficiency;    /**< bound_s / elapsed_s, in [0, 1]; 0 for an empty run */
    double equal_split_s; /**< forecast of elapsed_s if the tasks had been split equally at the beginning,
                             from the measured speeds and message costs; 0: not known */
    const char *decision; /**< one sentence about the last decision and the time that it saved; the farm owns
                             this text until the next run */
} kilter_farm_summary;

/** Do the same as kilter_farm_summary_get(), for a struct with a size of `bytes` bytes. */
KILTER_API void kilter_farm_summary_get_sized(const kilter_farm *farm, kilter_farm_summary *summary,
                                              size_t bytes);

/** Get the summary of the last run; all zero before the first run.   Local, on the master. */
static inline void kilter_farm_summary_get(const kilter_farm *farm, kilter_farm_summary *summary) {
    kilter_farm_summary_get_sized(farm, summary, sizeof(kilter_farm_summary));
}

/** Input of kilter_farm_grain(). A program can divide its next run into more or fewer tasks; this struct
 * gives the possible numbers. */
typedef struct kilter_grain_options {
    uint64_t least; /**< fewest tasks that the program can make of a run; 0 means 1 */
    uint64_t most;  /**< most tasks that the program can make of a run, for example one for each item of the
                       work; 0 is an error, KILTER_ERR_RANGE */
    /** Return the number of runs that are still needed if each run has `tasks` tasks. The number is above 0
     * and may have any unit. In some methods, smaller tasks need fewer runs. Called in the caller's thread.
     * NULL: the number of runs does not depend on `tasks` */
    double (*runs)(uint64_t tasks, void *user);
    void *user;  /**< pointer that is passed to `runs` */
    double work; /**< work of the next run, as in kilter_run; 0: the same as in the last run */
} kilter_grain_options;

/** Answer of kilter_farm_grain(): the number of tasks to make, and the forecast of a run with this number of
 * tasks. Times are in seconds. */
typedef struct kilter_grain {
    uint64_t tasks;   /**< number of tasks to make for the next run */
    uint32_t workers; /**< number of workers that get tasks; the other present workers are too slow to help */
    double master_s;  /**< time that the program computes alone, between two runs */
    double workers_s; /**< time of the run until the last worker has computed its share */
    double messages_s; /**< sum of three times: the time of the round trip, the time to receive the results,
                          and the time lost in the last run */
    char reason[160];  /**< one clause with the numbers behind the choice */
} kilter_grain;

/** Do the same as kilter_farm_grain(), for structs with these sizes in bytes. */
KILTER_API kilter_status kilter_farm_grain_sized(kilter_farm *farm, const kilter_grain_options *options,
                                                 size_t options_bytes, kilter_grain *grain,
                                                 size_t grain_bytes, kilter_error *error);

/**
 * Choose the number of tasks T for the next run.   Local, on the master, between two runs.
 *
 * The choice minimises the time of all runs to come, runs × (t_M(T) + t_W(T) + round trip + workers ×
 * t_update). The formula is that of Buaklee, Tracy, Vernon, Wright 2002; Kilter adds the last two terms. t_M
 * is the time that the caller's thread computes between two runs, as a function of the number of tasks. t_W
 * is the time until the last worker is done, at the measured speeds, if each task goes to the worker that
 * would finish it first. t_update is the time that the master needs for the results of one worker. Kilter
 * keeps the number of the last run unless another number is at least 5 % better. Without measurements, the
 * choice is four tasks per worker.
 *
 * The call changes nothing; it stores its answer and forecast in the run record. The program's results must
 * not depend on how the program divides its work. With `resume` this call is an error, because a continued
 * program must divide its work as before.
 *
 * @param grain  [out] written only on KILTER_OK
 * @return KILTER_OK; KILTER_ERR_RANGE if least > most, most is 0, or work or the number that `runs` returns
 * is not above 0; KILTER_ERR_USAGE during a run (from its callback), with `resume`, and after a run that has
 * grown; KILTER_ERR_MEMORY; the error of an earlier call after which the farm can only be closed
 */
static inline kilter_status kilter_farm_grain(kilter_farm *farm, const kilter_grain_options *options,
                                              kilter_grain *grain, kilter_error *error) {
    return kilter_farm_grain_sized(farm, options, sizeof(kilter_grain_options), grain, sizeof(kilter_grain),
                                   error);
}

/** Do the same as kilter_farm_program(), for a struct with a size of `bytes` bytes. */
KILTER_API kilter_status kilter_farm_program_sized(kilter_farm *farm, kilter_program *program, size_t bytes,
                                                   kilter_error *error);

/**
 * Get the measurements of the farm's last runs, for kilter_predict(). work_s is for a worker with the mean
 * speed of the present workers; iterations is 1.   Local, on the master, between two runs.
 *
 * @param program  [out] written only on KILTER_OK
 * @return KILTER_OK; KILTER_ERR_USAGE before the end of the first run, during a run, and after a run that has
 * grown; KILTER_ERR_MEMORY; the error of an earlier call after which the farm can only be closed
 */
static inline kilter_status kilter_farm_program(kilter_farm *farm, kilter_program *program,
                                                kilter_error *error) {
    return kilter_farm_program_sized(farm, program, sizeof(kilter_program), error);
}

/** Return whether results are stored (`--resume`). If so, the program's decisions must not depend on times.
 * Local, on the master. */
KILTER_API bool kilter_farm_resumes(const kilter_farm *farm);

/** A program's forecast of the time that its next runs take together. */
typedef struct kilter_expectation {
    uint64_t runs;      /**< number of runs to which the forecast applies, from the next run on */
    double seconds;     /**< seconds from now until the last of these runs has ended */
    const char *reason; /**< one clause with the numbers behind the forecast; Kilter copies the text; NULL: no
                           reason */
} kilter_expectation;

/** Do the same as kilter_farm_expect(), for a struct with a size of `bytes` bytes. */
KILTER_API kilter_status kilter_farm_expect_sized(kilter_farm *farm, const kilter_expectation *expectation,
                                                  size_t bytes, kilter_error *error);

/**
 * Store a forecast of the time of the next runs in the run record. The record compares this forecast with the
 * measured time.   Local, on the master, between two runs.
 *
 * A forecast applies to all runs until the next forecast, or until the farm is closed. If no run follows a
 * forecast, the next forecast replaces it.
 *
 * @return KILTER_OK; KILTER_ERR_RANGE: 0 runs, or seconds that are not above 0; KILTER_ERR_USAGE during a run
 * (from its callback); the error of an earlier call after which the farm can only be closed
 */
static inline kilter_status kilter_farm_expect(kilter_farm *farm, const kilter_expectation *expectation,
                                               kilter_error *error) {
    return kilter_farm_expect_sized(farm, expectation, sizeof(kilter_expectation), error);
}

/** Return the file name of the run record; NULL: there is no record. The farm owns the text.   Local, on the
 * master. */
KILTER_API const char *kilter_farm_record(const kilter_farm *farm);

/**
 * End the farm: stop workers, finish the record and free everything. Local workers that have not ended after
 * 5 s are killed. Collective like kilter_farm_open(). NULL does nothing.
 *
 * @return KILTER_OK; KILTER_ERR_RECORD: the record is incomplete, but the delivered results are not affected;
 * KILTER_ERR_USAGE during a run (from its callback): nothing is closed
 */
KILTER_API kilter_status kilter_farm_close(kilter_farm *farm, kilter_error *error);

#ifdef __cplusplus
}
#endif
#endif
