/* Public header of the folder hosts: measure the hosts of a list, through ssh or srun, and keep their
 * latest readings. */
#ifndef KL_HOSTS_H
#define KL_HOSTS_H

#include <sys/types.h>

#include "fitness/fitness.h"

/* Read a list of hosts from a file. If `file` is NULL, take the hosts of the Slurm allocation, or only this
 * host if there is no allocation. *slurm, which may be NULL, is set if the hosts are those of the allocation.
 * KILTER_ERR_INPUT: the error names the file and the line; KILTER_ERR_MEMORY */
kilter_status kl_hosts_list(const char *file, kl_host_list *list, bool *slurm, kilter_error *error);

typedef struct kl_hosts_options {
    const char *
        ssh; /* shell command that runs a script on a host; the host and the script are appended to it. NULL:
                ssh without password prompts, srun for hosts of an allocation, and no command for this host */
    const char *program; /* the command that runs kilter on the hosts; NULL: the file of this program if the
                            host has it, else kilter in PATH */
    bool slurm;          /* true: the hosts are those of a Slurm allocation */
    bool no_network;     /* true: do not measure links between hosts */
    double patience_s;   /* seconds after which a host that has not answered is unreachable; 0: 10 s */
} kl_hosts_options;

/* Hosts that are measured. Only one thread may use them at a time. */
typedef struct kl_hosts kl_hosts;

/* Prepare to measure the hosts of a list, but start nothing yet. The texts of the options are copied. Errors:
 * KILTER_ERR_MEMORY, KILTER_ERR_SYSTEM */
kilter_status kl_hosts_open(const kl_host_list *list, const kl_hosts_options *options, kl_hosts **hosts,
                            kilter_error *error);
/* End all agents, and free the memory. NULL: do nothing. */
void kl_hosts_close(kl_hosts *hosts);

/* Change the seconds after which a host without an answer is unreachable. This holds from the next
 * measurement on. */
void kl_hosts_patience(kl_hosts *hosts, double patience_s);
/* Begin to measure all hosts. If a measurement is under way, do nothing. */
void kl_hosts_start(kl_hosts *hosts);
/* Continue the measurement, and wait for at most timeout_s. Return true if no measurement is under way. Hosts
 * that do not answer become unreachable. A measurement takes at most 2 × patience_s + 3 s. If more than 64
 * hosts do not answer, each further 64 of them add patience_s. */
bool kl_hosts_poll(kl_hosts *hosts, double timeout_s);
/* Return a descriptor for poll() that becomes readable when kl_hosts_poll() has something to do. Call
 * kl_hosts_poll() every second as well, because of its time limits. */
int kl_hosts_fd(const kl_hosts *hosts);

size_t kl_hosts_count(const kl_hosts *hosts);
const kl_listed_host *kl_hosts_at(const kl_hosts *hosts, size_t i);
size_t kl_hosts_find(const kl_hosts *hosts,
                     const char *name); /* Return the index of a host; SIZE_MAX: there is no such host. */
const kl_reading *kl_hosts_reading(const kl_hosts *hosts, size_t i);
const char *
kl_hosts_trouble(const kl_hosts *hosts,
                 size_t i); /* Return why the last measurement of the host failed; "": it did not fail. */
const kl_link *kl_hosts_links(const kl_hosts *hosts,
                              size_t *count); /* return the links that the latest measurement found */

/* Set the share of a core that the program gets on a host, as the program has measured it. From the next call
 * of kl_hosts_fitness() on, this share is used instead of a probe. NAN: probe the host again. */
void kl_hosts_measured(kl_hosts *hosts, size_t i, double share);
/* Set the number of threads that the user's program has on a host. The probe cannot distinguish them from
 * threads of other programs, so the fitness subtracts them. */
void kl_hosts_own(kl_hosts *hosts, size_t i, double threads);

/* Compute the fitness of all hosts from the latest readings, into fits[kl_hosts_count()]. stale_s: greatest
 * age in seconds of a reading that counts; 0: any age. A failure gives KILTER_ERR_MEMORY. */
kilter_status kl_hosts_fitness(const kl_hosts *hosts, double weight, double stale_s, kl_fit *fits,
                               kilter_error *error);

/* --- start.c: run a command on a host --- */

/* Return a shell script that runs kilter with these arguments on a host. If the host has the file of this
 * program, the script runs this file, else kilter in PATH. The caller frees the script. NULL: memory ran out.
 */
char *kl_hosts_script(const char *arguments);
/* Run a script on a host; this host itself needs no ssh. *fd is a non-blocking socket that is connected to
 * the script's standard input and output. Errors: KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY */
typedef struct kl_hosts_way {
    const char *ssh; /* this option has the same meaning as in kl_hosts_options */
    char *script;
    bool slurm;
} kl_hosts_way;
kilter_status kl_hosts_begin(const kl_hosts_way *how, char *host, pid_t *pid, int *fd, kilter_error *error);

/* --- agent.c: the agent, which is the measuring process on a host --- */

/* Measure this host once. probe_s: seconds for which a probe keeps all cores busy; 0: no probe. */
void kl_hosts_look(double probe_s, kl_reading *reading);
/* Measure this host and print the reading. Then carry out the requests that come from the descriptor `in`,
 * until no more can come. A failure gives KILTER_ERR_SYSTEM. */
kilter_status kl_hosts_serve(int in, int out, kilter_error *error);

#endif
