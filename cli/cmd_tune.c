/* kilter tune: a running farm's measure points, performance functions and tuning points, live. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "cmd.h"
#include "decide/decide.h"
#include "records.h"
#include "tune_print.h"

static const char doing[] = "tuning";

typedef struct tune_options {
    const char *file, *program;
    bool once, json, set;
    double interval_s;
    kl_control_setting setting;
} tune_options;

/* --- options --- */

static int bad_policy(const kl_command *command, const char *name) {
    char names[256] = "";
    for (size_t i = 0, at = 0; i < kl_policy_count() && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
                               kl_policy_name(kl_policy_at(i)));
    return kl_cmd_usage(command, "--set policy=%s: there is no such policy, but %s", name, names);
}

static int read_policy(const kl_command *command, const char *value, kl_control_setting *setting) {
    const kl_policy *policy = kl_policy_find(value);
    if (!policy)
        return bad_policy(command, value);
    setting->policy_given = true;
    snprintf(setting->policy, sizeof setting->policy, "%s", kl_policy_name(policy));
    return EXIT_SUCCESS;
}

static bool is_auto(const char *value) {
    return strcmp(value, "auto") == 0;
}

static int read_factor(const kl_command *command, const char *value, kl_control_setting *setting) {
    char *end;
    double factor = strtod(value, &end);
    if (!is_auto(value) && (end == value || *end || !(factor > 0 && factor <= 1)))
        return kl_cmd_usage(command, "--set factor=%s: it is a number above 0 and at most 1, or auto", value);
    setting->factor_given = true;
    setting->factor = is_auto(value) ? 0 : factor;
    return EXIT_SUCCESS;
}

static int read_workers(const kl_command *command, const char *value, kl_control_setting *setting) {
    char *end;
    errno = 0;
    unsigned long workers = strtoul(value, &end, 10);
    bool digits = *value >= '0' && *value <= '9' && !*end && errno == 0;
    if (!is_auto(value) && (!digits || workers == 0 || workers > UINT32_MAX))
        return kl_cmd_usage(command, "--set workers=%s: it is a number from 1 on, or auto", value);
    setting->workers_given = true;
    setting->workers = is_auto(value) ? 0 : (uint32_t)workers;
    return EXIT_SUCCESS;
}

static int read_setting(const kl_command *command, const char *text, tune_options *options) {
    static const struct {
        const char *point;
        int (*read)(const kl_command *command, const char *value, kl_control_setting *setting);
    } points[] = {{"policy", read_policy}, {"factor", read_factor}, {"workers", read_workers}};
    size_t size = strcspn(text, "=");
    const kl_control_setting *setting = &options->setting;
    const bool given[] = {setting->policy_given, setting->factor_given, setting->workers_given};
    options->set = true;
    for (size_t i = 0; text[size] && i < sizeof points / sizeof *points; i++)
        if (strlen(points[i].point) == size && strncmp(points[i].point, text, size) == 0)
            return given[i] ? kl_cmd_usage(command, "--set %s: %s is set twice", text, points[i].point)
                            : points[i].read(command, text + size + 1, &options->setting);
    return kl_cmd_usage(command, "--set %s: it is policy=NAME, factor=F or workers=N", text);
}

static int read_interval(const kl_command *command, const char *text, tune_options *options) {
    char *end;
    options->interval_s = strtod(text, &end);
    if (end == text || *end || !(options->interval_s >= 0.05 && options->interval_s <= 86400))
        return kl_cmd_usage(command, "--interval-s %s: it is a number of seconds from 0.05 to 86400", text);
    return EXIT_SUCCESS;
}

static int read_option(const kl_command *command, int argc, char **argv, int *at, tune_options *options) {
    const char *option = argv[*at];
    if (strcmp(option, "--once") == 0) {
        options->once = true;
        return EXIT_SUCCESS;
    }
    if (strcmp(option, "--json") == 0) {
        options->json = true;
        return EXIT_SUCCESS;
    }
    bool set = strcmp(option, "--set") == 0, program = strcmp(option, "--program") == 0;
    if (!set && !program && strcmp(option, "--interval-s") != 0)
        return kl_cmd_usage(command, "unknown option '%s'", option);
    if (*at + 1 == argc)
        return kl_cmd_usage(command, "%s wants a value", option);
    const char *value = argv[++*at];
    if (program)
        options->program = value;
    return program ? EXIT_SUCCESS
           : set   ? read_setting(command, value, options)
                   : read_interval(command, value, options);
}

static int read_options(const kl_command *command, int argc, char **argv, tune_options *options) {
    bool ended = false;
    for (int i = 1; i < argc; i++) {
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (!ended && argv[i][0] == '-' && argv[i][1]) {
            int code = read_option(command, argc, argv, &i, options);
            if (code != EXIT_SUCCESS)
                return code;
        } else if (options->file) {
            return kl_cmd_usage(command, "one file at a time: '%s' and '%s' were given", options->file,
                                argv[i]);
        } else {
            options->file = argv[i];
        }
    }
    return EXIT_SUCCESS;
}

/* --- looking --- */

/* All at once, so that a terminal shows no half look. */
static int print_on_terminal(const kl_control_state *state) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory) {
        fputs("\033[H\033[J", memory); /* to the top, and nothing below */
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
        putchar('\n'); /* between two looks */
    return kl_cmd_printed();
}

static void sleep_for(double seconds) {
    struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * fmod(seconds, 1))};
    nanosleep(&pause, NULL);
}

/* Until the farm ends, or the reader goes. */
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
        sleep_for(options->interval_s);
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
    int code = read_options(command, argc, argv, &options);
    if (code != EXIT_SUCCESS)
        return code;
    if (options.file && options.program)
        return kl_cmd_usage(command, "%s", kl_file_and_program);
    return options.file ? tune(options.file, &options) : tune_newest(&options);
}

const kl_command kl_cmd_tune = {
    .name = "tune",
    .summary = "what a running farm measures, expects and decides, live; and set that by hand",
    .help =
        "usage: kilter tune [--once] [--json] [--interval-s S] [FILE | --program NAME]\n"
        "       kilter tune --set POINT=VALUE [--set …] [--json] [FILE | --program NAME]\n"
        "\n"
        "Attaches to the running farm whose record is FILE, on the machine of its master, and shows what it\n"
        "measures, what its model expects of that, and what is decided; or sets tuning points by hand and\n"
        "says when that takes effect. Without it the farm tunes itself. Only the owner of FILE may "
        "attach.\n" KL_RECORD_CHOICE_HELP
        "Records of farms that run go before those of farms that have ended.\n"
        "\n"
        "  --set policy=NAME    deal by this policy from the next iteration on; auto: the farm chooses\n"
        "  --set factor=F       partition factor of FSC and DPF from the next batch on, above 0 and at\n"
        "                       most 1; auto: the policy chooses\n"
        "  --set workers=N      so many work from the next iteration on, the fastest; auto: the farm\n"
        "                       chooses\n"
        "  --interval-s S       seconds between two looks; 1 by itself\n"
        "  --program NAME       the newest record of this program\n"
        "  --once               one look\n"
        "  --json               one JSON object a look, on a line; times in seconds, null where a number is\n"
        "                       not known\n"
        "  --help               this text\n",
    .run = run,
};
