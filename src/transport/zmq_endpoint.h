/* Check the addresses of endpoints as users write them, and explain what is wrong with them. Private to the
 * folder transport. */
#ifndef KL_ZMQ_ENDPOINT_H
#define KL_ZMQ_ENDPOINT_H

#include "transport/transport.h"

/* Check whether a master may listen at `endpoint`, which must have passed kl_zmq_check(). The file at an ipc
 * path must not belong to another program, because libzmq removes it. */
kilter_status kl_zmq_may_listen(const char *endpoint, kilter_error *error);
/* Remove the endpoint's socket file, which libzmq leaves behind. Call this before the socket is closed,
 * while no other program can have replaced the file. */
void kl_zmq_stops_listening(const char *endpoint);
/* Check whether a worker may connect to the endpoint. The endpoint must name one address,
 * without a wildcard. */
kilter_status kl_zmq_may_join(const char *endpoint, kilter_error *error);
/* Choose an endpoint where a worker listens for other workers. `endpoint` is the master's endpoint. The
 * result is a file in the folder of the master's file, or a free port at this host's address towards the
 * master. */
kilter_status kl_zmq_address_of_worker(const char *endpoint, char address[KL_ADDRESS_BYTES],
                                       kilter_error *error);
/* Explain why listening at `endpoint` failed with the errno `code`. */
kilter_status kl_zmq_cannot_listen(const char *endpoint, int code, kilter_error *error);

#endif
