/* Group the chunks of a run into rounds. */
#include <math.h>
#include <stdlib.h>

#include "report/reading.h"
#include "report/report.h"

typedef struct rounds {
    double *units; /* units[i]: units of work done in round i; the capacity of the array is a power of two */
    size_t count;
    uint32_t workers, chunks; /* workers: greatest number of chunks in a round; chunks: number of chunks in
                                 the last round */
    bool memory;              /* true: memory ran out while chunks were read */
} rounds;

static void begin_round(rounds *r) {
    if ((r->count & (r->count - 1)) == 0) { /* the array is full, because its length is 0, 1, 2, 4, … */
        double *more = realloc(r->units, (r->count ? 2 * r->count : 1) * sizeof *more);
        if (!more) {
            r->memory = true;
            return;
        }
        r->units = more;
    }
    r->units[r->count++] = 0;
    r->chunks = 0;
}

static void take_units(void *context, sqlite3_stmt *row) {
    rounds *r = context;
    double units = kl_record_real(row, 0);
    if (!(units > 0) || !isfinite(units) || r->memory)
        return;
    if (r->count == 0 || r->chunks == r->workers)
        begin_round(r);
    if (r->memory)
        return;
    r->units[r->count - 1] += units;
    r->chunks++;
}

kilter_status kl_report_rounds(const char *path, uint64_t run, uint32_t workers, double **part, size_t *count,
                               kilter_error *error) {
    rounds r = {.workers = workers ? workers : 1};
    kilter_status status =
        kl_record_ask(path, "SELECT units FROM chunk WHERE run = ?1 AND NOT lost ORDER BY chunk",
                      (int64_t)run, take_units, &r, error);
    if (status == KILTER_OK && r.memory)
        status = kl_fail(error, KILTER_ERR_MEMORY, "reading the run record '%s': memory ran out", path);
    if (status != KILTER_OK) {
        free(r.units);
        return status;
    }
    double sum = 0;
    for (size_t i = 0; i < r.count; i++)
        sum += r.units[i];
    for (size_t i = 0; i < r.count; i++)
        r.units[i] /= sum;
    *part = r.units;
    *count = r.count;
    return KILTER_OK;
}
