/* Door of room trace: the run record, one SQLite file a run, written by the master alone. Format:
 * docs/record.md.
 *
 * Writing is off the critical path: the kl_trace_* calls copy a row into memory and return; a thread of its
 * own writes batches. What a slow disk cannot follow is dropped, and a failing one stops the recording, never
 * the run: kl_trace_close() reports both. A NULL trace takes every call and does nothing. */
#ifndef KL_TRACE_H
#define KL_TRACE_H

#include "base/base.h"

typedef struct kl_trace kl_trace;

/* What the file says it is: SQLite's application_id ("Kltr") and user_version. */
enum { KL_RECORD_APPLICATION = 0x4b6c7472, KL_RECORD_FORMAT = 1 };

/* All times below: seconds since the farm was opened (its clock's 0 is kl_trace_run_row.began_unix_s). */
typedef struct kl_trace_run_row {
    const char *program, *version, *transport, *policy, *host;
    double began_unix_s;
    int64_t pid;
    bool simulated;      /* not written: rows wait for the disk, as simulated time stands still meanwhile */
    const char *control; /* path of the socket for `kilter tune`; "": none */
} kl_trace_run_row;

typedef struct kl_trace_worker_row {
    uint32_t worker;
    const char *host, *binding; /* binding: "core 1", or "" */
    int64_t pid;
    double joined_s;
} kl_trace_worker_row;

typedef struct kl_trace_iteration_row { /* one kilter_farm_run() */
    uint64_t run, tasks;
    double units;
    const char *policy;
    uint64_t shared_bytes;
    double began_s;
} kl_trace_iteration_row;

typedef struct kl_trace_iteration_end {
    uint64_t run, failed, chunks;
    uint32_t workers;
    double ended_s, bound_s, equal_split_s;
    const char *decision, *status; /* status: "done", or why it ended early */
} kl_trace_iteration_end;

typedef struct kl_trace_chunk_row { /* written when the chunk is finished or lost */
    uint64_t run, chunk, lo, hi;    /* tasks [lo, hi) */
    uint32_t worker;
    double units, dealt_s, began_s, ended_s; /* began_s, ended_s: by the master's clock; 0: not known */
    double busy_s;                           /* in the work function */
    uint64_t bytes_out, bytes_in, failed;
    bool lost;
} kl_trace_chunk_row;

typedef struct kl_trace_measurement_row {
    double at_s;
    int64_t worker;   /* −1: of the farm as a whole */
    const char *kind; /* "unit_s", "rate_units_per_s", "message_fixed_s", "message_per_byte_s",
                         "round_trip_s", "answer_s", "master_s" */
    double value, sd;
    uint64_t count;
} kl_trace_measurement_row;

typedef struct kl_trace_decision_row {
    uint64_t run, chunk; /* chunk: the one it made; UINT64_MAX: none */
    double at_s;
    int64_t worker;
    const char *kind; /* "deal", "withhold", "policy", "factor", "workers" */
    uint64_t count;   /* tasks given; of "workers": how many */
    const char *reason;
    double forecast_s; /* when it was expected to be finished; 0: no forecast. What came of it: the chunk's
                          ended_s */
    double gain_s;
} kl_trace_decision_row;

/* Create `path`; KILTER_ERR_RECORD naming it when it cannot be written or holds something already. */
kilter_status kl_trace_open(const char *path, const kl_trace_run_row *run, kl_trace **trace,
                            kilter_error *error);
void kl_trace_worker(kl_trace *trace, const kl_trace_worker_row *row);
void kl_trace_worker_left(kl_trace *trace, uint32_t worker, double left_s, const char *why);
void kl_trace_iteration(kl_trace *trace, const kl_trace_iteration_row *row);
void kl_trace_iteration_ended(kl_trace *trace, const kl_trace_iteration_end *row);
void kl_trace_chunk(kl_trace *trace, const kl_trace_chunk_row *row);
void kl_trace_measurement(kl_trace *trace, const kl_trace_measurement_row *row);
void kl_trace_decision(kl_trace *trace, const kl_trace_decision_row *row);
const char *kl_trace_path(const kl_trace *trace); /* the trace's; NULL for a NULL trace */
/* Write what is left, mark the run ended at ended_s, free. KILTER_ERR_RECORD when rows could not be written.
 */
kilter_status kl_trace_close(kl_trace *trace, double ended_s, kilter_error *error);

#endif
