/* Door of room engine: the two state machines of a farm, master and worker. Neither knows threads, processes
 * or command lines: their drivers do. Room farm drives them on real machines, room sim in virtual time. */
#ifndef KL_ENGINE_H
#define KL_ENGINE_H

#include "balance/balance.h"
#include "control/control.h"
#include "kilter/farm.h"

/* --- worker --- */

typedef struct kl_worker kl_worker;

/* The work of a worker, and its driver's functions. Shared by all workers that are alike; must outlive
 * them. */
typedef struct kl_worker_options {
    kilter_work_fn work;
    kilter_start_fn start;
    kilter_shared_fn shared;
    kilter_stop_fn stop;
    void *user;
    void *state;                   /* without a start function: what the others get */
    const char *program, *binding; /* for the master's record; not NULL */
    const char *program_version;   /* the same as the master's, or it sends this worker away; NULL: "" */
    kl_clock clock;
    double burst_s;    /* look for messages after working this long; 0: after each task */
    double patience_s; /* wait this long for a master to appear; < 0: for ever */

    /* The driver's functions; each gets the `driver` that the worker was made with. */
    /* Fill in the worker's host and process, for the master's record. NULL: neither is told. */
    void (*introduce)(void *driver, kl_hello *hello);
    /* CPU time of the worker's process, or of its thread. NULL: the worker does not tell its CPU time. */
    double (*cpu_s)(void *driver);
    /* How long the worker's thread ran, and was ready while others had its core. false: not known. Needed
     * with cpu_s. */
    bool (*core)(void *driver, double *run_s, double *delay_s);
    /* Memory of the worker's process [bytes]. NULL: it is not limited. */
    uint64_t (*memory)(void *driver);
    /* End the process now: called by who attends when the master dismisses the worker in the middle of a
     * task, or has been gone for some time; does not return. anew: a new worker is to take its place. NULL:
     * the worker finishes its task first. */
    void (*abandon)(void *driver, const kilter_error *why, bool anew);
} kl_worker_options;

/* Another thread may attend while a task is done. */
typedef struct kl_attendance {
    void (*works)(void *self, bool begins); /* called around the work function: the other may, or may not */
    double (*busy_s)(void *self);           /* CPU time of the thread that works; from both threads */
    void *self;
} kl_attendance;

/* The transport stays the caller's. */
kilter_status kl_worker_new(const kl_worker_options *options, void *driver, kl_transport *transport,
                            kl_worker **worker, kilter_error *error);
void kl_worker_free(kl_worker *worker); /* calls the stop function */
/* Do some work if there is some, and take in what has come; without work wait up to timeout_s (< 0: for ever)
 * for something to come. KILTER_ENDED: the master has closed the farm, or the worker has left it.
 * KILTER_ERR_PEER: the master is gone, or sent it away. KILTER_ERR_TASK: start or shared refused, or the
 * shared data are not those meant. KILTER_ERR_MEMORY: the master was told. */
kilter_status kl_worker_turn(kl_worker *worker, double timeout_s, kilter_error *error);
bool kl_worker_has_work(const kl_worker *worker);

/* The same in steps, for a driver in whose time tasks take as long as it says. */
/* No task is at hand: take in what has come, then report, or leave, if it is time to. */
kilter_status kl_worker_between(kl_worker *worker, kilter_error *error);
/* Take in what is queued first: shared data, or a task, which is at hand then; more tasks are asked for when
 * it is time to. */
kilter_status kl_worker_begin_next(kl_worker *worker, kilter_error *error);
/* The task at hand; NULL: none is. */
const kilter_task *kl_worker_at_hand(const kl_worker *worker);
/* Call the work function for the task at hand; gives what it returned. */
int kl_worker_call(kl_worker *worker);
/* The task at hand has ended just now; code: what the work function returned. */
kilter_status kl_worker_end_task(kl_worker *worker, int code, kilter_error *error);

/* At the next turn, or while a task is done, give back what is not begun; then finish it, and go. `why`
 * lasts. Any thread. */
void kl_worker_leave(kl_worker *worker, const char *why);

/* After KILTER_ERR_PEER: its master is gone, so another one may be waited for. */
bool kl_worker_is_orphan(const kl_worker *worker);
/* Why a new worker is to take this one's place; NULL: none is. */
const char *kl_worker_renewal(const kl_worker *worker);
/* Begin anew with the master at the other end of `transport`. What the last one gave is forgotten, and the
 * state that start made is kept. Nobody attends. */
void kl_worker_adopt(kl_worker *worker, kl_transport *transport);

void kl_worker_let_attend(kl_worker *worker, const kl_attendance *attendance); /* a zeroed one: nobody */
/* While a task takes long: take in messages and answer them, send results that are ready, ask for more, tell
 * how the task gets on. The first call in a task only notes that it is on. What goes wrong the next turn
 * says.
 */
void kl_worker_attend(kl_worker *worker);
/* When results that are ready should leave although the task goes on; HUGE_VAL: none are, or no task is at
 * hand. */
double kl_worker_results_due_s(const kl_worker *worker);
/* What a heartbeat tells that is no time: the task at hand, and the share of its core that tasks usually get.
 */
void kl_worker_name_task(const kl_worker *worker, kl_heartbeat *heartbeat);

/* --- master --- */

/* Results of consecutive tasks [lo, lo + count), checked, on their way to the user: `count` results as
 * kl_wire_next_result() reads them. Small ones are copied behind the struct, so that a backlog holds little
 * more than the results. */
typedef struct kl_delivery {
    struct kl_delivery *next;
    uint64_t lo, count;
    const uint8_t *results;
    size_t size; /* bytes of results */
    uint32_t worker;
    kl_message message; /* what results points into; zero when copied */
    uint8_t copy[];
} kl_delivery;

typedef struct kl_delivery_list {
    kl_delivery *first, **end; /* zeroed is empty */
} kl_delivery_list;

void kl_delivery_append(kl_delivery_list *list, kl_delivery_list *taken); /* leaves `taken` empty */
void kl_delivery_free(kl_delivery *delivery);

typedef struct kl_master kl_master;

static const double KL_TIMEOUT_LEAST_S = 0.5; /* heartbeats come every KL_HEARTBEAT_S */

/* Limits of a task and of a worker; 0: none. */
typedef struct kl_limits {
    double task_s;          /* time of a task, */
    double task_times;      /* or how many times as long as usual for its weight */
    uint32_t retries;       /* of a failed task */
    uint64_t worker_tasks;  /* a worker does before it is replaced */
    uint64_t worker_memory; /* bytes its process may take beyond what it had when it joined */
} kl_limits;

typedef struct kl_master_options {
    const kl_policy *policy;
    kl_clock clock;
    const char *program;         /* workers of another one are sent away */
    const char *program_version; /* workers of another one are sent away; NULL: "" */
    char host[128];              /* the master's, as workers on it call it in kl_hello.host; "": not known */
    uint32_t attempts;           /* a task that was at so many lost workers has failed; > 0 */
    bool may_join;               /* workers may come later: a farm without any waits for them */
    bool chooses;                /* between runs: how many workers work */
    uint32_t seats;              /* workers in the first run; 0: all that are there */
    bool release;                /* those not needed leave the farm */
    double greeting_s; /* who joins and does not say who it is for so long is sent away; 0: it may */
    /* Warn the user: one sentence, in two parts. NULL: nobody is warned. */
    void (*warn)(void *self, const char *text, const char *more);
    /* A worker is lost that was process `pid`; missed: it was ready, and not about to leave. May say how it
     * ended ("was killed by …"). NULL: nobody knows. */
    void (*lost)(void *self, uint64_t pid, bool missed, char *how, size_t size);
    /* The worker that is process `pid` ends, at once or when it likes, and one like it is to take its place.
     * NULL: it sees to that itself. */
    void (*renew)(void *self, uint64_t pid, bool at_once);
    /* CPU time of the farm in the master's process so far, and of the program's callbacks. false: not known.
     * NULL: never. */
    bool (*used)(void *self, double *farm_s, double *callbacks_s);
    /* The last heartbeat of the worker at `peer` that has come by now, and when it came, for a driver that
     * does not send heartbeats as messages. false: there is none. NULL: they are messages. */
    bool (*heartbeat)(void *self, kl_peer peer, kl_heartbeat *heartbeat, double *at_s);
    uint32_t cores; /* that the master's process may use, and local workers with it; 0: not known */
    void *self;
    kl_limits limits;
} kl_master_options;

kilter_status kl_master_new(const kl_master_options *options, kl_transport *transport, kl_master **master,
                            kilter_error *error);
void kl_master_free(kl_master *master);
void kl_master_record(kl_master *master,
                      kl_trace *trace); /* from here on; workers that are there already get their rows now */

/* Take in one event, waiting up to timeout_s (< 0: for ever) for it, and deal work. What fails here is fatal
 * to the farm. */
kilter_status kl_master_turn(kl_master *master, double timeout_s, kilter_error *error);

/* The run that is on ends early. KILTER_ERR_CANCELLED; KILTER_OK: none is. */
kilter_status kl_master_cancel(kl_master *master, kilter_error *error);
double
kl_master_due_s(const kl_master *master); /* when it wants its next turn, whatever comes; HUGE_VAL: never */

uint32_t kl_master_ready(const kl_master *master);   /* workers that can be dealt work, or rest */
uint32_t kl_master_refused(const kl_master *master); /* that came and could not work, or left unasked */
bool kl_master_knows(const kl_master *master, uint64_t pid); /* is there a worker of this process, ready? */
bool kl_master_sees(const kl_master *master, uint64_t pid);  /* a worker of this process has said who it is */
/* So many workers are being started: a farm that has lost all others waits for them. */
void kl_master_expect(kl_master *master, uint32_t coming);
uint64_t kl_master_finished(const kl_master *master);     /* tasks, in all runs */
const char *kl_master_last_loss(const kl_master *master); /* the last such, in words; "" */

/* How long the user's program has computed since the last run [l_m]; before kl_master_begin(). */
void kl_master_spent(kl_master *master, double seconds);
/* Of the next run these tasks are done already, and their results are elsewhere; before kl_master_begin(). */
void kl_master_done_before(kl_master *master, kl_spans done);
/* Results that were taken from the master and are not safe yet do not count for those who look at it; while
 * there are too many, nothing is dealt. */
void kl_master_unsafe(kl_master *master, uint64_t results, bool too_many);
kilter_status kl_master_begin(kl_master *master, const kilter_run *run, kilter_error *error);
/* A run with run->grows has ended when all its tasks are done and no more will come: the first adds some, of
 * which `done` are already, as kl_balance_grow(); the second says that. Neither does anything to a run that
 * has ended early. */
kilter_status kl_master_grow(kl_master *master, uint64_t count, const kilter_bytes *inputs,
                             const double *weights, kl_spans done, kilter_error *error);
void kl_master_grown(kl_master *master);
bool kl_master_running(const kl_master *master);
kl_delivery_list kl_master_take(kl_master *master); /* the results that have come since the last call */
/* After a run has ended: what it came to; `decision` is the master's until the next run. */
void kl_master_summary(const kl_master *master, kilter_farm_summary *summary);
/* Between two runs: what a choice of the next one's number of tasks is made from. spent_s: the program's own
 * time since the last one. look->lanes is the caller's, to be freed. KILTER_ERR_MEMORY. */
kilter_status kl_master_grain(kl_master *master, double spent_s, double work, kl_grain_look *look);
/* This was answered; before kl_master_begin(). */
void kl_master_note_grain(kl_master *master, const kl_grain_plan *plan);
/* What the program expects of the coming runs, for the record. */
typedef struct kl_expectation {
    uint64_t runs; /* 0: nothing */
    double end_s;  /* of the last of them, by the master's clock */
    char reason[KL_REASON_BYTES];
} kl_expectation;
/* Before the run it begins with. */
void kl_master_note_expectation(kl_master *master, const kl_expectation *expectation);
/* The task that is at hand for longest, of those that take far longer than tasks of their weight did so far.
 */
typedef struct kl_late {
    uint64_t task;
    uint32_t worker;
    double elapsed_s, usual_s; /* elapsed_s 0: there is none */
} kl_late;
kl_late kl_master_late(const kl_master *master);
/* How far the run is: "42 % · 420/1,000 tasks · 2 workers · 12 to 14 s left". */
void kl_master_progress(kl_master *master, char *text, size_t size);
void kl_master_advise(kl_master *master); /* the record gets what the last run says for another farm */
void kl_master_end(kl_master *master);    /* tell every worker that the farm is closed */

/* --- tuning from outside --- */

enum { KL_TUNE_POLICY = 1, KL_TUNE_FACTOR = 2, KL_TUNE_WORKERS = 4 };

/* Tuning points to be set. */
typedef struct kl_tuning {
    unsigned set; /* KL_TUNE_*: which of them; the others stay as they are */
    const kl_policy *policy;
    double factor;    /* partition factor in (0, 1]; 0: the policy's own */
    uint32_t workers; /* that work in an iteration, at most those that are there; 0: the farm chooses */
} kl_tuning;

/* The factor holds from the next batch on, policy and number of workers from the next run on. Each is
 * recorded as a decision when it takes effect. KILTER_ERR_RANGE for a factor outside [0, 1]: nothing is set.
 */
kilter_status kl_master_tune(kl_master *master, const kl_tuning *tuning, kilter_error *error);

typedef enum kl_worker_doing {
    KL_WORKER_STARTING,
    KL_WORKER_BUSY,    /* tasks are queued at it */
    KL_WORKER_IDLE,    /* it waits for tasks */
    KL_WORKER_RESTING, /* not wanted now */
    KL_WORKER_LEAVING, /* it finishes its task and goes */
} kl_worker_doing;

typedef struct kl_worker_state {
    uint32_t worker;
    kl_worker_doing doing;
    double rate_units_per_s; /* 0: not known */
    double busy_s;           /* this run, or the last */
    uint64_t chunks, queued_tasks;
} kl_worker_state;

enum { KL_STATE_WORKERS = 64 };

/* Measure points, performance functions and tuning points, as plain data. */
typedef struct kl_farm_state {
    double at_s; /* since the farm was opened */
    bool running;
    uint64_t run, tasks, done; /* of the run that is on, or of the last one; run: its number */
    double elapsed_s;          /* the same run's */

    kl_linear message;     /* m_o [s] and λ [s/byte] now */
    double answer_s;       /* the master's time to answer one request for work */
    kl_iteration last;     /* the last run that ended; workers = 0: none has. no speeds. */
    double time_s, index;  /* model: T_t and P_i with the workers it had */
    double efficiency;     /* model: E with these */
    double quality_bound;  /* above which `last.quality` is not balanced */
    uint32_t capability;   /* most workers the master can feed; UINT32_MAX: no limit */
    uint32_t best_workers; /* those with the smallest P_i; 0: not known */
    double best_time_s, best_index;

    const kl_policy *policy;
    double factor;                  /* 0: the policy has none */
    uint32_t present, resting;      /* workers */
    uint32_t leaving;               /* and those that go: among neither */
    uint32_t workers;               /* how many work was set by hand; 0: the farm chooses, or all do */
    bool chooses;                   /* the farm chooses */
    kl_tuning pending;              /* takes effect when the next run begins */
    char decision[KL_REASON_BYTES]; /* the last one on workers, policy or factor; "" */
    kl_late late;

    uint32_t listed; /* the first KL_STATE_WORKERS that are there */
    kl_worker_state worker[KL_STATE_WORKERS];
} kl_farm_state;

/* Costs O(KL_STATE_WORKERS) and the model's functions for one number of workers. */
void kl_master_state(const kl_master *master, kl_farm_state *state);

/* Send workers home: each finishes the task at hand, gives back the rest and leaves. KILTER_ERR_RANGE: one
 * that is named is not there, or nobody would stay and that was not asked for; nobody leaves. */
kilter_status kl_master_drain(kl_master *master, const kl_control_drain *drain,
                              char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);

/* The state as `kilter tune` sees it; program and transport are empty. */
void kl_tuning_show(const kl_farm_state *state, kl_control_state *shown);
/* What the setting asks of a farm in this state, and when that takes effect. KILTER_ERR_USAGE, _RANGE: it
 * asks for what cannot be; nothing is written. */
kilter_status kl_tuning_check(const kl_control_setting *setting, const kl_farm_state *state,
                              kl_tuning *tuning, char answer[KL_CONTROL_ANSWER_BYTES], kilter_error *error);
/* What was asked for later wins. */
void kl_tuning_merge(kl_tuning *into, const kl_tuning *from);

/* --- between them and the user --- */

/* Gives results to the user's callback, in the order asked for. */
typedef struct kl_deliverer kl_deliverer;

kilter_status kl_deliverer_new(const kilter_run *run, kl_deliverer **deliverer, kilter_error *error);
void kl_deliverer_free(kl_deliverer *deliverer);
/* Takes over the list. KILTER_ERR_MEMORY. */
kilter_status kl_deliver(kl_deliverer *deliverer, kl_delivery_list list, kilter_error *error);
uint64_t kl_deliverer_given(const kl_deliverer *deliverer); /* results, so far */
uint64_t kl_deliverer_failed(const kl_deliverer *deliverer, char *first,
                             size_t size); /* failed tasks; the first one's error in words */

/* One sentence on what was decided and gained. */
void kl_summary_sentence(const kl_balance *balance, const char *policy, const kilter_farm_summary *summary,
                         const kl_interval *equal, char *text, size_t size);

#endif
