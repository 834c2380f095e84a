#include "transport/arena.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sys/sys.h"

enum {
    SLOTS = 1024,            /* greatest number of messages in an arena at the same time */
    NOTES_BYTES = 64 * 1024, /* bytes of an arena's notes (flags that mark messages as in use); a multiple of
                                the largest page size */
    /* a block's size is rounded up to a multiple of this number of bytes, so that no two messages share
     * a cache line */
    ROUND_BYTES = 64,
    /* a lent buffer gets at least this many bytes if that many are free, so that its message can grow */
    LENT_LEAST_BYTES = 16 * 1024 * 1024,
    NOT_LENT = SLOTS,
};
/* Bytes of the messages of an arena, without its notes. A page takes no memory until something is written to
 * it. */
#define ARENA_BYTES ((size_t)256 << 20)
#define HALF_BYTES  (ARENA_BYTES + NOTES_BYTES)
#define PAIR_BYTES  (2 * HALF_BYTES)

typedef struct pair {
    bool taken;    /* true: the master uses this pair of arenas, which connects it to one worker */
    bool left;     /* true: the master has closed its end, because the worker has left */
    bool ended;    /* true: the worker no longer uses the pair, even if its process continues */
    uint64_t pid;  /* process number of the worker */
    unsigned held; /* number of messages of this pair that the master received and has not released */
} pair;

struct kl_arenas {
    /* number of users of the memory: its opener, the ends of pairs, and messages that are not released */
    atomic_uint users;
    pthread_mutex_t lock; /* protects the pairs, because any thread may release a message */
    uint8_t *bytes;
    uint64_t token;
    pid_t opener;
    /* true: this is a worker's process, which has given up its access to the pairs of other workers */
    bool narrowed;
    uint32_t count;
    pair pairs[];
};

typedef struct block {
    size_t at, size;
    uint32_t slot;
} block;

struct kl_arena {
    kl_arenas *all;
    uint32_t pair;
    bool to_worker;
    uint8_t *bytes;
    _Atomic uint32_t *notes; /* a note for each slot: 1 while the slot's message is in use */
    block blocks[SLOTS];     /* blocks of memory in use, in order of `at` */
    size_t count;
    uint32_t spare[SLOTS]; /* slots that no block uses */
    size_t spares;
    uint32_t lent; /* slot of the block that holds the lent buffer; NOT_LENT: no buffer is lent */
    size_t usual;  /* size of the last message in bytes, as an estimate for the next message */
    /* bytes from the arena's beginning that may have been written to; only these take memory */
    size_t reach;
};

/* --- the arenas of all workers of a farm --- */

static size_t all_bytes(const kl_arenas *all) {
    return all->count * PAIR_BYTES;
}

static uint8_t *half_of(const kl_arenas *all, uint32_t number, bool to_worker) {
    return all->bytes + number * PAIR_BYTES + (to_worker ? 0 : HALF_BYTES);
}

/* Return whether the address space of this process is limited. If so, no arenas are made, because they would
 * take addresses that the program needs. */
static bool is_address_space_limited(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

/* Open more pairs of arenas than there are workers, because the master may still use messages of workers
 * that were replaced. */
kl_arenas *kl_arenas_open(uint32_t workers) {
    const uint64_t count = (uint64_t)workers + workers / 4 + 1;
    if (is_address_space_limited() || count > SIZE_MAX / PAIR_BYTES)
        return NULL;
    kl_arenas *all = calloc(1, sizeof *all + count * sizeof *all->pairs);
    if (!all)
        return NULL;
    all->count = (uint32_t)count;
    all->token = kl_token();
    all->opener = getpid();
    all->bytes =
        mmap(NULL, all_bytes(all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all->bytes == MAP_FAILED) {
        free(all);
        return NULL;
    }
    madvise(all->bytes, all_bytes(all), MADV_DONTDUMP);
    pthread_mutex_init(&all->lock, NULL);
    atomic_init(&all->users, 1);
    return all;
}

void kl_arenas_close(kl_arenas *all) {
    if (!all || atomic_fetch_sub(&all->users, 1) > 1)
        return;
    munmap(all->bytes, all_bytes(all));
    pthread_mutex_destroy(&all->lock);
    free(all);
}

uint64_t kl_arenas_token(const kl_arenas *all) {
    return all->token;
}

/* --- pairs --- */

/* Free the pairs of arenas that are not in use: return their memory to the system and clear their notes.
 * Call this with the lock held. */
static void free_pairs(kl_arenas *all) {
    for (uint32_t i = 0; i < all->count; i++) {
        pair *one = &all->pairs[i];
        /* keep the pair until the worker's process has ended; a worker that counts as lost may be merely
         * stopped, and may later continue to use this pair */
        if (!one->taken || !one->left || one->held > 0 ||
            !(one->ended || (kill((pid_t)one->pid, 0) != 0 && errno == ESRCH)))
            continue;
        madvise(half_of(all, i, true), PAIR_BYTES, MADV_REMOVE);
        one->taken = false;
    }
}

static bool take_pair(kl_arenas *all, uint64_t pid, uint32_t *number) {
    uint32_t i = 0;
    pthread_mutex_lock(&all->lock);
    free_pairs(all);
    while (i < all->count && all->pairs[i].taken)
        i++;
    bool found = i < all->count;
    if (found)
        all->pairs[i] = (pair){.taken = true, .pid = pid};
    *number = i;
    pthread_mutex_unlock(&all->lock);
    return found;
}

static void leave_pair(kl_arenas *all, uint32_t number, bool ended) {
    pthread_mutex_lock(&all->lock);
    all->pairs[number].left = true;
    all->pairs[number].ended = ended;
    free_pairs(all);
    pthread_mutex_unlock(&all->lock);
}

/* Remove this worker's access to the arenas of other workers. */
static void narrow(kl_arenas *all, uint32_t number) {
    if (getpid() == all->opener)
        return;
    if (!all->narrowed)
        mprotect(all->bytes, all_bytes(all), PROT_NONE);
    all->narrowed = true;
    mprotect(half_of(all, number, true), PAIR_BYTES, PROT_READ | PROT_WRITE);
}

/* --- one end of a pair of arenas --- */

static kl_arena *new_end(kl_arenas *all, uint32_t number, bool to_worker) {
    kl_arena *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    uint8_t *half = half_of(all, number, to_worker);
    *a = (kl_arena){.all = all,
                    .pair = number,
                    .to_worker = to_worker,
                    .notes = (void *)half,
                    .bytes = half + NOTES_BYTES,
                    .lent = NOT_LENT,
                    .spares = SLOTS};
    for (uint32_t i = 0; i < SLOTS; i++)
        a->spare[i] = SLOTS - 1 - i;
    atomic_fetch_add(&all->users, 1);
    return a;
}

kl_arena *kl_arena_to_worker(kl_arenas *all, uint64_t pid) {
    uint32_t number;
    if (!take_pair(all, pid, &number))
        return NULL;
    kl_arena *a = new_end(all, number, true);
    if (!a)
        leave_pair(all, number, true);
    return a;
}

kl_arena *kl_arena_to_master(kl_arenas *all, uint32_t number) {
    if (number >= all->count)
        return NULL;
    narrow(all, number);
    return new_end(all, number, false);
}

uint32_t kl_arena_pair(const kl_arena *a) {
    return a->pair;
}

void kl_arena_close(kl_arena *a, bool ended) {
    if (!a)
        return;
    if (a->to_worker)
        leave_pair(a->all, a->pair, ended);
    kl_arenas_close(a->all);
    free(a);
}

/* --- writing --- */

static size_t end_of(const block *b) {
    return (b->at + b->size + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
}

static void remove_block(kl_arena *a, size_t i) {
    a->spare[a->spares++] = a->blocks[i].slot;
    a->count--;
    memmove(a->blocks + i, a->blocks + i + 1, (a->count - i) * sizeof *a->blocks);
}

/* Remove the blocks whose messages the reader has released. */
static void sweep(kl_arena *a) {
    size_t kept = 0;
    for (size_t i = 0; i < a->count; i++)
        if (atomic_load_explicit(&a->notes[a->blocks[i].slot], memory_order_acquire) != 0 ||
            a->blocks[i].slot == a->lent)
            a->blocks[kept++] = a->blocks[i];
        else
            a->spare[a->spares++] = a->blocks[i].slot;
    a->count = kept;
}

/* Let the system make memory pages for the part of a block that was never written to. Call this before
 * `reach` includes the block. One call for all pages costs less than a page fault for each of them. */
static void make_pages(const kl_arena *a, size_t at, size_t end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), from = at > a->reach ? at : a->reach;
    from = from / page * page;
    if (end > from)
        madvise(a->bytes + from, end - from,
                MADV_POPULATE_WRITE); /* an older system refuses this call, which does no harm */
}

/* Make a block in the first gap of at least `size` bytes. The block takes up to `most` bytes of the gap. The
 * first gap is best: memory near the arena's beginning was probably used lately, so it is in the caches and
 * needs no new pages. NULL: no gap is large enough, or no slot is free. */
static block *new_block(kl_arena *a, size_t size, size_t most) {
    size_t at = 0, i = 0;
    sweep(a);
    while (i < a->count && a->blocks[i].at - at < size)
        at = end_of(&a->blocks[i++]);
    size_t room = (i < a->count ? a->blocks[i].at : ARENA_BYTES) - at;
    if (room < size || a->spares == 0)
        return NULL;
    memmove(a->blocks + i + 1, a->blocks + i, (a->count - i) * sizeof *a->blocks);
    a->count++;
    a->blocks[i] = (block){.at = at, .size = room < most ? room : most, .slot = a->spare[--a->spares]};
    if (size == most)
        make_pages(a, at, end_of(&a->blocks[i]));
    if (end_of(&a->blocks[i]) > a->reach)
        a->reach = end_of(&a->blocks[i]);
    return &a->blocks[i];
}

static block *lent_block(kl_arena *a) {
    for (size_t i = 0; i < a->count && a->lent != NOT_LENT; i++)
        if (a->blocks[i].slot == a->lent)
            return &a->blocks[i];
    return NULL;
}

/* Return the block of the lent buffer if it is large enough; otherwise lend a new block. NULL: the arena has
 * no room. */
static const block *block_to_lend(kl_arena *a, size_t size) {
    block *lent = lent_block(a);
    if (lent && lent->size >= size)
        return lent;
    if (lent)
        remove_block(a, (size_t)(lent - a->blocks));
    size_t most = 2 * size > LENT_LEAST_BYTES ? 2 * size : LENT_LEAST_BYTES;
    lent = new_block(a, size, most);
    a->lent = lent ? lent->slot : NOT_LENT;
    return lent;
}

void kl_arena_lend(kl_arena *a, size_t size, kl_buffer *buffer) {
    size_t wanted = size > 0 ? size : a->usual > KL_ARENA_LEAST_BYTES ? a->usual : KL_ARENA_LEAST_BYTES;
    if (wanted > ARENA_BYTES)
        return;
    const block *lent = block_to_lend(a, wanted);
    if (lent || buffer->borrowed)
        kl_buffer_free(buffer);
    if (lent)
        *buffer = (kl_buffer){.data = a->bytes + lent->at, .capacity = lent->size, .borrowed = true};
}

static block *take_lent(kl_arena *a, const void *data, size_t size) {
    block *lent = lent_block(a);
    if (!lent || data != a->bytes + lent->at)
        return NULL;
    lent->size = size;
    a->lent = NOT_LENT;
    return lent;
}

bool kl_arena_put(kl_arena *a, const void *data, size_t size, kl_arena_place *place) {
    a->usual = size;
    block *b = take_lent(a, data, size);
    if (!b) {
        b = new_block(a, size, size);
        if (!b)
            return false;
        memcpy(a->bytes + b->at, data, size);
    }
    atomic_store_explicit(&a->notes[b->slot], 1, memory_order_release);
    *place = (kl_arena_place){.at = b->at, .size = size, .slot = b->slot};
    return true;
}

void kl_arena_take_back(kl_arena *a, const kl_arena_place *place) {
    atomic_store(&a->notes[place->slot], 0);
}

bool kl_arena_trim(kl_arena *a) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    sweep(a);
    size_t used = a->count > 0 ? end_of(&a->blocks[a->count - 1]) : 0;
    used = (used + page - 1) / page * page;
    if (used < a->reach)
        madvise(a->bytes + used, a->reach - used, MADV_REMOVE);
    a->reach = used < a->reach ? used : a->reach;
    return a->count == (a->lent != NOT_LENT);
}

/* --- reading --- */

typedef struct held { /* data of a received message that is not released yet */
    kl_arenas *all;
    uint32_t pair;
    _Atomic uint32_t *note;
} held;

static void release(void *owner) {
    held *h = owner;
    pair *one = &h->all->pairs[h->pair];
    atomic_store_explicit(h->note, 0, memory_order_release);
    pthread_mutex_lock(&h->all->lock);
    one->held--;
    if (one->left && one->held == 0)
        free_pairs(h->all);
    pthread_mutex_unlock(&h->all->lock);
    kl_arenas_close(h->all);
    free(h);
}

bool kl_arena_get(kl_arena *a, const kl_arena_place *place, kl_message *message) {
    uint8_t *half = half_of(a->all, a->pair, !a->to_worker);
    if (place->slot >= SLOTS || place->at > ARENA_BYTES || place->size > ARENA_BYTES - place->at)
        return false;
    _Atomic uint32_t *note = (_Atomic uint32_t *)(void *)half + place->slot;
    if (atomic_load_explicit(note, memory_order_acquire) != 1)
        return false;
    held *h = malloc(sizeof *h);
    if (!h)
        return false;
    *h = (held){.all = a->all, .pair = a->pair, .note = note};
    pthread_mutex_lock(&a->all->lock);
    a->all->pairs[a->pair].held++;
    pthread_mutex_unlock(&a->all->lock);
    atomic_fetch_add(&a->all->users, 1);
    *message = (kl_message){
        .data = half + NOTES_BYTES + place->at, .size = place->size, .owner = h, .release = release};
    return true;
}
