#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>
#include <unistd.h>

#include "report/draw.h"
#include "report/report.h"
#include "trace/record_test_helper.h"
#include "trace/trace.h"

/* Record `runs` runs, in which each of `workers` workers does `chunks` chunks of 10 ms. */
static void write_record(const char *file, const char *program, uint32_t workers, uint64_t runs,
                         uint64_t chunks) {
    kl_trace *t = NULL;
    kilter_error error;
    kl_trace_run_row run = {.program = program,
                            .version = "0.1.0",
                            .transport = "zmq",
                            .policy = "auto",
                            .host = "ada",
                            .began_unix_s = 1.7e9,
                            .pid = 1};
    if (kl_trace_open(file, &run, &t, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    for (uint32_t w = 0; w < workers; w++)
        kl_trace_worker(t, &(kl_trace_worker_row){w, program, "", 1, 0});
    double long_s = 0.01 * ceil((double)chunks / workers);
    for (uint64_t r = 0; r < runs; r++) {
        double began_s = (double)r * (long_s + 0.05);
        kl_trace_iteration(t, &(kl_trace_iteration_row){r, chunks, (double)chunks, "auto", 0, began_s, 0});
        for (uint64_t c = 0; c < chunks; c++) {
            uint64_t round = c / workers;
            double at_s = began_s + 0.01 * (double)round;
            bool lost = c == 3;
            kl_trace_chunk(t, &(kl_trace_chunk_row){r, c, c, c + 1, (uint32_t)(c % workers), 1, at_s,
                                                    lost ? 0 : at_s + 1e-4, lost ? 0 : at_s + 9e-3, 8e-3, 8,
                                                    8, 0, lost});
        }
        kl_trace_iteration_ended(t, &(kl_trace_iteration_end){r, 0, chunks, workers, began_s + long_s,
                                                              0.9 * long_s, 0, "", "done"});
    }
    if (kl_trace_close(t, 100, &error) != KILTER_OK)
        fail_msg("%s", error.text);
}

static char *drawn(const char *file, int64_t run) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    kilter_error error;
    if (kl_gantt_write(file, run, out, &error) != KILTER_OK)
        fail_msg("%s", error.text);
    assert_int_equal(fclose(out), 0);
    return text;
}

static size_t count_of(const char *text, const char *words) {
    size_t count = 0;
    for (; (text = strstr(text, words)); text++)
        count++;
    return count;
}

/* Check the picture: tags must be closed in the reverse order, and no text must be outside of the picture. */
static void check_xml(const char *text) {
    char open[8][16];
    size_t depth = 0;
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf\""));
    for (const char *at = text; *at; at++) {
        assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
        if (*at == '&')
            assert_int_equal(at[1], '#');
        if (*at != '<')
            continue;
        size_t bytes = strcspn(at, ">"), name = strcspn(at + 1, " >/");
        assert_int_equal(at[bytes], '>');
        for (size_t i = 1; i < bytes; i++)
            assert_true(at[i] != '<');
        if (at[1] == '/') {
            assert_true(depth > 0);
            depth--;
            assert_int_equal(strncmp(open[depth], at + 2, strlen(open[depth])), 0);
        } else if (at[bytes - 1] != '/') {
            assert_true(depth < 8);
            snprintf(open[depth++], sizeof open[0], "%.*s", (int)name, at + 1);
        }
        at += bytes;
    }
    assert_int_equal(depth, 0);
}

static void every_chunk_of_a_small_run_is_there(void **state) {
    const char *file = ((place *)*state)->file;
    write_record(file, "prog", 4, 1, 24);
    char *svg = drawn(file, -1);
    check_xml(svg);
    assert_int_equal(count_of(svg, "h-"), 23); /* number of bars */
    assert_int_equal(count_of(svg, "<path class=\"lost\" transform"), 1);
    assert_non_null(strstr(svg, "prog: policy auto, 90.0 % of the bound<"));
    free(svg);
}

static void one_run_of_several(void **state) {
    const char *file = ((place *)*state)->file;
    write_record(file, "prog", 2, 30, 8);
    char *svg = drawn(file, 2);
    assert_int_equal(count_of(svg, "h-"), 7);
    assert_null(strstr(svg, "run 1"));
    free(svg);
    svg = drawn(file, -1); /* the record has 30 runs, but only the last 20 are drawn */
    check_xml(svg);
    assert_null(strstr(svg, "run 9<"));
    assert_non_null(strstr(svg, "run 10<"));
    assert_non_null(strstr(svg, "runs 10 to 29"));
    free(svg);
}

static void many_chunks_stay_small(void **state) {
    const char *file = ((place *)*state)->file;
    static const uint32_t workers[] = {2, 60, 500};
    for (int i = 0; i < 3; i++) {
        write_record(file, "prog", workers[i], 2, 50000);
        char *svg = drawn(file, -1);
        check_xml(svg);
        assert_true(strlen(svg) < 2000000);
        assert_true(count_of(svg, "class=\"small\"") < 100);
        assert_int_equal(strstr(svg, "a row for every 9th worker") != NULL, workers[i] == 500);
        free(svg);
        unlink(file);
    }
}

static void text_from_the_record_stays_text(void **state) {
    const char *file = ((place *)*state)->file;
    write_record(file, "</text><script>\"&\x1b\xff\xc2\x85", 2, 2, 4);
    char *svg = drawn(file, -1);
    check_xml(svg);
    assert_null(strstr(svg, "<script"));
    assert_non_null(strstr(svg, "&#60;script&#62;&#34;&#38;"));
    free(svg);
}

static void refuses(const char *file, int64_t run, const char *words) {
    kilter_error error;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(kl_gantt_write(file, run, out, &error), KILTER_ERR_INPUT);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(size, 0);
    if (!strstr(error.text, words))
        fail_msg("'%s' lacks '%s'", error.text, words);
    free(text);
}

static void what_cannot_be_drawn(void **state) {
    const char *file = ((place *)*state)->file;
    refuses(file, -1, "No such file");
    write_record(file, "prog", 0, 0, 0);
    refuses(file, -1, "no tasks were dealt");
    unlink(file);
    write_record(file, "prog", 2, 3, 4);
    refuses(file, 3, "there is no run 3; its runs are 0 to 2");
}

static char *plotted(const kl_plot *plot) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    kl_plot_write(plot, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void plots_of_any_numbers(void **state) {
    (void)state;
    static const double values[][3] = {{1, 2, 3},          {0, 0, 0},       {-1, 0, 1}, {1e-300, 1, 1e300},
                                       {NAN, 1, NAN},      {NAN, NAN, NAN}, {5, 5, 5},  {INFINITY, 1, 2},
                                       {1e-9, 2e-9, 3e-9}, {1, 10, 1e6}};
    enum { COUNT = sizeof values / sizeof values[0] };
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < COUNT; k++) {
            const kl_series series[] = {{"a < b & c", KL_STROKE_LINE, 0, values[i], values[k], 3},
                                        {NULL, KL_STROKE_DOTS, 7, values[i], values[k], 3}};
            const kl_mark marks[] = {{values[i][1], "here"}, {values[i][1], "there"}, {1e9, "nowhere"}};
            const kl_panel panels[] = {{"y", series, 2, marks, 3}, {"z", series, 0, NULL, 0}};
            kl_plot plot = {"title", "subtitle", "x", panels, 2};
            char *svg = plotted(&plot);
            check_xml(svg);
            assert_int_equal(count_of(svg, "a &#60; b"), 1);
            free(svg);
        }
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(every_chunk_of_a_small_run_is_there),
        IN_A_PLACE(one_run_of_several),
        IN_A_PLACE(many_chunks_stay_small),
        IN_A_PLACE(text_from_the_record_stays_text),
        IN_A_PLACE(what_cannot_be_drawn),
        cmocka_unit_test(plots_of_any_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
