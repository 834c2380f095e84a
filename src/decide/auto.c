/* AUTO, the default: chunks as small as their overhead allows, as large as the master needs, and never so
 * large that one of them could decide the end. docs/reference/policies.md tells how the numbers below were
 * chosen. */
#include <math.h>

#include "decide/policy.h"

static const double OVERHEAD_PART = 0.002;      /* of a chunk's time may go into dealing it */
static const double OVERHEAD_UNKNOWN_S = 20e-6; /* of a chunk, while nothing is measured */
static const double CAP_PART = 0.25;            /* of its share a worker may get at once */
static const double LEAST_OVERHEADS = 4;        /* a shorter chunk costs more than it evens out */
static const double FLOOR_SAFETY = 2;           /* how far the master stays from its limit */
static const double LEFT_OVER = 0.5;            /* of a shortest chunk: too little for one of its own */
static const double TRUST =
    4;                    /* times as many tasks as have been measured: a pace seen on few may be far off */
enum { PROBE_PARTS = 4 }; /* a probe is at most 1/(4P) of what is left */

/* What dealing one chunk costs: the master's time for it, at the worker about as much again, and the worker's
 * wait when its last task, during which it asks, is shorter than the answer is under way. The way itself
 * costs nothing: the worker computes meanwhile. */
static double overhead_s(const kl_snapshot *s, double task_s) {
    double cost_s = 2 * s->answer_s;
    return (cost_s > 0 ? cost_s : OVERHEAD_UNKNOWN_S) + fmax(0, s->round_trip_s - task_s);
}

/* Shortest chunk that keeps all workers fed. Only what a chunk costs whatever its size belongs in it: against
 * bytes per task no grain helps, see wire_bound(). */
static double floor_s(const kl_look *look) {
    return FLOOR_SAFETY * kl_model_min_chunk_s(kl_send_s(look->snapshot), look->workers);
}

/* (11): λ·bytes of a task times the other workers is longer than a task, whatever the chunk. */
static bool wire_bound(const kl_look *look, double task_s) {
    const kl_snapshot *s = look->snapshot;
    return kl_model_min_chunk_s(s->message.per_unit_s * s->task_bytes, look->workers) > task_s;
}

/* The pace of this worker is not known: 1 task, then 2, 4, … until it is. If that of others is, no fewer than
 * the master can deal with. */
static void probe(const kl_look *look, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    const kl_worker_view *self = look->self;
    double most = (double)s->left / ((double)PROBE_PARTS * look->workers);
    if (most < 1 && self->queued_tasks > 0) {
        kl_reason(plan, "waits for its first task to tell its pace: only %llu left for %u workers",
                  kl_ull(s->left), (unsigned)look->workers);
        return;
    }
    double tasks = ldexp(1, self->chunks < 60 ? (int)self->chunks : 60);
    if (look->forecast.unit_s > 0)
        tasks = fmax(tasks, floor_s(look) / (look->forecast.unit_s * kl_task_units(s)));
    plan->decision.count = kl_whole_tasks(floor(fmin(tasks, most)), s->left);
    kl_reason(plan, "probe %llu: its pace is not known yet", kl_ull(self->chunks + 1));
}

/* Would the others have done everything left before this worker had done one more task? */
static bool withheld(const kl_look *look, double task_s, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    if (look->forecast.share_units >= kl_task_units(s))
        return false;
    double here_s = look->forecast.free_s + task_s;
    double without_s = kl_model_end_without_s(s, look->worker) + s->round_trip_s;
    if (!(here_s > without_s * (1 + 1e-9)))
        return false;
    kl_reason(plan, "withheld: a task would end here in %s, the others end all %llu left in %s",
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
    const char *wire = wire_bound(look, task_s) ? "; the wire is the bottleneck" : "";
    if (least_s > tasks * task_s && least_s > task_s) {
        tasks = share * task_s < (1 + LEFT_OVER) * least_s ? share : least_s / task_s;
        if (feed_s < least_s)
            kl_reason(plan, "at least %s: dealing costs %s; its share is %.3g tasks%s",
                      kl_say_s(least_s).text, kl_say_s(overhead).text, share, wire);
        else
            kl_reason(plan, "at least %s keeps the master ahead of %u workers; its share is %.3g tasks%s",
                      kl_say_s(feed_s).text, (unsigned)look->workers, share, wire);
    } else if (target <= cap || cap < 1) {
        double chunk_s = fmax(floor(tasks), 1) * task_s;
        kl_reason(plan, "%s of work: dealing costs %s, %.2g %% of it%s", kl_say_s(chunk_s).text,
                  kl_say_s(overhead).text, overhead / chunk_s * 100, wire);
    } else {
        kl_reason(plan, "a quarter of its share of %.3g tasks until all end in %s%s", share,
                  kl_say_s(look->forecast.left_s).text, wire);
    }
    double trusted = TRUST * (double)s->unit_s.count;
    if (tasks > trusted) {
        tasks = trusted;
        kl_reason(plan, "%.3g times the %llu tasks that have shown a pace so far", TRUST,
                  kl_ull(s->unit_s.count));
    }
    plan->decision.count = kl_whole_tasks(floor(tasks), s->left);
}

const kl_policy kl_policy_auto = {
    .name = "auto",
    .summary = "each worker's chunks from its present speed, their overhead and the time left",
    .deal = kl_deal_auto,
    .rescues = true,
};
