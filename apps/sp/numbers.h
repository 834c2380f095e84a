/* Find numbers of a problem that are too far apart, or too large, for a solver whose tolerances are absolute.
 */
#ifndef SP_NUMBERS_H
#define SP_NUMBERS_H

#include <stdbool.h>

#include "smps.h"

/* Return false if no number of the problem is too far apart or too large. Otherwise write one sentence to
 * text[0 … size), which names the file by `core` or `stoch`, and the row and column. */
bool sp_numbers_stand_out(const sp_problem *problem, const char *core, const char *stoch, char *text,
                          size_t size);

#endif
