/* Call the program's own policies: fill in the values that they see, and limit their answers. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide/policy.h"
#include "kilter/policy.h"

struct kl_own_policies {
    size_t count;
    kl_policy policies[];
};

struct kilter_policy_reason {
    kl_plan *plan;
};

static kilter_policy_worker worker_of(const kl_worker_view *v) {
    return (kilter_policy_worker){.number = v->number,
                                  .present = v->present,
                                  .chunks = v->chunks,
                                  .queued_tasks = v->queued_tasks,
                                  .queued_units = v->queued_units,
                                  .rate = kl_worker_rate(v),
                                  .unit_mean_s = v->unit_s.mean,
                                  .unit_sd_s = kl_stat_sd(&v->unit_s),
                                  .busy_s = v->busy_s,
                                  .units = v->units};
}

static kilter_policy_view view_of(const kl_look *look, const kilter_policy_worker *asks) {
    const kl_snapshot *s = look->snapshot;
    return (kilter_policy_view){.run = s->run,
                                .tasks = s->tasks,
                                .left = s->left,
                                .chunks = look->dealer->course.chunks,
                                .units = s->units,
                                .left_units = s->left_units,
                                .elapsed_s = s->now_s - s->began_s,
                                .workers = look->workers,
                                .began_workers = look->dealer->workers,
                                .rate = kl_crew_total(s->crew)->rates,
                                .unit_mean_s = s->unit_s.mean,
                                .unit_sd_s = kl_stat_sd(&s->unit_s),
                                .message_s = s->message.fixed_s,
                                .byte_s = s->message.per_unit_s,
                                .round_trip_s = s->round_trip_s,
                                .answer_s = s->answer_s,
                                .task_bytes = s->task_bytes,
                                .result_bytes = s->result_bytes,
                                .asks = asks,
                                .places = s->slots,
                                .farm = s};
}

bool kilter_policy_worker_get_sized(const kilter_policy_view *view, uint32_t place,
                                    kilter_policy_worker *worker, size_t bytes) {
    const kl_snapshot *s = view->farm;
    if (place >= s->slots)
        return false;
    kilter_policy_worker found = worker_of(&s->workers[place]);
    kl_struct_out(worker, bytes, KL_STRUCT(kilter_policy_worker, found));
    return true;
}

void kilter_policy_say(kilter_policy_reason *reason, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(reason->plan->decision.reason, sizeof reason->plan->decision.reason, format, args);
    va_end(args);
}

/* Limit the answer of a policy to the number of remaining tasks. The answer 0 is allowed while any present
 * worker has tasks, because that worker's next message asks the policy again. Otherwise deal one task. */
static void bound(const kl_look *look, const char *name, kl_plan *plan) {
    const kl_snapshot *s = look->snapshot;
    unsigned long long wanted = plan->decision.count, left = s->left;
    if (plan->decision.count > s->left) {
        plan->decision.count = s->left;
        kl_reason(plan, "policy %s chose %llu tasks, but only %llu are left", name, wanted, left);
    } else if (plan->decision.count == 0 && !(kl_crew_total(s->crew)->queued_units > 0)) {
        plan->decision.count = 1;
        kl_reason(plan, "policy %s chose no task although no worker has one, so one of %llu tasks is dealt",
                  name, left);
    }
}

static void deal_own(const kl_look *look, kl_plan *plan) {
    const kilter_policy *own = look->dealer->policy->own;
    const kilter_policy_worker *asks = KL_HAND(kilter_policy_worker, worker_of(look->self));
    const kilter_policy_view *view = KL_HAND(kilter_policy_view, view_of(look, asks));
    kl_reason(plan, "policy %s", own->name);
    kilter_policy_reason reason = {plan};
    plan->decision.count = own->choose(view, &reason, own->user);
    bound(look, own->name, plan);
}

/* --- the list of the program's policies --- */

static bool good_name(const char *name) {
    static const char characters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t size = name ? strlen(name) : 0;
    return size > 0 && size < KL_POLICY_NAME_BYTES && strspn(name, characters) == size;
}

static kilter_status check(const kilter_policy *const *policies, size_t at, kilter_error *error) {
    const kilter_policy *p = policies[at];
    const char *name = p->name ? p->name : "NULL", *wrong = NULL;
    if (!good_name(p->name))
        wrong = "a policy's name has 1 to 31 characters of a-z, 0-9, '-' and '_'";
    else if (kl_policy_find(name))
        wrong = "Kilter has a policy of this name; choose another one";
    else if (!p->choose)
        wrong = "the member `choose` is NULL; set it to the function that chooses";
    for (size_t i = 0; i < sizeof p->later / sizeof *p->later; i++)
        if (p->later[i])
            wrong = "the program sets the member `later`, which this Kilter does not know; run it with a "
                    "newer Kilter";
    for (size_t i = 0; !wrong && i < at; i++)
        if (strcmp(policies[i]->name, name) == 0)
            wrong = "two policies have this name";
    return wrong ? kl_fail(error, KILTER_ERR_USAGE, "policies[%zu], '%.40s': %s", at, name, wrong)
                 : KILTER_OK;
}

kilter_status kl_own_policies_new(const kilter_policy *const *list, kl_own_policies **own,
                                  kilter_error *error) {
    size_t count = 0;
    for (; list && list[count]; count++) {
        kilter_status status = check(list, count, error);
        if (status != KILTER_OK)
            return status;
    }
    kl_own_policies *made = count ? calloc(1, sizeof *made + count * sizeof made->policies[0]) : NULL;
    if (count && !made)
        return kl_fail(error, KILTER_ERR_MEMORY, "taking %zu policies: memory ran out", count);
    for (; made && made->count < count; made->count++)
        made->policies[made->count] = (kl_policy){.name = list[made->count]->name,
                                                  .summary = list[made->count]->summary,
                                                  .deal = deal_own,
                                                  .own = list[made->count]};
    *own = made;
    return KILTER_OK;
}

void kl_own_policies_free(kl_own_policies *own) {
    free(own);
}

const kl_policy *kl_own_policies_find(const kl_own_policies *own, const char *name) {
    for (size_t i = 0; own && name && i < own->count; i++)
        if (strcmp(own->policies[i].name, name) == 0)
            return &own->policies[i];
    return kl_policy_find(name);
}
