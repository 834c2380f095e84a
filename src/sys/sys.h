/* Public header of the folder sys: the only clock, and everything else that Kilter asks of the operating
 * system: cores, processes, folders. */
#ifndef KL_SYS_H
#define KL_SYS_H

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include "base/base.h"
#include "sys/new_file.h"

/* Return the seconds since a fixed moment, which never decrease. Tests use their own clock. */
typedef struct kl_clock {
    double (*now_s)(void *self);
    double (*busy_s)(void *self); /* CPU time of the calling thread; NULL: use now_s */
    void *self;
    bool simulated; /* true: the clock of a simulated machine, where time passes only in kl_spend_s() */
    /* simulated seconds that the master needs for each message that it receives and each chunk that it
     * sends without a request */
    double answer_s;
    /* let `seconds` of simulated time pass; required if answer_s is set */
    void (*spend)(void *self, double seconds);
} kl_clock;

kl_clock kl_clock_system(void);
double kl_monotonic_s(void); /* the system's clock, for deadlines of system calls */
static inline double kl_now_s(const kl_clock *clock) {
    return clock->now_s(clock->self);
}
/* Return the calling thread's CPU time, which stops while the thread waits, or while another thread has
 * its core. */
static inline double kl_busy_s(const kl_clock *clock) {
    return (clock->busy_s ? clock->busy_s : clock->now_s)(clock->self);
}
/* Return the CPU clock of the calling thread. Other threads may read it while the thread lives. */
clockid_t kl_thread_cpu(void);
/* Return the bytes of memory that the process uses, including mapped files, but without memory shared with
 * other processes; 0: not known. */
uint64_t kl_process_memory(void);
double kl_cpu_s(clockid_t thread);
/* Find the CPU clocks of threads of this process whose names begin with `prefix`; return their number, at
 * most `most`. */
uint32_t kl_threads_named(const char *prefix, clockid_t *clocks, uint32_t most);
double kl_unix_time_s(void);   /* time of day [s since 1970], for the record's header only */
void kl_nap_s(double seconds); /* sleep without using a core */
/* Work for `seconds` of a machine of speed 1. A real machine counts as speed 1, and uses that much CPU
 * time. A simulated machine only lets the time pass. */
void kl_spend_s(double seconds);
struct timespec kl_timespec(double seconds);
/* Return the time on CLOCK_MONOTONIC after this many seconds, but at most a day from now. */
struct timespec kl_time_after(double seconds);

/* Measure the scheduler's quantum: the seconds for which a thread keeps a shared core. This takes at most
 * 0.04 s. 0: it could not be measured. */
double kl_quantum_s(void);

/* The files in which the system reports how much of its core a thread gets. All zero: closed. */
typedef struct kl_core_meter {
    int thread, cores; /* open descriptors; −1: the system does not report these times */
} kl_core_meter;
void kl_core_meter_open(kl_core_meter *meter); /* open the meter; call this in the measured thread */
/* Do the same for a meter that is not used with kl_core_idle_s(). */
void kl_core_meter_open_thread(kl_core_meter *meter);
void kl_core_meter_close(kl_core_meter *meter);
/* Read the seconds for which the thread ran, those for which it was ready while others ran, and the number
 * of times it was scheduled. Return false if these are not known. */
bool kl_core_read(const kl_core_meter *meter, double *run_s, double *delay_s, double *slices);
/* Return the total idle seconds of the cores that the thread may use, each rounded to 0.01 s; below 0: not
 * known. */
double kl_core_idle_s(const kl_core_meter *meter);

/* Doorbells between up to `places` processes of one host that share a token. Each process has its own
 * place, a number below `places`. A process sleeps until the sender of a message rings. Only one thread of
 * each process may use its bells. */
typedef struct kl_bells kl_bells;
uint64_t kl_token(void); /* a random number that other users cannot guess */
kl_bells *kl_bells_open(uint64_t token, uint32_t places,
                        uint32_t mine); /* Open the bells. NULL: this system has no doorbells. */
/* Remove the name of the bells when all processes have opened them, so that no other process can open
 * them. NULL: do nothing. */
void kl_bells_settle(kl_bells *bells);
void kl_bells_close(kl_bells *bells); /* NULL does nothing */
/* Return the number of processes that have opened these bells; NULL: 0. */
uint32_t kl_bells_there(const kl_bells *bells);
/* Return whether more processes than cores share this process's set of cores. Only processes with exactly
 * the same set count, including this one. NULL: false. */
bool kl_bells_crowded(const kl_bells *bells);
/* Publish for how many seconds this process ran. The second function returns the sum over all processes that
 * may use exactly the same cores, and the number of these cores. */
void kl_bells_tell_used(kl_bells *bells, double seconds);
double kl_bells_used(const kl_bells *bells, uint32_t *cores);
bool kl_bells_is_there(const kl_bells *bells, uint32_t place); /* NULL: false */
/* Wake the process at `place` if it sleeps. Call this after sending it a message. NULL, or a place on
 * another host: do nothing. */
void kl_bells_ring(kl_bells *bells, uint32_t place);
/* The steps of a wait: mark this process as asleep, check once more for a message, sleep at most
 * `seconds`, remove the mark. */
void kl_bells_lie_down(kl_bells *bells);
void kl_bells_sleep(kl_bells *bells, double seconds);
void kl_bells_get_up(kl_bells *bells);

uint32_t kl_core_count(void);      /* number of cores this process may use, at least 1 */
uint32_t kl_host_core_count(void); /* number of cores that processes of this host may use, at least 1 */
enum { KL_BINDING_BYTES = 32 };
/* Bind the process to `count` of the cores that it may use. The cores are divided into groups of `count`,
 * and the process gets group `i`; after the last group, counting begins again. `binding` names its cores;
 * "": there are no more than `count` cores, or the system refuses. */
void kl_bind_cores(uint32_t i, uint32_t count, char binding[KL_BINDING_BYTES]);
/* Limit OpenMP, if this program uses it, to this many threads, unless OMP_NUM_THREADS is set. */
void kl_limit_openmp(uint32_t threads);
uint32_t kl_openmp_threads(void); /* value of OMP_NUM_THREADS; 0: not set, or OpenMP is not linked */

/* Return the bytes of memory that this process could still get: the least of the values for the host and
 * its control groups. Memory for pages of files counts as free. UINT64_MAX: not known. `root` is put
 * before /proc and /sys, and is normally "". */
uint64_t kl_memory_left(const char *root);
/* Return the same value. *total: total memory in bytes of the host or of the control group with the least
 * value. */
uint64_t kl_memory_left_of(const char *root, uint64_t *total);

/* Read memory, swap, load, pressure and limits of this host, without measuring anything. */
struct kl_reading;
void kl_read_host(const char *root, struct kl_reading *reading);
/* Let this many threads compute for `seconds`. Return the part of that time in which they ran; NAN: memory
 * ran out. *steps_per_s: steps of a fixed computation per second of CPU time. */
double kl_spin(uint32_t threads, double seconds, double *steps_per_s);

enum { KL_HOST_BYTES = 256 };
void kl_host_name(char name[KL_HOST_BYTES]);

/* Join words into a line that a shell can read. The caller frees it. NULL: memory ran out. */
char *kl_words_text(size_t count, char *const *words);
/* Return the arguments of this process from number `first` on, as kl_words_text() writes them. Number 0 is
 * the program's name. The caller frees the text. NULL: not known. */
char *kl_own_words(int first);
/* Restart the program with its own arguments, in the present folder and environment. Only the three
 * standard streams stay open. input: the new standard input; size 0: keep the present one. The function
 * returns only on failure. */
kilter_status kl_begin_anew(const void *input, size_t size, kilter_error *error);
/* Write a text that differs between builds of this program: a hash of the linker's build id, or of the
 * file. "": not known. */
enum { KL_BUILD_BYTES = 17 };
void kl_own_build(char build[KL_BUILD_BYTES]);

/* Open /dev/null for those standard streams without which the process was started, so that no later file
 * or socket gets their numbers. Reading and writing these streams fails as before. */
void kl_keep_standard_streams(void);
/* Raise the limit so that the process can open `files` more files, as far as the system allows. */
kilter_status kl_allow_files(uint64_t files, kilter_error *error);
/* Check that the process can start this many more threads, because some libraries abort if they cannot
 * start one. KILTER_ERR_SYSTEM: it cannot. */
kilter_status kl_allow_threads(uint32_t threads, kilter_error *error);

/* Start a thread that receives no signal except for faults of its own code, because signals belong to the
 * program's own threads. Return 0, or an error number. */
int kl_thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg);
/* Initialize the condition for waits that end at kl_time_after(). */
void kl_cond_init(pthread_cond_t *cond);

/* Fork a child that runs `body` and exits with its return value. Its standard input is /dev/null, and sockets
 * marked close-on-exec are closed. Call it before the process has threads. */
kilter_status kl_process_start(int (*body)(void *arg), void *arg, pid_t *pid, kilter_error *error);
/* Return whether the child has ended, and describe its end as kl_describe_end() does. After it has
 * returned true, do not call it for this pid again. */
bool kl_process_ended(pid_t pid, char *how, size_t size);
/* Wait for the child for `patience_s`, then kill it. */
void kl_process_finish(pid_t pid, double patience_s);
bool kl_process_is_held(pid_t pid); /* Return whether a debugger has stopped the process, or the system is
                                       writing its core dump. */
/* Describe the status of waitpid() in words: "was killed by signal 9 (Killed)", "exited with code 3". */
void kl_describe_end(int status, char *how, size_t size);
/* Find such a description in `text` and get its exit code or signal; UINT64_MAX: none of this kind. */
void kl_read_end(const char *text, uint64_t *code, uint64_t *signal);

/* The supervisor of child processes. It was forked before its opener had threads, so it can start children
 * at any time. Its children are like those of kl_process_start(). The supervisor and its children are
 * killed when the thread that opened it ends. */
typedef struct kl_supervisor kl_supervisor;
typedef struct kl_child_news {
    uint32_t number;
    pid_t pid;    /* process number; 0: the child could not be started */
    bool ended;   /* true: it has ended; false: it has started, as process `pid` */
    char how[80]; /* text on how the child ended */
} kl_child_news;

/* Fork the supervisor. Child `number` runs body(arg, number) and exits with its result; arg has its
 * present value. If the opener ends without closing the supervisor, on_death(arg) runs in a separate
 * process after all children have ended. NULL: nothing runs. */
kilter_status kl_supervisor_open(int (*body)(void *arg, uint32_t number), void (*on_death)(void *arg),
                                 void *arg, kl_supervisor **supervisor, kilter_error *error);
/* Request a child. A later message reports the result. KILTER_ERR_SYSTEM: the supervisor is gone. */
kilter_status kl_supervisor_start(kl_supervisor *supervisor, uint32_t number, kilter_error *error);
/* Kill child `number` if it lives. A later message reports its end. */
void kl_supervisor_end(kl_supervisor *supervisor, uint32_t number);
/* Get the next message within timeout_s. false: there is none. */
bool kl_supervisor_next(kl_supervisor *supervisor, double timeout_s, kl_child_news *news);
uint32_t kl_supervisor_under_way(
    const kl_supervisor *supervisor); /* number of requested children whose end was not reported yet */
/* Wait for the children for patience_s, kill the remaining ones, and free the supervisor. NULL: do
 * nothing. */
void kl_supervisor_close(kl_supervisor *supervisor, double patience_s);

/* --- guard.c: a launcher that outlives the process that asked for it --- */

typedef struct kl_guard_job {
    char *const *words;     /* the launcher's command line, ended by NULL */
    char *const *variables; /* "NAME=VALUE" for its environment, ended by NULL; NULL: none */
    const char
        *lock; /* file that the guard locks while it lives, and to which it writes its process number */
    const char
        *ended; /* file to which the guard writes how the launcher ended, in the form of kl_put_end() */
    uint64_t attempt;
} kl_guard_job;

/* Start a guard, which starts the launcher in a new session, without input. When the launcher has ended,
 * the guard kills the processes that it left on this host, and then writes the file `ended`. SIGTERM to
 * the guard ends the launcher. KILTER_ERR_SYSTEM: another guard has the lock, or no process could be
 * started. */
kilter_status kl_guard_start(const kl_guard_job *job, pid_t *pid, kilter_error *error);
void kl_guard_end(const char *lock_path); /* Send SIGTERM to the guard that holds the lock, if it lives. */

/* Create a file and lock it until the returned descriptor is closed, or the process ends. The lock also
 * works between hosts that share the file system. −1: errno; EAGAIN: another process has the lock. */
int kl_lock_take(const char *path);
bool kl_lock_is_held(const char *path);

/* --- capture.c: the output of a command --- */

typedef struct kl_capture { /* all zero: not in use */
    pid_t pid;
    int out;
    double until_s;
    kl_buffer text; /* output of the command, ended by NUL */
    int code;       /* exit code; −1: the command was killed, or was not done in time */
} kl_capture;

/* Start a command without input. Its errors go to this process's standard error. KILTER_ERR_SYSTEM */
kilter_status kl_capture_start(kl_capture *capture, char *const *words, double limit_s, kilter_error *error);
/* Return true when the command has ended or its time is over. */
bool kl_capture_over(kl_capture *capture);
/* Wait for the end of the command, and return its exit code. */
int kl_capture_await(kl_capture *capture);
void kl_capture_free(kl_capture *capture); /* kill the command if it runs */

/* Let SIGTERM only make the eventfd `fd` readable. Only one descriptor at a time can have the signal.
 * NULL: the program ignores the signal, another descriptor has it, or memory ran out; then nothing is
 * changed. */
typedef struct kl_sigterm kl_sigterm;
kl_sigterm *kl_sigterm_to(int fd);
/* Do the same at the first SIGINT or SIGTERM. A signal that the program ignores stays ignored. A second
 * signal ends the process if it comes more than a second later. NULL: as above, or the program handles one
 * of the two. */
kl_sigterm *kl_interrupts_to(int fd);
/* Let the next signal end the process at once. NULL: do nothing. */
void kl_sigterm_again(kl_sigterm *sigterm);
int kl_interrupted_by(void); /* number of the signal that arrived; 0: none */
/* Ignore SIGINT, because a terminal also sends it to the master. It still ends the processes that this
 * process starts. If the program handles SIGINT itself, do nothing. */
void kl_leave_interrupts(void);
void kl_sigterm_restore(kl_sigterm *sigterm); /* restore the program's handlers, unless it has set new ones */

/* Make a folder that only this user can enter. Return its path, which the caller frees. */
kilter_status kl_private_dir(char **path, kilter_error *error);
/* A folder for sockets, locked while this process or one of its children lives. Opening one also removes
 * unlocked folders of dead processes. All zero: no folder. */
typedef struct kl_socket_dir {
    char *path;
    int held; /* descriptor that holds the lock */
} kl_socket_dir;
kilter_status kl_socket_dir_open(kl_socket_dir *dir, kilter_error *error);
void kl_socket_dir_close(kl_socket_dir *dir); /* remove the folder after its sockets are removed */
/* --- signals: small files in a folder that processes of several hosts share; signal_files.c --- */

/* Make a folder in `folder` for the signals of one farm, after checking that files can be written there.
 * Return its path, which the caller frees. KILTER_ERR_SYSTEM. */
kilter_status kl_signal_folder_make(const char *folder, char **path, kilter_error *error);
void kl_signal_folder_remove(const char *path); /* Remove the folder and its files. NULL: do nothing. */
/* Check that this process can write files there. KILTER_ERR_SYSTEM: it cannot. */
kilter_status kl_signal_folder_check(const char *folder, kilter_error *error);
/* Write a file as a whole or not at all. false: errno says why it failed. */
bool kl_signal_file_put(const char *folder, const char *name, const void *text, size_t size);
typedef enum kl_signal_found { KL_SIGNAL_NONE, KL_SIGNAL_TAKEN, KL_SIGNAL_FAULT } kl_signal_found;
/* Take a file whose name begins with `prefix`. Only one of several processes gets it. `claim` is a name
 * for the process that takes it. *size: room in `text`; afterwards the number of bytes that were read.
 * FAULT: errno says what failed. */
kl_signal_found kl_signal_file_take(const char *folder, const char *prefix, const char *claim, char *text,
                                    size_t *size);
void kl_signal_file_drop(const char *folder, const char *name); /* remove the file if it is there */

/* Return the folder of run records: $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else
 * $HOME/.local/state/kilter. It is not created. The caller frees the text. */
kilter_status kl_record_dir(char **path, kilter_error *error);
/* Create `path` and its parent folders, for this user only. */
kilter_status kl_make_dirs(const char *path, kilter_error *error);
/* Return text formatted as by printf(), which the caller frees. NULL: memory ran out. */
char *kl_text(const char *format, ...) KILTER_PRINTF(1, 2);

#endif
