/* The exact sum of doubles, rounded once: whatever their order, and however they are spread over ranks.
 * Private to room loop. */
#ifndef KL_SUM_H
#define KL_SUM_H

#include "base/base.h"

/* Digits of 32 bits from 2^−1074 to the sum of 2^64 of the largest doubles; then what is not finite. */
enum { KL_SUM_DIGITS = 69, KL_SUM_INFINITE = KL_SUM_DIGITS, KL_SUM_NEGATIVE, KL_SUM_NAN, KL_SUM_WORDS };

/* Zeroed is 0. Sums of tidied ones are added word by word: up to 2^30 of them. */
typedef struct kl_sum {
    int64_t word[KL_SUM_WORDS];
    uint32_t untidied;
} kl_sum;

void kl_sum_add(kl_sum *sum, double x);
void kl_sum_tidy(kl_sum *sum); /* each digit within ±2^32 */
double kl_sum_value(kl_sum *sum);

#endif
