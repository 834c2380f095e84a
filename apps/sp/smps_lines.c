#include "smps_lines.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "support.h"

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Read a decimal number as strtod() does; refuse hexadecimal numbers and words such as "inf". */
static bool parse_number(sp_token token, double *value) {
    char text[64];
    if (token.size == 0 || token.size >= sizeof text)
        return false;
    memcpy(text, token.text, token.size);
    text[token.size] = 0;
    if (strspn(text, "0123456789+-.eE") != token.size)
        return false;
    char *end;
    *value = strtod(text, &end);
    return *end == 0;
}

/* Return whether the line is a section's header. A header is the name of a section. It may be followed by one
 * word that is not a number, or by two words as in INDEP DISCRETE REPLACE. */
static bool is_section(const sp_lines *lines) {
    static const char *const ALONE[] = {"ROWS",    "COLUMNS", "RHS",  "RANGES", "BOUNDS",    "ENDATA",
                                        "PERIODS", "NAME",    "TIME", "STOCH",  "SCENARIOS", NULL};
    static const char *const TWO[] = {"NAME",  "TIME",   "STOCH",     "PERIODS",
                                      "INDEP", "BLOCKS", "SCENARIOS", NULL};
    static const char *const THREE[] = {"INDEP", "BLOCKS", "SCENARIOS", NULL};
    static const char *const *const WORDS[] = {ALONE, TWO, THREE};
    double number;
    if (lines->count < 1 || lines->count > 3 ||
        (lines->count == 2 && parse_number(lines->token[1], &number)) ||
        (lines->count == 3 && !sp_token_is(lines->token[1], "DISCRETE")))
        return false;
    const char *const *word = WORDS[lines->count - 1];
    while (*word && !sp_token_is(lines->token[0], *word))
        word++;
    return *word != NULL;
}

/* Cut [text, end) into tokens; tokens that do not fit into the array are only counted. */
static void cut_line(sp_lines *lines, const char *text, const char *end) {
    lines->header = text < end && !is_blank(*text);
    lines->count = 0;
    while (text < end) {
        if (is_blank(*text)) {
            text++;
            continue;
        }
        const char *begin = text;
        while (text < end && !is_blank(*text))
            text++;
        if (lines->count < SP_LINE_TOKENS)
            lines->token[lines->count] = (sp_token){begin, (size_t)(text - begin)};
        lines->count++;
    }
    lines->header = lines->header || is_section(lines);
}

kilter_status sp_lines_next(sp_lines *lines, bool *more) {
    const sp_file *file = lines->file;
    while (lines->at < file->size) {
        const char *text = file->data + lines->at;
        const char *newline = memchr(text, '\n', file->size - lines->at);
        const char *end = newline ? newline : file->data + file->size;
        lines->at = (size_t)(end - file->data) + (newline != NULL);
        lines->line++;
        if (memchr(text, '\0', (size_t)(end - text)))
            return sp_lines_fail(lines, "there is a NUL byte here, expected text");
        cut_line(lines, text, end);
        if (lines->count == 0 || *text == '*')
            continue;
        if (lines->count > SP_LINE_TOKENS && !lines->header)
            return sp_lines_fail(lines, "%d fields on one line, expected at most %d (names have no spaces)",
                                 lines->count, SP_LINE_TOKENS);
        *more = true;
        return KILTER_OK;
    }
    *more = false;
    return KILTER_OK;
}

static kilter_status fail_with(const sp_lines *lines, uint64_t line, const char *format, va_list args) {
    char what[KILTER_ERROR_TEXT_BYTES];
    vsnprintf(what, sizeof what, format, args);
    return sp_fail(lines->error, KILTER_ERR_INPUT, "%.200s:%llu: %s", lines->file->name,
                   (unsigned long long)line, what);
}

kilter_status sp_lines_fail(const sp_lines *lines, const char *format, ...) {
    va_list args;
    va_start(args, format);
    kilter_status status = fail_with(lines, lines->line > 0 ? lines->line : 1, format, args);
    va_end(args);
    return status;
}

kilter_status sp_lines_fail_at(const sp_lines *lines, uint64_t line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    kilter_status status = fail_with(lines, line, format, args);
    va_end(args);
    return status;
}

kilter_status sp_lines_memory(const sp_lines *lines) {
    return sp_fail(lines->error, KILTER_ERR_MEMORY,
                   "reading %.200s: memory ran out; use a machine with more memory", lines->file->name);
}

bool sp_token_is(sp_token token, const char *text) {
    return token.size == strlen(text) && memcmp(token.text, text, token.size) == 0;
}

bool sp_token_same(sp_token a, sp_token b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.text, b.text, a.size) == 0);
}

sp_shown sp_show(sp_token token) {
    sp_shown shown = {""};
    size_t room = sizeof shown.text - 4; /* leave room for "..." and the final NUL */
    size_t size = token.size < room ? token.size : room;
    for (size_t i = 0; i < size; i++)
        shown.text[i] = (unsigned char)token.text[i] < 32 || token.text[i] == 127 ? '?' : token.text[i];
    memcpy(shown.text + size, token.size > room ? "..." : "", token.size > room ? 4 : 1);
    return shown;
}

kilter_status sp_lines_number(const sp_lines *lines, int token, double *value) {
    double number;
    if (!parse_number(lines->token[token], &number))
        return sp_lines_fail(lines, "\"%s\" is not a number, expected one in field %d",
                             sp_show(lines->token[token]).text, token + 1);
    if (!(fabs(number) < 1e30))
        return sp_lines_fail(lines, "%s is too large, expected a number below 1e30",
                             sp_show(lines->token[token]).text);
    *value = number;
    return KILTER_OK;
}

kilter_status sp_lines_cost(const sp_lines *lines, int token, double *value) {
    double number = 0;
    kilter_status status = sp_lines_number(lines, token, &number);
    if (status)
        return status;
    if (!(fabs(number) < 1e15))
        return sp_lines_fail(lines, "the cost %s is too large, expected one below 1e15",
                             sp_show(lines->token[token]).text);
    *value = number;
    return KILTER_OK;
}

kilter_status sp_lines_bound(const sp_lines *lines, int token, double *value) {
    sp_token text = lines->token[token];
    bool negative = text.size > 0 && text.text[0] == '-';
    size_t sign = text.size > 0 && (negative || text.text[0] == '+');
    sp_token word = {text.text + sign, text.size - sign};
    double number;
    if ((word.size == 3 && strncasecmp(word.text, "inf", 3) == 0) ||
        (word.size == 8 && strncasecmp(word.text, "infinity", 8) == 0)) {
        *value = negative ? -INFINITY : INFINITY;
        return KILTER_OK;
    }
    if (parse_number(text, &number) && fabs(number) >= 1e30) {
        *value = number < 0 ? -INFINITY : INFINITY;
        return KILTER_OK;
    }
    return sp_lines_number(lines, token, value);
}

kilter_status sp_lines_probability(const sp_lines *lines, int token, double *value) {
    double number = 0;
    kilter_status status = sp_lines_number(lines, token, &number);
    if (status)
        return status;
    if (!(number >= 0 && number <= 1))
        return sp_lines_fail(lines, "the probability %s is outside 0 to 1",
                             sp_show(lines->token[token]).text);
    *value = number;
    return KILTER_OK;
}

static uint64_t hash_of(sp_token name) {
    uint64_t hash = name.size;
    for (size_t i = 0; i < name.size; i++)
        hash = sp_mix64(hash ^ (unsigned char)name.text[i]);
    return hash;
}

/* Return the slot of `name` in the hash table, or the free slot where the name belongs. */
static size_t slot_of(const sp_names *names, sp_token name) {
    size_t mask = names->slots - 1;
    size_t at = (size_t)hash_of(name) & mask;
    while (names->slot[at] && !sp_token_same(names->name[names->slot[at] - 1], name))
        at = (at + 1) & mask;
    return at;
}

int sp_names_find(const sp_names *names, sp_token name) {
    return names->slots ? names->slot[slot_of(names, name)] - 1 : -1;
}

static bool rehash(sp_names *names) {
    size_t slots = names->slots ? names->slots * 2 : 64;
    int *slot = calloc(slots, sizeof *slot);
    if (!slot)
        return false;
    free(names->slot);
    names->slot = slot;
    names->slots = slots;
    for (int i = 0; i < names->count; i++)
        slot[slot_of(names, names->name[i])] = i + 1;
    return true;
}

bool sp_names_add(sp_names *names, sp_token name) {
    size_t capacity = (size_t)names->capacity;
    if (names->count == INT_MAX / 2 ||
        !sp_grow(&names->name, &capacity, (size_t)names->count + 1, sizeof *names->name))
        return false;
    names->capacity = (int)capacity;
    if ((size_t)names->count * 2 >= names->slots && !rehash(names))
        return false;
    names->name[names->count] = name;
    names->slot[slot_of(names, name)] = names->count + 1;
    names->count++;
    return true;
}

void sp_names_free(sp_names *names) {
    free(names->name);
    free(names->slot);
    *names = (sp_names){0};
}

bool sp_grow(void *array, size_t *capacity, size_t needed, size_t size) {
    if (needed <= *capacity)
        return true;
    size_t more = *capacity * 2 > needed ? *capacity * 2 : needed < 16 ? 16 : needed;
    if (more > SIZE_MAX / 2 / size)
        return false;
    void *old;
    /* `array` points to a pointer of any object type, so copy that pointer by memcpy */
    memcpy(&old, array, sizeof old);
    void *grown = realloc(old, more * size);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = more;
    return true;
}
