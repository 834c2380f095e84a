/* A subcommand of `kilter`: one file, one row of the table in main.c. */
#ifndef KL_CMD_H
#define KL_CMD_H

#include <stddef.h>

#include "kilter/status.h"

enum { KL_EXIT_USER = 2 }; /* what the user can mend */

typedef struct kl_command {
    const char *name, *summary;
    const char *help; /* all of `kilter NAME --help` */
    /* argv[0] is the subcommand's name. Gives the exit code. */
    int (*run)(const struct kl_command *command, int argc, char **argv);
} kl_command;

extern const kl_command kl_cmd_drain;
extern const kl_command kl_cmd_list;
extern const kl_command kl_cmd_predict;
extern const kl_command kl_cmd_prune;
extern const kl_command kl_cmd_report;
extern const kl_command kl_cmd_run;
extern const kl_command kl_cmd_simulate;
extern const kl_command kl_cmd_tune;

/* Say on stderr why the command line cannot be used, and where to look it up. Gives the exit code. */
int kl_cmd_usage(const kl_command *command, const char *format, ...) KILTER_PRINTF(2, 3);
/* Write a picture; says on stderr what went wrong. Gives the exit code. */
int kl_cmd_save(const char *file, const char *data, size_t size);
/* Everything was printed: did it arrive? Gives the exit code. */
int kl_cmd_printed(void);

#endif
