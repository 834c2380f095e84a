/* A subcommand of `kilter`: one file, one row of kl_commands. */
#ifndef KL_CMD_H
#define KL_CMD_H

#include <stddef.h>

#include "kilter/status.h"
#include "sys/options.h"

enum { KL_EXIT_USER = 2 }; /* what the user can mend */

typedef struct kl_command {
    const char *name, *summary;
    const char *text; /* usage and what it does, in lines, above the options in --help */
    kl_option_list options;
    bool takes_files; /* its arguments are files or folders */
    bool in_order;    /* options end at the first argument */
    /* argv[0] is the subcommand's name. Returns the exit code. */
    int (*run)(const struct kl_command *command, int argc, char **argv);
} kl_command;

#define KL_JSON_ROW(request)                                                                                 \
    {                                                                                                        \
        "json", NULL, "Print one JSON object; times are in seconds, and an unknown number is null.",         \
            KL_OPTION_SWITCH, .offset = offsetof(request, json)                                              \
    }
#define KL_PROGRAM_ROW(request)                                                                              \
    {                                                                                                        \
        "program", "NAME", "Without FILE: take the newest record of this program.", KL_OPTION_TEXT,          \
            .offset = offsetof(request, program)                                                             \
    }

/* The option list of an array. */
#define KL_OPTIONS(array)                                                                                    \
    { array, sizeof(array) / sizeof *(array) }

extern const kl_command kl_cmd_drain;
extern const kl_command kl_cmd_list;
extern const kl_command kl_cmd_predict;
extern const kl_command kl_cmd_prune;
extern const kl_command kl_cmd_replay;
extern const kl_command kl_cmd_report;
extern const kl_command kl_cmd_run;
extern const kl_command kl_cmd_simulate;
extern const kl_command kl_cmd_tune;

extern const kl_command *const kl_commands[]; /* ends with NULL */
const kl_command *kl_cmd_find(const char *name);

/* Read the command's options into the struct that its rows describe. The arguments move behind the options:
 * argv[*first … argc − 1]. Returns the exit code. */
int kl_cmd_read(const kl_command *command, int argc, char **argv, void *into, int *first);
/* Choose the only argument, argv[first], or NULL when there is none; then `program` may be given. Returns the
 * exit code. */
int kl_cmd_one_file(const kl_command *command, int argc, char **argv, int first, const char *program,
                    const char **file);
/* Print what `kilter NAME --help` prints. Returns the exit code. */
int kl_cmd_help(const kl_command *command);
/* Print the words that may stand in the place of the last one; see complete.c. Returns the exit code. */
int kl_cmd_complete(int argc, char **argv);

/* Say on stderr why the command line cannot be used, and where to look it up. Returns the exit code. */
int kl_cmd_usage(const kl_command *command, const char *format, ...) KILTER_PRINTF(2, 3);
/* The same of a word that is nothing known; meant = NULL: nothing is like it. */
int kl_cmd_unknown(const kl_command *command, const char *what, const char *word, const char *meant);
/* Write a picture; says on stderr what went wrong. Returns the exit code. */
int kl_cmd_save(const char *file, const char *data, size_t size);
/* Everything was printed: did it arrive? Returns the exit code. */
int kl_cmd_printed(void);

#endif
