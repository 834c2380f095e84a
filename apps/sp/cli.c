#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ---- options ---- */

static kilter_status take_path(const char *text, void *value, kilter_error *error) {
    if (*text == 0)
        return kl_fail(error, KILTER_ERR_USAGE, "reading the command line: --at has no file; give its path");
    *(const char **)value = text;
    return KILTER_OK;
}

static bool whole_number(const char *text, uint64_t *value) {
    if (*text == 0 || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *value = strtoull(text, NULL, 10);
    return errno == 0;
}

static kilter_status take_scenarios(const char *text, void *value, kilter_error *error) {
    uint64_t number;
    if (!whole_number(text, &number) || number < 1 || number > SP_SCENARIOS_MAX)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --scenarios %.40s; give a whole number from 1 to %d", text,
                       SP_SCENARIOS_MAX);
    *(uint64_t *)value = number;
    return KILTER_OK;
}

static kilter_status take_seed(const char *text, void *value, kilter_error *error) {
    if (!whole_number(text, value))
        return kl_fail(
            error, KILTER_ERR_USAGE,
            "reading the command line: --seed %.40s; give a whole number from 0 to 18446744073709551615",
            text);
    return KILTER_OK;
}

static kilter_status take_confidence(const char *text, void *value, kilter_error *error) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || strspn(text, "0123456789.") != strlen(text) || !(number > 0 && number < 100))
        return kl_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: --confidence %.40s; give percent, above 0 and below 100",
                       text);
    *(double *)value = number;
    return KILTER_OK;
}

static const struct option {
    const char *name, *argument, *help;
    size_t offset;
    kilter_status (*take)(const char *text, void *value, kilter_error *error);
} OPTION[] = {
    {"--at", "FILE", "the first-stage decision (required)", offsetof(sp_options, at), take_path},
    {"--scenarios", "N", "how many scenarios to sample (required)", offsetof(sp_options, scenarios),
     take_scenarios},
    {"--seed", "S", "which sample: same seed, same scenarios (default 1)", offsetof(sp_options, seed),
     take_seed},
    {"--confidence", "P", "of the interval, in percent (default 95)", offsetof(sp_options, confidence),
     take_confidence},
};
enum { OPTIONS = sizeof OPTION / sizeof *OPTION };

void sp_evaluate_usage(FILE *out) {
    fprintf(
        out,
        "usage: kilter-sp evaluate CORE TIME STOCH --at FILE --scenarios N [options]\n\n"
        "Estimate the expected cost of a first-stage decision of a two-stage stochastic linear program.\n\n"
        "  CORE TIME STOCH    the problem, in SMPS\n");
    for (int i = 0; i < OPTIONS; i++)
        fprintf(out, "  %-13s %-4s %s\n", OPTION[i].name, OPTION[i].argument, OPTION[i].help);
    fprintf(
        out,
        "  --json             print one JSON object\n"
        "  --help             print this\n\n"
        "The decision's file holds the number of first-stage columns and then their values in CORE's order,\n"
        "or lines COLUMN VALUE. The estimate's bits depend on the files, N and S alone: not on how many\n"
        "workers there are, or which.\n\n"
        "Exit code: 0 done; 2 for what can be mended in the call or the files; 1 for the rest.\n");
}

/* "--name value" or "--name=value"; *at moves to the last argument used. */
static kilter_status take_option(int count, char *const *arguments, int *at, bool *seen, sp_options *options,
                                 kilter_error *error) {
    const char *argument = arguments[*at];
    size_t size = strcspn(argument, "=");
    for (int i = 0; i < OPTIONS; i++) {
        if (strlen(OPTION[i].name) != size || strncmp(argument, OPTION[i].name, size) != 0)
            continue;
        if (seen[i])
            return kl_fail(error, KILTER_ERR_USAGE,
                           "reading the command line: %s stands there twice; give it once", OPTION[i].name);
        seen[i] = true;
        const char *text = argument[size] ? argument + size + 1 : NULL;
        if (!text && *at + 1 < count)
            text = arguments[++*at];
        if (!text)
            return kl_fail(error, KILTER_ERR_USAGE, "reading the command line: %s has no value; give %s",
                           OPTION[i].name, OPTION[i].argument);
        return OPTION[i].take(text, (char *)options + OPTION[i].offset, error);
    }
    return kl_fail(error, KILTER_ERR_USAGE,
                   "reading the command line: there is no option %.60s; kilter-sp evaluate --help lists them",
                   argument);
}

static kilter_status check_complete(int files, const sp_options *options, kilter_error *error) {
    const char *missing = files < 3             ? "one of the three files CORE TIME STOCH"
                          : !options->at        ? "--at FILE, the first-stage decision"
                          : !options->scenarios ? "--scenarios N, how many to sample"
                                                : NULL;
    if (missing)
        return kl_fail(error, KILTER_ERR_USAGE,
                       "reading the command line: %s is missing; see kilter-sp evaluate --help", missing);
    return KILTER_OK;
}

kilter_status sp_options_parse(int count, char *const *arguments, sp_options *options, kilter_error *error) {
    sp_options parsed = {.seed = 1, .confidence = 95};
    const char **file[] = {&parsed.core, &parsed.time, &parsed.stoch};
    bool seen[OPTIONS] = {false};
    bool plain = false; /* after "--" everything is a file */
    int files = 0;
    kilter_status status = KILTER_OK;
    for (int at = 0; !status && at < count; at++) {
        const char *argument = arguments[at];
        if (!plain && strcmp(argument, "--") == 0)
            plain = true;
        else if (!plain && strcmp(argument, "--json") == 0)
            parsed.json = true;
        else if (!plain && argument[0] == '-' && argument[1])
            status = take_option(count, arguments, &at, seen, &parsed, error);
        else if (files < 3)
            *file[files++] = argument;
        else
            status = kl_fail(error, KILTER_ERR_USAGE,
                             "reading the command line: %.60s is one file too many; give CORE TIME STOCH",
                             argument);
    }
    if (!status)
        status = check_complete(files, &parsed, error);
    if (!status)
        *options = parsed;
    return status;
}

/* ---- answer ---- */

void sp_answer_print(FILE *out, const sp_answer *answer) {
    const sp_estimate *estimate = &answer->estimate;
    fprintf(out, "expected cost  %.10g\n", estimate->mean);
    if (isnan(estimate->standard_error))
        fprintf(out, "interval       not known from one scenario\n");
    else
        fprintf(out, "interval       %.10g to %.10g (%g %%, standard error %.4g)\n", estimate->low,
                estimate->high, answer->confidence, estimate->standard_error);
    fprintf(out, "scenarios      %llu of %.4g possible, seed %llu\n", (unsigned long long)answer->scenarios,
            answer->possible, (unsigned long long)answer->seed);
    fprintf(out, "time           %.3f s on %u worker%s", answer->elapsed_s, answer->workers,
            answer->workers == 1 ? "" : "s");
    if (answer->elapsed_s > 0)
        fprintf(out, ", %.0f scenarios/s", (double)answer->scenarios / answer->elapsed_s);
    fprintf(out, "\n");
    if (answer->decision)
        fprintf(out, "balance        %s\n", answer->decision);
    if (answer->record)
        fprintf(out, "record         %s\n", answer->record);
}

static void print_number(FILE *out, const char *name, double value) {
    if (isfinite(value))
        fprintf(out, "\"%s\": %.17g, ", name, value);
    else
        fprintf(out, "\"%s\": null, ", name);
}

static void print_string(FILE *out, const char *name, const char *text) {
    fprintf(out, ", \"%s\": ", name);
    if (!text) {
        fprintf(out, "null");
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 32)
            fprintf(out, "\\u%04x", *text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

void sp_answer_print_json(FILE *out, const sp_answer *answer) {
    uint64_t bits;
    memcpy(&bits, &answer->estimate.mean, sizeof bits);
    fprintf(out, "{");
    print_number(out, "estimate", answer->estimate.mean);
    fprintf(out, "\"estimate_bits\": \"0x%016llx\", ", (unsigned long long)bits);
    print_number(out, "standard_error", answer->estimate.standard_error);
    print_number(out, "confidence_percent", answer->confidence);
    print_number(out, "low", answer->estimate.low);
    print_number(out, "high", answer->estimate.high);
    fprintf(out, "\"scenarios\": %llu, \"seed\": %llu, ", (unsigned long long)answer->scenarios,
            (unsigned long long)answer->seed);
    print_number(out, "possible_scenarios", answer->possible);
    print_number(out, "elapsed_s", answer->elapsed_s);
    print_number(out, "scenarios_per_s",
                 answer->elapsed_s > 0 ? (double)answer->scenarios / answer->elapsed_s : NAN);
    fprintf(out, "\"workers\": %u", answer->workers);
    print_string(out, "decision", answer->decision);
    print_string(out, "record", answer->record);
    fprintf(out, "}\n");
}
