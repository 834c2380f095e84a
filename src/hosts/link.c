/* Measure a link by pings and transfers between two agents. All waits have a limit, and at most 5 MB are
 * sent. */
#include "hosts/link.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/sys.h"

enum { PINGS = 9, FIRST_BYTES = 1 << 16, MOST_BYTES = 1 << 22, ADDRESSES_MOST = 6, PIECE_BYTES = 1 << 16 };
static const double LINK_S = 1.5, CONNECT_S = 0.4, ENOUGH_S = 0.02;

/* A connection and the time until which it may be used. */
typedef struct wire {
    int fd;
    double until_s;
} wire;

static bool await(const wire *w, short events) {
    struct pollfd one = {.fd = w->fd, .events = events};
    struct timespec rest = kl_timespec(w->until_s - kl_monotonic_s());
    int ready;
    while ((ready = ppoll(&one, 1, &rest, NULL)) < 0 && errno == EINTR)
        rest = kl_timespec(w->until_s - kl_monotonic_s());
    return ready > 0;
}

static bool send_all(const wire *w, const uint8_t *data, size_t size) {
    while (size > 0) {
        ssize_t sent = send(w->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (sent < 0 && !await(w, POLLOUT))
            return false;
        data += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static bool receive_all(const wire *w, uint8_t *data, size_t size) {
    while (size > 0) {
        ssize_t got = recv(w->fd, data, size, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        if (got < 0 && !await(w, POLLIN))
            return false;
        data += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* --- addresses --- */

/* Convert an address in digits to a socket address. No name server is asked. */
static bool resolve(const char *text, uint32_t port, struct sockaddr_storage *address, socklen_t *size) {
    char number[16];
    struct addrinfo *found, hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    snprintf(number, sizeof number, "%u", port);
    if (getaddrinfo(text, number, &hints, &found) != 0)
        return false;
    memcpy(address, found->ai_addr, found->ai_addrlen);
    *size = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static void add_address(kl_agent_address *to, const char *text) {
    size_t used = strlen(to->addresses);
    if (used + strlen(text) + 2 < sizeof to->addresses)
        snprintf(to->addresses + used, sizeof to->addresses - used, "%s%s", used ? "," : "", text);
}

/* Add the addresses of one family, IPv4 or IPv6, of this host's loopback interfaces, or of all its other
 * interfaces. */
static void add_interfaces(kl_agent_address *to, const struct ifaddrs *all, int family, bool loopback) {
    uint32_t count = 0;
    for (const struct ifaddrs *one = all; one && count < ADDRESSES_MOST; one = one->ifa_next) {
        char text[NI_MAXHOST];
        bool wanted = one->ifa_addr && one->ifa_addr->sa_family == family && (one->ifa_flags & IFF_UP) &&
                      !(one->ifa_flags & IFF_LOOPBACK) == !loopback;
        socklen_t size = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        if (!wanted || getnameinfo(one->ifa_addr, size, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0 ||
            strchr(text, '%')) /* leave out an address that is valid only on one link */
            continue;
        add_address(to, text);
        count++;
    }
}

static void add_all_interfaces(kl_agent_address *to) {
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        return;
    add_interfaces(to, all, AF_INET, false);
    add_interfaces(to, all, AF_INET6, false);
    if (!*to->addresses)
        add_interfaces(to, all, AF_INET, true);
    freeifaddrs(all);
}

/* --- answering --- */

static int listen_at(const struct sockaddr_storage *address, socklen_t size) {
    int off = 0, fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (address->ss_family == AF_INET6) /* the socket must accept connections by IPv4 as well */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (const struct sockaddr *)address, size) == 0 && listen(fd, 4) == 0)
        return fd;
    close(fd);
    return -1;
}

static uint32_t port_of(int fd) {
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &size) != 0)
        return 0;
    /* clang-tidy does not know that getsockname() fills `bound` */
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
    return ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                             : ((struct sockaddr_in *)&bound)->sin_port);
}

/* Listen at the address by which ssh reached this host, if there is one; otherwise at all addresses. The
 * variable SSH_CONNECTION (CLIENT PORT SERVER PORT) has this address. */
int kl_link_listen(kl_agent_address *address) {
    static const char *const everywhere[] = {"::", "0.0.0.0"};
    const char *connection = getenv("SSH_CONNECTION");
    struct sockaddr_storage at;
    socklen_t size;
    char server[64];
    int fd = -1;
    *address = (kl_agent_address){.token = kl_token()};
    if (connection && sscanf(connection, "%*s %*s %63s", server) == 1 && resolve(server, 0, &at, &size) &&
        (fd = listen_at(&at, size)) >= 0)
        add_address(address, server);
    for (size_t i = 0; fd < 0 && i < 2; i++)
        if (resolve(everywhere[i], 0, &at, &size))
            fd = listen_at(&at, size);
    if (!*address->addresses)
        add_all_interfaces(address);
    address->port = fd >= 0 ? port_of(fd) : 0;
    return fd;
}

/* Receive a transfer, and confirm it when all bytes have arrived. */
static bool take_transfer(const wire *w) {
    uint8_t head[4], piece[PIECE_BYTES];
    if (!receive_all(w, head, sizeof head))
        return false;
    kl_reader r = kl_reader_of(head, sizeof head);
    uint32_t left = kl_get_u32(&r);
    if (left > MOST_BYTES)
        return false;
    while (left > 0) {
        size_t size = left < sizeof piece ? left : sizeof piece;
        if (!receive_all(w, piece, size))
            return false;
        left -= (uint32_t)size;
    }
    return send_all(w, (const uint8_t *)"t", 1);
}

static bool answer_one(const wire *w) {
    uint8_t what;
    if (!receive_all(w, &what, 1))
        return false;
    return what == 'p' ? send_all(w, &what, 1) : what == 't' && take_transfer(w);
}

void kl_link_answer(int listener, uint64_t token) {
    uint8_t said[8];
    int on = 1;
    wire w = {accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), kl_monotonic_s() + LINK_S};
    if (w.fd < 0)
        return;
    setsockopt(w.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (receive_all(&w, said, sizeof said) && kl_load_u64(said) == token)
        while (answer_one(&w))
            ;
    close(w.fd);
}

/* --- measuring --- */

static int connect_to(const char *text, uint32_t port) {
    struct sockaddr_storage address;
    socklen_t size, code_size = sizeof(int);
    int code = 0;
    if (!resolve(text, port, &address, &size))
        return -1;
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const wire w = {fd, kl_monotonic_s() + CONNECT_S};
    bool connected = fd >= 0 && connect(fd, (struct sockaddr *)&address, size) == 0;
    if (fd >= 0 && !connected && errno == EINPROGRESS)
        connected =
            await(&w, POLLOUT) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &code_size) == 0 && code == 0;
    if (connected || fd < 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_any(const kl_agent_address *partner) {
    char list[KL_ADDRESSES_BYTES], *rest;
    int fd = -1, tries = 0;
    snprintf(list, sizeof list, "%s", partner->addresses);
    for (char *one = strtok_r(list, ",", &rest); one && fd < 0 && tries < 3;
         one = strtok_r(NULL, ",", &rest)) {
        fd = connect_to(one, partner->port);
        tries++;
    }
    return fd;
}

/* Return the least round-trip time in seconds; below 0: the other agent does not answer. */
static double ping(const wire *w) {
    double least_s = -1;
    for (int i = 0; i < PINGS; i++) {
        uint8_t what = 'p';
        double begun_s = kl_monotonic_s();
        if (!send_all(w, &what, 1) || !receive_all(w, &what, 1))
            return -1;
        double took_s = kl_monotonic_s() - begun_s;
        least_s = i == 0 || took_s < least_s ? took_s : least_s;
    }
    return least_s;
}

/* Return the seconds that a transfer takes; below 0: it was not confirmed in time. */
static double transfer(const wire *w, uint32_t bytes) {
    static const uint8_t piece[PIECE_BYTES];
    kl_buffer head = {0};
    double begun_s = kl_monotonic_s();
    kl_put_u8(&head, 't');
    kl_put_u32(&head, bytes);
    bool good = !head.failed && send_all(w, head.data, head.size);
    kl_buffer_free(&head);
    for (uint32_t left = bytes; good && left > 0;) {
        uint32_t size = left < PIECE_BYTES ? left : PIECE_BYTES;
        good = send_all(w, piece, size);
        left -= size;
    }
    uint8_t done;
    good = good && receive_all(w, &done, 1);
    return good ? kl_monotonic_s() - begun_s : -1;
}

/* Measure the rate of a link in bytes per second. Each transfer is larger than the one before. Stop when a
 * transfer took long enough to be measured, or when the next one would not end in time. */
static double rate_of(const wire *w, double trip_s) {
    double rate = FIRST_BYTES / LINK_S;
    for (uint32_t bytes = FIRST_BYTES; bytes <= MOST_BYTES; bytes *= 8) {
        double took_s = transfer(w, bytes), left_s = w->until_s - kl_monotonic_s();
        if (took_s < 0)
            break;
        double sent_s = took_s - trip_s > 0.1 * took_s ? took_s - trip_s : 0.1 * took_s;
        rate = bytes / (sent_s > 1e-9 ? sent_s : 1e-9);
        if (took_s > ENOUGH_S || 8 * took_s > left_s)
            break;
    }
    return rate;
}

void kl_link_measure(const kl_agent_address *partner, kl_link *link) {
    uint8_t token[8];
    int on = 1;
    double until_s = kl_monotonic_s() + LINK_S;
    wire w = {partner->port > 0 ? connect_any(partner) : -1, until_s};
    link->trip_s = link->bytes_per_s = 0;
    if (w.fd < 0)
        return;
    setsockopt(w.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    kl_store_u64(token, partner->token);
    double trip_s = send_all(&w, token, sizeof token) ? ping(&w) : -1;
    if (trip_s >= 0) {
        link->trip_s = trip_s;
        link->bytes_per_s = rate_of(&w, trip_s);
    }
    close(w.fd);
}
