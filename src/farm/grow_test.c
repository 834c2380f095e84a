/* Test tasks that add tasks to their run, under a simulated clock and with real workers. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cases_test_helper.h"
#include "engine/stepped.h"
#include "farm/farm_private.h"
#include "trace/record_test_helper.h"

/* --- a tree of tasks: the task of each node adds the tasks of its children --- */

enum { ROOTS = 6, NODES = 700, CHILDREN_MOST = 4 };

typedef struct tree {
    uint64_t first_child[NODES], children[NODES];
} tree;

static tree grow_tree(uint64_t seed) {
    tree t = {0};
    uint64_t nodes = ROOTS;
    for (uint64_t i = 0; i < NODES; i++) {
        uint64_t children = kl_mix64(seed ^ i) % (CHILDREN_MOST + 1);
        /* if the last node has no children, add further nodes */
        if (i + 1 == nodes && children == 0)
            children = 1;
        t.first_child[i] = nodes;
        t.children[i] = children < NODES - nodes ? children : NODES - nodes;
        nodes += t.children[i];
    }
    return t;
}

static uint64_t answer_to(uint64_t node) {
    return kl_mix64(node + 17);
}

static double weight_of(uint64_t node) {
    return 1 + (double)(kl_mix64(node) % 20);
}

/* A run over a tree of tasks. */
typedef struct grove {
    tree tree;
    uint64_t seed, draws;
    stepped_farm *stepped; /* the farm under a simulated clock; NULL: the farm is real */
    kilter_farm *farm;
    /* weighted: the first tasks have weights; weighs_later: added tasks have weights */
    bool weighted, weighs_later;
    kilter_order order;
    uint64_t node[NODES]; /* for each task, the node of the tree that it belongs to */
    kilter_bytes inputs[NODES];
    uint8_t seen[NODES]; /* number of times that each node was seen */
    uint64_t tasks, given;
    /* waiting: nodes whose tasks are not added yet; waits: number of these nodes */
    uint64_t waiting[NODES], waits;
    kilter_status refused;
    char why[KILTER_ERROR_TEXT_BYTES];
    /* called when the result of a node's task arrives; NULL: not called */
    void (*watch)(struct grove *g, uint64_t node);
    void *user;
} grove;

static void enter(grove *g, uint64_t node) {
    g->node[g->tasks] = node;
    g->inputs[g->tasks] = (kilter_bytes){&g->node[g->tasks], sizeof node};
    g->tasks++;
}

/* Add the tasks of all waiting nodes, with one call or with several calls. */
static void add_waiting(grove *g) {
    while (g->waits > 0) {
        uint64_t count = 1 + kl_mix64(g->seed * 31 + g->draws++) % g->waits, first = g->tasks;
        double weights[NODES];
        for (uint64_t i = 0; i < count; i++) {
            weights[i] = weight_of(g->waiting[--g->waits]);
            enter(g, g->waiting[g->waits]);
        }
        bool weighs = g->weighs_later && kl_mix64(g->seed + g->draws) % 2;
        kilter_error error = {KILTER_OK, ""};
        kilter_status status =
            g->stepped ? stepped_add(g->stepped, count, g->inputs + first, weighs ? weights : NULL, &error)
                       : kilter_farm_add(g->farm, count, g->inputs + first, weighs ? weights : NULL, &error);
        if (status != KILTER_OK && g->refused == KILTER_OK) {
            g->refused = status;
            snprintf(g->why, sizeof g->why, "%s", error.text);
        }
    }
}

static void take(const kilter_outcome *o, void *user) {
    grove *g = user;
    uint64_t answer = 0;
    assert_int_equal(o->status, KILTER_OK);
    assert_true(o->index < g->tasks);
    assert_true(g->order == KILTER_BY_ARRIVAL || o->index == g->given);
    assert_int_equal(o->result.size, sizeof answer);
    memcpy(&answer, o->result.data, sizeof answer);
    uint64_t node = g->node[o->index];
    assert_true(answer == answer_to(node));
    g->seen[node]++;
    g->given++;
    if (g->watch)
        g->watch(g, node);
    for (uint64_t i = 0; i < g->tree.children[node]; i++)
        g->waiting[g->waits++] = g->tree.first_child[node] + i;
    /* add the tasks of children now, or after a later result; after the last result, add them in any case */
    if (g->given == g->tasks || kl_mix64(g->seed * 77 + g->given) % 3)
        add_waiting(g);
}

static kilter_run run_of(grove *g, double weights[ROOTS]) {
    g->tasks = g->given = g->waits = g->draws = 0;
    g->refused = KILTER_OK;
    memset(g->seen, 0, sizeof g->seen);
    for (uint64_t i = 0; i < ROOTS; i++) {
        weights[i] = weight_of(i);
        enter(g, i);
    }
    return (kilter_run){.tasks = ROOTS,
                        .inputs = g->inputs,
                        .weights = g->weighted ? weights : NULL,
                        .order = g->order,
                        .done = take,
                        .user = g,
                        .series = g->seed % 3,
                        .grows = true};
}

static void check_all_seen(const grove *g) {
    if (g->refused != KILTER_OK)
        fail_msg("%s", g->why);
    assert_int_equal(g->given, NODES);
    for (uint64_t i = 0; i < NODES; i++)
        assert_int_equal(g->seen[i], 1);
}

/* --- runs under a simulated clock --- */

static int stepped_work(const kilter_task *task, kilter_result *result, void *state) {
    uint64_t node;
    memcpy(&node, task->input.data, sizeof node);
    stepped_spend(state, 1e-4 * weight_of(node));
    uint64_t answer = answer_to(node);
    return kilter_result_put(result, &answer, sizeof answer);
}

static void walk(grove *g) {
    double weights[ROOTS];
    kilter_run run = run_of(g, weights);
    kilter_error error = {KILTER_OK, ""};
    if (stepped_run(g->stepped, &run, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    check_all_seen(g);
    kilter_farm_summary summary;
    kl_master_summary(g->stepped->master, &summary);
    assert_int_equal(summary.tasks, NODES);
}

static grove *new_grove(uint64_t seed) {
    grove *g = calloc(1, sizeof *g);
    g->tree = grow_tree(seed);
    g->seed = seed;
    g->weighted = seed % 2;
    g->weighs_later = seed / 2 % 2;
    g->order = seed / 4 % 2 ? KILTER_BY_INDEX : KILTER_BY_ARRIVAL;
    return g;
}

static void every_policy_does_every_task_once(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8 * kl_policy_count(); seed++) {
        const kl_policy *policy = kl_policy_at(seed % kl_policy_count());
        uint32_t workers = 1 + kl_mix64(seed) % 9;
        stepped_farm f = {.attended = seed % 3 == 0};
        grove *g = new_grove(seed / kl_policy_count());
        g->stepped = &f;
        stepped_open(&f, kl_policy_name(policy), workers, 50e-6, stepped_work);
        for (uint32_t i = 0; i < workers; i++)
            f.workers[i].speed = 0.1 + (double)(kl_mix64(i + seed) % 10);
        stepped_gather(&f);
        walk(g);
        walk(g);
        stepped_close(&f);
        free(g);
    }
}

static void tasks_of_dead_workers_are_done_by_the_others(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < kl_test_cases(40, 120); seed++) {
        const kl_policy *policy = kl_policy_at(seed % kl_policy_count());
        uint32_t workers = 2 + kl_mix64(seed) % 5;
        stepped_farm f = {.attended = seed % 2};
        grove *g = new_grove(seed);
        g->stepped = &f;
        stepped_open(&f, kl_policy_name(policy), workers, 50e-6, stepped_work);
        for (uint32_t i = 1; i < workers; i++)
            f.workers[i].dies_s = 0.5 * (double)(kl_mix64(seed * 64 + i) % 1000) / 1000;
        stepped_gather(&f);
        walk(g);
        walk(g);
        stepped_close(&f);
        free(g);
    }
}

/* Add 8 tasks after every 8 results, until the run has 80 tasks. The policy `ect` must assign the tasks of
 * each addition when they are added. */
static void count_rounds(const kilter_outcome *o, void *user) {
    grove *g = user;
    (void)o;
    g->given++;
    if (g->given % 8 == 0 && g->tasks < 80) {
        g->tasks += 8;
        assert_int_equal(stepped_add(g->stepped, 8, NULL, NULL, NULL), KILTER_OK);
    }
}

static int equal_work(const kilter_task *task, kilter_result *result, void *state) {
    (void)task;
    (void)result;
    stepped_spend(state, 10e-3);
    return 0;
}

static void whole_shares_of_what_is_added_are_dealt_by_earliest_completion(void **state) {
    (void)state;
    stepped_farm f = {0};
    grove g = {.stepped = &f};
    stepped_open(&f, "ect", 3, 50e-6, equal_work);
    f.workers[0].speed = f.workers[1].speed = 8;
    stepped_gather(&f);
    for (int run = 0; run < 3; run++) { /* three runs; the first one measures the workers' speeds */
        g.given = 0;
        g.tasks = 8;
        assert_int_equal(
            stepped_run(&f, &(kilter_run){.tasks = 8, .done = count_rounds, .user = &g, .grows = true}, NULL),
            KILTER_OK);
        assert_int_equal(g.given, 80);
    }
    kilter_farm_summary summary;
    /* There are ten rounds of 8 tasks. In each round, each of the two fast workers gets 4 tasks, and the slow
     * worker gets none. */
    kl_master_summary(f.master, &summary);
    assert_int_equal(summary.workers, 2);
    assert_int_equal(summary.chunks, 20);
    assert_true(summary.elapsed_s < 10 * (4 * 10e-3 / 8 + 2e-3));
    stepped_close(&f);
}

/* --- runs with real workers --- */

typedef struct board { /* memory shared by all processes */
    /* A session is the time from a master's start to its end. session: number of the present session;
     * executed: session in which the task was last done; counted: session in which its result first
     * counted */
    atomic_uint session, executed[NODES], counted[NODES];
    /* true: a task was done again, although its result had counted in an earlier session */
    atomic_bool again;
    atomic_uint deaths; /* number of workers that must still die */
    uint64_t kill_at, delivered;
    kilter_status status;
    char text[KILTER_ERROR_TEXT_BYTES];
    kilter_farm_summary summary;
} board;

static board *new_board(void) {
    void *memory = mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static int start(const kilter_worker *worker, void **state) {
    *state = worker->user;
    return 0;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    board *b = state;
    uint64_t node, sink = 0;
    memcpy(&node, task->input.data, sizeof node);
    unsigned deaths = b->deaths, counted = b->counted[node];
    if (node > NODES / 2 && deaths > 0 && atomic_compare_exchange_strong(&b->deaths, &deaths, deaths - 1))
        raise(SIGKILL);
    b->again |= counted != 0 && counted < b->session;
    b->executed[node] = b->session;
    for (uint64_t i = 0, x = node; i < 2000; i++) /* compute for some µs */
        sink += x = kl_mix64(x);
    uint64_t answer = answer_to(node) + (sink == 1);
    return kilter_result_put(result, &answer, sizeof answer);
}

static kilter_status walk_for_real(grove *g, kilter_error *error) {
    double weights[ROOTS];
    kilter_run run = run_of(g, weights);
    return kilter_farm_run(g->farm, &run, error);
}

static void farms_grow(const char *transport, const char *policy, unsigned deaths) {
    board *b = new_board();
    grove *g = new_grove(deaths);
    kilter_error error = {KILTER_OK, ""};
    kilter_farm_options options = {.work = work,
                                   .start = start,
                                   .user = b,
                                   .workers = 3,
                                   .transport = transport,
                                   .policy = policy,
                                   .record = "none"};
    if (kilter_farm_open(&options, NULL, NULL, &g->farm, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    for (int run = 0; run < 4; run++) {
        g->order = run % 2;
        g->weighted = run / 2;
        g->weighs_later = run > 0;
        b->deaths = run == 2 ? deaths : 0;
        if (walk_for_real(g, &error) != KILTER_OK)
            fail_msg("%s", error.text);
        check_all_seen(g);
    }
    assert_int_equal(kilter_farm_close(g->farm, &error), KILTER_OK);
    free(g);
    munmap(b, sizeof *b);
}

static void threads_do_what_is_added(void **state) {
    (void)state;
    farms_grow("inproc", "auto", 0);
    farms_grow("inproc", "ect", 0);
    farms_grow("inproc", "static", 0);
}

static void processes_do_what_is_added_and_some_die(void **state) {
    (void)state;
    farms_grow("zmq", "auto", 2);
    farms_grow("zmq", "ect", 2);
}

/* --- calls that must be refused --- */

typedef struct misuse {
    kilter_farm *farm;
    uint64_t given;
    kilter_status in_run, bad_weight;
} misuse;

static void try_to_add(const kilter_outcome *o, void *user) {
    misuse *m = user;
    (void)o;
    m->given++;
    m->in_run = kilter_farm_add(m->farm, 1, NULL, NULL, NULL);
    m->bad_weight = kilter_farm_add(m->farm, 2, NULL, (double[]){1, -1}, NULL);
}

static void add_badly_once(const kilter_outcome *o, void *user) {
    misuse *m = user;
    if (o->index == 0)
        try_to_add(o, user);
    else
        m->given++;
}

static int no_work(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    return 0;
}

static void wrong_use_is_said_and_changes_nothing(void **state) {
    (void)state;
    kilter_farm_options options = {.work = no_work, .workers = 2, .transport = "inproc", .record = "none"};
    misuse m = {0};
    kilter_error error;
    kilter_grain grain;
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &m.farm, &error), KILTER_OK);
    assert_int_equal(kilter_farm_add(m.farm, 1, NULL, NULL, &error), KILTER_ERR_USAGE);
    kilter_run run = {.tasks = 10, .done = try_to_add, .user = &m};
    assert_int_equal(kilter_farm_run(m.farm, &run, &error), KILTER_OK);
    assert_int_equal(m.in_run, KILTER_ERR_USAGE);
    assert_int_equal(kilter_farm_grain(m.farm, &(kilter_grain_options){.most = 10}, &grain, &error),
                     KILTER_OK);
    run = (kilter_run){.tasks = 10, .done = add_badly_once, .user = &m, .grows = true};
    m.given = 0;
    assert_int_equal(kilter_farm_run(m.farm, &run, &error), KILTER_OK);
    assert_int_equal(m.in_run, KILTER_OK);
    assert_int_equal(m.bad_weight, KILTER_ERR_RANGE);
    assert_int_equal(m.given, 11);
    assert_int_equal(kilter_farm_grain(m.farm, &(kilter_grain_options){.most = 10}, &grain, &error),
                     KILTER_ERR_USAGE);
    assert_int_equal(kilter_farm_run(m.farm, &(kilter_run){.grows = true}, &error), KILTER_OK);
    assert_int_equal(kilter_farm_add(m.farm, 1, NULL, NULL, &error), KILTER_ERR_USAGE);
    assert_int_equal(kilter_farm_close(m.farm, &error), KILTER_OK);
}

static int deadly(const kilter_task *task, kilter_result *result, void *state) {
    (void)result, (void)state;
    if (task->index >= 10)
        raise(SIGKILL);
    return 0;
}

static void add_one(const kilter_outcome *o, void *user) {
    misuse *m = user;
    m->given += o->status == KILTER_OK;
    if (o->index == 9)
        m->in_run = kilter_farm_add(m->farm, 1, NULL, NULL, NULL);
}

static void what_is_added_and_kills_its_workers_fails_alone(void **state) {
    (void)state;
    kilter_farm_options options = {
        .work = deadly, .workers = 2, .transport = "zmq", .record = "none", .attempts = 2};
    misuse m = {0};
    kilter_error error;
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &m.farm, &error), KILTER_OK);
    kilter_run run = {.tasks = 10, .done = add_one, .user = &m, .grows = true};
    assert_int_equal(kilter_farm_run(m.farm, &run, &error), KILTER_ERR_TASK);
    assert_non_null(strstr(error.text, "1 of 11 tasks failed"));
    assert_int_equal(m.given, 10);
    assert_int_equal(kilter_farm_close(m.farm, &error), KILTER_OK);
}

/* --- inputs with equal bytes --- */

static const char TWICE[] = "the same bytes twice", AGAIN[] = "the same bytes twice";

typedef struct repeat {
    kilter_farm *farm;
    kilter_status status;
    int right;
    /* the third input has the same bytes as the first two, but at another address. one_copy: true if the
     * first two inputs share one copy; own_copy: true if the third input has its own copy */
    bool one_copy, own_copy;
} repeat;

static int echo(const kilter_task *task, kilter_result *result, void *state) {
    (void)state;
    return kilter_result_put(result, task->input.data, task->input.size);
}

static void add_the_same(const kilter_outcome *o, void *user) {
    repeat *r = user;
    if (o->index == 0) {
        const kilter_bytes inputs[] = {
            {TWICE, sizeof TWICE}, {TWICE, sizeof TWICE}, {AGAIN, sizeof AGAIN}, {AGAIN, 3}, {NULL, 0}};
        r->status = kilter_farm_add(r->farm, 5, inputs, NULL, NULL);
        return;
    }
    const size_t sizes[] = {sizeof TWICE, sizeof TWICE, sizeof TWICE, 3, 0};
    size_t size = sizes[o->index - 1];
    r->right += o->result.size == size && (size == 0 || memcmp(o->result.data, TWICE, size) == 0);
    pthread_mutex_lock(&r->farm->lock);
    /* the result of an added task has arrived, so the master must have taken the added tasks */
    const kilter_bytes *kept = r->farm->growth.added->inputs;
    r->one_copy = kept[0].data == kept[1].data;
    r->own_copy = kept[2].data != kept[1].data && kept[0].data != TWICE;
    pthread_mutex_unlock(&r->farm->lock);
}

static void the_same_bytes_are_kept_once(void **state) {
    (void)state;
    kilter_farm_options options = {.work = echo, .workers = 2, .transport = "inproc", .record = "none"};
    repeat r = {0};
    kilter_error error;
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &r.farm, &error), KILTER_OK);
    kilter_run run = {.tasks = 1, .done = add_the_same, .user = &r, .grows = true};
    assert_int_equal(kilter_farm_run(r.farm, &run, &error), KILTER_OK);
    assert_int_equal(r.status, KILTER_OK);
    assert_int_equal(r.right, 5);
    assert_true(r.one_copy && r.own_copy);
    assert_int_equal(kilter_farm_close(r.farm, &error), KILTER_OK);
}

/* --- tests in which masters are killed --- */

typedef struct plan {
    const char *file, *transport;
    uint64_t seed, tree_seed;
} plan;

static void note_counted(grove *g, uint64_t node) {
    board *b = g->user;
    if (b->counted[node] == 0)
        b->counted[node] = b->session;
    if (++b->delivered == b->kill_at)
        raise(SIGKILL);
}

static kilter_status resumed(board *b, const plan *p, kilter_error *error) {
    grove *g = new_grove(p->seed);
    g->tree = grow_tree(p->tree_seed);
    g->watch = note_counted;
    g->user = b;
    kilter_farm_options options = {.work = work,
                                   .start = start,
                                   .user = b,
                                   .workers = 2,
                                   .transport = p->transport,
                                   .resume = p->file,
                                   .name = "grow_test"};
    kilter_status status = kilter_farm_open(&options, NULL, NULL, &g->farm, error);
    if (status != KILTER_OK)
        return status;
    status = walk_for_real(g, error);
    kilter_farm_summary_get(g->farm, &b->summary);
    if (status == KILTER_OK)
        check_all_seen(g);
    kilter_status closed = kilter_farm_close(g->farm, status == KILTER_OK ? error : NULL);
    free(g);
    return status == KILTER_OK ? closed : status;
}

/* Run a master in a process of its own. Return how the process ended, as waitpid() reports it. */
static int master(board *b, const plan *p) {
    atomic_fetch_add(&b->session, 1);
    b->delivered = 0;
    pid_t pid = fork();
    if (pid == 0) {
        kilter_error error = {KILTER_OK, ""};
        b->status = resumed(b, p, &error);
        snprintf(b->text, sizeof b->text, "%s", error.text);
        _exit(0);
    }
    int how = -1;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return how;
}

static uint64_t tasks_done(const board *b) {
    uint64_t tasks = 0;
    for (uint64_t i = 0; i < NODES; i++)
        tasks += b->executed[i] == b->session;
    return tasks;
}

static void killed_masters_are_followed_by_others(void **state) {
    const place *at = *state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        board *b = new_board();
        plan p = {at->file, seed % 4 ? "inproc" : "zmq", seed, seed};
        for (unsigned session = 1;; session++) {
            b->kill_at = session < 6 ? 1 + kl_mix64(seed * 10 + session) % NODES : 0;
            int how = master(b, &p);
            assert_false(b->again);
            if (WIFEXITED(how))
                break;
            assert_int_equal(WTERMSIG(how), SIGKILL);
        }
        if (b->status != KILTER_OK)
            fail_msg("%s", b->text);
        assert_int_equal(b->delivered, NODES);
        assert_int_equal(b->summary.tasks, NODES);
        b->kill_at = 0;
        assert_int_equal(master(b, &p), 0);
        assert_int_equal(b->status, KILTER_OK);
        assert_int_equal(b->summary.stored, NODES);
        assert_int_equal(tasks_done(b), 0);
        unlink(at->file);
        munmap(b, sizeof *b);
    }
}

static void a_run_that_grows_otherwise_is_refused(void **state) {
    const place *at = *state;
    board *b = new_board();
    plan p = {at->file, "inproc", 0, 0};
    b->kill_at = NODES / 2;
    assert_true(WIFSIGNALED(master(b, &p)));
    b->kill_at = 0;
    p.tree_seed = 1;
    assert_int_equal(master(b, &p), 0);
    assert_int_equal(b->status, KILTER_ERR_USAGE);
    assert_non_null(strstr(b->text, "grows differently from the stored run"));
    p.tree_seed = 0;
    assert_int_equal(master(b, &p), 0);
    if (b->status != KILTER_OK)
        fail_msg("%s", b->text);
    munmap(b, sizeof *b);
}

/* --- workers that are lost while stored results are delivered --- */

enum { CHAIN = 6 };

typedef struct chain {
    kilter_farm *farm;
    /* true: this is the first master; its workers live, and its run ends when the whole chain is done */
    bool first;
    /* number of workers that were started; workers of the second master die when they start, or in their
     * first task */
    atomic_uint *sessions;
} chain;

/* Do a task of the chain. Task 1 fails, so its result is not stored. */
static int chain_work(const kilter_task *task, kilter_result *result, void *state) {
    chain *c = state;
    if (!c->first)
        raise(SIGKILL);
    return task->index == 1 ? kilter_result_fail(result, "again") : 0;
}

static int chain_start(const kilter_worker *worker, void **state) {
    chain *c = worker->user;
    *state = c;
    if (atomic_fetch_add(c->sessions, 1) >= 2)
        raise(SIGKILL);
    return 0;
}

static void await_end(kilter_farm *f) {
    for (bool over = false; !over; kl_nap_s(1e-3)) {
        pthread_mutex_lock(&f->lock);
        over = f->run.over || f->run.broken;
        pthread_mutex_unlock(&f->lock);
    }
}

static void add_next(const kilter_outcome *o, void *user) {
    chain *c = user;
    if (o->index == 1)
        return;
    if (!c->first)
        await_end(c->farm);
    if (o->index < CHAIN)
        kilter_farm_add(c->farm, 1, NULL, NULL, NULL);
}

static kilter_status walk_chain(chain *c, const char *file, kilter_error *error) {
    kilter_farm_options options = {.work = chain_work,
                                   .start = chain_start,
                                   .user = c,
                                   .workers = 1,
                                   .transport = "zmq",
                                   .resume = file,
                                   .name = "grow_test"};
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &c->farm, error), KILTER_OK);
    kilter_run run = {.tasks = 2, .done = add_next, .user = c, .grows = true};
    kilter_status status = kilter_farm_run(c->farm, &run, error);
    kilter_farm_close(c->farm, NULL);
    return status;
}

/* The error must say that all workers were lost. It must not say that no more tasks can be added. */
static void the_loss_of_all_workers_is_what_is_told(void **state) {
    const place *at = *state;
    kilter_error error = {KILTER_OK, ""};
    chain c = {.first = true,
               .sessions =
                   mmap(NULL, sizeof *c.sessions, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    assert_int_equal(walk_chain(&c, at->file, &error), KILTER_ERR_TASK);
    c.first = false;
    kilter_status status = walk_chain(&c, at->file, &error);
    if (status != KILTER_ERR_NO_WORKER)
        fail_msg("%d: %s", status, error.text);
    munmap(c.sessions, sizeof *c.sessions);
}

/* --- a growing run that is cancelled and continued --- */

typedef struct cancelled {
    kilter_farm *farm;
    uint64_t given, cancel_at; /* cancel_at: number of results after which the run is cancelled; 0: never */
} cancelled;

static int nothing(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)result, (void)state;
    return 0;
}

/* Add one task after each of the first 8 results, even after the run was cancelled. */
static void add_for_each(const kilter_outcome *o, void *user) {
    cancelled *c = user;
    if (++c->given == c->cancel_at)
        kilter_farm_cancel(c->farm);
    if (o->index < 8)
        kilter_farm_add(c->farm, 1, NULL, NULL, NULL);
}

static kilter_status run_cancelled(const char *file, uint64_t cancel_at, kilter_error *error) {
    cancelled c = {.cancel_at = cancel_at};
    kilter_farm_options options = {
        .work = nothing, .workers = 2, .transport = "inproc", .resume = file, .name = "grow_test"};
    assert_int_equal(kilter_farm_open(&options, NULL, NULL, &c.farm, error), KILTER_OK);
    kilter_run run = {.tasks = 8, .done = add_for_each, .user = &c, .grows = true, .order = KILTER_BY_INDEX};
    kilter_status status = kilter_farm_run(c.farm, &run, error);
    if (status == KILTER_OK)
        assert_int_equal(c.given, 16);
    kilter_farm_close(c.farm, NULL);
    return status;
}

static void what_was_added_too_late_is_added_again(void **state) {
    const place *at = *state;
    for (uint64_t cancel_at = 1; cancel_at <= 8; cancel_at++) {
        kilter_error error = {KILTER_OK, ""};
        kilter_status status = run_cancelled(at->file, cancel_at, &error);
        assert_true(status == KILTER_ERR_CANCELLED ||
                    status == KILTER_OK); /* the run may have ended normally before it was cancelled */
        if (run_cancelled(at->file, 0, &error) != KILTER_OK)
            fail_msg("%s", error.text);
        unlink(at->file);
    }
}

int main(void) {
#define AT_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_does_every_task_once),
        cmocka_unit_test(tasks_of_dead_workers_are_done_by_the_others),
        cmocka_unit_test(whole_shares_of_what_is_added_are_dealt_by_earliest_completion),
        cmocka_unit_test(threads_do_what_is_added),
        cmocka_unit_test(processes_do_what_is_added_and_some_die),
        cmocka_unit_test(wrong_use_is_said_and_changes_nothing),
        cmocka_unit_test(what_is_added_and_kills_its_workers_fails_alone),
        cmocka_unit_test(the_same_bytes_are_kept_once),
        AT_A_PLACE(killed_masters_are_followed_by_others),
        AT_A_PLACE(a_run_that_grows_otherwise_is_refused),
        AT_A_PLACE(the_loss_of_all_workers_is_what_is_told),
        AT_A_PLACE(what_was_added_too_late_is_added_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
