/* Rescue the tasks of late workers when no task is left to deal. In a recall, tasks that a late worker has
 * not begun go to waiting workers. In a copy, another worker also does the late worker's last task. Both must
 * save more time than the messages and the errors of the forecast may cost. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "decide/policy.h"

/* seconds that moving tasks to another worker is assumed to cost, until they are measured */
static const double MOVE_UNKNOWN_S = 20e-6;
/* a recall must save more than this multiple of the time that moving tasks costs */
static const double RECALL_PAYS = 2;
/* seconds within which a worker that reads messages during tasks answers a recall */
static const double UNANSWERED_S = 20e-3;
/* seconds within which a worker that reads messages only between tasks answers a recall when its task
 * ends */
static const double UNATTENDED_S = 5e-3;
/* a copy must save more than this part of the task's remaining time */
static const double COPY_PART = 0.1;
static const double SOON_PART = 0.1; /* a task of usual size should end soon if its remaining time is below
                                        this part of the time that a copy takes */
static const double STOPPED = 0.01;  /* probability that a worker whose heartbeats are missing has stopped */
static const double MISJUDGED = 0.2; /* probability that a worker whose speed is not measured is slow */
/* assumed speed of a slow worker whose speed is not measured, as a part of its expected speed */
static const double MISJUDGED_RATE = 1.0 / 3;
/* a task counts as slowed if its share of a core is below this part of the usual share */
static const double SLOW_SHARE = 0.5;
static const double SLOW_FOR_S = 0.75; /* seconds that a task must have run before it counts as slowed,
                                          because short bursts of other load do not matter */
/* A worker reports its task's age (seconds since the task began). The master also measures the greatest
 * possible age. A reported age that exceeds this greatest age by more than AGREE_S is ignored. */
static const double AGREE_S = 1;
/* a worker counts as stopped or cut off after this number of seconds without a heartbeat */
static const double GONE_S = 1;
/* The pause between two checks for late workers is at least this part of the time since the last task was
 * dealt. */
static const double PAUSE_PART = 1.0 / 16;

static void say(kl_rescue *rescue, const char *format, ...) KILTER_PRINTF(2, 3);
static void say(kl_rescue *rescue, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(rescue->decision.reason, sizeof rescue->decision.reason, format, args);
    va_end(args);
}

/* Return the seconds that moving tasks to another worker costs. The recall, its answer and the new chunk
 * take one and a half round trips. */
static double move_s(const kl_snapshot *s) {
    double cost_s = 1.5 * s->round_trip_s + 2 * s->answer_s;
    return cost_s > 0 ? cost_s : MOVE_UNKNOWN_S;
}

static double rate_of(const kl_snapshot *s, uint32_t worker) {
    double rate = kl_worker_rate(&s->workers[worker]);
    return rate > 0 ? rate : kl_crew_mean_rate(s->crew);
}

/* Return whether the age (seconds since its beginning) that the worker reports for its present task is
 * credible. A task cannot be older than the time since its worker last finished a task. A greater age comes
 * from a clock that jumped. */
static bool is_told(const kl_snapshot *s, uint32_t worker, const kl_hand *h) {
    return h->elapsed_s > 0 && h->elapsed_s < h->heard_s - s->workers[worker].queued_at_s + AGREE_S;
}

/* Return whether the worker's silence is still normal, although the worker should have finished its tasks. It
 * is normal if the times of tasks vary enough to explain the delay. Return false if the worker has reported a
 * credible age of its present task. */
static bool is_on_time(const kl_snapshot *s, uint32_t worker, const kl_held *held) {
    const kl_worker_view *v = &s->workers[worker];
    double rate = rate_of(s, worker), tasks = (double)v->queued_tasks;
    double silent_s = s->now_s - v->queued_at_s, due_s = v->queued_units / rate;
    /* the silence may last for the expected time of the tasks plus one standard deviation */
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
    say(r, "%llu tasks at this worker would end in %s; shared with other workers, in %s", kl_ull(held->tasks),
        kl_say_s(lane.free_s).text, kl_say_s(fmax(shared_s, others_s)).text);
    return true;
}

/* --- copies --- */

/* Return how many tasks the worker may have begun at its usual speed before the recall was sent. If one of
 * them is long, it delays the answer, because this worker reads messages only between tasks. */
static uint64_t maybe_begun(const kl_snapshot *s, uint32_t worker, const kl_held *held, double task_units) {
    double since_s = fmax(held->asked_s - s->workers[worker].queued_at_s, 0);
    double begun = 1 + ceil(rate_of(s, worker) * since_s / task_units);
    return begun < (double)held->tasks ? (uint64_t)begun : held->tasks;
}

/* Return whether a recall has been unanswered for longer than a healthy worker needs to answer it. */
static bool is_unanswered(const kl_snapshot *s, const kl_held *held) {
    double patience_s = held->hand.heard_s > 0 ? UNANSWERED_S : UNATTENDED_S;
    return held->asked_s > 0 && s->now_s - held->asked_s >= fmax(patience_s, 4 * move_s(s));
}

/* If the worker has not answered a recall, copy the tasks that the worker certainly has not begun. */
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
    say(r, "worker %u has not answered a recall for %s", s->workers[worker].number,
        kl_say_s(s->now_s - held->asked_s).text);
    return true;
}

static bool is_silent(const kl_snapshot *s, const kl_held *held) {
    return held->hand.heard_s > 0 && s->now_s - held->hand.heard_s > GONE_S;
}

/* Copy all tasks of a worker that holds several tasks and no longer sends heartbeats. It will probably do
 * none of them, not even those that a recall let it keep. */
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
    say(r, "worker %u has been silent for %s", s->workers[worker].number,
        kl_say_s(s->now_s - held->hand.heard_s).text);
    return true;
}

/* The expected effect of copying a worker's last task. Each value is a sum over the possible cases,
 * weighted by their probability. */
typedef struct outlook {
    double chance;
    double rest_s;   /* seconds until the present worker would have done the task */
    double gain_s;   /* seconds that the copy saves if it ends first */
    double wasted_s; /* seconds that the copy wastes if it does not end first */
} outlook;

static void weigh(outlook *o, double chance, double rest_s, double copy_s) {
    o->chance += chance;
    o->rest_s += chance * rest_s;
    o->gain_s += chance * fmax(rest_s - copy_s, 0);
    o->wasted_s += chance * fmax(copy_s - rest_s, 0);
}

/* The last task of a worker, and the worker that may copy it. */
typedef struct trial {
    const kl_sizes *sizes;
    double units;     /* predicted size of the task in units of work */
    double elapsed_s; /* seconds since the task began; below 0: the task begins after −elapsed_s seconds */
    double rate, to_rate, move_s;
} trial;

/* Add the case that the task is `size` times as large as predicted. The argument `done` says how much of the
 * task is done, as a multiple of the predicted size. */
static void weigh_size(outlook *o, const trial *t, double chance, double size, double done) {
    double wait_s = fmax(-t->elapsed_s, 0);
    weigh(o, chance, wait_s + (size - done) * t->units / t->rate, size * t->units / t->to_rate + t->move_s);
}

static double done_of(const trial *t) {
    return fmax(t->rate * t->elapsed_s / t->units, 0);
}

/* Go through the sizes of measured tasks. For each size above the done part of the late task, add the case
 * that the late task has this size. Return the largest measured size. */
static double weigh_usual(outlook *o, const trial *t, double chance) {
    double done = done_of(t), largest = 1;
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
    return largest;
}

/* Add the cases of weigh_usual(). In one more case, the task is larger than all measured tasks, and needs as
 * much time again as it has taken. */
static void weigh_sizes(outlook *o, const trial *t, double chance) {
    double largest = weigh_usual(o, t, chance), longer = fmax(done_of(t), largest), seldom = largest / longer;
    weigh_size(o, t, chance / (t->sizes->count + 1) * seldom * seldom, 2 * longer, done_of(t));
}

/* Return whether the task should end soon if it has the usual size. If so, a short wait will show whether the
 * task is larger. A task may be late by SOON_PART, because the results of equal tasks arrive one after the
 * other. */
static bool ends_soon(const trial *t) {
    trial early = *t;
    outlook usual = {0};
    early.elapsed_s *= 1 - SOON_PART;
    weigh_usual(&usual, &early, 1);
    double rest_s = usual.rest_s - usual.chance * (t->elapsed_s - early.elapsed_s);
    return rest_s < SOON_PART * usual.chance * (t->units / t->to_rate + t->move_s);
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
    if (ends_soon(&t))
        return (outlook){.chance = 1, .rest_s = o.rest_s / o.chance};
    if (!is_told(s, worker, &held->hand))
        weigh(&o, STOPPED, stopped_s, anew_s);
    double measured = s->workers[worker].pace.units / kl_task_units(s);
    t.rate *= MISJUDGED_RATE;
    weigh_sizes(&o, &t, MISJUDGED / (1 + measured));
    return (outlook){1, o.rest_s / o.chance, o.gain_s / o.chance, o.wasted_s / o.chance};
}

/* Copy a worker's last task to a waiting worker if this saves enough time on average. Workers that are busy
 * with other tasks are left alone. */
static bool speculate(const kl_snapshot *s, const kl_board *board, uint32_t worker, const kl_held *held,
                      kl_rescue *r) {
    uint32_t to, sooner;
    double to_rate = kl_crew_fastest_idle(s->crew, worker, &to);
    /* tasks that can still be recalled are recalled, and not copied */
    bool may_be_recalled = held->asked_s > 0 ? !is_unanswered(s, held) : held->kept < held->tasks;
    if (held->tasks == 0 || (held->tasks > 1 && may_be_recalled) || to == UINT32_MAX ||
        !board->waits(board->self, to))
        return false;
    outlook o = outlook_of(s, worker, held, to_rate);
    /* if the copy ends too late, worker `to` begins the next run wasted_s later */
    double costs_s = move_s(s) + (o.wasted_s * to_rate / kl_crew_total(s->crew)->rates);
    if (!(o.gain_s > COPY_PART * o.rest_s + costs_s))
        return false;
    kl_crew_first_end_s(s->crew, held->first_units, worker, &sooner);
    /* choose no copy if another worker will be free soon and would end the task sooner than the copy */
    if (!board->waits(board->self, sooner))
        return false;
    *r = (kl_rescue){.decision.kind = KL_DECIDES_COPY,
                     .decision.subject = worker,
                     .to = to,
                     .decision.count = 1,
                     .decision.forecast_s = s->now_s + o.rest_s - o.gain_s,
                     .decision.gain_s = o.gain_s};
    say(r, "at worker %u the task would end in %s, and a copy may end %s sooner%s", s->workers[worker].number,
        kl_say_s(o.rest_s).text, kl_say_s(o.gain_s).text,
        is_silent(s, held) ? "; the worker sends no heartbeats" : "");
    return true;
}

/* Return whether a worker holds a task that no other worker has. A stopped worker whose tasks are all copied
 * must not take the place of another late worker in the list of late workers. */
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
        say(r, "%s", s->left > 0 ? "there are tasks to deal" : "no worker's speed is known");
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
        /* if several copies are possible, copy the task that would end last */
        if (r->decision.kind == KL_DECIDES_NOTHING ||
            copy.decision.forecast_s + copy.decision.gain_s > r->decision.forecast_s + r->decision.gain_s)
            *r = copy;
    }
    if (r->decision.kind == KL_DECIDES_NOTHING)
        say(r, "none of the %u workers that end last has a task that another worker would end sooner",
            (unsigned)count);
}

double kl_held_pause_s(double task_s, double took_s) {
    static const double LEAST_S = 1e-3, TASKS = 1.0 / 32, LOOKS = 8;
    return fmax(fmax(LEAST_S, TASKS * task_s), LOOKS * took_s);
}

double kl_rescue_pause_s(const kl_snapshot *s, double waited_s, double took_s) {
    /* a check for late workers counts as at most this many seconds; if it took longer, the whole host stood
     * still meanwhile */
    static const double LOOK_MOST_S = 20e-3;
    double pause_s = kl_held_pause_s(s->unit_s.mean, fmin(took_s, LOOK_MOST_S));
    return fmax(pause_s, PAUSE_PART * waited_s);
}
