/* A policy played out: what the farm keeps in room balance, kept for room play. */
#include <stdlib.h>

#include "decide/decide.h"

/* Sizes of the messages whose costs a real master takes its m_o and λ from. */
static const double PROBE_HEAD_BYTES = 64;

struct kl_rehearsal {
    kl_play *play;
    kl_dealer *dealer;
    kl_snapshot snapshot;
    kl_worker_view *views; /* the snapshot's, writable, */
    kl_crew *crew;         /* and their sums, */
    uint32_t changed;      /* up to date but for this worker; UINT32_MAX: for all */
    kl_stat answer;
    uint64_t runs;
    const kl_rehearsal_watch *watch; /* of the run that is on */
    kl_plan plan;                    /* the last one */
};

kl_rehearsal *kl_rehearsal_new(const kl_cluster *cluster, const kl_policy *policy,
                               const kl_policy_settings *settings) {
    kl_rehearsal *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->play = kl_play_new(cluster);
    r->dealer = kl_dealer_new(policy, settings);
    r->views = calloc(cluster->workers, sizeof *r->views);
    r->crew = kl_crew_new();
    if (!r->play || !r->dealer || !r->views || !r->crew ||
        kl_crew_reserve(r->crew, cluster->workers) != KILTER_OK) {
        kl_rehearsal_free(r);
        return NULL;
    }
    for (uint32_t i = 0; i < cluster->workers; i++)
        r->views[i] = (kl_worker_view){.present = true, .number = i};
    double byte_s = 1 / cluster->bytes_per_s;
    r->snapshot = (kl_snapshot){
        .workers = r->views, .slots = cluster->workers, .present = cluster->workers, .crew = r->crew};
    r->snapshot.message = (kl_linear){2 * cluster->latency_s + PROBE_HEAD_BYTES * byte_s, byte_s};
    r->snapshot.round_trip_s = 2 * r->snapshot.message.fixed_s;
    return r;
}

void kl_rehearsal_free(kl_rehearsal *r) {
    if (!r)
        return;
    kl_play_free(r->play);
    kl_dealer_free(r->dealer);
    kl_crew_free(r->crew);
    free(r->views);
    free(r);
}

const kl_snapshot *kl_rehearsal_snapshot(const kl_rehearsal *r) {
    return &r->snapshot;
}

/* A worker's view changes several times while the master serves it: its place among the others is found once.
 */
static void settle(kl_rehearsal *r) {
    if (r->changed != UINT32_MAX)
        kl_crew_update(r->crew, r->views, r->changed);
    r->changed = UINT32_MAX;
}

static void note_change(kl_rehearsal *r, uint32_t worker) {
    if (r->changed != worker)
        settle(r);
    r->changed = worker;
}

static void tell(const kl_rehearsal *r, const kl_play_chunk *chunk, double now_s) {
    if (r->watch && r->watch->planned)
        r->watch->planned(r->watch->self, &r->plan, chunk, now_s);
}

static kilter_status deal(void *self, uint32_t worker, bool again, double now_s, uint64_t *count) {
    kl_rehearsal *r = self;
    r->snapshot.now_s = now_s;
    if (!again) {
        kl_worker_view *view = &r->views[worker];
        if (view->chunks == 0) /* it was still at a task of the last run */
            kl_view_returned(view, view->queued_tasks, view->queued_units);
        kl_view_asked(view, now_s);
        note_change(r, worker);
    }
    settle(r);
    kl_crew_advance(r->crew, now_s);
    kl_dealer_plan(r->dealer, &r->snapshot, worker, &r->plan);
    *count = r->plan.count;
    if (r->plan.count == 0 && !again)
        tell(r, NULL, now_s);
    return kl_dealer_commit(r->dealer, &r->snapshot, &r->plan);
}

static void dealt(void *self, const kl_play_chunk *chunk) {
    kl_rehearsal *r = self;
    double tasks = (double)chunk->count;
    if (!chunk->copy) {
        r->snapshot.left -= chunk->count;
        r->snapshot.left_units = (double)r->snapshot.left;
    }
    kl_view_dealt(&r->views[chunk->worker], chunk->count, tasks, chunk->dealt_s);
    note_change(r, chunk->worker);
    if (!chunk->copy)
        tell(r, chunk, chunk->dealt_s);
}

static void reported(void *self, const kl_play_segment *segment, double now_s) {
    kl_rehearsal *r = self;
    kl_stat_merge(&r->snapshot.unit_s, &segment->task_s);
    kl_view_reported(&r->views[segment->worker], &segment->task_s, segment->busy_s,
                     (double)segment->task_s.count, r->snapshot.unit_s.mean, now_s);
    kl_sizes_add(&r->snapshot.sizes, &segment->task_s, kl_worker_rate(&r->views[segment->worker]));
    note_change(r, segment->worker);
}

static void ended(void *self, const kl_play_chunk *chunk) {
    kl_rehearsal *r = self;
    if (chunk->done > 0)
        kl_wap_add(&r->views[chunk->worker].wap, chunk->busy_s, (double)chunk->done);
    note_change(r, chunk->worker);
    if (r->watch && r->watch->ended)
        r->watch->ended(r->watch->self, chunk);
}

static void answered(void *self, double busy_s) {
    kl_rehearsal *r = self;
    kl_stat_add(&r->answer, busy_s, r->snapshot.now_s);
    r->snapshot.answer_s = r->answer.mean;
}

/* --- what ends late --- */

static void held(const void *self, uint32_t worker, kl_held *held) {
    kl_play_held(self, worker, held);
}

static bool waits(const void *self, uint32_t worker) {
    return kl_play_waits(self, worker);
}

static uint32_t waiting(const void *self) {
    return kl_play_waiting(self);
}

static void rescue(void *self, const kl_play *play, double empty_s, double now_s, kl_play_rescue *rescue) {
    static const kl_play_rescue_kind kinds[] = {
        [KL_RESCUE_NOTHING] = KL_PLAY_NOTHING,
        [KL_RESCUE_RECALL] = KL_PLAY_RECALL,
        [KL_RESCUE_COPY] = KL_PLAY_COPY,
    };
    kl_rehearsal *r = self;
    r->snapshot.now_s = now_s;
    settle(r);
    kl_crew_advance(r->crew, now_s);
    kl_board board = {.self = play,
                      .held = held,
                      .waits = waits,
                      .waiting = waiting,
                      .coming_units = (double)kl_play_coming(play)};
    kl_rescue plan;
    kl_rescue_choose(&r->snapshot, &board, &plan);
    *rescue = (kl_play_rescue){.kind = kinds[plan.act],
                               .from = plan.from,
                               .to = plan.to,
                               .tasks = plan.tasks,
                               .pause_s = kl_rescue_pause_s(&r->snapshot, now_s - empty_s, 0)};
    if (plan.act != KL_RESCUE_NOTHING && r->watch && r->watch->rescued)
        r->watch->rescued(r->watch->self, &plan, now_s);
}

static void returned(void *self, uint32_t worker, uint64_t tasks, uint64_t left) {
    kl_rehearsal *r = self;
    kl_view_returned(&r->views[worker], tasks, (double)tasks);
    r->snapshot.left += left;
    r->snapshot.left_units = (double)r->snapshot.left;
    note_change(r, worker);
}

/* Whatever was still queued when the last run ended is of no interest any more, but for the task that a
 * worker is still at: until it asks nobody knows when it is free. */
static void forget_queues(kl_rehearsal *r) {
    for (uint32_t i = 0; i < r->snapshot.slots; i++) {
        bool late = kl_play_is_late(r->play, i);
        r->views[i].queued_tasks = late;
        r->views[i].queued_units = late;
    }
}

kilter_status kl_rehearse(kl_rehearsal *r, const kl_play_run *run, const kl_rehearsal_watch *watch,
                          kl_play_outcome *outcome, kilter_error *error) {
    kl_snapshot *s = &r->snapshot;
    s->run = r->runs++;
    s->now_s = s->began_s = run->begins_s;
    s->tasks = s->left = run->tasks;
    s->units = s->left_units = (double)run->tasks;
    s->task_bytes = run->task_bytes;
    s->result_bytes = run->result_bytes;
    r->watch = watch;
    forget_queues(r);
    kl_views_begin(r->views, s->slots);
    r->changed = UINT32_MAX;
    kl_crew_look_again(r->crew, r->views, s->now_s);
    kl_play_run numbered = *run;
    numbered.run = s->run;
    numbered.lead_s = kl_lead_s(s);
    if (kl_dealer_begin(r->dealer, s) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_MEMORY, "beginning a run of %llu tasks: memory ran out",
                       (unsigned long long)run->tasks);
    kl_play_dealer dealer = {
        .self = r, .deal = deal, .dealt = dealt, .reported = reported, .ended = ended, .answered = answered};
    if (kl_policy_rescues(kl_dealer_policy(r->dealer))) {
        dealer.rescue = rescue;
        dealer.returned = returned;
        dealer.recalls = KL_RESCUE_RECALLS;
        dealer.copies = KL_RESCUE_COPIES;
    }
    kilter_status status = kl_play_run_out(r->play, &numbered, &dealer, outcome, error);
    for (uint32_t i = 0; i < s->slots && status == KILTER_OK; i++)
        if (kl_play_is_late(r->play, i))
            kl_view_abandoned(&r->views[i], 1, s->unit_s.mean, run->begins_s + outcome->elapsed_s);
    return status;
}
