/* Door of room probe: measure what a message costs by sending some and timing their echoes. The probe chooses
 * the sizes and keeps the time; the caller sends. */
#ifndef KL_PROBE_H
#define KL_PROBE_H

#include "sys/sys.h"

/* The state of probing one worker. Small and large messages alternate, one at a time. Then, if the link is to
 * be measured, several large ones are sent at once, and again while that is quick. All zero: not begun. */
typedef struct kl_probe {
    uint32_t answered;
    bool bursts; /* true: measure the link, too; the caller may set this after the other exchanges */
    double sent_s;
    double small_s, large_s; /* shortest exchanges so far; 0: none */
    uint32_t burst_count;    /* number of bursts begun */
    double burst_s;          /* seconds until the last echo of a burst, in the quickest one; 0: none so far */
    double bursting_s;       /* seconds of all bursts together */
} kl_probe;

enum { KL_PROBE_SMALL_BYTES = 8, KL_PROBE_LARGE_BYTES = 65536 };

/* Begin the next exchange and return the size of its messages, one of the two above. *messages: number of
 * messages to send now */
size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock, uint32_t *messages);
/* Record the echo of `bytes` bytes. Return false when no such exchange is in progress. */
bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock);
bool kl_probe_waits(
    const kl_probe *probe); /* Return whether the probe waits for more echoes of messages that were sent. */
/* Return whether all exchanges have ended. Then small_s and large_s are the undisturbed round trips of a
 * message. */
bool kl_probe_done(const kl_probe *probe);
/* Return the seconds that a link needs for each further byte of a long stream; 0: not measured. A single
 * message takes longer per byte, because it passes one station of its way after the other. */
double kl_probe_byte_s(const kl_probe *probe);
/* Return the CPU seconds of one side for each byte of a message, if both sides share a host; 0: not measured.
 * No link takes part then, and one side waits while the other works. */
double kl_probe_copy_s(const kl_probe *probe);

#endif
