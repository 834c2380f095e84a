/* kilter run --slurm or --hosts: drive a farm whose workers are jobs of Slurm, or run on the fittest hosts
 * of a list. */
#include "grow.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/control.h"
#include "keep.h"

enum { NOTES_MOST = 64 };               /* most decisions that may wait until the farm can record them */
static const double END_PATIENCE_S = 5; /* seconds that workers get to end after the end of their farm */
static const double PATIENCE_S = 1;     /* seconds that the farm gets to answer a request */
static const double FARM_LOOK_S = 0.2;  /* seconds between two requests for the farm's state */

struct kl_grow {
    const kl_grow_options *options;
    kl_growth growth;
    kl_grow_slurm slurm;
    kl_grow_hosts *places; /* hosts that can run workers; NULL: the workers are jobs of Slurm */
    int lock;
    kl_tuner *tuner; /* NULL: not connected to the farm */
    kl_control_state state;
    bool known; /* true: `state` is valid, because the farm has begun a run or has ended */
    double looked_s;
    kl_growth_host hosts[KL_CONTROL_HOSTS_MOST];
    kl_decision notes[NOTES_MOST]; /* decisions that the farm has not recorded yet */
    uint32_t note_count;
};

/* --- the folder of the farm's jobs --- */

/* Write the key with which workers join the farm into the folder. Only the owner can read this file. */
static kilter_status write_key(const kl_grow *g, kilter_error *error) {
    kl_buffer text = {0};
    char *path = kl_keep_file(g->slurm.folder, "key");
    kl_key_write(g->options->key, false, &text);
    if (path)
        unlink(path);
    int file = path && !text.failed ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    bool written = file >= 0 && write(file, text.data, text.size) == (ssize_t)text.size;
    if (file >= 0)
        written = close(file) == 0 && written;
    kilter_status status = written ? KILTER_OK
                                   : kl_fail(error, KILTER_ERR_SYSTEM, "--folder: writing the key '%s': %s",
                                             path ? path : "key", strerror(errno));
    kl_buffer_free(&text);
    free(path);
    return status;
}

/* Write the numbers of all jobs into the folder, so that a later command can cancel the jobs. */
static void note_jobs(const kl_grow *g) {
    kl_buffer text = {0};
    if (g->places)
        return;
    for (uint64_t i = 0; i < g->growth.job_count; i++) {
        kl_put_bytes(&text, g->growth.jobs[i].id, strlen(g->growth.jobs[i].id));
        kl_put_bytes(&text, "\n", 1);
    }
    kilter_error error;
    if (kl_keep_write(g->slurm.folder, "jobs", &text, &error) != KILTER_OK)
        fprintf(stderr, "kilter run: %s; if this command is killed, no later command cancels its jobs\n",
                error.text);
    kl_buffer_free(&text);
}

static void cancel_earlier(const kl_grow *g) {
    kl_buffer text = {0};
    if (kl_keep_read(g->slurm.folder, "jobs", &text) && text.size > 0 && !text.failed) {
        kl_put_u8(&text, 0);
        char *ids = (char *)text.data;
        for (char *at = ids; *at; at++)
            *at = *at >= '0' && *at <= '9' ? *at : ' ';
        if (ids[strspn(ids, " ")]) {
            fprintf(stderr, "kilter run: jobs of an earlier command are cancelled: %s\n", ids);
            kl_grow_slurm_cancel(ids, false);
        }
    }
    kl_buffer_free(&text);
}

static kilter_status lock_folder(kl_grow *g, const char *path, kilter_error *error) {
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return kl_fail(error, KILTER_ERR_SYSTEM, "--folder: creating '%s': %s", path, strerror(errno));
    g->slurm.folder = realpath(path, NULL);
    char *lock = g->slurm.folder ? kl_keep_file(g->slurm.folder, "lock") : NULL;
    g->lock = lock ? kl_lock_take(lock) : -1;
    int why = errno;
    free(lock);
    if (g->lock >= 0)
        return KILTER_OK;
    return why == EAGAIN
               ? kl_fail(error, KILTER_ERR_USAGE,
                         "--folder: another kilter run uses '%s'; name another folder", path)
               : kl_fail(error, KILTER_ERR_SYSTEM, "--folder: locking '%s': %s", path, strerror(why));
}

static kilter_status open_folder(kl_grow *g, kilter_error *error) {
    char *path = g->options->folder ? kl_text("%s", g->options->folder) : kl_text("%s.farm", g->slurm.name);
    kilter_status status =
        path && !kl_keep_is_folder(path) ? lock_folder(g, path, error)
        : path ? kl_fail(error, KILTER_ERR_USAGE, "--folder: '%s' keeps a run; name another folder", path)
               : kl_fail(error, KILTER_ERR_MEMORY, "--folder: memory ran out");
    free(path);
    return status;
}

/* --- the state of the farm --- */

static void attach(kl_grow *g) {
    if (kl_tuner_attach(g->options->control, PATIENCE_S, &g->tuner, NULL) != KILTER_OK)
        g->tuner = NULL;
}

/* Read the state of the farm. If the farm has ended, note that no task is left, and try to attach again
 * later: the same program may open another farm. */
static void look_at_farm(kl_grow *g) {
    double now_s = kl_monotonic_s();
    if (now_s - g->looked_s < FARM_LOOK_S)
        return;
    g->looked_s = now_s;
    if (!g->tuner)
        attach(g);
    if (!g->tuner)
        return;
    if (kl_tuner_look(g->tuner, &g->state, NULL) == KILTER_OK) {
        g->known = g->state.tasks > 0;
        return;
    }
    if (kl_tuner_ended(g->tuner)) {
        g->state = (kl_control_state){.running = false};
        g->known = true;
    }
    kl_tuner_detach(g->tuner);
    g->tuner = NULL;
}

static double or_none(double value) {
    return value > 0 ? value : 0;
}

static kl_growth_farm farm_of(kl_grow *g) {
    const kl_control_state *s = &g->state;
    for (uint32_t i = 0; i < s->host_count; i++)
        g->hosts[i] = (kl_growth_host){.name = s->hosts[i].name,
                                       .drained = s->hosts[i].drained,
                                       .workers = s->hosts[i].workers,
                                       .idle = s->hosts[i].idle,
                                       .working = s->hosts[i].working,
                                       .lost = s->hosts[i].lost};
    return (kl_growth_farm){.known = g->known,
                            .running = s->running,
                            .left = s->tasks - s->done,
                            .left_s = or_none(s->left_s),
                            .again_s = s->run > 0 ? or_none(s->measured_s) : 0,
                            .task_s = fmax(or_none(s->task_s), or_none(s->late_s)),
                            .workers = (uint32_t)(s->present + s->resting),
                            .resting = (uint32_t)s->resting,
                            .hosts = g->hosts,
                            .count = s->host_count};
}

/* Send decisions to the farm, which writes them into its record. Keep them here until the farm's first run,
 * because the farm opens its record only then. */
static void hand_notes(kl_grow *g) {
    uint32_t given = 0;
    while (g->tuner && g->state.tasks > 0 && given < g->note_count &&
           kl_tuner_note(g->tuner, &g->notes[given], NULL) == KILTER_OK)
        given++;
    g->note_count -= given;
    memmove(g->notes, g->notes + given, g->note_count * sizeof *g->notes);
}

/* --- carrying out decisions about jobs and hosts --- */

static void start_on_host(kl_grow *g) {
    char id[KL_GROWTH_ID_BYTES];
    kilter_error error;
    double now_s = kl_monotonic_s();
    if (kl_grow_hosts_start(g->places, &g->growth, id, &error) != KILTER_OK) {
        fprintf(stderr, "kilter run: %s\n", error.text);
        kl_growth_refused(&g->growth, error.text, now_s);
    } else if (!kl_growth_submitted(&g->growth, id, now_s)) {
        kl_grow_hosts_end(g->places, id);
    }
}

static void submit(kl_grow *g) {
    char id[KL_GROWTH_ID_BYTES];
    kilter_error error;
    double now_s = kl_monotonic_s();
    if (kl_grow_slurm_submit(&g->slurm, &g->growth, id, &error) != KILTER_OK) {
        fprintf(stderr, "kilter run: submitting a job: %s\n", error.text);
        kl_growth_refused(&g->growth, error.text, now_s);
        return;
    }
    g->slurm.changed_s = now_s;
    fprintf(stderr, "kilter run: job %s is submitted\n", id);
    if (!kl_growth_submitted(&g->growth, id, now_s))
        kl_grow_slurm_cancel(id, false);
    note_jobs(g);
}

static void decide(kl_grow *g, const kl_decision *decision) {
    fprintf(stderr, "kilter run: %s\n", decision->reason);
    if (g->note_count < NOTES_MOST)
        g->notes[g->note_count++] = *decision;
}

static void carry_out(kl_grow *g) {
    kl_growth_action action;
    while (kl_growth_take(&g->growth, &action)) {
        if (action.act == KL_GROWTH_DECIDED)
            decide(g, &action.decision);
        else if (action.act == KL_GROWTH_SUBMIT)
            (g->places ? start_on_host : submit)(g);
        else if (g->places)
            kl_grow_hosts_end(g->places, action.id);
        else
            kl_grow_slurm_cancel(action.id, action.act == KL_GROWTH_RELEASE);
    }
}

/* --- opening, updating and closing --- */

static void look_at_hosts(kl_grow *g, kl_growth_farm *farm) {
    uint64_t count = g->growth.job_count;
    kl_growth_state *states = calloc(count + 1, sizeof *states);
    farm->free = kl_grow_hosts_look(g->places, &g->growth);
    for (uint64_t i = 0; states && i < count; i++)
        states[i] = kl_grow_hosts_state(g->places, g->growth.jobs[i].id);
    kl_growth_look(&g->growth, farm, states, states ? count : 0, kl_monotonic_s());
    free(states);
}

static void look(kl_grow *g, kl_growth_farm *farm) {
    const char *answer;
    kl_growth_state *states = NULL;
    char(*nodes)[KL_GROWTH_NODES_BYTES] = NULL;
    uint64_t count = kl_grow_slurm_ask(&g->slurm, &g->growth, &answer) ? g->growth.job_count : 0;
    while (count > 0 && g->growth.jobs[count - 1].number > g->slurm.asked)
        count--; /* leave out a job that was submitted after squeue was asked */
    uint64_t before = g->growth.job_count;
    if (count > 0) {
        states = calloc(count, sizeof *states);
        nodes = calloc(count, sizeof *nodes);
    }
    for (uint64_t i = 0; states && nodes && i < count; i++)
        states[i] = kl_grow_slurm_state(answer, g->growth.jobs[i].id, nodes[i]);
    kl_growth_look(&g->growth, farm, states, states && nodes ? count : 0, kl_monotonic_s());
    if (before > g->growth.job_count)
        note_jobs(g);
    free(states);
    free(nodes);
}

bool kl_grow_look(kl_grow *g) {
    look_at_farm(g);
    kl_growth_farm farm = farm_of(g);
    (g->places ? look_at_hosts : look)(g, &farm);
    carry_out(g);
    hand_notes(g);
    bool works = farm.workers > 0 || g->growth.job_count > 0;
    return !kl_growth_is_lost(&g->growth, &farm) && (!g->places || kl_grow_hosts_waits(g->places, works));
}

static kilter_status open_slurm(kl_grow *g, kilter_error *error) {
    kilter_status status = kl_grow_slurm_check(error);
    if (status == KILTER_OK)
        status = open_folder(g, error);
    if (status == KILTER_OK)
        status = write_key(g, error);
    if (status == KILTER_OK)
        status = kl_grow_slurm_write(&g->slurm, g->options, error);
    if (status == KILTER_OK)
        cancel_earlier(g);
    return status;
}

kilter_status kl_grow_open(const kl_grow_options *options, kl_grow **grow, kilter_error *error) {
    kl_grow *g = calloc(1, sizeof *g);
    if (!g)
        return kl_fail(error, KILTER_ERR_MEMORY, "--slurm: memory ran out");
    *g = (kl_grow){.options = options, .growth.options = options->growth, .lock = -1};
    const char *program = options->program[0], *slash = strrchr(program, '/');
    g->slurm.options = options->slurm;
    g->slurm.name = slash ? slash + 1 : program;
    kilter_status status =
        options->slurm ? open_slurm(g, error) : kl_grow_hosts_open(options, &g->places, error);
    if (status == KILTER_OK)
        *grow = g;
    else
        kl_grow_close(g, false);
    return status;
}

static void cancel_all(kl_grow *g) {
    kl_buffer ids = {0};
    for (uint64_t i = 0; i < g->growth.job_count; i++) {
        kl_put_bytes(&ids, g->growth.jobs[i].id, strlen(g->growth.jobs[i].id));
        kl_put_bytes(&ids, " ", 1);
    }
    kl_put_u8(&ids, 0);
    if (g->growth.job_count > 0 && !ids.failed)
        kl_grow_slurm_cancel((const char *)ids.data, false);
    kl_buffer_free(&ids);
    g->growth.job_count = 0;
    note_jobs(g);
}

/* Wait for the workers of a farm that ended well. Do not cancel its jobs, because the workers leave by
 * themselves. */
static void wait_for_workers(kl_grow *g) {
    kl_growth_farm ended = {.known = true};
    const struct timespec tick = kl_timespec(FARM_LOOK_S / 4);
    double until_s = kl_monotonic_s() + END_PATIENCE_S;
    g->note_count = NOTES_MOST; /* write no more decisions, because the farm's record is closed */
    g->slurm.changed_s = kl_monotonic_s();
    while (g->growth.job_count > 0 && kl_monotonic_s() < until_s) {
        look(g, &ended);
        carry_out(g);
        nanosleep(&tick, NULL);
    }
}

void kl_grow_close(kl_grow *g, bool ended_well) {
    if (!g)
        return;
    if (g->lock >= 0) {
        char *key = kl_keep_file(g->slurm.folder, "key");
        if (ended_well)
            wait_for_workers(g);
        cancel_all(g);
        if (key)
            unlink(key);
        free(key);
        close(g->lock);
    }
    kl_grow_hosts_close(g->places);
    kl_tuner_detach(g->tuner);
    kl_grow_slurm_close(&g->slurm);
    kl_growth_free(&g->growth);
    free(g);
}
