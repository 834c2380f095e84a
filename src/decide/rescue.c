/* When nothing is left to deal: what a worker that ends late has not begun goes to those that wait, and its
 * last tasks are started elsewhere, too. Both only when the forecast is so much better that it pays for the
 * way and for what the forecast does not know. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "decide/policy.h"

static const double MOVE_UNKNOWN_S = 20e-6; /* what moving costs, while nothing is measured */
static const double RECALL_PAYS = 2;        /* times what moving costs must be gained */
static const double COPY_PAYS = 1.25;       /* the copy must be done in so much less of the time */
static const double UNSURE = 2;             /* standard errors a pace may be better than it looks */
static const double UNANSWERED_S = 0.1;     /* a worker that is well has answered by then, */
static const double UNATTENDED_S = 5e-3;    /* or is at a longer task, if it does not answer before its end */
static const double SLOW_SHARE = 0.5;  /* of the usual share of a core: below, a task at hand is slowed, */
static const double SLOW_FOR_S = 0.75; /* if it is for so long: a short burst of other work passes */
static const double AGREE_S = 1;       /* so far may what it tells of time and what is seen of it differ */
static const double GONE_S = 1;        /* without a word: stopped, or cut off */
static const double PAUSE_PART = 1.0 / 16; /* of the time it has lasted: nothing changes much sooner */

static void say(kl_rescue *rescue, const char *format, ...) KILTER_PRINTF(2, 3);
static void say(kl_rescue *rescue, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(rescue->reason, sizeof rescue->reason, format, args);
    va_end(args);
}

static unsigned long long ull(uint64_t n) {
    return n;
}

/* Question, answer and the chunk to another worker are half a round trip each. */
static double move_s(const kl_snapshot *s) {
    double cost_s = 1.5 * s->round_trip_s + 2 * s->answer_s;
    return cost_s > 0 ? cost_s : MOVE_UNKNOWN_S;
}

static double rate_of(const kl_snapshot *s, uint32_t worker) {
    double rate = kl_worker_rate(&s->workers[worker]);
    return rate > 0 ? rate : kl_crew_mean_rate(s->crew);
}

/* How far the sum of `tasks` tasks is off, as tasks differ: one standard deviation, in tasks. */
static double spread(const kl_snapshot *s, double tasks) {
    return kl_stat_cv(&s->unit_s) * sqrt(tasks);
}

/* Silent for no longer than the queue may well take: that is no sign of anything. */
static bool is_on_time(const kl_snapshot *s, uint32_t worker) {
    const kl_worker_view *v = &s->workers[worker];
    double rate = rate_of(s, worker), tasks = (double)v->queued_tasks;
    double silent_s = s->now_s - v->queued_at_s, due_s = v->queued_units / rate;
    return silent_s > due_s && silent_s < due_s * (1 + spread(s, tasks) / tasks) + move_s(s);
}

/* --- taking back --- */

static bool recall(const kl_snapshot *s, const kl_board *board, uint32_t worker, const kl_held *held,
                   kl_rescue *r) {
    if (held->asked_s > 0 || held->kept >= held->tasks || is_on_time(s, worker))
        return false;
    kl_lane lane = kl_worker_lane(&s->workers[worker], kl_crew_mean_rate(s->crew), s->now_s);
    double task_units = held->units / (double)held->tasks;
    double shared_s = kl_model_end_shared_s(s, worker, board->coming_units);
    double others_s = kl_crew_first_end_s(s->crew, task_units, worker, NULL) + move_s(s);
    double gain_s = lane.free_s - fmax(shared_s, others_s);
    if (!(gain_s > RECALL_PAYS * move_s(s)))
        return false;
    double keep = round(fmax(held->units - lane.rate * (lane.free_s - shared_s), 0) / task_units);
    uint64_t kept = keep < (double)held->kept ? held->kept : (uint64_t)keep;
    if (kept >= held->tasks)
        return false;
    *r = (kl_rescue){.act = KL_RESCUE_RECALL,
                     .from = worker,
                     .tasks = kept,
                     .finish_s = s->now_s + fmax(shared_s, others_s),
                     .gain_s = gain_s};
    say(r, "%llu tasks here would end in %s, shared in %s", ull(held->tasks), kl_say_s(lane.free_s).text,
        kl_say_s(fmax(shared_s, others_s)).text);
    return true;
}

/* --- doing twice --- */

/* So many tasks it may have been past when it was asked: one that does not answer before its task ends may be
 * at any of them, and that may be a long one. */
static uint64_t maybe_begun(const kl_snapshot *s, uint32_t worker, const kl_held *held, double task_units) {
    double since_s = fmax(held->asked_s - s->workers[worker].queued_at_s, 0);
    double begun = 1 + ceil(rate_of(s, worker) * since_s / task_units);
    return begun < (double)held->tasks ? (uint64_t)begun : held->tasks;
}

/* A worker that does not answer has not begun the last of its tasks, or is gone. */
static bool copy_unanswered(const kl_snapshot *s, const kl_board *board, uint32_t worker, const kl_held *held,
                            kl_rescue *r) {
    double silent_s = s->now_s - held->asked_s;
    double patience_s = held->hand.heard_s > 0 ? UNANSWERED_S : UNATTENDED_S;
    if (!(held->asked_s > 0) || held->tasks <= held->kept || silent_s < fmax(patience_s, 4 * move_s(s)))
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
    *r = (kl_rescue){.act = KL_RESCUE_COPY,
                     .from = worker,
                     .to = to,
                     .tasks = (tasks + waiting - 1) / waiting,
                     .finish_s = s->now_s + end_s};
    say(r, "asked back from worker %u %s ago, no answer", s->workers[worker].number, kl_say_s(silent_s).text);
    return true;
}

static bool is_silent(const kl_snapshot *s, const kl_held *held) {
    return held->hand.heard_s > 0 && s->now_s - held->hand.heard_s > GONE_S;
}

/* Of several tasks at a worker that says nothing any more none will be done there, as far as can be seen:
 * also not those that it was to keep. */
static bool copy_all(const kl_snapshot *s, const kl_board *board, uint32_t worker, const kl_held *held,
                     kl_rescue *r) {
    uint32_t to;
    if (held->tasks < 2 || !is_silent(s, held))
        return false;
    double end_s = kl_crew_first_end_s(s->crew, held->units / (double)held->tasks, worker, &to);
    uint32_t waiting = to == UINT32_MAX ? 0 : board->waiting(board->self);
    if (waiting == 0 || !board->waits(board->self, to))
        return false;
    *r = (kl_rescue){.act = KL_RESCUE_COPY,
                     .from = worker,
                     .to = to,
                     .tasks = (held->tasks + waiting - 1) / waiting,
                     .finish_s = s->now_s + end_s};
    say(r, "worker %u is not heard of any more, since %s", s->workers[worker].number,
        kl_say_s(s->now_s - held->hand.heard_s).text);
    return true;
}

/* The task a worker has at hand, as far as it is done. */
typedef struct progress {
    double rate; /* units per second it is done with */
    double done; /* units */
    double rest_s;
    const char *why;
} progress;

/* No slower than it looks for chance: its pace was taken from few tasks, and tasks differ. */
static double surely(const kl_snapshot *s, const kl_worker_view *v, double rate) {
    double tasks = v->pace.units / kl_task_units(s);
    return tasks > 0 && !kl_worker_slowed(v) ? rate * (1 + UNSURE * spread(s, tasks) / tasks) : rate;
}

static progress progress_of(const kl_snapshot *s, uint32_t worker, const kl_held *held) {
    const kl_worker_view *v = &s->workers[worker];
    const kl_hand *h = &held->hand;
    double own = rate_of(s, worker), elapsed_s = fmax(s->now_s - v->queued_at_s, 0);
    progress p = {.why = "as slow as in its last tasks"};
    /* A task that is older than the last report but one: its worker's clock has jumped. */
    bool told = h->elapsed_s > 0 && h->elapsed_s < h->heard_s - v->queued_at_s + AGREE_S;
    bool slowed = told && h->share < SLOW_SHARE;
    if (told)
        elapsed_s = h->elapsed_s + fmax(s->now_s - h->heard_s, 0);
    if (is_silent(s, held)) {
        p.done = told ? own * h->share * h->elapsed_s : 0;
        p.rate = p.done / elapsed_s;
        p.rest_s = elapsed_s; /* what took so long is expected to take as long again */
        p.why = "not heard of any more";
        return p;
    }
    if (slowed && h->elapsed_s >= SLOW_FOR_S) {
        p.rate = own * h->share;
        p.why = "gets too little of its processor";
    } else {
        p.rate = surely(s, v, own);
    }
    p.done = p.rate * elapsed_s;
    p.rest_s = fmax(held->first_units - p.done, p.done) / p.rate;
    return p;
}

static bool copy_at_hand(const kl_snapshot *s, const kl_board *board, uint32_t worker, const kl_held *held,
                         kl_rescue *r) {
    if (held->tasks != 1)
        return false;
    progress p = progress_of(s, worker, held);
    double units = fmax(held->first_units, p.done + p.rest_s * p.rate);
    uint32_t to;
    double end_s = kl_crew_first_end_s(s->crew, units, worker, &to) + move_s(s);
    if (to == UINT32_MAX || !board->waits(board->self, to) || !(p.rest_s > COPY_PAYS * end_s + move_s(s)))
        return false;
    *r = (kl_rescue){.act = KL_RESCUE_COPY,
                     .from = worker,
                     .to = to,
                     .tasks = 1,
                     .finish_s = s->now_s + end_s,
                     .gain_s = p.rest_s - end_s};
    say(r, "at worker %u it would end in %s, begun anew in %s: %s", s->workers[worker].number,
        kl_say_s(p.rest_s).text, kl_say_s(end_s).text, p.why);
    return true;
}

/* Many late workers may hold only tasks that others hold, too: they stay late for as long as they are frozen.
 */
static bool holds_some(const void *board, uint32_t worker) {
    const kl_board *b = board;
    kl_held held = {0};
    b->held(b->self, worker, &held);
    return held.tasks > 0;
}

void kl_rescue_choose(const kl_snapshot *s, const kl_board *board, kl_rescue *r) {
    *r = (kl_rescue){.act = KL_RESCUE_NOTHING};
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
            copy_all(s, board, late[i], &held, r) || copy_at_hand(s, board, late[i], &held, r))
            return;
    }
    say(r, "none of the %u that end last would be done sooner elsewhere", (unsigned)count);
}

double kl_rescue_pause_s(const kl_snapshot *s, double waited_s, double took_s) {
    double pause_s = fmax(fmax(KL_HELD_S, KL_HELD_TASKS * s->unit_s.mean), KL_HELD_LOOKS * took_s);
    return fmax(pause_s, PAUSE_PART * waited_s);
}
