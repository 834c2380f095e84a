/* The event loop. A worker has at most one event, the end of the tasks it does in one go; messages between it
 * and the master pass the master's link one after the other and therefore arrive in the order they were sent,
 * so that the next event is the first of three: the top of the workers' heap, the head of what comes to the
 * workers, and what the master does next. */
#include "play/play.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t NONE = UINT32_MAX;
/* Of a message, besides tasks or results. */
static const double HEAD_BYTES = 64;

/* --- storage --- */

/* A chunk in its worker's queue, or done and not all reported. */
typedef struct chunk {
    kl_play_chunk told;  /* what the master knows */
    uint64_t at, end;    /* tasks done and to be done, by the worker */
    uint32_t next;       /* in the worker's queue */
    uint32_t after;      /* of those the master knows at this worker */
    uint32_t moves;      /* how often its tasks have been given back */
    bool begun;          /* all of it, as the worker said */
    uint64_t alone;      /* its first tasks are at nobody else, those it is a copy of aside */
    uint64_t asked_lo;   /* those from here on were asked back, */
    double asked_s;      /* then; 0: there is no answer to wait for */
    uint32_t original;   /* of a copy, or of what it is a copy of; NONE */
    uint32_t copies;     /* of an original: the first of them, and */
    uint32_t sibling;    /* the next copy of the same original */
    uint32_t executions; /* of its tasks before this one */
    bool ended;          /* kept while others of the same original are there */
} chunk;

/* Tasks done and not reported yet, or in a message. */
typedef struct segment {
    kl_play_segment told;
    double work_s; /* of all tasks, at speed 1 */
    uint32_t chunk, next;
} segment;

/* Tasks given back, to be dealt again, or what a worker is asked to give back. */
typedef struct span {
    uint64_t lo, count;
    uint32_t moves;
} span;

typedef struct recall {
    uint32_t chunk;
    uint64_t id, keep; /* keep: of the chunk's tasks */
} recall;

/* Items of one size, named by their place; those given back are used again. */
typedef struct pool {
    void *items;
    size_t size; /* of an item; it begins anew when given back */
    uint32_t used, room, free_count;
    uint32_t *free;
} pool;

static uint32_t pool_take(pool *p) {
    if (p->free_count > 0)
        return p->free[--p->free_count];
    if (p->used == p->room) {
        uint32_t room = p->room < 16 ? 16 : p->room + p->room / 2;
        void *items = realloc(p->items, room * p->size);
        if (items)
            p->items = items;
        uint32_t *places = realloc(p->free, room * sizeof *places);
        if (places)
            p->free = places;
        if (!items || !places)
            return NONE;
        p->room = room;
    }
    return p->used++;
}

static void pool_give_back(pool *p, uint32_t place) {
    p->free[p->free_count++] = place;
}

static void pool_free(pool *p) {
    free(p->items);
    free(p->free);
}

/* A message under way. */
typedef enum parcel_kind { TASKS, RESULTS, REQUEST, RECALL, RETURN } parcel_kind;

typedef struct parcel {
    double at_s;           /* it arrives */
    uint32_t worker, item; /* item: its first segment, its chunk, or what is recalled */
    parcel_kind kind;      /* REQUEST: results, and the worker asks for more */
    uint64_t end, count;   /* RETURN: the chunk has so many tasks now, that many less */
} parcel;

/* Parcels in the order they arrive. */
typedef struct line {
    parcel *parcels;
    size_t front, count, room; /* room: a power of 2 */
} line;

static bool line_add(line *l, parcel p) {
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        parcel *parcels = malloc(room * sizeof *parcels);
        if (!parcels)
            return false;
        for (size_t i = 0; i < l->count; i++)
            parcels[i] = l->parcels[(l->front + i) & (l->room - 1)];
        free(l->parcels);
        *l = (line){parcels, 0, l->count, room};
    }
    l->parcels[(l->front + l->count++) & (l->room - 1)] = p;
    return true;
}

static const parcel *line_first(const line *l) {
    return l->count ? &l->parcels[l->front] : NULL;
}

static void line_drop_first(line *l) {
    l->front = (l->front + 1) & (l->room - 1);
    l->count--;
}

typedef struct event {
    double at_s;
    uint32_t worker;
    uint32_t recall; /* that the worker looks at; NONE: tasks end */
} event;

static bool before(const event *a, const event *b) {
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->worker < b->worker);
}

static void heap_push(event *heap, size_t *count, event e) {
    size_t i = (*count)++;
    for (; i > 0 && before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = e;
}

static event heap_pop(event *heap, size_t *count) {
    event top = heap[0], last = heap[--*count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= *count)
            break;
        if (child + 1 < *count && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* --- the farm --- */

typedef struct worker {
    const kl_host *host;
    uint32_t first, last;  /* its chunks; NONE: it has none */
    uint32_t news, newest; /* its segments; NONE: nothing to report */
    uint64_t queued;       /* tasks not done */
    uint64_t waiting;      /* tasks done and not reported */
    double first_result_s; /* of those waiting */
    double task_s;         /* lately; 0: not known */
    double asked_at_s, answer_s;
    uint64_t going;         /* tasks it does in one go; 0: it waits */
    double began_s, ends_s; /* of that */
    bool asked, asked_now;  /* asked_now: in this run */
    bool served;            /* had a chunk */
    bool stale;             /* what it does is of the run before */
    /* the master's: */
    uint32_t told, told_last; /* the chunks at it; NONE: none is */
    double heard_s;
} worker;

struct kl_play {
    const kl_cluster *cluster;
    const kl_play_run *run;
    const kl_play_dealer *dealer;
    worker *workers;
    pool chunks, segments, recalls;
    event *heap;
    size_t events, event_room;
    span *bag; /* given back; bag[spans − 1] is dealt next */
    size_t spans, span_room;
    line to_workers, to_master;
    double out_free_s, in_free_s; /* the master's link */

    uint64_t *hungry, *held; /* a bit for each worker */
    uint32_t waiting;        /* hungry ones */
    bool feed_all;
    double look_again_s; /* at workers held back, or that end late; 0: at none */
    double empty_s;      /* since then nothing is left to deal */
    uint64_t coming;     /* tasks asked back */
    double master_free_s;
    double stolen_s; /* work of the master on a busy worker's host, not made up for yet */

    double now_s;
    uint64_t left, done, next_task, next_chunk;
    uint64_t reported;
    double busy_s; /* of those */
    kl_play_outcome outcome;
    kilter_status status;
};

kl_play *kl_play_new(const kl_cluster *cluster) {
    kl_play *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    size_t n = cluster->workers, words = n / 64 + 1;
    p->cluster = cluster;
    p->chunks.size = sizeof(chunk);
    p->segments.size = sizeof(segment);
    p->recalls.size = sizeof(recall);
    p->workers = calloc(n, sizeof *p->workers);
    p->heap = calloc(n, sizeof *p->heap);
    p->event_room = n;
    p->hungry = calloc(words, sizeof *p->hungry);
    p->held = calloc(words, sizeof *p->held);
    if (!p->workers || !p->heap || !p->hungry || !p->held) {
        kl_play_free(p);
        return NULL;
    }
    uint32_t i = 0;
    for (uint32_t g = 0; g < cluster->group_count; g++)
        for (uint32_t k = 0; k < cluster->groups[g].count; k++)
            p->workers[i++].host = &cluster->groups[g].host;
    return p;
}

void kl_play_free(kl_play *p) {
    if (!p)
        return;
    free(p->workers);
    free(p->heap);
    free(p->hungry);
    free(p->held);
    free(p->to_workers.parcels);
    free(p->to_master.parcels);
    pool_free(&p->chunks);
    pool_free(&p->segments);
    pool_free(&p->recalls);
    free(p->bag);
    free(p);
}

static bool is_set(const uint64_t *bits, uint32_t i) {
    return bits[i / 64] >> (i % 64) & 1;
}

static void set(uint64_t *bits, uint32_t i, bool on) {
    uint64_t bit = (uint64_t)1 << (i % 64);
    bits[i / 64] = on ? bits[i / 64] | bit : bits[i / 64] & ~bit;
}

static chunk *chunk_at(const kl_play *p, uint32_t place) {
    return (chunk *)p->chunks.items + place;
}

static segment *segment_at(const kl_play *p, uint32_t place) {
    return (segment *)p->segments.items + place;
}

static recall *recall_at(const kl_play *p, uint32_t place) {
    return (recall *)p->recalls.items + place;
}

static void will_happen(kl_play *p, event e) {
    if (p->events == p->event_room) {
        size_t room = p->event_room ? 2 * p->event_room : 16;
        event *heap = realloc(p->heap, room * sizeof *heap);
        if (!heap) {
            p->status = KILTER_ERR_MEMORY;
            return;
        }
        p->heap = heap;
        p->event_room = room;
    }
    heap_push(p->heap, &p->events, e);
}

static bool shares_the_masters_host(const kl_play *p, uint32_t i) {
    return i == 0 && !p->cluster->master_apart;
}

/* --- a worker --- */

static double link_s(const kl_play *p, double bytes) {
    return bytes / p->cluster->bytes_per_s;
}

/* A message of `bytes` that leaves at starts_s. */
static void send_up(kl_play *p, double starts_s, double bytes, parcel m) {
    p->in_free_s = fmax(starts_s + 2 * p->cluster->latency_s, p->in_free_s) + link_s(p, bytes);
    if (p->cluster->half_duplex)
        p->out_free_s = p->in_free_s;
    m.at_s = p->in_free_s;
    if (!line_add(&p->to_master, m))
        p->status = KILTER_ERR_MEMORY;
}

/* Report what is done; with `asks`, ask for the next chunk in the same message. */
static void send_to_master(kl_play *p, uint32_t i, bool asks) {
    worker *w = &p->workers[i];
    double bytes = HEAD_BYTES + p->run->result_bytes * (double)w->waiting;
    double starts_s = p->now_s + (w->waiting ? p->run->startup_s : 0);
    send_up(p, starts_s, bytes, (parcel){.worker = i, .item = w->news, .kind = asks ? REQUEST : RESULTS});
    w->news = w->newest = NONE;
    w->waiting = 0;
    if (asks) {
        w->asked = w->asked_now = true;
        w->asked_at_s = p->now_s;
    }
}

static bool is_low(const kl_play *p, const worker *w) {
    if (w->task_s > 0 && (double)w->queued * w->task_s < KL_HIDES_NOTHING_S)
        return false;
    double lead_s = fmax(p->run->lead_s, KL_ANSWERS_AHEAD * w->answer_s);
    return w->queued == 1 || (w->task_s > 0 && (double)(w->queued - 1) * w->task_s <= lead_s);
}

/* What `count` more tasks done, the last one at end_s, are to a worker that watches itself. */
static void note_done(worker *w, uint64_t count, double first_end_s) {
    if (w->waiting == 0)
        w->first_result_s = first_end_s;
    w->waiting += count;
    w->queued -= count;
}

/* `count` tasks of the first chunk are done, the last one at end_s. */
static void account(kl_play *p, worker *w, uint64_t count, double work_s, double seconds, double began_s,
                    double end_s, const kl_stat *task_s) {
    chunk *c = chunk_at(p, w->first);
    if (w->newest == NONE || segment_at(p, w->newest)->chunk != w->first) {
        uint32_t place = pool_take(&p->segments);
        if (place == NONE) {
            p->status = KILTER_ERR_MEMORY;
            return;
        }
        *segment_at(p, place) = (segment){
            .told = {.worker = c->told.worker, .began_s = began_s}, .chunk = w->first, .next = NONE};
        if (w->news == NONE)
            w->news = place;
        else
            segment_at(p, w->newest)->next = place;
        w->newest = place;
    }
    segment *s = segment_at(p, w->newest);
    s->work_s += work_s;
    s->told.busy_s += seconds;
    s->told.ended_s = end_s;
    kl_stat_merge(&s->told.task_s, task_s);
    note_done(w, count, count == 1 ? end_s : began_s + seconds / (double)count);
    c->at += count;
    if (c->at == c->end)
        w->first = c->next;
}

static void note_time(worker *w, double seconds) {
    w->task_s += (seconds - w->task_s) / (w->task_s > 0 ? 8 : 1);
}

static void account_task(kl_play *p, worker *w, double work_s, double began_s, double end_s) {
    double seconds = end_s - began_s;
    kl_stat stat = {0};
    kl_stat_add(&stat, seconds, end_s);
    note_time(w, seconds);
    account(p, w, 1, work_s, seconds, began_s, end_s, &stat);
}

static double task_work_s(const kl_play *p, uint64_t index) {
    return p->run->task_s ? p->run->task_s(p->run->task_self, p->run->run, index) : p->run->even_s;
}

static double work_of_next(const kl_play *p, const worker *w) {
    const chunk *c = chunk_at(p, w->first);
    return task_work_s(p, c->told.lo + c->at);
}

static bool flush_is_due(const kl_play *p, const worker *w, double now_s) {
    return now_s - w->first_result_s >= KL_FLUSH_S ||
           (double)w->waiting * p->run->result_bytes >= (double)KL_FLUSH_BYTES;
}

/* Even tasks at constant speed: as many as pass before something happens. */
static uint64_t even_tasks(const kl_play *p, const worker *w, double each_s) {
    const chunk *c = chunk_at(p, w->first);
    uint64_t most = c->end - c->at;
    double lead_s = fmax(p->run->lead_s, KL_ANSWERS_AHEAD * w->answer_s);
    double keep = 1 + (each_s > 0 ? floor(lead_s / each_s) : 0); /* tasks left when it asks */
    double until_low = (double)w->queued - keep;
    double began_s = w->waiting ? w->first_result_s : p->now_s + each_s;
    double until_due = each_s > 0 ? ceil((began_s + KL_FLUSH_S - p->now_s) / each_s) : INFINITY;
    if (p->run->result_bytes > 0)
        until_due = fmin(until_due, ceil((double)KL_FLUSH_BYTES / p->run->result_bytes) - (double)w->waiting);
    if (w->asked) /* the answer may come: look about as often as it takes to come */
        until_low = each_s > 0 ? floor(p->cluster->latency_s / each_s) : (double)most;
    double count = fmin(fmin(until_low, until_due), (double)most);
    return count < 1 ? 1 : (uint64_t)count;
}

static bool are_even(const kl_play *p, const worker *w) {
    return !p->run->task_s && w->host->profile.count == 0;
}

/* One task of the first chunk after the other until something happens that others see, or that others may
 * change: while a request is under way, a chunk may come at any time. They are accounted when they have
 * ended, as some of them may be taken back before. */
static double go_on(const kl_play *p, worker *w) {
    const chunk *c = chunk_at(p, w->first);
    worker then = *w;
    double at_s = p->now_s;
    uint64_t at = c->at;
    do {
        double end_s = kl_host_end_s(w->host, at_s, task_work_s(p, c->told.lo + at));
        note_time(&then, end_s - at_s);
        note_done(&then, 1, end_s);
        at_s = end_s;
        at++;
    } while (at < c->end && !w->asked && !flush_is_due(p, &then, at_s) && !is_low(p, &then));
    w->going = at - c->at;
    return at_s;
}

/* It has tasks and is free to begin the next. */
static void work(kl_play *p, uint32_t i) {
    worker *w = &p->workers[i];
    if (!w->asked && is_low(p, w))
        send_to_master(p, i, true);
    w->began_s = p->now_s;
    if (shares_the_masters_host(p, i)) { /* what the master takes of it is known afterwards only */
        p->stolen_s = 0;
        w->going = 1;
        w->ends_s = kl_host_end_s(w->host, p->now_s, work_of_next(p, w));
    } else if (are_even(p, w)) {
        double each_s = p->run->even_s / w->host->speed;
        w->going = even_tasks(p, w, each_s);
        w->ends_s = p->now_s + (double)w->going * each_s;
    } else {
        w->ends_s = go_on(p, w);
    }
    will_happen(p, (event){w->ends_s, i, NONE});
}

/* The master took a part of the host meanwhile: the task ends so much later. */
static bool made_up(kl_play *p, uint32_t i) {
    worker *w = &p->workers[i];
    double stolen_s = p->stolen_s;
    if (!(stolen_s > 0))
        return true;
    p->stolen_s = 0;
    w->ends_s = kl_host_end_s(w->host, p->now_s, stolen_s);
    will_happen(p, (event){w->ends_s, i, NONE});
    return false;
}

/* `count` of the tasks it does in one go have ended. */
static void account_going(kl_play *p, uint32_t i, uint64_t count) {
    worker *w = &p->workers[i];
    if (count == 0)
        return;
    if (!shares_the_masters_host(p, i) && are_even(p, w)) {
        double each_s = p->run->even_s / w->host->speed, seconds = (double)count * each_s;
        double end_s = w->began_s + seconds;
        kl_stat stat = {count, each_s, 0, each_s, each_s, end_s};
        w->task_s = each_s;
        account(p, w, count, (double)count * p->run->even_s, seconds, w->began_s, end_s, &stat);
        w->began_s = end_s;
    } else {
        for (uint64_t k = 0; k < count && p->status == KILTER_OK; k++) {
            double work_s = work_of_next(p, w);
            double end_s = w->going == 1 ? w->ends_s : kl_host_end_s(w->host, w->began_s, work_s);
            account_task(p, w, work_s, w->began_s, end_s);
            w->began_s = end_s;
        }
    }
    w->going -= count;
}

static void tasks_ended(kl_play *p, uint32_t i) {
    worker *w = &p->workers[i];
    if (shares_the_masters_host(p, i) && !made_up(p, i))
        return;
    if (w->stale) { /* nobody wants to know */
        w->stale = false;
        w->going = 0;
    } else {
        account_going(p, i, w->going);
    }
    bool dry = w->first == NONE;
    if (dry || flush_is_due(p, w, p->now_s))
        send_to_master(p, i, dry && !w->asked);
    if (!dry)
        work(p, i);
}

/* --- a worker that gives tasks back --- */

/* The tasks of its go that have ended, the one at hand excluded; *began_s: when that one began. */
static uint64_t gone_by(const kl_play *p, uint32_t i, double *began_s) {
    const worker *w = &p->workers[i];
    uint64_t gone = 0;
    *began_s = w->began_s;
    if (w->going <= 1)
        return 0;
    if (are_even(p, w)) {
        double each_s = p->run->even_s / w->host->speed;
        double ended = each_s > 0 ? floor((p->now_s - w->began_s) / each_s) : 0;
        gone = ended < (double)(w->going - 1) ? (uint64_t)ended : w->going - 1;
        *began_s += (double)gone * each_s;
        return gone;
    }
    const chunk *c = chunk_at(p, w->first);
    for (; gone + 1 < w->going; gone++) {
        double end_s = kl_host_end_s(w->host, *began_s, task_work_s(p, c->told.lo + c->at + gone));
        if (end_s > p->now_s)
            break;
        *began_s = end_s;
    }
    return gone;
}

/* Its go ends with the task at hand. */
static void end_going(kl_play *p, uint32_t i) {
    worker *w = &p->workers[i];
    double began_s;
    if (w->going <= 1)
        return;
    account_going(p, i, gone_by(p, i, &began_s));
    if (w->going == 1 || p->status != KILTER_OK)
        return; /* its end is where it was */
    w->going = 1;
    w->ends_s = kl_host_end_s(w->host, w->began_s, work_of_next(p, w));
    will_happen(p, (event){w->ends_s, i, NONE});
}

static void unlink_chunk(kl_play *p, worker *w, uint32_t place) {
    uint32_t *from = &w->first, last = NONE;
    for (; *from != place; from = &chunk_at(p, last)->next)
        last = *from;
    *from = chunk_at(p, place)->next;
    if (w->last == place)
        w->last = last;
}

/* It gives back what it has not begun of a chunk; one that it does not have any more is on its way. */
static void give_back(kl_play *p, uint32_t i, uint32_t place) {
    worker *w = &p->workers[i];
    recall r = *recall_at(p, place);
    pool_give_back(&p->recalls, place);
    uint32_t at = w->first;
    while (at != NONE && (at != r.chunk || chunk_at(p, at)->told.id != r.id))
        at = chunk_at(p, at)->next;
    if (at == NONE || w->stale)
        return;
    if (at == w->first)
        end_going(p, i);
    chunk *c = chunk_at(p, at);
    uint64_t begun = c->at + (at == w->first), end = r.keep > begun ? r.keep : begun;
    uint64_t count = end < c->end ? c->end - end : 0;
    c->end -= count;
    w->queued -= count;
    if (c->end == c->at)
        unlink_chunk(p, w, at);
    send_up(p, p->now_s, HEAD_BYTES,
            (parcel){.worker = i, .item = at, .kind = RETURN, .end = c->end, .count = count});
}

/* What takes a look takes a moment of its host, so that one that is stopped takes none. */
static const double LOOK_S = 1e-6;

static void recall_came(kl_play *p, const parcel *parcel) {
    double at_s = kl_host_end_s(p->workers[parcel->worker].host, p->now_s, LOOK_S);
    will_happen(p, (event){at_s, parcel->worker, parcel->item});
}

static void chunk_came(kl_play *p, const parcel *parcel) {
    uint32_t i = parcel->worker;
    worker *w = &p->workers[i];
    if (w->first == NONE)
        w->first = parcel->item;
    else
        chunk_at(p, w->last)->next = parcel->item;
    w->last = parcel->item;
    w->queued += chunk_at(p, parcel->item)->told.count;
    if (w->asked_now) /* else it is the run that began late */
        w->answer_s = fmax(fmin(p->now_s - w->asked_at_s, KL_ANSWER_MOST_S), KL_ANSWER_MEMORY * w->answer_s);
    w->asked = false;
    w->asked_now = true;
    if (w->going == 0)
        work(p, i);
}

/* --- the master --- */

/* The master computes: where it shares a busy worker's host, both get half. */
static void master_works(kl_play *p, double work_s) {
    bool shared = !p->cluster->master_apart && p->workers[0].going > 0;
    double end_s =
        kl_host_end_s(kl_cluster_master(p->cluster), p->master_free_s, shared ? 2 * work_s : work_s);
    if (shared)
        p->stolen_s += work_s;
    p->outcome.master_busy_s += end_s - p->master_free_s;
    p->master_free_s = end_s;
}

static void set_hungry(kl_play *p, uint32_t i, bool hungry) {
    p->waiting += hungry - is_set(p->hungry, i);
    set(p->hungry, i, hungry);
}

/* A message to worker i leaves after the master's own work for it. */
static void send_down(kl_play *p, uint32_t i, double bytes, parcel m) {
    p->out_free_s = fmax(p->master_free_s, p->out_free_s) + link_s(p, bytes);
    if (p->cluster->half_duplex)
        p->in_free_s = p->out_free_s;
    m.at_s = p->out_free_s + 2 * p->cluster->latency_s;
    m.worker = i;
    if (!line_add(&p->to_workers, m))
        p->status = KILTER_ERR_MEMORY;
}

/* Make a chunk of these tasks and send it. NONE: memory ran out. */
static uint32_t send_chunk(kl_play *p, uint32_t i, span tasks, uint32_t original) {
    uint32_t place = pool_take(&p->chunks);
    if (place == NONE) {
        p->status = KILTER_ERR_MEMORY;
        return NONE;
    }
    worker *w = &p->workers[i];
    double bytes = HEAD_BYTES + p->run->task_bytes * (double)tasks.count;
    master_works(p, p->run->startup_s);
    chunk *c = chunk_at(p, place);
    *c = (chunk){.told = {.id = p->next_chunk++,
                          .lo = tasks.lo,
                          .count = tasks.count,
                          .worker = i,
                          .copy = original != NONE,
                          .dealt_s = p->master_free_s,
                          .bytes_out = bytes},
                 .end = tasks.count,
                 .alone = tasks.count,
                 .moves = tasks.moves,
                 .next = NONE,
                 .after = NONE,
                 .original = original,
                 .copies = NONE,
                 .sibling = NONE};
    if (w->told == NONE)
        w->told = place;
    else
        chunk_at(p, w->told_last)->after = place;
    w->told_last = place;
    p->outcome.chunks++;
    p->outcome.workers += !w->served;
    w->served = true;
    set_hungry(p, i, false);
    set(p->held, i, false);
    p->dealer->dealt(p->dealer->self, &c->told);
    send_down(p, i, bytes, (parcel){.item = place, .kind = TASKS});
    return place;
}

/* The next `count` tasks, or fewer: those that came back go out first. */
static span take_tasks(kl_play *p, uint64_t count) {
    span tasks;
    if (p->spans > 0) {
        span *front = &p->bag[p->spans - 1];
        tasks = *front;
        tasks.count = count < front->count ? count : front->count;
        front->lo += tasks.count;
        front->count -= tasks.count;
        p->spans -= front->count == 0;
    } else {
        tasks = (span){.lo = p->next_task, .count = count};
        p->next_task += count;
    }
    p->left -= tasks.count;
    if (p->left == 0)
        p->empty_s = p->master_free_s;
    return tasks;
}

/* Deal to one worker that asks. It stays hungry when there is nothing for it now. */
static bool feed(kl_play *p, uint32_t i) {
    uint64_t count = 0;
    kilter_status status = p->dealer->deal(p->dealer->self, i, is_set(p->held, i), p->master_free_s, &count);
    if (status != KILTER_OK) {
        p->status = status;
        return false;
    }
    if (count > p->left)
        count = p->left;
    set(p->held, i, count == 0);
    if (count > 0)
        send_chunk(p, i, take_tasks(p, count), NONE);
    return count > 0;
}

static bool any_queued(const kl_play *p) {
    return p->done + p->left < p->run->tasks;
}

/* Until those held back are looked at again; took_s: the last look. */
static double held_pause_s(const kl_play *p, double took_s) {
    double task_s = p->reported > 0 ? p->busy_s / (double)p->reported : 0;
    return fmax(fmax(KL_HELD_S, KL_HELD_TASKS * task_s), KL_HELD_LOOKS * took_s);
}

/* Deal to all that ask, those held back included. */
static void feed_all(kl_play *p) {
    double began_s = p->master_free_s;
    bool held = false;
    p->feed_all = false;
    for (uint32_t word = 0; word <= p->cluster->workers / 64; word++)
        for (uint64_t bits = p->hungry[word]; bits && p->left > 0 && p->status == KILTER_OK;
             bits &= bits - 1) {
            uint32_t i = word * 64;
            for (uint64_t low = bits; !(low & 1); low >>= 1)
                i++;
            bool dealt = feed(p, i);
            master_works(p, dealt ? p->run->answer_s : p->run->look_s);
            held |= !dealt;
        }
    /* With nothing queued they wait for one that is still at a task of the run before, or for nobody. */
    bool waits = held && any_queued(p);
    p->look_again_s = waits ? p->master_free_s + held_pause_s(p, p->master_free_s - began_s) : 0;
}

/* --- what ends late --- */

/* An original and its copies, one after the other from the original on. */
static uint32_t original_of(const kl_play *p, uint32_t place) {
    uint32_t original = chunk_at(p, place)->original;
    return original == NONE ? place : original;
}

static uint32_t next_alike(const kl_play *p, uint32_t place) {
    const chunk *c = chunk_at(p, place);
    return c->original == NONE ? c->copies : c->sibling;
}

/* The first tasks of a chunk that others have done. */
static uint64_t done_elsewhere(const kl_play *p, uint32_t place) {
    const kl_play_chunk *c = &chunk_at(p, place)->told;
    uint64_t end = c->lo;
    for (uint32_t at = original_of(p, place); at != NONE; at = next_alike(p, at)) {
        const kl_play_chunk *other = &chunk_at(p, at)->told;
        if (at != place && other->lo <= c->lo && other->lo + other->done > end)
            end = other->lo + other->done;
    }
    return end - c->lo < c->count ? end - c->lo : c->count;
}

/* Tasks of a chunk that are not done and that nobody was given after its worker. */
static uint64_t alone_of(const kl_play *p, uint32_t place) {
    const chunk *c = chunk_at(p, place);
    uint64_t elsewhere = done_elsewhere(p, place), done = c->told.done > elsewhere ? c->told.done : elsewhere;
    return c->alone > done ? c->alone - done : 0;
}

/* What a chunk that is asked back would bring. */
static uint64_t coming_of(const chunk *c) {
    return c->alone > c->asked_lo ? c->alone - c->asked_lo : 0;
}

static bool may_be_recalled(const kl_play *p, const chunk *c) {
    return !c->told.copy && !c->begun && c->asked_s == 0 && c->moves < p->dealer->recalls;
}

/* Slower than that, a host's worker says nothing. */
static const double STOPPED = 1e-3;

/* When the last pulse of the task at hand came, and what it told. A host that is stopped sends none. */
static kl_hand hand_of(const kl_play *p, uint32_t i) {
    const worker *w = &p->workers[i];
    double began_s, way_s = 2 * p->cluster->latency_s;
    kl_hand hand = {.heard_s = w->heard_s};
    if (w->going == 0)
        return hand;
    gone_by(p, i, &began_s);
    for (double k = floor((p->now_s - way_s - began_s) / KL_PULSE_S); k > 0; k--) {
        double at_s = began_s + k * KL_PULSE_S;
        if (kl_host_speed(w->host, at_s) < STOPPED * w->host->speed)
            continue;
        hand.heard_s = fmax(hand.heard_s, at_s + way_s);
        hand.elapsed_s = at_s - began_s;
        hand.share = kl_host_work_s(w->host, began_s, at_s) / (w->host->speed * hand.elapsed_s);
        break;
    }
    return hand;
}

void kl_play_held(const kl_play *p, uint32_t i, kl_held *held) {
    *held = (kl_held){.first_units = 1, .kept = 1};
    for (uint32_t at = p->workers[i].told; at != NONE; at = chunk_at(p, at)->after) {
        const chunk *c = chunk_at(p, at);
        uint64_t alone = alone_of(p, at), coming = c->asked_s > 0 ? coming_of(c) : 0;
        if (coming > 0 && held->asked_s == 0) {
            held->asked_s = c->asked_s;
            held->kept = held->tasks + (coming < alone ? alone - coming : 0);
        } else if (alone > 0 && !may_be_recalled(p, c) && held->asked_s == 0) {
            held->kept = held->tasks + alone;
        }
        held->tasks += alone;
    }
    held->units = (double)held->tasks;
    held->hand = hand_of(p, i);
}

bool kl_play_is_late(const kl_play *p, uint32_t worker) {
    return p->workers[worker].going > 0;
}

bool kl_play_waits(const kl_play *p, uint32_t i) {
    return is_set(p->hungry, i);
}
uint32_t kl_play_waiting(const kl_play *p) {
    return p->waiting;
}
uint64_t kl_play_coming(const kl_play *p) {
    return p->coming;
}

/* Ask worker i to give back what it has not begun of a chunk, but its first `keep` tasks. */
static void send_recall(kl_play *p, uint32_t i, uint32_t place, uint64_t keep) {
    uint32_t item = pool_take(&p->recalls);
    if (item == NONE) {
        p->status = KILTER_ERR_MEMORY;
        return;
    }
    chunk *c = chunk_at(p, place);
    *recall_at(p, item) = (recall){.chunk = place, .id = c->told.id, .keep = keep};
    c->asked_s = p->master_free_s;
    c->asked_lo = keep;
    p->outcome.recalls++;
    send_down(p, i, HEAD_BYTES, (parcel){.item = item, .kind = RECALL});
}

static void recall_tasks(kl_play *p, uint32_t i, uint64_t keep) {
    for (uint32_t at = p->workers[i].told; at != NONE; at = chunk_at(p, at)->after) {
        const chunk *c = chunk_at(p, at);
        uint64_t alone = alone_of(p, at), kept = keep < alone ? keep : alone;
        keep -= kept;
        if (kept == alone || !may_be_recalled(p, c))
            continue;
        send_recall(p, i, at, c->told.done + kept);
        p->coming += coming_of(c);
    }
}

/* The last tasks that worker `from` has alone, of one chunk, go to `to` as well. */
static void copy_tasks(kl_play *p, uint32_t from, uint32_t to, uint64_t count) {
    uint32_t place = NONE;
    for (uint32_t at = p->workers[from].told; at != NONE; at = chunk_at(p, at)->after)
        if (alone_of(p, at) > 0)
            place = at;
    if (place == NONE)
        return;
    chunk *c = chunk_at(p, place);
    uint64_t alone = alone_of(p, place);
    count = count < alone ? count : alone;
    if (c->asked_s > 0)
        p->coming -= coming_of(c);
    c->alone -= count;
    if (c->asked_s > 0)
        p->coming += coming_of(c);
    span tasks = {.lo = c->told.lo + c->alone, .count = count, .moves = c->moves};
    uint32_t original = original_of(p, place), copy = send_chunk(p, to, tasks, original);
    if (copy == NONE)
        return;
    chunk *made = chunk_at(p, copy), *first = chunk_at(p, original);
    made->executions = chunk_at(p, place)->executions + 1;
    if (made->executions >= p->dealer->copies)
        made->alone = 0; /* there is no further copy */
    made->sibling = first->copies;
    first->copies = copy;
    p->outcome.copies++;
}

/* Nothing is left to deal, but somebody waits. */
static void rescue(kl_play *p) {
    for (int i = 0; i < KL_RESCUES_AT_ONCE && p->status == KILTER_OK; i++) {
        kl_play_rescue what = {0};
        p->dealer->rescue(p->dealer->self, p, p->empty_s, p->master_free_s, &what);
        master_works(p, what.kind == KL_PLAY_NOTHING ? p->run->look_s : p->run->answer_s);
        if (what.kind == KL_PLAY_RECALL)
            recall_tasks(p, what.from, what.tasks);
        else if (what.kind == KL_PLAY_COPY)
            copy_tasks(p, what.from, what.to, what.tasks);
        else
            p->look_again_s = p->master_free_s + what.pause_s;
        if (what.kind == KL_PLAY_NOTHING || p->waiting == 0)
            return;
    }
    p->look_again_s = p->master_free_s + KL_HELD_S;
}

/* Deal to `asking` (NONE: nobody asked just now), and once in a while to those held back. */
static void feed_hungry(kl_play *p, uint32_t asking) {
    bool look_again = p->look_again_s > 0 && p->master_free_s >= p->look_again_s;
    if (p->left == 0) {
        p->feed_all = false;
        bool asks = asking != NONE && is_set(p->hungry, asking);
        if (!p->dealer->rescue || p->waiting == 0 || p->done == p->run->tasks)
            p->look_again_s = 0;
        else if (asks || look_again || p->look_again_s == 0)
            rescue(p);
        return;
    }
    if (p->feed_all || look_again || !any_queued(p)) {
        feed_all(p);
        return;
    }
    if (asking == NONE || !is_set(p->hungry, asking) || is_set(p->held, asking))
        return;
    if (!feed(p, asking) && p->look_again_s == 0)
        p->look_again_s = p->master_free_s + held_pause_s(p, 0);
}

/* Is this task of the chunk reported for the first time? */
static bool is_news(const kl_play *p, uint32_t place, uint64_t task) {
    for (uint32_t at = original_of(p, place); at != NONE; at = next_alike(p, at)) {
        const kl_play_chunk *other = &chunk_at(p, at)->told;
        if (at != place && task >= other->lo && task < other->lo + other->done)
            return false;
    }
    return true;
}

/* `count` more tasks of a chunk are reported. Each task counts once, whoever has done it first. */
static void count_tasks(kl_play *p, uint32_t place, uint64_t count, double work_s) {
    chunk *c = chunk_at(p, place);
    uint64_t news = count;
    if (c->told.copy || c->copies != NONE) {
        news = 0;
        work_s = 0;
        for (uint64_t task = c->told.lo + c->told.done; task < c->told.lo + c->told.done + count; task++)
            if (is_news(p, place, task)) {
                news++;
                work_s += task_work_s(p, task);
            }
    }
    c->told.done += count;
    c->told.counted += news;
    p->done += news;
    p->outcome.work_s += work_s;
}

/* The master's list of a worker's chunks without this one. */
static void strike_out(kl_play *p, uint32_t place) {
    worker *w = &p->workers[chunk_at(p, place)->told.worker];
    uint32_t *from = &w->told, last = NONE;
    for (; *from != place; from = &chunk_at(p, last)->after)
        last = *from;
    *from = chunk_at(p, place)->after;
    if (w->told_last == place)
        w->told_last = last;
}

/* An original and its copies are needed until all of them have ended. */
static void forget_alike(kl_play *p, uint32_t original) {
    for (uint32_t at = original; at != NONE; at = next_alike(p, at))
        if (!chunk_at(p, at)->ended)
            return;
    for (uint32_t at = original, next; at != NONE; at = next) {
        next = next_alike(p, at);
        pool_give_back(&p->chunks, at);
    }
}

/* Nothing more is to come of it: it is all reported or given back. */
static void end_if_done(kl_play *p, uint32_t place) {
    chunk *c = chunk_at(p, place);
    if (c->told.done < c->told.count)
        return;
    if (c->asked_s > 0)
        p->coming -= coming_of(c);
    c->asked_s = 0;
    strike_out(p, place);
    if (p->dealer->ended)
        p->dealer->ended(p->dealer->self, &c->told);
    c->ended = true;
    forget_alike(p, original_of(p, place));
}

/* What a worker need not do, as it was done elsewhere, it is asked to leave. */
static void call_off(kl_play *p, uint32_t place) {
    chunk *c = chunk_at(p, place);
    uint64_t keep = c->told.count;
    if (c->asked_s > 0 || c->begun || c->told.done == c->told.count)
        return;
    if (c->told.copy && done_elsewhere(p, place) == c->told.count)
        keep = c->told.done;
    for (uint32_t at = original_of(p, place); at != NONE; at = next_alike(p, at)) {
        const kl_play_chunk *other = &chunk_at(p, at)->told;
        if (at != place && other->lo >= c->told.lo && other->done == other->count &&
            other->lo + other->count == c->told.lo + keep)
            keep = other->lo - c->told.lo;
    }
    if (keep == c->told.count)
        return;
    c->alone = c->alone < keep ? c->alone : keep;
    send_recall(p, c->told.worker, place, keep);
}

/* Something of this chunk was reported: the others need not do it. */
static void call_off_others(kl_play *p, uint32_t place) {
    for (uint32_t at = original_of(p, place); at != NONE; at = next_alike(p, at))
        if (at != place)
            call_off(p, at);
}

static void take_report(kl_play *p, uint32_t place) {
    while (place != NONE) {
        segment *s = segment_at(p, place);
        chunk *c = chunk_at(p, s->chunk);
        uint32_t next = s->next, whose = s->chunk;
        uint64_t count = s->told.task_s.count;
        if (c->told.done == 0)
            c->told.began_s = s->told.began_s;
        c->told.ended_s = s->told.ended_s;
        c->told.busy_s += s->told.busy_s;
        c->told.bytes_in += p->run->result_bytes * (double)count;
        p->busy_s += s->told.busy_s;
        p->reported += count;
        count_tasks(p, whose, count, s->work_s);
        p->dealer->reported(p->dealer->self, &s->told, p->master_free_s);
        call_off_others(p, whose);
        end_if_done(p, whose);
        pool_give_back(&p->segments, place);
        place = next;
    }
}

static void bag_return(kl_play *p, span tasks) {
    if (p->spans == p->span_room) {
        size_t room = p->span_room ? 2 * p->span_room : 8;
        span *bag = realloc(p->bag, room * sizeof *bag);
        if (!bag) {
            p->status = KILTER_ERR_MEMORY;
            return;
        }
        p->bag = bag;
        p->span_room = room;
    }
    p->bag[p->spans++] = tasks;
    p->left += tasks.count;
}

/* The end of a chunk comes back: what nobody else has is dealt again. */
static void take_return(kl_play *p, const parcel *m) {
    chunk *c = chunk_at(p, m->item);
    span tasks = {.lo = c->told.lo + m->end, .moves = c->moves + 1};
    if (!c->told.copy && c->alone > m->end)
        tasks.count = c->alone - m->end;
    p->coming -= coming_of(c);
    c->begun = m->end > c->asked_lo;
    c->asked_s = 0;
    c->told.count = m->end;
    c->alone = c->alone < m->end ? c->alone : m->end;
    if (tasks.count > 0) {
        bag_return(p, tasks);
        p->feed_all = true;
    }
    p->dealer->returned(p->dealer->self, m->worker, m->count, tasks.count);
    end_if_done(p, m->item);
}

/* The master takes a message, works for it and answers. */
static void serve(kl_play *p, parcel m) {
    double began_s = p->now_s;
    uint64_t chunks = p->outcome.chunks;
    p->outcome.messages++;
    p->master_free_s = p->now_s;
    master_works(p, p->run->answer_s);
    p->workers[m.worker].heard_s = p->now_s;
    if (m.kind == RETURN)
        take_return(p, &m);
    else
        take_report(p, m.item);
    if (m.kind == REQUEST && !is_set(p->hungry, m.worker)) {
        set_hungry(p, m.worker, true);
        set(p->held, m.worker, false);
    }
    feed_hungry(p, m.kind == REQUEST ? m.worker : NONE);
    if (p->dealer->answered && p->outcome.chunks == chunks + 1)
        p->dealer->answered(p->dealer->self, p->master_free_s - began_s);
}

/* When the master acts next; INFINITY: it waits for nothing. */
static double master_acts_s(const kl_play *p) {
    const parcel *first = line_first(&p->to_master);
    double at_s = first ? first->at_s : INFINITY;
    if (p->feed_all)
        at_s = 0;
    else if (p->look_again_s > 0)
        at_s = fmin(at_s, p->look_again_s);
    return fmax(at_s, p->master_free_s);
}

static void master_acts(kl_play *p) {
    const parcel *first = line_first(&p->to_master);
    if (first && first->at_s <= p->now_s && !p->feed_all) {
        parcel message = *first;
        line_drop_first(&p->to_master);
        serve(p, message);
    } else {
        p->master_free_s = p->now_s;
        feed_hungry(p, NONE);
    }
}

/* --- a run --- */

/* What a worker still does of the run before, nobody wants to know; until then it does not ask. */
static void begin_worker(kl_play *p, uint32_t i) {
    worker *w = &p->workers[i], was = *w;
    *w = (worker){.host = was.host, .task_s = was.task_s, .answer_s = was.answer_s, .asked = true};
    w->first = w->last = w->news = w->newest = w->told = w->told_last = NONE;
    w->heard_s = p->now_s;
    set(p->held, i, false);
    set(p->hungry, i, true);
    if (was.going == 0)
        return;
    set(p->hungry, i, false);
    w->asked = false;
    w->stale = true;
    w->going = 1;
    w->ends_s = was.ends_s;
    will_happen(p, (event){w->ends_s, i, NONE});
}

static void begin(kl_play *p, const kl_play_run *run, const kl_play_dealer *dealer) {
    p->run = run;
    p->dealer = dealer;
    p->now_s = p->out_free_s = p->in_free_s = p->master_free_s = p->empty_s = run->begins_s;
    p->left = run->tasks;
    p->done = p->reported = p->next_task = p->coming = 0;
    p->busy_s = 0;
    p->events = p->to_workers.count = p->to_master.count = p->spans = 0;
    p->chunks.used = p->chunks.free_count = p->segments.used = p->segments.free_count = 0;
    p->recalls.used = p->recalls.free_count = 0;
    p->feed_all = true;
    p->look_again_s = p->stolen_s = 0;
    p->outcome = (kl_play_outcome){0};
    p->status = KILTER_OK;
    p->waiting = 0;
    for (uint32_t i = 0; i < p->cluster->workers; i++) {
        begin_worker(p, i);
        p->waiting += is_set(p->hungry, i);
    }
}

/* All is done: workers leave their queues where they are, and the chunks still there end with what was
 * reported of them. */
static void end(kl_play *p) {
    for (uint32_t i = 0; i < p->cluster->workers; i++) {
        worker *w = &p->workers[i];
        if (w->going > 1 && !w->stale)
            end_going(p, i);
        for (uint32_t at = w->told; at != NONE && p->dealer->ended; at = chunk_at(p, at)->after)
            p->dealer->ended(p->dealer->self, &chunk_at(p, at)->told);
    }
}

static void happens(kl_play *p, event e) {
    const worker *w = &p->workers[e.worker];
    if (e.recall != NONE)
        give_back(p, e.worker, e.recall);
    else if (w->going > 0 && e.at_s == w->ends_s) /* else its go was cut short */
        tasks_ended(p, e.worker);
}

/* Of things at the same time, the master's first, then what comes to workers, then the workers' own. */
static bool step(kl_play *p) {
    const parcel *coming = line_first(&p->to_workers);
    double master_s = master_acts_s(p), chunk_s = coming ? coming->at_s : INFINITY;
    double task_s = p->events ? p->heap[0].at_s : INFINITY;
    double first_s = fmin(master_s, fmin(chunk_s, task_s));
    if (!(first_s < INFINITY))
        return false;
    p->now_s = first_s;
    if (master_s <= first_s) {
        master_acts(p);
    } else if (coming && chunk_s <= first_s) {
        parcel here = *coming;
        line_drop_first(&p->to_workers);
        if (here.kind == RECALL)
            recall_came(p, &here);
        else
            chunk_came(p, &here);
    } else {
        happens(p, heap_pop(p->heap, &p->events));
    }
    return p->status == KILTER_OK;
}

kilter_status kl_play_run_out(kl_play *p, const kl_play_run *run, const kl_play_dealer *dealer,
                              kl_play_outcome *outcome, kilter_error *error) {
    begin(p, run, dealer);
    while (p->done < run->tasks)
        if (!step(p)) {
            if (p->status == KILTER_ERR_MEMORY)
                return kl_fail(error, p->status, "playing a run of %llu tasks: memory ran out",
                               (unsigned long long)run->tasks);
            return kl_fail(error, p->status == KILTER_OK ? KILTER_ERR_RANGE : p->status,
                           "playing a run of %llu tasks: nothing was under way with %llu of them not done",
                           (unsigned long long)run->tasks, (unsigned long long)(run->tasks - p->done));
        }
    p->outcome.elapsed_s = p->master_free_s - run->begins_s;
    end(p);
    *outcome = p->outcome;
    return KILTER_OK;
}
