/* Public header of the folder platform: described hosts and links, and how long work takes on them. All
 * functions are pure. */
#ifndef KL_PLATFORM_H
#define KL_PLATFORM_H

#include "base/base.h"

enum { KL_PROFILE_STEPS = 16 };

/* A factor on a host's speed over time: 1 before the first step, then the factor of the last step reached.
 * With period_s > 0 it repeats every period_s. All zero: always 1. */
typedef struct kl_profile {
    uint32_t count;
    /* seconds at which the steps begin, rising; below period_s if there is a period */
    double at_s[KL_PROFILE_STEPS];
    double factor[KL_PROFILE_STEPS];
    double period_s;
} kl_profile;

typedef struct kl_host {
    double speed; /* seconds of work that the host does per second; work is stated for speed 1 */
    kl_profile profile;
    double joins_s;                /* time at which the host joins */
    double dies_from_s, dies_by_s; /* the host dies at a random time between these two; 0: it stays alive */
} kl_host;

double kl_host_speed(const kl_host *host, double at_s);
/* Return when work of `work_s` seconds at speed 1, begun at from_s, ends. INFINITY: never. */
double kl_host_end_s(const kl_host *host, double from_s, double work_s);
/* Return the seconds of work at speed 1 that the host can do in [from_s, to_s). */
double kl_host_work_s(const kl_host *host, double from_s, double to_s);

typedef struct kl_host_group { /* `count` hosts, all equal to `host` */
    uint32_t count;
    kl_host host;
} kl_host_group;

/* Hosts with one worker each, connected by one switch. A message passes the sender's link and the receiver's
 * link. */
typedef struct kl_cluster {
    kl_host_group *groups; /* workers are numbered through the groups, from 0 */
    uint32_t group_count, workers;
    bool master_apart; /* the master is on the host `master`; false: it shares the first worker's host */
    kl_host master;
    double latency_s;   /* seconds of latency of one link */
    double bytes_per_s; /* bytes per second of one link in one direction; INFINITY: bytes cost nothing */
    bool half_duplex;   /* true: both directions share the link's rate */
    /* number of hosts in a cluster: hosts 0 … near − 1 are the first cluster, and so on; 0: all hosts are
     * one cluster */
    uint32_t near;
    double far_s; /* latency in seconds of a message from one cluster to another, over its whole way */
} kl_cluster;

const kl_host *kl_cluster_master(const kl_cluster *cluster);
/* Return the least time in which all hosts together, always busy, do `work_s` begun at from_s. */
double kl_cluster_bound_s(const kl_cluster *cluster, double from_s, double work_s);

#endif
