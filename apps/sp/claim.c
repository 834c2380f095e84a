#include "claim.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A dual or reduced cost as large, against what it is summed from, is what CLP takes for none. */
static const double NO_PRICE = 1e-7;
/* Relative to what a sum is made of. CLP's own tolerance is 1e-7, of what it has scaled. */
static const double UNPROVED = 1e-6;
static const double MISSING = 1e-6; /* of the largest side of a row: less may be rounding */

double sp_claim_cost(Clp_Simplex *model) {
    const double *cost = Clp_objective(model), *x = Clp_primalColumnSolution(model);
    double sum = 0;
    for (int j = 0; j < Clp_numberColumns(model); j++)
        sum += cost[j] * x[j];
    return sum;
}

/* --- sums over the matrix --- */

typedef struct total {
    double sum, size; /* size: of the parts' absolute values */
} total;

static void add(total *t, double part) {
    t->sum += part;
    t->size += fabs(part);
}

/* What `by_row` comes to in column j. */
static total column_total(Clp_Simplex *model, const double *by_row, int j) {
    const double *value = Clp_getElements(model);
    const int *row = Clp_getIndices(model);
    CoinBigIndex start = Clp_getVectorStarts(model)[j], end = start + Clp_getVectorLengths(model)[j];
    total t = {0, 0};
    for (CoinBigIndex at = start; at < end; at++)
        add(&t, value[at] * by_row[row[at]]);
    return t;
}

/* What `by_column` comes to in each row. NULL: no memory */
static total *row_totals(Clp_Simplex *model, const double *by_column) {
    const double *value = Clp_getElements(model);
    const int *row = Clp_getIndices(model);
    total *t = calloc((size_t)Clp_numberRows(model) + 1, sizeof *t);
    for (int j = 0; t && j < Clp_numberColumns(model); j++) {
        CoinBigIndex start = Clp_getVectorStarts(model)[j], end = start + Clp_getVectorLengths(model)[j];
        for (CoinBigIndex at = start; at < end; at++)
            add(&t[row[at]], value[at] * by_column[j]);
    }
    return t;
}

/* --- a point that keeps all bounds --- */

static bool is_within(double lower, total value, double upper) {
    double room = UNPROVED * (1 + value.size);
    return value.sum >= lower - room && value.sum <= upper + room; /* false for what is no number */
}

static bool is_feasible(Clp_Simplex *model) {
    const double *x = Clp_primalColumnSolution(model);
    bool holds = true;
    for (int j = 0; j < Clp_numberColumns(model) && holds; j++)
        holds = is_within(Clp_columnLower(model)[j], (total){x[j], fabs(x[j])}, Clp_columnUpper(model)[j]);
    total *rows = holds ? row_totals(model, x) : NULL;
    holds = rows != NULL;
    for (int i = 0; i < Clp_numberRows(model) && holds; i++)
        holds = is_within(Clp_rowLower(model)[i], rows[i], Clp_rowUpper(model)[i]);
    free(rows);
    return holds;
}

/* --- a least cost --- */

typedef struct proof {
    total least; /* cost, as the duals prove it */
    bool holds;  /* no part is unbounded */
} proof;

/* A side without a limit that has a price proves nothing; what counts for none is weighed where the point
 * stands. */
static void add_price(proof *p, double price, double size, double lower, double upper, double at) {
    double side = price > 0 ? lower : upper;
    if (fabs(price) <= NO_PRICE * size)
        side = at;
    p->holds = p->holds && fabs(side) < DBL_MAX;
    add(&p->least, price * side);
}

static bool is_least(Clp_Simplex *model) {
    const double *dual = Clp_dualRowSolution(model), *cost = Clp_objective(model);
    proof p = {.holds = true};
    for (int i = 0; i < Clp_numberRows(model); i++)
        add_price(&p, dual[i], 1, Clp_rowLower(model)[i], Clp_rowUpper(model)[i],
                  Clp_primalRowSolution(model)[i]);
    for (int j = 0; j < Clp_numberColumns(model); j++) {
        total priced = column_total(model, dual, j);
        add_price(&p, cost[j] - priced.sum, 1 + fabs(cost[j]) + priced.size, Clp_columnLower(model)[j],
                  Clp_columnUpper(model)[j], Clp_primalColumnSolution(model)[j]);
    }
    return p.holds && sp_claim_cost(model) - p.least.sum <= UNPROVED * (1 + p.least.size);
}

/* --- no point at all --- */

/* The least that weight × value may be, for a value within its bounds. */
static void add_least(proof *p, double weight, double size, double lower, double upper) {
    double side = weight > 0 ? lower : upper;
    if (fabs(weight) <= NO_PRICE * size)
        return;
    p->holds = p->holds && fabs(side) < DBL_MAX;
    add(&p->least, weight * side);
}

/* Rows weighed by `way` × ray: what they must come to is more than the columns can. */
static bool proves_infeasible(Clp_Simplex *model, const double *ray, double way) {
    proof rows = {.holds = true}, columns = {.holds = true};
    for (int i = 0; i < Clp_numberRows(model); i++)
        add_least(&rows, way * ray[i], 0, Clp_rowLower(model)[i], Clp_rowUpper(model)[i]);
    for (int j = 0; j < Clp_numberColumns(model); j++) {
        total weight = column_total(model, ray, j);
        add_least(&columns, -way * weight.sum, weight.size, Clp_columnLower(model)[j], Clp_columnUpper(model)[j]);
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

/* --- how much is missing to a point --- */

typedef struct elastic { /* the program with two more columns for each row, which make up what is missing there */
    int rows, columns;
    int *start, *row;
    double *value, *lower, *upper, *cost;
} elastic;

static void free_elastic(elastic *e) {
    free(e->start);
    free(e->row);
    free(e->value);
    free(e->lower);
    free(e->upper);
    free(e->cost);
}

static bool allocate_elastic(Clp_Simplex *model, elastic *e) {
    *e = (elastic){.rows = Clp_numberRows(model), .columns = Clp_numberColumns(model) + 2 * Clp_numberRows(model)};
    size_t columns = (size_t)e->columns + 1, entries = 2 * (size_t)e->rows + 1;
    for (int j = 0; j < Clp_numberColumns(model); j++)
        entries += (size_t)Clp_getVectorLengths(model)[j];
    e->start = calloc(columns, sizeof *e->start);
    e->row = calloc(entries, sizeof *e->row);
    e->value = calloc(entries, sizeof *e->value);
    e->lower = calloc(columns, sizeof *e->lower);
    e->upper = calloc(columns, sizeof *e->upper);
    e->cost = calloc(columns, sizeof *e->cost);
    return e->start && e->row && e->value && e->lower && e->upper && e->cost;
}

static void fill_elastic(Clp_Simplex *model, elastic *e) {
    int at = 0, own = Clp_numberColumns(model);
    for (int j = 0; j < own; j++) {
        CoinBigIndex start = Clp_getVectorStarts(model)[j], end = start + Clp_getVectorLengths(model)[j];
        for (CoinBigIndex from = start; from < end; from++, at++) {
            e->row[at] = Clp_getIndices(model)[from];
            e->value[at] = Clp_getElements(model)[from];
        }
        e->lower[j] = Clp_columnLower(model)[j];
        e->upper[j] = Clp_columnUpper(model)[j];
        e->start[j + 1] = at;
    }
    for (int j = own; j < e->columns; j++, at++) {
        e->row[at] = (j - own) / 2;
        e->value[at] = (j - own) % 2 ? -1 : 1;
        e->upper[j] = DBL_MAX;
        e->cost[j] = 1;
        e->start[j + 1] = at + 1;
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

/* It has a point always, and a cost of 0 at least: what is least can be proved. */
bool sp_claim_no_point(Clp_Simplex *model) {
    elastic e;
    Clp_Simplex *made = NULL;
    bool none = false;
    if (allocate_elastic(model, &e)) {
        fill_elastic(model, &e);
        made = sp_clp_load(e.columns, e.rows, e.start, e.row, e.value, e.lower, e.upper, e.cost,
                           Clp_rowLower(model), Clp_rowUpper(model));
    }
    for (int by = 0; made && !none && by < 2; by++) {
        sp_lp_status solved = sp_lp_meaning(by ? sp_clp_primal(made) : sp_clp_dual(made));
        none = sp_claim_checked(made, solved) == SP_LP_OPTIMAL &&
               sp_claim_cost(made) > MISSING * (1 + largest_side(model));
    }
    if (made)
        Clp_deleteModel(made);
    free_elastic(&e);
    return none;
}

/* --- a cost without limit --- */

/* One may go on for ever in this direction. */
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
    return holds ? said : SP_LP_STOPPED;
}
