/* Decide whether a move pays, and keep the account of what moves gain and cost. */
#include <stdio.h>

#include "steer/steer.h"

/* --- whether --- */

/* Return the seconds for which the present speeds are expected to last from now on. If they have lasted
 * longer than usual, this is the time by which they exceed the usual duration. If the usual duration is not
 * known (0), this is the time for which they have lasted. */
static double remaining_s(const kl_prospect *p) {
    return p->lasted_s < p->lasts_s ? p->lasts_s - p->lasted_s : p->lasted_s - p->lasts_s;
}

static void say_move(const kl_prospect *p, kl_judgement *j) {
    if (j->verdict == KL_MOVE_HINDSIGHT)
        snprintf(j->reason, sizeof j->reason,
                 "a sweep takes %s instead of %s: staying has cost %s so far, moving costs %s",
                 kl_say_s(p->then_s).text, kl_say_s(p->now_s).text, kl_say_s(p->lost_s).text,
                 kl_say_s(p->move_s).text);
    else
        snprintf(
            j->reason, sizeof j->reason,
            "a sweep takes %s instead of %s: %s saved in the %s that speeds should last, at a cost of %s",
            kl_say_s(p->then_s).text, kl_say_s(p->now_s).text, kl_say_s(j->gain_s).text,
            kl_say_s(remaining_s(p)).text, kl_say_s(j->cost_s).text);
}

static void say_stay(const kl_prospect *p, kl_judgement *j) {
    if (j->verdict == KL_STAY_BALANCED)
        snprintf(j->reason, sizeof j->reason, "balanced: a sweep takes %s", kl_say_s(p->now_s).text);
    else if (p->lasts_s > p->lasted_s)
        snprintf(
            j->reason, sizeof j->reason,
            "saving %s in a sweep of %s is not worth a cost of %s: these speeds should end in %s, as seen "
            "before",
            kl_say_s(p->now_s - p->then_s).text, kl_say_s(p->now_s).text, kl_say_s(j->cost_s).text,
            kl_say_s(remaining_s(p)).text);
    else
        snprintf(j->reason, sizeof j->reason,
                 "other shares could save %s in a sweep of %s: moving costs %s, staying has cost %s so far",
                 kl_say_s(p->now_s - p->then_s).text, kl_say_s(p->now_s).text, kl_say_s(p->move_s).text,
                 kl_say_s(p->lost_s).text);
}

void kl_whether(const kl_prospect *p, kl_judgement *j) {
    *j = (kl_judgement){.verdict = KL_STAY_BALANCED, .cost_s = p->move_s};
    if (p->then_s < p->now_s) {
        j->gain_s = (1 - p->then_s / p->now_s) * remaining_s(p);
        j->verdict = KL_STAY_WAITING;
        if (p->lasts_s > 0)
            j->cost_s += p->back_s;
        if (p->lasts_s > 0 && j->gain_s > j->cost_s)
            j->verdict = KL_MOVE_FORESIGHT;
        else if (p->lost_s > 0 && p->lost_s >= p->move_s)
            j->verdict = KL_MOVE_HINDSIGHT;
    }
    if (j->verdict == KL_MOVE_FORESIGHT || j->verdict == KL_MOVE_HINDSIGHT)
        say_move(p, j);
    else
        say_stay(p, j);
}

/* --- the account of what moves gain and cost --- */

void kl_account_move(kl_account *account, double forecast_s) {
    account->moves++;
    account->forecast_s += forecast_s;
}

void kl_account_rest(kl_account *a, double now_s, double unit_s) {
    double first_s = KL_REST_MOVES * unit_s, most_s = first_s * (1 << KL_REST_DOUBLINGS);
    double again_s = a->paid ? a->rest_s / 2 : 2 * a->rest_s;
    a->rest_s = again_s < first_s ? first_s : again_s > most_s ? most_s : again_s;
    a->rests_until_s = now_s + a->rest_s;
    a->rests++;
    a->balance_s = 0;
    a->paid = false;
}

bool kl_account_settle(kl_account *a, double now_s, const kl_account_step *step, double unit_s,
                       char reason[KL_REASON_BYTES]) {
    double limit_s = KL_ACCOUNT_MOVES * unit_s, memory_s = KL_ACCOUNT_MEMORY * unit_s;
    if (a->moves == 0)
        return false;
    a->came_s += step->came_s;
    a->cost_s += step->cost_s;
    if (now_s < a->rests_until_s)
        return false;
    a->balance_s += step->lately_s - step->cost_s;
    a->balance_s = a->balance_s < memory_s ? a->balance_s : memory_s;
    a->paid = a->paid || a->balance_s >= memory_s / 2;
    if (a->balance_s >= -limit_s)
        return false;
    double lost_s = -a->balance_s;
    kl_account_rest(a, now_s, unit_s);
    snprintf(reason, KL_REASON_BYTES, "balancing rests for %s: lately it has cost %s more than it gained",
             kl_say_s(a->rest_s).text, kl_say_s(lost_s).text);
    return true;
}

void kl_account_wake(kl_account *account) {
    account->rests_until_s = 0;
}

bool kl_account_rests(const kl_account *a, double now_s, double lost_s) {
    return now_s < a->rests_until_s && lost_s < a->rest_s / 3;
}
