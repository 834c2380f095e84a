/* Small files as signals between processes: each must be taken by only one process, with its whole
 * content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/sys.h"

enum { FILES = 200, TAKERS = 4, TEXT_BYTES = 256 };

static char *new_folder(void) {
    char *folder = NULL;
    assert_int_equal(kl_signal_folder_make("/tmp", &folder, NULL), KILTER_OK);
    return folder;
}

/* Take files until none is left. Return the number of files taken, or TAKERS · FILES if one of them was
 * incomplete. */
static int take_all(const char *folder, int number) {
    char text[TEXT_BYTES], claim[16];
    size_t size = sizeof text;
    int taken = 0;
    snprintf(claim, sizeof claim, "%d", number);
    for (; kl_signal_file_take(folder, "SOS.", claim, text, &size) == KL_SIGNAL_TAKEN; size = sizeof text) {
        if (size != 6 || memcmp(text, "hello\n", 6) != 0)
            return TAKERS * FILES;
        taken++;
    }
    return taken;
}

static void each_file_is_taken_once_and_whole(void **state) {
    (void)state;
    char *folder = new_folder(), name[32];
    int ends[2], all = 0;
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "SOS.%d", i);
        assert_true(kl_signal_file_put(folder, name, "hello\n", 6));
    }
    assert_true(kl_signal_file_put(folder, "AID.1", "other", 5));
    for (int i = 0; i < TAKERS; i++)
        if (fork() == 0) {
            int taken = take_all(folder, i);
            _exit(write(ends[1], &taken, sizeof taken) != sizeof taken);
        }
    for (int i = 0, taken, how; i < TAKERS; i++) {
        assert_true(wait(&how) > 0 && WIFEXITED(how) && WEXITSTATUS(how) == 0);
        assert_int_equal(read(ends[0], &taken, sizeof taken), sizeof taken);
        all += taken;
    }
    assert_int_equal(all, FILES);
    size_t size = TEXT_BYTES;
    char text[TEXT_BYTES];
    assert_int_equal(kl_signal_file_take(folder, "SOS.", "0", text, &size), KL_SIGNAL_NONE);
    assert_int_equal(kl_signal_file_take(folder, "AID.", "0", text, &size), KL_SIGNAL_TAKEN);
    kl_signal_folder_remove(folder);
    assert_int_equal(access(folder, F_OK), -1); /* the folder was empty, so it could be removed */
    free(folder);
}

static void a_second_text_replaces_the_first(void **state) {
    (void)state;
    char *folder = new_folder(), text[TEXT_BYTES];
    size_t size = sizeof text;
    assert_true(kl_signal_file_put(folder, "SOS.1", "first", 5));
    assert_true(kl_signal_file_put(folder, "SOS.1", "second", 6));
    assert_int_equal(kl_signal_file_take(folder, "SOS.", "0", text, &size), KL_SIGNAL_TAKEN);
    assert_int_equal(size, 6);
    assert_memory_equal(text, "second", 6);
    assert_true(kl_signal_file_put(folder, "SOS.1", "third", 5));
    kl_signal_file_drop(folder, "SOS.1");
    kl_signal_file_drop(folder, "SOS.1"); /* removing a file that does not exist is no error */
    assert_int_equal(kl_signal_file_take(folder, "SOS.", "0", text, &size), KL_SIGNAL_NONE);
    kl_signal_folder_remove(folder);
    free(folder);
}

static void a_folder_that_is_gone_is_a_fault(void **state) {
    (void)state;
    char *folder = new_folder(), text[TEXT_BYTES];
    size_t size = sizeof text;
    kilter_error error;
    kl_signal_folder_remove(folder);
    assert_false(kl_signal_file_put(folder, "SOS.1", "text", 4));
    assert_int_equal(kl_signal_file_take(folder, "SOS.", "0", text, &size), KL_SIGNAL_FAULT);
    assert_int_equal(kl_signal_folder_check(folder, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, folder));
    free(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_is_taken_once_and_whole),
        cmocka_unit_test(a_second_text_replaces_the_first),
        cmocka_unit_test(a_folder_that_is_gone_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
