/* Choose whether the master or the workers themselves organise a run. */
#include <math.h>
#include <stdio.h>

#include "decide/decide.h"

/* PEER_MESSAGES: greatest number of messages that a peer sends in a run. GAIN_LEAST: a run by peers must
 * save at least this part of the time, because the costs of a change are not known. */
static const double PEER_MESSAGES = 130, GAIN_LEAST = 0.05;
/* If peers would relieve the master of less than this part of the run's time, the master hardly delays the
 * workers. The limit is far below 1, because a master is busiest near the end of a run, where chunks are
 * smallest. */
static const double USE_LEAST = 0.2;
/* A run by peers is tried when the time that runs with a master have lost adds up to TRIAL_PART of a run's
 * time; with another number of peers than in earlier trials, when it adds up to OTHER_TIMES times as much.
 * The last of these runs must have lost LOST_LEAST of its own time. Peers that were slower are tried again
 * when runs with a master have lost AGAIN_TIMES times what a trial costs. A run shorter than TRIAL_LEAST_S is
 * not used for a trial, because peers would spend much of it on connecting to each other. */
static const double TRIAL_PART = 0.05, OTHER_TIMES = 16, LOST_LEAST = 0.01, AGAIN_TIMES = 64,
                    TRIAL_LEAST_S = 0.1;
/* As long as a master has organised only the farm's first run, peers must be clearly faster to be chosen. A
 * run by peers must take less than this part of the first run's time. A farm's first run is slower than its
 * later runs, because nothing is measured before the first run. */
static const double FIRST_PART = 0.8;
/* A mean of times counts about this number of runs. The times of single runs differ by some per cent, and
 * hosts may change their speed for good. */
static const uint64_t MEAN_RUNS = 8;
/* The first runs with large messages are slow, because memory is new. If one of the first WARM_RUNS runs
 * takes less than WARM_PART of the mean, it replaces all runs before it. */
static const uint64_t WARM_RUNS = 4;
static const double WARM_PART = 0.8;
/* PEER_TASK_S: seconds that a peer needs for organising one task, in addition to the time of the task itself.
 * PEER_BYTE_S: CPU seconds that peers need for each byte of a result. Peers copy results several times, so
 * that few results are lost if a peer dies. A byte of results of 4 and 10 kB cost 6 to 30 ns, and a byte of
 * larger results more. */
static const double PEER_TASK_S = 2e-6, PEER_BYTE_S = 20e-9;
/* Peers are not tried if their forecast is more than this multiple of the forecast with a master. This does
 * not apply if peers were last measured with the present number of workers. */
static const double TRIAL_WORST = 1.25;

/* Return the seconds that a master would be busy with the run's messages, at most the length of the run. */
static double busy_s(const kl_organise_look *k) {
    const kl_iteration *last = k->last;
    double message_s = last->answer_s > 0 ? last->answer_s : last->model.message.fixed_s;
    double scale = last->tasks > 0 ? (double)k->tasks / (double)last->tasks : 0;
    double last_s = (double)last->chunks * message_s + last->model.bytes * last->model.message.per_unit_s;
    return scale * fmin(last_s, last->elapsed_s);
}

/* Return the part of the master's busy time that runs with peers need as well. In this part, the master sends
 * the bytes of all inputs and receives the bytes of all results. */
static double carrying_s(const kl_organise_look *k) {
    return busy_s(k) * (1 - kl_message_fixed_part(k->last->model.bytes, 2 * (double)k->last->chunks));
}

double kl_organise_mean(uint64_t runs, double before, double latest) {
    return before + (latest - before) / (double)(runs < MEAN_RUNS ? runs + 1 : MEAN_RUNS);
}

double kl_organise_mean_of_master(uint64_t runs, double before, double latest) {
    bool learnt = runs < WARM_RUNS && latest < (runs == 1 ? 1 : WARM_PART) * before;
    return kl_organise_mean(learnt ? 0 : runs, before, latest);
}

/* Return the seconds of a run that were lost because of the master. Time that workers lose by sharing cores
 * with each other, callbacks or links is not included, because peers would lose it, too. */
double kl_organise_lost_s(const kl_iteration *run) {
    kl_load load = run->load;
    load.even = true; /* with peers, no busy thread of a master slows the workers of its core */
    kl_limit limit = kl_model_limit(&load, run->workers);
    bool shared = limit.known && limit.what != KL_SHARED_NOTHING && limit.what != KL_SHARED_MESSAGES;
    return fmax(0, run->elapsed_s - (shared ? limit.times : 1) * run->model.work_s / fmax(1, run->workers));
}

/* Return the seconds of the run if the master deals chunks. This is the sum of the workers' time and the time
 * that they lose. If the master is busy for longer, it is the master's busy time. */
static double master_s(const kl_organise_look *k, double work_s) {
    const kl_iteration *last = k->last;
    double scale = last->tasks > 0 ? fmin(1, (double)k->tasks / (double)last->tasks) : 1;
    return fmax(work_s + scale * kl_organise_lost_s(last), busy_s(k));
}

/* Return the number of cores that peers compute on. If some workers are on the master's host, all are assumed
 * to share its cores. Otherwise each has a core of its own. */
static double cores_of_peers(const kl_organise_look *k) {
    const kl_use *use = &k->last->load.use;
    return fmax(1, use->local_tasks > 0 ? fmin(k->workers, use->cores) : k->workers);
}

static double peers_s(const kl_organise_look *k, double work_s, double task_s) {
    work_s = fmax(carrying_s(k), work_s + PEER_TASK_S * (double)k->tasks / fmax(1, k->workers));
    work_s += PEER_BYTE_S * k->result_bytes / cores_of_peers(k);
    return work_s + 2 * PEER_MESSAGES * k->last->model.message.fixed_s + task_s;
}

static kl_decision answer(uint64_t count, double forecast_s, double gain_s) {
    return (kl_decision){.kind = KL_DECIDES_ORGANISE,
                         .subject = KL_SUBJECT_ALL,
                         .count = count,
                         .forecast_s = forecast_s,
                         .gain_s = gain_s};
}

/* --- choosing master or peers --- */

typedef struct choice {
    double master_s, peers_s; /* forecasts of the run's time with a master and with peers */
    double use;               /* the part of the run's time for which a master is busy */
    bool peers;
    const char *why; /* why the choice does not follow from the forecasts; NULL: it does */
} choice;

/* Return whether runs with a master have lost enough time to pay for a trial run by peers. */
static bool may_try(const kl_organise_look *k, const choice *c) {
    if (k->on_trial || (k->by_peers_s > 0 && c->peers_s <= c->master_s))
        return false;
    if (!(k->by_peers_s > 0) && c->peers_s > TRIAL_WORST * c->master_s)
        return false;
    double cost_s = k->by_peers_s > 0 ? AGAIN_TIMES * (c->peers_s - c->master_s)
                                      : (k->tried ? OTHER_TIMES : 1) * TRIAL_PART * c->master_s;
    return c->master_s >= TRIAL_LEAST_S && k->lost_s >= cost_s && k->workers == k->last->workers &&
           kl_organise_lost_s(k->last) > LOST_LEAST * k->last->elapsed_s;
}

/* Choose by the measured times of runs with a master and with peers. Compare mean times, because hosts slow
 * down at times, and a single time may then be wrong by some per cent or more. */
static void by_measurement(const kl_organise_look *k, choice *c) {
    c->master_s = k->by_master_s;
    c->peers_s = k->by_peers_s;
    c->peers = c->peers_s < (k->master_runs < 2 ? FIRST_PART : 1) * c->master_s;
    c->why = c->peers                   ? "both times were measured"
             : c->peers_s < c->master_s ? "the first run with a master is not compared"
                                        : "peers took longer in earlier runs";
}

static void by_forecast(const kl_organise_look *k, choice *c) {
    double work_s = k->task_s * (double)k->tasks / fmax(1, k->workers);
    c->master_s = master_s(k, work_s);
    c->peers_s = peers_s(k, work_s, k->task_s);
    c->use = c->master_s > 0 ? busy_s(k) / c->master_s : 0;
    double saved = c->master_s > 0 ? (busy_s(k) - carrying_s(k)) / c->master_s : 0;
    c->peers = saved >= USE_LEAST && c->peers_s < (1 - GAIN_LEAST) * c->master_s;
    if (k->by_peers_s > 0)
        by_measurement(k, c);
}

/* Return whether the best number of workers with a master has a smaller index n·T² than peers. The farm
 * looks for that number first, because only runs with a master show it. */
static bool fewer_are_better(const kl_organise_look *k, const choice *c) {
    return k->best_index > 0 && k->workers * c->peers_s * c->peers_s >= k->best_index;
}

/* Choose the master or peers by their measured or forecast times. */
static kl_decision by_model(const kl_organise_look *k) {
    choice c = {0};
    by_forecast(k, &c);
    if (!c.peers && may_try(k, &c)) {
        c.peers = true;
        c.why = "this run measures peers";
    }
    c.peers &= k->workers > 1;
    if (c.peers && fewer_are_better(k, &c)) {
        c.peers = false;
        c.why = "another number of workers may be better";
    }
    kl_decision d = answer(c.peers ? k->workers : 0, c.peers ? c.peers_s : c.master_s,
                           fmax(0, c.peers ? c.master_s - c.peers_s : c.peers_s - c.master_s));
    uint32_t fed = kl_model_capability(&k->last->model);
    char capability[24] = "all";
    if (fed < k->workers)
        snprintf(capability, sizeof capability, "%u", fed);
    char text[400];
    snprintf(
        text, sizeof text,
        "by %s: a master can keep %s of %u workers busy and works %.0f %% of the time; about %s with it, "
        "%s with peers%s%s",
        c.peers ? "the workers" : "the master", capability, k->workers, 100 * fmin(1, c.use),
        kl_say_s(c.master_s).text, kl_say_s(c.peers_s).text, c.why ? "; " : "", c.why ? c.why : "");
    snprintf(d.reason, sizeof d.reason, "%.*s", (int)sizeof d.reason - 1, text);
    return d;
}

kl_decision kl_organise_choose(const kl_organise_look *k) {
    bool peers = k->wanted == KL_ORGANISE_PEERS;
    bool measured = k->last && k->task_s > 0 && k->workers > 0;
    if (k->wanted == KL_ORGANISE_AUTO && !k->never && measured)
        return by_model(k);
    kl_decision d = answer(peers ? k->workers : 0, 0, 0);
    double work_s = k->task_s * (double)k->tasks / fmax(1, k->workers);
    if (measured)
        d.forecast_s = peers ? peers_s(k, work_s, k->task_s) : master_s(k, work_s);
    snprintf(d.reason, sizeof d.reason, "by %s: %s", peers ? "the workers" : "the master",
             k->wanted != KL_ORGANISE_AUTO ? "set by hand"
             : k->never                    ? k->never
                                           : "nothing is measured before the first run");
    return d;
}
