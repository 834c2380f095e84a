#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sys/options.h"

static const char *const NAMES[] = {"workers", "team", "key", "wait-for-master", "record", "resume"};
enum { COUNT = sizeof NAMES / sizeof *NAMES };

/* Check that for every word with one typing error, the intended name is found. */
static void one_slip_is_known(void **state) {
    (void)state;
    for (size_t n = 0; n < COUNT; n++)
        for (size_t at = 0; at < strlen(NAMES[n]); at++) {
            char left_out[40], doubled[40], swapped[40], wrong[40];
            snprintf(left_out, sizeof left_out, "%.*s%s", (int)at, NAMES[n], NAMES[n] + at + 1);
            snprintf(doubled, sizeof doubled, "%.*s%s", (int)at + 1, NAMES[n], NAMES[n] + at);
            snprintf(swapped, sizeof swapped, "%s", NAMES[n]);
            snprintf(wrong, sizeof wrong, "%s", NAMES[n]);
            wrong[at] = '_';
            if (at > 0) {
                swapped[at] = NAMES[n][at - 1];
                swapped[at - 1] = NAMES[n][at];
            }
            assert_string_equal(kl_typo_of(left_out, NAMES, COUNT), NAMES[n]);
            assert_string_equal(kl_typo_of(doubled, NAMES, COUNT), NAMES[n]);
            assert_string_equal(kl_typo_of(wrong, NAMES, COUNT), NAMES[n]);
            if (strcmp(swapped, NAMES[n]) != 0)
                assert_string_equal(kl_typo_of(swapped, NAMES, COUNT), NAMES[n]);
        }
}

static void other_words_are_left_alone(void **state) {
    (void)state;
    static const char *const WORDS[] = {
        "workers", "key",     "tasks",
        "n",       "",        "seed",
        "turn",    "results", "a-word-that-is-longer-than-any-name-could-be-in-a-program"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        assert_null(kl_typo_of(WORDS[i], NAMES, COUNT));
}

static char *said(void (*say)(FILE *out, const void *what), const void *what) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    say(out, what);
    fclose(out);
    return text;
}

static void say_environment(FILE *out, const void *variables) {
    static const char *const KNOWN[] = {"KILTER_WORKERS", "KILTER_RECORD"};
    kl_typo_warn_environment(out, (char *const *)variables, KNOWN, 2);
}

static void say_argument(FILE *out, const void *argument) {
    static const kl_option ROWS[] = {{.name = "workers"}, {.name = "team"}};
    kl_typo_warn_argument(out, argument, (kl_option_list){ROWS, 2});
}

static void both_are_said_in_one_line_each(void **state) {
    (void)state;
    static const char *const VARIABLES[] = {
        "HOME=/", "KILTER_WORKERS=3", "KILTER_WROKERS=3", "KILTER_TEST_X=1", "KILTER_COLOUR=1", "KILTERS=1",
        NULL};
    char *text = said(say_environment, VARIABLES);
    assert_string_equal(text,
                        "kilter: KILTER_WROKERS: there is no such variable; did you mean KILTER_WORKERS?\n"
                        "kilter: KILTER_COLOUR: there is no such variable\n");
    free(text);
    static const char *const ARGUMENTS[] = {"--workres", "--workres=3", "--workers",
                                            "-workres",  "--",          "file"};
    for (int i = 0; i < 6; i++) {
        text = said(say_argument, ARGUMENTS[i]);
        assert_string_equal(
            text, i < 2 ? "kilter: --workres is left to the program; did you mean --workers?\n" : "");
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slip_is_known),
        cmocka_unit_test(other_words_are_left_alone),
        cmocka_unit_test(both_are_said_in_one_line_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
