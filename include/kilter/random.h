/**
 * @file
 * Random numbers of tasks. A task's numbers depend only on a seed and the task's index. So a program with
 * random tasks gets the same result for any number of workers and any order of tasks, even when workers are
 * lost.
 *
 * The generator is Philox 4×64 with 10 rounds (J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel random
 * numbers: as easy as 1, 2, 3. SC 2011). The key is (seed, 0). A block has four numbers. Block b of a task is
 * the generator's output for counter (b, task, 0, 0). A task has 2^66 numbers.
 */
#ifndef KILTER_RANDOM_H
#define KILTER_RANDOM_H

#include <stdint.h>

#include "kilter/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A position in the random numbers of one task. The struct never grows. It has no pointers, so it may be
 * copied; the copy gives the same numbers again. */
typedef struct kilter_random {
    uint64_t seed;     /**< seed of the program */
    uint64_t task;     /**< index of the task */
    uint64_t block;    /**< number of the next block of four random numbers */
    uint64_t ready[4]; /**< the four numbers of the present block */
    uint64_t used;     /**< how many numbers of the present block were used, 0 … 4 */
} kilter_random;

/** Return the position before a task's first number. Numbers of different tasks, and for different seeds, are
 * independent. */
KILTER_API kilter_random kilter_random_of(uint64_t seed, uint64_t task);

/** Return the next number: 64 random bits. A call takes some nanoseconds. */
KILTER_API uint64_t kilter_random_bits(kilter_random *random);

/** Skip `count` numbers in constant time. */
KILTER_API void kilter_random_skip(kilter_random *random, uint64_t count);

/** Return a number that is uniform in [0, 1): a multiple of 2^-53. The call uses up one number of 64 bits. */
KILTER_API double kilter_random_uniform(kilter_random *random);

/** Return an exponential number of mean 1: −ln(1 − u). The call uses up one number of 64 bits. The last bits
 * depend on the C library's logarithm. */
KILTER_API double kilter_random_exponential(kilter_random *random);

/** Return a normal number of mean 0 and variance 1: √(−2 ln(1 − u))·cos(2πv) (Box and Muller 1958). The call
 * uses up two numbers of 64 bits. The last bits depend on the C library. */
KILTER_API double kilter_random_normal(kilter_random *random);

#ifdef __cplusplus
}
#endif
#endif
