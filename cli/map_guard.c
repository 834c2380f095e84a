/* The table of running commands, and a process that ends the commands whose workers have died. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "map.h"
#include "sys/sys.h"

static const double TERM_PATIENCE_S = 1; /* seconds that commands get between SIGTERM and SIGKILL */
static const double LOOK_S = 5e-3;
static const uint64_t RESERVE = 1000000000;

static size_t bytes_of(uint32_t slots) {
    return sizeof(kl_map_guard) + slots * sizeof(kl_map_slot);
}

/* Send a signal to all running commands. Return whether any command runs or is starting. A starting
 * command checks by itself whether it must end. */
static bool signal_all(kl_map_guard *g, int number) {
    bool any = false;
    for (uint32_t i = 0; i < g->slots; i++) {
        pid_t group = atomic_load(&g->slot[i].command);
        if (group > 0)
            any |= kl_signal_session(group, number) || kill(-group, 0) == 0;
        else
            any |= group == KL_MAP_STARTING;
    }
    return any;
}

void kl_map_guard_end_all(kl_map_guard *g) {
    double until_s = kl_monotonic_s() + TERM_PATIENCE_S;
    atomic_store(&g->stopping, true);
    atomic_store(&g->ending, true);
    if (signal_all(g, SIGTERM))
        signal_all(g, SIGCONT); /* SIGCONT, because a stopped command would not handle SIGTERM */
    while (signal_all(g, 0) && kl_monotonic_s() < until_s)
        kl_nap_s(LOOK_S);
    signal_all(g, SIGKILL);
}

void kl_map_guard_count(kl_map_guard *g, bool succeeded) {
    atomic_fetch_add(succeeded ? &g->succeeded : &g->failed, 1);
    if (kl_map_halts(&g->halt, atomic_load(&g->failed), atomic_load(&g->succeeded), g->total) != KL_MAP_GO_ON)
        atomic_store(&g->stopping, true);
}

static void end_one(kl_map_slot *slot) {
    pid_t group = atomic_load(&slot->command);
    if (group > 0)
        kl_signal_session(group, SIGKILL);
    atomic_store(&slot->command, 0);
}

uint32_t kl_map_guard_claim(kl_map_guard *g) {
    for (uint32_t i = 0; i < g->slots; i++) {
        int owner = atomic_load(&g->slot[i].worker);
        bool free = owner == 0 || (kill(owner, 0) != 0 && errno == ESRCH);
        if (!free || !atomic_compare_exchange_strong(&g->slot[i].worker, &owner, getpid()))
            continue;
        end_one(&g->slot[i]);
        return i;
    }
    return g->slots;
}

/* The guard process: wait until no process has the pipe open for writing any more, then end all commands. The
 * guard keeps no file of its parent open. */
static void watch(kl_map_guard *g, int end) {
    char nothing;
    setsid();
    for (int number = 1; number < SIGRTMIN; number++)
        signal(number, SIG_IGN);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    if (dup2(end, 3) == 3)
        close_range(4, ~0U, 0);
    while (read(3, &nothing, 1) < 0 && errno == EINTR)
        ;
    kl_map_guard_end_all(g);
    kl_signal_folder_remove(*g->folder ? g->folder : NULL);
    _exit(0);
}

/* Return the bytes that outputs must leave free on the disk: a gigabyte, or half of what is free now if that
 * is less. */
static uint64_t reserve_of(const char *folder) {
    struct statvfs disk;
    uint64_t half = statvfs(folder, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize / 2 : 0;
    return half < RESERVE ? half : RESERVE;
}

static kilter_status make_folder(kl_map_guard *g, kilter_error *error) {
    const char *place = getenv("TMPDIR");
    int size =
        snprintf(g->folder, sizeof g->folder, "%s/kilter-map-XXXXXX", place && *place ? place : "/tmp");
    if ((size_t)size < sizeof g->folder && mkdtemp(g->folder))
        return KILTER_OK;
    kilter_status status =
        kl_fail(error, KILTER_ERR_SYSTEM, "making the folder %s for outputs: %s; set TMPDIR", g->folder,
                strerror(errno));
    g->folder[0] = '\0';
    return status;
}

static kilter_status start_watching(kl_map_guard *g, kilter_error *error) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting the guard process: %s", strerror(errno));
    pid_t pid = fork(); /* do not assign to g->pid: the child shares *g, and would store 0 there */
    if (pid == 0)
        watch(g, ends[0]);
    g->pid = pid;
    close(ends[0]);
    g->alive = ends[1];
    return g->pid > 0 ? KILTER_OK
                      : kl_fail(error, KILTER_ERR_SYSTEM, "starting the guard process: %s", strerror(errno));
}

kilter_status kl_map_guard_open(uint32_t slots, bool files, const kl_map_needs *needs, kl_map_guard **guard,
                                kilter_error *error) {
    kl_map_guard *g = mmap(NULL, bytes_of(slots), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g == MAP_FAILED)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting %u slots: memory ran out", slots);
    g->slots = slots;
    g->alive = -1;
    g->needs = *needs;
    kilter_status status = files ? make_folder(g, error) : KILTER_OK;
    if (status == KILTER_OK)
        status = start_watching(g, error);
    if (status == KILTER_OK && files)
        g->disk_left = reserve_of(g->folder);
    if (status != KILTER_OK)
        kl_map_guard_close(g);
    else
        *guard = g;
    return status;
}

void kl_map_guard_close(kl_map_guard *g) {
    if (!g)
        return;
    if (g->alive >= 0)
        close(g->alive);
    if (g->pid > 0)
        waitpid(g->pid, NULL, 0);
    else
        kl_signal_folder_remove(*g->folder ? g->folder : NULL);
    munmap(g, bytes_of(g->slots));
}
