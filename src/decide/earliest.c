/* Policy ECT, earliest completion: each task goes to the worker that would finish it first (Buaklee, Tracy,
 * Vernon, Wright 2002). The policy is meant for runs with few tasks per worker, as in fork-join programs.
 * Each worker gets its whole share in one message. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide/policy.h"

static double task_end_s(const kl_lane *lane, double task_units, uint64_t tasks) {
    return lane->free_s + (double)tasks * task_units / lane->rate;
}

/* A heap of lanes (workers). At its top is the lane that would end one more task first. */
typedef struct contest {
    const kl_lane *lanes;
    double task_units;
    uint64_t *counts;
    uint32_t *heap, size;
} contest;

static bool ends_before(const contest *c, uint32_t a, uint32_t b) {
    double a_s = task_end_s(&c->lanes[a], c->task_units, c->counts[a] + 1);
    double b_s = task_end_s(&c->lanes[b], c->task_units, c->counts[b] + 1);
    return a_s < b_s || (a_s == b_s && a < b);
}

static void sift_down(contest *c, uint32_t at) {
    uint32_t lane = c->heap[at];
    for (uint32_t child; (child = 2 * at + 1) < c->size; at = child) {
        if (child + 1 < c->size && ends_before(c, c->heap[child + 1], c->heap[child]))
            child++;
        if (!ends_before(c, c->heap[child], lane))
            break;
        c->heap[at] = c->heap[child];
    }
    c->heap[at] = lane;
}

/* Return the seconds until all lanes (workers) would end together if tasks could be cut anywhere. Lanes that
 * are busy for longer than this time get no tasks, and are left out. The search starts with all lanes. In
 * each step, it leaves out busy lanes, which shortens the time, until no further lane is left out. */
static double level_s(const kl_lane *lanes, uint32_t count, double units) {
    for (double level = INFINITY;;) {
        double rate = 0, owed = 0;
        for (uint32_t i = 0; i < count; i++)
            if (lanes[i].free_s < level) {
                rate += lanes[i].rate;
                owed += lanes[i].rate * lanes[i].free_s;
            }
        double next = (units + owed) / rate;
        if (!(next < level * (1 - 1e-12)))
            return level;
        level = next;
    }
}

/* Assign the tasks that end before the time of level_s(), and return how many tasks are not assigned yet. By
 * the rule of earliest completion, the lanes get these tasks in any case, so the heap is not needed for them.
 * Give each lane one task less than computed, because the time is rounded. */
static uint64_t assign_below_level(contest *c, uint32_t count, uint64_t tasks) {
    double level = level_s(c->lanes, count, (double)tasks * c->task_units);
    for (uint32_t i = 0; i < count; i++) {
        double below = floor((level - c->lanes[i].free_s) * c->lanes[i].rate / c->task_units) - 1;
        c->counts[i] = !(below > 0) ? 0 : below < (double)tasks ? (uint64_t)below : tasks;
        tasks -= c->counts[i];
    }
    return tasks;
}

kilter_status kl_assign_earliest(const kl_lane *lanes, uint32_t count, double task_units, uint64_t tasks,
                                 uint64_t *counts) {
    if (count == 0)
        return KILTER_OK;
    contest c = {lanes, task_units, counts, malloc(count * sizeof(uint32_t)), count};
    if (!c.heap)
        return KILTER_ERR_MEMORY;
    memset(counts, 0, count * sizeof *counts);
    uint64_t left = task_units > 0 ? assign_below_level(&c, count, tasks) : tasks;
    for (uint32_t i = 0; i < count; i++)
        c.heap[i] = i;
    for (uint32_t i = count / 2; i > 0; i--)
        sift_down(&c, i - 1);
    for (; left > 0 && task_units > 0; left--) {
        counts[c.heap[0]]++;
        sift_down(&c, 0);
    }
    counts[c.heap[0]] += left; /* tasks without work all go to the lane that is free first */
    free(c.heap);
    return KILTER_OK;
}

double kl_assignment_end_s(const kl_lane *lanes, uint32_t count, double task_units, const uint64_t *counts) {
    double end_s = 0;
    for (uint32_t i = 0; i < count; i++)
        if (counts[i] > 0)
            end_s = fmax(end_s, task_end_s(&lanes[i], task_units, counts[i]));
    return end_s;
}

/* --- policy ECT --- */

/* The workers of known rate in a run that is about to begin, as lanes. */
typedef struct field {
    kl_lane *lanes;    /* the lane of each worker of known rate */
    uint32_t *workers; /* workers[i]: the worker of lane i */
    uint64_t *counts;  /* counts[i]: number of tasks that lane i gets */
    uint32_t count;
} field;

/* Return the lane of a worker whose rate is known. */
static kl_lane lane_of(const kl_snapshot *s, uint32_t worker) {
    const kl_worker_view *v = &s->workers[worker];
    return kl_worker_lane(v, kl_worker_rate(v), s->now_s);
}

static kilter_status look_at_known(const kl_snapshot *s, field *f) {
    size_t room = (size_t)s->present + 1;
    *f = (field){calloc(room, sizeof *f->lanes), calloc(room, sizeof *f->workers),
                 calloc(room, sizeof *f->counts), 0};
    if (!f->lanes || !f->workers || !f->counts)
        return KILTER_ERR_MEMORY;
    for (uint32_t i = 0; i < s->slots; i++)
        if (s->workers[i].present && kl_worker_rate(&s->workers[i]) > 0) {
            f->lanes[f->count] = lane_of(s, i);
            f->workers[f->count++] = i;
        }
    return KILTER_OK;
}

/* Give one task to each worker whose rate is not known, but give away at most half of all tasks. Return the
 * number of tasks given. */
static uint64_t give_benchmarks(kl_dealer *dealer, const kl_snapshot *s) {
    uint64_t given = 0;
    for (uint32_t i = 0; i < s->slots && given < s->left / 2; i++)
        if (s->workers[i].present && !(kl_worker_rate(&s->workers[i]) > 0)) {
            dealer->shares[i] = 1;
            given++;
        }
    return given;
}

/* Return the seconds that the run would take if all workers got equally many tasks, for comparison. */
static double equal_end_s(const field *f, double task_units, uint64_t tasks) {
    double end_s = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        uint64_t group = tasks / f->count + (i < tasks % f->count);
        if (group > 0)
            end_s = fmax(end_s, task_end_s(&f->lanes[i], task_units, group));
    }
    return end_s;
}

static void describe(kl_dealer *dealer, const field *f, double task_units, uint64_t tasks,
                     uint64_t benchmarks) {
    kl_assignment *a = &dealer->assignment;
    char unknown[40] = "";
    a->decision = (kl_decision){.kind = KL_DECIDES_ASSIGN, .subject = KL_SUBJECT_ALL};
    for (uint32_t i = 0; i < f->count; i++)
        a->decision.count += f->counts[i] > 0;
    a->idle = f->count - (uint32_t)a->decision.count;
    a->end_s = kl_assignment_end_s(f->lanes, f->count, task_units, f->counts);
    a->decision.gain_s = equal_end_s(f, task_units, tasks) - a->end_s;
    if (benchmarks > 0)
        snprintf(unknown, sizeof unknown, "; %u of unknown speed: 1 task", (unsigned)benchmarks);
    snprintf(a->decision.reason, sizeof a->decision.reason,
             "%llu tasks to %u workers, all done in %s (equal shares: %s)%s; too slow to help: %u",
             kl_ull(tasks), (unsigned)a->decision.count, kl_say_s(a->end_s).text,
             kl_say_s(a->end_s + a->decision.gain_s).text, unknown, (unsigned)a->idle);
}

static kilter_status assign(kl_dealer *dealer, const kl_snapshot *s, field *f) {
    memset(dealer->shares, 0, dealer->slots * sizeof *dealer->shares);
    uint64_t benchmarks = give_benchmarks(dealer, s), tasks = s->left - benchmarks;
    double units = kl_task_units(s);
    kilter_status status = kl_assign_earliest(f->lanes, f->count, units, tasks, f->counts);
    if (status != KILTER_OK)
        return status;
    for (uint32_t i = 0; i < f->count; i++)
        dealer->shares[f->workers[i]] = f->counts[i];
    dealer->undealt = s->left;
    describe(dealer, f, units, tasks, benchmarks);
    return KILTER_OK;
}

static kilter_status begin_ect(kl_dealer *dealer, const kl_snapshot *s) {
    field f;
    kilter_status status = look_at_known(s, &f);
    if (status == KILTER_OK && f.count > 0 && s->left > 0)
        status = assign(dealer, s, &f);
    free(f.lanes);
    free(f.workers);
    free(f.counts);
    return status;
}

bool kl_dealer_assignment(const kl_dealer *dealer, kl_assignment *assignment) {
    if (dealer->assignment.decision.count == 0)
        return false;
    *assignment = dealer->assignment;
    return true;
}

bool kl_dealer_leaves_out(const kl_dealer *dealer, const kl_snapshot *s, uint32_t worker,
                          char reason[KL_REASON_BYTES]) {
    const kl_worker_view *v = &s->workers[worker];
    if (dealer->undealt == 0 || worker >= dealer->slots || dealer->shares[worker] > 0 || v->chunks > 0 ||
        !(kl_worker_rate(v) > 0))
        return false;
    kl_lane lane = lane_of(s, worker);
    snprintf(reason, KL_REASON_BYTES,
             "too slow to help: this worker would end a task only in %s, but the other workers finish all "
             "tasks in %s",
             kl_say_s(task_end_s(&lane, kl_task_units(s), 1)).text, kl_say_s(dealer->assignment.end_s).text);
    return true;
}

uint64_t kl_dealer_share(const kl_dealer *d, uint32_t worker) {
    return d->undealt > 0 && worker < d->slots ? d->shares[worker] : 0;
}

/* Deal a worker its share, scaled to the remaining tasks. The chunk has another size than the share only if
 * tasks have different sizes or were returned. */
static void deal_share(const kl_look *look, uint64_t share, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    plan->decision.count =
        kl_whole_tasks((double)s->left * (double)share / (double)look->dealer->undealt, s->left);
    if (kl_worker_rate(look->self) > 0)
        kl_reason(plan,
                  "its share of %llu tasks: each goes to the worker that would end it first; all end in %s",
                  kl_ull(s->tasks), kl_say_s(look->dealer->assignment.end_s).text);
    else
        kl_reason(plan, "one task as a benchmark: the worker's pace is not known yet");
}

static void deal_ect(const kl_look *look, kl_plan *plan) {
    uint64_t share = kl_dealer_share(look->dealer, look->worker);
    if (share > 0)
        deal_share(look, share, plan);
    else if (look->dealer->undealt == 0 || (look->self->chunks > 0 && look->self->queued_tasks == 0))
        /* either the assignment is outdated, or the worker has done its share while others have not asked for
         * their shares */
        kl_deal_auto(look, plan);
    else if (!kl_dealer_leaves_out(look->dealer, look->snapshot, look->worker, plan->decision.reason))
        kl_reason(plan, "waits: the %llu tasks that are left belong to the shares of other workers",
                  kl_ull(look->dealer->undealt));
}

static void dealt_ect(kl_dealer *dealer, const kl_look *look, const kl_plan *plan) {
    uint64_t share = kl_dealer_share(look->dealer, look->worker),
             dealt = plan->cut_short && plan->decision.count < share ? plan->decision.count : share;
    if (share == 0)
        return;
    dealer->undealt -= dealt;
    dealer->shares[look->worker] -= dealt;
}

const kl_policy kl_policy_ect = {
    .name = "ect",
    .summary = "earliest completion: whole shares; each task goes to the worker that would end it first",
    .begin = begin_ect,
    .deal = deal_ect,
    .dealt = dealt_ect,
    .rescues = true,
    .forecasts = true,
};
