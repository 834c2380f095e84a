/* kilter simulate: run a farm under one or more policies on a described platform. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "report/print.h"
#include "report/report.h"
#include "simulate.h"
#include "simulate_events.h"
#include "simulate_peers.h"
#include "sys/sys.h"

/* For more workers than this number, the default engine is events. */
enum { MOST_SMPI_WORKERS = 2000 };
enum { MOST_POLICIES = 64, MOST_ITERATIONS = 100000 };
#define MOST_BYTES 0x1p40
/* Seconds that a real master needs for one message, on a host of speed 1 (docs/results/bench.md). */
#define ANSWER_S 10e-6
/* Processor seconds that a peer spends on each message that it sends or receives. */
#define MESSAGE_S 5e-6

/* The values of the command's options. */
typedef struct question {
    const char *platform, *tasks, *policy, *organise, *engine, *record, *gantt, *write_platform;
    uint64_t seed, task_bytes, result_bytes;
    double answer_s, byte_s, startup_s, message_s;
    uint32_t iterations;
    bool json, between;
} question;

/* The options, and values derived from them. */
typedef struct simulation {
    question q;
    bool smpi; /* true: the engine is smpi; false: the engine is events */
    bool file; /* true: the platform is a SimGrid file, so `cluster` is not set */
    kl_cluster cluster;
    kl_tasks tasks;
    const kl_policy *policies[MOST_POLICIES];
    size_t policy_count;
    kl_simulated *results; /* results of all runs under the first policy, then of all runs under the second
                            * policy, and so on */
} simulation;

/* --- checking the options --- */

static kilter_status add_policy(simulation *sim, const kl_policy *policy, kilter_error *error) {
    if (sim->policy_count == MOST_POLICIES)
        return kl_fail(error, KILTER_ERR_USAGE, "--policy: give at most %d policies", (int)MOST_POLICIES);
    for (size_t i = 0; i < sim->policy_count; i++)
        if (sim->policies[i] == policy)
            return kl_fail(error, KILTER_ERR_USAGE, "--policy: '%s' is in the list twice",
                           kl_policy_name(policy));
    sim->policies[sim->policy_count++] = policy;
    return KILTER_OK;
}

static kilter_status add_all_policies(simulation *sim, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = 0; status == KILTER_OK && i < kl_policy_count(); i++)
        status = add_policy(sim, kl_policy_at(i), error);
    return status;
}

static kilter_status read_policies(const char *list, simulation *sim, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (const char *at = list; status == KILTER_OK && at;
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char name[32];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), at);
        const kl_policy *policy = kl_policy_find(name);
        if (policy)
            status = add_policy(sim, policy, error);
        else if (strcmp(name, "all") == 0)
            status = add_all_policies(sim, error);
        else
            status = kl_fail(error, KILTER_ERR_USAGE,
                             "--policy: there is no policy '%.*s'; 'kilter help simulate' lists them",
                             (int)length, at);
    }
    return status;
}

/* Return whether --platform names a SimGrid file. Any other text is a SPEC, which begins with the number
 * of hosts. */
static bool is_file(const char *platform) {
    struct stat info;
    size_t size = strlen(platform);
    return (size > 4 && strcmp(platform + size - 4, ".xml") == 0) ||
           (strchr(platform, '/') && !isdigit((unsigned char)platform[0])) ||
           (stat(platform, &info) == 0 && S_ISREG(info.st_mode));
}

static kilter_status check_file(const char *platform, kilter_error *error) {
    struct stat info;
    int failed = stat(platform, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
    if (!failed && access(platform, R_OK) != 0)
        failed = errno;
    return failed ? kl_fail(error, KILTER_ERR_INPUT,
                            "--platform '%s': %s; name a platform file of SimGrid, or give a SPEC, such as "
                            "16x1.0,16x0.25",
                            platform, strerror(failed))
                  : KILTER_OK;
}

static kilter_status read_platform(simulation *sim, kilter_error *error) {
    kilter_error why;
    if (!sim->q.platform)
        return kl_fail(error, KILTER_ERR_USAGE, "--platform is missing; give a SPEC, such as 16x1.0,16x0.25");
    if ((sim->file = is_file(sim->q.platform)))
        return check_file(sim->q.platform, error);
    kilter_status status = kl_cluster_parse(sim->q.platform, &sim->cluster, &why);
    return status == KILTER_OK ? status : kl_fail(error, status, "--platform: %.480s", why.text);
}

/* Choose the engine smpi if it was built and can simulate this many workers. Otherwise choose events. */
static kilter_status choose_engine(simulation *sim, kilter_error *error) {
    char *program = kl_smpi_program();
    bool there = program != NULL;
    free(program);
    bool small = sim->file || sim->cluster.workers <= MOST_SMPI_WORKERS;
    sim->smpi = sim->q.engine ? strcmp(sim->q.engine, "smpi") == 0 : there && small;
    if (sim->file && !sim->smpi)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "--platform '%s': the events engine does not read SimGrid's files%s; give a SPEC, such as "
            "16x1.0,16x0.25",
            sim->q.platform, sim->q.engine ? "" : ", and the smpi engine was not built");
    return KILTER_OK;
}

static kilter_status read_tasks(simulation *sim, kilter_error *error) {
    kilter_error why;
    if (!sim->q.tasks)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--tasks is missing; give a SPEC, such as 8000@lognormal(1ms,1.0)");
    kilter_status status = kl_tasks_parse(sim->q.tasks, &sim->tasks, &why);
    sim->tasks.seed = sim->q.seed;
    return status == KILTER_OK ? status : kl_fail(error, status, "--tasks: %.480s", why.text);
}

static kilter_status check_startup(const simulation *sim, kilter_error *error) {
    return sim->smpi && sim->q.startup_s > 0
               ? kl_fail(error, KILTER_ERR_USAGE,
                         "--startup-s: only the events engine has it; with smpi, the links of the platform "
                         "and --answer-s give the costs of messages")
               : KILTER_OK;
}

/* Refuse hosts that join or die if there is a master: only peers can be simulated on such hosts. */
static kilter_status check_hosts(const simulation *sim, kilter_error *error) {
    bool peers = !sim->file && sim->cluster.near > 0;
    for (uint32_t i = 0; !sim->file && i < sim->cluster.group_count; i++)
        peers |= sim->cluster.groups[i].host.joins_s > 0 || sim->cluster.groups[i].host.dies_by_s > 0;
    return peers ? kl_fail(error, KILTER_ERR_USAGE,
                           "--platform: join(), die() and cluster= need --organise peers")
                 : KILTER_OK;
}

static kilter_status read_question(simulation *sim, kilter_error *error) {
    kilter_status status = read_platform(sim, error);
    if (status == KILTER_OK)
        status = check_hosts(sim, error);
    if (status == KILTER_OK)
        status = choose_engine(sim, error);
    if (status == KILTER_OK)
        status = read_tasks(sim, error);
    if (status == KILTER_OK)
        status = check_startup(sim, error);
    if (status == KILTER_OK)
        status = read_policies(sim->q.policy ? sim->q.policy : "auto", sim, error);
    if (status == KILTER_OK && sim->q.gantt && sim->policy_count > 1)
        status = kl_fail(error, KILTER_ERR_USAGE,
                         "--gantt draws the run of one policy; %zu policies were given", sim->policy_count);
    if (status != KILTER_OK)
        return status;
    sim->results = calloc(sim->policy_count * sim->q.iterations, sizeof *sim->results);
    return sim->results ? KILTER_OK
                        : kl_fail(error, KILTER_ERR_MEMORY, "keeping the results of %u runs: memory ran out",
                                  sim->q.iterations);
}

/* --- simulating --- */

/* Return the name of a policy's record, malloc'd. With one policy, the name is `file`. With several, the
 * policy's name is inserted before the ending of `file`. NULL: memory ran out. */
static char *record_name(const simulation *sim, const char *file, const kl_policy *policy) {
    if (sim->policy_count == 1)
        return kl_text("%s", file);
    const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    const char *ending = strrchr(name, '.');
    if (!ending || ending == name)
        ending = name + strlen(name);
    return kl_text("%.*s-%s%s", (int)(ending - file), file, kl_policy_name(policy), ending);
}

static kilter_status simulate_events(const simulation *sim, const kl_policy *policy, const char *record,
                                     kl_simulated *results, kilter_error *error) {
    kl_events_farm farm = {.cluster = &sim->cluster,
                           .tasks = &sim->tasks,
                           .policy = policy,
                           .iterations = sim->q.iterations,
                           .task_bytes = (double)sim->q.task_bytes,
                           .result_bytes = (double)sim->q.result_bytes,
                           .answer_s = sim->q.answer_s,
                           .byte_s = sim->q.byte_s,
                           .startup_s = sim->q.startup_s,
                           .record = record};
    return kl_events_run(&farm, results, error);
}

/* Write the cluster into a file in memory, which the simulation program can open by name. No file is left if
 * the process is killed. */
static kilter_status write_in_memory(const kl_cluster *cluster,
                                     kilter_status (*write)(const kl_cluster *, FILE *, kilter_error *),
                                     FILE **file, char **name, kilter_error *error) {
    int fd = memfd_create("kilter", 0);
    *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    *name = *file ? kl_text("/proc/self/fd/%d", fd) : NULL;
    kilter_status status = *name ? write(cluster, *file, error) : KILTER_OK;
    if (*name && fflush(*file) == 0)
        return status;
    status = kl_fail(error, KILTER_ERR_SYSTEM, "writing a platform: %s", strerror(errno));
    if (fd >= 0 && !*file)
        close(fd);
    return status;
}

/* Return the total time of all tasks at speed 1, in seconds. */
static double work_s(const simulation *sim, uint32_t iteration) {
    double sum = 0;
    for (uint64_t i = 0; i < sim->tasks.count; i++)
        sum += kl_task_s(&sim->tasks, iteration, i);
    return sum;
}

/* Simulate a farm with the engine smpi. The caller has set the platform, hosts and record of `farm`. */
static kilter_status simulate_smpi(const simulation *sim, const kl_policy *policy, kl_smpi_farm farm,
                                   kl_simulated *results, kilter_error *error) {
    farm.tasks = sim->q.tasks;
    farm.policy = kl_policy_name(policy);
    farm.iterations = sim->q.iterations;
    farm.seed = sim->tasks.seed;
    farm.task_bytes = sim->q.task_bytes;
    farm.result_bytes = sim->q.result_bytes;
    farm.answer_s = sim->q.answer_s;
    kl_smpi_iteration *its = calloc(sim->q.iterations, sizeof *its);
    if (!its)
        return kl_fail(error, KILTER_ERR_MEMORY, "keeping the results: memory ran out");
    kilter_status status = kl_smpi_run(&farm, its, error);
    for (uint32_t i = 0; status == KILTER_OK && i < sim->q.iterations; i++)
        results[i] = (kl_simulated){
            .elapsed_s = its[i].elapsed_s,
            .bound_s = sim->file ? its[i].bound_s
                                 : kl_cluster_bound_s(&sim->cluster, its[i].began_s, work_s(sim, i)),
            .chunks = its[i].chunks,
            .workers = its[i].workers,
        };
    free(its);
    return status;
}

/* Simulate on a platform that is given as a SPEC. SimGrid reads the platform from files that exist only
 * during the simulation. */
static kilter_status simulate_described(const simulation *sim, const kl_policy *policy, const char *record,
                                        kl_simulated *results, kilter_error *error) {
    FILE *platform = NULL, *hosts = NULL;
    char *platform_name = NULL, *hosts_name = NULL;
    kilter_status status =
        write_in_memory(&sim->cluster, kl_cluster_write_simgrid, &platform, &platform_name, error);
    if (status == KILTER_OK)
        status = write_in_memory(&sim->cluster, kl_cluster_write_hosts, &hosts, &hosts_name, error);
    if (status == KILTER_OK)
        status = simulate_smpi(
            sim, policy, (kl_smpi_farm){.platform = platform_name, .hosts = hosts_name, .record = record},
            results, error);
    if (platform)
        fclose(platform);
    if (hosts)
        fclose(hosts);
    free(platform_name);
    free(hosts_name);
    return status;
}

static kilter_status simulate(const simulation *sim, const kl_policy *policy, const char *record,
                              kl_simulated *results, kilter_error *error) {
    struct stat found;
    if (record && stat(record, &found) == 0 && found.st_size > 0)
        return kl_fail(error, KILTER_ERR_USAGE, "--record: %s exists; name another file", record);
    if (!sim->smpi)
        return simulate_events(sim, policy, record, results, error);
    if (sim->file)
        return simulate_smpi(sim, policy, (kl_smpi_farm){.platform = sim->q.platform, .record = record},
                             results, error);
    return simulate_described(sim, policy, record, results, error);
}

static kilter_status draw(const char *record, const char *picture, kilter_error *error) {
    kl_new_file file;
    kilter_status status = kl_new_file_open(picture, &file, error);
    if (status != KILTER_OK)
        return status;
    status = kl_gantt_write(record, -1, file.out, error);
    kilter_status ended = kl_new_file_end(&file, status == KILTER_OK, status == KILTER_OK ? error : NULL);
    return status != KILTER_OK ? status : ended;
}

/* Simulate with a record, and draw the picture of --gantt from the record. Delete the record unless the user
 * asked for it. */
static kilter_status simulate_and_draw(const simulation *sim, kilter_error *error) {
    char *folder = NULL, *record = NULL;
    kilter_status status = sim->q.record ? KILTER_OK : kl_private_dir(&folder, error);
    if (status == KILTER_OK) {
        record = sim->q.record ? kl_text("%s", sim->q.record) : kl_text("%s/simulated.kilter", folder);
        status = record ? simulate(sim, sim->policies[0], record, sim->results, error)
                        : kl_fail(error, KILTER_ERR_MEMORY, "naming a record: memory ran out");
    }
    if (status == KILTER_OK)
        status = draw(record, sim->q.gantt, error);
    if (folder) {
        if (record)
            unlink(record);
        rmdir(folder);
    }
    free(record);
    free(folder);
    return status;
}

static kilter_status simulate_all(const simulation *sim, kilter_error *error) {
    if (sim->q.gantt)
        return simulate_and_draw(sim, error);
    kilter_status status = KILTER_OK;
    for (size_t p = 0; status == KILTER_OK && p < sim->policy_count; p++) {
        char *record = sim->q.record ? record_name(sim, sim->q.record, sim->policies[p]) : NULL;
        if (sim->q.record && !record)
            return kl_fail(error, KILTER_ERR_MEMORY, "naming a record: memory ran out");
        status = simulate(sim, sim->policies[p], record, &sim->results[p * sim->q.iterations], error);
        free(record);
    }
    return status;
}

/* --- printing --- */

static const kl_simulated *result_of(const simulation *sim, size_t policy, uint32_t iteration) {
    return &sim->results[policy * sim->q.iterations + iteration];
}

static double efficiency(const kl_simulated *r) {
    return r->elapsed_s > 0 ? r->bound_s / r->elapsed_s : 1;
}

/* One policy's results, averaged over its runs. */
typedef struct means {
    double elapsed_s, bound_s, chunks, messages;
} means;

static means means_of(const simulation *sim, size_t policy) {
    means m = {0};
    double part = 1.0 / sim->q.iterations;
    for (uint32_t i = 0; i < sim->q.iterations; i++) {
        const kl_simulated *r = result_of(sim, policy, i);
        m.elapsed_s += part * r->elapsed_s;
        m.bound_s += part * r->bound_s;
        m.chunks += part * (double)r->chunks;
        m.messages += part * (double)r->messages;
    }
    return m;
}

static void cell_policy(const void *context, size_t row, char *cell) {
    const simulation *sim = context;
    kl_cell(cell, "%s", kl_policy_name(sim->policies[row]));
}
static void cell_elapsed(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%s", kl_time_words(means_of(context, row).elapsed_s).text);
}
static void cell_bound(const void *context, size_t row, char *cell) {
    kl_cell(cell, "%s", kl_time_words(means_of(context, row).bound_s).text);
}
static void cell_efficiency(const void *context, size_t row, char *cell) {
    means m = means_of(context, row);
    kl_cell_number(cell, "%.4f", m.elapsed_s > 0 ? m.bound_s / m.elapsed_s : 1);
}
static void cell_chunks(const void *context, size_t row, char *cell) {
    kl_cell_number(cell, "%.0f", means_of(context, row).chunks);
}
static void cell_messages(const void *context, size_t row, char *cell) {
    double messages = means_of(context, row).messages;
    kl_cell_number(cell, "%.0f", messages > 0 ? messages : NAN);
}
static void cell_last_elapsed(const void *context, size_t row, char *cell) {
    const simulation *sim = context;
    double last_s = result_of(sim, row, sim->q.iterations - 1)->elapsed_s;
    kl_cell(cell, "%s", sim->q.iterations > 1 ? kl_time_words(last_s).text : "");
}
static void cell_last_efficiency(const void *context, size_t row, char *cell) {
    const simulation *sim = context;
    *cell = '\0';
    if (sim->q.iterations > 1)
        kl_cell_number(cell, "%.4f", efficiency(result_of(sim, row, sim->q.iterations - 1)));
}

static void print_table(const simulation *sim, const char *engine) {
    static const kl_column columns[] = {
        {"policy", true, cell_policy},      {"makespan", false, cell_elapsed},
        {"bound", false, cell_bound},       {"efficiency", false, cell_efficiency},
        {"chunks", false, cell_chunks},     {"messages", false, cell_messages},
        {"last", false, cell_last_elapsed}, {"its efficiency", false, cell_last_efficiency},
    };
    if (sim->file)
        kl_say(stdout, "platform", "%s", sim->q.platform);
    else
        kl_say(stdout, "platform", "%s: %u worker%s", sim->q.platform, sim->cluster.workers,
               sim->cluster.workers == 1 ? "" : "s");
    kl_say(stdout, "tasks", "%s, seed %" PRIu64, sim->q.tasks, sim->tasks.seed);
    if (sim->q.iterations > 1)
        kl_say(stdout, "runs",
               "%u; columns are means over all runs, but \"last\" and \"its efficiency\" are those "
               "of the last run",
               sim->q.iterations);
    kl_say(stdout, "engine", "%s", engine);
    putchar('\n');
    kl_print_table(stdout, columns, sizeof columns / sizeof *columns, sim, sim->policy_count);
}

static void print_iteration(kl_json *j, const kl_simulated *r) {
    kl_json_open(j, NULL, '{');
    kl_json_number(j, "elapsed_s", r->elapsed_s);
    kl_json_number(j, "bound_s", r->bound_s);
    kl_json_number(j, "efficiency", efficiency(r));
    kl_json_count(j, "chunks", r->chunks);
    kl_json_number(j, "messages", r->messages > 0 ? (double)r->messages : NAN);
    kl_json_count(j, "workers", r->workers);
    kl_json_close(j, '}');
}

static void print_policy(kl_json *j, const simulation *sim, size_t policy) {
    means m = means_of(sim, policy);
    kl_json_open(j, NULL, '{');
    kl_json_text(j, "policy", kl_policy_name(sim->policies[policy]));
    kl_json_number(j, "elapsed_s", m.elapsed_s);
    kl_json_number(j, "bound_s", m.bound_s);
    kl_json_number(j, "efficiency", m.elapsed_s > 0 ? m.bound_s / m.elapsed_s : 1);
    kl_json_open(j, "iterations", '[');
    for (uint32_t i = 0; i < sim->q.iterations; i++)
        print_iteration(j, result_of(sim, policy, i));
    kl_json_close(j, ']');
    kl_json_close(j, '}');
}

static void print_json(const simulation *sim, const char *engine) {
    kl_json j = {.out = stdout, .first = true};
    kl_json_open(&j, NULL, '{');
    kl_json_text(&j, "engine", engine);
    kl_json_text(&j, "platform", sim->q.platform);
    kl_json_number(&j, "workers", sim->file ? NAN : sim->cluster.workers);
    kl_json_text(&j, "tasks", sim->q.tasks);
    kl_json_count(&j, "seed", sim->tasks.seed);
    kl_json_number(&j, "answer_s", sim->q.answer_s);
    kl_json_number(&j, "startup_s", sim->q.startup_s);
    kl_json_open(&j, "policies", '[');
    for (size_t p = 0; p < sim->policy_count; p++)
        print_policy(&j, sim, p);
    kl_json_close(&j, ']');
    kl_json_close(&j, '}');
    putchar('\n');
}

/* --- the command kilter simulate --- */

static kilter_status write_platform(simulation *sim, kilter_error *error) {
    kilter_status status = read_platform(sim, error);
    if (status == KILTER_OK)
        status = check_hosts(sim, error);
    if (status != KILTER_OK) {
        kl_cluster_free(&sim->cluster);
        return status;
    }
    if (sim->file)
        return kl_fail(error, KILTER_ERR_USAGE, "--write-platform: '%s' is already a platform of SimGrid",
                       sim->q.platform);
    bool to_stdout = strcmp(sim->q.write_platform, "-") == 0;
    kl_new_file file = {.out = stdout};
    if (!to_stdout)
        status = kl_new_file_open(sim->q.write_platform, &file, error);
    if (status == KILTER_OK)
        status = kl_cluster_write_simgrid(&sim->cluster, file.out, error);
    if (!to_stdout && file.out) {
        kilter_status ended = kl_new_file_end(&file, status == KILTER_OK, status == KILTER_OK ? error : NULL);
        status = status != KILTER_OK ? status : ended;
    }
    kl_cluster_free(&sim->cluster);
    return status;
}

/* Return the name of the first given option that has no effect on peers; NULL: there is no such option. */
static const char *not_for_peers(const simulation *sim) {
    const question *q = &sim->q;
    return q->record                                          ? "record"
           : q->gantt                                         ? "gantt"
           : q->engine && strcmp(q->engine, "events") != 0    ? "engine smpi"
           : q->iterations > 1                                ? "iterations"
           : q->result_bytes > 0                              ? "result-bytes"
           : q->startup_s > 0                                 ? "startup-s"
           : q->byte_s > 0                                    ? "byte-s"
           : q->answer_s < ANSWER_S || q->answer_s > ANSWER_S ? "answer-s"
           : sim->file                                        ? "platform FILE.xml"
                                                              : NULL;
}

static kilter_status answer_peers(simulation *sim, kilter_error *error) {
    kilter_status status = read_platform(sim, error);
    if (status == KILTER_OK && not_for_peers(sim))
        status = kl_fail(error, KILTER_ERR_USAGE, "--%s and --organise peers cannot be combined",
                         not_for_peers(sim));
    if (status == KILTER_OK)
        status = read_tasks(sim, error);
    kl_peers_question peers = {.cluster = &sim->cluster,
                               .tasks = &sim->tasks,
                               .platform = sim->q.platform,
                               .tasks_spec = sim->q.tasks,
                               .policies = sim->q.policy,
                               .task_bytes = sim->q.task_bytes,
                               .message_s = sim->q.message_s,
                               .between = sim->q.between,
                               .json = sim->q.json};
    if (status == KILTER_OK)
        status = kl_simulate_peers(&peers, error);
    kl_cluster_free(&sim->cluster);
    kl_tasks_free(&sim->tasks);
    return status;
}

static kilter_status answer(simulation *sim, kilter_error *error) {
    if (sim->q.organise && strcmp(sim->q.organise, "peers") == 0)
        return answer_peers(sim, error);
    kilter_status status = read_question(sim, error);
    if (status == KILTER_OK)
        status = simulate_all(sim, error);
    if (status == KILTER_OK)
        (sim->q.json ? print_json : print_table)(sim, sim->smpi ? "smpi" : "events");
    kl_cluster_free(&sim->cluster);
    kl_tasks_free(&sim->tasks);
    free(sim->results);
    return status;
}

#define AT(member) .offset = offsetof(question, member)

static const kl_option rows[] = {
    {"platform", "SPEC",
     "Hosts by speed, such as 16x1.0,16x0.25@osc(60s,30s);link=50us,125MB/s;master=0.1, or a platform file "
     "FILE.xml of SimGrid. A profile behind @ is osc(PERIOD,BUSY[,FACTOR]), drop(AT,FACTOR), "
     "freeze(FROM,TO), share(PART,SLICE) or steps(AT:FACTOR,...[,every PERIOD]); for peers also join(AT) and "
     "die(FROM,BY). cluster=HOSTS,TIME puts peers into clusters of HOSTS; messages between clusters take "
     "TIME. link is the latency and bandwidth of the link of each host. master is the speed of the master's "
     "own host; without it, the master shares the host of the first worker.",
     KL_OPTION_TEXT, AT(platform)},
    {"tasks", "SPEC",
     "Number of tasks and the time of each at speed 1, such as 8000@lognormal(1ms,1.0); also const(MEAN), "
     "exp(MEAN), uniform(MEAN,CV) and normal(MEAN,CV). file=RECORD takes the tasks of a run record.",
     KL_OPTION_TEXT, AT(tasks)},
    {"policy", "POLICIES",
     "Policies, separated by commas, or all (default: auto; with --organise peers: help).", KL_OPTION_TEXT,
     AT(policy), .needs = "tasks"},
    {"organise", "WAY",
     "master: one master deals all tasks; peers: workers share the tasks and help each other (default: "
     "master).",
     KL_OPTION_TEXT, AT(organise), .needs = "tasks", .words = "master peers"},
    {"message-s", "SECONDS",
     "Time that a peer of speed 1 needs to send or to receive a message (default: 5e-6).", KL_OPTION_NUMBER,
     AT(message_s), .needs = "organise", .most = 1000},
    {"between-tasks", NULL,
     "Peers take in messages only between two tasks, as MPI ranks without a message thread do.",
     KL_OPTION_SWITCH, AT(between), .needs = "organise"},
    {"iterations", "N",
     "Number of runs of each farm; measurements are kept from one run to the next (default: 1).",
     KL_OPTION_UINT32, AT(iterations), .needs = "tasks", .least = 1, .most = MOST_ITERATIONS},
    {"seed", "N", "Seed of the times of the tasks (default: 1).", KL_OPTION_UINT64, AT(seed),
     .needs = "tasks"},
    {"answer-s", "SECONDS", "Time the master needs for one message at speed 1 (default: 1e-5).",
     KL_OPTION_NUMBER, AT(answer_s), .needs = "tasks", .most = 1000},
    {"byte-s", "SECONDS", "Time the master needs for a byte of tasks at speed 1 (default: 0; events only).",
     KL_OPTION_NUMBER, AT(byte_s), .needs = "tasks", .most = 1000},
    {"startup-s", "SECONDS", "Time to start a message with tasks or results (default: 0; events only).",
     KL_OPTION_NUMBER, AT(startup_s), .needs = "tasks", .most = 1000},
    {"task-bytes", "BYTES", "Bytes sent to a worker for each task (default: 0).", KL_OPTION_UINT64,
     AT(task_bytes), .needs = "tasks", .most = MOST_BYTES},
    {"result-bytes", "BYTES", "Bytes sent back for each task (default: 0).", KL_OPTION_UINT64,
     AT(result_bytes), .needs = "tasks", .most = MOST_BYTES},
    {"engine", "ENGINE",
     "smpi runs the farm itself under SimGrid; events runs a model of it and is much faster (default: smpi "
     "for "
     "up to 2,000 workers where it was built).",
     KL_OPTION_TEXT, AT(engine), .needs = "tasks", .words = "smpi events"},
    {"record", "FILE",
     "Write a run record. With several policies, each writes FILE with the policy's name before the ending.",
     KL_OPTION_TEXT, AT(record), .needs = "tasks", .is_file = true},
    {"gantt", "FILE.svg", "Draw which worker computed what, and when; for one policy.", KL_OPTION_TEXT,
     AT(gantt), .needs = "tasks", .is_file = true},
    KL_JSON_ROW(question),
    {"write-platform", "FILE.xml", "Write the platform for SimGrid; - is the standard output.",
     KL_OPTION_TEXT, AT(write_platform)},
};

static int run(const kl_command *command, int argc, char **argv) {
    simulation sim = {.q = {.seed = 1, .answer_s = ANSWER_S, .message_s = MESSAGE_S, .iterations = 1}};
    kilter_error error;
    int first, code = kl_cmd_read(command, argc, argv, &sim.q, &first);
    if (code != EXIT_SUCCESS)
        return code;
    if (first < argc)
        return kl_cmd_usage(command, "unknown argument '%s'", argv[first]);
    if (sim.q.write_platform && write_platform(&sim, &error) != KILTER_OK)
        return kilter_exit("kilter simulate", &error);
    if (!(sim.q.write_platform && !sim.q.tasks) && answer(&sim, &error) != KILTER_OK)
        return kilter_exit("kilter simulate", &error);
    return kl_cmd_printed();
}

const kl_command kl_cmd_simulate = {
    .name = "simulate",
    .summary = "Run a farm under one or more policies on hosts that you describe.",
    .text = "usage: kilter simulate --platform SPEC|FILE.xml --tasks SPEC [--policy POLICIES] [OPTION]…\n"
            "       kilter simulate --platform SPEC --write-platform FILE.xml\n\n"
            "Runs a farm on a described platform, under each policy of the list. The tasks only take\n"
            "time. The command prints the makespan and its bound, the time if all hosts had computed\n"
            "all the time. Policies: static ss fsc gss tss fac2 wf awf-b awf-c\n"
            "af dpf daf auto ect. With --organise peers there is no master, and the policies are\n"
            "help sos sos-half steal.\n",
    .options = KL_OPTIONS(rows),
    .run = run,
};
