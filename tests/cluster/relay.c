#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in loopback(uint16_t port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

bool relay_open(relay *r, uint16_t master_port) {
    struct sockaddr_in address = loopback(0);
    socklen_t bytes = sizeof address;
    *r = (relay){.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                 .master_port = master_port};
    for (size_t i = 0; i < RELAY_CONNECTIONS; i++)
        r->connections[i].worker_fd = r->connections[i].master_fd = -1;
    if (r->listen_fd < 0 || bind(r->listen_fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(r->listen_fd, 8) != 0 || getsockname(r->listen_fd, (struct sockaddr *)&address, &bytes) != 0)
        return false;
    r->port = ntohs(address.sin_port);
    return true;
}

static void hang_up(relay_connection *c) {
    close(c->worker_fd);
    close(c->master_fd);
    c->worker_fd = c->master_fd = -1;
}

void relay_close(relay *r) {
    for (size_t i = 0; i < RELAY_CONNECTIONS; i++)
        if (r->connections[i].worker_fd >= 0)
            hang_up(&r->connections[i]);
    close(r->listen_fd);
}

static bool is_empty(const relay_flow *f) {
    return f->from == f->to;
}

void relay_watch(const relay *r, struct pollfd events[RELAY_FDS]) {
    events[0] = (struct pollfd){.fd = r->cut ? -1 : r->listen_fd, .events = POLLIN};
    for (size_t i = 0; i < RELAY_CONNECTIONS; i++) {
        const relay_connection *c = &r->connections[i];
        int from_worker = is_empty(&c->up) && !c->worker_ended ? POLLIN : 0;
        int from_master = is_empty(&c->down) && !c->master_ended ? POLLIN : 0;
        short worker = (short)(from_worker | (is_empty(&c->down) ? 0 : POLLOUT));
        short master = (short)(from_master | (is_empty(&c->up) ? 0 : POLLOUT));
        /* Poll only connections for which the relay waits. Otherwise a closed connection would wake the relay
         * again and again. */
        events[1 + 2 * i] = (struct pollfd){.fd = r->cut || !worker ? -1 : c->worker_fd, .events = worker};
        events[2 + 2 * i] = (struct pollfd){.fd = r->cut || !master ? -1 : c->master_fd, .events = master};
    }
}

static void take_in(int fd, relay_flow *f, bool *ended) {
    ssize_t bytes = recv(fd, f->bytes, sizeof f->bytes, 0);
    if (bytes > 0) {
        f->from = 0;
        f->to = (size_t)bytes;
    } else if (bytes == 0 || (errno != EAGAIN && errno != EINTR))
        *ended = true;
}

static size_t pass_on(int fd, relay_flow *f, bool *ended) {
    ssize_t bytes = send(fd, f->bytes + f->from, f->to - f->from, MSG_NOSIGNAL);
    if (bytes < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            *ended = true;
            f->from = f->to = 0; /* the receiving side has closed its connection, so drop these bytes */
        }
        return 0;
    }
    f->from += (size_t)bytes;
    return (size_t)bytes;
}

static void turn_connection(relay *r, relay_connection *c) {
    if (is_empty(&c->up) && !c->worker_ended)
        take_in(c->worker_fd, &c->up, &c->worker_ended);
    if (!is_empty(&c->up))
        pass_on(c->master_fd, &c->up, &c->master_ended);
    if (is_empty(&c->down) && !c->master_ended)
        take_in(c->master_fd, &c->down, &c->master_ended);
    if (!is_empty(&c->down))
        r->bytes_down += pass_on(c->worker_fd, &c->down, &c->worker_ended);
    /* When one side has ended, pass on its last bytes before closing the other side. */
    if ((c->worker_ended && is_empty(&c->up)) || (c->master_ended && is_empty(&c->down)))
        hang_up(c);
}

static void take_worker(relay *r) {
    int worker = accept4(r->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int master = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(r->master_port);
    for (size_t i = 0; i < RELAY_CONNECTIONS; i++)
        if (worker >= 0 && master >= 0 && r->connections[i].worker_fd < 0 &&
            (connect(master, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS)) {
            r->connections[i] = (relay_connection){.worker_fd = worker, .master_fd = master};
            return;
        }
    if (worker >= 0)
        close(worker);
    if (master >= 0)
        close(master);
}

void relay_turn(relay *r, const struct pollfd events[RELAY_FDS]) {
    if (events[0].revents)
        take_worker(r);
    for (size_t i = 0; i < RELAY_CONNECTIONS; i++)
        if (r->connections[i].worker_fd >= 0 && !r->cut &&
            (events[1 + 2 * i].revents || events[2 + 2 * i].revents))
            turn_connection(r, &r->connections[i]);
}
