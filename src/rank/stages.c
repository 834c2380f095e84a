/* The stages of a call: which one a rank has reached. */
#include "rank/rank.h"

void kl_rank_call(kl_rank *k, kl_loop_call call) {
    k->deep = 0;
    k->stage[0] = k->kind->stages[call];
}

kl_action kl_rank_do(kl_rank *k, const kl_stage *stages) {
    k->stage[++k->deep] = stages;
    return (kl_action){.act = KL_GO_ON};
}

kl_action kl_rank_act(kl_rank *k, double now_s) {
    k->now_s = now_s;
    while (*k->stage[k->deep] || k->deep > 0) {
        const kl_stage **place = &k->stage[k->deep];
        if (!**place) {
            k->deep--;
            continue;
        }
        const kl_stage *stage = (*place)++;
        kl_action action = (*stage)(k);
        if (action.again)
            *place = stage;
        if (action.act != KL_GO_ON)
            return action;
    }
    return (kl_action){.act = KL_RETURN};
}
