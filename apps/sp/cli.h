/* kilter-sp's command line and its printed answer. */
#ifndef SP_CLI_H
#define SP_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "basket.h"
#include "evaluate.h"
#include "solve.h"

typedef enum sp_command { SP_EVALUATE_COMMAND = 1, SP_SOLVE_COMMAND = 2, SP_PREDICT_COMMAND = 4 } sp_command;

enum { SP_SCENARIOS_MAX = 1000000000, SP_CLUSTERS_MAX = 1000000, SP_STAGES_MAX = 16, SP_BASKET_MAX = 64 };

#define SP_CLUSTERS_AUTO UINT64_MAX

/* Sizes of several samples. Each sample is solved from the solution of the previous sample. */
typedef struct sp_stages {
    uint64_t scenarios[SP_STAGES_MAX];
    int count;
} sp_stages;

typedef struct sp_options {
    const char *core, *time, *stoch; /* paths */
    const char *at;                  /* path of the file with the decision to evaluate or to start from */
    /* number of scenarios (0: all scenarios of the distribution), and seed of the sample */
    uint64_t scenarios, seed;
    double confidence; /* percent */
    bool json;
    /* the options of the command solve */
    double gap;
    /* number of clusters of scenarios; 0: sp_clusters_for() chooses the number; SP_CLUSTERS_AUTO: chosen from
     * measured times */
    uint64_t clusters;
    uint64_t basket; /* greatest number of candidates that are evaluated at once */
    bool fast, extensive, latin;
    uint64_t check;             /* number of scenarios of the out-of-sample estimate; 0: no such estimate */
    sp_stages grow;             /* sizes of the samples; count 0: one sample of `scenarios` scenarios */
    const char *mps, *decision; /* paths of output files; NULL: the file is not written */
    /* the options of the command predict */
    /* benchmark: number of scenarios of the benchmark; candidates: number of candidates of the solve (0:
     * estimate this number from the benchmark) */
    uint64_t benchmark, candidates;
    const char *on; /* speeds of the workers; NULL: the local workers, with equal speeds */
} sp_options;

/* Read arguments[0 … count), which follow the command. For KILTER_ERR_USAGE, the error's text names the
 * option. The arguments must outlive the options. */
kilter_status sp_options_parse(sp_command command, int count, char *const *arguments, sp_options *options,
                               kilter_error *error);

/* Print the command's own options; kilter_farm_usage() prints the options that Kilter adds. */
void sp_command_usage(FILE *out, sp_command command);

typedef struct sp_answer {
    sp_estimate estimate;
    double confidence; /* percent */
    uint64_t scenarios, seed;
    double possible; /* number of scenarios of the whole distribution */
    double elapsed_s;
    uint32_t workers;
    const char *decision; /* Kilter's sentence about its last decision; NULL: no such sentence */
    const char *record;   /* path of the run record; NULL: there is no record */
} sp_answer;

void sp_answer_print(FILE *out, const sp_answer *answer);
/* print the answer as one JSON object on one line */
void sp_answer_print_json(FILE *out, const sp_answer *answer);

typedef struct sp_solve_answer {
    const sp_solution *solution;
    const sp_problem *problem;
    const sp_options *options;
    uint64_t scenarios; /* number of scenarios of the last sample */
    double possible;    /* number of scenarios of the whole distribution */
    int clusters;
    /* true: there is an out-of-sample estimate, over check_scenarios scenarios of seed check_seed */
    bool checked;
    sp_estimate check;
    uint64_t check_scenarios, check_seed;
    double elapsed_s, master_s; /* elapsed seconds of the solve; master_s: seconds of the solve in which the
                                   master computed */
    /* mean times of a candidate in the last sample; all zero if candidates were not evaluated one at a
     * time */
    sp_times times;
    uint32_t workers;
    /* evaluated: number of scenario solves for all candidates; found: number of these solves that began from
     * the scenario's own basis */
    uint64_t evaluated, found;
    const char *record; /* path of the run record; NULL: there is no record */
} sp_solve_answer;

void sp_solve_answer_print(FILE *out, const sp_solve_answer *answer);
/* print the answer as one JSON object on one line */
void sp_solve_answer_print_json(FILE *out, const sp_solve_answer *answer);

/* Print the solver's progress in one line. `time_left_s` is NaN if the time left is not known. */
void sp_progress_print(FILE *out, const sp_progress *progress, double elapsed_s, double time_left_s);

#endif
