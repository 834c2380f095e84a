/* Public header of the folder farm: run a farm's master and workers with threads, processes and
 * transports, and read options. */
#ifndef KL_FARM_H
#define KL_FARM_H

#include "engine/engine.h"
#include "sys/options.h"

void kl_worker_introduce(void *self, kl_hello *hello); /* Describe a worker in this process, on this host. */

/* --- progress.c: for a command of Kilter that shows the progress of its own farm --- */

void kl_farm_tell(kilter_farm *farm, const kl_telling *telling);
/* Remove the progress line from the terminal until `mine` is false again, so that the caller can print. */
void kl_farm_take_screen(kilter_farm *farm, bool mine);

/* --- options --- */

/* The values of kilter_farm_options after command line and environment were read. The strings are copies. */
typedef struct kl_settings {
    kilter_farm_options options;
    char *organise;
    char *team, *policy, *transport, *listen, *join, *key, *record, *resume, *name, *version;
    char *bind;
    char *shared_folder;
    char *arguments;      /* the program's arguments; NULL: the program did not pass any */
    kl_limits limits;     /* limits of a task and of a worker */
    kl_own_policies *own; /* the program's own policies; NULL: none */
    kl_arenas *arenas;    /* arenas for local workers, made before they are forked; NULL: none */
} kl_settings;

kl_option_list kl_farm_options(void);

/* Read the options and remove them from argc/argv (both may be NULL) on KILTER_OK only. KILTER_ENDED: help
 * was asked for and has been printed. */
kilter_status kl_settings_read(const kilter_farm_options *options, int *argc, char **argv,
                               kl_settings *settings, kilter_error *error);
/* Check that this transport can enforce the limits of tasks and workers. KILTER_ERR_USAGE: it cannot. */
kilter_status kl_settings_check_transport(const kl_settings *settings, const char *transport,
                                          kilter_error *error);
bool kl_settings_name_record(
    const kl_settings *settings); /* Return whether --team names the record of an earlier farm. */
void kl_settings_free(kl_settings *settings);
/* Warn of each unknown variable that begins with KILTER_, and of each program argument that is nearly one
 * of Kilter's options. */
void kl_settings_warn(FILE *out, char *const *environment, int argc, char *const *argv);

#endif
