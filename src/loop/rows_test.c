/* Compare the pages that rows should have with the system's information about accessible pages. */
#include "loop/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 1000 };

/* Return whether the memory can be accessed. The check uses write(), which returns an error where a read
 * would fault. */
static bool touchable(const void *at, int sink) {
    return write(sink, at, 1) == 1;
}

static bool near_row(const kl_rows *rows, kl_span range, uint64_t page) {
    if (range.lo >= range.hi)
        return false;
    return page >= (rows->skew + range.lo * rows->bytes) / rows->page &&
           page <= (rows->skew + range.hi * rows->bytes - 1) / rows->page;
}

/* Check that a page is accessible if and only if a row on it is kept. */
static void check_pages(const kl_rows *rows, const kl_span *kept, size_t count, int sink) {
    for (uint64_t page = 0; page < rows->reserved / rows->page; page++) {
        bool expected = false;
        for (size_t k = 0; k < count; k++)
            expected |= near_row(rows, kept[k], page);
        assert_int_equal(touchable(kl_rows_mapping(rows) + page * rows->page, sink), expected);
    }
}

static uint64_t draw(uint64_t *seed, uint64_t below) {
    return (*seed = kl_mix64(*seed)) % below;
}

/* Give memory to random ranges of rows, which may be adjacent or apart, and free other rows. Rows may be
 * smaller or larger than a page. */
static void test_pages_follow_ranges(void **state) {
    (void)state;
    static const size_t sizes[] = {8, 24, 1000, 4096, 5000, 12288};
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    for (uint64_t round = 0; round < 60; round++) {
        uint64_t seed = round;
        kl_rows rows = {0};
        kl_span kept[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
        assert_int_equal(kl_rows_reserve(&rows, N, sizes[round % 6], NULL), KILTER_OK);
        /* short rows begin where a large block of malloc() begins in the GNU C library */
        assert_int_equal((uintptr_t)rows.base % rows.page, rows.bytes < rows.page ? 16 : 0);
        for (int step = 0; step < 8; step++) {
            size_t k = draw(&seed, 4);
            kl_span old = kept[k];
            uint64_t lo = draw(&seed, N);
            kept[k] = (kl_span){lo, lo + draw(&seed, (N - lo < 200 ? N - lo : 200) + 1)};
            assert_int_equal(kl_rows_take(&rows, kept[k], NULL), KILTER_OK);
            for (uint64_t i = kept[k].lo; i < kept[k].hi; i++)
                kl_rows_at(&rows, i)[rows.bytes - 1] = (uint8_t)i;
            kl_rows_give(&rows, old, kept, 4);
            check_pages(&rows, kept, 4, ends[1]);
            char drained[1 << 14];
            assert_true(read(ends[0], drained, sizeof drained) >= 0 || errno == EAGAIN);
            for (uint64_t i = kept[k].lo; i < kept[k].hi; i++)
                assert_int_equal(kl_rows_at(&rows, i)[rows.bytes - 1], (uint8_t)i);
        }
        kl_rows_release(&rows);
    }
    close(ends[0]);
    close(ends[1]);
}

/* When rows that were freed get memory again, they must be zero. */
static void test_taken_again_is_zero(void **state) {
    (void)state;
    kl_rows rows = {0};
    assert_int_equal(kl_rows_reserve(&rows, 4, 8192, NULL), KILTER_OK);
    assert_int_equal(kl_rows_take(&rows, (kl_span){1, 2}, NULL), KILTER_OK);
    *kl_rows_at(&rows, 1) = 7;
    kl_rows_give(&rows, (kl_span){1, 2}, NULL, 0);
    assert_int_equal(kl_rows_take(&rows, (kl_span){0, 4}, NULL), KILTER_OK);
    assert_int_equal(*kl_rows_at(&rows, 1), 0);
    kl_rows_release(&rows);
}

static size_t resident_pages(const kl_rows *rows) {
    size_t count = rows->reserved / rows->page, resident = 0;
    unsigned char *pages = malloc(count);
    assert_non_null(pages);
    assert_int_equal(mincore(kl_rows_mapping(rows), rows->reserved, pages), 0);
    for (size_t i = 0; i < count; i++)
        resident += pages[i] & 1;
    free(pages);
    return resident;
}

/* The system must get back the memory of rows that have left this rank. Rows that were never on this rank
 * must take no memory. */
static void test_memory_follows_rows(void **state) {
    (void)state;
    enum { ROWS = 64, PAGES = 4 };
    kl_rows rows = {0};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(kl_rows_reserve(&rows, ROWS, PAGES * page, NULL), KILTER_OK);
    madvise(kl_rows_mapping(&rows), rows.reserved,
            MADV_NOHUGEPAGE); /* use no huge pages, because such a page would become resident as a whole */
    assert_int_equal(resident_pages(&rows), 0);
    kl_span here = {0, 0};
    for (uint64_t lo = 0; lo + 16 <= ROWS; lo += 5) { /* let the range of own rows wander over the array */
        kl_span next = {lo, lo + 16};
        assert_int_equal(kl_rows_take(&rows, next, NULL), KILTER_OK);
        memset(kl_rows_at(&rows, lo), 1, 16 * PAGES * page);
        kl_rows_give(&rows, here, &next, 1);
        here = next;
        assert_int_equal(resident_pages(&rows), 16 * PAGES);
    }
    kl_rows_give(&rows, here, NULL, 0);
    assert_int_equal(resident_pages(&rows), 0);
    kl_rows_release(&rows);
}

static void test_small_moves_do_not_ask(void **state) {
    (void)state;
    assert_true(kl_rows_fit(0) && kl_rows_fit(4096));
    assert_false(kl_rows_fit(UINT64_MAX - 1)); /* no host has this much memory */
}

static int be_short_of_memory(void) {
    kl_rows rows = {0};
    kilter_error error = {KILTER_OK, ""};
    if (kl_rows_reserve(&rows, 1024, 1 << 20, &error) != KILTER_OK)
        return 1;
    unsigned long pages = 0; /* return the number of data pages that are resident now */
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
        return 5;
    fclose(file);
    rlim_t limit = pages * rows.page + (64 << 20);
    setrlimit(RLIMIT_DATA, &(struct rlimit){limit, limit});
    if (kl_rows_take(&rows, (kl_span){0, 8}, &error) != KILTER_OK)
        return 2;
    *kl_rows_at(&rows, 7) = 1;
    if (kl_rows_take(&rows, (kl_span){8, 512}, &error) != KILTER_ERR_MEMORY)
        return 3;
    kl_rows_give(&rows, (kl_span){8, 512}, &(kl_span){0, 8}, 1);
    return *kl_rows_at(&rows, 7) == 1 ? 0 : 4;
}

static int be_short_of_addresses(void) {
    kl_rows rows = {0};
    kilter_error error = {KILTER_OK, ""};
    setrlimit(RLIMIT_AS, &(struct rlimit){256 << 20, 256 << 20});
    return kl_rows_reserve(&rows, 1024, 1 << 20, &error) == KILTER_ERR_MEMORY && rows.base == NULL ? 0 : 1;
}

static int in_a_child(int (*body)(void)) {
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_memory_that_runs_out_is_said_before(void **state) {
    (void)state;
    assert_int_equal(in_a_child(be_short_of_memory), 0);
    assert_int_equal(in_a_child(be_short_of_addresses), 0);
}

static void test_sizes_out_of_range(void **state) {
    (void)state;
    kl_rows rows = {0};
    assert_int_equal(kl_rows_reserve(&rows, 10, 0, NULL), KILTER_ERR_RANGE);
    assert_int_equal(kl_rows_reserve(&rows, UINT64_MAX, 16, NULL), KILTER_ERR_RANGE);
    assert_int_equal(kl_rows_reserve(&rows, (UINT64_C(1) << 44) + 1, 8, NULL), KILTER_ERR_RANGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_follow_ranges),
        cmocka_unit_test(test_taken_again_is_zero),
        cmocka_unit_test(test_memory_follows_rows),
        cmocka_unit_test(test_small_moves_do_not_ask),
        cmocka_unit_test(test_memory_that_runs_out_is_said_before),
        cmocka_unit_test(test_sizes_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
