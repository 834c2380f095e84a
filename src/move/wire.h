/* The farm's messages as bytes. Decoding is safe for any bytes: it reads nothing outside them, and returns
 * false unless they are exactly one well-formed message. Integers are little-endian, see base.h.
 *
 *   worker → master                        master → worker
 *   HELLO    who I am            ─────▶
 *                                ◀─────    WELCOME  you are worker i, with these limits
 *   READY or REFUSE              ─────▶
 *                                ◀─────    PROBE    some bytes to be sent back
 *   ECHO                         ─────▶
 *                                ◀─────    SHARED   shared data of the runs from now on
 *                                ◀─────    CHUNK    tasks [lo, lo + count)
 *   RESULTS, a request for more  ─────▶
 *   HEARTBEAT    the task at hand    ─────▶
 *                                ◀─────    RECALL   return the tasks of a chunk that you have not begun
 *   RETURN   the chunk's end     ─────▶
 *                                ◀─────    RELEASE  finish your task, return the others, and go
 *   LEAVE    why I leave         ─────▶
 *   RENEW    why I leave and must be replaced     ─────▶
 *                                ◀─────    END      the farm is closed, or why you are refused
 *                                ◀─────    RENEW    stop now, even in a task, and why you are replaced
 *
 * In a run that is organised by peers, workers send messages to each other as well:
 *
 *                                ◀─────    OPEN     let other workers connect to you
 *   ADDRESS   connect here       ─────▶
 *                                ◀─────    PEERS    the run begins: you are peer n, with these tasks
 *   NOTE      of a peer          ◀────▶    NOTE     of a peer; also between two workers
 *   WHERE     who is peer n?     ─────▶
 *                                ◀─────    PEER     it is worker i, at this address
 *                                ◀─────    GONE     worker i is gone
 *   WANT      inputs of tasks    ─────▶
 *                                ◀─────    INPUTS   these inputs
 *                                ◀─────    DISBAND  you are no longer a peer of the run */
#ifndef KL_WIRE_H
#define KL_WIRE_H

#include "kilter/run.h"
#include "measure/measure.h"

enum { KL_WIRE_VERSION = 8 };
/* Greatest number of bytes of a result, an input or shared data. Transports limit a message to 1 GiB, and
 * the other parts of the message need some of it. */
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
    KL_OPEN,
    KL_ADDRESS,
    KL_PEERS,
    KL_NOTE,
    KL_WHERE,
    KL_PEER,
    KL_GONE,
    KL_WANT,
    KL_INPUTS,
    KL_DISBAND,
} kl_message_type;

/* Return the type of a message; 0: unknown. */
kl_message_type kl_wire_type(const void *data, size_t size);

/* A worker's first message. Decoding cuts text to fit these fields, and always ends the text with 0. */
typedef struct kl_hello {
    uint32_t version;
    uint64_t pid;
    char host[128], binding[32], program[128];
    char program_version[64]; /* version of the program; "": the program has none */
    bool attends;             /* true: the worker answers messages and sends HEARTBEATs during a task */
} kl_hello;

void kl_wire_put_hello(kl_buffer *out, const kl_hello *hello);
bool kl_wire_get_hello(const void *data, size_t size, kl_hello *hello);

/* The master's answer to HELLO. A limit of 0 means no limit. */
typedef struct kl_welcome {
    uint32_t worker;
    uint64_t tasks_most,
        memory_most; /* number of tasks, and bytes of memory, after which the worker is replaced */
} kl_welcome;

void kl_wire_put_welcome(kl_buffer *out, const kl_welcome *welcome);
bool kl_wire_get_welcome(const void *data, size_t size, kl_welcome *welcome);

void kl_wire_put_plain(kl_buffer *out, kl_message_type type); /* READY, RELEASE, OPEN */
bool kl_wire_get_plain(const void *data, size_t size);

void kl_wire_put_bytes(kl_buffer *out, kl_message_type type, const void *bytes,
                       size_t size); /* REFUSE, PROBE, ECHO, LEAVE, RENEW, END, ADDRESS */
/* Get the text of a message. It is cut to the buffer, and control characters are left out. */
void kl_wire_get_text(const void *data, size_t size, char *text, size_t capacity);

/* Zero bytes in a message align its shared data, the first input of a chunk without weights, and the first
 * result. If the message is aligned for any C type, these are aligned, too. */

/* Shared data are sent with their kl_hash(), so that the worker can check them. */
void kl_wire_put_shared(kl_buffer *out, const void *bytes, size_t size);
bool kl_wire_get_shared(const void *data, size_t size, uint64_t *hash, kilter_bytes *bytes);

/* Tasks [lo, hi) of a chunk. RECALL asks the worker to return those that it has not begun; hi is the
 * chunk's end. RETURN says that the worker did not begin these tasks and will not. So the chunk ends at
 * lo. lo = hi: it has begun all of them. */
typedef struct kl_part {
    uint64_t chunk, lo, hi;
} kl_part;

void kl_wire_put_part(kl_buffer *out, kl_message_type type, const kl_part *part); /* RECALL, RETURN */
bool kl_wire_get_part(const void *data, size_t size, kl_part *part);

/* The report of a heartbeat about a long task. */
typedef struct kl_heartbeat {
    uint64_t chunk, task;
    double elapsed_s;   /* seconds since the task began */
    double cpu_s;       /* CPU seconds that the worker's thread has spent in the task */
    double usual_share; /* CPU time divided by elapsed time, over the finished tasks; 0: not known */
    uint64_t memory;    /* bytes by which the process has grown since it joined; 0: not measured */
} kl_heartbeat;

void kl_wire_put_heartbeat(kl_buffer *out, const kl_heartbeat *heartbeat);
bool kl_wire_get_heartbeat(const void *data, size_t size, kl_heartbeat *heartbeat);

/* The header of a chunk. In the message it is followed by the weights of all tasks, if there are weights,
 * and then by their inputs, if there are inputs. */
typedef struct kl_chunk_head {
    uint64_t run, chunk, lo, count;
    uint64_t shared;       /* kl_hash() of the shared data that these tasks need; 0: no shared data */
    uint64_t result_bytes; /* bytes of each result; 0: any number */
    double
        lead_s; /* the worker requests more tasks when its queue holds less than this many seconds of work */
    double held_s; /* seconds for which the worker's request waited at the master */
    /* true: the link carried no other chunk, so the round trip measures messages only */
    bool quiet;
    bool weighted, inputs;
} kl_chunk_head;

void kl_wire_put_chunk(kl_buffer *out, const kl_chunk_head *head);
/* Check the whole message. If it is valid, `weights` is set to read the first weight, and `inputs` to read
 * the first input. */
bool kl_wire_get_chunk(const void *data, size_t size, kl_chunk_head *head, kl_reader *weights,
                       kl_reader *inputs);

/* A segment of results, from consecutive tasks of one chunk. A RESULTS message has any number of segments. */
typedef struct kl_segment {
    uint64_t chunk, lo, count; /* tasks [lo, lo + count) */
    bool last;                 /* true: the chunk ends with this segment */
    double busy_s;             /* seconds spent on the tasks, including the gaps between two queued tasks */
    double began_s, ended_s;   /* time at which the first task began and at which the last one ended, by the
                                  worker's clock */
    kl_stat unit_s;            /* seconds per unit of work in these tasks */
} kl_segment;

#define KL_FAILED                                                                                            \
    0x80000000u /* this bit of a result's length means that the task failed, and that the bytes are the text \
                   of its error */

void kl_wire_begin_results(kl_buffer *out);
void kl_wire_begin_segment(kl_buffer *out, const kl_segment *begun); /* only `chunk` and `lo` need values */
/* Begin and end one task's result, and write its bytes between the two calls. result_at: the return value
 * of the first call. */
size_t kl_wire_begin_result(kl_buffer *out);
void kl_wire_end_result(kl_buffer *out, size_t result_at, bool failed);
void kl_wire_end_segment(kl_buffer *out, size_t segment_at, const kl_segment *segment);

typedef struct kl_results_head {
    uint32_t segments;
    bool more;     /* true: the worker requests its next chunk */
    double sent_s; /* time of sending in seconds, by the worker's clock */
    /* CPU seconds of the worker since its start, including those for messages; seconds in which its tasks
     * were ready while other processes had the core. cpu_s 0: both are unknown. */
    double cpu_s, delay_s;
    /* Seconds from a request to the arrival of its chunk, and bytes of both, measured while the worker was
     * idle; 0: not measured since the last message. */
    double round_trip_s, round_trip_bytes;
} kl_results_head;

void kl_wire_end_results(kl_buffer *out, const kl_results_head *head);

/* Check the whole message. If it is valid, the caller reads the segments in order, and for each the
 * `count` results. */
bool kl_wire_check_results(const void *data, size_t size, kl_results_head *head);
kl_reader kl_wire_read_results(const void *data, size_t size);
bool kl_wire_next_segment(kl_reader *reader, kl_segment *segment);
bool kl_wire_next_result(kl_reader *reader, bool *failed, kilter_bytes *bytes);

/* A sum: one value that combines the results of several tasks. In runs that reduce, the record stores sums
 * instead of results. */
typedef struct kl_wire_sum {
    uint32_t spans;
    const uint8_t *at; /* the spans of tasks, as pairs of 64-bit numbers */
    kilter_bytes value;
} kl_wire_sum;

void kl_wire_put_sum(kl_buffer *out, const kl_ranges *tasks, kilter_bytes value);
/* Read a sum. false: the bytes are no sum, for example because they are results. */
bool kl_wire_read_sum(const void *data, size_t size, kl_wire_sum *sum);
kl_span kl_wire_sum_span(const kl_wire_sum *sum, uint32_t i);

/* --- runs that are organised by peers; wire_peers.c --- */

/* The beginning of a run. It is followed by the spans of the tasks with which the peer begins. */
typedef struct kl_peers_head {
    uint64_t run, tasks;
    uint32_t number, peers; /* number of this peer; number of peers at the beginning, including the master */
    uint64_t shared;        /* same meaning as in kl_chunk_head */
    uint64_t result_bytes;
    bool reduces, inputs; /* true: results are combined on their way to the master; true: tasks have inputs */
    char policy[16];
    uint64_t seed;
    char signals[256]; /* folder for signals; "": peers call for help by messages */
} kl_peers_head;

void kl_wire_put_peers(kl_buffer *out, const kl_peers_head *head, const kl_ranges *tasks);
/* Read the head, and add the spans to `tasks`. No span is empty or ends after head->tasks. false: the
 * message is malformed, or memory ran out. */
bool kl_wire_get_peers(const void *data, size_t size, kl_peers_head *head, kl_ranges *tasks);

/* The head of a message between peers. `from` is the number of the peer that sends it. */
typedef struct kl_note_head {
    uint64_t run;
    uint32_t from, worker;
} kl_note_head;

void kl_wire_put_note(kl_buffer *out, const kl_note_head *head, const void *note, size_t size);
bool kl_wire_get_note(const void *data, size_t size, kl_note_head *head, kilter_bytes *note);

/* A peer of a run. A message WHERE holds only the run and the number. */
typedef struct kl_where {
    uint64_t run;
    uint32_t number, worker;
    char address[256]; /* address of the peer; "": it is gone */
} kl_where;

void kl_wire_put_where(kl_buffer *out, kl_message_type type, const kl_where *where); /* WHERE, PEER */
bool kl_wire_get_where(const void *data, size_t size, kl_where *where);

void kl_wire_put_number(kl_buffer *out, kl_message_type type,
                        uint64_t number); /* GONE: a worker; DISBAND: a run */
bool kl_wire_get_number(const void *data, size_t size, uint64_t *number);

/* Tasks [lo, hi) of a run. In a message INPUTS, their inputs follow. */
typedef struct kl_wanted {
    uint64_t run, lo, hi;
} kl_wanted;

void kl_wire_put_wanted(kl_buffer *out, kl_message_type type, const kl_wanted *wanted);
bool kl_wire_get_wanted(const void *data, size_t size, kl_wanted *wanted);
/* Read the head of INPUTS. `inputs` then holds hi − lo inputs, which kl_get_span() reads. */
bool kl_wire_get_inputs(const void *data, size_t size, kl_wanted *wanted, kl_reader *inputs);

/* --- signals in a shared folder; signal.c --- */

/* A signal of a peer: the text of a small file, whose name says which kind of signal it is. A call for
 * help is named SOS.run.peer. An offer of help to peer `to` is named AID.run.to.peer. */
typedef struct kl_signal {
    bool offers; /* true: an offer; false: a call */
    uint64_t run;
    uint32_t peer, to; /* to: the peer that receives the offer; 0 in a call */
    uint64_t left;     /* number of tasks that `peer` has left */
    double rate;       /* tasks per second of `peer`; 0: not known */
} kl_signal;

enum { KL_SIGNAL_BYTES = 256 }; /* bytes that are enough for the text of a signal, and for its name */

size_t kl_signal_put(const kl_signal *signal, char text[KL_SIGNAL_BYTES]); /* return the text's size */
/* Read a signal from untrusted bytes. false: they are no signal. */
bool kl_signal_get(const void *data, size_t size, kl_signal *signal);
void kl_signal_name(const kl_signal *signal, char name[KL_SIGNAL_BYTES]);
/* Write the common beginning of the names of all calls of the run, or of all offers to peer `to`. */
void kl_signal_prefix(const kl_signal *signal, char prefix[KL_SIGNAL_BYTES]);

#endif
