/* The jobs of a farm and their nodes: decide when a job is submitted, and when it is given back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "growth/growth_private.h"

static const double PAUSE_LEAST_S = 0.5, PAUSE_MOST_S = 300;
static const double REFUSED_LEAST_S = 5; /* shortest pause in seconds after the queue refused a job */
/* a farm that waits for its first run gets another job when all its jobs have run for this number of
 * seconds */
static const double GATHER_S = 10;
static const double NEWER = 0.5; /* weight of the newest value in an exponentially weighted mean */
enum { NODE_TRIES = 2 };         /* a node is excluded after this number of failures in a row */
enum { REFUSALS_PER_TRY = 3 };

void kl_growth_free(kl_growth *g) {
    free(g->jobs);
    free(g->nodes);
    *g = (kl_growth){.options = g->options};
}

uint64_t kl_growth_jobs(const kl_growth *g) {
    uint64_t jobs = 0;
    for (uint64_t i = 0; i < g->job_count; i++)
        jobs += g->jobs[i].stage < KL_GROWTH_LEAVING;
    return jobs;
}

static uint64_t working_jobs(const kl_growth *g) {
    uint64_t jobs = 0;
    for (uint64_t i = 0; i < g->job_count; i++)
        jobs += g->jobs[i].stage == KL_GROWTH_RUNNING && g->jobs[i].worked;
    return jobs;
}

static double mean_with(double mean, double value) {
    return mean > 0 ? (1 - NEWER) * mean + NEWER * value : fmax(value, 1e-3);
}

static void pause_for(kl_growth *g, double least_s, double now_s) {
    g->pause_s = fmin(fmax(2 * g->pause_s, least_s), PAUSE_MOST_S);
    g->not_before_s = now_s + g->pause_s;
}

static const char *word(const kl_growth *g) {
    return g->options.hosts ? "host" : "job";
}

static void give_up(kl_growth *g, const char *why) {
    if (!g->gave_up)
        kl_growth_decide(g, &(kl_decision){.kind = KL_DECIDES_GIVE_UP}, "%s: %s",
                         g->options.hosts ? "no more workers are started" : "no more jobs are submitted",
                         why);
    g->gave_up = true;
}

/* --- nodes --- */

/* Read the next name of a list. false: the list has ended. */
static bool next_name(const char **at, char name[KL_GROWTH_NAME_BYTES]) {
    size_t bytes = strcspn(*at, ",");
    if (!**at)
        return false;
    snprintf(name, KL_GROWTH_NAME_BYTES, "%.*s", (int)(bytes < KL_GROWTH_NAME_BYTES ? bytes : 0), *at);
    *at += bytes + ((*at)[bytes] == ',');
    return true;
}

/* Return the entry of a node, and add it if it is new. NULL: memory ran out, so the node is not watched. */
static kl_growth_node *node_of(kl_growth *g, const char *name) {
    for (uint64_t i = 0; i < g->node_count; i++)
        if (strcmp(g->nodes[i].name, name) == 0)
            return &g->nodes[i];
    kl_growth_node *nodes = kl_array_grow(g->nodes, &g->node_room, g->node_count + 1, sizeof *nodes);
    if (!nodes)
        return NULL;
    g->nodes = nodes;
    nodes[g->node_count] = (kl_growth_node){.failures = 0};
    snprintf(nodes[g->node_count].name, sizeof nodes->name, "%s", name);
    return &nodes[g->node_count++];
}

static void exclude(kl_growth *g, kl_growth_node *node, const char *why) {
    if (node->excluded)
        return;
    node->excluded = true;
    kl_growth_decide(g, &(kl_decision){.kind = KL_DECIDES_EXCLUDE, .count = node->failures},
                     "%.100s gets no more workers: %s", node->name, why);
}

static void fail_node(kl_growth *g, kl_growth_node *node, const kl_growth_job *job) {
    if (node->judged == job->number || node->seen == job->number)
        return;
    node->judged = job->number;
    if (++node->failures >= NODE_TRIES)
        exclude(g, node, "no worker joined from two jobs in a row");
}

static void fail_nodes(kl_growth *g, const kl_growth_job *job) {
    char name[KL_GROWTH_NAME_BYTES];
    for (const char *at = job->nodes; next_name(&at, name);) {
        kl_growth_node *node = node_of(g, name);
        if (node)
            fail_node(g, node, job);
    }
}

/* Return whether the host is this node. The host of node n1 may call itself n1.site.org. */
static bool is_node(const char *host, const char *name) {
    size_t bytes = strlen(name);
    return strncmp(host, name, bytes) == 0 && (host[bytes] == '\0' || host[bytes] == '.');
}

static const kl_growth_host *host_of(const kl_growth_farm *f, const char *name) {
    for (size_t i = 0; i < f->count; i++)
        if (is_node(f->hosts[i].name, name))
            return &f->hosts[i];
    return NULL;
}

static void look_at_node(kl_growth *g, kl_growth_node *node, const kl_growth_host *host,
                         const kl_growth_job *job) {
    if (host->workers > 0)
        node->seen = job->number;
    if (host->working > 0)
        node->failures = 0;
    if (host->lost >= NODE_TRIES && host->working == 0) {
        node->failures = host->lost;
        exclude(g, node, "its workers were lost before they got tasks");
    }
    if (host->drained) {
        node->failures = 0;
        exclude(g, node, "its workers were sent home");
    }
}

/* --- jobs --- */

static kl_growth_job *job_of(kl_growth *g, const char *id) {
    for (uint64_t i = 0; i < g->job_count; i++)
        if (strcmp(g->jobs[i].id, id) == 0)
            return &g->jobs[i];
    return NULL;
}

static void fail_job(kl_growth *g, kl_growth_job *job, const char *how, double now_s) {
    char why[KL_REASON_BYTES];
    job->failed = true;
    g->failures++;
    fail_nodes(g, job);
    pause_for(g, PAUSE_LEAST_S, now_s);
    snprintf(why, sizeof why, "%u %ss in a row did no task; %s %.60s %s", g->failures, word(g), word(g),
             job->id, how);
    if (g->failures >= g->options.tries && working_jobs(g) == 0)
        give_up(g, why);
}

static void end_job(kl_growth *g, kl_growth_job *job, const kl_growth_farm *f, double now_s) {
    bool released = job->stage == KL_GROWTH_LEAVING;
    bool wanted = !released && (!f->known || (f->running && f->left > 0));
    bool early = job->limit_s == 0 || now_s < job->limit_s - 1;
    job->stage = KL_GROWTH_OVER;
    if (wanted && !job->worked && !job->failed)
        fail_job(g, job, "ended without a task", now_s);
    else if (wanted && job->worked && early && now_s - job->began_s < 10 * g->pause_s + PAUSE_LEAST_S)
        pause_for(g, PAUSE_LEAST_S, now_s);
}

static void begin_job(kl_growth *g, kl_growth_job *job, const kl_growth_state *s, double now_s) {
    job->stage = KL_GROWTH_RUNNING;
    job->began_s = now_s;
    job->limit_s = s->limit_s > 0 ? now_s + s->limit_s : 0;
    g->job_s = fmax(g->job_s, s->limit_s);
    g->wait_s = mean_with(g->wait_s, now_s - job->submitted_s);
}

static void take_state(kl_growth *g, const kl_growth_state *s, const kl_growth_farm *f, double now_s) {
    kl_growth_job *job = job_of(g, s->id);
    if (!job || job->stage == KL_GROWTH_OVER)
        return;
    if (s->stage == KL_GROWTH_RUNNING && job->stage == KL_GROWTH_WAITING)
        begin_job(g, job, s, now_s);
    if (s->nodes && !*job->nodes) /* also read the nodes of a job that is over, because a job may fail before
                                     it was seen running */
        snprintf(job->nodes, sizeof job->nodes, "%s", s->nodes);
    snprintf(job->unfit, sizeof job->unfit, "%s", s->unfit ? s->unfit : "");
    if (s->stage == KL_GROWTH_OVER)
        end_job(g, job, f, now_s);
}

static void forget_over(kl_growth *g) {
    uint64_t stay = 0;
    for (uint64_t i = 0; i < g->job_count; i++)
        if (g->jobs[i].stage != KL_GROWTH_OVER)
            g->jobs[stay++] = g->jobs[i];
    g->job_count = stay;
}

typedef struct crew {
    uint32_t workers, idle, working;
} crew;

static crew crew_of(kl_growth *g, const kl_growth_job *job, const kl_growth_farm *f) {
    char name[KL_GROWTH_NAME_BYTES];
    crew c = {0};
    for (const char *at = job->nodes; next_name(&at, name);) {
        const kl_growth_host *host = host_of(f, name);
        kl_growth_node *node = host ? node_of(g, name) : NULL;
        if (!node)
            continue;
        look_at_node(g, node, host, job);
        c.workers += host->workers;
        c.idle += host->idle;
        c.working += host->working;
    }
    return c;
}

static void look_at_crew(kl_growth *g, kl_growth_job *job, const crew *c, double now_s) {
    if (c->workers > 0 && !job->joined) {
        job->joined = true;
        g->start_s = mean_with(g->start_s, now_s - job->began_s);
    }
    if (c->workers > job->workers) {
        job->workers = c->workers;
        g->job_workers = fmax(g->job_workers, c->workers);
    }
    if (c->working > 0) {
        job->worked = true;
        g->failures = 0;
    }
    bool idle = c->workers > 0 && c->idle == c->workers;
    job->idle_s = !idle ? 0 : job->idle_s > 0 ? job->idle_s : now_s;
}

static bool is_of_a_job(const kl_growth *g, const char *host) {
    char name[KL_GROWTH_NAME_BYTES];
    for (uint64_t i = 0; i < g->job_count; i++)
        for (const char *at = g->jobs[i].nodes; next_name(&at, name);)
            if (is_node(host, name))
                return true;
    return false;
}

/* Return whether some workers are on a host that is not a node of any job. Such a host may be a node under
 * another name. Then it is not certain that a job without known workers has brought none. */
static bool has_strangers(const kl_growth *g, const kl_growth_farm *f) {
    for (size_t i = 0; i < f->count; i++)
        if (f->hosts[i].workers > 0 && !is_of_a_job(g, f->hosts[i].name))
            return true;
    return false;
}

/* --- giving jobs back --- */

static void give_back(kl_growth *g, kl_growth_job *job, kl_growth_act act, const char *why) {
    job->stage = KL_GROWTH_LEAVING;
    kl_growth_decide(g, &(kl_decision){.kind = KL_DECIDES_SHRINK, .count = kl_growth_jobs(g)},
                     "%s %.60s is %s: %s", word(g), job->id,
                     act == KL_GROWTH_CANCEL ? "cancelled" : "released", why);
    kl_growth_act_on(g, act, job);
}

/* Return whether all nodes of the job are excluded. *failures is set to the greatest number of failures of
 * one of these nodes. */
static bool is_excluded(kl_growth *g, const kl_growth_job *job, uint32_t *failures) {
    char name[KL_GROWTH_NAME_BYTES];
    bool all = *job->nodes != '\0';
    *failures = 0;
    for (const char *at = job->nodes; all && next_name(&at, name);) {
        const kl_growth_node *node = node_of(g, name);
        all = node && node->excluded;
        *failures = all && node->failures > *failures ? node->failures : *failures;
    }
    return all;
}

static void give_back_failed(kl_growth *g, kl_growth_job *job, const char *why, const char *how,
                             double now_s) {
    give_back(g, job, KL_GROWTH_CANCEL, why);
    fail_job(g, job, how, now_s);
}

static void look_at_running(kl_growth *g, kl_growth_job *job, const kl_growth_farm *f, double now_s) {
    char why[KL_REASON_BYTES];
    crew c = crew_of(g, job, f);
    look_at_crew(g, job, &c, now_s);
    double start_s = kl_growth_start_limit_s(g), idle_s = kl_growth_idle_limit_s(g);
    uint32_t failures;
    bool late = now_s - job->began_s > start_s && !has_strangers(g, f),
         excluded = is_excluded(g, job, &failures);
    if (late && job->joined)
        fail_nodes(g, job); /* some nodes of this job have workers, so only the others have failed */
    if (job->limit_s > 0 && job->limit_s - now_s <= kl_growth_margin_s(g, job)) {
        snprintf(why, sizeof why, "its time limit is reached in %s",
                 kl_say_s(fmax(job->limit_s - now_s, 0)).text);
        give_back(g, job, KL_GROWTH_RELEASE, why);
    } else if (*job->unfit) {
        give_back(g, job, KL_GROWTH_RELEASE, job->unfit);
    } else if (job->idle_s > 0 && now_s - job->idle_s >= idle_s) {
        snprintf(why, sizeof why, "its %u workers have been idle for %s", c.workers,
                 kl_say_s(now_s - job->idle_s).text);
        give_back(g, job, KL_GROWTH_RELEASE, why);
    } else if (late && !job->joined) {
        snprintf(why, sizeof why, "no worker joined within %s", kl_say_s(start_s).text);
        give_back_failed(g, job, why, "brought no worker", now_s);
    } else if (excluded && c.workers == 0 && failures == 0) {
        give_back(g, job, KL_GROWTH_CANCEL, "its nodes were drained");
    } else if (excluded && c.working == 0 && failures > 0) {
        give_back_failed(g, job, "workers fail on its nodes", "lost its workers", now_s);
    }
}

static void look_at_job(kl_growth *g, kl_growth_job *job, const kl_growth_farm *f, double now_s) {
    const char *why = job->stage == KL_GROWTH_WAITING ? kl_growth_useless(g, f) : NULL;
    if (why)
        give_back(g, job, KL_GROWTH_CANCEL, why);
    else if (job->stage == KL_GROWTH_RUNNING)
        look_at_running(g, job, f, now_s);
}

/* --- getting more jobs --- */

/* Return whether a farm whose first run has not begun is waiting for workers, and should get a job. */
static bool needs_first(const kl_growth *g, const kl_growth_farm *f, double now_s, kl_decision *d) {
    bool needs = !f->known;
    for (uint64_t i = 0; i < g->job_count && needs; i++)
        needs = g->options.hosts ||
                (g->jobs[i].stage == KL_GROWTH_RUNNING && now_s - g->jobs[i].began_s > GATHER_S);
    if (needs)
        snprintf(d->reason, sizeof d->reason, "the farm waits for workers");
    return needs;
}

static void check_tasks(kl_growth *g, const kl_growth_farm *f) {
    char why[KL_REASON_BYTES];
    g->task_s = fmax(g->task_s, f->task_s);
    if (g->job_s <= 0 || g->task_s < g->job_s)
        return;
    snprintf(why, sizeof why, "a task takes %s, but a job ends after %s", kl_say_s(g->task_s).text,
             kl_say_s(g->job_s).text);
    give_up(g, why);
}

static void grow(kl_growth *g, const kl_growth_farm *f, double now_s) {
    kl_decision d = {.kind = KL_DECIDES_GROW, .count = kl_growth_jobs(g) + 1};
    if (g->gave_up || now_s < g->not_before_s || d.count > g->options.jobs ||
        (g->options.hosts && f->free == 0))
        return;
    if (!needs_first(g, f, now_s, &d) && !kl_growth_is_useful(g, f, &d))
        return;
    kl_growth_decide(g, &d, "%s: %.110s", g->options.hosts ? "a host gets workers" : "a job is submitted",
                     d.reason);
    kl_growth_act_on(g, KL_GROWTH_SUBMIT, NULL);
}

bool kl_growth_submitted(kl_growth *g, const char *id, double now_s) {
    kl_growth_job *jobs = kl_array_grow(g->jobs, &g->job_room, g->job_count + 1, sizeof *jobs);
    if (!jobs)
        return false;
    g->jobs = jobs;
    jobs[g->job_count] = (kl_growth_job){.number = ++g->submitted, .submitted_s = now_s};
    snprintf(jobs[g->job_count++].id, sizeof jobs->id, "%s", id);
    return true;
}

/* If the queue refuses the first job, its options are wrong, and growth ends with a message. Later refusals
 * may have a temporary reason. */
void kl_growth_refused(kl_growth *g, const char *why, double now_s) {
    char text[KL_REASON_BYTES];
    g->failures++;
    pause_for(g, REFUSED_LEAST_S, now_s);
    snprintf(text, sizeof text, "%s", why);
    if (g->submitted == 0 || g->failures >= g->options.tries * REFUSALS_PER_TRY)
        give_up(g, text);
}

bool kl_growth_is_lost(const kl_growth *g, const kl_growth_farm *f) {
    return g->gave_up && f->workers == 0 && g->job_count == 0;
}

void kl_growth_look(kl_growth *g, const kl_growth_farm *f, const kl_growth_state *states, size_t count,
                    double now_s) {
    for (size_t i = 0; i < count; i++)
        take_state(g, &states[i], f, now_s);
    forget_over(g);
    check_tasks(g, f);
    for (uint64_t i = 0; i < g->job_count; i++)
        look_at_job(g, &g->jobs[i], f, now_s);
    grow(g, f, now_s);
}
