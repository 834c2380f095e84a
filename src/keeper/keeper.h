/* Public header of the folder keeper: the state machine of a keeper. A keeper runs a program, starts it again
 * after failures, and moves it to faster hosts. Each start is an attempt. The state machine itself touches no
 * process, file or clock. Its driver tells it the time and what happened, and carries out its actions.
 *
 *     the driver tells       kl_keeper_step(): hosts were measured, a report came, the launcher ended, …
 *     the driver carries out kl_keeper_take(), again and again: look, start, ask, kill, record, end
 *     the driver stores      kl_keeper_store(); a later keeper goes on with kl_keeper_restore()
 *
 *     part              owner file    what it knows
 *     kl_keeper_watch   watch.c       what the present attempt has reported, and how long it has been silent
 *     kl_keeper_tally   tally.c       attempts, and how many of them in a row saved nothing new
 *     kl_keeper_costs   watch.c       what saving and launching take, and (speed.c) what a row takes
 *     kl_keeper_mean    chance.c      values that differ by chance
 *     kl_keeper_evidence prospect.c   what measurements of hosts say for a move
 *     kl_keeper_promise outcome.c     forecast and outcome of the last planned move
 *     kl_keeper_wish    wishes.c      requests of people that are not carried out yet
 *     kl_keeper         keeper.c      all these parts; speed.c, place.c and prospect.c choose hosts
 *
 * launch.c makes command lines, queue.c knows Slurm's states and options, jobs.c reads what its commands
 * print, fields.c reads files of names and values. */
#ifndef KL_KEEPER_H
#define KL_KEEPER_H

#include "decide/decide.h"

enum {
    KL_KEEPER_NAME_BYTES = 256,
    KL_KEEPER_TEXT_BYTES = 512,
    KL_KEEPER_ACTIONS = 32, /* greatest number of actions that one step can request */
    KL_KEEPER_NUMBERS =
        1000, /* request i to the program in attempt n has the number n · KL_KEEPER_NUMBERS + i */
    KL_KEEPER_JOBS_NUMBER = 999, /* a batch job's script can ask the program to save, too. Its request in
                                    attempt n has the number n · KL_KEEPER_NUMBERS + KL_KEEPER_JOBS_NUMBER */
};

enum {
    KL_KEEPER_NOT_EXECUTABLE = 126,
    KL_KEEPER_NOT_FOUND = 127
}; /* exit codes with which shells and launchers report that they could not run a program */

/* --- hosts --- */

typedef struct kl_keeper_view { /* the result of measuring a host */
    const char *name;
    uint32_t slots; /* greatest number of ranks that the host can take */
    double qos;     /* fitness, 0 … 1; 0: no rank can run on the host */
    double
        pace; /* speed of a rank on the host, divided by the speed of a rank on the best core; 0: not known */
    bool leaving;    /* true: the host's owner takes the host away, so ranks should leave */
    const char *why; /* why the host is not fit; "": it is fit */
} kl_keeper_view;

typedef struct kl_keeper_host {
    char name[KL_KEEPER_NAME_BYTES];
    uint32_t slots;
    double qos, pace;
    char why[KL_KEEPER_NAME_BYTES]; /* why the host is not fit; "": it is fit, or was not measured */
    bool leaving;
    bool drained;      /* true: a person does not want ranks on this host */
    uint32_t failures; /* number of failed attempts in a row that had ranks here and saved nothing new */
    uint32_t ranks;    /* number of ranks of the present attempt on this host; 0: the host is not in use */
    uint32_t next; /* number of the next attempt's ranks on this host; set while its hosts are being chosen */
    double rate;   /* rows per second of all ranks on this host, averaged over time; 0: not known */
    double told;   /* rows per second of all ranks on this host in the last report */
    double share; /* fitness by which hosts are ordered, 0 … 1; a host in use is not measured, so its fitness
                     is computed from the rate of its ranks */
    double launch_pace; /* pace of the host at the start of the present attempt; 0: not known */
} kl_keeper_host;

/* --- what the driver tells the keeper --- */

typedef struct kl_keeper_report { /* the progress that the program of the present attempt has reported */
    uint64_t attempt;
    uint32_t ranks;
    const char *const *hosts; /* hosts[ranks]: the host of each rank; NULL: not known */
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
    KL_KEEPER_LOST,      /* it is not known how the program ended */
    KL_KEEPER_REFUSED,   /* the attempt did not begin: the queue refused its job, or the disk is full */
} kl_keeper_how;

typedef struct kl_keeper_end {
    uint64_t attempt;
    kl_keeper_how how;
    uint32_t code;
} kl_keeper_end;

typedef enum kl_keeper_event_kind {
    KL_KEEPER_TIME,   /* nothing happened, but time has passed */
    KL_KEEPER_HOSTS,  /* hosts were measured; the event has `views` and `count` */
    KL_KEEPER_REPORT, /* the program has reported its progress; the event has `report` */
    KL_KEEPER_ENDED,  /* the launcher and all its processes have ended; the event has `end` */
    KL_KEEPER_LIMIT,  /* the attempt's time limit is known; the event has `limit_s` */
    KL_KEEPER_QUEUE,  /* the state of the job in the queue has changed; the event has `pending`. While
                         `pending` is true, a silent program does not count as hanging */
    KL_KEEPER_MOVE,  /* a person asks to move the run; the event has `names`, or NULL for the fittest hosts */
    KL_KEEPER_DRAIN, /* a person asks to remove ranks from some hosts; the event has `names` */
    KL_KEEPER_STOP,  /* a person asks to save and stop the run; a second such request kills it */
    KL_KEEPER_EVENTS
} kl_keeper_event_kind;

typedef struct kl_keeper_event {
    kl_keeper_event_kind kind;
    const kl_keeper_view *views;
    size_t count;
    const kl_keeper_report *report;
    kl_keeper_end end;
    double limit_s; /* time at which the attempt reaches its time limit, by the same clock as now_s */
    bool pending;
    const char *names; /* names of hosts, separated by commas */
} kl_keeper_event;

/* --- what the keeper asks the driver to do --- */

typedef enum kl_keeper_act {
    KL_KEEPER_LOOK,    /* measure hosts, and report the result within `seconds` */
    KL_KEEPER_START,   /* start `attempt` with `ranks` ranks; kl_keeper_host.ranks says on which hosts */
    KL_KEEPER_ASK,     /* write request `number`, which asks the program to save and stop */
    KL_KEEPER_KILL,    /* kill the launcher and all its processes */
    KL_KEEPER_DECIDED, /* record `decision` under `number`, and print `text` */
    KL_KEEPER_CAME,    /* record the outcome of the decision with this `number` */
    KL_KEEPER_OVER,    /* the keeper ends; the action has `result`, `code` and `text` */
} kl_keeper_act;

typedef enum kl_keeper_result {
    KL_KEEPER_GOES_ON,
    KL_KEEPER_DONE,    /* the program has ended with code 0 */
    KL_KEEPER_STOPPED, /* the program was saved and stopped, as a person or a time limit required */
    KL_KEEPER_GAVE_UP,
} kl_keeper_result;

typedef struct kl_keeper_action {
    kl_keeper_act act;
    uint64_t attempt, number;
    uint32_t ranks;
    bool others; /* for KL_KEEPER_LOOK: true: measure only hosts without ranks, so that the program is not
                    disturbed */
    double seconds;
    kl_decision decision;
    double came_s, spent_s; /* for KL_KEEPER_CAME. came_s: seconds that the move saved. spent_s: seconds from
                               the request to stop to the first report after the move */
    kl_keeper_result result;
    int code; /* for KL_KEEPER_OVER: exit code of the last attempt; 0 if the run is done */
    char text[KL_KEEPER_TEXT_BYTES];
} kl_keeper_action;

/* --- the state machine --- */

/* A function that orders hosts by preference: it fills order[0 … count − 1] with indices into `hosts`. Hosts
 * without fitness may have any position. */
typedef void (*kl_keeper_order_fn)(void *self, const kl_keeper_host *hosts, size_t count, uint32_t *order);

typedef struct kl_keeper_options {
    uint32_t ranks, least; /* ranks: wanted number of ranks; least: smallest number with which the run
                              continues; in a queue, both count nodes */
    uint32_t tries; /* the keeper gives up after this number of attempts in a row that saved nothing new */
    double hang_s;  /* a program hangs if it makes no progress for this number of seconds; long sweeps make
                       this limit longer */
    double wait_s;  /* greatest number of seconds for which the keeper waits until enough hosts are fit */
    double look_s;  /* seconds between two measurements of hosts without ranks */
    double
        margin_s; /* seconds before a time limit at which the run is saved; 0: computed from measured times */
    bool queued;  /* true: a queue chooses the hosts of an attempt */
    bool fixed;   /* true: never move the run for speed */
    kl_keeper_order_fn order; /* function that orders hosts; NULL: the fastest hosts come first */
    void *self;
} kl_keeper_options;

typedef enum kl_keeper_state {
    KL_KEEPER_NEW,
    KL_KEEPER_LOOKING,  /* the hosts are being measured for the next attempt */
    KL_KEEPER_WAITING,  /* the keeper waits, because too few hosts are fit */
    KL_KEEPER_STARTING, /* the launcher runs, but the program has not reported yet */
    KL_KEEPER_RUNNING,
    KL_KEEPER_SAVING, /* the program was asked to save and stop */
    KL_KEEPER_KILLING,
    KL_KEEPER_IS_OVER,
    KL_KEEPER_STATES
} kl_keeper_state;

/* The reason why the present attempt is ended, or why the next one begins. */
typedef enum kl_keeper_cause {
    KL_KEEPER_NO_CAUSE,
    KL_KEEPER_FOR_SPEED,
    KL_KEEPER_FOR_SCALE, /* the program would be faster with another number of ranks */
    KL_KEEPER_FOR_MOVE,  /* a person asked for a move */
    KL_KEEPER_FOR_DRAIN, /* a person wants a host free of ranks, or the host's owner takes the host away */
    KL_KEEPER_FOR_LIMIT,
    KL_KEEPER_FOR_STOP, /* a person asked to stop; nothing is started afterwards */
    KL_KEEPER_FOR_HANG,
    KL_KEEPER_FOR_FAILURE,
    KL_KEEPER_CAUSES
} kl_keeper_cause;

typedef struct kl_keeper_watch { /* what the keeper knows about the present attempt */
    bool reported;
    double started_s, first_s; /* started_s: time of the launch; first_s: time of the first report */
    double reported_s;         /* time of the last report */
    double quiet_s;            /* seconds since the last progress; pauses of the keeper itself do not count */
    double killed_s;           /* time at which the keeper last tried to kill the processes */
    uint64_t first, sweeps, expected, saved,
        answered; /* first: number of sweeps done at the first report; sweeps, expected, saved, answered:
                     values of the last report */
    double sweep_s, best_sweep_s, longest_s,
        write_s; /* sweep_s: seconds of a sweep, averaged over time; best_sweep_s: least value of sweep_s so
                    far; longest_s: longest time of a sweep or of loading a checkpoint; write_s: longest time
                    of a save */
    bool stopped, done;
} kl_keeper_watch;

typedef struct kl_keeper_tally {
    uint64_t attempt;    /* number of the present attempt; the first is 1 */
    uint64_t saved;      /* number of sweeps in the newest checkpoint of all attempts */
    uint64_t saved_then; /* value of `saved` at the beginning of the present attempt */
    uint32_t idle;       /* number of attempts in a row that saved nothing new */
    double longest_s;    /* seconds of the longest sweep of all attempts; 0: no sweep has ended */
    bool reported;       /* true: at least one attempt has reported */
    bool by_hand;     /* true: the present attempt ends because a person asked for it; such an attempt is not
                         counted in `idle` */
    double refused_s; /* time since which the queue has refused jobs; 0: the queue accepts jobs */
    int code;         /* exit code with which the last attempt ended */
} kl_keeper_tally;

typedef struct kl_keeper_change { /* how much a value changes by chance */
    double last;                  /* the last value that was noted */
    double usual;                 /* mean change from one noted value to the next; 0: not known */
    double noted_s;               /* time of the last noted value; 0: there is none */
} kl_keeper_change;

typedef struct kl_keeper_mean { /* mean of a value in the phase of the run in which it was least */
    double value;               /* 0: not known */
    double counted_s;           /* weight of the mean, in seconds */
    kl_keeper_change change;    /* changes of the value's logarithm */
} kl_keeper_mean;

typedef struct kl_keeper_costs {
    double stop_s, launch_s; /* stop_s: seconds from a request to stop to the program's end; launch_s: from
                                launch to first report; 0: not known */
    /* row_s: seconds that a rank needs for a row on a host of pace 1, the fastest kind; sweep_rows: rows in a
     * sweep, computed as the seconds of a sweep × the rows per second of all ranks */
    kl_keeper_mean row_s, sweep_rows;
    double doubt; /* caution against moves, at least 1: a move is made only if it gains `doubt` times as much
                     as is normally required. It grows if moves gain less than forecast */
} kl_keeper_costs;

typedef struct kl_keeper_evidence { /* what measurements of hosts say for a move to faster hosts */
    double pays_s; /* time since which a move has looked worthwhile; 0: no move looks worthwhile now */
    /* sum over measurements of (logarithm of the forecast factor by which sweeps would become shorter - its
     * least value for a move); never below 0, and never above the sum that a move needs */
    double sum;
    double weighed_s; /* time of the last measurement with a forecast */
    /* change: changes of this logarithm; stay: changes of the logarithm of the seconds of a sweep */
    kl_keeper_change change, stay;
} kl_keeper_evidence;

typedef struct kl_keeper_promise { /* forecast and outcome of the latest planned move or restart */
    uint64_t number; /* number of the decision to move or restart; 0: the keeper awaits no outcome */
    double asked_s;  /* time at which the program was asked to stop, or at which its failure was noticed */
    double stay_sweep_s, sweep_s; /* stay_sweep_s: seconds of a sweep before the move; sweep_s: forecast
                                     seconds of a sweep after the move; 0: no forecast */
    double spent_s; /* seconds from asked_s to the first report after the move; 0: there was no report yet */
    uint64_t first; /* number of sweeps in the first report after the move */
} kl_keeper_promise;

typedef struct kl_keeper_wish {
    bool move; /* true: move the run as soon as the program can save */
    bool
        drain; /* true: leave drained hosts, and hosts that are taken away, as soon as the program can save */
    bool stop; /* true: save and stop the run as soon as the program can save */
    char names[KL_KEEPER_TEXT_BYTES]; /* names of the hosts to which the run moves; "": the fittest hosts */
} kl_keeper_wish;

typedef struct kl_keeper {
    kl_keeper_options options;
    kl_keeper_state state;
    kl_keeper_cause cause;
    kl_keeper_result result;
    double now_s, since_s;   /* now_s: present time; since_s: time at which the present state began */
    double look_s, looked_s; /* look_s: time of the next measurement of hosts without ranks; looked_s: time at
                                which the last measurement began */
    double limit_s;          /* time at which the attempt reaches its time limit; 0: it has none */
    double waited_s;         /* time at which the wait for hosts began; 0: the keeper is not waiting */
    bool looks;              /* true: hosts are being measured */
    bool pending;            /* true: the attempt waits in a queue, is suspended, or cannot report */
    uint64_t asked;          /* number of requests to the program in the present attempt */
    uint64_t decisions;      /* number of decisions so far */
    kl_keeper_watch watch;
    kl_keeper_tally tally;
    kl_keeper_costs costs;
    kl_keeper_evidence evidence;
    kl_keeper_promise promise;
    kl_keeper_wish wish;
    kl_keeper_host *hosts;
    uint64_t count, room;
    char answer[KL_KEEPER_TEXT_BYTES]; /* answer to the last request of a person */
    bool refused;                      /* true: `answer` says why the keeper refused the request */
    char kept[KL_KEEPER_TEXT_BYTES];   /* the last recorded reason for staying on the present hosts */
    kl_keeper_action actions[KL_KEEPER_ACTIONS];
    uint32_t first_action, action_count;
} kl_keeper;

/* Initialise a keeper, whose first step will request a measurement. false: memory ran out. */
bool kl_keeper_init(kl_keeper *keeper, const kl_keeper_options *options);
void kl_keeper_free(kl_keeper *keeper);
/* Pass an event to the keeper. now_s never decreases. false: memory ran out. */
bool kl_keeper_step(kl_keeper *keeper, const kl_keeper_event *event, double now_s);
/* Take the next action that the driver must carry out. false: there is none. */
bool kl_keeper_take(kl_keeper *keeper, kl_keeper_action *action);
/* Return the time by which kl_keeper_step() must be called again, even if nothing happens. */
double kl_keeper_wake_s(const kl_keeper *keeper);
const char *kl_keeper_state_name(kl_keeper_state state);
const char *kl_keeper_cause_name(kl_keeper_cause cause);

/* --- store.c: the stored state, from which a later keeper continues --- */

/* Write the state as lines of names and values. */
void kl_keeper_store(const kl_keeper *keeper, kl_buffer *text);
/* Read a stored state into a new keeper, after kl_keeper_init(). `alive`: the attempt of the stored state
 * still runs. Errors: KILTER_ERR_INPUT, KILTER_ERR_MEMORY */
kilter_status kl_keeper_restore(kl_keeper *keeper, const char *text, size_t size, bool alive, double now_s,
                                kilter_error *error);

/* --- fields.c: files with a name and a value on each line --- */

typedef struct kl_fields { /* a text of names and values that is being read, one pair at a time */
    const char *at, *end;
    uint32_t line;
} kl_fields;

typedef struct kl_field {
    char name[32];
    char value[KL_KEEPER_TEXT_BYTES];
} kl_field;

kl_fields kl_fields_of(const char *text, size_t size);
/* Read the next pair. false: the text has ended, or the line is malformed. `bad` is set if the line is
 * malformed. */
bool kl_fields_next(kl_fields *fields, kl_field *field, bool *bad);
bool kl_field_is(const kl_field *field, const char *name);
uint64_t kl_field_count(const kl_field *field); /* the value as a whole number; 0: it is not one */
double kl_field_number(const kl_field *field);  /* the value as a number; 0: it is not one */
void kl_put_field(kl_buffer *text, const char *name,
                  const char *value); /* control characters in the value become '?' */
void kl_put_field_count(kl_buffer *text, const char *name, uint64_t value);
void kl_put_field_number(kl_buffer *text, const char *name, double value);
/* kl_put_end() writes how an attempt ended, and kl_get_end() reads it. false: the text does not say how an
 * attempt ended. */
void kl_put_end(kl_buffer *text, const kl_keeper_end *end);
bool kl_get_end(const char *text, size_t size, kl_keeper_end *end);

/* --- launch.c: command lines that start the program's ranks --- */

typedef enum kl_launcher {
    KL_LAUNCH_OWN, /* a launcher of the user, in whose words {ranks}, {hosts} and {hostfile} are replaced */
    KL_LAUNCH_OPENMPI, /* mpirun of Open MPI */
    KL_LAUNCH_MPICH,   /* mpiexec of MPICH */
    KL_LAUNCH_SRUN,    /* srun, which starts a step in a Slurm allocation */
    KL_LAUNCHERS
} kl_launcher;

typedef struct kl_launch {
    kl_launcher kind;
    const char *command;  /* the words of the launcher, such as "mpirun --quiet"; NULL: the usual launcher */
    const char *mpi;      /* for srun: value of the option --mpi; NULL: Slurm's default */
    char *const *program; /* the words of the program, ended by NULL */
    char *const
        *variables; /* names of the environment variables that all ranks get, ended by NULL; NULL: none */
    const char *hostfile; /* file that has the name of the host of each rank */
    const kl_keeper_host *hosts;
    size_t count;
    uint32_t ranks;
} kl_launch;

/* Return the words of the command line, ended by NULL; the caller frees them by kl_launch_words_free(). NULL:
 * memory ran out. */
char **kl_launch_words(const kl_launch *launch);
void kl_launch_words_free(char **words);
void kl_launch_hostfile(
    const kl_launch *launch,
    kl_buffer *text); /* write the content of the hostfile: the name of each rank's host */
/* Find out from the bytes of a program file which MPI it needs. KL_LAUNCH_OWN: neither Open MPI nor MPICH. */
kl_launcher kl_launcher_of_program(const void *data, size_t size);
/* Find out from the output of `mpirun --version` whether a launcher belongs to Open MPI or to MPICH. */
kl_launcher kl_launcher_of_version(const char *text);

/* --- queue.c: states of Slurm's jobs, and options of sbatch --- */

enum { KL_SLURM_NAME_BYTES = 64, KL_SLURM_JOB_BYTES = 32 };

typedef enum kl_slurm_stage {
    KL_SLURM_UNKNOWN, /* the table of states in queue.c lacks the job's state, so nothing is done */
    KL_SLURM_WAITS,   /* the job has no nodes yet, or its nodes are not ready */
    KL_SLURM_RUNS,
    KL_SLURM_PAUSED, /* the job has its nodes, but its program is suspended or has ended */
    KL_SLURM_OVER,
} kl_slurm_stage;

kl_slurm_stage kl_slurm_stage_of(
    const char *state); /* Convert the state of a job, such as "RUNNING". squeue prints it for %T. */
/* Find the value of an option in words of a command line for sbatch, as in "--nodes=2" or "-N 2". The last
 * value counts. letter: one-letter name of the option; 0: it has none. false: the option is not given. */
bool kl_slurm_option(const char *options, const char *name, char letter, char value[KL_KEEPER_TEXT_BYTES]);
const char *kl_slurm_refused(
    const char *options); /* Return an option that a run under a keeper must not use; NULL: there is none. */
/* Read the least and the greatest number of nodes from options of sbatch, as in "-N 2-4". Both numbers are 0
 * if the options do not give them. */
void kl_slurm_nodes_wanted(const char *options, uint32_t *least, uint32_t *most);
/* Expand a list of hosts such as "n[01-03],x". The names are written with commas between them and a NUL at
 * the end. false: the text is not such a list. */
bool kl_slurm_expand(const char *list, kl_buffer *names);
bool kl_slurm_listed(
    const char *list,
    const char *name); /* Return whether the name is in a list whose items are separated by commas. */
/* Return whether a node with these features satisfies a constraint such as "a&b|c", or the empty constraint.
 * No node satisfies a constraint of any other form. */
bool kl_slurm_has_features(const char *constraint, const char *features);
/* Make the text with which the names of all jobs of a run begin. It consists of a name and the number
 * `token`. The name is the user's --job-name, or else the program's name. */
void kl_slurm_name(const char *options, const char *program, uint64_t token, char name[KL_SLURM_NAME_BYTES]);
/* Find the number of a job in the output of sbatch or squeue. If several lines have one, take the last.
 * false: there is none. */
bool kl_slurm_number(const char *text, char job[KL_SLURM_JOB_BYTES]);
/* Return whether Slurm may have accepted the job although sbatch printed this error message. */
bool kl_slurm_is_unclear(const char *said);

/* --- jobs.c: the output of Slurm's commands, and the script of a job --- */

typedef struct kl_slurm_job { /* a job, from a line of squeue -h -o '%T|%L|%P|%N' */
    kl_slurm_stage stage;
    double left_s; /* seconds until the job's time limit; 0: not known, or there is none */
    char partition[KL_KEEPER_NAME_BYTES];
    char nodes[KL_KEEPER_TEXT_BYTES]; /* list of the job's nodes; "": the job has none yet */
} kl_slurm_job;

bool kl_slurm_job_read(const char *line, kl_slurm_job *job);
double kl_slurm_time_s(const char *text); /* Read a time such as "2-03:04:05" or "4:05" as seconds. Below 0:
                                             the text is not a time. */

typedef struct kl_slurm_node { /* a node, from a line of sinfo -N -h -o '%N|%T|%c|%O|%P|%f' */
    char name[KL_KEEPER_NAME_BYTES];
    uint32_t cores;
    double load;
    bool idle, used, leaving,
        gone; /* leaving: the node is being drained; gone: the node is down or cannot be used */
    char partition[KL_KEEPER_NAME_BYTES];
    bool is_default; /* true: the partition is the default, for jobs that name none */
    char features[KL_KEEPER_TEXT_BYTES];
} kl_slurm_node;

/* Read the next line that describes a node, and move *text past it. false: there is no such line. */
bool kl_slurm_node_read(const char **text, kl_slurm_node *node);

typedef struct kl_slurm_script {
    const char *folder, *keep; /* folder: working folder of the program; keep: folder of the keeper */
    const char *step;          /* command line that starts the ranks, quoted for a shell */
    char *const *variables;    /* variables for the program's environment as "NAME=VALUE", ended by NULL */
    uint64_t attempt;
} kl_slurm_script;

void kl_slurm_script_put(const kl_slurm_script *script, kl_buffer *text);
void kl_put_quoted(kl_buffer *text, const char *word); /* Quote a word for a shell. */

#endif
