#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sys/options.h"

typedef struct fields {
    bool on;
    const char *text;
    uint32_t small;
    uint64_t large;
    double number;
} fields;

#define AT(member) .offset = offsetof(fields, member)

static kilter_status refuse_x(const kl_value *v) {
    return strcmp(v->text, "x") == 0 ? kl_option_refuse(v, "not for this test") : KILTER_OK;
}

static const kl_option ROWS[] = {
    {"on", NULL, "A switch.", KL_OPTION_SWITCH, AT(on)},
    {"text", "TEXT", "A text.", KL_OPTION_TEXT, AT(text)},
    {"word", "WORD", "A word.", KL_OPTION_TEXT, AT(text), .words = "one two"},
    {"file", "FILE", "A file.", KL_OPTION_TEXT, AT(text), .is_file = true},
    {"checked", "TEXT", "A checked text.", KL_OPTION_TEXT, AT(text), .read = refuse_x},
    {"small", "N", "A small number.", KL_OPTION_UINT32, AT(small), .least = 1, .most = 10},
    {"wide", "N", "A number of 32 bits.", KL_OPTION_UINT32, AT(small)},
    {"large", "N", "A large number.", KL_OPTION_UINT64, AT(large)},
    {"part", "PART", "A part.", KL_OPTION_NUMBER, AT(number), .above = true, .most = 1},
    {"time", "SECONDS", "A time.", KL_OPTION_NUMBER, AT(number), .least = 0.5},
    {"whole", "N", "A whole number.", KL_OPTION_WHOLE, AT(number), .least = 1},
};
static const kl_option_list LIST = {ROWS, sizeof ROWS / sizeof *ROWS};

static kilter_status set(const char *name, const char *text, fields *f, kilter_error *error) {
    const kl_option *o = kl_option_find(LIST, name, strlen(name));
    assert_non_null(o);
    return kl_option_set(o, name, text, f, error);
}

static void good_values_are_stored(void **state) {
    (void)state;
    fields f = {0};
    assert_int_equal(set("on", "1", &f, NULL), KILTER_OK);
    assert_true(f.on);
    assert_int_equal(set("on", "0", &f, NULL), KILTER_OK);
    assert_false(f.on);
    const char *const texts[][2] = {
        {"text", "a b"}, {"text", "-"}, {"word", "two"}, {"file", "a"}, {"checked", "y"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(set(texts[i][0], texts[i][1], &f, NULL), KILTER_OK);
        assert_string_equal(f.text, texts[i][1]);
    }
    assert_int_equal(set("small", "10", &f, NULL), KILTER_OK);
    assert_int_equal(f.small, 10);
    assert_int_equal(set("wide", "4294967295", &f, NULL), KILTER_OK);
    assert_int_equal(f.small, UINT32_MAX);
    assert_int_equal(set("large", "18446744073709551615", &f, NULL), KILTER_OK);
    assert_true(f.large == UINT64_MAX);
    /* a double cannot hold the value of this option exactly */
    assert_int_equal(set("large", "9007199254740993", &f, NULL), KILTER_OK);
    assert_true(f.large == 9007199254740993u);
    const struct {
        const char *name, *text;
        double value;
    } numbers[] = {{"part", "1e-3", 1e-3},
                   {"part", ".5", .5},
                   {"part", "1", 1},
                   {"time", "0.5", .5},
                   {"whole", "1e6", 1e6}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_int_equal(set(numbers[i].name, numbers[i].text, &f, NULL), KILTER_OK);
        assert_true(f.number == numbers[i].value);
    }
}

static void bad_values_are_named_and_change_nothing(void **state) {
    (void)state;
    const struct {
        const char *name, *text, *says;
    } rows[] = {
        {"on", "2", "on: '2' is neither 0 nor 1"},
        {"on", "", "on: '' is neither"},
        {"text", "", "text: the value is empty"},
        {"word", "three", "word: 'three' is none of: one two"},
        {"word", "on", "word: 'on' is none of"},
        {"word", "one two", "word: 'one two' is none of"},
        {"file", "-", "file -: the standard output is needed for the answer"},
        {"checked", "x", "checked: 'x' is not for this test"},
        {"small", "0", "small: '0' is not a whole number from 1 to 10"},
        {"small", "11", "small: '11' is not a whole number from 1 to 10"},
        {"small", "+1", "small: '+1' is not"},
        {"small", " 1", "small: ' 1' is not"},
        {"small", "1.0", "small: '1.0' is not"},
        {"small", "0x1", "small: '0x1' is not"},
        {"small", "", "small: '' is not"},
        {"wide", "4294967296", "wide: '4294967296' is not a whole number"},
        {"large", "18446744073709551616",
         "large: '18446744073709551616' is not a whole number of at least 0"},
        {"large", "-1", "large: '-1' is not"},
        {"part", "0", "part: '0' is not a number above 0 and at most 1"},
        {"part", "1.01", "part: '1.01' is not"},
        {"part", "nan", "part: 'nan' is not"},
        {"part", "0.5x", "part: '0.5x' is not"},
        {"time", "0.4", "time: '0.4' is not a number of seconds of at least 0.5"},
        {"time", "inf", "time: 'inf' is not"},
        {"time", "1e999", "time: '1e999' is not"},
        {"whole", "1.5", "whole: '1.5' is not a whole number of at least 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fields f = {true, "before", 7, 7, 7};
        kilter_error error;
        assert_int_equal(set(rows[i].name, rows[i].text, &f, &error), KILTER_ERR_USAGE);
        if (!strstr(error.text, rows[i].says))
            fail_msg("%s lacks %s", error.text, rows[i].says);
        assert_true(f.on && strcmp(f.text, "before") == 0 && f.small == 7 && f.large == 7 && f.number == 7);
    }
}

static void only_whole_names_are_found(void **state) {
    (void)state;
    assert_ptr_equal(kl_option_find(LIST, "wide=3", 4), &ROWS[6]);
    assert_null(kl_option_find(LIST, "wid", 3));
    assert_null(kl_option_find(LIST, "wider", 5));
    assert_null(kl_option_find(LIST, "", 0));
}

/* Check that lines of help are not too long, that no word is missing, and that the column of option names
 * contains only names. */
static void help_is_wrapped(void **state) {
    (void)state;
    char *text = NULL, *rest = NULL, help[800] = "";
    size_t size = 0;
    for (int i = 0; i < 60; i++)
        snprintf(help + strlen(help), sizeof help - strlen(help), "%sword%d", i ? " " : "", i);
    FILE *out = open_memstream(&text, &size);
    kl_options_print(out, LIST);
    kl_option_print(out, "--long", help);
    fclose(out);
    for (size_t i = 0; i < LIST.count; i++)
        assert_non_null(strstr(text, ROWS[i].help));
    assert_non_null(strstr(text, "  --large N "));
    for (int i = 0; i < 60; i++) {
        char word[16];
        snprintf(word, sizeof word, "word%d", i);
        assert_non_null(strstr(text, word));
    }
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        assert_true(strlen(line) <= 80);
        assert_true(strncmp(line, "  --", 4) == 0 || strspn(line, " ") >= 20);
        assert_true(line[strlen(line) - 1] != ' ');
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_values_are_stored),
        cmocka_unit_test(bad_values_are_named_and_change_nothing),
        cmocka_unit_test(only_whole_names_are_found),
        cmocka_unit_test(help_is_wrapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
