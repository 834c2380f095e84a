/* What a worker needs to evaluate scenarios, as bytes: a worker started elsewhere needs no files. */
#ifndef SP_JOB_H
#define SP_JOB_H

#include "base/base.h"
#include "evaluate.h"

typedef struct sp_job sp_job;

/* Append to `bytes`; check bytes->failed afterwards. x[0 … columns). */
void sp_job_pack(kl_buffer *bytes, const sp_file *core, const sp_file *time, const sp_file *stoch,
                 const double *x, int columns, uint64_t seed);

/* Make ready to evaluate what was packed. Keeps no pointer into `data`.
 * KILTER_ERR_INPUT when the bytes are not a job of this version; else as sp_problem_read, sp_evaluator_new.
 */
kilter_status sp_job_new(const void *data, size_t size, sp_job **job, kilter_error *error);
void sp_job_free(sp_job *job); /* NULL does nothing */

/* As sp_evaluator_cost. */
kilter_status sp_job_cost(sp_job *job, uint64_t scenario, double *cost, kilter_error *error);

#endif
