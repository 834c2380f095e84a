/* Test whole runs of peers in virtual time. Messages take random times, and peers die at random moments.
 * Every task must count once. In a census, peers report all tasks that they hold. After a death, one census
 * or more must find all lost tasks: no task may be missing when all peers have reported.
 *
 * usage: deaths_test [COUNT SEED]   do only COUNT runs, from this seed on */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cases_test_helper.h"
#include "peer/peer_private.h"

enum { MOST_PEERS = 48, MOST_TASKS = 400, MOST_STEPS = 1000000 };

typedef enum doing { HEARS, LOSES, ENDS, WAKES, DIES, JOINS, IS_CUT } doing;

typedef struct event {
    double at_s;
    uint64_t turn; /* number by which events at the same time are ordered */
    doing what;
    uint32_t who, from;
    bool waited; /* true: the event has waited until the running task has ended */
    uint8_t *data;
    size_t size;
} event;

typedef struct seat {
    kl_node *node; /* NULL: the peer has not joined yet, or is dead */
    bool attends, busy, died;
    double speed, wake_s, ends_s;
    uint64_t task;
    double last_s[MOST_PEERS]; /* last_s[i]: time at which the last message to peer i arrives */
    bool cut[MOST_PEERS];      /* cut[i]: messages to peer i are lost */
} seat;

typedef struct world {
    uint64_t seed, draws, tasks;
    kl_help help;
    /* peers: number of peers at the start; count: number of all peers, with those that join later */
    uint32_t peers, count;
    bool root_rests;
    bool tells; /* true: the driver of the root tells all others of each death */
    /* latency_s: mean time of a message; notice_s: greatest time until others notice a death */
    double latency_s, notice_s, now_s;
    uint32_t kills; /* number of peers that may still be killed */
    uint64_t odds;  /* one message in `odds` kills its sender; 0: no message does */
    seat seats[MOST_PEERS];
    event *events;
    size_t event_count;
    uint64_t event_room, turns;
    kl_node_actions out;
    uint8_t counted[MOST_TASKS], valued[MOST_TASKS];
    bool over;
    bool empty; /* true: no peer is left that could do tasks, so the run cannot end */
} world;

static uint64_t draw(world *w, uint64_t below) {
    return kl_mix64(w->seed * 1000003 + ++w->draws) % below;
}

static double part(world *w) { /* Return a random number from 0 up to, but not including, 1. */
    return (double)draw(w, 1 << 20) / (1 << 20);
}

/* Return a random number between 10^low and 10^high. */
static double size_between(world *w, double low, double high) {
    return pow(10, low + (high - low) * part(w));
}

/* --- events --- */

static void will(world *w, event one) {
    w->events = kl_array_grow(w->events, &w->event_room, w->event_count + 1, sizeof one);
    assert_non_null(w->events);
    one.turn = w->turns++;
    w->events[w->event_count++] = one;
}

static event take_out(world *w, size_t i) {
    event one = w->events[i];
    w->events[i] = w->events[--w->event_count];
    return one;
}

static event next_event(world *w) {
    size_t first = 0;
    for (size_t i = 1; i < w->event_count; i++) {
        const event *a = &w->events[i], *b = &w->events[first];
        if (a->at_s < b->at_s || (a->at_s == b->at_s && a->turn < b->turn))
            first = i;
    }
    return take_out(w, first);
}

/* Return the seconds that a message takes. One message of ten takes much longer than the others. */
static double way_s(world *w) {
    double way = -w->latency_s * log(1 - 0.999 * part(w));
    return draw(w, 10) == 0 ? 10 * way : way;
}

/* Return the time at which a message arrives: after all earlier messages between the same two peers. */
static double arrival_s(world *w, uint32_t from, uint32_t to, double way) {
    double *last_s = &w->seats[from].last_s[to];
    *last_s = fmax(*last_s, w->now_s + way);
    return *last_s;
}

static uint8_t *copy_of(const void *data, size_t size) {
    uint8_t *copy = malloc(size + 1);
    assert_non_null(copy);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

/* Let peer `to` notice that peer `gone` is gone. */
static void notice(world *w, uint32_t gone, uint32_t to) {
    double at_s = arrival_s(w, gone, to, w->notice_s * part(w));
    will(w, (event){.at_s = at_s, .what = LOSES, .who = to, .from = gone});
}

/* --- deaths --- */

/* Return the index of the last event in which a message of peer `from` reaches peer `to`; SIZE_MAX: there is
 * none. */
static size_t last_between(const world *w, uint32_t from, uint32_t to) {
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < w->event_count; i++) {
        const event *e = &w->events[i];
        if (e->what == HEARS && e->from == from && e->who == to &&
            (last == SIZE_MAX || e->turn > w->events[last].turn))
            last = i;
    }
    return last;
}

/* Lose some of the last messages on the way from one peer to another, or none. */
static void lose_some(world *w, uint32_t from, uint32_t to) {
    size_t last;
    if (draw(w, 2))
        return;
    while (draw(w, 4) > 0 && (last = last_between(w, from, to)) != SIZE_MAX)
        free(take_out(w, last).data);
}

/* Return the number of peers that do tasks and have been there since the start. */
static uint32_t workers(const world *w) {
    uint32_t count = 0;
    for (uint32_t i = w->root_rests; i < w->peers; i++)
        count += w->seats[i].node != NULL;
    return count;
}

/* End a peer. The root always notices this, but only some of the other peers do. */
static void leave(world *w, uint32_t i) {
    kl_node_free(w->seats[i].node);
    w->seats[i].node = NULL;
    w->seats[i].died = true;
    for (uint32_t to = 0; to < w->count; to++) {
        lose_some(w, i, to);
        if (to != i && (to == 0 || draw(w, 2)))
            notice(w, i, to);
    }
    w->empty = workers(w) == 0;
}

static void die(world *w, uint32_t i) {
    if (!w->seats[i].node || w->kills == 0 || workers(w) < 2)
        return;
    w->kills--;
    leave(w, i);
}

/* Cut the connection between two random peers, which both stay alive. Each of them counts the other as
 * dead. */
static void cut(world *w) {
    uint32_t a = 1 + (uint32_t)draw(w, w->peers - 1), b = 1 + (uint32_t)draw(w, w->peers - 1);
    for (int side = 0; side < 2 && a != b; side++) {
        uint32_t from = side ? a : b, to = side ? b : a;
        lose_some(w, from, to);
        notice(w, from, to);
        w->seats[from].cut[to] = true;
    }
}

/* Remove every living peer that the root counts as dead from the run. In a real run, the root's driver would
 * tell the peer to leave. */
static void send_out_gone(world *w) {
    for (uint32_t i = 1; i < w->count && !w->over; i++)
        if (w->seats[i].node && kl_node_counts_gone(w->seats[0].node, i))
            leave(w, i);
}

/* --- steps --- */

/* Count the tasks that the root reports. The result of a task is its index. */
static void count(world *w, const kl_node_action *a) {
    if (a->task == 0)
        return;
    const uint8_t *value = w->out.bytes.data + a->at;
    assert_int_equal(a->size, a->task * sizeof(uint64_t));
    for (uint64_t i = 0, task; i < a->task; i++) {
        memcpy(&task, value + i * sizeof task, sizeof task);
        assert_true(task < w->tasks);
        w->valued[task]++;
    }
    for (size_t i = 0; i < a->spans; i++) {
        kl_span span;
        memcpy(&span, value + a->size + i * sizeof span, sizeof span);
        for (uint64_t task = span.lo; task < span.hi; task++)
            w->counted[task]++;
    }
}

static void begin(world *w, uint32_t i, uint64_t task) {
    seat *s = &w->seats[i];
    double task_s = 0.5 + (double)(kl_mix64(task) % 1000) / 1000;
    s->busy = true;
    s->task = task;
    s->ends_s = w->now_s + task_s / s->speed;
    will(w, (event){.at_s = s->ends_s, .what = ENDS, .who = i});
}

static void send(world *w, uint32_t i, const kl_node_action *a) {
    if (w->odds > 0 && i > 0 && draw(w, w->odds) == 0)
        die(w, i);
    if (!w->seats[i].node || w->seats[i].cut[a->peer])
        return;
    will(w, (event){.at_s = arrival_s(w, i, a->peer, a->peer == i ? 0 : way_s(w)),
                    .what = HEARS,
                    .who = a->peer,
                    .from = i,
                    .data = copy_of(w->out.bytes.data + a->at, a->size),
                    .size = a->size});
}

static void act(world *w, uint32_t i) {
    for (size_t k = 0; k < w->out.count && w->seats[i].node; k++) {
        const kl_node_action *a = &w->out.items[k];
        if (a->kind == KL_NODE_SEND)
            send(w, i, a);
        else if (a->kind == KL_NODE_BEGIN)
            begin(w, i, a->task);
        else if (a->kind == KL_NODE_COUNTS)
            count(w, a);
        else if (i == 0)
            w->over = true;
    }
}

/* Let a peer handle an event. In this test, the root waits for late tasks without a limit, so it never calls
 * a census for late tasks. */
static void step(world *w, uint32_t i, const kl_node_event *e) {
    seat *s = &w->seats[i];
    kl_node_step(s->node, e, w->now_s, &w->out);
    assert_false(w->out.failed || w->out.malformed);
    if (i == 0)
        s->node->root->patient_s = INFINITY;
    if (w->out.wake_s < INFINITY && w->out.wake_s != s->wake_s)
        will(w, (event){.at_s = fmax(w->out.wake_s, w->now_s), .what = WAKES, .who = i});
    s->wake_s = w->out.wake_s;
    act(w, i);
    send_out_gone(w);
}

static kl_span share_of(const world *w, uint32_t i) {
    uint64_t sharers = w->peers - w->root_rests, place = i - w->root_rests;
    if (i >= w->peers || (i == 0 && w->root_rests))
        return (kl_span){0};
    return (kl_span){w->tasks * place / sharers, w->tasks * (place + 1) / sharers};
}

static void join(world *w, uint32_t i) {
    kl_node_options options = {.number = i,
                               .peers = w->peers,
                               .tasks = w->tasks,
                               .share = share_of(w, i),
                               .root_rests = w->root_rests,
                               .help = &w->help,
                               .attends = w->seats[i].attends,
                               .seed = w->seed};
    if (w->seats[i].died)
        return;
    w->seats[i].node = kl_node_new(&options);
    assert_non_null(w->seats[i].node);
    step(w, i, &(kl_node_event){.kind = KL_NODE_STARTS});
}

static void tell_others(world *w, uint32_t gone) {
    for (uint32_t to = 1; to < w->count && w->tells; to++)
        if (w->seats[to].node)
            will(w, (event){.at_s = arrival_s(w, 0, to, way_s(w)), .what = LOSES, .who = to, .from = gone});
}

/* A peer that does not attend to messages during a task handles them after the task. */
static void hear(world *w, const event *e) {
    const seat *s = &w->seats[e->who];
    event later = *e;
    if (s->busy && !s->attends && !e->waited && e->from != e->who) {
        later.at_s = s->ends_s;
        later.waited = true;
        later.data = copy_of(e->data, e->size);
        will(w, later);
        return;
    }
    if (e->what == LOSES && e->who == 0)
        tell_others(w, e->from);
    step(w, e->who,
         &(kl_node_event){.kind = e->what == LOSES ? KL_NODE_LOSES : KL_NODE_HEARS,
                          .peer = e->from,
                          .data = e->data,
                          .size = e->size});
}

static void end(world *w, uint32_t i) {
    seat *s = &w->seats[i];
    s->busy = false;
    step(w, i, &(kl_node_event){.kind = KL_NODE_ENDED, .data = &s->task, .size = sizeof s->task});
}

static void wake(world *w, uint32_t i) {
    if (w->seats[i].wake_s > w->now_s)
        return;
    w->seats[i].wake_s = INFINITY;
    step(w, i, &(kl_node_event){.kind = KL_NODE_REACHED});
}

static void happens(world *w, const event *e) {
    bool there = w->seats[e->who].node != NULL;
    if (e->what == JOINS)
        join(w, e->who);
    else if (e->what == DIES)
        die(w, e->who);
    else if (e->what == IS_CUT)
        cut(w);
    else if (!there && e->what == HEARS && w->seats[e->from].node)
        notice(w, e->who, e->from); /* the sender of a message notices that the receiver is gone */
    else if (there && (e->what == HEARS || e->what == LOSES))
        hear(w, e);
    else if (there && e->what == ENDS)
        end(w, e->who);
    else if (there && e->what == WAKES)
        wake(w, e->who);
}

/* --- runs --- */

static void make_peers(world *w) {
    w->root_rests = draw(w, 4) > 0;
    w->peers = draw(w, 8) > 0 ? 2 + w->root_rests + (uint32_t)draw(w, 7) : 13 + (uint32_t)draw(w, 27);
    w->count = w->peers + (draw(w, 3) > 0 ? 0 : (uint32_t)draw(w, 3));
    w->tasks = 1 + draw(w, MOST_TASKS);
    for (uint32_t i = 0; i < w->count; i++) {
        w->seats[i].speed = size_between(w, -1, 1);
        w->seats[i].attends = draw(w, 3) > 0;
        w->seats[i].wake_s = INFINITY;
    }
}

static void plan_events(world *w) {
    double span_s = 1.5 * (double)w->tasks / w->peers, joins_s = 0;
    w->kills = 1 + (uint32_t)draw(w, 3);
    w->odds = draw(w, 2) ? 0 : 1 + draw(w, 100);
    for (uint32_t i = w->peers; i < w->count; i++)
        will(w, (event){.at_s = joins_s += span_s * part(w), .what = JOINS, .who = i});
    for (uint32_t k = 0; k < w->kills && w->odds == 0; k++)
        will(w, (event){.at_s = span_s * part(w), .what = DIES, .who = 1 + (uint32_t)draw(w, w->count - 1)});
    if (draw(w, 8) == 0)
        will(w, (event){.at_s = span_s * part(w), .what = IS_CUT});
}

static void make_world(world *w, uint64_t seed) {
    size_t policies = 0;
    while (kl_help_at(policies))
        policies++;
    *w = (world){.seed = seed};
    w->help = *kl_help_at(draw(w, policies));
    w->help.copies = draw(w, 2);
    w->tells = draw(w, 2);
    w->latency_s = size_between(w, -3, 1);
    w->notice_s = size_between(w, -3, 2);
    make_peers(w);
    plan_events(w);
}

static void close_world(world *w) {
    for (uint32_t i = 0; i < w->count; i++)
        kl_node_free(w->seats[i].node);
    for (size_t i = 0; i < w->event_count; i++)
        free(w->events[i].data);
    free(w->events);
    kl_node_actions_free(&w->out);
}

static void do_run(world *w) {
    for (uint32_t i = 0; i < w->peers; i++)
        join(w, i);
    for (uint64_t steps = 0; !w->over && !w->empty; steps++) {
        if (w->event_count == 0 || steps == MOST_STEPS)
            fail_msg("seed %d: the run waits for ever", (int)w->seed);
        event one = next_event(w);
        w->now_s = one.at_s;
        happens(w, &one);
        free(one.data);
    }
}

static void every_task_counts_once(uint64_t seed) {
    static world w;
    make_world(&w, seed);
    do_run(&w);
    for (uint64_t i = 0; i < w.tasks && !w.empty; i++)
        if (w.counted[i] != 1 || w.valued[i] != 1)
            fail_msg("seed %d: task %d is counted %d times", (int)seed, (int)i, w.counted[i]);
    close_world(&w);
}

static uint64_t first_seed, runs;

/* Repeat two runs that failed in earlier versions, because few other runs show the same faults. In one run,
 * only the giver of a gift knew that the receiver was dead. In the other, the report of a death was lost,
 * because the parent that got it died. */
static void mended_runs_stay_right(void **state) {
    (void)state;
    static const uint64_t seeds[] = {101752, 3134340};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        every_task_counts_once(seeds[i]);
}

static void deaths_lose_nothing(void **state) {
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + runs; seed++)
        every_task_counts_once(seed);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(mended_runs_stay_right),
                                       cmocka_unit_test(deaths_lose_nothing)};
    runs = argc > 1 ? strtoull(argv[1], NULL, 10) : kl_test_cases(2000, 20000);
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
