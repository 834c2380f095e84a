/* Private to the folder cluster: read a description from left to right. The first part that is not valid is
 * reported as the error, with its column. After an error, every read returns 0 and changes nothing. */
#ifndef KL_CLUSTER_SCAN_H
#define KL_CLUSTER_SCAN_H

#include "base/base.h"

typedef struct kl_scan {
    const char *what; /* what is described: "platform" or "tasks"; for error messages */
    const char *text, *at;
    kilter_status status;
    kilter_error *error;
} kl_scan;

kl_scan kl_scan_of(const char *what, const char *text, kilter_error *error);
bool kl_scan_ok(const kl_scan *scan);
bool kl_scan_done(const kl_scan *scan); /* Return whether the whole description was read. */
/* Return whether `word` is the next text of the description. */
bool kl_scan_is(const kl_scan *scan, const char *word);
/* If `word` is the next text of the description, read it and return true. */
bool kl_scan_take(kl_scan *scan, const char *word);
void kl_scan_need(kl_scan *scan, const char *word, const char *after);
void kl_scan_fail(kl_scan *scan, const char *at, kilter_status status, const char *format, ...)
    KILTER_PRINTF(4, 5);

/* Read a whole number within [least, most]; an error message calls it `name`. */
uint64_t kl_scan_count(kl_scan *scan, const char *name, uint64_t least, uint64_t most);
double kl_scan_number(kl_scan *scan, const char *name, double least, double most);
double kl_scan_time_s(kl_scan *scan, const char *name, double least_s, double most_s);
double kl_scan_bytes_per_s(kl_scan *scan, const char *name);

#endif
