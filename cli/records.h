/* The records in a folder, and the choice of one if none is named. */
#ifndef KL_RECORDS_H
#define KL_RECORDS_H

#include <time.h>

#include "report/report.h"

typedef enum kl_record_state {
    KL_RECORD_RUNNING, /* a program is writing the record */
    KL_RECORD_FINISHED,
    KL_RECORD_CANCELLED,
    KL_RECORD_FAILED,
    KL_RECORD_CUT_OFF, /* the record's program was killed or crashed */
    KL_RECORD_UNREADABLE
} kl_record_state;

typedef struct kl_record_file {
    char *path;
    const char *name;        /* the name within `path`, without the folder */
    struct timespec written; /* time at which the record or its log was last written */
    uint64_t bytes;          /* bytes of the record, its log and the log's index */
    kl_record_state state;   /* this field and those below are valid after reading */
    kl_outline outline;      /* valid unless the record is unreadable */
    kilter_error error;      /* why the record is unreadable */
} kl_record_file;

typedef struct kl_record_list {
    kl_record_file *files; /* the records, sorted by time of writing, the last one first */
    size_t count;
} kl_record_list;

/* endings of a record's files: those of the log first, the record's last; then NULL */
extern const char *const kl_record_files_of[];

/* List the *.kilter of a folder without reading them. KILTER_ERR_INPUT: the folder cannot be read;
 * KILTER_ERR_MEMORY. The caller frees the list in both cases. */
kilter_status kl_records_find(const char *folder, kl_record_list *list, kilter_error *error);
void kl_records_free(kl_record_list *list);
void kl_record_file_read(kl_record_file *file);
bool kl_record_is_written(const char *path); /* Return whether a program is writing the record. */
const char *kl_record_state_name(kl_record_state state);
/* Find the time at which record or log was last written, and the bytes of all its files. false: the record is
 * gone. */
bool kl_record_file_look(const char *path, struct timespec *written, uint64_t *bytes);

/* A paragraph for the help of commands that read a record. */
#define KL_RECORD_CHOICE_HELP                                                                                \
    "Without FILE: the newest record of a program started in this folder, or else the newest\n"              \
    "of all, in $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else ~/.local/state/kilter.\n"

/* Choose the record if none is named: the record of `program` that was written last. If `program` is NULL,
 * programs started in this folder count, or else all programs. With `running`, a record that is being written
 * comes first. Prints the choice on stderr; malloc'd. NULL: there is none, see `error`. */
char *kl_record_choose(const char *program, bool running, kilter_error *error);

#endif
