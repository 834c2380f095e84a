/* A guard: a process that starts a launcher, waits for it, and writes to a file how the launcher ended. The
 * guard may outlive the process that started it (the keeper). So a later keeper can find the program, or
 * read how it ended.
 *
 *   keeper ──fork──▶ guard (own session, holds the lock) ──fork──▶ launcher ──▶ ranks
 *                      │  SIGTERM: end the launcher
 *                      └─ writes the file `ended`, when no process of the launcher is left
 *
 * If the launcher dies, its ranks become children of the guard, which kills them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "keeper/keeper.h"
#include "sys/sys.h"

static const double GRACE_S = 2;   /* seconds that a launcher has to end its ranks after SIGTERM */
static const double AGAIN_S = 0.2; /* SIGKILL is sent again after this many seconds if processes remain */

/* --- locks --- */

static bool lock(int file) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(file, F_OFD_SETLK, &whole) == 0;
}

int kl_lock_take(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file >= 0 && lock(file))
        return file;
    int why = errno == EACCES ? EAGAIN : errno;
    if (file >= 0)
        close(file);
    errno = why;
    return -1;
}

bool kl_lock_is_held(const char *path) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int file = open(path, O_RDWR | O_CLOEXEC);
    bool held = file >= 0 && fcntl(file, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    if (file >= 0)
        close(file);
    return held;
}

/* --- functions that run in the guard process --- */

static sigset_t guard_signals(void) {
    const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    return set;
}

/* Become the launcher. The system sends SIGTERM to the launcher if its guard dies. */
static void be_launcher(const kl_guard_job *job, pid_t parent, int failed) {
    sigset_t none;
    sigemptyset(&none);
    kl_end_with_parent(parent, SIGTERM);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; job->variables && job->variables[i]; i++)
        putenv(job->variables[i]);
    execvp(job->words[0], job->words);
    int why = errno;
    fprintf(stderr, "kilter run: starting %s: %s\n", job->words[0], strerror(why));
    (void)!write(failed, &why, sizeof why);
    _exit(127);
}

/* Start the launcher and return its process number. Return 0 if its program cannot be executed; *why is then
 * an errno. Return -1 if the system has no process or file left for it. */
static pid_t start_launcher(const kl_guard_job *job, int *why) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        be_launcher(job, parent, ends[1]);
    close(ends[1]);
    bool failed = pid > 0 && read(ends[0], why, sizeof *why) == (ssize_t)sizeof *why;
    close(ends[0]);
    if (failed)
        waitpid(pid, NULL, 0);
    return failed ? 0 : pid;
}

/* Wait for a signal until the time `until_s`. until_s = 0: wait for at most one hour. */
static int wait_for_signal(double until_s) {
    const sigset_t set = guard_signals();
    double rest_s = until_s > 0 ? until_s - kl_monotonic_s() : 3600;
    const struct timespec rest = kl_timespec(rest_s > 0 ? rest_s : 0);
    return sigtimedwait(&set, NULL, &rest);
}

/* Wait until the launcher ends. Pass the first SIGTERM on to it. If it still runs GRACE_S seconds later,
 * kill it. */
static int await_launcher(pid_t launcher) {
    double until_s = 0;
    bool asked = false;
    int status = 0;
    while (waitpid(launcher, &status, WNOHANG) != launcher) {
        if (wait_for_signal(until_s) == SIGTERM && !asked) {
            asked = true;
            kill(launcher, SIGTERM);
            kill(launcher, SIGCONT);
            until_s = kl_monotonic_s() + GRACE_S;
        }
        if (asked && kl_monotonic_s() >= until_s) {
            kill(launcher, SIGKILL);
            until_s = kl_monotonic_s() + AGAIN_S;
        }
    }
    return status;
}

static void kill_children(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *in = fopen(path, "re");
    long pid;
    while (in && fscanf(in, "%ld", &pid) == 1)
        kill((pid_t)pid, SIGKILL);
    if (in)
        fclose(in);
}

/* Kill the children that the launcher left. The children of a killed process then become children of the
 * guard, and are killed next. Repeat this while any are left, because new ones may have come since the list
 * was read. */
static void end_orphans(void) {
    for (;;) {
        pid_t ended;
        kill_children();
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (ended < 0 && errno == ECHILD)
            return;
        wait_for_signal(kl_monotonic_s() + AGAIN_S);
    }
}

/* Write how the launcher ended. If the disk is full, try again until SIGTERM comes: without the file, a
 * keeper would restart a program that is done. */
static void write_end(const kl_guard_job *job, const kl_keeper_end *end) {
    kl_buffer text = {0};
    kl_put_end(&text, end);
    while (kl_replace_file(job->ended, &text, NULL) != KILTER_OK &&
           wait_for_signal(kl_monotonic_s() + AGAIN_S) != SIGTERM)
        ;
    kl_buffer_free(&text);
}

static int guard(const kl_guard_job *job, int lock_file) {
    sigset_t set = guard_signals();
    char number[32];
    int why = 0;
    sigprocmask(SIG_SETMASK, &set, NULL);
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, 0);
    int bytes = snprintf(number, sizeof number, "%ld\n", (long)getpid());
    (void)!(pwrite(lock_file, number, (size_t)bytes, 0) == bytes);
    pid_t launcher = start_launcher(job, &why);
    kl_keeper_end end = {.attempt = job->attempt,
                         .how = KL_KEEPER_MISSING,
                         .code = why == ENOENT ? KL_KEEPER_NOT_FOUND : KL_KEEPER_NOT_EXECUTABLE};
    if (launcher < 0) {
        end.how = KL_KEEPER_EXITED;
        end.code = EX_OSERR;
    } else if (launcher > 0) {
        int status = await_launcher(launcher);
        bool exited = WIFEXITED(status);
        end.how = exited ? KL_KEEPER_EXITED : KL_KEEPER_SIGNALLED;
        end.code = (uint32_t)(exited ? WEXITSTATUS(status) : WTERMSIG(status));
    }
    end_orphans();
    write_end(job, &end);
    return 0;
}

/* Close all files except the standard streams and the guard's lock. The keeper's own lock must end with the
 * keeper. */
static int keep_only(int file) {
    const int place = STDERR_FILENO + 1;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    if (file != place && dup2(file, place) < 0)
        return file;
    close_range((unsigned)place + 1, UINT_MAX, 0);
    fcntl(place, F_SETFD, FD_CLOEXEC);
    return place;
}

/* --- functions that run in the keeper --- */

kilter_status kl_guard_start(const kl_guard_job *job, pid_t *pid, kilter_error *error) {
    int file = kl_lock_take(job->lock);
    if (file < 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "locking '%s': %s", job->lock,
                       errno == EAGAIN ? "another attempt runs" : strerror(errno));
    /* empty the lock's file until the guard has written its process number there; an old number may belong
     * to another process by now */
    if (ftruncate(file, 0) != 0) {
        int why = errno;
        close(file);
        return kl_fail(error, KILTER_ERR_SYSTEM, "writing '%s': %s", job->lock, strerror(why));
    }
    unlink(job->ended);
    fflush(NULL);
    *pid = fork();
    if (*pid == 0)
        _exit(guard(job, keep_only(file)));
    int why = errno;
    close(file);
    return *pid > 0 ? KILTER_OK
                    : kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", job->words[0], strerror(why));
}

/* Return the guard's process number, which is in the file of its lock; 0: the guard has not written it yet.
 */
static pid_t guard_in(const char *lock_path) {
    long pid = 0;
    char newline = 0;
    FILE *in = fopen(lock_path, "re");
    bool whole = in && fscanf(in, "%ld%c", &pid, &newline) == 2 && newline == '\n';
    if (in)
        fclose(in);
    return whole && pid > 1 ? (pid_t)pid : 0;
}

/* Open a descriptor of the process whose number is in the lock's file. Then check that the lock is still held
 * and that the number has not changed. If so, the open process is the guard; if not, it may be another
 * process with a reused number. */
void kl_guard_end(const char *lock_path) {
    pid_t pid = guard_in(lock_path);
    int process = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (process >= 0 && kl_lock_is_held(lock_path) && guard_in(lock_path) == pid)
        syscall(SYS_pidfd_send_signal, process, SIGTERM, NULL, 0);
    if (process >= 0)
        close(process);
}
