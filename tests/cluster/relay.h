/* A way for bytes between one worker and the master that can be cut: what is sent while it is cut waits, as
 * on a network, until it is mended. */
#ifndef CLUSTER_RELAY_H
#define CLUSTER_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RELAY_CONNECTIONS = 4, /* a worker that dials again has more than one for a while */
    RELAY_FDS = 1 + 2 * RELAY_CONNECTIONS,
    RELAY_BUFFER_BYTES = 1 << 16,
};

typedef struct relay_flow { /* one direction */
    size_t from, to;        /* of the bytes below, those not passed on yet */
    uint8_t bytes[RELAY_BUFFER_BYTES];
} relay_flow;

typedef struct relay_connection {
    int worker_fd, master_fd; /* −1: none */
    bool worker_ended, master_ended;
    relay_flow up, down; /* to the master, to the worker */
} relay_connection;

typedef struct relay {
    int listen_fd;
    uint16_t port, master_port; /* on the loopback interface */
    bool cut;
    uint64_t bytes_down; /* passed to the worker, in all */
    relay_connection connections[RELAY_CONNECTIONS];
} relay;

/* false: errno says why. */
bool relay_open(relay *r, uint16_t master_port);
/* What it waits for: exactly RELAY_FDS of them. */
void relay_watch(const relay *r, struct pollfd events[RELAY_FDS]);
/* Pass on what can be, after poll(). */
void relay_turn(relay *r, const struct pollfd events[RELAY_FDS]);
void relay_close(relay *r);

#endif
