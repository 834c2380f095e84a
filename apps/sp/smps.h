/* Two-stage stochastic linear programs, read from SMPS (core, time, stoch).
 *
 *   min  constant + c'x + E[ min q'y ]      stage 1:  A x  within its rows,  x within its bounds
 *                                           stage 2:  T x + W y  within its rows,  y within its bounds
 *
 * Right-hand sides of stage 2, entries of T and W, and costs q may be random. The page docs/reference/sp.md
 * lists which forms of the files are read and which are refused.
 */
#ifndef SP_SMPS_H
#define SP_SMPS_H

#include <stddef.h>
#include <stdint.h>

#include "kilter/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes of a file; `name` is used in error messages. */
typedef struct sp_file {
    const char *name;
    const char *data;
    size_t size; /* bytes */
} sp_file;

/* Limits that no real problem reaches. Because of the limits, a malformed file causes an error instead of
 * unbounded memory or time. */
enum {
    SP_FILE_BYTES_MAX = 256 << 20,
    /* number of values of all outcomes together, counting the inherited values of each outcome */
    SP_CHANGES_MAX = 1 << 24,
};

/* A matrix, stored by columns without gaps. Column j holds entries [start[j], start[j+1]). Rows and columns
 * are counted within their stage. Zero entries are left out, except random entries of W. */
typedef struct sp_matrix {
    int *start; /* start[columns + 1] */
    int *row;
    double *value;
} sp_matrix;

/* Row i holds  rhs[i] + below[i] <= activity <= rhs[i] + above[i];  infinite sides are ±INFINITY. */
typedef struct sp_stage {
    int rows, columns;
    double *rhs, *below, *above;
    double *cost, *lower, *upper; /* one value for each column */
    char **row_name, **column_name;
} sp_stage;

typedef enum sp_kind { SP_RHS, SP_TECHNOLOGY, SP_RECOURSE, SP_COST } sp_kind;

/* One random number of the problem. */
typedef struct sp_target {
    sp_kind kind;
    int row;    /* row of stage 2; unused for SP_COST */
    int column; /* column of stage 1 for SP_TECHNOLOGY, column of stage 2 for SP_RECOURSE and SP_COST */
    /* if the number is an entry of T or W: index of the entry in the matrix; −1: T has no entry there */
    int entry;
    double core;   /* value in CORE, which the number keeps in outcomes that do not set the number */
    int variable;  /* the variable whose outcomes set the number */
    uint64_t line; /* line of STOCH where the number first appears */
} sp_target;

typedef struct sp_change {
    int target;
    double value;
} sp_change;

/* An outcome has the values change[first … end), including the values inherited from the block's first
 * outcome or from the parent scenario. */
typedef struct sp_outcome {
    double below; /* cumulative probability including this outcome; exactly 1 for the last outcome */
    size_t first, end;
} sp_outcome;

/* An independent random variable: one number (INDEP), a block (BLOCKS), or the whole tree (SCENARIOS).
 * The variable's outcomes are outcome[first … end). */
typedef struct sp_variable {
    size_t first, end;
    uint64_t line; /* line of STOCH where the variable begins */
} sp_variable;

typedef struct sp_problem {
    sp_stage stage[2];
    /* a: rows and columns of stage 1; t: rows of stage 2, columns of stage 1; w: rows and columns of stage 2
     */
    sp_matrix a, t, w;
    double constant;
    int targets, variables;
    sp_target *target;
    sp_variable *variable; /* variables in the order of STOCH, which is also their order in the sampler */
    sp_outcome *outcome;
    sp_change *change;
    char *names; /* memory that holds the names of the stages */
    /* scaled_line: line of STOCH with the first variable whose probabilities do not add up to 1; 0: there is
     * no such variable. scaled_sum: the sum of these probabilities, by which they were divided */
    uint64_t scaled_line;
    double scaled_sum;
} sp_problem;

/* The indices of a problem's three files in an array of files. */
enum { SP_CORE, SP_TIME, SP_STOCH, SP_FILES };

/* Read the three files. *problem is written on KILTER_OK only and freed with sp_problem_free().
 * For KILTER_ERR_INPUT, the error's text is "NAME:LINE: what is wrong and what is expected".
 * KILTER_ERR_MEMORY: memory ran out. */
kilter_status sp_problem_read(const sp_file files[SP_FILES], sp_problem **problem, kilter_error *error);
void sp_problem_free(sp_problem *problem); /* free a problem; NULL is allowed */

/* Read a first-stage decision, x[0 … columns of stage 1): either their number and then the values in CORE's
 * order, or lines COLUMN VALUE that name every column. The decision must meet the rows and bounds of stage 1
 * up to a relative error of 1e-6. The caller frees *x. */
kilter_status sp_decision_read(const sp_problem *problem, const sp_file *file, double **x,
                               kilter_error *error);

/* Load `path` into memory. `file->name` is `path` itself; free the bytes with sp_file_free(). */
kilter_status sp_file_load(const char *path, sp_file *file, kilter_error *error);
void sp_file_free(sp_file *file);

#ifdef __cplusplus
}
#endif
#endif
