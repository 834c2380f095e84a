/* Test which connections the failure detector accepts, and whether it notices that a connection (line) ends.
 * All connections are inside one process, and the test needs no MPI. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/liveness_mpi.h"
#include "transport/transport_suite.h"

enum { WORKERS = 3, SECRET_BYTES = 32, PORT_AT = SECRET_BYTES + 4, HELLO_BYTES = 20, BOUND_S = 10 };

typedef struct joining {
    kl_buffer invitation;
    kl_liveness *line;
    kilter_status status;
} joining;

static void *join_in(void *arg) {
    joining *j = arg;
    kilter_error error = {KILTER_OK, ""};
    j->status =
        kl_liveness_connect(j->invitation.data, j->invitation.size, BOUND_S, BOUND_S, &j->line, &error);
    return NULL;
}

/* Connect a worker in a thread of its own, while the master checks its connections until the worker is
 * accepted or refused. */
static kl_liveness *connect_worker(kl_liveness *master, const kl_buffer *invitation, kilter_status expected) {
    joining j = {.invitation = *invitation};
    pthread_t thread;
    size_t cut;
    CHECK(pthread_create(&thread, NULL, join_in, &j) == 0);
    while (pthread_tryjoin_np(thread, NULL) != 0)
        CHECK(!kl_liveness_cut(master, &cut));
    CHECK(j.status == expected);
    return j.line;
}

static kl_buffer invite(const kl_liveness *master, size_t worker) {
    kl_buffer invitation = {0};
    kl_liveness_invite(master, worker, &invitation);
    CHECK(!invitation.failed && invitation.size > PORT_AT);
    return invitation;
}

static size_t next_cut(kl_liveness *lines) {
    size_t which = SIZE_MAX;
    double until_s = kl_monotonic_s() + SUITE_LONG_S;
    while (!kl_liveness_cut(lines, &which))
        CHECK(kl_monotonic_s() < until_s);
    return which;
}

static kl_liveness *connect_all(kl_liveness *worker[WORKERS]) {
    kl_liveness *master;
    CHECK_OK(kl_liveness_listen(WORKERS, BOUND_S, &master, error));
    for (size_t i = 0; i < WORKERS; i++) {
        kl_buffer invitation = invite(master, i);
        worker[i] = connect_worker(master, &invitation, KILTER_OK);
        kl_buffer_free(&invitation);
    }
    return master;
}

static void test_cut_is_told_once_to_both_sides(void) {
    kl_liveness *worker[WORKERS], *master = connect_all(worker);
    size_t which;
    kl_liveness_close(worker[1]);
    CHECK(next_cut(master) == 1);
    CHECK(!kl_liveness_cut(master, &which));
    kl_liveness_close(master);
    CHECK(next_cut(worker[0]) == 0 && next_cut(worker[2]) == 0);
    CHECK(!kl_liveness_cut(worker[0], &which));
    kl_liveness_close(worker[0]);
    kl_liveness_close(worker[2]);
}

/* When a connection (line) is cut, the last message on it must be readable, whatever happened to other
 * connections. */
static void test_last_words(void) {
    static const char gone[] = "the third is gone", full[KL_LAST_WORDS_BYTES] = "I give up";
    char heard[KL_LAST_WORDS_BYTES];
    kl_liveness *worker[WORKERS], *master = connect_all(worker);
    size_t which;
    kl_liveness_say(worker[1], 0, full, sizeof full);
    CHECK(!kl_liveness_cut(master, &which)); /* a last message does not count as the end of the line */
    kl_liveness_close(worker[1]);
    CHECK(next_cut(master) == 1);
    CHECK(kl_liveness_heard(master, heard, sizeof full) && memcmp(heard, full, sizeof full) == 0);
    CHECK(!kl_liveness_heard(master, heard, sizeof gone));
    kl_liveness_close(worker[2]);
    CHECK(next_cut(master) == 2 && !kl_liveness_heard(master, heard, sizeof full));
    for (size_t i = 0; i < WORKERS; i++) /* send to all workers, including those whose lines were cut */
        kl_liveness_say(master, i, gone, sizeof gone);
    struct pollfd polled = {.fd = kl_liveness_fd(worker[0]), .events = POLLIN};
    kl_liveness_close(master);
    CHECK(poll(&polled, 1, (int)(1e3 * SUITE_LONG_S)) == 1);
    CHECK(kl_liveness_cut(worker[0], &which) && which == 0);
    CHECK(kl_liveness_heard(worker[0], heard, sizeof gone) && memcmp(heard, gone, sizeof gone) == 0);
    kl_liveness_close(worker[0]);
}

/* A second connection with a worker's key must not replace that worker's first connection. */
static void test_second_with_a_key_is_refused(void) {
    kl_liveness *master;
    CHECK_OK(kl_liveness_listen(1, BOUND_S, &master, error));
    kl_buffer invitation = invite(master, 0);
    kl_liveness *worker = connect_worker(master, &invitation, KILTER_OK);
    connect_worker(master, &invitation, KILTER_ERR_SYSTEM);
    size_t which;
    CHECK(!kl_liveness_cut(master, &which) && !kl_liveness_cut(worker, &which));
    kl_buffer_free(&invitation);
    kl_liveness_close(worker);
    kl_liveness_close(master);
}

static int stranger(const kl_buffer *invitation) {
    kl_reader reader = kl_reader_of(invitation->data + PORT_AT, 4);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)kl_get_u32(&reader))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

/* Wait until the master closes the connection. The master must not send anything on it. */
static void expect_sent_away(kl_liveness *master, int fd) {
    char byte;
    size_t which;
    double until_s = kl_monotonic_s() + SUITE_LONG_S;
    ssize_t got;
    while ((got = recv(fd, &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN) {
        CHECK(!kl_liveness_cut(master, &which));
        CHECK(kl_monotonic_s() < until_s);
    }
    CHECK(got <= 0);
    close(fd);
}

static void test_strangers_get_nothing(void) {
    kl_liveness *master;
    CHECK_OK(kl_liveness_listen(1, BOUND_S, &master, error));
    kl_buffer invitation = invite(master, 0);
    uint8_t hello[HELLO_BYTES] = {0}, noise[5000];
    memcpy(hello, invitation.data, HELLO_BYTES);
    memset(noise, 0x5a, sizeof noise);

    hello[3] ^= 1; /* change one bit of the key, so that the key is wrong */
    int fd = stranger(&invitation);
    CHECK(send(fd, hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello);
    expect_sent_away(master, fd);
    fd = stranger(&invitation);
    CHECK(send(fd, noise, sizeof noise, MSG_NOSIGNAL) == sizeof noise);
    expect_sent_away(master, fd);
    fd = stranger(&invitation);
    CHECK(send(fd, "x", 1, MSG_NOSIGNAL) == 1);
    expect_sent_away(master, fd);

    enum { SILENT = 200 };
    /* open more connections without a key than the master keeps; the worker must still be accepted */
    int silent[SILENT];
    for (int i = 0; i < SILENT; i++)
        silent[i] = stranger(&invitation);
    kl_liveness *worker = connect_worker(master, &invitation, KILTER_OK);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
    kl_buffer_free(&invitation);
    kl_liveness_close(worker);
    CHECK(next_cut(master) == 0);
    kl_liveness_close(master);
}

static void test_malformed_invitations(void) {
    kl_liveness *master, *line;
    kilter_error error;
    CHECK_OK(kl_liveness_listen(1, BOUND_S, &master, error));
    kl_buffer invitation = invite(master, 0);
    /* an invitation that was cut off at any place must be refused */
    for (size_t size = 0; size < PORT_AT + 4; size++)
        CHECK(kl_liveness_connect(invitation.data, size, BOUND_S, BOUND_S, &line, &error) ==
              KILTER_ERR_INPUT);
    kl_liveness_close(master);
    /* the master is closed, so no process accepts connections at its address */
    CHECK(kl_liveness_connect(invitation.data, invitation.size, BOUND_S, BOUND_S, &line, &error) ==
          KILTER_ERR_SYSTEM);
    kl_buffer_free(&invitation);
}

int main(void) {
    test_cut_is_told_once_to_both_sides();
    test_last_words();
    test_second_with_a_key_is_refused();
    test_strangers_get_nothing();
    test_malformed_invitations();
    return 0;
}
