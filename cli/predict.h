/* kilter predict: its numbers, what follows from them, and how that is shown. */
#ifndef KL_PREDICT_H
#define KL_PREDICT_H

#include <stdio.h>

#include "cmd.h"
#include "kilter/predict.h"
#include "model/model.h"

/* What the model is fed with. Each is an option and may come from a record. */
enum {
    KL_IN_WORK_S,      /* T_c */
    KL_IN_BYTES,       /* V */
    KL_IN_ALPHA,       /* α */
    KL_IN_STARTUP_S,   /* m_o */
    KL_IN_PER_BYTE_S,  /* λ */
    KL_IN_MASTER_S,    /* l_m */
    KL_IN_ANSWER_S,    /* of the master for one chunk, in several rounds */
    KL_IN_TASKS,       /* M */
    KL_IN_TASK_MEAN_S, /* μ */
    KL_IN_TASK_SD_S,   /* σ */
    KL_INPUTS
};

typedef struct kl_input {
    const char *key, *symbol;
    double low, high; /* what is possible */
    bool above_low;   /* low itself is not */
} kl_input;

extern const kl_input kl_inputs[KL_INPUTS];
bool kl_input_possible(const kl_input *input, double value);

typedef struct kl_number {
    double value;     /* NAN: not known */
    const char *from; /* where it is from; NULL while nobody said */
} kl_number;

/* An iteration of the record that ended. */
typedef struct kl_measured {
    uint64_t run;
    uint32_t workers;
    uint64_t tasks;
    double time_s; /* with l_m */
} kl_measured;

typedef struct kl_basis {
    kl_number in[KL_INPUTS];
    char *record; /* NULL: all was given */
    char *program;
    char *cut;          /* how the run ended before its tasks were done, "": not known; NULL: they are */
    double done, tasks; /* of the run's tasks, those that were done */
    uint64_t run;
    uint32_t workers;   /* that did it; 0: no record */
    double rate;        /* units a busy second of the mean one of them */
    kl_load load;       /* that it put on what they share; zeroed: not known */
    bool uneven;        /* they differ */
    double runs_differ; /* σ over mean of the runs alike; 0: too few */
    kl_measured *measured;
    size_t measured_count;
    double *part; /* its rounds; NULL: DAF's are taken */
    size_t part_count;
    double *scratch; /* for the rounds at another number of workers */
    size_t scratch_count;
    double *own; /* sums, as below, of the workers of the record's run; NULL: no record */
    uint32_t own_count;
    double
        *speeds; /* speeds[n−1]: of the n fastest together, the mean worker's being 1; NULL: all are alike */
    uint32_t speed_count;
    bool speeds_uneven;
    const char *speeds_from;
} kl_basis;

/* Fill what was not given from run `run` of the record (−1: the last whose tasks are all done, or else the
 * last with some done, which then stand for the others). KILTER_ERR_INPUT when there is no such run or
 * nothing can be learned from it; errors of kl_report_read(). */
kilter_status kl_basis_read(kl_basis *basis, const char *path, int64_t run, kilter_error *error);
/* What is still not known follows from the rest, or is 0. KILTER_ERR_INPUT when T_c is not known. */
kilter_status kl_basis_complete(kl_basis *basis, kilter_error *error);
/* Other workers: "1,1,0.5" or "16x1,16x0.25", or those of another record. KILTER_ERR_INPUT. */
kilter_status kl_basis_speeds(kl_basis *basis, const char *list, kilter_error *error);
kilter_status kl_basis_hosts(kl_basis *basis, const char *path, kilter_error *error);
void kl_basis_free(kl_basis *basis);

/* The model at one number of workers. */
typedef struct kl_point {
    uint32_t workers;
    double speed; /* of all of them */
    double time_s, efficiency, index_s;
    double rounds_time_s, rounds_efficiency, rounds_index_s; /* NAN: tasks are not known */
    double quality_bound;                                    /* NAN: likewise */
    kl_limit limit;                                          /* likewise .times = 1 */
    kl_interval within;                                      /* rounds_time_s */
} kl_point;

enum { KL_ASYNCHRONOUS, KL_SYNCHRONOUS, KL_PROTOCOLS };

typedef struct kl_protocol {
    const char *name;
    uint32_t capability;                  /* UINT32_MAX: no limit among those asked for */
    kl_point best, fastest;               /* lowest P_i up to the capability; lowest T_t */
    kl_point rounds_best, rounds_fastest; /* the same in several rounds; workers = 0: not known */
    kl_point *points;                     /* the rows to show */
    size_t count;
} kl_protocol;

/* All iterations of a fork-join program. */
typedef struct kl_program_prediction {
    double iterations; /* 0: nobody asked */
    uint32_t workers;
    kilter_prediction all;
    size_t measured_runs;       /* in the record; 0: there are too few */
    double measured_s;          /* of all of them */
    kilter_prediction recorded; /* the same, predicted from the basis */
} kl_program_prediction;

/* What more workers bring: the fewest that are nearly as fast as any number looked at. */
typedef struct kl_verdict {
    kl_point enough; /* workers = 0: tasks are not known */
    bool is_most;    /* more would be faster */
} kl_verdict;

typedef struct kl_what_if {
    const char *key, *words;
    kl_verdict verdict;
} kl_what_if;

enum { KL_WHAT_IFS = 4 };

typedef struct kl_prediction {
    const kl_basis *basis;
    kl_verdict verdict;
    kl_what_if what_if[KL_WHAT_IFS]; /* words = NULL: what the workers share is not known */
    uint32_t most;                   /* workers looked at */
    kl_program_prediction program;
    bool out_of_tasks; /* more were asked for, but there is no task for each */
    kl_protocol protocols[KL_PROTOCOLS];
} kl_prediction;

/* most = 0: choose how many workers to look at. KILTER_ERR_MEMORY. */
kilter_status kl_predict(const kl_basis *basis, uint32_t most, kl_prediction *prediction,
                         kilter_error *error);
/* On the workers given, else on those of the record, else on p->workers equal ones. KILTER_ERR_INPUT,
 * _MEMORY. */
kilter_status kl_predict_program(const kl_basis *basis, double iterations, kl_program_prediction *p,
                                 kilter_error *error);
/* How an iteration of the record itself would be predicted: on as many of its own workers. */
kl_point kl_predict_measured(const kl_basis *basis, uint32_t protocol, uint32_t workers);
kl_point kl_predict_at(const kl_basis *basis, uint32_t protocol, uint32_t workers);
/* The verdict of p->most workers, and what it would be otherwise. */
void kl_predict_verdict(kl_prediction *p);
void kl_prediction_free(kl_prediction *prediction);

/* Begins with a sentence; symbols and formulas' inputs only if verbose. */
void kl_prediction_print_text(const kl_prediction *p, bool verbose, FILE *out);
void kl_prediction_print_json(const kl_prediction *p, FILE *out);
void kl_prediction_plot(const kl_prediction *p, FILE *out);

#endif
