/* kilter replay: a decision of a run, with what led to it, from the run's record. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd.h"
#include "records.h"
#include "report/report.h"

typedef struct request {
    bool json;
    const char *file, *program;
    double at_s;      /* −1: not given */
    int64_t decision; /* −1: not given */
} request;

static kl_replay_choice choose(const request *r) {
    if (r->at_s >= 0)
        return (kl_replay_choice){KL_REPLAY_TIME, llround(r->at_s * 1e6), r->json};
    return r->decision >= 0 ? (kl_replay_choice){KL_REPLAY_ID, r->decision, r->json}
                            : (kl_replay_choice){KL_REPLAY_LIST, 0, r->json};
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

#define AT(member) .offset = offsetof(request, member)

static const kl_option rows[] = {
    {"at", "T", "Show the last decision made by second T after the farm or loop was opened.",
     KL_OPTION_NUMBER, AT(at_s), .most = 1e9},
    {"decision", "N", "Show decision N of the list.", KL_OPTION_UINT64, AT(decision), .most = 1e15},
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
    .summary = "Show a decision of a run, with the state and the events before it.",
    .text = "usage: kilter replay [--json] [FILE | --program NAME]\n"
            "       kilter replay --at T | --decision N [--json] [FILE | --program NAME]\n\n"
            "Lists the decisions of a run.\n"
            "With --at or --decision it shows one: what came of it, the workers at that moment,\n"
            "and what happened since the decision before.\n" KL_RECORD_CHOICE_HELP,
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
