/* Files that are there whole, or as they were. */
#ifndef KL_NEW_FILE_H
#define KL_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/base.h"

/* A file that gets its new content whole, or stays as it was: what is written to `out` lies beside it until
 * the end. What is no plain file, or lies in a folder where no other can be made, is written in place. */
typedef struct kl_new_file {
    FILE *out;
    char *path, *part; /* part NULL: in place */
} kl_new_file;

kilter_status kl_new_file_open(const char *path, kl_new_file *file, kilter_error *error);
/* good: all of it was written; else the file stays as it was. Frees what was opened, after failures, too.
 * KILTER_ERR_SYSTEM: it could not be written to the end, and is as it was. */
kilter_status kl_new_file_end(kl_new_file *file, bool good, kilter_error *error);

#endif
