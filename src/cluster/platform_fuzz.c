/* Fuzz target: read any text as a platform. A platform that is accepted must be usable, and it must be
 * possible to write it for SimGrid. */
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void live_on(const kl_cluster *cluster) {
    for (uint32_t g = 0; g < cluster->group_count; g++) {
        const kl_host *host = &cluster->groups[g].host;
        for (double at_s = 0; at_s < 100; at_s += 33.3)
            if (!(kl_host_speed(host, at_s) > 0) || !(kl_host_end_s(host, at_s, 1e-3) > at_s))
                __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *spec = malloc(size + 1);
    if (!spec)
        return 0;
    memcpy(spec, data, size);
    spec[size] = '\0';
    kl_cluster cluster;
    kilter_error error;
    if (kl_cluster_parse(spec, &cluster, &error) == KILTER_OK) {
        live_on(&cluster);
        FILE *out = cluster.workers < 1000 ? fopen("/dev/null", "w") : NULL;
        if (out) {
            kl_cluster_write_simgrid(&cluster, out, NULL);
            fclose(out);
        }
        kl_cluster_free(&cluster);
    }
    free(spec);
    return 0;
}
