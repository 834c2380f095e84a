/* Read the CORE file, which is a linear program in MPS format. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "smps_parts.h"

typedef enum section { NONE, NAME, ROWS, COLUMNS, RHS, RANGES, BOUNDS, ENDATA } section;

static const char *const SECTION[] = {"", "NAME", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA"};

typedef struct reader {
    sp_lines lines;
    sp_core *core;
    section section;
    unsigned opened; /* bit mask: the bit of each section that was opened is set */
} reader;

static kilter_status open_section(reader *r) {
    section section = NAME;
    while (section <= ENDATA && !sp_token_is(r->lines.token[0], SECTION[section]))
        section++;
    if (section > ENDATA)
        return sp_lines_fail(&r->lines,
                             "\"%s\" in column 1 is not a known section, expected NAME, ROWS, COLUMNS, "
                             "RHS, RANGES, BOUNDS or ENDATA (data lines begin with a space)",
                             sp_show(r->lines.token[0]).text);
    if (r->opened & 1u << section)
        return sp_lines_fail(&r->lines, "a second section %s, expected each section once", SECTION[section]);
    if (section == COLUMNS && !(r->opened & 1u << ROWS))
        return sp_lines_fail(&r->lines, "COLUMNS before ROWS, expected ROWS first");
    if (section > COLUMNS && !(r->opened & 1u << COLUMNS))
        return sp_lines_fail(&r->lines, "%s before COLUMNS, expected ROWS and COLUMNS first",
                             SECTION[section]);
    if ((section == NAME && r->opened) || (section == ROWS && r->opened & ~(1u << NAME)))
        return sp_lines_fail(&r->lines, "section %s after other sections, expected it before them",
                             SECTION[section]);
    r->section = section;
    r->opened |= 1u << section;
    return KILTER_OK;
}

static kilter_status row_line(reader *r) {
    sp_lines *lines = &r->lines;
    sp_core *core = r->core;
    sp_token type = lines->token[0];
    if (lines->count != 2)
        return sp_lines_fail(lines, "%d fields, expected a type and a row's name", lines->count);
    if (type.size != 1 || !strchr("NELG", type.text[0]))
        return sp_lines_fail(lines, "\"%s\" is not a type of row, expected N, E, L or G", sp_show(type).text);
    int known = sp_names_find(&core->row_names, lines->token[1]);
    if (known >= 0 && core->row[known].type == type.text[0])
        return KILTER_OK;
    if (known >= 0)
        return sp_lines_fail(lines, "row %s was given before, expected each row once",
                             sp_show(lines->token[1]).text);
    size_t rows = (size_t)core->row_names.count;
    if (!sp_grow(&core->row, &core->row_capacity, rows + 1, sizeof *core->row) ||
        !sp_names_add(&core->row_names, lines->token[1]))
        return sp_lines_memory(lines);
    core->row[rows] = (sp_core_row){.type = type.text[0]};
    if (type.text[0] == 'N' && core->objective < 0)
        core->objective = (int)rows;
    return KILTER_OK;
}

static kilter_status find_row(reader *r, int token, int *row) {
    *row = sp_names_find(&r->core->row_names, r->lines.token[token]);
    if (*row < 0)
        return sp_lines_fail(&r->lines, "there is no row %s, expected one of section ROWS",
                             sp_show(r->lines.token[token]).text);
    return KILTER_OK;
}

static kilter_status begin_column(reader *r) {
    sp_lines *lines = &r->lines;
    sp_core *core = r->core;
    int columns = core->column_names.count;
    if (columns > 0 && sp_token_same(core->column_names.name[columns - 1], lines->token[0]))
        return KILTER_OK;
    if (sp_names_find(&core->column_names, lines->token[0]) >= 0)
        return sp_lines_fail(lines, "column %s was given above, expected all its entries on adjacent lines",
                             sp_show(lines->token[0]).text);
    if (!sp_grow(&core->column, &core->column_capacity, (size_t)columns + 1, sizeof *core->column) ||
        !sp_names_add(&core->column_names, lines->token[0]))
        return sp_lines_memory(lines);
    core->column[columns] = (sp_core_column){.upper = INFINITY, .first = core->entries};
    return KILTER_OK;
}

static kilter_status column_entry(reader *r, int token) {
    sp_lines *lines = &r->lines;
    sp_core *core = r->core;
    int row = 0, columns = core->column_names.count;
    double value = 0;
    kilter_status status = find_row(r, token, &row);
    if (!status)
        status = row == core->objective ? sp_lines_cost(lines, token + 1, &value)
                                        : sp_lines_number(lines, token + 1, &value);
    if (status)
        return status;
    if (core->row[row].seen_in == columns)
        return value == core->row[row].last /* accept an entry that is repeated with the same value: this is
                                               common in old files */
                   ? KILTER_OK
                   : sp_lines_fail(lines,
                                   "column %s has row %s twice, with different values, expected one value",
                                   sp_show(lines->token[0]).text, sp_show(lines->token[token]).text);
    core->row[row].seen_in = columns;
    core->row[row].last = value;
    if (row == core->objective)
        core->column[columns - 1].cost = value;
    if (core->row[row].type == 'N' || value == 0)
        return KILTER_OK;
    if (core->entries >= SP_FILE_BYTES_MAX / 4 ||
        !sp_grow(&core->entry, &core->entry_capacity, core->entries + 1, sizeof *core->entry))
        return sp_lines_memory(lines);
    core->entry[core->entries++] = (sp_core_entry){row, (uint32_t)lines->line, value};
    return KILTER_OK;
}

static kilter_status column_line(reader *r) {
    sp_lines *lines = &r->lines;
    if (lines->count >= 2 &&
        (sp_token_is(lines->token[1], "'MARKER'") || sp_token_is(lines->token[1], "MARKER")))
        return sp_lines_fail(lines,
                             "integer columns (MARKER) are not read, expected continuous columns only");
    if (lines->count != 3 && lines->count != 5)
        return sp_lines_fail(lines, "%d fields, expected COLUMN ROW VALUE, or COLUMN ROW VALUE ROW VALUE",
                             lines->count);
    kilter_status status = begin_column(r);
    for (int token = 1; !status && token < lines->count; token += 2)
        status = column_entry(r, token);
    return status;
}

/* Check the name of a set of right-hand sides, ranges or bounds. The name may be left out. Refuse a second
 * set, because it would define a second problem. */
static kilter_status same_set(reader *r, sp_token *set, sp_token name) {
    if (set->size > 0 && !sp_token_same(*set, name))
        return sp_lines_fail(&r->lines, "a second set %s beside %s, expected one set in section %s",
                             sp_show(name).text, sp_show(*set).text, SECTION[r->section]);
    *set = name;
    return KILTER_OK;
}

static kilter_status rhs_entry(reader *r, int token) {
    int at = 0;
    double value = 0;
    kilter_status status = find_row(r, token, &at);
    if (!status)
        status = sp_lines_number(&r->lines, token + 1, &value);
    if (status)
        return status;
    sp_core_row *row = &r->core->row[at];
    if (row->rhs_given && row->rhs == value)
        return KILTER_OK;
    if (row->rhs_given)
        return sp_lines_fail(&r->lines, "row %s has a right-hand side already, expected only one",
                             sp_show(r->lines.token[token]).text);
    row->rhs_given = true;
    row->rhs = value;
    if (at == r->core->objective)
        r->core->constant =
            -value; /* in MPS, the objective's right-hand side is minus the constant of the objective */
    return KILTER_OK;
}

static kilter_status range_entry(reader *r, int token) {
    int at = 0;
    double value = 0;
    kilter_status status = find_row(r, token, &at);
    if (!status)
        status = sp_lines_number(&r->lines, token + 1, &value);
    if (status)
        return status;
    sp_core_row *row = &r->core->row[at];
    if (row->type == 'N')
        return sp_lines_fail(&r->lines, "row %s of type N has no range, expected a row of type E, L or G",
                             sp_show(r->lines.token[token]).text);
    if (row->range_given && row->range == value)
        return KILTER_OK;
    if (row->range_given)
        return sp_lines_fail(&r->lines, "row %s has a range already, expected only one",
                             sp_show(r->lines.token[token]).text);
    row->range_given = true;
    row->range = value;
    return KILTER_OK;
}

static kilter_status vector_line(reader *r, sp_token *set, kilter_status (*entry)(reader *, int)) {
    sp_lines *lines = &r->lines;
    if (lines->count < 2 || lines->count > 5)
        return sp_lines_fail(lines, "%d fields, expected SET ROW VALUE, or SET ROW VALUE ROW VALUE",
                             lines->count);
    int token = lines->count % 2;
    kilter_status status = token ? same_set(r, set, lines->token[0]) : KILTER_OK;
    for (; !status && token < lines->count; token += 2)
        status = entry(r, token);
    return status;
}

typedef enum bound { LO, UP, FX, FR, MI, PL, NO_BOUND } bound;

static kilter_status bound_type(const reader *r, bound *type) {
    static const char *const WORD[] = {"LO", "UP", "FX", "FR", "MI", "PL"};
    for (*type = LO; *type < NO_BOUND; (*type)++)
        if (sp_token_is(r->lines.token[0], WORD[*type]))
            return KILTER_OK;
    return sp_lines_fail(&r->lines, "\"%s\" is not a known type of bound, expected LO, UP, FX, FR, MI or PL",
                         sp_show(r->lines.token[0]).text);
}

static kilter_status set_bounds(reader *r, sp_core_column *column, sp_token name, bound type, double value) {
    bool lower = type == LO || type == FX || type == FR || type == MI;
    bool upper = type == UP || type == FX || type == FR || type == PL;
    double below = type == FR || type == MI ? -INFINITY : value,
           above = type == FR || type == PL ? INFINITY : value;
    if ((lower && column->lower_given && column->lower != below) ||
        (upper && column->upper_given && column->upper != above))
        return sp_lines_fail(&r->lines, "column %s has its %s bound already, expected only one",
                             sp_show(name).text,
                             lower && column->lower_given && column->lower != below ? "lower" : "upper");
    if ((type == LO && value == INFINITY) || (type == UP && value == -INFINITY) ||
        (type == FX && isinf(value)))
        return sp_lines_fail(&r->lines, "this bound leaves column %s no value, expected a finite number",
                             sp_show(name).text);
    if (lower)
        column->lower = below;
    if (upper)
        column->upper = above;
    column->lower_given |= lower;
    column->upper_given |= upper;
    column->bound_line = r->lines.line;
    return KILTER_OK;
}

static kilter_status bound_line(reader *r) {
    sp_lines *lines = &r->lines;
    bound type;
    kilter_status status = bound_type(r, &type);
    if (status)
        return status;
    bool valued = type == LO || type == UP || type == FX;
    if (lines->count < 2 + valued || lines->count > 4)
        return sp_lines_fail(lines, "%d fields, expected TYPE SET COLUMN%s", lines->count,
                             valued ? " VALUE" : "");
    /* bounds of types FR, MI and PL may have a value, which is ignored */
    bool with_set = lines->count > 2 + valued;
    int at = 1 + with_set;
    int column = sp_names_find(&r->core->column_names, lines->token[at]);
    if (column < 0)
        return sp_lines_fail(lines, "there is no column %s, expected one of section COLUMNS",
                             sp_show(lines->token[at]).text);
    double value = 0;
    if (with_set)
        status = same_set(r, &r->core->bound_set, lines->token[1]);
    if (!status && valued)
        status = sp_lines_bound(lines, at + 1, &value);
    if (!status)
        status = set_bounds(r, &r->core->column[column], lines->token[at], type, value);
    return status;
}

static kilter_status data_line(reader *r) {
    switch (r->section) {
    case ROWS:
        return row_line(r);
    case COLUMNS:
        return column_line(r);
    case RHS:
        return vector_line(r, &r->core->rhs_set, rhs_entry);
    case RANGES:
        return vector_line(r, &r->core->range_set, range_entry);
    case BOUNDS:
        return bound_line(r);
    default:
        return sp_lines_fail(&r->lines, "data before a section, expected ROWS (sections begin in column 1)");
    }
}

static kilter_status check_column(const reader *r, int at) {
    const sp_core_column *column = &r->core->column[at];
    sp_shown name = sp_show(r->core->column_names.name[at]);
    if (column->upper < 0 && !column->lower_given)
        return sp_lines_fail_at(&r->lines, column->bound_line,
                                "column %s has a negative upper and no lower bound, which programs that read "
                                "MPS treat differently; expected its lower bound (LO or MI) as well",
                                name.text);
    if (column->lower > column->upper)
        return sp_lines_fail_at(
            &r->lines, column->bound_line,
            "column %s has lower bound %g above upper bound %g, expected at most the upper bound", name.text,
            column->lower, column->upper);
    return KILTER_OK;
}

static kilter_status check_whole(const reader *r) {
    if (r->section != ENDATA)
        return sp_lines_fail(&r->lines, "the file ends without ENDATA, expected the whole file");
    if (r->core->objective < 0)
        return sp_lines_fail(&r->lines, "no row of type N, expected one as the objective");
    kilter_status status = KILTER_OK;
    for (int j = 0; !status && j < r->core->column_names.count; j++)
        status = check_column(r, j);
    return status;
}

kilter_status sp_core_read(const sp_file *file, sp_core *core, kilter_error *error) {
    *core = (sp_core){.objective = -1};
    reader r = {.lines = {.file = file, .error = error}, .core = core};
    bool more = true;
    kilter_status status = sp_lines_next(&r.lines, &more);
    while (!status && more) {
        status = r.lines.header ? open_section(&r) : data_line(&r);
        if (status || r.section == ENDATA)
            break;
        status = sp_lines_next(&r.lines, &more);
    }
    return status ? status : check_whole(&r);
}

void sp_core_free(sp_core *core) {
    sp_names_free(&core->row_names);
    sp_names_free(&core->column_names);
    free(core->row);
    free(core->column);
    free(core->entry);
    *core = (sp_core){0};
}
