/* Private to the folder report: print and draw a loop. */
#ifndef KL_REPORT_LOOP_PRINT_H
#define KL_REPORT_LOOP_PRINT_H

#include "report/print.h"
#include "report/report.h"

void kl_loop_print_what(const kl_report *report,
                        FILE *out); /* print the line of the header that describes the loop */
void kl_loop_print_text(const kl_report *report, FILE *out);
void kl_loop_print_json(kl_json *j, const kl_report *report); /* print the member "loop" of the JSON object */
/* Print a kept run, as the functions above print a loop. The record of a kept run is like that of a loop, and
 * each of its rounds is a decision of the keeper. */
bool kl_is_kept(const kl_report_loop *loop);
void kl_kept_print_what(const kl_report *report, FILE *out);
void kl_kept_print_text(const kl_report *report, FILE *out);
void kl_kept_print_sentence(const kl_report_loop *loop, FILE *out);
/* Draw how many iterations each rank has over time. KILTER_ERR_INPUT: the record has no rounds. */
kilter_status kl_loop_draw(const kl_report *report, FILE *out, kilter_error *error);

#endif
