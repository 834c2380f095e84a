/* Choose the block size of a pipeline, from the time of its body in blocks of each size. */
#include "steer/steer.h"

/* --- the blocks with which sizes are tried --- */

/* Return the number of elements in one try of a block size. It is at least 8: if blocks are smaller than a
 * cache line, the first of them loads the line for the others. */
static uint64_t elements_of_try(uint32_t size) {
    enum { LEAST = 8 };
    uint64_t elements = UINT64_C(1) << size;
    return elements > LEAST ? elements : LEAST;
}

/* Return the number of elements in one turn, which tries each block size one time. There are several turns,
 * so that a load that begins or ends disturbs all sizes alike. */
static uint64_t elements_of_turn(uint32_t sizes) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < sizes; k++)
        sum += elements_of_try(k);
    return sum;
}

static uint64_t blocks_of_turn(uint32_t sizes) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < sizes; k++)
        sum += elements_of_try(k) >> k;
    return sum;
}

uint32_t kl_blocks_sizes(uint64_t elements, uint64_t most) {
    uint32_t sizes = 0;
    while (sizes < KL_SIZES && UINT64_C(1) << sizes <= most &&
           KL_TRIES * elements_of_turn(sizes + 1) <= elements / 2)
        sizes++;
    return sizes;
}

uint64_t kl_blocks_tried(const kl_blocks *b) {
    return KL_TRIES * blocks_of_turn(b->sizes);
}

uint64_t kl_blocks_count(const kl_blocks *b) {
    uint64_t rest = b->elements - KL_TRIES * elements_of_turn(b->sizes);
    return kl_blocks_tried(b) + (rest + b->block - 1) / b->block;
}

kl_span kl_blocks_at(const kl_blocks *b, uint64_t index) {
    uint64_t tried = kl_blocks_tried(b), turn = elements_of_turn(b->sizes);
    if (index >= tried) {
        uint64_t lo = KL_TRIES * turn + (index - tried) * b->block, hi = lo + b->block;
        return (kl_span){lo, hi < b->elements ? hi : b->elements};
    }
    uint64_t blocks = blocks_of_turn(b->sizes), lo = index / blocks * turn;
    uint32_t k = 0;
    index %= blocks;
    for (; index >= elements_of_try(k) >> k; k++) {
        index -= elements_of_try(k) >> k;
        lo += elements_of_try(k);
    }
    lo += index << k;
    return (kl_span){lo, lo + (UINT64_C(1) << k)};
}

bool kl_blocks_try(const kl_blocks *b, uint64_t element, uint32_t *size, kl_span *try) {
    uint64_t turn = elements_of_turn(b->sizes);
    if (element >= KL_TRIES * turn)
        return false;
    uint64_t lo = element - element % turn;
    uint32_t k = 0;
    for (; element >= lo + elements_of_try(k); k++)
        lo += elements_of_try(k);
    *size = k;
    *try = (kl_span){lo, lo + elements_of_try(k)};
    return true;
}

/* --- choosing the block size --- */

/* Return the seconds per element in blocks of this size, interpolated between two tried sizes. */
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

/* Compare two candidates for each tried block size. One is the tried size. The other is the size that
 * kl_pipeline_block() returns for the speed measured with the tried size. */
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

void kl_grain_refresh(kl_grain *g, uint64_t block, double sweep_s) {
    double each_s = sweep_s / (double)g->pipeline.elements, known_s = element_s(g, block);
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
