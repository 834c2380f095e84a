/* kilter simulate --organise peers: simulate workers that share the tasks without a master. */
#include "simulate_peers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/print.h"
#include "sim/sim.h"

enum { MOST_POLICIES = 16 };

typedef struct answer {
    const kl_peers_question *q;
    const kl_help *policies[MOST_POLICIES];
    kl_sim_peers_outcome outcomes[MOST_POLICIES];
    size_t count;
} answer;

/* --- reading the policies --- */

static kilter_status add(answer *a, const kl_help *policy, kilter_error *error) {
    for (size_t i = 0; i < a->count; i++)
        if (a->policies[i] == policy)
            return kl_fail(error, KILTER_ERR_USAGE, "--policy: '%s' is in the list twice", policy->name);
    a->policies[a->count++] = policy;
    return KILTER_OK;
}

static kilter_status add_named(answer *a, const char *name, size_t length, kilter_error *error) {
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), name);
    kilter_status status = KILTER_OK;
    if (strcmp(word, "all") == 0) {
        for (size_t i = 0; status == KILTER_OK && kl_help_at(i); i++)
            status = add(a, kl_help_at(i), error);
        return status;
    }
    const kl_help *policy = kl_help_find(word);
    return policy ? add(a, policy, error)
                  : kl_fail(error, KILTER_ERR_USAGE,
                            "--policy: peers have no policy '%.*s'; 'kilter help simulate' lists them",
                            (int)length, name);
}

static kilter_status read_policies(answer *a, const char *list, kilter_error *error) {
    kilter_status status = KILTER_OK;
    while (list && status == KILTER_OK) {
        size_t length = strcspn(list, ",");
        status = add_named(a, list, length, error);
        list = list[length] == ',' ? list + length + 1 : NULL;
    }
    return status;
}

/* --- running --- */

static double task_s(void *self, uint64_t run, uint64_t index) {
    return kl_task_s(self, run, index);
}

static kilter_status simulate(answer *a, size_t i, kilter_error *error) {
    const kl_peers_question *q = a->q;
    kl_sim_peers peers = {.cluster = q->cluster,
                          .help = a->policies[i],
                          .message_s = q->message_s,
                          .attends = !q->between,
                          .seed = q->tasks->seed};
    kl_sim_run run = {.tasks = q->tasks->count,
                      .task_s = q->tasks->law == KL_LAW_CONST ? NULL : task_s,
                      .self = (void *)q->tasks,
                      .even_s = q->tasks->mean_s,
                      .task_bytes = (size_t)q->task_bytes};
    return kl_sim_peers_run(&peers, &run, &a->outcomes[i], error);
}

/* --- printing --- */

static double efficiency(const kl_sim_peers_outcome *o) {
    return o->elapsed_s > 0 ? o->bound_s / o->elapsed_s : 1;
}

static double each(const kl_sim_peers_outcome *o, uint64_t all) {
    return (double)all / o->peers;
}

static void print_table(const answer *a) {
    kl_say(stdout, "platform", "%s: %u peer%s", a->q->platform, a->q->cluster->workers,
           a->q->cluster->workers == 1 ? "" : "s");
    kl_say(stdout, "tasks", "%s, seed %" PRIu64, a->q->tasks_spec, a->q->tasks->seed);
    if (a->outcomes[0].deaths > 0)
        kl_say(stdout, "deaths", "%u peer%s died; every task is counted once", a->outcomes[0].deaths,
               a->outcomes[0].deaths == 1 ? "" : "s");
    printf("\n%-8s  %9s  %9s  %10s  %13s  %6s  %10s  %6s\n", "policy", "makespan", "bound", "efficiency",
           "messages/peer", "most", "moved/peer", "rounds");
    for (size_t i = 0; i < a->count; i++) {
        const kl_sim_peers_outcome *o = &a->outcomes[i];
        printf("%-8s  %9s  %9s  %10.4f  %13.1f  %6" PRIu64 "  %10.1f  %6u\n", a->policies[i]->name,
               kl_time_words(o->elapsed_s).text, kl_time_words(o->bound_s).text, efficiency(o),
               each(o, o->messages), o->most_messages, each(o, o->moved), o->rounds);
    }
}

static void print_outcome(kl_json *j, const kl_help *policy, const kl_sim_peers_outcome *o) {
    kl_json_open(j, NULL, '{');
    kl_json_text(j, "policy", policy->name);
    kl_json_number(j, "elapsed_s", o->elapsed_s);
    kl_json_number(j, "bound_s", o->bound_s);
    kl_json_number(j, "efficiency", efficiency(o));
    kl_json_number(j, "messages_per_peer", each(o, o->messages));
    kl_json_count(j, "most_messages", o->most_messages);
    kl_json_number(j, "moved_per_peer", each(o, o->moved));
    kl_json_count(j, "counted", o->results);
    kl_json_count(j, "counted_again", o->twice);
    kl_json_count(j, "executed", o->executed);
    kl_json_count(j, "deaths", o->deaths);
    kl_json_count(j, "adopted", o->adopted);
    kl_json_count(j, "rounds", o->rounds);
    kl_json_close(j, '}');
}

static void print_json(const answer *a) {
    kl_json j = {.out = stdout, .first = true};
    kl_json_open(&j, NULL, '{');
    kl_json_text(&j, "organise", "peers");
    kl_json_text(&j, "platform", a->q->platform);
    kl_json_count(&j, "peers", a->q->cluster->workers);
    kl_json_text(&j, "tasks", a->q->tasks_spec);
    kl_json_count(&j, "seed", a->q->tasks->seed);
    kl_json_number(&j, "message_s", a->q->message_s);
    kl_json_text(&j, "messages", a->q->between ? "between tasks" : "at once");
    kl_json_open(&j, "policies", '[');
    for (size_t i = 0; i < a->count; i++)
        print_outcome(&j, a->policies[i], &a->outcomes[i]);
    kl_json_close(&j, ']');
    kl_json_close(&j, '}');
    putchar('\n');
}

kilter_status kl_simulate_peers(const kl_peers_question *question, kilter_error *error) {
    answer a = {.q = question};
    if (question->cluster->workers > KL_PEERS_MOST)
        return kl_fail(error, KILTER_ERR_USAGE, "--platform: %u hosts; give at most %d for peers",
                       question->cluster->workers, KL_PEERS_MOST);
    kilter_status status = read_policies(&a, question->policies ? question->policies : "help", error);
    for (size_t i = 0; i < a.count && status == KILTER_OK; i++)
        status = simulate(&a, i, error);
    if (status == KILTER_OK)
        (question->json ? print_json : print_table)(&a);
    return status;
}
