/* Fills in a man page: copies the standard input, and puts what the tables of options say in place of the
 * lines
 *     .\" OPTIONS NAME      the options of a command, or of farms
 *     .\" COMMANDS          the commands
 *     .\" VARIABLES         the environment variables
 *     .\" VARIABLE NAME     one of them */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "farm/farm.h"

/* Print a text with a line for each sentence. */
static void print_text(const char *text) {
    for (bool begins = true; text && *text; text++) {
        fputs(begins && *text == '.' ? "\\&." : *text == '-' ? "\\-" : (const char[]){*text, '\0'}, stdout);
        begins = *text == '.' && text[1] == ' ';
        if (begins) {
            putchar('\n');
            text++;
        }
    }
    if (text)
        putchar('\n');
}

static void print_options(kl_option_list list) {
    for (size_t i = 0; i < list.count; i++) {
        const kl_option *o = &list.row[i];
        printf(".It Fl -%s%s%s\n", o->name, o->value ? " Ar " : "", o->value ? o->value : "");
        print_text(o->help);
        print_text(o->more);
    }
}

static void print_named_options(const char *name) {
    const kl_command *command = kl_cmd_find(name);
    puts(".Bl -tag -width Ds");
    print_options(command ? command->options : kl_farm_options());
    if (command)
        puts(".It Fl h , Fl -help\nPrint a short help.");
    puts(".El");
}

static void print_commands(void) {
    puts(".Bl -tag -width Ds");
    for (int i = 0; kl_commands[i]; i++) {
        printf(".It Cm %s\n", kl_commands[i]->name);
        print_text(kl_commands[i]->summary);
        printf("See\n.Xr kilter-%s 1 .\n", kl_commands[i]->name);
    }
    puts(".It Cm help Op Ar command\nPrint the list of commands, or the help of one.\n.El");
}

/* name = NULL: all. */
static void print_variables(const char *name) {
    size_t count;
    const kl_variable *variable = kl_farm_variables(&count);
    const kl_option_list options = kl_farm_options();
    char of_option[KL_VARIABLE_BYTES];
    puts(".Bl -tag -width Ds");
    for (size_t i = 0; !name && i + 1 < options.count; i++) { /* the last one is help */
        kl_option_variable(&options.row[i], of_option);
        printf(".It Ev %s\nThe value of\n.Fl -%s .\n", of_option, options.row[i].name);
    }
    for (size_t i = 0; i < count; i++)
        if (!name || strcmp(name, variable[i].name) == 0) {
            printf(".It Ev %s\n", variable[i].name);
            print_text(variable[i].help);
        }
    puts(".El");
}

int main(int argc, char **argv) {
    char line[1024], name[64];
    if (argc != 3 || !freopen(argv[1], "r", stdin) || !freopen(argv[2], "w", stdout)) {
        perror("usage: kilter-pages SOURCE PAGE");
        return KL_EXIT_USER;
    }
    while (fgets(line, sizeof line, stdin))
        if (sscanf(line, ".\\\" OPTIONS %63s", name) == 1)
            print_named_options(name);
        else if (strcmp(line, ".\\\" COMMANDS\n") == 0)
            print_commands();
        else if (strcmp(line, ".\\\" VARIABLES\n") == 0)
            print_variables(NULL);
        else if (sscanf(line, ".\\\" VARIABLE %63s", name) == 1)
            print_variables(name);
        else
            fputs(line, stdout);
    return kl_cmd_printed();
}
