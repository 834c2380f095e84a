/* Run one command and collect its outputs. The command leads its own session, so that all its processes
 * can be ended together, and none can read from a terminal. Its input is empty. Its outputs go through
 * pipes, and large outputs are moved to files. A process that the command leaves behind keeps running, but
 * its later output is lost. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "map.h"
#include "sys/sys.h"

enum { LOOK_BYTES = 8 << 20 };                /* bytes of output between two checks of free disk space */
enum { INLINE_MOST = 64 * 1024 };             /* an output with at most this many bytes is kept in memory */
static const double MEMORY_LOOK_S = 50e-3;    /* seconds between two checks of the host's free memory */
static const double OTHERS_LOOK_S = 5e-3;     /* seconds between two looks at the processes of a command that
                                               * is being ended */
static const double TERM_PATIENCE_S = 1;      /* seconds that a command gets to end after SIGTERM, before
                                               * SIGKILL */
static const size_t REMOTE_MOST = 500000000u; /* most bytes of an output that is kept in memory because
                                               * there is no folder for files */

typedef struct stream { /* the standard output or the standard error of a command */
    int fd;             /* −1: closed */
    int file;           /* descriptor of the output's file; −1: the output is in memory */
    kl_buffer *kept;
    uint64_t bytes;
    char name[512];                /* name of the output's file */
    int error;                     /* errno of the failed write to the output's file; 0: none failed */
    uint64_t most;                 /* greatest size of this output in bytes; 0: no limit was given */
    uint64_t disk_left, looked_at; /* disk_left: bytes to leave free on the disk; looked_at: value of `bytes`
                                    * at the last check of the disk */
} stream;

/* --- moving large outputs to files --- */

static bool write_all(stream *s, const uint8_t *data, size_t size) {
    while (size > 0) {
        ssize_t wrote = write(s->file, data, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            s->error = errno;
            return false;
        }
        data += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

/* Move an output from memory to a file. */
static void begin_file(stream *s) {
    s->file = open(s->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (s->file < 0)
        s->error = errno;
    else if (write_all(s, s->kept->data, s->kept->size))
        kl_buffer_clear(s->kept);
}

/* Return whether the output leaves enough free space on the disk. */
static bool disk_suffices(stream *s) {
    struct statvfs disk;
    if (s->file < 0 || s->bytes - s->looked_at < LOOK_BYTES)
        return true;
    s->looked_at = s->bytes;
    return fstatvfs(s->file, &disk) != 0 || (uint64_t)disk.f_bavail * disk.f_frsize >= s->disk_left;
}

static void take(stream *s, const uint8_t *data, size_t size) {
    s->bytes += size;
    if (s->error)
        return; /* drop further output until the command has been ended */
    if (s->most > 0 && s->bytes > s->most)
        s->error = EFBIG;
    else if (!disk_suffices(s))
        s->error = ENOSPC;
    if (s->error)
        return;
    if (s->file < 0 && *s->name && s->kept->size + size > INLINE_MOST)
        begin_file(s);
    if (s->error)
        return;
    if (s->file >= 0) {
        write_all(s, data, size);
        return;
    }
    if (s->kept->size + size > REMOTE_MOST)
        s->error = EFBIG;
    else
        kl_put_bytes(s->kept, data, size);
    if (s->kept->failed)
        s->error = ENOMEM;
}

static void close_stream(stream *s) {
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* Read what is in the pipe now. Return false at the end of the output. */
static bool read_some(stream *s) {
    uint8_t bytes[INLINE_MOST];
    ssize_t got = read(s->fd, bytes, sizeof bytes);
    if (got > 0)
        take(s, bytes, (size_t)got);
    else if (got == 0 || errno != EINTR)
        close_stream(s);
    return s->fd >= 0;
}

/* Read the rest of an output after the command has ended. A process that the command left behind may write
 * for ever, so read only what is in the pipe now. */
static void drain(stream *s) {
    int there = 0;
    if (s->fd >= 0 && ioctl(s->fd, FIONREAD, &there) != 0)
        there = 0;
    for (uint64_t until = s->bytes + (uint64_t)there; s->bytes < until && read_some(s);)
        ;
    close_stream(s);
    if (s->file >= 0 && close(s->file) != 0 && !s->error)
        s->error = errno;
}

/* --- starting --- */

/* Find the file of a program in the folders of PATH, as a shell would. NULL: not found. */
static char *look_up(const char *program) {
    const char *path = getenv("PATH");
    struct stat about;
    if (strchr(program, '/'))
        return strdup(program);
    for (path = path ? path : "/usr/bin:/bin"; path;
         path = strchr(path, ':') ? strchr(path, ':') + 1 : NULL) {
        int size = (int)strcspn(path, ":");
        char *file = kl_text("%.*s/%s", size > 0 ? size : 1, size > 0 ? path : ".", program);
        if (file && stat(file, &about) == 0 && S_ISREG(about.st_mode) && access(file, X_OK) == 0)
            return file;
        free(file);
    }
    return NULL;
}

/* Return whether the shell has a function of this name. The shell would call the function instead of the
 * program. */
static bool is_function(const char *program) {
    char *variable = kl_text("BASH_FUNC_%s%%%%", program);
    bool is = variable && getenv(variable);
    free(variable);
    return is;
}

static const char *file_of(kl_map_spawner *s, const char *program) {
    if (s->program && strcmp(s->program, program) == 0)
        return s->path;
    free(s->program);
    free(s->path);
    s->program = strdup(program);
    s->path = is_function(program) ? NULL : look_up(program);
    return s->path;
}

/* Split a command that needs no shell into its arguments. Return the program's file; NULL: the command
 * needs a shell. */
static const char *make_words(kl_map_spawner *s, const kl_map_template *t, const kl_map_fill *fill) {
    kl_buffer_clear(&s->words);
    size_t count = kl_map_put_words(t, fill, &s->words);
    const char *file = count > 0 ? file_of(s, (const char *)s->words.data) : NULL;
    char **argv = file ? kl_array_grow(s->argv, &s->argv_room, count + 1, sizeof *argv) : NULL;
    if (!argv)
        return NULL;
    s->argv = argv;
    char *word = (char *)s->words.data;
    for (size_t i = 0; i < count; i++, word += strlen(word) + 1)
        argv[i] = word;
    argv[count] = NULL;
    return file;
}

static const char *make_line(kl_map_spawner *s, const kl_map_template *t, const kl_map_fill *fill) {
    kl_buffer_clear(&s->line);
    kl_map_put_line(t, fill, &s->line);
    kl_put_u8(&s->line, 0);
    char **argv = kl_array_grow(s->argv, &s->argv_room, 4, sizeof *argv);
    if (!argv || s->line.failed)
        return NULL;
    s->argv = argv;
    argv[0] = (char *)(uintptr_t)s->shell;
    argv[1] = s->dash_c;
    argv[2] = (char *)s->line.data;
    argv[3] = NULL;
    return s->shell;
}

static int spawn_with(const kl_map_spawner *s, const char *file, const int ends[2], pid_t *pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_adddup2(&files, s->null, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    int code = posix_spawn(pid, file, &files, &how, s->argv, s->environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return code;
}

/* Start the command as a new process. Return 0, or an errno value. */
static int start(kl_map_spawner *s, const char *file, stream streams[2], pid_t *pid) {
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(err, O_CLOEXEC) != 0) {
        int code = errno;
        close(out[0]);
        close(out[1]);
        return code;
    }
    int code = spawn_with(s, file, (const int[]){out[1], err[1]}, pid);
    close(out[1]);
    close(err[1]);
    streams[0].fd = out[0];
    streams[1].fd = err[0];
    return code;
}

/* --- waiting --- */

typedef struct waiting {
    pid_t pid;
    int ended; /* descriptor that becomes readable when the command has ended; −1: none */
    double limit_at_s, kill_at_s;
    bool timed_out, refused; /* refused: the command is being ended because its output cannot be kept */
} waiting;

static void end_by(waiting *w, double now_s) {
    w->limit_at_s = HUGE_VAL;
    w->kill_at_s = now_s + TERM_PATIENCE_S;
    kl_signal_session(w->pid, SIGTERM);
    kl_signal_session(w->pid, SIGCONT);
}

/* End the command if it has run for too long. End it also if its output cannot be kept, because it might
 * write for ever. */
static void end_late(waiting *w, const stream streams[2]) {
    double now_s = kl_monotonic_s();
    bool lost = streams[0].error || streams[1].error;
    if (now_s >= w->kill_at_s) {
        kl_signal_session(w->pid, SIGKILL);
        w->kill_at_s = HUGE_VAL;
    } else if (lost && !w->refused) {
        w->refused = true;
        end_by(w, now_s);
    } else if (now_s >= w->limit_at_s) {
        w->timed_out = true;
        end_by(w, now_s);
    }
}

/* Read the command's outputs until it has ended. */
static void wait_for(waiting *w, stream streams[2]) {
    bool ended =
        w->ended < 0; /* without the descriptor, the end of both outputs shows the end of the command */
    while (!ended || (w->ended < 0 && (streams[0].fd >= 0 || streams[1].fd >= 0))) {
        struct pollfd fds[] = {{.fd = streams[0].fd, .events = POLLIN},
                               {.fd = streams[1].fd, .events = POLLIN},
                               {.fd = w->ended, .events = POLLIN}};
        double next_s = fmin(w->limit_at_s, w->kill_at_s);
        struct timespec rest = kl_timespec(fmax(next_s - kl_monotonic_s(), 0));
        if (ppoll(fds, 3, next_s < HUGE_VAL ? &rest : NULL, NULL) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < 2; i++)
            if (fds[i].revents)
                read_some(&streams[i]);
        ended |= fds[2].revents != 0;
        end_late(w, streams);
    }
}

/* End the other processes of a command that Kilter has ended, after the command's first process is gone. Wait
 * for their end until kill_at_s, but not longer than TERM_PATIENCE_S. Then kill them. */
static void end_others(const waiting *w) {
    double until_s = fmin(w->kill_at_s, kl_monotonic_s() + TERM_PATIENCE_S);
    while (kl_signal_session(w->pid, 0) && kl_monotonic_s() < until_s)
        kl_nap_s(OTHERS_LOOK_S);
    kl_signal_session(w->pid, SIGKILL);
}

/* Return the status of the command that has ended, as waitpid() gives it. */
static int status_of(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static void fill_in(kl_map_result *r, const stream streams[2], const waiting *w, int status) {
    int error = streams[0].error ? streams[0].error : streams[1].error;
    uint64_t most = streams[0].most > 0 ? streams[0].most : REMOTE_MOST;
    r->code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0;
    r->signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
    r->end = w->timed_out ? KL_MAP_TIMED_OUT : error ? KL_MAP_LOST_OUTPUT : KL_MAP_EXITED;
    if (error == EFBIG)
        snprintf(r->why, sizeof r->why, "stopped a command because its output exceeds %.6g MB, %s",
                 (double)most / 1e6,
                 streams[0].most > 0 ? "the limit of --output-limit" : "the most that can be kept in memory");
    else if (error == ENOSPC)
        snprintf(
            r->why, sizeof r->why,
            "stopped a command because its output fills the disk of %.60s; make room there, or set TMPDIR",
            streams[0].name);
    else if (error)
        snprintf(r->why, sizeof r->why, "keeping its output in %.80s: %s", streams[0].name, strerror(error));
    r->out_bytes = streams[0].bytes;
    r->err_bytes = streams[1].bytes;
    r->out = (kilter_bytes){streams[0].kept->data, streams[0].kept->size};
    r->err = (kilter_bytes){streams[1].kept->data, streams[1].kept->size};
    if (streams[0].file >= 0)
        snprintf(r->out_file, sizeof r->out_file, "%s", streams[0].name);
    if (streams[1].file >= 0)
        snprintf(r->err_file, sizeof r->err_file, "%s", streams[1].name);
}

static void refuse(kl_map_result *r, int code) {
    r->end = KL_MAP_NOT_STARTED;
    snprintf(r->why, sizeof r->why, "%s%s", strerror(code),
             code == E2BIG ? ": its arguments are too long for the system" : "");
}

static void set_environment(kl_map_spawner *s, const kl_map_fill *fill) {
    snprintf(s->number, sizeof s->number, "PARALLEL_SEQ=%llu", kl_ull(fill->number));
    snprintf(s->place, sizeof s->place, "PARALLEL_JOBSLOT=%u", fill->slot);
}

/* Choose names for the files of large outputs. A worker that replaces a dead one must not use the dead
 * worker's files. */
static void name_files(const kl_map_spawner *s, const kl_map_fill *fill, stream streams[2]) {
    static const char *const ENDS[] = {"out", "err"};
    for (int i = 0; i < 2 && *s->folder; i++)
        snprintf(streams[i].name, sizeof streams[i].name, "%s/%llu-%ld.%s", s->folder, kl_ull(fill->number),
                 (long)getpid(), ENDS[i]);
}

/* Start the command and wait until it has ended. Meanwhile its process group is in the table of running
 * commands. Return 0, or an errno value that says why the command could not be started. */
static int run_file(kl_map_spawner *s, const char *file, double limit_s, stream streams[2],
                    kl_map_result *r) {
    waiting w = {.ended = -1, .limit_at_s = kl_monotonic_s() + limit_s, .kill_at_s = HUGE_VAL};
    atomic_store(&s->slot->command, KL_MAP_STARTING);
    if (atomic_load(&s->guard->stopping)) { /* all commands were told to end since the last check */
        atomic_store(&s->slot->command, 0);
        r->end = KL_MAP_STOPPED;
        return 0;
    }
    int code = start(s, file, streams, &w.pid);
    if (code != 0) {
        atomic_store(&s->slot->command, 0);
        close_stream(&streams[0]);
        close_stream(&streams[1]);
        return code;
    }
    atomic_store(&s->slot->command, w.pid);
    if (atomic_load(&s->guard->ending)) /* this command began while all commands were being ended */
        kill(-w.pid, SIGTERM);
    w.ended = (int)syscall(SYS_pidfd_open, w.pid, 0);
    wait_for(&w, streams);
    if (w.timed_out || w.refused || atomic_load(&s->guard->ending))
        end_others(&w);
    int status = status_of(w.pid);
    atomic_store(&s->slot->command, 0);
    if (w.ended >= 0)
        close(w.ended);
    drain(&streams[0]);
    drain(&streams[1]);
    fill_in(r, streams, &w, status);
    return 0;
}

/* Run the command without a shell if it needs none. If the system cannot execute the file, the shell runs the
 * command. A shell can run a script that has no first line "#!". If the file is not a script, the shell's
 * message says what is wrong. */
static int run_started(kl_map_spawner *s, const kl_map_template *t, const kl_map_fill *fill, double limit_s,
                       stream streams[2], kl_map_result *r) {
    const char *file = make_words(s, t, fill);
    int code = file ? run_file(s, file, limit_s, streams, r) : ENOEXEC;
    if (code != ENOEXEC && code != ENOENT && code != EACCES)
        return code;
    file = make_line(s, t, fill);
    return file ? run_file(s, file, limit_s, streams, r) : ENOMEM;
}

/* Return whether a command runs in another slot. */
static bool others_run(const kl_map_spawner *s) {
    for (uint32_t i = 0; i < s->guard->slots; i++)
        if (&s->guard->slot[i] != s->slot && atomic_load(&s->guard->slot[i].command) > 0)
            return true;
    return false;
}

/* Wait until the memory that the command needs is free. Do not wait if no other command runs here, because
 * waiting would not help. */
static void wait_for_memory(const kl_map_spawner *s) {
    uint64_t needed = s->guard->needs.memory;
    while (needed > 0 && !atomic_load(&s->guard->stopping) && kl_memory_left("") < needed && others_run(s))
        kl_nap_s(MEMORY_LOOK_S);
}

void kl_map_run_command(kl_map_spawner *s, const kl_map_template *t, const kl_map_fill *fill, double limit_s,
                        kl_map_result *r) {
    const stream none = {
        .fd = -1, .file = -1, .most = s->guard->needs.output_most, .disk_left = s->guard->disk_left};
    stream streams[2] = {none, none};
    streams[0].kept = &s->out;
    streams[1].kept = &s->err;
    r->number = fill->number;
    r->slot = fill->slot;
    wait_for_memory(s);
    r->began_s = kl_unix_time_s();
    if (atomic_load(&s->guard->stopping)) {
        r->end = KL_MAP_STOPPED;
        return;
    }
    kl_buffer_clear(&s->out);
    kl_buffer_clear(&s->err);
    set_environment(s, fill);
    name_files(s, fill, streams);
    double began_s = kl_monotonic_s();
    int code = run_started(s, t, fill, limit_s, streams, r);
    if (code != 0)
        refuse(r, code);
    r->took_s = kl_monotonic_s() - began_s;
    if (atomic_load(&s->guard->ending))
        r->end = KL_MAP_STOPPED;
}

/* --- the parts of the environment that all commands share --- */

static const char *shell_of(void) {
    const char *names[] = {getenv("PARALLEL_SHELL"), getenv("SHELL")};
    for (size_t i = 0; i < 2; i++)
        if (names[i] && *names[i] == '/' && access(names[i], X_OK) == 0)
            return names[i];
    return "/bin/sh";
}

/* Return whether the list `variables` has a variable with the same name as `variable`. */
static bool is_replaced(const kl_buffer *variables, const char *variable) {
    size_t name = strcspn(variable, "=") + 1;
    for (const char *at = (const char *)variables->data; at < (const char *)variables->data + variables->size;
         at += strlen(at) + 1)
        if (strncmp(at, variable, name) == 0)
            return true;
    return false;
}

static kilter_status copy_environment(kl_map_spawner *s, kilter_error *error) {
    size_t count = 0, kept = 0;
    uint32_t slot = (uint32_t)(s->slot - s->guard->slot);
    kl_put_bytes(&s->variables, "PARALLEL_SEQ=\0PARALLEL_JOBSLOT=", 31);
    kl_put_u8(&s->variables, 0);
    size_t own = s->variables.size;
    kl_map_needs_variables(&s->guard->needs, slot, &s->variables);
    while (environ[count])
        count++;
    s->environment = calloc(count + 3 + s->variables.size, sizeof *s->environment);
    if (!s->environment || s->variables.failed)
        return kl_fail(error, KILTER_ERR_MEMORY, "copying the environment: memory ran out");
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(&s->variables, environ[i]))
            s->environment[kept++] = environ[i];
    for (char *at = (char *)s->variables.data + own; at < (char *)s->variables.data + s->variables.size;
         at += strlen(at) + 1)
        s->environment[kept++] = at;
    s->environment[kept++] = s->number;
    s->environment[kept] = s->place;
    return KILTER_OK;
}

kilter_status kl_map_spawner_open(kl_map_spawner *s, kl_map_guard *guard, kl_map_slot *slot,
                                  kilter_error *error) {
    *s = (kl_map_spawner){
        .shell = shell_of(), .folder = guard->folder, .guard = guard, .slot = slot, .dash_c = "-c"};
    s->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->null < 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "opening /dev/null: %s", strerror(errno));
    return copy_environment(s, error);
}

void kl_map_spawner_close(kl_map_spawner *s) {
    close(s->null);
    kl_buffer_free(&s->words);
    kl_buffer_free(&s->line);
    kl_buffer_free(&s->out);
    kl_buffer_free(&s->err);
    kl_buffer_free(&s->variables);
    free(s->environment);
    free(s->argv);
    free(s->program);
    free(s->path);
}
