#include "claim.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A dual or reduced cost below this fraction of the sum of its terms' sizes counts as zero, as in CLP. */
static const double NO_PRICE = 1e-7;
/* A sum may violate its bound by this fraction of the sum of its terms' sizes. CLP's own tolerance is 1e-7 on
 * scaled numbers. */
static const double UNPROVED = 1e-6;
/* a cost or side of a row counts as zero below this fraction of the largest cost or side */
static const double ROUNDING = 1e-6;

double sp_claim_cost(Clp_Simplex *model) {
    const double *cost = Clp_objective(model), *x = Clp_primalColumnSolution(model);
    int columns = Clp_numberColumns(model);
    double sum = 0;
    for (int j = 0; j < columns; j++)
        sum += cost[j] * x[j];
    return sum;
}

/* --- sums over the matrix --- */

typedef struct total {
    double sum, size; /* sum: sum of the terms; size: sum of the terms' absolute values */
} total;

static void add(total *t, double part) {
    t->sum += part;
    t->size += fabs(part);
}

typedef struct matrix { /* CLP's matrix, stored by columns */
    const CoinBigIndex *start;
    const int *length, *row;
    const double *value;
} matrix;

static matrix matrix_of(Clp_Simplex *model) {
    return (matrix){Clp_getVectorStarts(model), Clp_getVectorLengths(model), Clp_getIndices(model),
                    Clp_getElements(model)};
}

/* Return the sum of column j's entries, each multiplied by the value in by_row[] for the entry's row. */
static total column_total(const matrix *m, const double *by_row, int j) {
    CoinBigIndex end = m->start[j] + m->length[j];
    total t = {0, 0};
    for (CoinBigIndex at = m->start[j]; at < end; at++)
        add(&t, m->value[at] * by_row[m->row[at]]);
    return t;
}

/* Return, for each row, the sum of its entries, each multiplied by the value in by_column[] for the entry's
 * column. Return NULL if memory ran out. */
static total *row_totals(Clp_Simplex *model, const double *by_column) {
    const matrix m = matrix_of(model);
    int columns = Clp_numberColumns(model);
    total *t = calloc((size_t)Clp_numberRows(model) + 1, sizeof *t);
    for (int j = 0; t && j < columns; j++)
        for (CoinBigIndex at = m.start[j]; by_column[j] != 0 && at < m.start[j] + m.length[j]; at++)
            add(&t[m.row[at]], m.value[at] * by_column[j]);
    return t;
}

/* --- check that a point keeps all bounds --- */

static bool is_within(double lower, total value, double upper) {
    double room = UNPROVED * (1 + value.size);
    return value.sum >= lower - room && value.sum <= upper + room; /* the comparison is false for NaN */
}

static bool is_feasible(Clp_Simplex *model) {
    const double *x = Clp_primalColumnSolution(model), *lower = Clp_columnLower(model),
                 *upper = Clp_columnUpper(model);
    int columns = Clp_numberColumns(model);
    bool holds = true;
    for (int j = 0; j < columns && holds; j++)
        holds = is_within(lower[j], (total){x[j], fabs(x[j])}, upper[j]);
    total *rows = holds ? row_totals(model, x) : NULL;
    holds = rows != NULL;
    for (int i = 0; i < Clp_numberRows(model) && holds; i++)
        holds = is_within(Clp_rowLower(model)[i], rows[i], Clp_rowUpper(model)[i]);
    free(rows);
    return holds;
}

/* --- check that no point has a lower cost --- */

typedef struct proof {
    total least; /* lower bound on the cost, from the duals */
    bool holds;  /* true: no term of the bound is infinite */
} proof;

/* Add a price times its bound to the proof's lower bound on the cost. If the bound is infinite, the proof
 * fails. But a price that counts as zero is multiplied by the value at CLP's point instead of the bound. */
static void add_price(proof *p, double price, double size, double lower, double upper, double at) {
    double side = price > 0 ? lower : upper;
    if (fabs(price) <= NO_PRICE * size)
        side = at;
    p->holds = p->holds && fabs(side) < DBL_MAX;
    add(&p->least, price * side);
}

static bool is_least(Clp_Simplex *model) {
    const matrix m = matrix_of(model);
    const double *dual = Clp_dualRowSolution(model), *cost = Clp_objective(model),
                 *x = Clp_primalColumnSolution(model), *lower = Clp_columnLower(model),
                 *upper = Clp_columnUpper(model);
    int rows = Clp_numberRows(model), columns = Clp_numberColumns(model);
    proof p = {.holds = true};
    for (int i = 0; i < rows; i++)
        if (dual[i] != 0)
            add_price(&p, dual[i], 1, Clp_rowLower(model)[i], Clp_rowUpper(model)[i],
                      Clp_primalRowSolution(model)[i]);
    for (int j = 0; j < columns && p.holds; j++) {
        total priced = column_total(&m, dual, j);
        add_price(&p, cost[j] - priced.sum, 1 + fabs(cost[j]) + priced.size, lower[j], upper[j], x[j]);
    }
    return p.holds && sp_claim_cost(model) - p.least.sum <= UNPROVED * (1 + p.least.size);
}

/* --- check that no point keeps all bounds --- */

/* Add to the sum the least value of weight × x, for any x within its bounds. */
static void add_least(proof *p, double weight, double size, double lower, double upper) {
    double side = weight > 0 ? lower : upper;
    if (fabs(weight) <= NO_PRICE * size)
        return;
    p->holds = p->holds && fabs(side) < DBL_MAX;
    add(&p->least, weight * side);
}

/* Add up all rows, each weighted by `way` × ray[row], where `way` is 1 or −1. Return whether no point within
 * the columns' bounds can meet the sides of this sum. */
static bool proves_infeasible(Clp_Simplex *model, const double *ray, double way) {
    const matrix m = matrix_of(model);
    proof rows = {.holds = true}, columns = {.holds = true};
    for (int i = 0; i < Clp_numberRows(model); i++)
        add_least(&rows, way * ray[i], 0, Clp_rowLower(model)[i], Clp_rowUpper(model)[i]);
    for (int j = 0; j < Clp_numberColumns(model); j++) {
        total weight = column_total(&m, ray, j);
        add_least(&columns, -way * weight.sum, weight.size, Clp_columnLower(model)[j],
                  Clp_columnUpper(model)[j]);
    }
    double most = -columns.least.sum, size = rows.least.size + columns.least.size;
    return rows.holds && columns.holds && rows.least.sum - most > UNPROVED * size;
}

static bool has_crossed_bounds(Clp_Simplex *model) {
    bool crossed = false;
    for (int i = 0; i < Clp_numberRows(model); i++)
        crossed |= Clp_rowLower(model)[i] > Clp_rowUpper(model)[i];
    for (int j = 0; j < Clp_numberColumns(model); j++)
        crossed |= Clp_columnLower(model)[j] > Clp_columnUpper(model)[j];
    return crossed;
}

static bool is_infeasible(Clp_Simplex *model) {
    if (has_crossed_bounds(model))
        return true;
    double *ray = Clp_infeasibilityRay(model);
    bool holds = ray && (proves_infeasible(model, ray, 1) || proves_infeasible(model, ray, -1));
    if (ray)
        Clp_freeRay(model, ray);
    return holds;
}

/* --- programs that find the answer if CLP's is not confirmed --- */

/* Allocate a program for the rows and columns of a model and `more` additional columns with one entry each.
 */
static bool allocate(Clp_Simplex *model, int more, sp_program *e) {
    size_t entries = (size_t)more;
    for (int j = 0; j < Clp_numberColumns(model); j++)
        entries += (size_t)Clp_getVectorLengths(model)[j];
    return sp_program_make(e, Clp_numberRows(model), Clp_numberColumns(model) + more, entries);
}

static int copy_matrix(Clp_Simplex *model, sp_program *e) {
    int at = 0;
    for (int j = 0; j < Clp_numberColumns(model); j++) {
        CoinBigIndex start = Clp_getVectorStarts(model)[j], end = start + Clp_getVectorLengths(model)[j];
        for (CoinBigIndex from = start; from < end; from++, at++) {
            e->matrix.row[at] = Clp_getIndices(model)[from];
            e->matrix.value[at] = Clp_getElements(model)[from];
        }
        e->matrix.start[j + 1] = at;
    }
    return at;
}

/* Fill in a program that minimises the amount by which a point violates the rows. For this, each row gets two
 * columns: one for a shortfall, and one for an excess. */
static void fill_missing(Clp_Simplex *model, sp_program *e) {
    int at = copy_matrix(model, e), own = Clp_numberColumns(model);
    memcpy(e->lower, Clp_columnLower(model), (size_t)own * sizeof *e->lower);
    memcpy(e->upper, Clp_columnUpper(model), (size_t)own * sizeof *e->upper);
    memcpy(e->row_lower, Clp_rowLower(model), (size_t)e->rows * sizeof *e->row_lower);
    memcpy(e->row_upper, Clp_rowUpper(model), (size_t)e->rows * sizeof *e->row_upper);
    for (int j = own; j < e->columns; j++, at++) {
        e->matrix.row[at] = (j - own) / 2;
        e->matrix.value[at] = (j - own) % 2 ? -1 : 1;
        e->upper[j] = DBL_MAX;
        e->cost[j] = 1;
        e->matrix.start[j + 1] = at + 1;
    }
}

static double largest_side(Clp_Simplex *model) {
    double most = 0;
    for (int i = 0; i < Clp_numberRows(model); i++) {
        double lower = fabs(Clp_rowLower(model)[i]), upper = fabs(Clp_rowUpper(model)[i]);
        most = lower < DBL_MAX ? fmax(most, lower) : most;
        most = upper < DBL_MAX ? fmax(most, upper) : most;
    }
    return most;
}

static double largest_cost(Clp_Simplex *model) {
    double most = 0;
    for (int j = 0; j < Clp_numberColumns(model); j++)
        most = fmax(most, fabs(Clp_objective(model)[j]));
    return most;
}

/* Fill in a program for the direction in which the cost falls most. The program allows only directions in
 * which a point can move without limit, with steps of at most 1 in each column. Costs are scaled to at most
 * 1, because they include a scenario's weight, which may be small. */
static void fill_steps(Clp_Simplex *model, sp_program *e) {
    double most = largest_cost(model);
    copy_matrix(model, e);
    for (int j = 0; j < e->columns; j++) {
        e->lower[j] = Clp_columnLower(model)[j] <= -DBL_MAX ? -1 : 0;
        e->upper[j] = Clp_columnUpper(model)[j] >= DBL_MAX ? 1 : 0;
        e->cost[j] = most > 0 ? Clp_objective(model)[j] / most : 0;
    }
    for (int i = 0; i < e->rows; i++) {
        e->row_lower[i] = Clp_rowLower(model)[i] <= -DBL_MAX ? -DBL_MAX : 0;
        e->row_upper[i] = Clp_rowUpper(model)[i] >= DBL_MAX ? DBL_MAX : 0;
    }
}

/* Return the least cost of a program that `fill` makes from the model; NaN: the optimum is not proved. The
 * programs that `fill` makes always have an optimum. */
static double least_cost(Clp_Simplex *model, int more, void (*fill)(Clp_Simplex *, sp_program *)) {
    sp_program e;
    Clp_Simplex *made = NULL;
    double least = NAN;
    if (allocate(model, more, &e)) {
        fill(model, &e);
        made = sp_clp_load(&e);
    }
    for (int by = 0; made && isnan(least) && by < 2; by++)
        if (sp_claim_checked(made, sp_lp_meaning(by ? sp_clp_primal(made) : sp_clp_dual(made))) ==
            SP_LP_OPTIMAL)
            least = sp_claim_cost(made);
    if (made)
        Clp_deleteModel(made);
    sp_program_free(&e);
    return least;
}

sp_lp_status sp_claim_without_answer(Clp_Simplex *model) {
    double missing = least_cost(model, 2 * Clp_numberRows(model), fill_missing);
    if (missing > ROUNDING * (1 + largest_side(model)))
        return SP_LP_INFEASIBLE;
    double fall = isnan(missing) ? NAN : least_cost(model, 0, fill_steps);
    return fall < -ROUNDING ? SP_LP_UNBOUNDED : SP_LP_STOPPED;
}

/* --- check that the cost is unbounded --- */

/* Return whether a value can change by `step` again and again without reaching one of its bounds. */
static bool is_open(double lower, total step, double upper) {
    double none = UNPROVED * step.size;
    return (step.sum >= -none || lower <= -DBL_MAX) && (step.sum <= none || upper >= DBL_MAX);
}

static bool leads_down(Clp_Simplex *model, const double *ray) {
    total *rows = row_totals(model, ray), fall = {0, 0};
    bool holds = rows != NULL;
    for (int i = 0; i < Clp_numberRows(model) && holds; i++)
        holds = is_open(Clp_rowLower(model)[i], rows[i], Clp_rowUpper(model)[i]);
    for (int j = 0; j < Clp_numberColumns(model) && holds; j++) {
        holds = is_open(Clp_columnLower(model)[j], (total){ray[j], 0}, Clp_columnUpper(model)[j]);
        add(&fall, Clp_objective(model)[j] * ray[j]);
    }
    free(rows);
    return holds && fall.sum < -UNPROVED * fall.size;
}

static bool is_unbounded(Clp_Simplex *model) {
    double *ray = Clp_unboundedRay(model);
    bool holds = ray && is_feasible(model) && leads_down(model, ray);
    if (ray)
        Clp_freeRay(model, ray);
    return holds;
}

sp_lp_status sp_claim_checked(Clp_Simplex *model, sp_lp_status said) {
    bool holds = said == SP_LP_OPTIMAL      ? is_feasible(model) && is_least(model)
                 : said == SP_LP_INFEASIBLE ? is_infeasible(model)
                 : said == SP_LP_UNBOUNDED  ? is_unbounded(model)
                                            : false;
    if (holds)
        return said;
    return said != SP_LP_OPTIMAL && is_feasible(model) && is_least(model) ? SP_LP_OPTIMAL : SP_LP_STOPPED;
}
