/* The master of kilter map: a farm whose tasks are commands. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "farm/farm.h"
#include "map.h"
#include "sys/sys.h"

enum { CODE_MOST = 101 }; /* exit code if more than a hundred commands failed, as in GNU parallel */

typedef struct map_run {
    const kl_map_request *q;
    kl_map_guard *guard;
    kilter_farm *farm;
    kl_map_template *template;
    uint64_t commands;
    kl_buffer bytes;      /* inputs of all tasks; an input is the number and the values of a command */
    kilter_bytes *inputs; /* [commands] */
    uint32_t *tries;      /* [commands] how often each command was started; NULL: each is started only once */
    uint64_t *tasks; /* tasks[t]: number of the command that task t runs; empty if tasks and commands have the
                        same numbers */
    uint64_t task_count, task_room;
    kl_map_order *order; /* with --after: the order of the commands; NULL: commands do not wait for each
                          * other */
    uint64_t failed, succeeded, skipped;
    kl_map_printer printer;
    kl_map_hosts hosts; /* with --hosts */
    FILE *joblog;
    kl_map_halting halting;
    int halt_code;      /* exit code of a run that --halt ended early */
    kilter_error error; /* the master's own error, which ends the run */
    char host[KL_HOST_BYTES];
} map_run;

/* --- making a task for each command --- */

static void put_input(const map_run *m, uint64_t i, kl_buffer *bytes) {
    kl_put_u64(bytes, i + 1);
    kl_map_put_combination(m->q->sources, m->q->source_count, i, bytes);
}

static kilter_status make_inputs(map_run *m, kilter_error *error) {
    m->inputs = calloc(m->commands + 1, sizeof *m->inputs);
    if (m->q->tries > 1)
        m->tries = calloc(m->commands + 1, sizeof *m->tries);
    for (uint64_t i = 0; m->inputs && i < m->commands; i++) {
        size_t from = m->bytes.size;
        put_input(m, i, &m->bytes);
        m->inputs[i].size = m->bytes.size - from;
    }
    if (!m->inputs || (m->q->tries > 1 && !m->tries) || m->bytes.failed)
        return kl_fail(error, KILTER_ERR_MEMORY, "preparing %llu commands: memory ran out",
                       kl_ull(m->commands));
    const uint8_t *at = m->bytes.data;
    for (uint64_t i = 0; i < m->commands; at += m->inputs[i++].size)
        m->inputs[i].data = at;
    return KILTER_OK;
}

/* Append the command line of command number `i`; the first command is 0. */
static void put_line(const map_run *m, uint64_t i, uint32_t slot, kl_buffer *line) {
    kl_buffer values = {0};
    kl_map_put_combination(m->q->sources, m->q->source_count, i, &values);
    kl_map_fill fill = {.number = i + 1, .total = m->commands, .slot = slot};
    fill.values = (const char *)values.data;
    fill.columns = kl_map_count_texts(fill.values, values.size);
    kl_map_put_line(m->template, &fill, line);
    line->failed |= values.failed;
    kl_buffer_free(&values);
}

/* --- results --- */

static void stop(map_run *m, kl_map_halting how) {
    m->halting = how;
    atomic_store(&m->guard->stopping, true);
    if (how == KL_MAP_NOW)
        kilter_farm_cancel(m->farm);
}

static void write_joblog(map_run *m, const kl_map_result *r) {
    kl_buffer line = {0}, command = {0};
    kl_map_result here = *r;
    if (strcmp(r->host, m->host) == 0)
        snprintf(here.host, sizeof here.host, ":");
    put_line(m, r->number - 1, r->slot, &command);
    kl_map_put_joblog(&line, &here, (const char *)command.data, command.size);
    fwrite(line.data, 1, line.size, m->joblog);
    if (fflush(m->joblog) != 0 || line.failed || command.failed)
        kl_fail(&m->error, KILTER_ERR_SYSTEM, "writing to the job log %s: %s", m->q->joblog,
                line.failed || command.failed ? "memory ran out" : strerror(errno));
    kl_buffer_free(&line);
    kl_buffer_free(&command);
}

/* Print why kilter map ended or did not start the command. The command itself cannot print this reason. */
static void complain(const map_run *m, const kl_map_result *r) {
    kl_buffer line = {0};
    if (r->end == KL_MAP_EXITED)
        return;
    put_line(m, r->number - 1, r->slot, &line);
    if (r->end == KL_MAP_TIMED_OUT)
        fprintf(stderr, "kilter map: stopped a command after %.3g s, its time limit: ", r->took_s);
    else
        fprintf(stderr, "kilter map: %s: ", r->why);
    fprintf(stderr, "%.*s%s\n", (int)(line.size < 200 ? line.size : 200), (const char *)line.data,
            line.size > 200 ? "…" : "");
    kl_buffer_free(&line);
}

static bool grows(const map_run *m) {
    return m->tries || m->order;
}

/* Store that the next task runs command `i`. */
static bool note_task(map_run *m, uint64_t i) {
    uint64_t *tasks = kl_array_grow(m->tasks, &m->task_room, m->task_count + 1, sizeof *tasks);
    if (!tasks)
        return false;
    m->tasks = tasks;
    tasks[m->task_count++] = i;
    return true;
}

/* Add to the run a task that executes command `i`. */
static kilter_status add_task(map_run *m, uint64_t i, kilter_error *error) {
    if (!note_task(m, i))
        return kl_fail(error, KILTER_ERR_MEMORY, "adding a command: memory ran out");
    kilter_status status = kilter_farm_add(m->farm, 1, &m->inputs[i], NULL, error);
    m->task_count -= status != KILTER_OK;
    return status;
}

/* Start a failed command again if it may be started once more. Return whether it was started. */
static bool try_again(map_run *m, const kl_map_result *r) {
    uint64_t i = r->number - 1;
    if (!m->tries || kl_map_succeeded(r) || ++m->tries[i] >= m->q->tries || m->halting != KL_MAP_GO_ON ||
        add_task(m, i, NULL) != KILTER_OK)
        return false;
    kl_map_drop_files(r);
    return true;
}

/* Skip the commands that had to wait for a failed command. */
static void skip_users(map_run *m, uint64_t i) {
    uint64_t count = kl_map_order_failed(m->order, i);
    m->skipped += count;
    for (uint64_t k = 0; k < count; k++)
        kl_map_print(&m->printer,
                     &(kl_map_result){.number = m->order->skipped[k] + 1, .end = KL_MAP_STOPPED});
}

/* Start the commands that had to wait for this command, or skip them if it failed. */
static void go_on(map_run *m, const kl_map_result *r) {
    uint64_t next;
    if (!m->order)
        return;
    if (!kl_map_succeeded(r)) {
        skip_users(m, r->number - 1);
        return;
    }
    kl_map_waits_succeeded(&m->order->waits, r->number - 1);
    while (m->halting == KL_MAP_GO_ON && m->error.status == KILTER_OK && kl_map_order_next(m->order, &next))
        add_task(m, next, &m->error);
}

/* Tell the farm what to append to its line of progress. */
static void tell(const map_run *m) {
    const kl_telling telling = {.things = "command",
                                .failed = m->failed,
                                .to_come = m->order ? kl_map_order_waiting(m->order) - m->skipped : 0,
                                .chain = m->order ? kl_map_order_chain(m->order) : 0};
    kl_farm_tell(m->farm, &telling);
}

static int code_of_failures(uint64_t failed) {
    return (int)(failed < CODE_MOST ? failed : CODE_MOST);
}

/* Return the exit code of a run that --halt ends after this command. GNU parallel has the same exit code. */
static int code_of_halt(const map_run *m, const kl_map_result *r) {
    const kl_map_halt *halt = &m->q->halt;
    if (halt->why == KL_MAP_ON_SUCCESS)
        return EXIT_SUCCESS;
    if (halt->part > 0)
        return (int)ceil((double)m->failed / (double)m->commands * 100);
    return halt->count <= 1 ? (int)kl_map_exit_code(r) : code_of_failures(m->failed + m->skipped);
}

static void check_halt(map_run *m, const kl_map_result *r) {
    const kl_map_halt *halt = &m->q->halt;
    kl_map_halting how = kl_map_halts(halt, m->failed, m->succeeded, m->commands);
    if (how == KL_MAP_GO_ON || m->halting != KL_MAP_GO_ON)
        return;
    m->halt_code = code_of_halt(m, r);
    fprintf(stderr, "kilter map: --halt: %s after command %llu %s with code %u\n",
            how == KL_MAP_NOW ? "ending all commands" : "no more commands are started", kl_ull(r->number),
            kl_map_succeeded(r) ? "ended" : "failed", kl_map_exit_code(r));
    stop(m, how);
}

static void take_result(map_run *m, const kl_map_result *r) {
    if (r->end == KL_MAP_STOPPED || try_again(m, r))
        return;
    if (kl_map_succeeded(r))
        m->succeeded++;
    else
        m->failed++;
    kl_farm_take_screen(m->farm, true);
    if (m->joblog)
        write_joblog(m, r);
    kl_map_print(&m->printer, r);
    complain(m, r);
    check_halt(m, r);
    go_on(m, r);
    kl_farm_take_screen(m->farm, false);
    tell(m);
    if (m->error.status == KILTER_OK && m->printer.error.status != KILTER_OK)
        m->error = m->printer.error;
    if (m->error.status != KILTER_OK && m->halting != KL_MAP_NOW)
        stop(m, KL_MAP_NOW);
}

static void on_done(const kilter_outcome *outcome, void *user) {
    map_run *m = user;
    kl_map_result r;
    uint64_t i = grows(m) ? m->tasks[outcome->index] : outcome->index;
    if (outcome->status != KILTER_OK || !kl_map_get_result(outcome->result, &r) || r.number != i + 1) {
        r = (kl_map_result){.number = i + 1, .end = KL_MAP_NOT_STARTED};
        snprintf(r.why, sizeof r.why, "%s", outcome->error ? outcome->error : "the worker sent no result");
    }
    take_result(m, &r);
}

/* --- the end of the run --- */

static int say_interrupted(const map_run *m) {
    int number = kl_interrupted_by();
    fprintf(stderr, "kilter map: interrupted: %llu of %llu commands had ended, %llu of them failed; ",
            kl_ull(m->failed + m->succeeded), kl_ull(m->commands), kl_ull(m->failed));
    fputs(m->q->resume ? "to go on, repeat the command\n"
                       : "with --resume FILE, the same command would go on from here\n",
          stderr);
    return 128 + (number > 0 ? number : 2);
}

/* Return the exit code of the run, and print what ended the run early. */
static int code_of(const map_run *m, kilter_status status, const kilter_error *error) {
    if (m->error.status != KILTER_OK) {
        if (!m->printer.closed) /* an output that its reader has closed is not an error */
            fprintf(stderr, "kilter map: %s\n", m->error.text);
        return m->printer.closed ? 128 + 13 : EXIT_FAILURE;
    }
    if (m->halting != KL_MAP_GO_ON)
        return m->halt_code;
    if (status == KILTER_ERR_CANCELLED)
        return say_interrupted(m);
    return status == KILTER_OK || status == KILTER_ERR_TASK ? code_of_failures(m->commands - m->succeeded)
                                                            : kilter_exit("kilter map", error);
}

/* List the inputs of the first tasks. Without --after, these are all commands in order; with --after, the
 * commands that wait for no other command. */
static kilter_bytes *first_tasks(map_run *m, uint64_t *count) {
    uint64_t i = 0;
    *count = m->order ? m->order->waits.ready_count : m->commands;
    kilter_bytes *first = calloc(*count + 1, sizeof *first);
    bool good = first;
    for (uint64_t k = 0; good && k < *count; k++) {
        i = k;
        if (m->order)
            kl_map_order_next(m->order, &i);
        first[k] = m->inputs[i];
        good = !grows(m) || note_task(m, i);
    }
    if (good)
        return first;
    free(first);
    return NULL;
}

static void say_skipped(const map_run *m) {
    if (m->skipped > 0)
        fprintf(stderr, "kilter map: %llu command%s not run, because a command before %s failed\n",
                kl_ull(m->skipped), m->skipped == 1 ? " was" : "s were", m->skipped == 1 ? "it" : "them");
}

static kilter_status run_farm(map_run *m, kilter_error *error) {
    kl_buffer setup = {0};
    uint64_t first;
    kilter_bytes *inputs = first_tasks(m, &first);
    kl_map_setup with = m->q->setup;
    with.total = m->commands;
    with.quoted = m->q->quoted;
    kl_map_put_setup(&setup, &with, m->q->word_count, (const char *const *)m->q->words);
    kilter_run run = {.tasks = first,
                      .inputs = inputs,
                      .shared = {setup.data, setup.size},
                      .done = on_done,
                      .user = m,
                      .grows = grows(m)};
    if (inputs)
        tell(m);
    kilter_status status = setup.failed || !inputs
                               ? kl_fail(error, KILTER_ERR_MEMORY, "starting: memory ran out")
                               : kilter_farm_run(m->farm, &run, error);
    if (status == KILTER_ERR_CANCELLED)
        kl_map_guard_end_all(m->guard);
    kl_map_print_rest(&m->printer);
    say_skipped(m);
    kl_buffer_free(&setup);
    free(inputs);
    return status;
}

static kilter_farm_options farm_options(const map_run *m) {
    return (kilter_farm_options){.work = kl_map_work,
                                 .start = kl_map_start,
                                 .shared = kl_map_take_setup,
                                 .stop = kl_map_stop,
                                 .user = m->guard,
                                 .workers = m->q->hosts ? 0 : m->q->slots,
                                 .listen = m->hosts.reach.listen,
                                 .key = m->hosts.reach.key_file,
                                 .bind = "none",
                                 .team = "all",
                                 .once = true,
                                 .progress = !m->q->quiet,
                                 .resume = m->q->resume,
                                 .resume_anyway = m->q->resume_anyway,
                                 .name = "kilter-map"};
}

/* Open the farm. Pass the words of the command to the farm after "--", so that it reads none of them as its
 * options. The words only identify the run for --resume. */
static kilter_status open_farm(map_run *m, kilter_error *error) {
    int argc = 0;
    char **argv = calloc(m->q->word_count + 3, sizeof *argv), dashes[] = "--", name[] = "kilter-map";
    if (!argv)
        return kl_fail(error, KILTER_ERR_MEMORY, "starting: memory ran out");
    argv[argc++] = name;
    argv[argc++] = dashes;
    for (size_t i = 0; i < m->q->word_count; i++)
        argv[argc++] = m->q->words[i];
    const kilter_farm_options options = farm_options(m);
    if (m->q->hosts)
        setenv("KILTER_RUN", "1", 0); /* with this variable, the farm does not print how to start workers */
    kilter_status status = kilter_farm_open(&options, &argc, argv, &m->farm, error);
    if (status == KILTER_OK && m->q->hosts)
        status = kl_map_hosts_watch(&m->hosts, m->farm, error);
    free(argv);
    return status;
}

static kilter_status open_joblog(map_run *m, kilter_error *error) {
    const char *file = m->q->joblog;
    if (file && kl_cmd_is_record(file))
        return kl_fail(error, KILTER_ERR_USAGE, "--joblog: %s is a run record, which would be overwritten",
                       file);
    m->joblog = file ? fopen(file, "we") : NULL;
    if (file && !m->joblog)
        return kl_fail(error, KILTER_ERR_USAGE, "--joblog: creating %s: %s", file, strerror(errno));
    if (file && (fputs(kl_map_joblog_head, m->joblog) == EOF || fflush(m->joblog) != 0))
        return kl_fail(error, KILTER_ERR_SYSTEM, "--joblog: writing to %s: %s", file, strerror(errno));
    return KILTER_OK;
}

/* Tell the workers on this host the condition of --halt under which the run ends early. Workers do not know
 * whether the master starts a failed command again. So with --retries, only the master decides when the run
 * ends. */
static void tell_guard(map_run *m) {
    if (!m->tries)
        m->guard->halt = m->q->halt;
    m->guard->total = m->commands;
}

/* Check what can go wrong before the first command starts, and make the commands. */
static kilter_status prepare(map_run *m, kilter_error *error) {
    kilter_status status = open_joblog(m, error);
    if (status == KILTER_OK && m->q->results)
        status = kl_map_make_results(m->q->results, error);
    if (status == KILTER_OK)
        status = make_inputs(m, error);
    if (status == KILTER_OK && m->q->after)
        status = kl_map_order_open(&m->q->list, &m->order, error);
    return status;
}

/* Start all processes. Open the farm last: it starts threads, and a process with threads must not fork. */
static kilter_status start(map_run *m, kilter_error *error) {
    uint32_t slots = m->q->hosts ? 0 : m->q->slots;
    kilter_status status = kl_map_guard_open(slots, !m->q->resume, &m->q->needs, &m->guard, error);
    if (status == KILTER_OK)
        tell_guard(m);
    if (status == KILTER_OK && m->q->hosts)
        status = kl_map_hosts_open(m->q, &m->hosts, error);
    return status == KILTER_OK ? open_farm(m, error) : status;
}

static int run_all(map_run *m) {
    kilter_error error = {KILTER_OK, ""};
    kilter_status status = prepare(m, &error);
    if (status == KILTER_OK)
        status = start(m, &error);
    if (status == KILTER_OK)
        status = run_farm(m, &error);
    const char *trouble = status == KILTER_ERR_CANCELLED ? kl_map_hosts_trouble(&m->hosts) : NULL;
    if (trouble)
        status = kl_fail(&error, KILTER_ERR_NO_WORKER, "%s", trouble);
    int code = code_of(m, status, &error);
    kilter_farm_close(m->farm, NULL);
    kl_map_hosts_close(&m->hosts);
    return code;
}

static int print_lines(const map_run *m) {
    kl_buffer line = {0};
    for (uint64_t i = 0; i < m->commands && !line.failed; i++) {
        kl_buffer_clear(&line);
        put_line(m, i, 1, &line);
        kl_put_u8(&line, '\n');
        fwrite(line.data, 1, line.size, stdout);
    }
    kl_buffer_free(&line);
    return kl_cmd_printed();
}

static void free_run(map_run *m) {
    if (m->joblog)
        fclose(m->joblog);
    kl_map_guard_close(m->guard);
    kl_map_printer_free(&m->printer);
    kl_map_template_free(m->template);
    kl_buffer_free(&m->bytes);
    free(m->inputs);
    free(m->tries);
    free(m->tasks);
    kl_map_order_close(m->order);
}

int kl_map_run(const kl_map_request *q) {
    map_run m = {.q = q,
                 .commands = kl_map_combinations(q->sources, q->source_count),
                 .printer = {.keep = q->keep,
                             .tag = q->tag,
                             .next = q->keep,
                             .results = q->results,
                             .sources = q->sources,
                             .source_count = q->source_count}};
    kilter_error error;
    int code = EXIT_SUCCESS;
    kl_host_name(m.host);
    if (kl_map_template_new(q->word_count, (const char *const *)q->words, q->quoted, &m.template, &error) !=
        KILTER_OK)
        return kilter_exit("kilter map", &error);
    if (q->dry_run)
        code = print_lines(&m);
    else if (m.commands > 0)
        code = run_all(&m);
    free_run(&m);
    return code;
}
