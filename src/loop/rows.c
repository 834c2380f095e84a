#include "loop/rows.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sys/sys.h"

static const uint64_t MOST_BYTES = UINT64_C(1) << 47;
/* Offset in bytes at which short rows begin in their mapping. Large blocks of malloc() have the same offset.
 * So loops over rows take the same time as in a program that gets its array from malloc(). With an offset of
 * 0 or 64, access to short rows was up to a tenth slower. Rows of at least a page are not slower without an
 * offset. They get none, so that no two of them share a page. */
static const size_t SKEW_BYTES = 16;
/* Arrays of at least this size get large pages where the system has them. This saves page faults when rows
 * arrive, and cache misses when they are read. When rows leave, their memory stays allocated until the system
 * needs it, because rows often return. The first access to new memory takes up to ten times as long as
 * copying the rows. */
static const size_t LARGE_PAGES_FROM_BYTES = 4 << 20;
/* the system's free memory is checked only if at least this number of bytes is needed */
static const uint64_t LOOK_FROM_BYTES = 1 << 20;

static bool has_large_pages(size_t bytes) {
    return bytes >= LARGE_PAGES_FROM_BYTES;
}

kilter_status kl_rows_reserve(kl_rows *rows, uint64_t n, size_t bytes, kilter_error *error) {
    if (bytes == 0 || n == 0 || n > MOST_BYTES / bytes)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "attaching an array of %llu rows of %zu bytes: it must have from 1 byte to 2^47",
                       (unsigned long long)n, bytes);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t skew = bytes < page ? SKEW_BYTES : 0;
    size_t size = (skew + (size_t)n * bytes + page - 1) / page * page;
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return kl_fail(error, KILTER_ERR_MEMORY,
                       "attaching an array of %llu rows of %zu bytes: the address space is too small: "
                       "%s; check that RLIMIT_AS (ulimit -v) is larger than all arrays together",
                       (unsigned long long)n, bytes, strerror(errno));
    if (has_large_pages(size))
        madvise(base, size, MADV_HUGEPAGE); /* a system without large pages refuses this call, which does no
                                               harm */
    *rows = (kl_rows){
        .base = (uint8_t *)base + skew, .n = n, .bytes = bytes, .page = page, .reserved = size, .skew = skew};
    return KILTER_OK;
}

/* Return the pages that a range of rows touches, as offsets in the mapping. */
static kl_span pages_of(const kl_rows *rows, kl_span range) {
    if (range.lo >= range.hi)
        return (kl_span){0, 0};
    return (kl_span){(rows->skew + range.lo * rows->bytes) / rows->page * rows->page,
                     (rows->skew + range.hi * rows->bytes + rows->page - 1) / rows->page * rows->page};
}

bool kl_rows_fit(uint64_t bytes) {
    return bytes < LOOK_FROM_BYTES || bytes <= kl_memory_left("");
}

kilter_status kl_rows_take(kl_rows *rows, kl_span range, kilter_error *error) {
    kl_span pages = pages_of(rows, range);
    if (pages.lo < pages.hi &&
        mprotect(kl_rows_mapping(rows) + pages.lo, pages.hi - pages.lo, PROT_READ | PROT_WRITE) != 0)
        return kl_fail(
            error, KILTER_ERR_MEMORY,
            "making room for rows %llu to %llu of %zu bytes: %s; use more hosts, or ranks with more "
            "memory each",
            (unsigned long long)range.lo, (unsigned long long)range.hi - 1, rows->bytes, strerror(errno));
    return KILTER_OK;
}

/* Give pages back to the system. If the system refuses to split a mapping, the pages stay, which only costs
 * memory. */
static void drop(kl_rows *rows, uint64_t lo, uint64_t hi) {
    if (lo >= hi)
        return;
    int how = has_large_pages(rows->reserved) ? MADV_FREE : MADV_DONTNEED;
    if (madvise(kl_rows_mapping(rows) + lo, hi - lo, how) != 0)
        madvise(kl_rows_mapping(rows) + lo, hi - lo, MADV_DONTNEED);
    mprotect(kl_rows_mapping(rows) + lo, hi - lo, PROT_NONE);
}

/* Find the first kept range whose pages end after offset `at`. *pages: the pages of this range. Return false
 * if there is no such range. */
static bool next_kept(const kl_rows *rows, const kl_span *kept, size_t count, uint64_t at, kl_span *pages) {
    bool found = false;
    for (size_t k = 0; k < count; k++) {
        kl_span its = pages_of(rows, kept[k]);
        if (its.lo < its.hi && its.hi > at && (!found || its.lo < pages->lo)) {
            *pages = its;
            found = true;
        }
    }
    return found;
}

void kl_rows_give(kl_rows *rows, kl_span range, const kl_span *kept, size_t kept_count) {
    kl_span pages = pages_of(rows, range), next = {0, 0};
    while (pages.lo < pages.hi && next_kept(rows, kept, kept_count, pages.lo, &next)) {
        drop(rows, pages.lo, next.lo < pages.hi ? next.lo : pages.hi);
        pages.lo = next.hi;
    }
    drop(rows, pages.lo, pages.hi);
}

void kl_rows_release(kl_rows *rows) {
    if (rows->base)
        munmap(kl_rows_mapping(rows), rows->reserved);
    *rows = (kl_rows){0};
}
