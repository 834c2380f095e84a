/* kilter report: the summary of a run, from its record. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd.h"
#include "report/report.h"
#include "sys/sys.h"

static const char record_ending[] = ".kilter";

static bool is_record_name(const char *name) {
    size_t size = strlen(name), ending = sizeof record_ending - 1;
    return size > ending && strcmp(name + size - ending, record_ending) == 0;
}

static bool is_newer(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* A record that is being written changes its log, and only now and then itself. */
static bool changed_at(const char *file, struct timespec *at) {
    struct stat info, log;
    if (stat(file, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    *at = info.st_mtim;
    char *log_name = kl_text("%s-wal", file);
    if (log_name && stat(log_name, &log) == 0 && is_newer(log.st_mtim, *at))
        *at = log.st_mtim;
    free(log_name);
    return true;
}

/* Of two that changed at the same time, the name that sorts last: names begin with the time. */
static char *newest_in(const char *folder, DIR *dir) {
    char *newest = NULL;
    struct timespec newest_at = {0};
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *file = is_record_name(entry->d_name) ? kl_text("%s/%s", folder, entry->d_name) : NULL;
        struct timespec at;
        if (file && changed_at(file, &at) &&
            (!newest || is_newer(at, newest_at) || (!is_newer(newest_at, at) && strcmp(file, newest) > 0))) {
            free(newest);
            newest = file;
            newest_at = at;
        } else {
            free(file);
        }
    }
    return newest;
}

/* NULL: none, and `error` says why. */
static char *newest_record(kilter_error *error) {
    char *folder = NULL;
    if (kl_record_dir(&folder, error) != KILTER_OK || !folder)
        return NULL;
    DIR *dir = opendir(folder);
    char *newest = dir ? newest_in(folder, dir) : NULL;
    if (dir)
        closedir(dir);
    if (!newest)
        kl_fail(error, KILTER_ERR_INPUT, "looking for the newest record: no file *%s in '%s'; name the file",
                record_ending, folder);
    free(folder);
    return newest;
}

static int print(const char *file, bool json) {
    kilter_error error;
    kl_report *report = NULL;
    if (kl_report_read(file, &report, &error) != KILTER_OK)
        return kilter_exit("kilter", &error);
    if (json)
        kl_report_print_json(report, stdout);
    else
        kl_report_print_text(report, stdout);
    kl_report_free(report);
    return kl_cmd_printed();
}

static int print_newest(bool json) {
    kilter_error error;
    char *file = newest_record(&error);
    if (!file)
        return kilter_exit("kilter", &error);
    int code = print(file, json);
    free(file);
    return code;
}

static int run(const kl_command *command, int argc, char **argv) {
    bool json = false, options = true;
    const char *file = NULL;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && strcmp(argv[i], "--json") == 0)
            json = true;
        else if (options && argv[i][0] == '-' && argv[i][1])
            return kl_cmd_usage(command, "unknown option '%s'", argv[i]);
        else if (file)
            return kl_cmd_usage(command, "one file at a time: '%s' and '%s' were given", file, argv[i]);
        else
            file = argv[i];
    }
    return file ? print(file, json) : print_newest(json);
}

const kl_command kl_cmd_report = {
    .name = "report",
    .summary = "what each worker did in a run, and how near the run came to its bound",
    .help =
        "usage: kilter report [--json] [FILE]\n"
        "\n"
        "Prints the summary of a run from its record, also while the run goes on or after it was killed.\n"
        "Without FILE: the newest *.kilter in $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else\n"
        "~/.local/state/kilter.\n"
        "\n"
        "  --json   one JSON object; times in seconds, null where a number is not known\n"
        "  --help   this text\n",
    .run = run,
};
