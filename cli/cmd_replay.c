/* kilter replay: show from a run's record what led to each decision of the run, and make the decisions again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "records.h"
#include "report/report.h"

typedef struct request {
    bool json;
    const char *file, *program, *what_if;
    double at_s;      /* seconds after the farm or loop was opened; −1: not given */
    int64_t decision; /* number of the decision in the list; −1: not given */
} request;

static const char POLICY[] = "policy=";

static kl_replay_choice choose(const request *r) {
    kl_replay_choice choice = {
        .json = r->json, .policy = r->what_if ? r->what_if + strlen(POLICY) : NULL, .by = KL_REPLAY_LIST};
    if (r->at_s >= 0) {
        choice.by = KL_REPLAY_TIME;
        choice.number = llround(r->at_s * 1e6);
    } else if (r->decision >= 0) {
        choice.by = KL_REPLAY_ID;
        choice.number = r->decision;
    }
    return choice;
}

static int answer(const request *r, const char *file) {
    kilter_error error;
    char *data = NULL;
    size_t size = 0;
    kl_replay_choice choice = choose(r);
    FILE *out = open_memstream(&data, &size);
    kilter_status status = out ? kl_replay_print(file, &choice, out, &error)
                               : kl_fail(&error, KILTER_ERR_MEMORY, "reading '%s': memory ran out", file);
    bool whole = out && fclose(out) == 0;
    int code = status != KILTER_OK ? kilter_exit("kilter", &error)
               : whole             ? kl_cmd_save("-", data, size)
                                   : EXIT_FAILURE;
    free(data);
    return code;
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

static kilter_status check_what_if(const kl_value *value) {
    bool known = strncmp(value->text, POLICY, strlen(POLICY)) == 0;
    return known ? KILTER_OK : kl_option_refuse(value, "not policy=NAME");
}

#define AT(member) .offset = offsetof(request, member)

static const kl_option rows[] = {
    {"at", "T", "Show the last decision made by second T after the farm or loop was opened.",
     KL_OPTION_NUMBER, AT(at_s), .most = 1e9},
    {"decision", "N", "Show decision N of the list.", KL_OPTION_UINT64, AT(decision), .most = 1e15},
    {"what-if", "policy=NAME", "Let policy NAME decide instead, from what was known then.", KL_OPTION_TEXT,
     AT(what_if), .words = "policy=", .read = check_what_if},
    KL_JSON_ROW(request),
    KL_PROGRAM_ROW(request),
};

static int run(const kl_command *command, int argc, char **argv) {
    request r = {.at_s = -1, .decision = -1};
    int first, code = kl_cmd_read(command, argc, argv, &r, &first);
    if (code == EXIT_SUCCESS)
        code = kl_cmd_one_file(command, argc, argv, first, r.program, &r.file);
    if (code != EXIT_SUCCESS)
        return code;
    if (r.at_s >= 0 && r.decision >= 0)
        return kl_cmd_usage(command, "--at and --decision cannot be combined");
    return r.file ? answer(&r, r.file) : answer_newest(&r);
}

const kl_command kl_cmd_replay = {
    .name = "replay",
    .summary = "Make the decisions of a run again, and show what led to them.",
    .text = "usage: kilter replay [--what-if policy=NAME] [--json] [FILE | --program NAME]\n"
            "       kilter replay --at T | --decision N [--what-if policy=NAME] [--json]\n"
            "                     [FILE | --program NAME]\n\n"
            "Lists the decisions of a run. Makes each of them again from what was known then,\n"
            "and says whether it is the same.\n"
            "With --at or --decision it shows one: its outcome, the workers at that moment,\n"
            "and what happened since the previous decision.\n" KL_RECORD_CHOICE_HELP,
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
