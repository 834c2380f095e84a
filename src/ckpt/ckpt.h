/* Public header of the folder ckpt: checkpoints of loops on disk, and the folder of a kept program
 * (keep_folder.h).
 *
 * A checkpoint is an HDF5 file with several datasets, which are called parts. Rank 0 plans the file with
 * HDF5, which gives each part a position in the file. Then every rank writes its own rows to these positions.
 * The code that calls HDF5 is in a separate library, which is loaded when a loop wants checkpoints. The file
 * gets its final name when the rows of all ranks are on the disk, so a file with this name is complete. Each
 * new checkpoint of a program is a generation, whose number is in the file's name.
 *
 *     plan.c          what a checkpoint holds, and whether it fits a program
 *     folder.c        names, generations, the final name
 *     seal.c          creates a file, and checks its headers
 *     write.c, read.c the rows of one rank
 *     library.c       loads libkilter-ckpt, which consists of layout_hdf5.c
 *     keep_folder.c   the folder of a kept program; json.c: its files
 *
 * docs/reference/checkpoint.md describes the file. */
#ifndef KL_CKPT_H
#define KL_CKPT_H

#include "base/base.h"
#include "ckpt/keep_folder.h"
#include "rank/rank.h"

/* --- the content of a checkpoint: its attributes, parts and plan --- */

enum { KL_CKPT_VERSION = 1, KL_CKPT_LOOP_BYTES = 256, KL_CKPT_NAME_BYTES = 64, KL_CKPT_PART_BYTES = 80 };

/* Attributes of a checkpoint's file. These lists define both the struct kl_ckpt_facts and the attributes. */
#define KL_CKPT_COUNTS(X)                                                                                    \
    X(version)                                                                                               \
    X(rows)     /* number of iterations of the loop */                                                       \
    X(kind)     /* 0: DOALL; 1: DOACROSS */                                                                  \
    X(inner)    /* for DOACROSS: number of elements in a row */                                              \
    X(arrays)   /* number of arrays of the loop */                                                           \
    X(content)  /* 1: each row also has content of changing size */                                          \
    X(values)   /* number of values that are kept beside the arrays */                                       \
    X(sweeps)   /* number of sweeps done */                                                                  \
    X(ranks)    /* number of ranks of the program that wrote the file */                                     \
    X(failures) /* how many times the program was resumed after a failure */                                 \
    X(stopped)  /* 1: the program stopped on request after this checkpoint */
#define KL_CKPT_NUMBERS(X)                                                                                   \
    X(elapsed_s) /* seconds that the program has run, without work that was lost or repeated */              \
    X(written_unix_s)

typedef struct kl_ckpt_facts {
#define KL_CKPT_COUNT(name)  uint64_t name;
#define KL_CKPT_NUMBER(name) double name;
    KL_CKPT_COUNTS(KL_CKPT_COUNT)
    KL_CKPT_NUMBERS(KL_CKPT_NUMBER)
#undef KL_CKPT_COUNT
#undef KL_CKPT_NUMBER
    char loop[KL_CKPT_LOOP_BYTES];
} kl_ckpt_facts;

typedef struct kl_ckpt_part { /* a dataset of rows × width elements */
    char name[KL_CKPT_PART_BYTES];
    uint64_t rows, width; /* number of elements is rows × width; width 0: one dimension of `rows` elements */
    bool words;           /* true: elements are 64-bit words; false: bytes */
    uint64_t at;          /* offset of the part in the file, in bytes */
} kl_ckpt_part;

typedef struct kl_ckpt_kept { /* a value that is the same on all ranks */
    char name[KL_CKPT_NAME_BYTES];
    void *at;
    size_t bytes;
} kl_ckpt_kept;

/* The plan of a checkpoint's file. The parts are, in this order: rows and checksums of each array; bytes and
 * index of the content, if there is content; values and their checksums, if there are values. */
typedef struct kl_ckpt_plan {
    kl_ckpt_facts facts;
    kl_ckpt_part *parts;
    size_t count;
} kl_ckpt_plan;

/* Plan a checkpoint. array_bytes[facts->arrays]: bytes of a row; array_rows[facts->arrays]: number of rows,
 * or NULL if all arrays have facts->rows; values[facts->values]: the kept values; content_bytes: bytes of the
 * content of all rows, 0 if not known. The caller frees the plan. false: memory ran out */
bool kl_ckpt_plan_make(kl_ckpt_plan *plan, const kl_ckpt_facts *facts, const uint64_t *array_bytes,
                       const uint64_t *array_rows, uint64_t content_bytes, const kl_ckpt_kept *values);
/* Set the size of the content in a plan that has content. */
void kl_ckpt_size_content(kl_ckpt_plan *plan, uint64_t bytes);
void kl_ckpt_plan_free(kl_ckpt_plan *plan);
/* Return the size of a part in bytes. */
uint64_t kl_ckpt_part_bytes(const kl_ckpt_part *part);
/* Compare a file's facts and parts with those of the program. The part that holds the content of the
 * rows may have another size. KILTER_ERR_INPUT: they differ; the error says in what. */
kilter_status kl_ckpt_facts_fit(const kl_ckpt_facts *file, const kl_ckpt_facts *program, kilter_error *error);
kilter_status kl_ckpt_parts_fit(const kl_ckpt_plan *file, const kl_ckpt_plan *program, kilter_error *error);
/* Return whether a value may have this name. */
bool kl_ckpt_is_name(const char *name);

/* --- libkilter-ckpt --- */

/* The functions of the library libkilter-ckpt. Only one thread at a time may call them. */
typedef struct kl_ckpt_library {
    const char *version; /* version of Kilter; the first field in all versions, so that a wrong version is
                            always noticed */
    /* Empty the existing file at `path`, and write the headers of all parts of the plan, without their data.
     * Set each part's `at`, its offset in the file. */
    kilter_status (*create)(const char *path, kl_ckpt_plan *plan, kilter_error *error);
    /* Read the facts of a file whose headers have the right checksum (seal). KILTER_ERR_INPUT: it is no
     * checkpoint; KILTER_ERR_SYSTEM: it cannot be read */
    kilter_status (*read_facts)(const char *path, kl_ckpt_facts *facts, kilter_error *error);
    /* Find the parts of a file by their names, and set the other members of each part. KILTER_ERR_RANGE: a
     * part is missing; KILTER_ERR_SYSTEM: the file cannot be read */
    kilter_status (*read_parts)(const char *path, kl_ckpt_plan *plan, kilter_error *error);
} kl_ckpt_library;

/* Load the library, which then stays loaded. KILTER_ERR_SYSTEM: the library is not installed, or it has
 * another version */
kilter_status kl_ckpt_load(const kl_ckpt_library **library, kilter_error *error);

/* Create an unfinished file that has a position for each part of a plan, but no data yet. A failure gives
 * KILTER_ERR_SYSTEM. */
kilter_status kl_ckpt_lay_out(const kl_ckpt_library *library, const char *path, kl_ckpt_plan *plan,
                              kilter_error *error);
/* Check the headers of a file before HDF5 reads them. KILTER_ERR_INPUT: the headers are damaged, or the file
 * is no checkpoint; KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY: the file cannot be read now */
kilter_status kl_ckpt_check_seal(const char *path, kilter_error *error);

/* --- names of files, and generations of checkpoints --- */

typedef struct kl_ckpt_folder {
    char *path;      /* absolute */
    char *stem;      /* beginning of the names of all files of this checkpoint */
    kl_span damaged; /* numbers of the damaged generations, from which the program could not continue */
} kl_ckpt_folder;

/* Find the folder of the checkpoints that are named `path`. This name has no generation number and no suffix.
 * KILTER_ERR_SYSTEM: there is no such folder, or no file can be created in it; KILTER_ERR_RANGE: the path
 * does not end with a valid name; KILTER_ERR_MEMORY */
kilter_status kl_ckpt_folder_open(const char *path, kl_ckpt_folder *folder, kilter_error *error);
void kl_ckpt_folder_free(kl_ckpt_folder *folder);
/* Return the path of the file of a generation: kl_ckpt_path() when it is complete, kl_ckpt_unfinished_path()
 * until then. The caller frees the path. NULL: memory ran out. */
char *kl_ckpt_path(const kl_ckpt_folder *folder, uint64_t generation);
char *kl_ckpt_unfinished_path(const kl_ckpt_folder *folder, uint64_t generation, uint64_t token);
/* List the generations that exist, newest first. The caller frees the list. Errors: KILTER_ERR_SYSTEM,
 * KILTER_ERR_MEMORY */
kilter_status kl_ckpt_list(const kl_ckpt_folder *folder, uint64_t **generations, size_t *count,
                           kilter_error *error);
/* Find the number of the newest generation; 0: there is none. */
kilter_status kl_ckpt_newest(const kl_ckpt_folder *folder, uint64_t *generation, kilter_error *error);
/* Give a file its final name, and synchronise the folder with the disk. The file's data must be on the disk
 * already. KILTER_ERR_SYSTEM: the file did not get its final name */
kilter_status kl_ckpt_commit(const kl_ckpt_folder *folder, uint64_t generation, uint64_t token,
                             kilter_error *error);
/* Remove the generations that are older than the `keep` newest undamaged ones. Call this after a commit. */
void kl_ckpt_remove_old(const kl_ckpt_folder *folder, unsigned keep);
/* Record that a program starts from this generation, and return how many programs have started from it
 * before. A record that cannot be written is no error. */
uint64_t kl_ckpt_note_start(const kl_ckpt_folder *folder, uint64_t generation);
/* Return the length of a checkpoint's final path. The path of the unfinished file begins with the final path,
 * and messages show only this beginning. */
int kl_ckpt_shown(const char *unfinished_path);
void kl_ckpt_clean(const kl_ckpt_folder *folder); /* remove the unfinished files of programs that have died */
/* Read the number of the generation from a file's name. false: the name does not begin with `stem`, or is not
 * that of a checkpoint. */
bool kl_ckpt_generation_of(const char *stem, const char *name, uint64_t *generation);

/* --- what a single rank writes and reads --- */

typedef struct kl_ckpt_piece { /* adjacent rows of one array, which a rank writes */
    size_t array;
    kl_span rows;
    const uint8_t *from;
} kl_ckpt_piece;

typedef struct kl_ckpt_share { /* what one rank writes to a checkpoint */
    kl_ckpt_piece *pieces;
    size_t count;
    const kl_parcel *content;   /* packed content of the rank's rows; NULL: rows have no content */
    uint64_t content_at;        /* position of the rank's first byte within the content of all ranks */
    const kl_ckpt_kept *values; /* the kept values; only rank 0 writes them, so NULL on other ranks */
} kl_ckpt_share;

/* Write a rank's rows to an unfinished file, and synchronise them with the disk. A failure gives
 * KILTER_ERR_SYSTEM. */
kilter_status kl_ckpt_write(const char *path, const kl_ckpt_plan *plan, const kl_ckpt_share *share,
                            kilter_error *error);

typedef struct kl_ckpt_file { /* a checkpoint that is being read */
    int descriptor;
    const char *path;
    const kl_ckpt_plan *plan;
} kl_ckpt_file;

/* Open a file whose plan is known, and check that all parts lie within the file. Both `path` and `plan` must
 * stay valid until the file is closed. KILTER_ERR_SYSTEM: the file cannot be read. KILTER_ERR_INPUT: the file
 * is too short. */
kilter_status kl_ckpt_open(const char *path, const kl_ckpt_plan *plan, kl_ckpt_file *file,
                           kilter_error *error);
void kl_ckpt_close(kl_ckpt_file *file);
/* Read rows of an array, or the kept values, from a checkpoint and check their checksums. KILTER_ERR_INPUT:
 * the data are damaged; KILTER_ERR_SYSTEM, KILTER_ERR_MEMORY: they cannot be read */
kilter_status kl_ckpt_read_rows(const kl_ckpt_file *file, size_t array, kl_span rows, uint8_t *to,
                                kilter_error *error);
kilter_status kl_ckpt_read_values(const kl_ckpt_file *file, const kl_ckpt_kept *values, kilter_error *error);
/* Read the content of the rows that the parcel `content` lists, and pack it into the parcel. The caller frees
 * the parcel. */
kilter_status kl_ckpt_read_content(const kl_ckpt_file *file, kl_parcel *content, kilter_error *error);
/* Return the checksum of a row. part: number of the row's array, or one of the two constants for content and
 * for kept values. For a kept value, `row` is the number of the value. */
enum { KL_CKPT_OF_CONTENT = 1 << 20, KL_CKPT_OF_VALUES };
uint64_t kl_ckpt_checksum(uint64_t part, uint64_t row, const void *data, size_t bytes);
/* The index of the content has three words for each row: the position of the row's content, its number of
 * bytes, and its checksum. */
enum { KL_CKPT_INDEX_AT, KL_CKPT_INDEX_BYTES, KL_CKPT_INDEX_SUM, KL_CKPT_INDEX_WORDS };

/* These functions return one part of a plan. They find it by the order of the parts in the plan. */
static inline const kl_ckpt_part *kl_ckpt_array(const kl_ckpt_plan *plan, size_t array) {
    return &plan->parts[2 * array];
}
static inline const kl_ckpt_part *kl_ckpt_array_sums(const kl_ckpt_plan *plan, size_t array) {
    return &plan->parts[2 * array + 1];
}
static inline const kl_ckpt_part *kl_ckpt_content(const kl_ckpt_plan *plan) {
    return &plan->parts[2 * plan->facts.arrays];
}
static inline const kl_ckpt_part *kl_ckpt_content_index(const kl_ckpt_plan *plan) {
    return &plan->parts[2 * plan->facts.arrays + 1];
}
static inline const kl_ckpt_part *kl_ckpt_value(const kl_ckpt_plan *plan, size_t value) {
    return &plan->parts[2 * (plan->facts.arrays + plan->facts.content) + value];
}
static inline const kl_ckpt_part *kl_ckpt_value_sums(const kl_ckpt_plan *plan) {
    return &plan->parts[plan->count - 1];
}

#endif
