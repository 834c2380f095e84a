/* Requests of people to move the run, to free hosts, and to stop. Each request is answered at once and
 * carried out later. */
#include <stdio.h>
#include <string.h>

#include "keeper/keeper_private.h"

static bool refuse_names(kl_keeper *k, const char *names) {
    char unknown[KL_KEEPER_NAME_BYTES];
    if (kl_keeper_names_known(k, names, unknown))
        return false;
    kl_keeper_answer(k, true, "'%.200s' is not a host of this run", unknown);
    return true;
}

/* Handle a request to move the run. Hosts that it names are no longer drained. */
static void wish_move(kl_keeper *k, const char *names) {
    if (k->options.queued && *names) {
        kl_keeper_answer(k, true,
                         "the queue chooses the hosts of this run; kilter drain keeps it off a host");
        return;
    }
    if (refuse_names(k, names))
        return;
    for (uint64_t i = 0; i < k->count && *names; i++)
        if (kl_keeper_listed(names, k->hosts[i].name))
            k->hosts[i].drained = false;
    k->wish.move = true;
    snprintf(k->wish.names, sizeof k->wish.names, "%s", names);
    if (k->state == KL_KEEPER_RUNNING)
        kl_keeper_look(k, true);
    if (*names)
        kl_keeper_answer(k, false, "the run moves to %.300s, if these hosts are fit", names);
    else
        kl_keeper_answer(k, false, "the run moves to the fittest hosts, unless it is on them already");
}

static uint32_t slots_beside(const kl_keeper *k, const char *names) {
    uint32_t slots = 0;
    for (uint64_t i = 0; i < k->count; i++)
        if (kl_keeper_can_use(&k->hosts[i]) && !kl_keeper_listed(names, k->hosts[i].name))
            slots += k->hosts[i].slots;
    return slots;
}

static void wish_drain(kl_keeper *k, const char *names) {
    bool used = false;
    if (refuse_names(k, names))
        return;
    if (!k->options.queued && slots_beside(k, names) < k->options.least) {
        kl_keeper_answer(k, true, "fewer than %u ranks would fit on the other hosts", k->options.least);
        return;
    }
    for (uint64_t i = 0; i < k->count; i++)
        if (kl_keeper_listed(names, k->hosts[i].name)) {
            k->hosts[i].drained = true;
            used |= k->hosts[i].ranks > 0 && k->state >= KL_KEEPER_STARTING;
        }
    k->wish.drain = used;
    k->tally.by_hand |= used;
    if (used && k->state == KL_KEEPER_RUNNING)
        kl_keeper_look(k, true);
    kl_keeper_answer(k, false,
                     used ? "the run leaves %.300s as soon as its state is saved" : "%.300s gets no ranks",
                     names);
}

/* Handle a request to stop the run. Before its first report the program cannot save, so it is killed. An
 * existing checkpoint stays as it is. */
static void wish_stop(kl_keeper *k) {
    bool again = k->wish.stop;
    k->wish.stop = true;
    k->tally.by_hand = true;
    kl_keeper_answer(k, false, "the run stops");
    if (k->state < KL_KEEPER_STARTING)
        kl_keeper_over(k, KL_KEEPER_STOPPED, "stopped; run the same command to continue");
    else if (k->state == KL_KEEPER_RUNNING && !again)
        kl_keeper_save_and_stop(k, KL_KEEPER_FOR_STOP);
    else if (k->state == KL_KEEPER_STARTING || again)
        kl_keeper_kill(k, KL_KEEPER_FOR_STOP);
}

void kl_keeper_take_wish(kl_keeper *k, const kl_keeper_event *event) {
    const char *names = event->names ? event->names : "";
    if (k->state == KL_KEEPER_IS_OVER)
        kl_keeper_answer(k, true, "the run has ended");
    else if (event->kind == KL_KEEPER_MOVE)
        wish_move(k, names);
    else if (event->kind == KL_KEEPER_STOP)
        wish_stop(k);
    else if (*names)
        wish_drain(k, names);
    else
        kl_keeper_answer(k, true, "no host is named");
}
