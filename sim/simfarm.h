/* The synthetic farm: its tasks compute for their described time and do nothing else. One source is built
 * twice: kilter-simfarm is an ordinary farm, kilter-simfarm-smpi is the same farm on a simulated platform. */
#ifndef KL_SIMFARM_H
#define KL_SIMFARM_H

#include "cluster/cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kl_simfarm {
    kl_tasks tasks;
    uint32_t iterations;
    size_t task_bytes, result_bytes;
    uint8_t *zeros; /* the byte that fills inputs and results */
} kl_simfarm;

/* Take the farm's own options out of argc/argv; the other arguments, with argv[0], are for Kilter.
 * KILTER_ENDED: --help was printed. */
kilter_status kl_simfarm_read(int *argc, char **argv, kl_simfarm *farm, kilter_error *error);
void kl_simfarm_free(kl_simfarm *farm);
/* Run the farm: the master prints a line of JSON for each run, and a worker ends with KILTER_ENDED. */
kilter_status kl_simfarm_run(const kl_simfarm *farm, int argc, char **argv, kilter_error *error);

#ifdef __cplusplus
}
#endif
#endif
