#include "numbers.h"

#include <math.h>
#include <stdio.h>

/* CLP takes 1e-7 for nothing at rows, columns and reduced costs. What a column of entry 1e7 may be off moves
 * a row by as much as a whole unit of a column of entry 1; and a double of 1e9 is rounded to that. */
static const double APART = 1e7, LARGE = 1e9;

typedef struct place {
    const char *file, *column, *row; /* column or row NULL: a right-hand side, a cost */
    double value;                    /* without its sign */
} place;

typedef struct survey {
    const sp_problem *problem;
    place least, most; /* of the matrix, but for zeros */
    place large;       /* of the rest */
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

static void look_at_matrix(survey *s, const char *file, const sp_matrix *matrix, int row_stage,
                           int column_stage) {
    const sp_stage *rows = &s->problem->stage[row_stage], *columns = &s->problem->stage[column_stage];
    for (int j = 0; j < columns->columns; j++)
        for (int at = matrix->start[j]; at < matrix->start[j + 1]; at++)
            look_at_entry(s, (place){file, columns->column_name[j], rows->row_name[matrix->row[at]],
                                     fabs(matrix->value[at])});
}

static void look_at_stage(survey *s, const char *file, const sp_stage *stage) {
    for (int i = 0; i < stage->rows; i++)
        look_at_other(s, (place){file, NULL, stage->row_name[i], fabs(stage->rhs[i])});
    for (int j = 0; j < stage->columns; j++)
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
    case SP_RHS:
        look_at_other(s, (place){file, NULL, two->row_name[target->row], value});
        break;
    case SP_COST:
        look_at_other(s, (place){file, two->column_name[target->column], NULL, value});
    }
}

static survey survey_of(const sp_problem *problem, const char *core, const char *stoch) {
    survey s = {.problem = problem, .least.value = INFINITY};
    look_at_matrix(&s, core, &problem->a, 0, 0);
    look_at_matrix(&s, core, &problem->t, 1, 0);
    look_at_matrix(&s, core, &problem->w, 1, 1);
    for (int i = 0; i < 2; i++)
        look_at_stage(&s, core, &problem->stage[i]);
    for (int k = 0; k < problem->variables; k++)
        for (size_t o = problem->variable[k].first; o < problem->variable[k].end; o++)
            for (size_t c = problem->outcome[o].first; c < problem->outcome[o].end; c++)
                look_at_change(&s, stoch, &problem->change[c]);
    return s;
}

#define DOUBTFUL                                                                                             \
    "CLP's tolerances are 1e-7 at every number, so the answer may be off by more than the gap says"

bool sp_numbers_stand_out(const sp_problem *problem, const char *core, const char *stoch, char *text,
                          size_t size) {
    const survey s = survey_of(problem, core, stoch);
    const place *least = &s.least, *most = &s.most, *large = &s.large;
    if (most->value >= APART * least->value)
        snprintf(text, size,
                 "%.200s: the matrix has %g (column %.60s, row %.60s) beside %g (%.200s: column %.60s, row "
                 "%.60s): " DOUBTFUL "; choose units that bring them closer together",
                 most->file, most->value, most->column, most->row, least->value, least->file, least->column,
                 least->row);
    else if (large->value >= LARGE)
        snprintf(text, size, "%.200s: the %s of %s %.60s is %g: " DOUBTFUL "; choose larger units",
                 large->file, large->column ? "cost" : "right-hand side", large->column ? "column" : "row",
                 large->column ? large->column : large->row, large->value);
    else
        return false;
    return true;
}
