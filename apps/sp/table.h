/* A linear program whose rows and column bounds change. Each solve starts from the basis of the last solve.
 * Two threads must not share a table. */
#ifndef SP_TABLE_H
#define SP_TABLE_H

#include "lp.h"
#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sp_table sp_table;

kilter_status sp_table_new(const sp_program *program, sp_table **table, kilter_error *error);
void sp_table_free(sp_table *table); /* free a table; NULL is allowed */

void sp_table_bound(sp_table *table, int column, double lower, double upper);

/* Append the rows to the linear program of the table. */
kilter_status sp_table_add(sp_table *table, const sp_rows *rows, kilter_error *error);
/* Drop the listed rows. Later rows move up and get lower numbers. */
kilter_status sp_table_drop(sp_table *table, int count, const int *row, kilter_error *error);

/* Solve, and check the answer against the program's own data (claim.h), up to rounding. Return SP_LP_STOPPED
 * if the check failed. */
sp_lp_status sp_table_solve(sp_table *table);
sp_lp_status sp_table_solve_once(sp_table *table); /* solve a large program, with CLP's presolve */
/* Find out why the program has no answer: SP_LP_INFEASIBLE or SP_LP_UNBOUNDED; return SP_LP_STOPPED if the
 * reason is not known. */
sp_lp_status sp_table_without_answer(sp_table *table);
/* Solve again from the basis of the last solve, as exactly as CLP can. */
sp_lp_status sp_table_solve_exactly(sp_table *table);

/* Return the objective of the last solve, which must have been optimal. */
double sp_table_objective(const sp_table *table);
/* return the value of each column in the last solution */
const double *sp_table_point(const sp_table *table);
const double *sp_table_duals(const sp_table *table);   /* return the dual of each row */
const double *sp_table_reduced(const sp_table *table); /* return the reduced cost of each column */
/* return true if the row is basic, which means that it is not active */
bool sp_table_is_slack(const sp_table *table, int row);

#ifdef __cplusplus
}
#endif
#endif
