/* Start the agent of a host: through ssh, through srun, by a command of the user, or directly. */
#include "hosts/start.h"

#include "hosts/hosts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/sys.h"

static char *own_file(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return kl_text("kilter");
    path[length] = '\0';
    return kl_text("%s", path);
}

char *kl_hosts_script(const char *arguments) {
    char *file = own_file(), *quoted = file ? kl_words_text(1, &file) : NULL;
    char *script =
        quoted ? kl_text("k=%s; [ -x \"$k\" ] || k=kilter; exec \"$k\" %s", quoted, arguments) : NULL;
    free(file);
    free(quoted);
    return script;
}

kilter_status kl_agent_way_make(const char *ssh, const char *program, bool slurm, kl_agent_way *way,
                                kilter_error *error) {
    char *file = program ? kl_text("%s", program) : own_file();
    char *quoted = file ? kl_words_text(1, &file) : NULL;
    *way = (kl_agent_way){.slurm = slurm};
    if (quoted)
        way->script = kl_text("k=%s; [ -x \"$k\" ] || k=kilter; exec \"$k\" hosts --serve", quoted);
    if (ssh)
        way->ssh = kl_text("exec %s \"$@\"", ssh);
    free(file);
    free(quoted);
    if (way->script && (way->ssh || !ssh))
        return KILTER_OK;
    kl_agent_way_free(way);
    return kl_fail(error, KILTER_ERR_MEMORY, "preparing to measure hosts: memory ran out");
}

void kl_agent_way_free(kl_agent_way *way) {
    free(way->ssh);
    free(way->script);
    *way = (kl_agent_way){0};
}

enum { WORDS_MOST = 12 };

/* Choose the words of the command line that starts an agent. The words are not copied. */
static void choose_words(const kl_agent_way *way, char *host, char *words[WORDS_MOST]) {
    static char sh[] = "sh", c[] = "-c", srun[] = "srun", ssh[] = "ssh", o[] = "-o",
                batch[] = "BatchMode=yes", overlap[] = "--overlap", nodes[] = "--nodes=1",
                tasks[] = "--ntasks=1", where[] = "--nodelist";
    char *const by_user[] = {sh, c, way->ssh, sh, host, way->script, NULL};
    char *const here[] = {sh, c, way->script, NULL};
    char *const by_srun[] = {srun, overlap, nodes, tasks, where, host, sh, c, way->script, NULL};
    char *const by_ssh[] = {ssh, o, batch, host, way->script, NULL};
    char name[KL_HOST_BYTES];
    kl_host_name(name);
    if (way->ssh)
        memcpy(words, by_user, sizeof by_user);
    else if (strcmp(host, name) == 0 || strcmp(host, "localhost") == 0)
        memcpy(words, here, sizeof here);
    else if (way->slurm)
        memcpy(words, by_srun, sizeof by_srun);
    else
        memcpy(words, by_ssh, sizeof by_ssh);
}

/* Run the command in the child process. The system kills the child when the thread that started it ends. No
 * signals are blocked in the child. */
static void become(char *const *words, int fd, pid_t parent) {
    static const char failed[] = "the command cannot be started\n";
    sigset_t none;
    kl_end_with_parent(parent, SIGTERM);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(127);
    execvp(words[0], words);
    (void)!write(STDERR_FILENO, failed, sizeof failed - 1);
    _exit(127);
}

kilter_status kl_agent_start(const kl_agent_way *way, char *host, pid_t *pid, int *fd, kilter_error *error) {
    int ends[2];
    char *words[WORDS_MOST];
    choose_words(way, host, words);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", words[0], strerror(errno));
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        become(words, ends[1], parent);
    int code = errno;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", words[0], strerror(code));
    }
    *pid = child;
    *fd = ends[0];
    return KILTER_OK;
}

kilter_status kl_hosts_begin(const kl_hosts_way *how, char *host, pid_t *pid, int *fd, kilter_error *error) {
    kl_agent_way way = {.ssh = how->ssh ? kl_text("exec %s \"$@\"", how->ssh) : NULL,
                        .script = how->script,
                        .slurm = how->slurm};
    if (how->ssh && !way.ssh)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting %s: memory ran out", host);
    kilter_status status = kl_agent_start(&way, host, pid, fd, error);
    free(way.ssh);
    return status;
}
