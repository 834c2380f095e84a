/* Files that are replaced as a whole or not at all. */
#ifndef KL_NEW_FILE_H
#define KL_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/base.h"

/* A file that either gets its new content as a whole or does not change. `out` writes to a second file in
 * the same folder. The file is written in place if it is not a plain file, or if no other file can be
 * created in its folder. */
typedef struct kl_new_file {
    FILE *out;
    char *path, *part; /* name of the second file; NULL: `out` writes to `path` itself */
} kl_new_file;

kilter_status kl_new_file_open(const char *path, kl_new_file *file, kilter_error *error);
/* Finish the file and free everything, even after a failure. good: all content was written; false: keep
 * the old file. KILTER_ERR_SYSTEM: the content could not be written, and the old file is unchanged. */
kilter_status kl_new_file_end(kl_new_file *file, bool good, kilter_error *error);

/* Replace a small file as a whole, without waiting for the disk: a crash of the host may leave the old file.
 * KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY */
kilter_status kl_replace_file(const char *path, const kl_buffer *text, kilter_error *error);

#endif
