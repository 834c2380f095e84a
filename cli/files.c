/* Files that commands read and write. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd.h"
#include "sys/sys.h"

static const char record_ending[] = ".kilter";

static bool is_record_name(const char *name) {
    size_t size = strlen(name), ending = sizeof record_ending - 1;
    return size > ending && strcmp(name + size - ending, record_ending) == 0;
}

static bool is_newer(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* A record that is being written changes its log, and only now and then itself. */
static bool changed_at(const char *file, struct timespec *at) {
    struct stat info, log;
    if (stat(file, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    *at = info.st_mtim;
    char *log_name = kl_text("%s-wal", file);
    if (log_name && stat(log_name, &log) == 0 && is_newer(log.st_mtim, *at))
        *at = log.st_mtim;
    free(log_name);
    return true;
}

/* Of two that changed at the same time, the name that sorts last: names begin with the time. */
static char *newest_in(const char *folder, DIR *dir) {
    char *newest = NULL;
    struct timespec newest_at = {0};
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *file = is_record_name(entry->d_name) ? kl_text("%s/%s", folder, entry->d_name) : NULL;
        struct timespec at;
        if (file && changed_at(file, &at) &&
            (!newest || is_newer(at, newest_at) || (!is_newer(newest_at, at) && strcmp(file, newest) > 0))) {
            free(newest);
            newest = file;
            newest_at = at;
        } else {
            free(file);
        }
    }
    return newest;
}

char *kl_cmd_newest_record(kilter_error *error) {
    char *folder = NULL;
    if (kl_record_dir(&folder, error) != KILTER_OK || !folder)
        return NULL;
    DIR *dir = opendir(folder);
    char *newest = dir ? newest_in(folder, dir) : NULL;
    if (dir)
        closedir(dir);
    if (!newest)
        kl_fail(error, KILTER_ERR_INPUT, "looking for the newest record: no file *%s in '%s'; name the file",
                record_ending, folder);
    free(folder);
    return newest;
}

int kl_cmd_save(const char *file, const char *data, size_t size) {
    if (strcmp(file, "-") == 0) {
        fwrite(data, 1, size, stdout);
        return kl_cmd_printed();
    }
    kl_new_file picture;
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = kl_new_file_open(file, &picture, &error);
    if (status == KILTER_OK) {
        fwrite(data, 1, size, picture.out);
        status = kl_new_file_end(&picture, true, &error);
    }
    if (status != KILTER_OK)
        fprintf(stderr, "kilter: %s\n", error.text);
    return status == KILTER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
