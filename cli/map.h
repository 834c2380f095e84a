/* kilter map: run commands as the tasks of a farm. The master makes the command lines and prints the
 * outputs; a worker runs one command at a time. */
#ifndef KL_CLI_MAP_H
#define KL_CLI_MAP_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "kilter/kilter.h"
#include "listening.h"
#include "map/map.h"

struct kl_map_request;

/* --- map_needs.c: what each command needs of its host --- */

enum { KL_MAP_RESOURCES = 8, KL_MAP_SLOTS_MOST = 1000 }; /* SLOTS_MOST: most slots of a host */

typedef struct kl_map_resource {
    char name[32];
    uint32_t there, used; /* there: units on this host; used: units that a command uses */
    bool given;           /* true: the user gave the number of units on this host */
} kl_map_resource;

typedef struct kl_map_needs { /* what a command needs; all zero: only one core */
    uint32_t cores;
    uint64_t memory;      /* bytes of memory of a command; 0: not known */
    uint64_t output_most; /* most bytes of an output of a command; 0: as much as the disk allows */
    kl_map_resource resource[KL_MAP_RESOURCES];
    uint32_t resources;
} kl_map_needs;

/* Read a resource such as "gpu=2". If `use`, the number is what each command uses; otherwise it is what the
 * host has. false: the text is malformed. */
bool kl_map_needs_read(const char *text, bool use, kl_map_needs *needs);
/* Set *slots to the number of commands that this host can run at once. The parameter jobs is the text of the
 * option --jobs, whose number is already in *slots; NULL: the option was not given. KILTER_ERR_USAGE: not
 * even one command fits. */
kilter_status kl_map_needs_fit(kl_map_needs *needs, const char *jobs, uint32_t *slots, kilter_error *error);
/* Append the environment variables that tell the commands of a slot which units of resources to use, as
 * "NAME=VALUE" with a NUL each. The first slot is 0. */
void kl_map_needs_variables(const kl_map_needs *needs, uint32_t slot, kl_buffer *variables);

/* --- map_guard.c: the table of running commands, which all processes of a run on this host share --- */

enum { KL_MAP_STARTING = -1 };

typedef struct kl_map_slot { /* a row of the table, for one command at a time */
    atomic_int worker;       /* process id of the worker that uses the slot; 0: none */
    atomic_int command;      /* process group of the running command; 0: no command runs; KL_MAP_STARTING: a
                              * command is starting */
} kl_map_slot;

typedef struct kl_map_guard {
    uint32_t slots;
    atomic_bool stopping; /* true: no new command may begin */
    atomic_bool ending;   /* true: running commands are being ended */
    bool silent;          /* true: workers send no results of commands that were ended */
    char folder[256];     /* folder for large outputs; "": no folder */
    int alive; /* writing end of a pipe; when no process has it open any more, the guard process ends all
                * commands */
    pid_t pid; /* process id of the guard process, which ends commands whose workers have died */
    kl_map_needs needs; /* what each command needs */
    uint64_t disk_left; /* bytes that outputs must leave on the disk of `folder` */
    kl_map_halt halt;   /* condition of --halt, which the workers check, too; when it is met, they start no
                           further command. All zero: only the master checks the condition */
    uint64_t total;     /* number of commands, for `halt` */
    atomic_ulong failed,
        succeeded; /* numbers of commands that failed and that succeeded, as the workers count them */
    kl_map_slot slot[];
} kl_map_guard;

/* Make the table of running commands, and start the guard process. If `files`, also make a folder for
 * outputs. Call this before the process has threads. When this process and its workers have died, the
 * guard process ends their commands and removes the folder. */
kilter_status kl_map_guard_open(uint32_t slots, bool files, const kl_map_needs *needs, kl_map_guard **guard,
                                kilter_error *error);
void kl_map_guard_close(kl_map_guard *guard); /* free the table; NULL does nothing */
/* Take a free slot for this worker process, and end a command that the slot's former owner left running.
 * Return the slot's number, or `slots` if no slot is free. */
uint32_t kl_map_guard_claim(kl_map_guard *guard);
/* Count a command that has ended. No new command begins if `halt` ends the run after this command. */
void kl_map_guard_count(kl_map_guard *guard, bool succeeded);
/* End all running commands, with SIGTERM and later SIGKILL. No new command begins. */
void kl_map_guard_end_all(kl_map_guard *guard);

/* --- map_spawn.c: running one command --- */

typedef struct kl_map_spawner { /* values that are the same for all commands of a worker */
    const char *shell, *folder; /* shell: path of the shell; folder: for large outputs; "": no folder */
    int null;                   /* descriptor of /dev/null */
    char **environment;  /* environment of a command as NAME=VALUE; the last entries are `number`, `place` and
                          * NULL */
    kl_buffer variables; /* variables such as the number of the GPU that the command may use */
    char number[40], place[40], dash_c[3];
    kl_map_guard *guard;
    kl_map_slot *slot;
    kl_buffer words, line, out, err;
    char **argv;
    uint64_t argv_room;
    char *program, *path; /* program: the name that was looked up last; path: file of this program; NULL: a
                           * shell must run it */
} kl_map_spawner;

kilter_status kl_map_spawner_open(kl_map_spawner *s, kl_map_guard *guard, kl_map_slot *slot,
                                  kilter_error *error);
void kl_map_spawner_close(kl_map_spawner *s);
/* Run a command and fill in its result. Outputs in memory are valid until the next call. limit_s: time
 * limit in seconds; HUGE_VAL: no limit. */
void kl_map_run_command(kl_map_spawner *s, const kl_map_template *t, const kl_map_fill *fill, double limit_s,
                        kl_map_result *result);

/* --- map_work.c: the worker's side of the farm --- */

typedef struct kl_map_setup {        /* what workers get before their first command */
    double timeout_s, timeout_times; /* timeout_s: time limit of a command in seconds; timeout_times: time
                                      * limit as a multiple of the median time of the commands; 0: no limit */
    uint64_t total;
    bool quoted;
} kl_map_setup;

void kl_map_put_setup(kl_buffer *out, const kl_map_setup *setup, size_t count, const char *const *words);
/* Functions that the farm calls in each worker. kilter_farm_options.user is the kl_map_guard. */
int kl_map_work(const kilter_task *task, kilter_result *result, void *state);
int kl_map_start(const kilter_worker *worker, void **state);
int kl_map_take_setup(kilter_bytes shared, void *state);
void kl_map_stop(void *state);

/* --- map_print.c: outputs --- */

typedef struct kl_map_printer {
    bool keep, tag; /* keep: print outputs in the order of the commands; tag: begin each line of output
                     * with the command's values */
    uint64_t next;  /* with `keep`, number of the command whose output is printed next; the first is 1 */
    kilter_bytes
        *waiting; /* [waiting_room] with `keep`, results that wait until all earlier commands are printed */
    uint64_t waiting_room;
    const char *results;          /* folder in which outputs are stored instead of printed; NULL: print
                                   * them */
    const kl_map_source *sources; /* where the values of the commands come from */
    size_t source_count;
    kilter_error error; /* first error of writing; after an error nothing more is printed */
    bool closed;        /* true: the reader of the standard output is gone */
} kl_map_printer;

/* Make the folder of --results, and check that folders can be made in it. KILTER_ERR_USAGE: they cannot. */
kilter_status kl_map_make_results(const char *folder, kilter_error *error);
/* Print the outputs of a command, and remove the files that hold them. If `keep`, wait until all earlier
 * commands are printed. */
void kl_map_print(kl_map_printer *p, const kl_map_result *result);
/* Print the results that wait, although some earlier commands have no result. */
void kl_map_print_rest(kl_map_printer *p);
void kl_map_printer_free(kl_map_printer *p);
/* Remove the files with the outputs of a command. */
void kl_map_drop_files(const kl_map_result *result);

/* --- map_after.c: commands that wait for each other --- */

typedef struct kl_map_order {
    kl_map_waits waits;
    uint64_t given;        /* number of ready commands that were started or passed over */
    uint64_t chain, looks; /* chain: number of commands in the longest chain that is left, as last computed;
                            * looks: number of calls of kl_map_order_chain() */
    uint64_t *skipped;     /* commands that are skipped because they wait for the command that failed last */
} kl_map_order;

/* Read the file of --after, a list of commands, and use the commands as values. Errors: KILTER_ERR_INPUT,
 * KILTER_ERR_MEMORY */
kilter_status kl_map_read_after(struct kl_map_request *request, kilter_error *error);
kilter_status kl_map_order_open(const kl_map_list *list, kl_map_order **order, kilter_error *error);
void kl_map_order_close(kl_map_order *order); /* free the order; NULL does nothing */
/* Get the next command that may begin. false: no command may begin now. */
bool kl_map_order_next(kl_map_order *order, uint64_t *i);
/* Note that command `i` has failed. Return how many commands are skipped because of it; `skipped` lists
 * them. */
uint64_t kl_map_order_failed(kl_map_order *order, uint64_t i);
uint64_t
kl_map_order_chain(kl_map_order *order); /* return the length of the longest chain of commands that is left */
uint64_t kl_map_order_waiting(const kl_map_order *order); /* return how many commands never became ready */

/* --- map_hosts.c: a process that starts workers on other hosts --- */

/* The line that a host prints when Kilter runs on it. All lines that it prints earlier are messages for
 * the user. */
#define KL_MAP_READY "kilter map is ready"
/* the line that a host prints about every second to show that it is alive */
#define KL_MAP_ALIVE "."

typedef struct kl_map_hosts {
    kl_listening reach;
    pid_t pid;       /* id of the process that starts workers on other hosts; 0: no such process */
    int alive, ends; /* alive: closing it makes the process end; ends: becomes readable when the process
                      * has ended */
    atomic_bool closing, ended; /* ended: the process ended although nobody closed `alive` */
    bool watched;
    pthread_t watcher;
    kilter_farm *farm; /* the farm is cancelled if the process ends first */
} kl_map_hosts;

/* Read the list of hosts and start the process that reaches them. Call this before this process has
 * threads. Errors: KILTER_ERR_INPUT, KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY */
kilter_status kl_map_hosts_open(const struct kl_map_request *request, kl_map_hosts *hosts,
                                kilter_error *error);
/* Watch the process that reaches the hosts. If no host can be used any more, cancel the farm's runs. */
kilter_status kl_map_hosts_watch(kl_map_hosts *hosts, kilter_farm *farm, kilter_error *error);
/* Return why the process that reaches the hosts ended by itself; NULL: it did not. */
const char *kl_map_hosts_trouble(kl_map_hosts *hosts);
void kl_map_hosts_close(kl_map_hosts *hosts);

/* --- map_serve.c: running commands on another host --- */

/* Run commands for the master at the endpoint of --serve. The key comes from the standard input. Return
 * the exit code when the farm or the input has ended. */
int kl_map_serve(const struct kl_map_request *request);

/* --- map_run.c: the master, which runs all commands --- */

typedef struct kl_map_request { /* the options; the table of options has the offsets of these members */
    const char *jobs;           /* number of slots, as the user wrote it */
    uint32_t slots;
    bool keep, tag, dry_run, quoted, null, resume_anyway, quiet;
    const char *file, *columns, *results, *joblog, *resume, *after, *hosts, *ssh, *listen, *serve;
    bool shared_fs;
    uint32_t tries; /* how often a command may be started; 0: once */
    kl_map_setup setup;
    kl_map_needs needs;
    kl_map_halt halt;
    char **words; /* words of the command line that runs for each value */
    size_t word_count;
    kl_map_source *sources;
    size_t source_count;
    kl_map_list list; /* if `after` is not NULL: the commands in the file that `after` names */
} kl_map_request;

/* Run all commands. Return the exit code. */
int kl_map_run(const kl_map_request *request);

/* --- map_values.c: the values on the command line, in files and on the standard input --- */

/* Split the words after the options into the command and the sources of its values. Errors:
 * KILTER_ERR_INPUT, KILTER_ERR_USAGE, KILTER_ERR_MEMORY */
kilter_status kl_map_read_values(kl_map_request *request, int count, char **words, kilter_error *error);
void kl_map_free_values(kl_map_request *request);
/* Read a whole file, or the standard input for the name "-". Errors: KILTER_ERR_INPUT, KILTER_ERR_MEMORY */
kilter_status kl_map_read_bytes(const char *file, kl_buffer *bytes, kilter_error *error);

#endif
