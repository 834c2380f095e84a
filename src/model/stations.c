/* Model how much workers slow each other down by sharing resources: cores, the master's threads, callbacks,
 * links. Each resource is a station. */
#include <math.h>

#include "model/model.h"

/* A message with this number of bytes costs twice as much CPU time as an empty message.
 * docs/explanation/model.md says where this number comes from. */
static const double HALF_BYTES = 48e3;
/* AMONG_MANY: cost of a message among many other messages, divided by its cost among few others. WAKE_S: CPU
 * seconds that the master loses if it sleeps before a message. Both are used if they were not measured.
 * AMONG_LEAST: least value of the relative cost. */
static const double AMONG_MANY = 0.4, WAKE_S = 25e-6, AMONG_LEAST = 0.1;
/* If a byte costs fewer CPU seconds than this, messages within the master's host go through shared memory. A
 * byte on an encrypted socket costs about 1 ns. */
static const double NEAR_BYTE_S = 0.5e-9;
/* At least this part of a task's time counts as work, even if the reported delay is longer. */
static const double LEAST_ALONE = 0.02;
/* numbers of tasks at a station are left out if their probability is less than this part of the greatest
 * probability */
static const double NOTHING = 1e-12;
/* If there are more workers than this, their tasks reach a station as a steady stream. Then a simple formula
 * replaces the sum over all numbers of tasks at the station. A record with billions of tiny tasks can make
 * the model ask for more workers than this. */
static const double MANY = 1e5;

/* --- one station --- */

/* Return how many times more likely k + 1 tasks at the station are than k tasks. */
static double step_up(const kl_station *s, double away_s, double n, double k) {
    return (n - k) * s->task_s / (away_s * fmin(k + 1, s->servers));
}

static double likeliest(const kl_station *s, double away_s, double n) {
    double few = (n * s->task_s - away_s) / (away_s + s->task_s);
    double k = few < s->servers ? few : n - away_s * s->servers / s->task_s;
    return floor(fmin(n, fmax(0, k)));
}

/* Sums over all possible numbers of tasks at the station. weight: relative probability of this number;
 * servers: this probability × number of busy servers. */
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
    if (n > MANY)
        return fmin(n / (away_s + s->task_s), s->servers / s->task_s);
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

/* --- the cost of messages --- */

double kl_message_fixed_part(double bytes, double messages) {
    return HALF_BYTES / (HALF_BYTES + bytes / fmax(1, messages));
}

/* Return the part of all tasks that was done on the master's host. */
static double local_part(const kl_load *l) {
    return l->use.local_tasks / l->use.tasks;
}

/* Return the part of farm_s that does not depend on the size of messages. If messages within the host were
 * not measured, a byte is assumed to cost as much as on an encrypted socket. In shared memory it costs a
 * tenth of that, or more if it is not in the caches. The result is limited: apart from its bytes, a message
 * costs each side at most one round trip. */
static double message_part(const kl_load *l) {
    double least = kl_message_fixed_part(l->use.bytes, l->use.messages);
    if (!(l->copy_s > 0) || l->use.local_tasks < l->use.tasks)
        return least;
    double most = 2 * l->near_s * l->use.messages / l->use.farm_s;
    return fmax(least, fmin(most, 1 - l->copy_s * l->use.bytes / l->use.farm_s));
}

/* Return the cost of a message for a thread that is awake, as a part of its cost for a thread that has slept.
 * A thread that has slept finds cold caches. */
static double among_many(const kl_load *l) {
    return l->woken_s > 0 && l->awake_s > 0 ? fmin(1, fmax(AMONG_LEAST, l->awake_s / l->woken_s))
                                            : AMONG_MANY;
}

static double wake_s(const kl_load *l) {
    return l->woken_s > 0 && l->awake_s > 0 ? fmax(0, l->woken_s - l->awake_s) : WAKE_S;
}

/* Return the CPU seconds that the messages of additional chunks would cost the master, if each cost as much
 * as in the measured run. */
static double added_s(const kl_load *l, double chunks) {
    return message_part(l) * l->use.farm_s * (chunks / l->chunks - 1);
}

/* Return whether the workers' messages go through shared memory, where they are not encrypted. */
static bool is_near(const kl_load *l) {
    return l->use.local_tasks >= l->use.tasks && l->near_s > 0 && l->copy_s < NEAR_BYTE_S;
}

/* Return whether local workers send their messages through encrypted sockets. */
static bool is_encrypted(const kl_load *l) {
    return l->copy_s >= NEAR_BYTE_S;
}

/* Return the part of the cost of waking that remains with this number of workers; 1: no more workers than
 * cores on the master's host. With more workers, a core is awake more often. The square fits measurements,
 * see the page docs/explanation/model.md. */
static double asleep_part(const kl_load *l, uint32_t workers) {
    double alone = fmin(1, l->use.cores / fmax(1, local_part(l) * workers));
    return alone * alone;
}

/* Return the part of the measured run in which the master's threads had nothing to do, and could sleep. */
static double idle_part(const kl_load *l) {
    return fmax(0, 1 - l->use.farm_s * l->workers / (l->use.tasks * l->task_s));
}

/* Return the mean cost of a message, as a part of its cost for a thread that has slept. */
static double message_cost(const kl_load *l, uint32_t workers) {
    return among_many(l) + (1 - among_many(l)) * idle_part(l) * asleep_part(l, workers);
}

/* COMPUTES: workers that compute for less than this part of a task's time are assumed to wake once per task.
 */
static const double COMPUTES = 0.5;

static bool wakes_in_tasks(const kl_load *l) {
    return l->use.local_tasks > 0 && l->use.local_s <= COMPUTES * l->task_s * l->use.local_tasks;
}

/* Return how far workers stay on their cores: 1 if they sleep for at least half of their tasks, 0 if they
 * only compute. The system moves threads that compute to idle cores. */
static double stay(const kl_load *l) {
    double computes = l->use.local_tasks > 0 ? l->use.local_s / l->use.local_tasks / l->task_s : 1;
    return fmax(0, fmin(1, (1 - computes) / (1 - COMPUTES)));
}

/* Return how many more CPU seconds the master's process needs with this number of workers and chunks than in
 * the measured run. Additional messages cost less by the factor among_many(). If tasks sleep, more workers
 * make all messages cheaper. Tasks that compute keep the cores awake for any number of workers. */
static double more_s(const kl_load *l, uint32_t workers, double chunks) {
    double change_s = added_s(l, chunks), messages_s = message_part(l) * l->use.farm_s;
    double cheaper = message_cost(l, workers) / message_cost(l, l->workers);
    double computing_s = change_s > 0 ? among_many(l) * change_s : change_s;
    double sleeping_s = messages_s * (chunks / l->chunks * cheaper - 1);
    if (change_s > 0)
        sleeping_s = fmin(sleeping_s, computing_s);
    return stay(l) * sleeping_s + (1 - stay(l)) * computing_s;
}

/* Cost of an additional message for a worker, divided by its cost for the master. A worker has fewer threads
 * to wake, but encrypts as much as the master. Messages of one worker stay rare, so among_many() does not
 * apply to them. */
static const double THEIRS = 0.6, THEIRS_NEAR = 0.4;

/* CPU seconds that a task costs. If the master has cores of its own, own_s and thread_s are spent there. */
typedef struct cpu_use {
    double own_s;    /* of the master's process */
    double thread_s; /* the part of own_s of the busiest thread for messages */
    double theirs_s; /* of workers on the master's host */
} cpu_use;

/* Return the CPU seconds of the master's busiest thread for messages. One thread deals, others send and
 * receive. */
static double thread_s(const kl_load *l, uint32_t workers, double chunks) {
    double others_s = fmax(0, l->use.farm_s - l->answer_s * l->chunks);
    double times = 1 + more_s(l, workers, chunks) / l->use.farm_s;
    return times * fmax(l->answer_s * l->chunks, others_s);
}

static cpu_use cpu_of(const kl_load *l, uint32_t workers, double chunks) {
    double own_s = l->use.farm_s + l->use.callbacks_s + more_s(l, workers, chunks);
    double theirs_s =
        l->use.local_s + (is_near(l) ? THEIRS_NEAR : THEIRS) * added_s(l, chunks) * local_part(l);
    return (cpu_use){own_s / l->use.tasks, thread_s(l, workers, chunks) / l->use.tasks,
                     theirs_s / l->use.tasks};
}

/* --- how CPU time grows with the number of workers --- */

/* If there are more than CACHED workers per core, CPU time grows as this power of their number, because
 * threads are switched more often. The page docs/explanation/model.md says where the numbers below come from.
 */
static const double CACHED = 3, DEARER = 0.05;

static double dearer(const kl_load *l, uint32_t workers) {
    double least = CACHED * l->use.cores, local = local_part(l);
    return pow(fmax(local * workers, least) / fmax(local * l->workers, least), DEARER);
}

/* The caches hold this many bytes of the inputs in the workers' chunks, and as many of their results. Other
 * bytes cost more CPU seconds. */
static const double CACHE_BYTES = 8e6;

/* The CPU time for a byte that is outside the caches. */
typedef struct spilling {
    double master_s, worker_s; /* seconds more than in the caches, for the master and for the worker */
    double most_s;             /* seconds in total, at most, for each of them */
} spilling;

static const spilling INPUT = {0.05e-9, 0.05e-9, 0.14e-9}, RESULT = {0, 0.25e-9, 0.25e-9};
/* An encrypted message passes through memory several times on each side. 1 s for a byte means: no
 * limit. */
static const spilling ENCRYPTED = {1e-9, 1e-9, 1};

static double outside_caches(double workers, double chunk_bytes) {
    return 1 - fmin(1, CACHE_BYTES / (workers * chunk_bytes));
}

/* Return how much larger the part of `bytes` outside the caches is than in the measured run. Only workers on
 * the master's host are counted. */
static double more_outside(const kl_load *l, uint32_t workers, double chunks, double bytes) {
    double then = local_part(l) * l->workers, now = local_part(l) * workers;
    if (!(bytes > 0 && now > 0))
        return 0;
    return outside_caches(now, bytes / chunks) - outside_caches(then, bytes / l->chunks);
}

/* Return the CPU seconds that a task of cpu_s needs more if `more` of its bytes are outside the caches; below
 * 0: fewer bytes are outside. slower_s: the difference between all bytes in the caches and none; outside_s:
 * CPU seconds of the bytes if none is in the caches. */
static double spilled_s(double more, double slower_s, double outside_s, double cpu_s) {
    return more > 0 ? fmin(more * slower_s, fmax(0, outside_s - cpu_s)) : more * fmin(slower_s, cpu_s);
}

/* Add the cost of those of `bytes` that are outside the caches. Only the master's busiest thread handles
 * them. */
static void spill(const kl_load *l, uint32_t workers, double chunks, double bytes, const spilling *s,
                  cpu_use *cpu) {
    double more = more_outside(l, workers, chunks, bytes), each = local_part(l) * bytes / l->use.tasks;
    double thread_s = spilled_s(more, each * s->master_s, each * s->most_s, cpu->thread_s);
    cpu->own_s += thread_s;
    cpu->thread_s += thread_s;
    cpu->theirs_s += spilled_s(more, each * s->worker_s, each * s->most_s, cpu->theirs_s);
}

static void spill_all(const kl_load *l, uint32_t workers, double chunks, cpu_use *cpu) {
    double in = l->to_workers * l->use.bytes;
    spill(l, workers, chunks, in, is_encrypted(l) ? &ENCRYPTED : &INPUT, cpu);
    spill(l, workers, chunks, l->use.bytes - in, is_encrypted(l) ? &ENCRYPTED : &RESULT, cpu);
}

/* seconds that a worker loses when it wakes, if another worker has used its core and caches */
static const double SWITCH_S = 5e-6;
/* AWAKE_TASK_S: CPU seconds of a worker for a task that only sleeps, if its core is awake. BYTE_S: greatest
 * CPU seconds of a worker for a byte that is not encrypted. */
static const double AWAKE_TASK_S = 7e-6, BYTE_S = 0.25e-9;

/* Return the CPU seconds that a task would cost its worker if the worker's core were awake. */
static double awake_task_s(const kl_load *l) {
    return AWAKE_TASK_S + (is_encrypted(l) ? l->copy_s : BYTE_S) * l->use.bytes / l->use.tasks;
}

double kl_model_roused_s(const kl_load *l, uint32_t workers) {
    if (!wakes_in_tasks(l))
        return 0;
    double rouse_s = fmax(0, l->use.local_s / l->use.local_tasks - awake_task_s(l));
    double asleep = asleep_part(l, l->workers) - asleep_part(l, workers);
    return fmin(wake_s(l), rouse_s) * asleep * local_part(l);
}

/* On some virtual machines, a switch of processes costs more if more processes take turns. There the CPU time
 * of tasks that sleep grew with the square root of the number of workers per core. The master's CPU time grew
 * likewise. A run with few workers does not show whether its machine is of this kind. So only the interval of
 * a forecast allows for this growth. */
static const double DEAREST = 0.5;

static double switches_dearer(const kl_load *l, uint32_t workers) {
    double least = l->use.cores, local = local_part(l);
    return wakes_in_tasks(l) ? pow(fmax(local * workers, least) / fmax(local * l->workers, least), DEAREST)
                             : 1;
}

/* Return the CPU seconds of a task with this number of workers, without the time that switches cost.
 * CPU time on the workers' host grows by the factor `times`. */
static cpu_use cpu_at(const kl_load *l, uint32_t workers, double chunks, double times) {
    cpu_use cpu = cpu_of(l, workers, chunks);
    double theirs = times * dearer(l, workers), own = l->apart ? 1 : theirs;
    spill_all(l, workers, chunks, &cpu);
    cpu.theirs_s -= kl_model_roused_s(l, workers);
    return (cpu_use){own * cpu.own_s, own * cpu.thread_s, theirs * cpu.theirs_s};
}

/* --- the stations of a farm --- */

/* Return the CPU seconds that a task costs on the host with the workers. */
static double host_s(const kl_load *l, cpu_use cpu) {
    return (l->apart ? 0 : cpu.own_s) + cpu.theirs_s;
}

static kl_station cores_of(const kl_load *l, cpu_use cpu) {
    /* CPU seconds that a worker uses per second of a task, at least 1; more if tasks use several threads */
    double threads = 1;
    if (l->use.local_tasks > 0)
        threads = fmax(1, l->use.local_s / l->use.local_tasks / l->task_s);
    return (kl_station){host_s(l, cpu) / threads, l->use.cores / threads};
}

/* Return the CPU seconds for sending and receiving on the master's host. A worker is assumed to need as much
 * for a message as the master does. */
static double sending_s(const kl_load *l, uint32_t workers, double chunks) {
    double farm_s = l->use.farm_s + more_s(l, workers, chunks);
    return fmin(l->use.local_s, farm_s * local_part(l)) + (l->apart ? 0 : farm_s);
}

/* Return the seconds that the bytes of a task need on a link, in the direction that carries more bytes. */
static double link_s(const kl_load *l) {
    double part = fmax(l->to_workers, 1 - l->to_workers);
    double away = 1 - local_part(l);
    return away * part * l->use.bytes * l->per_byte_s / l->use.tasks;
}

/* A crowded link drops more packets. When the link is full, its rate falls as this power of the number of
 * workers, by 6 % for each doubling. The page docs/explanation/model.md says where the power comes
 * from. */
static const double CROWDED = 0.09;

static double crowded(const kl_load *l, uint32_t workers) {
    double fill = link_s(l) > 0 ? fmax(1, (l->task_s + l->wait_s) / link_s(l)) : INFINITY;
    return pow(fmax(1, workers / fill), CROWDED);
}

bool kl_load_known(const kl_load *l) {
    return l->use.cores > 0 && l->use.tasks > 0 && l->use.farm_s > 0 && l->chunks > 0 && l->task_s > 0 &&
           l->workers > 0 && l->beyond > 0;
}

/* if a run has more chunks per worker than this, its policy is assumed to deal smaller and smaller chunks */
static const double SEVERAL = 2;

/* Return the number of tasks in a chunk that the master can just deal in time. On encrypted sockets, the
 * part of an answer's time that depends on bytes is left out, because larger chunks do not save it. */
static double dealt_in_time(const kl_load *l, double workers) {
    double mean = l->use.tasks / l->chunks, fixed = 1;
    if (is_encrypted(l))
        fixed = kl_message_fixed_part(l->to_workers * l->use.bytes, l->chunks);
    double served = l->task_s > 0 ? (workers - 1) * among_many(l) * l->answer_s / l->task_s : 0;
    return fmax(1, fmin(fixed * served, mean));
}

/* Return a number proportional to the number of rounds. Each round deals the same part of the remaining
 * tasks, until chunks reach their least size. This is the size that the master can deal in time, or the mean
 * size in the measured run, if it is smaller. */
static double rounds_of(const kl_load *l, double workers) {
    return log1p(l->use.tasks / workers / dealt_in_time(l, workers));
}

double kl_model_chunks(const kl_load *l, uint32_t workers) {
    double times = workers / (double)l->workers;
    if (l->chunks >= l->use.tasks) /* each chunk has one task, for any number of workers */
        return l->chunks;
    if (l->chunks > SEVERAL * l->workers)
        times *= rounds_of(l, workers) / rounds_of(l, l->workers);
    return fmin(l->use.tasks, l->chunks * times);
}

double kl_model_answer_s(const kl_load *l, uint32_t workers) {
    double fixed = kl_message_fixed_part(l->to_workers * l->use.bytes, l->chunks);
    return l->answer_s * (fixed + (1 - fixed) * l->chunks / kl_model_chunks(l, workers));
}

/* If this value were 1, the core of the master's busiest thread would do all work of this thread. It would
 * also do an equal share of the other work. If the value were 0, all cores would do equal work. The value
 * lies between, because the system moves some threads to other cores. */
static const double UNEVEN = 0.5;

/* Return the cores as a station, if all were as busy as the core of the master's busiest thread. With few
 * workers, the system can keep this core for the thread. */
static kl_station masters_core_of(const kl_load *l, uint32_t workers, cpu_use cpu) {
    kl_station station = cores_of(l, cpu);
    double beyond_cores = 1 - fmin(1, l->use.cores / (workers * local_part(l)));
    if (!l->apart && !l->even)
        station.task_s += UNEVEN * stay(l) * beyond_cores * cpu.thread_s * (l->use.cores - 1.0);
    return station;
}

enum { STATIONS = KL_SHARED_LINKS + 1 };

static void stations_of(const kl_load *l, uint32_t workers, cpu_use cpu, kl_station *stations) {
    stations[KL_SHARED_NOTHING] = (kl_station){0, 1};
    stations[KL_SHARED_CORES] = cores_of(l, cpu);
    stations[KL_SHARED_CORE] = masters_core_of(l, workers, cpu);
    stations[KL_SHARED_MESSAGES] = (kl_station){cpu.thread_s, 1};
    stations[KL_SHARED_CALLBACKS] = (kl_station){l->use.callbacks_s / l->use.tasks, 1};
    stations[KL_SHARED_LINK] = (kl_station){l->own_links ? 0 : crowded(l, workers) * link_s(l), 1};
    stations[KL_SHARED_LINKS] = (kl_station){l->own_links ? link_s(l) : 0, workers};
}

double kl_model_shared_s(const kl_load *l, double chunks) {
    kl_station stations[STATIONS];
    double longest_s = 0;
    if (!kl_load_known(l))
        return 0;
    stations_of(l, l->workers, cpu_of(l, l->workers, chunks), stations);
    stations[KL_SHARED_CORE] = (kl_station){0, 1}; /* a least time: the system may use all cores evenly */
    for (int i = 0; i < STATIONS; i++)
        longest_s = fmax(longest_s, l->use.tasks * stations[i].task_s / stations[i].servers);
    return longest_s;
}

/* Return the tasks per second of the cores. A thread that wakes goes to its previous core, even if another
 * core is idle. So each core is a separate station, with its part of the workers. */
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
    return i == KL_SHARED_CORES || i == KL_SHARED_CORE ? cores_rate(&stations[i], away_s, workers)
                                                       : kl_station_rate(&stations[i], away_s, workers);
}

/* Return the CPU seconds that a task needs because its worker was switched. */
static double switching_s(const kl_load *l, uint32_t workers, cpu_use cpu) {
    kl_station cores = cores_of(l, cpu);
    double others = 1 - fmin(1, cores.servers / workers);
    if (!wakes_in_tasks(l))
        return 0;
    double rate = cores_rate(&cores, fmax(0, l->task_s + l->wait_s - cores.task_s), workers);
    return SWITCH_S * local_part(l) * rate * cores.task_s / cores.servers * others;
}

static kl_limit limit_of(const kl_load *l, uint32_t workers, double cpu_times) {
    double alone_s = l->task_s + l->wait_s;
    kl_limit limit = {.what = KL_SHARED_NOTHING, .times = alone_s / l->task_s, .known = true};
    kl_station stations[STATIONS];
    double chunks = kl_model_chunks(l, workers);
    cpu_use cpu = cpu_at(l, workers, chunks, cpu_times);
    cpu.theirs_s += switching_s(l, workers, cpu);
    stations_of(l, workers, cpu, stations);
    for (int i = KL_SHARED_CORES; i < STATIONS; i++) {
        double rate = rate_of(stations, i, alone_s, workers);
        double times = workers / (rate * l->task_s);
        if (times > limit.times)
            limit = (kl_limit){.what = (kl_shared)i,
                               .times = times,
                               .used = rate * stations[i].task_s / stations[i].servers,
                               .known = true};
    }
    limit.sending = fmin(1, sending_s(l, workers, chunks) / host_s(l, cpu) / l->use.tasks);
    return limit;
}

kl_limit kl_model_limit(const kl_load *l, uint32_t workers) {
    if (!kl_load_known(l))
        return (kl_limit){.what = KL_SHARED_NOTHING, .times = 1, .dearest = 1};
    double cpu_times = switches_dearer(l, workers);
    kl_limit limit = limit_of(l, workers, 1);
    kl_limit dear = cpu_times == 1 ? limit : limit_of(l, workers, cpu_times);
    limit.times = fmax(1, limit.times * l->beyond); /* no task can be faster than it would be alone */
    limit.dearest = fmax(1, dear.times * l->beyond) / limit.times;
    return limit;
}

/* Each worker is assumed to have its own link only if a single link would have needed more than this multiple
 * of the run's time. A smaller excess may be an error in the measured rate of the link. */
static const double MORE_THAN_ONE = 1.25;
/* To accept that each worker has its own link, the model must then explain at least this part of the run's
 * time. */
static const double EXPLAINED = 0.85;

/* Explain how the run carried more bytes than one link can carry at its measured rate. Either each worker has
 * its own link: then workers wait little for bytes, and the model explains the run's time. Or the rate was
 * measured too low: then the run's time gives the rate of the link. */
static void fit_link(kl_load *l, double elapsed_s) {
    double busy_s = link_s(l) * l->use.tasks, task_s = l->workers * elapsed_s / l->use.tasks;
    if (busy_s <= elapsed_s)
        return;
    kl_load own = *l;
    own.own_links = true;
    bool explained = limit_of(&own, l->workers, 1).times * l->task_s >= EXPLAINED * task_s;
    /* all links of workers are assumed to have the same rate */
    bool possible = busy_s <= l->workers * elapsed_s;
    l->own_links = possible && explained && busy_s > MORE_THAN_ONE * elapsed_s;
    if (!l->own_links)
        l->per_byte_s *= elapsed_s / busy_s;
}

/* The master's core counts as a limit of the run even if its computed time is longer than the run by this
 * factor. In measurements, the computed time was up to 20 % too long, with UNEVEN = 1. */
static const double EVENLY = 1.2;

/* Find out whether the system has used the cores evenly. It has, if the run took much less time than
 * the master's core would need for its station. */
static void fit_cores(kl_load *l, double elapsed_s) {
    cpu_use cpu = cpu_at(l, l->workers, l->chunks, 1);
    l->even |= masters_core_of(l, l->workers, cpu).task_s / l->use.cores * l->use.tasks > EVENLY * elapsed_s;
}

/* Return the ratio of a task's time to its time alone that the model must give for the measured run. Workers
 * may wait during tasks or between them. So the computed ratio is kept if its time lies between the measured
 * time of a task and a worker's whole time per task. Otherwise the nearer of these two times counts. */
static double times_to_fit(const kl_load *l, double alone, double elapsed_s) {
    double times = limit_of(l, l->workers, 1).times, cycle_s = l->workers * elapsed_s / l->use.tasks;
    return fmax(1 / alone, fmin(times, cycle_s / l->task_s));
}

enum { WAIT_STEPS = 4 };
/* The wait makes a task alone longer by at most this multiple of the factor by which the measured run took
 * longer. A wait that was partly hidden by sharing is longer than the difference that it made. */
static const double MOST_HIDDEN = 2;

/* Set `wait_s` and `beyond` so that the model computes this ratio for the measured run. Where tasks took
 * longer than computed, workers are assumed to wait equally long for any number of workers. A wait counts
 * only as far as it explains the difference. `beyond` corrects the rest. It multiplies the time of a task for
 * every number of workers. */
static void fit_times(kl_load *l, double times) {
    double before = limit_of(l, l->workers, 1).times, computed = before;
    double most_s = MOST_HIDDEN * (times / before - 1) * l->task_s;
    for (int i = 0; i < WAIT_STEPS && most_s > 0; i++) {
        l->wait_s = fmin(most_s, l->wait_s + fmax(0, times - computed) * l->task_s);
        computed = limit_of(l, l->workers, 1).times;
    }
    if (most_s > 0)
        l->wait_s *= (computed - before) / (times - before);
    l->beyond = times / limit_of(l, l->workers, 1).times;
}

double kl_load_fit(kl_load *l, double task_s, double elapsed_s) {
    double delay_s = l->use.tasks > 0 ? l->use.delay_s / l->use.tasks : 0;
    double alone = fmax(1 - delay_s / task_s, LEAST_ALONE);
    l->task_s = alone * task_s;
    l->beyond = 1;
    l->wait_s = 0;
    if (kl_load_known(l)) {
        fit_link(l, elapsed_s);
        fit_cores(l, elapsed_s);
        fit_times(l, times_to_fit(l, alone, elapsed_s));
    }
    return alone;
}

const char *kl_shared_name(kl_shared what) {
    static const char *const names[] = {[KL_SHARED_NOTHING] = "the tasks",
                                        [KL_SHARED_CORES] = "the cores of the master's host",
                                        [KL_SHARED_CORE] = "the master's core, which workers use, too",
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
    other.use.local_s -= fmin(other.use.local_s, less_s * local_part(l));
    other.use.bytes *= times;
    return other;
}

/* --- the uncertainty of a forecast --- */

/* standard deviation of the times of equal runs, divided by their mean, if it was not measured */
static const double RUNS_DIFFER = 0.03;
static const double RUNS_DIFFER_LEAST = 0.01;
/* relative error of the model for each doubling of the number of workers */
static const double DOUBLING = 0.02;
static const double UNKNOWN = 0.15; /* relative error for each doubling of the number of workers, if nothing
                                       is known about shared resources */
static const double SHARING = 0.3;  /* relative error of the additional time that sharing causes */
/* a normally distributed value is within this number of standard deviations of its mean with the probability
 * KL_SURE */
static const double SURE_SIGMAS = 1.645;

kl_interval kl_model_interval(double time_s, const kl_doubt *doubt, uint32_t workers, const kl_limit *limit) {
    double runs = doubt->runs > 0 ? fmax(doubt->runs, RUNS_DIFFER_LEAST) : RUNS_DIFFER;
    double reach =
        (limit->known ? DOUBLING : UNKNOWN) * log2((double)workers / (doubt->known > 0 ? doubt->known : 1));
    double sharing = SHARING * fmax(0, 1 - 1 / limit->times);
    double sigma = sqrt(runs * runs + reach * reach + sharing * sharing);
    double dearest = limit->dearest > 0 ? limit->dearest : 1;
    double longer = log(fmax(1, dearest)), shorter = log(fmin(1, dearest));
    return (kl_interval){time_s * exp(-hypot(SURE_SIGMAS * sigma, shorter)),
                         time_s * exp(hypot(SURE_SIGMAS * sigma, longer))};
}
