/* Door of room sys: the only clock, and what else is asked of the operating system: cores, processes,
 * folders. */
#ifndef KL_SYS_H
#define KL_SYS_H

#include <sys/types.h>
#include <time.h>

#include "base/base.h"
#include "sys/new_file.h"

/* Seconds since a fixed moment, never going back. Tests put a clock of their own in its place. */
typedef struct kl_clock {
    double (*now_s)(void *self);
    double (*busy_s)(void *self); /* CPU time of the calling thread; NULL: now_s tells it, too */
    void *self;
    bool simulated;  /* of a simulated machine: no time passes but what is declared by kl_spend_s() */
    double answer_s; /* what the master declares for each message it takes in or chunk it deals unasked */
    void (*spend)(void *self, double seconds); /* such declared time passes; NULL: kl_spend_s() */
} kl_clock;

kl_clock kl_clock_system(void);
double kl_monotonic_s(void); /* the system clock itself, for what waits in system calls */
static inline double kl_now_s(const kl_clock *clock) {
    return clock->now_s(clock->self);
}
/* Grows while the calling thread computes, not while it waits or is kept from its core. */
static inline double kl_busy_s(const kl_clock *clock) {
    return (clock->busy_s ? clock->busy_s : clock->now_s)(clock->self);
}
/* The same of a thread that asked for its clock, from any thread while that one lives. */
clockid_t kl_thread_cpu(void);
/* Bytes of it in memory: its own, and of files; not what it has mapped to share with other processes. 0: not
 * known */
uint64_t kl_process_memory(void);
double kl_cpu_s(clockid_t thread);
/* The same clocks of threads of this process whose names begin so; how many there are, at most `most`. */
uint32_t kl_threads_named(const char *prefix, clockid_t *clocks, uint32_t most);
double kl_unix_time_s(void);   /* of day, for the record's header only */
void kl_nap_s(double seconds); /* wait, without using a core */
/* Work that takes so long on a machine of speed 1, and longer on a slower one. Nothing is computed; a machine
 * that is not simulated has speed 1, and its thread uses so much CPU time. */
void kl_spend_s(double seconds);
struct timespec kl_timespec(double seconds);
struct timespec kl_time_after(double seconds); /* on CLOCK_MONOTONIC, to wait until then */

/* How long the scheduler lets one have a core that another wants, too, measured in 0.04 s at most; 0: not
 * seen. */
double kl_quantum_s(void);

/* What the calling thread has had of its core. Zeroed is not open. */
typedef struct kl_core_meter {
    int thread, cores; /* descriptors; −1: the system does not tell */
} kl_core_meter;
void kl_core_meter_open(kl_core_meter *meter);        /* by the thread that is measured */
void kl_core_meter_open_thread(kl_core_meter *meter); /* likewise, without what kl_core_idle_s() needs */
void kl_core_meter_close(kl_core_meter *meter);
/* Seconds that it ran, and that it was ready to run while others had the core; how often it was let run.
 * false: not known */
bool kl_core_read(const kl_core_meter *meter, double *run_s, double *delay_s, double *slices);
/* Seconds that nobody used the cores it may use, added up, to 0.01 s for each core; below 0: not known. */
double kl_core_idle_s(const kl_core_meter *meter);

/* Doorbells between up to `places` processes of one host that know a common token, each with a place of its
 * own: a process that waits for another's message sleeps until that one rings. For one thread of each. */
typedef struct kl_bells kl_bells;
uint64_t kl_token(void);                                                 /* not to be guessed */
kl_bells *kl_bells_open(uint64_t token, uint32_t places, uint32_t mine); /* NULL: not to be had here */
void kl_bells_settle(kl_bells *bells); /* everybody has opened them: nobody else can. NULL does nothing */
void kl_bells_close(kl_bells *bells);  /* NULL does nothing */
uint32_t kl_bells_there(const kl_bells *bells); /* processes on this host; NULL: 0 */
/* More processes may use exactly the cores that this one may than these are. NULL: no */
bool kl_bells_crowded(const kl_bells *bells);
bool kl_bells_is_there(const kl_bells *bells, uint32_t place); /* NULL: no */
/* After a message was sent: wakes its receiver, if it sleeps. NULL, or a place on another host: nothing. */
void kl_bells_ring(kl_bells *bells, uint32_t place);
/* To sleep: lie down, look once more for what is waited for, sleep at most so long; then get up. */
void kl_bells_lie_down(kl_bells *bells);
void kl_bells_sleep(kl_bells *bells, double seconds);
void kl_bells_get_up(kl_bells *bells);

uint32_t kl_core_count(void); /* cores this process may use, at least 1 */
enum { KL_BINDING_BYTES = 32 };
/* Cut the cores it may use into pieces of `count`, bind the calling process to the `i`-th (behind the last
 * core the first follows) and say so in `binding`; "": there are no more cores than that, or the system
 * refuses. */
void kl_bind_cores(uint32_t i, uint32_t count, char binding[KL_BINDING_BYTES]);
/* If this program uses OpenMP, it takes so many threads, unless OMP_NUM_THREADS says how many. */
void kl_limit_openmp(uint32_t threads);
uint32_t kl_openmp_threads(void); /* OMP_NUM_THREADS; 0: it says nothing, or nobody would hear it */

/* Bytes of memory that this process could have now: the least of what the host, and each control group above
 * the process, has left or could drop of files. UINT64_MAX: not known. Below `root`, "", are /proc and /sys.
 */
uint64_t kl_memory_left(const char *root);

enum { KL_HOST_BYTES = 256 };
void kl_host_name(char name[KL_HOST_BYTES]);

/* Words as a shell takes them. The caller frees it. NULL: no memory */
char *kl_words_text(size_t count, char *const *words);
/* Those this process was started with, from the first-th on; 0 is its name. malloc'd; NULL: not known */
char *kl_own_words(int first);
/* The process runs its program from the beginning, with the words it was started with, in the folder and
 * environment of now, and with its three standard streams only. input: what stands at its standard input
 * then; size 0: what stands there now. Returns only on failure. */
kilter_status kl_begin_anew(const void *input, size_t size, kilter_error *error);
/* What tells a program from another build of it: a hash of the mark that its linker made, or of its file; "":
 * not known. */
enum { KL_BUILD_BYTES = 17 };
void kl_own_build(char build[KL_BUILD_BYTES]);

/* Put something in the place of standard streams the process was started without, so that no file or socket
 * opened from now on is taken for one. What is read or written there fails, as before. */
void kl_keep_standard_streams(void);
/* Let the process open `files` more than are open now, as far as the system allows that. */
kilter_status kl_allow_files(uint64_t files, kilter_error *error);
/* Can the process have so many threads more? Libraries end it where they cannot start one. KILTER_ERR_SYSTEM
 */
kilter_status kl_allow_threads(uint32_t threads, kilter_error *error);

/* Fork a child that runs `body` and exits with what it returns (stdin from /dev/null; sockets marked
 * close-on-exec are closed). Call it before the process has threads. */
kilter_status kl_process_start(int (*body)(void *arg), void *arg, pid_t *pid, kilter_error *error);
/* Has the child ended? Fills `how` as kl_describe_end() does when it has; ask each pid at most once after
 * that. */
bool kl_process_ended(pid_t pid, char *how, size_t size);
/* Wait for the child for `patience_s`, then end it. */
void kl_process_finish(pid_t pid, double patience_s);
bool kl_process_is_held(pid_t pid); /* by a debugger, or by the system, which writes its core */
/* How a child ended, from what waitpid() says: "was killed by signal 9 (Killed)", "exited with code 3". */
void kl_describe_end(int status, char *how, size_t size);
/* The numbers in such words, wherever they stand in `text`; UINT64_MAX: none. */
void kl_read_end(const char *text, uint64_t *code, uint64_t *signal);

/* Starts children while the process that opened it has threads: itself a child, forked before there were any.
 * They are as kl_process_start()'s. It and they are killed when the thread that opened it ends. */
typedef struct kl_nursery kl_nursery;
typedef struct kl_child_news {
    uint32_t number;
    pid_t pid;    /* 0: it could not be started */
    bool ended;   /* else it was started */
    char how[80]; /* of one that ended */
} kl_child_news;

/* Child `number` runs body(arg, number) and exits with what it returns; arg as it is now. If the opener ends
 * and has not closed it, on_death(arg) (NULL: nothing) is called in a process of its own, after all children.
 */
kilter_status kl_nursery_open(int (*body)(void *arg, uint32_t number), void (*on_death)(void *arg), void *arg,
                              kl_nursery **nursery, kilter_error *error);
/* Asks for a child; the news tell what comes of it. KILTER_ERR_SYSTEM: the nursery is gone. */
kilter_status kl_nursery_start(kl_nursery *nursery, uint32_t number, kilter_error *error);
/* Kill child `number`, if it lives; the news tell that it ended. */
void kl_nursery_end(kl_nursery *nursery, uint32_t number);
/* The next news, waiting up to timeout_s. false: none. */
bool kl_nursery_next(kl_nursery *nursery, double timeout_s, kl_child_news *news);
uint32_t kl_nursery_under_way(const kl_nursery *nursery); /* asked for, and not known to have ended */
/* Wait for the children for patience_s, end those left, free. NULL does nothing. */
void kl_nursery_close(kl_nursery *nursery, double patience_s);

/* From now on SIGTERM makes the eventfd `fd` readable, and does nothing else. For one fd at a time. NULL: the
 * program ignores the signal, or another fd has it, or memory ran out; nothing is changed. */
typedef struct kl_sigterm kl_sigterm;
kl_sigterm *kl_sigterm_to(int fd);
/* The same of the first of SIGINT and SIGTERM that comes, as far as the program does not ignore them; one
 * that comes more than a second later ends the process. NULL also where the program handles one of them. */
kl_sigterm *kl_interrupts_to(int fd);
void kl_sigterm_again(kl_sigterm *sigterm); /* the first one ends the process now; NULL does nothing */
int kl_interrupted_by(void);                /* the number of that signal; 0: none has come */
/* SIGINT is the master's business: it comes to all processes that a terminal started together. Processes that
 * this one starts end by it as ever. Does nothing where the program handles it. */
void kl_leave_interrupts(void);
void kl_sigterm_restore(kl_sigterm *sigterm); /* what the program had set, if it set nothing since */

/* A new folder only this user can enter; malloc'd. */
kilter_status kl_private_dir(char **path, kilter_error *error);
/* The same, for sockets, held as long as this process and its children live: those nobody holds any more are
 * swept when the next one is opened. Zeroed: none. */
typedef struct kl_socket_dir {
    char *path;
    int held; /* a descriptor */
} kl_socket_dir;
kilter_status kl_socket_dir_open(kl_socket_dir *dir, kilter_error *error);
void kl_socket_dir_close(kl_socket_dir *dir); /* once the sockets in it are taken away */
/* The folder of run records: $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else $HOME/.local/state/kilter;
 * malloc'd, not created. */
kilter_status kl_record_dir(char **path, kilter_error *error);
/* Create `path` and the folders above it, for this user only. */
kilter_status kl_make_dirs(const char *path, kilter_error *error);
/* malloc'd text in printf's manner; NULL: no memory. */
char *kl_text(const char *format, ...) KILTER_PRINTF(1, 2);

#endif
