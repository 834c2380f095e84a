/* Replace a file as a whole or not at all. Write a file in the same folder, and rename it when all bytes are
 * on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

static char *name_beside(const char *path) {
    unsigned long long token;
    char *name = NULL;
    if (getrandom(&token, sizeof token, 0) != sizeof token || asprintf(&name, "%s.%016llx", path, token) < 0)
        return NULL;
    return name;
}

/* Open the temporary file. The temporary file gets the permissions of the file that it will replace; for a
 * new file, the permissions that fopen() gives. */
static bool open_beside(sp_new_file *file, const struct stat *old) {
    file->part = name_beside(file->path);
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

static kilter_status end(sp_new_file *file, int why, kilter_error *error) {
    kilter_status status =
        why ? sp_fail(error, KILTER_ERR_SYSTEM, "writing '%.200s': %s; name a file that can be written",
                      file->path ? file->path : "", strerror(why))
            : KILTER_OK;
    free(file->path);
    free(file->part);
    *file = (sp_new_file){0};
    return status;
}

kilter_status sp_new_file_open(const char *path, sp_new_file *file, kilter_error *error) {
    struct stat old;
    bool is_there = stat(path, &old) == 0;
    *file = (sp_new_file){.path = is_there ? realpath(path, NULL) : strdup(path)};
    if (!file->path)
        return end(file, errno, error);
    bool beside = !is_there || (S_ISREG(old.st_mode) && access(file->path, W_OK) == 0);
    bool opened = beside && open_beside(file, is_there ? &old : NULL);
    bool closed_folder = beside && is_there && !opened && (errno == EACCES || errno == EPERM);
    if (is_there && (!beside || closed_folder)) /* write directly into a device, a pipe, or a file in a folder
                                                   without write permission */
        file->out = fopen(file->path, "we");
    return file->out ? KILTER_OK : end(file, errno, error);
}

/* Write the folder's entry of the new file to the disk, if the file system supports it. */
static void sync_folder(const char *path) {
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(copy);
}

/* Write all bytes to the disk and close the file. Return 0, or the errno of the failure. */
static int write_out(sp_new_file *file) {
    errno = 0;
    bool written =
        fflush(file->out) == 0 && !ferror(file->out) && (!file->part || fsync(fileno(file->out)) == 0);
    int why = written ? 0 : errno ? errno : EIO;
    if (fclose(file->out) != 0 && written)
        why = errno;
    return why;
}

kilter_status sp_new_file_end(sp_new_file *file, kilter_error *error) {
    int why = write_out(file);
    if (file->part && why == 0 && rename(file->part, file->path) != 0)
        why = errno;
    if (file->part && why != 0)
        unlink(file->part);
    else if (file->part)
        sync_folder(file->path);
    return end(file, why, error);
}
