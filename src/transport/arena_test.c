/* Test memory that a master shares with its workers: first alone, then in use by the zmq transport. */
#include "transport/arena.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <zmq.h>

#include "base/cases_test_helper.h"
#include "transport/folder_test_helper.h"
#include "transport/transport_suite.h"

#ifdef __SANITIZE_THREAD__
/* Options for ThreadSanitizer, because libzmq is built without it: see transport_zmq_test.c. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "ignore_noninstrumented_modules=1";
}
#endif

enum { LARGE = 100000 };

/* --- resources of this process --- */

static uint64_t shared_bytes(void) {
    char line[128];
    unsigned long long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "re");
    CHECK(status);
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "RssShmem: %llu", &kilobytes) == 1)
            break;
    fclose(status);
    return 1024 * (uint64_t)kilobytes;
}

static unsigned open_files(void) {
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* --- a pair of arenas with both ends in this process --- */

typedef struct ends {
    kl_arenas *all;
    kl_arena *to_worker, *to_master;
} ends;

static ends open_ends(void) {
    ends e = {.all = kl_arenas_open(1)};
    CHECK(e.all);
    e.to_worker = kl_arena_to_worker(e.all, (uint64_t)getpid());
    CHECK(e.to_worker);
    e.to_master = kl_arena_to_master(e.all, kl_arena_pair(e.to_worker));
    CHECK(e.to_master);
    return e;
}

static void close_ends(ends *e) {
    kl_arena_close(e->to_master, true);
    kl_arena_close(e->to_worker, true);
    kl_arenas_close(e->all);
}

static bool put(kl_arena *arena, uint64_t seed, size_t size, kl_arena_place *place) {
    uint8_t *bytes = malloc(size);
    CHECK(bytes);
    suite_fill(bytes, seed, size);
    bool done = kl_arena_put(arena, bytes, size, place);
    free(bytes);
    return done;
}

/* --- messages --- */

typedef struct flying {
    kl_arena_place place;
    kl_message message; /* the received message; zeros: the message was sent but not received yet */
    uint64_t seed;
    size_t size;
} flying;

static void land(flying *one) {
    suite_check_message(&one->message, one->seed, one->size);
    kl_message_release(&one->message);
}

static size_t draw_size(uint64_t draw) {
    static const size_t around[] = {KL_ARENA_LEAST_BYTES, 65536, 1 << 20, 5000000};
    return around[draw % 4] + draw / 4 % 131 - 65;
}

/* Send messages of any size, many at the same time, and release them in any order. Every message must arrive
 * unchanged, and all messages that fit into the arena together must find room. Every third message is made
 * in the lent buffer. */
static void messages_stay_as_they_are_until_they_are_released(void **state) {
    (void)state;
    enum { UNDER_WAY = 20 };
    const uint64_t rounds = kl_test_cases(200, 1000);
    flying under_way[UNDER_WAY] = {0};
    ends e = open_ends();
    for (uint64_t round = 0; round < rounds; round++) {
        flying *one = &under_way[kl_mix64(round) % UNDER_WAY];
        if (one->message.release)
            land(one);
        one->seed = round;
        one->size = draw_size(kl_mix64(round + rounds));
        kl_buffer lent = {0};
        if (round % 3 == 0) {
            kl_arena_lend(e.to_master, one->size, &lent);
            CHECK(lent.borrowed && lent.capacity >= one->size);
            suite_fill(lent.data, round, one->size);
            CHECK(kl_arena_put(e.to_master, lent.data, one->size, &one->place));
        } else {
            CHECK(put(e.to_master, round, one->size, &one->place));
        }
        CHECK(kl_arena_get(e.to_worker, &one->place, &one->message));
        CHECK((uintptr_t)one->message.data % _Alignof(max_align_t) == 0);
        kl_buffer_free(&lent);
    }
    for (unsigned i = 0; i < UNDER_WAY; i++)
        if (under_way[i].message.release)
            land(&under_way[i]);
    close_ends(&e);
}

static void a_full_arena_says_so_and_has_room_again(void **state) {
    (void)state;
    enum { MOST = 5000 };
    static kl_message held[MOST];
    const size_t sizes[] = {KL_ARENA_LEAST_BYTES, 40000000, (size_t)256 << 20};
    ends e = open_ends();
    for (unsigned s = 0; s < 3; s++)
        for (unsigned pass = 0; pass < 2; pass++) {
            unsigned count = 0;
            kl_arena_place place;
            while (count < MOST && put(e.to_worker, count, sizes[s], &place))
                CHECK(kl_arena_get(e.to_master, &place, &held[count++]));
            CHECK(count > 0 && count < MOST);
            kl_buffer lent = {0};
            kl_arena_lend(e.to_worker, sizes[s], &lent);
            CHECK(!lent.data);
            for (unsigned i = 0; i < count; i++) {
                suite_check_message(&held[i], i, sizes[s]);
                kl_message_release(&held[i]);
            }
        }
    kl_arena_place place;
    CHECK(!put(e.to_worker, 0, ((size_t)256 << 20) + 1, &place));
    close_ends(&e);
}

/* A message must use the memory of the previous message if the previous message was released. */
static void pages_are_used_again(void **state) {
    (void)state;
    ends e = open_ends();
    kl_arena_place place, first = {0};
    for (unsigned i = 0; i < 100; i++) {
        kl_message message;
        CHECK(put(e.to_worker, i, 1000000 + i, &place));
        CHECK(kl_arena_get(e.to_master, &place, &message));
        CHECK(i == 0 || place.at == first.at);
        first = place;
        kl_message_release(&message);
    }
    close_ends(&e);
}

static void a_buffer_that_outgrows_what_is_lent_goes_on(void **state) {
    (void)state;
    ends e = open_ends();
    kl_buffer lent = {0};
    kl_arena_lend(e.to_master, LARGE, &lent);
    CHECK(lent.borrowed);
    const uint8_t *where = lent.data;
    size_t size = lent.capacity + 1000;
    uint8_t *bytes = malloc(size);
    CHECK(bytes);
    suite_fill(bytes, 1, size);
    kl_put_bytes(&lent, bytes, 1000);
    kl_put_bytes(&lent, bytes + 1000, size - 1000);
    CHECK(!lent.failed && !lent.borrowed && lent.size == size && memcmp(lent.data, bytes, size) == 0);
    /* the lent buffer has moved out of the arena, so its place in the arena is free again */
    kl_arena_lend(e.to_master, LARGE, &lent);
    CHECK(lent.borrowed && lent.data == where && lent.size == 0);
    kl_buffer_free(&lent);
    free(bytes);
    close_ends(&e);
}

static void places_where_nothing_lies_are_refused(void **state) {
    (void)state;
    ends e = open_ends();
    kl_message message;
    kl_arena_place good, place;
    CHECK(put(e.to_worker, 1, LARGE, &good));
    const kl_arena_place bad[] = {{.at = good.at, .size = LARGE, .slot = good.slot - 1},
                                  {.at = good.at, .size = LARGE, .slot = 1024},
                                  {.at = good.at, .size = LARGE, .slot = UINT32_MAX},
                                  {.at = ((uint64_t)256 << 20) - LARGE + 1, .size = LARGE, .slot = good.slot},
                                  {.at = UINT64_MAX, .size = 2, .slot = good.slot},
                                  {.at = 1, .size = UINT64_MAX, .slot = good.slot},
                                  {.at = UINT64_MAX - 5, .size = LARGE, .slot = good.slot}};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!kl_arena_get(e.to_master, &bad[i], &message));
    for (uint64_t i = 0; i < 100000; i++) {
        place = (kl_arena_place){.at = kl_mix64(3 * i) >> (i % 40),
                                 .size = kl_mix64(3 * i + 1) >> (i % 40),
                                 .slot = (uint32_t)kl_mix64(3 * i + 2)};
        if (place.slot % 1024 == good.slot)
            continue;
        CHECK(!kl_arena_get(e.to_master, &place, &message));
    }
    CHECK(kl_arena_get(e.to_master, &good, &message));
    kl_message_release(&message);
    /* the message was released, so there is no message at its place */
    CHECK(!kl_arena_get(e.to_master, &good, &message));
    CHECK(!kl_arena_to_master(e.all, 1000));
    close_ends(&e);
}

/* --- pairs --- */

static pid_t a_child_that_ended(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(0);
    CHECK(waitpid(child, NULL, 0) == child);
    return child;
}

/* A pair of arenas must go to another worker only when the previous worker has ended and its messages are
 * released. */
static void a_pair_changes_hands_when_nobody_uses_it(void **state) {
    (void)state;
    uint64_t gone = (uint64_t)a_child_that_ended(), here = (uint64_t)getpid();
    for (int ended = 0; ended < 2; ended++)
        for (int dead = 0; dead < 2; dead++)
            for (int held = 0; held < 2; held++) {
                /* the arenas have one pair for the worker and one spare pair */
                kl_arenas *all = kl_arenas_open(1);
                CHECK(all);
                kl_arena *first = kl_arena_to_worker(all, dead ? gone : here);
                kl_arena *second = kl_arena_to_worker(all, here);
                CHECK(first && second && !kl_arena_to_worker(all, here));
                kl_arena *worker = kl_arena_to_master(all, kl_arena_pair(first));
                kl_arena_place place;
                kl_message message;
                CHECK(put(worker, 5, LARGE, &place) && kl_arena_get(first, &place, &message));
                kl_arena_close(first, ended);
                kl_arena_close(worker, true);
                if (!held)
                    kl_message_release(&message);
                kl_arena *next = kl_arena_to_worker(all, here);
                CHECK((next != NULL) == (!held && (ended || dead)));
                if (held) {
                    suite_check_message(&message, 5, LARGE);
                    kl_message_release(&message);
                    CHECK(!next);
                    next = kl_arena_to_worker(all, here);
                    CHECK((next != NULL) == (ended || dead));
                }
                kl_arena_close(next, true);
                kl_arena_close(second, true);
                kl_arenas_close(all);
            }
}

static void nothing_stays_of_those_who_left(void **state) {
    (void)state;
    enum { MEGABYTES = 20 };
    unsigned files = open_files();
    uint64_t before = shared_bytes();
    ends e = open_ends();
    kl_arena_place place;
    kl_message message;
    CHECK(put(e.to_master, 1, MEGABYTES << 20, &place) && kl_arena_get(e.to_worker, &place, &message));
    CHECK(shared_bytes() >= before + (MEGABYTES << 20));
    kl_arena_close(e.to_master, true);
    kl_arena_close(e.to_worker, true);
    suite_check_message(&message, 1, MEGABYTES << 20);
    CHECK(shared_bytes() >= before + (MEGABYTES << 20));
    kl_message_release(&message);
    /* memory is returned to the system although the arenas are still open */
    CHECK(shared_bytes() < before + (1 << 20));
    kl_arenas_close(e.all);
    CHECK(shared_bytes() <= before && open_files() == files);
}

static void memory_behind_what_is_held_is_given_back(void **state) {
    (void)state;
    enum { MEGABYTES = 20, COUNT = 4 };
    ends e = open_ends();
    uint64_t before = shared_bytes();
    kl_arena_place place;
    kl_message messages[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        CHECK(put(e.to_master, i, MEGABYTES << 20, &place) &&
              kl_arena_get(e.to_worker, &place, &messages[i]));
    CHECK(!kl_arena_trim(e.to_master) && shared_bytes() >= before + (uint64_t)(COUNT * MEGABYTES << 20));
    kl_message_release(&messages[0]);
    for (unsigned i = COUNT - 1; i > 0; i--) {
        kl_message_release(&messages[i]);
        CHECK(kl_arena_trim(e.to_master) == (i == 1));
        uint64_t left = i == 1 ? 0 : (uint64_t)(i * MEGABYTES) << 20;
        CHECK(shared_bytes() < before + left + (1 << 20));
        for (unsigned k = 1; k < i; k++)
            suite_check_message(&messages[k], k, MEGABYTES << 20);
    }
    CHECK(put(e.to_master, 9, MEGABYTES << 20, &place) && kl_arena_get(e.to_worker, &place, &messages[0]));
    suite_check_message(&messages[0], 9, MEGABYTES << 20);
    kl_message_release(&messages[0]);
    close_ends(&e);
}

static void a_limited_address_space_is_left_to_the_program(void **state) {
    (void)state;
    struct rlimit before, limited;
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    limited = before;
    limited.rlim_cur = before.rlim_max == RLIM_INFINITY ? RLIM_INFINITY - 1 : before.rlim_max;
    CHECK(setrlimit(RLIMIT_AS, &limited) == 0);
    CHECK(!kl_arenas_open(1));
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    kl_arenas_close(NULL);
}

/* --- arenas under the zmq transport --- */

/* Run the common transport tests with workers that have arenas. One worker has no arenas, because it was not
 * forked from the master. */
static void zmq_keeps_every_promise_with_arenas(void **state) {
    (void)state;
    for (unsigned c = 0; c < SUITE_CASES; c++)
        for (unsigned count = 0; count <= 3; count++) {
            kl_zmq_options forked = {.arenas = kl_arenas_open(count)}, foreign = {0};
            kl_transport *master, *workers[SUITE_PEERS_MAX];
            CHECK(forked.arenas);
            CHECK_OK(kl_zmq_listen(ipc, &forked, NULL, &master, error));
            for (unsigned i = 0; i < count; i++)
                CHECK_OK(kl_zmq_join(ipc, i == 2 ? &foreign : &forked, &workers[i], error));
            suite_run_threads(&suite_cases[c], master, workers, count);
            kl_arenas_close(forked.arenas);
        }
}

/* --- workers that are killed --- */

typedef enum moment { WRITING, WRITTEN, SENT, MOMENTS } moment;

/* Send one message. Then die at the moment `when`: while writing a second message, after writing it, or
 * after sending it. */
static void work_and_die(kl_transport *t, moment when) {
    kl_buffer lent = {0};
    kl_peer master = suite_meet_master(t, 0);
    suite_send(t, master, 7, LARGE);
    suite_expect_message(t, master, 8, 2 * LARGE);
    kl_lend(t, master, LARGE, &lent);
    CHECK(lent.borrowed);
    suite_fill(lent.data, 9, when == WRITING ? LARGE / 2 : LARGE);
    if (when == SENT)
        CHECK_OK(t->ops->send(t, master, lent.data, LARGE, error));
    /* wait for the answer; a worker that is killed now might lose the message in libzmq's own queue */
    if (when == SENT)
        suite_expect_message(t, master, 10, 5);
    raise(SIGKILL);
}

static void expect_killed(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

typedef struct doomed {
    pid_t process;
    int go; /* descriptor of a pipe; a byte written to it lets the worker begin */
} doomed;

/* Fork a worker before the master has threads, as the supervisor does. */
static doomed fork_doomed(const kl_zmq_options *options, moment when) {
    int go[2];
    CHECK(pipe(go) == 0);
    doomed d = {.process = fork(), .go = go[1]};
    CHECK(d.process >= 0);
    if (d.process == 0) {
        kl_transport *t;
        char byte;
        CHECK(read(go[0], &byte, 1) == 1);
        CHECK_OK(kl_zmq_join(ipc, options, &t, error));
        work_and_die(t, when);
    }
    close(go[0]);
    return d;
}

enum { HELD = 3 }; /* greatest number of messages that one worker sends */

/* Let the worker send messages and die. Put the messages that it sent before its death into `held`. */
static void outlive(kl_transport *master, const doomed *d, moment when, kl_message held[HELD]) {
    kl_peer worker;
    CHECK(write(d->go, "g", 1) == 1);
    suite_meet_workers(master, &worker, 1);
    held[0] = suite_next(master).message;
    suite_send(master, worker, 8, 2 * LARGE);
    if (when == SENT) {
        held[1] = suite_next(master).message;
        suite_check_message(&held[1], 9, LARGE);
        suite_send(master, worker, 10, 5);
    }
    suite_expect(master, KL_EVENT_LEFT, worker);
    expect_killed(d->process);
    close(d->go);
}

static void check_and_release(kl_message held[HELD]) {
    suite_check_message(&held[0], 7, LARGE);
    for (int k = 0; k < HELD; k++)
        kl_message_release(&held[k]);
}

/* The messages of a dead worker must stay intact, even when another worker replaces it. Nothing else that
 * the dead worker left may remain. */
static void the_killed_leave_what_they_sent_and_nothing_else(void **state) {
    (void)state;
    enum { ROUNDS = 12 };
    unsigned files = open_files();
    uint64_t before = shared_bytes();
    /* four pairs of arenas, which twelve workers use one after the other */
    kl_zmq_options options = {.arenas = kl_arenas_open(3)};
    kl_message held[ROUNDS][HELD] = {{{0}}};
    kl_transport *master;
    doomed workers[ROUNDS];
    CHECK(options.arenas);
    for (int i = 0; i < ROUNDS; i++)
        workers[i] = fork_doomed(&options, (moment)(i % MOMENTS));
    CHECK_OK(kl_zmq_listen(ipc, &options, NULL, &master, error));
    for (int i = 0; i < ROUNDS; i++) {
        outlive(master, &workers[i], (moment)(i % MOMENTS), held[i]);
        /* release messages two workers later, so that a dead worker's pair stays in use for a while */
        if (i >= 2)
            check_and_release(held[i - 2]);
    }
    kl_transport_close(master);
    for (int i = ROUNDS - 2; i < ROUNDS; i++)
        check_and_release(held[i]);
    kl_arenas_close(options.arenas);
    CHECK(shared_bytes() <= before && open_files() == files);
}

/* --- a worker that sends garbage --- */

static void *say_forked_hello(void *context, uint64_t token) {
    void *socket = zmq_socket(context, ZMQ_DEALER);
    uint8_t hello[24] = "kilter2";
    uint64_t pid = (uint64_t)getpid();
    int at_once = 0;
    zmq_setsockopt(socket, ZMQ_LINGER, &at_once, sizeof at_once);
    CHECK(zmq_connect(socket, ipc) == 0);
    memcpy(hello + 7, &token, 8);
    memcpy(hello + 15, &pid, 8);
    hello[23] = 'h';
    CHECK(zmq_send(socket, hello, sizeof hello, 0) == sizeof hello);
    return socket;
}

static void who_names_a_place_where_nothing_lies_is_dropped(void **state) {
    (void)state;
    kl_zmq_options options = {.arenas = kl_arenas_open(20)};
    kl_transport *master;
    CHECK(options.arenas);
    CHECK_OK(kl_zmq_listen(ipc, &options, NULL, &master, error));
    void *context = zmq_ctx_new();
    for (unsigned i = 0; i < 20; i++) {
        uint8_t answer[64], place[22] = {0};
        bool knows = i % 4 != 3;
        void *socket = say_forked_hello(context, kl_arenas_token(options.arenas) + !knows);
        kl_event event = suite_next(master);
        CHECK(event.kind == KL_EVENT_JOINED);
        /* the answer has 12 bytes if the worker has a pair of arenas, and 8 bytes otherwise */
        CHECK(zmq_recv(socket, answer, sizeof answer, 0) == (knows ? 12 : 8));
        for (unsigned k = 0; k < 20; k++)
            place[k] = (uint8_t)(i < 2 ? 0 : kl_mix64(20 * i + k));
        unsigned size = i % 3 == 0 ? 21 : i % 3 == 1 ? 20 : 22;
        place[size - 1] = 'r';
        CHECK(zmq_send(socket, place, size, 0) == (int)size);
        suite_expect(master, KL_EVENT_LEFT, event.peer);
        CHECK(zmq_recv(socket, answer, sizeof answer, 0) == 1 && answer[0] == 'b');
        zmq_close(socket);
    }
    zmq_ctx_term(context);
    kl_transport_close(master);
    kl_arenas_close(options.arenas);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_stay_as_they_are_until_they_are_released),
        cmocka_unit_test(a_full_arena_says_so_and_has_room_again),
        cmocka_unit_test(pages_are_used_again),
        cmocka_unit_test(a_buffer_that_outgrows_what_is_lent_goes_on),
        cmocka_unit_test(places_where_nothing_lies_are_refused),
        cmocka_unit_test(a_pair_changes_hands_when_nobody_uses_it),
        cmocka_unit_test(nothing_stays_of_those_who_left),
        cmocka_unit_test(memory_behind_what_is_held_is_given_back),
        cmocka_unit_test(a_limited_address_space_is_left_to_the_program),
        cmocka_unit_test(the_killed_leave_what_they_sent_and_nothing_else),
        cmocka_unit_test(zmq_keeps_every_promise_with_arenas),
        cmocka_unit_test(who_names_a_place_where_nothing_lies_is_dropped),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
