/* Make recorded decisions again: restore a dealer's state from the rows that grounds.c wrote, and let the
 * dealer decide. */
#include <stdlib.h>
#include <string.h>

#include "decide/grounds.h"

struct kl_again {
    const kl_policy *instead;
    kl_dealer *dealer;
    kl_crew *crew;
    kl_snapshot snapshot;
    kl_worker_view *views;
    uint64_t room;       /* number of views for which the array has room */
    uint64_t rows;       /* number of rows of the record read since the run began */
    const char *missing; /* why the later decisions of this run cannot be made again; NULL: they can */
};

/* The row of the record that is being read, and the decision that is made again from it. */
typedef struct reading {
    kl_again *again;
    kl_reader bytes;
    const kl_recorded *row;
    kl_answer *answer;
    bool answered;
} reading;

static const char NO_MEMORY[] = "memory ran out";
static const char LACKS[] = "the record lacks the inputs of the decision";

kl_again *kl_again_new(const kl_policy *instead) {
    kl_again *a = calloc(1, sizeof *a);
    if (a)
        *a = (kl_again){.instead = instead, .missing = LACKS};
    return a;
}

static void forget_run(kl_again *a) {
    kl_dealer_free(a->dealer);
    kl_crew_free(a->crew);
    *a = (kl_again){.instead = a->instead, .views = a->views, .room = a->room, .rows = a->rows};
}

void kl_again_free(kl_again *a) {
    if (!a)
        return;
    forget_run(a);
    free(a->views);
    free(a);
}

/* --- restore the state in which the decision was made --- */

/* Make room for the workers' views (the values known about each worker). The row has `listed` views. The view
 * of a new worker may be missing in the row if all its values are zero. */
static bool take_places(kl_again *a, uint32_t before, uint64_t listed) {
    uint32_t slots = a->snapshot.slots;
    if (slots < before || slots > before + listed + 1)
        return false;
    kl_worker_view *views = kl_array_grow(a->views, &a->room, (uint64_t)slots + 1, sizeof *views);
    if (!views || kl_crew_reserve(a->crew, slots) != KILTER_OK) {
        a->missing = NO_MEMORY;
        return false;
    }
    memset(views + before, 0, (slots - before) * sizeof *views);
    a->snapshot.workers = a->views = views;
    return true;
}

static void take_view(reading *r) {
    kl_again *a = r->again;
    uint64_t worker = kl_grounds_get_count(&r->bytes);
    if (r->bytes.bad || worker >= a->snapshot.slots) {
        r->bytes.bad = true;
        return;
    }
    kl_worker_view *view = &a->views[worker];
    bool was_present = view->present;
    kl_grounds_get_changes(&r->bytes, &kl_members_of_view, view);
    a->snapshot.present += (uint32_t)view->present - was_present;
    if (was_present &&
        !view->present) /* as in the recorded run, forget the speed of a worker that has left */
        kl_crew_set_speed(a->crew, (uint32_t)worker, 0);
    kl_crew_update(a->crew, a->views, (uint32_t)worker);
}

static void take_speeds(reading *r) {
    kl_again *a = r->again;
    for (uint32_t i = 0; i < a->snapshot.slots && !r->bytes.bad; i++) {
        double speed = kl_get_f64(&r->bytes);
        r->bytes.bad |= !(speed >= 0 && speed <= 1e300);
        if (!r->bytes.bad)
            kl_crew_set_speed(a->crew, i, speed);
    }
}

static bool take_state(reading *r) {
    kl_again *a = r->again;
    kl_snapshot *s = &a->snapshot;
    uint32_t slots = s->slots;
    double then_s = s->now_s;
    kl_grounds_get_changes(&r->bytes, &kl_members_of_snapshot, s);
    uint64_t listed = kl_grounds_get_count(&r->bytes);
    bool fits = listed <= r->bytes.size && s->left <= s->tasks && s->now_s >= then_s;
    r->bytes.bad |= !fits || !take_places(a, slots, listed);
    for (uint64_t i = 0; i < listed && !r->bytes.bad; i++)
        take_view(r);
    if (!r->bytes.bad)
        kl_crew_advance(a->crew, s->now_s);
    return !r->bytes.bad;
}

/* --- events and requests that the dealer gets --- */

static const kl_policy *policy_of(kl_again *a, const char *name) {
    const kl_policy *policy = a->instead ? a->instead : kl_policy_find(name);
    if (!policy)
        a->missing = "the decision's policy belongs to the program, or is unknown to this version of Kilter";
    return policy;
}

static void run_begins(reading *r) {
    kl_again *a = r->again;
    char name[KL_POLICY_NAME_BYTES];
    bool factor_set;
    forget_run(a);
    kl_read_label(&r->bytes, name, sizeof name);
    double factor = kl_get_f64(&r->bytes);
    kl_read_flag(&r->bytes, &factor_set, sizeof factor_set);
    r->bytes.bad |= !(factor >= 0 && factor <= 1);
    const kl_policy *policy = policy_of(a, name);
    a->dealer = policy ? kl_dealer_new(policy, NULL) : NULL;
    a->snapshot.crew = a->crew = kl_crew_new();
    if (!policy || !a->dealer || !a->crew || !take_state(r)) {
        a->missing = a->missing || r->bytes.bad ? a->missing : NO_MEMORY;
        return;
    }
    if (factor_set)
        kl_dealer_set_factor(a->dealer, factor);
    else if (!a->instead)
        a->dealer->factor = factor;
    take_speeds(r);
    kl_crew_look_again(a->crew, a->views, a->snapshot.now_s);
    if (!r->bytes.bad && kl_dealer_begin(a->dealer, &a->snapshot) != KILTER_OK)
        a->missing = NO_MEMORY;
}

static void run_grows(reading *r) {
    uint64_t tasks = kl_grounds_get_count(&r->bytes);
    if (take_state(r) && kl_dealer_grown(r->again->dealer, &r->again->snapshot, tasks) != KILTER_OK)
        r->again->missing = NO_MEMORY;
}

static void factor_is_set(reading *r) {
    double factor = kl_get_f64(&r->bytes);
    r->bytes.bad |= !(factor >= 0 && factor <= 1);
    kl_dealer_set_factor(r->again->dealer, factor);
}

static void worker_joins(reading *r) {
    uint64_t worker = kl_grounds_get_count(&r->bytes);
    if (worker < UINT32_MAX)
        kl_dealer_joined(r->again->dealer, (uint32_t)worker);
}

/* Continue with the recorded decision, not with the new one, so that the next decision starts from its
 * recorded state. */
static void follow(const reading *r, kl_plan *plan, bool cut_short) {
    kl_again *a = r->again;
    uint64_t dealt = r->row->decision.count;
    plan->decision.count = dealt < a->snapshot.left ? dealt : a->snapshot.left;
    plan->cut_short = cut_short;
    if (kl_dealer_commit(a->dealer, &a->snapshot, plan) != KILTER_OK)
        a->missing = NO_MEMORY;
}

static void worker_asks(reading *r) {
    kl_again *a = r->again;
    bool cut_short, whole = take_state(r);
    uint64_t worker = kl_grounds_get_count(&r->bytes), meant = kl_grounds_get_count(&r->bytes);
    kl_read_flag(&r->bytes, &cut_short, sizeof cut_short);
    r->bytes.bad |= worker >= a->snapshot.slots;
    if (!whole || r->bytes.bad)
        return;
    kl_plan plan;
    kl_dealer_plan(a->dealer, &a->snapshot, (uint32_t)worker, &plan);
    *r->answer = (kl_answer){.decision = plan.decision, .meant = meant, .now_s = a->snapshot.now_s};
    r->answer->decision.subject = a->views[worker].number;
    r->answered = true;
    follow(r, &plan, cut_short);
}

static void rescue_is_chosen(reading *r) {
    kl_again *a = r->again;
    bool whole = take_state(r);
    kl_grounds_get_sizes(&r->bytes, &a->snapshot.sizes);
    double coming_units = kl_get_f64(&r->bytes);
    size_t size;
    const uint8_t *answers = kl_get_span(&r->bytes, &size);
    r->bytes.bad |= !(coming_units >= 0 && coming_units < 1e30);
    if (!whole || r->bytes.bad || !kl_policy_rescues(a->dealer->policy))
        return;
    kl_rescue rescue;
    r->answered = kl_rescue_again(&a->snapshot, kl_reader_of(answers, size), coming_units, &rescue);
    *r->answer =
        (kl_answer){.decision = rescue.decision, .meant = r->row->decision.count, .now_s = a->snapshot.now_s};
    if (rescue.decision.kind != KL_DECIDES_NOTHING)
        r->answer->decision.subject = a->views[rescue.decision.subject].number;
}

static void dealer_is_changed(reading *r) {
    kl_dealer_changed(r->again->dealer);
}

static void take_note(reading *r) {
    static void (*const takes[])(reading *) = {
        [KL_GROUND_BEGINS] = run_begins,         [KL_GROUND_GROWS] = run_grows,
        [KL_GROUND_FACTOR] = factor_is_set,      [KL_GROUND_JOINED] = worker_joins,
        [KL_GROUND_CHANGED] = dealer_is_changed, [KL_GROUND_ANSWERS] = worker_asks,
        [KL_GROUND_RESCUES] = rescue_is_chosen,
    };
    uint8_t ground = kl_get_u8(&r->bytes);
    if (ground < sizeof takes / sizeof *takes && takes[ground] &&
        (ground == KL_GROUND_BEGINS || r->again->dealer))
        takes[ground](r);
    else
        r->bytes.bad = true;
}

/* --- making a recorded decision again --- */

static void answer_assignment(reading *r) {
    const kl_again *a = r->again;
    kl_assignment assignment;
    r->answered = kl_dealer_assignment(a->dealer, &assignment);
    if (!r->answered)
        return;
    *r->answer = (kl_answer){
        .decision = assignment.decision, .meant = r->row->decision.count, .now_s = a->snapshot.now_s};
    /* set no forecast if tasks were added after the run began, because the record then has no forecast,
     * either */
    if (r->row->decision.forecast_s > 0)
        r->answer->decision.forecast_s = a->snapshot.now_s + assignment.end_s;
}

/* Handle a recorded decision that gives a worker no tasks before the worker asks for work. */
static void answer_left_out(reading *r) {
    const kl_again *a = r->again;
    uint32_t worker = 0;
    while (worker < a->snapshot.slots && a->views[worker].number != r->row->decision.subject)
        worker++;
    if (worker == a->snapshot.slots)
        return;
    kl_decision *d = &r->answer->decision;
    *r->answer = (kl_answer){.decision = {.kind = KL_DECIDES_WITHHOLD, .subject = a->views[worker].number}};
    r->answered = kl_dealer_leaves_out(a->dealer, &a->snapshot, worker, d->reason);
}

static const char *why_not(const kl_again *a, kl_decision_kind kind) {
    if (kind == KL_DECIDES_POLICY || kind == KL_DECIDES_FACTOR)
        return "the decision was set by hand";
    if (kind != KL_DECIDES_DEAL && a->instead)
        return "the other policy makes no decisions of this kind";
    bool known = kind <= KL_DECIDES_ASSIGN || kind == KL_DECIDES_WORKERS || kind == KL_DECIDES_TEAM;
    return known ? LACKS : "Kilter cannot make decisions of this kind again";
}

/* Return whether decisions can be made again from this row on. Either the row must begin a run, or no earlier
 * row of the run may be missing. Rows may be missing if the disk was too slow for the record. */
static bool row_is_next(reading *r) {
    kl_again *a = r->again;
    bool known = kl_get_u8(&r->bytes) == KL_GROUNDS_VERSION;
    uint64_t number = kl_grounds_get_count(&r->bytes);
    kl_reader next = r->bytes;
    if (!known)
        a->missing = "the decision was written by a later version of Kilter";
    else if (kl_get_u8(&next) == KL_GROUND_BEGINS)
        a->missing = NULL;
    else if (number != a->rows && !a->missing)
        a->missing = "earlier rows of the run are missing from the record";
    a->rows = number + 1;
    return !a->missing;
}

static void read_row(reading *r) {
    kl_again *a = r->again;
    if (!row_is_next(r))
        return;
    while (r->bytes.at < r->bytes.size && !r->bytes.bad && !a->missing)
        take_note(r);
    if (r->bytes.bad && !a->missing)
        a->missing =
            "the decision's inputs are damaged in the record, or were written by a later version of Kilter";
    if (a->missing || r->answered)
        return;
    if (r->row->decision.kind == KL_DECIDES_ASSIGN)
        answer_assignment(r);
    else if (r->row->decision.kind == KL_DECIDES_WITHHOLD)
        answer_left_out(r);
}

static void read_alone(reading *r) {
    kl_get_u8(&r->bytes);
    r->answered = kl_staff_again(&r->bytes, &r->answer->decision);
    r->answer->meant = r->row->decision.count;
}

void kl_again_decide(kl_again *a, const kl_recorded *row, kl_answer *answer) {
    reading r = {.again = a,
                 .bytes = kl_reader_of(row->grounds.data, row->grounds.size),
                 .row = row,
                 .answer = answer};
    bool alone = row->grounds.size > 0 && r.bytes.data[0] == KL_GROUNDS_ALONE;
    *answer = (kl_answer){0};
    if (alone)
        read_alone(&r);
    else if (row->grounds.size > 0 && !alone)
        read_row(&r);
    const char *missing = row->grounds.size > 0 && !alone ? a->missing : NULL;
    if (missing || !r.answered)
        *answer = (kl_answer){.missing = missing ? missing : why_not(a, row->decision.kind)};
}
