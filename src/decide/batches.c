/* Policies that divide the remaining tasks into batches, and a batch into chunks, one for each request. The
 * policies differ in three points: when a batch begins, how large it is (refill), and how workers are
 * weighted. */
#include <math.h>

#include "decide/policy.h"

static uint64_t chunks_prepared(const kl_course *course) {
    uint64_t chunks = 0;
    for (uint32_t i = 0; i < course->batches; i++)
        chunks += course->batch[i].chunks;
    return chunks;
}

/* Return the number of tasks that are in no batch yet. The paper on DAF calls this number R_j. */
static uint64_t tasks_free(const kl_look *look, const kl_course *course) {
    double held = 0;
    for (uint32_t i = 0; i < course->batches; i++)
        held += (double)course->batch[i].chunks * ceil(course->batch[i].tasks);
    double left = (double)look->snapshot->left;
    return held < left ? (uint64_t)(left - held) : 0;
}

static void prepare(kl_course *course, uint64_t chunks, double tasks) {
    if (chunks == 0 || course->batches == KL_BATCHES)
        return;
    course->batch[course->batches++] = (kl_batch){chunks, fmax(tasks, 1)};
    course->opened++;
}

static void hand_out(kl_course *course) {
    if (course->batches == 0 || --course->batch[0].chunks > 0)
        return;
    for (uint32_t i = 1; i < course->batches; i++)
        course->batch[i - 1] = course->batch[i];
    course->batches--;
}

/* Return the number of tasks in the smallest chunks with which the master can serve all workers. */
static double lower_limit(const kl_look *look) {
    const kl_snapshot *s = look->snapshot;
    double task_s = s->unit_s.mean * kl_task_units(s);
    double limit_s = kl_model_min_chunk_s(kl_send_s(s), look->workers);
    return task_s > 0 ? fmax(1, limit_s / task_s) : 1;
}

static void refill_fsc(const kl_look *look, kl_course *course) {
    if (course->batches == 0)
        prepare(course, look->workers,
                round(look->dealer->factor * (double)look->snapshot->tasks / look->workers));
}

static void refill_half(const kl_look *look, kl_course *course) {
    if (course->batches == 0)
        prepare(course, look->workers, (double)look->snapshot->left / (2.0 * look->workers));
}

/* AWF-C: take a chunk from all remaining tasks at each request. */
static void refill_each(const kl_look *look, kl_course *course) {
    course->batches = 0;
    prepare(course, 1, (double)look->snapshot->left / (2.0 * look->workers));
}

/* Divide the next batch of free_tasks into chunks of `chunk` tasks, as the policies DPF and DAF do. */
static void cut(const kl_look *look, kl_course *course, uint64_t free_tasks, double chunk) {
    uint64_t n = look->workers;
    if (n == 0 || free_tasks < n) { /* if there are fewer tasks than workers, each chunk is a single task */
        prepare(course, free_tasks, 1);
    } else if (chunk < lower_limit(look)) {
        /* the master cannot keep all workers busy with chunks of this size, so deal the remaining tasks in n
         * chunks of nearly equal size */
        uint64_t smaller = free_tasks / n, larger = smaller + 1;
        prepare(course, free_tasks % n, (double)larger);
        prepare(course, n - free_tasks % n, (double)smaller);
    } else {
        prepare(course, n, floor(chunk));
    }
}

static void refill_by_factor(const kl_look *look, kl_course *course, double factor) {
    if (course->batches == 0)
        cut(look, course, look->snapshot->left, factor * (double)look->snapshot->left / look->workers);
}

static void refill_dpf(const kl_look *look, kl_course *course) {
    refill_by_factor(look, course, look->dealer->factor);
}

enum { DAF_FIRST_PERCENT = 50 };

static void refill_daf(const kl_look *look, kl_course *course) {
    if (look->snapshot->run == 0 || look->snapshot->unit_s.count < 2) {
        refill_by_factor(look, course, DAF_FIRST_PERCENT / 100.0);
        return;
    }
    while (course->opened < 2 || 2 * chunks_prepared(course) < look->workers) {
        uint32_t before = course->batches;
        /* Plan one batch of DAF. Use DAF's equation (1) for the first batch, when all workers are idle, and
         * its equation (2) for later batches. */
        uint64_t free_tasks = tasks_free(look, course), n = look->workers;
        double x = (course->opened == 0 ? 1 : 2) + kl_stat_cv(&look->snapshot->unit_s) * sqrt((double)n / 2);
        cut(look, course, free_tasks, (double)free_tasks / (x * (double)n));
        if (course->batches == before)
            break; /* every task is in a batch already */
    }
}

/* The measurements from which the workers' weights are computed. */
typedef enum speed { PACE, PRIOR, PERFORMANCE } speed;

/* Return a worker's speed in any unit; 0: not known. */
static double speed_of(const kl_worker_view *worker, speed speed) {
    if (speed == PACE)
        return kl_worker_rate(worker);
    if (speed == PRIOR)
        return worker->prior_rate;
    double unit_s = kl_wap_unit_s(&worker->wap);
    return unit_s > 0 ? 1 / unit_s : 0;
}

/* Return the mean speed of the present workers whose speed is known; 0: no speed is known. */
static double mean_speed(const kl_look *look, speed speed) {
    const kl_crew_sums *sums = kl_crew_total(look->snapshot->crew);
    if (speed == PACE)
        return kl_crew_mean_rate(look->snapshot->crew);
    if (speed == PRIOR)
        return sums->with_prior ? sums->priors / sums->with_prior : 0;
    return sums->with_wap ? sums->waps / sums->with_wap : 0;
}

/* Return a worker's weight: its speed divided by the mean speed. If one of these two speeds is not known,
 * return 1. */
static double relative(const kl_worker_view *worker, speed speed, double mean) {
    double own = speed_of(worker, speed);
    return own > 0 && mean > 0 ? own / mean : 1;
}

/* Return whether the workers' weights must be computed now. AWF-B computes weights for every batch. WF
 * computes weights once, after the first batch. */
static bool weights_due(const kl_look *look, const kl_course *course) {
    if (look->dealer->policy->weighting == KL_PER_BATCH)
        return course->weighed != course->opened;
    return look->dealer->policy->weighting == KL_FIXED && course->weighed == 0 && course->opened > 1 &&
           mean_speed(look, PACE) > 0;
}

/* Return the measurements from which weights are computed. AWF uses speeds of earlier runs until this run
 * has measurements. */
static speed measured_by(const kl_look *look) {
    if (look->dealer->policy->weighting == KL_FIXED)
        return PACE;
    return mean_speed(look, PERFORMANCE) > 0 ? PERFORMANCE : PRIOR;
}

static double weight_of(const kl_look *look, const kl_course *course) {
    kl_weighting how = look->dealer->policy->weighting;
    if (how == KL_EQUAL)
        return 1;
    double prior = how == KL_FIXED ? mean_speed(look, PRIOR) : 0;
    if (prior > 0)
        return relative(look->self, PRIOR, prior);
    if (how == KL_PER_CHUNK || weights_due(look, course))
        return relative(look->self, measured_by(look), mean_speed(look, measured_by(look)));
    return look->worker < look->dealer->slots ? look->dealer->weights[look->worker] : 1;
}

uint64_t kl_next_chunk(const kl_look *look, kl_course *course) {
    look->dealer->policy->refill(look, course);
    uint64_t count = kl_whole_tasks(course->batch[0].tasks, look->snapshot->left);
    hand_out(course);
    return count;
}

static void say_batch(const kl_look *look, const kl_course *course, double weight, kl_plan *plan) {
    unsigned long long number = course->opened - (course->batches - 1);
    const kl_batch *batch = &course->batch[0];
    if (look->dealer->policy->weighting != KL_EQUAL)
        kl_reason(plan, "batch %llu: chunks of %.4g tasks times weight %.3g", number, batch->tasks, weight);
    else if (look->dealer->expected_s > 0)
        kl_reason(plan,
                  "batch %llu: chunks of %.4g tasks, %llu chunks left; with factor %.1g the run should end "
                  "soonest, in %s",
                  number, ceil(batch->tasks), (unsigned long long)batch->chunks, look->dealer->factor,
                  kl_say_s(look->dealer->expected_s).text);
    else
        kl_reason(plan, "batch %llu: chunks of %.4g tasks, %llu chunks left", number, ceil(batch->tasks),
                  (unsigned long long)batch->chunks);
}

static void deal_batches(const kl_look *look, kl_plan *plan) {
    kl_course course = look->dealer->course;
    look->dealer->policy->refill(look, &course);
    double weight = weight_of(look, &course);
    plan->decision.count = kl_whole_tasks(course.batch[0].tasks * weight, look->snapshot->left);
    say_batch(look, &course, weight, plan);
}

static void dealt_batches(kl_dealer *dealer, const kl_look *look, const kl_plan *plan) {
    (void)plan;
    dealer->policy->refill(look, &dealer->course);
    if (weights_due(look, &dealer->course)) {
        speed speed = measured_by(look);
        double mean = mean_speed(look, speed);
        for (uint32_t i = 0; i < look->snapshot->slots; i++)
            dealer->weights[i] = relative(&look->snapshot->workers[i], speed, mean);
        dealer->course.weighed = dealer->course.opened;
    }
    hand_out(&dealer->course);
}

#define BATCHES .deal = deal_batches, .dealt = dealt_batches

const kl_policy kl_policy_fsc = {
    .name = "fsc",
    .summary = "fixed-size chunking: batches of a fixed part of all tasks",
    .factor = 0.25,
    .refill = refill_fsc,
    BATCHES,
};

const kl_policy kl_policy_fac2 = {
    .name = "fac2",
    .summary = "factoring: every batch is half of the remaining tasks",
    .refill = refill_half,
    BATCHES,
};

const kl_policy kl_policy_wf = {
    .name = "wf",
    .summary = "weighted factoring: fac2 with chunks weighted by speeds that are measured once",
    .refill = refill_half,
    .weighting = KL_FIXED,
    BATCHES,
};

const kl_policy kl_policy_awf_b = {
    .name = "awf-b",
    .summary = "adaptive weighted factoring: fac2 with weights renewed for every batch",
    .refill = refill_half,
    .weighting = KL_PER_BATCH,
    BATCHES,
};

const kl_policy kl_policy_awf_c = {
    .name = "awf-c",
    .summary = "adaptive weighted factoring: half of the remaining tasks and weights renewed for every chunk",
    .refill = refill_each,
    .weighting = KL_PER_CHUNK,
    BATCHES,
};

const kl_policy kl_policy_dpf = {
    .name = "dpf",
    .summary = "dynamic predictive factoring: every batch is a fixed part of the remaining tasks",
    .factor = 0.25,
    .refill = refill_dpf,
    BATCHES,
};

const kl_policy kl_policy_daf = {
    .name = "daf",
    .summary = "dynamic adjusting factoring: batches from mean and standard deviation of a task's time",
    .refill = refill_daf,
    BATCHES,
};
