/* Door of room play: a run played out on described workers, event by event. Pure. */
#ifndef KL_PLAY_H
#define KL_PLAY_H

#include "measure/measure.h"

/* --- hosts --- */

enum { KL_PROFILE_STEPS = 16 };

/* How much of a host's speed is there at a time: all of it before the first step, then the factor of the last
 * step passed; with period_s > 0 the same again every period_s. Zeroed: all of it, always. */
typedef struct kl_profile {
    uint32_t count;
    double at_s[KL_PROFILE_STEPS]; /* rising; below period_s where there is one */
    double factor[KL_PROFILE_STEPS];
    double period_s;
} kl_profile;

typedef struct kl_host {
    double speed; /* seconds of work, as described for speed 1, per second */
    kl_profile profile;
} kl_host;

double kl_host_speed(const kl_host *host, double at_s);
/* When work of `work_s` seconds at speed 1, begun at from_s, ends. INFINITY: never. */
double kl_host_end_s(const kl_host *host, double from_s, double work_s);
/* Seconds at speed 1 that the host can do in [from_s, to_s). */
double kl_host_work_s(const kl_host *host, double from_s, double to_s);

typedef struct kl_host_group { /* `count` hosts, all like `host` */
    uint32_t count;
    kl_host host;
} kl_host_group;

/* Hosts with one worker each, behind one switch: a message passes the link of its sender's host and that of
 * its receiver's. */
typedef struct kl_cluster {
    kl_host_group *groups; /* workers are numbered through them, from 0 */
    uint32_t group_count, workers;
    bool master_apart; /* on the host `master`; else on the first worker's, which it shares */
    kl_host master;
    double latency_s;   /* of one link */
    double bytes_per_s; /* of one link and direction; INFINITY: bytes cost nothing */
    bool half_duplex;   /* both directions share a link */
} kl_cluster;

const kl_host *kl_cluster_master(const kl_cluster *cluster);
/* Least time in which all hosts together, busy all the time, do `work_s` begun at from_s. */
double kl_cluster_bound_s(const kl_cluster *cluster, double from_s, double work_s);

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
static const double KL_PULSE_S = 0.25;
/* So many times in a row the master asks what to do about workers that end late. */
enum { KL_RESCUES_AT_ONCE = 16 };

/* --- a run --- */

/* Tasks [lo, lo + count), dealt to one worker in one message; fewer when it has given some back. */
typedef struct kl_play_chunk {
    uint64_t id; /* 0, 1, … in the order of dealing, through all runs */
    uint64_t lo, count;
    uint64_t done, counted; /* reported; of these, for the first time */
    uint32_t worker;
    bool copy;                                /* another worker has them, too */
    double dealt_s, began_s, ended_s, busy_s; /* as far as reported */
    double bytes_out, bytes_in;
} kl_play_chunk;

/* Consecutive tasks of one chunk, reported finished. */
typedef struct kl_play_segment {
    uint32_t worker;
    double began_s, ended_s, busy_s;
    kl_stat task_s; /* of single tasks */
} kl_play_segment;

typedef enum kl_play_rescue_kind { KL_PLAY_NOTHING, KL_PLAY_RECALL, KL_PLAY_COPY } kl_play_rescue_kind;

/* What is done about a worker that ends late. */
typedef struct kl_play_rescue {
    kl_play_rescue_kind kind;
    uint32_t from, to;
    uint64_t tasks; /* RECALL: `from` keeps the first so many of what it holds; COPY: the last so many go to
                       `to`, too, which waits */
    double pause_s; /* NOTHING: it is asked again then */
} kl_play_rescue;

typedef struct kl_play kl_play;

/* Who gets how much, and who is told what comes of it. All times are the master's. */
typedef struct kl_play_dealer {
    void *self;
    /* `worker` asks: tasks for it now, at most `left`; 0: none now, it is looked at again. A failure ends the
     * run. */
    kilter_status (*deal)(void *self, uint32_t worker, bool again, double now_s, uint64_t *count);
    void (*dealt)(void *self, const kl_play_chunk *chunk); /* what deal() gave is under way */
    void (*reported)(void *self, const kl_play_segment *segment, double now_s);
    void (*ended)(void *self, const kl_play_chunk *chunk); /* all of it is reported; NULL: not asked */
    void (*answered)(void *self, double busy_s); /* the master's time for one answer; NULL: not asked */
    /* Nothing is left to deal, since empty_s, and somebody waits; kl_play_held() and kl_play_waits() tell
     * more. NULL: nothing is done about it. */
    void (*rescue)(void *self, const kl_play *play, double empty_s, double now_s, kl_play_rescue *rescue);
    uint32_t recalls; /* a task is asked back at most so often, */
    uint32_t copies;  /* and given to so many others that are to do it, too */
    /* `worker` has given tasks back, of which `left` are dealt again; not NULL where rescue() is not. */
    void (*returned)(void *self, uint32_t worker, uint64_t tasks, uint64_t left);
} kl_play_dealer;

typedef struct kl_play_run {
    uint64_t run, tasks;
    double begins_s; /* profiles count from 0 */
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
    uint64_t recalls, copies; /* of chunks */
    double master_busy_s;
    uint32_t workers; /* that did at least one task */
} kl_play_outcome;

/* A farm on `cluster`, which must outlive it: every worker is there, and asks. NULL: no memory. */
kl_play *kl_play_new(const kl_cluster *cluster);
void kl_play_free(kl_play *play);
/* The only step of a message that takes longer for more bytes is the master's link, through which one goes
 * after the other. Costs O(log workers) per message, O(1) per task. KILTER_ERR_MEMORY; KILTER_ERR_RANGE: the
 * dealer gave nobody anything while nothing was under way, or an end lies beyond what time can be; or what
 * deal() failed with. */
kilter_status kl_play_run_out(kl_play *play, const kl_play_run *run, const kl_play_dealer *dealer,
                              kl_play_outcome *outcome, kilter_error *error);

/* For rescue(): what is at a worker as the master knows it, whether one waits for work, how many do, and how
 * many tasks are asked back that have not come. */
void kl_play_held(const kl_play *play, uint32_t worker, kl_held *held);
bool kl_play_waits(const kl_play *play, uint32_t worker);
/* Between two runs: it is still at a task of the last one. */
bool kl_play_is_late(const kl_play *play, uint32_t worker);
uint32_t kl_play_waiting(const kl_play *play);
uint64_t kl_play_coming(const kl_play *play);

#endif
