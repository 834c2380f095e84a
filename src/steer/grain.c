/* The blocks of a pipeline: how long its body takes in blocks of each size, and which size is best. */
#include "steer/steer.h"

/* --- blocks that are tried --- */

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Of one try: blocks of fewer share what the first of them brought into the cache. */
static uint64_t elements_of_try(uint32_t size) {
    enum { LEAST = 8 };
    uint64_t elements = UINT64_C(1) << size;
    return elements > LEAST ? elements : LEAST;
}

static uint64_t elements_before(uint32_t size) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < size; k++)
        sum += KL_TRIES * elements_of_try(k);
    return sum;
}

uint32_t kl_blocks_sizes(uint64_t elements, uint64_t most) {
    uint32_t sizes = 0;
    while (sizes < KL_SIZES && UINT64_C(1) << sizes <= most && elements_before(sizes + 1) <= elements / 2)
        sizes++;
    return sizes;
}

/* Blocks of the sizes below `size`. */
static uint64_t blocks_before(uint32_t size) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < size; k++)
        sum += KL_TRIES * elements_of_try(k) >> k;
    return sum;
}

uint64_t kl_blocks_tried(const kl_blocks *b) {
    return blocks_before(b->sizes);
}

uint64_t kl_blocks_count(const kl_blocks *b) {
    return kl_blocks_tried(b) + (b->elements - elements_before(b->sizes) + b->block - 1) / b->block;
}

kl_span kl_blocks_at(const kl_blocks *b, uint64_t index) {
    uint32_t k = 0;
    while (k < b->sizes && index >= blocks_before(k + 1))
        k++;
    uint64_t size = k < b->sizes ? UINT64_C(1) << k : b->block;
    uint64_t lo = elements_before(k) + (index - blocks_before(k)) * size;
    return (kl_span){lo, smaller(b->elements - lo, size) + lo};
}

bool kl_blocks_try(const kl_blocks *b, uint64_t element, uint32_t *size, kl_span *try) {
    uint32_t k = 0;
    while (k < b->sizes && element >= elements_before(k + 1))
        k++;
    if (k == b->sizes)
        return false;
    uint64_t each = elements_of_try(k), lo = element - (element - elements_before(k)) % each;
    *size = k;
    *try = (kl_span){lo, lo + each};
    return true;
}

/* --- the best --- */

/* Between two sizes that were tried, on the line through both. */
static double element_s(const kl_grain *g, uint64_t block) {
    uint32_t k = 0;
    while (k + 1 < g->sizes && UINT64_C(1) << (k + 1) <= block)
        k++;
    if (k + 1 >= g->sizes)
        return g->element_s[k];
    double part = (double)(block - (UINT64_C(1) << k)) / (double)(UINT64_C(1) << k);
    return (1 - part) * g->element_s[k] + part * g->element_s[k + 1];
}

static kl_pipeline in_blocks_of(const kl_grain *g, uint64_t block) {
    kl_pipeline p = g->pipeline;
    p.seq_s = element_s(g, block) * (double)p.elements * p.ranks;
    return p;
}

double kl_grain_elapsed_s(const kl_grain *g, uint64_t block) {
    kl_pipeline p = in_blocks_of(g, block);
    uint64_t blocks = (p.elements - 1) / block + 1;
    return kl_pipeline_elapsed_s(&p, (double)blocks);
}

/* By the formula at the speed of each size, and that size. */
uint64_t kl_grain_block(const kl_grain *g) {
    uint64_t best = g->pipeline.elements;
    for (uint32_t k = 0; k < g->sizes; k++) {
        kl_pipeline p = in_blocks_of(g, UINT64_C(1) << k);
        uint64_t candidates[] = {UINT64_C(1) << k, kl_pipeline_block(&p)};
        for (int i = 0; i < 2; i++)
            if (candidates[i] >= 1 && candidates[i] <= p.elements &&
                kl_grain_elapsed_s(g, candidates[i]) < kl_grain_elapsed_s(g, best))
                best = candidates[i];
    }
    return best;
}

void kl_grain_refresh(kl_grain *g, uint64_t block, double execution_s) {
    double each_s = execution_s / (double)g->pipeline.elements, known_s = element_s(g, block);
    if (!(each_s > 0))
        return;
    if (g->sizes == 0 || !(known_s > 0)) {
        g->sizes = 1;
        g->element_s[0] = each_s;
        return;
    }
    for (uint32_t k = 0; k < g->sizes; k++)
        g->element_s[k] *= each_s / known_s;
}
