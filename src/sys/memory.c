/* The memory that a process uses, and the memory that it could still get. Memory that only caches files
 * counts as free, because the system takes it back before it kills a process. Swap does not count. */
#include <stdlib.h>

#include "sys/groups.h"
#include "sys/sys.h"

/* The names of the files in which one version of control groups reports memory. */
typedef struct files {
    const char *limit, *usage, *inactive, *active;
} files;
static const files version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
                                "total_active_file "};
static const files version_2 = {"memory.max", "memory.current", "inactive_file ", "active_file "};

/* The free bytes and total bytes of the host, or of the control group that has the fewest free bytes, if
 * these are fewer. */
typedef struct least {
    uint64_t left, total;
} least;

static void compare(least *l, uint64_t left, uint64_t total) {
    if (left < l->left)
        *l = (least){left, total};
}

static void visit(void *context, const kl_group *group) {
    const files *f = group->version_2 ? &version_2 : &version_1;
    char text[KL_TEXT_BYTES], *end;
    kl_read_below(group->root, group->folder, f->limit, text);
    uint64_t limit = strtoull(text, &end, 10);
    /* a file with "max" means that the group has no limit; a missing file means that there is no such
     * group */
    if (end == text)
        return;
    kl_read_below(group->root, group->folder, f->usage, text);
    uint64_t used = strtoull(text, NULL, 10);
    kl_read_below(group->root, group->folder, "memory.stat", text);
    uint64_t cached = kl_number_after(text, f->inactive) + kl_number_after(text, f->active);
    used -= cached < used ? cached : used;
    compare(context, limit > used ? limit - used : 0, limit);
}

uint64_t kl_process_memory(void) {
    char text[KL_TEXT_BYTES];
    kl_read_below("", "/proc/self", "status", text);
    return (kl_number_after(text, "VmRSS:") - kl_number_after(text, "RssShmem:")) * 1024;
}

uint64_t kl_memory_left_of(const char *root, uint64_t *total) {
    char text[KL_TEXT_BYTES];
    least l = {UINT64_MAX, UINT64_MAX};
    kl_read_below(root, "/proc", "meminfo", text);
    uint64_t available = kl_number_after(text, "MemAvailable:") * 1024;
    if (available > 0)
        compare(&l, available, kl_number_after(text, "MemTotal:") * 1024);
    kl_groups_visit(root, "memory", visit, &l);
    *total = l.total;
    return l.left;
}

uint64_t kl_memory_left(const char *root) {
    uint64_t total;
    return kl_memory_left_of(root, &total);
}
