#include "probe/probe.h"

/* Enough to fit m_o + λ·bytes, few enough to take a few milliseconds. */
static const size_t SIZES[] = {8, 8, KL_PROBE_MOST_BYTES, 8, KL_PROBE_MOST_BYTES, 8};
enum { EXCHANGES = sizeof SIZES / sizeof SIZES[0] };

bool kl_probe_done(const kl_probe *probe) {
    return probe->answered == EXCHANGES;
}

size_t kl_probe_begin(kl_probe *probe, const kl_clock *clock) {
    probe->sent_s = kl_now_s(clock);
    return SIZES[probe->answered];
}

bool kl_probe_answered(kl_probe *probe, size_t bytes, const kl_clock *clock, double *one_way_s) {
    if (kl_probe_done(probe) || bytes != SIZES[probe->answered])
        return false;
    *one_way_s = probe->answered > 0 ? (kl_now_s(clock) - probe->sent_s) / 2 : 0;
    probe->answered++;
    return true;
}
