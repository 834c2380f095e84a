/* Follow the reports of the present attempt, and notice when they stop. */
#include <math.h>

#include "keeper/keeper_private.h"

static const double HANG_SWEEPS =
    10; /* a program hangs if it makes no progress for this multiple of the longest sweep */
static const double FIRST_SWEEP = 3;     /* limit for the first sweep, as a multiple of the value of --hang */
static const double START_LEAST_S = 30;  /* least time limit in seconds for the first report of an attempt */
static const double START_LAUNCHES = 10; /* time limit for the first report, as a multiple of the time from
                                            launch to first report in earlier attempts */
static const double WATCHED_MOST_S = 1; /* greatest number of seconds between two calls that counts as silence
                                           of the program; in a longer gap, the keeper itself was stopped */
static const double MARGIN_LEAST_S = 10; /* the run is saved at least this many seconds before a time limit */
static const double SMOOTH_S =
    1; /* time constant in seconds of averages over time; short, because other programs come and go */
static const double MARGIN_SAVES =
    5; /* time reserved for saving, as a multiple of: longest time of a save + longest time of a sweep */

void kl_keeper_watch_launch(kl_keeper *k) {
    k->watch = (kl_keeper_watch){.started_s = k->now_s};
    k->asked = 0;
    k->pending = false;
    k->limit_s = 0;
    k->evidence.pays_s = k->evidence.sum = 0;
    for (uint64_t i = 0; i < k->count; i++) {
        k->hosts[i].rate = 0;
        k->hosts[i].launch_pace = k->hosts[i].ranks > 0 ? k->hosts[i].pace : 0;
    }
}

static bool is_news(const kl_keeper_watch *w, const kl_keeper_report *r) {
    return !w->reported || r->sweeps != w->sweeps || r->saved != w->saved || r->answered != w->answered ||
           r->stopped != w->stopped || r->done != w->done;
}

static void note_first(kl_keeper *k, const kl_keeper_report *r) {
    kl_keeper_watch *w = &k->watch;
    w->first_s = k->now_s;
    w->first = r->sweeps;
    k->costs.launch_s = fmax(k->now_s - w->started_s, 0);
    k->tally.reported = true;
}

bool kl_keeper_watch_report(kl_keeper *k, const kl_keeper_report *r) {
    kl_keeper_watch *w = &k->watch;
    bool first = !w->reported;
    double passed_s = k->now_s - w->reported_s, weight = 1 - exp(-passed_s / SMOOTH_S);
    if (is_news(w, r))
        w->quiet_s = 0;
    bool rates_good = kl_keeper_take_rates(k, r, weight);
    if (first)
        note_first(k, r);
    w->reported = true;
    w->reported_s = k->now_s;
    w->sweeps = r->sweeps;
    w->expected = r->expected;
    w->saved = r->saved;
    w->answered = r->answered;
    w->stopped = r->stopped;
    w->done = r->done;
    w->sweep_s = r->sweep_s > 0 ? kl_keeper_smooth(w->sweep_s, r->sweep_s, weight) : 0;
    if (rates_good)
        kl_keeper_learn_speed(k, first ? 0 : fmin(passed_s, WATCHED_MOST_S));
    if (w->sweep_s > 0 && (w->best_sweep_s == 0 || w->sweep_s < w->best_sweep_s))
        w->best_sweep_s = w->sweep_s;
    w->longest_s = fmax(w->longest_s, fmax(r->longest_s, r->load_s));
    w->write_s = fmax(w->write_s, r->write_s);
    k->tally.longest_s = fmax(k->tally.longest_s, r->longest_s);
    return first;
}

void kl_keeper_watch_time(kl_keeper *k, double passed_s) {
    k->watch.quiet_s += fmin(fmax(passed_s, 0), WATCHED_MOST_S);
}

/* Return for how many seconds a program may make no progress; 0: there is no limit. Before the first sweep
 * has ended, only --hang gives a limit. After the loop is closed there is no limit, because the program may
 * still write results. */
static double silence_s(const kl_keeper *k) {
    const kl_keeper_watch *w = &k->watch;
    double longest_s = fmax(w->longest_s, k->tally.longest_s);
    if (w->done)
        return 0;
    if (!(longest_s > 0))
        return FIRST_SWEEP * k->options.hang_s;
    return fmax(k->options.hang_s, HANG_SWEEPS * fmax(longest_s, w->write_s));
}

double kl_keeper_hang_s(const kl_keeper *k) {
    if (k->watch.reported)
        return silence_s(k);
    if (k->tally.reported)
        return fmax(fmax(START_LEAST_S, k->options.hang_s), START_LAUNCHES * k->costs.launch_s);
    return 0;
}

double kl_keeper_margin_s(const kl_keeper *k) {
    const kl_keeper_watch *w = &k->watch;
    if (k->options.margin_s > 0)
        return k->options.margin_s;
    return fmax(MARGIN_LEAST_S, MARGIN_SAVES * (w->write_s + w->longest_s));
}

void kl_keeper_watch_stopped(kl_keeper *k) {
    k->costs.stop_s = fmax(k->now_s - k->since_s, 0);
}
