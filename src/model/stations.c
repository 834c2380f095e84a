/* Resources that workers share slow all of them down: cores, the master's threads, callbacks, a link. Each
 * one is a station with a load. */
#include <math.h>

#include "model/model.h"

/* Bytes whose cost equals that of the message around them; and the cost of one more message for a farm with
 * many messages over its cost for a farm with few, which must wake threads and finds cold caches.
 * docs/explanation/model.md says where both numbers come from. */
static const double HALF_BYTES = 48e3, AMONG_MANY = 0.4;
/* Least part of a task's time that counts as work, whatever delay was reported. */
static const double LEAST_ALONE = 0.02;
static const double NOTHING = 1e-12; /* states less likely than this part of the likeliest one are left out */

/* --- one station --- */

/* Return the probability of k + 1 visitors over that of k. */
static double step_up(const kl_station *s, double away_s, double n, double k) {
    return (n - k) * s->task_s / (away_s * fmin(k + 1, s->servers));
}

static double likeliest(const kl_station *s, double away_s, double n) {
    double few = (n * s->task_s - away_s) / (away_s + s->task_s);
    double k = few < s->servers ? few : n - away_s * s->servers / s->task_s;
    return floor(fmin(n, fmax(0, k)));
}

/* Sum the weights of the states, from the likeliest one outwards, and the service rate in them. */
typedef struct served {
    double weight, servers;
} served;

static void add_state(const kl_station *s, served *sum, double weight, double k) {
    sum->weight += weight;
    sum->servers += weight * fmin(k, s->servers);
}

double kl_station_rate(const kl_station *s, double away_s, uint32_t workers) {
    double n = workers;
    if (!(s->task_s > 0))
        return away_s > 0 ? n / away_s : INFINITY;
    if (!(away_s > s->task_s * NOTHING))
        return fmin(n, s->servers) / s->task_s;
    double middle = likeliest(s, away_s, n), weight = 1;
    served sum = {0};
    add_state(s, &sum, 1, middle);
    for (double k = middle; k < n && weight > NOTHING; k++)
        add_state(s, &sum, weight *= step_up(s, away_s, n, k), k + 1);
    weight = 1;
    for (double k = middle; k > 0 && weight > NOTHING; k--)
        add_state(s, &sum, weight /= step_up(s, away_s, n, k - 1), k - 1);
    return sum.servers / sum.weight / s->task_s;
}

/* --- stations of a farm --- */

/* Return the part of the cost of messages that does not depend on their size. */
static double fixed_part(double bytes, double messages) {
    return HALF_BYTES / (HALF_BYTES + bytes / fmax(1, messages));
}

/* The cost of a byte is that of an encrypted socket, unless it was measured between processes of one host.
 * Shared memory takes a tenth of it, or more where the bytes are not in the caches. But no message costs a
 * side more than the time in which both sides exchange two. */
static double message_part(const kl_load *l) {
    double least = fixed_part(l->use.bytes, l->use.messages);
    if (!(l->copy_s > 0) || l->use.local_tasks < l->use.tasks)
        return least;
    double most = 2 * l->near_s * l->use.messages / l->use.farm_s;
    return fmax(least, fmin(most, 1 - l->copy_s * l->use.bytes / l->use.farm_s));
}

/* Return the CPU time of the master's process for additional messages, with this many chunks, if each costs
 * as much as those that were measured. */
static double added_s(const kl_load *l, double chunks) {
    return message_part(l) * l->use.farm_s * (chunks / l->chunks - 1);
}

/* Return the additional CPU time of the master's process for messages and dealing, with this many chunks. */
static double more_s(const kl_load *l, double chunks) {
    double change_s = added_s(l, chunks);
    return change_s > 0 ? AMONG_MANY * change_s : change_s;
}

/* A worker has one thread to wake where the master has two. Its own messages stay as rare as they were, so an
 * additional one does not cost less. */
static const double THEIRS = 0.4;

static kl_station cores_of(const kl_load *l, double chunks) {
    double own_s = l->apart ? 0 : l->use.farm_s + l->use.callbacks_s + more_s(l, chunks);
    double theirs_s = l->use.local_s + THEIRS * added_s(l, chunks) * l->use.local_tasks / l->use.tasks;
    double threads = 1; /* CPU time of a worker for its side of messages */
    if (l->use.local_tasks > 0)
        threads = fmax(1, l->use.local_s / l->use.local_tasks / l->task_s);
    return (kl_station){(own_s + theirs_s) / l->use.tasks / threads, l->use.cores / threads};
}

/* Workers are assumed to need as much time for their side of messages as the master does. */
static double sending_s(const kl_load *l, double chunks) {
    double farm_s = l->use.farm_s + more_s(l, chunks);
    return fmin(l->use.local_s, farm_s * l->use.local_tasks / l->use.tasks) + (l->apart ? 0 : farm_s);
}

static kl_station messages_of(const kl_load *l, double chunks) {
    double others_s = fmax(
        0, l->use.farm_s -
               l->answer_s * l->chunks); /* sending and receiving threads, beside the thread that deals */
    double times = 1 + more_s(l, chunks) / l->use.farm_s;
    return (kl_station){times * fmax(l->answer_s * l->chunks, others_s) / l->use.tasks, 1};
}

/* Return a task's time on a link, in the busier direction. */
static double link_s(const kl_load *l) {
    double part = fmax(l->to_workers, 1 - l->to_workers);
    double away = 1 - l->use.local_tasks / l->use.tasks;
    return away * part * l->use.bytes * l->per_byte_s / l->use.tasks;
}

bool kl_load_known(const kl_load *l) {
    return l->use.cores > 0 && l->use.tasks > 0 && l->use.farm_s > 0 && l->chunks > 0 && l->task_s > 0 &&
           l->workers > 0 && l->beyond > 0;
}

static const double SEVERAL = 2; /* workers that get more chunks than this get ever smaller ones */

/* Return the number of rounds up to a factor. Each round deals the same part of what is left, until chunks
 * are as small as the master can deal. */
static double rounds_of(const kl_load *l, double workers) {
    double answer_s = AMONG_MANY * l->answer_s * fixed_part(l->to_workers * l->use.bytes, l->chunks);
    double least = l->task_s > 0 ? fmax(1, (workers - 1) * answer_s / l->task_s) : 1;
    return log1p(l->use.tasks / workers / least);
}

double kl_model_chunks(const kl_load *l, uint32_t workers) {
    double times = workers / (double)l->workers;
    if (l->chunks >= l->use.tasks) /* a task each, for any number of workers */
        return l->chunks;
    if (l->chunks > SEVERAL * l->workers)
        times *= rounds_of(l, workers) / rounds_of(l, l->workers);
    return fmin(l->use.tasks, l->chunks * times);
}

double kl_model_answer_s(const kl_load *l, uint32_t workers) {
    double fixed = fixed_part(l->to_workers * l->use.bytes, l->chunks);
    return l->answer_s * (fixed + (1 - fixed) * l->chunks / kl_model_chunks(l, workers));
}

enum { SHARED = KL_SHARED_LINKS + 1 };

static void stations_of(const kl_load *l, uint32_t workers, double chunks, kl_station stations[SHARED]) {
    stations[KL_SHARED_NOTHING] = (kl_station){0, 1};
    stations[KL_SHARED_CORES] = cores_of(l, chunks);
    stations[KL_SHARED_MESSAGES] = messages_of(l, chunks);
    stations[KL_SHARED_CALLBACKS] = (kl_station){l->use.callbacks_s / l->use.tasks, 1};
    stations[KL_SHARED_LINK] = (kl_station){l->own_links ? 0 : link_s(l), 1};
    stations[KL_SHARED_LINKS] = (kl_station){l->own_links ? link_s(l) : 0, workers};
}

double kl_model_shared_s(const kl_load *l, double chunks) {
    kl_station stations[SHARED];
    double longest_s = 0;
    if (!kl_load_known(l))
        return 0;
    stations_of(l, l->workers, chunks, stations);
    for (int i = 0; i < SHARED; i++)
        longest_s = fmax(longest_s, l->use.tasks * stations[i].task_s / stations[i].servers);
    return longest_s;
}

/* With more workers than cores CPU time grows by a power of their number. Threads are switched more often,
 * and results leave the caches before the master reads them. docs/explanation/model.md says where both
 * exponents come from. */
static const double DEARER = 0.025, MOVED = 0.2;
static const double COPIED = 4e9; /* bytes per second */

static double dearer(const kl_load *l, uint32_t workers) {
    double then = fmax(l->workers, l->use.cores), now = fmax(workers, l->use.cores);
    double cpu_s = l->use.farm_s + l->use.callbacks_s + l->use.local_s;
    double bytes = fmin(1, (1 - l->to_workers) * l->use.bytes / COPIED / cpu_s);
    return pow(now / then, DEARER + MOVED * bytes);
}

/* A thread that wakes goes to the core on which it was before, even while another core is idle. So each core
 * has a queue of its own, with its part of the workers. */
static double cores_rate(const kl_station *cores, double away_s, uint32_t workers) {
    double each = workers / cores->servers, few = floor(each);
    kl_station one = {cores->task_s, 1};
    if (each <= 1)
        return kl_station_rate(cores, away_s, workers);
    double rate = kl_station_rate(&one, away_s, (uint32_t)few);
    if (each > few)
        rate += (each - few) * (kl_station_rate(&one, away_s, (uint32_t)few + 1) - rate);
    return cores->servers * rate;
}

static double rate_of(const kl_station *stations, int i, double task_s, uint32_t workers) {
    double away_s = fmax(0, task_s - stations[i].task_s);
    return i == KL_SHARED_CORES ? cores_rate(&stations[i], away_s, workers)
                                : kl_station_rate(&stations[i], away_s, workers);
}

/* A worker that wakes finds its data gone from the caches if another one has used the core. That costs about
 * this much. A task whose worker computes for less than half of its time is assumed to wake once. */
static const double SWITCH_S = 5e-6, COMPUTES = 0.5;

static double switching_s(const kl_load *l, uint32_t workers, const kl_station *stations) {
    const kl_station *cores = &stations[KL_SHARED_CORES];
    double others = 1 - fmin(1, cores->servers / workers);
    if (l->use.local_s > COMPUTES * l->task_s * l->use.local_tasks)
        return 0;
    double used = rate_of(stations, KL_SHARED_CORES, l->task_s, workers) * cores->task_s / cores->servers;
    return SWITCH_S * l->use.local_tasks / l->use.tasks * used * others;
}

static kl_limit limit_of(const kl_load *l, uint32_t workers) {
    kl_limit limit = {.what = KL_SHARED_NOTHING, .times = 1, .known = true};
    kl_station stations[SHARED];
    double chunks = kl_model_chunks(l, workers);
    stations_of(l, workers, chunks, stations);
    stations[KL_SHARED_CORES].task_s *= dearer(l, workers);
    stations[KL_SHARED_CORES].task_s += switching_s(l, workers, stations);
    for (int i = KL_SHARED_CORES; i < SHARED; i++) {
        double rate = rate_of(stations, i, l->task_s, workers);
        double times = workers / (rate * l->task_s);
        if (times > limit.times)
            limit = (kl_limit){.what = (kl_shared)i,
                               .times = times,
                               .used = rate * stations[i].task_s / stations[i].servers,
                               .known = true};
    }
    const kl_station *cores = &stations[KL_SHARED_CORES];
    double cores_s = cores->task_s / cores->servers * l->use.cores * l->use.tasks;
    limit.sending = fmin(1, sending_s(l, chunks) / cores_s);
    return limit;
}

kl_limit kl_model_limit(const kl_load *l, uint32_t workers) {
    if (!kl_load_known(l))
        return (kl_limit){.what = KL_SHARED_NOTHING, .times = 1};
    kl_limit limit = limit_of(l, workers);
    limit.times = fmax(1, limit.times * l->beyond); /* no task is quicker than alone */
    return limit;
}

/* A small excess proves nothing, because the rate is that of streams that may have been disturbed. */
static const double MORE_THAN_ONE = 1.25;
/* Least part of the run's time that the model with links of the workers' own must explain. */
static const double EXPLAINED = 0.85;

/* One link cannot carry more than its rate. If more was carried, each worker has a link of its own, or the
 * rate was measured too low. With links of their own the workers wait little for bytes, so the run's time
 * tells which it was. In the other case the run shows the rate of the busy link. */
static void fit_link(kl_load *l, double elapsed_s) {
    double busy_s = link_s(l) * l->use.tasks, task_s = l->workers * elapsed_s / l->use.tasks;
    if (busy_s <= elapsed_s)
        return;
    kl_load own = *l;
    own.own_links = true;
    bool explained = limit_of(&own, l->workers).times * l->task_s >= EXPLAINED * task_s;
    bool possible = busy_s <= l->workers * elapsed_s; /* links of their own have a rate, too */
    l->own_links = possible && explained && busy_s > MORE_THAN_ONE * elapsed_s;
    if (!l->own_links)
        l->per_byte_s *= elapsed_s / busy_s;
}

/* The factor that the model does not explain is assumed to stay the same. A worker waits in its tasks or
 * between them, so the explained wait may lie anywhere between the time in tasks and the whole time. */
double kl_load_fit(kl_load *l, double task_s, double elapsed_s) {
    double delay_s = l->use.tasks > 0 ? l->use.delay_s / l->use.tasks : 0;
    double alone = fmax(1 - delay_s / task_s, LEAST_ALONE);
    l->task_s = alone * task_s;
    l->beyond = 1;
    if (kl_load_known(l)) {
        fit_link(l, elapsed_s);
        double times = limit_of(l, l->workers).times, cycle_s = l->workers * elapsed_s / l->use.tasks;
        l->beyond = fmax(1 / alone / times, fmin(1, cycle_s / l->task_s / times));
    }
    return alone;
}

const char *kl_shared_name(kl_shared what) {
    static const char *const names[] = {[KL_SHARED_NOTHING] = "the tasks",
                                        [KL_SHARED_CORES] = "the cores of the master's host",
                                        [KL_SHARED_MESSAGES] = "the master's messages",
                                        [KL_SHARED_CALLBACKS] = "the program's callbacks",
                                        [KL_SHARED_LINK] = "the master's link",
                                        [KL_SHARED_LINKS] = "the links of the workers"};
    return names[what];
}

kl_load kl_load_with_bytes(const kl_load *l, double times) {
    kl_load other = *l;
    if (!kl_load_known(l))
        return other;
    double less_s = (1 - message_part(l)) * l->use.farm_s * (1 - times);
    other.use.farm_s -= less_s;
    other.use.local_s -= fmin(other.use.local_s, less_s * l->use.local_tasks / l->use.tasks);
    other.use.bytes *= times;
    return other;
}

/* --- uncertainty of a forecast --- */

static const double RUNS_DIFFER =
    0.03; /* spread of equal runs when it was not measured; least spread that is assumed */
static const double RUNS_DIFFER_LEAST = 0.01;
static const double DOUBLING =
    0.02; /* relative error of the model for each doubling of the number of workers */
static const double UNKNOWN = 0.15;      /* the same when nothing is known about shared resources */
static const double SHARING = 0.2;       /* relative error of the time that sharing adds */
static const double SURE_SIGMAS = 1.645; /* quantile of the normal distribution for KL_SURE */

kl_interval kl_model_interval(double time_s, const kl_doubt *doubt, uint32_t workers, const kl_limit *limit) {
    double runs = doubt->runs > 0 ? fmax(doubt->runs, RUNS_DIFFER_LEAST) : RUNS_DIFFER;
    double reach =
        (limit->known ? DOUBLING : UNKNOWN) * log2((double)workers / (doubt->known > 0 ? doubt->known : 1));
    double sharing = SHARING * fmax(0, 1 - 1 / limit->times);
    double sigma = sqrt(runs * runs + reach * reach + sharing * sharing);
    return (kl_interval){time_s * exp(-SURE_SIGMAS * sigma), time_s * exp(SURE_SIGMAS * sigma)};
}
