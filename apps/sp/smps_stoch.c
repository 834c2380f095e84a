/* Read the STOCH file: sections INDEP, BLOCKS and SCENARIOS, all of type DISCRETE. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "smps_parts.h"
#include "support.h"

typedef enum section { NONE, INDEP, BLOCKS, SCENARIOS } section;

/* An outcome as given in the file, without inherited values. */
typedef struct raw_outcome {
    double probability;
    size_t first, end; /* the outcome has the values own[first … end) of the reader */
    /* index of the outcome that gives the values which this outcome does not set; if this is the outcome's
     * own index, CORE gives them */
    size_t parent;
    uint64_t line;
} raw_outcome;

typedef struct reader {
    sp_lines lines;
    const sp_core *core;
    const sp_time *time;
    const sp_layout *layout;
    sp_problem *problem;
    section section;
    bool titled, ended;
    /* true: the section has no variable yet, so its first line begins a variable and does not continue a
     * variable of the previous section */
    bool fresh;

    size_t target_capacity, variable_capacity, change_capacity, changes;
    /* last_outcome[target]: 1 + the index of the last outcome that set the random number `target` */
    size_t *last_outcome;
    size_t last_capacity;
    int *slot; /* hash table of random numbers: each used slot has an index in problem->target, plus 1 */
    size_t slots;

    raw_outcome *raw;
    size_t raw_capacity, raws;
    sp_change *own;
    size_t own_capacity, owns;
    sp_names blocks, scenarios;
    size_t first_scenario;
    /* where[target]: 1 + the index of the target's value in problem->change; 0: no value yet */
    size_t *where;
} reader;

/* ---- targets ---- */

static uint64_t key_of(sp_kind kind, int row, int column) {
    return sp_mix64(sp_mix64((uint64_t)kind << 32 | (uint32_t)row) ^ (uint32_t)column);
}

static size_t target_slot(const reader *r, sp_kind kind, int row, int column) {
    size_t mask = r->slots - 1, at = (size_t)key_of(kind, row, column) & mask;
    for (; r->slot[at]; at = (at + 1) & mask) {
        const sp_target *target = &r->problem->target[r->slot[at] - 1];
        if (target->kind == kind && target->row == row && target->column == column)
            break;
    }
    return at;
}

static bool make_slots(reader *r) {
    if ((size_t)r->problem->targets * 2 < r->slots)
        return true;
    size_t slots = r->slots ? r->slots * 2 : 64;
    int *slot = calloc(slots, sizeof *slot);
    if (!slot)
        return false;
    free(r->slot);
    r->slot = slot;
    r->slots = slots;
    for (int i = 0; i < r->problem->targets; i++) {
        const sp_target *target = &r->problem->target[i];
        slot[target_slot(r, target->kind, target->row, target->column)] = i + 1;
    }
    return true;
}

static double core_value(const sp_problem *problem, const sp_target *target) {
    switch (target->kind) {
    case SP_RHS:
        return problem->stage[1].rhs[target->row];
    case SP_COST:
        return problem->stage[1].cost[target->column];
    default:
        return 0; /* find_entries() sets the index of the entry in the matrix later */
    }
}

/* Find the matrix entries of all random numbers of a kind, in one pass over the matrix. */
static void find_entries(const reader *r, sp_kind kind, const sp_matrix *matrix, int columns) {
    for (int j = 0; j < columns; j++) {
        for (int at = matrix->start[j]; at < matrix->start[j + 1]; at++) {
            int found = r->slot[target_slot(r, kind, matrix->row[at], j)];
            if (!found)
                continue;
            r->problem->target[found - 1].core = matrix->value[at];
            r->problem->target[found - 1].entry = at;
        }
    }
}

static bool lacks_place(const sp_target *target) {
    return target->kind == SP_RECOURSE && target->entry < 0;
}

/* Move the entries of W so that column j has room for more[j] further entries. Afterwards more[j] is the
 * index where this room begins. */
static void move_apart(sp_matrix *w, int columns, int *more, int added) {
    for (int j = columns - 1, end = w->start[columns]; added > 0; j--) {
        int begin = w->start[j], count = end - begin;
        w->start[j + 1] = end + added;
        added -= more[j];
        more[j] = end + added;
        memmove(w->row + begin + added, w->row + begin, (size_t)count * sizeof *w->row);
        memmove(w->value + begin + added, w->value + begin, (size_t)count * sizeof *w->value);
        end = begin;
    }
}

/* Add entries to W for random numbers that have no entry in CORE. The caller passes `more` with a zero for
 * each column of stage 2. */
static bool add_places(sp_problem *problem, int *more) {
    sp_matrix *w = &problem->w;
    int columns = problem->stage[1].columns, added = 0;
    for (int t = 0; t < problem->targets; t++)
        if (lacks_place(&problem->target[t])) {
            more[problem->target[t].column]++;
            added++;
        }
    size_t entries = (size_t)w->start[columns], capacity[2] = {entries, entries};
    if (!sp_grow(&w->row, &capacity[0], entries + (size_t)added, sizeof *w->row) ||
        !sp_grow(&w->value, &capacity[1], entries + (size_t)added, sizeof *w->value))
        return false;
    move_apart(w, columns, more, added);
    for (int t = 0; t < problem->targets; t++)
        if (lacks_place(&problem->target[t])) {
            int at = more[problem->target[t].column]++;
            w->row[at] = problem->target[t].row;
            w->value[at] = 0;
        }
    return true;
}

/* Find the entries of all random numbers in T and W. If CORE leaves out such an entry of W, add it. */
static kilter_status place_entries(reader *r) {
    sp_problem *problem = r->problem;
    int columns = problem->stage[1].columns;
    if (r->slots == 0) /* the hash table has no slots if nothing is random */
        return KILTER_OK;
    find_entries(r, SP_TECHNOLOGY, &problem->t, problem->stage[0].columns);
    find_entries(r, SP_RECOURSE, &problem->w, columns);
    int *more = calloc((size_t)columns, sizeof *more);
    bool placed = more && add_places(problem, more);
    free(more);
    if (!placed)
        return sp_lines_memory(&r->lines);
    find_entries(r, SP_RECOURSE, &problem->w, columns);
    return KILTER_OK;
}

static kilter_status add_target(reader *r, sp_target target, int *index) {
    sp_problem *problem = r->problem;
    if (!make_slots(r))
        return sp_lines_memory(&r->lines);
    size_t at = target_slot(r, target.kind, target.row, target.column);
    if (r->slot[at]) {
        *index = r->slot[at] - 1;
        return KILTER_OK;
    }
    size_t count = (size_t)problem->targets;
    if (!sp_grow(&problem->target, &r->target_capacity, count + 1, sizeof *problem->target) ||
        !sp_grow(&r->last_outcome, &r->last_capacity, count + 1, sizeof *r->last_outcome))
        return sp_lines_memory(&r->lines);
    target.core = core_value(problem, &target);
    target.line = r->lines.line;
    target.entry = -1;
    target.variable = -1;
    problem->target[count] = target;
    r->last_outcome[count] = 0;
    r->slot[at] = (int)count + 1;
    problem->targets++;
    *index = (int)count;
    return KILTER_OK;
}

/* Return whether `token` names the right-hand side, by the name of CORE's RHS set, RIGHT, or a word that
 * begins with RHS. */
static bool names_rhs(const reader *r, sp_token token) {
    return (r->core->rhs_set.size > 0 && sp_token_same(token, r->core->rhs_set)) ||
           (token.size >= 3 && strncasecmp(token.text, "RHS", 3) == 0) || sp_token_is(token, "RIGHT");
}

static kilter_status unknown_column(const reader *r, sp_token name) {
    static const char *const BOUND[] = {"UP", "LO", "FX", "FR", "MI", "PL"};
    bool bound = (r->core->bound_set.size > 0 && sp_token_same(name, r->core->bound_set)) ||
                 (r->core->range_set.size > 0 && sp_token_same(name, r->core->range_set));
    for (size_t i = 0; i < sizeof BOUND / sizeof *BOUND; i++)
        bound |= sp_token_is(name, BOUND[i]);
    if (bound)
        return sp_lines_fail(&r->lines,
                             "random bounds and ranges (%s) are not read, expected random right-hand sides, "
                             "entries of the matrix or costs",
                             sp_show(name).text);
    return sp_lines_fail(&r->lines,
                         "%s is neither a column of CORE nor its right-hand side, expected one of them",
                         sp_show(name).text);
}

/* Find the number of the problem to which a row's name and a column's name (or a name of the right-hand side)
 * refer. Fail with the reason if this number cannot be random. */
static kilter_status classify(const reader *r, sp_token column_name, sp_token row_name, sp_target *target) {
    const sp_lines *lines = &r->lines;
    int column = sp_names_find(&r->core->column_names, column_name);
    int row = sp_names_find(&r->core->row_names, row_name);
    bool rhs = names_rhs(r, column_name);
    if (column >= 0 && rhs)
        return sp_lines_fail(
            lines, "%s is the name of a column and of the right-hand side, expected names that differ",
            sp_show(column_name).text);
    if (column < 0 && !rhs)
        return unknown_column(r, column_name);
    if (row < 0)
        return sp_lines_fail(lines, "there is no row %s, expected one of CORE", sp_show(row_name).text);
    sp_place row_place = r->layout->row[row];
    sp_place column_place = rhs ? (sp_place){1, 0} : r->layout->column[column];
    if (!rhs && row == r->core->objective && column_place.stage == 1) {
        *target = (sp_target){.kind = SP_COST, .column = column_place.index};
        return KILTER_OK;
    }
    if (row_place.stage < 0)
        return sp_lines_fail(
            lines,
            "row %s of type N cannot be random here, expected a constraint of stage 2 or the "
            "cost of a stage 2 column",
            sp_show(row_name).text);
    if (row_place.stage == 0)
        return sp_lines_fail(
            lines,
            "row %s is of stage 1, which is decided before random values are known; expected one of stage 2",
            sp_show(row_name).text);
    *target = (sp_target){.kind = rhs                       ? SP_RHS
                                  : column_place.stage == 0 ? SP_TECHNOLOGY
                                                            : SP_RECOURSE,
                          .row = row_place.index,
                          .column = column_place.index};
    return KILTER_OK;
}

static kilter_status find_target(reader *r, int column_token, int row_token, int *target) {
    sp_target found;
    kilter_status status = classify(r, r->lines.token[column_token], r->lines.token[row_token], &found);
    return status ? status : add_target(r, found, target);
}

/* ---- variables, outcomes, changes ---- */

static kilter_status add_variable(reader *r) {
    sp_problem *problem = r->problem;
    size_t count = (size_t)problem->variables;
    if (!sp_grow(&problem->variable, &r->variable_capacity, count + 1, sizeof *problem->variable))
        return sp_lines_memory(&r->lines);
    problem->variable[count] = (sp_variable){.first = r->raws, .end = r->raws, .line = r->lines.line};
    problem->variables++;
    r->fresh = false;
    return KILTER_OK;
}

static kilter_status add_outcome(reader *r, double probability, size_t parent) {
    if (!sp_grow(&r->raw, &r->raw_capacity, r->raws + 1, sizeof *r->raw))
        return sp_lines_memory(&r->lines);
    r->raw[r->raws++] = (raw_outcome){probability, r->owns, r->owns, parent, r->lines.line};
    r->problem->variable[r->problem->variables - 1].end = r->raws;
    return KILTER_OK;
}

/* Let the present outcome set the random number `target` to the number in `value_token`. */
static kilter_status add_change(reader *r, int target, int value_token) {
    sp_target *at = &r->problem->target[target];
    int variable = r->problem->variables - 1;
    double value = 0;
    kilter_status status = at->kind == SP_COST ? sp_lines_cost(&r->lines, value_token, &value)
                                               : sp_lines_number(&r->lines, value_token, &value);
    if (status)
        return status;
    if (at->variable >= 0 && at->variable != variable)
        return sp_lines_fail(
            &r->lines,
            "this number already has random values in line %llu, expected all its values in one variable "
            "or block, on adjacent lines",
            (unsigned long long)at->line);
    if (r->last_outcome[target] == r->raws)
        return sp_lines_fail(&r->lines, "this outcome sets the same number twice, expected each entry once");
    if (!sp_grow(&r->own, &r->own_capacity, r->owns + 1, sizeof *r->own))
        return sp_lines_memory(&r->lines);
    at->variable = variable;
    r->last_outcome[target] = r->raws;
    r->own[r->owns++] = (sp_change){target, value};
    r->raw[r->raws - 1].end = r->owns;
    return KILTER_OK;
}

/* ---- lines ---- */

static kilter_status check_period(const reader *r, int token, bool first_too) {
    sp_token name = r->lines.token[token];
    if (sp_token_same(name, r->time->period[1]) || (first_too && sp_token_same(name, r->time->period[0])))
        return KILTER_OK;
    return sp_lines_fail(&r->lines, "period %s, expected %s, the second period of TIME", sp_show(name).text,
                         sp_show(r->time->period[1]).text);
}

/* Read a line "COLUMN|RHS ROW VALUE [PERIOD] PROBABILITY", which gives one outcome of one random number. */
static kilter_status indep_line(reader *r) {
    sp_lines *lines = &r->lines;
    if (lines->count != 4 && lines->count != 5)
        return sp_lines_fail(lines, "%d fields, expected RHS (or COLUMN) ROW VALUE [PERIOD] PROBABILITY",
                             lines->count);
    int target = 0;
    double probability = 0;
    kilter_status status = find_target(r, 0, 1, &target);
    if (!status && lines->count == 5)
        status = check_period(r, 3, false);
    if (!status)
        status = sp_lines_probability(lines, lines->count - 1, &probability);
    if (!status && (r->fresh || r->problem->target[target].variable != r->problem->variables - 1))
        status = add_variable(r);
    if (!status)
        status = add_outcome(r, probability, r->raws);
    return status ? status : add_change(r, target, 2);
}

/* Read a line "BL NAME [PERIOD] PROBABILITY", which begins an outcome of a block. Later outcomes of the block
 * inherit values from the block's first outcome. */
static kilter_status block_opening(reader *r) {
    sp_lines *lines = &r->lines;
    if (lines->count != 3 && lines->count != 4)
        return sp_lines_fail(lines, "%d fields, expected BL NAME [PERIOD] PROBABILITY", lines->count);
    double probability = 0;
    kilter_status status = lines->count == 4 ? check_period(r, 2, false) : KILTER_OK;
    if (!status)
        status = sp_lines_probability(lines, lines->count - 1, &probability);
    if (status)
        return status;
    int block = sp_names_find(&r->blocks, lines->token[1]);
    if (block >= 0 && (r->fresh || block < r->blocks.count - 1))
        return sp_lines_fail(lines, "block %s was given above, expected all its outcomes on adjacent lines",
                             sp_show(lines->token[1]).text);
    if (block < 0) {
        status = add_variable(r);
        if (!status && !sp_names_add(&r->blocks, lines->token[1]))
            status = sp_lines_memory(lines);
    }
    return status ? status
                  : add_outcome(r, probability, r->problem->variable[r->problem->variables - 1].first);
}

static kilter_status scenario_parent(const reader *r, sp_token name, size_t *parent) {
    if (sp_token_is(name, "ROOT") || sp_token_is(name, "'ROOT'")) {
        *parent =
            r->raws; /* an outcome that is its own parent takes all values that it does not set from CORE */
        return KILTER_OK;
    }
    int found = sp_names_find(&r->scenarios, name);
    if (found < 0)
        return sp_lines_fail(&r->lines,
                             "there is no scenario %s above, expected ROOT or an earlier scenario as parent",
                             sp_show(name).text);
    *parent = r->first_scenario + (size_t)found;
    return KILTER_OK;
}

/* Read a line "SC NAME PARENT PROBABILITY [PERIOD]", which begins a scenario. */
static kilter_status scenario_opening(reader *r) {
    sp_lines *lines = &r->lines;
    if (lines->count != 4 && lines->count != 5)
        return sp_lines_fail(lines, "%d fields, expected SC NAME PARENT PROBABILITY [PERIOD]", lines->count);
    if (sp_names_find(&r->scenarios, lines->token[1]) >= 0)
        return sp_lines_fail(lines, "scenario %s was given before, expected each scenario once",
                             sp_show(lines->token[1]).text);
    size_t parent = 0;
    double probability = 0;
    kilter_status status = scenario_parent(r, lines->token[2], &parent);
    if (!status)
        status = sp_lines_probability(lines, 3, &probability);
    if (!status && lines->count == 5)
        status = check_period(r, 4, true);
    if (!status && r->scenarios.count == 0)
        status = add_variable(r);
    if (!status && !sp_names_add(&r->scenarios, lines->token[1]))
        status = sp_lines_memory(lines);
    return status ? status : add_outcome(r, probability, parent);
}

/* Read a line "COLUMN|RHS ROW VALUE [ROW VALUE]" inside an outcome of a block or scenario. */
static kilter_status outcome_line(reader *r) {
    sp_lines *lines = &r->lines;
    if (lines->count != 3 && lines->count != 5)
        return sp_lines_fail(lines,
                             "%d fields, expected RHS (or COLUMN) ROW VALUE, or a line beginning with %s",
                             lines->count, r->section == BLOCKS ? "BL" : "SC");
    if ((r->section == BLOCKS ? r->blocks : r->scenarios).count == 0)
        return sp_lines_fail(lines, "a value before the first line beginning with %s",
                             r->section == BLOCKS ? "BL" : "SC");
    kilter_status status = KILTER_OK;
    for (int token = 1; !status && token < lines->count; token += 2) {
        int target = 0;
        status = find_target(r, 0, token, &target);
        if (!status)
            status = add_change(r, target, token + 1);
    }
    return status;
}

static kilter_status data_line(reader *r) {
    switch (r->section) {
    case INDEP:
        return indep_line(r);
    case BLOCKS:
        return sp_token_is(r->lines.token[0], "BL") ? block_opening(r) : outcome_line(r);
    case SCENARIOS:
        return sp_token_is(r->lines.token[0], "SC") ? scenario_opening(r) : outcome_line(r);
    default:
        return sp_lines_fail(&r->lines,
                             "data before a section, expected INDEP, BLOCKS or SCENARIOS (sections begin "
                             "in column 1)");
    }
}

/* Read a header "INDEP|BLOCKS|SCENARIOS DISCRETE [REPLACE]". DISCRETE may be left out after SCENARIOS. */
static kilter_status open_section(reader *r, section section) {
    sp_lines *lines = &r->lines;
    int at = 1, count = lines->count < SP_LINE_TOKENS ? lines->count : SP_LINE_TOKENS;
    if (at < count && sp_token_is(lines->token[at], "DISCRETE"))
        at++;
    else if (section != SCENARIOS)
        return sp_lines_fail(lines, "distribution %s is not read, expected DISCRETE",
                             at < count ? sp_show(lines->token[at]).text : "(none)");
    if (at < count && sp_token_is(lines->token[at], "REPLACE"))
        at++;
    if (at < count)
        return sp_lines_fail(
            lines, "\"%s\" is not read here, expected values that replace CORE's (DISCRETE [REPLACE])",
            sp_show(lines->token[at]).text);
    if (r->scenarios.count > 0 || (section == SCENARIOS && r->problem->variables > 0))
        return sp_lines_fail(
            lines, "SCENARIOS beside other random data, expected a single section SCENARIOS and no other");
    r->section = section;
    r->fresh = true;
    return KILTER_OK;
}

static kilter_status header_line(reader *r) {
    sp_lines *lines = &r->lines;
    sp_token word = lines->token[0];
    if (sp_token_is(word, "STOCH") && !r->titled && r->section == NONE) {
        r->titled = true;
        return KILTER_OK;
    }
    if (sp_token_is(word, "INDEP"))
        return open_section(r, INDEP);
    if (sp_token_is(word, "BLOCKS"))
        return open_section(r, BLOCKS);
    if (sp_token_is(word, "SCENARIOS"))
        return open_section(r, SCENARIOS);
    if (sp_token_is(word, "ENDATA")) {
        r->ended = true;
        return KILTER_OK;
    }
    return sp_lines_fail(lines,
                         "\"%s\" in column 1 is not a known section, expected STOCH, INDEP, BLOCKS, "
                         "SCENARIOS or ENDATA (data lines begin with a space)",
                         sp_show(word).text);
}

static kilter_status read_lines(reader *r) {
    bool more = true;
    kilter_status status = sp_lines_next(&r->lines, &more);
    while (!status && more && !r->ended) {
        status = r->lines.header ? header_line(r) : data_line(r);
        if (!status && !r->ended)
            status = sp_lines_next(&r->lines, &more);
    }
    if (status)
        return status;
    if (!r->ended)
        return sp_lines_fail(&r->lines, "the file ends without ENDATA, expected the whole file");
    if (r->problem->variables == 0)
        return sp_lines_fail(&r->lines, "nothing is random, expected INDEP, BLOCKS or SCENARIOS with data");
    return KILTER_OK;
}

/* ---- writing all values of outcomes ---- */

static kilter_status write_change(reader *r, size_t begin, sp_change change) {
    sp_problem *problem = r->problem;
    size_t *where = &r->where[change.target];
    if (*where > begin) { /* this outcome replaces an inherited value */
        problem->change[*where - 1].value = change.value;
        return KILTER_OK;
    }
    if (r->changes == SP_CHANGES_MAX)
        return sp_lines_fail(&r->lines,
                             "the outcomes written out in full have more than %d values, expected fewer",
                             SP_CHANGES_MAX);
    if (!sp_grow(&problem->change, &r->change_capacity, r->changes + 1, sizeof *problem->change))
        return sp_lines_memory(&r->lines);
    problem->change[r->changes++] = change;
    *where = r->changes;
    return KILTER_OK;
}

static kilter_status write_outcome(reader *r, size_t at) {
    sp_problem *problem = r->problem;
    const raw_outcome *raw = &r->raw[at];
    sp_outcome *outcome = &problem->outcome[at];
    size_t begin = r->changes;
    kilter_status status = KILTER_OK;
    if (raw->parent != at) {
        const sp_outcome *parent = &problem->outcome[raw->parent];
        for (size_t i = parent->first; !status && i < parent->end; i++)
            status = write_change(r, begin, problem->change[i]);
    }
    for (size_t i = raw->first; !status && i < raw->end; i++)
        status = write_change(r, begin, r->own[i]);
    outcome->first = begin;
    outcome->end = r->changes;
    return status;
}

/* Return the sum by which to divide a variable's probabilities. If the sum differs from 1 by little, the
 * file's digits were cut off; a larger difference is an error. */
static kilter_status scale_of(reader *r, const sp_variable *variable, double *scale) {
    static const double ROUNDING = 1e-9, CUT = 1e-3 + 1e-9;
    double sum = 0;
    for (size_t i = variable->first; i < variable->end; i++)
        sum += r->raw[i].probability;
    if (!(fabs(sum - 1) <= CUT))
        return sp_lines_fail_at(&r->lines, variable->line,
                                "the probabilities that begin here add up to %.10g, expected 1", sum);
    *scale = fabs(sum - 1) <= ROUNDING ? 1 : sum;
    if (*scale != 1 && r->problem->scaled_line == 0) {
        r->problem->scaled_line = variable->line;
        r->problem->scaled_sum = sum;
    }
    return KILTER_OK;
}

static kilter_status write_variable(reader *r, const sp_variable *variable) {
    double sum = 0, scale = 1;
    kilter_status status = scale_of(r, variable, &scale);
    for (size_t i = variable->first; !status && i < variable->end; i++) {
        sum += r->raw[i].probability;
        r->problem->outcome[i].below = fmin(sum / scale, 1);
        status = write_outcome(r, i);
    }
    if (!status)
        r->problem->outcome[variable->end - 1].below = 1;
    return status;
}

static kilter_status write_all(reader *r) {
    r->problem->outcome = calloc(r->raws, sizeof *r->problem->outcome);
    r->where = calloc((size_t)r->problem->targets + 1, sizeof *r->where);
    if (!r->problem->outcome || !r->where)
        return sp_lines_memory(&r->lines);
    kilter_status status = place_entries(r);
    for (int v = 0; !status && v < r->problem->variables; v++)
        status = write_variable(r, &r->problem->variable[v]);
    return status;
}

kilter_status sp_stoch_read(const sp_file *file, const sp_core *core, const sp_time *time,
                            const sp_layout *layout, sp_problem *problem, kilter_error *error) {
    reader r = {.lines = {.file = file, .error = error},
                .core = core,
                .time = time,
                .layout = layout,
                .problem = problem};
    kilter_status status = read_lines(&r);
    if (!status)
        status = write_all(&r);
    sp_names_free(&r.blocks);
    sp_names_free(&r.scenarios);
    free(r.last_outcome);
    free(r.slot);
    free(r.raw);
    free(r.own);
    free(r.where);
    return status;
}
