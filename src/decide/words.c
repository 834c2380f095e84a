/* The names of decisions, the text of times in reasons, and functions that several policies use. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decide/policy.h"

const char *kl_decision_name(kl_decision_kind kind) {
    static const char *const names[KL_DECISION_KINDS] = {
        "nothing", "deal",    "withhold", "recall", "copy",     "assign", "policy",
        "factor",  "workers", "team",     "grain",  "program",  "move",   "stay",
        "wait",    "rest",    "refused",  "block",  "organise", "launch", "relocate",
        "restart", "give-up", "grow",     "shrink", "exclude",  "save",   "pin",
    };
    return names[kind];
}

kl_decision_kind kl_decision_find(const char *name) {
    kl_decision_kind kind = 0;
    while (kind < KL_DECISION_KINDS && strcmp(kl_decision_name(kind), name) != 0)
        kind++;
    return kind;
}

void kl_reason(kl_plan *plan, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(plan->decision.reason, sizeof plan->decision.reason, format, args);
    va_end(args);
}

uint64_t kl_whole_tasks(double tasks, uint64_t left) {
    double whole = ceil(tasks * (1 - 1e-12));
    if (!(whole < (double)left))
        return left;
    return whole < 1 ? 1 : (uint64_t)whole;
}

double kl_send_s(const kl_snapshot *snapshot) {
    return snapshot->answer_s > 0 ? snapshot->answer_s : snapshot->message.fixed_s;
}

double kl_task_units(const kl_snapshot *snapshot) {
    return snapshot->left && snapshot->left_units > 0 ? snapshot->left_units / (double)snapshot->left : 1;
}

kl_time_text kl_say_s(double seconds) {
    kl_time_text t;
    if (fabs(seconds) >= 0.9995) /* the format %.3g would print 0.9996 s as "1e+03 ms" */
        snprintf(t.text, sizeof t.text, "%.3g s", seconds);
    else if (fabs(seconds) >= 0.9995e-3)
        snprintf(t.text, sizeof t.text, "%.3g ms", seconds * 1e3);
    else
        snprintf(t.text, sizeof t.text, "%.3g us", seconds * 1e6);
    return t;
}
