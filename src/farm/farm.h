/* Door of room farm: the engines of a farm driven on real machines, by threads, processes and transports, and
 * the options of that. */
#ifndef KL_FARM_H
#define KL_FARM_H

#include "engine/engine.h"
#include "sys/options.h"

void kl_worker_introduce(void *self, kl_hello *hello); /* as a worker in this process, on this host */

/* --- options --- */

/* kilter_farm_options after command line and environment. The strings are copies. */
typedef struct kl_settings {
    kilter_farm_options options;
    char *team, *policy, *transport, *listen, *join, *key, *record, *resume, *name, *version;
    char *bind;
    char *arguments;      /* the program's own; NULL: it did not show them */
    kl_limits limits;     /* of a task and of a worker */
    kl_own_policies *own; /* the program's; NULL: none */
    kl_arenas *arenas;    /* of local workers, who are forked with it; NULL: none */
} kl_settings;

kl_option_list kl_farm_options(void);

/* KILTER_ENDED when help was asked for and printed. Takes its options out of argc/argv (both may be NULL)
 * only on KILTER_OK. */
kilter_status kl_settings_read(const kilter_farm_options *options, int *argc, char **argv,
                               kl_settings *settings, kilter_error *error);
/* Can workers of this transport be held to the limits? KILTER_ERR_USAGE. */
kilter_status kl_settings_check_transport(const kl_settings *settings, const char *transport,
                                          kilter_error *error);
bool kl_settings_name_record(const kl_settings *settings); /* as the team: that of an earlier farm */
void kl_settings_free(kl_settings *settings);
/* Warn of each unknown variable that begins with KILTER_, and of each of the program's own arguments that is
 * nearly one of Kilter's options. */
void kl_settings_warn(FILE *out, char *const *environment, int argc, char *const *argv);

#endif
