/**
 * @file
 * A distributed loop. Its iterations are spread over the ranks of an MPI communicator; each iteration has a
 * row in each array of the loop. Iterations and their rows move between ranks, so that each rank's share fits
 * the real speed of its machine.
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
 * Every rank uses the global index for arrays, so the body of the loop is the same as in the sequential
 * program. Complete programs are in examples/.
 *
 * *Collective* calls are made by every rank of the communicator, in the same order. All others are *local*.
 * One thread of each rank uses a loop. Only kilter_loop_close() accepts NULL instead of a loop. After a
 * collective call has failed, the loop can only be closed.
 *
 * If one rank dies or fails, the loop ends on all ranks. If the launcher lets the other ranks live (mpirun
 * `--enable-recovery`), their next call returns KILTER_ERR_PEER. The error names the failed rank and the
 * reason. A call in which a rank waits returns within a second, or within 11 seconds if a host is lost. When
 * a rank is dead, end the program with exit() or MPI_Abort(), because MPI_Finalize() waits for the dead rank.
 * Kilter does not free memory into which MPI may still write.
 *
 * A program may sweep over the same rows in several ways: forwards and backwards, over pairs of rows, on
 * coarser grids. The program opens a loop for each of these ways. One of the loops is the leader, and the
 * others follow the leader (option `follows`). Each row of a follower is on the rank that has the matching
 * row of the leader. The loops share arrays with kilter_loop_share(). A leader and its followers are called
 * aligned.
 *
 * Rows may have content whose size changes, such as particles; see kilter_loop_rows(). Rows send each other
 * messages with kilter_loop_post() and kilter_loop_deliver().
 *
 * Rows do not move to a rank that lacks memory for them. A rank lacks memory if it would exceed RLIMIT_DATA
 * or the system's commit limit. If the rows need 1 MiB or more, a rank also lacks memory if its host or
 * control group (cgroup) has less memory left than the rows need. The loop continues with its present shares,
 * and kilter_loop_summary says so.
 *
 * If ranks make different collective calls, the error is KILTER_ERR_USAGE and names the calls. KILTER_CHECK=1
 * in the environment of any rank switches checks on. These checks are also on in a debug build of the
 * library, unless KILTER_CHECK=0. With checks, Kilter compares the calls of all ranks before it carries them
 * out. A rank that touches a row of another rank prints the row and its owner before it dies of SIGSEGV. In a
 * `deep` loop, a rank can touch some rows next to its own without this error.
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

/** A loop. Each of its ranks has its own handle. */
typedef struct kilter_loop kilter_loop;

/** A range of indices: lo, lo + 1, …, hi − 1. */
typedef struct kilter_range {
    uint64_t lo; /**< first index */
    uint64_t hi; /**< index after the last index */
} kilter_range;

/** Whether the iterations of a sweep depend on each other. A sweep is one pass of the loop over all
 * iterations. */
typedef enum kilter_loop_kind {
    /** The iterations of a sweep do not depend on each other. */
    KILTER_DOALL = 0,
    /** Element k of row i needs element k of row i − 1 from the same sweep. The ranks work as a pipeline:
     * they divide the `inner` elements of a row into blocks; Kilter chooses the size of the blocks. */
    KILTER_DOACROSS = 1,
} kilter_loop_kind;

/** Options of a loop. In every field but `iterations`, zero means that Kilter chooses the value. */
typedef struct kilter_loop_options {
    uint64_t iterations;   /**< number n of iterations; at least 1 */
    kilter_loop_kind kind; /**< whether iterations depend on each other */
    /** true, only for DOALL loops without ghost rows: a rank may have several ranges of iterations, anywhere
     * in the loop, and iterations may move within a sweep; false: each rank has one range, in the order of
     * ranks, and Kilter learns how the cost of an iteration depends on its index. */
    bool scattered;
    uint64_t inner; /**< for DOACROSS: number of elements of a row in the pipelined direction; at least 1 */
    uint64_t block; /**< for DOACROSS: number of elements in a block; 0: Kilter measures and chooses it */
    /** true: Kilter may exchange the ghost rows of several sweeps at once. Then kilter_loop_next() gives rows
     * of neighbours, too. For DOALL, not `scattered`; without effect if `fixed`. Set `deep` only if all of
     * these conditions hold:
     * - The body writes only row i. The new values depend on rows i − g … i + g (g: the largest `ghost` of
     *   the loop's arrays) and on values that are the same on all ranks.
     * - The body has no other effect: it does not count, add up or print. For a sum, keep a double for each
     *   row in an array, and call kilter_loop_sum() after the sweep.
     * - After the first kilter_loop_begin(), only the body writes rows of any array. Own rows may be read
     *   between sweeps.
     * Otherwise results can be wrong without any error message. They are wrong only on machines where ranks
     * share cores with others. */
    bool deep;
    bool fixed;       /**< true: shares stay equal, and no rows move */
    const char *name; /**< name for messages and the record; NULL: "loop" */
    /** file of the run record (docs/reference/record.md); a number is added to its name if the file exists.
     * Only the value on rank 0 counts, and rank 0 writes the file. NULL or "none": no record. KILTER_RECORD
     * in the environment of rank 0 takes precedence over this option */
    const char *record;
    /** path of the checkpoint, without number and suffix: "out/heat" stands for the files out/heat.000001.h5,
     * out/heat.000002.h5, … (docs/reference/checkpoint.md). All hosts must share its folder. NULL: the path
     * in the environment variable KILTER_CHECKPOINT, or no checkpoints without this variable; "none": no
     * checkpoints, and no progress reports in the folder that KILTER_KEEP names. Each loop of a program needs
     * a path of its own. Only the values on rank 0 count, for this option and the next four. A relative path
     * begins in the working folder of rank 0 */
    const char *checkpoint;
    /** seconds between two checkpoints. 0: the value of KILTER_CHECKPOINT_S in the environment; without this
     * variable, Kilter chooses the seconds by Young's formula, from the measured cost of a checkpoint and the
     * failures so far */
    double checkpoint_s;
    /** Kilter writes checkpoints only before sweeps whose numbers are multiples of this value. Sweeps are
     * numbered from 0, and a resumed program continues the count. This option is for programs in which each
     * time step has several sweeps. 0 means 1 */
    uint64_t checkpoint_every;
    unsigned checkpoint_generations; /**< how many of the newest checkpoints Kilter keeps; 0 means 2 */
    uint64_t sweeps; /**< number of sweeps that the program expects to make in all, used only for forecasts;
                        0: unknown */
    /** another loop, the leader; this loop follows it. Row k of this loop is always on the rank that has the
     * leader's row `stride` × k + `offset`. Rows move only when a sweep of the leader begins; Kilter then
     * also counts the time in the bodies of the followers. A follower uses the leader's ranks, and Kilter
     * ignores the follower's communicator. Kilter also ignores the follower's `record` and options for
     * checkpoints, because the leader's options hold for the followers, too. Ranks without rows of the
     * follower also take part in the follower's calls. The leader neither follows another loop nor is
     * `scattered` or `deep`, and the follower is neither `scattered` nor `deep` nor `fixed`. NULL: this loop
     * follows none. All ranks give the same loop, or all give NULL. */
    kilter_loop *follows;
    uint64_t stride; /**< with `follows`: number of the leader's rows for each row of this loop; 0 means 1.
                        For a coarse grid that has every second row of the leader's grid, stride is 2 */
    uint64_t offset; /**< with `follows`: row 0 of this loop is on the rank that has the leader's row with
                        this number */
    /** true, for DOALL loops that are neither `scattered` nor `deep`: row 0 and row n − 1 are neighbours.
     * Ghost rows before row 0 are at rows −1, −2, …, and ghost rows after the last row are at rows n, n + 1,
     * … */
    bool periodic;
    /** true: rows come in falling order. In a DOACROSS loop, elements come in falling order, too, and element
     * k of row i needs element k of row i + 1 from the same sweep. A DOALL loop must also have `ordered`. */
    bool backward;
    /** true, for DOALL loops that are neither `scattered` nor `deep`: each rank gets its rows in rising
     * order, or in falling order with `backward`. So the body at row i may read rows that the rank overwrites
     * later in the sweep. These rows, and ghost rows, still have their values from the beginning of the
     * sweep. */
    bool ordered;
} kilter_loop_options;

/** Do the same as kilter_loop_open(), for a struct of options with a size of `bytes` bytes. */
KILTER_API kilter_status kilter_loop_open_sized(MPI_Comm comm, const kilter_loop_options *options,
                                                size_t bytes, kilter_loop **loop, kilter_error *error);

/**
 * Open a loop over the ranks of `comm`, with equal shares.   Collective. With `follows`: before the first
 * kilter_loop_begin() of the leader and of its followers.
 *
 * Kilter duplicates the communicator, so the caller may free `comm`. Options must be the same on all ranks.
 * The call waits for late ranks, up to KILTER_MPI_START_S seconds (default 300; 0: for ever). Then the ranks
 * connect. If a rank is silent for 30 s while ranks connect, or for KILTER_MPI_START_S seconds if this time
 * is shorter, the call fails.
 * @return KILTER_OK; KILTER_ERR_USAGE or KILTER_ERR_RANGE (an option or KILTER_MPI_START_S is wrong, or
 * options differ between ranks; the error names these options; or the leader has begun); KILTER_ERR_MEMORY;
 * KILTER_ERR_PEER (not all ranks came, or one died); KILTER_ERR_MPI; KILTER_ERR_RECORD (the record cannot be
 * created; on all ranks); KILTER_ERR_SYSTEM (checkpoints are wanted, but libkilter-ckpt cannot be loaded, or
 * a rank cannot write to their folder; on all ranks)
 */
static inline kilter_status kilter_loop_open(MPI_Comm comm, const kilter_loop_options *options,
                                             kilter_loop **loop, kilter_error *error) {
    return kilter_loop_open_sized(comm, options, sizeof(kilter_loop_options), loop, error);
}

/**
 * Attach an array with a row of `bytes` for each iteration.   Collective; before kilter_loop_resumed() and
 * the first kilter_loop_begin().
 *
 * *base is the address of row 0, on every rank, although only one rank has row 0. Row i is at (char *)*base +
 * i × bytes on the rank that has iteration i. A rank must not touch rows of other ranks, but may read `ghost`
 * rows on either side of its own. Ghost rows hold the values that their owners had when the sweep began. In a
 * new array, all bytes of its rows are zero. The memory belongs to the loop until the loop is closed. Only
 * rows on this rank use memory, and the address of a row never changes. Row 0 is aligned for any type, like
 * memory from malloc(); row i is if `bytes` is a multiple of the alignment, too.
 *
 * DOACROSS: `bytes` is a multiple of `inner`, and `ghost` is at most 1. In the present block and earlier
 * blocks, the ghost row before the rank's own rows has the values of this sweep. In the present block and
 * later blocks, the ghost row after the own rows has the values from the beginning of the sweep. If the loop
 * runs backwards, the two ghost rows exchange their roles.
 *
 * In all aligned loops, a rank can use its own rows of the array. Only sweeps of the loop to which the array
 * is attached, and of loops that kilter_loop_share() names, fetch the array's ghost rows.
 * @return KILTER_OK; KILTER_ERR_RANGE (0 bytes, more than 2^47 bytes in all, ghost rows with `scattered`,
 * sizes that differ between ranks); KILTER_ERR_USAGE (the loop has begun or was resumed); KILTER_ERR_MEMORY
 */
KILTER_API kilter_status kilter_loop_array(kilter_loop *loop, size_t bytes, uint64_t ghost, void **base,
                                           kilter_error *error);

/**
 * Let the sweeps of this loop fetch ghost rows of an array that was attached to an aligned loop. The array
 * may also be attached to this loop itself, with 0 ghost rows.   Collective; before the first
 * kilter_loop_begin().
 *
 * The body at row k may then read the array's rows up to a distance of `ghost` × the `stride` of the array's
 * loop. Distances are counted in rows of the leader. For example, let ghost be 1. A loop over a coarse grid
 * with `stride` 2 may read rows 2k − 1 … 2k + 1 of the fine grid. A loop over the fine grid may read the rows
 * of the coarse grid that are next to its row. The body writes only rows of arrays with the same rows as the
 * loop.
 *
 * Ghost rows keep the values that the last sweep fetched, until the leader's next kilter_loop_begin(). So a
 * follower need not fetch ghost rows that have not changed since the last sweep.
 *
 * DOACROSS: the array has the same rows as the loop, `bytes` is a multiple of `inner`, and `ghost` is 1.
 * @return KILTER_OK; KILTER_ERR_RANGE (base or ghost is wrong, or differs between ranks); KILTER_ERR_USAGE
 * (the loop has begun); KILTER_ERR_MEMORY
 */
KILTER_API kilter_status kilter_loop_share(kilter_loop *loop, const void *base, uint64_t ghost,
                                           kilter_error *error);

/**
 * Functions for the content of rows. Content is data of changing size, in addition to arrays, that the
 * program stores for each row in its own memory. Examples are particles, sparse rows, and cells of an
 * adaptive grid.
 *
 * Kilter calls these functions when rows move, within the calls of a sweep, in the program's thread. Kilter
 * does not call them for rows that the body of the loop is working on. If one of these functions makes a call
 * for this loop, the loop ends with KILTER_ERR_USAGE; only kilter_loop_summary_get() is allowed.
 */
typedef struct kilter_loop_content {
    /** Return the number of bytes that pack() writes for the row. The row is on this rank. This function must
     * be fast: Kilter also calls it for all rows when speeds are compared. */
    uint64_t (*bytes)(uint64_t row, void *user);
    /** Write the row's content to bytes(row) bytes at `to`, which is aligned for any type. The row stays as
     * it is.
     * If the function returns false, no row moves this time. */
    bool (*pack)(uint64_t row, void *to, void *user);
    /** Take the content of a row that has come to this rank. `from` is aligned for any type, and valid during
     * the call.
     * If the function returns false, the loop ends. */
    bool (*unpack)(uint64_t row, const void *from, uint64_t bytes, void *user);
    /** Free the content of a row that has left this rank. */
    void (*drop)(uint64_t row, void *user);
    void *user; /**< pointer that Kilter passes to these functions */
} kilter_loop_content;

/** Do the same as kilter_loop_rows(), for a struct with a size of `bytes` bytes. */
KILTER_API kilter_status kilter_loop_rows_sized(kilter_loop *loop, const kilter_loop_content *content,
                                                size_t bytes, kilter_error *error);

/**
 * Declare that each row has content of variable size, which moves with the row.   Collective; once, before
 * the first kilter_loop_begin().
 *
 * The struct is copied. kilter_loop_mine() gives the first rows of a rank; the program makes their content.
 * When the loop is closed, the program frees the content of the rows that the rank then has. Ghost rows have
 * no content; use kilter_loop_post() to send data to other rows.
 * @return KILTER_OK; KILTER_ERR_RANGE (a function is missing, or the loop is `deep`); KILTER_ERR_USAGE (the
 * loop has begun, has content already, or ranks make different calls); KILTER_ERR_MEMORY; KILTER_ERR_MPI;
 * KILTER_ERR_PEER
 */
static inline kilter_status kilter_loop_rows(kilter_loop *loop, const kilter_loop_content *content,
                                             kilter_error *error) {
    return kilter_loop_rows_sized(loop, content, sizeof(kilter_loop_content), error);
}

/**
 * Declare a value that belongs to the program's state and is the same on all ranks. Examples are a time, a
 * step, or the result of kilter_loop_sum(). A checkpoint stores the value of rank 0, and
 * kilter_loop_resumed() sets it on all ranks. All ranks declare the same values in the same order. Call this
 * before kilter_loop_resumed() and before the first kilter_loop_begin(). Without checkpoints the call only
 * checks its arguments. The value must stay at its address until the loop is closed. Each value needs a
 * different name. A name has up to 63 letters, digits, '_', '-' and '.', and begins with a letter.   Local.
 *
 * @return KILTER_OK; KILTER_ERR_RANGE (the name or the size cannot be used: 0 bytes, or more than 2^20);
 * KILTER_ERR_USAGE (the loop has begun, or was resumed); KILTER_ERR_MEMORY
 */
KILTER_API kilter_status kilter_loop_keep(kilter_loop *loop, const char *name, void *pointer, size_t bytes,
                                          kilter_error *error);

/**
 * Continue from the newest valid checkpoint, on any number of ranks. Declare all arrays, content and kept
 * values before this call; later declarations are refused.   Collective; once, before the first
 * kilter_loop_begin().
 *
 * If there is a checkpoint, all rows and kept values get the saved data. Kilter calls unpack() for the
 * content of this rank's rows. Then the program continues with the kilter_loop_begin() of sweep number
 * `*sweeps`. If there is no checkpoint, nothing changes and `*sweeps` is 0. Then the program sets its first
 * values, and makes the content of its first rows. Damaged checkpoints are skipped with a warning. After the
 * call, kilter_loop_mine() gives the rows of this rank. The saved state includes the sweeps that followers
 * made before the leader's kilter_loop_begin(), so the program continues after those sweeps.
 *
 * After this call, kilter_loop_begin() writes checkpoints before it begins a sweep. It copies the rows, and a
 * thread of each rank writes the copy while the loop continues. If there is no memory for the copy,
 * kilter_loop_begin() writes the rows itself. If writing a checkpoint fails, rank 0 prints a warning, the
 * loop continues, and the older checkpoints stay.
 * @param sweeps  sweeps done before the checkpoint; 0: there is no checkpoint
 * @return KILTER_OK; KILTER_ERR_INPUT (checkpoints exist, but none is valid, or the newest belongs to another
 * program; the error says in what the programs differ); KILTER_ERR_USAGE (the loop has begun or was resumed,
 * sweeps is NULL, kept values differ between ranks); KILTER_ERR_SYSTEM (a file cannot be read now, and
 * no older one takes its place); KILTER_ERR_TASK (content could not be unpacked); also the other errors of
 * kilter_loop_begin()
 */
KILTER_API kilter_status kilter_loop_resumed(kilter_loop *loop, uint64_t *sweeps, kilter_error *error);

/**
 * Begin a sweep. The call may first write a checkpoint; then it sends the ghost rows.   Collective.
 *
 * @return KILTER_OK; KILTER_ERR_USAGE (a sweep is under way, posted messages are left, ranks make different
 * collective calls, or checkpoints exist and the program did not call kilter_loop_resumed());
 * KILTER_ERR_TASK (content could not be unpacked); KILTER_ERR_MEMORY; KILTER_ERR_MPI; KILTER_ERR_PEER (a rank
 * is dead or has given up the loop; the error names it); KILTER_ERR_STOPPED (on all ranks: the run was saved
 * and stopped on request. No sweep is under way. The program can print the error and exit, or first collect
 * results and close the loop)
 */
KILTER_API kilter_status kilter_loop_begin(kilter_loop *loop, kilter_error *error);

/**
 * Get the next iterations for this rank.   Local; DOALL.
 *
 * Each iteration goes to exactly one rank, once per sweep, in any order. With `deep`, an iteration goes to
 * its owner, and possibly also to neighbours. The call also tells Kilter that the body has done the previous
 * range. Rows move only within calls of this library, so pointers into the rows of the range are valid until
 * the next call.
 * @return false: no iteration is left for this rank, or an error occurred, which kilter_loop_end() returns
 */
KILTER_API bool kilter_loop_next(kilter_loop *loop, kilter_range *range);

/**
 * Get the next block: all own rows, and a range of elements in each row. Compute row by row, in rising order.
 * If the loop runs backwards, compute rows and elements in falling order.   Local; DOACROSS.
 *
 * @return false: the sweep is done for this rank, or an error occurred, which kilter_loop_end() returns
 */
KILTER_API bool kilter_loop_next_block(kilter_loop *loop, kilter_range *rows, kilter_range *inner);

/**
 * End the sweep. Afterwards a rank may use its own rows until the next kilter_loop_begin().   Collective;
 * after kilter_loop_next() or kilter_loop_next_block() returned false.
 *
 * @return KILTER_OK; KILTER_ERR_USAGE (iterations of this rank are left, or no sweep is under way); or an
 * error that ended the sweep, one of the errors of kilter_loop_begin()
 */
KILTER_API kilter_status kilter_loop_end(kilter_loop *loop, kilter_error *error);

/**
 * Get the `nth` range (0, 1, …) of the rank's own rows.   Local; between two sweeps.
 *
 * @return false: there are no more ranges, or an error occurred, which the next collective call returns
 */
KILTER_API bool kilter_loop_mine(kilter_loop *loop, size_t nth, kilter_range *range);

/**
 * Add up one double for each iteration. The sum is exact and rounded once, so it has the same bits for every
 * number of ranks and all moves.   Collective; between two sweeps.
 *
 * @param values  base of an attached array with rows of 8 bytes
 * @return KILTER_OK; KILTER_ERR_USAGE (`values` is not such a base, a sweep is under way, or ranks make
 * different calls); also the other errors of kilter_loop_begin()
 */
KILTER_API kilter_status kilter_loop_sum(kilter_loop *loop, const double *values, double *sum,
                                         kilter_error *error);

/**
 * Combine two values. `left` has the combined value of some rows, and receives the result. `right` has the
 * combined value of the rows that follow. Each value has the size of a row of the array.
 */
typedef void (*kilter_loop_combine)(void *left, const void *right, uint64_t bytes, void *user);

/** In each pair of doubles, keep the smaller one. If one of the two is NaN, keep the number. Pass this
 * function to kilter_loop_reduce(). */
KILTER_API void kilter_loop_least(void *left, const void *right, uint64_t bytes, void *user);
/** In each pair of doubles, keep the larger one. If one of the two is NaN, keep the number. Pass this
 * function to kilter_loop_reduce(). */
KILTER_API void kilter_loop_most(void *left, const void *right, uint64_t bytes, void *user);

/**
 * Combine all rows of an attached array into one value, in the order of a fixed binary tree over the rows. So
 * the result has the same bits for every number of ranks and after all moves, even if `combine` rounds.
 * Collective; between two sweeps.
 *
 * The ranks call `combine` for their own rows, and rank 0 calls it for the ranks' values. `combine` must not
 * call functions of this loop. All ranks get the result; each rank gives memory for one row.
 * @return as kilter_loop_sum(); also KILTER_ERR_USAGE: combine is NULL
 */
KILTER_API kilter_status kilter_loop_reduce(kilter_loop *loop, const void *base, kilter_loop_combine combine,
                                            void *user, void *result, kilter_error *error);

/**
 * Copy all rows of an attached array to rank `root`, in order.   Collective; between two sweeps.
 *
 * @param whole  on root: memory of the caller for n × bytes; ignored on other ranks
 * @return as kilter_loop_sum(); also KILTER_ERR_USAGE: there is no such root
 */
KILTER_API kilter_status kilter_loop_gather(kilter_loop *loop, const void *base, int root, void *whole,
                                            kilter_error *error);

/**
 * Copy rows from rank `root` to the ranks that have them, as the inverse of kilter_loop_gather().
 * Collective; between two sweeps.
 *
 * @param whole  on root: all n × bytes of the array; ignored on other ranks
 * @return as kilter_loop_gather()
 */
KILTER_API kilter_status kilter_loop_scatter(kilter_loop *loop, void *base, int root, const void *whole,
                                             kilter_error *error);

/**
 * Get the rank that has a row. Between two sweeps all ranks get the same answer. Within a sweep the answer is
 * the rank that computes the row.   Local; not for `scattered` loops.
 *
 * @return the rank in the loop's communicator; −1: there is no such row, the loop is `scattered`, or the
 * caller is a function that the loop itself calls, such as pack()
 */
KILTER_API int kilter_loop_owner(const kilter_loop *loop, uint64_t row);

/**
 * Post a message from one row to another row, which may be on any rank. Examples are particles that cross a
 * border between rows. The data is copied, and kilter_loop_deliver() delivers it.   Local; within a sweep or
 * between two; not for `scattered` loops.
 *
 * @param from  a row of this rank: the sender; messages are delivered in the order of senders. Within a
 * sweep, `from` must be a row that the body is working on
 * @return KILTER_OK; KILTER_ERR_USAGE (no such row, `from` is on another rank, data is NULL, the loop is
 * `scattered`); KILTER_ERR_MEMORY
 */
KILTER_API kilter_status kilter_loop_post(kilter_loop *loop, uint64_t from, uint64_t to, const void *data,
                                          uint64_t bytes, kilter_error *error);

/** Take a message that was posted to row `to`, which is on this rank. `data` is aligned for any type, and
 * valid during the call.
 * If the function returns false, the loop ends. */
typedef bool (*kilter_loop_take)(uint64_t to, uint64_t from, const void *data, uint64_t bytes, void *user);

/**
 * Deliver all posted messages. `take` gets the messages for rows of this rank, sorted by `to`, then by
 * `from`, then in the order of posting. This order does not depend on where the rows are, so results can have
 * the same bits for every number of ranks. Messages must be delivered before the next sweep begins, and
 * before the loop is closed.   Collective; between two sweeps.
 *
 * If `take` calls this loop, the loop ends with KILTER_ERR_USAGE; only kilter_loop_summary_get() is allowed.
 * @return KILTER_OK; KILTER_ERR_USAGE (a sweep is under way, take is NULL, the loop is `scattered`, or ranks
 * make different calls); KILTER_ERR_TASK (`take` returned false); also the other errors of
 * kilter_loop_begin()
 */
KILTER_API kilter_status kilter_loop_deliver(kilter_loop *loop, kilter_loop_take take, void *user,
                                             kilter_error *error);

/** Results of balancing so far. The texts belong to the loop and are valid until the next call for this
 * loop. */
typedef struct kilter_loop_summary {
    uint64_t executions; /**< number of sweeps that have ended */
    uint64_t rounds;     /**< number of times that the ranks' speeds were compared */
    uint64_t moves;      /**< number of times that rows were moved */
    uint64_t moved;      /**< number of rows that all these moves moved to other ranks */
    uint64_t block;      /**< for DOACROSS: present number of elements in a block */
    uint64_t depth; /**< present number of sweeps for which one exchange of ghost rows is enough; 1 unless the
                       loop is `deep` */
    double elapsed_s; /**< seconds that this rank has spent in sweeps and in kilter_loop_deliver() */
    double waited_s;  /**< seconds of elapsed_s in which this rank had nothing to do */
    double moving_s;  /**< seconds that this rank spent on moving rows */
    /** forecast of the seconds that all moves save. Each decision to move rows forecasts when the ranks'
     * speeds will change; the saving is counted until that time */
    double gained_s;
    /** seconds saved since the first move, compared with equal shares at the measured speeds; negative:
     * seconds lost. The time for moving rows is not subtracted */
    double came_s;
    const char *decision; /**< one sentence on the last decision and its reason */
    uint64_t saves;       /**< number of checkpoints that were written */
    double saving_s;      /**< seconds that sweeps of this rank waited for checkpoints */
} kilter_loop_summary;

/** Do the same as kilter_loop_summary_get(), for a struct with a size of `bytes` bytes. */
KILTER_API void kilter_loop_summary_get_sized(const kilter_loop *loop, kilter_loop_summary *summary,
                                              size_t bytes);

/** Get the results of balancing so far.   Local. */
static inline void kilter_loop_summary_get(const kilter_loop *loop, kilter_loop_summary *summary) {
    kilter_loop_summary_get_sized(loop, summary, sizeof(kilter_loop_summary));
}

/**
 * Free the loop and its arrays. The arrays of a follower are freed when the leader is closed. Close the
 * leader last.   Collective. NULL does nothing.
 *
 * @return KILTER_OK; the error that ended the loop; KILTER_ERR_USAGE (a sweep is under way, posted messages
 * are left, or followers are open), which ends the loop without freeing it; on rank 0 KILTER_ERR_RECORD: rows
 * are missing from the record, but the loop is closed
 */
KILTER_API kilter_status kilter_loop_close(kilter_loop *loop, kilter_error *error);

#ifdef __cplusplus
}
#endif
#endif
