/* How the ranks of a farm learn that another is dead, which MPI does not tell: a TCP connection between the
 * master and each worker that says nothing but last words, and that the system closes with the process, or
 * after some silence of the other's host. Private to room transport.
 *
 * Whoever reaches the master's port without the key of a worker, which is random and travels by MPI, is
 * nobody. */
#ifndef KL_LIVENESS_MPI_H
#define KL_LIVENESS_MPI_H

#include "base/base.h"

typedef struct kl_liveness kl_liveness;

/* The master's end, for `workers` of them. lost_after_s: of silence of a host, in whole seconds from 3. */
kilter_status kl_liveness_listen(size_t workers, double lost_after_s, kl_liveness **lines,
                                 kilter_error *error);
/* What worker 0, 1, … needs to connect; for nobody else to see. */
void kl_liveness_invite(const kl_liveness *lines, size_t worker, kl_buffer *invitation);
/* The worker's end: connects, within patience_s. KILTER_ERR_INPUT: that is no invitation. */
kilter_status kl_liveness_connect(const void *invitation, size_t size, double lost_after_s, double patience_s,
                                  kl_liveness **lines, kilter_error *error);
/* Takes in who connects. true: the line to *worker has been cut (at a worker: to the master, *worker is 0),
 * which is said once of each. */
bool kl_liveness_cut(kl_liveness *lines, size_t *worker);
int kl_liveness_fd(const kl_liveness *lines); /* readable: kl_liveness_cut() has something to look at */

enum { KL_LAST_WORDS_BYTES = 1024 }; /* at most; what the system takes without waiting */
/* On a line that is about to be closed. */
void kl_liveness_say(kl_liveness *lines, size_t worker, const void *words, size_t size);
/* What the other end had said on the line that was cut last. false: nothing of that size. */
bool kl_liveness_heard(const kl_liveness *lines, void *words, size_t size);
void kl_liveness_close(kl_liveness *lines); /* NULL does nothing */

#endif
