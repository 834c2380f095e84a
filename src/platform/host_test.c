/* Compare the work of hosts whose speed changes with an integral in small steps. Check that kl_host_end_s()
 * and kl_host_work_s() agree. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "platform/platform.h"

static const kl_host hosts[] = {
    {.speed = 1},
    {.speed = 0.25},
    {.speed = 2, .profile = {.count = 1, .at_s = {0.2}, .factor = {0.1}}},
    {.speed = 1, .profile = {.count = 2, .at_s = {0, 30}, .factor = {1, 0.5}, .period_s = 60}},
    {.speed = 1, .profile = {.count = 1, .at_s = {0.7}, .factor = {0.3}, .period_s = 0.9}},
    {.speed = 1, .profile = {.count = 2, .at_s = {5, 20}, .factor = {1e-9, 1}}},
    {.speed = 3, .profile = {.count = 3, .at_s = {1, 2, 4}, .factor = {0.5, 2, 0.01}, .period_s = 7}},
};
enum { HOSTS = sizeof hosts / sizeof *hosts };

static void assert_near(double a, double b, double off) {
    if (!(fabs(a - b) <= off))
        fail_msg("%.12g, not %.12g", a, b);
}

static void speeds_follow_the_profile(void **state) {
    (void)state;
    static const struct {
        int host;
        double at_s, speed;
    } rows[] = {{0, 5, 1},     {1, 1e9, 0.25}, {2, 0.1, 2},    {2, 0.2, 0.2}, {2, 99, 0.2},
                {3, 29.9, 1},  {3, 30, 0.5},   {3, 60, 1},     {3, 95, 0.5},  {4, 0.1, 1},
                {4, 0.8, 0.3}, {4, 0.95, 1},   {5, 4, 1},      {5, 6, 1e-9},  {5, 20, 1},
                {6, 0, 3},     {6, 3, 6},      {6, 6.5, 0.03}, {6, 7.5, 3},   {6, 8.5, 1.5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_near(kl_host_speed(&hosts[rows[i].host], rows[i].at_s), rows[i].speed, 1e-15);
}

static void work_is_the_sum_of_speed_over_time(void **state) {
    (void)state;
    const double step_s = 1e-3;
    for (int h = 0; h < HOSTS; h++)
        for (double from_s = 0; from_s < 40; from_s += 11.3) {
            double sum = 0;
            for (int i = 0; i < 25000; i++)
                sum += kl_host_speed(&hosts[h], from_s + (i + 0.5) * step_s) * step_s;
            assert_near(kl_host_work_s(&hosts[h], from_s, from_s + 25), sum, 0.02 * hosts[h].speed);
        }
}

static void an_end_is_when_the_work_is_done(void **state) {
    (void)state;
    for (int h = 0; h < HOSTS; h++)
        for (double from_s = 0; from_s < 100; from_s += 3.7)
            for (double work_s = 1e-6; work_s < 1e4; work_s *= 7) {
                double end_s = kl_host_end_s(&hosts[h], from_s, work_s);
                assert_true(end_s > from_s);
                assert_near(kl_host_work_s(&hosts[h], from_s, end_s), work_s, 1e-6 * work_s + 1e-9);
            }
    assert_near(kl_host_end_s(&hosts[3], 0, 60), 75, 1e-9);
}

static void the_bound_of_a_cluster_is_when_all_have_done_the_work(void **state) {
    (void)state;
    kl_host_group groups[] = {{3, hosts[0]}, {2, hosts[3]}, {1, hosts[6]}, {4, hosts[2]}};
    kl_cluster c = {.groups = groups, .group_count = 4, .workers = 10};
    for (double from_s = 0; from_s < 50; from_s += 12.5)
        for (double work_s = 1e-9; work_s < 1e5; work_s *= 13) {
            double bound_s = kl_cluster_bound_s(&c, from_s, work_s), sum = 0;
            for (uint32_t g = 0; g < c.group_count; g++)
                for (uint32_t i = 0; i < groups[g].count; i++)
                    sum += kl_host_work_s(&groups[g].host, from_s, from_s + bound_s);
            assert_near(sum, work_s, 1e-6 * work_s + 1e-12);
        }
    assert_true(kl_cluster_bound_s(&c, 0, 0) == 0);
    assert_ptr_equal(kl_cluster_master(&c), &groups[0].host);
    c.master_apart = true;
    assert_ptr_equal(kl_cluster_master(&c), &c.master);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_follow_the_profile),
        cmocka_unit_test(work_is_the_sum_of_speed_over_time),
        cmocka_unit_test(an_end_is_when_the_work_is_done),
        cmocka_unit_test(the_bound_of_a_cluster_is_when_all_have_done_the_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
