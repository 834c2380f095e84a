/* Test that results are kept when the master dies: with killed masters, other runs, damaged files and full
 * disks. The command `resume_test kills N [SEED]` is not a test. It kills N masters at random moments, for
 * tools/faults-master. */
#include <fcntl.h>
#include <sched.h>
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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "farm/farm_private.h"
#include "trace/record_test_helper.h"

enum { RUNS = 3, TASKS = 600, UNLUCKY = 77 };

/* --- memory shared by masters and workers --- */

typedef struct board {
    atomic_uint session;
    atomic_uint_fast64_t delivered;
    atomic_bool wrong,
        again; /* true: a task was done again although its result had counted in an earlier session */
    /* A session is the time from a master's start to its end. done: session in which the task was last done;
     * counted: session in which its result first counted */
    atomic_uint done[RUNS][TASKS], counted[RUNS][TASKS];
    atomic_bool lucky; /* true: the task UNLUCKY succeeds; false: it fails */
    kilter_status status;
    char text[KILTER_ERROR_TEXT_BYTES];
    kilter_farm_summary summary[RUNS];
} board;

static board *new_board(void) {
    void *memory = mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

typedef struct worker_state {
    board *board;
    unsigned session;
} worker_state;

static int start(const kilter_worker *worker, void **state) {
    worker_state *s = malloc(sizeof *s);
    *s = (worker_state){.board = worker->user};
    s->session = s->board->session;
    *state = s;
    return 0;
}

static uint64_t result_of(uint64_t run, uint64_t task, uint64_t input, uint64_t shared) {
    return kl_mix64(run ^ kl_mix64(task ^ kl_mix64(input ^ kl_mix64(shared))));
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    worker_state *s = state;
    uint64_t input = 0, shared = 0;
    memcpy(&input, task->input.data, sizeof input);
    memcpy(&shared, task->shared.data, sizeof shared);
    unsigned counted = s->board->counted[task->run][task->index];
    s->board->again |= counted != 0 && counted < s->session;
    s->board->done[task->run][task->index] = s->session;
    for (uint64_t i = 0, x = input; i < 5000; i++) /* compute for some µs */
        input += (x = kl_mix64(x)) == 0;
    if (task->index == UNLUCKY && !s->board->lucky)
        return kilter_result_fail(result, "unlucky");
    uint64_t value = result_of(task->run, task->index, input, shared);
    for (uint64_t i = 0; i <= task->index % 20; i++) /* make results of different lengths */
        kilter_result_put(result, &value, sizeof value);
    return 0;
}

static void stop(void *state) {
    free(state);
}

/* --- a master --- */

typedef struct plan {
    /* listen: endpoint that is used instead of `transport`; NULL: `transport` is used */
    const char *file, *transport, *listen;
    /* tasks: number of tasks of the second run; seed: seed of the inputs, weights and shared data */
    uint64_t tasks, seed;
    bool weighted;
    /* numbers that are added to an input, a weight and the shared data of the second run; with them, the run
     * differs from the stored run */
    uint64_t other_input, other_weight, other_shared;
    const char *name, *version;
    const char *word; /* the program's only argument; NULL: the program has none */
    bool anyway;
    kilter_order order;
    rlim_t file_bytes_max; /* limit of the file's size in bytes; 0: no limit */
    uint64_t kill_at;      /* the master is killed after this number of results in its session; 0: never */
    double kill_after_s;   /* the master is killed after this number of seconds; 0: never */
} plan;

static plan usual(const char *file) {
    return (plan){
        .file = file, .transport = "inproc", .tasks = TASKS, .weighted = true, .name = "resume_test"};
}

typedef struct receiver {
    board *board;
    const plan *plan;
    uint64_t run, next, shared;
    const uint64_t *inputs;
    uint64_t delivered;
} receiver;

static void take(const kilter_outcome *o, void *user) {
    receiver *r = user;
    board *b = r->board;
    uint64_t value = result_of(r->run, o->index, r->inputs[o->index], r->shared);
    bool failed = o->status != KILTER_OK;
    b->wrong |= failed != (o->index == UNLUCKY && !b->lucky);
    b->wrong |= !failed && o->result.size != (o->index % 20 + 1) * sizeof value;
    for (size_t at = 0; at < o->result.size; at += sizeof value)
        b->wrong |= memcmp((const char *)o->result.data + at, &value, sizeof value) != 0;
    b->wrong |= r->plan->order == KILTER_BY_INDEX && o->index != r->next;
    r->next = o->index + 1;
    r->delivered++;
    if (!failed && b->counted[r->run][o->index] == 0)
        b->counted[r->run][o->index] = b->session;
    if (atomic_fetch_add(&b->delivered, 1) + 1 == r->plan->kill_at)
        kill(getpid(), SIGKILL);
}

/* Return how many different tasks were done in this session. */
static uint64_t tasks_done(const board *b) {
    uint64_t tasks = 0;
    for (size_t i = 0; i < RUNS * TASKS; i++)
        tasks += b->done[i / TASKS][i % TASKS] == b->session;
    return tasks;
}

static kilter_status one_run(board *b, const plan *p, kilter_farm *farm, uint64_t number,
                             kilter_error *error) {
    uint64_t tasks = number == 1 ? p->tasks : TASKS, shared = p->seed + number;
    uint64_t *inputs = malloc(TASKS * sizeof *inputs);
    double *weights = malloc(TASKS * sizeof *weights);
    kilter_bytes *spans = malloc(TASKS * sizeof *spans);
    for (uint64_t i = 0; i < TASKS; i++) {
        inputs[i] = kl_mix64(p->seed ^ number ^ (i << 8));
        weights[i] = 1 + (double)(i % 5);
        spans[i] = (kilter_bytes){&inputs[i], sizeof inputs[i]};
    }
    if (number == 1) {
        inputs[300] += p->other_input;
        weights[300] += (double)p->other_weight;
        shared += p->other_shared;
    }
    receiver r = {.board = b, .plan = p, .run = number, .inputs = inputs, .shared = shared};
    kilter_run run = {.tasks = tasks,
                      .inputs = spans,
                      .weights = p->weighted ? weights : NULL,
                      .shared = {&shared, sizeof shared},
                      .order = p->order,
                      .done = take,
                      .user = &r};
    kilter_status status = kilter_farm_run(farm, &run, error);
    kilter_farm_summary_get(farm, &b->summary[number]);
    if (status == KILTER_OK || status == KILTER_ERR_TASK)
        b->wrong |= r.delivered != tasks || (status == KILTER_OK) != b->lucky;
    free(inputs); /* free the inputs, because the farm must not read them any more */
    free(weights);
    free(spans);
    return status == KILTER_ERR_TASK ? KILTER_OK : status;
}

static kilter_status all_runs(board *b, const plan *p, kilter_error *error) {
    kilter_farm_options options = {.work = work,
                                   .start = start,
                                   .stop = stop,
                                   .user = b,
                                   .workers = 2,
                                   .transport = p->listen ? NULL : p->transport,
                                   .listen = p->listen,
                                   .resume = p->file,
                                   .name = p->name,
                                   .resume_anyway = p->anyway,
                                   .version = p->version};
    char *words[] = {"resume_test", (char *)p->word, "--team=all", NULL};
    int count = 3;
    kilter_farm *farm;
    kilter_status status =
        kilter_farm_open(&options, p->word ? &count : NULL, p->word ? words : NULL, &farm, error);
    if (status != KILTER_OK)
        return status;
    for (uint64_t run = 0; run < RUNS && status == KILTER_OK; run++)
        status = one_run(b, p, farm, run, error);
    kilter_status closed = kilter_farm_close(farm, status == KILTER_OK ? error : NULL);
    return status == KILTER_OK ? closed : status;
}

/* Run a master in a process of its own. Return how the process ended, as waitpid() reports it. */
static int master(board *b, const plan *p) {
    atomic_fetch_add(&b->session, 1);
    b->delivered = 0;
    b->status = KILTER_ERR_SYSTEM;
    pid_t pid = fork();
    if (pid == 0) {
        if (p->file_bytes_max)
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){p->file_bytes_max, p->file_bytes_max});
        kilter_error error = {KILTER_OK, ""};
        b->status = all_runs(b, p, &error);
        snprintf(b->text, sizeof b->text, "%s", error.text);
        _exit(0);
    }
    int how = -1;
    if (p->kill_after_s > 0) {
        kl_nap_s(p->kill_after_s);
        kill(pid, SIGKILL);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return how;
}

static void expect_well(board *b, const plan *p) {
    assert_int_equal(master(b, p), 0);
    if (b->status != KILTER_OK)
        fail_msg("%s", b->text);
    assert_false(b->wrong);
    assert_false(b->again);
    assert_int_equal(b->delivered, RUNS * TASKS);
}

static void expect_refused(board *b, const plan *p, kilter_status status, const char *says) {
    assert_int_equal(master(b, p), 0);
    if (b->status != status || !strstr(b->text, says) || !strstr(b->text, p->file))
        fail_msg("status %d instead of %d, '%s' instead of '%s'", b->status, status, b->text, says);
    assert_false(b->wrong);
}

/* --- tests --- */

static void what_is_stored_is_not_done_again(void **state) {
    const place *at = *state;
    const char *const transports[] = {"inproc", "zmq"};
    for (size_t t = 0; t < 2; t++) {
        board *b = new_board();
        b->lucky = true;
        plan p = usual(at->file);
        p.transport = transports[t];
        expect_well(b, &p);
        assert_int_equal(tasks_done(b), RUNS * TASKS);
        for (int order = 0; order < 2; order++) {
            p.order = order;
            expect_well(b, &p);
            assert_int_equal(tasks_done(b), 0);
            assert_int_equal(b->summary[1].stored, TASKS);
            assert_int_equal(b->summary[1].tasks, TASKS);
        }
        unlink(at->file);
        munmap(b, sizeof *b);
    }
}

static void failed_tasks_are_tried_again(void **state) {
    const place *at = *state;
    board *b = new_board();
    plan p = usual(at->file);
    expect_well(b, &p);
    p.order = KILTER_BY_INDEX;
    expect_well(b, &p); /* the failed task is done again, and fails again */
    assert_int_equal(tasks_done(b), RUNS);
    b->lucky = true;
    expect_well(b, &p);
    assert_int_equal(tasks_done(b), RUNS);
    assert_int_equal(b->summary[2].stored, TASKS - 1);
    expect_well(b, &p);
    assert_int_equal(tasks_done(b), 0);
    munmap(b, sizeof *b);
}

/* Kill one master after the other until one of them finishes. A task whose result has counted must never be
 * done again. */
static void masters_are_killed(const char *file, const char *transport, uint64_t seed, unsigned *sessions) {
    board *b = new_board();
    b->lucky = true;
    plan p = usual(file);
    p.transport = transport;
    p.seed = seed;
    for (*sessions = 1;; ++*sessions) {
        p.order = kl_mix64(seed + *sessions) % 2 ? KILTER_BY_INDEX : KILTER_BY_ARRIVAL;
        p.kill_at = *sessions < 6 ? 1 + kl_mix64(seed ^ *sessions) % (RUNS * TASKS) : 0;
        int how = master(b, &p);
        assert_false(b->wrong);
        assert_false(b->again);
        if (WIFEXITED(how))
            break;
        assert_int_equal(WTERMSIG(how), SIGKILL);
    }
    if (b->status != KILTER_OK)
        fail_msg("%s", b->text);
    assert_int_equal(b->delivered, RUNS * TASKS);
    munmap(b, sizeof *b);
}

static void killed_masters_are_followed_by_others(void **state) {
    const place *at = *state;
    const char *asked = getenv("KILTER_TEST_SEED");
    uint64_t seed = asked ? strtoull(asked, NULL, 10) : (uint64_t)getpid();
    print_message("KILTER_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (uint64_t i = 0; i < 8; i++) {
        unsigned sessions;
        masters_are_killed(at->file, i % 4 ? "inproc" : "zmq", seed + i, &sessions);
        unlink(at->file);
    }
}

static pid_t worker_that_joins(board *b, const char *endpoint) {
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        kilter_farm_options options = {.work = work,
                                       .start = start,
                                       .stop = stop,
                                       .user = b,
                                       .join = endpoint,
                                       .wait_for_master_s = 60,
                                       .name = "resume_test"};
        kilter_farm *farm;
        kilter_error error;
        kilter_farm_open(&options, NULL, NULL, &farm, &error);
        _exit(kilter_exit("a worker", &error));
    }
    return pid;
}

static void workers_outlive_their_masters(void **state) {
    const place *at = *state;
    board *b = new_board();
    b->lucky = true;
    char *endpoint = kl_text("ipc://%s/m", at->folder);
    pid_t workers[2] = {worker_that_joins(b, endpoint), worker_that_joins(b, endpoint)};
    plan p = usual(at->file);
    p.listen = endpoint;
    for (p.kill_at = 300; p.kill_at <= 1500; p.kill_at += 600)
        assert_true(WIFSIGNALED(master(b, &p)));
    p.kill_at = 0;
    expect_well(b, &p);
    assert_true(b->summary[0].stored == TASKS);
    for (int i = 0; i < 2; i++) {
        kill(workers[i], SIGKILL); /* kill the workers; farm_test checks how workers end */
        assert_int_equal(waitpid(workers[i], NULL, 0), workers[i]);
    }
    unlink(endpoint + strlen("ipc://"));
    free(endpoint);
    munmap(b, sizeof *b);
}

static void another_run_is_refused(void **state) {
    const place *at = *state;
    board *b = new_board();
    b->lucky = true;
    plan p = usual(at->file);
    expect_well(b, &p);
    struct {
        plan plan;
        const char *says;
    } rows[] = {{p, "run 1 has other tasks"},
                {p, "run 1 has other inputs"},
                {p, "run 1 has other weights"},
                {p, "run 1 has other shared data"},
                {p, "run 0 has other weights"}};
    rows[0].plan.tasks--;
    rows[1].plan.other_input = 1;
    rows[2].plan.other_weight = 1;
    rows[3].plan.other_shared = 1;
    rows[4].plan.weighted = false;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_refused(b, &rows[i].plan, KILTER_ERR_USAGE, rows[i].says);
        assert_int_equal(tasks_done(b), 0);
    }
    p.version = "2";
    expect_refused(b, &p, KILTER_ERR_RECORD, "its program version is '', but that of this program is '2'");
    p.name = "other";
    expect_refused(b, &p, KILTER_ERR_RECORD,
                   "its program is 'resume_test', but that of this program is 'other'");
    munmap(b, sizeof *b);
}

static void write_file(const char *file, const char *text, size_t size) {
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static char *read_file(const char *file, size_t *size) {
    FILE *in = fopen(file, "r");
    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    *size = (size_t)ftell(in);
    rewind(in);
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, in), *size);
    fclose(in);
    return bytes;
}

static void do_sql(const char *file, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void results_of_other_arguments_are_refused(void **state) {
    const place *at = *state;
    board *b = new_board();
    b->lucky = true;
    plan p = usual(at->file);
    p.word = "it's 1";
    expect_well(b, &p);
    expect_well(b, &p);
    assert_int_equal(tasks_done(b), 0);
    p.word = "2";
    expect_refused(b, &p, KILTER_ERR_USAGE,
                   "the results were made with other arguments: 'it'\\''s 1' then, 2 now");
    p.anyway = true;
    expect_well(b, &p);
    assert_int_equal(tasks_done(b), 0);
    p.anyway = false;
    expect_well(b, &p); /* the record must accept the program's new arguments from now on */
    p.word = "it's 1";
    expect_well(b, &p);
    do_sql(at->file, "UPDATE origin SET build = 'x'");
    expect_refused(b, &p, KILTER_ERR_USAGE, "other builds of the program: x then");
    p.anyway = true;
    expect_well(b, &p);
    munmap(b, sizeof *b);
}

/* Remove one run from the record: a run in the middle, the last run, or all runs. */
static void a_record_without_a_run_is_damaged(void **state) {
    const place *at = *state;
    static const char *const cuts[] = {"DELETE FROM call WHERE call = 1", "DELETE FROM call WHERE call = 2",
                                       "DELETE FROM call", "DELETE FROM origin"};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        board *b = new_board();
        b->lucky = true;
        plan p = usual(at->file);
        expect_well(b, &p);
        do_sql(at->file, cuts[i]);
        expect_refused(b, &p, KILTER_ERR_RECORD, "it is damaged or cut");
        unlink(at->file);
        munmap(b, sizeof *b);
    }
}

static void other_files_are_refused_and_left_as_they_are(void **state) {
    const place *at = *state;
    board *b = new_board();
    plan p = usual(at->file);
    char text[5000];
    memset(text, 'x', sizeof text);
    for (size_t size = sizeof text; size > 0; size = size == 2 ? 1 : size / 7) {
        write_file(at->file, text, size);
        expect_refused(b, &p, KILTER_ERR_RECORD, "it is not a run record");
        size_t kept;
        char *bytes = read_file(at->file, &kept);
        assert_int_equal(kept, size);
        assert_memory_equal(bytes, text, size);
        free(bytes);
        unlink(at->file);
    }
    do_sql(at->file, "CREATE TABLE t(a); INSERT INTO t VALUES (1)");
    expect_refused(b, &p, KILTER_ERR_RECORD, "an SQLite file, but not a run record");
    unlink(at->file);

    kl_trace *trace;
    const kl_trace_run_row row = {.program = "resume_test", .host = "ada"};
    assert_int_equal(kl_trace_open(at->file, &row, &trace, NULL), KILTER_OK);
    assert_int_equal(kl_trace_close(trace, 1, NULL), KILTER_OK);
    expect_refused(b, &p, KILTER_ERR_RECORD, "it holds no results");
    munmap(b, sizeof *b);
}

/* A record that other users may write must be refused, because they could change its results. */
static void files_that_others_may_write_are_refused(void **state) {
    const place *at = *state;
    board *b = new_board();
    plan p = usual(at->file);
    /* test with an empty record, and with a record that has results */
    for (int whole = 0; whole < 2; whole++) {
        b->lucky = true;
        /* forget which results have counted, because the record is gone */
        memset(b->counted, 0, sizeof b->counted);
        if (whole)
            expect_well(b, &p);
        else
            write_file(at->file, "", 0);
        static const mode_t others[] = {002, 020};
        for (int i = 0; i < 2; i++) {
            assert_int_equal(chmod(at->file, 0600 | others[i]), 0);
            expect_refused(b, &p, KILTER_ERR_RECORD, "may write it");
        }
        assert_int_equal(chmod(at->file, 0600), 0);
        b->lucky = true;
        expect_well(b, &p);
        unlink(at->file);
    }
    munmap(b, sizeof *b);
}

static void records_of_other_versions_are_refused(void **state) {
    const place *at = *state;
    board *b = new_board();
    plan p = usual(at->file);
    b->lucky = true;
    expect_well(b, &p);
    /* remove a column that records of earlier versions do not have */
    do_sql(at->file, "ALTER TABLE decision DROP COLUMN grounds");
    b->lucky = true;
    expect_well(b, &p);
    do_sql(at->file, "PRAGMA user_version = 1");
    expect_refused(b, &p, KILTER_ERR_RECORD, "an earlier version of Kilter made it; use that version");
    do_sql(at->file, "PRAGMA user_version = 3");
    expect_refused(b, &p, KILTER_ERR_RECORD, "a later version of Kilter made it; use that version");
    munmap(b, sizeof *b);
}

static void paths_that_are_no_files_are_refused(void **state) {
    const place *at = *state;
    board *b = new_board();
    plan p = usual(at->file);
    assert_int_equal(mkfifo(at->file, 0600), 0);
    expect_refused(b, &p, KILTER_ERR_RECORD, "it is not a regular file");
    unlink(at->file);
    p.file = at->folder;
    expect_refused(b, &p, KILTER_ERR_RECORD, "Is a directory");
    char *nowhere = kl_text("%s/nowhere/a.kilter", at->folder);
    p.file = nowhere;
    expect_refused(b, &p, KILTER_ERR_USAGE, "No such file or directory");
    free(nowhere);
    munmap(b, sizeof *b);
}

static void an_empty_file_is_taken_for_a_name(void **state) {
    const place *at = *state;
    board *b = new_board();
    b->lucky = true;
    plan p = usual(at->file);
    write_file(at->file, "", 0);
    assert_int_equal(chmod(at->file, 0600), 0);
    expect_well(b, &p);
    munmap(b, sizeof *b);
}

static void ignore_stored(void *context, uint64_t results, const kilter_error *failure) {
    (void)context, (void)results, (void)failure;
}

static void a_second_master_is_refused(void **state) {
    const place *at = *state;
    board *b = new_board();
    b->lucky = true;
    plan p = usual(at->file);
    expect_well(b, &p);
    int lock[2];
    assert_int_equal(pipe(lock), 0);
    pid_t first = fork();
    if (first == 0) { /* keep the record open in this process, as a master does between two runs */
        kl_trace *trace;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const kl_trace_run_row row = {.program = "resume_test", .host = "ada", .anyway = true};
        char told = kl_trace_resume(at->file, &row, ignore_stored, NULL, &trace, NULL) == KILTER_OK;
        _exit(write(lock[1], &told, 1) != 1 || pause() == 0);
    }
    char told = 0;
    assert_int_equal(read(lock[0], &told, 1), 1);
    assert_int_equal(told, 1);
    expect_refused(b, &p, KILTER_ERR_RECORD, "another master is writing it");
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    expect_well(b, &p);
    close(lock[0]);
    close(lock[1]);
    munmap(b, sizeof *b);
}

/* Make the disk full after a number of bytes, so that the run fails. When there is room again, the next
 * start must do the remaining tasks. */
static void a_full_disk_ends_the_run_and_what_was_stored_is_kept(void **state) {
    const place *at = *state;
    board *b = new_board();
    b->lucky = true;
    bool kept = false;
    for (rlim_t bytes = 4096; bytes <= 200000; bytes += 28000) {
        plan p = usual(at->file);
        p.file_bytes_max = bytes;
        expect_refused(b, &p, KILTER_ERR_RECORD, "");
        p.file_bytes_max = 0;
        expect_well(b, &p);
        kept |= tasks_done(b) < RUNS * TASKS;
        memset(b->counted, 0, sizeof b->counted);
        unlink(at->file);
    }
    assert_true(kept);
    munmap(b, sizeof *b);
}

static int do_nothing(const kilter_task *task, kilter_result *result, void *state) {
    (void)task, (void)state;
    return kilter_result_put(result, "r", 1);
}

static void count_call(const kilter_outcome *o, void *user) {
    *(unsigned *)user += o->index < TASKS ? 1 : 1000000;
}

/* Break the farm while a result of its last run still waits for the disk. */
static void leave_one_behind(kilter_farm *f) {
    static const uint8_t bytes[] = {1, 0, 0, 0, 'r'};
    kl_delivery *late = malloc(sizeof *late + sizeof bytes);
    *late = (kl_delivery){.lo = TASKS + 1, .count = 1, .size = sizeof bytes, .results = late->copy};
    memcpy(late->copy, bytes, sizeof bytes);
    pthread_mutex_lock(&f->lock);
    f->run.broken = true;
    f->run.failure = (kilter_error){KILTER_ERR_SYSTEM, "broken"};
    f->storing.bytes += 1 << 20;
    f->storing.tasks++;
    kl_delivery_append(&f->storing.list, &(kl_delivery_list){.first = late, .end = &late->next});
    kl_trace_result(f->record.trace, &(kl_trace_result_row){
                                         .lo = late->lo, .count = 1, .results = {late->results, late->size}});
    kl_trace_hurry(f->record.trace);
    while (f->storing.list.first)
        pthread_cond_wait(&f->news, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static int run_a_broken_farm(const char *file) {
    kilter_farm_options options = {
        .work = do_nothing, .workers = 1, .transport = "inproc", .resume = file, .name = "resume_test"};
    kilter_farm *farm;
    unsigned calls = 0;
    const kilter_run run = {.tasks = TASKS, .done = count_call, .user = &calls};
    if (kilter_farm_open(&options, NULL, NULL, &farm, NULL) != KILTER_OK ||
        kilter_farm_run(farm, &run, NULL) != KILTER_OK || calls != TASKS)
        return 1;
    leave_one_behind(farm);
    calls = 0;
    bool refused =
        kilter_farm_run(farm, &run, NULL) == KILTER_ERR_SYSTEM &&
        kilter_farm_expect(farm, &(kilter_expectation){.runs = 1, .seconds = 1}, NULL) == KILTER_ERR_SYSTEM;
    kilter_farm_close(farm, NULL);
    return !refused ? 2 : calls > 0 ? 3 : 0;
}

static void a_broken_farm_gives_no_run_the_results_of_another(void **state) {
    const place *at = *state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_a_broken_farm(at->file));
    int how = -1;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
}

/* --- damage --- */

/* Run a master on a damaged record. It must get all results right, or fail with an error that names the
 * record's file. Return whether all results were right. */
static bool survives(board *b, const plan *p) {
    memset(b->counted, 0, sizeof b->counted);
    assert_int_equal(master(b, p), 0);
    assert_false(b->wrong);
    if (b->status == KILTER_OK)
        assert_int_equal(b->delivered, RUNS * TASKS);
    else if ((b->status != KILTER_ERR_RECORD && b->status != KILTER_ERR_USAGE) || !strstr(b->text, p->file))
        fail_msg("status %d, '%s'", b->status, b->text);
    return b->status == KILTER_OK;
}

static void a_damaged_record_gives_no_wrong_result(void **state) {
    const place *at = *state;
    board *b = new_board();
    b->lucky = true;
    plan p = usual(at->file);
    /* kill the master, so that the log of the database stays beside the record */
    p.kill_at = RUNS * TASKS - 100;
    assert_true(WIFSIGNALED(master(b, &p)));
    p.kill_at = 0;
    char *log_name = kl_text("%s-wal", at->file);
    size_t size, log_size;
    char *bytes = read_file(at->file, &size), *log = read_file(log_name, &log_size);
    assert_true(log_size > 0);
    unsigned cut = 0, well = 0;
    for (uint64_t i = 0; i < 24; i++) {
        uint64_t random = kl_mix64(i);
        bool in_log = i % 3 != 0, flip = i % 2;
        char *where = in_log ? log : bytes;
        size_t length = in_log ? log_size : size, kept = length, at_byte = random % length;
        if (flip)
            where[at_byte] ^= (char)(1 << random % 7);
        else
            kept = i % 4 ? at_byte : at_byte / 4096 * 4096;
        write_file(at->file, bytes, in_log ? size : kept);
        write_file(log_name, log, in_log ? kept : log_size);
        well += survives(b, &p);
        if (flip)
            where[at_byte] ^= (char)(1 << random % 7);
        cut++;
    }
    assert_true(well > 0 && well <= cut);
    unlink(log_name);
    free(log_name);
    free(bytes);
    free(log);
    munmap(b, sizeof *b);
}

/* Damage a closed record, which has no log: cut it at every page, cut it at other places, and change single
 * bits. */
static void a_damaged_closed_record_gives_no_wrong_result(void **state) {
    const place *at = *state;
    board *b = new_board();
    b->lucky = true;
    plan p = usual(at->file);
    expect_well(b, &p);
    size_t size;
    char *bytes = read_file(at->file, &size);
    for (size_t kept = 0; kept < size; kept += 4096) {
        write_file(at->file, bytes, kept);
        assert_true(survives(b, &p) == (kept == 0));
    }
    for (uint64_t i = 0; i < 24; i++) {
        uint64_t random = kl_mix64(i);
        size_t at_byte = random % size;
        if (i % 3 == 0) {
            write_file(at->file, bytes, at_byte);
        } else {
            bytes[at_byte] ^= (char)(1 << random % 7);
            write_file(at->file, bytes, size);
            bytes[at_byte] ^= (char)(1 << random % 7);
        }
        survives(b, &p);
    }
    free(bytes);
    munmap(b, sizeof *b);
}

/* --- a series of killed masters --- */

static double one_session_s(const char *file) {
    board *b = new_board();
    b->lucky = true;
    plan p = usual(file);
    p.transport = "zmq";
    double began_s = kl_monotonic_s();
    expect_well(b, &p);
    double took_s = kl_monotonic_s() - began_s;
    unlink(file);
    munmap(b, sizeof *b);
    return took_s;
}

typedef struct series {
    /* early: number of masters that were killed before any result had counted; left: number of tasks without
     * a stored result, summed over all restarts; done: number of tasks that were done after the restarts */
    uint64_t kills, early, records, sessions_most, left, done;
} series;

/* Kill one master of a record after the other until a master finishes. */
static void kill_until_done(const char *file, uint64_t seed, double session_s, uint64_t kills_most,
                            series *s) {
    board *b = new_board();
    b->lucky = true;
    plan p = usual(file);
    p.transport = "zmq";
    p.seed = seed;
    for (uint64_t sessions = 1;; sessions++) {
        uint64_t random = kl_mix64(seed ^ kl_mix64(sessions)), left = 0;
        p.order = random % 2 ? KILTER_BY_INDEX : KILTER_BY_ARRIVAL;
        p.kill_after_s = s->kills < kills_most ? 1.2 * session_s * (double)(random >> 11) * 0x1p-53 : 0;
        for (size_t i = 0; i < RUNS * TASKS; i++)
            left += b->counted[i / TASKS][i % TASKS] == 0;
        int how = master(b, &p);
        if (b->wrong || b->again)
            fail_msg("seed %llu, session %llu: %s", (unsigned long long)seed, (unsigned long long)sessions,
                     b->wrong ? "a wrong result" : "a task was done again");
        if (sessions > 1) {
            s->left += left;
            s->done += tasks_done(b);
        }
        if (WIFEXITED(how)) {
            s->sessions_most = sessions > s->sessions_most ? sessions : s->sessions_most;
            break;
        }
        s->kills++;
        s->early += b->delivered == 0;
    }
    if (b->status != KILTER_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, b->text);
    assert_int_equal(b->delivered, RUNS * TASKS);
    s->records++;
    unlink(file);
    munmap(b, sizeof *b);
}

static int kill_masters(const char *count, const char *asked) {
    uint64_t kills = strtoull(count, NULL, 10), seed = asked ? strtoull(asked, NULL, 10) : (uint64_t)getpid();
    void *at = NULL;
    series s = {0};
    assert_int_equal(make_place(&at), 0);
    const char *file = ((place *)at)->file;
    double session_s = one_session_s(file);
    while (s.kills < kills)
        kill_until_done(file, seed + 1000 * s.records, session_s, kills, &s);
    assert_int_equal(remove_place(&at), 0);
    printf(
        "| masters killed | of them before a result had counted | records that came to their end | masters "
        "of one record, at "
        "most | wrong or missing results | tasks done again that had counted | tasks left at the restarts | "
        "done then |\n|---|---|---|---|---|---|---|---|\n| %llu | %llu | %llu | %llu | 0 | 0 | %llu | %llu "
        "|\n\n"
        "The seed is %llu. Each record has %d runs of %d tasks on two local workers.\n",
        (unsigned long long)s.kills, (unsigned long long)s.early, (unsigned long long)s.records,
        (unsigned long long)s.sessions_most, (unsigned long long)s.left, (unsigned long long)s.done,
        (unsigned long long)seed, RUNS, TASKS);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "kills") == 0)
        return kill_masters(argv[2], argv[3]);
#define AT_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        AT_A_PLACE(what_is_stored_is_not_done_again),
        AT_A_PLACE(failed_tasks_are_tried_again),
        AT_A_PLACE(killed_masters_are_followed_by_others),
        AT_A_PLACE(workers_outlive_their_masters),
        AT_A_PLACE(another_run_is_refused),
        AT_A_PLACE(results_of_other_arguments_are_refused),
        AT_A_PLACE(a_record_without_a_run_is_damaged),
        AT_A_PLACE(other_files_are_refused_and_left_as_they_are),
        AT_A_PLACE(files_that_others_may_write_are_refused),
        AT_A_PLACE(records_of_other_versions_are_refused),
        AT_A_PLACE(paths_that_are_no_files_are_refused),
        AT_A_PLACE(an_empty_file_is_taken_for_a_name),
        AT_A_PLACE(a_second_master_is_refused),
        AT_A_PLACE(a_full_disk_ends_the_run_and_what_was_stored_is_kept),
        AT_A_PLACE(a_broken_farm_gives_no_run_the_results_of_another),
        AT_A_PLACE(a_damaged_record_gives_no_wrong_result),
        AT_A_PLACE(a_damaged_closed_record_gives_no_wrong_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
