/* Row content: data that a row has beside its arrays, and whose size changes. Functions of the program pack
 * and unpack this data. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

static const uint64_t MOST_BYTES = UINT64_C(1) << 47;

/* --- parcels --- */

/* Ask the program for the bytes of the rows' content. Return false if a row is too large. */
static bool measure(const kilter_loop_content *c, kl_parcel *p) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < p->count && sum <= MOST_BYTES; i++) {
        p->items[i].bytes = c->bytes(p->items[i].row, c->user);
        sum = p->items[i].bytes > MOST_BYTES ? p->items[i].bytes : sum + kl_item_room(&p->items[i]);
    }
    return sum <= MOST_BYTES;
}

static bool pack(const kilter_loop_content *c, kl_parcel *p) {
    bool packed = measure(c, p);
    uint64_t bytes = packed ? kl_parcel_bytes(p) : 0;
    uint8_t *to = p->data = bytes > 0 && kl_rows_fit(bytes) ? malloc(bytes) : NULL;
    packed = packed && (to || bytes == 0);
    for (uint64_t i = 0; i < p->count && packed && bytes > 0; i++) {
        packed = c->pack(p->items[i].row, to, c->user);
        memset(to + p->items[i].bytes, 0, kl_item_room(&p->items[i]) - p->items[i].bytes);
        to += kl_item_room(&p->items[i]);
    }
    return packed;
}

bool kl_loop_pack(kilter_loop *l, kl_parcel *parcels, size_t count) {
    bool packed = true;
    l->bundle->calls_program = true;
    for (size_t i = 0; i < count && packed; i++)
        if (parcels[i].sends)
            packed = pack(&l->content, &parcels[i]);
    l->bundle->calls_program = false;
    return packed;
}

bool kl_loop_make_parcels(kl_parcel *parcels, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = parcels[i].sends ? 0 : kl_parcel_bytes(&parcels[i]);
        if (bytes > 0 && !(parcels[i].data = malloc(bytes)))
            return false;
    }
    return true;
}

static kilter_status cannot_unpack(const kilter_loop *l, const kl_parcel *p, uint64_t item,
                                   kilter_error *error) {
    char from[40] = "a checkpoint";
    if (p->peer >= 0)
        snprintf(from, sizeof from, "rank %d", p->peer);
    return kl_fail(error, KILTER_ERR_TASK,
                   "loop '%s': the program could not unpack row %llu, of %llu bytes, from %s", l->name,
                   kl_ull(p->items[item].row), kl_ull(p->items[item].bytes), from);
}

static kilter_status unpack(kilter_loop *l, const kl_parcel *p, kilter_error *error) {
    const kilter_loop_content *c = &l->content;
    static const _Alignas(max_align_t) uint8_t nothing[KL_ALIGNED];
    uint64_t at = 0;
    for (uint64_t i = 0; i < p->count; i++) {
        const void *from = p->data ? (const void *)(p->data + at) : nothing;
        bool unpacked = c->unpack(p->items[i].row, from, p->items[i].bytes, c->user);
        if (l->bundle->phase == KL_BROKEN)
            return l->bundle->failure.status;
        if (!unpacked)
            return cannot_unpack(l, p, i, error);
        at += kl_item_room(&p->items[i]);
    }
    return KILTER_OK;
}

kilter_status kl_loop_unpack(kilter_loop *l, kl_parcel *parcels, size_t count, kilter_error *error) {
    kilter_status status = KILTER_OK;
    l->bundle->calls_program = true;
    for (size_t i = 0; i < count && status == KILTER_OK; i++)
        if (!parcels[i].sends)
            status = unpack(l, &parcels[i], error);
    for (size_t i = 0; i < count && status == KILTER_OK; i++)
        for (uint64_t k = 0; k < parcels[i].count && parcels[i].sends; k++)
            l->content.drop(parcels[i].items[k].row, l->content.user);
    l->bundle->calls_program = false;
    return status;
}

uint64_t kl_loop_weigh(kilter_loop *l, const kl_ranges *rows) {
    uint64_t bytes = 0;
    l->bundle->calls_program = true;
    for (size_t i = 0; i < rows->count; i++)
        for (uint64_t row = rows->at[i].lo; row < rows->at[i].hi; row++)
            bytes += l->content.bytes(row, l->content.user);
    l->bundle->calls_program = false;
    return bytes;
}

/* --- kilter_loop_rows() --- */

static const char *check(const kilter_loop *l, const kilter_loop_content *c) {
    if (l->options.deep)
        return "a deep loop has no row content, because its ranks also do rows of neighbours; open the loop "
               "without `deep`";
    if (!kl_loop_leads(l))
        return "a loop that follows another loop has no row content; declare the content for the loop that "
               "it follows";
    return c && c->bytes && c->pack && c->unpack && c->drop
               ? NULL
               : "one of the functions bytes, pack, unpack and drop is missing on a rank";
}

static kilter_status declare(kilter_loop *l, const kilter_loop_content *c, kilter_error *error) {
    uint64_t complete = check(l, c) == NULL;
    kl_loop_step(l, KL_CALL_ROWS);
    kilter_status status = kl_steps_meet(&l->bundle->steps, NULL, error);
    if (status == KILTER_OK)
        status = kl_group_least(&l->bundle->group, &complete, 1, error);
    if (status == KILTER_OK && !complete)
        return kl_fail(error, KILTER_ERR_RANGE, "content of rows of loop '%s': %s", l->name, check(l, NULL));
    if (status != KILTER_OK)
        return status;
    l->content = *c;
    l->rank.content.on = l->rank.rounds.sized = true;
    return KILTER_OK;
}

/* Declare the content of rows. If all ranks refuse an argument, the loop does not change. Any other failure
 * ends the loop. */
kilter_status kl_loop_declare(kilter_loop *l, const kilter_loop_content *c, kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_rows()", error);
    if (status != KILTER_OK)
        return status;
    const char *wrong = l->rank.content.on ? "the loop has row content already"
                        : l->bundle->phase == KL_WITHIN || l->bundle->begun ? "the loop has begun"
                        : l->bundle->resumed ? "kilter_loop_resumed() was called already"
                                             : NULL;
    if (wrong)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "content of rows of loop '%s': %s; call kilter_loop_rows() once, before "
                       "kilter_loop_resumed() and the first kilter_loop_begin()",
                       l->name, wrong);
    kilter_error why = {KILTER_OK, ""};
    status = declare(l, c, &why);
    if (status == KILTER_OK || status == KILTER_ERR_RANGE) {
        if (error && status != KILTER_OK)
            *error = why;
        return status;
    }
    l->bundle->failure = why;
    return kl_loop_failed(l, status, error);
}
