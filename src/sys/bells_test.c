#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/sys.h"

enum { TURNS = 3000 };

static void *shared(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

/* Sleep until `word` is at least `value`. A lost ring shows as a sleep of one minute. */
static void await(kl_bells *bells, atomic_int *word, int value) {
    while (atomic_load(word) < value) {
        kl_bells_lie_down(bells);
        if (atomic_load(word) < value)
            kl_bells_sleep(bells, 60);
        kl_bells_get_up(bells);
    }
}

/* Two processes alternate: each sleeps until the other rings. */
static int play(uint64_t token, uint32_t mine, atomic_int *words) {
    kl_bells *bells = kl_bells_open(token, 2, mine);
    if (!bells)
        return 2;
    atomic_fetch_add(&words[2], 1);
    while (atomic_load(&words[2]) < 2)
        ;
    for (int turn = 1; turn <= TURNS; turn++) {
        if (mine == 0) {
            atomic_store(&words[0], turn);
            kl_bells_ring(bells, 1);
            await(bells, &words[1], turn);
        } else {
            await(bells, &words[0], turn);
            atomic_store(&words[1], turn);
            kl_bells_ring(bells, 0);
        }
    }
    bool there = kl_bells_there(bells) == 2 && kl_bells_is_there(bells, 1 - mine);
    kl_bells_close(bells);
    return there ? 0 : 1;
}

static void no_ring_is_lost(void **state) {
    (void)state;
    atomic_int *words = shared(3 * sizeof *words);
    uint64_t token = kl_token();
    double begun_s = kl_monotonic_s();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(play(token, 1, words));
    assert_int_equal(play(token, 0, words), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(kl_monotonic_s() - begun_s < 60); /* check that no sleep lasted until its deadline */
    munmap(words, 3 * sizeof *words);
}

static void who_is_not_there_is_not_rung(void **state) {
    (void)state;
    kl_bells *bells = kl_bells_open(kl_token(), 5, 3);
    assert_non_null(bells);
    assert_int_equal(kl_bells_there(bells), 1);
    assert_true(kl_bells_is_there(bells, 3));
    assert_false(kl_bells_is_there(bells, 0));
    kl_bells_ring(bells, 0);
    kl_bells_settle(bells);
    kl_bells_settle(bells);
    kl_bells_close(bells);
    assert_int_equal(kl_bells_there(NULL), 0);
    assert_false(kl_bells_is_there(NULL, 0));
    kl_bells_ring(NULL, 0);
    kl_bells_settle(NULL);
    kl_bells_close(NULL);
}

static cpu_set_t first_core(void) {
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    size_t core = 0;
    while (!CPU_ISSET(core, &all))
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return one;
}

/* Two processes bound to one core must count as crowded; two processes with two cores must not. */
static void as_many_as_cores_are_not_crowded(void **state) {
    (void)state;
    cpu_set_t all, one = first_core();
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    uint64_t token = kl_token();
    kl_bells *first = kl_bells_open(token, 3, 0), *second = kl_bells_open(token, 3, 1);
    assert_non_null(first);
    assert_non_null(second);
    assert_true(kl_bells_crowded(first) && kl_bells_crowded(second));
    assert_true(kl_bells_cores_left(first) == 1 && kl_bells_cores_left(second) == 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) > 1) {
        /* the first two processes do not count for the third, because it may use more cores than they may */
        kl_bells *third = kl_bells_open(token, 3, 2);
        assert_false(kl_bells_crowded(third));
        assert_true(kl_bells_cores_left(third) == (uint32_t)CPU_COUNT(&all));
        kl_bells_close(third);
    }
    kl_bells_close(second);
    kl_bells_close(first);
    assert_true(!kl_bells_crowded(NULL) && kl_bells_cores_left(NULL) == 1);
}

static void *read_cores(void *cores) {
    sched_getaffinity(0, sizeof(cpu_set_t), cores);
    return NULL;
}

/* A pinned thread may use one core only, but counts with all its cores, and its threads get all of them. */
static void a_thread_is_pinned_to_its_core(void **state) {
    (void)state;
    cpu_set_t all, now, of_thread;
    pthread_t thread;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) == 1)
        skip(); /* a pin would change nothing */
    kl_bells *b = kl_bells_open(kl_token(), 2, 0);
    assert_non_null(b);
    assert_true(kl_bells_spare_cores(b, 0) == CPU_COUNT(&all) - 1 &&
                kl_bells_spare_cores(b, 1) == CPU_COUNT(&all));
    assert_true(kl_bells_pin(b) && !kl_bells_pin(b));
    kl_bells *next = kl_bells_open(kl_token(), 2, 0);
    assert_non_null(next);
    assert_int_equal(kl_bells_cores_left(next), CPU_COUNT(&all));
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_int_equal(CPU_COUNT(&now), 1);
    assert_int_equal(kl_thread_start(&thread, read_cores, &of_thread), 0);
    pthread_join(thread, NULL);
    assert_true(CPU_EQUAL(&of_thread, &all));
    pid_t child = fork();
    if (child == 0)
        _exit(sched_getaffinity(0, sizeof now, &now) != 0 || !CPU_EQUAL(&now, &all));
    int code = 1;
    assert_true(child > 0 && waitpid(child, &code, 0) == child && code == 0);
    kl_bells_close(next); /* it has pinned nothing, so the thread stays pinned */
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_int_equal(CPU_COUNT(&now), 1);
    kl_bells_close(b);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_EQUAL(&now, &all));
}

/* Pin this process to its core, say so, and wait until the other end is closed. */
static _Noreturn void pin_to_a_core(kl_bells *b, int end) {
    char pinned = (char)kl_bells_pin(b);
    if (write(end, &pinned, 1) == 1)
        (void)!read(end, &pinned, 1);
    kl_bells_unpin(b);
    _exit(0);
}

static void processes_are_pinned_to_different_cores(void **state) {
    (void)state;
    uint64_t token = kl_token();
    cpu_set_t all, one = first_core();
    int ends[2];
    char pinned = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    kl_bells *first = kl_bells_open(token, 2, 0), *second = kl_bells_open(token, 2, 1);
    assert_true(first && second && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        pin_to_a_core(first, ends[1]);
    }
    close(ends[1]);
    assert_true(read(ends[0], &pinned, 1) == 1 && pinned);
    assert_false(kl_bells_pin(second));
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(kl_bells_pin(second));
    kl_bells_close(second);
    kl_bells_close(first);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

/* If the program binds a pinned thread to other cores, it stays bound. */
static void a_thread_that_is_bound_meanwhile_stays_bound(void **state) {
    (void)state;
    cpu_set_t all, other, now;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) == 1)
        skip(); /* there is no other core */
    kl_bells *b = kl_bells_open(kl_token(), 1, 0);
    assert_true(b && kl_bells_pin(b));
    other = all;
    CPU_CLR((size_t)sched_getcpu(), &other);
    assert_int_equal(sched_setaffinity(0, sizeof other, &other), 0);
    kl_bells_close(b);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_EQUAL(&now, &other));
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

/* After kl_bells_settle(), a process that opens bells with the same token must get new bells. */
static void settled_bells_are_not_found(void **state) {
    (void)state;
    uint64_t token = kl_token();
    kl_bells *first = kl_bells_open(token, 2, 0);
    assert_non_null(first);
    kl_bells_settle(first);
    kl_bells *second = kl_bells_open(token, 2, 1);
    assert_non_null(second);
    assert_int_equal(kl_bells_there(first), 1);
    assert_int_equal(kl_bells_there(second), 1);
    kl_bells_close(first);
    kl_bells_close(second);
}

static void a_core_is_read(void **state) {
    (void)state;
    kl_core_meter meter;
    double run_s[2], delay_s[2], slices[2];
    kl_core_meter_open(&meter);
    if (!kl_core_read(&meter, &run_s[0], &delay_s[0], &slices[0])) {
        kl_core_meter_close(&meter);
        skip(); /* skip the test, because this system does not report idle time */
    }
    double begun_s = kl_monotonic_s(), busy_s = kl_cpu_s(kl_thread_cpu());
    while (kl_cpu_s(kl_thread_cpu()) - busy_s < 0.05)
        ;
    double lasted_s = kl_monotonic_s() - begun_s;
    assert_true(kl_core_read(&meter, &run_s[1], &delay_s[1], &slices[1]));
    assert_true(run_s[1] - run_s[0] > 0.04 && run_s[1] - run_s[0] < lasted_s + 0.01);
    assert_true(delay_s[1] >= delay_s[0] && slices[1] >= slices[0]);
    double idle_s = kl_core_idle_s(&meter);
    assert_true(idle_s < 0 || kl_core_idle_s(&meter) >= idle_s);
    kl_core_meter_close(&meter);
    assert_false(kl_core_read(&meter, &run_s[0], &delay_s[0], &slices[0]));
    assert_true(kl_core_idle_s(&meter) < 0);
}

static double own_cpu_s(void) {
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processes that open their bells or end change the number of processes. */
static void what_processes_of_the_same_cores_used_adds_up(void **state) {
    (void)state;
    uint64_t token = kl_token();
    uint32_t processes;
    int ends[2];
    char there = 0;
    kl_bells *one = kl_bells_open(token, 3, 0);
    assert_true(one && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    double least_s = own_cpu_s(), alone_s = kl_bells_used(one, &processes);
    assert_true(alone_s >= least_s && alone_s <= own_cpu_s() && processes == 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        while (own_cpu_s() < 0.05)
            ;
        kl_bells *other = kl_bells_open(token, 3, 1);
        if (other && write(ends[1], &there, 1) == 1)
            (void)!read(ends[1], &there, 1);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &there, 1), 1);
    least_s = own_cpu_s() + 0.05;
    assert_true(kl_bells_used(one, &processes) >= least_s && processes == 2);
    assert_int_equal(kl_bells_spare_cores(one, 0), (int)kl_bells_cores(one) - 2);
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    least_s = own_cpu_s();
    alone_s = kl_bells_used(one, &processes);
    assert_true(alone_s >= least_s && alone_s <= own_cpu_s() && processes == 1);
    assert_int_equal(kl_bells_spare_cores(one, 0), (int)kl_bells_cores(one) - 1);
    kl_bells_close(one);
}

static cpu_set_t every_core; /* the cores of this process before the tests */

static int remember_cores(void **state) {
    (void)state;
    return sched_getaffinity(0, sizeof every_core, &every_core);
}

static int use_every_core(void **state) {
    (void)state;
    kl_core_unpin();
    return sched_setaffinity(0, sizeof every_core, &every_core);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_processes_of_the_same_cores_used_adds_up),
        cmocka_unit_test(no_ring_is_lost),
        cmocka_unit_test(who_is_not_there_is_not_rung),
        cmocka_unit_test_teardown(as_many_as_cores_are_not_crowded, use_every_core),
        cmocka_unit_test_teardown(a_thread_is_pinned_to_its_core, use_every_core),
        cmocka_unit_test_teardown(processes_are_pinned_to_different_cores, use_every_core),
        cmocka_unit_test_teardown(a_thread_that_is_bound_meanwhile_stays_bound, use_every_core),
        cmocka_unit_test(settled_bells_are_not_found),
        cmocka_unit_test(a_core_is_read),
    };
    return cmocka_run_group_tests(tests, remember_cores, NULL);
}
