/* Who may talk over a tcp connection: CURVE of libzmq, and the gate where it asks (ZAP, RFC 27). Private to
 * transport_zmq.c. */
#ifndef KL_ZMQ_CURVE_H
#define KL_ZMQ_CURVE_H

#include "transport/transport.h"

enum { KL_CURVE_BYTES = 64 }; /* at most, that encryption adds to a frame */

/* Before the socket binds or connects. */
bool kl_zmq_set_key(void *socket, const kl_key *key, bool is_master);
/* The gate of all sockets of `context`, which is to be open before one of them binds; NULL: errno says why.
 * As long as nobody serves it, newcomers wait. */
void *kl_zmq_gate_open(void *context);
/* Lets those in who wait there with the workers' key, and nobody else. Returns at once. */
void kl_zmq_gate_serve(void *gate, const kl_key *key);

#endif
