/* Sweeps shorter than the slices in which the scheduler shares a core. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "steer/parts.h"

static const double CORE_CHANGED =
    0.2;                              /* a rank gets so much more or less of its core: that is another load */
static const double SAME_PART = 0.08; /* of all iterations: a choice that stands follows no smaller changes */
static const double WORTH_TRYING = 0.97; /* of the best so far: what takes more by the speeds is not tried */

static const char *const choice_names[KL_CHOICES] = {"equal shares", "shares in proportion",
                                                     "less on shared cores", "nothing on shared cores",
                                                     "halos of several sweeps at once"};
static const char *const short_names[KL_CHOICES] = {"equal", "in proportion", "less", "nothing", "halos"};

void kl_short_learn(kl_short *t, uint32_t ranks, const kl_rank_report *reports) {
    for (uint32_t r = 0; r < ranks; r++)
        t->core[r] = reports[r].share > 0 ? reports[r].share : 1;
}

static kilter_status place_of_choice(kl_short *t, const kl_outlook *o, int choice, double sweep_s,
                                     kl_place *at) {
    const double *speed = kl_loads_present(&o->loads);
    uint32_t ranks = o->options.ranks;
    if (choice == KL_CHOICE_EQUAL) {
        kl_put(o, at, o->equal);
        return KILTER_OK;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        double part = !kl_slices_shared(t->core[r]) ? 1
                      : choice == KL_CHOICE_OUT     ? 0
                      : choice == KL_CHOICE_LESS ? kl_slices_part(sweep_s, o->options.quantum_s, t->core[r])
                                                 : 1;
        o->scratch[r] = part * speed[r];
    }
    kilter_status status = kl_bounds(&o->costs, ranks, o->scratch, choice != KL_CHOICE_OUT, at);
    if (status == KILTER_ERR_RANGE) { /* all share their cores: nobody can be left out */
        kl_put(o, at, o->equal);
        status = KILTER_OK;
    }
    return status;
}

static void say_choice(const kl_short *t, const kl_outlook *o, double sweep_s, char *reason) {
    const kl_slices *c = &t->slices;
    const char *name = choice_names[c->choice], *before = "; tried: ";
    kl_time_text slice = kl_say_s(o->options.quantum_s);
    if (!c->holds) {
        snprintf(reason, KL_REASON_BYTES, "trying %s: a sweep of %s is short for slices of %s", name,
                 kl_say_s(sweep_s).text, slice.text);
        return;
    }
    size_t at = (size_t)snprintf(reason, KL_REASON_BYTES, "chosen for slices of %s: %s", slice.text, name);
    for (int i = 0; i < KL_CHOICES && at < KL_REASON_BYTES; i++) {
        double took_s = kl_slices_sweep_s(c, i);
        if (took_s > 0)
            at += (size_t)snprintf(reason + at, KL_REASON_BYTES - at, "%s%s %s", before, short_names[i],
                                   kl_say_s(took_s).text);
        before = took_s > 0 ? ", " : before;
    }
}

static bool cores_changed(const kl_short *t, const kl_outlook *o) {
    double most = 0;
    for (uint32_t r = 0; r < o->options.ranks; r++)
        most = kl_larger(most, fabs(t->core[r] - t->core_then[r]));
    return most > CORE_CHANGED;
}

/* Does the choice, whose place is the spare one, deserve a try? The speeds tell what it takes at least. */
static bool may_be_better(const kl_short *t, const kl_outlook *o) {
    const kl_slices *c = &t->slices;
    bool possible = c->choice != KL_CHOICE_DEEP || t->depth > 1;
    return possible && kl_sweep_s(o, o->spare) < WORTH_TRYING * kl_slices_best_s(c);
}

/* The choice in force, or the next one that deserves a try. Its place is the spare one. */
static kilter_status next_choice(kl_short *t, const kl_outlook *o, double now_s, int before) {
    kl_slices *c = &t->slices;
    double rows = (double)o->options.iterations / o->options.ranks;
    kilter_status status = place_of_choice(t, o, c->choice, now_s, o->spare);
    while (status == KILTER_OK && c->choice != before && c->choice != KL_CHOICE_EQUAL &&
           kl_slices_sweep_s(c, c->choice) == 0) {
        if (c->choice == KL_CHOICE_DEEP)
            t->depth = kl_slices_depth(kl_slices_best_s(c), o->options.quantum_s, rows, o->options.reach,
                                       o->options.deepest);
        if (may_be_better(t, o))
            break;
        kl_slices_refuse(c);
        status = place_of_choice(t, o, c->choice, now_s, o->spare);
    }
    return status;
}

kilter_status kl_short_decide(kl_steer *s, double spent_s, kl_steer_plan *plan, bool *tries) {
    kl_outlook *o = &s->outlook;
    double moving_s = kl_smaller(spent_s, o->step_s),
           now_s = o->sweeps > 0 ? (o->step_s - moving_s) / o->sweeps : 0;
    *tries = !o->options.scattered && kl_slices_apply(&s->trying.slices, o->options.ranks, s->trying.core,
                                                      now_s, o->options.quantum_s);
    if (!*tries) {
        kl_slices_leave(&s->trying.slices);
        return KILTER_OK;
    }
    if (s->trial.proof.tries)
        kl_proof_end(&s->trial.proof, o->now_s, KL_PROVED_NOTHING);
    int before = s->trying.slices.active && !s->trying.unplaced ? s->trying.slices.choice : -1;
    bool changed = cores_changed(&s->trying, o);
    if (!s->trying.slices.active || changed)
        memcpy(s->trying.core_then, s->trying.core, o->options.ranks * sizeof *s->trying.core);
    if (!s->trying.unplaced || !s->trying.slices.active || changed)
        kl_slices_next(&s->trying.slices, o->sweeps, o->step_s - moving_s, changed);
    s->trying.unplaced = false;
    kilter_status status = next_choice(&s->trying, o, now_s, before);
    plan->depth = s->trying.slices.choice == KL_CHOICE_DEEP ? s->trying.depth : 1;
    double least = before == s->trying.slices.choice ? SAME_PART * (double)o->options.iterations : 0;
    s->proposed = status == KILTER_OK && (double)kl_volume(o, o->spare) > least ? o->spare : NULL;
    if (s->proposed && kl_steer_barred(s))
        s->proposed = NULL;
    double then_s = kl_slices_sweep_s(&s->trying.slices, s->trying.slices.choice);
    kl_judgement *j = &plan->judgement;
    *j = (kl_judgement){.verdict = s->proposed ? KL_MOVE_HINDSIGHT : KL_STAY_BALANCED,
                        .cost_s = s->proposed ? kl_move_s(o, o->spare) : 0};
    plan->now_s = now_s;
    plan->then_s = then_s > 0 ? then_s : now_s;
    say_choice(&s->trying, o, now_s, j->reason);
    plan->move = s->proposed != NULL;
    return status;
}
