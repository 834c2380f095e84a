/* Store the decisions and actions of the growth until the driver takes them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "growth/growth_private.h"

/* Append an action. If the driver has not taken earlier actions and there is no room, the new action is
 * dropped. */
static void put(kl_growth *g, const kl_growth_action *action) {
    if (g->action_count < KL_GROWTH_ACTIONS)
        g->actions[(g->first_action + g->action_count++) % KL_GROWTH_ACTIONS] = *action;
}

void kl_growth_act_on(kl_growth *g, kl_growth_act act, const kl_growth_job *job) {
    kl_growth_action action = {.act = act};
    if (job)
        memcpy(action.id, job->id, sizeof action.id);
    put(g, &action);
}

void kl_growth_decide(kl_growth *g, const kl_decision *about, const char *format, ...) {
    kl_growth_action action = {.act = KL_GROWTH_DECIDED, .decision = *about};
    action.decision.subject = KL_SUBJECT_ALL;
    va_list args;
    va_start(args, format);
    vsnprintf(action.decision.reason, sizeof action.decision.reason, format, args);
    va_end(args);
    put(g, &action);
}

bool kl_growth_take(kl_growth *g, kl_growth_action *action) {
    if (g->action_count == 0)
        return false;
    *action = g->actions[g->first_action];
    g->first_action = (g->first_action + 1) % KL_GROWTH_ACTIONS;
    g->action_count--;
    return true;
}
