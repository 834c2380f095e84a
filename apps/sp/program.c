#include "program.h"

#include <stdlib.h>

static void *array_of(size_t count, size_t size) {
    return calloc(count ? count : 1, size);
}

bool sp_program_make(sp_program *program, int rows, int columns, size_t entries) {
    *program = (sp_program){.rows = rows, .columns = columns};
    size_t m = (size_t)rows, n = (size_t)columns;
    program->matrix.start = array_of(n + 1, sizeof(int));
    program->matrix.row = array_of(entries, sizeof(int));
    program->matrix.value = array_of(entries, sizeof(double));
    program->cost = array_of(n, sizeof(double));
    program->lower = array_of(n, sizeof(double));
    program->upper = array_of(n, sizeof(double));
    program->row_lower = array_of(m, sizeof(double));
    program->row_upper = array_of(m, sizeof(double));
    return program->matrix.start && program->matrix.row && program->matrix.value && program->cost &&
           program->lower && program->upper && program->row_lower && program->row_upper;
}

void sp_program_free(sp_program *program) {
    free(program->matrix.start);
    free(program->matrix.row);
    free(program->matrix.value);
    free(program->cost);
    free(program->lower);
    free(program->upper);
    free(program->row_lower);
    free(program->row_upper);
    *program = (sp_program){0};
}
