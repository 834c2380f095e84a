/* The hosts of a run under a keeper: read their list, and measure them when the keeper asks for it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "keep.h"

struct kl_keep_hosts {
    kl_hosts *hosts;
    kl_host_list list;
    const kl_picker *picker; /* picks hosts for ranks; NULL: the fastest hosts come first */
    bool slurm;
    double weight;
    uint64_t seed;
    uint32_t turn;  /* number of the host with which the picker round-robin begins */
    uint32_t ranks; /* number of ranks that the user wants; UINT32_MAX: as many as the hosts allow */
    kl_keeper_view *views;
    char (*why)[KL_FIT_WHY_BYTES];
    size_t view_count;
    bool looks;
    double began_s, until_s;
    bool *left_out; /* [host] true: the program runs on the host, so the host is not measured */
};

static kilter_status find_picker(const kl_keep_options *options, kl_keep_hosts *h, kilter_error *error) {
    const kl_picker *picker = options->pick ? kl_picker_find(options->pick) : kl_picker_at(0);
    if (!picker)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--pick: '%s' is not a way to pick hosts; kilter hosts --help lists them",
                       options->pick);
    h->picker = picker == kl_picker_at(0) ? NULL : picker;
    return KILTER_OK;
}

static kilter_status open_all(const kl_keep_options *options, kl_keep_hosts *h, kilter_error *error) {
    kilter_status status = find_picker(options, h, error);
    if (status == KILTER_OK)
        status = kl_hosts_list(options->hosts, &h->list, &h->slurm, error);
    if (status == KILTER_OK && h->list.count == 0)
        status = kl_fail(error, KILTER_ERR_INPUT, "--hosts: '%s' names no host", options->hosts);
    const kl_hosts_options how = {.ssh = options->ssh, .slurm = h->slurm, .no_network = options->weight >= 1};
    if (status == KILTER_OK)
        status = kl_hosts_open(&h->list, &how, &h->hosts, error);
    h->views = calloc(h->list.count + 1, sizeof *h->views);
    h->why = calloc(h->list.count + 1, sizeof *h->why);
    h->left_out = calloc(h->list.count + 1, sizeof *h->left_out);
    if (status == KILTER_OK && !(h->views && h->why && h->left_out))
        status = kl_fail(error, KILTER_ERR_MEMORY, "reading the hosts: memory ran out");
    return status;
}

kilter_status kl_keep_hosts_open(const kl_keep_options *options, kl_keep_hosts **hosts, kilter_error *error) {
    kl_keep_hosts *h = calloc(1, sizeof *h);
    if (!h)
        return kl_fail(error, KILTER_ERR_MEMORY, "reading the hosts: memory ran out");
    h->weight = options->weight;
    h->seed = options->seed;
    h->ranks = options->ranks > 0 ? options->ranks : UINT32_MAX;
    kilter_status status = open_all(options, h, error);
    if (status == KILTER_OK)
        *hosts = h;
    else
        kl_keep_hosts_close(h);
    return status;
}

void kl_keep_hosts_close(kl_keep_hosts *h) {
    if (!h)
        return;
    kl_hosts_close(h->hosts);
    kl_host_list_free(&h->list);
    free(h->views);
    free(h->why);
    free(h->left_out);
    free(h);
}

bool kl_keep_hosts_of_slurm(const kl_keep_hosts *h) {
    return h->slurm;
}

bool kl_keep_hosts_picks(const kl_keep_hosts *h) {
    return h->picker != NULL;
}

/* --- measuring --- */

static uint32_t ranks_on(const kl_keeper *k, const char *name) {
    for (uint64_t i = 0; i < k->count; i++)
        if (strcmp(k->hosts[i].name, name) == 0)
            return k->hosts[i].ranks;
    return 0;
}

void kl_keep_hosts_look(kl_keep_hosts *h, const kl_keeper *k, bool others, double limit_s) {
    for (size_t i = 0; i < kl_hosts_count(h->hosts); i++) {
        h->left_out[i] = others && ranks_on(k, kl_hosts_at(h->hosts, i)->name) > 0;
        kl_hosts_measured(h->hosts, i, h->left_out[i] ? 1 : NAN);
    }
    h->looks = true;
    h->began_s = kl_monotonic_s();
    h->until_s = h->began_s + limit_s;
    kl_hosts_patience(h->hosts, limit_s);
    kl_hosts_start(h->hosts);
}

/* List for the keeper what was measured on each host. A host whose measurement did not arrive in time has
 * fitness 0. */
static bool make_views(kl_keep_hosts *h) {
    size_t count = kl_hosts_count(h->hosts);
    kl_fit *fits = calloc(count + 1, sizeof *fits);
    double age_s = kl_monotonic_s() - h->began_s;
    if (!fits || kl_hosts_fitness(h->hosts, h->weight, age_s + 1e-3, fits, NULL) != KILTER_OK) {
        free(fits);
        return false;
    }
    h->view_count = 0;
    for (size_t i = 0; i < count; i++) {
        const kl_listed_host *host = kl_hosts_at(h->hosts, i);
        const kl_reading *reading = kl_hosts_reading(h->hosts, i);
        uint32_t slots = host->slots > 0 ? host->slots : reading->cores > 0 ? reading->cores : 1;
        if (h->left_out[i])
            continue;
        kl_fit_why(&fits[i], reading, h->why[i]);
        h->views[h->view_count++] = (kl_keeper_view){.name = host->name,
                                                     .slots = slots,
                                                     .qos = fits[i].state == KL_FIT_KNOWN ? fits[i].qos : 0,
                                                     .pace = fits[i].speed / slots,
                                                     .why = h->why[i]};
    }
    free(fits);
    return true;
}

bool kl_keep_hosts_poll(kl_keep_hosts *h, const kl_keeper_view **views, size_t *count) {
    bool over = kl_hosts_poll(h->hosts, 0);
    if (!h->looks || (!over && kl_monotonic_s() < h->until_s))
        return false;
    h->looks = false;
    if (!make_views(h))
        h->view_count = 0;
    *views = h->views;
    *count = h->view_count;
    return true;
}

/* --- pickers --- */

void kl_keep_hosts_order(void *self, const kl_keeper_host *table, size_t count, uint32_t *order) {
    const kl_keep_hosts *h = self;
    kl_candidate *candidates = calloc(count + 1, sizeof *candidates);
    uint32_t *slots = calloc(count + 1, sizeof *slots);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (size_t i = 0; candidates && slots && i < count; i++) {
        candidates[i] = (kl_candidate){.qos = table[i].qos > 0 ? table[i].share : 0};
        slots[i] = table[i].slots;
    }
    const kl_pick_ask ask = {.candidates = candidates,
                             .count = (uint32_t)count,
                             .seed = h->seed,
                             .start = count > 0 ? h->turn % (uint32_t)count : 0};
    if (candidates && slots)
        kl_pick_order(h->picker, &ask, slots, h->ranks, order);
    free(candidates);
    free(slots);
}

void kl_keep_hosts_used(kl_keep_hosts *h, const kl_keeper *k) {
    for (uint64_t i = 0; i < k->count; i++)
        h->turn += k->hosts[i].ranks > 0;
    h->seed = kl_mix64(h->seed);
}
