/* rounds RANKS: print what balancing a loop on this many ranks costs, without the time of messages. Compare
 * two methods: all ranks decide from the same reports, or neighbours exchange rows with each other. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "steer/steer.h"
#include "sys/sys.h"

/* EACH: iterations of the loop for each rank; BEFORE: rounds before the speeds change; TIMED: number of timed
 * decisions; MOST: greatest number of rounds until the ranks are balanced */
enum { EACH = 1000, BEFORE = 10, TIMED = 100, MOST = 200000 };

static const double BALANCED = 1.05; /* ranks count as balanced if the time of the slowest rank, divided by
                                      * its time with balanced shares, is at most this */

typedef enum change { ONE_SLOW, RANDOM, HALF_SLOW } change;
static const char *const CHANGES[] = {"one_slow", "random", "half_slow"};

static double chance(uint64_t i) {
    return (double)(kl_mix64(i) >> 11) * 0x1p-53;
}

static double speed_after(change what, uint32_t r, uint32_t ranks) {
    switch (what) {
    case ONE_SLOW:
        return r == ranks / 3 ? 0.5 : 1;
    case RANDOM:
        return 0.5 + chance(r);
    case HALF_SLOW:
        break;
    }
    return r < ranks / 2 ? 0.5 : 1;
}

static void *allocate(size_t count, size_t bytes) {
    void *memory = calloc(count, bytes);
    if (!memory) {
        fprintf(stderr, "rounds: memory ran out\n");
        exit(1);
    }
    return memory;
}

/* --- first method: all ranks decide from the same reports --- */

typedef struct play {
    uint32_t ranks;
    kl_steer *steer;
    kl_rank_report *reports;
    double now_s;
    bool costs_differ;
} play;

static play open_play(uint32_t ranks, bool costs_differ) {
    play p = {.ranks = ranks,
              .reports = allocate(ranks, sizeof *p.reports),
              .costs_differ = costs_differ,
              .steer = kl_steer_new(&(kl_steer_options){.iterations = (uint64_t)ranks * EACH,
                                                        .ranks = ranks,
                                                        .least = 1,
                                                        .interact_s = 1e-4,
                                                        .quantum_s = 0.01,
                                                        .move = {1e-4, 1e-6}})};
    if (!p.steer) {
        fprintf(stderr, "rounds: memory ran out\n");
        exit(1);
    }
    return p;
}

static void close_play(play *p) {
    kl_steer_free(p->steer);
    free(p->reports);
}

/* Simulate one balancing period. An iteration takes 100 µs on a rank of speed 1. Return the slowest rank's
 * time, divided by the time of a rank with balanced shares. */
static double pass(play *p, const double *speed) {
    const uint64_t *bounds = kl_steer_shares(p->steer);
    double slowest_s = 0, sum = 0;
    for (uint32_t r = 0; r < p->ranks; r++) {
        double busy_s = 1e-4 * (double)(bounds[r + 1] - bounds[r]) / speed[r];
        p->reports[r] =
            (kl_rank_report){.executions = 1,
                             .busy_s = busy_s * (1 + 0.01 * (chance((uint64_t)(1e9 * p->now_s) + r) - 0.5)),
                             .iterations = bounds[r + 1] - bounds[r],
                             .lo = bounds[r],
                             .hi = bounds[r + 1],
                             .segments = p->costs_differ};
        for (int i = 0; i < KL_SEGMENTS && p->costs_differ; i++)
            p->reports[r].segments_s[i] =
                1e-4 * (1 + 0.01 * chance(r * KL_SEGMENTS + (uint64_t)i)) / speed[r];
        slowest_s = fmax(slowest_s, busy_s);
        sum += speed[r];
    }
    p->now_s += slowest_s;
    p->reports[0].elapsed_s = p->now_s;
    return slowest_s / (1e-4 * p->ranks * EACH / sum);
}

static void decide(play *p) {
    kl_steer_plan plan;
    if (kl_steer_round(p->steer, p->reports, &plan) != KILTER_OK) {
        fprintf(stderr, "rounds: memory ran out\n");
        exit(1);
    }
    if (plan.move)
        kl_steer_commit(p->steer);
}

/* Measure the mean CPU time of a decision, over many decisions while loads appear and disappear. */
static double decision_s(uint32_t ranks, bool costs_differ) {
    play p = open_play(ranks, costs_differ);
    kl_clock clock = kl_clock_system();
    double *speed = allocate(ranks, sizeof *speed), busy_s = 0;
    for (int round = 0; round < TIMED; round++) {
        for (uint32_t r = 0; r < ranks; r++)
            speed[r] = speed_after(round / 20 % 2 ? ONE_SLOW : RANDOM, r, ranks);
        pass(&p, speed);
        double began_s = kl_busy_s(&clock);
        decide(&p);
        busy_s += kl_busy_s(&clock) - began_s;
    }
    free(speed);
    close_play(&p);
    return busy_s / TIMED;
}

static int rounds_together(uint32_t ranks, change what) {
    play p = open_play(ranks, false);
    double *speed = allocate(ranks, sizeof *speed);
    int rounds = -BEFORE;
    for (;; rounds++) {
        for (uint32_t r = 0; r < ranks; r++)
            speed[r] = rounds < 0 ? 1 : speed_after(what, r, ranks);
        if ((pass(&p, speed) <= BALANCED && rounds >= 0) || rounds == MOST)
            break;
        decide(&p);
    }
    free(speed);
    close_play(&p);
    return rounds;
}

/* --- second method: neighbours exchange rows --- */

/* Count the rounds until neighbours are balanced. In each round, each pair of neighbours exchanges two
 * thirds of the rows that would balance the pair. Rows are divisible and speeds are known. */
static int rounds_of_neighbours(uint32_t ranks, change what) {
    double *work = allocate(ranks, sizeof *work), *speed = allocate(ranks, sizeof *speed),
           *over = allocate(ranks, sizeof *over), sum = 0;
    int rounds = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        work[r] = 1;
        speed[r] = speed_after(what, r, ranks);
        sum += speed[r];
    }
    for (uint32_t r = 0; r + 1 < ranks; r++)
        over[r] = 2.0 / 3 * speed[r] * speed[r + 1] / (speed[r] + speed[r + 1]);
    for (double slowest = HUGE_VAL; rounds < MOST; rounds++) {
        slowest = 0;
        for (uint32_t r = 0; r < ranks; r++)
            slowest = fmax(slowest, work[r] / speed[r]);
        if (slowest * sum / ranks <= BALANCED)
            break;
        double last = work[0] / speed[0];
        for (uint32_t r = 0; r + 1 < ranks; r++) {
            double next = work[r + 1] / speed[r + 1], flow = over[r] * (last - next);
            work[r] -= flow;
            work[r + 1] += flow;
            last = next;
        }
    }
    free(work);
    free(speed);
    free(over);
    return rounds;
}

int main(int argc, char **argv) {
    int ranks = argc == 2 ? atoi(argv[1]) : 0;
    if (ranks < 2 || ranks > 1 << 20) {
        fprintf(stderr, "usage: rounds RANKS (2 … %d)\n", 1 << 20);
        return 2;
    }
    printf("{\"ranks\":%d,\"report_bytes\":%zu,\"full_report_bytes\":%zu,\"decision_s\":%.4g,"
           "\"decision_with_costs_s\":%.4g,\"most\":%d",
           ranks, offsetof(kl_rank_report, segments_s), sizeof(kl_rank_report),
           decision_s((uint32_t)ranks, false), decision_s((uint32_t)ranks, true), MOST);
    for (change what = ONE_SLOW; what <= HALF_SLOW; what++)
        printf(",\"%s\":{\"together\":%d,\"neighbours\":%d}", CHANGES[what],
               rounds_together((uint32_t)ranks, what), rounds_of_neighbours((uint32_t)ranks, what));
    printf("}\n");
    return 0;
}
