/* Sum doubles exactly in a long fixed-point number (Kulisch). Each double is added as an integer of 53 bits,
 * shifted to its place in this number. Adding integers is exact. */
#include "base/base.h"

#include <math.h>
#include <string.h>

/* indices in `word`: first the DIGITS digits of the sum, then the counts of +∞, −∞ and NaN */
enum { DIGITS = 69, INFINITE = DIGITS, NEGATIVE, NOT_A_NUMBER };
enum { TIDY_AFTER = 1 << 29, LEAST_EXPONENT = -1074 };

static void add_bits(kilter_sum *sum, uint64_t bits, int exponent, bool negative) {
    int at = (exponent - LEAST_EXPONENT) / 32, shift = (exponent - LEAST_EXPONENT) % 32;
    uint64_t low = (bits & UINT32_MAX) << shift, high = (bits >> 32) << shift;
    int64_t digits[3] = {(int64_t)(low & UINT32_MAX), (int64_t)((low >> 32) + (high & UINT32_MAX)),
                         (int64_t)(high >> 32)};
    for (int i = 0; i < 3; i++)
        sum->word[at + i] += negative ? -digits[i] : digits[i];
}

void kilter_sum_add(kilter_sum *sum, double x) {
    if (isnan(x)) {
        sum->word[NOT_A_NUMBER]++;
    } else if (isinf(x)) {
        sum->word[x > 0 ? INFINITE : NEGATIVE]++;
    } else if (x != 0) {
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
        int biased = (int)(bits >> 52 & 0x7ff);
        if (biased > 0)
            mantissa |= UINT64_C(1) << 52;
        add_bits(sum, mantissa, LEAST_EXPONENT + (biased > 0 ? biased - 1 : 0), bits >> 63);
        if (++sum->untidied >= TIDY_AFTER)
            kl_sum_tidy(sum);
    }
}

void kl_sum_tidy(kilter_sum *sum) {
    int64_t carry = 0;
    for (int i = 0; i < DIGITS - 1; i++) {
        int64_t digit = sum->word[i] + carry;
        carry = digit >> 32; /* the shift rounds down, so the part of `digit` that stays is not negative */
        sum->word[i] = digit & UINT32_MAX;
    }
    sum->word[DIGITS - 1] += carry;
    sum->untidied = 0;
}

/* Round the sum to a double only once. Take its highest 64 bits, and set the last of these bits if any lower
 * bit of the sum is set. After that, only ldexp() rounds. */
static double round_once(const kilter_sum *sum) {
    int top = DIGITS - 1;
    while (top > 0 && sum->word[top] == 0)
        top--;
    uint64_t bits = 0, below = 0;
    for (int i = top; i > top - 2; i--)
        bits = bits << 32 | (i >= 0 ? (uint64_t)sum->word[i] : 0);
    if (bits == 0)
        return 0;
    int exponent = LEAST_EXPONENT + 32 * (top - 1), free_bits = 0;
    while (!(bits << free_bits >> 63))
        free_bits++;
    uint64_t next = top >= 2 ? (uint64_t)sum->word[top - 2] : 0;
    if (free_bits > 0) {
        bits = bits << free_bits | next >> (32 - free_bits);
        below = next & ((UINT64_C(1) << (32 - free_bits)) - 1);
    } else {
        below = next;
    }
    for (int i = top - 3; i >= 0; i--)
        below |= (uint64_t)sum->word[i];
    return ldexp((double)(bits | (below != 0)), exponent - free_bits);
}

void kilter_sum_join(kilter_sum *into, const kilter_sum *from) {
    kilter_sum tidy = *from;
    kl_sum_tidy(&tidy);
    for (int i = 0; i < KILTER_SUM_WORDS; i++)
        into->word[i] += tidy.word[i];
    if (++into->untidied >= TIDY_AFTER)
        kl_sum_tidy(into);
}

double kilter_sum_value(const kilter_sum *of) {
    kilter_sum sum = *of;
    const int64_t *word = sum.word;
    if (word[NOT_A_NUMBER] > 0 || (word[INFINITE] > 0 && word[NEGATIVE] > 0))
        return NAN;
    if (word[INFINITE] > 0 || word[NEGATIVE] > 0)
        return word[INFINITE] > 0 ? INFINITY : -INFINITY;
    kl_sum_tidy(&sum);
    bool negative = word[DIGITS - 1] < 0;
    if (negative) {
        for (int i = 0; i < DIGITS; i++)
            sum.word[i] = -sum.word[i];
        kl_sum_tidy(&sum);
    }
    double value = round_once(&sum);
    return negative ? -value : value;
}
