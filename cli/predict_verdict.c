/* Find how many workers are enough, what limits them, and which changes would help. */
#include <math.h>

#include "predict.h"

static const double NEARLY = 1.03; /* two times count as equal if they differ by less than this factor */
enum { STEPS = 64 };

/* Return the next number of workers to examine after n: all small numbers, and some of the large ones. */
static uint32_t next_number(uint32_t n, uint32_t most) {
    uint32_t next = n + 1 + n / STEPS;
    return n < most && next > most ? most : next;
}

static kl_verdict verdict_of(const kl_basis *b, uint32_t most) {
    kl_point best = {0};
    for (uint32_t n = 1; n <= most; n = next_number(n, most)) {
        kl_point p = kl_predict_at(b, KL_ASYNCHRONOUS, n);
        if (isfinite(p.rounds_time_s) && (best.workers == 0 || p.rounds_time_s < best.rounds_time_s))
            best = p;
    }
    for (uint32_t n = 1; n < best.workers; n = next_number(n, most)) {
        kl_point p = kl_predict_at(b, KL_ASYNCHRONOUS, n);
        if (p.rounds_time_s <= NEARLY * best.rounds_time_s)
            return (kl_verdict){.enough = p};
    }
    return (kl_verdict){.enough = best, .is_most = best.workers == most};
}

static void own_cores(kl_basis *b) {
    b->load.apart = true;
}

static void more_cores(kl_basis *b) {
    b->load.use.cores *= 2;
}

static void small_messages(kl_basis *b) {
    b->load = kl_load_with_bytes(&b->load, 0.1);
    b->in[KL_IN_BYTES].value *= 0.1;
}

static void fast_link(kl_basis *b) {
    b->load.per_byte_s *= 0.1;
    b->in[KL_IN_PER_BYTE_S].value *= 0.1;
}

void kl_predict_verdict(kl_prediction *p) {
    static const struct {
        const char *key, *words;
        void (*change)(kl_basis *b);
    } changes[KL_WHAT_IFS] = {
        {"own_cores", "if the master had cores of its own", own_cores},
        {"twice_the_cores", "if the host of the master had twice the cores", more_cores},
        {"small_messages", "if inputs and results had a tenth of their bytes", small_messages},
        {"fast_link", "if the link between hosts were ten times as fast", fast_link}};
    p->verdict = verdict_of(p->basis, p->most);
    for (int i = 0; i < KL_WHAT_IFS && kl_load_known(&p->basis->load); i++) {
        kl_basis other = *p->basis;
        changes[i].change(&other);
        p->what_if[i] = (kl_what_if){changes[i].key, changes[i].words, verdict_of(&other, p->most)};
    }
}
