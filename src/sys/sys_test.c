#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/root_test_helper.h"
#include "sys/sys.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { SKIPPED = 77 };

static void clocks_do_not_go_back(void **state) {
    (void)state;
    kl_clock clock = kl_clock_system();
    double now_s = kl_now_s(&clock), busy_s = kl_busy_s(&clock);
    for (int i = 0; i < 1000; i++) {
        double then_s = kl_now_s(&clock), used_s = kl_busy_s(&clock);
        assert_true(then_s >= now_s && used_s >= busy_s);
        now_s = then_s;
        busy_s = used_s;
    }
    clock.busy_s = NULL; /* without busy_s, use a clock that always shows the same time */
    assert_true(kl_busy_s(&clock) >= now_s);
}

static void waiting_is_not_being_busy(void **state) {
    (void)state;
    kl_clock clock = kl_clock_system();
    double now_s = kl_now_s(&clock), busy_s = kl_busy_s(&clock);
    while (kl_now_s(&clock) < now_s + 0.05)
        usleep(5000);
    assert_true(kl_busy_s(&clock) - busy_s < kl_now_s(&clock) - now_s);
}

static int report_binding(void *arg) {
    char binding[KL_BINDING_BYTES];
    uint32_t core = *(uint32_t *)arg, before = kl_core_count(), on_host = kl_host_core_count();
    kl_bind_cores(core, 1, binding);
    return binding[0]
               ? kl_core_count() == 1 && kl_host_core_count() == on_host && strncmp(binding, "core ", 5) == 0
                     ? 0
                     : 2
           : before == 1 ? 0
                         : 3;
}

/* Wait until the child ends, and describe its end in `how`. */
static void end_of(pid_t pid, char *how, size_t size) {
    while (!kl_process_ended(pid, how, size))
        usleep(1000);
}

static void every_core_can_be_bound(void **state) {
    (void)state;
    uint32_t cores = kl_core_count();
    assert_true(cores >= 1);
    /* try one more number than there are cores, so that counting starts again at the first core */
    for (uint32_t core = 0; core <= cores; core++) {
        pid_t pid;
        char how[64];
        assert_int_equal(kl_process_start(report_binding, &core, &pid, NULL), KILTER_OK);
        end_of(pid, how, sizeof how);
        assert_string_equal(how, "exited with code 0");
    }
}

/* In groups of two cores, the last group may include the first core again. */
static int report_pieces(void *arg) {
    char binding[KL_BINDING_BYTES];
    uint32_t cores = kl_core_count(), count = *(uint32_t *)arg;
    kl_bind_cores(cores - 1, count, binding);
    if (count > 1 && count >= cores)
        return binding[0] || kl_core_count() != cores ? 2 : 0;
    return kl_core_count() == count && strncmp(binding, count > 1 ? "cpus " : "core ", 5) == 0 ? 0 : 3;
}

static void cores_are_bound_in_pieces(void **state) {
    (void)state;
    for (uint32_t count = 1; count <= kl_core_count() + 1; count++) {
        pid_t pid;
        char how[64];
        assert_int_equal(kl_process_start(report_pieces, &count, &pid, NULL), KILTER_OK);
        end_of(pid, how, sizeof how);
        assert_string_equal(how, "exited with code 0");
    }
}

/* Replace OpenMP's function, so that this program counts as linked with OpenMP. */
static int openmp_threads;
void omp_set_num_threads(int threads);
void omp_set_num_threads(int threads) {
    openmp_threads = threads;
}

static void openmp_is_told_how_many_cores_there_are(void **state) {
    (void)state;
    unsetenv("OMP_NUM_THREADS");
    kl_limit_openmp(3);
    assert_int_equal(openmp_threads, 3);
    assert_int_equal(kl_openmp_threads(), 0);
    setenv("OMP_NUM_THREADS", "7,2", 1);
    kl_limit_openmp(4);
    assert_int_equal(openmp_threads, 3);
    assert_int_equal(kl_openmp_threads(), 7);
    setenv("OMP_NUM_THREADS", "-1", 1);
    assert_int_equal(kl_openmp_threads(), 0);
    unsetenv("OMP_NUM_THREADS");
}

static int exit_with(void *arg) {
    return *(int *)arg;
}

static int kill_itself(void *arg) {
    (void)arg;
    raise(SIGKILL);
    return 0;
}

static int never_end(void *arg) {
    while (!arg)
        pause();
    return 0;
}

static int read_a_byte(void *arg) {
    (void)arg;
    char byte;
    return (int)read(STDIN_FILENO, &byte, 1); /* the standard input must be empty */
}

static void processes_tell_how_they_ended(void **state) {
    (void)state;
    int code = 7;
    char how[64];
    pid_t pid;
    assert_int_equal(kl_process_start(exit_with, &code, &pid, NULL), KILTER_OK);
    end_of(pid, how, sizeof how);
    assert_string_equal(how, "exited with code 7");
    assert_int_equal(kl_process_start(kill_itself, NULL, &pid, NULL), KILTER_OK);
    end_of(pid, how, sizeof how);
    assert_non_null(strstr(how, "signal 9"));
    assert_int_equal(kl_process_start(read_a_byte, NULL, &pid, NULL), KILTER_OK);
    end_of(pid, how, sizeof how);
    assert_string_equal(how, "exited with code 0");
}

static void a_process_that_does_not_end_is_ended(void **state) {
    (void)state;
    pid_t pid;
    assert_int_equal(kl_process_start(never_end, NULL, &pid, NULL), KILTER_OK);
    kl_process_finish(pid, 0.01);
    /* the killed process is gone, because this process has waited for it */
    assert_int_equal(kill(pid, 0), -1);
}

/* --- tests of the supervisor --- */

enum { ENDS, IS_KILLED, STAYS };

static int be_number(void *arg, uint32_t number) {
    if (number == IS_KILLED)
        raise(SIGKILL);
    if (number == STAYS)
        never_end(NULL);
    return (int)*(uint32_t *)arg;
}

static kl_child_news next_news(kl_supervisor *supervisor) {
    kl_child_news news;
    while (!kl_supervisor_next(supervisor, 60, &news))
        ;
    return news;
}

static void children_are_started_at_any_time_and_tell_how_they_ended(void **state) {
    (void)state;
    uint32_t code = 7;
    kl_supervisor *supervisor;
    /* the supervisor must work even if the program ignores the signals of its own children */
    signal(SIGCHLD, SIG_IGN);
    assert_int_equal(kl_supervisor_open(be_number, NULL, &code, &supervisor, NULL), KILTER_OK);
    const char *const ends[] = {"exited with code 7", "was killed by signal 9 (Killed)"};
    for (int round = 0; round < 50; round++) {
        uint32_t number = (uint32_t)round % 2;
        assert_int_equal(kl_supervisor_start(supervisor, number, NULL), KILTER_OK);
        kl_child_news started = next_news(supervisor), ended = next_news(supervisor);
        assert_true(!started.ended && ended.ended && started.pid == ended.pid && started.pid > 0);
        assert_true(started.number == number && ended.number == number);
        assert_string_equal(ended.how, ends[number]);
        assert_int_equal(kl_supervisor_under_way(supervisor), 0);
    }
    kl_supervisor_close(supervisor, 5);
    signal(SIGCHLD, SIG_DFL);
}

/* Request a great number of children at once, so that neither the requests nor the reports all fit into a
 * socket. */
static void many_children_are_asked_for_at_once(void **state) {
    (void)state;
    enum { MANY = 700 };
    uint32_t code = 0, ended = 0;
    kl_supervisor *supervisor;
    assert_int_equal(kl_supervisor_open(be_number, NULL, &code, &supervisor, NULL), KILTER_OK);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(kl_supervisor_start(supervisor, 0, NULL), KILTER_OK);
    assert_int_equal(kl_supervisor_under_way(supervisor), MANY);
    while (ended < MANY)
        ended += next_news(supervisor).ended;
    assert_int_equal(kl_supervisor_under_way(supervisor), 0);
    kl_supervisor_close(supervisor, 5);
}

/* Return whether the process is gone, or is a zombie that its parent has not waited for. */
static bool is_dead(pid_t pid) {
    char path[40], line[200] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return true;
    (void)!fgets(line, sizeof line, f);
    fclose(f);
    const char *name_end = strrchr(line, ')');
    return name_end && name_end[2] == 'Z';
}

static void children_that_stay_are_ended(void **state) {
    (void)state;
    uint32_t code = 0;
    kl_supervisor *supervisor;
    assert_int_equal(kl_supervisor_open(be_number, NULL, &code, &supervisor, NULL), KILTER_OK);
    kl_supervisor_start(supervisor, STAYS, NULL);
    pid_t pid = next_news(supervisor).pid;
    kl_supervisor_close(supervisor, 0);
    while (!is_dead(pid))
        usleep(1000);
}

typedef struct shared_pids {
    volatile pid_t supervisor_child;
} shared_pids;

static shared_pids *share_pids(void) {
    void *at = mmap(NULL, sizeof(shared_pids), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

static int open_a_supervisor_and_stay(void *arg) {
    uint32_t code = 0;
    kl_supervisor *supervisor;
    if (kl_supervisor_open(be_number, NULL, &code, &supervisor, NULL) != KILTER_OK)
        return 1;
    kl_supervisor_start(supervisor, STAYS, NULL);
    ((shared_pids *)arg)->supervisor_child = next_news(supervisor).pid;
    return never_end(NULL);
}

static void a_killed_opener_takes_supervisor_and_children_along(void **state) {
    (void)state;
    shared_pids *pids = share_pids();
    pid_t opener;
    assert_int_equal(kl_process_start(open_a_supervisor_and_stay, pids, &opener, NULL), KILTER_OK);
    while (!pids->supervisor_child)
        usleep(1000);
    kl_process_finish(opener, 0);
    while (!is_dead(pids->supervisor_child))
        usleep(1000);
    munmap(pids, sizeof *pids);
}

static pid_t parent_of(pid_t pid) {
    char path[40], state;
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d (%*[^)]) %c %d", &state, &parent), 2);
    fclose(f);
    return parent;
}

static void a_killed_supervisor_takes_its_children_along_and_is_known_to_be_gone(void **state) {
    (void)state;
    uint32_t code = 0;
    kl_supervisor *supervisor;
    kl_child_news news;
    kilter_error error;
    assert_int_equal(kl_supervisor_open(be_number, NULL, &code, &supervisor, NULL), KILTER_OK);
    kl_supervisor_start(supervisor, STAYS, NULL);
    pid_t child = next_news(supervisor).pid;
    kill(parent_of(child), SIGKILL);
    while (!is_dead(child))
        usleep(1000);
    assert_false(kl_supervisor_next(supervisor, 60, &news));
    assert_int_equal(kl_supervisor_under_way(supervisor), 0);
    assert_int_equal(kl_supervisor_start(supervisor, STAYS, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, "gone"));
    kl_supervisor_close(supervisor, 5);
}

/* --- folders --- */

/* Make a folder for sockets and leave it behind, as a killed master does. */
static char *folder_of_the_dead(void) {
    int ends[2];
    char path[200] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kl_socket_dir dir;
        if (kl_socket_dir_open(&dir, NULL) != KILTER_OK)
            _exit(1);
        char *socket = kl_text("%s/master", dir.path);
        bool made = socket && mknod(socket, S_IFSOCK | 0600, 0) == 0;
        _exit(made && write(ends[1], dir.path, strlen(dir.path)) > 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(read(ends[0], path, sizeof path - 1) > 0);
    close(ends[0]);
    close(ends[1]);
    return kl_text("%s", path);
}

/* Fork a child, which forks a grandchild. The grandchild calls kl_end_with_parent() after the child has ended
 * (`late`), or while the child lives. Return whether the grandchild then continues. */
static bool goes_on_after(bool late) {
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t parent = getpid(), grandchild = fork();
        if (grandchild == 0) {
            while (late && getppid() == parent)
                sched_yield();
            kl_end_with_parent(parent, SIGKILL);
            _exit(write(ends[1], "x", 1) != 1);
        }
        if (!late)
            waitpid(grandchild, NULL, 0);
        _exit(0);
    }
    close(ends[1]);
    bool goes_on = read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return goes_on;
}

static void a_child_ends_even_if_its_parent_ended_before_it_asked(void **state) {
    (void)state;
    assert_true(goes_on_after(false));
    assert_false(goes_on_after(true));
}

static void folders_of_the_dead_are_swept(void **state) {
    (void)state;
    char *base, *foreign;
    kl_socket_dir living, new;
    assert_int_equal(kl_private_dir(&base, NULL), KILTER_OK);
    setenv("XDG_RUNTIME_DIR", base, 1);
    assert_int_equal(kl_socket_dir_open(&living, NULL), KILTER_OK);
    char *dead = folder_of_the_dead();
    assert_int_equal(kl_private_dir(&foreign, NULL), KILTER_OK);
    /* another program made this folder, whose name looks like one of Kilter's */
    char *file = kl_text("%s/socket", foreign);
    assert_int_equal(mknod(file, S_IFSOCK | 0600, 0), 0);
    const struct timespec long_ago[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char *const old[] = {living.path, dead, foreign};
    for (int i = 0; i < 3; i++)
        assert_int_equal(utimensat(AT_FDCWD, old[i], long_ago, 0), 0);
    assert_int_equal(kl_socket_dir_open(&new, NULL), KILTER_OK);
    /* the folder stays, because another process holds its lock */
    assert_int_equal(access(living.path, F_OK), 0);
    assert_int_equal(access(new.path, F_OK), 0);
    assert_int_equal(access(dead, F_OK), -1);
    assert_int_equal(access(file, F_OK), 0);
    unsetenv("XDG_RUNTIME_DIR");
    unlink(file);
    rmdir(foreign);
    kl_socket_dir_close(&living);
    kl_socket_dir_close(&new);
    assert_int_equal(rmdir(base), 0);
    char *const texts[] = {base, dead, foreign, file};
    for (int i = 0; i < 4; i++)
        free(texts[i]);
}

static void private_folders_are_private(void **state) {
    (void)state;
    char *one, *two;
    struct stat found;
    assert_int_equal(kl_private_dir(&one, NULL), KILTER_OK);
    assert_int_equal(kl_private_dir(&two, NULL), KILTER_OK);
    assert_string_not_equal(one, two);
    assert_int_equal(stat(one, &found), 0);
    assert_true(S_ISDIR(found.st_mode) && (found.st_mode & 0777) == 0700);
    rmdir(one);
    rmdir(two);
    free(one);
    free(two);
}

static void folders_are_made_with_those_above_them(void **state) {
    (void)state;
    char *base, *deep, *file;
    kilter_error error;
    assert_int_equal(kl_private_dir(&base, NULL), KILTER_OK);
    deep = kl_text("%s/a/b c/d", base);
    assert_int_equal(kl_make_dirs(deep, NULL), KILTER_OK);
    assert_int_equal(kl_make_dirs(deep, NULL), KILTER_OK); /* folders that already exist are no error */
    assert_int_equal(access(deep, W_OK), 0);
    file = kl_text("%s/file", deep);
    fclose(fopen(file, "w"));
    char *under_file = kl_text("%s/x", file);
    assert_int_equal(kl_make_dirs(under_file, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, file));
    unlink(file);
    for (char *slash; strlen(deep) >= strlen(base); *slash = '\0') {
        rmdir(deep);
        slash = strrchr(deep, '/');
    }
    free(base);
    free(deep);
    free(file);
    free(under_file);
}

static void records_go_where_the_environment_says(void **state) {
    (void)state;
    const struct {
        const char *own, *state, *home, *path;
    } rows[] = {
        {"/own", "/state", "/home/me", "/own"},
        {"", "/state", "/home/me", "/state/kilter"},
        {NULL, NULL, "/home/me", "/home/me/.local/state/kilter"},
        {NULL, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const names[] = {"KILTER_RECORD_DIR", "XDG_STATE_HOME", "HOME"};
        const char *values[] = {rows[i].own, rows[i].state, rows[i].home};
        for (int k = 0; k < 3; k++)
            values[k] ? setenv(names[k], values[k], 1) : unsetenv(names[k]);
        char *path = NULL;
        kilter_error error;
        assert_int_equal(kl_record_dir(&path, &error), rows[i].path ? KILTER_OK : KILTER_ERR_USAGE);
        if (rows[i].path)
            assert_string_equal(path, rows[i].path);
        free(path);
    }
}

static void exit_codes_tell_who_can_mend_it(void **state) {
    (void)state;
    const struct {
        kilter_status status;
        int code;
    } rows[] = {{KILTER_OK, 0},         {KILTER_ENDED, 0},     {KILTER_ERR_USAGE, 2},
                {KILTER_ERR_INPUT, 2},  {KILTER_ERR_RANGE, 2}, {KILTER_ERR_TASK, 1},
                {KILTER_ERR_MEMORY, 1}, {KILTER_ERR_PEER, 1},  {KILTER_ERR_RECORD, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kilter_error error = {rows[i].status, "exit by a test that checks exit codes"};
        assert_int_equal(kilter_exit("sys_test", &error), rows[i].code);
    }
}

/* Return how often the signal was reported, or a code for the failure. */
static int is_asked_twice(void) {
    uint64_t calls = 0;
    int called = eventfd(0, EFD_CLOEXEC);
    if (!kl_interrupts_to(called))
        return 100;
    raise(SIGTERM);
    raise(SIGTERM); /* a second signal right after the first one belongs to the same request */
    return read(called, &calls, sizeof calls) == sizeof calls ? (int)calls : 101;
}

static int is_asked_until_it_ends(void) {
    if (!kl_interrupts_to(eventfd(0, EFD_CLOEXEC)))
        return 100;
    for (;; kl_nap_s(0.01))
        raise(SIGTERM);
}

static int end_of_child(int (*run)(void)) {
    int how = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(run());
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return how;
}

static void a_request_to_end_that_comes_twice_counts_once(void **state) {
    (void)state;
    int how = end_of_child(is_asked_twice);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 1);
    how = end_of_child(is_asked_until_it_ends);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
}

/* Fork a child and send SIGTERM to it, as a task may do. The signal must end the child, and the parent must
 * not notice it. */
static void who_was_forked_dies_of_its_own_sigterm(void **state) {
    (void)state;
    int called = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), how = -1;
    uint64_t count;
    kl_sigterm *sigterm = kl_sigterm_to(called);
    assert_non_null(sigterm);
    pid_t pid = fork();
    if (pid == 0)
        never_end(NULL);
    kill(pid, SIGTERM);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
    assert_true(read(called, &count, sizeof count) < 0);
    kill(getpid(), SIGTERM);
    assert_int_equal(read(called, &count, sizeof count), sizeof count);
    kl_sigterm_restore(sigterm);
    close(called);
}

/* Wait in a child process whose clock began months ago, as on a machine that has been up for months. */
static int wait_in_a_machine_up_for_months(void) {
    int offsets = unshare(CLONE_NEWTIME) == 0 ? open("/proc/self/timens_offsets", O_WRONLY) : -1;
    if (offsets < 0 || dprintf(offsets, "monotonic 10000000 0\n") < 0)
        return SKIPPED;
    close(offsets);
    pid_t pid = fork();
    if (pid == 0) {
        double now_s = kl_monotonic_s();
        struct timespec soon = kl_time_after(2.5), late = kl_time_after(1e9);
        double soon_s = (double)soon.tv_sec + 1e-9 * (double)soon.tv_nsec;
        bool right =
            now_s > 1e7 && soon_s >= now_s + 2.5 && soon_s < now_s + 1000 && soon.tv_nsec < 1000000000;
        _exit(right && (double)late.tv_sec > now_s + 1000 ? 0 : 1);
    }
    int how = -1;
    waitpid(pid, &how, 0);
    return how;
}

static void a_wait_ends_when_it_is_to_however_long_the_machine_is_up(void **state) {
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        int how = wait_in_a_machine_up_for_months();
        _exit(how == SKIPPED ? SKIPPED : how != 0);
    }
    int how = -1;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    if (WEXITSTATUS(how) == SKIPPED) {
        print_message("skipped: no time namespace can be made here\n");
        skip();
    }
    assert_int_equal(how, 0);
}

/* --- memory --- */

#define MEMINFO                                                                                              \
    { "proc/meminfo", "MemTotal: 9000 kB\nMemFree:  100 kB\nMemAvailable:    1000 kB\nSwapFree: 7 kB\n" }
#define GROUP(g)                                                                                             \
    { "proc/self/cgroup", g }
#define V1 "sys/fs/cgroup/memory"
#define V2 "sys/fs/cgroup"

static void the_least_of_host_and_groups_is_left(void **state) {
    (void)state;
    enum { FILES = 9 };
    static const struct {
        written files[FILES];
        uint64_t left;
    } cases[] = {
        {{{"proc/other", ""}}, UINT64_MAX},
        {{MEMINFO}, 1024000},
        {{MEMINFO, GROUP("0::/\n")}, 1024000},
        {{MEMINFO,
          GROUP("0::/a/b\n"),
          {V2 "/a/b/memory.max", "max\n"},
          {V2 "/a/b/memory.current", "5000\n"},
          {V2 "/a/memory.max", "9000\n"},
          {V2 "/a/memory.current", "6000\n"},
          {V2 "/a/memory.stat", "anon 7\ninactive_file 300\nactive_file 40\nfile 9999\n"}},
         3340},
        {{MEMINFO,
          GROUP("3:cpu:/c\n2:hugetlb,memory:/x\n0::/\n"),
          {V1 "/memory.limit_in_bytes", "9223372036854771712\n"},
          {V1 "/memory.usage_in_bytes", "77\n"},
          {V1 "/x/memory.limit_in_bytes", "500000\n"},
          {V1 "/x/memory.usage_in_bytes", "400000\n"},
          {V1 "/x/memory.stat", "inactive_file 9\ntotal_inactive_file 1000\ntotal_active_file 2\n"}},
         101002},
        /* inside a container, a process cannot see the path of its own control group */
        {{MEMINFO,
          GROUP("0::/hidden\n"),
          {V2 "/memory.max", "800\n"},
          {V2 "/memory.current", "900\n"},
          {V2 "/memory.stat", ""}},
         0},
        {{MEMINFO, GROUP("nonsense\n:\n0:\n")}, 1024000},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char *root = make_root(cases[c].files, FILES);
        assert_int_equal(kl_memory_left(root), cases[c].left);
        remove_root(root);
    }
    assert_true(kl_memory_left("") > 0);
}

static void words_are_quoted_as_a_shell_takes_them(void **state) {
    (void)state;
    char *words[] = {"plain-1.5", "two words", "", "it's", "a\nb"};
    static const char *const texts[] = {"",
                                        "plain-1.5",
                                        "plain-1.5 'two words'",
                                        "plain-1.5 'two words' ''",
                                        "plain-1.5 'two words' '' 'it'\\''s'",
                                        "plain-1.5 'two words' '' 'it'\\''s' 'a\nb'"};
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
        char *text = kl_words_text(n, words);
        assert_string_equal(text, texts[n]);
        free(text);
    }
}

static void a_program_knows_its_build(void **state) {
    (void)state;
    char build[KL_BUILD_BYTES], again[KL_BUILD_BYTES];
    kl_own_build(build);
    kl_own_build(again);
    assert_int_equal(strlen(build), KL_BUILD_BYTES - 1);
    assert_string_equal(build, again);
    char *words = kl_own_words(0);
    assert_non_null(strstr(words, "sys_test"));
    free(words);
}

/* Memory that only this process uses must count. Memory that it shares with other processes must not. */
static void a_process_knows_what_memory_it_has(void **state) {
    (void)state;
    enum { BYTES = 64 << 20, SLACK = 16 << 20 };
    const int kinds[] = {MAP_PRIVATE, MAP_SHARED};
    for (int i = 0; i < 2; i++) {
        uint64_t before = kl_process_memory();
        void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, kinds[i] | MAP_ANONYMOUS, -1, 0);
        assert_true(memory != MAP_FAILED && before > 0);
        memset(memory, 1, BYTES);
        uint64_t now = kl_process_memory(), grown = now > before ? now - before : 0;
        assert_true(kinds[i] == MAP_SHARED ? grown < SLACK : grown > BYTES - SLACK);
        munmap(memory, BYTES);
    }
}

typedef struct named_thread {
    const char *name;
    sem_t begun, end;
} named_thread;

static void *live_until_told(void *user) {
    named_thread *t = user;
    prctl(PR_SET_NAME, t->name);
    sem_post(&t->begun);
    sem_wait(&t->end);
    return NULL;
}

static void threads_are_found_by_how_their_names_begin(void **state) {
    (void)state;
    static const char *const names[] = {"kltest/one", "kltest/two", "klother", "kltest"};
    named_thread threads[4];
    pthread_t ids[4];
    for (int i = 0; i < 4; i++) {
        threads[i].name = names[i];
        assert_true(sem_init(&threads[i].begun, 0, 0) == 0 && sem_init(&threads[i].end, 0, 0) == 0);
        assert_int_equal(pthread_create(&ids[i], NULL, live_until_told, &threads[i]), 0);
        sem_wait(&threads[i].begun);
    }
    clockid_t clocks[4];
    assert_int_equal(kl_threads_named("kltest/", clocks, 4), 2);
    for (int i = 0; i < 2; i++)
        assert_true(kl_cpu_s(clocks[i]) > 0 && kl_cpu_s(clocks[i]) < 10);
    assert_int_equal(kl_threads_named("klother", clocks, 4), 1);
    clockid_t its;
    assert_int_equal(pthread_getcpuclockid(ids[2], &its), 0);
    assert_true(its == clocks[0]);
    /* three threads have a matching name, but the array has room for only two clocks */
    assert_int_equal(kl_threads_named("kltest", clocks, 2), 2);
    assert_int_equal(kl_threads_named("nobody", clocks, 4), 0);
    for (int i = 0; i < 4; i++) {
        sem_post(&threads[i].end);
        pthread_join(ids[i], NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_do_not_go_back),
        cmocka_unit_test(words_are_quoted_as_a_shell_takes_them),
        cmocka_unit_test(a_program_knows_its_build),
        cmocka_unit_test(waiting_is_not_being_busy),
        cmocka_unit_test(every_core_can_be_bound),
        cmocka_unit_test(cores_are_bound_in_pieces),
        cmocka_unit_test(openmp_is_told_how_many_cores_there_are),
        cmocka_unit_test(the_least_of_host_and_groups_is_left),
        cmocka_unit_test(a_process_knows_what_memory_it_has),
        cmocka_unit_test(processes_tell_how_they_ended),
        cmocka_unit_test(a_process_that_does_not_end_is_ended),
        cmocka_unit_test(children_are_started_at_any_time_and_tell_how_they_ended),
        cmocka_unit_test(many_children_are_asked_for_at_once),
        cmocka_unit_test(children_that_stay_are_ended),
        cmocka_unit_test(a_killed_opener_takes_supervisor_and_children_along),
        cmocka_unit_test(a_killed_supervisor_takes_its_children_along_and_is_known_to_be_gone),
        cmocka_unit_test(a_child_ends_even_if_its_parent_ended_before_it_asked),
        cmocka_unit_test(folders_of_the_dead_are_swept),
        cmocka_unit_test(private_folders_are_private),
        cmocka_unit_test(folders_are_made_with_those_above_them),
        cmocka_unit_test(records_go_where_the_environment_says),
        cmocka_unit_test(exit_codes_tell_who_can_mend_it),
        cmocka_unit_test(a_request_to_end_that_comes_twice_counts_once),
        cmocka_unit_test(who_was_forked_dies_of_its_own_sigterm),
        cmocka_unit_test(a_wait_ends_when_it_is_to_however_long_the_machine_is_up),
        cmocka_unit_test(threads_are_found_by_how_their_names_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
