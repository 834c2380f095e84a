/* The policies in order of registration. */
#include "decide/policy.h"

static const kl_policy *const registry[] = {
    &kl_policy_static, &kl_policy_ss,  &kl_policy_fsc,   &kl_policy_gss,   &kl_policy_tss,
    &kl_policy_fac2,   &kl_policy_wf,  &kl_policy_awf_b, &kl_policy_awf_c, &kl_policy_af,
    &kl_policy_dpf,    &kl_policy_daf, &kl_policy_auto,  &kl_policy_ect,
};

size_t kl_policy_count(void) {
    return sizeof registry / sizeof *registry;
}

const kl_policy *kl_policy_at(size_t i) {
    return i < kl_policy_count() ? registry[i] : NULL;
}

/* Return the letter in lower case. tolower() is not used, because it depends on the locale. */
static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_name(const char *a, const char *b) {
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

const kl_policy *kl_policy_find(const char *name) {
    for (size_t i = 0; name && i < kl_policy_count(); i++)
        if (same_name(registry[i]->name, name))
            return registry[i];
    return NULL;
}

const char *kl_policy_name(const kl_policy *policy) {
    return policy->name;
}

const char *kl_policy_summary(const kl_policy *policy) {
    return policy->summary;
}

bool kl_policy_has_factor(const kl_policy *policy) {
    return policy->factor > 0;
}

bool kl_policy_rescues(const kl_policy *policy) {
    return policy->rescues;
}
