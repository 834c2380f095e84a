/* Door of room decide: who gets how many tasks next, and why. Pure.
 *
 * Look, decide and commit are separate calls: kl_dealer_plan() only reads, so "what if" is free;
 * kl_dealer_commit() is called once for each plan carried out. */
#ifndef KL_DECIDE_H
#define KL_DECIDE_H

#include "kilter/policy.h"
#include "kilter/run.h"
#include "model/model.h"
#include "play/play.h"

enum { KL_REASON_BYTES = 160 };

/* --- a decision --- */

/* The kinds of decisions of farms and of loops. What `count` of a decision counts is in brackets. */
typedef enum kl_decision_kind {
    KL_DECIDES_NOTHING,  /* not recorded */
    KL_DECIDES_DEAL,     /* a chunk for a worker [tasks] */
    KL_DECIDES_WITHHOLD, /* nothing for a worker that asked [0] */
    KL_DECIDES_RECALL,   /* take back from a worker what it has not begun [tasks it keeps] */
    KL_DECIDES_COPY,     /* a speculative copy of what a worker holds [tasks] */
    KL_DECIDES_ASSIGN,   /* whole shares before a run [workers that get one] */
    KL_DECIDES_POLICY,   /* set by hand [0] */
    KL_DECIDES_FACTOR,   /* set by hand [0] */
    KL_DECIDES_WORKERS,  /* how many work in a run [workers] */
    KL_DECIDES_TEAM,     /* with how many the next farm like this one should begin [workers] */
    KL_DECIDES_GRAIN,    /* how many tasks a program should make [tasks] */
    KL_DECIDES_PROGRAM,  /* what a program expects of its coming runs [runs] */
    KL_DECIDES_MOVE,     /* rows of a loop change ranks [iterations] */
    KL_DECIDES_STAY,     /* nothing better is known [0] */
    KL_DECIDES_WAIT,     /* better shares are not worth moving to yet [0] */
    KL_DECIDES_REST,     /* balancing pauses [0] */
    KL_DECIDES_REFUSED,  /* a move was decided, and a rank had no memory [0] */
    KL_DECIDES_BLOCK,    /* the blocks of a pipeline [elements] */
    KL_DECISION_KINDS
} kl_decision_kind;

enum { KL_SUBJECT_ALL = -1 };

/* A decision of any kind, as the record keeps it. Times are forecasts. */
typedef struct kl_decision {
    kl_decision_kind kind;
    int64_t subject;   /* the worker it concerns: its place in the snapshot, in the record its number;
                          KL_SUBJECT_ALL: the farm or loop as a whole */
    uint64_t count;    /* of what: see the kind */
    double forecast_s; /* when what was decided will be done; 0: not known */
    double gain_s;     /* elapsed time saved; 0: not known */
    double cost_s;     /* elapsed time it takes to gain that */
    char reason[KL_REASON_BYTES]; /* one clause, with the numbers that decided */
} kl_decision;

const char *kl_decision_name(kl_decision_kind kind); /* as in the record: "deal", "withhold", … */
kl_decision_kind kl_decision_find(const char *name); /* KL_DECISION_KINDS: there is none */

/* A time for people to read. */
typedef struct kl_time_text {
    char text[16];
} kl_time_text;
kl_time_text kl_say_s(double seconds);

/* --- who gets how much --- */

/* One hand-out: a deal, or nothing for this worker now (withhold), which asks again after the next event. Its
 * gain is that against dealing this worker its equal part of what is left. */
typedef struct kl_plan {
    kl_decision decision; /* count: at most snapshot.left */
    bool cut_short;       /* set by who carries it out: fewer than were meant, as they do not lie together */
    uint64_t meant;       /* count, as the policy meant it: the task weights and the message may change it */
} kl_plan;

typedef struct kl_policy_settings {
    double factor; /* FSC, DPF: partition factor in (0, 1]; 0: 0.25 in the first two runs, then that with
                      which the run should end soonest */
} kl_policy_settings;

typedef struct kl_policy kl_policy;
typedef struct kl_dealer kl_dealer; /* a policy at work on one farm; lives through its runs */

/* The registry, in order of registration; ties between policies are broken by it. */
size_t kl_policy_count(void);
const kl_policy *kl_policy_at(size_t i);
const kl_policy *kl_policy_find(const char *name); /* any case; NULL: no such policy */
/* The program's own policies beside them. The list ends with NULL, and is kept by the program as long as
 * `own` lives. KILTER_ERR_USAGE: a policy of it cannot be used. */
enum { KL_POLICY_NAME_BYTES = 32 };
typedef struct kl_own_policies kl_own_policies;
kilter_status kl_own_policies_new(const kilter_policy *const *list, kl_own_policies **own,
                                  kilter_error *error);
void kl_own_policies_free(kl_own_policies *own);
/* Own ones, then the registry; own may be NULL. NULL: there is none. */
const kl_policy *kl_own_policies_find(const kl_own_policies *own, const char *name);
const char *kl_policy_name(const kl_policy *policy);
const char *kl_policy_summary(const kl_policy *policy); /* one line */
bool kl_policy_has_factor(const kl_policy *policy);     /* FSC, DPF */

kl_dealer *kl_dealer_new(const kl_policy *policy, const kl_policy_settings *settings); /* NULL: no memory */
void kl_dealer_free(kl_dealer *dealer);
const kl_policy *kl_dealer_policy(const kl_dealer *dealer);
double kl_dealer_factor(const kl_dealer *dealer); /* in force; 0: the policy has none */
/* From the next batch on. 0: what the policy has by itself. Nothing to a policy without a factor. */
void kl_dealer_set_factor(kl_dealer *dealer, double factor);

/* A run begins: all its tasks are left. KILTER_ERR_MEMORY. Here and below snapshot.crew knows of every change
 * of a worker's view, and has been advanced to snapshot.now_s. */
kilter_status kl_dealer_begin(kl_dealer *dealer, const kl_snapshot *snapshot);
/* `tasks` more are left. KILTER_ERR_MEMORY. */
kilter_status kl_dealer_grown(kl_dealer *dealer, const kl_snapshot *snapshot, uint64_t tasks);
/* The place `worker` of a snapshot is a new worker's. */
void kl_dealer_joined(kl_dealer *dealer, uint32_t worker);
/* Somebody is present who was not, or the other way round. */
void kl_dealer_changed(kl_dealer *dealer);
/* What would `worker`, which asks for work, get? Whoever asks until left is 0 gets every task dealt, in any
 * order of asking: when no task is queued at any worker, at least one of the present workers is given
 * something. */
void kl_dealer_plan(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker, kl_plan *plan);
/* The plan was carried out as it stands; `snapshot` as kl_dealer_plan() saw it. */
kilter_status kl_dealer_commit(kl_dealer *dealer, const kl_snapshot *snapshot, const kl_plan *plan);

/* --- what decisions are made from, for the record --- */

/* Writes all that a dealer is given, so that kl_again can decide again. NULL does nothing, here and below. */
typedef struct kl_grounds kl_grounds;

kl_grounds *kl_grounds_new(void); /* NULL: no memory */
void kl_grounds_free(kl_grounds *grounds);
/* Call this after the view of `worker` has changed. */
void kl_grounds_changed(kl_grounds *grounds, uint32_t worker);
/* The plan was recorded; `snapshot` as kl_dealer_plan() saw it. */
void kl_grounds_answers(kl_grounds *grounds, const kl_snapshot *snapshot, const kl_plan *plan);
/* Give what was written since the last call, for the row of the next decision; good until the next write.
 * Empty: decisions cannot be made again until the next run begins. */
kilter_bytes kl_grounds_take(kl_grounds *grounds);
/* The dealer writes what it is given there, from the next run on. */
void kl_dealer_write(kl_dealer *dealer, kl_grounds *grounds);

/* A decider that decides again, row after row of one run. */
typedef struct kl_again kl_again;

/* A row of the record: what kl_grounds_take() gave, and what was decided. The subject is the worker's number.
 */
typedef struct kl_recorded {
    kilter_bytes grounds;
    kl_decision decision;
} kl_recorded;

typedef struct kl_answer {
    const char *missing;  /* why the decision cannot be made again; NULL: it was */
    kl_decision decision; /* count: what the policy meant; the subject is the worker's number */
    uint64_t meant;       /* that number when the decision was recorded */
    double now_s;         /* the clock of decision.forecast_s */
} kl_answer;

/* instead: a policy that decides in place of the recorded one; NULL: none. It follows what was dealt then.
 * NULL: no memory. */
kl_again *kl_again_new(const kl_policy *instead);
void kl_again_free(kl_again *again);
/* Rows come in the order of the record. */
void kl_again_decide(kl_again *again, const kl_recorded *row, kl_answer *answer);

/* --- whole shares --- */

/* Earliest completion (Buaklee, Tracy, Vernon, Wright 2002): `tasks` of task_units each go out one at a time,
 * each to the lane that would end it first given what it has; of equal ones, the first. Fills counts[0 …
 * lanes−1]. For equal tasks no other assignment ends sooner. Rates are above 0. O(lanes·log lanes).
 * KILTER_ERR_MEMORY. */
kilter_status kl_assign_earliest(const kl_lane *lanes, uint32_t count, double task_units, uint64_t tasks,
                                 uint64_t *counts);
/* When the last task of an assignment ends; 0: there is none. */
double kl_assignment_end_s(const kl_lane *lanes, uint32_t count, double task_units, const uint64_t *counts);

/* What a policy assigned when the run began. */
typedef struct kl_assignment {
    kl_decision decision; /* count: workers that get some; gain against equal groups: < 0, those would end
                             sooner; forecast_s is the recorder's to fill in */
    uint32_t idle;        /* workers too slow to help */
    double end_s;         /* forecast: from now on, when all is done */
} kl_assignment;

/* false: the policy deals step by step. */
bool kl_dealer_assignment(const kl_dealer *dealer, kl_assignment *assignment);
/* Is `worker` one that gets nothing, and why? */
bool kl_dealer_leaves_out(const kl_dealer *dealer, const kl_snapshot *snapshot, uint32_t worker,
                          char reason[KL_REASON_BYTES]);

/* Of what a policy assigned when the run began, what `worker` was not dealt yet; 0: nothing, or the policy
 * deals step by step. */
uint64_t kl_dealer_share(const kl_dealer *dealer, uint32_t worker);

/* --- which tasks --- */

typedef struct kl_home { /* spans[first … end) wait for their worker; so many tasks are in them */
    size_t first, end;
    uint64_t tasks;
} kl_home;

/* A series is runs of the same tasks, index by index: what its worker keeps of a task makes it cheaper there
 * the next time. Zeroed: there is none. */
typedef struct kl_homes {
    uint64_t series, tasks;
    uint32_t *last; /* by task: place of the worker that did it last; UINT32_MAX: nobody */
    kl_span *spans; /* of the present run, not dealt yet, by home */
    kl_home *home;  /* home[0 … places−1] by worker, home[places]: nobody's, or of one that is gone */
    uint32_t places;
} kl_homes;

void kl_homes_free(kl_homes *homes);
/* A run of the series (0: of none) begins, with the tasks of left[0 … count−1] to deal, the last one first.
 * O(tasks). KILTER_ERR_MEMORY. */
kilter_status kl_homes_begin(kl_homes *homes, uint64_t series, uint64_t tasks, const kl_snapshot *snapshot,
                             const kl_span *left, size_t count);
bool kl_homes_in_use(const kl_homes *homes);
bool kl_homes_has_own(const kl_homes *homes, uint32_t worker); /* tasks that it did last time */
/* From which home should `worker` take next, and at most how many? Its own while there is something. Else as
 * many tasks as have to move anyhow do so, when everybody takes its share: with the same shares and workers
 * as last time, none. A home without tasks: there is nothing. */
uint32_t kl_homes_choose(const kl_homes *homes, const kl_dealer *dealer, const kl_snapshot *snapshot,
                         uint32_t worker, uint64_t *most);
/* Of a home with tasks: those that come next, and lie together; they leave it from the front. */
kl_span kl_homes_front(const kl_homes *homes, uint32_t home);
void kl_homes_take(kl_homes *homes, uint32_t home, uint64_t count);
/* Tasks added while the run was on are not noted. */
void kl_homes_note(kl_homes *homes, kl_span done, uint32_t worker);

/* --- what is taken back, or done twice --- */

/* A recall: the subject gives back what it has not begun, but the first `count` of what it holds. A copy: the
 * last `count` of what it holds to `to` as well, and the first result counts. Or nothing. */
typedef struct kl_rescue {
    kl_decision decision;
    uint32_t to;
} kl_rescue;

/* What is at the workers, and who waits. Asked of few of them. */
typedef struct kl_board {
    const void *self;
    void (*held)(const void *self, uint32_t worker, kl_held *held);
    bool (*waits)(const void *self, uint32_t worker); /* it asked for work and got none */
    uint32_t (*waiting)(const void *self);            /* how many do; seldom asked, it may look at all */
    double coming_units;                              /* asked back, and not back yet */
} kl_board;

/* Most times a task is taken back, and that it is started while it is at another worker, too. */
enum { KL_RESCUE_RECALLS = 3, KL_RESCUE_COPIES = 2 };

bool kl_policy_rescues(const kl_policy *policy); /* AUTO: the others deal as they were published */
/* Nothing is left to deal, and somebody waits: what is to be done about those that end late?
 * O(log P + those that are late and hold nothing alone). */
void kl_rescue_choose(const kl_snapshot *snapshot, const kl_board *board, kl_rescue *rescue);
/* The same, and what it was chosen from is written. */
void kl_grounds_rescue(kl_grounds *grounds, const kl_snapshot *snapshot, const kl_board *board,
                       kl_rescue *rescue);
/* Seconds until the question is worth asking again, when it was answered with nothing; waited_s: since the
 * bag is empty, took_s: what the answer took. */
double kl_rescue_pause_s(const kl_snapshot *snapshot, double waited_s, double took_s);

/* --- how many work --- */

/* What an iteration that has ended showed, and who could work in the next. */
typedef struct kl_iteration {
    uint64_t run, tasks, chunks;
    kl_farm_model model;           /* work_s [T_c] at the mean speed of those that worked */
    double task_mean_s, task_sd_s; /* of a task at that speed [μ, σ] */
    double answer_s;               /* the master's time for one chunk; 0: not known, as long as m_o */
    double way_s;                  /* there and back, beyond m_o, in nobody's way */
    uint32_t workers;              /* that took part [n] */
    double elapsed_s;              /* measured, without the master's own time */
    double uneven_s;               /* of that: the busiest worker was busy so much longer than the mean */
    double quality;                /* measured [q]: 1 − mean busy time/elapsed_s */
    kl_speeds
        speeds; /* of the `most` that are there, resting ones, too; 1: the mean of those that took part */
    uint32_t most;
    kl_load load; /* zeroed: not known */
} kl_iteration;

enum { KL_TEAM_PERSISTS = 3 }; /* iterations that must agree before anything changes, or is judged */

typedef enum kl_team_way {
    KL_TEAM_STAY,
    KL_TEAM_FEWER,
    KL_TEAM_MORE,
    KL_TEAM_OTHERS, /* as many, but faster ones that rest now */
    KL_TEAM_WAYS,
} kl_team_way;

typedef enum kl_team_verdict {
    KL_TEAM_NOTHING, /* no other number would be better: nothing to tell */
    KL_TEAM_REFUSED, /* one would be, but not now; the reason says why */
    KL_TEAM_CHANGED,
    KL_TEAM_BACK, /* what was changed last did not pay: as it was before */
} kl_team_verdict;

/* What an iteration cost, smaller is better: n·T², the index, of a task and of a second of work. */
typedef struct kl_team_cost {
    double by_task, by_work;
} kl_team_cost;

/* What the iterations so far have shown. Zeroed: nothing. */
typedef struct kl_team {
    uint32_t workers; /* in the iteration looked at last */
    kl_team_way way;  /* `seen` iterations agreed on it, less those that found nothing better since */
    uint32_t seen, nearest;
    uint32_t measured;                    /* iterations in a row with that many */
    kl_team_cost costs[KL_TEAM_PERSISTS]; /* of the last of them */
    uint32_t tried_from;                  /* the last change is on trial: from how many; 0: it is not */
    kl_team_cost before;                  /* what an iteration cost before the trial */
    uint64_t barred_until[KL_TEAM_WAYS];  /* run; after changes that did not pay */
    uint32_t failures[KL_TEAM_WAYS];
} kl_team;

/* How many workers in the next iteration? */
typedef struct kl_team_plan {
    kl_decision decision; /* count: workers in it, the fastest; as many as now unless CHANGED or BACK. Its
                             gain is that of `considered`: < 0, it takes longer, for fewer workers */
    kl_team_verdict verdict;
    uint32_t considered; /* the number thought about */
    kl_team_way way;
    uint32_t seen;
    double forecast_s; /* elapsed time of the next iteration with as many as the decision says */
} kl_team_plan;

/* Most workers whose load can be balanced, 1 … most: those with two tasks each at least, whose last chunks
 * leave a fifth of the time idle at most. */
uint32_t kl_team_balanceable(const kl_iteration *iteration);
/* The number with the smallest index that can be fed and balanced, or as now if that is
 * not 5 % better; acted on when KL_TEAM_PERSISTS iterations agree. Where much time is lost to what the model
 * does not know, only fewer are tried; with much imbalance later. */
void kl_team_choose(const kl_team *team, const kl_iteration *iteration, kl_team_plan *plan);
/* --- within a run --- */

/* What the looks of one run have shown. Zeroed but for its times: nothing. */
typedef struct kl_glance {
    double began_s, then_s, then_cpu_s; /* the run; the last look, and the CPU time used by then */
    uint32_t found;                     /* workers that the last look took to be enough; 0: there was none */
    uint32_t from;                      /* workers before some were let rest; 0: nobody rests */
    bool gave_up;                       /* they were needed after all: nobody is to rest again */
} kl_glance;

typedef struct kl_sight {
    double now_s, cpu_s; /* cpu_s: of the farm and all workers on its host, in this run */
    uint32_t cores, workers;
    uint64_t done; /* tasks */
    const kl_load *load;
} kl_sight;

typedef struct kl_glance_plan {
    kl_decision decision; /* count: workers that are to work */
    bool changed;
} kl_glance_plan;

/* A look at a run that is on. While the cores are busy, workers rest without whom it is as fast; two looks
 * must agree. When the cores are busy no longer, all work again. false: nothing is known. */
bool kl_glance_look(kl_glance *glance, const kl_sight *sight, kl_glance_plan *plan);
double kl_glance_due_s(const kl_glance *glance, double now_s); /* the next one */

/* Of a farm that is about to begin, as far as one iteration tells: with how many workers? 0: it does not
 * tell. */
uint32_t kl_team_expect(const kl_iteration *iteration, char reason[KL_REASON_BYTES]);
/* These three do the same as those above, and put into `grounds` what a decision is made from. */
void kl_grounds_team(kl_buffer *grounds, const kl_team *team, const kl_iteration *iteration,
                     kl_team_plan *plan);
uint32_t kl_grounds_expect(kl_buffer *grounds, const kl_iteration *iteration, char reason[KL_REASON_BYTES]);
bool kl_grounds_look(kl_buffer *grounds, kl_glance *glance, const kl_sight *sight, kl_glance_plan *plan);
/* Once for each iteration that was chosen after. */
void kl_team_commit(kl_team *team, const kl_iteration *iteration, const kl_team_plan *plan);

/* --- how many tasks --- */

/* What a program that makes its own tasks may be told: as many as make its time least. */
typedef struct kl_grain_question {
    uint64_t least, most;                       /* that it can make; 1 ≤ least ≤ most */
    double (*runs)(uint64_t tasks, void *user); /* still to come with so many each; NULL: as many with any */
    void *user;
} kl_grain_question;

typedef struct kl_grain_look {
    kl_forkjoin model;    /* as measured */
    const kl_lane *lanes; /* of those that work now; rates in units per second */
    uint32_t lane_count;
    double work_units;              /* of a run, in however many tasks */
    double lost_s;                  /* of the last run, to more than the model knows of */
    uint64_t tasks;                 /* of the last run; 0: there was none */
    uint64_t least_seen, most_seen; /* that model.master is known from */
} kl_grain_look;

typedef struct kl_grain_plan {
    kl_decision decision; /* count: tasks. Its gain is that of each run, in the time of all, against as many
                             tasks as in the last run */
    uint32_t workers;     /* that get some */
    double master_s, workers_s, messages_s; /* forecast of one iteration's parts */
} kl_grain_plan;

/* The number of tasks for which runs × time of an iteration is least, of equal ones the fewest, looked for
 * among numbers 1/16 apart and multiples of the number of workers. The present one stays if none is 5 %
 * better, and t_M is believed up to four times the most and down to a quarter of the fewest tasks it was seen
 * with. Nothing measured: four tasks a worker. KILTER_ERR_MEMORY. */
kilter_status kl_grain_choose(const kl_grain_look *look, const kl_grain_question *question,
                              kl_grain_plan *plan);

#endif
