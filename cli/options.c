/* Read the options of a subcommand, and print its help. */
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

const kl_command *const kl_commands[] = {
    &kl_cmd_cc,      &kl_cmd_drain, &kl_cmd_hosts,  &kl_cmd_list,   &kl_cmd_map, &kl_cmd_move,
    &kl_cmd_predict, &kl_cmd_prune, &kl_cmd_replay, &kl_cmd_report, &kl_cmd_run, &kl_cmd_simulate,
    &kl_cmd_top,     &kl_cmd_tune,  &kl_cmd_watch,  NULL,
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

/* NOT_LONG: getopt_long() returns NOT_LONG + i for the long option in row i; each option letter is smaller */
enum { OPTIONS_MOST = 32, NOT_LONG = 256 };

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

static bool is_given(const kl_command *command, const char *const *given, const char *name) {
    return given[kl_option_find(command->options, name, strlen(name)) - command->options.row];
}

/* Check that each option that a given option needs is also given, and that no two given options exclude each
 * other. Return the exit code. */
static int check_needs(const kl_command *command, const char *const *given) {
    for (size_t i = 0; i < command->options.count; i++) {
        const kl_option *o = &command->options.row[i];
        if (given[i] && o->except && is_given(command, given, o->except))
            return kl_cmd_usage(command, "--%s and --%s cannot be combined", o->except, o->name);
        if (given[i] && o->needs && !is_given(command, given, o->needs))
            return kl_cmd_usage(command, "--%s has no effect without --%s", o->name, o->needs);
    }
    return EXIT_SUCCESS;
}

/* Write the letters of all options in the form that getopt_long() wants. */
static void put_letters(const kl_command *command, char letters[2 * OPTIONS_MOST + 3]) {
    size_t size = 0;
    if (command->in_order)
        letters[size++] = '+';
    letters[size++] = ':';
    for (size_t i = 0; i < command->options.count; i++) {
        const kl_option *o = &command->options.row[i];
        if (o->letter)
            letters[size++] = o->letter;
        if (o->letter && o->value)
            letters[size++] = ':';
    }
    letters[size] = '\0';
}

/* Return the option that getopt_long() found. `what` is a letter, or NOT_LONG + the number of a row. */
static const kl_option *option_at(const kl_command *command, int what) {
    if (what >= NOT_LONG)
        return &command->options.row[what - NOT_LONG];
    for (size_t i = 0; i < command->options.count; i++)
        if (command->options.row[i].letter == what)
            return &command->options.row[i];
    return NULL;
}

/* Describe the long options in the form that getopt_long() wants. */
static void put_rows(const kl_command *command, struct option rows[OPTIONS_MOST + 1]) {
    for (size_t i = 0; i < command->options.count; i++)
        rows[i] =
            (struct option){.name = command->options.row[i].name,
                            .has_arg = command->options.row[i].value ? required_argument : optional_argument,
                            .val = NOT_LONG + (int)i};
    rows[command->options.count] = (struct option){.name = NULL};
}

/* Handle one result of getopt_long(): store the option's value, or print an error. */
static int take_found(const kl_command *command, int got, char **argv, const char **given, void *into) {
    int what = got == ':' ? optopt : got;
    if (got == '?' && optopt > 0 && optopt < NOT_LONG)
        return unknown(command, (const char[]){'-', (char)optopt, '\0'});
    if (got == '?')
        return unknown(command, argv[optind - 1]);
    const kl_option *o = option_at(command, what);
    bool apart = got != ':' && optarg && optarg == argv[optind - 1]; /* true: the value is a separate word */
    const char *word = argv[optind - (apart ? 2 : 1)];
    if (what >= NOT_LONG &&
        strcspn(word + 2, "=") != strlen(o->name)) /* refuse shortened names, which getopt_long() accepts */
        return unknown(command, word);
    if (got == ':' || (apart && strcmp(optarg, "--") == 0))
        return kl_cmd_usage(command, "--%s wants a value", o->name);
    return take(command, o, optarg ? optarg : "1", &given[o - command->options.row], into);
}

int kl_cmd_read(const kl_command *command, int argc, char **argv, void *into, int *first) {
    struct option rows[OPTIONS_MOST + 1];
    const char *given[OPTIONS_MOST] = {NULL};
    char letters[2 * OPTIONS_MOST + 3];
    int code = EXIT_SUCCESS, got;
    put_rows(command, rows);
    put_letters(command, letters);
    optind = 0; /* makes getopt_long() start from the beginning */
    while (code == EXIT_SUCCESS && (got = getopt_long(argc, argv, letters, rows, NULL)) != -1)
        code = take_found(command, got, argv, given, into);
    *first = code == EXIT_SUCCESS ? optind : argc;
    return code == EXIT_SUCCESS ? check_needs(command, given) : code;
}

/* Return whether the word is an option whose value is in the next word. */
static bool takes_next(const kl_command *command, const char *word) {
    const kl_option *o = word[1] == '-'    ? kl_option_find(command->options, word + 2, strlen(word + 2))
                         : word[2] == '\0' ? option_at(command, word[1])
                                           : NULL;
    return o && o->value;
}

bool kl_cmd_asks_for_help(const kl_command *command, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (kl_option_is_word("--help -h", argv[i]))
            return true;
        if (command->in_order && (argv[i][0] != '-' || argv[i][1] == '\0'))
            return false; /* the words from here on belong to another program */
        if (command->in_order && takes_next(command, argv[i]))
            i++;
    }
    return false;
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
