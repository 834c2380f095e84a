/* kilter map: commands as the tasks of a farm. The master fills in command lines and prints what comes back;
 * a worker runs one command at a time. */
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

enum { KL_MAP_RESOURCES = 8 };

typedef struct kl_map_resource {
    char name[32];
    uint32_t there, used; /* units on this host; units that a command uses */
    bool given;           /* the user gave `there` */
} kl_map_resource;

typedef struct kl_map_needs { /* zeroed: nothing but a core */
    uint32_t cores;
    uint64_t memory;      /* bytes; 0: not known */
    uint64_t output_most; /* most bytes of an output; 0: what the disk allows */
    kl_map_resource resource[KL_MAP_RESOURCES];
    uint32_t resources;
} kl_map_needs;

/* Read "gpu=2", as a number on the host or for each command. false: it is malformed. */
bool kl_map_needs_read(const char *text, bool use, kl_map_needs *needs);
/* Find how many commands fit on this host at once. jobs: the number that the user wants, in *slots; NULL:
 * none. KILTER_ERR_USAGE: not even one fits. */
kilter_status kl_map_needs_fit(kl_map_needs *needs, const char *jobs, uint32_t *slots, kilter_error *error);
/* Append variables for a slot, from 0 on, as "NAME=VALUE" with a NUL each. */
void kl_map_needs_variables(const kl_map_needs *needs, uint32_t slot, kl_buffer *variables);

/* --- map_guard.c: what runs, in memory that all processes of a run on this host share --- */

enum { KL_MAP_STARTING = -1 };

typedef struct kl_map_slot {
    atomic_int worker;  /* the worker that runs the slot's commands; 0: none */
    atomic_int command; /* process group of the command that runs; 0: none; KL_MAP_STARTING: it starts */
} kl_map_slot;

typedef struct kl_map_guard {
    uint32_t slots;
    atomic_bool stopping; /* true: no more command may begin */
    atomic_bool ending;   /* true: running commands are being ended */
    bool silent;          /* true: once running commands are being ended, workers send no more results */
    char folder[256];     /* folder for large outputs; "": there is none */
    int alive;            /* writing end of a pipe; the guard process acts when no process has it open */
    pid_t pid;            /* the guard process, which ends commands that their workers left */
    kl_map_needs needs;   /* of each command */
    uint64_t disk_left;   /* bytes that outputs must leave on the disk of `folder` */
    kl_map_slot slot[];
} kl_map_guard;

/* Make the table and, if `files`, a folder for outputs, and start the guard process. Call it before the
 * process has threads. If this process and its workers die, the guard process ends their commands and removes
 * the folder.
 */
kilter_status kl_map_guard_open(uint32_t slots, bool files, const kl_map_needs *needs, kl_map_guard **guard,
                                kilter_error *error);
void kl_map_guard_close(kl_map_guard *guard); /* NULL does nothing */
/* Take a slot for this process, and end what a former owner left running there. Return its number from 0 on,
 * or `slots` if there is none. */
uint32_t kl_map_guard_claim(kl_map_guard *guard);
/* End all commands: SIGTERM, then SIGKILL. No more command begins. */
void kl_map_guard_end_all(kl_map_guard *guard);

/* --- map_spawn.c: one command --- */

typedef struct kl_map_spawner { /* what is the same for all commands of a worker */
    const char *shell, *folder; /* folder for large outputs; "": none */
    int null;                   /* descriptor of /dev/null */
    char **environment;         /* the last entries are reserved for the two variables below, and NULL */
    kl_buffer variables;        /* variables that the command's needs add */
    char number[40], place[40], dash_c[3];
    kl_map_guard *guard;
    kl_map_slot *slot;
    kl_buffer words, line, out, err;
    char **argv;
    uint64_t argv_room;
    char *program, *path; /* the program that was looked up last, and its file; NULL: a shell must run it */
} kl_map_spawner;

kilter_status kl_map_spawner_open(kl_map_spawner *s, kl_map_guard *guard, kl_map_slot *slot,
                                  kilter_error *error);
void kl_map_spawner_close(kl_map_spawner *s);
/* Run a command and fill in the result; outputs in memory are valid until the next call. limit_s: time limit;
 * HUGE_VAL: none. */
void kl_map_run_command(kl_map_spawner *s, const kl_map_template *t, const kl_map_fill *fill, double limit_s,
                        kl_map_result *result);

/* --- map_work.c: the worker's side of the farm --- */

typedef struct kl_map_setup { /* the setup that workers get before their first command */
    double timeout_s,
        timeout_times; /* time limit of a command; times: as a multiple of the median so far; 0: no limit */
    uint64_t total;
    bool quoted;
} kl_map_setup;

void kl_map_put_setup(kl_buffer *out, const kl_map_setup *setup, size_t count, const char *const *words);
/* The functions of the farm. kilter_farm_options.user is the kl_map_guard. */
int kl_map_work(const kilter_task *task, kilter_result *result, void *state);
int kl_map_start(const kilter_worker *worker, void **state);
int kl_map_take_setup(kilter_bytes shared, void *state);
void kl_map_stop(void *state);

/* --- map_print.c: outputs --- */

typedef struct kl_map_printer {
    bool keep, tag; /* keep: print in the order of the commands; tag: begin each line with the values */
    uint64_t next;  /* with keep: number of the next command to print, from 1 on */
    kilter_bytes *waiting; /* [waiting_room] with keep: results that wait for their turn */
    uint64_t waiting_room;
    const char *results;          /* folder for outputs; NULL: none */
    const kl_map_source *sources; /* the values of the commands */
    size_t source_count;
    kilter_error error; /* the first error; then nothing more is printed */
    bool closed;        /* true: the reader of the standard output is gone */
} kl_map_printer;

/* Print the outputs of a command, now or when it is its turn, and remove their files. */
void kl_map_print(kl_map_printer *p, const kl_map_result *result);
/* Print the results that wait, although earlier commands have no result. */
void kl_map_print_rest(kl_map_printer *p);
void kl_map_printer_free(kl_map_printer *p);
/* Remove the files with the outputs of a command. */
void kl_map_drop_files(const kl_map_result *result);

/* --- map_after.c: commands that wait for each other --- */

typedef struct kl_map_order {
    kl_map_waits waits;
    uint64_t given;        /* number of ready commands that were started */
    uint64_t chain, looks; /* commands in the longest remaining chain, as last computed */
    uint64_t *skipped;     /* the commands that the last failed one skipped */
} kl_map_order;

/* Read the list of commands and make them the values. KILTER_ERR_INPUT, KILTER_ERR_MEMORY */
kilter_status kl_map_read_after(struct kl_map_request *request, kilter_error *error);
kilter_status kl_map_order_open(const kl_map_list *list, kl_map_order **order, kilter_error *error);
void kl_map_order_close(kl_map_order *order); /* NULL does nothing */
/* Get the next command that may begin. false: there is none now. */
bool kl_map_order_next(kl_map_order *order, uint64_t *i);
/* Command `i` has failed. Return the number of those in `skipped`. */
uint64_t kl_map_order_failed(kl_map_order *order, uint64_t i);
uint64_t
kl_map_order_chain(kl_map_order *order); /* return the length of the longest chain of commands that is left */
uint64_t kl_map_order_waiting(const kl_map_order *order); /* number of commands that were never ready */

/* --- map_hosts.c: a process that starts workers on other hosts --- */

/* The line that a host prints when Kilter runs there. Other lines are messages for the user. */
#define KL_MAP_READY "kilter map is ready"
/* the line that it prints about every second from then on */
#define KL_MAP_ALIVE "."

typedef struct kl_map_hosts {
    kl_listening reach;
    pid_t pid;       /* 0: there is none */
    int alive, ends; /* the process ends when `alive` is closed; `ends` becomes readable when the process has
                        ended */
    atomic_bool closing, ended; /* ended: the process has ended by itself */
    bool watched;
    pthread_t watcher;
    kilter_farm *farm; /* the farm is cancelled if the process ends first */
} kl_map_hosts;

/* Read the list of hosts and start the process, before this one has threads. KILTER_ERR_INPUT,
 * KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY */
kilter_status kl_map_hosts_open(const struct kl_map_request *request, kl_map_hosts *hosts,
                                kilter_error *error);
/* Cancel the farm's runs if no host can be used any more. */
kilter_status kl_map_hosts_watch(kl_map_hosts *hosts, kilter_farm *farm, kilter_error *error);
/* Return why the process has ended by itself; NULL: it has not. */
const char *kl_map_hosts_trouble(kl_map_hosts *hosts);
void kl_map_hosts_close(kl_map_hosts *hosts);

/* --- map_serve.c: the other end, on a host --- */

/* Run commands for the master at this endpoint, with the key from the standard input, until the farm or the
 * input ends. Return the exit code. */
int kl_map_serve(const struct kl_map_request *request);

/* --- map_run.c: the master --- */

typedef struct kl_map_request { /* offsets of its members are in the table of options */
    const char *jobs;           /* number of slots, as the user wrote it */
    uint32_t slots;
    bool keep, tag, dry_run, quoted, null, resume_anyway, quiet;
    const char *file, *delimiter, *columns, *results, *joblog, *resume, *after, *hosts, *ssh, *listen, *serve;
    bool shared_fs;
    uint32_t tries; /* number of times that a command may be started; 0: 1 */
    kl_map_setup setup;
    kl_map_needs needs;
    kl_map_halt halt;
    char **words; /* the command */
    size_t word_count;
    kl_map_source *sources;
    size_t source_count;
    kl_map_list list; /* with `after` */
} kl_map_request;

/* Return the exit code. */
int kl_map_run(const kl_map_request *request);

/* --- map_values.c: the values on the command line, in files and on the standard input --- */

/* Split the words after the options into the command and the sources of its values. KILTER_ERR_INPUT,
 * KILTER_ERR_USAGE, KILTER_ERR_MEMORY */
kilter_status kl_map_read_values(kl_map_request *request, int count, char **words, kilter_error *error);
void kl_map_free_values(kl_map_request *request);
/* Read a file, or the standard input (-). KILTER_ERR_INPUT, KILTER_ERR_MEMORY */
kilter_status kl_map_read_bytes(const char *file, kl_buffer *bytes, kilter_error *error);

#endif
