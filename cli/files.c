/* Write output files of commands. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "cmd.h"
#include "report/report.h"
#include "sys/sys.h"

bool kl_cmd_is_record(const char *file) {
    static const char HEAD[] = "SQLite format 3";
    char head[sizeof HEAD] = "x";
    struct stat about;
    FILE *in = stat(file, &about) == 0 && S_ISREG(about.st_mode) ? fopen(file, "re") : NULL;
    bool is = in && fread(head, 1, sizeof head, in) == sizeof head && memcmp(head, HEAD, sizeof HEAD) == 0;
    if (in)
        fclose(in);
    return is;
}

int kl_cmd_save(const char *file, const char *data, size_t size) {
    if (strcmp(file, "-") == 0) {
        fwrite(data, 1, size, stdout);
        return kl_cmd_printed();
    }
    kl_new_file picture;
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = kl_cmd_is_record(file)
                               ? kl_fail(&error, KILTER_ERR_USAGE,
                                         "'%s' is a run record, which would be overwritten; name a new file "
                                         "for the output, and the record after it",
                                         file)
                               : kl_new_file_open(file, &picture, &error);
    if (status == KILTER_OK) {
        fwrite(data, 1, size, picture.out);
        status = kl_new_file_end(&picture, true, &error);
    }
    return status == KILTER_OK ? EXIT_SUCCESS : kilter_exit("kilter", &error);
}

/* --- tables --- */

typedef struct table_file {
    const char *folder;
    kl_new_file file; /* file of the table that is being written */
} table_file;

static FILE *open_table(void *context, const char *table, kilter_error *error) {
    table_file *t = context;
    char *name = kl_text("%s/%s.csv", t->folder, table);
    if (!name) {
        kl_fail(error, KILTER_ERR_MEMORY, "writing tables into '%s': memory ran out", t->folder);
        return NULL;
    }
    kilter_status status = kl_new_file_open(name, &t->file, error);
    free(name);
    return status == KILTER_OK ? t->file.out : NULL;
}

static kilter_status close_table(void *context, FILE *file, bool whole, kilter_error *error) {
    (void)file;
    return kl_new_file_end(&((table_file *)context)->file, whole, error);
}

int kl_cmd_write_tables(const char *record, const char *folder) {
    kilter_error error;
    table_file files = {.folder = folder};
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        kl_fail(&error, KILTER_ERR_SYSTEM, "making the folder '%s': %s", folder, strerror(errno));
        return kilter_exit("kilter", &error);
    }
    const kl_table_files into = {open_table, close_table, &files};
    return kl_tables_write(record, &into, &error) == KILTER_OK ? EXIT_SUCCESS : kilter_exit("kilter", &error);
}

int kl_cmd_printed(void) {
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return EXIT_SUCCESS;
    fprintf(stderr, "kilter: writing to the standard output: %s; check that it can be written and has room\n",
            strerror(errno));
    return EXIT_FAILURE;
}
