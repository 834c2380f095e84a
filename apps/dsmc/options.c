/* Print and read the options of the kilter-dsmc programs. */
#include "options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void dsmc_print_options(const dsmc_options *options, FILE *out) {
    for (size_t i = 0; i < options->count; i++)
        fprintf(out, "  --%-14s %s\n", options->at[i].name, options->at[i].text);
}

static int misuse(FILE *errors, const char *program, const char *before, const char *word,
                  const char *after) {
    if (errors)
        fprintf(errors, "%s: %s%.60s%s; %s --help lists the options\n", program, before, word, after,
                program);
    return 2;
}

static bool read_number(const dsmc_option *o, const char *text, double *number) {
    char *end;
    double value = strtod(text, &end);
    bool good = end != text && *end == '\0' && value >= o->least && value <= o->most &&
                (o->kind != DSMC_WHOLE || value == floor(value));
    if (good)
        *number = value;
    return good;
}

static bool read_word(const dsmc_option *o, const char *text, double *number) {
    for (int i = 0; o->words[i]; i++)
        if (strcmp(o->words[i], text) == 0) {
            *number = i;
            return true;
        }
    return false;
}

/* Print why a value cannot be used; return the exit code 2. */
static int refuse(FILE *errors, const char *program, const dsmc_option *o, const char *text) {
    if (!errors)
        return 2;
    fprintf(errors, "%s: --%s: '%.40s' is not ", program, o->name, text);
    if (o->kind == DSMC_WORD)
        for (int i = 0; o->words[i]; i++)
            fprintf(errors, "%s%s%s", i > 0 ? " or " : "", o->words[i], o->words[i + 1] ? "" : "\n");
    else
        fprintf(errors, "a %snumber from %g to %g\n", o->kind == DSMC_WHOLE ? "whole " : "", o->least,
                o->most);
    return 2;
}

static const dsmc_option *find(const dsmc_options *options, const char *word) {
    for (size_t i = 0; i < options->count; i++)
        if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, options->at[i].name) == 0)
            return &options->at[i];
    return NULL;
}

int dsmc_read_options(const dsmc_options *options, int word_count, char **words, void *values, FILE *errors) {
    const char *program = options->program;
    for (int i = 0; i < word_count; i++) {
        const dsmc_option *o = find(options, words[i]);
        void *at = o ? (char *)values + o->at : NULL;
        if (!o)
            return misuse(errors, program, "there is no option '", words[i], "'");
        if (o->kind == DSMC_FLAG) {
            *(bool *)at = true;
            continue;
        }
        if (++i == word_count)
            return misuse(errors, program, "--", o->name, " has no value");
        if (o->kind == DSMC_TEXT)
            *(const char **)at = words[i];
        else if (o->kind == DSMC_WORD ? !read_word(o, words[i], at) : !read_number(o, words[i], at))
            return refuse(errors, program, o, words[i]);
    }
    return 0;
}
