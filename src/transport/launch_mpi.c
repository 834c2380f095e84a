#include "transport/launch_mpi.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/sys.h"
#include "transport/mpi_kind.h"
#include "transport/wait_mpi.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

/* --- check which MPI the program uses --- */

#if defined OPEN_MPI
static const kl_mpi_kind OURS = KL_MPI_OPENMPI;
#elif defined MPICH
static const kl_mpi_kind OURS = KL_MPI_MPICH;
#else
static const kl_mpi_kind OURS = KL_MPI_UNKNOWN; /* a build for the simulator accepts every MPI */
#endif

kilter_status kl_mpi_check_library(const char *doing, kilter_error *error) {
    enum { VERSION_BYTES = 8192 }; /* bytes of the longest version text that an MPI returns */
    char text[VERSION_BYTES] = "";
    int length;
    MPI_Get_library_version(text, &length);
    kl_mpi_kind theirs = kl_mpi_of_version(text);
    if (theirs == OURS || OURS == KL_MPI_UNKNOWN)
        return KILTER_OK;
    return kl_fail(
        error, KILTER_ERR_USAGE,
        "%s: the program uses %s, but is linked with Kilter's library for %s; link it with the other "
        "library (libkilter-openmpi or libkilter-mpich)",
        doing, theirs == KL_MPI_UNKNOWN ? "another MPI" : kl_mpi_title(theirs), kl_mpi_title(OURS));
}

kilter_status kl_mpi_check_world(const char *doing, kilter_error *error) {
    int size;
    long several = kl_mpi_launched();
    kl_mpi_kind launcher = kl_mpi_of_launcher();
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 1 || several <= 1)
        return KILTER_OK;
    if (launcher != KL_MPI_UNKNOWN && OURS != KL_MPI_UNKNOWN && launcher != OURS)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "%s: the launcher belongs to %s, but this program is linked with %s; start it with %s",
                       doing, kl_mpi_title(launcher), kl_mpi_title(OURS), kl_mpi_launcher(OURS));
    return kl_fail(error, KILTER_ERR_USAGE,
                   "%s: the launcher started %ld processes or more, but MPI sees only one; use the mpirun of "
                   "the MPI this "
                   "program was built with",
                   doing, several);
}

/* --- does the launcher keep the other ranks alive when one dies? --- */

/* OUTLIVING: the environment variable that is set if the launcher keeps the other ranks alive when one dies.
 * HINT: tells the user how to start a program so that the launcher does this. */
#if defined OPEN_MPI
static const char OUTLIVING[] = "OMPI_MCA_orte_enable_recovery";
static const char HINT[] =
    "mpirun ends the whole job when a rank dies, unless it is started as mpirun --enable-recovery";
#elif defined MPICH
static const char OUTLIVING[] = "KILTER_MPI_SHIELD";
static const char HINT[] =
    "mpiexec ends the whole job when a rank dies, unless it is started as KILTER_MPI_SHIELD=1 mpiexec "
    "-disable-auto-cleanup";
#else /* in a simulation, no rank dies */
static const char OUTLIVING[] = "";
static const char *const HINT = NULL;
#endif

static bool ranks_outlive_others(void) {
    const char *value = getenv(OUTLIVING);
    return value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0 || strcmp(value, "yes") == 0);
}

const char *kl_mpi_hint(void) {
    return ranks_outlive_others() ? NULL : HINT;
}

bool kl_mpi_says_dead(int code) {
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
    int class = code;
    MPI_Error_class(code, &class);
    return class == MPIX_ERR_PROC_FAILED;
#else
    (void)code;
    return false;
#endif
}

/* --- the shield: a process between MPICH's launcher and a rank --- */

#ifdef MPICH

/* Pass signals on to the rank, and end when the rank ends. Do not pass on SIGUSR1, by which the launcher
 * reports another rank's death. */
static _Noreturn void be_shield(pid_t rank, bool is_master) {
    sigset_t all;
    sigfillset(&all);
    if (close_range(3, ~0U, 0) != 0)
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
    for (;;) {
        int status, signal = sigwaitinfo(&all, NULL);
        if (signal == SIGCHLD && waitpid(rank, &status, WNOHANG) == rank)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : is_master ? 128 + WTERMSIG(status) : 0);
        if (signal > 0 && signal != SIGCHLD && signal != SIGUSR1)
            kill(rank, signal);
    }
}

/* Run the rank in a child of the process that the launcher started. If a signal killed the process that the
 * launcher itself started, the launcher would kill all ranks of the host. */
static kilter_status raise_shield(kilter_error *error) {
    const char *number = getenv("PMI_RANK");
    if (!ranks_outlive_others() || !number)
        return KILTER_OK;
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t shield = getpid(), rank = fork();
    if (rank > 0) {
        signal(SIGCHLD, SIG_DFL);
        be_shield(rank, strcmp(number, "0") == 0);
    }
    int code = errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (rank < 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "KILTER_MPI_SHIELD: starting a process for rank %s: %s",
                       number, strerror(code));
    kl_end_with_parent(shield, SIGKILL);
    return KILTER_OK;
}

/* Forbid UCX, MPICH's network library, to read messages in the sender's memory, because the death of a sender
 * would then end the reader. MPI_Finalize sometimes hangs with this setting, but kl_mpi_end() does not call
 * MPI_Finalize if ranks outlive others. */
static void choose_ways(void) {
    if (ranks_outlive_others())
        setenv("UCX_TLS", "^cma", 0);
}

/* Ignore SIGUSR1, by which MPICH's launcher reports a death; its default action would end the rank. MPICH's
 * own handler asks the launcher which ranks are dead. If another rank dies before the answer, the launcher
 * fails and ends all ranks. Kilter's failure detector does not need MPICH's handler. A handler that the
 * program set before MPI started stays. */
static void ignore_word_of_death(const struct sigaction *before) {
    if (ranks_outlive_others() && before->sa_handler == SIG_DFL)
        signal(SIGUSR1, SIG_IGN);
    else if (ranks_outlive_others())
        sigaction(SIGUSR1, before, NULL);
}

#else

static kilter_status raise_shield(kilter_error *error) {
    (void)error;
    return KILTER_OK;
}

/* Tell Open MPI not to yield a rank's core each time the rank finds no message. With more ranks than cores,
 * Open MPI would yield the core, even between two tasks. Another process would then keep the core for a whole
 * time slice. Kilter's ranks sleep instead when they have no work. */
static void choose_ways(void) {
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
}
static void ignore_word_of_death(const struct sigaction *before) {
    (void)before;
}

#endif

/* --- starting MPI --- */

struct kl_mpi_watchdog {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool over;
    double patience_s;
};

static const double START_S = 300;

kilter_status kl_mpi_patience_s(double *patience_s, kilter_error *error) {
    const char *text = getenv("KILTER_MPI_START_S");
    char *end = NULL;
    double told_s = text && *text ? strtod(text, &end) : START_S;
    bool wrong = end && (end == text || *end || !(told_s >= 0 && told_s <= 1e6));
    *patience_s = wrong ? START_S : told_s;
    if (wrong)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "KILTER_MPI_START_S: '%s' is not a number of seconds from 0 to 1000000 (0: for ever)",
                       text);
    return KILTER_OK;
}

static const double LATE_S = 10, REST_MOST_S = 0.005;

/* After LATE_S seconds, print once that ranks are missing. After patience_s seconds, return an error;
 * patience_s = 0: wait for ever. */
static kilter_status look_at_clock(const char *doing, double waited_s, double patience_s, bool *said,
                                   kilter_error *error) {
    if (patience_s > 0 && waited_s > patience_s)
        return kl_fail(
            error, KILTER_ERR_PEER,
            "%s: not all ranks are there after %g s: a rank may have died or ended early; start the "
            "program again (KILTER_MPI_START_S sets how long to wait)",
            doing, patience_s);
    if (waited_s > LATE_S && !*said) {
        fprintf(stderr, "%s: not all ranks are there after %g s; still waiting\n", doing, LATE_S);
        *said = true;
    }
    return KILTER_OK;
}

kilter_status kl_mpi_await_ranks(MPI_Request *request, const char *doing, double patience_s,
                                 kilter_error *error) {
    kl_mpi_wait wait;
    double began_s = kl_monotonic_s();
    bool said = false;
    int there = 0;
    kilter_status status = KILTER_OK;
    kl_mpi_wait_begin(&wait);
    while (status == KILTER_OK && !there) {
        int code = kl_mpi_look_collective(&wait, request, !kl_mpi_ranks_die, &there);
        if (code != MPI_SUCCESS)
            status = kl_fail(error, kl_mpi_says_dead(code) ? KILTER_ERR_PEER : KILTER_ERR_MPI,
                             "%s: waiting for all ranks: MPI gave error %d", doing, code);
        else if (!there)
            status = look_at_clock(doing, kl_monotonic_s() - began_s, patience_s, &said, error);
        if (!there)
            kl_mpi_rest(&wait, false, REST_MOST_S);
    }
    kl_mpi_wait_end(&wait);
    return status;
}

static void *watch_start(void *arg) {
    kl_mpi_watchdog *v = arg;
    double until_s = kl_monotonic_s() + v->patience_s;
    pthread_mutex_lock(&v->lock);
    while (!v->over && kl_monotonic_s() < until_s) {
        struct timespec until = kl_time_after(until_s - kl_monotonic_s());
        pthread_cond_timedwait(&v->news, &v->lock, &until);
    }
    if (!v->over) {
        fprintf(stderr,
                "starting MPI: not all ranks are there after %g s, so a rank may have died; "
                "start the program again (KILTER_MPI_START_S sets how long to wait)\n",
                v->patience_s);
        _exit(1); /* end the process, because MPI has no function that stops a start in progress */
    }
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

static kilter_status begin_watchdog(kl_mpi_watchdog **watchdog, kilter_error *error) {
    double patience_s;
    kilter_status status = kl_mpi_patience_s(&patience_s, error);
    if (status != KILTER_OK || !kl_mpi_ranks_die || patience_s == 0)
        return status;
    kl_mpi_watchdog *v = calloc(1, sizeof *v);
    if (!v)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting MPI: memory ran out");
    kl_cond_init(&v->news);
    pthread_mutex_init(&v->lock, NULL);
    v->patience_s = patience_s;
    int code = kl_thread_start(&v->thread, watch_start, v);
    if (code != 0) {
        free(v);
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting MPI: starting a thread: %s", strerror(code));
    }
    *watchdog = v;
    return KILTER_OK;
}

void kl_mpi_started(kl_mpi_watchdog *v) {
    if (!v)
        return;
    pthread_mutex_lock(&v->lock);
    v->over = true;
    pthread_cond_signal(&v->news);
    pthread_mutex_unlock(&v->lock);
    pthread_join(v->thread, NULL);
    pthread_cond_destroy(&v->news);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

kilter_status kl_mpi_start(bool *started, int *provided, kl_mpi_watchdog **watchdog, kilter_error *error) {
    int running = 0, finished = 0;
    *started = false;
    *watchdog = NULL;
    kilter_status status = kl_mpi_check_library("opening the mpi transport", error);
    if (status != KILTER_OK)
        return status;
    MPI_Initialized(&running);
    MPI_Finalized(&finished);
    if (finished)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening the mpi transport: MPI_Finalize was called already; open the transport "
                       "before that call");
    if (running) {
        MPI_Query_thread(provided);
        return KILTER_OK;
    }
    status = raise_shield(error); /* raise_shield() forks, so call it before the process has threads */
    if (status == KILTER_OK)
        status = begin_watchdog(watchdog, error);
    if (status != KILTER_OK)
        return status;
    choose_ways();
    struct sigaction before = {.sa_handler = SIG_DFL};
    sigaction(SIGUSR1, NULL, &before);
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, provided);
    if (code != MPI_SUCCESS) {
        kl_mpi_started(*watchdog);
        *watchdog = NULL;
        return kl_fail(error, KILTER_ERR_MPI, "starting MPI: MPI_Init_thread gave error %d", code);
    }
    ignore_word_of_death(&before);
    *started = true;
    return KILTER_OK;
}

/* --- ending MPI --- */

/* Remove this job's files in the shared memory of this host. Ranks of Open MPI leave such files behind if
 * they end without MPI_Finalize. Living ranks do not need the names of the files, because they have mapped
 * them. */
static void sweep_shared_memory(void) {
    const char *job = getenv("OMPI_MCA_ess_base_jobid");
    char pattern[128];
    if (!job)
        return;
    snprintf(pattern, sizeof pattern, "/dev/shm/vader_segment.*.%u.%lx.*", (unsigned)geteuid(),
             strtoul(job, NULL, 10));
    glob_t found;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
    globfree(&found);
}

void kl_mpi_end(bool rank_failed) {
    if (!rank_failed && !ranks_outlive_others()) {
        MPI_Finalize();
        return;
    }
    sweep_shared_memory();
}

void kl_mpi_keep(const void *memory) {
#ifdef __SANITIZE_ADDRESS__
    __lsan_ignore_object(memory);
#else
    (void)memory;
#endif
}
