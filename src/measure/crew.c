/* The crew: the workers of a farm in sorted order, with sums over them. Two treaps (Seidel and Aragon
 * 1996) hold sums of every subtree. The treap `waits` sorts the present workers by the time at which they
 * become free. The treap `ranks` sorts workers by speed. The priority of a worker's node is a hash of the
 * worker's number, so the shape of a treap depends on the keys alone. A binary tree over the workers'
 * numbers holds sums that need no order. Every sum is computed from its parts, and not by adding changes,
 * so rounding errors do not accumulate. Usually several workers change between two queries. So changed
 * workers are moved, and the sums of subtrees computed, only at the beginning of a query
 * (waits_in_order(), ranks_in_order()). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/measure.h"

/* Overdue workers are treated as a group if their longest silence is at most this multiple of the shortest.
 * The exact rate of a group needs the harmonic mean of the silences, weighted by queued units. The arithmetic
 * mean is used instead. For numbers from 1 to k, the harmonic mean is at least 4k/(k+1)² of the arithmetic
 * mean. */
static const double ALIKE = 1.2;

enum { BLOCK = 4 }; /* number of workers in a leaf of the tree of sums */

/* Worker i is node i+1 in both treaps; node 0 means "no node". */
typedef struct node {
    double key;
    uint32_t left, right;
} node;

/* The group to which a worker belongs. Each group has its own treap, sorted by the key that is named here. */
typedef enum place {
    AWAY,    /* the worker is away: it has left, or does not take part */
    IDLE,    /* the worker has no queued work; key: 0 */
    BUSY,    /* the worker has work; key: time at which it becomes free [s] */
    OVERDUE, /* the worker should have finished its work by now; key: time of its last message [s] */
    UNKNOWN, /* the worker has work, but its rate is not known; key: time of its last message [s] */
    PLACES,
} place;

/* Sums over the workers in a subtree of `waits`. */
typedef struct wait {
    uint32_t workers, known;
    double first, last; /* smallest and largest key of these workers */
    /* sums over workers with a known rate: Σ rate, largest rate, Σ rate·key */
    double rate, best_rate, rate_keys;
    double units, units_keys;       /* sums over queued units: Σ units, Σ units·key */
    double keys;                    /* Σ key */
    double least_units, most_units; /* units of the smallest and of the largest queue of a worker */
} wait;

typedef struct waiting {
    place place;
    bool present;
    /* for the worker of this node: rate (0: not known), queued units, time of its last message */
    double rate, units, at_s;
    wait all; /* sums over the worker of this node and its subtree */
} waiting;

typedef struct rank {
    /* negative speed of the worker of this node, which becomes the node's key at the next query; 0: the
     * worker is not ranked */
    double key;
    uint32_t workers;
    double speed; /* Σ of the speeds of the workers in this subtree */
} rank;

typedef struct treap {
    node *nodes;
    struct {
        bool stale; /* true: the sums of this node, and of all nodes above it, are out of date */
        bool
            moved; /* true: the worker's key or group may have changed, and the node is in the list `moved` */
    } * marks;     /* marks[node] */
    uint32_t *moved, moved_count;
    void (*sum_up)(kl_crew *crew,
                   uint32_t at); /* a function that computes the sums of a subtree from its two children */
} treap;

struct kl_crew {
    uint32_t slots,
        room; /* slots: number of workers; room: number of workers for which there is memory, BLOCK·leaves */
    double now_s;
    treap waits, ranks;
    waiting *waiting; /* waiting[node], node = 0 … room */
    rank *rank;
    uint32_t roots[PLACES],
        fastest;        /* roots of the treaps: `roots` for each group of `waits`, `fastest` for `ranks` */
    uint32_t leaves;    /* number of leaves of the tree of sums, a power of two */
    kl_crew_sums *sums; /* sums[1] is the sum over all workers; sums[i] is the sum of sums[2i] and sums[2i+1];
                           leaves begin at sums[leaves] */
};

/* --- treaps --- */

static bool before(const treap *t, uint32_t a, double key, uint32_t b) {
    double own = t->nodes[a].key;
    return own < key || (own == key && a < b);
}

/* Split a treap: nodes that sort before (key, at_key) go to *low, all others to *high. */
static void split(treap *t, uint32_t at, double key, uint32_t at_key, uint32_t *low, uint32_t *high) {
    if (at == 0) {
        *low = *high = 0;
        return;
    }
    node *n = &t->nodes[at];
    t->marks[at].stale = true;
    if (before(t, at, key, at_key)) {
        *low = at;
        split(t, n->right, key, at_key, &n->right, high);
    } else {
        *high = at;
        split(t, n->left, key, at_key, low, &n->left);
    }
}

static uint32_t joined(treap *t, uint32_t low, uint32_t high) {
    if (low == 0 || high == 0)
        return low + high;
    bool low_stays = kl_mix64(low) > kl_mix64(high);
    uint32_t at = low_stays ? low : high;
    node *n = &t->nodes[at];
    t->marks[at].stale = true;
    if (low_stays)
        n->right = joined(t, n->right, high);
    else
        n->left = joined(t, low, n->left);
    return at;
}

/* Insert a node into a treap. Return the new root. */
static uint32_t with(treap *t, uint32_t at, uint32_t added) {
    node *n = &t->nodes[added];
    if (at == 0 || kl_mix64(added) > kl_mix64(at)) {
        split(t, at, n->key, added, &n->left, &n->right);
        at = added;
    } else if (before(t, added, t->nodes[at].key, at)) {
        t->nodes[at].left = with(t, t->nodes[at].left, added);
    } else {
        t->nodes[at].right = with(t, t->nodes[at].right, added);
    }
    t->marks[at].stale = true;
    return at;
}

static uint32_t lacking(treap *t, uint32_t at, uint32_t gone) {
    node *n = &t->nodes[at];
    if (at == gone)
        return joined(t, n->left, n->right);
    if (before(t, gone, n->key, at))
        n->left = lacking(t, n->left, gone);
    else
        n->right = lacking(t, n->right, gone);
    t->marks[at].stale = true;
    return at;
}

static void note_moved(treap *t, uint32_t at) {
    if (!t->marks[at].moved)
        t->moved[t->moved_count++] = at;
    t->marks[at].moved = true;
}

/* Take a node from the list of moved nodes. Return 0 if the list is empty. */
static uint32_t take_moved(treap *t) {
    uint32_t at = t->moved_count > 0 ? t->moved[--t->moved_count] : 0;
    t->marks[at].moved = false;
    return at;
}

/* Mark the sums of a node and of all nodes above it as out of date. The node's key has not changed. */
static void make_stale(treap *t, uint32_t at, uint32_t changed) {
    for (t->marks[at].stale = true; at != changed; t->marks[at].stale = true)
        at = before(t, changed, t->nodes[at].key, at) ? t->nodes[at].left : t->nodes[at].right;
}

static void sum_up(kl_crew *c, treap *t, uint32_t at) {
    if (!t->marks[at].stale) /* node 0 is never stale */
        return;
    sum_up(c, t, t->nodes[at].left);
    sum_up(c, t, t->nodes[at].right);
    t->sum_up(c, at);
    t->marks[at].stale = false;
}

/* --- the times at which workers become free --- */

static wait wait_of_one(const kl_crew *c, uint32_t at) {
    const waiting *w = &c->waiting[at];
    double key = c->waits.nodes[at].key;
    return (wait){.workers = 1,
                  .known = w->rate > 0,
                  .first = key,
                  .last = key,
                  .rate = w->rate,
                  .best_rate = w->rate,
                  .rate_keys = w->rate * key,
                  .units = w->units,
                  .units_keys = w->units * key,
                  .keys = key,
                  .least_units = w->units,
                  .most_units = w->units};
}

static void sum_up_waits(kl_crew *c, uint32_t at) {
    const node *n = &c->waits.nodes[at];
    const wait *l = &c->waiting[n->left].all, *r = &c->waiting[n->right].all;
    wait *all = &c->waiting[at].all;
    *all = wait_of_one(c, at);
    if (l->workers)
        all->first = l->first;
    if (r->workers)
        all->last = r->last;
    const wait *under[] = {l, r};
    for (int i = 0; i < 2; i++) {
        const wait *u = under[i];
        if (u->workers == 0)
            continue;
        all->workers += u->workers;
        all->known += u->known;
        all->rate += u->rate;
        all->best_rate = u->best_rate > all->best_rate ? u->best_rate : all->best_rate;
        all->rate_keys += u->rate_keys;
        all->units += u->units;
        all->units_keys += u->units_keys;
        all->keys += u->keys;
        all->least_units = u->least_units < all->least_units ? u->least_units : all->least_units;
        all->most_units = u->most_units > all->most_units ? u->most_units : all->most_units;
    }
}

/* Move a worker to this group, with this key. If the worker has this group and key already, mark its sums as
 * out of date. */
static void put(kl_crew *c, uint32_t at, place where, double key) {
    waiting *w = &c->waiting[at];
    treap *t = &c->waits;
    bool stays = w->place == where && (where == AWAY || t->nodes[at].key == key);
    if (!stays && w->place != AWAY)
        c->roots[w->place] = lacking(t, c->roots[w->place], at);
    w->place = where;
    t->nodes[at].key = key;
    if (where == AWAY)
        return;
    if (stays)
        make_stale(t, c->roots[where], at);
    else
        c->roots[where] = with(t, c->roots[where], at);
}

static double due_s_of(const waiting *w) {
    return w->rate > 0 ? w->at_s + w->units / w->rate : w->at_s;
}

static void put_in_place(kl_crew *c, uint32_t at) {
    const waiting *w = &c->waiting[at];
    if (!w->present)
        put(c, at, AWAY, 0);
    else if (w->units == 0)
        put(c, at, IDLE, 0);
    else if (!(w->rate > 0))
        put(c, at, UNKNOWN, w->at_s);
    else if (due_s_of(w) < c->now_s)
        put(c, at, OVERDUE, w->at_s);
    else
        put(c, at, BUSY, due_s_of(w));
}

/* Move all changed workers, and all workers that are overdue by now. */
static void put_in_places(kl_crew *c) {
    for (uint32_t at; (at = take_moved(&c->waits));)
        put_in_place(c, at);
    for (;;) {
        uint32_t at = c->roots[BUSY];
        while (c->waits.nodes[at].left)
            at = c->waits.nodes[at].left;
        if (at == 0 || !(c->waits.nodes[at].key < c->now_s))
            break;
        put(c, at, OVERDUE, c->waiting[at].at_s);
    }
}

/* Move workers to their places and compute all sums. Every query begins with this, so its result does not
 * depend on earlier queries. */
static void waits_in_order(const kl_crew *crew) {
    kl_crew *c = (kl_crew *)crew;
    put_in_places(c);
    for (place where = IDLE; where < PLACES; where++)
        sum_up(c, &c->waits, c->roots[where]);
}

static void update_wait(kl_crew *c, const kl_worker_view *v, uint32_t at) {
    waiting *w = &c->waiting[at];
    double rate = kl_worker_rate(v), units = v->queued_units > 0 ? v->queued_units : 0;
    double at_s = units > 0 ? v->queued_at_s : 0;
    if (w->present == v->present && w->rate == rate && w->units == units && w->at_s == at_s &&
        (w->place == OVERDUE) == (rate > 0 && units > 0 && due_s_of(w) < c->now_s))
        return;
    w->rate = rate;
    w->units = units;
    w->at_s = at_s;
    w->present = v->present;
    note_moved(&c->waits, at);
}

void kl_crew_advance(kl_crew *c, double now_s) {
    c->now_s = now_s;
}

/* The inputs of a query, and the values of the crew that the forecast for a worker needs. */
typedef struct question {
    double now_s, mean_rate;
    double within_s; /* only for kl_crew_free_within(): time by which workers must be free */
    double units;    /* only for kl_crew_first_end_s(): units of the task */
    uint32_t without;
} question;

static question ask(const kl_crew *c, uint32_t without) {
    waits_in_order(c);
    return (question){.now_s = c->now_s,
                      .mean_rate = kl_crew_mean_rate(c),
                      .without = without < c->slots ? without + 1 : 0};
}

/* The first and the last time at which workers of a subtree finish their queued work, at their last known
 * rates. */
typedef struct due {
    double first_s, last_s;
} due;

static due due_of(const wait *w, place where, const question *q) {
    if (where == IDLE)
        return (due){q->now_s, q->now_s};
    if (where == OVERDUE)
        return (due){-INFINITY, -INFINITY};
    if (where == UNKNOWN)
        return (due){w->first + w->least_units / q->mean_rate, w->last + w->most_units / q->mean_rate};
    return (due){w->first, w->last};
}

typedef enum standing { OUT, RUNNING, LATE, MIXED } standing;

/* Return which workers of a subtree become free within within_s. RUNNING: all, and none is overdue. LATE:
 * all, and they are overdue with similar silences. OUT: none. MIXED: this is not known, so the children must
 * be tested. A single worker is never MIXED. */
static standing standing_of(const wait *w, place where, const question *q) {
    due d = due_of(w, where, q);
    if (d.first_s >= q->now_s)
        return d.last_s - q->now_s < q->within_s     ? RUNNING
               : d.first_s - q->now_s >= q->within_s ? OUT
                                                     : MIXED;
    if (d.last_s >= q->now_s)
        return MIXED;
    double least_s = q->now_s - w->last,
           most_s = q->now_s - w->first; /* an overdue worker has been silent for some time, and is expected
                                            to be free after the same time again */
    if (least_s >= q->within_s)
        return OUT;
    return most_s < q->within_s && most_s <= ALIKE * least_s ? LATE : MIXED;
}

static kl_crew_part part_of(const wait *w, place where, standing s, const question *q) {
    if (s == LATE) /* the rate of overdue workers follows from their mean silence */
        return (kl_crew_part){w->workers, w->units / (q->now_s - w->units_keys / w->units), w->units};
    if (where == IDLE)
        return (kl_crew_part){w->workers, w->rate + (w->workers - w->known) * q->mean_rate, 0};
    if (where == UNKNOWN) {
        double rate = w->workers * q->mean_rate;
        return (kl_crew_part){w->workers, rate, w->units + q->mean_rate * w->keys - rate * q->now_s};
    }
    return (kl_crew_part){w->workers, w->rate, w->rate_keys - w->rate * q->now_s};
}

static void add_part(kl_crew_part *sum, const wait *w, place where, standing s, const question *q) {
    kl_crew_part p = part_of(w, where, s, q);
    sum->workers += p.workers;
    sum->rate += p.rate;
    sum->owed += p.owed;
}

/* Add up the workers of a subtree that become free within q->within_s, except the worker of node q->without.
 * The argument `holds` is true if the subtree may contain this node. */
static void add_free(const kl_crew *c, uint32_t at, place where, const question *q, bool holds,
                     kl_crew_part *sum) {
    if (at == 0)
        return;
    standing s = standing_of(&c->waiting[at].all, where, q);
    if (s == OUT)
        return;
    if (s != MIXED && !holds) {
        add_part(sum, &c->waiting[at].all, where, s, q);
        return;
    }
    const node *n = &c->waits.nodes[at];
    bool left = holds && before(&c->waits, q->without, n->key, at);
    bool right = holds && !left && at != q->without;
    add_free(c, n->left, where, q, left, sum);
    add_free(c, n->right, where, q, right, sum);
    wait own = wait_of_one(c, at);
    s = standing_of(&own, where, q);
    if (s != OUT && at != q->without)
        add_part(sum, &own, where, s, q);
}

kl_crew_part kl_crew_free_within(const kl_crew *c, double within_s, uint32_t without) {
    question q = ask(c, without);
    q.within_s = within_s;
    kl_crew_part sum = {0};
    for (place where = IDLE; where < PLACES; where++)
        add_free(c, c->roots[where], where, &q, c->waiting[q.without].place == where, &sum);
    return sum;
}

/* Return an upper bound of free_s for the workers in a subtree. For a single worker the bound is exact. */
static double most_free_s(const wait *w, place where, const question *q) {
    due d = due_of(w, where, q);
    double running_s = d.last_s >= q->now_s ? d.last_s - q->now_s : 0;
    return d.first_s < q->now_s ? fmax(running_s, q->now_s - w->first) : running_s;
}

static void find_longest(const kl_crew *c, uint32_t at, place where, const question *q, double *longest_s) {
    if (at == 0 || !(most_free_s(&c->waiting[at].all, where, q) > *longest_s))
        return;
    wait own = wait_of_one(c, at);
    *longest_s = fmax(*longest_s, most_free_s(&own, where, q));
    /* Visit first the side where workers become free later: on the right for busy workers, on the left for
     * overdue ones. */
    uint32_t likely = where == BUSY ? c->waits.nodes[at].right : c->waits.nodes[at].left;
    uint32_t other = where == BUSY ? c->waits.nodes[at].left : c->waits.nodes[at].right;
    find_longest(c, likely, where, q, longest_s);
    find_longest(c, other, where, q, longest_s);
}

double kl_crew_longest_s(const kl_crew *c) {
    question q = ask(c, UINT32_MAX);
    double longest_s = 0;
    for (place where = BUSY; where < PLACES; where++)
        find_longest(c, c->roots[where], where, &q, &longest_s);
    return longest_s;
}

/* The workers with the largest free_s that have been found so far, in falling order. */
typedef struct latest {
    const kl_crew_choice *choice;
    uint32_t *workers, count, most;
    double *free_s;
} latest;

static void note_late(latest *l, uint32_t worker, double free_s) {
    uint32_t i = l->count < l->most ? l->count++ : l->most - 1;
    for (; i > 0 && l->free_s[i - 1] < free_s; i--) {
        l->workers[i] = l->workers[i - 1];
        l->free_s[i] = l->free_s[i - 1];
    }
    l->workers[i] = worker;
    l->free_s[i] = free_s;
}

static void find_latest(const kl_crew *c, uint32_t at, place where, const question *q, double beyond_s,
                        latest *l) {
    double least_s = l->count < l->most ? beyond_s : l->free_s[l->most - 1];
    if (at == 0 || !(most_free_s(&c->waiting[at].all, where, q) > least_s))
        return;
    uint32_t likely = where == BUSY ? c->waits.nodes[at].right : c->waits.nodes[at].left;
    uint32_t other = where == BUSY ? c->waits.nodes[at].left : c->waits.nodes[at].right;
    find_latest(c, likely, where, q, beyond_s, l);
    wait own = wait_of_one(c, at);
    double free_s = most_free_s(&own, where, q);
    if (free_s > (l->count < l->most ? beyond_s : l->free_s[l->most - 1]) &&
        l->choice->counts(l->choice->self, at - 1))
        note_late(l, at - 1, free_s);
    find_latest(c, other, where, q, beyond_s, l);
}

uint32_t kl_crew_latest(const kl_crew *c, double beyond_s, const kl_crew_choice *choice, uint32_t *workers,
                        uint32_t most) {
    double free_s[KL_CREW_LATEST];
    latest l = {.choice = choice,
                .workers = workers,
                .most = most < KL_CREW_LATEST ? most : KL_CREW_LATEST,
                .free_s = free_s};
    question q = ask(c, UINT32_MAX);
    for (place where = BUSY; where < PLACES; where++)
        find_latest(c, c->roots[where], where, &q, beyond_s, &l);
    return l.count;
}

/* Return a lower bound of free_s + units/rate for the workers in a subtree. For a single worker the bound is
 * exact. */
static double least_end_s(const wait *w, place where, const question *q) {
    double best_rate = w->known < w->workers ? fmax(w->best_rate, q->mean_rate) : w->best_rate;
    due d = due_of(w, where, q);
    double end_s = INFINITY;
    if (d.last_s >= q->now_s)
        end_s = fmax(d.first_s - q->now_s, 0) + q->units / best_rate;
    if (d.first_s < q->now_s) /* the rate of an overdue worker is its queue divided by its silence */
        end_s = fmin(end_s, fmax(q->now_s - w->last, 0) * (1 + q->units / w->most_units));
    return end_s;
}

static void find_first_end(const kl_crew *c, uint32_t at, place where, const question *q, double *first_s,
                           uint32_t *worker) {
    if (at == 0 || !(least_end_s(&c->waiting[at].all, where, q) < *first_s))
        return;
    if (at != q->without) {
        wait own = wait_of_one(c, at);
        double end_s = least_end_s(&own, where, q);
        if (end_s < *first_s) {
            *first_s = end_s;
            *worker = at - 1;
        }
    }
    uint32_t left = c->waits.nodes[at].left, right = c->waits.nodes[at].right;
    bool right_first =
        left && right &&
        least_end_s(&c->waiting[right].all, where, q) < least_end_s(&c->waiting[left].all, where, q);
    find_first_end(c, right_first ? right : left, where, q, first_s, worker);
    find_first_end(c, right_first ? left : right, where, q, first_s, worker);
}

double kl_crew_first_end_s(const kl_crew *c, double units, uint32_t without, uint32_t *worker) {
    question q = ask(c, without);
    q.units = units;
    double first_s = INFINITY;
    uint32_t whose = UINT32_MAX;
    for (place where = IDLE; where < PLACES; where++)
        find_first_end(c, c->roots[where], where, &q, &first_s, &whose);
    if (worker)
        *worker = whose;
    return first_s;
}

double kl_crew_fastest_idle(const kl_crew *c, uint32_t without, uint32_t *worker) {
    question q = ask(c, without);
    q.units = 1;
    double first_s = INFINITY;
    *worker = UINT32_MAX;
    find_first_end(c, c->roots[IDLE], IDLE, &q, &first_s, worker);
    return 1 / first_s;
}

/* --- workers in order of speed --- */

static void sum_up_ranks(kl_crew *c, uint32_t at) {
    const node *n = &c->ranks.nodes[at];
    const rank *l = &c->rank[n->left], *r = &c->rank[n->right];
    c->rank[at].workers = l->workers + 1 + r->workers;
    c->rank[at].speed = l->speed - n->key + r->speed;
}

static void rank_again(kl_crew *c, uint32_t at) {
    node *n = &c->ranks.nodes[at];
    double key = c->rank[at].key;
    if (n->key == key)
        return;
    if (n->key < 0)
        c->fastest = lacking(&c->ranks, c->fastest, at);
    *n = (node){.key = key};
    if (key < 0)
        c->fastest = with(&c->ranks, c->fastest, at);
}

/* Move changed workers to their new ranks, and compute the sums. Return the root of `ranks`; 0: no worker is
 * ranked. */
static uint32_t ranks_in_order(const kl_crew *crew) {
    kl_crew *c = (kl_crew *)crew;
    for (uint32_t at; (at = take_moved(&c->ranks));)
        rank_again(c, at);
    sum_up(c, &c->ranks, c->fastest);
    return c->fastest;
}

/* Return the worker's speed in this run. If it is not known, return the speed in the last run, or else 1
 * divided by the worker's pace. 0: nothing is known. */
static double speed_of(const kl_worker_view *v, double last) {
    if (v->units > 0 && v->busy_s > 0)
        return v->units / v->busy_s;
    double unit_s = kl_pace_unit_s(&v->pace);
    return last > 0 ? last : unit_s > 0 ? 1 / unit_s : 0;
}

/* Store the key of a worker in `ranks`. Keys are negative speeds, so the fastest workers come first. */
static void set_rank(kl_crew *c, uint32_t at, double key) {
    if (key == c->rank[at].key)
        return;
    c->rank[at].key = key;
    note_moved(&c->ranks, at);
}

static void update_rank(kl_crew *c, const kl_worker_view *v, uint32_t at) {
    set_rank(c, at, v->present || v->resting ? -speed_of(v, -c->rank[at].key) : 0);
}

double kl_crew_speed(const kl_crew *c, uint32_t worker) {
    return -c->rank[worker + 1].key;
}

void kl_crew_set_speed(kl_crew *c, uint32_t worker, double speed) {
    set_rank(c, worker + 1, -speed);
}

uint32_t kl_crew_ranked(const kl_crew *c) {
    return c->rank[ranks_in_order(c)].workers;
}

double kl_crew_fastest_speed(const kl_crew *c, uint32_t n) {
    double sum = 0;
    for (uint32_t at = ranks_in_order(c); at && n;) {
        const node *here = &c->ranks.nodes[at];
        const rank *left = &c->rank[here->left];
        if (n <= left->workers) {
            at = here->left;
            continue;
        }
        sum += left->speed - here->key;
        n -= left->workers + 1;
        at = here->right;
    }
    return sum;
}

uint32_t kl_crew_nth_fastest(const kl_crew *c, uint32_t n, double *speed) {
    uint32_t at = ranks_in_order(c);
    for (;;) {
        const node *here = &c->ranks.nodes[at];
        uint32_t faster = c->rank[here->left].workers;
        if (n == faster + 1)
            break;
        at = n <= faster ? here->left : here->right;
        n -= n <= faster ? 0 : faster + 1;
    }
    *speed = -c->ranks.nodes[at].key;
    return at - 1;
}

/* --- sums that need no order --- */

static void add_worker(kl_crew_sums *sum, const kl_worker_view *v) {
    double rate = kl_worker_rate(v), wap_unit_s = kl_wap_unit_s(&v->wap), sd = kl_stat_sd(&v->unit_s);
    sum->present++;
    sum->known += rate > 0;
    sum->rates += rate;
    sum->unserved += v->chunks == 0;
    sum->spread += v->pace.spread;
    sum->seconds += v->pace.seconds;
    sum->queued_units += v->queued_units;
    if (v->prior_rate > 0) {
        sum->with_prior++;
        sum->priors += v->prior_rate;
    }
    if (wap_unit_s > 0) {
        sum->with_wap++;
        sum->waps += 1 / wap_unit_s;
    }
    if (v->unit_s.count >= 2 && v->unit_s.mean > 0) {
        sum->steady++;
        sum->variance_rates += sd * sd / v->unit_s.mean;
        sum->unit_rates += 1 / v->unit_s.mean;
    }
}

static kl_crew_sums both(const kl_crew_sums *a, const kl_crew_sums *b) {
    return (kl_crew_sums){
        .present = a->present + b->present,
        .known = a->known + b->known,
        .unserved = a->unserved + b->unserved,
        .with_prior = a->with_prior + b->with_prior,
        .with_wap = a->with_wap + b->with_wap,
        .steady = a->steady + b->steady,
        .rates = a->rates + b->rates,
        .spread = a->spread + b->spread,
        .seconds = a->seconds + b->seconds,
        .queued_units = a->queued_units + b->queued_units,
        .priors = a->priors + b->priors,
        .waps = a->waps + b->waps,
        .variance_rates = a->variance_rates + b->variance_rates,
        .unit_rates = a->unit_rates + b->unit_rates,
    };
}

static void sum_up_block(kl_crew *c, const kl_worker_view *views, uint32_t block) {
    kl_crew_sums sum = {0};
    for (uint32_t i = block * BLOCK; i < (block + 1) * BLOCK && i < c->slots; i++)
        if (views[i].present)
            add_worker(&sum, &views[i]);
    c->sums[c->leaves + block] = sum;
}

const kl_crew_sums *kl_crew_total(const kl_crew *c) {
    return &c->sums[1];
}

double kl_crew_mean_rate(const kl_crew *c) {
    return c->sums[1].known ? c->sums[1].rates / c->sums[1].known : 0;
}

/* --- functions for the whole crew --- */

void kl_crew_update(kl_crew *c, const kl_worker_view *views, uint32_t worker) {
    sum_up_block(c, views, worker / BLOCK);
    for (uint32_t i = (c->leaves + worker / BLOCK) / 2; i > 0; i /= 2)
        c->sums[i] = both(&c->sums[2 * i], &c->sums[2 * i + 1]);
    update_wait(c, &views[worker], worker + 1);
    update_rank(c, &views[worker], worker + 1);
}

void kl_crew_look_again(kl_crew *c, const kl_worker_view *views, double now_s) {
    c->now_s = now_s;
    for (uint32_t i = 0; i < c->leaves; i++)
        sum_up_block(c, views, i);
    for (uint32_t i = c->leaves - 1; i > 0; i--)
        c->sums[i] = both(&c->sums[2 * i], &c->sums[2 * i + 1]);
    for (uint32_t i = 0; i < c->slots; i++) {
        update_wait(c, &views[i], i + 1);
        update_rank(c, &views[i], i + 1);
    }
}

/* Make an array longer, and zero the new elements. `place` points to the pointer to the array. */
static bool grow(void *place, size_t had, size_t count, size_t each) {
    void *array;
    memcpy(&array, place, sizeof array);
    array = realloc(array, count * each);
    if (!array)
        return false;
    memset((char *)array + had * each, 0, (count - had) * each);
    memcpy(place, &array, sizeof array);
    return true;
}

/* Get memory for `leaves` blocks of workers. The present sums stay. */
static kilter_status make_room(kl_crew *c, uint32_t leaves) {
    size_t count = (size_t)leaves * BLOCK + 1, had = c->room ? (size_t)c->room + 1 : 0;
    kl_crew_sums *sums = calloc(2 * (size_t)leaves, sizeof *sums);
    if (!sums || !grow(&c->waits.nodes, had, count, sizeof *c->waits.nodes) ||
        !grow(&c->waits.marks, had, count, sizeof *c->waits.marks) ||
        !grow(&c->ranks.nodes, had, count, sizeof *c->ranks.nodes) ||
        !grow(&c->ranks.marks, had, count, sizeof *c->ranks.marks) ||
        !grow(&c->waiting, had, count, sizeof *c->waiting) ||
        !grow(&c->waits.moved, had, count, sizeof *c->waits.moved) ||
        !grow(&c->ranks.moved, had, count, sizeof *c->ranks.moved) ||
        !grow(&c->rank, had, count, sizeof *c->rank)) {
        free(sums);
        return KILTER_ERR_MEMORY;
    }
    if (c->leaves)
        memcpy(sums + leaves, c->sums + c->leaves, c->leaves * sizeof *sums);
    for (uint32_t i = leaves - 1; i > 0; i--)
        sums[i] = both(&sums[2 * i], &sums[2 * i + 1]);
    free(c->sums);
    c->sums = sums;
    c->leaves = leaves;
    c->room = leaves * BLOCK;
    return KILTER_OK;
}

kilter_status kl_crew_reserve(kl_crew *c, uint32_t slots) {
    uint32_t leaves = c->leaves;
    while (leaves * BLOCK < slots) {
        if (leaves > UINT32_MAX / (4 * BLOCK))
            return KILTER_ERR_MEMORY;
        leaves *= 2;
    }
    if (leaves > c->leaves && make_room(c, leaves) != KILTER_OK)
        return KILTER_ERR_MEMORY;
    c->slots = slots > c->slots ? slots : c->slots;
    return KILTER_OK;
}

kl_crew *kl_crew_new(void) {
    kl_crew *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->waits.sum_up = sum_up_waits;
    c->ranks.sum_up = sum_up_ranks;
    if (make_room(c, 1) != KILTER_OK) {
        kl_crew_free(c);
        return NULL;
    }
    return c;
}

void kl_crew_free(kl_crew *c) {
    if (!c)
        return;
    free(c->waits.nodes);
    free(c->waits.marks);
    free(c->ranks.nodes);
    free(c->ranks.marks);
    free(c->waits.moved);
    free(c->ranks.moved);
    free(c->waiting);
    free(c->rank);
    free(c->sums);
    free(c);
}
