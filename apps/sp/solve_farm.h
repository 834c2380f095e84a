/* kilter-sp solve: the solver on a farm. One run of the farm is one candidate, one task one cluster of
 * scenarios, the shared data of all runs are the files. */
#ifndef SP_SOLVE_FARM_H
#define SP_SOLVE_FARM_H

#include "cli.h"
#include "kilter/farm.h"

/* arguments[0 … count): what follows "solve". Prints the answer. */
kilter_status sp_solve_on(kilter_farm *farm, int count, char *const *arguments, kilter_error *error);

/* The samples that are solved on the way to one of so many scenarios. */
sp_stages sp_stages_towards(uint64_t scenarios);
sp_stages sp_stages_through(const sp_stages *asked); /* of several such, each larger than the one before */

/* With SP_CLUSTERS_AUTO: from how many clusters to how many, and the candidates that so many take, in any
 * unit. */
enum { SP_AUTO_LEAST = 25, SP_AUTO_MOST = 1000 };
double sp_candidates_with(uint64_t clusters, void *user);
/* With so many clusters, by the same rule, where there were `candidates` with `before`. */
double sp_candidates_after(int candidates, int before, int clusters);

/* Likewise what follows "predict". */
kilter_status sp_predict_on(kilter_farm *farm, int count, char *const *arguments, kilter_error *error);

#endif
