/* kilter run --keep: keep an MPI program running. src/keeper decides what to do; this code carries out the
 * decisions. */
#ifndef KL_KEEP_H
#define KL_KEEP_H

#include "hosts/hosts.h"
#include "keeper/keeper.h"
#include "sys/sys.h"
#include "trace/trace.h"

typedef struct kl_keep_options {
    bool keep;
    uint32_t ranks, least, tries;
    const char *hosts, *slurm; /* hosts: file with the list of hosts; slurm: options for sbatch */
    const char *folder, *checkpoint, *pick, *launcher, *mpirun, *ssh;
    double hang_s, wait_s, look_s, margin_s, weight;
    uint64_t seed;
    bool fixed;
    char **program; /* the program and its arguments; NULL is the last entry */
} kl_keep_options;

/* Run the program under a keeper until it is done. Return the exit code. */
int kl_keep_run(const kl_keep_options *options);

/* --- keep_folder.c --- */

typedef struct kl_keep_folder {
    char *path; /* absolute */
    int lock;   /* descriptor of the lock's file; −1: another keeper has locked the folder */
} kl_keep_folder;

/* Create the keep folder if it is missing, and lock it. KILTER_ERR_USAGE: another keeper uses the folder, or
 * the folder holds other files; KILTER_ERR_SYSTEM; KILTER_ERR_MEMORY */
kilter_status kl_keep_folder_open(const char *path, kl_keep_folder *folder, kilter_error *error);
void kl_keep_folder_close(kl_keep_folder *folder);
char *kl_keep_file(const char *folder, const char *name); /* return the path of a file in the folder,
                                                           * malloc'd; NULL: memory ran out */
/* Read a small file of the folder into `text`. false: the file does not exist, or cannot be read. */
bool kl_keep_read(const char *folder, const char *name, kl_buffer *text);
kilter_status kl_keep_write(const char *folder, const char *name, const kl_buffer *text, kilter_error *error);
/* Return whether the disk of the folder has room for the program's next report. */
bool kl_keep_has_room(const char *folder, kilter_error *error);
/* Read from the folder's file `ended` how this attempt ended. false: the file does not tell the end of
 * this attempt. */
bool kl_keep_read_end(const char *folder, uint64_t attempt, kl_keeper_end *end);
/* Make NFS ask its server for new files in the folder. Otherwise NFS remembers for some seconds that a
 * file was missing. */
void kl_keep_refresh(const char *folder);
bool kl_keep_is_folder(const char *path); /* return whether this is the keep folder of a run */

/* --- keep_orders.c: orders, which are requests of users to the keeper, such as to move the run --- */

typedef struct kl_keep_order {
    char token[32]; /* name of the file into which the answer is written */
    kl_keeper_event_kind kind;
    char names[KL_KEEPER_TEXT_BYTES];
} kl_keep_order;

/* Read the order that waits in the folder. false: no order waits. */
bool kl_keep_order_take(const char *folder, kl_keep_order *order);
void kl_keep_order_answer(const char *folder, const kl_keep_order *order, const kl_keeper *keeper);
/* Give the keeper of a folder an order, and wait for the answer. Return the exit code. */
int kl_keep_order_give(const char *command, const char *folder, kl_keeper_event_kind kind, const char *names,
                       bool json);

/* --- keep_hosts.c --- */

typedef struct kl_keep_hosts kl_keep_hosts;
/* Read the list of hosts. KILTER_ERR_INPUT: the list has an error, whose file and line are named;
 * KILTER_ERR_USAGE: the picker is unknown. */
kilter_status kl_keep_hosts_open(const kl_keep_options *options, kl_keep_hosts **hosts, kilter_error *error);
void kl_keep_hosts_close(kl_keep_hosts *hosts);
bool kl_keep_hosts_of_slurm(
    const kl_keep_hosts *hosts); /* return whether the hosts are those of the present Slurm allocation */
void kl_keep_hosts_look(kl_keep_hosts *hosts, const kl_keeper *keeper, bool others, double limit_s);
/* Return true once, when all hosts have been measured; *views are the measurements, valid until the next
 * measurements begin. */
bool kl_keep_hosts_poll(kl_keep_hosts *hosts, const kl_keeper_view **views, size_t *count);
/* Sort hosts into the order in which the picker of --pick chooses them. The type of this function is
 * kl_keeper_order_fn. */
void kl_keep_hosts_order(void *hosts, const kl_keeper_host *table, size_t count, uint32_t *order);
/* Tell the pickers that an attempt begins on the keeper's hosts. At the next choice, the picker `round-robin`
 * starts after these hosts, and random pickers draw anew. */
void kl_keep_hosts_used(kl_keep_hosts *hosts, const kl_keeper *keeper);
bool kl_keep_hosts_picks(const kl_keep_hosts *hosts); /* Return whether a picker orders the hosts. If not,
                                                       * they are ordered by speed. */

/* --- keep_start.c --- */

typedef struct kl_keep_start { /* how to start attempts as processes of this host */
    const kl_keep_options *options;
    const char *folder, *checkpoint;
    kl_launcher launcher;
    const char *command; /* path of the launcher; NULL: its usual name */
    const char *mpi;     /* srun's --mpi; NULL: Slurm's default */
    pid_t guard; /* process id of the guard, a process that starts the launcher and reports its end; 0: this
                    keeper has started no guard that is alive */
    double looked_s; /* time when the guard's lock was last checked */
    double gone_s;   /* time when the guard was first found dead without a report of the attempt's end; 0: not
                      * found dead */
} kl_keep_start;

/* Find the launcher for the program's ranks. Errors: KILTER_ERR_USAGE, KILTER_ERR_INPUT */
kilter_status kl_keep_start_open(kl_keep_start *start, bool in_slurm, kilter_error *error);
kilter_status kl_keep_start_begin(kl_keep_start *start, const kl_keeper *keeper, kilter_error *error);
bool kl_keep_start_alive(
    const kl_keep_start *start); /* return whether an attempt of this folder runs on this host */
void kl_keep_start_kill(const kl_keep_start *start);
/* Return whether the attempt has ended. If it has, fill in *end. */
bool kl_keep_start_ended(kl_keep_start *start, uint64_t attempt, kl_keeper_end *end);
/* Write the hostfile, and return the words of an attempt's command line. NULL: *error says why it failed. */
char **kl_keep_start_words(const kl_keep_start *start, const kl_keeper *keeper, kilter_error *error);
/* Return the environment variables of an attempt as "NAME=VALUE", ended by NULL. NULL: memory ran out */
char **kl_keep_start_variables(const kl_keep_start *start, uint64_t attempt);

/* --- keep_state.c --- */

typedef struct kl_keep_state { /* the values in the file `state` of a keep folder */
    uint64_t version, hash, attempt;
    bool runs; /* true: the attempt had not ended when the state was written */
    char program[KL_KEEPER_TEXT_BYTES], host[KL_KEEPER_TEXT_BYTES];
    char engine[16]; /* how attempts are started: own, openmpi, mpich, srun or slurm */
    char job[KL_SLURM_JOB_BYTES], jobs[KL_SLURM_NAME_BYTES];
} kl_keep_state;

void kl_keep_state_put(const kl_keep_options *options, const char *engine, kl_buffer *text);
kl_keep_state kl_keep_state_read(const kl_buffer *text);
/* Check that this keeper may continue the run. Errors: KILTER_ERR_USAGE, KILTER_ERR_INPUT */
kilter_status kl_keep_state_check(const kl_keep_start *start, const kl_keep_state *state,
                                  kilter_error *error);

/* --- keep_slurm.c --- */

typedef struct kl_keep_slurm kl_keep_slurm;
kilter_status kl_keep_slurm_open(const kl_keep_start *start, kl_keep_slurm **slurm, kilter_error *error);
void kl_keep_slurm_close(kl_keep_slurm *slurm);
void kl_keep_slurm_nodes(const kl_keep_slurm *slurm, uint32_t *least, uint32_t *most);
kilter_status kl_keep_slurm_begin(kl_keep_slurm *slurm, const kl_keeper *keeper, kilter_error *error);
void kl_keep_slurm_kill(kl_keep_slurm *slurm);
bool kl_keep_slurm_ended(kl_keep_slurm *slurm, uint64_t attempt, kl_keeper_end *end);
void kl_keep_slurm_look(kl_keep_slurm *slurm);
bool kl_keep_slurm_poll(kl_keep_slurm *slurm, const kl_keeper_view **views, size_t *count);
void kl_keep_slurm_began(kl_keep_slurm *slurm); /* note that the program has reported, which proves that
                                                 * its job has begun */
double kl_keep_slurm_limit_s(
    kl_keep_slurm *slurm); /* return when the present job reaches its time limit; 0: not known yet */
bool kl_keep_slurm_pending(const kl_keep_slurm *slurm);
const char *kl_keep_slurm_job(const kl_keep_slurm *slurm);   /* return the number of the present job; "":
                                                              * no job */
const char *kl_keep_slurm_names(const kl_keep_slurm *slurm); /* return the text with which the names of all
                                                              * jobs of the run begin */
/* Follow the job of an attempt that an earlier keeper began. If `job` is "", its number is not known: look
 * in the queue for the job's name. */
void kl_keep_slurm_adopt(kl_keep_slurm *slurm, const char *names, const char *job, uint64_t attempt);

/* --- keep_record.c --- */

typedef struct kl_keep_record {
    kl_trace *trace; /* NULL: no record is written */
    double opened_s;
    uint64_t decisions, moves;
    double gained_s, came_s, cost_s;
    double last_came_s, last_spent_s; /* seconds that the latest planned move has saved and cost so far; a new
                                         outcome of the same move replaces these values */
    uint64_t last;
} kl_keep_record;

void kl_keep_record_open(kl_keep_record *record, const kl_keep_options *options, const char *folder,
                         const char *launcher);
void kl_keep_record_decision(kl_keep_record *record, const kl_keeper_action *action, double now_s);
void kl_keep_record_hosts(kl_keep_record *record, const kl_keeper *keeper, double now_s);
void kl_keep_record_came(kl_keep_record *record, const kl_keeper_action *action, double now_s);
void kl_keep_record_close(kl_keep_record *record, const kl_keeper *keeper, const char *status, double now_s);

#endif
