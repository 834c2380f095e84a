/* Messages (words) of rank 0 to all ranks about checkpoints. The ranks have agreed before which sweeps a
 * word is sent and received. */
#include "loop/saver_mpi.h"

void kl_schedule_init(kl_schedule *s, uint64_t first) {
    s->now = (kl_word){.sends = first, .due = first, .save_at = KL_NO_SWEEP};
}

static kl_mail mail_of(kl_schedule *s) {
    return (kl_mail){.data = &s->word, .bytes = sizeof s->word, .tag = KL_TAG_WORD};
}

/* Begin to send a word. Rank 0 must not change the word while it is being sent. So kl_schedule_take() waits
 * on rank 0 until the word is sent. */
kilter_status kl_schedule_send(kl_group *g, kl_schedule *s, kilter_error *error) {
    s->on_way = true;
    return g->rank == 0 ? kl_group_pass_on(g, &s->requests, mail_of(s), error) : KILTER_OK;
}

static kilter_status receive(kl_group *g, kl_schedule *s, kilter_error *error) {
    kilter_status status = kl_requests_await(g, &s->requests, error);
    if (status == KILTER_OK)
        status = kl_group_hear(g, &s->requests, mail_of(s), error);
    return status == KILTER_OK ? kl_group_pass_on(g, &s->requests, mail_of(s), error) : status;
}

kilter_status kl_schedule_take(kl_group *g, kl_schedule *s, kilter_error *error) {
    kilter_status status = g->rank > 0 ? receive(g, s, error) : kl_requests_await(g, &s->requests, error);
    if (status != KILTER_OK)
        return status;
    s->now = s->word;
    s->on_way = false;
    return KILTER_OK;
}
