/* Find out why an attempt has ended, and decide what follows. An attempt ends when the launcher and all its
 * processes have ended. */
#include <math.h>
#include <stdio.h>

#include "keeper/keeper_private.h"

static const double REFUSED_AGAIN_S = 15; /* seconds until a refused attempt is tried again */

static bool runs(const kl_keeper *k) {
    return k->state >= KL_KEEPER_STARTING && k->state <= KL_KEEPER_KILLING;
}

static int exit_code(const kl_keeper_end *end) {
    bool has_code = end->how == KL_KEEPER_EXITED || (end->how == KL_KEEPER_MISSING && end->code > 0);
    return has_code ? (int)end->code : end->how == KL_KEEPER_SIGNALLED ? 128 + (int)end->code : 1;
}

static bool is_done(const kl_keeper *k, const kl_keeper_end *end) {
    bool well = end->how == KL_KEEPER_EXITED && end->code == 0;
    return well && !k->watch.stopped && (k->state != KL_KEEPER_KILLING || k->watch.done);
}

static void say_how(const kl_keeper_end *end, char *text, size_t size) {
    static const char *const HOW[] = {[KL_KEEPER_EXITED] = "the program ended with exit code %u",
                                      [KL_KEEPER_SIGNALLED] = "the launcher was killed by signal %u",
                                      [KL_KEEPER_MISSING] = "the launcher could not be started",
                                      [KL_KEEPER_LOST] =
                                          "the program is gone, and its exit code is not known",
                                      [KL_KEEPER_REFUSED] = "the attempt could not be started"};
    snprintf(text, size, HOW[end->how], end->code); // NOLINT(clang-diagnostic-format-nonliteral)
}

/* Record a failure, and what is lost: all sweeps since the newest checkpoint. */
static void say_failure(kl_keeper *k, const char *how) {
    const kl_keeper_watch *w = &k->watch;
    uint64_t lost = w->sweeps > k->tally.saved ? w->sweeps - k->tally.saved : 0;
    kl_keeper_action *a =
        w->reported
            ? kl_keeper_decide(k, KL_DECIDES_RESTART,
                               "%s after sweep %llu; %llu sweeps (%s of work) are lost", how,
                               kl_ull(w->sweeps), kl_ull(lost), kl_say_s((double)lost * w->sweep_s).text)
            : kl_keeper_decide(k, KL_DECIDES_RESTART, "%s before its first report", how);
    a->decision.count = lost;
    kl_keeper_promise_make(k, a->number, NULL);
}

static void give_up(kl_keeper *k, const char *how) {
    kl_keeper_decide(k, KL_DECIDES_GIVE_UP, "%u attempt%s in a row saved nothing new", k->tally.idle,
                     k->tally.idle == 1 ? "" : "s");
    kl_keeper_over(k, KL_KEEPER_GAVE_UP,
                   "given up: %s; %u attempt%s in a row saved nothing after sweep %llu. The cause is "
                   "probably in the program or its input; run the same command to try again",
                   how, k->tally.idle, k->tally.idle == 1 ? "" : "s", kl_ull(k->tally.saved));
}

static bool cannot_start(const kl_keeper *k, const kl_keeper_end *end) {
    return end->how == KL_KEEPER_MISSING ||
           (end->how == KL_KEEPER_EXITED && !k->watch.reported && k->tally.attempt == 1 &&
            (end->code == KL_KEEPER_NOT_EXECUTABLE || end->code == KL_KEEPER_NOT_FOUND));
}

static void fail(kl_keeper *k, const kl_keeper_end *end) {
    char how[KL_KEEPER_TEXT_BYTES / 4];
    say_how(end, how, sizeof how);
    if (k->cause == KL_KEEPER_FOR_HANG && k->state == KL_KEEPER_KILLING)
        snprintf(how, sizeof how, "the program stopped responding");
    if (cannot_start(k, end)) {
        kl_keeper_over(k, KL_KEEPER_GAVE_UP, "given up: %s", how);
        return;
    }
    say_failure(k, how);
    if (kl_keeper_tally_is_full(k))
        give_up(k, how);
    else
        kl_keeper_look_for_hosts(k, k->state == KL_KEEPER_KILLING ? k->cause : KL_KEEPER_FOR_FAILURE);
}

static const char *refusal(const kl_keeper *k) {
    return k->options.queued ? "the queue does not accept the job" : "the attempt could not be started";
}

/* Handle an attempt that did not begin. It is not counted among the attempts that saved nothing, because the
 * program did not run. If the first attempt is refused, the options are probably wrong. If a later one is
 * refused, the cause is probably temporary: the queue or the disk is full, or the queue's controller
 * restarts. */
static void refused(kl_keeper *k) {
    if (k->tally.refused_s == 0)
        k->tally.refused_s = k->now_s;
    if (k->tally.attempt == 1 || k->now_s - k->tally.refused_s > k->options.wait_s) {
        kl_keeper_over(k, KL_KEEPER_GAVE_UP, "given up: %s; run the same command to try again", refusal(k));
        return;
    }
    if (k->tally.refused_s == k->now_s)
        kl_keeper_decide(k, KL_DECIDES_WAIT, "%s; Kilter tries again for %s", refusal(k),
                         kl_say_s(k->options.wait_s).text);
    kl_keeper_set(k, KL_KEEPER_WAITING);
    k->look_s = k->now_s + REFUSED_AGAIN_S;
}

/* Handle a program that has saved and stopped, as the keeper asked it to. */
static void stopped(kl_keeper *k) {
    kl_keeper_cause cause = k->state == KL_KEEPER_SAVING ? k->cause : KL_KEEPER_FOR_LIMIT;
    if (k->state == KL_KEEPER_SAVING)
        kl_keeper_watch_stopped(k);
    if (cause == KL_KEEPER_FOR_LIMIT && !k->options.queued)
        kl_keeper_over(
            k, KL_KEEPER_STOPPED,
            "saved after sweep %llu, because the time limit is near; run the same command to continue",
            kl_ull(k->tally.saved));
    else if (kl_keeper_tally_is_full(k))
        give_up(k, "the program was stopped before it saved anything new");
    else
        kl_keeper_look_for_hosts(k, cause);
}

void kl_keeper_take_end(kl_keeper *k, const kl_keeper_end *end) {
    if (!runs(k) || end->attempt != k->tally.attempt)
        return;
    bool done = is_done(k, end), planned = k->watch.stopped, took = end->how != KL_KEEPER_REFUSED;
    k->tally.code = done ? 0 : exit_code(end);
    if (took) {
        k->tally.refused_s = 0;
        kl_keeper_tally_end(k, planned || done);
    }
    if (done)
        kl_keeper_over(k, KL_KEEPER_DONE, "done after %llu attempt%s", kl_ull(k->tally.attempt),
                       k->tally.attempt == 1 ? "" : "s");
    else if (k->wish.stop)
        kl_keeper_over(
            k, KL_KEEPER_STOPPED,
            planned ? "saved after sweep %llu and stopped; run the same command to continue"
                    : "stopped; the newest checkpoint is of sweep %llu; run the same command to continue",
            kl_ull(k->tally.saved));
    else if (!took)
        refused(k);
    else if (planned)
        stopped(k);
    else
        fail(k, end);
}
