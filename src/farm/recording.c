/* The farm's run record: choose its path, and begin it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "farm/farm_private.h"
#include "kilter/version.h"

/* Check that a file can be created at `path`, which the user gave with the option `option`. */
static kilter_status check_folder(const char *option, const char *path, kilter_error *error) {
    char *folder = strdup(path);
    if (!folder)
        return kl_fail(error, KILTER_ERR_MEMORY, "%s: memory ran out", option);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    kilter_status status = KILTER_OK;
    if (access(slash ? folder : ".", W_OK | X_OK) != 0)
        status =
            kl_fail(error, KILTER_ERR_USAGE, "%s: %s cannot be written: %s", option, path, strerror(errno));
    free(folder);
    return status;
}

kilter_status kl_farm_check_record(const char *path, kilter_error *error) {
    struct stat found;
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return kl_fail(error, KILTER_ERR_USAGE, "--record: %s is not a regular file; name a file", path);
    return check_folder("--record", path, error);
}

kilter_status kl_farm_check_resume(const char *path, kilter_error *error) {
    struct stat found;
    if (stat(path, &found) != 0)
        return check_folder("--resume", path, error);
    if (access(path, R_OK | W_OK) != 0)
        return kl_fail(error, KILTER_ERR_USAGE, "--resume: %s cannot be written: %s", path, strerror(errno));
    return KILTER_OK;
}

/* Choose the name of a new record in the state folder. */
static kilter_status default_record(const kilter_farm *f, char **path, kilter_error *error) {
    char *folder, stamp[32];
    kilter_status status = kl_record_dir(&folder, error);
    if (status == KILTER_OK && (status = kl_make_dirs(folder, error)) != KILTER_OK)
        free(folder);
    if (status != KILTER_OK)
        return status;
    time_t now = time(NULL);
    struct tm local;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    *path = kl_text("%s/%s-%s-%d.kilter", folder, f->settings.name, stamp, (int)getpid());
    free(folder);
    return *path ? KILTER_OK
                 : kl_fail(error, KILTER_ERR_MEMORY, "choosing a name for the run record: memory ran out");
}

/* Texts to which the first row of a record points. */
typedef struct run_texts {
    char host[KL_HOST_BYTES], build[KL_BUILD_BYTES];
    char *words, *folder; /* malloc'd, or NULL */
} run_texts;

/* Describe this process for the record. The row points into `texts`, so the caller frees `texts` only after
 * the row was used. */
static kl_trace_run_row describe_run(const kilter_farm *f, run_texts *texts) {
    bool resumes = f->settings.resume != NULL;
    *texts = (run_texts){.folder = getcwd(NULL, 0)};
    kl_host_name(texts->host);
    if (resumes && !f->settings.arguments)
        texts->words = kl_own_words(1);
    if (resumes)
        kl_own_build(texts->build);
    return (kl_trace_run_row){.program = f->settings.name,
                              .version = KILTER_VERSION,
                              .transport = f->transport->ops->name,
                              .policy = f->settings.policy ? f->settings.policy : "auto",
                              .host = texts->host,
                              .program_version = f->settings.version,
                              .arguments = texts->words ? texts->words : f->settings.arguments,
                              .build = texts->build,
                              .anyway = f->settings.options.resume_anyway,
                              .began_unix_s = f->opened_unix_s,
                              .pid = getpid(),
                              .simulated = f->clock.simulated,
                              .control = kl_control_name(f->outside.control),
                              .folder = texts->folder};
}

/* Open the file that --resume names, or else the file at `path`. */
static kilter_status open_file(kilter_farm *f, const char *path, kl_trace **trace, kilter_error *error) {
    run_texts texts;
    kl_trace_run_row row = describe_run(f, &texts);
    kilter_status status = f->settings.resume ? kl_farm_open_stored(f, &row, trace, error)
                                              : kl_trace_open(path, &row, trace, error);
    free(texts.words);
    free(texts.folder);
    return status;
}

/* Open the record, and the socket through which tools reach the farm. */
static kilter_status open_record(kilter_farm *f, kl_trace **trace, kilter_error *error) {
    const char *asked = f->settings.record;
    char *path = NULL;
    kilter_status status = asked || f->settings.resume ? KILTER_OK : default_record(f, &path, error);
    /* open no control socket in a simulation, because the socket needs a thread and simulated ranks have
     * none */
    if (status == KILTER_OK && !f->clock.simulated)
        kl_farm_open_control(f);
    if (status == KILTER_OK)
        status = open_file(f, asked ? asked : path, trace, error);
    free(path);
    if (status != KILTER_OK)
        kl_farm_close_control(f); /* without a record, no tool can find the control socket */
    return status;
}

/* Return an error if the user asked for the record. Otherwise print a warning. */
static kilter_status no_record(const kilter_farm *f, kilter_status status, const char *why,
                               kilter_error *error) {
    if (f->settings.resume)
        return kl_fail(error, status, "%s", why);
    if (f->settings.record)
        return kl_fail(error, KILTER_ERR_USAGE, "--record: %s", why);
    fprintf(stderr, "%s: no run record: %s\n", f->settings.name, why);
    return KILTER_OK;
}

/* Let the farm use this record from now on. NULL: the farm has no record. */
static void take_record(kilter_farm *f, kl_trace *trace) {
    const char *asked = f->settings.record, *made = kl_trace_path(trace);
    if (made && asked && strcmp(made, asked) != 0)
        fprintf(stderr, "%s: '%s' exists, so the run record is '%s'\n", f->settings.name, asked, made);
    pthread_mutex_lock(&f->lock);
    f->record.trace = trace;
    pthread_mutex_unlock(&f->lock);
}

/* Start the record at the first run, so that a farm without a run leaves no file. A failure is an error only
 * if the program asked for the record. */
kilter_status kl_farm_start_record(kilter_farm *f, kilter_error *error) {
    const char *asked = f->settings.record, *run = getenv("KILTER_RUN");
    bool none = asked && strcmp(asked, "none") == 0;
    /* open the control socket although there is no record, because `kilter run` watches the farm */
    if (none && run && *run == '@')
        kl_farm_open_control(f);
    if (f->record.decided || none)
        return KILTER_OK;
    kl_trace *trace = NULL;
    kilter_error problem;
    kilter_status status = open_record(f, &trace, &problem);
    /* with --resume, a run without a record fails, and the next run tries again to start the record */
    f->record.decided = status == KILTER_OK || !f->settings.resume;
    if (status != KILTER_OK)
        status = no_record(f, status, problem.text, error);
    if (status == KILTER_OK)
        take_record(f, trace);
    return status;
}

bool kilter_farm_resumes(const kilter_farm *farm) {
    return farm->settings.resume != NULL;
}

const char *kilter_farm_record(const kilter_farm *farm) {
    return kl_trace_path(farm->record.trace);
}
