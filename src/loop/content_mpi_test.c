/* Compare rows of changing size, and messages between rows, with the sequential program, bit by bit. The
 * ranks are those of MPI_COMM_WORLD. Start this test with mpirun. */
#include <signal.h>
#include <sys/resource.h>

#include "loop/loop_suite.h"

/* --- the sequential program: rows of particles --- */

typedef struct bag { /* content of a row: particles, each of which is a number */
    uint64_t *at;
    uint64_t count, room;
    bool here; /* true: the row is on this rank */
} bag;

typedef enum function { NONE, BYTES, PACK, UNPACK, DROP, TAKE } function;

typedef struct world {
    uint64_t n;
    bag *bags;
    int unpackable; /* number of the call of pack() that fails; 0: no call fails */
    int untakable;  /* number of the call of unpack() or take() that fails; 0: no call fails */
    uint64_t extra; /* additional bytes in each row */
    /* the function that calls the loop, which is an error; `call` says which call it makes */
    function calls;
    int call;
    kilter_loop *loop;
    function dies; /* the function that kills the rank in its call number `dies_in` */
    int dies_in;
} world;

static void add(bag *b, uint64_t particle) {
    if (b->count == b->room) {
        b->room = 2 * b->room + 4;
        b->at = realloc(b->at, b->room * sizeof *b->at);
        CHECK(b->at);
    }
    b->at[b->count++] = particle;
}

static world new_world(uint64_t n) {
    world w = {.n = n, .bags = calloc(n, sizeof *w.bags)};
    CHECK(w.bags);
    return w;
}

static void fill(bag *b, uint64_t row) {
    b->here = true;
    for (uint64_t i = 0; i < kl_mix64(row) % 9; i++)
        add(b, kl_mix64(row * 100 + i));
}

static void free_world(world *w) {
    for (uint64_t row = 0; row < w->n; row++)
        free(w->bags[row].at);
    free(w->bags);
}

static uint64_t hash_of(const bag *b) {
    uint64_t hash = b->count;
    for (uint64_t i = 0; i < b->count; i++)
        hash = kl_mix64(hash + b->at[i]);
    return hash >> 12; /* keep 52 bits, because a double stores them exactly */
}

/* A particle is changed by the particles before it in its row. Afterwards it may go to another row. */
static uint64_t step(uint64_t *particle, uint64_t before, uint64_t row, uint64_t n) {
    *particle = kl_mix64(*particle + 3 * before + row);
    uint64_t way = *particle % 16, far = n < 4 ? n : 4;
    if (way < 4 || n == 1)
        return (row + n - 1 - way % far) % n;
    return row;
}

static void sequential(world *w, int sweeps, bool stays) {
    bag *next = calloc(w->n, sizeof *next);
    for (uint64_t row = 0; row < w->n; row++)
        fill(&w->bags[row], row);
    for (int sweep = 0; sweep < sweeps; sweep++) {
        for (uint64_t row = 0; row < w->n; row++) /* particles that stay in the row come before particles
                                                     that arrive */
            for (int arrives = 0; arrives < 2; arrives++)
                for (uint64_t from = 0; from < w->n; from++) {
                    uint64_t before = 0;
                    if (!arrives && from != row)
                        continue;
                    for (uint64_t i = 0; i < w->bags[from].count; i++) {
                        uint64_t p = w->bags[from].at[i], to = step(&p, before, from, w->n);
                        before = p;
                        to = stays ? from : to;
                        if (to == row && (to == from) == !arrives)
                            add(&next[row], p);
                    }
                }
        for (uint64_t row = 0; row < w->n; row++) {
            bag old = w->bags[row];
            w->bags[row] = next[row];
            next[row] = (bag){.at = old.at, .room = old.room};
            if (w->bags[row].count > 0 && w->bags[row].at[0] % 3 == 0 && w->bags[row].count < 40)
                add(&w->bags[row], (uint64_t)sweep);
        }
    }
    for (uint64_t row = 0; row < w->n; row++)
        free(next[row].at);
    free(next);
}

/* --- the same particles in a loop of Kilter --- */

enum { INNER_CALLS = 7 };

/* Call the loop from within one of the program's functions. The call must fail. */
static kilter_status call_loop(world *w, kilter_error *error) {
    uint64_t data = 1;
    double sum = 0;
    kilter_range range;
    switch (w->call) {
    case 0:
        return kilter_loop_post(w->loop, 0, 1, &data, sizeof data, error);
    case 1:
        return kilter_loop_begin(w->loop, error);
    case 2:
        return kilter_loop_end(w->loop, error);
    case 3:
        return kilter_loop_sum(w->loop, &sum, &sum, error);
    case 4:
        return kilter_loop_deliver(w->loop, NULL, NULL, error);
    case 5:
        CHECK(!kilter_loop_mine(w->loop, 0, &range) && !kilter_loop_next(w->loop, &range));
        return kilter_loop_gather(w->loop, &sum, 0, NULL, error);
    default:
        return kilter_loop_close(w->loop, error);
    }
}

/* Do what the test wants in function `f`: nothing, a call of the loop, or the death of the rank. */
static void enter(world *w, function f) {
    kilter_error error = {KILTER_OK, ""};
    if (w->dies == f && --w->dies_in == 0)
        raise(SIGKILL);
    if (w->calls != f)
        return;
    w->calls = NONE;
    CHECK(kilter_loop_owner(w->loop, 0) == -1);
    CHECK(call_loop(w, &error) == KILTER_ERR_USAGE && strstr(error.text, "must not call the loop"));
}

static uint64_t bytes_of(uint64_t row, void *user) {
    world *w = user;
    CHECK(w->bags[row].here);
    enter(w, BYTES);
    return w->bags[row].count * sizeof(uint64_t) + w->extra;
}

static bool pack(uint64_t row, void *to, void *user) {
    world *w = user;
    CHECK(w->bags[row].here && (uintptr_t)to % 16 == 0);
    enter(w, PACK);
    if (w->bags[row].count > 0)
        memcpy(to, w->bags[row].at, w->bags[row].count * sizeof(uint64_t));
    memset((uint64_t *)to + w->bags[row].count, 1, w->extra);
    return w->unpackable == 0 || --w->unpackable > 0;
}

static bool takes(world *w) {
    return w->untakable == 0 || --w->untakable > 0;
}

static bool unpack(uint64_t row, const void *from, uint64_t bytes, void *user) {
    world *w = user;
    bag *b = &w->bags[row];
    CHECK(!b->here && b->count == 0 && bytes >= w->extra && (uintptr_t)from % 16 == 0);
    enter(w, UNPACK);
    b->here = true;
    for (uint64_t i = 0; i < (bytes - w->extra) / sizeof(uint64_t); i++)
        add(b, ((const uint64_t *)from)[i]);
    return takes(w);
}

static void drop(uint64_t row, void *user) {
    world *w = user;
    CHECK(w->bags[row].here);
    enter(w, DROP);
    free(w->bags[row].at);
    w->bags[row] = (bag){.here = false};
}

static bool take(uint64_t to, uint64_t from, const void *data, uint64_t bytes, void *user) {
    world *w = user;
    CHECK(w->bags[to].here && bytes % sizeof(uint64_t) == 0 && from != to && (uintptr_t)data % 16 == 0);
    enter(w, TAKE);
    for (uint64_t i = 0; i < bytes / sizeof(uint64_t); i++)
        add(&w->bags[to], ((const uint64_t *)data)[i]);
    return takes(w);
}

static const kilter_loop_content CONTENT = {bytes_of, pack, unpack, drop, NULL};

static kilter_loop_content content_of(world *w) {
    kilter_loop_content content = CONTENT;
    content.user = w;
    return content;
}

static void do_row(kilter_loop *loop, world *w, uint64_t row, bool stays) {
    bag *b = &w->bags[row];
    CHECK(b->here);
    uint64_t before = 0, kept = 0;
    for (uint64_t i = 0; i < b->count; i++) {
        uint64_t p = b->at[i], to = step(&p, before, row, w->n);
        before = p;
        if (to == row || stays)
            b->at[kept++] = p;
        else
            CHECK_OK(kilter_loop_post(loop, row, to, &p, sizeof p, error));
    }
    b->count = kept;
}

static void multiply(world *w, int sweep) {
    for (uint64_t row = 0; row < w->n; row++) {
        bag *b = &w->bags[row];
        if (b->here && b->count > 0 && b->at[0] % 3 == 0 && b->count < 40)
            add(b, (uint64_t)sweep);
    }
}

static void check_owners(kilter_loop *loop, const world *w) {
    kilter_range own;
    uint64_t here = 0;
    CHECK(kilter_loop_owner(loop, w->n) == -1);
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        for (uint64_t row = own.lo; row < own.hi; row++)
            CHECK(kilter_loop_owner(loop, row) == rank && w->bags[row].here);
    for (uint64_t row = 0; row < w->n; row++)
        here += w->bags[row].here;
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(here == w->n);
}

static void check_result(kilter_loop *loop, world *w, double *hashes, int sweeps, bool stays) {
    world all = new_world(w->n);
    double *whole = calloc(w->n, sizeof *whole);
    kilter_range own;
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        for (uint64_t row = own.lo; row < own.hi; row++)
            hashes[row] = (double)hash_of(&w->bags[row]);
    CHECK_OK(kilter_loop_gather(loop, hashes, 0, whole, error));
    sequential(&all, sweeps, stays);
    for (uint64_t row = 0; row < w->n && rank == 0; row++)
        CHECK(whole[row] == (double)hash_of(&all.bags[row]));
    free(whole);
    free_world(&all);
}

typedef struct job {
    kilter_loop_options options;
    uint64_t seed; /* seed of moves that the test forces; 0: rows move by measurements */
    int sweeps;
    double slow_s; /* seconds that a row takes on rank 0 */
} job;

static kilter_loop *open(const job *j, world *w, double **hashes) {
    kilter_loop *loop;
    kilter_loop_content content = content_of(w);
    kilter_range own;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &j->options, &loop, error));
    w->loop = loop;
    CHECK_OK(kilter_loop_rows(loop, &content, error));
    CHECK_OK(kilter_loop_array(loop, sizeof(double), 0, (void **)hashes, error));
    if (j->seed > 0)
        force_moves(loop, j->seed);
    for (size_t k = 0; kilter_loop_mine(loop, k, &own); k++)
        for (uint64_t row = own.lo; row < own.hi; row++)
            fill(&w->bags[row], row);
    return loop;
}

/* Do a sweep. In a pipeline, a row's particles change in the row's last block. */
static kilter_status sweep(kilter_loop *loop, const job *j, world *w, kilter_error *error) {
    kilter_range rows, inner = {0, 1};
    bool pipeline = j->options.kind == KILTER_DOACROSS;
    kilter_status status = kilter_loop_begin(loop, error);
    while (status == KILTER_OK &&
           (pipeline ? kilter_loop_next_block(loop, &rows, &inner) : kilter_loop_next(loop, &rows)))
        for (uint64_t row = rows.lo; row < rows.hi; row++) {
            if (!pipeline || inner.hi == j->options.inner)
                do_row(loop, w, row, j->options.scattered);
            kl_spend_s(rank == 0 ? j->slow_s : 0);
        }
    return status == KILTER_OK ? kilter_loop_end(loop, error) : status;
}

static kilter_status sweep_and_deliver(kilter_loop *loop, const job *j, world *w, int number,
                                       kilter_error *error) {
    kilter_status status = sweep(loop, j, w, error);
    if (status == KILTER_OK && !j->options.scattered)
        status = kilter_loop_deliver(loop, take, w, error);
    if (status == KILTER_OK)
        multiply(w, number);
    return status;
}

static kilter_loop_summary run(const job *j) {
    world w = new_world(j->options.iterations);
    double *hashes;
    kilter_loop *loop = open(j, &w, &hashes);
    kilter_loop_summary summary;
    for (int i = 0; i < j->sweeps; i++) {
        CHECK_OK(sweep_and_deliver(loop, j, &w, i, error));
        if (!j->options.scattered)
            check_owners(loop, &w);
    }
    kilter_loop_summary_get(loop, &summary);
    if (rank == 0 && j->seed == 0)
        printf("content: %llu rounds, %llu moves: %s\n", kl_ull(summary.rounds), kl_ull(summary.moves),
               summary.decision);
    check_result(loop, &w, hashes, j->sweeps, j->options.scattered);
    CHECK_OK(kilter_loop_close(loop, error));
    free_world(&w);
    return summary;
}

static job job_of(uint64_t n, int kind, uint64_t seed) {
    job j = {.options = {.iterations = n, .scattered = kind == 1}, .seed = seed, .sweeps = 8};
    if (kind == 2) {
        j.options.kind = KILTER_DOACROSS;
        j.options.inner = 8; /* the array of sums has rows of 8 bytes, so `inner` must divide 8 */
    }
    return j;
}

/* --- messages from every block of a pipeline --- */

typedef struct order {
    uint64_t n, taken;
    /* next[to · n + from]: the smallest element that the next message from row `from` to row `to` may
     * have */
    uint64_t *next;
} order;

static bool take_in_order(uint64_t to, uint64_t from, const void *data, uint64_t bytes, void *user) {
    order *o = user;
    uint64_t *next = &o->next[to * o->n + from], element = *(const uint64_t *)data;
    CHECK(bytes == sizeof element && element >= *next);
    *next = element + 1;
    o->taken++;
    return true;
}

/* Post a message for each element. Each row sends several messages to each of the next two rows, in all
 * passes. */
static void post_elements(kilter_loop *loop, uint64_t n) {
    kilter_range rows, inner;
    CHECK_OK(kilter_loop_begin(loop, error));
    while (kilter_loop_next_block(loop, &rows, &inner))
        for (uint64_t row = rows.lo; row < rows.hi; row++)
            for (uint64_t e = inner.lo; e < inner.hi; e++)
                CHECK_OK(kilter_loop_post(loop, row, (row + 1 + e % 2) % n, &e, sizeof e, error));
    CHECK_OK(kilter_loop_end(loop, error));
}

/* Rows move between passes, so different ranks post the messages of a row. Check that messages arrive in the
 * order of posting. */
static void post_in_every_block(uint64_t n, uint64_t seed) {
    job j = job_of(n, 2, seed);
    world w = new_world(n);
    order o = {.n = n, .next = calloc(n * n, sizeof *o.next)};
    double *hashes;
    kilter_loop *loop = open(&j, &w, &hashes);
    kilter_loop_summary before, after;
    for (int i = 0; i < 20; i++) {
        post_elements(loop, n);
        kilter_loop_summary_get(loop, &before);
        memset(o.next, 0, n * n * sizeof *o.next);
        o.taken = 0;
        CHECK_OK(kilter_loop_deliver(loop, take_in_order, &o, error));
        kilter_loop_summary_get(loop, &after);
        CHECK(after.elapsed_s > before.elapsed_s && after.waited_s >= before.waited_s);
        MPI_Allreduce(MPI_IN_PLACE, &o.taken, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        CHECK(o.taken == n * j.options.inner);
    }
    CHECK(ranks == 1 || n < 20 || after.moved > 0);
    CHECK_OK(kilter_loop_close(loop, error));
    free(o.next);
    free_world(&w);
}

static void test_moves(void) {
    for (uint64_t seed = 1; seed < 5; seed++)
        post_in_every_block(seed % 2 ? 23 : 3, seed);
    static const uint64_t sizes[] = {1, 2, 5, 23, 100};
    uint64_t seed = 1;
    for (int kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int times = 0; times < 3; times++) {
                job j = job_of(sizes[i], kind, seed++);
                kilter_loop_summary summary = run(&j);
                CHECK(ranks == 1 || kind == 1 || sizes[i] < 20 || summary.moved > 0);
            }
}

static void test_rounds(void) {
    for (int kind = 0; kind < 3; kind++) {
        job j = job_of(300, kind, 0);
        j.sweeps = 60;
        j.slow_s = 20e-6;
        kilter_loop_summary summary = run(&j);
        CHECK(ranks == 1 || kind == 1 || summary.rounds > 0);
    }
}

/* --- calls that must be refused --- */

static void expect(kilter_status got, kilter_status expected, const kilter_error *error, const char *word) {
    if (got != expected || !strstr(error->text, word)) {
        fprintf(stderr, "rank %d: expected %d with '%s', got %d: %s\n", rank, expected, word, got,
                error->text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void refuse_content(void) {
    world w = new_world(10);
    kilter_error error = {KILTER_OK, ""};
    kilter_loop_content content = content_of(&w), empty = content;
    kilter_loop *loop;
    empty.drop = NULL;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = 10, .deep = true}, &loop,
                              error));
    expect(kilter_loop_rows(loop, &content, &error), KILTER_ERR_RANGE, &error,
           "a deep loop has no row content");
    CHECK_OK(kilter_loop_close(loop, error));
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = 10}, &loop, error));
    expect(kilter_loop_rows(loop, rank == ranks - 1 ? &empty : &content, &error), KILTER_ERR_RANGE, &error,
           "is missing");
    expect(kilter_loop_rows(loop, NULL, &error), KILTER_ERR_RANGE, &error, "is missing");
    CHECK_OK(kilter_loop_rows(loop, &content, error));
    expect(kilter_loop_rows(loop, &content, &error), KILTER_ERR_USAGE, &error, "content already");
    CHECK_OK(kilter_loop_close(loop, error));
    free_world(&w);
}

typedef enum wrong_use {
    DELIVER_WITHIN,
    DELIVER_SCATTERED,
    DELIVER_TO_NULL,
    POST_SCATTERED,
    POST_FROM_NOWHERE,
    POST_FROM_OTHER,
    POST_NULL,
    BEGIN_UNDELIVERED,
    CLOSE_UNDELIVERED,
    ROWS_WITHIN,
    WRONG_USES,
} wrong_use;

static const char *const words[WRONG_USES] = {[DELIVER_WITHIN] = "a sweep is under way",
                                              [DELIVER_SCATTERED] = "scattered loop",
                                              [DELIVER_TO_NULL] = "is NULL",
                                              [POST_SCATTERED] = "scattered loop",
                                              [POST_FROM_NOWHERE] = "there is no such row",
                                              [POST_FROM_OTHER] = "is on another rank",
                                              [POST_NULL] = "is NULL",
                                              [BEGIN_UNDELIVERED] = "posted messages are left",
                                              [CLOSE_UNDELIVERED] = "posted messages are left",
                                              [ROWS_WITHIN] = "has begun"};

static kilter_status call_wrongly(kilter_loop *loop, wrong_use use, world *w, kilter_error *error) {
    uint64_t data = 1, own = 10 * (uint64_t)rank; /* number of the first row of this rank */
    kilter_loop_content content = content_of(w);
    if (use == BEGIN_UNDELIVERED || use == CLOSE_UNDELIVERED)
        CHECK_OK(kilter_loop_post(loop, own, 1, &data, sizeof data, error));
    if (use == DELIVER_WITHIN || use == BEGIN_UNDELIVERED || use == ROWS_WITHIN) {
        kilter_status status = kilter_loop_begin(loop, error);
        if (status != KILTER_OK)
            return status;
    }
    /* all ranks must have begun, because a rank that fails alone ends the loop on all ranks */
    MPI_Barrier(MPI_COMM_WORLD);
    switch (use) {
    case POST_SCATTERED:
        return kilter_loop_post(loop, 0, 1, &data, sizeof data, error);
    case POST_FROM_NOWHERE:
        return kilter_loop_post(loop, w->n, 1, &data, sizeof data, error);
    case POST_FROM_OTHER:
        return kilter_loop_post(loop, (own + 10) % w->n, 1, &data, sizeof data, error);
    case POST_NULL:
        return kilter_loop_post(loop, own, 1, NULL, sizeof data, error);
    case CLOSE_UNDELIVERED:
        return kilter_loop_close(loop, error);
    case ROWS_WITHIN:
        return kilter_loop_rows(loop, &content, error);
    default:
        return kilter_loop_deliver(loop, use == DELIVER_TO_NULL ? NULL : take, w, error);
    }
}

static void use_wrongly(wrong_use use) {
    world w = new_world(10 * (uint64_t)ranks);
    kilter_loop_options options = {
        .iterations = w.n, .name = "mine", .scattered = use == DELIVER_SCATTERED || use == POST_SCATTERED};
    kilter_loop *loop;
    kilter_error error = {KILTER_OK, ""};
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &options, &loop, error));
    CHECK(kilter_loop_owner(loop, 0) == (options.scattered ? -1 : 0));
    MPI_Barrier(MPI_COMM_WORLD);
    expect(call_wrongly(loop, use, &w, &error), KILTER_ERR_USAGE, &error, words[use]);
    CHECK(strstr(error.text, "'mine'"));
    MPI_Barrier(MPI_COMM_WORLD);
    if (use != CLOSE_UNDELIVERED)
        kilter_loop_close(loop, NULL);
    free_world(&w);
}

/* Rank 1 calls the loop from within one of the program's functions. This must end the loop on all ranks. */
static void call_from_within(function f, int call) {
    job j = job_of(60, 0, 9);
    world w = new_world(j.options.iterations);
    double *hashes;
    kilter_loop *loop = open(&j, &w, &hashes);
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = KILTER_OK;
    bool calls = rank == 1 % ranks;
    w.calls = calls ? f : NONE;
    w.call = call;
    for (int i = 0; i < 400 && status == KILTER_OK; i++)
        status = sweep_and_deliver(loop, &j, &w, i, &error);
    expect(status, calls ? KILTER_ERR_USAGE : KILTER_ERR_PEER, &error, "must not call the loop");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(kilter_loop_close(loop, NULL) == status);
    free_world(&w);
}

/* Count a delivered message, and check its bytes and its place in the order of delivery. */
static bool count_messages(uint64_t to, uint64_t from, const void *data, uint64_t bytes, void *user) {
    uint64_t *last = user, key = to * 1000 + from;
    CHECK(data && bytes == from % 3 && key >= *last && (bytes == 0 || *(const char *)data == 'x'));
    *last = key;
    last[1]++;
    return true;
}

static void deliver_to_all(void) {
    uint64_t n = 5 * (uint64_t)ranks, heard[2] = {0, 0};
    kilter_loop *loop;
    kilter_range own;
    CHECK_OK(kilter_loop_open(MPI_COMM_WORLD, &(kilter_loop_options){.iterations = n}, &loop, error));
    CHECK_OK(kilter_loop_deliver(loop, count_messages, heard, error));
    CHECK(heard[1] == 0 && kilter_loop_mine(loop, 0, &own));
    for (uint64_t from = own.hi; from-- > own.lo;)
        for (uint64_t to = n; to-- > 0;)
            CHECK_OK(kilter_loop_post(loop, from, to, "xyz", from % 3, error));
    CHECK_OK(kilter_loop_deliver(loop, count_messages, heard, error));
    CHECK(heard[1] == n * (own.hi - own.lo));
    CHECK_OK(kilter_loop_close(loop, error));
}

static void test_use(void) {
    refuse_content();
    deliver_to_all();
    for (int use = 0; use < WRONG_USES; use++)
        if (use != POST_FROM_OTHER || ranks > 1)
            use_wrongly((wrong_use)use);
    for (int call = 0; call < INNER_CALLS; call++)
        call_from_within(TAKE, call);
    for (int f = BYTES; f < TAKE && ranks > 1; f++) /* there must be two ranks, because a single rank moves
                                                       no rows */
        call_from_within((function)f, f);
}

/* --- functions of the program that fail --- */

static void fail_to_pack(int kind) {
    job j = job_of(60, kind, 7);
    world w = new_world(j.options.iterations);
    double *hashes;
    kilter_loop *loop = open(&j, &w, &hashes);
    kilter_loop_summary summary;
    bool refused = false;
    int i = 0;
    for (; i < 400 && (!refused || i < 8); i++) {
        /* let the next call of pack() on rank 1 fail, so that the row stays there */
        w.unpackable = rank == 1;
        CHECK_OK(sweep_and_deliver(loop, &j, &w, i, error));
        kilter_loop_summary_get(loop, &summary);
        refused |= strstr(summary.decision, "could not be packed") != NULL;
    }
    CHECK(refused);
    check_result(loop, &w, hashes, i, j.options.scattered);
    CHECK_OK(kilter_loop_close(loop, error));
    free_world(&w);
}

/* Rank 1 cannot unpack a row, or cannot take a message. The loop must end on all ranks, and each rank must
 * name the reason. */
static void fail_to_take(int kind, int number, const char *word) {
    job j = job_of(60, kind, 9);
    world w = new_world(j.options.iterations);
    double *hashes;
    kilter_loop *loop = open(&j, &w, &hashes);
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = KILTER_OK;
    w.untakable = rank == 1 ? number : 0;
    for (int i = 0; i < 400 && status == KILTER_OK; i++)
        status = sweep_and_deliver(loop, &j, &w, i, &error);
    expect(status, rank == 1 ? KILTER_ERR_TASK : KILTER_ERR_PEER, &error, word);
    CHECK(rank == 1 || strstr(error.text, "rank 1 has failed"));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(kilter_loop_close(loop, NULL) == status);
    free_world(&w);
}

static void test_fails(void) {
    for (int kind = 0; kind < 3; kind++) {
        fail_to_pack(kind);
        fail_to_take(kind, kind == 1 ? 1 : 40, "the program could not");
    }
}

/* --- a rank without memory, and the death of a rank --- */

static void test_memory(void) {
    job j = job_of(64, 0, 5);
    world w = new_world(j.options.iterations);
    double *hashes;
    w.extra = 1 << 19;
    kilter_loop *loop = open(&j, &w, &hashes);
    kilter_loop_summary summary;
    bool refused = false, unpacked = false;
    int i = 0;
    for (; i < 40; i++) {
        struct rlimit limit = little_more();
        if (rank == 1)
            setrlimit(RLIMIT_DATA, &limit);
        CHECK_OK(sweep_and_deliver(loop, &j, &w, i, error));
        if (rank == 1)
            setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
        kilter_loop_summary_get(loop, &summary);
        refused |= strstr(summary.decision, "no memory") != NULL;
        unpacked |= strstr(summary.decision, "could not be packed") != NULL;
    }
    CHECK(refused && unpacked);
    check_result(loop, &w, hashes, i, false);
    CHECK_OK(kilter_loop_close(loop, error));
    free_world(&w);
}

static function function_of(const char *name) {
    return strcmp(name, "pack") == 0 ? PACK : strcmp(name, "unpack") == 0 ? UNPACK : TAKE;
}

static void test_death(int who, const char *where) {
    job j = job_of(60, 0, 3);
    world w = new_world(j.options.iterations);
    double *hashes;
    kilter_loop *loop = open(&j, &w, &hashes);
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = KILTER_OK;
    w.dies = rank == who ? function_of(where) : NONE;
    w.dies_in = 25;
    for (int i = 0; status == KILTER_OK; i++)
        status = sweep_and_deliver(loop, &j, &w, i, &error);
    kilter_loop_close(loop, NULL);
    printf("rank %d says: %s\n", rank, error.text);
    fflush(stdout);
    _exit(status == KILTER_ERR_PEER ? 0 : 1);
}

int main(int count, char **arguments) {
    suite_begin();
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "moves") == 0)
        test_moves();
    else if (strcmp(what, "rounds") == 0)
        test_rounds();
    else if (strcmp(what, "use") == 0)
        test_use();
    else if (strcmp(what, "fails") == 0)
        test_fails();
    else if (strcmp(what, "memory") == 0)
        test_memory();
    else if (strcmp(what, "death") == 0 && count > 3)
        test_death(atoi(arguments[2]), arguments[3]);
    else
        CHECK(!"the arguments must be moves, rounds, use, fails, memory, or death RANK WHERE");
    MPI_Finalize();
}
