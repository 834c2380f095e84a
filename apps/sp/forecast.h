/* kilter-sp predict: how long a solve takes on workers that are described, from a short one here. */
#ifndef SP_FORECAST_H
#define SP_FORECAST_H

#include <stdio.h>

#include "cli.h"
#include "kilter/predict.h"

/* What a solve of a small sample showed, from the solution of a smaller one. Times in seconds. */
typedef struct sp_benchmark {
    uint64_t scenarios;
    int clusters, candidates;
    int first_clusters, first_candidates; /* of the smallest sample */
    uint32_t workers;
    double elapsed_s, farm_s; /* farm_s: of it, in the farm's runs */
    double work_s;            /* of a run, mean, on one worker of their mean speed */
    kilter_program program;   /* what messages cost, from it */
} sp_benchmark;

typedef struct sp_forecast {
    uint32_t workers; /* described */
    uint64_t scenarios;
    int clusters;                      /* of the last sample */
    int least_clusters, most_clusters; /* of all samples */
    double candidates;                 /* of the last sample */
    bool given;                        /* they were */
    double total_s, bound_s;           /* of the solve asked for, all its samples */
    kilter_prediction long_one;        /* its last sample */
    kilter_prediction short_one;       /* the benchmark's last sample, as if predicted */
} sp_forecast;

/* Before anything is measured: can options->on be read? KILTER_ERR_USAGE. */
kilter_status sp_forecast_check(const sp_options *options, kilter_error *error);

/* A worker's time is linear in its scenarios, the master's depends on the clusters alone. */
kilter_status sp_forecast_make(const sp_options *options, const sp_benchmark *benchmark,
                               sp_forecast *forecast, kilter_error *error);

/* One more sample on the benchmark's own workers. */
kilter_status sp_forecast_sample(const sp_benchmark *benchmark, uint64_t scenarios, int clusters,
                                 double candidates, kilter_prediction *prediction, kilter_error *error);

void sp_forecast_print(FILE *out, const sp_forecast *forecast, const sp_benchmark *benchmark);
void sp_forecast_print_json(FILE *out, const sp_forecast *forecast, const sp_benchmark *benchmark);

#endif
