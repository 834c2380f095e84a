/* The files a command is given. */
#ifndef SP_INPUTS_H
#define SP_INPUTS_H

#include "cli.h"

typedef struct sp_inputs {
    sp_file files[SP_FILES], at;
    sp_problem *problem;
    double *x; /* the decision in `at`; NULL: none was named */
} sp_inputs;

/* Into a zeroed one, to be freed after failures, too. */
kilter_status sp_inputs_read(const sp_options *options, sp_inputs *in, kilter_error *error);
void sp_inputs_free(sp_inputs *in);

/* One line each where probabilities do not add up to 1, and where numbers of the problem stand out. */
void sp_inputs_warn(FILE *out, const sp_inputs *in);

#endif
