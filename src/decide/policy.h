/* Inside of room decide: what a policy is made of. Nobody outside includes this. */
#ifndef KL_DECIDE_POLICY_H
#define KL_DECIDE_POLICY_H

#include "decide/decide.h"

/* Chunks cut and not handed out yet, all alike but for their workers' weights. */
typedef struct kl_batch {
    uint64_t chunks;
    double tasks; /* of a chunk of weight 1 */
} kl_batch;

enum { KL_BATCHES = 4 }; /* the rest of one, and what the end is cut into */

/* Where a policy stands within a run. Planning works on a copy, committing on the dealer's own. */
typedef struct kl_course {
    kl_batch batch[KL_BATCHES];
    uint32_t batches; /* in use, in the order they are handed out */
    uint64_t opened;  /* batches cut so far */
    uint64_t chunks;  /* handed out so far */
    uint64_t weighed; /* `opened` when the weights were fixed; 0: not yet */
} kl_course;

struct kl_dealer {
    const kl_policy *policy;
    double factor;     /* in force; 0: the policy has none */
    bool factor_set;   /* by somebody: it is not searched for */
    double expected_s; /* of the run, by the search that chose the factor; 0: it was not chosen so */
    uint32_t workers;  /* present when the run began, at least 1 */
    kl_course course;
    double *weights;  /* weights[0 … slots−1], mean 1 over the workers present when they were fixed */
    uint64_t *shares; /* shares[0 … slots−1]: whole shares of the run, not dealt yet */
    uint64_t undealt; /* their sum; 0: none, or they hold no longer */
    kl_assignment assignment; /* what they were; decision.count = 0: there was none */
    uint32_t slots;
    kl_grounds *grounds; /* NULL: nobody records */
};

/* All a policy may look at when it answers one request. */
typedef struct kl_look {
    const kl_dealer *dealer;
    const kl_snapshot *snapshot;
    const kl_worker_view *self;
    uint32_t worker;
    uint32_t workers; /* present, at least 1 [N] */
    kl_forecast forecast;
} kl_look;

typedef enum kl_weighting { KL_EQUAL, KL_FIXED, KL_PER_BATCH, KL_PER_CHUNK } kl_weighting;

struct kl_policy {
    const char *name, *summary;
    double factor; /* what settings.factor = 0 stands for; 0: the policy has none */
    /* Fill count and reason; nothing is dealt yet of snapshot.left, which is above 0. */
    void (*deal)(const kl_look *look, kl_plan *plan);
    /* NULL, or: a run begins. KILTER_ERR_MEMORY. */
    kilter_status (*begin)(kl_dealer *dealer, const kl_snapshot *snapshot);
    /* NULL, or: bring the dealer's course up to date with a plan carried out. */
    void (*dealt)(kl_dealer *dealer, const kl_look *look, const kl_plan *plan);
    /* For policies that deal in batches: */
    void (*refill)(const kl_look *look, kl_course *course);
    kl_weighting weighting;
    bool rescues;
    const kilter_policy *own; /* the program's own policy; NULL: one of Kilter's */
};

/* In the order of registration. */
extern const kl_policy kl_policy_static, kl_policy_ss, kl_policy_fsc, kl_policy_gss, kl_policy_tss,
    kl_policy_fac2, kl_policy_wf, kl_policy_awf_b, kl_policy_awf_c, kl_policy_af, kl_policy_dpf,
    kl_policy_daf, kl_policy_auto, kl_policy_ect;

/* Deal as AUTO does. */
void kl_deal_auto(const kl_look *look, kl_plan *plan);

/* Return the next chunk of a policy that deals in batches for any worker, and advance the course. */
uint64_t kl_next_chunk(const kl_look *look, kl_course *course);

/* Choose the factor with the shortest forecast of the run that begins. Needs present workers and a mean task
 * time. KILTER_ERR_MEMORY: the factor stays. */
kilter_status kl_search_factor(kl_dealer *dealer, const kl_snapshot *snapshot);

/* Set plan->decision.reason, with a format as of printf(). */
void kl_reason(kl_plan *plan, const char *format, ...) KILTER_PRINTF(2, 3);

/* Return `tasks` rounded up to a whole number, 1 … left. A rounding error does not add a task. */
uint64_t kl_whole_tasks(double tasks, uint64_t left);

/* Return the master's own time for one chunk. Until it is measured this is the start-up time of a message.
 * That is an upper limit, because the master does other things while the message is on its way. */
double kl_send_s(const kl_snapshot *snapshot);

/* Return the mean units of a task that is not dealt yet. */
double kl_task_units(const kl_snapshot *snapshot);

#endif
