/* The folder KILTER_KEEP belongs to `kilter run --keep` (the keeper). Rank 0 writes the loop's progress
 * there, and reads the keeper's requests. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/loop_mpi.h"

/* least seconds between two writes of the progress: LEAST_S at first, and up to MOST_S if writing is slow */
static const double LEAST_S = 0.1, MOST_S = 2;
/* greatest fraction of the loop's time that writing the progress may take */
static const double PART = 0.005;

struct kl_loop_progress {
    char *folder;
    kl_keep_progress is;
    kl_keep_seen seen;
    /* the keeper's last request; it is answered if its number is at most is.answered */
    kl_keep_request asked;
    uint64_t carried; /* number of the request that the next checkpoint answers; 0: none */
    double began_s;   /* time of the last kilter_loop_begin() */
    double looked_s, written_s, period_s;
    uint64_t counted; /* number of sweeps when the progress was last written */
    bool warned;
};

/* --- opening --- */

static kilter_status gather_hosts(kilter_loop *l, const kl_keep_host mine, kilter_error *error) {
    MPI_Request request = MPI_REQUEST_NULL;
    struct kl_loop_progress *p = l->progress;
    int code = MPI_Igather(mine, KL_KEEP_HOST_BYTES, MPI_BYTE, p ? p->is.hosts : NULL, KL_KEEP_HOST_BYTES,
                           MPI_BYTE, 0, l->bundle->group.comm, &request);
    return kl_group_await(&l->bundle->group, code, request, error);
}

static bool make(kilter_loop *l, const kl_keep_host mine) {
    const char *attempt = getenv("KILTER_KEEP_ATTEMPT");
    struct kl_loop_progress *p = l->progress = calloc(1, sizeof *p);
    if (!p)
        return false;
    p->folder = kl_text("%s", getenv("KILTER_KEEP"));
    p->is.ranks = l->bundle->group.ranks;
    p->is.pid = getpid();
    p->is.attempt = attempt ? strtoull(attempt, NULL, 10) : 0;
    p->is.expected = l->options.sweeps;
    p->is.hosts = calloc(l->bundle->group.ranks, sizeof *p->is.hosts);
    p->is.rates = calloc(l->bundle->group.ranks, sizeof *p->is.rates);
    p->period_s = LEAST_S;
    memcpy(p->is.host, mine, sizeof p->is.host);
    return p->folder && p->is.hosts && p->is.rates;
}

/* Skip a request that is older than this process, because it was meant for an earlier process. */
static void skip_old_request(struct kl_loop_progress *p) {
    bool there;
    kl_keep_request_changed(p->folder, &p->seen);
    if (kl_keep_request_read(p->folder, &p->asked, &there, NULL) == KILTER_OK && there)
        p->is.answered = p->asked.number;
}

kilter_status kl_loop_progress_open(kilter_loop *l, kilter_error *error) {
    kl_keep_host *mine = calloc(1, sizeof *mine);
    if (mine)
        kl_host_name(*mine);
    uint64_t fits = mine && (l->bundle->group.rank > 0 || make(l, *mine));
    kilter_status status = kl_group_least(&l->bundle->group, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        status = kl_fail(error, KILTER_ERR_MEMORY, "opening loop '%s': memory ran out", l->name);
    if (status == KILTER_OK)
        status = gather_hosts(l, *mine, error);
    if (status != KILTER_OK)
        return status; /* not freed after a failure, because MPI may still read the name of the host */
    free(mine);
    if (l->progress)
        skip_old_request(l->progress);
    return KILTER_OK;
}

void kl_loop_progress_free(kilter_loop *l) {
    if (!l->progress)
        return;
    kl_keep_progress_free(&l->progress->is);
    free(l->progress->folder);
    free(l->progress);
    l->progress = NULL;
}

/* --- writing --- */

static void fill_rates(kilter_loop *l) {
    kl_keep_progress *is = &l->progress->is;
    const kl_steer *steer = l->rank.rounds.steer;
    for (uint32_t r = 0; r < is->ranks && steer; r++)
        is->rates[r] = kl_steer_rate(steer, r);
    if (is->ranks == 1 && is->sweep_s > 0)
        is->rates[0] = (double)l->options.iterations / is->sweep_s;
}

static void fill(kilter_loop *l, double now_s) {
    struct kl_loop_progress *p = l->progress;
    kl_keep_progress *is = &p->is;
    const kl_saver *v = l->saver;
    is->elapsed_s = now_s - l->bundle->group.opened_s;
    is->sweeps = (v ? v->sweeps_before : 0) + kl_meter_sweep(&l->rank.meter);
    if (is->sweeps > p->counted && p->written_s > 0)
        is->sweep_s = (now_s - p->written_s) / (double)(is->sweeps - p->counted);
    p->counted = is->sweeps;
    fill_rates(l);
    if (!v)
        return;
    is->saved_sweeps = v->saved_sweeps;
    is->saves = v->saves;
    is->save_s = v->save_s;
    is->write_s = v->write_s;
    is->load_s = v->load_s;
    is->stopped = v->stopped;
    snprintf(is->error, sizeof is->error, "%s", v->failure.text);
}

/* Write the progress for the keeper. The longer a write takes, the later the next one follows. */
static void write_now(kilter_loop *l, double now_s) {
    struct kl_loop_progress *p = l->progress;
    kilter_error why = {KILTER_OK, ""};
    fill(l, now_s);
    kl_keep_progress_write(p->folder, &p->is, &why);
    p->written_s = kl_loop_now_s(l);
    p->period_s = fmin(fmax(LEAST_S, (p->written_s - now_s) / PART), MOST_S);
    if (why.status != KILTER_OK && !p->warned)
        fprintf(stderr, "loop '%s': the keeper gets no progress: %s; the loop continues\n", l->name,
                why.text);
    p->warned = why.status != KILTER_OK;
}

/* --- requests --- */

/* Check from time to time whether the keeper has a new request. */
static void look(struct kl_loop_progress *p, double now_s) {
    bool there;
    if (now_s - p->looked_s < LEAST_S || p->asked.number > p->is.answered)
        return;
    p->looked_s = now_s;
    if (kl_keep_request_changed(p->folder, &p->seen) &&
        kl_keep_request_read(p->folder, &p->asked, &there, NULL) != KILTER_OK)
        p->asked = (kl_keep_request){.number = 0};
}

static bool is_asked(const struct kl_loop_progress *p) {
    return p->asked.number > p->is.answered;
}

kl_keep_what kl_loop_progress_asked(kilter_loop *l, double now_s) {
    struct kl_loop_progress *p = l->progress;
    if (!p)
        return KL_KEEP_NOTHING;
    look(p, now_s);
    if (!is_asked(p))
        return KL_KEEP_NOTHING;
    p->carried = p->asked.number;
    return p->asked.what;
}

/* If the loop has no checkpoints, answer the keeper's request with an error, because it cannot be carried
 * out. */
static void refuse(kilter_loop *l, double now_s) {
    struct kl_loop_progress *p = l->progress;
    look(p, now_s);
    if (!is_asked(p))
        return;
    p->is.answered = p->asked.number;
    snprintf(p->is.error, sizeof p->is.error, "loop '%.200s' has no checkpoints", l->name);
    write_now(l, now_s);
}

/* --- events --- */

void kl_loop_progress_begin(kilter_loop *l) {
    struct kl_loop_progress *p = l->progress;
    if (!p)
        return;
    double now_s = kl_loop_now_s(l);
    if (p->began_s > 0)
        p->is.longest_s = fmax(p->is.longest_s, l->began_s - p->began_s);
    p->began_s = now_s;
    if (!l->saver)
        refuse(l, now_s);
    if (now_s - p->written_s >= p->period_s)
        write_now(l, now_s);
}

void kl_loop_progress_news(kilter_loop *l) {
    struct kl_loop_progress *p = l->progress;
    if (l->saver)
        l->saver->news = false;
    if (!p)
        return;
    if (p->carried > 0)
        p->is.answered = p->carried;
    p->carried = 0;
    write_now(l, kl_loop_now_s(l));
}

void kl_loop_progress_end(kilter_loop *l) {
    if (!l->progress)
        return;
    l->progress->is.done = true;
    write_now(l, kl_loop_now_s(l));
}
