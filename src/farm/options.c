/* One table says what can be set: --NAME on the command line, KILTER_NAME in the environment, a field of the
 * options. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "farm/farm.h"

typedef enum kind { NUMBER, LARGE_NUMBER, SECONDS, TEXT, SWITCH } kind;

typedef struct option {
    const char *name, *value, *help;
    kind kind;
    size_t offset; /* in kl_settings */
} option;

static const double LEAST_S = 0.5, MOST_S = 86400;       /* of every option in seconds */
static const double TIMES_LEAST = 1.5, LIMIT_MOST = 1e9; /* of a task's time */

#define FIELD(member) offsetof(kl_settings, member)

static const option OPTIONS[] = {
    {"workers", "N",
     "local workers to start, or with --listen how many to wait for (default: one per core; 1)", NUMBER,
     FIELD(options.workers)},
    {"bind", "HOW",
     "cores of a local worker process: none (it may use all), core (one), or so many; auto: as many for "
     "each, "
     "and for the threads of OpenMP (default: auto)",
     TEXT, FIELD(bind)},
    {"team", "HOW",
     "how many workers work: all; auto: as many as pay (default); or FILE.kilter: auto, beginning with as "
     "many as this record of the same program says",
     TEXT, FIELD(team)},
    {"release", NULL, "workers that do not pay leave the farm, instead of resting until they do", SWITCH,
     FIELD(options.release)},
    {"attempts", "N", "a task that was at N lost workers has failed (default: 5)", NUMBER,
     FIELD(options.attempts)},
    {"task-timeout", "HOW",
     "time limit of a task: 60 (seconds), or 10x (ten times its forecast) (default: none)", TEXT,
     FIELD(task_timeout)},
    {"retries", "N", "try a failed task again, up to N times (default: 0)", NUMBER, FIELD(options.retries)},
    {"worker-memory", "SIZE",
     "memory a worker may take, as 500M or 2G; a task that exceeds it has failed (default: no limit)", TEXT,
     FIELD(worker_memory)},
    {"worker-tasks", "N", "replace a worker by a new one after N tasks (default: never)", LARGE_NUMBER,
     FIELD(options.worker_tasks)},
    {"policy", "NAME", "how tasks are dealt (default: auto)", TEXT, FIELD(policy)},
    {"transport", "NAME", "zmq, mpi or inproc (default: mpi under mpirun, else zmq)", TEXT, FIELD(transport)},
    {"listen", "ENDPOINT", "wait at tcp://ADDRESS:PORT for workers started elsewhere", TEXT, FIELD(listen)},
    {"join", "ENDPOINT", "be a worker of the master that listens there", TEXT, FIELD(join)},
    {"key", "FILE",
     "key file of a farm over tcp, -: standard input; a master makes it (default: farm.key in the state "
     "folder)",
     TEXT, FIELD(key)},
    {"lost-after", "SECONDS",
     "a worker, or the master, that was silent for so long is lost (default: 10; from 0.5)", SECONDS,
     FIELD(options.lost_after_s)},
    {"wait-for-master", "SECONDS",
     "a worker waits so long for its master to appear, or to come back (default: 60)", SECONDS,
     FIELD(options.wait_for_master_s)},
    {"record", "FILE",
     "write the run record to FILE, with a number in its name if it exists; none: no record (default: a new "
     "file "
     "in the state folder)",
     TEXT, FIELD(record)},
    {"resume", "FILE",
     "store results in this record, and go on from those that are there: start the same command again", TEXT,
     FIELD(resume)},
    {"resume-anyway", NULL,
     "go on with --resume although the program, or its arguments, are not those of then", SWITCH,
     FIELD(options.resume_anyway)},
    {"progress", NULL, "show a progress line with the time left", SWITCH, FIELD(options.progress)},
};
enum { OPTION_COUNT = sizeof OPTIONS / sizeof OPTIONS[0] };

void kilter_farm_usage(FILE *out) {
    fprintf(
        out,
        "Options of the farm (each also as environment variable, --workers as KILTER_WORKERS and so on):\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char left[40];
        snprintf(left, sizeof left, "--%s%s%s", OPTIONS[i].name, OPTIONS[i].value ? " " : "",
                 OPTIONS[i].value ? OPTIONS[i].value : "");
        fprintf(out, "  %-22s %s\n", left, OPTIONS[i].help);
    }
    fprintf(out, "  %-22s %s\nPolicies:\n", "--kilter-help", "this text");
    for (size_t i = 0; i < kl_policy_count(); i++)
        fprintf(out, "  %-22s %s\n", kl_policy_name(kl_policy_at(i)), kl_policy_summary(kl_policy_at(i)));
}

static kilter_status set_number(const char *said, const char *text, uint32_t *number, kilter_error *error) {
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || value < 1 || value > 1000000)
        return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is not a number from 1 to 1000000", said, text);
    *number = (uint32_t)value;
    return KILTER_OK;
}

static kilter_status set_large_number(const char *said, const char *text, uint64_t *number,
                                      kilter_error *error) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || value < 1)
        return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is not a number from 1 on", said, text);
    *number = value;
    return KILTER_OK;
}

/* "30" or "10x". */
static kilter_status read_timeout(const char *said, const char *text, kl_limits *limits,
                                  kilter_error *error) {
    char *end;
    double value = strtod(text, &end);
    bool times = *end == 'x' && end[1] == '\0',
         is_number = isdigit((unsigned char)text[0]) && (times || !*end);
    double least = times ? TIMES_LEAST : LEAST_S;
    if (!is_number || !(value >= least && value <= LIMIT_MOST))
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "%s: '%s' is neither a number of seconds from %g on, nor how many times its forecast a task "
            "may take, as in 10x, from %gx on",
            said, text, LEAST_S, TIMES_LEAST);
    limits->task_s = times ? 0 : value;
    limits->task_times = times ? value : 0;
    return KILTER_OK;
}

/* "500M" or "2G". */
static kilter_status read_memory(const char *said, const char *text, kl_limits *limits, kilter_error *error) {
    static const char UNITS[] = "MGT";
    char *end;
    double value = strtod(text, &end), bytes = value * 1e6;
    const char *unit = *end ? strchr(UNITS, *end) : NULL;
    for (const char *u = UNITS; unit && u < unit; u++)
        bytes *= 1000;
    if (!isdigit((unsigned char)text[0]) || !unit || end[1] || !(bytes >= 1e6 && bytes <= 1e18))
        return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is no size of memory from 1M on, as in 500M or 2G",
                       said, text);
    limits->worker_memory = (uint64_t)bytes;
    return KILTER_OK;
}

static kilter_status set_seconds(const char *said, const char *text, double *seconds, kilter_error *error) {
    char *end;
    double value = strtod(text, &end);
    if (!(isdigit((unsigned char)text[0]) || text[0] == '.') || *end ||
        !(value >= LEAST_S && value <= MOST_S))
        return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is not a number of seconds from %g to %g", said,
                       text, LEAST_S, MOST_S);
    *seconds = value;
    return KILTER_OK;
}

static bool one_of(const char *text, const char *const *list) {
    for (; *list; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return false;
}

static bool is_record(const char *text) {
    static const char end[] = ".kilter";
    size_t size = strlen(text);
    return size >= sizeof end && strcmp(text + size - (sizeof end - 1), end) == 0;
}

bool kl_settings_name_record(const kl_settings *s) {
    return s->team && is_record(s->team);
}

/* Values out of a list are checked where they come from, so that the message names that. */
static kilter_status check_listed(const char *said, const char *text, const kl_settings *s,
                                  char *const *field, kilter_error *error) {
    kl_limits limits;
    const char *const transports[] = {"zmq", "mpi", "inproc", NULL}, *const teams[] = {"all", "auto", NULL},
                      *const binds[] = {"auto", "none", "core", NULL};
    if (field == &s->policy && !kl_own_policies_find(s->own, text))
        return kl_fail(error, KILTER_ERR_USAGE, "%s: there is no policy '%s'; --kilter-help lists them", said,
                       text);
    if (field == &s->transport && !one_of(text, transports))
        return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is none of zmq, mpi, inproc", said, text);
    uint32_t cores;
    if (field == &s->bind && !one_of(text, binds) && set_number(said, text, &cores, NULL) != KILTER_OK)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "%s: '%s' is none of auto, none and core, and no number of cores", said, text);
    if (field == &s->task_timeout)
        return read_timeout(said, text, &limits, error);
    if (field == &s->worker_memory)
        return read_memory(said, text, &limits, error);
    if (field == &s->team && !one_of(text, teams) && !is_record(text))
        return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is neither all nor auto, and no file *.kilter",
                       said, text);
    return KILTER_OK;
}

static kilter_status set_text(const char *said, const char *text, const kl_settings *settings, char **field,
                              kilter_error *error) {
    if (!*text)
        return kl_fail(error, KILTER_ERR_USAGE, "%s: the value is empty", said);
    kilter_status status = check_listed(said, text, settings, field, error);
    if (status != KILTER_OK)
        return status;
    char *copy = strdup(text);
    if (!copy)
        return kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", said);
    free(*field);
    *field = copy;
    return KILTER_OK;
}

static kilter_status set_switch(const char *said, const char *text, bool *field, kilter_error *error) {
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is neither 0 nor 1", said, text);
    *field = *text == '1';
    return KILTER_OK;
}

static kilter_status set(const option *o, const char *said, const char *text, kl_settings *settings,
                         kilter_error *error) {
    void *field = (char *)settings + o->offset;
    switch (o->kind) {
    case NUMBER:
        return set_number(said, text, field, error);
    case LARGE_NUMBER:
        return set_large_number(said, text, field, error);
    case SECONDS:
        return set_seconds(said, text, field, error);
    case TEXT:
        return set_text(said, text, settings, field, error);
    case SWITCH:
        return set_switch(said, text, field, error);
    }
    return KILTER_OK;
}

/* --- sources, the weakest first --- */

/* Zero is none, and means the default. */
static kilter_status check_seconds(const kilter_farm_options *options, kilter_error *error) {
    const kl_settings given = {.options = *options};
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const option *o = &OPTIONS[i];
        if (o->kind != SECONDS)
            continue;
        double value = *(const double *)((const char *)&given + o->offset);
        if (value != 0 && !(value >= LEAST_S && value <= MOST_S))
            return kl_fail(error, KILTER_ERR_USAGE, "%s: %g is not a number of seconds from %g to %g",
                           o->name, value, LEAST_S, MOST_S);
    }
    return KILTER_OK;
}

static kilter_status from_program(const kilter_farm_options *options, kl_settings *settings,
                                  kilter_error *error) {
    const struct {
        const char *said, *text;
        char **field;
    } texts[] = {
        {"bind", options->bind, &settings->bind},
        {"team", options->team, &settings->team},
        {"task_timeout", options->task_timeout, &settings->task_timeout},
        {"worker_memory", options->worker_memory, &settings->worker_memory},
        {"policy", options->policy, &settings->policy},
        {"transport", options->transport, &settings->transport},
        {"listen", options->listen, &settings->listen},
        {"join", options->join, &settings->join},
        {"key", options->key, &settings->key},
        {"record", options->record, &settings->record},
        {"resume", options->resume, &settings->resume},
        {"name", options->name, &settings->name},
        {"version", options->version, &settings->version},
    };
    settings->options = *options;
    if (!options->work)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a farm: options.work is NULL; give it the function that does one task");
    kilter_status checked = check_seconds(options, error);
    if (checked == KILTER_OK)
        checked = kl_own_policies_new(options->policies, &settings->own, error);
    if (checked != KILTER_OK)
        return checked;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        kilter_status status = texts[i].text
                                   ? set_text(texts[i].said, texts[i].text, settings, texts[i].field, error)
                                   : KILTER_OK;
        if (status != KILTER_OK)
            return status;
    }
    return KILTER_OK;
}

enum { VARIABLE_BYTES = 64 };

static void name_variable(const option *o, char name[VARIABLE_BYTES]) {
    snprintf(name, VARIABLE_BYTES, "KILTER_%s", o->name);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

static kilter_status from_environment(kl_settings *settings, kilter_error *error) {
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char name[VARIABLE_BYTES];
        name_variable(&OPTIONS[i], name);
        const char *text = getenv(name);
        kilter_status status = text ? set(&OPTIONS[i], name, text, settings, error) : KILTER_OK;
        if (status != KILTER_OK)
            return status;
    }
    return KILTER_OK;
}

/* The option `argument` names, and its value when it stands behind an '='. */
static const option *find_option(const char *argument, const char **value) {
    if (strncmp(argument, "--", 2) != 0)
        return NULL;
    size_t length = strcspn(argument + 2, "=");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(OPTIONS[i].name) == length && strncmp(argument + 2, OPTIONS[i].name, length) == 0) {
            *value = argument[2 + length] == '=' ? argument + 2 + length + 1 : NULL;
            return &OPTIONS[i];
        }
    return NULL;
}

/* Kilter's arguments are taken, the others moved up to argv[1 … kept − 1]. Behind "--" nothing is Kilter's.
 */
static kilter_status from_arguments(int argc, char **argv, int *kept, kl_settings *settings,
                                    kilter_error *error) {
    int to = argc > 0 ? 1 : 0;
    for (int i = 1; i < argc; i++) {
        const char *value = NULL;
        if (strcmp(argv[i], "--") == 0) {
            while (i < argc)
                argv[to++] = argv[i++];
            break;
        }
        if (strcmp(argv[i], "--kilter-help") == 0) {
            kilter_farm_usage(stdout);
            return kl_fail(error, KILTER_ENDED, "help was asked for");
        }
        const option *o = find_option(argv[i], &value);
        if (!o) {
            argv[to++] = argv[i];
            continue;
        }
        char said[32];
        snprintf(said, sizeof said, "--%s", o->name);
        if (!value && o->kind == SWITCH)
            value = "1";
        if (!value && ++i < argc)
            value = argv[i];
        if (!value)
            return kl_fail(error, KILTER_ERR_USAGE, "%s: needs a value, %s", said, o->value);
        kilter_status status = set(o, said, value, settings, error);
        if (status != KILTER_OK)
            return status;
    }
    *kept = to;
    return KILTER_OK;
}

/* --- do they fit together? --- */

kilter_status kl_settings_check_transport(const kl_settings *s, const char *transport, kilter_error *error) {
    const char *limit = s->task_timeout               ? "task-timeout"
                        : s->worker_memory            ? "worker-memory"
                        : s->options.worker_tasks > 0 ? "worker-tasks"
                                                      : NULL;
    if (!limit || strcmp(transport, "zmq") == 0)
        return KILTER_OK;
    return kl_fail(error, KILTER_ERR_USAGE,
                   "--%s: with --transport %s a single worker cannot be ended; it needs zmq", limit,
                   transport);
}

static kilter_status check(const kl_settings *s, kilter_error *error) {
    if (s->record && s->resume)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--record and --resume: the file of --resume is the record, too; leave --record out");
    if (s->listen && s->join)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--listen and --join: a process is master or worker, not both");
    if ((s->listen || s->join) && s->transport && strcmp(s->transport, "zmq") != 0)
        return kl_fail(error, KILTER_ERR_USAGE, "--%s: only --transport zmq can, not %s",
                       s->listen ? "listen" : "join", s->transport);
    if (s->key && strcmp(s->key, "-") == 0 && !s->join)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--key -: only a worker, with --join, reads its key there; name a file");
    if (s->transport && kl_settings_check_transport(s, s->transport, error) != KILTER_OK)
        return KILTER_ERR_USAGE;
    if (s->listen && kl_zmq_check(s->listen, error) != KILTER_OK)
        return KILTER_ERR_USAGE;
    if (s->join && kl_zmq_check(s->join, error) != KILTER_OK)
        return KILTER_ERR_USAGE;
    return KILTER_OK;
}

static void set_limits(kl_settings *s) {
    s->limits.retries = s->options.retries;
    s->limits.worker_tasks = s->options.worker_tasks;
    if (s->task_timeout)
        read_timeout("", s->task_timeout, &s->limits, NULL);
    if (s->worker_memory)
        read_memory("", s->worker_memory, &s->limits, NULL);
}

static kilter_status keep_arguments(int count, char *const *words, kl_settings *s, kilter_error *error) {
    s->arguments = kl_words_text(count > 0 ? (size_t)count - 1 : 0, words + 1);
    return s->arguments ? KILTER_OK
                        : kl_fail(error, KILTER_ERR_MEMORY, "reading the options: memory ran out");
}

static kilter_status default_name(const char *argv0, kl_settings *s, kilter_error *error) {
    if (s->name)
        return KILTER_OK;
    const char *slash = argv0 ? strrchr(argv0, '/') : NULL;
    const char *name = slash ? slash + 1 : argv0;
    return set_text("argv[0]", name && *name ? name : "farm", s, &s->name, error);
}

kilter_status kl_settings_read(const kilter_farm_options *options, int *argc, char **argv,
                               kl_settings *settings, kilter_error *error) {
    kl_settings read = {0};
    int count = argc && argv ? *argc : 0, kept = count;
    char **copy = calloc((size_t)count + 1, sizeof *copy); /* argv stays as it was when something is wrong */
    kilter_status status = copy ? from_program(options, &read, error)
                                : kl_fail(error, KILTER_ERR_MEMORY, "reading the options: memory ran out");
    if (status == KILTER_OK)
        status = from_environment(&read, error);
    for (int i = 0; copy && i < count; i++)
        copy[i] = argv[i];
    if (status == KILTER_OK)
        status = from_arguments(count, copy, &kept, &read, error);
    if (status == KILTER_OK)
        status = check(&read, error);
    if (status == KILTER_OK)
        status = default_name(count ? argv[0] : NULL, &read, error);
    if (status == KILTER_OK && count > 0)
        status = keep_arguments(kept, copy, &read, error);
    if (status == KILTER_OK) {
        for (int i = 0; i < count; i++)
            argv[i] = i < kept ? copy[i] : NULL;
        if (argc)
            *argc = kept;
        set_limits(&read);
        *settings = read;
    } else {
        kl_settings_free(&read);
    }
    free(copy);
    return status;
}

void kl_settings_warn(FILE *out, char *const *environment, int argc, char *const *argv) {
    static const char *const OTHERS[] = {"KILTER_RECORD_DIR", "KILTER_MPI_START_S", "KILTER_MPI_SHIELD",
                                         "KILTER_CHECK",      "KILTER_LIBEXEC",     "KILTER_ANSWER_S",
                                         "KILTER_QUANTUM_S",  "KILTER_RUN",         "KILTER_MPI"};
    enum { OTHER_COUNT = sizeof OTHERS / sizeof *OTHERS };
    char names[OPTION_COUNT][VARIABLE_BYTES];
    const char *variables[OPTION_COUNT + OTHER_COUNT], *options[OPTION_COUNT + 1];
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        name_variable(&OPTIONS[i], names[i]);
        variables[i] = names[i];
        options[i] = OPTIONS[i].name;
    }
    options[OPTION_COUNT] = "kilter-help";
    memcpy(variables + OPTION_COUNT, OTHERS, sizeof OTHERS);
    kl_typo_warn_environment(out, environment, variables, OPTION_COUNT + OTHER_COUNT);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        kl_typo_warn_argument(out, argv[i], options, OPTION_COUNT + 1);
}

void kl_settings_free(kl_settings *s) {
    char *texts[] = {s->team, s->policy,    s->transport,    s->listen,       s->join,
                     s->key,  s->record,    s->resume,       s->name,         s->version,
                     s->bind, s->arguments, s->task_timeout, s->worker_memory};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    kl_own_policies_free(s->own);
    *s = (kl_settings){0};
}
