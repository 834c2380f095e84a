/* Completion of command lines. The scripts of the shells call
 *     kilter complete kilter|farm WORD…
 * with the words before the cursor; the last word is the one to complete, and may be empty. Each line of the
 * answer is a word that fits, a tab and its help. The line ":files" asks for names of files. */
#include <string.h>

#include "cmd.h"
#include "farm/farm.h"

typedef struct place {
    char before[80];   /* what each candidate begins with */
    const char *begun; /* the part of the candidate that stands there already */
} place;

static void offer(const place *p, const char *word, const char *help) {
    if (strncmp(word, p->begun, strlen(p->begun)) == 0)
        printf("%s%s\t%s\n", p->before, word, help);
}

static void offer_commands(const place *p) {
    for (int i = 0; kl_commands[i]; i++)
        offer(p, kl_commands[i]->name, kl_commands[i]->summary);
}

static void offer_options(const place *p, kl_option_list list) {
    char word[64];
    for (size_t i = 0; i < list.count; i++) {
        snprintf(word, sizeof word, "--%s", list.row[i].name);
        offer(p, word, list.row[i].help);
    }
}

static void offer_values(const place *p, const kl_option *o) {
    for (size_t i = 0; strncmp(o->value, "POLIC", 5) == 0 && i < kl_policy_count(); i++)
        offer(p, kl_policy_name(kl_policy_at(i)), kl_policy_summary(kl_policy_at(i)));
    for (const char *words = o->words; words && *words; words += strspn(words, " ")) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(words, " "), words);
        offer(p, word, o->help);
        words += strlen(word);
    }
    if (strncmp(o->value, "FILE", 4) == 0)
        puts(":files");
}

/* Find the option that waits for the last word as its value. Bash gives "--name=value" as three words. */
static const kl_option *waiting(kl_option_list list, int count, char **words, place *p) {
    const char *last = words[count - 1], *equals = strchr(last, '=');
    int at = count - 2;
    const kl_option *o = strncmp(last, "--", 2) == 0 && equals
                             ? kl_option_find(list, last + 2, (size_t)(equals - last - 2))
                             : NULL;
    if (o) { /* the whole word is to be completed */
        snprintf(p->before, sizeof p->before, "%.*s", (int)(equals + 1 - last), last);
        p->begun = equals + 1;
        return o->value ? o : NULL;
    }
    if (strcmp(last, "=") == 0)
        p->begun = "";
    else if (at > 0 && strcmp(words[at], "=") == 0)
        at--;
    o = at >= 0 && strncmp(words[at], "--", 2) == 0
            ? kl_option_find(list, words[at] + 2, strlen(words[at] + 2))
            : NULL;
    return o && o->value ? o : NULL;
}

/* Complete the last of a command's or a farm's words. */
static void complete_options(kl_option_list list, bool files, int count, char **words) {
    place p = {"", words[count - 1]};
    const kl_option *o = waiting(list, count, words, &p);
    for (int i = 0; i + 1 < count; i++)
        if (strcmp(words[i], "--") == 0)
            o = NULL, p.begun = "", files = true;
    if (o)
        offer_values(&p, o);
    else if (*p.begun == '-')
        offer_options(&p, list);
    else if (files)
        puts(":files");
}

static void complete_command(int count, char **words) {
    static const kl_option rows[] = {
        {"help", NULL, "Print the list of commands.", KL_OPTION_OTHER, .offset = 0},
        {"version", NULL, "Print the version.", KL_OPTION_OTHER, .offset = 0}};
    place p = {"", words[count - 1]};
    const kl_command *command = count > 1 ? kl_cmd_find(words[0]) : NULL;
    if (command) {
        complete_options(command->options, command->takes_files, count - 1, words + 1);
    } else if (count == 1 || (count == 2 && strcmp(words[0], "help") == 0)) {
        offer_commands(&p);
        if (count == 1 && *p.begun == '-')
            offer_options(&p, (kl_option_list)KL_OPTIONS(rows));
    }
}

int kl_cmd_complete(int argc, char **argv) {
    if (argc < 2 || !kl_option_is_word("kilter farm", argv[0]))
        return kl_cmd_usage(NULL, "complete: give kilter or farm, and the words of the command line");
    if (strcmp(argv[0], "kilter") == 0)
        complete_command(argc - 1, argv + 1);
    else
        complete_options(kl_farm_options(), true, argc - 1, argv + 1);
    return kl_cmd_printed();
}
