/* Write a picture of a flow as SVG. */
#include "picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool dsmc_history_add(dsmc_history *h, uint64_t step, const uint32_t *bounds) {
    size_t each = h->ranks + 1;
    if (h->count > 0 && memcmp(h->bounds + (h->count - 1) * each, bounds, each * sizeof *bounds) == 0)
        return true;
    if (h->count == h->room) {
        uint64_t room = 2 * h->room + 16, *steps = realloc(h->step, room * sizeof *steps);
        h->step = steps ? steps : h->step;
        uint32_t *more = steps ? realloc(h->bounds, room * each * sizeof *more) : NULL;
        if (!more)
            return false;
        h->bounds = more;
        h->room = room;
    }
    h->step[h->count] = step;
    memcpy(h->bounds + h->count++ * each, bounds, each * sizeof *bounds);
    return true;
}

void dsmc_history_free(dsmc_history *h) {
    free(h->step);
    free(h->bounds);
    *h = (dsmc_history){.ranks = 0};
}

/* --- drawing --- */

/* sizes of the picture's parts in pixels; SHADES: number of colours */
enum { CELL = 4, MARGIN = 50, TIMES = 360, SHADES = 24, LEGEND = 16 };
/* densities of at least this multiple of the stream's density get the last colour */
static const double MOST = 4;

/* Return the number of the shade for a density, given as a multiple of the stream's density. Shade 0 is an
 * empty cell; the stream has the same shade in each picture. */
static int shade_of(double density) {
    double part = fmin(sqrt(density / MOST), 1);
    return (int)(part * (SHADES - 1) + 0.5);
}

/* Print a colour from dark blue over green to yellow. */
static void print_shade(FILE *out, int shade) {
    static const int ends[][3] = {
        {20, 20, 60}, {40, 80, 160}, {40, 160, 150}, {150, 210, 80}, {250, 235, 60}};
    double at = 4.0 * shade / (SHADES - 1);
    int lower = at < 3 ? (int)at : 3, colour[3];
    for (int k = 0; k < 3; k++)
        colour[k] = (int)(ends[lower][k] + (at - lower) * (ends[lower + 1][k] - ends[lower][k]));
    fprintf(out, "#%02x%02x%02x", colour[0], colour[1], colour[2]);
}

static double density_at(const dsmc_flow *f, const dsmc_sums *sums, double samples, uint32_t row,
                         uint32_t column) {
    size_t at = (size_t)row * f->options.columns + column;
    return f->volume[at] > 0 ? sums[at].count / (samples * f->options.particles * f->volume[at]) : 0;
}

/* Draw adjacent cells of one shade as one rectangle. Row 0 is at the bottom. */
static void draw_density(FILE *out, const dsmc_flow *f, const dsmc_sums *sums, double samples) {
    uint32_t rows = f->options.rows, columns = f->options.columns;
    for (uint32_t j = 0; j < rows; j++)
        for (uint32_t i = 0, from = 0; i < columns; i++) {
            int shade = shade_of(density_at(f, sums, samples, j, i));
            if (i + 1 < columns && shade_of(density_at(f, sums, samples, j, i + 1)) == shade)
                continue;
            fprintf(out, "<path d='M%u %uh%uv%uh-%uz' fill='", MARGIN + CELL * from,
                    MARGIN + CELL * (rows - 1 - j), CELL * (i + 1 - from), CELL, CELL * (i + 1 - from));
            print_shade(out, shade);
            fprintf(out, "'/>\n");
            from = i + 1;
        }
}

static void draw_body(FILE *out, const dsmc_flow *f) {
    double x = MARGIN + CELL * f->centre_x, y = MARGIN + CELL * (f->options.rows - f->centre_y);
    double half = CELL * f->options.size / 2;
    if (f->options.shape == DSMC_CYLINDER)
        fprintf(out, "<circle cx='%g' cy='%g' r='%g' fill='#ddd' stroke='#333'/>\n", x, y, half);
    else if (f->options.shape == DSMC_PLATE)
        fprintf(out, "<path d='M%g %gv%g' stroke='#ddd' stroke-width='3'/>\n", x, y - half, 2 * half);
}

static void draw_owners(FILE *out, const dsmc_flow *f, uint64_t steps, const dsmc_history *h, double left) {
    static const char *const colours[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                          "#66ccee", "#aa3377", "#bbbbbb", "#000000"};
    double rows = f->options.rows;
    for (uint64_t k = 0; k < h->count; k++) {
        double from = (double)h->step[k], to = (double)(k + 1 < h->count ? h->step[k + 1] : steps);
        for (uint32_t r = 0; r < h->ranks; r++) {
            const uint32_t *bounds = h->bounds + k * (h->ranks + 1) + r;
            double high = CELL * (double)(bounds[1] - bounds[0]);
            if (high > 0 && to > from)
                fprintf(out, "<rect x='%.2f' y='%g' width='%.2f' height='%g' fill='%s'/>\n",
                        left + TIMES * from / (double)steps, MARGIN + CELL * (rows - bounds[1]),
                        TIMES * (to - from) / (double)steps, high, colours[r % 8]);
        }
    }
}

static void draw_legend(FILE *out, double top) {
    for (int i = 0; i < SHADES; i++) {
        fprintf(out, "<rect x='%d' y='%g' width='%d' height='10' fill='", MARGIN + LEGEND * i, top, LEGEND);
        print_shade(out, i);
        fprintf(out, "'/>\n");
    }
    static const double marks[] = {0, 0.25, 1, 2, 4};
    for (int i = 0; i < 5; i++)
        fprintf(out, "<text x='%d' y='%g' text-anchor='middle'>%g</text>\n",
                MARGIN + LEGEND * shade_of(marks[i]) + LEGEND / 2, top + 24, marks[i]);
}

void dsmc_draw(FILE *out, const dsmc_flow *f, const dsmc_sums *sums, double samples, uint64_t steps,
               const dsmc_history *history) {
    double width = CELL * f->options.columns, height = CELL * f->options.rows, left = 2 * MARGIN + width;
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%g' height='%g' font-family='sans-serif' "
            "font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n",
            left + TIMES + MARGIN, height + 2 * MARGIN + 20);
    fprintf(out, "<text x='%d' y='%d'>density over that of the stream; the gas comes from the left</text>\n",
            MARGIN, MARGIN - 14);
    fprintf(out, "<text x='%g' y='%d'>rank of each row, over %llu steps</text>\n", left, MARGIN - 14,
            (unsigned long long)steps);
    fprintf(out, "<g shape-rendering='crispEdges'>\n");
    draw_density(out, f, sums, samples);
    draw_owners(out, f, steps, history, left);
    draw_legend(out, MARGIN + height + 14);
    fprintf(out, "</g>\n");
    draw_body(out, f);
    for (uint32_t r = 0; r < history->ranks && history->count > 0; r++) {
        const uint32_t *bounds = history->bounds + (history->count - 1) * (history->ranks + 1) + r;
        fprintf(out, "<text x='%g' y='%g'>%u</text>\n", left + TIMES + 6,
                MARGIN + CELL * (f->options.rows - (bounds[0] + bounds[1]) / 2.0) + 4, (unsigned)r);
    }
    fprintf(out, "</svg>\n");
}
