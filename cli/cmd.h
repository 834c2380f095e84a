/* A subcommand of `kilter`. Each subcommand has a source file and a row of kl_commands. */
#ifndef KL_CMD_H
#define KL_CMD_H

#include <stddef.h>

#include "kilter/status.h"
#include "sys/options.h"

enum { KL_EXIT_USER = 2 }; /* exit code after an error that the user can correct */

typedef struct kl_command {
    const char *name, *summary;
    const char *text; /* lines with usage and purpose, which --help prints above the options */
    kl_option_list options;
    bool takes_files; /* true: the arguments are files or folders */
    bool in_order;    /* true: words after the first argument are not read as options */
    /* Run the subcommand, whose name is argv[0]. Return the exit code. */
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

/* An option list with all entries of an array. */
#define KL_OPTIONS(array)                                                                                    \
    { array, sizeof(array) / sizeof *(array) }

extern const kl_command kl_cmd_cc;
extern const kl_command kl_cmd_drain;
extern const kl_command kl_cmd_hosts;
extern const kl_command kl_cmd_list;
extern const kl_command kl_cmd_map;
extern const kl_command kl_cmd_move;
extern const kl_command kl_cmd_predict;
extern const kl_command kl_cmd_prune;
extern const kl_command kl_cmd_replay;
extern const kl_command kl_cmd_report;
extern const kl_command kl_cmd_run;
extern const kl_command kl_cmd_simulate;
extern const kl_command kl_cmd_top;
extern const kl_command kl_cmd_tune;
extern const kl_command kl_cmd_watch;

extern const kl_command *const kl_commands[]; /* pointers to all subcommands, ended by NULL */
const kl_command *kl_cmd_find(const char *name);

/* Read the command's options into the struct `into`, as the option rows describe. Move the other arguments
 * to argv[*first … argc − 1]. Return the exit code. */
int kl_cmd_read(const kl_command *command, int argc, char **argv, void *into, int *first);
/* Return whether --help or -h stands among the command's options. */
bool kl_cmd_asks_for_help(const kl_command *command, int argc, char **argv);
/* Set *file to the only argument, argv[first], or to NULL if there is no argument. An argument and
 * `program` cannot both be given. Return the exit code. */
int kl_cmd_one_file(const kl_command *command, int argc, char **argv, int first, const char *program,
                    const char **file);
/* Print what `kilter NAME --help` prints. Return the exit code. */
int kl_cmd_help(const kl_command *command);
/* Print the words that can complete the last word of the command line; see complete.c. Return the exit code.
 */
int kl_cmd_complete(int argc, char **argv);

/* Print on stderr why the command line cannot be used, and where to find help. Return the exit code. */
int kl_cmd_usage(const kl_command *command, const char *format, ...) KILTER_PRINTF(2, 3);
/* Print on stderr that the command does not know a word. what: "option" or "command"; meant: a known word
 * that is similar, or NULL. Return the exit code. */
int kl_cmd_unknown(const kl_command *command, const char *what, const char *word, const char *meant);
/* Return whether a file is an SQLite file, as run records are. */
bool kl_cmd_is_record(const char *file);
/* Write a picture into a file, or print on stderr what went wrong. Return the exit code. */
int kl_cmd_save(const char *file, const char *data, size_t size);
/* Write the tables of a record as CSV files into a folder. Make the folder if it is missing. Print an
 * error on stderr. Return the exit code. */
int kl_cmd_write_tables(const char *record, const char *folder);
/* Check that the standard output took everything that was printed. Return the exit code. */
int kl_cmd_printed(void);

#endif
