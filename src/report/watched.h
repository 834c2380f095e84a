/* Private to the folder report: print an MPI program that `kilter watch` has watched. */
#ifndef KL_REPORT_WATCHED_H
#define KL_REPORT_WATCHED_H

#include "report/print.h"
#include "report/report.h"

void kl_watched_print_sentence(const kl_report *report, FILE *out);
void kl_watched_print_what(const kl_report_watched *watched, FILE *out); /* print its line of the header */
void kl_watched_print_text(const kl_report *report, FILE *out);
void kl_watched_print_json(kl_json *j, const kl_report_watched *watched); /* print the member "watched" */

#endif
