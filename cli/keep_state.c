/* The lines of the file `state` about the program and its attempt. A later keeper reads them before it
 * continues the run. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keep.h"

static uint64_t program_hash(const kl_keep_options *o) {
    uint64_t hash = 0;
    for (size_t i = 0; o->program[i]; i++)
        hash = kl_hash(o->program[i], strlen(o->program[i]) + 1, hash);
    return hash;
}

void kl_keep_state_put(const kl_keep_options *options, const char *engine, kl_buffer *text) {
    char host[KL_HOST_BYTES];
    kl_host_name(host);
    kl_put_field_count(text, "version", 1);
    kl_put_field(text, "program", options->program[0]);
    kl_put_field_count(text, "program_hash", program_hash(options));
    kl_put_field(text, "keeper_host", host);
    kl_put_field(text, "engine", engine);
}

/* Copy the value of the line `name`. Ignore a value that is too long: no keeper writes such a value, so the
 * file is damaged. */
static void take_text(const kl_field *f, const char *name, char *to, size_t room) {
    size_t bytes = strlen(f->value) + 1;
    if (kl_field_is(f, name) && bytes <= room)
        memcpy(to, f->value, bytes);
}

kl_keep_state kl_keep_state_read(const kl_buffer *text) {
    kl_keep_state s = {.version = 0};
    kl_fields fields = kl_fields_of((const char *)text->data, text->size);
    kl_field f;
    bool bad;
    while (kl_fields_next(&fields, &f, &bad)) {
        if (kl_field_is(&f, "version"))
            s.version = kl_field_count(&f);
        else if (kl_field_is(&f, "program_hash"))
            s.hash = kl_field_count(&f);
        else if (kl_field_is(&f, "attempt"))
            s.attempt = kl_field_count(&f);
        for (int i = KL_KEEPER_STARTING; kl_field_is(&f, "state") && i <= KL_KEEPER_KILLING; i++)
            s.runs |= strcmp(f.value, kl_keeper_state_name((kl_keeper_state)i)) == 0;
        take_text(&f, "program", s.program, sizeof s.program);
        take_text(&f, "keeper_host", s.host, sizeof s.host);
        take_text(&f, "engine", s.engine, sizeof s.engine);
        take_text(&f, "job", s.job, sizeof s.job);
        take_text(&f, "jobs", s.jobs, sizeof s.jobs);
    }
    return s;
}

/* Return whether the attempt began on another host. The lock of the attempt's guard can be checked only on
 * that host. */
static bool is_elsewhere(const char *folder, const kl_keep_state *s) {
    char host[KL_HOST_BYTES];
    char *guard = kl_keep_file(folder, "running");
    kl_host_name(host);
    bool elsewhere = strcmp(s->host, host) != 0 && guard && access(guard, F_OK) == 0;
    free(guard);
    return elsewhere;
}

/* Refuse to start while an attempt of an earlier keeper may run: two attempts must not run at the same
 * time. */
static kilter_status check_attempt(const kl_keep_start *start, const kl_keep_state *s, kilter_error *error) {
    bool was_slurm = strcmp(s->engine, "slurm") == 0, is_slurm = start->options->slurm;
    kl_keeper_end end;
    if (!s->runs || kl_keep_read_end(start->folder, s->attempt, &end))
        return KILTER_OK;
    if (was_slurm && !is_slurm)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "attempt %llu of '%s' is a job of Slurm, which may still run: give --slurm as before",
                       kl_ull(s->attempt), start->folder);
    if (!was_slurm && is_elsewhere(start->folder, s))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "attempt %llu of '%s' was started on host %.200s, and may still run. Start its keeper "
                       "there; if the host is gone for good, remove the file 'running'",
                       kl_ull(s->attempt), start->folder, s->host);
    if (!was_slurm && is_slurm && kl_keep_start_alive(start))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "attempt %llu of '%s' still runs on this host: start its keeper without --slurm",
                       kl_ull(s->attempt), start->folder);
    return KILTER_OK;
}

kilter_status kl_keep_state_check(const kl_keep_start *start, const kl_keep_state *s, kilter_error *error) {
    if (s->version != 1)
        return kl_fail(error, KILTER_ERR_INPUT, "'%s/state' is not the state of a kept run of this version",
                       start->folder);
    if (s->hash != program_hash(start->options))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "'%s' keeps a run of '%.200s' with other arguments; name another folder with --folder",
                       start->folder, s->program);
    return check_attempt(start, s, error);
}
