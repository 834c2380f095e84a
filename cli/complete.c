/* Complete a command line. The shells' completion scripts run `kilter complete` with the words up to the
 * cursor. The last word, which may be empty, is completed. Each line of the output has a word that fits, a
 * tab, and the help for the word. The line ":files" asks the shell to complete names of files. */
#include <string.h>

#include "cmd.h"
#include "farm/farm.h"

/* Print the first `kept` bytes of `last` and then `word`, if `word` begins with the rest of `last`. */
static void offer(const char *last, int kept, const char *word, const char *help) {
    if (strncmp(word, last + kept, strlen(last + kept)) == 0)
        printf("%.*s%s\t%s\n", kept, last, word, help);
}

static void offer_values(const char *last, int kept, const kl_option *o) {
    for (size_t i = 0; strncmp(o->value, "POLIC", 5) == 0 && i < kl_policy_count(); i++)
        offer(last, kept, kl_policy_name(kl_policy_at(i)), kl_policy_summary(kl_policy_at(i)));
    for (const char *words = o->words; words && *words; words += strspn(words, " ")) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(words, " "), words);
        offer(last, kept, word, o->help);
        words += strlen(word);
    }
    if (strncmp(o->value, "FILE", 4) == 0)
        puts(":files");
}

/* Return the option that `word` names, if the option takes a value; otherwise NULL. */
static const kl_option *valued(kl_option_list list, const char *word) {
    const kl_option *o =
        strncmp(word, "--", 2) == 0 ? kl_option_find(list, word + 2, strcspn(word + 2, "=")) : NULL;
    return o && o->value ? o : NULL;
}

/* Complete the last word on the command line of a command or a farm program. */
static void complete_options(kl_option_list list, bool files, int count, char **words) {
    const char *last = words[count - 1], *before = count > 1 ? words[count - 2] : "",
               *equals = strchr(last, '=');
    const kl_option *o = equals ? valued(list, last) : strchr(before, '=') ? NULL : valued(list, before);
    for (int i = 0; i + 1 < count; i++)
        if (strcmp(words[i], "--") == 0) {
            puts(":files");
            return;
        }
    if (o)
        offer_values(last, equals ? (int)(equals + 1 - last) : 0, o);
    for (size_t i = 0; !o && *last == '-' && i < list.count; i++) {
        char word[64];
        snprintf(word, sizeof word, "--%s", list.row[i].name);
        offer(last, 0, word, list.row[i].help);
    }
    if (!o && *last != '-' && files)
        puts(":files");
}

int kl_cmd_complete(int argc, char **argv) {
    if (argc < 2 || !kl_option_is_word("kilter farm", argv[0]))
        return kl_cmd_usage(NULL, "complete: give kilter or farm, and the words of the command line");
    const kl_command *command = argc > 2 ? kl_cmd_find(argv[1]) : NULL;
    if (strcmp(argv[0], "farm") == 0)
        complete_options(kl_farm_options(), true, argc - 1, argv + 1);
    else if (command)
        complete_options(command->options, command->takes_files, argc - 2, argv + 2);
    else if (argc == 2 || (argc == 3 && strcmp(argv[1], "help") == 0)) {
        for (int i = 0; kl_commands[i]; i++)
            offer(argv[argc - 1], 0, kl_commands[i]->name, kl_commands[i]->summary);
    }
    return kl_cmd_printed();
}
