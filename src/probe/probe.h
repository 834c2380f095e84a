/* Public header of the folder probe: measure what a message costs, by sending some messages and timing their
 * echoes. The probe chooses the sizes and measures the time; its caller sends the messages. */
#ifndef KL_PROBE_H
#define KL_PROBE_H

#include "sys/sys.h"

/* The state of measuring the messages of one worker. Small and large messages are sent in turn, one at a
 * time. If the link is to be measured, several large messages are then sent at once (a burst). Bursts are
 * repeated until they have taken long enough. All zero: not begun. */
typedef struct kl_probe {
    uint32_t answered;
    /* true: measure the link, too; the caller may set this even after the single exchanges have ended */
    bool bursts;
    double sent_s;
    /* small_s, large_s: seconds of the shortest exchange of a small and of a large message; 0: none so far */
    double small_s, large_s;
    uint32_t burst_count; /* number of bursts that were begun */
    double burst_s;       /* seconds from sending the quickest burst to its last echo; 0: no burst so far */
    double bursting_s;    /* seconds of all bursts together */
} kl_probe;

enum { KL_PROBE_SMALL_BYTES = 8, KL_PROBE_LARGE_BYTES = 65536 };

/* Begin the next exchange. Return the bytes of each of its messages, which is one of the two sizes of a
 * probe. *messages: number of messages that the caller must send now. */
size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock, uint32_t *messages);
/* Record the arrival of an echo of `bytes` bytes. Return false when no exchange of this size is in progress.
 */
bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock);
/* Return whether the probe waits for more echoes of a burst. */
bool kl_probe_waits(const kl_probe *probe);
/* Return whether all exchanges have ended. After that, small_s and large_s are the seconds of an undisturbed
 * round trip. */
bool kl_probe_done(const kl_probe *probe);
/* Return the seconds that a link needs for each further byte of a stream of messages; 0: not measured. A
 * single message takes longer per byte, because it passes the links and switches on its way one after the
 * other. */
double kl_probe_byte_s(const kl_probe *probe);
/* Return the CPU seconds that one side spends on each byte of a message, from two round trips between
 * processes of one host; 0: not measured. Within a host there is no link. A round trip takes as long as the
 * CPU work of both sides, because one side waits while the other works. */
double kl_probe_copy_s(double small_s, double large_s);

#endif
