/* Public header of the folder sys: Kilter's clock, and everything else that Kilter asks of the operating
 * system, such as cores, processes and folders. */
#ifndef KL_SYS_H
#define KL_SYS_H

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include "base/base.h"
#include "sys/new_file.h"

/* A clock: now_s() returns the seconds since a fixed moment, which never decrease. Tests use a clock of
 * their own. */
typedef struct kl_clock {
    double (*now_s)(void *self);
    double (*busy_s)(void *self); /* return the CPU time of the calling thread; NULL: use now_s */
    void *self;
    /* true: this is the clock of a simulated machine, where time passes only in kl_spend_s() */
    bool simulated;
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
/* Return the CPU time of the calling thread. It does not count time in which the thread waits or another
 * thread has its core. */
static inline double kl_busy_s(const kl_clock *clock) {
    return (clock->busy_s ? clock->busy_s : clock->now_s)(clock->self);
}
/* Return the CPU clock of the calling thread. Other threads may read this clock while the calling thread
 * lives. */
clockid_t kl_thread_cpu(void);
/* Return the bytes of memory that this process uses. Mapped files count; memory that is shared with other
 * processes does not. 0: not known. */
uint64_t kl_process_memory(void);
double kl_cpu_s(clockid_t thread);
/* Find the CPU clocks of threads of this process whose names begin with `prefix`. Return the number of
 * clocks found, at most `most`. */
uint32_t kl_threads_named(const char *prefix, clockid_t *clocks, uint32_t most);
/* CPU seconds of all threads of this process, and of its children that have ended */
double kl_process_cpu_s(void);
double kl_unix_time_s(void);   /* time of day [s since 1970], for the record's header only */
void kl_nap_s(double seconds); /* sleep without using a core */
/* Use the time that work of `seconds` takes on a machine of speed 1. A real machine has speed 1, and computes
 * for `seconds` of CPU time. A simulated machine only lets the simulated time pass. */
void kl_spend_s(double seconds);
struct timespec kl_timespec(double seconds);
/* Return the time on CLOCK_MONOTONIC after this many seconds, but at most a day from now. */
struct timespec kl_time_after(double seconds);

/* Measure the scheduler's quantum: the seconds for which a thread keeps a core that several threads share.
 * This takes at most 0.04 s. 0: the quantum could not be measured. */
double kl_quantum_s(void);

/* The files in which the system reports how much of its core a thread gets. All zero: closed. */
typedef struct kl_core_meter {
    /* open descriptors of the files for the thread and for the cores; −1: the system does not report these
     * times */
    int thread, cores;
} kl_core_meter;
/* open the meter; call this function in the thread that is to be measured */
void kl_core_meter_open(kl_core_meter *meter);
/* Open a meter with the times of the thread only. kl_core_idle_s() cannot be used with it. */
void kl_core_meter_open_thread(kl_core_meter *meter);
void kl_core_meter_close(kl_core_meter *meter);
/* Read three values of the thread: the seconds for which it ran; the seconds for which it was ready while
 * others ran; how many times it was scheduled. Return false if these are not known. */
bool kl_core_read(const kl_core_meter *meter, double *run_s, double *delay_s, double *slices);
/* Return the idle seconds of all cores that the thread may use now, in total. The time of each core is
 * rounded to 0.01 s. Below 0: not known. */
double kl_core_idle_s(const kl_core_meter *meter);
/* Return the same for the cores that the thread may use while it is not pinned. */
double kl_unpinned_idle_s(const kl_core_meter *meter);

/* Pin the calling thread to this core. Threads of kl_thread_start() and kl_thread_create(), and children of
 * fork(), are not pinned. Other new threads are, and so are processes of posix_spawn() and system(). Only one
 * thread of a process is pinned at a time. Return false if one is pinned already, or if the thread may not
 * use this core. */
bool kl_core_pin(int core);
/* Let the pinned thread use all its cores again. If no thread is pinned, do nothing. */
void kl_core_unpin(void);

/* Doorbells, by which processes of one host wake each other. Processes that know the same token share bells.
 * Each process has its own place, a number below `places`. A process sleeps until the sender of a message
 * rings. Only one thread of each process may use its bells. */
typedef struct kl_bells kl_bells;
uint64_t kl_token(void); /* a random number that other users cannot guess */
/* Open the bells with this token, for this process's place `mine`. NULL: this system has no doorbells. */
kl_bells *kl_bells_open(uint64_t token, uint32_t places, uint32_t mine);
/* Remove the name of the bells after all processes have opened them. Then no other process can open these
 * bells. NULL: do nothing. */
void kl_bells_settle(kl_bells *bells);
void kl_bells_close(kl_bells *bells); /* close this process's bells; NULL: do nothing */
/* Return the number of processes that have opened these bells. For NULL, return 0. */
uint32_t kl_bells_there(const kl_bells *bells);
/* Return true if more processes use exactly this process's set of cores than there are cores in the set.
 * Processes with a different set do not count. NULL: false. */
bool kl_bells_crowded(const kl_bells *bells);
/* Return how many cores of this process the processes with lower places leave, if each takes one core. NULL:
 * 1. */
uint32_t kl_bells_cores_left(const kl_bells *bells);
uint32_t kl_bells_cores(const kl_bells *bells); /* Return the number of this process's cores. NULL: 1. */
/* Return the CPU seconds of all processes that may use exactly the same cores, and set *processes to their
 * number. Processes that have ended are left out. */
double kl_bells_used(kl_bells *bells, uint32_t *processes);
/* Return how many cores are left if each process from place `first` on takes one of them. Only processes that
 * may use exactly the same cores as this one count. Below 0: there are too few cores. */
int kl_bells_spare_cores(const kl_bells *bells, uint32_t first);
/* Pin the calling thread to the core on which it runs. Return false if this failed, or if another process is
 * pinned to this core. */
bool kl_bells_pin(kl_bells *bells);
void kl_bells_unpin(kl_bells *bells); /* End kl_bells_pin(). If the thread is not pinned, do nothing. */
/* Return whether the process at `place` has opened the bells. For NULL, return false. */
bool kl_bells_is_there(const kl_bells *bells, uint32_t place);
/* Wake the process at `place` if it sleeps. Call this after a message was sent to it. bells NULL, or a place
 * on another host: do nothing. */
void kl_bells_ring(kl_bells *bells, uint32_t place);
/* The four steps of a wait: mark this process as asleep, check once more for a message, sleep at most
 * `seconds`, remove the mark. */
void kl_bells_lie_down(kl_bells *bells);
void kl_bells_sleep(kl_bells *bells, double seconds);
void kl_bells_get_up(kl_bells *bells);

uint32_t kl_core_count(void);      /* number of cores this process may use, at least 1 */
uint32_t kl_host_core_count(void); /* number of cores that processes of this host may use, at least 1 */
enum { KL_BINDING_BYTES = 32 };
/* Bind the process to `count` of the cores that it may use. The cores are divided into groups of `count`, and
 * the process gets group `i`; after the last group, counting begins again. Afterwards `binding` names the
 * cores. It is "" if the process was not bound: it has no more than `count` cores, or the system refused. */
void kl_bind_cores(uint32_t i, uint32_t count, char binding[KL_BINDING_BYTES]);
/* Limit OpenMP, if this program uses it, to this many threads, unless OMP_NUM_THREADS is set. */
void kl_limit_openmp(uint32_t threads);
/* return the value of OMP_NUM_THREADS; 0: it is not set, or OpenMP is not linked */
uint32_t kl_openmp_threads(void);

/* Return the bytes of memory that this process could still get: the least of the values for the host and its
 * control groups. Memory that only caches files counts as free. UINT64_MAX: not known. `root` is put before
 * /proc and /sys, and is normally "". */
uint64_t kl_memory_left(const char *root);
/* Return the same as kl_memory_left(). Also set *total to the total bytes of the host, or of the control
 * group with the least memory left. */
uint64_t kl_memory_left_of(const char *root, uint64_t *total);

/* The memory, swap, load, pressure and limits of this host, read without measuring. */
struct kl_reading;
void kl_read_host(const char *root, struct kl_reading *reading);
/* Let this many threads compute for `seconds`. Return the part of that time in which they ran; NAN: memory
 * ran out. *steps_per_s: steps of a fixed computation per second of CPU time. */
double kl_spin(uint32_t threads, double seconds, double *steps_per_s);

enum { KL_HOST_BYTES = 256 };
void kl_host_name(char name[KL_HOST_BYTES]);

/* Join words into one line that a shell reads as these words. The caller frees the line. NULL: memory ran
 * out. */
char *kl_words_text(size_t count, char *const *words);
/* Return the arguments of this process from number `first` on, as one line in the form of kl_words_text().
 * Number 0 is the program's name. The caller frees the line. NULL: not known. */
char *kl_own_words(int first);
/* Restart the program with its own arguments, in the present folder and environment. Only the three standard
 * streams stay open. `input` becomes the new standard input; size = 0: the present standard input stays. The
 * function returns only on failure. */
kilter_status kl_begin_anew(const void *input, size_t size, kilter_error *error);
/* Write a text that differs between builds of this program. The text is a hash of the linker's build id, or
 * of the program file if there is no build id. "": not known. */
enum { KL_BUILD_BYTES = 17 };
void kl_own_build(char build[KL_BUILD_BYTES]);

/* Open /dev/null for each standard stream that the process was started without. So no file or socket that is
 * opened later gets the number of such a stream. Reading from such a stream or writing to it still fails. */
void kl_keep_standard_streams(void);
/* Raise the limit of open files so that the process can open `files` more, as far as the system allows. */
kilter_status kl_allow_files(uint64_t files, kilter_error *error);
/* Check that the process can start this many more threads, because some libraries abort if they cannot
 * start one. KILTER_ERR_SYSTEM: it cannot. */
kilter_status kl_allow_threads(uint32_t threads, kilter_error *error);

/* Start a thread as pthread_create() does. The thread is not pinned, even if the calling thread is. */
int kl_thread_create(pthread_t *thread, void *(*body)(void *arg), void *arg);
/* Start such a thread. It receives no signal except for faults of its own code, because signals belong to the
 * program's own threads. Return 0, or an error number. */
int kl_thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg);
/* Initialize a condition variable whose waits end at a time from kl_time_after(). */
void kl_cond_init(pthread_cond_t *cond);

/* In a child process: let the system send the signal `number` to this process when the thread that forked it
 * ends. If the parent has ended already, end this process. Call this first in the child. parent: process
 * number of the parent, read before the fork. */
void kl_end_with_parent(pid_t parent, int number);
/* Fork a child that runs `body` and exits with its return value. The child's standard input is /dev/null.
 * Sockets marked close-on-exec are closed in the child. Call it before the process has threads. */
kilter_status kl_process_start(int (*body)(void *arg), void *arg, pid_t *pid, kilter_error *error);
/* Return whether the child has ended; if it has, describe its end as kl_describe_end() does. After a result
 * of true, do not call this again for the same pid. */
bool kl_process_ended(pid_t pid, char *how, size_t size);
/* Wait up to `patience_s` seconds for the child to end, then kill it. */
void kl_process_finish(pid_t pid, double patience_s);
bool kl_process_is_held(pid_t pid); /* Return whether a debugger has stopped the process, or the system is
                                       writing its core dump. */
/* Send a signal to all processes of a session. session: process number of the session's first process. number
 * = 0: send no signal. Return whether the session has processes besides the first one. */
bool kl_signal_session(pid_t session, int number);
/* Describe the status of waitpid() in words: "was killed by signal 9 (Killed)", "exited with code 3". */
void kl_describe_end(int status, char *how, size_t size);
/* Find a description that kl_describe_end() wrote in `text`, and get its exit code or its signal.
 * UINT64_MAX: the description has none. */
void kl_read_end(const char *text, uint64_t *code, uint64_t *signal);

/* The supervisor of child processes. It was forked before its opener had threads, so it can start children
 * at any time. Its children start in the same way as those of kl_process_start(). When the thread that opened
 * the supervisor ends, the system kills the supervisor and its children. */
typedef struct kl_supervisor kl_supervisor;
typedef struct kl_child_news {
    uint32_t number;
    pid_t pid;    /* process number of the child; 0: the child could not be started */
    bool ended;   /* true: the child has ended; false: it has started, as process `pid` */
    char how[80]; /* text that says how the child ended */
} kl_child_news;

/* Fork the supervisor. Child `number` runs body(arg, number), with the memory at `arg` as it was when the
 * supervisor was opened, and exits with the result. If the opener ends without closing the supervisor,
 * on_death(arg) runs in a separate process after all children have ended. If on_death is NULL, nothing
 * runs. */
kilter_status kl_supervisor_open(int (*body)(void *arg, uint32_t number), void (*on_death)(void *arg),
                                 void *arg, kl_supervisor **supervisor, kilter_error *error);
/* Ask the supervisor to start a child. A later message reports whether it started. KILTER_ERR_SYSTEM: the
 * supervisor has ended. */
kilter_status kl_supervisor_start(kl_supervisor *supervisor, uint32_t number, kilter_error *error);
/* Kill child `number` if it is alive. A later message reports its end. */
void kl_supervisor_end(kl_supervisor *supervisor, uint32_t number);
/* Get the supervisor's next message, and wait for it at most timeout_s. Return false if there is none. */
bool kl_supervisor_next(kl_supervisor *supervisor, double timeout_s, kl_child_news *news);
/* return the number of requested children whose end has not been reported yet */
uint32_t kl_supervisor_under_way(const kl_supervisor *supervisor);
/* Wait for the children up to patience_s, kill those that remain, and free the supervisor. NULL: do nothing.
 */
void kl_supervisor_close(kl_supervisor *supervisor, double patience_s);

/* --- guard.c: a launcher that outlives the process that asked for it --- */

typedef struct kl_guard_job {
    char *const *words; /* the launcher's command line, ended by NULL */
    /* array of texts "NAME=VALUE" for the launcher's environment, ended by NULL; NULL: there are none */
    char *const *variables;
    /* path of the file that the guard locks while it lives, and to which it writes its process number */
    const char *lock;
    /* path of the file to which the guard writes how the launcher ended, in the form of kl_put_end() */
    const char *ended;
    uint64_t attempt;
} kl_guard_job;

/* Start a guard, which starts the launcher in a new session, without input. When the launcher has ended, the
 * guard kills the processes that the launcher left on this host. Then it writes the file `ended`. SIGTERM to
 * the guard ends the launcher. KILTER_ERR_SYSTEM: another guard has the lock, or no process could be
 * started. */
kilter_status kl_guard_start(const kl_guard_job *job, pid_t *pid, kilter_error *error);
void kl_guard_end(const char *lock_path); /* Send SIGTERM to the guard that holds the lock, if it lives. */

/* Create a file and lock it until the returned descriptor is closed or the process ends. The lock also works
 * between hosts that share the file system. −1: it failed, and errno says why; EAGAIN means that another
 * process has the lock. */
int kl_lock_take(const char *path);
bool kl_lock_is_held(const char *path);

/* --- capture.c: the output of a command --- */

typedef struct kl_capture { /* A command whose output is collected. All zero: not in use. */
    pid_t pid;
    int out;
    double until_s;
    kl_buffer text; /* output of the command, ended by NUL */
    int code;       /* exit code of the command; −1: the command was killed, or its time ran out */
} kl_capture;

/* Start a command without input. Its errors appear on this process's standard error. Error:
 * KILTER_ERR_SYSTEM */
kilter_status kl_capture_start(kl_capture *capture, char *const *words, double limit_s, kilter_error *error);
/* Return whether the command has ended or its time is over. */
bool kl_capture_over(kl_capture *capture);
/* Wait for the end of the command, and return the command's exit code. */
int kl_capture_await(kl_capture *capture);
void kl_capture_free(kl_capture *capture); /* kill the command if it still runs, and free its output */

/* From now on, let SIGTERM only make the eventfd `fd` readable. Only one descriptor at a time can have the
 * signal. Return NULL and change nothing if the program ignores the signal, another descriptor has it, or
 * memory ran out. */
typedef struct kl_sigterm kl_sigterm;
kl_sigterm *kl_sigterm_to(int fd);
/* Let the first SIGINT or SIGTERM make the eventfd `fd` readable. A second signal ends the process if it
 * comes more than a second later. A signal that the program ignores stays ignored. NULL: kl_sigterm_to()
 * would fail, or the program handles one of the two signals. */
kl_sigterm *kl_interrupts_to(int fd);
/* Let the next signal end the process at once. NULL: do nothing. */
void kl_sigterm_again(kl_sigterm *sigterm);
int kl_interrupted_by(void); /* return the number of the signal that arrived; 0: none has arrived */
/* Ignore SIGINT in this process, because a terminal sends it to the master as well. SIGINT still ends the
 * processes that this process starts. If the program handles SIGINT itself, do nothing. */
void kl_leave_interrupts(void);
/* restore the program's signal handlers, unless the program has set new ones */
void kl_sigterm_restore(kl_sigterm *sigterm);

/* Make a folder that only this user can enter. Return its path, which the caller frees. */
kilter_status kl_private_dir(char **path, kilter_error *error);
/* A folder for sockets, locked while this process or one of its children lives. Opening such a folder also
 * removes unlocked folders of dead processes. All zero: no folder. */
typedef struct kl_socket_dir {
    char *path;
    int held; /* descriptor of the file by which the folder is locked */
} kl_socket_dir;
kilter_status kl_socket_dir_open(kl_socket_dir *dir, kilter_error *error);
void kl_socket_dir_close(kl_socket_dir *dir); /* remove the folder; its sockets must be removed before */
/* --- signals between processes of several hosts: small files in a folder that all of them share;
 * signal_files.c --- */

/* Make a subfolder of `folder` for the signals of one farm, after checking that files can be written there.
 * Return the path of the subfolder, which the caller frees. Error: KILTER_ERR_SYSTEM */
kilter_status kl_signal_folder_make(const char *folder, char **path, kilter_error *error);
/* Remove the folder of the signals and its files. NULL: do nothing. */
void kl_signal_folder_remove(const char *path);
/* Check that this process can write files in the folder of the signals. KILTER_ERR_SYSTEM: it cannot. */
kilter_status kl_signal_folder_check(const char *folder, kilter_error *error);
/* Write a file as a whole or not at all. false: errno says why it failed. */
bool kl_signal_file_put(const char *folder, const char *name, const void *text, size_t size);
typedef enum kl_signal_found { KL_SIGNAL_NONE, KL_SIGNAL_TAKEN, KL_SIGNAL_FAULT } kl_signal_found;
/* Take a signal's file whose name begins with `prefix`. Only one of several processes gets it. `claim` is a
 * name for the process that takes the file. *size: room in `text`; afterwards the number of bytes that were
 * read. Result FAULT: errno says what failed. */
kl_signal_found kl_signal_file_take(const char *folder, const char *prefix, const char *claim, char *text,
                                    size_t *size);
void kl_signal_file_drop(const char *folder, const char *name); /* remove the file if it exists */

/* Return the folder of run records: $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else
 * $HOME/.local/state/kilter. It is not created. The caller frees the text. */
kilter_status kl_record_dir(char **path, kilter_error *error);
/* Create the folder `path` and its parent folders, with access only for this user. */
kilter_status kl_make_dirs(const char *path, kilter_error *error);
/* Return text formatted as by printf(), which the caller frees. NULL: memory ran out. */
char *kl_text(const char *format, ...) KILTER_PRINTF(1, 2);

#endif
