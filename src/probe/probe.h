/* Door of room probe: what a message costs, found by sending some and timing their echoes. The probe says how
 * much to send and keeps the time; whoever speaks the protocol sends. */
#ifndef KL_PROBE_H
#define KL_PROBE_H

#include "sys/sys.h"

/* The probing of one worker: small and large messages in turn, one at a time. Zeroed is at its beginning. */
typedef struct kl_probe {
    uint32_t answered;
    double sent_s;
    double small_s, large_s; /* the quickest exchanges so far; 0: none */
} kl_probe;

enum { KL_PROBE_SMALL_BYTES = 8, KL_PROBE_LARGE_BYTES = 65536 };

/* The next exchange begins: how many bytes to send, one of the two above. */
size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock);
/* An echo of `bytes` bytes came. false: not the one under way. */
bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock);
/* When it is done small_s and large_s are what a message takes there and back when nothing comes between. */
bool kl_probe_done(const kl_probe *probe);

#endif
