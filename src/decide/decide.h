/* The interface of room decide, which chooses the next chunk for a worker and gives the reason. The room is
 * pure code. Planning and committing are separate calls: kl_dealer_plan() changes nothing, and the caller
 * calls kl_dealer_commit() once for each plan that it carries out. */
#ifndef KL_DECIDE_H
#define KL_DECIDE_H

#include "kilter/policy.h"
#include "kilter/run.h"
#include "model/model.h"

enum { KL_REASON_BYTES = 160 };

/* --- a decision --- */

/* The kinds of decisions of farms and of loops. Brackets say what a decision's `count` counts. */
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
    KL_DECIDES_TEAM,     /* the number of workers with which the next farm of this program begins [workers] */
    KL_DECIDES_GRAIN,    /* the number of tasks that a program should make [tasks] */
    KL_DECIDES_PROGRAM,  /* the forecast of a program for its coming runs [runs] */
    KL_DECIDES_MOVE,     /* rows of a loop move to other ranks [iterations] */
    KL_DECIDES_STAY,     /* no better shares are known [0] */
    KL_DECIDES_WAIT,     /* moving to better shares does not pay yet [0] */
    KL_DECIDES_REST,     /* balancing pauses [0] */
    KL_DECIDES_REFUSED,  /* a rank had no memory for a move [0] */
    KL_DECIDES_BLOCK,    /* the blocks of a pipeline [elements] */
    KL_DECIDES_ORGANISE, /* who organises a run [peers that do; 0: the master] */
    KL_DECISION_KINDS
} kl_decision_kind;

enum { KL_SUBJECT_ALL = -1 };

/* A decision of any kind, as it is stored in the record. Its times are forecasts in seconds. */
typedef struct kl_decision {
    kl_decision_kind kind;
    int64_t subject;   /* the worker concerned: in memory its place in the snapshot, in the record its number.
                          KL_SUBJECT_ALL: the whole farm or loop */
    uint64_t count;    /* tasks, workers, runs, iterations or elements, as kl_decision_kind says */
    double forecast_s; /* time at which the decision will have been carried out; 0: not known */
    double gain_s;     /* seconds that the decision saves; 0: not known */
    double cost_s;     /* seconds spent on carrying out the decision */
    char reason[KL_REASON_BYTES]; /* the reason: one clause with the numbers that decided */
} kl_decision;

const char *kl_decision_name(kl_decision_kind kind); /* the name in the record: "deal", "withhold", … */
kl_decision_kind kl_decision_find(const char *name); /* KL_DECISION_KINDS: no kind has this name */

/* A time with its unit, for people to read. */
typedef struct kl_time_text {
    char text[16];
} kl_time_text;
kl_time_text kl_say_s(double seconds);

/* --- the next chunk of a worker --- */

/* The answer to a worker that asks: tasks (deal), or no tasks now (withhold). A worker without tasks is
 * considered again after the next event. The gain is relative to an equal part of the remaining tasks. */
typedef struct kl_plan {
    kl_decision decision; /* count: number of tasks, at most snapshot.left */
    bool cut_short;       /* set by the caller: fewer than `meant` tasks, as only these are consecutive */
    uint64_t meant; /* number of tasks that the policy chose, before weights and message sizes change it */
} kl_plan;

typedef struct kl_policy_settings {
    double factor; /* FSC, DPF: partition factor in (0, 1]. 0: 0.25 in the first two runs, afterwards the
                      factor with the shortest forecast */
} kl_policy_settings;

typedef struct kl_policy kl_policy;
typedef struct kl_dealer kl_dealer; /* the policy of one farm, and its state through all runs */

/* The registry, in order of registration. This order breaks ties between policies. */
size_t kl_policy_count(void);
const kl_policy *kl_policy_at(size_t i);
/* Find a policy by its name in upper or lower case; NULL: there is no such policy. */
const kl_policy *kl_policy_find(const char *name);
/* Take the program's own policies. The list ends with NULL, and the program keeps it as long as `own` lives.
 * KILTER_ERR_USAGE: a policy in the list cannot be used. */
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
/* Set the factor from the next batch on; 0: the policy chooses. A policy without a factor ignores this. */
void kl_dealer_set_factor(kl_dealer *dealer, double factor);

/* Begin a run, with all its tasks left. Error: KILTER_ERR_MEMORY. The caller has told snapshot.crew every
 * change of a worker's view, and has advanced the crew to snapshot.now_s. This holds below, too. */
kilter_status kl_dealer_begin(kl_dealer *dealer, const kl_snapshot *snapshot);
/* Note that the run got `tasks` more tasks. Error: KILTER_ERR_MEMORY. */
kilter_status kl_dealer_grown(kl_dealer *dealer, const kl_snapshot *snapshot, uint64_t tasks);
/* Note that a new worker joined, at place `worker` of the snapshot. */
void kl_dealer_joined(kl_dealer *dealer, uint32_t worker);
/* Note that workers came or left. */
void kl_dealer_changed(kl_dealer *dealer);
/* Plan how many tasks `worker`, which asks for work, gets. Every task is dealt in the end, whatever the order
 * in which workers ask. When no worker holds tasks, at least one present worker gets some. */
void kl_dealer_plan(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker, kl_plan *plan);
/* Note that the plan was carried out. `snapshot` is the one that kl_dealer_plan() got. */
kilter_status kl_dealer_commit(kl_dealer *dealer, const kl_snapshot *snapshot, const kl_plan *plan);

/* --- the inputs of decisions, for the record --- */

/* The stored inputs of a dealer, from which kl_again makes the dealer's decisions again. The functions for it
 * accept NULL, and then do nothing. */
typedef struct kl_grounds kl_grounds;

kl_grounds *kl_grounds_new(void); /* NULL: memory ran out */
void kl_grounds_free(kl_grounds *grounds);
/* Note that the view of `worker` has changed. */
void kl_grounds_changed(kl_grounds *grounds, uint32_t worker);
/* Note that the plan was recorded. `snapshot` is the one that kl_dealer_plan() got. */
void kl_grounds_answers(kl_grounds *grounds, const kl_snapshot *snapshot, const kl_plan *plan);
/* Return the bytes that were stored since the last call, for the next decision's row. They are valid until
 * more is stored. Empty bytes: decisions cannot be made again until the next run begins. */
kilter_bytes kl_grounds_take(kl_grounds *grounds);
/* Make the dealer store its inputs in `grounds`, from the next run on. */
void kl_dealer_write(kl_dealer *dealer, kl_grounds *grounds);

/* Makes the decisions of a recorded run again, row by row. */
typedef struct kl_again kl_again;

/* A row of the record: the bytes that kl_grounds_take() returned, and the decision. The decision's subject is
 * a worker's number. */
typedef struct kl_recorded {
    kilter_bytes grounds;
    kl_decision decision;
} kl_recorded;

typedef struct kl_answer {
    const char *missing;  /* why the decision could not be made again; NULL: it was made */
    kl_decision decision; /* its count is what the policy meant; its subject is the worker's number */
    uint64_t meant;       /* the count that the policy meant when the decision was recorded */
    double now_s;         /* the time at which decision.forecast_s was forecast */
} kl_answer;

/* Begin to make the decisions of a run again. `instead` is a policy that decides in place of the recorded
 * one, with the chunks that were dealt in the run; NULL: the recorded one. Return NULL without memory. */
kl_again *kl_again_new(const kl_policy *instead);
void kl_again_free(kl_again *again);
/* Make the decision of a row again. Call this for each row, in the order of the record. */
void kl_again_decide(kl_again *again, const kl_recorded *row, kl_answer *answer);

/* --- whole shares --- */

/* Assign `tasks` equal tasks of task_units each by earliest completion (Buaklee, Tracy, Vernon, Wright 2002).
 * Each task goes to the lane that would end it first after its tasks so far, and the first lane wins ties. No
 * other assignment ends sooner. The function fills counts[0 … lanes−1]. Rates are above 0. O(lanes·log
 * lanes). Error: KILTER_ERR_MEMORY. */
kilter_status kl_assign_earliest(const kl_lane *lanes, uint32_t count, double task_units, uint64_t tasks,
                                 uint64_t *counts);
/* Return the seconds until the last task of an assignment ends; 0: there is no task. */
double kl_assignment_end_s(const kl_lane *lanes, uint32_t count, double task_units, const uint64_t *counts);

/* The shares that a policy assigned at the beginning of a run. */
typedef struct kl_assignment {
    kl_decision decision; /* count: workers that get tasks. gain_s: seconds saved against equal groups; below
                             0: equal groups would end sooner. forecast_s: filled in by the caller */
    uint32_t idle;        /* number of workers that are too slow to help */
    double end_s;         /* forecast seconds from now to the end of all tasks */
} kl_assignment;

/* Return the assignment of the present run. false: the policy deals step by step. */
bool kl_dealer_assignment(const kl_dealer *dealer, kl_assignment *assignment);
/* Return whether the assignment leaves `worker` without tasks, and fill in the reason. */
bool kl_dealer_leaves_out(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker,
                          char reason[KL_REASON_BYTES]);

/* Return how many of the tasks that were assigned to `worker` at the beginning are not dealt yet; 0: none, or
 * the policy deals step by step. */
uint64_t kl_dealer_share(const kl_dealer *dealer, uint32_t worker);

/* --- the tasks of a worker --- */

typedef struct kl_home { /* the home of one worker: the tasks in spans[first … end) wait for this worker */
    size_t first, end;
    uint64_t tasks;
} kl_home;

/* A series of runs with the same tasks, index by index. A task is cheaper on the worker that did it last,
 * because this worker still keeps data of the task. Zeroed: no series. */
typedef struct kl_homes {
    uint64_t series, tasks;
    uint32_t *last; /* last[task]: the place of the worker that did the task last; UINT32_MAX: no worker */
    kl_span *spans; /* tasks of the present run that are not dealt yet, by home */
    kl_home *home; /* home[0 … places−1]: homes of workers; home[places]: tasks without a present worker */
    uint32_t places;
} kl_homes;

void kl_homes_free(kl_homes *homes);
/* Begin a run of the series (0: the run belongs to no series) with the tasks in left[0 … count−1]; the last
 * span is dealt first. O(tasks). Error: KILTER_ERR_MEMORY. */
kilter_status kl_homes_begin(kl_homes *homes, uint64_t series, uint64_t tasks, const kl_snapshot *snapshot,
                             const kl_span *left, size_t count);
bool kl_homes_in_use(const kl_homes *homes);
bool kl_homes_has_own(const kl_homes *homes,
                      uint32_t worker); /* are there tasks that this worker did last time? */
/* Return the home from which `worker` takes tasks next, and set the most tasks that it may take. This is the
 * worker's own home while tasks are in it. From another home, `worker` takes only tasks beyond the share of
 * that home's worker; with the same shares and workers as last time there are no such tasks. If the returned
 * home has no tasks, none are left for `worker`. */
uint32_t kl_homes_choose(const kl_homes *homes, const kl_dealer *dealer, const kl_snapshot *snapshot,
                         uint32_t worker, uint64_t *most);
/* Return the consecutive tasks that leave a home next; the home is not empty. */
kl_span kl_homes_front(const kl_homes *homes, uint32_t home);
void kl_homes_take(kl_homes *homes, uint32_t home, uint64_t count);
/* Note that `worker` did the tasks `done`. Tasks that were added during the run are not noted. */
void kl_homes_note(kl_homes *homes, kl_span done, uint32_t worker);

/* --- recalls and speculative copies --- */

/* A recall: the subject keeps the first `count` tasks that it holds, and gives back the other tasks that it
 * has not begun. A copy: the last `count` tasks that the subject holds go to `to` as well, and the first
 * result counts. KL_DECIDES_NOTHING: neither. */
typedef struct kl_rescue {
    kl_decision decision;
    uint32_t to;
} kl_rescue;

/* The caller's answers to questions about the tasks of a worker, and about waiting workers. Only a few
 * workers are asked about. */
typedef struct kl_board {
    const void *self;
    void (*held)(const void *self, uint32_t worker, kl_held *held);
    bool (*waits)(const void *self, uint32_t worker); /* did the worker ask for work and get none? */
    uint32_t (*waiting)(const void *self); /* number of waiting workers; called seldom, may be O(P) */
    double coming_units;                   /* units of work that is recalled and not back yet */
} kl_board;

/* The most recalls and the most copies of one task. */
enum { KL_RESCUE_RECALLS = 3, KL_RESCUE_COPIES = 2 };

/* Return whether the policy rescues late tasks. AUTO and ECT do; the other policies are as published. */
bool kl_policy_rescues(const kl_policy *policy);
/* Choose a recall or a copy for late workers, when nothing is left to deal and a worker waits. O(log P +
 * number of late workers whose tasks are copied already). */
void kl_rescue_choose(const kl_snapshot *snapshot, const kl_board *board, kl_rescue *rescue);
/* Choose a rescue in the same way, and store the inputs of the choice. */
void kl_grounds_rescue(kl_grounds *grounds, const kl_snapshot *snapshot, const kl_board *board,
                       kl_rescue *rescue);
/* Return the seconds until the next look at workers that wait and get no tasks. task_s: mean seconds of a
 * task; took_s: seconds that the last look took. */
double kl_held_pause_s(double task_s, double took_s);
/* Return the seconds until kl_rescue_choose() should be called again after it chose nothing. waited_s:
 * seconds since the bag became empty; took_s: seconds that the last call took. */
double kl_rescue_pause_s(const kl_snapshot *snapshot, double waited_s, double took_s);

/* --- the number of workers --- */

/* Measurements of the iteration that ended, and the workers available for the next one. */
typedef struct kl_iteration {
    uint64_t run, tasks, chunks;
    kl_farm_model model;           /* its work_s [T_c] is at the mean speed of the workers that took part */
    double task_mean_s, task_sd_s; /* mean and standard deviation of a task's seconds at this speed [μ, σ] */
    double answer_s;               /* seconds of the master for one chunk; 0: not known, and m_o is used */
    double way_s;     /* seconds of a message's way there and back that occupy nobody, beyond m_o */
    uint32_t workers; /* workers that took part [n] */
    double elapsed_s; /* measured seconds of the iteration, without the master's own time */
    double uneven_s;  /* seconds of elapsed_s by which the greatest busy time exceeds the mean one */
    double quality;   /* measured value of 1 − mean busy time/elapsed_s [q] */
    kl_speeds speeds; /* speeds of all `most` present workers; 1: mean of those that took part */
    uint32_t most;
    kl_load load; /* measured load; zeroed: not known */
} kl_iteration;

enum { KL_TEAM_PERSISTS = 3 }; /* iterations that must agree before a change, and before it is judged */

typedef enum kl_team_way {
    KL_TEAM_STAY,
    KL_TEAM_FEWER,
    KL_TEAM_MORE,
    KL_TEAM_OTHERS, /* the same number, with faster workers that rest now */
    KL_TEAM_WAYS,
} kl_team_way;

typedef enum kl_team_verdict {
    KL_TEAM_NOTHING, /* no other number of workers would be better */
    KL_TEAM_REFUSED, /* another number seems better, but is not chosen now; the reason says why */
    KL_TEAM_CHANGED,
    KL_TEAM_BACK, /* the last change did not pay and is undone */
} kl_team_verdict;

/* The cost of an iteration: the index n·T² per task, and per second of work. A smaller cost is better. */
typedef struct kl_team_cost {
    double by_task, by_work;
} kl_team_cost;

/* The findings of the iterations so far. Zeroed: no iteration yet. */
typedef struct kl_team {
    uint32_t workers; /* number of workers in the last iteration */
    kl_team_way way; /* the way that `seen` iterations agreed on, less iterations that found nothing better */
    uint32_t seen, nearest;
    uint32_t measured;                    /* number of consecutive iterations with `workers` */
    kl_team_cost costs[KL_TEAM_PERSISTS]; /* costs of the latest of these iterations */
    uint32_t tried_from;                  /* number of workers before a change on trial; 0: no trial */
    kl_team_cost before;                  /* cost of an iteration before the trial */
    uint64_t barred_until[KL_TEAM_WAYS];  /* run until which a way is barred, because it did not pay */
    uint32_t failures[KL_TEAM_WAYS];
} kl_team;

/* The number of workers chosen for the next iteration. */
typedef struct kl_team_plan {
    kl_decision decision; /* count: workers, the fastest ones; the present number unless the verdict is
                             CHANGED or BACK. gain_s: seconds saved by `considered` workers; below 0: the
                             iteration takes longer, with fewer workers */
    kl_team_verdict verdict;
    uint32_t considered; /* number of workers that was considered */
    kl_team_way way;
    uint32_t seen;
    double forecast_s; /* forecast seconds of the next iteration with the chosen number of workers */
} kl_team_plan;

/* Return the most workers, 1 … most, whose load can be balanced. Then each worker gets at least two tasks,
 * and the last chunks leave at most a fifth of the time idle. */
uint32_t kl_team_balanceable(const kl_iteration *iteration);
/* Choose the number of workers with the smallest index, among the numbers that the master can serve and that
 * can be balanced. The present number stays if the best is not 5 % better. A change needs KL_TEAM_PERSISTS
 * iterations that agree. If the model does not explain much of the time, only fewer workers are tried. If the
 * load was very uneven, changes wait. */
void kl_team_choose(const kl_team *team, const kl_iteration *iteration, kl_team_plan *plan);
/* --- within a run --- */

/* Findings of the looks at one run. At first all members but the times are 0. */
typedef struct kl_glance {
    double began_s, then_s,
        then_cpu_s; /* times of the beginning and of the last look; CPU seconds until then */
    uint32_t found; /* number of workers that are enough, by the last look; 0: there was no look */
    uint32_t from;  /* number of workers before some began to rest; 0: none rests */
    bool gave_up;   /* resting workers were needed after all, so none rests again */
} kl_glance;

typedef struct kl_sight {
    double now_s, cpu_s; /* cpu_s: CPU seconds of the farm and all workers on its host in this run */
    uint32_t cores, workers;
    uint64_t done; /* number of tasks done */
    const kl_load *load;
} kl_sight;

typedef struct kl_glance_plan {
    kl_decision decision; /* count: number of workers that should work */
    bool changed;
} kl_glance_plan;

/* Look at a run under way. While all cores are busy, workers may rest if the run is as fast without them; two
 * looks must agree. When cores become idle, all workers work again. Return false if too little is known. */
bool kl_glance_look(kl_glance *glance, const kl_sight *sight, kl_glance_plan *plan);
double kl_glance_due_s(const kl_glance *glance, double now_s); /* Return the time of the next look. */

/* Return the number of workers for a farm that is about to begin, from one iteration of an earlier farm; 0:
 * the iteration does not tell this number. */
uint32_t kl_team_expect(const kl_iteration *iteration, char reason[KL_REASON_BYTES]);
/* Do the same as the functions above, and append the inputs of the decision to `grounds`. */
void kl_grounds_team(kl_buffer *grounds, const kl_team *team, const kl_iteration *iteration,
                     kl_team_plan *plan);
uint32_t kl_grounds_expect(kl_buffer *grounds, const kl_iteration *iteration, char reason[KL_REASON_BYTES]);
bool kl_grounds_look(kl_buffer *grounds, kl_glance *glance, const kl_sight *sight, kl_glance_plan *plan);
/* Carry a plan into the team's state; call this once for each iteration. */
void kl_team_commit(kl_team *team, const kl_iteration *iteration, const kl_team_plan *plan);

/* --- the number of tasks --- */

/* The question of a program that can cut its work into any number of tasks: which number is fastest? */
typedef struct kl_grain_question {
    uint64_t least, most; /* least and greatest number of tasks that the program can make; 1 ≤ least ≤ most */
    double (*runs)(uint64_t tasks, void *user); /* runs needed with `tasks` tasks; NULL: always the same */
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
    kl_decision decision; /* count: tasks. gain_s: seconds saved in each run, against as many tasks as in the
                             last run, if all runs are counted */
    uint32_t workers;     /* number of workers that get tasks */
    double master_s, workers_s, messages_s; /* forecast seconds of the parts of one iteration */
} kl_grain_plan;

/* Choose the number of tasks with the least product of runs and time of an iteration; the smaller number wins
 * ties. The candidates are numbers 1/16 apart and multiples of the number of workers. The present number
 * stays if no candidate is 5 % better. The measured t_M is trusted from a quarter of the fewest to four times
 * the most tasks seen. Without measurements the choice is four tasks a worker. Error: KILTER_ERR_MEMORY. */
kilter_status kl_grain_choose(const kl_grain_look *look, const kl_grain_question *question,
                              kl_grain_plan *plan);

/* --- who organises a run: the master, which deals chunks, or the workers among themselves, as peers --- */

typedef enum kl_organise { KL_ORGANISE_MASTER, KL_ORGANISE_AUTO, KL_ORGANISE_PEERS } kl_organise;

typedef struct kl_organise_look {
    kl_organise wanted;
    const char *never;        /* why peers cannot do this run; NULL: they can */
    uint32_t workers;         /* active workers */
    uint64_t tasks;           /* tasks of the run */
    const kl_iteration *last; /* the last run that a master organised; NULL: there was none */
    /* mean seconds of a task in the last run, on a worker of mean speed; 0: not known */
    double task_s;
    /* time of the last run that peers organised, for as many tasks; 0: there was none */
    double peers_s;
} kl_organise_look;

/* count: number of peers, 0: the master. forecast_s: seconds of the run. gain_s: against the other way. */
kl_decision kl_organise_choose(const kl_organise_look *look);

#endif
