/* Compute the model for every number of workers, and choose the numbers that are printed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict.h"

enum {
    SHOWN_ALL = 20, /* every number of workers up to this one has a row; of the larger numbers, only some have
                     * a row */
    UNLIMITED = 64, /* largest number of workers to examine if messages cost nothing and the user gave no
                     * number */
    LOOKED_AT_LEAST = 8,
    LOOKED_AT_MOST = 1000,
};

static double value(const kl_basis *b, int input) {
    return b->in[input].value;
}

static kl_farm_model model_of(const kl_basis *b, uint32_t protocol) {
    return (kl_farm_model){.message = {value(b, KL_IN_STARTUP_S), value(b, KL_IN_PER_BYTE_S)},
                           .work_s = value(b, KL_IN_WORK_S),
                           .bytes = value(b, KL_IN_BYTES),
                           .to_workers = value(b, KL_IN_ALPHA),
                           .master_s = value(b, KL_IN_MASTER_S),
                           .own_links = b->load.own_links,
                           .synchronous = protocol == KL_SYNCHRONOUS};
}

static double answer_s(const kl_basis *b, uint32_t workers) {
    bool recorded = kl_load_known(&b->load) && value(b, KL_IN_ANSWER_S) == b->load.answer_s;
    return recorded ? kl_model_answer_s(&b->load, workers) : value(b, KL_IN_ANSWER_S);
}

/* Return the least number of tasks in a chunk with which the master can keep `workers` workers busy.
 */
static double least_chunk(const kl_basis *b, uint32_t workers) {
    double answer = answer_s(b, workers);
    double least_s = kl_model_min_chunk_s(isfinite(answer) ? answer : value(b, KL_IN_STARTUP_S), workers);
    return fmax(1, least_s / value(b, KL_IN_TASK_MEAN_S));
}

/* Put into b->scratch the fraction of the work that each recorded round has, and return the number of rounds.
 * A round with too few tasks for all workers is joined to the next round. */
static size_t recorded_rounds(const kl_basis *b, uint32_t workers) {
    double least = workers * least_chunk(b, workers) / value(b, KL_IN_TASKS) * (1 - 1e-9), part = 0;
    size_t count = 0;
    for (size_t i = 0; i < b->part_count; i++) {
        part += b->part[i];
        if (part >= least) {
            b->scratch[count++] = part;
            part = 0;
        }
    }
    if (count == 0)
        b->scratch[count++] = 0;
    b->scratch[count - 1] += part;
    return count;
}

static kl_rounds rounds_of(const kl_basis *b, const kl_farm_model *m, uint32_t workers) {
    kl_rounds rounds = {
        .part = b->scratch, .tasks = value(b, KL_IN_TASKS), .task_sd_s = value(b, KL_IN_TASK_SD_S)};
    double mean_s = value(b, KL_IN_TASK_MEAN_S), variation = mean_s > 0 ? rounds.task_sd_s / mean_s : 0;
    if (isfinite(value(b, KL_IN_ANSWER_S)))
        rounds.answer_s = answer_s(b, workers);
    if (b->part_count > 0)
        rounds.count = recorded_rounds(b, workers);
    else
        rounds.count = kl_model_daf_parts(m, rounds.tasks, variation, workers, b->scratch, b->scratch_count);
    return rounds;
}

/* Return the time of a run in several rounds, lengthened by the load on shared resources. While a worker
 * waits, it leaves these resources to the other workers. So waiting costs less time than without the load. */
static double several_rounds_s(const kl_basis *b, kl_farm_model *m, const kl_rounds *rounds,
                               const kl_point *p) {
    if (kl_load_known(&b->load) && b->load.use.local_tasks == b->load.use.tasks)
        /* add no cost per byte: the load on shared resources already includes bytes */
        m->message.per_unit_s = 0;
    /* add no time for waiting messages: the recorded load already includes it */
    m->own_links |= kl_load_known(&b->load);
    double alone_s = m->work_s / p->speed, times = p->limit.times;
    double rounds_s = kl_model_rounds_time_s(m, p->workers, p->speed, rounds) - m->master_s;
    return b->beyond * (times * alone_s + (rounds_s - alone_s) / fmax(1, times)) + m->master_s;
}

static kl_point point_at(const kl_basis *b, uint32_t protocol, uint32_t workers, double speed, bool uneven) {
    kl_farm_model m = model_of(b, protocol);
    kl_point p = {.workers = workers,
                  .speed = speed,
                  .time_s = kl_model_time_with_s(&m, workers, speed),
                  .efficiency = kl_model_efficiency_with(&m, workers, speed),
                  .index_s = kl_model_index_with(&m, workers, speed),
                  .rounds_time_s = (double)NAN,
                  .within = {(double)NAN, (double)NAN},
                  .limit = {.times = 1},
                  .quality_bound = (double)NAN};
    if (isfinite(value(b, KL_IN_TASKS))) {
        kl_rounds rounds = rounds_of(b, &m, workers);
        rounds.uneven = uneven;
        p.limit = kl_model_limit(&b->load, workers);
        p.rounds_time_s = several_rounds_s(b, &m, &rounds, &p);
        kl_doubt doubt = {.runs = b->runs_differ, .known = b->workers};
        p.within = kl_model_interval(p.rounds_time_s, &doubt, workers, &p.limit);
        p.quality_bound =
            kl_model_quality_bound(value(b, KL_IN_TASK_MEAN_S), value(b, KL_IN_TASK_SD_S), workers);
    }
    p.rounds_efficiency = value(b, KL_IN_WORK_S) / (speed * p.rounds_time_s);
    p.rounds_index_s = p.rounds_time_s / p.rounds_efficiency;
    return p;
}

kl_point kl_predict_at(const kl_basis *b, uint32_t protocol, uint32_t workers) {
    double speed = b->speeds ? b->speeds[workers - 1] : workers;
    return point_at(b, protocol, workers, speed, b->speeds ? b->speeds_uneven : b->uneven);
}

kl_point kl_predict_measured(const kl_basis *b, uint32_t protocol, uint32_t workers) {
    kl_basis plain = *b;
    plain.beyond = 1;
    return point_at(&plain, protocol, workers, workers, b->uneven);
}

/* Return the factor that corrects predictions for runs of the record. If the user gave inputs, the
 * prediction is for another run and is not corrected. */
double kl_predict_beyond(const kl_basis *b) {
    bool other = !kl_load_known(&b->load) || !(b->alike_s > 0);
    for (int i = 0; i < KL_INPUTS; i++)
        other |= b->in[i].from && strcmp(b->in[i].from, "given") == 0;
    if (other)
        return 1;
    double model_s =
        kl_predict_measured(b, KL_ASYNCHRONOUS, b->workers).rounds_time_s - value(b, KL_IN_MASTER_S);
    return model_s > 0 ? b->alike_s / model_s : 1;
}

static uint32_t capability_of(const kl_basis *b, uint32_t protocol) {
    kl_farm_model m = model_of(b, protocol);
    if (!b->speeds)
        return kl_model_capability(&m);
    uint32_t fed = kl_model_capability_of(&m, kl_speeds_listed(b->speeds), b->speed_count);
    return fed < b->speed_count ? fed : UINT32_MAX;
}

static void keep_smaller(kl_point *kept, const kl_point *p, double kept_value, double new_value) {
    if (isfinite(new_value) && (kept->workers == 0 || new_value < kept_value))
        *kept = *p;
}

static void find_best(const kl_basis *b, uint32_t protocol, uint32_t most, kl_protocol *found) {
    for (uint32_t n = 1; n <= most; n++) {
        kl_point p = kl_predict_at(b, protocol, n);
        if (n <= found->capability)
            keep_smaller(&found->best, &p, found->best.index_s, p.index_s);
        keep_smaller(&found->fastest, &p, found->fastest.time_s, p.time_s);
        keep_smaller(&found->rounds_best, &p, found->rounds_best.rounds_index_s, p.rounds_index_s);
        keep_smaller(&found->rounds_fastest, &p, found->rounds_fastest.rounds_time_s, p.rounds_time_s);
    }
}

/* Return whether n is a round number: a multiple of the largest step that is at most n/5. Steps are 1, 2 or 5
 * times a power of ten. */
static bool is_round(uint32_t n) {
    static const uint32_t digits[] = {1, 2, 5};
    uint32_t step = 1;
    for (uint32_t power = 1, i = 0; power <= n / 5; i++, power *= i % 3 == 0 ? 10 : 1)
        if (digits[i % 3] * power <= n / 5)
            step = digits[i % 3] * power;
    return n % step == 0;
}

static bool is_shown(const kl_basis *b, const kl_protocol *p, uint32_t n, uint32_t most) {
    return n <= SHOWN_ALL || n == most || n == p->capability || n == p->best.workers ||
           n == p->fastest.workers || n == p->rounds_best.workers || n == p->rounds_fastest.workers ||
           n == b->workers || is_round(n);
}

static kilter_status show(const kl_basis *b, uint32_t protocol, uint32_t most, kl_protocol *p,
                          kilter_error *error) {
    size_t count = 1; /* the last number always has a row */
    for (uint32_t n = 1; n < most; n++)
        count += is_shown(b, p, n, most);
    p->points = calloc(count, sizeof *p->points);
    if (!p->points)
        return kl_fail(error, KILTER_ERR_MEMORY, "predicting for %u workers: memory ran out", (unsigned)most);
    for (uint32_t n = 1; n <= most; n++)
        if (is_shown(b, p, n, most))
            p->points[p->count++] = kl_predict_at(b, protocol, n);
    return KILTER_OK;
}

/* Choose the largest number of workers to examine: a little more than the master can keep busy. With more
 * workers than the master can keep busy, a run takes longer. */
static uint32_t choose_most(const kl_basis *b) {
    uint32_t feeds = capability_of(b, KL_ASYNCHRONOUS);
    uint32_t most = feeds == UINT32_MAX ? UNLIMITED : feeds < LOOKED_AT_MOST ? feeds + feeds / 4 : feeds;
    most = most < 2 * b->workers ? 2 * b->workers : most;
    return most < LOOKED_AT_LEAST ? LOOKED_AT_LEAST : most > LOOKED_AT_MOST ? LOOKED_AT_MOST : most;
}

kilter_status kl_predict(const kl_basis *b, uint32_t most, kl_prediction *prediction, kilter_error *error) {
    static const char *const names[KL_PROTOCOLS] = {"asynchronous", "synchronous"};
    kl_prediction p = {.basis = b, .most = most};
    if (b->speeds)
        p.most = most == 0 || most > b->speed_count ? b->speed_count : most;
    else if (most == 0)
        p.most = choose_most(b);
    if (p.most > value(b, KL_IN_TASKS)) {
        p.out_of_tasks = true;
        p.most = (uint32_t)value(b, KL_IN_TASKS);
    }
    kilter_status status = KILTER_OK;
    for (uint32_t i = 0; i < KL_PROTOCOLS && status == KILTER_OK; i++) {
        p.protocols[i] = (kl_protocol){.name = names[i], .capability = capability_of(b, i)};
        find_best(b, i, p.most, &p.protocols[i]);
        status = show(b, i, p.most, &p.protocols[i], error);
    }
    kl_predict_verdict(&p);
    *prediction = p;
    if (status != KILTER_OK)
        kl_prediction_free(prediction);
    return status;
}

void kl_prediction_free(kl_prediction *p) {
    for (uint32_t i = 0; i < KL_PROTOCOLS; i++)
        free(p->protocols[i].points);
    *p = (kl_prediction){0};
}
