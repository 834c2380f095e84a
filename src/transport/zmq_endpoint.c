#include "transport/zmq_endpoint.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "sys/sys.h"
#include "transport/transport.h"

static const char *after(const char *text, const char *prefix) {
    size_t size = strlen(prefix);
    return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

static kilter_status check_ipc(const char *endpoint, const char *path, kilter_error *error) {
    size_t longest = sizeof((struct sockaddr_un *)0)->sun_path - 1;
    if (!*path || strcmp(path, "*") == 0)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "endpoint \"%.100s\": no path after ipc://; name a file, as in ipc:///run/user/1000/kilter.sock",
            endpoint);
    if (*path == '@')
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "endpoint \"%.100s\": every user of this machine can connect to an abstract socket; name a "
            "file in a folder of your own",
            endpoint);
    if (strlen(path) > longest)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "endpoint \"%.200s\": its path has %zu bytes, and the system takes %zu; use a shorter one, "
            "as in ipc:///run/user/1000/kilter.sock",
            endpoint, strlen(path), longest);
    return KILTER_OK;
}

static bool is_port(const char *text) {
    if (strcmp(text, "*") == 0)
        return true;
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 5 && !text[digits] && atol(text) <= 65535;
}

/* Return whether the text is a host name, an address, an interface, "*", or an IPv6 address in brackets. */
static bool is_address(const char *text, size_t size) {
    if (size == 1 && *text == '*')
        return true;
    bool bracketed = size > 2 && text[0] == '[' && text[size - 1] == ']';
    for (size_t i = bracketed; i < size - bracketed; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(bracketed ? ":.%_-" : "._-", text[i]))
            return false;
    return size > 0;
}

static kilter_status check_tcp(const char *endpoint, const char *rest, kilter_error *error) {
    const char *colon = strrchr(rest, ':');
    if (!colon || !is_port(colon + 1))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "endpoint \"%.200s\": no port number from 0 to 65535 at its end; write it as "
                       "tcp://ADDRESS:PORT",
                       endpoint);
    if (!is_address(rest, (size_t)(colon - rest)))
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "endpoint \"%.200s\": no address before the port; write it as tcp://ADDRESS:PORT, with an "
            "IPv6 address in [brackets]",
            endpoint);
    return KILTER_OK;
}

kilter_status kl_zmq_check(const char *endpoint, kilter_error *error) {
    if (!endpoint || !*endpoint)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "endpoint \"\": it is empty; write tcp://ADDRESS:PORT or ipc://PATH");
    const char *rest;
    if ((rest = after(endpoint, "ipc://")))
        return check_ipc(endpoint, rest, error);
    if ((rest = after(endpoint, "tcp://")))
        return check_tcp(endpoint, rest, error);
    return kl_fail(error, KILTER_ERR_USAGE,
                   "endpoint \"%.200s\": it begins neither with tcp:// nor with ipc://; write "
                   "tcp://ADDRESS:PORT or ipc://PATH",
                   endpoint);
}

/* Return whether a program accepts connections at the socket file `path`. */
static bool is_served(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool served = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN;
    close(fd);
    return served;
}

/* Check that other users cannot enter the folder of the socket file, because messages through the socket are
 * not encrypted. */
static kilter_status check_folder(const char *endpoint, const char *path, kilter_error *error) {
    struct stat found;
    const char *slash = strrchr(path, '/');
    char folder[sizeof((struct sockaddr_un *)0)->sun_path + 1];
    snprintf(folder, sizeof folder, "%.*s",
             slash == path ? 1
             : slash       ? (int)(slash - path)
                           : 1,
             slash ? path : ".");
    /* accept a missing folder here; it is reported when the endpoint is opened */
    if (stat(folder, &found) != 0)
        return KILTER_OK;
    if (found.st_uid != geteuid() || (found.st_mode & 077) != 0)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "endpoint \"%.200s\": others can enter its folder %s; choose one of your own with mode 0700 "
            "(mkdir -m 700)",
            endpoint, folder);
    return KILTER_OK;
}

kilter_status kl_zmq_may_listen(const char *endpoint, kilter_error *error) {
    const char *path = after(endpoint, "ipc://");
    struct stat there;
    if (path && check_folder(endpoint, path, error) != KILTER_OK)
        return KILTER_ERR_USAGE;
    if (!path || lstat(path, &there) != 0)
        return KILTER_OK;
    if (!S_ISSOCK(there.st_mode))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "listening at \"%.200s\": there is a file that is not a socket; choose another path",
                       endpoint);
    return is_served(path) ? kl_zmq_cannot_listen(endpoint, EADDRINUSE, error) : KILTER_OK;
}

kilter_status kl_zmq_may_join(const char *endpoint, kilter_error *error) {
    const char *rest = after(endpoint, "tcp://");
    if (!rest)
        return check_folder(endpoint, after(endpoint, "ipc://"), error);
    const char *port = strrchr(rest, ':') + 1;
    if (*rest == '*' || *port == '*' || atol(port) == 0)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "joining \"%.200s\": it does not name one address; give the master's address and port",
                       endpoint);
    return KILTER_OK;
}

/* Find the address of this host from which its connections to `host` would come. Nothing is sent. */
static bool address_towards(const char *host, const char *port, char *address, size_t size) {
    struct addrinfo wanted = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    if (getaddrinfo(host, port, &wanted, &found) != 0)
        return false;
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool known =
        fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 &&
        getnameinfo((struct sockaddr *)&own, bytes, address, (socklen_t)size, NULL, 0, NI_NUMERICHOST) == 0;
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    return known;
}

kilter_status kl_zmq_address_of_worker(const char *endpoint, char address[KL_ADDRESS_BYTES],
                                       kilter_error *error) {
    const char *path = after(endpoint, "ipc://"), *rest = after(endpoint, "tcp://");
    char host[KL_ADDRESS_BYTES], own[KL_ADDRESS_BYTES - 16];
    if (path) {
        snprintf(address, KL_ADDRESS_BYTES, "%.200s-%08x", endpoint, (unsigned)kl_token());
        return KILTER_OK;
    }
    const char *port = strrchr(rest, ':') + 1;
    bool bracketed = *rest == '[';
    snprintf(host, sizeof host, "%.*s", (int)(port - rest) - 1 - 2 * bracketed, rest + bracketed);
    if (!address_towards(host, port, own, sizeof own))
        return kl_fail(error, KILTER_ERR_SYSTEM,
                       "listening for other workers: this host's address towards \"%.200s\" is not known",
                       endpoint);
    snprintf(address, KL_ADDRESS_BYTES, strchr(own, ':') ? "tcp://[%s]:*" : "tcp://%s:*", own);
    return KILTER_OK;
}

void kl_zmq_stops_listening(const char *endpoint) {
    const char *path = after(endpoint, "ipc://");
    if (path)
        unlink(path);
}

kilter_status kl_zmq_cannot_listen(const char *endpoint, int code, kilter_error *error) {
    const char *remedy;
    switch (code) {
    case EADDRINUSE:
        remedy = "another program listens there; choose another endpoint or end that program";
        break;
    case EADDRNOTAVAIL:
    case ENODEV:
        remedy = "this machine has no such address; use one of its own, in numbers, or *";
        break;
    case EACCES:
    case EPERM:
    case EROFS:
        remedy = "permission denied; choose a port above 1023, or a folder you may write to";
        break;
    case ENOENT:
    case ENOTDIR:
        remedy = "its folder does not exist; make it, or choose another path";
        break;
    case EINVAL:
        remedy = "the endpoint is not valid; write tcp://ADDRESS:PORT or ipc://PATH";
        break;
    default:
        return kl_fail(error, KILTER_ERR_SYSTEM, "listening at \"%.200s\": %s; try another endpoint",
                       endpoint, zmq_strerror(code));
    }
    return kl_fail(error, KILTER_ERR_USAGE, "listening at \"%.200s\": %s", endpoint, remedy);
}
