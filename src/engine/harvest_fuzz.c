/* Fuzz target: read any bytes as a value of peers. Combine an accepted value with itself and with others. */
#include "engine/harvest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void keep(void *into, const void *value, size_t bytes, void *user) {
    (void)into, (void)value, (void)bytes, (void)user;
}

static void read_all(const void *value, size_t size, size_t sum_bytes) {
    kl_harvest h;
    kl_harvest_stat stat;
    kl_harvest_segment segment;
    if (!kl_harvest_read(value, size, sum_bytes, &h))
        return;
    while (kl_harvest_next_stat(&h, &stat))
        ;
    while (kl_harvest_next_segment(&h, &segment)) {
        kl_reader results = kl_reader_of(segment.results.data, segment.results.size);
        for (uint32_t i = 0; i < segment.count; i++) {
            bool failed;
            kilter_bytes bytes;
            if (!kl_wire_next_result(&results, &failed, &bytes))
                __builtin_trap(); /* an accepted value must be readable to its end */
        }
    }
    if (!kl_reader_done(&h.reader))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (size_t sum_bytes = 0; sum_bytes <= 8; sum_bytes += 8) {
        kl_reaper reaper = {.reducer = {.combine = keep}, .sum_bytes = sum_bytes};
        kl_buffer into = {0};
        read_all(data, size, sum_bytes);
        for (int i = 0; i < 3; i++)
            if (kl_harvest_add(&reaper, &into, data, size))
                read_all(into.data, into.size, sum_bytes);
        kl_buffer_free(&into);
        kl_reaper_free(&reaper);
    }
    return 0;
}
