/* The keeper's table of hosts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "keeper/keeper_private.h"

static bool same_label(const char *a, const char *b) {
    size_t n = strcspn(a, "."), m = strcspn(b, ".");
    return n > 0 && n == m && strncmp(a, b, n) == 0;
}

/* Return the host name without "user@". */
static const char *plain(const char *name) {
    const char *at = strchr(name, '@');
    return at ? at + 1 : name;
}

/* Return whether two names belong to the same host. "n1" and "n1.site.org" belong to the same host. Two
 * different names that both have a domain belong to different hosts. */
static bool same_host(const char *a, const char *b) {
    a = plain(a);
    b = plain(b);
    return strcmp(a, b) == 0 || ((!strchr(a, '.') || !strchr(b, '.')) && same_label(a, b));
}

kl_keeper_host *kl_keeper_find(const kl_keeper *k, const char *name) {
    for (uint64_t i = 0; i < k->count; i++)
        if (strcmp(k->hosts[i].name, name) == 0)
            return &k->hosts[i];
    for (uint64_t i = 0; i < k->count; i++)
        if (same_host(k->hosts[i].name, name))
            return &k->hosts[i];
    return NULL;
}

/* Return the host with this name, and add it if it is new. NULL: memory ran out. */
static kl_keeper_host *host_of(kl_keeper *k, const char *name) {
    kl_keeper_host *h = kl_keeper_find(k, name);
    if (h)
        return h;
    kl_keeper_host *hosts = kl_array_grow(k->hosts, &k->room, k->count + 1, sizeof *hosts);
    if (!hosts)
        return NULL;
    k->hosts = hosts;
    h = &hosts[k->count++];
    *h = (kl_keeper_host){.slots = 1, .qos = 0};
    snprintf(h->name, sizeof h->name, "%s", name);
    return h;
}

static double part(double value) {
    return value > 0 ? fmin(value, 1) : 0;
}

/* Take in the results of measuring hosts. A host in use keeps its pace, because the rates of its ranks are
 * better measurements. A queue reports exactly the hosts that the next job can have, so all other hosts
 * become unfit. */
bool kl_keeper_take_views(kl_keeper *k, const kl_keeper_view *views, size_t count) {
    for (uint64_t i = 0; i < k->count && k->options.queued; i++)
        k->hosts[i].qos = 0;
    for (size_t i = 0; i < count; i++) {
        kl_keeper_host *h = host_of(k, views[i].name);
        if (!h)
            return false;
        h->leaving = views[i].leaving;
        h->slots = views[i].slots;
        h->qos = part(views[i].qos);
        snprintf(h->why, sizeof h->why, "%s", views[i].why ? views[i].why : "");
        if (h->qos > 0 || k->state == KL_KEEPER_LOOKING)
            h->pace = part(views[i].pace > 0 ? views[i].pace : views[i].qos);
    }
    return true;
}

/* Return whether the table has the hosts of all ranks of the report. In a queue, unknown hosts are added. */
static bool knows_all(kl_keeper *k, const kl_keeper_report *r) {
    for (uint32_t i = 0; i < r->ranks; i++) {
        if (k->options.queued && !host_of(k, r->hosts[i]))
            return false;
        if (!kl_keeper_find(k, r->hosts[i]))
            return false;
    }
    return r->ranks > 0;
}

/* Store on which hosts the ranks run, as the program reports. If the report has a name that is not in the
 * table, ignore its names, and assume that each rank runs where it was started. */
static void take_places(kl_keeper *k, const kl_keeper_report *r) {
    if (!r->hosts || !knows_all(k, r))
        return;
    for (uint64_t i = 0; i < k->count; i++)
        k->hosts[i].ranks = 0;
    for (uint32_t i = 0; i < r->ranks; i++) {
        kl_keeper_host *h = kl_keeper_find(k, r->hosts[i]);
        h->ranks++;
        h->qos = h->qos > 0 ? h->qos : 1;
        h->slots = h->slots > h->ranks ? h->slots : h->ranks;
    }
}

/* Return the host on which a rank was started. Rank numbers rise from host to host. */
static kl_keeper_host *host_of_rank(const kl_keeper *k, uint32_t rank) {
    for (uint64_t i = 0; i < k->count; i++) {
        if (rank < k->hosts[i].ranks)
            return &k->hosts[i];
        rank -= k->hosts[i].ranks;
    }
    return NULL;
}

/* Return an average over time. To average rates, callers pass 1 / rate, the time of a row. Times of rows add
 * up, but rates do not. */
double kl_keeper_smooth(double mean, double value, double weight) {
    return mean > 0 ? mean + weight * (value - mean) : value;
}

bool kl_keeper_take_rates(kl_keeper *k, const kl_keeper_report *r, double weight) {
    if (!k->watch.reported)
        take_places(k, r);
    for (uint32_t i = 0; i < r->ranks && r->rates; i++)
        if (!(r->rates[i] > 0) || !isfinite(r->rates[i]))
            return false;
    for (uint64_t i = 0; i < k->count; i++)
        k->hosts[i].told = 0;
    for (uint32_t i = 0; i < r->ranks && r->rates; i++) {
        kl_keeper_host *h =
            r->hosts && kl_keeper_find(k, r->hosts[i]) ? kl_keeper_find(k, r->hosts[i]) : host_of_rank(k, i);
        if (h)
            h->told += r->rates[i];
    }
    for (uint64_t i = 0; i < k->count; i++) {
        kl_keeper_host *h = &k->hosts[i];
        h->rate = h->told > 0 ? 1 / kl_keeper_smooth(h->rate > 0 ? 1 / h->rate : 0, 1 / h->told, weight) : 0;
    }
    return true;
}

bool kl_keeper_can_use(const kl_keeper_host *h) {
    return h->qos > 0 && h->slots > 0 && !h->leaving && !h->drained;
}

/* Copy the next name of a list, and return the text after it; NULL: the list has ended. */
static const char *next_name(const char *names, char name[KL_KEEPER_NAME_BYTES]) {
    names += strspn(names, ", ");
    size_t length = strcspn(names, ", ");
    if (length == 0)
        return NULL;
    snprintf(name, KL_KEEPER_NAME_BYTES, "%.*s", (int)length, names);
    return names + length;
}

bool kl_keeper_listed(const char *names, const char *name) {
    char one[KL_KEEPER_NAME_BYTES];
    if (!*names)
        return true;
    while ((names = next_name(names, one)))
        if (same_host(one, name))
            return true;
    return false;
}

bool kl_keeper_names_known(const kl_keeper *k, const char *names, char unknown[KL_KEEPER_NAME_BYTES]) {
    while ((names = next_name(names, unknown)))
        if (!kl_keeper_find(k, unknown))
            return false;
    return true;
}
