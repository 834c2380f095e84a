/* The records in a folder, and the choice of a record if the user named none. */
#ifndef KL_RECORDS_H
#define KL_RECORDS_H

#include <time.h>

#include "report/report.h"

typedef enum kl_record_state {
    KL_RECORD_RUNNING, /* a program is writing the record now */
    KL_RECORD_FINISHED,
    KL_RECORD_CANCELLED,
    KL_RECORD_FAILED,
    KL_RECORD_CUT_OFF, /* the record's program was killed or crashed */
    KL_RECORD_UNREADABLE
} kl_record_state;

typedef struct kl_record_file {
    char *path;
    const char *name;        /* file name without the folder; part of `path` */
    struct timespec written; /* time at which the record or its log was last written */
    uint64_t bytes;          /* total size of the record, its log and the log's index */
    kl_record_state state;   /* `state` and the fields below are valid after kl_record_file_read() */
    kl_outline outline;      /* summary of the record; valid unless the record is unreadable */
    kilter_error error;      /* why the record is unreadable */
} kl_record_file;

typedef struct kl_record_list {
    kl_record_file *files; /* the records, sorted by time of writing, the last one first */
    size_t count;
} kl_record_list;

/* Endings of the names of a record's files. The endings of the log's files come first, and the ending of the
 * record itself comes last. NULL ends the array. */
extern const char *const kl_record_files_of[];

/* List the files *.kilter of a folder without reading them. KILTER_ERR_INPUT: the folder cannot be read;
 * KILTER_ERR_MEMORY. The caller frees the list, also after an error. */
kilter_status kl_records_find(const char *folder, kl_record_list *list, kilter_error *error);
void kl_records_free(kl_record_list *list);
void kl_record_file_read(kl_record_file *file);
bool kl_record_is_written(const char *path); /* return whether a program is writing the record now */
const char *kl_record_state_name(kl_record_state state);
/* Find when the record or its log was last written, and the total size of the record's files. Return false
 * if the record does not exist any more. */
bool kl_record_file_look(const char *path, struct timespec *written, uint64_t *bytes);

/* The paragraph in the help of commands that tells which record is read without FILE. */
#define KL_RECORD_CHOICE_HELP                                                                                \
    "Without FILE: the newest record of a program started in this folder, or else the newest\n"              \
    "of all, in $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else ~/.local/state/kilter.\n"

/* Choose a record if the user named none. It is the newest one of `program`. If `program` is NULL, it is
 * the newest one of the programs started in this folder, or else of all programs. With `running`, a record
 * that is being written comes first. Print the choice on stderr, and return its path, malloc'd. NULL: no
 * record was found; see `error`. */
char *kl_record_choose(const char *program, bool running, kilter_error *error);

#endif
