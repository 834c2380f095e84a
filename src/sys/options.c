#include "sys/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool kl_option_is_word(const char *words, const char *text) {
    for (size_t length; *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        if (strlen(text) == length && strncmp(words, text, length) == 0)
            return true;
    }
    return false;
}

/* --- numbers --- */

static kilter_status bad_number(const kl_option *o, const char *said, const char *text, kilter_error *error) {
    char range[80];
    const char *what = o->kind != KL_OPTION_NUMBER                    ? "whole number"
                       : o->value && strcmp(o->value, "SECONDS") == 0 ? "number of seconds"
                                                                      : "number";
    if (o->most > 0)
        snprintf(range, sizeof range, o->above ? "above %.15g and at most %.15g" : "from %.15g to %.15g",
                 o->least, o->most);
    else
        snprintf(range, sizeof range, o->above ? "above %.15g" : "of at least %.15g", o->least);
    return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is not a %s %s", said, text, what, range);
}

static kilter_status set_number(const kl_option *o, const char *said, const char *text, void *field,
                                kilter_error *error) {
    bool counts = o->kind == KL_OPTION_UINT32 || o->kind == KL_OPTION_UINT64;
    char *end;
    double value = strtod(text, &end);
    errno = 0;
    /* a double cannot hold every whole number of 64 bits */
    uint64_t count = counts ? strtoull(text, &end, 10) : 0;
    bool good = (isdigit((unsigned char)*text) || (!counts && *text && strchr(".+", *text))) && !*end &&
                !errno && isfinite(value) && (o->above ? value > o->least : value >= o->least) &&
                (o->most <= 0 || value <= o->most) &&
                (o->kind == KL_OPTION_NUMBER || value == floor(value)) &&
                (o->kind != KL_OPTION_UINT32 || count <= UINT32_MAX);
    if (!good)
        return bad_number(o, said, text, error);
    if (o->kind == KL_OPTION_UINT32)
        *(uint32_t *)field = (uint32_t)count;
    else if (o->kind == KL_OPTION_UINT64)
        *(uint64_t *)field = count;
    else
        *(double *)field = value;
    return KILTER_OK;
}

/* --- functions for options of every kind --- */

kilter_status kl_option_refuse(const kl_value *v, const char *what) {
    return kl_fail(v->error, KILTER_ERR_USAGE, "%s: '%s' is %s", v->said, v->text, what);
}

static kilter_status set_switch(const char *said, const char *text, bool *field, kilter_error *error) {
    if (!kl_option_is_word("0 1", text))
        return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is neither 0 nor 1", said, text);
    *field = *text == '1';
    return KILTER_OK;
}

static kilter_status check_text(const kl_option *o, const char *said, const char *text, kilter_error *error) {
    if (!*text)
        return kl_fail(error, KILTER_ERR_USAGE, "%s: the value is empty", said);
    if (o->words && !o->read && !kl_option_is_word(o->words, text))
        return kl_fail(error, KILTER_ERR_USAGE, "%s: '%s' is none of: %s", said, text, o->words);
    if (o->is_file && strcmp(text, "-") == 0)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "%s -: the standard output is needed for the answer; name a file", said);
    return KILTER_OK;
}

kilter_status kl_option_set(const kl_option *o, const char *said, const char *text, void *into,
                            kilter_error *error) {
    void *field = (char *)into + o->offset;
    kilter_status status = o->kind == KL_OPTION_TEXT ? check_text(o, said, text, error) : KILTER_OK;
    if (status == KILTER_OK && o->read)
        status = o->read(&(kl_value){o, said, text, into, error});
    if (status != KILTER_OK || o->kind == KL_OPTION_OTHER)
        return status;
    if (o->kind == KL_OPTION_SWITCH)
        return set_switch(said, text, field, error);
    if (o->kind != KL_OPTION_TEXT)
        return set_number(o, said, text, field, error);
    *(const char **)field = text;
    return KILTER_OK;
}

const kl_option *kl_option_find(kl_option_list list, const char *name, size_t length) {
    for (size_t i = 0; i < list.count; i++)
        if (strlen(list.row[i].name) == length && strncmp(name, list.row[i].name, length) == 0)
            return &list.row[i];
    return NULL;
}

void kl_option_variable(const kl_option *o, char name[KL_VARIABLE_BYTES]) {
    snprintf(name, KL_VARIABLE_BYTES, "KILTER_%s", o->name);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

/* --- help --- */

enum { HELP_COLUMN = 30, WIDTH = 80 };

void kl_option_print(FILE *out, const char *left, const char *help) {
    int column = fprintf(out, "  %-*s ", HELP_COLUMN - 4, left);
    for (int length; *help; help += length + (help[length] == ' ')) {
        length = (int)strcspn(help, " ");
        if (column + 1 + length > WIDTH)
            column = fprintf(out, "\n%*s", HELP_COLUMN - 1, "") - 1;
        column += fprintf(out, " %.*s", length, help);
    }
    fputc('\n', out);
}

void kl_options_print(FILE *out, kl_option_list list) {
    for (size_t i = 0; i < list.count; i++) {
        const kl_option *o = &list.row[i];
        char left[64], letter[] = {'-', o->letter, ',', ' ', '\0'};
        snprintf(left, sizeof left, "%s--%s%s%s", o->letter ? letter : "", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        kl_option_print(out, left, o->help);
    }
}
