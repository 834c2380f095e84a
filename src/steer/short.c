/* Choose shares by trials if sweeps are shorter than the time slices in which the scheduler shares a core
 * between processes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "steer/parts.h"

/* while the chosen kind of shares stays the same, rows move only if more than this part of all iterations
 * would move */
static const double SAME_PART = 0.08;
/* A kind of shares is tried only if the forecast for it is below this multiple of the best measured time. The
 * limit is higher for the kind that gives no rows to ranks on shared cores. Such ranks send no halos, so
 * sweeps may take less time than forecast. */
static const double WORTH_TRYING = 0.97, WORTH_TRYING_OUT = 1.25;

/* If ranks share cores with each other, the moves of a trial take at most MOVING_PART of the time so far.
 * They may take MOVING_PART_MUCH of it if the forecast is below MUCH_FASTER times the best measured time. The
 * first estimates of moves are often far too long. */
static const double MOVING_PART = 0.05, MOVING_PART_MUCH = 2, MUCH_FASTER = 0.2;
/* equal shares need no trial if this number of rounds was measured with them just before the trials */
enum { LEAST_WAITED = 3 };
/* seconds without trials if equal shares were best and ranks share cores: at first, and at most */
static const double FIRST_PAUSE_S = 10, LONGEST_PAUSE_S = 80;
static const double CALM_S =
    1; /* if no core was shared for this number of seconds, the load is not expected to come again */

void kl_short_init(kl_short *t, uint32_t ranks) {
    t->depth = 1;
    t->placed = t->before = KL_CHOICES;
    kl_cores_init(&t->cores, ranks);
}

/* Return the part of its core share that a rank may use with this kind of shares. A rank with a core that
 * counts as free uses all of it, so at least one rank gets iterations. */
static double used_part(const kl_outlook *o, int choice, double share, double limit, double sweep_s) {
    if (share >= limit)
        return 1;
    return choice == KL_CHOICE_OUT    ? 0
           : choice == KL_CHOICE_LESS ? kl_slices_part(sweep_s, o->options.quantum_s, share)
                                      : 1;
}

static kilter_status place_of_choice(kl_short *t, const kl_outlook *o, int choice, double sweep_s,
                                     kl_place *at) {
    const double *speed = kl_loads_present(&o->loads), *share = t->cores.then;
    uint32_t ranks = o->options.ranks;
    if (choice == KL_CHOICE_EQUAL) {
        kl_put(o, at, o->equal);
        return KILTER_OK;
    }
    double limit = kl_slices_limit(ranks, share);
    for (uint32_t r = 0; r < ranks; r++)
        o->scratch[r] = speed[r] * used_part(o, choice, share[r], limit, sweep_s);
    return kl_bounds(&o->costs, ranks, o->scratch, choice != KL_CHOICE_OUT, at);
}

/* Return whether the shares `after` give some rank about as many iterations as the refused move, or more.
 * This is checked only for ranks that the refused move would have given more iterations, because they may
 * have no memory for them. */
static bool needs_refused(const kl_steer *s, const kl_place *after) {
    const kl_outlook *o = &s->outlook;
    const kl_place *refused = s->barred, *here = o->here;
    uint64_t tolerance = o->options.iterations / o->options.ranks / 10;
    for (uint32_t r = 0; s->is_barred && r < o->options.ranks; r++) {
        uint64_t wanted = refused[r + 1] - refused[r];
        if (wanted > here[r + 1] - here[r] && after[r + 1] - after[r] + tolerance >= wanted)
            return true;
    }
    return false;
}

/* Return the time from which a trial of the shares in o->spare is not too dear, compared with the time so
 * far. A trial moves rows to these shares and back. If ranks share cores with each other, a trial seldom
 * gains much, and may come later. */
static double cheap_from_s(const kl_steer *s) {
    const kl_outlook *o = &s->outlook;
    bool much = kl_sweep_s(o, o->spare) < MUCH_FASTER * kl_slices_best_s(&s->trying.slices);
    return o->options.crowded ? 2 * kl_move_s(o, o->spare) / (much ? MOVING_PART_MUCH : MOVING_PART) : 0;
}

/* Return whether a kind of shares (choice) may be better than the best measured one. Its shares are in
 * o->spare. The time forecast from the ranks' speeds is about the least time that a sweep can take
 * with these shares. */
static bool may_be_better(const kl_steer *s, int choice) {
    const kl_outlook *o = &s->outlook;
    const kl_slices *c = &s->trying.slices;
    bool shares = choice != KL_CHOICE_OUT;
    double limit = shares ? WORTH_TRYING : WORTH_TRYING_OUT;
    return kl_sweep_s(o, o->spare) < limit * kl_slices_best_s(c) &&
           (!shares || kl_slices_may_share(c, o->options.ranks, s->trying.cores.then));
}

/* Prepare deep halos: one exchange sends the ghost rows for several sweeps. Store the number of these sweeps
 * in t->depth. The shares for deep halos are in o->spare. If they need a move that was refused, replace them
 * by equal shares. Return false if t->depth is 1, because the halos are then not deep. */
static bool deepen(kl_steer *s) {
    const kl_outlook *o = &s->outlook;
    kl_short *t = &s->trying;
    double rows = (double)o->options.iterations / o->options.ranks, best_s = kl_slices_best_s(&t->slices);
    if (needs_refused(s, o->spare))
        kl_put(o, o->spare, o->equal);
    if (best_s < HUGE_VAL && !t->slices.holds && t->placed != KL_CHOICE_DEEP)
        t->depth = kl_slices_depth(best_s, o->options.quantum_s, rows, o->options.reach, o->options.deepest);
    return t->depth > 1;
}

/* Store the shares of the present kind (c->choice) in o->spare. *useful: whether this kind can be used. If
 * the kind was not measured yet, it must also be worth trying. If KL_CHOICE_OUT is only too dear now, store
 * in t->out_s from when it is not. */
static kilter_status look_at_choice(kl_steer *s, double now_s, bool *useful) {
    const kl_outlook *o = &s->outlook;
    kl_short *t = &s->trying;
    const kl_slices *c = &t->slices;
    kilter_status status = place_of_choice(t, o, c->choice, now_s, o->spare);
    bool new = c->choice != KL_CHOICE_EQUAL && c->choice != t->placed &&kl_slices_sweep_s(c, c->choice) == 0;
    bool better = status == KILTER_OK && (c->choice != KL_CHOICE_DEEP || deepen(s)) &&
                  (c->choice == t->placed || !needs_refused(s, o->spare)) &&
                  (!new || may_be_better(s, c->choice));
    double from_s = better && new ? cheap_from_s(s) : 0;
    *useful = better && from_s <= o->now_s;
    if (new && !c->holds && c->choice == KL_CHOICE_OUT)
        t->out_s = *useful ? 0 : from_s;
    return status;
}

/* While another kind of shares is kept, try the one without rows on shared cores as soon as its moves are not
 * too dear. The first estimates of moves are often far too long. */
static kilter_status try_out_later(kl_steer *s, double now_s) {
    const kl_outlook *o = &s->outlook;
    kl_short *t = &s->trying;
    if (t->out_s == 0 || !t->slices.holds)
        return KILTER_OK;
    kilter_status status = place_of_choice(t, o, KL_CHOICE_OUT, now_s, o->spare);
    bool better = status == KILTER_OK && !needs_refused(s, o->spare) && may_be_better(s, KL_CHOICE_OUT);
    t->out_s = better ? cheap_from_s(s) : 0;
    if (better && t->out_s <= o->now_s) {
        kl_slices_offer(&t->slices, KL_CHOICE_OUT);
        t->out_s = 0;
        t->stored = false;
    }
    return status;
}

/* Return whether the kind without rows on shared cores will be tried soon, because its moves are too dear
 * only for a short time. */
static bool tries_out_soon(const kl_short *t, const kl_outlook *o) {
    return t->out_s > 0 && t->out_s < o->now_s + FIRST_PAUSE_S;
}

/* Find the kind of shares for the next round: the present kind, or the next one that is worth trying. */
static kilter_status next_choice(kl_steer *s, double now_s) {
    kl_slices *c = &s->trying.slices;
    bool useful;
    kilter_status status = look_at_choice(s, now_s, &useful);
    while (status == KILTER_OK && !useful && !c->holds) {
        kl_slices_refuse(c);
        status = look_at_choice(s, now_s, &useful);
    }
    return status;
}

/* If trials have just ended, remember their result. If the load changed meanwhile, they have none. */
static void store_found(kl_short *t, const kl_outlook *o) {
    const kl_slices *c = &t->slices;
    bool ended = c->holds && c->hold > 0 && !t->stored && !tries_out_soon(t, o);
    if (!ended || kl_cores_changed(&t->cores, o->options.ranks))
        return;
    kl_found result = {.at_s = o->now_s, .choice = c->held, .depth = t->depth};
    kl_found_store(t->found, &t->cores, o->options.ranks, &result);
    t->stored = true;
}

/* Another load begins. If trials have found the best choice under this load before, keep this choice, and
 * return true. */
static bool change_load(kl_steer *s) {
    const kl_outlook *o = &s->outlook;
    kl_short *t = &s->trying;
    uint32_t ranks = o->options.ranks;
    const kl_found *known = kl_found_before(t->found, &t->cores, ranks, o->now_s);
    if (o->options.crowded && kl_cores_freed(&t->cores, ranks))
        t->slices.held = KL_CHOICE_EQUAL; /* what helped under the load may not help without it */
    kl_cores_store(&t->cores, ranks);
    t->pause_s = t->again_s = 0;
    t->out_s = 0;
    s->is_barred = false; /* a rank may have memory now */
    if (!known)
        return false;
    kl_slices_resume(&t->slices, known->choice);
    t->depth = known->depth;
    t->stored = true;
    return true;
}

/* Count the round as a measurement of the kind of shares that the rows have. In a trial, a round before the
 * rows have moved does not count. */
static void count_round(kl_steer *s, double took_s) {
    const kl_outlook *o = &s->outlook;
    kl_short *t = &s->trying;
    kl_slices *c = &t->slices;
    bool placed = t->placed == c->choice, changed = kl_cores_changed(&t->cores, o->options.ranks);
    if (c->active && !c->holds && !placed)
        return;
    bool known = changed && (c->holds || !c->active) && change_load(s);
    if (!known && kl_slices_next(c, placed ? o->sweeps : 0, took_s, changed, o->now_s)) {
        kl_cores_store(&t->cores, o->options.ranks);
        t->stored = false;
        t->out_s = 0;
        s->is_barred = false;
        if (!c->holds && t->waited.rounds >= LEAST_WAITED)
            kl_slices_know_equal(c, &t->waited);
    }
    t->waited = (kl_tried){0};
    t->loaded = false;
}

/* Propose the present kind of shares, which is in o->spare. */
static void propose(kl_steer *s, double now_s, kl_steer_plan *plan) {
    const kl_outlook *o = &s->outlook;
    kl_short *t = &s->trying;
    const kl_slices *c = &t->slices;
    double least = t->placed == c->choice ? SAME_PART * (double)o->options.iterations : 0;
    double then_s = kl_slices_sweep_s(c, c->choice);
    bool differs = (double)kl_volume(o, o->spare) > least;
    s->proposed = differs && !needs_refused(s, o->spare) ? o->spare : NULL;
    if (!differs)
        t->placed = c->choice;
    plan->move = s->proposed != NULL;
    plan->depth = c->choice == KL_CHOICE_DEEP ? t->depth : 1;
    plan->now_s = now_s;
    plan->then_s = then_s > 0 ? then_s : now_s;
    plan->judgement = (kl_judgement){.verdict = plan->move ? KL_MOVE_HINDSIGHT : KL_STAY_BALANCED,
                                     .cost_s = plan->move ? kl_move_s(o, o->spare) : 0};
    kl_slices_say(c, now_s, o->options.quantum_s, plan->judgement.reason);
}

void kl_short_moved(kl_short *t) {
    t->before = t->placed;
    t->placed = t->slices.active ? t->slices.choice : KL_CHOICES;
}

void kl_short_refused(kl_short *t) {
    kl_slices *c = &t->slices;
    t->placed = t->before;
    if (!c->active || t->placed == c->choice)
        return;
    if (c->holds)
        kl_slices_return(c, t->placed);
    else
        kl_slices_refuse(c);
}

/* Return whether a load began or ended only recently. A load that began recently may end before trials do. A
 * load that ended recently may come again. Meanwhile no rows move, because in such short sweeps the ranks'
 * speeds do not show which shares are best. But rows that trials have moved may move back. */
static bool is_passing(kl_short *t, const kl_outlook *o, bool loaded, double now_s) {
    const kl_slices *c = &t->slices;
    if (loaded) {
        t->seen_s = o->now_s;
        return true;
    }
    bool lately = t->seen_s > 0 && o->now_s - t->seen_s < CALM_S;
    return lately && c->held == KL_CHOICE_EQUAL && kl_slices_short(now_s, o->options.quantum_s) &&
           kl_volume(o, o->equal) == 0;
}

/* Measure equal shares while a load does not count yet. The load may have begun within the first round, so
 * this round does not count. */
static void measure_equal(kl_short *t, const kl_outlook *o, bool loaded, double took_s) {
    if (!loaded || kl_volume(o, o->equal) > 0) {
        t->waited = (kl_tried){0};
        t->loaded = loaded;
    } else if (!t->loaded) {
        t->loaded = true;
    } else {
        t->waited.rounds++;
        t->waited.executions += o->sweeps;
        t->waited.elapsed_s += took_s;
    }
}

static void wait_for_load(kl_steer *s, double now_s, kl_steer_plan *plan) {
    kl_steer_stay(s, KL_STAY_WAITING, plan);
    plan->now_s = plan->then_s = now_s;
    snprintf(plan->judgement.reason, KL_REASON_BYTES,
             "other processes use a core now and then, in time slices of %s: Kilter tries no shares for "
             "loads shorter than %s",
             kl_say_s(s->outlook.options.quantum_s).text, kl_say_s(kl_cores_lasting_s()).text);
}

/* If ranks share cores, the conditions for trials always hold. So if equal shares turned out best, end the
 * trials for some time, in which rows move as in long sweeps. */
static void pause_trials(kl_short *t, const kl_outlook *o) {
    const kl_slices *c = &t->slices;
    if (!o->options.crowded || !c->holds || tries_out_soon(t, o) || c->held != KL_CHOICE_EQUAL ||
        kl_volume(o, o->equal) > 0)
        return;
    if (c->hold > 0) /* after trials, and not because there was no time for trials */
        t->pause_s = 2 * t->pause_s;
    t->pause_s = kl_larger(FIRST_PAUSE_S, kl_smaller(t->pause_s, LONGEST_PAUSE_S));
    t->again_s = o->now_s + t->pause_s;
}

/* Return whether trials are paused. A load that begins or ends during the pause ends it. */
static bool is_paused(const kl_short *t, const kl_outlook *o) {
    return o->now_s < t->again_s && !kl_cores_changed(&t->cores, o->options.ranks);
}

static kilter_status decide(kl_steer *s, double took_s, double now_s, kl_steer_plan *plan) {
    kl_proof *proof = &s->trial.proof;
    s->trying.seen_s = s->outlook.now_s;
    if (proof->tries)
        kl_proof_end(proof, s->outlook.now_s, KL_PROVED_NOTHING);
    count_round(s, took_s);
    kilter_status status = try_out_later(s, now_s);
    if (status == KILTER_OK)
        status = next_choice(s, now_s);
    store_found(&s->trying, &s->outlook);
    if (status == KILTER_OK)
        propose(s, now_s, plan);
    pause_trials(&s->trying, &s->outlook);
    return status;
}

kilter_status kl_short_decide(kl_steer *s, double spent_s, kl_steer_plan *plan, bool *tries) {
    const kl_outlook *o = &s->outlook;
    kl_short *t = &s->trying;
    double took_s = o->step_s - kl_smaller(spent_s, o->step_s),
           now_s = o->sweeps > 0 ? took_s / o->sweeps : 0;
    *tries = false;
    if (o->options.scattered)
        return KILTER_OK;
    if (is_paused(t, o)) {
        kl_slices_leave(&t->slices);
        t->placed = KL_CHOICES;
        return KILTER_OK;
    }
    if (kl_slices_apply(&t->slices, o->options.ranks, t->cores.part, now_s, o->options.quantum_s)) {
        *tries = true;
        return decide(s, took_s, now_s, plan);
    }
    kl_slices_leave(&t->slices);
    t->placed = KL_CHOICES;
    bool loaded = kl_slices_apply(&t->slices, o->options.ranks, t->cores.seen, now_s, o->options.quantum_s);
    measure_equal(t, o, loaded, took_s);
    if (!s->trial.proof.tries && is_passing(t, o, loaded, now_s)) {
        *tries = true;
        wait_for_load(s, now_s, plan);
    }
    return KILTER_OK;
}
