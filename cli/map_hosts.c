/* kilter map --hosts: a process starts kilter map --serve on each host of the list. The process tries a
 * failed host again, and reads the list again when its file changes. It is separate because the master has
 * threads, so the master must not start processes. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hosts/hosts.h"
#include "map.h"
#include "sys/sys.h"

enum { LINE_MOST = 400, LOOK_MS = 50, UNFIT_CODE = 75, TRIES_MOST = 3, NO_HOST_CODE = 3 };
static const double PAUSE_S = 0.25, PAUSE_MOST_S = 30, END_PATIENCE_S = 5, LIST_LOOK_S = 0.5;
static const double WORKED_S = 5;         /* a connection counts as good after this many seconds */
static const double SILENCE_MOST_S = 30;  /* seconds without a line from a host, after which the connection is
                                           * ended and tried again */
static const double SILENCE_AT_END_S = 3; /* like SILENCE_MOST_S, but at the end of the run: after this time,
                                             Kilter no longer waits for the host */

typedef struct host {
    char *name;
    uint32_t slots;
    pid_t pid; /* process id of the host's ssh; 0: not connected */
    int fd;
    bool listed, told, ready; /* listed: the host is in the list; told: the end of its connection was reported
                               * to the user; ready: the host has printed that Kilter runs there */
    bool silent;              /* true: the connection was ended because no line came in time */
    uint32_t tries;           /* number of failed connections in a row */
    double begun_s, next_s, heard_s;
    char line[LINE_MOST]; /* the incomplete last line that the host has printed */
    size_t size;
} host;

typedef struct reaching {
    const kl_map_request *q;
    const kl_map_hosts *hosts;
    host *list;
    uint64_t count, room;
    bool slurm;
    struct timespec changed; /* time of the last change of the list's file */
    double looked_s;
    kl_buffer key;
} reaching;

/* --- the list of hosts --- */

static host *find(reaching *r, const char *name) {
    for (uint64_t i = 0; i < r->count; i++)
        if (strcmp(r->list[i].name, name) == 0)
            return &r->list[i];
    host *list = kl_array_grow(r->list, &r->room, r->count + 1, sizeof *list);
    char *copy = list ? strdup(name) : NULL;
    r->list = list ? list : r->list;
    if (!copy)
        return NULL;
    list[r->count] = (host){.name = copy, .fd = -1};
    return &list[r->count++];
}

static kilter_status read_list(reaching *r, kilter_error *error) {
    kl_host_list list = {0};
    kilter_status status = kl_hosts_list(r->q->hosts, &list, &r->slurm, error);
    if (status != KILTER_OK)
        return status;
    if (list.count == 0)
        status = kl_fail(error, KILTER_ERR_INPUT, "--hosts: '%s' names no host", r->q->hosts);
    for (uint64_t i = 0; i < r->count && status == KILTER_OK; i++)
        r->list[i].listed = false;
    for (size_t i = 0; i < list.count && status == KILTER_OK; i++) {
        host *h = find(r, list.at[i].name);
        if (!h)
            status = kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", r->q->hosts);
        else
            h->slots = list.at[i].slots, h->listed = true;
    }
    kl_host_list_free(&list);
    return status;
}

/* Read the list of hosts again if its file has changed. If the file cannot be read, keep the present
 * hosts. */
static void look_at_list(reaching *r) {
    struct stat now;
    kilter_error error;
    double now_s = kl_monotonic_s();
    if (now_s - r->looked_s < LIST_LOOK_S)
        return;
    r->looked_s = now_s;
    if (stat(r->q->hosts, &now) != 0 ||
        (now.st_mtim.tv_sec == r->changed.tv_sec && now.st_mtim.tv_nsec == r->changed.tv_nsec))
        return;
    r->changed = now.st_mtim;
    if (read_list(r, &error) != KILTER_OK)
        fprintf(stderr, "kilter map: --hosts: %s; the run goes on with the former hosts\n", error.text);
}

/* --- starting --- */

static void put_option(kl_buffer *out, const char *name, const char *value) {
    kl_put_bytes(out, " --", 3);
    kl_put_bytes(out, name, strlen(name));
    kl_put_bytes(out, "=", 1);
    kl_map_put_quoted(out, value, strlen(value));
}

static void put_number(kl_buffer *out, const char *name, uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%llu", kl_ull(number));
    if (number > 0)
        put_option(out, name, text);
}

static void put_resources(kl_buffer *out, const kl_map_needs *n) {
    char text[64];
    for (uint32_t i = 0; i < n->resources; i++) {
        const kl_map_resource *r = &n->resource[i];
        snprintf(text, sizeof text, "%s=%u", r->name, r->there);
        if (r->given)
            put_option(out, "resource", text);
        snprintf(text, sizeof text, "%s=%u", r->name, r->used);
        if (r->used > 0)
            put_option(out, "use", text);
    }
}

/* Return the shell script that runs on a host; malloc'd. With --shared-fs, the script enters this folder
 * first. */
static char *script_of(const reaching *r, const host *h) {
    kl_buffer out = {0}, place = {0};
    char folder[4096];
    put_option(&out, "serve", r->hosts->reach.join);
    if (h->slots > 0)
        put_number(&out, "jobs", h->slots);
    else if (r->q->jobs)
        put_option(&out, "jobs", r->q->jobs);
    put_number(&out, "cores", r->q->needs.cores);
    put_number(&out, "memory", r->q->needs.memory);
    put_number(&out, "output-limit", r->q->needs.output_most);
    put_resources(&out, &r->q->needs);
    kl_put_u8(&out, 0);
    if (r->q->shared_fs && getcwd(folder, sizeof folder))
        kl_map_put_quoted(&place, folder, strlen(folder));
    kl_put_u8(&place, 0);
    char *arguments = kl_text("map%s", out.failed ? "" : (const char *)out.data);
    char *serve = arguments ? kl_hosts_script(arguments) : NULL;
    char *script = serve && !place.failed && !out.failed
                       ? kl_text("cd %s || exit 76; %s", (const char *)place.data, serve)
                       : NULL;
    free(arguments);
    free(serve);
    kl_buffer_free(&out);
    kl_buffer_free(&place);
    return script;
}

static void start(reaching *r, host *h) {
    kilter_error error;
    char *script = script_of(r, h);
    h->size = 0;
    h->ready = h->silent = false;
    h->begun_s = h->heard_s = kl_monotonic_s();
    const kl_hosts_way how = {.ssh = r->q->ssh, .script = script, .slurm = r->slurm};
    if (script && kl_hosts_begin(&how, h->name, &h->pid, &h->fd, &error) == KILTER_OK)
        (void)!send(h->fd, r->key.data, r->key.size, MSG_NOSIGNAL); /* the key is shorter than the socket's
                                                                     * buffer, so this write does not block */
    free(script);
}

/* --- lines that hosts print --- */

static void say(const host *h, const char *what) {
    fprintf(stderr, "kilter map: %s: %s\n", h->name, what);
}

/* Handle the lines that a host has printed: print messages, and note that the host is ready or alive. */
static void hear(host *h) {
    char bytes[256];
    ssize_t got = recv(h->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0 && h->ready)
        h->heard_s = kl_monotonic_s();
    for (ssize_t i = 0; i < got; i++) {
        bool whole = bytes[i] == '\n' || h->size == LINE_MOST - 1;
        if (!whole) {
            h->line[h->size++] = (unsigned char)bytes[i] < ' ' ? '?' : bytes[i];
            continue;
        }
        h->line[h->size] = '\0';
        h->size = 0;
        if (strcmp(h->line, KL_MAP_READY) == 0)
            h->ready = true;
        else if (!h->told && strcmp(h->line, KL_MAP_ALIVE) != 0)
            say(h, h->line);
    }
}

static void note_end(host *h, int status) {
    double now_s = kl_monotonic_s();
    char text[160];
    hear(h);
    close(h->fd);
    h->pid = 0;
    h->fd = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        h->next_s = now_s + PAUSE_S;
        return;
    }
    if (h->listed && h->ready && now_s - h->begun_s > WORKED_S) {
        h->told = false;
        h->tries = 0;
    }
    double pause_s = fmin(PAUSE_S * exp2(h->tries++), PAUSE_MOST_S);
    h->next_s = now_s + pause_s;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    snprintf(text, sizeof text, "%s (code %d); Kilter tries this host again during the run",
             h->silent            ? "the host does not answer"
             : code == 255        ? "the host cannot be reached, or its connection broke"
             : code == 76         ? "the host does not have the current folder, which --shared-fs needs"
             : code == UNFIT_CODE ? "the host is not used now"
                                  : "the workers of the host ended",
             code);
    if (!h->told)
        say(h, text);
    h->told = true; /* print only one message about the end of this host */
}

static void reap(reaching *r) {
    int status;
    for (uint64_t i = 0; i < r->count; i++)
        if (r->list[i].pid > 0 && waitpid(r->list[i].pid, &status, WNOHANG) == r->list[i].pid)
            note_end(&r->list[i], status);
}

/* --- the process that reaches the hosts --- */

static void tend(reaching *r) {
    double now_s = kl_monotonic_s();
    look_at_list(r);
    for (uint64_t i = 0; i < r->count; i++) {
        host *h = &r->list[i];
        if (h->pid > 0 && !h->listed)
            shutdown(h->fd, SHUT_WR);
        else if (h->pid > 0 && !h->silent && now_s - h->heard_s > SILENCE_MOST_S)
            h->silent = kill(h->pid, SIGKILL) == 0;
        else if (h->pid == 0 && h->listed && now_s >= h->next_s)
            start(r, h);
    }
}

/* Return whether no host works now, and each host has failed several times. */
static bool is_hopeless(const reaching *r) {
    for (uint64_t i = 0; i < r->count; i++)
        if (r->list[i].listed && (r->list[i].pid > 0 || r->list[i].tries < TRIES_MOST))
            return false;
    return true;
}

static bool any_left(const reaching *r) {
    for (uint64_t i = 0; i < r->count; i++)
        if (r->list[i].pid > 0)
            return true;
    return false;
}

/* Ask a host to end its workers. Kill the ssh of a silent host, because this process may wait for minutes. */
static void ask_to_end(host *h, double now_s) {
    h->told = true;
    h->listed = false;
    if (h->pid > 0 && now_s - h->heard_s > SILENCE_AT_END_S)
        kill(h->pid, SIGKILL);
    else if (h->pid > 0)
        shutdown(h->fd, SHUT_WR);
}

static void end_hosts(reaching *r) {
    double now_s = kl_monotonic_s(), until_s = now_s + END_PATIENCE_S;
    for (uint64_t i = 0; i < r->count; i++)
        ask_to_end(&r->list[i], now_s);
    for (; any_left(r) && kl_monotonic_s() < until_s; reap(r))
        kl_nap_s(2e-3);
    for (uint64_t i = 0; i < r->count; i++)
        if (r->list[i].pid > 0)
            kill(r->list[i].pid, SIGKILL);
}

/* Wait for output of the hosts. Return false when the master is gone. */
static bool wait_for_news(reaching *r, int alive) {
    struct pollfd *fds = calloc(r->count + 1, sizeof *fds);
    bool goes_on = fds;
    if (!fds)
        return false;
    fds[0] = (struct pollfd){.fd = alive, .events = POLLIN};
    for (uint64_t i = 0; i < r->count; i++)
        fds[i + 1] = (struct pollfd){.fd = r->list[i].fd, .events = POLLIN};
    if (poll(fds, r->count + 1, LOOK_MS) > 0) {
        goes_on = fds[0].revents == 0;
        for (uint64_t i = 0; i < r->count; i++)
            if (fds[i + 1].revents & POLLIN)
                hear(&r->list[i]);
    }
    free(fds);
    return goes_on;
}

static void reach_hosts(reaching *r, int alive) {
    setsid(); /* signals of the terminal must reach only the master, not this process */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    bool hopeless = false;
    do {
        tend(r);
        reap(r);
        hopeless = is_hopeless(r);
    } while (!hopeless && wait_for_news(r, alive));
    end_hosts(r);
    _exit(hopeless ? NO_HOST_CODE : 0);
}

/* --- the master's side: starting and watching the process that reaches the hosts --- */

static kilter_status fork_reaching(reaching *r, kl_map_hosts *hosts, kilter_error *error) {
    int alive[2], ends[2];
    if (pipe2(alive, O_CLOEXEC) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "--hosts: %s", strerror(errno));
    if (pipe2(ends, O_CLOEXEC) != 0) {
        close(alive[0]);
        close(alive[1]);
        return kl_fail(error, KILTER_ERR_SYSTEM, "--hosts: %s", strerror(errno));
    }
    hosts->pid = fork();
    if (hosts->pid == 0) {
        close(alive[1]);
        close(ends[0]);
        reach_hosts(r, alive[0]);
    }
    close(alive[0]);
    close(ends[1]);
    hosts->alive = alive[1];
    hosts->ends = ends[0];
    return hosts->pid > 0 ? KILTER_OK : kl_fail(error, KILTER_ERR_SYSTEM, "--hosts: %s", strerror(errno));
}

kilter_status kl_map_hosts_open(const kl_map_request *q, kl_map_hosts *hosts, kilter_error *error) {
    reaching r = {.q = q, .hosts = hosts};
    struct stat now;
    if (stat(q->hosts, &now) == 0)
        r.changed = now.st_mtim;
    kilter_status status = kl_listening_open(q->listen, &hosts->reach, error);
    if (status == KILTER_OK)
        status = read_list(&r, error);
    kl_key_write(&hosts->reach.key, false, &r.key);
    kl_put_bytes(&r.key, "end\n", 4);
    if (status == KILTER_OK && r.key.failed)
        status = kl_fail(error, KILTER_ERR_MEMORY, "--hosts: memory ran out");
    if (status == KILTER_OK)
        status = fork_reaching(&r, hosts, error);
    for (uint64_t i = 0; i < r.count; i++)
        free(r.list[i].name);
    free(r.list);
    kl_buffer_free(&r.key);
    return status;
}

static void *watch(void *arg) {
    kl_map_hosts *hosts = arg;
    char nothing;
    while (read(hosts->ends, &nothing, 1) < 0 && errno == EINTR)
        ;
    if (!atomic_load(&hosts->closing)) {
        atomic_store(&hosts->ended, true);
        kilter_farm_cancel(hosts->farm);
    }
    return NULL;
}

kilter_status kl_map_hosts_watch(kl_map_hosts *hosts, kilter_farm *farm, kilter_error *error) {
    hosts->farm = farm;
    int code = kl_thread_start(&hosts->watcher, watch, hosts);
    hosts->watched = code == 0;
    return code == 0 ? KILTER_OK : kl_fail(error, KILTER_ERR_SYSTEM, "--hosts: %s", strerror(code));
}

const char *kl_map_hosts_trouble(kl_map_hosts *hosts) {
    int status = 0;
    if (hosts->pid <= 0 || !atomic_load(&hosts->ended))
        return NULL;
    waitpid(hosts->pid, &status, 0);
    hosts->pid = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == NO_HOST_CODE
               ? "none of the hosts can be used"
               : "the process that reaches the hosts was killed";
}

/* Close `alive`, which tells the process to end the workers of all hosts. Then wait for the process. */
void kl_map_hosts_close(kl_map_hosts *hosts) {
    if (hosts->alive > 0) {
        atomic_store(&hosts->closing, true);
        close(hosts->alive);
        if (hosts->pid > 0)
            waitpid(hosts->pid, NULL, 0);
        if (hosts->watched)
            pthread_join(hosts->watcher, NULL);
        close(hosts->ends);
    }
    kl_listening_close(&hosts->reach);
}
