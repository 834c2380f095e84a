/* Write the chunks of a record as columns of small numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"

/* Limits for the length of a tick, in which the page counts time. Shorter ticks would store noise, which does
 * not compress. In a record with more than MANY_CHUNKS chunks, a tick is longer: a short chunk takes
 * TICKS_OF_SHORT ticks. Each time is rounded on its own, so rounding errors do not add up. */
enum { MANY_CHUNKS = 10000, TICKS_OF_SHORT = 64 };
static const double TICKS_MOST = 1 << 24, TICK_LEAST_S = 1e-6, LONGEST_S = 1e9;
static const double UNIT_STEPS = 1 << 20;

typedef struct kl_chunk {
    uint32_t worker;
    uint64_t run, lo, tasks, state;
    double began_s, ended_s, busy_s, units;
} kl_chunk;

typedef struct collecting {
    kl_reading *r;
    kl_page_chunks *to;
    int64_t ended_tick;    /* end of the worker's previous chunk */
    uint64_t run;          /* run of this chunk */
    kl_page_first *firsts; /* [to->count] */
    size_t first_count;
    double ended_s;    /* end of the worker's previous chunk in the last run; NAN: there is none */
    double present[2]; /* times at which the worker's presence in the last run began and ended */
} collecting;

static double within(double value, double low, double high) {
    return value >= low ? fmin(value, high) : low; /* NAN becomes `low` */
}

static int64_t tick_of(const kl_page_chunks *c, double time_s) {
    return (int64_t)llround(within(time_s, 0, c->end_s) / c->tick_s);
}

/* ---- what the time was spent on ---- */

static const kl_report_iteration *last_run(const kl_report *report) {
    return report->iteration_count > 0 ? &report->iterations[report->iteration_count - 1] : NULL;
}

static int by_worker(const void *key, const void *item) {
    uint32_t worker = *(const uint32_t *)key, other = ((const kl_report_worker *)item)->worker;
    return (worker > other) - (worker < other);
}

/* Find the time in which the worker was present in the run: [began, ended]. */
static void presence(const kl_report *report, uint32_t worker, double at[2]) {
    const kl_report_iteration *it = last_run(report);
    const kl_report_worker *w =
        report->worker_count > 0
            ? bsearch(&worker, report->workers, report->worker_count, sizeof *report->workers, by_worker)
            : NULL;
    at[0] = it ? fmax(it->began_s, w ? w->joined_s : (double)NAN) : 0; /* fmax and fmin ignore NAN */
    at[1] = it ? fmin(it->began_s + it->elapsed_s, w ? w->left_s : (double)NAN) : 0;
}

static void add_cost(kl_page_chunks *c, kl_cost cost, double seconds) {
    if (seconds > 0 && isfinite(seconds))
        c->costs.s[cost] += seconds;
}

static void end_lane(collecting *c) {
    if (!isnan(c->ended_s))
        add_cost(c->to, KL_COST_END, c->present[1] - c->ended_s);
    c->ended_s = (double)NAN;
}

static void add_costs(collecting *c, const kl_chunk *chunk) {
    const kl_report_iteration *it = last_run(c->r->report);
    if (!it || chunk->run != it->run)
        return;
    if (isnan(c->ended_s))
        add_cost(c->to, KL_COST_START, chunk->began_s - c->present[0]);
    else
        add_cost(c->to, KL_COST_BETWEEN, chunk->began_s - c->ended_s);
    add_cost(c->to, KL_COST_WITHIN, chunk->ended_s - chunk->began_s - chunk->busy_s);
    c->to->costs.busy_s += chunk->busy_s;
    c->ended_s = fmax(c->ended_s, chunk->ended_s);
}

static void add_unused(const kl_report *report, kl_page_chunks *c) {
    const kl_report_iteration *it = last_run(report);
    double at[2];
    for (size_t i = 0; it && i < it->share_count; i++)
        if (it->shares[i].chunks + it->shares[i].lost_chunks == 0) {
            presence(report, it->shares[i].worker, at);
            add_cost(c, KL_COST_UNUSED, at[1] - at[0]);
        }
}

/* ---- columns ---- */

static void begin_lane(collecting *c, uint32_t worker) {
    kl_page_lane *lane;
    end_lane(c);
    KL_APPEND(c->r, c->to->lanes, c->to->lane_count, lane);
    if (lane)
        lane->worker = worker;
    presence(c->r->report, worker, c->present);
    c->ended_tick = 0;
    c->run = 0;
}

static void put_chunk(collecting *c, const kl_chunk *chunk) {
    kl_page_chunks *to = c->to;
    int64_t began = tick_of(to, chunk->began_s), ended = tick_of(to, chunk->ended_s);
    int64_t busy = (int64_t)llround(within(chunk->busy_s / to->tick_s, 0, (double)(ended - began)));
    kl_page_put_signed(&to->column[KL_PAGE_GAP], began - c->ended_tick);
    kl_page_put_varint(&to->column[KL_PAGE_LENGTH], (uint64_t)(ended - began));
    kl_page_put_varint(&to->column[KL_PAGE_IDLE], (uint64_t)(ended - began - busy));
    kl_page_put_varint(&to->column[KL_PAGE_TASKS], chunk->tasks);
    kl_page_put_signed(&to->column[KL_PAGE_RUN], (int64_t)(chunk->run - c->run));
    kl_page_put_varint(&to->column[KL_PAGE_STATE], chunk->state);
    if (to->unit > 0)
        kl_page_put_varint(&to->column[KL_PAGE_UNITS],
                           (uint64_t)llround(within(chunk->units / to->unit, 0, UNIT_STEPS)));
    c->ended_tick = ended;
    c->run = chunk->run;
    kl_page_first *first;
    KL_APPEND(c->r, c->firsts, c->first_count, first);
    if (first)
        *first = (kl_page_first){began, c->first_count, chunk->run, chunk->lo, chunk->lo + chunk->tasks};
}

static void take_chunk(collecting *c, sqlite3_stmt *row) {
    enum { FAILED_MOST = 1 << 20 };
    uint64_t lo = kl_count_at(row, 2), hi = kl_count_at(row, 3), failed = kl_count_at(row, 8);
    kl_chunk chunk = {.worker = (uint32_t)kl_count_at(row, 0),
                      .run = kl_count_at(row, 1),
                      .lo = lo,
                      .tasks = hi > lo ? hi - lo : 0,
                      .began_s = within(kl_record_real(row, 4), 0, c->to->end_s),
                      .busy_s = within(kl_record_real(row, 6), 0, c->to->end_s),
                      .units = kl_record_real(row, 7)};
    chunk.ended_s = within(kl_record_real(row, 5), chunk.began_s, c->to->end_s);
    chunk.state = 2 * (failed < FAILED_MOST ? failed : FAILED_MOST) + (sqlite3_column_int(row, 9) != 0);
    if (c->to->lane_count == 0 || c->to->lanes[c->to->lane_count - 1].worker != chunk.worker)
        begin_lane(c, chunk.worker);
    if (c->r->memory)
        return;
    c->to->lanes[c->to->lane_count - 1].chunks++;
    c->to->count++;
    put_chunk(c, &chunk);
    add_costs(c, &chunk);
}

/* ---- queries ---- */

/* The chunks of a farm are rows of the table `chunk`. In a loop, each recorded round gives each rank one
 * chunk: from the rank's previous recorded round to this one. */
static const char of_farm[] =
    "SELECT worker, run, lo, hi, began_s, ended_s, busy_s, units, failed, lost FROM chunk "
    "WHERE began_s IS NOT NULL AND ended_s IS NOT NULL ORDER BY worker, began_s, id";
static const char of_loop[] =
    "SELECT s.rank, 0, s.count, s.count + s.done, "
    "coalesce(lag(r.at_s) OVER (PARTITION BY s.rank ORDER BY r.at_s), 0), r.at_s, s.busy_s, 0, 0, 0 "
    "FROM share s JOIN round r USING (round) ORDER BY s.rank, r.at_s";
static const char bounds[] =
    "SELECT max(coalesce((SELECT ended_s FROM run), 0), coalesce((SELECT max(ended_s) FROM chunk), 0), "
    "coalesce((SELECT max(at_s) FROM decision), 0), coalesce((SELECT max(joined_s) FROM worker), 0)), "
    "EXISTS (SELECT 1 FROM chunk WHERE units <> hi - lo), (SELECT max(units) FROM chunk), (SELECT count(*) "
    "FROM "
    "chunk), (SELECT ended_s - began_s FROM chunk WHERE ended_s > began_s ORDER BY 1 LIMIT 1 OFFSET (SELECT "
    "count(*) / 10 FROM chunk))"; /* length of a short chunk: about nine tenths of all chunks are longer */

static bool next_row(kl_reading *r, sqlite3_stmt *statement) {
    int step = r->memory ? SQLITE_DONE : sqlite3_step(statement);
    r->failed |= step != SQLITE_ROW && step != SQLITE_DONE;
    return step == SQLITE_ROW;
}

static sqlite3_stmt *query(kl_reading *r, const char *sql) {
    sqlite3_stmt *statement = NULL;
    if (!r->failed && sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) != SQLITE_OK)
        r->failed = true;
    return statement;
}

static void read_bounds(kl_reading *r, kl_page_chunks *c) {
    sqlite3_stmt *statement = query(r, bounds);
    if (statement && next_row(r, statement)) {
        double most = kl_record_real(statement, 2);
        c->end_s = within(kl_record_real(statement, 0), TICK_LEAST_S, LONGEST_S);
        c->unit = sqlite3_column_int(statement, 1) && most > 0 && isfinite(most) ? most / UNIT_STEPS : 0;
        if (kl_count_at(statement, 3) > MANY_CHUNKS)
            c->tick_s = within(kl_record_real(statement, 4), 0, c->end_s) / TICKS_OF_SHORT;
    }
    sqlite3_finalize(statement);
    c->tick_s = fmax(c->tick_s, fmax(TICK_LEAST_S, c->end_s / TICKS_MOST));
}

void kl_page_chunks_read(kl_reading *r, kl_page_chunks *chunks) {
    collecting c = {.r = r, .to = chunks, .ended_s = (double)NAN};
    bool rounds = r->report->loop && kl_has_table(r, "share");
    read_bounds(r, chunks);
    sqlite3_stmt *statement = query(r, rounds ? of_loop : of_farm);
    while (statement && next_row(r, statement))
        take_chunk(&c, statement);
    sqlite3_finalize(statement);
    end_lane(&c);
    r->memory |= !kl_page_put_firsts(c.firsts, c.first_count, chunks);
    free(c.firsts);
    add_unused(r->report, chunks);
    for (int i = 0; i < KL_PAGE_COLUMN_COUNT; i++)
        r->memory |= chunks->column[i].failed;
}

void kl_page_chunks_free(kl_page_chunks *chunks) {
    for (int i = 0; i < KL_PAGE_COLUMN_COUNT; i++)
        kl_buffer_free(&chunks->column[i]);
    free(chunks->lanes);
}
