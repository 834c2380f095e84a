/* Trials of shares for loops whose sweeps are shorter than the scheduler's time slices. A rank that uses its
 * whole share of a core must then wait for a time slice, and delays the others for many sweeps. A rank that
 * uses less than its share runs at once when it wakes. So shares in proportion to the parts of cores are too
 * large. The best number of rows, which may be 0, depends on the scheduler and the other programs. So several
 * kinds of shares (choices) are tried. */
#include "steer/slices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    /* number of rounds for which a choice is tried; the best two choices are tried two times */
    TRY_ROUNDS = 3,
    /* at first, the best choice stays for this number of rounds before all choices are tried again */
    FIRST_HOLD = 200,
    LONGEST_HOLD = 1600, /* later, the best choice stays for at most this number of rounds */
    /* the time of a choice that is kept is a mean over about this number of rounds */
    RECENT_ROUNDS = 20,
    /* After a series of trials, another choice replaces the kept choice at most this number of times. After
     * that, only equal shares may replace it. Without this limit, one choice after another would be taken
     * when sweeps become slower with all choices. */
    MOST_SWITCHES = 2
};
/* no choice is tried if each rank gets at least this part of its core */
static const double OWN_PART = 0.95;
/* sweeps count as short if they take less than SHORT time slices, or while choices are tried, less than LONG
 * time slices */
static const double SHORT = 1.5, LONG = 5;
/* no choice is tried if the ranks' shares of their cores differ by no more than this */
static const double ALIKE = 0.15;
static const double CLEAR =
    1.15; /* a choice needs no second trial if its sweeps take more than this multiple of the best time */
/* A trial ends early if sweeps take more than this multiple of the best time. In the first round the sweeps
 * may still wait for rows that move. */
static const double HOPELESS = 1.25, HOPELESS_AT_ONCE = 2;
/* a trial ends early only after LEAST_S, because moving rows alone takes some milliseconds */
static const double LEAST_S = 0.02;
/* Equal shares count with MARGIN times their time, so another choice must be clearly better. After the
 * trials, another choice replaces the kept choice only if it takes less than STICKS times as long. */
static const double MARGIN = 0.93, STICKS = 0.96;
static const double TRY_PART = 0.05; /* trials may take at most this part of the time */
/* seconds that a rank takes to go to sleep and to wake up, one time in each sweep */
static const double WAKE_S = 7e-6;
static const double CREDIT_PART = 0.6; /* if sweeps are short, a rank may use this part of its core share and
                                          still runs at once when it wakes */
static const double LEAST_PART = 0.1;
static const double DEEP_SLICES = 5;
static const double TWICE_PART =
    0.05; /* the rows that a rank computes for its neighbours may be at most this part of its own rows */

/* With work for ranks on shared cores, a sweep takes at least about a part of the time with equal shares.
 * This part is the smallest share that any rank gets of its core. The share of a rank that sleeps much is
 * measured too low, so LEAST_SHARE replaces smaller shares. The limit is lowered by the factor AT_LEAST, as a
 * margin. */
static const double AT_LEAST = 0.5, LEAST_SHARE = 0.2;

static void find_range(uint32_t ranks, const double *shares, double *least, double *most) {
    *least = 1;
    *most = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        *least = fmin(*least, shares[r]);
        *most = fmax(*most, shares[r]);
    }
}

double kl_slices_limit(uint32_t ranks, const double *shares) {
    double least, most;
    find_range(ranks, shares, &least, &most);
    return (least + most) / 2;
}

double kl_slices_part(double sweep_s, double quantum_s, double share) {
    double part =
        CREDIT_PART + (1 - CREDIT_PART) * fmin(1, sweep_s / quantum_s); /* in long sweeps a rank may use its
                                                                           whole core share */
    part -= WAKE_S / (share * sweep_s);
    return part > LEAST_PART ? part : LEAST_PART;
}

uint64_t kl_slices_depth(double sweep_s, double quantum_s, double rows_of_rank, uint64_t reach,
                         uint64_t deepest) {
    if (reach == 0 || deepest <= 1 || !(sweep_s > 0))
        return 1;
    double depth = fmin((double)deepest, 1 + TWICE_PART * rows_of_rank / (double)reach);
    return (uint64_t)fmax(1, fmin(depth, ceil(DEEP_SLICES * quantum_s / sweep_s)));
}

/* Return the seconds of a sweep with this choice; HUGE_VAL: not known, or the choice was refused. */
static double score(const kl_slices *s, int choice) {
    const kl_tried *t = &s->tried[choice];
    return t->executions > 0 && !t->refused ? t->elapsed_s / t->executions : HUGE_VAL;
}

/* Return the time by which choices are compared, in seconds of a sweep. The time of equal shares is reduced:
 * the program has equal shares without Kilter, so another choice must be clearly better. */
static double rated(const kl_slices *s, int choice) {
    return choice == KL_CHOICE_EQUAL ? MARGIN * score(s, choice) : score(s, choice);
}

static int best_but(const kl_slices *s, int other) {
    int best = -1;
    for (int c = 0; c < KL_CHOICES; c++)
        if (c != other && (best < 0 || rated(s, c) < rated(s, best)))
            best = c;
    return best;
}

bool kl_slices_short(double sweep_s, double quantum_s) {
    return sweep_s < SHORT * quantum_s;
}

bool kl_slices_apply(const kl_slices *s, uint32_t ranks, const double *shares, double sweep_s,
                     double quantum_s) {
    double least, most;
    /* while choices are tried, judge by the sweep of the best one so far: the present one may be slow */
    double best_s = s->active && !s->holds ? fmin(sweep_s, score(s, best_but(s, -1))) : sweep_s;
    find_range(ranks, shares, &least, &most);
    return least < OWN_PART && most - least > ALIKE && sweep_s > 0 &&
           best_s < (s->active ? LONG : SHORT) * quantum_s;
}

static void try_choice(kl_slices *s, int choice) {
    s->choice = choice;
    s->before = s->tried[choice];
    s->rounds = 0;
}

void kl_slices_leave(kl_slices *s) {
    s->active = false;
    s->hold = 0;
}

static void next_try(kl_slices *s) {
    s->tries++;
    int best = best_but(s, -1), second = best_but(s, best);
    if (s->tries == KL_CHOICES && (score(s, second) == HUGE_VAL || score(s, second) > CLEAR * score(s, best)))
        s->tries = KL_CHOICES + 2;
    if (s->tries < KL_CHOICES) {
        try_choice(s, (int)s->tries);
    } else if (s->tries == KL_CHOICES) {
        try_choice(s, second);
    } else if (s->tries == KL_CHOICES + 1) {
        try_choice(s, best);
    } else {
        try_choice(s, best);
        s->holds = true;
        s->held = best;
        s->switches = s->switched = 0;
        s->hold = s->hold == 0 ? FIRST_HOLD : s->hold < LONGEST_HOLD ? 2 * s->hold : LONGEST_HOLD;
    }
}

void kl_slices_refuse(kl_slices *s) {
    s->tried[s->choice].refused = true;
    s->holds = false;
    next_try(s);
}

void kl_slices_offer(kl_slices *s, int choice) {
    s->tried[choice] = (kl_tried){0};
    s->holds = false;
    s->tries = KL_CHOICES -
               1; /* all other choices were tried or refused, so next_try() compares them with this one */
    s->hold /= 2; /* next_try() doubles it, but this is no new series */
    try_choice(s, choice);
}

void kl_slices_know_equal(kl_slices *s, const kl_tried *equal) {
    s->tried[KL_CHOICE_EQUAL] = *equal;
    next_try(s);
}

static void switch_to(kl_slices *s, int choice) {
    s->choice = s->held = choice;
    s->switched = s->rounds;
    s->switches++;
}

void kl_slices_return(kl_slices *s, int placed) {
    s->tried[s->choice].refused = true;
    if (placed < KL_CHOICES)
        switch_to(s, placed);
}

/* Begin to try all choices. If trials have taken too much time already, keep the last best choice instead. If
 * `known` is true, the time of the choice that was held is still valid, and counts as the time of one round.
 * Trials of much slower choices then end early. */
static void begin(kl_slices *s, bool has_time, bool known) {
    kl_tried held = s->tried[s->held];
    s->active = true;
    s->holds = !has_time;
    memset(s->tried, 0, sizeof s->tried);
    if (known && held.rounds > 0)
        s->tried[s->held] = (kl_tried){.rounds = 1,
                                       .executions = held.executions / held.rounds,
                                       .elapsed_s = held.elapsed_s / held.rounds};
    s->tries = s->switches = s->switched = 0;
    try_choice(s, has_time ? KL_CHOICE_EQUAL : s->held);
}

void kl_slices_resume(kl_slices *s, int choice) {
    s->held = choice;
    begin(s, false, false);
    s->hold = FIRST_HOLD;
}

static bool is_hopeless(const kl_slices *s) {
    double limit = s->rounds > 1 ? HOPELESS : HOPELESS_AT_ONCE;
    return s->tried[s->choice].elapsed_s >= LEAST_S &&
           score(s, s->choice) > limit * score(s, best_but(s, s->choice));
}

/* Add the sweeps and seconds of a round to those of the present choice. Old rounds have less weight. */
static void count(kl_slices *s, double executions, double elapsed_s) {
    kl_tried *t = &s->tried[s->choice];
    if (t->rounds == RECENT_ROUNDS) {
        t->executions -= t->executions / t->rounds;
        t->elapsed_s -= t->elapsed_s / t->rounds;
        t->rounds--;
    }
    t->rounds++;
    t->executions += executions;
    t->elapsed_s += elapsed_s;
}

/* Replace the kept choice if another choice is better now. In the trials each choice was measured for a few
 * rounds only. So the kept choice is still measured, and its time may turn out longer. */
static void correct(kl_slices *s) {
    int best = s->switches < MOST_SWITCHES ? best_but(s, -1) : KL_CHOICE_EQUAL;
    if (s->rounds - s->switched > TRY_ROUNDS && rated(s, best) < STICKS * rated(s, s->choice))
        switch_to(s, best);
}

/* Measure the choice that is kept. In its first round rows may still move, so this round does not count. */
static void keep(kl_slices *s, double executions, double elapsed_s) {
    if (s->rounds++ == s->switched || !(executions > 0))
        return;
    count(s, executions, elapsed_s);
    correct(s);
}

/* In the first round of a trial rows may still move. So this round counts only until the second round ends.
 */
static void try_on(kl_slices *s, double executions, double elapsed_s) {
    if (++s->rounds == 2 && executions > 0)
        s->tried[s->choice] = s->before;
    s->trying_s += elapsed_s;
    count(s, executions, elapsed_s);
    if (s->rounds >= TRY_ROUNDS || is_hopeless(s))
        next_try(s);
}

bool kl_slices_next(kl_slices *s, double executions, double elapsed_s, bool changed, double now_s) {
    bool over = s->holds && s->rounds >= s->hold, has_time = s->trying_s <= TRY_PART * now_s,
         begins = !s->active || (s->holds && changed) || (over && has_time);
    if (begins) {
        bool known = s->active && over && !changed;
        if (!known)
            s->hold = 0; /* the ranks' shares of their cores have changed, so a choice is kept for the
                          * shortest time first */
        begin(s, has_time, known);
    } else if (s->holds) {
        keep(s, executions, elapsed_s);
    } else {
        try_on(s, executions, elapsed_s);
    }
    return begins;
}

bool kl_slices_may_share(const kl_slices *s, uint32_t ranks, const double *shares) {
    double least, most;
    find_range(ranks, shares, &least, &most);
    return kl_slices_best_s(s) >= AT_LEAST * fmax(least, LEAST_SHARE) * kl_slices_sweep_s(s, KL_CHOICE_EQUAL);
}

double kl_slices_best_s(const kl_slices *s) {
    return score(s, best_but(s, -1));
}

double kl_slices_sweep_s(const kl_slices *s, int choice) {
    double known_s = score(s, choice);
    return known_s < HUGE_VAL ? known_s : 0;
}

static const char *const choice_names[KL_CHOICES] = {
    [KL_CHOICE_EQUAL] = "equal shares",
    [KL_CHOICE_OUT] = "nothing on shared cores",
    [KL_CHOICE_PROPORTION] = "shares in proportion",
    [KL_CHOICE_LESS] = "less on shared cores",
    [KL_CHOICE_DEEP] = "halos of several sweeps at once",
};
static const char *const short_names[KL_CHOICES] = {
    [KL_CHOICE_EQUAL] = "equal", [KL_CHOICE_OUT] = "nothing", [KL_CHOICE_PROPORTION] = "in proportion",
    [KL_CHOICE_LESS] = "less",   [KL_CHOICE_DEEP] = "halos",
};

void kl_slices_say(const kl_slices *s, double sweep_s, double quantum_s, char reason[KL_REASON_BYTES]) {
    const char *name = choice_names[s->choice], *before = "; tried: ";
    kl_time_text slice = kl_say_s(quantum_s);
    if (!s->holds) {
        snprintf(reason, KL_REASON_BYTES, "trying %s: a sweep of %s is short compared with time slices of %s",
                 name, kl_say_s(sweep_s).text, slice.text);
        return;
    }
    if (s->hold == 0) {
        snprintf(
            reason, KL_REASON_BYTES,
            "as before for time slices of %s: %s; no new trials now, because trials have taken %s so far",
            slice.text, name, kl_say_s(s->trying_s).text);
        return;
    }
    if (s->tries == 0) {
        snprintf(reason, KL_REASON_BYTES, "best under this load before, for time slices of %s: %s",
                 slice.text, name);
        return;
    }
    size_t at =
        (size_t)snprintf(reason, KL_REASON_BYTES, "chosen for time slices of %s: %s", slice.text, name);
    for (int i = 0; i < KL_CHOICES && at < KL_REASON_BYTES; i++) {
        double took_s = kl_slices_sweep_s(s, i);
        if (took_s > 0)
            at += (size_t)snprintf(reason + at, KL_REASON_BYTES - at, "%s%s %s", before, short_names[i],
                                   kl_say_s(took_s).text);
        before = took_s > 0 ? ", " : before;
    }
}
