/* Doorbells between processes of one host: a process that waits for a message sleeps until the sender rings.
 */
/* A bell is a word of shared memory on which the system can wait (a futex). The receiver marks itself as
 * asleep, checks once more for a message, and sleeps while the word does not change. The sender sends, reads
 * the mark, changes the word and wakes the receiver. Each process writes its own value before it reads the
 * other process's value, so at least one of them notices the other. */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/pin.h"
#include "sys/sys.h"

enum { NAME_BYTES = 64 };

typedef struct bell {
    /* number of rings for this place; its receiver waits until this word changes */
    _Alignas(64) atomic_uint rung;
    atomic_bool there, asleep;
    atomic_ullong cores; /* hash of the set of cores that the process may use */
    atomic_int process;  /* number of the process */
    atomic_int pinned;   /* number of the core to which the process is pinned, plus 1; 0: it is not pinned */
} bell;

struct kl_bells {
    bell *all;
    uint32_t places, mine;
    int cpus;        /* number of cores that the process which opened the bells may use */
    bool *ended;     /* [places] true: this process has seen that the process at this place has ended */
    unsigned before; /* value of this process's `rung` at the moment when it marked itself as asleep */
    char name[NAME_BYTES];
};

uint64_t kl_token(void) {
    uint64_t token;
    if (getrandom(&token, sizeof token, 0) != sizeof token)
        token = kl_mix64((uint64_t)getpid() ^ (uint64_t)(1e9 * kl_unix_time_s()));
    return token;
}

static bell *map_bells(const char *name, size_t bytes) {
    int fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return NULL;
    void *at = MAP_FAILED;
    /* reserve the memory now; then a full /dev/shm is reported as an error here, and does not raise SIGBUS
     * later */
    if (posix_fallocate(fd, 0, (off_t)bytes) == 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        shm_unlink(name); /* remove the shared memory's name, so that no other process can map these bells */
    return at == MAP_FAILED ? NULL : at;
}

static uint64_t allowed_cores(int *count) {
    cpu_set_t mine;
    uint64_t cores = 0;
    CPU_ZERO(&mine);
    if (kl_all_my_cores(&mine))
        for (size_t core = 0; core < CPU_SETSIZE; core++)
            cores = CPU_ISSET(core, &mine) ? kl_mix64(cores + core + 1) : cores;
    *count = CPU_COUNT(&mine);
    return cores;
}

kl_bells *kl_bells_open(uint64_t token, uint32_t places, uint32_t mine) {
    kl_bells *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->places = places;
    b->mine = mine;
    snprintf(b->name, sizeof b->name, "/kilter-bells-%016llx", (unsigned long long)token);
    b->all = map_bells(b->name, places * sizeof *b->all);
    b->ended = calloc(places, sizeof *b->ended);
    if (!b->all || !b->ended) {
        if (b->all)
            munmap(b->all, places * sizeof *b->all);
        free(b->ended);
        free(b);
        return NULL;
    }
    atomic_store(&b->all[mine].cores, allowed_cores(&b->cpus));
    atomic_store(&b->all[mine].process, getpid());
    atomic_store(&b->all[mine].there, true);
    return b;
}

void kl_bells_settle(kl_bells *b) {
    if (b)
        shm_unlink(b->name);
}

void kl_bells_close(kl_bells *b) {
    if (!b)
        return;
    kl_bells_settle(b);
    kl_bells_unpin(b);
    munmap(b->all, b->places * sizeof *b->all);
    free(b->ended);
    free(b);
}

uint32_t kl_bells_there(const kl_bells *b) {
    uint32_t there = 0;
    for (uint32_t i = 0; b && i < b->places; i++)
        there += atomic_load_explicit(&b->all[i].there, memory_order_relaxed);
    return there;
}

static bool has_same_cores(const kl_bells *b, uint32_t place) {
    return atomic_load(&b->all[place].there) && !b->ended[place] &&
           atomic_load(&b->all[place].cores) == atomic_load(&b->all[b->mine].cores);
}

/* Return how many of the first `places` processes use exactly this process's set of cores. */
static uint32_t count_same(const kl_bells *b, uint32_t places) {
    uint32_t same = 0;
    for (uint32_t i = 0; i < places; i++)
        same += has_same_cores(b, i);
    return same;
}

bool kl_bells_crowded(const kl_bells *b) {
    return b && count_same(b, b->places) > (uint32_t)b->cpus;
}

uint32_t kl_bells_cores_left(const kl_bells *b) {
    uint32_t cores = b ? (uint32_t)b->cpus : 1, before = b ? count_same(b, b->mine) : 0;
    return cores > before ? cores - before : 0;
}

uint32_t kl_bells_cores(const kl_bells *b) {
    return b ? (uint32_t)b->cpus : 1;
}

/* Return the CPU seconds of the process at `place`; below 0: it has ended. */
static double cpu_of(const kl_bells *b, uint32_t place) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(atomic_load(&b->all[place].process), &clock) != 0 ||
        clock_gettime(clock, &t) != 0)
        return -1;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double kl_bells_used(kl_bells *b, uint32_t *processes) {
    double used_s = 0;
    *processes = 0;
    for (uint32_t i = 0; i < b->places; i++) {
        bool there = atomic_load(&b->all[i].there) && !b->ended[i];
        double cpu_s = there ? cpu_of(b, i) : 0;
        b->ended[i] = b->ended[i] || cpu_s < 0;
        if (has_same_cores(b, i)) {
            used_s += cpu_s;
            ++*processes;
        }
    }
    return used_s;
}

int kl_bells_spare_cores(const kl_bells *b, uint32_t first) {
    return b->cpus - (int)(count_same(b, b->places) - count_same(b, first));
}

static bool is_only_one_on(const kl_bells *b, int core) {
    for (uint32_t i = 0; i < b->places; i++)
        if (i != b->mine && !b->ended[i] && atomic_load(&b->all[i].pinned) == core + 1)
            return false;
    return true;
}

/* Each process writes its core before it reads those of others, so at least one of two processes notices the
 * other. */
bool kl_bells_pin(kl_bells *b) {
    int core = sched_getcpu();
    if (atomic_load(&b->all[b->mine].pinned) > 0)
        return false;
    atomic_store(&b->all[b->mine].pinned, core + 1);
    bool pinned = is_only_one_on(b, core) && kl_core_pin(core);
    if (!pinned)
        atomic_store(&b->all[b->mine].pinned, 0);
    return pinned;
}

void kl_bells_unpin(kl_bells *b) {
    if (b && atomic_exchange(&b->all[b->mine].pinned, 0) > 0)
        kl_core_unpin();
}

bool kl_bells_is_there(const kl_bells *b, uint32_t place) {
    return b && atomic_load(&b->all[place].there);
}

void kl_bells_ring(kl_bells *b, uint32_t place) {
    if (!b)
        return;
    bell *bell = &b->all[place];
    /* make the message visible to other processes before this one reads the receiver's mark */
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load(&bell->asleep))
        return;
    atomic_fetch_add(&bell->rung, 1);
    syscall(SYS_futex, &bell->rung, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void kl_bells_lie_down(kl_bells *b) {
    bell *mine = &b->all[b->mine];
    b->before = atomic_load(&mine->rung);
    atomic_store(&mine->asleep, true);
    /* make this process's mark visible before it checks for a message the last time */
    atomic_thread_fence(memory_order_seq_cst);
}

void kl_bells_sleep(kl_bells *b, double seconds) {
    struct timespec most = kl_timespec(seconds);
    syscall(SYS_futex, &b->all[b->mine].rung, FUTEX_WAIT, b->before, &most, NULL, 0);
}

void kl_bells_get_up(kl_bells *b) {
    atomic_store_explicit(&b->all[b->mine].asleep, false, memory_order_relaxed);
}
