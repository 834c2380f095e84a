/* Memory that a process uses and could still get. Pages of files count as free, because the system drops them
 * before it kills a process; swap does not count. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/sys.h"

enum { TEXT_BYTES = 1 << 14, PATH_BYTES = 4096 };

/* Read the beginning of a file; "" if it cannot be read. */
static void read_text(const char *root, const char *folder, const char *name, char text[TEXT_BYTES]) {
    char path[3 * PATH_BYTES];
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, TEXT_BYTES - 1) : 0;
    text[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Return the number after `name` at the beginning of a line; 0 if there is none. */
static uint64_t number_of(const char *text, const char *name) {
    size_t length = strlen(name);
    while (text && strncmp(text, name, length) != 0) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text ? strtoull(text + length, NULL, 10) : 0;
}

/* Names of the files in one version of control groups. */
typedef struct files {
    const char *mount, *limit, *usage, *inactive, *active;
} files;
static const files version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file ", "total_active_file "};
static const files version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ",
                                "active_file "};

static uint64_t left_in_group(const char *root, const files *f, const char *group) {
    char folder[2 * PATH_BYTES], text[TEXT_BYTES], *end;
    snprintf(folder, sizeof folder, "%s%s", f->mount, group);
    read_text(root, folder, f->limit, text);
    uint64_t limit = strtoull(text, &end, 10);
    if (end == text) /* "max" means no limit; a missing file means no such group */
        return UINT64_MAX;
    read_text(root, folder, f->usage, text);
    uint64_t used = strtoull(text, NULL, 10);
    read_text(root, folder, "memory.stat", text);
    uint64_t cached = number_of(text, f->inactive) + number_of(text, f->active);
    used -= cached < used ? cached : used;
    return limit > used ? limit - used : 0;
}

/* Return the free bytes of the group or of a group above it, whichever has fewest. */
static uint64_t left_in_groups(const char *root, const files *f, char *group) {
    uint64_t least = UINT64_MAX;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = '\0';
        uint64_t left = left_in_group(root, f, group);
        least = left < least ? left : least;
    }
    return least;
}

/* Read a line of /proc/self/cgroup: NUMBER:CONTROLLERS:GROUP. A line without controllers is that of
 * version 2. */
static uint64_t left_by_line(const char *root, char *line) {
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group || strlen(group) > PATH_BYTES)
        return UINT64_MAX;
    *group++ = '\0';
    if (controllers[1] == '\0')
        return left_in_groups(root, &version_2, group);
    return strstr(controllers, "memory") ? left_in_groups(root, &version_1, group) : UINT64_MAX;
}

uint64_t kl_process_memory(void) {
    char text[TEXT_BYTES];
    read_text("", "/proc/self", "status", text);
    return (number_of(text, "VmRSS:") - number_of(text, "RssShmem:")) * 1024;
}

uint64_t kl_memory_left(const char *root) {
    char text[TEXT_BYTES], *rest;
    read_text(root, "/proc", "meminfo", text);
    uint64_t least = number_of(text, "MemAvailable:") * 1024;
    least = least > 0 ? least : UINT64_MAX;
    read_text(root, "/proc/self", "cgroup", text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        uint64_t left = left_by_line(root, line);
        least = left < least ? left : least;
    }
    return least;
}
