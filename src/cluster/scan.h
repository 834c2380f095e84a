/* Private to the folder cluster: read a description from left to right. The first part that does not fit
 * is reported as the error, with its column. After it, every read returns 0 and changes nothing. */
#ifndef KL_CLUSTER_SCAN_H
#define KL_CLUSTER_SCAN_H

#include "base/base.h"

typedef struct kl_scan {
    const char *what; /* word for error messages: "platform" or "tasks" */
    const char *text, *at;
    kilter_status status;
    kilter_error *error;
} kl_scan;

kl_scan kl_scan_of(const char *what, const char *text, kilter_error *error);
bool kl_scan_ok(const kl_scan *scan);
bool kl_scan_done(const kl_scan *scan);                 /* Return whether everything was read. */
bool kl_scan_is(const kl_scan *scan, const char *word); /* Return whether this text follows. */
/* Return whether this text follows, and read it if it does. */
bool kl_scan_take(kl_scan *scan, const char *word);
void kl_scan_need(kl_scan *scan, const char *word, const char *after);
void kl_scan_fail(kl_scan *scan, const char *at, kilter_status status, const char *format, ...)
    KILTER_PRINTF(4, 5);

/* Read a number within [least, most]; `name` is for the error. */
uint64_t kl_scan_count(kl_scan *scan, const char *name, uint64_t least, uint64_t most);
double kl_scan_number(kl_scan *scan, const char *name, double least, double most);
double kl_scan_time_s(kl_scan *scan, const char *name, double least_s, double most_s);
double kl_scan_bytes_per_s(kl_scan *scan, const char *name);

#endif
