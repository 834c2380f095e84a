/* Fuzz target: read the file of a rank, and judge two ranks that have this file. A whole file is too long for
 * a fuzzer. So the input gives only the first bytes of the file and the first bytes of its ring buffer. If
 * the file is accepted, all numbers of the judgement must be in their range. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_part(double value) {
    return value >= 0 && value <= 1 + 1e-9;
}

static void judge(kl_watch_rank *rank) {
    kl_watch_found f;
    kl_watch_rank ranks[2] = {*rank, *rank};
    ranks[0].rank = 0;
    ranks[1].rank = 1;
    if (kl_watch_judge(ranks, 2, &f, NULL) != KILTER_OK)
        return;
    if (!is_part(f.load_balance) || !is_part(f.communication) || !is_part(f.parallel) ||
        !(f.even.least_s <= f.even.most_s) || !(f.follow.least_s <= f.follow.most_s) ||
        !memchr(f.reason, '\0', sizeof f.reason))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_watch_file *f = calloc(1, sizeof *f);
    kl_watch_rank rank;
    if (!f || size < 2) {
        free(f);
        return 0;
    }
    memcpy(f->magic, KL_WATCH_MAGIC, sizeof f->magic);
    f->version = KL_WATCH_VERSION;
    f->bytes = sizeof *f;
    size_t head = (size_t)(data[0] | data[1] << 8) % 1024, first = size - 2 < head ? size - 2 : head;
    memcpy((uint8_t *)f + offsetof(kl_watch_file, rank), data + 2, first);
    size_t rest = size - 2 - first < sizeof f->ring ? size - 2 - first : sizeof f->ring;
    memcpy(f->ring, data + 2 + first, rest);
    if (kl_watch_read((kilter_bytes){(const uint8_t *)f, sizeof *f}, "file", &rank, NULL) == KILTER_OK) {
        judge(&rank);
        kl_watch_rank_free(&rank);
    }
    if (kl_watch_read((kilter_bytes){data, size}, "file", &rank, NULL) == KILTER_OK)
        __builtin_trap(); /* the whole input is never accepted, because it is shorter than a file */
    free(f);
    return 0;
}
