#include "probe/probe.h"

/* Number of exchanges of each size. The first exchange only warms up; the rest are many enough to outvote a
 * disturbed one and few enough to take a few milliseconds. */
static const size_t SIZES[] = {KL_PROBE_SMALL_BYTES, KL_PROBE_SMALL_BYTES, KL_PROBE_LARGE_BYTES,
                               KL_PROBE_SMALL_BYTES, KL_PROBE_LARGE_BYTES, KL_PROBE_SMALL_BYTES,
                               KL_PROBE_LARGE_BYTES};
enum {
    EXCHANGES = sizeof SIZES / sizeof SIZES[0],
    BURST = 8 /* messages sent at once */
};

bool kl_probe_done(const kl_probe *probe) {
    return probe->answered == EXCHANGES + (probe->bursts ? BURST : 0);
}

bool kl_probe_waits(const kl_probe *probe) {
    return probe->answered > EXCHANGES && !kl_probe_done(probe);
}

static size_t present_size(const kl_probe *probe) {
    return probe->answered < EXCHANGES ? SIZES[probe->answered] : KL_PROBE_LARGE_BYTES;
}

size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock, uint32_t *messages) {
    probe->sent_s = kl_now_s(clock);
    *messages = probe->answered < EXCHANGES ? 1 : BURST;
    return present_size(probe);
}

bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock) {
    if (kl_probe_done(probe) || bytes != present_size(probe))
        return false;
    double took_s = kl_now_s(clock) - probe->sent_s;
    double *quickest = bytes == KL_PROBE_SMALL_BYTES ? &probe->small_s : &probe->large_s;
    if (probe->answered >= EXCHANGES)
        probe->burst_s = took_s;
    else if (probe->answered > 0 && (*quickest == 0 || took_s < *quickest))
        *quickest = took_s;
    probe->answered++;
    return true;
}

double kl_probe_byte_s(const kl_probe *probe) {
    double more_s = probe->burst_s - probe->large_s;
    return more_s > 0 ? more_s / (BURST - 1) / KL_PROBE_LARGE_BYTES : 0;
}
