/* Door of room play: how long a series of chunks would take, message by message, on workers whose speeds do
 * not change. Pure. A policy that searches for its factor asks this while a farm runs; whole farms are
 * simulated by room sim. */
#ifndef KL_PLAY_H
#define KL_PLAY_H

#include "measure/measure.h"
#include "platform/platform.h"

/* --- the farm's habits, which room farm keeps and this room plays --- */

/* A worker sends its results when the first of them has waited this long, and when they are this large;
 * played ones when a task has ended, too. */
static const double KL_FLUSH_S = 0.1;
static const size_t KL_FLUSH_BYTES = (size_t)1 << 19;
/* Asking ahead hides nothing when what is left is shorter than sending a message. */
static const double KL_HIDES_NOTHING_S = 10e-6;
/* Requests go out so many of the longest recent answer times ahead of need; a long one is forgotten by and
 * by. */
static const double KL_ANSWERS_AHEAD = 1.5, KL_ANSWER_MEMORY = 0.9, KL_ANSWER_MOST_S = 20e-3;
/* A worker that the policy held back is looked at again after this long and a small part of a task's mean
 * time, in which little can have changed, and so seldom that looking takes a small part of the master's time.
 */
static const double KL_HELD_S = 1e-3, KL_HELD_TASKS = 1.0 / 32, KL_HELD_LOOKS = 8;
/* While a task is long its worker tells how it gets on, so often. */
static const double KL_HEARTBEAT_S = 0.25;
/* So many times in a row the master asks what to do about workers that end late. */
enum { KL_RESCUES_AT_ONCE = 16 };

/* --- a run --- */

/* Tasks [lo, lo + count), dealt to one worker in one message. */
typedef struct kl_play_chunk {
    uint64_t lo, count;
    uint32_t worker;
} kl_play_chunk;

/* Consecutive tasks of one chunk, reported finished. */
typedef struct kl_play_segment {
    uint32_t worker;
    double began_s, ended_s, busy_s;
    kl_stat task_s; /* of single tasks */
} kl_play_segment;

/* Chooses the chunks, and is told what comes of them. All times are the master's. */
typedef struct kl_play_dealer {
    void *self;
    /* `worker` asks: tasks for it now, at most `left`; 0: none now, it is looked at again. A failure ends the
     * run. */
    kilter_status (*deal)(void *self, uint32_t worker, bool again, double now_s, uint64_t *count);
    void (*dealt)(void *self, const kl_play_chunk *chunk); /* what deal() gave is under way */
    void (*reported)(void *self, const kl_play_segment *segment, double now_s);
} kl_play_dealer;

typedef struct kl_play_run {
    uint64_t run, tasks;
    /* Seconds of task `index` at speed 1; NULL: even_s each, which costs nothing per task. */
    double (*task_s)(void *self, uint64_t run, uint64_t index);
    void *task_self;
    double even_s;
    double task_bytes, result_bytes; /* each */
    double answer_s;                 /* of the master at speed 1, for one message and what is dealt for it */
    double startup_s; /* of the sender, before a message with tasks or results leaves [m_o]; a worker computes
                         meanwhile */
    double look_s;    /* of the master at speed 1, for a look at a worker held back */
    double lead_s;    /* a worker asks this long before it runs dry */
} kl_play_run;

typedef struct kl_play_outcome {
    double elapsed_s;
    double work_s; /* of all tasks, at speed 1 */
    uint64_t chunks, messages;
    double master_busy_s;
    uint32_t workers; /* that did at least one task */
} kl_play_outcome;

typedef struct kl_play kl_play;

/* A farm on `cluster`, which must outlive it and whose hosts keep their speed; the master's is its own. NULL:
 * no memory. */
kl_play *kl_play_new(const kl_cluster *cluster);
void kl_play_free(kl_play *play);
/* All workers are there, and ask. The only step of a message that takes longer for more bytes is the master's
 * link, through which one goes after the other. Costs O(log workers) per message, O(1) per task.
 * KILTER_ERR_MEMORY; KILTER_ERR_RANGE: the dealer gave nobody anything while nothing was under way; or what
 * deal() failed with. */
kilter_status kl_play_run_out(kl_play *play, const kl_play_run *run, const kl_play_dealer *dealer,
                              kl_play_outcome *outcome, kilter_error *error);

#endif
