/* The client of the control connection, which runs in the commands `kilter tune` and `kilter drain`. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/talk.h"
#include "sys/sys.h"

struct kl_tuner {
    struct sockaddr_un address;
    socklen_t address_size;
    int fd;
    bool ended; /* true: the farm has announced that it ends */
    double patience_s;
    kl_buffer request;
    uint8_t reply[KL_REPLY_BYTES_MOST];
    size_t reply_size;
};

static kilter_status not_running(const kl_tuner *t, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_PEER, "the farm %s",
                   t->ended ? "has ended" : "is no longer running: it was killed, has crashed, or is ending");
}

static kilter_status no_answer(const kl_tuner *t, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_PEER,
                   "the farm does not answer within %g s; is its master stopped, or its machine overloaded?",
                   t->patience_s);
}

static kilter_status cannot_attach(const kl_tuner *t, int code, kilter_error *error) {
    switch (code) {
    case ECONNREFUSED:
        return not_running(t, error);
    case EAGAIN:
        return no_answer(t, error);
    case EACCES:
    case EPERM:
        return kl_talk_fail_not_owner(error);
    default:
        return kl_fail(error, KILTER_ERR_SYSTEM, "attaching to the farm: %s", strerror(code));
    }
}

static void leave(kl_tuner *t) {
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

/* Connect to the farm's socket. Refuse to talk to a process of another user: after the farm has ended, any
 * user may listen under the socket's name. */
static bool reach(kl_tuner *t) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (connect(t->fd, (const struct sockaddr *)&t->address, t->address_size) != 0)
        return false;
    errno = EPERM;
    return getsockopt(t->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (geteuid() == 0 || peer.uid == geteuid() || peer.uid == 0);
}

static kilter_status enter(kl_tuner *t, kilter_error *error) {
    /* limit two waits: for the connection, because many clients may connect; and for sending, because the
     * farm may not have read an earlier request yet */
    struct timeval patience = {.tv_sec = (time_t)t->patience_s,
                               .tv_usec = (suseconds_t)(1e6 * fmod(t->patience_s, 1))};
    t->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (t->fd < 0 || setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 || !reach(t))
        return cannot_attach(t, errno, error);
    return KILTER_OK;
}

kilter_status kl_tuner_attach(const char *name, double patience_s, kl_tuner **tuner, kilter_error *error) {
    kl_tuner *t = calloc(1, sizeof *t);
    if (!t)
        return kl_fail(error, KILTER_ERR_MEMORY, "attaching to the farm: memory ran out");
    t->fd = -1;
    t->patience_s = patience_s;
    kilter_status status = kl_control_address(name, &t->address, &t->address_size)
                               ? enter(t, error)
                               : kl_fail(error, KILTER_ERR_INPUT,
                                         "attaching at '%.120s': not the name of a farm's socket", name);
    if (status == KILTER_OK)
        *tuner = t;
    else
        kl_tuner_detach(t);
    return status;
}

void kl_tuner_detach(kl_tuner *t) {
    if (!t)
        return;
    leave(t);
    kl_buffer_free(&t->request);
    free(t);
}

int64_t kl_tuner_process(const kl_tuner *t) {
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return getsockopt(t->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

bool kl_tuner_ended(const kl_tuner *t) {
    return t->ended;
}

/* Wait for the farm's reply. Set t->reply_size to the bytes of the reply, or to 0 if the farm closed the
 * connection. */
static kilter_status wait_for_reply(kl_tuner *t, double until_s, kilter_error *error) {
    double left_s;
    while ((left_s = until_s - kl_monotonic_s()) > 0) {
        struct pollfd wanted = {.fd = t->fd, .events = POLLIN};
        if (poll(&wanted, 1, (int)(1e3 * left_s) + 1) <= 0)
            continue; /* a signal interrupted the wait, or the time for the wait is over */
        ssize_t size = recv(t->fd, t->reply, sizeof t->reply, MSG_DONTWAIT | MSG_TRUNC);
        if (size < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
            continue; /* an answer may have come before the connection was reset, and can still be read */
        t->reply_size = size < 0 ? 0 : (size_t)size;
        /* a reply that does not fit into t->reply is malformed */
        if (t->reply_size > sizeof t->reply)
            t->reply_size = sizeof t->reply;
        return KILTER_OK;
    }
    return no_answer(t, error);
}

/* Send t->request and read t->reply. If the farm closes the connection, connect again: a running farm closes
 * a connection only to make room for another tool. */
static kilter_status exchange(kl_tuner *t, kilter_error *error) {
    double until_s = kl_monotonic_s() + t->patience_s;
    for (;;) {
        if (send(t->fd, t->request.data, t->request.size, MSG_NOSIGNAL) < 0 && errno == EAGAIN)
            return no_answer(t, error);
        kilter_status status = wait_for_reply(t, until_s, error);
        if (status != KILTER_OK || t->reply_size > 0)
            return status;
        leave(t);
        if ((status = enter(t, error)) != KILTER_OK)
            return status;
    }
}

static kilter_status malformed(const kl_tuner *t, kilter_error *error) {
    uint32_t version;
    kl_talk_kind(t->reply, t->reply_size, &version);
    if (version != 0 && version != KL_CONTROL_VERSION)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "the farm uses protocol version %u, but this tool uses %d; use the kilter command of "
                       "the farm's version",
                       version, KL_CONTROL_VERSION);
    return kl_fail(error, KILTER_ERR_INPUT, "the process at this socket is not a farm");
}

/* Send t->request and read t->reply. If the farm refuses the request, return an error. */
static kilter_status ask(kl_tuner *t, kilter_error *error) {
    if (t->request.failed)
        return kl_fail(error, KILTER_ERR_MEMORY, "asking the farm: memory ran out");
    kilter_status status = exchange(t, error);
    if (status != KILTER_OK)
        return status;
    t->ended = kl_talk_get_ended(t->reply, t->reply_size);
    if (t->ended)
        return not_running(t, error);
    kilter_error refusal;
    if (kl_talk_get_refused(t->reply, t->reply_size, &refusal))
        return kl_fail(error, refusal.status, "%s", refusal.text);
    return KILTER_OK;
}

kilter_status kl_tuner_look(kl_tuner *t, kl_control_state *state, kilter_error *error) {
    kl_buffer_clear(&t->request);
    kl_talk_put_look(&t->request);
    kilter_status status = ask(t, error);
    if (status != KILTER_OK)
        return status;
    return kl_talk_get_state(t->reply, t->reply_size, state) ? KILTER_OK : malformed(t, error);
}

static kilter_status ask_to_take(kl_tuner *t, char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error) {
    kilter_status status = ask(t, error);
    if (status != KILTER_OK)
        return status;
    return kl_talk_get_taken(t->reply, t->reply_size, answer) ? KILTER_OK : malformed(t, error);
}

kilter_status kl_tuner_set(kl_tuner *t, const kl_control_setting *setting,
                           char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error) {
    kl_buffer_clear(&t->request);
    kl_talk_put_set(&t->request, setting);
    return ask_to_take(t, answer, error);
}

kilter_status kl_tuner_drain(kl_tuner *t, const kl_control_drain *drain, char answer[KL_CONTROL_ANSWER_BYTES],
                             kilter_error *error) {
    kl_buffer_clear(&t->request);
    kl_talk_put_drain(&t->request, drain);
    return ask_to_take(t, answer, error);
}

kilter_status kl_tuner_note(kl_tuner *t, const kl_decision *decision, kilter_error *error) {
    char answer[KL_CONTROL_ANSWER_BYTES];
    kl_buffer_clear(&t->request);
    kl_talk_put_note(&t->request, decision);
    return ask_to_take(t, answer, error);
}
