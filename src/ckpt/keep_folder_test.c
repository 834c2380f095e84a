/* The folder of a kept program: what is written must be read, and nothing else may be accepted. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"
#include "sys/sys.h"

static char *folder;

static int make_folder(void **state) {
    (void)state;
    return kl_private_dir(&folder, NULL) == KILTER_OK ? 0 : -1;
}

static int remove_folder(void **state) {
    static const char *const names[] = {"progress", "request"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = kl_text("%s/%s", folder, names[i]);
        unlink(path);
        free(path);
    }
    int removed = rmdir(folder); /* fails if a file with a temporary name was left */
    free(folder);
    return removed;
}

/* Make a report of progress, whose values are computed from a seed. */
static kl_keep_progress some_progress(uint64_t seed) {
    uint32_t ranks = 1 + (uint32_t)(seed % 9);
    kl_keep_progress p = {.pid = (int64_t)(seed % 100000),
                          .attempt = seed % 7,
                          .ranks = ranks,
                          .hosts = calloc(ranks, sizeof *p.hosts),
                          .rates = calloc(ranks, sizeof *p.rates),
                          .sweeps = kl_mix64(seed),
                          .expected = UINT64_MAX - seed,
                          .elapsed_s = 1.0 / (double)(seed + 3),
                          .sweep_s = 1e-300,
                          .longest_s = 1e300,
                          .saved_sweeps = kl_mix64(seed) / 2,
                          .saves = seed,
                          .save_s = 0.1,
                          .write_s = 0.3,
                          .load_s = 7,
                          .answered = seed / 2,
                          .stopped = seed % 2,
                          .done = seed % 3 == 0};
    snprintf(p.host, sizeof p.host, "h\xc3\xb6st \"%llu\"", kl_ull(seed));
    snprintf(p.error, sizeof p.error, "rank %llu: \\ no \"space\"", kl_ull(seed));
    for (uint32_t r = 0; r < ranks; r++) {
        snprintf(p.hosts[r], sizeof p.hosts[r], "node%u", r);
        p.rates[r] = (double)seed * 1.1 + r;
    }
    return p;
}

static void assert_same(const kl_keep_progress *a, const kl_keep_progress *b) {
    kl_keep_progress one = *a, other = *b;
    assert_int_equal(a->ranks, b->ranks);
    for (uint32_t r = 0; r < a->ranks; r++)
        assert_string_equal(a->hosts[r], b->hosts[r]);
    assert_memory_equal(a->rates, b->rates, a->ranks * sizeof *a->rates);
    one.hosts = other.hosts = NULL;
    one.rates = other.rates = NULL;
    kl_buffer texts[2] = {{.size = 0}, {.size = 0}};
    one.ranks = other.ranks = 0;
    assert_true(kl_keep_progress_print(&one, &texts[0]) && kl_keep_progress_print(&other, &texts[1]));
    assert_int_equal(texts[0].size, texts[1].size);
    assert_memory_equal(texts[0].data, texts[1].data, texts[0].size);
    kl_buffer_free(&texts[0]);
    kl_buffer_free(&texts[1]);
}

static void what_is_written_is_read(void **state) {
    (void)state;
    bool there = true;
    kl_keep_progress read = {.ranks = 0};
    assert_int_equal(kl_keep_progress_read(folder, &read, &there, NULL), KILTER_OK);
    assert_false(there);
    for (uint64_t seed = 1; seed < 50; seed++) {
        kl_keep_progress written = some_progress(seed);
        assert_int_equal(kl_keep_progress_write(folder, &written, NULL), KILTER_OK);
        assert_int_equal(kl_keep_progress_read(folder, &read, &there, NULL), KILTER_OK);
        assert_true(there);
        assert_same(&written, &read);
        kl_keep_progress_free(&written);
        kl_keep_progress_free(&read);
    }
}

static void requests_are_seen_once(void **state) {
    (void)state;
    kl_keep_seen seen = {0};
    kl_keep_request read;
    bool there;
    assert_false(kl_keep_request_changed(folder, &seen));
    for (uint64_t number = 1; number < 20; number++) {
        kl_keep_request written = {number, number % 2 ? KL_KEEP_SAVE : KL_KEEP_STOP};
        assert_int_equal(kl_keep_request_write(folder, &written, NULL), KILTER_OK);
        assert_true(kl_keep_request_changed(folder, &seen));
        assert_false(kl_keep_request_changed(folder, &seen));
        assert_int_equal(kl_keep_request_read(folder, &read, &there, NULL), KILTER_OK);
        assert_true(there && read.number == number && read.what == written.what);
    }
}

static void bad_files_are_refused(void **state) {
    static const char *const progress[] = {
        "",
        "{",
        "{}",
        "[]",
        "{\"version\":1,\"pid\":1,\"ranks\":2,\"hosts\":[\"a\"],\"rates\":[1,2]}",
        "{\"version\":1,\"pid\":1,\"ranks\":1,\"hosts\":[\"a\"],\"rates\":[-1]}",
        "{\"version\":1,\"pid\":1,\"ranks\":1,\"hosts\":[\"a\"],\"rates\":[1]} x",
        "{\"version\":1,\"pid\":1,\"ranks\":1,\"hosts\":[\"a\"],\"rates\":[1],\"done\":1}",
        "{\"version\":1,\"pid\":1,\"ranks\":1,\"hosts\":[\"a\"],\"rates\":[1],\"sweeps\":-1}",
        "{\"version\":1,\"pid\":1,\"ranks\":1,\"hosts\":[\"a\"],\"rates\":[1],\"sweeps\":1e999}",
        "{\"version\":1,\"pid\":1,\"ranks\":0,\"hosts\":[],\"rates\":[]}",
    };
    static const char *const requests[] = {
        "{\"version\":1,\"number\":0,\"what\":\"save\"}", "{\"version\":1,\"number\":1,\"what\":\"fly\"}",
        "{\"version\":1,\"number\":1}", "{\"version\":1,\"number\":18446744073709551616,\"what\":\"save\"}",
        "{\"number\":1,\"what\":\"save\"}"};
    (void)state;
    kl_keep_progress p;
    kl_keep_request r;
    kilter_error error;
    for (size_t i = 0; i < sizeof progress / sizeof *progress; i++)
        assert_int_equal(kl_keep_progress_parse(progress[i], strlen(progress[i]), &p, NULL),
                         KILTER_ERR_INPUT);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        assert_int_equal(kl_keep_request_parse(requests[i], strlen(requests[i]), &r, NULL), KILTER_ERR_INPUT);
    const char later[] = "{\"version\":2,\"number\":1,\"what\":\"save\"}";
    assert_int_equal(kl_keep_request_parse(later, strlen(later), &r, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, "version 2"));
}

/* Later versions may add members of any form. */
static void unknown_members_are_skipped(void **state) {
    static const char text[] =
        " { \"new\" : [ 1 , \"x\" , null , true ] , \"version\" : 1 , \"what\" : \"stop\" ,"
        " \"other\" : \"\\u00e9\\n\" , \"number\" : 12 } \n";
    (void)state;
    kl_keep_request r;
    assert_int_equal(kl_keep_request_parse(text, strlen(text), &r, NULL), KILTER_OK);
    assert_true(r.number == 12 && r.what == KL_KEEP_STOP);
}

/* Write the file again and again, until the parent ends this process or has ended itself. */
_Noreturn static void write_for_ever(void) {
    for (uint64_t seed = 1; getppid() != 1; seed++) {
        kl_keep_progress next = some_progress(seed);
        kl_keep_progress_write(folder, &next, NULL);
        kl_keep_progress_free(&next);
    }
    _exit(0);
}

/* One process replaces the file again and again, while this one reads it. Each reading must get a complete
 * file. */
static void readers_see_whole_files(void **state) {
    enum { READINGS = 2000 };
    (void)state;
    kl_keep_progress p = some_progress(8);
    assert_int_equal(kl_keep_progress_write(folder, &p, NULL), KILTER_OK);
    pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0)
        write_for_ever();
    for (int i = 0; i < READINGS; i++) {
        kl_keep_progress read;
        bool there;
        assert_int_equal(kl_keep_progress_read(folder, &read, &there, NULL), KILTER_OK);
        assert_true(there);
        kl_keep_progress_free(&read);
    }
    kl_keep_progress_free(&p);
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    char *part =
        kl_text("%s/progress.%lld", folder,
                (long long)writer); /* the writing process may have died while it wrote a temporary file */
    unlink(part);
    free(part);
}

static void errors_name_the_file(void **state) {
    (void)state;
    kilter_error error;
    kl_keep_request r = {1, KL_KEEP_SAVE};
    assert_int_equal(kl_keep_request_write("/nowhere/at all", &r, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, "/nowhere/at all/request"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {TEST(what_is_written_is_read), TEST(requests_are_seen_once),
                                       TEST(bad_files_are_refused),   TEST(unknown_members_are_skipped),
                                       TEST(readers_see_whole_files), TEST(errors_name_the_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
