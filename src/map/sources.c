/* Combine values from several lists: all combinations, or pairs of values at the same position. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "map/map.h"

bool kl_map_source_begin(kl_map_source *s) {
    uint64_t *begins = kl_array_grow(s->begins, &s->room, s->count + 1, sizeof *begins);
    if (!begins)
        return false;
    s->begins = begins;
    begins[s->count++] = s->text.size;
    return true;
}

bool kl_map_source_lines(kl_map_source *s, const char *bytes, size_t size, char delimiter) {
    bool good = true;
    while (size > 0 && good) {
        const char *end = memchr(bytes, delimiter, size);
        size_t length = end ? (size_t)(end - bytes) : size, used = end ? length + 1 : size;
        good = kl_map_source_begin(s);
        kl_put_bytes(&s->text, bytes, length);
        kl_put_u8(&s->text, 0);
        bytes += used;
        size -= used;
    }
    return good && !s->text.failed;
}

void kl_map_source_free(kl_map_source *s) {
    kl_buffer_free(&s->text);
    free(s->begins);
    *s = (kl_map_source){0};
}

/* Return the number of sources that are paired one to one, beginning with the first one at `s`. *length is
 * set to the number of records of the shortest of them. */
static size_t group_of(const kl_map_source *s, size_t count, uint64_t *length) {
    size_t members = 1;
    *length = s->count;
    for (; members < count && s[members].beside; members++)
        *length = s[members].count < *length ? s[members].count : *length;
    return members;
}

uint64_t kl_map_combinations(const kl_map_source *sources, size_t count) {
    uint64_t all = count > 0, length;
    for (size_t i = 0; i < count;) {
        i += group_of(sources + i, count - i, &length);
        if (length > 0 && all > (UINT64_MAX - 1) / length)
            return UINT64_MAX;
        all *= length;
    }
    return all;
}

static void put_record(const kl_map_source *s, uint64_t i, kl_buffer *values) {
    uint64_t end = i + 1 < s->count ? s->begins[i + 1] : s->text.size;
    kl_put_bytes(values, s->text.data + s->begins[i], end - s->begins[i]);
}

void kl_map_put_combination(const kl_map_source *sources, size_t count, uint64_t i, kl_buffer *values) {
    for (size_t first = 0; first < count;) {
        uint64_t length;
        size_t members = group_of(sources + first, count - first, &length);
        uint64_t below = kl_map_combinations(sources + first + members, count - first - members);
        below = first + members < count ? below : 1;
        assert(length > 0 && below > 0); /* the caller gives a combination that exists */
        for (size_t k = 0; k < members; k++)
            put_record(&sources[first + k], i / below % length, values);
        first += members;
    }
}
