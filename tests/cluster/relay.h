/* A relay passes bytes between one worker and the master. A test can cut this connection and mend it. Bytes
 * that are sent during the cut wait until the connection is mended, as on a network. */
#ifndef CLUSTER_RELAY_H
#define CLUSTER_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RELAY_CONNECTIONS = 4, /* a worker that joins again has several connections for some time */
    RELAY_FDS = 1 + 2 * RELAY_CONNECTIONS,
    RELAY_BUFFER_BYTES = 1 << 16,
};

typedef struct relay_flow { /* bytes in one direction of a connection */
    size_t from, to;        /* bytes[from] … bytes[to − 1] were received and not yet passed on */
    uint8_t bytes[RELAY_BUFFER_BYTES];
} relay_flow;

typedef struct relay_connection {
    int worker_fd, master_fd; /* file descriptors of the two connections; −1: no connection */
    bool worker_ended, master_ended;
    relay_flow up, down; /* up: bytes to the master; down: bytes to the worker */
} relay_connection;

typedef struct relay {
    int listen_fd;
    /* port: the relay's port on the loopback interface; master_port: the master's port */
    uint16_t port, master_port;
    bool cut;
    uint64_t bytes_down; /* number of bytes that were passed to the worker so far */
    relay_connection connections[RELAY_CONNECTIONS];
} relay;

/* Start the relay. Return false on failure; errno gives the reason. */
bool relay_open(relay *r, uint16_t master_port);
/* Fill in the descriptors on which the relay waits, for poll(). */
void relay_watch(const relay *r, struct pollfd events[RELAY_FDS]);
/* After poll(), pass on as many bytes as possible without waiting. */
void relay_turn(relay *r, const struct pollfd events[RELAY_FDS]);
void relay_close(relay *r);

#endif
