#include "probe/probe.h"

/* Sizes in bytes of the messages that are sent one at a time, in order. The first exchange is only a
 * warm-up. Each size then occurs three times, so that a disturbed exchange does not count. All exchanges
 * together take only a few milliseconds. */
static const size_t SIZES[] = {KL_PROBE_SMALL_BYTES, KL_PROBE_SMALL_BYTES, KL_PROBE_LARGE_BYTES,
                               KL_PROBE_SMALL_BYTES, KL_PROBE_LARGE_BYTES, KL_PROBE_SMALL_BYTES,
                               KL_PROBE_LARGE_BYTES};
enum {
    EXCHANGES = sizeof SIZES / sizeof SIZES[0],
    BURST = 8, /* number of messages that are sent at once, which is called a burst */
    BURSTS_MOST = 4
};
/* Send further bursts until all bursts together have taken this many seconds, because other threads may
 * prolong one burst by some milliseconds. On a slow link, a single burst takes longer than this, and is
 * accurate enough. */
static const double BURSTING_S = 20e-3;

bool kl_probe_done(const kl_probe *probe) {
    uint32_t bursts = !probe->bursts ? 0 : probe->burst_count > 0 ? probe->burst_count : 1;
    return probe->answered == EXCHANGES + BURST * bursts;
}

bool kl_probe_waits(const kl_probe *probe) {
    return probe->answered > EXCHANGES && (probe->answered - EXCHANGES) % BURST != 0;
}

/* Handle the end of a burst. Plan another one if all bursts together have not taken BURSTING_S yet. */
static void end_burst(kl_probe *probe, double took_s) {
    if (probe->burst_s == 0 || took_s < probe->burst_s)
        probe->burst_s = took_s;
    probe->bursting_s += took_s;
    if (probe->burst_count < BURSTS_MOST && probe->bursting_s < BURSTING_S)
        probe->burst_count++;
}

static size_t present_size(const kl_probe *probe) {
    return probe->answered < EXCHANGES ? SIZES[probe->answered] : KL_PROBE_LARGE_BYTES;
}

size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock, uint32_t *messages) {
    probe->sent_s = kl_now_s(clock);
    *messages = probe->answered < EXCHANGES ? 1 : BURST;
    if (probe->answered == EXCHANGES)
        probe->burst_count = 1;
    return present_size(probe);
}

bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock) {
    if (kl_probe_done(probe) || bytes != present_size(probe))
        return false;
    double took_s = kl_now_s(clock) - probe->sent_s;
    double *quickest = bytes == KL_PROBE_SMALL_BYTES ? &probe->small_s : &probe->large_s;
    if (probe->answered > 0 && probe->answered < EXCHANGES && (*quickest == 0 || took_s < *quickest))
        *quickest = took_s;
    probe->answered++;
    if (probe->burst_count > 0 && (probe->answered - EXCHANGES) % BURST == 0)
        end_burst(probe, took_s);
    return true;
}

double kl_probe_byte_s(const kl_probe *probe) {
    double more_s = probe->burst_s - probe->large_s;
    return more_s > 0 ? more_s / (BURST - 1) / KL_PROBE_LARGE_BYTES : 0;
}

double kl_probe_copy_s(double small_s, double large_s) {
    /* sender and receiver each handle the message on its way there, and again on its way back */
    static const double SIDES = 4;
    double more_s = large_s - small_s;
    return more_s > 0 ? more_s / SIDES / (KL_PROBE_LARGE_BYTES - KL_PROBE_SMALL_BYTES) : 0;
}
