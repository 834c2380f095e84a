/* Loops whose iterations may be anywhere: they move while an execution is under way, those not done first.
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
 * A row that is done is done for the execution, wherever it goes then. When the reports say that all are
 * done, that is the end of it on all ranks. Executions that all end before a period has passed are quiet:
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
    kl_batch batch;
} transfer;

typedef struct report {
    uint64_t done, rows; /* of this execution; here */
    uint64_t todo;       /* of them, in this execution */
    uint64_t refused;    /* of rows it should have sent, since the last report */
    kl_rank_report rank; /* without segments, which stay behind */
} report;
enum { REPORT_BYTES = offsetof(report, rank.segments_s) };

struct kl_scatter {
    kl_spans todo, done;
    report mine, *all;
    uint64_t *left; /* [ranks] of this execution */
    kl_batch batch;
    bool reported, over;
    bool quiet;     /* no reports in this execution */
    bool committed; /* what moved last was the steer's shares, not what was left of an execution */
    double reported_s;
    double over_s;            /* rank 0's clock at the last end that was known to all … */
    uint64_t ended;           /* … and executions that had ended then */
    uint64_t rounds, refused; /* refused: to be reported */
    uint64_t refusals;        /* reported by anybody, and not acted on yet */
    transfer *transfers;      /* in the order they were planned */
};

/* --- spans --- */

bool kl_spans_add(kl_spans *s, kl_span span) {
    if (span.lo >= span.hi)
        return true;
    if (s->count > 0 && s->at[s->count - 1].hi == span.lo) {
        s->at[s->count - 1].hi = span.hi;
        return true;
    }
    if (s->count == s->capacity) {
        size_t capacity = 2 * s->capacity + 8;
        kl_span *more = realloc(s->at, capacity * sizeof *more);
        if (!more)
            return false;
        s->at = more;
        s->capacity = capacity;
    }
    s->at[s->count++] = span;
    return true;
}

uint64_t kl_spans_sum(const kl_spans *s) {
    uint64_t sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->at[i].hi - s->at[i].lo;
    return sum;
}

static int by_place(const void *a, const void *b) {
    const kl_span *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void tidy(kl_spans *s) {
    if (s->count > 1)
        qsort(s->at, s->count, sizeof *s->at, by_place);
    size_t kept = 0;
    for (size_t i = 1; i < s->count; i++) {
        if (s->at[kept].hi == s->at[i].lo)
            s->at[kept].hi = s->at[i].hi;
        else
            s->at[++kept] = s->at[i];
    }
    s->count = s->count > 0 ? kept + 1 : 0;
}

void kl_spans_free(kl_spans *s) {
    free(s->at);
    *s = (kl_spans){0};
}

static kilter_status no_memory(const kilter_loop *l, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_MEMORY, "keeping track of the iterations of loop '%s': memory ran out",
                   l->name);
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
static uint64_t enlist(list *to, kl_spans *from, uint64_t count, bool done) {
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

static kilter_status send_list(kilter_loop *l, int to, uint64_t count, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    transfer *t = add_transfer(s, to, true);
    if (!t)
        return no_memory(l, error);
    enlist(&t->list, &s->done, enlist(&t->list, &s->todo, count, false), true);
    kilter_status status =
        kl_batch_receive(l, &t->batch, &t->granted, sizeof t->granted, to, t->tags + KL_TAG_ANSWER, error);
    t->stage = ANSWERS;
    return status == KILTER_OK
               ? kl_batch_send(l, &t->batch, &t->list, sizeof t->list, to, t->tags + KL_TAG_LIST, error)
               : status;
}

static kilter_status await_list(kilter_loop *l, int from, kilter_error *error) {
    transfer *t = add_transfer(l->scatter, from, false);
    return t ? kl_batch_receive(l, &t->batch, &t->list, sizeof t->list, from, t->tags + KL_TAG_LIST, error)
             : no_memory(l, error);
}

static kilter_status pass_rows(kilter_loop *l, transfer *t, kilter_error *error) {
    kilter_status status = KILTER_OK;
    t->stage = ROWS;
    for (size_t a = 0; a < l->array_count; a++)
        for (size_t i = 0; i < t->list.count && status == KILTER_OK; i++) {
            const kl_rows *rows = &l->arrays[a].rows;
            kl_span range = t->list.ranges[i].rows;
            size_t bytes = (size_t)(range.hi - range.lo) * rows->bytes;
            uint8_t *at = kl_rows_at(rows, range.lo);
            status = t->sends
                         ? kl_batch_send(l, &t->batch, at, bytes, t->peer, t->tags + KL_TAG_ROWS, error)
                         : kl_batch_receive(l, &t->batch, at, bytes, t->peer, t->tags + KL_TAG_ROWS, error);
        }
    return status;
}

/* All ranges whose pages are in use: own rows, and those on their way here or from here. */
static kilter_status give_pages(kilter_loop *l, const transfer *gone, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    kl_spans kept = {0};
    bool fits = kl_spans_add(&kept, l->given);
    for (size_t i = 0; i < s->todo.count; i++)
        fits &= kl_spans_add(&kept, s->todo.at[i]);
    for (size_t i = 0; i < s->done.count; i++)
        fits &= kl_spans_add(&kept, s->done.at[i]);
    for (const transfer *t = s->transfers; t; t = t->next)
        for (size_t i = 0; i < t->list.count && t != gone && (t->sends || t->stage == ROWS); i++)
            fits &= kl_spans_add(&kept, t->list.ranges[i].rows);
    for (size_t a = 0; a < l->array_count && fits; a++)
        for (size_t i = 0; i < gone->list.count; i++)
            kl_rows_give(&l->arrays[a].rows, gone->list.ranges[i].rows, kept.at, kept.count);
    kl_spans_free(&kept);
    return fits ? KILTER_OK : no_memory(l, error);
}

static uint64_t bytes_of(const kilter_loop *l, const list *list) {
    uint64_t bytes = 0;
    for (size_t a = 0; a < l->array_count; a++)
        for (size_t i = 0; i < list->count; i++)
            bytes += (list->ranges[i].rows.hi - list->ranges[i].rows.lo) * l->arrays[a].rows.bytes;
    return bytes;
}

/* Beside rows that have been granted room before, and take it when they come. */
static bool is_room(const kilter_loop *l, const transfer *t) {
    uint64_t bytes = bytes_of(l, &t->list);
    for (const transfer *other = l->scatter->transfers; other; other = other->next)
        if (!other->sends && other->stage == ROWS)
            bytes += bytes_of(l, &other->list);
    return kl_rows_fit(bytes);
}

static bool take_pages(kilter_loop *l, const transfer *t) {
    for (size_t a = 0; a < l->array_count; a++)
        for (size_t i = 0; i < t->list.count; i++)
            if (kl_rows_take(&l->arrays[a].rows, t->list.ranges[i].rows, NULL) != KILTER_OK)
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
    return status == KILTER_OK ? kl_batch_send(l, &t->batch, &t->granted, sizeof t->granted, t->peer,
                                               t->tags + KL_TAG_ANSWER, error)
                               : status;
}

static bool put_back(struct kl_scatter *s, const list *from) {
    bool fits = true;
    for (size_t i = from->count; i-- > 0;)
        fits &= kl_spans_add(from->ranges[i].done ? &s->done : &s->todo, from->ranges[i].rows);
    tidy(&s->todo);
    tidy(&s->done);
    return fits;
}

/* Who has the rows again reports that, and them: the next decision awaits these, and so knows of it. */
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
            kl_loop_note_gone(l, t->list.ranges[i].rows, t->peer);
    }
    l->measured.moved += rows;
    if (t->sends)
        return give_pages(l, t, error);
    return put_back(l->scatter, &t->list) ? KILTER_OK : no_memory(l, error);
}

/* What has come to its end leaves the list. */
static kilter_status go_on(kilter_loop *l, transfer **place, kilter_error *error) {
    transfer *t = *place;
    stage stage = t->stage;
    kilter_status status = kl_batch_look(l, &t->batch, error);
    if (status != KILTER_OK || t->batch.open > 0)
        return status;
    if (stage == LISTS)
        return answer_list(l, t, error);
    if (stage == ANSWERS)
        return hear_answer(l, t, error);
    status = complete(l, t, error);
    *place = t->next;
    kl_batch_free(&t->batch);
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
    double passed_s = kl_loop_now_s(l) - began_s;
    l->measured.moving_s += passed_s;
    l->summary.moving_s += passed_s;
    return status;
}

/* --- rounds --- */

static kilter_status carry_out(kilter_loop *l, const kl_transfer *transfers, size_t count,
                               kilter_error *error) {
    kilter_status status = KILTER_OK;
    l->summary.moves += count > 0;
    for (size_t i = 0; i < count && status == KILTER_OK; i++) {
        l->summary.moved += transfers[i].count;
        if ((int)transfers[i].from == l->rank)
            status = send_list(l, (int)transfers[i].to, transfers[i].count, error);
        else if ((int)transfers[i].to == l->rank)
            status = await_list(l, (int)transfers[i].from, error);
    }
    return status;
}

/* From anybody to anybody, sometimes more than there is. */
static kilter_status force(kilter_loop *l, kilter_error *error) {
    if (l->ranks < 2)
        return KILTER_OK;
    uint64_t seed = kl_mix64(l->seed + l->scatter->rounds);
    kl_transfer transfer = {.from = (uint32_t)(seed % l->ranks),
                            .count = (seed >> 32) % (l->options.iterations / l->ranks + 2)};
    transfer.to = (uint32_t)((transfer.from + 1 + (seed >> 16) % (l->ranks - 1)) % l->ranks);
    return transfer.count > 0 ? carry_out(l, &transfer, 1, error) : KILTER_OK;
}

/* A period has passed, and no rows are on their way: they are all on some rank. */
static bool is_time(kilter_loop *l) {
    uint64_t rows = 0;
    for (uint32_t r = 0; r < l->ranks; r++)
        rows += l->target[r] = l->scatter->all[r].rows;
    return rows == l->options.iterations && l->round.all[0].elapsed_s - l->round.asked_s >= l->period_s;
}

/* Whatever was refused, or could not be sent: rows are where the ranks say they are. */
static void correct_places(kilter_loop *l) {
    if (l->scatter->refusals > 0 && l->scatter->committed)
        kl_steer_refuse(l->steer);
    if (memcmp(kl_steer_shares(l->steer), l->target, l->ranks * sizeof *l->target) != 0)
        kl_steer_place(l->steer, l->target);
    l->scatter->refusals = 0;
}

static bool share_what_is_left(kilter_loop *l, kl_steer_plan *plan) {
    struct kl_scatter *s = l->scatter;
    for (uint32_t r = 0; r < l->ranks; r++)
        s->left[r] = s->all[r].todo;
    return kl_steer_left(l->steer, s->left, plan);
}

static kilter_status decide(kilter_loop *l, kilter_error *error) {
    kl_steer_plan plan;
    for (uint32_t r = 0; r < l->ranks; r++)
        kl_report_add(&l->round.all[r], &l->scatter->all[r].rank);
    if (!is_time(l))
        return KILTER_OK;
    correct_places(l);
    l->round.asked_s = l->round.all[0].elapsed_s;
    if (kl_steer_round(l->steer, l->round.all, &plan) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "balancing loop '%s': memory ran out", l->name);
    l->summary.rounds++;
    l->scatter->committed = !share_what_is_left(l, &plan) && plan.move;
    kl_loop_note(l, &plan);
    kl_loop_record_round(l, l->round.all, &plan);
    memset(l->round.all, 0, l->ranks * sizeof *l->round.all);
    l->period_s = plan.period.target_s;
    if (!plan.move)
        return KILTER_OK;
    kilter_status status = carry_out(l, plan.transfers, plan.transfer_count, error);
    if (l->scatter->committed)
        kl_steer_commit(l->steer);
    return status;
}

/* All is done. The next report is made in the execution in which a period will have passed; sooner where
 * reports cost little, and after not more than half as many as there were, as the next ones may take longer.
 * The same on all ranks. */
static void set_next(kilter_loop *l) {
    struct kl_scatter *s = l->scatter;
    double now_s = s->all[0].rank.elapsed_s, left_s = l->round.asked_s + l->period_s - now_s;
    uint64_t ended = l->execution + 1;
    double pass_s = (now_s - s->over_s) / (double)(ended - s->ended), passes = left_s / pass_s;
    uint64_t most = kl_report_hooks(l->interact_s, pass_s);
    most = most < ended / 2 ? most : ended / 2;
    s->over_s = now_s;
    s->ended = ended;
    l->round.at = ended + (passes >= 1 && !l->forced ? (passes < (double)most ? (uint64_t)passes : most) : 0);
}

static kilter_status answer(kilter_loop *l, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    uint64_t done = 0;
    kilter_status status = kl_batch_look(l, &s->batch, error);
    if (status != KILTER_OK || s->batch.open > 0)
        return status;
    s->reported = false;
    s->rounds++;
    kl_reports_spread(l, s->all, REPORT_BYTES, sizeof *s->all);
    uint64_t refused = 0;
    for (uint32_t r = 0; r < l->ranks; r++) {
        done += s->all[r].done;
        refused += s->all[r].refused;
    }
    s->refusals += refused;
    if (refused > 0)
        kl_loop_refused(l,
                        "some rows stay where they were: a rank has no memory for those it should have had");
    s->over = done == l->options.iterations;
    kilter_status decided = l->forced ? force(l, error) : decide(l, error);
    if (s->over)
        set_next(l);
    return decided;
}

static kilter_status make_report(kilter_loop *l, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    kl_measured *m = &l->measured;
    uint64_t todo = kl_spans_sum(&s->todo);
    double part = (double)l->rows_done / (double)(l->rows_done + todo + (l->rows_done + todo == 0));
    kl_loop_measure_quantum(l);
    s->reported_s = kl_loop_now_s(l);
    s->mine = (report){.rank = {.elapsed_s = s->reported_s - l->opened_s,
                                .executions = m->executions + part,
                                .busy_s = m->busy_s,
                                .iterations = (uint64_t)m->rows,
                                .moving_s = m->moving_s,
                                .moved = m->moved,
                                .quantum_s = l->quantum_s},
                       .done = l->rows_done,
                       .rows = todo + kl_spans_sum(&s->done),
                       .todo = todo,
                       .refused = s->refused};
    *m = (kl_measured){.executions = -part};
    s->refused = 0;
    s->reported = true;
    return kl_reports_share(l, &s->batch, &s->mine, s->all, REPORT_BYTES, error);
}

/* --- an execution --- */

kilter_status kl_scatter_open(kilter_loop *l, kilter_error *error) {
    struct kl_scatter *s = calloc(1, sizeof *s);
    if (s) {
        s->all = calloc(l->ranks, sizeof *s->all);
        s->left = calloc(l->ranks, sizeof *s->left);
    }
    uint64_t fits = s && s->all && s->left && kl_spans_add(&s->done, kl_loop_own(l));
    l->scatter = s;
    kilter_status status = kl_loop_least(l, &fits, 1, error);
    return status == KILTER_OK && !fits ? no_memory(l, error) : status;
}

void kl_scatter_free(struct kl_scatter *s) {
    if (!s)
        return;
    kl_spans_free(&s->todo);
    kl_spans_free(&s->done);
    kl_batch_free(&s->batch);
    free(s->all);
    free(s->left);
    free(s);
}

void kl_scatter_begin(kilter_loop *l) {
    struct kl_scatter *s = l->scatter;
    kl_spans all = s->done;
    s->done = s->todo; /* empty */
    s->todo = all;
    s->over = false;
    s->quiet = l->execution < l->round.at;
    s->reported_s = kl_loop_now_s(l);
    l->rows_done = 0;
    l->given = (kl_span){0, 0};
}

static kilter_status count_given(kilter_loop *l, kilter_error *error) {
    kl_span given = l->given;
    if (given.lo >= given.hi)
        return KILTER_OK;
    double rows = (double)(given.hi - given.lo), busy_s = kl_loop_now_s(l) - l->given_s;
    l->measured.busy_s += busy_s;
    l->measured.rows += rows;
    l->iteration_s = busy_s / rows;
    l->rows_done += given.hi - given.lo;
    l->given = (kl_span){0, 0};
    return kl_spans_add(&l->scatter->done, given) ? KILTER_OK : no_memory(l, error);
}

static void give(kilter_loop *l, kilter_range *range) {
    kl_span *first = &l->scatter->todo.at[0];
    uint64_t count = first->hi - first->lo, mine = kl_spans_sum(&l->scatter->todo);
    uint64_t piece = (mine + KL_SEGMENTS - 1) / KL_SEGMENTS;
    uint64_t most = l->iteration_s > 0 ? kl_doall_grain(mine, l->iteration_s, l->period_s / 4) : 1;
    piece = l->iteration_s > 0 && l->iteration_s * (double)mine < l->period_s / 4 ? mine : piece;
    piece = piece < most ? piece : most;
    count = count < piece ? count : piece;
    l->given = (kl_span){first->lo, first->lo + count};
    first->lo += count;
    if (first->lo == first->hi) {
        l->scatter->todo.count--;
        memmove(first, first + 1, l->scatter->todo.count * sizeof *first);
    }
    *range = (kilter_range){l->given.lo, l->given.hi};
    l->given_s = kl_loop_now_s(l);
}

/* Where nobody dies something that comes is all there is to wake up for. */
static void rest(kilter_loop *l) {
    kl_mpi_rest(&l->wait, false, kl_mpi_ranks_die ? REST_MOST_S : SIMULATED_REST_MOST_S);
}

static kilter_status step(kilter_loop *l, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    kilter_status status = look_at_transfers(l, error);
    if (status == KILTER_OK && s->reported)
        status = answer(l, error);
    if (s->quiet)
        s->over = s->todo.count == 0;
    bool due = s->todo.count == 0 || l->forced || kl_loop_now_s(l) - s->reported_s >= l->period_s;
    if (status == KILTER_OK && !s->reported && !s->quiet && !s->over && due)
        status = make_report(l, error);
    return status == KILTER_OK ? kl_loop_look_for_deaths(l, error) : status;
}

kilter_status kl_scatter_next(kilter_loop *l, kilter_range *range, bool *got, kilter_error *error) {
    struct kl_scatter *s = l->scatter;
    kilter_status status = count_given(l, error);
    if (status == KILTER_OK)
        status = step(l, error);
    double began_s = kl_loop_now_s(l);
    bool waits = !s->over && s->todo.count == 0;
    kl_mpi_traffic(&l->wait);
    while (status == KILTER_OK && !s->over && s->todo.count == 0) {
        rest(l);
        status = step(l, error);
    }
    if (waits)
        kl_mpi_waited(&l->wait);
    *got = status == KILTER_OK && s->todo.count > 0;
    l->summary.waited_s += kl_loop_now_s(l) - began_s;
    if (*got)
        give(l, range);
    return status;
}

bool kl_scatter_is_done(const kilter_loop *l) {
    return l->scatter->over && l->given.lo >= l->given.hi;
}

/* Rows that are on their way arrive; nobody sends any more. */
kilter_status kl_scatter_end(kilter_loop *l, kilter_error *error) {
    kilter_status status = KILTER_OK;
    bool waits = l->scatter->transfers != NULL;
    kl_mpi_traffic(&l->wait);
    while (l->scatter->transfers && status == KILTER_OK) {
        status = look_at_transfers(l, error);
        if (status == KILTER_OK)
            status = kl_loop_look_for_deaths(l, error);
        if (l->scatter->transfers)
            rest(l);
    }
    if (waits)
        kl_mpi_waited(&l->wait);
    tidy(&l->scatter->done);
    return status;
}

const kl_spans *kl_scatter_own(const kilter_loop *l) {
    return &l->scatter->done;
}
