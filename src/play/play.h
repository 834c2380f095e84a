/* Door of room play: compute how long a series of chunks takes, message by message, on workers of constant
 * speed. Pure. A policy that searches for its factor uses it while a farm runs; room sim simulates whole
 * farms. */
#ifndef KL_PLAY_H
#define KL_PLAY_H

#include "measure/measure.h"
#include "platform/platform.h"

/* --- constants of the farm that this room uses as well --- */

/* A worker sends its results when the oldest has waited this long, or when they have this size; in this room,
 * when a task has ended, too. */
static const double KL_FLUSH_S = 0.1;
static const size_t KL_FLUSH_BYTES = (size_t)1 << 19;
/* Requesting ahead is of no use if the remaining work is shorter than sending a message. */
static const double KL_HIDES_NOTHING_S = 10e-6;
/* A worker asks ahead of its need by this multiple of the longest recent answer time. The longest time is
 * multiplied by KL_ANSWER_MEMORY with each answer. */
static const double KL_ANSWERS_AHEAD = 1.5, KL_ANSWER_MEMORY = 0.9, KL_ANSWER_MOST_S = 20e-3;
/* Pause between two looks at a held-back worker: at least this time, this part of a task's mean time, and
 * this multiple of the time that a look takes the master. */
static const double KL_HELD_S = 1e-3, KL_HELD_TASKS = 1.0 / 32, KL_HELD_LOOKS = 8;
/* seconds between two heartbeats of a worker in a long task */
static const double KL_HEARTBEAT_S = 0.25;
/* Number of times in a row that the master asks for rescues of late workers. */
enum { KL_RESCUES_AT_ONCE = 16 };

/* --- a run --- */

/* Tasks [lo, lo + count), dealt to one worker in one message. */
typedef struct kl_play_chunk {
    uint64_t lo, count;
    uint32_t worker;
} kl_play_chunk;

/* Consecutive tasks of one chunk, reported as finished. */
typedef struct kl_play_segment {
    uint32_t worker;
    double began_s, ended_s, busy_s;
    kl_stat task_s; /* seconds of single tasks */
} kl_play_segment;

/* Chooses the chunks and is told their outcome. All times are the master's. */
typedef struct kl_play_dealer {
    void *self;
    /* Choose the tasks for `worker` now, at most `left`; 0: none now, look again later. A failure ends the
     * run. */
    kilter_status (*deal)(void *self, uint32_t worker, bool again, double now_s, uint64_t *count);
    void (*dealt)(void *self, const kl_play_chunk *chunk); /* the chunk that deal() chose is under way */
    void (*reported)(void *self, const kl_play_segment *segment, double now_s);
} kl_play_dealer;

typedef struct kl_play_run {
    uint64_t run, tasks;
    /* Return the seconds of task `index` at speed 1; NULL: even_s each, at no cost per task. */
    double (*task_s)(void *self, uint64_t run, uint64_t index);
    void *task_self;
    double even_s;
    double task_bytes, result_bytes; /* each */
    double answer_s; /* seconds that a master of speed 1 spends on one message and its answer */
    double
        startup_s; /* the sender's seconds before tasks or results leave [m_o]; workers compute meanwhile */
    double look_s; /* seconds that a master of speed 1 spends on a look at a held-back worker */
    double lead_s; /* a worker requests tasks this long before its queue is empty */
} kl_play_run;

typedef struct kl_play_outcome {
    double elapsed_s;
    double work_s; /* sum over all tasks, at speed 1 */
    uint64_t chunks, messages;
    double master_busy_s;
    uint32_t workers; /* workers that did at least one task */
} kl_play_outcome;

typedef struct kl_play kl_play;

/* Make a farm on `cluster`, which must outlive it and whose hosts have constant speed. The master has its own
 * host. NULL: no memory. */
kl_play *kl_play_new(const kl_cluster *cluster);
void kl_play_free(kl_play *play);
/* Play a run. At the start all workers request tasks. Only the master's link takes longer for more bytes;
 * messages pass it one after the other. Costs O(log workers) per message, O(1) per task. KILTER_ERR_MEMORY;
 * KILTER_ERR_RANGE: nothing was under way and the dealer gave no tasks; or the error of deal(). */
kilter_status kl_play_run_out(kl_play *play, const kl_play_run *run, const kl_play_dealer *dealer,
                              kl_play_outcome *outcome, kilter_error *error);

#endif
