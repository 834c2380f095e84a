/* kilter-sp predict: predict the time of a solve on workers that the user describes, from a short solve on
 * this machine. */
#ifndef SP_FORECAST_H
#define SP_FORECAST_H

#include <stdio.h>

#include "cli.h"
#include "kilter/predict.h"

/* Measurements from solving a small sample. This solve began at the solution of an even smaller sample. Times
 * are in seconds. */
typedef struct sp_benchmark {
    uint64_t scenarios;
    int clusters, candidates;
    /* first_clusters, first_candidates: numbers of clusters and candidates for the smallest sample */
    int first_clusters, first_candidates;
    uint32_t workers;
    /* elapsed_s: elapsed seconds of the solve; farm_s: the part of elapsed_s in which the farm ran tasks */
    double elapsed_s, farm_s;
    /* mean time of one run of the farm if a single worker of mean speed did all the work */
    double work_s;
    kilter_program program; /* measured costs of messages between master and workers */
} sp_benchmark;

typedef struct sp_forecast {
    uint32_t workers; /* number of described workers */
    uint64_t scenarios;
    int clusters;                      /* number of clusters of the last sample */
    int least_clusters, most_clusters; /* smallest and largest number of clusters of all samples */
    double candidates;                 /* number of candidates of the last sample */
    bool given;                        /* true: the user gave the number `candidates` */
    double total_s, bound_s; /* predicted seconds and lower bound in seconds, summed over all samples of the
                                requested solve */
    kilter_prediction long_one;  /* prediction for the last sample of the requested solve */
    kilter_prediction short_one; /* prediction for the benchmark's last sample */
} sp_forecast;

/* Check that options->on can be read; call this before measuring. Return KILTER_ERR_USAGE if it cannot be
 * read. */
kilter_status sp_forecast_check(const sp_options *options, kilter_error *error);

/* Predict the time of a solve. The prediction assumes that a worker's time is proportional to its number of
 * scenarios. It assumes that the master's time depends only on the number of clusters. */
kilter_status sp_forecast_make(const sp_options *options, const sp_benchmark *benchmark,
                               sp_forecast *forecast, kilter_error *error);

/* Predict the time to solve one more sample on the benchmark's own workers. */
kilter_status sp_forecast_sample(const sp_benchmark *benchmark, uint64_t scenarios, int clusters,
                                 double candidates, kilter_prediction *prediction, kilter_error *error);

void sp_forecast_print(FILE *out, const sp_forecast *forecast, const sp_benchmark *benchmark);
void sp_forecast_print_json(FILE *out, const sp_forecast *forecast, const sp_benchmark *benchmark);

#endif
