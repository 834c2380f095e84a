#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/pin.h"

static bool is_named(const char *thread, const char *prefix) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", thread);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(name, sizeof name, file);
    if (file)
        fclose(file);
    return read && strncmp(name, prefix, strlen(prefix)) == 0;
}

uint32_t kl_threads_named(const char *prefix, clockid_t *clocks, uint32_t most) {
    uint32_t count = 0;
    DIR *threads = opendir("/proc/self/task");
    /* compute the number of a thread's CPU clock from the thread's number, as pthread_getcpuclockid() does */
    for (struct dirent *one; threads && count < most && (one = readdir(threads));)
        if (*one->d_name != '.' && is_named(one->d_name, prefix))
            clocks[count++] = (clockid_t)(~(unsigned)strtol(one->d_name, NULL, 10) << 3 | 6);
    if (threads)
        closedir(threads);
    return count;
}

/* Return all cores and memory of the machine; NULL: hwloc cannot read them. */
static hwloc_topology_t load_machine(void) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return NULL;
    if (hwloc_topology_load(topology) == 0)
        return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

/* Return the part of the machine that this process may use; NULL: hwloc cannot read it. */
static hwloc_topology_t load_topology(void) {
    hwloc_topology_t topology = load_machine();
    if (!topology)
        return NULL;
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    cpu_set_t unpinned;
    bool pinned = mine && kl_unpinned_cores(&unpinned);
    for (unsigned core = 0; pinned && core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &unpinned))
            hwloc_bitmap_set(mine, core);
    if (pinned || (mine && hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS) == 0))
        hwloc_topology_restrict(topology, mine, 0);
    hwloc_bitmap_free(mine);
    return topology;
}

static uint32_t count_cores(hwloc_topology_t topology) {
    if (!topology)
        return 1;
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    if (cores < 1) /* some virtual machines report processing units but no cores */
        cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    hwloc_topology_destroy(topology);
    return cores < 1 ? 1 : (uint32_t)cores;
}

uint32_t kl_core_count(void) {
    return count_cores(load_topology());
}

uint32_t kl_host_core_count(void) {
    return count_cores(load_machine());
}

/* Write to `binding` the number of one core, or the numbers of the processing units of several cores. These
 * numbers are unique on a machine. */
static void say_binding(hwloc_obj_t core, hwloc_const_bitmap_t units, uint32_t count,
                        char binding[KL_BINDING_BYTES]) {
    unsigned number = core->os_index == HWLOC_UNKNOWN_INDEX ? core->logical_index : core->os_index;
    char list[KL_BINDING_BYTES - sizeof "cpus "];
    if (count == 1) {
        snprintf(binding, KL_BINDING_BYTES, "core %u", number);
        return;
    }
    if (hwloc_bitmap_list_snprintf(list, sizeof list, units) >= (int)sizeof list)
        memcpy(list + sizeof list - 4, "...", 4);
    snprintf(binding, KL_BINDING_BYTES, "cpus %s", list);
}

static hwloc_obj_t nth_core(hwloc_topology_t topology, uint64_t n, int *cores) {
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    *cores = hwloc_get_nbobjs_by_type(topology, type);
    return *cores > 0 ? hwloc_get_obj_by_type(topology, type, (unsigned)(n % (uint64_t)*cores)) : NULL;
}

void kl_bind_cores(uint32_t i, uint32_t count, char binding[KL_BINDING_BYTES]) {
    binding[0] = '\0';
    hwloc_topology_t topology = load_topology();
    hwloc_bitmap_t units = hwloc_bitmap_alloc();
    int cores = 0;
    uint64_t from = (uint64_t)i * count;
    hwloc_obj_t first = topology && units ? nth_core(topology, from, &cores) : NULL;
    bool all = count > 1 && (uint64_t)count >= (uint64_t)cores;
    for (uint32_t k = 0; first && !all && k < count; k++)
        hwloc_bitmap_or(units, units, nth_core(topology, from + k, &cores)->cpuset);
    if (first && !all && hwloc_set_cpubind(topology, units, HWLOC_CPUBIND_PROCESS) == 0)
        say_binding(first, units, count, binding);
    hwloc_bitmap_free(units);
    if (topology)
        hwloc_topology_destroy(topology);
}

/* Only a program that is linked with OpenMP has this function. Kilter calls it because OpenMP counted the
 * cores before this process was bound to some of them. */
extern void omp_set_num_threads(int threads) __attribute__((weak));

uint32_t kl_openmp_threads(void) {
    /* the variable may list several numbers, one for each level of nesting; the first one is used */
    const char *text = getenv("OMP_NUM_THREADS");
    unsigned long threads = omp_set_num_threads && text ? strtoul(text, NULL, 10) : 0;
    return threads < 100000 ? (uint32_t)threads : 0;
}

void kl_limit_openmp(uint32_t threads) {
    if (omp_set_num_threads && kl_openmp_threads() == 0)
        omp_set_num_threads((int)threads);
}

/* Close the sockets of other farms that this process inherited. While a child has such a socket open, the
 * other end never sees a disconnect, and the address stays in use. */
static void close_private_sockets(void) {
    DIR *open_files = opendir("/proc/self/fd");
    for (struct dirent *entry; open_files && (entry = readdir(open_files));) {
        struct stat found;
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (fd > STDERR_FILENO && (fcntl(fd, F_GETFD) & FD_CLOEXEC) && fstat(fd, &found) == 0 &&
            S_ISSOCK(found.st_mode))
            close(fd);
    }
    if (open_files)
        closedir(open_files);
}

void kl_keep_standard_streams(void) {
    /* open() takes the lowest free number, which is the number of the missing stream */
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static uint64_t count_open_files(void) {
    uint64_t count = 0;
    DIR *open_files = opendir("/proc/self/fd");
    for (struct dirent *entry; open_files && (entry = readdir(open_files));)
        count += entry->d_name[0] != '.';
    if (open_files)
        closedir(open_files);
    return count;
}

kilter_status kl_allow_files(uint64_t more, kilter_error *error) {
    struct rlimit limit;
    uint64_t files = count_open_files() + more;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= files)
        return KILTER_OK;
    rlim_t most = limit.rlim_max;
    limit.rlim_cur = most == RLIM_INFINITY || most > files ? files : most;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= files)
        return KILTER_OK;
    return kl_fail(error, KILTER_ERR_USAGE,
                   "opening %llu files at once: the limit is %llu; lower the number of workers, or raise the "
                   "limit (ulimit -n)",
                   (unsigned long long)files, (unsigned long long)most);
}

int kl_thread_create(pthread_t *thread, void *(*body)(void *arg), void *arg) {
    pthread_attr_t unpinned;
    cpu_set_t cores;
    pthread_attr_init(&unpinned);
    if (kl_unpinned_cores(&cores))
        pthread_attr_setaffinity_np(&unpinned, sizeof cores, &cores);
    int code = pthread_create(thread, &unpinned, body, arg);
    pthread_attr_destroy(&unpinned);
    return code;
}

int kl_thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int code = kl_thread_create(thread, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

void kl_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void *wait_for_others(void *gate) {
    /* the starting thread holds the lock until all threads are started, so that all of them exist at the
     * same time */
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

enum { THREADS_MOST = 16 };

kilter_status kl_allow_threads(uint32_t threads, kilter_error *error) {
    pthread_t thread[THREADS_MOST];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    uint32_t started = 0;
    int code = 0;
    pthread_mutex_lock(&gate);
    while (started < threads && started < THREADS_MOST && code == 0)
        started += (code = kl_thread_start(&thread[started], wait_for_others, &gate)) == 0;
    pthread_mutex_unlock(&gate);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    return code == 0 ? KILTER_OK
                     : kl_fail(error, KILTER_ERR_SYSTEM,
                               "starting %u threads: %s; raise the limit of processes (ulimit -u) or of "
                               "memory (ulimit -v)",
                               threads, strerror(code));
}

void kl_end_with_parent(pid_t parent, int number) {
    prctl(PR_SET_PDEATHSIG, number);
    if (getppid() != parent)
        _exit(1);
}

static void child_setup(pid_t parent) {
    kl_end_with_parent(parent, SIGKILL); /* a worker must not outlive a master that was killed */
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null > STDIN_FILENO) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
    close_private_sockets();
}

kilter_status kl_process_start(int (*body)(void *arg), void *arg, pid_t *pid, kilter_error *error) {
    pid_t parent = getpid();
    fflush(NULL); /* flush now; otherwise the child would write the parent's buffered text a second time */
    pid_t child = fork();
    if (child < 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting a worker process: %s; lower the number of workers",
                       strerror(errno));
    if (child == 0) {
        child_setup(parent);
        int code = body(arg);
        fflush(NULL);
        _exit(code); /* exit handlers belong to the parent, so they do not run here */
    }
    *pid = child;
    return KILTER_OK;
}

void kl_describe_end(int status, char *how, size_t size) {
    if (WIFSIGNALED(status))
        snprintf(how, size, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(how, size, "exited with code %d", WEXITSTATUS(status));
}

void kl_read_end(const char *text, uint64_t *code, uint64_t *signal) {
    static const char by_signal[] = "was killed by signal ", by_itself[] = "exited with code ";
    const char *killed = strstr(text, by_signal), *exited = strstr(text, by_itself);
    *signal = killed ? strtoul(killed + strlen(by_signal), NULL, 10) : UINT64_MAX;
    *code = exited && !killed ? strtoul(exited + strlen(by_itself), NULL, 10) : UINT64_MAX;
}

bool kl_process_ended(pid_t pid, char *how, size_t size) {
    int status = 0;
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    if (got < 0)
        snprintf(how, how ? size : 0, "ended");
    else if (how)
        kl_describe_end(status, how, size);
    return true;
}

bool kl_process_is_held(pid_t pid) {
    char path[40], line[128];
    long tracer = 0, dumping = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        sscanf(line, "TracerPid: %ld", &tracer);
        sscanf(line, "CoreDumping: %ld", &dumping);
    }
    if (status)
        fclose(status);
    return tracer != 0 || dumping != 0;
}

/* Return whether the process is a zombie: it has ended, but its parent has not waited for it yet. */
static bool is_zombie(pid_t pid) {
    char path[40], line[128], state = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *status = fopen(path, "re");
    while (status && state == 0 && fgets(line, sizeof line, status))
        sscanf(line, "State: %c", &state);
    if (status)
        fclose(status);
    return state == 'Z';
}

bool kl_signal_session(pid_t session, int number) {
    DIR *all = opendir("/proc");
    bool any = false;
    kill(-session, number);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || pid == session || getsid(pid) != session || is_zombie(pid))
            continue;
        any = true;
        /* the process is in another process group, so the signal has not reached it yet */
        if (getpgid(pid) != session)
            kill(pid, number);
    }
    if (all)
        closedir(all);
    return any;
}

void kl_process_finish(pid_t pid, double patience_s) {
    const kl_clock clock = kl_clock_system();
    double until_s = kl_now_s(&clock) + patience_s;
    double pause_s = 200e-6;
    while (!kl_process_ended(pid, NULL, 0)) {
        if (kl_now_s(&clock) > until_s) {
            kill(pid, SIGKILL);
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
            return;
        }
        kl_nap_s(pause_s);
        if (pause_s < 10e-3)
            pause_s *= 2;
    }
}

char *kl_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    return text;
}

static bool given(const char *value) {
    return value && *value;
}

static const char *runtime_dir(void) {
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (!given(base) || access(base, W_OK | X_OK) != 0)
        base = getenv("TMPDIR");
    return given(base) ? base : "/tmp";
}

kilter_status kl_private_dir(char **path, kilter_error *error) {
    const char *base = runtime_dir();
    char *template = kl_text("%s/kilter-XXXXXX", base);
    if (!template)
        return kl_fail(error, KILTER_ERR_MEMORY, "making a folder for sockets: memory ran out");
    if (!mkdtemp(template)) {
        kl_fail(error, KILTER_ERR_USAGE,
                "making a folder for sockets in %s: %s; set TMPDIR to a folder you can write", base,
                strerror(errno));
        free(template);
        return KILTER_ERR_USAGE;
    }
    *path = template;
    return KILTER_OK;
}

static bool is_folder_of_ours(int base, const char *name, struct stat *found) {
    return strncmp(name, "kilter-", 7) == 0 && strlen(name) == 13 &&
           fstatat(base, name, found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found->st_mode) &&
           found->st_uid == geteuid();
}

/* Name of a file that marks a folder as one of Kilter's. Folders of other programs may have similar names. */
static const char MARK[] = ".kilter-sockets";

static void remove_sockets(DIR *folder) {
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat found;
        if (fstatat(dirfd(folder), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISSOCK(found.st_mode))
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
}

/* Remove the sockets and the mark file from a folder. Then remove the folder if it is empty. */
static void remove_dead_folder(int base, const char *name) {
    int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool marked = fd >= 0 && faccessat(fd, MARK, F_OK, 0) == 0;
    DIR *folder = marked && flock(fd, LOCK_EX | LOCK_NB) == 0 ? fdopendir(fd) : NULL;
    if (folder) {
        remove_sockets(folder);
        unlinkat(fd, MARK, 0);
        unlinkat(base, name, AT_REMOVEDIR);
    }
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
}

/* age in seconds below which a folder is kept, because its maker may not have locked it yet */
enum { BEING_MADE_S = 60 };

/* Remove folders that killed masters left behind. No process holds a lock on such a folder. */
static void sweep(void) {
    DIR *base = opendir(runtime_dir());
    for (struct dirent *entry; base && (entry = readdir(base));) {
        struct stat found;
        if (is_folder_of_ours(dirfd(base), entry->d_name, &found) &&
            found.st_mtime + BEING_MADE_S < time(NULL))
            remove_dead_folder(dirfd(base), entry->d_name);
    }
    if (base)
        closedir(base);
}

kilter_status kl_socket_dir_open(kl_socket_dir *dir, kilter_error *error) {
    char *path;
    sweep();
    kilter_status status = kl_private_dir(&path, error);
    if (status != KILTER_OK)
        return status;
    int held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int mark = held < 0 ? -1 : openat(held, MARK, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (mark >= 0)
        close(mark);
    if (mark < 0 || flock(held, LOCK_EX | LOCK_NB) != 0) {
        kl_fail(error, KILTER_ERR_SYSTEM, "locking the folder %s for sockets: %s", path, strerror(errno));
        if (held >= 0) {
            unlinkat(held, MARK, 0);
            close(held);
        }
        rmdir(path);
        free(path);
        return KILTER_ERR_SYSTEM;
    }
    *dir = (kl_socket_dir){.path = path, .held = held};
    return KILTER_OK;
}

void kl_socket_dir_close(kl_socket_dir *dir) {
    if (!dir->path)
        return;
    DIR *folder = opendir(dir->path);
    if (folder) { /* first remove the sockets that killed workers left in the folder */
        remove_sockets(folder);
        closedir(folder);
    }
    unlinkat(dir->held, MARK, 0);
    rmdir(dir->path);
    close(dir->held);
    free(dir->path);
    *dir = (kl_socket_dir){0};
}

kilter_status kl_record_dir(char **path, kilter_error *error) {
    const char *record = getenv("KILTER_RECORD_DIR"), *state = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    char *found = given(record)  ? strdup(record)
                  : given(state) ? kl_text("%s/kilter", state)
                  : given(home)  ? kl_text("%s/.local/state/kilter", home)
                                 : NULL;
    if (!found && !given(record) && !given(state) && !given(home))
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "finding the folder of run records: neither KILTER_RECORD_DIR, XDG_STATE_HOME nor HOME is set; "
            "set one, or name the file");
    if (!found)
        return kl_fail(error, KILTER_ERR_MEMORY, "finding the folder of run records: memory ran out");
    *path = found;
    return KILTER_OK;
}

kilter_status kl_make_dirs(const char *path, kilter_error *error) {
    char *copy = strdup(path);
    if (!copy)
        return kl_fail(error, KILTER_ERR_MEMORY, "creating the folder %s: memory ran out", path);
    kilter_status status = KILTER_OK;
    for (char *at = copy + 1; status == KILTER_OK; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char kept = *at;
        *at = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            status = kl_fail(error, KILTER_ERR_SYSTEM,
                             "creating the folder %s: %s; name another one in KILTER_RECORD_DIR", copy,
                             strerror(errno));
        *at = kept;
        if (kept == '\0')
            break;
    }
    free(copy);
    return status;
}
