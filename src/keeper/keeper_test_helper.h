/* Helpers for tests of the keeper: a simulated program runs under a fake clock, on hosts whose speeds change.
 */
#ifndef KL_KEEPER_TEST_HELPER_H
#define KL_KEEPER_TEST_HELPER_H

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "keeper/keeper.h"

enum { WORLD_HOSTS = 8, WORLD_RANKS = 64, WORLD_TEXTS = 400 };

typedef struct world_host {
    const char *name;
    uint32_t slots;
    double pace;  /* true speed of a rank on this host; 0: the host is dead */
    double looks; /* speed that a measurement of the host shows; 0: the true speed */
    bool leaving;
} world_host;

typedef struct world_program {
    bool runs, reports, saves, hangs, asked, killed;
    double begins_s;           /* time at which the ranks begin to compute */
    double first, done, saved; /* numbers of sweeps, with fractions; first: sweeps done when the attempt
                                  began; done: sweeps done so far; saved: sweeps in the newest checkpoint */
    double last_save_s;
    uint64_t attempt, answered;
    bool stopped;
    uint32_t ranks[WORLD_HOSTS];
} world_program;

typedef struct world {
    kl_keeper keeper;
    double now_s;
    world_host host[WORLD_HOSTS];
    size_t hosts;
    /* behaviour of the program */
    double sweeps; /* total number of sweeps of the run */
    double rows;   /* rows of a sweep; a rank on a host of pace 1 does one row per second */
    double launch_s, save_s, save_every_s;
    /* parts by which reported values differ by chance at most: rates_shake: rates of ranks, sweeps_shake:
     * times of sweeps */
    double rates_shake, sweeps_shake;
    double waits;    /* multiple of their time that sweeps take because ranks wait; 0: 1 */
    bool mute;       /* true: the program never reports */
    bool refuses;    /* true: the disk is full, so the program cannot save */
    double dies_at;  /* the program dies when it reaches this sweep; 0: never */
    uint32_t deaths; /* number of deaths at that sweep; UINT32_MAX: it dies every time */
    bool fail_code;  /* true: the program dies by an exit code; false: by a signal */
    world_program program;
    /* what the keeper has done */
    uint32_t starts, kills, asks, moves, restarts, gave_up;
    bool over;
    kl_keeper_action end;
    kl_keeper_action last_move;
    char last_text[KL_KEEPER_TEXT_BYTES];
    double came_s, spent_s;
    bool looks, looks_at_others;
} world;

static double world_speed(const world *w) {
    double speed = 0;
    for (size_t i = 0; i < w->hosts; i++) {
        if (w->program.ranks[i] > 0 && w->host[i].pace == 0)
            return 0;
        speed += w->program.ranks[i] * w->host[i].pace;
    }
    return speed;
}

static double world_sweep_s(const world *w) {
    return w->rows / world_speed(w) * (w->waits > 0 ? w->waits : 1);
}

static bool world_lost_a_host(const world *w) {
    for (size_t i = 0; i < w->hosts; i++)
        if (w->program.ranks[i] > 0 && w->host[i].pace == 0)
            return true;
    return false;
}

static void world_tell(world *w, const kl_keeper_event *event);

static double world_shown_pace(const world_host *h) {
    return h->pace > 0 && h->looks > 0 ? h->looks : h->pace;
}

static void world_look(world *w) {
    kl_keeper_view views[WORLD_HOSTS];
    size_t count = 0;
    for (size_t i = 0; i < w->hosts; i++)
        if (!w->looks_at_others || w->program.ranks[i] == 0 || w->host[i].leaving)
            views[count++] = (kl_keeper_view){.name = w->host[i].name,
                                              .slots = w->host[i].slots,
                                              .qos = world_shown_pace(&w->host[i]),
                                              .pace = world_shown_pace(&w->host[i]),
                                              .leaving = w->host[i].leaving,
                                              .why = ""};
    w->looks = false;
    world_tell(w, &(kl_keeper_event){.kind = KL_KEEPER_HOSTS, .views = views, .count = count});
}

static void world_start(world *w, const kl_keeper_action *a) {
    world_program *p = &w->program;
    double saved = p->saved;
    *p = (world_program){.runs = true,
                         .attempt = a->attempt,
                         .begins_s = w->now_s + w->launch_s,
                         .first = saved,
                         .done = saved,
                         .saved = saved};
    for (size_t i = 0; i < w->keeper.count; i++)
        for (size_t j = 0; j < w->hosts; j++)
            if (strcmp(w->keeper.hosts[i].name, w->host[j].name) == 0)
                p->ranks[j] = w->keeper.hosts[i].ranks;
    w->starts++;
}

static void world_carry_out(world *w) {
    kl_keeper_action a;
    while (kl_keeper_take(&w->keeper, &a)) {
        switch (a.act) {
        case KL_KEEPER_LOOK:
            w->looks = true;
            w->looks_at_others = a.others;
            break;
        case KL_KEEPER_START:
            world_start(w, &a);
            break;
        case KL_KEEPER_ASK:
            w->asks++;
            w->program.asked = true;
            w->program.answered = a.number;
            break;
        case KL_KEEPER_KILL:
            w->kills++;
            w->program.killed = true;
            break;
        case KL_KEEPER_DECIDED:
            snprintf(w->last_text, sizeof w->last_text, "%s", a.text);
            w->moves += a.decision.kind == KL_DECIDES_RELOCATE;
            w->restarts += a.decision.kind == KL_DECIDES_RESTART;
            w->gave_up += a.decision.kind == KL_DECIDES_GIVE_UP;
            if (a.decision.kind == KL_DECIDES_RELOCATE)
                w->last_move = a;
            break;
        case KL_KEEPER_CAME:
            w->came_s = a.came_s;
            w->spent_s = a.spent_s;
            break;
        case KL_KEEPER_OVER:
            w->over = true;
            w->end = a;
            break;
        }
    }
}

static void world_tell(world *w, const kl_keeper_event *event) {
    kl_keeper_step(&w->keeper, event, w->now_s);
    world_carry_out(w);
}

/* Return a factor that differs by chance from 1 for 3 s, and is another one in the next 3 s. */
static double world_shake(const world *w, double most, uint32_t rank) {
    uint64_t mixed = kl_mix64((uint64_t)(w->now_s / 3) * WORLD_RANKS + rank);
    return 1 + most * (2 * (double)(mixed >> 40) / (1 << 24) - 1);
}

static void world_report(world *w, bool stopped, bool done) {
    static const char *names[WORLD_RANKS];
    double rates[WORLD_RANKS] = {0}, speed = world_speed(w);
    uint32_t ranks = 0;
    for (size_t i = 0; i < w->hosts; i++)
        for (uint32_t r = 0; r < w->program.ranks[i] && ranks < WORLD_RANKS; r++) {
            names[ranks] = w->host[i].name;
            rates[ranks] = w->host[i].pace * world_shake(w, w->rates_shake, ranks);
            ranks++;
        }
    const double sweep_s =
        speed > 0 ? world_sweep_s(w) * world_shake(w, w->sweeps_shake, WORLD_RANKS - 1) : 0;
    const kl_keeper_report report = {.attempt = w->program.attempt,
                                     .ranks = ranks,
                                     .hosts = names,
                                     .rates = w->program.done > w->program.first + 1 ? rates : NULL,
                                     .sweeps = (uint64_t)w->program.done,
                                     .expected = (uint64_t)w->sweeps,
                                     .saved = (uint64_t)w->program.saved,
                                     .sweep_s = sweep_s,
                                     .longest_s = sweep_s,
                                     .write_s = w->save_s,
                                     .answered = stopped || w->refuses ? w->program.answered : 0,
                                     .error = w->refuses ? "the disk is full" : "",
                                     .stopped = stopped,
                                     .done = done};
    w->program.reports = true;
    world_tell(w, &(kl_keeper_event){.kind = KL_KEEPER_REPORT, .report = &report});
}

static void world_end(world *w, kl_keeper_how how, uint32_t code) {
    w->program.runs = false;
    for (size_t i = 0; i < WORLD_HOSTS; i++)
        w->program.ranks[i] = 0;
    world_tell(w, &(kl_keeper_event){.kind = KL_KEEPER_ENDED, .end = {w->program.attempt, how, code}});
}

static void world_save(world *w) {
    world_program *p = &w->program;
    if (w->save_every_s > 0)
        p->saved = (double)(uint64_t)p->done;
    p->last_save_s = w->now_s;
}

/* Let the program run for dt_s. */
static void world_run(world *w, double dt_s) {
    world_program *p = &w->program;
    if (p->killed) {
        world_end(w, KL_KEEPER_SIGNALLED, 9);
        return;
    }
    if (world_lost_a_host(w)) {
        world_end(w, KL_KEEPER_EXITED, 255);
        return;
    }
    if (w->now_s < p->begins_s || p->hangs)
        return;
    if (p->last_save_s == 0)
        p->last_save_s = w->now_s;
    p->done += dt_s / world_sweep_s(w);
    if (w->deaths > 0 && w->dies_at > 0 && p->done >= w->dies_at) {
        w->deaths -= w->deaths != UINT32_MAX;
        world_end(w, w->fail_code ? KL_KEEPER_EXITED : KL_KEEPER_SIGNALLED, 9);
    } else if (p->done >= w->sweeps) {
        if (!w->mute)
            world_report(w, false, true);
        world_end(w, KL_KEEPER_EXITED, 0);
    } else if (p->asked && !w->mute && !w->refuses) {
        world_save(w);
        world_report(w, true, false);
        world_end(w, KL_KEEPER_EXITED, 1);
    } else {
        if (w->save_every_s > 0 && w->now_s - p->last_save_s >= w->save_every_s)
            world_save(w);
        if (!w->mute)
            world_report(w, false, false);
    }
}

static void world_pass(world *w, double dt_s) {
    w->now_s += dt_s;
    if (w->looks)
        world_look(w);
    if (w->program.runs)
        world_run(w, dt_s);
    world_tell(w, &(kl_keeper_event){.kind = KL_KEEPER_TIME});
}

/* Let time pass until the keeper has ended, until a condition holds, or until most_s are over. Return false
 * in the last case. */
static bool world_until(world *w, bool (*holds)(const world *w), double most_s) {
    static const double STEP_S = 0.1;
    double until_s = w->now_s + most_s;
    while (!w->over && w->now_s < until_s && !(holds && holds(w)))
        world_pass(w, STEP_S);
    return w->over || (holds && holds(w));
}

/* Make a world with four hosts of pace 1 and two slots each, and a run with four ranks and 200 sweeps of 0.25
 * s. */
static inline void world_init(world *w, const kl_keeper_options *options) {
    static const char *const NAMES[] = {"a", "b", "c", "d"};
    const kl_keeper_options plain = {
        .ranks = 4, .least = 1, .tries = 3, .hang_s = 10, .wait_s = 60, .look_s = 5};
    *w = (world){.hosts = 4,
                 .now_s = 1000,
                 .sweeps = 200,
                 .rows = 1,
                 .launch_s = 0.5,
                 .save_s = 0.1,
                 .save_every_s = 2};
    for (size_t i = 0; i < w->hosts; i++)
        w->host[i] = (world_host){.name = NAMES[i], .slots = 2, .pace = 1};
    kl_keeper_init(&w->keeper, options ? options : &plain);
}

static inline bool world_is_running(const world *w) {
    return w->keeper.state == KL_KEEPER_RUNNING;
}

static inline bool world_has_saved(const world *w) {
    return w->program.runs && w->program.saved > w->keeper.tally.saved_then;
}

#endif
