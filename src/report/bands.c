/* Draw how many iterations each rank of a loop has over time. Each rank, or group of ranks, has a band. A
 * curve below the bands shows how long a sweep takes. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/loop_print.h"
#include "report/svg.h"
#include "report/text.h"

enum { BANDS_MAX = 60, LABEL_COLUMNS = 14 };

static const double LEFT = 76, WIDTH = 980, RIGHT = 130, TOP = 92, HEIGHT = 380, GAP = 40, CURVE = 90,
                    BOTTOM = 54, LABEL_PIXELS = 11;

typedef struct bands {
    const kl_report *report;
    const kl_report_loop *loop;
    uint32_t every, count; /* every: number of ranks in a band; count: number of bands */
    double *edges;
    double end_s;
    kl_scale x, y;
    FILE *out;
} bands;

/* Return the address of the y position of a band's lower edge before round i. If i is the number of rounds,
 * it is the position after the last round. */
static double *edge_at(const bands *b, uint32_t band, size_t i) {
    return &b->edges[(size_t)band * (b->loop->round_count + 1) + i];
}

static bool find_edges(bands *b) {
    const kl_report_loop *loop = b->loop;
    size_t steps = loop->round_count + 1;
    b->edges = calloc((b->count + 1) * steps, sizeof *b->edges);
    for (size_t i = 0; i < steps && b->edges; i++) {
        double sum = 0;
        for (uint32_t r = 0; r < loop->ranks; r++) {
            if (r % b->every == 0)
                *edge_at(b, r / b->every, i) = kl_scale_at(&b->y, sum);
            double count = (double)(i + 1 == steps ? loop->rank[r].iterations : loop->round[i].counts[r]);
            sum = fmin(sum + count, (double)loop->iterations);
        }
        *edge_at(b, b->count, i) = kl_scale_at(&b->y, sum);
    }
    return b->edges != NULL;
}

static double step_end(const bands *b, size_t i) {
    double at_s = i < b->loop->round_count ? b->loop->round[i].at_s : b->end_s;
    return isfinite(at_s) ? fmin(fmax(at_s, 0), b->end_s) : b->end_s;
}

/* Draw an edge of a band from left to right; if `back` is true, from right to left. Add points only where the
 * height of the edge changes. */
static void put_edge(const bands *b, uint32_t band, bool back) {
    size_t last = b->loop->round_count, i = back ? last : 0;
    fprintf(b->out, "%s%.2f %.2f", back ? "L" : "M", back ? LEFT + WIDTH : LEFT, *edge_at(b, band, i));
    for (size_t k = 0; k < last; k++) {
        size_t next = back ? i - 1 : i + 1;
        double y = *edge_at(b, band, next);
        if (fabs(y - *edge_at(b, band, i)) > 0.01)
            fprintf(b->out, "H%.2fV%.2f", kl_scale_at(&b->x, step_end(b, back ? next : i)), y);
        i = next;
    }
    fprintf(b->out, "H%.2f", back ? LEFT : LEFT + WIDTH);
}

static void draw_band(const bands *b, uint32_t band) {
    size_t last = b->loop->round_count;
    uint32_t rank = band * b->every, above = band + 1 < b->count ? rank + b->every : b->loop->ranks;
    char host[4 * LABEL_COLUMNS + 8];
    fprintf(b->out, "<path class=\"c%d\" d=\"", (int)(band % KL_SVG_COLOURS));
    put_edge(b, band, false);
    put_edge(b, band + 1, true);
    fputs("z\"/>\n", b->out);
    double low = *edge_at(b, band, last), high = *edge_at(b, band + 1, last), y = (low + high) / 2 + 4;
    kl_printable(host, sizeof host, b->report->workers[rank].host ? b->report->workers[rank].host : "",
                 LABEL_COLUMNS);
    if (low - high < LABEL_PIXELS)
        return;
    if (above - rank > 1)
        kl_svg_text(b->out, (kl_point){LEFT + WIDTH + 8, y}, KL_ANCHOR_START, "small",
                    "%" PRIu32 " to %" PRIu32, rank, above - 1);
    else
        kl_svg_text(b->out, (kl_point){LEFT + WIDTH + 8, y}, KL_ANCHOR_START, "small", "%" PRIu32 "  %s",
                    rank, host);
}

static void draw_decisions(const bands *b) {
    for (size_t i = 0; i < b->report->decided_count; i++) {
        const kl_report_decided *d = &b->report->decided[i];
        bool moves = strcmp(d->kind, "move") == 0, rests = strcmp(d->kind, "rest") == 0;
        if (!(d->at_s >= 0 && d->at_s <= b->end_s) || (!moves && !rests && strcmp(d->kind, "refused") != 0))
            continue;
        double x = kl_scale_at(&b->x, d->at_s);
        kl_svg_line(b->out, x, TOP - 6, x, moves ? TOP : TOP + HEIGHT,
                    moves   ? "move"
                    : rests ? "rest"
                            : "refused");
    }
}

static void draw_legend(const bands *b) {
    double x = LEFT + WIDTH - 330, y = 68;
    kl_svg_text(b->out, (kl_point){LEFT, y + 4}, KL_ANCHOR_START, "small", "%s",
                strcmp(b->loop->kind, "scattered") == 0
                    ? "number of iterations of each rank, with rank 0 at the bottom; scattered ranks have no "
                      "fixed range"
                    : "iterations of each rank, with rank 0 at the bottom");
    kl_svg_line(b->out, x, y - 4, x, y + 4, "move");
    kl_svg_text(b->out, (kl_point){x + 6, y + 4}, KL_ANCHOR_START, "small", "a move was decided");
    kl_svg_line(b->out, x + 120, y - 5, x + 120, y + 5, "refused");
    kl_svg_text(b->out, (kl_point){x + 126, y + 4}, KL_ANCHOR_START, "small", "refused, no memory");
    kl_svg_line(b->out, x + 240, y - 5, x + 240, y + 5, "rest");
    kl_svg_text(b->out, (kl_point){x + 246, y + 4}, KL_ANCHOR_START, "small", "a rest begins");
}

static void draw_scales(const bands *b, double bottom) {
    double ticks[KL_TICKS_MAX];
    size_t count = kl_scale_ticks(&b->y, 6, ticks);
    for (size_t i = 0; i < count; i++)
        kl_svg_text(b->out, (kl_point){LEFT - 8, kl_scale_at(&b->y, ticks[i]) + 4}, KL_ANCHOR_END, "small",
                    "%.6g", ticks[i]);
    kl_svg_time_axis(b->out, b->end_s, (kl_point){LEFT, bottom}, LEFT + WIDTH,
                     "time since the loop was opened");
}

/* Draw the curve that shows how long a sweep takes, with one point for each round. */
static void draw_curve(const bands *b, double top) {
    double most_s = 0, bottom = top + CURVE;
    bool begun = false;
    for (size_t i = 0; i < b->loop->round_count; i++)
        most_s = fmax(most_s, isfinite(b->loop->round[i].now_s) ? b->loop->round[i].now_s : 0);
    if (most_s <= 0)
        return;
    kl_time_unit unit = kl_time_unit_for(most_s);
    kl_scale y = {0, most_s * unit.per_s, bottom, top, false};
    double ticks[KL_TICKS_MAX];
    size_t count = kl_scale_ticks(&y, 3, ticks);
    for (size_t i = 0; i < count; i++) {
        double at = kl_scale_at(&y, ticks[i]);
        kl_svg_line(b->out, LEFT, at, LEFT + WIDTH, at, "grid");
        kl_svg_text(b->out, (kl_point){LEFT - 8, at + 4}, KL_ANCHOR_END, "small", "%.6g", ticks[i]);
    }
    kl_svg_text(b->out, (kl_point){LEFT, top - 8}, KL_ANCHOR_START, "small", "a sweep [%s]", unit.name);
    fputs("<path class=\"curve\" d=\"", b->out);
    for (size_t i = 0; i < b->loop->round_count; i++) {
        double now_s = b->loop->round[i].now_s;
        if (!(isfinite(now_s) && now_s > 0))
            continue;
        fprintf(b->out, "%s%.2f %.2f", begun ? "L" : "M", kl_scale_at(&b->x, step_end(b, i)),
                kl_scale_at(&y, now_s * unit.per_s));
        begun = true;
    }
    fputs("\"/>\n", b->out);
}

static void write_style(char *style, size_t size) {
    size_t at = 0;
    for (int i = 0; i < KL_SVG_COLOURS; i++)
        at += (size_t)snprintf(style + at, size - at, ".c%d{fill:%s;fill-opacity:.8}", i, kl_svg_colours[i]);
    snprintf(style + at, size - at,
             ".curve{fill:none;stroke:#33658a;stroke-width:1.5}.move{stroke:#333;stroke-width:1.2}"
             ".refused{stroke:#c1121f;stroke-width:1.5}.rest{stroke:#111;stroke-dasharray:4 3}\n");
}

static void draw_title(const bands *b) {
    const kl_report_loop *loop = b->loop;
    char style[1024], title[512], subtitle[512], name[256], program[256], of[64] = "";
    write_style(style, sizeof style);
    kl_printable(name, sizeof name, loop->name ? loop->name : "", 40);
    kl_printable(program, sizeof program, b->report->run.program, 40);
    snprintf(title, sizeof title, "%s: %" PRIu64 " iteration%s on %" PRIu32 " rank%s, %" PRIu64 " move%s",
             name, loop->iterations, kl_plural(loop->iterations), loop->ranks, kl_plural(loop->ranks),
             loop->moves, kl_plural(loop->moves));
    if (b->every > 1)
        snprintf(of, sizeof of, "; %u ranks in each band", b->every);
    snprintf(subtitle, sizeof subtitle, "loop of %s: %" PRIu64 " sweep%s in %s, %" PRIu64 " round%s%s%s",
             program, loop->executions, kl_plural(loop->executions), kl_time_words(b->end_s).text,
             loop->rounds, kl_plural(loop->rounds), loop->ended ? "" : "; the loop did not end", of);
    kl_svg_open(b->out, LEFT + WIDTH + RIGHT, TOP + HEIGHT + GAP + CURVE + BOTTOM, style, title, subtitle);
}

kilter_status kl_loop_draw(const kl_report *report, FILE *out, kilter_error *error) {
    const kl_report_loop *loop = report->loop;
    bands b = {.report = report, .loop = loop, .out = out};
    if (loop->round_count > 0)
        b.end_s = fmax(loop->ended_s, loop->round[loop->round_count - 1].at_s);
    if (!(b.end_s > 0) || !isfinite(b.end_s) || loop->ranks == 0 || loop->iterations == 0)
        return kl_fail(error, KILTER_ERR_INPUT,
                       loop->ended ? "drawing the run record '%s': it has no rounds, because the loop was "
                                     "too short, had one rank or was fixed"
                                   : "drawing the run record '%s': it has no rounds yet",
                       report->path);
    b.every = (loop->ranks + BANDS_MAX - 1) / BANDS_MAX;
    b.x = (kl_scale){.low = 0, .high = b.end_s, .from = LEFT, .to = LEFT + WIDTH};
    b.y = (kl_scale){.low = 0, .high = (double)loop->iterations, .from = TOP + HEIGHT, .to = TOP};
    b.count = (loop->ranks + b.every - 1) / b.every;
    if (!find_edges(&b))
        return kl_fail(error, KILTER_ERR_MEMORY, "drawing the run record '%s': memory ran out", report->path);
    draw_title(&b);
    draw_legend(&b);
    for (uint32_t band = 0; band < b.count; band++)
        draw_band(&b, band);
    draw_decisions(&b);
    draw_curve(&b, TOP + HEIGHT + GAP);
    draw_scales(&b, TOP + HEIGHT + GAP + CURVE);
    kl_svg_close(out);
    free(b.edges);
    return KILTER_OK;
}
