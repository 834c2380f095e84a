#include "rank/rank.h"

#include <stdlib.h>

/* Return the first block size, which is used until measurements show a better one: a row's elements divided
 * by 16 times the number of ranks. */
static uint64_t first_block(const kl_rank_options *o) {
    uint64_t parts = 16 * (uint64_t)o->ranks;
    return o->block > 0 ? o->block : (o->inner + parts - 1) / parts;
}

static void join_leader(kl_rank *k) {
    kl_rank *leader = k->options.leader;
    kl_layout_follow(&k->layout, &leader->layout, &k->options.map);
    k->meter.leader = &leader->meter;
    k->next = leader->followers;
    leader->followers = k;
}

static void leave_leader(kl_rank *k) {
    kl_rank **place = k->options.leader ? &k->options.leader->followers : NULL;
    while (place && *place && *place != k)
        place = &(*place)->next;
    if (place && *place)
        *place = k->next;
}

bool kl_rank_init(kl_rank *k, const kl_kind *kind, const kl_rank_options *o) {
    *k = (kl_rank){.kind = kind, .options = *o, .rounds.passes = 1, .flow.block = first_block(o)};
    bool fits = kl_layout_init(&k->layout, o->iterations, o->rank, o->ranks) &&
                kl_exchange_init(&k->exchange, &k->layout, &k->meter) &&
                (kind != &kl_scattered || kl_scatter_init(k));
    k->exchange.backward = o->backward;
    if (fits && o->leader)
        join_leader(k);
    return fits;
}

void kl_rank_free(kl_rank *k) {
    leave_leader(k);
    free(k->flow.sent);
    kl_scatter_free(k->scatter);
    kl_rounds_free(&k->rounds);
    kl_exchange_free(&k->exchange);
    kl_content_free(&k->content);
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

/* Take over the new places of the leading loop's rows. The leading loop has already moved the rows of this
 * loop's arrays. */
static void follow(kl_rank *k) {
    k->meter.on = k->meter.leader->on || k->rounds.steer;
    if (!kl_layout_refresh(&k->layout))
        return;
    k->exchange.legs_stand = false;
    if (k->rounds.steer)
        kl_steer_place(k->rounds.steer, k->layout.bounds);
    kl_meter_begin_anew(&k->meter);
}

void kl_rank_end_sweep(kl_rank *k, double took_s) {
    k->rounds.passed++;
    kl_meter_end_sweep(&k->meter, took_s);
    for (kl_rank *f = k->followers; f; f = f->next)
        follow(f);
}
