/* Test reading a host's limits from folders that replace /proc and /sys, for both versions of control
 * groups. Also test the probe of the host's cores. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fitness/fitness.h"
#include "sys/root_test_helper.h"

enum { FILES = 10 };

/* Compare two numbers, where NAN equals NAN and INFINITY equals INFINITY. */
static void assert_same(double is, double wanted, const char *what, size_t c) {
    if (!(is == wanted || (isnan(is) && isnan(wanted)) || fabs(is - wanted) < 1e-12))
        fail_msg("case %zu: %s is %g, not %g", c, what, is, wanted);
}

static void a_host_is_read_below_any_root(void **state) {
    (void)state;
    static const char *const names[] = {"quota", "memory left", "memory",       "free swap", "swap",
                                        "load",  "waits_cpu",   "waits_memory", "waits_io"};
    enum { NUMBERS = sizeof names / sizeof *names };
    static const struct {
        written files[FILES];
        double numbers[NUMBERS];
    } cases[] = {
        {{{"proc/other", ""}}, {INFINITY, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}},
        {{{"proc/meminfo", "MemTotal: 90 kB\nMemAvailable: 10 kB\nSwapTotal: 8 kB\nSwapFree: 2 kB\n"},
          {"proc/loadavg", "1.50 0.70 0.30 2/345 6789\n"},
          {"proc/pressure/cpu", "some avg10=12.50 avg60=1 avg300=1 total=5\nfull avg10=0.00 total=0\n"},
          {"proc/pressure/memory", "some avg10=99.00 total=5\nfull avg10=25.00 avg60=0 total=0\n"},
          {"proc/pressure/io", "some avg10=1.00 total=5\nfull avg10=0.50 total=0\n"}},
         {INFINITY, 10240, 92160, 2048, 8192, 1.5, 0.125, 0.25, 0.005}},
        /* control groups version 2: the tightest limit of nested groups counts */
        {{{"proc/self/cgroup", "0::/a/b\n"},
          {"sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
          {"sys/fs/cgroup/a/cpu.max", "150000 100000\n"},
          {"sys/fs/cgroup/cpu.max", "300000 100000\n"},
          {"sys/fs/cgroup/a/memory.max", "1000\n"},
          {"sys/fs/cgroup/a/memory.current", "400\n"},
          {"sys/fs/cgroup/a/memory.pressure", "some avg10=50.00 total=1\nfull avg10=40.00 total=1\n"},
          {"proc/pressure/memory", "some avg10=9.00 total=5\nfull avg10=5.00 avg60=0 total=0\n"}},
         {1.5, 600, 1000, NAN, NAN, NAN, NAN, 0.4, NAN}},
        /* control groups version 1: only the controller cpu counts, not cpuset or cpuacct */
        {{{"proc/self/cgroup", "4:cpuset:/s\n3:cpuacct,cpu:/c\n2:memory:/m\n"},
          {"sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n"},
          {"sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"},
          {"sys/fs/cgroup/cpu/s/cpu.cfs_quota_us", "1\n"},
          {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
          {"sys/fs/cgroup/memory/m/memory.limit_in_bytes", "5000\n"},
          {"sys/fs/cgroup/memory/m/memory.usage_in_bytes", "6000\n"},
          {"sys/fs/cgroup/memory/m/memory.pressure", "full avg10=40.00 total=1\n"}},
         {0.5, 0, 5000, NAN, NAN, NAN, NAN, NAN, NAN}},
        {{{"proc/self/cgroup", "nonsense\n:\n0::/x\n"},
          {"sys/fs/cgroup/x/cpu.max", "nonsense\n"},
          {"proc/loadavg", "-1\n"},
          {"proc/meminfo", "SwapTotal: 0 kB\nSwapFree: 0 kB\n"},
          {"proc/pressure/cpu", "some\n"}},
         {INFINITY, NAN, NAN, 0, 0, NAN, NAN, NAN, NAN}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char *root = make_root(cases[c].files, FILES);
        kl_reading r;
        kl_read_host(root, &r);
        const double found[] = {r.quota, r.memory_left, r.memory_total, r.swap_free, r.swap_total,
                                r.load,  r.waits_cpu,   r.waits_memory, r.waits_io};
        for (size_t i = 0; i < NUMBERS; i++)
            assert_same(found[i], cases[c].numbers[i], names[i], c);
        assert_true(r.cores >= 1 && isnan(r.at_s) && isnan(r.probe));
        remove_root(root);
    }
}

/* Check only the range of the result, because the part of a core that the threads get depends on the
 * machine. */
static void a_probe_gives_a_part_of_the_time(void **state) {
    (void)state;
    for (uint32_t threads = 0; threads < 4; threads++) {
        double steps_per_s = -1, share = kl_spin(threads, 0.02, &steps_per_s);
        assert_true(share > 0 && share <= 1);
        assert_true(steps_per_s > 0 && isfinite(steps_per_s));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_read_below_any_root),
        cmocka_unit_test(a_probe_gives_a_part_of_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
