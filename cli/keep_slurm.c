/* Attempts that are batch jobs of Slurm. Each attempt is a new job, because a requeued job would wait for two
 * minutes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keep.h"

static const double COMMAND_LIMIT_S = 30; /* seconds that a command of Slurm gets to finish */
static const double FOLLOW_S = 1;         /* seconds between two queries of the job's state */
static const double GONE_PATIENCE_S = 5;  /* seconds that a shared file system gets to show the file with
                                           * the job's end */
static const double UNCLEAR_S =
    10; /* seconds to wait for a job in the queue if it is unclear whether sbatch submitted it */
static const uint32_t WARNING_S = 30; /* Slurm warns a job at least this many seconds before its time limit */

typedef struct wanted { /* the user's sbatch options that Kilter must know */
    char partition[KL_KEEPER_TEXT_BYTES], constraint[KL_KEEPER_TEXT_BYTES];
    kl_buffer excluded, required; /* hosts of --exclude and of --nodelist; their names are separated by commas
                                   * and ended by a NUL */
} wanted;

struct kl_keep_slurm {
    const kl_keep_start *start;
    const char *options;
    wanted wanted;
    char names[KL_SLURM_NAME_BYTES];     /* first part of the names of all jobs of this run */
    char name[KL_SLURM_NAME_BYTES + 32]; /* name of the present attempt's job */
    char job[KL_SLURM_JOB_BYTES];
    kl_slurm_job state;
    bool gone;                      /* squeue does not know the job any more */
    bool began;                     /* the job has begun to run */
    bool cancelled;                 /* Slurm queued the job again, so Kilter cancelled it */
    bool killed;                    /* the steps of the job were killed, but not its batch script */
    bool seeks;                     /* sbatch printed no number, so Kilter looks in the queue for a job with
                                     * this name */
    bool unclear;                   /* Slurm may have the job although sbatch printed no number */
    char why[KL_KEEPER_TEXT_BYTES]; /* what sbatch printed instead of a number */
    double submitted_s;
    double followed_s, gone_s, limit_s;
    kl_capture queue, nodes;
    bool follows, looks;
    kl_keeper_view *views;
    kl_slurm_node *node;
    uint64_t node_room, view_room;
    size_t count;
};

/* --- options --- */

/* Read an sbatch option with a list of hosts such as "n[1-3],m". Append the hosts to `names`. */
static kilter_status take_list(const char *options, const char *name, char letter, kl_buffer *names,
                               kilter_error *error) {
    char value[KL_KEEPER_TEXT_BYTES];
    kl_slurm_option(options, name, letter, value);
    return kl_slurm_expand(value, names)
               ? KILTER_OK
               : kl_fail(error, KILTER_ERR_USAGE,
                         "--slurm: --%s: '%s' is not a list of hosts such as n[1-3],m", name, value);
}

static void take_text(const char *options, const char *name, char letter, const char *variable, char *value) {
    const char *set = getenv(variable);
    if (!kl_slurm_option(options, name, letter, value) && set)
        snprintf(value, KL_KEEPER_TEXT_BYTES, "%s", set);
}

static kilter_status read_options(kl_keep_slurm *s, kilter_error *error) {
    wanted *w = &s->wanted;
    const char *refused = kl_slurm_refused(s->options);
    if (refused)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "--slurm: --%s cannot be used, because each attempt is a job that Kilter writes and follows",
            refused);
    take_text(s->options, "partition", 'p', "SBATCH_PARTITION", w->partition);
    take_text(s->options, "constraint", 'C', "SBATCH_CONSTRAINT", w->constraint);
    kilter_status status = take_list(s->options, "exclude", 'x', &w->excluded, error);
    if (status == KILTER_OK)
        status = take_list(s->options, "nodelist", 'w', &w->required, error);
    return status;
}

static const char *text_of(const kl_buffer *names) {
    return names->size > 0 ? (const char *)names->data : "";
}

kilter_status kl_keep_slurm_open(const kl_keep_start *start, kl_keep_slurm **slurm, kilter_error *error) {
    kl_keep_slurm *s = calloc(1, sizeof *s);
    char *const words[] = {
        "sh", "-c", "for tool in sbatch squeue sinfo scancel; do command -v $tool || exit 1; done >/dev/null",
        NULL};
    kl_capture look = {0};
    if (!s)
        return kl_fail(error, KILTER_ERR_MEMORY, "--slurm: memory ran out");
    s->start = start;
    s->options = start->options->slurm;
    kl_slurm_name(s->options, start->options->program[0], kl_token(), s->names);
    kilter_status status = read_options(s, error);
    if (status == KILTER_OK)
        status = kl_capture_start(&look, words, COMMAND_LIMIT_S, error);
    if (status == KILTER_OK && kl_capture_await(&look) != 0)
        status =
            kl_fail(error, KILTER_ERR_USAGE, "--slurm: there is no sbatch, squeue, sinfo or scancel here");
    kl_capture_free(&look);
    *slurm = s;
    if (status == KILTER_OK)
        return status;
    kl_keep_slurm_close(s);
    *slurm = NULL;
    return status;
}

void kl_keep_slurm_close(kl_keep_slurm *s) {
    if (!s)
        return;
    if (s->follows)
        kl_capture_free(&s->queue);
    if (s->looks)
        kl_capture_free(&s->nodes);
    kl_buffer_free(&s->wanted.excluded);
    kl_buffer_free(&s->wanted.required);
    free(s->views);
    free(s->node);
    free(s);
}

void kl_keep_slurm_nodes(const kl_keep_slurm *s, uint32_t *least, uint32_t *most) {
    kl_slurm_nodes_wanted(s->options, least, most);
}

const char *kl_keep_slurm_job(const kl_keep_slurm *s) {
    return s->job;
}

const char *kl_keep_slurm_names(const kl_keep_slurm *s) {
    return s->names;
}

/* Forget everything about the previous attempt's job. */
static void forget(kl_keep_slurm *s) {
    if (s->follows)
        kl_capture_free(&s->queue);
    s->follows = s->gone = s->began = s->cancelled = s->killed = s->seeks = false;
    s->limit_s = s->gone_s = s->followed_s = 0;
    s->state = (kl_slurm_job){.stage = KL_SLURM_WAITS};
    s->job[0] = '\0';
}

static void take_job(kl_keep_slurm *s, const char *job) {
    forget(s);
    snprintf(s->job, sizeof s->job, "%s", job);
}

/* Look in the queue for a job with this attempt's name. Until it is clear whether the job exists, no other
 * job is submitted. */
static void seek(kl_keep_slurm *s, bool unclear, const char *why) {
    forget(s);
    s->seeks = true;
    s->unclear = unclear;
    s->submitted_s = kl_monotonic_s();
    snprintf(s->why, sizeof s->why, "%.*s", (int)strcspn(why, "\n"), why);
}

static void name_job(kl_keep_slurm *s, uint64_t attempt) {
    snprintf(s->name, sizeof s->name, "%s-%llu", s->names, kl_ull(attempt));
}

void kl_keep_slurm_adopt(kl_keep_slurm *s, const char *names, const char *job, uint64_t attempt) {
    if (*names)
        snprintf(s->names, sizeof s->names, "%s", names);
    name_job(s, attempt);
    if (*job)
        take_job(s, job);
    else
        seek(s, true, "its keeper was killed");
}

/* --- submitting --- */

static char *quoted_line(char *const *words) {
    kl_buffer line = {0};
    for (size_t i = 0; words[i]; i++) {
        if (i > 0)
            kl_put_bytes(&line, " ", 1);
        kl_put_quoted(&line, words[i]);
    }
    kl_put_u8(&line, 0);
    if (!line.failed)
        return (char *)line.data;
    kl_buffer_free(&line);
    return NULL;
}

static kilter_status write_script(const kl_keep_slurm *s, const kl_keeper *k, kilter_error *error) {
    char **words = kl_keep_start_words(s->start, k, error), *step = words ? quoted_line(words) : NULL;
    char **variables = kl_keep_start_variables(s->start, k->tally.attempt), *here = getcwd(NULL, 0);
    kl_buffer text = {0};
    kilter_status status =
        words ? kl_fail(error, KILTER_ERR_MEMORY, "writing the job: memory ran out") : error->status;
    const kl_slurm_script script = {.folder = here,
                                    .keep = s->start->folder,
                                    .step = step,
                                    .variables = variables,
                                    .attempt = k->tally.attempt};
    if (step && variables && here) {
        kl_slurm_script_put(&script, &text);
        status = kl_keep_write(s->start->folder, "job.sh", &text, error);
    }
    kl_buffer_free(&text);
    kl_launch_words_free(words);
    kl_launch_words_free(variables);
    free(step);
    free(here);
    return status;
}

/* Return whether no rank may run on a host: a person or Slurm has drained the host, or attempts have failed
 * on it repeatedly. */
static bool is_out(const kl_keeper *k, const char *name) {
    for (uint64_t i = 0; i < k->count; i++) {
        const kl_keeper_host *h = &k->hosts[i];
        if (strcmp(h->name, name) == 0)
            return h->drained || h->leaving || h->failures >= 2;
    }
    return false;
}

static void put_text(kl_buffer *line, const char *text) {
    kl_put_bytes(line, text, strlen(text));
}

static void put_name(kl_buffer *line, const char *option, const char *name, bool *first) {
    put_text(line, *first ? option : ",");
    put_text(line, name);
    *first = false;
}

/* Append the option --exclude with all hosts to exclude. Repeat the hosts of the user's own --exclude,
 * because Slurm uses only the last such option. */
static void put_excluded(const kl_keep_slurm *s, const kl_keeper *k, kl_buffer *line) {
    const char *excluded = text_of(&s->wanted.excluded);
    bool first = *excluded == '\0';
    if (!first) {
        put_text(line, " --exclude=");
        put_text(line, excluded);
    }
    for (uint64_t i = 0; i < k->count; i++)
        if (is_out(k, k->hosts[i].name) && !kl_slurm_listed(excluded, k->hosts[i].name))
            put_name(line, " --exclude=", k->hosts[i].name, &first);
}

/* Remove an excluded host also from the user's list of wanted hosts: Slurm refuses a job that both wants
 * and excludes a host. */
static void put_required(const kl_keep_slurm *s, const kl_keeper *k, kl_buffer *line) {
    char name[KL_KEEPER_NAME_BYTES];
    bool first = true;
    for (const char *at = text_of(&s->wanted.required); *at; at += *at == ',') {
        size_t bytes = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)bytes, at);
        if (!is_out(k, name))
            put_name(line, " --nodelist=", name, &first);
        at += bytes;
    }
}

static char *sbatch_line(const kl_keep_slurm *s, const kl_keeper *k) {
    char warning[32] = "", value[KL_KEEPER_TEXT_BYTES];
    if (!kl_slurm_option(s->options, "signal", 0, value))
        snprintf(warning, sizeof warning, "--signal=B:USR1@%u", WARNING_S);
    char *begin = kl_text("exec sbatch %s %s --parsable --no-requeue --open-mode=append --job-name=%s",
                          warning, s->options, s->name);
    kl_buffer line = {0};
    if (begin)
        put_text(&line, begin);
    free(begin);
    put_required(s, k, &line);
    put_excluded(s, k, &line);
    static const char REST[] = " --output=\"$1/output\" \"$1/job.sh\" 2>\"$1/sbatch.err\"";
    kl_put_bytes(&line, REST, sizeof REST);
    if (!line.failed)
        return (char *)line.data;
    kl_buffer_free(&line);
    return NULL;
}

/* Read the answer of sbatch. If sbatch printed a number, the job exists, whatever else sbatch printed.
 * Otherwise look for the job in the queue. */
static void take_answer(kl_keep_slurm *s, const kl_capture *sbatch) {
    kl_buffer said = {0};
    char job[KL_SLURM_JOB_BYTES];
    kl_keep_read(s->start->folder, "sbatch.err", &said);
    kl_put_u8(&said, 0);
    const char *why = !said.failed && *said.data ? (const char *)said.data : "sbatch said nothing";
    bool refused = sbatch->code > 0 && !kl_slurm_is_unclear(why);
    if (kl_slurm_number(sbatch->text.size > 0 ? (const char *)sbatch->text.data : "", job))
        take_job(s, job);
    else
        seek(s, !refused, sbatch->code < 0 ? "sbatch did not answer" : why);
    kl_buffer_free(&said);
}

kilter_status kl_keep_slurm_begin(kl_keep_slurm *s, const kl_keeper *k, kilter_error *error) {
    name_job(s, k->tally.attempt);
    kilter_status status = write_script(s, k, error);
    char *line = status == KILTER_OK ? sbatch_line(s, k) : NULL;
    char *ended = kl_keep_file(s->start->folder, "ended"), *folder = kl_text("%s", s->start->folder);
    char *const words[] = {"sh", "-c", line, "sh", folder, NULL};
    kl_capture sbatch = {0};
    if (status == KILTER_OK && !(line && ended && folder))
        status = kl_fail(error, KILTER_ERR_MEMORY, "submitting a job: memory ran out");
    if (status == KILTER_OK) {
        unlink(ended);
        status = kl_capture_start(&sbatch, words, COMMAND_LIMIT_S, error);
    }
    if (status == KILTER_OK) {
        kl_capture_await(&sbatch);
        take_answer(s, &sbatch);
    }
    kl_capture_free(&sbatch);
    free(line);
    free(ended);
    free(folder);
    return status;
}

/* --- following the job's state --- */

static void cancel(const kl_keep_slurm *s, const char *how) {
    char *line = *s->job ? kl_text("scancel %s %s 2>/dev/null", how, s->job)
                         : kl_text("scancel --name=%s 2>/dev/null", s->name);
    char *const words[] = {"sh", "-c", line, NULL};
    kl_capture scancel = {0};
    if (line && kl_capture_start(&scancel, words, COMMAND_LIMIT_S, NULL) == KILTER_OK)
        kl_capture_await(&scancel);
    kl_capture_free(&scancel);
    free(line);
}

/* Cancel a job that Slurm has queued again: the job would wait for minutes and then repeat an attempt that
 * has ended. */
static void mind_requeue(kl_keep_slurm *s) {
    s->began |= s->state.stage != KL_SLURM_WAITS;
    if (s->state.stage != KL_SLURM_WAITS || !s->began || s->cancelled)
        return;
    fprintf(stderr, "kilter run: Slurm has queued job %s again: it is cancelled\n", s->job);
    cancel(s, "");
    s->cancelled = true;
}

static void take_state(kl_keep_slurm *s, const kl_slurm_job *state) {
    if (state->stage == KL_SLURM_UNKNOWN)
        return;
    s->state = *state;
    s->gone = state->stage == KL_SLURM_OVER;
    if (state->left_s > 0 && s->limit_s == 0)
        s->limit_s = kl_monotonic_s() + state->left_s;
    mind_requeue(s);
}

static void take_queue(kl_keep_slurm *s) {
    const char *text = (const char *)s->queue.text.data;
    kl_slurm_job state;
    char job[KL_SLURM_JOB_BYTES];
    if (s->seeks && s->queue.code == 0 && kl_slurm_number(text, job))
        take_job(s, job);
    else if (s->queue.code == 0 && kl_slurm_job_read(text, &state))
        take_state(s, &state);
    else
        s->gone = (s->queue.code == 0 && !*text) || strstr(text, "Invalid job id");
}

/* Start squeue to ask for the job's state. Do not wait for the answer. */
static void follow(kl_keep_slurm *s) {
    char *line = NULL;
    if (s->follows && kl_capture_over(&s->queue)) {
        kl_capture answer = s->queue;
        s->follows = false;
        take_queue(s);
        kl_capture_free(&answer);
    }
    if (s->follows || kl_monotonic_s() - s->followed_s < FOLLOW_S)
        return;
    s->followed_s = kl_monotonic_s();
    line = s->seeks ? kl_text("squeue -h -t all --name=%s -o %%A 2>/dev/null", s->name)
                    : kl_text("squeue -h -t all -j %s -o '%%T|%%L|%%P|%%N' 2>&1", s->job);
    char *const words[] = {"sh", "-c", line, NULL};
    s->follows = line && kl_capture_start(&s->queue, words, COMMAND_LIMIT_S, NULL) == KILTER_OK;
    free(line);
}

/* Kill the steps of a running job; its batch script then writes how they ended. At the second call, or if the
 * job does not run yet, cancel the whole job. */
void kl_keep_slurm_kill(kl_keep_slurm *s) {
    if (!*s->job && !s->seeks)
        return;
    cancel(s, s->state.stage == KL_SLURM_RUNS && !s->killed ? "--signal=KILL" : "");
    s->killed = true;
}

void kl_keep_slurm_began(kl_keep_slurm *s) {
    s->began = true;
}

double kl_keep_slurm_limit_s(kl_keep_slurm *s) {
    return s->limit_s;
}

bool kl_keep_slurm_pending(const kl_keep_slurm *s) {
    return s->state.stage != KL_SLURM_RUNS;
}

/* Return whether to give up the job: squeue has not known it for some time, and no file tells how it ended.
 * If so, set *end. */
static bool is_lost(kl_keep_slurm *s, uint64_t attempt, kl_keeper_end *end) {
    double now_s = kl_monotonic_s(), patience_s = s->seeks ? (s->unclear ? UNCLEAR_S : 0) : GONE_PATIENCE_S;
    if (!s->gone) {
        s->gone_s = 0;
        return false;
    }
    s->gone_s = s->gone_s > 0 ? s->gone_s : now_s;
    if (now_s - (s->seeks ? s->submitted_s : s->gone_s) < patience_s)
        return false;
    if (s->seeks)
        fprintf(stderr, "kilter run: submitting a job: %s\n", s->why);
    *end = (kl_keeper_end){.attempt = attempt,
                           .how = s->seeks && !s->unclear ? KL_KEEPER_REFUSED : KL_KEEPER_LOST};
    return true;
}

bool kl_keep_slurm_ended(kl_keep_slurm *s, uint64_t attempt, kl_keeper_end *end) {
    bool ended = kl_keep_read_end(s->start->folder, attempt, end);
    if (!ended) {
        follow(s);
        ended = is_lost(s, attempt, end);
    }
    if (ended)
        forget(s);
    return ended;
}

/* --- nodes --- */

/* Find the partitions with usable nodes: the present job's partition, or those that the next job may get.
 * All nodes of a job are in one partition. */
static const char *partitions(const kl_keep_slurm *s) {
    return *s->state.partition ? s->state.partition : s->wanted.partition;
}

void kl_keep_slurm_look(kl_keep_slurm *s) {
    kl_buffer quoted = {0};
    if (*partitions(s)) {
        put_text(&quoted, "-p ");
        kl_put_quoted(&quoted, partitions(s));
    }
    kl_put_u8(&quoted, 0);
    char *line = quoted.failed ? NULL
                               : kl_text("sinfo -N -h -o '%%N|%%T|%%c|%%O|%%P|%%f' %s 2>/dev/null",
                                         (char *)quoted.data);
    char *const words[] = {"sh", "-c", line, NULL};
    if (line && !s->looks)
        s->looks = kl_capture_start(&s->nodes, words, COMMAND_LIMIT_S, NULL) == KILTER_OK;
    kl_buffer_free(&quoted);
    free(line);
}

/* Return whether a job of this run could get the node if the node were idle. */
static bool can_have(const kl_keep_slurm *s, const kl_slurm_node *node) {
    return !kl_slurm_listed(text_of(&s->wanted.excluded), node->name) &&
           kl_slurm_has_features(s->wanted.constraint, node->features);
}

static bool is_in(const kl_keep_slurm *s, const kl_slurm_node *node) {
    return *partitions(s) ? kl_slurm_listed(partitions(s), node->partition) : node->is_default;
}

/* Describe a node to the keeper. If an idle node has a high load, processes that Slurm does not know are
 * using it. */
static kl_keeper_view view_of(const kl_keep_slurm *s, const kl_slurm_node *node) {
    double busy = node->load / (node->cores > 0 ? node->cores : 1);
    bool fit = node->idle && can_have(s, node);
    return (kl_keeper_view){.name = node->name,
                            .slots = 1,
                            .qos = fit ? 1 : 0,
                            .pace = fit && busy < 0.95 ? 1 - busy : 0.05,
                            .leaving = node->leaving,
                            .why = ""};
}

static bool take_nodes(kl_keep_slurm *s) {
    const char *text = (const char *)s->nodes.text.data;
    kl_slurm_node node;
    s->count = 0;
    while (kl_slurm_node_read(&text, &node)) {
        if (!is_in(s, &node))
            continue;
        kl_slurm_node *nodes = kl_array_grow(s->node, &s->node_room, s->count + 1, sizeof *nodes);
        if (!nodes)
            return false;
        s->node = nodes;
        s->node[s->count++] = node;
    }
    kl_keeper_view *views = kl_array_grow(s->views, &s->view_room, s->count + 1, sizeof *views);
    s->views = views ? views : s->views;
    for (size_t i = 0; views && i < s->count; i++)
        views[i] = view_of(s, &s->node[i]);
    return views;
}

bool kl_keep_slurm_poll(kl_keep_slurm *s, const kl_keeper_view **views, size_t *count) {
    if (!s->looks || !kl_capture_over(&s->nodes))
        return false;
    if (!take_nodes(s))
        s->count = 0;
    kl_capture_free(&s->nodes);
    s->looks = false;
    *views = s->views;
    *count = s->count;
    return true;
}
