/* Compute the transfers of iterations that lead from old shares to new ones. */
#include "steer/steer.h"

static uint64_t above(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* Go through the ranks once: each rank with too many iterations gives to the next rank with too few. */
size_t kl_transfers(uint32_t ranks, const uint64_t *before, const uint64_t *after, kl_transfer *transfers) {
    size_t count = 0;
    uint32_t from = 0, to = 0;
    /* given: iterations that rank `from` has given so far; taken: iterations that rank `to` has taken */
    uint64_t given = 0, taken = 0;
    for (;;) {
        while (from < ranks && above(before[from], after[from]) == given) {
            from++;
            given = 0;
        }
        while (to < ranks && above(after[to], before[to]) == taken) {
            to++;
            taken = 0;
        }
        if (from == ranks || to == ranks)
            return count;
        uint64_t surplus = before[from] - after[from] - given, want = after[to] - before[to] - taken;
        uint64_t some = surplus < want ? surplus : want;
        transfers[count++] = (kl_transfer){from, to, some};
        given += some;
        taken += some;
    }
}

uint64_t kl_transfers_busiest(uint32_t ranks, const uint64_t *before, const uint64_t *after) {
    uint64_t most = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        uint64_t some = above(before[r], after[r]) + above(after[r], before[r]);
        most = some > most ? some : most;
    }
    return most;
}

/* Compute the bounds after one stage. Rows move only to neighbours, so no bound may pass the old place of
 * the next bound. After s such stages, bound r is as near to after[r] as before[r − s] and before[r + s]
 * allow. */
void kl_bounds_stage(uint32_t ranks, const uint64_t *before, const uint64_t *after, uint64_t *stage) {
    stage[0] = before[0];
    stage[ranks] = before[ranks];
    for (uint32_t r = 1; r < ranks; r++) {
        uint64_t lowest = before[r - 1], highest = before[r + 1];
        stage[r] = after[r] < lowest ? lowest : after[r] > highest ? highest : after[r];
    }
}

uint64_t kl_flow_busiest(uint32_t ranks, const uint64_t *before, const uint64_t *after) {
    uint64_t most = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        uint64_t some = above(before[r], after[r]) + above(after[r], before[r]) +
                        above(before[r + 1], after[r + 1]) + above(after[r + 1], before[r + 1]);
        most = some > most ? some : most;
    }
    return most;
}
