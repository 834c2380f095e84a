/* Choose who organises a run: the master, or the workers among themselves. */
#include <math.h>
#include <stdio.h>

#include "decide/decide.h"

/* Messages of a peer in a whole run, at most. Peers must gain this part of the time, because a run that is
 * organised as before has known costs. */
static const double PEER_MESSAGES = 130, GAIN_LEAST = 0.05;
/* A master that is busy for a smaller part of the run does not hold up its workers. */
static const double USE_LEAST = 0.5;
/* Seconds that a peer spends on a task beside doing it. */
static const double PEER_TASK_S = 2e-6;

/* Return the seconds that a master would be busy with the run's messages. */
static double busy_s(const kl_organise_look *k) {
    const kl_iteration *last = k->last;
    double message_s = last->answer_s > 0 ? last->answer_s : last->model.message.fixed_s;
    double scale = last->tasks > 0 ? (double)k->tasks / (double)last->tasks : 0;
    return scale * ((double)last->chunks * message_s + last->model.bytes * last->model.message.per_unit_s);
}

/* Return the time of the run if the master deals chunks: the workers' time, or the master's if it is more. */
static double master_s(const kl_organise_look *k, double work_s) {
    const kl_iteration *last = k->last;
    double ideal_s = last->model.work_s / fmax(1, last->workers);
    double lost_s = fmax(0, last->elapsed_s - ideal_s); /* what the last run lost, however it did */
    double scale = last->tasks > 0 ? fmin(1, (double)k->tasks / (double)last->tasks) : 1;
    return fmax(work_s + scale * lost_s, busy_s(k));
}

static double peers_s(const kl_organise_look *k, double work_s, double task_s) {
    work_s += PEER_TASK_S * (double)k->tasks / fmax(1, k->workers);
    return work_s + 2 * PEER_MESSAGES * k->last->model.message.fixed_s + task_s;
}

static kl_decision answer(uint64_t count, double forecast_s, double gain_s) {
    return (kl_decision){.kind = KL_DECIDES_ORGANISE,
                         .subject = KL_SUBJECT_ALL,
                         .count = count,
                         .forecast_s = forecast_s,
                         .gain_s = gain_s};
}

/* Decide by the model. */
static kl_decision by_model(const kl_organise_look *k) {
    double work_s = k->task_s * (double)k->tasks / fmax(1, k->workers);
    double by_master_s = master_s(k, work_s), by_peers_s = peers_s(k, work_s, k->task_s);
    bool missed = k->peers_s > 0 && k->peers_s > by_master_s;
    double use = by_master_s > 0 ? busy_s(k) / by_master_s : 0;
    bool peers = !missed && use >= USE_LEAST && by_peers_s < (1 - GAIN_LEAST) * by_master_s && k->workers > 1;
    kl_decision d = answer(peers ? k->workers : 0, peers ? by_peers_s : by_master_s,
                           peers ? by_master_s - by_peers_s : fmax(0, by_peers_s - by_master_s));
    uint32_t fed = kl_model_capability(&k->last->model);
    char capability[24] = "all";
    if (fed < k->workers)
        snprintf(capability, sizeof capability, "%u", fed);
    char text[400];
    snprintf(
        text, sizeof text,
        "by %s: a master feeds %s of %u workers and is busy %.0f %% of the time; about %s with it, %s with "
        "peers%s",
        peers ? "the workers" : "the master", capability, k->workers, 100 * fmin(1, use),
        kl_say_s(by_master_s).text, kl_say_s(by_peers_s).text, missed ? ", which took longer before" : "");
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
