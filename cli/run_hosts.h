/* kilter run: start the workers of a farm on another host, through ssh. */
#ifndef KL_RUN_HOSTS_H
#define KL_RUN_HOSTS_H

#include <signal.h>
#include <sys/types.h>

#include "base/base.h"
#include "transport/transport.h"

typedef struct kl_run_host {
    char *name;
    uint32_t workers; /* number of workers on the host; 0: one for each processing unit */
    pid_t pid;        /* process id of ssh; 0: ssh was not started, or has ended */
    int input; /* writing end of ssh's standard input, which carries the key; open as long as the workers
                * may work */
    bool failed;
} kl_run_host;

typedef struct kl_run_how {
    char *const *program; /* the program and its arguments; NULL is the last entry */
    const char *join;     /* endpoint where workers join the master */
    const char *ssh;
    const kl_key *key;
    const sigset_t *signals; /* signal mask that started processes get */
} kl_run_how;

/* Return the number of words before "--" in `program`, or of all words if there is no "--". Kilter inserts
 * its options after these words. */
size_t kl_own_words_of(char *const *program);
/* Start a child process that runs `words` with the signal mask `signals`. input: descriptor of the child's
 * standard input; −1: the standard input of this process. */
pid_t kl_run_start(char *const *words, int input, const sigset_t *signals);
/* Start the workers of a host. They end when host->input is closed. Errors: KILTER_ERR_SYSTEM,
 * KILTER_ERR_MEMORY */
kilter_status kl_run_start_host(const kl_run_how *how, kl_run_host *host, kilter_error *error);

#endif
