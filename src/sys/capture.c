/* Run a command and collect its output, without waiting for it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/sys.h"

enum { CAPTURE_MOST = 64 << 20, NOT_KNOWN = -1 };

static void be_command(char *const *words, pid_t parent, int out) {
    sigset_t none;
    kl_end_with_parent(parent, SIGKILL);
    sigemptyset(&none);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execvp(words[0], words);
    fprintf(stderr, "kilter: starting %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

kilter_status kl_capture_start(kl_capture *c, char *const *words, double limit_s, kilter_error *error) {
    int ends[2];
    *c = (kl_capture){.out = -1, .code = NOT_KNOWN, .until_s = kl_monotonic_s() + limit_s};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", words[0], strerror(errno));
    pid_t parent = getpid();
    c->pid = fork();
    if (c->pid == 0)
        be_command(words, parent, ends[1]);
    int why = errno;
    close(ends[1]);
    c->out = ends[0];
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    if (c->pid > 0)
        return KILTER_OK;
    c->pid = 0;
    kl_capture_free(c);
    return kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", words[0], strerror(why));
}

/* Read the command's output that is available now. Return false when the command has closed its output. */
static bool take_output(kl_capture *c) {
    char bytes[4096];
    ssize_t got;
    while ((got = read(c->out, bytes, sizeof bytes)) > 0)
        if (c->text.size < CAPTURE_MOST)
            kl_put_bytes(&c->text, bytes, (size_t)got);
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

static void end_capture(kl_capture *c, int status) {
    c->pid = 0;
    c->code = WIFEXITED(status) ? WEXITSTATUS(status) : NOT_KNOWN;
    take_output(c);
    kl_put_u8(&c->text, 0);
    if (c->text.failed)
        c->code = NOT_KNOWN;
}

bool kl_capture_over(kl_capture *c) {
    int status = 0;
    if (c->pid == 0)
        return true;
    take_output(c);
    if (kl_monotonic_s() > c->until_s) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, &status, 0);
    } else if (waitpid(c->pid, &status, WNOHANG) == 0) {
        return false;
    }
    end_capture(c, status);
    return true;
}

int kl_capture_await(kl_capture *c) {
    enum { TICK_MS = 20 };
    while (!kl_capture_over(c)) {
        struct pollfd one = {.fd = c->out, .events = POLLIN};
        if (poll(&one, 1, TICK_MS) > 0 && !take_output(c))
            kl_nap_s(1e-3); /* the command has closed its output and is expected to end in a moment */
    }
    return c->code;
}

void kl_capture_free(kl_capture *c) {
    if (c->pid > 0) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    if (c->out >= 0 && (c->until_s > 0 || c->pid > 0))
        close(c->out);
    kl_buffer_free(&c->text);
    *c = (kl_capture){.out = -1};
}
