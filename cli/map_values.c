/* Read the values of commands: words after :::, files after ::::, the file of -a, or the standard input. */
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "map.h"
#include "sys/sys.h"

typedef struct reading {
    kl_map_request *q;
    regex_t columns; /* regular expression of --colsep, which separates the columns of a value */
    kilter_error *error;
} reading;

static kilter_status no_memory(const reading *r) {
    return kl_fail(r->error, KILTER_ERR_MEMORY, "reading the values: memory ran out");
}

/* --- columns --- */

/* Find the next separator of columns, at or after `at`: a match of --colsep with at least one character. */
static bool find_separator(const reading *r, const char *begin, const char *at, regmatch_t *match) {
    for (; regexec(&r->columns, at, 1, match, at > begin ? REG_NOTBOL : 0) == 0; at++) {
        match->rm_so += at - begin;
        match->rm_eo += at - begin;
        if (match->rm_eo > match->rm_so)
            return true;
        at = begin + match->rm_so;
        if (*at == '\0')
            return false;
    }
    return false;
}

/* Cut a value into columns and append them, each ended by a NUL. */
static void put_columns(const reading *r, const char *value, kl_buffer *text) {
    regmatch_t match;
    const char *at = value;
    while (find_separator(r, value, at, &match)) {
        kl_put_bytes(text, at, (size_t)(value + match.rm_so - at));
        kl_put_u8(text, 0);
        at = value + match.rm_eo;
    }
    kl_put_bytes(text, at, strlen(at) + 1);
}

/* Cut all values of a source into columns. */
static kilter_status cut_columns(const reading *r, kl_map_source *source) {
    kl_map_source cut = {.beside = source->beside};
    bool good = true;
    for (uint64_t i = 0; good && i < source->count; i++) {
        good = kl_map_source_begin(&cut);
        put_columns(r, (const char *)source->text.data + source->begins[i], &cut.text);
    }
    good = good && !cut.text.failed;
    kl_map_source_free(source);
    *source = cut;
    return good ? KILTER_OK : no_memory(r);
}

/* Translate a backslash and this letter from Perl's regular expressions to those of the C library. NULL: no
 * translation is needed. inside: the two characters are within brackets. */
static const char *stands_for(char letter, bool inside) {
    return letter == 't'             ? "\t"
           : letter == 'd'           ? inside ? "0-9" : "[0-9]"
           : letter == 's' && inside ? " \t"
                                     : NULL;
}

/* Append the expression of --colsep in the form of the C library. */
static void put_expression(kl_buffer *out, const char *at) {
    for (bool inside = false; *at; at++) {
        const char *text = *at == '\\' ? stands_for(at[1], inside) : NULL;
        size_t size = *at == '\\' && at[1] && !inside ? 2 : 1;
        inside = inside ? *at != ']' : *at == '[';
        kl_put_bytes(out, text ? text : at, text ? strlen(text) : size);
        at += text ? 1 : size - 1;
    }
    kl_put_u8(out, 0);
}

static kilter_status read_separator(reading *r) {
    kl_buffer text = {0};
    char message[120];
    put_expression(&text, r->q->columns);
    if (text.failed) {
        kl_buffer_free(&text);
        return no_memory(r);
    }
    int code = regcomp(&r->columns, (const char *)text.data, REG_EXTENDED);
    kl_buffer_free(&text);
    if (code == 0)
        return KILTER_OK;
    regerror(code, &r->columns, message, sizeof message);
    return kl_fail(r->error, KILTER_ERR_USAGE, "--colsep: '%.100s' is not a regular expression: %s",
                   r->q->columns, message);
}

/* --- sources --- */

static kl_map_source *new_source(const reading *r, bool beside) {
    kl_map_request *q = r->q;
    kl_map_source *sources = realloc(q->sources, (q->source_count + 1) * sizeof *sources);
    if (!sources)
        return NULL;
    q->sources = sources;
    sources[q->source_count] = (kl_map_source){.beside = beside && q->source_count > 0};
    return &sources[q->source_count++];
}

kilter_status kl_map_read_bytes(const char *file, kl_buffer *bytes, kilter_error *error) {
    bool standard = strcmp(file, "-") == 0;
    const char *name = standard ? "the standard input" : file;
    FILE *in = standard ? stdin : fopen(file, "re");
    char piece[1 << 16];
    if (!in)
        return kl_fail(error, KILTER_ERR_INPUT, "reading values from %s: %s", name, strerror(errno));
    if (standard && isatty(STDIN_FILENO) == 1)
        fprintf(stderr, "kilter map: reading values from the terminal; end them with Ctrl-D\n");
    for (size_t got; (got = fread(piece, 1, sizeof piece, in)) > 0;)
        kl_put_bytes(bytes, piece, got);
    kilter_status status =
        ferror(in) ? kl_fail(error, KILTER_ERR_INPUT, "reading values from %s: %s", name, strerror(errno))
        : bytes->failed ? kl_fail(error, KILTER_ERR_MEMORY, "reading the values: memory ran out")
                        : KILTER_OK;
    if (!standard)
        fclose(in);
    return status;
}

/* Refuse values that contain a zero byte, because it would cut the value short. With -0, zero bytes separate
 * the values, so they are allowed. */
static kilter_status check_bytes(const reading *r, const char *name, const kl_buffer *bytes) {
    const uint8_t *zero = r->q->null || bytes->size == 0 ? NULL : memchr(bytes->data, 0, bytes->size);
    uint64_t line = 1;
    for (const uint8_t *at = bytes->data; zero && at < zero; at++)
        line += *at == '\n';
    return zero ? kl_fail(r->error, KILTER_ERR_INPUT,
                          "reading values from %s: line %llu contains a zero byte; give -0 if zero bytes "
                          "separate the values",
                          name, kl_ull(line))
                : KILTER_OK;
}

static kilter_status read_file(const reading *r, const char *file, bool beside) {
    const char *name = strcmp(file, "-") == 0 ? "the standard input" : file;
    kl_map_source *source = new_source(r, beside);
    kl_buffer bytes = {0};
    if (!source)
        return no_memory(r);
    kilter_status status = kl_map_read_bytes(file, &bytes, r->error);
    if (status == KILTER_OK)
        status = check_bytes(r, name, &bytes);
    if (status == KILTER_OK &&
        !kl_map_source_lines(source, (const char *)bytes.data, bytes.size, r->q->null ? '\0' : '\n'))
        status = no_memory(r);
    kl_buffer_free(&bytes);
    return status == KILTER_OK && r->q->columns ? cut_columns(r, source) : status;
}

/* Return whether a word is a source mark such as :::. If it is, set the kind of the source that follows. */
static bool is_separator(const char *word, bool *files, bool *beside) {
    size_t colons = strspn(word, ":");
    *files = colons == 4;
    *beside = word[colons] == '+';
    return (colons == 3 || colons == 4) && word[colons + *beside] == '\0';
}

static kilter_status read_words(const reading *r, char **words, int count, bool beside) {
    kl_map_source *source = new_source(r, beside);
    bool good = source;
    for (int i = 0; good && i < count; i++) {
        good = kl_map_source_begin(source);
        kl_put_bytes(&source->text, words[i], strlen(words[i]) + 1);
    }
    if (!good || source->text.failed)
        return no_memory(r);
    return r->q->columns ? cut_columns(r, source) : KILTER_OK;
}

/* Read all sources of values. words[0] is the first source mark, such as :::. */
static kilter_status read_sources(const reading *r, int count, char **words) {
    kilter_status status = KILTER_OK;
    for (int at = 0; at < count && status == KILTER_OK;) {
        bool files, beside, unused;
        int end = at + 1;
        is_separator(words[at], &files, &beside);
        while (end < count && !is_separator(words[end], &unused, &unused))
            end++;
        if (files && end == at + 1)
            return kl_fail(r->error, KILTER_ERR_USAGE, "%s: name a file after it", words[at]);
        if (!files)
            status = read_words(r, words + at + 1, end - at - 1, beside);
        for (int i = at + 1; files && i < end && status == KILTER_OK; i++)
            status = read_file(r, words[i], beside);
        at = end;
    }
    return status;
}

kilter_status kl_map_read_values(kl_map_request *q, int count, char **words, kilter_error *error) {
    reading r = {.q = q, .error = error};
    bool files, beside;
    int at = 0;
    if (q->after)
        return count == 0 ? kl_map_read_after(q, error)
                          : kl_fail(error, KILTER_ERR_USAGE,
                                    "'%s': with --after, all commands are in its file", words[0]);
    kilter_status status = q->columns ? read_separator(&r) : KILTER_OK;
    while (at < count && !is_separator(words[at], &files, &beside))
        at++;
    q->words = words;
    q->word_count = (size_t)at;
    if (status == KILTER_OK && q->file)
        status = read_file(&r, q->file, false);
    if (status == KILTER_OK && !q->file && at == count)
        status = read_file(&r, "-", false);
    if (status == KILTER_OK)
        status = read_sources(&r, count - at, words + at);
    if (q->columns && status == KILTER_OK)
        regfree(&r.columns);
    return status;
}

void kl_map_free_values(kl_map_request *q) {
    for (size_t i = 0; i < q->source_count; i++)
        kl_map_source_free(&q->sources[i]);
    free(q->sources);
    kl_map_list_free(&q->list);
}
