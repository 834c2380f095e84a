/* Draw the prediction: the time T_t(n) above, and the performance index P_i(n) below. */
#include <math.h>
#include <stdlib.h>

#include "predict.h"
#include "report/draw.h"
#include "report/print.h"

enum {
    MEASURED, /* Numbers of the plotted series. The first series is measured. Then each protocol has two
                 series: for work dealt in one round, and in several rounds. */
    MODELLED,
    SERIES = MODELLED + 2 * KL_PROTOCOLS,
    MARKS = 4,
    WORD_BYTES = 96
};

typedef struct curves {
    double *values; /* memory for the numbers of all series: workers, times and indices */
    kl_series time[SERIES], index[SERIES];
    char marks[MARKS][WORD_BYTES];
    kl_mark mark[MARKS];
    size_t mark_count;
} curves;

static const char *const series_names[SERIES - MODELLED] = {"asynchronous", "async, several rounds",
                                                            "synchronous", "sync, several rounds"};

static void fill_protocol(curves *c, const kl_protocol *p, uint32_t protocol, double unit, double **at) {
    double *n = *at, *y[4];
    for (int i = 0; i < 4; i++)
        y[i] = n + (size_t)(i + 1) * p->count;
    for (size_t i = 0; i < p->count; i++) {
        n[i] = p->points[i].workers;
        y[0][i] = p->points[i].time_s * unit;
        y[1][i] = p->points[i].rounds_time_s * unit;
        y[2][i] = p->points[i].index_s * unit;
        y[3][i] = p->points[i].rounds_index_s * unit;
    }
    *at = n + 5 * p->count;
    for (uint32_t several = 0; several < 2; several++) {
        uint32_t i = 2 * protocol + several;
        bool known = !several || p->rounds_best.workers > 0;
        kl_series s = {.name = known ? series_names[i] : NULL,
                       .stroke = several ? KL_STROKE_LINE : KL_STROKE_DASHES,
                       .colour = protocol,
                       .x = n,
                       .count = p->count};
        c->time[MODELLED + i] = c->index[MODELLED + i] = s;
        c->time[MODELLED + i].y = y[several];
        c->index[MODELLED + i].y = y[2 + several];
    }
}

static void fill_measured(curves *c, const kl_basis *b, double unit, double *at) {
    size_t count = b->speeds ? 0 : b->measured_count; /* draw no measurements if the prediction is for
                                                       * other workers */
    double work_s = b->in[KL_IN_WORK_S].value, *n = at, *time = n + count, *index = time + count;
    for (size_t i = 0; i < count; i++) {
        double time_s = b->measured[i].time_s;
        n[i] = b->measured[i].workers;
        time[i] = time_s * unit;
        index[i] = n[i] * time_s * time_s / work_s * unit;
    }
    c->time[MEASURED] = c->index[MEASURED] = (kl_series){
        .name = count ? "measured" : NULL, .stroke = KL_STROKE_DOTS, .colour = 4, .x = n, .count = count};
    c->time[MEASURED].y = time;
    c->index[MEASURED].y = index;
}

static void mark(curves *c, uint32_t workers, const char *what) {
    snprintf(c->marks[c->mark_count], WORD_BYTES, "%s: %u", what, workers);
    c->mark[c->mark_count] = (kl_mark){workers, c->marks[c->mark_count]};
    c->mark_count++;
}

/* Mark the best numbers of workers. If one round and several rounds have the same best number, draw one
 * mark. */
static void fill_marks(curves *c, const kl_protocol *p) {
    bool several = p->rounds_best.workers > 0 && p->rounds_best.workers != p->best.workers;
    mark(c, p->best.workers, "lowest index");
    if (several)
        mark(c, p->rounds_best.workers, "lowest index in several rounds");
    mark(c, p->fastest.workers, "lowest time");
    if (p->capability != UINT32_MAX)
        mark(c, p->capability, "capability of the master");
}

void kl_prediction_plot(const kl_prediction *p, FILE *out) {
    const kl_basis *b = p->basis;
    curves c = {0};
    size_t numbers = 3 * b->measured_count;
    for (uint32_t i = 0; i < KL_PROTOCOLS; i++)
        numbers += 5 * p->protocols[i].count;
    c.values = calloc(numbers, sizeof *c.values);
    if (!c.values)
        return;
    double shortest_s = p->protocols[KL_ASYNCHRONOUS].fastest.time_s, *at = c.values;
    double unit = shortest_s >= 1 ? 1 : shortest_s >= 1e-3 ? 1e3 : 1e6;
    const char *name = shortest_s >= 1 ? "s" : shortest_s >= 1e-3 ? "ms" : "µs";
    for (uint32_t i = 0; i < KL_PROTOCOLS; i++)
        fill_protocol(&c, &p->protocols[i], i, unit, &at);
    fill_measured(&c, b, unit, at);
    fill_marks(&c, &p->protocols[KL_ASYNCHRONOUS]);
    char title[256], subtitle[512], time[64], index[64];
    if (b->record)
        snprintf(title, sizeof title, "%.60s, run %llu: useful number of workers", b->program,
                 (unsigned long long)b->run);
    else
        snprintf(title, sizeof title, "Useful number of workers");
    snprintf(subtitle, sizeof subtitle,
             "T_c %s, V %.6g bytes (%s to the workers), m_o %s, λ %s a byte, l_m %s%s; marks: asynchronous",
             kl_time_words(b->in[KL_IN_WORK_S].value).text, b->in[KL_IN_BYTES].value,
             kl_percent(b->in[KL_IN_ALPHA].value).text, kl_time_words(b->in[KL_IN_STARTUP_S].value).text,
             kl_time_words(b->in[KL_IN_PER_BYTE_S].value).text,
             kl_time_words(b->in[KL_IN_MASTER_S].value).text, b->speeds ? ", workers of given speeds" : "");
    snprintf(time, sizeof time, "time of a run, T_t(n) [%s]", name);
    snprintf(index, sizeof index, "performance index, P_i(n) [%s]", name);
    const kl_panel panels[] = {{time, c.time, SERIES, c.mark, c.mark_count},
                               {index, c.index, SERIES, c.mark, c.mark_count}};
    kl_plot_write(&(kl_plot){title, subtitle, "workers, n", panels, 2}, out);
    free(c.values);
}
