/* Store whether and why the worker must leave, and whether a new worker replaces it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/worker_private.h"

bool kl_is_renewal(const leaving *l) {
    const char *why = atomic_load(&l->why);
    /* no new worker replaces this one if it was also told to leave */
    return l->renewal && (!why || why == l->renewal);
}

const char *kl_worker_renewal(const kl_worker *w) {
    return kl_is_renewal(&w->leaving) ? w->leaving.renewal : NULL;
}

void kl_renew(leaving *l, const char *format, ...) {
    char why[WHY_BYTES];
    const char *none = NULL;
    va_list args;
    if (l->renewal)
        return;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    l->renewal = strdup(why); /* if memory runs out here, the worker stays, and the next call tries again */
    if (l->renewal)
        atomic_compare_exchange_strong(&l->why, &none, l->renewal);
}

void kl_fail_in_task(leaving *l, const kilter_error *why, double now_s) {
    l->failed = why->status;
    l->failure = strdup(why->text);
    l->failed_s = now_s;
}

kilter_status kl_task_failure(const leaving *l, kilter_error *error) {
    return l->failed == KILTER_OK
               ? KILTER_OK
               : kl_fail(error, l->failed, "%s", l->failure ? l->failure : "memory ran out");
}

void kl_leaving_adopt(leaving *l) {
    free(l->failure);
    l->failure = NULL;
    l->failed = KILTER_OK;
    l->dismissed = false;
}

void kl_leaving_free(leaving *l) {
    free(l->failure);
    free(l->renewal);
}

void kl_worker_leave(kl_worker *w, const char *why) {
    atomic_store(&w->leaving.why, why);
    kl_transport_wake(w->transport);
}
