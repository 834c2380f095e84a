/* Draw line plots as SVG pictures. */
#include <math.h>

#include "report/draw.h"
#include "report/svg.h"
#include "report/text.h"

static const double WIDTH = 960, LEFT = 84, RIGHT = 28, TOP = 104, BOTTOM = 58, PANEL = 310, GAP = 34;
static const double MARK_ROW =
    15; /* height in pixels of a row of text above a panel; the text of each mark has a row of its own */
static const double LOG_ABOVE =
    12; /* a scale may be logarithmic if its largest value is at least this many times its smallest value */

static const char style[] =
    ".series{fill:none;stroke-width:2}.dashes{stroke-dasharray:6 4;stroke-width:1.5}\n"
    ".rule{stroke:#777;stroke-width:1;stroke-dasharray:2 2}\n";

typedef struct range {
    double low, high;
} range;

static void widen(range *r, const double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            r->low = fmin(r->low, values[i]);
            r->high = fmax(r->high, values[i]);
        }
}

static kl_scale scale_of(range r, double from, double to) {
    if (!(r.low <= r.high)) /* there are no values to show */
        r = (range){0, 1};
    kl_scale s = {.low = r.low, .high = r.high, .from = from, .to = to};
    s.log = r.low > 0 && r.high / r.low > LOG_ABOVE;
    if (!s.log) {
        double room = fmax(0.05 * (r.high - r.low), 1e-3 * fabs(r.high));
        s.low = r.low > 0 && r.low < 0.5 * r.high ? 0 : r.low - room;
        s.high = r.high + fmax(room, 1e-300);
    }
    return s;
}

static kl_scale x_scale(const kl_plot *plot) {
    range r = {INFINITY, -INFINITY};
    for (size_t p = 0; p < plot->panel_count; p++)
        for (size_t i = 0; i < plot->panels[p].series_count; i++)
            widen(&r, plot->panels[p].series[i].x, plot->panels[p].series[i].count);
    kl_scale s = scale_of(r, LEFT, WIDTH - RIGHT);
    if (s.log && s.high <= 200) /* a linear x scale is easier to read up to the value 200 */
        s.log = false;
    if (!s.log) {
        s.low = r.low > 0 && r.low <= 0.1 * r.high ? 0 : s.low;
        s.high = r.high > r.low ? r.high : s.high;
    }
    return s;
}

static bool is_on(const kl_scale *x, double value) {
    double at = kl_scale_at(x, value);
    return at >= x->from && at <= x->to;
}

/* Return the y scale, which begins below the texts of the marks. */
static kl_scale y_scale(const kl_panel *panel, const kl_scale *x, double top) {
    range r = {INFINITY, -INFINITY};
    for (size_t i = 0; i < panel->series_count; i++)
        widen(&r, panel->series[i].y, panel->series[i].count);
    double words = 0;
    for (size_t i = 0; i < panel->mark_count; i++)
        words += is_on(x, panel->marks[i].x) ? MARK_ROW : 0;
    kl_scale s = scale_of(r, top + PANEL, top + words + (words > 0 ? 10 : 0));
    if (s.log) {
        s.low /= 1.15;
        s.high *= 1.15;
    }
    return s;
}

static void draw_grid(const kl_scale *x, const kl_scale *y, double top, bool numbers_below, FILE *out) {
    double ticks[KL_TICKS_MAX];
    size_t count = kl_scale_ticks(y, 7, ticks);
    for (size_t i = 0; i < count; i++) {
        double at = kl_scale_at(y, ticks[i]);
        kl_svg_line(out, x->from, at, x->to, at, "grid");
        kl_svg_text(out, (kl_point){x->from - 8, at + 4}, KL_ANCHOR_END, "label", "%.10g", ticks[i]);
    }
    count = kl_scale_ticks(x, 12, ticks);
    for (size_t i = 0; i < count; i++) {
        double at = kl_scale_at(x, ticks[i]);
        kl_svg_line(out, at, top, at, y->from, "grid");
        if (numbers_below)
            kl_svg_text(out, (kl_point){at, y->from + 18}, KL_ANCHOR_MIDDLE, "label", "%.10g", ticks[i]);
    }
    kl_svg_box(out, x->from, top, x->to - x->from, y->from - top, "frame");
}

static const char *colour_of(const kl_series *s) {
    return kl_svg_colours[s->colour % KL_SVG_COLOURS];
}

static void draw_series(const kl_series *s, const kl_scale *x, const kl_scale *y, FILE *out) {
    bool dots = s->stroke == KL_STROKE_DOTS, drawn = false;
    if (!dots)
        fprintf(out, "<path class=\"series%s\" stroke=\"%s\" d=\"",
                s->stroke == KL_STROKE_DASHES ? " dashes" : "", colour_of(s));
    for (size_t i = 0; i < s->count; i++) {
        bool shown = isfinite(s->x[i]) && isfinite(s->y[i]) && (!y->log || s->y[i] > 0);
        if (shown && dots)
            fprintf(
                out,
                "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"4\" fill=\"#fff\" stroke=\"%s\" stroke-width=\"2\"/>\n",
                kl_scale_at(x, s->x[i]), kl_scale_at(y, s->y[i]), colour_of(s));
        else if (shown)
            fprintf(out, "%c%.2f %.2f", drawn ? 'L' : 'M', kl_scale_at(x, s->x[i]), kl_scale_at(y, s->y[i]));
        drawn = shown;
    }
    if (!dots)
        fputs("\"/>\n", out);
}

static bool in_right_half(const kl_scale *x, double value) {
    return kl_scale_at(x, value) > (x->from + x->to) / 2;
}

/* Return the row for the text of a mark, which is a vertical line. The text is beside the line, on the
 * side with more room. Marks further from the middle have their texts further up, so that few lines
 * cross a text. */
static size_t mark_row(const kl_panel *panel, const kl_scale *x, size_t which) {
    const kl_mark *marks = panel->marks;
    bool right = in_right_half(x, marks[which].x);
    size_t row = 0;
    for (size_t i = 0; i < panel->mark_count; i++) {
        if (!is_on(x, marks[i].x))
            continue;
        bool other_right = in_right_half(x, marks[i].x);
        double further = right ? marks[i].x - marks[which].x : marks[which].x - marks[i].x;
        row += other_right != right ? right : further > 0 || (further == 0 && i < which);
    }
    return row;
}

static void draw_marks(const kl_panel *panel, const kl_scale *x, double top, bool words, FILE *out) {
    for (size_t i = 0; i < panel->mark_count; i++) {
        if (!is_on(x, panel->marks[i].x))
            continue;
        double at = kl_scale_at(x, panel->marks[i].x);
        double words_y = top + 16 + MARK_ROW * (double)mark_row(panel, x, i);
        bool right = in_right_half(x, panel->marks[i].x);
        if (words)
            kl_svg_text(out, (kl_point){at + (right ? -6 : 6), words_y},
                        right ? KL_ANCHOR_END : KL_ANCHOR_START, "mark", "%s", panel->marks[i].text);
        else
            kl_svg_line(out, at, words_y - 10, at, top + PANEL, "rule");
    }
}

static void draw_legend(const kl_panel *panel, FILE *out) {
    double at = LEFT;
    for (size_t i = 0; i < panel->series_count; i++) {
        const kl_series *s = &panel->series[i];
        if (!s->name)
            continue;
        const double x[] = {0, 26}, y[] = {0, 0}, middle[] = {13};
        kl_scale across = {0, 26, at, at + 26, false}, level = {-1, 1, 81, 75, false};
        kl_series sample = *s;
        sample.x = s->stroke == KL_STROKE_DOTS ? middle : x;
        sample.y = y;
        sample.count = s->stroke == KL_STROKE_DOTS ? 1 : 2;
        draw_series(&sample, &across, &level, out);
        kl_svg_text(out, (kl_point){at + 33, 82}, KL_ANCHOR_START, "label", "%s", s->name);
        at += 58 + 6.4 * (double)kl_utf8_columns(s->name);
    }
}

void kl_plot_write(const kl_plot *plot, FILE *out) {
    double panels = (double)plot->panel_count, height = TOP + panels * PANEL + (panels - 1) * GAP + BOTTOM;
    kl_svg_open(out, WIDTH, height, style, plot->title, plot->subtitle);
    draw_legend(&plot->panels[0], out);
    kl_scale x = x_scale(plot);
    for (size_t p = 0; p < plot->panel_count; p++) {
        const kl_panel *panel = &plot->panels[p];
        double top = TOP + (double)p * (PANEL + GAP);
        kl_scale y = y_scale(panel, &x, top);
        draw_grid(&x, &y, top, p + 1 == plot->panel_count, out);
        draw_marks(panel, &x, top, false, out);
        for (size_t i = panel->series_count; i > 0;
             i--) /* draw the first series last, so that it is on top */
            draw_series(&panel->series[i - 1], &x, &y, out);
        draw_marks(panel, &x, top, true, out);
        fprintf(out, "<g transform=\"translate(22 %.2f) rotate(-90)\">", top + PANEL / 2);
        kl_svg_text(out, (kl_point){0, 0}, KL_ANCHOR_MIDDLE, "label", "%s", panel->y_label);
        fputs("</g>\n", out);
    }
    kl_svg_text(out, (kl_point){(x.from + x.to) / 2, height - 16}, KL_ANCHOR_MIDDLE, "label", "%s",
                plot->x_label);
    kl_svg_close(out);
}
