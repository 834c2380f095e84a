/* Find numbers of a problem that are too far apart, or too large, for a solver whose tolerances are absolute.
 */
#ifndef SP_NUMBERS_H
#define SP_NUMBERS_H

#include <stdbool.h>

#include "smps.h"

/* Return false if the problem's numbers are neither too far apart nor too large. Otherwise write one sentence
 * to text[0 … size). The sentence names the row, the column and the file; `core` and `stoch` are the names of
 * the files. */
bool sp_numbers_stand_out(const sp_problem *problem, const char *core, const char *stoch, char *text,
                          size_t size);

#endif
