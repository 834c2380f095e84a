/* Slurm's states of jobs, and the options of sbatch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/keeper.h"

/* --- states of Slurm's jobs --- */

static const struct {
    const char *name;
    kl_slurm_stage stage;
} STATES[] = {
    {"PENDING", KL_SLURM_WAITS},
    {"CONFIGURING", KL_SLURM_WAITS}, /* the nodes of the job are being booted */
    {"POWER_UP_NODE", KL_SLURM_WAITS},
    {"REQUEUED", KL_SLURM_WAITS},
    {"REQUEUE_FED", KL_SLURM_WAITS},
    {"REQUEUE_HOLD", KL_SLURM_WAITS},
    {"RESV_DEL_HOLD", KL_SLURM_WAITS},
    {"SPECIAL_EXIT", KL_SLURM_WAITS}, /* the job was queued again and is held */
    {"RUNNING", KL_SLURM_RUNS},
    {"RESIZING", KL_SLURM_RUNS},
    {"SIGNALING", KL_SLURM_RUNS},
    {"SUSPENDED", KL_SLURM_PAUSED},
    {"STOPPED", KL_SLURM_PAUSED},
    {"COMPLETING",
     KL_SLURM_PAUSED}, /* the processes of the job are being ended, which may take minutes on some nodes */
    {"STAGE_OUT", KL_SLURM_PAUSED},
    {"BOOT_FAIL", KL_SLURM_OVER},
    {"CANCELLED", KL_SLURM_OVER},
    {"COMPLETED", KL_SLURM_OVER},
    {"DEADLINE", KL_SLURM_OVER},
    {"FAILED", KL_SLURM_OVER},
    {"LAUNCH_FAILED", KL_SLURM_OVER},
    {"NODE_FAIL", KL_SLURM_OVER},
    {"OUT_OF_MEMORY", KL_SLURM_OVER},
    {"PREEMPTED", KL_SLURM_OVER},
    {"RECONFIG_FAIL", KL_SLURM_OVER},
    {"REVOKED", KL_SLURM_OVER}, /* another cluster of Slurm's federation runs the job */
    {"TIMEOUT", KL_SLURM_OVER},
};

kl_slurm_stage kl_slurm_stage_of(const char *state) {
    for (size_t i = 0; i < sizeof STATES / sizeof *STATES; i++)
        if (strcmp(state, STATES[i].name) == 0)
            return STATES[i].stage;
    return KL_SLURM_UNKNOWN;
}

/* --- words of a command line for sbatch --- */

/* Copy the next word of a command line without its quotes. Return the position after the word; NULL: there is
 * none. */
static const char *next_word(const char *at, char *word, size_t room) {
    size_t bytes = 0;
    char quote = 0;
    at += strspn(at, " \t\n");
    if (!*at)
        return NULL;
    for (; *at && (quote || !strchr(" \t\n", *at)); at++) {
        bool opens = !quote && (*at == '\'' || *at == '"');
        if (opens || (quote && *at == quote)) {
            quote = opens ? *at : 0;
            continue;
        }
        if (!quote && *at == '\\' && at[1])
            at++;
        if (bytes + 1 < room)
            word[bytes++] = *at;
    }
    word[bytes] = '\0';
    return at;
}

enum {
    ELSEWHERE,
    INSIDE,
    BEHIND
}; /* where the value of an option may be: nowhere, in the option's word, or in the next word */

/* Return whether the word is this option of sbatch. If it is, set *where to the place of its value. */
static bool is_option(const char *word, const char *name, char letter, int *where) {
    size_t bytes = strlen(name);
    if (word[0] != '-')
        return false;
    if (word[1] == letter && letter) {
        *where = word[2] ? INSIDE : BEHIND;
        return true;
    }
    if (word[1] != '-' || strncmp(word + 2, name, bytes) != 0)
        return false;
    *where = word[2 + bytes] == '=' ? INSIDE : BEHIND;
    return word[2 + bytes] == '=' || word[2 + bytes] == '\0';
}

bool kl_slurm_option(const char *options, const char *name, char letter, char value[KL_KEEPER_TEXT_BYTES]) {
    char word[KL_KEEPER_TEXT_BYTES] = "";
    bool given = false;
    int where = ELSEWHERE;
    value[0] = '\0';
    while ((options = next_word(options, word, sizeof word))) {
        if (where == BEHIND) {
            snprintf(value, KL_KEEPER_TEXT_BYTES, "%s", *word == '-' ? "" : word);
            where = ELSEWHERE;
            if (*word != '-')
                continue;
        }
        if (!is_option(word, name, letter, &where))
            continue;
        given = true;
        if (where == INSIDE)
            snprintf(value, KL_KEEPER_TEXT_BYTES, "%s",
                     word[1] == '-' ? strchr(word, '=') + 1 : word + 2 + (word[2] == '='));
    }
    return given;
}

const char *kl_slurm_refused(const char *options) {
    static const struct {
        const char *name;
        char letter;
    } rows[] = {{"array", 'a'},   {"clusters", 'M'}, {"output", 'o'}, {"requeue", 0},
                {"test-only", 0}, {"wait", 'W'},     {"wrap", 0}};
    char value[KL_KEEPER_TEXT_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (kl_slurm_option(options, rows[i].name, rows[i].letter, value))
            return rows[i].name;
    return NULL;
}

static const char *take_count(const char *at, uint32_t *value) {
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || digits > 9)
        return NULL;
    *value = (uint32_t)strtoul(at, NULL, 10);
    return at + digits;
}

void kl_slurm_nodes_wanted(const char *options, uint32_t *least, uint32_t *most) {
    char value[KL_KEEPER_TEXT_BYTES];
    uint32_t low, high;
    *least = *most = 0;
    const char *at = kl_slurm_option(options, "nodes", 'N', value) ? take_count(value, &low) : NULL;
    if (!at)
        return;
    high = low;
    if (*at == '-' && !take_count(at + 1, &high))
        return;
    *least = low;
    *most = high > low ? high : low;
}

/* --- lists of hosts --- */

typedef struct hostlist { /* the parts of "n[01-03,7]x": "n" before the brackets, the numbers in the brackets,
                             and "x" after them */
    const char *front, *inner, *back;
    int front_bytes, back_bytes;
} hostlist;

static void put_name(kl_buffer *names, const hostlist *h, const char *number) {
    char name[KL_KEEPER_NAME_BYTES];
    snprintf(name, sizeof name, "%s%.*s%s%.*s", names->size > 0 ? "," : "", h->front_bytes, h->front, number,
             h->back_bytes, h->back);
    kl_put_bytes(names, name, strlen(name));
}

/* Write the names for the numbers "01-03", or for a single number "7". Return the position after the text;
 * NULL: the text is not a range of numbers. */
static const char *put_range(kl_buffer *names, const hostlist *h, const char *at) {
    enum { MOST = 65536 };
    uint32_t first = 0, last;
    int digits = (int)strspn(at, "0123456789");
    const char *end = take_count(at, &first);
    last = first;
    if (end && *end == '-')
        end = take_count(end + 1, &last);
    if (!end || last < first || last - first >= MOST)
        return NULL;
    for (uint32_t i = first; i <= last; i++) {
        char number[16];
        snprintf(number, sizeof number, "%0*u", digits, i);
        put_name(names, h, number);
    }
    return end;
}

/* Write the names of one item of a list of hosts. Return the position after the item; NULL: the item is
 * malformed. */
static const char *put_part(kl_buffer *names, const char *at) {
    hostlist h = {.front = at, .front_bytes = (int)strcspn(at, ",[]"), .back = ""};
    at += h.front_bytes;
    if (*at == ']' || h.front_bytes == 0)
        return NULL;
    if (*at != '[') {
        put_name(names, &h, "");
        return at;
    }
    h.back = strchr(at, ']');
    if (!h.back)
        return NULL;
    h.back++;
    h.back_bytes = (int)strcspn(h.back, ",[]");
    do
        at = put_range(names, &h, at + 1);
    while (at && *at == ',');
    at = at && *at == ']' ? h.back + h.back_bytes : NULL;
    return at && (*at == ',' || *at == '\0') ? at : NULL;
}

bool kl_slurm_expand(const char *list, kl_buffer *names) {
    if (strchr(list, '/')) /* a text with a slash is the name of a file */
        return false;
    while (list && *list) {
        list = put_part(names, list);
        if (list && *list == ',')
            list++;
    }
    kl_put_u8(names, 0);
    return list && !names->failed;
}

/* --- which nodes a job can have --- */

bool kl_slurm_listed(const char *list, const char *name) {
    size_t bytes = strlen(name);
    for (; *list; list += *list == ',') {
        size_t length = strcspn(list, ",");
        if (length == bytes && strncmp(list, name, bytes) == 0)
            return true;
        list += length;
    }
    return false;
}

/* Return whether a node has all features of a constraint such as "a&b". Set *rest to the text after the next
 * '|'; NULL: there is none. */
static bool has_all(const char *all, const char *features, const char **rest) {
    bool has = true;
    for (;;) {
        char one[KL_KEEPER_NAME_BYTES];
        size_t bytes = strcspn(all, "&|");
        snprintf(one, sizeof one, "%.*s", (int)bytes, all);
        has &= kl_slurm_listed(features, one);
        all += bytes;
        if (*all != '&')
            break;
        all++;
    }
    *rest = *all ? all + 1 : NULL;
    return has;
}

bool kl_slurm_has_features(const char *constraint, const char *features) {
    bool has = !*constraint;
    if (strpbrk(constraint, "[]()*"))
        return false;
    for (const char *rest = *constraint ? constraint : NULL; rest;)
        has |= has_all(rest, features, &rest);
    return has;
}

/* --- the name and the number of a job --- */

void kl_slurm_name(const char *options, const char *program, uint64_t token, char name[KL_SLURM_NAME_BYTES]) {
    char given[KL_KEEPER_TEXT_BYTES];
    const char *slash = strrchr(program, '/');
    if (!kl_slurm_option(options, "job-name", 'J', given) || !*given)
        snprintf(given, sizeof given, "%s", slash ? slash + 1 : program);
    for (char *at = given; *at; at++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-", *at))
            *at = '_';
    snprintf(name, KL_SLURM_NAME_BYTES, "%.40s-%016llx", given, kl_ull(token));
}

/* Find the number of a job at the beginning of a line. A ";" and the name of a cluster may follow the number.
 * Other lines may come first, because plugins of the site can make sbatch print them. */
bool kl_slurm_number(const char *text, char job[KL_SLURM_JOB_BYTES]) {
    job[0] = '\0';
    while (*text) {
        size_t bytes = strcspn(text, "\n"), digits = strspn(text, "0123456789");
        if (digits > 0 && digits < KL_SLURM_JOB_BYTES && (digits == bytes || text[digits] == ';'))
            snprintf(job, KL_SLURM_JOB_BYTES, "%.*s", (int)digits, text);
        text += bytes + (text[bytes] == '\n');
    }
    return *job != '\0';
}

/* Return whether Slurm's controller may have accepted the job although sbatch printed this error message. */
bool kl_slurm_is_unclear(const char *said) {
    static const char *const WORDS[] = {"timed out",  "Timed out",    "Unable to contact",
                                        "Zero Bytes", "ommunication", "onnection"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strstr(said, WORDS[i]))
            return true;
    return false;
}
