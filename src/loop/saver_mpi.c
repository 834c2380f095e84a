/* Decide when a loop saves its rows. Rank 0 decides, and all ranks learn the decision before one and the same
 * sweep. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/loop_mpi.h"
#include "model/model.h"

static const double WORDS_S = 0.1; /* least seconds between two messages of rank 0 about saving */
/* assumed speed and fixed cost of copying rows, until they are measured */
static const double GUESSED_BYTES_PER_S = 1e9, GUESSED_FIXED_S = 0.001;

/* --- opening --- */

typedef struct opening { /* message of rank 0 when checkpoints are opened */
    kilter_error error;
    uint64_t on, reports, every;
    char folder[4096], stem[256];
} opening;

static kilter_status find_interval(const kilter_loop_options *o, kl_saver *v, kilter_error *error) {
    const char *told = getenv("KILTER_CHECKPOINT_S");
    char *end = NULL;
    v->fixed_s = o->checkpoint_s;
    if (!(o->checkpoint_s >= 0 && isfinite(o->checkpoint_s)))
        return kl_fail(error, KILTER_ERR_RANGE, "checkpoint_s must be a number of seconds, or 0");
    if (o->checkpoint_s > 0 || !told || !*told)
        return KILTER_OK;
    v->fixed_s = strtod(told, &end);
    if (*end || !(v->fixed_s > 0 && isfinite(v->fixed_s)))
        return kl_fail(error, KILTER_ERR_RANGE,
                       "KILTER_CHECKPOINT_S: '%.100s' is not a number of seconds above 0", told);
    return KILTER_OK;
}

/* Return the path of the checkpoints. Return NULL if no checkpoints are wanted. */
static const char *wanted_path(const kilter_loop_options *o) {
    const char *path = o->checkpoint ? o->checkpoint : getenv("KILTER_CHECKPOINT");
    return path && *path && strcmp(path, "none") != 0 ? path : NULL;
}

static kilter_status prepare(const kilter_loop_options *o, kl_saver *v, opening *w, kilter_error *error) {
    enum { GENERATIONS = 2 };
    v->generations = o->checkpoint_generations > 0 ? o->checkpoint_generations : GENERATIONS;
    kilter_status status = find_interval(o, v, error);
    if (status == KILTER_OK)
        status = kl_ckpt_load(&v->library, error);
    if (status == KILTER_OK)
        status = kl_ckpt_folder_open(wanted_path(o), &v->folder, error);
    if (status != KILTER_OK)
        return status;
    if (strlen(v->folder.path) >= sizeof w->folder || strlen(v->folder.stem) >= sizeof w->stem)
        return kl_fail(error, KILTER_ERR_RANGE, "the checkpoint's path is too long");
    strcpy(w->folder, v->folder.path);
    strcpy(w->stem, v->folder.stem);
    return KILTER_OK;
}

/* Read the options of checkpoints, and the environment. Only rank 0 calls this. */
static void decide(kilter_loop *l, opening *w) {
    const kilter_loop_options *o = &l->options;
    const char *keep = getenv("KILTER_KEEP");
    bool none = o->checkpoint && strcmp(o->checkpoint, "none") == 0;
    w->reports = keep && *keep && !none;
    w->on = wanted_path(o) != NULL;
    w->every = o->checkpoint_every > 0 ? o->checkpoint_every : 1;
    if (!w->on)
        return;
    if ((l->saver = calloc(1, sizeof *l->saver)))
        prepare(o, l->saver, w, &w->error);
    else
        kl_fail(&w->error, KILTER_ERR_MEMORY, "memory ran out");
}

/* Allocate the state of checkpoints on this rank. Return false if memory ran out. */
static bool set_up(kilter_loop *l, const opening *w) {
    if (!l->saver)
        l->saver = calloc(1, sizeof *l->saver);
    kl_saver *v = l->saver;
    if (!v)
        return false;
    v->every = w->every;
    v->save.saver = v;
    v->folder.path = v->folder.path ? v->folder.path : kl_text("%s", w->folder);
    v->folder.stem = v->folder.stem ? v->folder.stem : kl_text("%s", w->stem);
    return v->folder.path && v->folder.stem;
}

/* Agree whether all ranks are ready for checkpoints, and whether each can use the folder that rank 0 uses.
 * If not, the loop is not opened. */
static kilter_status set_up_all(kilter_loop *l, const opening *w, bool *refused, kilter_error *error) {
    const char *why = access(w->folder, W_OK | X_OK) == 0 ? NULL : strerror(errno);
    uint64_t rank = (uint64_t)l->bundle->group.rank, values[] = {set_up(l, w), why ? rank : UINT64_MAX};
    kilter_status status = kl_group_least(&l->bundle->group, values, 2, error);
    *refused = status == KILTER_OK && (!values[0] || values[1] != UINT64_MAX);
    if (!*refused)
        return status;
    if (!values[0])
        return kl_fail(error, KILTER_ERR_MEMORY, "opening loop '%s': memory ran out", l->name);
    return kl_fail(error, KILTER_ERR_SYSTEM,
                   "opening loop '%s': rank %llu cannot write to the folder '%.200s' of the checkpoints%s%s; "
                   "choose a folder that all hosts share",
                   l->name, kl_ull(values[1]), w->folder, why ? ": " : "", why ? why : "");
}

kilter_status kl_loop_saver_open(kilter_loop *l, bool *refused, kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    *refused = false;
    if (!kl_mpi_ranks_die) /* in a simulation there are no checkpoints, because it has no files */
        return KILTER_OK;
    opening *w = l->opening = calloc(1, sizeof *w);
    if (!w)
        return kl_fail(error, KILTER_ERR_MEMORY, "opening loop '%s': memory ran out", l->name);
    if (l->bundle->group.rank == 0)
        decide(l, w);
    int code = MPI_Ibcast(w, sizeof *w, MPI_BYTE, 0, l->bundle->group.comm, &request);
    kilter_status status = kl_group_await(&l->bundle->group, code, request, error);
    if (status != KILTER_OK)
        return status;
    *refused = w->error.status != KILTER_OK;
    if (*refused)
        return kl_fail(error, w->error.status, "opening loop '%s': %s", l->name, w->error.text);
    l->rank.options.watched = w->reports;
    if (w->on)
        status = set_up_all(l, w, refused, error);
    return status == KILTER_OK && w->reports ? kl_loop_progress_open(l, error) : status;
}

void kl_loop_saver_free(kilter_loop *l) {
    free(l->opening);
    free(l->kept.list);
    kl_loop_progress_free(l);
    if (!l->saver)
        return;
    kl_requests_free(&l->saver->schedule.requests);
    kl_saving_free(&l->saver->save);
    kl_ckpt_folder_free(&l->saver->folder);
    free(l->saver);
}

/* --- deciding --- */

static double guess_cost_s(const kilter_loop *l) {
    double bytes = (double)kl_layout_row_bytes(&l->rank.layout) * (double)l->options.iterations;
    return GUESSED_FIXED_S + bytes / l->bundle->group.ranks / GUESSED_BYTES_PER_S;
}

static double between_failures_s(const kilter_loop *l, double now_s) {
    return kl_model_between_failures_s(l->saver->before_s + now_s - l->bundle->group.opened_s,
                                       l->saver->failures);
}

/* Return the interval between two checkpoints in seconds. If the user chose no interval, the interval is at
 * least twice as long as writing a checkpoint takes. */
static double interval_s(const kilter_loop *l, double now_s) {
    const kl_saver *v = l->saver;
    if (v->fixed_s > 0)
        return v->fixed_s;
    double cost_s = v->saves > 0 ? v->cost_s : guess_cost_s(l);
    return fmax(kl_model_checkpoint_s(cost_s, between_failures_s(l, now_s)), 2 * v->write_s);
}

/* Write text that says after how many seconds the next checkpoint follows, and why. */
static void say_interval(const kilter_loop *l, double now_s, char *text, size_t bytes) {
    const kl_saver *v = l->saver;
    double between_s = between_failures_s(l, now_s), chosen_s = interval_s(l, now_s);
    kl_time_text interval = kl_say_s(chosen_s);
    if (v->fixed_s > 0)
        snprintf(text, bytes, "next checkpoint after %s, as the user wants", interval.text);
    else if (chosen_s > kl_model_checkpoint_s(v->cost_s, between_s))
        snprintf(text, bytes, "next checkpoint after %s, twice the time that writing takes", interval.text);
    else
        snprintf(text, bytes, "next checkpoint after %s: each costs %s, with a failure every %s",
                 interval.text, kl_say_s(v->cost_s).text, kl_say_s(between_s).text);
}

/* Return the bytes of a checkpoint up to the end of its last part. */
static uint64_t saved_bytes(const kl_ckpt_plan *plan) {
    uint64_t most = 0;
    for (size_t i = 0; i < plan->count; i++) {
        uint64_t end = plan->parts[i].at + kl_ckpt_part_bytes(&plan->parts[i]);
        most = end > most ? end : most;
    }
    return most;
}

/* Record the checkpoint that has ended. Only rank 0 calls this. */
static void record_save(const kilter_loop *l) {
    kl_saver *v = l->saver;
    bool failed = v->failure.status != KILTER_OK;
    char next[112], why[44];
    kl_decision d = {.kind = KL_DECIDES_SAVE,
                     .subject = KL_SUBJECT_ALL,
                     .count = failed ? 0 : saved_bytes(&v->save.plan),
                     .cost_s = failed ? 0 : v->save_s};
    say_interval(l, kl_loop_now_s(l), next, sizeof next);
    if (failed)
        snprintf(why, sizeof why, "not written: %.30s", v->failure.text);
    else
        snprintf(why, sizeof why, "%scomplete after %s", v->asked ? "requested, " : "",
                 kl_say_s(v->write_s).text);
    snprintf(d.reason, sizeof d.reason, "%s; %s", why, next);
    kl_loop_record_decision(l, v->save.began_s - l->bundle->group.opened_s, &d);
    v->unrecorded = false;
}

/* Return the number of sweeps until rank 0 sends its next message about saving. This number is at most one
 * more than half the number of sweeps so far. The limit is needed because the next sweeps may take longer
 * than the last ones. */
static uint64_t next_word(const kilter_loop *l, uint64_t sweep, double now_s, double *sweep_s) {
    const kl_saver *v = l->saver;
    uint64_t passed = sweep - v->word_sweep, known = 1 + (sweep - v->sweeps_before) / 2;
    double most_s = fmin(WORDS_S, interval_s(l, now_s));
    *sweep_s = passed > 0 ? (now_s - v->word_s) / (double)passed : 0;
    double sweeps = *sweep_s > 0 ? most_s / *sweep_s : 1;
    uint64_t wanted = sweeps < 1 ? 1 : sweeps > (double)known ? known : (uint64_t)sweeps;
    return wanted < known ? wanted : known;
}

/* Decide whether to save now. A request of the keeper comes first. Before the loop's first sweep there is
 * nothing to save: a program that resumes after 0 sweeps starts from the beginning. */
static bool wants_save(kilter_loop *l, double now_s, bool *stops) {
    kl_saver *v = l->saver;
    if (v->save.under_way || v->schedule.now.save_at != KL_NO_SWEEP || v->schedule.now.due == 0)
        return false;
    kl_keep_what asked = kl_loop_progress_asked(l, now_s);
    *stops = asked == KL_KEEP_STOP;
    v->asked = asked != KL_KEEP_NOTHING;
    return v->asked || now_s - v->since_s >= interval_s(l, now_s);
}

static void make_word(kilter_loop *l, uint64_t sweep, double now_s) {
    kl_saver *v = l->saver;
    kl_word *w = &v->schedule.word;
    const kl_word *now = &v->schedule.now;
    bool stops = false, saves = wants_save(l, now_s, &stops);
    double sweep_s;
    uint64_t hooks = next_word(l, sweep, now_s, &sweep_s);
    bool at_once = l->bundle->group.ranks == 1 || (sweep_s >= WORDS_S && l->options.kind == KILTER_DOALL);
    *w = *now;
    if (now->save_at == sweep) { /* the ranks save before this sweep already, so the next message must not
                                    ask for the same checkpoint again */
        w->save_at = KL_NO_SWEEP;
        w->stops = false;
    }
    if (saves) {
        w->save_at = (now->due + v->every - 1) / v->every * v->every;
        w->stops = stops;
    }
    w->sends = sweep + hooks > now->due ? sweep + hooks : now->due;
    w->due = w->sends + !at_once;
    v->word_s = now_s;
    v->word_sweep = sweep;
}

/* Send and receive the messages of rank 0 that are due before a sweep. */
static kilter_status exchange_words(kilter_loop *l, uint64_t sweep, kilter_error *error) {
    kl_schedule *s = &l->saver->schedule;
    kilter_status status = KILTER_OK;
    if (s->on_way && s->now.due == sweep)
        status = kl_schedule_take(&l->bundle->group, s, error);
    if (status != KILTER_OK || s->now.sends != sweep || s->on_way)
        return status;
    if (l->bundle->group.rank == 0)
        make_word(l, sweep, kl_loop_now_s(l));
    status = kl_schedule_send(&l->bundle->group, s, error);
    return status == KILTER_OK && s->now.due == sweep ? kl_schedule_take(&l->bundle->group, s, error)
                                                      : status;
}

/* --- calls of the program that may save --- */

static kilter_status say_stopped(const kilter_loop *l, uint64_t sweep, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_STOPPED,
                   "loop '%s' was saved before sweep %llu and stopped on request; start the program again to "
                   "continue",
                   l->name, kl_ull(sweep));
}

static kilter_status stop(kilter_loop *l, uint64_t sweep, kilter_error *error) {
    kl_saver *v = l->saver;
    kl_saving *s = &v->save;
    uint64_t *saved = &s->bytes[0];
    v->stopping = true;
    kilter_status status = kl_saving_finish(l, error);
    if (v->unrecorded)
        record_save(l);
    if (status != KILTER_OK)
        return status;
    *saved = v->failure.status == KILTER_OK;
    kl_mail mail = {.data = saved, .bytes = sizeof *saved, .tag = KL_TAG_SAVE};
    status = kl_group_tell(&l->bundle->group, &s->requests, mail, error);
    v->stopped = status == KILTER_OK && *saved;
    v->stopping = false;
    if (l->bundle->group.rank == 0)
        kl_loop_progress_news(l);
    return v->stopped ? say_stopped(l, sweep, error) : status;
}

kilter_status kl_loop_save_if_due(kilter_loop *l, kilter_error *error) {
    kl_saver *v = l->saver;
    if (!v)
        return KILTER_OK;
    uint64_t sweep = v->sweeps_before + kl_meter_sweep(&l->rank.meter);
    if (v->stopped)
        return say_stopped(l, sweep, error);
    kilter_status status = kl_loop_saver_look(l, error);
    if (status == KILTER_OK)
        status = exchange_words(l, sweep, error);
    if (status != KILTER_OK || v->schedule.now.save_at != sweep)
        return status;
    bool stops = v->schedule.now.stops;
    v->schedule.now.save_at = KL_NO_SWEEP;
    v->schedule.now.stops = false;
    status = kl_saving_begin(l, sweep, stops, error);
    return status == KILTER_OK && stops ? stop(l, sweep, error) : status;
}

kilter_status kl_loop_saver_look(kilter_loop *l, kilter_error *error) {
    kl_saver *v = l->saver;
    kilter_status status = KILTER_OK;
    if (!v)
        return KILTER_OK;
    if (v->save.under_way)
        status = kl_saving_look(l, error);
    if (v->unrecorded)
        record_save(l);
    if (v->news && !v->stopping && l->bundle->group.rank == 0)
        kl_loop_progress_news(l);
    return status;
}

/* Receive the last message of rank 0 about saving, even if the loop closes before the sweep for which the
 * message is meant. Then wait for the checkpoint that is being written. */
kilter_status kl_loop_saver_close(kilter_loop *l, kilter_error *error) {
    kl_saver *v = l->saver;
    if (!v || !v->settled)
        return KILTER_OK;
    kilter_status status =
        v->schedule.on_way ? kl_schedule_take(&l->bundle->group, &v->schedule, error) : KILTER_OK;
    if (status == KILTER_OK)
        status = kl_saving_finish(l, error);
    if (v->unrecorded)
        record_save(l);
    return status == KILTER_OK ? kl_requests_await(&l->bundle->group, &v->schedule.requests, error) : status;
}
