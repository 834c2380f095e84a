/* Public header of the folder platform: described hosts and links, and how long work takes on them. All
 * functions are pure. */
#ifndef KL_PLATFORM_H
#define KL_PLATFORM_H

#include "base/base.h"

enum { KL_PROFILE_STEPS = 16 };

/* A factor on a host's speed, which changes over time in steps. Before the first step the factor is 1. From
 * each step on it is the factor of this step. With period_s > 0 the profile repeats every period_s. All zero:
 * the factor is always 1. */
typedef struct kl_profile {
    uint32_t count;
    /* seconds at which the steps begin, in rising order; all are below period_s if the profile repeats */
    double at_s[KL_PROFILE_STEPS];
    double factor[KL_PROFILE_STEPS];
    double period_s;
} kl_profile;

typedef struct kl_host {
    /* seconds of work that the host does per second; the work of a task is stated for speed 1 */
    double speed;
    kl_profile profile;
    double joins_s; /* time at which the host joins */
    /* the host dies at a random time from dies_from_s to dies_by_s; both 0: it never dies */
    double dies_from_s, dies_by_s;
} kl_host;

double kl_host_speed(const kl_host *host, double at_s);
/* Return the time at which a host ends work that it begins at from_s, and that takes `work_s` seconds at
 * speed 1. INFINITY: the work never ends. */
double kl_host_end_s(const kl_host *host, double from_s, double work_s);
/* Return the seconds of work at speed 1 that the host can do in [from_s, to_s). */
double kl_host_work_s(const kl_host *host, double from_s, double to_s);

typedef struct kl_host_group { /* `count` hosts that all equal `host` */
    uint32_t count;
    kl_host host;
} kl_host_group;

/* Hosts with one worker each, connected by one switch. Each message passes the link of the sending host and
 * the link of the receiving host. */
typedef struct kl_cluster {
    kl_host_group *groups; /* groups of equal hosts; workers are numbered from 0 in the order of the groups */
    uint32_t group_count, workers;
    /* true: the master is on the host `master`, which has no worker; false: it shares the first worker's
     * host */
    bool master_apart;
    kl_host master;
    double latency_s;   /* seconds by which one link delays a message */
    double bytes_per_s; /* bytes per second of one link in one direction; INFINITY: bytes cost nothing */
    bool half_duplex;   /* true: both directions of a link share the link's rate */
    /* number of hosts in each cluster: hosts 0 … near − 1 are the first cluster, and so on; 0: all hosts are
     * one cluster */
    uint32_t near;
    double far_s; /* latency in seconds of a message from one cluster to another, over its whole way */
} kl_cluster;

const kl_host *kl_cluster_master(const kl_cluster *cluster);
/* Return the seconds that all hosts together need for `work_s` seconds of work from from_s on, if no host is
 * ever idle. */
double kl_cluster_bound_s(const kl_cluster *cluster, double from_s, double work_s);

#endif
