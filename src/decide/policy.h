/* Private to the folder decide: the parts of a policy. */
#ifndef KL_DECIDE_POLICY_H
#define KL_DECIDE_POLICY_H

#include "decide/decide.h"

/* A batch is a set of chunks that are planned but not dealt yet. All its chunks have the same size before the
 * workers' weights are applied. */
typedef struct kl_batch {
    uint64_t chunks;
    double tasks; /* number of tasks in a chunk for a worker of weight 1 */
} kl_batch;

/* greatest number of batches in use at the same time; this number is reached only near the end of a run */
enum { KL_BATCHES = 4 };

/* The state of a policy within a run. Planning changes only a copy of it. Committing a plan changes the
 * dealer's own state. */
typedef struct kl_course {
    kl_batch batch[KL_BATCHES];
    uint32_t batches; /* batch[0 … batches−1] are in use; they are dealt in this order */
    uint64_t opened;  /* number of batches planned so far */
    uint64_t chunks;  /* number of chunks dealt so far */
    /* value of `opened` (number of batches) when the weights were last computed; 0: no weights were
     * computed in this run */
    uint64_t weighed;
} kl_course;

struct kl_dealer {
    const kl_policy *policy;
    double factor;   /* the policy's factor; 0: the policy has none */
    bool factor_set; /* true: the user set the factor, so it is not searched for */
    /* seconds of the run, as forecast when the factor was chosen; 0: no factor was chosen */
    double expected_s;
    uint32_t workers; /* number of workers present when the run began, at least 1 */
    kl_course course;
    /* weights[0 … slots−1]: workers' speeds, relative to the mean speed of the workers that were present
     * when the weights were computed */
    double *weights;
    /* shares[0 … slots−1]: number of tasks of each worker's whole share that are not dealt yet */
    uint64_t *shares;
    uint64_t undealt;         /* sum of `shares`; 0: there are no shares, or they are outdated */
    kl_assignment assignment; /* the decision on the shares; decision.count = 0: there was none */
    uint32_t slots;
    /* true: nobody reads gain_s of decisions; the forecast of the run is computed only for policies that use
     * it */
    bool without_gains;
    kl_grounds *grounds; /* store for the inputs of decisions; NULL: the inputs are not stored */
};

/* The values that a policy may use to answer one request. */
typedef struct kl_look {
    const kl_dealer *dealer;
    const kl_snapshot *snapshot;
    const kl_worker_view *self;
    uint32_t worker;
    uint32_t workers; /* number of present workers, at least 1 [N] */
    kl_forecast forecast;
} kl_look;

typedef enum kl_weighting { KL_EQUAL, KL_FIXED, KL_PER_BATCH, KL_PER_CHUNK } kl_weighting;

struct kl_policy {
    const char *name, *summary;
    double factor; /* the default factor; 0: the policy has none */
    /* Set count and reason of the plan for a chunk. snapshot.left is above 0 and includes the tasks of this
     * chunk. */
    void (*deal)(const kl_look *look, kl_plan *plan);
    /* Prepare the dealer for a run. The function may fail with KILTER_ERR_MEMORY. NULL: the policy has
     * nothing to prepare. */
    kilter_status (*begin)(kl_dealer *dealer, const kl_snapshot *snapshot);
    /* Update the dealer's state within the run when a plan is carried out. NULL: the policy has nothing to
     * update. */
    void (*dealt)(kl_dealer *dealer, const kl_look *look, const kl_plan *plan);
    /* Plan the next batch. NULL: the policy does not deal in batches. */
    void (*refill)(const kl_look *look, kl_course *course);
    kl_weighting weighting;
    bool rescues;
    bool forecasts;           /* true: deal() uses the forecast of the run, and not only that of the worker */
    const kilter_policy *own; /* a policy of the program; NULL: a policy of Kilter */
};

/* The policies in order of registration. */
extern const kl_policy kl_policy_static, kl_policy_ss, kl_policy_fsc, kl_policy_gss, kl_policy_tss,
    kl_policy_fac2, kl_policy_wf, kl_policy_awf_b, kl_policy_awf_c, kl_policy_af, kl_policy_dpf,
    kl_policy_daf, kl_policy_auto, kl_policy_ect;

/* Deal as policy AUTO does. */
void kl_deal_auto(const kl_look *look, kl_plan *plan);

/* Use this for a policy that deals in batches. Advance the policy's state, and return the size of the next
 * chunk before weights are applied. */
uint64_t kl_next_chunk(const kl_look *look, kl_course *course);

/* Choose the factor with the shortest forecast for the run that begins. At least one worker is present, and
 * the mean time of a task is known. After KILTER_ERR_MEMORY the factor is unchanged. */
kilter_status kl_search_factor(kl_dealer *dealer, const kl_snapshot *snapshot);

/* Write plan->decision.reason, with a format and arguments as for printf(). */
void kl_reason(kl_plan *plan, const char *format, ...) KILTER_PRINTF(2, 3);

/* Return `tasks` rounded up to a whole number from 1 to `left`. A fraction below 1e-12 is a rounding error,
 * and is ignored. */
uint64_t kl_whole_tasks(double tasks, uint64_t left);

/* Return the seconds that the master spends on one chunk. If they are not measured yet, return the start-up
 * time of a message. The start-up time is an upper limit, because the master can work while a message
 * travels. */
double kl_send_s(const kl_snapshot *snapshot);

/* Return the mean units of work of a task that is not dealt yet. */
double kl_task_units(const kl_snapshot *snapshot);

#endif
