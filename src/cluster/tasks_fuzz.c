/* Fuzz target: read any text as tasks. Tasks that are accepted must have valid times. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *spec = malloc(size + 1);
    if (!spec)
        return 0;
    memcpy(spec, data, size);
    spec[size] = '\0';
    kl_tasks tasks;
    kilter_error error;
    /* leave out "file=…", because a fuzzer must not read files that exist by chance */
    bool file = strncmp(spec, "file=", 5) == 0;
    if (!file && kl_tasks_parse(spec, &tasks, &error) == KILTER_OK) {
        for (uint64_t i = 0; i < 10; i++) {
            double s = kl_task_s(&tasks, i, tasks.count - 1 - i % tasks.count);
            if (!(s >= 0) || isinf(s))
                __builtin_trap();
        }
        kl_tasks_free(&tasks);
    }
    free(spec);
    return 0;
}
