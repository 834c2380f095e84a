#include "inputs.h"

#include <stdlib.h>

#include "numbers.h"

kilter_status sp_inputs_read(const sp_options *options, sp_inputs *in, kilter_error *error) {
    kilter_status status = sp_file_load(options->core, &in->core, error);
    if (!status)
        status = sp_file_load(options->time, &in->time, error);
    if (!status)
        status = sp_file_load(options->stoch, &in->stoch, error);
    if (!status && options->at)
        status = sp_file_load(options->at, &in->at, error);
    if (!status)
        status = sp_problem_read(&in->core, &in->time, &in->stoch, &in->problem, error);
    if (!status && options->at)
        status = sp_decision_read(in->problem, &in->at, &in->x, error);
    return status;
}

void sp_inputs_free(sp_inputs *in) {
    sp_file_free(&in->core);
    sp_file_free(&in->time);
    sp_file_free(&in->stoch);
    sp_file_free(&in->at);
    sp_problem_free(in->problem);
    free(in->x);
}

void sp_inputs_warn(FILE *out, const sp_inputs *in) {
    char text[1024];
    if (in->problem->scaled_line > 0)
        fprintf(out,
                "kilter-sp: %s:%llu: the probabilities that begin here add up to %.10g; each is divided by "
                "their sum\n",
                in->stoch.name, (unsigned long long)in->problem->scaled_line, in->problem->scaled_sum);
    if (sp_numbers_stand_out(in->problem, in->core.name, in->stoch.name, text, sizeof text))
        fprintf(out, "kilter-sp: %s\n", text);
}
