/* Between `kilter simulate` and the engine that runs the farm itself, its own sources, under SimGrid's SMPI.
 */
#ifndef KL_SIMULATE_H
#define KL_SIMULATE_H

#include "base/base.h"

/* One farm under one policy. Strings are the caller's and outlive the call. */
typedef struct kl_smpi_farm {
    const char *platform; /* SimGrid's platform file */
    /* A file that names the host of each rank, one a line; the first is the master's, every other one is a
     * worker's, and a host may come several times. NULL: the master on the platform's first host, and a
     * worker on every host, the first included. */
    const char *hosts;
    const char *tasks, *policy; /* as --tasks and --policy take them */
    uint32_t iterations;        /* at least 1 */
    uint64_t seed, task_bytes, result_bytes;
    double answer_s;    /* the master's work for one message, on a host of speed 1; < 0: as measured on a real
                           one */
    const char *record; /* the run record's file; NULL: none */
} kl_smpi_farm;

typedef struct kl_smpi_iteration { /* as in kilter_farm_summary */
    double elapsed_s, bound_s, efficiency;
    uint64_t chunks;
    uint32_t workers;
    double began_s; /* since the simulation began */
} kl_smpi_iteration;

/* The program that runs such a farm: beside this one, or in the folder KILTER_LIBEXEC names. malloc'd; NULL:
 * it was not built, or is not there. */
char *kl_smpi_program(void);

/* Run `farm`; fills results[0 … iterations − 1]. KILTER_ERR_USAGE when the program is not there;
 * KILTER_ERR_INPUT when it or SimGrid refuses the platform, hosts or tasks; KILTER_ERR_SYSTEM when the
 * simulated farm came to no end: its ranks wait for each other, as on a host that a state profile switched
 * off. */
kilter_status kl_smpi_run(const kl_smpi_farm *farm, kl_smpi_iteration *results, kilter_error *error);

#endif
