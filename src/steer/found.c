/* Remember which shares were best under the last loads. */
#include <string.h>

#include "steer/parts.h"

/* what trials have found is used again for this number of seconds */
static const double KNOWN_S = 60;

void kl_found_store(kl_found found[KL_LOADS], const kl_cores *c, uint32_t ranks, const kl_found *result) {
    kl_found *to = &found[0];
    for (int i = 0; i < KL_LOADS; i++) {
        kl_found *one = &found[i];
        if (one->at_s > 0 && !kl_cores_differ(c, ranks, one->part)) {
            to = one;
            break;
        }
        if (one->at_s < to->at_s)
            to = one;
    }
    memcpy(to->part, c->part, ranks * sizeof *to->part);
    to->at_s = result->at_s;
    to->choice = result->choice;
    to->depth = result->depth;
}

const kl_found *kl_found_before(const kl_found found[KL_LOADS], const kl_cores *c, uint32_t ranks,
                                double now_s) {
    for (int i = 0; i < KL_LOADS; i++)
        if (found[i].at_s > 0 && now_s - found[i].at_s < KNOWN_S && !kl_cores_differ(c, ranks, found[i].part))
            return &found[i];
    return NULL;
}
