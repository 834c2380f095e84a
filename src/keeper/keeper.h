/* Public header of the folder keeper: the state machine of a keeper. A keeper runs a program, starts it again
 * after failures, and moves it to faster hosts. Each start is an attempt. The machine is pure: its driver
 * tells it what happened and the time, and carries out its actions.
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
    KL_KEEPER_ACTIONS = 32,   /* greatest number of actions that one step can request */
    KL_KEEPER_NUMBERS = 1000, /* each attempt has its own range of numbers for requests to the program */
    KL_KEEPER_JOBS_NUMBER =
        999, /* the number that the script of an attempt's batch job uses, the last one of the range */
};

enum { KL_KEEPER_NOT_EXECUTABLE = 126, KL_KEEPER_NOT_FOUND = 127 }; /* exit codes of shells and launchers */

/* --- hosts --- */

typedef struct kl_keeper_view { /* what a measurement says about a host */
    const char *name;
    uint32_t slots;  /* greatest number of ranks that the host can take */
    double qos;      /* fitness, 0 … 1; 0: no rank can run on the host */
    double pace;     /* speed of a rank on the host, divided by that of the best core; 0: not known */
    bool leaving;    /* true: the host's owner takes the host away, so ranks should leave */
    const char *why; /* why the host is not fit; "": it is fit */
} kl_keeper_view;

typedef struct kl_keeper_host {
    char name[KL_KEEPER_NAME_BYTES];
    uint32_t slots;
    double qos, pace;
    bool leaving;
    bool drained;      /* true: a person does not want ranks on this host */
    uint32_t failures; /* number of attempts in a row that failed with ranks here and saved nothing new */
    uint32_t ranks;    /* number of ranks of the present attempt here; 0: the host is not in use */
    uint32_t next;     /* number of ranks of the next attempt here, while its hosts are chosen */
    double rate;       /* smoothed rows per second of the host's ranks; 0: not known */
    double told;       /* rows per second in the last report */
    double share; /* while hosts are ordered: the host's qos, or a value from the rate of its ranks, 0 … 1 */
    double launch_pace; /* pace of the host at the start of the present attempt; 0: not known */
} kl_keeper_host;

/* --- what the driver tells --- */

typedef struct kl_keeper_report { /* report of the present attempt's program */
    uint64_t attempt;
    uint32_t ranks;
    const char *const *hosts; /* hosts[ranks]: host of each rank; NULL: not known */
    const double *rates;      /* rates[ranks]: rows per second of each rank; NULL: not known */
    uint64_t sweeps, expected, saved;
    double sweep_s, longest_s, write_s, load_s;
    uint64_t answered;
    const char *error; /* why the last save failed; NULL or "": it did not fail */
    bool stopped, done;
} kl_keeper_report;

typedef enum kl_keeper_how {
    KL_KEEPER_EXITED,    /* the program ended by itself; code: its exit code */
    KL_KEEPER_SIGNALLED, /* a signal killed the program; code: the signal */
    KL_KEEPER_MISSING,   /* the launcher could not be started; code: exit code that a shell would give */
    KL_KEEPER_LOST,      /* how the program ended is not known */
    KL_KEEPER_REFUSED,   /* the queue did not accept the job */
} kl_keeper_how;

typedef struct kl_keeper_end {
    uint64_t attempt;
    kl_keeper_how how;
    uint32_t code;
} kl_keeper_end;

typedef enum kl_keeper_event_kind {
    KL_KEEPER_TIME,   /* only time has passed */
    KL_KEEPER_HOSTS,  /* hosts were measured: views, count */
    KL_KEEPER_REPORT, /* the program has written its progress: report */
    KL_KEEPER_ENDED,  /* the launcher and all its processes have ended: end */
    KL_KEEPER_LIMIT,  /* the attempt's time limit is known: limit_s */
    KL_KEEPER_QUEUE,  /* whether the attempt waits in a queue or is suspended: pending */
    KL_KEEPER_MOVE,   /* a person asks to move the run: names, or NULL for the fittest hosts */
    KL_KEEPER_DRAIN,  /* a person asks to remove ranks from these hosts: names */
    KL_KEEPER_STOP,   /* a person asks to save and stop the run; a second such request kills it */
    KL_KEEPER_EVENTS
} kl_keeper_event_kind;

typedef struct kl_keeper_event {
    kl_keeper_event_kind kind;
    const kl_keeper_view *views;
    size_t count;
    const kl_keeper_report *report;
    kl_keeper_end end;
    double limit_s; /* time on the clock of now_s */
    bool pending;
    const char *names; /* names of hosts, separated by commas */
} kl_keeper_event;

/* --- what the driver carries out --- */

typedef enum kl_keeper_act {
    KL_KEEPER_LOOK,    /* measure hosts, and report them within `seconds` */
    KL_KEEPER_START,   /* start `attempt` with `ranks` ranks; kl_keeper_host.ranks says on which hosts */
    KL_KEEPER_ASK,     /* write request `number`, which asks the program to save and stop */
    KL_KEEPER_KILL,    /* kill the launcher and all its processes */
    KL_KEEPER_DECIDED, /* record `decision` under the number `number`, and print `text` */
    KL_KEEPER_CAME,    /* record the outcome of decision `number` */
    KL_KEEPER_OVER,    /* the keeper ends: result, code, text */
} kl_keeper_act;

typedef enum kl_keeper_result {
    KL_KEEPER_GOES_ON,
    KL_KEEPER_DONE,    /* the program has ended with code 0 */
    KL_KEEPER_STOPPED, /* the program was saved and stopped, as a person asked */
    KL_KEEPER_GAVE_UP,
} kl_keeper_result;

typedef struct kl_keeper_action {
    kl_keeper_act act;
    uint64_t attempt, number;
    uint32_t ranks;
    bool others; /* LOOK: measure only hosts without ranks, so that the program is not disturbed */
    double seconds;
    kl_decision decision;
    double came_s, spent_s; /* CAME: seconds saved, and seconds without progress */
    kl_keeper_result result;
    int code; /* OVER: exit code of the last attempt; 0 if the run is done */
    char text[KL_KEEPER_TEXT_BYTES];
} kl_keeper_action;

/* --- the machine --- */

/* Order the hosts by preference: order[0 … count−1] are indices into `hosts`. Hosts without fitness may
 * have any position. */
typedef void (*kl_keeper_order_fn)(void *self, const kl_keeper_host *hosts, size_t count, uint32_t *order);

typedef struct kl_keeper_options {
    uint32_t ranks, least; /* wanted number of ranks, and the smallest number with which the run goes on; in a
                              queue: numbers of nodes */
    uint32_t tries;        /* give up after this number of attempts in a row that saved nothing new */
    double hang_s;         /* smallest time limit for a sweep, in seconds */
    double wait_s;         /* longest wait for hosts, in seconds */
    double look_s;         /* seconds between two measurements of other hosts */
    double
        margin_s; /* seconds before a time limit at which the run is saved; 0: computed from measured times */
    bool queued;  /* true: a queue chooses the hosts of an attempt */
    bool fixed;   /* true: never move the run for speed */
    kl_keeper_order_fn order; /* function that orders hosts; NULL: the fastest come first */
    void *self;
} kl_keeper_options;

typedef enum kl_keeper_state {
    KL_KEEPER_NEW,
    KL_KEEPER_LOOKING,  /* hosts are measured for the next attempt */
    KL_KEEPER_WAITING,  /* the keeper waits, because too few hosts are fit */
    KL_KEEPER_STARTING, /* the launcher runs, but the program has not reported yet */
    KL_KEEPER_RUNNING,
    KL_KEEPER_SAVING, /* the program was asked to save and stop */
    KL_KEEPER_KILLING,
    KL_KEEPER_IS_OVER,
    KL_KEEPER_STATES
} kl_keeper_state;

/* Why the present attempt is ended, or why the next one is chosen. */
typedef enum kl_keeper_cause {
    KL_KEEPER_NO_CAUSE,
    KL_KEEPER_FOR_SPEED,
    KL_KEEPER_FOR_SCALE, /* another number of ranks is faster */
    KL_KEEPER_FOR_MOVE,  /* requested */
    KL_KEEPER_FOR_DRAIN, /* a person asked for it, or a host's owner takes the host away */
    KL_KEEPER_FOR_LIMIT,
    KL_KEEPER_FOR_STOP, /* a person asked to stop; nothing is started afterwards */
    KL_KEEPER_FOR_HANG,
    KL_KEEPER_FOR_FAILURE,
    KL_KEEPER_CAUSES
} kl_keeper_cause;

typedef struct kl_keeper_watch { /* the present attempt */
    bool reported;
    double started_s, first_s;                         /* time of its launch; time of its first report */
    double reported_s;                                 /* time of its last report */
    double quiet_s;                                    /* seconds without progress that the keeper has seen */
    double killed_s;                                   /* time of the last attempt to kill it */
    uint64_t first, sweeps, expected, saved, answered; /* first: number of sweeps in its first report */
    double sweep_s, best_sweep_s, longest_s,
        write_s; /* sweep_s: smoothed seconds of a sweep; best_sweep_s: the least such value */
    bool stopped, done;
} kl_keeper_watch;

typedef struct kl_keeper_tally {
    uint64_t attempt;    /* number of the present attempt; the first is 1 */
    uint64_t saved;      /* number of sweeps in the newest checkpoint of all attempts */
    uint64_t saved_then; /* the same number at the beginning of the present attempt */
    uint32_t idle;       /* number of attempts in a row that saved nothing new */
    double longest_s;    /* seconds of the longest sweep of all attempts; 0: no sweep has ended */
    bool reported;       /* true: some attempt has reported */
    bool by_hand; /* true: the attempt ends because a person asked for it, so it does not count as one without
                     progress */
    double refused_s; /* time since which the queue has refused jobs; 0: it accepts them */
    int code;         /* exit code of the last attempt */
} kl_keeper_tally;

typedef struct kl_keeper_costs {
    double stop_s,
        launch_s; /* seconds from a stop request to the end, and from launch to first report; 0: not known */
    double rank_rate;  /* rows per second of a rank on a host of pace 1; 0: not known */
    double sweep_rows; /* least product, smoothed, of a sweep's seconds and the rows per second of all ranks;
                          0: not known */
    double doubt;      /* factor by which a gain must exceed its cost, at least 1 */
} kl_keeper_costs;

typedef struct kl_keeper_promise { /* the last planned move; number 0: no move waits for its outcome */
    uint64_t number;
    double asked_s; /* time at which the program was asked to stop, or was found dead */
    double stay_sweep_s,
        sweep_s;    /* seconds of a sweep before the move, and the forecast for after it; 0: no forecast */
    double spent_s; /* seconds from asked_s to the first report; 0: not known */
    uint64_t first; /* sweeps in the first report */
} kl_keeper_promise;

typedef struct kl_keeper_wish {
    bool move;  /* true: move as soon as the program can save */
    bool drain; /* true: leave hosts that are drained or taken away as soon as the program can save */
    bool stop;  /* true: save and stop as soon as the program can save */
    char names[KL_KEEPER_TEXT_BYTES]; /* hosts for the move; "": the fittest hosts */
} kl_keeper_wish;

typedef struct kl_keeper {
    kl_keeper_options options;
    kl_keeper_state state;
    kl_keeper_cause cause;
    kl_keeper_result result;
    double now_s, since_s; /* since_s: time at which the state began */
    double look_s,
        looked_s;    /* time of the next measurement of other hosts; time at which the last one began */
    double limit_s;  /* time at which the attempt's time limit ends; 0: it has none */
    double pays_s;   /* time since which a move pays; 0: a move does not pay */
    double waited_s; /* time at which the wait for hosts began; 0: the keeper is not waiting */
    bool looks;      /* true: a measurement is under way */
    bool pending;    /* true: the attempt waits in a queue or is suspended */
    uint64_t asked; /* number of the last request to the program in this attempt; the first is 1; 0: there was
                       none */
    uint64_t decisions; /* number of the last decision */
    kl_keeper_watch watch;
    kl_keeper_tally tally;
    kl_keeper_costs costs;
    kl_keeper_promise promise;
    kl_keeper_wish wish;
    kl_keeper_host *hosts;
    uint64_t count, room;
    char answer[KL_KEEPER_TEXT_BYTES]; /* answer to the last request of a person */
    bool refused;                      /* true: the answer says why the request changes nothing */
    char kept[KL_KEEPER_TEXT_BYTES];   /* the last recorded reason for staying on the present hosts */
    kl_keeper_action actions[KL_KEEPER_ACTIONS];
    uint32_t first_action, action_count;
} kl_keeper;

/* Initialise a keeper. false: memory ran out. The first step requests a measurement. */
bool kl_keeper_init(kl_keeper *keeper, const kl_keeper_options *options);
void kl_keeper_free(kl_keeper *keeper);
/* Pass an event to the keeper. now_s never decreases. false: memory ran out. */
bool kl_keeper_step(kl_keeper *keeper, const kl_keeper_event *event, double now_s);
/* Take the next action. false: there is none. */
bool kl_keeper_take(kl_keeper *keeper, kl_keeper_action *action);
/* Return the time by which kl_keeper_step() must be called again. */
double kl_keeper_wake_s(const kl_keeper *keeper);
const char *kl_keeper_state_name(kl_keeper_state state);
const char *kl_keeper_cause_name(kl_keeper_cause cause);

/* --- store.c: the stored state, from which a later keeper continues --- */

/* Write the state as lines of names and values. */
void kl_keeper_store(const kl_keeper *keeper, kl_buffer *text);
/* Read the stored state into a keeper, after kl_keeper_init(). `alive`: the stored attempt still runs.
 * KILTER_ERR_INPUT, KILTER_ERR_MEMORY */
kilter_status kl_keeper_restore(kl_keeper *keeper, const char *text, size_t size, bool alive, double now_s,
                                kilter_error *error);

/* --- fields.c: files with a name and a value on each line --- */

typedef struct kl_fields { /* reads a text of names and values, one pair at a time */
    const char *at, *end;
    uint32_t line;
} kl_fields;

typedef struct kl_field {
    char name[32];
    char value[KL_KEEPER_TEXT_BYTES];
} kl_field;

kl_fields kl_fields_of(const char *text, size_t size);
/* Read the next pair. false: the text has ended, or the line is not a name, a blank and a value. In the
 * second case `bad` is set. */
bool kl_fields_next(kl_fields *fields, kl_field *field, bool *bad);
bool kl_field_is(const kl_field *field, const char *name);
uint64_t kl_field_count(const kl_field *field); /* value as a number; 0: it is not a number */
double kl_field_number(const kl_field *field);  /* 0: it is not a number */
void kl_put_field(kl_buffer *text, const char *name, const char *value); /* control characters become '?' */
void kl_put_field_count(kl_buffer *text, const char *name, uint64_t value);
void kl_put_field_number(kl_buffer *text, const char *name, double value);
/* Write and read how an attempt ended. false: the text does not say how an attempt ended. */
void kl_put_end(kl_buffer *text, const kl_keeper_end *end);
bool kl_get_end(const char *text, size_t size, kl_keeper_end *end);

/* --- launch.c: command lines --- */

typedef enum kl_launcher {
    KL_LAUNCH_OWN,     /* the user's own words, in which {ranks}, {hosts} and {hostfile} are replaced */
    KL_LAUNCH_OPENMPI, /* mpirun of Open MPI */
    KL_LAUNCH_MPICH,   /* mpiexec of MPICH */
    KL_LAUNCH_SRUN,    /* a step in a Slurm allocation */
    KL_LAUNCHERS
} kl_launcher;

typedef struct kl_launch {
    kl_launcher kind;
    const char *command;    /* the words of the launcher, such as "mpirun --quiet"; NULL: none */
    const char *mpi;        /* srun: value for --mpi; NULL: Slurm's default */
    char *const *program;   /* the words of the program, ended by NULL */
    char *const *variables; /* names of environment variables for all ranks, ended by NULL; NULL: none */
    const char *hostfile;   /* file with the name of a host for each rank */
    const kl_keeper_host *hosts;
    size_t count;
    uint32_t ranks;
} kl_launch;

/* Return the words, ended by NULL; the caller frees each of them. NULL: memory ran out. */
char **kl_launch_words(const kl_launch *launch);
void kl_launch_words_free(char **words);
void kl_launch_hostfile(const kl_launch *launch,
                        kl_buffer *text); /* write the name of each rank's host to the file */
/* Find out from the bytes of a program file which MPI it needs. KL_LAUNCH_OWN: neither of the two. */
kl_launcher kl_launcher_of_program(const void *data, size_t size);
/* Find out from the output of `mpirun --version` to which MPI a launcher belongs. */
kl_launcher kl_launcher_of_version(const char *text);

/* --- queue.c: states of Slurm's jobs, and options of sbatch --- */

enum { KL_SLURM_NAME_BYTES = 64, KL_SLURM_JOB_BYTES = 32 };

typedef enum kl_slurm_stage {
    KL_SLURM_UNKNOWN, /* a state that this table does not have; it causes no action */
    KL_SLURM_WAITS,   /* the job has no nodes, or they are not ready */
    KL_SLURM_RUNS,
    KL_SLURM_PAUSED, /* the job has its nodes, but the program does not run at present, or has ended */
    KL_SLURM_OVER,
} kl_slurm_stage;

kl_slurm_stage
kl_slurm_stage_of(const char *state); /* Convert a state such as "RUNNING", as printed for %T of squeue. */
/* Find the value of an option of sbatch, as in "--nodes=2" or "-N 2". The last value counts. letter 0: the
 * option has no letter. false: the option is not given. */
bool kl_slurm_option(const char *options, const char *name, char letter, char value[KL_KEEPER_TEXT_BYTES]);
const char *kl_slurm_refused(
    const char *options); /* Return the first option that a kept run cannot have; NULL: there is none. */
/* Read the number of nodes from options of sbatch, as in "-N 2-4". 0: the options do not say it. */
void kl_slurm_nodes_wanted(const char *options, uint32_t *least, uint32_t *most);
/* Write the names in a list such as "n[01-03],x", separated by commas and ended by NUL. false: the text is
 * not such a list. */
bool kl_slurm_expand(const char *list, kl_buffer *names);
bool kl_slurm_listed(const char *list, const char *name); /* greatest number of names in a list */
/* Return whether a node with these features satisfies a constraint such as "a&b|c". No node satisfies a
 * constraint of another form. "": there is no constraint. */
bool kl_slurm_has_features(const char *constraint, const char *features);
/* Make the common beginning of the names of a run's jobs: the name of the program or of the user, and a
 * number. */
void kl_slurm_name(const char *options, const char *program, uint64_t token, char name[KL_SLURM_NAME_BYTES]);
/* Find the number of a job in the output of sbatch or squeue. The last number counts. false: there is
 * none. */
bool kl_slurm_number(const char *text, char job[KL_SLURM_JOB_BYTES]);
/* Return whether an error of sbatch leaves open if the job was accepted. */
bool kl_slurm_is_unclear(const char *said);

/* --- jobs.c: the output of Slurm's commands, and the script of a job --- */

typedef struct kl_slurm_job { /* a line of squeue -h -o '%T|%L|%P|%N' */
    kl_slurm_stage stage;
    double left_s; /* seconds until the job's limit; 0: not known, or none */
    char partition[KL_KEEPER_NAME_BYTES];
    char nodes[KL_KEEPER_TEXT_BYTES]; /* nodes of the job; "": none yet */
} kl_slurm_job;

bool kl_slurm_job_read(const char *line, kl_slurm_job *job);
double kl_slurm_time_s(
    const char *text); /* Read a time such as "2-03:04:05" or "4:05". Below 0: it is not a time. */

typedef struct kl_slurm_node { /* a line of sinfo -N -h -o '%N|%T|%c|%O|%P|%f' */
    char name[KL_KEEPER_NAME_BYTES];
    uint32_t cores;
    double load;
    bool idle, used, leaving,
        gone; /* leaving: the node is drained; gone: the node is down or cannot be used */
    char partition[KL_KEEPER_NAME_BYTES];
    bool is_default; /* jobs that name no partition go to this one */
    char features[KL_KEEPER_TEXT_BYTES];
} kl_slurm_node;

/* Read a line, and move *text past it. Lines that describe no node are skipped. false: no line is left. */
bool kl_slurm_node_read(const char **text, kl_slurm_node *node);

typedef struct kl_slurm_script {
    const char *folder, *keep; /* working folder of the program; the keeper's folder */
    const char *step;          /* command line of the step, quoted for a shell */
    char *const *variables;    /* "NAME=VALUE" for the program's environment, ended by NULL */
    uint64_t attempt;
} kl_slurm_script;

void kl_slurm_script_put(const kl_slurm_script *script, kl_buffer *text);
void kl_put_quoted(kl_buffer *text, const char *word); /* Quote a word for a shell. */

#endif
