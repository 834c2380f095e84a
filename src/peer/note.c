/* Write and read messages between peers, and the lists that they contain. */
#include "peer/note.h"

#include <stdlib.h>

/* clang-format off */
#define NOTE(X) X(u32, census) X(u32, round) X(u32, peer) X(u32, peers) X(u64, number) X(time, rate) \
                X(time, left_s) X(time, next_s) X(flag, closing) X(flag, over)
#define SPAN(X) X(u64, lo) X(u64, hi)
#define STANDING(X) X(u32, peer) X(time, left) X(time, rate)
#define ORDER(X) X(u32, from) X(u32, to) X(u64, span.lo) X(u64, span.hi)
/* clang-format on */

/* Define bool kl_NAMEs_add(kl_NAMEs *list, TYPE one), which appends to a list. */
#define LIST_ADD(name, type)                                                                                 \
    bool kl_##name##s_add(kl_##name##s *l, type one) {                                                       \
        void *more = kl_array_grow(l->at, &l->room, l->count + 1, sizeof one);                               \
        if (more) {                                                                                          \
            l->at = more;                                                                                    \
            l->at[l->count++] = one;                                                                         \
        }                                                                                                    \
        return more;                                                                                         \
    }

LIST_ADD(standing, kl_standing)
LIST_ADD(order, kl_order)
LIST_ADD(number, uint32_t)

bool kl_numbers_has(const kl_numbers *list, uint32_t one) {
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i] == one)
            return true;
    return false;
}

/* Define put_NAME() and get_NAME(), which write and read a list of structs. get_NAME() refuses a struct that
 * does not satisfy CHECK. */
#define LIST_CODEC(name, type, MEMBERS, CHECK)                                                               \
    static void put_##name(kl_buffer *out, const kl_##name *list) {                                          \
        kl_put_u32(out, (uint32_t)list->count);                                                              \
        for (size_t i = 0; i < list->count; i++) {                                                           \
            const type *m = &list->at[i];                                                                    \
            MEMBERS(KL_PUT_MEMBER)                                                                           \
        }                                                                                                    \
    }                                                                                                        \
    static bool get_##name(kl_reader *r, uint64_t tasks, kl_##name *list) {                                  \
        list->count = 0;                                                                                     \
        for (uint32_t left = kl_get_u32(r); left > 0 && !r->bad; left--) {                                   \
            type one = {0}, *m = &one;                                                                       \
            MEMBERS(KL_GET_MEMBER)                                                                           \
            if (r->bad || !(CHECK) || !kl_##name##_add(list, one))                                           \
                return false;                                                                                \
        }                                                                                                    \
        (void)tasks;                                                                                         \
        return !r->bad;                                                                                      \
    }

LIST_CODEC(ranges, kl_span, SPAN, one.lo < one.hi && one.hi <= tasks)
LIST_CODEC(standings, kl_standing, STANDING, one.peer < KL_PEERS_MOST)
LIST_CODEC(orders, kl_order, ORDER,
           one.span.lo < one.span.hi && one.span.hi <= tasks && one.to < KL_PEERS_MOST)

void kl_note_put(kl_buffer *out, const kl_note *m) {
    kl_put_u8(out, (uint8_t)m->kind);
    NOTE(KL_PUT_MEMBER)
    put_ranges(out, &m->spans);
    put_ranges(out, &m->held);
    put_standings(out, &m->standings);
    put_orders(out, &m->orders);
    kl_put_u32(out, (uint32_t)m->gone.count);
    for (size_t i = 0; i < m->gone.count; i++)
        kl_put_u32(out, m->gone.at[i]);
    kl_put_span(out, m->value.data, m->value.size);
    kl_put_span(out, m->held_value.data, m->held_value.size);
}

static bool get_gone(kl_reader *r, kl_numbers *list) {
    list->count = 0;
    for (uint32_t left = kl_get_u32(r); left > 0 && !r->bad; left--) {
        uint32_t peer = kl_get_u32(r);
        if (peer >= KL_PEERS_MOST || !kl_numbers_add(list, peer))
            return false;
    }
    return !r->bad;
}

static kilter_bytes get_value(kl_reader *r) {
    kilter_bytes value = {0};
    value.data = kl_get_span(r, &value.size);
    return value;
}

bool kl_note_get(const void *data, size_t size, uint64_t tasks, kl_note *m) {
    kl_reader reader = kl_reader_of(data, size), *r = &reader;
    uint8_t kind = kl_get_u8(r);
    if (kind < KL_NOTE_ASK || kind > KL_NOTE_PLAN)
        return false;
    m->kind = (kl_note_kind)kind;
    NOTE(KL_GET_MEMBER)
    bool ok = m->peers <= KL_PEERS_MOST && m->peer < KL_PEERS_MOST && get_ranges(r, tasks, &m->spans) &&
              get_ranges(r, tasks, &m->held) && get_standings(r, tasks, &m->standings) &&
              get_orders(r, tasks, &m->orders) && get_gone(r, &m->gone);
    m->value = get_value(r);
    m->held_value = get_value(r);
    return ok && kl_reader_done(r);
}

void kl_note_free(kl_note *note) {
    kl_ranges_free(&note->spans);
    kl_ranges_free(&note->held);
    free(note->standings.at);
    free(note->orders.at);
    free(note->gone.at);
    *note = (kl_note){0};
}
