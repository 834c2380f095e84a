/* kilter report: the summary of a run, from its record. */
#include <errno.h>
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

/* What is written only when it is whole. */
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

static bool parse_run(const char *text, int64_t *run) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 0)
        return false;
    *run = value;
    return true;
}

static bool takes_value(const char *word) {
    return strcmp(word, "--gantt") == 0 || strcmp(word, "--run") == 0 || strcmp(word, "--program") == 0;
}

static int take_value(const kl_command *command, const char *option, const char *value, request *r) {
    bool gantt = strcmp(option, "--gantt") == 0, run = strcmp(option, "--run") == 0;
    if (!value)
        return kl_cmd_usage(command, "%s wants a value", option);
    if (run ? r->run >= 0 : (gantt ? r->picture : r->program) != NULL)
        return kl_cmd_usage(command, "%s is given twice", option);
    if (run && !parse_run(value, &r->run))
        return kl_cmd_usage(command, "--run %s: it is no number of a run", value);
    if (gantt)
        r->picture = value;
    else if (!run)
        r->program = value;
    return EXIT_SUCCESS;
}

static int run(const kl_command *command, int argc, char **argv) {
    request r = {.run = -1};
    bool options = true;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (options && takes_value(word)) {
            int code = take_value(command, word, value, &r);
            if (code != EXIT_SUCCESS)
                return code;
            i++;
        } else if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && strcmp(word, "--json") == 0)
            r.json = true;
        else if (options && strcmp(word, "--failed") == 0)
            r.failed = true;
        else if (options && word[0] == '-' && word[1])
            return kl_cmd_usage(command, "unknown option '%s'", word);
        else if (r.file)
            return kl_cmd_usage(command, "one file at a time: '%s' and '%s' were given", r.file, word);
        else
            r.file = word;
    }
    if (r.json && r.picture)
        return kl_cmd_usage(command, "--json and --gantt are two questions: ask one");
    if (r.failed && r.picture)
        return kl_cmd_usage(command, "--failed and --gantt cannot be combined");
    if (r.run >= 0 && !r.picture)
        return kl_cmd_usage(command, "--run says which run --gantt draws: there is no --gantt");
    if (r.file && r.program)
        return kl_cmd_usage(command, "%s", kl_file_and_program);
    return r.file ? answer(&r, r.file) : answer_newest(&r);
}

const kl_command kl_cmd_report = {
    .name = "report",
    .summary = "what each worker did in a run, and how near the run came to its bound",
    .help = "usage: kilter report [--failed] [--json] [FILE | --program NAME]\n"
            "       kilter report --gantt OUT.svg [--run N] [FILE | --program NAME]\n"
            "\n"
            "Prints the summary of a run from its record, also while the run goes on or after it was "
            "killed.\n" KL_RECORD_CHOICE_HELP "\n"
            "  --json            one JSON object; times in seconds, null where a number is not known\n"
            "  --failed          the tasks that failed instead: each attempt, where, and why\n"
            "  --gantt OUT.svg   a picture instead: who computed what, when; of a distributed loop: which\n"
            "                    rank had how many iterations, when; - is the standard output\n"
            "  --run N           of run N alone (without it: of all, or the last 20)\n"
            "  --program NAME    the newest record of this program\n"
            "  --help            this text\n",
    .run = run,
};
