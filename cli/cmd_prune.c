/* kilter prune: delete old records. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "records.h"
#include "report/print.h"
#include "sys/sys.h"
#include "trace/trace.h"

typedef struct request {
    int64_t keep;        /* number of newest records to keep for each program; −1: not given */
    double older_s;      /* keep records that were written in the last older_s seconds; NAN: not given */
    const char *program; /* delete only records of this program; NULL: of all programs */
    bool results, dry_run;
    double now_unix_s;
} request;

/* Numbers of records that were deleted, kept, unreadable, and that could not be deleted (failed). */
typedef struct tally {
    size_t deleted, kept, unreadable, failed;
    uint64_t bytes; /* size of the deleted records */
} tally;

/* --- choosing which records to delete --- */

/* Return how many records of the same program were written after record i. */
static int64_t place_of(const kl_record_list *list, size_t i) {
    int64_t place = 0;
    for (size_t k = 0; k < i; k++)
        place += list->files[k].state != KL_RECORD_UNREADABLE &&
                 strcmp(list->files[k].outline.program, list->files[i].outline.program) == 0;
    return place;
}

static bool is_old(const request *r, const kl_record_list *list, size_t i) {
    const kl_record_file *file = &list->files[i];
    if (r->program && strcmp(file->outline.program, r->program) != 0)
        return false;
    return (isnan(r->older_s) || r->now_unix_s - (double)file->written.tv_sec > r->older_s) &&
           (r->keep < 0 || place_of(list, i) >= r->keep);
}

/* --- deleting --- */

/* Return why the open file must not be deleted: it was written or replaced since the folder was read, or
 * belongs to another user. NULL: it may be deleted. */
static const char *why_not_that_one(const kl_record_file *file, int fd) {
    struct stat opened, named;
    struct timespec written;
    uint64_t bytes;
    if (fstat(fd, &opened) != 0 || stat(file->path, &named) != 0 || opened.st_ino != named.st_ino ||
        opened.st_dev != named.st_dev || !kl_record_file_look(file->path, &written, &bytes) ||
        written.tv_sec != file->written.tv_sec || written.tv_nsec != file->written.tv_nsec)
        return "the record has changed meanwhile";
    return opened.st_uid != geteuid() ? "the record belongs to another user" : NULL;
}

/* Delete a record and its SQLite log. Delete the log first. A log without its record would later be applied
 * to a new record of the same name. */
static int delete_files(const kl_record_file *file) {
    for (const char *const *ending = kl_record_files_of; *ending; ending++) {
        char *name = kl_text("%s%s", file->path, *ending);
        bool gone = name && (unlink(name) == 0 || errno == ENOENT);
        int code = name ? errno : ENOMEM;
        free(name);
        if (!gone)
            return code;
    }
    return 0;
}

static void say_kept(const kl_record_file *file, const char *why, tally *t) {
    printf("kept      %s: %s\n", kl_shown_name(file->name).text, why);
    t->kept++;
}

static void say_failed(const kl_record_file *file, int code, tally *t) {
    fflush(stdout);
    fprintf(stderr, "kilter: deleting '%s': %s\n", kl_shown_name(file->path).text, strerror(code));
    t->failed++;
}

/* Delete a record. Meanwhile hold the lock that a writer of the record needs, so that no program begins to
 * write it. */
static void delete_locked(const request *r, const kl_record_file *file, int fd, tally *t) {
    const char *not = kl_record_lock(fd) ? why_not_that_one(file, fd)
                      : errno == EAGAIN  ? "a program is writing the record"
                                         : strerror(errno);
    if (not ) {
        say_kept(file, not, t);
        return;
    }
    int code = r->dry_run ? 0 : delete_files(file);
    if (code == 0) {
        printf("%s  %s  %s\n", r->dry_run ? "would go" : "deleted ", kl_shown_name(file->name).text,
               kl_bytes_words(file->bytes).text);
        t->deleted++;
        t->bytes += file->bytes;
    } else
        say_failed(file, code, t);
}

static void delete_record(const request *r, const kl_record_file *file, tally *t) {
    int fd = open(file->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return; /* another process has deleted the record */
    if (fd < 0 && errno == ELOOP)
        say_kept(file, "the file is a link", t);
    else if (fd < 0)
        say_failed(file, errno, t);
    else
        delete_locked(r, file, fd, t);
    if (fd >= 0)
        close(fd);
}

static void consider(const request *r, const kl_record_list *list, size_t i, tally *t) {
    const kl_record_file *file = &list->files[i];
    if (file->state == KL_RECORD_UNREADABLE)
        /* Do not count a record that another process has just deleted. */
        t->unreadable += access(file->path, F_OK) == 0;
    else if (!is_old(r, list, i))
        t->kept++;
    else if (file->state == KL_RECORD_RUNNING)
        say_kept(file, "a program is writing the record", t);
    else if (file->outline.results && !r->results)
        say_kept(file, "the record holds results for --resume; with --results it is deleted, too", t);
    else
        delete_record(r, file, t);
}

static kilter_status prune(const request *r, const char *folder, tally *t, kilter_error *error) {
    kl_record_list list;
    kilter_status status = kl_records_find(folder, &list, error);
    for (size_t i = 0; status == KILTER_OK && i < list.count; i++)
        kl_record_file_read(&list.files[i]);
    for (size_t i = list.count; status == KILTER_OK && i > 0; i--) /* the oldest record comes first */
        consider(r, &list, i - 1, t);
    kl_records_free(&list);
    return status;
}

/* --- pruning folders --- */

static int prune_all(const request *r, char **folders, int count) {
    tally t = {0};
    kilter_error error;
    char *own = NULL;
    kilter_status status = count == 0 ? kl_record_dir(&own, &error) : KILTER_OK;
    if (own && access(own, F_OK) == 0) /* if the default folder does not exist, there are no records */
        status = prune(r, own, &t, &error);
    int code = status == KILTER_OK ? EXIT_SUCCESS : kilter_exit("kilter", &error), unread = 0;
    for (int i = 0; i < count; i++)
        if (prune(r, folders[i], &t, &error) != KILTER_OK) {
            code = kilter_exit("kilter", &error);
            unread++;
        }
    free(own);
    if (code == EXIT_SUCCESS || unread < count) {
        printf("%zu record%s %s, %s %s; %zu kept\n", t.deleted, t.deleted == 1 ? "" : "s",
               r->dry_run ? "would be deleted" : "deleted", kl_bytes_words(t.bytes).text,
               r->dry_run ? "would be freed" : "freed", t.kept);
        if (t.unreadable > 0)
            printf("%zu file%s left alone: not readable as a record; kilter list names %s\n", t.unreadable,
                   t.unreadable == 1 ? "" : "s", t.unreadable == 1 ? "it" : "them");
    }
    int printed = kl_cmd_printed();
    return code != EXIT_SUCCESS ? code : t.failed > 0 ? EXIT_FAILURE : printed;
}

/* --- the command line --- */

/* Read "90s", "12h" or "30d". */
static kilter_status read_duration(const kl_value *v) {
    static const char units[] = "smhdw";
    static const double seconds[] = {1, 60, 3600, 86400, 604800};
    char *end;
    double value = strtod(v->text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (*v->text < '0' || *v->text > '9' || !unit || end[1] || !isfinite(value))
        return kl_option_refuse(v, "not a number with its unit, s, m, h, d or w, such as 30d");
    ((request *)v->into)->older_s = value * seconds[unit - units];
    return KILTER_OK;
}

#define AT(member) .offset = offsetof(request, member)

static const kl_option rows[] = {
    {"keep", "N", "Keep the N newest records of each program; the others are old.", KL_OPTION_UINT64,
     AT(keep), .most = 1e15},
    {"older", "TIME", "A record is old if it was not written for TIME: 90s, 30m, 12h, 30d or 2w.",
     KL_OPTION_OTHER, .read = read_duration},
    {"program", "NAME", "Delete records of this program only.", KL_OPTION_TEXT, AT(program)},
    {"results", NULL, "Also delete records with results, from which --resume can continue.", KL_OPTION_SWITCH,
     AT(results)},
    {"dry-run", NULL, "Delete nothing, but print what would be deleted.", KL_OPTION_SWITCH, AT(dry_run)},
};

static int run(const kl_command *command, int argc, char **argv) {
    request r = {.keep = -1, .older_s = (double)NAN, .now_unix_s = kl_unix_time_s()};
    int first, code = kl_cmd_read(command, argc, argv, &r, &first);
    if (code != EXIT_SUCCESS)
        return code;
    return r.keep < 0 && isnan(r.older_s) ? kl_cmd_usage(command, "give --keep, --older or both")
                                          : prune_all(&r, argv + first, argc - first);
}

const kl_command kl_cmd_prune = {
    .name = "prune",
    .summary = "Delete old records.",
    .text = "usage: kilter prune [--keep N] [--older TIME] [OPTION]… [FOLDER]…\n\n"
            "Deletes the old records (*.kilter) in FOLDER, and says how much space that freed. With\n"
            "both --keep and --older, a record is old if both apply. Without FOLDER: in\n"
            "$KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else ~/.local/state/kilter.\n"
            "Records that a program is writing stay, and so do files that are not records.\n",
    .options = KL_OPTIONS(rows),
    .takes_files = true,
    .run = run,
};
