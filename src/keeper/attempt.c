/* Begin an attempt, which is one start of the program, and end it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "keeper/keeper_private.h"

static const double LOOK_LIMIT_S =
    3; /* seconds in which hosts must answer when they are measured; later answers do not count */
static const double FIRST_LIMIT_S = 10; /* like LOOK_LIMIT_S, but for a keeper's first measurement, which also
                                           opens connections to the hosts */
static const double LOOK_AGAIN_S = 5;   /* seconds between two measurements while too few hosts are fit */

void kl_keeper_set(kl_keeper *k, kl_keeper_state state) {
    k->state = state;
    k->since_s = k->now_s;
}

void kl_keeper_look(kl_keeper *k, bool others) {
    kl_keeper_action *a = kl_keeper_ask_for(k, KL_KEEPER_LOOK);
    a->others = others;
    a->seconds = k->looked_s == 0 ? FIRST_LIMIT_S : LOOK_LIMIT_S;
    k->looks = true;
    k->looked_s = k->now_s;
    k->look_s = k->now_s + (others ? k->options.look_s : LOOK_AGAIN_S);
}

void kl_keeper_look_for_hosts(kl_keeper *k, kl_keeper_cause cause) {
    k->cause = cause;
    for (uint64_t i = 0; i < k->count; i++)
        k->hosts[i].rate = 0; /* the program runs on no host now, so measured speeds of hosts must count
                                 instead of the program's old rates */
    kl_keeper_set(k, KL_KEEPER_LOOKING);
    kl_keeper_look(k, false);
}

/* Return the first host that cannot be used and whose reason is known. NULL: there is none. */
static const kl_keeper_host *unfit_host(const kl_keeper *k) {
    for (uint64_t i = 0; i < k->count; i++)
        if (k->hosts[i].qos == 0 && *k->hosts[i].why)
            return &k->hosts[i];
    return NULL;
}

static void wait_for_hosts(kl_keeper *k, uint32_t placed) {
    if (k->state != KL_KEEPER_WAITING) {
        const kl_keeper_host *h = unfit_host(k);
        kl_keeper_decide(k, KL_DECIDES_WAIT,
                         "%u rank%s fit on the hosts, and %u are needed: waiting for hosts%s%.200s%s%.200s",
                         placed, placed == 1 ? "" : "s", k->options.least, h ? "; " : "", h ? h->name : "",
                         h ? ": " : "", h ? h->why : "");
        k->waited_s = k->now_s;
        kl_keeper_set(k, KL_KEEPER_WAITING);
    } else if (k->now_s - k->waited_s > k->options.wait_s) {
        kl_keeper_over(k, KL_KEEPER_GAVE_UP,
                       "no host has become fit in %s, so the keeper ends; the checkpoint stays, and the same "
                       "command continues the run",
                       kl_say_s(k->options.wait_s).text);
    }
}

/* Record the decision to launch: on which hosts, and from which sweep the attempt continues. */
static void say_launch(kl_keeper *k, uint32_t ranks) {
    char from[64] = "", where[32] = "";
    if (k->tally.saved > 0)
        snprintf(from, sizeof from, ", after sweep %llu", kl_ull(k->tally.saved));
    if (!k->options.queued)
        snprintf(where, sizeof where, "%u rank%s on ", ranks, ranks == 1 ? "" : "s");
    kl_keeper_action *a =
        kl_keeper_decide(k, KL_DECIDES_LAUNCH, "attempt %llu: %s%s%s", kl_ull(k->tally.attempt), where,
                         kl_keeper_say_hosts(k, false).text, from);
    a->decision.count = ranks;
}

static void launch(kl_keeper *k, uint32_t ranks) {
    for (uint64_t i = 0; i < k->count; i++)
        k->hosts[i].ranks = k->options.queued ? 0 : k->hosts[i].next;
    kl_keeper_tally_launch(k);
    kl_keeper_watch_launch(k);
    k->wish.move = k->wish.drain = false;
    k->wish.names[0] = '\0';
    k->waited_s = 0;
    k->look_s = k->now_s + k->options.look_s;
    kl_keeper_set(k, KL_KEEPER_STARTING);
    say_launch(k, ranks);
    kl_keeper_ask_for(k, KL_KEEPER_START)->ranks = ranks;
}

/* Choose the hosts of the next attempt. A planned move has already named its hosts, so keep them. A new
 * choice could return to the slow host that the program has just left. Such a host may look fit while the
 * program does not run on it. */
static uint32_t choose_hosts(kl_keeper *k) {
    if (k->options.queued)
        return k->options.ranks;
    uint32_t placed =
        k->cause >= KL_KEEPER_FOR_SPEED && k->cause <= KL_KEEPER_FOR_DRAIN ? kl_keeper_planned(k) : 0;
    return placed > 0 ? placed : kl_keeper_place(k, k->wish.names);
}

void kl_keeper_begin_attempt(kl_keeper *k) {
    uint32_t placed = choose_hosts(k);
    if (placed < k->options.least && k->wish.names[0])
        placed = kl_keeper_place(k, "");
    if (placed >= k->options.least)
        launch(k, placed);
    else
        wait_for_hosts(k, placed);
}

void kl_keeper_save_and_stop(kl_keeper *k, kl_keeper_cause cause) {
    k->cause = cause;
    if (k->asked + 1 < KL_KEEPER_JOBS_NUMBER)
        k->asked++;
    kl_keeper_set(k, KL_KEEPER_SAVING);
    kl_keeper_ask_for(k, KL_KEEPER_ASK)->number = k->tally.attempt * KL_KEEPER_NUMBERS + k->asked;
}

void kl_keeper_kill(kl_keeper *k, kl_keeper_cause cause) {
    k->cause = cause;
    kl_keeper_set(k, KL_KEEPER_KILLING);
    kl_keeper_kill_again(k);
}

void kl_keeper_kill_again(kl_keeper *k) {
    k->watch.killed_s = k->now_s;
    kl_keeper_ask_for(k, KL_KEEPER_KILL);
}

void kl_keeper_over(kl_keeper *k, kl_keeper_result result, const char *format, ...) {
    kl_keeper_promise_settle(k);
    kl_keeper_set(k, KL_KEEPER_IS_OVER);
    kl_keeper_action *a = kl_keeper_ask_for(k, KL_KEEPER_OVER);
    va_list args;
    va_start(args, format);
    vsnprintf(a->text, sizeof a->text, format, args);
    va_end(args);
    a->result = k->result = result;
    a->code = k->tally.code;
}
