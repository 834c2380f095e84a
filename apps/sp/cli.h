/* kilter-sp's command line and its printed answer. */
#ifndef SP_CLI_H
#define SP_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "evaluate.h"

typedef struct sp_options {
    const char *core, *time, *stoch, *at; /* paths */
    uint64_t scenarios, seed;
    double confidence; /* percent */
    bool json;
} sp_options;

enum { SP_SCENARIOS_MAX = 1000000000 };

/* arguments[0 … count): what follows "evaluate". KILTER_ERR_USAGE names the option. Pointers go into the
 * arguments. */
kilter_status sp_options_parse(int count, char *const *arguments, sp_options *options, kilter_error *error);

/* kilter-sp evaluate's own options; Kilter's are kilter_farm_usage()'s. */
void sp_evaluate_usage(FILE *out);

typedef struct sp_answer {
    sp_estimate estimate;
    double confidence; /* percent */
    uint64_t scenarios, seed;
    double possible; /* scenarios of the whole distribution */
    double elapsed_s;
    uint32_t workers;
    const char *decision; /* Kilter's sentence; NULL: none */
    const char *record;   /* the run record's file; NULL: none */
} sp_answer;

void sp_answer_print(FILE *out, const sp_answer *answer);
void sp_answer_print_json(FILE *out, const sp_answer *answer); /* one object on one line */

#endif
