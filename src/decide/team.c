/* Choose the number of workers with the smallest performance index (César et al. 2006, phase 2). Change the
 * number only after several iterations have found the same direction of change. Undo a change that made the
 * run slower. docs/explanation/model.md explains the limits. */
#include <math.h>
#include <stdio.h>

#include "decide/policy.h"

/* change only to a number of workers whose index is below this part of the present index */
static const double FINDING = 0.95;
/* the same limit for as many other workers: speeds measured at different times differ by chance, and workers
 * that rested find cold caches */
static const double FINDING_OTHERS = 0.8;
/* the load counts as balanced if waiting for the last chunks takes at most this part of the time */
static const double IDLE_MOST = 0.2;
/* use more workers only if the model leaves at most this part of the time unexplained */
static const double UNEXPLAINED = 0.15;
/* if an iteration costs less than this part of the previous iteration's cost, the program is still getting
 * faster */
static const double FASTER = 0.8;
/* if an iteration costs more than this multiple of what an iteration cost before a change, the change did not
 * pay */
static const double WORSE = 1.05;
/* if the times of tasks changed by more than this factor, costs measured earlier are not used */
static const double AS_BEFORE = 1.25;
/* quotient of a number of workers and the next smaller number that is tried */
static const double STEP = 1.41421356;
/* If the load is very uneven, a change waits for this number of iterations. Until then, another way of
 * dealing may remove the imbalance. */
enum { PATIENCE = 6 };
enum { BARRED_RUNS = 16, BARRED_DOUBLINGS = 10, WHY_BYTES = 80 };

/* Return the part of the time for which n workers are expected to be idle if each ends with a chunk of F
 * tasks. F is the least size that the master can deal in time. The idle time is σF·√(n/2), where σ is the
 * standard deviation of a task's time. */
static double idle_part(const kl_iteration *it, uint32_t n) {
    double tasks = fmax(1, kl_model_min_chunk_s(it->model.message.fixed_s, n) / it->task_mean_s);
    double idle_s = it->task_sd_s * tasks * sqrt(n / 2.0);
    return idle_s / (it->model.work_s / kl_speed_of(it->speeds, n) + idle_s);
}

/* Find the greatest number of workers by bisection. With more workers, each has less work and waits longer
 * at the end. */
uint32_t kl_team_balanceable(const kl_iteration *it) {
    uint32_t can = 1, cannot = it->most + 1;
    while (cannot > can + 1) {
        uint32_t middle = can + (cannot - can) / 2;
        if (it->tasks / 2 >= middle && idle_part(it, middle) <= IDLE_MOST)
            can = middle;
        else
            cannot = middle;
    }
    return can;
}

/* A worker does work_s seconds of work in `chunks` chunks. Return the seconds for which it waits for chunks.
 * When it begins a chunk, it asks for the next one. It waits if the answer takes longer than the chunk. */
static double waits_s(const kl_iteration *it, double chunks, double work_s) {
    double late_s = fmax(0, it->way_s - work_s / fmax(1, chunks));
    return it->way_s + fmax(0, chunks - 1) * late_s;
}

/* Forecast the seconds of an iteration with n workers, without the master's own time. In the model of César
 * et al. each worker gets one chunk. Here the master must answer all chunks, one after another. */
static double model_s(const kl_iteration *it, uint32_t n, double speed) {
    kl_farm_model m = it->model;
    double chunks = (double)it->chunks * n / it->workers;
    double answer_s = it->answer_s > 0 ? it->answer_s : m.message.fixed_s;
    if (kl_load_known(&it->load) && it->answer_s > 0) { /* use the chunk size that n workers would get */
        chunks = kl_model_chunks(&it->load, n);
        answer_s = kl_model_answer_s(&it->load, n);
        if (m.message.fixed_s >= it->answer_s) /* m_o includes the master's time for an answer, which depends
                                                  on the size of the chunk */
            m.message.fixed_s += answer_s - it->answer_s;
    }
    if (kl_load_known(&it->load)) /* the measured load includes the bytes already, as use of a link or of
                                     cores */
        m.message.per_unit_s = 0;
    double served_s = chunks * answer_s + m.message.fixed_s;
    m.work_s *= kl_model_limit(&it->load, n).times;
    return waits_s(it, chunks / n, m.work_s / speed) +
           fmax(kl_model_time_with_s(&m, n, speed) - m.master_s, served_s);
}

static double lost_s(const kl_iteration *it) {
    return fmax(0, it->elapsed_s - model_s(it, it->workers, it->workers));
}

static double unexplained_part(const kl_iteration *it) {
    return lost_s(it) / it->elapsed_s;
}

/* Return the part of the time that neither the model nor uneven load explains. */
static double contended_part(const kl_iteration *it) {
    return fmax(0, lost_s(it) - it->uneven_s) / it->elapsed_s;
}

static bool contended(const kl_iteration *it) {
    return unexplained_part(it) > UNEXPLAINED && 2 * contended_part(it) >= unexplained_part(it);
}

/* Forecast the time with n workers from this iteration alone. Time that the model does not explain is
 * expected to be lost again. If much is lost although the load is balanced, the workers may slow each other
 * down. Then fewer workers are worth a trial. */
static double from_here_s(const kl_iteration *it, uint32_t n) {
    double gone = n < it->workers && contended(it) ? 1 - n / (double)it->workers : 0;
    return model_s(it, n, kl_speed_of(it->speeds, n)) + lost_s(it) -
           gone * contended_part(it) * it->elapsed_s;
}

/* --- correcting the model by times measured with other numbers of workers --- */

/* A measured number of workers, as a basis for corrections. */
typedef struct anchor {
    double away;  /* distance from the present number: |log(this number / present number)| */
    double ratio; /* measured time divided by the time that this iteration's model forecasts; 0: no such
                     number was measured */
} anchor;

/* Return the time measured with the point's number of workers, scaled to this iteration. Scale by the number
 * of tasks or by the amount of work, whichever gives less. Return 0 if the tasks have changed since. */
static double measured_s(const kl_iteration *it, const kl_team_point *p) {
    double by_task_s = (double)it->tasks * sqrt(p->cost.by_task / p->workers);
    double by_work_s = it->model.work_s * sqrt(p->cost.by_work / p->workers);
    double more = by_task_s / by_work_s;
    return more > AS_BEFORE || more < 1 / AS_BEFORE ? 0 : fmin(by_task_s, by_work_s) - it->model.master_s;
}

static bool beyond(const kl_iteration *it, uint32_t point, uint32_t n) {
    return n < it->workers ? point < it->workers : point > it->workers;
}

/* Among the measured numbers of workers, find the two that are closest to n: `near` lies between the present
 * number and n, and `far` lies beyond n. */
static void find_anchors(const kl_iteration *it, uint32_t n, anchor *near, anchor *far) {
    for (const kl_team_point *p = it->team->points; p < it->team->points + KL_TEAM_POINTS; p++) {
        if (p->workers == 0 || p->workers > it->most || p->until <= it->run || !beyond(it, p->workers, n))
            continue;
        double time_s = measured_s(it, p), away = fabs(log(p->workers / (double)it->workers));
        anchor found = {away, time_s / from_here_s(it, p->workers)};
        if (!(time_s > 0))
            continue;
        if (away <= fabs(log(n / (double)it->workers)))
            *near = away > near->away ? found : *near;
        else
            *far = far->away == 0 || away < far->away ? found : *far;
    }
}

/* Estimate by which factor a time measured with n workers would exceed the model's forecast. This factor is
 * known for the two numbers of workers that find_anchors() finds, `near` and `far`. From `near` to `far`, its
 * logarithm changes with the square of the distance, because models err more at greater distances. */
static double correction(const kl_iteration *it, uint32_t n) {
    anchor near = {0, 1}, far = {0, 0};
    if (!it->team || n == it->workers)
        return 1;
    find_anchors(it, n, &near, &far);
    if (!(far.ratio > 0))
        return near.ratio;
    double part = (fabs(log(n / (double)it->workers)) - near.away) / (far.away - near.away);
    return near.ratio * pow(far.ratio / near.ratio, part * part);
}

static double forecast_s(const kl_iteration *it, uint32_t n) {
    return from_here_s(it, n) * correction(it, n);
}

static double index_of(const kl_iteration *it, double speed, double elapsed_s) {
    double time_s = elapsed_s + it->model.master_s;
    return speed * time_s * time_s / it->model.work_s;
}

static double present_index(const kl_iteration *it) {
    return index_of(it, it->workers, it->elapsed_s);
}

static double index_with(const kl_iteration *it, uint32_t n) {
    return index_of(it, kl_speed_of(it->speeds, n), forecast_s(it, n));
}

static double index_at(const void *iteration, uint32_t n) {
    return index_with(iteration, n);
}

static bool known_elsewhere(const kl_iteration *it) {
    for (int i = 0; it->team && i < KL_TEAM_POINTS; i++)
        if (it->team->points[i].workers > 0 && it->team->points[i].until > it->run)
            return true;
    return false;
}

/* Return the number of workers with the smallest index, among the numbers that the master can serve.
 * Forecasts include shared resources if these were measured. */
static uint32_t best_of(const kl_iteration *it, uint32_t most) {
    if (!kl_load_known(&it->load) && !contended(it) && !known_elsewhere(it))
        return kl_model_best_of(&it->model, it->speeds, most);
    uint32_t fed = kl_load_known(&it->load) ? most : kl_model_capability_of(&it->model, it->speeds, most);
    return kl_model_lowest(&(kl_index){index_at, it}, fed);
}

static kl_team_cost cost_of(const kl_iteration *it) {
    double index = present_index(it), work_s = it->model.work_s, tasks = (double)it->tasks;
    return (kl_team_cost){.by_task = index * work_s / (tasks * tasks), .by_work = index / work_s};
}

static kl_team_cost less(kl_team_cost a, kl_team_cost b) {
    return (kl_team_cost){fmin(a.by_task, b.by_task), fmin(a.by_work, b.by_work)};
}

static bool usable(const kl_iteration *it) {
    return it->workers > 0 && it->most > 0 && it->tasks > 0 && it->model.work_s > 0 && it->task_mean_s > 0 &&
           it->elapsed_s > 0;
}

/* --- judging a change that is on trial --- */

/* Return the least cost of the last `count` iterations, which all had the present number of workers. */
static kl_team_cost least_of_last(const kl_team *team, uint32_t count) {
    kl_team_cost least = {INFINITY, INFINITY};
    for (uint32_t i = 1; i <= count && i <= team->measured; i++)
        least = less(least, team->costs[(team->measured - i) % KL_TEAM_PERSISTS]);
    return least;
}

/* Return the least cost among this iteration and the iterations just before it that had the same number of
 * workers. */
static kl_team_cost least_lately(const kl_team *team, const kl_iteration *it) {
    uint32_t known = team->workers == it->workers ? KL_TEAM_PERSISTS - 1 : 0;
    return less(cost_of(it), least_of_last(team, known));
}

static kl_team_way way_to(uint32_t from, uint32_t n) {
    return n < from ? KL_TEAM_FEWER : n > from ? KL_TEAM_MORE : KL_TEAM_OTHERS;
}

static void judge(const kl_team *team, const kl_iteration *it, kl_team_plan *plan) {
    kl_team_cost now = least_lately(team, it), before = team->before;
    /* The change is worse only if both costs are higher. One cost alone may be higher because tasks have
     * become larger, or because workers slow each other down. */
    double most = team->explores ? 1 : WORSE;
    bool worse = now.by_task > most * before.by_task && now.by_work > most * before.by_work;
    if (team->measured + 1 < KL_TEAM_PERSISTS || !worse) {
        snprintf(plan->decision.reason, sizeof plan->decision.reason, "tries %u worker%s: iteration %u of %d",
                 (unsigned)it->workers, it->workers == 1 ? "" : "s", (unsigned)team->measured + 1,
                 KL_TEAM_PERSISTS);
        return;
    }
    uint32_t back = team->tried_from < it->most ? team->tried_from : it->most;
    plan->verdict = KL_TEAM_BACK;
    plan->way = way_to(back, it->workers); /* direction of the change that is undone */
    plan->decision.count = plan->considered = back;
    double ratio = sqrt(now.by_work / team->before.by_work * team->tried_from / it->workers);
    double master_s = it->model.master_s;
    plan->forecast_s = fmax(0, (it->elapsed_s + master_s) / ratio - master_s);
    plan->decision.gain_s = it->elapsed_s - plan->forecast_s;
    snprintf(plan->decision.reason, sizeof plan->decision.reason,
             "back to %u worker%s: with %u an iteration takes %.3g times as long", (unsigned)back,
             back == 1 ? "" : "s", (unsigned)it->workers, ratio);
}

/* --- finding a better number of workers --- */

/* Return whether iterations are still becoming faster. The first iterations of a farm are slower than later
 * ones, for example because the first ones touch new memory. This iteration must be faster than all of the
 * last ones, because times may also go up and down. */
static bool settles(const kl_team *team, const kl_iteration *it) {
    kl_team_cost now = cost_of(it), least = least_of_last(team, KL_TEAM_PERSISTS);
    return team->measured > 0 && now.by_task < FASTER * least.by_task && now.by_work < FASTER * least.by_work;
}

/* Return either n or the number of workers that earlier iterations found, whichever is closer to the present
 * number. */
static uint32_t nearest(const kl_team *team, kl_team_way way, uint32_t n) {
    bool closer = way == KL_TEAM_FEWER ? team->nearest > n : team->nearest < n;
    return closer ? team->nearest : n;
}

static void say_change(const kl_iteration *it, kl_team_plan *plan) {
    uint32_t n = plan->considered;
    int at = snprintf(
        plan->decision.reason, sizeof plan->decision.reason,
        "%u%s worker%s instead of %u: index %.3g instead of %.3g, an iteration takes %s instead of %s",
        (unsigned)n, plan->way == KL_TEAM_OTHERS ? " faster" : "", n == 1 ? "" : "s", (unsigned)it->workers,
        index_with(it, n), present_index(it), kl_say_s(forecast_s(it, n)).text, kl_say_s(it->elapsed_s).text);
    if (contended(it) && at > 0 && (size_t)at < sizeof plan->decision.reason)
        snprintf(plan->decision.reason + at, sizeof plan->decision.reason - (size_t)at,
                 "; %.0f %% of the time is lost to unknown causes", 100 * contended_part(it));
}

static void refuse(const kl_iteration *it, kl_team_plan *plan, const char *why) {
    uint32_t n = plan->considered;
    plan->verdict = KL_TEAM_REFUSED;
    snprintf(plan->decision.reason, sizeof plan->decision.reason,
             "stays at %u worker%s: %u%s would have index %.3g instead of %.3g, %s", (unsigned)it->workers,
             it->workers == 1 ? "" : "s", (unsigned)n, plan->way == KL_TEAM_OTHERS ? " faster ones" : "",
             index_with(it, n), present_index(it), why);
}

static bool finding(const kl_iteration *it, uint32_t n) {
    double part = n == it->workers ? FINDING_OTHERS : FINDING;
    return index_with(it, n) < part * present_index(it);
}

/* If more workers would be faster but could not all be kept busy, say this in the reason. */
static void mention_unbalanceable(const kl_iteration *it, uint32_t limit, kl_team_plan *plan) {
    uint32_t n = best_of(it, it->most);
    if (n <= limit || n <= it->workers || !finding(it, n))
        return;
    char why[WHY_BYTES];
    snprintf(why, sizeof why, "but no more than %u can be kept busy to the end with %llu tasks",
             (unsigned)limit, (unsigned long long)it->tasks);
    plan->considered = n;
    plan->way = KL_TEAM_MORE;
    plan->decision.gain_s = it->elapsed_s - forecast_s(it, n);
    refuse(it, plan, why);
}

/* Return whether there is a reason not to make the change now, and write this reason to `why`. */
static bool objected(const kl_team *team, const kl_iteration *it, bool again, kl_team_plan *plan,
                     char why[WHY_BYTES]) {
    if (plan->way == KL_TEAM_OTHERS && it->run < team->others_until) {
        snprintf(why, WHY_BYTES, "but such a change did not pay; the next try is after run %llu",
                 (unsigned long long)team->others_until);
        return true;
    }
    plan->seen = again ? team->seen + 1 : 1;
    bool lost = unexplained_part(it) > UNEXPLAINED && !contended(it);
    uint32_t wanted = lost ? PATIENCE : KL_TEAM_PERSISTS;
    if (plan->way != KL_TEAM_FEWER && unexplained_part(it) > UNEXPLAINED) {
        plan->seen = 0;
        snprintf(why, WHY_BYTES, "but %.0f %% of the time is lost to %s", 100 * unexplained_part(it),
                 lost ? "imbalance" : "unknown causes");
        return true;
    }
    snprintf(why, WHY_BYTES, "seen in %u of %u iterations%s", (unsigned)plan->seen, (unsigned)wanted,
             lost ? ", because as much time is lost to imbalance" : "");
    return plan->seen < wanted;
}

static void say_nothing_better(const kl_iteration *it, uint32_t n, kl_team_plan *plan) {
    if (n == it->workers && index_with(it, n) < FINDING * present_index(it)) {
        snprintf(plan->decision.reason, sizeof plan->decision.reason,
                 "stays at %u worker%s: faster ones would have index %.3g instead of %.3g, not below %.0f %% "
                 "of it",
                 (unsigned)n, n == 1 ? "" : "s", index_with(it, n), present_index(it), 100 * FINDING_OTHERS);
        return;
    }
    int at = snprintf(plan->decision.reason, sizeof plan->decision.reason,
                      "stays at %u worker%s: none of 1 to %u has an index below %.0f %% of ",
                      (unsigned)it->workers, it->workers == 1 ? "" : "s", (unsigned)it->most, 100 * FINDING);
    if (at > 0 && (size_t)at < sizeof plan->decision.reason)
        snprintf(plan->decision.reason + at, sizeof plan->decision.reason - (size_t)at,
                 "%.3g; the best, %u, is expected at %.3g", present_index(it), (unsigned)n,
                 index_with(it, n));
}

/* This iteration found no better number of workers. plan->seen counts the iterations that found a better
 * number. Lower this count by 1. */
static void doubt(const kl_team *team, const kl_iteration *it, uint32_t n, kl_team_plan *plan) {
    say_nothing_better(it, n, plan);
    if (team->seen == 0 || team->workers != it->workers || settles(team, it))
        return;
    plan->seen = team->seen - 1;
    plan->way = team->way;
    plan->considered = team->nearest;
}

/* Return the best number of workers. If the model leaves much of the time unexplained, more workers are not
 * tried, so prefer a better number below the present number. */
static uint32_t best_that_may_be(const kl_iteration *it, uint32_t limit) {
    uint32_t n = best_of(it, limit);
    if (n < it->workers || !contended(it))
        return n;
    uint32_t fewer = best_of(it, limit < it->workers ? limit : it->workers);
    return finding(it, fewer) ? fewer : n;
}

/* Return whether a number of workers near n was measured. It is near if it is at most one step (factor STEP)
 * beyond n. */
static bool measured_near(const kl_iteration *it, uint32_t n) {
    double most = STEP * fmax(n, it->workers), least = fmin(n, it->workers) / STEP;
    for (const kl_team_point *p = it->team->points; p < it->team->points + KL_TEAM_POINTS; p++)
        if (p->until > it->run && beyond(it, p->workers, n) && p->workers <= most && p->workers >= least)
            return true;
    return false;
}

/* Return the index of n workers in the best case, in which the model overestimates the time by its greatest
 * error. */
static double hoped_index(const kl_iteration *it, uint32_t n) {
    kl_limit limit = kl_model_limit(&it->load, n);
    kl_doubt doubt = {.known = it->workers};
    double low_s = kl_model_interval(forecast_s(it, n), &doubt, n, &limit).low_s;
    return index_of(it, kl_speed_of(it->speeds, n), low_s);
}

/* Return a number of workers, one step from the present one, that may be better than the model says; 0:
 * there is none. */
static uint32_t worth_a_trial(const kl_team *team, const kl_iteration *it, uint32_t limit) {
    uint32_t found = 0, steps[] = {(uint32_t)ceil(it->workers * STEP), (uint32_t)(it->workers / STEP)};
    double least = FINDING * present_index(it);
    if (!kl_load_known(&it->load) || team->workers != it->workers || team->measured + 1 < KL_TEAM_PERSISTS)
        return 0;
    for (int i = 0; i < 2; i++) {
        bool may_be = steps[i] >= 1 && steps[i] <= limit && !measured_near(it, steps[i]);
        if (!may_be || hoped_index(it, steps[i]) >= least)
            continue;
        found = steps[i];
        least = hoped_index(it, found);
    }
    return found;
}

static void explore(const kl_iteration *it, uint32_t n, kl_team_plan *plan) {
    plan->verdict = KL_TEAM_CHANGED;
    plan->explores = true;
    plan->way = way_to(it->workers, n);
    plan->decision.count = plan->considered = n;
    plan->forecast_s = forecast_s(it, n);
    plan->decision.gain_s = it->elapsed_s - plan->forecast_s;
    snprintf(plan->decision.reason, sizeof plan->decision.reason,
             "%u worker%s instead of %u, because the model is not certain: the index is expected to be %.3g "
             "and may be %.3g, instead of %.3g",
             (unsigned)n, n == 1 ? "" : "s", (unsigned)it->workers, index_with(it, n), hoped_index(it, n),
             present_index(it));
}

static void say_why_it_stays(const kl_team *team, const kl_iteration *it, uint32_t limit,
                             kl_team_plan *plan) {
    uint32_t trial = worth_a_trial(team, it, limit);
    mention_unbalanceable(it, limit, plan);
    if (plan->verdict != KL_TEAM_NOTHING)
        return;
    if (trial > 0)
        explore(it, trial, plan);
    else
        doubt(team, it, best_that_may_be(it, limit), plan);
}

static void look_around(const kl_team *team, const kl_iteration *it, kl_team_plan *plan) {
    uint32_t limit = kl_team_balanceable(it), n = best_that_may_be(it, limit);
    if (!finding(it, n)) {
        say_why_it_stays(team, it, limit, plan);
        return;
    }
    char why[WHY_BYTES];
    plan->way = way_to(it->workers, n);
    bool again =
        team->seen > 0 && team->way == plan->way && team->workers == it->workers && !settles(team, it);
    uint32_t least = again ? nearest(team, plan->way, n) : n;
    again &= finding(it, least);
    plan->considered = again ? least : n;
    plan->decision.gain_s = it->elapsed_s - forecast_s(it, plan->considered);
    if (objected(team, it, again, plan, why)) {
        refuse(it, plan, why);
        return;
    }
    plan->verdict = KL_TEAM_CHANGED;
    plan->decision.count = plan->considered;
    plan->forecast_s = forecast_s(it, plan->considered);
    say_change(it, plan);
}

void kl_team_choose(const kl_team *team, const kl_iteration *iteration, kl_team_plan *plan) {
    kl_iteration informed = *iteration, *it = &informed;
    it->team = team;
    *plan = (kl_team_plan){
        .decision = {.kind = KL_DECIDES_WORKERS, .subject = KL_SUBJECT_ALL, .count = it->workers},
        .considered = it->workers,
        .forecast_s = it->elapsed_s};
    if (!usable(it))
        return;
    if (team->tried_from > 0 && team->workers == it->workers)
        judge(team, it, plan);
    else
        look_around(team, it, plan);
}

uint32_t kl_team_expect(const kl_iteration *it, char reason[KL_REASON_BYTES]) {
    *reason = '\0';
    if (!usable(it))
        return 0;
    uint32_t n = best_of(it, kl_team_balanceable(it));
    if (!finding(it, n) || unexplained_part(it) > UNEXPLAINED)
        n = it->workers;
    snprintf(reason, KL_REASON_BYTES, "with %u worker%s the index would be %.3g; with %u it was %.3g",
             (unsigned)n, n == 1 ? "" : "s", index_with(it, n), (unsigned)it->workers, present_index(it));
    return n;
}

/* Store the cost measured with a number of workers. If there is no room, replace the entry that becomes
 * outdated first. */
static void remember(kl_team *team, uint32_t workers, kl_team_cost cost, uint64_t until) {
    kl_team_point *place = team->points;
    for (kl_team_point *p = team->points; p < team->points + KL_TEAM_POINTS; p++) {
        if (p->workers == workers) {
            place = p;
            break;
        }
        if (p->until < place->until)
            place = p;
    }
    *place = (kl_team_point){workers, cost, until};
}

/* Count a change that did not pay. Return the number of the run until which such a change is not tried
 * again. */
static uint64_t failed(kl_team *team, kl_team_way way, uint64_t run) {
    uint32_t failures = team->failures[way]++;
    return run + ((uint64_t)BARRED_RUNS << (failures < BARRED_DOUBLINGS ? failures : BARRED_DOUBLINGS));
}

static void change(kl_team *team, const kl_iteration *it, const kl_team_plan *plan, kl_team_cost least) {
    bool back = plan->verdict == KL_TEAM_BACK;
    uint64_t until = back ? failed(team, plan->way, it->run) : it->run + BARRED_RUNS;
    if (plan->way == KL_TEAM_OTHERS)
        team->others_until = back ? until : team->others_until;
    else
        remember(team, it->workers, least, until);
    team->tried_from = back ? 0 : it->workers;
    team->explores = plan->explores;
    team->before = least;
    team->workers = (uint32_t)plan->decision.count;
    team->measured = team->seen = 0;
    team->way = KL_TEAM_STAY;
}

void kl_team_commit(kl_team *team, const kl_iteration *it, const kl_team_plan *plan) {
    if (!usable(it))
        return;
    bool same = team->workers == it->workers;
    kl_team_cost least = least_lately(team, it);
    team->measured = same ? team->measured : 0;
    team->costs[team->measured++ % KL_TEAM_PERSISTS] = cost_of(it);
    team->workers = it->workers;
    if (!same || team->measured >= KL_TEAM_PERSISTS)
        team->tried_from = 0; /* the change on trial has been judged, or is outdated because workers joined
                                 or left */
    team->way = plan->seen > 0 ? plan->way : KL_TEAM_STAY;
    team->seen = plan->seen;
    team->nearest = plan->considered;
    if (plan->verdict == KL_TEAM_CHANGED || plan->verdict == KL_TEAM_BACK)
        change(team, it, plan, least);
}
