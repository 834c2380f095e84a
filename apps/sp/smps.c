/* Make a problem from the three files: split CORE into stages, then add the random numbers. */
#include "smps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smps_parts.h"
#include "support.h"

/* Allocate zeroed memory as calloc() does; an empty array gets some memory, too. */
static void *array_of(size_t count, size_t size) {
    return calloc(count ? count : 1, size);
}

static bool make_layout(const sp_core *core, const sp_time *time, sp_problem *problem, sp_layout *layout) {
    size_t rows = (size_t)core->row_names.count, columns = (size_t)core->column_names.count;
    layout->row = array_of(rows, sizeof *layout->row);
    layout->column = array_of(columns, sizeof *layout->column);
    if (!layout->row || !layout->column)
        return false;
    for (int i = 0; i < core->row_names.count; i++) {
        int stage = core->row[i].type == 'N' ? -1 : i >= time->row;
        layout->row[i] = (sp_place){stage, stage < 0 ? 0 : problem->stage[stage].rows++};
    }
    for (int j = 0; j < core->column_names.count; j++) {
        int stage = j >= time->column;
        layout->column[j] = (sp_place){stage, problem->stage[stage].columns++};
    }
    return true;
}

static bool make_stage(sp_stage *stage) {
    size_t rows = (size_t)stage->rows, columns = (size_t)stage->columns;
    stage->rhs = array_of(rows, sizeof(double));
    stage->below = array_of(rows, sizeof(double));
    stage->above = array_of(rows, sizeof(double));
    stage->row_name = array_of(rows, sizeof(char *));
    stage->cost = array_of(columns, sizeof(double));
    stage->lower = array_of(columns, sizeof(double));
    stage->upper = array_of(columns, sizeof(double));
    stage->column_name = array_of(columns, sizeof(char *));
    return stage->rhs && stage->below && stage->above && stage->row_name && stage->cost && stage->lower &&
           stage->upper && stage->column_name;
}

static void free_stage(sp_stage *stage) {
    free(stage->rhs);
    free(stage->below);
    free(stage->above);
    free(stage->row_name);
    free(stage->cost);
    free(stage->lower);
    free(stage->upper);
    free(stage->column_name);
}

/* Set a row's sides. A range R gives the row a second side. In a row of type E, R is added to the upper side
 * if R > 0, or to the lower side if R < 0. In a row of type L or G, the open side gets the distance |R| from
 * the given side. */
static void fill_row(sp_stage *stage, int at, const sp_core_row *row) {
    double width = fabs(row->range);
    stage->rhs[at] = row->rhs;
    if (row->type == 'L')
        stage->below[at] = row->range_given ? -width : -INFINITY;
    else if (row->type == 'G')
        stage->above[at] = row->range_given ? width : INFINITY;
    else if (row->range < 0)
        stage->below[at] = row->range;
    else
        stage->above[at] = row->range;
}

static char *copy_name(char **to, sp_token name) {
    char *copy = *to;
    memcpy(copy, name.text, name.size);
    copy[name.size] = 0;
    *to += name.size + 1;
    return copy;
}

static bool make_names(const sp_core *core, const sp_layout *layout, sp_problem *problem) {
    size_t bytes = 1;
    for (int i = 0; i < core->row_names.count; i++)
        bytes += core->row_names.name[i].size + 1;
    for (int j = 0; j < core->column_names.count; j++)
        bytes += core->column_names.name[j].size + 1;
    char *to = problem->names = malloc(bytes);
    if (!to)
        return false;
    for (int i = 0; i < core->row_names.count; i++) {
        sp_place place = layout->row[i];
        if (place.stage >= 0)
            problem->stage[place.stage].row_name[place.index] = copy_name(&to, core->row_names.name[i]);
    }
    for (int j = 0; j < core->column_names.count; j++) {
        sp_place place = layout->column[j];
        problem->stage[place.stage].column_name[place.index] = copy_name(&to, core->column_names.name[j]);
    }
    return true;
}

static void fill_stages(const sp_core *core, const sp_layout *layout, sp_problem *problem) {
    problem->constant = core->constant;
    for (int i = 0; i < core->row_names.count; i++)
        if (layout->row[i].stage >= 0)
            fill_row(&problem->stage[layout->row[i].stage], layout->row[i].index, &core->row[i]);
    for (int j = 0; j < core->column_names.count; j++) {
        sp_stage *stage = &problem->stage[layout->column[j].stage];
        int at = layout->column[j].index;
        stage->cost[at] = core->column[j].cost;
        stage->lower[at] = core->column[j].lower;
        stage->upper[at] = core->column[j].upper;
    }
}

static bool make_matrix(sp_matrix *matrix, int columns, size_t entries) {
    matrix->start = array_of((size_t)columns + 1, sizeof(int));
    matrix->row = array_of(entries, sizeof(int));
    matrix->value = array_of(entries, sizeof(double));
    return matrix->start && matrix->row && matrix->value;
}

static void free_matrix(sp_matrix *matrix) {
    free(matrix->start);
    free(matrix->row);
    free(matrix->value);
}

/* Fill a column of the matrices. Columns come in order, so each matrix is filled from front to back. */
static void fill_column(const sp_core *core, const sp_layout *layout, sp_problem *problem, int column,
                        int used[3]) {
    sp_matrix *matrix[3] = {&problem->a, &problem->t, &problem->w};
    sp_place place = layout->column[column];
    size_t end = column + 1 < core->column_names.count ? core->column[column + 1].first : core->entries;
    for (size_t e = core->column[column].first; e < end; e++) {
        sp_place row = layout->row[core->entry[e].row];
        int which = place.stage + row.stage;
        matrix[which]->row[used[which]] = row.index;
        matrix[which]->value[used[which]++] = core->entry[e].value;
    }
    if (place.stage == 0) {
        problem->a.start[place.index + 1] = used[0];
        problem->t.start[place.index + 1] = used[1];
    } else {
        problem->w.start[place.index + 1] = used[2];
    }
}

/* Count the entries of each matrix. Refuse a column of stage 2 with an entry in a row of stage 1, because
 * stage 1 is decided before stage 2. */
static kilter_status count_entries(const sp_file *file, const sp_core *core, const sp_layout *layout,
                                   size_t count[3], kilter_error *error) {
    for (int j = 0; j < core->column_names.count; j++) {
        size_t end = j + 1 < core->column_names.count ? core->column[j + 1].first : core->entries;
        for (size_t e = core->column[j].first; e < end; e++) {
            const sp_core_entry *entry = &core->entry[e];
            int row_stage = layout->row[entry->row].stage, column_stage = layout->column[j].stage;
            if (column_stage > row_stage) {
                sp_lines lines = {.file = file, .error = error};
                return sp_lines_fail_at(&lines, entry->line,
                                        "column %s of stage 2 has an entry in row %s of stage 1, expected "
                                        "that all rows and columns of stage 1 come before those of stage 2",
                                        sp_show(core->column_names.name[j]).text,
                                        sp_show(core->row_names.name[entry->row]).text);
            }
            count[row_stage + column_stage]++;
        }
    }
    return KILTER_OK;
}

static kilter_status make_matrices(const sp_file *file, const sp_core *core, const sp_layout *layout,
                                   sp_problem *problem, kilter_error *error) {
    size_t count[3] = {0};
    kilter_status status = count_entries(file, core, layout, count, error);
    if (status)
        return status;
    if (!make_matrix(&problem->a, problem->stage[0].columns, count[0]) ||
        !make_matrix(&problem->t, problem->stage[0].columns, count[1]) ||
        !make_matrix(&problem->w, problem->stage[1].columns, count[2])) {
        sp_lines lines = {.file = file, .error = error};
        return sp_lines_memory(&lines);
    }
    int used[3] = {0};
    for (int j = 0; j < core->column_names.count; j++)
        fill_column(core, layout, problem, j, used);
    return KILTER_OK;
}

static kilter_status build(const sp_file files[SP_FILES], const sp_core *core, const sp_time *time,
                           sp_layout *layout, sp_problem *problem, kilter_error *error) {
    if (!make_layout(core, time, problem, layout) || !make_stage(&problem->stage[0]) ||
        !make_stage(&problem->stage[1]) || !make_names(core, layout, problem)) {
        sp_lines lines = {.file = &files[SP_CORE], .error = error};
        return sp_lines_memory(&lines);
    }
    fill_stages(core, layout, problem);
    kilter_status status = make_matrices(&files[SP_CORE], core, layout, problem, error);
    if (!status)
        status = sp_stoch_read(&files[SP_STOCH], core, time, layout, problem, error);
    return status;
}

static kilter_status check_size(const sp_file *file, kilter_error *error) {
    if (file->size <= SP_FILE_BYTES_MAX)
        return KILTER_OK;
    return sp_fail(error, KILTER_ERR_INPUT, "%.200s:1: the file has %zu bytes, expected at most %d",
                   file->name, file->size, SP_FILE_BYTES_MAX);
}

kilter_status sp_problem_read(const sp_file files[SP_FILES], sp_problem **problem, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (int i = 0; !status && i < SP_FILES; i++)
        status = check_size(&files[i], error);
    if (status)
        return status;
    sp_problem *made = calloc(1, sizeof *made);
    if (!made)
        return sp_fail(error, KILTER_ERR_MEMORY,
                       "reading %.200s: memory ran out; use a machine with more memory", files[SP_CORE].name);
    sp_core core;
    sp_time time;
    sp_layout layout = {0};
    status = sp_core_read(&files[SP_CORE], &core, error);
    if (!status)
        status = sp_time_read(&files[SP_TIME], &core, &time, error);
    if (!status)
        status = build(files, &core, &time, &layout, made, error);
    free(layout.row);
    free(layout.column);
    sp_core_free(&core);
    if (status)
        sp_problem_free(made);
    else
        *problem = made;
    return status;
}

void sp_problem_free(sp_problem *problem) {
    if (!problem)
        return;
    free_stage(&problem->stage[0]);
    free_stage(&problem->stage[1]);
    free_matrix(&problem->a);
    free_matrix(&problem->t);
    free_matrix(&problem->w);
    free(problem->target);
    free(problem->variable);
    free(problem->outcome);
    free(problem->change);
    free(problem->names);
    free(problem);
}

/* ---- files ---- */

static kilter_status load_failed(const char *path, FILE *from, char *data, kilter_error *error) {
    int reason = errno;
    if (from)
        fclose(from);
    free(data);
    return sp_fail(error, KILTER_ERR_INPUT, "reading %.200s: %s; give the path of a readable file", path,
                   strerror(reason));
}

kilter_status sp_file_load(const char *path, sp_file *file, kilter_error *error) {
    FILE *from = fopen(path, "rb");
    if (!from)
        return load_failed(path, NULL, NULL, error);
    char *data = NULL;
    size_t size = 0, capacity = 0, got;
    do {
        if (!sp_grow(&data, &capacity, size + 65536, 1)) {
            fclose(from);
            free(data);
            return sp_fail(error, KILTER_ERR_MEMORY,
                           "reading %.200s: memory ran out; use a machine with more memory", path);
        }
        got = fread(data + size, 1, capacity - size, from);
        size += got;
        /* read at most one byte too many: this is enough to refuse a file that is too large */
    } while (got > 0 && size <= SP_FILE_BYTES_MAX);
    if (ferror(from))
        return load_failed(path, from, data, error);
    fclose(from);
    *file = (sp_file){path, data, size};
    return KILTER_OK;
}

void sp_file_free(sp_file *file) {
    free((void *)(uintptr_t)file->data);
    *file = (sp_file){0};
}
