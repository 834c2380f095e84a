/* Find programs, the MPI for which they were built, and the files that Kilter's commands need beside them. */
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/sys.h"

static const double VERSION_LIMIT_S = 10;

char *kl_find_program(const char *word) {
    const char *path = getenv("PATH");
    if (!*word)
        return NULL;
    if (strchr(word, '/') || !path)
        return access(word, F_OK) == 0 ? kl_text("%s", word) : NULL;
    for (size_t bytes; *path; path += bytes + (path[bytes] == ':')) {
        bytes = strcspn(path, ":");
        char *file = kl_text("%.*s/%s", (int)bytes, path, word);
        if (file && access(file, X_OK) == 0)
            return file;
        free(file);
    }
    return NULL;
}

kl_launcher kl_launcher_of_file(const char *word) {
    enum { LOOK_AT = 16 << 20 };
    char *file = kl_find_program(word), *bytes = file ? malloc(LOOK_AT) : NULL;
    struct stat found_file;
    bool regular = bytes && stat(file, &found_file) == 0 && S_ISREG(found_file.st_mode);
    FILE *in = regular ? fopen(file, "re") : NULL;
    size_t size = in ? fread(bytes, 1, LOOK_AT, in) : 0;
    kl_launcher found = kl_launcher_of_program(bytes, size);
    if (in)
        fclose(in);
    free(bytes);
    free(file);
    return found;
}

kl_launcher kl_launcher_of_command(const char *command) {
    char *line = kl_text("%s --version 2>&1", command);
    char *const words[] = {"sh", "-c", line, NULL};
    kl_capture capture;
    kl_launcher found = KL_LAUNCH_OWN;
    if (line && kl_capture_start(&capture, words, VERSION_LIMIT_S, NULL) == KILTER_OK) {
        if (kl_capture_await(&capture) == 0)
            found = kl_launcher_of_version((const char *)capture.text.data);
        kl_capture_free(&capture);
    }
    free(line);
    return found;
}

static char *file_in(const char *folder, const char *below, const char *name) {
    char *path = kl_text("%s/%s%s", folder, below, name);
    if (path && access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *kl_libexec_file(const char *name) {
    const char *named = getenv("KILTER_LIBEXEC");
    if (named && *named)
        return file_in(named, "", name);
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return NULL;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    char *path = file_in(self, "", name);
    return path ? path : file_in(self, KL_LIBEXEC_FROM_BIN, name);
}
