/* Public header of the folder map, for `kilter map`: command lines from a template and values, their log,
 * halt rules, and which command waits for which. All functions are pure. */
#ifndef KL_MAP_H
#define KL_MAP_H

#include "base/base.h"
#include "kilter/run.h"

/* --- template.c: a command line that contains replacement strings such as {} and {2/.} --- */

/* The values that replace the replacement strings of a command line. `values` holds `columns` texts, each
 * ended by NUL. */
typedef struct kl_map_fill {
    uint64_t number, total; /* number: number of the command, from 1 on; total: number of all commands */
    uint32_t slot;          /* number of the slot in which the command runs, from 1 on */
    const char *values;
    size_t columns;
} kl_map_fill;

typedef struct kl_map_template kl_map_template;

/* Make a template from the words of a command. If no word has a replacement string, {} is appended. If there
 * are no words, each value is a whole command line. quoted: true: quote the words, so that the shell does not
 * interpret them. A failure gives KILTER_ERR_MEMORY. */
kilter_status kl_map_template_new(size_t count, const char *const *words, bool quoted,
                                  kl_map_template **filled, kilter_error *error);
void kl_map_template_free(kl_map_template *t);
/* Append the command line for a shell, without a NUL at the end. Values are quoted, unless each value is a
 * whole command line. */
void kl_map_put_line(const kl_map_template *t, const kl_map_fill *fill, kl_buffer *line);
/* Append the words of a command line that needs no shell, each ended by NUL, and return their number. 0: the
 * command line needs a shell. The caller checks whether the first word is the name of a program. */
size_t kl_map_put_words(const kl_map_template *t, const kl_map_fill *fill, kl_buffer *words);
/* Append a text, quoted so that a shell reads it as one word. */
void kl_map_put_quoted(kl_buffer *line, const char *text, size_t size);
/* Count the texts in `size` bytes. Each of them ends with a NUL. */
size_t kl_map_count_texts(const char *texts, size_t size);

/* --- sources.c: values from several lists, combined in all ways or paired one to one --- */

/* A list of records, from which command lines get their values. A record has one value, or several with the
 * option --colsep. If all fields are zero, the list is empty. */
typedef struct kl_map_source {
    kl_buffer text;   /* the values, each ended by NUL */
    uint64_t *begins; /* [count] offset in `text` of each record */
    uint64_t count, room;
    bool beside; /* true: record i is paired with record i of the source before this one, as for :::+ */
} kl_map_source;

/* Begin a record. The caller then appends its values to source->text. false: memory ran out. */
bool kl_map_source_begin(kl_map_source *source);
/* Cut `size` bytes into records, each of which ends at a delimiter. The last record needs no delimiter. */
bool kl_map_source_lines(kl_map_source *source, const char *bytes, size_t size, char delimiter);
void kl_map_source_free(kl_map_source *source);
/* Return the number of combinations of records. If sources are paired one to one, the shortest of them gives
 * the number of pairs. UINT64_MAX: the number is too large. */
uint64_t kl_map_combinations(const kl_map_source *sources, size_t count);
/* Append the values of combination `i`. The record of the last source changes first. */
void kl_map_put_combination(const kl_map_source *sources, size_t count, uint64_t i, kl_buffer *values);

/* --- list.c: commands that wait for each other --- */

typedef struct kl_map_entry {
    size_t name, command; /* offsets in kl_map_list.text of the command's name and of the command itself */
    uint64_t line;        /* number of the line that has the name, from 1 on */
    uint64_t needs, need_count; /* the commands that must succeed before this one: needs[needs … needs +
                                   need_count − 1] of the list */
    uint64_t chain;             /* length of the longest chain of commands that begins with this one */
} kl_map_entry;

/* A list of commands that wait for each other. If all fields are zero, it is empty. */
typedef struct kl_map_list {
    kl_buffer text;
    kl_map_entry *at; /* [count] */
    uint64_t count, room;
    uint64_t *needs; /* for all commands: indices of the commands that each of them needs */
} kl_map_list;

/* Read a list. If this fails, the list is empty, and the error names the file and the line. KILTER_ERR_INPUT:
 * a line is malformed, two commands have the same name, or commands wait in a circle or for a name that no
 * command has; KILTER_ERR_MEMORY */
kilter_status kl_map_list_parse(const char *file, const char *text, size_t size, kl_map_list *list,
                                kilter_error *error);
void kl_map_list_free(kl_map_list *list);
const char *kl_map_list_name(const kl_map_list *list, uint64_t i);
const char *kl_map_list_command(const kl_map_list *list, uint64_t i);

/* Tells which commands of a list may begin while other commands run. */
typedef struct kl_map_waits {
    const kl_map_list *list;
    uint64_t *missing; /* [count] number of commands that must still succeed before command i */
    uint64_t *begins;  /* [count + 2] */
    uint64_t *users;   /* users[begins[i] … begins[i + 1] − 1] are the commands that wait for command i */
    uint64_t *ready;   /* [ready_count] commands that may begin, in the order in which they became ready */
    uint64_t ready_count;
    bool *over; /* [count] true: command i has ended or is skipped */
} kl_map_waits;

kilter_status kl_map_waits_open(const kl_map_list *list, kl_map_waits *waits); /* KILTER_ERR_MEMORY */
void kl_map_waits_free(kl_map_waits *waits);
void kl_map_waits_succeeded(kl_map_waits *waits,
                            uint64_t i); /* Report that command `i` has succeeded. Commands that have waited
                                            for it may become ready. */
/* Report that command `i` has failed. Commands that wait for it are skipped: store them in
 * skipped[list->count], and return their number. */
uint64_t kl_map_waits_failed(kl_map_waits *waits, uint64_t i, uint64_t *skipped);

/* --- result.c: what a worker reports about a command --- */

typedef enum kl_map_end {
    KL_MAP_EXITED, /* the command ended: `code` is its exit code, or `signal` is the signal that killed it */
    KL_MAP_TIMED_OUT,   /* the command exceeded its time limit and was killed */
    KL_MAP_NOT_STARTED, /* the operating system could not start the command; `why` says why */
    KL_MAP_LOST_OUTPUT, /* the command ended, but its output could not be stored; `why` says why */
    KL_MAP_STOPPED,     /* the command was stopped, because the run was ended early */
} kl_map_end;

typedef struct kl_map_result {
    uint64_t number;
    uint32_t slot, end, code, signal;
    double began_s,
        took_s; /* began_s: time of the start, in seconds since 1970; took_s: seconds until the end */
    uint64_t out_bytes, err_bytes;
    char host[256], why[160];
    char out_file[512],
        err_file[512]; /* names of files with the output; "": the output is in `out` or `err` */
    kilter_bytes out, err;
} kl_map_result;

void kl_map_put_result(kl_buffer *buffer, const kl_map_result *result);
/* Read the result of a command. Its outputs point into `bytes`. false: the bytes are not a result. */
bool kl_map_get_result(kilter_bytes bytes, kl_map_result *result);
bool kl_map_succeeded(const kl_map_result *result);
/* Return the exit code that a shell would give for this result. */
uint32_t kl_map_exit_code(const kl_map_result *result);

/* --- joblog.c: the log of commands, as GNU parallel writes it --- */

extern const char kl_map_joblog_head[];
void kl_map_put_joblog(kl_buffer *line, const kl_map_result *result, const char *command, size_t size);

/* Read a size in bytes, such as "1000000", "500K", "2.5G" or "1T" (1K is 1,000 bytes). false: the text is not
 * a size, or is 0. */
bool kl_map_read_size(const char *text, uint64_t *bytes);

/* --- halt.c: when to end a run early --- */

typedef enum kl_map_halting { KL_MAP_GO_ON, KL_MAP_SOON, KL_MAP_NOW } kl_map_halting;

/* When to end a run of commands early. If all fields are zero, it is never ended early. */
typedef struct kl_map_halt {
    kl_map_halting when;
    enum { KL_MAP_ON_FAIL, KL_MAP_ON_SUCCESS, KL_MAP_ON_DONE } why;
    double count; /* the run ends when this number of commands have failed, have succeeded or are done; `why`
                     says which of these count */
    double part;  /* if above 0, it is used instead of `count`: the number of such commands, divided by the
                     number of all commands */
} kl_map_halt;

/* Read a halt rule: "never", "now,fail=1", "soon,done=30%", or one of GNU parallel's older forms. false: the
 * text has none of these forms. */
bool kl_map_read_halt(const char *text, kl_map_halt *halt);
kl_map_halting kl_map_halts(const kl_map_halt *halt, uint64_t failed, uint64_t succeeded, uint64_t total);

#endif
