/* The event loop. A worker has at most one event, the end of its current batch of tasks. Messages pass the
 * master's link one after the other, so they arrive in the order of sending. The next event is therefore the
 * first of three: the top of the workers' heap, the head of the messages to workers, and the master's next
 * action. */
#include "play/play.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t NONE = UINT32_MAX;
/* bytes that a message has besides its tasks or results */
static const double HEAD_BYTES = 64;

/* --- storage --- */

/* A chunk in its worker's queue, or done and not reported completely. */
typedef struct chunk {
    kl_play_chunk told; /* the master's view of the chunk */
    uint64_t at;        /* tasks that the worker has done */
    uint64_t reported;
    uint32_t next; /* the next chunk in the worker's queue */
} chunk;

/* Tasks done and not reported yet, or in a message. */
typedef struct segment {
    kl_play_segment told;
    double work_s; /* sum over all tasks, at speed 1 */
    uint32_t chunk, next;
} segment;

/* Items of one size, identified by their index; returned items are used again. */
typedef struct pool {
    void *items;
    size_t size; /* bytes of an item */
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

/* A message on its way. */
typedef enum parcel_kind { TASKS, RESULTS, REQUEST } parcel_kind;

typedef struct parcel {
    double at_s;           /* time at which the message arrives */
    uint32_t worker, item; /* item: first segment, or chunk */
    parcel_kind kind;      /* REQUEST: results, and a request for more tasks */
} parcel;

/* Parcels in the order of arrival. */
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

typedef struct event { /* the end of a worker's batch */
    double at_s;
    uint32_t worker;
} event;

static bool before(const event *a, const event *b) {
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->worker < b->worker);
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
    uint32_t first, last;  /* the worker's first and last chunk; NONE: it has none */
    uint32_t news, newest; /* the first and last segment to report; NONE: there is none */
    uint64_t queued;       /* number of the worker's tasks that are not done */
    uint64_t waiting;      /* number of the worker's tasks done and not reported */
    double first_result_s; /* time at which the first unreported task ended */
    double task_s;         /* mean seconds of recent tasks; 0: not known */
    double asked_at_s, answer_s;
    uint64_t going;     /* tasks of the current batch; 0: the worker waits */
    double began_s;     /* time at which the batch began */
    bool asked, served; /* served: the worker has had a chunk */
} worker;

struct kl_play {
    const kl_cluster *cluster;
    const kl_play_run *run;
    const kl_play_dealer *dealer;
    worker *workers;
    pool chunks, segments;
    event *heap; /* at most one for each worker */
    size_t events;
    line to_workers, to_master;
    double out_free_s, in_free_s; /* time at which each direction of the master's link is free */

    uint64_t *hungry, *held; /* a bit for each worker */
    bool feed_all;
    double look_again_s; /* time of the next look at held-back workers; 0: there are none */
    double master_free_s;

    double now_s;
    uint64_t left, done, next_task, next_chunk;
    uint64_t reported;
    double busy_s; /* the worker's busy seconds */
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
    p->workers = calloc(n, sizeof *p->workers);
    p->heap = calloc(n, sizeof *p->heap);
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

static void will_end(kl_play *p, double at_s, uint32_t worker) {
    event e = {at_s, worker};
    size_t i = p->events++;
    for (; i > 0 && before(&e, &p->heap[(i - 1) / 2]); i = (i - 1) / 2)
        p->heap[i] = p->heap[(i - 1) / 2];
    p->heap[i] = e;
}

/* --- a worker --- */

static double link_s(const kl_play *p, double bytes) {
    return bytes / p->cluster->bytes_per_s;
}

/* Send a message of `bytes` to the master at starts_s. */
static void send_up(kl_play *p, double starts_s, double bytes, parcel m) {
    p->in_free_s = fmax(starts_s + 2 * p->cluster->latency_s, p->in_free_s) + link_s(p, bytes);
    if (p->cluster->half_duplex)
        p->out_free_s = p->in_free_s;
    m.at_s = p->in_free_s;
    if (!line_add(&p->to_master, m))
        p->status = KILTER_ERR_MEMORY;
}

/* Report finished tasks; with `asks`, request the next chunk in the same message. */
static void send_to_master(kl_play *p, uint32_t i, bool asks) {
    worker *w = &p->workers[i];
    double bytes = HEAD_BYTES + p->run->result_bytes * (double)w->waiting;
    double starts_s = p->now_s + (w->waiting ? p->run->startup_s : 0);
    send_up(p, starts_s, bytes, (parcel){.worker = i, .item = w->news, .kind = asks ? REQUEST : RESULTS});
    w->news = w->newest = NONE;
    w->waiting = 0;
    if (asks) {
        w->asked = true;
        w->asked_at_s = p->now_s;
    }
}

static bool is_low(const kl_play *p, const worker *w) {
    if (w->task_s > 0 && (double)w->queued * w->task_s < KL_HIDES_NOTHING_S)
        return false;
    double lead_s = fmax(p->run->lead_s, KL_ANSWERS_AHEAD * w->answer_s);
    return w->queued == 1 || (w->task_s > 0 && (double)(w->queued - 1) * w->task_s <= lead_s);
}

/* Update a worker's measurements of itself after `count` more tasks; the last task ended at end_s. */
static void note_done(worker *w, uint64_t count, double first_end_s) {
    if (w->waiting == 0)
        w->first_result_s = first_end_s;
    w->waiting += count;
    w->queued -= count;
}

/* Consecutive tasks of a worker's first chunk. */
typedef struct stretch {
    uint64_t count;
    double work_s, seconds, began_s, end_s;
    kl_stat task_s;
} stretch;

static void account(kl_play *p, worker *w, const stretch *done) {
    chunk *c = chunk_at(p, w->first);
    if (w->newest == NONE || segment_at(p, w->newest)->chunk != w->first) {
        uint32_t place = pool_take(&p->segments);
        if (place == NONE) {
            p->status = KILTER_ERR_MEMORY;
            return;
        }
        *segment_at(p, place) = (segment){
            .told = {.worker = c->told.worker, .began_s = done->began_s}, .chunk = w->first, .next = NONE};
        if (w->news == NONE)
            w->news = place;
        else
            segment_at(p, w->newest)->next = place;
        w->newest = place;
    }
    segment *s = segment_at(p, w->newest);
    s->work_s += done->work_s;
    s->told.busy_s += done->seconds;
    s->told.ended_s = done->end_s;
    kl_stat_merge(&s->told.task_s, &done->task_s);
    note_done(w, done->count,
              done->count == 1 ? done->end_s : done->began_s + done->seconds / (double)done->count);
    c->at += done->count;
    if (c->at == c->told.count)
        w->first = c->next;
}

static void note_time(worker *w, double seconds) {
    w->task_s += (seconds - w->task_s) / (w->task_s > 0 ? 8 : 1);
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

/* Return how many equal tasks at constant speed pass before something else happens. */
static uint64_t even_tasks(const kl_play *p, const worker *w, double each_s) {
    const chunk *c = chunk_at(p, w->first);
    uint64_t most = c->told.count - c->at;
    double lead_s = fmax(p->run->lead_s, KL_ANSWERS_AHEAD * w->answer_s);
    double keep =
        1 + (each_s > 0 ? floor(lead_s / each_s) : 0); /* tasks left when the worker requests more */
    double until_low = (double)w->queued - keep;
    double began_s = w->waiting ? w->first_result_s : p->now_s + each_s;
    double until_due = each_s > 0 ? ceil((began_s + KL_FLUSH_S - p->now_s) / each_s) : INFINITY;
    if (p->run->result_bytes > 0)
        until_due = fmin(until_due, ceil((double)KL_FLUSH_BYTES / p->run->result_bytes) - (double)w->waiting);
    if (w->asked) /* the answer may arrive: look about as often as it takes to arrive */
        until_low = each_s > 0 ? floor(p->cluster->latency_s / each_s) : (double)most;
    double count = fmin(fmin(until_low, until_due), (double)most);
    return count < 1 ? 1 : (uint64_t)count;
}

/* Do tasks of the first chunk until something happens that others see or may change: while a request is under
 * way, a chunk may arrive at any time. The tasks are accounted when they have ended, because some may be
 * recalled before. */
static double go_on(const kl_play *p, worker *w) {
    const chunk *c = chunk_at(p, w->first);
    worker then = *w;
    double at_s = p->now_s;
    uint64_t at = c->at;
    do {
        double end_s = at_s + task_work_s(p, c->told.lo + at) / w->host->speed;
        note_time(&then, end_s - at_s);
        note_done(&then, 1, end_s);
        at_s = end_s;
        at++;
    } while (at < c->told.count && !w->asked && !flush_is_due(p, &then, at_s) && !is_low(p, &then));
    w->going = at - c->at;
    return at_s;
}

/* Begin the next batch, if the worker has tasks and is free. */
static void work(kl_play *p, uint32_t i) {
    worker *w = &p->workers[i];
    if (!w->asked && is_low(p, w))
        send_to_master(p, i, true);
    w->began_s = p->now_s;
    if (p->run->task_s) {
        will_end(p, go_on(p, w), i);
        return;
    }
    double each_s = p->run->even_s / w->host->speed;
    w->going = even_tasks(p, w, each_s);
    will_end(p, p->now_s + (double)w->going * each_s, i);
}

static void account_even(kl_play *p, worker *w) {
    double each_s = p->run->even_s / w->host->speed, seconds = (double)w->going * each_s;
    double end_s = w->began_s + seconds;
    stretch done = {w->going, (double)w->going * p->run->even_s,           seconds, w->began_s,
                    end_s,    {w->going, each_s, 0, each_s, each_s, end_s}};
    w->task_s = each_s;
    account(p, w, &done);
}

/* Account the tasks of the batch that has ended. */
static void account_going(kl_play *p, worker *w) {
    for (uint64_t k = 0; p->run->task_s && k < w->going && p->status == KILTER_OK; k++) {
        double work_s = work_of_next(p, w), end_s = w->began_s + work_s / w->host->speed;
        stretch done = {1, work_s, end_s - w->began_s, w->began_s, end_s, {0}};
        kl_stat_add(&done.task_s, done.seconds, end_s);
        note_time(w, done.seconds);
        account(p, w, &done);
        w->began_s = end_s;
    }
    if (!p->run->task_s)
        account_even(p, w);
    w->going = 0;
}

static void tasks_ended(kl_play *p, uint32_t i) {
    worker *w = &p->workers[i];
    account_going(p, w);
    bool dry = w->first == NONE;
    if (dry || flush_is_due(p, w, p->now_s))
        send_to_master(p, i, dry && !w->asked);
    if (!dry)
        work(p, i);
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
    if (w->asked_at_s > 0) /* otherwise the run began late */
        w->answer_s = fmax(fmin(p->now_s - w->asked_at_s, KL_ANSWER_MOST_S), KL_ANSWER_MEMORY * w->answer_s);
    w->asked = false;
    if (w->going == 0)
        work(p, i);
}

/* --- the master --- */

static void master_works(kl_play *p, double work_s) {
    double end_s = p->master_free_s + work_s / kl_cluster_master(p->cluster)->speed;
    p->outcome.master_busy_s += end_s - p->master_free_s;
    p->master_free_s = end_s;
}

/* Send a message to worker i, after the master's own work for it. */
static void send_down(kl_play *p, uint32_t i, double bytes, parcel m) {
    p->out_free_s = fmax(p->master_free_s, p->out_free_s) + link_s(p, bytes);
    if (p->cluster->half_duplex)
        p->in_free_s = p->out_free_s;
    m.at_s = p->out_free_s + 2 * p->cluster->latency_s;
    m.worker = i;
    if (!line_add(&p->to_workers, m))
        p->status = KILTER_ERR_MEMORY;
}

/* Send the next `count` tasks. */
static void send_chunk(kl_play *p, uint32_t i, uint64_t count) {
    uint32_t place = pool_take(&p->chunks);
    if (place == NONE) {
        p->status = KILTER_ERR_MEMORY;
        return;
    }
    worker *w = &p->workers[i];
    master_works(p, p->run->startup_s);
    chunk *c = chunk_at(p, place);
    *c = (chunk){.told = {.lo = p->run->tasks - p->left, .count = count, .worker = i}, .next = NONE};
    p->left -= count;
    p->outcome.chunks++;
    p->outcome.workers += !w->served;
    w->served = true;
    set(p->hungry, i, false);
    p->dealer->dealt(p->dealer->self, &c->told);
    send_down(p, i, HEAD_BYTES + p->run->task_bytes * (double)count, (parcel){.item = place, .kind = TASKS});
}

/* Deal to a worker that asks. It stays hungry if there is nothing for it now. */
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
        send_chunk(p, i, count);
    return count > 0;
}

static bool any_queued(const kl_play *p) {
    return p->done + p->left < p->run->tasks;
}

/* Return the pause before held-back workers are looked at again; took_s: duration of the last look. */
static double held_pause_s(const kl_play *p, double took_s) {
    double task_s = p->done > 0 ? p->busy_s / (double)p->done : 0;
    return fmax(fmax(KL_HELD_S, KL_HELD_TASKS * task_s), KL_HELD_LOOKS * took_s);
}

/* Deal to all workers that ask, including held-back ones. */
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
    /* with nothing queued, they wait for a worker in its last task of the run before, or for nothing */
    bool waits = held && any_queued(p);
    p->look_again_s = waits ? p->master_free_s + held_pause_s(p, p->master_free_s - began_s) : 0;
}

/* Deal to `asking` (NONE: no new request), and now and then to held-back workers. */
static void feed_hungry(kl_play *p, uint32_t asking) {
    bool look_again = p->look_again_s > 0 && p->master_free_s >= p->look_again_s;
    if (p->left == 0) {
        p->feed_all = false;
        p->look_again_s = 0;
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

static void take_report(kl_play *p, uint32_t place) {
    while (place != NONE) {
        segment *s = segment_at(p, place);
        chunk *c = chunk_at(p, s->chunk);
        uint32_t next = s->next;
        c->reported += s->told.task_s.count;
        p->busy_s += s->told.busy_s;
        p->done += s->told.task_s.count;
        p->outcome.work_s += s->work_s;
        p->dealer->reported(p->dealer->self, &s->told, p->master_free_s);
        if (c->reported == c->told.count)
            pool_give_back(&p->chunks, s->chunk);
        pool_give_back(&p->segments, place);
        place = next;
    }
}

/* Let the master receive a message, work for it and answer. */
static void serve(kl_play *p, parcel m) {
    p->outcome.messages++;
    p->master_free_s = p->now_s;
    master_works(p, p->run->answer_s);
    take_report(p, m.item);
    if (m.kind == REQUEST) {
        set(p->hungry, m.worker, true);
        set(p->held, m.worker, false);
    }
    feed_hungry(p, m.kind == REQUEST ? m.worker : NONE);
}

/* Return when the master acts next; INFINITY: it waits for nothing. */
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

static void begin(kl_play *p, const kl_play_run *run, const kl_play_dealer *dealer) {
    p->run = run;
    p->dealer = dealer;
    p->now_s = p->out_free_s = p->in_free_s = p->master_free_s = 0;
    p->left = run->tasks;
    p->done = 0;
    p->busy_s = 0;
    p->events = p->to_workers.count = p->to_master.count = 0;
    p->chunks.used = p->chunks.free_count = p->segments.used = p->segments.free_count = 0;
    p->feed_all = true;
    p->look_again_s = 0;
    p->outcome = (kl_play_outcome){0};
    p->status = KILTER_OK;
    for (uint32_t i = 0; i < p->cluster->workers; i++) {
        worker *w = &p->workers[i], was = *w;
        *w = (worker){.host = was.host, .task_s = was.task_s, .answer_s = was.answer_s, .asked = true};
        w->first = w->last = w->news = w->newest = NONE;
        set(p->held, i, false);
        set(p->hungry, i, true);
    }
}

/* Handle the next event. At the same time, the master comes first, then messages to workers, then workers. */
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
        chunk_came(p, &here);
    } else {
        tasks_ended(p, heap_pop(p->heap, &p->events).worker);
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
                           "playing a run of %llu tasks: nothing was under way with %llu tasks not done",
                           (unsigned long long)run->tasks, (unsigned long long)(run->tasks - p->done));
        }
    p->outcome.elapsed_s = p->master_free_s;
    *outcome = p->outcome;
    return KILTER_OK;
}
