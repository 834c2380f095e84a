/* The library that `kilter watch` loads in front of MPI. It records the MPI calls of each rank in a file. The
 * rank writes its file through a memory map, so the data are kept even if the rank is killed. `kilter watch`
 * reads the files afterwards. The library works in processes without MPI, too, because the launcher and its
 * shells also load it. It may have global variables, because a process has only one MPI. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "watch/watch.h"

#pragma GCC visibility push(default)

enum {
    HASH_SIZE = 4 * KL_WATCH_SITES, /* size of the hash table of places; must be a power of two */
    SLICES_PER_S = 1000,            /* slices of time per second at first; slices get longer when there are
                                     * too many */
    LONG_S_INVERSE = 5000, /* an interval counts as long if it takes more than 1 / LONG_S_INVERSE seconds */
    SAMPLES_PER_S = 1000,  /* greatest number of intervals per second whose CPU time is measured */
    RARE_SAMPLES_PER_S = 100, /* like SAMPLES_PER_S, but for intervals that are not long */
    /* if the program computes for less than 1 / POLL_S_INVERSE seconds between a failed test and the next
     * call, this time counts as waiting */
    POLL_S_INVERSE = 100000,
};

typedef enum kind { KIND_CALL, KIND_START, KIND_TEST } kind;

typedef struct call {
    const char *name;
    kind kind;
    bool any_source;
} call;

typedef struct moment {
    uint64_t ticks;
} moment;

/* The state of this library. Times are in ticks. */
static struct {
    kl_watch_file *file;
    uint64_t left; /* time at which the program's last MPI call returned */
    uint64_t slice_end;
    uint64_t long_ticks, poll_ticks, sample_pause, rare_pause;
    uint64_t next_sample, sample_from; /* sample_from: start of the interval whose CPU time is being measured;
                                          0: no interval is being measured */
    uint64_t sample_cpu_ns;
    uint64_t open_useful, open_mpi; /* useful time and MPI time of failed tests since the last event; the next
                                     * event gets them */
    uint32_t last_site;
    kind last_kind;
    bool polling;             /* true: the last call was a test that failed */
    bool steady_tsc;          /* true: the processor's counter runs at a constant rate */
    uint16_t hash[HASH_SIZE]; /* hash table of places: index of the place in file->site, plus 1; 0: free */
} w;

/* on: this thread called MPI_Init; only calls of such a thread are recorded. inside: the thread is in a call
 * of MPI; MPI functions that MPI itself calls are not recorded. */
static __thread struct { bool on, inside; } here __attribute__((tls_model("initial-exec")));

/* --- clocks --- */

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Read the processor's own counter. clock_gettime() alone would take half of the time that recording a call
 * may cost. */
static inline uint64_t ticks(void) {
#if defined(__x86_64__)
    if (__builtin_expect(w.steady_tsc, true))
        return __rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#endif
    return clock_ns(CLOCK_MONOTONIC);
}

static void choose_clock(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    w.steady_tsc = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1U << 8));
#endif
}

static kl_watch_moment both_clocks(void) {
    return (kl_watch_moment){.ticks = ticks(), .ns = clock_ns(CLOCK_MONOTONIC)};
}

/* --- finding the MPI functions that the wrappers call --- */

static int find_in(struct dl_phdr_info *info, size_t size, void *context) {
    const char **name = context, *slash = strrchr(info->dlpi_name, '/');
    (void)size;
    const char *file = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(file, "libmpi", 6) != 0)
        return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    void *function = handle ? dlsym(handle, *name) : NULL;
    if (!function)
        return 0;
    *name = function;
    return 1;
}

/* Find MPI's own function. A script's module may have loaded MPI, so also search libraries whose symbols are
 * local. MPICH's functions for Fortran 2008, mpi_…, have no second name that begins with "p". So search
 * for the name mpi_… only in the libraries after this one. */
static void *real_function(const char *name) {
    void *function = dlsym(name[0] == 'm' ? RTLD_NEXT : RTLD_DEFAULT, name);
    const char *found = name;
    if (!function && dl_iterate_phdr(find_in, &found) == 1)
        function = (void *)(uintptr_t)found;
    if (function)
        return function;
    fprintf(stderr,
            "kilter watch: this program's MPI has no function %s; run the program without kilter watch\n",
            name);
    abort();
}

/* --- places of calls in the program --- */

static void name_place(kl_watch_site *s, const void *from) {
    Dl_info in;
    const char *file = dladdr(from, &in) && in.dli_fname ? strrchr(in.dli_fname, '/') : NULL;
    if (!file)
        snprintf(s->place, sizeof s->place, "%p", from);
    else /* subtract 1, so that addr2line gets an address within the call */
        snprintf(s->place, sizeof s->place, "%.24s+0x%zx", file + 1,
                 (size_t)((const char *)from - (const char *)in.dli_fbase) - 1);
}

static uint32_t new_site(const void *from, const call *what, size_t at) {
    kl_watch_file *f = w.file;
    if (f->sites == KL_WATCH_SITES)
        return KL_WATCH_SITES - 1;
    kl_watch_site *s = &f->site[f->sites];
    if (f->sites == KL_WATCH_SITES - 1) {
        snprintf(s->call, sizeof s->call, "MPI");
        snprintf(s->place, sizeof s->place, "further places");
    } else {
        s->address = (uintptr_t)from;
        snprintf(s->call, sizeof s->call, "%s", what->name);
        name_place(s, from);
        w.hash[at] = (uint16_t)(f->sites + 1);
    }
    s->after = UINT64_MAX; /* a great value, so that the CPU time of the first interval after this place is
                              measured */
    return f->sites++;
}

static inline uint32_t site_of(const void *from, const call *what) {
    size_t at = ((uintptr_t)from * 0x9e3779b97f4a7c15u >> 40) % HASH_SIZE;
    for (; w.hash[at]; at = (at + 1) % HASH_SIZE)
        if (w.file->site[w.hash[at] - 1].address == (uintptr_t)from)
            return w.hash[at] - 1U;
    return new_site(from, what, at);
}

/* --- slices of time and the useful time in each --- */

static void halve_slices(void) {
    kl_watch_file *f = w.file;
    for (size_t i = 0; i < KL_WATCH_SLICES / 2; i++)
        f->slice[i] = f->slice[2 * i] + f->slice[2 * i + 1];
    memset(f->slice + KL_WATCH_SLICES / 2, 0, sizeof f->slice / 2);
    f->slices = KL_WATCH_SLICES / 2;
    f->slice_ticks *= 2;
}

/* Begin the slice after the present one. If there are too many slices, join them in pairs. */
static void next_slice(void) {
    if (w.file->slices == KL_WATCH_SLICES)
        halve_slices();
    w.slice_end = w.file->began.ticks + ++w.file->slices * w.file->slice_ticks;
}

/* Add the useful time from `from` to `until` to the slices that it overlaps. */
static void add_to_slices(uint64_t from, uint64_t until) {
    while (until >= w.slice_end) {
        if (from < w.slice_end) {
            w.file->slice[w.file->slices - 1] += w.slice_end - from;
            from = w.slice_end;
        }
        next_slice();
    }
    w.file->slice[w.file->slices - 1] += until - from;
}

/* --- measuring the CPU time of intervals between calls --- */

static void begin_sample(uint64_t now) {
    w.sample_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    w.sample_from = now;
}

static void end_sample(uint64_t now) {
    w.file->sampled_cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - w.sample_cpu_ns;
    w.file->sampled += now - w.sample_from;
    w.file->last = both_clocks();
    w.sample_from = 0;
    w.next_sample = now + w.sample_pause;
}

/* --- recording a call --- */

/* Begin to record an MPI call of the program. Return false if this call must not be recorded. */
static inline bool enter(moment *m) {
    if (__builtin_expect(!here.on || here.inside, false)) {
        if (w.file && !here.on)
            __atomic_fetch_add(&w.file->other_calls, 1, __ATOMIC_RELAXED);
        return false;
    }
    here.inside = true;
    m->ticks = ticks();
    if (w.sample_from)
        end_sample(m->ticks);
    return true;
}

static inline void add_event(uint32_t site, uint64_t useful, uint64_t mpi, bool more) {
    kl_watch_file *f = w.file;
    if (more) {
        kl_watch_event *e = &f->ring[(f->events - 1) % KL_WATCH_EVENTS];
        e->useful += (float)useful;
        e->mpi += (float)mpi;
        return;
    }
    f->ring[f->events % KL_WATCH_EVENTS] =
        (kl_watch_event){.useful = (float)useful, .mpi = (float)mpi, .site = (uint16_t)site};
    f->events++;
    f->site[site].events++;
}

static inline void leave(const moment *m, const void *from, const call *what, int done) {
    kl_watch_file *f = w.file;
    uint64_t t = m->ticks, e = ticks(), useful = t - w.left, mpi = e - t;
    uint32_t site = site_of(from, what);
    if (w.polling && useful < w.poll_ticks) {
        mpi += useful;
        useful = 0;
    } else {
        add_to_slices(w.left, t);
        f->site[w.last_site].after = useful;
    }
    f->useful += useful;
    f->mpi += mpi;
    f->calls++;
    f->any_source += what->any_source;
    f->site[site].mpi += mpi;
    w.polling = !done;
    if (done) {
        bool more =
            site == w.last_site && what->kind != KIND_CALL && f->events > 0 && w.last_kind == what->kind;
        add_event(site, useful + w.open_useful, mpi + w.open_mpi, more);
        w.open_useful = w.open_mpi = 0;
        w.last_site = site;
        w.last_kind = what->kind;
    } else {
        w.open_useful += useful;
        w.open_mpi += mpi;
    }
    w.left = e;
    if (e >= w.next_sample &&
        (f->site[w.last_site].after >= w.long_ticks || e >= w.next_sample + w.rare_pause))
        begin_sample(e);
    here.inside = false;
}

/* --- starting and ending the recording --- */

/* End the program if it uses another MPI than this library, because the handles of the two MPIs differ. */
static void check_mpi(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length, (*version)(char *, int *);
    *(void **)&version = real_function("PMPI_Get_library_version");
    version(text, &length);
    bool openmpi = strncmp(text, "Open MPI", 8) == 0;
    if (openmpi == (strcmp(KL_WATCH_MPI, "openmpi") == 0))
        return;
    fprintf(
        stderr,
        "kilter watch: this program uses %s, but kilter watch took it for a program of %s; use --mpi %s\n",
        openmpi ? "Open MPI" : "MPICH", openmpi ? "MPICH" : "Open MPI", openmpi ? "openmpi" : "mpich");
    exit(2);
}

static kl_watch_file *make_file(int rank) {
    const char *folder = getenv("KILTER_WATCH_FOLDER");
    char host[KL_WATCH_HOST_BYTES] = "", path[4096];
    gethostname(host, sizeof host - 1);
    if (!folder)
        return NULL;
    snprintf(path, sizeof path, "%s/rank-%d-%s-%d", folder, rank, host, (int)getpid());
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    /* Reserve the space on the disk: on a full disk, a write into the map would end the program. */
    int fault = fd < 0 ? errno : posix_fallocate(fd, 0, sizeof(kl_watch_file));
    void *map =
        fault ? MAP_FAILED
              : mmap(NULL, sizeof(kl_watch_file), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED)
        fprintf(stderr, "kilter watch: rank %d cannot write '%s': %s; the rank is not watched\n", rank, path,
                strerror(fault ? fault : errno));
    if (fd >= 0)
        close(fd);
    return map == MAP_FAILED ? NULL : map;
}

static void choose_lengths(kl_watch_moment before, kl_watch_moment now) {
    double ns = (double)(now.ns - before.ns),
           per_s = ns > 0 ? 1e9 * (double)(now.ticks - before.ticks) / ns : 1e9;
    uint64_t second = per_s > 1e6 ? (uint64_t)per_s : 1000000;
    w.long_ticks = second / LONG_S_INVERSE;
    w.poll_ticks = second / POLL_S_INVERSE;
    w.sample_pause = second / SAMPLES_PER_S;
    w.rare_pause = second / RARE_SAMPLES_PER_S;
    w.file->slice_ticks = second / SLICES_PER_S;
}

/* A communicator of MPI. In Open MPI, communicators are objects in its library, which are found by name. */
#ifdef OPEN_MPI
#define COMMUNICATOR(mpich, openmpi) ((MPI_Comm)real_function(openmpi))
#else
#define COMMUNICATOR(mpich, openmpi) (mpich)
#endif

/* Check the MPI before MPI_Init, and return the present values of both clocks. */
static kl_watch_moment prepare(void) {
    check_mpi();
    choose_clock();
    return both_clocks();
}

/* Begin to record. before: values of both clocks before MPI_Init, which give the length of a tick. */
static void begin(kl_watch_moment before) {
    int rank = 0, ranks = 1, level = MPI_THREAD_SINGLE, (*of_world)(MPI_Comm, int *);
    if (w.file)
        return;
    MPI_Comm world = COMMUNICATOR(MPI_COMM_WORLD, "ompi_mpi_comm_world");
    MPI_Comm none = COMMUNICATOR(MPI_COMM_NULL, "ompi_mpi_comm_null"), parent = none;
    *(void **)&of_world = real_function("PMPI_Comm_rank");
    of_world(world, &rank);
    *(void **)&of_world = real_function("PMPI_Comm_size");
    of_world(world, &ranks);
    int (*get_parent)(MPI_Comm *), (*get_level)(int *);
    *(void **)&get_parent = real_function("PMPI_Comm_get_parent");
    get_parent(&parent);
    *(void **)&get_level = real_function("PMPI_Query_thread");
    get_level(&level);
    kl_watch_file *f = make_file(rank);
    if (!f)
        return;
    *f = (kl_watch_file){.version = KL_WATCH_VERSION, .bytes = sizeof *f, .rank = rank, .ranks = ranks};
    memcpy(f->magic, KL_WATCH_MAGIC, sizeof f->magic);
    gethostname(f->host, sizeof f->host - 1);
    f->pid = (int32_t)getpid();
    f->spawned = parent != none;
    f->threads = level > MPI_THREAD_FUNNELED;
    f->began_unix_ns = clock_ns(CLOCK_REALTIME);
    f->began = f->last = both_clocks();
    w.file = f;
    choose_lengths(before, f->began);
    w.left = w.next_sample = f->began.ticks;
    next_slice();
    snprintf(f->site[0].call, sizeof f->site[0].call, "MPI_Init");
    f->sites = 1;
    here.on = true;
}

static void end(kl_watch_end how) {
    kl_watch_file *f = w.file;
    if (!f || f->end != KL_WATCH_RUNNING)
        return;
    if (here.on) {
        uint64_t now = ticks();
        if (w.sample_from)
            end_sample(now);
        add_to_slices(w.left, now);
        f->useful += now - w.left;
    }
    f->last = both_clocks();
    f->end = how;
    here.on = false;
}

int MPI_Init(int *argc, char ***argv) {
    int (*real)(int *, char ***);
    *(void **)&real = real_function("PMPI_Init");
    kl_watch_moment before = prepare();
    int result = real(argc, argv);
    begin(before);
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int (*real)(int *, char ***, int, int *);
    *(void **)&real = real_function("PMPI_Init_thread");
    kl_watch_moment before = prepare();
    int result = real(argc, argv, required, provided);
    begin(before);
    return result;
}

int MPI_Finalize(void) {
    int (*real)(void);
    *(void **)&real = real_function("PMPI_Finalize");
    end(KL_WATCH_FINALIZED);
    return real();
}

int MPI_Abort(MPI_Comm comm, int code) {
    int (*real)(MPI_Comm, int);
    *(void **)&real = real_function("PMPI_Abort");
    end(KL_WATCH_ABORTED);
    return real(comm, code);
}

/* Wrappers for Fortran: an MPI's own Fortran functions do not always call the C functions above. */
#define FORTRAN_NAME(symbol, function, lower, parameters, ...)                                               \
    void symbol parameters;                                                                                  \
    void symbol parameters {                                                                                 \
        any_##lower(function, __VA_ARGS__);                                                                  \
    }
#define FORTRAN_NAMES(lower, upper, parameters, ...)                                                         \
    FORTRAN_NAME(mpi_##lower, "pmpi_" #lower "_", lower, parameters, __VA_ARGS__)                            \
    FORTRAN_NAME(mpi_##lower##_, "pmpi_" #lower "_", lower, parameters, __VA_ARGS__)                         \
    FORTRAN_NAME(mpi_##lower##__, "pmpi_" #lower "_", lower, parameters, __VA_ARGS__)                        \
    FORTRAN_NAME(mpi_##lower##_f08_, "mpi_" #lower "_f08_", lower, parameters, __VA_ARGS__)                  \
    FORTRAN_NAME(MPI_##upper, "pmpi_" #lower "_", lower, parameters, __VA_ARGS__)

static void any_init(const char *function, void *ierr) {
    void (*real)(void *);
    *(void **)&real = real_function(function);
    kl_watch_moment before = prepare();
    real(ierr);
    begin(before);
}

static void any_init_thread(const char *function, void *required, void *provided, void *ierr) {
    void (*real)(void *, void *, void *);
    *(void **)&real = real_function(function);
    kl_watch_moment before = prepare();
    real(required, provided, ierr);
    begin(before);
}

static void any_finalize(const char *function, void *ierr) {
    void (*real)(void *);
    *(void **)&real = real_function(function);
    end(KL_WATCH_FINALIZED);
    real(ierr);
}

static void any_abort(const char *function, void *comm, void *code, void *ierr) {
    void (*real)(void *, void *, void *);
    *(void **)&real = real_function(function);
    end(KL_WATCH_ABORTED);
    real(comm, code, ierr);
}

FORTRAN_NAMES(init, INIT, (void *ierr), ierr)
FORTRAN_NAMES(init_thread, INIT_THREAD, (void *required, void *provided, void *ierr), required, provided,
              ierr)
FORTRAN_NAMES(finalize, FINALIZE, (void *ierr), ierr)
FORTRAN_NAMES(abort, ABORT, (void *comm, void *code, void *ierr), comm, code, ierr)

#include "wrappers.h"
