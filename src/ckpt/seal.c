/* The headers of a checkpoint. HDF5 would keep a file open for ever if it could not write the file, or if the
 * file had damaged headers. So HDF5 writes the headers into memory, and Kilter copies them to the disk. A
 * checksum of all headers (the seal) is at the end of the file, and HDF5 reads only files whose seal is
 * right. HDF5 ignores the bytes after its own part of the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/ckpt.h"

static const uint64_t MAGIC = UINT64_C(0x6c61655372746c4b); /* "KltrSeal" */
enum {
    PIECE_BYTES = 1 << 20,
    HEADER_BYTES = 1 << 16, /* an upper limit for the size of a part's headers */
    MOST_SEGMENTS = 1 << 20,
};

/* The seal: the last bytes of a file. The list of segments is before the seal. */
typedef struct seal {
    uint64_t segments, checksum, size, magic; /* size: bytes of the file that HDF5 has written */
} seal;

/* --- segments: what HDF5 has written to a file --- */

typedef bool (*use_piece)(void *user, const uint8_t *data, size_t bytes, uint64_t at);

/* Pass the bytes of a span of a file to `use`, piece by piece. After a failure errno says why; 0: the file is
 * too short. */
static bool each_piece(int from, kl_span span, use_piece use, void *user) {
    uint8_t *data = malloc(PIECE_BYTES);
    bool good = data != NULL;
    while (good && span.lo < span.hi) {
        size_t wanted = span.hi - span.lo < PIECE_BYTES ? (size_t)(span.hi - span.lo) : PIECE_BYTES;
        ssize_t got = pread(from, data, wanted, (off_t)span.lo);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = 0;
        good = got > 0 && use(user, data, (size_t)got, span.lo);
        span.lo += got > 0 ? (uint64_t)got : 0;
    }
    int why = errno;
    free(data);
    errno = why;
    return good;
}

static bool add_checksum(void *sum, const uint8_t *data, size_t bytes, uint64_t at) {
    *(uint64_t *)sum = kl_hash(data, bytes, *(uint64_t *)sum ^ at);
    return true;
}

static bool copy_piece(void *to, const uint8_t *data, size_t bytes, uint64_t at) {
    while (bytes > 0) {
        ssize_t written = pwrite(*(int *)to, data, bytes, (off_t)at);
        if (written < 0 && errno != EINTR)
            return false;
        written = written < 0 ? 0 : written;
        data += written;
        at += (uint64_t)written;
        bytes -= (size_t)written;
    }
    return true;
}

/* List those pages of a file in memory to which something was written. */
static bool list_pages(int memory, kl_ranges *pages) {
    off_t lo = 0, hi = 0;
    while ((lo = lseek(memory, hi, SEEK_DATA)) >= 0 && (hi = lseek(memory, lo, SEEK_HOLE)) >= 0)
        if (!kl_ranges_add(pages, (kl_span){(uint64_t)lo, (uint64_t)hi}))
            return false;
    return errno == ENXIO; /* ENXIO: no more data follow in the file */
}

static bool list_parts(const kl_ckpt_plan *plan, kl_ranges *parts) {
    bool fits = true;
    for (size_t i = 0; i < plan->count && fits; i++) {
        const kl_ckpt_part *p = &plan->parts[i];
        fits = kl_ranges_add(parts, (kl_span){p->at, p->at + kl_ckpt_part_bytes(p)});
    }
    return fits;
}

/* List the segments: bytes that HDF5 has written and that belong to no part. HDF5 writes no parts; the ranks
 * write them later. */
static bool list_segments(int memory, const kl_ckpt_plan *plan, kl_ranges *segments) {
    kl_ranges pages = {.count = 0}, parts = {.count = 0};
    errno = ENOMEM;
    bool listed = list_parts(plan, &parts) && list_pages(memory, &pages);
    kl_ranges_tidy(&pages);
    kl_ranges_tidy(&parts);
    listed = listed && kl_ranges_without(&pages, &parts, segments);
    kl_ranges_free(&pages);
    kl_ranges_free(&parts);
    return listed;
}

/* --- making a file with headers and seal --- */

static bool copy_segments(int memory, int to, const kl_ranges *segments, seal *s) {
    *s = (seal){.segments = segments->count, .magic = MAGIC};
    struct stat is;
    bool good = fstat(memory, &is) == 0 && ftruncate(to, is.st_size) == 0;
    for (size_t i = 0; i < segments->count && good; i++)
        good = each_piece(memory, segments->at[i], copy_piece, &to) &&
               each_piece(memory, segments->at[i], add_checksum, &s->checksum);
    s->size = good ? (uint64_t)is.st_size : 0;
    return good;
}

static bool put_seal(int to, const kl_ranges *segments, seal *s) {
    size_t bytes = segments->count * sizeof *segments->at;
    s->checksum = kl_hash(segments->at, bytes, s->checksum ^ s->size);
    return copy_piece(&to, (const uint8_t *)segments->at, bytes, s->size) &&
           copy_piece(&to, (const uint8_t *)s, sizeof *s, s->size + bytes);
}

static bool make_file(int memory, const kl_ckpt_plan *plan, const char *path) {
    kl_ranges segments = {.count = 0};
    seal s;
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool made = to >= 0 && list_segments(memory, plan, &segments) &&
                copy_segments(memory, to, &segments, &s) && put_seal(to, &segments, &s);
    int why = errno;
    if (to >= 0 && close(to) != 0 && made) {
        made = false;
        why = errno;
    }
    if (to >= 0 && !made)
        unlink(path);
    kl_ranges_free(&segments);
    errno = why;
    return made;
}

/* Return whether the process's limit on file sizes (RLIMIT_FSIZE) allows a file of this plan. The limit also
 * holds for files in memory. */
static bool is_allowed(const kl_ckpt_plan *plan) {
    struct rlimit limit;
    uint64_t bytes = HEADER_BYTES;
    for (size_t i = 0; i < plan->count; i++)
        bytes += kl_ckpt_part_bytes(&plan->parts[i]) + HEADER_BYTES;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

static kilter_status failed(const char *path, int why, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_SYSTEM, "creating '%.*s': %s", kl_ckpt_shown(path), path, strerror(why));
}

kilter_status kl_ckpt_lay_out(const kl_ckpt_library *library, const char *path, kl_ckpt_plan *plan,
                              kilter_error *error) {
    char in_memory[40];
    if (!is_allowed(plan))
        return failed(path, EFBIG, error);
    int memory = memfd_create("kilter-checkpoint", MFD_CLOEXEC);
    if (memory < 0)
        return failed(path, errno, error);
    snprintf(in_memory, sizeof in_memory, "/proc/self/fd/%d", memory);
    kilter_status status = library->create(in_memory, plan, error);
    if (status == KILTER_OK && !make_file(memory, plan, path))
        status = failed(path, errno, error);
    close(memory);
    return status;
}

/* --- checking the seal of a file --- */

typedef enum verdict {
    DAMAGED,
    UNREADABLE,
    RIGHT
} verdict; /* UNREADABLE: the file cannot be read, and errno says why */

static verdict read_at(int from, void *to, size_t bytes, uint64_t at) {
    ssize_t got = pread(from, to, bytes, (off_t)at);
    return got < 0 ? UNREADABLE : got == (ssize_t)bytes ? RIGHT : DAMAGED;
}

static verdict get_seal(int from, seal *s, kl_span **segments) {
    struct stat is;
    if (fstat(from, &is) != 0)
        return UNREADABLE;
    if ((uint64_t)is.st_size < sizeof *s)
        return DAMAGED;
    uint64_t end = (uint64_t)is.st_size - sizeof *s;
    verdict v = read_at(from, s, sizeof *s, end);
    if (v != RIGHT)
        return v;
    if (s->magic != MAGIC || s->segments > MOST_SEGMENTS || s->size > end ||
        end - s->size != s->segments * sizeof **segments)
        return DAMAGED;
    *segments = calloc(s->segments + 1, sizeof **segments);
    return *segments ? read_at(from, *segments, s->segments * sizeof **segments, s->size) : UNREADABLE;
}

static verdict check_segments(int from, const seal *s, const kl_span *segments) {
    uint64_t checksum = 0;
    for (uint64_t i = 0; i < s->segments; i++) {
        if (segments[i].lo > segments[i].hi || segments[i].hi > s->size)
            return DAMAGED;
        if (!each_piece(from, segments[i], add_checksum, &checksum))
            return errno == 0 ? DAMAGED : UNREADABLE;
    }
    return kl_hash(segments, s->segments * sizeof *segments, checksum ^ s->size) == s->checksum ? RIGHT
                                                                                                : DAMAGED;
}

/* Return the error for a file that cannot be read now. Such a file is not damaged, so an older one must not
 * replace it. */
static kilter_status unreadable(const char *path, int why, kilter_error *error) {
    if (why == ENOMEM)
        return kl_fail(error, KILTER_ERR_MEMORY, "reading '%.200s': memory ran out", path);
    return kl_fail(error, KILTER_ERR_SYSTEM,
                   "reading '%.200s': %s; try again, or rename the file to continue from an older one", path,
                   strerror(why));
}

kilter_status kl_ckpt_check_seal(const char *path, kilter_error *error) {
    seal s;
    kl_span *segments = NULL;
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not wait for a writer of a named pipe */
    if (from < 0)
        return unreadable(path, errno, error);
    verdict v = get_seal(from, &s, &segments);
    if (v == RIGHT)
        v = check_segments(from, &s, segments);
    int why = errno;
    free(segments);
    close(from);
    if (v == DAMAGED)
        return kl_fail(error, KILTER_ERR_INPUT, "'%.200s' is damaged, or is not a checkpoint", path);
    return v == RIGHT ? KILTER_OK : unreadable(path, why, error);
}
