/**
 * @file
 * A farm: one master deals tasks to workers that may be unequal, shared and changing, and gets every result
 * once.
 *
 * The same program is master and worker. kilter_farm_open() decides which it is from how it was started:
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
 * Some calls take or fill a struct that a later Kilter may enlarge. The library has them under names that end
 in
 * `_sized`, with the size of the program's struct beside it; the calls below pass that size on. Programs in
 other
 * languages call the names in `_sized`.
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

/** One task as its worker sees it. What it points to is aligned for any type and valid until the work
 * function returns. */
typedef struct kilter_task {
    uint64_t index;      /**< 0 … tasks−1 of the run */
    uint64_t run;        /**< 0 for the farm's first kilter_farm_run(), then 1, 2, … */
    kilter_bytes input;  /**< this task's own input; empty when the run has none */
    kilter_bytes shared; /**< the farm's shared data in force; empty when none was given */
} kilter_task;

/** Where a work function puts its result. Lives as long as the work function's call. */
typedef struct kilter_result kilter_result;

/**
 * Append `size` bytes to the task's result.   Local, from a work function only.
 *
 * The bytes are copied. A task without any call has an empty result.
 * @return KILTER_OK; KILTER_ERR_MEMORY; KILTER_ERR_RANGE when the result would pass 1 GiB less 1 MiB
 */
KILTER_API kilter_status kilter_result_put(kilter_result *result, const void *data, size_t size);

/**
 * Say why the task failed, in printf's manner; what was put so far is dropped.   Local, from a work function
 * only.
 *
 * @return 1, so that a work function can end with `return kilter_result_fail(result, "…");`
 */
KILTER_API int kilter_result_fail(kilter_result *result, const char *format, ...) KILTER_PRINTF(2, 3);

/** One worker, as its own start function sees it. */
typedef struct kilter_worker {
    /** 0, 1, 2, … in the order of joining; one that lost its master and finds it again gets a new number, of
     * which start, called once, does not hear */
    uint32_t index;
    void *user; /**< kilter_farm_options.user; in a worker process: that process's own copy */
} kilter_worker;

/**
 * Do one task. Called on a worker, one task at a time.
 * @param state  what the start function stored, else NULL
 * @return 0, or anything else when the task failed: it is reported to the master with its error and the rest
 * goes on
 */
typedef int (*kilter_work_fn)(const kilter_task *task, kilter_result *result, void *state);

/**
 * Prepare a worker: once, before its first task. What it stores in *state is passed to the other functions
 * and kept from run to run.
 * @return 0, or anything else when this worker cannot work: it leaves the farm, and says so
 */
typedef int (*kilter_start_fn)(const kilter_worker *worker, void **state);

/** Take new shared data, before the first task that sees it. The bytes stay valid until the next call.
 * @return as kilter_start_fn */
typedef int (*kilter_shared_fn)(kilter_bytes shared, void *state);

/** Release what the start function made: once, at the end, on a worker whose start function returned 0. */
typedef void (*kilter_stop_fn)(void *state);

/**
 * What a farm is made of. Zero means "choose for me" in every field but `work`.
 *
 * Command line and environment win over this struct (see kilter_farm_usage()). Strings are copied.
 */
typedef struct kilter_farm_options {
    kilter_work_fn work;     /**< required */
    kilter_start_fn start;   /**< NULL: workers need no preparation */
    kilter_shared_fn shared; /**< NULL: workers only read kilter_task.shared */
    kilter_stop_fn stop;     /**< NULL: there is nothing to release */
    void *user;              /**< handed to start in kilter_worker; not looked at */

    /** local workers, 0: one per core; with listen: how many to wait for, 0: 1 */
    uint32_t workers;
    /** cores of each local worker process: "none": it may use all; "core": one; "3": so many; "auto": the
     * cores divided by the number of workers, at least one, and at least OMP_NUM_THREADS where the program
     * uses OpenMP. OpenMP takes as many threads as its worker has cores, unless OMP_NUM_THREADS says how
     * many. With a number N and no `workers`, one worker is started for every N cores. NULL: "auto" */
    const char *bind;
    /** how many of them work: "all"; "auto", which lets those rest between runs that do not pay; or a file
     * "*.kilter", the record of a farm of the same program: as "auto", beginning with as many as that says.
     * NULL: "auto" */
    const char *team;
    /** those that do not pay leave the farm for good, instead of waiting to be wanted again */
    bool release;
    /** a task that was at so many workers that were lost is not tried again, but reported as failed; 0: 5 */
    uint32_t attempts;
    /** time limit of a task: "30", in seconds, from 0.5; or "10x": ten times as long as tasks of its weight
     * have taken its worker so far. A task that exceeds it has failed; its worker's process, which nothing
     * else would get out of it, is ended within half a second, and another one takes its place. NULL: no
     * limit. Not with transport mpi or inproc, whose workers cannot be ended one by one */
    const char *task_timeout;
    /** how often a task is tried again that failed or exceeded a limit: when no other task is left, at
     * another worker if there is one */
    uint32_t retries;
    /** memory limit of a worker's process, "500M" or "2G", 1M being 1,000,000 bytes: what it takes beyond
     * what it had when it joined. A task in which it takes more has failed, as by task_timeout; a worker with
     * nine tenths of it is replaced after its task. Looked at every tenth of a second while tasks run. NULL:
     * no limit. Not with mpi or inproc */
    const char *worker_memory;
    /** tasks that a worker does before its process ends and another one takes its place; 0: no limit. Not
     * with mpi or inproc */
    uint64_t worker_tasks;
    /** the program's version, the same on master and workers: workers of another one are sent away; NULL: ""
     */
    const char *version;
    /** how tasks are dealt; NULL: "auto" */
    const char *policy;
    /** "zmq", "mpi" or "inproc" (workers are threads: work must be thread-safe); NULL: by how it was started
     */
    const char *transport;
    /** be a master that waits for workers at this endpoint, tcp://ADDRESS:PORT; NULL: local workers */
    const char *listen;
    /** be a worker of the master that listens at this endpoint; NULL: be the master */
    const char *join;
    /** file with the keys of a farm over tcp, whose messages are encrypted and whose ends know each other by
     * them;
     * "-": the standard input, on a worker. It must be its owner's alone (mode 0600). A master makes it when
     * it is not there; each worker needs a copy. NULL: farm.key in the user's state folder */
    const char *key;
    /** with zmq: a worker, or the master, of which nothing was heard for so long is lost, from 0.5 to 86400
     * s; 0: 10 s. A process that ended is noticed at once, one that computes for long is not lost. */
    double lost_after_s;
    /** with join: how long to wait for a master, at the beginning and again whenever it is lost without
     * having closed the farm, from 0.5 to 86400 s; 0: 60 s. A worker that finds one again is a new one to it,
     * with the state its start function made; it comes back like this, too, when it was stopped for longer
     * than lost_after_s. */
    double wait_for_master_s;
    /** the run record's file; if it exists, a number is added to the name, as in a-2.kilter; "none": no
     * record, and no kilter tune; NULL: a new file in the user's state folder */
    const char *record;
    /** a run record that also holds the results, so that they survive the master: made when it is not there,
     * else gone on with; NULL: results are not stored. See kilter_farm_run(). Not together with `record` */
    const char *resume;
    /** go on with `resume` although the program's file or its arguments (without Kilter's) are not those that
     * it was made with; else that is refused. Without `resume` it does nothing */
    bool resume_anyway;
    /** the program's name in record and messages, the same on master and workers; NULL: from argv[0] */
    const char *name;
    /** print a progress line with the time left to stderr */
    bool progress;
    /** the program's own policies, behind the last one NULL: `policy` and `--policy` may name them. They are
     * not copied, and are kept until the farm is closed. NULL: none. See kilter/policy.h */
    const kilter_policy *const *policies;
} kilter_farm_options;

/** A farm, on its master. */
typedef struct kilter_farm kilter_farm;

/** Text of the options and environment variables kilter_farm_open() understands, for a program's own
 * `--help`. Local. */
KILTER_API void kilter_farm_usage(FILE *out);

/** kilter_farm_open() for options that are `bytes` bytes long. */
KILTER_API kilter_status kilter_farm_open_sized(const kilter_farm_options *options, size_t bytes, int *argc,
                                                char **argv, kilter_farm **farm, kilter_error *error);

/**
 * Open a farm, on the master; or be a worker until the farm is closed, on a worker.   Collective over the
 * ranks when started by mpirun.
 *
 * Options meant for Kilter are taken out of argc/argv; the rest stays, in order.
 * Local workers are processes made with fork(): open the farm before starting threads, and in a thread that
 * lives as long as the farm, as they are killed when it ends. They are bound to cores as `bind` says.
 * They inherit what is open, but for sockets marked close-on-exec.
 *
 * @param argc, argv  as main() got them; both NULL when there is no command line
 * @param farm        [out] the farm, closed with kilter_farm_close(); written only on KILTER_OK
 * @param error       [out] what went wrong; may be NULL
 * @return KILTER_OK on the master. KILTER_ENDED on a worker whose farm has been closed, and after
 * `--kilter-help`: return kilter_exit(…) from main. KILTER_ERR_USAGE for an option that cannot be used;
 * KILTER_ERR_SYSTEM, _MEMORY, _MPI, _NO_WORKER (none of the local ones could start) and, on a worker, _PEER
 * (no master within a minute, or one of another program or version). A master that listens does not wait
 * here.
 */
static inline kilter_status kilter_farm_open(const kilter_farm_options *options, int *argc, char **argv,
                                             kilter_farm **farm, kilter_error *error) {
    return kilter_farm_open_sized(options, sizeof(kilter_farm_options), argc, argv, farm, error);
}

/** kilter_farm_run() for a run that is `bytes` bytes long. */
KILTER_API kilter_status kilter_farm_run_sized(kilter_farm *farm, const kilter_run *run, size_t bytes,
                                               kilter_error *error);

/**
 * Deal the run's tasks to the workers and deliver each result once.   Local, on the master; one run at a time
 * per farm.
 *
 * May be called again and again: workers keep their state and Kilter what it has measured. Workers are
 * answered while `done` computes (except where MPI gives no thread support). The first run of a master that
 * listens waits, as long as it takes, until as many workers are there as its options say; more may join
 * later.
 *
 * With `resume` a result counts, and is delivered, when it is in the file and on the disk. A program that is
 * started again the same way makes the same calls: the n-th one takes the results that the n-th one before
 * has stored, gives them to `done`, and only does the rest, those tasks included that failed. What is stored
 * is for the same tasks, inputs, weights and shared data only.
 *
 * @return KILTER_OK; KILTER_ERR_TASK when tasks failed (all others were done and delivered);
 * KILTER_ERR_CANCELLED when kilter_farm_cancel(), Ctrl-C or SIGTERM ended it;
 * KILTER_ERR_NO_WORKER when the last worker was lost (a master that listens waits for another one instead);
 * KILTER_ERR_RANGE for a weight, work, input, shared data or limit outside what kilter_run says;
 * KILTER_ERR_USAGE when the run's workers cannot be held to its limit, when the farm's last run has not
 * returned, as in its callback, when the record asked for cannot be made, or when the file to resume from
 * holds results of a run that was about something else; KILTER_ERR_RECORD when that file is damaged, another
 * program's or just now another master's, before anything was delivered, or when results cannot be stored
 * (then the farm is of no more use, and what was stored is kept); KILTER_ERR_MEMORY, _SYSTEM
 */
static inline kilter_status kilter_farm_run(kilter_farm *farm, const kilter_run *run, kilter_error *error) {
    return kilter_farm_run_sized(farm, run, sizeof(kilter_run), error);
}

/**
 * End the run that is on, early: the results that have come are given to `done`, and kilter_farm_run()
 * returns KILTER_ERR_CANCELLED. From any thread and from callbacks, but not from a signal handler, and not
 * once the farm is being closed; it does nothing where no run is on. The farm can be used again. With
 * `resume` the same command goes on from what is done.
 *
 * Ctrl-C and SIGTERM do the same to a master on which threads can be used (not under mpirun), where the
 * program neither handles nor ignores them when it opens the farm; later runs are cancelled, too. One that
 * comes more than a second later, or while no run is on, ends the program at once. Of several farms in a
 * process the one opened first hears them.
 */
KILTER_API void kilter_farm_cancel(kilter_farm *farm);

/**
 * Add tasks to the run that is on.   Local, on the master, from the callback `done` of a run with `grows`.
 *
 * Their indices follow the run's last one so far; they are dealt after the tasks that are left, by the run's
 * policy, and `done` gets their results like those of the others. What is given is copied, and kept until the
 * run ends. Once `done` has returned from the last result and has added nothing to it, the run ends.
 *
 * With `resume`, a program that is started again must add the same tasks at the same results: what is added
 * may follow only from the results taken before, in their order (that of the first time), not from time, nor
 * from tasks that failed, which are done again.
 *
 * @param inputs   inputs[0 … count−1]; NULL: they have none
 * @param weights  in the unit of the run's weights (of a run without: each task has 1); NULL: each is as much
 * as the mean of those the run began with
 * @return KILTER_OK; KILTER_ERR_USAGE when no such run is on and, with `resume`, when something else was
 * added here the first time: the run then ends with this error; KILTER_ERR_RANGE for a weight or input
 * outside what kilter_run says; KILTER_ERR_MEMORY; what ended the run early, if something has. Nothing is
 * added then. Where memory runs out for a number of tasks afterwards (a bit each), the run ends with that.
 */
KILTER_API kilter_status kilter_farm_add(kilter_farm *farm, uint64_t count, const kilter_bytes *inputs,
                                         const double *weights, kilter_error *error);

/** What the last run came to. Times in seconds. */
typedef struct kilter_farm_summary {
    uint64_t tasks;   /**< of the run */
    uint64_t stored;  /**< those whose results were in the file of `--resume`: they were not done again */
    uint64_t failed;  /**< tasks that reported a failure */
    uint32_t workers; /**< that did at least one task */
    uint32_t resting; /**< that could have worked, but fewer were enough */
    uint64_t chunks;  /**< messages of tasks dealt */
    double elapsed_s; /**< from the call to the last result */
    /** elapsed time if every worker that did a task had computed all the time at the speed it really had;
     * those that rested do not count */
    double bound_s;
    double efficiency;    /**< bound_s / elapsed_s, in [0, 1]; 0 for an empty run */
    double equal_split_s; /**< forecast: elapsed time of an equal split made up front, at the speeds measured,
                             no less than what the workers share can do; 0: not known */
    const char *decision; /**< one sentence: what was decided and what it gained; the farm owns it until the
                             next run */
} kilter_farm_summary;

/** kilter_farm_summary_get() for a summary that is `bytes` bytes long. */
KILTER_API void kilter_farm_summary_get_sized(const kilter_farm *farm, kilter_farm_summary *summary,
                                              size_t bytes);

/** Summary of the last run; all zero before the first.   Local, on the master. */
static inline void kilter_farm_summary_get(const kilter_farm *farm, kilter_farm_summary *summary) {
    kilter_farm_summary_get_sized(farm, summary, sizeof(kilter_farm_summary));
}

/** How a program that makes its own tasks, run after run, can cut its work. */
typedef struct kilter_grain_options {
    uint64_t least; /**< fewest tasks that can be made; 0: 1 */
    uint64_t most;  /**< most that can be made, as many as the work has items; 0 is KILTER_ERR_RANGE */
    /** how many runs are still to come if each has `tasks` tasks, in any unit, above 0: in some methods finer
     * tasks save runs. Called in the caller's thread. NULL: their number does not depend on it */
    double (*runs)(uint64_t tasks, void *user);
    void *user;  /**< handed to runs */
    double work; /**< of the coming run, as in kilter_run; 0: as much as the last one's */
} kilter_grain_options;

/** How many tasks to make, and what is expected of a run then. Times in seconds. */
typedef struct kilter_grain {
    uint64_t tasks;    /**< to make for the coming run */
    uint32_t workers;  /**< that get some of them, of those there are now; the others are too slow to help */
    double master_s;   /**< the program alone, between two runs */
    double workers_s;  /**< until the last worker has computed its share */
    double messages_s; /**< the rest: round trip, results taken in, what else was lost in the last run */
    char reason[160];  /**< one clause, with the numbers that decided */
} kilter_grain;

/** kilter_farm_grain() for options and an answer of these lengths, in bytes. */
KILTER_API kilter_status kilter_farm_grain_sized(kilter_farm *farm, const kilter_grain_options *options,
                                                 size_t options_bytes, kilter_grain *grain,
                                                 size_t grain_bytes, kilter_error *error);

/**
 * How many tasks should the next run have?   Local, on the master, between two runs.
 *
 * As many as make runs × (t_M(T) + t_W(T) + round trip + workers × t_update) least (Buaklee, Tracy, Vernon,
 * Wright 2002, with the last two terms added): t_M is the time the caller's thread computed between two runs
 * as it grew with the number of tasks so far, t_W that of whole tasks dealt by earliest completion to the
 * workers there are now, at the speeds they have shown. Another number than the last run's is given when it
 * is at least 5 % better. Before anything is measured: four tasks a worker. Asking changes nothing but the
 * run record, where the answer and its forecast stand beside the run that follows. Results must not depend on
 * how the work is cut. A farm with `resume` must not ask, as its runs must be cut as they were before.
 *
 * @param grain  [out] written only on KILTER_OK
 * @return KILTER_OK; KILTER_ERR_RANGE when least > most, most is 0, or work or what `runs` gives is no number
 * above 0; KILTER_ERR_USAGE while a run is on, as in its callback, with `resume`, and after a run that has
 * grown, which tells nothing of those that do not; KILTER_ERR_MEMORY; what made the farm of no more use, if
 * something has
 */
static inline kilter_status kilter_farm_grain(kilter_farm *farm, const kilter_grain_options *options,
                                              kilter_grain *grain, kilter_error *error) {
    return kilter_farm_grain_sized(farm, options, sizeof(kilter_grain_options), grain, sizeof(kilter_grain),
                                   error);
}

/** kilter_farm_program() for a program that is `bytes` bytes long. */
KILTER_API kilter_status kilter_farm_program_sized(kilter_farm *farm, kilter_program *program, size_t bytes,
                                                   kilter_error *error);

/**
 * The farm's last runs as a benchmark, for kilter_predict(): tasks, work_s on a worker of the mean speed of
 * those that work now, and what the master and messages took; iterations is 1.   Local, on the master,
 * between two runs.
 *
 * @param program  [out] written only on KILTER_OK
 * @return KILTER_OK; KILTER_ERR_USAGE before the first run has ended, while one is on, and after one that has
 * grown; KILTER_ERR_MEMORY; what made the farm of no more use, if something has
 */
static inline kilter_status kilter_farm_program(kilter_farm *farm, kilter_program *program,
                                                kilter_error *error) {
    return kilter_farm_program_sized(farm, program, sizeof(kilter_program), error);
}

/** Are results stored, as by `--resume`?   Local, on the master. Then what the program decides must not
 * depend on times. */
KILTER_API bool kilter_farm_resumes(const kilter_farm *farm);

/** What a program expects of its coming runs, taken together. */
typedef struct kilter_expectation {
    uint64_t runs;      /**< how many there will be */
    double seconds;     /**< from now until the last of them has ended */
    const char *reason; /**< one clause, with the numbers behind it; copied; NULL: none */
} kilter_expectation;

/** kilter_farm_expect() for an expectation that is `bytes` bytes long. */
KILTER_API kilter_status kilter_farm_expect_sized(kilter_farm *farm, const kilter_expectation *expectation,
                                                  size_t bytes, kilter_error *error);

/**
 * Say how long the coming runs will take, for the run record, where it stands beside what came of it. Local,
 * on the master, between two runs.
 *
 * The runs it is about end with the last one before the next expectation, or before the farm is closed. One
 * that no run has followed is replaced.
 *
 * @return KILTER_OK; KILTER_ERR_RANGE for no run, or seconds that are no number above 0; KILTER_ERR_USAGE
 * while a run is on, as in its callback; what made the farm of no more use, if something has
 */
static inline kilter_status kilter_farm_expect(kilter_farm *farm, const kilter_expectation *expectation,
                                               kilter_error *error) {
    return kilter_farm_expect_sized(farm, expectation, sizeof(kilter_expectation), error);
}

/** The run record's file, or NULL when nothing is recorded. The farm owns it.   Local, on the master. */
KILTER_API const char *kilter_farm_record(const kilter_farm *farm);

/**
 * End the farm: workers stop, local ones are waited for (those not gone after 5 s are killed), the record is
 * finished, everything is freed. Collective like kilter_farm_open(). NULL does nothing.
 *
 * @return KILTER_OK; KILTER_ERR_RECORD when the record is incomplete: the results delivered are not affected;
 * KILTER_ERR_USAGE when a run has not returned, as in its callback: nothing is closed
 */
KILTER_API kilter_status kilter_farm_close(kilter_farm *farm, kilter_error *error);

#ifdef __cplusplus
}
#endif
#endif
