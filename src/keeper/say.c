/* Make the actions of the keeper, and the sentences that say what it does. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "keeper/keeper_private.h"

kl_keeper_action *kl_keeper_ask_for(kl_keeper *k, kl_keeper_act act) {
    uint32_t last = k->action_count < KL_KEEPER_ACTIONS ? k->action_count++ : KL_KEEPER_ACTIONS - 1;
    kl_keeper_action *a = &k->actions[last];
    *a = (kl_keeper_action){.act = act, .attempt = k->tally.attempt};
    return a;
}

bool kl_keeper_take(kl_keeper *k, kl_keeper_action *action) {
    if (k->first_action == k->action_count) {
        k->first_action = k->action_count = 0;
        return false;
    }
    *action = k->actions[k->first_action++];
    return true;
}

kl_keeper_action *kl_keeper_decide(kl_keeper *k, kl_decision_kind kind, const char *format, ...) {
    kl_keeper_action *a = kl_keeper_ask_for(k, KL_KEEPER_DECIDED);
    va_list args;
    va_start(args, format);
    vsnprintf(a->text, sizeof a->text, format, args);
    va_end(args);
    a->number = ++k->decisions;
    a->decision = (kl_decision){.kind = kind, .subject = KL_SUBJECT_ALL};
    memcpy(a->decision.reason, a->text,
           sizeof a->decision.reason - 1); /* copy the text, cut to the size of `reason` */
    return a;
}

void kl_keeper_answer(kl_keeper *k, bool refused, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(k->answer, sizeof k->answer, format, args);
    va_end(args);
    k->refused = refused;
}

/* Append the name of a host. If the name would leave no room for "…", append "…" instead. Return the new
 * length. */
static size_t add_name(kl_keeper_list *list, size_t length, const kl_keeper_host *h, uint32_t ranks) {
    static const size_t MORE_BYTES = sizeof ", …";
    char name[KL_KEEPER_NAME_BYTES + 16];
    int bytes =
        snprintf(name, sizeof name, ranks > 1 ? "%s%s (%u)" : "%s%s", length > 0 ? ", " : "", h->name, ranks);
    if (length + (size_t)bytes + MORE_BYTES >= sizeof list->text) {
        snprintf(list->text + length, sizeof list->text - length, "%s…", length > 0 ? ", " : "");
        return sizeof list->text;
    }
    memcpy(list->text + length, name, (size_t)bytes + 1);
    return length + (size_t)bytes;
}

kl_keeper_list kl_keeper_say_hosts(const kl_keeper *k, bool next) {
    kl_keeper_list list = {""};
    size_t length = 0;
    for (uint64_t i = 0; i < k->count && length < sizeof list.text; i++) {
        uint32_t ranks = next ? k->hosts[i].next : k->hosts[i].ranks;
        if (ranks > 0)
            length = add_name(&list, length, &k->hosts[i], ranks);
    }
    if (length == 0)
        snprintf(list.text, sizeof list.text, "%s", k->options.queued ? "hosts of the queue" : "no host");
    return list;
}

uint32_t kl_keeper_ranks(const kl_keeper *k, bool next) {
    uint32_t ranks = 0;
    for (uint64_t i = 0; i < k->count; i++)
        ranks += next ? k->hosts[i].next : k->hosts[i].ranks;
    return ranks;
}

const char *kl_keeper_state_name(kl_keeper_state state) {
    static const char *const names[KL_KEEPER_STATES] = {
        "new", "looking", "waiting", "starting", "running", "saving", "killing", "over",
    };
    return names[state];
}

const char *kl_keeper_cause_name(kl_keeper_cause cause) {
    static const char *const names[KL_KEEPER_CAUSES] = {
        "none", "speed", "scale", "move", "drain", "limit", "stop", "hang", "failure",
    };
    return names[cause];
}
