/* Endpoints as users write them, and what can be wrong with them. Private to room transport. */
#ifndef KL_ZMQ_ENDPOINT_H
#define KL_ZMQ_ENDPOINT_H

#include "kilter/status.h"

/* May a master listen at `endpoint`, which kl_zmq_check() has passed? An ipc path must not be another's:
 * libzmq takes away whatever stands there. */
kilter_status kl_zmq_may_listen(const char *endpoint, kilter_error *error);
/* Take away the socket file, which libzmq leaves behind. Before the socket is closed, so that it is ours. */
void kl_zmq_stops_listening(const char *endpoint);
/* May a worker connect to it? It names one place. */
kilter_status kl_zmq_may_join(const char *endpoint, kilter_error *error);
/* Listening at `endpoint` failed with `code` of errno. */
kilter_status kl_zmq_cannot_listen(const char *endpoint, int code, kilter_error *error);

#endif
