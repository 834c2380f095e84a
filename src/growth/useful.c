/* Decide whether another job is useful to the farm, and when a job is no longer useful. */
#include <math.h>
#include <stdio.h>

#include "growth/growth_private.h"

/* least seconds that a new job must work to be useful; it must also work for at least as long as its
 * start takes */
static const double USE_LEAST_S = 1;
static const double IDLE_LEAST_S = 10, IDLE_MOST_S = 600;
static const double START_LEAST_S = 60; /* least time in seconds that the first worker of a job has to join */
static const double MARGIN_LEAST_S = 30;

/* Return the number of workers that are expected from jobs whose workers have not joined yet. */
static double coming(const kl_growth *g) {
    uint64_t jobs = 0;
    for (uint64_t i = 0; i < g->job_count; i++)
        jobs += g->jobs[i].stage < KL_GROWTH_LEAVING && !g->jobs[i].joined;
    return (double)jobs * fmax(g->job_workers, 1);
}

static double left_s(const kl_growth_farm *f) {
    return f->left_s > 0 ? f->left_s + f->again_s : 0;
}

/* Decide whether another job is useful. The present workers need left_s for the remaining tasks of the run.
 * The workers of a new job would take over a part of these tasks as soon as they start. */
bool kl_growth_is_useful(const kl_growth *g, const kl_growth_farm *f, kl_decision *d) {
    double come = coming(g), own = fmax(g->job_workers, 1), until_s = g->wait_s + g->start_s;
    double use_s = fmax(g->start_s, USE_LEAST_S), rest_s = left_s(f);
    if (!f->known || !f->running || f->resting > 0 || (double)f->left <= f->workers + come)
        return false;
    d->cost_s = until_s;
    if (rest_s <= 0 || f->workers == 0) {
        snprintf(d->reason, sizeof d->reason, "%llu tasks are left for %u workers", kl_ull(f->left),
                 f->workers);
        return true;
    }
    double shared_s = fmax(rest_s - until_s, 0) * f->workers / (f->workers + come);
    d->gain_s = shared_s * own / (f->workers + come + own);
    snprintf(d->reason, sizeof d->reason, "%llu tasks are left, which take %s, and a new %s works after %s",
             kl_ull(f->left), kl_say_s(rest_s).text, g->options.hosts ? "host" : "job",
             kl_say_s(until_s).text);
    return shared_s > use_s;
}

/* Return why a waiting job is useless; NULL: it is useful. While another run is expected, every job is
 * useful. */
const char *kl_growth_useless(const kl_growth *g, const kl_growth_farm *f) {
    if (!f->known || f->again_s > 0)
        return NULL;
    if (f->left == 0 || !f->running)
        return "no task is left";
    if (f->workers > 0 && f->left <= f->workers)
        return "each task that is left has a worker";
    return f->workers > 0 && f->left_s > 0 && f->left_s <= fmax(g->start_s, USE_LEAST_S)
               ? "the run is done before a job could help"
               : NULL;
}

/* Return how long an idle job is kept: as long as it would take to get a new job. */
double kl_growth_idle_limit_s(const kl_growth *g) {
    return fmin(fmax(g->wait_s + g->start_s, IDLE_LEAST_S), IDLE_MOST_S);
}

/* Return how many seconds before its time limit the workers of a job leave. This is at most a quarter of the
 * job's time, so that the workers of a short job can work, too. */
double kl_growth_margin_s(const kl_growth *g, const kl_growth_job *job) {
    double margin_s = g->options.margin_s > 0 ? g->options.margin_s : fmax(MARGIN_LEAST_S, 2 * g->task_s);
    return fmin(margin_s, 0.25 * (job->limit_s - job->began_s));
}

double kl_growth_start_limit_s(const kl_growth *g) {
    return fmax(START_LEAST_S, 10 * g->start_s);
}
