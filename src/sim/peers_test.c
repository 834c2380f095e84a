/* Test peers in virtual time: every task must be counted once, although peers die, join and slow down. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cases_test_helper.h"
#include "sim/sim.h"

/* DEEP_PEERS: number of peers in a tree with three levels below the root. ADOPTED: number of a peer that has
 * children in this tree. ADOPTER: number of the parent of ADOPTED. */
enum { MOST_PEERS = 100, DEEP_PEERS = 200, ADOPTER = 1, ADOPTED = 13 };

typedef struct scene {
    kl_host_group groups[DEEP_PEERS]; /* a group of hosts for each peer, with one host */
    kl_cluster cluster;
    kl_sim_peers peers;
    kl_sim_run run;
    uint64_t seed, draws;
} scene;

static double random_of(scene *s) {
    return (double)(kl_mix64(s->seed + kl_mix64(++s->draws)) >> 11) * 0x1p-53;
}

/* Return a random task time, exponentially distributed with a mean of 1 ms. */
static double task_s(void *self, uint64_t run, uint64_t index) {
    (void)run;
    return -1e-3 * log(((double)(kl_mix64(*(const uint64_t *)self + kl_mix64(index)) >> 11) + 0.5) * 0x1p-53);
}

static void scene_of(scene *s, const char *help, uint32_t peers, uint64_t tasks) {
    *s = (scene){.seed = 1};
    for (uint32_t i = 0; i < peers; i++)
        s->groups[i] = (kl_host_group){1, {.speed = 1}};
    s->cluster = (kl_cluster){
        .groups = s->groups, .group_count = peers, .workers = peers, .latency_s = 5e-6, .bytes_per_s = 1e9};
    s->peers = (kl_sim_peers){
        .cluster = &s->cluster, .help = kl_help_find(help), .message_s = 5e-6, .attends = true};
    s->run = (kl_sim_run){.tasks = tasks, .task_s = task_s, .self = &s->seed};
}

static kl_sim_peers_outcome outcome_of(const scene *s) {
    kl_sim_peers_outcome out;
    kilter_error error = {.text = ""};
    if (kl_sim_peers_run(&s->peers, &s->run, &out, &error) != KILTER_OK)
        fail_msg("%s with %u peers and %llu tasks, seed %llu: %s", s->peers.help->name,
                 (unsigned)s->cluster.workers, kl_ull(s->run.tasks), kl_ull(s->seed), error.text);
    return out;
}

static void assert_counted_once(const scene *s) {
    kl_sim_peers_outcome out = outcome_of(s);
    assert_int_equal(out.results, s->run.tasks);
    assert_int_equal(out.twice, 0);
    assert_true(out.exact);
    assert_true(out.executed >= out.results);
    assert_true(out.elapsed_s >= out.bound_s * (1 - 1e-9));
}

static void every_task_once_with_every_policy_and_size(void **state) {
    (void)state;
    static const uint32_t peers[] = {1, 2, 3, 16, 17, 18, 100};
    static const uint64_t tasks[] = {0, 1, 17, 1000};
    scene s;
    for (size_t h = 0; kl_help_at(h); h++)
        for (size_t p = 0; p < sizeof peers / sizeof *peers; p++)
            for (size_t t = 0; t < 2 * sizeof tasks / sizeof *tasks; t++) {
                scene_of(&s, kl_help_at(h)->name, peers[p], tasks[t / 2]);
                s.peers.attends = t % 2;
                assert_counted_once(&s);
            }
}

/* Choose the speeds and slowdowns of the hosts, the latency and the clusters at random. */
static void make_hosts(scene *s, double whole_s) {
    for (uint32_t i = 0; i < s->cluster.workers; i++) {
        kl_host *h = &s->groups[i].host;
        h->speed = random_of(s) < 0.5 ? 1 : 0.1 + random_of(s);
        if (random_of(s) < 0.1)
            h->profile = (kl_profile){.count = 1, .at_s = {random_of(s) * whole_s}, .factor = {0.05}};
    }
    s->cluster.latency_s = random_of(s) < 0.5 ? 5e-6 : 5e-4 * random_of(s);
    s->cluster.near = random_of(s) < 0.3 ? 8 : 0;
    s->cluster.far_s = 3e-3;
}

static void random_scene(scene *s, uint64_t seed) {
    uint32_t peers = 1 + (uint32_t)(kl_mix64(seed) % MOST_PEERS);
    uint64_t tasks =
        kl_mix64(seed + 1) % 3 ? kl_mix64(seed + 2) % (peers * 60) : kl_mix64(seed + 2) % (3 * peers);
    scene_of(s, kl_help_at(seed % 4)->name, peers, tasks);
    s->seed = s->peers.seed = seed;
    s->peers.attends = random_of(s) < 0.6;
    make_hosts(s, 1e-3 * (double)tasks / peers);
}

/* Return how fast the clock of a peer runs: 1, or a power of two from 1/1024 to 1024, so that nothing is
 * rounded. */
static double wrong_clock(void *self, uint32_t peer) {
    uint64_t random = kl_mix64(*(uint64_t *)self + peer);
    return random % 2 ? 1 : ldexp(1, (int)(random / 2 % 21) - 10);
}

static void peers_that_report_wrong_rates_lose_nothing(void **state) {
    (void)state;
    scene s;
    uint64_t cases = kl_test_cases(20, 500);
    for (uint64_t seed = 1; seed <= cases; seed++) {
        random_scene(&s, seed * 7919);
        s.peers.clock = wrong_clock;
        s.peers.self = &s.seed;
        assert_counted_once(&s);
    }
}

/* Peers die at random times: while they give or take tasks, take over from dead peers, or report. In one of
 * five cases, all peers that die do so at the same time. Every task must be counted once. */
static void every_task_once_whoever_dies_and_joins(void **state) {
    (void)state;
    scene s;
    uint64_t deaths = 0, adopted = 0, cases = kl_test_cases(150, 1500);
    for (uint64_t seed = 1; seed <= cases; seed++) {
        random_scene(&s, seed * 1000003);
        double whole_s = 1e-3 * (double)s.run.tasks / s.cluster.workers + 1e-6,
               at_s = whole_s * random_of(&s);
        double dying = 0.6 * random_of(&s), joining = 0.3 * random_of(&s);
        bool together = random_of(&s) < 0.2;
        for (uint32_t i = 1; i < s.cluster.workers; i++) {
            kl_host *h = &s.groups[i].host;
            double moment_s = together ? at_s : 1.5 * whole_s * random_of(&s);
            if (random_of(&s) < joining)
                h->joins_s = whole_s * random_of(&s) + 1e-9;
            if (random_of(&s) < dying)
                h->dies_from_s = h->dies_by_s = h->joins_s + moment_s + 1e-6;
        }
        kl_sim_peers_outcome out = outcome_of(&s);
        assert_int_equal(out.results, s.run.tasks);
        assert_int_equal(out.twice, 0);
        assert_true(out.exact);
        deaths += out.deaths;
        adopted += out.adopted;
    }
    /* the test must have seen deaths and lost tasks */
    assert_true(deaths > cases && adopted > cases);
}

static void dies_at(scene *s, uint32_t peer, double at_s) {
    s->groups[peer].host.dies_from_s = s->groups[peer].host.dies_by_s = at_s;
}

/* A peer and then its parent die. The parent dies 0 to 1 ms after it has noticed the first death. At this
 * moment it may be taking over the children of the dead peer, sending messages about the death, or counting
 * the done tasks. No task may be lost. */
static void a_peer_that_dies_while_it_adopts_loses_nothing(void **state) {
    (void)state;
    enum { EACH = 30 };
    const double noticed_s = 0.15, task_s = 10e-3;
    scene s;
    uint64_t cases = kl_test_cases(10, 40);
    for (uint64_t i = 0; i < cases; i++) {
        scene_of(&s, "help", DEEP_PEERS, (uint64_t)DEEP_PEERS * EACH);
        s.run.task_s = NULL;
        s.run.even_s = task_s;
        s.peers.attends = i % 2;
        dies_at(&s, ADOPTED, noticed_s - 0.05);
        dies_at(&s, ADOPTER, noticed_s + 1e-3 * (double)i / (double)cases);
        kl_sim_peers_outcome out = outcome_of(&s);
        assert_int_equal(out.results, s.run.tasks);
        assert_int_equal(out.twice, 0);
        assert_true(out.exact);
        assert_int_equal(out.deaths, 2);
        assert_true(out.adopted > 0);
    }
}

static void the_root_dies_and_the_error_says_what_was_counted(void **state) {
    (void)state;
    scene s;
    kl_sim_peers_outcome out;
    kilter_error error = {.text = ""};
    scene_of(&s, "help", 20, 2000);
    s.groups[0].host.dies_from_s = s.groups[0].host.dies_by_s = 0.05;
    assert_int_equal(kl_sim_peers_run(&s.peers, &s.run, &out, &error), KILTER_ERR_PEER);
    unsigned long long counted = 0;
    assert_non_null(strstr(error.text, "the root, died at 0.05 s"));
    assert_int_equal(sscanf(strchr(error.text, ':'), ": %llu of 2000", &counted), 1);
    assert_true(counted > 0 && counted < 2000);
}

static void the_same_again_to_the_bit(void **state) {
    (void)state;
    scene s;
    random_scene(&s, 4);
    kl_sim_peers_outcome one = outcome_of(&s), two = outcome_of(&s);
    assert_memory_equal(&one, &two, sizeof one);
}

static void those_that_join_work(void **state) {
    (void)state;
    scene s;
    scene_of(&s, "help", 40, 8000);
    for (uint32_t i = 0; i < 20; i++) /* half of the peers join at 0.05 s; they get the last numbers */
        s.groups[i].host.joins_s = 0.05;
    kl_sim_peers_outcome out = outcome_of(&s);
    assert_true(out.elapsed_s < 0.3); /* without the peers that join, the run would take 0.4 s */
}

/* All policies must help slow peers. Half of the peers are 20 times slower, and without help the run would
 * take 2 s. */
static void all_policies_help_the_slow(void **state) {
    (void)state;
    scene s;
    for (size_t h = 0; kl_help_at(h); h++)
        for (int attends = 0; attends < 2; attends++) {
            scene_of(&s, kl_help_at(h)->name, 20, 2000);
            s.peers.attends = attends;
            for (uint32_t i = 10; i < 20; i++)
                s.groups[i].host.speed = 0.05;
            assert_true(outcome_of(&s).elapsed_s < 0.6);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_once_with_every_policy_and_size),
        cmocka_unit_test(peers_that_report_wrong_rates_lose_nothing),
        cmocka_unit_test(every_task_once_whoever_dies_and_joins),
        cmocka_unit_test(a_peer_that_dies_while_it_adopts_loses_nothing),
        cmocka_unit_test(the_root_dies_and_the_error_says_what_was_counted),
        cmocka_unit_test(the_same_again_to_the_bit),
        cmocka_unit_test(those_that_join_work),
        cmocka_unit_test(all_policies_help_the_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
