/* Read the TIME file in its implicit form, which gives the first column and the first row of each of the two
 * periods. */
#include "smps_parts.h"

typedef struct reader {
    sp_lines lines;
    const sp_core *core;
    sp_time *time;
    bool titled, opened, ended;
    int periods;
} reader;

static kilter_status header_line(reader *r) {
    sp_lines *lines = &r->lines;
    sp_token word = lines->token[0];
    if (sp_token_is(word, "TIME") && !r->titled && !r->opened) {
        r->titled = true;
    } else if (sp_token_is(word, "PERIODS") && !r->opened) {
        if (lines->count > 1 && sp_token_is(lines->token[1], "EXPLICIT"))
            return sp_lines_fail(lines, "PERIODS EXPLICIT is not read, expected the implicit form, which "
                                        "gives the first column and row of each period");
        r->opened = true;
    } else if (sp_token_is(word, "ENDATA") && r->opened) {
        r->ended = true;
    } else {
        return sp_lines_fail(
            lines, "section \"%s\" is not expected here, expected TIME, PERIODS, ENDATA in this order",
            sp_show(word).text);
    }
    return KILTER_OK;
}

static int first_constraint(const sp_core *core) {
    int row = 0;
    while (row < core->row_names.count && core->row[row].type == 'N')
        row++;
    return row;
}

/* Check where a period begins. Period 1 must begin where CORE begins, because otherwise rows or columns would
 * belong to no period. The file may name the objective instead of CORE's first row. */
static kilter_status check_period(const reader *r, int row, int column) {
    const sp_lines *lines = &r->lines;
    int first = first_constraint(r->core);
    if (r->periods == 0 && column != 0)
        return sp_lines_fail(lines, "period 1 begins at column %s, expected CORE's first column %s",
                             sp_show(lines->token[0]).text, sp_show(r->core->column_names.name[0]).text);
    if (r->periods == 0 && row > first && row != r->core->objective)
        return sp_lines_fail(lines, "period 1 begins at row %s, expected CORE's first row or the objective",
                             sp_show(lines->token[1]).text);
    if (r->periods == 1 && column == 0)
        return sp_lines_fail(
            lines, "period 2 begins at CORE's first column %s, expected a later one: stage 1 needs a column",
            sp_show(lines->token[0]).text);
    if (r->periods == 1 && r->core->row[row].type == 'N')
        return sp_lines_fail(lines, "period 2 begins at row %s of type N, expected a row of type E, L or G",
                             sp_show(lines->token[1]).text);
    if (r->periods == 1 && sp_token_same(r->time->period[0], lines->token[2]))
        return sp_lines_fail(lines, "both periods are called %s, expected two names",
                             sp_show(lines->token[2]).text);
    if (r->periods == 2)
        return sp_lines_fail(lines,
                             "there is a third period %s, expected two: only two-stage problems are read",
                             sp_show(lines->token[2]).text);
    return KILTER_OK;
}

static kilter_status period_line(reader *r) {
    sp_lines *lines = &r->lines;
    if (!r->opened)
        return sp_lines_fail(lines, "data before PERIODS, expected PERIODS first");
    if (lines->count != 3)
        return sp_lines_fail(lines, "%d fields, expected COLUMN ROW PERIOD", lines->count);
    int column = sp_names_find(&r->core->column_names, lines->token[0]);
    int row = sp_names_find(&r->core->row_names, lines->token[1]);
    if (column < 0 || row < 0)
        return sp_lines_fail(lines, "there is no %s %s, expected one of CORE", column < 0 ? "column" : "row",
                             sp_show(lines->token[column < 0 ? 0 : 1]).text);
    kilter_status status = check_period(r, row, column);
    if (status)
        return status;
    r->time->row = row;
    r->time->column = column;
    r->time->period[r->periods++] = lines->token[2];
    return KILTER_OK;
}

kilter_status sp_time_read(const sp_file *file, const sp_core *core, sp_time *time, kilter_error *error) {
    *time = (sp_time){0};
    reader r = {.lines = {.file = file, .error = error}, .core = core, .time = time};
    bool more = true;
    kilter_status status = sp_lines_next(&r.lines, &more);
    while (!status && more && !r.ended) {
        status = r.lines.header ? header_line(&r) : period_line(&r);
        if (!status && !r.ended)
            status = sp_lines_next(&r.lines, &more);
    }
    if (status)
        return status;
    if (!r.ended)
        return sp_lines_fail(&r.lines, "the file ends without ENDATA, expected the whole file");
    if (r.periods != 2)
        return sp_lines_fail(&r.lines, "%d periods, expected two: only two-stage problems are read",
                             r.periods);
    return KILTER_OK;
}
