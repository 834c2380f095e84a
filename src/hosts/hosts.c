/* Measure the hosts of a list. First all agents measure their hosts at the same time. Then links between
 * hosts are measured in rounds, and each host measures at most one link in a round. */
#include "hosts/hosts.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hosts/lines.h"
#include "hosts/start.h"
#include "sys/sys.h"

enum { LOOKING_MOST = 64, EVENTS = 32, TROUBLE_BYTES = 160 };
static const double PROBE_S = 0.2, PATIENCE_S = 10, ROUND_S = 3, END_S = 0.5;

typedef struct one_host {
    kl_listed_host listed;
    kl_reading reading;
    double share, own;
    char trouble[TROUBLE_BYTES];
    char noise[KL_NOISE_BYTES]; /* the last line from the host that is no answer of the agent, such as an
                                   error message of ssh */
    pid_t pid;                  /* process number of the agent; 0: there is none */
    int fd;                     /* socket to the agent; −1: there is no agent */
    kl_liner liner;
    kl_agent_address address;
    bool awaited; /* true: an answer is expected until `until_s` */
    double until_s;
    bool fresh; /* true: the reading was taken in the present measurement */
} one_host;

typedef enum phase { IDLE, LOOKING, LINKING } phase;

struct kl_hosts {
    one_host *at;
    size_t count;
    kl_agent_way way;
    bool no_network;
    double patience_s;
    int epoll;
    phase phase;
    size_t next, awaited; /* next: index of the next host to ask; awaited: number of hosts whose answers are
                             expected */
    uint32_t *partners;   /* indices of the hosts that take part in measuring links */
    uint32_t partner_count, round;
    double links_until_s;
    kl_link *links;
    size_t link_count;
    uint64_t link_room;
};

/* --- opening and closing the measurement of hosts --- */

static kilter_status take_hosts(kl_hosts *h, const kl_host_list *list) {
    h->at = calloc(list->count + 1, sizeof *h->at);
    h->partners = calloc(list->count + 1, sizeof *h->partners);
    for (size_t i = 0; h->at && i < list->count; i++) {
        h->at[i] = (one_host){.listed = {strdup(list->at[i].name), list->at[i].slots},
                              .reading = kl_reading_none(),
                              .share = NAN,
                              .fd = -1};
        h->count++;
        if (!h->at[i].listed.name)
            return KILTER_ERR_MEMORY;
        snprintf(h->at[i].trouble, TROUBLE_BYTES, "not measured yet");
    }
    return h->at && h->partners ? KILTER_OK : KILTER_ERR_MEMORY;
}

kilter_status kl_hosts_open(const kl_host_list *list, const kl_hosts_options *options, kl_hosts **hosts,
                            kilter_error *error) {
    kl_hosts *h = calloc(1, sizeof *h);
    if (!h)
        return kl_fail(error, KILTER_ERR_MEMORY, "measuring hosts: memory ran out");
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    h->no_network = options->no_network;
    h->patience_s = options->patience_s > 0 ? options->patience_s : PATIENCE_S;
    kilter_status status = KILTER_OK;
    if (h->epoll < 0)
        status = kl_fail(error, KILTER_ERR_SYSTEM, "measuring hosts: %s", strerror(errno));
    else if (take_hosts(h, list) != KILTER_OK)
        status = kl_fail(error, KILTER_ERR_MEMORY, "measuring hosts: memory ran out");
    else if ((status = kl_allow_files(list->count + 16, error)) == KILTER_OK)
        status = kl_agent_way_make(options->ssh, options->program, options->slurm, &h->way, error);
    if (status == KILTER_OK)
        *hosts = h;
    else
        kl_hosts_close(h);
    return status;
}

/* End all agents. All sockets are closed first, so that the agents end at the same time. */
void kl_hosts_close(kl_hosts *h) {
    if (!h)
        return;
    for (size_t i = 0; i < h->count; i++)
        if (h->at[i].fd >= 0)
            close(h->at[i].fd);
    double until_s = kl_monotonic_s() + END_S;
    for (size_t i = 0; i < h->count; i++) {
        if (h->at[i].pid > 0)
            kl_process_finish(h->at[i].pid, until_s - kl_monotonic_s());
        free(h->at[i].listed.name);
    }
    if (h->epoll >= 0)
        close(h->epoll);
    kl_agent_way_free(&h->way);
    free(h->at);
    free(h->partners);
    free(h->links);
    free(h);
}

/* --- the agent of one host --- */

/* End the agent of a host. The next measurement starts another one. */
static void drop_agent(one_host *host) {
    if (host->fd >= 0)
        close(host->fd);
    if (host->pid > 0)
        kl_process_finish(host->pid, 0);
    host->fd = -1;
    host->pid = 0;
    host->liner.size = 0;
}

static void stop_waiting(kl_hosts *h, one_host *host) {
    h->awaited -= host->awaited;
    host->awaited = false;
}

static void await(kl_hosts *h, one_host *host, double until_s) {
    h->awaited += !host->awaited;
    host->awaited = true;
    host->until_s = until_s;
}

static void be_unreachable(kl_hosts *h, one_host *host, const char *why) {
    stop_waiting(h, host);
    drop_agent(host);
    host->reading = kl_reading_none();
    host->fresh = false;
    snprintf(host->trouble, TROUBLE_BYTES, "%s%s%s", why, *host->noise ? ": " : "", host->noise);
}

/* Send a line to the agent. The socket always has room for it, unless the agent does not read its requests.
 */
static bool send_line(const one_host *host, const char *line) {
    size_t size = strlen(line);
    return send(host->fd, line, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static bool start_agent(kl_hosts *h, one_host *host, kilter_error *error) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)(host - h->at)};
    host->noise[0] = '\0';
    if (kl_agent_start(&h->way, host->listed.name, &host->pid, &host->fd, error) != KILTER_OK)
        return false;
    if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, host->fd, &event) == 0)
        return true;
    kl_fail(error, KILTER_ERR_SYSTEM, "watching the agent: %s", strerror(errno));
    return false;
}

/* Ask the agent of a host for a reading. If the program itself reports its share of the cores, leave out the
 * probe, which would disturb the program. An agent that has ended is replaced by a new one. If the new agent
 * also ends, its last line tells the reason; hear() reads it later. */
static void look_at(kl_hosts *h, one_host *host) {
    char line[KL_LINE_BYTES];
    kilter_error error;
    kl_request_look(line, isnan(host->share) ? PROBE_S : 0);
    await(h, host, kl_monotonic_s() + h->patience_s);
    if (host->fd >= 0 && send_line(host, line))
        return;
    drop_agent(host);
    if (start_agent(h, host, &error))
        send_line(host, line);
    else
        be_unreachable(h, host, error.text);
}

/* --- answers --- */

static void take_reading(kl_hosts *h, one_host *host, const kl_answer *answer) {
    double steps_per_s = host->reading.steps_per_s;
    host->reading = answer->reading;
    host->reading.at_s = kl_monotonic_s();
    if (isnan(host->reading.steps_per_s)) /* keep the old value, because the host was not probed this time */
        host->reading.steps_per_s = steps_per_s;
    host->address = answer->address;
    host->fresh = true;
    host->trouble[0] = host->noise[0] = '\0';
    stop_waiting(h, host);
}

static void take_link(kl_hosts *h, one_host *host, const kl_answer *answer) {
    kl_link *links = kl_array_grow(h->links, &h->link_room, h->link_count + 1, sizeof *links);
    uint32_t place = 0;
    while (place < h->partner_count && &h->at[h->partners[place]] != host)
        place++;
    uint32_t partner = place < h->partner_count ? kl_link_partner(h->partner_count, h->round, place) : place;
    stop_waiting(h, host);
    if (!links || partner >= h->partner_count)
        return;
    h->links = links;
    links[h->link_count++] =
        (kl_link){h->partners[place], h->partners[partner], answer->trip_s, answer->bytes_per_s};
}

static void take_line(kl_hosts *h, one_host *host, const char *line) {
    kl_answer answer;
    kl_answer_read(line, &answer);
    if (answer.kind == KL_LINE_NOISE && *answer.noise)
        memcpy(host->noise, answer.noise, sizeof host->noise);
    else if (answer.kind == KL_LINE_READING && h->phase == LOOKING && host->awaited)
        take_reading(h, host, &answer);
    else if (answer.kind == KL_LINE_LINK && h->phase == LINKING && host->awaited && answer.round == h->round)
        take_link(h, host, &answer);
}

/* Read what the agent has written, or notice that it has ended. An agent may end between two measurements,
 * for example because it had no requests for a long time. */
static void hear(kl_hosts *h, one_host *host) {
    char line[KL_LINE_BYTES];
    ssize_t got = host->fd >= 0 ? kl_liner_fill(&host->liner, host->fd) : -1;
    while (kl_liner_next(&host->liner, line))
        take_line(h, host, line);
    bool ended = got == 0 || (got < 0 && host->fd >= 0 && errno != EAGAIN && errno != EINTR);
    if (ended && h->phase != IDLE)
        be_unreachable(h, host, "the connection ended");
    else if (ended)
        drop_agent(host);
}

static void give_up_late(kl_hosts *h) {
    double now_s = kl_monotonic_s();
    for (size_t i = 0; i < h->count && h->awaited > 0; i++) {
        one_host *host = &h->at[i];
        if (!host->awaited || now_s < host->until_s)
            continue;
        if (h->phase == LOOKING)
            be_unreachable(h, host, "no answer in time");
        else
            take_link(h, host, &(kl_answer){.kind = KL_LINE_LINK});
    }
}

/* --- the course of a measurement --- */

/* Ask one host of each pair to measure the link between the two. */
static void start_round(kl_hosts *h) {
    double until_s = kl_monotonic_s() + ROUND_S;
    for (uint32_t i = 0; i < h->partner_count; i++) {
        uint32_t partner = kl_link_partner(h->partner_count, h->round, i);
        one_host *host = &h->at[h->partners[i]], *other = &h->at[h->partners[partner]];
        char line[KL_LINE_BYTES];
        if (i >= partner || !host->fresh || !other->fresh)
            continue;
        kl_request_link(line, h->round, &other->address);
        await(h, host, until_s);
        if (!send_line(host, line))
            be_unreachable(h, host, "its agent does not read");
    }
}

static void start_links(kl_hosts *h) {
    h->partner_count = 0;
    h->link_count = 0;
    for (size_t i = 0; i < h->count && !h->no_network; i++)
        if (h->at[i].fresh)
            h->partners[h->partner_count++] = (uint32_t)i;
    h->links_until_s = kl_monotonic_s() + h->patience_s;
    h->phase = LINKING;
    h->round = 0;
    if (kl_link_rounds(h->partner_count) > 0)
        start_round(h);
}

/* Do the next step of the measurement: ask more hosts, begin to measure links, or begin the next round of
 * links. No round begins after the time for measuring links is over. */
static void carry_on(kl_hosts *h) {
    while (h->phase == LOOKING && h->next < h->count && h->awaited < LOOKING_MOST)
        look_at(h, &h->at[h->next++]);
    if (h->phase == LOOKING && h->awaited == 0 && h->next == h->count)
        start_links(h);
    while (h->phase == LINKING && h->awaited == 0) {
        h->round++;
        if (h->round < kl_link_rounds(h->partner_count) && kl_monotonic_s() < h->links_until_s)
            start_round(h);
        else
            h->phase = IDLE;
    }
}

/* Wait until an agent writes something, until an expected answer is late, or until the given time. */
static void wait_and_hear(kl_hosts *h, double until_s) {
    struct epoll_event events[EVENTS];
    for (size_t i = 0; i < h->count && h->awaited > 0; i++)
        if (h->at[i].awaited)
            until_s = fmin(until_s, h->at[i].until_s);
    double wait_ms = ceil(1000 * (until_s - kl_monotonic_s()));
    int count = epoll_wait(h->epoll, events, EVENTS, wait_ms > 0 ? (int)fmin(wait_ms, 1e6) : 0);
    for (int i = 0; i < count; i++)
        hear(h, &h->at[events[i].data.u64]);
    give_up_late(h);
}

void kl_hosts_patience(kl_hosts *h, double patience_s) {
    h->patience_s = patience_s;
}

/* Begin a measurement. Agents that have ended since the last measurement are dropped first, and replaced
 * later. */
void kl_hosts_start(kl_hosts *h) {
    if (h->phase != IDLE)
        return;
    for (size_t i = 0; i <= h->count / EVENTS; i++)
        wait_and_hear(h, 0);
    h->phase = LOOKING;
    h->next = h->awaited = 0;
    for (size_t i = 0; i < h->count; i++)
        h->at[i].fresh = false;
}

bool kl_hosts_poll(kl_hosts *h, double timeout_s) {
    double end_s = kl_monotonic_s() + timeout_s;
    carry_on(h);
    do {
        wait_and_hear(h, h->phase == IDLE ? 0 : end_s);
        carry_on(h);
    } while (h->phase != IDLE && kl_monotonic_s() < end_s);
    return h->phase == IDLE;
}

int kl_hosts_fd(const kl_hosts *h) {
    return h->epoll;
}

/* --- the results of measurements --- */

size_t kl_hosts_count(const kl_hosts *h) {
    return h->count;
}

const kl_listed_host *kl_hosts_at(const kl_hosts *h, size_t i) {
    return &h->at[i].listed;
}

size_t kl_hosts_find(const kl_hosts *h, const char *name) {
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->at[i].listed.name, name) == 0)
            return i;
    return SIZE_MAX;
}

const kl_reading *kl_hosts_reading(const kl_hosts *h, size_t i) {
    return &h->at[i].reading;
}

const char *kl_hosts_trouble(const kl_hosts *h, size_t i) {
    return h->at[i].trouble;
}

const kl_link *kl_hosts_links(const kl_hosts *h, size_t *count) {
    *count = h->link_count;
    return h->links;
}

void kl_hosts_measured(kl_hosts *h, size_t i, double share) {
    h->at[i].share = share >= 0 ? fmin(share, 1) : NAN;
}

void kl_hosts_own(kl_hosts *h, size_t i, double threads) {
    h->at[i].own = threads > 0 ? threads : 0;
}

kilter_status kl_hosts_fitness(const kl_hosts *h, double weight, double stale_s, kl_fit *fits,
                               kilter_error *error) {
    kl_reading *readings = calloc(h->count + 1, sizeof *readings);
    uint32_t *slots = calloc(h->count + 1, sizeof *slots);
    kilter_status status = KILTER_ERR_MEMORY;
    for (size_t i = 0; readings && slots && i < h->count; i++) {
        readings[i] = h->at[i].reading;
        readings[i].measured = h->at[i].share;
        readings[i].own = h->at[i].own;
        slots[i] = h->at[i].listed.slots;
    }
    if (readings && slots)
        status = kl_fit_hosts(&(kl_fit_ask){.readings = readings,
                                            .slots = slots,
                                            .count = h->count,
                                            .links = h->links,
                                            .link_count = h->link_count,
                                            .now_s = kl_monotonic_s(),
                                            .weight = weight,
                                            .stale_s = stale_s},
                              fits, error);
    else
        kl_fail(error, status, "finding the fitness of hosts: memory ran out");
    free(readings);
    free(slots);
    return status;
}
