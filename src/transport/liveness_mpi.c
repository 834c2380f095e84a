/* How a worker opens its connection (line) to the master's failure detector:
 *
 *     worker                               master
 *     connect, to all of its addresses ──▶ accept
 *     KEY of this worker, its number   ──▶
 *                                      ◀── ANSWER for this worker
 *
 * The worker connects to all addresses at the same time, and keeps the first connection on which the master
 * answers. Afterwards each side may send one last message. */
#include "transport/liveness_mpi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/transport_private.h"

enum {
    KEY_BYTES = 16,
    HELLO_BYTES = KEY_BYTES + 4, /* the key, then the worker's number */
    BOOT_BYTES = 36,
    ADDRESSES_MOST = 16,
    /* Greatest number of connections that have not sent a key, in addition to one for each worker. A further
     * connection replaces the oldest. */
    STRANGERS_MOST = 64,
    /* greatest number of events that one check handles, so that many strangers cannot make the check long */
    TURNS_MOST = 64,
};

typedef struct secret {
    uint8_t key[KEY_BYTES], answer[KEY_BYTES];
} secret;

struct kl_liveness {
    int epoll, listener; /* listener: the socket that accepts connections; −1 at a worker */
    uint16_t port;
    double lost_after_s;
    size_t count;
    int *fds; /* [count] connections (lines) to the workers; −1: there is no line, or the line was cut */
    secret *secrets; /* [count] the workers' keys and the answers to them; only at the master */
    int *strangers;  /* [count + STRANGERS_MOST] connections that have sent no key yet, the oldest first */
    size_t stranger_count;
    uint8_t words[KL_LAST_WORDS_BYTES]; /* last message on the line that was cut most recently */
    size_t words_size;
};

static kilter_status system_error(const char *doing, int code, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_SYSTEM, "%s: %s", doing, strerror(code));
}

/* Get the boot id of the operating system; "": unknown. A worker connects to a loopback address only if its
 * system has the same boot id as the master's system. */
static void boot_id(char id[BOOT_BYTES + 1]) {
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, id, BOOT_BYTES) : 0;
    id[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Let the system probe a connection each time a third of the allowed silence has passed. The system cuts the
 * connection after two probes without an answer. */
static void keep_alive(int fd, double lost_after_s) {
    int on = 1, pause_s = (int)fmax(1, floor(lost_after_s / 3)), questions = 2;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &pause_s, sizeof pause_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause_s, sizeof pause_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &questions, sizeof questions);
}

static bool watch(const kl_liveness *l, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Let `epoll` report when the connection ends, but not when a last message arrives before that. */
static bool watch_end(const kl_liveness *l, int fd) {
    struct epoll_event event = {.events = EPOLLRDHUP, .data.fd = fd};
    return epoll_ctl(l->epoll, EPOLL_CTL_MOD, fd, &event) == 0;
}

static kl_liveness *new_lines(size_t count, double lost_after_s) {
    kl_liveness *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->listener = -1;
    l->lost_after_s = lost_after_s;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    /* allocate one element more than `count`, because `count` may be 0 and malloc(0) may return NULL */
    l->fds = malloc((count + 1) * sizeof *l->fds);
    l->strangers = malloc((count + STRANGERS_MOST) * sizeof *l->strangers);
    for (size_t i = 0; l->fds && i < count; i++)
        l->fds[i] = -1;
    l->count = l->fds ? count : 0;
    if (!l->fds || !l->strangers || l->epoll < 0) {
        kl_liveness_close(l);
        return NULL;
    }
    return l;
}

void kl_liveness_close(kl_liveness *l) {
    if (!l)
        return;
    for (size_t i = 0; i < l->count; i++)
        if (l->fds[i] >= 0)
            close(l->fds[i]);
    for (size_t i = 0; i < l->stranger_count; i++)
        close(l->strangers[i]);
    if (l->listener >= 0)
        close(l->listener);
    if (l->epoll >= 0)
        close(l->epoll);
    free(l->fds);
    free(l->strangers);
    free(l->secrets);
    free(l);
}

int kl_liveness_fd(const kl_liveness *l) {
    return l->epoll;
}

void kl_liveness_say(kl_liveness *l, size_t worker, const void *words, size_t size) {
    if (l->fds[worker] >= 0) /* the connection is still open, so the worker is alive */
        (void)!send(l->fds[worker], words, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool kl_liveness_heard(const kl_liveness *l, void *words, size_t size) {
    if (l->words_size != size)
        return false;
    memcpy(words, l->words, size);
    return true;
}

/* --- functions for the master's end --- */

/* Return a socket that is bound to a free port at all addresses of the family; −1: the system refused. */
static int bind_anywhere(int family) {
    /* an address of zeros means any address and any port */
    struct sockaddr_storage any = {.ss_family = (sa_family_t)family};
    socklen_t size = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int off = 0, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0)
        size = 0; /* no address has this size, so bind() fails below */
    if (fd < 0 || bind(fd, (struct sockaddr *)&any, size) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Listen for connections over IPv4, and over IPv6 if the system has it. */
static int listen_anywhere(uint16_t *port) {
    int fd = bind_anywhere(AF_INET6);
    if (fd < 0)
        fd = bind_anywhere(AF_INET);
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } bound = {.six = {0}};
    socklen_t size = sizeof bound;
    if (fd < 0)
        return -1;
    if (listen(fd, SOMAXCONN) != 0 || getsockname(fd, &bound.any, &size) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(bound.any.sa_family == AF_INET6 ? bound.six.sin6_port : bound.four.sin_port);
    return fd;
}

static bool make_secrets(secret *secrets, size_t count) {
    bool made = true;
    for (size_t i = 0; i < count && made; i++)
        made = getentropy(&secrets[i], sizeof secrets[i]) == 0;
    return made;
}

kilter_status kl_liveness_listen(size_t workers, double lost_after_s, kl_liveness **lines,
                                 kilter_error *error) {
    static const char doing[] = "preparing the failure detector of ranks";
    kilter_status status = kl_allow_files(workers + STRANGERS_MOST, error);
    if (status != KILTER_OK)
        return status;
    kl_liveness *l = new_lines(workers, lost_after_s);
    secret *secrets = calloc(workers + 1, sizeof *secrets);
    if (!l || !secrets) {
        kl_liveness_close(l);
        free(secrets);
        return kl_fail(error, KILTER_ERR_MEMORY, "%s: memory or open files ran out", doing);
    }
    l->secrets = secrets;
    l->listener = listen_anywhere(&l->port);
    if (l->listener < 0 || !watch(l, l->listener) || !make_secrets(secrets, workers)) {
        int code = errno;
        kl_liveness_close(l);
        return system_error(doing, code, error);
    }
    *lines = l;
    return KILTER_OK;
}

/* Get the address of a network interface, and return the address's size in bytes. Return 0 if the interface
 * is down, or if workers cannot connect to this kind of address. */
static size_t address_bytes(const struct ifaddrs *it, const void **bytes) {
    if (!it->ifa_addr || !(it->ifa_flags & IFF_UP))
        return 0;
    if (it->ifa_addr->sa_family == AF_INET) {
        *bytes = &((const struct sockaddr_in *)it->ifa_addr)->sin_addr;
        return sizeof(struct in_addr);
    }
    if (it->ifa_addr->sa_family != AF_INET6)
        return 0;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)it->ifa_addr)->sin6_addr;
    *bytes = six; /* leave out a link-local address, which does not work from other hosts */
    return IN6_IS_ADDR_LINKLOCAL(six) ? 0 : sizeof *six;
}

void kl_liveness_invite(const kl_liveness *l, size_t worker, kl_buffer *invitation) {
    char boot[BOOT_BYTES + 1];
    boot_id(boot);
    kl_put_bytes(invitation, &l->secrets[worker], sizeof(secret));
    kl_put_u32(invitation, (uint32_t)worker);
    kl_put_u32(invitation, l->port);
    kl_put_span(invitation, boot, strlen(boot));
    struct ifaddrs *list = NULL;
    unsigned addresses = 0;
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *it = list; it && addresses < ADDRESSES_MOST; it = it->ifa_next) {
        const void *bytes;
        size_t size = address_bytes(it, &bytes);
        if (size == 0)
            continue;
        kl_put_u8(invitation, it->ifa_flags & IFF_LOOPBACK ? 1 : 0);
        kl_put_span(invitation, bytes, size);
        addresses++;
    }
    freeifaddrs(list);
}

static void take_in(kl_liveness *l) {
    int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (l->stranger_count == l->count + STRANGERS_MOST) {
        close(l->strangers[0]);
        memmove(l->strangers, l->strangers + 1, --l->stranger_count * sizeof *l->strangers);
    }
    if (watch(l, fd))
        l->strangers[l->stranger_count++] = fd;
    else
        close(fd);
}

/* Compare two keys in a time that does not reveal how many bytes are equal. */
static bool same(const uint8_t *a, const uint8_t *b, size_t size) {
    unsigned difference = 0;
    for (size_t i = 0; i < size; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

/* Read the key that a stranger has sent. If it is a worker's key, keep the connection as that worker's line;
 * otherwise close it. A worker sends only a few bytes, so they arrive in one piece. */
static void meet(kl_liveness *l, size_t s) {
    int fd = l->strangers[s];
    uint8_t hello[HELLO_BYTES];
    ssize_t got = recv(fd, hello, sizeof hello, 0);
    memmove(l->strangers + s, l->strangers + s + 1, (--l->stranger_count - s) * sizeof *l->strangers);
    kl_reader reader = kl_reader_of(hello + KEY_BYTES, HELLO_BYTES - KEY_BYTES);
    uint32_t worker = got == HELLO_BYTES ? kl_get_u32(&reader) : UINT32_MAX;
    if (worker >= l->count || l->fds[worker] >= 0 || !same(hello, l->secrets[worker].key, KEY_BYTES) ||
        send(fd, l->secrets[worker].answer, KEY_BYTES, MSG_NOSIGNAL) != KEY_BYTES || !watch_end(l, fd)) {
        close(fd);
        return;
    }
    keep_alive(fd, l->lost_after_s);
    l->fds[worker] = fd;
}

/* --- functions for both ends --- */

static size_t place_of(const int *fds, size_t count, int fd) {
    size_t i = 0;
    while (i < count && fds[i] != fd)
        i++;
    return i;
}

bool kl_liveness_cut(kl_liveness *l, size_t *worker) {
    struct epoll_event event;
    for (int turn = 0; turn < TURNS_MOST && epoll_wait(l->epoll, &event, 1, 0) == 1; turn++) {
        int fd = event.data.fd;
        size_t stranger = place_of(l->strangers, l->stranger_count, fd);
        size_t line = place_of(l->fds, l->count, fd);
        if (fd == l->listener) {
            take_in(l);
        } else if (stranger < l->stranger_count) {
            meet(l, stranger);
        } else if (line < l->count) {
            ssize_t got = 1;
            for (l->words_size = 0; got > 0 && l->words_size < sizeof l->words;
                 l->words_size += (size_t)got) {
                got = recv(fd, l->words + l->words_size, sizeof l->words - l->words_size, MSG_DONTWAIT);
                got = got > 0 ? got : 0;
            }
            close(fd);
            l->fds[line] = -1;
            *worker = line;
            return true;
        }
    }
    return false;
}

/* --- functions for the worker's end --- */

typedef struct attempt {
    /* a connection for each address of the master; fd −1: this address failed */
    struct pollfd polled[ADDRESSES_MOST];
    size_t count;
    uint8_t hello[HELLO_BYTES], answer[KEY_BYTES];
    int code; /* errno of the last connection that failed */
} attempt;

static void give_up(attempt *a, size_t i, int code) {
    close(a->polled[i].fd);
    a->polled[i].fd = -1;
    a->code = code ? code : ECONNRESET;
}

static void try_address(attempt *a, const uint8_t *bytes, size_t size, uint16_t port) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    bool is_six = size == sizeof six.sin6_addr;
    memcpy(is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr, bytes, size);
    int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        a->code = errno;
        return;
    }
    size_t i = a->count++;
    a->polled[i] = (struct pollfd){.fd = fd, .events = POLLOUT};
    if (connect(fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
                is_six ? sizeof six : sizeof four) != 0 &&
        errno != EINPROGRESS)
        give_up(a, i, errno);
}

static bool read_invitation(kl_reader *reader, attempt *a) {
    char here[BOOT_BYTES + 1];
    size_t boot_size, size;
    boot_id(here);
    const uint8_t *key = kl_get_bytes(reader, KEY_BYTES), *answer = kl_get_bytes(reader, KEY_BYTES);
    const uint8_t *worker = kl_get_bytes(reader, HELLO_BYTES - KEY_BYTES);
    uint32_t port = kl_get_u32(reader);
    const uint8_t *boot = kl_get_span(reader, &boot_size);
    if (reader->bad || port > UINT16_MAX)
        return false;
    memcpy(a->hello, key, KEY_BYTES);
    memcpy(a->hello + KEY_BYTES, worker, HELLO_BYTES - KEY_BYTES);
    memcpy(a->answer, answer, KEY_BYTES);
    bool same_system = boot_size == BOOT_BYTES && memcmp(boot, here, BOOT_BYTES) == 0;
    while (reader->at < reader->size && a->count < ADDRESSES_MOST) {
        bool loopback = kl_get_u8(reader) != 0;
        const uint8_t *bytes = kl_get_span(reader, &size);
        if (reader->bad || (size != sizeof(struct in_addr) && size != sizeof(struct in6_addr)))
            return false;
        if (!loopback || same_system)
            try_address(a, bytes, size, (uint16_t)port);
    }
    return true;
}

/* Continue with connection `i`: if it is new, send the key; otherwise read the answer. Return whether the
 * master's answer has come. */
static bool go_on(attempt *a, size_t i) {
    struct pollfd *p = &a->polled[i];
    uint8_t answer[KEY_BYTES];
    if (p->events == POLLOUT) {
        int code = 0;
        socklen_t size = sizeof code;
        getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &code, &size);
        if (code != 0 || send(p->fd, a->hello, HELLO_BYTES, MSG_NOSIGNAL) != HELLO_BYTES)
            give_up(a, i, code ? code : errno);
        else
            p->events = POLLIN;
        return false;
    }
    ssize_t got = recv(p->fd, answer, KEY_BYTES, 0);
    if (got == KEY_BYTES && same(answer, a->answer, KEY_BYTES))
        return true;
    give_up(a, i, got < 0 ? errno : ECONNREFUSED);
    return false;
}

/* Wait until the master answers on one of the connections. Remove this connection from the attempt and
 * return it; −1: there was no answer. */
static int await_answer(attempt *a, double until_s) {
    for (;;) {
        size_t alive = 0;
        for (size_t i = 0; i < a->count; i++)
            alive += a->polled[i].fd >= 0;
        double left_s = until_s - kl_monotonic_s();
        if (alive == 0 || left_s <= 0) {
            a->code = alive ? ETIMEDOUT : a->code ? a->code : EADDRNOTAVAIL;
            return -1;
        }
        if (poll(a->polled, a->count, (int)ceil(1e3 * fmin(left_s, 3600))) < 0 && errno != EINTR) {
            a->code = errno;
            return -1;
        }
        for (size_t i = 0; i < a->count; i++) {
            int fd = a->polled[i].fd;
            if (fd >= 0 && a->polled[i].revents && go_on(a, i)) {
                a->polled[i].fd = -1;
                return fd;
            }
        }
    }
}

kilter_status kl_liveness_connect(const void *invitation, size_t size, double lost_after_s, double patience_s,
                                  kl_liveness **lines, kilter_error *error) {
    static const char doing[] = "connecting to the master's failure detector";
    attempt a = {.count = 0};
    kl_reader reader = kl_reader_of(invitation, size);
    bool read = read_invitation(&reader, &a);
    int fd = read ? await_answer(&a, kl_monotonic_s() + patience_s) : -1;
    for (size_t i = 0; i < a.count; i++)
        if (a.polled[i].fd >= 0)
            close(a.polled[i].fd);
    if (!read)
        return kl_fail(error, KILTER_ERR_INPUT, "%s: the invitation is malformed", doing);
    if (fd < 0)
        return system_error(doing, a.code, error);
    kl_liveness *l = new_lines(1, lost_after_s);
    if (!l || !watch(l, fd) || !watch_end(l, fd)) {
        kl_liveness_close(l);
        close(fd);
        return kl_fail(error, KILTER_ERR_MEMORY, "%s: memory or open files ran out", doing);
    }
    keep_alive(fd, lost_after_s);
    l->fds[0] = fd;
    *lines = l;
    return KILTER_OK;
}
