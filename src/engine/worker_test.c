/* Test a real worker. The test acts as its master, and also sends messages during tasks. There is only one
 * thread, and only tasks let the clock advance. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"

enum { MANY = 64 };

/* A message that the worker sent. */
typedef struct word {
    kl_message_type type;
    bool more;             /* for RESULTS: true if the message also requests a chunk */
    uint64_t segments;     /* for RESULTS: number of segments in the message */
    double task_s;         /* for RESULTS: seconds that all tasks in the message took together */
    double cpu_s, delay_s; /* for RESULTS: reported CPU time, and time without a core */
    bool last;             /* for RESULTS: the member `last` of the message's last segment */
    /* for RETURN: the returned tasks; for RESULTS: the tasks of the message's last segment */
    kl_part part;
    kl_heartbeat heartbeat;
    char text[160]; /* for REFUSE and LEAVE: the worker's reason */
} word;

typedef struct scene {
    double now_s, busy_s;
    double transport_s; /* seconds that each use of the transport takes */
    kl_inproc *hub;
    kl_transport *master, *end;
    kl_peer peer;
    kl_worker_options options;
    kl_worker *worker;
    kl_buffer out;
    bool free;            /* true: another thread may call the worker now, because a task runs */
    uint64_t memory_most; /* memory limit that the message WELCOME contains */
    uint64_t memory;      /* bytes of memory that the worker's process has */
    /* cpu_s: seconds for which the worker's thread ran; delay_s: seconds for which it was ready while
     * others had its core */
    double cpu_s, delay_s;
    uint32_t started;
    /* worked: number of tasks done; shared: shared data of the last task; index: number that the worker was
     * given */
    uint64_t worked, shared, index;
    uint64_t during_task; /* number of the task during which the function `during` is called */
    void (*during)(struct scene *s);
    uint64_t keep; /* number of tasks of a chunk that the worker keeps when the test recalls the others */
    word words[MANY];
    uint32_t heard;
} scene;

static double cpu_s(void *driver) {
    return ((scene *)driver)->cpu_s;
}
static bool core(void *driver, double *run_s, double *delay_s) {
    *run_s = ((scene *)driver)->cpu_s;
    *delay_s = ((scene *)driver)->delay_s;
    return true;
}
static uint64_t memory(void *driver) {
    return ((scene *)driver)->memory;
}
static double clock_s(void *self) {
    return ((scene *)self)->now_s;
}
static double busy_s(void *self) {
    return ((scene *)self)->busy_s;
}
static double endpoint_s(void *clock, kl_peer endpoint) {
    scene *s = clock;
    if (endpoint == s->peer)
        s->now_s += s->transport_s;
    return s->now_s;
}

static void works(void *self, bool begins) {
    scene *s = self;
    assert_int_equal(s->free, !begins);
    s->free = begins;
}

static int start(const kilter_worker *worker, void **state) {
    *state = worker->user;
    ((scene *)worker->user)->started++;
    return 0;
}

static int work(const kilter_task *task, kilter_result *result, void *state) {
    scene *s = state;
    s->worked++;
    if (s->during && task->index == s->during_task)
        s->during(s);
    s->shared = 0;
    if (task->shared.size)
        memcpy(&s->shared, task->shared.data, task->shared.size);
    return kilter_result_put(result, &task->index, sizeof task->index) != KILTER_OK;
}

/* --- the test as master --- */

static void say(scene *s) {
    assert_int_equal(kl_send(s->master, s->peer, &s->out, NULL), KILTER_OK);
    kl_buffer_clear(&s->out);
}

static void say_plain(scene *s, kl_message_type type) {
    kl_wire_put_plain(&s->out, type);
    say(s);
}

static uint64_t say_shared(scene *s, uint64_t value) {
    kl_wire_put_shared(&s->out, &value, sizeof value);
    say(s);
    return kl_hash(&value, sizeof value, 0);
}

static void deal(scene *s, uint64_t chunk, uint64_t lo, uint64_t count, uint64_t shared) {
    kl_wire_put_chunk(&s->out, &(kl_chunk_head){.chunk = chunk, .lo = lo, .count = count, .shared = shared});
    say(s);
}

static void recall(scene *s, uint64_t chunk, uint64_t lo, uint64_t hi) {
    kl_wire_put_part(&s->out, KL_RECALL, &(kl_part){chunk, lo, hi});
    say(s);
}

static void read_results(const kl_message *m, word *w) {
    kl_results_head head;
    assert_true(kl_wire_check_results(m->data, m->size, &head));
    w->more = head.more;
    w->cpu_s = head.cpu_s;
    w->delay_s = head.delay_s;
    w->segments = head.segments;
    kl_reader reader = kl_wire_read_results(m->data, m->size);
    for (uint32_t i = 0; i < head.segments; i++) {
        kl_segment segment;
        kl_wire_next_segment(&reader, &segment);
        w->part = (kl_part){segment.chunk, segment.lo, segment.lo + segment.count};
        w->task_s += segment.busy_s;
        w->last = segment.last;
        for (uint64_t k = 0; k < segment.count; k++) {
            bool failed;
            kilter_bytes bytes;
            uint64_t index;
            assert_true(kl_wire_next_result(&reader, &failed, &bytes) && !failed);
            assert_int_equal(bytes.size, sizeof index);
            memcpy(&index, bytes.data, sizeof index);
            assert_int_equal(index, segment.lo + k);
        }
    }
}

static void read_word(const kl_message *m, word *w) {
    *w = (word){.type = kl_wire_type(m->data, m->size)};
    if (w->type == KL_RESULTS)
        read_results(m, w);
    else if (w->type == KL_RETURN)
        assert_true(kl_wire_get_part(m->data, m->size, &w->part));
    else if (w->type == KL_HEARTBEAT)
        assert_true(kl_wire_get_heartbeat(m->data, m->size, &w->heartbeat));
    else
        kl_wire_get_text(m->data, m->size, w->text, sizeof w->text);
}

/* Read all messages of the worker into s->words. */
static void hear(scene *s) {
    kl_event event;
    s->heard = 0;
    for (;;) {
        assert_int_equal(kl_poll(s->master, 0, &event, NULL), KILTER_OK);
        if (event.kind == KL_EVENT_NONE)
            return;
        if (event.kind == KL_EVENT_JOINED)
            s->peer = event.peer;
        if (event.kind == KL_EVENT_MESSAGE) {
            assert_true(s->heard < MANY);
            read_word(&event.message, &s->words[s->heard++]);
            kl_message_release(&event.message);
        }
    }
}

static const word *find(const scene *s, kl_message_type type) {
    for (uint32_t i = 0; i < s->heard; i++)
        if (s->words[i].type == type)
            return &s->words[i];
    return NULL;
}

/* --- driving the worker --- */

static kilter_status turn(scene *s, kilter_error *error) {
    return kl_worker_turn(s->worker, 0, error);
}

static void run_dry(scene *s) {
    do
        assert_int_equal(turn(s, NULL), KILTER_OK);
    while (kl_worker_has_work(s->worker));
}

static void attend(scene *s) {
    assert_true(s->free);
    kl_worker_attend(s->worker);
}

/* Handle messages during a task two times, because the first call only notices that there is a task. */
static void attend_late(scene *s) {
    attend(s);
    attend(s);
}

static void connect(scene *s, const kl_inproc_stepped *timing) {
    assert_int_equal(kl_inproc_new(timing, &s->hub, NULL), KILTER_OK);
    assert_int_equal(kl_inproc_listen(s->hub, &s->master, NULL), KILTER_OK);
    assert_int_equal(kl_inproc_join(s->hub, NULL, &s->end, NULL), KILTER_OK);
}

static void greet(scene *s, uint32_t number) {
    assert_int_equal(turn(s, NULL), KILTER_OK);
    hear(s);
    assert_non_null(find(s, KL_HELLO));
    kl_wire_put_welcome(&s->out, &(kl_welcome){.worker = number, .memory_most = s->memory_most});
    say(s);
    assert_int_equal(turn(s, NULL), KILTER_OK);
    hear(s);
    assert_non_null(find(s, KL_READY));
    assert_int_equal(s->heard, 1);
}

static void let_attend(scene *s) {
    kl_worker_let_attend(s->worker, &(kl_attendance){.works = works, .busy_s = busy_s, .self = s});
}

static void open_scene_of(scene *s, kl_inproc_stepped *timing, bool tells_cpu, uint64_t memory_most) {
    *s = (scene){.now_s = 1, .during_task = UINT64_MAX, .memory_most = memory_most, .memory = 1000};
    *timing = (kl_inproc_stepped){.now_s = endpoint_s, .clock = s};
    connect(s, timing);
    s->options = (kl_worker_options){.work = work,
                                     .start = start,
                                     .user = s,
                                     .program = "test",
                                     .binding = "",
                                     .clock = {.now_s = clock_s, .self = s},
                                     .patience_s = 5,
                                     .memory = memory};
    if (tells_cpu) {
        s->options.cpu_s = cpu_s;
        s->options.core = core;
    }
    assert_int_equal(kl_worker_new(&s->options, s, s->end, &s->worker, NULL), KILTER_OK);
    let_attend(s);
    greet(s, 3);
}

static void open_scene(scene *s, kl_inproc_stepped *timing) {
    open_scene_of(s, timing, false, 0);
}

static void disconnect(scene *s) {
    kl_transport_close(s->end);
    kl_transport_close(s->master);
    kl_inproc_free(s->hub);
}

static void close_scene(scene *s) {
    kl_worker_free(s->worker);
    disconnect(s);
    kl_buffer_free(&s->out);
}

/* --- tasks that the worker returns --- */

enum { TASKS = 10 };

static void recall_now(scene *s) {
    recall(s, 77, 0, TASKS); /* recall a chunk that is already done */
    recall(s, 1, s->keep, TASKS);
    attend_late(s);
    attend(s);
}

/* Check that each task was either done or returned, and only once. */
static void check_parts(const scene *s, uint64_t at_least_done) {
    uint64_t done = 0, back = TASKS;
    bool ended = false, asked = false;
    for (uint32_t i = 0; i < s->heard; i++) {
        const word *w = &s->words[i];
        asked |= w->type == KL_RESULTS && w->more;
        if (w->type == KL_RESULTS && w->segments > 0) {
            assert_false(ended);
            assert_int_equal(w->segments, 1);
            assert_int_equal(w->part.lo, done);
            done = w->part.hi;
            assert_int_equal(w->last, done == back);
            ended = w->last;
        } else if (w->type == KL_RETURN) {
            assert_int_equal(w->part.hi, TASKS);
            assert_true(w->part.lo >= done);
            back = w->part.lo;
            ended = done == back;
        }
    }
    assert_int_equal(done, back);
    assert_int_equal(done, at_least_done);
    assert_true(asked);
    assert_int_equal(s->worked, done);
}

static void a_recall_is_answered_in_mid_task(void **state) {
    (void)state;
    for (uint64_t at = 0; at < TASKS; at++)
        for (uint64_t keep = 0; keep <= TASKS; keep++) {
            scene s;
            kl_inproc_stepped timing;
            open_scene(&s, &timing);
            s.during_task = at;
            s.during = recall_now;
            s.keep = keep;
            deal(&s, 1, 0, TASKS, 0);
            run_dry(&s);
            hear(&s);
            assert_non_null(find(&s, KL_RETURN));
            check_parts(&s, keep > at + 1 ? keep : at + 1);
            close_scene(&s);
        }
}

static void a_recall_is_answered_between_tasks(void **state) {
    (void)state;
    for (uint64_t at = 0; at < TASKS; at++)
        for (uint64_t keep = 0; keep <= TASKS; keep++) {
            scene s;
            kl_inproc_stepped timing;
            open_scene(&s, &timing);
            deal(&s, 1, 0, TASKS, 0);
            for (uint64_t i = 0; i < at + 1; i++)
                assert_int_equal(turn(&s, NULL), KILTER_OK);
            assert_int_equal(s.worked, at);
            recall(&s, 1, keep, TASKS);
            run_dry(&s);
            hear(&s);
            /* the worker reads messages after each task, so it has done one task more */
            check_parts(&s, keep > at + 1 ? keep : at + 1);
            close_scene(&s);
        }
}

/* --- leaving --- */

static void release_now(scene *s) {
    say_plain(s, KL_RELEASE);
    attend_late(s);
}

static void ask_to_leave(scene *s) {
    kl_worker_leave(s->worker, "the test told it to leave");
    attend_late(s);
}

static void deal_to_one_that_leaves(scene *s) {
    ask_to_leave(s);
    deal(s, 3, 20, 5, 0);
    attend(s);
}

/* Tell the worker to leave in the middle of task `at`. The worker must finish this task and return all later
 * ones. */
static void check_leaving(uint64_t at, void (*how)(scene *s)) {
    scene s;
    kl_inproc_stepped timing;
    kilter_error error;
    open_scene(&s, &timing);
    s.during_task = at;
    s.during = how;
    deal(&s, 1, 0, TASKS, 0);
    deal(&s, 2, TASKS, 3, 0);
    kilter_status status = KILTER_OK;
    while (status == KILTER_OK)
        status = turn(&s, &error);
    assert_int_equal(status, KILTER_ENDED);
    assert_int_equal(s.worked, at + 1);
    hear(&s);
    uint64_t done = 0, back = 0;
    for (uint32_t i = 0; i < s.heard; i++) {
        assert_true(s.words[i].type == KL_RESULTS || s.words[i].type == KL_RETURN ||
                    (s.words[i].type == KL_LEAVE && i == s.heard - 1));
        if (s.words[i].type == KL_RETURN)
            back += s.words[i].part.hi - s.words[i].part.lo;
        else if (s.words[i].segments > 0)
            done = s.words[i].part.hi;
    }
    assert_int_equal(s.words[s.heard - 1].type, KL_LEAVE);
    assert_true(*s.words[s.heard - 1].text);
    assert_int_equal(done, at + 1);
    assert_int_equal(back, TASKS + 3 - (at + 1) + (how == deal_to_one_that_leaves ? 5 : 0));
    close_scene(&s);
}

static void who_leaves_ends_its_task_and_gives_back_the_rest(void **state) {
    (void)state;
    for (uint64_t at = 0; at < TASKS + 3; at++) {
        check_leaving(at, release_now);
        check_leaving(at, ask_to_leave);
        check_leaving(at, deal_to_one_that_leaves);
    }
}

static void an_idle_worker_leaves_at_once(void **state) {
    (void)state;
    for (int welcomed = 0; welcomed < 2; welcomed++) {
        scene s;
        kl_inproc_stepped timing;
        open_scene(&s, &timing);
        if (!welcomed) { /* make a worker that has no master yet */
            kl_transport_close(s.master);
            assert_int_equal(turn(&s, NULL), KILTER_ERR_PEER);
            kl_transport_close(s.end);
            kl_inproc_free(s.hub);
            assert_int_equal(kl_inproc_new(&timing, &s.hub, NULL), KILTER_OK);
            assert_int_equal(kl_inproc_join(s.hub, NULL, &s.end, NULL), KILTER_OK);
            s.master = NULL;
            kl_worker_adopt(s.worker, s.end);
        }
        kl_worker_leave(s.worker, "the test told it to leave");
        assert_int_equal(turn(&s, NULL), KILTER_ENDED);
        if (welcomed) {
            hear(&s);
            assert_true(s.heard == 1 && s.words[0].type == KL_LEAVE);
            assert_string_equal(s.words[0].text, "the test told it to leave");
        }
        close_scene(&s);
    }
}

/* --- messages during long tasks --- */

static void take_long(scene *s) {
    for (int i = 0; i < 95; i++) {
        s->now_s += 0.01;
        s->busy_s += 0.004;
        attend(s);
    }
}

static void what_is_ready_does_not_wait_for_a_long_task(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    open_scene(&s, &timing);
    s.during_task = 3;
    s.during = take_long;
    deal(&s, 1, 0, TASKS, 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(turn(&s, NULL), KILTER_OK);
    hear(&s);
    assert_int_equal(s.heard, 4);
    assert_int_equal(s.words[0].type, KL_RESULTS);
    assert_true(s.words[0].part.hi == 3 && !s.words[0].more);
    for (int i = 1; i < 4; i++) {
        const kl_heartbeat *heartbeat = &s.words[i].heartbeat;
        assert_int_equal(s.words[i].type, KL_HEARTBEAT);
        assert_true(heartbeat->chunk == 1 && heartbeat->task == 3);
        assert_true(fabs(heartbeat->elapsed_s - KL_HEARTBEAT_S * i) < 0.02 * i);
        assert_true(fabs(heartbeat->cpu_s / heartbeat->elapsed_s - 0.4) < 0.05);
    }
    close_scene(&s);
}

static void take_a_tenth(scene *s) {
    s->now_s += 0.1;
    s->busy_s += 0.08;
    s->during_task++;
}

static void a_heartbeat_tells_the_usual_share_of_cpu_time(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    open_scene(&s, &timing);
    s.during_task = 0;
    s.during = take_a_tenth;
    deal(&s, 1, 0, TASKS, 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(turn(&s, NULL), KILTER_OK);
    s.during = take_long;
    run_dry(&s);
    hear(&s);
    assert_true(fabs(find(&s, KL_HEARTBEAT)->heartbeat.usual_share - 0.8) < 1e-9);
    close_scene(&s);
}

/* --- measurements of the worker's process --- */

/* Take 100 ms for a task. The thread has its core for 60 ms of this time. */
static void share_the_core(scene *s) {
    s->now_s += 0.1;
    s->cpu_s += 0.06;
    s->delay_s += 0.04;
}

static void results_tell_cpu_time_and_what_others_had_of_the_core(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    open_scene_of(&s, &timing, true, 0);
    s.during = share_the_core;
    for (int i = 1; i <= 3; i++) {
        s.during_task = (uint64_t)i;
        deal(&s, (uint64_t)i, (uint64_t)i, 1, 0);
        run_dry(&s);
        hear(&s);
        const word *last = &s.words[s.heard - 1];
        assert_int_equal(last->type, KL_RESULTS);
        assert_true(fabs(last->cpu_s - 0.06 * i) < 1e-9);
        assert_true(fabs(last->delay_s - 0.04 * i) < 1e-9);
        /* this delay comes at the end of a wait for messages, so it must not count for tasks */
        s.delay_s += 5;
    }
    close_scene(&s);
}

static void grow(scene *s) {
    attend_late(s);
    s->memory += 950;
    s->now_s += 0.1;
    attend(s);
    assert_null(find(s, KL_HEARTBEAT));
    s->memory += 100;
    attend_late(s);
}

static void a_worker_with_too_much_memory_tells_and_is_replaced(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    open_scene_of(&s, &timing, false, 1000);
    s.during_task = 0;
    s.during = grow;
    deal(&s, 1, 0, 1, 0);
    assert_int_equal(turn(&s, NULL), KILTER_OK);
    assert_int_equal(turn(&s, NULL), KILTER_ENDED);
    hear(&s);
    assert_int_equal(find(&s, KL_HEARTBEAT)->heartbeat.memory, 1050);
    assert_non_null(strstr(find(&s, KL_RENEW)->text, "of memory; the limit is"));
    assert_string_equal(kl_worker_renewal(s.worker), find(&s, KL_RENEW)->text);
    close_scene(&s);
}

static void deal_more(scene *s) {
    attend_late(s);
    hear(s);
    assert_true(s->heard > 0 && s->words[s->heard - 1].more); /* the worker must have requested tasks */
    deal(s, 2 + s->worked, s->worked, 1, 0);
    attend(s);
    s->during_task++;
}

static void chunks_of_one_task_cost_one_message_each(void **state) {
    (void)state;
    for (int attended = 0; attended < 2; attended++) {
        scene s;
        kl_inproc_stepped timing;
        open_scene(&s, &timing);
        s.during_task = attended ? 0 : UINT64_MAX;
        s.during = deal_more;
        deal(&s, 1, 0, 1, 0);
        assert_int_equal(turn(&s, NULL), KILTER_OK);
        for (uint64_t i = 0; i < 20; i++) {
            if (!attended)
                deal(&s, i + 2, i + 1, 1, 0);
            assert_int_equal(turn(&s, NULL), KILTER_OK);
            if (!attended)
                hear(&s);
            assert_int_equal(s.heard, 1);
            assert_true(s.words[0].more && s.words[0].segments == (i > 0));
        }
        close_scene(&s);
    }
}

/* --- the time that tasks take --- */

/* Let the worker do its tasks, with a quarter of a second between two turns. Return the seconds in tasks
 * that the worker reports. */
static double work_off(scene *s) {
    double task_s = 0;
    do {
        s->now_s += 0.25;
        assert_int_equal(turn(s, NULL), KILTER_OK);
    } while (kl_worker_has_work(s->worker));
    hear(s);
    for (uint32_t i = 0; i < s->heard; i++)
        task_s += s->words[i].task_s;
    return task_s;
}

static void waiting_between_tasks_is_time_they_take_and_resting_is_not(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    open_scene(&s, &timing);
    for (uint64_t chunk = 1; chunk < 4; chunk++) {
        deal(&s, chunk, 4 * chunk, 4, 0);
        assert_true(work_off(&s) == 3 * 0.25);
        s.now_s += 10;
    }
    close_scene(&s);
}

/* Send the next chunk in such a way that it arrives while the worker checks for messages after its last
 * task. */
static void deal_for_later(scene *s) {
    deal(s, s->during_task + 2, s->during_task + 1, 1, 0);
    s->during_task++;
    s->transport_s = 10;
}

static void waiting_for_a_chunk_that_comes_at_the_first_look_is_resting(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    open_scene(&s, &timing);
    s.during_task = 0;
    s.during = deal_for_later;
    deal(&s, 1, 0, 1, 0);
    assert_int_equal(turn(&s, NULL), KILTER_OK);
    for (uint64_t done = 1; done < 5; done++) {
        double began_s = s.now_s;
        assert_int_equal(turn(&s, NULL), KILTER_OK);
        assert_true(kl_worker_has_work(s.worker) && s.worked == done && s.now_s > began_s);
        s.transport_s = 0;
    }
    hear(&s);
    assert_true(s.heard > 0);
    for (uint32_t i = 0; i < s.heard; i++)
        assert_true(s.words[i].task_s == 0);
    close_scene(&s);
}

/* --- shared data --- */

static void share_in_mid_task(scene *s) {
    deal(s, 2, TASKS, 1, say_shared(s, 55));
    attend_late(s);
}

static void shared_data_wait_for_the_tasks_before_them(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    open_scene(&s, &timing);
    deal(&s, 1, 0, TASKS, say_shared(&s, 44));
    s.during_task = 2;
    s.during = share_in_mid_task;
    while (s.worked < TASKS)
        assert_int_equal(turn(&s, NULL), KILTER_OK);
    assert_int_equal(s.shared, 44);
    run_dry(&s);
    assert_int_equal(s.worked, TASKS + 1);
    assert_int_equal(s.shared, 55);
    close_scene(&s);
}

static void other_shared_data_than_meant_are_refused_by_name(void **state) {
    (void)state;
    const char *const says[] = {"are damaged", "its tasks are for shared data"};
    for (int i = 0; i < 2; i++) {
        scene s;
        kl_inproc_stepped timing;
        kilter_error error;
        open_scene(&s, &timing);
        uint64_t value = 44;
        kl_wire_put_shared(&s.out, &value, sizeof value);
        s.out.data[s.out.size - 1] ^= i == 0;
        say(&s);
        deal(&s, 1, 0, 1, kl_hash(&value, sizeof value, 0) + (i == 1));
        /* the shared data have come, but the worker checks them only when it needs them */
        assert_int_equal(turn(&s, &error), KILTER_OK);
        kilter_status status = KILTER_OK;
        for (int n = 0; n < 2 && status == KILTER_OK; n++)
            status = turn(&s, &error);
        assert_int_equal(status, KILTER_ERR_TASK);
        hear(&s);
        assert_non_null(strstr(find(&s, KL_REFUSE)->text, says[i]));
        assert_int_equal(s.worked, 0);
        close_scene(&s);
    }
}

/* --- the master's death --- */

static void die_and_attend(scene *s) {
    kl_transport_close(s->master);
    attend_late(s);
    attend(s);
}

static void an_orphan_keeps_its_state_and_nothing_else(void **state) {
    (void)state;
    for (int attended = 0; attended < 2; attended++) {
        scene s;
        kl_inproc_stepped timing;
        kilter_error error;
        open_scene(&s, &timing);
        deal(&s, 1, 0, TASKS, say_shared(&s, 44));
        s.during_task = attended ? 2 : UINT64_MAX;
        s.during = die_and_attend;
        for (int i = 0; i < 4; i++)
            assert_int_equal(turn(&s, &error), KILTER_OK);
        if (!attended)
            kl_transport_close(s.master);
        assert_int_equal(turn(&s, &error), KILTER_ERR_PEER);
        assert_true(kl_worker_is_orphan(s.worker));
        assert_int_equal(s.worked, 3);
        kl_transport_close(s.end);
        kl_inproc_free(s.hub);

        connect(&s, &timing);
        kl_worker_adopt(s.worker, s.end);
        assert_false(kl_worker_is_orphan(s.worker) || kl_worker_has_work(s.worker));
        let_attend(&s);
        s.during = NULL;
        greet(&s, 8);
        assert_int_equal(s.started, 1);
        /* this chunk has the same number as a chunk of the last master, and needs no shared data */
        deal(&s, 1, 5, 2, 0);
        run_dry(&s);
        hear(&s);
        const word *w = &s.words[s.heard - 1];
        assert_true(w->type == KL_RESULTS && w->part.chunk == 1 && w->part.hi == 7 && w->last);
        assert_true(s.worked == 5 && s.shared == 0);
        close_scene(&s);
    }
}

static void patience_ends_and_says_whom_it_waited_for(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    kilter_error error;
    open_scene(&s, &timing);
    kl_transport_close(s.master);
    assert_int_equal(turn(&s, &error), KILTER_ERR_PEER);
    kl_transport_close(s.end);
    kl_inproc_free(s.hub);
    assert_int_equal(kl_inproc_new(&timing, &s.hub, NULL), KILTER_OK);
    assert_int_equal(kl_inproc_join(s.hub, NULL, &s.end, NULL), KILTER_OK);
    s.master = NULL;
    kl_worker_adopt(s.worker, s.end);
    s.now_s += 4.9;
    assert_int_equal(turn(&s, &error), KILTER_OK);
    s.now_s += 0.2;
    assert_int_equal(turn(&s, &error), KILTER_ERR_PEER);
    assert_string_equal(error.text, "the master is gone and did not come back within 5 s: worker 3 ends");
    assert_false(kl_worker_is_orphan(s.worker));
    close_scene(&s);
}

static void end_now(scene *s) {
    kl_wire_put_bytes(&s->out, KL_END, NULL, 0);
    say(s);
    attend_late(s);
}

static void a_closed_farm_wants_no_more_results(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    open_scene(&s, &timing);
    s.during_task = 0;
    s.during = end_now;
    deal(&s, 1, 0, TASKS, 0);
    assert_int_equal(turn(&s, NULL), KILTER_OK);
    assert_int_equal(turn(&s, NULL), KILTER_ENDED);
    assert_int_equal(s.worked, 1);
    hear(&s);
    assert_int_equal(s.heard, 0);
    close_scene(&s);
}

/* --- memory --- */

static kilter_status poll_without_memory(kl_transport *t, double timeout_s, kl_event *event,
                                         kilter_error *error) {
    (void)t, (void)timeout_s, (void)event;
    return kl_fail(error, KILTER_ERR_MEMORY, "receiving messages: memory ran out");
}

static void who_runs_out_of_memory_says_so(void **state) {
    (void)state;
    scene s;
    kl_inproc_stepped timing;
    kilter_error error;
    open_scene(&s, &timing);
    kl_transport_ops poor = *s.end->ops;
    const kl_transport_ops *rich = s.end->ops;
    poor.poll = poll_without_memory;
    s.end->ops = &poor;
    assert_int_equal(turn(&s, &error), KILTER_ERR_MEMORY);
    s.end->ops = rich;
    hear(&s);
    assert_true(s.heard == 1 && s.words[0].type == KL_REFUSE);
    assert_non_null(strstr(s.words[0].text, "memory ran out"));
    close_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recall_is_answered_in_mid_task),
        cmocka_unit_test(a_recall_is_answered_between_tasks),
        cmocka_unit_test(who_leaves_ends_its_task_and_gives_back_the_rest),
        cmocka_unit_test(an_idle_worker_leaves_at_once),
        cmocka_unit_test(what_is_ready_does_not_wait_for_a_long_task),
        cmocka_unit_test(a_heartbeat_tells_the_usual_share_of_cpu_time),
        cmocka_unit_test(results_tell_cpu_time_and_what_others_had_of_the_core),
        cmocka_unit_test(a_worker_with_too_much_memory_tells_and_is_replaced),
        cmocka_unit_test(chunks_of_one_task_cost_one_message_each),
        cmocka_unit_test(waiting_between_tasks_is_time_they_take_and_resting_is_not),
        cmocka_unit_test(waiting_for_a_chunk_that_comes_at_the_first_look_is_resting),
        cmocka_unit_test(shared_data_wait_for_the_tasks_before_them),
        cmocka_unit_test(other_shared_data_than_meant_are_refused_by_name),
        cmocka_unit_test(an_orphan_keeps_its_state_and_nothing_else),
        cmocka_unit_test(patience_ends_and_says_whom_it_waited_for),
        cmocka_unit_test(a_closed_farm_wants_no_more_results),
        cmocka_unit_test(who_runs_out_of_memory_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
