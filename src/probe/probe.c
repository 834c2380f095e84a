#include "probe/probe.h"

/* Number of exchanges of each size. The first exchange only warms up; the rest are many enough to outvote a
 * disturbed one and few enough to take a few milliseconds. */
static const size_t SIZES[] = {KL_PROBE_SMALL_BYTES, KL_PROBE_SMALL_BYTES, KL_PROBE_LARGE_BYTES,
                               KL_PROBE_SMALL_BYTES, KL_PROBE_LARGE_BYTES, KL_PROBE_SMALL_BYTES,
                               KL_PROBE_LARGE_BYTES};
enum { EXCHANGES = sizeof SIZES / sizeof SIZES[0] };

bool kl_probe_done(const kl_probe *probe) {
    return probe->answered == EXCHANGES;
}

size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock) {
    probe->sent_s = kl_now_s(clock);
    return SIZES[probe->answered];
}

bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock) {
    if (kl_probe_done(probe) || bytes != SIZES[probe->answered])
        return false;
    double took_s = kl_now_s(clock) - probe->sent_s;
    double *quickest = bytes == KL_PROBE_SMALL_BYTES ? &probe->small_s : &probe->large_s;
    if (probe->answered++ > 0 && (*quickest == 0 || took_s < *quickest))
        *quickest = took_s;
    return true;
}
