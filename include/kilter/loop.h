/**
 * @file
 * A distributed loop: iterations, and the rows of arrays that belong to them, lie on the ranks of an MPI
 * communicator and move between them as the machines' real speeds demand.
 *
 * @code{.c}
     kilter_loop *loop;
     double (*u)[M];
     kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = N}, &loop, &error);
     kilter_loop_array(loop, sizeof *u, 1, (void **)&u, &error);
     for (int sweep = 0; sweep < SWEEPS; sweep++) {
         kilter_loop_begin(loop, &error);
         for (kilter_range r; kilter_loop_next(loop, &r);)
             for (uint64_t i = r.lo; i < r.hi; i++)
                 …work on u[i], reading u[i - 1] and u[i + 1]…
         kilter_loop_end(loop, &error);
     }
     kilter_loop_close(loop, &error);
   @endcode
 *
 * Arrays are addressed by the global index on every rank, so the body of the loop is that of the sequential
 * program. Complete programs are in examples/.
 *
 * Calls are marked *collective* (every rank of the communicator makes them, in the same order) or *local*. A
 * loop is used by one thread of each rank, and is not NULL but for kilter_loop_close(). After a failure of a
 * collective call the loop can only be closed.
 *
 * A rank that dies, or fails alone, ends the loop on all ranks: where the launcher lets them live (mpirun
 * `--enable-recovery`), their next call gives KILTER_ERR_PEER and names it, with the reason of one that
 failed;
 * those that wait in a call hear within a second, or 11 when a host is lost, whatever the others do.
 * End the program with exit() or MPI_Abort() when a rank is dead: MPI_Finalize() waits for it. What MPI may
 * still write into is not freed.
 *
 * Rows are not moved to a rank that has no memory for them: where RLIMIT_DATA or the system's commit limit is
 * reached, or 1 MiB or more comes and the host, or a control group of the rank, has less left. The loop goes
 * on as it was, and kilter_loop_summary says so.
 *
 * Collective calls that are out of step between ranks are KILTER_ERR_USAGE, and named. With KILTER_CHECK=1 in
 * the environment of any rank (KILTER_CHECK=0: not; a debug build of the library: unless it is 0) every call
 * is compared before it is carried out, and a rank that touches rows that are not there says which, and where
 * they are, before it dies of SIGSEGV. Of a `deep` loop, more rows around the own ones can be touched.
 */
#ifndef KILTER_LOOP_H
#define KILTER_LOOP_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kilter/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A loop, on one of its ranks. */
typedef struct kilter_loop kilter_loop;

/** Indices lo, lo + 1, …, hi − 1. */
typedef struct kilter_range {
    uint64_t lo; /**< the first */
    uint64_t hi; /**< the one after the last */
} kilter_range;

/** Do the iterations of an execution depend on each other? */
typedef enum kilter_loop_kind {
    /** The iterations of one execution do not depend on each other. */
    KILTER_DOALL = 0,
    /** Iteration i needs what iteration i − 1 made in the same execution, element by element of its row: the
     * ranks work as a pipeline, on blocks of `inner` whose size Kilter chooses. */
    KILTER_DOACROSS = 1,
} kilter_loop_kind;

/** Zero means: choose for me. */
typedef struct kilter_loop_options {
    uint64_t iterations;   /**< n; at least 1 */
    kilter_loop_kind kind; /**< do iterations depend on each other? */
    /** DOALL without ghost rows: a rank's iterations may be several ranges, in any order of ranks, and move
     * within an execution. Otherwise each rank has one range, in the order of ranks, and what iterations cost
     * along the index is learnt. */
    bool scattered;
    uint64_t inner; /**< DOACROSS: elements of a row, in the pipelined direction; at least 1 */
    uint64_t block; /**< DOACROSS: elements in a block; 0: chosen by measurement */
    /** DOALL, not `scattered`; nothing follows from it with `fixed`. Kilter may then exchange the ghost rows
     * of several executions at once, and kilter_loop_next() gives rows of neighbours, too. Set it only if all
     * of this holds:
     * - The body writes row i only. What it makes of it depends on rows i − g … i + g (g: the largest `ghost`
     *   of the loop's arrays) and on values that are the same on all ranks.
     * - It has no other effect: it does not count, add up or print. For a sum, keep a double for each row in
     *   an array, and call kilter_loop_sum() after the execution.
     * - After the first kilter_loop_begin() nothing but the body writes rows, of any array. Own rows may be
     *   read between executions.
     * Otherwise results are wrong, without a message, and only where cores are shared. */
    bool deep;
    bool fixed;       /**< nothing moves: equal shares for good */
    const char *name; /**< in messages and the record; NULL: "loop" */
    /** file of the run record (docs/reference/record.md), with a number added to its name if it exists,
     * written by rank 0, whose word alone counts; NULL or "none": no record. KILTER_RECORD in its environment
     * comes first, as for farms */
    const char *record;
} kilter_loop_options;

/** kilter_loop_open() for options that are `bytes` bytes long. */
KILTER_API kilter_status kilter_loop_open_sized(MPI_Comm comm, const kilter_loop_options *options,
                                                size_t bytes, kilter_loop **loop, kilter_error *error);

/**
 * Open a loop over the ranks of `comm`, with equal shares.   Collective.
 *
 * The communicator is duplicated; the caller may free its own. Options must be the same on all ranks. Ranks
 * that are late are waited for, as long as KILTER_MPI_START_S says (300 s; 0: for ever); once all are there,
 * none may be silent for 30 s, or for less than that if it says so, until they are connected.
 * @return KILTER_OK; KILTER_ERR_USAGE, KILTER_ERR_RANGE (an option, or KILTER_MPI_START_S, named; or options
 * that differ between ranks); KILTER_ERR_MEMORY; KILTER_ERR_PEER (not all ranks came, or one died);
 * KILTER_ERR_MPI; KILTER_ERR_RECORD (the record cannot be made: on all ranks)
 */
static inline kilter_status kilter_loop_open(MPI_Comm comm, const kilter_loop_options *options,
                                             kilter_loop **loop, kilter_error *error) {
    return kilter_loop_open_sized(comm, options, sizeof(kilter_loop_options), loop, error);
}

/**
 * Attach an array with a row of `bytes` for each iteration.   Collective; before the first
 * kilter_loop_begin().
 *
 * *base is where row 0 would be: row i is at (char *)*base + i × bytes, on the rank that has iteration i.
 * Rows of other ranks must not be touched, but `ghost` rows on either side of the own ones may be read: they
 * hold what their owners had when the execution began. New rows are zero. Memory belongs to the loop until it
 * is closed, and only rows that are here take any; the addresses do not change. DOACROSS: bytes is a multiple
 * of `inner`, and ghost at most 1: the row before the own ones holds this execution's values, in the block at
 * work and those before, and the row after them what it had when the execution began, in that block and those
 * after it.
 * @return KILTER_OK; KILTER_ERR_RANGE (0 bytes, more than 2^47 in all, ghost rows with `scattered`, sizes
 * that differ between ranks); KILTER_ERR_USAGE (the loop has begun); KILTER_ERR_MEMORY
 */
KILTER_API kilter_status kilter_loop_array(kilter_loop *loop, size_t bytes, uint64_t ghost, void **base,
                                           kilter_error *error);

/**
 * One execution of the loop begins: ghost rows are on their way.   Collective.
 *
 * @return KILTER_OK; KILTER_ERR_USAGE (one is under way; collective calls out of step); KILTER_ERR_MEMORY;
 * KILTER_ERR_MPI; KILTER_ERR_PEER (a rank is dead, or has given up the loop: named)
 */
KILTER_API kilter_status kilter_loop_begin(kilter_loop *loop, kilter_error *error);

/**
 * The next iterations to do here.   Local; DOALL.
 *
 * Each iteration is given once, on one rank (`deep`: on its own, and maybe on neighbours), in any order.
 * The range given last counts as done. Rows move only within calls of this library: pointers into rows of the
 * range hold until the next call.
 * @return false: nothing is left for this rank, or something failed (which kilter_loop_end() tells)
 */
KILTER_API bool kilter_loop_next(kilter_loop *loop, kilter_range *range);

/**
 * The next block: all own rows, and elements of each, to be done row by row in rising order.   Local;
 * DOACROSS.
 *
 * @return false: the execution is done for this rank, or something failed (which kilter_loop_end() tells)
 */
KILTER_API bool kilter_loop_next_block(kilter_loop *loop, kilter_range *rows, kilter_range *inner);

/**
 * The execution ends: whoever returns from it may use its own rows until the next begin.   Collective; after
 * kilter_loop_next() or kilter_loop_next_block() has said that nothing is left.
 *
 * @return KILTER_OK; KILTER_ERR_USAGE (iterations of this rank are left; none is under way); what failed in
 * the execution: errors as of kilter_loop_begin()
 */
KILTER_API kilter_status kilter_loop_end(kilter_loop *loop, kilter_error *error);

/**
 * The own rows between two executions: the `nth` range of them, 0, 1, ….   Local; between end and begin.
 *
 * @return false: there are no more, or something failed (which the next collective call tells)
 */
KILTER_API bool kilter_loop_mine(kilter_loop *loop, size_t nth, kilter_range *range);

/**
 * The sum of one double for each iteration, exact and rounded once: the same bits for every number of ranks
 * and every move.   Collective; between two executions.
 *
 * @param values  an attached array's base, with rows of 8 bytes
 * @return KILTER_OK; KILTER_ERR_USAGE (another base, an execution under way, calls out of step); else errors
 * as of kilter_loop_begin()
 */
KILTER_API kilter_status kilter_loop_sum(kilter_loop *loop, const double *values, double *sum,
                                         kilter_error *error);

/**
 * Bring an attached array's rows together on rank `root`, in order.   Collective; between two executions.
 *
 * @param whole  on root: n × bytes of the caller's; elsewhere not looked at
 * @return errors as of kilter_loop_sum(); also KILTER_ERR_USAGE: there is no such root
 */
KILTER_API kilter_status kilter_loop_gather(kilter_loop *loop, const void *base, int root, void *whole,
                                            kilter_error *error);

/** What balancing did so far. The texts are the loop's, valid until its next call. */
typedef struct kilter_loop_summary {
    uint64_t executions; /**< of the loop that have ended */
    uint64_t rounds;     /**< times that rates were compared */
    uint64_t moves;      /**< decisions to move that were carried out */
    uint64_t moved;      /**< iterations moved by them */
    uint64_t block;      /**< DOACROSS: elements in a block now */
    uint64_t depth;      /**< executions that one exchange of ghost rows is for now; 1 unless `deep` */
    double elapsed_s;    /**< in executions */
    double waited_s;     /**< of it this rank had nothing to do */
    double moving_s;     /**< and this rank spent on moving rows */
    /** forecast when the moves so far were decided: elapsed time saved, of each until speeds were to change
     */
    double gained_s;
    /** what came of them: elapsed time the executions since the first move would have taken longer with equal
     * shares, at the speeds measured meanwhile; below 0: lost. What moving took is not taken off */
    double came_s;
    const char *decision; /**< one sentence: what was decided last, and why */
} kilter_loop_summary;

/** kilter_loop_summary_get() for a summary that is `bytes` bytes long. */
KILTER_API void kilter_loop_summary_get_sized(const kilter_loop *loop, kilter_loop_summary *summary,
                                              size_t bytes);

/** Say what balancing did so far.   Local. */
static inline void kilter_loop_summary_get(const kilter_loop *loop, kilter_loop_summary *summary) {
    kilter_loop_summary_get_sized(loop, summary, sizeof(kilter_loop_summary));
}

/**
 * Free the loop and its arrays.   Collective. NULL does nothing.
 *
 * @return KILTER_OK; why the loop failed; on rank 0 KILTER_ERR_RECORD: the record lacks rows, the loop is
 * closed as well as any
 */
KILTER_API kilter_status kilter_loop_close(kilter_loop *loop, kilter_error *error);

#ifdef __cplusplus
}
#endif
#endif
