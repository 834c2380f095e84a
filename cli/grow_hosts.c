/* kilter run --hosts without --keep: start workers of a farm on the fittest hosts of a list. The list is
 * read again when its file changes, and the hosts are measured at intervals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fitness/fitness.h"
#include "grow.h"
#include "hosts/hosts.h"

static const double FIT = 0.5;    /* least fitness of a host on which workers are started */
static const double UNFIT = 0.25; /* workers leave a host whose fitness is below this value */
static const double PATIENCE_S = 10;
static const double END_PATIENCE_S = 5; /* seconds that workers get to end after the end of the farm */
static const double RESPITE_S = 5;      /* seconds before workers are started again on a host where they
                                         * failed */

typedef struct place {
    kl_run_host run;
    size_t listed; /* number of the host in the list; SIZE_MAX: the host is not in the list any more */
    bool ending;   /* true: the workers of this host were told to leave */
    double fitness, speed,
        failed_s; /* failed_s: time when workers of the host last failed; −INFINITY: never */
    char unfit[KL_GROWTH_NAME_BYTES]; /* why workers must leave the host, in words; "": they may stay */
} place;

struct kl_grow_hosts {
    const kl_grow_options *options;
    const kl_picker *picker; /* picks the next host for workers; NULL: the fastest host comes first */
    kl_hosts *hosts;
    kl_host_list list;
    struct stat file;
    place *places;
    size_t count;
    uint64_t room, seed;
    uint32_t turn; /* number of the host with which the picker round-robin begins */
    bool looks, measured;
    double began_s, useful_s;
};

/* --- reading the list of hosts --- */

static place *place_of(const kl_grow_hosts *h, const char *name) {
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->places[i].run.name, name) == 0)
            return &h->places[i];
    return NULL;
}

static kilter_status add_place(kl_grow_hosts *h, const kl_listed_host *host, kilter_error *error) {
    place *places = kl_array_grow(h->places, &h->room, h->count + 1, sizeof *places);
    char *name = places ? kl_text("%s", host->name) : NULL;
    h->places = places ? places : h->places;
    if (!name)
        return kl_fail(error, KILTER_ERR_MEMORY, "--hosts: memory ran out");
    places[h->count++] = (place){.run = {.name = name, .input = -1}, .failed_s = -INFINITY};
    return KILTER_OK;
}

static kilter_status take_list(kl_grow_hosts *h, kilter_error *error) {
    kilter_status status = KILTER_OK;
    for (size_t i = 0; i < h->count; i++)
        h->places[i].listed = SIZE_MAX;
    for (size_t i = 0; i < h->list.count && status == KILTER_OK; i++) {
        const kl_listed_host *host = &h->list.at[i];
        if (strlen(host->name) >= KL_GROWTH_ID_BYTES)
            return kl_fail(error, KILTER_ERR_INPUT, "--hosts: '%s': the name '%.60s…' is too long",
                           h->options->hosts, host->name);
        if (!place_of(h, host->name))
            status = add_place(h, host, error);
        place *p = place_of(h, host->name);
        if (p) {
            p->listed = i;
            p->run.workers = host->slots;
        }
    }
    return status;
}

static kilter_status read_list(kl_grow_hosts *h, kilter_error *error) {
    const kl_hosts_options how = {.ssh = h->options->how.ssh_given, .no_network = h->options->weight >= 1};
    kl_host_list list = {0};
    kl_hosts *hosts = NULL;
    bool slurm;
    kilter_status status = kl_hosts_list(h->options->hosts, &list, &slurm, error);
    if (status == KILTER_OK && list.count == 0)
        status = kl_fail(error, KILTER_ERR_INPUT, "--hosts: '%s' names no host", h->options->hosts);
    if (status == KILTER_OK)
        status = kl_hosts_open(&list, &how, &hosts, error);
    if (status != KILTER_OK) {
        kl_host_list_free(&list);
        return status;
    }
    kl_hosts_close(h->hosts);
    kl_host_list_free(&h->list);
    h->hosts = hosts;
    h->list = list;
    h->looks = h->measured = false;
    kl_hosts_patience(hosts, PATIENCE_S);
    return take_list(h, error);
}

/* Read the list again if its file has changed. If the list cannot be read, keep the present hosts. */
static void read_again(kl_grow_hosts *h) {
    struct stat now;
    kilter_error error;
    if (stat(h->options->hosts, &now) != 0 ||
        (now.st_mtim.tv_sec == h->file.st_mtim.tv_sec && now.st_mtim.tv_nsec == h->file.st_mtim.tv_nsec &&
         now.st_size == h->file.st_size))
        return;
    h->file = now;
    if (read_list(h, &error) != KILTER_OK)
        fprintf(stderr, "kilter run: %s; the hosts stay as they are\n", error.text);
}

/* --- measuring --- */

static void judge(place *p, const kl_fit *fit, const kl_reading *reading) {
    char why[KL_FIT_WHY_BYTES];
    kl_fit_why(fit, reading, why);
    p->fitness = fit->state == KL_FIT_KNOWN ? fit->qos : 0;
    p->speed = fit->speed;
    p->unfit[0] = '\0';
    if (p->fitness < UNFIT)
        snprintf(p->unfit, sizeof p->unfit, "its fitness is %.2f%s%.60s", p->fitness, *why ? ": " : "", why);
}

static void take_readings(kl_grow_hosts *h) {
    kl_fit *fits = calloc(kl_hosts_count(h->hosts) + 1, sizeof *fits);
    double age_s = kl_monotonic_s() - h->began_s;
    if (fits && kl_hosts_fitness(h->hosts, h->options->weight, age_s + 1e-3, fits, NULL) == KILTER_OK)
        for (size_t i = 0; i < h->count; i++) {
            place *p = &h->places[i];
            if (p->listed < SIZE_MAX)
                judge(p, &fits[p->listed], kl_hosts_reading(h->hosts, p->listed));
            else
                snprintf(p->unfit, sizeof p->unfit, "it is not in the list any more");
        }
    free(fits);
    h->measured = true;
}

/* Measure the hosts. The farm's own workers on a host do not count as load by other programs. */
static void measure(kl_grow_hosts *h, double now_s) {
    for (size_t i = 0; i < h->count; i++) {
        const place *p = &h->places[i];
        if (p->listed == SIZE_MAX)
            continue;
        uint32_t cores = kl_hosts_reading(h->hosts, p->listed)->cores;
        kl_hosts_own(h->hosts, p->listed, p->run.pid == 0 ? 0 : p->run.workers > 0 ? p->run.workers : cores);
    }
    h->looks = true;
    h->began_s = now_s;
    kl_hosts_start(h->hosts);
}

/* --- choosing hosts for workers --- */

/* Return the host's name without "USER@": a worker reports its host's name without a user. */
static const char *node_of(const place *p) {
    const char *at = strrchr(p->run.name, '@');
    return at ? at + 1 : p->run.name;
}

static bool may_start(const place *p, const kl_growth *g, double now_s) {
    if (p->listed == SIZE_MAX || p->run.pid > 0 || p->fitness < FIT || now_s - p->failed_s < RESPITE_S)
        return false;
    for (uint64_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].excluded && strcmp(g->nodes[i].name, node_of(p)) == 0)
            return false;
    return true;
}

static uint32_t free_hosts(const kl_grow_hosts *h, const kl_growth *g, double now_s) {
    uint32_t count = 0;
    for (size_t i = 0; i < h->count; i++)
        count += may_start(&h->places[i], g, now_s);
    return count;
}

static void order_places(kl_grow_hosts *h, const kl_candidate *candidates, uint32_t *order) {
    uint32_t *slots = calloc(h->count, sizeof *slots);
    for (size_t i = 0; slots && i < h->count; i++)
        slots[i] = 1;
    const kl_pick_ask ask = {.candidates = candidates,
                             .count = (uint32_t)h->count,
                             .seed = h->seed,
                             .start = h->turn % (uint32_t)h->count};
    if (slots)
        kl_pick_order(h->picker, &ask, slots, 1, order);
    h->seed = kl_mix64(h->seed);
    free(slots);
}

/* Return the host on which to start workers next; NULL: every fit host has workers. */
static place *pick(kl_grow_hosts *h, const kl_growth *g, double now_s) {
    kl_candidate *candidates = calloc(h->count + 1, sizeof *candidates);
    uint32_t *order = calloc(h->count + 1, sizeof *order);
    place *best = NULL;
    for (size_t i = 0; candidates && order && i < h->count; i++) {
        place *p = &h->places[i];
        bool may = may_start(p, g, now_s);
        candidates[i] = (kl_candidate){.qos = may ? p->fitness : 0, .speed = p->speed};
        if (may && (!best || p->speed > best->speed))
            best = p;
    }
    if (best && h->picker) {
        order_places(h, candidates, order);
        best = candidates[order[0]].qos > 0 ? &h->places[order[0]] : best;
        h->turn = (uint32_t)(best - h->places) + 1;
    }
    free(candidates);
    free(order);
    return best;
}

uint32_t kl_grow_hosts_look(kl_grow_hosts *h, const kl_growth *g) {
    double now_s = kl_monotonic_s();
    read_again(h);
    if (h->looks && kl_hosts_poll(h->hosts, 0)) {
        h->looks = false;
        take_readings(h);
    } else if (!h->looks && (!h->measured || now_s - h->began_s >= h->options->look_s)) {
        measure(h, now_s);
    }
    return free_hosts(h, g, now_s);
}

kilter_status kl_grow_hosts_start(kl_grow_hosts *h, const kl_growth *g, char id[KL_GROWTH_ID_BYTES],
                                  kilter_error *error) {
    place *p = pick(h, g, kl_monotonic_s());
    if (!p)
        return kl_fail(error, KILTER_ERR_SYSTEM, "no host is fit");
    p->ending = false;
    kilter_status status = kl_run_start_host(&h->options->how.run, &p->run, error);
    if (status == KILTER_OK) {
        snprintf(id, KL_GROWTH_ID_BYTES, "%s", p->run.name);
        fprintf(stderr, "kilter run: starting workers on %s, whose fitness is %.2f\n", p->run.name,
                p->fitness);
    }
    return status;
}

/* Let the workers of a host finish their tasks and leave. When the input of the host's shell is closed, the
 * shell tells the workers to leave. */
void kl_grow_hosts_end(kl_grow_hosts *h, const char *id) {
    place *p = place_of(h, id);
    if (!p || p->run.input < 0)
        return;
    close(p->run.input);
    p->run.input = -1;
    p->ending = true;
}

static void note_end(place *p, int status) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    kl_run_host *run = &p->run;
    run->pid = 0;
    if (run->input >= 0)
        close(run->input);
    run->input = -1;
    if (p->ending || code == 0)
        return;
    p->failed_s = kl_monotonic_s();
    fprintf(stderr, "kilter run: workers on %s ended with code %d\n", run->name, code);
}

kl_growth_state kl_grow_hosts_state(kl_grow_hosts *h, const char *id) {
    kl_growth_state state = {.id = id, .stage = KL_GROWTH_OVER};
    place *p = place_of(h, id);
    int status;
    if (!p)
        return state;
    if (p->run.pid > 0 && waitpid(p->run.pid, &status, WNOHANG) == p->run.pid)
        note_end(p, status);
    state.nodes = node_of(p);
    if (p->run.pid > 0)
        state.stage = KL_GROWTH_RUNNING;
    if (*p->unfit)
        state.unfit = p->unfit;
    return state;
}

bool kl_grow_hosts_waits(kl_grow_hosts *h, bool useful) {
    double now_s = kl_monotonic_s();
    if (useful || h->useful_s == 0)
        h->useful_s = now_s;
    return now_s - h->useful_s < h->options->wait_s;
}

/* --- opening, updating and closing --- */

kilter_status kl_grow_hosts_open(const kl_grow_options *options, kl_grow_hosts **hosts, kilter_error *error) {
    kl_grow_hosts *h = calloc(1, sizeof *h);
    const kl_picker *picker = options->pick ? kl_picker_find(options->pick) : NULL;
    if (!h)
        return kl_fail(error, KILTER_ERR_MEMORY, "--hosts: memory ran out");
    h->options = options;
    h->seed = options->seed;
    h->picker = picker == kl_picker_at(0) ? NULL : picker;
    if (stat(options->hosts, &h->file) != 0)
        h->file = (struct stat){.st_size = -1};
    kilter_status status = read_list(h, error);
    if (status == KILTER_OK)
        *hosts = h;
    else
        kl_grow_hosts_close(h);
    return status;
}

static bool any_runs(kl_grow_hosts *h) {
    bool runs = false;
    for (size_t i = 0; i < h->count; i++)
        runs |= kl_grow_hosts_state(h, h->places[i].run.name).stage == KL_GROWTH_RUNNING;
    return runs;
}

void kl_grow_hosts_close(kl_grow_hosts *h) {
    const struct timespec tick = kl_timespec(0.02);
    double until_s = kl_monotonic_s() + END_PATIENCE_S;
    if (!h)
        return;
    for (size_t i = 0; i < h->count; i++)
        kl_grow_hosts_end(h, h->places[i].run.name);
    while (any_runs(h) && kl_monotonic_s() < until_s)
        nanosleep(&tick, NULL);
    for (size_t i = 0; i < h->count; i++) {
        pid_t pid = h->places[i].run.pid;
        if (pid > 0 && kill(pid, SIGKILL) == 0)
            waitpid(pid, NULL, 0);
        free(h->places[i].run.name);
    }
    kl_hosts_close(h->hosts);
    kl_host_list_free(&h->list);
    free(h->places);
    free(h);
}
