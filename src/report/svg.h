/* Private to the folder report: elements of an SVG picture. Lengths are in pixels; y grows downwards. */
#ifndef KL_REPORT_SVG_H
#define KL_REPORT_SVG_H

#include <stdio.h>

#include "base/base.h"

/* number of colours for series and runs, which are used in turn */
enum { KL_SVG_COLOURS = 6 };
extern const char *const kl_svg_colours[KL_SVG_COLOURS];

/* Begin a white picture with a title and a smaller line below it. These CSS classes are defined: `grid`,
 * `axis` and `frame` for shapes; `label`, `mark` and `small` for text. `style`: further CSS. */
void kl_svg_open(FILE *out, double width, double height, const char *style, const char *title,
                 const char *subtitle);
void kl_svg_close(FILE *out);

typedef enum kl_anchor { KL_ANCHOR_START, KL_ANCHOR_MIDDLE, KL_ANCHOR_END } kl_anchor;

typedef struct kl_point {
    double x, y;
} kl_point;

/* Write a text that is formatted as by printf(). Its arguments may come from any source, so they are escaped.
 */
void kl_svg_text(FILE *out, kl_point at, kl_anchor anchor, const char *class, const char *format, ...)
    KILTER_PRINTF(5, 6);
void kl_svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *class);
void kl_svg_box(FILE *out, double x, double y, double width, double height, const char *class);

/* How a range of values is mapped to pixels. */
typedef struct kl_scale {
    double low, high; /* ends of the range of values */
    double from, to;  /* the pixels to which `low` and `high` are mapped */
    bool log;         /* true: the scale is logarithmic, which needs low > 0 */
} kl_scale;

double kl_scale_at(const kl_scale *scale, double value);
/* Find about `wanted` values for the ticks of an axis: equal steps of 1, 2 or 5 times a power of ten. Return
 * their number. */
enum { KL_TICKS_MAX = 40 };
size_t kl_scale_ticks(const kl_scale *scale, double wanted, double ticks[KL_TICKS_MAX]);

/* A suitable unit for times up to longest_s: its name, and the number of these units in a second. */
typedef struct kl_time_unit {
    const char *name;
    double per_s;
} kl_time_unit;

kl_time_unit kl_time_unit_for(double longest_s);
/* Draw a time axis from `left` to the x position `to`. `what` and the unit are written below it. */
void kl_svg_time_axis(FILE *out, double seconds, kl_point left, double to, const char *what);

#endif
