#include "report/svg.h"

#include <math.h>
#include <stdarg.h>

#include "report/text.h"

const char *const kl_svg_colours[KL_SVG_COLOURS] = {"#33658a", "#bc6c25", "#588157",
                                                    "#7b5e8b", "#a4464d", "#3f8f92"};

/* Write a text so that no part of it is read as markup. Special characters are escaped. Control characters
 * and invalid UTF-8 become "?". */
static void put_escaped(FILE *out, const char *text) {
    while (*text) {
        size_t bytes = kl_utf8_bytes(text);
        unsigned char c = (unsigned char)*text;
        if (bytes == 0 || c < 0x20 || c == 0x7f || (bytes == 2 && c == 0xc2 && (text[1] & 0xe0) == 0x80))
            fputs("?", out);
        else if (c == '&' || c == '<' || c == '>' || c == '"')
            fprintf(out, "&#%d;", c);
        else
            fwrite(text, 1, bytes, out);
        text += bytes ? bytes : 1;
    }
}

void kl_svg_open(FILE *out, double width, double height, const char *style, const char *title,
                 const char *subtitle) {
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
            "%.0f\">\n",
            width, height, width, height);
    fputs(
        "<style>\n"
        "text{font:12px 'Helvetica Neue',Helvetica,Arial,'Liberation Sans',sans-serif;fill:#333}\n"
        ".title{font-size:17px;font-weight:600;fill:#111}.subtitle,.small{fill:#666}.small{font-size:11px}\n"
        ".mark{font-size:11px;fill:#333;paint-order:stroke;stroke:#fff;stroke-width:4px}\n"
        ".grid{stroke:#e6e6e6}.axis{stroke:#888;fill:none}.frame{stroke:#bbb;fill:none}\n",
        out);
    fprintf(out, "%s</style>\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", style, width, height);
    kl_svg_text(out, (kl_point){24, 32}, KL_ANCHOR_START, "title", "%s", title);
    kl_svg_text(out, (kl_point){24, 52}, KL_ANCHOR_START, "subtitle", "%s", subtitle);
}

void kl_svg_close(FILE *out) {
    fputs("</svg>\n", out);
}

void kl_svg_text(FILE *out, kl_point at, kl_anchor anchor, const char *class, const char *format, ...) {
    static const char *const anchors[] = {"start", "middle", "end"};
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" class=\"%s\" text-anchor=\"%s\">", at.x, at.y, class,
            anchors[anchor]);
    put_escaped(out, text);
    fputs("</text>\n", out);
}

void kl_svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *class) {
    fprintf(out, "<path class=\"%s\" d=\"M%.2f %.2fL%.2f %.2f\"/>\n", class, x1, y1, x2, y2);
}

void kl_svg_box(FILE *out, double x, double y, double width, double height, const char *class) {
    fprintf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n", class, x, y,
            fmax(width, 0), fmax(height, 0));
}

double kl_scale_at(const kl_scale *s, double value) {
    double part = s->log ? (log(value) - log(s->low)) / (log(s->high) - log(s->low))
                         : (value - s->low) / (s->high - s->low);
    return s->from + (s->to - s->from) * part;
}

/* Return the smallest number that is at least `step` and is 1, 2 or 5 times a power of ten. */
static double round_up(double step) {
    double power = pow(10, floor(log10(step))), digit = step / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static size_t log_ticks(const kl_scale *s, double wanted, double *ticks) {
    static const double digits[] = {1, 2, 5};
    double decades = log10(s->high) - log10(s->low);
    int every = (int)fmax(1, ceil(decades / wanted)); /* number of decades from one tick to the next */
    size_t count = 0, per_decade = decades * 3 <= 1.25 * wanted ? 3 : 1;
    for (int power = (int)floor(log10(s->low)); pow(10, power) <= s->high; power += every)
        for (size_t i = 0; i < per_decade; i++) {
            double value = digits[i] * pow(10, power);
            if (value >= s->low * (1 - 1e-9) && value <= s->high * (1 + 1e-9) && count < KL_TICKS_MAX)
                ticks[count++] = value;
        }
    return count;
}

size_t kl_scale_ticks(const kl_scale *s, double wanted, double ticks[KL_TICKS_MAX]) {
    if (s->log)
        return log_ticks(s, wanted, ticks);
    size_t count = 0;
    double step = round_up((s->high - s->low) / wanted);
    for (double i = ceil(s->low / step - 1e-9); i * step <= s->high + 1e-9 * step; i++)
        if (count < KL_TICKS_MAX)
            ticks[count++] = i * step + 0.0; /* adding 0.0 turns −0 into 0 */
    return count;
}

kl_time_unit kl_time_unit_for(double longest_s) {
    if (longest_s >= 7200)
        return (kl_time_unit){"h", 1.0 / 3600};
    if (longest_s >= 300)
        return (kl_time_unit){"min", 1.0 / 60};
    if (longest_s >= 0.5)
        return (kl_time_unit){"s", 1};
    return longest_s >= 0.5e-3 ? (kl_time_unit){"ms", 1e3} : (kl_time_unit){"µs", 1e6};
}

void kl_svg_time_axis(FILE *out, double seconds, kl_point left, double to, const char *what) {
    kl_time_unit unit = kl_time_unit_for(seconds);
    kl_scale x = {0, seconds * unit.per_s, left.x, to, false};
    double ticks[KL_TICKS_MAX], y = left.y;
    size_t count = kl_scale_ticks(&x, 12, ticks);
    kl_svg_line(out, left.x, y, to, y, "axis");
    for (size_t i = 0; i < count; i++) {
        double at = kl_scale_at(&x, ticks[i]);
        kl_svg_line(out, at, y, at, y + 5, "axis");
        kl_svg_text(out, (kl_point){at, y + 18}, KL_ANCHOR_MIDDLE, "label", "%.6g", ticks[i]);
    }
    kl_svg_text(out, (kl_point){(left.x + to) / 2, y + 38}, KL_ANCHOR_MIDDLE, "label", "%s [%s]", what,
                unit.name);
}
