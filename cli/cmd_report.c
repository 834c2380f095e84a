/* kilter report: print the summary of a run from its record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "records.h"
#include "report/report.h"
#include "sys/sys.h"

static int print(const char *file, bool json) {
    kilter_error error;
    kl_report *report = NULL;
    if (kl_report_read(file, &report, &error) != KILTER_OK)
        return kilter_exit("kilter", &error);
    if (json)
        kl_report_print_json(report, stdout);
    else
        kl_report_print_text(report, stdout);
    kl_report_free(report);
    return kl_cmd_printed();
}

typedef struct request {
    bool json, failed;
    const char *file, *picture, *program;
    int64_t run; /* −1: all */
} request;

/* Write a file as a whole or not at all. */
static int write_whole(const request *r, const char *file) {
    kilter_error error;
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    kilter_status status = !out ? kl_fail(&error, KILTER_ERR_MEMORY, "reading '%s': memory ran out", file)
                           : r->failed ? kl_failures_print(file, r->json, out, &error)
                                       : kl_gantt_write(file, r->run, out, &error);
    bool whole = out && fclose(out) == 0;
    int code = status != KILTER_OK ? kilter_exit("kilter", &error)
               : whole             ? kl_cmd_save(r->failed ? "-" : r->picture, data, size)
                                   : EXIT_FAILURE;
    free(data);
    return code;
}

static int answer(const request *r, const char *file) {
    return r->picture || r->failed ? write_whole(r, file) : print(file, r->json);
}

static int answer_newest(const request *r) {
    kilter_error error;
    char *file = kl_record_choose(r->program, false, &error);
    if (!file)
        return kilter_exit("kilter", &error);
    int code = answer(r, file);
    free(file);
    return code;
}

#define AT(member) .offset = offsetof(request, member)

static const kl_option rows[] = {
    KL_JSON_ROW(request),
    {"failed", NULL, "Print the failed tasks instead: each attempt, where it ran, and why it failed.",
     KL_OPTION_SWITCH, AT(failed)},
    {"gantt", "FILE.svg",
     "Draw a picture instead: which worker computed what, and when. For a distributed loop: how many "
     "iterations each rank had, and when. - is the standard output.",
     KL_OPTION_TEXT, AT(picture)},
    {"run", "N", "Draw run N only (default: all runs, or the last 20).", KL_OPTION_UINT64, AT(run),
     .needs = "gantt", .most = 1e15},
    KL_PROGRAM_ROW(request),
};

static int run(const kl_command *command, int argc, char **argv) {
    request r = {.run = -1};
    int first, code = kl_cmd_read(command, argc, argv, &r, &first);
    if (code == EXIT_SUCCESS)
        code = kl_cmd_one_file(command, argc, argv, first, r.program, &r.file);
    if (code != EXIT_SUCCESS)
        return code;
    if (r.json && r.picture)
        return kl_cmd_usage(command, "--json and --gantt cannot be combined");
    if (r.failed && r.picture)
        return kl_cmd_usage(command, "--failed and --gantt cannot be combined");
    return r.file ? answer(&r, r.file) : answer_newest(&r);
}

const kl_command kl_cmd_report = {
    .name = "report",
    .summary = "Print what each worker did in a run, and how near the run came to its bound.",
    .text = "usage: kilter report [--failed] [--json] [FILE | --program NAME]\n"
            "       kilter report --gantt FILE.svg [--run N] [FILE | --program NAME]\n\n"
            "Prints the summary of a run from its record, also while the run goes on or after it\n"
            "was killed.\n" KL_RECORD_CHOICE_HELP,
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
