#include "rank/rank.h"

#include <stdlib.h>

/* Return the block size until more is known: a row's elements over 16 times the ranks. */
static uint64_t first_block(const kl_rank_options *o) {
    uint64_t parts = 16 * (uint64_t)o->ranks;
    return o->block > 0 ? o->block : (o->inner + parts - 1) / parts;
}

bool kl_rank_init(kl_rank *k, const kl_kind *kind, const kl_rank_options *o) {
    *k = (kl_rank){.kind = kind, .options = *o, .rounds.passes = 1, .flow.block = first_block(o)};
    return kl_layout_init(&k->layout, o->iterations, o->rank, o->ranks) &&
           kl_exchange_init(&k->exchange, &k->layout, &k->meter) &&
           (kind != &kl_scattered || kl_scatter_init(k));
}

void kl_rank_free(kl_rank *k) {
    free(k->flow.sent);
    kl_scatter_free(k->scatter);
    kl_rounds_free(&k->rounds);
    kl_exchange_free(&k->exchange);
    kl_layout_free(&k->layout);
}

bool kl_rank_grow(kl_rank *k) {
    size_t count = k->layout.array_count + 1;
    kl_mail *more = realloc(k->flow.sent, 2 * count * sizeof *more);
    if (!more)
        return false;
    k->flow.sent = more;
    k->flow.wanted = more + count;
    return kl_layout_grow(&k->layout);
}

bool kl_rank_own(const kl_rank *k, size_t nth, kl_span *range) {
    if (k->scatter)
        return kl_scatter_own(k->scatter, nth, range);
    *range = kl_layout_own(&k->layout);
    return nth == 0 && !kl_is_empty(*range);
}

void kl_rank_end_sweep(kl_rank *k, double took_s) {
    k->rounds.passed++;
    kl_meter_end_sweep(&k->meter, took_s);
}
