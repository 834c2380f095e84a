/* Submit, follow and cancel jobs of Slurm that run workers of a farm, and write their scripts. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fitness/fitness.h"
#include "grow.h"
#include "keep.h"

enum {
    AGAIN_MOST = 100,
    WARNING_S = 30
}; /* AGAIN_MOST: most restarts of a failed worker on a node; WARNING_S: seconds between Slurm's warning and
      the time limit */
static const double COMMAND_LIMIT_S = 30;
static const double ASK_LEAST_S = 0.25, ASK_MOST_S = 10;
static const double WARN_LEAST_S = 300; /* jobs with a time limit of fewer seconds get no warning, because
                                           Slurm can send it a minute early */

static void put_text(kl_buffer *out, const char *text) {
    kl_put_bytes(out, text, strlen(text));
}

static void put_word(kl_buffer *out, const char *word) {
    kl_put_quoted(out, word);
    put_text(out, " ");
}

/* Run a command line in a shell and wait for it. Return its exit code; `said` receives what it printed. */
static int run_line(const char *line, const char *argument, kl_buffer *said, kilter_error *error) {
    char *const words[] = {"sh", "-c", (char *)line, "sh", (char *)argument, NULL};
    kl_capture run = {0};
    if (!line || kl_capture_start(&run, words, COMMAND_LIMIT_S, error) != KILTER_OK)
        return -1;
    int code = kl_capture_await(&run);
    if (said)
        kl_put_bytes(said, run.text.data, run.text.size);
    kl_capture_free(&run);
    return code;
}

kilter_status kl_grow_slurm_check(kilter_error *error) {
    if (run_line("for tool in sbatch squeue scancel; do command -v $tool || exit 1; done >/dev/null", "",
                 NULL, NULL) == 0)
        return KILTER_OK;
    return kl_fail(error, KILTER_ERR_USAGE, "--slurm: there is no sbatch, squeue or scancel here");
}

/* --- scripts --- */

/* Append the script that starts a worker for each processor of a node. A signal that tells workers to
 * leave reaches all processes of a job. The scripts' shells ignore the signal and wait for their workers. */
static void put_workers(const kl_grow_options *o, const char *folder, kl_buffer *out) {
    char numbers[64];
    size_t own = kl_own_words_of(o->program);
    snprintf(numbers, sizeof numbers, "again=%d\n", AGAIN_MOST);
    put_text(out, "#!/bin/sh\n# The workers of a farm on one node.\n");
    put_text(out, numbers);
    put_text(out, "one() {\n    trap : TERM\n    while :; do\n        ");
    for (size_t i = 0; i < own; i++)
        put_word(out, o->program[i]);
    put_text(out, "--join ");
    put_word(out, o->join);
    put_text(out, "--key ");
    kl_put_quoted(out, folder);
    put_text(out, "/key ");
    for (size_t i = own; o->program[i]; i++)
        put_word(out, o->program[i]);
    put_text(out,
             "</dev/null\n        code=$?\n"
             "        [ $code -gt 128 ] && [ $code != 143 ] && [ $((again -= 1)) -ge 0 ] || exit $code\n");
    put_text(out, "        echo \"kilter run: a worker on $(hostname) ended with code $code, and is started "
                  "again\" >&2\n    done\n}\n");
    put_text(out, "trap : TERM\nleft=${SLURM_CPUS_ON_NODE:-$(nproc)}\n"
                  "while [ \"$left\" -gt 0 ]; do\n    one &\n    left=$((left - 1))\ndone\n"
                  "until wait; do :; done\n");
}

static void put_job(const char *here, const char *folder, kl_buffer *out) {
    put_text(out, "#!/bin/sh\n# A job with workers of a farm.\ncd ");
    kl_put_quoted(out, here);
    put_text(out,
             " || exit 126\nexec srun --mpi=none --cpu-bind=none --kill-on-bad-exit=0 --ntasks-per-node=1 "
             "--nodes=\"$SLURM_JOB_NUM_NODES\" --ntasks=\"$SLURM_JOB_NUM_NODES\" sh ");
    kl_put_quoted(out, folder);
    put_text(out, "/workers.sh\n");
}

static kilter_status write_file(const kl_grow_slurm *s, const char *name, kl_buffer *text,
                                kilter_error *error) {
    kilter_status status = text->failed ? kl_fail(error, KILTER_ERR_MEMORY, "writing a job: memory ran out")
                                        : kl_keep_write(s->folder, name, text, error);
    kl_buffer_free(text);
    return status;
}

kilter_status kl_grow_slurm_write(const kl_grow_slurm *s, const kl_grow_options *o, kilter_error *error) {
    kl_buffer job = {0}, workers = {0};
    char *here = getcwd(NULL, 0);
    put_job(here ? here : "/", s->folder, &job);
    free(here);
    put_workers(o, s->folder, &workers);
    kilter_status status = write_file(s, "job.sh", &job, error);
    kilter_status second = write_file(s, "workers.sh", &workers, error);
    return status != KILTER_OK ? status : second;
}

/* --- submitting --- */

/* Copy the value of an option of sbatch, which may be written "--time=5" or "-t 5". false: the option is
 * not given. */
static bool find_option(const char *options, const char *name, char letter,
                        char value[KL_GROWTH_NODES_BYTES]) {
    size_t bytes = strlen(name);
    bool found = false;
    for (const char *at = options; *at; at += strcspn(at, " \t")) {
        at += strspn(at, " \t");
        const char *from = strncmp(at, name, bytes) == 0 && strchr("= ", at[bytes]) ? at + bytes
                           : at[0] == '-' && at[1] == letter                        ? at + 2
                                                                                    : NULL;
        if (!from || !*from)
            continue;
        from += strspn(from, "= \t");
        snprintf(value, KL_GROWTH_NODES_BYTES, "%.*s", (int)strcspn(from, " \t"), from);
        found = true;
    }
    return found;
}

/* Return whether the time limit in the options is so short that Slurm cannot warn the job before it. A limit
 * that is only a number is in minutes. */
static bool is_short(const char *options) {
    char value[KL_GROWTH_NODES_BYTES];
    if (!find_option(options, "--time", 't', value))
        return false;
    double limit_s = value[strspn(value, "0123456789")] ? kl_slurm_time_s(value) : 60 * strtod(value, NULL);
    return limit_s > 0 && limit_s < WARN_LEAST_S;
}

/* Append the option that excludes nodes. Repeat the user's own excluded nodes, because sbatch uses only the
 * last list. */
static void put_excluded(const kl_grow_slurm *s, const kl_growth *g, kl_buffer *line) {
    char own[KL_GROWTH_NODES_BYTES];
    const char *before = " --exclude=";
    if (find_option(s->options, "--exclude", 'x', own)) {
        put_text(line, before);
        put_text(line, own);
        before = ",";
    }
    for (uint64_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].excluded) {
            put_text(line, before);
            put_text(line, g->nodes[i].name);
            before = ",";
        }
}

static void put_line(const kl_grow_slurm *s, const kl_growth *g, kl_buffer *line) {
    char warning[64] = "";
    if (!strstr(s->options, "--signal") && !is_short(s->options))
        snprintf(warning, sizeof warning, " --signal=TERM@%d", WARNING_S);
    put_text(line, "exec sbatch --parsable --no-requeue --open-mode=append");
    put_text(line, warning);
    put_text(line, " --job-name=");
    put_word(line, s->name);
    put_text(line, s->options);
    put_excluded(s, g, line);
    put_text(line, " --output=\"$1/output\" \"$1/job.sh\" 2>&1");
    kl_put_u8(line, 0);
}

/* Find the job's number in the output of sbatch. The number stands alone on a line; sbatch may print other
 * lines, too. */
static bool take_number(const char *said, char id[KL_GROWTH_ID_BYTES]) {
    for (const char *at = said; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits >= KL_GROWTH_ID_BYTES || !strchr(";\n", at[digits]))
            continue;
        snprintf(id, KL_GROWTH_ID_BYTES, "%.*s", (int)digits, at);
        return true;
    }
    return false;
}

kilter_status kl_grow_slurm_submit(const kl_grow_slurm *s, const kl_growth *g, char id[KL_GROWTH_ID_BYTES],
                                   kilter_error *error) {
    kl_buffer line = {0}, said = {0};
    kilter_status status = KILTER_OK;
    put_line(s, g, &line);
    int code = line.failed ? -1 : run_line((const char *)line.data, s->folder, &said, NULL);
    kl_put_u8(&said, 0);
    const char *text = said.failed ? "" : (const char *)said.data;
    if (code != 0 || !take_number(text, id))
        status = kl_fail(error, KILTER_ERR_SYSTEM, "%.*s", (int)strcspn(text, "\n"),
                         *text ? text : "sbatch did not answer");
    kl_buffer_free(&line);
    kl_buffer_free(&said);
    return status;
}

void kl_grow_slurm_cancel(const char *ids, bool gently) {
    char *line = kl_text("exec scancel %s %s >/dev/null 2>&1", gently ? "--signal=TERM" : "", ids);
    run_line(line, "", NULL, NULL);
    free(line);
}

/* --- asking squeue for the states of jobs --- */

/* Return whether to ask squeue again. Ask often after a change, because more changes may follow, and then
 * more and more rarely. */
static bool is_due(const kl_grow_slurm *s, double now_s) {
    double pause_s = (now_s - s->changed_s) / 10;
    pause_s = pause_s < ASK_LEAST_S ? ASK_LEAST_S : pause_s > ASK_MOST_S ? ASK_MOST_S : pause_s;
    return now_s - s->asked_s >= pause_s;
}

static void begin_to_ask(kl_grow_slurm *s, const kl_growth *g) {
    kl_buffer line = {0};
    put_text(&line, "exec squeue -h -t all -o '%A|%T|%L|%N' -j ");
    for (uint64_t i = 0; i < g->job_count; i++) {
        put_text(&line, i > 0 ? "," : "");
        put_text(&line, g->jobs[i].id);
    }
    put_text(&line, " 2>&1");
    kl_put_u8(&line, 0);
    char *const words[] = {"sh", "-c", (char *)line.data, NULL};
    s->asks = !line.failed && kl_capture_start(&s->queue, words, COMMAND_LIMIT_S, NULL) == KILTER_OK;
    kl_buffer_free(&line);
}

/* Store the answer of squeue. Ignore errors of squeue, with one exception: if Slurm does not know the jobs
 * any more, store that no job is left. */
static bool take_answer(kl_grow_slurm *s, double now_s) {
    const char *text = s->queue.text.size > 0 ? (const char *)s->queue.text.data : "";
    bool none = strstr(text, "Invalid job id") != NULL, good = s->queue.code == 0 || none;
    char *answer = good ? kl_text("%s", none ? "" : text) : NULL;
    kl_capture_free(&s->queue);
    s->asks = false;
    if (!answer)
        return false;
    if (!s->answer || strcmp(s->answer, answer) != 0)
        s->changed_s = now_s;
    free(s->answer);
    s->answer = answer;
    return true;
}

bool kl_grow_slurm_ask(kl_grow_slurm *s, const kl_growth *g, const char **answer) {
    double now_s = kl_monotonic_s();
    bool got = s->asks && kl_capture_over(&s->queue) && take_answer(s, now_s);
    if (!got && !s->asks && g->job_count > 0 && is_due(s, now_s)) {
        s->asked_s = now_s;
        s->asked = g->submitted;
        begin_to_ask(s, g);
    }
    *answer = s->answer;
    return got;
}

static kl_growth_stage stage_of(const char *state, size_t bytes) {
    char name[KL_SLURM_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)bytes, state);
    switch (kl_slurm_stage_of(name)) {
    case KL_SLURM_WAITS:
        return KL_GROWTH_WAITING;
    case KL_SLURM_OVER:
        return KL_GROWTH_OVER;
    default:
        return KL_GROWTH_RUNNING; /* if the state is not known, the job is not given up */
    }
}

static void expand(const char *list, char nodes[KL_GROWTH_NODES_BYTES]) {
    kl_host_list hosts = {0};
    size_t at = 0;
    *nodes = '\0';
    if (!*list || kl_host_list_slurm(list, NULL, &hosts, NULL) != KILTER_OK)
        return;
    for (size_t i = 0; i < hosts.count; i++)
        if (at + strlen(hosts.at[i].name) + 2 < KL_GROWTH_NODES_BYTES)
            at += (size_t)snprintf(nodes + at, KL_GROWTH_NODES_BYTES - at, "%s%s", at ? "," : "",
                                   hosts.at[i].name);
    kl_host_list_free(&hosts);
}

kl_growth_state kl_grow_slurm_state(const char *answer, const char *id, char nodes[KL_GROWTH_NODES_BYTES]) {
    size_t bytes = strlen(id);
    char left[32], list[KL_GROWTH_NODES_BYTES];
    *nodes = '\0';
    for (const char *at = answer; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, id, bytes) != 0 || at[bytes] != '|')
            continue;
        const char *state = at + bytes + 1, *time = state + strcspn(state, "|\n");
        const char *names = *time == '|' ? time + 1 + strcspn(time + 1, "|\n") : time;
        snprintf(left, sizeof left, "%.*s", (int)(names > time ? names - time - 1 : 0), time + 1);
        snprintf(list, sizeof list, "%.*s", (int)(*names == '|' ? strcspn(names + 1, "\n") : 0), names + 1);
        expand(list, nodes);
        double left_s = kl_slurm_time_s(left);
        return (kl_growth_state){.id = id,
                                 .stage = stage_of(state, (size_t)(time - state)),
                                 .limit_s = left_s > 0 ? left_s : 0,
                                 .nodes = nodes};
    }
    return (kl_growth_state){.id = id, .stage = KL_GROWTH_OVER, .nodes = nodes};
}

void kl_grow_slurm_close(kl_grow_slurm *s) {
    if (s->asks)
        kl_capture_free(&s->queue);
    free(s->answer);
    free(s->folder);
}
