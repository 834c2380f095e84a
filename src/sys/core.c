/* Read from the system how long a thread ran, how long it waited for a core, and how long the cores were
 * idle. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/pin.h"
#include "sys/sys.h"

enum { LINES_BYTES = 1 << 16 }; /* greatest number of bytes read from /proc/stat; enough for 700 cores */

void kl_core_meter_open_thread(kl_core_meter *meter) {
    *meter = (kl_core_meter){open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC), -1};
}

void kl_core_meter_open(kl_core_meter *meter) {
    kl_core_meter_open_thread(meter);
    meter->cores = open("/proc/stat", O_RDONLY | O_CLOEXEC);
}

void kl_core_meter_close(kl_core_meter *meter) {
    if (meter->thread >= 0)
        close(meter->thread);
    if (meter->cores >= 0)
        close(meter->cores);
    *meter = (kl_core_meter){-1, -1};
}

bool kl_core_read(const kl_core_meter *meter, double *run_s, double *delay_s, double *slices) {
    char text[80];
    unsigned long long run_ns, delay_ns, count;
    ssize_t bytes = meter->thread >= 0 ? pread(meter->thread, text, sizeof text - 1, 0) : -1;
    if (bytes <= 0)
        return false;
    text[bytes] = '\0';
    if (sscanf(text, "%llu %llu %llu", &run_ns, &delay_ns, &count) != 3 || run_ns == 0)
        return false;
    *run_s = 1e-9 * (double)run_ns;
    *delay_s = 1e-9 * (double)delay_ns;
    *slices = (double)count;
    return true;
}

/* Add up the idle times in the lines "cpu3 user nice system idle iowait …" of these cores. */
static double add_idle(const char *lines, const cpu_set_t *cores) {
    unsigned core;
    unsigned long long idle, iowait;
    double ticks = 0;
    for (const char *line = strstr(lines, "\ncpu"); line; line = strstr(line + 1, "\ncpu"))
        if (sscanf(line, "\ncpu%u %*u %*u %*u %llu %llu", &core, &idle, &iowait) == 3 && core < CPU_SETSIZE &&
            CPU_ISSET(core, cores))
            ticks += (double)idle + (double)iowait;
    return ticks;
}

static double read_idle(const kl_core_meter *meter, const cpu_set_t *cores) {
    char *text = meter->cores >= 0 ? malloc(LINES_BYTES) : NULL;
    ssize_t bytes = text ? pread(meter->cores, text, LINES_BYTES - 1, 0) : -1;
    double idle_s = -1;
    if (bytes > 0) {
        text[bytes] = '\0';
        idle_s = add_idle(text, cores) / (double)sysconf(_SC_CLK_TCK);
    }
    free(text);
    return idle_s;
}

double kl_core_idle_s(const kl_core_meter *meter) {
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? read_idle(meter, &cores) : -1;
}

double kl_unpinned_idle_s(const kl_core_meter *meter) {
    cpu_set_t cores;
    return kl_all_my_cores(&cores) ? read_idle(meter, &cores) : -1;
}
