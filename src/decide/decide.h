/* Public header of the folder decide: choose the next chunk for a worker, and give the reason. All
 * functions are pure. Planning and committing are separate calls. kl_dealer_plan() changes nothing. The
 * caller calls kl_dealer_commit() once for each plan that it carries out. */
#ifndef KL_DECIDE_H
#define KL_DECIDE_H

#include "kilter/policy.h"
#include "kilter/run.h"
#include "model/model.h"

enum { KL_REASON_BYTES = 160 };

/* --- a decision --- */

/* The kinds of decisions of farms, loops and kept runs. The brackets say which number is in a decision's
 * `count`. */
typedef enum kl_decision_kind {
    KL_DECIDES_NOTHING,  /* not recorded */
    KL_DECIDES_DEAL,     /* a chunk for a worker [tasks] */
    KL_DECIDES_WITHHOLD, /* no tasks for a worker that asked [0] */
    KL_DECIDES_RECALL,   /* take back tasks that a worker has not begun [tasks that the worker keeps] */
    KL_DECIDES_COPY,     /* a speculative copy of tasks that a worker holds [tasks] */
    KL_DECIDES_ASSIGN,   /* whole shares before a run [workers that get a share] */
    KL_DECIDES_POLICY,   /* the user chose another policy [0] */
    KL_DECIDES_FACTOR,   /* the user set the policy's factor [0] */
    KL_DECIDES_WORKERS,  /* the number of workers in a run [workers] */
    KL_DECIDES_TEAM,     /* the number of workers with which this program's next farm begins [workers] */
    KL_DECIDES_GRAIN,    /* the number of tasks that a program should make [tasks] */
    KL_DECIDES_PROGRAM,  /* the forecast of a program for its coming runs [runs] */
    KL_DECIDES_MOVE,     /* rows of a loop move to other ranks [iterations] */
    KL_DECIDES_STAY,     /* a loop's shares stay: no better ones are known [0] */
    KL_DECIDES_WAIT,     /* a loop's shares stay: moving to better ones does not pay yet [0] */
    KL_DECIDES_REST,     /* balancing of a loop pauses [0] */
    KL_DECIDES_REFUSED,  /* a loop's rank had no memory for a move [0] */
    KL_DECIDES_BLOCK,    /* the size of the blocks of a pipeline [elements] */
    KL_DECIDES_ORGANISE, /* which side organises a run: peers or the master [number of peers; 0: the master]
                          */
    KL_DECIDES_LAUNCH,   /* a kept run: an attempt begins [ranks; 0: a queue decides] */
    KL_DECIDES_RELOCATE, /* a kept run: it is saved, and continues on other hosts [ranks] */
    KL_DECIDES_RESTART,  /* a kept run: it failed, and is started again [sweeps that are lost] */
    KL_DECIDES_GIVE_UP,  /* a kept run: it is not started again; a farm: no more jobs are submitted [0] */
    KL_DECIDES_GROW,     /* a farm: a job with more workers is submitted [jobs that there are then] */
    KL_DECIDES_SHRINK,   /* a farm: a job is cancelled, or its workers are released [jobs that remain] */
    KL_DECIDES_EXCLUDE,  /* a farm: a host gets no more workers [failures in a row; 0: a person decided it] */
    KL_DECIDES_SAVE,     /* a loop writes a checkpoint [bytes of the file; 0: it could not be written] */
    KL_DECISION_KINDS
} kl_decision_kind;

enum { KL_SUBJECT_ALL = -1 };

/* A decision of any kind, as the record stores it. Its times are forecasts in seconds. */
typedef struct kl_decision {
    kl_decision_kind kind;
    /* number of the worker; in memory, its place in the snapshot. KL_SUBJECT_ALL: the whole farm or loop */
    int64_t subject;
    uint64_t count;               /* number of tasks, workers, … as the brackets of kl_decision_kind say */
    double forecast_s;            /* time at which the decided work will have ended; 0: not known */
    double gain_s;                /* seconds that the decision saves; 0: not known */
    double cost_s;                /* seconds that carrying out the decision costs */
    char reason[KL_REASON_BYTES]; /* the reason: one clause with the numbers that were decisive */
} kl_decision;

const char *kl_decision_name(kl_decision_kind kind); /* the name in the record: "deal", "withhold", … */
kl_decision_kind kl_decision_find(const char *name); /* KL_DECISION_KINDS: no kind has this name */

/* A time as text with its unit, such as "3.2 ms". */
typedef struct kl_time_text {
    char text[16];
} kl_time_text;
kl_time_text kl_say_s(double seconds);

/* --- the next chunk of a worker --- */

/* The answer to a worker that asks for work: tasks (deal), or no tasks now (withhold). A worker without
 * tasks is considered again after the next event. The gain is relative to dealing the worker an equal part
 * of the remaining tasks. */
typedef struct kl_plan {
    kl_decision decision; /* count: number of tasks, at most snapshot.left */
    /* set by the caller: it sent fewer than `meant` tasks, because further ones were not consecutive */
    bool cut_short;
    /* number of tasks that the policy chose; the caller may send fewer because of the tasks' weights or
     * sizes */
    uint64_t meant;
} kl_plan;

typedef struct kl_policy_settings {
    double factor; /* for FSC and DPF: partition factor in (0, 1]; 0: 0.25 in the first two runs, afterwards
                      the factor with the shortest forecast */
} kl_policy_settings;

typedef struct kl_policy kl_policy;
typedef struct kl_dealer kl_dealer; /* the policy of one farm, and its state through all runs */

/* The registry, in order of registration. This order breaks ties between policies. */
size_t kl_policy_count(void);
const kl_policy *kl_policy_at(size_t i);
/* Find a policy by its name in upper or lower case; NULL: there is no such policy. */
const kl_policy *kl_policy_find(const char *name);
/* Check and store the program's own policies. The list ends with NULL; the program must keep the list until
 * `own` is freed. KILTER_ERR_USAGE: a policy in the list cannot be used. */
enum { KL_POLICY_NAME_BYTES = 32 };
typedef struct kl_own_policies kl_own_policies;
kilter_status kl_own_policies_new(const kilter_policy *const *list, kl_own_policies **own,
                                  kilter_error *error);
void kl_own_policies_free(kl_own_policies *own);
/* Find a policy among the program's own, then in the registry. `own` may be NULL. NULL: no such policy. */
const kl_policy *kl_own_policies_find(const kl_own_policies *own, const char *name);
const char *kl_policy_name(const kl_policy *policy);
const char *kl_policy_summary(const kl_policy *policy); /* one line of description */
bool kl_policy_has_factor(const kl_policy *policy);     /* FSC, DPF */

kl_dealer *kl_dealer_new(const kl_policy *policy, const kl_policy_settings *settings); /* NULL: no memory */
void kl_dealer_free(kl_dealer *dealer);
const kl_policy *kl_dealer_policy(const kl_dealer *dealer);
double kl_dealer_factor(const kl_dealer *dealer); /* return the present factor; 0: the policy has none */
/* Set the factor from the next batch on; 0: the policy chooses it. A policy without a factor ignores this. */
void kl_dealer_set_factor(kl_dealer *dealer, double factor);

/* Begin a run of which no task has been dealt yet. Error: KILTER_ERR_MEMORY. For this and all functions
 * below, snapshot.crew must know every change of a worker's view, and must be advanced to snapshot.now_s. */
kilter_status kl_dealer_begin(kl_dealer *dealer, const kl_snapshot *snapshot);
/* Handle that `tasks` tasks were added to the run. Error: KILTER_ERR_MEMORY. */
kilter_status kl_dealer_grown(kl_dealer *dealer, const kl_snapshot *snapshot, uint64_t tasks);
/* Handle that a new worker has joined, at place `worker` of the snapshot. */
void kl_dealer_joined(kl_dealer *dealer, uint32_t worker);
/* Handle that workers have joined or left. */
void kl_dealer_changed(kl_dealer *dealer);
/* Plan how many tasks to deal to `worker`, which asks for work. Every task is dealt in the end, in
 * whatever order workers ask: while no worker holds tasks, at least one present worker gets some. */
void kl_dealer_plan(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker, kl_plan *plan);
/* Handle that the plan was carried out. `snapshot` is the one that kl_dealer_plan() got. */
kilter_status kl_dealer_commit(kl_dealer *dealer, const kl_snapshot *snapshot, const kl_plan *plan);

/* --- the inputs of decisions, for the record --- */

/* The stored inputs of a dealer, from which kl_again makes the dealer's decisions again. Its functions do
 * nothing if `grounds` is NULL. */
typedef struct kl_grounds kl_grounds;

kl_grounds *kl_grounds_new(void); /* NULL: memory ran out */
void kl_grounds_free(kl_grounds *grounds);
/* Handle that the view of `worker` has changed. */
void kl_grounds_changed(kl_grounds *grounds, uint32_t worker);
/* Store the inputs of a plan that will be recorded. `snapshot` is the one that kl_dealer_plan() got. */
void kl_grounds_answers(kl_grounds *grounds, const kl_snapshot *snapshot, const kl_plan *plan);
/* Return the bytes stored since the last call, for the row of the next decision. They are valid until more is
 * stored. Empty: storing failed, so no decision can be made again before the next run. */
kilter_bytes kl_grounds_take(kl_grounds *grounds);
/* Make the dealer store its inputs in `grounds`, from the next run on. */
void kl_dealer_write(kl_dealer *dealer, kl_grounds *grounds);

/* The state in which the decisions of a recorded run are made again, row by row. */
typedef struct kl_again kl_again;

/* A row of the record: the bytes that kl_grounds_take() returned, and the decision. The decision's subject is
 * a worker's number. */
typedef struct kl_recorded {
    kilter_bytes grounds;
    kl_decision decision;
} kl_recorded;

typedef struct kl_answer {
    const char *missing; /* why the decision could not be made again; NULL: it was made */
    /* the decision made again; its count is the policy's, its subject the worker's number */
    kl_decision decision;
    uint64_t meant; /* the count that the policy chose in the recorded run */
    double now_s;   /* time of the recorded decision */
} kl_answer;

/* Begin to make the decisions of a run again. If `instead` is not NULL, this policy decides instead of the
 * recorded one. In both cases the state follows the chunks of the recorded run. NULL: memory ran out. */
kl_again *kl_again_new(const kl_policy *instead);
void kl_again_free(kl_again *again);
/* Make the decision of a row again. Call this for each row, in the order of the record. */
void kl_again_decide(kl_again *again, const kl_recorded *row, kl_answer *answer);

/* --- whole shares --- */

/* Assign `tasks` equal tasks of task_units each by earliest completion (Buaklee, Tracy, Vernon, Wright 2002).
 * Store in counts[0 … count−1] how many tasks each lane gets. Each task goes to the lane (worker) that would
 * end it first, given the tasks that it already has; the first lane wins ties. No other assignment ends
 * sooner. Rates must be above 0. It costs O(count·log count). Error: KILTER_ERR_MEMORY. */
kilter_status kl_assign_earliest(const kl_lane *lanes, uint32_t count, double task_units, uint64_t tasks,
                                 uint64_t *counts);
/* Return the seconds until the last task of an assignment ends; 0: there is no task. */
double kl_assignment_end_s(const kl_lane *lanes, uint32_t count, double task_units, const uint64_t *counts);

/* The shares that a policy assigned at the beginning of a run. */
typedef struct kl_assignment {
    /* count: number of workers that get tasks. gain_s: seconds saved, compared with equal groups; below 0:
     * equal groups end sooner. forecast_s: set by the caller */
    kl_decision decision;
    uint32_t idle; /* number of workers that get no tasks because they are too slow to help */
    double end_s;  /* forecast seconds from now to the end of all tasks */
} kl_assignment;

/* Get the assignment of the present run. false: there is none, because the policy deals step by step. */
bool kl_dealer_assignment(const kl_dealer *dealer, kl_assignment *assignment);
/* Return whether the assignment leaves `worker` without tasks, and set the reason. */
bool kl_dealer_leaves_out(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker,
                          char reason[KL_REASON_BYTES]);

/* Return how many of the tasks that were assigned to `worker` at the beginning are not dealt yet; 0: none
 * are left, or the policy deals step by step. */
uint64_t kl_dealer_share(const kl_dealer *dealer, uint32_t worker);

/* --- the tasks of a worker --- */

/* the home of one worker: spans[first … end) are the tasks that wait for this worker */
typedef struct kl_home {
    size_t first, end;
    uint64_t tasks;
} kl_home;

/* A series of runs in which each index is the same task in every run. A task is cheaper on the worker that
 * did it last, because this worker still has the task's data. All zero: no series. */
typedef struct kl_homes {
    uint64_t series, tasks;
    uint32_t *last; /* last[task]: the place of the worker that did the task last; UINT32_MAX: no worker */
    kl_span *spans; /* tasks of the present run that are not dealt yet, sorted by home */
    kl_home *home; /* home[0 … places−1]: homes of workers; home[places]: tasks without a present worker */
    uint32_t places;
} kl_homes;

void kl_homes_free(kl_homes *homes);
/* Begin a run of the series (0: of none) with the tasks in left[0 … count−1]; the last span is dealt first.
 * It costs O(tasks). Error: KILTER_ERR_MEMORY. */
kilter_status kl_homes_begin(kl_homes *homes, uint64_t series, uint64_t tasks, const kl_snapshot *snapshot,
                             const kl_span *left, size_t count);
bool kl_homes_in_use(const kl_homes *homes);
bool kl_homes_has_own(const kl_homes *homes,
                      uint32_t worker); /* Return whether the worker's own home has tasks. */
/* Return the home from which `worker` takes tasks next, and set *most to the number that it may take. This is
 * the worker's own home while it has tasks. From another home, `worker` takes only tasks that exceed the
 * share of that home's worker. If shares and workers are as in the last run, there are no such tasks. If
 * the returned home has no tasks, none are left for `worker`. */
uint32_t kl_homes_choose(const kl_homes *homes, const kl_dealer *dealer, const kl_snapshot *snapshot,
                         uint32_t worker, uint64_t *most);
/* Return the consecutive tasks that are dealt next from a home. The home must not be empty. */
kl_span kl_homes_front(const kl_homes *homes, uint32_t home);
void kl_homes_take(kl_homes *homes, uint32_t home, uint64_t count);
/* Store that `worker` did the tasks `done`. Tasks that were added during the run are ignored. */
void kl_homes_note(kl_homes *homes, kl_span done, uint32_t worker);

/* --- recalls and speculative copies --- */

/* A recall, a copy, or KL_DECIDES_NOTHING. With a recall, the subject keeps its first `count` tasks and
 * returns the others that it has not begun. With a copy, the subject's last `count` tasks are also sent to
 * worker `to`. The first result counts. */
typedef struct kl_rescue {
    kl_decision decision;
    uint32_t to;
} kl_rescue;

/* Functions of the caller that say which tasks a worker holds and which workers wait. They are called for
 * a few workers only. */
typedef struct kl_board {
    const void *self;
    void (*held)(const void *self, uint32_t worker, kl_held *held);
    bool (*waits)(const void *self, uint32_t worker); /* true: the worker asked for work and got none */
    uint32_t (*waiting)(const void *self); /* number of waiting workers; called seldom, may be O(P) */
    double coming_units;                   /* units of work that were recalled and have not come back yet */
} kl_board;

/* A task is recalled at most this number of times, and copied at most this number of times. */
enum { KL_RESCUE_RECALLS = 3, KL_RESCUE_COPIES = 2 };

/* Return whether the policy recalls and copies late tasks. AUTO and ECT do; the other policies are as
 * published. */
bool kl_policy_rescues(const kl_policy *policy);
/* Choose a recall or a copy for a late worker, when no task is left to deal and a worker waits. It costs
 * O(log P + number of late workers whose tasks are all copied already). */
void kl_rescue_choose(const kl_snapshot *snapshot, const kl_board *board, kl_rescue *rescue);
/* Choose a recall or a copy in the same way, and store the inputs of the choice. */
void kl_grounds_rescue(kl_grounds *grounds, const kl_snapshot *snapshot, const kl_board *board,
                       kl_rescue *rescue);
/* Return the seconds until workers that wait without tasks should be considered again. task_s: mean
 * seconds of a task; took_s: seconds that considering them took last time. */
double kl_held_pause_s(double task_s, double took_s);
/* Return the seconds until kl_rescue_choose() should be called again after it chose nothing. waited_s:
 * seconds since no task was left to deal; took_s: seconds that the last call took. */
double kl_rescue_pause_s(const kl_snapshot *snapshot, double waited_s, double took_s);

/* --- the number of workers --- */

/* Measurements of the iteration that ended, and the workers available for the next one. */
typedef struct kl_iteration {
    uint64_t run, tasks, chunks;
    kl_farm_model model;           /* work_s [T_c] holds for the mean speed of the workers that took part */
    double task_mean_s, task_sd_s; /* mean and standard deviation of a task's seconds at this speed [μ, σ] */
    /* seconds that the master works for one chunk; 0: not known, m_o is used */
    double answer_s;
    double way_s;     /* seconds of a round trip, beyond m_o, in which neither side works */
    uint32_t workers; /* workers that took part [n] */
    double elapsed_s; /* measured seconds of the iteration, without the time that the master works alone */
    double uneven_s;  /* greatest busy time of a worker minus the mean, in seconds */
    double quality;   /* measured value of 1 − mean busy time/elapsed_s [q] */
    kl_speeds speeds; /* speeds of all `most` present workers, relative to the mean of those that took part */
    uint32_t most;
    kl_load load;               /* measured load; zeroed: not known */
    const struct kl_team *team; /* numbers of workers that were measured before; NULL: none */
} kl_iteration;

enum { KL_TEAM_PERSISTS = 3 }; /* iterations that must agree before a change, and before it is judged */

typedef enum kl_team_way {
    KL_TEAM_STAY,
    KL_TEAM_FEWER,
    KL_TEAM_MORE,
    KL_TEAM_OTHERS, /* change: the same number of workers, but faster ones that rest now */
    KL_TEAM_WAYS,
} kl_team_way;

typedef enum kl_team_verdict {
    KL_TEAM_NOTHING, /* stay: no other number of workers would be better */
    KL_TEAM_REFUSED, /* another number seems better, but is not chosen now; the reason says why */
    KL_TEAM_CHANGED,
    KL_TEAM_BACK, /* change back: the last change did not pay */
} kl_team_verdict;

/* The cost of an iteration: its index n·T², divided once by the number of tasks and once by the seconds of
 * work. Smaller is better. */
typedef struct kl_team_cost {
    double by_task, by_work;
} kl_team_cost;

/* The cost that was measured with another number of workers. */
typedef struct kl_team_point {
    uint32_t workers; /* 0: this entry is free */
    kl_team_cost cost;
    uint64_t until; /* run from which the cost counts as outdated */
} kl_team_point;

enum { KL_TEAM_POINTS = 6 };

/* The findings of the iterations so far. All zero: no iteration yet. */
typedef struct kl_team {
    uint32_t workers; /* number of workers in the last iteration */
    /* the direction of a change that `seen` iterations agreed on; an iteration without a finding lowers
     * `seen` by 1 */
    kl_team_way way;
    uint32_t seen, nearest;
    uint32_t measured;                    /* number of consecutive iterations with `workers` */
    kl_team_cost costs[KL_TEAM_PERSISTS]; /* costs of the last of these iterations, in turn */
    uint32_t tried_from;   /* number of workers before a change that is being tried; 0: none is */
    kl_team_cost before;   /* cost of an iteration before the change that is being tried */
    bool explores;         /* true: only the model's uncertainty suggested the change that is being tried */
    uint64_t others_until; /* number of the run until which no faster workers are tried, because they did not
                              pay */
    uint32_t failures[KL_TEAM_WAYS];      /* number of changes in each direction that did not pay */
    kl_team_point points[KL_TEAM_POINTS]; /* other numbers of workers that were measured */
} kl_team;

/* The number of workers chosen for the next iteration. */
typedef struct kl_team_plan {
    /* count: number of workers, always the fastest ones; it differs from the present number if the verdict is
     * CHANGED or BACK. gain_s: seconds that `considered` workers would save; below 0: fewer workers would
     * take longer */
    kl_decision decision;
    kl_team_verdict verdict;
    uint32_t considered; /* number of workers that was considered */
    kl_team_way way;
    uint32_t seen;
    bool explores;
    double forecast_s; /* forecast seconds of the next iteration with the chosen number of workers */
} kl_team_plan;

/* Return the largest number of workers, 1 … most, whose load can be balanced. Each then gets at least two
 * tasks, and waiting for the last chunks takes at most a fifth of the time. */
uint32_t kl_team_balanceable(const kl_iteration *iteration);
/* Choose the number of workers with the smallest index, among the numbers that the master can serve and that
 * can be balanced. The present number stays if the best is not 5 % better. A change needs KL_TEAM_PERSISTS
 * iterations that agree. If the model does not explain much of the time, only fewer workers are tried. If the
 * load was very uneven, changes wait. Times that were measured with other numbers of workers correct the
 * model. If the model is uncertain, a number nearby is tried once. */
void kl_team_choose(const kl_team *team, const kl_iteration *iteration, kl_team_plan *plan);
/* --- within a run --- */

/* Findings of the looks at a run in progress. At first all members but the times are 0. */
typedef struct kl_glance {
    double began_s, then_s, then_cpu_s; /* times of the run's beginning and of the last look; CPU seconds used
                                           up to the last look */
    uint32_t found; /* number of workers that the last look found to be enough; 0: there was no look */
    uint32_t from;  /* number of workers before some began to rest; 0: none rests */
    bool gave_up;   /* true: resting workers were needed after all, so no worker rests again in this run */
} kl_glance;

typedef struct kl_sight {
    double now_s, cpu_s; /* cpu_s: CPU seconds of the farm and of all workers on its host in this run */
    uint32_t cores, workers;
    uint64_t done; /* number of tasks done */
    const kl_load *load;
} kl_sight;

typedef struct kl_glance_plan {
    kl_decision decision; /* count: number of workers that should work */
    bool changed;
} kl_glance_plan;

/* Look at a run in progress. While all cores are busy, let workers rest if two looks agree that the run is
 * as fast without them. When cores become idle, let all workers work again. Return false if too little is
 * known. */
bool kl_glance_look(kl_glance *glance, const kl_sight *sight, kl_glance_plan *plan);
double kl_glance_due_s(const kl_glance *glance, double now_s); /* Return the time of the next look. */

/* Return the number of workers for a farm that is about to begin, computed from one iteration of an
 * earlier farm; 0: the iteration is not enough to tell. */
uint32_t kl_team_expect(const kl_iteration *iteration, char reason[KL_REASON_BYTES]);
/* Do the same as kl_team_choose(), kl_team_expect() and kl_glance_look(), and append the inputs of the
 * decision to `grounds`. */
void kl_grounds_team(kl_buffer *grounds, const kl_team *team, const kl_iteration *iteration,
                     kl_team_plan *plan);
uint32_t kl_grounds_expect(kl_buffer *grounds, const kl_iteration *iteration, char reason[KL_REASON_BYTES]);
bool kl_grounds_look(kl_buffer *grounds, kl_glance *glance, const kl_sight *sight, kl_glance_plan *plan);
/* Update the team's state with a plan; call this once for each iteration. */
void kl_team_commit(kl_team *team, const kl_iteration *iteration, const kl_team_plan *plan);

/* --- the number of tasks --- */

/* A program can cut its work into any number of tasks from `least` to `most`, and asks which number is
 * fastest. */
typedef struct kl_grain_question {
    uint64_t least, most; /* 1 ≤ least ≤ most */
    /* number of runs that are needed with `tasks` tasks each; NULL: the number does not depend on it */
    double (*runs)(uint64_t tasks, void *user);
    void *user;
} kl_grain_question;

typedef struct kl_grain_look {
    kl_forkjoin model;    /* measured model of the fork-join program */
    const kl_lane *lanes; /* the lanes of the active workers; rates in units per second */
    uint32_t lane_count;
    double work_units; /* units of work of a run, the same for any number of tasks */
    double lost_s;     /* seconds of the last run that the model does not explain */
    uint64_t tasks;    /* number of tasks in the last run; 0: there was no run */
    uint64_t least_seen,
        most_seen; /* least and greatest number of tasks for which model.master was measured */
} kl_grain_look;

typedef struct kl_grain_plan {
    /* count: tasks. gain_s: seconds saved over all runs, compared with the last run's number of tasks,
     * divided by the number of runs */
    kl_decision decision;
    uint32_t workers;                       /* number of workers that get tasks */
    double master_s, workers_s, messages_s; /* forecast seconds of the parts of one iteration */
} kl_grain_plan;

/* Choose the number of tasks with the least product of number of runs and time of an iteration; the smaller
 * number wins ties. The candidates are numbers that differ by 1/16, and multiples of the number of workers.
 * The present number is kept unless a candidate is 5 % better. The measured t_M is trusted from a quarter of
 * the least to four times the greatest number of tasks seen. Without measurements the choice is four tasks
 * for each worker. Error: KILTER_ERR_MEMORY. */
kilter_status kl_grain_choose(const kl_grain_look *look, const kl_grain_question *question,
                              kl_grain_plan *plan);

/* --- which side organises a run: the master, which deals chunks, or the workers among themselves, as
 * peers --- */

typedef enum kl_organise { KL_ORGANISE_MASTER, KL_ORGANISE_AUTO, KL_ORGANISE_PEERS } kl_organise;

typedef struct kl_organise_look {
    kl_organise wanted;
    const char *never;        /* why peers cannot do this run; NULL: they can */
    uint32_t workers;         /* number of active workers */
    uint64_t tasks;           /* number of tasks of the run */
    const kl_iteration *last; /* the last run that a master organised; NULL: there was none */
    uint64_t master_runs;     /* number of runs that a master organised */
    /* mean seconds of a task in the last run, on a worker of mean speed; 0: not known */
    double task_s;
    /* mean seconds of earlier runs with a master and with peers, of kl_organise_mean(), scaled to the same
     * number of tasks; 0: there was none. If a master organised several runs, the farm's first one is left
     * out. */
    double by_master_s, by_peers_s;
    /* seconds that runs with a master lost since the last run that peers organised: their time minus the mean
     * time for which a worker worked */
    double lost_s;
} kl_organise_look;

/* Return the mean of a value over runs, in which the latest run counts half. before: the mean of the earlier
 * runs; 0: there was none. */
double kl_organise_mean(double before, double latest);
/* Return the seconds that a run with a master lost, for any reason. */
double kl_organise_lost_s(const kl_iteration *run);
/* Choose whether the master or peers organise a run. count: number of peers; 0: the master. forecast_s:
 * seconds of the run. gain_s: seconds saved, compared with the other choice. */
kl_decision kl_organise_choose(const kl_organise_look *look);

#endif
