/* Private to the folder fitness: parts of the fitness and of the pickers that have their own files. */
#ifndef KL_FITNESS_PRIVATE_H
#define KL_FITNESS_PRIVATE_H

#include "fitness/fitness.h"

/* --- net.c --- */

/* Set the `net` of each host whose state is known. false: memory ran out. */
bool kl_fit_net(const kl_fit_ask *ask, kl_fit *fits);

/* --- forecast.c --- */

kilter_status kl_pick_by_forecast(const kl_picker *self, const kl_pick_ask *ask, kl_pick *pick,
                                  kilter_error *error);
/* Return the total speed of the wanted number of fastest hosts. Return 0 also if memory ran out. */
double kl_pick_most_speed(const kl_pick_ask *ask);

#endif
