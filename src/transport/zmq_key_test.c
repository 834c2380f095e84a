#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/folder_test_helper.h"
#include "transport/transport.h"

static kilter_status parse(const char *text, kl_key *key, kilter_error *error) {
    return kl_key_parse(text, strlen(text), "farm.key", key, error);
}

/* Return the text of a new key file. The caller frees it. */
static char *text_of_new(bool for_master) {
    kl_key key;
    kl_buffer text = {0};
    assert_int_equal(kl_key_make(&key, NULL), KILTER_OK);
    kl_key_write(&key, for_master, &text);
    kl_put_u8(&text, 0);
    assert_false(text.failed);
    return (char *)text.data;
}

static void what_is_written_is_read(void **state) {
    (void)state;
    for (int for_master = 0; for_master < 2; for_master++) {
        kl_key key;
        kl_buffer again = {0};
        char *text = text_of_new(for_master);
        assert_int_equal(parse(text, &key, NULL), KILTER_OK);
        assert_string_equal(key.file, "farm.key");
        assert_int_equal(*key.server_secret != '\0', for_master);
        kl_key_write(&key, for_master, &again);
        assert_int_equal(again.size, strlen(text));
        assert_memory_equal(again.data, text, again.size);
        kl_buffer_free(&again);
        free(text);
    }
}

static void two_keys_are_never_the_same(void **state) {
    (void)state;
    char *a = text_of_new(true), *b = text_of_new(true);
    assert_string_not_equal(a, b);
    free(a);
    free(b);
}

/* Return the key file's text with line `number` (counted from 1) replaced by `line`. */
static char *with_line(const char *text, unsigned number, const char *line) {
    const char *from = text;
    for (unsigned i = 1; i < number; i++)
        from = strchr(from, '\n') + 1;
    char *made = malloc(strlen(text) + strlen(line) + 1);
    assert_non_null(made);
    sprintf(made, "%.*s%s%s", (int)(from - text), text, line, strchr(from, '\n'));
    return made;
}

static void what_is_wrong_is_named_with_its_line(void **state) {
    (void)state;
    char *good = text_of_new(true), *other = text_of_new(true);
    char public[100], secret[100];
    snprintf(public, sizeof public, "%.*s", 54, strstr(other, "worker-public"));
    snprintf(secret, sizeof secret, "%.*s", 54, strstr(other, "worker-secret"));
    const struct {
        unsigned number;
        const char *line, *says;
    } rows[] = {
        {1, "", "farm.key:1: "},
        {1, "kilter-key 2", "farm.key:1: "},
        {2, "", "server-public is missing"},
        {2, "# server-public", "server-public is missing"},
        {3, "server-secret", "farm.key:3: server-secret must be followed by a key"},
        {3, "server-secret ", "farm.key:3: server-secret must be followed by a key"},
        {3, "server-secret 123", "farm.key:3: server-secret must be followed by a key"},
        {4, "worker-public ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~",
         "farm.key:4: worker-public must be followed by a key"},
        {4, "worker public", "farm.key:4: the line must begin with"},
        {5, "\x01\x02", "farm.key:5: the line must begin with"},
        {4, public, "a secret key does not match its public key"},
        {5, public, "farm.key:5: worker-public is given twice"},
        {5, secret, "a secret key does not match its public key"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kl_key key = {.file = "untouched"};
        kilter_error error = {0};
        char *bad = with_line(good, rows[i].number, rows[i].line);
        assert_int_equal(parse(bad, &key, &error), KILTER_ERR_USAGE);
        if (!strstr(error.text, rows[i].says))
            fail_msg("\"%s\" does not say \"%s\"", error.text, rows[i].says);
        assert_string_equal(key.file, "untouched");
        free(bad);
    }
    kilter_error error = {0};
    kl_key key;
    assert_int_equal(parse("", &key, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "farm.key: the file is empty"));
    free(good);
    free(other);
}

static void a_torn_file_is_never_a_key(void **state) {
    (void)state;
    char *good = text_of_new(true);
    kl_key key;
    /* cut the text at every place, except before the last newline, which may be missing */
    for (size_t size = 0; size + 1 < strlen(good); size++)
        assert_int_equal(kl_key_parse(good, size, "farm.key", &key, NULL), KILTER_ERR_USAGE);
    free(good);
}

static void a_master_makes_a_file_that_is_its_owners_alone(void **state) {
    (void)state;
    char path[100], deep[100];
    kl_key made, again;
    struct stat found;
    kilter_error error = {0};
    snprintf(deep, sizeof deep, "%s/deep", folder);
    snprintf(path, sizeof path, "%s/deep/farm.key", folder);
    assert_int_equal(kl_key_read(path, &made, &error),
                     KILTER_ERR_USAGE); /* reading as a worker does not make a missing key file */
    assert_non_null(strstr(error.text, path));
    umask(0);
    assert_int_equal(kl_key_read_or_make(path, &made, NULL), KILTER_OK);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(kl_key_read_or_make(path, &again, NULL), KILTER_OK);
    assert_memory_equal(&made, &again, sizeof made);
    const mode_t open_to_others[] = {0640, 0604, 0620, 0602};
    for (size_t i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
        assert_int_equal(chmod(path, open_to_others[i]), 0);
        assert_int_equal(kl_key_read(path, &again, &error), KILTER_ERR_USAGE);
        assert_non_null(strstr(error.text, path));
        assert_int_equal(kl_key_read_or_make(path, &again, &error), KILTER_ERR_USAGE);
    }
    unlink(path);
    assert_int_equal(rmdir(deep), 0); /* no temporary file is left in the folder */
}

static void a_master_needs_its_own_secret(void **state) {
    (void)state;
    char path[100], *text = text_of_new(false);
    kl_key key;
    kilter_error error = {0};
    snprintf(path, sizeof path, "%s/worker.key", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(kl_key_read(path, &key, NULL), KILTER_OK);
    assert_int_equal(kl_key_read_or_make(path, &key, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, "server-secret"));
    unlink(path);
    free(text);
}

static void a_folder_is_no_key_file(void **state) {
    (void)state;
    kl_key key;
    kilter_error error = {0};
    assert_int_equal(kl_key_read(folder, &key, &error), KILTER_ERR_USAGE);
    assert_non_null(strstr(error.text, folder));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(two_keys_are_never_the_same),
        cmocka_unit_test(what_is_wrong_is_named_with_its_line),
        cmocka_unit_test(a_torn_file_is_never_a_key),
        cmocka_unit_test(a_master_makes_a_file_that_is_its_owners_alone),
        cmocka_unit_test(a_master_needs_its_own_secret),
        cmocka_unit_test(a_folder_is_no_key_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
