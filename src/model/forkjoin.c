/* Fork-join programs: in each iteration the master computes alone, then the workers do its tasks. The model
 * is that of a paper (Buaklee, Tracy, Vernon, Wright 2002). Kilter adds a round trip, the master's time for
 * each worker's results, and each task's time on the link. */
#include "model/model.h"

double kl_model_join_s(const kl_forkjoin *m, double tasks, uint32_t workers, double workers_s) {
    return workers_s + m->round_trip_s + workers * m->update_s + tasks * m->task_s;
}

double kl_model_forkjoin_s(const kl_forkjoin *m, double tasks, uint32_t workers, double workers_s) {
    return kl_curve_s(&m->master, tasks) + kl_model_join_s(m, tasks, workers, workers_s);
}

double kl_model_forkjoin_total_s(double master_s, double iterations, double join_s) {
    return master_s + (iterations + 1) * join_s;
}
