/* Tests of a checkpoint's files: any number of ranks must be able to read what other ranks wrote. Damage must
 * be noticed, and names and generations must be right. */
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"
#include "sys/sys.h"

static char *folder;
static kl_ckpt_folder place;
static int sync_error; /* errno with which fsync() fails; 0: it does not fail */

/* This fsync() replaces the system's function in the test program. */
int fsync(int descriptor) {
    if (sync_error == 0)
        return (int)syscall(SYS_fsync, descriptor);
    errno = sync_error;
    return -1;
}
static const kl_ckpt_library *library;

static int make_folder(void **state) {
    (void)state;
    if (kl_private_dir(&folder, NULL) != KILTER_OK)
        return -1;
    char *path = kl_text("%s/c", folder);
    kilter_status status = kl_ckpt_folder_open(path, &place, NULL);
    free(path);
    return status == KILTER_OK ? 0 : -1;
}

static int remove_folder(void **state) {
    uint64_t *list;
    size_t count;
    (void)state;
    kl_ckpt_clean(&place);
    kl_ckpt_list(&place, &list, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        char *path = kl_ckpt_path(&place, list[i]);
        unlink(path);
        free(path);
    }
    free(list);
    kl_ckpt_folder_free(&place);
    int removed = rmdir(folder);
    free(folder);
    return removed;
}

/* --- names and generations of files --- */

static void names_are_those_of_generations(void **state) {
    static const char *const others[] = {"c",
                                         "c.h5",
                                         "c.000000.h5",
                                         "c.00001.h5",
                                         "c.0000001.h5",
                                         "c.000001.h5x",
                                         "d.000001.h5",
                                         "c.000001",
                                         "cc.000001.h5",
                                         "c.-00001.h5",
                                         "c.00001a.h5",
                                         "c.99999999999999999999.h5",
                                         "c.000001.h5.",
                                         "c.000001.h5.abc"};
    (void)state;
    uint64_t generation = 77;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(kl_ckpt_generation_of("c", others[i], &generation));
    assert_int_equal(generation, 77);
    for (uint64_t g = 1; g < UINT64_C(1000000000000000000); g = 7 * g + 1) {
        char *path = kl_ckpt_path(&place, g);
        assert_true(kl_ckpt_generation_of("c", strrchr(path, '/') + 1, &generation));
        assert_int_equal(generation, g);
        free(path);
    }
}

static void make_unfinished(uint64_t generation, uint64_t token) {
    char *path = kl_ckpt_unfinished_path(&place, generation, token);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_true(descriptor >= 0);
    close(descriptor);
    free(path);
}

static kilter_status commit(uint64_t generation, uint64_t token, unsigned keep, kilter_error *error) {
    kilter_status status = kl_ckpt_commit(&place, generation, token, error);
    if (status == KILTER_OK)
        kl_ckpt_remove_old(&place, keep);
    return status;
}

/* Only the newest generations must be kept. Unfinished files do not count as generations. */
static void the_newest_generations_stay(void **state) {
    (void)state;
    for (unsigned keep = 1; keep < 4; keep++) {
        uint64_t *list, newest = 0;
        size_t count;
        for (uint64_t g = 1 + 10 * keep; g < 10 + 10 * keep; g++) {
            make_unfinished(g, g);
            make_unfinished(g, g + 1);
            assert_int_equal(commit(g, g, keep, NULL), KILTER_OK);
            assert_int_equal(kl_ckpt_newest(&place, &newest, NULL), KILTER_OK);
            assert_int_equal(newest, g);
        }
        assert_int_equal(kl_ckpt_list(&place, &list, &count, NULL), KILTER_OK);
        assert_int_equal(count, keep);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(list[i], newest - i);
        free(list);
    }
}

static void a_name_is_given_once(void **state) {
    (void)state;
    kilter_error error;
    make_unfinished(3, 1);
    make_unfinished(3, 2);
    assert_int_equal(commit(3, 1, 2, NULL), KILTER_OK);
    assert_int_equal(commit(3, 2, 2, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, "another program"));
    assert_int_equal(commit(4, 9, 2, NULL), KILTER_ERR_SYSTEM); /* no file of generation 4 was made */
}

static uint64_t newest_generation(void) {
    uint64_t newest = 0;
    assert_int_equal(kl_ckpt_newest(&place, &newest, NULL), KILTER_OK);
    return newest;
}

/* After a failed fsync() of the folder, a crash could lose the file's name. So the name must be removed, and
 * the number can be used again. Some file systems cannot synchronise folders at all. */
static void a_folder_that_is_not_synchronised(void **state) {
    static const int impossible[] = {EINVAL, ENOSYS, ENOTSUP};
    (void)state;
    make_unfinished(1, 1);
    sync_error = EIO;
    kilter_status status = commit(1, 1, 2, NULL);
    sync_error = 0;
    assert_int_equal(status, KILTER_ERR_SYSTEM);
    assert_int_equal(newest_generation(), 0);
    for (uint64_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        make_unfinished(i + 1, 1);
        sync_error = impossible[i];
        status = commit(i + 1, 1, 2, NULL);
        sync_error = 0;
        assert_int_equal(status, KILTER_OK);
        assert_int_equal(newest_generation(), i + 1);
    }
}

/* Imitate a file server that has given the file its name, but whose answer was lost. */
static void a_name_that_the_file_has_already(void **state) {
    (void)state;
    make_unfinished(5, 1);
    char *from = kl_ckpt_unfinished_path(&place, 5, 1), *to = kl_ckpt_path(&place, 5);
    if (link(from, to) == 0) {
        assert_int_equal(commit(5, 1, 2, NULL), KILTER_OK);
        assert_int_equal(newest_generation(), 5);
        assert_int_not_equal(access(from, F_OK), 0);
    }
    free(from);
    free(to);
}

static void damaged_generations_are_not_counted(void **state) {
    static const uint64_t after_6[] = {6, 5, 4, 3, 2}, after_7[] = {7, 6};
    uint64_t *list;
    size_t count;
    (void)state;
    for (uint64_t g = 1; g <= 5; g++) {
        make_unfinished(g, g);
        assert_int_equal(commit(g, g, 4, NULL), KILTER_OK);
    }
    place.damaged =
        (kl_span){3, 6}; /* generations 3 to 5 are damaged, so the program continues from generation 2 */
    for (uint64_t g = 6; g <= 7; g++) {
        make_unfinished(g, g);
        assert_int_equal(commit(g, g, 2, NULL), KILTER_OK);
        assert_int_equal(kl_ckpt_list(&place, &list, &count, NULL), KILTER_OK);
        assert_int_equal(count, g == 6 ? 5 : 2);
        assert_memory_equal(list, g == 6 ? after_6 : after_7, count * sizeof *list);
        free(list);
    }
}

/* Starts from a generation are counted until the generation is removed. */
static void starts_are_counted(void **state) {
    (void)state;
    for (uint64_t g = 1; g < 4; g++) {
        make_unfinished(g, g);
        assert_int_equal(commit(g, g, 1, NULL), KILTER_OK);
        for (uint64_t i = 0; i < 3; i++)
            assert_int_equal(kl_ckpt_note_start(&place, g), i);
    }
    char *last = kl_text("%s/c.000003.starts", folder);
    assert_int_equal(unlink(last), 0); /* all other files were removed, so the folder is empty at the end */
    free(last);
}

static void folders_that_cannot_be_used(void **state) {
    (void)state;
    kl_ckpt_folder f;
    kilter_error error;
    char *with_slash = kl_text("%s/", folder);
    assert_int_equal(kl_ckpt_folder_open("/nowhere/at all/c", &f, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, "/nowhere/at all/c"));
    assert_int_equal(kl_ckpt_folder_open(with_slash, &f, NULL), KILTER_ERR_RANGE);
    assert_int_equal(kl_ckpt_folder_open("~/nowhere/c", &f, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, "only a shell replaces '~'"));
    free(with_slash);
}

/* --- writing and reading whole files --- */

enum { ROWS = 37, WIDE = 24, ARRAYS = 2 };
static const uint64_t WIDTHS[ARRAYS] = {WIDE, 8};

typedef struct world { /* what the ranks write: the rows, content and values of all ranks */
    uint8_t rows[ARRAYS][ROWS * WIDE];
    uint64_t list_bytes[ROWS];
    double value;
    char text[5];
} world;

static void make_world(world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    for (size_t a = 0; a < ARRAYS; a++)
        for (size_t i = 0; i < sizeof w->rows[a]; i++)
            w->rows[a][i] = (uint8_t)kl_mix64(seed + a * 100000 + i);
    for (uint64_t i = 0; i < ROWS; i++)
        w->list_bytes[i] = kl_mix64(seed + i) % 40;
    w->value = 1.0 / (double)seed;
    memcpy(w->text, "text", 5);
}

static uint8_t content_of(uint64_t row, uint64_t i) {
    return (uint8_t)kl_mix64(row * 1000 + i);
}

static const kl_ckpt_kept *values_of(world *w) {
    static kl_ckpt_kept values[2];
    values[0] = (kl_ckpt_kept){"value", &w->value, sizeof w->value};
    values[1] = (kl_ckpt_kept){"text", w->text, sizeof w->text};
    return values;
}

static const kl_ckpt_facts FACTS = {.version = KL_CKPT_VERSION,
                                    .rows = ROWS,
                                    .arrays = ARRAYS,
                                    .content = 1,
                                    .values = 2,
                                    .sweeps = 12,
                                    .elapsed_s = 1.5,
                                    .loop = "loop"};

/* Pack the content of rows as a rank does. */
static kl_parcel pack(const world *w, kl_span rows) {
    kl_parcel p = {.sends = true};
    assert_true(kl_parcel_add(&p, rows));
    for (uint64_t i = 0; i < p.count; i++)
        p.items[i].bytes = w->list_bytes[p.items[i].row];
    p.data = calloc(kl_parcel_bytes(&p) + 1, 1);
    uint8_t *to = p.data;
    for (uint64_t i = 0; i < p.count; to += kl_item_room(&p.items[i++]))
        for (uint64_t k = 0; k < p.items[i].bytes; k++)
            to[k] = content_of(p.items[i].row, k);
    return p;
}

static uint64_t bound(uint64_t rank, uint64_t ranks) {
    return ROWS * rank / ranks;
}

/* Write the rows of each rank, as the ranks of a program do. */
static void write_file(world *w, uint64_t ranks, uint64_t generation) {
    kl_parcel all = pack(w, (kl_span){0, ROWS});
    uint64_t total = kl_parcel_bytes(&all), content_at = 0;
    char *path = kl_ckpt_unfinished_path(&place, generation, 1);
    kl_ckpt_plan plan;
    kl_parcel_free(&all);
    assert_true(kl_ckpt_plan_make(&plan, &FACTS, WIDTHS, NULL, total, values_of(w)));
    assert_int_equal(kl_ckpt_lay_out(library, path, &plan, NULL), KILTER_OK);
    for (uint64_t r = 0; r < ranks; r++) {
        kl_span own = {bound(r, ranks), bound(r + 1, ranks)};
        kl_parcel content = pack(w, own);
        kl_ckpt_piece pieces[ARRAYS];
        for (size_t a = 0; a < ARRAYS; a++)
            pieces[a] = (kl_ckpt_piece){a, own, w->rows[a] + own.lo * WIDTHS[a]};
        const kl_ckpt_share share = {pieces, ARRAYS, &content, content_at, r == 0 ? values_of(w) : NULL};
        assert_int_equal(kl_ckpt_write(path, &plan, &share, NULL), KILTER_OK);
        content_at += kl_parcel_bytes(&content);
        kl_parcel_free(&content);
    }
    assert_int_equal(commit(generation, 1, 2, NULL), KILTER_OK);
    kl_ckpt_plan_free(&plan);
    free(path);
}

static kilter_status read_content(const kl_ckpt_file *file, kl_span own, world *to, kilter_error *error) {
    kl_parcel p = {.peer = -1};
    assert_true(kl_parcel_add(&p, own));
    kilter_status status = kl_ckpt_read_content(file, &p, error);
    uint8_t *from = p.data;
    for (uint64_t i = 0; i < p.count && status == KILTER_OK; from += kl_item_room(&p.items[i++])) {
        to->list_bytes[p.items[i].row] = p.items[i].bytes;
        for (uint64_t k = 0; k < p.items[i].bytes; k++)
            assert_int_equal(from[k], content_of(p.items[i].row, k));
    }
    kl_parcel_free(&p);
    return status;
}

/* Read a file with another number of ranks. */
static kilter_status read_file(const char *path, uint64_t ranks, world *to, kilter_error *error) {
    kl_ckpt_plan plan = {.parts = NULL}, own = {.parts = NULL};
    kl_ckpt_facts facts;
    kl_ckpt_file file;
    memset(to, 0, sizeof *to);
    kilter_status status = kl_ckpt_check_seal(path, error);
    if (status == KILTER_OK)
        status = library->read_facts(path, &facts, error);
    if (status == KILTER_OK)
        status = kl_ckpt_facts_fit(&facts, &FACTS, error);
    if (status != KILTER_OK)
        return status;
    assert_true(kl_ckpt_plan_make(&plan, &facts, WIDTHS, NULL, 0, values_of(to)));
    assert_true(kl_ckpt_plan_make(&own, &facts, WIDTHS, NULL, 0, values_of(to)));
    status = library->read_parts(path, &plan, error);
    if (status == KILTER_OK)
        status = kl_ckpt_parts_fit(&plan, &own, error);
    if (status == KILTER_OK)
        status = kl_ckpt_open(path, &plan, &file, error);
    bool opened = status == KILTER_OK;
    for (uint64_t r = 0; r < ranks && status == KILTER_OK; r++) {
        kl_span rows = {bound(r, ranks), bound(r + 1, ranks)};
        for (size_t a = 0; a < ARRAYS && status == KILTER_OK; a++)
            status = kl_ckpt_read_rows(&file, a, rows, to->rows[a] + rows.lo * WIDTHS[a], error);
        if (status == KILTER_OK)
            status = read_content(&file, rows, to, error);
    }
    if (status == KILTER_OK)
        status = kl_ckpt_read_values(&file, values_of(to), error);
    if (opened)
        kl_ckpt_close(&file);
    kl_ckpt_plan_free(&plan);
    kl_ckpt_plan_free(&own);
    return status;
}

static void assert_same(const world *one, const world *other) {
    for (size_t a = 0; a < ARRAYS; a++)
        assert_memory_equal(one->rows[a], other->rows[a], ROWS * WIDTHS[a]);
    assert_memory_equal(one->list_bytes, other->list_bytes, sizeof one->list_bytes);
    assert_true(one->value == other->value);
    assert_string_equal(one->text, other->text);
}

static void need_library(void) {
    kilter_error error = {KILTER_OK, ""};
    if (!library && kl_ckpt_load(&library, &error) != KILTER_OK) {
        print_message("skipped: %s\n", error.text);
        skip();
    }
}

static void any_ranks_read_what_any_ranks_wrote(void **state) {
    (void)state;
    need_library();
    for (uint64_t writers = 1; writers <= 8; writers++) {
        world written, read;
        make_world(&written, writers);
        write_file(&written, writers, writers);
        char *path = kl_ckpt_path(&place, writers);
        for (uint64_t readers = 1; readers <= 8; readers++) {
            assert_int_equal(read_file(path, readers, &read, NULL), KILTER_OK);
            assert_same(&written, &read);
        }
        free(path);
    }
}

enum { LARGE_ROWS = 60, LARGE = 100003, LARGE_RANKS = 3 };

/* Let a rank write its rows, which begin and end anywhere in a block of the disk. */
static void write_large(const char *path, const kl_ckpt_plan *plan, const uint8_t *rows, uint64_t rank) {
    kl_span own = {LARGE_ROWS * rank / LARGE_RANKS, LARGE_ROWS * (rank + 1) / LARGE_RANKS};
    kl_ckpt_piece piece = {0, own, rows + own.lo * LARGE};
    if (fork() == 0)
        _exit(kl_ckpt_write(path, plan, &(kl_ckpt_share){.pieces = &piece, .count = 1}, NULL) != KILTER_OK);
}

static void ranks_that_write_blocks_directly_do_not_disturb_each_other(void **state) {
    const kl_ckpt_facts facts = {.version = KL_CKPT_VERSION, .rows = LARGE_ROWS, .arrays = 1, .loop = "loop"};
    const uint64_t width = LARGE;
    uint8_t *rows = malloc((size_t)LARGE_ROWS * LARGE), *read = malloc((size_t)LARGE_ROWS * LARGE);
    char *path = kl_ckpt_unfinished_path(&place, 1, 1);
    kl_ckpt_plan plan;
    kl_ckpt_file file;
    int status;
    (void)state;
    need_library();
    for (size_t i = 0; i < (size_t)LARGE_ROWS * LARGE; i++)
        rows[i] = (uint8_t)(i * 2654435761u >> 13);
    assert_true(kl_ckpt_plan_make(&plan, &facts, &width, NULL, 0, NULL));
    assert_int_equal(kl_ckpt_lay_out(library, path, &plan, NULL), KILTER_OK);
    for (uint64_t rank = 0; rank < LARGE_RANKS; rank++)
        write_large(path, &plan, rows, rank);
    for (int rank = 0; rank < LARGE_RANKS; rank++)
        assert_true(wait(&status) > 0 && status == 0);
    assert_int_equal(kl_ckpt_check_seal(path, NULL), KILTER_OK);
    assert_int_equal(kl_ckpt_open(path, &plan, &file, NULL), KILTER_OK);
    assert_int_equal(kl_ckpt_read_rows(&file, 0, (kl_span){0, LARGE_ROWS}, read, NULL), KILTER_OK);
    assert_memory_equal(rows, read, (size_t)LARGE_ROWS * LARGE);
    kl_ckpt_close(&file);
    kl_ckpt_plan_free(&plan);
    free(rows);
    free(read);
    free(path);
}

/* Change every third byte of a file in turn, and restore it. Reading the changed file must fail, or give the
 * right data. */
static void changed_bytes_are_noticed(void **state) {
    enum { STEP = 3 };
    (void)state;
    need_library();
    world written, read;
    struct stat is;
    make_world(&written, 5);
    write_file(&written, 3, 1);
    char *path = kl_ckpt_path(&place, 1);
    int descriptor = open(path, O_RDWR);
    assert_true(descriptor >= 0 && fstat(descriptor, &is) == 0);
    uint64_t refused = 0;
    for (off_t at = 0; at < is.st_size; at += STEP) {
        uint8_t byte, changed;
        assert_int_equal(pread(descriptor, &byte, 1, at), 1);
        changed = byte ^ (uint8_t)(1 << at % 8);
        assert_int_equal(pwrite(descriptor, &changed, 1, at), 1);
        if (read_file(path, 2, &read, NULL) == KILTER_OK)
            assert_same(&written, &read);
        else
            refused++;
        assert_int_equal(pwrite(descriptor, &byte, 1, at), 1);
    }
    assert_int_equal(read_file(path, 2, &read, NULL), KILTER_OK);
    assert_true(refused > ROWS); /* each row was changed at least once */
    close(descriptor);
    free(path);
}

static void a_named_pipe_is_refused_at_once(void **state) {
    (void)state;
    char *path = kl_text("%s/pipe", folder);
    kilter_error error;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(kl_ckpt_check_seal(path, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, path));
    unlink(path);
    free(path);
}

static void torn_files_are_refused(void **state) {
    (void)state;
    need_library();
    world written, read;
    struct stat is;
    kilter_error error;
    make_world(&written, 9);
    write_file(&written, 2, 1);
    char *path = kl_ckpt_path(&place, 1);
    assert_int_equal(stat(path, &is), 0);
    for (off_t size = is.st_size - 1; size > 0; size = size * 3 / 4) {
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(read_file(path, 2, &read, &error), KILTER_ERR_INPUT);
        assert_non_null(strstr(error.text, path));
    }
    free(path);
}

/* A file that exists but cannot be read now is not damaged. The test imitates such a file by a folder, which
 * cannot be read as a file. */
static void unreadable_files_are_not_damaged(void **state) {
    (void)state;
    kilter_error error;
    char *path = kl_ckpt_path(&place, 1), *inside = kl_text("%s/inside", path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(mkdir(inside, 0777), 0);
    assert_int_equal(kl_ckpt_check_seal(path, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, strerror(EISDIR)));
    assert_int_equal(rmdir(inside), 0);
    assert_int_equal(rmdir(path), 0);
    free(path);
    free(inside);
}

/* Rank 0 has created the file, but another host has a different folder under the same name. */
static void a_folder_that_is_not_shared(void **state) {
    (void)state;
    kilter_error error;
    const kl_ckpt_plan plan = {.parts = NULL};
    const kl_ckpt_share share = {.pieces = NULL};
    char *path = kl_ckpt_unfinished_path(&place, 1, 1);
    assert_int_equal(kl_ckpt_write(path, &plan, &share, &error), KILTER_ERR_SYSTEM);
    assert_non_null(strstr(error.text, "choose a folder that all hosts share"));
    free(path);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
/* A function of HDF5 in the program itself, as if the program had an HDF5 of another version. If
 * libkilter-ckpt called this function, the tests of whole files would fail. */
KILTER_API int64_t H5Fcreate(const char *path, unsigned flags, int64_t creation, int64_t access);
int64_t H5Fcreate(const char *path, unsigned flags, int64_t creation, int64_t access) {
    (void)path, (void)flags, (void)creation, (void)access;
    fail_msg("libkilter-ckpt calls the program's HDF5");
    return -1;
}
#endif

/* The error must say how the file differs from what the program expects. */
static void other_programs_are_refused(void **state) {
    (void)state;
    need_library();
    world w;
    kl_ckpt_facts facts, ours = FACTS;
    kilter_error error;
    make_world(&w, 3);
    write_file(&w, 2, 1);
    char *path = kl_ckpt_path(&place, 1);
    assert_int_equal(library->read_facts(path, &facts, NULL), KILTER_OK);
    assert_int_equal(facts.sweeps, FACTS.sweeps);
    assert_true(facts.elapsed_s == FACTS.elapsed_s);
    ours.rows++;
    assert_int_equal(kl_ckpt_facts_fit(&facts, &ours, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, "it has 37 rows, but the program has 38"));
    ours = FACTS;
    strcpy(ours.loop, "other");
    assert_int_equal(kl_ckpt_facts_fit(&facts, &ours, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, "it belongs to loop 'loop', not to 'other'"));
    ours = FACTS;
    ours.kind = 1;
    assert_int_equal(kl_ckpt_facts_fit(&facts, &ours, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, "its loop has kind DOALL, but the program's loop has kind DOACROSS"));
    ours = FACTS;
    ours.content = 0;
    assert_int_equal(kl_ckpt_facts_fit(&facts, &ours, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, "its rows have some content, but the program's rows have none"));
    static const uint64_t wider[ARRAYS] = {WIDE, 16};
    kl_ckpt_kept other = {"other", w.text, 5}, values[2] = {values_of(&w)[0], other};
    kl_ckpt_plan theirs, program;
    assert_true(kl_ckpt_plan_make(&theirs, &facts, WIDTHS, NULL, 0, values_of(&w)));
    assert_true(kl_ckpt_plan_make(&program, &FACTS, wider, NULL, 0, values_of(&w)));
    assert_int_equal(library->read_parts(path, &theirs, NULL), KILTER_OK);
    assert_int_equal(kl_ckpt_parts_fit(&theirs, &program, &error), KILTER_ERR_INPUT);
    assert_non_null(strstr(error.text, "'arrays/1' has 8 bytes a row in the file, but 16 in the program"));
    kl_ckpt_plan_free(&theirs);
    assert_true(kl_ckpt_plan_make(&theirs, &facts, WIDTHS, NULL, 0, values));
    assert_int_equal(library->read_parts(path, &theirs, &error), KILTER_ERR_RANGE);
    assert_non_null(strstr(error.text, "it has no 'values/other'"));
    kl_ckpt_plan_free(&theirs);
    kl_ckpt_plan_free(&program);
    free(path);
}

static void a_missing_library_is_named(void **state) {
    (void)state;
    kilter_error error = {KILTER_OK, ""};
    const kl_ckpt_library *found = NULL;
    kilter_status status = kl_ckpt_load(&found, &error);
    if (status == KILTER_OK)
        assert_non_null(found);
    else
        assert_non_null(strstr(error.text, "libkilter-ckpt"));
}

static void names_of_values(void **state) {
    static const char *const good[] = {"a", "time", "A-1_b.c"}, *const bad[] = {"",    "1",   ".",
                                                                                "a/b", "a b", "\xc3"};
    char longest[KL_CKPT_NAME_BYTES + 1];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(kl_ckpt_is_name(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(kl_ckpt_is_name(bad[i]));
    memset(longest, 'x', sizeof longest);
    longest[KL_CKPT_NAME_BYTES - 1] = '\0';
    assert_true(kl_ckpt_is_name(longest));
    longest[KL_CKPT_NAME_BYTES - 1] = 'x';
    longest[KL_CKPT_NAME_BYTES] = '\0';
    assert_false(kl_ckpt_is_name(longest));
    assert_false(kl_ckpt_is_name(NULL));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {TEST(names_are_those_of_generations),
                                       TEST(the_newest_generations_stay),
                                       TEST(a_name_is_given_once),
                                       TEST(a_folder_that_is_not_synchronised),
                                       TEST(a_name_that_the_file_has_already),
                                       TEST(damaged_generations_are_not_counted),
                                       TEST(starts_are_counted),
                                       TEST(folders_that_cannot_be_used),
                                       TEST(unreadable_files_are_not_damaged),
                                       TEST(a_folder_that_is_not_shared),
                                       TEST(ranks_that_write_blocks_directly_do_not_disturb_each_other),
                                       TEST(any_ranks_read_what_any_ranks_wrote),
                                       TEST(changed_bytes_are_noticed),
                                       TEST(a_named_pipe_is_refused_at_once),
                                       TEST(torn_files_are_refused),
                                       TEST(other_programs_are_refused),
                                       cmocka_unit_test(a_missing_library_is_named),
                                       cmocka_unit_test(names_of_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
