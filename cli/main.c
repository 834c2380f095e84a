/* kilter: looks at what Kilter's programs did, and starts them. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "kilter/version.h"

static const kl_command *const commands[] = {
    &kl_cmd_drain, &kl_cmd_list,     &kl_cmd_predict, &kl_cmd_prune, &kl_cmd_report,
    &kl_cmd_run,   &kl_cmd_simulate, &kl_cmd_tune,    NULL,
};

static void say_usage(const kl_command *command, const char *format, va_list args) {
    fprintf(stderr, "kilter%s%s: ", command ? " " : "", command ? command->name : "");
    vfprintf(stderr, format, args);
    fprintf(stderr, "; try 'kilter%s%s --help'\n", command ? " " : "", command ? command->name : "");
}

int kl_cmd_usage(const kl_command *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say_usage(command, format, args);
    va_end(args);
    return KL_EXIT_USER;
}

int kl_cmd_printed(void) {
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return EXIT_SUCCESS;
    fprintf(stderr, "kilter: writing to the standard output: %s; make room there\n", strerror(errno));
    return EXIT_FAILURE;
}

static int print_help(void) {
    puts("usage: kilter COMMAND [OPTION]… [FILE]\n"
         "       kilter help COMMAND\n"
         "       kilter --version\n"
         "\n"
         "Looks at what programs that use Kilter did.\n"
         "\n"
         "commands:");
    for (int i = 0; commands[i]; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    return kl_cmd_printed();
}

static int print_command_help(const kl_command *command) {
    fputs(command->help, stdout);
    return kl_cmd_printed();
}

static const kl_command *find(const char *name) {
    for (int i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static bool asks_for_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int help(int argc, char **argv) {
    if (argc < 2)
        return print_help();
    const kl_command *command = find(argv[1]);
    return command ? print_command_help(command) : kl_cmd_usage(NULL, "unknown command '%s'", argv[1]);
}

/* "--option=value" as the two words "--option" and "value", so that every command takes both. The words
 * are the program's arguments: they last until its end, and so do these. */
static char **split_options(int *argc, char **argv) {
    char **words = calloc(2 * (size_t)*argc + 1, sizeof *words);
    int count = 0;
    bool options = true;
    for (int i = 0; words && i < *argc; i++) {
        words[count++] = argv[i];
        options = options && strcmp(argv[i], "--") != 0;
        char *equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;
        if (options && equals) {
            *equals = '\0';
            words[count++] = equals + 1;
        }
    }
    *argc = count;
    return words;
}

static int run(const kl_command *command, int argc, char **argv) {
    char **words = split_options(&argc, argv);
    if (!words)
        return kl_cmd_usage(command, "memory ran out");
    int code = command->run(command, argc, words);
    free(words);
    return code;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return kl_cmd_usage(NULL, "no command given");
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return print_help();
    if (strcmp(word, "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(word, "--version") == 0) {
        puts("kilter " KILTER_VERSION);
        return kl_cmd_printed();
    }
    const kl_command *command = find(word);
    if (!command)
        return kl_cmd_usage(NULL, "unknown %s '%s'", word[0] == '-' ? "option" : "command", word);
    if (asks_for_help(argc - 1, argv + 1))
        return print_command_help(command);
    return run(command, argc - 1, argv + 1);
}
