#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sp_job {
    sp_problem *problem;
    sp_evaluator *evaluator;
};

enum { JOB_VERSION = 0x3170736b }; /* "ksp1" */

void sp_job_pack(kl_buffer *bytes, const sp_file *core, const sp_file *time, const sp_file *stoch,
                 const double *x, int columns, uint64_t seed) {
    const sp_file *files[] = {core, time, stoch};
    kl_put_u32(bytes, JOB_VERSION);
    kl_put_u64(bytes, seed);
    for (int i = 0; i < 3; i++) {
        kl_put_span(bytes, files[i]->name, strlen(files[i]->name) + 1);
        kl_put_span(bytes, files[i]->data, files[i]->size);
    }
    kl_put_u32(bytes, (uint32_t)columns);
    for (int j = 0; j < columns; j++)
        kl_put_f64(bytes, x[j]);
}

static sp_file get_file(kl_reader *reader) {
    size_t name_size, size;
    const char *name = (const char *)kl_get_span(reader, &name_size);
    const char *data = (const char *)kl_get_span(reader, &size);
    if (!name || name_size == 0 || name[name_size - 1] != 0)
        reader->bad = true;
    return (sp_file){name, data, size};
}

static kilter_status bad_job(kilter_error *error) {
    return kl_fail(
        error, KILTER_ERR_INPUT,
        "reading the shared data of a run: it is not what this version of kilter-sp writes; use the same "
        "version on every machine");
}

static double *get_decision(kl_reader *reader, int columns) {
    double *x = calloc((size_t)columns + 1, sizeof *x);
    for (int j = 0; x && j < columns; j++) {
        x[j] = kl_get_f64(reader);
        if (!isfinite(x[j]))
            reader->bad = true;
    }
    return x;
}

/* Problem first: it says how long the decision must be. */
static kilter_status make_job(kl_reader *reader, sp_job *job, kilter_error *error) {
    uint32_t version = kl_get_u32(reader);
    uint64_t seed = kl_get_u64(reader);
    sp_file core = get_file(reader), time = get_file(reader), stoch = get_file(reader);
    uint32_t columns = kl_get_u32(reader);
    if (reader->bad || version != JOB_VERSION)
        return bad_job(error);
    kilter_status status = sp_problem_read(&core, &time, &stoch, &job->problem, error);
    if (status)
        return status;
    if (columns != (uint32_t)job->problem->stage[0].columns)
        return bad_job(error);
    double *x = get_decision(reader, (int)columns);
    if (!x)
        status = kl_fail(error, KILTER_ERR_MEMORY, "reading a decision: memory ran out; use fewer workers");
    else if (!kl_reader_done(reader))
        status = bad_job(error);
    else
        status = sp_evaluator_new(job->problem, x, seed, &job->evaluator, error);
    free(x);
    return status;
}

kilter_status sp_job_new(const void *data, size_t size, sp_job **job, kilter_error *error) {
    sp_job *made = calloc(1, sizeof *made);
    if (!made)
        return kl_fail(error, KILTER_ERR_MEMORY, "preparing a worker: memory ran out; use fewer workers");
    kl_reader reader = kl_reader_of(data, size);
    kilter_status status = make_job(&reader, made, error);
    if (status)
        sp_job_free(made);
    else
        *job = made;
    return status;
}

void sp_job_free(sp_job *job) {
    if (!job)
        return;
    sp_evaluator_free(job->evaluator);
    sp_problem_free(job->problem);
    free(job);
}

kilter_status sp_job_cost(sp_job *job, uint64_t scenario, double *cost, kilter_error *error) {
    return sp_evaluator_cost(job->evaluator, scenario, cost, error);
}
