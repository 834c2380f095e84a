/* Write one checkpoint: copy the rows, let rank 0 plan the file, let a thread write the rows, report whether
 * this worked, and name the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/loop_mpi.h"

/* The message of rank 0 about the file to write. Two lists follow the struct. The first has the positions of
 * the file's parts. The second has, for each rank, the position of its content within the content of all
 * ranks. */
typedef struct layout {
    kilter_error error;
    uint64_t generation, token;
    uint64_t at[];
} layout;

/* --- threads --- */

static void *run(void *argument) {
    kl_job *job = argument;
    double began_s = kl_monotonic_s(), cpu_s = kl_cpu_s(kl_thread_cpu());
    job->body(job->save, &job->error);
    job->took_s = kl_monotonic_s() - began_s;
    job->cpu_s = kl_cpu_s(kl_thread_cpu()) - cpu_s;
    atomic_store_explicit(&job->done, true, memory_order_release);
    return NULL;
}

static bool start(kl_saving *s, void (*body)(kl_saving *save, kilter_error *error)) {
    s->job = (kl_job){.body = body, .save = s};
    if (kl_thread_start(&s->job.thread, run, &s->job) == 0)
        return true;
    kl_fail(&s->job.error, KILTER_ERR_SYSTEM, "the system refuses another thread");
    s->job.joined = true;
    atomic_store(&s->job.done, true);
    return false;
}

static void join(kl_saving *s) {
    if (!s->job.joined)
        pthread_join(s->job.thread, NULL);
    s->job.joined = true;
}

/* Let a thread do work, and wait for the thread. The thread blocks signals. So if a file exceeds the limit on
 * its size, writing fails with an error, and no signal ends the program. */
static kilter_status run_now(kl_saving *s, void (*body)(kl_saving *save, kilter_error *error)) {
    if (start(s, body))
        join(s);
    return s->job.error.status;
}

static void write_rows(kl_saving *s, kilter_error *error) {
    kl_ckpt_write(s->path, &s->plan, &s->share, error);
}

static void lay_out(kl_saving *s, kilter_error *error) {
    kl_ckpt_lay_out(s->saver->library, s->path, &s->plan, error);
}

/* Complete the new checkpoint by giving it its name, and then remove older checkpoints. Removing may take
 * long, so its time is measured separately. */
static void commit(kl_saving *s, kilter_error *error) {
    const kl_ckpt_folder *folder = &s->saver->folder;
    if (kl_ckpt_commit(folder, s->generation, s->token, error) != KILTER_OK)
        return;
    double whole_s = kl_monotonic_s();
    kl_ckpt_remove_old(folder, s->saver->generations);
    s->removing_s = kl_monotonic_s() - whole_s;
}

/* --- copying --- */

static bool add_piece(kl_saving *s, size_t array, kl_span rows, const uint8_t *from) {
    kl_ckpt_piece *more = kl_array_grow(s->share.pieces, &s->piece_room, s->share.count + 1, sizeof *more);
    if (!more)
        return false;
    s->share.pieces = more;
    more[s->share.count++] = (kl_ckpt_piece){array, rows, from};
    return true;
}

/* List where this rank's rows are in memory. Return false if memory ran out. */
static bool list_rows(kilter_loop *l) {
    kl_saving *s = &l->saver->save;
    const kl_layout *layout = &l->rank.layout;
    kl_span own;
    bool fits = true;
    s->share.count = 0;
    for (size_t a = 0; a < layout->array_count; a++)
        for (size_t k = 0; kl_loop_array_own(l, &layout->arrays[a], k, &own) && fits; k++)
            fits = add_piece(s, a, own, kl_row_at(&layout->arrays[a], own.lo));
    return fits;
}

static uint64_t piece_bytes(const kl_saving *s, const kl_ckpt_piece *p) {
    return kl_length(p->rows) * kl_ckpt_array(&s->plan, p->array)->width;
}

/* Get memory for the copy of the rows. The memory is kept until the loop is closed, because new pages cost
 * time. */
static bool get_copy(kl_saving *s, uint64_t bytes) {
    if (bytes <= s->copy_room)
        return true;
    free(s->copy);
    s->copy = kl_rows_fit(bytes) ? malloc(bytes) : NULL;
    s->copy_room = s->copy ? bytes : 0;
    return s->copy != NULL;
}

/* Copy the listed rows. Return false if there is no memory for the copy; the list then still points to the
 * rows themselves. */
static bool copy_rows(kl_saving *s) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->share.count; i++)
        bytes += piece_bytes(s, &s->share.pieces[i]);
    if (!get_copy(s, bytes))
        return false;
    uint8_t *to = s->copy;
    for (size_t i = 0; i < s->share.count; i++) {
        kl_ckpt_piece *p = &s->share.pieces[i];
        memcpy(to, p->from, piece_bytes(s, p));
        p->from = to;
        to += piece_bytes(s, p);
    }
    return true;
}

static void copy_values(const kl_kept *kept, kl_saving *s) {
    for (size_t v = 0; v < kept->count; v++)
        memcpy(s->values[v].at, kept->list[v].at, kept->list[v].bytes);
    s->share.values = kept->count > 0 ? s->values : NULL;
}

/* Pack the content of the rank's rows. */
static bool pack_content(kilter_loop *l) {
    kl_saving *s = &l->saver->save;
    kl_span own;
    bool fits = true;
    kl_parcel_free(&s->content);
    s->content = (kl_parcel){.peer = -1, .sends = true};
    for (size_t k = 0; kl_rank_own(&l->rank, k, &own) && fits; k++)
        fits = kl_parcel_add(&s->content, own);
    s->share.content = &s->content;
    return fits && kl_loop_pack(l, &s->content, 1);
}

/* --- planning the checkpoint file --- */

static kl_ckpt_facts facts_of(const kilter_loop *l, uint64_t sweeps, bool stops) {
    const kl_saver *v = l->saver;
    kl_ckpt_facts facts = kl_loop_facts(l);
    facts.sweeps = sweeps;
    facts.stopped = stops;
    facts.failures = v->failures;
    facts.elapsed_s = v->before_s + kl_loop_now_s(l) - l->bundle->group.opened_s;
    facts.written_unix_s = kl_unix_time_s();
    return facts;
}

/* Tell rank 0 how many bytes of row content each rank has. *all_bytes: on rank 0, the bytes of all ranks
 * together. */
static kilter_status gather_sizes(kilter_loop *l, uint64_t *all_bytes, kilter_error *error) {
    kl_saving *s = &l->saver->save;
    kl_group *g = &l->bundle->group;
    kilter_status status = KILTER_OK;
    kl_mail mail = {.data = &s->bytes[g->rank], .bytes = sizeof *s->bytes, .tag = KL_TAG_SAVE};
    s->bytes[g->rank] = kl_parcel_bytes(&s->content);
    *all_bytes = 0;
    if (!l->rank.content.on)
        return KILTER_OK;
    if (g->rank > 0)
        status = kl_send(g, &s->requests, mail, error);
    for (uint32_t r = 1; r < g->ranks && g->rank == 0 && status == KILTER_OK; r++) {
        mail.data = &s->bytes[r];
        mail.peer = (int)r;
        status = kl_receive(g, &s->requests, mail, error);
    }
    if (status == KILTER_OK)
        status = kl_requests_await(g, &s->requests, error);
    for (uint32_t r = 0; r < g->ranks && g->rank == 0; r++)
        *all_bytes += s->bytes[r];
    return status;
}

/* Plan the checkpoint file of the next generation. Refuse if another program has written this generation.
 * Only rank 0 calls this. */
static void make_file(kl_saver *v, layout *head) {
    kl_saving *s = &v->save;
    uint64_t newest = 0;
    kilter_error *error = &head->error;
    head->generation = s->generation = v->newest + 1;
    head->token = s->token = kl_token();
    free(s->path);
    s->path = kl_ckpt_unfinished_path(&v->folder, s->generation, s->token);
    if (!s->path) {
        kl_fail(error, KILTER_ERR_MEMORY, "memory ran out");
    } else if (kl_ckpt_newest(&v->folder, &newest, error) == KILTER_OK && newest != v->newest) {
        kl_fail(
            error, KILTER_ERR_USAGE,
            "another loop or program writes checkpoints under the same name; give each a path of its own");
    } else if (error->status == KILTER_OK && run_now(s, lay_out) != KILTER_OK) {
        *error = s->job.error;
    }
    for (size_t i = 0; i < s->plan.count; i++)
        head->at[i] = s->plan.parts[i].at;
}

/* Set the positions of the ranks' content in the file, in the order of ranks. Only rank 0 calls this. */
static void place_content(kl_saving *s, layout *head, uint32_t ranks) {
    uint64_t at = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        head->at[s->plan.count + r] = at;
        at += s->bytes[r];
    }
}

/* Read the positions in the file from the message of rank 0. All ranks but 0 call this. */
static void use_layout(kl_saver *v, const layout *head) {
    kl_saving *s = &v->save;
    s->generation = head->generation;
    s->token = head->token;
    free(s->path);
    s->path = kl_ckpt_unfinished_path(&v->folder, s->generation, s->token);
    for (size_t i = 0; i < s->plan.count; i++)
        s->plan.parts[i].at = head->at[i];
}

static size_t layout_bytes(const kilter_loop *l) {
    return sizeof(layout) + (l->saver->save.plan.count + l->bundle->group.ranks) * sizeof(uint64_t);
}

static kilter_status share_layout(kilter_loop *l, kilter_error *error) {
    kl_saver *v = l->saver;
    kl_saving *s = &v->save;
    layout *head = s->layout;
    size_t bytes = layout_bytes(l);
    memset(head, 0, bytes);
    if (l->bundle->group.rank == 0) {
        make_file(v, head);
        place_content(s, head, l->bundle->group.ranks);
    }
    kilter_status status = kl_group_tell(&l->bundle->group, &s->requests,
                                         (kl_mail){.data = head, .bytes = bytes, .tag = KL_TAG_SAVE}, error);
    if (status == KILTER_OK && l->bundle->group.rank > 0 && head->error.status == KILTER_OK)
        use_layout(v, head);
    if (status == KILTER_OK)
        s->share.content_at = head->at[s->plan.count + (size_t)l->bundle->group.rank];
    return status;
}

/* --- the end of a checkpoint --- */

/* End the checkpoint on rank 0. If checkpoints fail again and again for the same reason, report it only
 * once. */
static void end(kilter_loop *l, const kilter_error *why) {
    kl_saver *v = l->saver;
    kl_saving *s = &v->save;
    double now_s = kl_loop_now_s(l);
    bool said = strcmp(v->failure.text, why->text) == 0;
    s->under_way = false;
    v->news = v->unrecorded = true;
    v->since_s = now_s;
    v->failure = *why;
    if (why->status == KILTER_OK) { /* only a successful checkpoint shows what a checkpoint costs */
        v->save_s = s->worst.blocked_s;
        v->write_s = now_s - s->began_s - s->removing_s;
        v->cost_s = s->worst.blocked_s + s->worst.cpu_s;
        v->newest = s->generation;
        v->saved_sweeps = s->sweeps;
        v->saves++;
        return;
    }
    if (s->path)
        unlink(s->path);
    if (!said)
        fprintf(
            stderr,
            "loop '%s': the checkpoint before sweep %llu could not be written: %s; the loop continues, and "
            "older checkpoints stay\n",
            l->name, kl_ull(s->sweeps), why->text);
}

static void add_report(kl_saving *s, const kl_saving_report *r, int rank) {
    kl_saving_report *all = &s->worst;
    s->reports++;
    all->blocked_s = r->blocked_s > all->blocked_s ? r->blocked_s : all->blocked_s;
    all->write_s = r->write_s > all->write_s ? r->write_s : all->write_s;
    all->cpu_s = r->cpu_s > all->cpu_s ? r->cpu_s : all->cpu_s;
    if (r->error.status != KILTER_OK && all->error.status == KILTER_OK)
        kl_fail(&all->error, r->error.status, "rank %d: %.440s", rank, r->error.text);
}

/* Report to rank 0 whether this rank's rows are on the disk, and if not, why. */
static kilter_status report(kilter_loop *l, kilter_error *error) {
    kl_saving *s = &l->saver->save;
    join(s);
    s->reported = true;
    s->report = (kl_saving_report){s->blocked_s, s->job.took_s, s->job.cpu_s, s->job.error};
    if (l->bundle->group.rank == 0) {
        add_report(s, &s->report, 0);
        return KILTER_OK;
    }
    s->under_way = false;
    l->saver->saves += s->report.error.status == KILTER_OK;
    kl_mail mail = {.data = &s->report, .bytes = sizeof s->report, .peer = 0, .tag = KL_TAG_SAVE};
    return kl_send(&l->bundle->group, &s->requests, mail, error);
}

static kilter_status hear_reports(kilter_loop *l, kilter_error *error) {
    kl_saving *s = &l->saver->save;
    MPI_Comm comm = l->bundle->group.comm;
    int there = 1;
    while (there && s->reports < l->bundle->group.ranks) {
        MPI_Status from;
        int code = MPI_Iprobe(MPI_ANY_SOURCE, KL_TAG_SAVE, comm, &there, &from);
        if (code == MPI_SUCCESS && there)
            code = MPI_Recv(&s->heard, sizeof s->heard, MPI_BYTE, from.MPI_SOURCE, KL_TAG_SAVE, comm,
                            MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return kl_mpi_failed(code, "receiving the ranks' reports about a checkpoint", error);
        if (there)
            add_report(s, &s->heard, from.MPI_SOURCE);
    }
    return KILTER_OK;
}

/* Give the checkpoint file its final name when all ranks have reported. Only rank 0 calls this. */
static kilter_status conclude(kilter_loop *l, kilter_error *error) {
    kl_saving *s = &l->saver->save;
    kilter_status status = hear_reports(l, error);
    if (status != KILTER_OK || !s->reported || s->reports < l->bundle->group.ranks)
        return status;
    if (s->worst.error.status != KILTER_OK) {
        end(l, &s->worst.error);
    } else if (!s->commits) {
        s->commits = true;
        start(s, commit);
    } else if (atomic_load_explicit(&s->job.done, memory_order_acquire)) {
        join(s);
        end(l, &s->job.error);
    }
    return KILTER_OK;
}

kilter_status kl_saving_look(kilter_loop *l, kilter_error *error) {
    kl_saving *s = &l->saver->save;
    kilter_status status = KILTER_OK;
    if (!s->under_way)
        return KILTER_OK;
    if (!s->reported && atomic_load_explicit(&s->job.done, memory_order_acquire))
        status = report(l, error);
    return status == KILTER_OK && l->bundle->group.rank == 0 ? conclude(l, error) : status;
}

/* --- a checkpoint from its beginning to its end --- */

/* Get memory for copies of the kept values, which rank 0 saves. */
static bool prepare_values(kl_saving *s, const kl_kept *kept) {
    s->values = calloc(kept->count + 1, sizeof *s->values);
    bool fits = s->values != NULL;
    for (size_t v = 0; v < kept->count && fits; v++) {
        s->values[v] = kept->list[v];
        s->values[v].at = malloc(kept->list[v].bytes);
        fits = s->values[v].at != NULL;
    }
    return fits;
}

bool kl_saving_prepare(kilter_loop *l) {
    kl_saving *s = &l->saver->save;
    const kl_ckpt_facts facts = kl_loop_facts(l);
    kl_ckpt_plan_free(&s->plan);
    if (!kl_loop_plan(l, &facts, 0, &s->plan))
        return false;
    s->layout = malloc(layout_bytes(l));
    s->bytes = calloc(l->bundle->group.ranks, sizeof *s->bytes);
    return s->layout && s->bytes && prepare_values(s, &l->kept);
}

/* Collect what this rank saves. Even if this fails, the rank takes part in the checkpoint, because the other
 * ranks wait for it. Set *copied to true if the rows are copied, so that a thread can write the copy. Set
 * *why to the failure, if any. */
static void collect(kilter_loop *l, bool *copied, kilter_error *why) {
    kl_saving *s = &l->saver->save;
    bool fits = list_rows(l);
    if (l->bundle->group.rank == 0)
        copy_values(&l->kept, s);
    if (fits && l->rank.content.on && !pack_content(l))
        kl_fail(why, KILTER_ERR_MEMORY, "the content of a row could not be packed, or memory ran out");
    if (!fits)
        kl_fail(why, KILTER_ERR_MEMORY, "memory ran out");
    *copied = fits && copy_rows(s);
}

static kilter_status prepare(kilter_loop *l, uint64_t sweeps, bool stops, bool *copied, kilter_error *why,
                             kilter_error *error) {
    kl_saving *s = &l->saver->save;
    uint64_t content_bytes;
    kilter_status status = kl_requests_await(&l->bundle->group, &s->requests, error);
    if (status != KILTER_OK)
        return status;
    s->plan.facts = facts_of(l, sweeps, stops);
    collect(l, copied, why);
    status = gather_sizes(l, &content_bytes, error);
    if (l->rank.content.on)
        kl_ckpt_size_content(&s->plan, content_bytes);
    return status == KILTER_OK ? share_layout(l, error) : status;
}

kilter_status kl_saving_begin(kilter_loop *l, uint64_t sweeps, bool stops, kilter_error *error) {
    kl_saver *v = l->saver;
    kl_saving *s = &v->save;
    kilter_error why = {KILTER_OK, ""};
    bool copied;
    s->began_s = kl_loop_now_s(l);
    s->sweeps = sweeps;
    s->reports = 0;
    s->commits = s->reported = false;
    s->worst = (kl_saving_report){.blocked_s = 0};
    kilter_status status = prepare(l, sweeps, stops, &copied, &why, error);
    if (status != KILTER_OK)
        return status;
    const layout *head = s->layout;
    if (head->error.status != KILTER_OK && l->bundle->group.rank == 0)
        end(l, &head->error);
    if (head->error.status != KILTER_OK)
        return KILTER_OK;
    if (why.status == KILTER_OK && !s->path)
        kl_fail(&why, KILTER_ERR_MEMORY, "memory ran out");
    if (why.status == KILTER_OK)
        start(s, write_rows);
    else
        s->job = (kl_job){.done = true, .joined = true, .error = why};
    if (!copied)
        join(s);
    s->blocked_s = kl_loop_now_s(l) - s->began_s;
    v->saving_s += s->blocked_s;
    s->under_way = true;
    return KILTER_OK;
}

kilter_status kl_saving_finish(kilter_loop *l, kilter_error *error) {
    kl_saving *s = &l->saver->save;
    double began_s = kl_loop_now_s(l);
    kilter_status status = kl_saving_look(l, error);
    while (status == KILTER_OK && s->under_way) {
        kl_group_rest(&l->bundle->group, false);
        status = kl_group_look(&l->bundle->group, kl_loop_now_s(l), error);
        if (status == KILTER_OK)
            status = kl_saving_look(l, error);
    }
    l->saver->saving_s += kl_loop_now_s(l) - began_s;
    return status == KILTER_OK ? kl_requests_await(&l->bundle->group, &s->requests, error) : status;
}

void kl_saving_free(kl_saving *s) {
    if (s->job.save)
        join(s);
    for (size_t v = 0; s->values && v < s->plan.facts.values; v++)
        free(s->values[v].at);
    free(s->values);
    free(s->share.pieces);
    kl_parcel_free(&s->content);
    kl_ckpt_plan_free(&s->plan);
    kl_requests_free(&s->requests);
    free(s->path);
    free(s->copy);
    free(s->bytes);
    free(s->layout);
}
