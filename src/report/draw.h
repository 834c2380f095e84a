/* Draw line plots as SVG pictures. */
#ifndef KL_REPORT_DRAW_H
#define KL_REPORT_DRAW_H

#include <stdio.h>

#include "base/base.h"

typedef enum kl_stroke {
    KL_STROKE_LINE,
    KL_STROKE_DASHES,
    KL_STROKE_DOTS
} kl_stroke; /* KL_STROKE_DOTS: draw only the points */

typedef struct kl_series {
    const char *name; /* name in the legend; NULL: the series is not in the legend */
    kl_stroke stroke;
    uint32_t colour; /* 0, 1, 2, … */
    const double *x, *y;
    size_t count; /* number of points; points that are not finite are left out */
} kl_series;

/* A vertical line with a text at its top. */
typedef struct kl_mark {
    double x;
    const char *text;
} kl_mark;

/* One of several plots that lie above each other and have the same x axis. */
typedef struct kl_panel {
    const char *y_label;
    const kl_series *series;
    size_t series_count;
    const kl_mark *marks;
    size_t mark_count;
} kl_panel;

/* A picture of one or more panels. Its legend names the series of the first panel. The scale of an axis is
 * logarithmic if all its values are above 0, and the largest value is many times the smallest value. */
typedef struct kl_plot {
    const char *title, *subtitle, *x_label;
    const kl_panel *panels;
    size_t panel_count;
} kl_plot;

void kl_plot_write(const kl_plot *plot, FILE *out);

#endif
