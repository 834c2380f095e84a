/* Private to room report: what is printed and drawn of a loop. */
#ifndef KL_REPORT_LOOP_PRINT_H
#define KL_REPORT_LOOP_PRINT_H

#include "report/print.h"
#include "report/report.h"

void kl_loop_print_what(const kl_report *report, FILE *out); /* a line for the header */
void kl_loop_print_text(const kl_report *report, FILE *out);
void kl_loop_print_json(kl_json *j, const kl_report *report); /* the member "loop" */
/* Its iterations over time, a band a rank. KILTER_ERR_INPUT: no round is in the record. */
kilter_status kl_loop_draw(const kl_report *report, FILE *out, kilter_error *error);

#endif
