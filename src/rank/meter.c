#include "rank/meter.h"

#include <math.h>

static const double GUESSED_QUANTUM_S = 0.01;
/* seconds after which the length of the scheduler's time slice (quantum) is measured; measuring takes at
 * most half a percent of this time */
static const double QUANTUM_AFTER_S = 10;
/* if the times of a rank's segments (parts of its rows) differ by more than this ratio, all ranks report
 * segments */
static const double UNEVEN = 1.5;
/* this ratio is used only if the segments were measured for at least this number of seconds */
static const double UNEVEN_AFTER_S = 0.01;
/* the mean time per row is taken over about this number of seconds, so that the time for reading the clock
 * does not matter */
static const double MEAN_OVER_S = 1e-3;
/* If some ranks share cores, CPU time is measured in samples. A sample takes SAMPLE_S seconds and at least
 * SAMPLE_SWEEPS sweeps, so that reports have whole sweeps. Samples begin at least SAMPLES_APART_S seconds
 * apart. A thread that reads its CPU time loses its core as soon as its time slice is over. A competing
 * process keeps the core until the next tick of the scheduler. So with frequent readings, a rank gets less
 * than its share of the core. */
static const double SAMPLES_APART_S = 1, SAMPLE_S = 0.05;
enum { SAMPLE_SWEEPS = 3 };
/* Shares that are reported if ranks share cores with each other. Other ranks do not count as load. So a rank
 * reports 1, or OTHERS_SHARE if other processes leave it no core. But in short sweeps, ranks on one core wait
 * for each other. So ranks for which other ranks leave no core report EXTRA_SHARE, and the loop tries to give
 * them no rows. EXTRA_SHARE does not depend on other processes, and is clearly smaller than OTHERS_SHARE. */
static const double OTHERS_SHARE = 0.5, EXTRA_SHARE = 0.25;
/* a rank that gets at least this part of its core has the core for itself; its share is measured, if it
 * shares the core with no other rank */
static const double FREE_SHARE = 0.9;
/* CPU times are used only if they are at least this part of the time in the body */
static const double CPU_LEAST = 0.2;

/* --- work --- */

void kl_meter_give(kl_meter *m, double now_s) {
    if (!m->on)
        return;
    m->given_s = now_s;
    bool samples = m->leader ? m->leader->samples : m->samples;
    m->tells_cpu = samples && (m->by_pieces || (m->core->sleeps && !m->shares_cores));
}

static double cpu_since_given_s(const kl_meter *m) {
    return m->tells_cpu ? m->cpu_s - m->given_cpu_s : 0;
}

static bool is_sampled(kl_meter *m, double now_s) {
    bool unknown = m->core->sleeps && m->row_cpu_s == 0;
    if (!m->seldom || m->uneven || unknown)
        return true;
    if (now_s - m->sampled_s >= SAMPLES_APART_S) {
        m->sampled_s = now_s;
        m->sampled = 0;
    }
    return ++m->sampled <= SAMPLE_SWEEPS || now_s - m->sampled_s < SAMPLE_S;
}

void kl_meter_begin_sweep(kl_meter *m, uint64_t rows, double now_s) {
    kl_following *f = &m->following;
    if (rows > 0) {
        f->row_busy_s = f->busy_s / (double)rows;
        if (m->samples)
            f->row_cpu_s = f->cpu_s / (double)rows;
    }
    f->busy_s = f->cpu_s = 0;
    m->samples = is_sampled(m, now_s);
}

static void add(kl_meter *m, double rows, double busy_s, double cpu_s) {
    m->since.busy_s += busy_s + rows * m->following.row_busy_s;
    m->since.rows += rows;
    if (m->leader)
        m->leader->following.busy_s += busy_s;
    if (!m->tells_cpu)
        return;
    m->since.cpu_s += cpu_s + rows * m->following.row_cpu_s;
    m->since.cpu_rows += rows;
    if (m->leader)
        m->leader->following.cpu_s += cpu_s;
}

static void count(kl_meter *m, double rows, double busy_s, double cpu_s) {
    add(m, rows, busy_s, cpu_s);
    if (m->sweep_s > MEAN_OVER_S)
        m->sweep_s = m->sweep_rows = 0;
    m->sweep_s += busy_s;
    m->sweep_rows += rows;
    if (m->sweep_rows > 0)
        m->iteration_s = m->sweep_s / m->sweep_rows;
}

void kl_meter_end_sweep(kl_meter *m, double took_s) {
    m->since.sweeps++;
    m->all.sweeps++;
    m->all.elapsed_s += took_s;
    m->sweep_s = m->sweep_rows = 0;
}

void kl_meter_delivery(kl_meter *m, double took_s, double waited_s) {
    m->all.elapsed_s += took_s;
    m->all.waited_s += waited_s;
}

void kl_meter_count(kl_meter *m, double rows, double busy_s) {
    count(m, rows, busy_s, cpu_since_given_s(m));
}

void kl_meter_moving(kl_meter *m, double spent_s) {
    m->since.moving_s += spent_s;
    m->all.moving_s += spent_s;
}

/* Return the first iteration after `lo` that is in another segment (part of the rows) than `lo`, or
 * `end`. */
static uint64_t end_of_segment(kl_span own, uint64_t lo, uint64_t end) {
    uint32_t segment = kl_segment_of(own, lo);
    uint64_t in = lo, out = end;
    while (out - in > 1) {
        uint64_t middle = in + (out - in) / 2;
        if (kl_segment_of(own, middle) == segment)
            in = middle;
        else
            out = middle;
    }
    return out;
}

/* Add the CPU time of rows to the segments (parts of the rows) in which they are. CPU time shows how the
 * costs are distributed over the rows. It does not show how long the rows take, because it leaves out the
 * time in which the core works for other threads. */
static void measure_segments(kl_since *since, kl_span own, kl_span rows, double cpu_s) {
    uint64_t count = rows.hi - rows.lo;
    if (own.hi - own.lo < KL_SEGMENTS || rows.lo < own.lo || rows.hi > own.hi)
        return;
    for (uint64_t lo = rows.lo; lo < rows.hi;) {
        uint32_t segment = kl_segment_of(own, lo);
        uint64_t hi = end_of_segment(own, lo, rows.hi);
        since->segment_s[segment] += cpu_s * (double)(hi - lo) / (double)count;
        since->segment_rows[segment] += (double)(hi - lo);
        lo = hi;
    }
}

void kl_meter_rows(kl_meter *m, kl_span own, kl_span rows, double now_s) {
    if (!m->on)
        return;
    double cpu_s = cpu_since_given_s(m);
    uint64_t lo = rows.lo > own.lo ? rows.lo : own.lo, hi = rows.hi < own.hi ? rows.hi : own.hi;
    count(m, (double)(rows.hi - rows.lo), now_s - m->given_s, cpu_s);
    m->since.foreign += (double)(rows.hi - rows.lo - (hi > lo ? hi - lo : 0));
    if (!m->by_pieces || !m->tells_cpu)
        return;
    m->since.sampled_s += now_s - m->given_s;
    measure_segments(&m->since, own, rows, cpu_s);
}

bool kl_meter_wants_quantum(kl_meter *m, double now_s) {
    if (m->core->quantum_s > 0 && !m->shares_cores)
        m->quantum_s = m->core->quantum_s;
    return m->quantum_s == 0 && !m->simulated && now_s - m->opened_s >= QUANTUM_AFTER_S;
}

void kl_meter_quantum_is(kl_meter *m, double quantum_s) {
    m->quantum_s = quantum_s > 0 ? quantum_s : GUESSED_QUANTUM_S;
}

/* --- reports --- */

/* Return the seconds that the body took, for a report. On a shared core, a rank that sleeps while it waits
 * often gets the core at once when it wakes up. With more work, it would get only its share of the core. So
 * the CPU time is divided by this share if that gives a longer time. If no CPU time was measured since the
 * last report, the last measurement stands for it. */
static double busy_s(const kl_meter *m) {
    const kl_since *since = &m->since;
    const kl_core_share *core = m->core;
    if (!core->sleeps || m->shares_cores)
        return since->busy_s;
    return fmax(since->busy_s, m->row_cpu_s * since->rows / core->share);
}

/* Return whether the costs of rows differ much. Return false if the body uses little CPU time, for example
 * because it waits for a disk. In this case CPU time does not show the costs. */
static bool is_uneven(const kl_since *since) {
    double least = HUGE_VAL, most = 0, cpu_s = 0;
    for (int i = 0; i < KL_SEGMENTS; i++) {
        if (since->segment_rows[i] == 0)
            return false;
        double each_s = since->segment_s[i] / since->segment_rows[i];
        least = fmin(least, each_s);
        most = fmax(most, each_s);
        cpu_s += since->segment_s[i];
    }
    return most > UNEVEN * least && cpu_s > UNEVEN_AFTER_S && cpu_s > CPU_LEAST * since->sampled_s;
}

bool kl_meter_is_slow(double share) {
    return share > 0 && share < FREE_SHARE; /* 0: not known */
}

bool kl_meter_is_loaded(double share) {
    return kl_meter_is_slow(share) && share != EXTRA_SHARE;
}

/* Return the part of its core that the rank reports. While it is not known whether other processes use the
 * cores, the rank reports 1, so that no trials begin that would soon begin again. */
static double reported_share(const kl_meter *m) {
    if (!m->shares_cores)
        return m->core->share;
    if (m->core->unsettled)
        return 1;
    return m->cores_left == 0 ? EXTRA_SHARE : m->cores_left <= m->core->taken ? OTHERS_SHARE : 1;
}

kl_rank_report kl_meter_report(kl_meter *m, kl_span own, double part, double now_s) {
    kl_since *since = &m->since;
    double rows = since->rows - since->foreign;
    if (since->cpu_rows > 0 || !m->core->sleeps)
        m->row_cpu_s = since->cpu_rows > 0 ? since->cpu_s / since->cpu_rows : 0;
    kl_rank_report report = {.elapsed_s = now_s - m->opened_s,
                             .executions = since->sweeps + part,
                             .busy_s = busy_s(m),
                             .iterations = rows < 1 ? rows > 0 : (uint64_t)rows,
                             .lo = own.lo,
                             .hi = own.hi,
                             .moving_s = since->moving_s,
                             .moved = since->moved,
                             .moved_bytes = since->moved_bytes,
                             .quantum_s = m->quantum_s,
                             .share = reported_share(m),
                             .pinned = m->pin && m->pin->pinned,
                             .boundary_s = since->boundaries > 0 ? since->boundary_s / since->boundaries : 0};
    if (report.iterations > 0) /* report the time of whole iterations only */
        report.busy_s *= (double)report.iterations / since->rows;
    m->uneven |= is_uneven(since);
    report.segments = m->uneven;
    for (int i = 0; i < KL_SEGMENTS && m->uneven; i++)
        report.segments_s[i] = since->segment_rows[i] > 0 ? since->segment_s[i] / since->segment_rows[i] : 0;
    *since = (kl_since){.sweeps = -part};
    return report;
}

void kl_meter_begin_anew(kl_meter *m) {
    const kl_since *since = &m->since;
    m->since = (kl_since){.sweeps = since->sweeps,
                          .moving_s = since->moving_s,
                          .moved = since->moved,
                          .moved_bytes = since->moved_bytes};
}
