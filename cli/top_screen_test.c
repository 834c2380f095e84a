#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "top.h"

enum { COLUMNS = 78, ROWS = 24 };

/* ---- a state ---- */

static kl_report farm_report = {.run = {.program = "squares\033[31m"}},
                 map_report = {.run = {.program = "kilter-map"}};
static kl_report_rank ranks[2] = {{.iterations = 15, .rate_per_s = 40, .busy_s = 1},
                                  {.iterations = 45, .rate_per_s = 120, .busy_s = 2}};
static kl_report_worker rank_workers[2] = {{.worker = 0, .host = "ada"}, {.worker = 1, .host = "bob"}};
static kl_report_loop loop = {.name = "redblack", .executions = 16, .moves = 1, .ranks = 2, .rank = ranks};
static kl_report loop_report = {
    .run = {.program = "relax"}, .loop = &loop, .workers = rank_workers, .worker_count = 2};
static kl_control_state farm_state;
static char tuner; /* the screen only checks that this pointer is not NULL */

static kl_top three_runs(kl_top_run runs[3]) {
    farm_state = (kl_control_state){.running = true,
                                    .run = 2,
                                    .tasks = 120,
                                    .done = 30,
                                    .present = 3,
                                    .elapsed_s = 2.5,
                                    .left_s = 7,
                                    .left_low_s = 6,
                                    .left_high_s = 9,
                                    .late_s = 9,
                                    .late_usual_s = 0.5,
                                    .late_task = 17,
                                    .late_worker = 1,
                                    .policy = "gss",
                                    .worker_count = 3};
    for (uint32_t i = 0; i < 3; i++)
        farm_state.workers[i] =
            (kl_control_worker){10 + i, KL_CONTROL_BUSY, i == 2 ? (double)NAN : 40.0 * (i + 1), 2, 3, 4};
    runs[0] = (kl_top_run){
        .path = "a.kilter", .report = &farm_report, .state = &farm_state, .tuner = (kl_tuner *)&tuner};
    runs[1] = (kl_top_run){.path = "b.kilter", .report = &loop_report};
    runs[2] = (kl_top_run){.path = "c.kilter",
                           .report = &map_report,
                           .looks_gone = 1,
                           .word = "the program was killed or crashed"};
    snprintf(runs[0].decisions[KL_TOP_DECISIONS - 1], KL_TOP_WORD_BYTES, "3 tasks of the rest");
    return (kl_top){.runs = runs, .run_count = 3};
}

static kl_top_line lines[KL_TOP_ROWS_MOST];

/* Draw the screen into `lines`; the first line is lines[0]. */
static void draw(const kl_top *top) {
    assert_int_equal(kl_top_screen(top, COLUMNS, ROWS, lines), ROWS);
}

static void has_line(size_t at, const char *text) {
    if (strcmp(lines[at].text, text) != 0)
        fail_msg("line %zu is '%s', not '%s'", at, lines[at].text, text);
}

/* ---- the contents of the screen ---- */

static void test_farm(void **state) {
    (void)state;
    kl_top_run runs[3];
    kl_top top = three_runs(runs);
    draw(&top);
    static const char *const wanted[] = {
        "kilter top: 3 runs",
        "> farm squares?[31m  run 2: 30/120 tasks, 2.50 s; 6.00 s to 9.00 s left (90 %)",
        "  loop relax  16 sweeps, 1 moves, 2 ranks",
        "  farm kilter-map  the program was killed or crashed",
        "",
        "policy gss; 3 workers, 0 resting, 0 leaving",
        "late: task 17 at worker 1 for 9.00 s, usually 500 ms",
        "  worker            units per s       busy    chunks  queued",
        ">     10  busy           40.00     2.00 s         3       4",
        "      11  busy           80.00     2.00 s         3       4",
        "      12  busy               -     2.00 s         3       4",
        "decisions",
        "  3 tasks of the rest",
        "",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        has_line(i, wanted[i]);
    has_line(ROWS - 1, "q: quit  Tab: next run  up, down: worker  d: drain worker  p: policy  e: end r");
    assert_int_equal(lines[1].look, KL_TOP_CHOSEN);
    assert_int_equal(lines[3].look, KL_TOP_WARNING);
    assert_int_equal(lines[6].look, KL_TOP_WARNING);
}

static void test_loop(void **state) {
    (void)state;
    kl_top_run runs[3];
    kl_top top = three_runs(runs);
    assert_int_equal(kl_top_press(&top, KL_KEY_NEXT), KL_TOP_NOTHING);
    draw(&top);
    has_line(5, "    rank  host              iterations      rate/s       busy");
    has_line(6, ">      0  ada                       15       40.00     1.00 s");
    has_line(7, "       1  bob                       45       120.0     2.00 s");
}

/* With many workers and runs, on a screen of any size, the last two lines always fit and the chosen row is
 * visible. */
static void test_sizes(void **state) {
    (void)state;
    kl_top_run runs[3];
    kl_top top = three_runs(runs);
    farm_state.worker_count = KL_CONTROL_WORKERS_MOST;
    for (uint32_t i = 0; i < farm_state.worker_count; i++)
        farm_state.workers[i].worker = 100 + i;
    top.row = 50;
    for (size_t rows = 0; rows < 40; rows++)
        for (size_t columns = 1; columns < 100; columns += 7) {
            assert_int_equal(kl_top_screen(&top, columns, rows, lines), rows);
            for (size_t i = 0; i < rows; i++)
                assert_true(strlen(lines[i].text) <= columns);
            if (rows > 1)
                assert_int_equal(lines[rows - 1].text[0], 'q');
        }
    draw(&top);
    bool seen = false;
    for (size_t i = 0; i < ROWS; i++)
        seen |= strncmp(lines[i].text, ">    150 ", 9) == 0;
    assert_true(seen);
    top = (kl_top){0};
    draw(&top);
    has_line(1, "Nothing is running. Runs appear here when they begin.");
}

/* ---- keys ---- */

static void test_keys(void **state) {
    (void)state;
    kl_top_run runs[3];
    kl_top top = three_runs(runs);
    static const struct {
        int key;
        kl_top_action action;
        kl_top_mode mode;
        int64_t worker;
    } steps[] = {
        {KL_KEY_DOWN, KL_TOP_NOTHING, KL_TOP_WATCHING, 11},
        {KL_KEY_DOWN, KL_TOP_NOTHING, KL_TOP_WATCHING, 12},
        {KL_KEY_DOWN, KL_TOP_NOTHING, KL_TOP_WATCHING, 12},
        {'d', KL_TOP_NOTHING, KL_TOP_DRAINING, 12},
        {'n', KL_TOP_NOTHING, KL_TOP_WATCHING, 12},
        {KL_KEY_UP, KL_TOP_NOTHING, KL_TOP_WATCHING, 11},
        {'d', KL_TOP_NOTHING, KL_TOP_DRAINING, 11},
        {'y', KL_TOP_DRAIN, KL_TOP_WATCHING, 11},
        {'e', KL_TOP_NOTHING, KL_TOP_ENDING, 11},
        {'q', KL_TOP_NOTHING, KL_TOP_WATCHING, 11}, /* any key but y answers the question with no */
        {'e', KL_TOP_NOTHING, KL_TOP_ENDING, 11},
        {'y', KL_TOP_END, KL_TOP_WATCHING, 11},
        {'p', KL_TOP_NOTHING, KL_TOP_CHOOSING, 11},
        {KL_KEY_UP, KL_TOP_NOTHING, KL_TOP_CHOOSING, 11},
        {KL_KEY_LEAVE, KL_TOP_NOTHING, KL_TOP_WATCHING, 11},
        {'p', KL_TOP_NOTHING, KL_TOP_CHOOSING, 11},
        {KL_KEY_DOWN, KL_TOP_NOTHING, KL_TOP_CHOOSING, 11},
        {KL_KEY_ENTER, KL_TOP_POLICY, KL_TOP_WATCHING, 11},
        {'x', KL_TOP_NOTHING, KL_TOP_WATCHING, 11},
        {'q', KL_TOP_QUIT, KL_TOP_WATCHING, 11},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(kl_top_press(&top, steps[i].key), steps[i].action);
        assert_int_equal(top.mode, steps[i].mode);
        assert_int_equal(kl_top_worker(&top), steps[i].worker);
    }
    assert_int_equal(top.policy, 0); /* the choice moved down and up again */
}

/* The screen says why the user cannot steer a run. */
static void test_refusals(void **state) {
    (void)state;
    kl_top_run runs[3];
    kl_top top = three_runs(runs);
    static const char *const why[] = {NULL, "A loop cannot be steered from here.", "This run has ended."};
    for (top.run = 0; top.run < 3; top.run++) {
        assert_int_equal(kl_top_press(&top, 'd'), KL_TOP_NOTHING);
        assert_int_equal(top.mode, why[top.run] ? KL_TOP_WATCHING : KL_TOP_DRAINING);
        if (why[top.run])
            assert_string_equal(top.message, why[top.run]);
        top.mode = KL_TOP_WATCHING;
    }
    runs[0].tuner = NULL;
    top.run = 0;
    kl_top_press(&top, 'e');
    assert_string_equal(top.message, "This farm does not answer.");
    top = (kl_top){0};
    kl_top_press(&top, 'p');
    assert_string_equal(top.message, "No run is chosen.");
    assert_int_equal(kl_top_press(&top, KL_KEY_NEXT), KL_TOP_NOTHING);
}

/* ---- metrics ---- */

static void test_metrics(void **state) {
    (void)state;
    kl_top_run runs[3];
    kl_top top = three_runs(runs);
    char *text = NULL;
    size_t size = 0;
    farm_report.run.program = "a\"b\\c\nd";
    FILE *out = open_memstream(&text, &size);
    kl_top_metrics(&top, out);
    fclose(out);
    farm_report.run.program = "squares\033[31m";
    assert_non_null(strstr(text, "# TYPE kilter_tasks gauge\n"
                                 "kilter_tasks{program=\"a\\\"b\\\\c\\nd\",record=\"a.kilter\"} 120\n"));
    assert_non_null(strstr(text, ",worker=\"11\"} 80\n"));
    assert_null(strstr(text, "worker=\"12\"")); /* no metric of this worker, whose speed is not known */
    assert_non_null(strstr(text, "kilter_loop_sweeps{program=\"relax\",record=\"b.kilter\"} 16\n"));
    assert_null(strstr(text, "c.kilter")); /* no metrics of this run, which has ended */
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_farm), cmocka_unit_test(test_loop),     cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_keys), cmocka_unit_test(test_refusals), cmocka_unit_test(test_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
