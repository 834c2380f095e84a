/* Test which silent peers count as lost: over a slow link, over a link that stops, with a stopped process,
 * and with a busy process. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/folder_test_helper.h"
#include "transport/transport.h"
#include "transport/transport_suite.h"

#define LOST_AFTER_S 0.5

#ifdef __SANITIZE_THREAD__
/* Options for ThreadSanitizer. libzmq is built without it, so ThreadSanitizer cannot see that libzmq's
 * mailboxes order the actions of threads. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "ignore_noninstrumented_modules=1";
}
#endif

static kl_key key;
static const kl_zmq_options options = {.lost_after_s = LOST_AFTER_S, .key = &key};

static int make_folder_and_key(void **state) {
    return kl_key_make(&key, NULL) == KILTER_OK ? make_folder(state) : -1;
}

/* --- a simulated link of limited rate, for one connection --- */

typedef struct relay {
    int listener, ends[2];
    struct sockaddr_in master;
    char endpoint[64];  /* the endpoint that workers connect to */
    double bytes_per_s; /* bytes per second in each direction */
    /* passes: true while the link passes bytes on; closes: true when the link's thread must end */
    atomic_bool passes, closes;
    pthread_t thread;
} relay;

/* Move bytes from one end of the link to the other, at most *credit_bytes. */
static void pass(relay *r, int from, double *credit_bytes) {
    char bytes[4096];
    size_t most = *credit_bytes < sizeof bytes ? (size_t)fmax(0, *credit_bytes) : sizeof bytes;
    ssize_t got = most ? recv(r->ends[from], bytes, most, MSG_DONTWAIT) : 0;
    for (ssize_t at = 0; at < got;) {
        ssize_t put = send(r->ends[!from], bytes + at, (size_t)(got - at), MSG_NOSIGNAL);
        if (put < 0)
            return;
        at += put;
    }
    *credit_bytes -= got > 0 ? (double)got : 0;
}

static void *run_relay(void *argument) {
    relay *r = argument;
    double credit_bytes[2] = {0}, last_s = kl_monotonic_s();
    r->ends[0] = accept(r->listener, NULL, NULL);
    r->ends[1] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(r->ends[0] >= 0 && connect(r->ends[1], (struct sockaddr *)&r->master, sizeof r->master) == 0);
    for (; !atomic_load(&r->closes); kl_nap_s(0.0005)) {
        double now_s = kl_monotonic_s();
        for (int from = 0; from < 2 && atomic_load(&r->passes); from++) {
            credit_bytes[from] = fmin(credit_bytes[from] + (now_s - last_s) * r->bytes_per_s, 65536);
            for (int i = 0; i < 16; i++)
                pass(r, from, &credit_bytes[from]);
        }
        last_s = now_s;
    }
    close(r->ends[0]);
    close(r->ends[1]);
    return NULL;
}

static struct sockaddr_in loopback(int port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void open_relay(relay *r, const char *bound, double bytes_per_s) {
    struct sockaddr_in own = loopback(0);
    socklen_t size = sizeof own;
    *r = (relay){.listener = socket(AF_INET, SOCK_STREAM, 0),
                 .master = loopback(atoi(strrchr(bound, ':') + 1)),
                 .bytes_per_s = bytes_per_s};
    atomic_init(&r->passes, true);
    atomic_init(&r->closes, false);
    CHECK(bind(r->listener, (struct sockaddr *)&own, sizeof own) == 0 && listen(r->listener, 1) == 0);
    CHECK(getsockname(r->listener, (struct sockaddr *)&own, &size) == 0);
    snprintf(r->endpoint, sizeof r->endpoint, "tcp://127.0.0.1:%d", ntohs(own.sin_port));
    CHECK(pthread_create(&r->thread, NULL, run_relay, r) == 0);
}

static void close_relay(relay *r) {
    atomic_store(&r->closes, true);
    pthread_join(r->thread, NULL);
    close(r->listener);
}

/* --- two endpoints that are connected by this link --- */

typedef struct pair {
    kl_transport *master, *worker;
    kl_peer worker_name, master_name;
    relay link;
} pair;

static void open_pair(pair *p, double bytes_per_s) {
    char *bound;
    *p = (pair){0};
    CHECK_OK(kl_zmq_listen("tcp://127.0.0.1:*", &options, &bound, &p->master, error));
    open_relay(&p->link, bound, bytes_per_s);
    CHECK_OK(kl_zmq_join(p->link.endpoint, &options, &p->worker, error));
    while (!p->master_name || !p->worker_name) {
        kl_event event;
        CHECK_OK(kl_poll(p->master, 0.001, &event, error));
        if (event.kind == KL_EVENT_JOINED)
            p->worker_name = event.peer;
        CHECK_OK(kl_poll(p->worker, 0.001, &event, error));
        if (event.kind == KL_EVENT_JOINED)
            p->master_name = event.peer;
    }
    free(bound);
}

static void close_pair(pair *p) {
    kl_drop(p->master, p->worker_name);
    suite_expect(p->worker, KL_EVENT_LEFT, p->master_name);
    kl_transport_close(p->worker);
    kl_transport_close(p->master);
    close_relay(&p->link);
}

/* Send messages in both directions that keep the link busy for several times the silence limit. Neither side
 * may be treated as lost. */
static void a_large_message_on_a_slow_link_is_no_silence(void **state) {
    (void)state;
    enum { LARGE = 4 << 20 };
    pair p;
    open_pair(&p, 2e6);
    suite_send(p.worker, p.master_name, 1, LARGE);
    suite_send(p.master, p.worker_name, 2, LARGE);
    suite_expect_message(p.master, p.worker_name, 1, LARGE);
    suite_expect_message(p.worker, p.master_name, 2, LARGE);
    close_pair(&p);
}

static void a_link_that_passes_nothing_is_noticed_by_both(void **state) {
    (void)state;
    pair p;
    open_pair(&p, 1e8);
    suite_send(p.worker, p.master_name, 1, 1000);
    suite_expect_message(p.master, p.worker_name, 1, 1000);
    atomic_store(&p.link.passes, false);
    suite_expect(p.master, KL_EVENT_LEFT, p.worker_name);
    suite_expect(p.worker, KL_EVENT_LEFT, p.master_name);
    kl_transport_close(p.worker);
    kl_transport_close(p.master);
    close_relay(&p.link);
}

/* --- processes --- */

static void leave_with(kl_transport *t, int code) {
    kl_transport_close(t);
    _exit(code);
}

/* Send a message. After it, the test stops this process for a while. When the process continues, it must
 * find that the master is lost. */
static void be_stopped(void) {
    kl_transport *t;
    CHECK_OK(kl_zmq_join(ipc, &options, &t, error));
    kl_peer master = suite_meet_master(t, 0);
    suite_expect(t, KL_EVENT_LEFT, master);
    leave_with(t, 0);
}

/* Do not receive for several times the silence limit. The master must not treat this worker as lost. */
static void be_busy(void) {
    kl_transport *t;
    CHECK_OK(kl_zmq_join(ipc, &options, &t, error));
    kl_peer master = suite_meet_master(t, 0);
    for (double until_s = kl_monotonic_s() + 4 * LOST_AFTER_S; kl_monotonic_s() < until_s;)
        ;
    suite_send(t, master, 7, 100);
    suite_expect(t, KL_EVENT_LEFT, master);
    leave_with(t, 0);
}

static pid_t start(void (*body)(void)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        body();
    return child;
}

static void expect_good_end(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_stopped_process_is_lost_and_finds_out(void **state) {
    (void)state;
    kl_transport *master;
    kl_peer worker;
    pid_t child = start(be_stopped);
    CHECK_OK(kl_zmq_listen(ipc, &options, NULL, &master, error));
    suite_meet_workers(master, &worker, 1);
    CHECK(kill(child, SIGSTOP) == 0);
    suite_expect(master, KL_EVENT_LEFT, worker);
    suite_expect_gone(master, worker);
    CHECK(kill(child, SIGCONT) == 0);
    expect_good_end(child);
    suite_expect_silence(master);
    kl_transport_close(master);
}

static void a_busy_process_is_not_lost(void **state) {
    (void)state;
    kl_transport *master;
    kl_peer worker;
    pid_t child = start(be_busy);
    CHECK_OK(kl_zmq_listen(ipc, &options, NULL, &master, error));
    suite_meet_workers(master, &worker, 1);
    suite_expect_message(master, worker, 7, 100);
    kl_transport_close(master);
    expect_good_end(child);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_process_is_lost_and_finds_out),
        cmocka_unit_test(a_busy_process_is_not_lost),
        cmocka_unit_test(a_large_message_on_a_slow_link_is_no_silence),
        cmocka_unit_test(a_link_that_passes_nothing_is_noticed_by_both),
    };
    return cmocka_run_group_tests(tests, make_folder_and_key, remove_folder);
}
