/* The contents of a loop's checkpoint, and the values that the program keeps in the checkpoint. */
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

kl_ckpt_facts kl_loop_facts(const kilter_loop *l) {
    const kilter_loop_options *o = &l->options;
    kl_ckpt_facts facts = {.version = KL_CKPT_VERSION,
                           .rows = o->iterations,
                           .kind = o->kind == KILTER_DOACROSS,
                           .inner = o->inner,
                           .arrays = l->rank.layout.array_count,
                           .content = l->rank.content.on,
                           .values = l->kept.count,
                           .ranks = l->bundle->group.ranks};
    kl_copy_label(facts.loop, sizeof facts.loop, (const uint8_t *)l->name, strlen(l->name));
    return facts;
}

bool kl_loop_plan(const kilter_loop *l, const kl_ckpt_facts *facts, uint64_t content_bytes,
                  kl_ckpt_plan *plan) {
    const kl_layout *layout = &l->rank.layout;
    uint64_t *bytes = calloc(2 * layout->array_count + 1, sizeof *bytes),
             *rows = bytes ? bytes + layout->array_count : NULL;
    for (size_t a = 0; a < layout->array_count && bytes; a++) {
        bytes[a] = layout->arrays[a].bytes;
        rows[a] = layout->arrays[a].map.rows;
    }
    bool made = bytes && kl_ckpt_plan_make(plan, facts, bytes, rows, content_bytes, l->kept.list);
    free(bytes);
    return made;
}

/* --- kilter_loop_keep() --- */

enum { MOST_BYTES = 1 << 20 };

static const char *check(const kilter_loop *l, const char *name, const void *pointer, size_t bytes) {
    if (!kl_ckpt_is_name(name))
        return "a name has 1 to 63 letters, digits, '_', '-' and '.', and begins with a letter";
    for (size_t v = 0; v < l->kept.count; v++)
        if (strcmp(l->kept.list[v].name, name) == 0)
            return "another value has this name";
    if (!pointer)
        return "the pointer to the value is NULL";
    return bytes == 0 || bytes > MOST_BYTES ? "a value has 1 to 2^20 bytes" : NULL;
}

kilter_status kilter_loop_keep(kilter_loop *l, const char *name, void *pointer, size_t bytes,
                               kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_keep()", error);
    if (status != KILTER_OK)
        return status;
    const char *wrong = check(l, name, pointer, bytes);
    if (!kl_loop_leads(l))
        wrong = "this loop follows another loop; give the value to that loop";
    if (wrong)
        return kl_fail(error, KILTER_ERR_RANGE, "keeping the value '%.80s' of loop '%s': %s",
                       name ? name : "(NULL)", l->name, wrong);
    if (l->bundle->phase == KL_WITHIN || l->bundle->begun || l->bundle->resumed)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "keeping the value '%s' of loop '%s': declare values before kilter_loop_resumed() and "
                       "the first kilter_loop_begin()",
                       name, l->name);
    kl_ckpt_kept *more = kl_array_grow(l->kept.list, &l->kept.room, l->kept.count + 1, sizeof *more);
    if (!more)
        return kl_fail(error, KILTER_ERR_MEMORY, "keeping the value '%s' of loop '%s': memory ran out", name,
                       l->name);
    l->kept.list = more;
    more[l->kept.count] = (kl_ckpt_kept){.at = pointer, .bytes = bytes};
    strcpy(more[l->kept.count++].name, name);
    return KILTER_OK;
}
