/* Pack all data for evaluating scenarios as bytes, so that workers on other machines need no files. */
#ifndef SP_JOB_H
#define SP_JOB_H

#include "cut.h"
#include "support.h"

typedef struct sp_job sp_job;

/* Append a job to `bytes`. The caller must check bytes->failed. x[0 … columns) is the decision. If x is NULL
 * and columns is 0, each order (sp_order) contains its own decision. */
void sp_job_pack(sp_buffer *bytes, const sp_file files[SP_FILES], const double *x, int columns,
                 uint64_t seed);

/* Prepare to evaluate a packed job. The job keeps no pointer into `data`. Return KILTER_ERR_INPUT if the
 * bytes are not a job of this version, or an error of sp_problem_read() or sp_evaluator_new(). */
kilter_status sp_job_new(const void *data, size_t size, sp_job **job, kilter_error *error);
void sp_job_free(sp_job *job); /* free a job; NULL is allowed */

/* Compute the cost of a scenario as sp_evaluator_cost() does, at the decision packed in the job. */
kilter_status sp_job_cost(sp_job *job, uint64_t scenario, double *cost, kilter_error *error);

/* An order says what to do with each cluster of scenarios. All tasks of a run get the same order as their
 * input. */
typedef struct sp_order {
    enum sp_wanted {
        SP_WANT_CUT,   /* return the cut of the cluster */
        SP_WANT_COSTS, /* return the cost of each scenario as an f64 */
    } wanted;
    bool remember; /* true: keep the scenarios' bases, which is faster, but changes the last bits of costs */
    sp_sampling sampling;
    uint64_t clusters;
    const double *x; /* x[columns of stage 1]: the first-stage decision */
} sp_order;

void sp_order_pack(sp_buffer *bytes, const sp_order *order, int columns);

/* Carry out the order packed in `data` for a task, which is one cluster of a candidate. The tasks of a
 * candidate have consecutive indices. Append the task's result to `result`. KILTER_ERR_INPUT: the bytes are
 * not an order for this job. KILTER_ERR_TASK: the text names a scenario without a solution.
 * KILTER_ERR_MEMORY: memory ran out. */
kilter_status sp_job_carry_out(sp_job *job, const void *data, size_t size, uint64_t task, sp_buffer *result,
                               kilter_error *error);

#endif
