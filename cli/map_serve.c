/* kilter map --serve runs on each host of --hosts and starts a worker process for each slot. Its standard
 * input gives the farm's key. The end of the input means that the master is gone. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"
#include "hosts/hosts.h"
#include "map.h"
#include "sys/sys.h"

enum { AGAIN_MOST = 100, KEY_MOST = 4096, LOOK_MS = 20, UNFIT_CODE = 75 };
static const double PROBE_S = 0.2, FIT_LEAST = 0.05, ALIVE_S = 1;

typedef struct serving {
    const kl_map_request *q;
    kl_map_guard *guard;
    kl_buffer key;
    pid_t *workers; /* [slots] process id of each worker; 0: the worker has ended */
    uint32_t slots, left, again;
    int code;       /* exit code of the last worker that failed */
    double alive_s; /* time when this host must next print that it is alive */
} serving;

/* Read the key from the standard input, up to the line "end". */
static bool read_key(kl_buffer *key) {
    char c;
    static const char END[] = "\nend\n";
    const size_t size = sizeof END - 1;
    while (key->size < KEY_MOST && read(STDIN_FILENO, &c, 1) == 1) {
        kl_put_u8(key, (uint8_t)c);
        if (key->size > size && memcmp(key->data + key->size - size, END, size) == 0) {
            key->size -= size - 1;
            return !key->failed;
        }
    }
    return false;
}

/* Return whether this host should get commands now. If not, print the reason. */
static bool is_fit(const kl_map_needs *needs) {
    kl_reading reading = kl_reading_none();
    kl_fit fit;
    char why[KL_FIT_WHY_BYTES];
    kl_hosts_look(PROBE_S, &reading);
    reading.at_s = 0;
    const kl_fit_ask ask = {
        .readings = &reading, .count = 1, .weight = 1, .memory_bytes = (double)needs->memory};
    if (kl_fit_hosts(&ask, &fit, NULL) != KILTER_OK || fit.host >= FIT_LEAST)
        return true;
    kl_fit_why(&fit, &reading, why);
    fprintf(stderr, "not fit now: %s\n", *why ? why : "the host is busy");
    return false;
}

static int work(const serving *s) {
    const kilter_farm_options options = {.work = kl_map_work,
                                         .start = kl_map_start,
                                         .shared = kl_map_take_setup,
                                         .stop = kl_map_stop,
                                         .user = s->guard,
                                         .join = s->q->serve,
                                         .key = "-",
                                         .once = true,
                                         .name = "kilter-map"};
    kilter_farm *farm;
    kilter_error error = {KILTER_OK, ""};
    int key = memfd_create("farm.key", MFD_CLOEXEC);
    if (key < 0 || write(key, s->key.data, s->key.size) != (ssize_t)s->key.size ||
        lseek(key, 0, SEEK_SET) != 0 || dup2(key, STDIN_FILENO) < 0)
        return 1;
    kilter_status status = kilter_farm_open(&options, NULL, NULL, &farm, &error);
    if (status != KILTER_ENDED)
        fprintf(stderr, "%s\n", error.text);
    return status == KILTER_ENDED ? 0 : 1;
}

static void start(serving *s, uint32_t i) {
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        kl_end_with_parent(parent, SIGKILL);
        _exit(work(s));
    }
    s->workers[i] = pid > 0 ? pid : 0;
    s->left += pid > 0;
    if (pid < 0)
        s->code = 1;
}

/* Note which workers have ended, and start a new worker for a killed one. */
static void reap(serving *s) {
    int status;
    for (uint32_t i = 0; i < s->slots; i++) {
        if (s->workers[i] == 0 || waitpid(s->workers[i], &status, WNOHANG) != s->workers[i])
            continue;
        s->workers[i] = 0;
        s->left--;
        if (WIFSIGNALED(status) && s->again++ < AGAIN_MOST)
            start(s, i);
        else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            s->code = 1;
    }
}

/* End all workers: the master that takes their results is gone. */
static void end_all(serving *s) {
    kl_map_guard_end_all(s->guard);
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->workers[i] > 0) {
            kill(s->workers[i], SIGKILL);
            waitpid(s->workers[i], NULL, 0);
        }
    s->left = 0;
}

/* Print from time to time that this host is alive. If the output is full, do not wait. */
static void say_alive(serving *s) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    double now_s = kl_monotonic_s();
    if (now_s < s->alive_s || poll(&out, 1, 0) <= 0)
        return;
    s->alive_s = now_s + ALIVE_S;
    (void)!write(STDOUT_FILENO, KL_MAP_ALIVE "\n", sizeof KL_MAP_ALIVE);
}

static int serve(serving *s) {
    char rest[256];
    s->guard->silent = true; /* set this before starting the workers, because they read it */
    for (uint32_t i = 0; i < s->slots; i++)
        start(s, i);
    while (s->left > 0) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&in, 1, LOOK_MS) > 0 && read(STDIN_FILENO, rest, sizeof rest) <= 0)
            end_all(s);
        say_alive(s);
        reap(s);
    }
    return s->code;
}

int kl_map_serve(const kl_map_request *q) {
    kl_map_needs needs = q->needs;
    serving s = {.q = q, .slots = q->slots};
    kilter_error error = {KILTER_OK, ""};
    int code = 1;
    signal(SIGPIPE, SIG_IGN);
    if (!read_key(&s.key)) {
        fputs("kilter map: --serve is for kilter map --hosts, which sends the key\n", stderr);
    } else if (kl_map_needs_fit(&needs, q->jobs, &s.slots, &error) != KILTER_OK ||
               kl_map_guard_open(s.slots, false, &needs, &s.guard, &error) != KILTER_OK) {
        fprintf(stderr, "%s\n", error.text);
    } else if (!is_fit(&needs)) {
        code = UNFIT_CODE;
    } else if (puts(KL_MAP_READY) == EOF || fflush(stdout) != 0) {
        fputs("the connection broke\n", stderr);
    } else if ((s.workers = calloc(s.slots, sizeof *s.workers))) {
        code = serve(&s);
    }
    free(s.workers);
    kl_map_guard_close(s.guard);
    kl_buffer_free(&s.key);
    return code;
}
