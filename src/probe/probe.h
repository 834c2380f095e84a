/* Door of room probe: what a message costs, found by sending some and timing their echoes. The probe says how
 * much to send and keeps the time; whoever speaks the protocol sends. */
#ifndef KL_PROBE_H
#define KL_PROBE_H

#include "sys/sys.h"

/* The probing of one worker: small and large messages in turn, one at a time. Zeroed is at its beginning. */
typedef struct kl_probe {
    uint32_t answered;
    double sent_s;
} kl_probe;

enum { KL_PROBE_MOST_BYTES = 65536 };

/* The next exchange begins: how many bytes to send, at most KL_PROBE_MOST_BYTES. */
size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock);
/* An echo of `bytes` bytes came. false: not the one under way. Else *one_way_s is half the exchange; 0 for
 * the first one, which only warms up. */
bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock, double *one_way_s);
bool kl_probe_done(const kl_probe *probe);

#endif
