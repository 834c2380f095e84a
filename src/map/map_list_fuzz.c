/* Fuzz target: read any text as a list of commands that wait for each other. If the list is accepted, every
 * command must run once, after all commands that it needs. If a command fails, exactly the commands that wait
 * for it, directly or through others, must be skipped. */
#include <stdlib.h>
#include <string.h>

#include "map/map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good) {
    if (!good)
        __builtin_trap();
}

static void run_all(const kl_map_list *list) {
    kl_map_waits w;
    must(kl_map_waits_open(list, &w) == KILTER_OK);
    for (uint64_t k = 0; k < list->count; k++) {
        must(k < w.ready_count);
        const kl_map_entry *e = &list->at[w.ready[k]];
        for (uint64_t n = 0; n < e->need_count; n++)
            must(w.over[list->needs[e->needs + n]]);
        must(!w.over[w.ready[k]] && *kl_map_list_command(list, w.ready[k]) != '\0');
        kl_map_waits_succeeded(&w, w.ready[k]);
    }
    must(w.ready_count == list->count);
    kl_map_waits_free(&w);
}

static void fail_first(const kl_map_list *list) {
    kl_map_waits w;
    uint64_t *skipped = calloc(list->count + 1, sizeof *skipped);
    must(skipped && kl_map_waits_open(list, &w) == KILTER_OK);
    uint64_t count = list->count > 0 ? kl_map_waits_failed(&w, w.ready[0], skipped) : 0, done = count;
    for (uint64_t k = 0; k < w.ready_count; k++, done++)
        if (k > 0)
            kl_map_waits_succeeded(&w, w.ready[k]);
    must(done == list->count);
    kl_map_waits_free(&w);
    free(skipped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_map_list list;
    kilter_error error;
    if (kl_map_list_parse("fuzz", (const char *)data, size, &list, &error) != KILTER_OK)
        return 0;
    run_all(&list);
    fail_first(&list);
    kl_map_list_free(&list);
    return 0;
}
