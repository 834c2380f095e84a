/* The folder in which a kept program and its keeper exchange two small files, on a file system that all hosts
 * share. The keeper sets KILTER_KEEP to the folder's path. The folder ckpt owns this header, and both sides
 * include it. Each file is one JSON object on one line. It is written whole under a temporary name and then
 * renamed, so a reader sees an old file or a new one. Readers skip members that they do not know.
 * docs/reference/checkpoint.md describes the files. */
#ifndef KL_KEEP_FOLDER_H
#define KL_KEEP_FOLDER_H

#include "base/base.h"

enum {
    KL_KEEP_VERSION = 1,
    KL_KEEP_HOST_BYTES = 256,
    KL_KEEP_RANKS_MOST = 1 << 20,
    KL_KEEP_FILE_BYTES = 1 << 28, /* greatest size of a file that a reader accepts */
};

typedef char kl_keep_host[KL_KEEP_HOST_BYTES];

/* The state of a kept loop, as its program reports it. Seconds are wall-clock time. Counts of sweeps include
 * those before the last restart. */
typedef struct kl_keep_progress {
    int64_t pid;         /* process number of rank 0 */
    kl_keep_host host;   /* host of rank 0 */
    uint64_t attempt;    /* value of KILTER_KEEP_ATTEMPT; 0: not set */
    uint32_t ranks;      /* number of ranks, at least 1 */
    kl_keep_host *hosts; /* hosts[ranks]; kl_keep_progress_free() frees it */
    double *rates;       /* rates[ranks]: recent rows per second of the rank; 0: not known yet */
    /* sweeps: number of sweeps done; expected: total number of sweeps, 0: not known */
    uint64_t sweeps, expected;
    double elapsed_s;          /* seconds since the loop was opened */
    double sweep_s, longest_s; /* sweep_s: mean seconds of the last sweeps; longest_s: seconds of the longest
                                  sweep so far; 0: no sweep yet */
    uint64_t saved_sweeps, saves; /* saved_sweeps: number of sweeps in the newest checkpoint; saves: number of
                                     checkpoints that this process wrote */
    double save_s;                /* seconds for which the last checkpoint stopped the sweeps */
    double write_s;               /* seconds from the beginning of the last checkpoint until it was on disk */
    double load_s;     /* seconds that loading a checkpoint took at the start; 0: none was loaded */
    uint64_t answered; /* number of the last request that the program carried out or refused */
    char error[KILTER_ERROR_TEXT_BYTES]; /* why the last save failed; "": it did not fail */
    bool stopped;                        /* true: the loop was saved and stopped on request */
    bool done;                           /* true: the loop was closed */
} kl_keep_progress;

typedef enum kl_keep_what { KL_KEEP_NOTHING, KL_KEEP_SAVE, KL_KEEP_STOP } kl_keep_what;

typedef struct kl_keep_request {
    uint64_t number; /* number of the request; the first is 1, and each new one has a greater number */
    kl_keep_what what;
} kl_keep_request;

/* Identity of the file of the last request that was read. All zero: none was read. */
typedef struct kl_keep_seen {
    int64_t modified_ns;
    uint64_t file;
} kl_keep_seen;

/* Write the file `progress` or `request` of a folder. Errors: KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY */
kilter_status kl_keep_progress_write(const char *folder, const kl_keep_progress *progress,
                                     kilter_error *error);
kilter_status kl_keep_request_write(const char *folder, const kl_keep_request *request, kilter_error *error);

/* Read a file of a folder. *there: false if the file does not exist; then the other arguments do not change.
 * The caller frees a progress by kl_keep_progress_free(). KILTER_ERR_INPUT: the content is not valid;
 * KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY: the file cannot be read */
kilter_status kl_keep_progress_read(const char *folder, kl_keep_progress *progress, bool *there,
                                    kilter_error *error);
kilter_status kl_keep_request_read(const char *folder, kl_keep_request *request, bool *there,
                                   kilter_error *error);
/* Check by stat() whether the file `request` has changed since `seen`, and update `seen`. */
bool kl_keep_request_changed(const char *folder, kl_keep_seen *seen);
void kl_keep_progress_free(kl_keep_progress *progress);

/* Read a progress or a request from the text of its file. `text` need not end with NUL. */
kilter_status kl_keep_progress_parse(const char *text, size_t size, kl_keep_progress *progress,
                                     kilter_error *error);
kilter_status kl_keep_request_parse(const char *text, size_t size, kl_keep_request *request,
                                    kilter_error *error);
/* Write a progress or a request as the text of its file. false: memory ran out */
bool kl_keep_progress_print(const kl_keep_progress *progress, kl_buffer *text);
bool kl_keep_request_print(const kl_keep_request *request, kl_buffer *text);

#endif
