/* Make the MPI program from the source. */
#ifndef KC_EMIT_H
#define KC_EMIT_H

#include "unit.h"

/* Write the program to `out`. KILTER_ERR_INPUT: a marked loop is refused, or something outside of it. */
kilter_status kc_emit(kc_unit *unit, FILE *out, kilter_error *error);

/* --- range.c --- */

/* Write C expressions for the rows of an array that the loop touches: the first one, and the one after the
 * last. They are to be freed. false: the rows have no bounds that are known. */
bool kc_row_range(const kc_nest *nest, int array, char **from, char **to);

/* Does the loop touch each row that it may touch, and all of it? */
bool kc_touches_all(const kc_nest *nest, int array);

#endif
