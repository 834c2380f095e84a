/* Public header of the folder decide: choose the next chunk for a worker, and give the reason. All functions
 * are pure. Planning and committing are separate calls. kl_dealer_plan() plans a chunk and changes nothing.
 * The caller calls kl_dealer_commit() once for each plan that it carries out. */
#ifndef KL_DECIDE_H
#define KL_DECIDE_H

#include "kilter/policy.h"
#include "kilter/run.h"
#include "model/model.h"

enum { KL_REASON_BYTES = 160 };

/* --- a decision --- */

/* The kinds of decisions of farms, loops and kept runs. The square brackets say what a decision's `count`
 * means. */
typedef enum kl_decision_kind {
    KL_DECIDES_NOTHING,  /* no decision; it is not recorded */
    KL_DECIDES_DEAL,     /* deal a chunk to a worker [number of tasks] */
    KL_DECIDES_WITHHOLD, /* give no tasks to a worker that asked [0] */
    KL_DECIDES_RECALL,   /* take back tasks that a worker has not begun [tasks that the worker keeps] */
    KL_DECIDES_COPY,     /* start a speculative copy of tasks that a worker holds [number of tasks] */
    /* assign a whole share to each worker before a run [number of workers that get a share] */
    KL_DECIDES_ASSIGN,
    KL_DECIDES_POLICY,  /* the user chose another policy [0] */
    KL_DECIDES_FACTOR,  /* the user set the policy's factor [0] */
    KL_DECIDES_WORKERS, /* choose the number of workers in a run [number of workers] */
    /* choose the number of workers with which this program's next farm begins [number of workers] */
    KL_DECIDES_TEAM,
    KL_DECIDES_GRAIN,   /* choose the number of tasks that a program should make [number of tasks] */
    KL_DECIDES_PROGRAM, /* forecast a program's coming runs [number of runs] */
    KL_DECIDES_MOVE,    /* move rows of a loop to other ranks [number of iterations] */
    KL_DECIDES_STAY,    /* keep a loop's shares: no better ones are known [0] */
    KL_DECIDES_WAIT,    /* keep a loop's shares: moving rows to better shares does not pay yet [0] */
    KL_DECIDES_REST,    /* pause the balancing of a loop [0] */
    KL_DECIDES_REFUSED, /* give up a move, because a rank of the loop had no memory for it [0] */
    KL_DECIDES_BLOCK,   /* choose the size of the blocks of a pipeline [number of elements] */
    /* choose who organises a run, peers or the master [number of peers; 0: the master] */
    KL_DECIDES_ORGANISE,
    KL_DECIDES_LAUNCH,   /* begin an attempt of a kept run [number of ranks; 0: a queue decides] */
    KL_DECIDES_RELOCATE, /* save a kept run, and continue it on other hosts [number of ranks] */
    KL_DECIDES_RESTART,  /* start a kept run again after it failed [number of sweeps that are lost] */
    KL_DECIDES_GIVE_UP,  /* do not start a kept run again, or submit no more jobs of a farm [0] */
    KL_DECIDES_GROW,     /* submit a farm's job with more workers [number of jobs afterwards] */
    KL_DECIDES_SHRINK,   /* cancel a farm's job, or release its workers [number of jobs that remain] */
    /* start no more workers of a farm on a host [failures in a row; 0: a person decided it] */
    KL_DECIDES_EXCLUDE,
    KL_DECIDES_SAVE, /* write a checkpoint of a loop [bytes of the file; 0: it could not be written] */
    KL_DECIDES_PIN,  /* pin ranks of a loop to their cores, or unpin them [number of pinned ranks] */
    KL_DECISION_KINDS
} kl_decision_kind;

enum { KL_SUBJECT_ALL = -1 };

/* A decision of any kind, as the record stores it. Its times are forecasts in seconds. */
typedef struct kl_decision {
    kl_decision_kind kind;
    /* in the record: number of the worker; in memory: index of the worker in snapshot.workers.
     * KL_SUBJECT_ALL: the whole farm or loop */
    int64_t subject;
    /* number of tasks, workers, or other things, as kl_decision_kind says in square brackets */
    uint64_t count;
    double forecast_s;            /* time at which the decided work is expected to end; 0: not known */
    double gain_s;                /* seconds that the decision is expected to save; 0: not known */
    double cost_s;                /* seconds that carrying out the decision costs */
    char reason[KL_REASON_BYTES]; /* the reason: one clause with the numbers on which the decision depends */
} kl_decision;

/* Return the kind's name in the record: "deal", "withhold", … */
const char *kl_decision_name(kl_decision_kind kind);
/* Return the kind that has this name; KL_DECISION_KINDS: no kind has it */
kl_decision_kind kl_decision_find(const char *name);

/* A time as text with its unit, such as "3.2 ms". */
typedef struct kl_time_text {
    char text[16];
} kl_time_text;
kl_time_text kl_say_s(double seconds);

/* --- the next chunk of a worker --- */

/* The answer to a worker that asks for work: deal it tasks, or withhold tasks for now. A worker that gets no
 * tasks is considered again after the next event. The gain of the decision is the time saved, compared with
 * dealing the worker an equal part of the remaining tasks. */
typedef struct kl_plan {
    kl_decision decision; /* decision.count: number of tasks to deal, at most snapshot.left */
    /* true: the caller sent fewer than `meant` tasks, because only these tasks were consecutive */
    bool cut_short;
    /* number of tasks that the policy chose; the caller may send fewer because of the tasks' weights or
     * sizes */
    uint64_t meant;
} kl_plan;

typedef struct kl_policy_settings {
    /* factor of the policies FSC and DPF, in (0, 1]; 0: the policy uses 0.25 in the first two runs, and
     * chooses the factor with the shortest forecast in later runs. */
    double factor;
} kl_policy_settings;

typedef struct kl_policy kl_policy;
typedef struct kl_dealer kl_dealer; /* The dealer: the policy of one farm, and its state through all runs. */

/* The policies of Kilter, in the order of registration. This order breaks ties between policies. */
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
/* Find a policy among the program's own policies, then among Kilter's policies. `own` may be NULL. Return
 * NULL if there is no such policy. */
const kl_policy *kl_own_policies_find(const kl_own_policies *own, const char *name);
const char *kl_policy_name(const kl_policy *policy);
const char *kl_policy_summary(const kl_policy *policy); /* Return a description of the policy in one line. */
bool kl_policy_has_factor(const kl_policy *policy);     /* Return true for the policies FSC and DPF. */

/* Make a dealer. Return NULL if memory ran out. */
kl_dealer *kl_dealer_new(const kl_policy *policy, const kl_policy_settings *settings);
void kl_dealer_free(kl_dealer *dealer);
const kl_policy *kl_dealer_policy(const kl_dealer *dealer);
/* Return the policy's present factor; 0: the policy has none. */
double kl_dealer_factor(const kl_dealer *dealer);
/* Set the factor from the next batch on; 0: the policy chooses it. A policy without a factor ignores this. */
void kl_dealer_set_factor(kl_dealer *dealer, double factor);

/* Begin a run of which no task is dealt yet. Error: KILTER_ERR_MEMORY. snapshot.crew keeps sums over all
 * workers. Before each call of a dealer's function, update these sums with the views of all changed workers,
 * and advance them to snapshot.now_s. */
kilter_status kl_dealer_begin(kl_dealer *dealer, const kl_snapshot *snapshot);
/* Handle that `tasks` tasks were added to the run. Error: KILTER_ERR_MEMORY. */
kilter_status kl_dealer_grown(kl_dealer *dealer, const kl_snapshot *snapshot, uint64_t tasks);
/* Handle that a new worker has joined; its view is snapshot.workers[worker]. */
void kl_dealer_joined(kl_dealer *dealer, uint32_t worker);
/* Handle that workers have joined or left. */
void kl_dealer_changed(kl_dealer *dealer);
/* Plan how many tasks to deal to `worker`, which asks for work. While no worker holds tasks, at least one
 * present worker gets some if it asks. All tasks are thus dealt in the end, for any order of requests. */
void kl_dealer_plan(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker, kl_plan *plan);
/* Handle that the plan was carried out. `snapshot` is the one for which kl_dealer_plan() made the plan. */
kilter_status kl_dealer_commit(kl_dealer *dealer, const kl_snapshot *snapshot, const kl_plan *plan);

/* --- storing the inputs of decisions for the record --- */

/* The stored inputs of a dealer's decisions. kl_again makes the decisions again from these inputs. The
 * functions of kl_grounds do nothing if `grounds` is NULL. */
typedef struct kl_grounds kl_grounds;

kl_grounds *kl_grounds_new(void); /* Make an empty store of inputs. Return NULL if memory ran out. */
void kl_grounds_free(kl_grounds *grounds);
/* Handle that the view of `worker` has changed since the last input was stored. */
void kl_grounds_changed(kl_grounds *grounds, uint32_t worker);
/* Store the inputs of a plan that will be recorded. `snapshot` is the one for which kl_dealer_plan() made
 * the plan. */
void kl_grounds_answers(kl_grounds *grounds, const kl_snapshot *snapshot, const kl_plan *plan);
/* Return the bytes stored since the last call, for the row of the next decision. They are valid until the
 * next input is stored. If they are empty, storing failed, and decisions can be made again only from the next
 * run on. */
kilter_bytes kl_grounds_take(kl_grounds *grounds);
/* Make the dealer store its inputs in `grounds`, from the next run on. NULL: nothing is stored. Then gain_s
 * of the decisions is 0 from now on, unless the policy uses the forecast of the run. A new dealer stores
 * nothing, and computes gain_s. */
void kl_dealer_write(kl_dealer *dealer, kl_grounds *grounds);

/* The state in which the decisions of a recorded run are made again, row by row. */
typedef struct kl_again kl_again;

/* A row of the record: the bytes that kl_grounds_take() returned, and the decision, whose subject is a
 * worker's number. */
typedef struct kl_recorded {
    kilter_bytes grounds;
    kl_decision decision;
} kl_recorded;

typedef struct kl_answer {
    const char *missing; /* why the decision could not be made again; NULL: it was made */
    /* the decision made again: `count` is the number that the policy chose, and `subject` is the worker's
     * number */
    kl_decision decision;
    uint64_t meant; /* the number of tasks that the policy chose in the recorded run */
    double now_s;   /* time of the recorded decision */
} kl_answer;

/* Begin to make the decisions of a recorded run again. If `instead` is not NULL, this policy makes them
 * instead of the recorded policy. The state follows the recorded chunks in both cases. Return NULL if memory
 * ran out. */
kl_again *kl_again_new(const kl_policy *instead);
void kl_again_free(kl_again *again);
/* Make the decision of a row again. Call this for each row, in the order of the record. */
void kl_again_decide(kl_again *again, const kl_recorded *row, kl_answer *answer);

/* --- policies that assign whole shares before a run --- */

/* Assign `tasks` equal tasks of task_units each by earliest completion (Buaklee, Tracy, Vernon, Wright 2002).
 * Store in counts[0 … count−1] how many tasks each lane (worker) gets. Each task goes to the lane that would
 * end it first after its earlier tasks; the first lane wins ties. No other assignment ends sooner. Rates must
 * be above 0. The function costs O(count·log count). Error: KILTER_ERR_MEMORY. */
kilter_status kl_assign_earliest(const kl_lane *lanes, uint32_t count, double task_units, uint64_t tasks,
                                 uint64_t *counts);
/* Return the seconds until the last task of an assignment ends; 0: there is no task. */
double kl_assignment_end_s(const kl_lane *lanes, uint32_t count, double task_units, const uint64_t *counts);

/* The shares of the workers that a policy assigned at the beginning of a run. */
typedef struct kl_assignment {
    /* count: number of workers that get tasks. gain_s: seconds saved, compared with equal shares for all
     * workers; below 0: equal shares end sooner. forecast_s: set by the caller */
    kl_decision decision;
    uint32_t idle; /* number of workers that get no tasks because they are too slow to help */
    double end_s;  /* forecast seconds from now to the end of all tasks */
} kl_assignment;

/* Get the assignment of the present run. Return false if the policy made none and deals chunks one by one. */
bool kl_dealer_assignment(const kl_dealer *dealer, kl_assignment *assignment);
/* Return whether the assignment gives `worker` no tasks, and write the reason. */
bool kl_dealer_leaves_out(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker,
                          char reason[KL_REASON_BYTES]);

/* At the beginning of a run, the policy may assign tasks to `worker`. Return how many of these tasks are not
 * dealt yet; 0: all are dealt, or none were assigned. */
uint64_t kl_dealer_share(const kl_dealer *dealer, uint32_t worker);

/* --- series of runs: which worker did each task last --- */

/* The home of a worker has the tasks that this worker did in the last run and that are not dealt yet. These
 * tasks are in spans[first … end). */
typedef struct kl_home {
    size_t first, end;
    uint64_t tasks;
} kl_home;

/* A series of runs in which each index is the same task in every run. A task is cheaper on the worker that
 * did it last, because this worker still has the task's data. All zero: no series. */
typedef struct kl_homes {
    uint64_t series, tasks;
    /* last[task]: the place (index of the view) of the worker that did the task last; UINT32_MAX: no
     * worker */
    uint32_t *last;
    /* tasks of the present run that are not dealt yet, sorted by the worker that did them last */
    kl_span *spans;
    /* home[i]: tasks that the worker at place i of the views did last; home[places]: tasks whose last worker
     * has left, and tasks that no worker has done */
    kl_home *home;
    uint32_t places;
} kl_homes;

void kl_homes_free(kl_homes *homes);
/* Begin a run of the series with the tasks in left[0 … count−1]. The last of these spans is dealt first. If
 * `series` is 0, the run belongs to no series. It costs O(tasks). Error: KILTER_ERR_MEMORY. */
kilter_status kl_homes_begin(kl_homes *homes, uint64_t series, uint64_t tasks, const kl_snapshot *snapshot,
                             const kl_span *left, size_t count);
bool kl_homes_in_use(const kl_homes *homes);
bool kl_homes_has_own(const kl_homes *homes, uint32_t worker); /* Return whether tasks are left that the
                                                                  worker did in the last run (its home). */
/* Return the home (tasks of one worker in the last run) from which `worker` takes its next tasks. Set *most
 * to the number of tasks that it may take. A worker takes tasks from its own home while this home has tasks.
 * From another worker's home, `worker` takes only the tasks that exceed the other worker's share, but at
 * least one. If shares and workers are as in the last run, no home exceeds its share. If the returned home is
 * empty, no tasks are left. */
uint32_t kl_homes_choose(const kl_homes *homes, const kl_dealer *dealer, const kl_snapshot *snapshot,
                         uint32_t worker, uint64_t *most);
/* Return the consecutive tasks that are dealt next from a home, which must not be empty. A home has the
 * tasks of one worker in the last run. */
kl_span kl_homes_front(const kl_homes *homes, uint32_t home);
void kl_homes_take(kl_homes *homes, uint32_t home, uint64_t count);
/* Store that `worker` did the tasks `done`. Tasks that were added during the run are ignored. */
void kl_homes_note(kl_homes *homes, kl_span done, uint32_t worker);

/* --- recalls and speculative copies --- */

/* A recall, a copy, or KL_DECIDES_NOTHING. Recall: the subject (a worker) keeps its first `count` tasks, and
 * returns its other tasks unless it has begun them. Copy: the subject's last `count` tasks are also sent to
 * worker `to`, and the first result counts. */
typedef struct kl_rescue {
    kl_decision decision;
    uint32_t to;
} kl_rescue;

/* Functions of the caller that say which tasks a worker holds and which workers wait. They are called for
 * few workers. */
typedef struct kl_board {
    const void *self;
    void (*held)(const void *self, uint32_t worker, kl_held *held);
    bool (*waits)(const void *self, uint32_t worker); /* true: the worker asked for work and got none */
    /* return the number of waiting workers; the call may be slow (O(P)), because it is rare */
    uint32_t (*waiting)(const void *self);
    /* units of work of the tasks that were recalled and have not come back yet */
    double coming_units;
} kl_board;

/* A task is recalled at most KL_RESCUE_RECALLS times, and copied at most KL_RESCUE_COPIES times. */
enum { KL_RESCUE_RECALLS = 3, KL_RESCUE_COPIES = 2 };

/* Return whether the policy recalls and copies late tasks. AUTO and ECT do. The other policies do not,
 * because they work as published. */
bool kl_policy_rescues(const kl_policy *policy);
/* Choose a recall or a copy for a late worker, when no task is left to deal and another worker waits. With P
 * workers, it costs O(log P + number of late workers whose tasks are all copied already). */
void kl_rescue_choose(const kl_snapshot *snapshot, const kl_board *board, kl_rescue *rescue);
/* Do the same as kl_rescue_choose(), and store the inputs of the choice. */
void kl_grounds_rescue(kl_grounds *grounds, const kl_snapshot *snapshot, const kl_board *board,
                       kl_rescue *rescue);
/* Return the seconds after which the requests of waiting workers should be considered again. task_s: mean
 * seconds of a task; took_s: seconds that considering the requests took last time. */
double kl_held_pause_s(double task_s, double took_s);
/* Return the seconds until kl_rescue_choose() should be called again after it chose nothing. waited_s:
 * seconds since no task was left to deal; took_s: seconds that the last call took. */
double kl_rescue_pause_s(const kl_snapshot *snapshot, double waited_s, double took_s);

/* --- the number of workers --- */

/* Measurements of the iteration that ended, and the workers available for the next one. */
typedef struct kl_iteration {
    uint64_t run, tasks, chunks;
    /* the model of the farm. model.work_s [T_c]: seconds that one worker would need for all work, at the mean
     * speed of the workers that took part */
    kl_farm_model model;
    /* mean [μ] and standard deviation [σ] of the seconds that a task takes on a worker of mean speed */
    double task_mean_s, task_sd_s;
    /* seconds that the master works for one chunk; 0: not known, so the model's m_o is used */
    double answer_s;
    /* seconds of a round trip in addition to the message cost m_o; neither side works in this time */
    double way_s;
    uint32_t workers; /* workers that took part [n] */
    double elapsed_s; /* measured seconds of the iteration, without the time that the master works alone */
    double uneven_s;  /* busy seconds of the busiest worker minus the mean busy seconds */
    double quality;   /* 1 − mean busy time / elapsed_s, as measured [q] */
    /* speeds of all `most` present workers, relative to the mean speed of the workers that took part */
    kl_speeds speeds;
    uint32_t most;
    kl_load load; /* measured load of the run on shared resources; all zero: not known */
    /* state of the choice of the number of workers, which has the costs that were measured with other
     * numbers; NULL: nothing is known */
    const struct kl_team *team;
} kl_iteration;

/* The number of workers changes only if this number of iterations has found the same direction of change
 * (fewer, more, or faster workers). The change is judged after the same number of iterations. */
enum { KL_TEAM_PERSISTS = 3 };

typedef enum kl_team_way {
    KL_TEAM_STAY,
    KL_TEAM_FEWER,
    KL_TEAM_MORE,
    KL_TEAM_OTHERS, /* take the same number of workers, but faster ones that rest now */
    KL_TEAM_WAYS,
} kl_team_way;

typedef enum kl_team_verdict {
    KL_TEAM_NOTHING, /* keep the number: no other number of workers would be better */
    KL_TEAM_REFUSED, /* another number seems better, but is not chosen now; the reason says why */
    KL_TEAM_CHANGED,
    KL_TEAM_BACK, /* go back to the number before the last change, because the change did not pay */
} kl_team_verdict;

/* The cost of an iteration that takes T seconds with n workers, as two numbers. Smaller is better; by_task:
 * n·T² divided by the square of the number of tasks; by_work: n·T² divided by the square of the seconds of
 * work */
typedef struct kl_team_cost {
    double by_task, by_work;
} kl_team_cost;

/* The cost of an iteration that was measured with another number of workers. */
typedef struct kl_team_point {
    uint32_t workers; /* number of workers; 0: this entry of the array is free */
    kl_team_cost cost;
    uint64_t until; /* number of the run from which this cost counts as outdated */
} kl_team_point;

enum { KL_TEAM_POINTS = 6 };

/* The state of the choice of the number of workers. All zero: there was no iteration yet. */
typedef struct kl_team {
    uint32_t workers; /* number of workers in the last iteration */
    /* way: direction of the change that the last `seen` iterations found better; an iteration that finds no
     * better number lowers `seen` by 1; nearest: of the numbers that these iterations found, the one closest
     * to `workers` */
    kl_team_way way;
    uint32_t seen, nearest;
    uint32_t measured;                    /* number of iterations in a row with `workers` workers */
    kl_team_cost costs[KL_TEAM_PERSISTS]; /* costs of the last iterations with `workers` workers */
    /* number of workers before the change that is being tried; 0: no change is being tried */
    uint32_t tried_from;
    kl_team_cost before; /* cost of an iteration before the change that is being tried */
    bool explores;       /* true: the change is tried only because the model is uncertain */
    /* number of the run until which no other workers are tried, because a change to faster workers did
     * not pay */
    uint64_t others_until;
    uint32_t failures[KL_TEAM_WAYS];      /* number of changes in each direction that did not pay */
    kl_team_point points[KL_TEAM_POINTS]; /* other numbers of workers that were measured */
} kl_team;

/* The number of workers chosen for the next iteration. */
typedef struct kl_team_plan {
    /* decision.count: number of workers, always the fastest ones. It differs from the present number if the
     * verdict is CHANGED or BACK. gain_s: seconds that the number `considered` would save; below 0: it would
     * cost time */
    kl_decision decision;
    kl_team_verdict verdict;
    /* number of workers whose forecast time was compared with the time of the present number */
    uint32_t considered;
    kl_team_way way;
    uint32_t seen;
    bool explores;
    double forecast_s; /* forecast seconds of the next iteration with the chosen number of workers */
} kl_team_plan;

/* Return the largest number of workers, from 1 to iteration->most, whose load can be balanced. This means
 * that each worker gets at least two tasks, and that waiting for the last chunks takes at most a fifth of the
 * time. */
uint32_t kl_team_balanceable(const kl_iteration *iteration);
/* Choose the number of workers with the smallest index n·T², among the numbers that the master can serve and
 * that can be balanced. The present number stays if the best is not 5 % better. Workers that rest replace as
 * many active ones only if the index becomes 20 % better. A change needs KL_TEAM_PERSISTS iterations that
 * found the same direction of change (fewer, more, or faster workers). If the model explains little of the
 * time, only fewer workers are tried. If the load was very uneven, changes wait. Times measured with other
 * numbers of workers correct the model. If the model is uncertain, a number nearby is tried once. */
void kl_team_choose(const kl_team *team, const kl_iteration *iteration, kl_team_plan *plan);
/* --- the number of workers within a run --- */

/* Findings of the looks (checks) at a run in progress. When a run begins, all members but the times are 0. */
typedef struct kl_glance {
    /* began_s: time at which the run began; then_s: time of the last look; then_cpu_s: CPU seconds used
     * up to the last look */
    double began_s, then_s, then_cpu_s;
    /* number of workers that the last look (check) found to be enough; 0: there was no look */
    uint32_t found;
    uint32_t from; /* number of workers that worked before some began to rest; 0: none rests */
    bool gave_up;  /* true: resting workers were needed after all, so no worker rests again in this run */
} kl_glance;

typedef struct kl_sight {
    double now_s, cpu_s; /* cpu_s: CPU seconds that the farm and all workers on its host used in this run */
    uint32_t cores, workers;
    uint64_t done; /* number of tasks of the run that are done */
    const kl_load *load;
} kl_sight;

typedef struct kl_glance_plan {
    kl_decision decision; /* decision.count: number of workers that should work */
    bool changed;
} kl_glance_plan;

/* Look at a run in progress. While all cores are busy, let workers rest if two looks find that the run is as
 * fast without them. When cores become idle, let all workers work again. Return false if too little is
 * measured. */
bool kl_glance_look(kl_glance *glance, const kl_sight *sight, kl_glance_plan *plan);
double kl_glance_due_s(const kl_glance *glance, double now_s); /* Return the time of the next look. */

/* Return the number of workers with which a new farm should begin. The number is computed from an iteration
 * of an earlier farm. 0: this iteration has too few measurements. */
uint32_t kl_team_expect(const kl_iteration *iteration, char reason[KL_REASON_BYTES]);
/* Do the same as kl_team_choose(), kl_team_expect() and kl_glance_look(), and append the inputs of the
 * decision to `grounds`. */
void kl_grounds_team(kl_buffer *grounds, const kl_team *team, const kl_iteration *iteration,
                     kl_team_plan *plan);
uint32_t kl_grounds_expect(kl_buffer *grounds, const kl_iteration *iteration, char reason[KL_REASON_BYTES]);
bool kl_grounds_look(kl_buffer *grounds, kl_glance *glance, const kl_sight *sight, kl_glance_plan *plan);
/* Update the state with a plan that is carried out; call this once for each iteration. */
void kl_team_commit(kl_team *team, const kl_iteration *iteration, const kl_team_plan *plan);

/* --- the number of tasks --- */

/* A program's question which number of tasks is fastest. The program can divide its work into any number of
 * tasks from `least` to `most`. */
typedef struct kl_grain_question {
    uint64_t least, most; /* 1 ≤ least ≤ most */
    /* return the number of runs that the program needs if each has `tasks` tasks; NULL: the number of runs is
     * always the same */
    double (*runs)(uint64_t tasks, void *user);
    void *user;
} kl_grain_question;

typedef struct kl_grain_look {
    kl_forkjoin model;    /* measured model of the fork-join program */
    const kl_lane *lanes; /* the active workers as lanes, with rates in units of work per second */
    uint32_t lane_count;
    double work_units; /* units of work of a run; they do not depend on the number of tasks */
    double lost_s;     /* seconds of the last run that the model does not explain */
    uint64_t tasks;    /* number of tasks in the last run; 0: there was no run */
    uint64_t least_seen,
        most_seen; /* least and greatest number of tasks for which model.master was measured */
} kl_grain_look;

typedef struct kl_grain_plan {
    /* decision.count: number of tasks. gain_s: mean seconds saved in each of the coming runs, compared with
     * the last run's number of tasks */
    kl_decision decision;
    uint32_t workers; /* number of workers that would get tasks */
    /* forecast seconds of one iteration: of the master's part, the workers' part, and the messages */
    double master_s, workers_s, messages_s;
} kl_grain_plan;

/* Choose the number of tasks for which (number of runs) × (time of an iteration) is least; the smaller number
 * wins ties. One kind of candidates is a series of numbers, each 1/16 greater than the previous number. The
 * other kind is the multiples of the number of workers. The present number is kept unless a candidate is 5 %
 * better. The master's times t_M were measured for some numbers of tasks. They are trusted from a quarter of
 * the least to four times the greatest of these numbers. Before anything is measured, the choice is four
 * tasks for each worker. Error: KILTER_ERR_MEMORY. */
kilter_status kl_grain_choose(const kl_grain_look *look, const kl_grain_question *question,
                              kl_grain_plan *plan);

/* --- who organises a run: the master, which deals chunks, or the workers among themselves as peers --- */

typedef enum kl_organise { KL_ORGANISE_MASTER, KL_ORGANISE_AUTO, KL_ORGANISE_PEERS } kl_organise;

/* A farm's first runs with a master may be slow because its memory and connections are new. Time lost in this
 * number of runs is no reason to try peers. */
enum { KL_COLD_RUNS = 2 };

typedef struct kl_organise_look {
    kl_organise wanted;
    const char *never;        /* why peers cannot do this run; NULL: they can */
    uint32_t workers;         /* number of active workers */
    uint64_t tasks;           /* number of tasks of the run */
    double result_bytes;      /* bytes of all results of the run; 0 for a run with a sum */
    const kl_iteration *last; /* the last run that a master organised; NULL: there was none */
    uint64_t master_runs;     /* number of runs that a master organised */
    /* mean seconds of a task in the last run, on a worker of mean speed; 0: not known */
    double task_s;
    /* mean seconds of earlier runs (kl_organise_mean()), scaled to this run's number of tasks. by_master_s:
     * of runs with a master; by_peers_s: of runs with this number of peers; 0: there was no such run */
    double by_master_s, by_peers_s;
    bool tried; /* true: peers have organised an earlier run, perhaps with another number of peers */
    /* true: a number of workers is being tried, which can be judged only in runs with a master */
    bool on_trial;
    /* index n·T² of a run of T seconds with a master and n workers, for the best number n of workers; it is
     * measured or forecast. 0: no best number is found yet */
    double best_index;
    /* seconds that runs with a master have lost since peers last organised a run, without the first
     * KL_COLD_RUNS runs. A run loses its time minus the mean busy time of its workers. */
    double lost_s;
} kl_organise_look;

/* Return the mean of a value over runs. before: its mean over the earlier runs; runs: the number of these
 * runs. From the eighth run on, the latest run counts one eighth. */
double kl_organise_mean(uint64_t runs, double before, double latest);
/* Return this mean for runs with a master. The first runs are usually slower than later ones. So if one of
 * the first four runs in the mean takes less than 0.8 of it, it replaces all runs before it. The second run
 * replaces the first if it is faster at all. */
double kl_organise_mean_of_master(uint64_t runs, double before, double latest);
/* Return the seconds that a run with a master lost. Time lost on shared resources does not count, because
 * peers would lose it, too. */
double kl_organise_lost_s(const kl_iteration *run);
/* Choose whether the master or peers organise a run. count: number of peers; 0: the master. forecast_s:
 * forecast seconds of the run. gain_s: seconds saved, compared with the other choice. */
kl_decision kl_organise_choose(const kl_organise_look *look);

#endif
