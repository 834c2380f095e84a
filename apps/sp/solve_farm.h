/* kilter-sp solve: run the solver on a farm. A run of the farm evaluates a candidate, a task is a cluster of
 * scenarios, and the files are the shared data of all runs. */
#ifndef SP_SOLVE_FARM_H
#define SP_SOLVE_FARM_H

#include "cli.h"
#include "kilter/farm.h"

/* Solve with arguments[0 … count), which follow "solve", and print the answer. */
kilter_status sp_solve_on(kilter_farm *farm, int count, char *const *arguments, kilter_error *error);

/* Plan the samples to solve: first smaller samples, and last the sample with `scenarios` scenarios. */
sp_stages sp_stages_towards(uint64_t scenarios);
/* Plan the samples to solve if several samples of growing size are given. */
sp_stages sp_stages_through(const sp_stages *asked);

/* For SP_CLUSTERS_AUTO: the range of the number of clusters, and a function that returns a value proportional
 * to the expected number of candidates. */
enum { SP_AUTO_LEAST = 25, SP_AUTO_MOST = 1000 };
double sp_candidates_with(uint64_t clusters, void *user);
/* Return the number of candidates that a solve with `clusters` clusters should need, if a solve with `before`
 * clusters needed `candidates` candidates. */
double sp_candidates_after(int candidates, int before, int clusters);

/* Predict with arguments[0 … count), which follow "predict", and print the forecast. */
kilter_status sp_predict_on(kilter_farm *farm, int count, char *const *arguments, kilter_error *error);

#endif
