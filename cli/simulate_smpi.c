/* Start the engine's program kilter-simfarm-smpi and read its output. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "programs.h"
#include "simulate.h"
#include "sys/sys.h"

static const char PROGRAM[] = "kilter-simfarm-smpi";

char *kl_smpi_program(void) {
    return kl_libexec_file(PROGRAM);
}

/* --- starting the engine --- */

typedef struct child {
    pid_t pid;
    int out, errors; /* out: reading end of the pipe from the child's standard output; errors: reading end
                        of the pipe from its standard error */
} child;

enum { MOST_ARGUMENTS = 32, NUMBER_BYTES = 32 };

typedef struct command {
    const char *words[MOST_ARGUMENTS];
    int count;
    char numbers[4][NUMBER_BYTES];
} command;

static void say(command *c, const char *option, const char *value) {
    c->words[c->count++] = option;
    c->words[c->count++] = value;
}

static void say_number(command *c, int place, const char *option, uint64_t value) {
    snprintf(c->numbers[place], NUMBER_BYTES, "%llu", (unsigned long long)value);
    say(c, option, c->numbers[place]);
}

static void compose(const kl_smpi_farm *farm, const char *program, command *c) {
    *c = (command){.words = {program}, .count = 1};
    say(c, "--platform", farm->platform);
    if (farm->hosts)
        say(c, "--hosts", farm->hosts);
    say(c, "--tasks", farm->tasks);
    say(c, "--policy", farm->policy);
    say(c, "--record", farm->record ? farm->record : "none");
    say(c, "--transport", "mpi");
    say_number(c, 0, "--iterations", farm->iterations);
    say_number(c, 1, "--seed", farm->seed);
    say_number(c, 2, "--task-bytes", farm->task_bytes);
    say_number(c, 3, "--result-bytes", farm->result_bytes);
}

/* Turn this child process into the engine. It must end with its parent, and must not see the user's
 * environment variables for farms. */
static void become(const kl_smpi_farm *farm, const command *c, pid_t parent, int out, int errors) {
    static const char *const others[] = {"KILTER_WORKERS", "KILTER_LISTEN", "KILTER_JOIN", "KILTER_PROGRESS"};
    char answer_s[NUMBER_BYTES];
    kl_end_with_parent(parent, SIGKILL);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        unsetenv(others[i]);
    snprintf(answer_s, sizeof answer_s, "%.9g", farm->answer_s);
    if (farm->answer_s >= 0)
        setenv("KILTER_ANSWER_S", answer_s, 1);
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execv(c->words[0], (char *const *)c->words);
    fprintf(stderr, "starting %s: %s\n", c->words[0], strerror(errno));
    _exit(127);
}

static kilter_status start(const kl_smpi_farm *farm, const command *c, child *started, kilter_error *error) {
    int out[2], errors[2];
    if (pipe(out) != 0)
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", c->words[0], strerror(errno));
    if (pipe(errors) != 0) {
        close(out[0]);
        close(out[1]);
        return kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", c->words[0], strerror(errno));
    }
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(out[0]);
        close(errors[0]);
        become(farm, c, parent, out[1], errors[1]);
    }
    close(out[1]);
    close(errors[1]);
    *started = (child){.pid = pid, .out = out[0], .errors = errors[0]};
    if (pid > 0)
        return KILTER_OK;
    close(out[0]);
    close(errors[0]);
    return kl_fail(error, KILTER_ERR_SYSTEM, "starting %s: %s", c->words[0], strerror(errno));
}

/* --- reading the engine's output --- */

typedef struct reading {
    kl_smpi_iteration *results;
    uint32_t expected, came;
    char line[512]; /* the bytes of the present line that have arrived */
    size_t length;
    char complaint[400]; /* first line that the engine printed on stderr */
    size_t complaint_length;
    bool complained;
} reading;

static void take_line(reading *r) {
    kl_smpi_iteration it;
    unsigned iteration;
    unsigned long long tasks, chunks;
    r->line[r->length] = '\0';
    r->length = 0;
    if (sscanf(r->line,
               "{\"iteration\":%u,\"tasks\":%llu,\"elapsed_s\":%lf,\"bound_s\":%lf,\"efficiency\":%lf,"
               "\"chunks\":%llu,\"workers\":%u,\"began_s\":%lf}",
               &iteration, &tasks, &it.elapsed_s, &it.bound_s, &it.efficiency, &chunks, &it.workers,
               &it.began_s) == 8 &&
        iteration == r->came && iteration < r->expected) {
        it.chunks = chunks;
        r->results[r->came++] = it;
    }
}

static void take_output(reading *r, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n')
            take_line(r);
        else if (r->length < sizeof r->line - 1)
            r->line[r->length++] = bytes[i];
    }
}

static void take_complaint(reading *r, const char *bytes, size_t size) {
    for (size_t i = 0; i < size && !r->complained; i++) {
        r->complained = bytes[i] == '\n';
        if (!r->complained && r->complaint_length < sizeof r->complaint - 1)
            r->complaint[r->complaint_length++] = bytes[i];
    }
}

/* Read the engine's output until both pipes are closed. */
static void read_all(const child *c, reading *r) {
    struct pollfd streams[2] = {{.fd = c->out, .events = POLLIN}, {.fd = c->errors, .events = POLLIN}};
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        if (poll(streams, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++) {
            char bytes[4096];
            if (streams[i].fd < 0 || !streams[i].revents)
                continue;
            ssize_t got = read(streams[i].fd, bytes, sizeof bytes);
            if (got > 0)
                i == 0 ? take_output(r, bytes, (size_t)got) : take_complaint(r, bytes, (size_t)got);
            else if (got == 0 || errno != EINTR)
                streams[i].fd = -1;
        }
    }
}

/* --- checking how the engine ended --- */

static kilter_status judge(const reading *r, int status, kilter_error *error) {
    static const char own[] = "simfarm: ";
    const char *why = r->complaint;
    if (strncmp(why, own, sizeof own - 1) == 0)
        why += sizeof own - 1;
    if (WIFSIGNALED(status))
        return kl_fail(error, KILTER_ERR_SYSTEM, "the simulation was ended by signal %d (%s)",
                       WTERMSIG(status), *why ? why : "no message");
    int code = WEXITSTATUS(status);
    if (code != 0)
        return kl_fail(error, code == 2 ? KILTER_ERR_INPUT : KILTER_ERR_SYSTEM, "the simulated farm: %s",
                       *why ? why : "the simulation ended without an error message");
    if (r->came != r->expected)
        return kl_fail(error, KILTER_ERR_SYSTEM,
                       "the simulated farm ended after %u of %u runs without a message", r->came,
                       r->expected);
    return KILTER_OK;
}

kilter_status kl_smpi_run(const kl_smpi_farm *farm, kl_smpi_iteration *results, kilter_error *error) {
    char *program = kl_smpi_program();
    if (!program)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--engine smpi: %s is not installed; build Kilter where SimGrid is installed "
                       "(libsimgrid-dev), or use --engine events",
                       PROGRAM);
    command c;
    child started = {0};
    compose(farm, program, &c);
    kilter_status status = start(farm, &c, &started, error);
    if (status == KILTER_OK) {
        kl_smpi_iteration *read = calloc(farm->iterations, sizeof *read);
        reading r = {.results = read, .expected = read ? farm->iterations : 0};
        int ended = 0;
        read_all(&started, &r);
        close(started.out);
        close(started.errors);
        while (waitpid(started.pid, &ended, 0) < 0 && errno == EINTR)
            ;
        status =
            read ? judge(&r, ended, error)
                 : kl_fail(error, KILTER_ERR_MEMORY, "reading %u results: memory ran out", farm->iterations);
        if (status == KILTER_OK)
            memcpy(results, read, farm->iterations * sizeof *read);
        free(read);
    }
    free(program);
    return status;
}
