/* Door of room probe: measure what a message costs by sending some and timing their echoes. The probe chooses
 * the sizes and keeps the time; the caller sends. */
#ifndef KL_PROBE_H
#define KL_PROBE_H

#include "sys/sys.h"

/* The probing of one worker: small and large messages alternate, one at a time. A zeroed one is at its
 * beginning. */
typedef struct kl_probe {
    uint32_t answered;
    double sent_s;
    double small_s, large_s; /* quickest exchanges so far; 0: none */
} kl_probe;

enum { KL_PROBE_SMALL_BYTES = 8, KL_PROBE_LARGE_BYTES = 65536 };

/* Begin the next exchange and return the number of bytes to send, one of the two sizes above. */
size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock);
/* Record the echo of `bytes` bytes. Return false when no such exchange is in progress. */
bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock);
/* After the last exchange, small_s and large_s are the undisturbed round trips of a message. */
bool kl_probe_done(const kl_probe *probe);

#endif
