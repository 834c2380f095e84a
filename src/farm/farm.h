/* Door of room farm: the engines of a farm driven on real machines, by threads, processes and transports, and
 * the options of that. */
#ifndef KL_FARM_H
#define KL_FARM_H

#include "engine/engine.h"

void kl_worker_introduce(void *self, kl_hello *hello); /* as a worker in this process, on this host */

/* --- options --- */

/* kilter_farm_options after command line and environment, with its strings owned. */
typedef struct kl_settings {
    kilter_farm_options options;
    char *team, *policy, *transport, *listen, *join, *key, *record, *resume, *name, *version;
    char *bind;
    char *arguments; /* the program's own; NULL: it did not show them */
    char *task_timeout, *worker_memory;
    kl_limits limits;     /* of these two, and the options' others */
    kl_own_policies *own; /* the program's; NULL: none */
    kl_arenas *arenas;    /* of local workers, who are forked with it; NULL: none */
} kl_settings;

/* KILTER_ENDED when help was asked for and printed. Takes its options out of argc/argv (both may be NULL)
 * only on KILTER_OK. */
kilter_status kl_settings_read(const kilter_farm_options *options, int *argc, char **argv,
                               kl_settings *settings, kilter_error *error);
/* Can workers of this transport be held to the limits? KILTER_ERR_USAGE. */
kilter_status kl_settings_check_transport(const kl_settings *settings, const char *transport,
                                          kilter_error *error);
bool kl_settings_name_record(const kl_settings *settings); /* as the team: that of an earlier farm */
void kl_settings_free(kl_settings *settings);
/* A line for each variable that begins with KILTER_ and is none, and for each of the program's own arguments
 * that is nearly one of Kilter's. */
void kl_settings_warn(FILE *out, char *const *environment, int argc, char *const *argv);

/* --- typo.c --- */

/* The name that `word` is nearly, by a slip or two; NULL: none, or it is one. */
const char *kl_typo_of(const char *word, const char *const *names, size_t count);
/* Variables as in environ, names as KILTER_…; those of tests (KILTER_TEST_…) are left alone. */
void kl_typo_warn_environment(FILE *out, char *const *variables, const char *const *names, size_t count);
void kl_typo_warn_argument(FILE *out, const char *argument, const char *const *names, size_t count);

#endif
