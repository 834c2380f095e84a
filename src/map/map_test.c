/* Test command lines, combinations, halt rules, log lines and results by tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "map/map.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Fill values into one command. `line` gets the line for a shell. `words` gets the words for running without
 * a shell, each followed by |. */
static void fill_in(const char *command, bool quoted, const char *values, size_t size, char line[200],
                    char words[200]) {
    kl_map_template *t = NULL;
    kl_buffer text = {0}, plain = {0};
    const kl_map_fill fill = {7, 9, 2, values, kl_map_count_texts(values, size)};
    assert_int_equal(kl_map_template_new(command != NULL, &command, quoted, &t, NULL), KILTER_OK);
    kl_map_put_line(t, &fill, &text);
    size_t count = kl_map_put_words(t, &fill, &plain);
    assert_true(count == 0 || count == kl_map_count_texts((const char *)plain.data, plain.size));
    snprintf(line, 200, "%.*s", (int)text.size, text.size ? (const char *)text.data : "");
    for (size_t i = 0; i < plain.size && count > 0; i++)
        words[i] = plain.data[i] ? (char)plain.data[i] : '|';
    words[count > 0 ? plain.size : 0] = '\0';
    kl_buffer_free(&text);
    kl_buffer_free(&plain);
    kl_map_template_free(t);
}

static void test_lines(void **state) {
    static const struct {
        const char *command, *value, *line, *words;
    } CASES[] = {
        {"echo", "a", "echo a", "echo|a|"},
        {"echo", "a b", "echo 'a b'", "echo|a b|"},
        {"echo", "", "echo ''", "echo||"},
        {"echo", "it's", "echo 'it'\"'\"'s'", "echo|it's|"},
        {"echo", "~", "echo '~'", "echo|~|"},
        {"echo x{}y", "a;b", "echo x'a;b'y", "echo|xa;by|"},
        {"cp {} {.}.png", "d.d/a.tiff", "cp d.d/a.tiff d.d/a.png", "cp|d.d/a.tiff|d.d/a.png|"},
        {"cp  {}  b ", "a", "cp  a  b ", "cp|a|b|"},
        {"e {/} {//} {/.}", "x/y/z.tar.gz", "e z.tar.gz x/y z.tar", "e|z.tar.gz|x/y|z.tar|"},
        {"e {.} {//}", "d.d/a", "e d.d/a d.d", "e|d.d/a|d.d|"},
        {"e {//}", "a", "e .", "e|.|"},
        {"e {//}", "/a", "e /", "e|/|"},
        {"e {//}", "/a/b/", "e /a", "e|/a|"},
        {"e {#}{##}{%}", "a", "e 792", "e|792|"},
        {"e {1}{2}{-1}", "a", "e aa", ""},
        {"e {0} {=x=} {a} {}", "a", "e {0} {=x=} {a} a", ""},
        {"a=1 e {}", "b", "a=1 e b", ""},
        {"cd {}", "b", "cd b", ""},
        {"{} x", "echo", "echo x", ""},
        {"e{} x", "cho", "echo x", ""},
        {"echo {} | wc", "a", "echo a | wc", ""},
        {"echo $x {}", "a", "echo $x a", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        char line[200], words[200];
        fill_in(CASES[i].command, false, CASES[i].value, strlen(CASES[i].value) + 1, line, words);
        assert_string_equal(line, CASES[i].line);
        assert_string_equal(words, CASES[i].words);
    }
}

static void test_columns_and_quotes(void **state) {
    char line[200], words[200];
    (void)state;
    fill_in("e {2} {} {-2/.}", false, "a/b.c\0d e", 10, line, words);
    assert_string_equal(line, "e 'd e' a/b.c 'd e' b");
    assert_string_equal(words, "e|d e|a/b.c|d e|b|");
    fill_in("e  $x {}", true, "a b", 4, line, words);
    assert_string_equal(line, "'e  $x ''a b'");
    fill_in(NULL, false, "echo a  b", 10, line, words);
    assert_string_equal(line, "echo a  b");
    assert_string_equal(words, "echo|a|b|");
    fill_in(NULL, false, "echo 'a'", 9, line, words);
    assert_string_equal(line, "echo 'a'");
    assert_string_equal(words, "");
    fill_in(NULL, false, " exit 3", 8, line, words);
    assert_string_equal(words, "");
}

static void add_words(kl_map_source *source, const char *words) {
    assert_true(kl_map_source_lines(source, words, strlen(words), ' '));
}

static void test_combinations(void **state) {
    static const char *const WANTED[] = {"a1x", "a2y", "b1x", "b2y"};
    kl_map_source sources[3] = {[2] = {.beside = true}};
    kl_buffer values = {0};
    (void)state;
    assert_int_equal(kl_map_combinations(sources, 0), 0);
    assert_int_equal(kl_map_combinations(sources, 1), 0);
    add_words(&sources[0], "a b");
    add_words(&sources[1], "1 2 3 ");
    add_words(&sources[2], "x y");
    assert_int_equal(kl_map_combinations(sources, 1), 2);
    assert_int_equal(kl_map_combinations(sources, 3), COUNT(WANTED));
    for (size_t i = 0; i < COUNT(WANTED); i++) {
        kl_buffer_clear(&values);
        kl_map_put_combination(sources, 3, i, &values);
        assert_int_equal(values.size, 6);
        for (int k = 0; k < 3; k++)
            assert_int_equal(values.data[2 * k], WANTED[i][k]);
    }
    kl_buffer_free(&values);
    for (int i = 0; i < 3; i++)
        kl_map_source_free(&sources[i]);
}

static void test_lines_of_a_file(void **state) {
    kl_map_source source = {0};
    (void)state;
    assert_true(kl_map_source_lines(&source, "a\n\nb", 4, '\n'));
    assert_int_equal(source.count, 3);
    assert_memory_equal(source.text.data, "a\0\0b", 5);
    kl_map_source_free(&source);
}

static void test_halt(void **state) {
    static const char *const BAD[] = {
        "",           "now", "now,fail", "now,fail=",   "now,fail=0", "soon,fail=101%", "later,fail=1",
        "now,none=1", "3",   "x%",       "now,fail=1x", "now,fail=-1"};
    static const struct {
        const char *text;
        uint64_t failed, succeeded;
        kl_map_halting halts;
    } CASES[] = {
        {"never", 9, 0, KL_MAP_GO_ON},
        {"now,fail=1", 0, 9, KL_MAP_GO_ON},
        {"now,fail=1", 1, 0, KL_MAP_NOW},
        {"soon,success=2", 5, 1, KL_MAP_GO_ON},
        {"soon,success=2", 0, 2, KL_MAP_SOON},
        {"now,done=3", 1, 2, KL_MAP_NOW},
        {"soon,fail=30%", 2, 0, KL_MAP_GO_ON},
        {"soon,fail=30%", 3, 0, KL_MAP_SOON},
        {"1", 1, 0, KL_MAP_SOON},
        {"2", 1, 0, KL_MAP_NOW},
        {"-2", 0, 1, KL_MAP_NOW},
        {"0", 9, 9, KL_MAP_GO_ON},
        {"50%", 5, 0, KL_MAP_SOON},
    };
    kl_map_halt halt;
    (void)state;
    for (size_t i = 0; i < COUNT(BAD); i++)
        assert_false(kl_map_read_halt(BAD[i], &halt));
    for (size_t i = 0; i < COUNT(CASES); i++) {
        assert_true(kl_map_read_halt(CASES[i].text, &halt));
        assert_int_equal(kl_map_halts(&halt, CASES[i].failed, CASES[i].succeeded, 10), CASES[i].halts);
    }
}

static void test_results(void **state) {
    kl_map_result r = {.number = 3, .slot = 2, .code = 4, .began_s = 1.5, .took_s = 0.25, .out_bytes = 2},
                  back;
    kl_buffer bytes = {0}, line = {0};
    (void)state;
    strcpy(r.host, ":");
    r.out = (kilter_bytes){"a\n", 2};
    kl_map_put_result(&bytes, &r);
    assert_true(kl_map_get_result((kilter_bytes){bytes.data, bytes.size}, &back));
    assert_int_equal(back.number, 3);
    assert_memory_equal(back.out.data, "a\n", 2);
    assert_false(kl_map_get_result((kilter_bytes){bytes.data, bytes.size - 1}, &back));
    kl_map_put_joblog(&line, &r, "a\nb", 3);
    assert_int_equal(line.size, strlen("3\t:\t     1.500\t     0.250\t0\t2\t4\t0\ta b\n"));
    assert_memory_equal(line.data, "3\t:\t     1.500\t     0.250\t0\t2\t4\t0\ta\0b\n", line.size);
    assert_int_equal(kl_map_exit_code(&r), 4);
    r.signal = 9;
    assert_int_equal(kl_map_exit_code(&r), 137);
    r.end = KL_MAP_NOT_STARTED;
    assert_int_equal(kl_map_exit_code(&r), 127);
    assert_false(kl_map_succeeded(&r));
    kl_buffer_free(&bytes);
    kl_buffer_free(&line);
}

static void test_sizes(void **state) {
    static const struct {
        const char *text;
        uint64_t bytes; /* 0: refused */
    } CASES[] = {
        {"1", 1},  {"500K", 500000}, {"2.5G", 2500000000}, {"1T", 1000000000000}, {"", 0},  {"0", 0},
        {"-1", 0}, {"1X", 0},        {"1GB", 0},           {"1e30", 0},           {"M", 0}, {"nan", 0}};
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        uint64_t bytes = 0;
        assert_int_equal(kl_map_read_size(CASES[i].text, &bytes), CASES[i].bytes > 0);
        assert_int_equal(bytes, CASES[i].bytes);
    }
}

static void test_lists(void **state) {
    static const struct {
        const char *text, *error; /* error: expected error; NULL: the list is valid */
    } CASES[] = {
        {"", NULL},
        {"a:\n x\nb: a a\n y\n  z\n", NULL},
        {"a :b\n x\nb:\n\ty", NULL},
        {"a:\n x\na:\n y\n", "f: line 3: there is already a command with the name a"},
        {"a: c\n x\n", "f: line 1: no command has the name c"},
        {"a: a\n x\n", "f: line 1: the command waits for itself, through others or directly: a"},
        {"a:\nb:\n x\n", "f: line 1: there is no command below the name a"},
        {" x\n", "f: line 1: a command before the first name"},
        {"a\n x\n", "f: line 1: not 'name:', and not an indented command"},
        {"a b:\n x\n", "f: line 1: not 'name:', and not an indented command"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        kl_map_list list;
        kilter_error error = {KILTER_OK, ""};
        kilter_status status = kl_map_list_parse("f", CASES[i].text, strlen(CASES[i].text), &list, &error);
        assert_int_equal(status, CASES[i].error ? KILTER_ERR_INPUT : KILTER_OK);
        if (CASES[i].error)
            assert_string_equal(error.text, CASES[i].error);
        kl_map_list_free(&list);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_columns_and_quotes),
        cmocka_unit_test(test_combinations), cmocka_unit_test(test_lines_of_a_file),
        cmocka_unit_test(test_halt),         cmocka_unit_test(test_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
