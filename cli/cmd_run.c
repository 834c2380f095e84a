/* kilter run: start a program as master here and as workers on other hosts, through ssh. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"
#include "sys/sys.h"
#include "transport/transport.h"

/* Port numbers below those that the system assigns itself, so that no process gets the port before the
 * master. */
enum { PORT_FIRST = 10000, PORT_COUNT = 20000, PORT_TRIES = 200, WORKERS_MOST = 10000 };

enum { AGAIN_MOST = 100 }; /* greatest number of times that a host restarts one of its workers */
static const double END_PATIENCE_S =
    5; /* seconds that hosts get to end their workers after the master has ended */

typedef struct run_host {
    char *name;
    uint32_t workers; /* number of workers; 0: one for each processing unit of the host */
    pid_t pid;        /* number of the ssh process; 0: it is not started, or has ended */
    int input; /* ssh's standard input: it carries the key, and stays open while the workers may work */
    bool failed;
} run_host;

typedef struct run_options {
    run_host *hosts;
    size_t host_count;
    const char *ssh, *listen;
    char **program; /* the program and its arguments; NULL is the last entry */
} run_options;

typedef struct run_state {
    const run_options *options;
    char *key_file, *listen, *join;
    kl_key key;
    pid_t master;
    int code; /* exit code of the master, after it has ended */
} run_state;

/* --- the command line --- */

static kilter_status add_host(const kl_value *v) {
    static const kl_option count = {.kind = KL_OPTION_UINT32, .least = 1, .most = WORKERS_MOST};
    run_options *options = v->into;
    run_host *host = &options->hosts[options->host_count];
    const char *colon = strrchr(v->text, ':');
    int length = (int)(colon ? colon - v->text : (ptrdiff_t)strlen(v->text));
    *host = (run_host){.input = -1};
    if (colon && kl_option_set(&count, v->said, colon + 1, &host->workers, NULL) != KILTER_OK)
        return kl_fail(v->error, KILTER_ERR_USAGE,
                       "%s: '%s': after the colon, give the number of workers, 1 to %d", v->said, v->text,
                       WORKERS_MOST);
    if (length == 0 || *v->text == '-')
        return kl_fail(v->error, KILTER_ERR_USAGE, "%s: '%.*s' is not the name of a host", v->said, length,
                       v->text);
    if (!(host->name = kl_text("%.*s", length, v->text)))
        return kl_fail(v->error, KILTER_ERR_MEMORY, "%s: memory ran out", v->said);
    options->host_count++;
    return KILTER_OK;
}

#define AT(member) .offset = offsetof(run_options, member)

static const kl_option rows[] = {
    {"host", "HOST[:N]",
     "Start N workers on HOST (default: one for each processing unit). The option may be repeated.",
     KL_OPTION_OTHER, .read = add_host, .repeats = true},
    {"ssh", "COMMAND",
     "Reach a host with COMMAND HOST SCRIPT (default: ssh -o BatchMode=yes, which never asks for a "
     "password).",
     KL_OPTION_TEXT, AT(ssh), .repeats = true},
    {"listen", "ADDRESS", "Address of this machine that the hosts reach (default: its name).", KL_OPTION_TEXT,
     AT(listen), .repeats = true},
};

static int read_words(const kl_command *command, int argc, char **argv, run_options *options) {
    int first, code = kl_cmd_read(command, argc, argv, options, &first);
    if (code != EXIT_SUCCESS)
        return code;
    if (first < argc && strcmp(argv[first - 1], "--") != 0)
        return kl_cmd_usage(command, "'%s': write -- before the program", argv[first]);
    if (first >= argc)
        return kl_cmd_usage(command, "no program given: write it after --");
    if (options->host_count == 0)
        return kl_cmd_usage(command, "no host given: name one with --host");
    options->program = argv + first;
    return EXIT_SUCCESS;
}

/* --- the master's address and key --- */

static bool is_free(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return bound;
}

static kilter_status choose_endpoints(run_state *r, kilter_error *error) {
    char host[KL_HOST_BYTES];
    uint64_t draw = (uint64_t)getpid();
    int port = 0, tries = 0;
    do
        port = PORT_FIRST + (int)(kl_mix64(draw++) % PORT_COUNT);
    while (!is_free(port) && ++tries < PORT_TRIES);
    kl_host_name(host);
    const char *given = r->options->listen;
    r->listen = kl_text("tcp://%s:%d", given ? given : "*", port);
    r->join = kl_text("tcp://%s:%d", given ? given : host, port);
    if (!r->listen || !r->join)
        return kl_fail(error, KILTER_ERR_MEMORY, "choosing where to listen: memory ran out");
    return kl_zmq_check(r->listen, error) == KILTER_OK ? kl_zmq_check(r->join, error) : KILTER_ERR_USAGE;
}

/* Make a key for this run, in memory, under a name by which the master can open it. A killed process leaves
 * nothing behind. No program that is started here inherits the file. */
static kilter_status make_key(run_state *r, kilter_error *error) {
    kl_buffer text = {0};
    kilter_status status = kl_key_make(&r->key, error);
    if (status != KILTER_OK)
        return status;
    kl_key_write(&r->key, true, &text);
    int file = memfd_create("farm.key", MFD_CLOEXEC); /* open until this process ends */
    bool made = file >= 0 && fchmod(file, 0600) == 0 && !text.failed &&
                write(file, text.data, text.size) == (ssize_t)text.size;
    if (made)
        r->key_file = kl_text("/proc/%ld/fd/%d", (long)getpid(), file);
    kl_buffer_free(&text);
    return r->key_file ? KILTER_OK
                       : kl_fail(error, KILTER_ERR_SYSTEM, "making the key of the run: %s", strerror(errno));
}

/* --- commands for the hosts --- */

/* Return the place of Kilter's options: after the program's own, but before a "--". */
static size_t own_count(char *const *program) {
    size_t count = 1;
    while (program[count] && strcmp(program[count], "--") != 0)
        count++;
    return count;
}

static void put_text(kl_buffer *out, const char *text) {
    kl_put_bytes(out, text, strlen(text));
}

/* Append a text as one word of a shell. */
static void put_quoted(kl_buffer *out, const char *word) {
    put_text(out, "'");
    for (; *word; word++)
        if (*word == '\'')
            put_text(out, "'\\''");
        else
            kl_put_bytes(out, word, 1);
    put_text(out, "' ");
}

/* Switch off the shell's job messages, which would confuse the user.
 *
 * The host's shell reads the key, starts the workers in the same folder if it exists, gives each the key,
 * restarts a killed worker (except after SIGTERM), and ends them when its input is closed. printf is part of
 * the shell, so the key appears in no list of processes. */
static void put_script(const run_state *r, const run_host *host, kl_buffer *out) {
    char *const *program = r->options->program;
    size_t own = own_count(program);
    char folder[4096], numbers[64];
    if (getcwd(folder, sizeof folder)) {
        put_text(out, "cd ");
        put_quoted(out, folder);
        put_text(out, "2>/dev/null; ");
    }
    put_text(out, "key=; while IFS= read -r line && [ \"$line\" != end ]; do key=\"$key$line\n\"; done; "
                  "one() { trap '{ kill $worker; wait $worker; } 2>/dev/null; exit 143' TERM; while :; do "
                  "printf %s \"$key\" | ");
    for (size_t i = 0; i < own; i++)
        put_quoted(out, program[i]);
    put_text(out, "--join ");
    put_quoted(out, r->join);
    put_text(out, "--key - ");
    for (size_t i = own; program[i]; i++)
        put_quoted(out, program[i]);
    put_text(out, "& worker=$!; wait $worker; code=$?; "
                  "[ $code -gt 128 ] && [ $code != 143 ] && [ $((again -= 1)) -ge 0 ] || exit $code; echo "
                  "'kilter run: a worker on '");
    put_quoted(out, host->name);
    put_text(out, "\"ended with code $code, and is started again\" >&2; done; }; ");
    snprintf(numbers, sizeof numbers, "again=%d; left=", AGAIN_MOST);
    put_text(out, numbers);
    snprintf(numbers, sizeof numbers, "%u", host->workers);
    put_text(out, host->workers ? numbers : "$(nproc)");
    put_text(out,
             "; exec 3<&0; all=; while [ \"$left\" -gt 0 ]; do one 3<&- & all=\"$all $!\"; left=$((left - "
             "1)); done; "
             "(while read -r line; do :; done; kill $all) <&3 >/dev/null 2>&1 & guard=$!; exec 3<&-; "
             "code=0; for one in $all; do wait $one || code=$?; done; { kill $guard; wait $guard; } "
             "2>/dev/null; exit $code");
    kl_put_u8(out, 0);
}

/* Start a child that runs `words` with the original signals. `input`: the descriptor of its standard input;
 * −1: ours. */
static pid_t start(char *const *words, int input, const sigset_t *signals) {
    int begun[2]; /* the pipe is closed when the program begins */
    if (pipe2(begun, O_CLOEXEC) != 0)
        return -1;
    pid_t child = fork();
    if (child != 0) {
        /* Wait until the child runs its program, or has printed why it cannot. A signal before that would end
         * the child without a message. */
        char nothing;
        close(begun[1]);
        while (read(begun[0], &nothing, 1) < 0 && errno == EINTR)
            ;
        close(begun[0]);
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, signals, NULL);
    if (input >= 0 && dup2(input, STDIN_FILENO) < 0)
        _exit(127);
    execvp(words[0], words);
    fprintf(stderr, "kilter run: starting %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Check the first word of --ssh, because the shell's own message would not explain the error. */
static kilter_status check_ssh(const char *ssh, kilter_error *error) {
    ssh += strspn(ssh, " \t");
    size_t bytes = strcspn(ssh, " \t");
    if (strcspn(ssh, "\"'\\$~`(") < bytes) /* only the shell can interpret the word */
        return KILTER_OK;
    char *word = strndup(ssh, bytes);
    char *const words[] = {"sh", "-c", "command -v \"$1\" >/dev/null 2>&1", "sh", word, NULL};
    sigset_t none;
    int status = -1;
    sigemptyset(&none);
    pid_t child = word && *word && *word != '-' ? start(words, -1, &none) : -1;
    bool found =
        child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    free(word);
    return found
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_USAGE, "--ssh: there is no command '%.*s' here", (int)bytes, ssh);
}

static kilter_status start_master(run_state *r, const sigset_t *signals, kilter_error *error) {
    char *const *program = r->options->program;
    size_t own = own_count(program), count = own;
    while (program[count])
        count++;
    char **words = calloc(count + 5, sizeof *words);
    if (!words)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting %s: memory ran out", program[0]);
    char *const added[] = {"--listen", r->listen, "--key", r->key_file};
    memcpy(words, program, own * sizeof *words);
    memcpy(words + own, added, sizeof added);
    memcpy(words + own + 4, program + own, (count - own) * sizeof *words);
    r->master = start(words, -1, signals);
    free(words);
    return r->master > 0 ? KILTER_OK
                         : kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", program[0], strerror(errno));
}

/* The key fits into the pipe, so a host that does not answer does not block here. */
static kilter_status start_host(run_state *r, run_host *host, const sigset_t *signals, kilter_error *error) {
    int ends[2];
    kl_buffer script = {0}, key = {0};
    put_script(r, host, &script);
    kl_key_write(&r->key, false, &key);
    put_text(&key, "end\n");
    char *command = kl_text("exec %s \"$@\"", r->options->ssh);
    kilter_status status = KILTER_OK;
    if (!command || script.failed || key.failed) {
        status = kl_fail(error, KILTER_ERR_MEMORY, "starting workers on %s: memory ran out", host->name);
    } else if (pipe2(ends, O_CLOEXEC) != 0) {
        status = kl_fail(error, KILTER_ERR_SYSTEM, "starting workers on %s: %s", host->name, strerror(errno));
    } else {
        char *const words[] = {"sh", "-c", command, "sh", host->name, (char *)script.data, NULL};
        bool handed = write(ends[1], key.data, key.size) == (ssize_t)key.size;
        host->pid = handed ? start(words, ends[0], signals) : -1;
        host->input = ends[1];
        close(ends[0]);
        if (host->pid < 0)
            status =
                kl_fail(error, KILTER_ERR_SYSTEM, "starting workers on %s: %s", host->name, strerror(errno));
    }
    kl_buffer_free(&script);
    kl_buffer_free(&key);
    free(command);
    return status;
}

/* --- waiting for the end --- */

static int code_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void note_host(const run_state *r, run_host *host, int code) {
    host->pid = 0;
    host->failed = code != 0;
    if (code == 0 || r->master == 0)
        return;
    if (code == 255) /* code of ssh for a connection error */
        fprintf(stderr,
                "kilter run: %s cannot be reached, or its connection broke; the run goes on without it\n",
                host->name);
    else
        fprintf(stderr, "kilter run: workers on %s ended with code %d; the run goes on without them\n",
                host->name, code);
}

static bool all_failed(const run_options *options) {
    size_t failed = 0;
    for (size_t i = 0; i < options->host_count; i++)
        failed += options->hosts[i].failed;
    return failed == options->host_count;
}

static bool any_left(const run_options *options) {
    for (size_t i = 0; i < options->host_count; i++)
        if (options->hosts[i].pid > 0)
            return true;
    return false;
}

static void reap(run_state *r) {
    const run_options *options = r->options;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == r->master) {
            r->master = 0;
            r->code = code_of(status);
        }
        for (size_t i = 0; i < options->host_count; i++)
            if (options->hosts[i].pid == pid)
                note_host(r, &options->hosts[i], code_of(status));
    }
}

static void wait_for_master(run_state *r, const sigset_t *awaited) {
    bool gave_up = false;
    while (r->master > 0) {
        siginfo_t info;
        int signal = sigwaitinfo(awaited, &info);
        bool from_terminal =
            signal == SIGINT && info.si_code == SI_KERNEL; /* the master gets this signal, too */
        if (signal != SIGCHLD && signal > 0 && !from_terminal)
            kill(r->master, signal);
        reap(r);
        if (r->master > 0 && !gave_up && all_failed(r->options)) {
            /* Without hosts, the master would wait for workers for ever. */
            fprintf(stderr, "kilter run: no host is left; the run is ended\n");
            kill(r->master, SIGTERM);
            gave_up = true;
        }
    }
}

/* Close the inputs of the hosts' shells, which then end their workers, unless the master has done so. */
static void end_hosts(run_state *r, const sigset_t *awaited) {
    const run_options *options = r->options;
    double until_s = kl_monotonic_s() + END_PATIENCE_S;
    for (size_t i = 0; i < options->host_count; i++)
        if (options->hosts[i].input >= 0)
            close(options->hosts[i].input);
    for (double rest_s; any_left(options) && (rest_s = until_s - kl_monotonic_s()) > 0; reap(r)) {
        struct timespec rest = kl_timespec(rest_s);
        sigtimedwait(awaited, NULL, &rest);
    }
    for (size_t i = 0; i < options->host_count; i++)
        if (options->hosts[i].pid > 0) {
            kill(options->hosts[i].pid, SIGKILL);
            waitpid(options->hosts[i].pid, NULL, 0);
        }
}

static kilter_status run_all(run_state *r, const sigset_t *awaited, const sigset_t *before,
                             kilter_error *error) {
    kilter_status status = start_master(r, before, error);
    if (status != KILTER_OK)
        return status;
    for (size_t i = 0; i < r->options->host_count && status == KILTER_OK; i++)
        status = start_host(r, &r->options->hosts[i], before, error);
    if (status != KILTER_OK)
        kill(r->master, SIGTERM);
    wait_for_master(r, awaited);
    end_hosts(r, awaited);
    return status;
}

static int run_with(const run_options *options) {
    run_state r = {.options = options};
    sigset_t awaited, before;
    kilter_error error;
    const int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    sigemptyset(&awaited);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&awaited, signals[i]);
    sigprocmask(SIG_BLOCK, &awaited, &before);
    signal(SIGPIPE, SIG_IGN);
    setenv("KILTER_RUN", "1", 1); /* so that the master does not ask the user to start workers */
    kilter_status status = check_ssh(options->ssh, &error);
    if (status == KILTER_OK)
        status = choose_endpoints(&r, &error);
    if (status == KILTER_OK)
        status = make_key(&r, &error);
    if (status == KILTER_OK)
        status = run_all(&r, &awaited, &before, &error);
    free(r.key_file);
    free(r.listen);
    free(r.join);
    return status == KILTER_OK ? r.code : kilter_exit("kilter run", &error);
}

static int run(const kl_command *command, int argc, char **argv) {
    run_options options = {.hosts = calloc((size_t)argc, sizeof *options.hosts),
                           .ssh = "ssh -o BatchMode=yes"};
    if (!options.hosts)
        return kl_cmd_usage(command, "memory ran out");
    int code = read_words(command, argc, argv, &options);
    if (code == EXIT_SUCCESS)
        code = run_with(&options);
    for (size_t i = 0; i < options.host_count; i++)
        free(options.hosts[i].name);
    free(options.hosts);
    return code;
}

const kl_command kl_cmd_run = {
    .name = "run",
    .summary = "Start a program as master here and as workers on other hosts, through ssh.",
    .text = "usage: kilter run --host HOST[:N]… [OPTION]… -- PROGRAM [ARGUMENT]…\n\n"
            "Starts PROGRAM here as the master of a farm, and on each HOST as N workers, through\n"
            "ssh. The program must be there under the same name. Its messages are encrypted with a\n"
            "key made for this run, which the workers get on their standard input. The command\n"
            "ends with the exit code of the master, and the workers end with it. A host that cannot\n"
            "be reached is named, and the run continues.\n",
    .options = KL_OPTIONS(rows),
    .in_order = true,
    .run = run,
};
