/* kilter tune: show what a running farm measures and decides, and set its policy, factor or number of
 * workers. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "cmd.h"
#include "decide/decide.h"
#include "records.h"
#include "sys/sys.h"
#include "tune_print.h"

static const char doing[] = "tuning";

typedef struct tune_options {
    const char *file, *program;
    bool once, json, set;
    double interval_s;
    kl_control_setting setting;
} tune_options;

/* --- options --- */

static kilter_status read_policy(const kl_value *v) {
    const kl_policy *policy = kl_policy_find(v->text);
    kl_control_setting *setting = v->into;
    if (!policy)
        return kl_fail(v->error, KILTER_ERR_USAGE, "%s: there is no policy '%s'; kilter help farm lists them",
                       v->said, v->text);
    snprintf(setting->policy, sizeof setting->policy, "%s", kl_policy_name(policy));
    return KILTER_OK;
}

#define POINT(member) .offset = offsetof(kl_control_setting, member)

static const struct {
    kl_option value; /* name and values of the tuning point; for a number, the word auto sets 0 */
    size_t given;
} POINTS[] = {
    {{"policy", .kind = KL_OPTION_OTHER, .read = read_policy}, offsetof(kl_control_setting, policy_given)},
    {{"factor", .kind = KL_OPTION_NUMBER, POINT(factor), .above = true, .most = 1},
     offsetof(kl_control_setting, factor_given)},
    {{"workers", .kind = KL_OPTION_UINT32, POINT(workers), .least = 1, .most = UINT32_MAX},
     offsetof(kl_control_setting, workers_given)},
};

static kilter_status set_point(size_t i, const char *value, kl_control_setting *setting,
                               kilter_error *error) {
    const kl_option *point = &POINTS[i].value;
    bool *given = (bool *)((char *)setting + POINTS[i].given);
    char said[32];
    if (*given)
        return kl_fail(error, KILTER_ERR_USAGE, "--set %s=%s: %s is set twice", point->name, value,
                       point->name);
    *given = true;
    snprintf(said, sizeof said, "--set %s", point->name);
    return point->kind != KL_OPTION_OTHER && strcmp(value, "auto") == 0
               ? KILTER_OK
               : kl_option_set(point, said, value, setting, error);
}

static kilter_status read_setting(const kl_value *v) {
    tune_options *options = v->into;
    size_t size = strcspn(v->text, "=");
    options->set = true;
    for (size_t i = 0; v->text[size] && i < sizeof POINTS / sizeof *POINTS; i++)
        if (strlen(POINTS[i].value.name) == size && strncmp(POINTS[i].value.name, v->text, size) == 0)
            return set_point(i, v->text + size + 1, &options->setting, v->error);
    return kl_fail(v->error, KILTER_ERR_USAGE, "%s %s: give policy=NAME, factor=F or workers=N", v->said,
                   v->text);
}

#define AT(member) .offset = offsetof(tune_options, member)

static const kl_option rows[] = {
    {"set", "POINT=VALUE",
     "Set a tuning point by hand: policy=NAME, from the next run on; factor=F, the partition factor of FSC "
     "and DPF, above 0 and at most 1, from the next batch on; workers=N, the number of active workers, from "
     "the next run on. With auto as the value, the farm chooses.",
     KL_OPTION_OTHER, .read = read_setting, .repeats = true, .words = "policy=auto factor=auto workers=auto"},
    {"interval-s", "SECONDS", "Time between two states (default: 1).", KL_OPTION_NUMBER, AT(interval_s),
     .least = 0.05, .most = 86400, .repeats = true},
    {"program", "NAME", "Without FILE: take the newest record of this program.", KL_OPTION_TEXT, AT(program),
     .repeats = true},
    {"once", NULL, "Print the state once and end.", KL_OPTION_SWITCH, AT(once)},
    {"json", NULL,
     "Print each state as a JSON object on one line; times are in seconds, and an unknown number is null.",
     KL_OPTION_SWITCH, AT(json)},
};

/* --- showing the farm's state --- */

/* Print the state with one write, so that the terminal never shows half of a state. */
static int print_on_terminal(const kl_control_state *state) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory) {
        fputs("\033[H\033[J", memory); /* escape sequence: move to the top of the screen and clear
                                        * everything below */
        kl_tune_print_text(state, memory);
        fclose(memory);
        fwrite(text, 1, size, stdout);
    }
    free(text);
    return kl_cmd_printed();
}

static int print(const kl_control_state *state, const tune_options *options, bool live) {
    if (live)
        return print_on_terminal(state);
    if (options->json)
        kl_tune_print_json(state, stdout);
    else
        kl_tune_print_text(state, stdout);
    if (!options->json && !options->once)
        putchar('\n'); /* print an empty line after each state of the farm */
    return kl_cmd_printed();
}

/* Print states until the farm ends or nobody reads the output. */
static int watch(const char *file, kl_tuner *tuner, const tune_options *options) {
    kl_control_state state;
    kilter_error error;
    bool live = !options->json && !options->once && isatty(STDOUT_FILENO) == 1;
    for (bool seen = false;; seen = true) {
        kilter_status status = kl_tuner_look(tuner, &state, &error);
        if (status == KILTER_ERR_PEER && seen && kl_tuner_ended(tuner)) {
            fprintf(stderr, "kilter: the farm has ended\n");
            return EXIT_SUCCESS;
        }
        if (status != KILTER_OK)
            return kl_cmd_farm_failed(doing, file, &error);
        int code = print(&state, options, live);
        if (code != EXIT_SUCCESS || options->once)
            return code;
        kl_nap_s(options->interval_s);
    }
}

static int set(const char *file, kl_tuner *tuner, const tune_options *options) {
    char answer[KL_CONTROL_ANSWER_BYTES];
    kilter_error error;
    if (kl_tuner_set(tuner, &options->setting, answer, &error) != KILTER_OK)
        return kl_cmd_farm_failed(doing, file, &error);
    return kl_cmd_print_answer(answer, options->json);
}

static int tune(const char *file, const tune_options *options) {
    kl_tuner *tuner = NULL;
    int code = kl_cmd_attach(doing, file, &tuner);
    if (code == EXIT_SUCCESS)
        code = options->set ? set(file, tuner, options) : watch(file, tuner, options);
    kl_tuner_detach(tuner);
    return code;
}

static int tune_newest(const tune_options *options) {
    kilter_error error;
    char *file = kl_record_choose(options->program, true, &error);
    if (!file)
        return kilter_exit("kilter", &error);
    int code = tune(file, options);
    free(file);
    return code;
}

static int run(const kl_command *command, int argc, char **argv) {
    tune_options options = {.interval_s = 1};
    int first, code = kl_cmd_read(command, argc, argv, &options, &first);
    if (code == EXIT_SUCCESS)
        code = kl_cmd_one_file(command, argc, argv, first, options.program, &options.file);
    if (code != EXIT_SUCCESS)
        return code;
    return options.file ? tune(options.file, &options) : tune_newest(&options);
}

const kl_command kl_cmd_tune = {
    .name = "tune",
    .summary = "Show what a running farm measures, expects and decides; set its tuning points by hand.",
    .text = "usage: kilter tune [--once] [--json] [--interval-s SECONDS] [FILE | --program NAME]\n"
            "       kilter tune --set POINT=VALUE… [--json] [FILE | --program NAME]\n\n"
            "Attaches to the running farm whose record is FILE, on the machine of its master. It\n"
            "shows what the farm measures, what its model expects, and what it decides; or it sets\n"
            "tuning points by hand and says when they take effect. Without settings the farm tunes\n"
            "itself. Only the owner of FILE may attach.\n" KL_RECORD_CHOICE_HELP
            "Among the records, those of running farms come first.\n",
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
