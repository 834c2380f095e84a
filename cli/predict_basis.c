/* Take the model's inputs from options or a record, or compute them from each other. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict.h"
#include "report/report.h"

enum { WORKERS_MOST = 1000000, DAF_ROUNDS_MOST = 4096, RUNS_ALIKE = 6, RUNS_LEAST = 3 };

/* Larger values would overflow the model's sums. */
#define MOST 1e15

const kl_input kl_inputs[KL_INPUTS] = {
    [KL_IN_WORK_S] = {"work_s", "T_c", 0, MOST, true},
    [KL_IN_BYTES] = {"bytes", "V", 0, MOST, false},
    [KL_IN_ALPHA] = {"alpha", "α", 0, 1, false},
    [KL_IN_STARTUP_S] = {"startup_s", "m_o", 0, MOST, false},
    [KL_IN_PER_BYTE_S] = {"per_byte_s", "λ", 0, MOST, false},
    [KL_IN_MASTER_S] = {"master_s", "l_m", 0, MOST, false},
    [KL_IN_ANSWER_S] = {"answer_s", "answer", 0, MOST, true},
    [KL_IN_TASKS] = {"tasks", "M", 1, MOST, false},
    [KL_IN_TASK_MEAN_S] = {"task_mean_s", "μ", 0, MOST, true},
    [KL_IN_TASK_SD_S] = {"task_sd_s", "σ", 0, MOST, false},
};

bool kl_input_possible(const kl_input *input, double value) {
    return isfinite(value) && value >= input->low && value <= input->high &&
           !(input->above_low && value == input->low);
}

/* Set an input to a value of the record, unless the user gave the input. Ignore an impossible value, which
 * only a damaged record has. */
static void learn(kl_basis *b, int input, double value, const char *from) {
    if (!b->in[input].from && kl_input_possible(&kl_inputs[input], value))
        b->in[input] = (kl_number){value, from};
}

static bool known(const kl_basis *b, int input) {
    return b->in[input].from != NULL;
}

static bool given(const kl_basis *b, int input) {
    return known(b, input) && strcmp(b->in[input].from, "given") == 0;
}

/* ---- reading inputs from a record ---- */

static bool is_possible(double value) {
    return value > 0 && value < MOST;
}

/* Return the value; 0: it is impossible or not known. */
static double possible(double value) {
    return is_possible(value) ? value : 0;
}

static bool is_whole(const kl_report_iteration *it) {
    return it->ended && it->status && strcmp(it->status, "done") == 0;
}

/* Return whether the workers organised the run as peers. In such a run no master dealt chunks, and the
 * load on shared resources was not measured. */
static bool by_peers(const kl_report_iteration *it) {
    return is_whole(it) && it->chunks == 0;
}

/* The recorded work of a run. If only some of its tasks were done, the work is extended to all its tasks. */
typedef struct work {
    double workers, rate; /* rate: units of work per second of the mean worker */
    double work_s, tasks; /* work_s: seconds of all work on one worker of mean speed */
    double times;         /* all units of the run divided by the units that were done */
} work;

static work work_of(const kl_report_iteration *it) {
    double units = 0, rates = 0, workers = 0, tasks = (double)it->tasks_done;
    if (is_whole(it)) {
        double work_s = it->bound_s * it->workers;
        return (work){it->workers, it->units / work_s, work_s, tasks, 1};
    }
    for (size_t i = 0; i < it->share_count; i++)
        if (it->shares[i].busy_s > 0 && it->shares[i].units > 0) {
            units += it->shares[i].units;
            rates += it->shares[i].units / it->shares[i].busy_s;
            workers++;
        }
    double all = fmax(units, it->units), rate = rates / workers;
    return (work){workers, rate, all / rate, fmax(tasks, (double)it->tasks), all / units};
}

static kilter_status choose_run(const kl_report *r, int64_t run, const kl_report_iteration **chosen,
                                kilter_error *error) {
    if (r->loop)
        return kl_fail(error, KILTER_ERR_INPUT,
                       "predicting from '%s': it is the record of a distributed loop, but the model is for "
                       "farms; give a farm's record or --work-s",
                       r->path);
    const kl_report_iteration *found = NULL, *part = NULL;
    for (size_t i = 0; i < r->iteration_count; i++) {
        const kl_report_iteration *it = &r->iterations[i];
        bool worse = found && by_peers(it) && !by_peers(found);
        if (run < 0 ? is_whole(it) && !worse : it->run == (uint64_t)run)
            found = it;
        if (it->tasks_done > 0)
            part = it;
    }
    if (!found && run >= 0)
        return kl_fail(error, KILTER_ERR_INPUT, "predicting from '%s': the record has no run %lld", r->path,
                       (long long)run);
    found = found ? found : part;
    if (!found)
        return kl_fail(
            error, KILTER_ERR_INPUT,
            "predicting from '%s': no task of the record is done; take another record, or give --work-s",
            r->path);
    if (!(work_of(found).work_s > 0) || !(found->elapsed_s > 0))
        return kl_fail(
            error, KILTER_ERR_INPUT,
            "predicting from '%s': nothing was computed in run %llu; choose another run with --run", r->path,
            (unsigned long long)found->run);
    *chosen = found;
    return KILTER_OK;
}

/* Return the seconds between the end of the previous run and the beginning of this one. In this time, only
 * the master works. Return 0 if another master did the previous run. */
static double gap_before(const kl_report *r, const kl_report_iteration *it) {
    if (it == r->iterations)
        return 0;
    for (size_t i = 0; i < r->session_count; i++)
        if (r->sessions[i].first_run == it->run)
            return 0;
    double gap_s = it->began_s - (it[-1].began_s + it[-1].elapsed_s);
    return gap_s > 0 ? gap_s : 0;
}

/* Return the standard deviation of a task's time, divided by its mean. Both numbers are computed for each
 * worker separately, so differences between workers do not count. */
static double task_cv(const kl_report_iteration *it) {
    double sum = 0, tasks = 0;
    for (size_t i = 0; i < it->share_count; i++) {
        const kl_report_share *s = &it->shares[i];
        double cv = s->unit_sd / s->unit_s;
        if (isfinite(cv)) {
            sum += (double)s->tasks * cv * cv;
            tasks += (double)s->tasks;
        }
    }
    return tasks > 0 ? sqrt(sum / tasks) : (double)NAN;
}

static bool differ(const kl_report_iteration *it) {
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < it->share_count; i++)
        if (it->shares[i].speed_relative > 0) {
            low = fmin(low, it->shares[i].speed_relative);
            high = fmax(high, it->shares[i].speed_relative);
        }
    return high > 1.05 * low;
}

/* Similar runs differ by at most this part in their units of work, and in their bytes. */
static const double SAME = 0.05;

static bool is_near(double a, double b) {
    return fabs(a - b) <= SAME * b;
}

/* Return whether two runs have as many tasks and workers, and nearly as many units and bytes. Both must have
 * been organised by a master, or both by peers. */
static bool is_similar(const kl_report_iteration *a, const kl_report_iteration *b) {
    return is_whole(a) && is_whole(b) && by_peers(a) == by_peers(b) && a->workers == b->workers &&
           a->tasks == b->tasks && a->tasks_done == b->tasks_done && is_near(a->units, b->units) &&
           is_near(a->bytes_out + a->bytes_in, b->bytes_out + b->bytes_in);
}

/* Find the mean and the spread of the times of the latest similar runs, also if other runs lie between them.
 * Leave out the record's first run, in which caches and connections were still cold. */
static void compare_runs(kl_basis *b, const kl_report *r, const kl_report_iteration *it) {
    kl_stat times = {0}, elapsed = {0};
    for (size_t i = r->iteration_count; i > 1 && times.count < RUNS_ALIKE; i--) {
        const kl_report_iteration *run = &r->iterations[i - 1];
        if (!is_similar(run, it) || !is_possible(run->elapsed_s))
            continue;
        kl_stat_add(&times, run->elapsed_s + gap_before(r, run), 0);
        kl_stat_add(&elapsed, run->elapsed_s, 0);
    }
    b->runs_differ = times.count >= RUNS_LEAST ? kl_stat_cv(&times) : 0;
    b->alike_s = times.count >= RUNS_LEAST ? elapsed.mean : 0;
}

static kilter_status note_measured(kl_basis *b, const kl_report *r, kilter_error *error) {
    b->measured = calloc(r->iteration_count, sizeof *b->measured);
    if (!b->measured)
        return kl_fail(error, KILTER_ERR_MEMORY, "predicting from '%s': memory ran out", r->path);
    for (size_t i = 0; i < r->iteration_count; i++) {
        const kl_report_iteration *it = &r->iterations[i];
        if (is_whole(it) && it->workers > 0 && it->elapsed_s > 0 && isfinite(it->elapsed_s))
            b->measured[b->measured_count++] =
                (kl_measured){it->run, it->workers, it->elapsed_s + gap_before(r, it)};
    }
    return KILTER_OK;
}

static double measured(const kl_report *r, const char *kind) {
    return possible(kl_report_measured(r, kind));
}

/* Return the start-up time of a message when no other message is on the network. The model of shared
 * resources adds the time for which messages wait for each other. */
static double startup_s(const kl_report *r) {
    double alone_s = kl_report_measured(r, "message_alone_s"), s = kl_report_measured(r, "message_fixed_s");
    return alone_s < s ? alone_s : s;
}

/* Return the name of the cost per byte to use: the cost of the link, if workers on other hosts have measured
 * it. */
static const char *byte_kind(const kl_report *r) {
    return measured(r, "link_per_byte_s") > 0 ? "link_per_byte_s" : "message_per_byte_s";
}

/* Return the last run in which a master gave out the tasks. The load on shared resources is measured only in
 * such runs. NULL: there is no such run. */
static const kl_report_iteration *last_measured(const kl_report *r) {
    size_t count = r->iteration_count;
    while (count > 0 && by_peers(&r->iterations[count - 1]))
        count--;
    return count > 0 ? &r->iterations[count - 1] : NULL;
}

/* Sums over a run and the similar runs directly before it, at most RUNS_ALIKE runs. */
typedef struct alike {
    uint64_t runs[2]; /* numbers of the first and the last of these runs */
    double count, work_s, elapsed_s, chunks, bytes_out, bytes_in;
} alike;

static void add_run(alike *a, const kl_report_iteration *it) {
    a->runs[0] = it->run;
    a->count++;
    a->work_s += work_of(it).work_s;
    a->elapsed_s += it->elapsed_s;
    a->chunks += (double)it->chunks;
    a->bytes_out += it->bytes_out;
    a->bytes_in += it->bytes_in;
}

/* The record's first run, with cold caches and connections, counts only if it is the run `it`. */
static alike alike_runs(const kl_report *r, const kl_report_iteration *it) {
    alike a = {.runs = {it->run, it->run}};
    add_run(&a, it);
    for (size_t i = (size_t)(it - r->iterations); i > 1 && a.count < RUNS_ALIKE; i--) {
        const kl_report_iteration *before = &r->iterations[i - 1];
        if (!is_similar(before, it) || !is_possible(work_of(before).work_s) ||
            !is_possible(before->elapsed_s))
            break;
        add_run(&a, before);
    }
    return a;
}

/* Set the CPU time and other costs of a run to their means over similar runs. */
static kilter_status read_use(const kl_report *r, const alike *a, kl_use *use, kilter_error *error) {
    enum { FARM, CALLBACKS, LOCAL, TASKS, DELAY, MESSAGES, MEANS };
    kl_report_mean mean[MEANS] = {[FARM] = {"farm_cpu_s", 0},   [CALLBACKS] = {"callbacks_cpu_s", 0},
                                  [LOCAL] = {"local_cpu_s", 0}, [TASKS] = {"local_tasks", 0},
                                  [DELAY] = {"delay_s", 0},     [MESSAGES] = {"messages", 0}};
    kilter_status status = kl_report_means(r->path, a->runs, mean, MEANS, error);
    use->farm_s = possible(mean[FARM].value);
    use->callbacks_s = possible(mean[CALLBACKS].value);
    use->local_s = possible(mean[LOCAL].value);
    use->local_tasks = fmin(possible(mean[TASKS].value), use->tasks);
    use->delay_s = possible(mean[DELAY].value);
    use->messages = possible(mean[MESSAGES].value);
    return status;
}

/* Read the load on shared resources. Some costs are known only for the end of the record. So the load stays
 * unknown unless `it` is the last run in which a master gave out the tasks. The caller multiplies the
 * recorded work by *alone, the factor of kl_load_fit(). */
static kilter_status learn_load(kl_basis *b, const kl_report *r, const kl_report_iteration *it,
                                const alike *a, double *alone, kilter_error *error) {
    double bytes = (a->bytes_out + a->bytes_in) / a->count;
    if (!is_whole(it) || it != last_measured(r))
        return KILTER_OK;
    b->load = (kl_load){.use = {.tasks = (double)it->tasks_done,
                                .bytes = bytes,
                                .cores = (uint32_t)fmin(measured(r, "cores"), WORKERS_MOST)},
                        .workers = it->workers,
                        .chunks = a->chunks / a->count,
                        .answer_s = measured(r, "answer_s"),
                        .to_workers = bytes > 0 ? a->bytes_out / a->count / bytes : 0.5,
                        .per_byte_s = measured(r, byte_kind(r)),
                        .copy_s = measured(r, "copy_per_byte_s"),
                        .near_s = measured(r, "near_message_s"),
                        .woken_s = measured(r, "answer_woken_s"),
                        .awake_s = measured(r, "answer_awake_s")};
    kilter_status status = read_use(r, a, &b->load.use, error);
    *alone = kl_load_fit(&b->load, a->work_s / a->count / b->load.use.tasks, a->elapsed_s / a->count);
    return status;
}

static kilter_status learn_from(kl_basis *b, const kl_report *r, const kl_report_iteration *it,
                                kilter_error *error) {
    static const char *const work_from[] = {"the run's work, on a worker of the mean speed",
                                            "mean of the last similar runs, on a worker of the mean speed"};
    static const char *const mean_from[] = {"the run's work over its tasks", "mean of the last similar runs"};
    const work w = work_of(it);
    const alike a = alike_runs(r, it);
    double bytes = (it->bytes_out + it->bytes_in) * w.times, alone = 1;
    kilter_status status = learn_load(b, r, it, &a, &alone, error);
    double work_s = alone * a.work_s / a.count, mean_s = work_s / w.tasks;
    b->run = it->run;
    b->workers = (uint32_t)w.workers;
    b->rate = w.rate * w.work_s * a.count / a.work_s; /* the rate of the mean run */
    b->tasks = w.tasks;
    b->done = (double)it->tasks_done;
    b->uneven = differ(it);
    compare_runs(b, r, it);
    learn(b, KL_IN_WORK_S, work_s, work_from[a.count > 1]);
    learn(b, KL_IN_BYTES, bytes, "bytes of the run's chunks, there and back");
    learn(b, KL_IN_ALPHA, bytes > 0 ? it->bytes_out * w.times / bytes : 0.5, "bytes of the run's chunks");
    learn(b, KL_IN_STARTUP_S, startup_s(r), "measured by the farm");
    learn(b, KL_IN_PER_BYTE_S,
          b->load.per_byte_s > 0 ? b->load.per_byte_s : kl_report_measured(r, byte_kind(r)),
          "measured by the farm");
    learn(b, KL_IN_MASTER_S, gap_before(r, it),
          "from the end of the previous run to the beginning of this run");
    learn(b, KL_IN_ANSWER_S, kl_report_measured(r, "answer_s"), "measured by the farm");
    learn(b, KL_IN_TASKS, w.tasks, "tasks of the run");
    learn(b, KL_IN_TASK_MEAN_S, mean_s, mean_from[a.count > 1]);
    learn(b, KL_IN_TASK_SD_S, task_cv(it) * mean_s, "spread of the tasks on each worker");
    return status;
}

static int fastest_first(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static void sort_and_sum(double *speeds, uint32_t count) {
    qsort(speeds, count, sizeof *speeds, fastest_first);
    for (uint32_t i = 1; i < count; i++)
        speeds[i] += speeds[i - 1];
}

/* List the speeds of the workers that computed. A worker with `rate` units per second has speed 1. */
static uint32_t list_speeds(const kl_report_iteration *it, double rate, double *speeds) {
    uint32_t count = 0;
    for (size_t i = 0; i < it->share_count; i++)
        if (it->shares[i].busy_s > 0 && it->shares[i].units > 0)
            speeds[count++] = it->shares[i].units / it->shares[i].busy_s / rate;
    return count;
}

static kilter_status note_own_speeds(kl_basis *b, const kl_report_iteration *it, kilter_error *error) {
    b->own = calloc(it->share_count + 1, sizeof *b->own);
    if (!b->own)
        return kl_fail(error, KILTER_ERR_MEMORY, "reading the workers of the record: memory ran out");
    b->own_count = list_speeds(it, work_of(it).rate, b->own);
    sort_and_sum(b->own, b->own_count);
    return KILTER_OK;
}

kilter_status kl_basis_read(kl_basis *b, const char *path, int64_t run, kilter_error *error) {
    kl_report *report = NULL;
    const kl_report_iteration *it = NULL;
    kilter_status status = kl_report_read(path, &report, error);
    if (status == KILTER_OK)
        status = choose_run(report, run, &it, error);
    if (status == KILTER_OK)
        status = note_measured(b, report, error);
    if (status == KILTER_OK && is_whole(it))
        status = kl_report_rounds(path, it->run, it->workers, &b->part, &b->part_count, error);
    if (status == KILTER_OK)
        status = learn_from(b, report, it, error);
    if (status == KILTER_OK) {
        b->record = strdup(path);
        b->program = strdup(report->run.program);
        b->cut = is_whole(it) ? NULL : strdup(it->status ? it->status : "");
        status = b->record && b->program && (b->cut || is_whole(it))
                     ? note_own_speeds(b, it, error)
                     : kl_fail(error, KILTER_ERR_MEMORY, "predicting from '%s': memory ran out", path);
    }
    kl_report_free(report);
    return status;
}

kilter_status kl_basis_complete(kl_basis *b, kilter_error *error) {
    /* If the user gave other work, the recorded load on shared resources is not valid. */
    static const int inputs[] = {KL_IN_WORK_S, KL_IN_BYTES, KL_IN_TASKS, KL_IN_TASK_MEAN_S};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (given(b, inputs[i]))
            b->load = (kl_load){0};
    if (!known(b, KL_IN_WORK_S))
        return kl_fail(error, KILTER_ERR_INPUT,
                       "predicting: the work is not known; give --work-s, or the record of a run");
    double work_s = b->in[KL_IN_WORK_S].value, mean_s = b->in[KL_IN_TASK_MEAN_S].value;
    if (known(b, KL_IN_TASK_MEAN_S) && mean_s > work_s * (1 + 1e-9))
        return kl_fail(
            error, KILTER_ERR_INPUT,
            "predicting: a task of %g s is longer than all the work, %g s; correct --task-mean-s or --work-s",
            mean_s, work_s);
    if (given(b, KL_IN_TASKS) && given(b, KL_IN_TASK_MEAN_S) && given(b, KL_IN_WORK_S) &&
        fabs(b->in[KL_IN_TASKS].value * mean_s - work_s) > 0.01 * work_s)
        return kl_fail(error, KILTER_ERR_INPUT,
                       "predicting: %g tasks of %g s are not %g s of work; leave out --tasks or "
                       "--task-mean-s",
                       b->in[KL_IN_TASKS].value, mean_s, work_s);
    if (known(b, KL_IN_TASKS))
        learn(b, KL_IN_TASK_MEAN_S, work_s / b->in[KL_IN_TASKS].value, "T_c/M");
    else if (known(b, KL_IN_TASK_MEAN_S))
        learn(b, KL_IN_TASKS, fmax(1, round(work_s / b->in[KL_IN_TASK_MEAN_S].value)), "T_c/μ");
    learn(b, KL_IN_ALPHA, 0.5, "not given: half to the workers");
    learn(b, KL_IN_BYTES, 0, "not given");
    learn(b, KL_IN_STARTUP_S, 0, "not given");
    learn(b, KL_IN_PER_BYTE_S, 0, "not given");
    learn(b, KL_IN_MASTER_S, 0, "not given");
    if (known(b, KL_IN_TASK_MEAN_S))
        learn(b, KL_IN_TASK_SD_S, 0, "not given");
    for (int i = 0; i < KL_INPUTS; i++)
        if (!known(b, i))
            b->in[i].value = (double)NAN;
    b->scratch_count = b->part_count > DAF_ROUNDS_MOST ? b->part_count : DAF_ROUNDS_MOST;
    b->scratch = calloc(b->scratch_count, sizeof *b->scratch);
    if (!b->scratch)
        return kl_fail(error, KILTER_ERR_MEMORY, "predicting: memory ran out");
    b->beyond = kl_predict_beyond(b);
    return KILTER_OK;
}

/* ---- workers that the user gave ---- */

static void sum_speeds(kl_basis *b, double *speeds, uint32_t count, const char *from) {
    sort_and_sum(speeds, count);
    /* speeds count as uneven if the fastest is more than 5 % above the slowest */
    b->speeds_uneven = count > 1 && speeds[0] > 1.05 * (speeds[count - 1] - speeds[count - 2]);
    free(b->speeds);
    b->speeds = speeds;
    b->speed_count = count;
    b->speeds_from = from;
    b->load = (kl_load){0}; /* the recorded load is not valid for other workers */
    b->beyond = 1;          /* the factor of correction is not valid for other workers */
}

/* Read a speed such as "0.5", or "16x0.5" for 16 workers, at *at. Move *at to the text after the speed. */
static bool parse_term(const char **at, uint32_t *times, double *speed) {
    char *end;
    errno = 0;
    double value = strtod(*at, &end);
    *times = 1;
    if (end != *at && *end == 'x' && value >= 1 && value <= WORKERS_MOST && value == floor(value)) {
        *times = (uint32_t)value;
        *at = end + 1;
        value = strtod(*at, &end);
    }
    bool hexadecimal = strcspn(*at, "xX") < strcspn(*at, ",");
    bool read =
        end != *at && !errno && !hexadecimal && value > 0 && isfinite(value) && (*end == ',' || *end == '\0');
    *at = end;
    *speed = value;
    return read;
}

kilter_status kl_basis_speeds(kl_basis *b, const char *list, kilter_error *error) {
    double *speeds = NULL;
    uint32_t count = 0;
    for (const char *at = list;; at++) {
        const char *term = at;
        uint32_t times;
        double speed;
        kilter_status status = KILTER_OK;
        if (!parse_term(&at, &times, &speed))
            status = kl_fail(
                error, KILTER_ERR_INPUT,
                "reading the speeds '%s': '%.20s' is not a speed above 0; write 1,1,0.5 or 16x1,16x0.25",
                list, term);
        else if (times > WORKERS_MOST - count)
            status = kl_fail(error, KILTER_ERR_INPUT, "reading the speeds '%s': more than %d workers", list,
                             WORKERS_MOST);
        double *more = status == KILTER_OK ? realloc(speeds, (count + times) * sizeof *speeds) : NULL;
        if (status == KILTER_OK && !more)
            status = kl_fail(error, KILTER_ERR_MEMORY, "reading the speeds: memory ran out");
        if (status != KILTER_OK) {
            free(speeds);
            return status;
        }
        speeds = more;
        for (; times > 0; times--)
            speeds[count++] = speed;
        if (*at == '\0')
            break;
    }
    sum_speeds(b, speeds, count, "--speeds, relative to the mean worker");
    return KILTER_OK;
}

/* Use the workers of another record. If that record is of another program, its units of work are different.
 * Then the workers' speeds are relative to their own mean. */
kilter_status kl_basis_hosts(kl_basis *b, const char *path, kilter_error *error) {
    kl_report *report = NULL;
    const kl_report_iteration *it = NULL;
    kilter_status status = kl_report_read(path, &report, error);
    if (status == KILTER_OK)
        status = choose_run(report, -1, &it, error);
    double *speeds = status == KILTER_OK ? calloc(it->share_count, sizeof *speeds) : NULL;
    if (status == KILTER_OK && !speeds)
        status = kl_fail(error, KILTER_ERR_MEMORY, "reading the workers of '%s': memory ran out", path);
    if (status == KILTER_OK) {
        bool same = b->rate > 0 && strcmp(b->program, report->run.program) == 0;
        uint32_t count = list_speeds(it, same ? b->rate : work_of(it).rate, speeds);
        if (count > 0)
            sum_speeds(b, speeds, count,
                       same ? "--hosts, relative to the mean worker of the run"
                            : "--hosts, relative to their own mean, because the programs differ");
        else
            status =
                kl_fail(error, KILTER_ERR_INPUT, "reading the workers of '%s': none of them computed", path);
        if (count == 0)
            free(speeds);
    }
    kl_report_free(report);
    return status;
}

void kl_basis_free(kl_basis *b) {
    free(b->record);
    free(b->program);
    free(b->cut);
    free(b->measured);
    free(b->part);
    free(b->scratch);
    free(b->speeds);
    free(b->own);
    *b = (kl_basis){0};
}
