/* kilter-simfarm: the synthetic farm, whose tasks only take time, on real workers. */
#include "sim/simfarm.h"

int main(int argc, char **argv) {
    kl_simfarm farm = {0};
    kilter_error error = {KILTER_OK, ""};
    if (kl_simfarm_read(&argc, argv, &farm, &error) == KILTER_OK)
        kl_simfarm_run(&farm, argc, argv, &error);
    kl_simfarm_free(&farm);
    return kilter_exit("simfarm", &error);
}
