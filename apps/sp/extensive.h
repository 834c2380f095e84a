/* Make the deterministic equivalent: one linear program that contains the first stage, and a second stage for
 * each scenario of a sample. The columns of stage 1 come first, then the columns of stage 2 for scenario 0,
 * 1, …; rows have the same order. The objective leaves out the problem's constant. */
#ifndef SP_EXTENSIVE_H
#define SP_EXTENSIVE_H

#include <stdio.h>

#include "sample.h"
#include "table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Make the linear program of a sample. KILTER_ERR_RANGE: it has more entries than CLP can count. */
kilter_status sp_extensive(const sp_problem *problem, const sp_sampling *sampling, sp_program *program,
                           kilter_error *error);

/* Make the linear program for one scenario in which each random number has its mean. */
kilter_status sp_extensive_mean(const sp_problem *problem, sp_program *program, kilter_error *error);

/* Make the linear program for one scenario of the sample, with its weight, and with the first stage fixed at
 * x. */
kilter_status sp_extensive_one(const sp_problem *problem, const sp_sampling *sampling, uint64_t scenario,
                               const double *x, sp_program *program, kilter_error *error);

/* Make the linear program of the first stage alone. */
kilter_status sp_first_stage(const sp_problem *problem, sp_program *program, kilter_error *error);

/* Write the program in free MPS format with all digits. Rows and columns have the names in CORE; names of
 * stage 2 end with _SCENARIO, with enough underscores to differ from names of stage 1. Check ferror(out)
 * afterwards. */
void sp_extensive_write(FILE *out, const sp_problem *problem, const sp_program *program);

#ifdef __cplusplus
}
#endif
#endif
