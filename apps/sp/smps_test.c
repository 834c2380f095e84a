#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test_support.h"

/* Tests expect line numbers of the texts below. Change the expected numbers if a line is inserted into a
 * text. */
static const char CORE[] = "NAME          TINY\n"             /* 1 */
                           "ROWS\n"                           /* 2 */
                           " N  COST\n"                       /* 3 */
                           " L  LIMIT\n"                      /* 4 */
                           " G  NEED\n"                       /* 5 */
                           " E  MIX\n"                        /* 6 */
                           "COLUMNS\n"                        /* 7 */
                           "    X  COST  1  LIMIT  1\n"       /* 8 */
                           "    X  NEED  1\n"                 /* 9 */
                           "    Z  COST  2  LIMIT  1\n"       /* 10 */
                           "    Z  MIX  2\n"                  /* 11 */
                           "    Y  COST  5  NEED  1\n"        /* 12 */
                           "    Y  MIX  1\n"                  /* 13 */
                           "    S  MIX  -1\n"                 /* 14 */
                           "RHS\n"                            /* 15 */
                           "    RHS  LIMIT  10  NEED  3\n"    /* 16 */
                           "    RHS  MIX  1\n"                /* 17 */
                           "RANGES\n"                         /* 18 */
                           "    RNG  LIMIT  4\n"              /* 19 */
                           "BOUNDS\n"                         /* 20 */
                           " UP BND  X  8\n"                  /* 21 */
                           "ENDATA\n";                        /* 22 */
static const char TIME[] = "TIME\n"                           /* 1 */
                           "PERIODS  LP\n"                    /* 2 */
                           "    X  LIMIT  NOW\n"              /* 3 */
                           "    Y  NEED  LATER\n"             /* 4 */
                           "ENDATA\n";                        /* 5 */
static const char STOCH[] = "STOCH\n"                         /* 1 */
                            "INDEP  DISCRETE\n"               /* 2 */
                            "    RHS  NEED  2  LATER  0.25\n" /* 3 */
                            "    RHS  NEED  4  LATER  0.75\n" /* 4 */
                            "    X  NEED  1.5  0.5\n"         /* 5 */
                            "    X  NEED  0  0.5\n"           /* 6 */
                            "ENDATA\n";                       /* 7 */
static const char BLOCKS[] = "STOCH\n"                        /* 1 */
                             "BLOCKS  DISCRETE\n"             /* 2 */
                             " BL  B1  LATER  0.5\n"          /* 3 */
                             "    RHS  NEED  2  MIX  7\n"     /* 4 */
                             "    Y  COST  6\n"               /* 5 */
                             " BL  B1  LATER  0.25\n"         /* 6 */
                             "    RHS  NEED  0\n"             /* 7 */
                             " BL  B1  LATER  0.25\n"         /* 8 */
                             "    Z  MIX  9\n"                /* 9 */
                             " BL  B2  LATER  1\n"            /* 10 */
                             "    S  COST  3\n"               /* 11 */
                             "ENDATA\n";                      /* 12 */
static const char TREE[] = "STOCH\n"                          /* 1 */
                           "SCENARIOS  DISCRETE\n"            /* 2 */
                           " SC  A  ROOT  0.5  NOW\n"         /* 3 */
                           "    RHS  NEED  2  MIX  7\n"       /* 4 */
                           " SC  B  A  0.25  LATER\n"         /* 5 */
                           "    RHS  NEED  0\n"               /* 6 */
                           " SC  C  'ROOT'  0.25\n"           /* 7 */
                           "    Y  COST  9\n"                 /* 8 */
                           "ENDATA\n";                        /* 9 */

/* Return a copy of `text` in which the first `from` is replaced by `to`. With from = "", append `to`. The
 * caller frees the copy. */
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = *from ? strstr(text, from) : text + strlen(text);
    if (!at)
        fail_msg("the fixture has no \"%s\"", from);
    char *made = malloc(strlen(text) + strlen(to) + 1);
    size_t before = (size_t)(at - text);
    memcpy(made, text, before);
    strcpy(made + before, to);
    strcat(made, at + strlen(from));
    return made;
}

static sp_problem *read_changed(const char *core, const char *from, const char *to) {
    char *text = replaced(core, from, to);
    sp_problem *problem = read_texts(text, TIME, STOCH);
    free(text);
    return problem;
}

static void assert_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* Return the value that outcome `at` gives to a random number, or NaN if the number keeps its value in CORE.
 */
static double value_in(const sp_problem *problem, size_t at, sp_kind kind, int row, int column) {
    for (size_t c = problem->outcome[at].first; c < problem->outcome[at].end; c++) {
        const sp_target *target = &problem->target[problem->change[c].target];
        if (target->kind == kind && target->row == row && target->column == column)
            return problem->change[c].value;
    }
    return NAN;
}

static void a_problem_is_cut_by_position(void **state) {
    (void)state;
    sp_problem *p = read_texts(CORE, TIME, STOCH);
    assert_int_equal(p->stage[0].rows, 1);
    assert_int_equal(p->stage[0].columns, 2);
    assert_int_equal(p->stage[1].rows, 2);
    assert_int_equal(p->stage[1].columns, 2);
    assert_string_equal(p->stage[0].column_name[1], "Z");
    assert_string_equal(p->stage[1].row_name[1], "MIX");
    assert_int_equal(p->a.start[2], 2);
    assert_int_equal(p->t.start[2], 2);
    assert_int_equal(p->w.start[2], 3);
    assert_int_equal(p->t.row[1], 1);
    assert_near(p->t.value[1], 2);
    assert_near(p->stage[0].upper[0], 8);
    assert_true(isinf(p->stage[0].upper[1]));
    assert_near(p->stage[1].cost[0], 5);
    assert_near(p->constant, 0);
    sp_problem_free(p);
}

static void indep_has_a_variable_per_number(void **state) {
    (void)state;
    sp_problem *p = read_texts(CORE, TIME, STOCH);
    assert_int_equal(p->variables, 2);
    assert_int_equal(p->variable[1].end - p->variable[1].first, 2);
    assert_near(p->outcome[0].below, 0.25);
    assert_true(p->outcome[1].below == 1);
    assert_near(value_in(p, 1, SP_RHS, 0, 0), 4);
    assert_near(value_in(p, 3, SP_TECHNOLOGY, 0, 0), 0); /* an explicit 0 replaces the value of CORE */
    assert_near(p->target[1].core, 1);
    sp_problem_free(p);
}

static void later_outcomes_of_a_block_differ_from_its_first(void **state) {
    (void)state;
    sp_problem *p = read_texts(CORE, TIME, BLOCKS);
    assert_int_equal(p->variables, 2);
    assert_near(value_in(p, 0, SP_RHS, 1, 0), 7);
    assert_near(value_in(p, 1, SP_RHS, 0, 0), 0); /* the outcome's value, not CORE's 3 */
    /* inherited from the block's first outcome, instead of 1 as in CORE */
    assert_near(value_in(p, 1, SP_RHS, 1, 0), 7);
    assert_near(value_in(p, 1, SP_COST, 0, 0), 6);
    /* inherited from the block's first outcome, not from the second one */
    assert_near(value_in(p, 2, SP_RHS, 0, 0), 2);
    assert_near(value_in(p, 2, SP_TECHNOLOGY, 1, 1), 9);
    assert_true(isnan(value_in(p, 1, SP_TECHNOLOGY, 1, 1))); /* keeps its value in CORE */
    assert_near(value_in(p, 3, SP_COST, 0, 1), 3);
    sp_problem_free(p);
}

static void a_scenario_takes_the_rest_from_its_parent(void **state) {
    (void)state;
    sp_problem *p = read_texts(CORE, TIME, TREE);
    assert_int_equal(p->variables, 1);
    assert_near(value_in(p, 1, SP_RHS, 0, 0), 0);
    assert_near(value_in(p, 1, SP_RHS, 1, 0), 7);
    assert_true(isnan(value_in(p, 2, SP_RHS, 0, 0)));
    assert_near(value_in(p, 2, SP_COST, 0, 0), 9);
    sp_problem_free(p);
}

/* ---- peculiarities of the format, each found in a published file ---- */

/* Random entries of W that CORE has keep their positions among the fixed entries. Random entries that CORE
 * leaves out come last in their column. */
static void random_recourse_has_its_place_in_w(void **state) {
    (void)state;
    static const int ROW[] = {0, 1, 1, 0}, START[] = {0, 2, 4};
    static const double VALUE[] = {1, 1, -1, 0};
    sp_problem *p = read_texts(CORE, TIME,
                               "STOCH\nINDEP DISCRETE\n S NEED 4 0.5\n S NEED 5 0.5\n Y MIX 2 0.5\n"
                               " Y MIX 3 0.5\n X MIX 7 1\nENDATA\n");
    assert_memory_equal(p->w.start, START, sizeof START);
    assert_memory_equal(p->w.row, ROW, sizeof ROW);
    assert_memory_equal(p->w.value, VALUE, sizeof VALUE);
    assert_near(value_in(p, 1, SP_RECOURSE, 0, 1), 5);
    assert_int_equal(p->target[0].entry, 3);
    assert_near(p->target[0].core, 0);
    assert_int_equal(p->target[1].entry, 1);
    assert_near(p->target[1].core, 1);
    /* T has no entry for column X in row MIX; unlike W, T needs no entry for a random number */
    assert_int_equal(p->target[2].entry, -1);
    sp_problem_free(p);
}

static void names_of_the_problem_may_be_missing(void **state) {
    (void)state;
    sp_problem_free(read_changed(CORE, "NAME          TINY", "NAME"));
    sp_problem_free(read_changed(CORE, "NAME          TINY\n", ""));
    sp_problem_free(read_changed(CORE, "NAME          TINY", "NAME a name of many more words than are read"));
}

static void comments_and_blanks_do_not_count(void **state) {
    (void)state;
    sp_problem_free(read_changed(CORE, "NAME", "*23*5678\n\n   \nNAME"));
    sp_problem_free(read_changed(CORE, " L  LIMIT\n", " L  LIMIT                              \r\n"));
    sp_problem_free(read_changed(CORE, " L  LIMIT\n", "\tL\tLIMIT\n"));
}

static void the_last_newline_may_be_missing(void **state) {
    (void)state;
    char *stoch = replaced(STOCH, "ENDATA\n", "ENDATA");
    sp_problem_free(read_texts(CORE, TIME, stoch));
    free(stoch);
}

static void bounds_may_be_empty(void **state) {
    (void)state;
    sp_problem *p = read_changed(CORE, " UP BND  X  8\n", "");
    assert_true(isinf(p->stage[0].upper[0]));
    sp_problem_free(p);
}

static void set_names_may_differ_or_be_left_out(void **state) {
    (void)state;
    static const char *const NAME[] = {"RHS1 NEED 2", "RIGHT NEED 2", "rhs NEED 2"};
    for (int i = 0; i < 3; i++) {
        char *stoch = replaced(STOCH, "RHS  NEED  2", NAME[i]);
        sp_problem_free(read_texts(CORE, TIME, stoch));
        free(stoch);
    }
    sp_problem *p = read_changed(CORE, "    RHS  LIMIT  10  NEED  3\n", "    LIMIT  10  NEED  3\n");
    assert_near(p->stage[1].rhs[0], 3);
    sp_problem_free(p);
    p = read_changed(CORE, " UP BND  X  8\n", " UP X  8\n");
    assert_near(p->stage[0].upper[0], 8);
    sp_problem_free(p);
}

static void core_of_a_random_row_may_be_absent(void **state) {
    (void)state;
    sp_problem *p = read_changed(CORE, "  NEED  3", "");
    assert_near(p->target[0].core, 0);
    sp_problem_free(p);
}

static void the_constant_is_minus_the_objectives_rhs(void **state) {
    (void)state;
    sp_problem *p = read_changed(CORE, "    RHS  MIX  1\n", "    RHS  MIX  1  COST  -12.5\n");
    assert_near(p->constant, 12.5);
    sp_problem_free(p);
}

static void further_free_rows_are_dropped(void **state) {
    (void)state;
    char *core = replaced(CORE, " E  MIX\n", " N  OTHER\n E  MIX\n");
    sp_problem *p = read_changed(core, "    Y  MIX  1\n", "    Y  MIX  1  OTHER  4\n");
    assert_int_equal(p->stage[1].rows, 2);
    assert_int_equal(p->w.start[2], 3);
    free(core);
    sp_problem_free(p);
}

static void period_one_may_begin_at_the_objective(void **state) {
    (void)state;
    char *time = replaced(TIME, "X  LIMIT", "X  COST");
    sp_problem_free(read_texts(CORE, time, STOCH));
    free(time);
}

static void stage_one_may_have_no_rows(void **state) {
    (void)state;
    static const char first[] =
        "ROWS\n N COST\n G NEED\nCOLUMNS\n X COST 1 NEED 1\n Y COST 5 NEED 1\nENDATA\n";
    static const char last[] =
        "ROWS\n G NEED\n N COST\nCOLUMNS\n X COST 1 NEED 1\n Y COST 5 NEED 1\nENDATA\n";
    for (int i = 0; i < 4; i++) {
        char *time = replaced(TIME, "X  LIMIT", i % 2 ? "X  COST" : "X  NEED");
        sp_problem *p =
            read_texts(i / 2 ? last : first, time, "STOCH\nINDEP DISCRETE\n RHS NEED 1 1\nENDATA\n");
        assert_int_equal(p->stage[0].rows, 0);
        assert_int_equal(p->stage[1].rows, 1);
        assert_int_equal(p->t.start[1], 1);
        sp_problem_free(p);
        free(time);
    }
}

static void numbers_may_be_written_as_fortran_prints_them(void **state) {
    (void)state;
    sp_problem *p = read_changed(CORE, " UP BND  X  8\n", " UP BND  X  .800000E+01\n");
    assert_near(p->stage[0].upper[0], 8);
    sp_problem_free(p);
}

static void every_type_of_bound_is_read(void **state) {
    (void)state;
    static const struct {
        const char *lines;
        double lower, upper;
    } CASE[] = {
        {" UP B Z 3\n", 0, 3},
        {" LO B Z -3\n", -3, INFINITY},
        {" LO B Z 1\n UP B Z 2\n", 1, 2},
        {" UP B Z -1\n LO B Z -2\n", -2, -1},
        {" FX B Z 2\n", 2, 2},
        {" FX Z -2\n", -2, -2},
        {" FR B Z\n", -INFINITY, INFINITY},
        {" FR B Z 0\n", -INFINITY, INFINITY},
        {" FR Z\n", -INFINITY, INFINITY},
        {" MI B Z\n", -INFINITY, INFINITY},
        {" MI B Z\n UP B Z -4\n", -INFINITY, -4},
        {" PL B Z\n", 0, INFINITY},
        {" UP B Z 1e30\n", 0, INFINITY},
        {" UP B Z Inf\n", 0, INFINITY},
        {" LO B Z -infinity\n", -INFINITY, INFINITY},
        {" UP B Z 0\n", 0, 0},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        sp_problem *p = read_changed(CORE, " UP BND  X  8\n", CASE[i].lines);
        assert_true(p->stage[0].lower[1] == CASE[i].lower);
        assert_true(p->stage[0].upper[1] == CASE[i].upper);
        sp_problem_free(p);
    }
}

static void ranges_widen_rows_to_their_open_side(void **state) {
    (void)state;
    static const struct {
        const char *line;
        int stage, row;
        double below, above;
    } CASE[] = {
        {" RNG LIMIT 4\n", 0, 0, -4, 0}, {" RNG LIMIT -4\n", 0, 0, -4, 0},
        {" RNG NEED 4\n", 1, 0, 0, 4},   {" RNG NEED -4\n", 1, 0, 0, 4},
        {" RNG MIX 4\n", 1, 1, 0, 4},    {" RNG MIX -4\n", 1, 1, -4, 0},
        {" NEED 2\n", 1, 0, 0, 2},       {"", 0, 0, -INFINITY, 0},
        {"", 1, 0, 0, INFINITY},         {"", 1, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        sp_problem *p = read_changed(CORE, "    RNG  LIMIT  4\n", CASE[i].line);
        assert_true(p->stage[CASE[i].stage].below[CASE[i].row] == CASE[i].below);
        assert_true(p->stage[CASE[i].stage].above[CASE[i].row] == CASE[i].above);
        sp_problem_free(p);
    }
}

/* ---- refusals ---- */

/* Section names may be indented, and lines may be repeated. */
static void what_is_said_twice_counts_once(void **state) {
    (void)state;
    sp_problem *p = read_texts("  NAME TWICE\n  ROWS\n N COST\n L LIMIT\n L LIMIT\n G NEED\n\tCOLUMNS\n"
                               " X COST 1 LIMIT 2\n X COST 1 LIMIT 2\n X NEED 3\n X NEED 3\n"
                               " Y COST 5 NEED 1\n Y NEED 1\n  RHS\n R LIMIT 10 NEED 4\n R NEED 4\n"
                               "  RANGES\n G LIMIT 2\n G LIMIT 2\n  BOUNDS\n UP B X 8\n UP B X 8\n"
                               " LO B Y -1\n LO B Y -1\n  ENDATA\n",
                               " TIME TWICE\n PERIODS LP\n X LIMIT A\n Y NEED B\n ENDATA\n",
                               " STOCH TWICE\n INDEP DISCRETE\n R NEED 4 0.5\n R NEED 6 0.5\n ENDATA\n");
    assert_int_equal(p->stage[0].columns, 1);
    assert_int_equal(p->stage[0].rows, 1);
    assert_int_equal(p->a.start[1], 1);
    assert_int_equal(p->t.start[1], 1);
    assert_int_equal(p->w.start[1], 1);
    assert_true(p->stage[0].cost[0] == 1 && p->stage[0].upper[0] == 8 && p->stage[1].lower[0] == -1);
    assert_true(p->scaled_line == 0);
    sp_problem_free(p);
}

static void sections_of_stoch_may_be_indented(void **state) {
    (void)state;
    static const char *const stochs[] = {
        " STOCH\n SCENARIOS\n SC A ROOT 1 LATER\n RHS NEED 1\n ENDATA\n",
        "\tSCENARIOS DISCRETE REPLACE\n SC A ROOT 1 LATER\n RHS NEED 1\n ENDATA\n",
        "  BLOCKS DISCRETE REPLACE\n BL A LATER 1\n RHS NEED 1\n ENDATA\n",
        " STOCH\n INDEP DISCRETE REPLACE\n RHS NEED 1 1\n ENDATA\n",
    };
    for (size_t i = 0; i < sizeof stochs / sizeof *stochs; i++)
        sp_problem_free(read_texts(CORE, TIME, stochs[i]));
}

/* The file's probabilities are cut to three digits, so their sum is below 1. The reader divides each by the
 * sum, so that no single outcome gets the missing part.
 */
static void probabilities_are_divided_by_their_sum(void **state) {
    (void)state;
    static const char core[] = "ROWS\n N COST\n L LIMIT\n G NEED\nCOLUMNS\n X COST 1 LIMIT 1\n X NEED 1\n"
                               " Y COST 5 NEED 1\nRHS\n R NEED 4\nENDATA\n";
    static const char time[] = "PERIODS\n X LIMIT A\n Y NEED B\nENDATA\n";
    sp_problem *p = read_texts(core, time,
                               "STOCH\nINDEP DISCRETE\n R NEED 4 0.333\n R NEED 5 0.333\n R NEED 6 0.333\n"
                               "ENDATA\n");
    for (int i = 0; i < 3; i++)
        assert_near(p->outcome[i].below, (i + 1) / 3.0);
    assert_true(p->outcome[2].below == 1);
    assert_int_equal(p->scaled_line, 3);
    assert_near(p->scaled_sum, 0.999);
    sp_problem_free(p);
    p = read_texts(core, time, "STOCH\nINDEP DISCRETE\n R NEED 4 0.5\n R NEED 5 0.499\nENDATA\n");
    assert_near(p->outcome[0].below, 0.5 / 0.999);
    sp_problem_free(p);
}

enum { IN_CORE, IN_TIME, IN_STOCH, IN_BLOCKS, IN_TREE };

static const struct refusal {
    int file;
    const char *from, *to; /* the test replaces the text `from` by `to`, which makes the file wrong */
    const char *where, *what;
} REFUSAL[] = {
    /* CORE */
    {IN_CORE, "ROWS", "ROES", "core:2: ", "\"ROES\" in column 1 is not a known section"},
    {IN_CORE, "NAME          TINY\n", "OBJSENSE MAX\n", "core:1: ", "\"OBJSENSE\""},
    {IN_CORE, "NAME          TINY\n", " N COST\n", "core:1: ", "data before a section"},
    {IN_CORE, "BOUNDS\n", "RHS\n", "core:20: ", "a second section RHS"},
    {IN_CORE, "ROWS\n", "COLUMNS\nROWS\n", "core:2: ", "COLUMNS before ROWS"},
    {IN_CORE, "COLUMNS\n", "RHS\nCOLUMNS\n", "core:7: ", "RHS before COLUMNS"},
    {IN_CORE, "COLUMNS\n", "NAME\nCOLUMNS\n", "core:7: ", "a second section NAME"},
    {IN_CORE, "NAME          TINY\nROWS\n", "ROWS\nNAME\n", "core:2: ", "NAME after other sections"},
    {IN_CORE, " L  LIMIT", " Q  LIMIT", "core:4: ", "\"Q\" is not a type of row"},
    {IN_CORE, " L  LIMIT", " L", "core:4: ", "expected a type and a row's name"},
    {IN_CORE, " G  NEED", " G  LIMIT", "core:5: ", "row LIMIT was given before"},
    {IN_CORE, " N  COST\n", "", "core:7: ", "there is no row COST"},
    {IN_CORE, "    X  NEED  1\n", "    X  NOED  1\n", "core:9: ", "there is no row NOED"},
    {IN_CORE, "    X  NEED  1\n", "    X  LIMIT  7\n", "core:9: ", "column X has row LIMIT twice"},
    {IN_CORE, "    X  NEED  1\n", "    X  COST  7\n", "core:9: ", "column X has row COST twice"},
    {IN_CORE, "    Y  MIX  1\n", "    X  MIX  1\n", "core:13: ", "column X was given above"},
    {IN_CORE, "    X  NEED  1\n", "    X  NEED\n", "core:9: ", "expected COLUMN ROW VALUE"},
    {IN_CORE, "    X  NEED  1\n", "    X  NEED  1  2  3  4  5\n", "core:9: ", "7 fields on one line"},
    {IN_CORE, "    X  NEED  1\n", "    X  NEED  one\n", "core:9: ", "\"one\" is not a number"},
    {IN_CORE, "    X  NEED  1\n", "    X  NEED  0x10\n", "core:9: ", "\"0x10\" is not a number"},
    {IN_CORE, "    X  NEED  1\n", "    X  NEED  nan\n", "core:9: ", "\"nan\" is not a number"},
    {IN_CORE, "    X  NEED  1\n", "    X  NEED  1.2.3\n", "core:9: ", "\"1.2.3\" is not a number"},
    {IN_CORE, "    X  NEED  1\n", "    X  NEED  1e999\n", "core:9: ", "1e999 is too large"},
    {IN_CORE, "COST  1", "COST  1e15", "core:8: ", "the cost 1e15 is too large"},
    {IN_CORE, "    X  NEED  1\n", "    M  'MARKER'  'INTORG'\n", "core:9: ", "integer columns"},
    {IN_CORE, "    Y  MIX  1\n", "    Y  LIMIT  1\n",
     "core:13: ", "column Y of stage 2 has an entry in row LIMIT of stage 1"},
    {IN_CORE, "    RHS  MIX  1\n", "    RHS  NEED  77\n",
     "core:17: ", "row NEED has a right-hand side already"},
    {IN_CORE, "    RHS  MIX  1\n", "    R2  MIX  1\n", "core:17: ", "a second set R2 beside RHS"},
    {IN_CORE, "    RHS  MIX  1\n", "    MIX\n", "core:17: ", "expected SET ROW VALUE"},
    {IN_CORE, "    RNG  LIMIT  4\n", "    RNG  COST  4\n", "core:19: ", "row COST of type N has no range"},
    {IN_CORE, "    RNG  LIMIT  4\n", "    RNG  LIMIT  4  LIMIT  5\n",
     "core:19: ", "row LIMIT has a range already"},
    {IN_CORE, " UP BND  X  8\n", " BV BND  X\n", "core:21: ", "\"BV\" is not a known type of bound"},
    {IN_CORE, " UP BND  X  8\n", " UP BND  W  8\n", "core:21: ", "there is no column W"},
    {IN_CORE, " UP BND  X  8\n", " UP X\n", "core:21: ", "expected TYPE SET COLUMN VALUE"},
    {IN_CORE, " UP BND  X  8\n", " UP BND  X  8\n UP BND  X  9\n",
     "core:22: ", "column X has its upper bound already"},
    {IN_CORE, " UP BND  X  8\n", " UP BND  X  8\n LO BND  X  9\n",
     "core:22: ", "lower bound 9 above upper bound 8"},
    {IN_CORE, " UP BND  X  8\n", " UP BND  X  -8\n", "core:21: ", "a negative upper and no lower bound"},
    {IN_CORE, " UP BND  X  8\n", " LO BND  X  inf\n", "core:21: ", "leaves column X no value"},
    {IN_CORE, " UP BND  X  8\n", " FX BND  X  1e31\n", "core:21: ", "leaves column X no value"},
    {IN_CORE, " UP BND  X  8\n", " UP BND  X  8\n UP B2  Z  9\n", "core:22: ", "a second set B2 beside BND"},
    {IN_CORE, "ENDATA\n", "", "core:21: ", "ends without ENDATA"},
    /* TIME */
    {IN_TIME, "PERIODS  LP", "PERIODS  EXPLICIT", "time:2: ", "PERIODS EXPLICIT is not read"},
    {IN_TIME, "PERIODS  LP", "ROWS", "time:2: ", "section \"ROWS\" is not expected"},
    {IN_TIME, "PERIODS  LP\n", "", "time:2: ", "data before PERIODS"},
    {IN_TIME, "    X  LIMIT  NOW", "    Q  LIMIT  NOW", "time:3: ", "there is no column Q"},
    {IN_TIME, "    X  LIMIT  NOW", "    X  QIMIT  NOW", "time:3: ", "there is no row QIMIT"},
    {IN_TIME, "    X  LIMIT  NOW", "    X  LIMIT", "time:3: ", "expected COLUMN ROW PERIOD"},
    {IN_TIME, "    X  LIMIT  NOW", "    Z  LIMIT  NOW", "time:3: ", "period 1 begins at column Z"},
    {IN_TIME, "    X  LIMIT  NOW", "    X  NEED  NOW", "time:3: ", "period 1 begins at row NEED"},
    {IN_TIME, "    Y  NEED  LATER", "    X  NEED  LATER",
     "time:4: ", "period 2 begins at CORE's first column"},
    {IN_TIME, "    Y  NEED  LATER", "    Y  COST  LATER", "time:4: ", "row COST of type N"},
    {IN_TIME, "    Y  NEED  LATER", "    Y  NEED  NOW", "time:4: ", "both periods are called NOW"},
    {IN_TIME, "    Y  NEED  LATER\n", "    Y  NEED  LATER\n    S  MIX  END\n",
     "time:5: ", "there is a third period END"},
    {IN_TIME, "    Y  NEED  LATER\n", "", "time:4: ", "1 periods, expected two"},
    {IN_TIME, "ENDATA\n", "", "time:4: ", "ends without ENDATA"},
    /* STOCH */
    {IN_STOCH, "INDEP  DISCRETE", "INDEP  NORMAL", "stoch:2: ", "distribution NORMAL is not read"},
    {IN_STOCH, "INDEP  DISCRETE", "INDEP  UNIFORM", "stoch:2: ", "distribution UNIFORM is not read"},
    {IN_STOCH, "INDEP  DISCRETE", "INDEP", "stoch:2: ", "distribution (none) is not read"},
    {IN_STOCH, "INDEP  DISCRETE", "BLOCKS  LINTR", "stoch:2: ", "distribution LINTR is not read"},
    {IN_STOCH, "INDEP  DISCRETE", "INDEP  DISCRETE  ADD",
     "stoch:2: ", "\"ADD\" is not read here, expected values"},
    {IN_STOCH, "INDEP  DISCRETE", "INDEP  DISCRETE  MULTIPLY",
     "stoch:2: ", "\"MULTIPLY\" is not read here, expected values"},
    {IN_STOCH, "INDEP  DISCRETE", "SCENARIOS  DISCRETE  ADD",
     "stoch:2: ", "\"ADD\" is not read here, expected values"},
    {IN_STOCH, "INDEP  DISCRETE", "NODES  DISCRETE", "stoch:2: ", "\"NODES\" in column 1"},
    {IN_STOCH, "INDEP  DISCRETE\n", "", "stoch:2: ", "data before a section"},
    {IN_STOCH, "STOCH\n", "STOCH\nSTOCH\n", "stoch:2: ", "\"STOCH\" in column 1"},
    {IN_STOCH, "RHS  NEED  2  LATER", "RHS  NEED  2  NOW", "stoch:3: ", "period NOW, expected LATER"},
    {IN_STOCH, "0.25", "-0.25", "stoch:3: ", "probability -0.25 is outside 0 to 1"},
    {IN_STOCH, "0.25", "1.25", "stoch:3: ", "probability 1.25 is outside 0 to 1"},
    {IN_STOCH, "0.25", "0.24", "stoch:3: ", "add up to 0.99, expected 1"},
    {IN_STOCH, "0.25", "0.2489", "stoch:3: ", "add up to 0.9989, expected 1"},
    {IN_STOCH, "0.25", "lots", "stoch:3: ", "\"lots\" is not a number"},
    {IN_STOCH, "RHS  NEED  2", "RHS  NOED  2", "stoch:3: ", "there is no row NOED"},
    {IN_STOCH, "RHS  NEED  2", "RHS  LIMIT  2", "stoch:3: ", "row LIMIT is of stage 1"},
    {IN_STOCH, "RHS  NEED  2", "RHS  COST  2", "stoch:3: ", "row COST of type N cannot be random"},
    {IN_STOCH, "RHS  NEED  2", "Q  NEED  2",
     "stoch:3: ", "Q is neither a column of CORE nor its right-hand side"},
    {IN_STOCH, "RHS  NEED  2", "X  COST  2", "stoch:3: ", "row COST of type N cannot be random"},
    {IN_STOCH, "RHS  NEED  2", "X  LIMIT  2", "stoch:3: ", "row LIMIT is of stage 1"},
    {IN_STOCH, "RHS  NEED  2", "BND  X  2", "stoch:3: ", "random bounds and ranges (BND) are not read"},
    {IN_STOCH, "RHS  NEED  2", "UP  X  2", "stoch:3: ", "random bounds and ranges (UP) are not read"},
    {IN_STOCH, "RHS  NEED  2", "RNG  NEED  2", "stoch:3: ", "random bounds and ranges (RNG) are not read"},
    {IN_STOCH, "RHS  NEED  2  LATER  0.25", "RHS  NEED  0.25",
     "stoch:3: ", "3 fields, expected RHS (or COLUMN) ROW"},
    {IN_STOCH, "    X  NEED  0  0.5\n", "    X  NEED  0  0.5\n    RHS  NEED  1  1\n",
     "stoch:7: ", "already has random values in line 3"},
    {IN_STOCH, "    X  NEED  0  0.5\n", "    X  NEED  0  0.5\nINDEP DISCRETE\n    X  NEED  1  1\n",
     "stoch:8: ", "already has random values in line 5"},
    {IN_STOCH, "ENDATA\n", "SCENARIOS\nENDATA\n", "stoch:7: ", "SCENARIOS beside other random data"},
    {IN_STOCH, "ENDATA\n", "", "stoch:6: ", "ends without ENDATA"},
    {IN_BLOCKS, " BL  B1  LATER  0.5\n", "", "stoch:3: ", "a value before the first line beginning with BL"},
    {IN_BLOCKS, " BL  B1  LATER  0.5\n", " BL  B1\n", "stoch:3: ", "expected BL NAME [PERIOD] PROBABILITY"},
    {IN_BLOCKS, " BL  B1  LATER  0.5\n", " BL  B1  NOW  0.5\n", "stoch:3: ", "period NOW, expected LATER"},
    {IN_BLOCKS, "    Y  COST  6\n", "    Y  COST\n", "stoch:5: ", "expected RHS (or COLUMN) ROW VALUE"},
    {IN_BLOCKS, "    Y  COST  6\n", "    Y  COST  -2e15\n", "stoch:5: ", "the cost -2e15 is too large"},
    {IN_BLOCKS, "    Y  COST  6\n", "    RHS  NEED  6\n", "stoch:5: ", "sets the same number twice"},
    {IN_BLOCKS, "    S  COST  3\n", "    RHS  MIX  3\n", "stoch:11: ", "already has random values in line 4"},
    {IN_BLOCKS, "    S  COST  3\n", "    S  COST  3\n BL  B1  LATER  0.5\n",
     "stoch:12: ", "block B1 was given above"},
    {IN_BLOCKS, "LATER  0.5", "LATER  0.4", "stoch:3: ", "add up to 0.9, expected 1"},
    {IN_TREE, " SC  A  ROOT  0.5  NOW\n", "", "stoch:3: ", "a value before the first line beginning with SC"},
    {IN_TREE, "SC  B  A", "SC  B  D", "stoch:5: ", "there is no scenario D above"},
    {IN_TREE, "SC  B  A", "SC  B  B", "stoch:5: ", "there is no scenario B above"},
    {IN_TREE, "SC  B  A", "SC  A  A", "stoch:5: ", "scenario A was given before"},
    {IN_TREE, "0.25  LATER", "0.25  NEVER", "stoch:5: ", "period NEVER, expected LATER"},
    {IN_TREE, " SC  B  A  0.25  LATER\n", " SC  B  0.25\n",
     "stoch:5: ", "expected SC NAME PARENT PROBABILITY"},
    {IN_TREE, "ENDATA\n", "INDEP DISCRETE\nENDATA\n", "stoch:9: ", "SCENARIOS beside other random data"},
};

static void wrong_files_are_refused_with_file_and_line(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof REFUSAL / sizeof *REFUSAL; i++) {
        const struct refusal *r = &REFUSAL[i];
        const char *text[] = {CORE, TIME, r->file == IN_BLOCKS ? BLOCKS : r->file == IN_TREE ? TREE : STOCH};
        int at = r->file > IN_STOCH ? IN_STOCH : r->file;
        char *wrong = replaced(text[at], r->from, r->to);
        text[at] = wrong;
        sp_file core = text_file("core", text[0]), time = text_file("time", text[1]),
                stoch = text_file("stoch", text[2]);
        sp_problem *problem = (sp_problem *)state;
        kilter_error error = {.text = ""};
        kilter_status status = sp_problem_read((sp_file[]){core, time, stoch}, &problem, &error);
        if (status != KILTER_ERR_INPUT || strncmp(error.text, r->where, strlen(r->where)) != 0 ||
            !strstr(error.text, r->what))
            fail_msg("\"%s\" -> \"%s\" gave %d \"%s\", expected \"%s...%s\"", r->from, r->to, (int)status,
                     error.text, r->where, r->what);
        assert_int_equal(error.status, KILTER_ERR_INPUT);
        assert_ptr_equal(problem, state); /* after an error the result is unchanged */
        free(wrong);
    }
}

/* STOCH names no value, so nothing is random and the table of targets is empty. */
static void a_block_without_values_is_read_or_refused_like_any_other(void **state) {
    (void)state;
    const struct { const char *probability, *says; } rows[] = {{"1", ""}, {"0.3", "expected 1"}};
    for (int i = 0; i < 2; i++) {
        char text[128];
        snprintf(text, sizeof text, "STOCH\nBLOCKS DISCRETE\n BL B1 LATER %s\nENDATA\n", rows[i].probability);
        sp_file files[] = {text_file("core", CORE), text_file("time", TIME), text_file("stoch", text)};
        sp_problem *problem = NULL;
        kilter_error error = {.text = ""};
        kilter_status status = sp_problem_read(files, &problem, &error);
        assert_int_equal(status == KILTER_OK, *rows[i].says == '\0');
        assert_non_null(strstr(error.text, rows[i].says));
        sp_problem_free(problem);
    }
}

/* A section without data is allowed, unless it is required; then the error names the section. */
static void sections_without_data_are_read_or_refused(void **state) {
    (void)state;
    static const struct {
        /* core, time, stoch: NULL for the usual text; says: the expected error, "" if the problem is accepted
         */
        const char *core, *time, *stoch, *says;
    } rows[] = {
        {"ROWS\nCOLUMNS\nRHS\nENDATA\n", NULL, NULL, "core:4: no row of type N"},
        {"ROWS\n N COST\n L LIMIT\n G NEED\n E MIX\nCOLUMNS\nENDATA\n", NULL, NULL,
         "time:3: there is no column X"},
        {"ROWS\n N COST\n L LIMIT\n G NEED\n E MIX\nCOLUMNS\n X LIMIT 1\n Y NEED 1\n S MIX 1\n"
         "RHS\nRANGES\nBOUNDS\nENDATA\n",
         NULL, "STOCH\nINDEP DISCRETE\n RHS NEED 1 1\nENDATA\n", ""},
        {NULL, "PERIODS\nENDATA\n", NULL, "time:2: 0 periods"},
        {NULL, NULL, "STOCH\nENDATA\n", "stoch:2: nothing is random"},
        {NULL, NULL, "STOCH\nINDEP DISCRETE\nENDATA\n", "stoch:3: nothing is random"},
        {NULL, NULL, "STOCH\nBLOCKS DISCRETE\nENDATA\n", "stoch:3: nothing is random"},
        {NULL, NULL, "STOCH\nSCENARIOS DISCRETE\nENDATA\n", "stoch:3: nothing is random"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sp_file files[] = {text_file("core", rows[i].core ? rows[i].core : CORE),
                           text_file("time", rows[i].time ? rows[i].time : TIME),
                           text_file("stoch", rows[i].stoch ? rows[i].stoch : STOCH)};
        sp_problem *problem = NULL;
        kilter_error error = {.text = ""};
        kilter_status status = sp_problem_read(files, &problem, &error);
        if ((status == KILTER_OK) != (*rows[i].says == 0) || !strstr(error.text, rows[i].says))
            fail_msg("row %d: \"%s\", expected \"%s\"", (int)i, error.text, rows[i].says);
        sp_problem_free(problem);
    }
}

static void empty_files_and_zero_bytes_are_refused(void **state) {
    (void)state;
    sp_problem *problem;
    kilter_error error;
    sp_file core = text_file("core", CORE), time = text_file("time", TIME), stoch = text_file("stoch", STOCH);
    sp_file nothing = {"nothing", NULL, 0}, zero = {"zero", "NAME\n\0", 6};
    assert_int_equal(sp_problem_read((sp_file[]){nothing, time, stoch}, &problem, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, "nothing:1: "));
    assert_int_equal(sp_problem_read((sp_file[]){core, nothing, stoch}, &problem, &error), KILTER_ERR_INPUT);
    assert_int_equal(sp_problem_read((sp_file[]){core, time, nothing}, &problem, &error), KILTER_ERR_INPUT);
    assert_int_equal(sp_problem_read((sp_file[]){zero, time, stoch}, &problem, &error), KILTER_ERR_INPUT);
    assert_string_equal(error.text, "zero:2: there is a NUL byte here, expected text");
    /* a file that is too large is refused before its bytes are read */
    core.size = (size_t)SP_FILE_BYTES_MAX + 1;
    assert_int_equal(sp_problem_read((sp_file[]){core, time, stoch}, &problem, &error), KILTER_ERR_INPUT);
}

static void long_and_unprintable_names_stay_short_in_errors(void **state) {
    (void)state;
    char name[400];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = 0;
    name[3] = 27;
    char *core = replaced(CORE, "    X  NEED  1\n", "    X  @  1\n");
    char *text = replaced(core, "@", name);
    sp_file file = text_file("core", text), time = text_file("time", TIME), stoch = text_file("stoch", STOCH);
    sp_problem *problem;
    kilter_error error;
    assert_int_equal(sp_problem_read((sp_file[]){file, time, stoch}, &problem, &error), KILTER_ERR_INPUT);
    assert_string_equal(error.text,
                        "core:9: there is no row aaa?aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..., expected one "
                        "of section ROWS");
    free(core);
    free(text);
}

/* A file with lost or damaged bytes must give either a valid problem, or an error with file and line. */

static void read_damaged(const sp_file file[3]) {
    sp_problem *problem = NULL;
    kilter_error error = {.text = ""};
    kilter_status status = sp_problem_read(file, &problem, &error);
    if (status == KILTER_OK) {
        assert_non_null(problem);
        sp_problem_free(problem);
        return;
    }
    assert_int_equal(status, KILTER_ERR_INPUT);
    unsigned long line;
    char name[16];
    if (sscanf(error.text, "%15[a-z]:%lu: ", name, &line) != 2 || line == 0)
        fail_msg("no file and line in \"%s\"", error.text);
}

static void every_cut_of_a_file_is_a_problem_or_an_error(void **state) {
    (void)state;
    const char *stoch[] = {STOCH, BLOCKS, TREE};
    for (int s = 0; s < 3; s++) {
        sp_file whole[] = {text_file("core", CORE), text_file("time", TIME), text_file("stoch", stoch[s])};
        for (int f = 0; f < 3; f++) {
            for (size_t size = 0; size <= whole[f].size; size++) {
                sp_file file[] = {whole[0], whole[1], whole[2]};
                char *cut = malloc(
                    size +
                    1); /* allocate exactly the cut size, so that a sanitizer detects reads beyond the end */
                memcpy(cut, whole[f].data, size);
                file[f].data = cut;
                file[f].size = size;
                read_damaged(file);
                free(cut);
            }
        }
    }
}

static void every_damaged_byte_is_a_problem_or_an_error(void **state) {
    (void)state;
    static const char BYTE[] = " \n*-.0E9'BX\t\x80";
    const char *stoch[] = {STOCH, BLOCKS, TREE};
    for (int s = 0; s < 3; s++) {
        sp_file whole[] = {text_file("core", CORE), text_file("time", TIME), text_file("stoch", stoch[s])};
        for (int f = 0; f < 3; f++) {
            char *copy = malloc(whole[f].size);
            for (size_t at = 0; at < whole[f].size; at++) {
                for (size_t b = 0; b < sizeof BYTE; b++) { /* including the 0 at the end of the string BYTE */
                    memcpy(copy, whole[f].data, whole[f].size);
                    copy[at] = BYTE[b];
                    sp_file file[] = {whole[0], whole[1], whole[2]};
                    file[f].data = copy;
                    read_damaged(file);
                }
            }
            free(copy);
        }
    }
}

static void a_tree_that_multiplies_is_refused(void **state) {
    (void)state;
    /* The first outcome has 6000 numbers, and 6000 other outcomes inherit them. These 36 million values are
     * too many. */
    sp_buffer core = {0}, stoch = {0};
    char line[80];
    sp_put_bytes(&core, "ROWS\n N C\n L A\n", 15);
    for (int i = 0; i < 6000; i++)
        sp_put_bytes(&core, line, (size_t)snprintf(line, sizeof line, " G R%d\n", i));
    sp_put_bytes(&core, "COLUMNS\n X A 1\n Y R0 1\nENDATA\n", 30);
    sp_put_bytes(&stoch, "BLOCKS DISCRETE\n BL B 0.5\n", 26);
    for (int i = 0; i < 6000; i++)
        sp_put_bytes(&stoch, line, (size_t)snprintf(line, sizeof line, " RHS R%d 1\n", i));
    for (int i = 0; i < 6000; i++)
        sp_put_bytes(&stoch, " BL B 0\n", 8);
    sp_put_bytes(&stoch, " BL B 0.5\nENDATA\n", 17);
    sp_file file[] = {{"core", (char *)core.data, core.size},
                      text_file("time", "PERIODS\n X A P1\n Y R0 P2\nENDATA\n"),
                      {"stoch", (char *)stoch.data, stoch.size}};
    sp_problem *problem;
    kilter_error error;
    assert_int_equal(sp_problem_read(file, &problem, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, "written out in full have more than 16777216 values"));
    sp_buffer_free(&core);
    sp_buffer_free(&stoch);
}

/* ---- decisions ---- */

static kilter_status read_decision(const char *text, double x[2], kilter_error *error) {
    sp_problem *problem = read_texts(CORE, TIME, STOCH);
    sp_file file = text_file("at", text);
    double *read = NULL;
    kilter_status status = sp_decision_read(problem, &file, &read, error);
    if (!status)
        memcpy(x, read, 2 * sizeof *x);
    free(read);
    sp_problem_free(problem);
    return status;
}

static void decisions_are_counted_or_named(void **state) {
    (void)state;
    static const char *const TEXT[] = {"2\n3\n4\n", "2\n 3 4", "* why\n2\n\n3.0\n4e0\n", "X 3\nZ 4\n",
                                       " Z 4\n* so\n X 3"};
    for (size_t i = 0; i < sizeof TEXT / sizeof *TEXT; i++) {
        double x[2];
        kilter_error error = {.text = ""};
        if (read_decision(TEXT[i], x, &error))
            fail_msg("%s", error.text);
        assert_near(x[0], 3);
        assert_near(x[1], 4);
    }
}

static void wrong_decisions_are_refused_with_file_and_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *error;
    } CASE[] = {
        {"", "at:1: the file ends without a value for column X (0 of 2 are given)"},
        {"2\n3\n", "at:2: the file ends without a value for column Z (1 of 2 are given)"},
        {"3\n3\n4\n5\n", "at:1: 3 values announced, expected 2"},
        {"two\n", "at:1: \"two\" is not a number"},
        {"2\n3\n4\n5\n", "at:4: more values than the 2 first-stage columns"},
        {"2\n3\nfour\n", "at:3: \"four\" is not a number"},
        {"X 3\nY 4\n", "at:2: there is no first-stage column Y"},
        {"X 3\nX 4\n", "at:2: column X already has a value from line 1"},
        {"X 3\nZ\n", "at:2: 1 fields, expected COLUMN VALUE"},
        {"X 3\n", "at:1: the file ends without a value for column Z"},
        {"2\n9\n0\n", "at:2: column X is 9, expected 0 to 8"},
        {"2\n8\n-0.1\n", "at:3: column Z is -0.1, expected 0 to inf"},
        {"2\n8\n3\n",
         "at:3: the decision is not feasible: first-stage row LIMIT has the value 11, expected 6 to 10"},
        {"2\n1\n1\n",
         "at:3: the decision is not feasible: first-stage row LIMIT has the value 2, expected 6 to 10"},
        {"2\n1 2 3 4 5 6 7\n", "at:2: there are 7 fields"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        double x[2];
        kilter_error error = {.text = ""};
        assert_int_equal(read_decision(CASE[i].text, x, &error), KILTER_ERR_INPUT);
        if (strncmp(error.text, CASE[i].error, strlen(CASE[i].error)) != 0)
            fail_msg("\"%s\" is not \"%s\"", error.text, CASE[i].error);
    }
}

static void rounding_is_no_infeasibility(void **state) {
    (void)state;
    double x[2];
    kilter_error error = {.text = ""};
    assert_int_equal(read_decision("2\n8.000001\n2\n", x, &error), KILTER_OK);
    assert_int_equal(read_decision("2\n8.00002\n1\n", x, &error), KILTER_ERR_INPUT);
}

static void missing_files_say_so(void **state) {
    (void)state;
    sp_file file;
    kilter_error error;
    assert_int_equal(sp_file_load("no/such/file", &file, &error), KILTER_ERR_INPUT);
    assert_string_equal(error.text,
                        "reading no/such/file: No such file or directory; give the path of a readable file");
    assert_int_equal(sp_file_load(".", &file, &error), KILTER_ERR_INPUT);
}

static void shipped_problems_have_the_published_sizes(void **state) {
    (void)state;
    static const struct {
        const char *const *names;
        int rows1, columns1, rows2, columns2, variables;
    } CASE[] = {{LANDS, 2, 4, 7, 12, 3},
                {THREE_BLOCKS, 2, 4, 7, 12, 1},
                {THREE_SCENARIOS, 2, 4, 7, 12, 1},
                {AIRCRAFT, 4, 17, 5, 10, 5}};
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        double *x = NULL;
        sp_problem *p = load_problem(SP_PROBLEMS, CASE[i].names, &x);
        assert_int_equal(p->stage[0].rows, CASE[i].rows1);
        assert_int_equal(p->stage[0].columns, CASE[i].columns1);
        assert_int_equal(p->stage[1].rows, CASE[i].rows2);
        assert_int_equal(p->stage[1].columns, CASE[i].columns2);
        assert_int_equal(p->variables, CASE[i].variables);
        free(x);
        sp_problem_free(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_twice_counts_once),
        cmocka_unit_test(probabilities_are_divided_by_their_sum),
        cmocka_unit_test(every_cut_of_a_file_is_a_problem_or_an_error),
        cmocka_unit_test(every_damaged_byte_is_a_problem_or_an_error),
        cmocka_unit_test(a_problem_is_cut_by_position),
        cmocka_unit_test(indep_has_a_variable_per_number),
        cmocka_unit_test(later_outcomes_of_a_block_differ_from_its_first),
        cmocka_unit_test(a_scenario_takes_the_rest_from_its_parent),
        cmocka_unit_test(random_recourse_has_its_place_in_w),
        cmocka_unit_test(names_of_the_problem_may_be_missing),
        cmocka_unit_test(comments_and_blanks_do_not_count),
        cmocka_unit_test(the_last_newline_may_be_missing),
        cmocka_unit_test(bounds_may_be_empty),
        cmocka_unit_test(set_names_may_differ_or_be_left_out),
        cmocka_unit_test(core_of_a_random_row_may_be_absent),
        cmocka_unit_test(the_constant_is_minus_the_objectives_rhs),
        cmocka_unit_test(further_free_rows_are_dropped),
        cmocka_unit_test(period_one_may_begin_at_the_objective),
        cmocka_unit_test(stage_one_may_have_no_rows),
        cmocka_unit_test(sections_of_stoch_may_be_indented),
        cmocka_unit_test(numbers_may_be_written_as_fortran_prints_them),
        cmocka_unit_test(every_type_of_bound_is_read),
        cmocka_unit_test(ranges_widen_rows_to_their_open_side),
        cmocka_unit_test(wrong_files_are_refused_with_file_and_line),
        cmocka_unit_test(a_block_without_values_is_read_or_refused_like_any_other),
        cmocka_unit_test(sections_without_data_are_read_or_refused),
        cmocka_unit_test(empty_files_and_zero_bytes_are_refused),
        cmocka_unit_test(long_and_unprintable_names_stay_short_in_errors),
        cmocka_unit_test(a_tree_that_multiplies_is_refused),
        cmocka_unit_test(decisions_are_counted_or_named),
        cmocka_unit_test(wrong_decisions_are_refused_with_file_and_line),
        cmocka_unit_test(rounding_is_no_infeasibility),
        cmocka_unit_test(missing_files_say_so),
        cmocka_unit_test(shipped_problems_have_the_published_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
