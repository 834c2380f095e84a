/* Door of room hosts: measure the hosts of a list, through ssh or srun, and keep their latest readings. */
#ifndef KL_HOSTS_H
#define KL_HOSTS_H

#include <sys/types.h>

#include "fitness/fitness.h"

/* Read a list of hosts from a file. NULL: take the hosts of the Slurm allocation, else this host alone.
 * *slurm (NULL: not asked) is set when the hosts are those of the allocation. KILTER_ERR_INPUT names the file
 * and the line; KILTER_ERR_MEMORY. */
kilter_status kl_hosts_list(const char *file, kl_host_list *list, bool *slurm, kilter_error *error);

typedef struct kl_hosts_options {
    const char *ssh; /* command of the shell to which a host and a script are added; NULL: ssh, which never
                        asks for a password, or srun for hosts of an allocation, and none for this host */
    const char
        *program;      /* the command `kilter` on the hosts; NULL: this program's file, else kilter in PATH */
    bool slurm;        /* the hosts are those of the allocation */
    bool no_network;   /* links are not measured */
    double patience_s; /* a host that does not answer within this time is unreachable; 0: 10 */
} kl_hosts_options;

/* Hosts under measurement. One thread uses them at a time. */
typedef struct kl_hosts kl_hosts;

/* Take the hosts of a list; texts of the options are copied. Nothing is started. KILTER_ERR_MEMORY,
 * KILTER_ERR_SYSTEM */
kilter_status kl_hosts_open(const kl_host_list *list, const kl_hosts_options *options, kl_hosts **hosts,
                            kilter_error *error);
/* End all processes that were started. NULL does nothing. */
void kl_hosts_close(kl_hosts *hosts);

/* Change the patience, from the next measurement on. */
void kl_hosts_patience(kl_hosts *hosts, double patience_s);
/* Begin to measure all hosts, unless a measurement is under way. */
void kl_hosts_start(kl_hosts *hosts);
/* Carry on, and wait for at most this time. Return true when no measurement is under way. Hosts that do not
 * answer end as unreachable. So a measurement takes at most twice the patience and 3 s, and the patience once
 * more for each further 64 hosts that do not answer. */
bool kl_hosts_poll(kl_hosts *hosts, double timeout_s);
/* A descriptor that becomes readable when kl_hosts_poll() has something to do, for poll(). Time limits need
 * a call every second as well. */
int kl_hosts_fd(const kl_hosts *hosts);

size_t kl_hosts_count(const kl_hosts *hosts);
const kl_listed_host *kl_hosts_at(const kl_hosts *hosts, size_t i);
size_t kl_hosts_find(const kl_hosts *hosts, const char *name); /* SIZE_MAX: no such host */
const kl_reading *kl_hosts_reading(const kl_hosts *hosts, size_t i);
const char *kl_hosts_trouble(const kl_hosts *hosts, size_t i); /* what went wrong at the host; "": nothing */
const kl_link *kl_hosts_links(const kl_hosts *hosts, size_t *count); /* of the latest measurement */

/* Let a measured share of a core replace the probe of a host where the program runs, from the next fitness
 * on; NAN: the probe counts again. The host is not probed as long as a share is set. */
void kl_hosts_measured(kl_hosts *hosts, size_t i, double share);
/* Say how many threads the own program has on a host: they are taken out of the probe's load. */
void kl_hosts_own(kl_hosts *hosts, size_t i, double threads);

/* Find the fitness of all hosts from the latest readings; fits[kl_hosts_count()]. stale_s 0: any age.
 * KILTER_ERR_MEMORY */
kilter_status kl_hosts_fitness(const kl_hosts *hosts, double weight, double stale_s, kl_fit *fits,
                               kilter_error *error);

/* --- start.c: run something on a host --- */

/* Return a script that runs this program's file there, else kilter in the PATH, with these arguments for a
 * shell. malloc'd; NULL: memory ran out */
char *kl_hosts_script(const char *arguments);
/* Run a script on a host. This host needs no ssh. *fd is a socket for its input and what it prints, and does
 * not block. KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY */
typedef struct kl_hosts_way {
    const char *ssh; /* as in kl_hosts_options */
    char *script;
    bool slurm;
} kl_hosts_way;
kilter_status kl_hosts_begin(const kl_hosts_way *how, char *host, pid_t *pid, int *fd, kilter_error *error);

/* --- agent.c: the other end, on the host itself --- */

/* Measure this host once, for probe_s seconds; 0: without the probe. */
void kl_hosts_look(double probe_s, kl_reading *reading);
/* Measure this host and print the reading; then carry out requests of the descriptor `in` until its end.
 * KILTER_ERR_SYSTEM */
kilter_status kl_hosts_serve(int in, int out, kilter_error *error);

#endif
