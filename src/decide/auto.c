/* AUTO, the default policy. Chunks are as small as their overhead and the master's time allow, and never
 * so large that they delay the end. The page docs/reference/policies.md explains the constants. */
#include <math.h>

#include "decide/policy.h"

/* dealing a chunk should cost at most this part of the chunk's time */
static const double OVERHEAD_PART = 0.002;
/* seconds that dealing a chunk is assumed to cost, until they are measured */
static const double OVERHEAD_UNKNOWN_S = 20e-6;
/* a chunk is at most this part of the worker's share of the remaining tasks */
static const double CAP_PART = 0.25;
/* a chunk takes at least this multiple of the time that dealing it costs */
static const double LEAST_OVERHEADS = 4;
/* a chunk takes at least this multiple of the time in which the master serves all workers once */
static const double FLOOR_SAFETY = 2;
/* a chunk is the worker's whole share if less than this part of the shortest chunk would otherwise remain */
static const double LEFT_OVER = 0.5;
/* A chunk has at most this multiple of the number of measured tasks. A speed that was measured with few tasks
 * may be wrong. */
static const double TRUST = 4;
/* a probe is at most the part 1/(4P) of the remaining tasks; P: number of workers */
enum { PROBE_PARTS = 4 };

/* Return the seconds that dealing one chunk costs: the master's time, about the same time at the worker, and
 * the worker's wait. The worker asks for a chunk during its last task. It waits only if the answer takes
 * longer than this task. */
static double overhead_s(const kl_snapshot *s, double task_s) {
    double cost_s = 2 * s->answer_s;
    return (cost_s > 0 ? cost_s : OVERHEAD_UNKNOWN_S) + fmax(0, s->round_trip_s - task_s);
}

/* Return the seconds of the shortest chunk with which the master can serve all workers. Only the fixed cost
 * of a chunk counts, because larger chunks do not reduce the bytes per task (see wire_bound()). */
static double floor_s(const kl_look *look) {
    return FLOOR_SAFETY * kl_model_min_chunk_s(kl_send_s(look->snapshot), look->workers);
}

/* Return whether the link limits the run: sending one task to every other worker takes longer than a task
 * (equation 11). */
static bool wire_bound(const kl_look *look, double task_s) {
    const kl_snapshot *s = look->snapshot;
    return kl_model_min_chunk_s(s->message.per_unit_s * s->task_bytes, look->workers) > task_s;
}

/* Deal a chunk to a worker whose pace is not known, as a probe: 1 task, then 2, 4, … tasks. If the pace of
 * other workers is known, a probe lasts at least as long as the master needs to serve all workers. */
static void probe(const kl_look *look, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    const kl_worker_view *self = look->self;
    double most = (double)s->left / ((double)PROBE_PARTS * look->workers);
    if (most < 1 && self->queued_tasks > 0) {
        kl_reason(plan,
                  "waits for its first task, which shows its pace: only %llu tasks are left for %u workers",
                  kl_ull(s->left), (unsigned)look->workers);
        return;
    }
    double tasks = ldexp(1, self->chunks < 60 ? (int)self->chunks : 60);
    if (look->forecast.unit_s > 0)
        tasks = fmax(tasks, floor_s(look) / (look->forecast.unit_s * kl_task_units(s)));
    plan->decision.count = kl_whole_tasks(floor(fmin(tasks, most)), s->left);
    kl_reason(plan, "probe %llu: the worker's pace is not known yet", kl_ull(self->chunks + 1));
}

/* Return whether the other workers would finish all remaining tasks before this worker finishes one more
 * task. */
static bool withheld(const kl_look *look, double task_s, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    if (look->forecast.share_units >= kl_task_units(s))
        return false;
    double here_s = look->forecast.free_s + task_s;
    double without_s = kl_model_end_without_s(s, look->worker) + s->round_trip_s;
    if (!(here_s > without_s * (1 + 1e-9)))
        return false;
    kl_reason(
        plan,
        "withheld: a task at this worker would end in %s, but the other workers finish all %llu tasks in %s",
        kl_say_s(here_s).text, kl_ull(s->left), kl_say_s(without_s).text);
    return true;
}

void kl_deal_auto(const kl_look *look, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    if (!(kl_worker_rate(look->self) > 0)) {
        probe(look, plan);
        return;
    }
    double units = kl_task_units(s), task_s = look->forecast.unit_s * units;
    if (withheld(look, task_s, plan))
        return;
    double share = look->forecast.share_units / units, overhead = overhead_s(s, task_s);
    double target = overhead / OVERHEAD_PART / task_s, cap = CAP_PART * share, tasks = fmin(target, cap);
    double feed_s = floor_s(look), least_s = fmax(feed_s, LEAST_OVERHEADS * overhead);
    const char *wire = wire_bound(look, task_s) ? "; the link is the bottleneck" : "";
    if (least_s > tasks * task_s && least_s > task_s) {
        tasks = share * task_s < (1 + LEFT_OVER) * least_s ? share : least_s / task_s;
        if (feed_s < least_s)
            kl_reason(
                plan,
                "chunks of at least %s of work, because dealing costs %s; the worker's share is %.3g tasks%s",
                kl_say_s(least_s).text, kl_say_s(overhead).text, share, wire);
        else
            kl_reason(plan,
                      "chunks of at least %s of work, so that the master can serve %u workers; the worker's "
                      "share is %.3g tasks%s",
                      kl_say_s(feed_s).text, (unsigned)look->workers, share, wire);
    } else if (target <= cap || cap < 1) {
        double chunk_s = fmax(floor(tasks), 1) * task_s;
        kl_reason(plan, "%s of work; dealing costs %s, which is %.2g %% of it%s", kl_say_s(chunk_s).text,
                  kl_say_s(overhead).text, overhead / chunk_s * 100, wire);
    } else {
        kl_reason(plan, "a quarter of the worker's share of %.3g tasks; all workers end in %s%s", share,
                  kl_say_s(look->forecast.left_s).text, wire);
    }
    double trusted = TRUST * (double)s->unit_s.count;
    if (tasks > trusted) {
        tasks = trusted;
        kl_reason(plan, "%.3g times the %llu tasks measured so far, because the pace may be wrong", TRUST,
                  kl_ull(s->unit_s.count));
    }
    plan->decision.count = kl_whole_tasks(floor(tasks), s->left);
}

const kl_policy kl_policy_auto = {
    .name = "auto",
    .summary = "chunks from each worker's present speed, their overhead and the time left",
    .deal = kl_deal_auto,
    .rescues = true,
    .forecasts = true,
};
