/* kilter drain: let workers of a running farm finish their tasks and leave the farm. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "cmd.h"
#include "keep.h"

static const char doing[] = "draining";

typedef struct drain_options {
    const char *file;
    bool json;
    kl_control_drain drain;
} drain_options;

static int read_worker(const kl_command *command, const char *text, kl_control_drain *drain) {
    static const kl_option number = {.kind = KL_OPTION_UINT32};
    if (drain->worker_count == KL_CONTROL_DRAINED_MOST)
        return kl_cmd_usage(command, "at most %d workers at a time", KL_CONTROL_DRAINED_MOST);
    if (kl_option_set(&number, "", text, &drain->workers[drain->worker_count++], NULL) != KILTER_OK)
        return kl_cmd_usage(command, "'%s' is not a worker; give its number, as kilter tune shows it", text);
    return EXIT_SUCCESS;
}

static kilter_status read_host(const kl_value *v) {
    kl_control_drain *drain = &((drain_options *)v->into)->drain;
    if (!*v->text || strlen(v->text) >= sizeof drain->host)
        return kl_option_refuse(v, "not the name of a host");
    snprintf(drain->host, sizeof drain->host, "%s", v->text);
    return KILTER_OK;
}

#define AT(member) .offset = offsetof(drain_options, member)

static const kl_option rows[] = {
    {"host", "NAME", "Send away all workers of this host, named as kilter report shows it.", KL_OPTION_OTHER,
     .read = read_host},
    {"all", NULL,
     "Allow that no worker stays. Without WORKER and --host, send away all workers. The run then waits for "
     "new workers, or fails if none can join.",
     KL_OPTION_SWITCH, AT(drain.all)},
    {"json", NULL, "Print the answer as a JSON object on one line.", KL_OPTION_SWITCH, AT(json)},
};

static int check(const kl_command *command, const drain_options *options) {
    const kl_control_drain *drain = &options->drain;
    if (!options->file)
        return kl_cmd_usage(command, "no file given: name the record of a running farm");
    if (*drain->host && drain->worker_count > 0)
        return kl_cmd_usage(command, "give workers or --host, not both");
    if (!*drain->host && drain->worker_count == 0 && !drain->all)
        return kl_cmd_usage(command, "no worker given: name workers, --host or --all");
    return EXIT_SUCCESS;
}

/* Drain a run of kilter run --keep, whose folder was given as FILE. With --host, the run's ranks leave the
 * host. With --all, the program saves its state and stops. */
static int drain_kept(const kl_command *command, const drain_options *options, bool workers) {
    const kl_control_drain *drain = &options->drain;
    if (workers)
        return kl_cmd_usage(command, "'%s' is the folder of a kept run: name a host with --host",
                            options->file);
    if (!*drain->host && !drain->all)
        return kl_cmd_usage(command, "no host given: name one with --host, or stop the run with --all");
    return kl_keep_order_give("kilter drain", options->file, *drain->host ? KL_KEEPER_DRAIN : KL_KEEPER_STOP,
                              drain->host, options->json);
}

static int run(const kl_command *command, int argc, char **argv) {
    drain_options options = {.json = false};
    kl_tuner *tuner = NULL;
    char answer[KL_CONTROL_ANSWER_BYTES];
    kilter_error error;
    int first, code = kl_cmd_read(command, argc, argv, &options, &first);
    if (first < argc)
        options.file = argv[first];
    if (code == EXIT_SUCCESS && options.file && kl_keep_is_folder(options.file))
        return drain_kept(command, &options, first + 1 < argc);
    for (int i = first + 1; i < argc && code == EXIT_SUCCESS; i++)
        code = read_worker(command, argv[i], &options.drain);
    if (code == EXIT_SUCCESS)
        code = check(command, &options);
    if (code == EXIT_SUCCESS)
        code = kl_cmd_attach(doing, options.file, &tuner);
    if (code != EXIT_SUCCESS)
        return code;
    if (kl_tuner_drain(tuner, &options.drain, answer, &error) == KILTER_OK)
        code = kl_cmd_print_answer(answer, options.json);
    else
        code = kl_cmd_farm_failed(doing, options.file, &error);
    kl_tuner_detach(tuner);
    return code;
}

const kl_command kl_cmd_drain = {
    .name = "drain",
    .summary = "Let workers of a running farm finish their task and leave.",
    .text = "usage: kilter drain [--json] FILE WORKER…\n"
            "       kilter drain [--json] FILE|FOLDER --host NAME\n"
            "       kilter drain [--json] FILE|FOLDER --all\n\n"
            "Attaches to the running farm whose record is FILE, on the machine of its master. Sends\n"
            "workers away: those with these numbers, as kilter tune shows them, or all of one\n"
            "host. Each worker finishes its current task, gives back the tasks it has not begun,\n"
            "and its program ends. No task is lost, and no new worker replaces one that left.\n"
            "Only the owner of FILE may attach.\n"
            "\n"
            "FOLDER is the keep folder of a kept run (kilter run --keep). Its program is saved and\n"
            "continues on other hosts; host NAME is not used again. With --all, the program is\n"
            "saved and stopped.\n",
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
