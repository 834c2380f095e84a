/* The records in a folder: what there is, and which of them is meant where none is named. */
#ifndef KL_RECORDS_H
#define KL_RECORDS_H

#include <time.h>

#include "report/report.h"

typedef enum kl_record_state {
    KL_RECORD_RUNNING, /* a program is writing it */
    KL_RECORD_FINISHED,
    KL_RECORD_CANCELLED,
    KL_RECORD_FAILED,
    KL_RECORD_CUT_OFF, /* its program was killed, or crashed */
    KL_RECORD_UNREADABLE
} kl_record_state;

typedef struct kl_record_file {
    char *path;
    const char *name;        /* in `path`, without its folder */
    struct timespec written; /* when the file or its log was last written */
    uint64_t bytes;          /* of the file, its log and the log's index */
    kl_record_state state;   /* from here on: once it was read */
    kl_outline outline;      /* unless it is unreadable */
    kilter_error error;      /* why it is unreadable */
} kl_record_file;

typedef struct kl_record_list {
    kl_record_file *files; /* the one written last first */
    size_t count;
} kl_record_list;

extern const char *const kl_record_files_of[]; /* endings of the names: of the log, …, of the record; NULL */

/* List the *.kilter of a folder, not read yet. KILTER_ERR_INPUT: the folder cannot be read;
 * KILTER_ERR_MEMORY. The list is to be freed in either case. */
kilter_status kl_records_find(const char *folder, kl_record_list *list, kilter_error *error);
void kl_records_free(kl_record_list *list);
void kl_record_file_read(kl_record_file *file);
const char *kl_record_state_name(kl_record_state state);
/* When the record or its log was last written, and the bytes of all of its files. false: it is gone. */
bool kl_record_file_look(const char *path, struct timespec *written, uint64_t *bytes);

/* Of commands that read a record. */
#define KL_RECORD_CHOICE_HELP                                                                                \
    "Without FILE: the newest record of a program started in this folder, or else the newest\n"              \
    "of all, in $KILTER_RECORD_DIR, else $XDG_STATE_HOME/kilter, else ~/.local/state/kilter.\n"

/* Choose the record that is meant where none is named: the one written last of `program`, or when that is
 * NULL, of programs started in this folder, or else of all. With `running`, one that is being written goes
 * before all others. Says on stderr which it is; malloc'd. NULL: there is none, and `error` says why. */
char *kl_record_choose(const char *program, bool running, kilter_error *error);

#endif
