/* The loop's run record. Rank 0 writes it, because rank 0 has the reports of all ranks and makes the same
 * decisions as they do. A round may last milliseconds, and a loop may last days, so not every round is
 * recorded. A round with a decision is always recorded. Any other round is recorded only if the time since
 * the last recorded round exceeds a fixed fraction of the loop's age. So the number of recorded rounds grows
 * with the logarithm of the loop's age. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kilter/version.h"
#include "loop/loop_mpi.h"
#include "trace/trace.h"

/* a round without a decision is recorded if this fraction of the loop's age has passed since the last
 * recorded round */
static const double RESOLUTION = 0.005;

typedef struct did { /* Work of a rank since the last recorded round. */
    uint64_t iterations;
    double busy_s, moving_s;
} did;

typedef struct whereabouts {
    char host[KL_HOST_BYTES];
    int64_t pid;
} whereabouts;

struct kl_loop_record {
    kl_trace *trace;
    whereabouts *ranks;
    did *did;
    kl_trace_rank_row *ends;
    double heard_s; /* time of the last round of reports */
    /* written_s: time of the last recorded round; stayed_s: time of the last decision to stay */
    double written_s, stayed_s;
    kl_verdict verdict; /* verdict of the last recorded decision about moving rows */
    /* number of the round in which rows last moved, if the record has no outcome of this move yet;
     * otherwise 0 */
    uint64_t moved_in;
    uint64_t block;
    uint32_t rests;
    uint64_t pinned; /* number of ranks that are pinned to their cores, as last written */
    double pinned_s; /* time at which this was written */
};

/* --- beginning the record --- */

static void free_record(struct kl_loop_record *r) {
    if (!r)
        return;
    free(r->ranks);
    free(r->did);
    free(r->ends);
    free(r);
}

static struct kl_loop_record *new_record(uint32_t ranks) {
    struct kl_loop_record *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->ranks = calloc(ranks, sizeof *r->ranks);
    r->did = calloc(ranks, sizeof *r->did);
    r->ends = calloc(ranks, sizeof *r->ends);
    if (r->ranks && r->did && r->ends)
        return r;
    free_record(r);
    return NULL;
}

static kilter_status start(kilter_loop *l, const char *path, kilter_error *error) {
    const kilter_loop_options *o = &l->options;
    char host[KL_HOST_BYTES];
    kl_host_name(host);
    char *here = getcwd(NULL, 0);
    const kl_trace_run_row run = {.program = program_invocation_short_name,
                                  .version = KILTER_VERSION,
                                  .transport = "mpi",
                                  .policy = o->fixed ? "fixed" : "balanced",
                                  .host = host,
                                  .began_unix_s = kl_unix_time_s(),
                                  .pid = getpid(),
                                  .simulated = l->bundle->group.clock.simulated,
                                  .folder = here,
                                  .loop = true};
    struct kl_loop_record *r = new_record(l->bundle->group.ranks);
    kilter_status status =
        r ? kl_trace_open(path, &run, &r->trace, error)
          : kl_fail(error, KILTER_ERR_MEMORY, "creating the run record '%s': memory ran out", path);
    free(here);
    if (status != KILTER_OK) {
        free_record(r);
        return status;
    }
    if (strcmp(kl_trace_path(r->trace), path) != 0)
        fprintf(stderr, "%s: '%s' exists, so the run record of loop '%s' is '%s'\n", run.program, path,
                l->name, kl_trace_path(r->trace));
    const char *kind = o->kind == KILTER_DOACROSS ? "doacross" : o->scattered ? "scattered" : "doall";
    kl_trace_loop(r->trace, &(kl_trace_loop_row){.name = l->name,
                                                 .kind = kind,
                                                 .iterations = o->iterations,
                                                 .inner = o->inner,
                                                 .ranks = l->bundle->group.ranks,
                                                 .fixed = o->fixed});
    r->block = l->rank.flow.block;
    l->record = r;
    return KILTER_OK;
}

/* Start the record if one is wanted. The environment overrides the options, and "none" means no record. */
static kilter_status start_if_asked(kilter_loop *l, kilter_error *error) {
    const char *told = getenv("KILTER_RECORD"), *path = told ? told : l->options.record;
    if (!path || strcmp(path, "none") == 0)
        return KILTER_OK;
    if (!*path)
        return kl_fail(error, KILTER_ERR_RECORD,
                       "%s: the value is empty; set it to a file name, or to 'none' to write no record",
                       told ? "KILTER_RECORD" : "the option 'record'");
    return start(l, path, error);
}

static kilter_status gather(kilter_loop *l, const void *mine, void *all, size_t bytes, kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Igather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, l->bundle->group.comm,
                           &request);
    return kl_group_await(&l->bundle->group, code, request, error);
}

static kilter_status say_who_is_where(kilter_loop *l, kilter_error *error) {
    struct kl_loop_record *r = l->record;
    whereabouts mine = {.pid = getpid()};
    kl_host_name(mine.host);
    kilter_status status = gather(l, &mine, r ? r->ranks : NULL, sizeof mine, error);
    for (uint32_t rank = 0; rank < l->bundle->group.ranks && r && status == KILTER_OK; rank++)
        kl_trace_worker(r->trace, &(kl_trace_worker_row){.worker = rank,
                                                         .host = r->ranks[rank].host,
                                                         .binding = "",
                                                         .pid = r->ranks[rank].pid});
    return status;
}

kilter_status kl_loop_record_open(kilter_loop *l, kilter_error *error) {
    kl_record_word *word = &l->record_word;
    MPI_Request request = MPI_REQUEST_NULL;
    if (l->bundle->group.rank == 0)
        start_if_asked(l, &word->error);
    word->made = l->record != NULL;
    int code = MPI_Ibcast(word, sizeof *word, MPI_BYTE, 0, l->bundle->group.comm, &request);
    kilter_status status = kl_group_await(&l->bundle->group, code, request, error);
    if (status == KILTER_OK && word->error.status != KILTER_OK)
        return kl_fail(error, KILTER_ERR_RECORD, "opening loop '%s': %s", l->name, word->error.text);
    return status == KILTER_OK && word->made ? say_who_is_where(l, error) : status;
}

void kl_loop_record_array(kilter_loop *l, size_t bytes, uint64_t halo) {
    if (l->record)
        kl_trace_array(
            l->record->trace,
            &(kl_trace_array_row){.array = l->rank.layout.array_count, .row_bytes = bytes, .ghost = halo});
}

/* --- a round --- */

static void write_decision(const kilter_loop *l, double at_s, const kl_decision *decision) {
    kl_trace_decision(
        l->record->trace,
        &(kl_trace_moment){.now_s = at_s, .chunk = UINT64_MAX, .round = l->rank.meter.all.rounds}, decision);
}

static void write_judgement(const kilter_loop *l, double at_s, kl_decision_kind kind,
                            const kl_steer_plan *plan) {
    const kl_judgement *j = &plan->judgement;
    kl_decision d = {.kind = kind,
                     .subject = KL_SUBJECT_ALL,
                     .count = kind == KL_DECIDES_MOVE ? plan->moved : 0,
                     .gain_s = kind == KL_DECIDES_REST ? 0 : j->gain_s,
                     .cost_s = kind == KL_DECIDES_MOVE ? j->cost_s : 0};
    snprintf(d.reason, sizeof d.reason, "%s", j->reason);
    write_decision(l, at_s, &d);
}

static void write_outcome(const struct kl_loop_record *r, double came_s, double spent_s) {
    if (r->moved_in > 0)
        kl_trace_settled(r->trace, &(kl_trace_outcome){.round = r->moved_in,
                                                       .settled_s = r->heard_s,
                                                       .came_s = came_s,
                                                       .spent_s = spent_s});
}

/* Write what the last move has gained so far, because the loop may end before its final outcome is known. */
static void write_open_outcome(const kilter_loop *l) {
    double came_s, spent_s;
    if (l->record->moved_in < l->rank.meter.all.rounds &&
        kl_steer_open_move(l->rank.rounds.steer, &came_s, &spent_s))
        write_outcome(l->record, came_s, spent_s);
}

/* Write a decision to stay. Leave it out if it has the same verdict as the decision written last, or if a
 * decision to stay was written shortly before. So if two verdicts alternate, some decisions are not
 * written. */
static bool write_stay(const kilter_loop *l, double at_s, const kl_steer_plan *plan) {
    struct kl_loop_record *r = l->record;
    const kl_judgement *j = &plan->judgement;
    bool first = r->stayed_s == 0;
    if (plan->now_s <= 0 || (!first && (j->verdict == r->verdict || at_s - r->stayed_s < RESOLUTION * at_s)))
        return false;
    write_judgement(l, at_s, j->verdict == KL_STAY_BALANCED ? KL_DECIDES_STAY : KL_DECIDES_WAIT, plan);
    r->verdict = j->verdict;
    r->stayed_s = at_s;
    return true;
}

static bool write_decisions(const kilter_loop *l, double at_s, const kl_steer_plan *plan) {
    struct kl_loop_record *r = l->record;
    uint32_t rests = kl_steer_account(l->rank.rounds.steer)->rests;
    bool blocks = l->rank.flow.block != r->block, rests_now = rests != r->rests;
    if (blocks) {
        kl_decision d = {.kind = KL_DECIDES_BLOCK, .subject = KL_SUBJECT_ALL, .count = l->rank.flow.block};
        snprintf(d.reason, sizeof d.reason,
                 "blocks of %llu instead of %llu elements: the model forecasts the least time for them",
                 (unsigned long long)l->rank.flow.block, (unsigned long long)r->block);
        write_decision(l, at_s, &d);
    }
    r->block = l->rank.flow.block;
    r->rests = rests;
    if (l->options.fixed)
        return blocks;
    if (plan->settled) {
        write_outcome(r, plan->settled_came_s, plan->settled_cost_s);
        r->moved_in = 0;
    }
    if (rests_now) {
        write_judgement(l, at_s, KL_DECIDES_REST, plan);
        r->verdict = plan->judgement.verdict;
    }
    if (plan->move) {
        struct kl_loop_record *r = l->record;
        write_judgement(l, at_s, KL_DECIDES_MOVE, plan);
        r->moved_in = l->rank.meter.all.rounds;
        r->verdict = plan->judgement.verdict;
    }
    return blocks || plan->move || rests_now || write_stay(l, at_s, plan);
}

/* Write a decision if the number of ranks that are pinned to their cores has changed. A change from one
 * number above 0 to another is left out if such a decision was written shortly before. */
static void write_pinned(const kilter_loop *l, double at_s, const kl_rank_report *reports) {
    struct kl_loop_record *r = l->record;
    uint64_t pinned = 0, before = r->pinned;
    for (uint32_t i = 0; i < l->bundle->group.ranks; i++)
        pinned += reports[i].pinned;
    if (pinned == before || (pinned > 0 && before > 0 && at_s - r->pinned_s < RESOLUTION * at_s))
        return;
    kl_decision d = {.kind = KL_DECIDES_PIN, .subject = KL_SUBJECT_ALL, .count = pinned};
    snprintf(d.reason, sizeof d.reason, "ranks that stay on their cores: %llu instead of %llu; %s",
             (unsigned long long)pinned, (unsigned long long)before,
             pinned > before ? "other processes use cores that the ranks need"
                             : "this is no longer needed or useful, or other threads of the program compute");
    write_decision(l, at_s, &d);
    r->pinned = pinned;
    r->pinned_s = at_s;
}

static void write_round(const kilter_loop *l, const kl_rank_report *reports, const kl_steer_plan *plan) {
    struct kl_loop_record *r = l->record;
    r->written_s = reports[0].elapsed_s;
    kl_trace_round(r->trace, &(kl_trace_round_row){.round = l->rank.meter.all.rounds,
                                                   .execution = kl_meter_sweep(&l->rank.meter),
                                                   .at_s = r->written_s,
                                                   .period_s = plan->period.target_s,
                                                   .now_s = plan->now_s,
                                                   .then_s = plan->then_s,
                                                   .block = l->rank.flow.block});
    for (uint32_t i = 0; i < l->bundle->group.ranks; i++) {
        bool ranged = !l->rank.kind->anywhere;
        kl_trace_share(r->trace, &(kl_trace_share_row){.round = l->rank.meter.all.rounds,
                                                       .rank = i,
                                                       .lo = ranged ? reports[i].lo : UINT64_MAX,
                                                       .count = ranged ? reports[i].hi - reports[i].lo
                                                                       : l->rank.layout.target[i],
                                                       .done = r->did[i].iterations,
                                                       .busy_s = r->did[i].busy_s,
                                                       .moving_s = r->did[i].moving_s,
                                                       .rate_per_s = kl_steer_rate(l->rank.rounds.steer, i)});
        r->did[i] = (did){0};
    }
    write_open_outcome(l);
}

void kl_loop_record_round(const kilter_loop *l) {
    struct kl_loop_record *r = l->record;
    const kl_rank_report *reports = l->rank.rounds.all;
    const kl_steer_plan *plan = &l->rank.rounds.plan;
    if (!r)
        return;
    double at_s = r->heard_s = reports[0].elapsed_s;
    for (uint32_t i = 0; i < l->bundle->group.ranks; i++) {
        r->did[i].iterations += reports[i].iterations;
        r->did[i].busy_s += reports[i].busy_s;
        r->did[i].moving_s += reports[i].moving_s;
    }
    write_pinned(l, at_s, reports);
    if (write_decisions(l, at_s, plan) || at_s - r->written_s >= RESOLUTION * at_s)
        write_round(l, reports, plan);
}

void kl_loop_record_refused(const kilter_loop *l, const char *reason) {
    struct kl_loop_record *r = l->record;
    if (!r)
        return;
    kl_decision d = {.kind = KL_DECIDES_REFUSED, .subject = KL_SUBJECT_ALL};
    snprintf(d.reason, sizeof d.reason, "%s", reason);
    write_decision(l, kl_loop_now_s(l) - l->bundle->group.opened_s, &d);
    if (r->moved_in > 0)
        kl_trace_refused(r->trace, r->moved_in);
    r->moved_in = 0;
}

void kl_loop_record_decision(const kilter_loop *l, double at_s, const kl_decision *decision) {
    if (l->record)
        write_decision(l, at_s, decision);
}

/* --- ending the record --- */

static uint64_t own_iterations(const kilter_loop *l) {
    uint64_t sum = 0;
    kl_span own;
    for (size_t k = 0; kl_rank_own(&l->rank, k, &own); k++)
        sum += own.hi - own.lo;
    return sum;
}

kilter_status kl_loop_record_ranks(kilter_loop *l, kilter_error *error) {
    if (!l->record_word.made)
        return KILTER_OK;
    struct kl_loop_record *r = l->record;
    const kl_trace_rank_row mine = {.rank = (uint32_t)l->bundle->group.rank,
                                    .iterations = own_iterations(l),
                                    .elapsed_s = l->rank.meter.all.elapsed_s,
                                    .waited_s = l->rank.meter.all.waited_s,
                                    .moving_s = l->rank.meter.all.moving_s};
    kilter_status status = gather(l, &mine, r ? r->ends : NULL, sizeof mine, error);
    for (uint32_t rank = 0; rank < l->bundle->group.ranks && r && status == KILTER_OK; rank++)
        kl_trace_rank(r->trace, &r->ends[rank]);
    return status;
}

kilter_status kl_loop_record_end(kilter_loop *l, const kilter_loop_summary *s, const kilter_error *failure,
                                 kilter_error *error) {
    struct kl_loop_record *r = l->record;
    if (!r)
        return KILTER_OK;
    double ended_s = kl_loop_now_s(l) - l->bundle->group.opened_s;
    if (failure && failure->status == KILTER_ERR_PEER && l->bundle->detector.words.rank > 0)
        kl_trace_worker_left(r->trace, (uint32_t)l->bundle->detector.words.rank, ended_s,
                             l->bundle->detector.words.text[0] ? l->bundle->detector.words.text
                                                               : "is dead, or has ended");
    if (l->rank.rounds.steer)
        write_open_outcome(l);
    kl_trace_loop_ended(
        r->trace, &(kl_trace_loop_end){
                      .ended_s = ended_s,
                      .elapsed_s = s->elapsed_s,
                      .executions = s->executions,
                      .rounds = s->rounds,
                      .moves = s->moves,
                      .moved = s->moved,
                      .block = s->block,
                      .gained_s = s->gained_s,
                      .came_s = s->came_s,
                      .cost_s = l->rank.rounds.steer ? kl_steer_account(l->rank.rounds.steer)->cost_s : 0,
                      .decision = s->decision,
                      .status = failure ? failure->text : "done"});
    kilter_status status = kl_trace_close(r->trace, ended_s, error);
    l->record = NULL;
    if (!failure) /* not freed after a failure, because MPI may still write into the record's memory */
        free_record(r);
    return status;
}
