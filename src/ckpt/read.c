/* Read the rows of one rank from a checkpoint, and check them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/ckpt.h"

enum {
    PIECE_BYTES = 8 << 20, /* greatest number of bytes in one system call */
    BATCH = 4096,          /* number of rows whose checksums are read together */
};

static kilter_status damaged(const kl_ckpt_file *f, const char *what, uint64_t row, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_INPUT, "'%.200s' is damaged: the checksum of %s of row %llu is wrong",
                   f->path, what, kl_ull(row));
}

static kilter_status read_at(const kl_ckpt_file *f, void *data, uint64_t bytes, uint64_t at,
                             kilter_error *error) {
    uint8_t *to = data;
    while (bytes > 0) {
        size_t piece = bytes < PIECE_BYTES ? (size_t)bytes : PIECE_BYTES;
        ssize_t got = pread(f->descriptor, to, piece, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return kl_fail(error, KILTER_ERR_SYSTEM, "reading '%.200s': %s", f->path, strerror(errno));
        if (got == 0)
            return kl_fail(error, KILTER_ERR_INPUT, "'%.200s' is damaged: it is too short", f->path);
        to += got;
        at += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return KILTER_OK;
}

/* Return whether the part lies within a file of this size. */
static bool lies_within(const kl_ckpt_part *p, uint64_t size) {
    uint64_t bytes = (p->width > 0 ? p->width : 1) * (p->words ? sizeof(uint64_t) : 1);
    return p->at <= size && bytes > 0 && p->rows <= (size - p->at) / bytes;
}

kilter_status kl_ckpt_open(const char *path, const kl_ckpt_plan *plan, kl_ckpt_file *file,
                           kilter_error *error) {
    struct stat is;
    *file = (kl_ckpt_file){open(path, O_RDONLY | O_CLOEXEC), path, plan};
    if (file->descriptor < 0 || fstat(file->descriptor, &is) != 0) {
        int why = errno;
        kl_ckpt_close(file);
        return kl_fail(error, KILTER_ERR_SYSTEM, "reading '%.200s': %s", path, strerror(why));
    }
    for (size_t i = 0; i < plan->count; i++)
        if (!lies_within(&plan->parts[i], (uint64_t)is.st_size)) {
            kl_ckpt_close(file);
            return kl_fail(error, KILTER_ERR_INPUT, "'%.200s' is damaged: it is too short", path);
        }
    return KILTER_OK;
}

void kl_ckpt_close(kl_ckpt_file *file) {
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
}

/* --- rows --- */

static kilter_status check_rows(const kl_ckpt_file *f, size_t array, kl_span rows, const uint8_t *data,
                                kilter_error *error) {
    const kl_ckpt_part *sums = kl_ckpt_array_sums(f->plan, array);
    size_t bytes = kl_ckpt_array(f->plan, array)->width;
    uint64_t batch[BATCH];
    for (uint64_t lo = rows.lo; lo < rows.hi; lo += BATCH) {
        uint64_t count = rows.hi - lo < BATCH ? rows.hi - lo : BATCH;
        kilter_status status = read_at(f, batch, count * sizeof *batch, sums->at + lo * sizeof *batch, error);
        if (status != KILTER_OK)
            return status;
        for (uint64_t i = 0; i < count; i++)
            if (batch[i] != kl_ckpt_checksum(array, lo + i, data + (lo + i - rows.lo) * bytes, bytes))
                return damaged(f, kl_ckpt_array(f->plan, array)->name, lo + i, error);
    }
    return KILTER_OK;
}

kilter_status kl_ckpt_read_rows(const kl_ckpt_file *f, size_t array, kl_span rows, uint8_t *to,
                                kilter_error *error) {
    const kl_ckpt_part *part = kl_ckpt_array(f->plan, array);
    kilter_status status =
        read_at(f, to, kl_length(rows) * part->width, part->at + rows.lo * part->width, error);
    return status == KILTER_OK ? check_rows(f, array, rows, to, error) : status;
}

/* --- reading the kept values --- */

kilter_status kl_ckpt_read_values(const kl_ckpt_file *f, const kl_ckpt_kept *values, kilter_error *error) {
    for (uint64_t v = 0; v < f->plan->facts.values; v++) {
        uint64_t sum;
        kilter_status status =
            read_at(f, values[v].at, values[v].bytes, kl_ckpt_value(f->plan, v)->at, error);
        if (status == KILTER_OK)
            status = read_at(f, &sum, sizeof sum, kl_ckpt_value_sums(f->plan)->at + v * sizeof sum, error);
        if (status != KILTER_OK)
            return status;
        if (sum != kl_ckpt_checksum(KL_CKPT_OF_VALUES, v, values[v].at, values[v].bytes))
            return kl_fail(error, KILTER_ERR_INPUT,
                           "'%.200s' is damaged: the checksum of the value '%s' is wrong", f->path,
                           values[v].name);
    }
    return KILTER_OK;
}

/* --- content --- */

static kilter_status no_memory(const kl_ckpt_file *f, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "reading the content of rows from '%.200s': memory ran out",
                   f->path);
}

/* Read the index entries of the rows in the parcel, and set the size of each row's content. */
static kilter_status read_index(const kl_ckpt_file *f, kl_parcel *p, uint64_t (*index)[KL_CKPT_INDEX_WORDS],
                                kilter_error *error) {
    const kl_ckpt_part *part = kl_ckpt_content_index(f->plan), *data = kl_ckpt_content(f->plan);
    for (uint64_t i = 0, count; i < p->count; i += count) {
        for (count = 1; i + count < p->count && p->items[i + count].row == p->items[i].row + count;)
            count++;
        kilter_status status =
            read_at(f, index[i], count * sizeof *index, part->at + p->items[i].row * sizeof *index, error);
        if (status != KILTER_OK)
            return status;
    }
    for (uint64_t i = 0; i < p->count; i++) {
        uint64_t at = index[i][KL_CKPT_INDEX_AT], bytes = index[i][KL_CKPT_INDEX_BYTES];
        if (bytes > 0 && (at > data->rows || bytes > data->rows - at))
            return damaged(f, "the content", p->items[i].row, error);
        p->items[i].bytes = bytes;
    }
    return KILTER_OK;
}

static kilter_status read_data(const kl_ckpt_file *f, const kl_parcel *p,
                               uint64_t (*index)[KL_CKPT_INDEX_WORDS], kilter_error *error) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < p->count; i++) {
        const kl_item *item = &p->items[i];
        kilter_status status = read_at(f, p->data + at, item->bytes,
                                       kl_ckpt_content(f->plan)->at + index[i][KL_CKPT_INDEX_AT], error);
        if (status != KILTER_OK)
            return status;
        const void *data = item->bytes > 0 ? p->data + at : (const void *)"";
        if (index[i][KL_CKPT_INDEX_SUM] != kl_ckpt_checksum(KL_CKPT_OF_CONTENT, item->row, data, item->bytes))
            return damaged(f, "the content", item->row, error);
        at += kl_item_room(item);
    }
    return KILTER_OK;
}

kilter_status kl_ckpt_read_content(const kl_ckpt_file *f, kl_parcel *p, kilter_error *error) {
    uint64_t(*index)[KL_CKPT_INDEX_WORDS] = calloc(p->count + 1, sizeof *index);
    if (!index)
        return no_memory(f, error);
    kilter_status status = read_index(f, p, index, error);
    if (status == KILTER_OK && !(p->data = calloc(kl_parcel_bytes(p) + 1, 1)))
        status = no_memory(f, error);
    if (status == KILTER_OK)
        status = read_data(f, p, index, error);
    free(index);
    return status;
}
