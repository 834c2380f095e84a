/* Start the simulation engine smpi, which runs the farm's own sources under SimGrid's SMPI. */
#ifndef KL_SIMULATE_H
#define KL_SIMULATE_H

#include "base/base.h"

/* The simulated farm: one farm under one policy. The strings must exist until the call returns. */
typedef struct kl_smpi_farm {
    const char *platform; /* path of the platform file for SimGrid */
    /* File with the host of each rank, one on each line: first the master's, then the workers'; a host may be
     * listed several times. NULL: the master is on the platform's first host, and each host has a worker. */
    const char *hosts;
    const char *tasks, *policy; /* values of the options --tasks and --policy, as text */
    uint32_t iterations;        /* number of runs, at least 1 */
    uint64_t seed, task_bytes, result_bytes;
    /* seconds that a master of speed 1 needs for a message; negative: as long as a real master needs */
    double answer_s;
    const char *record; /* path of the run record to write; NULL: write none */
} kl_smpi_farm;

typedef struct kl_smpi_iteration { /* results of one run; the fields have the same meaning as in
                                    * kilter_farm_summary */
    double elapsed_s, bound_s, efficiency;
    uint64_t chunks;
    uint32_t workers;
    double began_s; /* time at which the run began, in seconds since the simulation began */
} kl_smpi_iteration;

/* Return the path of the engine's program, in this program's folder or in the folder KILTER_LIBEXEC;
 * malloc'd. NULL: the engine was not built or installed. */
char *kl_smpi_program(void);

/* Run `farm` and fill results[0 … iterations − 1]. KILTER_ERR_USAGE: the engine's program is missing;
 * KILTER_ERR_INPUT: the program or SimGrid refuses the platform, hosts or tasks; KILTER_ERR_SYSTEM: the
 * simulated farm did not end, because its ranks wait for each other. A reason can be that a state profile
 * switched a host off. */
kilter_status kl_smpi_run(const kl_smpi_farm *farm, kl_smpi_iteration *results, kilter_error *error);

#endif
