/* Read the options of a command, and print its help. */
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

const kl_command *const kl_commands[] = {
    &kl_cmd_drain,  &kl_cmd_list, &kl_cmd_predict,  &kl_cmd_prune, &kl_cmd_replay,
    &kl_cmd_report, &kl_cmd_run,  &kl_cmd_simulate, &kl_cmd_tune,  NULL,
};

const kl_command *kl_cmd_find(const char *name) {
    for (int i = 0; kl_commands[i]; i++)
        if (strcmp(kl_commands[i]->name, name) == 0)
            return kl_commands[i];
    return NULL;
}

int kl_cmd_usage(const kl_command *command, const char *format, ...) {
    const char *blank = command ? " " : "", *name = command ? command->name : "";
    va_list args;
    va_start(args, format);
    fprintf(stderr, "kilter%s%s: ", blank, name);
    vfprintf(stderr, format, args);
    fprintf(stderr, "; try 'kilter%s%s --help'\n", blank, name);
    va_end(args);
    return KL_EXIT_USER;
}

enum { OPTIONS_MOST = 32, NOT_LONG = 256 }; /* NOT_LONG: larger than any letter */

int kl_cmd_unknown(const kl_command *command, const char *what, const char *word, const char *meant) {
    return kl_cmd_usage(command, "unknown %s '%.*s'%s%s%s", what, (int)strcspn(word, "="), word,
                        meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
}

static int unknown(const kl_command *command, const char *word) {
    size_t length = strcspn(word, "=");
    char name[80] = "", meant[80];
    if (strncmp(word, "--", 2) == 0 && length < sizeof name)
        memcpy(name, word + 2, length - 2);
    const char *nearest = *name ? kl_typo_of_option(command->options, name) : NULL;
    for (size_t i = 0; *name && !nearest && i < command->options.count; i++)
        if (strncmp(command->options.row[i].name, name, strlen(name)) == 0)
            nearest = command->options.row[i].name;
    snprintf(meant, sizeof meant, "--%s", nearest ? nearest : "");
    return kl_cmd_unknown(command, "option", word, nearest ? meant : NULL);
}

static int take(const kl_command *command, const kl_option *o, const char *text, const char **given,
                void *into) {
    kilter_error error;
    char said[64];
    snprintf(said, sizeof said, "--%s", o->name);
    if (*given && o->value && !o->repeats)
        return kl_cmd_usage(command, "%s is given twice: '%s' and '%s'", said, *given, text);
    *given = text;
    return kl_option_set(o, said, text, into, &error) == KILTER_OK ? EXIT_SUCCESS
                                                                   : kl_cmd_usage(command, "%s", error.text);
}

/* Check that each given option has the option it needs. Return the exit code. */
static int check_needs(const kl_command *command, const char *const *given) {
    for (size_t i = 0; i < command->options.count; i++) {
        const kl_option *o = &command->options.row[i];
        if (given[i] && o->needs &&
            !given[kl_option_find(command->options, o->needs, strlen(o->needs)) - command->options.row])
            return kl_cmd_usage(command, "--%s has no effect without --%s", o->name, o->needs);
    }
    return EXIT_SUCCESS;
}

int kl_cmd_read(const kl_command *command, int argc, char **argv, void *into, int *first) {
    struct option rows[OPTIONS_MOST + 1];
    const char *given[OPTIONS_MOST] = {NULL};
    int code = EXIT_SUCCESS, got;
    *first = argc;
    for (size_t i = 0; i < command->options.count; i++)
        rows[i] =
            (struct option){.name = command->options.row[i].name,
                            .has_arg = command->options.row[i].value ? required_argument : optional_argument,
                            .val = NOT_LONG + (int)i};
    rows[command->options.count] = (struct option){.name = NULL};
    optind = 0; /* getopt_long() starts from the beginning */
    while (code == EXIT_SUCCESS &&
           (got = getopt_long(argc, argv, command->in_order ? "+:" : ":", rows, NULL)) != -1) {
        if (got == '?' && optopt > 0 && optopt < NOT_LONG)
            return unknown(command, (const char[]){'-', (char)optopt, '\0'});
        if (got == '?')
            return unknown(command, argv[optind - 1]);
        const kl_option *o = &command->options.row[(got == ':' ? optopt : got) - NOT_LONG];
        bool apart = got != ':' && optarg && optarg == argv[optind - 1]; /* the value is a separate word */
        const char *word = argv[optind - (apart ? 2 : 1)];
        if (strcspn(word + 2, "=") !=
            strlen(o->name)) /* getopt_long() accepts shortened names, Kilter does not */
            return unknown(command, word);
        if (got == ':' || (apart && strcmp(optarg, "--") == 0))
            return kl_cmd_usage(command, "--%s wants a value", o->name);
        code = take(command, o, optarg ? optarg : "1", &given[o - command->options.row], into);
    }
    *first = optind;
    return code == EXIT_SUCCESS ? check_needs(command, given) : code;
}

int kl_cmd_one_file(const kl_command *command, int argc, char **argv, int first, const char *program,
                    const char **file) {
    *file = first < argc ? argv[first] : NULL;
    if (first + 1 < argc)
        return kl_cmd_usage(command, "one file at a time: '%s' and '%s' were given", *file, argv[first + 1]);
    return *file && program ? kl_cmd_usage(command, "FILE and --program cannot be combined") : EXIT_SUCCESS;
}

int kl_cmd_help(const kl_command *command) {
    puts(command->text);
    kl_options_print(stdout, command->options);
    kl_option_print(stdout, "-h, --help", "Print this help.");
    return kl_cmd_printed();
}
