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
        fits = kl_rows_take(&m->rows[a], kl_layout_with_room(m->layout, own, a), NULL) == KILTER_OK;
    return fits;
}

void kl_memory_give(kl_memory *m, const uint64_t *gone, const uint64_t *kept) {
    const kl_layout *l = m->layout;
    for (size_t a = 0; a < l->array_count; a++) {
        kl_span rest = kl_layout_with_room(l, kl_range_of(kept, l->rank), a);
        kl_rows_give(&m->rows[a], kl_layout_with_room(l, kl_range_of(gone, l->rank), a), &rest, 1);
    }
}

bool kl_memory_widen(kl_memory *m, uint64_t more) {
    const kl_layout *l = m->layout;
    kl_span own = kl_layout_own(l);
    for (size_t a = 0; a < l->array_count; a++) {
        kl_array *array = &l->arrays[a];
        kl_span kept = kl_layout_with_halo(l, own, array->halo + more);
        kl_rows_give(&m->rows[a], kl_layout_with_room(l, own, a), &kept, 1);
        array->room = array->halo + more;
    }
    return kl_memory_take(m, own);
}
