#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sp_job {
    sp_problem *problem;
    sp_evaluator *evaluator;
    /* the decision of the last order, which the evaluator now has; NULL: no order has set a decision */
    double *x;
};

enum { JOB_VERSION = 0x3170736b }; /* "ksp1" */

void sp_job_pack(sp_buffer *bytes, const sp_file files[SP_FILES], const double *x, int columns,
                 uint64_t seed) {
    sp_put_u32(bytes, JOB_VERSION);
    sp_put_u64(bytes, seed);
    for (int i = 0; i < SP_FILES; i++) {
        sp_put_span(bytes, files[i].name, strlen(files[i].name) + 1);
        sp_put_span(bytes, files[i].data, files[i].size);
    }
    sp_put_u32(bytes, (uint32_t)columns);
    for (int j = 0; j < columns; j++)
        sp_put_f64(bytes, x[j]);
}

static sp_file get_file(sp_reader *reader) {
    size_t name_size, size;
    const char *name = (const char *)sp_get_span(reader, &name_size);
    const char *data = (const char *)sp_get_span(reader, &size);
    if (!name || name_size == 0 || name[name_size - 1] != 0)
        reader->bad = true;
    return (sp_file){name, data, size};
}

static kilter_status bad_job(kilter_error *error) {
    return sp_fail(error, KILTER_ERR_INPUT,
                   "reading the shared data of a run: the data has another format; use the same version of "
                   "kilter-sp on every machine");
}

static double *get_decision(sp_reader *reader, int columns) {
    double *x = calloc((size_t)columns + 1, sizeof *x);
    for (int j = 0; x && j < columns; j++) {
        x[j] = sp_get_f64(reader);
        if (!isfinite(x[j]))
            reader->bad = true;
    }
    return x;
}

/* Read a packed job. The problem comes first, because it determines the length of the decision. */
static kilter_status make_job(sp_reader *reader, sp_job *job, kilter_error *error) {
    uint32_t version = sp_get_u32(reader);
    uint64_t seed = sp_get_u64(reader);
    sp_file files[SP_FILES];
    for (int i = 0; i < SP_FILES; i++)
        files[i] = get_file(reader);
    uint32_t columns = sp_get_u32(reader);
    if (reader->bad || version != JOB_VERSION)
        return bad_job(error);
    kilter_status status = sp_problem_read(files, &job->problem, error);
    if (status)
        return status;
    if (columns == 0 && sp_reader_done(reader))
        return KILTER_OK;
    if (columns != (uint32_t)job->problem->stage[0].columns)
        return bad_job(error);
    double *x = get_decision(reader, (int)columns);
    if (!x)
        status = sp_fail(error, KILTER_ERR_MEMORY, "reading a decision: memory ran out; use fewer workers");
    else if (!sp_reader_done(reader))
        status = bad_job(error);
    else
        status = sp_evaluator_new(job->problem, x, seed, &job->evaluator, error);
    free(x);
    return status;
}

kilter_status sp_job_new(const void *data, size_t size, sp_job **job, kilter_error *error) {
    sp_job *made = calloc(1, sizeof *made);
    if (!made)
        return sp_fail(error, KILTER_ERR_MEMORY, "preparing a worker: memory ran out; use fewer workers");
    sp_reader reader = sp_reader_of(data, size);
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
    free(job->x);
    free(job);
}

kilter_status sp_job_cost(sp_job *job, uint64_t scenario, double *cost, kilter_error *error) {
    if (!job->evaluator)
        return bad_job(error);
    return sp_evaluator_cost(job->evaluator, scenario, cost, error);
}

/* ---- orders ---- */

enum { REMEMBER = 1 };

void sp_order_pack(sp_buffer *bytes, const sp_order *order, int columns) {
    sp_put_u8(bytes, (uint8_t)order->wanted);
    sp_put_u8(bytes, order->remember ? REMEMBER : 0);
    sp_put_u8(bytes, (uint8_t)order->sampling.draw);
    sp_put_u64(bytes, order->sampling.seed);
    sp_put_u64(bytes, order->sampling.scenarios);
    sp_put_u64(bytes, order->clusters);
    sp_put_u32(bytes, (uint32_t)columns);
    for (int j = 0; j < columns; j++)
        sp_put_f64(bytes, order->x[j]);
}

static kilter_status bad_order(kilter_error *error) {
    return sp_fail(error, KILTER_ERR_INPUT,
                   "reading a task: its input has another format or belongs to another problem; use the same "
                   "version of kilter-sp on every machine");
}

/* Read the fields of a packed order that precede its decision. */
static bool get_order(sp_reader *reader, const sp_problem *problem, sp_order *order) {
    uint8_t wanted = sp_get_u8(reader), flags = sp_get_u8(reader), draw = sp_get_u8(reader);
    *order = (sp_order){
        .wanted = (enum sp_wanted)wanted, .remember = flags & REMEMBER, .sampling.draw = (enum sp_draw)draw};
    order->sampling.seed = sp_get_u64(reader);
    order->sampling.scenarios = sp_get_u64(reader);
    order->clusters = sp_get_u64(reader);
    uint32_t columns = sp_get_u32(reader);
    return !reader->bad && wanted <= SP_WANT_COSTS && draw <= SP_ALL && order->clusters > 0 &&
           order->clusters <= order->sampling.scenarios && order->sampling.scenarios <= UINT32_MAX &&
           columns == (uint32_t)problem->stage[0].columns;
}

/* Give the order's decision to the evaluator. Usually the evaluator already has this decision from the last
 * task. */
static kilter_status go_to(sp_job *job, double *x, kilter_error *error) {
    size_t bytes = (size_t)job->problem->stage[0].columns * sizeof *x;
    if (job->x && memcmp(job->x, x, bytes) == 0) {
        free(x);
        return KILTER_OK;
    }
    free(job->x);
    job->x = NULL;
    kilter_status status = job->evaluator ? sp_evaluator_move(job->evaluator, x, error)
                                          : sp_evaluator_new(job->problem, x, 0, &job->evaluator, error);
    if (status)
        free(x);
    else
        job->x = x;
    return status;
}

static kilter_status make_cut(sp_job *job, sp_span span, sp_buffer *result, kilter_error *error) {
    int columns = job->problem->stage[0].columns;
    sp_cut cut = {.slope = calloc((size_t)columns + 1, sizeof(double))};
    if (!cut.slope)
        return sp_fail(error, KILTER_ERR_MEMORY, "making a cut: memory ran out; use fewer workers");
    kilter_status status = sp_cut_make(job->evaluator, span, columns, &cut, error);
    if (!status)
        sp_cut_put(result, &cut, columns);
    free(cut.slope);
    return status;
}

static kilter_status make_costs(sp_job *job, sp_span span, sp_buffer *result, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (uint64_t i = span.lo; !status && i < span.hi; i++) {
        double cost = 0;
        status = sp_evaluator_cost(job->evaluator, i, &cost, error);
        sp_put_f64(result, cost);
    }
    return status;
}

kilter_status sp_job_carry_out(sp_job *job, const void *data, size_t size, uint64_t task, sp_buffer *result,
                               kilter_error *error) {
    sp_reader reader = sp_reader_of(data, size);
    sp_order order;
    if (!get_order(&reader, job->problem, &order))
        return bad_order(error);
    double *x = get_decision(&reader, job->problem->stage[0].columns);
    if (!x)
        return sp_fail(error, KILTER_ERR_MEMORY, "reading a task: memory ran out; use fewer workers");
    if (!sp_reader_done(&reader)) {
        free(x);
        return bad_order(error);
    }
    kilter_status status = go_to(job, x, error);
    if (!status)
        status = sp_evaluator_remember(job->evaluator, order.remember ? order.sampling.scenarios : 0, error);
    if (status)
        return status;
    sp_evaluator_sample(job->evaluator, &order.sampling);
    sp_span span = sp_cluster(order.sampling.scenarios, order.clusters, task % order.clusters);
    return order.wanted == SP_WANT_CUT ? make_cut(job, span, result, error)
                                       : make_costs(job, span, result, error);
}
