/* Platforms: read the hosts and links that a SPEC describes, and write them for SimGrid. */
#include "cluster/cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/scan.h"

enum { MOST_GROUPS = 4096 };
/* A host below LEAST_SPEED counts as frozen. A speed above MOST_SPEED must be a typing error. */
static const double LEAST_SPEED = 1e-9, MOST_SPEED = 1e9, MOST_TIME_S = 1e9;
static const double DEFAULT_LATENCY_S = 50e-6, DEFAULT_BYTES_PER_S = 125e6;

static void add_step(kl_profile *profile, double at_s, double factor) {
    profile->at_s[profile->count] = at_s;
    profile->factor[profile->count++] = factor;
}

static double factor_of(kl_scan *s) {
    return kl_scan_number(s, "a factor of the speed", LEAST_SPEED, MOST_SPEED);
}

/* Read osc(PERIOD,BUSY[,FACTOR]): another program uses the host in the last BUSY seconds of each period. */
static void read_osc(kl_scan *s, kl_profile *profile) {
    double period_s = kl_scan_time_s(s, "the period", 1e-6, MOST_TIME_S);
    kl_scan_need(s, ",", "the period");
    const char *at = s->at;
    double busy_s = kl_scan_time_s(s, "the busy time", 0, MOST_TIME_S);
    if (busy_s > period_s)
        kl_scan_fail(s, at, KILTER_ERR_RANGE, "the busy time is longer than the period");
    double factor = kl_scan_take(s, ",") ? factor_of(s) : 0.5;
    if (kl_scan_ok(s) && busy_s < period_s)
        add_step(profile, 0, 1);
    add_step(profile, period_s - busy_s, factor);
    profile->period_s = period_s;
}

/* Read share(PART,SLICE): another program always takes turns with Kilter's worker on the host. The shorter of
 * their two turns takes SLICE. The longer turn is chosen so that the worker has PART of the time. */
static void read_share(kl_scan *s, kl_profile *profile) {
    const char *at = s->at;
    double part = kl_scan_number(s, "the part of the host's time", 0, 1);
    if (!(part > 0 && part < 1))
        kl_scan_fail(s, at, KILTER_ERR_RANGE, "the part must be above 0 and below 1");
    kl_scan_need(s, ",", "the part");
    double slice_s = kl_scan_time_s(s, "the slice", 1e-6, MOST_TIME_S),
           smaller = part < 0.5 ? part : 1 - part;
    if (kl_scan_ok(s) && slice_s / smaller > MOST_TIME_S)
        kl_scan_fail(s, at, KILTER_ERR_RANGE,
                     "with this part and this slice, a period would be longer than %g s", MOST_TIME_S);
    if (!kl_scan_ok(s))
        return;
    profile->period_s = slice_s / smaller;
    add_step(profile, 0, 1);
    add_step(profile, part * profile->period_s, LEAST_SPEED);
}

/* Read drop(AT,FACTOR): the host's speed is multiplied by FACTOR from time AT on. */
static void read_drop(kl_scan *s, kl_profile *profile) {
    double at_s = kl_scan_time_s(s, "the time of the drop", 0, MOST_TIME_S);
    kl_scan_need(s, ",", "the time of the drop");
    add_step(profile, at_s, factor_of(s));
}

/* Read freeze(FROM,TO): the host does no work between the two times. */
static void read_freeze(kl_scan *s, kl_profile *profile) {
    double from_s = kl_scan_time_s(s, "the beginning", 0, MOST_TIME_S);
    kl_scan_need(s, ",", "the beginning");
    const char *at = s->at;
    double to_s = kl_scan_time_s(s, "the end", 0, MOST_TIME_S);
    if (!(to_s > from_s))
        kl_scan_fail(s, at, KILTER_ERR_RANGE, "a freeze must end after it begins");
    add_step(profile, from_s, LEAST_SPEED);
    add_step(profile, to_s, 1);
}

/* Read steps(AT:FACTOR,…[,every PERIOD]): from each time AT on, the host's speed is multiplied by the FACTOR
 * after it. */
static void read_steps(kl_scan *s, kl_profile *profile) {
    double last_s = -1;
    do {
        const char *at = s->at;
        if (kl_scan_take(s, "every ")) {
            at = s->at;
            profile->period_s = kl_scan_time_s(s, "the period", 1e-6, MOST_TIME_S);
            if (!(profile->period_s > last_s))
                kl_scan_fail(s, at, KILTER_ERR_RANGE, "the period must be longer than the last step's time");
            break;
        }
        if (profile->count == KL_PROFILE_STEPS) {
            kl_scan_fail(s, at, KILTER_ERR_RANGE, "at most %d steps", KL_PROFILE_STEPS);
            break;
        }
        double at_s = kl_scan_time_s(s, "the time of a step", 0, MOST_TIME_S);
        kl_scan_need(s, ":", "the time of a step");
        if (!(at_s > last_s))
            kl_scan_fail(s, at, KILTER_ERR_RANGE, "the times of steps must rise");
        add_step(profile, last_s = at_s, factor_of(s));
    } while (kl_scan_take(s, ","));
}

/* Read join(AT): the host joins at time AT. */
static void read_join(kl_scan *s, kl_host *host) {
    host->joins_s = kl_scan_time_s(s, "the time it joins", 0, MOST_TIME_S);
}

/* Read die(FROM,BY): each host dies at a random moment between the two times. */
static void read_die(kl_scan *s, kl_host *host) {
    host->dies_from_s = kl_scan_time_s(s, "the beginning", 1e-9, MOST_TIME_S);
    kl_scan_need(s, ",", "the beginning");
    const char *at = s->at;
    host->dies_by_s = kl_scan_time_s(s, "the end", 1e-9, MOST_TIME_S);
    if (host->dies_by_s < host->dies_from_s)
        kl_scan_fail(s, at, KILTER_ERR_RANGE, "the second time must not be before the first one");
}

static void read_profile(kl_scan *s, kl_profile *profile) {
    static const struct {
        const char *name;
        void (*read)(kl_scan *scan, kl_profile *profile);
    } kinds[] = {{"osc(", read_osc},
                 {"drop(", read_drop},
                 {"freeze(", read_freeze},
                 {"steps(", read_steps},
                 {"share(", read_share}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kl_scan_take(s, kinds[i].name)) {
            kinds[i].read(s, profile);
            kl_scan_need(s, ")", "the profile's arguments");
            return;
        }
    kl_scan_fail(s, s->at, KILTER_ERR_INPUT,
                 "'@' must be followed by osc(…), drop(…), freeze(…), share(…), steps(…), join(…) or die(…)");
}

/* Read one host: SPEED[@PROFILE]. */
static kl_host read_host(kl_scan *s) {
    kl_host host = {.speed = kl_scan_number(s, "a speed", LEAST_SPEED, MOST_SPEED)};
    if (!kl_scan_take(s, "@"))
        return host;
    bool joins = kl_scan_take(s, "join(");
    if (!joins && !kl_scan_take(s, "die(")) {
        read_profile(s, &host.profile);
        return host;
    }
    (joins ? read_join : read_die)(s, &host);
    kl_scan_need(s, ")", "the profile's arguments");
    return host;
}

static kilter_status add_group(kl_cluster *c, kl_host_group group) {
    /* enlarge the array when it holds 1, 3, 7, 15 … elements */
    if ((c->group_count & (c->group_count + 1)) == 0) {
        kl_host_group *groups = realloc(c->groups, (2 * (size_t)c->group_count + 1) * sizeof *groups);
        if (!groups)
            return KILTER_ERR_MEMORY;
        c->groups = groups;
    }
    c->groups[c->group_count++] = group;
    c->workers += group.count;
    return KILTER_OK;
}

/* Read the groups of hosts: COUNTxSPEED[@PROFILE],… */
static void read_groups(kl_scan *s, kl_cluster *c) {
    do {
        const char *at = s->at;
        kl_host_group group = {
            .count = (uint32_t)kl_scan_count(s, "the number of hosts", 1, KL_CLUSTER_MOST_WORKERS)};
        kl_scan_need(s, "x", "the number of hosts");
        group.host = read_host(s);
        if (c->workers + group.count > KL_CLUSTER_MOST_WORKERS)
            kl_scan_fail(s, at, KILTER_ERR_RANGE, "more than %d hosts together", KL_CLUSTER_MOST_WORKERS);
        if (c->group_count == MOST_GROUPS)
            kl_scan_fail(s, at, KILTER_ERR_RANGE, "more than %d groups of hosts", MOST_GROUPS);
        if (kl_scan_ok(s) && add_group(c, group) != KILTER_OK)
            kl_scan_fail(s, at, KILTER_ERR_MEMORY, "memory ran out");
    } while (kl_scan_take(s, ","));
}

/* Report an error if a term of the SPEC is given twice. */
static void once(kl_scan *s, bool *seen, const char *name) {
    if (*seen)
        kl_scan_fail(s, s->at, KILTER_ERR_INPUT, "%s= is given twice", name);
    *seen = true;
}

static void read_terms(kl_scan *s, kl_cluster *c) {
    bool links = false, master = false, clusters = false;
    while (kl_scan_take(s, ";")) {
        if (kl_scan_take(s, "link=")) {
            once(s, &links, "link");
            c->latency_s = kl_scan_time_s(s, "the latency", 0, 1000);
            if (kl_scan_take(s, ",")) {
                c->bytes_per_s = kl_scan_bytes_per_s(s, "the bandwidth");
                c->half_duplex = kl_scan_take(s, ",half");
            }
        } else if (kl_scan_take(s, "master=")) {
            once(s, &master, "master");
            c->master_apart = true;
            c->master = read_host(s);
        } else if (kl_scan_take(s, "cluster=")) {
            once(s, &clusters, "cluster");
            c->near =
                (uint32_t)kl_scan_count(s, "the number of hosts in a cluster", 1, KL_CLUSTER_MOST_WORKERS);
            kl_scan_need(s, ",", "the number of hosts in a cluster");
            c->far_s = kl_scan_time_s(s, "the latency between clusters", 0, 1000);
        } else {
            kl_scan_fail(s, s->at, KILTER_ERR_INPUT, "';' must be followed by link=…, cluster=… or master=…");
        }
    }
}

kilter_status kl_cluster_parse(const char *spec, kl_cluster *cluster, kilter_error *error) {
    kl_scan s = kl_scan_of("platform", spec, error);
    kl_cluster c = {.latency_s = DEFAULT_LATENCY_S, .bytes_per_s = DEFAULT_BYTES_PER_S};
    read_groups(&s, &c);
    read_terms(&s, &c);
    if (!kl_scan_done(&s))
        kl_scan_fail(&s, s.at, KILTER_ERR_INPUT, "not understood from here on");
    if (!kl_scan_ok(&s)) {
        kl_cluster_free(&c);
        return s.status;
    }
    *cluster = c;
    return KILTER_OK;
}

void kl_cluster_free(kl_cluster *cluster) {
    free(cluster->groups);
    *cluster = (kl_cluster){0};
}

/* --- SimGrid --- */

void kl_cluster_worker_host(uint32_t worker, char name[KL_CLUSTER_HOST_BYTES]) {
    snprintf(name, KL_CLUSTER_HOST_BYTES, "n%" PRIu32, worker);
}

void kl_cluster_master_host(const kl_cluster *cluster, char name[KL_CLUSTER_HOST_BYTES]) {
    if (cluster->master_apart)
        snprintf(name, KL_CLUSTER_HOST_BYTES, "master");
    else
        kl_cluster_worker_host(0, name);
}

static void write_host(const kl_cluster *c, const char *name, const kl_host *host, FILE *out) {
    fprintf(out, "    <host id=\"%s\" speed=\"%.17gf\"/>\n", name, host->speed * 1e9);
    fprintf(out, "    <link id=\"l_%s\" latency=\"%.17gs\" bandwidth=\"%.17gBps\" sharing_policy=\"%s\"/>\n",
            name, c->latency_s, c->bytes_per_s, c->half_duplex ? "SHARED" : "SPLITDUPLEX");
    const char *up = c->half_duplex ? "" : "_UP", *down = c->half_duplex ? "" : "_DOWN";
    fprintf(out, "    <host_link id=\"%s\" up=\"l_%s%s\" down=\"l_%s%s\"/>\n", name, name, up, name, down);
}

/* Write the profile for one host, because SimGrid accepts a trace for one host only. */
static void write_profile(const char *name, const kl_profile *profile, FILE *out) {
    if (profile->count == 0)
        return;
    fprintf(out, "  <trace id=\"t_%s\" periodicity=\"%.17g\">\n", name,
            profile->period_s > 0 ? profile->period_s : -1);
    if (profile->at_s[0] > 0)
        fprintf(out, "0 1\n");
    for (uint32_t i = 0; i < profile->count; i++)
        fprintf(out, "%.17g %.17g\n", profile->at_s[i], profile->factor[i]);
    fprintf(out, "  </trace>\n  <trace_connect kind=\"SPEED\" trace=\"t_%s\" element=\"%s\"/>\n", name, name);
}

static void write_profiles(const kl_cluster *c, FILE *out) {
    char name[KL_CLUSTER_HOST_BYTES];
    uint32_t worker = 0;
    for (uint32_t g = 0; g < c->group_count; g++)
        for (uint32_t i = 0; i < c->groups[g].count; i++) {
            kl_cluster_worker_host(worker++, name);
            write_profile(name, &c->groups[g].host.profile, out);
        }
    if (c->master_apart)
        write_profile("master", &c->master.profile, out);
}

static kilter_status written(FILE *out, const char *what, kilter_error *error) {
    if (fflush(out) != 0 || ferror(out))
        return kl_fail(error, KILTER_ERR_SYSTEM, "writing the %s: %s; make room there", what,
                       strerror(errno));
    return KILTER_OK;
}

kilter_status kl_cluster_write_simgrid(const kl_cluster *c, FILE *out, kilter_error *error) {
    fprintf(out, "<?xml version='1.0'?>\n"
                 "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                 "<platform version=\"4.1\">\n"
                 "  <zone id=\"z\" routing=\"Cluster\">\n");
    uint32_t worker = 0;
    for (uint32_t g = 0; g < c->group_count; g++)
        for (uint32_t i = 0; i < c->groups[g].count; i++) {
            char name[KL_CLUSTER_HOST_BYTES];
            kl_cluster_worker_host(worker++, name);
            write_host(c, name, &c->groups[g].host, out);
        }
    if (c->master_apart)
        write_host(c, "master", &c->master, out);
    fprintf(out, "  </zone>\n");
    write_profiles(c, out);
    fprintf(out, "</platform>\n");
    return written(out, "platform", error);
}

kilter_status kl_cluster_write_hosts(const kl_cluster *c, FILE *out, kilter_error *error) {
    char name[KL_CLUSTER_HOST_BYTES];
    kl_cluster_master_host(c, name);
    fprintf(out, "%s\n", name);
    for (uint32_t i = 0; i < c->workers; i++) {
        kl_cluster_worker_host(i, name);
        fprintf(out, "%s\n", name);
    }
    return written(out, "list of hosts", error);
}
