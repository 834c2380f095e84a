/* The farm's messages as bytes. Decoding trusts nothing: whatever the bytes, it ends, reads nothing outside
 * them and says false for what is not exactly one well-formed message. Integers little-endian, see base.h.
 *
 *   worker → master                        master → worker
 *   HELLO    who I am            ─────▶
 *                                ◀─────    WELCOME  you are worker i, and may do so much
 *   READY or REFUSE              ─────▶
 *                                ◀─────    PROBE    some bytes; send them back
 *   ECHO                         ─────▶
 *                                ◀─────    SHARED   shared data of the runs from now on
 *                                ◀─────    CHUNK    tasks [lo, lo + count)
 *   RESULTS (and: send more)     ─────▶
 *   HEARTBEAT    the task at hand    ─────▶
 *                                ◀─────    RECALL   give back what you have not begun of a chunk
 *   RETURN   its end comes back  ─────▶
 *                                ◀─────    RELEASE  finish the task at hand, give back the rest, and go
 *   LEAVE    I go, and why       ─────▶
 *   RENEW    the same, and I come again, as new ─▶
 *                                ◀─────    END      the farm is closed; or why this worker is sent away
 *                                ◀─────    RENEW    begin anew at once, whatever is at hand: why */
#ifndef KL_WIRE_H
#define KL_WIRE_H

#include "kilter/run.h"
#include "measure/measure.h"

enum { KL_WIRE_VERSION = 6 };
/* Most bytes of one result, input or shared data: under the transports' limit of 1 GiB a message, with room
 * for the rest of it. */
enum { KL_WIRE_MOST_BYTES = (1 << 30) - (1 << 20) };

typedef enum kl_message_type {
    KL_HELLO = 1,
    KL_WELCOME,
    KL_READY,
    KL_REFUSE,
    KL_PROBE,
    KL_ECHO,
    KL_SHARED,
    KL_CHUNK,
    KL_RESULTS,
    KL_END,
    KL_RELEASE,
    KL_RECALL,
    KL_RETURN,
    KL_LEAVE,
    KL_HEARTBEAT,
    KL_RENEW,
} kl_message_type;

/* The type of a message; 0 when it has none we know. */
kl_message_type kl_wire_type(const void *data, size_t size);

/* Text in decoded messages is cut to what fits and always ended. */
typedef struct kl_hello {
    uint32_t version;
    uint64_t pid;
    char host[128], binding[32], program[128];
    char program_version[64]; /* "": the program does not say */
    bool attends;             /* it answers, and sends HEARTBEATs, while a task runs */
} kl_hello;

void kl_wire_put_hello(kl_buffer *out, const kl_hello *hello);
bool kl_wire_get_hello(const void *data, size_t size, kl_hello *hello);

/* 0: as many, as much as it likes. */
typedef struct kl_welcome {
    uint32_t worker;
    uint64_t tasks_most, memory_most; /* before it begins anew; memory in bytes */
} kl_welcome;

void kl_wire_put_welcome(kl_buffer *out, const kl_welcome *welcome);
bool kl_wire_get_welcome(const void *data, size_t size, kl_welcome *welcome);

void kl_wire_put_plain(kl_buffer *out, kl_message_type type); /* READY, RELEASE */
bool kl_wire_get_plain(const void *data, size_t size);

void kl_wire_put_bytes(kl_buffer *out, kl_message_type type, const void *bytes,
                       size_t size); /* REFUSE, PROBE, ECHO, LEAVE, RENEW, END */
/* What is behind the type, as text somebody may print: cut to what fits, without control characters. */
void kl_wire_get_text(const void *data, size_t size, char *text, size_t capacity);

/* Where the message itself is aligned for any type, so are shared data, the first input of a chunk without
 * weights, and the first result of a message: zeros before them see to that. */

/* Shared data goes with its kl_hash(), so that what arrived can be held against what was meant. */
void kl_wire_put_shared(kl_buffer *out, const void *bytes, size_t size);
bool kl_wire_get_shared(const void *data, size_t size, uint64_t *hash, kilter_bytes *bytes);

/* Tasks [lo, hi) of a chunk. RECALL: give back what is not begun of [lo, hi), hi its end. RETURN: they were
 * not begun and will not be: the chunk now ends at lo; none, lo = hi, when all of it was begun. */
typedef struct kl_part {
    uint64_t chunk, lo, hi;
} kl_part;

void kl_wire_put_part(kl_buffer *out, kl_message_type type, const kl_part *part); /* RECALL, RETURN */
bool kl_wire_get_part(const void *data, size_t size, kl_part *part);

/* How a task that takes long gets on. */
typedef struct kl_heartbeat {
    uint64_t chunk, task;
    double elapsed_s;   /* since it was begun */
    double cpu_s;       /* that the worker's thread has used for it */
    double usual_share; /* CPU time over elapsed time in the tasks it has finished; 0: not known */
    uint64_t memory;    /* bytes its process took since it joined; 0: it was not asked to look */
} kl_heartbeat;

void kl_wire_put_heartbeat(kl_buffer *out, const kl_heartbeat *heartbeat);
bool kl_wire_get_heartbeat(const void *data, size_t size, kl_heartbeat *heartbeat);

/* A chunk: the header, then each task's weight if it has weights, then each task's input if it has inputs. */
typedef struct kl_chunk_head {
    uint64_t run, chunk, lo, count;
    uint64_t shared;       /* kl_hash() of the shared data it is for; 0: none was given */
    uint64_t result_bytes; /* of each result; 0: any number */
    double lead_s;         /* ask for more when less than this is left to do */
    double held_s;         /* how long the request lay at the master */
    bool quiet;            /* no other chunk was on its way: the round trip tells what messages cost */
    bool weighted, inputs;
} kl_chunk_head;

void kl_wire_put_chunk(kl_buffer *out, const kl_chunk_head *head);
/* Checks the whole message; on true `weights` stands at the first weight and `inputs` at the first input. */
bool kl_wire_get_chunk(const void *data, size_t size, kl_chunk_head *head, kl_reader *weights,
                       kl_reader *inputs);

/* Results: any number of segments, each some consecutive tasks of one chunk. */
typedef struct kl_segment {
    uint64_t chunk, lo, count; /* tasks [lo, lo + count) */
    bool last;                 /* the chunk ends here */
    double busy_s;             /* with its tasks, and between them while there were more */
    double began_s, ended_s;   /* its first task's begin and its last one's end, by the worker's clock */
    kl_stat unit_s;            /* of its tasks */
} kl_segment;

#define KL_FAILED 0x80000000u /* set in a task's length when its bytes are the text of its error */

void kl_wire_begin_results(kl_buffer *out);
void kl_wire_begin_segment(kl_buffer *out, const kl_segment *begun); /* chunk and lo count */
/* One task's result: what is put between the two calls. begin gives the offset that end wants. */
size_t kl_wire_begin_result(kl_buffer *out);
void kl_wire_end_result(kl_buffer *out, size_t result_at, bool failed);
void kl_wire_end_segment(kl_buffer *out, size_t segment_at, const kl_segment *segment);

typedef struct kl_results_head {
    uint32_t segments;
    bool more;     /* the worker asks for its next chunk */
    double sent_s; /* by the worker's clock */
    /* CPU time the worker has used since it began, messages included, and how long it was ready in its tasks
     * while others had its core; cpu_s 0: both are not known. */
    double cpu_s, delay_s;
    /* A request and the chunk it brought, while the worker had nothing else to do: the time both were under
     * way, and their bytes together. 0: there was none since the last message. */
    double round_trip_s, round_trip_bytes;
} kl_results_head;

void kl_wire_end_results(kl_buffer *out, const kl_results_head *head);

/* Checks the whole message. Then read its segments one by one, each with its `count` results. */
bool kl_wire_check_results(const void *data, size_t size, kl_results_head *head);
kl_reader kl_wire_read_results(const void *data, size_t size);
bool kl_wire_next_segment(kl_reader *reader, kl_segment *segment);
bool kl_wire_next_result(kl_reader *reader, bool *failed, kilter_bytes *bytes);

#endif
