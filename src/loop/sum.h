/* Private to room loop: the exact sum of doubles. It is rounded once, so neither the order of the doubles nor
 * their ranks matter. */
#ifndef KL_SUM_H
#define KL_SUM_H

#include "base/base.h"

/* A sum has digits of 32 bits, from 2^−1074 up to the sum of 2^64 of the largest doubles, and then counts of
 * values that are not finite. */
enum { KL_SUM_DIGITS = 69, KL_SUM_INFINITE = KL_SUM_DIGITS, KL_SUM_NEGATIVE, KL_SUM_NAN, KL_SUM_WORDS };

/* A sum. Zeroed: 0. The words of up to 2^30 tidied sums can be added one by one. */
typedef struct kl_sum {
    int64_t word[KL_SUM_WORDS];
    uint32_t untidied;
} kl_sum;

void kl_sum_add(kl_sum *sum, double x);
void kl_sum_tidy(kl_sum *sum); /* bring each digit within ±2^32 */
double kl_sum_value(kl_sum *sum);

#endif
