/**
 * @file
 * Exact sums of doubles. A sum is rounded once, when its value is asked for. So its value does not depend on
 * the order of the numbers, or on the worker or rank that added them.
 */
#ifndef KILTER_SUM_H
#define KILTER_SUM_H

#include <stdint.h>

#include "kilter/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Number of words in a sum: 69 digits of 32 bits, from 2^-1074 upwards, and three counts (of numbers that
 * are NaN, +∞ and −∞). */
enum { KILTER_SUM_WORDS = 72 };

/** A sum of doubles. A sum with all bytes zero has the value 0: no number was added yet. The struct never
 * grows. It has no pointers: a task can return the bytes of a sum as its result, if all workers have the same
 * kind of processor. */
typedef struct kilter_sum {
    int64_t word[KILTER_SUM_WORDS]; /**< digits and counts; only the functions of this header read them */
    uint64_t untidied; /**< how many numbers were added since the functions last carried digits over */
} kilter_sum;

/** Add a number to the sum. The call takes some nanoseconds. */
KILTER_API void kilter_sum_add(kilter_sum *sum, double x);

/** Add all numbers of another sum, which may come from another process. */
KILTER_API void kilter_sum_join(kilter_sum *into, const kilter_sum *from);

/** Return the sum, rounded to the nearest double, ties to even. A sum beyond the largest double is infinite.
 * The sum is NaN if a number was NaN, or if there were infinities of both signs. */
KILTER_API double kilter_sum_value(const kilter_sum *sum);

#ifdef __cplusplus
}
#endif
#endif
