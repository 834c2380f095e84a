/* The synthetic farm: tasks that take the time they are described to take, and nothing else. One source,
 * built twice: kilter-simfarm is a farm like any other, kilter-simfarm-smpi the same farm on a simulated
 * platform. */
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
    uint8_t *zeros; /* what inputs and results are made of */
} kl_simfarm;

/* Takes the farm's own options out of argc/argv; what is left, with argv[0], is Kilter's. KILTER_ENDED after
 * --help. */
kilter_status kl_simfarm_read(int *argc, char **argv, kl_simfarm *farm, kilter_error *error);
void kl_simfarm_free(kl_simfarm *farm);
/* Be the master, which prints a line of JSON for each iteration, or a worker, which ends with KILTER_ENDED.
 */
kilter_status kl_simfarm_run(const kl_simfarm *farm, int argc, char **argv, kilter_error *error);

#ifdef __cplusplus
}
#endif
#endif
