/* kilter-simfarm: the synthetic farm on real workers. */
#include "sim/simfarm.h"

int main(int argc, char **argv) {
    kl_simfarm farm = {0};
    kilter_error error;
    if (kl_simfarm_read(&argc, argv, &farm, &error) != KILTER_OK)
        return kilter_exit(argv[0], &error);
    int code = kl_simfarm_run(&farm, argc, argv);
    kl_simfarm_free(&farm);
    return code;
}
