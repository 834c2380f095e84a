/* Door of room sys: the only clock, and everything else that Kilter asks of the operating system: cores,
 * processes, folders. */
#ifndef KL_SYS_H
#define KL_SYS_H

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include "base/base.h"
#include "sys/new_file.h"

/* Seconds since a fixed moment, never decreasing. Tests use a clock of their own. */
typedef struct kl_clock {
    double (*now_s)(void *self);
    double (*busy_s)(void *self); /* CPU time of the calling thread; NULL: use now_s */
    void *self;
    bool simulated;  /* clock of a simulated machine: time passes only in kl_spend_s() */
    double answer_s; /* simulated seconds of the master for each message it receives and each chunk it deals
                        unasked */
    void (*spend)(void *self, double seconds); /* spends declared time; needed with answer_s */
} kl_clock;

kl_clock kl_clock_system(void);
double kl_monotonic_s(void); /* the system's clock, for waits in system calls */
static inline double kl_now_s(const kl_clock *clock) {
    return clock->now_s(clock->self);
}
/* CPU time of the calling thread: it stops while the thread waits or is kept from its core */
static inline double kl_busy_s(const kl_clock *clock) {
    return (clock->busy_s ? clock->busy_s : clock->now_s)(clock->self);
}
/* The CPU clock of the calling thread, for use by other threads while the thread lives. */
clockid_t kl_thread_cpu(void);
/* Memory of the process [bytes]: its own pages and those of files, without memory shared with other
 * processes; 0: not known */
uint64_t kl_process_memory(void);
double kl_cpu_s(clockid_t thread);
/* Find the CPU clocks of threads of this process whose names begin with `prefix`; return their number, at
 * most `most`. */
uint32_t kl_threads_named(const char *prefix, clockid_t *clocks, uint32_t most);
double kl_unix_time_s(void);   /* time of day, for the record's header only */
void kl_nap_s(double seconds); /* sleep without using a core */
/* Spend the time of work that takes `seconds` on a machine of speed 1. A simulated machine declares it and
 * computes nothing; a real machine has speed 1 and uses that much CPU time. */
void kl_spend_s(double seconds);
struct timespec kl_timespec(double seconds);
struct timespec kl_time_after(double seconds); /* the deadline of a wait, on CLOCK_MONOTONIC */

/* Measure for at most 0.04 s how long the scheduler gives a shared core to one thread; 0: not seen. */
double kl_quantum_s(void);

/* Reads how much of its core the calling thread got. A zeroed one is closed. */
typedef struct kl_core_meter {
    int thread, cores; /* open descriptors; −1: the system does not report it */
} kl_core_meter;
void kl_core_meter_open(kl_core_meter *meter);        /* open the meter; call this in the measured thread */
void kl_core_meter_open_thread(kl_core_meter *meter); /* as above, for a meter without kl_core_idle_s() */
void kl_core_meter_close(kl_core_meter *meter);
/* Read the seconds the thread ran, the seconds it was ready while others ran, and the number of times it was
 * scheduled. Return false when these are not known. */
bool kl_core_read(const kl_core_meter *meter, double *run_s, double *delay_s, double *slices);
/* Return the idle seconds of the cores the thread may use, added up, to 0.01 s for each core; below 0: not
 * known. */
double kl_core_idle_s(const kl_core_meter *meter);

/* Doorbells between up to `places` processes of one host that share a token. Each process has a place of its
 * own and sleeps until the sender of a message rings. One thread of each process may use them. */
typedef struct kl_bells kl_bells;
uint64_t kl_token(void); /* a random number that others cannot guess */
kl_bells *kl_bells_open(uint64_t token, uint32_t places,
                        uint32_t mine); /* NULL: no doorbells on this system */
void kl_bells_settle(kl_bells *bells);  /* remove the name when all have opened the bells, so that no one else
                                           can; NULL does nothing */
void kl_bells_close(kl_bells *bells);   /* NULL does nothing */
uint32_t kl_bells_there(const kl_bells *bells); /* number of processes on this host; NULL: 0 */
/* true when more processes may use exactly this process's cores than there are such cores; NULL: false */
bool kl_bells_crowded(const kl_bells *bells);
/* Tell the others for how long this process ran. Return that time for all that may use exactly its cores, and
 * the number of these cores. */
void kl_bells_tell_used(kl_bells *bells, double seconds);
double kl_bells_used(const kl_bells *bells, uint32_t *cores);
bool kl_bells_is_there(const kl_bells *bells, uint32_t place); /* NULL: false */
/* Wake the receiver of a message that was sent, if it sleeps. NULL or a place on another host does nothing.
 */
void kl_bells_ring(kl_bells *bells, uint32_t place);
/* To sleep: mark yourself asleep, look once more for a message, sleep for at most this time, remove the mark.
 */
void kl_bells_lie_down(kl_bells *bells);
void kl_bells_sleep(kl_bells *bells, double seconds);
void kl_bells_get_up(kl_bells *bells);

uint32_t kl_core_count(void);      /* number of cores this process may use, at least 1 */
uint32_t kl_host_core_count(void); /* number of cores that processes of this host may use, at least 1 */
enum { KL_BINDING_BYTES = 32 };
/* Cut the cores that the process may use into pieces of `count` and bind the process to piece `i` (counting
 * wraps around). `binding` says which cores these are; "": there are no more than `count` cores, or the
 * system refuses. */
void kl_bind_cores(uint32_t i, uint32_t count, char binding[KL_BINDING_BYTES]);
/* Let OpenMP, if this program uses it, take this many threads, unless OMP_NUM_THREADS is set. */
void kl_limit_openmp(uint32_t threads);
uint32_t kl_openmp_threads(void); /* value of OMP_NUM_THREADS; 0: not set, or OpenMP is not linked */

/* Return the bytes of memory that this process could still get: the least of what the host and each of its
 * control groups have free or could drop of files. UINT64_MAX: not known. /proc and /sys are looked for below
 * `root`, normally "". */
uint64_t kl_memory_left(const char *root);

enum { KL_HOST_BYTES = 256 };
void kl_host_name(char name[KL_HOST_BYTES]);

/* Join words into a line that a shell can read. The caller frees it. NULL: no memory */
char *kl_words_text(size_t count, char *const *words);
/* Return the arguments of this process from number `first` on; 0 is its name. malloc'd; NULL: not known */
char *kl_own_words(int first);
/* Restart the program with the arguments it was started with, in the present folder and environment, with its
 * three standard streams only. input: the new standard input; size 0: keep the present one. It returns only
 * on failure. */
kilter_status kl_begin_anew(const void *input, size_t size, kilter_error *error);
/* Write a text that differs between builds of this program: a hash of the linker's build id, or of the file;
 * "": not known. */
enum { KL_BUILD_BYTES = 17 };
void kl_own_build(char build[KL_BUILD_BYTES]);

/* Open /dev/null for standard streams that the process was started without, so that no later file or socket
 * gets their numbers. Reading and writing there fails as before. */
void kl_keep_standard_streams(void);
/* Raise the limit so that the process can open `files` more files, as far as the system allows. */
kilter_status kl_allow_files(uint64_t files, kilter_error *error);
/* Check that the process can start this many more threads: libraries abort where they cannot.
 * KILTER_ERR_SYSTEM */
kilter_status kl_allow_threads(uint32_t threads, kilter_error *error);

/* Start a thread that receives no signal but the faults of its own code: signals belong to the program's own
 * threads. Return 0, or an error number. */
int kl_thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg);
void kl_cond_init(pthread_cond_t *cond); /* for waits until kl_time_after() */

/* Fork a child that runs `body` and exits with its return value. Its standard input is /dev/null, and sockets
 * marked close-on-exec are closed. Call it before the process has threads. */
kilter_status kl_process_start(int (*body)(void *arg), void *arg, pid_t *pid, kilter_error *error);
/* Return true when the child has ended, and fill `how` as kl_describe_end() does. Do not ask for a pid again
 * after that. */
bool kl_process_ended(pid_t pid, char *how, size_t size);
/* Wait for the child for `patience_s`, then kill it. */
void kl_process_finish(pid_t pid, double patience_s);
bool kl_process_is_held(
    pid_t pid); /* true while a debugger holds the process or the system writes its core */
/* Describe the status of waitpid() in words: "was killed by signal 9 (Killed)", "exited with code 3". */
void kl_describe_end(int status, char *how, size_t size);
/* Return the number of such a description anywhere in `text`; UINT64_MAX: none. */
void kl_read_end(const char *text, uint64_t *code, uint64_t *signal);

/* The supervisor of child processes. It can start children while its opener has threads, because it was
 * forked before there were any. Its children are like those of kl_process_start(). Supervisor and children
 * are killed when the thread that opened it ends. */
typedef struct kl_supervisor kl_supervisor;
typedef struct kl_child_news {
    uint32_t number;
    pid_t pid;    /* 0: the child could not be started */
    bool ended;   /* otherwise its process number */
    char how[80]; /* how the child ended */
} kl_child_news;

/* Fork the supervisor. Child `number` runs body(arg, number) and exits with its result; arg has the value of
 * now. If the opener ends without closing the supervisor, on_death(arg) (NULL: nothing) runs in a process of
 * its own after all children have ended. */
kilter_status kl_supervisor_open(int (*body)(void *arg, uint32_t number), void (*on_death)(void *arg),
                                 void *arg, kl_supervisor **supervisor, kilter_error *error);
/* Request a child; the news report the result. KILTER_ERR_SYSTEM: the supervisor is gone. */
kilter_status kl_supervisor_start(kl_supervisor *supervisor, uint32_t number, kilter_error *error);
/* Kill child `number` if it lives; the news report its end. */
void kl_supervisor_end(kl_supervisor *supervisor, uint32_t number);
/* Return the next news after at most timeout_s. false: there is none. */
bool kl_supervisor_next(kl_supervisor *supervisor, double timeout_s, kl_child_news *news);
uint32_t kl_supervisor_under_way(
    const kl_supervisor *supervisor); /* number of children requested and not known to have ended */
/* Wait for the children for patience_s, kill the remaining ones, free the supervisor. NULL does nothing. */
void kl_supervisor_close(kl_supervisor *supervisor, double patience_s);

/* Let SIGTERM make the eventfd `fd` readable and do nothing else. One fd at a time. NULL, with nothing
 * changed: the program ignores the signal, another fd has it, or there is no memory. */
typedef struct kl_sigterm kl_sigterm;
kl_sigterm *kl_sigterm_to(int fd);
/* The same for the first SIGINT or SIGTERM, for those of the two that the program does not ignore. A second
 * one more than a second later ends the process. NULL also when the program handles one of them. */
kl_sigterm *kl_interrupts_to(int fd);
void kl_sigterm_again(kl_sigterm *sigterm); /* the next signal ends the process at once; NULL does nothing */
int kl_interrupted_by(void);                /* number of the signal that arrived; 0: none */
/* Leave SIGINT to the master: a terminal sends it to all processes it started together. It still ends the
 * processes that this process starts. Does nothing when the program handles SIGINT itself. */
void kl_leave_interrupts(void);
void kl_sigterm_restore(kl_sigterm *sigterm); /* restore the program's handlers, unless it has set new ones */

/* Make a folder that only this user can enter; malloc'd path. */
kilter_status kl_private_dir(char **path, kilter_error *error);
/* A folder for sockets, locked while this process or one of its children lives. Opening one also removes
 * unlocked folders of dead processes. A zeroed one is none. */
typedef struct kl_socket_dir {
    char *path;
    int held; /* descriptor that holds the lock */
} kl_socket_dir;
kilter_status kl_socket_dir_open(kl_socket_dir *dir, kilter_error *error);
void kl_socket_dir_close(kl_socket_dir *dir); /* remove the folder after its sockets are removed */
/* Return the folder of run records: $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else
 * $HOME/.local/state/kilter; malloc'd, not created. */
kilter_status kl_record_dir(char **path, kilter_error *error);
/* Create `path` and its parent folders, for this user only. */
kilter_status kl_make_dirs(const char *path, kilter_error *error);
/* Return printf-style text, malloc'd; NULL: no memory. */
char *kl_text(const char *format, ...) KILTER_PRINTF(1, 2);

#endif
