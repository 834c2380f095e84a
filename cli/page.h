/* The HTML page about a record. `kilter report --html` writes it into a file, and `kilter top --serve`
 * serves it. */
#ifndef KL_CLI_PAGE_H
#define KL_CLI_PAGE_H

#include <stdio.h>

#include "base/base.h"

/* The contents of the files in cli/page, and of the files of uPlot, which draws line plots. The files of
 * uPlot are empty if the build did not find it. */
extern const unsigned char kl_page_html[], kl_page_css[], kl_page_js[];
extern const unsigned char kl_plot_js[], kl_plot_css[], kl_plot_licence[];

/* Return whether the page can draw line plots. If not, it has tables instead. */
static inline bool kl_page_has_plots(void) {
    return *kl_plot_js != '\0';
}

/* Write the page about a record into `out`. Return the errors of kl_report_read(). */
kilter_status kl_page_print(const char *record, FILE *out, kilter_error *error);
/* Write a page that fetches its data from the address `data` and is updated by events from the address
 * `events`. Both are relative to the page's address. */
void kl_page_print_live(const char *title, FILE *out);
/* Append the data of the page about a record, compressed (deflate). Return the errors of kl_report_read(). */
kilter_status kl_page_data(const char *record, kl_buffer *deflated, kilter_error *error);

#endif
