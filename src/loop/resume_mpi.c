/* Continue from a checkpoint. Rank 0 looks for the newest valid checkpoint, and all ranks read their rows
 * from it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop_mpi.h"

typedef enum kl_found { KL_FOUND_NOTHING, KL_FOUND_FILE, KL_FOUND_FAILURE } kl_found;

/* The message of rank 0 about the file that it found. The positions of the file's parts follow the
 * struct. */
typedef struct found {
    kilter_error error;
    uint64_t what, generation, content_bytes;
    uint64_t files; /* number of generations (checkpoint files) that exist */
    kl_ckpt_facts facts;
    uint64_t at[];
} found;

typedef struct search { /* The generations (checkpoint files) that rank 0 has not refused yet. */
    uint64_t *list;
    size_t count, next;
} search;

/* A rank's judgement of a checkpoint file. The worst judgement of all ranks counts. */
typedef enum kl_verdict_on_file { KL_UNREADABLE, KL_DAMAGED, KL_VALID } kl_verdict_on_file;

static void warn(const kilter_loop *l, const kilter_error *why) {
    fprintf(stderr, "rank %d: loop '%s': the checkpoint %s; Kilter tries an older one\n",
            l->bundle->group.rank, l->name, why->text);
}

/* --- how rank 0 finds a checkpoint file --- */

static kilter_status foreign(const char *path, const kilter_error *why, kilter_error *error) {
    return kl_fail(error, KILTER_ERR_RANGE,
                   "the checkpoint '%.180s' belongs to another program: %.200s; name another checkpoint, or "
                   "remove it",
                   path, why->text);
}

/* Find the parts of a checkpoint file, and compare them with the parts that this program would write. */
static kilter_status examine_parts(kilter_loop *l, const char *path, kl_ckpt_plan *plan,
                                   const kl_ckpt_plan *own, kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    kilter_status status = l->saver->library->read_parts(path, plan, &why);
    if (status == KILTER_ERR_INPUT)
        return kl_fail(error, status, "'%.200s' is damaged: %.200s", path, why.text);
    if (status == KILTER_OK)
        status = kl_ckpt_parts_fit(plan, own, &why);
    return status == KILTER_OK ? KILTER_OK : foreign(path, &why, error);
}

/* Compare a checkpoint file with the program. KILTER_ERR_RANGE: the file belongs to another program;
 * KILTER_ERR_INPUT: the file is damaged */
static kilter_status examine(kilter_loop *l, const char *path, kl_ckpt_plan *plan, kilter_error *error) {
    kl_ckpt_facts facts = {.version = 0}, ours = kl_loop_facts(l);
    kl_ckpt_plan own = {.parts = NULL};
    kilter_error why = {KILTER_OK, ""};
    kilter_status status = kl_ckpt_check_seal(path, error);
    if (status == KILTER_OK)
        status = l->saver->library->read_facts(path, &facts, error);
    if (status != KILTER_OK)
        return status;
    if (kl_ckpt_facts_fit(&facts, &ours, &why) != KILTER_OK)
        return foreign(path, &why, error);
    if (kl_loop_plan(l, &facts, 0, plan) && kl_loop_plan(l, &ours, 0, &own))
        status = examine_parts(l, path, plan, &own, error);
    else
        status = kl_fail(error, KILTER_ERR_MEMORY, "reading '%.200s': memory ran out", path);
    kl_ckpt_plan_free(&own);
    return status;
}

/* Find the next checkpoint file (generation) that seems valid. Only rank 0 calls this. */
static void look_for_file(kilter_loop *l, search *s, found *f) {
    kl_saver *v = l->saver;
    f->what = KL_FOUND_NOTHING;
    while (s->next < s->count && f->what == KL_FOUND_NOTHING) {
        kl_ckpt_plan *plan = &v->save.plan;
        char *path = kl_ckpt_path(&v->folder, s->list[s->next]);
        f->error = (kilter_error){KILTER_OK, ""};
        f->generation = s->list[s->next++];
        kl_ckpt_plan_free(plan);
        kilter_status status = path ? examine(l, path, plan, &f->error)
                                    : kl_fail(&f->error, KILTER_ERR_MEMORY, "memory ran out");
        free(path);
        if (status == KILTER_ERR_INPUT)
            warn(l, &f->error);
        else
            f->what = status == KILTER_OK ? KL_FOUND_FILE : KL_FOUND_FAILURE;
    }
    if (f->what != KL_FOUND_FILE)
        return;
    f->facts = v->save.plan.facts;
    for (size_t i = 0; i < v->save.plan.count; i++)
        f->at[i] = v->save.plan.parts[i].at;
    if (f->facts.content)
        f->content_bytes = kl_ckpt_content(&v->save.plan)->rows;
}

/* --- reading --- */

static kilter_status read_rows(const kilter_loop *l, const kl_ckpt_file *file, kilter_error *why) {
    kl_span own;
    kilter_status status = KILTER_OK;
    for (size_t a = 0; a < l->rank.layout.array_count; a++) {
        const kl_array *array = &l->rank.layout.arrays[a];
        for (size_t k = 0; kl_loop_array_own(l, array, k, &own) && status == KILTER_OK; k++)
            status = kl_ckpt_read_rows(file, a, own, kl_row_at(array, own.lo), why);
    }
    return status == KILTER_OK ? kl_ckpt_read_values(file, l->kept.list, why) : status;
}

static kilter_status read_content(kilter_loop *l, const kl_ckpt_file *file, kilter_error *why) {
    kl_parcel *p = &l->saver->save.content;
    kl_span own;
    kl_parcel_free(p);
    p->peer = -1;
    if (!l->rank.content.on)
        return KILTER_OK;
    for (size_t k = 0; kl_rank_own(&l->rank, k, &own); k++)
        if (!kl_parcel_add(p, own))
            return kl_fail(why, KILTER_ERR_MEMORY, "memory ran out");
    return kl_ckpt_read_content(file, p, why);
}

/* Read this rank's part of a checkpoint file. */
static kilter_status read_part(kilter_loop *l, const found *f, kilter_error *why) {
    kl_saver *v = l->saver;
    kl_ckpt_plan *plan = &v->save.plan;
    kl_ckpt_file file;
    char *path = kl_ckpt_path(&v->folder, f->generation);
    kl_ckpt_plan_free(plan);
    if (!path || !kl_loop_plan(l, &f->facts, f->content_bytes, plan)) {
        free(path);
        return kl_fail(why, KILTER_ERR_MEMORY, "memory ran out");
    }
    for (size_t i = 0; i < plan->count; i++)
        plan->parts[i].at = f->at[i];
    kilter_status status = kl_ckpt_open(path, plan, &file, why);
    if (status == KILTER_OK)
        status = read_rows(l, &file, why);
    if (status == KILTER_OK)
        status = read_content(l, &file, why);
    kl_ckpt_close(&file);
    free(path);
    return status;
}

/* Let each rank read its rows, and let the ranks agree whether all of them succeeded. */
static kilter_status read_file(kilter_loop *l, const found *f, uint64_t *verdict, kilter_error *error) {
    kilter_error why = {KILTER_OK, ""};
    kilter_status status = read_part(l, f, &why);
    *verdict = status == KILTER_OK ? KL_VALID : status == KILTER_ERR_INPUT ? KL_DAMAGED : KL_UNREADABLE;
    if (*verdict == KL_DAMAGED)
        warn(l, &why);
    status = kl_group_least(&l->bundle->group, verdict, 1, error);
    if (status != KILTER_OK || *verdict != KL_UNREADABLE)
        return status;
    return kl_fail(error, KILTER_ERR_SYSTEM, "resuming loop '%s': %s", l->name,
                   why.status != KILTER_OK ? why.text : "another rank cannot read its rows");
}

/* --- resuming --- */

static kilter_status agree_on_values(kilter_loop *l, kilter_error *error) {
    static const char *const names[] = {"number of kept values", "names or sizes of kept values"};
    uint64_t values[] = {l->kept.count, 0};
    const char *differs;
    for (size_t v = 0; v < l->kept.count; v++) {
        values[1] = kl_hash(l->kept.list[v].name, strlen(l->kept.list[v].name), values[1]);
        values[1] = kl_hash(&l->kept.list[v].bytes, sizeof l->kept.list[v].bytes, values[1]);
    }
    kilter_status status = kl_group_agree(&l->bundle->group, values, names, 2, &differs, error);
    if (status == KILTER_OK && differs)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "resuming loop '%s': ranks differ in the %s; all ranks must declare the same values",
                       l->name, differs);
    return status;
}

/* Continue to count sweeps and seconds from the values in the file that was found. All newer checkpoint files
 * are damaged. */
static void go_on_from(kilter_loop *l, const found *f) {
    kl_saver *v = l->saver;
    v->sweeps_before = v->saved_sweeps = f->facts.sweeps;
    v->before_s = f->facts.elapsed_s;
    v->failures = f->facts.failures + !f->facts.stopped;
    if (l->bundle->group.rank > 0)
        return;
    v->folder.damaged = (kl_span){f->generation + 1, v->newest + 1};
    v->failures += kl_ckpt_note_start(&v->folder, f->generation);
}

/* From now on, checkpoints are written. f: the file from which the loop continues; NULL: the loop begins
 * anew. Collective. */
static kilter_status settle(kilter_loop *l, const found *f, kilter_error *error) {
    kl_saver *v = l->saver;
    if (f)
        go_on_from(l, f);
    uint64_t fits = kl_saving_prepare(l);
    kilter_status status = kl_group_least(&l->bundle->group, &fits, 1, error);
    if (status == KILTER_OK && !fits)
        return kl_fail(error, KILTER_ERR_MEMORY, "checkpoints of loop '%s': memory ran out", l->name);
    v->settled = true;
    v->since_s = v->word_s = kl_loop_now_s(l);
    v->word_sweep = v->sweeps_before;
    kl_schedule_init(&v->schedule, v->sweeps_before);
    return status;
}

/* List the generations of checkpoints, and remove unfinished files of dead programs. Only rank 0 calls
 * this. */
static void list_files(kilter_loop *l, search *s, found *f) {
    kl_saver *v = l->saver;
    if (kl_ckpt_list(&v->folder, &s->list, &s->count, &f->error) != KILTER_OK) {
        f->what = KL_FOUND_FAILURE;
        return;
    }
    kl_ckpt_clean(&v->folder);
    v->newest = s->count > 0 ? s->list[0] : 0;
    f->files = s->count;
    look_for_file(l, s, f);
}

static kilter_status tell(kilter_loop *l, found *f, size_t bytes, kilter_error *error) {
    kl_mail mail = {.data = f, .bytes = bytes, .tag = KL_TAG_SAVE};
    return kl_group_tell(&l->bundle->group, &l->saver->save.requests, mail, error);
}

/* Load the newest checkpoint file (generation) whose rows are valid on all ranks. */
static kilter_status load_newest(kilter_loop *l, search *s, found *f, size_t bytes, kilter_error *error) {
    uint64_t verdict = KL_DAMAGED;
    if (l->bundle->group.rank == 0)
        list_files(l, s, f);
    for (;;) {
        kilter_status status = tell(l, f, bytes, error);
        if (status == KILTER_OK && f->what == KL_FOUND_FILE)
            status = read_file(l, f, &verdict, error);
        if (status != KILTER_OK || f->what != KL_FOUND_FILE || verdict == KL_VALID)
            return status;
        if (l->bundle->group.rank == 0)
            look_for_file(l, s, f);
    }
}

static kilter_status outcome(const kilter_loop *l, const found *f, kilter_error *error) {
    if (f->what == KL_FOUND_FAILURE)
        return kl_fail(error, f->error.status == KILTER_ERR_RANGE ? KILTER_ERR_INPUT : f->error.status,
                       "resuming loop '%s': %.450s", l->name, f->error.text);
    if (f->what == KL_FOUND_NOTHING && f->files > 0)
        return kl_fail(error, KILTER_ERR_INPUT,
                       "resuming loop '%s': none of its checkpoints is valid; remove them to begin anew",
                       l->name);
    return KILTER_OK;
}

static kilter_status unpack(kilter_loop *l, kilter_error *error) {
    kl_parcel *p = &l->saver->save.content;
    kilter_status status = l->rank.content.on ? kl_loop_unpack(l, p, 1, error) : KILTER_OK;
    kl_parcel_free(p);
    return status;
}

static kilter_status resume(kilter_loop *l, kilter_error *error) {
    double began_s = kl_loop_now_s(l);
    search s = {NULL, 0, 0};
    size_t parts = 2 * (l->rank.layout.array_count + 1) + l->kept.count + 1;
    size_t bytes = sizeof(found) + parts * sizeof(uint64_t);
    found *f = calloc(1, bytes);
    uint64_t fits = f != NULL;
    kilter_status status = kl_group_least(&l->bundle->group, &fits, 1, error);
    if (status == KILTER_OK && (!fits || !f)) {
        free(f);
        return kl_fail(error, KILTER_ERR_MEMORY, "resuming loop '%s': memory ran out", l->name);
    }
    if (status == KILTER_OK)
        status = load_newest(l, &s, f, bytes, error);
    free(s.list);
    if (status != KILTER_OK)
        return status; /* not freed after a failure, because MPI may still write into the message */
    status = outcome(l, f, error);
    if (status == KILTER_OK && f->what == KL_FOUND_FILE)
        status = unpack(l, error);
    bool continues = f->what == KL_FOUND_FILE;
    if (status == KILTER_OK)
        status = settle(l, continues ? f : NULL, error);
    if (status == KILTER_OK && continues)
        l->saver->load_s = kl_loop_now_s(l) - began_s;
    free(f);
    return status;
}

kilter_status kilter_loop_resumed(kilter_loop *l, uint64_t *sweeps, kilter_error *error) {
    kilter_status status = kl_loop_enter(l, "kilter_loop_resumed()", error);
    if (status != KILTER_OK)
        return status;
    const char *wrong = NULL;
    if (!kl_loop_leads(l))
        wrong = "this loop follows another loop; call the function for that loop";
    else if (l->bundle->phase == KL_WITHIN || l->bundle->begun)
        wrong = "the loop has begun; call the function before the first kilter_loop_begin()";
    else if (l->bundle->resumed)
        wrong = "the function was called already";
    else if (!sweeps)
        wrong = "the pointer for the number of sweeps is NULL";
    if (wrong)
        return kl_fail(error, KILTER_ERR_USAGE, "kilter_loop_resumed() of loop '%s': %s", l->name, wrong);
    kl_step(&l->bundle->steps, KL_CALL_RESUMED, 0, 0, 0);
    status = kl_steps_meet(&l->bundle->steps, NULL, &l->bundle->failure);
    if (status == KILTER_OK && l->saver)
        status = agree_on_values(l, &l->bundle->failure);
    if (status == KILTER_OK && l->saver)
        status = resume(l, &l->bundle->failure);
    if (status == KILTER_ERR_INPUT || status == KILTER_ERR_SYSTEM || status == KILTER_ERR_USAGE)
        kl_loop_end_together(l);
    if (status != KILTER_OK)
        return kl_loop_failed(l, status, error);
    l->bundle->resumed = true;
    *sweeps = l->saver ? l->saver->sweeps_before : 0;
    return KILTER_OK;
}

/* --- programs that do not call kilter_loop_resumed() --- */

/* Check whether checkpoints exist, and remove unfinished files of dead programs. Only rank 0 calls this. */
static kilter_status find_none(const kilter_loop *l, kilter_error *why) {
    const kl_ckpt_folder *f = &l->saver->folder;
    uint64_t newest = 0;
    kilter_status status = kl_ckpt_newest(f, &newest, why);
    if (status == KILTER_OK && newest > 0)
        return kl_fail(why, KILTER_ERR_USAGE,
                       "there are checkpoints '%.180s/%.80s.*.h5' already; call kilter_loop_resumed() first, "
                       "or remove them",
                       f->path, f->stem);
    if (status == KILTER_OK)
        kl_ckpt_clean(f);
    return status;
}

kilter_status kl_loop_settle(kilter_loop *l, kilter_error *error) {
    kl_saver *v = l->saver;
    if (!v || v->settled)
        return KILTER_OK;
    kilter_error *why = &v->failure;
    kilter_status status = agree_on_values(l, error);
    if (status == KILTER_OK && l->bundle->group.rank == 0)
        find_none(l, why);
    if (status == KILTER_OK)
        status = kl_group_tell(&l->bundle->group, &v->save.requests,
                               (kl_mail){.data = why, .bytes = sizeof *why, .tag = KL_TAG_SAVE}, error);
    if (status != KILTER_OK || why->status == KILTER_OK)
        return status == KILTER_OK ? settle(l, NULL, error) : status;
    kl_fail(error, why->status, "kilter_loop_begin() of loop '%s': %.450s", l->name, why->text);
    kl_loop_end_together(l);
    return why->status;
}
