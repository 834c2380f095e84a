#include "numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* CLP treats values below 1e-7 as zero in rows, columns and reduced costs. If a row has an entry of 1e7, an
 * error of 1e-7 in that column changes the row by 1. A double near 1e9 has a rounding error of about 1e-7. */
static const double APART = 1e7, LARGE = 1e9;

typedef struct place {
    /* column = NULL: the number is a right-hand side; row = NULL: the number is a cost */
    const char *file, *column, *row;
    double value; /* absolute value of the number */
} place;

typedef struct survey {
    const sp_problem *problem;
    place least, most; /* smallest and largest number of the matrix, without zeros */
    place large;       /* largest right-hand side or cost */
} survey;

static void look_at_entry(survey *s, place at) {
    if (at.value > 0 && at.value < s->least.value)
        s->least = at;
    if (at.value > s->most.value)
        s->most = at;
}

static void look_at_other(survey *s, place at) {
    if (at.value > s->large.value)
        s->large = at;
}

/* Marks for numbers of CORE; true: every outcome replaces the number. NULL: memory ran out, so nothing is
 * marked. */
typedef struct replaced {
    bool *t, *w;      /* t, w: for each entry of the matrices T and W */
    bool *rhs, *cost; /* rhs: for each row of stage 2; cost: for each column of stage 2 */
} replaced;

static void look_at_matrix(survey *s, const char *file, const sp_matrix *matrix, int row_stage,
                           int column_stage, const bool *not_at) {
    const sp_stage *rows = &s->problem->stage[row_stage], *columns = &s->problem->stage[column_stage];
    for (int j = 0; j < columns->columns; j++)
        for (int at = matrix->start[j]; at < matrix->start[j + 1]; at++)
            if (!not_at || !not_at[at])
                look_at_entry(s, (place){file, columns->column_name[j], rows->row_name[matrix->row[at]],
                                         fabs(matrix->value[at])});
}

static void look_at_stage(survey *s, const char *file, const sp_stage *stage, const bool *no_rhs,
                          const bool *no_cost) {
    for (int i = 0; i < stage->rows; i++)
        if (!no_rhs || !no_rhs[i])
            look_at_other(s, (place){file, NULL, stage->row_name[i], fabs(stage->rhs[i])});
    for (int j = 0; j < stage->columns; j++)
        if (!no_cost || !no_cost[j])
            look_at_other(s, (place){file, stage->column_name[j], NULL, fabs(stage->cost[j])});
}

static void look_at_change(survey *s, const char *file, const sp_change *change) {
    const sp_stage *one = &s->problem->stage[0], *two = &s->problem->stage[1];
    const sp_target *target = &s->problem->target[change->target];
    double value = fabs(change->value);
    switch (target->kind) {
    case SP_TECHNOLOGY:
        look_at_entry(s, (place){file, one->column_name[target->column], two->row_name[target->row], value});
        break;
    case SP_RECOURSE:
        look_at_entry(s, (place){file, two->column_name[target->column], two->row_name[target->row], value});
        break;
    case SP_RHS:
        look_at_other(s, (place){file, NULL, two->row_name[target->row], value});
        break;
    case SP_COST:
        look_at_other(s, (place){file, two->column_name[target->column], NULL, value});
    }
}

static void mark_replaced(const sp_target *target, const replaced *r) {
    switch (target->kind) {
    case SP_TECHNOLOGY:
        if (target->entry >= 0)
            r->t[target->entry] = true;
        break;
    case SP_RECOURSE:
        r->w[target->entry] = true;
        break;
    case SP_RHS:
        r->rhs[target->row] = true;
        break;
    case SP_COST:
        r->cost[target->column] = true;
    }
}

/* Set left[t] for each random number t: the number of its variable's outcomes that do not set t. */
static void count_left(const sp_problem *problem, size_t *left) {
    for (int t = 0; t < problem->targets; t++) {
        const sp_variable *variable = &problem->variable[problem->target[t].variable];
        left[t] = variable->end - variable->first;
    }
    for (int k = 0; k < problem->variables; k++)
        for (size_t o = problem->variable[k].first; o < problem->variable[k].end; o++)
            for (size_t c = problem->outcome[o].first; c < problem->outcome[o].end; c++)
                left[problem->change[c].target]--;
}

static void free_replaced(replaced *r) {
    free(r->t);
    free(r->w);
    free(r->rhs);
    free(r->cost);
    *r = (replaced){0};
}

/* Mark the numbers that need no check. If memory runs out, mark none, so that all numbers are checked. */
static replaced replaced_of(const sp_problem *problem) {
    const sp_stage *two = &problem->stage[1];
    size_t t_entries = (size_t)problem->t.start[problem->stage[0].columns];
    size_t w_entries = (size_t)problem->w.start[two->columns];
    size_t *left = calloc((size_t)problem->targets + 1, sizeof *left);
    replaced r = {calloc(t_entries + 1, sizeof(bool)), calloc(w_entries + 1, sizeof(bool)),
                  calloc((size_t)two->rows + 1, sizeof(bool)),
                  calloc((size_t)two->columns + 1, sizeof(bool))};
    if (left && r.t && r.w && r.rhs && r.cost) {
        count_left(problem, left);
        for (int t = 0; t < problem->targets; t++)
            if (left[t] == 0)
                mark_replaced(&problem->target[t], &r);
    } else {
        free_replaced(&r);
    }
    free(left);
    return r;
}

static survey survey_of(const sp_problem *problem, const char *core, const char *stoch) {
    survey s = {.problem = problem, .least.value = INFINITY};
    replaced r = replaced_of(problem);
    look_at_matrix(&s, core, &problem->a, 0, 0, NULL);
    look_at_matrix(&s, core, &problem->t, 1, 0, r.t);
    look_at_matrix(&s, core, &problem->w, 1, 1, r.w);
    look_at_stage(&s, core, &problem->stage[0], NULL, NULL);
    look_at_stage(&s, core, &problem->stage[1], r.rhs, r.cost);
    free_replaced(&r);
    for (int k = 0; k < problem->variables; k++)
        for (size_t o = problem->variable[k].first; o < problem->variable[k].end; o++)
            for (size_t c = problem->outcome[o].first; c < problem->outcome[o].end; c++)
                look_at_change(&s, stoch, &problem->change[c]);
    return s;
}

static const char DOUBTFUL[] =
    "CLP's tolerances are 1e-7 for every number, so the answer's error may exceed the gap";

bool sp_numbers_stand_out(const sp_problem *problem, const char *core, const char *stoch, char *text,
                          size_t size) {
    const survey s = survey_of(problem, core, stoch);
    const place *least = &s.least, *most = &s.most, *large = &s.large;
    if (most->value >= APART * least->value)
        snprintf(text, size,
                 "%.200s: the matrix has %g (column %.60s, row %.60s) beside %g (%.200s: column %.60s, row "
                 "%.60s): %s; choose units that bring these numbers closer together",
                 most->file, most->value, most->column, most->row, least->value, least->file, least->column,
                 least->row, DOUBTFUL);
    else if (large->value >= LARGE)
        snprintf(text, size, "%.200s: the %s of %s %.60s is %g: %s; choose larger units", large->file,
                 large->column ? "cost" : "right-hand side", large->column ? "column" : "row",
                 large->column ? large->column : large->row, large->value, DOUBTFUL);
    else
        return false;
    return true;
}
