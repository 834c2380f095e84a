/* Solve random two-stage problems, and compare the answers of three solvers. The first is kilter-sp. For the
 * second, GLPK, this test builds the deterministic equivalent itself, without kilter-sp's reader. The third,
 * CLP alone, reads and solves the MPS file that kilter-sp writes.
 *
 *   sp_chance_test [PROBLEMS [FIRST_SEED]] */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glpk.h>

#include "players.h"
#include "read_elsewhere.h"

enum { ROWS = 4, COLUMNS = 5, VARIABLES = 3, OUTCOMES = 3, CHANGES = 3, SCENARIOS = 27 };

typedef enum format { INDEP, BLOCKS, WHOLE_SCENARIOS, FORMATS } format;
typedef enum what { RHS, TECHNOLOGY, RECOURSE, COST, WHATS } what;

typedef struct target {
    what kind;
    /* column: a column of stage 1 for kind TECHNOLOGY, of stage 2 for kinds RECOURSE and COST */
    int row, column;
} target;

typedef struct variable {
    int targets, outcomes;
    target target[CHANGES];
    double probability[OUTCOMES], value[OUTCOMES][CHANGES];
} variable;

typedef struct model {
    uint64_t seed, drawn;
    format format;
    int rows[2], columns[2], variables;
    char kind[2][ROWS]; /* L, G or E */
    double cost[2][COLUMNS], lower[2][COLUMNS], upper[2][COLUMNS], rhs[2][ROWS];
    double a[ROWS][COLUMNS], t[ROWS][COLUMNS], w[ROWS][COLUMNS];
    variable variable[VARIABLES];
} model;

static int below(model *m, int limit) {
    return (int)(sp_mix64(m->seed * 1000003 + m->drawn++) % (uint64_t)limit);
}

/* Draw a random multiple of 0.25. */
static double number(model *m, int most) {
    return 0.25 * (below(m, 8 * most + 1) - 4 * most);
}

/* --- drawing a model --- */

static void draw_matrix(model *m, double matrix[ROWS][COLUMNS], int rows, int columns) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            matrix[i][j] = below(m, 3) > 0 ? number(m, 3) : 0;
}

static void draw_stage(model *m, int stage) {
    m->rows[stage] = stage == 0 && below(m, 5) == 0 ? 0 : 1 + below(m, ROWS);
    m->columns[stage] = 1 + below(m, COLUMNS);
    bool friendly = below(m, 3) > 0; /* costs that are not negative keep most problems bounded */
    for (int i = 0; i < m->rows[stage]; i++) {
        m->kind[stage][i] = "LGE"[below(m, 3)];
        m->rhs[stage][i] = number(m, 5);
    }
    for (int j = 0; j < m->columns[stage]; j++) {
        int bounds = below(m, 5);
        m->cost[stage][j] = friendly ? fabs(number(m, 4)) : number(m, 4);
        m->lower[stage][j] = bounds == 0 ? -INFINITY : bounds == 1 ? -2 : 0;
        m->upper[stage][j] = bounds <= 2 && bounds > 0 ? 1 + below(m, 6) : INFINITY;
    }
}

/* In two of three models, add columns to stage 2 that allow every row to be met. */
static void draw_recourse(model *m) {
    if (below(m, 3) == 0 || m->columns[1] < 2)
        return;
    for (int i = 0; i < m->rows[1]; i++) {
        m->w[i][0] = 1 + below(m, 2);
        m->w[i][1] = -1 - below(m, 2);
    }
    for (int j = 0; j < 2; j++) {
        m->lower[1][j] = 0;
        m->upper[1][j] = INFINITY;
        m->cost[1][j] = 3 + fabs(number(m, 4));
    }
}

static target draw_target(model *m) {
    for (;;) {
        what kind = (what)below(m, WHATS);
        target t = {kind, below(m, m->rows[1]), below(m, m->columns[kind == RECOURSE || kind == COST])};
        if (kind == RHS || kind == RECOURSE || (kind == COST && m->cost[1][t.column] != 0) ||
            (kind == TECHNOLOGY && m->t[t.row][t.column] != 0))
            return t;
    }
}

static bool is_same(target a, target b) {
    return a.kind == b.kind && (a.kind == COST || a.row == b.row) && (a.kind == RHS || a.column == b.column);
}

static bool is_taken(const model *m, target t) {
    for (int k = 0; k < m->variables; k++)
        for (int c = 0; c < m->variable[k].targets; c++)
            if (is_same(m->variable[k].target[c], t))
                return true;
    return false;
}

static void draw_variable(model *m) {
    static const double PARTS[OUTCOMES][OUTCOMES] = {{1}, {0.25, 0.75}, {0.5, 0.25, 0.25}};
    variable *v = &m->variable[m->variables++];
    int wanted = m->format == INDEP ? 1 : 1 + below(m, CHANGES);
    *v = (variable){.outcomes = 2 + below(m, OUTCOMES - 1)};
    for (int tries = 0; v->targets < wanted && tries < 20; tries++) {
        target t = draw_target(m);
        if (!is_taken(m, t))
            v->target[v->targets++] = t;
    }
    if (v->targets == 0)
        m->variables--;
    for (int o = 0; o < v->outcomes; o++) {
        v->probability[o] = PARTS[v->outcomes - 1][o];
        for (int c = 0; c < v->targets; c++)
            v->value[o][c] = number(m, 4);
    }
}

static model draw_model(uint64_t seed) {
    model m = {.seed = seed};
    m.format = (format)below(&m, FORMATS);
    draw_stage(&m, 0);
    draw_stage(&m, 1);
    draw_matrix(&m, m.a, m.rows[0], m.columns[0]);
    draw_matrix(&m, m.t, m.rows[1], m.columns[0]);
    draw_matrix(&m, m.w, m.rows[1], m.columns[1]);
    draw_recourse(&m);
    int variables = m.format == WHOLE_SCENARIOS ? 1 : 1 + below(&m, VARIABLES);
    for (int k = 0; k < variables; k++)
        draw_variable(&m);
    return m;
}

/* --- writing the model as SMPS files --- */

static void write_columns(FILE *out, const model *m) {
    for (int j = 0; j < m->columns[0]; j++) {
        fprintf(out, " X%d COST %.17g\n", j, m->cost[0][j]);
        for (int i = 0; i < m->rows[0]; i++)
            if (m->a[i][j] != 0)
                fprintf(out, " X%d A%d %.17g\n", j, i, m->a[i][j]);
        for (int i = 0; i < m->rows[1]; i++)
            if (m->t[i][j] != 0)
                fprintf(out, " X%d B%d %.17g\n", j, i, m->t[i][j]);
    }
    for (int j = 0; j < m->columns[1]; j++) {
        fprintf(out, " Y%d COST %.17g\n", j, m->cost[1][j]);
        for (int i = 0; i < m->rows[1]; i++)
            if (m->w[i][j] != 0)
                fprintf(out, " Y%d B%d %.17g\n", j, i, m->w[i][j]);
    }
}

static void write_bounds(FILE *out, const model *m) {
    for (int stage = 0; stage < 2; stage++)
        for (int j = 0; j < m->columns[stage]; j++) {
            double low = m->lower[stage][j], high = m->upper[stage][j];
            if (isinf(low) && isinf(high))
                fprintf(out, " FR B %c%d\n", "XY"[stage], j);
            else if (low != 0)
                fprintf(out, " LO B %c%d %.17g\n", "XY"[stage], j, low);
            if (!isinf(high))
                fprintf(out, " UP B %c%d %.17g\n", "XY"[stage], j, high);
        }
}

static void write_core(FILE *out, const model *m) {
    fprintf(out, "ROWS\n N COST\n");
    for (int stage = 0; stage < 2; stage++)
        for (int i = 0; i < m->rows[stage]; i++)
            fprintf(out, " %c %c%d\n", m->kind[stage][i], "AB"[stage], i);
    fprintf(out, "COLUMNS\n");
    write_columns(out, m);
    fprintf(out, "RHS\n");
    for (int stage = 0; stage < 2; stage++)
        for (int i = 0; i < m->rows[stage]; i++)
            fprintf(out, " R %c%d %.17g\n", "AB"[stage], i, m -> rhs[stage][i]);
    fprintf(out, "BOUNDS\n");
    write_bounds(out, m);
    fprintf(out, "ENDATA\n");
}

static void write_target(FILE *out, target t) {
    if (t.kind == RHS)
        fprintf(out, " R B%d", t.row);
    else if (t.kind == COST)
        fprintf(out, " Y%d COST", t.column);
    else
        fprintf(out, " %c%d B%d", t.kind == RECOURSE ? 'Y' : 'X', t.column, t.row);
}

static void write_outcome(FILE *out, const model *m, int k, int o) {
    const variable *v = &m->variable[k];
    if (m->format == BLOCKS)
        fprintf(out, " BL BLOCK%d TWO %.17g\n", k, v->probability[o]);
    else if (m->format == WHOLE_SCENARIOS)
        fprintf(out, " SC S%d ROOT %.17g TWO\n", o, v->probability[o]);
    for (int c = 0; c < v->targets; c++) {
        write_target(out, v->target[c]);
        fprintf(out, " %.17g", v->value[o][c]);
        if (m->format == INDEP)
            fprintf(out, " %.17g", v->probability[o]);
        fprintf(out, "\n");
    }
}

static void write_stoch(FILE *out, const model *m) {
    static const char *const SECTION[FORMATS] = {"INDEP", "BLOCKS", "SCENARIOS"};
    fprintf(out, "STOCH\n%s DISCRETE\n", SECTION[m->format]);
    for (int k = 0; k < m->variables; k++)
        for (int o = 0; o < m->variable[k].outcomes; o++)
            write_outcome(out, m, k, o);
    fprintf(out, "ENDATA\n");
}

/* Return the first row of stage 1. Without rows, stage 1 may begin at the objective or at stage 2. */
static const char *first_row(const model *m) {
    return m->rows[0] > 0 ? "A0" : m->seed % 2 ? "COST" : "B0";
}

static sp_problem *as_problem(const model *m) {
    static char core[1 << 14], time[200], stoch[1 << 13];
    FILE *out = fmemopen(core, sizeof core, "w");
    write_core(out, m);
    fclose(out);
    snprintf(time, sizeof time, "PERIODS\n X0 %s ONE\n Y0 B0 TWO\nENDATA\n", first_row(m));
    out = fmemopen(stoch, sizeof stoch, "w");
    write_stoch(out, m);
    fclose(out);
    if (getenv("SP_SHOW"))
        printf("%s%s%s", core, time, stoch);
    return read_texts(core, time, stoch);
}

/* --- the model as one linear program for GLPK --- */

/* Copy the model with the values of scenario s, the s-th combination of outcomes. Return the scenario's
 * probability. */
static double scenario_of(const model *m, int s, model *here) {
    double probability = 1;
    *here = *m;
    for (int k = 0; k < m->variables; k++) {
        const variable *v = &m->variable[k];
        int o = s % v->outcomes;
        s /= v->outcomes;
        probability *= v->probability[o];
        for (int c = 0; c < v->targets; c++) {
            target t = v->target[c];
            double *place = t.kind == RHS        ? &here->rhs[1][t.row]
                            : t.kind == COST     ? &here->cost[1][t.column]
                            : t.kind == RECOURSE ? &here->w[t.row][t.column]
                                                 : &here->t[t.row][t.column];
            *place = v->value[o][c];
        }
    }
    return probability;
}

static int scenarios_of(const model *m) {
    int count = 1;
    for (int k = 0; k < m->variables; k++)
        count *= m->variable[k].outcomes;
    return count;
}

static int glpk_bounds(double low, double high) {
    return isinf(low) && isinf(high) ? GLP_FR
           : isinf(low)              ? GLP_UP
           : isinf(high)             ? GLP_LO
           : low == high             ? GLP_FX
                                     : GLP_DB;
}

static int add_columns(glp_prob *lp, const model *m, int stage, double weight) {
    int first = glp_add_cols(lp, m->columns[stage]);
    for (int j = 0; j < m->columns[stage]; j++) {
        double low = m->lower[stage][j], high = m->upper[stage][j];
        glp_set_col_bnds(lp, first + j, glpk_bounds(low, high), low, high);
        glp_set_obj_coef(lp, first + j, weight * m->cost[stage][j]);
    }
    return first;
}

/* Add the rows of a stage. They have entries in the columns from number `x` on. If `y` is not 0, they also
 * have entries in the columns from number `y` on. */
static void add_rows(glp_prob *lp, const model *m, int stage, int x, int y) {
    if (m->rows[stage] == 0)
        return;
    int first = glp_add_rows(lp, m->rows[stage]);
    for (int i = 0; i < m->rows[stage]; i++) {
        int index[2 * COLUMNS + 1], count = 0;
        double value[2 * COLUMNS + 1], rhs = m->rhs[stage][i];
        for (int j = 0; j < m->columns[0]; j++) {
            index[++count] = x + j;
            value[count] = stage == 0 ? m->a[i][j] : m->t[i][j];
        }
        for (int j = 0; y > 0 && j < m->columns[1]; j++) {
            index[++count] = y + j;
            value[count] = m->w[i][j];
        }
        glp_set_mat_row(lp, first + i, count, index, value);
        glp_set_row_bnds(lp, first + i,
                         m->kind[stage][i] == 'L'   ? GLP_UP
                         : m->kind[stage][i] == 'G' ? GLP_LO
                                                    : GLP_FX,
                         rhs, rhs);
    }
}

/* Solve with GLPK. Return GLP_OPT and set *cost, or return GLP_NOFEAS or GLP_UNBND. */
static int by_glpk(const model *m, double *cost) {
    glp_prob *lp = glp_create_prob();
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    int x = add_columns(lp, m, 0, 1);
    add_rows(lp, m, 0, x, 0);
    for (int s = 0; s < scenarios_of(m); s++) {
        model here;
        double probability = scenario_of(m, s, &here);
        int y = add_columns(lp, &here, 1, probability);
        add_rows(lp, &here, 1, x, y);
    }
    glp_simplex(lp, &options);
    if (glp_get_status(lp) == GLP_UNDEF || glp_get_status(lp) == GLP_INFEAS || glp_get_status(lp) == GLP_FEAS)
        glp_exact(lp, &options);
    int status = glp_get_status(lp);
    *cost = glp_get_obj_val(lp);
    glp_delete_prob(lp);
    return status;
}

/* --- comparing the answers of all solvers --- */

typedef struct answer {
    kilter_status status;
    double cost;
    kilter_error error;
} answer;

static answer decomposed(const sp_problem *problem, int scenarios, bool remember) {
    answer a = {.error = {.text = ""}};
    sp_solution solution = {0};
    players p = {.problem = problem,
                 .sampling = {SP_ALL, 1, (uint64_t)scenarios},
                 .clusters = scenarios < 3 ? scenarios : 3,
                 .remember = remember};
    a.status = solve_as(&p, 1e-9, NULL, &solution, &a.error);
    if (a.status == KILTER_OK) {
        a.cost = solution.progress.upper;
        sp_solution_free(&solution);
    }
    return a;
}

static answer at_once(const sp_problem *problem, int scenarios) {
    answer a = {.error = {.text = ""}};
    sp_solution solution = {0};
    sp_sampling sampling = {SP_ALL, 1, (uint64_t)scenarios};
    a.status = sp_solve_extensive(problem, &sampling, 1e-6, &solution, &a.error);
    if (a.status == KILTER_OK) {
        a.cost = solution.progress.upper;
        sp_solution_free(&solution);
    }
    return a;
}

/* Solve the MPS file with CLP. Use CLP's answer only if the problem has an optimum, because CLP alone
 * calls some unbounded problems optimal. */
static answer as_written(const sp_problem *problem, int scenarios) {
    sp_sampling sampling = {SP_ALL, 1, (uint64_t)scenarios};
    sp_program program;
    assert_int_equal(sp_extensive(problem, &sampling, &program, NULL), KILTER_OK);
    Clp_Simplex *model = read_elsewhere(problem, &program);
    sp_program_free(&program);
    Clp_initialSolve(model);
    answer a = {.status = Clp_status(model) == 0 ? KILTER_OK : KILTER_ERR_TASK,
                .cost = Clp_objectiveValue(model),
                .error = {.text = ""}};
    Clp_deleteModel(model);
    return a;
}

/* Return whether an answer agrees with GLPK's answer. If there is no optimum, kilter-sp may say infeasible or
 * unbounded, because one scenario may be infeasible and another unbounded. */
static bool is_right(const answer *a, int status, double cost) {
    if (status == GLP_OPT)
        return a->status == KILTER_OK && fabs(a->cost - cost) <= 1e-6 * (1 + fabs(cost));
    return a->status == KILTER_ERR_TASK &&
           (strstr(a->error.text, "infeasible") || strstr(a->error.text, "unbounded"));
}

static bool check(uint64_t seed, int counts[3]) {
    static const char *const WAY[] = {"decomposed", "decomposed, with bases kept", "at once",
                                      "written as MPS"};
    model m = draw_model(seed);
    if (m.variables == 0)
        return true;
    double cost;
    int status = by_glpk(&m, &cost), scenarios = scenarios_of(&m);
    counts[status == GLP_OPT ? 0 : status == GLP_NOFEAS ? 1 : 2]++;
    sp_problem *problem = as_problem(&m);
    int ways = status == GLP_OPT ? 4 : 3;
    answer answers[] = {decomposed(problem, scenarios, false), decomposed(problem, scenarios, true),
                        at_once(problem, scenarios), as_written(problem, scenarios)};
    bool right = true;
    for (int i = 0; i < ways; i++)
        if (!is_right(&answers[i], status, cost)) {
            printf("seed %llu, %s: %.12g (%s), GLPK: %s %.12g\n", (unsigned long long)seed, WAY[i],
                   answers[i].cost, answers[i].error.text,
                   status == GLP_OPT      ? "optimal"
                   : status == GLP_NOFEAS ? "infeasible"
                                          : "unbounded",
                   cost);
            right = false;
        }
    sp_problem_free(problem);
    return right;
}

static uint64_t problems = 1000, first_seed = 1;

static void answers_are_those_of_another_solver(void **state) {
    (void)state;
    int counts[3] = {0}, wrong = 0;
    for (uint64_t seed = first_seed; seed < first_seed + problems; seed++)
        wrong += !check(seed, counts);
    printf("%d optimal, %d infeasible, %d unbounded; %d answers differ from GLPK's\n", counts[0], counts[1],
           counts[2], wrong);
    assert_int_equal(wrong, 0);
    if (problems >= 100) /* the drawn problems include optimal, infeasible and unbounded ones */
        for (int i = 0; i < 3; i++)
            assert_true(counts[i] > 0);
}

/* This problem is unbounded, but the master's solver calls a decision of 1e9 optimal. */
static void a_decision_that_runs_away_is_no_optimum(void **state) {
    (void)state;
    enum { UNBOUNDED_SEED = 508157 };
    int counts[3] = {0};
    assert_true(check(UNBOUNDED_SEED, counts));
    assert_int_equal(counts[2], 1);
}

int main(int argc, char **argv) {
    problems = argc > 1 ? strtoull(argv[1], NULL, 10) : problems;
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : first_seed;
    glp_term_out(GLP_OFF);
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_are_those_of_another_solver),
                                       cmocka_unit_test(a_decision_that_runs_away_is_no_optimum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
