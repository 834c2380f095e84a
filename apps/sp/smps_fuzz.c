/* Fuzz target: split one input at lines "====" into core, time, stoch and decision, and read them. If the
 * files make a valid problem, draw samples of it and compute its means. */
#include <stdlib.h>
#include <string.h>

#include "sample.h"

static sp_file next_part(const char *name, const char **at, const char *end) {
    static const char CUT[] = "\n====\n";
    const char *found = *at < end ? memmem(*at, (size_t)(end - *at), CUT, sizeof CUT - 1) : NULL;
    const char *part_end = found ? found + 1 : end;
    sp_file part = {name, *at, (size_t)(part_end - *at)};
    *at = found ? found + sizeof CUT - 1 : end;
    return part;
}

static void draw_one(const sp_problem *problem, const sp_sampling *sampling, uint64_t scenario,
                     size_t *outcome) {
    sp_scenario(problem, sampling, scenario, outcome);
    for (int k = 0; k < problem->variables; k++)
        if (outcome[k] < problem->variable[k].first || outcome[k] >= problem->variable[k].end)
            abort();
    double weight = sp_scenario_weight(problem, sampling, outcome);
    if (!(weight >= 0 && weight <= 1 + 1e-9))
        abort();
}

/* Check that each random number in a matrix is stored at the index recorded for it. */
static void check_entry(const sp_target *target, const sp_matrix *matrix) {
    if (target->entry < matrix->start[target->column] || target->entry >= matrix->start[target->column + 1] ||
        matrix->row[target->entry] != target->row || matrix->value[target->entry] != target->core)
        abort();
}

static void check_entries(const sp_problem *problem) {
    for (int t = 0; t < problem->targets; t++) {
        const sp_target *target = &problem->target[t];
        if (target->kind == SP_RECOURSE)
            check_entry(target, &problem->w);
        else if (target->kind == SP_TECHNOLOGY && target->entry >= 0)
            check_entry(target, &problem->t);
    }
}

static void use(const sp_problem *problem) {
    check_entries(problem);
    double *mean = calloc((size_t)problem->targets + 1, sizeof *mean);
    size_t *outcome = calloc((size_t)problem->variables + 1, sizeof *outcome);
    if (mean && outcome) {
        sp_target_means(problem, mean);
        for (enum sp_draw draw = SP_INDEPENDENT; draw <= SP_ALL; draw++)
            for (uint64_t scenario = 0; scenario < 3; scenario++)
                draw_one(problem, &(sp_sampling){draw, 1, 3}, scenario, outcome);
    }
    free(mean);
    free(outcome);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *at = (const char *)data, *end = at + size;
    sp_file core = next_part("core", &at, end), time = next_part("time", &at, end);
    sp_file stoch = next_part("stoch", &at, end), decision = next_part("at", &at, end);
    sp_problem *problem = NULL;
    kilter_error error = {.text = ""};
    if (sp_problem_read((sp_file[]){core, time, stoch}, &problem, &error)) {
        if (!strchr(error.text, ':'))
            abort(); /* the error must name file and line */
        return 0;
    }
    use(problem);
    double *x = NULL;
    if (sp_decision_read(problem, &decision, &x, &error) == KILTER_OK)
        free(x);
    sp_problem_free(problem);
    return 0;
}
