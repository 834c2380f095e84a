/* Numbers too far apart, or too large, for a solver whose tolerances are absolute. */
#ifndef SP_NUMBERS_H
#define SP_NUMBERS_H

#include <stdbool.h>

#include "smps.h"

/* false: no number of the problem stands out. Else one sentence into text[0 … size), with the file (`core`,
 * `stoch`: what they are called), row and column. */
bool sp_numbers_stand_out(const sp_problem *problem, const char *core, const char *stoch, char *text,
                          size_t size);

#endif
