/* Rescue the tasks of late workers when nothing is left to deal. Tasks that a late worker has not begun go to
 * waiting workers, and copies of its last tasks start on other workers. Both must save enough to pay for the
 * messages and for errors of the forecast. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "decide/policy.h"

static const double MOVE_UNKNOWN_S = 20e-6; /* cost of moving tasks until it is measured */
static const double RECALL_PAYS = 2;        /* least gain, as a multiple of the cost of moving */
static const double UNANSWERED_S = 20e-3;   /* a working worker answers a recall within this time, */
static const double UNATTENDED_S = 5e-3;    /* unless it answers only after a task longer than this */
static const double COPY_PART = 0.1;        /* least gain of a copy, as a part of the task's remaining time */
static const double STOPPED = 0.01;         /* chance that a worker that reports nothing has stopped */
static const double MISJUDGED = 0.2;        /* chance that a worker without measured tasks is slow */
static const double MISJUDGED_RATE =
    1.0 / 3; /* the rate of such a slow worker, relative to the expected rate */
static const double SLOW_SHARE =
    0.5; /* a task is slowed if it gets less than this part of the usual core share */
static const double SLOW_FOR_S =
    0.75;                        /* and has run for this long, because a short burst of other work passes */
static const double AGREE_S = 1; /* most difference between the reported and the observed age of a task */
static const double GONE_S = 1;  /* a worker silent for longer is stopped or cut off */
static const double PAUSE_PART =
    1.0 / 16; /* pause between two looks, as a part of the time that the rescue has lasted */

static void say(kl_rescue *rescue, const char *format, ...) KILTER_PRINTF(2, 3);
static void say(kl_rescue *rescue, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(rescue->decision.reason, sizeof rescue->decision.reason, format, args);
    va_end(args);
}

/* Return the cost of moving tasks. Recall, answer and chunk are three messages: one and a half round trips.
 */
static double move_s(const kl_snapshot *s) {
    double cost_s = 1.5 * s->round_trip_s + 2 * s->answer_s;
    return cost_s > 0 ? cost_s : MOVE_UNKNOWN_S;
}

static double rate_of(const kl_snapshot *s, uint32_t worker) {
    double rate = kl_worker_rate(&s->workers[worker]);
    return rate > 0 ? rate : kl_crew_mean_rate(s->crew);
}

/* Is the reported age of the present task credible? A task cannot be older than the time since its worker
 * last finished tasks; such a report comes from a clock that jumped. */
static bool is_told(const kl_snapshot *s, uint32_t worker, const kl_hand *h) {
    return h->elapsed_s > 0 && h->elapsed_s < h->heard_s - s->workers[worker].queued_at_s + AGREE_S;
}

/* Is the worker's silence normal for its queue? Not if it reports a long task. */
static bool is_on_time(const kl_snapshot *s, uint32_t worker, const kl_held *held) {
    const kl_worker_view *v = &s->workers[worker];
    double rate = rate_of(s, worker), tasks = (double)v->queued_tasks;
    double silent_s = s->now_s - v->queued_at_s, due_s = v->queued_units / rate;
    /* The time of `tasks` tasks may be longer than its mean by one standard deviation. */
    return !is_told(s, worker, &held->hand) && silent_s > due_s &&
           silent_s < due_s * (1 + (kl_stat_cv(&s->unit_s) * sqrt(tasks)) / tasks) + move_s(s);
}

/* --- recalls --- */

static bool recall(const kl_snapshot *s, const kl_board *board, uint32_t worker, const kl_held *held,
                   kl_rescue *r) {
    if (held->asked_s > 0 || held->kept >= held->tasks || is_on_time(s, worker, held))
        return false;
    kl_lane lane = kl_worker_lane(&s->workers[worker], kl_crew_mean_rate(s->crew), s->now_s);
    double task_units = held->units / (double)held->tasks;
    double shared_s = kl_model_end_shared_s(s, worker, board->coming_units);
    double others_s = kl_crew_first_end_s(s->crew, task_units, worker, NULL) + move_s(s);
    double gain_s = lane.free_s - fmax(shared_s, others_s);
    if (!(gain_s > RECALL_PAYS * move_s(s)))
        return false;
    double keep = round(fmax(held->units - lane.rate * (lane.free_s - shared_s), 0) / task_units);
    if (!(keep < (double)held->tasks))
        return false;
    uint64_t kept = keep < (double)held->kept ? held->kept : (uint64_t)keep;
    *r = (kl_rescue){.decision.kind = KL_DECIDES_RECALL,
                     .decision.subject = worker,
                     .decision.count = kept,
                     .decision.forecast_s = s->now_s + fmax(shared_s, others_s),
                     .decision.gain_s = gain_s};
    say(r, "%llu tasks here would end in %s, shared in %s", kl_ull(held->tasks), kl_say_s(lane.free_s).text,
        kl_say_s(fmax(shared_s, others_s)).text);
    return true;
}

/* --- copies --- */

/* Return the number of tasks that the worker may have finished since the recall. A worker that answers only
 * between tasks may be in any of them, which may be a long one. */
static uint64_t maybe_begun(const kl_snapshot *s, uint32_t worker, const kl_held *held, double task_units) {
    double since_s = fmax(held->asked_s - s->workers[worker].queued_at_s, 0);
    double begun = 1 + ceil(rate_of(s, worker) * since_s / task_units);
    return begun < (double)held->tasks ? (uint64_t)begun : held->tasks;
}

/* Is a recall unanswered for longer than a working worker needs? */
static bool is_unanswered(const kl_snapshot *s, const kl_held *held) {
    double patience_s = held->hand.heard_s > 0 ? UNANSWERED_S : UNATTENDED_S;
    return held->asked_s > 0 && s->now_s - held->asked_s >= fmax(patience_s, 4 * move_s(s));
}

/* A worker that does not answer a recall has not begun its last task, or is gone. */
static bool copy_unanswered(const kl_snapshot *s, const kl_board *board, uint32_t worker, const kl_held *held,
                            kl_rescue *r) {
    if (!is_unanswered(s, held) || held->tasks <= held->kept)
        return false;
    double task_units = held->units / (double)held->tasks;
    uint64_t begun = held->hand.heard_s > 0 ? 0 : maybe_begun(s, worker, held, task_units);
    uint64_t kept = begun > held->kept ? begun : held->kept;
    if (kept == held->tasks)
        return false;
    uint32_t to;
    double end_s = kl_crew_first_end_s(s->crew, task_units, worker, &to);
    if (to == UINT32_MAX || !board->waits(board->self, to))
        return false;
    uint64_t tasks = held->tasks - kept, waiting = board->waiting(board->self);
    *r = (kl_rescue){.decision.kind = KL_DECIDES_COPY,
                     .decision.subject = worker,
                     .to = to,
                     .decision.count = (tasks + waiting - 1) / waiting,
                     .decision.forecast_s = s->now_s + end_s};
    say(r, "asked back from worker %u %s ago, no answer", s->workers[worker].number,
        kl_say_s(s->now_s - held->asked_s).text);
    return true;
}

static bool is_silent(const kl_snapshot *s, const kl_held *held) {
    return held->hand.heard_s > 0 && s->now_s - held->hand.heard_s > GONE_S;
}

/* A silent worker with several tasks will probably do none of them, not even those that it should keep. */
static bool copy_all(const kl_snapshot *s, const kl_board *board, uint32_t worker, const kl_held *held,
                     kl_rescue *r) {
    uint32_t to;
    if (held->tasks < 2 || !is_silent(s, held))
        return false;
    double end_s = kl_crew_first_end_s(s->crew, held->units / (double)held->tasks, worker, &to);
    uint32_t waiting = to == UINT32_MAX ? 0 : board->waiting(board->self);
    if (waiting == 0 || !board->waits(board->self, to))
        return false;
    *r = (kl_rescue){.decision.kind = KL_DECIDES_COPY,
                     .decision.subject = worker,
                     .to = to,
                     .decision.count = (held->tasks + waiting - 1) / waiting,
                     .decision.forecast_s = s->now_s + end_s};
    say(r, "worker %u is not heard of any more, since %s", s->workers[worker].number,
        kl_say_s(s->now_s - held->hand.heard_s).text);
    return true;
}

/* Expected outcome of a copy of the last task at a worker: sums over possible cases, weighted by their
 * chance. */
typedef struct outlook {
    double chance;
    double rest_s;   /* seconds until its worker has done it */
    double gain_s;   /* seconds gained in cases where the copy ends first */
    double wasted_s; /* seconds for which the copy goes on in the other cases */
} outlook;

static void weigh(outlook *o, double chance, double rest_s, double copy_s) {
    o->chance += chance;
    o->rest_s += chance * rest_s;
    o->gain_s += chance * fmax(rest_s - copy_s, 0);
    o->wasted_s += chance * fmax(copy_s - rest_s, 0);
}

/* The last task at a worker, and the worker for a copy. */
typedef struct trial {
    const kl_sizes *sizes;
    double units;     /* predicted */
    double elapsed_s; /* age of the task; below 0: seconds until it begins */
    double rate, to_rate, move_s;
} trial;

/* Add the case that the task has `size` times its predicted units, of which `done` are done. */
static void weigh_size(outlook *o, const trial *t, double chance, double size, double done) {
    double wait_s = fmax(-t->elapsed_s, 0);
    weigh(o, chance, wait_s + (size - done) * t->units / t->rate, size * t->units / t->to_rate + t->move_s);
}

/* Add all cases: the task is like one of the measured tasks that are larger than its done part. If none is
 * larger, the task is expected to take as long again. */
static void weigh_sizes(outlook *o, const trial *t, double chance) {
    double done = fmax(t->rate * t->elapsed_s / t->units, 0), largest = 1;
    double each = chance / (t->sizes->count + 1);
    for (uint32_t i = 0; i < KL_SIZE_BINS; i++) {
        if (!(t->sizes->tasks[i] > 0))
            continue;
        double least = kl_sizes_bin(i, &largest);
        if (largest <= done)
            continue;
        double from = fmax(least, done), part = log(largest / from) / log(largest / least);
        weigh_size(o, t, each * t->sizes->tasks[i] * part, sqrt(largest * from), done);
    }
    double longer = fmax(done, largest), seldom = largest / longer;
    weigh_size(o, t, each * seldom * seldom, 2 * longer, done);
}

static trial trial_of(const kl_snapshot *s, uint32_t worker, const kl_held *held, double to_rate) {
    const kl_hand *h = &held->hand;
    trial t = {&s->sizes, held->first_units, 0, rate_of(s, worker), to_rate, move_s(s)};
    if (held->tasks > 1)
        t.units = held->units / (double)held->tasks;
    t.elapsed_s = fmax(s->now_s - s->workers[worker].queued_at_s, 0);
    if (is_told(s, worker, h))
        t.elapsed_s = h->elapsed_s + fmax(s->now_s - h->heard_s, 0);
    t.elapsed_s -= t.units * (double)(held->tasks - 1) / t.rate;
    if (is_told(s, worker, h) && h->share < SLOW_SHARE && h->elapsed_s >= SLOW_FOR_S)
        t.rate *= h->share;
    return t;
}

static outlook outlook_of(const kl_snapshot *s, uint32_t worker, const kl_held *held, double to_rate) {
    trial t = trial_of(s, worker, held, to_rate);
    outlook o = {0};
    double anew_s = t.units / to_rate + t.move_s, stopped_s = fmax(t.elapsed_s, 0);
    if (is_silent(s, held)) {
        weigh(&o, 1, stopped_s, anew_s);
        return o;
    }
    weigh_sizes(&o, &t, 1);
    if (!is_told(s, worker, &held->hand))
        weigh(&o, STOPPED, stopped_s, anew_s);
    double measured = s->workers[worker].pace.units / kl_task_units(s);
    t.rate *= MISJUDGED_RATE;
    weigh_sizes(&o, &t, MISJUDGED / (1 + measured));
    return (outlook){1, o.rest_s / o.chance, o.gain_s / o.chance, o.wasted_s / o.chance};
}

/* No worker is disturbed. A waiting worker may copy the last task if this is faster on average. */
static bool speculate(const kl_snapshot *s, const kl_board *board, uint32_t worker, const kl_held *held,
                      kl_rescue *r) {
    uint32_t to, sooner;
    double to_rate = kl_crew_fastest_idle(s->crew, worker, &to);
    /* If some tasks can be recalled, a recall comes first. */
    bool may_be_recalled = held->asked_s > 0 ? !is_unanswered(s, held) : held->kept < held->tasks;
    if (held->tasks == 0 || (held->tasks > 1 && may_be_recalled) || to == UINT32_MAX ||
        !board->waits(board->self, to))
        return false;
    outlook o = outlook_of(s, worker, held, to_rate);
    /* The next run loses time while `to` goes on with a copy that is not needed. */
    double costs_s = move_s(s) + (o.wasted_s * to_rate / kl_crew_total(s->crew)->rates);
    if (!(o.gain_s > COPY_PART * o.rest_s + costs_s))
        return false;
    kl_crew_first_end_s(s->crew, held->first_units, worker, &sooner);
    if (!board->waits(board->self, sooner)) /* a faster worker will soon be free */
        return false;
    *r = (kl_rescue){.decision.kind = KL_DECIDES_COPY,
                     .decision.subject = worker,
                     .to = to,
                     .decision.count = 1,
                     .decision.forecast_s = s->now_s + o.rest_s - o.gain_s,
                     .decision.gain_s = o.gain_s};
    say(r, "at worker %u it would end in %s, a copy may end %s sooner%s", s->workers[worker].number,
        kl_say_s(o.rest_s).text, kl_say_s(o.gain_s).text,
        is_silent(s, held) ? ": not heard of any more" : "");
    return true;
}

/* Many late workers may hold only tasks that are copied already. These stay late while they are stopped. */
static bool holds_some(const void *board, uint32_t worker) {
    const kl_board *b = board;
    kl_held held = {0};
    b->held(b->self, worker, &held);
    return held.tasks > 0;
}

void kl_rescue_choose(const kl_snapshot *s, const kl_board *board, kl_rescue *r) {
    *r = (kl_rescue){.decision.kind = KL_DECIDES_NOTHING};
    const kl_crew_sums *all = kl_crew_total(s->crew);
    if (s->left > 0 || all->known == 0) {
        say(r, "%s", s->left > 0 ? "there is work for whoever waits" : "nothing is known of anybody");
        return;
    }
    uint32_t late[KL_CREW_LATEST];
    const kl_crew_choice some = {board, holds_some};
    uint32_t count = kl_crew_latest(s->crew, RECALL_PAYS * move_s(s), &some, late, KL_CREW_LATEST);
    for (uint32_t i = 0; i < count; i++) {
        kl_held held = {0};
        board->held(board->self, late[i], &held);
        if (recall(s, board, late[i], &held, r) || copy_unanswered(s, board, late[i], &held, r) ||
            copy_all(s, board, late[i], &held, r))
            return;
        kl_rescue copy;
        if (!speculate(s, board, late[i], &held, &copy))
            continue;
        /* Keep the copy for the worker that would end last without one. */
        if (r->decision.kind == KL_DECIDES_NOTHING ||
            copy.decision.forecast_s + copy.decision.gain_s > r->decision.forecast_s + r->decision.gain_s)
            *r = copy;
    }
    if (r->decision.kind == KL_DECIDES_NOTHING)
        say(r, "none of the %u that end last would be done sooner elsewhere", (unsigned)count);
}

double kl_rescue_pause_s(const kl_snapshot *s, double waited_s, double took_s) {
    static const double LOOK_MOST_S = 20e-3; /* after a longer look: the host stood still meanwhile */
    double looks_s = KL_HELD_LOOKS * fmin(took_s, LOOK_MOST_S);
    double pause_s = fmax(fmax(KL_HELD_S, KL_HELD_TASKS * s->unit_s.mean), looks_s);
    return fmax(pause_s, PAUSE_PART * waited_s);
}
