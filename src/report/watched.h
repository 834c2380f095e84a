/* Private to the folder report: print the report of an MPI program that ran under `kilter watch`. */
#ifndef KL_REPORT_WATCHED_H
#define KL_REPORT_WATCHED_H

#include "report/print.h"
#include "report/report.h"

void kl_watched_print_sentence(const kl_report *report, FILE *out);
void kl_watched_print_what(const kl_report_watched *watched,
                           FILE *out); /* print the line of the header that describes the watched program */
void kl_watched_print_text(const kl_report *report, FILE *out);
void kl_watched_print_json(
    kl_json *j, const kl_report_watched *watched); /* print the member "watched" of the JSON object */

#endif
