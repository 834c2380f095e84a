/* kilter predict: what other numbers of workers, or other workers, would give. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "predict.h"
#include "records.h"

enum { WORKERS_MOST = 1000000 };

typedef struct request {
    const char *file, *program, *speeds, *hosts, *picture;
    int64_t run; /* −1: the last that ended */
    uint32_t most;
    double iterations; /* 0: of one only */
    bool json, verbose;
} request;

static bool parse_number(const char *text, double *number) {
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*number) && errno != ERANGE;
}

static bool parse_count(const char *text, double low, double high, double *count) {
    return parse_number(text, count) && *count >= low && *count <= high && *count == floor(*count);
}

static int take_input(const kl_command *command, const kl_input *input, const char *text, kl_number *number) {
    double value;
    if (!parse_number(text, &value))
        return kl_cmd_usage(command, "%s %s: it is no number", input->option, text);
    if (!kl_input_possible(input, value)) {
        if (input->high == 1)
            return kl_cmd_usage(command, "%s %s: it must be between %g and 1", input->option, text,
                                input->low);
        if (value > input->high)
            return kl_cmd_usage(command, "%s %s: it must be at most %g", input->option, text, input->high);
        return kl_cmd_usage(command, "%s %s: it must be %s %g", input->option, text,
                            input->above_low ? "above" : "at least", input->low);
    }
    if (input == &kl_inputs[KL_IN_TASKS] && value != floor(value))
        return kl_cmd_usage(command, "%s %s: it must be a whole number", input->option, text);
    *number = (kl_number){value, "given"};
    return EXIT_SUCCESS;
}

static int take_value(const kl_command *command, const char *option, const char *text, request *r,
                      kl_basis *basis) {
    double count;
    for (int i = 0; i < KL_INPUTS; i++)
        if (strcmp(option, kl_inputs[i].option) == 0)
            return basis->in[i].from ? kl_cmd_usage(command, "%s is given twice", option)
                                     : take_input(command, &kl_inputs[i], text, &basis->in[i]);
    if (strcmp(option, "--speeds") == 0       ? r->speeds != NULL
        : strcmp(option, "--hosts") == 0      ? r->hosts != NULL
        : strcmp(option, "--program") == 0    ? r->program != NULL
        : strcmp(option, "--plot") == 0       ? r->picture != NULL
        : strcmp(option, "--run") == 0        ? r->run >= 0
        : strcmp(option, "--iterations") == 0 ? r->iterations > 0
                                              : r->most > 0)
        return kl_cmd_usage(command, "%s is given twice", option);
    if (strcmp(option, "--plot") == 0 && strcmp(text, "-") == 0)
        return kl_cmd_usage(command, "--plot -: the standard output is for the prediction; name a file");
    if (strcmp(option, "--speeds") == 0) {
        r->speeds = text;
    } else if (strcmp(option, "--hosts") == 0) {
        r->hosts = text;
    } else if (strcmp(option, "--program") == 0) {
        r->program = text;
    } else if (strcmp(option, "--plot") == 0) {
        r->picture = text;
    } else if (strcmp(option, "--run") == 0) {
        if (!parse_count(text, 0, 1e15, &count))
            return kl_cmd_usage(command, "--run %s: it is no number of a run", text);
        r->run = (int64_t)count;
    } else if (strcmp(option, "--iterations") == 0) {
        if (!parse_count(text, 1, 1e15, &r->iterations))
            return kl_cmd_usage(command, "--iterations %s: it must be a whole number from 1 on", text);
    } else if (strcmp(option, "--max-workers") == 0) {
        if (!parse_count(text, 1, WORKERS_MOST, &count))
            return kl_cmd_usage(command, "--max-workers %s: it must be a whole number from 1 to %d", text,
                                WORKERS_MOST);
        r->most = (uint32_t)count;
    }
    return EXIT_SUCCESS;
}

static bool takes_value(const char *word) {
    static const char *const others[] = {"--speeds",  "--hosts",       "--plot",      "--run",
                                         "--program", "--max-workers", "--iterations"};
    for (int i = 0; i < KL_INPUTS; i++)
        if (strcmp(word, kl_inputs[i].option) == 0)
            return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(word, others[i]) == 0)
            return true;
    return false;
}

static int parse(const kl_command *command, int argc, char **argv, request *r, kl_basis *basis) {
    bool options = true;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && strcmp(word, "--json") == 0) {
            r->json = true;
        } else if (options && strcmp(word, "--verbose") == 0) {
            r->verbose = true;
        } else if (options && takes_value(word)) {
            if (++i == argc)
                return kl_cmd_usage(command, "%s wants a value", word);
            int code = take_value(command, word, argv[i], r, basis);
            if (code != EXIT_SUCCESS)
                return code;
        } else if (options && word[0] == '-' && word[1]) {
            return kl_cmd_usage(command, "unknown option '%s'", word);
        } else if (r->file) {
            return kl_cmd_usage(command, "one file at a time: '%s' and '%s' were given", r->file, word);
        } else {
            r->file = word;
        }
    }
    if (r->file && r->program)
        return kl_cmd_usage(command, "%s", kl_file_and_program);
    if (r->speeds && r->hosts)
        return kl_cmd_usage(command, "--speeds and --hosts both say which workers: give one");
    if (r->run >= 0 && !r->file && basis->in[KL_IN_WORK_S].from)
        return kl_cmd_usage(command, "--run chooses a run of a record: name the FILE");
    return EXIT_SUCCESS;
}

/* A record is read when one is named, and when the work is not given. */
static kilter_status read_basis(const request *r, kl_basis *basis, kilter_error *error) {
    kilter_status status = KILTER_OK;
    if (r->file) {
        status = kl_basis_read(basis, r->file, r->run, error);
    } else if (!basis->in[KL_IN_WORK_S].from) {
        char *newest = kl_record_choose(r->program, false, error);
        status = newest ? kl_basis_read(basis, newest, r->run, error) : KILTER_ERR_INPUT;
        free(newest);
    }
    if (status == KILTER_OK)
        status = kl_basis_complete(basis, error);
    if (status == KILTER_OK && r->speeds)
        status = kl_basis_speeds(basis, r->speeds, error);
    if (status == KILTER_OK && r->hosts)
        status = kl_basis_hosts(basis, r->hosts, error);
    return status;
}

static int save_plot(const kl_prediction *p, const char *picture) {
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    if (out)
        kl_prediction_plot(p, out);
    int code = out && fclose(out) == 0 ? kl_cmd_save(picture, data, size) : EXIT_FAILURE;
    free(data);
    return code;
}

static int print(const kl_prediction *p, const request *r) {
    int code = r->picture ? save_plot(p, r->picture) : EXIT_SUCCESS;
    if (code != EXIT_SUCCESS)
        return code;
    if (r->json)
        kl_prediction_print_json(p, stdout);
    else
        kl_prediction_print_text(p, r->verbose, stdout);
    return kl_cmd_printed();
}

static int run(const kl_command *command, int argc, char **argv) {
    request r = {.run = -1};
    kl_basis basis = {0};
    kl_prediction prediction;
    kilter_error error;
    int code = parse(command, argc, argv, &r, &basis);
    if (code != EXIT_SUCCESS)
        return code;
    kilter_status status = read_basis(&r, &basis, &error);
    if (status == KILTER_OK)
        status = kl_predict(&basis, r.most, &prediction, &error);
    if (status == KILTER_OK && r.iterations > 0) {
        prediction.program.workers = prediction.most;
        status = kl_predict_program(&basis, r.iterations, &prediction.program, &error);
        if (status != KILTER_OK)
            kl_prediction_free(&prediction);
    }
    if (status == KILTER_OK) {
        code = print(&prediction, &r);
        kl_prediction_free(&prediction);
    } else {
        code = kilter_exit("kilter", &error);
    }
    kl_basis_free(&basis);
    return code;
}

const kl_command kl_cmd_predict = {
    .name = "predict",
    .summary = "what other numbers of workers, or other workers, would give",
    .help = "usage: kilter predict [OPTION]… [FILE]\n"
            "\n"
            "Prints how long an iteration would take on n workers, with which efficiency and performance "
            "index, and\n"
            "how many workers pay. Its numbers come from the last run of FILE, a run record, whose tasks are "
            "all done,\n"
            "and from the options, which go before. Where no run is done, as after Ctrl-C: from the tasks of "
            "the last\n"
            "one that were. With --work-s no record is needed.\n" KL_RECORD_CHOICE_HELP "\n"
            "  --run N            run N of the record\n"
            "  --program NAME     the newest record of this program\n"
            "  --work-s S         T_c: seconds to compute everything on one worker\n"
            "  --bytes B          V: bytes of all messages, both ways (0)\n"
            "  --alpha A          α: the part of them that goes to the workers, 0 to 1 (0.5)\n"
            "  --startup-s S      m_o: seconds to start a message (0)\n"
            "  --per-byte-s S     λ: seconds a byte (0)\n"
            "  --master-s S       l_m: seconds of the master alone in each iteration (0)\n"
            "  --answer-s S       seconds of the master for each chunk of several rounds (m_o)\n"
            "  --tasks N          M: number of tasks\n"
            "  --task-mean-s S    μ: seconds of a task, on the mean\n"
            "  --task-sd-s S      σ: standard deviation of these seconds\n"
            "  --iterations N     all of a program that forks such a run N times and once to begin with\n"
            "  --max-workers N    the largest number of workers to look at\n"
            "  --speeds LIST      on other workers: 1,1,0.5 or 16x1,16x0.25, 1 being the mean worker so far\n"
            "  --hosts FILE       on the workers of another record\n"
            "  --plot OUT.svg     draw it as well\n"
            "  --verbose          also the model's numbers, by their symbols, and both ways to send\n"
            "  --json             one JSON object; times in seconds, null where a number is not known\n"
            "  --help             this text\n",
    .run = run,
};
