/* Store the inputs of a dealer's decisions. A row of the record holds only the values that have changed since
 * the previous row. */
#include "decide/grounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REAL(type, member)                                                                                   \
    { KL_MEMBER_REAL, offsetof(type, member) }
#define COUNT(type, member)                                                                                  \
    { KL_MEMBER_U64, offsetof(type, member) }
#define LIST_OF(array)                                                                                       \
    { array, sizeof(array) / sizeof *(array) }

static const kl_member of_snapshot[] = {
    {KL_MEMBER_U32, offsetof(kl_snapshot, slots)},
    COUNT(kl_snapshot, run),
    COUNT(kl_snapshot, tasks),
    COUNT(kl_snapshot, left),
    COUNT(kl_snapshot, unit_s.count),
    REAL(kl_snapshot, now_s),
    REAL(kl_snapshot, began_s),
    REAL(kl_snapshot, units),
    REAL(kl_snapshot, left_units),
    REAL(kl_snapshot, unit_s.mean),
    REAL(kl_snapshot, unit_s.m2),
    REAL(kl_snapshot, message.fixed_s),
    REAL(kl_snapshot, message.per_unit_s),
    REAL(kl_snapshot, answer_s),
    REAL(kl_snapshot, round_trip_s),
    REAL(kl_snapshot, task_bytes),
    REAL(kl_snapshot, result_bytes),
};

static const kl_member of_view[] = {
    {KL_MEMBER_U32, offsetof(kl_worker_view, number)},
    {KL_MEMBER_FLAG, offsetof(kl_worker_view, present)},
    {KL_MEMBER_FLAG, offsetof(kl_worker_view, resting)},
    COUNT(kl_worker_view, unit_s.count),
    COUNT(kl_worker_view, chunks),
    COUNT(kl_worker_view, queued_tasks),
    COUNT(kl_worker_view, wap.chunks),
    REAL(kl_worker_view, unit_s.mean),
    REAL(kl_worker_view, unit_s.m2),
    REAL(kl_worker_view, pace.seconds),
    REAL(kl_worker_view, pace.units),
    REAL(kl_worker_view, pace.spread),
    REAL(kl_worker_view, quickest_s[0]),
    REAL(kl_worker_view, quickest_s[1]),
    REAL(kl_worker_view, quickest_s[2]),
    REAL(kl_worker_view, wap.seconds),
    REAL(kl_worker_view, wap.units),
    REAL(kl_worker_view, prior_rate),
    {KL_MEMBER_SUM, offsetof(kl_worker_view, queued_units)},
    REAL(kl_worker_view, queued_at_s),
    REAL(kl_worker_view, busy_s),
    REAL(kl_worker_view, units),
};

const kl_members kl_members_of_snapshot = LIST_OF(of_snapshot), kl_members_of_view = LIST_OF(of_view);

/* --- writing and reading counts and changed members --- */

/* WHOLE: a bit in a member's number. It is set if the member is a real number with a whole value; the value
 * is then written as a count. */
enum { WHOLE = 128, COUNT_BYTES = 10 };

uint64_t kl_grounds_get_count(kl_reader *reader) {
    uint64_t count = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t byte = kl_get_u8(reader);
        count |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return count;
    }
    reader->bad = true;
    return 0;
}

/* Return whether a member is a real number with a small whole value, as most numbers of units of work
 * are. */
static bool is_whole(const kl_member *member, const char *in) {
    double value = member->type >= KL_MEMBER_REAL ? *(const double *)(const void *)(in + member->offset) : -1;
    return value >= 0 && value < UINT32_MAX && value == (double)(uint32_t)value && !signbit(value);
}

/* Write the count to memory at `to`, and return the address after its bytes. */
static uint8_t *write_count(uint8_t *to, uint64_t count) {
    for (; count > 127; count >>= 7)
        *to++ = (uint8_t)(128 | (count & 127));
    *to++ = (uint8_t)count;
    return to;
}

void kl_grounds_put_count(kl_buffer *out, uint64_t count) {
    uint8_t bytes[COUNT_BYTES];
    kl_put_bytes(out, bytes, (size_t)(write_count(bytes, count) - bytes));
}

static uint8_t *write_member(uint8_t *to, uint8_t number, const kl_member *member, const char *in) {
    const void *at = in + member->offset;
    bool whole = is_whole(member, in);
    *to++ = whole ? number | WHOLE : number;
    if (whole)
        return write_count(to, (uint64_t) * (const double *)at);
    if (member->type < KL_MEMBER_REAL)
        return write_count(to, member->type == KL_MEMBER_U64   ? *(const uint64_t *)at
                               : member->type == KL_MEMBER_U32 ? *(const uint32_t *)at
                                                               : *(const bool *)at);
    uint64_t bits;
    memcpy(&bits, at, sizeof bits);
    kl_store_u64(to, bits);
    return to + sizeof bits;
}

static bool is_same(const kl_member *member, const char *was, const char *is) {
    size_t at = member->offset;
    if (member->type == KL_MEMBER_FLAG)
        return *(const bool *)(was + at) == *(const bool *)(is + at);
    return memcmp(was + at, is + at, member->type == KL_MEMBER_U32 ? sizeof(uint32_t) : sizeof(double)) == 0;
}

/* Write the members that changed. This happens for each chunk, so it must be fast: the bytes of all members
 * go into the buffer at once. */
void kl_grounds_put_changes(kl_buffer *out, const kl_members *members, const void *was, const void *is) {
    uint8_t bytes[KL_MEMBERS_MOST * (1 + COUNT_BYTES) + 1], *to = bytes;
    for (size_t i = 0; i < members->count; i++)
        if (!is_same(&members->list[i], was, is))
            to = write_member(to, (uint8_t)(i + 1), &members->list[i], is);
    *to++ = 0;
    kl_put_bytes(out, bytes, (size_t)(to - bytes));
}

/* Accept a value from a record only within these limits. They are far beyond the values of a real farm, but
 * small enough for sums and products to stay finite. */
static const uint64_t COUNT_MOST = (uint64_t)1 << 52;
static const double REAL_LEAST = 1e-100, REAL_MOST = 1e30;
/* a sum from which parts were subtracted may be slightly below 0 because of rounding */
static const double SUM_LEAST = -1;

static bool is_real(kl_member_type type, double value) {
    double least = type == KL_MEMBER_SUM ? SUM_LEAST : value == 0 ? 0 : REAL_LEAST;
    return value >= least && value <= REAL_MOST;
}

static void get_member(kl_reader *reader, bool whole, const kl_member *member, char *into) {
    void *at = into + member->offset;
    if (member->type >= KL_MEMBER_REAL) {
        *(double *)at = whole ? (double)kl_grounds_get_count(reader) : kl_get_f64(reader);
        reader->bad |= !is_real(member->type, *(double *)at);
        return;
    }
    uint64_t count = kl_grounds_get_count(reader);
    reader->bad |= count > (member->type == KL_MEMBER_U64   ? COUNT_MOST
                            : member->type == KL_MEMBER_U32 ? UINT32_MAX
                                                            : 1);
    if (member->type == KL_MEMBER_U64)
        *(uint64_t *)at = count;
    else if (member->type == KL_MEMBER_U32)
        *(uint32_t *)at = (uint32_t)count;
    else
        *(bool *)at = count == 1;
}

void kl_grounds_get_changes(kl_reader *reader, const kl_members *members, void *into) {
    for (uint8_t number; (number = kl_get_u8(reader)) > 0 && !reader->bad;) {
        bool whole = number & WHOLE;
        number &= WHOLE - 1;
        if (number == 0 || number > members->count)
            reader->bad = true;
        else
            get_member(reader, whole, &members->list[number - 1], into);
    }
}

/* --- the store of the inputs of decisions --- */

/* Greatest size of a row in bytes. Programs that read records refuse larger rows. */
static const size_t MOST_BYTES = (size_t)512 << 10;

typedef struct noted {
    kl_worker_view view; /* the values of a worker that were stored last */
    bool changed;
} noted;

struct kl_grounds {
    kl_buffer out;
    bool whole; /* false: storing an input failed, so nothing more is stored in this run */
    /* true: the caller has taken the bytes of `out`, so the next input begins a new row */
    bool taken;
    uint32_t rows;        /* number of rows since the run began */
    kl_snapshot snapshot; /* the snapshot that was stored last, without `sizes` */
    kl_sizes sizes;       /* the sizes of tasks that were stored last */
    kl_buffer board;
    noted *views;
    uint64_t room;
    /* changed[0 … changed_count−1]: places of the workers whose values have changed since the last row */
    uint32_t *changed, changed_count;
    uint64_t changed_room;
};

kl_grounds *kl_grounds_new(void) {
    return calloc(1, sizeof(kl_grounds));
}

void kl_grounds_free(kl_grounds *k) {
    if (!k)
        return;
    kl_buffer_free(&k->out);
    kl_buffer_free(&k->board);
    free(k->views);
    free(k->changed);
    free(k);
}

static void begin_row(kl_grounds *k) {
    kl_buffer_clear(&k->out);
    kl_put_u8(&k->out, KL_GROUNDS_VERSION);
    kl_grounds_put_count(&k->out, k->rows++);
    k->taken = false;
}

static bool make_room(kl_grounds *k, uint32_t slots) {
    uint64_t had = k->room;
    noted *views = kl_array_grow(k->views, &k->room, slots, sizeof *views);
    if (!views)
        return false;
    memset(views + had, 0, (k->room - had) * sizeof *views);
    k->views = views;
    uint32_t *changed = kl_array_grow(k->changed, &k->changed_room, k->room, sizeof *changed);
    if (changed)
        k->changed = changed;
    return changed != NULL;
}

void kl_grounds_changed(kl_grounds *k, uint32_t worker) {
    if (!k || !k->whole || (worker < k->room && k->views[worker].changed))
        return;
    if (worker >= k->room && !make_room(k, worker + 1)) {
        k->whole = false;
        return;
    }
    k->views[worker].changed = true;
    k->changed[k->changed_count++] = worker;
}

static void put_state(kl_grounds *k, const kl_snapshot *s) {
    kl_grounds_put_changes(&k->out, &kl_members_of_snapshot, &k->snapshot, s);
    k->snapshot = *s;
    kl_grounds_put_count(&k->out, k->changed_count);
    for (uint32_t i = 0; i < k->changed_count; i++) {
        uint32_t worker = k->changed[i];
        noted *n = &k->views[worker];
        kl_grounds_put_count(&k->out, worker);
        kl_grounds_put_changes(&k->out, &kl_members_of_view, &n->view, &s->workers[worker]);
        *n = (noted){.view = s->workers[worker]};
    }
    k->changed_count = 0;
    k->whole &= !k->out.failed && k->out.size <= MOST_BYTES;
}

/* Begin to store an input of this kind. Begin a new row if the caller has already taken the last row. Return
 * false if nothing is stored. */
static bool begin_ground(kl_grounds *k, kl_ground ground) {
    if (!k || !k->whole)
        return false;
    if (k->taken)
        begin_row(k);
    kl_put_u8(&k->out, (uint8_t)ground);
    return true;
}

/* Forget which values were stored, so that each is stored again in the run that begins. The decisions of a
 * run must be repeatable from the rows of this run alone. */
static void forget(kl_grounds *k, uint32_t slots) {
    k->whole = make_room(k, slots);
    k->rows = k->changed_count = 0;
    k->taken = true;
    k->snapshot = (kl_snapshot){0};
    k->sizes = (kl_sizes){0};
    if (k->whole)
        memset(k->views, 0, k->room * sizeof *k->views);
}

void kl_grounds_begins(kl_grounds *k, const kl_dealer *dealer, const kl_snapshot *s) {
    if (!k)
        return;
    forget(k, s->slots);
    for (uint32_t i = 0; i < s->slots; i++)
        kl_grounds_changed(k, i);
    if (!begin_ground(k, KL_GROUND_BEGINS))
        return;
    kl_put_label(&k->out, dealer->policy->name);
    kl_put_f64(&k->out, dealer->factor);
    kl_put_flag(&k->out, dealer->factor_set);
    put_state(k, s);
    for (uint32_t i = 0; i < s->slots; i++)
        kl_put_f64(&k->out, kl_crew_speed(s->crew, i));
    k->whole &= !k->out.failed && k->out.size <= MOST_BYTES;
}

void kl_grounds_grows(kl_grounds *k, const kl_snapshot *s, uint64_t tasks) {
    if (!begin_ground(k, KL_GROUND_GROWS))
        return;
    kl_grounds_put_count(&k->out, tasks);
    put_state(k, s);
}

void kl_grounds_factor(kl_grounds *k, double factor) {
    if (begin_ground(k, KL_GROUND_FACTOR))
        kl_put_f64(&k->out, factor);
}

void kl_grounds_joined(kl_grounds *k, uint32_t worker) {
    if (begin_ground(k, KL_GROUND_JOINED))
        kl_grounds_put_count(&k->out, worker);
}

void kl_grounds_others(kl_grounds *k) {
    begin_ground(k, KL_GROUND_CHANGED);
}

void kl_grounds_answers(kl_grounds *k, const kl_snapshot *s, const kl_plan *plan) {
    if (!begin_ground(k, KL_GROUND_ANSWERS))
        return;
    put_state(k, s);
    kl_grounds_put_count(&k->out, (uint64_t)plan->decision.subject);
    kl_grounds_put_count(&k->out, plan->meant);
    kl_put_flag(&k->out, plan->cut_short);
}

kl_buffer *kl_grounds_answers_of_board(kl_grounds *k) {
    if (!k || !k->whole)
        return NULL;
    kl_buffer_clear(&k->board);
    return &k->board;
}

/* Write the bins of the histogram that have changed. Between two decisions, only few bins change. */
static void put_sizes(kl_buffer *out, const kl_sizes *was, const kl_sizes *is) {
    kl_put_f64(out, is->count);
    for (uint32_t i = 0; i < KL_SIZE_BINS; i++)
        if (was->tasks[i] != is->tasks[i]) {
            kl_put_u8(out, (uint8_t)(i + 1));
            kl_put_f64(out, is->tasks[i]);
        }
    kl_put_u8(out, 0);
}

void kl_grounds_get_sizes(kl_reader *reader, kl_sizes *sizes) {
    sizes->count = kl_get_f64(reader);
    reader->bad |= !is_real(KL_MEMBER_REAL, sizes->count);
    for (uint8_t bin; (bin = kl_get_u8(reader)) > 0 && !reader->bad;) {
        double tasks = kl_get_f64(reader);
        reader->bad |= bin > KL_SIZE_BINS || !is_real(KL_MEMBER_REAL, tasks);
        if (!reader->bad)
            sizes->tasks[bin - 1] = tasks;
    }
}

void kl_grounds_rescues(kl_grounds *k, const kl_snapshot *s, double coming_units) {
    if (!begin_ground(k, KL_GROUND_RESCUES))
        return;
    put_state(k, s);
    put_sizes(&k->out, &k->sizes, &s->sizes);
    k->sizes = s->sizes;
    kl_put_f64(&k->out, coming_units);
    kl_put_span(&k->out, k->board.data, k->board.size);
    k->whole &= !k->board.failed;
}

kilter_bytes kl_grounds_take(kl_grounds *k) {
    if (!k || !k->whole)
        return (kilter_bytes){0};
    if (k->taken)
        begin_row(k);
    k->taken = true;
    k->whole &= !k->out.failed;
    return k->whole ? (kilter_bytes){k->out.data, k->out.size} : (kilter_bytes){0};
}
