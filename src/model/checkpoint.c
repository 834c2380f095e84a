/* Compute how often a program that may fail should write a checkpoint. */
#include <math.h>

#include "model/model.h"

/* seconds between failures that are assumed before the first failure */
static const double UNTIL_KNOWN_S = 24 * 3600.0;
static const double LEAST_S = 1;

double kl_model_between_failures_s(double ran_s, uint64_t failures) {
    if (failures == 0)
        return fmax(ran_s, UNTIL_KNOWN_S);
    return fmax(ran_s / (double)failures, LEAST_S);
}

/* The formula holds if a checkpoint takes much less time than passes between two failures. If a checkpoint
 * takes more than twice the time between failures, the interval is as long as a checkpoint. The program then
 * spends half of its time on checkpoints. */
double kl_model_checkpoint_s(double cost_s, double between_failures_s) {
    return fmax(cost_s, sqrt(2 * cost_s * between_failures_s));
}

double kl_model_lost_part(double interval_s, double cost_s, double between_failures_s) {
    return cost_s / interval_s + interval_s / (2 * between_failures_s);
}
