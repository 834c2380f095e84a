/* kilter: start programs that use Kilter, and show what they did. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "kilter/farm.h"
#include "kilter/version.h"

static int print_help(void) {
    puts("usage: kilter COMMAND [OPTION]… [FILE]\n"
         "       kilter help COMMAND\n"
         "       kilter help farm        the options of programs that open a farm\n"
         "       kilter --version\n"
         "\n"
         "Shows what programs that use Kilter did, and starts them.\n"
         "\n"
         "commands:");
    for (int i = 0; kl_commands[i]; i++)
        kl_option_print(stdout, kl_commands[i]->name, kl_commands[i]->summary);
    return kl_cmd_printed();
}

static int unknown(const char *word) {
    enum { MOST = 32 };
    const char *names[MOST] = {"help", "--help", "--version"};
    size_t count = 3;
    for (int i = 0; kl_commands[i] && count < MOST; i++)
        names[count++] = kl_commands[i]->name;
    return kl_cmd_unknown(NULL, word[0] == '-' ? "option" : "command", word, kl_typo_of(word, names, count));
}

static int help(int argc, char **argv) {
    if (argc < 2)
        return print_help();
    const kl_command *command = kl_cmd_find(argv[1]);
    if (command)
        return kl_cmd_help(command);
    if (strcmp(argv[1], "farm") != 0)
        return unknown(argv[1]);
    kilter_farm_usage(stdout);
    return kl_cmd_printed();
}

/* Repair what the parent process may have broken. If the standard input, output or error is closed, open
 * /dev/null in its place, so that using it fails. Otherwise a file that is opened later would become, for
 * example, the standard output.
 * SIGCHLD must not be ignored, or exit codes of commands would be lost. */
static void mend_environment(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    signal(SIGCHLD, SIG_DFL);
}

int main(int argc, char **argv) {
    mend_environment();
    if (argc < 2)
        return kl_cmd_usage(NULL, "no command given");
    const char *word = argv[1];
    if (kl_option_is_word("--help -h", word))
        return print_help();
    if (strcmp(word, "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(word, "complete") == 0)
        return kl_cmd_complete(argc - 2, argv + 2);
    if (strcmp(word, "--version") == 0) {
        puts("kilter " KILTER_VERSION);
        return kl_cmd_printed();
    }
    const kl_command *command = kl_cmd_find(word);
    if (!command)
        return unknown(word);
    return kl_cmd_asks_for_help(command, argc - 1, argv + 1) ? kl_cmd_help(command)
                                                             : command->run(command, argc - 1, argv + 1);
}
