/* The farm's messages as bytes. Any bytes can be decoded safely: nothing outside them is read, and the result
 * is false unless they are exactly one well-formed message. Integers are little-endian, see base.h.
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
/* Greatest number of bytes of a result, an input or shared data. A message has at most 1 GiB in total. */
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

/* A worker's first message. When a message is read, text that is too long for these fields is cut, and
 * always ends with 0. */
typedef struct kl_hello {
    uint32_t version;
    uint64_t pid;
    char host[128], binding[32], program[128];
    char program_version[64]; /* version of the program, as the program states it; empty: none */
    bool attends;             /* true: the worker answers messages and sends heartbeats during a task */
} kl_hello;

void kl_wire_put_hello(kl_buffer *out, const kl_hello *hello);
bool kl_wire_get_hello(const void *data, size_t size, kl_hello *hello);

/* The master's answer to HELLO. A limit of 0 means no limit. */
typedef struct kl_welcome {
    uint32_t worker;
    /* tasks_most: number of tasks after which the worker is replaced; memory_most: bytes of memory after
     * which it is replaced */
    uint64_t tasks_most, memory_most;
} kl_welcome;

void kl_wire_put_welcome(kl_buffer *out, const kl_welcome *welcome);
bool kl_wire_get_welcome(const void *data, size_t size, kl_welcome *welcome);

void kl_wire_put_plain(kl_buffer *out, kl_message_type type); /* write READY, RELEASE or OPEN */
bool kl_wire_get_plain(const void *data, size_t size);

void kl_wire_put_bytes(kl_buffer *out, kl_message_type type, const void *bytes,
                       size_t size); /* write REFUSE, PROBE, ECHO, LEAVE, RENEW, END or ADDRESS */
/* Read the text of a message. Text that is too long for the buffer is cut, and control characters are left
 * out. */
void kl_wire_get_text(const void *data, size_t size, char *text, size_t capacity);

/* Zero bytes in a message align three kinds of data: the shared data; the first input of a chunk without
 * weights; the first result. If the message itself is aligned for any C type, so are these data.
 */

/* Shared data are sent with their kl_hash(), so that the worker can check them. */
void kl_wire_put_shared(kl_buffer *out, const void *bytes, size_t size);
bool kl_wire_get_shared(const void *data, size_t size, uint64_t *hash, kilter_bytes *bytes);

/* Tasks [lo, hi) of a chunk. RECALL asks the worker to return the tasks among them that it has not begun; hi
 * is the end of the chunk. RETURN says that the worker will not do these tasks, so the chunk now ends at lo.
 * RETURN with lo = hi returns no task, because the worker has begun all of them. */
typedef struct kl_part {
    uint64_t chunk, lo, hi;
} kl_part;

void kl_wire_put_part(kl_buffer *out, kl_message_type type, const kl_part *part); /* write RECALL or RETURN */
bool kl_wire_get_part(const void *data, size_t size, kl_part *part);

/* The report of a heartbeat: how a long task is going. */
typedef struct kl_heartbeat {
    uint64_t chunk, task;
    double elapsed_s; /* seconds since the task began */
    double cpu_s;     /* CPU seconds that the worker's thread has spent in the task */
    /* CPU time divided by elapsed time, over the tasks that the worker has finished; 0: not known */
    double usual_share;
    uint64_t memory; /* bytes by which the worker's process has grown since it joined; 0: not measured */
} kl_heartbeat;

void kl_wire_put_heartbeat(kl_buffer *out, const kl_heartbeat *heartbeat);
bool kl_wire_get_heartbeat(const void *data, size_t size, kl_heartbeat *heartbeat);

/* The header of a chunk. In the message, the weights of all tasks follow if there are weights, and then the
 * inputs if there are inputs. */
typedef struct kl_chunk_head {
    uint64_t run, chunk, lo, count;
    uint64_t shared;       /* kl_hash() of the shared data that these tasks need; 0: no shared data */
    uint64_t result_bytes; /* bytes of each result; 0: results may have any size */
    double lead_s; /* seconds of work: the worker requests more tasks when its queue holds less than this */
    double held_s; /* seconds for which the worker's request for tasks waited at the master */
    /* true: no other chunk used the link when this one was sent, so the measured round trip has no wait for
     * the link */
    bool quiet;
    bool weighted, inputs;
} kl_chunk_head;

void kl_wire_put_chunk(kl_buffer *out, const kl_chunk_head *head);
/* Check the whole message. If it is valid, set `weights` to read from the first weight, and `inputs` to read
 * from the first input. */
bool kl_wire_get_chunk(const void *data, size_t size, kl_chunk_head *head, kl_reader *weights,
                       kl_reader *inputs);

/* A segment of results: the results of consecutive tasks of one chunk. A RESULTS message has any number of
 * segments. */
typedef struct kl_segment {
    uint64_t chunk, lo, count; /* tasks [lo, lo + count) */
    bool last;                 /* true: the chunk ends with this segment */
    double busy_s;             /* seconds spent on the tasks, including the gaps between two queued tasks */
    /* began_s: time at which the first task began, by the worker's clock; ended_s: time at which the last
     * task ended */
    double began_s, ended_s;
    kl_stat unit_s; /* seconds per unit of work in the tasks of this segment */
} kl_segment;

#define KL_FAILED                                                                                            \
    0x80000000u /* bit in a result's length: the task failed, and the bytes are the text of its error */

void kl_wire_begin_results(kl_buffer *out);
/* the caller must set only the fields `chunk` and `lo` of `begun` */
void kl_wire_begin_segment(kl_buffer *out, const kl_segment *begun);
/* Begin and end the result of one task. The caller writes the result's bytes between the two calls.
 * result_at: the value that kl_wire_begin_result() returned. */
size_t kl_wire_begin_result(kl_buffer *out);
void kl_wire_end_result(kl_buffer *out, size_t result_at, bool failed);
void kl_wire_end_segment(kl_buffer *out, size_t segment_at, const kl_segment *segment);

typedef struct kl_results_head {
    uint32_t segments;
    bool more;     /* true: the worker requests its next chunk */
    double sent_s; /* time in seconds at which the message was sent, by the worker's clock */
    /* cpu_s: CPU seconds of the worker since its start, including those for messages; delay_s: seconds in
     * which tasks of the worker were ready to run while other processes had the core; 0: the value is
     * unknown. */
    double cpu_s, delay_s;
    /* round_trip_s: seconds from a request to the arrival of its chunk, measured while the worker was idle;
     * 0: not measured since the last message. round_trip_bytes: bytes of the request and the chunk. */
    double round_trip_s, round_trip_bytes;
} kl_results_head;

void kl_wire_end_results(kl_buffer *out, const kl_results_head *head);

/* Check the whole message. If it is valid, the caller reads the segments in order, and the `count` results
 * of each segment. */
bool kl_wire_check_results(const void *data, size_t size, kl_results_head *head);
kl_reader kl_wire_read_results(const void *data, size_t size);
bool kl_wire_next_segment(kl_reader *reader, kl_segment *segment);
bool kl_wire_next_result(kl_reader *reader, bool *failed, kilter_bytes *bytes);

/* A sum: one value that combines the results of several tasks. In runs that reduce results, the record
 * stores sums instead of results. */
typedef struct kl_wire_sum {
    uint32_t spans;
    const uint8_t *at; /* the spans of tasks, as pairs of 64-bit numbers */
    kilter_bytes value;
} kl_wire_sum;

void kl_wire_put_sum(kl_buffer *out, const kl_ranges *tasks, kilter_bytes value);
/* Read a sum. Return false if the bytes are not a sum, for example because they are results. */
bool kl_wire_read_sum(const void *data, size_t size, kl_wire_sum *sum);
kl_span kl_wire_sum_span(const kl_wire_sum *sum, uint32_t i);

/* --- wire_peers.c: runs that are organised by peers --- */

/* The message with which a run begins for a peer. In the message, the spans of the tasks that the peer gets
 * first come after these members. */
typedef struct kl_peers_head {
    uint64_t run, tasks;
    /* number: number of this peer; peers: number of peers at the beginning of the run, including the
     * master */
    uint32_t number, peers;
    uint64_t shared; /* kl_hash() of the shared data that the run needs; 0: no shared data */
    uint64_t result_bytes;
    /* reduces: results are combined on their way to the master; inputs: tasks have inputs */
    bool reduces, inputs;
    char policy[16];
    uint64_t seed;
    char signals[256]; /* folder for signals; empty: peers call for help by messages */
} kl_peers_head;

void kl_wire_put_peers(kl_buffer *out, const kl_peers_head *head, const kl_ranges *tasks);
/* Read the message, and add its spans to `tasks`. No span is empty or ends after head->tasks. Return false
 * if the message is malformed, or memory ran out. */
bool kl_wire_get_peers(const void *data, size_t size, kl_peers_head *head, kl_ranges *tasks);

/* The head of a message between peers. from: number of the peer that sends the message. */
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
    char address[256]; /* address of the peer; empty: the peer has left */
} kl_where;

void kl_wire_put_where(kl_buffer *out, kl_message_type type, const kl_where *where); /* write WHERE or PEER */
bool kl_wire_get_where(const void *data, size_t size, kl_where *where);

void kl_wire_put_number(kl_buffer *out, kl_message_type type,
                        uint64_t number); /* in GONE: number of a worker; in DISBAND: number of a run */
bool kl_wire_get_number(const void *data, size_t size, uint64_t *number);

/* Tasks [lo, hi) of a run. In a message INPUTS, the inputs of these tasks follow. */
typedef struct kl_wanted {
    uint64_t run, lo, hi;
} kl_wanted;

void kl_wire_put_wanted(kl_buffer *out, kl_message_type type, const kl_wanted *wanted);
bool kl_wire_get_wanted(const void *data, size_t size, kl_wanted *wanted);
/* Read the head of INPUTS. Afterwards `inputs` holds hi − lo inputs, to be read by kl_get_span(). */
bool kl_wire_get_inputs(const void *data, size_t size, kl_wanted *wanted, kl_reader *inputs);

/* --- signal.c: signals in a shared folder --- */

/* A signal of a peer: the text of a small file, whose name says which kind of signal it is. A call for help
 * is the file SOS.run.peer. An offer of help to peer `to` is the file AID.run.to.peer. */
typedef struct kl_signal {
    bool offers; /* true: an offer of help; false: a call for help */
    uint64_t run;
    /* peer: the peer that sends the signal; to: the peer that receives an offer, 0 in a call */
    uint32_t peer, to;
    uint64_t left; /* number of tasks that the sending peer has left */
    double rate;   /* tasks per second of the sending peer; 0: not known */
} kl_signal;

enum { KL_SIGNAL_BYTES = 256 }; /* bytes that are enough for the text of a signal, and for its name */

size_t kl_signal_put(const kl_signal *signal, char text[KL_SIGNAL_BYTES]); /* Return the size of the text. */
/* Read a signal from untrusted bytes. Return false if the bytes are not a signal. */
bool kl_signal_get(const void *data, size_t size, kl_signal *signal);
void kl_signal_name(const kl_signal *signal, char name[KL_SIGNAL_BYTES]);
/* If the signal is a call, write the beginning that the file names of all calls for help of the run share. If
 * it is an offer, write the beginning that the names of all offers to peer `to` share. */
void kl_signal_prefix(const kl_signal *signal, char prefix[KL_SIGNAL_BYTES]);

#endif
