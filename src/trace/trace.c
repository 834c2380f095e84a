/* The queue between the threads of the run and the thread that writes the record. A row is in one block of
 * memory: its header, its struct, and the texts to which the struct points. Blocks never move. */
#include "trace/record.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sys/sys.h"

enum {
    BATCH_ROWS = 4096,
    BATCH_NS = 250000000,
    /* least nanoseconds between two batches with results, which limits the load of the disk */
    RESULTS_NS = 20000000,
    BLOCK_BYTES = 64 * 1024,
    SPARE_BLOCKS_MAX = 64,
    TEXT_BYTES_MAX = 32 * 1024, /* longer texts are cut, so that each row needs at most two blocks */
};
/* Limits for the bytes of all waiting rows. Above bulk_bytes_max (about a million chunks), rows of the
 * frequent kinds are dropped. Above waiting_bytes_max, rows of the rare kinds are dropped, too, except
 * results. */
static const size_t bulk_bytes_max = (size_t)128 << 20;
static const size_t waiting_bytes_max = (size_t)144 << 20;

typedef struct block {
    struct block *next;
    size_t capacity, used; /* capacity: bytes for data; used: bytes of data */
    uint64_t rows;
    max_align_t data[];
} block;

typedef struct row_head {
    uint32_t kind;
    uint32_t bytes; /* bytes of the row, with this header and the texts */
} row_head;

struct kl_trace {
    char *path;
    const kl_trace_run_row *run; /* belongs to the caller, and is used only while kl_trace_open() waits */
    kl_record *record;           /* used only by the thread that writes */
    pthread_t writer;
    pthread_mutex_t lock; /* protects all fields below */
    pthread_cond_t wake;  /* wakes the thread that writes: rows wait, or the trace is closing */
    pthread_cond_t ready; /* wakes kl_trace_open(): the file is open, or opening failed */
    pthread_cond_t room;  /* wakes push(), which waits until the disk has taken rows */
    bool waits, opened, closing, failed;
    /* function that is called when results are on the disk; NULL: the record holds no results */
    kl_trace_stored_fn stored;
    void *stored_context;
    uint64_t results;            /* number of results in the blocks of the queue */
    struct timespec results_due; /* time by which the waiting results must be written */
    bool hurry, told;   /* hurry: waiting results must be stored at once; told: the failure was reported */
    kilter_error first; /* the failure that ended the recording */
    double ended_s;
    block *head, *tail, *spare;
    uint32_t spares;
    uint64_t rows; /* number of rows in the blocks of the queue */
    /* bytes of the blocks of the queue, and of the batch that is being written */
    size_t waiting_bytes;
    uint64_t dropped;
};

/* ---- what the threads of the run do ---- */

static block *new_block(kl_trace *trace, size_t bytes) {
    block *b = trace->spare;
    if (b && bytes <= b->capacity) {
        trace->spare = b->next;
        trace->spares--;
    } else {
        size_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        b = malloc(sizeof *b + capacity);
        if (!b)
            return NULL;
        b->capacity = capacity;
    }
    b->next = NULL;
    b->used = 0;
    b->rows = 0;
    return b;
}

/* Return memory for a row in the queue; NULL: the row must be dropped. */
static void *reserve(kl_trace *trace, size_t bytes, size_t bytes_max) {
    while (trace->waits && !trace->failed && trace->waiting_bytes + bytes > bytes_max)
        pthread_cond_wait(&trace->room, &trace->lock);
    if (trace->failed || trace->waiting_bytes + bytes > bytes_max)
        return NULL;
    block *b = trace->tail;
    if (!b || bytes > b->capacity - b->used) {
        b = new_block(trace, bytes);
        if (!b)
            return NULL;
        if (trace->tail)
            trace->tail->next = b;
        else
            trace->head = b;
        trace->tail = b;
    }
    void *room = (char *)b->data + b->used;
    b->used += bytes;
    b->rows++;
    trace->waiting_bytes += bytes;
    trace->rows++;
    return room;
}

/* Return whether the data to which this field points must be copied into the queue. */
static bool is_copied(const kl_row_field *field) {
    bool text = field->bind == KL_BIND_TEXT || field->bind == KL_BIND_HOST;
    return (text || field->bind == KL_BIND_COPY) && kl_is_bound(field);
}

static kilter_bytes bytes_at(const kl_row_shape *shape, const void *row, size_t field) {
    const char *at = (const char *)row + shape->fields[field].offset;
    kilter_bytes bytes = {"", 0};
    const char *text;
    if (shape->fields[field].bind == KL_BIND_COPY) {
        memcpy(&bytes, at, sizeof bytes);
        return bytes.size > 0 ? bytes : (kilter_bytes){"", 0};
    }
    memcpy(&text, at, sizeof text);
    return text ? (kilter_bytes){text, strnlen(text, TEXT_BYTES_MAX)} : bytes;
}

/* Copy a row into the queue. Behind the row, copy the texts and bytes in `copied`, each followed by a NUL.
 * Then let the row's fields point to these copies. A field of type kilter_bytes begins with its pointer, so
 * it is handled like a text. */
static void copy_row(char *to, const kl_row_shape *shape, const void *row, const kilter_bytes *copied) {
    memcpy(to, row, shape->size);
    char *copy = to + shape->size;
    for (size_t i = 0; shape->fields[i].column; i++) {
        if (!copied[i].data)
            continue;
        memcpy(copy, copied[i].data, copied[i].size);
        copy[copied[i].size] = '\0';
        memcpy(to + shape->fields[i].offset, &copy, sizeof copy);
        copy += copied[i].size + 1;
    }
}

/* Return how many bytes may wait in the queue when a row of this kind is added. There is no limit for
 * results, because UNSTORED_BYTES_MOST in farm/resume.c limits them. */
static size_t most_waiting(kl_row_kind kind) {
    if (kind == KL_ROW_RESULT)
        return SIZE_MAX;
    return kl_row_shape_of(kind)->bulk ? bulk_bytes_max : waiting_bytes_max;
}

static void push(kl_trace *trace, kl_row_kind kind, const void *row) {
    if (!trace)
        return;
    const kl_row_shape *shape = kl_row_shape_of(kind);
    kilter_bytes copied[KL_ROW_FIELDS_MAX] = {{0}};
    size_t bytes = sizeof(row_head) + shape->size;
    for (size_t i = 0; shape->fields[i].column; i++)
        if (is_copied(&shape->fields[i])) {
            copied[i] = bytes_at(shape, row, i);
            bytes += copied[i].size + 1;
        }
    bytes = (bytes + 7) / 8 * 8;

    pthread_mutex_lock(&trace->lock);
    row_head *head = reserve(trace, bytes, most_waiting(kind));
    if (head) {
        *head = (row_head){.kind = kind, .bytes = (uint32_t)bytes};
        copy_row((char *)(head + 1), shape, row, copied);
        trace->results += kind == KL_ROW_RESULT;
    } else {
        trace->dropped++;
        if (kind == KL_ROW_RESULT) {
            if (!trace->failed)
                kl_fail(&trace->first, KILTER_ERR_MEMORY,
                        "writing results into the run record '%s': memory ran out", trace->path);
            trace->failed = true;
        }
    }
    bool first_result = kind == KL_ROW_RESULT && trace->results == 1;
    bool wake = !head || first_result || trace->rows == 1 || trace->rows == BATCH_ROWS;
    pthread_mutex_unlock(&trace->lock);
    if (wake)
        pthread_cond_signal(&trace->wake);
}

/* clang-format off */
#define PUSHES(name, row_type, kind)                                        \
    void kl_trace_##name(kl_trace *trace, const kl_trace_##row_type *row) { \
        push(trace, KL_ROW_##kind, row);                                    \
    }
PUSHES(worker, worker_row, WORKER)
PUSHES(iteration, iteration_row, ITERATION)
PUSHES(iteration_ended, iteration_end, ITERATION_ENDED)
PUSHES(chunk, chunk_row, CHUNK)
PUSHES(measurement, measurement_row, MEASUREMENT)
PUSHES(failure, failure_row, FAILURE)
PUSHES(loop, loop_row, LOOP)
PUSHES(loop_ended, loop_end, LOOP_ENDED)
PUSHES(array, array_row, ARRAY)
PUSHES(round, round_row, ROUND)
PUSHES(share, share_row, SHARE)
PUSHES(settled, outcome, SETTLED)
PUSHES(came, outcome, CAME)
PUSHES(rank, rank_row, RANK)
PUSHES(watched, watched_row, WATCHED)
PUSHES(watched_rank, watched_rank_row, WATCHED_RANK)
PUSHES(watched_place, watched_place_row, WATCHED_PLACE)
PUSHES(watched_slice, watched_slice_row, WATCHED_SLICE)
PUSHES(call_begins, call, CALL)
PUSHES(call_grows, addition, ADDITION)
PUSHES(result, result_row, RESULT)
/* clang-format on */

void kl_trace_worker_left(kl_trace *trace, uint32_t worker, double left_s, const char *why) {
    push(trace, KL_ROW_WORKER_LEFT,
         &(kl_trace_worker_left_row){.worker = worker, .left_s = left_s, .why = why});
}

void kl_trace_decision(kl_trace *trace, const kl_trace_moment *when, const kl_decision *decision) {
    push(trace, KL_ROW_DECISION,
         &(kl_trace_decision_row){
             .at_s = when->now_s - when->opened_s,
             .run = when->run,
             .round = when->round ? when->round : UINT64_MAX,
             .chunk = when->chunk,
             .kind = kl_decision_name(decision->kind),
             .subject = decision->subject,
             .count = decision->count,
             .forecast_s = decision->forecast_s > 0 ? decision->forecast_s - when->opened_s : 0,
             .gain_s = decision->gain_s,
             .cost_s = decision->cost_s,
             .reason = decision->reason,
             .grounds = when->grounds,
         });
}

void kl_trace_refused(kl_trace *trace, uint64_t round) {
    push(trace, KL_ROW_REFUSED, &(kl_trace_refused_row){.round = round});
}

void kl_trace_hurry(kl_trace *trace) {
    pthread_mutex_lock(&trace->lock);
    trace->hurry = true;
    pthread_mutex_unlock(&trace->lock);
    pthread_cond_signal(&trace->wake);
}

const char *kl_trace_path(const kl_trace *trace) {
    return trace ? trace->path : NULL;
}

/* ---- what the thread that writes does ---- */

/* Return the time that is `ns` nanoseconds from now. Use the real time, even if the run has a simulated
 * clock, because this time limits how long rows wait. */
static struct timespec in_ns(long ns) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += ns;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static struct timespec earlier_of(struct timespec a, struct timespec b) {
    return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec) ? a : b;
}

/* Return whether the thread must write now, without waiting for more rows. */
static bool is_urgent(const kl_trace *trace) {
    return trace->closing || (trace->failed && !trace->told) || (trace->hurry && trace->results > 0);
}

/* Wait for rows. Then wait until they fill a batch, until they have waited long enough, or until they must be
 * written at once. */
static void wait_for_batch(kl_trace *trace) {
    while (trace->rows == 0 && !is_urgent(trace))
        pthread_cond_wait(&trace->wake, &trace->lock);
    struct timespec deadline = in_ns(BATCH_NS);
    while (trace->rows < BATCH_ROWS && !is_urgent(trace)) {
        struct timespec until = trace->results > 0 ? earlier_of(deadline, trace->results_due) : deadline;
        if (pthread_cond_timedwait(&trace->wake, &trace->lock, &until) == ETIMEDOUT)
            break;
    }
    trace->results_due = in_ns(RESULTS_NS);
}

/* Remove the blocks of the next batch from the queue, and return them as a list. */
static block *take_batch(kl_trace *trace) {
    block *batch = trace->head, *last = NULL;
    uint64_t rows = 0;
    while (trace->head && rows < BATCH_ROWS) {
        last = trace->head;
        rows += last->rows;
        trace->head = last->next;
    }
    if (last)
        last->next = NULL;
    if (!trace->head)
        trace->tail = NULL;
    trace->rows -= rows;
    return batch;
}

static uint64_t rows_of(const block *list) {
    uint64_t rows = 0;
    for (; list; list = list->next)
        rows += list->rows;
    return rows;
}

static uint64_t results_of(const block *list) {
    uint64_t results = 0;
    for (; list; list = list->next)
        for (size_t at = 0; at < list->used;) {
            const row_head *head = (const row_head *)((const char *)list->data + at);
            results += head->kind == KL_ROW_RESULT;
            at += head->bytes;
        }
    return results;
}

static void free_blocks(block *list) {
    while (list) {
        block *next = list->next;
        free(list);
        list = next;
    }
}

/* Take back the blocks of a batch that was written. Keep some blocks of the usual size for later rows, and
 * free all others. */
static void give_back(kl_trace *trace, block *list) {
    block *rest = NULL;
    while (list) {
        block *next = list->next;
        trace->waiting_bytes -= list->used;
        bool keep = list->capacity == BLOCK_BYTES && trace->spares < SPARE_BLOCKS_MAX;
        block **to = keep ? &trace->spare : &rest;
        trace->spares += keep;
        list->next = *to;
        *to = list;
        list = next;
    }
    free_blocks(rest);
}

static kilter_status put_block(kl_record *record, const block *b, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t at = 0; at < b->used && status == KILTER_OK;) {
        const row_head *head = (const row_head *)((const char *)b->data + at);
        status = kl_record_put(record, (kl_row_kind)head->kind, head + 1, error);
        at += head->bytes;
    }
    return status;
}

static kilter_status write_batch(kl_record *record, const block *batch, kilter_error *error) {
    kilter_status status = kl_record_begin(record, error);
    for (const block *b = batch; b && status == KILTER_OK; b = b->next)
        status = put_block(record, b, error);
    if (status == KILTER_OK)
        status = kl_record_commit(record, error);
    if (status != KILTER_OK)
        kl_record_rollback(record);
    return status;
}

/* Store the failure that ended the recording. All waiting rows and all later rows are dropped. */
static void stop_recording(kl_trace *trace, const block *batch, const kilter_error *error) {
    trace->failed = true;
    trace->first = *error;
    trace->dropped += rows_of(batch) + trace->rows;
    give_back(trace, trace->head);
    trace->head = trace->tail = NULL;
    trace->rows = trace->results = 0;
}

/* Report to the farm that results are stored, or that recording has failed. The lock is released during the
 * call, because the farm's function may add rows. */
static void tell(kl_trace *trace, uint64_t results) {
    bool fails = trace->failed && !trace->told;
    trace->told |=
        fails; /* set this even if there is no function to call, so that the failure is no longer urgent */
    if (!trace->stored || (!fails && (results == 0 || trace->failed)))
        return;
    pthread_mutex_unlock(&trace->lock);
    trace->stored(trace->stored_context, fails ? 0 : results, fails ? &trace->first : NULL);
    pthread_mutex_lock(&trace->lock);
}

static void write_until_closed(kl_trace *trace) {
    pthread_mutex_lock(&trace->lock);
    for (;;) {
        wait_for_batch(trace);
        if (trace->rows == 0 && trace->closing)
            break;
        block *batch = take_batch(trace);
        uint64_t results = trace->stored ? results_of(batch) : 0;
        trace->results -= results;
        trace->hurry &= trace->results > 0;
        pthread_mutex_unlock(&trace->lock);
        kilter_error error;
        kilter_status status = batch ? write_batch(trace->record, batch, &error) : KILTER_OK;
        pthread_mutex_lock(&trace->lock);
        if (status != KILTER_OK)
            stop_recording(trace, batch, &error);
        give_back(trace, batch);
        tell(trace, results);
        pthread_cond_signal(&trace->room);
    }
    pthread_mutex_unlock(&trace->lock);
}

/* Write the end of the run. This is tried even after a failure, because the disk may have room again. */
static void write_end(kl_trace *trace) {
    kl_trace_run_end end = {.ended_s = trace->ended_s, .dropped_rows = trace->dropped};
    kilter_error error;
    kilter_status status = kl_record_begin(trace->record, &error);
    if (status == KILTER_OK)
        status = kl_record_put(trace->record, KL_ROW_RUN_ENDED, &end, &error);
    if (status == KILTER_OK)
        status = kl_record_put(trace->record, KL_ROW_SESSION_ENDED, &end, &error);
    if (status == KILTER_OK)
        status = kl_record_commit(trace->record, &error);
    if (status == KILTER_OK)
        return;
    kl_record_rollback(trace->record);
    if (!trace->failed)
        trace->first = error;
    trace->failed = true;
}

/* The thread that writes the record. It makes all calls of SQLite. It blocks signals, so that a write above
 * the limit on file sizes returns an error and does not kill the process by SIGXFSZ. */
static void *writer(void *argument) {
    pthread_setname_np(pthread_self(), KL_TRACE_THREAD);
    kl_trace *trace = argument;
    kilter_error error;
    kilter_status status =
        kl_record_open(trace->path, trace->run, trace->stored != NULL, &trace->record, &error);
    char *path = status == KILTER_OK ? strdup(kl_record_path(trace->record)) : NULL;
    pthread_mutex_lock(&trace->lock);
    trace->opened = true;
    if (path) {
        free(trace->path);
        trace->path = path;
    }
    if (status != KILTER_OK) {
        trace->failed = true;
        trace->first = error;
    }
    pthread_cond_signal(&trace->ready);
    pthread_mutex_unlock(&trace->lock);
    if (status == KILTER_OK) {
        write_until_closed(trace);
        write_end(trace);
        kl_record_close(trace->record);
    }
    return NULL;
}

/* ---- opening and closing a trace ---- */

static void free_trace(kl_trace *trace) {
    free_blocks(trace->head);
    free_blocks(trace->spare);
    pthread_cond_destroy(&trace->room);
    pthread_cond_destroy(&trace->ready);
    pthread_cond_destroy(&trace->wake);
    pthread_mutex_destroy(&trace->lock);
    free(trace->path);
    free(trace);
}

static kl_trace *new_trace(const char *path, const kl_trace_run_row *run) {
    kl_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return NULL;
    kl_cond_init(&trace->wake);
    pthread_cond_init(&trace->ready, NULL);
    pthread_cond_init(&trace->room, NULL);
    pthread_mutex_init(&trace->lock, NULL);
    trace->run = run;
    trace->results_due = in_ns(0);
    trace->waits = run->simulated;
    trace->path = strdup(path);
    if (!trace->path) {
        free_trace(trace);
        return NULL;
    }
    return trace;
}

/* Start the thread that writes, and wait until it has opened the file. After a failure, free the trace. */
static kilter_status open_trace(kl_trace *trace, kl_trace **out, kilter_error *error) {
    int failure = kl_thread_start(&trace->writer, writer, trace);
    if (failure) {
        kl_fail(error, KILTER_ERR_SYSTEM,
                "starting the thread that writes the run record '%s': %s; raise the limit of threads",
                trace->path, strerror(failure));
        free_trace(trace);
        return KILTER_ERR_SYSTEM;
    }
    pthread_mutex_lock(&trace->lock);
    while (!trace->opened)
        pthread_cond_wait(&trace->ready, &trace->lock);
    bool failed = trace->failed;
    pthread_mutex_unlock(&trace->lock);
    if (failed) {
        pthread_join(trace->writer, NULL);
        kilter_error why = trace->first;
        free_trace(trace);
        return kl_fail(error, why.status, "%s", why.text);
    }
    *out = trace;
    return KILTER_OK;
}

kilter_status kl_trace_open(const char *path, const kl_trace_run_row *run, kl_trace **out,
                            kilter_error *error) {
    return kl_trace_resume(path, run, NULL, NULL, out, error);
}

kilter_status kl_trace_resume(const char *path, const kl_trace_run_row *run, kl_trace_stored_fn stored,
                              void *context, kl_trace **out, kilter_error *error) {
    kl_trace *trace = new_trace(path, run);
    if (!trace)
        return kl_fail(error, KILTER_ERR_MEMORY, "creating the run record '%s': memory ran out", path);
    trace->stored = stored;
    trace->stored_context = context;
    return open_trace(trace, out, error);
}

uint64_t kl_trace_calls(const kl_trace *trace) {
    return kl_record_calls(trace->record);
}

static kilter_status outcome(const kl_trace *trace, kilter_error *error) {
    if (trace->failed && trace->stored)
        return kl_fail(error, KILTER_ERR_RECORD, "%s (what was stored before is kept)", trace->first.text);
    if (trace->failed)
        return kl_fail(error, KILTER_ERR_RECORD, "%s (%llu rows are missing; the results are complete)",
                       trace->first.text, (unsigned long long)trace->dropped);
    if (trace->dropped)
        return kl_fail(error, KILTER_ERR_RECORD,
                       "writing the run record '%s': the disk was too slow, rows missing: %llu; name a "
                       "file on a faster disk (the results are complete)",
                       trace->path, (unsigned long long)trace->dropped);
    return KILTER_OK;
}

kilter_status kl_trace_close(kl_trace *trace, double ended_s, kilter_error *error) {
    if (!trace)
        return KILTER_OK;
    pthread_mutex_lock(&trace->lock);
    trace->closing = true;
    trace->ended_s = ended_s;
    pthread_mutex_unlock(&trace->lock);
    pthread_cond_signal(&trace->wake);
    pthread_join(trace->writer, NULL);
    kilter_status status = outcome(trace, error);
    free_trace(trace);
    return status;
}
