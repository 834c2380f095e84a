/* Policies that compute the next chunk from the number of remaining tasks, the number of workers, and the
 * earlier chunks. */
#include <math.h>

#include "decide/policy.h"

/* STATIC: deal one equal part of the tasks to each worker. A worker that asks again gets nothing until each
 * present worker has had a part. Tasks that workers return are then divided in the same way. */
static void deal_static(const kl_look *look, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    uint32_t waiting = kl_crew_total(s->crew)->unserved;
    if (waiting > 0 && look->self->chunks > 0) {
        kl_reason(plan, "this worker has had its part; %u others wait for theirs", (unsigned)waiting);
        return;
    }
    uint32_t parts = waiting ? waiting : look->workers;
    plan->decision.count = (s->left + parts - 1) / parts;
    kl_reason(plan,
              waiting ? "one of %u equal parts of %llu tasks"
                      : "one of %u equal parts of %llu returned tasks",
              (unsigned)parts, kl_ull(s->left));
}

const kl_policy kl_policy_static = {
    .name = "static",
    .summary = "every worker gets one equal part at the start",
    .deal = deal_static,
};

static void deal_ss(const kl_look *look, kl_plan *plan) {
    plan->decision.count = 1;
    kl_reason(plan, "one task at a time; %llu are left", kl_ull(look->snapshot->left));
}

const kl_policy kl_policy_ss = {
    .name = "ss",
    .summary = "self-scheduling: one task at a time",
    .deal = deal_ss,
};

static void deal_gss(const kl_look *look, kl_plan *plan) {
    plan->decision.count = kl_whole_tasks((double)look->snapshot->left / look->workers, look->snapshot->left);
    kl_reason(plan, "%llu tasks left, divided by %u workers", kl_ull(look->snapshot->left),
              (unsigned)look->workers);
}

const kl_policy kl_policy_gss = {
    .name = "gss",
    .summary = "guided self-scheduling: remaining tasks divided by the number of workers",
    .deal = deal_gss,
};

/* TSS: shrink chunks by a constant number of tasks, from M/(2P) to 1, for M tasks and P workers (Tzen and
 * Ni). */
static void deal_tss(const kl_look *look, kl_plan *plan) {
    double tasks = (double)look->snapshot->tasks, p = look->dealer->workers;
    double first = ceil(tasks / (2 * p)), steps = ceil(2 * tasks / (first + 1));
    double fall = steps > 1 ? (first - 1) / (steps - 1) : 0;
    double chunk = floor(first - fall * (double)look->dealer->course.chunks);
    plan->decision.count = kl_whole_tasks(chunk, look->snapshot->left);
    kl_reason(plan, "chunk %llu: the first chunk had %.0f tasks, and each further one has %.3g fewer",
              kl_ull(look->dealer->course.chunks + 1), first, fall);
}

const kl_policy kl_policy_tss = {
    .name = "tss",
    .summary = "trapezoid self-scheduling: chunks shrink by a constant amount",
    .deal = deal_tss,
};

/* Number of tasks that a worker does first, to measure their times. They are enough for a standard deviation,
 * and too few to delay the end of the run. */
enum { AF_FIRST_TASKS = 10 };

/* AF (Banicescu and Liu 2000). A worker's task times have the mean μ and the standard deviation σ. D = Σσ²/μ
 * and T = 1/Σ(1/μ) are sums over the present workers. R is the number of tasks left. */
static void deal_af(const kl_look *look, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    double units = kl_task_units(s), left = (double)s->left;
    if (look->self->unit_s.count < 2 || !(look->self->unit_s.mean > 0)) {
        plan->decision.count =
            kl_whole_tasks(fmin(AF_FIRST_TASKS, floor(left / (4.0 * look->workers))), s->left);
        kl_reason(plan,
                  "a first chunk of %llu tasks: mean and deviation of this worker's task times are not known",
                  kl_ull(plan->decision.count));
        return;
    }
    const kl_crew_sums *crew = kl_crew_total(s->crew);
    /* a worker without measurements counts as if it had the mean values of the other workers */
    double all = (double)look->workers / crew->steady;
    double d = units * crew->variance_rates * all, rates = crew->unit_rates / units * all;
    double mean = units * look->self->unit_s.mean, t = 1 / rates, share = left * t / mean;
    /* Compute chunk = (D + 2TR − √(D² + 4DTR))/(2μ), where μ is this worker's mean. The form used here loses
     * no digits, because it subtracts no large numbers. */
    double both = d + 2 * t * left;
    double chunk = 2 * t * left * t * left / (both + sqrt(d * d + 4 * d * t * left)) / mean;
    plan->decision.count = kl_whole_tasks(floor(chunk), s->left);
    kl_reason(plan,
              "%.3g tasks, from a share of %.3g: a task takes %s, and the spread D of all workers is %s",
              chunk, share, kl_say_s(mean).text, kl_say_s(d).text);
}

const kl_policy kl_policy_af = {
    .name = "af",
    .summary = "adaptive factoring: chunks from mean and deviation of each worker's task times",
    .deal = deal_af,
};
