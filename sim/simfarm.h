/* The synthetic farm: its tasks compute for their described time and do nothing else. Two programs are built
 * from this source: kilter-simfarm is an ordinary farm, and kilter-simfarm-smpi is the same farm on a
 * simulated platform. */
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
    uint8_t *zeros; /* zero bytes, which are the contents of all inputs and results */
} kl_simfarm;

/* Read the synthetic farm's own options and remove them from argv. The other arguments, with argv[0], are
 * options of Kilter. KILTER_ENDED: the help was printed. */
kilter_status kl_simfarm_read(int *argc, char **argv, kl_simfarm *farm, kilter_error *error);
void kl_simfarm_free(kl_simfarm *farm);
/* Run the farm: the master prints a line of JSON for each run. On a worker, KILTER_ENDED is returned at
 * the end of the farm. */
kilter_status kl_simfarm_run(const kl_simfarm *farm, int argc, char **argv, kilter_error *error);

#ifdef __cplusplus
}
#endif
#endif
