/* A folder that stands for "/" in a test. Its files have the form of the system's files in /proc and /sys. */
#ifndef KL_ROOT_TEST_HELPER_H
#define KL_ROOT_TEST_HELPER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/sys.h"

typedef struct written {
    const char *path, *text;
} written;

static inline void write_below(const char *root, const written *w) {
    char *path = kl_text("%s/%s", root, w->path), *folder = kl_text("%s/%s", root, w->path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(kl_make_dirs(folder, NULL), KILTER_OK);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(w->text, file);
    assert_int_equal(fclose(file), 0);
    free(path);
    free(folder);
}

static inline int remove_entry(const char *path, const struct stat *is, int kind, struct FTW *place) {
    (void)is, (void)kind, (void)place;
    return remove(path);
}

/* Write the files of the list. The list ends with an entry without a path. */
static inline char *make_root(const written *files, size_t count) {
    char *root;
    assert_int_equal(kl_private_dir(&root, NULL), KILTER_OK);
    for (size_t i = 0; i < count && files[i].path; i++)
        write_below(root, &files[i]);
    return root;
}

static inline void remove_root(char *root) {
    assert_int_equal(nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
    free(root);
}

#endif
