/* The input files of a command. */
#ifndef SP_INPUTS_H
#define SP_INPUTS_H

#include "cli.h"

typedef struct sp_inputs {
    sp_file files[SP_FILES], at;
    sp_problem *problem;
    double *x; /* the first-stage decision in the file given with --at or --start; NULL: no file was given */
} sp_inputs;

/* Read the files into a zeroed struct. The caller must free the struct, even after an error. */
kilter_status sp_inputs_read(const sp_options *options, sp_inputs *in, kilter_error *error);
void sp_inputs_free(sp_inputs *in);

/* Print a warning if probabilities do not add up to 1, and another warning if numbers of the problem are too
 * large or too far apart. */
void sp_inputs_warn(FILE *out, const sp_inputs *in);

#endif
