/* cluster-switch CONTROL INTERFACE…: an Ethernet switch between simulated links. Each link has a delay, a
 * rate and a probability of loss, and can be cut.
 *
 * Each INTERFACE is the outer end of a pair of virtual network interfaces (veth). It becomes a port of the
 * switch: port 0, 1, 2, … in the given order. CONTROL is a fifo for commands. A command takes effect at once;
 * then the switch prints the command's first word:
 *
 *   WORD PORT set DELAY_US RATE_BYTES_PER_S LOSS_PERMILLE     rate 0: no limit
 *   WORD PORT down     drop all frames of the port, also frames on their way to the port
 *   WORD PORT up       pass frames again
 *
 * A new delay or rate does not affect frames on their way. A frame takes the time delay + bytes/rate at the
 * port where it arrives. It takes this time again at the port where it leaves, with that port's numbers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_PORTS = 64,
    /* large packets arrive undivided, because the kernel leaves it to the network card to divide them */
    FRAME_BYTES = 70000,
    HEADER_BYTES = sizeof(struct virtio_net_hdr),
    QUEUE_BYTES =
        /* bytes that may wait for a port; if more would wait, the switch drops the new frame, as a real
         * switch does */
    400000,
    /* number of frames that the switch reads from one port at most, before it reads the other ports */
    BURST = 64,
};

typedef struct cable {
    bool up;
    double delay_s, rate_bytes_per_s;
    int loss_permille;
    /* times at which all earlier frames have passed the port's link, into the switch and out of it */
    double in_free_s, out_free_s;
} cable;

typedef struct port {
    int fd;
    cable cable;
    bool known; /* true: `mac` is the hardware address behind the port */
    unsigned char mac[ETH_ALEN];
} port;

typedef struct frame {
    double leaves_s;
    uint64_t order; /* number of the frame in the order of arrival; frames that leave at the same time keep
                       this order */
    size_t to, bytes;
    unsigned char *data;
} frame;

typedef struct network {
    port ports[MOST_PORTS];
    size_t port_count;
    frame *under_way; /* heap of all frames on their way; the next frame to leave is first */
    size_t under_way_count, under_way_room;
    uint64_t arrived;
} network;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void give_up(const char *what) {
    fprintf(stderr, "cluster-switch: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- frames on their way --- */

static bool leaves_before(const frame *a, const frame *b) {
    return a->leaves_s < b->leaves_s || (a->leaves_s == b->leaves_s && a->order < b->order);
}

static void push(network *net, frame f) {
    if (net->under_way_count == net->under_way_room) {
        net->under_way_room = net->under_way_room ? 2 * net->under_way_room : 256;
        net->under_way = realloc(net->under_way, net->under_way_room * sizeof *net->under_way);
        if (!net->under_way)
            give_up("memory");
    }
    size_t at = net->under_way_count++;
    for (; at > 0 && leaves_before(&f, &net->under_way[(at - 1) / 2]); at = (at - 1) / 2)
        net->under_way[at] = net->under_way[(at - 1) / 2];
    net->under_way[at] = f;
}

static frame pop(network *net) {
    frame first = net->under_way[0], last = net->under_way[--net->under_way_count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < net->under_way_count) {
        if (child + 1 < net->under_way_count &&
            leaves_before(&net->under_way[child + 1], &net->under_way[child]))
            child++;
        if (!leaves_before(&net->under_way[child], &last))
            break;
        net->under_way[at] = net->under_way[child];
        at = child;
    }
    net->under_way[at] = last;
    return first;
}

static void send_what_is_due(network *net) {
    while (net->under_way_count > 0 && net->under_way[0].leaves_s <= now_s()) {
        frame f = pop(net);
        if (net->ports[f.to].cable.up)
            (void)!send(net->ports[f.to].fd, f.data, f.bytes,
                        0); /* if a frame cannot be written, it is lost, as on a full network card */
        free(f.data);
    }
}

/* --- when a frame leaves, and through which port --- */

/* Return the time at which a frame has passed a link in one direction; the frame arrives at start_s. A
 * negative time means that the frame is lost, because the link's queue is full. */
static double pass(const cable *l, double *free_s, double start_s, size_t bytes) {
    if (l->rate_bytes_per_s <= 0)
        return start_s;
    double from_s = *free_s > start_s ? *free_s : start_s;
    if ((from_s - start_s) * l->rate_bytes_per_s > QUEUE_BYTES)
        return -1;
    return *free_s = from_s + (double)bytes / l->rate_bytes_per_s;
}

static bool is_lost(const cable *a, const cable *b) {
    int permille = a->loss_permille + b->loss_permille;
    return permille > 0 && random() % 1000 < permille;
}

static void carry(network *net, port *from, size_t to, const unsigned char *data, size_t bytes) {
    cable *in = &from->cable, *out = &net->ports[to].cable;
    double in_s = pass(in, &in->in_free_s, now_s(), bytes);
    if (in_s < 0 || !out->up || is_lost(in, out))
        return;
    double out_s = pass(out, &out->out_free_s, in_s + in->delay_s + out->delay_s, bytes);
    if (out_s < 0)
        return;
    frame f = {.leaves_s = out_s, .order = net->arrived++, .to = to, .bytes = bytes, .data = malloc(bytes)};
    if (!f.data)
        give_up("memory");
    memcpy(f.data, data, bytes);
    push(net, f);
}

static void forward(network *net, port *from, const unsigned char *data, size_t bytes) {
    const unsigned char *to_mac = data + HEADER_BYTES, *from_mac = to_mac + ETH_ALEN;
    memcpy(from->mac, from_mac, ETH_ALEN);
    from->known = true;
    bool is_for_many = to_mac[0] & 1;
    for (size_t i = 0; i < net->port_count && !is_for_many; i++)
        if (net->ports[i].known && memcmp(net->ports[i].mac, to_mac, ETH_ALEN) == 0) {
            if (&net->ports[i] != from)
                carry(net, from, i, data, bytes);
            return;
        }
    for (size_t i = 0; i < net->port_count; i++)
        if (&net->ports[i] != from)
            carry(net, from, i, data, bytes);
}

static void take_in(network *net, port *from) {
    static unsigned char data[FRAME_BYTES];
    for (int i = 0; i < BURST; i++) {
        ssize_t bytes = recv(from->fd, data, sizeof data, 0);
        if (bytes < HEADER_BYTES + ETH_HLEN)
            return;
        if (from->cable.up)
            forward(net, from, data, (size_t)bytes);
    }
}

/* --- control --- */

static void obey(network *net, const char *line) {
    size_t number;
    char token[64], word[8];
    double delay_us, rate;
    int loss;
    int fields = sscanf(line, "%63s %zu %7s %lf %lf %d", token, &number, word, &delay_us, &rate, &loss);
    if (fields < 3 || number >= net->port_count) {
        fprintf(stderr, "cluster-switch: '%s' does not have the form WORD PORT ACTION\n", line);
        return;
    }
    cable *l = &net->ports[number].cable;
    if (strcmp(word, "up") == 0)
        l->up = true;
    else if (strcmp(word, "down") == 0)
        l->up = false;
    else if (strcmp(word, "set") == 0 && fields == 6) {
        l->delay_s = 1e-6 * delay_us;
        l->rate_bytes_per_s = rate;
        l->loss_permille = loss;
        l->in_free_s = l->out_free_s = 0;
    } else
        fprintf(stderr, "cluster-switch: '%s': the action must be up, down or set\n", line);
    puts(token);
    fflush(stdout);
}

static void read_control(network *net, int fd) {
    char lines[4096], *rest = NULL;
    ssize_t bytes = read(fd, lines, sizeof lines - 1); /* lines are short, so each arrives in one piece */
    if (bytes <= 0)
        return;
    lines[bytes] = '\0';
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        obey(net, line);
}

/* --- starting the switch, and its loop --- */

static int open_port(const char *name) {
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
    int on = 1, buffer_bytes = 4 << 20;
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(name)};
    if (fd < 0 ||
        address.sll_ifindex ==
            0 || /* with this header, the kernel passes large packets undivided and without checksums */
        setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        give_up(name);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
    return fd;
}

static struct timespec until_next(const network *net) {
    double wait_s = net->under_way_count > 0 ? net->under_way[0].leaves_s - now_s() : 3600;
    if (wait_s < 0)
        wait_s = 0;
    time_t whole_s = (time_t)wait_s;
    return (struct timespec){.tv_sec = whole_s, .tv_nsec = (long)(1e9 * (wait_s - (double)whole_s))};
}

int main(int argc, char **argv) {
    static network net;
    struct pollfd events[MOST_PORTS + 1];
    if (argc < 3 || argc - 2 > MOST_PORTS) {
        fprintf(stderr, "usage: cluster-switch CONTROL INTERFACE… (at most %d)\n", MOST_PORTS);
        return 2;
    }
    int control =
        open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC); /* open the fifo for reading and writing, so that
                                                         * it does not end when a writer closes it */
    if (control < 0)
        give_up(argv[1]);
    for (net.port_count = 0; net.port_count < (size_t)argc - 2; net.port_count++) {
        port *p = &net.ports[net.port_count];
        *p = (port){.fd = open_port(argv[net.port_count + 2]), .cable.up = true};
        events[net.port_count] = (struct pollfd){.fd = p->fd, .events = POLLIN};
    }
    events[net.port_count] = (struct pollfd){.fd = control, .events = POLLIN};
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct timespec wait = until_next(&net);
        if (ppoll(events, net.port_count + 1, &wait, NULL) < 0 && errno != EINTR)
            give_up("waiting for frames failed");
        if (events[net.port_count].revents)
            read_control(&net, control);
        for (size_t i = 0; i < net.port_count; i++)
            if (events[i].revents)
                take_in(&net, &net.ports[i]);
        send_what_is_due(&net);
    }
}
