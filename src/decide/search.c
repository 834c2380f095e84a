/* FSC and DPF search their factor (César et al. 2006). The next run is forecast with each factor of {0.1,
 * 0.2, … 1}, and the factor of the shortest run is taken. */
#include <math.h>
#include <stdlib.h>

#include "decide/policy.h"

/* Greatest number of simulated workers. With more workers, every k-th worker stands for k. Tasks, the
 * master's time and the link are scaled in the same way, so the master is as busy as in the real run. */
enum { MOST_WORKERS = 128, FACTORS = 10 };

/* A model of the next run. Speeds and times are constant in it, so only the factor matters. */
typedef struct trial {
    kl_dealer dealer; /* a dealer with the factor under trial */
    kl_snapshot snapshot;
} trial;

static kilter_status deal(void *self, uint32_t worker, bool again, double now_s, uint64_t *count) {
    trial *t = self;
    (void)again, (void)now_s;
    kl_look look = {
        .dealer = &t->dealer, .snapshot = &t->snapshot, .worker = worker, .workers = t->snapshot.present};
    *count = kl_next_chunk(&look, &t->dealer.course);
    return KILTER_OK;
}

static void dealt(void *self, const kl_play_chunk *chunk) {
    trial *t = self;
    t->snapshot.left -= chunk->count;
    t->snapshot.left_units = (double)t->snapshot.left;
}

static void reported(void *self, const kl_play_segment *segment, double now_s) {
    (void)self, (void)segment, (void)now_s;
}

/* Fill in a host for each worker, with the worker's mean speed. A worker without measurements gets the mean
 * speed of all workers. */
static uint32_t describe_hosts(const kl_snapshot *s, uint32_t step, kl_host_group *groups) {
    uint32_t seen = 0, count = 0;
    for (uint32_t i = 0; i < s->slots; i++) {
        const kl_worker_view *v = &s->workers[i];
        if (!v->present || seen++ % step != 0)
            continue;
        double unit_s = v->unit_s.mean > 0 ? v->unit_s.mean : s->unit_s.mean;
        groups[count++] = (kl_host_group){.count = 1, .host = {.speed = 1 / unit_s}};
    }
    return count;
}

static kl_cluster describe_cluster(const kl_snapshot *s, kl_host_group *groups, uint32_t count, double part) {
    double byte_s = s->message.per_unit_s;
    return (kl_cluster){.groups = groups,
                        .group_count = count,
                        .workers = count,
                        .master_apart = true,
                        .master = {.speed = 1},
                        .latency_s = s->message.fixed_s / 2,
                        .bytes_per_s = byte_s > 0 ? part / byte_s : INFINITY};
}

/* Return the seconds of the run with this factor; INFINITY: they cannot be computed. */
static double time_with(const kl_dealer *dealer, const kl_snapshot *small, const kl_play_run *run,
                        kl_play *play, double factor) {
    trial t = {.dealer = {.policy = dealer->policy, .factor = factor, .workers = small->present},
               .snapshot = *small};
    kl_play_dealer trying = {.self = &t, .deal = deal, .dealt = dealt, .reported = reported};
    kl_play_outcome out;
    return kl_play_run_out(play, run, &trying, &out, NULL) == KILTER_OK ? out.elapsed_s : INFINITY;
}

static void try_factors(kl_dealer *dealer, const kl_snapshot *small, const kl_play_run *run, kl_play *play) {
    double best_s = INFINITY;
    for (int tenths = 1; tenths <= FACTORS; tenths++) {
        double factor = tenths / (double)FACTORS, time_s = time_with(dealer, small, run, play, factor);
        if (time_s < best_s) { /* the first factor wins ties */
            best_s = time_s;
            dealer->factor = factor;
        }
    }
    dealer->expected_s = isfinite(best_s) ? best_s : 0;
}

kilter_status kl_search_factor(kl_dealer *dealer, const kl_snapshot *s) {
    uint32_t step = (s->present + MOST_WORKERS - 1) / MOST_WORKERS;
    kl_host_group *groups = calloc(s->present / step + 1, sizeof *groups);
    if (!groups)
        return KILTER_ERR_MEMORY;
    uint32_t count = describe_hosts(s, step, groups);
    double part = (double)count / s->present;
    kl_cluster cluster = describe_cluster(s, groups, count, part);
    kl_snapshot small = *s;
    small.present = count;
    small.tasks = small.left = (uint64_t)ceil(part * (double)s->tasks);
    small.units = small.left_units = (double)small.left;
    small.answer_s = s->answer_s / part;
    kl_play_run run = {.tasks = small.tasks,
                       .even_s = kl_task_units(s),
                       .task_bytes = s->task_bytes,
                       .result_bytes = s->result_bytes,
                       .answer_s = small.answer_s,
                       .lead_s = kl_lead_s(s)};
    kl_play *play = kl_play_new(&cluster);
    if (play)
        try_factors(dealer, &small, &run, play);
    kl_play_free(play);
    free(groups);
    return play ? KILTER_OK : KILTER_ERR_MEMORY;
}
