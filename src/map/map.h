/* Public header of the folder map, for `kilter map`: command lines from a template and values, their log,
 * halt rules, and which command waits for which. All functions are pure. */
#ifndef KL_MAP_H
#define KL_MAP_H

#include "base/base.h"
#include "kilter/run.h"

/* --- template.c: a command line with replacement strings such as {} and {2/.} --- */

/* Values that are filled into a command line. `values` holds `columns` texts, each ended by NUL. */
typedef struct kl_map_fill {
    uint64_t number, total; /* number of the command, from 1 on; number of all commands */
    uint32_t slot;          /* slot that runs the command, from 1 on */
    const char *values;
    size_t columns;
} kl_map_fill;

typedef struct kl_map_template kl_map_template;

/* Read the words of a command. If they have no replacement string, {} is appended. If there are no words,
 * the values are themselves command lines. quoted: the shell must not interpret the words.
 * KILTER_ERR_MEMORY */
kilter_status kl_map_template_new(size_t count, const char *const *words, bool quoted,
                                  kl_map_template **filled, kilter_error *error);
void kl_map_template_free(kl_map_template *t);
/* Append the command line for a shell, without a NUL. Values are quoted, unless they are command lines. */
void kl_map_put_line(const kl_map_template *t, const kl_map_fill *fill, kl_buffer *line);
/* If the command line needs no shell, append its words, each ended by NUL, and return their number. 0: it
 * needs a shell. The caller checks whether the first word is the name of a program. */
size_t kl_map_put_words(const kl_map_template *t, const kl_map_fill *fill, kl_buffer *words);
/* Append a text as one word of a shell. */
void kl_map_put_quoted(kl_buffer *line, const char *text, size_t size);
/* Return the number of texts in `size` bytes, each of which ends with a NUL. */
size_t kl_map_count_texts(const char *texts, size_t size);

/* --- sources.c: values from lists, in all pairs or side by side --- */

/* A list of records. A record has one value, or several with --colsep. All zero: empty. */
typedef struct kl_map_source {
    kl_buffer text;   /* the values, each ended by NUL */
    uint64_t *begins; /* [count] offset of each record */
    uint64_t count, room;
    bool beside; /* true: the records are paired with those of the source before, one to one (:::+) */
} kl_map_source;

/* Begin a record; the caller then appends values to source->text. false: no memory. */
bool kl_map_source_begin(kl_map_source *source);
/* Cut `size` bytes into records at `delimiter`. A last record without a delimiter counts as well. */
bool kl_map_source_lines(kl_map_source *source, const char *bytes, size_t size, char delimiter);
void kl_map_source_free(kl_map_source *source);
/* Return the number of combinations of records. Among sources that are paired one to one, the shortest
 * counts. UINT64_MAX: the number is too large. */
uint64_t kl_map_combinations(const kl_map_source *sources, size_t count);
/* Append the values of combination `i`; the last source varies fastest. */
void kl_map_put_combination(const kl_map_source *sources, size_t count, uint64_t i, kl_buffer *values);

/* --- list.c: commands that wait for each other --- */

typedef struct kl_map_entry {
    size_t name, command;       /* offsets into the list's text */
    uint64_t line;              /* number of the line with the name, from 1 on */
    uint64_t needs, need_count; /* the commands that must succeed before: a part of the list's `needs` */
    uint64_t chain;             /* length of the longest chain of commands that begins with this one */
} kl_map_entry;

/* A list of commands. All zero: empty. */
typedef struct kl_map_list {
    kl_buffer text;
    kl_map_entry *at; /* [count] */
    uint64_t count, room;
    uint64_t *needs; /* numbers of commands, from 0 on */
} kl_map_list;

/* Read a list. Errors name the file and the line; the list is then empty. KILTER_ERR_INPUT: a line is
 * malformed, two commands have the same name, or commands wait in a circle or for a name that no command has.
 * KILTER_ERR_MEMORY */
kilter_status kl_map_list_parse(const char *file, const char *text, size_t size, kl_map_list *list,
                                kilter_error *error);
void kl_map_list_free(kl_map_list *list);
const char *kl_map_list_name(const kl_map_list *list, uint64_t i);
const char *kl_map_list_command(const kl_map_list *list, uint64_t i);

/* The state of a list: which commands may begin. */
typedef struct kl_map_waits {
    const kl_map_list *list;
    uint64_t *missing; /* [count] number of needed commands that have not succeeded */
    uint64_t *begins;  /* [count + 2] */
    uint64_t *users;   /* users[begins[i] … begins[i + 1] − 1] wait for command i */
    uint64_t *ready;   /* [ready_count] commands that may begin, in the order in which they became ready */
    uint64_t ready_count;
    bool *over; /* [count] true: the command has ended or is skipped */
} kl_map_waits;

kilter_status kl_map_waits_open(const kl_map_list *list, kl_map_waits *waits); /* KILTER_ERR_MEMORY */
void kl_map_waits_free(kl_map_waits *waits);
void kl_map_waits_succeeded(
    kl_map_waits *waits, uint64_t i); /* Command `i` has succeeded. More commands may be ready afterwards. */
/* Command `i` has failed. Store the commands that are skipped because of it in skipped [list->count], and
 * return their number. */
uint64_t kl_map_waits_failed(kl_map_waits *waits, uint64_t i, uint64_t *skipped);

/* --- result.c: what a worker reports about a command --- */

typedef enum kl_map_end {
    KL_MAP_EXITED, /* the command ended: `code` is its exit code, or `signal` is the signal that killed it */
    KL_MAP_TIMED_OUT,   /* the command exceeded its time limit and was killed */
    KL_MAP_NOT_STARTED, /* the operating system could not start the command; `why` says why */
    KL_MAP_LOST_OUTPUT, /* the command ended, but its output could not be stored; `why` says why */
    KL_MAP_STOPPED,     /* the run was ended early */
} kl_map_end;

typedef struct kl_map_result {
    uint64_t number;
    uint32_t slot, end, code, signal;
    double began_s, took_s; /* began: seconds since 1970 */
    uint64_t out_bytes, err_bytes;
    char host[256], why[160];
    char out_file[512], err_file[512]; /* "": the output is in `out` or `err` */
    kilter_bytes out, err;
} kl_map_result;

void kl_map_put_result(kl_buffer *buffer, const kl_map_result *result);
/* Read a result; its outputs point into `bytes`. false: the bytes are no result. */
bool kl_map_get_result(kilter_bytes bytes, kl_map_result *result);
bool kl_map_succeeded(const kl_map_result *result);
/* Return the exit code that a shell would give. */
uint32_t kl_map_exit_code(const kl_map_result *result);

/* --- joblog.c: the log of commands, as GNU parallel writes it --- */

extern const char kl_map_joblog_head[];
void kl_map_put_joblog(kl_buffer *line, const kl_map_result *result, const char *command, size_t size);

/* Read "1000000", "500K", "500M", "2.5G" or "1T" (1K: 1,000 bytes). false: the text is no size, or 0. */
bool kl_map_read_size(const char *text, uint64_t *bytes);

/* --- halt.c: when to end a run early --- */

typedef enum kl_map_halting { KL_MAP_GO_ON, KL_MAP_SOON, KL_MAP_NOW } kl_map_halting;

/* When to end a run early. All zero: never. */
typedef struct kl_map_halt {
    kl_map_halting when;
    enum { KL_MAP_ON_FAIL, KL_MAP_ON_SUCCESS, KL_MAP_ON_DONE } why;
    double count; /* number of such commands */
    double part;  /* used instead of that number: their part of all commands, 0 to 1 */
} kl_map_halt;

/* Read "never", "now,fail=1", "soon,done=30%", or one of GNU parallel's older forms. false: the text has
 * none of these forms. */
bool kl_map_read_halt(const char *text, kl_map_halt *halt);
kl_map_halting kl_map_halts(const kl_map_halt *halt, uint64_t failed, uint64_t succeeded, uint64_t total);

#endif
