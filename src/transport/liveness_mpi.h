/* The failure detector of a farm under MPI. It is needed because MPI does not report dead ranks. There is a
 * TCP connection (line) between the master and each worker. On this connection, each side sends at most one
 * message, its last message. */
/* The system closes a line when a process at one of its ends dies, or when the other end's host is silent for
 * too long. Each worker has a random key, which it receives by MPI. The master ignores connections without
 * such a key. Private to the folder transport. */
#ifndef KL_LIVENESS_MPI_H
#define KL_LIVENESS_MPI_H

#include "base/base.h"

typedef struct kl_liveness kl_liveness;

/* Open the master's end, for one connection (line) to each of `workers` workers. A host that is silent for
 * lost_after_s counts as lost; lost_after_s is in whole seconds, at least 3. */
kilter_status kl_liveness_listen(size_t workers, double lost_after_s, kl_liveness **lines,
                                 kilter_error *error);
/* Append to `invitation` the data that worker number `worker` (0, 1, …) needs to connect. Keep the
 * invitation secret. */
void kl_liveness_invite(const kl_liveness *lines, size_t worker, kl_buffer *invitation);
/* Open the worker's end and connect to the master within patience_s. KILTER_ERR_INPUT: the data is not an
 * invitation. */
kilter_status kl_liveness_connect(const void *invitation, size_t size, double lost_after_s, double patience_s,
                                  kl_liveness **lines, kilter_error *error);
/* Accept connections, and check whether a connection (line) was cut. If so, set *worker to the worker at its
 * other end, and return true. At a worker, *worker is 0 and means the master. Each cut is reported once. */
bool kl_liveness_cut(kl_liveness *lines, size_t *worker);
/* Return a descriptor that is readable when kl_liveness_cut() should be called. */
int kl_liveness_fd(const kl_liveness *lines);

/* greatest number of bytes of a last message; the system accepts this many without waiting */
enum { KL_LAST_WORDS_BYTES = 1024 };
/* Send a last message on a connection (line) that is about to be closed. */
void kl_liveness_say(kl_liveness *lines, size_t worker, const void *words, size_t size);
/* Get the last message on the connection (line) that was cut most recently. false: no message of this size
 * came. */
bool kl_liveness_heard(const kl_liveness *lines, void *words, size_t size);
void kl_liveness_close(kl_liveness *lines); /* close all lines of this end; NULL: do nothing */

#endif
