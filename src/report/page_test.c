#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "report/page.h"
#include "report/report.h"
#include "trace/record_test_helper.h"
#include "trace/trace.h"

/* ---- a record ---- */

static kl_trace *open_trace(const char *file) {
    kl_trace *t = NULL;
    kilter_error error;
    kl_trace_run_row run = {.program = "page</script>",
                            .version = "0.1.0",
                            .transport = "zmq",
                            .policy = "auto",
                            .host = "ada",
                            .began_unix_s = 1.7e9,
                            .pid = 1};
    if (kl_trace_open(file, &run, &t, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return t;
}

static void push_chunk(kl_trace *t, uint64_t i, uint32_t worker, double began_s, double ended_s) {
    kl_trace_chunk(t, &(kl_trace_chunk_row){.chunk = i,
                                            .lo = 10 * i,
                                            .hi = 10 * i + 10,
                                            .worker = worker,
                                            .units = 10,
                                            .dealt_s = began_s,
                                            .began_s = began_s,
                                            .ended_s = ended_s,
                                            .busy_s = 0.75 * (ended_s - began_s)});
}

/* All times are in seconds. The run lasts from 1 to 5. Worker 0 works from 1 to 3 and from 4 to 5, worker 1
 * works from 1.5 to 4, and worker 2 gets no task. In a quarter of the time of each chunk, no task runs. */
static void write_example(const char *file) {
    kilter_error error;
    kl_trace *t = open_trace(file);
    for (uint32_t i = 0; i < 3; i++)
        kl_trace_worker(t, &(kl_trace_worker_row){i, "ada", "", 10 + i, 0.5});
    kl_trace_iteration(t, &(kl_trace_iteration_row){0, 30, 30, "auto", 0, 1, 0});
    push_chunk(t, 0, 0, 1, 3);
    push_chunk(t, 1, 1, 1.5, 4);
    push_chunk(t, 2, 0, 4, 5);
    kl_trace_iteration_ended(t, &(kl_trace_iteration_end){0, 0, 3, 2, 5, 2, 6, "one chunk each", "done"});
    if (kl_trace_close(t, 6, &error) != KILTER_OK)
        fail_msg("%s", error.text);
}

/* ---- reading the sections ---- */

typedef struct section {
    const uint8_t *at, *end;
} section;

static section section_of(const kl_page *page, int number) {
    const uint8_t *at = (const uint8_t *)page->data, *end = at + page->size;
    for (;; number--) {
        assert_true(end - at >= 4);
        size_t size = at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
        assert_true((size_t)(end - at) - 4 >= size);
        if (number == 0)
            return (section){at + 4, at + 4 + size};
        at += 4 + size;
    }
}

static uint64_t next(section *s) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(s->at < s->end);
        value |= (uint64_t)(*s->at & 0x7f) << shift;
        if (*s->at++ < 0x80)
            return value;
    }
}

static int64_t next_signed(section *s) {
    uint64_t value = next(s);
    return value % 2 ? -(int64_t)(value / 2) - 1 : (int64_t)(value / 2);
}

/* ---- tests ---- */

static kl_page read_page(const char *file) {
    kilter_error error;
    kl_page page;
    if (kl_page_read(file, &page, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    return page;
}

static void test_columns(void **state) {
    const char *file = ((place *)*state)->file;
    write_example(file);
    kl_page page = read_page(file);
    section gap = section_of(&page, 1 + KL_PAGE_GAP), length = section_of(&page, 1 + KL_PAGE_LENGTH);
    section idle = section_of(&page, 1 + KL_PAGE_IDLE), skip = section_of(&page, 1 + KL_PAGE_SKIP);
    section tasks = section_of(&page, 1 + KL_PAGE_TASKS), units = section_of(&page, 1 + KL_PAGE_UNITS);
    /* times in microseconds; the two chunks of worker 0 come first, then the chunk of worker 1 */
    static const int64_t gaps[] = {1000000, 1000000, 1500000};
    static const uint64_t lengths[] = {2000000, 1000000, 2500000};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(next_signed(&gap), gaps[i]);
        assert_int_equal(next(&length), lengths[i]);
        assert_int_equal(next(&idle), lengths[i] / 4);
        assert_int_equal(next(&tasks), 10);
        assert_int_equal(next_signed(&skip),
                         0); /* each chunk begins with the task after the last task of the previous chunk */
    }
    assert_ptr_equal(gap.at, gap.end);
    assert_ptr_equal(skip.at, skip.end);
    assert_ptr_equal(units.at, units.end);
    kl_page_free(&page);
}

/* The chunks begin in another order than that of their tasks. Task 25 is in no chunk. The tasks of the second
 * run are numbered from 0 again. */
static void test_order(void **state) {
    static const kl_trace_chunk_row chunks[] = {
        {.run = 0, .chunk = 0, .lo = 0, .hi = 10, .worker = 0, .began_s = 3, .ended_s = 4},
        {.run = 0, .chunk = 1, .lo = 10, .hi = 25, .worker = 1, .began_s = 2, .ended_s = 4},
        {.run = 0, .chunk = 2, .lo = 26, .hi = 30, .worker = 2, .began_s = 1, .ended_s = 4},
        {.run = 1, .chunk = 0, .lo = 0, .hi = 5, .worker = 0, .began_s = 5, .ended_s = 6},
    };
    static const uint64_t ranks[] = {2, 1, 0, 0};
    static const int64_t skips[] = {0, 0, 1, 0};
    const char *file = ((place *)*state)->file;
    kilter_error error;
    kl_trace *t = open_trace(file);
    for (int i = 0; i < 4; i++)
        kl_trace_chunk(t, &chunks[i]);
    if (kl_trace_close(t, 6, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    kl_page page = read_page(file);
    section rank = section_of(&page, 1 + KL_PAGE_RANK), skip = section_of(&page, 1 + KL_PAGE_SKIP);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(next(&rank), ranks[i]);
        assert_int_equal(next_signed(&skip), skips[i]);
    }
    kl_page_free(&page);
}

static void test_story(void **state) {
    const char *file = ((place *)*state)->file;
    write_example(file);
    kl_page page = read_page(file);
    assert_string_equal(page.title, "page</script>");
    assert_string_equal(page.story[0], "2 workers did 30 tasks in 4.00 s, at 50.0 % of their full speed.");
    assert_string_equal(
        page.story[1],
        "If every worker had computed all the time, the run would have taken 2.00 s, which is 2.00 s less.");
    /* Three workers have 12 s in total. Worker 2 wastes 4 s. The chunks waste a quarter of 5.5 s. The gap
     * before the last chunk is 1 s. */
    assert_string_equal(page.story[2],
                        "Lost time of the workers: 33.3 % in workers that got no task, "
                        "11.5 % between the tasks of a chunk, 8.3 % between two chunks of tasks.");
    section json = section_of(&page, 0);
    assert_int_equal(*json.at, '{');
    kl_page_free(&page);
}

/* Check that a page can be made from a record with impossible numbers, which Kilter itself never writes. */
static void test_odd_numbers(void **state) {
    const char *file = ((place *)*state)->file;
    kilter_error error;
    kl_trace *t = open_trace(file);
    push_chunk(t, 0, 0, -5, 1e300);
    push_chunk(t, 1, UINT32_MAX, (double)NAN, 2);
    push_chunk(t, 2, 0, 3, 2);
    kl_trace_chunk(t, &(kl_trace_chunk_row){.run = UINT64_MAX >> 1,
                                            .lo = 7,
                                            .hi = 3,
                                            .units = (double)INFINITY,
                                            .failed = UINT64_MAX >> 1,
                                            .lost = true,
                                            .ended_s = 1});
    if (kl_trace_close(t, 6, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    kl_page page = read_page(file);
    assert_string_equal(page.story[0], "No tasks were dealt.");
    assert_null(page.story[1]);
    kl_page_free(&page);
}

static void test_no_record(void **state) {
    (void)state;
    kilter_error error;
    kl_page page;
    assert_int_equal(kl_page_read("missing.kilter", &page, &error), KILTER_ERR_INPUT);
    assert_null(page.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_columns, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_order, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_story, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_odd_numbers, make_place, remove_place),
        cmocka_unit_test(test_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
