/* The stages of a call: find the stage that a rank has reached, and do it. */
#include "rank/rank.h"

void kl_rank_call(kl_rank *k, kl_loop_call call) {
    if (call == KL_LOOP_BEGIN)
        kl_meter_begin_sweep(&k->meter, kl_length(kl_layout_own(&k->layout)), k->now_s);
    k->deep = 0;
    k->stage[0] = k->kind->stages[call];
}

kl_act kl_rank_do(kl_rank *k, const kl_stage *stages) {
    k->stage[++k->deep] = stages;
    return KL_GO_ON;
}

kl_act kl_rank_do_and_repeat(kl_rank *k, const kl_stage *stages) {
    k->stage[++k->deep] = stages;
    return KL_REPEAT;
}

/* Go back from a list of stages that is over to the list that called it. Return false if no list called it.
 */
static bool go_back(kl_rank *k) {
    if (k->deep == 0)
        return false;
    k->deep--;
    return true;
}

/* Count the seconds that MPI took to copy moving rows while their messages were posted or checked. The wait
 * for rows that have not arrived is counted later, when it ends. */
static void count_copying(kl_rank *k, double now_s) {
    const kl_action *last = &k->action;
    if (k->exchange.moving && (last->act == KL_POST || last->act == KL_LOOK) && last->set == &k->exchange.set)
        kl_meter_moving(&k->meter, now_s - k->now_s);
}

const kl_action *kl_rank_act(kl_rank *k, double now_s) {
    kl_act act = KL_GO_ON;
    count_copying(k, now_s);
    k->now_s = now_s;
    while (act <= KL_REPEAT) {
        const kl_stage **place = &k->stage[k->deep], *stage = *place;
        if (*stage) {
            *place = stage + 1;
            act = (*stage)(k);
            if (act != KL_GO_ON && (act == KL_REPEAT || k->action.again))
                *place = stage;
        } else if (!go_back(k)) {
            act = kl_return(k);
        }
    }
    return &k->action;
}
