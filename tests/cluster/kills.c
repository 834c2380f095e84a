/* cluster-kills FARM [runs=N] [seed=N] [only=RUN] [lost_after_s=S]: run farms that lose workers at random.
 *
 * Each run has one master and P = 2 to 4 workers of the program FARM (cluster-farm). Each worker joins over
 * tcp, through its own relay, which can cut the connection. From 1 to P−1 workers get a fault: they are
 * killed, stopped, stopped and continued, cut off, or cut off for a while. The fault happens while the worker
 * joins, while it receives shared data, in the middle of the run, or at the run's end. A run is good if the
 * master ends by itself, every result is right and arrives once, and all workers without a fault end
 * normally. All random choices depend only on the seed and the run's number. So a run can be repeated; only
 * the machine's timing differs. The program prints Markdown and exits with 0 if every run was good. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "relay.h"

enum {
    MOST_WORKERS = 4,
    TASKS = 400,
    TELL = 4, /* after each TELL results, the master prints how many have arrived */
    SHARED_BYTES = 2 << 20,
    HANG_S = 90,       /* seconds after which a run counts as hanging */
    WORKERS_END_S = 30 /* seconds in which workers must end after their master has ended */
};

typedef enum fault { KILL, STOP, STOP_AND_GO, CUT, CUT_AND_MEND, FAULTS } fault;
typedef enum moment { JOINING, SHARED, MIDDLE, END, MOMENTS } moment;

static const char *const FAULT_NAMES[] = {"killed", "stopped", "stopped, later continued", "cut off",
                                          "cut off, later mended"};
static const char *const MOMENT_NAMES[] = {"while it joins", "while it gets shared data", "in mid-run",
                                           "within the last tenth"};

typedef struct victim {
    bool is_one, was_struck;
    fault fault;
    moment moment;
    double at;      /* when the fault happens. JOINING: after these seconds; SHARED: after these bytes;
                     * MIDDLE and END: after this number of results */
    double lasts_s; /* seconds from the fault until the worker is continued or its connection is mended */
    /* time at which the worker is continued or its connection is mended; 0: never, or already done */
    double restore_s;
} victim;

typedef struct process {
    pid_t pid; /* process id; 0: no process, or a process that was seen to have ended */
    int status;
} process;

typedef struct output { /* output of a process, read through a pipe */
    int fd;
    /* text that the process has printed; a good run's text fits into this array, and longer text is cut
     * off */
    char text[1 << 14];
    size_t bytes;
} output;

typedef struct worker {
    process process;
    relay relay;
    victim victim;
} worker;

typedef struct run {
    uint64_t number, random;
    worker workers[MOST_WORKERS];
    uint32_t worker_count, victim_count;
    process master;
    output out, err;
    double began_s, joined_s, results;
    const char *problem; /* reason why the run is bad; NULL: the run is good so far */
} run;

typedef struct series {
    const char *farm, *folder;
    uint64_t seed, runs, first;
    double lost_after_s;
    uint64_t bad, struck[FAULTS][MOMENTS], too_late;
    double elapsed_s, longest_s;
} series;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void give_up(const char *what) {
    fprintf(stderr, "cluster-kills: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- chance --- */

static uint64_t draw(uint64_t *state) { /* splitmix64 */
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static double draw_up_to(uint64_t *state, double most) {
    return most * (double)(draw(state) >> 11) * 0x1p-53;
}

static victim draw_victim(uint64_t *random, double lost_after_s) {
    victim v = {.is_one = true,
                .fault = (fault)(draw(random) % FAULTS),
                .moment = (moment)(draw(random) % MOMENTS),
                .lasts_s = draw_up_to(random, 2 * lost_after_s)};
    double where = draw_up_to(random, 1);
    const double spans[MOMENTS][2] = {
        {0, 0.15}, {0, SHARED_BYTES}, {0, 0.9 * TASKS}, {0.9 * TASKS, TASKS - TELL}};
    v.at = spans[v.moment][0] + where * (spans[v.moment][1] - spans[v.moment][0]);
    return v;
}

/* --- processes --- */

static process start(char *const argv[], int out, int err) {
    process p = {.pid = fork()};
    if (p.pid < 0)
        give_up("starting a process");
    if (p.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
            execv(argv[0], argv);
        _exit(127);
    }
    return p;
}

/* Return whether the process has ended. */
static bool has_ended(process *p) {
    if (p->pid != 0 && waitpid(p->pid, &p->status, WNOHANG) == p->pid)
        p->pid = 0;
    return p->pid == 0;
}

static void end_now(process *p) {
    if (p->pid == 0)
        return;
    kill(p->pid, SIGKILL);
    waitpid(p->pid, &p->status, 0);
    p->pid = 0;
}

/* --- reading the master's output --- */

static int open_output(output *o) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        give_up("a pipe");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *o = (output){.fd = ends[0]};
    return ends[1];
}

/* Read what the process has printed. Return false if there was nothing to read. */
static bool read_output(output *o) {
    char beyond[512];
    size_t room = sizeof o->text - 1 - o->bytes;
    ssize_t bytes = read(o->fd, room > 0 ? o->text + o->bytes : beyond, room > 0 ? room : sizeof beyond);
    if (bytes > 0 && room > 0)
        o->text[o->bytes += (size_t)bytes] = '\0';
    return bytes > 0;
}

static const char *last(const char *text, const char *word) {
    const char *found = NULL;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        found = at;
    return found;
}

static void hear_master(run *r) {
    while (read_output(&r->out))
        ;
    while (read_output(&r->err))
        ;
    const char *said = last(r->out.text, "results ");
    if (said)
        r->results = strtod(said + strlen("results "), NULL);
}

/* --- one run with faults --- */

static void start_master(const series *s, run *r) {
    char tasks[32], shared[32], tell[32], lost_after[32], workers[16];
    snprintf(tasks, sizeof tasks, "tasks=%d", TASKS);
    snprintf(shared, sizeof shared, "shared_bytes=%d", SHARED_BYTES);
    snprintf(tell, sizeof tell, "tell=%d", TELL);
    snprintf(lost_after, sizeof lost_after, "%g", s->lost_after_s);
    snprintf(workers, sizeof workers, "%u", r->worker_count - r->victim_count);
    char *const argv[] = {(char *)s->farm,
                          tasks,
                          shared,
                          tell,
                          "result_bytes=2000",
                          "--listen",
                          "tcp://127.0.0.1:*",
                          "--workers",
                          workers,
                          "--lost-after",
                          lost_after,
                          "--record",
                          "none",
                          NULL};
    int out = open_output(&r->out), err = open_output(&r->err);
    r->began_s = now_s();
    r->master = start(argv, out, err);
    close(out);
    close(err);
}

/* Return the port of the master; 0: the master did not print its address in time. */
static uint16_t await_port(run *r) {
    const char *said = NULL;
    while (!said && now_s() - r->began_s < HANG_S && !has_ended(&r->master)) {
        struct pollfd event = {.fd = r->err.fd, .events = POLLIN};
        poll(&event, 1, 100);
        hear_master(r);
        said = strstr(r->err.text, "--join tcp://127.0.0.1:");
        if (said && !strchr(said, '\n'))
            said = NULL;
    }
    return said ? (uint16_t)strtoul(said + strlen("--join tcp://127.0.0.1:"), NULL, 10) : 0;
}

static void start_worker(const series *s, run *r, uint32_t number, uint16_t port) {
    worker *w = &r->workers[number];
    char endpoint[48], shared[32], lost_after[32], file[256];
    if (!relay_open(&w->relay, port))
        give_up("a relay");
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", w->relay.port);
    snprintf(shared, sizeof shared, "shared_bytes=%d", SHARED_BYTES);
    snprintf(lost_after, sizeof lost_after, "%g", s->lost_after_s);
    snprintf(file, sizeof file, "%s/worker-%u", s->folder, number);
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up(file);
    char *const argv[] = {(char *)s->farm, shared,         "result_bytes=2000", "--join",
                          endpoint,        "--lost-after", lost_after,          NULL};
    w->process = start(argv, fd, fd);
    close(fd);
}

static void strike(series *s, worker *w) {
    victim *v = &w->victim;
    v->was_struck = true;
    s->struck[v->fault][v->moment]++;
    if (v->fault == KILL)
        kill(w->process.pid, SIGKILL);
    else if (v->fault == STOP || v->fault == STOP_AND_GO)
        kill(w->process.pid, SIGSTOP);
    else
        w->relay.cut = true;
    if (v->fault == STOP_AND_GO || v->fault == CUT_AND_MEND)
        v->restore_s = now_s() + v->lasts_s;
}

static void restore(worker *w) {
    w->victim.restore_s = 0;
    if (w->victim.fault == STOP_AND_GO)
        kill(w->process.pid, SIGCONT);
    else
        w->relay.cut = false;
}

static bool is_due(const run *r, const worker *w) {
    const double reached[MOMENTS] = {now_s() - r->joined_s, (double)w->relay.bytes_down, r->results,
                                     r->results};
    return reached[w->victim.moment] >= w->victim.at;
}

static void do_harm(series *s, run *r) {
    for (uint32_t i = 0; i < r->worker_count; i++) {
        worker *w = &r->workers[i];
        if (w->victim.is_one && !w->victim.was_struck && w->process.pid != 0 && is_due(r, w))
            strike(s, w);
        if (w->victim.restore_s != 0 && now_s() >= w->victim.restore_s && w->process.pid != 0)
            restore(w);
    }
}

static void turn(run *r, int wait_ms) {
    struct pollfd events[2 + MOST_WORKERS * RELAY_FDS];
    for (uint32_t i = 0; i < r->worker_count; i++)
        relay_watch(&r->workers[i].relay, events + 2 + i * RELAY_FDS);
    events[0] = (struct pollfd){.fd = r->master.pid ? r->out.fd : -1, .events = POLLIN};
    events[1] = (struct pollfd){.fd = r->master.pid ? r->err.fd : -1, .events = POLLIN};
    poll(events, 2 + r->worker_count * RELAY_FDS, wait_ms);
    for (uint32_t i = 0; i < r->worker_count; i++)
        relay_turn(&r->workers[i].relay, events + 2 + i * RELAY_FDS);
    hear_master(r);
}

static bool did_end_well(const process *p) {
    return WIFEXITED(p->status) && WEXITSTATUS(p->status) == 0;
}

/* Wait until all workers without a fault have ended by themselves. Set run.problem if one of them does not
 * end well. */
static void end_workers(run *r) {
    double until_s = now_s() + WORKERS_END_S;
    for (bool all = false; !all && now_s() < until_s;) {
        all = true;
        for (uint32_t i = 0; i < r->worker_count; i++)
            if (!r->workers[i].victim.was_struck && !has_ended(&r->workers[i].process))
                all = false;
        if (!all)
            turn(r, 5);
    }
    for (uint32_t i = 0; i < r->worker_count; i++) {
        worker *w = &r->workers[i];
        if (!w->victim.was_struck && w->process.pid != 0)
            r->problem = "a worker did not end after the master";
        else if (!w->victim.was_struck && !did_end_well(&w->process))
            r->problem = "a worker ended with an error";
        has_ended(&w->process);
        end_now(&w->process);
    }
}

static void play(series *s, run *r) {
    start_master(s, r);
    uint16_t port = await_port(r);
    if (port == 0) {
        r->problem = "the master printed no address in time";
        return;
    }
    for (uint32_t i = 0; i < r->worker_count; i++)
        start_worker(s, r, i, port);
    r->joined_s = now_s();
    while (!has_ended(&r->master) && now_s() - r->began_s < HANG_S) {
        do_harm(s, r);
        turn(r, 2);
    }
    if (r->master.pid != 0)
        r->problem = "the master did not end in time";
    else if (!did_end_well(&r->master) ||
             !strstr(r->out.text, "\"right\":400,\"wrong\":0,\"twice\":0,\"missing\":0,"))
        r->problem = "results are wrong or missing, or arrived twice";
    hear_master(r);
    if (!r->problem)
        end_workers(r);
}

static void clean_up(run *r) {
    end_now(&r->master);
    close(r->out.fd);
    close(r->err.fd);
    for (uint32_t i = 0; i < r->worker_count; i++) {
        end_now(&r->workers[i].process);
        if (r->workers[i].relay.port != 0)
            relay_close(&r->workers[i].relay);
    }
}

static void print_file(const char *folder, uint32_t number) {
    char file[256], line[512];
    snprintf(file, sizeof file, "%s/worker-%u", folder, number);
    FILE *f = fopen(file, "r");
    while (f && fgets(line, sizeof line, f))
        fprintf(stderr, "  worker %u: %s", number, line);
    if (f)
        fclose(f);
}

static void describe(const series *s, const run *r) {
    fprintf(stderr, "cluster-kills: run %llu of seed %llu: %s\n", (unsigned long long)r->number,
            (unsigned long long)s->seed, r->problem ? r->problem : "good");
    for (uint32_t i = 0; i < r->worker_count; i++) {
        const worker *w = &r->workers[i];
        const victim *v = &w->victim;
        if (v->is_one)
            fprintf(stderr, "  worker %u: %s %s, at %.4g%s, for %.2f s; status %x\n", i,
                    FAULT_NAMES[v->fault], MOMENT_NAMES[v->moment], v->at, v->was_struck ? "" : " (too late)",
                    v->lasts_s, (unsigned)w->process.status);
        print_file(s->folder, i);
    }
    const char *sum = strchr(r->out.text, '{');
    fprintf(stderr, "  master: status %x, %g results\n%s%s", (unsigned)r->master.status, r->results,
            r->err.text, sum ? sum : "");
}

static void play_number(series *s, uint64_t number) {
    static run r;
    r = (run){.number = number, .random = s->seed * 0x100000001b3 + number};
    r.worker_count = 2 + (uint32_t)(draw(&r.random) % (MOST_WORKERS - 1));
    r.victim_count = 1 + (uint32_t)(draw(&r.random) % (r.worker_count - 1));
    for (uint32_t i = 0; i < r.victim_count; i++)
        r.workers[i].victim = draw_victim(&r.random, s->lost_after_s);
    play(s, &r);
    clean_up(&r);
    double took_s = now_s() - r.began_s;
    s->elapsed_s += took_s;
    if (took_s > s->longest_s)
        s->longest_s = took_s;
    for (uint32_t i = 0; i < r.victim_count; i++)
        s->too_late += !r.workers[i].victim.was_struck;
    s->bad += r.problem != NULL;
    if (r.problem || s->runs == 1)
        describe(s, &r);
}

/* --- the series of runs --- */

static void print_table(const series *s) {
    printf("There were %llu runs (seed %llu, `--lost-after %g`): %llu were good, and %llu were not good. "
           "A run took %.1f s on average, and the longest run took %.1f s.\n\n",
           (unsigned long long)s->runs, (unsigned long long)s->seed, s->lost_after_s,
           (unsigned long long)(s->runs - s->bad), (unsigned long long)s->bad, s->elapsed_s / (double)s->runs,
           s->longest_s);
    printf("| what was done to a worker |");
    for (int m = 0; m < MOMENTS; m++)
        printf(" %s |", MOMENT_NAMES[m]);
    printf("\n|---|---|---|---|---|\n");
    for (int f = 0; f < FAULTS; f++) {
        printf("| %s |", FAULT_NAMES[f]);
        for (int m = 0; m < MOMENTS; m++)
            printf(" %llu |", (unsigned long long)s->struck[f][m]);
        printf("\n");
    }
    printf("\n%llu more faults were planned, but the runs ended before these faults.\n",
           (unsigned long long)s->too_late);
}

static bool read_word(series *s, const char *word) {
    char *end;
    const char *value = strchr(word, '=');
    double number = value ? strtod(value + 1, &end) : -1;
    if (!value || value[1] == '\0' || *end || number < 0)
        return false;
    if (strncmp(word, "runs=", 5) == 0)
        s->runs = (uint64_t)number;
    else if (strncmp(word, "seed=", 5) == 0)
        s->seed = (uint64_t)number;
    else if (strncmp(word, "lost_after_s=", 13) == 0)
        s->lost_after_s = number;
    else if (strncmp(word, "only=", 5) == 0) {
        s->first = (uint64_t)number;
        s->runs = 1;
    } else
        return false;
    return true;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where) {
    (void)about, (void)kind, (void)where;
    remove(path);
    return 0;
}

int main(int argc, char **argv) {
    char folder[200];
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/cluster-kills-XXXXXX", base && *base ? base : "/tmp");
    series s = {
        .farm = argc > 1 ? argv[1] : NULL, .runs = 20, .seed = (uint64_t)time(NULL), .lost_after_s = 1};
    for (int i = 2; i < argc; i++)
        if (!read_word(&s, argv[i]))
            s.farm = NULL;
    if (!s.farm || s.runs == 0) {
        fprintf(stderr, "usage: cluster-kills FARM [runs=N] [seed=N] [only=RUN] [lost_after_s=S]\n");
        return 2;
    }
    if (!mkdtemp(folder))
        give_up(folder);
    s.folder = folder;
    setenv("TMPDIR", folder, 1);
    setenv("XDG_STATE_HOME", folder, 1); /* the master keeps the farm's key in this folder */
    unsetenv("XDG_RUNTIME_DIR");
    signal(SIGPIPE, SIG_IGN);
    fprintf(stderr, "cluster-kills: seed %llu\n", (unsigned long long)s.seed);
    for (uint64_t i = 0; i < s.runs; i++)
        play_number(&s, s.first + i);
    print_table(&s);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return s.bad > 0;
}
