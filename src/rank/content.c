#include <stdlib.h>

#include "rank/rank.h"

bool kl_parcel_add(kl_parcel *p, kl_span rows) {
    kl_item *more = kl_array_grow(p->items, &p->room, p->count + kl_length(rows), sizeof *more);
    if (!more)
        return false;
    p->items = more;
    for (uint64_t row = rows.lo; row < rows.hi; row++)
        p->items[p->count++] = (kl_item){row, 0};
    return true;
}

uint64_t kl_parcel_bytes(const kl_parcel *p) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < p->count; i++)
        bytes += kl_item_room(&p->items[i]);
    return bytes;
}

void kl_parcel_free(kl_parcel *p) {
    free(p->items);
    free(p->data);
    *p = (kl_parcel){.sends = false};
}

/* --- the parcels of rows that move --- */

static bool add_parcel(kl_content *c, uint32_t peer, bool sends, kl_span rows) {
    if (kl_is_empty(rows))
        return true;
    kl_parcel *more = kl_array_grow(c->parcels, &c->room, c->count + 1, sizeof *more);
    if (!more)
        return false;
    c->parcels = more;
    c->parcels[c->count] = (kl_parcel){.peer = (int)peer, .sends = sends};
    return kl_parcel_add(&c->parcels[c->count++], rows);
}

bool kl_content_plan(kl_content *c, const kl_layout *l) {
    bool fits = true;
    kl_content_clear(c);
    for (uint32_t r = 0; r < l->ranks && fits; r++)
        if (r != l->rank)
            fits = add_parcel(c, r, false, kl_common(kl_layout_next(l), kl_range_of(l->bounds, r)));
    for (uint32_t r = 0; r < l->ranks && fits; r++)
        if (r != l->rank)
            fits = add_parcel(c, r, true, kl_common(kl_layout_own(l), kl_range_of(l->target, r)));
    kl_mail *more = kl_array_grow(c->mails, &c->mail_room, c->count + 1, sizeof *more);
    c->mails = more ? more : c->mails;
    return fits && more;
}

uint64_t kl_content_bytes(const kl_content *c, bool coming_only) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < c->count; i++)
        bytes += c->parcels[i].sends && coming_only ? 0 : kl_parcel_bytes(&c->parcels[i]);
    return bytes;
}

void kl_content_clear(kl_content *c) {
    for (uint64_t i = 0; i < c->count; i++)
        kl_parcel_free(&c->parcels[i]);
    c->count = 0;
}

void kl_content_free(kl_content *c) {
    kl_content_clear(c);
    free(c->parcels);
    free(c->mails);
    kl_ranges_free(&c->present);
}

/* --- stages --- */

kl_act kl_content_pack(kl_rank *k) {
    kl_content *c = &k->content;
    c->began_s = k->now_s;
    if (!kl_content_plan(c, &k->layout))
        return kl_ask(k, (kl_action){.act = KL_FAIL, .text = "planning exchanges of"});
    return kl_ask(k,
                  (kl_action){.act = KL_PACK, .parcels = c->parcels, .count = c->count, .all = &c->packed});
}

kl_act kl_content_post_sizes(kl_rank *k) {
    kl_content *c = &k->content;
    size_t receives = 0;
    for (uint64_t i = 0; i < c->count; i++) {
        kl_parcel *p = &c->parcels[i];
        c->mails[i] = (kl_mail){
            .data = p->items, .bytes = p->count * sizeof *p->items, .peer = p->peer, .tag = KL_TAG_SIZES};
        receives += !p->sends;
    }
    return kl_ask(k, (kl_action){.act = c->count > 0 ? KL_POST : KL_GO_ON,
                                 .set = &k->exchange.set,
                                 .mails = c->mails,
                                 .receives = receives,
                                 .count = c->count});
}

kl_act kl_content_await_sizes(kl_rank *k) {
    return kl_ask(k, (kl_action){.act = k->content.count > 0 ? KL_AWAIT : KL_GO_ON, .set = &k->exchange.set});
}

kl_act kl_content_weigh(kl_rank *k, bool listed) {
    kl_content *c = &k->content;
    if (!listed)
        return kl_ask(k, (kl_action){.act = KL_FAIL, .text = "listing rows of"});
    c->weighed = true;
    return kl_ask(k, (kl_action){.act = KL_WEIGH, .ranges = &c->present, .all = &c->weight, .again = true});
}

void kl_content_tell(kl_content *c, const kl_layout *l, kl_rank_report *report) {
    uint64_t rows = kl_ranges_sum(&c->present);
    c->weighed = false;
    if (c->on && rows > 0)
        report->row_bytes = (double)kl_layout_row_bytes(l) + (double)c->weight / (double)rows;
}
