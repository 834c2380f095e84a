/* kept SWEEPS SWEEP_S LAUNCH_S SAVE_S: print how much time a run under `kilter run --keep` loses to other
 * programs, in virtual time. The keeper, which moves and restarts the run, is Kilter's own code; hosts and
 * program are simulated. The output has a JSON object for each level of load and each way to react to the
 * load. If hosts are picked at random, the numbers are means over seeds.
 *
 * Four hosts have two cores each, and the run has four ranks. SWEEP_S is the time of a sweep on two idle
 * hosts. After a quarter of the sweeps, other programs arrive on the first two hosts in use: LEVEL processes
 * on each core of the first host, and half as many on the second. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fitness/fitness.h"
#include "keeper/keeper.h"

enum { HOSTS = 4, SLOTS = 2, RANKS = 4, LEVELS = 12, SEEDS = 20, LAG = 3 };

static const double PROBE_S = 0.25, TICK_S = 0.05, DAY_S = 86400, REPORT_S = 0.1;

typedef struct way {           /* a way in which a kept run reacts to load */
    const char *name, *picker; /* name of the method that picks hosts; NULL: the default method */
    bool balances, moves;
} way;

static const way WAYS[] = {
    {"static", NULL, false, false},   {"rebalance", NULL, true, false},
    {"move", NULL, false, true},      {"default", NULL, true, true},
    {"best", "best", true, true},     {"round-robin", "round-robin", true, true},
    {"random", "random", true, true}, {"best-few", "best-few", true, true},
};

typedef struct costs {
    double sweeps, sweep_s, launch_s, save_s;
} costs;

typedef struct world {
    const way *way;
    const costs *costs;
    int level;
    kl_keeper keeper;
    double now_s, look_s, begins_s, saved_s,
        /* look_s: time when the keeper's measurement of the hosts ends; 0: no measurement is running */
        reported_s;
    int load[HOSTS]; /* processes of other programs on each core of the host */
    bool runs, asked, others, over, intruded;
    uint64_t attempt, number;
    /* done: number of sweeps done; saved: number of sweeps done at the last save */
    double done, saved;
    uint32_t place[RANKS];       /* number of the host on which each rank runs */
    double part[LAG + 1][RANKS]; /* part[i][rank]: fraction of the rows that the rank has i sweeps from now */
    uint32_t moves;
    uint64_t seed;
    uint32_t turn;
} world;

static double rate_of(const world *w, uint32_t host) {
    return 1.0 / (1 + w->load[host]);
}

/* --- hosts --- */

static void look(world *w) {
    static const char *const NAMES[HOSTS] = {"node1", "node2", "node3", "node4"};
    kl_keeper_view views[HOSTS];
    size_t count = 0;
    for (uint32_t h = 0; h < HOSTS; h++) {
        bool used = false;
        for (int r = 0; r < RANKS && w->runs; r++)
            used |= w->place[r] == h;
        if (!w->others || !used)
            views[count++] = (kl_keeper_view){
                .name = NAMES[h], .slots = SLOTS, .qos = rate_of(w, h), .pace = rate_of(w, h), .why = ""};
    }
    w->look_s = 0;
    kl_keeper_step(&w->keeper, &(kl_keeper_event){.kind = KL_KEEPER_HOSTS, .views = views, .count = count},
                   w->now_s);
}

static void order(void *self, const kl_keeper_host *hosts, size_t count, uint32_t *out) {
    const world *w = self;
    kl_candidate candidates[HOSTS];
    uint32_t slots[HOSTS];
    for (size_t i = 0; i < count; i++) {
        candidates[i] = (kl_candidate){.qos = hosts[i].qos > 0 ? hosts[i].share : 0};
        slots[i] = hosts[i].slots;
    }
    const kl_pick_ask ask = {
        .candidates = candidates, .count = (uint32_t)count, .seed = w->seed, .start = w->turn % HOSTS};
    kl_pick_order(kl_picker_find(w->way->picker), &ask, slots, RANKS, out);
}

/* --- the simulated program --- */

/* Divide the rows in proportion to the hosts' speeds. The program uses the new division after LAG sweeps. */
static void balance(world *w) {
    double sum = 0;
    memmove(w->part[0], w->part[1], sizeof w->part - sizeof w->part[0]);
    for (int r = 0; r < RANKS; r++)
        sum += rate_of(w, w->place[r]);
    for (int r = 0; r < RANKS && w->way->balances; r++)
        w->part[LAG][r] = rate_of(w, w->place[r]) / sum;
}

static double sweep_s(const world *w) {
    double longest = 0;
    for (int r = 0; r < RANKS; r++)
        longest = fmax(longest, w->part[0][r] * RANKS / rate_of(w, w->place[r]));
    return w->costs->sweep_s * longest;
}

static void start(world *w, const kl_keeper_action *a) {
    int rank = 0;
    for (uint64_t i = 0; i < w->keeper.count; i++)
        for (uint32_t r = 0; r < w->keeper.hosts[i].ranks && rank < RANKS; r++)
            w->place[rank++] = (uint32_t)i;
    for (int i = 0; i <= LAG; i++)
        for (int r = 0; r < RANKS; r++)
            w->part[i][r] = 1.0 / RANKS;
    w->runs = true;
    w->asked = false;
    w->attempt = a->attempt;
    w->begins_s = w->saved_s = w->now_s + w->costs->launch_s;
    w->done = w->saved;
    w->seed = kl_mix64(w->seed);
    for (uint64_t i = 0; i < w->keeper.count; i++)
        w->turn += w->keeper.hosts[i].ranks > 0;
}

static void carry_out(world *w) {
    kl_keeper_action a;
    while (kl_keeper_take(&w->keeper, &a)) {
        if (a.act == KL_KEEPER_LOOK)
            w->look_s = w->now_s + PROBE_S, w->others = a.others;
        else if (a.act == KL_KEEPER_START)
            start(w, &a);
        else if (a.act == KL_KEEPER_ASK)
            w->asked = true, w->number = a.number;
        else if (a.act == KL_KEEPER_DECIDED && a.decision.kind == KL_DECIDES_RELOCATE)
            w->moves++;
        else if (a.act == KL_KEEPER_OVER)
            w->over = true;
        if (a.act == KL_KEEPER_DECIDED && getenv("KEPT_SAYS"))
            fprintf(stderr, "%s level %d, %.2f s: %s\n", w->way->name, w->level, w->now_s, a.text);
    }
}

static void report(world *w, bool stopped, bool done) {
    double rates[RANKS];
    for (int r = 0; r < RANKS; r++)
        rates[r] = rate_of(w, w->place[r]);
    const kl_keeper_report r = {.attempt = w->attempt,
                                .ranks = RANKS,
                                .rates = w->done > w->saved ? rates : NULL,
                                .sweeps = (uint64_t)w->done,
                                .expected = (uint64_t)w->costs->sweeps,
                                .saved = (uint64_t)w->saved,
                                .sweep_s = sweep_s(w),
                                .longest_s = sweep_s(w),
                                .write_s = w->costs->save_s,
                                .answered = stopped ? w->number : 0,
                                .stopped = stopped,
                                .done = done};
    w->reported_s = w->now_s;
    kl_keeper_step(&w->keeper, &(kl_keeper_event){.kind = KL_KEEPER_REPORT, .report = &r}, w->now_s);
}

static void end(world *w, uint32_t code) {
    w->runs = false;
    kl_keeper_step(&w->keeper,
                   &(kl_keeper_event){.kind = KL_KEEPER_ENDED, .end = {w->attempt, KL_KEEPER_EXITED, code}},
                   w->now_s);
}

static void intrude(world *w) {
    w->intruded = true;
    for (uint32_t h = 0, nth = 0; h < HOSTS; h++) {
        bool used = false;
        for (int r = 0; r < RANKS; r++)
            used |= w->place[r] == h;
        if (used)
            w->load[h] = nth++ == 0 ? w->level : w->level / 2;
    }
}

static void save(world *w) {
    w->saved = w->done;
    w->saved_s = w->now_s;
}

/* Simulate one sweep and what the program does before the next one: save, report, or end. */
static void sweep(world *w) {
    w->now_s += sweep_s(w);
    w->done++;
    balance(w);
    if (!w->intruded && w->done >= w->costs->sweeps / 4)
        intrude(w);
    if (w->done >= w->costs->sweeps) {
        report(w, false, true);
        end(w, 0);
    } else if (w->asked) {
        w->now_s += w->costs->save_s;
        save(w);
        report(w, true, false);
        end(w, 1);
    } else if (w->now_s - w->saved_s > sqrt(2 * w->costs->save_s * DAY_S)) {
        w->now_s += w->costs->save_s;
        save(w);
    }
    if (w->runs && w->now_s - w->reported_s >= REPORT_S)
        report(w, false, false);
}

/* --- a run --- */

/* Simulate until the next sweep has ended, or for TICK_S if no program runs. */
static void pass(world *w) {
    if (w->look_s > 0 && w->now_s >= w->look_s)
        look(w);
    else if (w->runs && w->now_s < w->begins_s)
        w->now_s = fmin(w->begins_s, w->now_s + TICK_S);
    else if (w->runs)
        sweep(w);
    else
        w->now_s += TICK_S;
    kl_keeper_step(&w->keeper, &(kl_keeper_event){.kind = KL_KEEPER_TIME}, w->now_s);
    carry_out(w);
}

/* Simulate a whole run. Return its seconds since the beginning of the first sweep. */
static double run(const way *one, const costs *c, int level, uint64_t seed, uint32_t *moves) {
    world w = {.way = one, .costs = c, .level = level, .now_s = 1, .seed = seed};
    const kl_keeper_options options = {.ranks = RANKS,
                                       .least = RANKS,
                                       .tries = 3,
                                       .hang_s = 10,
                                       .wait_s = 600,
                                       .look_s = 60,
                                       .fixed = !one->moves,
                                       .order = one->picker ? order : NULL,
                                       .self = &w};
    double began_s = 0;
    kl_keeper_init(&w.keeper, &options);
    while (!w.over) {
        pass(&w);
        if (began_s == 0 && w.runs)
            began_s = w.begins_s;
    }
    *moves += w.moves;
    kl_keeper_free(&w.keeper);
    return w.now_s - began_s;
}

static void print(const way *one, const costs *c, int level) {
    costs free_of_saves = *c;
    if (!one->moves)
        free_of_saves.save_s = 0; /* if the keeper may not move the run, the program never needs to save */
    int seeds = one->picker ? SEEDS : 1;
    double sum_s = 0, worst_s = 0;
    uint32_t moves = 0;
    for (int seed = 1; seed <= seeds; seed++) {
        double s = run(one, one->moves ? c : &free_of_saves, level, (uint64_t)seed, &moves);
        sum_s += s;
        worst_s = fmax(worst_s, s);
    }
    printf(
        "{\"level\":%d,\"way\":\"%s\",\"elapsed_s\":%.6g,\"worst_s\":%.6g,\"bound_s\":%.6g,\"moves\":%.6g}\n",
        level, one->name, sum_s / seeds, worst_s, c->sweeps * c->sweep_s, (double)moves / seeds);
}

int main(int argc, char **argv) {
    costs c = {.sweeps = 0};
    double *numbers[] = {&c.sweeps, &c.sweep_s, &c.launch_s, &c.save_s};
    for (int i = 0; i < 4 && i + 1 < argc; i++)
        *numbers[i] = strtod(argv[i + 1], NULL);
    if (argc != 5 || !(c.sweeps >= 4 && c.sweep_s > 0 && c.launch_s >= 0 && c.save_s >= 0)) {
        fprintf(stderr, "usage: kept SWEEPS SWEEP_S LAUNCH_S SAVE_S\n");
        return 2;
    }
    for (int level = 0; level <= LEVELS; level++)
        for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
            print(&WAYS[i], &c, level);
    return 0;
}
