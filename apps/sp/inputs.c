#include "inputs.h"

#include <stdlib.h>

#include "numbers.h"

kilter_status sp_inputs_read(const sp_options *options, sp_inputs *in, kilter_error *error) {
    const char *const paths[SP_FILES] = {
        [SP_CORE] = options->core, [SP_TIME] = options->time, [SP_STOCH] = options->stoch};
    kilter_status status = KILTER_OK;
    for (int i = 0; !status && i < SP_FILES; i++)
        status = sp_file_load(paths[i], &in->files[i], error);
    if (!status && options->at)
        status = sp_file_load(options->at, &in->at, error);
    if (!status)
        status = sp_problem_read(in->files, &in->problem, error);
    if (!status && options->at)
        status = sp_decision_read(in->problem, &in->at, &in->x, error);
    return status;
}

void sp_inputs_free(sp_inputs *in) {
    for (int i = 0; i < SP_FILES; i++)
        sp_file_free(&in->files[i]);
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
                in->files[SP_STOCH].name, (unsigned long long)in->problem->scaled_line,
                in->problem->scaled_sum);
    if (sp_numbers_stand_out(in->problem, in->files[SP_CORE].name, in->files[SP_STOCH].name, text,
                             sizeof text))
        fprintf(out, "kilter-sp: %s\n", text);
}
