/* The files of a checkpoint: their names, their generations, and how a file gets its final name. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/ckpt.h"
#include "sys/sys.h"

static const char SUFFIX[] = ".h5";
enum {
    DIGITS_LEAST = 6,
    DIGITS_MOST = 19,
    TOKEN_DIGITS = 16,
    STEM_MOST = 180, /* a file's name has up to 255 bytes */
};

/* --- the folder of the checkpoints --- */

void kl_ckpt_folder_free(kl_ckpt_folder *f) {
    free(f->path);
    free(f->stem);
    *f = (kl_ckpt_folder){.path = NULL};
}

static kilter_status find(const char *path, kl_ckpt_folder *f, kilter_error *error) {
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    if (!*stem || strlen(stem) > STEM_MOST)
        return kl_fail(error, KILTER_ERR_RANGE,
                       "the checkpoint's path '%.200s' must end with a name of 1 to %d bytes", path,
                       STEM_MOST);
    char *folder = slash ? kl_text("%.*s/", (int)(slash - path), path) : kl_text(".");
    f->path = folder ? realpath(folder, NULL) : NULL;
    f->stem = kl_text("%s", stem);
    int why = errno;
    free(folder);
    if (!folder || !f->stem || (!f->path && why == ENOMEM))
        return kl_fail(error, KILTER_ERR_MEMORY, "opening the checkpoint '%.200s': memory ran out", path);
    if (!f->path)
        return kl_fail(error, KILTER_ERR_SYSTEM, "the folder of the checkpoint '%.200s': %s; %s", path,
                       strerror(why), *path == '~' ? "only a shell replaces '~'" : "create it");
    return KILTER_OK;
}

kilter_status kl_ckpt_folder_open(const char *path, kl_ckpt_folder *f, kilter_error *error) {
    *f = (kl_ckpt_folder){.path = NULL};
    kilter_status status = find(path, f, error);
    if (status == KILTER_OK && access(f->path, W_OK | X_OK) != 0)
        status = kl_fail(error, KILTER_ERR_SYSTEM,
                         "the folder of the checkpoint '%.200s': %s; choose a folder in which files can be "
                         "created",
                         path, strerror(errno));
    if (status != KILTER_OK)
        kl_ckpt_folder_free(f);
    return status;
}

char *kl_ckpt_path(const kl_ckpt_folder *f, uint64_t generation) {
    return kl_text("%s/%s.%0*llu%s", f->path, f->stem, DIGITS_LEAST, kl_ull(generation), SUFFIX);
}

/* The token distinguishes the files of two programs that write the same generation. */
char *kl_ckpt_unfinished_path(const kl_ckpt_folder *f, uint64_t generation, uint64_t token) {
    return kl_text("%s/%s.%0*llu%s.%0*llx", f->path, f->stem, DIGITS_LEAST, kl_ull(generation), SUFFIX,
                   TOKEN_DIGITS, kl_ull(token));
}

int kl_ckpt_shown(const char *unfinished_path) {
    const char *token = strrchr(unfinished_path, '.');
    return token ? (int)(token - unfinished_path) : (int)strlen(unfinished_path);
}

/* --- names --- */

/* Read the number of the generation, which follows `stem` in the name, and return the text after the number.
 * NULL: this is not the name of a checkpoint. */
static const char *after_generation(const char *stem, const char *name, uint64_t *generation) {
    size_t length = strlen(stem);
    if (strncmp(name, stem, length) != 0 || name[length] != '.')
        return NULL;
    const char *digits = name + length + 1;
    size_t count = strspn(digits, "0123456789");
    bool padded = count == DIGITS_LEAST || (count > DIGITS_LEAST && count <= DIGITS_MOST && *digits != '0');
    uint64_t value = padded ? strtoull(digits, NULL, 10) : 0;
    if (value == 0 || strncmp(digits + count, SUFFIX, sizeof SUFFIX - 1) != 0)
        return NULL;
    *generation = value;
    return digits + count + sizeof SUFFIX - 1;
}

bool kl_ckpt_generation_of(const char *stem, const char *name, uint64_t *generation) {
    uint64_t value;
    const char *rest = after_generation(stem, name, &value);
    if (!rest || *rest)
        return false;
    *generation = value;
    return true;
}

static bool is_unfinished(const char *stem, const char *name) {
    uint64_t generation;
    const char *rest = after_generation(stem, name, &generation);
    return rest && *rest == '.' && strspn(rest + 1, "0123456789abcdef") == TOKEN_DIGITS &&
           rest[1 + TOKEN_DIGITS] == '\0';
}

/* --- lists --- */

static int newer_first(const void *a, const void *b) {
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one > other ? -1 : one < other;
}

static kilter_status failed(const kl_ckpt_folder *f, int why, kilter_error *error) {
    if (why == ENOMEM)
        return kl_fail(error, KILTER_ERR_MEMORY, "reading the folder '%.200s': memory ran out", f->path);
    return kl_fail(error, KILTER_ERR_SYSTEM, "reading the folder '%.200s': %s", f->path, strerror(why));
}

/* Return the numbers of the generations in the folder, unsorted. After a failure, errno says why. */
static bool collect(const kl_ckpt_folder *f, DIR *folder, uint64_t **list, size_t *count) {
    uint64_t room = 0, generation;
    const struct dirent *entry;
    *list = NULL;
    *count = 0;
    for (errno = 0; (entry = readdir(folder)); errno = 0) {
        if (!kl_ckpt_generation_of(f->stem, entry->d_name, &generation))
            continue;
        uint64_t *more = kl_array_grow(*list, &room, *count + 1, sizeof *more);
        if (!more)
            return false;
        *list = more;
        more[(*count)++] = generation;
    }
    return errno == 0;
}

kilter_status kl_ckpt_list(const kl_ckpt_folder *f, uint64_t **generations, size_t *count,
                           kilter_error *error) {
    DIR *folder = opendir(f->path);
    if (!folder)
        return failed(f, errno, error);
    bool read = collect(f, folder, generations, count);
    int why = errno ? errno : ENOMEM;
    closedir(folder);
    if (!read) {
        free(*generations);
        return failed(f, why, error);
    }
    if (*count > 0)
        qsort(*generations, *count, sizeof **generations, newer_first);
    return KILTER_OK;
}

kilter_status kl_ckpt_newest(const kl_ckpt_folder *f, uint64_t *generation, kilter_error *error) {
    uint64_t *list;
    size_t count;
    kilter_status status = kl_ckpt_list(f, &list, &count, error);
    if (status != KILTER_OK)
        return status;
    *generation = count > 0 ? list[0] : 0;
    free(list);
    return KILTER_OK;
}

/* Remove a file, and free its path. */
static void remove_path(char *path) {
    if (path)
        unlink(path);
    free(path);
}

void kl_ckpt_clean(const kl_ckpt_folder *f) {
    DIR *folder = opendir(f->path);
    const struct dirent *entry;
    if (!folder)
        return;
    while ((entry = readdir(folder)))
        if (is_unfinished(f->stem, entry->d_name))
            remove_path(kl_text("%s/%s", f->path, entry->d_name));
    closedir(folder);
}

/* --- starts --- */

/* Return the name of the file that has one byte for each start from this generation. The file shows how many
 * starts have failed since the last checkpoint. */
static char *starts_path(const kl_ckpt_folder *f, uint64_t generation) {
    return kl_text("%s/%s.%0*llu.starts", f->path, f->stem, DIGITS_LEAST, kl_ull(generation));
}

uint64_t kl_ckpt_note_start(const kl_ckpt_folder *f, uint64_t generation) {
    struct stat is = {.st_size = 0};
    char *path = starts_path(f, generation);
    int to = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    bool noted = to >= 0 && fstat(to, &is) == 0 && write(to, "s", 1) == 1 && fsync(to) == 0;
    if (to >= 0)
        close(to);
    if (to >= 0 && !noted && is.st_size == 0)
        unlink(path); /* a full disk leaves an empty file */
    free(path);
    return (uint64_t)is.st_size;
}

/* --- giving a file its final name --- */

/* Synchronise a folder with the disk, and return 0 on success. If the file system cannot do this, return 0,
 * too, because a name there cannot be made more durable. */
static int sync_folder(const char *path) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int synced = descriptor >= 0 ? fsync(descriptor) : -1, why = errno;
    if (synced != 0 && descriptor >= 0 && (why == EINVAL || why == ENOSYS || why == ENOTSUP))
        synced = 0;
    if (descriptor >= 0)
        close(descriptor);
    errno = why;
    return synced;
}

static bool is_same_file(const char *one, const char *other) {
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Give the file its name if no other file has this name yet. NFS may repeat a request whose answer was lost,
 * and then says that the name exists. On file systems without hard links, rename() is used. */
static int name_new(const char *from, const char *to) {
    if (link(from, to) == 0 || (errno == EEXIST && is_same_file(from, to))) {
        unlink(from); /* if this fails, the next start removes the unfinished file */
        return 0;
    }
    if (errno == EEXIST || errno == ENOSPC)
        return -1;
    return access(to, F_OK) == 0 ? (errno = EEXIST, -1) : rename(from, to);
}

/* Give the file a name that survives a crash. If this fails, remove the name: otherwise rank 0 would later
 * take the file for another program's file. */
static int name_durably(const kl_ckpt_folder *f, const char *from, const char *to) {
    if (name_new(from, to) != 0)
        return -1;
    if (sync_folder(f->path) == 0)
        return 0;
    int why = errno;
    unlink(to);
    errno = why;
    return -1;
}

/* Remove old generations. A damaged generation does not count as one of the `keep` newest. It is removed when
 * there are `keep` newer undamaged generations. */
void kl_ckpt_remove_old(const kl_ckpt_folder *f, unsigned keep) {
    uint64_t *list;
    size_t count;
    unsigned kept = 0;
    if (kl_ckpt_list(f, &list, &count, NULL) != KILTER_OK)
        return;
    for (size_t i = 0; i < count; i++)
        if (kept >= keep) {
            remove_path(kl_ckpt_path(f, list[i]));
            remove_path(starts_path(f, list[i]));
        } else {
            kept += list[i] < f->damaged.lo || list[i] >= f->damaged.hi;
        }
    free(list);
}

/* Give the file its final name. If a removed generation had the same number, forget how many programs started
 * from it. */
kilter_status kl_ckpt_commit(const kl_ckpt_folder *f, uint64_t generation, uint64_t token,
                             kilter_error *error) {
    char *from = kl_ckpt_unfinished_path(f, generation, token), *to = kl_ckpt_path(f, generation);
    kilter_status status = KILTER_OK;
    if (!from || !to)
        status = kl_fail(error, KILTER_ERR_MEMORY, "memory ran out");
    else if (name_durably(f, from, to) != 0)
        status =
            kl_fail(error, KILTER_ERR_SYSTEM, "naming the file '%.200s': %s", to,
                    errno == EEXIST ? "another program writes checkpoints under this name" : strerror(errno));
    if (status == KILTER_OK)
        remove_path(starts_path(f, generation));
    free(from);
    free(to);
    return status;
}
