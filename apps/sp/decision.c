/* Read and check a first-stage decision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "smps_lines.h"
#include "support.h"

typedef struct reader {
    sp_lines lines;
    const sp_problem *problem;
    double *x;
    uint64_t *line; /* line[column]: number of the line that gives the column's value; 0: not given yet */
    int given;
} reader;

static kilter_status take(reader *r, int column, int token) {
    if (r->line[column])
        return sp_lines_fail(
            &r->lines, "column %.40s already has a value from line %llu, expected one value for each column",
            r->problem->stage[0].column_name[column], (unsigned long long)r->line[column]);
    kilter_status status = sp_lines_number(&r->lines, token, &r->x[column]);
    if (!status) {
        r->line[column] = r->lines.line;
        r->given++;
    }
    return status;
}

/* Read the number of values, and then the values, with any number of values on a line. */
static kilter_status take_in_order(reader *r) {
    int columns = r->problem->stage[0].columns;
    kilter_status status = KILTER_OK;
    for (int token = 0; !status && token < r->lines.count; token++) {
        if (r->given == columns)
            return sp_lines_fail(&r->lines, "more values than the %d first-stage columns, expected one each",
                                 columns);
        status = take(r, r->given, token);
    }
    return status;
}

static kilter_status take_named(reader *r, const sp_names *names) {
    if (r->lines.count != 2)
        return sp_lines_fail(&r->lines, "%d fields, expected COLUMN VALUE", r->lines.count);
    int column = sp_names_find(names, r->lines.token[0]);
    if (column < 0)
        return sp_lines_fail(&r->lines, "there is no first-stage column %s, expected one of CORE",
                             sp_show(r->lines.token[0]).text);
    return take(r, column, 1);
}

static kilter_status check_count(const reader *r) {
    double count = 0;
    kilter_status status = sp_lines_number(&r->lines, 0, &count);
    if (!status && count != r->problem->stage[0].columns)
        return sp_lines_fail(&r->lines, "%s values announced, expected %d, one for each first-stage column",
                             sp_show(r->lines.token[0]).text, r->problem->stage[0].columns);
    return status;
}

static kilter_status read_lines(reader *r, const sp_names *names) {
    bool more = true, first = true, named = false;
    kilter_status status = sp_lines_next(&r->lines, &more);
    while (!status && more) {
        if (r->lines.count > SP_LINE_TOKENS)
            return sp_lines_fail(&r->lines, "there are %d fields on the line, expected at most %d",
                                 r->lines.count, SP_LINE_TOKENS);
        if (first && r->lines.count == 1) {
            status = check_count(r);
        } else {
            named |= first;
            status = named ? take_named(r, names) : take_in_order(r);
        }
        first = false;
        if (!status)
            status = sp_lines_next(&r->lines, &more);
    }
    for (int j = 0; !status && j < r->problem->stage[0].columns; j++)
        if (!r->line[j])
            return sp_lines_fail(&r->lines,
                                 "the file ends without a value for column %.40s (%d of %d are given)",
                                 r->problem->stage[0].column_name[j], r->given, r->problem->stage[0].columns);
    return status;
}

/* Return whether `value` exceeds `limit` by more than the tolerance for numbers of size `scale`. */
static bool beyond(double value, double limit, double scale) {
    return isfinite(limit) && value > limit + 1e-6 * fmax(1, fmax(fabs(limit), scale));
}

static kilter_status check_bounds(const reader *r) {
    const sp_stage *stage = &r->problem->stage[0];
    for (int j = 0; j < stage->columns; j++)
        if (beyond(r->x[j], stage->upper[j], 0) || beyond(-r->x[j], -stage->lower[j], 0))
            return sp_lines_fail_at(&r->lines, r->line[j], "column %.40s is %.10g, expected %.10g to %.10g",
                                    stage->column_name[j], r->x[j], stage->lower[j], stage->upper[j]);
    return KILTER_OK;
}

static kilter_status check_rows(const reader *r, double *activity, double *scale) {
    const sp_stage *stage = &r->problem->stage[0];
    const sp_matrix *a = &r->problem->a;
    for (int j = 0; j < stage->columns; j++) {
        for (int at = a->start[j]; at < a->start[j + 1]; at++) {
            double term = a->value[at] * r->x[j];
            activity[a->row[at]] += term;
            scale[a->row[at]] = fmax(scale[a->row[at]], fabs(term));
        }
    }
    for (int i = 0; i < stage->rows; i++) {
        double low = stage->rhs[i] + stage->below[i], high = stage->rhs[i] + stage->above[i];
        if (beyond(activity[i], high, scale[i]) || beyond(-activity[i], -low, scale[i]))
            return sp_lines_fail(
                &r->lines,
                "the decision is not feasible: first-stage row %.40s has the value %.10g, expected %.10g "
                "to %.10g",
                stage->row_name[i], activity[i], low, high);
    }
    return KILTER_OK;
}

/* Read and check the decision. The caller passes the array `room` with two zeros for each row. The function
 * computes the row's activity and its largest term in this array. */
static kilter_status read_and_check(reader *r, const sp_names *names, double *room) {
    kilter_status status = read_lines(r, names);
    if (!status)
        status = check_bounds(r);
    return status ? status : check_rows(r, room, room + r->problem->stage[0].rows);
}

static bool first_stage_names(const sp_stage *stage, sp_names *names) {
    for (int j = 0; j < stage->columns; j++)
        if (!sp_names_add(names, (sp_token){stage->column_name[j], strlen(stage->column_name[j])}))
            return false;
    return true;
}

kilter_status sp_decision_read(const sp_problem *problem, const sp_file *file, double **x,
                               kilter_error *error) {
    const sp_stage *stage = &problem->stage[0];
    reader r = {.lines = {.file = file, .error = error}, .problem = problem};
    sp_names names = {0};
    r.x = calloc((size_t)stage->columns, sizeof *r.x);
    r.line = calloc((size_t)stage->columns, sizeof *r.line);
    double *activity = calloc(2 * (size_t)stage->rows + 1, sizeof *activity);
    kilter_status status;
    if (r.x && r.line && activity && first_stage_names(stage, &names))
        status = read_and_check(&r, &names, activity);
    else
        status = sp_lines_memory(&r.lines);
    sp_names_free(&names);
    free(r.line);
    free(activity);
    if (status)
        free(r.x);
    else
        *x = r.x;
    return status;
}
