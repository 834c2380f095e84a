/* Write the MPI program that is made from the source file. */
#ifndef KC_EMIT_H
#define KC_EMIT_H

#include "unit.h"

/* Write the program to `out`. Return KILTER_ERR_INPUT if kilter cc refuses a marked loop or code outside of
 * the marked loops. */
kilter_status kc_emit(kc_unit *unit, FILE *out, kilter_error *error);

/* --- range.c --- */

/* Write two C expressions: the first row of an array that the loop touches, and the row after the last one.
 * The caller frees them. Return false if the rows have no known bounds. */
bool kc_row_range(const kc_nest *nest, int array, char **from, char **to);

/* Does the loop touch the same rows of the array whether its unknown conditions are true or false? The answer
 * is always no for flat memory. */
bool kc_touches_all(const kc_nest *nest, int array);

#endif
