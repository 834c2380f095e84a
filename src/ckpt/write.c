/* Write the rows of one rank to a checkpoint. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/ckpt.h"

enum {
    PIECE_BYTES = 8 << 20,  /* greatest number of bytes in one system call */
    DIRECT_BYTES = 1 << 20, /* fewer bytes than this are written through the page cache */
    BLOCK_BYTES = 4096,     /* alignment that direct writes need for positions, lengths and memory */
    BATCH = 4096,           /* number of rows whose checksums are written together */
};

/* The writer of a file. Large writes go to the disk directly, from memory that the writer already has.
 * Through the page cache, a checkpoint would need as many new pages as it has bytes. A virtual machine may
 * have to get each of these pages from its host. The checkpoint would also push the program's files out of
 * the cache. */
typedef struct writer {
    /* two descriptors of the same file; direct is −1 if the file system has no direct writes */
    int plain, direct;
    uint8_t *aligned; /* PIECE_BYTES */
    uint64_t block;   /* bytes that are written directly begin and end at multiples of this */
} writer;

/* Return the checksum of a row. Each row has its own seed, so a row that lies at another row's position is
 * noticed. */
uint64_t kl_ckpt_checksum(uint64_t part, uint64_t row, const void *data, size_t bytes) {
    return kl_hash(data, bytes, kl_mix64(row) + part);
}

/* --- writing --- */

static bool write_plainly(int descriptor, const uint8_t *from, uint64_t bytes, uint64_t at) {
    while (bytes > 0) {
        size_t piece = bytes < PIECE_BYTES ? (size_t)bytes : PIECE_BYTES;
        ssize_t written = pwrite(descriptor, from, piece, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            errno = written < 0 ? errno : EIO;
            return false;
        }
        from += written;
        at += (uint64_t)written;
        bytes -= (uint64_t)written;
    }
    return true;
}

/* Write whole blocks directly, if the file system supports this. Return the number of bytes written. */
static uint64_t write_directly(writer *w, const uint8_t *from, uint64_t bytes, uint64_t at) {
    uint64_t done = 0;
    while (done < bytes) {
        size_t piece = bytes - done < PIECE_BYTES ? (size_t)(bytes - done) : PIECE_BYTES;
        memcpy(w->aligned, from + done, piece);
        ssize_t written = pwrite(w->direct, w->aligned, piece, (off_t)(at + done));
        if (written <= 0 || (uint64_t)written % w->block != 0)
            break; /* the caller then writes normally, which succeeds or gives the error */
        done += (uint64_t)written;
    }
    return done;
}

static bool write_at(writer *w, const void *data, uint64_t bytes, uint64_t at) {
    const uint8_t *from = data;
    uint64_t head = -at % w->block, done = 0;
    if (w->direct < 0 || bytes < DIRECT_BYTES)
        return write_plainly(w->plain, from, bytes, at);
    done = head + write_directly(w, from + head, (bytes - head) / w->block * w->block, at + head);
    return write_plainly(w->plain, from, head, at) &&
           write_plainly(w->plain, from + done, bytes - done, at + done);
}

/* --- rows --- */

static bool write_sums(writer *w, const kl_ckpt_plan *plan, const kl_ckpt_piece *p) {
    const kl_ckpt_part *sums = kl_ckpt_array_sums(plan, p->array);
    size_t bytes = kl_ckpt_array(plan, p->array)->width;
    uint64_t batch[BATCH];
    bool written = true;
    for (uint64_t lo = p->rows.lo; lo < p->rows.hi && written; lo += BATCH) {
        uint64_t count = p->rows.hi - lo < BATCH ? p->rows.hi - lo : BATCH;
        for (uint64_t i = 0; i < count; i++)
            batch[i] = kl_ckpt_checksum(p->array, lo + i, p->from + (lo + i - p->rows.lo) * bytes, bytes);
        written = write_at(w, batch, count * sizeof *batch, sums->at + lo * sizeof *batch);
    }
    return written;
}

static bool write_rows(writer *w, const kl_ckpt_plan *plan, const kl_ckpt_share *share) {
    bool written = true;
    for (size_t i = 0; i < share->count && written; i++) {
        const kl_ckpt_piece *p = &share->pieces[i];
        const kl_ckpt_part *part = kl_ckpt_array(plan, p->array);
        written =
            write_at(w, p->from, kl_length(p->rows) * part->width, part->at + p->rows.lo * part->width) &&
            write_sums(w, plan, p);
    }
    return written;
}

/* --- content --- */

/* Fill in the index entries of adjacent rows, and return the number of these rows. first: index of the first
 * row's item in the parcel; *at: offset of the first row's content in the parcel's data, which is then set to
 * the offset of the row after the last one. */
static uint64_t fill_index(const kl_ckpt_share *share, uint64_t first, uint64_t *at,
                           uint64_t index[BATCH][KL_CKPT_INDEX_WORDS]) {
    const kl_parcel *p = share->content;
    uint64_t count = 0;
    while (count < BATCH && first + count < p->count &&
           p->items[first + count].row == p->items[first].row + count) {
        const kl_item *item = &p->items[first + count];
        uint64_t *words = index[count++];
        const void *data = item->bytes > 0 ? p->data + *at : (const void *)"";
        words[KL_CKPT_INDEX_AT] = share->content_at + *at;
        words[KL_CKPT_INDEX_BYTES] = item->bytes;
        words[KL_CKPT_INDEX_SUM] = kl_ckpt_checksum(KL_CKPT_OF_CONTENT, item->row, data, item->bytes);
        *at += kl_item_room(item);
    }
    return count;
}

static bool write_content(writer *w, const kl_ckpt_plan *plan, const kl_ckpt_share *share) {
    const kl_parcel *p = share->content;
    const kl_ckpt_part *index_part = kl_ckpt_content_index(plan);
    uint64_t(*index)[KL_CKPT_INDEX_WORDS] = malloc(BATCH * sizeof *index);
    uint64_t at = 0, count = 0;
    errno = ENOMEM;
    bool written =
        index && write_at(w, p->data, kl_parcel_bytes(p), kl_ckpt_content(plan)->at + share->content_at);
    for (uint64_t i = 0; i < p->count && written; i += count) {
        count = fill_index(share, i, &at, index);
        written = write_at(w, index, count * sizeof *index, index_part->at + p->items[i].row * sizeof *index);
    }
    int why = errno;
    free(index);
    errno = why;
    return written;
}

/* --- writing the kept values --- */

static bool write_values(writer *w, const kl_ckpt_plan *plan, const kl_ckpt_kept *values) {
    const kl_ckpt_part *sums = kl_ckpt_value_sums(plan);
    bool written = true;
    for (uint64_t v = 0; v < plan->facts.values && written; v++) {
        uint64_t sum = kl_ckpt_checksum(KL_CKPT_OF_VALUES, v, values[v].at, values[v].bytes);
        written = write_at(w, values[v].at, values[v].bytes, kl_ckpt_value(plan, v)->at) &&
                  write_at(w, &sum, sizeof sum, sums->at + v * sizeof sum);
    }
    return written;
}

static bool write_all(writer *w, const kl_ckpt_plan *plan, const kl_ckpt_share *share) {
    return write_rows(w, plan, share) && (!share->content || write_content(w, plan, share)) &&
           (!share->values || write_values(w, plan, share->values)) && fdatasync(w->plain) == 0;
}

/* Open a checkpoint's file for writing. If direct writes are not possible, everything goes through the page
 * cache. */
static void open_writer(const char *path, writer *w) {
    void *aligned = NULL;
    long page = sysconf(_SC_PAGESIZE);
    *w = (writer){.plain = open(path, O_WRONLY | O_CLOEXEC),
                  .direct = -1,
                  .block = page > BLOCK_BYTES ? (uint64_t)page : BLOCK_BYTES};
    int why = errno;
#ifdef O_DIRECT
    if (w->plain >= 0 && posix_memalign(&aligned, w->block, PIECE_BYTES) == 0)
        w->direct = open(path, O_WRONLY | O_CLOEXEC | O_DIRECT);
#endif
    w->aligned = aligned;
    errno = why;
}

/* Close the file. NFS may report a full disk only now. */
static bool close_writer(writer *w) {
    bool closed = w->direct < 0 || close(w->direct) == 0;
    closed = (w->plain < 0 || close(w->plain) == 0) && closed;
    free(w->aligned);
    return closed;
}

kilter_status kl_ckpt_write(const char *path, const kl_ckpt_plan *plan, const kl_ckpt_share *share,
                            kilter_error *error) {
    writer w;
    open_writer(path, &w);
    bool missing = w.plain < 0 && errno == ENOENT, written = w.plain >= 0 && write_all(&w, plan, share);
    int why = errno;
    if (!close_writer(&w) && written) {
        written = false;
        why = errno;
    }
    if (missing)
        return kl_fail(error, KILTER_ERR_SYSTEM,
                       "'%.*s', which rank 0 has created, is missing on this host; choose a folder that all "
                       "hosts share",
                       kl_ckpt_shown(path), path);
    if (!written)
        return kl_fail(error, KILTER_ERR_SYSTEM, "writing '%.*s': %s", kl_ckpt_shown(path), path,
                       strerror(why));
    return KILTER_OK;
}
