/* Test wrong uses and failures of loops on the ranks of MPI_COMM_WORLD. Each rank must name what is wrong,
 * and none may hang. Start this test with mpirun or death_test.sh. */
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/loop_suite.h"

/* --- loops of each kind, whose calls are written as letters --- */

enum { N = 48, WIDTH = 512 /* number of doubles in a row, which fills one page */ };

static const struct kind {
    const char *name;
    kilter_loop_options options;
    uint64_t ghost;
} kinds[] = {
    {"halo", {.iterations = N}, 1},
    {"deep", {.iterations = N, .deep = true}, 1},
    {"free", {.iterations = N}, 0},
    {"scattered", {.iterations = N, .scattered = true}, 0},
    {"pipeline", {.iterations = N, .kind = KILTER_DOACROSS, .inner = WIDTH, .block = 100}, 1},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct run {
    kilter_loop *loop;
    double *rows, *other;
    double *whole;
    kilter_error error;
    double body_s;
} run;

static kilter_status execute(run *r, const struct kind *kind) {
    kilter_range rows, inner;
    kilter_status status = kilter_loop_begin(r->loop, &r->error);
    if (status != KILTER_OK)
        return status;
    if (kind->options.kind == KILTER_DOACROSS)
        while (kilter_loop_next_block(r->loop, &rows, &inner)) {
            for (uint64_t i = rows.lo; i < rows.hi; i++)
                r->rows[i * WIDTH + inner.lo] += 1;
            kl_spend_s(r->body_s);
        }
    else
        while (kilter_loop_next(r->loop, &rows)) {
            for (uint64_t i = rows.lo; i < rows.hi; i++)
                r->rows[i * WIDTH] += 1;
            kl_spend_s(r->body_s);
        }
    return kilter_loop_end(r->loop, &r->error);
}

/* Do some sweeps. Loops with deep halos do more, because most of their sweeps have no exchange. */
static kilter_status execute_some(run *r, const struct kind *kind) {
    kilter_status status = KILTER_OK;
    for (int times = kind->options.deep ? 8 : 1; times > 0 && status == KILTER_OK; times--)
        status = execute(r, kind);
    return status;
}

/* Functions for messages and row content. They are never called in these tests. */
static bool take(uint64_t to, uint64_t from, const void *data, uint64_t bytes, void *user) {
    (void)to, (void)from, (void)bytes, (void)user;
    return data != NULL;
}
static uint64_t bytes_of(uint64_t row, void *user) {
    (void)row, (void)user;
    return 0;
}
static bool pack(uint64_t row, void *to, void *user) {
    (void)row, (void)to, (void)user;
    return true;
}
static bool unpack(uint64_t row, const void *from, uint64_t bytes, void *user) {
    (void)row, (void)from, (void)bytes, (void)user;
    return true;
}
static void drop(uint64_t row, void *user) {
    (void)row, (void)user;
}
static const kilter_loop_content content = {bytes_of, pack, unpack, drop, NULL};

static kilter_status make_call(run *r, const struct kind *kind, char call) {
    double sum;
    switch (call) {
    case 'o':
        return kilter_loop_open(MPI_COMM_WORLD, &kind->options, &r->loop, &r->error);
    case 'a':
        return kilter_loop_array(r->loop, WIDTH * sizeof(double), kind->ghost, (void **)&r->rows, &r->error);
    case 'A': /* attach a second array without ghost rows; loops of kind pipeline accept this row size, too */
        return kilter_loop_array(r->loop, WIDTH * sizeof(double), 0, (void **)&r->other, &r->error);
    case 'b':
        return execute_some(r, kind);
    case 's':
        return kilter_loop_sum(r->loop, r->rows, &sum, &r->error);
    case 'g':
        return kilter_loop_gather(r->loop, r->rows, 0, r->whole, &r->error);
    case 'G':
        return kilter_loop_gather(r->loop, r->rows, ranks - 1, r->whole, &r->error);
    case 'd':
        return kilter_loop_deliver(r->loop, take, NULL, &r->error);
    case 'r':
        return kilter_loop_rows(r->loop, &content, &r->error);
    case 'h':
        return kilter_loop_gather(r->loop, r->other, 0, r->whole, &r->error);
    default: /* c */
        return kilter_loop_close(r->loop, &r->error);
    }
}

static run new_run(void) {
    run r = {.whole = calloc(N * WIDTH, sizeof *r.whole)};
    CHECK(r.whole);
    return r;
}

/* --- ranks that make different calls --- */

/* each row is a pair {calls of one rank, calls of the other ranks}; each letter stands for a call */
static const char *const apart[][2] = {
    {"oaAbbGc", "oaAbbgc"}, {"oaAbgc", "oaAbhc"}, {"oaAbbgc", "oaAbgc"}, {"oaAbgbc", "oaAbbc"},
    {"oaAbbbc", "oaAbbc"},  {"oaAbc", "oaAbbgc"}, {"oaAbc", "oabc"},     {"oaAgbc", "oaAbgc"},
    {"oaAc", "oaAgc"},      {"oaAbdc", "oaAbc"},  {"oaArbc", "oaAbc"},
};

static void be_apart(const struct kind *kind, const char *calls) {
    run r = new_run();
    kilter_status status = make_call(&r, kind, *calls++);
    if (status == KILTER_OK)
        r.loop->bundle->steps.tell_after_s = 0;
    for (; *calls && status == KILTER_OK; calls++)
        status = make_call(&r, kind, *calls);
    if (!strstr(r.error.text, "are out of step") || !strstr(r.error.text, "kilter_loop_") ||
        (status != KILTER_ERR_USAGE && status != KILTER_ERR_PEER)) {
        fprintf(stderr, "%s, rank %d: before %s: status %d: %s\n", kind->name, rank, calls, status,
                r.error.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0)
        printf("%s: %s\n", kind->name, r.error.text);
    if (calls[-1] != 'c')
        kilter_loop_close(r.loop, NULL);
    free(r.whole);
}

static void test_steps(void) {
    size_t count = sizeof apart / sizeof *apart;
    for (size_t k = 0; k < KINDS && ranks > 1; k++)
        for (size_t i = 0; i < count; i++) {
            if (kinds[k].options.scattered && strchr(apart[i][0], 'd'))
                continue; /* scattered loops cannot deliver messages, so leave out this row */
            be_apart(&kinds[k], apart[i][rank == (int)(i + k) % ranks ? 0 : 1]);
            MPI_Barrier(MPI_COMM_WORLD);
        }
}

/* --- words: the messages by which ranks compare their calls --- */

/* told: number of words that this rank has sent; heard: number of words that it has received */
static int told, heard;
/* number of the last word that was sent, in memory that other ranks see; NULL: there is no such memory */
static _Atomic uint64_t *last_told;

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
    if (count == (int)sizeof(kl_steps_word)) {
        told++;
        if (last_told)
            *last_told = ((const kl_steps_word *)data)->number;
    }
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    heard += count == (int)sizeof(kl_steps_word);
    return PMPI_Recv(data, count, type, from, tag, comm, status);
}

enum { LONG_S = 60 }; /* greatest number of seconds to wait for a word */

static void await_word(const _Atomic uint64_t *number, uint64_t after) {
    double until_s = kl_monotonic_s() + LONG_S;
    while (*number <= after) {
        CHECK(kl_monotonic_s() < until_s);
        kl_nap_s(1e-3);
    }
}

/* In each call, one rank is late: it first waits until the previous rank has sent its word (list of calls).
 * Check that all words arrive. */
static void test_waits(void) {
    static const char calls[] = "oabbgc";
    run r = new_run();
    int all[2], unit;
    MPI_Win window;
    MPI_Aint size;
    const _Atomic uint64_t *told_before;
    MPI_Win_allocate_shared(sizeof *last_told, sizeof *last_told, MPI_INFO_NULL, MPI_COMM_WORLD, &last_told,
                            &window);
    MPI_Win_shared_query(window, (rank + ranks - 1) % ranks, &size, &unit, &told_before);
    *last_told = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int at = 0; calls[at]; at++) {
        if (at > 0 && rank == at % ranks)
            await_word(told_before, r.loop->bundle->steps.number);
        CHECK(make_call(&r, &kinds[0], calls[at]) == KILTER_OK);
    }
    CHECK(told <= (int)sizeof calls);
    MPI_Allreduce((int[]){told, heard}, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all[0] > ranks && all[1] == all[0]);
    last_told = NULL;
    MPI_Win_free(&window);
    free(r.whole);
}

/* --- programs that end MPI before they close the loop --- */

static void test_unclosed(void) {
    run r = new_run();
    kilter_status status = KILTER_OK;
    for (const char *call = "oaAb"; *call && status == KILTER_OK; call++)
        status = make_call(&r, &kinds[0], *call);
    if (rank == 0) {
        CHECK(status == KILTER_OK);
        free(r.whole);
        return;
    }
    while (status == KILTER_OK) /* make calls until rank 0 has ended, which may take longer than the calls so
                                   far */
        status = make_call(&r, &kinds[0], 'b');
    CHECK(status == KILTER_ERR_PEER);
    CHECK(strstr(r.error.text, "rank 0 has failed: MPI_Finalize(): loop 'loop' is open"));
    kilter_loop_close(r.loop, NULL);
    free(r.whole);
}

/* --- access to a row that has moved to another rank --- */

/* Let a child process read the row. Check the child's message and its exit status. */
static int touch(const double *row, char *said, size_t size) {
    int ends[2], status;
    CHECK(pipe(ends) == 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        _exit(*(const volatile double *)row == 0 ? 0 : 1);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t more = 1; more > 0; got += more > 0 ? (size_t)more : 0)
        more = read(ends[0], said + got, size - 1 - got);
    said[got] = '\0';
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static void leave(int number) {
    (void)number;
    _exit(33);
}

/* Set all[row] to the rank that has the row, plus 1. */
static void map_rows(kilter_loop *loop, char all[N]) {
    char mine[N] = "";
    kilter_range own;
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        memset(mine + own.lo, rank + 1, own.hi - own.lo);
    MPI_Allreduce(mine, all, N, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
}

/* Return whether the row is neither one of this rank's own rows nor one of its ghost rows. */
static bool is_far(const char all[N], int i) {
    int last = i + 1 < N ? i + 1 : i;
    for (int j = i > 0 ? i - 1 : 0; j <= last; j++)
        if (all[j] == rank + 1)
            return false;
    return true;
}

/* Return the number of rows, on all ranks together, that have left their first rank and are not ghost rows
 * there. */
static int count_gone(const char first[N], const char all[N]) {
    int gone = 0, sum;
    for (int i = 0; i < N; i++)
        gone += first[i] == rank + 1 && is_far(all, i);
    MPI_Allreduce(&gone, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void touch_row(const run *r, const struct kind *kind, int i, const char *first, const char *all,
                      bool handled) {
    char words[160], said[4096];
    int status = touch(&r->rows[i * WIDTH], said, sizeof said);
    snprintf(words, sizeof words, "loop 'loop': rank %d touched row %d of array 0, which ", rank, i);
    CHECK(strstr(said, words));
    snprintf(words, sizeof words, "which is on rank %d now", all[i] - 1);
    CHECK(kind->options.scattered || strstr(said, words));
    CHECK(first[i] != rank + 1 || strstr(said, "in sweep "));
    CHECK(handled ? WIFEXITED(status) && WEXITSTATUS(status) == 33
                  : WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void touch_others(const struct kind *kind, bool handled) {
    struct sigaction mine = {.sa_handler = leave}, kept, now;
    sigaction(SIGSEGV, handled ? &mine : NULL, &kept);
    run r = new_run();
    for (const char *call = "oaA"; *call; call++)
        CHECK(make_call(&r, kind, *call) == KILTER_OK);
    char first[N], all[N], said[4096];
    map_rows(r.loop, first);
    force_moves(r.loop, 3);
    int executions = 0;
    do { /* measured times decide when rows move, so repeat sweeps until a row has moved */
        CHECK(execute(&r, kind) == KILTER_OK);
        map_rows(r.loop, all);
    } while (count_gone(first, all) == 0 && ++executions < 1000);
    CHECK(count_gone(first, all) > 0);
    for (int i = 0; i < N; i++)
        if (is_far(all, i))
            touch_row(&r, kind, i, first, all, handled);
    CHECK(WIFEXITED(touch(&r.whole[0], said, sizeof said)));
    CHECK(make_call(&r, kind, 'c') == KILTER_OK);
    sigaction(SIGSEGV, &kept, &now);
    CHECK(handled ? now.sa_handler == leave : now.sa_sigaction == kept.sa_sigaction);
    free(r.whole);
}

static void test_touch(void) {
    for (size_t k = 0; k < KINDS && ranks > 1; k++)
        for (int handled = 0; handled < 2 && !kinds[k].options.deep;
             handled++) /* with deep halos, each rank has all rows of such a small loop, so the test leaves
                           them out */
            touch_others(&kinds[k], handled);
}

/* --- a rank that dies during a call --- */

/* Set a short time to wait for ranks, because only silence shows these deaths. A death is reported only
 * after MPI has started, which may take longer than this time. */
static void be_impatient(void) {
    setenv("KILTER_MPI_START_S", "2", 1);
}

static void die(int number) {
    (void)number;
    kill(getpid(), SIGKILL);
}

static void test_death(const char *name, int when, int who, bool leaves) {
    const struct kind *kind = kinds;
    while (strcmp(kind->name, name) != 0)
        CHECK(++kind < kinds + KINDS);
    run r = new_run();
    static const char calls[] = "oaAbbbgbgGc";
    bool at_random = when < 0;
    kilter_status status = KILTER_OK;
    r.body_s = 1e-4;
    if (when == 0)
        be_impatient();
    for (int at = 0; status == KILTER_OK; at++) {
        if (kind->options.deep && at == 3)
            force_moves(r.loop, 1);
        if (at_random && at == 3) {
            force_moves(r.loop, (uint64_t)-when);
            signal(SIGALRM, die);
            const struct itimerval timer = {.it_value = {.tv_usec = -when}};
            if (rank == who)
                setitimer(ITIMER_REAL, &timer, NULL);
        }
        if (rank == who && at == when && leaves)
            exit(0);
        if (rank == who && at == when)
            kill(getpid(), SIGKILL);
        /* until the rank dies at a random time, it repeats all calls but the one that closes the loop */
        char call = calls[at < 10 || !at_random ? at : 3 + (at - 3) % 7];
        CHECK(call);
        status = make_call(&r, kind, call);
    }
    char words[40];
    snprintf(words, sizeof words, "rank %d is dead", who);
    bool right = status == KILTER_ERR_PEER && strstr(r.error.text, when == 0 ? "not all ranks" : words);
    printf("rank %d %s: %s\n", rank, right ? "is right" : "is WRONG", r.error.text);
    fflush(stdout);
    _exit(right ? 0 : 1);
}

/* --- a rank that dies while others open the loop --- */

static int halves_left = -1; /* number of calls of pass_half() that this rank survives; each collective
                                operation makes two such calls; below 0: the rank does not die */

static void pass_half(void) {
    if (halves_left-- == 0)
        kill(getpid(), SIGKILL);
}

/* Replace the collective operations of kilter_loop_open() by versions in which a rank can die. */
#define MORTAL(name, parameters, arguments)                                                                  \
    int MPI_##name parameters {                                                                              \
        pass_half();                                                                                         \
        int code = PMPI_##name arguments;                                                                    \
        pass_half();                                                                                         \
        return code;                                                                                         \
    }

MORTAL(Iallreduce,
       (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
        MPI_Request *request),
       (from, to, count, type, op, comm, request))
MORTAL(Iscatter,
       (const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type,
        int root, MPI_Comm comm, MPI_Request *request),
       (from, count, type, to, to_count, to_type, root, comm, request))
MORTAL(Igather,
       (const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type,
        int root, MPI_Comm comm, MPI_Request *request),
       (from, count, type, to, to_count, to_type, root, comm, request))
MORTAL(Ibcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request),
       (data, count, type, root, comm, request))
MORTAL(Comm_idup, (MPI_Comm comm, MPI_Comm *copy, MPI_Request *request), (comm, copy, request))

enum {
    /* number of calls of pass_half() by a rank after which the others can learn that this rank has started */
    ALL_THERE = 2,
    /* number of calls of pass_half() by a rank after which all ranks can learn that every rank is connected
     * to rank 0 */
    CONNECTED = 6
};

static void test_birth(int when, int who) {
    run r = new_run();
    char dead[40];
    snprintf(dead, sizeof dead, "rank %d is dead", who);
    if (when < CONNECTED)
        be_impatient();
    if (rank == who)
        halves_left = when;
    kilter_status status = make_call(&r, &kinds[0], 'o');
    CHECK(rank != who);
    if (status == KILTER_OK) /* the dead rank had sent all messages that are needed to open the loop, so make
                                another call */
        status = make_call(&r, &kinds[0], 'a');
    bool right = strstr(r.error.text, dead) != NULL;
    if (when < CONNECTED) /* MPICH itself sometimes notices the death */
        right |= strstr(r.error.text, "silent for") || strstr(r.error.text, "MPI says");
    if (when < ALL_THERE)
        right |= strstr(r.error.text, "not all ranks") != NULL;
    right &= status == KILTER_ERR_PEER || status == KILTER_ERR_MPI;
    printf("rank %d %s: %s\n", rank, right ? "is right" : "is WRONG", r.error.text);
    fflush(stdout);
    _exit(right ? 0 : 1);
}

/* --- a rank that computes for long while other ranks wait for a dead rank --- */

static void test_deaf(const char *file, int who) {
    run r = new_run();
    char dead[40];
    snprintf(dead, sizeof dead, "rank %d is dead", who);
    for (const char *call = "oab"; *call; call++)
        CHECK(make_call(&r, &kinds[0], *call) == KILTER_OK);
    kilter_status status = kilter_loop_begin(r.loop, &r.error);
    for (kilter_range rows; status == KILTER_OK && kilter_loop_next(r.loop, &rows);) {
        if (rank == who)
            kill(getpid(), SIGKILL);
        while (rank == 0 && access(file, F_OK) != 0)
            kl_nap_s(1e-3);
    }
    if (status == KILTER_OK) /* when rank WHO dies, a slower rank may not have begun its sweep yet */
        status = kilter_loop_end(r.loop, &r.error);
    while (status == KILTER_OK)
        status = make_call(&r, &kinds[0], 'b');
    bool right = status == KILTER_ERR_PEER && strstr(r.error.text, dead);
    printf("rank %d %s: %s\n", rank, right ? "is right" : "is WRONG", r.error.text);
    fflush(stdout);
    int made = rank == 0 ? 0 : creat(file, 0600);
    _exit(right && made >= 0 ? 0 : 1);
}

int main(int count, char **arguments) {
    setenv("KILTER_CHECK", "1", 0);
    suite_begin();
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "steps") == 0)
        test_steps();
    else if (strcmp(what, "waits") == 0)
        test_waits();
    else if (strcmp(what, "unclosed") == 0)
        test_unclosed();
    else if (strcmp(what, "touch") == 0)
        test_touch();
    else if ((strcmp(what, "death") == 0 || strcmp(what, "leave") == 0) && count > 4)
        test_death(arguments[2], atoi(arguments[3]), atoi(arguments[4]), strcmp(what, "leave") == 0);
    else if (strcmp(what, "birth") == 0 && count > 3)
        test_birth(atoi(arguments[2]), atoi(arguments[3]));
    else if (strcmp(what, "deaf") == 0 && count > 3)
        test_deaf(arguments[2], atoi(arguments[3]));
    else
        CHECK(!"the arguments must be steps, waits, unclosed, touch, birth WHEN WHO, deaf FILE WHO, or death "
               "or "
               "leave "
               "KIND WHEN WHO");
    MPI_Finalize();
}
