#include "extensive.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* The state while a program's arrays are filled from front to back. */
typedef struct builder {
    const sp_problem *problem;
    sp_program *program;
    int scenarios;
    /* values of all random numbers in scenario 0, then in scenario 1, and so on */
    double *values;
    double *weight;               /* weight of each scenario */
    const sp_target **technology; /* pointers to the random numbers that are entries of T */
    /* technologies: length of technology[]; entries: number of entries so far; at: index of the column being
     * filled */
    int technologies, entries, at;
} builder;

static const double *values_of(const builder *b, int scenario) {
    return b->values + (size_t)scenario * (size_t)b->problem->targets;
}

static void put_entry(builder *b, int row, double value) {
    b->program->matrix.row[b->entries] = row;
    b->program->matrix.value[b->entries++] = value;
}

static void put_entries(builder *b, const sp_matrix *matrix, int column, int first_row) {
    for (int at = matrix->start[column]; at < matrix->start[column + 1]; at++)
        put_entry(b, first_row + matrix->row[at], matrix->value[at]);
}

/* Store a random entry of T, the technology matrix. If the column already has an entry in this row, at index
 * `first` or later, replace that entry. Otherwise append one. */
static void put_random_entry(builder *b, int first, int row, double value) {
    for (int at = first; at < b->entries; at++) {
        if (b->program->matrix.row[at] == row) {
            b->program->matrix.value[at] = value;
            return;
        }
    }
    put_entry(b, row, value);
}

static void end_column(builder *b, const sp_stage *stage, int column, double cost) {
    b->program->cost[b->at] = cost;
    b->program->lower[b->at] = stage->lower[column];
    b->program->upper[b->at] = stage->upper[column];
    b->program->matrix.start[++b->at] = b->entries;
}

static void put_first_stage(builder *b) {
    const sp_problem *p = b->problem;
    const sp_stage *one = &p->stage[0], *two = &p->stage[1];
    for (int j = 0; j < one->columns; j++) {
        put_entries(b, &p->a, j, 0);
        for (int i = 0; i < b->scenarios; i++) {
            int first = b->entries, first_row = one->rows + i * two->rows;
            put_entries(b, &p->t, j, first_row);
            for (int t = 0; t < b->technologies; t++)
                if (b->technology[t]->column == j)
                    put_random_entry(b, first, first_row + b->technology[t]->row,
                                     values_of(b, i)[b->technology[t] - p->target]);
        }
        end_column(b, one, j, one->cost[j]);
    }
}

static void put_second_stage(builder *b, int scenario) {
    const sp_problem *p = b->problem;
    const sp_stage *two = &p->stage[1];
    int first = b->at, first_entry = b->entries;
    double weight = b->weight[scenario];
    for (int j = 0; j < two->columns; j++) {
        put_entries(b, &p->w, j, p->stage[0].rows + scenario * two->rows);
        end_column(b, two, j, two->cost[j] * weight);
    }
    for (int t = 0; t < p->targets; t++) {
        double value = values_of(b, scenario)[t];
        if (p->target[t].kind == SP_COST)
            b->program->cost[first + p->target[t].column] = value * weight;
        else if (p->target[t].kind == SP_RECOURSE)
            b->program->matrix.value[first_entry + p->target[t].entry] = value;
    }
}

static void put_rows(const builder *b, const sp_stage *stage, int first, const double *values) {
    double *low = b->program->row_lower + first, *high = b->program->row_upper + first;
    for (int i = 0; i < stage->rows; i++)
        low[i] = stage->rhs[i];
    for (int t = 0; values && t < b->problem->targets; t++)
        if (b->problem->target[t].kind == SP_RHS)
            low[b->problem->target[t].row] = values[t];
    for (int i = 0; i < stage->rows; i++) {
        high[i] = low[i] + stage->above[i];
        low[i] += stage->below[i];
    }
}

static void fill(builder *b) {
    const sp_stage *one = &b->problem->stage[0], *two = &b->problem->stage[1];
    put_first_stage(b);
    put_rows(b, one, 0, NULL);
    for (int i = 0; i < b->scenarios; i++) {
        put_second_stage(b, i);
        put_rows(b, two, one->rows + i * two->rows, values_of(b, i));
    }
}

static kilter_status no_memory(kilter_error *error) {
    return sp_fail(error, KILTER_ERR_MEMORY,
                   "making the deterministic equivalent: memory ran out; sample fewer scenarios");
}

static bool make_builder(builder *b, const sp_problem *problem, uint64_t scenarios) {
    *b = (builder){.problem = problem, .scenarios = (int)scenarios};
    b->values = calloc((size_t)scenarios * (size_t)problem->targets + 1, sizeof *b->values);
    b->technology = calloc((size_t)problem->targets + 1, sizeof *b->technology);
    for (int t = 0; b->technology && t < problem->targets; t++)
        if (problem->target[t].kind == SP_TECHNOLOGY)
            b->technology[b->technologies++] = &problem->target[t];
    b->weight = calloc((size_t)scenarios + 1, sizeof *b->weight);
    return b->values && b->technology && b->weight;
}

static void free_builder(builder *b) {
    free(b->values);
    free(b->technology);
    free(b->weight);
}

/* Make the linear program from the values of all random numbers. */
static kilter_status build(builder *b, sp_program *program, kilter_error *error) {
    const sp_problem *p = b->problem;
    const sp_stage *one = &p->stage[0], *two = &p->stage[1];
    double n = b->scenarios;
    double entries = p->a.start[one->columns] +
                     n * ((double)p->t.start[one->columns] + b->technologies + p->w.start[two->columns]);
    if (fmax(entries, fmax(one->columns + n * two->columns, one->rows + n * two->rows)) > INT_MAX - 1)
        return sp_fail(
            error, KILTER_ERR_RANGE,
            "making the deterministic equivalent of %d scenarios: it has %.3g entries, but CLP can count "
            "only to %d; sample fewer scenarios",
            b->scenarios, entries, INT_MAX);
    if (!sp_program_make(program, one->rows + b->scenarios * two->rows,
                         one->columns + b->scenarios * two->columns, (size_t)entries)) {
        sp_program_free(program);
        return no_memory(error);
    }
    b->program = program;
    fill(b);
    return KILTER_OK;
}

/* Make the linear program of the sample's scenarios first … first + count − 1. */
static kilter_status build_some(const sp_problem *problem, const sp_sampling *sampling, uint64_t first,
                                uint64_t count, sp_program *program, kilter_error *error) {
    if (count > INT_MAX / 2)
        return sp_fail(
            error, KILTER_ERR_RANGE,
            "making the deterministic equivalent of %llu scenarios: CLP can count only to %d rows; sample "
            "fewer scenarios",
            (unsigned long long)count, INT_MAX);
    builder b;
    size_t *outcome = calloc((size_t)problem->variables + 1, sizeof *outcome);
    kilter_status status = KILTER_OK;
    if (make_builder(&b, problem, count) && outcome) {
        for (uint64_t i = 0; i < count; i++) {
            sp_scenario(problem, sampling, first + i, outcome);
            b.weight[i] = sp_scenario_weight(problem, sampling, outcome);
            sp_target_values(problem, outcome, b.values + i * (size_t)problem->targets);
        }
        status = build(&b, program, error);
    } else {
        status = no_memory(error);
    }
    free_builder(&b);
    free(outcome);
    return status;
}

kilter_status sp_extensive(const sp_problem *problem, const sp_sampling *sampling, sp_program *program,
                           kilter_error *error) {
    return build_some(problem, sampling, 0, sampling->scenarios, program, error);
}

kilter_status sp_extensive_one(const sp_problem *problem, const sp_sampling *sampling, uint64_t scenario,
                               const double *x, sp_program *program, kilter_error *error) {
    kilter_status status = build_some(problem, sampling, scenario, 1, program, error);
    for (int j = 0; !status && j < problem->stage[0].columns; j++)
        program->lower[j] = program->upper[j] = x[j];
    return status;
}

kilter_status sp_extensive_mean(const sp_problem *problem, sp_program *program, kilter_error *error) {
    builder b;
    kilter_status status;
    if (make_builder(&b, problem, 1)) {
        sp_target_means(problem, b.values);
        b.weight[0] = 1;
        status = build(&b, program, error);
    } else {
        status = no_memory(error);
    }
    free_builder(&b);
    return status;
}

kilter_status sp_first_stage(const sp_problem *problem, sp_program *program, kilter_error *error) {
    const sp_stage *one = &problem->stage[0];
    builder b;
    bool made = make_builder(&b, problem, 0);
    made = sp_program_make(program, one->rows, one->columns, (size_t)problem->a.start[one->columns]) && made;
    if (made) {
        b.program = program;
        fill(&b);
    } else {
        sp_program_free(program);
    }
    free_builder(&b);
    return made ? KILTER_OK : no_memory(error);
}

/* ---- MPS ---- */

/* The numbers of underscores that make names unique. In a name of stage 2, more underscores come before the
 * scenario number than any name of stage 1 has before its last digits. */
typedef struct namer {
    const sp_problem *problem;
    /* between: number of underscores between a name and its scenario number; behind: number of underscores
     * after the objective's name */
    int between, behind;
} namer;

static const char OBJECTIVE[] = "TOTAL_COST";

/* Return the number of underscores before the number at the end of the text; for example, 2 for "A__12".
 * Return 0 if the text does not end with a number. */
static int underscores_before_number(const char *text) {
    size_t end = strlen(text), at;
    while (end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9')
        end--;
    for (at = end; at > 0 && text[at - 1] == '_'; at--)
        ;
    return text[end] ? (int)(end - at) : 0;
}

static int more_than_any(char *const *names, int count, int least) {
    for (int i = 0; i < count; i++)
        if (underscores_before_number(names[i]) >= least)
            least = underscores_before_number(names[i]) + 1;
    return least;
}

static namer namer_of(const sp_problem *problem) {
    const sp_stage *one = &problem->stage[0];
    namer n = {.problem = problem};
    n.between = more_than_any(one->row_name, one->rows, 1);
    n.between = more_than_any(one->column_name, one->columns, n.between);
    for (int i = 0; i < one->rows; i++) {
        size_t size = sizeof OBJECTIVE - 1;
        if (strncmp(one->row_name[i], OBJECTIVE, size) == 0) {
            int behind = (int)strspn(one->row_name[i] + size, "_");
            n.behind = behind >= n.behind ? behind + 1 : n.behind;
        }
    }
    return n;
}

static void put_underscores(FILE *out, int count) {
    while (count-- > 0)
        fputc('_', out);
}

static void put_objective(FILE *out, const namer *n) {
    fputs(OBJECTIVE, out);
    put_underscores(out, n->behind);
}

/* Write the name of a row or column of stage 2 for one scenario. */
static void put_repeated(FILE *out, const namer *n, const char *name, int scenario) {
    fputs(name, out);
    put_underscores(out, n->between);
    fprintf(out, "%d", scenario);
}

static void put_row(FILE *out, const namer *n, int i) {
    const sp_stage *one = &n->problem->stage[0], *two = &n->problem->stage[1];
    int at = i - one->rows;
    if (at < 0)
        fputs(one->row_name[i], out);
    else
        put_repeated(out, n, two->row_name[at % two->rows], at / two->rows);
}

static void put_column(FILE *out, const namer *n, int j) {
    const sp_stage *one = &n->problem->stage[0], *two = &n->problem->stage[1];
    int at = j - one->columns;
    if (at < 0)
        fputs(one->column_name[j], out);
    else
        put_repeated(out, n, two->column_name[at % two->columns], at / two->columns);
}

static char row_type(const sp_program *program, int i) {
    double low = program->row_lower[i], high = program->row_upper[i];
    /* the last 'G' is for a row with two different finite sides */
    return low == high ? 'E' : high == INFINITY ? 'G' : low == -INFINITY ? 'L' : 'G';
}

static void write_rows(FILE *out, const namer *n, const sp_program *program) {
    fprintf(out, "ROWS\n N ");
    put_objective(out, n);
    for (int i = 0; i < program->rows; i++) {
        fprintf(out, "\n %c ", row_type(program, i));
        put_row(out, n, i);
    }
}

static void write_columns(FILE *out, const namer *n, const sp_program *program) {
    fprintf(out, "\nCOLUMNS\n");
    for (int j = 0; j < program->columns; j++) {
        fputc(' ', out);
        put_column(out, n, j);
        fputc(' ', out);
        put_objective(out, n);
        fprintf(out, " %.17g\n", program->cost[j]);
        for (int at = program->matrix.start[j]; at < program->matrix.start[j + 1]; at++) {
            fputc(' ', out);
            put_column(out, n, j);
            fputc(' ', out);
            put_row(out, n, program->matrix.row[at]);
            fprintf(out, " %.17g\n", program->matrix.value[at]);
        }
    }
}

static void write_of_row(FILE *out, const char *set, const namer *n, int i, double value) {
    fprintf(out, " %s ", set);
    put_row(out, n, i);
    fprintf(out, " %.17g\n", value);
}

/* Write the section RHS. In MPS, the objective's right-hand side is minus its constant. */
static void write_right_hand_sides(FILE *out, const namer *n, const sp_program *program) {
    fprintf(out, "RHS\n RHS ");
    put_objective(out, n);
    fprintf(out, " %.17g\n", -n->problem->constant);
    for (int i = 0; i < program->rows; i++)
        write_of_row(out, "RHS", n, i,
                     row_type(program, i) == 'L' ? program->row_upper[i] : program->row_lower[i]);
    fprintf(out, "RANGES\n");
    for (int i = 0; i < program->rows; i++)
        if (isfinite(program->row_lower[i]) && isfinite(program->row_upper[i]) && row_type(program, i) == 'G')
            write_of_row(out, "RANGE", n, i, program->row_upper[i] - program->row_lower[i]);
}

static void write_bound(FILE *out, const char *type, const namer *n, int j) {
    fprintf(out, " %s BOUND ", type);
    put_column(out, n, j);
}

static void write_bounds(FILE *out, const namer *n, const sp_program *program) {
    fprintf(out, "BOUNDS\n");
    for (int j = 0; j < program->columns; j++) {
        if (program->lower[j] == program->upper[j]) {
            write_bound(out, "FX", n, j);
            fprintf(out, " %.17g\n", program->upper[j]);
            continue;
        }
        if (program->lower[j] == -INFINITY) {
            write_bound(out, "MI", n, j);
            fputc('\n', out);
        } else if (program->lower[j] != 0) {
            write_bound(out, "LO", n, j);
            fprintf(out, " %.17g\n", program->lower[j]);
        }
        if (program->upper[j] != INFINITY) {
            write_bound(out, "UP", n, j);
            fprintf(out, " %.17g\n", program->upper[j]);
        }
    }
}

void sp_extensive_write(FILE *out, const sp_problem *problem, const sp_program *program) {
    namer n = namer_of(problem);
    fprintf(
        out,
        "NAME SAMPLE FREE\n"); /* without FREE, CLP guesses the format, and reads "BOUND X1" as one name */
    write_rows(out, &n, program);
    write_columns(out, &n, program);
    write_right_hand_sides(out, &n, program);
    write_bounds(out, &n, program);
    fprintf(out, "ENDATA\n");
}
