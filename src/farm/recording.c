/* The farm's run record: choose its path, and begin it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "farm/farm_private.h"
#include "kilter/version.h"

/* Check that a file can be created at `path`. The user gave the path with `option`. */
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

/* Start the record at the first run, so that a farm without a run leaves no file. A failure is an error only
 * if the program asked for the record. */
kilter_status kl_farm_start_record(kilter_farm *f, kilter_error *error) {
    const char *asked = f->settings.record, *resume = f->settings.resume;
    bool none = asked && strcmp(asked, "none") == 0;
    const char *run = getenv("KILTER_RUN");
    /* open the control socket although there is no record, because `kilter run` watches the farm */
    if (none && run && *run == '@')
        kl_farm_open_control(f);
    if (f->record.decided || none)
        return KILTER_OK;
    char *path = NULL, host[KL_HOST_BYTES];
    kl_trace *trace = NULL;
    kilter_error problem;
    kilter_status status = asked || resume ? KILTER_OK : default_record(f, &path, &problem);
    /* open no control socket in a simulation, because the socket needs a thread and simulated ranks have
     * none */
    if (status == KILTER_OK && !f->clock.simulated)
        kl_farm_open_control(f);
    kl_host_name(host);
    char *words = resume && !f->settings.arguments ? kl_own_words(1) : NULL, build[KL_BUILD_BYTES] = "";
    char *here = getcwd(NULL, 0);
    if (resume)
        kl_own_build(build);
    kl_trace_run_row row = {.program = f->settings.name,
                            .version = KILTER_VERSION,
                            .transport = f->transport->ops->name,
                            .policy = f->settings.policy ? f->settings.policy : "auto",
                            .host = host,
                            .program_version = f->settings.version,
                            .arguments = words ? words : f->settings.arguments,
                            .build = build,
                            .anyway = f->settings.options.resume_anyway,
                            .began_unix_s = f->opened_unix_s,
                            .pid = getpid(),
                            .simulated = f->clock.simulated,
                            .control = kl_control_name(f->outside.control),
                            .folder = here};
    if (status == KILTER_OK && resume)
        status = kl_farm_open_stored(f, &row, &trace, &problem);
    else if (status == KILTER_OK)
        status = kl_trace_open(asked ? asked : path, &row, &trace, &problem);
    free(path);
    free(words);
    free(here);
    if (status != KILTER_OK)
        kl_farm_close_control(f); /* without a record, no tool can find the control socket */
    /* with --resume, a run without a record fails, and the next run tries again to start the record */
    f->record.decided = status == KILTER_OK || !resume;
    if (status != KILTER_OK && resume)
        return kl_fail(error, status, "%s", problem.text);
    if (status != KILTER_OK && asked)
        return kl_fail(error, KILTER_ERR_USAGE, "--record: %s", problem.text);
    if (status != KILTER_OK)
        fprintf(stderr, "%s: no run record: %s\n", f->settings.name, problem.text);
    const char *made = kl_trace_path(trace);
    if (made && asked && strcmp(made, asked) != 0)
        fprintf(stderr, "%s: '%s' exists, so the run record is '%s'\n", f->settings.name, asked, made);
    pthread_mutex_lock(&f->lock);
    f->record.trace = trace;
    pthread_mutex_unlock(&f->lock);
    return KILTER_OK;
}

bool kilter_farm_resumes(const kilter_farm *farm) {
    return farm->settings.resume != NULL;
}

const char *kilter_farm_record(const kilter_farm *farm) {
    return kl_trace_path(farm->record.trace);
}
