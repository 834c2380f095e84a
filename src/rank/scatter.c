/* Loops whose iterations may be on any rank. Rows also move during a sweep; rows that are not done move
 * first. After a rank has read all reports of a round, it works for one period, or until it has no work. Then
 * it makes its next report. From the same reports, all ranks make the same plan: how many rows each pair of
 * ranks must move. A row that is done in this sweep may then move to another rank, where it also counts as
 * done. When the reports say that all rows are done, the sweep ends on all ranks. Sweeps that take less than
 * a period are quiet: they have no reports, so no rank waits for the others. */
#include <stdlib.h>
#include <string.h>

#include "rank/rank.h"

enum {
    LISTED = 32, /* greatest number of ranges of rows in one transfer between two ranks */
    /* number of tags that a transfer uses. After TAG_ROUNDS rounds the same tags are used again. So tags stay
       below 32768, which every MPI allows */
    TAGS = KL_TAGS,
    TAG_ROUNDS = 2000,
};

typedef struct listed {
    kl_span rows;
    uint64_t done;
} listed;

typedef struct list {
    uint64_t count;
    listed ranges[LISTED];
} list;

typedef enum stage {
    FRESH,   /* the transfer has begun, and the rows that leave must be packed */
    PACKED,  /* the driver has packed the rows that leave, or has failed */
    LIST,    /* the list of rows is on its way to this rank */
    SIZES,   /* the sizes of the rows' contents are on their way to this rank */
    ROOM,    /* the driver is getting memory for the rows of the list */
    REFUSED, /* there is no memory for the rows: free what was allocated */
    /* the receiver's answer, which says whether it has memory for the rows, is on its way to this rank */
    ANSWER,
    ROWS,    /* the rows are on their way to this rank or from it */
    SETTLED, /* the contents of received rows were unpacked, and the contents of rows that left were dropped
              */
    GIVEN,   /* the rows have left, and their memory was freed */
} stage;

typedef struct transfer {
    struct transfer *next;
    /* tags: number that is added to the tags of all messages of this transfer, so that messages of transfers
     * in other rounds have other tags */
    int peer, tags;
    bool sends;
    stage stage;
    list list;
    kl_parcel parcel; /* the packed content of the rows in the list */
    uint64_t granted;
    kl_set set;
} transfer;

typedef struct report {
    /* done: number of this rank's rows that are done in this sweep; rows: number of all its rows */
    uint64_t done, rows;
    uint64_t todo;       /* number of rows that this rank has to do in this sweep */
    uint64_t refused;    /* number of transfers to this rank that were refused since its last report */
    kl_rank_report rank; /* the report that all kinds of loops make; the times of its segments are not sent */
} report;
enum { REPORT_BYTES = offsetof(report, rank.segments_s) };

struct kl_scatter {
    kl_ranges todo, done;
    report mine, *all;
    uint64_t *left; /* left[r]: number of rows that rank r has to do in this sweep */
    bool reported, heard, over;
    bool quiet; /* true: this sweep has no reports, because it is expected to be short */
    /* true: the last move followed the shares that the steer chose; false: it only divided the rows that were
     * left to do in a sweep */
    bool committed;
    double reported_s;
    /* time of the report of rank 0, by its clock, in the last round in which the reports ended a sweep */
    double over_s;
    uint64_t ended; /* number of sweeps that had ended at the time in over_s */
    /* rounds: number of rounds so far; refused: number of refused transfers that the next report will
     * state */
    uint64_t rounds, refused;
    /* number of refused transfers that were reported since the last decision */
    uint64_t refusals;
    const kl_transfer *plan; /* planned transfers that are being made now */
    /* planned: number of the planned transfers; carried: number of them that have begun */
    size_t planned, carried;
    kl_transfer forced;
    transfer *transfers; /* list of the transfers under way, in the order of planning */
    transfer **place;    /* the next transfer to check */
    bool looked;         /* true: the messages of the transfer at *place were checked */
    /* a complete transfer, to be freed; the driver has freed its messages */
    transfer *spent;
    /* looking_s: time at which checking the transfers began; waiting_s: time at which waiting began */
    double looking_s, waiting_s;
    kl_ranges gone, kept; /* ranges of rows that are arguments of the last action */
    kl_mail *mails;       /* messages that are arguments of the last action */
    size_t mail_capacity;
};

static const kl_action NO_MEMORY = {.act = KL_FAIL, .text = "keeping track of the iterations of"};

bool kl_scatter_init(kl_rank *k) {
    struct kl_scatter *s = k->scatter = calloc(1, sizeof *s);
    if (!s)
        return false;
    s->all = calloc(k->layout.ranks, sizeof *s->all);
    s->left = calloc(k->layout.ranks, sizeof *s->left);
    return s->all && s->left && kl_ranges_add(&s->done, kl_layout_own(&k->layout));
}

void kl_scatter_free(struct kl_scatter *s) {
    if (!s)
        return;
    kl_ranges_free(&s->todo);
    kl_ranges_free(&s->done);
    kl_ranges_free(&s->gone);
    kl_ranges_free(&s->kept);
    free(s->mails);
    free(s->spent);
    free(s->all);
    free(s->left);
    free(s);
}

bool kl_scatter_own(const struct kl_scatter *s, size_t nth, kl_span *range) {
    if (nth < s->done.count)
        *range = s->done.at[nth];
    return nth < s->done.count;
}

/* --- the lists of rows in transfers --- */

/* Add up to `count` rows from the end of `from` to the list. */
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

static bool put_back(struct kl_scatter *s, const list *from) {
    bool fits = true;
    for (size_t i = from->count; i-- > 0;)
        fits &= kl_ranges_add(from->ranges[i].done ? &s->done : &s->todo, from->ranges[i].rows);
    kl_ranges_tidy(&s->todo);
    kl_ranges_tidy(&s->done);
    return fits;
}

static bool add_list(kl_ranges *to, const list *from) {
    bool fits = true;
    for (size_t i = 0; i < from->count; i++)
        fits &= kl_ranges_add(to, from->ranges[i].rows);
    return fits;
}

static bool add_ranges(kl_ranges *to, const kl_ranges *from) {
    bool fits = true;
    for (size_t i = 0; i < from->count; i++)
        fits &= kl_ranges_add(to, from->at[i]);
    return fits;
}

static uint64_t bytes_of(const kl_layout *l, const list *of) {
    uint64_t bytes = 0;
    for (size_t a = 0; a < l->array_count; a++)
        for (size_t i = 0; i < of->count; i++)
            bytes += kl_length(of->ranges[i].rows) * l->arrays[a].bytes;
    return bytes;
}

/* --- memory --- */

/* Return the bytes that the rows of a transfer need on this rank. Content counts two times, because the
 * message and the program each hold a copy. */
static uint64_t coming_bytes(const kl_layout *l, const transfer *t) {
    return bytes_of(l, &t->list) + 2 * kl_parcel_bytes(&t->parcel);
}

/* Request memory for the rows of a transfer, in addition to the memory for rows that are on their way
 * already. */
static kl_action take_pages(kl_rank *k, transfer *t) {
    struct kl_scatter *s = k->scatter;
    uint64_t bytes = coming_bytes(&k->layout, t);
    for (const transfer *other = s->transfers; other; other = other->next)
        if (!other->sends && other->stage == ROWS)
            bytes += coming_bytes(&k->layout, other);
    s->gone.count = 0;
    t->stage = ROOM;
    if (!add_list(&s->gone, &t->list))
        return NO_MEMORY;
    return (kl_action){.act = KL_TAKE,
                       .ranges = &s->gone,
                       .parcels = &t->parcel,
                       .count = k->content.on,
                       .bytes = bytes,
                       .all = &t->granted,
                       .again = true};
}

/* Free the memory of the rows of this transfer. Keep pages in which there are also own rows, or rows of other
 * transfers under way. */
static kl_action give_pages(kl_rank *k, transfer *gone, stage then) {
    struct kl_scatter *s = k->scatter;
    s->gone.count = s->kept.count = 0;
    bool fits = add_list(&s->gone, &gone->list) && kl_ranges_add(&s->kept, k->work.given) &&
                add_ranges(&s->kept, &s->todo) && add_ranges(&s->kept, &s->done);
    for (const transfer *t = s->transfers; t; t = t->next)
        if (t != gone && (t->sends || t->stage >= ROWS))
            fits &= add_list(&s->kept, &t->list);
    gone->stage = then;
    return fits ? (kl_action){.act = KL_DROP, .ranges = &s->gone, .kept = &s->kept, .again = true}
                : NO_MEMORY;
}

/* --- transfers --- */

/* Return the description (mail) of a message of the transfer. */
static kl_mail mail_of(const transfer *t, int tag, void *data, size_t bytes) {
    return (kl_mail){.data = data, .bytes = bytes, .peer = t->peer, .tag = t->tags + tag};
}

static kl_action post(struct kl_scatter *s, transfer *t, size_t receives, size_t count) {
    return (kl_action){.act = KL_POST,
                       .set = &t->set,
                       .mails = s->mails,
                       .receives = receives,
                       .count = count,
                       .again = true};
}

static bool have_mails(struct kl_scatter *s, size_t count) {
    if (count <= s->mail_capacity)
        return true;
    kl_mail *more = realloc(s->mails, count * sizeof *more);
    if (!more)
        return false;
    s->mails = more;
    s->mail_capacity = count;
    return true;
}

/* Add a transfer. In one round, there is at most one transfer from one rank to another. */
static transfer *add_transfer(struct kl_scatter *s, uint32_t peer, bool sends) {
    transfer *t = have_mails(s, 3) ? calloc(1, sizeof *t) : NULL, **last = &s->transfers;
    if (!t)
        return NULL;
    t->peer = (int)peer;
    t->tags = TAGS * (int)(1 + s->rounds % TAG_ROUNDS);
    t->sends = sends;
    t->stage = sends ? FRESH : LIST;
    while (*last)
        last = &(*last)->next;
    return *last = t;
}

static kl_mail sizes_of(transfer *t) {
    return mail_of(t, KL_TAG_SIZES, t->parcel.items, t->parcel.count * sizeof *t->parcel.items);
}

static kl_action send_list(struct kl_scatter *s, transfer *t) {
    t->stage = ANSWER;
    s->mails[0] = mail_of(t, KL_TAG_ANSWER, &t->granted, sizeof t->granted);
    s->mails[1] = mail_of(t, KL_TAG_LIST, &t->list, sizeof t->list);
    s->mails[2] = sizes_of(t);
    return post(s, t, 1, t->parcel.count > 0 ? 3 : 2);
}

/* Make a parcel of the rows in the transfer's list. */
static bool list_items(transfer *t) {
    bool fits = true;
    t->parcel = (kl_parcel){.peer = t->peer, .sends = t->sends};
    for (size_t i = 0; i < t->list.count && fits; i++)
        fits = kl_parcel_add(&t->parcel, t->list.ranges[i].rows);
    return fits;
}

static kl_action begin_sending(kl_rank *k, uint32_t to, uint64_t count) {
    struct kl_scatter *s = k->scatter;
    transfer *t = add_transfer(s, to, true);
    if (!t)
        return NO_MEMORY;
    enlist(&t->list, &s->done, enlist(&t->list, &s->todo, count, false), true);
    return k->content.on ? (kl_action){.act = KL_REPEAT} : send_list(s, t);
}

static kl_action pack(transfer *t) {
    t->stage = PACKED;
    if (!list_items(t))
        return NO_MEMORY;
    return (kl_action){.act = KL_PACK, .parcels = &t->parcel, .count = 1, .all = &t->granted, .again = true};
}

/* Send the list of the packed rows. If a row could not be packed, the list is empty, so no row moves. */
static kl_action hear_packed(kl_rank *k, transfer *t) {
    struct kl_scatter *s = k->scatter;
    bool fits = true;
    if (!t->granted) {
        s->refused++;
        fits = put_back(s, &t->list);
        t->list.count = 0;
        kl_parcel_free(&t->parcel);
    }
    return fits ? send_list(s, t) : NO_MEMORY;
}

static kl_action await_sizes(kl_rank *k, transfer *t) {
    struct kl_scatter *s = k->scatter;
    t->stage = SIZES;
    if (!list_items(t))
        return NO_MEMORY;
    s->mails[0] = sizes_of(t);
    return post(s, t, 1, 1);
}

static kl_action await_list(struct kl_scatter *s, uint32_t from) {
    transfer *t = add_transfer(s, from, false);
    if (!t)
        return NO_MEMORY;
    s->mails[0] = mail_of(t, KL_TAG_LIST, &t->list, sizeof t->list);
    return post(s, t, 1, 1);
}

/* Post the messages for the transfer's rows and their contents, and for the receiver's answer. */
static kl_action pass_rows(kl_rank *k, transfer *t) {
    struct kl_scatter *s = k->scatter;
    uint64_t content = kl_parcel_bytes(&t->parcel);
    size_t count = k->layout.array_count * t->list.count + (content > 0), at = 0;
    if (!have_mails(s, count + 1))
        return NO_MEMORY;
    t->stage = ROWS;
    for (size_t a = 0; a < k->layout.array_count; a++)
        for (size_t i = 0; i < t->list.count; i++) {
            const kl_array *array = &k->layout.arrays[a];
            kl_span rows = t->list.ranges[i].rows;
            s->mails[at++] =
                mail_of(t, KL_TAG_ROWS, kl_row_at(array, rows.lo), (size_t)kl_length(rows) * array->bytes);
        }
    if (content > 0)
        s->mails[at++] = mail_of(t, KL_TAG_CONTENT, t->parcel.data, content);
    if (!t->sends)
        s->mails[at++] = mail_of(t, KL_TAG_ANSWER, &t->granted, sizeof t->granted);
    return post(s, t, t->sends ? 0 : count, at);
}

/* Send the rows if the receiver has memory for them. Otherwise this rank keeps the rows. Its next report then
 * counts these rows and the refusal. The next decision waits for this report. */
static kl_action hear_answer(kl_rank *k, transfer *t) {
    if (t->granted)
        return pass_rows(k, t);
    k->scatter->refused++;
    bool fits = put_back(k->scatter, &t->list);
    t->list.count = 0;
    kl_parcel_free(&t->parcel);
    t->stage = ROWS;
    return fits ? (kl_action){.act = KL_REPEAT} : NO_MEMORY;
}

static kl_action refuse_list(kl_rank *k, transfer *t) {
    t->list.count = 0;
    kl_parcel_free(&t->parcel);
    return pass_rows(k, t);
}

/* Remove a complete transfer from the list, and let the driver free its messages. */
static kl_action forget(struct kl_scatter *s, transfer *t) {
    *s->place = t->next;
    kl_parcel_free(&t->parcel);
    s->spent = t;
    return (kl_action){.act = KL_FORGET, .set = &t->set, .again = true};
}

/* Unpack the content of received rows, and drop the content of rows that have left. */
static kl_action settle(transfer *t) {
    t->stage = SETTLED;
    return (kl_action){.act = KL_UNPACK, .parcels = &t->parcel, .count = 1, .again = true};
}

static kl_action complete(kl_rank *k, transfer *t) {
    k->meter.since.moved_bytes += (double)(bytes_of(&k->layout, &t->list) + kl_parcel_bytes(&t->parcel));
    for (size_t i = 0; i < t->list.count; i++) {
        kl_span rows = t->list.ranges[i].rows;
        k->meter.since.moved += kl_length(rows);
        if (t->sends)
            kl_layout_note_gone(&k->layout, (kl_gone){rows, kl_meter_sweep(&k->meter), t->peer});
    }
    if (t->sends)
        return give_pages(k, t, GIVEN);
    return put_back(k->scatter, &t->list) ? forget(k->scatter, t) : NO_MEMORY;
}

/* Do the next step of a transfer that waits for no message. */
static kl_action go_on(kl_rank *k, transfer *t) {
    switch (t->stage) {
    case FRESH:
        return pack(t);
    case PACKED:
        return hear_packed(k, t);
    case LIST:
        return k->content.on && t->list.count > 0 ? await_sizes(k, t) : take_pages(k, t);
    case SIZES:
        return take_pages(k, t);
    case ROOM:
        return t->granted ? pass_rows(k, t) : give_pages(k, t, REFUSED);
    case REFUSED:
        return refuse_list(k, t);
    case ANSWER:
        return hear_answer(k, t);
    case ROWS:
        return t->parcel.count > 0 ? settle(t) : complete(k, t);
    case SETTLED:
        return complete(k, t);
    default:
        return forget(k->scatter, t);
    }
}

/* --- checking all transfers --- */

static kl_act begin_look(kl_rank *k) {
    k->scatter->place = &k->scatter->transfers;
    k->scatter->looking_s = k->now_s;
    return KL_GO_ON;
}

/* Let the next stage check only the transfers that have just begun: it packs their rows and sends the lists.
 */
static kl_act begin_fresh_look(kl_rank *k) {
    begin_look(k);
    struct kl_scatter *s = k->scatter;
    while (*s->place && (*s->place)->stage != FRESH)
        s->place = &(*s->place)->next;
    return KL_GO_ON;
}

/* Check the messages of a transfer. If they are complete, do its next step. Then go to the next transfer. */
static kl_act look_at_transfer(kl_rank *k) {
    struct kl_scatter *s = k->scatter;
    transfer *t = *s->place;
    free(s->spent);
    s->spent = NULL;
    if (!t)
        return KL_GO_ON;
    if (t->set.open && !s->looked) {
        s->looked = true;
        return kl_ask(k, (kl_action){.act = KL_LOOK, .set = &t->set, .again = true});
    }
    bool waits = t->set.open;
    s->looked = false;
    if (waits) {
        s->place = &t->next;
        return KL_REPEAT;
    }
    kl_action action = go_on(k, t);
    if (action.act == KL_POST || action.act == KL_REPEAT)
        s->place = &t->next;
    return kl_ask(k, action);
}

static kl_act end_look(kl_rank *k) {
    kl_meter_moving(&k->meter, k->now_s - k->scatter->looking_s);
    return KL_GO_ON;
}

/* --- rounds --- */

static size_t report_bytes(const kl_rank *k) {
    return k->content.on ? sizeof(report) : REPORT_BYTES;
}

static kl_act look_at_reports(kl_rank *k) {
    bool looks = k->scatter->reported && k->rounds.set.open;
    return kl_ask(k, (kl_action){.act = looks ? KL_LOOK : KL_GO_ON, .set = &k->rounds.set});
}

static kl_act hear_reports(kl_rank *k) {
    struct kl_scatter *s = k->scatter;
    uint64_t done = 0, refused = 0;
    s->heard = s->reported && !k->rounds.set.open;
    if (!s->heard)
        return KL_GO_ON;
    s->reported = false;
    s->rounds++;
    kl_rounds_spread(s->all, report_bytes(k), sizeof *s->all, k->layout.ranks);
    for (uint32_t r = 0; r < k->layout.ranks; r++) {
        if (!k->content.on)
            s->all[r].rank.row_bytes = s->all[r].rank.moved_bytes = 0;
        done += s->all[r].done;
        refused += s->all[r].refused;
    }
    s->refusals += refused;
    s->over = done == k->layout.iterations;
    if (refused == 0)
        return KL_GO_ON;
    return kl_rounds_refused(
        k, k->content.on ? "some rows did not move: a rank has no memory for them, or a row could not be "
                           "packed (no memory, or the program refused)"
                         : "some rows did not move: a rank has no memory for the rows planned for it");
}

static void plan(kl_rank *k, const kl_transfer *transfers, size_t count) {
    struct kl_scatter *s = k->scatter;
    s->plan = transfers;
    s->planned = count;
    s->carried = 0;
    k->meter.all.moves += count > 0;
    for (size_t i = 0; i < count; i++)
        k->meter.all.moved += transfers[i].count;
}

/* For tests: plan random transfers, sometimes of more rows than a rank has. */
static void force(kl_rank *k) {
    uint32_t ranks = k->layout.ranks;
    uint64_t seed = kl_mix64(k->rounds.seed + k->scatter->rounds);
    kl_transfer t = {.from = (uint32_t)(seed % ranks),
                     .count = (seed >> 32) % (k->layout.iterations / ranks + 2)};
    t.to = (uint32_t)((t.from + 1 + (seed >> 16) % (ranks - 1)) % ranks);
    k->scatter->forced = t;
    plan(k, &k->scatter->forced, t.count > 0);
}

/* Return whether a period has passed and no rows are on their way between ranks. */
static bool is_time(kl_rank *k) {
    uint64_t rows = 0;
    for (uint32_t r = 0; r < k->layout.ranks; r++)
        rows += k->layout.target[r] = k->scatter->all[r].rows;
    return rows == k->layout.iterations &&
           k->rounds.all[0].elapsed_s - k->rounds.asked_s >= k->rounds.period_s;
}

/* Tell the steer how many rows each rank has, as the ranks reported. This may differ from the plan, because
 * some transfers may have been refused. */
static void correct_places(kl_rank *k) {
    kl_steer *steer = k->rounds.steer;
    if (k->scatter->refusals > 0 && k->scatter->committed)
        kl_steer_refuse(steer);
    if (memcmp(kl_steer_shares(steer), k->layout.target, k->layout.ranks * sizeof *k->layout.target) != 0)
        kl_steer_place(steer, k->layout.target);
    k->scatter->refusals = 0;
}

static bool share_what_is_left(kl_rank *k) {
    struct kl_scatter *s = k->scatter;
    for (uint32_t r = 0; r < k->layout.ranks; r++)
        s->left[r] = s->all[r].todo;
    return kl_steer_left(k->rounds.steer, s->left, &k->rounds.plan);
}

static kl_act decide(kl_rank *k) {
    struct kl_scatter *s = k->scatter;
    kl_loop_rounds *r = &k->rounds;
    plan(k, NULL, 0);
    if (s->heard && r->forced)
        force(k);
    if (!s->heard || r->forced)
        return KL_GO_ON;
    kl_rounds_add(r, &s->all[0].rank, sizeof *s->all, k->layout.ranks);
    if (!is_time(k))
        return KL_GO_ON;
    correct_places(k);
    if (!kl_rounds_decide(k))
        return kl_ask(k, (kl_action){.act = KL_FAIL, .text = "balancing"});
    s->committed = !share_what_is_left(k) && r->plan.move;
    kl_rounds_note(r);
    if (r->plan.move)
        plan(k, r->plan.transfers, r->plan.transfer_count);
    return kl_ask(k, (kl_action){.act = KL_RECORD});
}

/* Begin the next planned transfer from or to this rank. */
static kl_act carry_out(kl_rank *k) {
    struct kl_scatter *s = k->scatter;
    while (s->carried < s->planned) {
        const kl_transfer *t = &s->plan[s->carried++];
        if (t->from == k->layout.rank)
            return kl_ask(k, begin_sending(k, t->to, t->count));
        if (t->to == k->layout.rank)
            return kl_ask(k, await_list(s, t->from));
    }
    return KL_GO_ON;
}

/* After a sweep has ended, choose the sweep of the next report. The report comes after a period, or sooner if
 * reports cost little. Skip at most half as many sweeps as there were, because the next sweeps may take
 * longer than expected. All ranks choose the same sweep. */
static void set_next(kl_rank *k) {
    struct kl_scatter *s = k->scatter;
    kl_loop_rounds *r = &k->rounds;
    double now_s = s->all[0].rank.elapsed_s, left_s = r->asked_s + r->period_s - now_s;
    uint64_t ended = kl_meter_sweep(&k->meter) + 1;
    double pass_s = (now_s - s->over_s) / (double)(ended - s->ended), passes = left_s / pass_s;
    uint64_t most = kl_report_hooks(r->interact_s, pass_s);
    most = most < ended / 2 ? most : ended / 2;
    s->over_s = now_s;
    s->ended = ended;
    r->at = ended + (passes >= 1 && !r->forced ? (passes < (double)most ? (uint64_t)passes : most) : 0);
}

static kl_act conclude(kl_rank *k) {
    struct kl_scatter *s = k->scatter;
    if (s->heard && s->committed && s->planned > 0)
        kl_steer_commit(k->rounds.steer);
    if (s->heard && s->over)
        set_next(k);
    s->over = s->quiet ? s->todo.count == 0 : s->over;
    return KL_GO_ON;
}

static double part_done(const kl_rank *k) {
    uint64_t rows = k->work.done + kl_ranges_sum(&k->scatter->todo);
    return (double)k->work.done / (double)(rows + (rows == 0));
}

static bool list_present(kl_rank *k) {
    kl_ranges *present = &k->content.present;
    present->count = 0;
    return add_ranges(present, &k->scatter->todo) && add_ranges(present, &k->scatter->done);
}

static kl_act make_report(kl_rank *k) {
    struct kl_scatter *s = k->scatter;
    uint64_t todo = kl_ranges_sum(&s->todo);
    bool due = todo == 0 || k->rounds.forced || k->now_s - s->reported_s >= k->rounds.period_s;
    if (s->reported || s->quiet || s->over || !due)
        return KL_GO_ON;
    if (kl_meter_wants_quantum(&k->meter, k->now_s))
        return kl_ask(k, (kl_action){.act = KL_QUANTUM, .again = true});
    if (kl_content_unweighed(&k->content))
        return kl_content_weigh(k, list_present(k));
    s->reported_s = k->now_s;
    s->mine = (report){.rank = kl_meter_report(&k->meter, (kl_span){0, 0}, part_done(k), k->now_s),
                       .done = k->work.done,
                       .rows = todo + kl_ranges_sum(&s->done),
                       .todo = todo,
                       .refused = s->refused};
    kl_content_tell(&k->content, &k->layout, &s->mine.rank);
    s->refused = 0;
    s->reported = true;
    return kl_ask(k, (kl_action){.act = KL_SHARE,
                                 .set = &k->rounds.set,
                                 .mine = &s->mine,
                                 .all = s->all,
                                 .bytes = report_bytes(k)});
}

/* --- a sweep --- */

static kl_act begin_sweep(kl_rank *k) {
    struct kl_scatter *s = k->scatter;
    kl_ranges all = s->done;
    s->done = s->todo; /* `todo` is empty at this point */
    s->todo = all;
    s->over = false;
    s->quiet = kl_meter_sweep(&k->meter) < k->rounds.at;
    s->reported_s = k->now_s;
    k->work = (kl_work){.done = 0};
    return KL_GO_ON;
}

static kl_act count_given(kl_rank *k) {
    kl_span given = k->work.given;
    if (kl_is_empty(given))
        return KL_GO_ON;
    kl_meter_count(&k->meter, (double)kl_length(given), k->now_s - k->meter.given_s);
    k->work.done += kl_length(given);
    k->work.given = (kl_span){0, 0};
    return kl_ranges_add(&k->scatter->done, given) ? KL_GO_ON : kl_ask(k, NO_MEMORY);
}

/* The stages that are done between two pieces of work, and while there is no work. */
static const kl_stage chance[] = {
    begin_look,       look_at_transfer, end_look, look_at_reports, hear_reports, decide, carry_out,
    begin_fresh_look, look_at_transfer, end_look, conclude,        make_report,  NULL};

static kl_act take_chance(kl_rank *k) {
    return kl_rank_do(k, chance);
}

static kl_act rest(kl_rank *k) {
    (void)k;
    return kl_ask(k, (kl_action){.act = KL_REST});
}

static kl_act begin_wait(kl_rank *k) {
    k->scatter->waiting_s = k->now_s;
    return KL_GO_ON;
}

static kl_act wait_for_rows(kl_rank *k) {
    static const kl_stage stages[] = {rest, take_chance, NULL};
    if (k->scatter->over || k->scatter->todo.count > 0)
        return KL_GO_ON;
    return kl_rank_do_and_repeat(k, stages);
}

static uint64_t piece(const kl_rank *k) {
    uint64_t mine = kl_ranges_sum(&k->scatter->todo), even = (mine + KL_SEGMENTS - 1) / KL_SEGMENTS;
    double each_s = k->meter.iteration_s, period_s = k->rounds.period_s / 4;
    if (each_s == 0)
        return 1;
    uint64_t most = kl_doall_grain(mine, each_s, period_s),
             wanted = each_s * (double)mine < period_s ? mine : even;
    return wanted < most ? wanted : most;
}

static kl_act give(kl_rank *k) {
    kl_ranges *todo = &k->scatter->todo;
    k->meter.all.waited_s += k->now_s - k->scatter->waiting_s;
    if (todo->count == 0)
        return kl_return(k);
    kl_span *first = &todo->at[0];
    uint64_t count = kl_length(*first), most = piece(k);
    count = count < most ? count : most;
    k->work.given = (kl_span){first->lo, first->lo + count};
    first->lo += count;
    if (kl_is_empty(*first)) {
        todo->count--;
        memmove(first, first + 1, todo->count * sizeof *first);
    }
    k->meter.given_s = k->now_s;
    return kl_give(k, (kl_given){.rows = k->work.given});
}

static bool is_done(const kl_rank *k) {
    return k->scatter->over && kl_is_empty(k->work.given);
}

static kl_act rest_if_rows_come(kl_rank *k) {
    return kl_ask(k, (kl_action){.act = k->scatter->transfers ? KL_REST : KL_GO_ON});
}

/* Wait until all rows on their way to this rank have arrived. At this point no rank sends more rows. */
static kl_act await_transfers(kl_rank *k) {
    static const kl_stage stages[] = {begin_look, look_at_transfer, end_look, rest_if_rows_come, NULL};
    if (!k->scatter->transfers) {
        kl_ranges_tidy(&k->scatter->done);
        return KL_GO_ON;
    }
    return kl_rank_do_and_repeat(k, stages);
}

static const kl_stage begin[] = {begin_sweep, NULL};
static const kl_stage next[] = {count_given, take_chance, begin_wait, wait_for_rows, give, NULL};
static const kl_stage end[] = {await_transfers, NULL};

const kl_kind kl_scattered = {.anywhere = true,
                              .stages = {begin, next, end},
                              .is_done = is_done,
                              .sweep_done = part_done,
                              .pass_done = part_done};
