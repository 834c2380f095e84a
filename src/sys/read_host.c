/* Read from the system how fit this host is for a program: memory, swap, load, quotas, and pressure.
 * Pressure is the part of the time in which processes wait for a resource. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/fitness.h"
#include "sys/groups.h"
#include "sys/sys.h"

/* --- limits of processor time --- */

/* Read the quota of a control group, in cores. Version 1 stores it in two files; the number −1 means that
 * there is no limit. Version 2 stores it in one file; the word "max" means that there is no limit. */
static void visit_cpu(void *context, const kl_group *group) {
    double *least = context, quota_us = 0, period_us = 0;
    char text[KL_TEXT_BYTES];
    kl_read_below(group->root, group->folder, group->version_2 ? "cpu.max" : "cpu.cfs_quota_us", text);
    if (group->version_2) {
        if (sscanf(text, "%lf %lf", &quota_us, &period_us) != 2)
            return;
    } else {
        quota_us = strtod(text, NULL);
        kl_read_below(group->root, group->folder, "cpu.cfs_period_us", text);
        period_us = strtod(text, NULL);
    }
    if (quota_us > 0 && period_us > 0)
        *least = fmin(*least, quota_us / period_us);
}

/* --- pressure --- */

/* Return the part of the last 10 s in which some processes (kind "some") or all of them (kind "full") waited
 * for a resource. NAN: not known. */
static double pressure_in(const char *text, const char *kind) {
    const char *line = kl_text_after(text, kind);
    double percent;
    return line && sscanf(line, " avg10=%lf", &percent) == 1 ? percent / 100 : NAN;
}

typedef struct pressure {
    const char *file, *kind;
    double most;
} pressure;

static void visit_pressure(void *context, const kl_group *group) {
    pressure *p = context;
    char text[KL_TEXT_BYTES];
    if (!group->version_2)
        return;
    kl_read_below(group->root, group->folder, p->file, text);
    p->most = fmax(p->most, pressure_in(text, p->kind));
}

/* Return the greatest pressure on the host and on the control groups of this process. */
static double pressure_of(const char *root, const char *resource, const char *kind) {
    char text[KL_TEXT_BYTES], file[32];
    snprintf(file, sizeof file, "%s.pressure", resource);
    kl_read_below(root, "/proc/pressure", resource, text);
    pressure p = {file, kind, pressure_in(text, kind)};
    kl_groups_visit(root, resource, visit_pressure, &p);
    return p.most;
}

/* --- the whole state of the host --- */

static void read_swap(const char *root, kl_reading *reading) {
    char text[KL_TEXT_BYTES];
    kl_read_below(root, "/proc", "meminfo", text);
    if (!kl_text_after(text, "SwapTotal:"))
        return;
    reading->swap_total = 1024 * (double)kl_number_after(text, "SwapTotal:");
    reading->swap_free = 1024 * (double)kl_number_after(text, "SwapFree:");
}

void kl_read_host(const char *root, kl_reading *reading) {
    char text[KL_TEXT_BYTES], *end;
    uint64_t total, left = kl_memory_left_of(root, &total);
    *reading = kl_reading_none();
    reading->memory_left = left < UINT64_MAX ? (double)left : NAN;
    reading->memory_total = total < UINT64_MAX && total > 0 ? (double)total : NAN;
    read_swap(root, reading);
    kl_groups_visit(root, "cpu", visit_cpu, &reading->quota);
    kl_read_below(root, "/proc", "loadavg", text);
    double load = strtod(text, &end);
    reading->load = end > text && load >= 0 ? load : NAN;
    reading->waits_cpu = pressure_of(root, "cpu", "some");
    reading->waits_memory = pressure_of(root, "memory", "full");
    reading->waits_io = pressure_of(root, "io", "full");
    reading->cores = kl_core_count();
}
