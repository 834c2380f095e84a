/* The random numbers that a task draws, from a counter-based generator. */
#include "kilter/random.h"

#include <math.h>

#include <Random123/philox.h>

enum { BLOCK = 4 }; /* numbers that the generator computes at once */

static const double TWO_PI = 6.28318530717958647692;

static void next_block(kilter_random *r) {
    philox4x64_ctr_t counter = {{r->block++, r->task, 0, 0}};
    philox4x64_key_t key = {{r->seed, 0}};
    philox4x64_ctr_t block = philox4x64(counter, key);
    for (int i = 0; i < BLOCK; i++)
        r->ready[i] = block.v[i];
    r->used = 0;
}

kilter_random kilter_random_of(uint64_t seed, uint64_t task) {
    return (kilter_random){.seed = seed, .task = task, .used = BLOCK};
}

uint64_t kilter_random_bits(kilter_random *r) {
    if (r->used == BLOCK)
        next_block(r);
    return r->ready[r->used++];
}

void kilter_random_skip(kilter_random *r, uint64_t count) {
    uint64_t left = BLOCK - r->used;
    if (count <= left) {
        r->used += count;
        return;
    }
    r->block += (count - left) / BLOCK;
    next_block(r);
    r->used = (count - left) % BLOCK;
}

double kilter_random_uniform(kilter_random *r) {
    return (double)(kilter_random_bits(r) >> 11) * 0x1p-53;
}

double kilter_random_exponential(kilter_random *r) {
    return -log1p(-kilter_random_uniform(r));
}

double kilter_random_normal(kilter_random *r) {
    double radius = sqrt(2 * kilter_random_exponential(r));
    return radius * cos(TWO_PI * kilter_random_uniform(r));
}
