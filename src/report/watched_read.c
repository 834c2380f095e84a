/* Read the tables that only the record of a watched MPI program has. */
#include <stdlib.h>

#include "report/fields.h"

void kl_watched_read(kl_reading *r) {
    kl_report_watched *w = r->report->watched = calloc(1, sizeof *w);
    r->memory |= !w;
    r->failed |= r->memory;
    if (!w)
        return;
    kl_row_read(r, &kl_watched_rows, w);
    w->rank = kl_rows_read(r, &kl_watched_rank_rows, w->rank, &w->rank_count);
    w->place = kl_rows_read(r, &kl_watched_place_rows, w->place, &w->place_count);
    w->slice = kl_rows_read(r, &kl_watched_slice_rows, w->slice, &w->slice_count);
}

void kl_watched_report_free(kl_report_watched *watched) {
    if (!watched)
        return;
    kl_row_free(&kl_watched_rows, watched);
    kl_rows_free(&kl_watched_rank_rows, watched->rank, watched->rank_count);
    kl_rows_free(&kl_watched_place_rows, watched->place, watched->place_count);
    kl_rows_free(&kl_watched_slice_rows, watched->slice, watched->slice_count);
    free(watched);
}
