/* Values with which peers report their work, in a run that workers organise as peers. A value has results of
 * tasks and measurements of these tasks. Other peers combine values on the way to the master (kl_combine).
 * The functions may be given any bytes, and refuse malformed values. Private to the folder engine. */
#ifndef KL_HARVEST_H
#define KL_HARVEST_H

#include "engine/engine.h"
#include "measure/measure.h"

/* Shortest time in seconds that a peer measures. Tasks that take less are measured together, because other
 * processes may take the peer's core for some milliseconds. */
static const double KL_PEER_LEAST_S = 5e-3;

typedef struct kl_harvest_stat { /* times of the tasks of one worker, including failed tasks */
    uint32_t worker;
    kl_stat task_s;
} kl_harvest_stat;

/* Results of consecutive tasks of one worker. kl_wire_next_result() reads `results`. */
typedef struct kl_harvest_segment {
    uint64_t lo;
    uint32_t worker, count;
    kilter_bytes results;
} kl_harvest_segment;

typedef struct kl_harvest { /* A value while it is being read. */
    kilter_bytes sum;
    uint32_t stats; /* number of workers whose measurements are not read yet */
    kl_reader reader;
} kl_harvest;

/* Memory and functions for combining values. The functions of a kl_combine get this struct as `self`. */
typedef struct kl_reaper {
    kl_reducer reducer; /* function of the program that combines sums of results */
    size_t sum_bytes;   /* bytes of a sum of results; 0: the run does not combine its results */
    kl_buffer scratch, aligned;
} kl_reaper;

/* Make the value of one task. task->results is one result, which kl_wire_end_result() has completed. In a run
 * that combines its results, the result of a successful task becomes the value's sum, and a failed task
 * becomes a segment. */
void kl_harvest_task(kl_buffer *out, const kl_reaper *reaper, const kl_harvest_segment *task, double task_s);
bool kl_harvest_add(void *reaper, kl_buffer *into, const void *value, size_t size);
/* Return whether the bytes are a valid value, as peers send it. */
bool kl_harvest_check(void *reaper, const void *value, size_t size);
void kl_reaper_free(kl_reaper *reaper);

/* Begin to read a peer's value. false: the value is malformed, or its sum has another size than `sum_bytes`.
 */
bool kl_harvest_read(const void *value, size_t size, size_t sum_bytes, kl_harvest *harvest);
bool kl_harvest_next_stat(kl_harvest *harvest, kl_harvest_stat *stat);
/* Read the next segment of a value, after the measurements of all workers. false: there is no further
 * segment. */
bool kl_harvest_next_segment(kl_harvest *harvest, kl_harvest_segment *segment);

#endif
