/* Private to the folder fitness: functions that are defined in one of its files and used in another. */
#ifndef KL_FITNESS_PRIVATE_H
#define KL_FITNESS_PRIVATE_H

#include "fitness/fitness.h"

/* --- net.c --- */

/* Set the `net` of each host whose state is known. false: memory ran out. */
bool kl_fit_net(const kl_fit_ask *ask, kl_fit *fits);

/* --- forecast.c --- */

kilter_status kl_pick_by_forecast(const kl_picker *self, const kl_pick_ask *ask, kl_pick *pick,
                                  kilter_error *error);
/* Return the total speed of the fastest hosts; `ask` says how many. Return 0 also if memory ran out. */
double kl_pick_most_speed(const kl_pick_ask *ask);

#endif
