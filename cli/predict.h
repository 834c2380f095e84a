/* kilter predict: the inputs of the model, the prediction, and its output. */
#ifndef KL_PREDICT_H
#define KL_PREDICT_H

#include <stdio.h>

#include "cmd.h"
#include "kilter/predict.h"
#include "model/model.h"

/* Numbers of the model's inputs, with their symbols. Each input is an option, or comes from a record. */
enum {
    KL_IN_WORK_S,      /* T_c: seconds of all work on one worker of speed 1 */
    KL_IN_BYTES,       /* V: bytes of all messages, to the workers and back */
    KL_IN_ALPHA,       /* α: fraction of V that goes to the workers */
    KL_IN_STARTUP_S,   /* m_o: seconds to start a message */
    KL_IN_PER_BYTE_S,  /* λ: seconds for each byte of a message */
    KL_IN_MASTER_S,    /* l_m: seconds in which only the master works */
    KL_IN_ANSWER_S,    /* seconds that the master needs for one chunk, if work is dealt in several rounds */
    KL_IN_TASKS,       /* M: number of tasks */
    KL_IN_TASK_MEAN_S, /* μ: mean seconds of a task */
    KL_IN_TASK_SD_S,   /* σ: standard deviation of the seconds of a task */
    KL_INPUTS
};

typedef struct kl_input {
    const char *key, *symbol;
    double low, high; /* low, high: least and greatest valid value of the input */
    bool above_low;   /* true: the value `low` itself is not valid */
} kl_input;

extern const kl_input kl_inputs[KL_INPUTS];
bool kl_input_possible(const kl_input *input, double value);

typedef struct kl_number {
    double value;     /* the input's value; NAN: not known */
    const char *from; /* where the value comes from, in words; NULL: no value was given yet */
} kl_number;

/* A run of the record whose tasks were all done. */
typedef struct kl_measured {
    uint64_t run;
    uint32_t workers;
    double time_s; /* seconds of the run, including the time l_m in which only the master works */
} kl_measured;

typedef struct kl_basis {
    kl_number in[KL_INPUTS];
    char *record; /* path of the record; NULL: the user gave all inputs */
    char *program;
    /* why not all tasks of the run were done, in words; "": not known; NULL: all tasks were done */
    char *cut;
    double done, tasks; /* done: number of the run's tasks that were done; tasks: number of all its tasks */
    uint64_t run;
    uint32_t workers; /* number of workers of the run; 0: no record */
    double rate;      /* units of work that the mean worker does in a second of computing */
    kl_load load;     /* the run's load on resources that workers share; all zero: not known */
    bool uneven;      /* true: the fastest worker of the run is over 5 % faster than the slowest */
    /* standard deviation of the times of similar runs, divided by their mean; similar runs have the
     * same numbers of tasks and workers, and nearly as much work and bytes; 0: there are too few such runs */
    double runs_differ;
    double alike_s; /* mean seconds of the similar runs, without the master's own time; 0: there are too few
                       such runs */
    double beyond;  /* factor by which the similar runs took longer than the model says; 1: not known */
    kl_measured *measured;
    size_t measured_count;
    double *part; /* part[i]: fraction of the run's work that was dealt in round i; NULL: assume the rounds
                   * of the policy DAF */
    size_t part_count;
    double *scratch; /* memory for fractions like those in `part`, for another number of workers */
    size_t scratch_count;
    double *own; /* own[n−1]: sum of the speeds of the record's n fastest workers, whose mean speed in the run
                 is 1; NULL: no record */
    uint32_t own_count;
    /* speeds[n−1]: sum of the n greatest speeds of the workers that the user gave. A worker that does `rate`
     * units per second has speed 1. If the workers are from another program's record, their mean speed is 1.
     * NULL: all workers have speed 1 */
    double *speeds;
    uint32_t speed_count;
    bool speeds_uneven;
    const char *speeds_from;
} kl_basis;

/* Set missing inputs from run number `run` of the record. If `run` is −1, take the last run whose tasks are
 * all done. If no run is complete, take the last run of which some tasks are done, and assume that its other
 * tasks are similar. KILTER_ERR_INPUT: the record has no such run, or nothing was computed in the run; also
 * the errors of kl_report_read(). */
kilter_status kl_basis_read(kl_basis *basis, const char *path, int64_t run, kilter_error *error);
/* Compute missing inputs from the given ones, or set them to 0. KILTER_ERR_INPUT: T_c, the time of all
 * work, is not known. */
kilter_status kl_basis_complete(kl_basis *basis, kilter_error *error);
/* Predict for other workers. kl_basis_speeds() takes their speeds from a list such as "1,1,0.5" or
 * "16x1,16x0.25", kl_basis_hosts() from another record. Error: KILTER_ERR_INPUT. */
kilter_status kl_basis_speeds(kl_basis *basis, const char *list, kilter_error *error);
kilter_status kl_basis_hosts(kl_basis *basis, const char *path, kilter_error *error);
void kl_basis_free(kl_basis *basis);

/* The model's values for one number of workers. */
typedef struct kl_point {
    uint32_t workers;
    double speed; /* sum of the workers' speeds */
    double time_s, efficiency, index_s;
    double rounds_time_s, rounds_efficiency,
        rounds_index_s;   /* these three numbers are NAN if the number of tasks is not known */
    double quality_bound; /* NAN if the number of tasks is not known */
    kl_limit limit;       /* limit.times is 1 if the number of tasks is not known */
    kl_interval within;   /* interval of rounds_time_s; NAN if the number of tasks is not known */
} kl_point;

enum { KL_ASYNCHRONOUS, KL_SYNCHRONOUS, KL_PROTOCOLS };

typedef struct kl_protocol {
    const char *name;
    /* greatest number of workers that the master can keep busy; UINT32_MAX: no number is too great */
    uint32_t capability;
    kl_point best, fastest; /* best: the point with the lowest performance index up to the capability;
                               fastest: the point with the shortest time */
    kl_point rounds_best, rounds_fastest; /* the best and the fastest point if work is dealt in several
                                           * rounds; workers = 0: not known */
    kl_point *points;                     /* the points that are printed as rows */
    size_t count;
} kl_protocol;

/* Prediction for all runs of a fork-join program. */
typedef struct kl_program_prediction {
    double iterations; /* number of runs after the first one; 0: --iterations was not given */
    uint32_t workers;
    kilter_prediction all;
    size_t measured_runs;       /* number of runs in the record; 0: too few to compare */
    double measured_s;          /* seconds that all runs in the record took */
    kilter_prediction recorded; /* what the model predicts for the runs in the record */
} kl_program_prediction;

/* How many workers are enough: the smallest number whose time is at most 3 % above the shortest time. */
typedef struct kl_verdict {
    kl_point enough; /* the values for this number of workers; workers = 0: the number of tasks is not
                      * known */
    bool is_most;    /* true: the largest examined number is the fastest, so more workers may be faster */
} kl_verdict;

typedef struct kl_what_if {
    const char *key, *words;
    kl_verdict verdict;
} kl_what_if;

enum { KL_WHAT_IFS = 4 };

typedef struct kl_prediction {
    const kl_basis *basis;
    kl_verdict verdict;
    kl_what_if what_if[KL_WHAT_IFS]; /* words = NULL: the verdict for this change is not known, because the
                                      * load on shared resources is not known */
    uint32_t most;                   /* largest number of workers that was examined */
    kl_program_prediction program;
    bool out_of_tasks; /* true: the user asked for more workers than there are tasks */
    kl_protocol protocols[KL_PROTOCOLS];
} kl_prediction;

/* Predict a run for 1 to `most` workers; 0: choose the largest number. Error: KILTER_ERR_MEMORY. */
kilter_status kl_predict(const kl_basis *basis, uint32_t most, kl_prediction *prediction,
                         kilter_error *error);
/* Predict a fork-join program for the workers that the user gave. If the user gave none, take the record's
 * workers; without a record, take p->workers equal workers. Errors: KILTER_ERR_INPUT, KILTER_ERR_MEMORY. */
kilter_status kl_predict_program(const kl_basis *basis, double iterations, kl_program_prediction *p,
                                 kilter_error *error);
/* Return the factor by which the record's last similar runs took longer than the model says; 1: not known. */
double kl_predict_beyond(const kl_basis *basis);
/* Predict a run on this number of workers, with the mean speed of the record's workers and without the factor
 * `beyond`. */
kl_point kl_predict_measured(const kl_basis *basis, uint32_t protocol, uint32_t workers);
kl_point kl_predict_at(const kl_basis *basis, uint32_t protocol, uint32_t workers);
/* Find the verdict for up to p->most workers, and the verdict after each change of p->what_if. */
void kl_predict_verdict(kl_prediction *p);
void kl_prediction_free(kl_prediction *prediction);

/* Print the prediction, beginning with a sentence. Print symbols and the model's inputs only if `verbose`. */
void kl_prediction_print_text(const kl_prediction *p, bool verbose, FILE *out);
void kl_prediction_print_json(const kl_prediction *p, FILE *out);
void kl_prediction_plot(const kl_prediction *p, FILE *out);

#endif
