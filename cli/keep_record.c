/* Write the keeper's decisions into a run record. The record has the form of a distributed loop's record. The
 * kind of the loop is "kept", and each decision is a round. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keep.h"
#include "kilter/version.h"

static const char *program_name(const kl_keep_options *options) {
    const char *slash = strrchr(options->program[0], '/');
    return slash ? slash + 1 : options->program[0];
}

void kl_keep_record_open(kl_keep_record *r, const kl_keep_options *options, const char *folder,
                         const char *launcher) {
    char host[KL_HOST_BYTES];
    kilter_error error;
    kl_host_name(host);
    char *path = kl_keep_file(folder, "keep.kilter"), *here = getcwd(NULL, 0);
    *r = (kl_keep_record){.opened_s = kl_monotonic_s()};
    const kl_trace_run_row run = {.program = program_name(options),
                                  .version = KILTER_VERSION,
                                  .transport = launcher,
                                  .policy = options->pick ? options->pick : "forecast",
                                  .host = host,
                                  .began_unix_s = kl_unix_time_s(),
                                  .pid = getpid(),
                                  .folder = here,
                                  .loop = true};
    if (path && kl_trace_open(path, &run, &r->trace, &error) != KILTER_OK)
        fprintf(stderr, "kilter run: %s; the run goes on without a record\n", error.text);
    kl_trace_loop(r->trace, &(kl_trace_loop_row){.name = program_name(options),
                                                 .kind = "kept",
                                                 .ranks = options->ranks,
                                                 .fixed = options->fixed});
    free(path);
    free(here);
}

void kl_keep_record_decision(kl_keep_record *r, const kl_keeper_action *a, double now_s) {
    r->decisions++;
    r->moves += a->decision.kind == KL_DECIDES_RELOCATE;
    r->gained_s += a->decision.gain_s;
    const kl_trace_moment when = {
        .now_s = now_s, .opened_s = r->opened_s, .chunk = UINT64_MAX, .round = a->number};
    kl_trace_decision(r->trace, &when, &a->decision);
}

void kl_keep_record_hosts(kl_keep_record *r, const kl_keeper *k, double now_s) {
    for (uint64_t i = 0; i < k->count; i++)
        if (k->hosts[i].ranks > 0)
            kl_trace_worker(r->trace, &(kl_trace_worker_row){.worker = (uint32_t)i,
                                                             .host = k->hosts[i].name,
                                                             .binding = "",
                                                             .joined_s = now_s - r->opened_s});
}

/* Record the outcome of a decision. This may happen several times; the last outcome counts. */
void kl_keep_record_came(kl_keep_record *r, const kl_keeper_action *a, double now_s) {
    if (a->number == r->last) {
        r->came_s -= r->last_came_s;
        r->cost_s -= r->last_spent_s;
    }
    r->last = a->number;
    r->last_came_s = a->came_s;
    r->last_spent_s = a->spent_s;
    r->came_s += a->came_s;
    r->cost_s += a->spent_s;
    kl_trace_came(r->trace, &(kl_trace_outcome){.round = a->number,
                                                .settled_s = now_s - r->opened_s,
                                                .came_s = a->came_s,
                                                .spent_s = a->spent_s});
}

void kl_keep_record_close(kl_keep_record *r, const kl_keeper *k, const char *status, double now_s) {
    kilter_error error;
    double ended_s = now_s - r->opened_s;
    kl_trace_loop_ended(r->trace, &(kl_trace_loop_end){.ended_s = ended_s,
                                                       .elapsed_s = ended_s,
                                                       .executions = k->watch.sweeps,
                                                       .rounds = r->decisions,
                                                       .moves = r->moves,
                                                       .gained_s = r->gained_s,
                                                       .came_s = r->came_s,
                                                       .cost_s = r->cost_s,
                                                       .decision = "",
                                                       .status = status});
    if (kl_trace_close(r->trace, ended_s, &error) != KILTER_OK)
        fprintf(stderr, "kilter run: %s\n", error.text);
    r->trace = NULL;
}
