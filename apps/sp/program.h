/* A linear program as arrays. */
#ifndef SP_PROGRAM_H
#define SP_PROGRAM_H

#include <stdbool.h>

#include "smps.h"

/* The program is: minimise cost'x with row_lower <= A x <= row_upper, lower <= x <= upper. A is stored by
 * columns as in sp_matrix. Infinite bounds are ±INFINITY, or ±DBL_MAX in a program that is passed to CLP. */
typedef struct sp_program {
    int rows, columns;
    sp_matrix matrix;
    double *cost, *lower, *upper, *row_lower, *row_upper;
} sp_program;

/* Make zeroed arrays for these rows, columns and entries; return false if memory ran out. Call
 * sp_program_free() in both cases. */
bool sp_program_make(sp_program *program, int rows, int columns, size_t entries);
void sp_program_free(sp_program *program);

/* Rows  lower[i] <= value·x;  row i holds entries [start[i], start[i+1]). */
typedef struct sp_rows {
    int count;
    const double *lower;
    const int *start, *column;
    const double *value;
} sp_rows;

#endif
