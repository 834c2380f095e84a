/* Look at a run in progress, and let some workers rest if the other workers keep all cores busy. During the
 * run, it cannot be measured whether this shortens the run, because its time is known only at the end. */
#include <math.h>
#include <stdio.h>

#include "decide/policy.h"

/* if at least this part of the cores' time is used, more workers cannot help */
static const double BUSY = 0.9;
/* if less than this part of the cores' time is used, more workers could use the idle time */
static const double FREE = 0.8;
/* fewer workers count as equally fast if the run takes at most this multiple of its time with all workers */
static const double AS_FAST = 1.03;
/* a decision needs at least this number of finished tasks per worker */
static const uint64_t TASKS_EACH = 8;
static const double WINDOW_S = 0.1; /* least number of seconds between two looks */
/* least time between two looks, as a part of the time since the run began */
static const double WINDOW_PART = 0.1;

double kl_glance_due_s(const kl_glance *g, double now_s) {
    return now_s + fmax(WINDOW_S, WINDOW_PART * (now_s - g->began_s));
}

/* Return a value proportional to the time of a run with this number of workers. Assume that a task needs the
 * same CPU time with any number of workers. With fewer workers it would probably need less, but this is not
 * measured. */
static double time_with(const kl_load *load, uint32_t workers) {
    kl_load as_dear = *load;
    as_dear.workers = workers;
    as_dear.even = true; /* all cores are busy, so the work is divided evenly */
    return kl_model_limit(&as_dear, workers).times / workers;
}

/* Return the least number of workers that, by the model, are as fast as all workers. */
static uint32_t enough(const kl_load *load, uint32_t workers) {
    double all = time_with(load, workers);
    uint32_t few = 0, many = workers; /* `few` workers are too few; `many` workers are enough */
    while (many > few + 1) {
        uint32_t middle = few + (many - few) / 2;
        if (time_with(load, middle) <= AS_FAST * all)
            many = middle;
        else
            few = middle;
    }
    return many;
}

static void say(const kl_glance_plan *plan, const char *what, double busy, char *reason) {
    snprintf(reason, KL_REASON_BYTES, "%u worker%s during the run: %s; the cores are %.0f %% busy",
             (unsigned)plan->decision.count, plan->decision.count == 1 ? "" : "s", what, 100 * busy);
}

static void look_for_fewer(kl_glance *g, const kl_sight *s, double busy, kl_glance_plan *plan) {
    uint32_t found =
        busy >= BUSY && s->done >= TASKS_EACH * s->workers ? enough(s->load, s->workers) : s->workers;
    bool again = g->found > 0 && g->found < s->workers && found < s->workers;
    uint32_t more = found > g->found ? found : g->found;
    g->found = found;
    if (!again || g->gave_up) {
        say(plan,
            found < s->workers ? "fewer workers would be as fast, but only one look has shown this"
                               : "fewer workers would be slower",
            busy, plan->decision.reason);
        return;
    }
    plan->decision.count = more;
    plan->changed = true;
    g->from = s->workers;
    say(plan, "more workers would be no faster", busy, plan->decision.reason);
}

static void look_at_trial(kl_glance *g, const kl_sight *s, double busy, kl_glance_plan *plan) {
    if (busy >= FREE || s->workers >= g->from) {
        say(plan, "the workers that rest would not help", busy, plan->decision.reason);
        return;
    }
    plan->decision.count = g->from;
    plan->changed = g->gave_up = true;
    g->from = g->found = 0;
    say(plan, "all workers are needed", busy, plan->decision.reason);
}

bool kl_glance_look(kl_glance *g, const kl_sight *s, kl_glance_plan *plan) {
    double window_s = s->now_s - g->then_s, busy = (s->cpu_s - g->then_cpu_s) / (window_s * s->cores);
    *plan = (kl_glance_plan){
        .decision = {.kind = KL_DECIDES_WORKERS, .subject = KL_SUBJECT_ALL, .count = s->workers}};
    if (!kl_load_known(s->load) || !(window_s > 0))
        return false;
    g->then_s = s->now_s;
    g->then_cpu_s = s->cpu_s;
    if (g->from > 0)
        look_at_trial(g, s, busy, plan);
    else
        look_for_fewer(g, s, busy, plan);
    return true;
}
