/* The keep folder of a run: read and write its files, and lock it for one keeper. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keep.h"

enum { FILE_MOST = 64 << 20 };

char *kl_keep_file(const char *folder, const char *name) {
    return kl_text("%s/%s", folder, name);
}

bool kl_keep_read(const char *folder, const char *name, kl_buffer *text) {
    char *path = kl_keep_file(folder, name), bytes[4096];
    FILE *in = path ? fopen(path, "re") : NULL;
    free(path);
    if (!in)
        return false;
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, in)) > 0 && text->size < FILE_MOST;)
        kl_put_bytes(text, bytes, got);
    bool good = !ferror(in) && !text->failed;
    fclose(in);
    return good;
}

bool kl_keep_read_end(const char *folder, uint64_t attempt, kl_keeper_end *end) {
    kl_buffer text = {0};
    bool read = kl_keep_read(folder, "ended", &text) && kl_get_end((const char *)text.data, text.size, end) &&
                end->attempt == attempt;
    kl_buffer_free(&text);
    return read;
}

void kl_keep_refresh(const char *folder) {
    DIR *opened = opendir(folder);
    if (opened)
        closedir(opened);
}

kilter_status kl_keep_write(const char *folder, const char *name, const kl_buffer *text,
                            kilter_error *error) {
    char *path = kl_keep_file(folder, name);
    kilter_status status = path
                               ? kl_replace_file(path, text, error)
                               : kl_fail(error, KILTER_ERR_MEMORY, "writing the keep folder: memory ran out");
    free(path);
    return status;
}

/* Find out whether the disk has room for the next report: write a file that is somewhat larger than the last
 * report, and remove it. */
bool kl_keep_has_room(const char *folder, kilter_error *error) {
    kl_buffer text = {0};
    char more[4096] = "", *path = kl_keep_file(folder, "room");
    kl_keep_read(folder, "progress", &text);
    kl_put_bytes(&text, more, sizeof more);
    bool room = kl_keep_write(folder, "room", &text, error) == KILTER_OK;
    kl_buffer_free(&text);
    if (path)
        unlink(path);
    free(path);
    return room;
}

bool kl_keep_is_folder(const char *path) {
    struct stat info;
    char *file = kl_keep_file(path, "state");
    bool is = file && stat(path, &info) == 0 && S_ISDIR(info.st_mode) && access(file, F_OK) == 0;
    free(file);
    return is;
}

static kilter_status make(const char *path, char **whole, kilter_error *error) {
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return kl_fail(error, KILTER_ERR_SYSTEM, "--folder: creating '%s': %s", path, strerror(errno));
    *whole = realpath(path, NULL);
    return *whole ? KILTER_OK
                  : kl_fail(error, KILTER_ERR_SYSTEM, "--folder: '%s': %s", path, strerror(errno));
}

/* Return whether a folder without the file `state` holds files of other programs. A lock and a record do not
 * count, because a keeper that was killed early leaves them. */
static bool holds_others(const char *path) {
    DIR *folder = opendir(path);
    bool others = false;
    if (!folder)
        return false;
    for (const struct dirent *entry; !others && (entry = readdir(folder));)
        others = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                 strcmp(entry->d_name, "lock") != 0 && strncmp(entry->d_name, "keep.kilter", 11) != 0;
    closedir(folder);
    return others;
}

kilter_status kl_keep_folder_open(const char *path, kl_keep_folder *folder, kilter_error *error) {
    *folder = (kl_keep_folder){.lock = -1};
    kilter_status status = make(path, &folder->path, error);
    if (status == KILTER_OK && !kl_keep_is_folder(path) && holds_others(path))
        status =
            kl_fail(error, KILTER_ERR_USAGE, "--folder: '%s' holds other files; name a new folder", path);
    char *lock = status == KILTER_OK ? kl_keep_file(folder->path, "lock") : NULL;
    if (status == KILTER_OK && !lock)
        status = kl_fail(error, KILTER_ERR_MEMORY, "--folder: memory ran out");
    if (status != KILTER_OK)
        return status;
    folder->lock = kl_lock_take(lock);
    int why = errno;
    free(lock);
    if (folder->lock >= 0)
        return KILTER_OK;
    return why == EAGAIN
               ? kl_fail(error, KILTER_ERR_USAGE,
                         "another keeper works on '%s'; kilter move and kilter drain reach it", path)
               : kl_fail(error, KILTER_ERR_SYSTEM, "--folder: locking '%s': %s", path, strerror(why));
}

void kl_keep_folder_close(kl_keep_folder *folder) {
    if (folder->lock >= 0)
        close(folder->lock);
    free(folder->path);
    *folder = (kl_keep_folder){.lock = -1};
}
