#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <zmq.h>

#include "transport/folder_test_helper.h"
#include "transport/transport.h"
#include "transport/transport_suite.h"

#define ANY_TCP "tcp://127.0.0.1:*"

#ifdef __SANITIZE_THREAD__
/* Options for ThreadSanitizer. libzmq is built without it, so ThreadSanitizer cannot see that libzmq's
 * mailboxes order the actions of threads. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "ignore_noninstrumented_modules=1";
}
#endif

static kl_key farm_key;
static const kl_zmq_options keyed = {.key = &farm_key};

static int make_folder_and_key(void **state) {
    return kl_key_make(&farm_key, NULL) == KILTER_OK ? make_folder(state) : -1;
}

/* Remove the socket file that some tests leave behind, then the test's folder. */
static int remove_all(void **state) {
    unlink(ipc + strlen("ipc://"));
    return remove_folder(state);
}

/* --- the tests that all transports share --- */

/* On a busy machine, workers may need more than 10 s to connect to each other. */
static void run_case(const suite_case *its_case, const char *endpoint, unsigned count) {
    char *bound;
    kl_transport *master, *workers[SUITE_PEERS_MAX];
    const kl_zmq_options patient = {.key = &farm_key, .lost_after_s = SUITE_LONG_S};
    CHECK_OK(kl_zmq_listen(endpoint, &patient, &bound, &master, error));
    for (unsigned i = 0; i < count; i++)
        CHECK_OK(kl_zmq_join(bound, &patient, &workers[i], error));
    free(bound);
    suite_run_threads(its_case, master, workers, count);
}

static void ipc_keeps_every_promise(void **state) {
    (void)state;
    for (unsigned c = 0; c < SUITE_CASES; c++)
        for (unsigned count = 0; count <= 3; count++)
            run_case(&suite_cases[c], ipc, count);
}

static void tcp_keeps_every_promise(void **state) {
    (void)state;
    for (unsigned c = 0; c < SUITE_CASES; c++)
        for (unsigned count = 0; count <= 3; count++)
            run_case(&suite_cases[c], ANY_TCP, count);
}

static void many_workers_get_them_too(void **state) {
    (void)state;
    for (unsigned c = 3; c < SUITE_CASES; c++)
        run_case(&suite_cases[c], c % 2 ? ipc : ANY_TCP, 16);
}

/* --- tests with one master and one worker --- */

typedef struct pair {
    kl_transport *master, *worker;
    kl_peer worker_name, master_name;
    char *bound;
} pair;

static kl_transport *join(const char *endpoint, const kl_zmq_options *options, kl_transport *master,
                          kl_peer *worker_name, kl_peer *master_name) {
    kl_transport *worker;
    CHECK_OK(kl_zmq_join(endpoint, options, &worker, error));
    /* suite_next() calls poll(), which also answers the worker's HELLO */
    kl_event event = suite_next(master);
    CHECK(event.kind == KL_EVENT_JOINED);
    *worker_name = event.peer;
    event = suite_next(worker);
    CHECK(event.kind == KL_EVENT_JOINED);
    *master_name = event.peer;
    return worker;
}

static pair make_pair(const char *endpoint) {
    pair p = {0};
    CHECK_OK(kl_zmq_listen(endpoint, &keyed, &p.bound, &p.master, error));
    p.worker = join(p.bound, &keyed, p.master, &p.worker_name, &p.master_name);
    return p;
}

/* First let the master drop the worker, and then close both endpoints. Without the drop, the close of one
 * endpoint would wait for the BYE of the other endpoint, which this thread closes only afterwards. */
static void close_pair(pair *p) {
    free(p->bound);
    kl_drop(p->master, p->worker_name);
    suite_expect(p->worker, KL_EVENT_LEFT, p->master_name);
    kl_transport_close(p->worker);
    kl_transport_close(p->master);
}

static void throw_away(kl_event event) {
    kl_message_release(&event.message);
}

static void expect_echo(pair *p, uint64_t seed) {
    suite_send(p->worker, p->master_name, seed, 100);
    suite_expect_message(p->master, p->worker_name, seed, 100);
    suite_send(p->master, p->worker_name, seed + 1, 200);
    suite_expect_message(p->worker, p->master_name, seed + 1, 200);
}

static void a_message_outlives_its_endpoint(void **state) {
    (void)state;
    pair p = make_pair(ipc);
    kl_event events[2];
    suite_send(p.worker, p.master_name, 5, 3);
    suite_send(p.worker, p.master_name, 6, 100000);
    for (int i = 0; i < 2; i++)
        events[i] = suite_next(p.master);
    close_pair(&p);
    suite_check_message(&events[0].message, 5, 3);
    suite_check_message(&events[1].message, 6, 100000);
    for (int i = 0; i < 2; i++)
        kl_message_release(&events[i].message);
}

static void a_message_too_large_is_refused(void **state) {
    (void)state;
    pair p = make_pair(ipc);
    kilter_error error = {0};
    assert_int_equal(p.worker->ops->send(p.worker, p.master_name, "", (size_t)1 << 30, &error),
                     KILTER_ERR_RANGE);
    assert_int_equal(p.master->ops->send(p.master, p.worker_name, "", SIZE_MAX, &error), KILTER_ERR_RANGE);
    expect_echo(&p, 1);
    close_pair(&p);
}

static void a_worker_may_come_before_its_master(void **state) {
    (void)state;
    pair p = {0};
    kl_event event;
    CHECK_OK(kl_zmq_join(ipc, &keyed, &p.worker, error));
    /* poll for a time in which some attempts to connect fail */
    CHECK_OK(kl_poll(p.worker, 0.05, &event, error));
    CHECK(event.kind == KL_EVENT_NONE);
    CHECK_OK(kl_zmq_listen(ipc, &keyed, &p.bound, &p.master, error));
    p.worker_name = 0;
    while (!p.worker_name || !p.master_name) {
        CHECK_OK(kl_poll(p.worker, 0.001, &event, error));
        if (event.kind == KL_EVENT_JOINED)
            p.master_name = event.peer;
        CHECK_OK(kl_poll(p.master, 0.001, &event, error));
        if (event.kind == KL_EVENT_JOINED)
            p.worker_name = event.peer;
    }
    expect_echo(&p, 3);
    close_pair(&p);
}

static void a_worker_without_a_master_can_be_closed(void **state) {
    (void)state;
    kl_transport *worker;
    kl_event event;
    for (int polls = 0; polls < 2; polls++) {
        CHECK_OK(kl_zmq_join(polls ? "tcp://127.0.0.1:1" : ipc, &keyed, &worker, error));
        for (int i = 0; i < polls; i++)
            CHECK_OK(kl_poll(worker, 0.03, &event, error));
        suite_expect_gone(worker, 1);
        kl_transport_wake(worker);
        kl_transport_close(worker);
    }
}

/* Close a worker while messages and a BYE are on their way to it. The worker must discard the messages and
 * end when BYE comes. The test would take an hour if the worker waited until the master counts as lost. */
static void what_comes_late_stops_no_closing(void **state) {
    (void)state;
    const kl_zmq_options patient = {.lost_after_s = 3600, .key = &farm_key};
    for (int round = 0; round < 50; round++) {
        pair p = {0};
        CHECK_OK(kl_zmq_listen(ipc, &patient, &p.bound, &p.master, error));
        p.worker = join(p.bound, &patient, p.master, &p.worker_name, &p.master_name);
        for (uint64_t i = 0; i < 3; i++)
            suite_send(p.master, p.worker_name, i, 100);
        kl_drop(p.master, p.worker_name);
        kl_transport_close(p.worker);
        kl_transport_close(p.master);
        free(p.bound);
    }
}

/* --- raw sockets instead of libzmq's --- */

static int dial_raw(const char *bound) {
    bool is_ipc = strncmp(bound, "ipc://", 6) == 0;
    struct sockaddr_un file = {.sun_family = AF_UNIX};
    struct sockaddr_in port = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)atoi(strrchr(bound, ':') + 1)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    snprintf(file.sun_path, sizeof file.sun_path, "%s", bound + 6);
    int fd = socket(is_ipc ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK((is_ipc ? connect(fd, (struct sockaddr *)&file, sizeof file)
                  : connect(fd, (struct sockaddr *)&port, sizeof port)) == 0);
    return fd;
}

/* Connect, send the bytes, and close. until_hung_up: before closing, wait until the other side disconnects.
 */
static void shout(const char *bound, const void *bytes, size_t size, bool until_hung_up) {
    int fd = dial_raw(bound);
    (void)!send(fd, bytes, size, MSG_NOSIGNAL);
    char answer[256];
    while (until_hung_up && recv(fd, answer, sizeof answer, 0) > 0)
        ;
    close(fd);
}

/* Write the bytes that libzmq's NULL mechanism expects before the first frame: the greeting, then the
 * command READY of a DEALER. */
static size_t put_handshake(uint8_t *to) {
    static const uint8_t greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const uint8_t ready[] = {4,   26,  5,   'R', 'E', 'A', 'D', 'Y', 11, 'S', 'o', 'c', 'k', 'e', 't',
                                    '-', 'T', 'y', 'p', 'e', 0,   0,   0,   6,  'D', 'E', 'A', 'L', 'E', 'R'};
    memcpy(to, greeting, sizeof greeting);
    memcpy(to + sizeof greeting, ready, sizeof ready);
    to[65] = sizeof ready - 2;
    return sizeof greeting + sizeof ready;
}

/* Do libzmq's handshake and send HELLO. First wait for the other side's READY, because libzmq accepts
 * nothing else before it. */
static int greet_raw(const char *bound) {
    static const uint8_t greeting[] = {0, 8, 'k', 'i', 'l', 't', 'e', 'r', '2', 'h'};
    uint8_t bytes[400], answer[400];
    int fd = dial_raw(bound);
    CHECK(send(fd, bytes, put_handshake(bytes), MSG_NOSIGNAL) > 0);
    for (size_t heard = 0; heard < 66 || heard < 66u + answer[65];) {
        ssize_t more = recv(fd, answer + heard, sizeof answer - heard, 0);
        CHECK(more > 0);
        heard += (size_t)more;
    }
    CHECK(send(fd, greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting);
    return fd;
}

/* --- heartbeats --- */

/* Join the master, and keep sending to it for 0.3 s without ever reading. */
static void *talk_deafly(void *endpoint) {
    const uint8_t word[] = {0, 2, 'x', 'd'};
    int fd = greet_raw(endpoint);
    for (double until_s = kl_monotonic_s() + 0.3; kl_monotonic_s() < until_s; kl_nap_s(0.001))
        (void)!send(fd, word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
    return NULL;
}

/* Close a master with unsent messages while its peer sends and then leaves. If the libzmq socket lingered, it
 * would abort the process at its next heartbeat. */
static void heartbeats_stop_no_closing(void **state) {
    (void)state;
    kl_transport *master;
    pthread_t thread;
    CHECK_OK(
        kl_zmq_listen(ipc, &(kl_zmq_options){.lost_after_s = 0.5, .key = &farm_key}, NULL, &master, error));
    CHECK(pthread_create(&thread, NULL, talk_deafly, ipc) == 0);
    kl_event event = suite_next(master);
    CHECK(event.kind == KL_EVENT_JOINED);
    suite_send(master, event.peer, 1, 8 << 20);
    kl_transport_close(master);
    pthread_join(thread, NULL);
}

/* --- death --- */

/* Fork a child that runs `body`, which must not return. */
static pid_t start(void (*body)(const char *endpoint), const char *endpoint) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body(endpoint);
        _exit(1);
    }
    return child;
}

static void kill_and_reap(pid_t child) {
    int status;
    CHECK(kill(child, SIGKILL) == 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
}

static void work_idly(const char *endpoint) {
    kl_transport *t;
    CHECK_OK(kl_zmq_join(endpoint, &keyed, &t, error));
    kl_peer master = suite_meet_master(t, 0);
    for (unsigned i = 0; i < SUITE_LAST_WORDS; i++)
        suite_send(t, master, i, suite_last_word_size(i));
    for (;;)
        throw_away(suite_next(t));
}

static void flood(const char *endpoint) {
    kl_transport *t;
    CHECK_OK(kl_zmq_join(endpoint, &keyed, &t, error));
    kl_peer master = suite_meet_master(t, 0);
    for (uint64_t i = 0;; i++) {
        kl_event event;
        suite_send(t, master, i, i % 2000);
        /* receive from time to time, because unread messages would fill the memory */
        CHECK_OK(kl_poll(t, i % 64 ? 0 : 0.0005, &event, error));
        kl_message_release(&event.message);
    }
}

/* Choose a free port, so that a child can know the endpoint before the master listens. The port is below
 * those that the system assigns, so no other program gets it in the meantime. */
static void find_endpoint(char *endpoint, size_t size) {
    kl_transport *t = NULL;
    for (uint64_t draw = (uint64_t)getpid() << 32; !t; draw++) {
        snprintf(endpoint, size, "tcp://127.0.0.1:%d", 10000 + (int)(kl_mix64(draw) % 20000));
        (void)kl_zmq_listen(endpoint, &keyed, NULL, &t, NULL);
    }
    kl_transport_close(t);
}

static void expect_death_after_words(const char *endpoint) {
    kl_transport *master;
    kl_peer worker;
    pid_t child = start(work_idly, endpoint);
    CHECK_OK(kl_zmq_listen(endpoint, &keyed, NULL, &master, error));
    suite_meet_workers(master, &worker, 1);
    for (unsigned i = 0; i < SUITE_LAST_WORDS; i++)
        suite_expect_message(master, worker, i, suite_last_word_size(i));
    kill_and_reap(child);
    suite_expect(master, KL_EVENT_LEFT, worker);
    suite_expect_gone(master, worker);
    suite_expect_silence(master);
    kl_transport_close(master);
}

static void expect_death_in_a_flood(const char *endpoint) {
    kl_transport *master;
    kl_peer worker;
    pid_t child = start(flood, endpoint);
    CHECK_OK(kl_zmq_listen(endpoint, &keyed, NULL, &master, error));
    suite_meet_workers(master, &worker, 1);
    kl_event event;
    uint64_t received = 0;
    for (; (event = suite_next(master)).kind == KL_EVENT_MESSAGE; received++) {
        suite_check_message(&event.message, received, received % 2000);
        kl_message_release(&event.message);
        if (received == 300)
            kill_and_reap(child);
        /* this message goes to the killed worker */
        (void)master->ops->send(master, worker, "and back", 8, NULL);
    }
    CHECK(received > 300);
    CHECK(event.kind == KL_EVENT_LEFT && event.peer == worker);
    suite_expect_gone(master, worker);
    suite_expect_silence(master);
    kl_transport_close(master);
}

static void a_killed_worker_has_left(void **state) {
    (void)state;
    char tcp[64];
    find_endpoint(tcp, sizeof tcp);
    expect_death_after_words(ipc);
    expect_death_after_words(tcp);
    for (int i = 0; i < 5; i++) {
        expect_death_in_a_flood(ipc);
        expect_death_in_a_flood(tcp);
    }
}

static void be_master(const char *endpoint) {
    kl_transport *t;
    kl_peer worker;
    CHECK_OK(kl_zmq_listen(endpoint, &keyed, NULL, &t, error));
    suite_meet_workers(t, &worker, 1);
    suite_send(t, worker, 8, 100000);
    for (;;)
        throw_away(suite_next(t));
}

/* Join a master that is then killed, while another master starts at the same endpoint. This worker must get
 * LEFT, and nothing from the new master. The new master's socket file replaces the old one. */
static void expect_orphan(const char *endpoint) {
    pair p = {0};
    kl_transport *orphan;
    pid_t child = start(be_master, endpoint);
    CHECK_OK(kl_zmq_join(endpoint, &keyed, &orphan, error));
    kl_peer master = suite_meet_master(orphan, 0);
    suite_expect_message(orphan, master, 8, 100000);
    kill_and_reap(child);
    /* the worker may not know yet that the master is dead; then the send succeeds and the message is lost */
    suite_send(orphan, master, 1, 1000000);
    suite_expect(orphan, KL_EVENT_LEFT, master);
    suite_expect_gone(orphan, master);
    suite_expect_silence(orphan);
    p = make_pair(endpoint);
    expect_echo(&p, 7);
    suite_expect_silence(orphan);
    suite_expect_silence(p.master);
    kl_transport_close(orphan);
    close_pair(&p);
}

static void an_orphan_hears_nothing_more(void **state) {
    (void)state;
    char tcp[64];
    find_endpoint(tcp, sizeof tcp);
    expect_orphan(ipc);
    expect_orphan(tcp);
}

/* Kill a master and start another at the same endpoint at once. Messages that the worker sends to the old
 * master must not reach the new one. */
static void a_restarted_master_does_not_inherit(void **state) {
    (void)state;
    pid_t child = start(be_master, ipc);
    kl_transport *orphan, *master;
    CHECK_OK(kl_zmq_join(ipc, &keyed, &orphan, error));
    kl_peer old = suite_meet_master(orphan, 0);
    suite_expect_message(orphan, old, 8, 100000);
    kill_and_reap(child);
    CHECK_OK(kl_zmq_listen(ipc, &keyed, NULL, &master, error));
    for (int i = 0; i < 100; i++)
        (void)orphan->ops->send(orphan, old, "stale", 5, NULL);
    suite_expect_silence(master);
    suite_expect(orphan, KL_EVENT_LEFT, old);
    kl_transport_close(orphan);
    suite_expect_silence(master);
    kl_transport_close(master);
}

/* --- strangers --- */

static void strangers_on_raw_sockets_change_nothing(void **state) {
    (void)state;
    pair p = make_pair(ipc);
    uint8_t bytes[400];
    shout(p.bound, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35, false);
    expect_echo(&p, 1);
    for (uint64_t seed = 0; seed < 50; seed++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)kl_mix64(seed * 1000 + i);
        shout(p.bound, bytes, sizeof bytes, false);
    }
    expect_echo(&p, 2);
    size_t size = put_handshake(bytes); /* after the handshake, send the header of a frame of 2 GiB */
    const uint8_t too_long[] = {2, 0, 0, 0, 0, 0x80, 0, 0, 0, 'x', 'y'};
    memcpy(bytes + size, too_long, sizeof too_long);
    shout(p.bound, bytes, size + sizeof too_long, true);
    expect_echo(&p, 3);
    suite_expect_silence(p.master);
    suite_expect_silence(p.worker);
    close_pair(&p);
}

typedef struct stranger {
    void *context, *socket;
} stranger;

static stranger make_stranger(const char *bound, int type, const char *identity, const kl_key *key) {
    stranger s = {.context = zmq_ctx_new()};
    s.socket = zmq_socket(s.context, type);
    if (key) {
        zmq_setsockopt(s.socket, ZMQ_CURVE_SERVERKEY, key->server_public, KL_KEY_CHARS + 1);
        zmq_setsockopt(s.socket, ZMQ_CURVE_PUBLICKEY, key->worker_public, KL_KEY_CHARS + 1);
        zmq_setsockopt(s.socket, ZMQ_CURVE_SECRETKEY, key->worker_secret, KL_KEY_CHARS + 1);
    }
    if (identity)
        zmq_setsockopt(s.socket, ZMQ_ROUTING_ID, identity, strlen(identity));
    CHECK(zmq_connect(s.socket, bound) == 0);
    return s;
}

static void free_stranger(stranger *s, int linger_ms) {
    zmq_setsockopt(s->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_close(s->socket);
    zmq_ctx_term(s->context);
}

static void say_parts(stranger *s, int count, const char *const *parts) {
    for (int i = 0; i < count; i++)
        CHECK(zmq_send(s->socket, parts[i], strlen(parts[i]), i + 1 < count ? ZMQ_SNDMORE : 0) >= 0);
}

static void strangers_on_libzmq_change_nothing(void **state) {
    (void)state;
    pair p = make_pair(ipc);
    const char *const garbage[][3] = {{"", "", ""},
                                      {"nonsense", "kilter2h", "b"},
                                      {"kilter0h", "kilter2h", "d"}, /* HELLO of another protocol version */
                                      {"d", "b", "kilter2w"}};
    for (unsigned g = 0; g < 4; g++)
        for (int count = 1; count <= 3; count++)
            for (int named = 0; named < 2; named++) {
                stranger s = make_stranger(p.bound, ZMQ_DEALER, named ? "me" : NULL, NULL);
                if (!(count > 1 && strcmp(garbage[g][0], "") == 0 && !named))
                    say_parts(&s, count, garbage[g]);
                say_parts(&s, 1, garbage[g]);
                say_parts(&s, 1, garbage[g] + 2);
                expect_echo(&p, g);
                free_stranger(&s, 200);
                expect_echo(&p, g + 10);
            }
    stranger request = make_stranger(p.bound, ZMQ_REQ, NULL, NULL);
    say_parts(&request, 1, (const char *const[]){"kilter2h"});
    expect_echo(&p, 20);
    free_stranger(&request, 200);
    suite_expect_silence(p.master);
    close_pair(&p);
}

/* Send HELLO, a valid message, then garbage. The master must report LEFT, answer BYE, and ignore what
 * follows. */
static void expect_raves_dropped(const char *endpoint, const kl_key *key) {
    pair p = make_pair(endpoint);
    const char *const raves[][2] = {
        {"", NULL}, {"kilter2h", NULL}, {"unknown kind?", NULL}, {"two partsd", "d"}};
    for (int rave = 0; rave < 4; rave++) {
        stranger s = make_stranger(p.bound, ZMQ_DEALER, NULL, key);
        say_parts(&s, 1, (const char *const[]){"kilter2h"});
        kl_event event = suite_next(p.master);
        CHECK(event.kind == KL_EVENT_JOINED && event.peer != p.worker_name);
        say_parts(&s, 1, (const char *const[]){"one good wordd"});
        kl_event word = suite_next(p.master);
        CHECK(word.kind == KL_EVENT_MESSAGE && word.peer == event.peer && word.message.size == 13);
        kl_message_release(&word.message);
        say_parts(&s, raves[rave][1] ? 2 : 1, raves[rave]);
        suite_expect(p.master, KL_EVENT_LEFT, event.peer);
        say_parts(&s, 1, (const char *const[]){"one more wordd"});
        char answer[16];
        CHECK(zmq_recv(s.socket, answer, sizeof answer, 0) == 8 && memcmp(answer, "kilter2w", 8) == 0);
        CHECK(zmq_recv(s.socket, answer, sizeof answer, 0) == 1 && answer[0] == 'b');
        expect_echo(&p, 1);
        free_stranger(&s, 200);
    }
    suite_expect_silence(p.master);
    close_pair(&p);
}

static void a_peer_that_raves_is_dropped(void **state) {
    (void)state;
    expect_raves_dropped(ipc, NULL);
    expect_raves_dropped(ANY_TCP, &farm_key);
}

/* Send parts of a message without its beginning, and a frame above the size limit. In both cases, the master
 * must report LEFT. */
static void parts_that_fit_nowhere_are_raving(void **state) {
    (void)state;
    pair p = make_pair(ANY_TCP);
    const char *const raves[] = {"going onp", "ending l"};
    for (int rave = 0; rave < 2; rave++) {
        stranger s = make_stranger(p.bound, ZMQ_DEALER, NULL, &farm_key);
        say_parts(&s, 1, (const char *const[]){"kilter2h"});
        kl_event event = suite_next(p.master);
        CHECK(event.kind == KL_EVENT_JOINED);
        say_parts(&s, 1, (const char *const[]){"startedf"});
        /* when a new message begins, the incomplete one is discarded */
        say_parts(&s, 1, (const char *const[]){"one good wordd"});
        kl_event word = suite_next(p.master);
        CHECK(word.kind == KL_EVENT_MESSAGE && word.message.size == 13);
        kl_message_release(&word.message);
        say_parts(&s, 1, raves + rave);
        suite_expect(p.master, KL_EVENT_LEFT, event.peer);
        free_stranger(&s, 0);
    }
    stranger s = make_stranger(p.bound, ZMQ_DEALER, NULL, &farm_key);
    say_parts(&s, 1, (const char *const[]){"kilter2h"});
    kl_event event = suite_next(p.master);
    CHECK(event.kind == KL_EVENT_JOINED);
    uint8_t *large = calloc(1, 300000);
    CHECK(large && zmq_send(s.socket, large, 300000, 0) == 300000);
    /* libzmq cuts the connection when it reads the header of a frame that is too large */
    suite_expect(p.master, KL_EVENT_LEFT, event.peer);
    free(large);
    free_stranger(&s, 0);
    expect_echo(&p, 1);
    close_pair(&p);
}

static void a_master_of_another_version_is_named(void **state) {
    (void)state;
    void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER);
    CHECK(zmq_bind(router, ipc) == 0);
    kl_transport *worker;
    CHECK_OK(kl_zmq_join(ipc, &keyed, &worker, error));
    uint8_t id[5], frame[64];
    CHECK(zmq_recv(router, id, sizeof id, 0) == 5);
    CHECK(zmq_recv(router, frame, sizeof frame, 0) == 8);
    CHECK(zmq_send(router, id, 5, ZMQ_SNDMORE) == 5 && zmq_send(router, "b", 1, 0) == 1);
    kl_event event;
    kilter_error error = {0};
    assert_int_equal(kl_poll(worker, SUITE_LONG_S, &event, &error), KILTER_ERR_PEER);
    assert_non_null(strstr(error.text, ipc));
    kl_transport_close(worker);
    int none = 0;
    zmq_setsockopt(router, ZMQ_LINGER, &none, sizeof none);
    zmq_close(router);
    zmq_ctx_term(context);
}

/* --- keys --- */

/* name of libzmq's encryption mechanism, which begins at byte 12 of a connection's greeting */
static const uint8_t curve[] = {'C', 'U', 'R', 'V', 'E'};

typedef struct complaints {
    unsigned count;
    char last[512];
} complaints;

static void note_complaint(void *self, const char *sentence) {
    complaints *c = self;
    c->count++;
    snprintf(c->last, sizeof c->last, "%s", sentence);
}

static pair make_guarded_pair(complaints *heard) {
    pair p = {0};
    const kl_zmq_options options = {.key = &farm_key, .complain = note_complaint, .complain_to = heard};
    CHECK_OK(kl_zmq_listen(ANY_TCP, &options, &p.bound, &p.master, error));
    p.worker = join(p.bound, &keyed, p.master, &p.worker_name, &p.master_name);
    return p;
}

/* Connect without encryption, with another farm's keys, with only the master's public key right, and with
 * random bytes. All must be refused, and the farm must continue. */
static void who_has_not_the_key_is_nobody(void **state) {
    (void)state;
    complaints heard = {0};
    kl_key other, half;
    pair p = make_guarded_pair(&heard);
    CHECK_OK(kl_key_make(&other, error));
    half = other; /* only the master's public key is right; the workers' keys belong to another farm */
    memcpy(half.server_public, farm_key.server_public, sizeof half.server_public);
    const kl_key *const keys[] = {NULL, &other, &half};
    for (int i = 0; i < 3; i++) {
        stranger s = make_stranger(p.bound, ZMQ_DEALER, NULL, keys[i]);
        say_parts(&s, 1, (const char *const[]){"kilter2h"});
        say_parts(&s, 1, (const char *const[]){"a wordd"});
        for (uint64_t n = 0; n < 50; n++)
            expect_echo(&p, n);
        suite_expect_silence(p.master);
        free_stranger(&s, 0);
    }
    shout(p.bound, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35, true);
    close(dial_raw(p.bound));
    uint8_t bytes[400];
    for (uint64_t seed = 0; seed < 50; seed++) {
        size_t size = put_handshake(bytes);
        memcpy(bytes + 12, curve, sizeof curve); /* random bytes follow after the greeting */
        for (size_t i = 64; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)kl_mix64(seed * 1000 + i);
        shout(p.bound, bytes, seed % 2 ? sizeof bytes : size, false);
    }
    expect_echo(&p, 99);
    suite_expect_silence(p.master);
    assert_int_equal(heard.count, 1);
    assert_non_null(strstr(heard.last, "this farm's key"));
    close_pair(&p);
}

/* Open connections that send nothing or that stop in the middle of the handshake. Other peers must still be
 * able to join. */
static void half_open_connections_keep_nobody_out(void **state) {
    (void)state;
    enum { SILENT = 200 };
    complaints heard = {0};
    int fds[SILENT];
    uint8_t bytes[400];
    pair p = make_guarded_pair(&heard);
    put_handshake(bytes);
    memcpy(bytes + 12, curve, sizeof curve);
    for (size_t i = 0; i < SILENT; i++) {
        fds[i] = dial_raw(p.bound);
        CHECK(send(fds[i], bytes, i % 65, MSG_NOSIGNAL) == (ssize_t)(i % 65));
    }
    expect_echo(&p, 1);
    kl_peer name, master_name;
    kl_transport *second = join(p.bound, &keyed, p.master, &name, &master_name);
    kl_drop(p.master, name);
    suite_expect(second, KL_EVENT_LEFT, master_name);
    kl_transport_close(second);
    for (size_t i = 0; i < SILENT; i++)
        close(fds[i]);
    expect_echo(&p, 2);
    suite_expect_silence(p.master);
    close_pair(&p);
}

/* A connection that sends nothing is closed after lost_after_s. */
static void silent_connections_are_closed(void **state) {
    (void)state;
    kl_transport *master;
    char *bound;
    CHECK_OK(kl_zmq_listen(ANY_TCP, &(kl_zmq_options){.key = &farm_key, .lost_after_s = 0.5}, &bound, &master,
                           error));
    shout(bound, "", 0, true); /* returns when the master has closed the connection */
    kl_transport_close(master);
    free(bound);
}

static void *poll_until_woken(void *master) {
    kl_event event;
    do
        CHECK_OK(kl_poll(master, -1, &event, error));
    while (event.kind != KL_EVENT_NONE);
    return NULL;
}

static void a_worker_with_another_key_is_told_which(void **state) {
    (void)state;
    kl_transport *master;
    char *bound;
    pthread_t thread;
    kl_key others[2];
    CHECK_OK(kl_key_make(&others[0], error));
    others[1] = others[0];
    memcpy(others[1].server_public, farm_key.server_public, sizeof others[1].server_public);
    CHECK_OK(kl_zmq_listen(ANY_TCP, &keyed, &bound, &master, error));
    CHECK(pthread_create(&thread, NULL, poll_until_woken, master) == 0);
    for (int i = 0; i < 2; i++) {
        kl_transport *worker;
        kl_event event;
        kilter_error error = {0};
        snprintf(others[i].file, sizeof others[i].file, "/some/where/other.key");
        CHECK_OK(kl_zmq_join(bound, &(kl_zmq_options){.key = &others[i]}, &worker, error));
        double until_s = kl_monotonic_s() + SUITE_LONG_S;
        while (kl_poll(worker, 0, &event, &error) == KILTER_OK && kl_monotonic_s() < until_s)
            kl_nap_s(0.02); /* wait, so that several of libzmq's reports are there before they are read */
        assert_int_equal(error.status, KILTER_ERR_PEER);
        assert_non_null(strstr(error.text, "/some/where/other.key"));
        assert_non_null(strstr(error.text, bound));
        kl_transport_close(worker);
    }
    kl_transport_wake(master);
    pthread_join(thread, NULL);
    kl_transport_close(master);
    free(bound);
}

static void without_a_key_there_is_no_tcp(void **state) {
    (void)state;
    kl_transport *t = NULL;
    assert_int_equal(kl_zmq_listen(ANY_TCP, &(kl_zmq_options){0}, NULL, &t, NULL), KILTER_ERR_USAGE);
    assert_int_equal(kl_zmq_join("tcp://127.0.0.1:1", &(kl_zmq_options){0}, &t, NULL), KILTER_ERR_USAGE);
    assert_null(t);
}

static void folders_that_others_can_enter_are_refused(void **state) {
    (void)state;
    const mode_t modes[] = {0755, 0710, 0701, 0777 | S_ISVTX};
    kl_transport *t = NULL;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        kilter_error error = {0};
        CHECK(chmod(folder, modes[i]) == 0);
        assert_int_equal(kl_zmq_listen(ipc, &keyed, NULL, &t, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, folder));
        assert_int_equal(kl_zmq_join(ipc, &keyed, &t, &error), KILTER_ERR_USAGE);
    }
    assert_null(t);
    CHECK(chmod(folder, 0700) == 0);
}

/* --- peers that come and go --- */

typedef struct visitors {
    const char *bound;
    unsigned visits;
} visitors;

/* Join, send some messages and leave, again and again. Between the visits, open connections that send
 * nothing, so that descriptors are reused. */
static void *visit(void *argument) {
    visitors *v = argument;
    for (unsigned i = 0; i < v->visits; i++) {
        if (i % 3 == 0)
            close(dial_raw(v->bound));
        kl_transport *t;
        CHECK_OK(kl_zmq_join(v->bound, &keyed, &t, error));
        kl_peer master = suite_next(t).peer;
        for (unsigned n = 0; n < i % 7; n++)
            suite_send(t, master, n, 10 * n);
        kl_transport_close(t);
    }
    return NULL;
}

/* Join and disconnect at once, before the master can answer, again and again. At the end, make one visit as
 * visit() does. */
static void *ring_and_run(void *argument) {
    visitors *v = argument;
    for (unsigned i = 0; i < v->visits; i++)
        close(greet_raw(v->bound));
    /* when the master answers this visit, it has handled the earlier ones */
    return visit(&(visitors){v->bound, 1});
}

static void *run_then_wake(void *argument) {
    kl_transport *master = ((void **)argument)[0];
    pthread_t *threads = ((void **)argument)[1];
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    kl_transport_wake(master);
    return NULL;
}

enum { NAMES = 1024 };

/* The peers that the master has seen, in the order in which they joined. */
typedef struct seen_peers {
    kl_peer names[NAMES];
    unsigned next_word[NAMES], joined, present;
    bool here[NAMES];
} seen_peers;

/* Record the event, and check that each peer joins, sends its messages in order, and leaves. */
static void see(seen_peers *s, kl_event *event) {
    unsigned n = suite_place(s->names, s->joined, event->peer);
    if (event->kind == KL_EVENT_JOINED) {
        CHECK(n == s->joined && s->joined < NAMES);
        s->names[s->joined] = event->peer;
        s->here[s->joined++] = true;
        s->present++;
        return;
    }
    CHECK(n < s->joined && s->here[n]);
    if (event->kind == KL_EVENT_LEFT) {
        s->here[n] = false;
        s->present--;
        return;
    }
    suite_check_message(&event->message, s->next_word[n], 10 * s->next_word[n]);
    s->next_word[n]++;
    kl_message_release(&event->message);
}

static void descriptors_change_hands(void **state) {
    (void)state;
    enum { VISITS = 60 };
    pair p = make_pair(ipc);
    visitors v = {p.bound, VISITS};
    pthread_t threads[4], watcher;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, i < 3 ? visit : ring_and_run, &v) == 0);
    void *both[] = {p.master, threads};
    CHECK(pthread_create(&watcher, NULL, run_then_wake, both) == 0);
    seen_peers seen = {.joined = 0};
    bool over = false;
    while (!over || seen.present > 0) {
        kl_event event;
        CHECK_OK(kl_poll(p.master, SUITE_LONG_S, &event, error));
        CHECK(event.kind != KL_EVENT_NONE || !over);
        over |= event.kind == KL_EVENT_NONE;
        if (event.kind == KL_EVENT_NONE)
            continue;
        /* the peer that stays must get neither a second JOINED nor LEFT */
        CHECK(event.peer != p.worker_name);
        see(&seen, &event);
    }
    pthread_join(watcher, NULL);
    unsigned words = 0, expected = 0;
    for (unsigned n = 0; n < seen.joined; n++)
        words += seen.next_word[n];
    for (unsigned i = 0; i < VISITS; i++)
        expected += 3 * (i % 7);
    assert_int_equal(words, expected);
    assert_true(seen.joined >= 3 * VISITS); /* peers of ring_and_run() may be lost before they have joined */
    expect_echo(&p, 1);
    suite_expect_silence(p.master);
    close_pair(&p);
}

/* --- endpoints --- */

static void expect_unusable(const char *endpoint) {
    kilter_error error = {0};
    kl_transport *t = NULL;
    char *bound = NULL;
    assert_int_equal(kl_zmq_check(endpoint, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, endpoint ? endpoint : "\"\""));
    assert_int_equal(kl_zmq_listen(endpoint, &keyed, &bound, &t, &error), KILTER_ERR_USAGE);
    assert_int_equal(kl_zmq_join(endpoint, &keyed, &t, &error), KILTER_ERR_USAGE);
    assert_null(t);
    assert_null(bound);
}

static void endpoints_are_checked(void **state) {
    (void)state;
    char too_long[200] = "ipc:///tmp/";
    memset(too_long + strlen(too_long), 'x', 120);
    const char *const bad[] = {"",
                               "x",
                               "7777",
                               "localhost:7777",
                               "udp://127.0.0.1:7777",
                               "inproc://x",
                               "TCP://127.0.0.1:1",
                               "tcp:/127.0.0.1:1",
                               "tcp://",
                               "tcp://:",
                               "tcp://:7777",
                               "tcp://host",
                               "tcp://host:",
                               "tcp://host:port",
                               "tcp://host:65536",
                               "tcp://host:-1",
                               "tcp://host:7777x",
                               "tcp://host: 7777",
                               "tcp://ho st:7777",
                               "tcp://a;b:7777",
                               "tcp://host/x:7777",
                               "tcp://::1:7777",
                               "tcp://[]:7777",
                               "tcp://[::1:7777",
                               "tcp://host:999999999999999999999",
                               "ipc://",
                               "ipc://*",
                               "ipc://@",
                               "ipc://@abstract",
                               too_long};
    const char *const good[] = {
        "tcp://*:7777", "tcp://127.0.0.1:*",          "tcp://node-01.cluster_x.org:80", "tcp://[::1]:7777",
        "tcp://eth0:1", "tcp://[fe80::1%eth0]:65535", "ipc:///tmp/with space",          "ipc://relative"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_unusable(bad[i]);
    expect_unusable(NULL);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(kl_zmq_check(good[i], NULL), KILTER_OK);
}

static void expect_no_listening(const char *endpoint, const char *because) {
    kilter_error error = {0};
    kl_transport *t = NULL;
    assert_int_equal(kl_zmq_listen(endpoint, &keyed, NULL, &t, &error), KILTER_ERR_USAGE);
    assert_null(t);
    assert_non_null(strstr(error.text, endpoint));
    if (!strstr(error.text, because))
        fail_msg("\"%s\" does not mention \"%s\"", error.text, because);
}

static void places_that_cannot_be_listened_at_are_named(void **state) {
    (void)state;
    char path[80];
    pair tcp = make_pair(ANY_TCP), file = make_pair(ipc);
    expect_no_listening(tcp.bound, "another program");
    expect_no_listening(file.bound, "another program");
    expect_echo(&file, 1);
    expect_no_listening("tcp://203.0.113.1:7777", "no such address");
    snprintf(path, sizeof path, "ipc://%s/none/socket", folder);
    expect_no_listening(path, "folder");
    snprintf(path, sizeof path, "ipc://%s/plain", folder);
    FILE *plain = fopen(path + 6, "w");
    CHECK(plain);
    fclose(plain);
    expect_no_listening(path, "not a socket");
    assert_int_equal(unlink(path + 6), 0); /* a file that is not a socket must not be removed */
    close_pair(&tcp);
    close_pair(&file);
    struct stat there;
    assert_int_equal(stat(ipc + 6, &there), -1); /* the socket file that the endpoint made must be removed */
}

static void places_that_cannot_be_joined_are_named(void **state) {
    (void)state;
    const char *const nowhere[] = {"tcp://*:7777", "tcp://127.0.0.1:*", "tcp://127.0.0.1:0"};
    for (int i = 0; i < 3; i++) {
        kilter_error error = {0};
        kl_transport *t = NULL;
        assert_int_equal(kl_zmq_join(nowhere[i], &keyed, &t, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, nowhere[i]));
        assert_null(t);
    }
}

static void every_kind_of_place_carries_messages(void **state) {
    (void)state;
    const char *const places[] = {"tcp://*:*", "tcp://127.0.0.1:0", "tcp://lo:*"};
    for (int i = 0; i < 3; i++) {
        pair p = make_pair(places[i]);
        expect_echo(&p, i);
        close_pair(&p);
    }
}

static void hosts_may_be_named(void **state) {
    (void)state;
    char named[64];
    pair p = {0};
    CHECK_OK(kl_zmq_listen(ANY_TCP, &keyed, &p.bound, &p.master, error));
    snprintf(named, sizeof named, "tcp://localhost%s", strrchr(p.bound, ':'));
    p.worker = join(named, &keyed, p.master, &p.worker_name, &p.master_name);
    expect_echo(&p, 1);
    close_pair(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ipc_keeps_every_promise),
        cmocka_unit_test(tcp_keeps_every_promise),
        cmocka_unit_test(many_workers_get_them_too),
        cmocka_unit_test(a_message_outlives_its_endpoint),
        cmocka_unit_test(a_message_too_large_is_refused),
        cmocka_unit_test(a_worker_may_come_before_its_master),
        cmocka_unit_test(a_worker_without_a_master_can_be_closed),
        cmocka_unit_test(what_comes_late_stops_no_closing),
        cmocka_unit_test(heartbeats_stop_no_closing),
        cmocka_unit_test(a_killed_worker_has_left),
        cmocka_unit_test(an_orphan_hears_nothing_more),
        cmocka_unit_test(a_restarted_master_does_not_inherit),
        cmocka_unit_test(strangers_on_raw_sockets_change_nothing),
        cmocka_unit_test(strangers_on_libzmq_change_nothing),
        cmocka_unit_test(a_peer_that_raves_is_dropped),
        cmocka_unit_test(parts_that_fit_nowhere_are_raving),
        cmocka_unit_test(a_master_of_another_version_is_named),
        cmocka_unit_test(who_has_not_the_key_is_nobody),
        cmocka_unit_test(half_open_connections_keep_nobody_out),
        cmocka_unit_test(silent_connections_are_closed),
        cmocka_unit_test(a_worker_with_another_key_is_told_which),
        cmocka_unit_test(without_a_key_there_is_no_tcp),
        cmocka_unit_test(folders_that_others_can_enter_are_refused),
        cmocka_unit_test(descriptors_change_hands),
        cmocka_unit_test(endpoints_are_checked),
        cmocka_unit_test(places_that_cannot_be_listened_at_are_named),
        cmocka_unit_test(places_that_cannot_be_joined_are_named),
        cmocka_unit_test(every_kind_of_place_carries_messages),
        cmocka_unit_test(hosts_may_be_named),
    };
    return cmocka_run_group_tests(tests, make_folder_and_key, remove_all);
}
