/* Find the records in a folder, read their summaries, and choose one if the user named none. */
#include "records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/print.h"
#include "sys/sys.h"
#include "trace/trace.h"

static const char record_ending[] = ".kilter";
const char *const kl_record_files_of[] = {"-wal", "-shm", "-journal", "", NULL};

static bool is_record_name(const char *name) {
    size_t size = strlen(name), ending = sizeof record_ending - 1;
    return size > ending && strcmp(name + size - ending, record_ending) == 0;
}

static bool is_later(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Use the time of the record's log, too: each write changes the log, but the record's own file changes only
 * now and then. */
bool kl_record_file_look(const char *path, struct timespec *written, uint64_t *bytes) {
    struct stat info;
    bool there = false;
    *written = (struct timespec){0};
    *bytes = 0;
    for (const char *const *ending = kl_record_files_of; *ending; ending++) {
        char *name = kl_text("%s%s", path, *ending);
        /* the record itself is the last of these files */
        there = name && stat(name, &info) == 0 && S_ISREG(info.st_mode);
        *bytes += there ? (uint64_t)info.st_size : 0;
        /* readers write this index of the log, too, so its time does not count */
        bool index = strcmp(*ending, "-shm") == 0;
        if (there && !index && is_later(info.st_mtim, *written))
            *written = info.st_mtim;
        free(name);
    }
    return there;
}

static kilter_status add(const char *folder, const char *name, kl_record_list *list, kilter_error *error) {
    kl_record_file *files = realloc(list->files, (list->count + 1) * sizeof *files);
    list->files = files ? files : list->files;
    char *path = files ? kl_text("%s/%s", folder, name) : NULL;
    if (!path)
        return kl_fail(error, KILTER_ERR_MEMORY, "looking for run records: memory ran out");
    kl_record_file *file = &files[list->count];
    *file = (kl_record_file){.path = path, .name = path + strlen(folder) + 1};
    if (kl_record_file_look(path, &file->written, &file->bytes))
        list->count++;
    else
        free(path);
    return KILTER_OK;
}

/* Compare records: the one that was written last comes first. At equal times the last name comes first,
 * because default names contain the time. */
static int last_written_first(const void *a, const void *b) {
    const kl_record_file *x = a, *y = b;
    if (is_later(x->written, y->written) || is_later(y->written, x->written))
        return is_later(x->written, y->written) ? -1 : 1;
    return strcmp(y->name, x->name);
}

kilter_status kl_records_find(const char *folder, kl_record_list *list, kilter_error *error) {
    *list = (kl_record_list){0};
    DIR *dir = opendir(folder);
    if (!dir)
        return kl_fail(error, KILTER_ERR_INPUT, "looking for run records in '%s': %s", folder,
                       strerror(errno));
    kilter_status status = KILTER_OK;
    for (struct dirent *entry; status == KILTER_OK && (entry = readdir(dir));)
        if (is_record_name(entry->d_name))
            status = add(folder, entry->d_name, list, error);
    closedir(dir);
    if (list->count > 0)
        qsort(list->files, list->count, sizeof *list->files, last_written_first);
    return status;
}

void kl_records_free(kl_record_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        kl_outline_free(&list->files[i].outline);
        free(list->files[i].path);
    }
    free(list->files);
    *list = (kl_record_list){0};
}

bool kl_record_is_written(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool locked = file >= 0 && kl_record_is_locked(file);
    if (file >= 0)
        close(file);
    return locked;
}

static kl_record_state state_of(const kl_outline *o, bool written) {
    if (written)
        return KL_RECORD_RUNNING;
    if (!o->ended)
        return KL_RECORD_CUT_OFF;
    if (o->runs == 0 && !o->loop) /* the farm ended without a run */
        return KL_RECORD_FINISHED;
    return !o->status                            ? KL_RECORD_FAILED
           : strcmp(o->status, "done") == 0      ? KL_RECORD_FINISHED
           : strcmp(o->status, "cancelled") == 0 ? KL_RECORD_CANCELLED
                                                 : KL_RECORD_FAILED;
}

/* Check the lock first, and then read the record. If the program ends between these two steps, the record
 * shows its end. */
void kl_record_file_read(kl_record_file *file) {
    bool written = kl_record_is_written(file->path);
    kilter_status status = kl_outline_read(file->path, &file->outline, &file->error);
    file->state = status == KILTER_OK ? state_of(&file->outline, written && !file->outline.ended)
                                      : KL_RECORD_UNREADABLE;
}

const char *kl_record_state_name(kl_record_state state) {
    static const char *const names[] = {
        [KL_RECORD_RUNNING] = "running",     [KL_RECORD_FINISHED] = "finished",
        [KL_RECORD_CANCELLED] = "cancelled", [KL_RECORD_FAILED] = "failed",
        [KL_RECORD_CUT_OFF] = "cut off",     [KL_RECORD_UNREADABLE] = "unreadable"};
    return names[state];
}

/* --- choosing a record when none is named --- */

enum { NO_MATCH, READABLE, OF_HERE, MATCHES_MOST = OF_HERE, RUNNING = 4 };

/* Return how well a record fits the search; 0: not at all. */
static int match(const kl_record_file *file, const char *program, const char *here) {
    if (file->state == KL_RECORD_UNREADABLE)
        return NO_MATCH;
    if (program)
        return strcmp(file->outline.program, program) == 0 ? OF_HERE : NO_MATCH;
    return here && strcmp(file->outline.folder, here) == 0 ? OF_HERE : READABLE;
}

typedef struct choice {
    const kl_record_file *file;
    int match;
} choice;

static choice choose(const kl_record_list *list, const char *program, bool running) {
    char *here = getcwd(NULL, 0);
    choice best = {0};
    for (size_t i = 0; i < list->count && best.match < (running ? RUNNING : 0) + MATCHES_MOST; i++) {
        kl_record_file *file = &list->files[i];
        kl_record_file_read(file);
        int found = match(file, program, here);
        if (found && running && file->state == KL_RECORD_RUNNING)
            found += RUNNING;
        if (found > best.match)
            best = (choice){file, found};
    }
    free(here);
    if (!best.file && !program && list->count > 0) /* take an unreadable record, whose error is printed
                                                    * later */
        best.file = &list->files[0];
    return best;
}

static char *choose_in(const char *folder, const char *program, bool running, kilter_error *error) {
    kl_record_list list;
    char *path = NULL;
    kilter_error unused;
    kl_records_find(folder, &list, &unused); /* a missing folder has no records */
    choice chosen = choose(&list, program, running);
    if (chosen.file)
        path = kl_text("%s", chosen.file->path);
    if (path) {
        const char *which = program ? "of this program"
                            : chosen.match % RUNNING == OF_HERE
                                ? "of this folder's programs"
                                : "of all programs, because none was started in this folder";
        fprintf(stderr, "kilter: %s: the newest record %s\n", kl_shown_name(chosen.file->path).text, which);
    } else if (program)
        kl_fail(error, KILTER_ERR_INPUT, "looking for the newest record of '%s': there is none in '%s'",
                program, folder);
    else
        kl_fail(error, KILTER_ERR_INPUT, "looking for the newest record: no file *%s in '%s'; name the file",
                record_ending, folder);
    kl_records_free(&list);
    return path;
}

char *kl_record_choose(const char *program, bool running, kilter_error *error) {
    char *folder = NULL, *path = NULL;
    if (kl_record_dir(&folder, error) == KILTER_OK)
        path = choose_in(folder, program, running, error);
    free(folder);
    return path;
}
