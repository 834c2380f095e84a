/* The agent: a process that measures its host, and the links to other agents. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "hosts/hosts.h"
#include "hosts/lines.h"
#include "hosts/link.h"
#include "sys/sys.h"

static const double IDLE_S =
    600; /* an agent without requests for this time ends, because the process that started it may be gone */

typedef struct agent {
    int in, out, listener;
    kl_agent_address address;
    kl_liner liner;
    bool failed; /* true: an answer could not be written */
} agent;

void kl_hosts_look(double probe_s, kl_reading *reading) {
    kl_read_host("", reading);
    if (probe_s > 0)
        reading->probe = kl_spin(reading->cores, probe_s, &reading->steps_per_s);
}

static void answer(agent *a, const char *line) {
    size_t size = strlen(line);
    for (ssize_t put; size > 0 && !a->failed; line += put > 0 ? put : 0) {
        put = write(a->out, line, size);
        a->failed = put < 0 && errno != EINTR;
        size -= put > 0 ? (size_t)put : 0;
    }
}

static void carry_out(agent *a, const kl_request *request) {
    char line[KL_LINE_BYTES];
    kl_reading reading;
    kl_link link;
    if (request->kind == KL_REQUEST_LOOK) {
        kl_hosts_look(request->probe_s, &reading);
        kl_answer_reading(line, &reading, &a->address);
    } else if (request->kind == KL_REQUEST_LINK) {
        kl_link_measure(&request->partner, &link);
        kl_answer_link(line, request->round, &link);
    } else {
        return; /* ignore other requests, which a later version of Kilter may send */
    }
    answer(a, line);
}

/* Carry out the requests that have arrived. Return false when no more requests can come. */
static bool take_requests(agent *a) {
    char line[KL_LINE_BYTES];
    kl_request request;
    ssize_t got = kl_liner_fill(&a->liner, a->in);
    while (kl_liner_next(&a->liner, line)) {
        kl_request_read(line, &request);
        carry_out(a, &request);
    }
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void attend(agent *a) {
    for (bool more = true; more && !a->failed;) {
        struct pollfd files[] = {{.fd = a->in, .events = POLLIN}, {.fd = a->listener, .events = POLLIN}};
        int ready = poll(files, 2, (int)(IDLE_S * 1000));
        more = ready > 0 || (ready < 0 && errno == EINTR);
        if (ready > 0 && files[1].revents)
            kl_link_answer(a->listener, a->address.token);
        if (ready > 0 && files[0].revents)
            more = take_requests(a);
    }
}

kilter_status kl_hosts_serve(int in, int out, kilter_error *error) {
    agent a = {.in = in, .out = out};
    a.listener = kl_link_listen(
        &a.address); /* if listening fails, other agents count the links to this host as missing */
    attend(&a);
    if (a.listener >= 0)
        close(a.listener);
    return a.failed ? kl_fail(error, KILTER_ERR_SYSTEM, "answering a request: %s", strerror(errno))
                    : KILTER_OK;
}
