/* A farm in miniature, for the tests of room decide: what a policy comes to on machines made up here.
 * Deterministic, and it keeps to the farm's protocol: a worker asks for its next chunk when it starts the
 * last task it has; it reports what it has done with every request, when it runs dry, and every REPORT_S. The
 * master serves one message at a time and keeps unanswered requests until something changes. */
#ifndef KL_DEALER_SIM_H
#define KL_DEALER_SIM_H

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decide/decide.h"

typedef enum sim_law { SIM_CONSTANT, SIM_UNIFORM, SIM_LOGNORMAL } sim_law;

typedef struct sim_case {
    const char *name;
    uint32_t workers;
    uint64_t tasks;
    double task_s, cv; /* of a task on a worker of speed 1 */
    sim_law law;
    /* Workers 0 … slow−1 run at slow_speed from change_s on; before, all run at speed 1. */
    uint32_t slow;
    double slow_speed, change_s;
    double latency_s; /* one way */
    double answer_s;  /* of the master, per request */
    double chunk_s;   /* of the worker, per chunk */
    uint32_t runs;    /* of one farm, the last one counts; 0: 1 */
    uint64_t seed;
} sim_case;

typedef struct sim_result {
    double elapsed_s, bound_s, efficiency;
    uint64_t chunks, done;
} sim_result;

static const double SIM_REPORT_S = 0.1, SIM_MEMORY_S = 0.5;

typedef enum sim_kind { SIM_MESSAGE, SIM_SERVED, SIM_CHUNK, SIM_TASK_END, SIM_TICK } sim_kind;

typedef struct sim_event {
    double at_s;
    uint64_t order;
    sim_kind kind;
    uint32_t worker;
    uint64_t count; /* SIM_CHUNK: tasks */
} sim_event;

/* What a worker tells the master. */
typedef struct sim_message {
    uint32_t worker;
    bool asks;
    uint64_t tasks;
    double seconds, sum, squares; /* busy time; of single tasks: sum and sum of squares */
    double low, high;
} sim_message;

typedef struct sim_worker {
    uint64_t queued; /* here, the running one included */
    uint64_t next;   /* number of the next task: of this worker's own stream */
    bool running, asked;
    double began_s;
    sim_message news; /* not reported yet */
} sim_worker;

typedef struct sim {
    const sim_case *what;
    kl_dealer *dealer;
    kl_snapshot snapshot;
    kl_crew *crew;
    kl_worker_view *views;
    sim_worker *workers;
    sim_event *heap;
    size_t events, heap_room;
    uint64_t order;
    sim_message *inbox; /* in order of arrival, served from the front */
    size_t inbox_front, inbox_back, inbox_room;
    bool serving;
    uint32_t *parked, *held;
    uint32_t parked_count;
    uint64_t dealt, done, chunks;
    double now_s, work_s; /* work_s: of all tasks started, on speed 1 */
    double last_s;
    uint64_t run;
} sim;

static bool sim_before(const sim_event *a, const sim_event *b) {
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->order < b->order);
}

static void sim_push(sim *f, double at_s, sim_kind kind, uint32_t worker, uint64_t count) {
    if (f->events == f->heap_room) {
        f->heap_room = f->heap_room * 2 + 64;
        f->heap = realloc(f->heap, f->heap_room * sizeof *f->heap);
        assert(f->heap);
    }
    sim_event e = {at_s, f->order++, kind, worker, count};
    size_t i = f->events++;
    for (; i > 0 && sim_before(&e, &f->heap[(i - 1) / 2]); i = (i - 1) / 2)
        f->heap[i] = f->heap[(i - 1) / 2];
    f->heap[i] = e;
}

static sim_event sim_pop(sim *f) {
    sim_event top = f->heap[0], last = f->heap[--f->events];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= f->events)
            break;
        if (child + 1 < f->events && sim_before(&f->heap[child + 1], &f->heap[child]))
            child++;
        if (!sim_before(&f->heap[child], &last))
            break;
        f->heap[i] = f->heap[child];
        i = child;
    }
    f->heap[i] = last;
    return top;
}

static double sim_random(uint64_t i) {
    return ((double)(kl_mix64(i) >> 11) + 0.5) * 0x1p-53;
}

/* Work of task number i. */
static double sim_task_s(const sim_case *c, uint64_t run, uint64_t i) {
    uint64_t key = kl_mix64(c->seed + run * 1000003) + 2 * i;
    if (c->law == SIM_UNIFORM)
        return c->task_s * (1 + c->cv * sqrt(3) * (2 * sim_random(key) - 1));
    if (c->law == SIM_LOGNORMAL) {
        double s2 = log(1 + c->cv * c->cv);
        double normal =
            sqrt(-2 * log(sim_random(key))) * cos(2 * 3.14159265358979323846 * sim_random(key + 1));
        return c->task_s * exp(sqrt(s2) * normal - s2 / 2);
    }
    return c->task_s;
}

static double sim_speed(const sim_case *c, uint32_t worker, double now_s) {
    return worker < c->slow && now_s >= c->change_s ? c->slow_speed : 1;
}

/* When work begun now ends, through at most one change of speed. */
static double sim_end_s(const sim_case *c, uint32_t worker, double now_s, double work_s) {
    double speed = sim_speed(c, worker, now_s);
    double end_s = now_s + work_s / speed;
    if (worker >= c->slow || now_s >= c->change_s || end_s <= c->change_s)
        return end_s;
    return c->change_s + (work_s - (c->change_s - now_s) * speed) / c->slow_speed;
}

static void sim_send(sim *f, uint32_t worker, bool asks) {
    sim_worker *w = &f->workers[worker];
    if (f->inbox_back == f->inbox_room) {
        f->inbox_room = f->inbox_room * 2 + 64;
        f->inbox = realloc(f->inbox, f->inbox_room * sizeof *f->inbox);
        assert(f->inbox);
    }
    w->news.worker = worker;
    w->news.asks = asks;
    w->asked = w->asked || asks;
    f->inbox[f->inbox_back] = w->news;
    sim_push(f, f->now_s + f->what->latency_s, SIM_MESSAGE, worker, f->inbox_back++);
    w->news = (sim_message){0};
}

static void sim_start_task(sim *f, uint32_t worker, double extra_s) {
    sim_worker *w = &f->workers[worker];
    double work_s = sim_task_s(f->what, f->run, w->next++ + (uint64_t)worker * 100000007);
    f->work_s += work_s;
    w->running = true;
    w->began_s = f->now_s + extra_s;
    sim_push(f, sim_end_s(f->what, worker, w->began_s, work_s), SIM_TASK_END, worker, 0);
    if (w->queued == 1 && !w->asked)
        sim_send(f, worker, true);
}

static void sim_answer(sim *f, uint32_t worker, kl_plan *plan) {
    kl_worker_view *view = &f->views[worker];
    kilter_status status = kl_dealer_commit(f->dealer, &f->snapshot, plan);
    assert(status == KILTER_OK);
    (void)status;
    f->snapshot.left -= plan->count;
    f->snapshot.left_units = (double)f->snapshot.left;
    view->chunks++;
    view->queued_tasks += plan->count;
    view->queued_units += (double)plan->count;
    view->queued_at_s = f->now_s;
    kl_crew_update(f->crew, f->views, worker);
    f->chunks++;
    f->dealt += plan->count;
    sim_push(f, f->now_s + f->what->latency_s, SIM_CHUNK, worker, plan->count);
}

/* Who waits is tried again: first the one the news is of, then a few others in turn, so that many who wait do
 * not stop the master; all of them when nothing is under way that could bring more news. */
static void sim_answer_parked(sim *f, uint32_t newest) {
    uint32_t tries = f->dealt == f->done ? f->parked_count : f->parked_count < 8 ? f->parked_count : 8;
    for (uint32_t i = 0; i < f->parked_count; i++)
        if (f->parked[i] == newest) {
            f->parked[i] = f->parked[0];
            f->parked[0] = newest;
        }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < tries; i++) {
        kl_plan plan;
        kl_dealer_plan(f->dealer, &f->snapshot, f->parked[i], &plan);
        if (plan.count)
            sim_answer(f, f->parked[i], &plan);
        else
            f->held[kept++] = f->parked[i]; /* to the end: next time others are tried */
    }
    memmove(f->parked, f->parked + tries, (f->parked_count - tries) * sizeof *f->parked);
    memcpy(f->parked + f->parked_count - tries, f->held, kept * sizeof *f->held);
    f->parked_count += kept - tries;
}

static void sim_take_news(sim *f, const sim_message *m) {
    kl_worker_view *view = &f->views[m->worker];
    if (m->tasks == 0)
        return;
    double n = (double)m->tasks, mean = m->sum / n;
    kl_stat seen = {m->tasks, mean, fmax(0, m->squares - n * mean * mean), m->low, m->high, f->now_s};
    kl_stat_merge(&view->unit_s, &seen);
    kl_stat_merge(&f->snapshot.unit_s, &seen);
    kl_pace_add(&view->pace, m->seconds, n, SIM_MEMORY_S);
    kl_wap_add(&view->wap, m->seconds, n);
    view->queued_tasks -= m->tasks;
    view->queued_units -= n;
    view->queued_at_s = f->now_s;
    view->busy_s += m->seconds;
    view->units += n;
    kl_crew_update(f->crew, f->views, m->worker);
    f->done += m->tasks;
    f->last_s = f->now_s;
}

static void sim_serve(sim *f) {
    if (f->serving || f->inbox_front == f->inbox_back)
        return;
    f->serving = true;
    sim_push(f, f->now_s + f->what->answer_s * (f->inbox[f->inbox_front].asks ? 1 : 0.25), SIM_SERVED, 0, 0);
}

static void sim_task_ended(sim *f, uint32_t worker) {
    sim_worker *w = &f->workers[worker];
    double took_s = f->now_s - w->began_s;
    sim_message *news = &w->news;
    news->low = news->tasks ? fmin(news->low, took_s) : took_s;
    news->high = fmax(news->high, took_s);
    news->tasks++;
    news->seconds += took_s;
    news->sum += took_s;
    news->squares += took_s * took_s;
    w->running = false;
    if (--w->queued > 0)
        sim_start_task(f, worker, 0);
    else
        sim_send(f, worker, false);
}

/* Messages arrive in the order sent: latency is the same for all, so the inbox is in order of arrival too. */
static void sim_step(sim *f, uint64_t *arrived) {
    sim_event e = sim_pop(f);
    sim_worker *w = &f->workers[e.worker];
    f->now_s = f->snapshot.now_s = e.at_s;
    kl_crew_advance(f->crew, f->now_s);
    if (e.kind == SIM_MESSAGE) {
        (*arrived)++;
    } else if (e.kind == SIM_SERVED) {
        sim_message m = f->inbox[f->inbox_front++];
        f->serving = false;
        sim_take_news(f, &m);
        if (m.asks)
            f->parked[f->parked_count++] = m.worker;
        if (f->snapshot.left)
            sim_answer_parked(f, m.worker);
    } else if (e.kind == SIM_CHUNK) {
        w->asked = false;
        w->queued += e.count;
        if (!w->running)
            sim_start_task(f, e.worker, f->what->chunk_s);
        else if (w->queued == 1)
            sim_send(f, e.worker, true);
    } else if (e.kind == SIM_TASK_END) {
        sim_task_ended(f, e.worker);
    } else {
        if (w->news.tasks)
            sim_send(f, e.worker, false);
        if (f->done < f->what->tasks)
            sim_push(f, f->now_s + SIM_REPORT_S, SIM_TICK, e.worker, 0);
    }
    if (f->inbox_front < *arrived)
        sim_serve(f);
}

/* Time in which the workers together can do `work_s` of speed 1, all busy all the time. */
static double sim_bound_s(const sim_case *c, double work_s) {
    double before = c->workers, after = c->workers - c->slow + c->slow * c->slow_speed;
    double at_change = before * c->change_s;
    return c->slow == 0 || work_s <= at_change ? work_s / before : c->change_s + (work_s - at_change) / after;
}

static sim_result sim_one_run(sim *f) {
    const sim_case *c = f->what;
    f->events = f->inbox_front = f->inbox_back = f->parked_count = 0;
    f->serving = false;
    f->dealt = f->done = f->chunks = 0;
    f->now_s = f->work_s = f->last_s = 0;
    kl_snapshot *s = &f->snapshot;
    s->now_s = s->began_s = 0;
    s->run = f->run;
    s->tasks = s->left = c->tasks;
    s->units = s->left_units = (double)c->tasks;
    for (uint32_t i = 0; i < c->workers; i++) {
        kl_worker_view *v = &f->views[i];
        double unit_s = kl_pace_unit_s(&v->pace);
        *v = (kl_worker_view){
            .present = true, .unit_s = v->unit_s, .pace = v->pace, .prior_rate = unit_s > 0 ? 1 / unit_s : 0};
        f->workers[i] = (sim_worker){0};
        sim_send(f, i, true);
        sim_push(f, SIM_REPORT_S * (1 + i / (double)c->workers), SIM_TICK, i, 0);
    }
    kl_crew_look_again(f->crew, f->views, 0);
    kilter_status status = kl_dealer_begin(f->dealer, s);
    assert(status == KILTER_OK);
    (void)status;
    uint64_t arrived = 0;
    while (f->events > 0 && f->done < c->tasks)
        sim_step(f, &arrived);
    sim_result r = {.elapsed_s = f->last_s, .chunks = f->chunks, .done = f->done};
    r.bound_s = sim_bound_s(c, f->work_s);
    r.efficiency = r.elapsed_s > 0 ? r.bound_s / r.elapsed_s : 0;
    f->run++;
    return r;
}

static sim_result sim_play(const sim_case *c, const char *policy, double factor) {
    kl_policy_settings settings = {.factor = factor};
    sim f = {.what = c, .dealer = kl_dealer_new(kl_policy_find(policy), &settings), .crew = kl_crew_new()};
    f.views = calloc(c->workers, sizeof *f.views);
    f.workers = calloc(c->workers, sizeof *f.workers);
    f.parked = calloc(c->workers, sizeof *f.parked);
    f.held = calloc(c->workers, sizeof *f.held);
    assert(f.dealer && f.crew && f.views && f.workers && f.parked && f.held);
    kilter_status status = kl_crew_reserve(f.crew, c->workers);
    assert(status == KILTER_OK);
    (void)status;
    f.snapshot = (kl_snapshot){.workers = f.views,
                               .crew = f.crew,
                               .slots = c->workers,
                               .present = c->workers,
                               .answer_s = c->answer_s,
                               .round_trip_s = 2 * c->latency_s + c->answer_s};
    sim_result r = {0};
    for (uint32_t run = 0; run < (c->runs ? c->runs : 1); run++)
        r = sim_one_run(&f);
    kl_dealer_free(f.dealer);
    kl_crew_free(f.crew);
    free(f.views);
    free(f.workers);
    free(f.parked);
    free(f.held);
    free(f.heap);
    free(f.inbox);
    return r;
}

#endif
