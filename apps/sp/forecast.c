#include "forecast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solve_farm.h"

enum { WORKERS_MOST = 1000000 };

/* ---- reading the speeds of the described workers ---- */

static kilter_status bad_workers(const char *text, kilter_error *error) {
    return sp_fail(error, KILTER_ERR_USAGE,
                   "reading the command line: --on %.60s is not a list of speeds; give up to %d speeds above "
                   "0, such as 1,1,0.5 or 40x1,10x0.25; 1 is the speed of a worker of this machine",
                   text, WORKERS_MOST);
}

/* Read a speed such as "0.5", or a number of workers with their speed such as "16x0.5", at *at. Move *at past
 * the text that was read. */
static bool take_term(const char **at, uint32_t *times, double *speed) {
    char *end;
    if ((*at)[0] == '0' && (*at)[1] == 'x') /* refuse a count of 0 and hexadecimal numbers */
        return false;
    errno = 0;
    double number = strtod(*at, &end);
    *times = 1;
    if (end != *at && *end == 'x' && number >= 1 && number <= WORKERS_MOST && number == floor(number)) {
        *times = (uint32_t)number;
        *at = end + 1;
        number = strtod(*at, &end);
    }
    bool read = end != *at && !errno && number > 0 && isfinite(number) && (*end == ',' || *end == 0);
    *at = end;
    *speed = number;
    return read;
}

/* Fill speeds[] with the speed of each worker. If `speeds` is NULL, only count the workers. */
static bool list_speeds(const char *text, double *speeds, uint32_t *count) {
    *count = 0;
    for (const char *at = text;; at++) {
        uint32_t times;
        double speed;
        if (!take_term(&at, &times, &speed) || times > WORKERS_MOST - *count)
            return false;
        for (uint32_t i = 0; i < times; i++, ++*count)
            if (speeds)
                speeds[*count] = speed;
        if (*at == 0)
            return true;
    }
}

kilter_status sp_forecast_check(const sp_options *options, kilter_error *error) {
    uint32_t count;
    return !options->on || list_speeds(options->on, NULL, &count) ? KILTER_OK
                                                                  : bad_workers(options->on, error);
}

/* ---- computing the forecast ---- */

static kilter_program program_of(const sp_benchmark *b, uint64_t scenarios, int clusters, double candidates) {
    kilter_program program = b->program;
    double iterations = fmax(1, b->candidates - 1), master_s = (b->elapsed_s - b->farm_s) / iterations;
    program.tasks = (uint64_t)clusters;
    /* the first candidate is the start, for which the master makes no iteration */
    program.iterations = candidates - 1;
    program.work_s = b->work_s * (double)scenarios / (double)b->scenarios;
    program.master_s = 0;
    program.master_task_s = master_s / b->clusters;
    return program;
}

static kilter_status predict_on(const kilter_program *program, const char *workers, uint32_t equal,
                                uint32_t *count, kilter_prediction *prediction, kilter_error *error) {
    *count = equal;
    if (workers)
        list_speeds(workers, NULL, count);
    double *speeds = calloc((size_t)*count + 1, sizeof *speeds);
    if (!speeds)
        return sp_fail(error, KILTER_ERR_MEMORY, "predicting for %u workers: memory ran out",
                       (unsigned)*count);
    for (uint32_t i = 0; i < *count; i++)
        speeds[i] = 1;
    if (workers)
        list_speeds(workers, speeds, count);
    kilter_status status = kilter_predict(program, speeds, *count, prediction, error);
    free(speeds);
    return status;
}

kilter_status sp_forecast_sample(const sp_benchmark *b, uint64_t scenarios, int clusters, double candidates,
                                 kilter_prediction *prediction, kilter_error *error) {
    kilter_program program = program_of(b, scenarios, clusters, candidates);
    uint32_t workers;
    return predict_on(&program, NULL, b->workers, &workers, prediction, error);
}

/* ---- choosing the number of clusters ---- */

static const double FINDING = 0.95;
enum { BELIEVED = 4, APART = 16 };

typedef struct choice {
    const sp_options *options;
    const sp_benchmark *b;
    uint64_t scenarios;
    int clusters;
    double total_s; /* forecast time of all candidates; the unit does not matter */
} choice;

static kilter_status weigh(choice *c, int clusters, double *total_s, kilter_error *error) {
    kilter_program program = program_of(c->b, c->scenarios, clusters, 2);
    kilter_prediction p;
    uint32_t workers;
    kilter_status status = predict_on(&program, c->options->on, c->b->workers, &workers, &p, error);
    if (!status)
        *total_s = sp_candidates_with((uint64_t)clusters, NULL) * (p.master_s + p.workers_s + p.messages_s);
    return status;
}

static kilter_status consider(choice *c, int clusters, kilter_error *error) {
    double total_s = 0;
    kilter_status status = weigh(c, clusters, &total_s, error);
    if (!status && total_s < c->total_s) {
        c->clusters = clusters;
        c->total_s = total_s;
    }
    return status;
}

static int within(int number, int least, int most) {
    return number < least ? least : number > most ? most : number;
}

/* Choose the number of clusters as kilter_farm_grain() does for real workers. The function tries numbers that
 * grow by a sixteenth, and multiples of the number of workers. These numbers range from a quarter of the
 * smallest earlier number of clusters to four times the largest earlier number. The number of clusters
 * changes only if the forecast time falls by more than 5 %. */
static kilter_status choose_clusters(const sp_options *options, const sp_benchmark *b, uint64_t scenarios,
                                     sp_forecast *f, kilter_error *error) {
    choice best = {options, b, scenarios, 0, HUGE_VAL};
    int limit = scenarios < SP_AUTO_MOST ? (int)scenarios : SP_AUTO_MOST;
    int fewest = limit < SP_AUTO_LEAST ? limit : SP_AUTO_LEAST;
    int least = within(f->least_clusters / BELIEVED, fewest, limit);
    int most =
        f->most_clusters < limit / BELIEVED ? within(f->most_clusters * BELIEVED, fewest, limit) : limit;
    int last = within(f->clusters, fewest, limit);
    double last_s = 0;
    kilter_status status = weigh(&best, last, &last_s, error);
    for (int at = least, before = 0; !status && before < most;) {
        int even = at - at % (int)f->workers;
        if (even > before && even >= least)
            status = consider(&best, even, error);
        if (!status)
            status = consider(&best, at, error);
        before = at;
        at = within(at + 1 + at / APART, least, most);
    }
    f->clusters = best.total_s < FINDING * last_s ? best.clusters : last;
    return status;
}

static kilter_status set_clusters(const sp_options *options, const sp_benchmark *b, uint64_t scenarios,
                                  sp_forecast *f, kilter_error *error) {
    bool by_time = options->clusters == SP_CLUSTERS_AUTO, first = f->clusters == 0;
    kilter_status status = KILTER_OK;
    if (by_time && !first)
        status = choose_clusters(options, b, scenarios, f, error);
    else
        f->clusters = options->clusters && !by_time ? (int)options->clusters : sp_clusters_for(scenarios);
    if ((uint64_t)f->clusters > scenarios)
        f->clusters = (int)scenarios;
    f->least_clusters = first || f->clusters < f->least_clusters ? f->clusters : f->least_clusters;
    f->most_clusters = f->clusters > f->most_clusters ? f->clusters : f->most_clusters;
    return status;
}

/* Return the expected number of candidates: the number that the benchmark's sample needed, corrected for the
 * number of clusters. */
static double candidates_of(const sp_benchmark *b, bool first, int clusters) {
    return first ? sp_candidates_after(b->first_candidates, b->first_clusters, clusters)
                 : sp_candidates_after(b->candidates, b->clusters, clusters);
}

/* Predict one sample of the requested solve and add its time. f->long_one becomes this prediction. */
static kilter_status add_stage(const sp_options *options, const sp_benchmark *b, const sp_stages *stages,
                               int stage, sp_forecast *f, kilter_error *error) {
    uint64_t scenarios = stages->scenarios[stage];
    bool first = stage == 0, last = stage + 1 == stages->count;
    kilter_status status = set_clusters(options, b, scenarios, f, error);
    if (status)
        return status;
    f->candidates =
        last && f->given ? (double)options->candidates : candidates_of(b, first && !last, f->clusters);
    kilter_program program = program_of(b, scenarios, f->clusters, f->candidates);
    status = predict_on(&program, options->on, b->workers, &f->workers, &f->long_one, error);
    if (!status) {
        f->total_s += f->long_one.total_s;
        f->bound_s += f->long_one.bound_s;
    }
    return status;
}

kilter_status sp_forecast_make(const sp_options *options, const sp_benchmark *b, sp_forecast *forecast,
                               kilter_error *error) {
    sp_stages stages = sp_stages_towards(options->scenarios);
    sp_forecast made = {.scenarios = options->scenarios, .given = options->candidates > 0};
    kilter_status status = KILTER_OK;
    for (int i = 0; !status && i < stages.count; i++)
        status = add_stage(options, b, &stages, i, &made, error);
    if (!status)
        status = sp_forecast_sample(b, b->scenarios, b->clusters, b->candidates, &made.short_one, error);
    if (!status)
        *forecast = made;
    return status;
}

/* ---- printing the forecast ---- */

static sp_times times_of(const kilter_prediction *p) {
    return (sp_times){p->master_s, p->workers_s + p->messages_s};
}

void sp_forecast_print(FILE *out, const sp_forecast *f, const sp_benchmark *b) {
    const kilter_prediction *p = &f->long_one;
    fprintf(out, "time           %.3f s for %llu scenarios on %u worker%s, %u of them used; bound %.3f s\n",
            f->total_s, (unsigned long long)f->scenarios, f->workers, f->workers == 1 ? "" : "s", p->workers,
            f->bound_s);
    fprintf(out,
            f->given
                ? "candidates     %.0f; %d clusters\n"
                : "candidates     %.0f, as in the benchmark: more scenarios mostly need more candidates, "
                  "see --candidates; %d clusters\n",
            f->candidates, f->clusters);
    fprintf(out, "a candidate    %.3g s of the master alone, %.3g s of the workers, %.3g s of messages\n",
            p->master_s, p->workers_s, p->messages_s);
    const sp_times times = times_of(p);
    fprintf(out, "basket         ");
    sp_basket_print(out, &times);
    fprintf(
        out,
        "\nbenchmark      %llu scenarios, %d candidates, %d clusters on %u worker%s: %.3f s measured, %.3f s "
        "predicted (%+.1f %%)\n",
        (unsigned long long)b->scenarios, b->candidates, b->clusters, b->workers, b->workers == 1 ? "" : "s",
        b->elapsed_s, f->short_one.total_s, 100 * (f->short_one.total_s / b->elapsed_s - 1));
}

void sp_forecast_print_json(FILE *out, const sp_forecast *f, const sp_benchmark *b) {
    const kilter_prediction *p = &f->long_one;
    const sp_times times = times_of(p);
    fprintf(out,
            "{\"predicted_s\": %.17g, \"bound_s\": %.17g, \"scenarios\": %llu, \"workers\": %u, "
            "\"workers_used\": %u, \"candidates\": %.0f, \"clusters\": %d, ",
            f->total_s, f->bound_s, (unsigned long long)f->scenarios, f->workers, p->workers, f->candidates,
            f->clusters);
    fprintf(out, "\"master_s\": %.17g, \"workers_s\": %.17g, \"messages_s\": %.17g, \"two_at_once\": %.17g, ",
            p->master_s, p->workers_s, p->messages_s, sp_basket_ratio(&times));
    fprintf(out,
            "\"benchmark\": {\"scenarios\": %llu, \"candidates\": %d, \"clusters\": %d, \"workers\": %u, "
            "\"measured_s\": %.17g, \"predicted_s\": %.17g}}\n",
            (unsigned long long)b->scenarios, b->candidates, b->clusters, b->workers, b->elapsed_s,
            f->short_one.total_s);
}
