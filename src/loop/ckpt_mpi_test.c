/* A program with checkpoints, for ckpt_test.sh and tools/checkpoint-kills. If there is a checkpoint, the
 * program resumes from it. Rows move at every opportunity. The result depends on all rows, on the content and
 * on kept values, and is the same for every number of ranks. The argument KIND is doall, deep, across,
 * scattered or content. */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include "loop/loop_suite.h"

enum { WIDTH = 12 };

typedef struct state {
    const char *kind;
    uint64_t rows, sweeps;
    kilter_loop *loop;
    /* u, v: rows of WIDTH doubles; v is used only by bodies that must not write what they read; part: rows of
     * one double, which are summed */
    double *u, *v, *part;
    double sum; /* a value kept in checkpoints; it is computed from all rows, and changes the rows in turn */
    uint64_t steps;   /* another value kept in checkpoints: number of sweeps done */
    uint64_t **lists; /* lists[row]: content of a row on this rank; its first word is its length */
} state;

static bool is(const state *s, const char *kind) {
    return strcmp(s->kind, kind) == 0;
}

static int report(const kilter_error *error) {
    if (rank == 0)
        fprintf(stderr, "ckpt_mpi_test: %s\n", error->text);
    /* wait for all ranks, because the launcher ends all of them when the first one exits with an error */
    MPI_Barrier(MPI_COMM_WORLD);
    return 1;
}

/* --- content of rows: a list of numbers whose length changes --- */

static uint64_t list_bytes(uint64_t row, void *user) {
    const uint64_t *list = ((state *)user)->lists[row];
    CHECK(list);
    return list[0] * sizeof *list;
}

static bool list_pack(uint64_t row, void *to, void *user) {
    static int refused;
    const uint64_t *list = ((state *)user)->lists[row];
    if (rank == 1 && getenv("TEST_REFUSES") && refused < atoi(getenv("TEST_REFUSES"))) {
        refused++;
        return false;
    }
    memcpy(to, list + 1, list[0] * sizeof *list);
    return true;
}

static uint64_t *new_list(uint64_t length) {
    uint64_t *list = calloc(length + 1, sizeof *list);
    CHECK(list);
    list[0] = length;
    return list;
}

static bool list_unpack(uint64_t row, const void *from, uint64_t bytes, void *user) {
    state *s = user;
    CHECK(!s->lists[row] && bytes % sizeof(uint64_t) == 0);
    s->lists[row] = new_list(bytes / sizeof(uint64_t));
    memcpy(s->lists[row] + 1, from, bytes);
    return true;
}

static void list_drop(uint64_t row, void *user) {
    state *s = user;
    free(s->lists[row]);
    s->lists[row] = NULL;
}

/* Replace the row's list by a list of another length, which may be empty. */
static void change_list(state *s, uint64_t row) {
    uint64_t *old = s->lists[row], seed = kl_mix64(row * 31 + s->steps);
    uint64_t *list = new_list(seed % 4 == 0 ? 0 : seed % 9);
    for (uint64_t i = 1; i <= list[0]; i++)
        list[i] = kl_mix64(seed + i + (old[0] > 0 ? old[old[0]] : 7));
    free(old);
    s->lists[row] = list;
}

/* --- the loop whose checkpoints are tested --- */

/* Hide a folder from rank 1, by mounting an empty folder over it. Only root may do this. */
static void hide(const char *folder) {
    if (folder && rank == 1 &&
        (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
         mount("none", folder, "tmpfs", 0, NULL) != 0))
        printf("not allowed to hide a folder\n");
}

/* Begin a sweep. If TEST_STARVES is set, rank 1 gets hardly any memory in every second sweep. */
static kilter_status begin(const state *s, kilter_error *error) {
    struct rlimit limit = little_more();
    bool starves = rank == 1 && getenv("TEST_STARVES") && s->steps % 2 == 0;
    if (starves)
        setrlimit(RLIMIT_DATA, &limit);
    kilter_status status = kilter_loop_begin(s->loop, error);
    if (starves)
        setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    return status;
}

static void open_loop(state *s) {
    kilter_error error = {KILTER_OK, ""};
    bool across = is(s, "across");
    const kilter_loop_options options = {.iterations = s->rows,
                                         .kind = across ? KILTER_DOACROSS : KILTER_DOALL,
                                         .inner = across ? WIDTH : 0,
                                         .scattered = is(s, "scattered"),
                                         .deep = is(s, "deep"),
                                         .sweeps = s->sweeps,
                                         .name = "test"};
    uint64_t ghost = !is(s, "scattered");
    hide(getenv("TEST_HIDES"));
    if (kilter_loop_open(MPI_COMM_WORLD, &options, &s->loop, &error) != KILTER_OK)
        _exit(report(&error));
    CHECK_OK(kilter_loop_array(s->loop, WIDTH * sizeof(double), ghost, (void **)&s->u, error));
    CHECK_OK(kilter_loop_array(s->loop, WIDTH * sizeof(double), ghost, (void **)&s->v, error));
    if (!across)
        CHECK_OK(kilter_loop_array(s->loop, sizeof(double), 0, (void **)&s->part, error));
    if (is(s, "content")) {
        s->lists = calloc(s->rows, sizeof *s->lists);
        CHECK_OK(kilter_loop_rows(
            s->loop, &(kilter_loop_content){list_bytes, list_pack, list_unpack, list_drop, s}, error));
    }
    CHECK_OK(kilter_loop_keep(s->loop, "sum", &s->sum, sizeof s->sum, error));
    CHECK_OK(kilter_loop_keep(s->loop, "steps", &s->steps, sizeof s->steps, error));
    force_moves(s->loop, 11 + s->rows);
    const char *most = getenv("TEST_FILE_BYTES");
    if (most) {
        struct rlimit limit = {strtoull(most, NULL, 10), RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
}

static double first_value(uint64_t row, int k) {
    return (double)(kl_mix64(row * WIDTH + (uint64_t)k) >> 40) / (1 << 24);
}

static void set_first_values(state *s) {
    kilter_range r;
    for (size_t n = 0; kilter_loop_mine(s->loop, n, &r); n++)
        for (uint64_t i = r.lo; i < r.hi; i++) {
            for (int k = 0; k < WIDTH; k++)
                s->u[i * WIDTH + (uint64_t)k] = first_value(i, k);
            if (s->lists)
                s->lists[i] = new_list(i % 3);
        }
}

static void relax(const state *s, const double *from, double *to, uint64_t i) {
    bool reads = !is(s, "scattered");
    for (uint64_t k = 0; k < WIDTH; k++) {
        double above = reads && i > 0 ? from[(i - 1) * WIDTH + k] : 0.25;
        double below = reads && i + 1 < s->rows ? from[(i + 1) * WIDTH + k] : 0.75;
        to[i * WIDTH + k] = 0.3 * above + 0.3 * below + 0.4 * from[i * WIDTH + k] + 1e-3 * s->sum;
    }
}

/* Compute the rows of v from u in even steps, and the rows of u from v in odd steps. */
static void sweep_rows(state *s) {
    kilter_range r;
    const double *from = s->steps % 2 == 0 ? s->u : s->v;
    double *to = s->steps % 2 == 0 ? s->v : s->u;
    while (kilter_loop_next(s->loop, &r))
        for (uint64_t i = r.lo; i < r.hi; i++) {
            relax(s, from, to, i);
            s->part[i] = to[i * WIDTH];
            if (s->lists)
                change_list(s, i);
        }
}

static void sweep_blocks(state *s) {
    kilter_range r, b;
    while (kilter_loop_next_block(s->loop, &r, &b))
        for (uint64_t i = r.lo; i < r.hi; i++)
            for (uint64_t k = b.lo; k < b.hi; k++) {
                double above = i > 0 ? s->u[(i - 1) * WIDTH + k] : 0.25;
                double below = i + 1 < s->rows ? s->u[(i + 1) * WIDTH + k] : 0.75;
                s->u[i * WIDTH + k] = 0.3 * above + 0.3 * below + 0.4 * s->u[i * WIDTH + k];
            }
}

/* Wait until the checkpoint that is being written is complete, so that the number of saves depends only on
 * the number of sweeps. */
static void await_save(kilter_loop *loop) {
    while (loop->saver && loop->saver->save.under_way)
        CHECK_OK(kl_saving_look(loop, error));
}

/* --- the program's result --- */

static uint64_t result_of(state *s) {
    size_t bytes = s->rows * WIDTH * sizeof(double);
    double *whole = malloc(bytes);
    uint64_t lists = 0, all = 0, hash = kl_hash(&s->sum, sizeof s->sum, s->steps);
    CHECK(whole);
    for (int a = 0; a < 2; a++) {
        CHECK_OK(kilter_loop_gather(s->loop, a == 0 ? s->u : s->v, 0, whole, error));
        hash = kl_hash(whole, bytes, hash);
    }
    for (uint64_t i = 0; s->lists && i < s->rows; i++)
        if (s->lists[i])
            lists += kl_hash(s->lists[i], (s->lists[i][0] + 1) * sizeof(uint64_t), i);
    MPI_Reduce(&lists, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    free(whole);
    return kl_hash(&all, sizeof all, hash);
}

static void close_loop(state *s) {
    for (uint64_t i = 0; s->lists && i < s->rows; i++)
        free(s->lists[i]);
    free(s->lists);
    s->lists = NULL;
    CHECK_OK(kilter_loop_close(s->loop, error));
}

static uint64_t saves_of(kilter_loop *loop) {
    kilter_loop_summary summary;
    kilter_loop_summary_get(loop, &summary);
    uint64_t saves = summary.saves;
    MPI_Bcast(&saves, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return saves;
}

static int run(state *s, uint64_t die_after) {
    kilter_error error = {KILTER_OK, ""};
    uint64_t done;
    open_loop(s);
    if (kilter_loop_resumed(s->loop, &done, &error) != KILTER_OK)
        return report(&error);
    CHECK(done == 0 || done == s->steps);
    if (done == 0)
        set_first_values(s);
    if (rank == 0)
        printf("resumed at %llu\n", kl_ull(done));
    while (s->steps < s->sweeps) {
        if (begin(s, &error) != KILTER_OK)
            return report(&error);
        if (is(s, "across"))
            sweep_blocks(s);
        else
            sweep_rows(s);
        CHECK_OK(kilter_loop_end(s->loop, error));
        if (!is(s, "across"))
            CHECK_OK(kilter_loop_sum(s->loop, s->part, &s->sum, error));
        s->steps++;
        await_save(s->loop);
        if (die_after > 0 && saves_of(s->loop) >= die_after)
            raise(SIGKILL);
    }
    uint64_t result = result_of(s), saves = saves_of(s->loop);
    if (rank == 0)
        printf("result %016llx after %llu saves\n", kl_ull(result), kl_ull(saves));
    close_loop(s);
    return 0;
}

/* --- a program that is killed at any time --- */

/* Return the value that a row must have after some steps. */
static double known_value(uint64_t row, uint64_t steps) {
    return (double)(row * 1000003 + steps);
}

static void check_known(const state *s, uint64_t done, uint64_t words) {
    kilter_range r;
    for (size_t n = 0; done > 0 && kilter_loop_mine(s->loop, n, &r); n++)
        for (uint64_t i = r.lo; i < r.hi; i++)
            for (uint64_t k = 0; k < words; k++)
                CHECK(s->u[i * words + k] == known_value(i, done));
}

static void say_process(const char *folder) {
    char path[600], part[640];
    snprintf(path, sizeof path, "%s/process.%d", folder, rank);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "w");
    CHECK(file && fprintf(file, "%d\n", (int)getpid()) > 0 && fclose(file) == 0);
    CHECK(rename(part, path) == 0);
}

_Noreturn static void endless(state *s, const char *folder) {
    enum { WORDS = 1 << 14 };
    const kilter_loop_options options = {.iterations = s->rows, .name = "endless"};
    kilter_range r;
    uint64_t done;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &s->loop, error));
    CHECK_OK(kilter_loop_array(s->loop, WORDS * sizeof(double), 1, (void **)&s->u, error));
    CHECK_OK(kilter_loop_keep(s->loop, "steps", &s->steps, sizeof s->steps, error));
    force_moves(s->loop, 5 + s->rows);
    CHECK_OK(kilter_loop_resumed(s->loop, &done, error));
    CHECK(done == s->steps);
    check_known(s, done, WORDS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("resumed at %llu\n", kl_ull(done));
        fflush(stdout);
    }
    say_process(folder);
    for (;;) {
        CHECK_OK(kilter_loop_begin(s->loop, error));
        s->steps++;
        while (kilter_loop_next(s->loop, &r))
            for (uint64_t i = r.lo * WORDS; i < r.hi * WORDS; i++)
                s->u[i] = known_value(i / WORDS, s->steps);
        CHECK_OK(kilter_loop_end(s->loop, error));
    }
}

/* --- a program that a keeper watches --- */

static int keep(state *s) {
    kilter_error error = {KILTER_OK, ""};
    kilter_range r;
    uint64_t done;
    open_loop(s);
    CHECK_OK(kilter_loop_resumed(s->loop, &done, error));
    while (kilter_loop_begin(s->loop, &error) == KILTER_OK) {
        s->steps++;
        while (kilter_loop_next(s->loop, &r))
            for (uint64_t i = r.lo * WIDTH; i < r.hi * WIDTH; i++)
                s->u[i] = (double)s->steps;
        CHECK_OK(kilter_loop_end(s->loop, error));
    }
    CHECK(error.status == KILTER_ERR_STOPPED);
    CHECK(kilter_loop_begin(s->loop, &error) == KILTER_ERR_STOPPED);
    report(&error);
    for (size_t n = 0; kilter_loop_mine(s->loop, n, &r); n++)
        CHECK(s->steps == 0 || s->u[r.lo * WIDTH] == (double)s->steps);
    close_loop(s);
    return 3;
}

/* --- programs with wrong calls --- */

static int wrong(state *s) {
    kilter_error error = {KILTER_OK, ""};
    uint64_t done = 77;
    double more = 0;
    open_loop(s);
    CHECK_OK(kilter_loop_keep(s->loop, "more", &more, sizeof more, error));
    CHECK(kilter_loop_resumed(s->loop, &done, &error) == KILTER_ERR_INPUT && done == 77);
    return report(&error);
}

static int forgets(state *s) {
    kilter_error error = {KILTER_OK, ""};
    open_loop(s);
    CHECK(kilter_loop_begin(s->loop, &error) == KILTER_ERR_USAGE);
    return report(&error);
}

/* Declare arrays, row content and a value after the loop was resumed. All must be refused, because the
 * checkpoint does not have them. */
static void declare_late(state *s) {
    kilter_error error = {KILTER_OK, ""};
    kilter_loop *follower;
    void *base = NULL;
    const kilter_loop_options options = {.iterations = s->rows, .follows = s->loop};
    const kilter_loop_content content = {list_bytes, list_pack, list_unpack, list_drop, s};
    CHECK(kilter_loop_array(s->loop, 8, 0, &base, &error) == KILTER_ERR_USAGE && !base);
    CHECK(strstr(error.text, "kilter_loop_resumed() was called already"));
    CHECK(kilter_loop_rows(s->loop, &content, &error) == KILTER_ERR_USAGE);
    CHECK(strstr(error.text, "kilter_loop_resumed() was called already"));
    CHECK(kilter_loop_keep(s->loop, "late", &s->rows, sizeof s->rows, &error) == KILTER_ERR_USAGE);
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &follower, error));
    CHECK(kilter_loop_array(follower, 8, 0, &base, &error) == KILTER_ERR_USAGE && !base);
    CHECK_OK(kilter_loop_close(follower, error));
}

static int misuse(state *s) {
    kilter_error error = {KILTER_OK, ""};
    uint64_t done;
    const char *const bad[] = {"", "1a", "a b", "a/b", "sum", NULL};
    open_loop(s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(kilter_loop_keep(s->loop, bad[i], &done, sizeof done, &error) == KILTER_ERR_RANGE);
    CHECK(kilter_loop_keep(s->loop, "none", &done, 0, &error) == KILTER_ERR_RANGE);
    CHECK(kilter_loop_keep(s->loop, "none", NULL, 8, &error) == KILTER_ERR_RANGE);
    CHECK(kilter_loop_resumed(s->loop, NULL, &error) == KILTER_ERR_USAGE);
    CHECK_OK(kilter_loop_resumed(s->loop, &done, error));
    CHECK(done == 0);
    CHECK(kilter_loop_resumed(s->loop, &done, &error) == KILTER_ERR_USAGE);
    declare_late(s);
    CHECK_OK(kilter_loop_begin(s->loop, error));
    sweep_rows(s);
    CHECK_OK(kilter_loop_end(s->loop, error));
    CHECK(kilter_loop_resumed(s->loop, &done, &error) == KILTER_ERR_USAGE);
    CHECK(kilter_loop_keep(s->loop, "late", &done, sizeof done, &error) == KILTER_ERR_USAGE);
    close_loop(s);
    return 0;
}

int main(int count, char **words) {
    state s = {.kind = "doall"};
    suite_begin();
    CHECK(count >= 3);
    bool has_kind = strcmp(words[1], "run") == 0 || strcmp(words[1], "wrong") == 0;
    if (has_kind)
        s.kind = words[2];
    s.rows = strtoull(words[2 + has_kind], NULL, 10);
    if (strcmp(words[1], "run") == 0)
        s.sweeps = strtoull(words[4], NULL, 10);
    if (strcmp(words[1], "endless") == 0)
        endless(&s, words[3]);
    int code = strcmp(words[1], "run") == 0       ? run(&s, count > 5 ? strtoull(words[5], NULL, 10) : 0)
               : strcmp(words[1], "keep") == 0    ? keep(&s)
               : strcmp(words[1], "wrong") == 0   ? wrong(&s)
               : strcmp(words[1], "forgets") == 0 ? forgets(&s)
                                                  : misuse(&s);
    if (code == 1)
        _exit(code); /* exit without MPI_Finalize(), which would wait for ranks whose loop has failed */
    MPI_Finalize();
    return code;
}
