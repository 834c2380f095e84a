/* Access control for tcp connections: CURVE of libzmq, and the handler of its authentication requests (ZAP,
 * RFC 27). Private to transport_zmq.c. */
#ifndef KL_ZMQ_CURVE_H
#define KL_ZMQ_CURVE_H

#include "transport/transport.h"

enum { KL_CURVE_BYTES = 64 }; /* greatest number of bytes that encryption adds to a frame */

/* Set the keys of a socket before it binds or connects. false: libzmq refused. */
bool kl_zmq_set_key(void *socket, const kl_key *key, bool is_master);
/* Open the handler for all sockets of `context` before any of them binds. NULL: it failed, and errno says
 * why. New connections wait until it is served. */
void *kl_zmq_gate_open(void *context);
/* Admit waiting connections that have the workers' key and refuse all others. The call does not wait. */
void kl_zmq_gate_serve(void *gate, const kl_key *key);

#endif
