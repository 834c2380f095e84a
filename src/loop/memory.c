#include "loop/memory.h"

#include <stdlib.h>

bool kl_memory_grow(kl_memory *m) {
    kl_rows *more = realloc(m->rows, (m->layout->array_count + 1) * sizeof *more);
    if (more)
        m->rows = more;
    return more != NULL;
}

void kl_memory_free(kl_memory *m) {
    for (size_t a = 0; a < m->layout->array_count; a++)
        kl_rows_release(&m->rows[a]);
    free(m->rows);
}

bool kl_memory_take(kl_memory *m, kl_span own) {
    bool fits = true;
    for (size_t a = 0; a < m->layout->array_count && fits; a++)
        fits = kl_rows_take(&m->rows[a], kl_array_with_room(&m->layout->arrays[a], own), NULL) == KILTER_OK;
    return fits;
}

bool kl_memory_raise(kl_memory *m, size_t array, uint64_t room) {
    kl_array *a = &m->layout->arrays[array];
    kl_span own = kl_layout_own(m->layout), had = kl_array_with_room(a, own);
    uint64_t before = a->room;
    a->room = room > before ? room : before;
    kl_span has = kl_array_with_room(a, own);
    if (kl_rows_take(&m->rows[array], has, NULL) == KILTER_OK)
        return true;
    kl_rows_give(&m->rows[array], has, &had, 1);
    a->room = before;
    return false;
}

void kl_memory_give(kl_memory *m, const uint64_t *gone, const uint64_t *kept) {
    const kl_layout *l = m->layout;
    for (size_t a = 0; a < l->array_count; a++) {
        kl_span rest = kl_array_with_room(&l->arrays[a], kl_range_of(kept, l->rank));
        kl_rows_give(&m->rows[a], kl_array_with_room(&l->arrays[a], kl_range_of(gone, l->rank)), &rest, 1);
    }
}

bool kl_memory_widen(kl_memory *m, uint64_t more) {
    const kl_layout *l = m->layout;
    kl_span own = kl_layout_own(l);
    for (size_t a = 0; a < l->array_count; a++) {
        kl_array *array = &l->arrays[a];
        kl_span had = kl_array_with_room(array, own);
        array->room = array->halo + more;
        kl_span kept = kl_array_with_room(array, own);
        kl_rows_give(&m->rows[a], had, &kept, 1);
    }
    return kl_memory_take(m, own);
}
