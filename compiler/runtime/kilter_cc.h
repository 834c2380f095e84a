/* Functions for programs that `kilter cc` makes. Programs written by hand must not use them, because they may
 * change with every version of kilter cc.
 *
 * Each array exists twice. The "whole" is the program's own memory of the array; every rank has all of it.
 * The "rows" are in an array of a kilter_loop; each rank has some of them, and marked loops work on them. A
 * slot connects a whole with its rows, and tells which of the two is up to date. Outside of marked loops
 * every rank does the same; only rank 0 reads and writes files. */
#ifndef KILTER_CC_H
#define KILTER_CC_H

#include <errno.h>
#include <kilter/loop.h>
#include <kilter/sum.h>
#include <malloc.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KCC_SITES = 32, KCC_SLOTS = 64 };

typedef struct kcc_site kcc_site;
typedef struct kcc_group kcc_group;

/* An array that a marked loop uses, as the loop finds it at its start. */
typedef struct kcc_array {
    const char *name;
    const void *whole;  /* row 0 in the program's memory */
    size_t bytes;       /* bytes of a row */
    size_t size;        /* bytes of a declared array; 0: kcc_home() looks up the size */
    long long lo, hi;   /* the loop may touch the rows lo to hi − 1 */
    bool writes, sure;  /* sure: the loop touches all of these rows */
    const int *ghost;   /* number of halo rows in each site (marked loop) of the group */
    long long from, to; /* range of bytes of these rows that exist in memory; set by kcc_cut() */
    int slot;           /* index of the array's slot; set by kcc_enter() */
} kcc_array;

typedef struct kcc_slot {
    char *whole;    /* NULL: the slot is free, or belongs to a reduction, which has only rows */
    const int *key; /* address that identifies a reduction; NULL: the slot has an array */
    size_t bytes;
    long long from, to; /* range of bytes of the whole that belongs to the slot */
    bool rows_valid, whole_valid, used;
    int ghost[KCC_SITES];
    /* for each marked loop of the group: whether its latest run used the slot (now); whether the rows have
     * the halo that this loop needs (shared) */
    bool now[KCC_SITES], shared[KCC_SITES];
    void *rows; /* row 0 of the kilter_loop's array */
} kcc_slot;

struct kcc_site { /* a marked loop */
    kcc_group *group;
    const char *name;
    unsigned line;
    kilter_loop_kind kind;
    bool backward, ordered;
    int number; /* index of this loop in the group */
    int error;  /* value of errno before the loop */
    uint64_t inner;
    kilter_loop *loop;
};

struct kcc_group { /* marked loops over the same arrays; the leader is the loop at whose start rows move */
    kcc_site *site[KCC_SITES];
    int sites, leader, slots;
    long long rows; /* number of iterations of the group's loops; 0: the loops are not open */
    kcc_slot slot[KCC_SLOTS];
    /* a loop that has all arrays of the group, with the same rows per rank as the leader */
    kilter_loop *holder;
    kcc_group *next;
    bool listed;
};

static kcc_group *kcc_groups;
static int kcc_rank;
static int kcc_alone; /* above 0 while rank 0 runs a statement that other ranks do not run */
static const char *kcc_file;

#define kcc_root (kcc_rank == 0)

/* Wait up to a second until all ranks call this function, and return whether they did. Rank 0 prints the
 * error, so the other ranks must not end the program earlier. */
static inline bool kcc_meet(void) {
    MPI_Request request;
    int all = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (double begun_s = MPI_Wtime(); !all && MPI_Wtime() < begun_s + 1;)
        MPI_Test(&request, &all, MPI_STATUS_IGNORE);
    return all;
}

/* Print an error, and end the program on all ranks. Only rank 0 prints; other ranks print only if rank 0 does
 * not call this function. */
__attribute__((format(printf, 2, 3), noreturn)) static inline void kcc_stop(unsigned line, const char *format,
                                                                            ...) {
    va_list args;
    va_start(args, format);
    if (kcc_root || kcc_alone || !kcc_meet()) {
        fflush(stdout);
        fprintf(stderr, "%s:%u: ", kcc_file, line);
        vfprintf(stderr, format, args);
        fputs("\n", stderr);
        fflush(stderr);
    }
    va_end(args);
    if (kcc_root && !kcc_alone)
        kcc_meet();
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static inline void kcc_must(unsigned line, kilter_status status, const kilter_error *error) {
    if (status == KILTER_OK)
        return;
    fprintf(stderr, "%s:%u: %s\n", kcc_file, line, error->text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* --- the whole and its rows --- */

/* Copy a range of bytes of the whole to the rows of this rank. */
static inline void kcc_copy_rows(kcc_group *g, kcc_slot *s, long long from, long long to) {
    kilter_range r;
    for (size_t nth = 0; s->whole && kilter_loop_mine(g->site[g->leader]->loop, nth, &r); nth++) {
        long long lo = (long long)(r.lo * s->bytes), hi = (long long)(r.hi * s->bytes);
        lo = lo > from ? lo : from;
        hi = hi < to ? hi : to;
        if (lo < hi)
            memcpy((char *)s->rows + lo, s->whole + lo, (size_t)(hi - lo));
    }
}

static inline void kcc_share_bytes(void *to, size_t bytes) { /* copy rank 0's bytes to all ranks */
    char *at = to;
    while (bytes > 0 && !kcc_alone) {
        int part = bytes > (1u << 30) ? 1 << 30 : (int)bytes;
        MPI_Bcast(at, part, MPI_BYTE, 0, MPI_COMM_WORLD);
        at += part;
        bytes -= (size_t)part;
    }
}

/* Bring the whole up to date on all ranks. */
static inline void kcc_make_whole(kcc_group *g, kcc_slot *s) {
    kilter_error error;
    if (s->whole_valid || !s->rows_valid || !s->whole)
        return;
    size_t all = (size_t)g->rows * s->bytes, size = (size_t)(s->to - s->from);
    char *memory = kcc_root ? malloc(all ? all : 1) : NULL;
    if (kcc_root && !memory)
        kcc_stop(0, "no memory for an array of %zu bytes", all);
    kcc_must(0, kilter_loop_gather(g->holder, s->rows, 0, memory, &error), &error);
    if (kcc_root)
        memcpy(s->whole + s->from, memory + s->from, size);
    free(memory);
    kcc_share_bytes(s->whole + s->from, size);
    s->whole_valid = true;
}

/* Bring the program's own memory of all arrays up to date. Programs call this before code outside of marked
 * loops that may touch the arrays. */
static inline void kcc_all(bool writes) {
    int before = errno;
    for (kcc_group *g = kcc_alone ? NULL : kcc_groups; g; g = g->next)
        for (int i = 0; i < g->slots; i++)
            if (g->slot[i].whole) {
                kcc_make_whole(g, &g->slot[i]);
                if (writes)
                    g->slot[i].rows_valid = false;
            }
    errno = before;
}

static inline bool kcc_overlap(const char *a, const char *a_end, const char *b, const char *b_end) {
    return a < b_end && b < a_end;
}

static inline bool kcc_touches(const kcc_slot *s, const char *from, const char *to) {
    return s->whole && kcc_overlap(from, to, s->whole + s->from, s->whole + s->to);
}

static inline void kcc_unbind(kcc_slot *s) {
    s->whole = NULL;
    s->rows_valid = s->whole_valid = false;
    s->from = s->to = 0;
}

/* --- the memory that the program has --- */

typedef struct kcc_memory {
    const void *at;
    size_t bytes;
} kcc_memory;

void *tsearch(const void *, void **, int (*)(const void *, const void *)); /* declared in search.h */
void *tfind(const void *, void *const *, int (*)(const void *, const void *));
void *tdelete(const void *, void **, int (*)(const void *, const void *));

/* a tree of all allocated memory, and of declared arrays that pointers may point to */
static void *kcc_memories;

static inline int kcc_compare(const void *left, const void *right) { /* return 0 if the two blocks overlap */
    const kcc_memory *a = left, *b = right;
    if ((const char *)a->at + a->bytes <= (const char *)b->at)
        return -1;
    return (const char *)b->at + b->bytes <= (const char *)a->at;
}

static inline const kcc_memory *kcc_memory_of(const void *at) {
    const kcc_memory byte = {at, 1};
    void *found = tfind(&byte, &kcc_memories, kcc_compare);
    return found ? *(kcc_memory **)found : NULL;
}

static inline void kcc_disown(const void *at) {
    kcc_memory *m = (kcc_memory *)(size_t)kcc_memory_of(at);
    if (!m)
        return;
    tdelete(m, &kcc_memories, kcc_compare);
    free(m);
}

static inline void *kcc_own(const void *at, size_t bytes) {
    kcc_memory *m = malloc(sizeof *m);
    void *place = NULL;
    if (!at || bytes == 0 || !m) {
        free(m);
        return (void *)(size_t)at;
    }
    *m = (kcc_memory){at, bytes};
    while ((place = tsearch(m, &kcc_memories, kcc_compare)) && *(kcc_memory **)place != m)
        /* remove an older entry that overlaps: its memory no longer exists */
        kcc_disown((*(kcc_memory **)place)->at);
    if (!place)
        free(m);
    return (void *)(size_t)at;
}

static inline void *kcc_malloc(size_t bytes) {
    return kcc_own(malloc(bytes), bytes);
}

static inline void *kcc_calloc(size_t count, size_t bytes) {
    return kcc_own(calloc(count, bytes), count * bytes);
}

static inline void *kcc_aligned_alloc(size_t alignment, size_t bytes) {
    return kcc_own(aligned_alloc(alignment, bytes), bytes);
}

/* Return the block of memory that contains an array's rows. */
static inline kcc_memory kcc_home(const kcc_site *s, const kcc_array *a) {
    const char *whole = (const char *)a->whole;
    const kcc_memory *begin = kcc_memory_of(whole), *first = kcc_memory_of(whole + a->from);
    if (a->size)
        return (kcc_memory){whole, a->size};
    if ((!begin && !first) || (begin && first && begin != first && a->lo > 0))
        kcc_stop(s->line,
                 "cannot tell how much memory %s points to; let it point to a declared array, or to the "
                 "beginning of memory that this file allocates",
                 a->name);
    return begin ? *begin : *first;
}

/* Limit the range of each array to rows that exist in memory. The loop may have a condition that skips the
 * rows outside of the memory. */
static inline void kcc_cut(const kcc_site *s, kcc_array *a, int count) {
    for (; count-- > 0; a++) {
        if (!a->whole || a->bytes == 0 || a->lo >= a->hi) {
            a->lo = a->hi = 0;
            continue;
        }
        long long bytes = (long long)a->bytes;
        a->from = a->lo * bytes;
        a->to = a->hi * bytes;
        if (a->sure)
            continue;
        const kcc_memory home = kcc_home(s, a);
        const long long begin = (const char *)home.at - (const char *)a->whole;
        const long long end = begin + (long long)home.bytes;
        a->from = a->from > begin ? a->from : begin;
        a->to = a->to < end ? a->to : end;
        if (a->from >= a->to)
            a->from = a->to = 0;
        a->lo = a->from / bytes - (a->from % bytes < 0);
        a->hi = a->to / bytes + (a->to % bytes > 0);
    }
}

/* Bring the memory from `from` to `to` up to date on all ranks, because a marked loop reads it on each rank.
 * Stop if the loop also writes this memory. If `to` is NULL, the memory's size is not known, and no other
 * pointer points to the memory. */
static inline void kcc_copied(const kcc_site *site, const char *name, const void *from, const void *to,
                              const kcc_array *a, int count) {
    const kcc_memory *home = kcc_memory_of(from);
    if (home && to && (const char *)to > (const char *)home->at + home->bytes)
        to = (const char *)home->at + home->bytes;
    if (!to) {
        kcc_all(false);
        return;
    }
    for (int i = 0; i < count; i++)
        if (a[i].whole && a[i].writes && from < to &&
            kcc_overlap((const char *)from, (const char *)to, (const char *)a[i].whole + a[i].from,
                        (const char *)a[i].whole + a[i].to))
            kcc_stop(site->line,
                     "%s and %s share memory, so the iterations may depend on each other; "
                     "the loop cannot run in parallel",
                     name, a[i].name);
    for (kcc_group *g = kcc_groups; g; g = g->next)
        for (int i = 0; i < g->slots; i++)
            if (kcc_touches(&g->slot[i], (const char *)from, (const char *)to))
                kcc_make_whole(g, &g->slot[i]);
}

static inline void kcc_free(void *memory) {
    for (kcc_group *g = kcc_groups; g && memory; g = g->next)
        for (int i = 0; i < g->slots; i++)
            if (g->slot[i].whole >= (char *)memory &&
                g->slot[i].whole < (char *)memory + malloc_usable_size(memory))
                kcc_unbind(&g->slot[i]);
    kcc_disown(memory);
    free(memory);
}

/* Forget the memory of an automatic array whose block ends. */
static inline void kcc_end_life(const kcc_memory *m) {
    const char *from = (const char *)m->at, *to = from + m->bytes;
    kcc_disown(from);
    for (kcc_group *g = kcc_groups; g; g = g->next)
        for (int i = 0; i < g->slots; i++) {
            kcc_slot *s = &g->slot[i];
            if (s->whole && (kcc_touches(s, from, to) || (s->whole >= from && s->whole < to)))
                kcc_unbind(s);
        }
}

/* --- opening loops --- */

static inline void kcc_close(kcc_group *g) {
    kilter_error error;
    if (g->rows == 0)
        return;
    kcc_must(0, kilter_loop_close(g->holder, &error), &error);
    for (int i = 0; i < g->sites; i++)
        if (i != g->leader)
            kcc_must(0, kilter_loop_close(g->site[i]->loop, &error), &error);
    kcc_must(0, kilter_loop_close(g->site[g->leader]->loop, &error), &error);
    g->rows = 0;
}

static inline void kcc_open_site(kcc_group *g, kcc_site *s, long long rows, kilter_loop *leader) {
    kilter_error error;
    kilter_loop_options options = {.iterations = (uint64_t)rows,
                                   .kind = s->kind,
                                   .name = s->name,
                                   .follows = leader,
                                   .backward = s->backward,
                                   .ordered = s->ordered};
    options.inner = s->kind == KILTER_DOACROSS ? (s->inner ? s->inner : 1) : 0;
    (void)g;
    kcc_must(s->line, kilter_loop_open(MPI_COMM_WORLD, &options, &s->loop, &error), &error);
}

/* Can this marked loop have a halo of the slot's array? In a pipeline, the array's rows must consist of
 * `inner` parts of equal size. A slot that the loop does not use now may have rows of another length. */
static inline bool kcc_has_halo(const kcc_site *s, const kcc_slot *slot) {
    if (s->kind == KILTER_DOALL)
        return true;
    return s->inner && (slot->now[s->number] || slot->bytes % s->inner == 0);
}

static inline void kcc_open(kcc_group *g, long long rows) {
    kilter_error error;
    kcc_site *leader = g->site[g->leader];
    kcc_open_site(g, leader, rows, NULL);
    for (int i = 0; i < g->sites; i++)
        if (i != g->leader)
            kcc_open_site(g, g->site[i], rows, leader->loop);
    kilter_loop_options options = {.iterations = (uint64_t)rows, .follows = leader->loop, .name = "arrays"};
    kcc_must(0, kilter_loop_open(MPI_COMM_WORLD, &options, &g->holder, &error), &error);
    for (int i = 0; i < g->slots; i++)
        kcc_must(0, kilter_loop_array(g->holder, g->slot[i].bytes, 0, &g->slot[i].rows, &error), &error);
    for (int i = 0; i < g->slots; i++)
        for (int k = 0; k < g->sites; k++) {
            g->slot[i].shared[k] = g->slot[i].ghost[k] > 0 && kcc_has_halo(g->site[k], &g->slot[i]);
            if (g->slot[i].shared[k])
                kcc_must(g->site[k]->line,
                         kilter_loop_share(g->site[k]->loop, g->slot[i].rows, (uint64_t)g->slot[i].ghost[k],
                                           &error),
                         &error);
        }
    g->rows = rows;
    if (!g->listed) {
        g->next = kcc_groups;
        kcc_groups = g;
        g->listed = true;
    }
}

/* --- slots --- */

/* Free all other slots, in all groups, whose memory overlaps the range from `from` to `to`. */
static inline void kcc_take_over(const kcc_slot *mine, const char *from, const char *to) {
    for (kcc_group *g = kcc_groups; g; g = g->next)
        for (int i = 0; i < g->slots; i++)
            if (&g->slot[i] != mine && kcc_touches(&g->slot[i], from, to)) {
                kcc_make_whole(g, &g->slot[i]);
                kcc_unbind(&g->slot[i]);
            }
}

static inline int kcc_find_slot(kcc_group *g, const kcc_array *a, unsigned line, bool *changed) {
    int unused = -1, other = -1;
    for (int i = 0; i < g->slots; i++) {
        kcc_slot *s = &g->slot[i];
        if (a->whole ? s->whole == a->whole && s->bytes == a->bytes : s->key == a->ghost)
            return i;
        if (!s->whole && !s->key && !s->used && s->bytes == a->bytes && a->whole)
            unused = i;
        else if (!s->whole && !s->key && !s->used && a->whole)
            other = i;
    }
    if (unused >= 0)
        return unused;
    if (other >= 0) { /* reuse a free slot whose rows had another length */
        g->slot[other] = (kcc_slot){.bytes = a->bytes};
        *changed = true;
        return other;
    }
    if (g->slots == KCC_SLOTS)
        kcc_stop(line, "a group of loops has more than %d arrays", KCC_SLOTS);
    g->slot[g->slots] = (kcc_slot){.bytes = a->bytes, .key = a->whole ? NULL : a->ghost};
    return g->slots++;
}

/* Stop if two names in a loop refer to the same memory and the loop writes that memory. */
static inline void kcc_check_names(const kcc_site *s, const kcc_array *a, int count) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (a[i].whole && a[k].whole &&
                (a[i].writes || a[k].writes || a[i].whole != a[k].whole || a[i].bytes != a[k].bytes) &&
                kcc_overlap((const char *)a[i].whole + a[i].from, (const char *)a[i].whole + a[i].to,
                            (const char *)a[k].whole + a[k].from, (const char *)a[k].whole + a[k].to))
                kcc_stop(s->line,
                         "%s and %s share memory, so the iterations may depend on each other; "
                         "the loop cannot run in parallel",
                         a[i].name, a[k].name);
}

static inline void kcc_save_all(kcc_group *g) {
    for (int i = 0; i < g->slots; i++) {
        kcc_make_whole(g, &g->slot[i]);
        g->slot[i].rows_valid = false;
    }
}

static inline void kcc_load(kcc_group *g, kcc_slot *s, const kcc_array *a) {
    if (a->from >= a->to || !s->whole)
        return;
    if (!s->rows_valid || s->from >= s->to) {
        s->from = s->from < s->to && s->from < a->from ? s->from : a->from;
        s->to = s->to > a->to ? s->to : a->to;
        kcc_copy_rows(g, s, s->from, s->to);
        s->rows_valid = true;
    }
    if (a->from < s->from) {
        kcc_copy_rows(g, s, a->from, s->from);
        s->from = a->from;
    }
    if (a->to > s->to) {
        kcc_copy_rows(g, s, s->to, a->to);
        s->to = a->to;
    }
}

static inline void kcc_bind(kcc_slot *s, const kcc_array *a, kcc_group *g, bool *changed) {
    const char *whole = (const char *)a->whole;
    if (a->whole && a->from < a->to)
        kcc_take_over(s, whole + a->from, whole + a->to);
    if (!s->whole && a->whole) {
        s->whole = (char *)(size_t)whole;
        s->whole_valid = true;
        s->from = s->to = 0;
    }
    s->used = true;
    for (int k = 0; k < g->sites; k++)
        if (a->ghost[k] > s->ghost[k]) {
            s->ghost[k] = a->ghost[k];
            *changed = true;
        }
}

static inline long long kcc_most_rows(const kcc_site *s, const kcc_array *a, int count, long long rows) {
    for (int i = 0; i < count; i++) {
        if (a[i].whole && a[i].lo < a[i].hi && a[i].lo < 0)
            kcc_stop(s->line, "%s has rows before row 0", a[i].name);
        rows = a[i].hi > rows ? a[i].hi : rows;
    }
    return rows > 0 ? rows : 1;
}

/* Begin a marked loop: give each rank the rows of the arrays that the rank's iterations use. The group's
 * kilter_loop gets at least `rows` iterations. */
static inline void kcc_enter(kcc_site *s, kcc_array *a, int count, long long rows, uint64_t inner) {
    kcc_group *g = s->group;
    kilter_error error;
    bool changed = s->inner != inner;
    s->error = errno;
    int slots = g->slots;
    for (int i = 0; i < count; i++)
        if (a[i].bytes == 0) { /* a row has no elements */
            a[i].bytes = 1;
        }
    kcc_check_names(s, a, count);
    for (int i = 0; i < g->slots; i++)
        g->slot[i].used = g->slot[i].now[s->number] = false;
    for (int i = 0; i < count; i++) {
        a[i].slot = kcc_find_slot(g, &a[i], s->line, &changed);
        kcc_slot *slot = &g->slot[a[i].slot];
        kcc_bind(slot, &a[i], g, &changed);
        slot->now[s->number] = true;
        changed = changed || (slot->ghost[s->number] > 0 && !slot->shared[s->number]);
    }
    rows = kcc_most_rows(s, a, count, rows);
    if (g->rows < rows || changed || slots != g->slots) {
        if (g->rows > 0)
            kcc_save_all(g);
        rows = rows > g->rows ? rows : g->rows;
        kcc_close(g);
        s->inner = inner;
        kcc_open(g, rows);
    }
    for (int i = 0; i < count; i++) {
        kcc_load(g, &g->slot[a[i].slot], &a[i]);
        if (a[i].writes)
            g->slot[a[i].slot].whole_valid = false;
    }
    kcc_must(s->line, kilter_loop_begin(s->loop, &error), &error);
}

#define KCC_ROWS(site, array) ((site)->group->slot[(array).slot].rows)

static inline void kcc_leave(kcc_site *s) {
    kilter_error error;
    kcc_must(s->line, kilter_loop_end(s->loop, &error), &error);
    errno = s->error;
}

static inline void kcc_reduce(kcc_site *s, const kcc_array *a, kilter_loop_combine combine, void *result) {
    kilter_error error;
    kcc_must(
        s->line,
        kilter_loop_reduce(s->group->holder, s->group->slot[a->slot].rows, combine, NULL, result, &error),
        &error);
    errno = s->error;
}

static void kcc_join(void *from, void *into, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++)
        kilter_sum_join((kilter_sum *)into + i, (const kilter_sum *)from + i);
}

/* Add the sums of all ranks, and the value before the loop, without rounding. */
static inline double kcc_sum_of_all(kilter_sum *sum, double before) {
    kilter_sum all;
    MPI_Datatype type;
    MPI_Op join;
    MPI_Type_contiguous((int)sizeof *sum, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(kcc_join, 1, &join);
    MPI_Allreduce(sum, &all, 1, type, join, MPI_COMM_WORLD);
    MPI_Op_free(&join);
    MPI_Type_free(&type);
    kilter_sum_add(&all, before);
    return kilter_sum_value(&all);
}

/* --- ranges --- */

typedef struct kcc_span {
    long long from, to; /* from: first index; to: first index after the range */
} kcc_span;

/* Consider the indices from, from + step, from + 2 · step, … before `to`. Return the range of indices whose
 * row, index + shift, is in the range `rows`. */
static inline kcc_span kcc_part(long long from, long long to, long long step, kilter_range rows,
                                long long shift) {
    long long lo = (long long)rows.lo - shift, hi = (long long)rows.hi - shift;
    kcc_span part = {from, to};
    if (step > 0) {
        if (lo > from)
            part.from = from + (lo - from + step - 1) / step * step;
        if (hi < to)
            part.to = hi;
    } else {
        if (hi - 1 < from)
            part.from = from - (from - (hi - 1) - step - 1) / -step * -step;
        if (lo - 1 > to)
            part.to = lo - 1;
    }
    return part;
}

/* Return the value that the index has after the loop. */
static inline long long kcc_after(long long from, long long to, long long step) {
    if (step > 0)
        return from < to ? from + (to - from + step - 1) / step * step : from;
    return from > to ? from - (from - to - step - 1) / -step * -step : from;
}

static inline long long kcc_less(long long a, long long b) {
    return a < b ? a : b;
}

static inline long long kcc_more(long long a, long long b) {
    return a > b ? a : b;
}

static inline long long kcc_floor(long long a, long long b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* --- combining the results of iterations --- */

#define KCC_LOWEST(type)                                                                                     \
    ((type)-1 < (type)1 ? (type)((unsigned long long)1 << (8 * sizeof(type) - 1)) : (type)0)
#define KCC_HIGHEST(type) ((type)~KCC_LOWEST(type))

/* Define a function that combines a value of earlier rows, `left`, with a value of later rows, `right`. */
#define KCC_COMBINE(name, type, statement)                                                                   \
    static void name(void *left, const void *right, uint64_t bytes, void *user) {                            \
        type a, b;                                                                                           \
        (void)bytes, (void)user;                                                                             \
        memcpy(&a, left, sizeof a);                                                                          \
        memcpy(&b, right, sizeof b);                                                                         \
        statement;                                                                                           \
        memcpy(left, &a, sizeof a);                                                                          \
    }

/* --- outside of loops --- */

/* Begin a statement that only rank 0 runs. */
static inline void kcc_begin_root(bool writes) {
    kcc_all(writes);
    kcc_alone += kcc_root;
}

/* Memory that rank 0 may change, with a copy of the bytes from before the change. */
typedef struct kcc_kept {
    kcc_memory home;
    unsigned char *old; /* the earlier bytes; only on rank 0 */
} kcc_kept;

static inline kcc_kept kcc_keep(const void *at, size_t bytes) {
    kcc_kept k = {{at, at && kcc_alone < 2 ? bytes : 0}, NULL};
    if (k.home.bytes == 0 || !kcc_root)
        return k;
    k.old = malloc(bytes);
    if (!k.old)
        kcc_stop(0, "no memory for %zu bytes that rank 0 may change", bytes);
    memcpy(k.old, at, bytes);
    return k;
}

/* Do the same as kcc_keep() for the block of memory that `at` points into. */
static inline kcc_kept kcc_keep_home(unsigned line, const char *name, const void *at) {
    const kcc_memory *home = at ? kcc_memory_of(at) : NULL;
    if (at && !home)
        kcc_stop(line, "cannot tell how much memory %s points to, which only rank 0 changes", name);
    return home ? kcc_keep(home->at, home->bytes) : kcc_keep(NULL, 0);
}

/* Send the bytes that rank 0 has changed to all ranks. Do not send other bytes: they may belong to pointers,
 * which differ between ranks. */
static inline void kcc_share_changes(kcc_kept *k) {
    size_t bytes = k->home.bytes, count = 0;
    unsigned char *at = (unsigned char *)(size_t)k->home.at;
    unsigned char *changed = calloc(bytes / 8 + 1, 1), *now = malloc(bytes + 1);
    if (!changed || !now)
        kcc_stop(0, "no memory for %zu bytes that rank 0 changes", bytes);
    for (size_t i = 0; i < bytes && k->old; i++)
        if (at[i] != k->old[i]) {
            changed[i / 8] |= (unsigned char)(1 << i % 8);
            now[count++] = at[i];
        }
    if (bytes > 0) {
        kcc_share_bytes(&count, sizeof count);
        kcc_share_bytes(changed, bytes / 8 + 1);
        kcc_share_bytes(now, count);
    }
    for (size_t i = 0, nth = 0; i < bytes; i++)
        if (changed[i / 8] >> i % 8 & 1)
            at[i] = now[nth++];
    free(changed);
    free(now);
    free(k->old);
}

static inline void kcc_end_root(void) {
    int same = errno;
    kcc_alone -= kcc_root;
    kcc_share_bytes(&same, sizeof same);
    errno = same;
}

/* Evaluate the expression on rank 0 only. */
#define KCC_ROOT(expression) (kcc_root ? (void)(expression) : (void)0)

/* Evaluate the expression on rank 0, and send its value to all ranks. */
#define KCC_SAME(expression)                                                                                 \
    __extension__({                                                                                          \
        __typeof__(expression) kcc_value = 0;                                                                \
        int kcc_errno = 0;                                                                                   \
        if (kcc_root) {                                                                                      \
            kcc_value = expression;                                                                          \
            kcc_errno = errno;                                                                               \
        }                                                                                                    \
        kcc_share_bytes(&kcc_value, sizeof kcc_value);                                                       \
        kcc_share_bytes(&kcc_errno, sizeof kcc_errno);                                                       \
        errno = kcc_errno;                                                                                   \
        kcc_value;                                                                                           \
    })

/* Make the call on all ranks. Then copy two values from rank 0 to all ranks: the result of the call, and the
 * object to which the argument `to` points. */
#define KCC_FILLED(call, to)                                                                                 \
    __extension__({                                                                                          \
        __typeof__(call) kcc_value = call;                                                                   \
        kcc_share_bytes(&kcc_value, sizeof kcc_value);                                                       \
        kcc_share_bytes(to, sizeof *(to));                                                                   \
        kcc_value;                                                                                           \
    })

static inline char *kcc_fgets(char *line, int size, FILE *in) {
    char *got = kcc_root ? fgets(line, size, in) : NULL;
    int any = got != NULL;
    kcc_share_bytes(&any, sizeof any);
    if (any)
        kcc_share_bytes(line, (size_t)size);
    return any ? line : NULL;
}

static inline size_t kcc_fread(void *to, size_t size, size_t count, FILE *in) {
    unsigned long long got = kcc_root ? fread(to, size, count, in) : 0;
    kcc_share_bytes(&got, sizeof got);
    kcc_share_bytes(to, (size_t)got * size);
    return (size_t)got;
}

static void kcc_finish(void) {
    int finished;
    MPI_Finalized(&finished);
    if (finished)
        return;
    for (kcc_group *g = kcc_groups; g; g = g->next)
        kcc_close(g);
    fflush(NULL);
    MPI_Finalize();
}

static inline void kcc_start(int *argc, char ***argv, const char *file) {
    kcc_file = file;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &kcc_rank);
    atexit(kcc_finish);
}

/* Replace these functions for the code after this line, so that Kilter knows the memory that this code
 * allocates. */
#define malloc(bytes)                   kcc_malloc(bytes)
#define calloc(count, bytes)            kcc_calloc(count, bytes)
#define aligned_alloc(alignment, bytes) kcc_aligned_alloc(alignment, bytes)

#endif
