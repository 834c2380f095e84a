/* Test farms whose late peers call for help by files in a shared folder. The processes and the faults of the
 * folder are real. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "farm/farm_private.h"

enum { TASKS = 240, WORKERS = 3, EARLY_TASKS = 12, NOBODY = 65534 };

/* The fault of the shared folder that a test causes. */
typedef enum fault { NO_FAULT, FULL, FULL_AT_START, READ_ONLY, STALE, CLOCK, VANISHES, DEATHS } fault;

typedef struct plan { /* a test's settings, in memory that all processes share */
    fault fault;
    char folder[KL_ADDRESS_BYTES]; /* path of the farm's own folder, which is in the shared folder */
    atomic_uint begun, started;
} plan;

typedef struct self {
    bool slow;
    uint32_t done;
} self;

static plan *shared;
static uint8_t seen[TASKS];

static void allow_bytes(rlim_t bytes) {
    struct rlimit limit = {bytes, bytes};
    /* ignore the signal for files that grow too large, so that writing fails with an error instead */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int start(const kilter_worker *worker, void **state) {
    (void)worker;
    self *one = calloc(1, sizeof *one);
    one->slow = atomic_fetch_add(&shared->started, 1) == 0;
    *state = one;
    if (shared->fault == FULL_AT_START)
        allow_bytes(10);
    return 0;
}

static void stop(void *state) {
    free(state);
}

static void write_file(const char *folder, const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

/* Write signals that seem to come from other runs, and from peers that do not exist. */
static void write_stale(const char *folder) {
    write_file(folder, "SOS.0.1", "kilter call 1\nrun 0\npeer 1\nto 0\nleft 9\nrate 1\n");
    write_file(folder, "SOS.1.0", "kilter call 1\nrun 1\npeer 0\nto 0\nleft 9\nrate 1\n");
    write_file(folder, "SOS.1.9", "kilter call 1\nrun 1\npeer 999999\nto 0\nleft 9\nrate 1\n");
    write_file(folder, "SOS.1.8", "kilter call 1\nrun 7\npeer 1\nto 0\nleft 9\nrate 1\n");
    write_file(folder, "SOS.1.7", "no signal");
    write_file(folder, "SOS.1.", "");
    write_file(folder, "AID.1.1.4", "kilter offer 1\nrun 1\npeer 4000000000\nto 1\nleft 0\nrate 1\n");
    write_file(folder, "AID.1.2.1", "kilter offer 1\nrun 1\npeer 1\nto 2\nleft 0\nrate 0\n");
    write_file(folder, "AID.1.2.x", "kilter call 1\nrun 1\npeer 1\nto 2\nleft 0\nrate 0\n");
}

/* Shift the time of all files by some hours, as a host with a wrong clock does. */
static void shift_clock(const char *folder, int hours) {
    struct timespec now, times[2];
    DIR *files = opendir(folder);
    clock_gettime(CLOCK_REALTIME, &now);
    times[0] = times[1] = (struct timespec){now.tv_sec + 3600 * hours, 0};
    for (struct dirent *one; files && (one = readdir(files));)
        if (strcmp(one->d_name, "..") != 0)
            utimensat(dirfd(files), one->d_name, times, 0);
    if (files)
        closedir(files);
}

static void vanish(const char *folder) {
    char elsewhere[600];
    snprintf(elsewhere, sizeof elsewhere, "%s.away", folder);
    rename(folder, elsewhere);
}

static void do_fault(unsigned begun) {
    bool once = begun == EARLY_TASKS;
    if (shared->fault == FULL)
        allow_bytes(10);
    else if (shared->fault == READ_ONLY && once)
        chmod(shared->folder, 0500);
    else if (shared->fault == STALE && begun % 20 == 0)
        write_stale(shared->folder);
    else if (shared->fault == CLOCK)
        shift_clock(shared->folder, begun % 2 ? 1 : -1);
    else if (shared->fault == VANISHES && once)
        vanish(shared->folder);
    else if (shared->fault == DEATHS && (begun == 70 || begun == 71 || begun == 200))
        raise(SIGKILL);
}

/* Do a task in a millisecond. The first worker becomes slow after some tasks, so it falls behind. */
static int work(const kilter_task *task, kilter_result *result, void *state) {
    self *one = state;
    do_fault(atomic_fetch_add(&shared->begun, 1));
    bool slow = one->slow && ++one->done > EARLY_TASKS;
    double until_s = kl_monotonic_s() + (slow ? 40e-3 : 1e-3);
    while (kl_monotonic_s() < until_s)
        ;
    return kilter_result_put(result, &task->index, sizeof task->index);
}

static void take(const kilter_outcome *o, void *user) {
    uint64_t value = 0;
    (void)user;
    assert_int_equal(o->status, KILTER_OK);
    memcpy(&value, o->result.data, sizeof value);
    assert_int_equal(value, o->index);
    seen[o->index]++;
}

/* Open a farm, and store the name of the folder that the farm has made. */
static kilter_status open_farm(const char *folder, const char *transport, const char *policy,
                               kilter_farm **farm, kilter_error *error) {
    kilter_farm_options options = {.work = work,
                                   .start = start,
                                   .stop = stop,
                                   .workers = WORKERS,
                                   .team = "all",
                                   .transport = transport,
                                   .organise = "peers",
                                   .policy = policy,
                                   .shared_folder = folder,
                                   .attempts = 1000,
                                   .name = "folder",
                                   .record = "none"};
    kilter_status status = kilter_farm_open(&options, NULL, NULL, farm, error);
    if (status == KILTER_OK)
        snprintf(shared->folder, sizeof shared->folder, "%s", (*farm)->signals);
    return status;
}

typedef struct folder_case {
    fault fault;
    const char *transport, *policy;
    bool helps; /* true: calls for help, and offers of help, must come through the folder */
} folder_case;

/* Count the files with this prefix that have appeared since the watch of the folder began. */
static unsigned count_new(const char *events, ssize_t size, const char *prefix) {
    unsigned count = 0;
    for (ssize_t at = 0; at < size;) {
        const struct inotify_event *e = (const void *)(events + at);
        count += (e->mask & IN_MOVED_TO) && strncmp(e->name, prefix, strlen(prefix)) == 0;
        at += (ssize_t)(sizeof *e + e->len);
    }
    return count;
}

static void run_case(const folder_case *c, const char *folder) {
    static _Alignas(struct inotify_event) char events[1 << 20];
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    shared->fault = c->fault;
    atomic_store(&shared->begun, 0);
    atomic_store(&shared->started, 0);
    memset(seen, 0, sizeof seen);
    if (open_farm(folder, c->transport, c->policy, &farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, shared->folder, IN_MOVED_TO) >= 0);
    if (kilter_farm_run(farm, &(kilter_run){.tasks = TASKS, .done = take}, &error) != KILTER_OK)
        fail_msg("case %d: %s", (int)c->fault, error.text);
    ssize_t size = read(watch, events, sizeof events);
    close(watch);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(seen[i], 1);
    if (c->helps)
        assert_true(count_new(events, size, "SOS.") > 0 && count_new(events, size, "AID.") > 0);
    assert_int_equal(kilter_farm_close(farm, NULL), KILTER_OK);
}

/* Remove the files that a fault has left. Then check that the farm has removed its own folder. */
static void check_empty(const char *folder, fault fault) {
    char away[600];
    if (fault == VANISHES) {
        snprintf(away, sizeof away, "%s.away", shared->folder);
        kl_signal_folder_remove(away);
    }
    if (fault == READ_ONLY) {
        chmod(shared->folder, 0700);
        kl_signal_folder_remove(shared->folder);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* Run the remaining part of a test in a child process as a user other than root, because root
 * may write everywhere. */
static bool as_nobody(void) {
    int how = 0;
    pid_t child = getuid() == 0 ? fork() : 0;
    if (child == 0 && getuid() == 0)
        assert_true(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
    if (child == 0)
        return true;
    assert_true(waitpid(child, &how, 0) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0);
    return false;
}

static char *new_folder(void) {
    char *folder = strdup("/tmp/kilter-folder-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static void run_in_new_folder(const folder_case *c) {
    char *folder = new_folder();
    run_case(c, folder);
    check_empty(folder, c->fault);
    free(folder);
}

static void late_peers_get_help_through_the_folder(void **state) {
    (void)state;
    run_in_new_folder(&(folder_case){NO_FAULT, "zmq", "sos", true});
    run_in_new_folder(&(folder_case){NO_FAULT, "inproc", "sos-half", true});
}

static void a_folder_that_becomes_full_loses_nothing(void **state) {
    (void)state;
    run_in_new_folder(&(folder_case){FULL, "zmq", "sos", false});
}

static void stale_signals_change_nothing(void **state) {
    (void)state;
    run_in_new_folder(&(folder_case){STALE, "zmq", "sos", false});
}

static void a_clock_that_is_off_by_an_hour_changes_nothing(void **state) {
    (void)state;
    run_in_new_folder(&(folder_case){CLOCK, "zmq", "sos", true});
}

static void a_folder_that_vanishes_loses_nothing(void **state) {
    (void)state;
    run_in_new_folder(&(folder_case){VANISHES, "zmq", "sos", false});
}

static void deaths_of_callers_and_helpers_lose_nothing(void **state) {
    (void)state;
    run_in_new_folder(&(folder_case){DEATHS, "zmq", "sos", false});
}

static void a_folder_that_becomes_read_only_loses_nothing(void **state) {
    (void)state;
    if (!as_nobody())
        return;
    run_in_new_folder(&(folder_case){READ_ONLY, "zmq", "sos", false});
    if (getuid() == NOBODY)
        _exit(0);
}

/* --- shared folders that cannot be used at all --- */

static void refused(const char *folder, const char *reason) {
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    assert_int_equal(open_farm(folder, "zmq", "sos", &farm, &error), KILTER_ERR_USAGE);
    if (!strstr(error.text, "--shared-folder") || !strstr(error.text, folder) || !strstr(error.text, reason))
        fail_msg("%s", error.text);
}

static void an_unusable_folder_is_an_error_at_once(void **state) {
    (void)state;
    char *folder = new_folder();
    shared->fault = NO_FAULT;
    chmod(folder, 0555);
    if (as_nobody()) {
        refused(folder, "Permission denied");
        if (getuid() == NOBODY)
            _exit(0);
    }
    assert_int_equal(rmdir(folder), 0);
    refused(folder, "No such file or directory");
    refused("/dev/null", "Not a directory");
    free(folder);
}

static void a_worker_that_cannot_write_says_so(void **state) {
    (void)state;
    char *folder = new_folder();
    kilter_farm *farm = NULL;
    kilter_error error = {KILTER_OK, ""};
    shared->fault = FULL_AT_START;
    assert_int_equal(open_farm(folder, "zmq", "sos", &farm, &error), KILTER_OK);
    assert_int_equal(kilter_farm_run(farm, &(kilter_run){.tasks = TASKS, .done = take}, &error),
                     KILTER_ERR_NO_WORKER);
    if (!strstr(error.text, "shared folder") || !strstr(error.text, "File too large"))
        fail_msg("%s", error.text);
    kilter_farm_close(farm, NULL);
    check_empty(folder, NO_FAULT);
    free(folder);
}

static void only_policies_with_a_board_have_a_folder(void **state) {
    (void)state;
    static const char *const policies[] = {NULL, "help", "steal"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        kilter_farm *farm = NULL;
        kilter_error error = {KILTER_OK, ""};
        assert_int_equal(open_farm("/tmp", "zmq", policies[i], &farm, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, "--shared-folder"));
    }
}

static int make_shared(void **state) {
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_peers_get_help_through_the_folder),
        cmocka_unit_test(a_folder_that_becomes_full_loses_nothing),
        cmocka_unit_test(a_folder_that_becomes_read_only_loses_nothing),
        cmocka_unit_test(a_folder_that_vanishes_loses_nothing),
        cmocka_unit_test(stale_signals_change_nothing),
        cmocka_unit_test(a_clock_that_is_off_by_an_hour_changes_nothing),
        cmocka_unit_test(deaths_of_callers_and_helpers_lose_nothing),
        cmocka_unit_test(an_unusable_folder_is_an_error_at_once),
        cmocka_unit_test(a_worker_that_cannot_write_says_so),
        cmocka_unit_test(only_policies_with_a_board_have_a_folder),
    };
    return cmocka_run_group_tests(tests, make_shared, NULL);
}
