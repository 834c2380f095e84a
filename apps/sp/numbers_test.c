#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "numbers.h"
#include "test_support.h"

static const char TIME[] = "PERIODS\n X LIMIT 1\n Y NEED 2\nENDATA\n";

/* The numbers of a small problem, as texts. The tests change some of them, and check the warning. */
typedef struct numbers {
    const char *cost, *a, *t, *w, *rhs, *random_t, *random_rhs;
} numbers;

static const numbers PLAIN = {"1", "1", "-2", "3", "4", "-5", "6"};

static bool stands_out(const numbers *n, char *text, size_t size) {
    char core[512], stoch[512];
    snprintf(core, sizeof core,
             "ROWS\n N COST\n L LIMIT\n G NEED\nCOLUMNS\n X COST 1 LIMIT %s\n X NEED %s\n"
             " Y COST %s NEED %s\nRHS\n RHS LIMIT %s NEED 1\nENDATA\n",
             n->a, n->t, n->cost, n->w, n->rhs);
    snprintf(stoch, sizeof stoch,
             "INDEP DISCRETE\n X NEED %s 0.5\n X NEED -1 0.5\n RHS NEED 1 0.5\n RHS NEED %s 0.5\nENDATA\n",
             n->random_t, n->random_rhs);
    sp_problem *problem = read_texts(core, TIME, stoch);
    bool found = sp_numbers_stand_out(problem, "core", "stoch", text, size);
    sp_problem_free(problem);
    return found;
}

static void the_number_is_named_with_its_file(void **state) {
    (void)state;
    static const struct {
        numbers numbers;
        const char *where; /* expected part of the warning; NULL: no warning is expected */
    } CASE[] = {
        {{"1", "1", "-2", "3", "4", "-5", "6"}, NULL},
        {{"1", "1", "-9e6", "9e6", "9e8", "-9e6", "9e8"}, NULL},
        {{"1", "1e11", "-2", "3", "4", "-5", "6"},
         "core: the matrix has 1e+11 (column X, row LIMIT) beside 1 "},
        /* random values replace −1e7, so there is no warning */
        {{"1", "1", "-1e7", "3", "4", "-5", "6"}, NULL},
        {{"1", "1", "-2", "1e7", "4", "-5", "6"},
         "core: the matrix has 1e+07 (column Y, row NEED) beside 1 "},
        {{"1", "1", "-2", "1e-7", "4", "-5", "6"}, "beside 1e-07 (core: column Y, row NEED)"},
        {{"1", "1", "-2", "3", "4", "-1e7", "6"},
         "stoch: the matrix has 1e+07 (column X, row NEED) beside 1 "},
        {{"-1e9", "1", "-2", "3", "4", "-5", "6"}, "core: the cost of column Y is 1e+09"},
        {{"1", "1", "-2", "3", "1e9", "-5", "6"}, "core: the right-hand side of row LIMIT is 1e+09"},
        {{"1", "1", "-2", "3", "4", "-5", "-1e9"}, "stoch: the right-hand side of row NEED is 1e+09"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char text[1024] = "";
        bool found = stands_out(&CASE[i].numbers, text, sizeof text);
        if (found != (CASE[i].where != NULL) || (found && !strstr(text, CASE[i].where)))
            fail_msg("case %zu: \"%s\" is not \"%s\"", i, text, CASE[i].where ? CASE[i].where : "");
    }
}

/* Zeros do not count as small numbers, and a problem may have no entries at all. */
static void what_is_not_there_does_not_stand_out(void **state) {
    (void)state;
    char text[1024];
    numbers zero = PLAIN;
    zero.random_t = "0";
    assert_false(stands_out(&zero, text, sizeof text));
    sp_problem *problem =
        read_texts("ROWS\n N COST\n L LIMIT\n G NEED\nCOLUMNS\n X COST 1\n Y COST 1\nENDATA\n", TIME,
                   "INDEP DISCRETE\n RHS NEED 0 1\nENDATA\n");
    assert_false(sp_numbers_stand_out(problem, "core", "stoch", text, sizeof text));
    sp_problem_free(problem);
}

/* A number of CORE counts only if it stays in at least one outcome. */
static void placeholders_do_not_stand_out(void **state) {
    (void)state;
    static const char CORE[] =
        "ROWS\n N COST\n L LIMIT\n G NEED\n G MORE\nCOLUMNS\n X COST 1 LIMIT 1\n X NEED 1e9\n"
        " Y COST 1e12 NEED 1\n Y MORE 1\nRHS\n RHS LIMIT 1 NEED 1e11\n RHS MORE 2\nENDATA\n";
    static const char ALL[] = "BLOCKS DISCRETE\n BL A 2 0.5\n X NEED 1\n Y COST 1\n RHS NEED 1\n"
                              " BL A 2 0.5\n X NEED 2\nINDEP DISCRETE\n RHS MORE 1 1\nENDATA\n";
    static const struct {
        const char *stoch, *where; /* where: expected part of the warning; NULL: no warning is expected */
    } CASE[] = {
        {ALL, NULL},
        {"BLOCKS DISCRETE\n BL A 2 0.5\n Y COST 1\n RHS NEED 1\n BL A 2 0.5\n X NEED 1\nENDATA\n",
         "core: the matrix has 1e+09 (column X, row NEED)"},
        {"BLOCKS DISCRETE\n BL A 2 0.5\n X NEED 1\n RHS NEED 1\n BL A 2 0.5\n Y COST 2\nENDATA\n",
         "core: the cost of column Y is 1e+12"},
        {"BLOCKS DISCRETE\n BL A 2 0.5\n X NEED 1\n Y COST 2\n BL A 2 0.5\n RHS NEED 3\nENDATA\n",
         "core: the right-hand side of row NEED is 1e+11"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        char text[1024] = "";
        sp_problem *problem = read_texts(CORE, TIME, CASE[i].stoch);
        bool found = sp_numbers_stand_out(problem, "core", "stoch", text, sizeof text);
        sp_problem_free(problem);
        if (found != (CASE[i].where != NULL) || (found && !strstr(text, CASE[i].where)))
            fail_msg("case %zu: \"%s\" is not \"%s\"", i, text, CASE[i].where ? CASE[i].where : "");
    }
}

static void random_recourse_takes_the_place_of_core(void **state) {
    (void)state;
    static const char CORE[] = "ROWS\n N COST\n L LIMIT\n G NEED\nCOLUMNS\n X COST 1 LIMIT 1\n"
                               " Y COST 1 NEED 1e9\nENDATA\n";
    static const char *const STOCH[] = {"INDEP DISCRETE\n Y NEED 0 0.5\n Y NEED 2 0.5\nENDATA\n",
                                        "INDEP DISCRETE\n Y NEED 1 0.5\n Y NEED 2e9 0.5\nENDATA\n"};
    for (int i = 0; i < 2; i++) {
        char text[1024] = "stoch: the matrix has 2e+09 (column Y, row NEED)";
        sp_problem *problem = read_texts(CORE, TIME, STOCH[i]);
        assert_int_equal(sp_numbers_stand_out(problem, "core", "stoch", text, sizeof text), i);
        sp_problem_free(problem);
        assert_non_null(strstr(text, "stoch: the matrix has 2e+09 (column Y, row NEED)"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_is_named_with_its_file),
        cmocka_unit_test(what_is_not_there_does_not_stand_out),
        cmocka_unit_test(placeholders_do_not_stand_out),
        cmocka_unit_test(random_recourse_takes_the_place_of_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
