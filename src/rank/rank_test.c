/* Test all ranks of a loop in virtual time. Their speeds change, messages take time, and memory runs out. In
 * each sweep, each row must be done once, on some rank, and must get the value of the sequential program.
 * Rows may have content of changing size, which must be on the rank that does the row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "rank/rank.h"

enum { MOST = 9, SWEEPS_MOST = 64, MAILS = 4096, PAGE = 4, TRUE_RANKS = 2, POISON = 0xa5 };

static const double LATENCY_S = 2e-5, REST_S = 1e-4, POST_S = 1e-6;

typedef enum loop_kind {
    RANGED,
    DEEP,
    PIPELINED,
    BACKWARD,
    PERIODIC,
    ORDERED,
    FALLING,
    SCATTERED,
    KINDS
} loop_kind;

typedef struct scene {
    loop_kind kind;
    uint64_t n, inner; /* inner: number of elements of a row in a pipeline, otherwise 1 */
    uint32_t ranks;
    int sweeps;
    double row_s; /* seconds that a rank of speed 1 takes for a row */
    double slow;  /* speed of the last rank during slow times */
    /* length in seconds of each slow time, and of each fast time between slow times; 0: always slow */
    double swing_s;
    double share; /* part of its core that rank 0 gets, from 0 to 1 */
    bool fixed, forced;
    bool crowded; /* true: ranks share their cores with each other */
    uint64_t seed;
    uint64_t refuses; /* every `refuses`-th request for memory fails on one rank; 0: none fails */
    bool content;
    uint64_t unpacked; /* every `unpacked`-th request to pack rows fails on one rank; 0: none fails */
} scene;

typedef struct bulk { /* Content of a row. */
    uint64_t *at, count;
    bool here; /* true: the row is on this rank */
} bulk;

typedef struct posted { /* A message that was sent, or a receive that waits for a message. */
    uint8_t *data;
    size_t bytes;
    int from, to, tag;
    double at_s;
    bool used;
    kl_set *set;
    uint64_t hash;
} posted;

typedef struct mailbox {
    posted at[MAILS];
    size_t count;
} mailbox;

struct kl_requests { /* A set of messages, as the driver in this test knows it. */
    double arrives_s;
    size_t open; /* number of messages of the set that have not arrived */
};

/* A collective operation of all ranks. The last two operations are stored, because a slow rank may still have
 * to read the earlier one. */
typedef struct meeting {
    uint8_t data[MOST][2 * sizeof(kl_rank_report)];
    double at_s;
    uint32_t entered;
} meeting;

typedef enum actor_state { CALLS, WAITS, MEETS, OVER } actor_state;

typedef struct actor {
    kl_rank rank;
    kl_core_share core;
    actor_state state;
    kl_loop_call call;
    kl_action action;
    double now_s, told_s; /* told_s: the time that the rank knows; it may be older, after untimed actions */
    int sweep;
    double began_s;
    /* two arrays of n · inner cells; cells of rows on other ranks are poisoned, so that an access is an
     * error */
    uint64_t *cells[2];
    uint64_t *memory[2]; /* memory of these arrays, including ghost rows beyond the ends */
    bulk *bulks;         /* [n] */
    uint64_t shares, meetings, rooms, packs; /* numbers of operations of each kind so far */
    /* memory into which the reports are gathered; NULL: no reports are under way */
    void *shared;
    size_t shared_bytes;
} actor;

typedef struct world {
    const scene *scene;
    actor actors[MOST];
    mailbox sent, wanted;
    meeting shares[TRUE_RANKS], meetings[TRUE_RANKS];
    /* times_done[cell]: number of times that an element of a row was done, in each sweep */
    uint8_t *times_done;
} world;

/* --- the loop's body --- */

static bool is_pipeline(const scene *s) {
    return s->kind == PIPELINED || s->kind == BACKWARD;
}

/* Return whether the rows of the loop are overwritten in place, in order, while later rows are still to be
 * read. */
static bool is_ordered(const scene *s) {
    return s->kind == ORDERED || s->kind == FALLING;
}

static bool in_place(const scene *s) {
    return is_pipeline(s) || is_ordered(s);
}

static bool falls(const scene *s) {
    return s->kind == BACKWARD || s->kind == FALLING;
}

static uint64_t *cell(const actor *a, int array, uint64_t row, uint64_t element, uint64_t inner) {
    return &a->cells[array][row * inner + element];
}

/* Compute a row from the values that its neighbours had after the last sweep. In a pipeline, use the value
 * that the row before it got in this sweep. */
static uint64_t next_value(const scene *s, const uint64_t *last, const uint64_t *this, uint64_t row,
                           uint64_t element) {
    uint64_t at = row * s->inner + element, value = last[at];
    if (s->kind == PIPELINED)
        return kl_mix64(value + (row > 0 ? 3 * this[at - s->inner] : 0) +
                        (row > 0 && element > 0 ? 7 * this[at - s->inner - 1] : 0) +
                        (row + 1 < s->n ? 5 * last[at + s->inner] : 0));
    if (s->kind == BACKWARD)
        return kl_mix64(value + (row + 1 < s->n ? 3 * this[at + s->inner] : 0) +
                        (row + 1 < s->n && element + 1 < s->inner ? 7 * this[at + s->inner + 1] : 0) +
                        (row > 0 ? 5 * last[at - s->inner] : 0));
    if (s->kind == SCATTERED)
        return kl_mix64(value);
    if (s->kind == ORDERED)
        return kl_mix64(value + (row + 1 < s->n ? 5 * last[at + 1] : 0));
    if (s->kind == FALLING)
        return kl_mix64(value + (row > 0 ? 3 * last[at - 1] : 0));
    if (s->kind == PERIODIC) /* inner is 1 here, so a cell and its row have the same number */
        return kl_mix64(value + 3 * *(last + row - 1) + 5 * last[row + 1]);
    return kl_mix64(value + (row > 0 ? 3 * last[at - 1] : 0) + (row + 1 < s->n ? 5 * last[at + 1] : 0));
}

/* Compute ranges of rows and of their elements, in the order in which the loop visits them. */
static void compute(const scene *s, const uint64_t *from, uint64_t *to, kl_span rows, kl_span inner) {
    for (uint64_t i = 0; i < kl_length(rows); i++)
        for (uint64_t k = 0; k < kl_length(inner); k++) {
            uint64_t row = falls(s) ? rows.hi - 1 - i : rows.lo + i,
                     e = falls(s) ? inner.hi - 1 - k : inner.lo + k;
            to[row * s->inner + e] = next_value(s, from, to, row, e);
        }
}

static uint64_t *sequential(const scene *s) {
    size_t cells = (size_t)(s->n * s->inner);
    uint64_t *memory = calloc(2 * cells + 4, sizeof *memory), *u[2] = {memory + 1, memory + cells + 3};
    uint64_t *from = u[0], *to = u[0];
    for (size_t i = 0; i < cells; i++)
        from[i] = i;
    for (int sweep = 0; sweep < s->sweeps; sweep++) {
        to = in_place(s) ? from : u[(sweep + 1) % 2];
        *(from - 1) = from[cells - 1]; /* the cells beyond the ends, for periodic loops */
        from[cells] = from[0];
        compute(s, from, to, (kl_span){0, s->n}, (kl_span){0, s->inner});
        from = to;
    }
    memmove(memory, to, cells * sizeof *memory);
    return memory;
}

/* Replace the content of a row by content of another size, which depends on the old content. */
static void change(bulk *b, uint64_t row) {
    uint64_t hash = row;
    for (uint64_t i = 0; i < b->count; i++)
        hash = kl_mix64(hash + b->at[i]);
    free(b->at);
    b->count = 1 + hash % 7 * (hash % 3); /* the new size may be greater or smaller */
    b->at = malloc(b->count * sizeof *b->at);
    for (uint64_t i = 0; i < b->count; i++)
        b->at[i] = kl_mix64(hash + i);
}

static double speed_at(const scene *s, uint32_t r, double at_s) {
    bool slow = r + 1 == s->ranks && (s->swing_s == 0 || fmod(at_s, 2 * s->swing_s) < s->swing_s);
    return slow ? s->slow : 1;
}

static void work(world *w, uint32_t r, const kl_given *given) {
    const scene *s = w->scene;
    actor *a = &w->actors[r];
    bool pipeline = is_pipeline(s);
    kl_span own = kl_layout_next(&a->rank.layout), inner = pipeline ? given->inner : (kl_span){0, 1};
    const uint64_t *from = a->cells[in_place(s) ? 0 : a->sweep % 2];
    uint64_t *to = a->cells[in_place(s) ? 0 : (a->sweep + 1) % 2];
    compute(s, from, to, given->rows, inner);
    for (uint64_t row = given->rows.lo; row < given->rows.hi; row++)
        for (uint64_t e = inner.lo; e < inner.hi; e++)
            if (s->kind == SCATTERED || (row >= own.lo && row < own.hi))
                w->times_done[(size_t)a->sweep * s->n * s->inner + row * s->inner + e]++;
    /* true for the last block of these rows */
    bool ends = s->kind == BACKWARD ? inner.lo == 0 : inner.hi == s->inner;
    for (uint64_t row = given->rows.lo; row < given->rows.hi && s->content && ends; row++) {
        assert_true(a->bulks[row].here);
        change(&a->bulks[row], row);
    }
    double part = (double)kl_length(inner) / (double)s->inner;
    a->now_s += (double)kl_length(given->rows) * part * s->row_s / speed_at(s, r, a->now_s);
}

/* --- messages --- */

static uint64_t hash_of(const posted *p) {
    uint64_t hash = p->bytes;
    for (size_t i = 0; i < p->bytes; i++)
        hash = kl_mix64(hash + p->data[i]);
    return hash;
}

static posted *find(mailbox *box, int from, int to, int tag) {
    for (size_t i = 0; i < box->count; i++)
        if (!box->at[i].used && box->at[i].from == from && box->at[i].to == to && box->at[i].tag == tag)
            return &box->at[i];
    return NULL;
}

static posted *put(mailbox *box, posted p) {
    while (box->count > 0 && box->at[box->count - 1].used)
        box->count--;
    for (size_t i = 0; i < box->count && box->count == MAILS; i++)
        if (box->at[i].used) { /* remove the message, and keep the order of the others */
            memmove(&box->at[i], &box->at[i + 1], (box->count - i - 1) * sizeof p);
            box->count--;
        }
    assert_true(box->count < MAILS);
    box->at[box->count] = p;
    return &box->at[box->count++];
}

static void close_one(kl_set *set, double at_s) {
    set->requests->arrives_s = fmax(set->requests->arrives_s, at_s);
    set->requests->open--;
}

/* Deliver a message, and check that its sender has not changed the rows since sending. */
static void deliver(posted *message, posted *place) {
    assert_int_equal(message->bytes, place->bytes);
    assert_true(hash_of(message) == message->hash);
    memcpy(place->data, message->data, message->bytes);
    close_one(place->set, message->at_s);
    close_one(message->set, fmax(message->at_s, place->at_s));
    message->used = place->used = true;
}

static void send(world *w, uint32_t r, const kl_mail *mail, kl_set *set) {
    posted message = {mail->data, mail->bytes, (int)r, mail->peer, mail->tag, 0, false, set, 0};
    message.at_s = w->actors[r].now_s + LATENCY_S + 1e-9 * (double)mail->bytes;
    message.hash = hash_of(&message);
    set->requests->open++;
    posted *place = find(&w->wanted, message.from, message.to, message.tag);
    posted *put_there = put(&w->sent, message);
    if (place)
        deliver(put_there, place);
}

static void receive(world *w, uint32_t r, const kl_mail *mail, kl_set *set) {
    posted place = {mail->data,         mail->bytes, mail->peer, (int)r, mail->tag,
                    w->actors[r].now_s, false,       set,        0};
    set->requests->open++;
    posted *message = find(&w->sent, place.from, place.to, place.tag);
    posted *put_there = put(&w->wanted, place);
    if (message)
        deliver(message, put_there);
}

/* --- meetings --- */

static void enter(world *w, meeting *m, uint32_t r, const void *data, size_t bytes) {
    if (m->entered == w->scene->ranks)
        *m = (meeting){.entered = 0};
    memcpy(m->data[r], data, bytes);
    m->at_s = fmax(m->at_s, w->actors[r].now_s + LATENCY_S);
    m->entered++;
}

static void share(world *w, uint32_t r) {
    actor *a = &w->actors[r];
    enter(w, &w->shares[a->shares++ % TRUE_RANKS], r, a->action.mine, a->action.bytes);
    a->shared = a->action.all;
    a->shared_bytes = a->action.bytes;
}

/* Return the time at which all messages of the set are complete; HUGE_VAL: not known. */
static double complete_s(const world *w, uint32_t r, const kl_set *set) {
    const actor *a = &w->actors[r];
    const meeting *m = &w->shares[(a->shares - 1) % TRUE_RANKS];
    if (set != &a->rank.rounds.set)
        return set->requests->open > 0 ? HUGE_VAL : set->requests->arrives_s;
    if (!a->shared)
        return 0;
    return m->entered == w->scene->ranks ? m->at_s : HUGE_VAL;
}

static void close_set(world *w, uint32_t r, kl_set *set) {
    actor *a = &w->actors[r];
    const meeting *m = &w->shares[(a->shares - 1) % TRUE_RANKS];
    set->open = false;
    if (set != &a->rank.rounds.set || !a->shared)
        return;
    for (uint32_t i = 0; i < w->scene->ranks; i++)
        memcpy((char *)a->shared + i * a->shared_bytes, m->data[i], a->shared_bytes);
    a->shared = NULL;
}

/* --- a driver of all ranks --- */

static void poison(const world *w, actor *a) {
    const kl_layout *l = &a->rank.layout;
    uint64_t edge = kl_array_edge(&l->arrays[0]);
    kl_span had = kl_array_with_room(&l->arrays[0], kl_layout_own(l)),
            has = kl_array_with_room(&l->arrays[0], kl_layout_next(l));
    for (uint64_t row = had.lo; row < had.hi; row++)
        for (int i = 0; i < 2 && (row < has.lo || row >= has.hi); i++)
            memset(cell(a, i, row, 0, w->scene->inner) - edge * w->scene->inner, POISON,
                   w->scene->inner * sizeof(uint64_t));
}

/* Return whether a rank gets memory for rows. In some scenes, memory runs out on purpose. */
static bool has_room(const world *w, actor *a, uint32_t r) {
    uint64_t every = w->scene->refuses;
    return every == 0 || ++a->rooms % every > 0 || r != a->rooms % w->scene->ranks;
}

/* --- contents --- */

static void allocate(kl_parcel *p) {
    if (!p->sends)
        p->data = malloc(kl_parcel_bytes(p) + 1);
}

static bool pack(const world *w, actor *a, uint32_t r) {
    uint64_t every = w->scene->unpacked;
    bool packs = every == 0 || ++a->packs % every > 0 || r != a->packs % w->scene->ranks;
    for (size_t i = 0; i < a->action.count; i++) {
        kl_parcel *p = &a->action.parcels[i];
        uint8_t *to = NULL;
        if (!p->sends)
            continue;
        for (uint64_t k = 0; k < p->count; k++) {
            assert_true(a->bulks[p->items[k].row].here);
            p->items[k].bytes = a->bulks[p->items[k].row].count * sizeof(uint64_t);
        }
        to = p->data = calloc(kl_parcel_bytes(p) + 1, 1);
        for (uint64_t k = 0; k < p->count; to += kl_item_room(&p->items[k++]))
            if (p->items[k].bytes > 0)
                memcpy(to, a->bulks[p->items[k].row].at, p->items[k].bytes);
    }
    return packs;
}

static void unpack(actor *a) {
    for (size_t i = 0; i < a->action.count; i++) {
        const kl_parcel *p = &a->action.parcels[i];
        const uint8_t *from = p->data;
        for (uint64_t k = 0; k < p->count; from += kl_item_room(&p->items[k++])) {
            bulk *b = &a->bulks[p->items[k].row];
            assert_true(b->here == p->sends);
            b->here = !p->sends;
            free(b->at);
            *b = (bulk){.here = b->here};
            if (p->sends)
                continue;
            b->count = p->items[k].bytes / sizeof(uint64_t);
            b->at = malloc(p->items[k].bytes + 1);
            memcpy(b->at, from, p->items[k].bytes);
        }
    }
}

static uint64_t weigh(const actor *a) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < a->action.ranges->count; i++)
        for (uint64_t row = a->action.ranges->at[i].lo; row < a->action.ranges->at[i].hi; row++) {
            assert_true(a->bulks[row].here);
            bytes += a->bulks[row].count * sizeof(uint64_t);
        }
    return bytes;
}

static void meet(world *w, uint32_t r) {
    actor *a = &w->actors[r];
    uint64_t fits = has_room(w, a, r) ? KL_ROOM_FITS : KL_ROOM_NONE;
    fits = a->rank.content.on && !a->rank.content.packed ? KL_ROOM_UNPACKED : fits;
    meeting *m = &w->meetings[a->meetings++ % TRUE_RANKS];
    if (a->action.act == KL_ROOM)
        enter(w, m, r, &fits, sizeof fits);
    else
        enter(w, m, r, a->action.values, a->action.count * sizeof(double));
    a->state = MEETS;
}

static void leave_meeting(world *w, uint32_t r) {
    actor *a = &w->actors[r];
    const meeting *m = &w->meetings[(a->meetings - 1) % TRUE_RANKS];
    uint64_t fits = KL_ROOM_FITS;
    for (uint32_t i = 0; i < w->scene->ranks; i++) {
        uint64_t one;
        memcpy(&one, m->data[i], sizeof one);
        fits = a->action.act == KL_ROOM && one < fits ? one : fits;
        for (size_t k = 0; k < a->action.count && a->action.act == KL_MOST; k++) {
            double value;
            memcpy(&value, m->data[i] + k * sizeof value, sizeof value);
            a->action.values[k] = fmax(a->action.values[k], value);
        }
    }
    if (a->action.act == KL_ROOM) {
        kl_exchange_room_is(&a->rank.exchange, (kl_room)fits, 0);
        for (uint64_t i = 0; i < a->rank.content.count; i++)
            allocate(&a->rank.content.parcels[i]);
    }
    a->state = CALLS;
}

static void end_call(world *w, uint32_t r) {
    actor *a = &w->actors[r];
    if (a->action.act == KL_GIVE) {
        a->rank.meter.given_cpu_s = a->now_s;
        work(w, r, &a->action.given);
    }
    if (a->call == KL_LOOP_END) {
        kl_rank_end_sweep(&a->rank, a->now_s - a->began_s);
        a->sweep++;
    }
    if (a->call == KL_LOOP_NEXT && a->action.act == KL_RETURN)
        assert_true(a->rank.kind->is_done(&a->rank));
    if (a->call != KL_LOOP_NEXT || a->action.act == KL_RETURN)
        a->call = (a->call + 1) % KL_LOOP_CALLS;
    if (a->call == KL_LOOP_BEGIN && a->sweep == w->scene->sweeps) {
        a->state = OVER;
        return;
    }
    if (a->call == KL_LOOP_BEGIN)
        a->began_s = a->now_s;
    a->rank.meter.cpu_s = a->now_s;
    kl_rank_call(&a->rank, a->call);
}

static void post(world *w, uint32_t r) {
    actor *a = &w->actors[r];
    const kl_action *action = &a->action;
    for (size_t i = action->receives; i < action->count; i++)
        send(w, r, &action->mails[i], action->set);
    for (size_t i = 0; i < action->receives; i++)
        receive(w, r, &action->mails[i], action->set);
}

static bool is_in(const kl_ranges *ranges, kl_span rows) {
    for (size_t i = 0; i < ranges->count; i++)
        if (!kl_is_empty(kl_common(ranges->at[i], rows)))
            return true;
    return false;
}

/* Drop the memory of rows in whole pages, as the system does. A page has several rows. */
static void drop(const world *w, actor *a) {
    for (uint64_t lo = 0; lo < w->scene->n; lo += PAGE) {
        kl_span page = {lo, lo + PAGE < w->scene->n ? lo + PAGE : w->scene->n};
        if (is_in(a->action.ranges, page) && !is_in(a->action.kept, page))
            for (int k = 0; k < 2; k++)
                memset(&a->cells[k][page.lo], POISON, kl_length(page) * sizeof(uint64_t));
    }
}

static void forget(kl_set *set) {
    assert_true(!set->requests || set->requests->open == 0);
    free(set->requests);
    *set = (kl_set){.open = false};
}

static void open_set(kl_set *set) {
    if (set && !set->requests)
        set->requests = calloc(1, sizeof *set->requests);
    if (set)
        set->open = true;
}

static void carry_out(world *w, uint32_t r) {
    actor *a = &w->actors[r];
    if (a->action.act == KL_POST || a->action.act == KL_SHARE || a->action.act == KL_AWAIT)
        open_set(a->action.set);
    switch (a->action.act) {
    case KL_RETURN:
    case KL_GIVE:
        end_call(w, r);
        break;
    case KL_POST:
        post(w, r);
        a->now_s += POST_S;
        break;
    case KL_SHARE:
        share(w, r);
        break;
    case KL_LOOK:
        if (complete_s(w, r, a->action.set) <= a->now_s)
            close_set(w, r, a->action.set);
        break;
    case KL_AWAIT:
        a->state = WAITS;
        break;
    case KL_ROOM:
    case KL_MOST:
        meet(w, r);
        break;
    case KL_TAKE:
        *(uint64_t *)a->action.all = has_room(w, a, r);
        for (size_t i = 0; i < a->action.count; i++)
            allocate(&a->action.parcels[i]);
        break;
    case KL_PACK:
        *(uint64_t *)a->action.all = pack(w, a, r);
        break;
    case KL_UNPACK:
        unpack(a);
        break;
    case KL_WEIGH:
        *(uint64_t *)a->action.all = weigh(a);
        break;
    case KL_DROP:
        drop(w, a);
        break;
    case KL_REST:
        a->now_s += REST_S;
        break;
    case KL_FORGET:
        forget(a->action.set);
        break;
    case KL_GIVE_BACK:
        poison(w, a);
        break;
    case KL_QUANTUM:
        kl_meter_quantum_is(&a->rank.meter, 0.01);
        break;
    case KL_CLOCK:
    case KL_RECORD:
    case KL_REFUSED:
        break;
    default:
        fail_msg("action %d: %s", a->action.act, a->action.text);
    }
}

/* Return the time at which the actor (a rank) can continue; HUGE_VAL: it waits for other actors. */
static double ready_s(const world *w, uint32_t r) {
    const actor *a = &w->actors[r];
    const meeting *m = &w->meetings[(a->meetings - 1) % TRUE_RANKS];
    double at_s = a->now_s;
    if (a->state == OVER)
        return HUGE_VAL;
    if (a->state == WAITS)
        at_s = complete_s(w, r, a->action.set);
    if (a->state == MEETS)
        at_s = m->entered == w->scene->ranks ? m->at_s : HUGE_VAL;
    return fmax(at_s, a->now_s);
}

/* Let the actor (a rank) that can continue first do one action. Messages take time, so no message that is
 * sent later can reach this actor earlier. */
/* Return whether the driver does not read the clock after this action. */
static bool keeps_time(const kl_action *a) {
    return a->act > KL_GIVE && a->untimed && !(a->act == KL_LOOK && a->set->open);
}

static bool step(world *w) {
    uint32_t first = 0;
    for (uint32_t r = 1; r < w->scene->ranks; r++)
        if (ready_s(w, r) < ready_s(w, first))
            first = r;
    actor *a = &w->actors[first];
    double at_s = ready_s(w, first);
    if (at_s == HUGE_VAL)
        return false;
    a->now_s = at_s;
    if (a->state == WAITS)
        close_set(w, first, a->action.set);
    if (a->state == MEETS)
        leave_meeting(w, first);
    a->state = CALLS;
    if (!keeps_time(&a->action))
        a->told_s = a->now_s;
    a->action = *kl_rank_act(&a->rank, a->told_s);
    if (a->action.act == KL_GIVE && a->rank.meter.on)
        assert_true(a->rank.now_s == a->now_s); /* the time of the body begins here */
    carry_out(w, first);
    return true;
}

/* --- simulating a loop from its beginning to its end --- */

static void open_actor(const scene *s, actor *a, uint32_t r) {
    bool pipeline = is_pipeline(s), periodic = s->kind == PERIODIC;
    uint64_t edge = periodic ? s->n : 0, cells = (s->n + 2 * edge) * s->inner;
    const kl_rank_options o = {.iterations = s->n,
                               .rank = r,
                               .ranks = s->ranks,
                               .inner = pipeline ? s->inner : 0,
                               .backward = falls(s),
                               .ordered = is_ordered(s),
                               .fixed = s->fixed};
    const kl_messages messages = {2 * LATENCY_S, {LATENCY_S, 1e-9}, 0.01, s->crowded};
    bool scattered = s->kind == SCATTERED && !s->fixed &&
                     s->ranks > 1; /* the folder loop uses the same condition for scattered loops */
    const kl_kind *kind = pipeline ? &kl_pipelined : scattered ? &kl_scattered : &kl_ranged;
    assert_true(kl_rank_init(&a->rank, kind, &o));
    a->rank.looks_yield = a->rank.meter.seldom = s->crowded;
    a->core = (kl_core_share){.share = r == 0 ? s->share : 1};
    a->rank.meter.core = &a->core;
    for (int i = 0; i < 2; i++) {
        a->memory[i] = malloc(cells * sizeof *a->memory[i]);
        memset(a->memory[i], POISON, cells * sizeof *a->memory[i]);
        a->cells[i] = a->memory[i] + edge * s->inner;
        uint64_t halo = s->kind != SCATTERED, room = s->kind == DEEP ? KL_DEEPEST : halo;
        kl_array array = {.base = (uint8_t *)a->cells[i],
                          .bytes = s->inner * sizeof(uint64_t),
                          .halo = halo,
                          .room = room,
                          .periodic = periodic};
        assert_true(kl_rank_grow(&a->rank));
        kl_layout_add(&a->rank.layout, &array);
    }
    kl_span own = kl_layout_own(&a->rank.layout);
    for (uint64_t i = own.lo * s->inner; i < own.hi * s->inner; i++)
        a->cells[0][i] = i;
    a->bulks = calloc(s->n, sizeof *a->bulks);
    for (uint64_t row = own.lo; row < own.hi; row++)
        a->bulks[row].here = true;
    a->rank.content.on = a->rank.rounds.sized = s->content;
    a->rank.exchange.deepest = s->kind == DEEP ? KL_DEEPEST : 1;
    a->rank.rounds.forced = s->forced;
    a->rank.rounds.seed = s->seed;
    if (kl_rounds_wanted(&a->rank)) {
        assert_true(kl_rounds_reserve(&a->rank.rounds, s->ranks));
        assert_true(kl_rounds_open(&a->rank, &messages));
    }
    kl_rank_call(&a->rank, KL_LOOP_BEGIN);
}

/* Check that the content of each row is on the rank that has the row, and nowhere else. */
static void check_contents(const world *w) {
    const scene *s = w->scene;
    uint64_t found = 0;
    bulk *expected = calloc(s->n, sizeof *expected);
    for (uint64_t row = 0; row < s->n; row++)
        for (int sweep = 0; sweep < s->sweeps; sweep++)
            change(&expected[row], row);
    for (uint32_t r = 0; r < s->ranks; r++) {
        const actor *a = &w->actors[r];
        kl_span own;
        for (size_t nth = 0; kl_rank_own(&a->rank, nth, &own); nth++)
            for (uint64_t row = own.lo; row < own.hi; row++) {
                assert_true(a->bulks[row].here && a->bulks[row].count == expected[row].count);
                assert_memory_equal(a->bulks[row].at, expected[row].at,
                                    expected[row].count * sizeof(uint64_t));
            }
        for (uint64_t row = 0; row < s->n; row++)
            found += a->bulks[row].here;
    }
    assert_int_equal(found, s->n);
    for (uint64_t row = 0; row < s->n; row++)
        free(expected[row].at);
    free(expected);
}

static void check(const world *w) {
    const scene *s = w->scene;
    uint64_t *expected = sequential(s), rows = 0;
    for (uint32_t r = 0; r < s->ranks; r++) {
        const actor *a = &w->actors[r];
        const uint64_t *values = a->cells[in_place(s) ? 0 : s->sweeps % 2];
        kl_span own;
        assert_true(a->state == OVER);
        assert_memory_equal(a->rank.layout.bounds, w->actors[0].rank.layout.bounds,
                            (s->ranks + 1) * sizeof(uint64_t));
        for (size_t nth = 0; kl_rank_own(&a->rank, nth, &own); nth++)
            for (uint64_t i = own.lo * s->inner; i < own.hi * s->inner; i++) {
                assert_true(values[i] == expected[i]);
                rows++;
            }
    }
    assert_int_equal(rows, s->n * s->inner);
    const kl_rank *first = &w->actors[0].rank;
    if (first->rounds.steer && s->kind != SCATTERED)
        assert_memory_equal(kl_steer_shares(first->rounds.steer), first->layout.target,
                            (s->ranks + 1) * sizeof(uint64_t));
    for (size_t i = 0; i < (size_t)s->sweeps * s->n * s->inner; i++)
        assert_int_equal(w->times_done[i], 1);
    free(expected);
}

typedef struct outcome {
    double elapsed_s;
    /* moves: number of moves that the loop counted; last: number of rows on the last rank at the end */
    uint64_t moves, last;
    kl_totals all; /* measurements of rank 0 over the whole loop */
    uint64_t depth;
    uint64_t reports; /* number of reports that rank 0 made */
} outcome;

static void close_world(world *w) {
    for (size_t i = 0; i < w->sent.count; i++)
        assert_true(w->sent.at[i].used); /* check that each message that was sent was received */
    for (uint32_t r = 0; r < w->scene->ranks; r++) {
        kl_rank *k = &w->actors[r].rank;
        kl_set *sets[] = {&k->rounds.set, &k->exchange.set, &k->flow.coming, &k->flow.going};
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
            forget(sets[i]);
        kl_rank_free(k);
        free(w->actors[r].memory[0]);
        free(w->actors[r].memory[1]);
        for (uint64_t row = 0; row < w->scene->n; row++)
            free(w->actors[r].bulks[row].at);
        free(w->actors[r].bulks);
    }
    free(w->times_done);
    free(w);
}

static outcome run(const scene *s) {
    world *w = calloc(1, sizeof *w);
    assert_true(s->ranks <= MOST && s->sweeps <= SWEEPS_MOST);
    w->scene = s;
    w->times_done = calloc((size_t)s->sweeps * s->n * s->inner, 1);
    for (uint32_t r = 0; r < s->ranks; r++)
        open_actor(s, &w->actors[r], r);
    while (step(w))
        ;
    check(w);
    if (s->content)
        check_contents(w);
    const kl_rank *first = &w->actors[0].rank;
    const kl_steer *steer = first->rounds.steer;
    outcome o = {.moves = steer ? kl_steer_account(steer)->moves : 0,
                 .all = first->meter.all,
                 .depth = first->exchange.depth,
                 .reports = w->actors[0].shares};
    kl_span own;
    for (size_t nth = 0; kl_rank_own(&w->actors[s->ranks - 1].rank, nth, &own); nth++)
        o.last += kl_length(own);
    for (uint32_t r = 0; r < s->ranks; r++)
        o.elapsed_s = fmax(o.elapsed_s, w->actors[r].now_s);
    close_world(w);
    return o;
}

static scene scene_of(loop_kind kind) {
    return (scene){.kind = kind,
                   .n = 64,
                   .inner = kind == PIPELINED || kind == BACKWARD ? 32 : 1,
                   .ranks = 4,
                   .sweeps = 40,
                   .row_s = 0.01,
                   .slow = 1,
                   .share = 1};
}

/* --- properties --- */

static void each_row_is_done_once_wherever_it_goes(void **state) {
    static const uint64_t sizes[] = {1, 2, 3, 7, 40};
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++)
        for (uint32_t ranks = 1; ranks <= MOST; ranks += 1 + (ranks > 4))
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (uint64_t seed = 0; seed < 4; seed++) {
                    scene s = scene_of(kind);
                    s.n = sizes[i];
                    s.ranks = ranks;
                    s.sweeps = 12;
                    s.seed = kl_mix64(seed);
                    s.forced = seed > 1;
                    s.crowded = seed == 1;
                    s.slow = 0.3;
                    run(&s);
                }
}

static void a_slow_rank_gives_rows_away(void **state) {
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++) {
        scene s = scene_of(kind), fixed = s;
        s.slow = fixed.slow = 0.4;
        fixed.fixed = true;
        outcome o = run(&s), plain = run(&fixed);
        assert_true(o.all.moves > 0 && o.moves > 0 && plain.all.moves == 0);
        assert_true(o.last < s.n / 4 && plain.last == s.n / 4);
        assert_true(o.elapsed_s < 0.75 * plain.elapsed_s);
    }
}

/* On shared cores ranks report less often, and wait for reports only some sweeps later. */
static void a_slow_rank_that_shares_its_core_gives_rows_away(void **state) {
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++) {
        scene s = scene_of(kind), alone;
        s.slow = 0.4;
        s.row_s = 1e-3;
        alone = s;
        s.crowded = true;
        outcome o = run(&s), often = run(&alone);
        assert_true(o.all.moves > 0 && o.last < s.n / 4);
        assert_true(kind == SCATTERED || o.reports < often.reports);
    }
}

/* If some ranks share cores, CPU time is measured in few sweeps, unless rows differ in cost. */
static void the_cpu_time_of_few_sweeps_is_measured_where_ranks_share_cores(void **state) {
    static const struct {
        bool seldom, uneven;
        int least, most;
    } rows[] = {{false, false, 5000, 5000}, {true, true, 5000, 5000}, {true, false, 200, 300}};
    (void)state;
    const kl_core_share core = {.share = 0.5};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_meter m = {.core = &core,
                      .on = true,
                      .by_pieces = true,
                      .sampled_s = -1,
                      .seldom = rows[i].seldom,
                      .uneven = rows[i].uneven};
        int measured = 0;
        for (int sweep = 0; sweep < 5000; sweep++) {
            kl_meter_begin_sweep(&m, 10, 1e-3 * sweep);
            kl_meter_give(&m, 1e-3 * sweep);
            measured += m.tells_cpu;
        }
        assert_true(measured >= rows[i].least && measured <= rows[i].most);
    }
}

/* Other ranks do not count as load, but other processes do: they take the cores that are left for the last
 * ranks. A rank for which other ranks leave no core reports a quarter of a core. Ranks that share cores
 * report a whole core until it is known how many cores other processes use. */
static void a_report_tells_the_share_of_the_core(void **state) {
    static const struct {
        bool shares_cores, unsettled;
        uint32_t left, taken;
        double share;
    } rows[] = {{false, false, 1, 0, 0.3}, {false, false, 1, 1, 0.3}, {false, true, 1, 0, 0.3},
                {true, false, 2, 0, 1},    {true, false, 2, 1, 1},    {true, false, 2, 2, 0.5},
                {true, false, 1, 0, 1},    {true, false, 1, 1, 0.5},  {true, false, 0, 0, 0.25},
                {true, false, 0, 2, 0.25}, {true, true, 0, 0, 1},     {true, true, 1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const kl_core_share core = {.share = 0.3, .taken = rows[i].taken, .unsettled = rows[i].unsettled};
        kl_meter m = {.core = &core, .shares_cores = rows[i].shares_cores, .cores_left = rows[i].left};
        assert_true(kl_meter_report(&m, (kl_span){0, 1}, 0, 1).share == rows[i].share);
        assert_int_equal(kl_meter_is_loaded(rows[i].share), rows[i].share == 0.5 || rows[i].share == 0.3);
    }
}

/* On shared cores, passes may become far longer at any time. So reports must come soon: above all after a
 * move, and later if all rows are on free cores. If one rank has all rows, it waits for no halos. */
static void reports_come_soon_where_ranks_share_cores(void **state) {
    static const struct {
        uint64_t rows[3];
        double share[3];
        bool moves;
        uint64_t limit;
    } rows[] = {{{5, 5, 5}, {1, 1, 0.25}, false, 128},
                {{5, 5, 5}, {1, 0.5, 0.25}, false, 128},
                {{5, 5, 5}, {1, 0.5, 0.25}, true, 16},
                {{8, 7, 0}, {1, 1, 0.25}, false, 128},
                {{8, 7, 0}, {1, 1, 0.5}, false, 1024},
                {{8, 7, 0}, {1, 0.97, 0.3}, false, 1024},
                {{8, 7, 0}, {1, 0.8, 0.25}, false, 128},
                {{8, 7, 0}, {1, 0, 0}, false, 128},
                {{8, 7, 0}, {1, 1, 0.5}, true, 16},
                {{15, 0, 0}, {1, 0.5, 0.25}, false, UINT64_MAX},
                {{15, 0, 0}, {1, 0.5, 0.25}, true, UINT64_MAX}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kl_layout layout;
        kl_rank_report heard[3];
        assert_true(kl_layout_init(&layout, 15, 0, 3));
        for (uint32_t r = 0; r < 3; r++) {
            layout.target[r + 1] = layout.target[r] + rows[i].rows[r];
            heard[r] = (kl_rank_report){.share = rows[i].share[r]};
        }
        assert_true(kl_rounds_limit(&layout, heard, rows[i].moves) == rows[i].limit);
        kl_layout_free(&layout);
    }
}

/* A report uses the CPU time per row that was measured last, because the latest sweeps may have none. */
static void a_report_keeps_the_last_measured_cpu_time(void **state) {
    enum { SAMPLED = 4, ALL = 7 }; /* the first sweep is measured because nothing is known yet */
    (void)state;
    const kl_core_share core = {.share = 0.5, .sleeps = true};
    const kl_span own = {0, 10};
    kl_meter m = {.core = &core, .on = true, .seldom = true};
    for (int sweep = 0; sweep < ALL; sweep++) {
        double now_s = 10 + 0.1 * sweep;
        kl_meter_begin_sweep(&m, 10, now_s);
        kl_meter_give(&m, now_s);
        assert_true(m.tells_cpu == (sweep < SAMPLED));
        m.given_cpu_s = 0;
        m.cpu_s = 4e-3;
        kl_meter_rows(&m, own, own, now_s + 5e-3);
        kl_meter_end_sweep(&m, 0.1);
        assert_true(fabs(kl_meter_report(&m, own, 0, now_s + 0.1).busy_s - 8e-3) < 1e-9);
    }
}

/* Rows whose costs differ are found, although the CPU time is measured in few sweeps, and reports come in the
 * middle of sweeps. */
static void rows_that_differ_are_found_where_ranks_share_cores(void **state) {
    (void)state;
    const kl_core_share core = {.share = 1};
    const kl_span own = {0, KL_SEGMENTS};
    static const double sweeps_s[] = {5e-3, 0.02, 0.1, 2};
    for (size_t i = 0; i < sizeof sweeps_s / sizeof *sweeps_s; i++) {
        kl_meter m = {.core = &core, .on = true, .by_pieces = true, .shares_cores = true, .seldom = true};
        double now_s = 10, told_s = 10, cpu_s = 0;
        for (int sweep = 0; now_s < 30; sweep++) {
            kl_meter_begin_sweep(&m, KL_SEGMENTS, now_s);
            for (uint64_t row = 0; row < KL_SEGMENTS; row++) {
                double row_s = sweeps_s[i] / KL_SEGMENTS * (row < KL_SEGMENTS / 2 ? 0.5 : 1.5);
                kl_meter_give(&m, now_s);
                m.given_cpu_s = cpu_s;
                m.cpu_s = cpu_s += row_s;
                kl_meter_rows(&m, own, (kl_span){row, row + 1}, now_s += row_s);
                if (row == KL_SEGMENTS / 2 && now_s - told_s > 0.1)
                    kl_meter_report(&m, own, 0.5, told_s = now_s);
            }
            kl_meter_end_sweep(&m, sweeps_s[i]);
        }
        assert_true(m.uneven);
    }
}

static void equal_ranks_are_left_alone(void **state) {
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++) {
        scene s = scene_of(kind);
        outcome o = run(&s);
        assert_int_equal(o.all.moves, 0);
        assert_true(o.all.rounds > 0);
    }
}

static void rows_come_back_when_the_load_is_gone(void **state) {
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++) {
        scene s = scene_of(kind), fixed;
        s.sweeps = SWEEPS_MOST;
        s.slow = 0.4;
        s.swing_s = 8;
        fixed = s;
        fixed.fixed = true;
        outcome o = run(&s), plain = run(&fixed);
        assert_true(o.all.moves > 1);
        assert_true(o.elapsed_s < plain.elapsed_s);
    }
}

static void a_rank_without_memory_leaves_rows_where_they_are(void **state) {
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++)
        for (uint64_t refuses = 1; refuses < 4; refuses++)
            for (int forced = 0; forced < 2; forced++) {
                scene s = scene_of(kind);
                s.slow = 0.4;
                s.forced = forced;
                s.seed = refuses;
                s.refuses = refuses;
                run(&s);
            }
}

static void content_goes_where_its_row_goes(void **state) {
    static const uint64_t sizes[] = {1, 3, 7, 40};
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++)
        for (uint32_t ranks = 1; ranks <= MOST && kind != DEEP; ranks += 1 + (ranks > 4))
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (uint64_t seed = 0; seed < 3; seed++) {
                    scene s = scene_of(kind);
                    s.n = sizes[i];
                    s.ranks = ranks;
                    s.sweeps = 12;
                    s.seed = kl_mix64(seed);
                    s.forced = seed > 0;
                    s.slow = 0.3;
                    s.content = true;
                    run(&s);
                }
}

static void a_slow_rank_gives_rows_with_content_away(void **state) {
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++)
        for (uint64_t unpacked = 0; unpacked < 3 && kind != DEEP; unpacked += 2) {
            scene s = scene_of(kind);
            s.slow = 0.4;
            s.content = true;
            s.unpacked = unpacked;
            outcome o = run(&s);
            assert_true(o.all.rounds > 0);
            assert_true(unpacked > 0 || o.last < s.n / 4);
        }
}

static void rows_that_cannot_leave_stay(void **state) {
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++)
        for (uint64_t which = 1; which < 8 && kind != DEEP; which++) {
            scene s = scene_of(kind);
            s.content = s.forced = true;
            s.seed = which;
            s.refuses = which % 4;
            s.unpacked = which / 2;
            run(&s);
        }
}

/* Simulate a loop with short sweeps on a shared core, in which one exchange should serve several sweeps. The
 * function run() checks the values of all rows. */
static void a_deep_loop_on_a_shared_core_exchanges_less_often(void **state) {
    (void)state;
    scene s = scene_of(DEEP);
    s.sweeps = SWEEPS_MOST;
    s.n = 1000;
    s.row_s = 1e-6;
    s.share = 0.5;
    run(&s);
}

/* Check that a second run of the same loop has exactly the same results and decisions. */
static void two_runs_are_the_same(void **state) {
    (void)state;
    for (loop_kind kind = 0; kind < KINDS; kind++) {
        scene s = scene_of(kind);
        s.slow = 0.5;
        s.swing_s = 3;
        outcome one = run(&s), other = run(&s);
        assert_memory_equal(&one, &other, sizeof one);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_done_once_wherever_it_goes),
        cmocka_unit_test(a_slow_rank_gives_rows_away),
        cmocka_unit_test(a_slow_rank_that_shares_its_core_gives_rows_away),
        cmocka_unit_test(the_cpu_time_of_few_sweeps_is_measured_where_ranks_share_cores),
        cmocka_unit_test(rows_that_differ_are_found_where_ranks_share_cores),
        cmocka_unit_test(a_report_tells_the_share_of_the_core),
        cmocka_unit_test(a_report_keeps_the_last_measured_cpu_time),
        cmocka_unit_test(reports_come_soon_where_ranks_share_cores),
        cmocka_unit_test(equal_ranks_are_left_alone),
        cmocka_unit_test(rows_come_back_when_the_load_is_gone),
        cmocka_unit_test(a_rank_without_memory_leaves_rows_where_they_are),
        cmocka_unit_test(a_deep_loop_on_a_shared_core_exchanges_less_often),
        cmocka_unit_test(two_runs_are_the_same),
        cmocka_unit_test(content_goes_where_its_row_goes),
        cmocka_unit_test(a_slow_rank_gives_rows_with_content_away),
        cmocka_unit_test(rows_that_cannot_leave_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
