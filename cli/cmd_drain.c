/* kilter drain: workers of a running farm finish the task at hand and leave. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "cmd.h"

static const char doing[] = "draining";

typedef struct drain_options {
    const char *file;
    bool json;
    kl_control_drain drain;
} drain_options;

static int read_worker(const kl_command *command, const char *text, kl_control_drain *drain) {
    char *end;
    errno = 0;
    unsigned long worker = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno != 0 || worker > UINT32_MAX)
        return kl_cmd_usage(command, "'%s' is no worker: its number is wanted, as kilter tune shows it",
                            text);
    if (drain->worker_count == KL_CONTROL_DRAINED_MOST)
        return kl_cmd_usage(command, "at most %d workers at a time", KL_CONTROL_DRAINED_MOST);
    drain->workers[drain->worker_count++] = (uint32_t)worker;
    return EXIT_SUCCESS;
}

static int read_host(const kl_command *command, const char *name, kl_control_drain *drain) {
    if (*drain->host)
        return kl_cmd_usage(command, "one host at a time: '%s' and '%s' were given", drain->host, name);
    if (!*name || strlen(name) >= sizeof drain->host)
        return kl_cmd_usage(command, "--host '%s': it is no name of a host", name);
    snprintf(drain->host, sizeof drain->host, "%s", name);
    return EXIT_SUCCESS;
}

static int read_option(const kl_command *command, int argc, char **argv, int *at, drain_options *options) {
    const char *option = argv[*at];
    if (strcmp(option, "--all") == 0) {
        options->drain.all = true;
        return EXIT_SUCCESS;
    }
    if (strcmp(option, "--json") == 0) {
        options->json = true;
        return EXIT_SUCCESS;
    }
    if (strcmp(option, "--host") != 0)
        return kl_cmd_usage(command, "unknown option '%s'", option);
    if (*at + 1 == argc)
        return kl_cmd_usage(command, "%s wants a value", option);
    return read_host(command, argv[++*at], &options->drain);
}

static int read_words(const kl_command *command, int argc, char **argv, drain_options *options) {
    bool ended = false;
    int code = EXIT_SUCCESS;
    for (int i = 1; i < argc && code == EXIT_SUCCESS; i++) {
        if (!ended && strcmp(argv[i], "--") == 0)
            ended = true;
        else if (!ended && argv[i][0] == '-' && argv[i][1])
            code = read_option(command, argc, argv, &i, options);
        else if (!options->file)
            options->file = argv[i];
        else
            code = read_worker(command, argv[i], &options->drain);
    }
    return code;
}

static int check(const kl_command *command, const drain_options *options) {
    const kl_control_drain *drain = &options->drain;
    if (!options->file)
        return kl_cmd_usage(command, "no file given: name the record of a running farm");
    if (*drain->host && drain->worker_count > 0)
        return kl_cmd_usage(command, "give workers or --host, not both");
    if (!*drain->host && drain->worker_count == 0 && !drain->all)
        return kl_cmd_usage(command, "who is to leave? Give workers, --host or --all");
    return EXIT_SUCCESS;
}

static int run(const kl_command *command, int argc, char **argv) {
    drain_options options = {.json = false};
    kl_tuner *tuner = NULL;
    char answer[KL_CONTROL_ANSWER_BYTES];
    kilter_error error;
    int code = read_words(command, argc, argv, &options);
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
    .summary = "workers of a running farm finish the task at hand and leave",
    .help =
        "usage: kilter drain [--json] FILE WORKER…\n"
        "       kilter drain [--json] FILE --host NAME\n"
        "       kilter drain [--json] FILE --all\n"
        "\n"
        "Attaches to the running farm whose record is FILE, on the machine of its master, and sends workers\n"
        "home: those numbered, as kilter tune shows them, or all of one host. Each finishes the task at "
        "hand,\n"
        "gives back what it has not begun, and its program ends. Nothing is lost, and no new worker is\n"
        "started in the place of one that left. Only the owner of FILE may attach.\n"
        "\n"
        "  --host NAME          those on this host, as kilter report shows it\n"
        "  --all                also when nobody stays, and everyone when no one is named: the run then\n"
        "                       waits for workers to join, or fails where none can\n"
        "  --json               the answer as a JSON object on one line\n"
        "  --help               this text\n",
    .run = run,
};
