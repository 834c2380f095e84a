/* The simulation engine events: simulate the farm's master and workers on a described cluster, and write a
 * run record. */
#include "simulate_events.h"

#include <unistd.h>

#include "kilter/version.h"
#include "sys/sys.h"
#include "trace/trace.h"

static double task_s(void *self, uint64_t run, uint64_t index) {
    return kl_task_s(self, run, index);
}

static kilter_status open_record(const kl_events_farm *farm, kl_trace **trace, kilter_error *error) {
    char host[KL_CLUSTER_HOST_BYTES];
    kl_cluster_master_host(farm->cluster, host);
    kl_trace_run_row row = {.program = "kilter simulate",
                            .version = KILTER_VERSION,
                            .transport = "events",
                            .policy = kl_policy_name(farm->policy),
                            .host = host,
                            .began_unix_s = kl_unix_time_s(),
                            .pid = getpid(),
                            .simulated = true,
                            .control = ""};
    return kl_trace_open(farm->record, &row, trace, error);
}

static kilter_status run_next(const kl_events_farm *f, kl_sim *sim, kl_simulated *result,
                              kilter_error *error) {
    kl_sim_run run = {.tasks = f->tasks->count,
                      .task_s = f->tasks->law == KL_LAW_CONST ? NULL : task_s,
                      .self = (void *)f->tasks,
                      .even_s = f->tasks->mean_s,
                      .task_bytes = (size_t)f->task_bytes,
                      .result_bytes = (size_t)f->result_bytes};
    kl_sim_outcome out;
    kilter_status status = kl_sim_run_next(sim, &run, &out, error);
    if (status == KILTER_OK)
        *result = (kl_simulated){.elapsed_s = out.elapsed_s,
                                 .bound_s = kl_cluster_bound_s(f->cluster, out.began_s, out.work_s),
                                 .chunks = out.chunks,
                                 .messages = out.messages,
                                 .workers = out.workers};
    return status;
}

static kilter_status run_all(const kl_events_farm *farm, kl_sim *sim, kl_simulated *results,
                             kilter_error *error) {
    kl_trace *trace = NULL;
    kilter_status status = farm->record ? open_record(farm, &trace, error) : KILTER_OK;
    if (trace)
        kl_sim_record(sim, trace);
    for (uint32_t i = 0; status == KILTER_OK && i < farm->iterations; i++)
        status = run_next(farm, sim, &results[i], error);
    kilter_status closed = kl_trace_close(trace, kl_sim_now_s(sim), status == KILTER_OK ? error : NULL);
    return status == KILTER_OK ? closed : status;
}

kilter_status kl_events_run(const kl_events_farm *farm, kl_simulated *results, kilter_error *error) {
    kl_sim_farm what = {.cluster = farm->cluster,
                        .policy = farm->policy,
                        .name_host = kl_cluster_worker_host,
                        .answer_s = farm->answer_s,
                        .byte_s = farm->byte_s,
                        .startup_s = farm->startup_s};
    kl_sim *sim;
    kilter_status status = kl_sim_new(&what, &sim, error);
    if (status != KILTER_OK)
        return status;
    status = run_all(farm, sim, results, error);
    kl_sim_free(sim);
    return status;
}
