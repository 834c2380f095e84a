/* The events engine: a policy played out on a described cluster, with a run record like any other. */
#include "simulate_events.h"

#include <stdlib.h>
#include <unistd.h>

#include "kilter/version.h"
#include "sys/sys.h"
#include "trace/trace.h"

/* A look at a worker held back, against an answer. */
static const double LOOK_PART = 0.1;

typedef struct simulation {
    const kl_events_farm *farm;
    kl_trace *trace; /* NULL: no record */
    uint64_t run;
} simulation;

static void planned(void *self, const kl_plan *plan, const kl_play_chunk *chunk, double now_s) {
    const simulation *sim = self;
    kl_trace_decision(sim->trace, &(kl_trace_decision_row){
                                      .run = sim->run,
                                      .chunk = chunk ? chunk->id : UINT64_MAX,
                                      .at_s = now_s,
                                      .worker = plan->worker,
                                      .kind = chunk ? "deal" : "withhold",
                                      .count = plan->count,
                                      .reason = plan->reason,
                                      .forecast_s = plan->finish_s,
                                      .gain_s = plan->gain_s,
                                  });
}

static void rescued(void *self, const kl_rescue *rescue, double now_s) {
    const simulation *sim = self;
    kl_trace_decision(sim->trace, &(kl_trace_decision_row){
                                      .run = sim->run,
                                      .chunk = UINT64_MAX,
                                      .at_s = now_s,
                                      .worker = rescue->from,
                                      .kind = rescue->act == KL_RESCUE_RECALL ? "recall" : "copy",
                                      .count = rescue->tasks,
                                      .reason = rescue->reason,
                                      .forecast_s = rescue->finish_s,
                                      .gain_s = rescue->gain_s,
                                  });
}

/* The tasks that it was the first to do. */
static void ended(void *self, const kl_play_chunk *chunk) {
    const simulation *sim = self;
    kl_trace_chunk(sim->trace, &(kl_trace_chunk_row){
                                   .run = sim->run,
                                   .chunk = chunk->id,
                                   .lo = chunk->lo,
                                   .hi = chunk->lo + chunk->counted,
                                   .worker = chunk->worker,
                                   .units = (double)chunk->done,
                                   .dealt_s = chunk->dealt_s,
                                   .began_s = chunk->began_s,
                                   .ended_s = chunk->ended_s,
                                   .busy_s = chunk->busy_s,
                                   .bytes_out = (uint64_t)chunk->bytes_out,
                                   .bytes_in = (uint64_t)chunk->bytes_in,
                               });
}

static double task_s(void *self, uint64_t run, uint64_t index) {
    return kl_task_s(self, run, index);
}

static void record_measurement(kl_trace *trace, int64_t worker, const char *kind, double at_s, double value,
                               double sd, uint64_t count) {
    kl_trace_measurement(trace, &(kl_trace_measurement_row){at_s, worker, kind, value, sd, count});
}

static void record_end(const simulation *sim, const kl_snapshot *s, const kl_simulated *r, double end_s) {
    for (uint32_t i = 0; i < s->slots && sim->trace; i++) {
        const kl_stat *unit_s = &s->workers[i].run_unit_s;
        if (unit_s->count > 0)
            record_measurement(sim->trace, i, "unit_s", end_s, unit_s->mean, kl_stat_sd(unit_s),
                               unit_s->count);
    }
    record_measurement(sim->trace, -1, "answer_s", end_s, s->answer_s, 0, r->chunks);
    record_measurement(sim->trace, -1, "message_fixed_s", end_s, s->message.fixed_s, 0, 1);
    record_measurement(sim->trace, -1, "message_per_byte_s", end_s, s->message.per_unit_s, 0, 1);
    record_measurement(sim->trace, -1, "round_trip_s", end_s, s->round_trip_s, 0, 1);
    kl_trace_iteration_ended(sim->trace, &(kl_trace_iteration_end){.run = sim->run,
                                                                   .chunks = r->chunks,
                                                                   .workers = r->workers,
                                                                   .ended_s = end_s,
                                                                   .bound_s = r->bound_s,
                                                                   .equal_split_s = kl_model_equal_split_s(s),
                                                                   .decision = "",
                                                                   .status = "done"});
}

static kilter_status iterate(simulation *sim, kl_rehearsal *rehearsal, double begins_s, kl_simulated *result,
                             kilter_error *error) {
    const kl_events_farm *f = sim->farm;
    kl_trace_iteration(sim->trace, &(kl_trace_iteration_row){.run = sim->run,
                                                             .tasks = f->tasks->count,
                                                             .units = (double)f->tasks->count,
                                                             .policy = kl_policy_name(f->policy),
                                                             .began_s = begins_s});
    kl_play_run run = {.tasks = f->tasks->count,
                       .begins_s = begins_s,
                       .task_s = f->tasks->law == KL_LAW_CONST ? NULL : task_s,
                       .task_self = (void *)f->tasks,
                       .even_s = f->tasks->mean_s,
                       .task_bytes = f->task_bytes,
                       .result_bytes = f->result_bytes,
                       .answer_s = f->answer_s,
                       .startup_s = f->startup_s,
                       .look_s = LOOK_PART * f->answer_s};
    kl_rehearsal_watch watch = {.self = sim, .planned = planned, .rescued = rescued, .ended = ended};
    kl_play_outcome out;
    kilter_status status = kl_rehearse(rehearsal, &run, sim->trace ? &watch : NULL, &out, error);
    if (status != KILTER_OK)
        return status;
    *result = (kl_simulated){.elapsed_s = out.elapsed_s,
                             .bound_s = kl_cluster_bound_s(f->cluster, begins_s, out.work_s),
                             .chunks = out.chunks,
                             .messages = out.chunks + out.messages,
                             .workers = out.workers};
    record_end(sim, kl_rehearsal_snapshot(rehearsal), result, begins_s + out.elapsed_s);
    return KILTER_OK;
}

static kilter_status open_record(simulation *sim, kilter_error *error) {
    char host[KL_CLUSTER_HOST_BYTES];
    kl_cluster_master_host(sim->farm->cluster, host);
    kl_trace_run_row row = {.program = "kilter simulate",
                            .version = KILTER_VERSION,
                            .transport = "events",
                            .policy = kl_policy_name(sim->farm->policy),
                            .host = host,
                            .began_unix_s = kl_unix_time_s(),
                            .pid = getpid(),
                            .simulated = true,
                            .control = ""};
    kilter_status status = kl_trace_open(sim->farm->record, &row, &sim->trace, error);
    for (uint32_t i = 0; status == KILTER_OK && i < sim->farm->cluster->workers; i++) {
        kl_cluster_worker_host(i, host);
        kl_trace_worker(sim->trace, &(kl_trace_worker_row){.worker = i, .host = host, .binding = ""});
    }
    return status;
}

kilter_status kl_events_run(const kl_events_farm *farm, kl_simulated *results, kilter_error *error) {
    simulation sim = {.farm = farm};
    kilter_status status = farm->record ? open_record(&sim, error) : KILTER_OK;
    if (status != KILTER_OK)
        return status;
    kl_rehearsal *rehearsal = kl_rehearsal_new(farm->cluster, farm->policy, NULL);
    if (!rehearsal)
        status = kl_fail(error, KILTER_ERR_MEMORY, "simulating %u workers: memory ran out",
                         (unsigned)farm->cluster->workers);
    double at_s = 0;
    for (uint32_t i = 0; status == KILTER_OK && i < farm->iterations; i++) {
        sim.run = i;
        status = iterate(&sim, rehearsal, at_s, &results[i], error);
        at_s += status == KILTER_OK ? results[i].elapsed_s : 0;
    }
    kl_rehearsal_free(rehearsal);
    kilter_status closed =
        farm->record ? kl_trace_close(sim.trace, at_s, status == KILTER_OK ? error : NULL) : KILTER_OK;
    return status == KILTER_OK ? closed : status;
}
