/* kilter predict: its inputs, the prediction, and the output. */
#ifndef KL_PREDICT_H
#define KL_PREDICT_H

#include <stdio.h>

#include "cmd.h"
#include "kilter/predict.h"
#include "model/model.h"

/* The model's inputs. Each is an option and may come from a record. */
enum {
    KL_IN_WORK_S,      /* T_c */
    KL_IN_BYTES,       /* V */
    KL_IN_ALPHA,       /* α */
    KL_IN_STARTUP_S,   /* m_o */
    KL_IN_PER_BYTE_S,  /* λ */
    KL_IN_MASTER_S,    /* l_m */
    KL_IN_ANSWER_S,    /* seconds that the master needs for one chunk, if work is dealt in several rounds */
    KL_IN_TASKS,       /* M */
    KL_IN_TASK_MEAN_S, /* μ */
    KL_IN_TASK_SD_S,   /* σ */
    KL_INPUTS
};

typedef struct kl_input {
    const char *key, *symbol;
    double low, high; /* least and greatest valid value */
    bool above_low;   /* true: `low` itself is not valid */
} kl_input;

extern const kl_input kl_inputs[KL_INPUTS];
bool kl_input_possible(const kl_input *input, double value);

typedef struct kl_number {
    double value;     /* value; NAN: not known */
    const char *from; /* source of the value; NULL: not given yet */
} kl_number;

/* A run of the record that ended. */
typedef struct kl_measured {
    uint64_t run;
    uint32_t workers;
    uint64_t tasks;
    double time_s;    /* seconds of the run, including l_m, in which the master works alone */
    double elapsed_s; /* seconds of the run, without l_m */
    bool peers;       /* true: the workers organised the run as peers */
} kl_measured;

typedef struct kl_basis {
    kl_number in[KL_INPUTS];
    char *record; /* NULL: all inputs were given */
    char *program;
    /* how the run ended early, in words; "": not known; NULL: all tasks were done */
    char *cut;
    double done, tasks; /* number of the run's tasks that were done; number of all its tasks */
    uint64_t run;
    uint32_t workers; /* number of workers that did these tasks; 0: no record */
    double rate;      /* units of work that the mean worker does in a busy second */
    kl_load load;     /* the run's load on shared resources; zeroed: not known */
    bool uneven;      /* true: the workers' speeds differ */
    /* σ/μ of the times of similar runs: same tasks, same number of workers; 0: too few runs */
    double runs_differ;
    double alike_s; /* mean time of these runs, without l_m; 0: there are none */
    double beyond;  /* factor by which these runs took longer than the model says; 1: not known */
    kl_measured *measured;
    size_t measured_count;
    double *part; /* fraction of the work in each round of the run; NULL: use the rounds of the policy DAF */
    size_t part_count;
    double *scratch; /* memory for the fractions of rounds at another number of workers */
    size_t scratch_count;
    double *own; /* own[n−1]: sum of the speeds of the record's n fastest workers; NULL: no record */
    uint32_t own_count;
    /* speeds[n−1]: sum of the n greatest speeds, relative to the mean worker's speed. NULL: all are equal */
    double *speeds;
    uint32_t speed_count;
    bool speeds_uneven;
    const char *speeds_from;
} kl_basis;

/* Fill missing inputs from run `run` of the record. −1: the last run whose tasks are all done. If there is
 * none, it is the last run with some tasks done, which then represent all its tasks. KILTER_ERR_INPUT: there
 * is no such run, or it tells nothing; errors of kl_report_read(). */
kilter_status kl_basis_read(kl_basis *basis, const char *path, int64_t run, kilter_error *error);
/* Derive missing inputs from the others, or set them to 0. KILTER_ERR_INPUT: T_c is not known. */
kilter_status kl_basis_complete(kl_basis *basis, kilter_error *error);
/* Predict for other workers: a list such as "1,1,0.5" or "16x1,16x0.25", or the workers of another record.
 * KILTER_ERR_INPUT. */
kilter_status kl_basis_speeds(kl_basis *basis, const char *list, kilter_error *error);
kilter_status kl_basis_hosts(kl_basis *basis, const char *path, kilter_error *error);
void kl_basis_free(kl_basis *basis);

/* The model's values for one number of workers. */
typedef struct kl_point {
    uint32_t workers;
    double speed; /* sum of the speeds of these workers */
    double time_s, efficiency, index_s;
    double rounds_time_s, rounds_efficiency, rounds_index_s; /* NAN: the tasks are not known */
    double quality_bound;                                    /* NAN: likewise */
    kl_limit limit;                                          /* likewise .times = 1 */
    kl_interval within;                                      /* rounds_time_s */
} kl_point;

enum { KL_ASYNCHRONOUS, KL_SYNCHRONOUS, KL_PROTOCOLS };

typedef struct kl_protocol {
    const char *name;
    /* greatest number of workers that the master can keep busy; UINT32_MAX: no number is too great */
    uint32_t capability;
    kl_point best, fastest;               /* best: lowest P_i up to the capability; fastest: lowest T_t */
    kl_point rounds_best, rounds_fastest; /* the same two numbers of workers if work is dealt in several
                                             rounds; workers = 0: not known */
    kl_point *points;                     /* the rows to show */
    size_t count;
} kl_protocol;

/* All runs of a fork-join program. */
typedef struct kl_program_prediction {
    double iterations; /* number of runs; 0: not asked for */
    uint32_t workers;
    kilter_prediction all;
    size_t measured_runs;       /* number of runs in the record; 0: too few */
    double measured_s;          /* seconds of all runs in the record */
    kilter_prediction recorded; /* prediction for the runs in the record */
} kl_program_prediction;

/* The smallest number of workers whose time is at most 3 % above the shortest time. */
typedef struct kl_verdict {
    kl_point enough; /* workers = 0: tasks are not known */
    bool is_most;    /* true: the fastest number is the greatest that was looked at, so more workers may be
                        faster */
} kl_verdict;

typedef struct kl_what_if {
    const char *key, *words;
    kl_verdict verdict;
} kl_what_if;

enum { KL_WHAT_IFS = 4 };

typedef struct kl_prediction {
    const kl_basis *basis;
    kl_verdict verdict;
    kl_what_if what_if[KL_WHAT_IFS]; /* words = NULL: the load on shared resources is not known */
    uint32_t most;                   /* greatest number of workers looked at */
    kl_program_prediction program;
    bool out_of_tasks; /* more workers were asked for than there are tasks */
    kl_protocol protocols[KL_PROTOCOLS];
} kl_prediction;

/* Predict for up to `most` workers; 0: choose the number. KILTER_ERR_MEMORY. */
kilter_status kl_predict(const kl_basis *basis, uint32_t most, kl_prediction *prediction,
                         kilter_error *error);
/* Predict for the given workers, else for those of the record, else for p->workers equal workers.
 * KILTER_ERR_INPUT, _MEMORY. */
kilter_status kl_predict_program(const kl_basis *basis, double iterations, kl_program_prediction *p,
                                 kilter_error *error);
/* Return the factor by which the record's last runs took longer than the model says; 1: not known. */
double kl_predict_beyond(const kl_basis *basis);
/* Predict a run of the record itself, on the same number of its own workers, without the factor `beyond`. */
kl_point kl_predict_measured(const kl_basis *basis, uint32_t protocol, uint32_t workers);
kl_point kl_predict_at(const kl_basis *basis, uint32_t protocol, uint32_t workers);
/* Find the verdict for up to p->most workers, and the verdicts after each change of kl_what_if. */
void kl_predict_verdict(kl_prediction *p);
void kl_prediction_free(kl_prediction *prediction);

/* Print a sentence first; symbols and the formulas' inputs only if verbose. */
void kl_prediction_print_text(const kl_prediction *p, bool verbose, FILE *out);
void kl_prediction_print_json(const kl_prediction *p, FILE *out);
void kl_prediction_plot(const kl_prediction *p, FILE *out);

#endif
