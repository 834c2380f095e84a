#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/sys.h"

static char folder[] = "/tmp/kilter-test-XXXXXX";

static void put(const char *path, const char *text) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void assert_holds(const char *path, const char *text) {
    char found[64] = "";
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    size_t size = fread(found, 1, sizeof found - 1, in);
    fclose(in);
    found[size] = '\0';
    assert_string_equal(found, text);
}

static void assert_files(int expected) {
    DIR *open_folder = opendir(folder);
    assert_non_null(open_folder);
    int count = -2; /* begin at −2, because the entries "." and ".." do not count */
    while (readdir(open_folder))
        count++;
    closedir(open_folder);
    assert_int_equal(count, expected);
}

static void the_new_content_is_there_at_the_end(void **state) {
    (void)state;
    kl_new_file file;
    struct stat made;
    put("old", "old");
    assert_int_equal(chmod("old", 0640), 0);
    assert_int_equal(symlink("old", "link"), 0);
    const char *const paths[] = {"new", "old", "link"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(kl_new_file_open(paths[i], &file, NULL), KILTER_OK);
        fputs(paths[i], file.out);
        if (i == 1)
            assert_holds("old", "old");
        assert_int_equal(kl_new_file_end(&file, true, NULL), KILTER_OK);
        assert_holds(paths[i], paths[i]);
    }
    assert_holds(
        "old", "link"); /* a symbolic link must stay as it is, and the file that it names must be replaced */
    assert_int_equal(stat("old", &made), 0);
    assert_int_equal(made.st_mode & 07777, 0640);
    assert_files(3);
}

static void what_is_not_good_changes_nothing(void **state) {
    (void)state;
    kl_new_file file;
    put("kept", "kept");
    assert_int_equal(kl_new_file_open("kept", &file, NULL), KILTER_OK);
    fputs("half", file.out);
    assert_int_equal(kl_new_file_end(&file, false, NULL), KILTER_OK);
    assert_holds("kept", "kept");
    unlink("kept");
    assert_files(3);
}

/* Limit the size of files, which works like a full disk. The old file must stay, and no second file may
 * remain. */
static void what_does_not_fit_changes_nothing(void **state) {
    (void)state;
    put("kept", "kept");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kl_new_file file;
        kilter_error error = {KILTER_OK, ""};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000});
        if (kl_new_file_open("kept", &file, &error) != KILTER_OK)
            _exit(1);
        for (int i = 0; i < 100000; i++)
            fputs("much too much\n", file.out);
        kilter_status status = kl_new_file_end(&file, true, &error);
        _exit(status == KILTER_ERR_SYSTEM && strstr(error.text, "kept") ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_holds("kept", "kept");
    unlink("kept");
    assert_files(3);
}

static void places_that_cannot_be_written_are_named(void **state) {
    (void)state;
    kl_new_file file;
    kilter_error error;
    assert_int_equal(kl_new_file_open("no/such/folder", &file, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, "no/such/folder"));
    assert_int_equal(kl_new_file_open("/dev/full", &file, &error), KILTER_OK);
    fputs("nothing fits", file.out);
    assert_int_equal(kl_new_file_end(&file, true, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, "/dev/full"));
}

int main(void) {
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_new_content_is_there_at_the_end),
        cmocka_unit_test(what_is_not_good_changes_nothing),
        cmocka_unit_test(what_does_not_fit_changes_nothing),
        cmocka_unit_test(places_that_cannot_be_written_are_named),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink("new");
    unlink("old");
    unlink("link");
    rmdir(folder);
    return failed;
}
