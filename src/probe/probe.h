/* Door of room probe: measure what a message costs by sending some and timing their echoes. The probe chooses
 * the sizes and keeps the time; the caller sends. */
#ifndef KL_PROBE_H
#define KL_PROBE_H

#include "sys/sys.h"

/* The probing of one worker: small and large messages alternate, one at a time. Then, if the link is to be
 * measured, several large ones are sent at once. A zeroed one is at its beginning. */
typedef struct kl_probe {
    uint32_t answered;
    bool bursts; /* the link is measured, too: the caller may set it as soon as the rest is done */
    double sent_s;
    double small_s, large_s; /* quickest exchanges so far; 0: none */
    double burst_s;          /* until the last echo of the messages sent at once */
} kl_probe;

enum { KL_PROBE_SMALL_BYTES = 8, KL_PROBE_LARGE_BYTES = 65536 };

/* Begin the next exchange and return the size of its messages, one of the two above. *messages: number of
 * messages to send now */
size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock, uint32_t *messages);
/* Record the echo of `bytes` bytes. Return false when no such exchange is in progress. */
bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock);
bool kl_probe_waits(const kl_probe *probe); /* for more echoes of messages already sent */
/* After the last exchange, small_s and large_s are the undisturbed round trips of a message. */
bool kl_probe_done(const kl_probe *probe);
/* Return the seconds that a link needs for each further byte of a long stream. A message alone takes longer
 * per byte: it passes one station of its way after the other. 0: not measured */
double kl_probe_byte_s(const kl_probe *probe);

#endif
