/* kilter report: print the summary of a run from its record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "page.h"
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

typedef enum output { PRINTED, GANTT, PAGE, TRACE_EVENTS, TABLES } output;

typedef struct request {
    bool json, failed;
    const char *file, *program;
    const char *into[TABLES + 1]; /* file or folder into which each output goes; NULL: not asked for */
    int64_t run;                  /* number of the run to draw; −1: not given */
} request;

/* Return which output the user asked for; if several were asked for, the last one. */
static output output_of(const request *r) {
    output found = PRINTED;
    for (int i = GANTT; i <= TABLES; i++)
        found = r->into[i] ? (output)i : found;
    return found;
}

static kilter_status write_into(const request *r, const char *file, FILE *out, kilter_error *error) {
    switch (output_of(r)) {
    case GANTT:
        return kl_gantt_write(file, r->run, out, error);
    case PAGE:
        return kl_page_print(file, out, error);
    case TRACE_EVENTS:
        return kl_trace_events_write(file, out, error);
    default:
        return kl_failures_print(file, r->json, out, error);
    }
}

/* Write the output into a file. On an error, the file is not changed. */
static int write_whole(const request *r, const char *file) {
    kilter_error error;
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    kilter_status status = out ? write_into(r, file, out, &error)
                               : kl_fail(&error, KILTER_ERR_MEMORY, "reading '%s': memory ran out", file);
    bool whole = out && fclose(out) == 0;
    int code = status != KILTER_OK ? kilter_exit("kilter", &error)
               : whole             ? kl_cmd_save(r->failed ? "-" : r->into[output_of(r)], data, size)
                                   : EXIT_FAILURE;
    if (code == EXIT_SUCCESS && output_of(r) == PAGE && !kl_page_has_plots())
        fprintf(stderr, "kilter: this build lacks uPlot, so the page has tables in place of line plots\n");
    free(data);
    return code;
}

static int answer(const request *r, const char *file) {
    output wanted = output_of(r);
    return wanted == TABLES                 ? kl_cmd_write_tables(file, r->into[TABLES])
           : wanted != PRINTED || r->failed ? write_whole(r, file)
                                            : print(file, r->json);
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
    {"html", "FILE.html",
     "Write a page for a browser instead: who worked when, decisions, speeds, forecasts. The page needs no "
     "network.",
     KL_OPTION_TEXT, AT(into[PAGE]), .is_file = true},
    {"gantt", "FILE.svg",
     "Draw a picture instead: which worker computed what, and when. For a distributed loop: how many "
     "iterations each rank had, and when. - is the standard output.",
     KL_OPTION_TEXT, AT(into[GANTT])},
    {"run", "N", "Draw run N only (default: all runs, or the last 20).", KL_OPTION_UINT64, AT(run),
     .needs = "gantt", .most = 1e15},
    {"perfetto", "FILE.json", "Write the run as trace events instead, for Perfetto and similar viewers.",
     KL_OPTION_TEXT, AT(into[TRACE_EVENTS]), .is_file = true},
    {"csv", "FOLDER", "Write each table of the record as a CSV file into the folder instead.", KL_OPTION_TEXT,
     AT(into[TABLES]), .is_file = true},
    KL_PROGRAM_ROW(request),
};

/* Check that at most one output is asked for. Otherwise print an error that names two of them. --failed and
 * --json together count as one output. */
static bool one_output(const request *r, const char **first, const char **second) {
    static const char *const names[] = {
        [GANTT] = "gantt", [PAGE] = "html", [TRACE_EVENTS] = "perfetto", [TABLES] = "csv"};
    *first = r->failed ? "failed" : r->json ? "json" : NULL;
    for (int i = GANTT; i <= TABLES; i++) {
        if (!r->into[i])
            continue;
        *second = names[i];
        if (*first)
            return false;
        *first = names[i];
    }
    return true;
}

static int run(const kl_command *command, int argc, char **argv) {
    request r = {.run = -1};
    int first, code = kl_cmd_read(command, argc, argv, &r, &first);
    if (code == EXIT_SUCCESS)
        code = kl_cmd_one_file(command, argc, argv, first, r.program, &r.file);
    if (code != EXIT_SUCCESS)
        return code;
    const char *first_word = NULL, *second = NULL;
    if (!one_output(&r, &first_word, &second))
        return kl_cmd_usage(command, "--%s and --%s cannot be combined", first_word, second);
    return r.file ? answer(&r, r.file) : answer_newest(&r);
}

const kl_command kl_cmd_report = {
    .name = "report",
    .summary = "Print what each worker did in a run, and how near the run came to its bound.",
    .text = "usage: kilter report [--failed] [--json] [FILE | --program NAME]\n"
            "       kilter report --html|--gantt|--perfetto|--csv PATH [FILE | --program NAME]\n\n"
            "Prints a summary. It reads the record of a run, also while the run goes on or after it\n"
            "was killed.\n" KL_RECORD_CHOICE_HELP,
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
