/* The server of the control connection, which runs in the farm. One thread answers one request of each client
 * in turn, and then sleeps for a moment. So even many requests take little time from the farm's host. The
 * thread never waits for a client. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/talk.h"
#include "sys/sys.h"

enum {
    /* greatest number of clients; a further client replaces the one that has been silent for longest */
    CLIENTS_MOST = 16,
    /* greatest number of clients accepted in a round; more of them could replace clients that are about to
     * send a request */
    JOINING_MOST = 8,
    WAITING_MOST = 64, /* greatest number of connections that wait to be accepted */
    PAUSE_MS = 5,      /* milliseconds between two rounds in which the thread answers requests */
    WAKE = 0,          /* WAKE, LISTENER and CLIENTS are indices in `polled` */
    LISTENER = 1,
    CLIENTS = 2,
};

struct kl_control {
    kl_control_farm farm;
    char *name;
    pthread_t thread;
    /* the descriptors that the thread waits for; fd −1: this place has no client */
    struct pollfd polled[CLIENTS + CLIENTS_MOST];
    /* heard: for each client, the round in which it last sent a message; rounds: number of rounds so far */
    uint64_t heard[CLIENTS_MOST], rounds;
    kl_buffer reply;
    kl_control_state state;
};

/* --- clients --- */

/* Return whether the client is the farm's owner or root. Every user can connect to the socket. */
static bool is_owner(int fd) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* Tell a client that it is not the farm's owner, and close the connection. */
static void turn_away(kl_control *c, int fd) {
    kilter_error error;
    kl_talk_fail_not_owner(&error);
    kl_buffer_clear(&c->reply);
    kl_talk_put_refused(&c->reply, &error);
    if (!c->reply.failed)
        (void)!send(fd, c->reply.data, c->reply.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

static int place_for_client(const kl_control *c) {
    int place = 0;
    for (int i = 0; i < CLIENTS_MOST; i++) {
        if (c->polled[CLIENTS + i].fd < 0)
            return i;
        if (c->heard[i] < c->heard[place])
            place = i;
    }
    return place;
}

static void drop(kl_control *c, int client) {
    struct pollfd *p = &c->polled[CLIENTS + client];
    if (p->fd >= 0)
        close(p->fd);
    *p = (struct pollfd){.fd = -1};
}

/* Accept one client. Return false if no client waits to be accepted, or if the process has too
 * many files open. */
static bool take_in(kl_control *c) {
    int fd = accept4(c->polled[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    if (!is_owner(fd)) {
        turn_away(c, fd);
        return true;
    }
    int client = place_for_client(c);
    drop(c, client);
    c->polled[CLIENTS + client] = (struct pollfd){.fd = fd, .events = POLLIN};
    c->heard[client] = c->rounds;
    return true;
}

/* --- requests --- */

static void answer_taken(kl_control *c, kilter_status status, const char *answer, const kilter_error *error) {
    if (status == KILTER_OK)
        kl_talk_put_taken(&c->reply, answer);
    else
        kl_talk_put_refused(&c->reply, error);
}

/* Write the answer to a request into c->reply. */
static void answer(kl_control *c, const void *data, size_t size) {
    kl_control_setting setting;
    kl_control_drain drain;
    kl_decision note;
    uint32_t version;
    kl_buffer_clear(&c->reply);
    kl_talk_kind(data, size, &version);
    if (kl_talk_get_look(data, size)) {
        memset(&c->state, 0, sizeof c->state);
        c->farm.look(c->farm.self, &c->state);
        kl_talk_put_state(&c->reply, &c->state);
    } else if (kl_talk_get_set(data, size, &setting)) {
        char answer[KL_CONTROL_ANSWER_BYTES] = "";
        kilter_error error;
        answer_taken(c, c->farm.set(c->farm.self, &setting, answer, &error), answer, &error);
    } else if (kl_talk_get_drain(data, size, &drain)) {
        char answer[KL_CONTROL_ANSWER_BYTES] = "";
        kilter_error error;
        answer_taken(c, c->farm.drain(c->farm.self, &drain, answer, &error), answer, &error);
    } else if (kl_talk_get_note(data, size, &note)) {
        kilter_error error;
        answer_taken(c, c->farm.note(c->farm.self, &note, &error), "", &error);
    } else {
        kilter_error error;
        if (version != 0 && version != KL_CONTROL_VERSION)
            kl_fail(&error, KILTER_ERR_USAGE,
                    "the tool uses protocol version %u, but the farm uses %d; use the kilter command of the "
                    "farm's version",
                    version, KL_CONTROL_VERSION);
        else
            kl_fail(&error, KILTER_ERR_INPUT, "the request is malformed");
        kl_talk_put_refused(&c->reply, &error);
    }
}

/* Answer one request of the client, if it has sent one. Drop the client if its request is too long, or if it
 * does not read its answers. */
static void serve(kl_control *c, int client) {
    uint8_t request[KL_REQUEST_BYTES_MOST];
    int fd = c->polled[CLIENTS + client].fd;
    ssize_t size = recv(fd, request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0 || (size_t)size > sizeof request) {
        drop(c, client);
        return;
    }
    c->heard[client] = c->rounds;
    answer(c, request, (size_t)size);
    if (c->reply.failed || send(fd, c->reply.data, c->reply.size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        drop(c, client);
    if (c->reply.failed)
        kl_buffer_free(&c->reply);
}

static void serve_all(kl_control *c) {
    c->rounds++;
    for (int i = 0; i < CLIENTS_MOST; i++)
        if (c->polled[CLIENTS + i].revents)
            serve(c, i);
    for (int i = 0; c->polled[LISTENER].revents && i < JOINING_MOST && take_in(c); i++)
        ;
}

static void *server_main(void *arg) {
    kl_control *c = arg;
    for (;;) {
        int ready = poll(c->polled, CLIENTS + CLIENTS_MOST, -1);
        if (ready > 0 && c->polled[WAKE].revents)
            return NULL;
        if (ready > 0)
            serve_all(c);
        poll(&c->polled[WAKE], 1, PAUSE_MS);
    }
}

/* --- opening and closing the server --- */

static kilter_status no_socket(const char *doing, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_SYSTEM, "%s the control socket: %s", doing, strerror(errno));
}

char *kl_control_new_name(void) {
    return kl_text("@kilter-%016" PRIx64 "%016" PRIx64, kl_token(), kl_token());
}

/* Bind the socket to the wanted name. If another farm already uses the name, make a new name. */
static bool bind_socket(kl_control *c, int fd) {
    struct sockaddr_un address;
    socklen_t size;
    if (c->farm.name && kl_control_address(c->farm.name, &address, &size) &&
        bind(fd, (struct sockaddr *)&address, size) == 0) {
        free(c->name);
        return (c->name = strdup(c->farm.name)) != NULL;
    }
    return kl_control_address(c->name, &address, &size) && bind(fd, (struct sockaddr *)&address, size) == 0;
}

static kilter_status open_socket(kl_control *c, kilter_error *error) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    c->polled[LISTENER] = (struct pollfd){.fd = fd, .events = POLLIN};
    if (fd < 0 || !bind_socket(c, fd) || listen(fd, WAITING_MOST) != 0)
        return no_socket("opening", error);
    c->polled[WAKE] = (struct pollfd){.fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN};
    return c->polled[WAKE].fd < 0 ? no_socket("serving", error) : KILTER_OK;
}

static kilter_status start_thread(kl_control *c, kilter_error *error) {
    int code = kl_thread_start(&c->thread, server_main, c);
    return code == 0 ? KILTER_OK
                     : kl_fail(error, KILTER_ERR_SYSTEM, "starting the control thread: %s", strerror(code));
}

static void close_all(kl_control *c) {
    for (int i = 0; i < CLIENTS + CLIENTS_MOST; i++)
        if (c->polled[i].fd >= 0)
            close(c->polled[i].fd);
    kl_buffer_free(&c->reply);
    free(c->name);
    free(c);
}

kilter_status kl_control_open(const kl_control_farm *farm, kl_control **control, kilter_error *error) {
    kl_control *c = calloc(1, sizeof *c);
    if (!c)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening the control socket: memory ran out");
    c->farm = *farm;
    for (int i = 0; i < CLIENTS + CLIENTS_MOST; i++)
        c->polled[i].fd = -1;
    c->name = kl_control_new_name();
    kilter_status status =
        c->name ? open_socket(c, error)
                : kl_fail(error, KILTER_ERR_MEMORY, "opening the control socket: memory ran out");
    if (status == KILTER_OK)
        status = start_thread(c, error);
    if (status != KILTER_OK) {
        close_all(c);
        return status;
    }
    *control = c;
    return KILTER_OK;
}

const char *kl_control_name(const kl_control *c) {
    return c ? c->name : "";
}

void kl_control_close(kl_control *c) {
    if (!c)
        return;
    eventfd_write(c->polled[WAKE].fd, 1);
    pthread_join(c->thread, NULL);
    /* send a message, from which the clients learn that the farm has ended and has not crashed */
    kl_buffer_clear(&c->reply);
    kl_talk_put_ended(&c->reply);
    for (int i = CLIENTS; i < CLIENTS + CLIENTS_MOST && !c->reply.failed; i++)
        if (c->polled[i].fd >= 0)
            (void)!send(c->polled[i].fd, c->reply.data, c->reply.size, MSG_DONTWAIT | MSG_NOSIGNAL);
    close_all(c);
}
