/* Draw when each worker computed: a chart with a row for each worker. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/loop_print.h"
#include "report/print.h"
#include "report/reading.h"
#include "report/report.h"
#include "report/svg.h"
#include "report/text.h"

enum {
    COLUMNS = 980, /* length of the time axis in pixels */
    ROWS_MAX = 60,
    RUNS_MAX = 20,
    LABEL_COLUMNS = 18,
    LEVELS = 5, /* number of shades; the shade of a pixel shows for which part of the pixel's time the worker
                   computes */
    INKS = 2 + LEVELS, /* number of colours of paths: two alternating ones for chunks with a bar, then LEVELS
                          shades for narrow chunks */
    LEGEND_X = 640     /* x position of the legend in pixels */
};
static const double LEFT = 150, RIGHT = 30, TOP = 92, BOTTOM = 54, CURVE = 64, CURVE_GAP = 26;
static const double WHOLE_PIXELS =
    2; /* a chunk that is at least this many pixels wide is drawn as a bar of its own */

typedef struct gantt {
    const kl_report *report;
    const kl_report_iteration *first, *last; /* the first and the last run that the chart shows */
    double from_s, to_s;
    kl_scale x;
    /* every: 1 if every worker has a row, 2 if every second worker has a row, …; rows: number of rows */
    size_t every, rows;
    double pitch;              /* distance of two neighbouring rows in pixels */
    double computing[COLUMNS]; /* seconds of computing in each pixel column, summed over all workers */
    FILE *out;
    /* The next fields belong to the row and the run that are being drawn. */
    uint32_t worker;
    uint64_t run;
    bool begun, shown;
    uint64_t chunks;
    /* the part of each pixel, 0 … 1, that is covered by chunks too narrow for a bar of their own */
    double covered[COLUMNS];
    kl_buffer ink[INKS]; /* SVG paths, one for each colour */
    kl_buffer lost;
} gantt;

/* ---- choosing runs and rows ---- */

static kilter_status choose_runs(gantt *g, const char *path, int64_t run, kilter_error *error) {
    const kl_report *r = g->report;
    size_t count = r->iteration_count;
    if (count == 0)
        return kl_fail(error, KILTER_ERR_INPUT, "drawing the run record '%s': no tasks were dealt in it",
                       path);
    g->last = &r->iterations[count - 1];
    g->first = &r->iterations[count > RUNS_MAX ? count - RUNS_MAX : 0];
    for (size_t i = 0; run >= 0 && i < count; i++)
        if (r->iterations[i].run == (uint64_t)run) {
            g->first = g->last = &r->iterations[i];
            return KILTER_OK;
        }
    if (run >= 0)
        return kl_fail(error, KILTER_ERR_INPUT,
                       "drawing the run record '%s': there is no run %lld; its runs are %llu to %llu", path,
                       (long long)run, kl_ull(r->iterations[0].run), kl_ull(g->last->run));
    return KILTER_OK;
}

static double end_of(const kl_report_iteration *it) {
    return it->began_s + it->elapsed_s;
}

static kilter_status choose_times(gantt *g, const char *path, kilter_error *error) {
    g->from_s = INFINITY;
    g->to_s = -INFINITY;
    for (const kl_report_iteration *it = g->first; it <= g->last; it++)
        if (isfinite(it->began_s) && isfinite(it->elapsed_s)) {
            g->from_s = fmin(g->from_s, it->began_s);
            g->to_s = fmax(g->to_s, end_of(it));
        }
    if (!(g->to_s > g->from_s))
        return kl_fail(error, KILTER_ERR_INPUT, "drawing the run record '%s': no chunk is finished in it yet",
                       path);
    g->x = (kl_scale){.low = g->from_s, .high = g->to_s, .from = LEFT, .to = LEFT + COLUMNS};
    return KILTER_OK;
}

static double rows_bottom(const gantt *g) {
    return TOP + g->pitch * (double)g->rows;
}

static double bar_height(const gantt *g) {
    return g->pitch - fmax(2, g->pitch / 6);
}

/* Return the number of the worker's row; SIZE_MAX: the worker has no row. */
static size_t row_of(const gantt *g, uint32_t worker) {
    size_t low = 0, high = g->report->worker_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (g->report->workers[middle].worker < worker)
            low = middle + 1;
        else
            high = middle;
    }
    bool known = low < g->report->worker_count && g->report->workers[low].worker == worker;
    return known && low % g->every == 0 ? low / g->every : SIZE_MAX;
}

/* ---- chunks ---- */

static double pixel(const gantt *g, double at_s) {
    return fmin(fmax(kl_scale_at(&g->x, at_s), LEFT), LEFT + COLUMNS) - LEFT;
}

static void put_bar(const gantt *g, kl_buffer *path, double x, double width) {
    char text[64];
    int bytes =
        snprintf(text, sizeof text, "M%.2f 0h%.2fv%.1fh-%.2fz", LEFT + x, width, bar_height(g), width);
    kl_put_bytes(path, text, (size_t)bytes);
}

/* For each pixel, find the part of it that lies between `from` and `to`. Add this part, multiplied by
 * `weight`, to the pixel's value in `columns`. */
static void cover(double *columns, double from, double to, double weight) {
    for (size_t i = (size_t)from; i < COLUMNS && (double)i < to; i++)
        columns[i] += weight * (fmin(to, (double)i + 1) - fmax(from, (double)i));
}

static int level_of(double covered) {
    return (int)ceil(fmin(covered, 1) * LEVELS - 0.25);
}

static void put_covered(gantt *g) {
    for (size_t from = 0, to; from < COLUMNS; from = to) {
        int level = level_of(g->covered[from]);
        for (to = from + 1; to < COLUMNS && level_of(g->covered[to]) == level;)
            to++;
        if (level > 0)
            put_bar(g, &g->ink[1 + level], (double)from, (double)(to - from));
    }
}

static void put_path(const gantt *g, size_t row, const kl_buffer *path, const char *class) {
    if (path->size == 0)
        return;
    fprintf(g->out, "<path class=\"%s\" transform=\"translate(0 %.1f)\" d=\"", class,
            TOP + g->pitch * (double)row);
    fwrite(path->data, 1, path->size, g->out);
    fputs("\"/>\n", g->out);
}

static void finish_row(gantt *g) {
    if (!g->begun || !g->shown)
        return;
    char class[32];
    size_t row = row_of(g, g->worker);
    put_covered(g);
    for (int i = 0; i < INKS; i++) {
        snprintf(class, sizeof class, "c%d i%d", (int)(g->run % KL_SVG_COLOURS), i);
        put_path(g, row, &g->ink[i], class);
        kl_buffer_clear(&g->ink[i]);
    }
    put_path(g, row, &g->lost, "lost");
    kl_buffer_clear(&g->lost);
    memset(g->covered, 0, sizeof g->covered);
}

/* Take a row of a query with the columns worker, run, began_s, ended_s, dealt_s, lost. The rows are sorted by
 * worker, run and time. */
static void take_chunk(void *context, sqlite3_stmt *row) {
    gantt *g = context;
    uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
    uint64_t run = (uint64_t)sqlite3_column_int64(row, 1);
    if (!g->begun || worker != g->worker || run != g->run) {
        finish_row(g);
        g->begun = true;
        g->worker = worker;
        g->run = run;
        g->shown = row_of(g, worker) != SIZE_MAX;
        g->chunks = 0;
    }
    if (run > g->last->run)
        return;
    double began_s = kl_record_real(row, 2), ended_s = kl_record_real(row, 3);
    if (sqlite3_column_int(row, 5) && g->shown) {
        double at_s = kl_record_real(row, 4);
        if (at_s >= g->from_s && at_s <= g->to_s) {
            char text[96];
            double x = LEFT + pixel(g, at_s), h = bar_height(g), arm = fmin(h, 10) / 2;
            int bytes = snprintf(text, sizeof text, "M%.2f %.1fl%.1f %.1fm0-%.1fl-%.1f %.1f", x - arm,
                                 h / 2 - arm, 2 * arm, 2 * arm, 2 * arm, 2 * arm, 2 * arm);
            kl_put_bytes(&g->lost, text, (size_t)bytes);
        }
    }
    if (sqlite3_column_int(row, 5) || !(ended_s > began_s))
        return;
    double from = pixel(g, began_s), to = pixel(g, ended_s);
    cover(g->computing, from, to, 1);
    if (g->shown && to - from >= WHOLE_PIXELS)
        put_bar(g, &g->ink[g->chunks++ % 2], from, to - from);
    else if (g->shown)
        cover(g->covered, from, to, 1);
}

static kilter_status draw_chunks(gantt *g, const char *path, kilter_error *error) {
    kilter_status status =
        kl_record_ask(path,
                      "SELECT worker, run, began_s, ended_s, dealt_s, lost FROM chunk WHERE run >= ?1 "
                      "ORDER BY worker, run, coalesce(began_s, dealt_s), id",
                      (int64_t)g->first->run, take_chunk, g, error);
    bool failed = g->lost.failed;
    finish_row(g);
    for (int i = 0; i < INKS; i++) {
        failed |= g->ink[i].failed;
        kl_buffer_free(&g->ink[i]);
    }
    kl_buffer_free(&g->lost);
    if (status == KILTER_OK && failed)
        return kl_fail(error, KILTER_ERR_MEMORY, "drawing the run record '%s': memory ran out", path);
    return status;
}

/* ---- title, legend, axes ---- */

static void write_style(char *style, size_t size) {
    size_t at = 0;
    for (int i = 0; i < KL_SVG_COLOURS; i++)
        at += (size_t)snprintf(style + at, size - at, ".c%d{fill:%s}", i, kl_svg_colours[i]);
    at += (size_t)snprintf(style + at, size - at, ".i1{fill-opacity:.72}");
    for (int i = 1; i <= LEVELS; i++)
        at += (size_t)snprintf(style + at, size - at, ".i%d{fill-opacity:%.2f}", 1 + i,
                               0.2 + 0.66 * i / LEVELS);
    snprintf(style + at, size - at,
             ".wait{fill:#ecebe8}.lost{fill:none;stroke:#c1121f;stroke-width:2}.curve{fill:#8d99a6}"
             ".edge{stroke:#999;stroke-width:.8}\n");
}

static void draw_title(const gantt *g, double height) {
    char style[1024], title[512], subtitle[512], program[256], host[256];
    const kl_report_run *run = &g->report->run;
    const kl_report_iteration *it = g->last;
    write_style(style, sizeof style);
    kl_printable(program, sizeof program, run->program, 40);
    kl_printable(host, sizeof host, run->host, 30);
    if (isnan(it->efficiency))
        snprintf(title, sizeof title, "%s: policy %.40s, did not end", program, it->policy);
    else
        snprintf(title, sizeof title,
                 g->first == g->last ? "%s: policy %.40s, %s of the bound"
                                     : "%s: policy %.40s, %s of the bound in the last run",
                 program, it->policy, kl_percent(it->efficiency).text);
    uint64_t chunks = 0;
    for (it = g->first; it <= g->last; it++)
        chunks += it->chunks;
    int at = snprintf(subtitle, sizeof subtitle, "run%s %llu", kl_plural(g->first == g->last ? 1 : 2),
                      kl_ull(g->first->run));
    if (g->first != g->last)
        at += snprintf(subtitle + at, sizeof subtitle - (size_t)at, " to %llu", kl_ull(g->last->run));
    at += snprintf(subtitle + at, sizeof subtitle - (size_t)at,
                   ": %llu chunks on %zu workers in %s; master on %s", kl_ull(chunks),
                   g->report->worker_count, kl_time_words(g->to_s - g->from_s).text, host);
    if (g->every > 1)
        snprintf(subtitle + at, sizeof subtitle - (size_t)at, "; a row for every %zuth worker", g->every);
    kl_svg_open(g->out, LEFT + COLUMNS + RIGHT, height, style, title, subtitle);
}

static void draw_legend(const gantt *g) {
    double x = LEGEND_X, y = 64;
    kl_svg_box(g->out, x, y, 14, 10, "c0 i0");
    kl_svg_box(g->out, x + 14, y, 14, 10, "c0 i1");
    kl_svg_text(g->out, (kl_point){x + 34, y + 9}, KL_ANCHOR_START, "small",
                "computing; chunks alternate in shade");
    kl_svg_box(g->out, x + 236, y, 22, 10, "wait");
    kl_svg_text(g->out, (kl_point){x + 264, y + 9}, KL_ANCHOR_START, "small", "waiting");
    fprintf(g->out, "<path class=\"lost\" d=\"M%.1f %.1fl9 9m0-9l-9 9\"/>\n", x + 330, y + 0.5);
    kl_svg_text(g->out, (kl_point){x + 345, y + 9}, KL_ANCHOR_START, "small", "chunk lost");
    kl_svg_text(g->out, (kl_point){LEFT, y + 9}, KL_ANCHOR_START, "small",
                g->first == g->last ? "%s" : "%s; each run has another colour",
                "narrow chunks share a bar, which is paler where the worker waits between them");
}

static void draw_waiting(const gantt *g) {
    for (size_t row = 0; row < g->rows; row++) {
        const kl_report_worker *w = &g->report->workers[row * g->every];
        double y = TOP + g->pitch * (double)row;
        char host[4 * LABEL_COLUMNS + 8];
        kl_printable(host, sizeof host, w->host ? w->host : "", LABEL_COLUMNS - 6);
        kl_svg_text(g->out, (kl_point){LEFT - 10, y + bar_height(g) / 2 + 4}, KL_ANCHOR_END, "small",
                    "%s  %" PRIu32, host, w->worker);
        for (const kl_report_iteration *it = g->first; it <= g->last; it++) {
            double from_s = fmax(it->began_s, isnan(w->joined_s) ? -INFINITY : w->joined_s);
            double to_s = fmin(end_of(it), isnan(w->left_s) ? INFINITY : w->left_s);
            if (to_s > from_s)
                kl_svg_box(g->out, LEFT + pixel(g, from_s), y, pixel(g, to_s) - pixel(g, from_s),
                           bar_height(g), "wait");
        }
    }
}

static void draw_runs(const gantt *g) {
    for (const kl_report_iteration *it = g->first; it <= g->last && g->first != g->last; it++) {
        double from = LEFT + pixel(g, it->began_s);
        double to = LEFT + pixel(g, it < g->last ? it[1].began_s : end_of(it));
        kl_svg_line(g->out, from, TOP - 4, from, rows_bottom(g), "edge");
        if (to - from >= 46)
            kl_svg_text(g->out, (kl_point){from + 3, TOP - 5}, KL_ANCHOR_START, "small", "run %" PRIu64,
                        it->run);
    }
}

/* Draw a curve of the number of workers that compute. */
static void draw_curve(const gantt *g, double top) {
    double workers = fmax(1, (double)g->report->worker_count), bottom = top + CURVE;
    fprintf(g->out, "<path class=\"curve\" d=\"M%.1f %.1f", LEFT, bottom);
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(g->out, "V%.1fh1", bottom - CURVE * fmin(1, g->computing[i] / workers));
    fprintf(g->out, "V%.1fz\"/>\n", bottom);
    kl_svg_line(g->out, LEFT, top, LEFT + COLUMNS, top, "grid");
    kl_svg_text(g->out, (kl_point){LEFT - 10, top + 4}, KL_ANCHOR_END, "small", "%zu",
                g->report->worker_count);
    kl_svg_text(g->out, (kl_point){LEFT - 10, bottom + 4}, KL_ANCHOR_END, "small", "0");
    kl_svg_text(g->out, (kl_point){LEFT - 10, (top + bottom) / 2 + 4}, KL_ANCHOR_END, "small",
                "all computing");
}

static kilter_status draw(gantt *g, const char *path, int64_t run, kilter_error *error) {
    kilter_status status = choose_runs(g, path, run, error);
    if (status == KILTER_OK)
        status = choose_times(g, path, error);
    if (status != KILTER_OK)
        return status;
    size_t workers = g->report->worker_count;
    g->every = workers > ROWS_MAX ? (workers + ROWS_MAX - 1) / ROWS_MAX : 1;
    g->rows = (workers + g->every - 1) / g->every;
    g->pitch = g->rows ? fmin(28, fmax(11, 560 / (double)g->rows)) : 11;
    double curve_top = rows_bottom(g) + CURVE_GAP, bottom = curve_top + CURVE;
    draw_title(g, bottom + BOTTOM);
    draw_legend(g);
    draw_waiting(g);
    status = draw_chunks(g, path, error);
    draw_runs(g);
    draw_curve(g, curve_top);
    kl_svg_time_axis(g->out, g->to_s - g->from_s, (kl_point){LEFT, bottom}, LEFT + COLUMNS,
                     g->first == g->last ? "time since the run began" : "time since the first run began");
    kl_svg_close(g->out);
    return status;
}

static kilter_status draw_loop(const kl_report *report, int64_t run, FILE *out, kilter_error *error) {
    if (run >= 0)
        return kl_fail(
            error, KILTER_ERR_INPUT,
            "drawing the run record '%s': it is the record of a loop, which has no runs; leave --run out",
            report->path);
    return kl_loop_draw(report, out, error);
}

/* Draw the chart of a farm, or the bands of a loop. The picture is made in memory and then written to the
 * file, so that an error never leaves half a picture in the file. */
kilter_status kl_gantt_write(const char *path, int64_t run, FILE *out, kilter_error *error) {
    kl_report *report = NULL;
    kilter_status status = kl_report_read(path, &report, error);
    if (status != KILTER_OK)
        return status;
    char *picture = NULL;
    size_t size = 0;
    gantt *g = calloc(1, sizeof *g);
    FILE *memory = g ? open_memstream(&picture, &size) : NULL;
    if (memory) {
        g->report = report;
        g->out = memory;
        status = report->loop ? draw_loop(report, run, memory, error) : draw(g, path, run, error);
        if (fclose(memory) == 0 && status == KILTER_OK)
            fwrite(picture, 1, size, out);
    } else {
        status = kl_fail(error, KILTER_ERR_MEMORY, "drawing the run record '%s': memory ran out", path);
    }
    free(picture);
    free(g);
    kl_report_free(report);
    return status;
}
