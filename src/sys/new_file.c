/* Replace files as a whole: write the new content to a second file. When all of it is on the disk, give the
 * second file the name of the first one. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/sys.h"

/* Open the second file, and give it the access rights of the file that it replaces (`old`). If `old` is
 * NULL, give it the rights of a new file. */
static bool open_beside(kl_new_file *file, const struct stat *old) {
    file->part = kl_text("%s.%016llx", file->path, (unsigned long long)kl_token());
    int fd = file->part ? open(file->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    bool right = fd >= 0 && (!old || fchmod(fd, old->st_mode & 07777) == 0);
    file->out = right ? fdopen(fd, "w") : NULL;
    if (file->out)
        return true;
    int why = errno;
    if (fd >= 0) {
        close(fd);
        unlink(file->part);
    }
    free(file->part);
    file->part = NULL;
    errno = why;
    return false;
}

static void forget(kl_new_file *file) {
    free(file->path);
    free(file->part);
    *file = (kl_new_file){0};
}

static kilter_status failed(kl_new_file *file, int why, kilter_error *error) {
    kilter_status status =
        kl_fail(error, KILTER_ERR_SYSTEM, "writing '%.200s': %s; name a file that can be written",
                file->path ? file->path : "", strerror(why));
    forget(file);
    return status;
}

kilter_status kl_new_file_open(const char *path, kl_new_file *file, kilter_error *error) {
    struct stat old;
    bool is_there = stat(path, &old) == 0;
    *file = (kl_new_file){.path = is_there ? realpath(path, NULL) : kl_text("%s", path)};
    if (!file->path)
        return failed(file, errno, error);
    bool beside = !is_there || (S_ISREG(old.st_mode) && access(file->path, W_OK) == 0);
    bool opened = beside && open_beside(file, is_there ? &old : NULL);
    bool closed_folder = beside && is_there && !opened && (errno == EACCES || errno == EPERM);
    if (is_there &&
        (!beside ||
         closed_folder)) /* `path` is a device or a pipe, or no second file can be created in its folder */
        file->out = fopen(file->path, "we");
    return file->out ? KILTER_OK : failed(file, errno, error);
}

/* Flush the folder to the disk, so that the file's new name is on the disk, too. */
static bool sync_folder(const char *path) {
    char *copy = kl_text("%s", path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    free(copy);
    return synced;
}

kilter_status kl_new_file_end(kl_new_file *file, bool good, kilter_error *error) {
    errno = 0;
    bool written = fflush(file->out) == 0 && !ferror(file->out);
    if (written && good && file->part)
        written = fsync(fileno(file->out)) == 0;
    int why = errno;
    if (fclose(file->out) != 0 && written) {
        written = false;
        why = errno;
    }
    if (file->part && written && good && rename(file->part, file->path) != 0) {
        written = false;
        why = errno;
    }
    if (file->part && !(written && good))
        unlink(file->part);
    else if (file->part)
        sync_folder(file->path);
    if (!written)
        return failed(file, why ? why : EIO, error);
    forget(file);
    return KILTER_OK;
}

kilter_status kl_replace_file(const char *path, const kl_buffer *text, kilter_error *error) {
    char *part = kl_text("%s.%016llx", path, (unsigned long long)kl_token());
    FILE *out = part && !text->failed ? fopen(part, "we") : NULL;
    if (!part || text->failed) {
        free(part);
        return kl_fail(error, KILTER_ERR_MEMORY, "writing '%.200s': memory ran out", path);
    }
    bool written = out && fwrite(text->data, 1, text->size, out) == text->size;
    written &= out && fclose(out) == 0;
    int why = errno;
    if (written && rename(part, path) != 0) {
        why = errno;
        written = false;
    }
    if (!written)
        unlink(part);
    free(part);
    return written ? KILTER_OK
                   : kl_fail(error, KILTER_ERR_SYSTEM, "writing '%.200s': %s", path, strerror(why));
}
