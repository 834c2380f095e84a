/* Small files in a folder that several hosts share: processes on these hosts send each other signals with
 * them. No step depends on a clock, because the clocks of the hosts and of the folder may differ. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/sys.h"

/* Write all bytes to a new file. false: it could not be written, and errno says why. */
static bool write_new(const char *path, const void *text, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    size_t done = 0;
    ssize_t written = 1;
    while (done < size && written > 0) {
        written = write(fd, (const char *)text + done, size - done);
        done += written > 0 ? (size_t)written : 0;
    }
    int why = errno;
    bool whole = done == size;
    /* closing the file can fail, because a network folder may report a full disk only then */
    if (close(fd) != 0 && whole) {
        whole = false;
        why = errno;
    }
    if (!whole)
        unlink(path);
    errno = why;
    return whole;
}

bool kl_signal_file_put(const char *folder, const char *name, const void *text, size_t size) {
    char *part = kl_text("%s/.part.%016llx", folder, (unsigned long long)kl_token());
    char *path = kl_text("%s/%s", folder, name);
    errno = ENOMEM;
    bool put = part && path && write_new(part, text, size);
    int why = errno;
    if (put && rename(part, path) != 0) {
        why = errno;
        put = false;
        unlink(part);
    }
    free(part);
    free(path);
    errno = why;
    return put;
}

static size_t read_small(const char *path, char *text, size_t most) {
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, most) : -1;
    if (fd >= 0)
        close(fd);
    return size > 0 ? (size_t)size : 0;
}

/* Rename the file so that no other process can take it. Then read and remove it. */
static kl_signal_found claim_file(const char *folder, const char *name, const char *claim, char *text,
                                  size_t *size) {
    char *path = kl_text("%s/%s", folder, name), *mine = kl_text("%s/.claim.%s.%s", folder, claim, name);
    kl_signal_found found = KL_SIGNAL_FAULT;
    errno = ENOMEM;
    if (path && mine)
        found = rename(path, mine) == 0 ? KL_SIGNAL_TAKEN : errno == ENOENT ? KL_SIGNAL_NONE : found;
    int why = errno;
    if (found == KL_SIGNAL_TAKEN) {
        *size = read_small(mine, text, *size);
        unlink(mine);
    }
    free(path);
    free(mine);
    errno = why;
    return found;
}

kl_signal_found kl_signal_file_take(const char *folder, const char *prefix, const char *claim, char *text,
                                    size_t *size) {
    DIR *files = opendir(folder);
    kl_signal_found found = files ? KL_SIGNAL_NONE : KL_SIGNAL_FAULT;
    int why = errno;
    for (struct dirent *one; found == KL_SIGNAL_NONE && (one = readdir(files));)
        if (strncmp(one->d_name, prefix, strlen(prefix)) == 0) {
            found = claim_file(folder, one->d_name, claim, text, size);
            why = errno;
        }
    if (files)
        closedir(files);
    errno = why;
    return found;
}

void kl_signal_file_drop(const char *folder, const char *name) {
    char *path = kl_text("%s/%s", folder, name);
    if (path)
        unlink(path);
    free(path);
}

kilter_status kl_signal_folder_check(const char *folder, kilter_error *error) {
    static const char TEXT[] =
        "a process wrote this file, and removes it at once, to check that it can write in this folder\n";
    char name[48];
    snprintf(name, sizeof name, ".check.%016llx", (unsigned long long)kl_token());
    if (!kl_signal_file_put(folder, name, TEXT, sizeof TEXT - 1))
        return kl_fail(error, KILTER_ERR_SYSTEM, "the shared folder '%.120s' cannot be written here: %s",
                       folder, strerror(errno));
    kl_signal_file_drop(folder, name);
    return KILTER_OK;
}

kilter_status kl_signal_folder_make(const char *folder, char **path, kilter_error *error) {
    char *whole = realpath(folder, NULL);
    char *made = whole ? kl_text("%s/kilter-XXXXXX", whole) : NULL;
    kilter_status status = KILTER_OK;
    if (!made || !mkdtemp(made)) {
        status = kl_fail(error, KILTER_ERR_SYSTEM, "the shared folder '%.120s' cannot be used: %s", folder,
                         strerror(errno));
    } else if ((status = kl_signal_folder_check(made, error)) != KILTER_OK) {
        rmdir(made);
    }
    free(whole);
    if (status == KILTER_OK)
        *path = made;
    else
        free(made);
    return status;
}

void kl_signal_folder_remove(const char *path) {
    DIR *files = path ? opendir(path) : NULL;
    for (struct dirent *one; files && (one = readdir(files));)
        if (strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0)
            kl_signal_file_drop(path, one->d_name);
    if (files)
        closedir(files);
    if (path)
        rmdir(path);
}
