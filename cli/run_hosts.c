/* Start the workers of a farm on another host, through ssh. */
#include "run_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/sys.h"

enum { AGAIN_MOST = 100 }; /* how often a host may restart one of its workers */

size_t kl_own_words_of(char *const *program) {
    size_t count = 1;
    while (program[count] && strcmp(program[count], "--") != 0)
        count++;
    return count;
}

static void put_text(kl_buffer *out, const char *text) {
    kl_put_bytes(out, text, strlen(text));
}

/* Append a text, quoted as one word of a shell. */
static void put_quoted(kl_buffer *out, const char *word) {
    put_text(out, "'");
    for (; *word; word++)
        if (*word == '\'')
            put_text(out, "'\\''");
        else
            kl_put_bytes(out, word, 1);
    put_text(out, "' ");
}

/* Write the script that a host's shell runs. The script reads the key, enters this process's folder if the
 * host has it, starts the workers, and gives each the key. It restarts a killed worker, except after SIGTERM,
 * and ends all workers when its input is closed. It passes the key with printf, which is part of the shell.
 * So no list of processes shows the key. The script drops the shell's own messages about ended jobs, because
 * they would confuse the user. */
static void put_script(const kl_run_how *r, const kl_run_host *host, kl_buffer *out) {
    char *const *program = r->program;
    size_t own = kl_own_words_of(program);
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

pid_t kl_run_start(char *const *words, int input, const sigset_t *signals) {
    int begun[2]; /* a pipe whose writing end closes when the child runs its program */
    if (pipe2(begun, O_CLOEXEC) != 0)
        return -1;
    pid_t parent = getpid(), child = fork();
    if (child != 0) {
        /* Wait until the child runs its program, or has printed why it cannot. A signal before this moment
         * would end the child without a message. */
        char nothing;
        close(begun[1]);
        while (read(begun[0], &nothing, 1) < 0 && errno == EINTR)
            ;
        close(begun[0]);
        return child;
    }
    kl_end_with_parent(parent, SIGTERM);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, signals, NULL);
    if (input >= 0 && dup2(input, STDIN_FILENO) < 0)
        _exit(127);
    execvp(words[0], words);
    fprintf(stderr, "kilter run: starting %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* The key is shorter than a pipe's buffer, so writing it does not block even if the host does not answer. */
kilter_status kl_run_start_host(const kl_run_how *r, kl_run_host *host, kilter_error *error) {
    int ends[2];
    kl_buffer script = {0}, key = {0};
    put_script(r, host, &script);
    kl_key_write(r->key, false, &key);
    put_text(&key, "end\n");
    char *command = kl_text("exec %s \"$@\"", r->ssh);
    kilter_status status = KILTER_OK;
    if (!command || script.failed || key.failed) {
        status = kl_fail(error, KILTER_ERR_MEMORY, "starting workers on %s: memory ran out", host->name);
    } else if (pipe2(ends, O_CLOEXEC) != 0) {
        status = kl_fail(error, KILTER_ERR_SYSTEM, "starting workers on %s: %s", host->name, strerror(errno));
    } else {
        char *const words[] = {"sh", "-c", command, "sh", host->name, (char *)script.data, NULL};
        bool handed = write(ends[1], key.data, key.size) == (ssize_t)key.size;
        host->pid = handed ? kl_run_start(words, ends[0], r->signals) : -1;
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
