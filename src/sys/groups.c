/* Find the control groups of this process, in versions 1 and 2. */
#include "sys/groups.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

void kl_read_below(const char *root, const char *folder, const char *name, char text[KL_TEXT_BYTES]) {
    char path[PATH_BYTES + KL_GROUP_BYTES];
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, KL_TEXT_BYTES - 1) : 0;
    text[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

const char *kl_text_after(const char *text, const char *name) {
    size_t length = strlen(name);
    while (text && strncmp(text, name, length) != 0) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text ? text + length : NULL;
}

uint64_t kl_number_after(const char *text, const char *name) {
    const char *number = kl_text_after(text, name);
    return number ? strtoull(number, NULL, 10) : 0;
}

/* Return whether the word is in a comma-separated list. */
static bool is_listed(const char *words, const char *word) {
    for (size_t length; *words; words += length + (words[length] == ',')) {
        length = strcspn(words, ",");
        if (strlen(word) == length && strncmp(words, word, length) == 0)
            return true;
    }
    return false;
}

/* State of the search for the control groups that have a given controller. */
typedef struct walk {
    const char *root, *controller;
    void (*visit)(void *context, const kl_group *group);
    void *context;
} walk;

static void climb(const walk *w, bool version_2, char *name) {
    kl_group group = {.root = w->root, .version_2 = version_2};
    for (char *end = name + strlen(name); end; end = strrchr(name, '/')) {
        *end = '\0';
        if (version_2)
            snprintf(group.folder, sizeof group.folder, "/sys/fs/cgroup%s", name);
        else
            snprintf(group.folder, sizeof group.folder, "/sys/fs/cgroup/%s%s", w->controller, name);
        w->visit(w->context, &group);
    }
}

/* Read a line of /proc/self/cgroup, which has the form NUMBER:CONTROLLERS:GROUP. A line without controllers
 * belongs to version 2 of control groups. */
static void read_line(const walk *w, char *line) {
    char *controllers = strchr(line, ':'), *name = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!name || strlen(name) > PATH_BYTES)
        return;
    *name++ = '\0';
    controllers++;
    if (*controllers == '\0' || is_listed(controllers, w->controller))
        climb(w, *controllers == '\0', name);
}

void kl_groups_visit(const char *root, const char *controller,
                     void (*visit)(void *context, const kl_group *group), void *context) {
    walk w = {root, controller, visit, context};
    char text[KL_TEXT_BYTES], *rest;
    kl_read_below(root, "/proc/self", "cgroup", text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(&w, line);
}
