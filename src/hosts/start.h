/* Private to the folder hosts: start the agent of a host. */
#ifndef KL_HOSTS_START_H
#define KL_HOSTS_START_H

#include <sys/types.h>

#include "base/base.h"

/* How agents are started. These values follow from the options in kl_hosts_options. */
typedef struct kl_agent_way {
    char *ssh;    /* command of the user that runs a script on a host; NULL: the default */
    char *script; /* the script that the shell of a host runs */
    bool slurm;
} kl_agent_way;

/* Choose how agents are started. program NULL: the file of this program. A failure gives KILTER_ERR_MEMORY.
 */
kilter_status kl_agent_way_make(const char *ssh, const char *program, bool slurm, kl_agent_way *way,
                                kilter_error *error);
void kl_agent_way_free(kl_agent_way *way);
/* Start the agent of a host. *fd is a non-blocking socket for requests to the agent and for its answers. A
 * failure gives KILTER_ERR_SYSTEM. */
kilter_status kl_agent_start(const kl_agent_way *way, char *host, pid_t *pid, int *fd, kilter_error *error);

#endif
