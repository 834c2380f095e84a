/* Door of room platform: described hosts and links, and what they can do in a time. Pure. */
#ifndef KL_PLATFORM_H
#define KL_PLATFORM_H

#include "base/base.h"

enum { KL_PROFILE_STEPS = 16 };

/* How much of a host's speed is there at a time: all of it before the first step, then the factor of the last
 * step passed; with period_s > 0 the same again every period_s. Zeroed: all of it, always. */
typedef struct kl_profile {
    uint32_t count;
    double at_s[KL_PROFILE_STEPS]; /* rising; below period_s where there is one */
    double factor[KL_PROFILE_STEPS];
    double period_s;
} kl_profile;

typedef struct kl_host {
    double speed; /* seconds of work, as described for speed 1, per second */
    kl_profile profile;
} kl_host;

double kl_host_speed(const kl_host *host, double at_s);
/* When work of `work_s` seconds at speed 1, begun at from_s, ends. INFINITY: never. */
double kl_host_end_s(const kl_host *host, double from_s, double work_s);
/* Seconds at speed 1 that the host can do in [from_s, to_s). */
double kl_host_work_s(const kl_host *host, double from_s, double to_s);

typedef struct kl_host_group { /* `count` hosts, all like `host` */
    uint32_t count;
    kl_host host;
} kl_host_group;

/* Hosts with one worker each, behind one switch: a message passes the link of its sender's host and that of
 * its receiver's. */
typedef struct kl_cluster {
    kl_host_group *groups; /* workers are numbered through them, from 0 */
    uint32_t group_count, workers;
    bool master_apart; /* on the host `master`; else on the first worker's, which it shares */
    kl_host master;
    double latency_s;   /* of one link */
    double bytes_per_s; /* of one link and direction; INFINITY: bytes cost nothing */
    bool half_duplex;   /* both directions share a link */
} kl_cluster;

const kl_host *kl_cluster_master(const kl_cluster *cluster);
/* Least time in which all hosts together, busy all the time, do `work_s` begun at from_s. */
double kl_cluster_bound_s(const kl_cluster *cluster, double from_s, double work_s);

#endif
