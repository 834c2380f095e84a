/* Loops whose iterations may be anywhere: they move while a sweep is under way, those not done first.
 *
 * Rounds follow each other: a rank posts its next report when it has the answer to the last one, and has
 * worked for a period since, or has nothing to do. From the same reports all ranks make the same plan, which
 * says how many rows go from whom to whom:
 *
 *     from                            to
 *     LIST: which rows, which done ──▶
 *                                  ◀── ANSWER: there is room, or not
 *     ROWS, array by array         ──▶
 *
 * A row that is done is done for the sweep, wherever it goes then. When the reports say that all are
 * done, that is the end of it on all ranks. Sweeps that all end before a period has passed are quiet:
 * nothing can be decided in them, so that nobody waits for the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

enum {
    LISTED = 32, /* ranges in a transfer */
    TAGS = 8,    /* a transfer's; those of TAG_ROUNDS rounds are within what every MPI has, 32767 */
    TAG_ROUNDS = 4000,
};

static const double REST_MOST_S = 0.005, SIMULATED_REST_MOST_S = 1;

typedef struct listed {
    kl_span rows;
    uint64_t done;
} listed;

typedef struct list {
    uint64_t count;
    listed ranges[LISTED];
} list;

typedef enum stage { LISTS, ANSWERS, ROWS } stage;

typedef struct transfer {
    struct transfer *next;
    int peer, tags; /* tags: beside those of other rounds' transfers, of which several may be under way */
    bool sends;
    stage stage;
    list list;
    uint64_t granted;
    kl_requests requests;
} transfer;

typedef struct report {
    uint64_t done, rows; /* of this sweep; here */
    uint64_t todo;       /* of them, in this sweep */
    uint64_t refused;    /* of rows it should have sent, since the last report */
    kl_rank_report rank; /* without segments, which stay behind */
} report;
enum { REPORT_BYTES = offsetof(report, rank.segments_s) };

struct kl_scatter {
    kl_ranges todo, done;
    report mine, *all;
    uint64_t *left; /* [ranks] of this sweep */
    kl_requests requests;
    bool reported, over;
    bool quiet;     /* no reports in this sweep */
    bool committed; /* what moved last was the steer's shares, not what was left of a sweep */
    double reported_s;
    double over_s;            /* rank 0's clock at the last end that was known to all … */
    uint64_t ended;           /* … and sweeps that had ended then */
    uint64_t rounds, refused; /* refused: to be reported */
    uint64_t refusals;        /* reported by anybody, and not acted on yet */
    transfer *transfers;      /* in the order they were planned */
};

static kilter_status no_memory(const kilter_loop *l, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "keeping track of the iterations of loop '%s': memory ran out",
                   l->group.name);
}

/* --- transfers --- */

/* In one round there is at most one from a rank to another. */
static transfer *add_transfer(struct kl_scatter *s, int peer, bool sends) {
    transfer *t = calloc(1, sizeof *t), **last = &s->transfers;
    if (!t)
        return NULL;
    t->peer = peer;
    t->tags = TAGS * (int)(1 + s->rounds % TAG_ROUNDS);
    t->sends = sends;
    while (*last)
        last = &(*last)->next;
    return *last = t;
}

/* Up to `count` rows from the end of `from` go onto the list. */
static uint64_t enlist(list *to, kl_ranges *from, uint64_t count, bool done) {
    while (count > 0 && from->count > 0 && to->count < LISTED) {
        kl_span *last = &from->at[from->count - 1];
        uint64_t here = last->hi - last->lo, part = here < count ? here : count;
        to->ranges[to->count++] = (listed){{last->hi - part, last->hi}, done};
        last->hi -= part;
        from->count -= last->lo == last->hi;
        count -= part;
    }
    return count;
}

/* Address a message of the transfer. */
static kl_mail mail_of(const transfer *t, int tag, void *data, size_t bytes) {
    return (kl_mail){.data = data, .bytes = bytes, .peer = t->peer, .tag = t->tags + tag};
}

static kilter_status send_list(kilter_loop *l, int to, uint64_t count, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    transfer *t = add_transfer(s, to, true);
    if (!t)
        return no_memory(l, error);
    enlist(&t->list, &s->done, enlist(&t->list, &s->todo, count, false), true);
    t->stage = ANSWERS;
    kilter_status status =
        kl_receive(&l->group, &t->requests, mail_of(t, KL_TAG_ANSWER, &t->granted, sizeof t->granted), error);
    if (status != KILTER_OK)
        return status;
    return kl_send(&l->group, &t->requests, mail_of(t, KL_TAG_LIST, &t->list, sizeof t->list), error);
}

static kilter_status await_list(kilter_loop *l, int from, kilter_error *error) {
    transfer *t = add_transfer(l->scatter, from, false);
    if (!t)
        return no_memory(l, error);
    return kl_receive(&l->group, &t->requests, mail_of(t, KL_TAG_LIST, &t->list, sizeof t->list), error);
}

static kilter_status pass_rows(kilter_loop *l, transfer *t, kilter_error *error) {
    kilter_status status = KILTER_OK;
    t->stage = ROWS;
    for (size_t a = 0; a < l->rank.layout.array_count; a++)
        for (size_t i = 0; i < t->list.count && status == KILTER_OK; i++) {
            const kl_array *rows = &l->rank.layout.arrays[a];
            kl_span range = t->list.ranges[i].rows;
            size_t bytes = (size_t)kl_length(range) * rows->bytes;
            kl_mail mail = mail_of(t, KL_TAG_ROWS, kl_row_at(rows, range.lo), bytes);
            status = (t->sends ? kl_send : kl_receive)(&l->group, &t->requests, mail, error);
        }
    return status;
}

/* All ranges whose pages are in use: own rows, and those on their way here or from here. */
static kilter_status give_pages(kilter_loop *l, const transfer *gone, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    kl_ranges kept = {0};
    bool fits = kl_ranges_add(&kept, l->rank.work.given);
    for (size_t i = 0; i < s->todo.count; i++)
        fits &= kl_ranges_add(&kept, s->todo.at[i]);
    for (size_t i = 0; i < s->done.count; i++)
        fits &= kl_ranges_add(&kept, s->done.at[i]);
    for (const transfer *t = s->transfers; t; t = t->next)
        for (size_t i = 0; i < t->list.count && t != gone && (t->sends || t->stage == ROWS); i++)
            fits &= kl_ranges_add(&kept, t->list.ranges[i].rows);
    for (size_t a = 0; a < l->rank.layout.array_count && fits; a++)
        for (size_t i = 0; i < gone->list.count; i++)
            kl_rows_give(&l->memory.rows[a], gone->list.ranges[i].rows, kept.at, kept.count);
    kl_ranges_free(&kept);
    return fits ? KILTER_OK : no_memory(l, error);
}

static uint64_t bytes_of(const kilter_loop *l, const list *list) {
    uint64_t bytes = 0;
    for (size_t a = 0; a < l->rank.layout.array_count; a++)
        for (size_t i = 0; i < list->count; i++)
            bytes += (list->ranges[i].rows.hi - list->ranges[i].rows.lo) * l->rank.layout.arrays[a].bytes;
    return bytes;
}

/* Is there room, beside that granted to rows that are still on their way? */
static bool is_room(const kilter_loop *l, const transfer *t) {
    uint64_t bytes = bytes_of(l, &t->list);
    for (const transfer *other = l->scatter->transfers; other; other = other->next)
        if (!other->sends && other->stage == ROWS)
            bytes += bytes_of(l, &other->list);
    return kl_rows_fit(bytes);
}

static bool take_pages(kilter_loop *l, const transfer *t) {
    for (size_t a = 0; a < l->rank.layout.array_count; a++)
        for (size_t i = 0; i < t->list.count; i++)
            if (kl_rows_take(&l->memory.rows[a], t->list.ranges[i].rows, NULL) != KILTER_OK)
                return false;
    return true;
}

static kilter_status answer_list(kilter_loop *l, transfer *t, kilter_error *error) {
    kilter_status status = KILTER_OK;
    t->granted = is_room(l, t) && take_pages(l, t);
    if (t->granted) {
        status = pass_rows(l, t, error);
    } else {
        status = give_pages(l, t, error);
        t->list.count = 0;
        t->stage = ROWS;
    }
    if (status != KILTER_OK)
        return status;
    return kl_send(&l->group, &t->requests, mail_of(t, KL_TAG_ANSWER, &t->granted, sizeof t->granted), error);
}

static bool put_back(struct kl_scatter *s, const list *from) {
    bool fits = true;
    for (size_t i = from->count; i-- > 0;)
        fits &= kl_ranges_add(from->ranges[i].done ? &s->done : &s->todo, from->ranges[i].rows);
    kl_ranges_tidy(&s->todo);
    kl_ranges_tidy(&s->done);
    return fits;
}

/* The rank that has the rows again reports them and the refusal. The next decision waits for that report. */
static kilter_status hear_answer(kilter_loop *l, transfer *t, kilter_error *error) {
    if (t->granted)
        return pass_rows(l, t, error);
    l->scatter->refused++;
    bool fits = put_back(l->scatter, &t->list);
    t->list.count = 0;
    t->stage = ROWS;
    return fits ? KILTER_OK : no_memory(l, error);
}

static kilter_status complete(kilter_loop *l, transfer *t, kilter_error *error) {
    uint64_t rows = 0;
    for (size_t i = 0; i < t->list.count; i++) {
        rows += t->list.ranges[i].rows.hi - t->list.ranges[i].rows.lo;
        if (t->sends)
            kl_layout_note_gone(&l->rank.layout,
                                (kl_gone){t->list.ranges[i].rows, kl_meter_sweep(&l->rank.meter), t->peer});
    }
    l->rank.meter.since.moved += rows;
    if (t->sends)
        return give_pages(l, t, error);
    return put_back(l->scatter, &t->list) ? KILTER_OK : no_memory(l, error);
}

/* Do a transfer's next step; one that is complete leaves the list. */
static kilter_status go_on(kilter_loop *l, transfer **place, kilter_error *error) {
    transfer *t = *place;
    stage stage = t->stage;
    kilter_status status = kl_requests_look(&l->group, &t->requests, error);
    if (status != KILTER_OK || t->requests.open > 0)
        return status;
    if (stage == LISTS)
        return answer_list(l, t, error);
    if (stage == ANSWERS)
        return hear_answer(l, t, error);
    status = complete(l, t, error);
    *place = t->next;
    kl_requests_free(&t->requests);
    free(t);
    return status;
}

static kilter_status look_at_transfers(kilter_loop *l, kilter_error *error) {
    kilter_status status = KILTER_OK;
    if (!l->scatter->transfers)
        return KILTER_OK;
    double began_s = kl_loop_now_s(l);
    for (transfer **place = &l->scatter->transfers; *place && status == KILTER_OK;) {
        transfer *t = *place;
        status = go_on(l, place, error);
        if (*place == t)
            place = &t->next;
    }
    kl_meter_moving(&l->rank.meter, kl_loop_now_s(l) - began_s);
    return status;
}

/* --- rounds --- */

static kilter_status carry_out(kilter_loop *l, const kl_transfer *transfers, size_t count,
                               kilter_error *error) {
    kilter_status status = KILTER_OK;
    l->rank.meter.all.moves += count > 0;
    for (size_t i = 0; i < count && status == KILTER_OK; i++) {
        l->rank.meter.all.moved += transfers[i].count;
        if ((int)transfers[i].from == l->group.rank)
            status = send_list(l, (int)transfers[i].to, transfers[i].count, error);
        else if ((int)transfers[i].to == l->group.rank)
            status = await_list(l, (int)transfers[i].from, error);
    }
    return status;
}

/* From anybody to anybody, sometimes more than there is. */
static kilter_status force(kilter_loop *l, kilter_error *error) {
    if (l->group.ranks < 2)
        return KILTER_OK;
    uint64_t seed = kl_mix64(l->rank.rounds.seed + l->scatter->rounds);
    kl_transfer transfer = {.from = (uint32_t)(seed % l->group.ranks),
                            .count = (seed >> 32) % (l->options.iterations / l->group.ranks + 2)};
    transfer.to = (uint32_t)((transfer.from + 1 + (seed >> 16) % (l->group.ranks - 1)) % l->group.ranks);
    return transfer.count > 0 ? carry_out(l, &transfer, 1, error) : KILTER_OK;
}

/* A period has passed, and no rows are on their way: they are all on some rank. */
static bool is_time(kilter_loop *l) {
    uint64_t rows = 0;
    for (uint32_t r = 0; r < l->group.ranks; r++)
        rows += l->rank.layout.target[r] = l->scatter->all[r].rows;
    return rows == l->options.iterations &&
           l->rank.rounds.all[0].elapsed_s - l->rank.rounds.asked_s >= l->rank.rounds.period_s;
}

/* Whatever was refused, or could not be sent: rows are where the ranks say they are. */
static void correct_places(kilter_loop *l) {
    if (l->scatter->refusals > 0 && l->scatter->committed)
        kl_steer_refuse(l->rank.rounds.steer);
    if (memcmp(kl_steer_shares(l->rank.rounds.steer), l->rank.layout.target,
               l->group.ranks * sizeof *l->rank.layout.target) != 0)
        kl_steer_place(l->rank.rounds.steer, l->rank.layout.target);
    l->scatter->refusals = 0;
}

static bool share_what_is_left(kilter_loop *l) {
    struct kl_scatter *s = l->scatter;
    for (uint32_t r = 0; r < l->group.ranks; r++)
        s->left[r] = s->all[r].todo;
    return kl_steer_left(l->rank.rounds.steer, s->left, &l->rank.rounds.plan);
}

static kilter_status decide(kilter_loop *l, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    kl_loop_rounds *r = &l->rank.rounds;
    const kl_steer_plan *plan = &r->plan;
    kilter_status status = KILTER_OK;
    kl_rounds_add(r, &s->all[0].rank, sizeof *s->all, l->group.ranks);
    if (!is_time(l))
        return KILTER_OK;
    correct_places(l);
    if (!kl_rounds_decide(&l->rank))
        return kl_fail(error, KILTER_ERR_MEMORY, "balancing loop '%s': memory ran out", l->group.name);
    s->committed = !share_what_is_left(l) && plan->move;
    kl_rounds_note(r);
    kl_loop_record_round(l);
    if (plan->move)
        status = carry_out(l, plan->transfers, plan->transfer_count, error);
    if (s->committed)
        kl_steer_commit(l->rank.rounds.steer);
    return status;
}

/* All is done. The next report is made in the sweep in which a period will have passed; sooner where
 * reports cost little, and after not more than half as many as there were, as the next ones may take longer.
 * The same on all ranks. */
static void set_next(kilter_loop *l) {
    struct kl_scatter *s = l->scatter;
    double now_s = s->all[0].rank.elapsed_s,
           left_s = l->rank.rounds.asked_s + l->rank.rounds.period_s - now_s;
    uint64_t ended = kl_meter_sweep(&l->rank.meter) + 1;
    double pass_s = (now_s - s->over_s) / (double)(ended - s->ended), passes = left_s / pass_s;
    uint64_t most = kl_report_hooks(l->rank.rounds.interact_s, pass_s);
    most = most < ended / 2 ? most : ended / 2;
    s->over_s = now_s;
    s->ended = ended;
    l->rank.rounds.at =
        ended +
        (passes >= 1 && !l->rank.rounds.forced ? (passes < (double)most ? (uint64_t)passes : most) : 0);
}

static kilter_status answer(kilter_loop *l, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    uint64_t done = 0;
    kilter_status status = kl_requests_look(&l->group, &s->requests, error);
    if (status != KILTER_OK || s->requests.open > 0)
        return status;
    s->reported = false;
    s->rounds++;
    kl_rounds_spread(s->all, REPORT_BYTES, sizeof *s->all, l->group.ranks);
    uint64_t refused = 0;
    for (uint32_t r = 0; r < l->group.ranks; r++) {
        done += s->all[r].done;
        refused += s->all[r].refused;
    }
    s->refusals += refused;
    if (refused > 0)
        kl_loop_record_refused(l, kl_rounds_refused(&l->rank.rounds,
                                                    "some rows stay where they were: a rank has no memory "
                                                    "for those it should have had")
                                      .text);
    s->over = done == l->options.iterations;
    kilter_status decided = l->rank.rounds.forced ? force(l, error) : decide(l, error);
    if (s->over)
        set_next(l);
    return decided;
}

static double part_done(const kilter_loop *l) {
    uint64_t rows = l->rank.work.done + kl_ranges_sum(&l->scatter->todo);
    return (double)l->rank.work.done / (double)(rows + (rows == 0));
}

static kilter_status make_report(kilter_loop *l, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    uint64_t todo = kl_ranges_sum(&s->todo);
    s->reported_s = kl_loop_now_s(l);
    if (kl_meter_wants_quantum(&l->rank.meter, s->reported_s)) {
        kl_meter_quantum_is(&l->rank.meter, kl_quantum_s());
        s->reported_s = kl_loop_now_s(l);
    }
    s->mine = (report){.rank = kl_meter_report(&l->rank.meter, (kl_span){0, 0}, part_done(l), s->reported_s),
                       .done = l->rank.work.done,
                       .rows = todo + kl_ranges_sum(&s->done),
                       .todo = todo,
                       .refused = s->refused};
    s->refused = 0;
    s->reported = true;
    return kl_group_share(&l->group, &s->requests, &s->mine, s->all, REPORT_BYTES, error);
}

/* --- a sweep --- */

kilter_status kl_scatter_open(kilter_loop *l, kilter_error *error) {
    struct kl_scatter *s = calloc(1, sizeof *s);
    if (s) {
        s->all = calloc(l->group.ranks, sizeof *s->all);
        s->left = calloc(l->group.ranks, sizeof *s->left);
    }
    uint64_t fits = s && s->all && s->left && kl_ranges_add(&s->done, kl_layout_own(&l->rank.layout));
    l->scatter = s;
    kilter_status status = kl_group_least(&l->group, &fits, 1, error);
    return status == KILTER_OK && !fits ? no_memory(l, error) : status;
}

void kl_scatter_free(kilter_loop *l) {
    struct kl_scatter *s = l->scatter;
    if (!s)
        return;
    kl_ranges_free(&s->todo);
    kl_ranges_free(&s->done);
    kl_requests_free(&s->requests);
    free(s->all);
    free(s->left);
    free(s);
}

/* The rows that are here between two sweeps. */
bool kl_scatter_own(const kilter_loop *l, size_t nth, kl_span *range) {
    const kl_ranges *own = &l->scatter->done;
    if (nth < own->count)
        *range = own->at[nth];
    return nth < own->count;
}

void kl_scatter_begin(kilter_loop *l) {
    struct kl_scatter *s = l->scatter;
    kl_ranges all = s->done;
    s->done = s->todo; /* empty */
    s->todo = all;
    s->over = false;
    s->quiet = kl_meter_sweep(&l->rank.meter) < l->rank.rounds.at;
    s->reported_s = kl_loop_now_s(l);
    l->rank.work = (kl_work){.done = 0};
}

static kilter_status count_given(kilter_loop *l, kilter_error *error) {
    kl_span given = l->rank.work.given;
    if (kl_is_empty(given))
        return KILTER_OK;
    kl_meter_count(&l->rank.meter, (double)kl_length(given), kl_loop_now_s(l) - l->rank.meter.given_s);
    l->rank.work.done += kl_length(given);
    l->rank.work.given = (kl_span){0, 0};
    return kl_ranges_add(&l->scatter->done, given) ? KILTER_OK : no_memory(l, error);
}

static uint64_t piece(const kilter_loop *l) {
    uint64_t mine = kl_ranges_sum(&l->scatter->todo), even = (mine + KL_SEGMENTS - 1) / KL_SEGMENTS;
    double each_s = l->rank.meter.iteration_s, period_s = l->rank.rounds.period_s / 4;
    if (each_s == 0)
        return 1;
    uint64_t most = kl_doall_grain(mine, each_s, period_s),
             wanted = each_s * (double)mine < period_s ? mine : even;
    return wanted < most ? wanted : most;
}

static kl_action give(kilter_loop *l) {
    kl_ranges *todo = &l->scatter->todo;
    kl_span *first = &todo->at[0];
    uint64_t count = kl_length(*first), most = piece(l);
    count = count < most ? count : most;
    l->rank.work.given = (kl_span){first->lo, first->lo + count};
    first->lo += count;
    if (kl_is_empty(*first)) {
        todo->count--;
        memmove(first, first + 1, todo->count * sizeof *first);
    }
    l->rank.meter.given_s = kl_loop_now_s(l);
    return (kl_action){.act = KL_GIVE, .given.rows = l->rank.work.given};
}

/* In a simulation nobody dies: something that comes is all there is to wake up for. */
static void rest(kilter_loop *l) {
    kl_mpi_rest(&l->group.wait, false, kl_mpi_ranks_die ? REST_MOST_S : SIMULATED_REST_MOST_S);
}

static kilter_status step(kilter_loop *l, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    kilter_status status = look_at_transfers(l, error);
    if (status == KILTER_OK && s->reported)
        status = answer(l, error);
    if (s->quiet)
        s->over = s->todo.count == 0;
    bool due = s->todo.count == 0 || l->rank.rounds.forced ||
               kl_loop_now_s(l) - s->reported_s >= l->rank.rounds.period_s;
    if (status == KILTER_OK && !s->reported && !s->quiet && !s->over && due)
        status = make_report(l, error);
    return status == KILTER_OK ? kl_group_look(&l->group, kl_monotonic_s(), error) : status;
}

kilter_status kl_scatter_next(kilter_loop *l, kl_action *last, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    kilter_status status = count_given(l, error);
    if (status == KILTER_OK)
        status = step(l, error);
    double began_s = kl_loop_now_s(l);
    bool waits = !s->over && s->todo.count == 0;
    kl_mpi_traffic(&l->group.wait);
    while (status == KILTER_OK && !s->over && s->todo.count == 0) {
        rest(l);
        status = step(l, error);
    }
    if (waits)
        kl_mpi_waited(&l->group.wait);
    l->rank.meter.all.waited_s += kl_loop_now_s(l) - began_s;
    *last = (kl_action){.act = KL_RETURN};
    if (status == KILTER_OK && s->todo.count > 0)
        *last = give(l);
    return status;
}

bool kl_scatter_is_done(const kilter_loop *l) {
    return l->scatter->over && kl_is_empty(l->rank.work.given);
}

/* Rows that are on their way arrive; nobody sends any more. */
kilter_status kl_scatter_end(kilter_loop *l, double *now_s, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    kilter_status status = KILTER_OK;
    bool waits = s->transfers != NULL;
    kl_mpi_traffic(&l->group.wait);
    while (s->transfers && status == KILTER_OK) {
        status = look_at_transfers(l, error);
        if (status == KILTER_OK)
            status = kl_group_look(&l->group, kl_monotonic_s(), error);
        if (s->transfers)
            rest(l);
    }
    if (waits)
        kl_mpi_waited(&l->group.wait);
    kl_ranges_tidy(&s->done);
    *now_s = kl_loop_now_s(l);
    return status;
}

const kl_kind kl_scattered = {.anywhere = true};
