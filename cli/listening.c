/* Choose the endpoint where a master listens for workers of other hosts, and make the key that these
 * workers need. */
#include "listening.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/sys.h"

/* Choose a port below the range from which the system assigns ports. So no other process gets this port by
 * chance before the master opens it. */
enum { PORT_FIRST = 10000, PORT_COUNT = 20000, PORT_TRIES = 200 };

static bool is_free(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return bound;
}

static kilter_status choose_endpoints(const char *given, kl_listening *r, kilter_error *error) {
    char host[KL_HOST_BYTES];
    uint64_t draw = (uint64_t)getpid();
    int port = 0, tries = 0;
    do
        port = PORT_FIRST + (int)(kl_mix64(draw++) % PORT_COUNT);
    while (!is_free(port) && ++tries < PORT_TRIES);
    kl_host_name(host);
    r->listen = kl_text("tcp://%s:%d", given ? given : "*", port);
    r->join = kl_text("tcp://%s:%d", given ? given : host, port);
    if (!r->listen || !r->join)
        return kl_fail(error, KILTER_ERR_MEMORY, "choosing where to listen: memory ran out");
    return kl_zmq_check(r->listen, error) == KILTER_OK ? kl_zmq_check(r->join, error) : KILTER_ERR_USAGE;
}

/* Make a key for this run in a file in memory, whose name the master gets. A killed process leaves no such
 * file behind. Programs that are started here do not inherit the file. */
static kilter_status make_key(kl_listening *r, kilter_error *error) {
    kl_buffer text = {0};
    kilter_status status = kl_key_make(&r->key, error);
    if (status != KILTER_OK)
        return status;
    kl_key_write(&r->key, true, &text);
    int file = memfd_create("farm.key", MFD_CLOEXEC); /* the file is open until this process ends */
    bool made = file >= 0 && fchmod(file, 0600) == 0 && !text.failed &&
                write(file, text.data, text.size) == (ssize_t)text.size;
    if (made)
        r->key_file = kl_text("/proc/%ld/fd/%d", (long)getpid(), file);
    kl_buffer_free(&text);
    return r->key_file ? KILTER_OK
                       : kl_fail(error, KILTER_ERR_SYSTEM, "making the key of the run: %s", strerror(errno));
}

kilter_status kl_listening_open(const char *address, kl_listening *reach, kilter_error *error) {
    *reach = (kl_listening){0};
    kilter_status status = choose_endpoints(address, reach, error);
    return status == KILTER_OK ? make_key(reach, error) : status;
}

void kl_listening_close(kl_listening *reach) {
    free(reach->key_file);
    free(reach->listen);
    free(reach->join);
    *reach = (kl_listening){0};
}
