/* payload: measure the time for moving a byte between a master and its local workers.
 *
 *   payload [--total BYTES] [options of a farm, such as --workers N]
 *
 * The program moves the same bytes in pieces of 10 kB, 100 kB, 1 MB and 100 MB. The pieces are results or
 * inputs of tasks. For comparison, they also go through a pipe, through libzmq's ipc, and by memcpy() in one
 * process. The program prints GB/s, and the CPU seconds of its process per GB. In rows with the words "looked
 * at", the pieces are read in place; in the other rows the receiver copies them into a buffer. */
#include <fcntl.h>
#include <kilter/kilter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum { MOST_BYTES = 100000000, PIPE_BYTES = 1 << 20 };

typedef struct job { /* a row of the table: pieces of one size */
    uint64_t bytes, count;
    kilter_farm *farm;
} job;

typedef struct way {
    const char *name;
    void (*move)(const job *j);
} way;

static uint8_t *source,
    *target; /* source: buffer of MOST_BYTES; target: buffer for all bytes that are moved */

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void mark(uint8_t *piece, uint64_t bytes, uint64_t number) {
    memcpy(piece, &number, sizeof number);
    memcpy(piece + bytes - sizeof number, &number, sizeof number);
}

static void check(const uint8_t *piece, uint64_t bytes, uint64_t number) {
    uint64_t first, last;
    memcpy(&first, piece, sizeof first);
    memcpy(&last, piece + bytes - sizeof last, sizeof last);
    if (first != number || last != number) {
        fprintf(stderr, "payload: piece %llu begins with number %llu and ends with %llu\n",
                (unsigned long long)number, (unsigned long long)first, (unsigned long long)last);
        exit(1);
    }
}

/* --- Kilter --- */

/* Do one task. The run's shared data has the length of the task's result. The task reads its input in
 * place. */
static int work(const kilter_task *task, kilter_result *result, void *state) {
    uint64_t bytes;
    (void)state;
    memcpy(&bytes, task->shared.data, sizeof bytes);
    if (task->input.size > 0) {
        check(task->input.data, task->input.size, 1);
        return 0;
    }
    mark(source, bytes, task->index);
    return (int)kilter_result_put(result, source, bytes);
}

static void look_at(const kilter_outcome *outcome, void *user) {
    (void)user;
    if (outcome->result.size > 0)
        check(outcome->result.data, outcome->result.size, outcome->index);
}

static void run(const job *j, const kilter_run *wanted) {
    kilter_run one = *wanted;
    kilter_error error;
    one.tasks = j->count;
    one.shared = (kilter_bytes){&j->bytes, sizeof j->bytes};
    if (kilter_farm_run(j->farm, &one, &error) != KILTER_OK)
        exit(kilter_exit("payload", &error));
}

static void results_looked_at(const job *j) {
    run(j, &(kilter_run){.done = look_at});
}

static void results_into_array(const job *j) {
    run(j, &(kilter_run){.results = target, .result_bytes = j->bytes});
    for (uint64_t i = 0; i < j->count; i++)
        check(target + i * j->bytes, j->bytes, i);
}

static void inputs(const job *j) {
    kilter_bytes *all = malloc(j->count * sizeof *all);
    if (!all)
        die("payload");
    mark(source, j->bytes, 1);
    for (uint64_t i = 0; i < j->count; i++)
        all[i] = (kilter_bytes){source, j->bytes};
    run(j, &(kilter_run){.inputs = all});
    free(all);
}

/* --- pipe, zmq, memcpy --- */

static void read_all(int fd, uint8_t *to, size_t size) {
    while (size > 0) {
        ssize_t got = read(fd, to, size);
        if (got <= 0)
            die("payload: reading the pipe");
        to += got;
        size -= (size_t)got;
    }
}

static void write_all(int fd, const uint8_t *from, size_t size) {
    while (size > 0) {
        ssize_t put = write(fd, from, size);
        if (put <= 0)
            _exit(1);
        from += put;
        size -= (size_t)put;
    }
}

static void through_pipe(const job *j) {
    int ends[2];
    if (pipe(ends) != 0)
        die("payload");
    fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    pid_t child = fork();
    if (child == 0) {
        for (uint64_t i = 0; i < j->count; i++) {
            mark(source, j->bytes, i);
            write_all(ends[1], source, j->bytes);
        }
        _exit(0);
    }
    close(ends[1]);
    for (uint64_t i = 0; i < j->count; i++) {
        read_all(ends[0], target, j->bytes);
        check(target, j->bytes, i);
    }
    close(ends[0]);
    waitpid(child, NULL, 0);
}

static void send_by_zmq(const job *j, const char *address) {
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PUSH);
    if (zmq_connect(socket, address) != 0)
        _exit(1);
    for (uint64_t i = 0; i < j->count; i++) {
        mark(source, j->bytes, i);
        zmq_send(socket, source, j->bytes, 0);
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    _exit(0);
}

static void through_zmq(const job *j) {
    char address[64];
    snprintf(address, sizeof address, "ipc:///tmp/payload-%ld", (long)getpid());
    pid_t child = fork();
    if (child == 0)
        send_by_zmq(j, address);
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PULL);
    if (zmq_bind(socket, address) != 0)
        die("payload: binding a socket");
    for (uint64_t i = 0; i < j->count; i++) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        if (zmq_msg_recv(&message, socket, 0) < 0)
            die("payload: receiving");
        check(zmq_msg_data(&message), zmq_msg_size(&message), i);
        zmq_msg_close(&message);
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    waitpid(child, NULL, 0);
    unlink(address + strlen("ipc://"));
}

static void by_memcpy(const job *j) {
    for (uint64_t i = 0; i < j->count; i++) {
        mark(source, j->bytes, i);
        memcpy(target, source, j->bytes);
        check(target, j->bytes, i);
    }
}

static void by_memcpy_into_array(const job *j) {
    for (uint64_t i = 0; i < j->count; i++) {
        mark(source, j->bytes, i);
        memcpy(target + i * j->bytes, source, j->bytes);
    }
    for (uint64_t i = 0; i < j->count; i++)
        check(target + i * j->bytes, j->bytes, i);
}

/* --- the table of sizes and ways --- */

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double cpu_s(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Move all pieces a first time without measuring, as a warm-up. */
static void measure(const way *w, const job *j) {
    w->move(j);
    double began_s = now_s(), cpu_began_s = cpu_s();
    w->move(j);
    double took_s = now_s() - began_s, used_s = cpu_s() - cpu_began_s;
    double gb = 1e-9 * (double)(j->bytes * j->count);
    printf("%-28s %10llu B %8.2f GB/s %8.3f CPU s/GB\n", w->name, (unsigned long long)j->bytes, gb / took_s,
           used_s / gb);
    fflush(stdout);
}

static const way ways[] = {
    {"results, looked at", results_looked_at},

    {"results, into an array", results_into_array},

    {"inputs, looked at", inputs},
    {"pipe", through_pipe},
    {"zmq ipc, looked at", through_zmq},
    {"memcpy", by_memcpy},
    {"memcpy, into an array", by_memcpy_into_array},
};

static uint64_t read_total(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--total") == 0) {
            char *end;
            double total = strtod(argv[i + 1], &end);
            if (*end || !(total >= MOST_BYTES && total <= 1e12)) {
                fprintf(stderr, "payload: --total %s: give a number of bytes from 1e8 to 1e12\n",
                        argv[i + 1]);
                exit(2);
            }
            return (uint64_t)total;
        }
    return 1000000000;
}

int main(int argc, char **argv) {
    static const uint64_t sizes[] = {10000, 100000, 1000000, MOST_BYTES};
    uint64_t total = read_total(argc, argv);
    source = malloc(MOST_BYTES);
    target = malloc(total);
    if (!source || !target)
        die("payload");
    memset(source, 1, MOST_BYTES);
    kilter_farm *farm;
    kilter_error error;
    if (kilter_farm_open(&(kilter_farm_options){.work = work}, &argc, argv, &farm, &error))
        return kilter_exit(argv[0], &error);
    memset(target, 2, total);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            measure(&ways[i], &(job){.bytes = sizes[s], .count = total / sizes[s], .farm = farm});
    kilter_farm_close(farm, NULL);
    free(source);
    free(target);
}
