/* Account for what moves gain and cost. */
#include "steer/parts.h"

static const double PACE_H = 0.97; /* weight of earlier times in lately_s and lately_equal */

typedef struct step { /* The time since the last round, called a step. */
    double took_s;    /* seconds of the step (time since the last round) that count for gains and costs */
    double spent_s;   /* seconds of took_s that were spent on moving */
} step;

/* Return the seconds saved since the last round, compared with the shares `other`. With those shares, a
 * different number of sweeps would have been done in this time. The difference is converted to seconds: each
 * sweep counts as the mean seconds of a sweep with equal shares. Add the seconds of moving, because the
 * account counts them as cost. */
static double came_s(const kl_outcome *c, const kl_outlook *o, const kl_place *other, step last) {
    double would = last.took_s / kl_time_with(o, other, o->loads.raw);
    return (o->sweeps - would) * c->lately_s / c->lately_equal + last.spent_s;
}

void kl_outcome_anchor(kl_outcome *c, const kl_outlook *o) {
    kl_put(o, c->anchor, o->here);
    c->anchor_came_s = c->equal_came_s = c->least_came_s = 0;
}

/* Return by how much least_came_s has risen since the last round. The member least_came_s is the smaller of
 * two savings since the account's balance last reached a limit. One is the saving compared with the shares at
 * that time, the other is the saving compared with equal shares. */
static double lately_s(kl_outcome *c, const kl_outlook *o, step last) {
    c->anchor_came_s += came_s(c, o, c->anchor, last);
    c->equal_came_s += came_s(c, o, o->equal, last);
    double before_s = c->least_came_s;
    c->least_came_s = c->anchor_came_s < c->equal_came_s ? c->anchor_came_s : c->equal_came_s;
    return c->least_came_s - before_s;
}

/* Return the cost of moves that the account must count now. A move costs time at once but gains later. So
 * its cost counts only up to its gain, until the move is judged. */
static double take_due_s(kl_outcome *c, double spent_s, double came_s) {
    double due_s = c->due_s, paid_s = kl_smaller(kl_larger(came_s, 0), c->unpaid_s += spent_s);
    c->unpaid_s -= paid_s;
    c->due_s = 0;
    return due_s + paid_s;
}

/* Add the time since the last round to the account. If shares are for mean speeds (`lags`), ranks do not end
 * sweeps together, so the whole time counts. */
bool kl_outcome_settle(kl_outcome *c, const kl_outlook *o, bool lags, double spent_s, char *reason) {
    step last = {lags ? o->step_s : kl_computed_s(o) + spent_s, spent_s};
    /* number of sweeps that equal shares would have done since the last round */
    double equal = last.took_s / kl_time_with(o, o->equal, o->loads.raw);
    c->lately_s = PACE_H * c->lately_s + last.took_s;
    c->lately_equal = PACE_H * c->lately_equal + equal;
    kl_account_step came = {.came_s = came_s(c, o, o->equal, last)};
    c->open_came_s += came_s(c, o, o->previous, last);
    c->open_cost_s += spent_s;
    came.lately_s = lately_s(c, o, last);
    came.cost_s = take_due_s(c, spent_s, came.lately_s);
    bool rests = kl_account_settle(&c->account, o->now_s, &came, c->unit_s, reason);
    c->retreats = rests && kl_volume(o, o->equal) > 0 && -c->equal_came_s > kl_move_s(o, o->equal);
    if (rests || c->account.balance_s >= KL_ACCOUNT_MEMORY * c->unit_s)
        kl_outcome_anchor(c, o);
    return rests;
}
