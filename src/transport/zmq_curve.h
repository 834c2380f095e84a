/* Access control for tcp connections: libzmq's encryption CURVE, and a handler of libzmq's authentication
 * requests (ZAP, RFC 27). Private to transport_zmq.c. */
#ifndef KL_ZMQ_CURVE_H
#define KL_ZMQ_CURVE_H

#include "transport/transport.h"

enum { KL_CURVE_BYTES = 64 }; /* greatest number of bytes that encryption adds to a frame */

/* Set the keys of a socket; call this before the socket binds or connects. false: libzmq refused the keys. */
bool kl_zmq_set_key(void *socket, const kl_key *key, bool is_master);
/* Open the handler of authentication requests for all sockets of `context`, before any of them binds. NULL:
 * it failed, and errno says why. New connections wait until kl_zmq_gate_serve() is called. */
void *kl_zmq_gate_open(void *context);
/* Admit waiting connections that have the workers' key and refuse all others. The call does not wait. */
void kl_zmq_gate_serve(void *gate, const kl_key *key);

#endif
