/* kilter watch: start an MPI program with a library that intercepts its MPI calls, and read what the
 * library has recorded on each rank. */
#ifndef KL_CLI_WATCH_H
#define KL_CLI_WATCH_H

#include "keeper/keeper.h"

typedef struct kl_watch_options {
    const char *record, *mpi, *folder;
    char **words; /* the launcher or the program, with its arguments; NULL is the last entry */
} kl_watch_options;

typedef struct kl_watched_program {
    const kl_watch_options *options;
    const char *mpi; /* "openmpi" or "mpich" */
    char *library, *folder;
    double began_s, began_unix_s;
    int code;     /* exit code of the program, or 128 + the signal that ended it */
    char how[80]; /* how the program ended, in words; "": it ended with exit code 0 */
} kl_watched_program;

/* Choose the MPI, find Kilter's library for it, and make the folder for the ranks' files. Error:
 * KILTER_ERR_USAGE. */
kilter_status kl_watch_prepare(kl_watched_program *p, kilter_error *error);
/* Run the program to its end. KILTER_ERR_SYSTEM: the program cannot be started. */
kilter_status kl_watch_run(kl_watched_program *p, kilter_error *error);
/* Read the ranks' files, write the record, and print the page of results on stderr. */
kilter_status kl_watch_gather(const kl_watched_program *p, kilter_error *error);
void kl_watch_clean(kl_watched_program *p); /* remove the folder of the ranks' files */

#endif
