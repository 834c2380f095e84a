/* Replace files as a whole. After a crash, a file has either its old content or its new content. */
#ifndef KL_NEW_FILE_H
#define KL_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/base.h"

/* A file that is being replaced. The stream `out` writes to a second file in the same folder, which then
 * replaces the first one as a whole. The stream writes to the file itself if the file is not a plain file, or
 * if its folder allows no second file. */
typedef struct kl_new_file {
    FILE *out;
    char *path, *part; /* name of the second file; NULL: `out` writes to `path` itself */
} kl_new_file;

kilter_status kl_new_file_open(const char *path, kl_new_file *file, kilter_error *error);
/* Close the file and free everything, even after a failure. good: true if all content was written; false
 * keeps the old file. KILTER_ERR_SYSTEM: the content could not be written. The old file is then unchanged,
 * unless `out` wrote to the file itself. */
kilter_status kl_new_file_end(kl_new_file *file, bool good, kilter_error *error);

/* Replace a small file as a whole, without waiting for the disk. If the host crashes, the old file may be
 * there again. Errors: KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY */
kilter_status kl_replace_file(const char *path, const kl_buffer *text, kilter_error *error);

#endif
