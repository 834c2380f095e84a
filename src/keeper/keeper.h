/* Door of room keeper: what the keeper of a run does, as a state machine. A kept run is a program that is
 * started again after failures, and moved to other hosts when they are faster. The machine is pure: its
 * driver tells it what happened and the time, and carries out its actions.
 *
 *     the driver tells       kl_keeper_step(): hosts were measured, a report came, the launcher ended, …
 *     the driver carries out kl_keeper_take(), again and again: look, start, ask, kill, record, end
 *     the driver stores      kl_keeper_store(); a later keeper goes on with kl_keeper_restore()
 *
 *     part              owner file    what it knows
 *     kl_keeper_watch   watch.c       what the present attempt has reported, and how long it has been silent
 *     kl_keeper_tally   tally.c       attempts, and how many of them in a row saved nothing new
 *     kl_keeper_costs   watch.c       what saving and launching take
 *     kl_keeper_promise outcome.c     forecast and outcome of the last planned move
 *     kl_keeper_wish    wishes.c      requests of people that are not carried out yet
 *     kl_keeper         keeper.c      all of them; speed.c, place.c and prospect.c choose hosts
 *
 * launch.c makes command lines, queue.c knows Slurm's states and options, jobs.c reads what its commands
 * print, fields.c reads files of names and values. */
#ifndef KL_KEEPER_H
#define KL_KEEPER_H

#include "decide/decide.h"

enum {
    KL_KEEPER_NAME_BYTES = 256,
    KL_KEEPER_TEXT_BYTES = 512,
    KL_KEEPER_ACTIONS = 32,      /* most actions that one step can ask for */
    KL_KEEPER_NUMBERS = 1000,    /* each attempt has its own numbers for requests to the program: */
    KL_KEEPER_JOBS_NUMBER = 999, /* the batch job of an attempt uses the last one */
};

enum { KL_KEEPER_NOT_EXECUTABLE = 126, KL_KEEPER_NOT_FOUND = 127 }; /* exit codes of shells and launchers */

/* --- hosts --- */

typedef struct kl_keeper_view { /* a measured host */
    const char *name;
    uint32_t slots;  /* most ranks */
    double qos;      /* fitness, 0 … 1; 0: no rank can run there */
    double pace;     /* speed of a rank there, as a part of the best core's; 0: not known */
    bool leaving;    /* its owner takes it away: ranks should leave */
    const char *why; /* why it is not fit; "": it is */
} kl_keeper_view;

typedef struct kl_keeper_host {
    char name[KL_KEEPER_NAME_BYTES];
    uint32_t slots;
    double qos, pace;
    bool leaving;
    bool drained;       /* a person has drained it */
    uint32_t failures;  /* attempts in a row that failed, with ranks there, and saved nothing new */
    uint32_t ranks;     /* ranks of the present attempt; 0: not in use */
    uint32_t next;      /* ranks of the next attempt, while one is chosen */
    double rate;        /* rows per second of its ranks, smoothed; 0: not known */
    double told;        /* the same in the last report */
    double share;       /* qos, or what its ranks get by their rate, 0 … 1; while hosts are ordered */
    double launch_pace; /* pace at the start of the present attempt; 0: not known */
} kl_keeper_host;

/* --- what the driver tells --- */

typedef struct kl_keeper_report { /* of the present attempt's program */
    uint64_t attempt;
    uint32_t ranks;
    const char *const *hosts; /* hosts[ranks]; NULL: not known */
    const double *rates;      /* rates[ranks]: rows per second; NULL: not known */
    uint64_t sweeps, expected, saved;
    double sweep_s, longest_s, write_s, load_s;
    uint64_t answered;
    const char *error; /* why the last save failed; NULL or "": it did not */
    bool stopped, done;
} kl_keeper_report;

typedef enum kl_keeper_how {
    KL_KEEPER_EXITED,    /* code: the exit code */
    KL_KEEPER_SIGNALLED, /* code: the signal */
    KL_KEEPER_MISSING,   /* the launcher could not be started; code: as a shell says it */
    KL_KEEPER_LOST,      /* nobody knows how it ended */
    KL_KEEPER_REFUSED,   /* the queue did not take the job */
} kl_keeper_how;

typedef struct kl_keeper_end {
    uint64_t attempt;
    kl_keeper_how how;
    uint32_t code;
} kl_keeper_end;

typedef enum kl_keeper_event_kind {
    KL_KEEPER_TIME,   /* nothing but the time */
    KL_KEEPER_HOSTS,  /* hosts were measured: views, count */
    KL_KEEPER_REPORT, /* the program wrote its progress: report */
    KL_KEEPER_ENDED,  /* the launcher and all its processes ended: end */
    KL_KEEPER_LIMIT,  /* the attempt's time limit is known: limit_s */
    KL_KEEPER_QUEUE,  /* the attempt waits in a queue or is suspended, or no longer: pending */
    KL_KEEPER_MOVE,   /* a person wants the run moved: names, or NULL for the fittest hosts */
    KL_KEEPER_DRAIN,  /* a person wants ranks off these hosts: names */
    KL_KEEPER_STOP,   /* a person wants the run saved and stopped; the second time, killed */
    KL_KEEPER_EVENTS
} kl_keeper_event_kind;

typedef struct kl_keeper_event {
    kl_keeper_event_kind kind;
    const kl_keeper_view *views;
    size_t count;
    const kl_keeper_report *report;
    kl_keeper_end end;
    double limit_s; /* on the clock of now_s */
    bool pending;
    const char *names; /* names of hosts, separated by commas */
} kl_keeper_event;

/* --- what the driver carries out --- */

typedef enum kl_keeper_act {
    KL_KEEPER_LOOK,    /* measure hosts, and tell them within `seconds` */
    KL_KEEPER_START,   /* start `attempt` with `ranks` ranks; kl_keeper_host.ranks says where */
    KL_KEEPER_ASK,     /* write request `number`: save and stop */
    KL_KEEPER_KILL,    /* end the launcher and all its processes */
    KL_KEEPER_DECIDED, /* record `decision`, number `number`, and print `text` */
    KL_KEEPER_CAME,    /* record the outcome of decision `number` */
    KL_KEEPER_OVER,    /* the keeper ends: result, code, text */
} kl_keeper_act;

typedef enum kl_keeper_result {
    KL_KEEPER_GOES_ON,
    KL_KEEPER_DONE,    /* the program ended with code 0 */
    KL_KEEPER_STOPPED, /* saved and stopped, as a person asked */
    KL_KEEPER_GAVE_UP,
} kl_keeper_result;

typedef struct kl_keeper_action {
    kl_keeper_act act;
    uint64_t attempt, number;
    uint32_t ranks;
    bool others; /* LOOK: only hosts without ranks, so that the program is not disturbed */
    double seconds;
    kl_decision decision;
    double came_s, spent_s; /* CAME: seconds saved, and seconds without progress */
    kl_keeper_result result;
    int code; /* OVER: exit code of the last attempt; 0 if it is done */
    char text[KL_KEEPER_TEXT_BYTES];
} kl_keeper_action;

/* --- the machine --- */

/* Order the hosts by preference: order[0 … count−1] are places in `hosts`. Hosts without fitness may come
 * anywhere. */
typedef void (*kl_keeper_order_fn)(void *self, const kl_keeper_host *hosts, size_t count, uint32_t *order);

typedef struct kl_keeper_options {
    uint32_t ranks, least; /* ranks wanted, and the fewest with which the run goes on; queued: nodes */
    uint32_t tries;        /* give up after this many attempts in a row that saved nothing new */
    double hang_s;         /* least limit for a sweep */
    double wait_s;         /* longest wait for hosts */
    double look_s;         /* seconds between two looks at other hosts */
    double margin_s;       /* seconds before a time limit at which the run is saved; 0: from measured times */
    bool queued;           /* a queue chooses the hosts of an attempt */
    bool fixed;            /* never move for speed */
    kl_keeper_order_fn order; /* NULL: the fastest first */
    void *self;
} kl_keeper_options;

typedef enum kl_keeper_state {
    KL_KEEPER_NEW,
    KL_KEEPER_LOOKING,  /* hosts are being measured for the next attempt */
    KL_KEEPER_WAITING,  /* too few hosts are fit */
    KL_KEEPER_STARTING, /* the launcher runs, and the program has reported nothing */
    KL_KEEPER_RUNNING,
    KL_KEEPER_SAVING, /* the program was asked to save and stop */
    KL_KEEPER_KILLING,
    KL_KEEPER_IS_OVER,
    KL_KEEPER_STATES
} kl_keeper_state;

/* Why the present attempt is ended, or the next one is chosen. */
typedef enum kl_keeper_cause {
    KL_KEEPER_NO_CAUSE,
    KL_KEEPER_FOR_SPEED,
    KL_KEEPER_FOR_SCALE, /* another number of ranks is faster */
    KL_KEEPER_FOR_MOVE,  /* requested */
    KL_KEEPER_FOR_DRAIN, /* requested, or the host's owner takes it away */
    KL_KEEPER_FOR_LIMIT,
    KL_KEEPER_FOR_STOP, /* requested; nothing is started after it */
    KL_KEEPER_FOR_HANG,
    KL_KEEPER_FOR_FAILURE,
    KL_KEEPER_CAUSES
} kl_keeper_cause;

typedef struct kl_keeper_watch { /* the present attempt */
    bool reported;
    double started_s, first_s;                         /* when it was launched, and when it first reported */
    double reported_s;                                 /* when it last reported */
    double quiet_s;                                    /* seconds without progress that the keeper watched */
    double killed_s;                                   /* when its end was last demanded */
    uint64_t first, sweeps, expected, saved, answered; /* first: sweeps in its first report */
    double sweep_s, best_sweep_s, longest_s, write_s;  /* sweep_s: smoothed; best_sweep_s: its least */
    bool stopped, done;
} kl_keeper_watch;

typedef struct kl_keeper_tally {
    uint64_t attempt;    /* number of the present attempt, from 1 */
    uint64_t saved;      /* sweeps in the newest checkpoint of all attempts */
    uint64_t saved_then; /* the same when the present attempt began */
    uint32_t idle;       /* attempts in a row that saved nothing new */
    double longest_s;    /* longest sweep of all attempts; 0: none has ended */
    bool reported;       /* an attempt has reported */
    bool by_hand;        /* the attempt ends because a person asked; it does not count as idle */
    double refused_s;    /* since when the queue refuses jobs; 0: it does not */
    int code;            /* exit code of the last attempt */
} kl_keeper_tally;

typedef struct kl_keeper_costs {
    double stop_s, launch_s; /* seconds from request to end, and from launch to first report; 0: not known */
    double rank_rate;        /* rows per second of a rank on a host of pace 1; 0: not known */
    double sweep_rows; /* seconds of a sweep times rows per second of all ranks, on the best hosts so far; 0:
                          not known */
    double doubt;      /* factor by which gains must exceed costs, at least 1 */
} kl_keeper_costs;

typedef struct kl_keeper_promise { /* the last planned move; number 0: there is none open */
    uint64_t number;
    double asked_s;               /* when the program was asked to stop, or was found dead */
    double stay_sweep_s, sweep_s; /* sweep before, and as forecast after the move; 0: no forecast */
    double spent_s;               /* seconds from asked_s to the first report; 0: not known */
    uint64_t first;               /* sweeps in the first report */
} kl_keeper_promise;

typedef struct kl_keeper_wish {
    bool move;                        /* move as soon as the program can save */
    bool drain;                       /* leave hosts that are drained or taken away, as soon as it can */
    bool stop;                        /* save and stop as soon as it can */
    char names[KL_KEEPER_TEXT_BYTES]; /* hosts for the move; "": the fittest */
} kl_keeper_wish;

typedef struct kl_keeper {
    kl_keeper_options options;
    kl_keeper_state state;
    kl_keeper_cause cause;
    kl_keeper_result result;
    double now_s, since_s;   /* since_s: when the state began */
    double look_s, looked_s; /* when to look at other hosts next, and when the last look began */
    double limit_s;          /* end of the attempt's time; 0: none */
    double pays_s;           /* since when moving pays; 0: it does not */
    double waited_s;         /* when the wait for hosts began; 0: it did not */
    bool looks;              /* a look is under way */
    bool pending;            /* the attempt waits in a queue, or is suspended */
    uint64_t asked;          /* number of the last request to the program in this attempt, from 1; 0: none */
    uint64_t decisions;      /* number of the last decision */
    kl_keeper_watch watch;
    kl_keeper_tally tally;
    kl_keeper_costs costs;
    kl_keeper_promise promise;
    kl_keeper_wish wish;
    kl_keeper_host *hosts;
    uint64_t count, room;
    char answer[KL_KEEPER_TEXT_BYTES]; /* to the last request of a person */
    bool refused;                      /* the answer says why the request changes nothing */
    char kept[KL_KEEPER_TEXT_BYTES];   /* the last reason for going on that was recorded */
    kl_keeper_action actions[KL_KEEPER_ACTIONS];
    uint32_t first_action, action_count;
} kl_keeper;

/* Begin; false: memory ran out. The first step asks for a look. */
bool kl_keeper_init(kl_keeper *keeper, const kl_keeper_options *options);
void kl_keeper_free(kl_keeper *keeper);
/* Tell an event. now_s never decreases. false: memory ran out. */
bool kl_keeper_step(kl_keeper *keeper, const kl_keeper_event *event, double now_s);
/* Take the next action. false: there is none. */
bool kl_keeper_take(kl_keeper *keeper, kl_keeper_action *action);
/* Return the time by which kl_keeper_step() must be called again. */
double kl_keeper_wake_s(const kl_keeper *keeper);
const char *kl_keeper_state_name(kl_keeper_state state);
const char *kl_keeper_cause_name(kl_keeper_cause cause);

/* --- store.c: the state, for a keeper that continues --- */

/* Write the state as lines of names and values. */
void kl_keeper_store(const kl_keeper *keeper, kl_buffer *text);
/* Read it into a keeper after kl_keeper_init(). `alive`: the stored attempt still runs. KILTER_ERR_INPUT,
 * KILTER_ERR_MEMORY */
kilter_status kl_keeper_restore(kl_keeper *keeper, const char *text, size_t size, bool alive, double now_s,
                                kilter_error *error);

/* --- fields.c: files of names and values, a pair on each line --- */

typedef struct kl_fields { /* reader of a text of names and values, pair by pair */
    const char *at, *end;
    uint32_t line;
} kl_fields;

typedef struct kl_field {
    char name[32];
    char value[KL_KEEPER_TEXT_BYTES];
} kl_field;

kl_fields kl_fields_of(const char *text, size_t size);
/* Read the next pair. false: the text ends, or the line is not a name, a blank and a value; then `bad`. */
bool kl_fields_next(kl_fields *fields, kl_field *field, bool *bad);
bool kl_field_is(const kl_field *field, const char *name);
uint64_t kl_field_count(const kl_field *field);                          /* 0: it is not a number */
double kl_field_number(const kl_field *field);                           /* 0: it is not a number */
void kl_put_field(kl_buffer *text, const char *name, const char *value); /* control characters become '?' */
void kl_put_field_count(kl_buffer *text, const char *name, uint64_t value);
void kl_put_field_number(kl_buffer *text, const char *name, double value);
/* Write and read how an attempt ended. false: the text says nothing of the kind. */
void kl_put_end(kl_buffer *text, const kl_keeper_end *end);
bool kl_get_end(const char *text, size_t size, kl_keeper_end *end);

/* --- launch.c: command lines --- */

typedef enum kl_launcher {
    KL_LAUNCH_OWN,     /* the words as they are, with {ranks}, {hosts} and {hostfile} replaced */
    KL_LAUNCH_OPENMPI, /* mpirun of Open MPI */
    KL_LAUNCH_MPICH,   /* mpiexec of MPICH */
    KL_LAUNCH_SRUN,    /* a step in a Slurm allocation */
    KL_LAUNCHERS
} kl_launcher;

typedef struct kl_launch {
    kl_launcher kind;
    const char *command;    /* the launcher's words, as "mpirun --quiet"; NULL: none */
    const char *mpi;        /* srun: value for --mpi; NULL: Slurm's default */
    char *const *program;   /* the program's words; NULL ends them */
    char *const *variables; /* names of environment variables for all ranks; NULL ends them, or none */
    const char *hostfile;   /* file with one name for each rank */
    const kl_keeper_host *hosts;
    size_t count;
    uint32_t ranks;
} kl_launch;

/* Return the words, each malloc'd; NULL ends them. NULL: memory ran out. */
char **kl_launch_words(const kl_launch *launch);
void kl_launch_words_free(char **words);
void kl_launch_hostfile(const kl_launch *launch, kl_buffer *text); /* write the name of each rank's host */
/* Find the MPI that a program file needs, from its bytes. KL_LAUNCH_OWN: neither. */
kl_launcher kl_launcher_of_program(const void *data, size_t size);
/* Find the MPI of a launcher, from what `mpirun --version` prints. */
kl_launcher kl_launcher_of_version(const char *text);

/* --- queue.c: states of Slurm's jobs, and options of sbatch --- */

enum { KL_SLURM_NAME_BYTES = 64, KL_SLURM_JOB_BYTES = 32 };

typedef enum kl_slurm_stage {
    KL_SLURM_UNKNOWN, /* a state that this table does not have: nothing follows from it */
    KL_SLURM_WAITS,   /* the job has no nodes, or they are not ready */
    KL_SLURM_RUNS,
    KL_SLURM_PAUSED, /* it has its nodes, and the program does not run at present, or not any more */
    KL_SLURM_OVER,
} kl_slurm_stage;

kl_slurm_stage kl_slurm_stage_of(const char *state); /* "RUNNING", as %T of squeue */
/* Find the value of an option of sbatch, as "--nodes=2" or "-N 2"; the last one counts. letter 0: it has
 * none. false: it is not given. */
bool kl_slurm_option(const char *options, const char *name, char letter, char value[KL_KEEPER_TEXT_BYTES]);
const char *kl_slurm_refused(const char *options); /* the first option that a kept run cannot have, or NULL */
/* Read the number of nodes from options of sbatch, as in "-N 2-4". 0: they do not say. */
void kl_slurm_nodes_wanted(const char *options, uint32_t *least, uint32_t *most);
/* Write the names of "n[01-03],x" with commas between them, and a NUL. false: it is not such a list. */
bool kl_slurm_expand(const char *list, kl_buffer *names);
bool kl_slurm_listed(const char *list, const char *name); /* in a list with commas */
/* Does a node with these features fit "a&b|c"? Other constraints fit no node. "": none is asked for. */
bool kl_slurm_has_features(const char *constraint, const char *features);
/* Make the first part of the names of a run's jobs: the program's or the user's name, and a number. */
void kl_slurm_name(const char *options, const char *program, uint64_t token, char name[KL_SLURM_NAME_BYTES]);
/* Find the number of a job in what sbatch or squeue prints; the last one counts. false: there is none. */
bool kl_slurm_number(const char *text, char job[KL_SLURM_JOB_BYTES]);
/* Does an error of sbatch leave open whether the job was accepted? */
bool kl_slurm_is_unclear(const char *said);

/* --- jobs.c: what Slurm's commands print, and the script of a job --- */

typedef struct kl_slurm_job { /* a line of squeue -h -o '%T|%L|%P|%N' */
    kl_slurm_stage stage;
    double left_s; /* until its limit; 0: not known, or none */
    char partition[KL_KEEPER_NAME_BYTES];
    char nodes[KL_KEEPER_TEXT_BYTES]; /* "": none yet */
} kl_slurm_job;

bool kl_slurm_job_read(const char *line, kl_slurm_job *job);
double kl_slurm_time_s(const char *text); /* "2-03:04:05", "4:05"; below 0: not a time */

typedef struct kl_slurm_node { /* a line of sinfo -N -h -o '%N|%T|%c|%O|%P|%f' */
    char name[KL_KEEPER_NAME_BYTES];
    uint32_t cores;
    double load;
    bool idle, used, leaving, gone; /* leaving: drained; gone: down or otherwise without use */
    char partition[KL_KEEPER_NAME_BYTES];
    bool is_default; /* jobs that name no partition go to this one */
    char features[KL_KEEPER_TEXT_BYTES];
} kl_slurm_node;

/* Read a line, and move *text behind it. false: no line is left. A line that is not a node's is skipped. */
bool kl_slurm_node_read(const char **text, kl_slurm_node *node);

typedef struct kl_slurm_script {
    const char *folder, *keep; /* where the program starts; the keep folder */
    const char *step;          /* the step's command line, quoted for a shell */
    char *const *variables;    /* "NAME=VALUE" for its environment; NULL ends them */
    uint64_t attempt;
} kl_slurm_script;

void kl_slurm_script_put(const kl_slurm_script *script, kl_buffer *text);
void kl_put_quoted(kl_buffer *text, const char *word); /* a word of a shell */

#endif
