#include "cluster/scan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kl_scan kl_scan_of(const char *what, const char *text, kilter_error *error) {
    return (kl_scan){.what = what, .text = text, .at = text, .error = error};
}

bool kl_scan_ok(const kl_scan *scan) {
    return scan->status == KILTER_OK;
}

bool kl_scan_done(const kl_scan *scan) {
    return !kl_scan_ok(scan) || *scan->at == '\0';
}

bool kl_scan_is(const kl_scan *scan, const char *word) {
    return kl_scan_ok(scan) && strncmp(scan->at, word, strlen(word)) == 0;
}

bool kl_scan_take(kl_scan *scan, const char *word) {
    if (!kl_scan_is(scan, word))
        return false;
    scan->at += strlen(word);
    return true;
}

void kl_scan_fail(kl_scan *scan, const char *at, kilter_status status, const char *format, ...) {
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (kl_scan_ok(scan))
        scan->status = kl_fail(scan->error, status, "%s '%.100s%s', column %zu: %s", scan->what, scan->text,
                               strlen(scan->text) > 100 ? "…" : "", (size_t)(at - scan->text) + 1, why);
}

void kl_scan_need(kl_scan *scan, const char *word, const char *after) {
    if (!kl_scan_take(scan, word))
        kl_scan_fail(scan, scan->at, KILTER_ERR_INPUT, "'%s' must follow %s", word, after);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Return the length of the decimal number at the beginning of the text; 0: there is none. "inf" and
 * hexadecimal numbers are refused. So the number in "4x1.0" is 4, a count of hosts. */
static size_t number_length(const char *text) {
    const char *at = text;
    size_t digits = 0;
    for (; is_digit(*at); at++)
        digits++;
    if (*at == '.')
        for (at++; is_digit(*at); at++)
            digits++;
    if (digits == 0)
        return 0;
    const char *exponent = at;
    if (*exponent == 'e' || *exponent == 'E') {
        exponent++;
        if (*exponent == '+' || *exponent == '-')
            exponent++;
        if (is_digit(*exponent))
            for (at = exponent; is_digit(*at); at++)
                ;
    }
    return (size_t)(at - text);
}

/* Read the number at the beginning of the text. Return NAN if there is none. */
static double take_number(kl_scan *scan, const char *name) {
    char digits[64];
    size_t length = kl_scan_ok(scan) ? number_length(scan->at) : 0;
    if (length == 0 || length >= sizeof digits) {
        kl_scan_fail(scan, scan->at, KILTER_ERR_INPUT, "%s must be a number", name);
        return NAN;
    }
    memcpy(digits, scan->at, length);
    digits[length] = '\0';
    scan->at += length;
    return strtod(digits, NULL);
}

typedef struct range {
    double least, most;
    const char *unit;
} range;

static double within(kl_scan *scan, const char *at, const char *name, double value, range r) {
    if (kl_scan_ok(scan) && value >= r.least && value <= r.most)
        return value;
    kl_scan_fail(scan, at, KILTER_ERR_RANGE, "%s must be from %.10g%s to %.10g%s", name, r.least, r.unit,
                 r.most, r.unit);
    return 0;
}

uint64_t kl_scan_count(kl_scan *scan, const char *name, uint64_t least, uint64_t most) {
    const char *at = scan->at;
    uint64_t value = 0;
    if (!kl_scan_ok(scan))
        return 0;
    if (!is_digit(*at)) {
        kl_scan_fail(scan, at, KILTER_ERR_INPUT, "%s must be a whole number", name);
        return 0;
    }
    for (; is_digit(*scan->at); scan->at++)
        value = value > most ? value : 10 * value + (uint64_t)(*scan->at - '0');
    if (value < least || value > most) {
        kl_scan_fail(scan, at, KILTER_ERR_RANGE, "%s must be from %llu to %llu", name,
                     (unsigned long long)least, (unsigned long long)most);
        return 0;
    }
    return value;
}

double kl_scan_number(kl_scan *scan, const char *name, double least, double most) {
    const char *at = scan->at;
    return within(scan, at, name, take_number(scan, name), (range){least, most, ""});
}

typedef struct unit {
    const char *name;
    double factor;
} unit;

/* The units of time. If one name begins with another, the longer name must come first. */
static const unit time_units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3},
                                  {"s", 1},     {"min", 60},  {"h", 3600},  {NULL, 0}};
static const unit rate_units[] = {{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"B/s", 1}, {NULL, 0}};

static double take_with_unit(kl_scan *scan, const char *name, const unit *units, const char *known) {
    double value = take_number(scan, name);
    for (const unit *u = units; u->name; u++)
        if (kl_scan_take(scan, u->name))
            return value * u->factor;
    kl_scan_fail(scan, scan->at, KILTER_ERR_INPUT, "%s needs a unit: %s", name, known);
    return NAN;
}

double kl_scan_time_s(kl_scan *scan, const char *name, double least_s, double most_s) {
    const char *at = scan->at;
    double value = take_with_unit(scan, name, time_units, "ns, us, ms, s, min or h");
    return within(scan, at, name, value, (range){least_s, most_s, " s"});
}

double kl_scan_bytes_per_s(kl_scan *scan, const char *name) {
    const char *at = scan->at;
    double value = take_with_unit(scan, name, rate_units, "B/s, kB/s, MB/s or GB/s");
    return within(scan, at, name, value, (range){1, 1e18, " B/s"});
}
