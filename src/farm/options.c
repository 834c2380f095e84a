/* The options of farms. Each is --NAME on the command line, KILTER_NAME in the environment and a field of
 * kilter_farm_options. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "farm/farm.h"

#define SECONDS_RANGE .least = 0.5, .most = 86400
#define FIELD(member) offsetof(kl_settings, member)
#define AT(member)    .offset = FIELD(member)

/* --- functions that read option values which are not just a number or a word --- */

static kilter_status check_policy(const kl_value *v) {
    return kl_help_find(v->text) || kl_own_policies_find(((const kl_settings *)v->into)->own, v->text)
               ? KILTER_OK
               : kl_fail(v->error, KILTER_ERR_USAGE, "%s: there is no policy '%s'; --kilter-help lists them",
                         v->said, v->text);
}

static kilter_status check_bind(const kl_value *v) {
    static const kl_option cores = {.kind = KL_OPTION_UINT32, .least = 1, .most = 1000000};
    uint32_t count;
    return kl_option_is_word(v->option->words, v->text) ||
                   kl_option_set(&cores, v->said, v->text, &count, NULL) == KILTER_OK
               ? KILTER_OK
               : kl_option_refuse(v, "none of auto, none and core, and not a number of cores");
}

static bool is_record(const char *text) {
    static const char end[] = ".kilter";
    size_t size = strlen(text);
    return size >= sizeof end && strcmp(text + size - (sizeof end - 1), end) == 0;
}

bool kl_settings_name_record(const kl_settings *s) {
    return s->team && is_record(s->team);
}

static kilter_status check_team(const kl_value *v) {
    return kl_option_is_word(v->option->words, v->text) || is_record(v->text)
               ? KILTER_OK
               : kl_option_refuse(v, "neither all nor auto, and not the name of a *.kilter file");
}

/* Read a time limit: "30" means seconds, "10x" means ten times the forecast. */
static kilter_status read_timeout(const kl_value *v) {
    kl_limits *limits = &((kl_settings *)v->into)->limits;
    char *end;
    double value = strtod(v->text, &end);
    bool times = *end == 'x' && end[1] == '\0';
    if (!isdigit((unsigned char)*v->text) || !(times || !*end) ||
        !(value >= (times ? 1.5 : 0.5) && value <= 1e9))
        return kl_option_refuse(v,
                                "neither a number of seconds from 0.5 on, such as 60, nor a multiple of the "
                                "task's forecast from 1.5x on, such as 10x");
    limits->task_s = times ? 0 : value;
    limits->task_times = times ? value : 0;
    return KILTER_OK;
}

/* Read a size of memory, such as "500M" or "2G". */
static kilter_status read_memory(const kl_value *v) {
    char *end, unit;
    double value = strtod(v->text, &end);
    unit = end[0] && !end[1] ? *end : '\0';
    double bytes = value * (unit == 'M' ? 1e6 : unit == 'G' ? 1e9 : unit == 'T' ? 1e12 : 0);
    if (!isdigit((unsigned char)*v->text) || !(bytes >= 1e6 && bytes <= 1e18))
        return kl_option_refuse(v, "not a size of memory from 1M on, such as 500M or 2G");
    ((kl_settings *)v->into)->limits.worker_memory = (uint64_t)bytes;
    return KILTER_OK;
}

/* --- the table of options --- */

static const kl_option OPTIONS[] = {
    {"workers", "N",
     "Number of local workers to start; with --listen, number of workers to wait for (default: one per core; "
     "with --listen 1).",
     KL_OPTION_UINT32, AT(options.workers), .least = 1, .most = 1000000},
    {"bind", "HOW",
     "Cores of each local worker: none (it may use all), core (one), or a number; auto divides the cores "
     "among the workers and their OpenMP threads (default: auto).",
     KL_OPTION_TEXT, AT(options.bind), .words = "auto none core", .read = check_bind},
    {"team", "HOW",
     "Active workers: all of them, or auto, which uses only as many as speed up the run (default: auto). "
     "FILE.kilter starts auto with the number that this record of the same program found.",
     KL_OPTION_TEXT, AT(options.team), .words = "all auto", .read = check_team},
    {"release", NULL, "End the workers that do not speed up the run, instead of letting them rest.",
     KL_OPTION_SWITCH, AT(options.release)},
    {"attempts", "N", "Maximum attempts: a task fails after N of its workers died (default: 5).",
     KL_OPTION_UINT32, AT(options.attempts), .least = 1, .most = 1000000},
    {"task-timeout", "HOW",
     "Time limit of a task: 60 is seconds, 10x is ten times the forecast (default: none).", KL_OPTION_TEXT,
     AT(options.task_timeout), .read = read_timeout},
    {"retries", "N", "Try a failed task again, up to N times (default: 0).", KL_OPTION_UINT32,
     AT(options.retries), .least = 1, .most = 1000000},
    {"worker-memory", "SIZE",
     "Memory limit of a worker, such as 500M or 2G; a task that exceeds it fails (default: none).",
     KL_OPTION_TEXT, AT(options.worker_memory), .read = read_memory},
    {"worker-tasks", "N", "Replace each worker with a new one after N tasks (default: never).",
     KL_OPTION_UINT64, AT(options.worker_tasks), .least = 1},
    {"policy", "POLICY", "Choose how tasks are dealt to the workers (default: auto).", KL_OPTION_TEXT,
     AT(options.policy), .read = check_policy},
    {"organise", "HOW",
     "Let the master deal tasks, or let the workers share them as peers; auto chooses the way that earlier "
     "runs show to be faster (default: auto).",
     KL_OPTION_TEXT, AT(options.organise), .words = "auto master peers"},
    {"shared-folder", "FOLDER",
     "Let late peers call for help by files in this folder, which all hosts have under the same name; for "
     "policies sos and sos-half (default: by messages).",
     KL_OPTION_TEXT, AT(options.shared_folder)},
    {"once", NULL,
     "Never begin a task a second time while its worker is present: make no speculative copies.",
     KL_OPTION_SWITCH, AT(options.once)},
    {"transport", "NAME", "Send messages by zmq, mpi or inproc (default: mpi under mpirun, else zmq).",
     KL_OPTION_TEXT, AT(options.transport), .words = "zmq mpi inproc"},
    {"listen", "ENDPOINT", "Wait at tcp://ADDRESS:PORT for workers that are started elsewhere.",
     KL_OPTION_TEXT, AT(options.listen)},
    {"join", "ENDPOINT", "Be a worker of the master that listens at this endpoint.", KL_OPTION_TEXT,
     AT(options.join)},
    {"key", "FILE",
     "Key file of a farm over TCP; - reads it from the standard input. A master creates the file (default: "
     "farm.key in the state folder).",
     KL_OPTION_TEXT, AT(options.key)},
    {"lost-after", "SECONDS",
     "Give up a worker or master that has been silent for SECONDS (default: 10, at least 0.5).",
     KL_OPTION_NUMBER, AT(options.lost_after_s), SECONDS_RANGE},
    {"wait-for-master", "SECONDS",
     "Time a worker waits for its master to appear or to come back (default: 60).", KL_OPTION_NUMBER,
     AT(options.wait_for_master_s), SECONDS_RANGE},
    {"record", "FILE",
     "Write the run record to FILE; if FILE exists, to FILE with a number in its name. none writes no record "
     "(default: a new file in the state folder).",
     KL_OPTION_TEXT, AT(options.record)},
    {"resume", "FILE",
     "Store results in this record and continue from the results it holds. Start the same command again.",
     KL_OPTION_TEXT, AT(options.resume)},
    {"resume-anyway", NULL, "Let --resume continue although the program or its arguments have changed.",
     KL_OPTION_SWITCH, AT(options.resume_anyway)},
    {"progress", NULL, "Show a progress line with the time left.", KL_OPTION_SWITCH, AT(options.progress)},
    {"kilter-help", NULL, "Print the options of the farm and end.", .kind = KL_OPTION_OTHER},
};
/* HELP is the last entry of the table, and is not a setting. */
enum { OPTION_COUNT = sizeof OPTIONS / sizeof OPTIONS[0], HELP = OPTION_COUNT - 1 };
static const kl_option_list LIST = {OPTIONS, OPTION_COUNT};

/* Environment variables that have no option. */
static const struct {
    const char *name, *help;
} VARIABLES[] = {
    {"KILTER_RECORD_DIR",
     "Folder of the run records. Default: $XDG_STATE_HOME/kilter, or ~/.local/state/kilter when "
     "XDG_STATE_HOME is not set."},
    {"KILTER_MPI", "MPI of the farm, if the launcher does not name it: openmpi or mpich."},
    {"KILTER_MPI_START_S",
     "Seconds that the ranks of an MPI program wait for each other at the start; 0 waits for ever (default: "
     "300)."},
    {"KILTER_MPI_SHIELD",
     "1 runs each rank of a farm in a child process. With mpiexec -disable-auto-cleanup of MPICH, the other "
     "ranks then survive the death of a rank."},
    {"KILTER_CHECK", "1 makes loops check that all ranks make the same calls, and report each access to "
                     "another rank's rows; 0 turns these checks off in debug builds."},
    {"KILTER_LIBEXEC",
     "Folder of kilter-simfarm-smpi, the program of the simulation engine smpi. Default: where it was "
     "installed."},
    {"KILTER_ANSWER_S",
     "Seconds a simulated master takes for a message on a host of speed 1 (default: 1e-5)."},
    {"KILTER_QUANTUM_S", "Seconds of the scheduler's time slice in simulated loops (default: 0)."},
    {"KILTER_RUN",
     "Set by kilter run for the master, which then does not print how to start workers. A value that "
     "begins with @ is the name of the master's control socket."},
};
enum { VARIABLE_COUNT = sizeof VARIABLES / sizeof *VARIABLES };

kl_option_list kl_farm_options(void) {
    return LIST;
}

void kilter_farm_usage(FILE *out) {
    fprintf(out,
            "Options of the farm; each is an environment variable as well: KILTER_WORKERS for --workers.\n");
    kl_options_print(out, LIST);
    fprintf(out, "Policies:\n");
    for (size_t i = 0; i < kl_policy_count(); i++)
        kl_option_print(out, kl_policy_name(kl_policy_at(i)), kl_policy_summary(kl_policy_at(i)));
    fprintf(out, "Policies of peers, with --organise peers:\n");
    for (size_t i = 0; kl_help_at(i); i++)
        kl_option_print(out, kl_help_at(i)->name, kl_help_at(i)->summary);
    fprintf(out, "Other environment variables:\n");
    for (size_t i = 0; i < VARIABLE_COUNT; i++)
        kl_option_print(out, VARIABLES[i].name, VARIABLES[i].help);
}

/* --- sources of settings: a later source overrides an earlier one --- */

/* Read the options that the program sets in kilter_farm_options, where 0 and NULL mean the default. */
static kilter_status from_program(const kilter_farm_options *options, kl_settings *settings,
                                  kilter_error *error) {
    settings->options = *options;
    if (!options->work)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a farm: options.work is NULL; give it the function that does one task");
    kilter_status own = kl_own_policies_new(options->policies, &settings->own, error);
    if (own != KILTER_OK)
        return own;
    if ((options->name && !*options->name) || (options->version && !*options->version))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "opening a farm: options.name or options.version is empty; "
                       "give a text or NULL");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const kl_option *o = &OPTIONS[i];
        const void *field = (const char *)settings + o->offset;
        char number[32] = "";
        if (o->kind == KL_OPTION_NUMBER && *(const double *)field != 0)
            snprintf(number, sizeof number, "%.17g", *(const double *)field);
        const char *text = o->kind == KL_OPTION_TEXT ? *(const char *const *)field : *number ? number : NULL;
        kilter_status status = text ? kl_option_set(o, o->name, text, settings, error) : KILTER_OK;
        if (status != KILTER_OK)
            return status;
    }
    return KILTER_OK;
}

static kilter_status from_environment(kl_settings *settings, kilter_error *error) {
    for (size_t i = 0; i < HELP; i++) {
        char name[KL_VARIABLE_BYTES];
        kl_option_variable(&OPTIONS[i], name);
        const char *text = getenv(name);
        kilter_status status = text ? kl_option_set(&OPTIONS[i], name, text, settings, error) : KILTER_OK;
        if (status != KILTER_OK)
            return status;
    }
    return KILTER_OK;
}

/* Read the option at argv[*at], and set *at to the last word that belongs to it. */
static kilter_status from_argument(const kl_option *o, int argc, char **argv, int *at, kl_settings *settings,
                                   kilter_error *error) {
    char said[32];
    const char *equals = strchr(argv[*at], '='), *value = equals ? equals + 1 : o->value ? NULL : "1";
    if (o == &OPTIONS[HELP]) {
        kilter_farm_usage(stdout);
        return kl_fail(error, KILTER_ENDED, "help was asked for");
    }
    snprintf(said, sizeof said, "--%s", o->name);
    if (!value && ++*at < argc)
        value = argv[*at];
    return value ? kl_option_set(o, said, value, settings, error)
                 : kl_fail(error, KILTER_ERR_USAGE, "%s: needs a value, %s", said, o->value);
}

/* Remove Kilter's options, and move the other arguments to argv[1 … kept − 1]. "--" ends the options. Only
 * exact names count, because a similar word may be an option of the program. */
static kilter_status from_arguments(int argc, char **argv, int *kept, kl_settings *settings,
                                    kilter_error *error) {
    int to = argc > 0 ? 1 : 0, i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const kl_option *o = strncmp(argv[i], "--", 2) == 0
                                 ? kl_option_find(LIST, argv[i] + 2, strcspn(argv[i] + 2, "="))
                                 : NULL;
        kilter_status status = o ? from_argument(o, argc, argv, &i, settings, error) : KILTER_OK;
        if (status != KILTER_OK)
            return status;
        if (!o)
            argv[to++] = argv[i];
    }
    while (i < argc)
        argv[to++] = argv[i++];
    *kept = to;
    return KILTER_OK;
}

/* --- options that contradict each other --- */

kilter_status kl_settings_check_transport(const kl_settings *s, const char *transport, kilter_error *error) {
    const char *limit = s->options.task_timeout       ? "task-timeout"
                        : s->options.worker_memory    ? "worker-memory"
                        : s->options.worker_tasks > 0 ? "worker-tasks"
                                                      : NULL;
    if (!limit || strcmp(transport, "zmq") == 0)
        return KILTER_OK;
    return kl_fail(error, KILTER_ERR_USAGE,
                   "--%s: with --transport %s a single worker cannot be ended; use --transport zmq", limit,
                   transport);
}

static bool has_board(const char *policy) {
    const kl_help *help = policy ? kl_help_find(policy) : NULL;
    return help && help->board;
}

static kilter_status check(const kl_settings *settings, kilter_error *error) {
    const kilter_farm_options *s = &settings->options;
    if (s->record && s->resume)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--record and --resume: the file of --resume is the record, too; leave --record out");
    if (s->listen && s->join)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--listen and --join: a process is master or worker, not both");
    if ((s->listen || s->join) && s->transport && strcmp(s->transport, "zmq") != 0)
        return kl_fail(error, KILTER_ERR_USAGE, "--%s: needs --transport zmq, not %s",
                       s->listen ? "listen" : "join", s->transport);
    if (s->key && strcmp(s->key, "-") == 0 && !s->join)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "--key -: only a worker (--join) can read its key from the standard input; name a file");
    bool peers = s->organise && strcmp(s->organise, "peers") == 0;
    if (s->once && peers)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--once and --organise peers: peers may copy tasks; leave one of the two options out");
    if (s->policy && kl_help_find(s->policy) && !peers)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--policy %s: only peers use this policy; give --organise peers, too", s->policy);
    if (s->policy && !kl_help_find(s->policy) && peers && strcmp(s->policy, "auto") != 0)
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "--policy %s and --organise peers: only a master uses this policy; give help, sos, sos-half "
            "or steal, or leave --policy out",
            s->policy);
    if (s->shared_folder && !(peers && has_board(s->policy)))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "--shared-folder: only peers with a list of late peers use it; give --organise peers "
                       "and --policy sos or sos-half, too");
    if (s->transport && kl_settings_check_transport(settings, s->transport, error) != KILTER_OK)
        return KILTER_ERR_USAGE;
    if (s->listen && kl_zmq_check(s->listen, error) != KILTER_OK)
        return KILTER_ERR_USAGE;
    if (s->join && kl_zmq_check(s->join, error) != KILTER_OK)
        return KILTER_ERR_USAGE;
    return KILTER_OK;
}

static kilter_status keep_arguments(int count, char *const *words, kl_settings *s, kilter_error *error) {
    s->arguments = kl_words_text(count > 0 ? (size_t)count - 1 : 0, words + 1);
    return s->arguments ? KILTER_OK
                        : kl_fail(error, KILTER_ERR_MEMORY, "reading the options: memory ran out");
}

/* Texts of the caller that must be copied, because they are needed after the call; and the fields
 * for the copies. */
static const struct {
    size_t text, copy;
} COPIES[] = {
    {FIELD(options.bind), FIELD(bind)},
    {FIELD(options.team), FIELD(team)},
    {FIELD(options.policy), FIELD(policy)},
    {FIELD(options.transport), FIELD(transport)},
    {FIELD(options.listen), FIELD(listen)},
    {FIELD(options.join), FIELD(join)},
    {FIELD(options.key), FIELD(key)},
    {FIELD(options.record), FIELD(record)},
    {FIELD(options.resume), FIELD(resume)},
    {FIELD(options.name), FIELD(name)},
    {FIELD(options.version), FIELD(version)},
    {FIELD(options.organise), FIELD(organise)},
    {FIELD(options.shared_folder), FIELD(shared_folder)},
};
enum { COPY_COUNT = sizeof COPIES / sizeof *COPIES };

static kilter_status copy_texts(kl_settings *s, kilter_error *error) {
    for (size_t i = 0; i < COPY_COUNT; i++) {
        const char **text = (const char **)((char *)s + COPIES[i].text);
        char **copy = (char **)((char *)s + COPIES[i].copy);
        if (*text && !(*copy = strdup(*text)))
            return kl_fail(error, KILTER_ERR_MEMORY, "reading the options: memory ran out");
        *text = *copy;
    }
    return KILTER_OK;
}

kilter_status kl_settings_read(const kilter_farm_options *options, int *argc, char **argv,
                               kl_settings *settings, kilter_error *error) {
    kl_settings read = {0};
    int count = argc && argv ? *argc : 0, kept = count;
    /* work on a copy, because argv must not change if there is an error */
    char **copy = calloc((size_t)count + 1, sizeof *copy);
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
    const char *slash = count && argv[0] ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : count ? argv[0] : NULL;
    if (!read.options.name)
        read.options.name = name && *name ? name : "farm";
    if (status == KILTER_OK)
        status = copy_texts(&read, error);
    if (status == KILTER_OK && count > 0)
        status = keep_arguments(kept, copy, &read, error);
    if (status == KILTER_OK) {
        for (int i = 0; i < count; i++)
            argv[i] = i < kept ? copy[i] : NULL;
        if (argc)
            *argc = kept;
        read.limits.retries = read.options.retries;
        read.limits.worker_tasks = read.options.worker_tasks;
        *settings = read;
    } else {
        kl_settings_free(&read);
    }
    free(copy);
    return status;
}

void kl_settings_warn(FILE *out, char *const *environment, int argc, char *const *argv) {
    char names[HELP][KL_VARIABLE_BYTES];
    const char *variables[HELP + VARIABLE_COUNT];
    for (size_t i = 0; i < HELP + VARIABLE_COUNT; i++) {
        if (i < HELP)
            kl_option_variable(&OPTIONS[i], names[i]);
        variables[i] = i < HELP ? names[i] : VARIABLES[i - HELP].name;
    }
    kl_typo_warn_environment(out, environment, variables, HELP + VARIABLE_COUNT);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        kl_typo_warn_argument(out, argv[i], LIST);
}

void kl_settings_free(kl_settings *s) {
    for (size_t i = 0; i < COPY_COUNT; i++)
        free(*(char **)((char *)s + COPIES[i].copy));
    free(s->arguments);
    kl_own_policies_free(s->own);
    *s = (kl_settings){0};
}
