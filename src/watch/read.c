/* Read the file that a rank has written. It may be damaged, so any content is possible. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

static const double MOST_S =
    1e9; /* greatest number of seconds of a run; a longer run is an error in the file */

static kilter_status refuse(const char *name, const char *why, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_INPUT, "reading '%s': it is not a file of kilter watch (%s)", name, why);
}

static bool is_text(const char *text, size_t size) {
    return memchr(text, '\0', size) != NULL;
}

/* Return what is wrong in the header; NULL: nothing. */
static const char *fault_of_header(const kl_watch_file *f) {
    if (memcmp(f->magic, KL_WATCH_MAGIC, sizeof f->magic) != 0)
        return "its first bytes are wrong";
    if (f->version != KL_WATCH_VERSION || f->bytes != sizeof *f)
        return "another version of Kilter wrote it";
    if (f->ranks < 1 || f->rank < 0 || f->rank >= f->ranks)
        return "its rank is wrong";
    if (f->end > KL_WATCH_ABORTED || f->sites > KL_WATCH_SITES || f->slices > KL_WATCH_SLICES)
        return "its header is damaged";
    if (f->last.ticks < f->began.ticks || f->last.ns < f->began.ns)
        return "its clock runs backwards";
    if (!is_text(f->host, sizeof f->host))
        return "its header is damaged";
    return NULL;
}

static const char *fault_of_rows(const kl_watch_file *f) {
    uint64_t kept = f->events < KL_WATCH_EVENTS ? f->events : KL_WATCH_EVENTS;
    for (uint32_t i = 0; i < f->sites; i++)
        if (!is_text(f->site[i].call, KL_WATCH_CALL_BYTES) ||
            !is_text(f->site[i].place, KL_WATCH_PLACE_BYTES))
            return "its list of places is damaged";
    for (uint64_t i = 0; i < kept; i++) {
        const kl_watch_event *e = &f->ring[i];
        if (e->site >= f->sites || !(e->useful >= 0) || !(e->mpi >= 0) || isinf(e->useful) || isinf(e->mpi))
            return "its list of calls is damaged";
    }
    return NULL;
}

/* Return how many seconds a tick of the rank's clock is. */
static double tick_s(const kl_watch_file *f) {
    double ticks = (double)(f->last.ticks - f->began.ticks), ns = (double)(f->last.ns - f->began.ns);
    return ticks > 0 && ns > 0 ? 1e-9 * ns / ticks : 0;
}

/* Limit a time from the file to the length of the run, because the file may be damaged. */
static double limited(double seconds, double most_s) {
    return seconds < most_s ? seconds : most_s;
}

static void take_numbers(const kl_watch_file *f, double tick, kl_watch_rank *r) {
    double elapsed_s = limited(1e-9 * (double)(f->last.ns - f->began.ns), MOST_S);
    memcpy(r->host, f->host, sizeof r->host);
    r->rank = (uint32_t)f->rank;
    r->ranks = (uint32_t)f->ranks;
    r->pid = f->pid;
    r->spawned = f->spawned != 0;
    r->threads = f->threads != 0;
    r->end = (kl_watch_end)f->end;
    r->began_unix_s = 1e-9 * (double)f->began_unix_ns;
    r->elapsed_s = elapsed_s;
    r->useful_s = limited(tick * (double)f->useful, elapsed_s);
    r->mpi_s = limited(tick * (double)f->mpi, elapsed_s);
    double sampled_s = tick * (double)f->sampled, share = 1e-9 * (double)f->sampled_cpu_ns / sampled_s;
    r->core_share = sampled_s > 0 && share >= 0 ? fmin(share, 1) : (double)NAN;
    r->calls = f->calls;
    r->other_calls = f->other_calls;
    r->any_source = f->any_source;
    r->slice_s = limited(tick * (double)f->slice_ticks, MOST_S);
}

static bool take_lists(const kl_watch_file *f, double tick, kl_watch_rank *r) {
    size_t kept = f->events < KL_WATCH_EVENTS ? (size_t)f->events : KL_WATCH_EVENTS;
    uint64_t first = f->events - kept;
    r->call = calloc(kept + 1, sizeof *r->call);
    r->places = calloc((size_t)f->sites + 1, sizeof *r->places);
    r->slice = calloc((size_t)f->slices + 1, sizeof *r->slice);
    if (!r->call || !r->places || !r->slice)
        return false;
    r->call_count = kept;
    r->place_count = f->sites;
    r->slice_count = (size_t)f->slices;
    for (size_t i = 0; i < kept; i++) {
        const kl_watch_event *e = &f->ring[(first + i) % KL_WATCH_EVENTS];
        r->call[i] = (kl_watch_call){.site = e->site,
                                     .useful_s = limited(tick * (double)e->useful, r->elapsed_s),
                                     .mpi_s = limited(tick * (double)e->mpi, r->elapsed_s)};
    }
    for (size_t i = 0; i < r->place_count; i++) {
        const kl_watch_site *s = &f->site[i];
        kl_watch_place *p = &r->places[i];
        memcpy(p->call, s->call, sizeof p->call);
        memcpy(p->place, s->place, sizeof p->place);
        p->events = s->events;
        p->mpi_s = limited(tick * (double)s->mpi, r->elapsed_s);
    }
    for (size_t i = 0; i < r->slice_count; i++)
        r->slice[i] = limited(tick * (double)f->slice[i], r->slice_s);
    return true;
}

kilter_status kl_watch_read(kilter_bytes file, const char *name, kl_watch_rank *rank, kilter_error *error) {
    if (file.size != sizeof(kl_watch_file))
        return refuse(name, "its size is wrong", error);
    kl_watch_file *f = malloc(sizeof *f); /* aligned */
    if (!f)
        return kl_fail(error, KILTER_ERR_MEMORY, "reading '%s': memory ran out", name);
    memcpy(f, file.data, sizeof *f);
    const char *fault = fault_of_header(f);
    if (!fault)
        fault = fault_of_rows(f);
    kl_watch_rank r = {.rank = 0};
    kilter_status status = fault ? refuse(name, fault, error) : KILTER_OK;
    if (!fault) {
        take_numbers(f, tick_s(f), &r);
        if (!take_lists(f, tick_s(f), &r)) {
            kl_watch_rank_free(&r);
            status = kl_fail(error, KILTER_ERR_MEMORY, "reading '%s': memory ran out", name);
        }
    }
    free(f);
    if (status == KILTER_OK)
        *rank = r;
    return status;
}

void kl_watch_rank_free(kl_watch_rank *rank) {
    free(rank->call);
    free(rank->places);
    free(rank->slice);
    *rank = (kl_watch_rank){.rank = 0};
}
