/* Public header of the folder farm. This folder reads the options of a farm, and runs its master and workers
 * with threads, processes and transports. */
#ifndef KL_FARM_H
#define KL_FARM_H

#include "engine/engine.h"
#include "sys/options.h"

/* Write to `hello` the host and the process number of this process, which is a worker. */
void kl_worker_introduce(void *self, kl_hello *hello);

/* --- progress.c: the progress of a farm that a command of Kilter opened itself --- */

void kl_farm_tell(kilter_farm *farm, const kl_telling *telling);
/* mine = true: remove the progress line from the terminal, so that the caller can print. mine = false: show
 * the line again. */
void kl_farm_take_screen(kilter_farm *farm, bool mine);

/* --- options --- */

/* The values of kilter_farm_options after command line and environment were read. The strings are copies. */
typedef struct kl_settings {
    kilter_farm_options options;
    char *organise;
    char *team, *policy, *transport, *listen, *join, *key, *record, *resume, *name, *version;
    char *bind;
    char *shared_folder;
    char *arguments;      /* the program's arguments, as text; NULL: the program did not pass any */
    kl_limits limits;     /* limits of time and memory for a task and for a worker */
    kl_own_policies *own; /* policies that the program itself defines; NULL: none */
    /* shared memory for messages of local workers, made before these workers are forked; NULL: none */
    kl_arenas *arenas;
} kl_settings;

kl_option_list kl_farm_options(void);

/* Read the options. If the result is KILTER_OK, remove them from argc/argv, which may both be NULL.
 * KILTER_ENDED: help was asked for and has been printed. */
kilter_status kl_settings_read(const kilter_farm_options *options, int *argc, char **argv,
                               kl_settings *settings, kilter_error *error);
/* Check that this transport can enforce the limits of tasks and workers in the settings. KILTER_ERR_USAGE:
 * the transport cannot enforce them. */
kilter_status kl_settings_check_transport(const kl_settings *settings, const char *transport,
                                          kilter_error *error);
/* return whether the option --team names the record of an earlier farm */
bool kl_settings_name_record(const kl_settings *settings);
void kl_settings_free(kl_settings *settings);
/* Print a warning for each unknown variable that begins with KILTER_, and for each program argument that
 * looks like a mistyped option of Kilter. */
void kl_settings_warn(FILE *out, char *const *environment, int argc, char *const *argv);

#endif
